"""Evidence in one test: ln BF10 of t, z and F.

Every function returns the natural logarithm of the Bayes factor in favour of an effect: a
Bayes factor overflows at e^709.8, its logarithm does not. Nothing is capped. Arrays
broadcast. A single number outside its domain raises ValueError; in an array such an element
is NaN. Correlations: `correlations`; counts: `counts`; ranks: `ranks`.
"""

from __future__ import annotations

import numpy as np

from karat_studies.replication import _mixture
from karat_studies.replication._inputs import (
    ALTERNATIVES,
    Floats,
    Numbers,
    Result,
    at_least_0,
    check_choice,
    counts,
    domain,
    evaluate,
    finite_above_0,
    floats,
    gamma_shift,
)
from karat_studies.replication._mixture import log_meta_bf

SQRT_HALF = 0.7071067811865476
METHODS = ("jzs", "pearson")


def log_bf10_ttest(
    t: Numbers,
    n1: Numbers,
    n2: Numbers | None = None,
    *,
    rscale: Numbers = SQRT_HALF,
    alternative: str = "two-sided",
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
    scale = finite_above_0("rscale", rscale)
    first = counts("n1", n1, least=2 if n2 is None else 1)
    if n2 is None:
        size, df = first, first - 1
    else:
        second = counts("n2", n2, least=1)
        df = domain("n1 + n2", first + second - 2, lambda v: v >= 1, "at least 3")
        size = first * second / (first + second)

    t = ts
    g = size * scale * scale
    if alternative == "two-sided":
        return evaluate(lambda t, g, v: _mixture.log_single(t * t / v, g, (v + 1) / 2), t, g, df)
    side = int(alternative == "greater")
    return evaluate(
        lambda t, g, v: _mixture.log_halves(t, t * t / v, g, (v + 1) / 2)[side], t, g, df
    )


def log_bf10_z(
    z: Numbers, n: Numbers, *, rscale: Numbers = SQRT_HALF, alternative: str = "two-sided"
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
    size = finite_above_0("n", n)
    scale = finite_above_0("rscale", rscale)
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
    n_per_group: Numbers | None = None,
    rscale: Numbers = 0.5,
    method: str = "jzs",
) -> Result:
    """Ln BF10 of a one-way F: effects of df1 + 1 groups against none.

    `method="jzs"`: standardised effects share a g with scale `rscale`; needs `n_per_group`,
    a number, or the sizes of the df1 + 1 groups (their harmonic mean counts; for two groups
    this is exactly the t test with rscale·√2). `"pearson"` needs only F and its degrees of
    freedom, exact under a Pearson type VI prior with α = −½. Accurate to 1e-9 for F ≤ 10⁴ and
    N ≤ 10⁷.

    >>> round(log_bf10_anova(7.0756, 1, 78, n_per_group=40), 6)  # t = 2.66 with 40 and 40
    1.54208
    >>> round(log_bf10_anova(12, 3, 96, method="pearson"), 6)
    8.739627

    Rouder et al. (2012), J. Math. Psychol. 56:356; Wang & Sun (2014), J. Stat. Comput. Simul.
    84:2512.
    """
    check_choice("method", method, METHODS)
    fs = at_least_0("f", f)
    x = counts("df1", df1, least=1)
    y = finite_above_0("df2", df2)
    if method == "pearson":
        return evaluate(_pearson_type, fs, x, y)
    if n_per_group is None:
        raise ValueError(
            "n_per_group: is required for method='jzs'; without it use method='pearson'"
        )

    size = _harmonic(n_per_group, x)
    scale = finite_above_0("rscale", rscale)
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


def _harmonic(sizes: Numbers, df1: Floats) -> Floats:
    array = finite_above_0("n_per_group", sizes)
    if array.ndim == 0:
        return array
    groups = array.shape[-1]
    if groups > 1 and not np.all(np.isnan(df1) | (df1 == groups - 1)):
        raise ValueError(f"n_per_group: must be one number, or df1 + 1 sizes, got {groups}")
    return np.asarray(groups / (1.0 / array).sum(axis=-1))


def log_bf10_meta_ttest(
    t: Numbers, n1: Numbers, n2: Numbers | None = None, *, rscale: float = SQRT_HALF
) -> float:
    """Ln BF10 of several t tests of one δ ~ Cauchy(0, rscale): multiplied over the last axis. A
    float.

        BF10 = ∫ Π_i [f(t_i | ν_i, δ√N_i) / f(t_i | ν_i, 0)] Cauchy(δ; 0, rscale) dδ

    Accurate to 1e-9 if the tests do not contradict each other by more than 30 standard errors.

    >>> round(log_bf10_meta_ttest([2.1, 1.4], [30, 60]), 6)
    0.421952

    Rouder & Morey (2011), Psychon. Bull. Rev. 18:682.
    """
    scale = float(finite_above_0("rscale", rscale))
    ts = np.atleast_1d(floats("t", t))
    first = np.atleast_1d(counts("n1", n1, least=2 if n2 is None else 1))
    if n2 is None:
        size, df = first, first - 1
    else:
        second = np.atleast_1d(counts("n2", n2, least=1))
        size, df = first * second / (first + second), first + second - 2

    ts, size, df = np.broadcast_arrays(ts, size, df)
    return log_meta_bf(ts, np.sqrt(size), df, scale)
