"""An agent that works in a folder: each trial has its own copy, and what it changed is in the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from karat.config import Retry
from karat.execution import Limits, Outcome, Selection, rescore
from karat.journal import Attempt, verify
from karat.records import Answer, Score, ScorerSpec

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


LOOKING = """
from pathlib import Path

def query(question, workspace):
    (workspace / "new.txt").write_text(question)
    return "done"

KEPT = []

class Scorer:
    def __init__(self, setting):
        self.workspace_of = setting.workspace_of
        KEPT.append(self)

    def score(self, sample, answer):
        with self.workspace_of(answer) as workspace:
            with Path(__file__).with_name("looked.txt").open("a") as looked:
                looked.write(f"{workspace.path}\\n")
            start, new = (workspace.path / name for name in ("start.txt", "new.txt"))
            return start.read_text() == "as it was" and new.read_text() == sample.turns[0].question
"""


def test_scorers_look_at_copies_of_which_nothing_is_left(
    experiment: Callable[..., Path], run: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "start.txt").write_text("as it was")
    file = experiment(
        LOOKING, questions=2, conditions={"a": {"workspace": "start"}}, execution={"num_repetitions": 1},
        scorers=["equals"],
    )  # fmt: skip
    first = run(file, selection=Selection(limit=1)).run
    spec = ScorerSpec(type=f"{next(tmp_path.glob('agent_of_*.py')).stem}:Scorer", name="left")
    limits = Limits(max_concurrent=1, timeout_seconds=9, judge_timeout_seconds=9, retry=Retry(), max_failures=9)
    asyncio.run(rescore(first, [spec], base=tmp_path, limits=limits))
    file.write_text(file.read_text().replace("- equals", f"- {spec.type}"))
    second = run(file, selection=Selection(limit=1)).run
    assert len(list(second.events_of(Score))) == 1
    again = run(file, resume=second.path).run
    scores = [score for one in (first, again) for score in one.events_of(Score) if score.scorer != "equals"]
    assert [[*score.values.values()] for score in scores] == [[True]] * 3
    looked = [Path(line) for line in (tmp_path / "looked.txt").read_text().splitlines()]
    assert len(looked) == 3
    assert not [path for path in looked if path.parents[1].exists()]
