"""The rule that stops a run, on scores that are made up: which look decides what."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from msgspec import UNSET, structs
from tests.analysis.test_verdicts import difference, info

from karat.analysis.model import StopLook, Stopping
from karat.analysis.numbers import Estimate
from karat.analysis.stopping import StoppingRule, adjusted_by, look_of
from karat.journal import Decided, Horizon
from karat.records import Metric

Direction = Literal["higher", "lower", "none"]
NOISE = np.tile([-0.1, 0.1], 500)


def horizon(questions: int = 60, *, names: str = "ab", **fields: Any) -> Horizon:
    return Horizon(
        questions=questions, order="", seed=0, repetitions=1, pairs=tuple((names[0], name) for name in names[1:]),
        metric="m", scorer="s", scoring="aa", alpha=0.05, **fields,
    )  # fmt: skip


def rule(direction: Direction = "higher", *, names: str = "ab", plan: Horizon | None = None) -> StoppingRule:
    return StoppingRule(plan or horizon(names=names), Metric(name="m", low=0, high=1, direction=direction), list(names))


def means(*levels: float, questions: int = 60) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Each condition's level at every question; all but the first vary around it, so that a spread can be seen."""
    return np.column_stack([levels[0] + 0 * NOISE, *(level + NOISE for level in levels[1:])])[:questions]


@pytest.mark.parametrize(
    ("questions", "sizes"),
    [
        (3, [3]),
        (20, [20]),
        (22, [20, 21, 22]),
        (100, [*range(20, 101)]),
        (101, [*range(20, 101, 2), 101]),
        (300, [*range(20, 300, 3), 300]),
    ],
)
def test_looks_begin_at_twenty_questions_and_there_are_at_most_a_hundred(questions, sizes):
    one = rule(plan=horizon(questions))
    equal = means(0.5, 0.5, questions=questions)
    due = []
    while one.next_look < math.inf:
        due.append(one.next_look)
        assert one.look(equal, int(one.next_look) - 1) == [], "a look waits until its questions ended"
        one.look(equal, int(one.next_look))
    assert due == sizes


@pytest.mark.parametrize(
    ("direction", "b", "verdict"),
    [
        ("higher", 0.9, "better"),
        ("higher", 0.1, "worse"),
        ("lower", 0.9, "worse"),
        ("lower", 0.1, "better"),
        ("none", 0.9, "higher"),
        ("none", 0.1, "lower"),
    ],
)
def test_a_large_difference_is_decided_by_the_sign_and_the_direction(direction, b, verdict):
    one = rule(direction)
    [decided] = one.look(means(0.5, b), 60)
    assert 20 <= decided.questions < 60
    assert decided == Decided(
        a="a", b="b", verdict=verdict, questions=decided.questions, n=decided.questions,
        value=pytest.approx(b - 0.5, abs=0.01),
        p=one.least["a", "b"], out=("a", "b"),
    )  # fmt: skip
    assert one.out == {"a", "b"}
    assert one.look(means(0.5, b), 60) == [], "a decision is final"


@pytest.mark.parametrize("direction", ["higher", "lower", "none"])
def test_equal_means_decide_nothing_unless_a_margin_or_futility_is_declared(direction):
    level = means(0.5, 0.5)
    assert rule(direction).look(level, 60) == []
    [equivalent] = rule(direction, plan=horizon(margin=0.2)).look(level, 60)
    assert equivalent.verdict == "equivalent"
    [futile] = rule(direction, plan=horizon(futility=True)).look(level, 60)
    assert futile.verdict == "futile"
    assert futile.questions < 60


@pytest.mark.parametrize(
    ("direction", "b", "lost", "decides"),
    [
        ("higher", 0.75, "", True),
        ("higher", 0.75, "b", False),  # the leader's losses could turn it
        ("higher", 0.75, "a", True),
        ("higher", 0.25, "a", False),
        ("higher", 0.25, "b", True),
        ("lower", 0.75, "a", False),
        ("lower", 0.75, "b", True),
        ("lower", 0.25, "b", False),
        ("none", 0.75, "b", False),
        ("none", 0.75, "a", True),
    ],
)
def test_a_lead_that_the_losses_of_the_leader_could_turn_is_not_decided(direction, b, lost, decides):
    found = means(0.5, b)
    worst = found.copy()
    half = np.arange(60) // 2 % 2 == 0
    for name in lost:
        found[half, "ab".index(name)] = np.nan
        worst[half, "ab".index(name)] = 1.0 if direction == "lower" else 0.0
    assert bool(rule(direction).look(found, 60, worst=worst)) == decides


