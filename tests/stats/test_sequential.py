"""The sequential test: its boundary, its guard, and the errors it may make."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.stats import sequential_look, sequential_p, stopping_boundary

differences = st.lists(st.integers(-4, 4), min_size=20, max_size=60)


@pytest.mark.parametrize(("alpha", "printed"), [(0.05, 2.2414), (0.10, 1.9600)])
def test_the_boundary_has_the_printed_value(alpha, printed):
    assert stopping_boundary(alpha) == pytest.approx(printed, abs=5e-5)


@pytest.mark.parametrize("c", [0.3, 0.7, 0.99, 1.0, 1.01, 1.7, 2.2414, 4.0])
def test_the_chance_of_leaving_is_the_series_of_the_contract(c):
    """1 - (4/pi) sum (-1)^k/(2k+1) exp(-(2k+1)^2 pi^2/(8 c^2)), summed without the reflection that the code uses."""
    terms = [(-1) ** k / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / c) ** 2) / 8) for k in range(200)]
    assert sequential_p(c, 1, 1) == pytest.approx(1 - 4 / math.pi * math.fsum(terms), abs=1e-14)


def test_the_chance_of_leaving_is_that_of_a_random_walk():
    walks = np.cumsum(np.random.default_rng(1).standard_normal((4000, 2000)) / math.sqrt(2000), axis=1)
    left = (np.abs(walks).max(axis=1) >= 1.5 - 0.5826 / math.sqrt(2000)).mean()  # Siegmund's step correction
    assert left == pytest.approx(sequential_p(1.5, 1, 1), abs=0.025)


def test_small_chances_keep_their_digits_and_are_never_0():
    assert sequential_p(10.0, 1, 1) == pytest.approx(4 * stats.norm.sf(10.0), rel=1e-12)
    assert sequential_p(math.inf, 1, 1) > 0
    assert sequential_p(0.0, 5, 9) == 1
    assert math.isnan(sequential_p(math.nan, 5, 9))


@given(d=differences, extra=st.integers(0, 60))
def test_the_verdict_turns_with_the_sign(d, extra):
    one, other = (sequential_look(side, horizon=len(d) + extra, scale=4) for side in (d, [-x for x in d]))
    opposite = {"better": "worse", "worse": "better"}
    assert other.decision == opposite.get(one.decision, one.decision)
    assert (other.value, other.low, other.high) == pytest.approx((-one.value, -one.high, -one.low), nan_ok=True)
    assert other.p == pytest.approx(one.p, nan_ok=True)


@given(d=differences, extra=st.integers(1, 60))
def test_p_decides_as_the_boundary_does(d, extra):
    look = sequential_look(d, horizon=len(d) + extra, scale=4)
    assert (look.p <= 0.05 + 1e-12) == (look.decision in ("better", "worse"))
    assert (abs(look.z) >= look.boundary - 1e-9) == (look.decision in ("better", "worse"))


@given(d=differences)
def test_at_the_horizon_it_is_a_t_test_at_a_stricter_level(d):
    look, p = sequential_look(d, horizon=len(d), scale=4), stats.ttest_1samp(d, 0).pvalue
    if np.std(d) > 0:
        assert look.z == pytest.approx(math.copysign(stats.norm.isf(p / 2), look.value), rel=1e-6, abs=1e-9)
        assert (look.decision is not None) == (abs(look.z) >= stopping_boundary())


def test_the_interval_is_students_with_the_boundary_of_the_look():
    d = np.random.default_rng(2).normal(0.3, 1, 40)
    look = sequential_look(d, horizon=160, scale=4)
    reach = stats.t.ppf(stats.norm.cdf(stopping_boundary() * 2), 39) * d.std(ddof=1) / math.sqrt(40)
    assert (look.low, look.high) == pytest.approx((d.mean() - reach, d.mean() + reach), rel=1e-6)


def test_one_unseen_loss_of_the_full_scale_can_hold_a_decision_back():
    gain = [0.1, 0.12] * 20
    assert sequential_look(gain, horizon=100, scale=0.2).decision == "better"
    assert sequential_look(gain, horizon=100, scale=4).decision is None


@pytest.mark.parametrize(
    ("d", "horizon", "scale", "because"),
    [
        ([1.0, 2.0] * 9, 100, 4, "decided from 20 questions on, 18"),
        ([1.0, 2.0] * 20, 100, math.inf, "no range"),
        ([1.0] * 30, 30, 4, "same difference"),
        ([], 30, 4, "0 are answered"),
        ([None, math.nan, 1.0], 3, 4, "1 are answered"),
    ],
)
def test_what_cannot_be_decided_says_why(d, horizon, scale, because):
    look = sequential_look(d, horizon=horizon, scale=scale)
    assert look.decision is None
    assert because in (look.reason or "")


def test_a_margin_decides_for_equivalence_and_futility_ends_what_shows_nothing():
    flat = [0.2, -0.2] * 40
    assert sequential_look(flat, horizon=100, scale=4, margin=0.2).decision == "equivalent"
    assert sequential_look(flat, horizon=100, scale=4, margin=0.1).decision is None
    assert sequential_look(flat, horizon=100, scale=4, futility=True).decision == "futile"
    assert sequential_look(flat, horizon=1000, scale=4, futility=True).decision is None


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"horizon": 10}, "horizon: must be at least the 20"),
        ({"scale": 0.0}, "scale: must be above 0"),
        ({"margin": -1.0}, "margin: must be above 0"),
        ({"alpha": 1.0}, "alpha: must lie between 0 and 1"),
    ],
)
def test_bad_input_is_refused(bad, says):
    with pytest.raises(ValueError, match=says):
        sequential_look([0.0, 1.0] * 10, **{"horizon": 50, "scale": 4.0, **bad})


def _decided(draws: np.ndarray, horizon: int, scale: float, **options) -> float:
    """Share of experiments that end better or worse, with a look after every tenth question."""
    ended = 0
    for row in draws:
        looks = (sequential_look(row[:n], horizon=horizon, scale=scale, **options) for n in range(20, horizon + 1, 10))
        ended += next((look.decision for look in looks if look.decision), None) in ("better", "worse")
    return ended / len(draws)


def test_where_nothing_differs_few_experiments_stop():
    """At most 5 % and two Monte Carlo errors of 400; rare large losses among small gains included."""
    rng = np.random.default_rng(3)
    answers = rng.choice([1, 2, 3, 4, 5], p=[0.02, 0.03, 0.1, 0.25, 0.6], size=(2, 400, 100))
    losses = rng.random((400, 100)) < 0.08
    rare = np.where(losses, -3, 3 * 0.08 / 0.92) + rng.normal(0, 0.3, (400, 100))
    for draws in (answers[1] - answers[0], rare):
        assert _decided(draws, 100, 4) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


def test_at_the_detectable_difference_most_experiments_decide():
    rng = np.random.default_rng(4)
    delta = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) / math.sqrt(100)
    assert _decided(rng.normal(delta, 1, (200, 100)), 100, 8) >= 0.65 - 2 * math.sqrt(0.65 * 0.35 / 200)
