"""The chance that a repeat gives the same verdict."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.stats import same_verdict

finite = st.floats(-5, 5)


@pytest.mark.parametrize(
    ("z", "new", "same"),
    [
        (1.959964, 0.366598461, 0.402706133),
        (2.575829, 0.540584494, 0.646132176),
        (3.290527, 0.719517055, 0.85903184),
        (0.0, 0.889399454, 0.962937399),
    ],
)
def test_the_chance_agrees_with_integrals_over_the_true_effect(z, new, same):
    """The values are of 40-digit arithmetic; Bayes' rule by sums over the effect gives them too."""
    found = same_verdict(z + 1e-9 * (z > 0), 1.0, 1e9, agent_variance=0.5)
    assert found.new_questions == pytest.approx(new, abs=1e-6)
    assert found.same_questions == pytest.approx(same, abs=1e-6)
    effect = np.linspace(-20, 20, 40_001)
    for noise, drawn, expected in ((1.0, 1e-6, new), (0.5, 0.5, same)):  # drawn: the variance from these questions
        real, null = (stats.norm.pdf(effect, 0, math.sqrt(spread + drawn)) for spread in (2.3**2, 0.0))
        weight = (0.8 * real + 0.2 * null) * stats.norm.pdf(z, effect, math.sqrt(noise))
        bar = stats.norm.isf(0.025)
        above = stats.norm.sf(bar, effect, math.sqrt(noise))
        repeats = above if z else 1 - above - stats.norm.cdf(-bar, effect, math.sqrt(noise))
        assert np.average(repeats, weights=weight) == pytest.approx(expected, abs=1e-4)


@given(value=finite, u=st.floats(0, 1))
def test_sign_and_unit_do_not_matter(value, u):
    one = same_verdict(value, 1.0, 20, agent_variance=u)
    other = same_verdict(-3 * value, 3.0, 20, agent_variance=9 * u)
    assert other.new_questions == pytest.approx(one.new_questions)
    assert other.same_questions == pytest.approx(one.same_questions, abs=1e-6)


def test_one_repetition_does_not_say_what_the_same_questions_would_do():
    chance = same_verdict(1.0, 0.4, 20)
    assert math.isnan(chance.same_questions)
    assert "answered once" in (chance.reason or "")


@pytest.mark.parametrize("se", [0.0, math.nan])
def test_without_an_interval_there_is_no_chance(se):
    chance = same_verdict(1.0, se, 20)
    assert math.isnan(chance.new_questions)
    assert chance.reason


@pytest.mark.parametrize(("spread", "null"), [(2.0, 0.0), (2.8, 0.0), (2.8, 0.5)])
def test_where_effects_vary_the_chance_is_calibrated(spread, null):
    """Within 7 points (and two Monte Carlo errors) in each tenth of the winners, on new questions."""
    rng = np.random.default_rng(12)
    effects = rng.normal(0, spread, 60_000) * (rng.random(60_000) >= null)
    first, second = (effects + rng.normal(0, 1, effects.size) for _ in range(2))
    bar = stats.norm.isf(0.025)
    winners = np.abs(first) > bar
    grid = np.linspace(bar, 15, 2_000)
    chances = [same_verdict(float(z), 1.0, 1e9).new_questions for z in grid]
    predicted = np.interp(np.abs(first[winners]), grid, chances)
    same = ((np.abs(second) > bar) & (np.sign(second) == np.sign(first)))[winners]
    for part in np.array_split(np.argsort(predicted, kind="stable"), 10):
        assert same[part].mean() == pytest.approx(predicted[part].mean(), abs=0.07 + 2 * math.sqrt(0.25 / part.size))


@pytest.mark.parametrize("n", [6, 12])
def test_the_chance_is_calibrated_with_few_questions(n):
    """In each quarter of the winners; where t was taken for z, the last quarter of 6 questions was 19 points off."""
    rng = np.random.default_rng(2)
    effects = rng.normal(0, 2.3, 6_000) * (rng.random(6_000) > 0.2) / math.sqrt(n)
    runs = [rng.normal(effects[:, None], 1, (effects.size, n)) for _ in range(2)]
    first, second = (run.mean(axis=1) / run.std(axis=1, ddof=1) * math.sqrt(n) for run in runs)
    bar = stats.t.ppf(0.975, n - 1)
    winners = np.abs(first) > bar
    predicted = np.array([same_verdict(float(t), 1.0, n - 1).new_questions for t in first[winners]])
    same = ((np.abs(second) > bar) & (np.sign(second) == np.sign(first)))[winners]
    for part in np.array_split(np.argsort(predicted, kind="stable"), 4):
        assert predicted[part].mean() == pytest.approx(same[part].mean(), abs=0.07 + 2 * 0.5 / math.sqrt(part.size))
