"""Tests of equivalence."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from karat import stats

differences = st.lists(st.integers(-5, 5), min_size=3, max_size=20)


def test_tost_agrees_with_lakens_2017():
    """Page 358: M 4.55 and 4.87, SD 1.05 and 1.11, n 15 and 16, bounds d = ±0.5: t(29) = 0.57, p = .285 (Student)."""
    pooled = math.sqrt((14 * 1.05**2 + 15 * 1.11**2) / 29)
    se = pooled * math.sqrt(1 / 15 + 1 / 16)
    found = stats.tost_of_estimate(4.55 - 4.87, se, 29, bounds=0.5 * pooled)
    assert found.t_low == pytest.approx(0.57, abs=0.01)
    assert found.p == pytest.approx(0.285, abs=0.003)


@given(d=differences, low=st.floats(-3, -0.1), high=st.floats(0.1, 3))
def test_the_two_tests_agree_with_scipys_one_sided_ones(d, low, high):
    found = stats.tost([0] * len(d), d, bounds=(low, high))
    if len(set(d)) == 1:
        return  # of which scipy warns
    below = scipy.stats.ttest_1samp(d, low, alternative="greater")
    above = scipy.stats.ttest_1samp(d, high, alternative="less")
    assert (found.t_low, found.t_high) == pytest.approx((below.statistic, above.statistic), rel=1e-9, abs=1e-9)
    assert found.p == pytest.approx(max(below.pvalue, above.pvalue), rel=1e-7)
    alone = stats.tost(d, bounds=(low, high))
    assert (alone.p, alone.value, alone.low) == pytest.approx((found.p, found.value, found.low))


@given(d=differences, other=differences, bound=st.floats(0.1, 5), pooled=st.booleans())
def test_independent_groups_agree_with_scipy(d, other, bound, pooled):
    found = stats.tost(d, other, bounds=bound, design="pooled" if pooled else "independent")
    if len(set(d)) == 1 or len(set(other)) == 1:
        return  # of which scipy warns
    shifted = [value + bound for value in other]
    theirs = scipy.stats.ttest_ind(shifted, d, equal_var=pooled, alternative="greater")
    assert found.t_low == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-9)
    assert found.p_low == pytest.approx(theirs.pvalue, rel=1e-7)


@given(d=differences, bound=st.floats(0.1, 5), alpha=st.sampled_from([0.01, 0.05, 0.1]))
def test_equivalence_is_shown_where_the_interval_lies_between_the_bounds(d, bound, alpha):
    found = stats.tost(d, bounds=bound, alpha=alpha)
    assert found.level == pytest.approx(1 - 2 * alpha)
    assume(abs(found.p - alpha) > 1e-6)
    if found.se > 0:
        assert found.equivalent == (-bound < found.low and found.high < bound)
        wider = stats.tost(d, bounds=2 * bound, alpha=alpha)
        assert wider.p <= found.p


@given(d=differences, bound=st.floats(0.1, 5))
def test_the_two_sides_change_places_when_the_conditions_do(d, bound):
    one, two = stats.tost([0] * len(d), d, bounds=bound), stats.tost(d, [0] * len(d), bounds=bound)
    assert (one.p_low, one.p_high) == pytest.approx((two.p_high, two.p_low))


def test_questions_are_the_unit():
    once = stats.tost([1, 2, 3, 4], [1, 3, 3, 4], bounds=1)
    twice = stats.tost([1, 1, 2, 2, 3, 3, 4, 4], [1, 1, 3, 3, 3, 3, 4, 4], [1, 1, 2, 2, 3, 3, 4, 4], bounds=1)
    assert (once.n, once.p) == pytest.approx((twice.n, twice.p))
    lost = stats.tost([1, 2, 3, None], [1, 3, 3, 4], bounds=1)
    assert lost.n == 3
    assert lost.warnings


def test_answers_that_never_differ_show_equivalence_by_sign_flips():
    found = stats.tost([1, 2, 3, 4, 5, 5], [1, 2, 3, 4, 5, 5], bounds=0.5)
    assert (found.p, found.equivalent, found.low, found.high) == (2.0**-6, True, 0.0, 0.0)
    assert found.reason == "all values are equal: p by sign flips"
    beyond = stats.tost([1, 2, 3], [2, 3, 4], bounds=1)
    assert (beyond.p, beyond.equivalent, beyond.t_low, math.isnan(beyond.t_high)) == (1.0, False, math.inf, True)
    apart = stats.tost([1, 1, 1], [1, 1, 1], bounds=1, design="independent")
    assert (apart.p, apart.reason) == (pytest.approx(1 / 20), "all values are equal: p by permutation")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: stats.tost([1], bounds=1), "only one cluster, so no interval"),
        (lambda: stats.tost([1, None], bounds=1), "1 of 2 values are missing"),
        (lambda: stats.tost([None, 1], [1, None], bounds=1), "no question has a value under both"),
        (lambda: stats.tost([1], [2, 3], bounds=1, design="independent"), "too few questions"),
        (lambda: stats.tost_of_estimate(1, 0, 5, bounds=1), "the error is 0"),
        (lambda: stats.tost_of_estimate(1, 1, math.nan, bounds=1), "the degrees of freedom are not known"),
    ],
)
def test_what_cannot_be_known_is_nan_with_a_reason(call, reason):
    found = call()
    assert math.isnan(found.p)
    assert found.equivalent is None
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.tost([1, 2], bounds=0), "bounds: must be finite, the lower below the upper, got 0 and 0"),
        (lambda: stats.tost([1, 2], bounds=(1, -1)), "bounds: must be finite"),
        (lambda: stats.tost([1, 2], bounds=[1, 2, 3]), "bounds: must be one number, or a lower and an upper"),
        (lambda: stats.tost([1, 2], bounds=math.inf), "bounds: must be finite"),
        (lambda: stats.tost([1, 2], bounds=1, alpha=0.5), "alpha: must lie between 0 and 0.5, got 0.5"),
        (lambda: stats.tost([1, 2], bounds=1, design="welch"), "design: must be paired, independent or pooled"),
        (lambda: stats.tost_of_estimate(0, -1, bounds=1), "se: must be at least 0, got -1"),
    ],
)
def test_a_wrong_argument_is_named_with_its_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("bounds", [(-0.8, 0.8), [-0.8, 0.8], np.array([-0.8, 0.8]), np.float64(0.8), np.array(0.8)])
def test_bounds_may_be_any_number_or_two(bounds):
    a, b = [3, 4, 2, 5, 4, 4], [3, 4, 3, 5, 4, 4]
    assert stats.tost(a, b, bounds=bounds) == stats.tost(a, b, bounds=0.8)


def test_groups_of_any_size_without_spread_have_a_p():
    found = stats.tost([0.0] * 20_000, [1.0] * 20_000, bounds=2, design="independent")
    assert (found.p, found.reason) == (math.ulp(0.0), "all values are equal: p by permutation")
    assert stats.tost([0.0] * 2, [1.0] * 3, bounds=2, design="independent").p == pytest.approx(0.1)
