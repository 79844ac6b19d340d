"""Skills, plug-ins, instructions, workspaces and tools of a condition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from karat.config import Experiment
from karat.errors import BadExperiment

Read = Callable[..., Experiment]
START = """dataset: {path: questions.jsonl}
agent: {type: replay, path: answers.jsonl}
judge: {type: overlap}
conditions:
  plain: {}
"""


@pytest.fixture
def context(folder: Path) -> Path:
    (folder / "answers.jsonl").write_text('{"id": "1", "answer": "x"}\n')
    for name in ("skills/tables", "other/tables", "plugin", "starter"):
        (folder / name).mkdir(parents=True)
    for name in ("skills/tables", "other/tables"):
        (folder / name / "SKILL.md").write_text("---\nname: tables\ndescription: d\n---\n")
    (folder / "CLAUDE.md").write_text("Be brief.")
    return folder


def test_everything_is_digested(read: Read, context: Path) -> None:
    text = f"""{START}
  full:
    skills: [skills/tables]
    plugins: [plugin]
    instructions: CLAUDE.md
    workspace: starter
    tools: [Read, Bash]
"""
    plain, full = read(text).conditions
    found = full.context
    assert [part.name for part in found.parts] == ["tables", "plugin", "CLAUDE.md", "starter"]
    assert found.tools == ("Read", "Bash")
    assert plain.context.keys == ()
    resolved = read(text).resolved
    assert resolved["conditions.full.workspace.path"].value == "starter"
    digests = {full.digest}
    for path, more in {"skills/tables/SKILL.md": "x", "plugin/new": "x", "CLAUDE.md": "x", "starter/new": "x"}.items():
        (context / path).write_text(more)
        digests.add(read(text).conditions[1].digest)
    digests.add(read(text.replace("Read, Bash", "Read")).conditions[1].digest)
    assert len(digests) == 6
    assert read(text.replace("Read, Bash", "Bash, Read")).conditions[1].digest in digests


def test_a_condition_without_context_has_the_digest_that_it_had(read: Read, context: Path) -> None:
    assert read(START).conditions[0].digest == "a584c4aca9b420922c241fe1bd1caa68"


FAULTS = {
    "skills: [gone]": "there is no folder 'gone'",
    "skills: [plugin]": "'plugin' has no file SKILL.md",
    "skills: [CLAUDE.md]": "'CLAUDE.md' is a file; name the folder",
    "skills: [skills/tables, other/tables]": "skills.1 (line 6, column 34): is a second one called 'tables'",
    "workspace: 3": "workspace",
    "workspace: ''": "must be a path",
    "instructions: gone.md": "'gone.md' cannot be read",
    "instructions: starter": "'starter' cannot be read",
    "tools: Read": "tools",
    "workspace: bad": "set-uid",
}


@pytest.mark.parametrize("keys", FAULTS)
def test_what_is_wrong_is_said_with_its_place(read: Read, context: Path, keys: str) -> None:
    (context / "bad").mkdir()
    (context / "bad/file").write_text("")
    (context / "bad/file").chmod(0o4755)
    with pytest.raises(BadExperiment) as caught:
        read(f"{START}  full: {{{keys}}}\n")
    assert FAULTS[keys] in str(caught.value)
    assert "conditions.full" in str(caught.value)


def test_an_agent_that_does_not_hand_it_on_is_refused(read: Read, context: Path) -> None:
    text = START.replace("{type: replay, path: answers.jsonl}", "{type: floor}")
    with pytest.raises(BadExperiment, match="the agent 'floor' takes no workspace"):
        read(f"{text}  full: {{workspace: starter}}\n")
