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
    noncentral_t_cdf,
    noncentral_t_pdf,
    power_anova,
    power_correlation,
    power_ttest,
    sample_size_ttest,
)
from karat.stats.noncentral import noncentral_f_above, noncentral_t_above

effects = st.floats(0.05, 2.0)
types = st.sampled_from(["paired", "one-sample", "two-sample"])
alphas = st.sampled_from([0.001, 0.01, 0.05, 0.1])


@pytest.mark.parametrize(
    ("t", "df", "ncp", "below", "above"),
    [
        # mpmath 1.4, integrated with 30 digits
        (2, 1, 3, 0.179562496552237, 0.820437503447763),
        (63.6, 1, 40, 0.529445239723947, 0.470554760276053),
        (300, 2, 400, 0.169018114490214, 0.830981885509786),
        (100, 5, 30, 0.993782988403298, 0.006217011596702),
        (250, 12, 400, 0.002176020614799, 0.997823979385201),
        (-5, 10, 8, 1.85735873023e-24, 1.0),
        (-8, 10, 8, 1.95284065480e-26, 1.0),
    ],
)
def test_the_noncentral_t_is_exact_where_others_give_up(t, df, ncp, below, above):
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
    """SciPy's own cannot be asked: 1.12 and 1.17 are wrong in different tails."""
    found = noncentral_t_cdf(t, df, ncp)
    assert found == pytest.approx(by_quadrature(t, df, ncp), abs=1e-8)
    assert found + noncentral_t_above(t, df, ncp) == pytest.approx(1.0, abs=1e-12)
    assert found == pytest.approx(noncentral_t_above(-t, df, -ncp), rel=1e-12)


def test_where_scipys_own_holds_it_gives_the_same():
    for t, df, ncp in ((2.0, 12, 1.5), (-0.5, 30, 0.4), (3.3, 4, 2.0)):
        assert noncentral_t_cdf(t, df, ncp) == pytest.approx(float(scipy_stats.nct.cdf(t, df, ncp)), abs=1e-9)


@given(t=st.floats(-3, 6), df=st.integers(2, 60), ncp=st.floats(-2, 4))
def test_the_density_is_the_slope_of_the_cdf(t, df, ncp):
    step = 1e-4
    slope = (noncentral_t_cdf(t + step, df, ncp) - noncentral_t_cdf(t - step, df, ncp)) / (2 * step)
    assert noncentral_t_pdf(t, df, ncp) == pytest.approx(slope, abs=1e-6)


def test_without_an_effect_it_is_students_t():
    for df in (1, 2.5, 30, 1e7):
        assert noncentral_t_cdf(1.7, df, 0) == pytest.approx(float(scipy_stats.t.cdf(1.7, df)), rel=1e-10)
    assert math.isnan(noncentral_t_cdf(math.nan, 3, 1))
    with pytest.raises(ValueError, match="df"):
        noncentral_t_cdf(1, 0, 1)


@given(t=st.floats(0.1, 8), df=st.integers(2, 200), ncp=st.floats(0, 6))
def test_t_squared_is_f_with_one_degree_of_freedom(t, df, ncp):
    both = noncentral_t_above(t, df, ncp) + noncentral_t_cdf(-t, df, ncp)
    assert noncentral_f_above(t * t, 1, df, ncp * ncp) == pytest.approx(both, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("found", "printed"),
    [
        # examples on the help pages of R's pwr 1.3, as printed there
        pytest.param(lambda: power_ttest(0.2, 60, alpha=0.1, type="one-sample"), 0.4555818, id="pwr.t.test"),
        pytest.param(
            lambda: power_ttest(0.6, 90, n2=60, type="two-sample", alternative="greater"), 0.9737262, id="pwr.t2n.test"
        ),
        pytest.param(lambda: power_correlation(0.3, 50), 0.5715558, id="pwr.r.test"),
        pytest.param(lambda: power_anova(0.25, 39.1534, k=5), 0.8, id="pwr.anova.test"),
        pytest.param(
            lambda: sample_size_ttest(0.3, power=0.75, type="two-sample", alternative="greater"), 120.2232, id="n"
        ),
    ],
)
def test_power_is_what_r_prints(found, printed):
    assert float(found()) == pytest.approx(printed, rel=2e-6)


def test_power_is_what_an_integral_over_the_standard_deviation_gives():
    """P(|t| > bar) for n pairs, by the normal mean and the chi-squared variance themselves."""
    n, d = 12, 0.7
    bar = float(scipy_stats.t.ppf(0.975, n - 1))

    def both_tails(s):
        reach = bar * s / math.sqrt(n)
        tails = scipy_stats.norm.sf((reach - d) * math.sqrt(n)) + scipy_stats.norm.cdf((-reach - d) * math.sqrt(n))
        return tails * scipy_stats.chi2.pdf(s * s * (n - 1), n - 1) * 2 * s * (n - 1)

    assert power_ttest(d, n).value == pytest.approx(quad(both_tails, 0, 4)[0], rel=1e-8)


