"""Participants of all arms in turn, those of whom nothing was recorded, and runs that were begun in another order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from karat.analysis import summarize
from karat.execution import Outcome, Selection
from karat.records import Answer, Failure
from karat.redact import Redactor

from .games import write_game

pytestmark = pytest.mark.needs_kind("study")

Write = Callable[..., Path]
Run = Callable[..., Outcome]


@pytest.fixture
def game(experiment: Write, tmp_path: Path) -> Write:
    """`game(code, groups=2, tasks=0, **sections)` writes an experiment on a study with groups of three."""

    def write(code: str = "", **options: Any) -> Path:
        return write_game(tmp_path, experiment, code, **options)

    return write


def test_of_whom_nothing_was_recorded_is_missing_and_all_counts_agree(game: Write, run: Run, tmp_path: Path) -> None:
    answers = {f"{name}_number": 7 for name in ("one", "two")}
    rows: list[dict[str, Any]] = [{"participant": "alone-001", "answers": answers}]
    rows += [{"participant": "alone-002", "task": "materials/one.md", "text": "one_number: 7"}]
    rows += [{"participant": "game-001", "round": 1, "text": "number: 9"}]  # one member of the first of two groups
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    agent = {"type": "replay", "path": str(tmp_path / "said.jsonl"), "participants": {}}
    execution = {"max_failures": 100}
    file = game(groups=2, tasks=2, agent=agent, dataset={"per_arm": 6}, execution=execution, scorers=["replication"])
    outcome = run(file)
    failed = {one.sample: one.kind for one in outcome.run.events_of(Failure)}
    nothing = ("alone-003", "alone-004", "alone-005", "alone-006", "game-group-02")
    assert failed == dict.fromkeys(nothing, "not_recorded")
    assert {one.sample for one in outcome.run.events_of(Answer)} == {"alone-001", "alone-002", "game-group-01"}
    summary = summarize(outcome.run)
    assert summary.study is not None
    arms = {arm.arm: arm.participants for study in summary.study.conditions[0].studies for arm in study.arms}
    alone, members = arms["alone"], arms["game"]
    assert (alone.planned, alone.asked, alone.answered, alone.parsed) == (6, 2, 1, 1)
    assert (members.planned, members.asked, members.answered, members.parsed) == (6, 1, 0, 0)
    ledger = summary.total.ledger
    assert (ledger.planned, ledger.scored, ledger.agent) == (8, 3, 5)


def test_a_few_are_some_of_each_arm_and_more_are_added_to_them(game: Write, run: Run) -> None:
    file = game(groups=4, tasks=2, dataset={"per_arm": 6})
    few = run(file, selection=Selection(limit=3))
    assert {one.sample for one in few.run.events_of(Answer)} == {"alone-001", "alone-002", "game-group-01"}
    again = run(game(groups=4, tasks=2, dataset={"per_arm": 9}), resume=few.run.path)
    names = [one.sample for one in again.run.events_of(Answer)]
    assert sorted(names) == sorted({one.id for one in again.run.samples()})
    assert len(names) == 9 + 3


def test_a_run_whose_participants_lie_arm_by_arm_goes_on(game: Write, run: Run) -> None:
    file = game(groups=2, tasks=2, dataset={"per_arm": 6})
    outcome = run(file, selection=Selection(limit=3))
    there = sorted(outcome.run.samples(), key=lambda one: one.id)
    older = (msgspec.structs.replace(one, position=at) for at, one in enumerate(there))
    outcome.run.write_samples(older, redact=Redactor({}))
    first = {one.sample for one in outcome.run.events_of(Answer)}
    again = run(file, resume=outcome.run.path)
    names = [one.sample for one in again.run.events_of(Answer)]
    assert len(names) == len(set(names)) == 8
    assert first < set(names)
