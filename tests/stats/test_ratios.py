"""Rates over unequal clusters: against plain Python, against the sandwich estimator, and by their laws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.stats import (
    Sums,
    clustered_se,
    paired_difference,
    ratio_difference,
    ratio_gap,
    ratio_interval,
    sign_flip_test,
)

CLUSTERS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=2, max_size=12)


def sums(clusters: list[list[int]], weights: list[float] | None = None) -> Sums:
    return Sums.of([sum(one) for one in clusters], [len(one) for one in clusters], weights=weights)


@settings(deadline=None)
@given(CLUSTERS)
def test_without_weights_it_is_the_mean_of_all_values_with_cr3(clusters):
    found = ratio_interval(sums(clusters), share=False).interval
    values = [value for one in clusters for value in one]
    labels = [place for place, one in enumerate(clusters) for _ in one]
    twin = clustered_se(values, labels, kind="CR3")
    assert found.value == pytest.approx(twin.value)
    assert found.se == pytest.approx(twin.se * math.sqrt((twin.n - 1) / twin.n), abs=1e-9)
    assert (found.n, found.df, found.observations) == (twin.n, twin.df, len(values))


@settings(deadline=None)
@given(CLUSTERS, st.data())
def test_weights_against_plain_python(clusters, data):
    weights = [data.draw(st.floats(0.25, 8)) for _ in clusters]
    found = ratio_interval(sums(clusters, weights), share=True)
    size = sum(w * len(one) for w, one in zip(weights, clusters, strict=True))
    rate = sum(w * sum(one) for w, one in zip(weights, clusters, strict=True)) / size
    pulls = [w * (sum(one) - rate * len(one)) / (size - w * len(one)) for w, one in zip(weights, clusters, strict=True)]
    g = len(clusters)
    n = sum(map(len, clusters))
    naive = sum(w**2 * (value - rate) ** 2 for w, one in zip(weights, clusters, strict=True) for value in one)
    assert found.interval.value == pytest.approx(rate)
    assert found.interval.se == pytest.approx(math.sqrt((g - 1) / g * sum(e * e for e in pulls)), abs=1e-9)
    assert found.naive_se == pytest.approx(math.sqrt(n / (n - 1) * naive) / size, abs=1e-9)
    assert 0 <= found.interval.low <= found.interval.value + 1e-12
    assert found.interval.value - 1e-12 <= found.interval.high <= 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 1), min_size=2, max_size=30).filter(lambda values: 0 < sum(values) < len(values)))
def test_clusters_of_one_have_no_design_effect(values):
    assert ratio_interval(sums([[value] for value in values]), share=True).design_effect == pytest.approx(1)


@settings(deadline=None)
@given(CLUSTERS, st.integers(2, 5))
def test_copies_within_a_cluster_change_the_design_effect_and_nothing_else(clusters, copies):
    once, often = (ratio_interval(sums(part), share=False) for part in (clusters, [one * copies for one in clusters]))
    assert often.interval.value == pytest.approx(once.interval.value)
    assert often.interval.se == pytest.approx(once.interval.se, abs=1e-9)


@pytest.mark.quick(1)
@pytest.mark.parametrize("clusters", [20, 50, 200])
def test_equal_conditions_are_called_different_in_five_percent(clusters):
    """Turns of unequal number, of conversations of unequal difficulty; two conditions that do not differ."""
    rng, runs, called, covered, rate = np.random.default_rng(20261120), 1500, 0, 0, 2 / 3
    for _ in range(runs):
        turns = rng.integers(1, 9, clusters)
        ease = rng.beta(2, 1, clusters)
        a, b = (Sums.of(rng.binomial(turns, ease), turns) for _ in range(2))
        called += ratio_difference(a, b).p < 0.05
        found = ratio_interval(a, share=True).interval
        covered += found.low <= rate <= found.high
    noise = 2 * math.sqrt(0.05 * 0.95 / runs)
    assert called / runs <= 0.05 + noise
    assert 0.93 <= covered / runs <= 0.985


def test_at_the_ends_the_interval_is_no_point():
    for rate in (0, 1):
        found = ratio_interval(sums([[rate] * 3, [rate], [rate] * 2]), share=True)
        assert found.interval.value == rate
        assert found.interval.high - found.interval.low > 0.3
        assert math.isnan(found.design_effect)


def test_one_cluster_and_none_have_no_interval():
    assert "one cluster" in (ratio_interval(sums([[0, 1]]), share=True).interval.reason or "")
    empty = ratio_interval(Sums.of([0, 0], [0, 0]), share=True).interval
    assert (empty.n, empty.reason) == (0, "no values")
    assert math.isnan(empty.value)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=2, max_size=20))
def test_with_one_value_a_cluster_the_difference_is_the_paired_t_test(pairs):
    a, b = ([round(pair[side], 3) for pair in pairs] for side in (0, 1))
    ones = [1.0] * len(a)
    found = ratio_difference(Sums.of(a, ones), Sums.of(b, ones))
    twin = paired_difference(a, b)
    assert found.value == pytest.approx(twin.value, abs=1e-9)
    assert found.se == pytest.approx(twin.se, abs=1e-9)
    if twin.se > 1e-9:
        assert found.p == pytest.approx(twin.p, rel=1e-6)
    assert (found.better, found.worse, found.equal) == (twin.better, twin.worse, twin.equal)


@settings(deadline=None)
@given(CLUSTERS)
def test_the_same_on_both_sides_is_no_difference(clusters):
    found = ratio_difference(sums(clusters), sums(clusters))
    assert (found.value, found.p, found.low, found.high) == (0, 1, 0, 0)


@pytest.mark.parametrize("conversations", [2, 6, 20, 1_074, 1_075, 1_100, 20_000])
def test_equal_differences_have_the_p_of_their_signs_never_0(conversations):
    side = [1.0] * conversations
    found = ratio_difference(Sums.of([0.0] * conversations, side), Sums.of(side, side))
    exact = Fraction(2, 2**conversations)  # all signs alike, of 2^n equally likely ones
    assert found.p == max(float(exact), math.ulp(0.0)) > 0
    assert found.statistic == math.inf
    if conversations <= 20:
        assert found.p == sign_flip_test(side).p


def test_conversations_without_values_on_a_side_are_lost_and_counted():
    a, b = Sums.of([1, 0, 2, 0], [2, 0, 2, 0]), Sums.of([1, 1, 1, 0], [2, 1, 2, 0])
    found = ratio_difference(a, b)
    assert (found.n, found.lost_a, found.lost_b) == (2, 1, 0)
    assert found.value == pytest.approx(0.5 - 0.75)


def test_the_gap_between_different_conversations_adds_the_variances():
    a, b = sums([[1, 0], [1, 1, 1], [0]]), sums([[0, 0], [1], [0, 1]])
    found = ratio_gap(a, b)
    one, two = (ratio_interval(side, share=False).interval for side in (a, b))
    assert found.value == pytest.approx(two.value - one.value)
    assert found.se == pytest.approx(math.hypot(one.se, two.se))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Sums.of([1], [1, 2]),
        lambda: Sums.of([1], [-1]),
        lambda: Sums.of([np.nan], [1]),
        lambda: Sums.of([1], [1], weights=[-1]),
        lambda: ratio_difference(sums([[1]]), sums([[1], [1]])),
        lambda: ratio_interval(sums([[1], [0]]), share=True, level=1.0),
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=r".+"):
        wrong()


def test_a_gap_of_a_side_that_has_no_interval_has_none_and_says_why():
    found = ratio_gap(sums([[1, 0], [1, 1]]), sums([[1]]))
    assert (found.value, found.n, found.observations) == (0.25, 3, 5)
    assert math.isnan(found.se)
    assert found.reason == "only one cluster, so no interval"


def test_the_gap_of_two_rates_without_spread_is_a_point():
    found = ratio_gap(sums([[0, 1], [0, 1]]), sums([[1], [1], [1]]))
    assert (found.low, found.value, found.high, found.se, found.df) == (0.5, 0.5, 0.5, 0, 3)


def test_the_gap_has_the_degrees_of_freedom_of_welch():
    a, b = sums([[1, 0], [1, 1, 1], [0]]), sums([[0, 0], [1], [0, 1], [1]])
    one, two = (ratio_interval(side, share=False).interval for side in (a, b))
    welch = (one.se**2 + two.se**2) ** 2 / (one.se**4 / one.df + two.se**4 / two.df)
    assert ratio_gap(a, b).df == pytest.approx(welch)


def test_weights_and_squares_are_of_each_cluster():
    kept = Sums.of([1, 2, 3], [2, 0, 4], squares=[1, 4, 9], weights=[1, 1, 0])
    assert kept.there.tolist() == [True, False, False]
    some = kept.only(np.array([True, False, True]))
    assert [some.totals.tolist(), some.counts.tolist(), some.squares.tolist(), some.weights.tolist()] == [
        [1, 3],
        [2, 4],
        [1, 9],
        [1, 0],
    ]
    assert kept.means.tolist() == pytest.approx([0.5, math.nan, 0.75], nan_ok=True)
    with pytest.raises(ValueError, match="must be as many as totals"):
        Sums.of([1, 2], [1, 2], squares=[1])
