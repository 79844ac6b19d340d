"""Kappa: printed values through the vectors, an independent sum here, and its laws."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.stats import cohen_kappa, kappa_of_table

STEPS = (1, 2, 3, 4, 5)
ratings = st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(STEPS)), min_size=2, max_size=60)
weightings = st.sampled_from(["none", "linear", "quadratic", "ordinal"])


def by_hand(pairs, weights):
    """Mean disagreement of the pairs over that of all pairs of a row with a column."""
    power = {"linear": 1, "quadratic": 2}.get(weights)

    def apart(one, two):
        if weights == "ordinal":
            return math.comb(abs(one - two) + 1, 2)
        return float(one != two) if power is None else abs(one - two) ** power

    observed = sum(apart(*pair) for pair in pairs) / len(pairs)
    chance = sum(apart(one, two) for (one, _), (_, two) in product(pairs, pairs)) / len(pairs) ** 2
    return math.nan if chance == 0 else 1 - observed / chance


@settings(deadline=None)
@given(pairs=ratings, weights=weightings)
def test_kappa_is_what_disagreement_saves_over_chance(pairs, weights):
    found = cohen_kappa(*zip(*pairs, strict=True), categories=STEPS, weights=weights)
    wanted = by_hand(pairs, weights)
    assert found.value == pytest.approx(wanted, abs=1e-12, nan_ok=True)
    assert (math.isnan(found.value) or found.se < 1e-12) == (found.reason is not None)


@settings(deadline=None)
@given(pairs=ratings, weights=weightings)
def test_kappa_does_not_ask_who_is_first_nor_in_which_order(pairs, weights):
    a, b = zip(*pairs, strict=True)
    one, two = (cohen_kappa(x, y, categories=STEPS, weights=weights) for x, y in ((a, b), (b[::-1], a[::-1])))
    assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)
    assert one.se == pytest.approx(two.se, abs=1e-6, nan_ok=True)


def test_weights_may_be_ones_own():
    harmless = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]  # the first two steps are as good as one
    a, b = [1, 2, 3, 3, 1], [2, 2, 3, 1, 1]
    merged = cohen_kappa([max(x, 2) for x in a], [max(x, 2) for x in b], categories=[2, 3], weights="none")
    found = cohen_kappa(a, b, categories=[1, 2, 3], weights=harmless)
    assert (found.value, found.se) == (pytest.approx(merged.value), pytest.approx(merged.se))
    assert found.method == "cohen's kappa, own weights"


@settings(deadline=None)
@given(values=st.lists(st.sampled_from(STEPS), min_size=2, max_size=30).filter(lambda one: len(set(one)) > 1))
def test_full_agreement_is_one(values):
    found = cohen_kappa(values, values, categories=STEPS)
    assert (found.value, found.se) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-7))


@settings(deadline=None)
@given(pairs=ratings)
def test_clusters_of_one_give_the_plain_error_but_for_its_degrees_of_freedom(pairs):
    a, b = zip(*pairs, strict=True)
    plain, apart = cohen_kappa(a, b, categories=STEPS), cohen_kappa(a, b, range(len(a)), categories=STEPS)
    assert apart.value == pytest.approx(plain.value, nan_ok=True)
    assert apart.se == pytest.approx(plain.se * math.sqrt(len(a) / (len(a) - 1)), abs=1e-6, nan_ok=True)


def test_answers_given_twice_tell_no_more_than_once():
    a, b = [1, 2, 3, 4, 5, 3, 2, 4], [1, 3, 3, 4, 4, 2, 2, 5]
    once = cohen_kappa(a, b, range(8), categories=STEPS)
    twice = cohen_kappa(a * 2, b * 2, list(range(8)) * 2, categories=STEPS)
    assert (twice.value, twice.se, twice.low, twice.n, twice.observations) == (
        pytest.approx(once.value),
        pytest.approx(once.se),
        pytest.approx(once.low),
        8,
        16,
    )
    assert cohen_kappa(a * 2, b * 2, categories=STEPS).se < once.se


@pytest.mark.slow
def test_the_interval_holds_the_true_kappa_in_about_its_level():
    rng = np.random.default_rng(7)
    truth = rng.integers(1, 6, 400_000)
    noise = rng.choice([-1, 0, 1], 400_000, p=[0.2, 0.6, 0.2])
    second = np.clip(truth + noise, 1, 5)
    table = np.zeros((5, 5))
    np.add.at(table, (truth - 1, second - 1), 1)
    kappa = kappa_of_table(table).value
    held = 0
    for at in range(1000):
        rows = slice(at * 100, at * 100 + 100)
        found = cohen_kappa(truth[rows].tolist(), second[rows].tolist(), categories=STEPS)
        held += found.low <= kappa <= found.high
    assert 0.92 <= held / 1000 <= 0.98


def test_no_variation_is_no_agreement_and_says_so():
    found = cohen_kappa([5, 5, 5], [5, 5, 5], categories=STEPS)
    assert math.isnan(found.value)
    assert "no variation" in found.reason
    assert cohen_kappa([], [], categories=STEPS).reason == "nothing was rated by both"
    assert cohen_kappa([1, 2], [1, 1], ["q", "q"], categories=STEPS).reason == "fewer than two clusters"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: cohen_kappa([6], [1], categories=STEPS), "6 is not one of the categories"),
        (lambda: cohen_kappa([None], [1], categories=STEPS), "None is not one of the categories"),
        (lambda: cohen_kappa([[1]], [1], categories=STEPS), r"a, b: \[1\] is not one of the categories"),
        (lambda: cohen_kappa([1], [1, 2], categories=STEPS), "shorter|longer"),
        (lambda: cohen_kappa([1], [1], [1, 2], categories=STEPS), "one per pair"),
        (lambda: cohen_kappa([1], [1], categories=(1, 1)), "twice"),
        (lambda: cohen_kappa([1], [1], categories=STEPS, weights="cubic"), "weights"),
        (lambda: cohen_kappa([1], [1], categories=STEPS, weights=[[1, 0], [0, 1]]), "one row and column per category"),
        (lambda: cohen_kappa([1], [1], categories=(1, 2), weights=[[1, 0.5], [0, 1]]), "symmetric"),
        (lambda: cohen_kappa([1], [1], categories=(1, 2), weights=[[1, 2], [2, 1]]), "nothing agrees more"),
        (lambda: cohen_kappa([1], [1], categories=(1, 2), weights=[["a", 2], [2, 1]]), "numbers"),
        (lambda: cohen_kappa([1], [1], categories=STEPS, level=95), "level"),
        (lambda: kappa_of_table([[1, 2]]), "square"),
        (lambda: kappa_of_table([[1, -2], [0, 1]]), "counts"),
        (lambda: kappa_of_table([[1, 0.5], [0, 1]]), "counts"),
        (lambda: kappa_of_table([[math.nan, 0], [0, 1]]), "counts"),
    ],
)
def test_what_makes_no_sense_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


@pytest.mark.parametrize("clusters", [None, [1, 2, 3, 4, 5, 6, 7]])
def test_full_agreement_is_a_point_with_a_reason(clusters):
    said = [1, 2, 3, 3, 4, 4, 5]
    found = cohen_kappa(said, said, clusters, categories=STEPS)
    assert (found.low, found.high) == pytest.approx((1.0, 1.0), abs=1e-12)
    assert found.reason == "agreement is the same everywhere: the interval is a point"
