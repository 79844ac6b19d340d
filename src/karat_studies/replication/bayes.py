"""Evidence in one test: ln BF10 of t, z, F, R², and the bound from a p-value.

Every function returns the natural logarithm of the Bayes factor in favour of an effect: a
Bayes factor overflows at e^709.8, its logarithm does not. Nothing is capped. Arrays
broadcast. A single number outside its domain raises ValueError; in an array such an element
is NaN, unless `errors="raise"`. Correlations: `correlations`; counts: `counts`; ranks: `ranks`.
"""

from __future__ import annotations

import numpy as np

from karat_studies.replication import _mixture
from karat_studies.replication._inputs import (
    ALTERNATIVES,
    Floats,
    Numbers,
    Result,
    above_0,
    at_least_0,
    check_choice,
    counts,
    domain,
    evaluate,
    finite_above_0,
    floats,
    gamma_shift,
    unwrap,
    within_0_1,
)
from karat_studies.replication._mixture import log_meta_bf

SQRT_HALF = 0.7071067811865476
METHODS = ("jzs", "pearson", "bic")


def log_bf10_ttest(
    t: Numbers,
    n1: Numbers,
    n2: Numbers = None,
    *,
    rscale: Numbers = SQRT_HALF,
    alternative: str = "two-sided",
    errors: str = "nan",
) -> Result:
    """Ln BF10 of a t test: δ ~ Cauchy(0, rscale) against δ = 0 (Jeffreys–Zellner–Siow).

    Two independent groups of n1 and n2; one sample, or n1 pairs, if n2 is None. Welch's t
    is used unchanged. t = ±∞ (constant data) gives +∞. `alternative="greater"` puts the
    prior on δ > 0 only. Accurate to 1e-8 for |t| ≤ 300 and n ≤ 10⁷ (1e-11 for |t| ≤ 100).

        BF10 = ∫ (1 + Ng)^{-½} [(1 + t²/((1 + Ng)ν)) / (1 + t²/ν)]^{-(ν+1)/2} π(g) dg,
        g ~ InvGamma(½, rscale²/2), N = n1·n2/(n1 + n2) or n1, ν = n1 + n2 − 2 or n1 − 1

    >>> round(log_bf10_ttest(2.66, 40, 40), 6), round(log_bf10_ttest(50.0, 10**6, 10**6), 3)
    (1.54208, 1242.77)

    Rouder et al. (2009), Psychon. Bull. Rev. 16:225, eq. 1; default scale of BayesFactor and JASP.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    ts = floats("t", t)
    scale = finite_above_0("rscale", rscale, errors=errors)
    first = counts("n1", n1, least=2 if n2 is None else 1, errors=errors)
    if n2 is None:
        size = first
        df = first - 1
    else:
        second = counts("n2", n2, least=1, errors=errors)
        df = domain("n1 + n2", first + second - 2, lambda v: v >= 1, "at least 3", errors=errors)
        size = first * second / (first + second)

    t = ts
    g = size * scale * scale
    if alternative == "two-sided":
        return evaluate(lambda t, g, v: _mixture.log_single(t * t / v, g, (v + 1) / 2), t, g, df)
    side = int(alternative == "greater")
    return evaluate(
        lambda t, g, v: _mixture.log_halves(t, t * t / v, g, (v + 1) / 2)[side],
        t,
        g,
        df,
    )


def log_bf10_z(
    z: Numbers,
    n: Numbers,
    *,
    rscale: Numbers = SQRT_HALF,
    alternative: str = "two-sided",
    errors: str = "nan",
) -> Result:
    """Ln BF10 of an asymptotic z whose expectation is δ√n: δ ~ Cauchy(0, rscale) against δ = 0.

    The t test with infinite degrees of freedom. n is an effective number of observations
    and need not be whole: 3n/π for n ranked pairs. z = ±∞ gives +∞. Accurate to 1e-10.

        BF10 = ∫ (1 + ng)^{-½} exp(½z²·ng/(1 + ng)) π(g) dg, g ~ InvGamma(½, rscale²/2)

    >>> round(log_bf10_z(1.96, 50), 9)
    -0.074400489

    Rouder et al. (2009), with ν → ∞.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    zs = floats("z", z)
    size = finite_above_0("n", n, errors=errors)
    scale = finite_above_0("rscale", rscale, errors=errors)
    if alternative == "two-sided":
        return evaluate(
            lambda z, g: np.where(np.isinf(z), np.inf, _mixture.log_mixture_normal(z, g)),
            zs,
            size * scale * scale,
        )

    side = int(alternative == "greater")
    return evaluate(lambda z, g: _mixture.log_halves_normal(z, g)[side], zs, size * scale * scale)


