"""Krippendorff's alpha: his printed example, the coincidence matrix written out, and its laws."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.stats import fleiss_kappa, krippendorff_alpha

N = None
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section C: 12 units, 4 observers
EXAMPLE = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3),
    (N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N),
)
levels = st.sampled_from(["nominal", "ordinal", "interval", "ratio"])
values = st.sampled_from([0, 1, 2, 3.5, 5, 8, None])


@st.composite
def tables(draw, said=values):
    n, m = draw(st.integers(2, 10)), draw(st.integers(2, 4))
    return draw(st.lists(st.lists(said, min_size=n, max_size=n), min_size=m, max_size=m))


@pytest.mark.parametrize(
    ("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_his_example_comes_out_as_printed(level, printed):
    found = krippendorff_alpha(*EXAMPLE, level=level)
    assert found.value == pytest.approx(printed, abs=5.1e-4)
    assert (found.n, found.observations) == (11, 11)  # one unit has one value only


def by_hand(raters, level):
    """The coincidence matrix, value by value, and his four differences (section 5 of the paper)."""
    units = [[value for value in unit if value is not None] for unit in zip(*raters, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    seen: Counter[tuple[float, float]] = Counter()
    for unit in units:
        for pair in permutations(unit, 2):
            seen[pair] += 1 / (len(unit) - 1)
    often = Counter(value for unit in units for value in unit)
    total = sum(often.values())

    def apart(c, k):
        if level == "ordinal":
            between = sum(count for value, count in often.items() if min(c, k) <= value <= max(c, k))
            return (between - (often[c] + often[k]) / 2) ** 2 if c != k else 0.0
        if level == "ratio":
            return ((c - k) / (c + k)) ** 2 if c + k else 0.0
        return float(c != k) if level == "nominal" else (c - k) ** 2

    by_chance = sum(often[c] * often[k] * apart(c, k) for c in often for k in often)
    if not by_chance:
        return math.nan
    return 1 - (total - 1) * sum(count * apart(*pair) for pair, count in seen.items()) / by_chance


@settings(deadline=None)
@given(raters=tables(), level=levels)
def test_alpha_is_its_coincidence_matrix(raters, level):
    found = krippendorff_alpha(*raters, level=level)
    assert found.value == pytest.approx(by_hand(raters, level), abs=1e-10, nan_ok=True)
    assert math.isnan(found.value) <= (found.reason is not None)
    assert not found.value > 1 + 1e-12


@settings(deadline=None)
@given(raters=tables(), scale=st.floats(0.1, 50), shift=st.floats(-20, 20))
def test_each_level_forgives_what_it_says(raters, scale, shift):
    def changed(change):
        return [[None if value is None else change(value) for value in rater] for rater in raters]

    for level, change in (
        ("nominal", lambda value: -value),
        ("ordinal", lambda value: value**3),
        ("interval", lambda value: value * scale + shift),
        ("ratio", lambda value: value * scale),
    ):
        one, two = (krippendorff_alpha(*told, level=level) for told in (raters, changed(change)))
        assert one.value == pytest.approx(two.value, abs=1e-7, nan_ok=True)
        assert one.se == pytest.approx(two.se, abs=1e-6, nan_ok=True)


@given(raters=tables(said=st.sampled_from([1, 2, 3])))
def test_on_equal_steps_the_levels_are_weights(raters):
    for level, weights in (("nominal", "none"), ("interval", "quadratic")):
        one = krippendorff_alpha(*raters, level=level)
        two = krippendorff_alpha(*raters, weights=weights, categories=[1, 2, 3])
        assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)
        assert one.se == pytest.approx(two.se, abs=1e-9, nan_ok=True)


@given(raters=tables(said=st.sampled_from([1, 2, 3, 4])))
def test_without_gaps_it_is_fleiss_kappa_but_for_the_size_of_the_sample(raters):
    kappa = fleiss_kappa(*raters, categories=[1, 2, 3, 4], weights="none").value
    total = len(raters) * len(raters[0])
    alpha = krippendorff_alpha(*raters, level="nominal").value
    assert alpha == pytest.approx(kappa + (1 - kappa) / total, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
def test_the_error_is_that_of_leaving_out_one_at_a_time(level):
    rng, n = np.random.default_rng(2), 250
    truth = rng.integers(1, 6, n)
    raters = [np.clip(truth + rng.choice([-1, 0, 0, 2], n), 1, 7).astype(float) for _ in range(3)]
    raters = [np.where(rng.random(n) < 0.15, np.nan, rater) for rater in raters]
    kept = np.sum(~np.isnan(raters), axis=0) > 1
    raters, n = [rater[kept] for rater in raters], int(kept.sum())
    left = [krippendorff_alpha(*(np.delete(rater, at) for rater in raters), level=level).value for at in range(n)]
    jackknife = math.sqrt((n - 1) / n * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert krippendorff_alpha(*raters, level=level).se == pytest.approx(jackknife, rel=0.02)


def test_words_need_an_order_for_ranks_and_numbers_for_distances():
    a, b = ["low", "mid", "high", "mid"], ["low", "high", "high", "mid"]
    found = krippendorff_alpha(a, b, level="ordinal", categories=["low", "mid", "high"])
    as_ranks = krippendorff_alpha([1, 2, 3, 2], [1, 3, 3, 2], level="ordinal")
    assert (found.value, found.se) == (as_ranks.value, as_ranks.se)
    assert krippendorff_alpha(a, b, level="nominal").value < 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: krippendorff_alpha([1], [1]), "level: is required"),
        (lambda: krippendorff_alpha([1], [1], level="ordinal", weights="linear"), "level: is required"),
        (lambda: krippendorff_alpha([1], [1], level="metric"), "nominal, ordinal, interval or ratio"),
        (lambda: krippendorff_alpha(["a"], ["b"], level="ordinal"), "must be given in their order"),
        (lambda: krippendorff_alpha(["a"], ["b"], level="interval"), "must be numbers"),
        (lambda: krippendorff_alpha([-1], [2], level="ratio"), "at least 0"),
        (lambda: krippendorff_alpha([math.inf], [2], level="interval"), "finite"),
        (lambda: krippendorff_alpha(["a"], [2], level="nominal"), "no order"),
        (lambda: krippendorff_alpha([1], [2], level="nominal", confidence=2), "level"),
    ],
)
def test_what_makes_no_sense_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
