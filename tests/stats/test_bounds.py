"""One-sided bounds of means, shares, differences and costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.stats import mean_interval, one_sided_bounds


@given(n=st.integers(1, 80), share=st.floats(0, 1))
def test_shares_have_the_bounds_of_clopper_and_pearson(n, share):
    k = round(share * n)
    bounds = one_sided_bounds([1] * k + [0] * (n - k), scale=(0, 1))
    exact = stats.binomtest(k, n)
    assert bounds.low == pytest.approx(exact.proportion_ci(0.9, "exact").low, abs=1e-12)
    assert bounds.high == pytest.approx(exact.proportion_ci(0.9, "exact").high, abs=1e-12)


@given(values=st.lists(st.integers(1, 5), min_size=2, max_size=40), seed=st.integers(0, 5))
def test_means_have_students_bounds_at_both_ends_at_once_where_nothing_is_crowded(values, seed):
    noise = np.random.default_rng(seed).uniform(0, 1e-3, len(values))
    bounds = one_sided_bounds(np.array(values) + noise, scale=(1, 6))
    two_sided = mean_interval(np.array(values) + noise, level=0.9)
    assert (bounds.low, bounds.high) == pytest.approx((two_sided.low, two_sided.high))
    assert bounds.method == "t"


def test_bounds_of_shares_from_few_sources_exist_at_the_median_too():
    answers, sources = [1, 1, 0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3]
    at, near = (one_sided_bounds(answers, sources=sources, scale=(0, 1), level=level) for level in (0.5, 0.50001))
    assert (at.low, at.high) == pytest.approx((near.low, near.high), abs=1e-4)


@given(values=st.lists(st.integers(1, 5), min_size=3, max_size=40))
def test_the_bounds_turn_with_the_scale(values):
    one, other = (one_sided_bounds(side, scale=(1, 5)) for side in (values, [6 - v for v in values]))
    assert (other.low, other.high) == pytest.approx((6 - one.high, 6 - one.low))


def test_crowded_values_leave_room_for_one_that_was_not_seen():
    good = one_sided_bounds([4] + [5] * 49, scale=(1, 5))
    by_hand = np.array([4] + [5] * 49 + [1])
    low = by_hand.mean() + stats.t.ppf(0.05, 50) * by_hand.std(ddof=1) / math.sqrt(51)
    assert good.low == pytest.approx(low)
    assert good.high >= 4.98
    assert good.method == "t with one pseudo-value"


@pytest.mark.parametrize(("end", "other", "scale"), [(5, 1, (1, 5)), (1, 5, (1, 5)), (-4, 4, (-4, 4)), (1, 0, (0, 1))])
def test_values_that_are_all_at_the_end_of_the_scale_have_an_exact_bound(end, other, scale):
    """0.05^(1/n): the chance that n values are all at the end is at most 5 % if the mean is beyond the bound.

    The worst case is a mixture of both ends, so with a share p of the other end the chance is (1 - p)^n; Clopper and
    Pearson's bound of a share of n out of n is the same number.
    """
    for n in (2, 14, 50):
        found = one_sided_bounds([end] * n, scale=scale)
        away = found.low if end > other else found.high
        p = (away - end) / (other - end)
        assert (1 - p) ** n == pytest.approx(0.05)
        share = one_sided_bounds([1] * n, scale=(0, 1)).low
        assert 1 - p == pytest.approx(share)
        assert end in (found.low, found.high)


def test_five_of_five_passes_4_2_from_14_questions_on():
    lowest = {n: one_sided_bounds([5] * n, scale=(1, 5)).low for n in (13, 14)}
    assert lowest[13] < 4.2 <= lowest[14]
    assert lowest[14] == pytest.approx(4.2295, abs=1e-4)  # 5 - 4 * (1 - 0.05 ** (1 / 14)), by hand
    assert math.isnan(one_sided_bounds([5], scale=(1, 5)).low)


def test_repetitions_are_averaged_before_anything_is_computed():
    values, questions = [1, 0, 1, 1, 1, 0], ["a", "a", "b", "b", "c", "c"]
    assert one_sided_bounds(values, questions).n == 3
    assert one_sided_bounds(values, questions).value == pytest.approx(2 / 3)


@given(values=st.lists(st.floats(0.01, 100), min_size=5, max_size=40))
def test_halls_bounds_solve_his_equation_and_a_lognormal_mean_raises_the_upper_one(values):
    means = np.array(values)
    bounds = one_sided_bounds(means, skewed=True)
    sd, n = means.std(ddof=1), means.size
    if bounds.method != "Hall" or sd < 1e-12 * means.mean():  # what differs is rounding
        assert sd == pytest.approx(0, abs=1e-9)
        return
    g = float(((means - means.mean()) ** 3).mean()) / sd**3

    def hall(bound):
        t = (means.mean() - bound) / sd
        return t + g * t**2 / 3 + g**2 * t**3 / 27 + g / (6 * n)

    reach = stats.t.ppf(0.95, n - 1) / math.sqrt(n)
    assert hall(bounds.low) == pytest.approx(reach, abs=1e-6)
    logs = np.log(means)
    s2 = logs.var(ddof=1)
    reaches = stats.t.ppf(0.95, n - 1) * math.sqrt(s2 / n), s2 / 2 * ((n - 1) / stats.chi2.ppf(0.05, n - 1) - 1)
    if bounds.high != pytest.approx(math.exp(logs.mean() + s2 / 2 + math.hypot(*reaches))):
        assert hall(bounds.high) == pytest.approx(-reach, abs=1e-6)
    else:
        assert hall(bounds.high) <= -reach + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize("best", [0.5, 0.8, 0.95])
def test_a_mean_below_the_threshold_rarely_passes(n, best):
    rng = np.random.default_rng(n)
    p = np.append((1 - best) * np.array([0.4, 0.3, 0.2, 0.1]), best)
    truth = float(p @ [1, 2, 3, 4, 5])
    passed = [one_sided_bounds(rng.choice(5, n, p=p) + 1, scale=(1, 5)).low >= truth for _ in range(1000)]
    assert np.mean(passed) <= 0.064


def test_a_skewed_cost_above_the_limit_rarely_passes():
    rng = np.random.default_rng(11)
    for draw, truth in (
        (lambda: rng.gamma(2, 0.5, 100), 1.0),
        (lambda: rng.lognormal(0, 0.5, 100), math.exp(0.125)),
        (lambda: rng.lognormal(0, 1, 50), math.exp(0.5)),
        (lambda: rng.lognormal(0, 1.5, 10), math.exp(1.125)),  # few: Cox's bound passes 9 %
    ):
        passed = np.mean([one_sided_bounds(draw(), skewed=True).high < truth for _ in range(1000)])
        assert 0.03 <= passed <= 0.064


def test_amounts_and_shares_of_few_documents_rarely_pass_below_the_truth():
    """Cost: t passes 16 %. Shares: Clopper and Pearson's at the effective n pass 12 %."""
    rng = np.random.default_rng(3)
    passed = np.zeros(2)
    for _ in range(400):
        sizes = rng.integers(2, 25, 12)
        sources = np.repeat(np.arange(12), sizes)
        costs = rng.lognormal(np.repeat(rng.normal(0, 0.7, 12), sizes), 0.7)
        flags = rng.random(sources.size) < np.repeat(rng.beta(0.95 * 1.5, 0.05 * 1.5, 12), sizes)
        passed += (
            one_sided_bounds(costs, sources=sources, skewed=True).high < math.exp(0.49),
            one_sided_bounds(flags, sources=sources, scale=(0, 1)).low >= 0.95,
        )
    assert (passed <= 0.072 * 400).all()  # 5 % and two standard errors


def test_one_wrong_answer_never_raises_the_bound_of_grouped_shares():
    sources = np.repeat(np.arange(30), 13)
    right = np.ones(390)
    wrong = np.append(right[1:], 0)
    perfect, nearly = (one_sided_bounds(flags, sources=sources, scale=(0, 1)) for flags in (right, wrong))
    assert nearly.low <= perfect.low + 0.001


@pytest.mark.parametrize(
    ("values", "options", "because"),
    [([], {}, "no values"), ([1, None], {}, "1 of 2 values are missing"), ([3], {}, "one question")],
)
def test_what_cannot_be_known_says_why(values, options, because):
    bounds = one_sided_bounds(values, **options)
    assert math.isnan(bounds.low)
    assert math.isnan(bounds.high)
    assert because in (bounds.reason or "")


def test_values_outside_the_scale_are_refused():
    with pytest.raises(ValueError, match="7 is outside 1 to 5"):
        one_sided_bounds([1, 7], scale=(1, 5))


def test_a_bound_of_two_amounts_beyond_every_number_is_infinite():
    bounds = one_sided_bounds(np.array([48.0, 50.0]), level=1 - 1e-6, skewed=True)
    assert bounds.high == math.inf
    assert bounds.low < 48