def log_bf10_anova(
    f: Numbers,
    df1: Numbers,
    df2: Numbers,
    *,
    n_per_group: Numbers = None,
    rscale: Numbers = 0.5,
    method: str = "jzs",
    errors: str = "nan",
) -> Result:
    """Ln BF10 of a one-way F: effects of df1 + 1 groups against none.

    `method="jzs"`: standardised effects share a g with scale `rscale`; needs `n_per_group`,
    a number, or the sizes of the df1 + 1 groups (their harmonic mean counts; for two groups
    this is exactly the t test with rscale·√2). `"pearson"` needs only F and its degrees of
    freedom, exact under a Pearson type VI prior with α = −½. `"bic"` is the unit-information
    approximation with N = df1 + df2 + 1. Accurate to 1e-9 for F ≤ 10⁴ and N ≤ 10⁷.

    >>> round(log_bf10_anova(7.0756, 1, 78, n_per_group=40), 6)  # t = 2.66 with 40 and 40
    1.54208
    >>> round(log_bf10_anova(12, 3, 96, method="pearson"), 6)
    8.739627

    Rouder et al. (2012), J. Math. Psychol. 56:356; Wang & Sun (2014), J. Stat. Comput. Simul.
    84:2512; Masson (2011), Behav. Res. Methods 43:679.
    """
    check_choice("method", method, METHODS)
    fs = at_least_0("f", f, errors=errors)
    x = counts("df1", df1, least=1, errors=errors)
    y = finite_above_0("df2", df2, errors=errors)
    if method == "pearson":
        return evaluate(_pearson_type, fs, x, y)
    if method == "bic":
        return evaluate(
            lambda f, x, y: 0.5 * ((x + y + 1) * np.log1p(x * f / y) - x * np.log(x + y + 1)),
            fs,
            x,
            y,
        )

    if n_per_group is None:
        raise ValueError(
            "n_per_group: is required for method='jzs'; without it use method='pearson'"
        )

    size = finite_above_0("n_per_group", n_per_group, errors=errors)
    if size.ndim:
        groups = size.shape[-1]
        if groups > 1 and not np.all(np.isnan(x) | (x == groups - 1)):
            raise ValueError(f"n_per_group: must be one number, or df1 + 1 sizes, got {groups}")
        size = np.asarray(groups / (1.0 / size).sum(axis=-1))  # the harmonic mean

    scale = finite_above_0("rscale", rscale, errors=errors)
    return evaluate(
        lambda f, x, y, g: _mixture.log_mixture(x, x * f / y, g, (x + y) / 2),
        fs,
        x,
        y,
        size * scale * scale,
    )


def _pearson_type(f: Floats, x: Floats, y: Floats) -> Floats:
    """Γ(x/2 + α + 1)Γ(y/2) / (Γ((x + y)/2)Γ(α + 1)) · (1 + xF/y)^{y/2 − α − 1} with α = −½."""
    growth = y / 2 - 0.5
    rise = np.where(growth == 0, 0.0, growth * np.log1p(x * f / y))
    return gamma_shift(np.full_like(x, 0.5), x / 2) - gamma_shift(y / 2, x / 2) + rise


