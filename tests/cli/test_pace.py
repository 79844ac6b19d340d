"""Rate, time left and what a run will have cost."""

from __future__ import annotations

from typing import Any

import pytest

from karat.cli.progress import Pace, ProgressReader, projected
from karat.cli.running_means import RunningMeans
from karat.execution import RunStatus
from karat.journal import Attempt
from karat.records import Answer, Reply, Sample, Score, Turn, Usage


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def told(*counts: tuple[float, int], in_flight: int = 4) -> float | None:
    """The rate after these notes of a clock and a count."""
    pace = Pace()
    for at, settled in counts:
        pace.note(at, settled)
    return pace.per_second(*counts[-1], in_flight=in_flight)


def test_of_few_trials_nothing_is_said():
    assert told((0.0, 0), (10.0, 2)) is None
    assert told((0.0, 0), (10.0, 3)) == 0.3


def test_after_a_while_the_rate_is_that_of_late():
    slow = [(float(at), at // 10) for at in range(600)]
    fast = [(600.0 + at, 60 + 2 * at) for at in range(120)]
    assert told(*slow) == pytest.approx(0.1, rel=0.2)
    assert told(*slow, *fast) == pytest.approx(2.0, rel=0.05)


def test_a_pause_makes_the_rate_smaller_with_every_second():
    fast = [(float(at), 2 * at) for at in range(61)]
    rates = [told(*fast, (60.0 + pause, 120)) or 0.0 for pause in (0.0, 30.0, 300.0)]
    assert rates[0] == pytest.approx(2.0)
    assert sorted(rates, reverse=True) == rates
    assert rates[-1] < 0.2


def test_a_crowd_that_ends_at_once_is_no_rate_of_its_own():
    """Fifty at a time, a minute each: whoever looks just after a crowd must not see fifty a second."""
    for until in (301, 330, 359):
        crowds = [(float(at), 50 * (at // 60)) for at in range(until)]
        assert told(*crowds, in_flight=50) == pytest.approx(50 / 60, rel=0.3)


def test_a_long_run_keeps_few_notes():
    pace = Pace()
    for at in range(100_000):
        pace.note(float(at), at)
    assert pace.per_second(100_000.0, 100_000, in_flight=10) == pytest.approx(1.0, rel=0.05)
    assert len(pace._marks) <= 1000


@pytest.mark.parametrize(
    ("spent", "over", "left", "whole"),
    [(2.0, 10, 30, 8.0), (2.0, 2, 30, None), (2.0, 0, 0, 2.0), (0.0, 10, 30, 0.0), (2.0, 10, -1, 2.0)],
)
def test_what_is_left_costs_what_was_there_did(spent, over, left, whole):
    assert projected(spent, over=over, left=left) == whole


QUESTION = Sample(id="q", position=0, digest="", turns=(Turn(question="?"),))


def answer(trial: str, dollars: float | None = 0.1, usage: Usage | None = None) -> Answer:
    reply = Reply(text="x", dollars=dollars, usage=usage)
    return Answer(trial=trial, sample="q", condition="a", repetition=0, replies=(reply,), started="", seconds=1.0)


def judged(trial: str, dollars: float | None = 0.01) -> Score:
    return Score(trial=trial, scorer="s", scoring="d", values={"m": 1.0}, dollars=dollars)


def watched(planned: int, before: int = 0, most: int = 4) -> tuple[RunStatus, ProgressReader, Clock]:
    watch, running = RunStatus(), RunningMeans()
    clock = Clock(watch.started)
    watch.expects({"a": planned}, {"a": before})
    watch.begins(most)
    watch.began = clock.now
    return watch, ProgressReader(watch, running, clock=clock), clock


def test_agent_and_judge_are_projected_apart():
    """Ten answers are paid for, four of them are judged, two are being judged: 40 more of each, or so, are to come."""
    watch, reader, _ = watched(50)
    for number in range(10):
        watch.journalled(answer(f"t{number}"))
    for number in range(4):
        watch.journalled(judged(f"t{number}"))
        watch.settled_trial(f"t{number}", "a", QUESTION, failed=False)
    watch.scoring = 2
    now = reader.read()
    assert now.dollars == pytest.approx(1.04)
    assert now.dollars_in_all == pytest.approx(50 * 0.1 + 0.04 / 5 * 50)


def test_what_failed_attempts_cost_is_part_of_what_the_rest_will_cost():
    watch, reader, _ = watched(8)
    for number in range(4):
        usage = Usage(input_tokens=10, output_tokens=1)
        failed = {"cls": "infrastructure", "kind": "timeout", "message": "", "retriable": True, "dollars": 0.1}
        watch.journalled(Attempt(trial=f"t{number}", n=1, usage=usage, **failed))
        watch.journalled(answer(f"t{number}", usage=Usage(input_tokens=10, output_tokens=1)))
        watch.settled_trial(f"t{number}", "a", QUESTION, failed=False)
    now = reader.read()
    assert (now.retries, now.dollars, now.tokens) == (4, pytest.approx(0.8), 88)
    assert (now.dollars_in_all, now.tokens_in_all) == (pytest.approx(1.6), pytest.approx(176.0))
    assert now.last_failure is not None
    assert now.last_failure.kind == "timeout"


def test_earlier_parts_are_paid_for_and_not_projected():
    watch, reader, clock = watched(20, before=10)
    watch.past.dollars = 5.0
    for number in range(5):
        clock.now += 2.0
        reader.read()
        watch.journalled(answer(f"t{number}"))
        watch.settled_trial(f"t{number}", "a", QUESTION, failed=False)
    now = reader.read()
    assert (now.done, now.dollars, now.dollars_in_all) == (15, 5.5, pytest.approx(6.0))
    assert now.seconds_left == pytest.approx(10.0)


@pytest.mark.parametrize("dollars", [None, 0.1])
def test_a_price_that_nobody_told_is_not_projected_from(dollars):
    watch, reader, _ = watched(10)
    for number in range(4):
        watch.journalled(answer(f"t{number}", dollars))
        watch.settled_trial(f"t{number}", "a", QUESTION, failed=False)
    watch.journalled(answer("last", None))
    now = reader.read()
    assert now.dollars_unknown
    assert (now.dollars_in_all is None) == (dollars is None)


def test_a_run_that_is_finishing_promises_nothing():
    watch, reader, clock = watched(100)
    for number in range(9):
        watch.journalled(answer(f"t{number}"))
        watch.settled_trial(f"t{number}", "a", QUESTION, failed=False)
    clock.now += 9.0
    assert reader.read().seconds_left == pytest.approx(91.0)
    watch.draining = "interrupted"
    now = reader.read()
    assert (now.finishing, now.seconds_left, now.dollars_in_all) == ("interrupted", None, None)


def test_failed_trials_are_counted_once_each():
    watch, reader, _ = watched(4)
    values: list[tuple[Any, ...]] = []
    watch.settled_trial("t", "a", QUESTION, answered=False, failed=True)
    watch.failed += 1  # the run's own count, which decides when it gives up
    now = reader.read()
    values.append((now.done, now.failed, now.ended, now.conditions["a"].done, now.conditions["a"].failed))
    assert values == [(0, 1, 1, 0, 1)]
