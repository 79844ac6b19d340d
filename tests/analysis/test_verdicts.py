"""Verdicts and the headline, from comparisons that are made up: one table a function."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat.analysis.model import (
    Account,
    Attempts,
    Cost,
    Difference,
    FailureKind,
    Latency,
    Ledger,
    MetricInfo,
    Money,
    Repeat,
    ServerProblem,
    Tokens,
)
from karat.analysis.numbers import Estimate
from karat.analysis.verdicts import (
    NO_DIFFERENCE,
    NO_VERDICT,
    NOT_MEASURED,
    NOT_TESTED,
    UNLIKE,
    attempts_sentence,
    headline,
    main_finding,
    nothing_scored,
    probable_flips,
    server_warnings,
    unmeasured,
    verdict,
    winner,
)

NOTHING = Money(known=0.0, unknown=0)


def info(
    key: str = "quality", *, direction: Any = "higher", low: float | None = 1, high: float | None = 5
) -> MetricInfo:
    kind: Any = "share" if (low, high) == (0, 1) else "ordinal"
    return MetricInfo(
        key=key, name=key, scorer="judge", scoring="aa", low=low, high=high, direction=direction, kind=kind,
        offline=False,
    )  # fmt: skip


def difference(value: float | None = 0.5, **fields: Any) -> Difference:
    """By `value` b is ahead of a, over 60 questions, and no difference is shown."""
    low, high = (None, None) if value is None else (value - 0.25, value + 0.25)
    estimate = Estimate(value=value, low=low, high=high, se=None, n=60, level=0.95, method="made up")
    plain: dict[str, Any] = {
        "metric": "quality", "a": "a", "b": "b", "estimate": estimate, "p": 0.2, "p_adjusted": 0.2, "effect": None,
        "n_pairs": 60, "lost_a": 0, "lost_b": 0, "lost_both": 0, "winner": None, "verdict": NO_DIFFERENCE,
    }  # fmt: skip
    return Difference(**{**plain, **fields})


def won(value: float = 0.5, *, by: str = "b", p: float = 0.01, **fields: Any) -> Difference:
    return difference(value, winner=by, verdict=f"{by} is better", p=p, p_adjusted=p, **fields)


def account(*, attempts: Attempts | None = None, **counts: int) -> Account:
    none = dict.fromkeys(("scored", "agent", "infrastructure", "judge", "limit", "not_run"), 0)
    return Account(
        ledger=Ledger(planned=sum(counts.values()), **{**none, **counts}),
        cost=Cost(agent=NOTHING, judge=NOTHING),
        tokens=Tokens(input=None, output=None, cache_read=None, cache_write=None, reasoning=None, unknown=0),
        latency=Latency(median=None, p95=None, n=0),
        attempts=attempts or Attempts(answered=0, failed=0, unfinished=0, of_trials_not_run=0, lost=NOTHING),
        failed_attempts=0,
        retried=0,
        cut=0,
    )


@pytest.mark.parametrize(
    ("direction", "value", "p", "better", "words"),
    [
        ("higher", 0.5, 0.049, "b", "b is better"),
        ("higher", -0.5, 0.049, "a", "a is better"),
        ("lower", 0.5, 0.049, "a", "a is better"),
        ("lower", -0.5, 0.049, "b", "b is better"),
        ("none", 0.5, 0.049, None, "b is higher"),
        ("none", -0.5, 0.049, None, "a is higher"),
        ("none", 0.0, 0.049, None, NO_DIFFERENCE),
        ("higher", 0.0, 0.049, None, NO_DIFFERENCE),
        ("higher", 0.5, 0.05, None, NO_DIFFERENCE),
        ("none", 0.5, 0.05, None, NO_DIFFERENCE),
        ("higher", 0.5, None, None, NO_DIFFERENCE),
        ("none", 0.5, None, None, NO_DIFFERENCE),
        ("higher", None, 0.001, None, UNLIKE),
    ],
)
def test_a_verdict_needs_a_difference_below_five_percent_and_a_direction(direction, value, p, better, words):
    metric = info(direction=direction)
    assert winner(metric, "a", "b", value, p) == better
    assert verdict(metric, "a", "b", value, p) == words


AHEAD = {"verdict": "b is ahead only among the answers it gave", "loss_a": 0.0, "loss_b": 0.21}
LOST = "b is ahead of a on quality only among the answers it gave: 21 % of its trials have no score, 0 % of a's"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([won()], "b beats a on quality by 0.50 [0.25, 0.75] over 60 questions, p = 0.010"),
        ([won(-0.5, by="a")], "a beats b on quality by 0.50 [0.25, 0.75] over 60 questions, p = 0.010"),
        ([won(-0.5, p=0.0001)], "b beats a on quality by 0.50 [0.25, 0.75] over 60 questions, p < 0.001"),
        ([won(clusters=6)], "b beats a on quality by 0.50 [0.25, 0.75] over 60 questions in 6 clusters, p = 0.010"),
        ([won(clusters=1)], "b beats a on quality by 0.50 [0.25, 0.75] over 60 questions in 1 cluster, p = 0.010"),
        (
            [won(metric="share", offline=True)],
            "b beats a on share by 50.0 points [25.0, 75.0] over 60 questions, p = 0.010 (offline scores)",
        ),
        (
            [difference(verdict="b is higher", p_adjusted=0.01)],
            "b is higher than a on quality by 0.50 [0.25, 0.75] over 60 questions, p = 0.010",
        ),
        (
            [difference(-0.5, verdict="a is higher", p_adjusted=0.01)],
            "a is higher than b on quality by 0.50 [0.25, 0.75] over 60 questions, p = 0.010",
        ),
        (  # a metric with a direction comes first
            [difference(verdict="b is higher", metric="words"), won(), won(metric="share")],
            "b beats a on quality by 0.50 [0.25, 0.75] over 60 questions, p = 0.010; also on share",
        ),
        (  # the largest of the first metric that has one, and the other pairs
            [difference(3.0), won(0.5), won(-1.5, by="a", b="c"), won(2.5, metric="share", b="d", by="d")],
            ("a beats c on quality by 1.50 [1.25, 1.75] over 60 questions, p = 0.010; b beats a on quality; "
            "d beats a on share"),
        ),
        (
            [won(), *(won(metric=f"m{at}") for at in range(3))],
            "b beats a on quality by 0.50 [0.25, 0.75] over 60 questions, p = 0.010; also on m0, m1, m2",
        ),
        (
            [won(), *(won(metric=f"m{at}") for at in range(4))],
            ("b beats a on quality by 0.50 [0.25, 0.75] over 60 questions, p = 0.010; also on m0, m1, m2 and 1 further "
            "metric"),
        ),
        (
            [won(2.0), *(won(b=f"b{at}", by=f"b{at}") for at in range(4))],
            ("b beats a on quality by 2.00 [1.75, 2.25] over 60 questions, p = 0.010; b0 beats a on quality; "
            "b1 beats a on quality; b2 beats a on quality; 1 further pair"),
        ),
        ([difference(**AHEAD)], LOST),
        ([difference(offline=True, **AHEAD)], f"{LOST} (offline scores)"),
        (
            [difference(**AHEAD), won(b="c", by="c")],
            f"c beats a on quality by 0.50 [0.25, 0.75] over 60 questions, p = 0.010; {LOST}",
        ),
        (
            [difference(-0.5, verdict="a is ahead only among the answers it gave", loss_a=0.5, loss_b=0.1)],
            "a is ahead of b on quality only among the answers it gave: 50 % of its trials have no score, 10 % of b's",
        ),
    ],
)  # fmt: skip
def test_the_finding_is_the_largest_difference_shown_and_names_the_others(rows, sentence):
    assert main_finding(rows, [info(), info("share", low=0, high=1)], unit="question") == sentence


NONE_OF_TWO = "No difference shown in any of 2 comparisons; b against a on quality: +0.50 [+0.25, +0.75]"
NONE_SHOWN = "No difference shown between a and b on quality: +0.50 [+0.25, +0.75] over 60 questions"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([difference()], f"{NONE_SHOWN}, p = 0.200"),
        ([difference(p_adjusted=None)], f"{NONE_SHOWN}, not testable"),
        ([difference(offline=True)], f"{NONE_SHOWN}, p = 0.200, offline scores"),
        ([difference(verdict=NOT_TESTED, metric="other"), difference()], f"{NONE_SHOWN}, p = 0.200"),
        ([difference(verdict=NOT_TESTED)], f"{NONE_SHOWN}, p = 0.200"),
        ([difference(verdict=NOT_MEASURED, b="c"), difference()], f"{NONE_SHOWN}, p = 0.200"),
        (
            [difference(verdict=NOT_MEASURED)],
            "b against a on quality: +0.50 [+0.25, +0.75] over 60 questions, p = 0.200",
        ),
        (
            [difference(), difference(metric="share")],
            f"{NONE_OF_TWO} over 60 questions",
        ),
        (
            [difference(verdict="equivalent within ±0.8")],
            "a and b are equivalent within ±0.8 on quality: +0.50 [+0.25, +0.75] over 60 questions",
        ),
        (
            [difference(verdict=NO_VERDICT, clusters=3, reason="too few")],
            "No verdict on b against a on quality: +0.50 [+0.25, +0.75] over 60 questions in 3 clusters, too few",
        ),
        (
            [difference(None, n_pairs=0, reason="never said")],
            "a and b cannot be compared on quality: no question has a score under both",
        ),
        (
            [difference(None, reason="the questions differ")],
            "a and b cannot be compared on quality: the questions differ",
        ),
        ([difference(None, n_pairs=0), difference()], f"{NONE_OF_TWO} over 60 questions"),
        (  # 2 comparisons, 6 questions: at best p = 2 / 32; the largest relative to its scale
            [difference(1.0, n_pairs=6), difference(0.5, metric="share", n_pairs=6)],
            ("6 questions cannot show a difference among 2 comparisons (by sign flips at best p = 0.062); the largest: "
            "b against a on share, +50.0 points [+25.0, +75.0]"),
        ),
        (  # what limits is the number of clusters
            [difference(1.0, clusters=6), difference(0.01, metric="share", clusters=6)],
            ("6 clusters cannot show a difference among 2 comparisons (by sign flips at best p = 0.062); the largest: "
            "b against a on quality, +1.00 [+0.75, +1.25]"),
        ),
        (
            [difference(n_pairs=7), difference(metric="share", n_pairs=6)],
            f"{NONE_OF_TWO} over 7 questions",
        ),
    ],
)  # fmt: skip
def test_without_a_difference_the_finding_says_what_was_measured_and_why_nothing_is_shown(rows, sentence):
    assert main_finding(rows, [info(), info("share", low=0, high=1)], unit="question") == sentence


def test_without_a_metric_the_headline_counts_answers():
    total = account(scored=3, agent=1)
    assert headline([], [], [], total) == "3 of 4 trials answered, none scored: the experiment names no scorer"
    assert headline([], [], [], total, unscored="too soon") == "3 of 4 trials answered, none scored: too soon"


@pytest.mark.parametrize(
    ("attempts", "sentence"),
    [
        (Attempts(answered=9, failed=0, unfinished=0, of_trials_not_run=0, lost=Money(known=0.0, unknown=0)), ""),
        (
            Attempts(answered=9, failed=1, unfinished=0, of_trials_not_run=0, lost=Money(known=1.2, unknown=0)),
            "Attempts: 10 = 9 answered + 1 failed. Those without an answer cost $1.20, which the cost above includes.",
        ),
        (
            Attempts(answered=0, failed=0, unfinished=2, of_trials_not_run=1, lost=Money(known=0.0, unknown=2)),
            (
                "Attempts: 2 = 0 answered + 2 unfinished. Those without an answer may have cost money: no price is "
                "known; 1 of them are of trials that were not run."
            ),
        ),
        (
            Attempts(answered=1, failed=1, unfinished=0, of_trials_not_run=0, lost=Money(known=1.2, unknown=1)),
            "Attempts: 2 = 1 answered + 1 failed. Those without an answer cost ≥ $1.20, which the cost above includes.",
        ),
    ],
)
def test_attempts_without_an_answer_are_counted_and_priced_as_far_as_known(attempts, sentence):
    assert attempts_sentence(account(attempts=attempts)) == sentence


def failure(stage: str, trials: int, example: str) -> FailureKind:
    return FailureKind(cls="agent", stage=stage, kind="x", trials=trials, attempts=5, example=example)


ASK = failure("ask", 3, "no such model")


@pytest.mark.parametrize(
    ("scored", "kinds", "status", "sentence"),
    [
        (0, [failure("score", 1, "x"), ASK], "complete", "No result: 3 of 4 trials failed: no such model"),
        (0, [failure("score", 4, "no key")], "complete", "No result: 4 of 4 trials could not be scored: no key"),
        (1, [ASK], "complete", ""),
        (0, [ASK], "running", ""),
        (0, [failure("ask", 0, "in time")], "complete", ""),
        (0, [], "complete", ""),
    ],
)
def test_the_most_frequent_failure_is_the_reason_for_no_result(scored, kinds, status, sentence):
    assert nothing_scored(account(scored=scored, agent=4 - scored), kinds, status) == sentence


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (difference(), NOT_MEASURED),
        (difference(a="b", b="a"), NOT_MEASURED),
        (difference(verdict=NO_VERDICT), NOT_MEASURED),
        (difference(a="x", b="y"), NO_DIFFERENCE),
        (won(), "b is better"),
        (difference(verdict="b is higher"), "b is higher"),
        (difference(**AHEAD), AHEAD["verdict"]),
        (difference(verdict=NOT_TESTED), NOT_TESTED),
        (difference(verdict=UNLIKE), UNLIKE),
    ],
)
def test_no_difference_is_not_claimed_of_servers_that_were_not_used(pair, words):
    assert unmeasured(pair, {"b"}) == structs.replace(pair, verdict=words)


@pytest.mark.parametrize(
    ("answers", "calls", "reported", "words"),
    [
        (9, 4, True, "2 of 4 MCP calls failed, so its scores do not show what its MCP servers do"),
        (0, 4, True, "2 of 4 MCP calls failed, and it has no answers"),
        (0, 0, True, "no answer, see Failures"),
        (0, 0, False, "no answer, see Failures"),
        (
            9, 0, True,
            "no MCP call in 9 answers, so its scores show the effect of offering its MCP servers, not of using them",
        ),
        (
            1, 0, False,
            "no MCP call was reported in 1 answer, so whether its MCP servers were used is not known",
        ),
    ],
)  # fmt: skip
def test_a_warning_says_what_is_known_of_servers_that_were_not_used(answers, calls, reported, words):
    problem = ServerProblem(condition="docs", answers=answers, calls=calls, errors=calls // 2, reported=reported)
    assert server_warnings([problem]) == [f"docs: {words}"]


def test_the_verdicts_that_a_repeat_would_change_are_the_sum_of_their_chances():
    rows = [difference(again=Repeat(shown=True, new_questions=new, same_questions=None)) for new in (0.75, None, 1.0)]
    assert probable_flips([*rows, difference()]) == (0.25, 2)
    assert probable_flips([rows[1], difference()]) is None
