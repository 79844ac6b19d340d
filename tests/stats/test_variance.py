"""Spread within and between questions."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from karat import stats

# Shrout and Fleiss (1979), table 2: six subjects, four judges.
RATINGS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]

answers = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=40)


def flat(rows):
    return [y for row in rows for y in row], [place for place, row in enumerate(rows) for _ in row]


def test_icc_agrees_with_shrout_and_fleiss():
    """Table 4 prints ICC(1,1) = .17."""
    assert stats.icc(*flat(RATINGS)).value == pytest.approx(0.17, abs=0.005)


def test_the_anova_table_agrees_with_shrout_and_fleiss():
    """Table 3 prints the mean squares 11.24 between targets and 6.26 within."""
    found = stats.variance_components(*flat(RATINGS))
    assert (found.ms_between, found.ms_within) == pytest.approx((11.24, 6.26), abs=0.005)
    assert found.method == "anova"


@given(answers)
def test_pooled_sd_is_the_root_of_the_mean_variance_of_repeated_questions(rows):
    ys, qs = zip(*rows, strict=True)
    by_question = {q: [y for y, at in rows if at == q] for q in qs}
    variances = [np.var(group, ddof=1) for group in by_question.values() if len(group) > 1]
    found = stats.pooled_sd(ys, qs)
    if variances:
        assert found.value == pytest.approx(math.sqrt(np.mean(variances)), abs=1e-12)
        assert found.n == len(variances)
        assert math.isnan(found.low) or found.low <= found.value <= found.high
    else:
        assert math.isnan(found.value)
        assert found.reason == "no question was answered twice"


@given(answers)
def test_between_sd_is_the_sd_of_question_means(rows):
    ys, qs = zip(*rows, strict=True)
    means = [np.mean([y for y, at in rows if at == q]) for q in dict.fromkeys(qs)]
    found = stats.between_sd(ys, qs)
    if len(means) > 1:
        assert found.value == pytest.approx(np.std(means, ddof=1), abs=1e-12)
        assert found.low <= found.value <= found.high
    else:
        assert found.reason == "needs two questions"


def test_the_chi_squared_interval_of_an_sd_agrees_with_scipy():
    found = stats.between_sd([1.0, 2.0, 4.0, 7.0, 11.0], range(5))
    low, high = (math.sqrt(4 * found.value**2 / scipy.stats.chi2.ppf(tail, 4)) for tail in (0.975, 0.025))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)


def test_an_agent_that_never_wavers_has_exactly_no_spread_within():
    found = stats.pooled_sd([0.1] * 3 + [0.7] * 3, [1] * 3 + [2] * 3)
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)


@given(st.lists(st.lists(st.integers(1, 5), min_size=2, max_size=5), min_size=2, max_size=8))
def test_the_parts_agree_with_scipys_anova_and_their_shares_sum_to_1(rows):
    ys, qs = flat(rows)
    found = stats.variance_components(ys, qs, method="anova")
    if found.ms_within > 0:
        theirs = scipy.stats.f_oneway(*rows)
        assert found.statistic == pytest.approx(theirs.statistic, rel=1e-7, abs=1e-9)
        if not math.isnan(theirs.pvalue):  # theirs is where rounding leaves F below 0
            assert found.p == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
        inside = found.icc.low - 1e-12 <= found.icc.value <= found.icc.high + 1e-12
        even = len({len(row) for row in rows}) == 1
        assert inside or (not even and "does not hold the estimate" in found.icc.reason)
    if not math.isnan(found.share_within):
        assert found.share_between + found.share_within == pytest.approx(1.0)
    assert math.isnan(found.between.low) or 0 <= found.between.low <= found.between.high


def test_reml_agrees_with_a_direct_optimum_of_the_likelihood():
    ys, qs = flat([[3, 4], [1, 2, 2], [5, 5, 4, 5], [2, 3], [4, 4, 5]])
    found = stats.variance_components(ys, qs, method="reml")

    def deviance(logs):
        between, within = np.exp(logs)
        same = np.equal.outer(qs, qs)
        cover = within * np.eye(len(ys)) + between * same
        inverse, ones = np.linalg.inv(cover), np.ones(len(ys))
        information = ones @ inverse @ ones
        rest = np.array(ys) - (ones @ inverse @ ys) / information
        return np.linalg.slogdet(cover)[1] + math.log(information) + rest @ inverse @ rest

    best = np.exp(scipy.optimize.minimize(deviance, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9}).x)
    assert (found.between.value, found.within.value) == pytest.approx(tuple(best), rel=1e-4)
    assert found.method == "reml"
    assert stats.variance_components(ys, qs).method == "reml"  # unbalanced: chosen by itself


def test_a_negative_estimate_is_shown_and_its_share_is_0():
    found = stats.variance_components([1, 5, 5, 1, 1, 5], [1, 1, 2, 2, 3, 3])
    assert found.between.value < 0
    assert found.icc.value < 0
    assert (found.share_between, found.share_within) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("ys", "qs", "reason"),
    [
        ([1, 2], [1, 1], "needs two questions"),
        ([1, 2], [1, 2], "no question was answered twice"),
        ([1, None, 3], [1, 1, 2], "1 of 3 values are missing"),
    ],
)
def test_what_cannot_be_told_apart_is_nan_with_a_reason(ys, qs, reason):
    found = stats.variance_components(ys, qs)
    assert found.reason == reason
    assert math.isnan(found.between.value)
    assert math.isnan(found.share_within)


def test_no_variance_at_all_has_no_icc():
    found = stats.variance_components([3, 3, 3, 3], [1, 1, 2, 2])
    assert (found.between.value, found.within.value) == (0.0, 0.0)
    assert math.isnan(found.icc.value)
    assert found.reason == "all values are equal"


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match="method: must be auto, anova or reml, got 'ml'"):
        stats.variance_components([1, 2], [1, 2], method="ml")


UNEVEN = [30] + [1] * 8 + [2] * 6


def drawn(counts, rng, between, within):
    questions = np.repeat(np.arange(len(counts)), counts)
    return rng.normal(size=len(counts))[questions] * between + rng.normal(size=questions.size) * within, questions


def test_unequal_counts_take_the_intervals_of_unweighted_means():
    """Thomas and Hultquist (1978): F of question means at the harmonic mean of the counts, by hand."""
    ys, qs = drawn(UNEVEN, np.random.default_rng(92), 1.0, 0.5)
    found = stats.variance_components(ys, qs)
    assert found.between.low < found.between.value < found.between.high
    assert found.icc.low < found.icc.value < found.icc.high
    means = [ys[qs == question].mean() for question in range(15)]
    harmonic = 15 / sum(1 / count for count in UNEVEN)
    ratio = harmonic * np.var(means, ddof=1) / found.ms_within
    low, high = (ratio / bound for bound in scipy.stats.f.ppf([0.975, 0.025], 14, 35))
    wanted = tuple((end - 1) / (end + harmonic - 1) for end in (low, high))
    assert (found.icc.low, found.icc.high) == pytest.approx(wanted)


@pytest.mark.slow
@pytest.mark.parametrize(("counts", "between"), [(UNEVEN, 1.0), (UNEVEN, 0.2), ([3] * 20 + [1] * 20, 0.5)])
def test_the_intervals_of_unequal_counts_hold_the_truth_in_about_their_level(counts, between):
    rng, held = np.random.default_rng(7), np.zeros(2)
    for _ in range(400):
        found = stats.variance_components(*drawn(counts, rng, between, 0.5))
        truths = (found.between, between**2), (found.icc, between**2 / (between**2 + 0.25))
        held += [part.low <= truth <= part.high for part, truth in truths]
    assert (held >= 0.92 * 400).all()


@pytest.mark.slow
def test_an_estimate_outside_its_interval_is_told():
    rng = np.random.default_rng(3)
    parts = [stats.variance_components(*drawn(UNEVEN, rng, 0.2, 0.5)).between for _ in range(400)]
    outside = [part for part in parts if not part.low <= part.value <= part.high]
    assert 0 < len(outside) < 20
    assert all(part.reason for part in outside)


@pytest.mark.parametrize(
    ("ys", "part", "reason"),
    [
        ([1, 1, 2, 2], "within", "answers to one question never differ: the interval is a point"),
        ([1, 1, 2, 2], "icc", "answers to one question never differ: the interval is a point"),
        ([1, 1, 1, 1], "between", "all values are equal"),
        ([1, 1, 1, 1], "within", "all values are equal"),
        ([1, 2, 1, 2], "between", "all question means are equal: the interval is a point"),
        ([1, 3, 2, 4], "within", None),
    ],
)
def test_a_point_has_a_reason(ys, part, reason):
    assert getattr(stats.variance_components(ys, [1, 1, 2, 2]), part).reason == reason


def test_a_judge_that_never_wavers_is_told():
    found = stats.variance_components([1, 1, 2, 2, 1, 1, 3, 3], [*"aaaabbbb"], answer=[1, 1, 2, 2] * 2)
    assert (found.judge.high, found.between.reason) == (0.0, None)
    assert "the same" in found.judge.reason


def test_the_interval_of_a_pooled_sd_is_that_of_the_mean_variance_under_the_root():
    """Variances 2, 8 and 2 of three questions: Student's t over them, and its standard error by the delta method."""
    found = stats.pooled_sd([1, 3, 1, 5, 4, 2], [1, 1, 2, 2, 3, 3])
    within = stats.mean_interval([2.0, 8.0, 2.0])
    assert found.value == pytest.approx(2.0)
    assert found.se == pytest.approx(within.se / 4)
    assert (found.low, found.high) == pytest.approx((0.0, math.sqrt(within.high)))


def test_a_pooled_sd_of_one_question_has_no_interval():
    found = stats.pooled_sd([1, 3, 5], [1, 1, 2])
    assert found.value == pytest.approx(math.sqrt(2))
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.reason
