"""Two groups with questions of their own."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from karat import stats

# Student's sleep data, taken as two groups: Cushny and Peebles (1905).
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

side = st.lists(st.integers(-50, 50), min_size=2, max_size=25)


def test_welchs_t_agrees_with_the_help_page_of_r():
    """R prints t = -1.8608, df = 17.776, p-value = 0.07939 and [-3.3654832, 0.2054832] for t.test(extra ~ group)."""
    found = stats.mean_difference(SECOND, FIRST)
    assert (found.statistic, found.df, found.p) == pytest.approx((-1.8608, 17.776, 0.07939), rel=1e-4)
    assert (found.low, found.high) == pytest.approx((-3.3654832, 0.2054832), abs=5e-8)
    assert (found.n_a, found.n_b, found.n) == (10, 10, 20)


@given(a=side, b=side, equal=st.booleans())
def test_both_tests_agree_with_scipy(a, b, equal):
    found = stats.mean_difference(a, b, equal_variances=equal)
    if len(set(a)) == 1 or len(set(b)) == 1:
        return  # of which scipy warns
    theirs = scipy.stats.ttest_ind(b, a, equal_var=equal)
    interval = theirs.confidence_interval()
    assert (found.statistic, found.df) == pytest.approx((theirs.statistic, theirs.df), rel=1e-9, abs=1e-12)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-7)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-7, abs=1e-9)


@given(a=side, b=side, shift=st.integers(-9, 9))
def test_a_difference_turns_with_its_groups_and_moves_with_one(a, b, shift):
    one, two = stats.mean_difference(a, b), stats.mean_difference(b, [value + shift for value in a])
    assert two.value == pytest.approx(shift - one.value, abs=1e-9)
    assert two.se == pytest.approx(one.se, rel=1e-9)
    if one.cohens_d == one.cohens_d:
        assert abs(one.hedges_g) <= abs(one.cohens_d)


@pytest.mark.parametrize(("df", "printed"), [(2, 0.5642), (5, 0.8408), (10, 0.9228), (50, 0.9849)])
def test_the_correction_of_d_agrees_with_hedges(df, printed):
    """Hedges (1981), table 1."""
    a = [0.0] * ((df + 2) // 2) + [1.0] * ((df + 2) - (df + 2) // 2)
    found = stats.mean_difference(a[: df + 1], [3.0], equal_variances=True)
    assert found.hedges_g / found.cohens_d == pytest.approx(printed, abs=1e-4)


def test_repetitions_are_not_more_questions():
    once = stats.mean_difference(FIRST, SECOND)
    thrice = stats.mean_difference(
        np.repeat(FIRST, 3), np.repeat(SECOND, 3), np.repeat(range(10), 3), np.repeat(range(10), 3)
    )
    assert (thrice.p, thrice.df, thrice.n) == pytest.approx((once.p, once.df, once.n))


def test_missing_values_are_counted_and_an_uneven_loss_is_told():
    found = stats.mean_difference([1, 2, None, 4], [3, 4, 5])
    assert (found.n_a, found.missing_a, found.missing_b) == (3, 1, 0)
    assert found.warnings == ("answers missing: 1 of 4 under a and 0 of 3 under b; the compared parts may differ",)
    assert not stats.mean_difference([1, 2, None, 4], [3, 4, 5, math.nan]).warnings


@pytest.mark.parametrize(
    ("a", "b", "p", "reason"),
    [
        ([], [1, 2], math.nan, "a group has no value"),
        ([1], [1, 2], math.nan, "too few questions for an interval"),
        ([3, 3, 3], [3, 3, 3], 1.0, "all question means are equal"),
        ([3, 3, 3], [4, 4, 4], 0.1, "no spread within either group: p by permutation"),
        ([3, 3], [4, 4, 4], 0.1, "no spread within either group: p by permutation"),  # C(5, 2); no mirror image
        ([0] * 2, [1] * 2_000, 1 / 2_003_001, "no spread within either group: p by permutation"),
        ([0] * 20_000, [1] * 20_000, math.ulp(0.0), "no spread within either group: p by permutation"),
    ],
)
def test_what_cannot_be_known_is_nan_with_a_reason(a, b, p, reason):
    found = stats.mean_difference(a, b)
    assert found.p == pytest.approx(p, nan_ok=True)
    assert found.reason == reason


def test_students_t_can_do_with_one_question_in_a_group():
    assert stats.mean_difference([1], [1, 2], equal_variances=True).df == 1


@pytest.mark.parametrize("clusters", [([1, 1, 2], None), (None, [1, 1, 2])])
def test_clusters_of_one_group_only_are_refused(clusters):
    told = "clusters_b: must be given where clusters_a is, and the other way round"
    with pytest.raises(ValueError, match=told):
        stats.mean_difference([1, 2, 3], [2, 3, 4], *clusters)
    with pytest.raises(ValueError, match=told):
        stats.tost([1, 2, 3], [2, 3, 4], clusters[0], clusters_b=clusters[1], bounds=1, design="independent")
