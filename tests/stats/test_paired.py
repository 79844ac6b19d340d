"""Two conditions over the same questions."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from karat import stats

FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]  # Cushny and Peebles (1905), in Student (1908)
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]  # eighths of an inch, in Fisher (1935)

scores = st.integers(1, 5)
pairs = st.lists(st.tuples(scores, scores), min_size=2, max_size=30)


def test_paired_difference_agrees_with_students_sleep_data():
    """R's help page of `sleep` prints t = 4.0621, df = 9, p = 0.002833, 1.58 (0.7001142, 2.4598858)."""
    found = stats.paired_difference(FIRST, SECOND)
    assert found.value == pytest.approx(1.58)
    assert (found.low, found.high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    assert (found.statistic, found.df, found.p) == pytest.approx((4.0621, 9, 0.002833), rel=2e-4)
    assert (found.better, found.worse, found.equal, found.n) == (9, 0, 1, 10)


@given(pairs)
def test_paired_difference_agrees_with_scipy(rows):
    a, b = zip(*rows, strict=True)
    found = stats.paired_difference(a, b)
    theirs = scipy.stats.ttest_rel(b, a) if len({y - x for x, y in rows}) > 1 else None
    if theirs is not None:
        assert (found.statistic, found.p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9, abs=1e-12)
        assert found.d_z == pytest.approx(found.statistic / math.sqrt(found.n))


@given(pairs)
def test_exchanging_the_conditions_turns_every_sign_and_no_p(rows):
    a, b = zip(*rows, strict=True)
    one, two = stats.paired_difference(a, b), stats.paired_difference(b, a)
    assert two.value == pytest.approx(-one.value)
    assert two.p == pytest.approx(one.p)
    assert (two.low, two.high) == pytest.approx((-one.high, -one.low))
    assert (two.better, two.worse) == (one.worse, one.better)


def test_repetitions_are_averaged_before_anything_is_compared():
    found = stats.paired_difference([1, 3, 5], [4, 4, 4], ["p", "p", "q"], clusters_b=["q", "p", "p"])
    assert (found.mean_a, found.mean_b, found.value, found.n) == (3.5, 4.0, 0.5, 2)


def test_only_questions_answered_under_both_count_and_the_others_are_told():
    found = stats.paired_difference(
        [3, None, 4, 5, None], [4, 2, None, 5, None], ["p", "q", "r", "s", "never"], clusters_b=None
    )
    assert (found.n, found.value) == (2, 0.5)
    assert (found.lost_a, found.lost_b, found.missing_a, found.missing_b) == (2, 2, 2, 2)
    assert found.warnings == ()


def test_unequal_losses_are_warned_of():
    one = stats.paired_difference([3, 4, 5], [4, 5], ["p", "q", "r"], clusters_b=["p", "q"])
    assert one.warnings == ("questions lost under a: 0, under b: 1; the compared parts may differ",)
    two = stats.paired_difference([3, 3, 5, 5], [4, None, 5, 5], ["p", "p", "q", "q"])
    assert two.warnings == ("answers missing under a: 0, under b: 1; the compared parts may differ",)


def test_nothing_but_equal_pairs_is_no_difference():
    found = stats.paired_difference([5, 4, 5], [5, 4, 5])
    assert (found.value, found.se, found.low, found.high, found.p) == (0, 0, 0, 0, 1.0)
    assert math.isnan(found.statistic)
    assert math.isnan(found.d_z)
    assert found.reason == "all 3 differences are 0"


def test_equal_differences_have_the_p_of_their_signs_never_0():
    found = stats.paired_difference([1, 2, 3, 4], [2, 3, 4, 5])
    assert (found.statistic, found.p) == (math.inf, 0.125)
    assert found.reason == "all 4 differences are equal: p by sign flips"
    assert stats.paired_difference(np.zeros(1_100), np.ones(1_100)).p == math.ulp(0.0)


def test_nothing_in_common_is_nan_with_a_reason():
    found = stats.paired_difference([1], [2], ["p"], clusters_b=["q"])
    assert math.isnan(found.value)
    assert math.isnan(found.p)
    assert (found.n, found.lost_a, found.lost_b) == (0, 1, 1)
    assert found.reason == "no question has a value under both"


def test_one_question_has_a_difference_and_no_test():
    found = stats.paired_difference([1, 2], [2, 3], ["q", "q"])
    assert (found.value, found.n) == (1.0, 1)
    assert math.isnan(found.p)


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"b: must be as long as a \(2\), got 1; or give clusters_b"):
        stats.paired_difference([1, 2], [1])
    with pytest.raises(ValueError, match="clusters: must be given where clusters_b is"):
        stats.paired_difference([1], [1], clusters_b=["q"])
