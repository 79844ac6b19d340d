"""An agent that works in a folder: each trial has its own copy, and what it changed is in the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from karat.execution import Outcome
from karat.journal import Attempt, verify
from karat.records import Answer

pytestmark = pytest.mark.needs_package("karat_coding")

AGENT = """
from pathlib import Path
TRIED = Path(__file__).with_name("tried.txt")

def query(question, workspace):
    assert [path.name for path in workspace.iterdir()] == ["start.txt"], "a fresh copy"
    (workspace / "new.txt").write_text(question)
    if question == "q1" and not TRIED.exists():
        TRIED.touch()
        raise ConnectionError("not yet")
    return "done"
"""


def test_each_attempt_starts_in_a_fresh_copy_and_the_answer_names_its_changes(
    experiment: Callable[..., Path], run: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "start.txt").write_text("as it was")
    file = experiment(
        AGENT,
        conditions={"a": {"workspace": "start"}},
        execution={"num_repetitions": 1, "max_concurrent": 1},
    )
    outcome = run(file)
    answers = list(outcome.run.events_of(Answer))
    changes = {answer.sample: answer.workspace for answer in answers}
    assert {name: found and (found.changed, found.removed) for name, found in changes.items()} == dict.fromkeys(
        "012", (1, 0)
    )
    assert [attempt.kind for attempt in outcome.run.events_of(Attempt)] == ["os_error"]
    stored = {path.name for path in (outcome.run.path / "workspaces").iterdir()}
    assert {found.file for found in changes.values() if found is not None} < stored, (
        "the failed attempt's are kept, too"
    )
    assert verify(outcome.run.path).ok
    assert (tmp_path / "start" / "start.txt").read_text() == "as it was"