@pytest.mark.parametrize("lost", [0, 1])
def test_equivalence_must_hold_with_the_losses_of_either_side_at_their_worst(lost):
    found = means(0.5, 0.5)
    worst = found.copy()
    worst[::3, lost] = 0.0
    found[::3, lost] = np.nan
    plan = horizon(margin=0.2)
    assert [one.verdict for one in rule(plan=plan).look(found, 60)] == ["equivalent"]
    assert rule(plan=plan).look(found, 60, worst=worst) == []


def test_a_condition_is_out_once_all_its_comparisons_are_decided():
    one = rule(names="abc")
    [first] = one.look(means(0.5, 0.9, 0.5), 60)
    assert ((first.a, first.b), first.verdict, first.out) == (("a", "b"), "better", ("b",))
    assert one.out == {"b"}
    assert one.adjusted() == {("a", "b"): pytest.approx(2 * one.least["a", "b"]), ("a", "c"): one.least["a", "c"]}


def test_a_resumed_rule_keeps_what_was_decided():
    [decided] = rule().look(means(0.5, 0.9), 60)
    again = rule()
    again.restore({("a", "b"): decided, ("x", "y"): decided})
    assert (again.decided, again.least, again.out) == ({("a", "b"): decided}, {("a", "b"): decided.p}, {"a", "b"})
    assert again.look(means(0.5, 0.1), 60) == []


@pytest.mark.parametrize(("low", "high"), [(None, 1), (0, None), (1, 1), (2, 1)])
def test_a_metric_without_a_range_is_refused(low, high):
    with pytest.raises(ValueError, match="metric: must have a range, 'm' has none"):
        StoppingRule(horizon(), Metric(name="m", low=low, high=high), ["a", "b"])


def look(verdict: Any = None, *, a: str = "a", b: str = "b", questions: int = 30) -> StopLook:
    estimate = Estimate(value=0.5, low=0.2, high=0.9, se=None, n=25, level=0.95, method="repeated t", reason="why")
    return StopLook(a=a, b=b, verdict=verdict, questions=questions, n=25, estimate=estimate, p=0.01, p_adjusted=0.02)


def stopping(*looks: StopLook) -> Stopping:
    return Stopping(
        metric="quality", scorer="judge", scoring="aa", alpha=0.05, margin=0.25, futility=False, horizon=60,
        comparisons=looks, out=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "questions", "words", "winner"),
    [
        ("better", 30, "b is better", "b"),
        ("worse", 30, "a is better", "a"),
        ("higher", 30, "b is higher", None),
        ("lower", 30, "a is higher", None),
        ("equivalent", 30, "equivalent within ±0.25", None),
        ("futile", 30, "given up, not decided", None),
        (None, 59, "not decided yet", None),
        (None, 60, "not decided", None),
    ],
)
def test_a_comparison_that_was_looked_at_has_the_numbers_and_the_verdict_of_its_look(verdict, questions, words, winner):
    seen = look(verdict, questions=questions)
    plain = difference(0.7)
    expected = structs.replace(
        plain, estimate=seen.estimate, p=0.01, p_adjusted=0.02, n_pairs=25, winner=winner, verdict=words, reason="why"
    )  # fmt: skip
    assert adjusted_by(seen, plain, stopping(seen)) == expected
    assert adjusted_by(None, plain, stopping(seen)) == plain
    assert adjusted_by(seen, plain, None) == plain
    turned = structs.replace(plain, a="b", b="a")
    back = structs.replace(seen.estimate, value=-0.5, low=-0.9, high=-0.2)
    assert adjusted_by(seen, turned, stopping(seen)) == structs.replace(expected, a="b", b="a", estimate=back)


def test_an_end_that_is_not_known_stays_so_where_a_look_is_turned_round():
    seen = look("better")
    seen = structs.replace(seen, estimate=structs.replace(seen.estimate, high=None))
    turned = adjusted_by(seen, difference(a="b", b="a"), stopping(seen))
    assert (turned.estimate.value, turned.estimate.low, turned.estimate.high) == (-0.5, None, -0.2)


def test_a_lead_among_the_answers_given_is_kept_until_a_look_decides():
    lead = difference(verdict="b is ahead only among the answers it gave")
    assert adjusted_by(look(), lead, stopping()).verdict == lead.verdict
    assert adjusted_by(look("futile"), lead, stopping()).verdict == "given up, not decided"


def test_a_look_is_found_by_its_metric_and_its_conditions_in_either_order():
    seen = look()
    run = stopping(look(b="c"), seen)
    assert look_of(run, info(), "a", "b") is look_of(run, info(), "b", "a") is seen
    assert look_of(run, info(), "b", "c") is None
    assert look_of(run, info("other"), "a", "b") is None
    assert look_of(run, structs.replace(info(), scoring="bb"), "a", "b") is None
    assert look_of(UNSET, info(), "a", "b") is look_of(None, info(), "a", "b") is None
