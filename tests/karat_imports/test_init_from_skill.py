"""`karat init --from SKILL_FOLDER`: evaluations of a skill become an experiment with and without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karat.cli.checking import check
from karat.cli.scaffold import scaffold_from
from karat.config import load
from karat.errors import BadOption
from karat.execution import Selection
from karat.setups import Setup, tool_of
from karat_imports.setups.skill import Skill


def skill(folder: Path, evals: Any, **files: str) -> Path:
    home = folder / "demo"
    (home / "evals" / "files").mkdir(parents=True)
    (home / "SKILL.md").write_text("---\nname: demo\ndescription: A demo.\n---\nDo it.\n")
    (home / "evals" / "evals.json").write_text(json.dumps(evals))
    for name, text in files.items():
        (home / "evals" / "files" / f"{name}.txt").write_text(text)
    return home


def read(path: Path) -> Setup:
    return tool_of(path).reader.read(path, path.parent / "out")


def test_evaluations_are_asked_with_and_without_the_skill(tmp_path: Path) -> None:
    evals = [
        {"id": 1, "prompt": "Do", "expected_output": "Done.", "files": ["evals/files/a.txt"], "expectations": ["X"]},
        {"id": 2, "name": "named", "prompt": "Go", "expected_output": "Gone."},
        {"id": 2, "prompt": "Weather?", "should_trigger": False, "files": ["b.txt", "../../c.txt"]},
        {
            "query": "Say",
            "assertions": [
                {"name": "n", "description": "Says it"},
                {"type": "llm_judge", "criterion": "Is kind"},
                {"type": "regex", "name": "r", "pattern": "a+"},
            ],
        },
        {"id": 5},
    ]
    home = skill(tmp_path, {"skill_name": "demo", "evals": evals}, a="text")
    setup = read(home)
    tools = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]
    assert setup.experiment == {
        "name": "demo",
        "dataset": {
            "path": "questions.jsonl",
            "id_key": "id",
            "answer_key": "answer",
            "criteria_key": "criteria",
        },
        "agent": {"type": "claude", "model": "claude-sonnet-4-5"},
        "judge": {"type": "criteria", "model": "anthropic:claude-opus-4-5"},
        "conditions": {
            "without": {"tools": tools, "workspace": "workspace"},
            "with": {"tools": tools, "workspace": "workspace", "skills": ["../demo"]},
        },
        "execution": {"num_repetitions": 3},
    }
    assert setup.rows == [
        {"id": "1", "question": "Do\n\nFiles: evals/files/a.txt", "answer": "Done.", "criteria": ["X"]},
        {
            "id": "2",
            "question": "Go",
            "name": "named",
            "answer": "Gone.",
            "criteria": ["The outcome is as described: Gone."],
        },
        {
            "id": "2 (3)",
            "question": "Weather?",
            "criteria": [{"text": "Skill", "type": "not-tool"}],
            "should_trigger": False,
        },
        {"id": "4", "question": "Say", "criteria": ["Says it", "Is kind", {"text": "a+", "type": "regex"}]},
    ]
    assert setup.files == {"workspace/evals/files/a.txt": b"text"}
    assert setup.left_out == (
        "file: 'b.txt' cannot be read: No such file or directory (evaluation 2 (3))",
        "file: '../../c.txt' is no path within the skill (evaluation 2 (3))",
        "evaluation: it has no `prompt` (number 5)",
    )


def test_queries_that_should_trigger_need_no_judge_and_pass_the_check(tmp_path: Path) -> None:
    home = skill(tmp_path, [{"query": "Do", "should_trigger": True}, {"query": "Rain?", "should_trigger": False}])
    scaffold_from(home / "evals" / "evals.json", tmp_path / "out")
    text = (tmp_path / "out" / "experiment.yaml").read_text()
    assert "scorers:\n- criteria\n" in text
    assert "&id" not in text, "no YAML aliases"
    assert check(load(tmp_path / "out" / "experiment.yaml"), selection=Selection(), results=tmp_path, start=None).ready


@pytest.mark.parametrize(
    ("evals", "message"),
    [
        ({"evals": []}, "no question of .* can be taken: `evals` is no list, or it is empty"),
        ({"evals": [{"id": 1}]}, r"can be taken: evaluation: it has no `prompt` \(number 1\)"),
        ("text", "no question of .* can be taken"),
    ],
)
def test_a_skill_without_evaluations_is_refused(tmp_path: Path, evals: Any, message: str) -> None:
    with pytest.raises(BadOption, match=message):
        read(skill(tmp_path, evals))


def test_a_folder_without_evaluations_or_a_skill_is_refused(tmp_path: Path) -> None:
    home = skill(tmp_path, {"evals": [{"prompt": "a"}]})
    (home / "SKILL.md").unlink()
    with pytest.raises(BadOption, match=r"is no skill: it has no SKILL.md"):
        read(home)
    (home / "evals" / "evals.json").unlink()
    (home / "SKILL.md").touch()
    with pytest.raises(BadOption, match=r"has no evaluations \(expected: evals/evals.json\)"):
        read(home)


@pytest.mark.parametrize(
    ("name", "head", "beside", "known"),
    [
        ("evals.json", b'{"skill_name": "a", "evals": []}', False, True),
        ("evals.JSON", b'{"evals": [{"prompt": "a"}]}', True, True),
        ("evals.json", b'{"evals": [{"prompt": "a"}]}', False, False),
        ("evals.txt", b'{"skill_name": "a", "evals": []}', True, False),
        ("other.json", b'{"other": "a"}', True, False),
    ],
)
def test_evaluations_are_known_by_their_names_or_the_skill_beside_them(
    tmp_path: Path, name: str, head: bytes, beside: bool, known: bool
) -> None:
    if beside:
        (tmp_path / "SKILL.md").write_text("---\nname: a\n---\n")
    (tmp_path / name).write_bytes(head)
    assert Skill.recognizes(tmp_path / name, head) is known
