"""The question that columns leave open: its choice is written into the experiment file, on a terminal only."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from karat.cli.asking_roles import write_roles
from karat.documents.nodes import plain
from karat.documents.reader import parse
from karat.errors import BadDataset
from karat.kinds.golden import Golden

ROLES = "roles: {question: question, golden: ground_truth, answer: answer}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dataset: q.json\nagent: a\n", f"dataset: {{path: q.json, {ROLES}}}\nagent: a\n"),
        (
            "# mine\ndataset: {path: q.json}  # theirs\nagent: a\n",
            f"# mine\ndataset: {{path: q.json, {ROLES}}}  # theirs\nagent: a\n",
        ),
        (
            "dataset:\n  path: q.json\n  seed: 3\nagent: a\n",
            f"dataset:\n  path: q.json\n  {ROLES}\n  seed: 3\nagent: a\n",
        ),
        ("dataset:\n    path: q.json", None),
        ("dataset: {\n  path: q.json}\n", None),
    ],
)
def test_the_roles_are_written_below_the_dataset_and_the_rest_stays(tmp_path: Path, before, after):
    file = tmp_path / "e.yaml"
    file.write_text(before)
    file.chmod(0o640)
    assert write_roles(file, ROLES) is (after is not None)
    assert file.read_text() == (after or before)
    assert file.stat().st_mode & 0o777 == 0o640


def test_settings_of_a_reading_are_written_with_its_roles(tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    for before in ("dataset: q.json\n", "dataset: {path: q.json}\n", "dataset:\n  path: q.json\n  seed: 3\n"):
        file.write_text(before)
        assert write_roles(file, f"{ROLES}\nseveral: all\nskip: unreadable")
        written = parse(file.read_bytes()).root
        assert written is not None
        dataset = plain(written)["dataset"]
        assert (dataset["path"], dataset["several"], dataset["skip"]) == ("q.json", "all", "unreadable")
        assert dataset["roles"]["golden"] == "ground_truth"


@pytest.mark.parametrize(
    "name", ["a: b", "x}, agent: {type: command", "y\nagent: {type: command}", "null", "7", 'q"', "é?"]
)
def test_a_column_s_name_stays_a_name_whatever_is_in_it(tmp_path: Path, name):
    (tmp_path / "q.json").write_text(json.dumps([{"question": "A?", "prompt_text": "B?", name: "x"}]))
    with pytest.raises(BadDataset) as bad:
        Golden(Golden.Options(roles={"golden": [name]})).load(tmp_path / "q.json")
    (file := tmp_path / "e.yaml").write_text("dataset: {path: q.json}\nagent: {type: floor}\n")
    assert write_roles(file, bad.value.readings[0])
    written = plain(parse(file.read_bytes()).root)
    assert written["agent"] == {"type": "floor"}
    assert written["dataset"]["roles"]["golden"] == name


EXPERIMENT = """\
dataset: {path: q.json}
agent: {type: floor}
scorers: [equals]
conditions: {base: {}}
execution: {num_repetitions: 1}
"""


@pytest.fixture
def experiment(here: Path) -> Path:
    (here / "q.json").write_text('[{"question": "A?", "answer": "x", "ground_truth": "y"}]')
    (here / "e.yaml").write_text(EXPERIMENT)
    return here / "e.yaml"


def test_without_a_terminal_nothing_is_asked_or_written(karat, experiment):
    done = karat("check", "e.yaml")
    assert done.code == 2
    assert f"1) {ROLES}" in done.err
    assert experiment.read_text() == EXPERIMENT


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "written"), [("1", True), ("3", False)])
def test_on_a_terminal_the_choice_is_asked_and_written(experiment, typed, written):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "karat", "check", "e.yaml"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=experiment.parent) as child:
        os.close(theirs)
        os.write(ours, f"{typed}\n".encode())
        seen = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not block:
                break
            seen += block
        code = child.wait()
    os.close(ours)
    text = seen.decode()
    assert "none of these" in text
    assert (code == 0) is written
    assert (ROLES in experiment.read_text()) is written
    assert ("golden     y  [ground_truth]" in text) is written
