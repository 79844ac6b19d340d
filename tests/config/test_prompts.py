"""System prompts: in the experiment file, or in files of their own."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import karat
from karat.config import Experiment, load
from karat.config.model import ConditionModel
from karat.config.prompts import presets
from karat.errors import BadExperiment

Read = Callable[..., Experiment]
START = "dataset: {path: questions.jsonl}\nagent: {type: floor}\njudge: {type: overlap}\nconditions:\n"
TEXT = "Answer briefly.\nNever guess.\n"


@pytest.mark.parametrize(
    "condition",
    ["{system_prompt: {file: prompt.txt}}", "{prompt_file: prompt.txt}", "{system_prompt_file: prompt.txt}"],
)
def test_a_prompt_is_read_from_the_experiments_folder(read: Read, folder: Path, condition: str) -> None:
    (folder / "prompt.txt").write_text(TEXT, encoding="utf-8-sig")
    experiment = read(f"{START}  a: {condition}\n  b: {{system_prompt: {json.dumps(TEXT)}}}\n")
    read_from, written = experiment.conditions
    assert read_from.system_prompt == TEXT
    assert read_from.digest == written.digest
    assert experiment.warnings == ()


def test_the_run_keeps_the_text_and_its_digest(folder: Path) -> None:
    (folder / "prompt.txt").write_text(TEXT)
    (folder / "e.yaml").write_text(f"{START}  a: {{prompt_file: prompt.txt}}\nexecution: {{num_repetitions: 1}}\n")
    run = karat.run("e.yaml", results="results")
    told = json.loads((run.path / "run.json").read_text())["experiment"]
    kept = {key.removeprefix("conditions.a."): told[key] for key in told if "prompt" in key}
    assert kept == {
        "system_prompt": {"value": TEXT, "source": "file"},
        "prompt_file.path": {"value": "prompt.txt", "source": "file"},
        "prompt_file.sha256": {"value": hashlib.sha256(TEXT.encode()).hexdigest(), "source": "file"},
    }
    before = load("e.yaml").conditions[0].digest
    (folder / "prompt.txt").write_text("Another prompt.")
    assert load("e.yaml").conditions[0].digest != before


@pytest.mark.parametrize(
    "prompt",
    [
        "file://prompt.txt",
        "file:prompt.txt",
        "prompt.txt",
        "prompts/answer.md",
        "./answer",
        "~/prompt",
        "@prompt.txt",
        "https://example.org/prompt",
        "C:\\prompts\\a.txt",
        " prompt.md\n",
        "my prompt",
    ],
)
def test_a_prompt_that_looks_like_a_path_is_warned_about(read: Read, folder: Path, prompt: str) -> None:
    (folder / "my prompt").write_text("There is such a file.")
    experiment = read(f"{START}  a: {{system_prompt: {json.dumps(prompt)}}}\n")
    (warning,) = experiment.warnings
    assert warning.startswith(
        "conditions.a.system_prompt (line 5, column 7): looks like a path or an address, and is sent "
    )
    assert "`system_prompt: {file: " in warning
    assert experiment.conditions[0].system_prompt == prompt


@pytest.mark.parametrize(
    "prompt",
    [
        "Answer briefly.",
        "Note: be brief",
        "Answer yes/no.",
        "See file://x for more.",
        "",
        "Answer in one\nprompt.txt",
        "x",
    ],
)
def test_words_are_no_path(read: Read, prompt: str) -> None:
    assert read(f"{START}  a: {{system_prompt: {json.dumps(prompt)}}}\n").warnings == ()


def test_files_that_are_no_prompts_are_faults_with_their_place(read: Read, folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "good.txt").write_text("Be brief.")
    (folder / "large.txt").write_bytes(b"x" * 1_000_001)
    (folder / "latin.txt").write_bytes("größer".encode("latin-1"))
    files = ["nowhere.txt", "fifo", "/dev/zero", ".", "large.txt", "latin.txt", "a\\0b"]
    conditions = "".join(f'  c{n}: {{prompt_file: "{name}"}}\n' for n, name in enumerate(files))
    with pytest.raises(BadExperiment) as caught:
        read(f"{START}{conditions}  two: {{prompt_file: good.txt, system_prompt: x}}\n")
    said = [(fault.place, fault.message) for fault in caught.value.faults]
    assert said[0] == (
        "conditions.c0.prompt_file",
        "'nowhere.txt' cannot be read: No such file or directory; paths start at the experiment's folder",
    )
    wanted = ["No such", "not a regular file", "not a regular file", "folder", "larger than 1000000", "not UTF-8"]
    assert [word for word, (_, message) in zip(wanted, said, strict=False) if word not in message] == []
    assert said[7] == (
        "conditions.two.prompt_file",
        "leave out one of `prompt_file` and `system_prompt`: each is the system prompt",
    )


def test_variables_in_a_prompt_file_are_not_filled_in_and_that_is_said(read: Read, folder: Path) -> None:
    (folder / "prompt.txt").write_text("You are ${NAME}.")
    experiment = read(f"{START}  a: {{prompt_file: prompt.txt}}\n", env={"NAME": "Ada"})
    assert experiment.conditions[0].system_prompt == "You are ${NAME}."
    assert "holds ${NAME}, which is not filled in there" in experiment.warnings[0]


@pytest.mark.needs_kind("study")
def test_a_preset_is_the_system_prompt_of_its_text() -> None:
    assert presets()
    for name, preset in presets().items():
        assert ConditionModel.model_construct(preset=name).prompt == preset.text
    assert ConditionModel.model_construct(system_prompt="Be brief.").prompt == "Be brief."
    assert ConditionModel.model_construct().prompt is None
