"""Intervals of shares."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from karat import stats

METHODS = ("wilson", "wilsoncc", "jeffreys", "clopper-pearson", "agresti-coull")
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
        pytest.param(81, 263, "wilsoncc", 0.2535, 0.3682, id="table I, method 4"),
        pytest.param(15, 148, "wilsoncc", 0.0598, 0.1644, id="table I, method 4, second example"),
        pytest.param(0, 20, "wilsoncc", 0.0, 0.2005, id="none of n, method 4"),
        pytest.param(1, 29, "wilsoncc", 0.0018, 0.1963, id="one of n, method 4"),
        pytest.param(81, 263, "wald", 0.2522, 0.3638, id="table I, method 1"),
        pytest.param(15, 148, "wald", 0.0527, 0.1500, id="table I, method 1, second example"),
        pytest.param(1, 29, "wald", 0.0, 0.1009, id="one of n, method 1, cut at 0"),
        pytest.param(81, 263, "clopper-pearson", 0.2527, 0.3676, id="table I, method 5"),
    ],
)
def test_the_other_intervals_agree_with_newcombes_table(successes, n, method, low, high):
    found = stats.proportion_interval(successes, n, method=method)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@given(counts=counts, level=st.sampled_from([0.8, 0.95, 0.99]))
def test_the_corrected_and_the_bayesian_intervals_agree_with_scipy(counts, level):
    k, n = counts
    theirs = scipy.stats.binomtest(k, n).proportion_ci(level, method="wilsoncc")
    found = stats.proportion_interval(k, n, method="wilsoncc", level=level)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-7, abs=1e-9)
    tails = [0.5 - level / 2, 0.5 + level / 2]
    flat = stats.proportion_interval(k, n, method="beta_posterior_uniform", level=level)
    assert (flat.low, flat.high) == pytest.approx(tuple(scipy.stats.beta(k + 1, n - k + 1).ppf(tails)), rel=1e-7)


@given(counts=counts)
def test_wald_is_a_point_where_the_others_keep_their_width(counts):
    k, n = counts
    found = stats.proportion_interval(k, n, method="wald")
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert (found.low == found.high) == (k in (0, n))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.sampled_from([*METHODS, "wald"]))
def test_counts_of_questions_are_the_same_as_their_answers(right, method):
    answers = [int(place < won) for won in right for place in range(3)]
    questions = [question for question in range(len(right)) for _ in range(3)]
    found = stats.proportion_interval(right, [3] * len(right), method=method)
    other = stats.share_interval(answers, questions, method=method)
    numbers = [[one.value, one.se, one.low, one.high, one.df, one.n, one.observations] for one in (found, other)]
    assert numbers[0] == pytest.approx(numbers[1], nan_ok=True, abs=1e-9)
    assert found.method == f"{method} at effective n"


def test_a_question_without_an_answer_is_left_out_and_counted():
    found = stats.proportion_interval([2, 0, 1], [3, 0, 3])
    assert (found.n, found.observations) == (2, 6)
    assert found.reason == "1 of 3 questions have no answer"
    assert math.isnan(stats.proportion_interval([0], [0]).value)
    with pytest.raises(ValueError, match=r"k: must be as long as n \(2\), got 1"):
        stats.proportion_interval([1], [1, 2])


@given(counts=st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), p0=st.floats(0.01, 0.99))
def test_the_binomial_test_agrees_with_scipy(counts, p0):
    found = stats.binomial_test(*counts, p0)
    assert found.p == pytest.approx(scipy.stats.binomtest(*counts, p0).pvalue, rel=1e-7, abs=1e-300)
    assert found.value == counts[0] / counts[1]


def test_the_binomial_test_agrees_with_conover():
    """Conover (1971), page 97; the output of R's help page of binom.test is p-value = 0.3825."""
    assert stats.binomial_test(682, 925, 0.75).p == pytest.approx(0.3825, abs=5e-5)
    assert stats.binomial_test(0, 0).reason == "no trials"
    with pytest.raises(ValueError, match="p0: must lie between 0 and 1, got 1"):
        stats.binomial_test(1, 2, 1)


@given(counts=counts)
def test_the_sign_test_is_the_binomial_test_of_one_half(counts):
    k, n = counts
    assert stats.binomial_test(k, n).p == pytest.approx(stats.mcnemar_exact(k, n - k).p, rel=1e-6)


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


def test_jeffreys_and_exact_reach_the_ends():
    for method in ("jeffreys", "clopper-pearson", "wilson", "wilsoncc"):
        assert stats.proportion_interval(0, 9, method=method).low == 0.0
        assert stats.proportion_interval(9, 9, method=method).high == 1.0


@pytest.mark.parametrize(
    ("k", "n", "message"),
    [
        (3, 2, r"k: must be at most n \(2\), got 3"),
        (-1, 2, "k: must be a whole number of at least 0, got -1"),
        (1.5, 2, "k: must be a whole number"),
        (1, math.nan, "n: must be a whole number"),
    ],
)
def test_impossible_counts_are_named(k, n, message):
    with pytest.raises(ValueError, match=message):
        stats.proportion_interval(k, n)


def test_an_unknown_method_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"must be one of wilson, wilsoncc, jeffreys, .*, wald, got 'exact'"):
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


def test_one_count_may_be_an_array_without_dimensions():
    # As texts: from Python 3.13 on, values with a NaN are not equal to themselves.
    assert repr(stats.proportion_interval(np.array(5), np.array(10))) == repr(stats.proportion_interval(5, 10))
    assert repr(stats.newcombe(np.array(9), 10, np.array(3), np.array(10))) == repr(stats.newcombe(9, 10, 3, 10))


def test_what_is_left_out_does_not_hide_another_note():
    found = stats.proportion_interval([2, 0], [3, 0])
    assert found.reason == "1 of 2 questions have no answer; only one question: repeated answers count once"