def log_bf10_regression(
    r2: Numbers,
    n: Numbers,
    p: Numbers,
    *,
    rscale: Numbers = 0.3535533905932738,
    errors: str = "nan",
) -> Result:
    """Ln BF10 of a regression: p predictors that explain the share R² of variance in n
    observations, against none.

    Scale √2/4 on standardised slopes, as in BayesFactor. With p = 1 and rscale = 1 this is
    the correlation test of Wetzels & Wagenmakers (2012). R² = 1 gives +∞. n ≥ p + 2.

        BF10 = ∫ (1 + Ng)^{(N−p−1)/2} (1 + Ng(1 − R²))^{−(N−1)/2} π(g) dg,
        g ~ InvGamma(½, rscale²/2)

    >>> round(log_bf10_regression(0.82, 51, 4, rscale=0.5), 9)
    31.726885876

    Liang et al. (2008), J. Am. Stat. Assoc. 103:410; Rouder & Morey (2012), Multivariate Behav.
    Res. 47:877.
    """
    share = within_0_1("r2", r2, errors=errors)
    predictors = counts("p", p, least=1, errors=errors)
    size = counts("n", n, least=3, errors=errors)
    spare = domain("n − p", size - predictors, lambda v: v >= 2, "at least 2", errors=errors)
    scale = finite_above_0("rscale", rscale, errors=errors)
    return evaluate(
        lambda r, n, p, g, _: _mixture.log_mixture(p, r / (1 - r), g, (n - 1) / 2),
        share,
        size,
        predictors,
        size * scale * scale,
        spare,
    )


def log_bf10_meta_ttest(
    t: Numbers,
    n1: Numbers,
    n2: Numbers = None,
    *,
    rscale: float = SQRT_HALF,
    alternative: str = "two-sided",
) -> float:
    """Ln BF10 of several t tests of one δ ~ Cauchy(0, rscale): multiplied over the last axis. A
    float.

        BF10 = ∫ Π_i [f(t_i | ν_i, δ√N_i) / f(t_i | ν_i, 0)] Cauchy(δ; 0, rscale) dδ

    Accurate to 1e-9, one-sided at |t| below 1e-3 to 1e-7, if the tests do not contradict each
    other by more than 30 standard errors.

    >>> round(log_bf10_meta_ttest([2.1, 1.4], [30, 60]), 6)
    0.421952

    Rouder & Morey (2011), Psychon. Bull. Rev. 18:682.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    scale = float(finite_above_0("rscale", rscale))
    ts = np.atleast_1d(floats("t", t))
    first = np.atleast_1d(counts("n1", n1, least=2 if n2 is None else 1, errors="raise"))
    if n2 is None:
        size = first
        df = first - 1
    else:
        second = np.atleast_1d(counts("n2", n2, least=1, errors="raise"))
        size = first * second / (first + second)
        df = first + second - 2

    ts, size, df = np.broadcast_arrays(ts, size, df)
    return log_meta_bf(ts, np.sqrt(size), df, scale, alternative)


def log_bf10_normal_prior(
    estimate: Numbers,
    se: Numbers,
    *,
    prior_sd: Numbers,
    errors: str = "nan",
) -> Result:
    """Ln BF10 of an estimate with a standard error: effect ~ Normal(0, prior_sd²) against 0.

        ln BF10 = ½ ln(se²/(se² + prior_sd²)) + ½ z² prior_sd²/(se² + prior_sd²), z = estimate/se

    >>> round(log_bf10_normal_prior(0.5, 0.2, prior_sd=1), 12)
    1.375759423297

    Dienes (2014), Front. Psychol. 5:781.
    """
    value = floats("estimate", estimate)
    error = above_0("se", se, errors=errors)
    prior = above_0("prior_sd", prior_sd, errors=errors)

    def kernel(e: Floats, s: Floats, sd: Floats) -> Floats:
        share = 1 / (1 + (s / sd) ** 2)
        return np.asarray(0.5 * np.log1p(-share) + 0.5 * (e / s) ** 2 * share)

    return evaluate(kernel, value, error, prior)


def log_bf10_bound_from_p(p: Numbers, *, errors: str = "nan") -> Result:
    """The maximum of ln BF10 for a p-value: a bound, never a score.

    −1 − ln p − ln(−ln p) below 1/e, else 0; p = 0 gives +∞.

    >>> round(log_bf10_bound_from_p(0.05), 4)
    0.8985

    Sellke, Bayarri & Berger (2001), Am. Stat. 55:62 (Vovk–Sellke).
    """
    ps = within_0_1("p", p, errors=errors)
    with np.errstate(all="ignore"):
        logs = np.log(ps)
        bound = np.where(ps < np.exp(-1.0), -1.0 - logs - np.log(-logs), 0.0)

    bound = np.where(ps == 0, np.inf, bound)
    return unwrap(np.where(np.isnan(ps), np.nan, bound))
