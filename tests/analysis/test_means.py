"""Means, spreads, bounds and reliability: against numbers worked out by hand, and a slow twin."""

from __future__ import annotations

import math
import statistics

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.analysis import summarize
from karat.records import Metric

# Two questions, three repetitions. Question means 4 and 2; variances 1 and 0.
BY_HAND = {"only": [[3, 4, 5], [2, 2, 2]]}


def test_by_hand(tmp_path, journals):
    result = summarize(journals.table(tmp_path / "run", BY_HAND)).results[0]
    assert result.mean.value == 3
    assert result.mean.n == 2
    assert result.mean.se == pytest.approx(1)  # sd(4, 2)/√2
    # t with one degree of freedom: 3 ± 12.7062 · 1, and no mean of this scale is below 1 or above 5.
    assert (result.mean.low, result.mean.high) == (1, 5)
    assert result.mean.method == "t, cut at the end of the scale"
    assert result.within_sd.value == pytest.approx(math.sqrt(0.5))
    assert result.between_sd.value == pytest.approx(math.sqrt(2))
    assert result.top_share.value == pytest.approx(1 / 6)
    assert result.distribution == {"1": 0, "2": 3, "3": 1, "4": 1, "5": 1}
    assert (result.n_questions, result.n_answers, result.n_missing) == (2, 6, 0)
    assert result.worst.value == result.best.value == 3
    # Threshold 4 of 5: no question reached it in all three repetitions.
    assert (result.reliability.value, result.reliability.k, result.reliability.questions) == (0, 3, 2)
    assert result.judge_sd.value is None
    assert result.judge_sd.reason


def test_an_interval_within_the_scale_or_without_one_is_not_cut(tmp_path, journals):
    free = Metric(name="free")
    mean = summarize(journals.table(tmp_path / "run", BY_HAND, metric=free)).results[0].mean
    assert (mean.low, mean.high) == pytest.approx((3 - 12.7062, 3 + 12.7062), abs=1e-4)
    assert mean.method == "t"


def test_each_question_counts_once_however_often_it_was_answered(tmp_path, journals):
    result = summarize(journals.table(tmp_path / "run", {"only": [[5, 5, 5], [1, None, None]]})).results[0]
    assert result.mean.value == 3
    assert (result.n_questions, result.n_answers, result.n_missing) == (2, 4, 2)


def test_bounds_fill_every_missing_score_with_the_ends_of_the_scale(tmp_path, journals):
    scores = {"only": [[5, 5], [1, None], [None, None]]}
    result = summarize(journals.table(tmp_path / "run", scores)).results[0]
    assert result.mean.value == 3  # of 5 and 1
    assert result.worst.value == pytest.approx((5 + 1 + 1) / 3)
    assert result.best.value == pytest.approx((5 + 3 + 5) / 3)


def test_bounds_turn_round_where_lower_is_better(tmp_path, journals):
    errors = Metric(name="errors", low=0, high=10, direction="lower", kind="ordinal")
    result = summarize(journals.table(tmp_path / "run", {"only": [[2], [None]]}, metric=errors)).results[0]
    assert (result.best.value, result.worst.value) == (1, 6)


def test_an_unbounded_metric_has_no_bounds_and_says_why(tmp_path, journals):
    result = summarize(journals.table(tmp_path / "run", {"only": [[2.5], [None]]}, metric=Metric(name="x"))).results[0]
    assert result.worst.value is None
    assert result.worst.reason == "the metric is not bounded on this side"
    assert result.distribution is None
    assert result.reliability.reason == "the metric has no threshold"


def test_an_unbounded_metric_without_gaps_needs_no_bounds(tmp_path, journals):
    result = summarize(journals.table(tmp_path / "run", {"only": [[2.5], [3.5]]}, metric=Metric(name="x"))).results[0]
    assert result.worst.value == result.best.value == 3


def test_one_repetition_has_no_spread(tmp_path, journals):
    summary = summarize(journals.table(tmp_path / "run", {"only": [[3], [4]]}))
    assert summary.results[0].within_sd == msgspec.structs.replace(
        summary.results[0].within_sd, value=None, reason="no question was answered twice"
    )
    assert summary.table_of_samples.columns[0].sd == [None, None]


def test_reliability_leaves_out_questions_with_a_missing_repetition(tmp_path, journals):
    scores = {"only": [[4, 5], [4, 3], [5, None], [5, 5]]}
    found = summarize(journals.table(tmp_path / "run", scores)).results[0].reliability
    assert found.value == pytest.approx(2 / 3)
    assert (found.questions, found.incomplete, found.threshold) == (3, 1, 4)


