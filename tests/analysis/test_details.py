"""Trials one by one: which texts, scores and failures each of them has."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.analysis.journals import JUDGE, Script, sample

from karat.analysis import summarize
from karat.analysis.details import TrialRecord, reply_of, trials
from karat.journal import Codec, ReplyEvent, RunFolder
from karat.records import Reply

OTHER = msgspec.structs.replace(JUDGE, name="another", scoring="1a" * 16)


def records(run: RunFolder) -> dict[tuple[str, str, int], TrialRecord]:
    return {(one.sample.id, one.condition, one.repetition): one for one in trials(run, summarize(run))}


def test_trials_come_by_sample_then_condition_then_repetition(tmp_path: Path) -> None:
    listed = [
        msgspec.structs.replace(sample(at, name=name), position=at) for at, name in ((1, "x"), (0, "y"), (0, "a"))
    ]
    script = Script(tmp_path / "run", samples=listed, conditions=("q", "p"), repetitions=2)
    script.scored(0, "p", 1, value=3)
    run = script.stop()
    found = [(one.sample.id, one.condition, one.repetition) for one in trials(run, summarize(run))]
    assert found == [(name, condition, number) for name in ("a", "y", "x") for condition in "qp" for number in (0, 1)]


def test_a_trial_without_an_answer_has_its_last_failure(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", samples=4, conditions=("p",))
    script.failure(0, "p", message="first")
    script.failure(0, "p", message="last")
    script.answer(2, "p")
    script.failure(2, "p", cls="judge", stage="score", message="no judge")
    found = records(script.stop())
    lost, unscored, never = (found[str(row), "p", 0] for row in (0, 2, 3))
    assert lost.failure is not None
    assert (lost.failure.message, lost.answer, lost.replies, lost.scores) == ("last", None, (), ())
    assert unscored.failure is not None
    assert unscored.failure.message == "no judge"
    assert unscored.answer is not None
    assert unscored.replies == unscored.answer.replies
    assert (never.answer, never.failure, never.scores, never.heard) == (None, None, (), ())


def test_a_failure_before_the_answer_or_the_score_is_over(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", samples=2, conditions=("p",))
    script.failure(0, "p")
    script.answer(0, "p")
    script.answer(1, "p")
    script.failure(1, "p", cls="judge", stage="score")
    script.score(1, "p", value=4)
    found = records(script.stop())
    assert [found[str(row), "p", 0].failure for row in (0, 1)] == [None, None]
    assert [len(found[str(row), "p", 0].scores) for row in (0, 1)] == [0, 1]


def test_a_value_is_the_mean_over_repeats_of_a_judge_then_over_judges_and_of_its_own_scorer(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", samples=2, conditions=("p",), scorers=(JUDGE, OTHER))
    script.answer(0, "p")
    for judge, repeat, value in (("a", 0, 1), ("a", 1, 2), ("b", 0, 5)):
        script.score(0, "p", value=value, judge=judge, repeat=repeat, rows=3)
    script.score(0, "p", value=3, scorer=OTHER)
    script.answer(1, "p")
    run = script.stop()
    summary = summarize(run)
    first, second = trials(run, summary)
    assert [metric.scorer for metric in summary.metrics] == ["judge", "another"]
    assert [first.value(metric) for metric in summary.metrics] == [(1.5 + 5) / 2, 3.0]
    assert [second.value(metric) for metric in summary.metrics] == [None, None]
    assert [(one.scorer, one.judge, one.repeat) for one in first.scores] == [
        ("judge", "a", 0), ("judge", "a", 1), ("judge", "b", 0), ("another", None, 0)
    ]  # fmt: skip


def test_a_reply_is_read_from_its_line() -> None:
    event = ReplyEvent(trial="t", attempt=1, turn=0, reply=Reply(text="x", dollars=0.5))
    assert reply_of(Codec().line(event)) == event.reply