@given(d=effects, n=st.integers(2, 200), design=types, alpha=alphas)
def test_power_rises_with_everything_that_helps(d, n, design, alpha):
    def power(d=d, n=n, alpha=alpha):
        return power_ttest(d, n, type=design, alpha=alpha).value

    assert alpha - 1e-9 <= power() <= 1
    assert power(n=n + 1) >= power() - 1e-12
    assert power(d=d * 1.1) >= power() - 1e-12
    assert power(alpha=alpha * 1.1) >= power() - 1e-12
    assert power(d=-d) == pytest.approx(power(), abs=1e-12)


@given(d=effects, n=st.integers(3, 300), design=types)
def test_both_tails_add_up(d, n, design):
    half = {"type": design, "alpha": 0.025}
    parts = [power_ttest(d, n, alternative=side, **half).value for side in ("greater", "less")]
    assert power_ttest(d, n, type=design).value == pytest.approx(sum(parts), abs=1e-12)
    assert parts[0] == power_ttest(d, n, alternative="one-sided", **half).value
    assert parts[0] == pytest.approx(power_ttest(-d, n, alternative="one-sided", **half).value, abs=1e-12)


@given(d=effects, power=st.floats(0.2, 0.99), design=types, alpha=alphas)
def test_the_sample_is_the_least_that_reaches_the_power(d, power, design, alpha):
    assume(power > alpha + 0.01)
    found = sample_size_ttest(d, power=power, type=design, alpha=alpha)
    assert found.power >= power
    assert found.power == power_ttest(d, found.n, type=design, alpha=alpha).value
    assert found.n - 1 <= found.value <= found.n + 1e-6
    if found.n > 2:
        assert power_ttest(d, found.n - 1, type=design, alpha=alpha).value < power
        assert power_ttest(d, found.value, type=design, alpha=alpha).value == pytest.approx(power, abs=1e-9)


@given(n=st.integers(2, 500), power=st.floats(0.2, 0.99), design=types)
def test_the_smallest_effect_has_just_this_power(n, power, design):
    found = effect_size_ttest(n, power=power, type=design)
    assert power_ttest(found.value, n, type=design).value == pytest.approx(power, abs=1e-9)


def test_groups_of_unequal_size_count_as_their_harmonic_mean_but_for_the_degrees_of_freedom():
    equal, unequal = power_ttest(0.5, 50, type="two-sample"), power_ttest(0.5, 30, n2=150, type="two-sample")
    assert unequal.value > equal.value  # 2/(1/30 + 1/150) is 50 too, and there are more degrees of freedom
    assert unequal.value == pytest.approx(equal.value, abs=0.01)
    assert power_ttest(0.5, 30, n2=150, type="two-sample").value == pytest.approx(
        power_ttest(0.5, 150, n2=30, type="two-sample").value
    )


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
        (lambda: power_anova(0.5, 1, k=3), "too few"),
        (lambda: power_anova(math.nan, 10, k=3), "not known"),
        (lambda: power_correlation(0.5, 3), "four pairs"),
        (lambda: sample_size_ttest(0.0), "no number"),
        (lambda: sample_size_ttest(-0.5, alternative="greater"), "no number"),
        (lambda: sample_size_ttest(math.nan), "not known"),
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
    assert int(sample_size_ttest(0.5)) == 34


def test_a_tiny_alpha_keeps_its_digits():
    """By scipy's tail function of the noncentral t, with the quantile from the lower tail."""
    for alpha in (1e-15, 1e-18, 1e-25):
        bar = -scipy_stats.t.ppf(alpha / 2, 299)
        wanted = 1 - noncentral_t_cdf(bar, 299, 0.5 * math.sqrt(300))
        assert power_ttest(0.5, 300, alpha=alpha).value == pytest.approx(wanted, rel=1e-6, abs=1e-15)
        assert power_ttest(0.5, 300, alpha=alpha / 2, alternative="greater").value == pytest.approx(wanted, rel=1e-6)
    assert power_ttest(0.5, 300, alpha=1e-15).value == pytest.approx(0.5677, abs=5e-5)
    assert 0 < power_correlation(0.3, 84, alpha=1e-25).value < 1e-10


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: power_ttest(0.5, 10, alpha=0), "alpha"),
        (lambda: power_ttest(0.5, 10, type="welch"), "type"),
        (lambda: power_ttest(0.5, 30, n2=10), "n2: must be left out of a paired test, got 10"),
        (lambda: effect_size_ttest(30, n2=10, type="one-sample"), "n2: must be left out"),
        (lambda: int(sample_size_ttest(0.0)), "n: not known: no number"),
        (lambda: power_ttest(0.5, 10, alternative="both"), "alternative"),
        (lambda: sample_size_ttest(0.5, power=80), "power"),
        (lambda: sample_size_ttest(0.5, power=0.04), "above alpha"),
        (lambda: power_anova(0.5, 10, k=1), "k: "),
        (lambda: power_correlation(1.0, 10), "r: "),
    ],
)
def test_what_makes_no_sense_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