def test_true_and_false_are_a_share_with_an_interval_inside_it(tmp_path, journals):
    scores = {"only": [[True], [True], [True], [True]]}
    summary = summarize(journals.table(tmp_path / "run", scores, metric=Metric(name="correct")))
    result = summary.results[0]
    assert summary.metrics[0].kind == "share"
    assert result.mean.value == result.mean.high == 1
    assert 0 < result.mean.low < 1
    assert result.distribution == {"0": 0, "1": 4}


@pytest.mark.parametrize(
    ("low", "high", "values", "distribution"),
    [
        (1, 5, [3, 3], {"1": 0, "2": 0, "3": 2, "4": 0, "5": 0}),
        (1, 5, [2.5, 1.4], {"1": 1, "2": 0, "3": 1, "4": 0, "5": 0}),  # means of judges, at the nearest step
        (-1, 1, [-1, 1], {"-1": 1, "0": 0, "1": 1}),
        (0, 100, [7, 7], {str(step): 2 * (step == 7) for step in range(101)}),
        (0, 101, [9, 7], {"7": 1, "9": 1}),  # too many steps to show those without answers
        (None, 5, [4, 2], {"2": 1, "4": 1}),
        (1, None, [4, 2], {"2": 1, "4": 1}),
    ],
)
def test_every_step_of_a_short_scale_is_counted_though_no_answer_got_it(
    tmp_path, journals, low, high, values, distribution
):
    metric = Metric(name="rank", low=low, high=high, kind="ordinal")
    run = journals.table(tmp_path / "run", {"only": [[value] for value in values]}, metric=metric)
    assert summarize(run).results[0].distribution == distribution


def test_retries_can_be_seen_in_the_result(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3, conditions=("only",))
    for row, (attempts, value) in enumerate([(1, 5), (2, 3), (3, 2)]):
        script.answer(row, "only", attempts=attempts)
        script.score(row, "only", value=value)
    result = summarize(script.end()).results[0]
    assert (result.first_attempt.mean, result.first_attempt.answers) == (5, 1)
    assert (result.retried.mean, result.retried.answers) == (2.5, 2)


scores = st.one_of(st.none(), st.integers(1, 5))


@given(st.integers(1, 4).flatmap(lambda k: st.lists(st.lists(scores, min_size=k, max_size=k), min_size=1, max_size=6)))
def test_a_slow_twin_agrees(tmp_path_factory, journals, table):
    summary = summarize(journals.table(tmp_path_factory.mktemp("run"), {"only": table}))
    result = summary.results[0]
    kept = [[value for value in row if value is not None] for row in table]
    means = [statistics.fmean(row) for row in kept if row]
    assert result.mean.value == (pytest.approx(statistics.fmean(means)) if means else None)
    assert result.between_sd.value == (pytest.approx(statistics.stdev(means)) if len(means) > 1 else None)
    variances = [statistics.variance(row) for row in kept if len(row) > 1]
    spread = pytest.approx(math.sqrt(statistics.fmean(variances)), abs=1e-12) if variances else None
    assert result.within_sd.value == spread
    filled = [statistics.fmean(1 if value is None else value for value in row) for row in table]
    assert result.worst.value == pytest.approx(statistics.fmean(filled))
    assert result.n_missing == sum(row.count(None) for row in table)
    column = summary.table_of_samples.columns[0]
    assert column.n == [len(row) for row in kept]
    assert column.mean == [pytest.approx(statistics.fmean(row)) if row else None for row in kept]


@pytest.mark.parametrize(
    ("rows", "method"),
    [
        ([[True], [False], [True], [True]], "wilson at effective n"),
        ([[True, False], [False, False], [True, True], [True, None]], "wilson at effective n"),
        ([[0.5], [0.25], [1.0], [0.75]], "t, cut at the end of the scale"),
        ([[0.5, 0.5], [0.0, 1.0], [1.0, 1.0], [1.0, None]], "t, cut at the end of the scale"),
    ],
    ids=["yes or no", "yes or no, repeated", "parts", "parts, repeated"],
)
def test_a_share_of_yes_and_no_has_an_interval_within_the_scale(tmp_path, journals, rows, method):
    """Wilson's, however often a question was answered; a mean of partial credit has Student's t."""
    right = Metric(name="right", low=0, high=1, kind="share")
    (result,) = summarize(journals.table(tmp_path / "run", {"only": rows}, metric=right)).results
    assert result.mean.method == method
