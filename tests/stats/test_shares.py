"""Intervals of shares."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from karat import stats

METHODS = ("wilson", "clopper-pearson")
counts = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        pytest.param(81, 263, 0.2553, 0.3662, id="Newcombe 1998, table I, method 3"),
        pytest.param(15, 148, 0.0624, 0.1605, id="Newcombe 1998, table I, second example"),
        pytest.param(0, 20, 0.0, 0.1611, id="Newcombe 1998, none of n"),
        pytest.param(1, 29, 0.0061, 0.1718, id="Newcombe 1998, one of n"),
    ],
)
def test_wilson_agrees_with_the_printed_table(successes, n, low, high):
    found = stats.proportion_interval(successes, n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("successes", "n", "method", "low", "high"),
    [
        pytest.param(81, 263, "clopper-pearson", 0.2527, 0.3676, id="table I, method 5"),
    ],
)
def test_the_other_intervals_agree_with_newcombes_table(successes, n, method, low, high):
    found = stats.proportion_interval(successes, n, method=method)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@given(counts=counts, level=st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_and_clopper_pearson_agree_with_scipy(counts, level):
    k, n = counts
    for method, name in (("wilson", "wilson"), ("clopper-pearson", "exact")):
        theirs = scipy.stats.binomtest(k, n).proportion_ci(level, method=name)
        found = stats.proportion_interval(k, n, method=method, level=level)
        assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-7, abs=1e-9)


@given(counts=counts, method=st.sampled_from(METHODS))
def test_an_interval_holds_its_share_stays_in_bounds_and_is_never_a_point(counts, method):
    k, n = counts
    found = stats.proportion_interval(k, n, method=method)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high > found.low
    mirrored = stats.proportion_interval(n - k, n, method=method)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high), abs=1e-9)


def test_both_reach_the_ends():
    for method in METHODS:
        assert stats.proportion_interval(0, 9, method=method).low == 0.0
        assert stats.proportion_interval(9, 9, method=method).high == 1.0


@pytest.mark.parametrize(
    ("k", "n", "message"),
    [
        (3, 2, "k, n: must be whole numbers, 0 ≤ k ≤ n, got 3 and 2"),
        (-1, 2, "got -1 and 2"),
        (1.5, 2, "got 1.5 and 2"),
        (1, math.nan, "got 1 and nan"),
    ],
)
def test_impossible_counts_are_named(k, n, message):
    with pytest.raises(ValueError, match=message):
        stats.proportion_interval(k, n)


def test_an_unknown_method_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"must be one of wilson, clopper-pearson, got 'exact'"):
        stats.proportion_interval(1, 2, method="exact")


@pytest.mark.parametrize("repetitions", [2, 3, 5, 6, 7])
def test_questions_that_differ_by_rounding_alone_count_once_each(repetitions):
    answers = [[place == (row % repetitions) for place in range(repetitions)] for row in range(12)]
    found = stats.share_interval(np.ravel(answers), np.repeat(range(12), repetitions))
    wanted = stats.ratio_interval(stats.Sums.of([1] * 12, [repetitions] * 12), share=True).interval
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-12)


def test_no_trials_is_nan_with_a_reason():
    found = stats.proportion_interval(0, 0)
    assert math.isnan(found.value)
    assert found.reason == "no trials"


def test_perfect_repetitions_keep_the_width_that_their_questions_allow():
    """Thirty right answers to ten questions are ten independent ones: Wilson at 10 of 10."""
    found = stats.share_interval([1] * 30, [q for q in range(10) for _ in range(3)])
    assert (found.low, found.high) == (stats.proportion_interval(10, 10).low, 1.0)
    assert (found.n, found.observations) == (10, 30)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=1, max_size=60))
def test_a_clustered_share_lies_inside_its_interval_and_is_the_mean_of_question_means(rows):
    right, questions = zip(*rows, strict=True)
    found = stats.share_interval(right, questions)
    assert found.value == pytest.approx(stats.mean_interval(right, questions).value)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high > found.low


def test_a_share_of_something_else_is_refused_and_a_missing_one_is_nan():
    with pytest.raises(ValueError, match=r"values: must be 0 or 1, got 0\.5"):
        stats.share_interval([0, 0.5], [1, 2])
    found = stats.share_interval([1, None], [1, 2])
    assert math.isnan(found.value)
    assert found.reason == "1 of 2 values are missing"
    assert stats.share_interval([1, 0], ["q", "q"]).reason == "only one question: repeated answers count once"
