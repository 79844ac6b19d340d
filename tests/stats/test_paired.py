"""Two conditions over the same questions."""

import itertools
import math
import time

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
    assert two.cliffs_delta == pytest.approx(-one.cliffs_delta)
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


@given(st.lists(scores, min_size=1, max_size=20), st.lists(scores, min_size=1, max_size=20))
def test_cliffs_delta_is_the_count_over_all_pairs(a, b):
    slow = sum((y > x) - (y < x) for x in a for y in b) / (len(a) * len(b))
    assert stats.cliffs_delta(a, b) == pytest.approx(slow)


def test_cliffs_delta_reaches_its_ends_and_knows_when_it_cannot_know():
    assert (stats.cliffs_delta([1, 2], [3, 4]), stats.cliffs_delta([3, 4], [1, 2])) == (1.0, -1.0)
    assert math.isnan(stats.cliffs_delta([], [1]))
    assert math.isnan(stats.cliffs_delta([1, None], [1]))


def test_sign_flips_agree_with_fishers_count_for_darwins_plants():
    """Fisher (1935), section 21: 863 of 32,768 arrangements on each side reach 314."""
    found = stats.sign_flip_test(DARWIN)
    assert found.statistic == 314
    assert found.p == 2 * 863 / 2**15


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=10))
def test_exact_sign_flips_agree_with_full_enumeration(d):
    sums = [
        abs(sum(s * x for s, x in zip(signs, d, strict=True))) for signs in itertools.product((1, -1), repeat=len(d))
    ]
    found = stats.sign_flip_test(d)
    assert found.p == pytest.approx(sum(total >= abs(sum(d)) for total in sums) / len(sums))
    assert 2.0 ** -len(d) <= found.p <= 1
    assert stats.sign_flip_test([-x for x in d]).p == found.p


def test_drawn_sign_flips_are_seeded_near_the_exact_value_and_never_0():
    rng = np.random.default_rng(1)
    d = rng.normal(0.4, 1.0, 30)
    one, two = (stats.sign_flip_test(d, rng=np.random.default_rng(7)).p for _ in range(2))
    assert one == two
    assert one == pytest.approx(scipy.stats.ttest_1samp(d, 0).pvalue, abs=0.01)
    assert stats.sign_flip_test(np.full(40, 3.0), rng=rng).p == 1 / 20_001


def test_random_flips_need_a_generator_and_few_differences_are_told():
    with pytest.raises(ValueError, match="rng: is required for more than 20 differences"):
        stats.sign_flip_test(range(1, 23))
    assert "cannot reach p = 0.05" in (stats.sign_flip_test([1, 1, 1, 1, 1]).reason or "")
    assert stats.sign_flip_test([0.0] * 40).p == 1.0
    assert math.isnan(stats.sign_flip_test([]).p)
    assert math.isnan(stats.sign_flip_test([1, None]).p)


def test_twenty_thousand_draws_of_500_differences_take_less_than_a_second():
    d = np.random.default_rng(1).normal(size=500)
    start = time.process_time()
    stats.sign_flip_test(d, rng=np.random.default_rng(2))
    assert time.process_time() - start < 1.0  # 0.1 s on an idle core; the bound leaves room for a busy one


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_agrees_with_scipys_binomial_test(b, c):
    found = stats.mcnemar_exact(b, c)
    wanted = scipy.stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert found.p == pytest.approx(wanted, rel=1e-9)
    assert 0 < found.p_mid <= found.p <= 1
    assert stats.mcnemar_exact(c, b).p == found.p


def test_mcnemar_agrees_with_the_printed_example():
    """Agresti (1990), approval ratings: 150 and 86 discordant; z² is 17.36 without correction."""
    found = stats.mcnemar_exact(150, 86)
    assert found.statistic == pytest.approx(17.36 * (63 / 64) ** 2, abs=0.01)  # with it
    assert found.p == pytest.approx(3.7e-05, abs=5e-07)


@given(st.lists(st.integers(-9, 9).filter(bool), min_size=1, max_size=12))
def test_exact_wilcoxon_agrees_with_full_enumeration_ties_included(d):
    ranks = scipy.stats.rankdata(np.abs(d))
    positive = float(ranks[np.array(d) > 0].sum())
    every = np.array([np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(d))])
    lower, upper = np.mean(every <= positive + 1e-9), np.mean(every >= positive - 1e-9)
    found = stats.wilcoxon(d)
    assert found.statistic == positive
    assert found.p == pytest.approx(min(1.0, 2 * min(lower, upper)))


def test_wilcoxon_agrees_with_scipy_for_many_differences_and_with_the_printed_table():
    d = np.random.default_rng(3).normal(0.2, 1, 80).round(1)
    d = d[d != 0]
    theirs = scipy.stats.wilcoxon(d, correction=True, method="asymptotic").pvalue
    assert stats.wilcoxon(d).p == pytest.approx(theirs, rel=1e-9)
    # Wilcoxon (1945), table II: with 8 pairs a smaller rank total of 4 has p near 0.05 (exactly 14 of 256).
    assert stats.wilcoxon([-4, 1, 2, 3, 5, 6, 7, 8]).p == 14 / 256


def test_wilcoxon_knows_when_there_is_nothing_to_rank():
    assert stats.wilcoxon([0, 0]).p == 1.0
    assert math.isnan(stats.wilcoxon([]).p)
    assert math.isnan(stats.wilcoxon([1, None]).p)
