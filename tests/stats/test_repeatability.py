"""The chance that a repeat gives the same verdict."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.stats import paired_difference, same_verdict

finite = st.floats(-5, 5)


@pytest.mark.parametrize(("p", "printed"), [(0.05, 0.50), (0.01, 0.67), (0.001, 0.83)])
def test_the_chance_is_goodmans(p, printed):
    """Goodman (1992), table 1."""
    z = stats.norm.isf(p / 2) + 1e-12
    assert same_verdict(z, 1.0, 1e9).new_questions == pytest.approx(printed, abs=0.006)


@given(value=finite, u=st.floats(0, 1))
def test_both_chances_are_those_of_the_normal_distribution(value, u):
    chance, bar = same_verdict(value, 1.0, 30, agent_variance=u), stats.t.ppf(0.975, 30)
    assert chance.significant == (abs(value) > bar)
    for got, variance in ((chance.new_questions, 1.0), (chance.same_questions, u)):
        repeat = stats.norm(value, math.sqrt(2 * variance)) if variance > 1e-12 else None
        if repeat is not None:
            inside = repeat.cdf(bar) - repeat.cdf(-bar)
            beyond = repeat.sf(bar) if value > 0 else repeat.cdf(-bar)
            assert got == pytest.approx(beyond if chance.significant else inside, abs=1e-9)


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


def test_where_effects_vary_the_chance_is_calibrated():
    """Within 5 points (and two Monte Carlo errors) in each half of 1,500 pairs of runs on new questions."""
    rng = np.random.default_rng(12)
    rows = []
    n, se = 100, 1 / math.sqrt(100)
    for effect in rng.normal(0, 4 * se, 1500):
        first, second = rng.normal(effect, 1, (2, n))
        one, other = (paired_difference([0.0] * n, d, range(n)) for d in (first, second))
        predicted = same_verdict(one.value, one.se, one.df).new_questions
        verdicts = [np.sign(x.value) if x.low > 0 or x.high < 0 else 0 for x in (one, other)]
        rows.append((predicted, verdicts[0] == verdicts[1]))
    predicted, same = np.array(rows).T
    for part in (predicted < np.median(predicted), predicted >= np.median(predicted)):
        assert same[part].mean() == pytest.approx(predicted[part].mean(), abs=0.05 + 2 * math.sqrt(0.25 / part.sum()))
