"""Power: printed values, SciPy and slow twins beside it, and the laws that it obeys."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.integrate import quad
from scipy.special import ndtr

from karat.stats import (
    effect_size_ttest,
    power_ttest,
    sample_size_ttest,
)
from karat.stats.power import noncentral_t_cdf

effects = st.floats(0.05, 2.0)
alphas = st.sampled_from([0.001, 0.01, 0.05, 0.1])


def noncentral_t_above(t, df, ncp):
    return noncentral_t_cdf(-t, df, -ncp)


@pytest.mark.parametrize(
    ("t", "df", "ncp", "below", "above"),
    [
        # mpmath 1.4, integrated with 30 digits
        (2, 1, 3, 0.179562496552237, 0.820437503447763),
        (63.6, 1, 40, 0.529445239723947, 0.470554760276053),
        (300, 2, 400, 0.169018114490214, 0.830981885509786),
        (100, 5, 30, 0.993782988403298, 0.006217011596702),
        (250, 12, 400, 0.002176020614799, 0.997823979385201),
    ],
)
def test_the_noncentral_t_agrees_with_a_slow_integral(t, df, ncp, below, above):
    assert noncentral_t_cdf(t, df, ncp) == pytest.approx(below, rel=1e-10)
    assert noncentral_t_above(t, df, ncp) == pytest.approx(above, rel=1e-10)


def by_quadrature(t, df, ncp):
    """E[Φ(t·s − ncp)] over s = √(χ²/df), in s itself."""

    def weighed(s):
        log_density = df * math.log(s) - df * s * s / 2 - math.lgamma(df / 2) + df / 2 * math.log(df / 2)
        return 2 / s * math.exp(log_density) * ndtr(t * s - ncp)

    sd = 1 / math.sqrt(2 * df)
    edges = [max(1e-9, 1 + at * sd) for at in (-20, -6, -3, -1.5, 0, 1.5, 3, 6, 20)]
    return sum(quad(weighed, low, high, epsabs=1e-12)[0] for low, high in pairwise(edges) if high > low)


@given(t=st.floats(-8, 12), df=st.floats(1, 500), ncp=st.floats(-5, 8))
def test_the_noncentral_t_agrees_with_an_integral_and_with_its_mirror(t, df, ncp):
    found = noncentral_t_cdf(t, df, ncp)
    assert found == pytest.approx(by_quadrature(t, df, ncp), abs=1e-8)
    assert found + noncentral_t_above(t, df, ncp) == pytest.approx(1.0, abs=1e-12)
    assert found == pytest.approx(1 - noncentral_t_above(t, df, ncp), abs=1e-12)


def test_without_an_effect_it_is_students_t():
    for df in (1, 2.5, 30, 1e7):
        assert noncentral_t_cdf(1.7, df, 0) == pytest.approx(float(scipy_stats.t.cdf(1.7, df)), rel=1e-10)
    assert math.isnan(noncentral_t_cdf(math.nan, 3, 1))
    assert (noncentral_t_cdf(-8, 49, 8), noncentral_t_cdf(8, 49, -8)) == (0.0, 1.0)  # SciPy gives NaN for one


def test_power_is_what_an_integral_over_the_standard_deviation_gives():
    """P(|t| > bar) for n pairs, by the normal mean and the chi-squared variance themselves."""
    n, d = 12, 0.7
    bar = float(scipy_stats.t.ppf(0.975, n - 1))

    def both_tails(s):
        reach = bar * s / math.sqrt(n)
        tails = scipy_stats.norm.sf((reach - d) * math.sqrt(n)) + scipy_stats.norm.cdf((-reach - d) * math.sqrt(n))
        return tails * scipy_stats.chi2.pdf(s * s * (n - 1), n - 1) * 2 * s * (n - 1)

    assert power_ttest(d, n).value == pytest.approx(quad(both_tails, 0, 4)[0], rel=1e-8)


@given(d=effects, n=st.integers(2, 200), alpha=alphas)
def test_power_rises_with_everything_that_helps(d, n, alpha):
    def power(d=d, n=n, alpha=alpha):
        return power_ttest(d, n, alpha=alpha).value

    assert alpha - 1e-9 <= power() <= 1
    assert power(n=n + 1) >= power() - 1e-12
    assert power(d=d * 1.1) >= power() - 1e-12
    assert power(alpha=alpha * 1.1) >= power() - 1e-12
    assert power(d=-d) == pytest.approx(power(), abs=1e-12)


@given(d=effects, power=st.floats(0.2, 0.99), alpha=alphas)
def test_the_sample_is_the_least_that_reaches_the_power(d, power, alpha):
    assume(power > alpha + 0.01)
    found = sample_size_ttest(d, power=power, alpha=alpha)
    assert found.power >= power
    assert found.power == power_ttest(d, found.n, alpha=alpha).value
    assert found.n - 1 <= found.value <= found.n + 1e-6
    if found.n > 2:
        assert power_ttest(d, found.n - 1, alpha=alpha).value < power
        assert power_ttest(d, found.value, alpha=alpha).value == pytest.approx(power, abs=1e-9)


@given(n=st.integers(2, 500), power=st.floats(0.2, 0.99))
def test_the_smallest_effect_has_just_this_power(n, power):
    found = effect_size_ttest(n, power=power)
    assert power_ttest(found.value, n).value == pytest.approx(power, abs=1e-9)


def test_a_plan_loads_no_scipy_stats():
    """It takes a second to load."""
    code = "import sys; from karat import stats; stats.sample_size_ttest(0.5); assert 'scipy.stats' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_simulation_finds_the_effect_as_often_as_planned():
    rng, n, d = np.random.default_rng(5), 25, 0.55
    drawn = rng.normal(d, 1, (20_000, n))
    t = drawn.mean(axis=1) / drawn.std(axis=1, ddof=1) * math.sqrt(n)
    share = float(np.mean(np.abs(t) > scipy_stats.t.ppf(0.975, n - 1)))
    assert share == pytest.approx(power_ttest(d, n).value, abs=4 * math.sqrt(0.25 / 20_000))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (lambda: power_ttest(0.5, 1), "too few"),
        (lambda: power_ttest(0.5, 0), "too few"),
        (lambda: effect_size_ttest(1), "too few"),
        (lambda: sample_size_ttest(0.0), "no number"),
    ],
)
def test_what_cannot_be_known_is_nan_with_a_reason(found, reason):
    planned = found()
    assert math.isnan(planned.value)
    assert reason in planned.reason


def test_an_effect_that_two_show_needs_two():
    found = sample_size_ttest(1000.0)
    assert (found.n, found.value) == (2, 2.0)
    assert "fewest" in found.reason


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: power_ttest(0.5, 10, alpha=0), "alpha"),
        (lambda: sample_size_ttest(0.5, power=80), "power"),
        (lambda: sample_size_ttest(0.5, power=0.04), "above alpha"),
    ],
)
def test_what_makes_no_sense_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
