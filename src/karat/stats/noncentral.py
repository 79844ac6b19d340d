"""Student's t and Fisher's F under an effect, as used for power."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from karat.stats import special
from karat.stats._groups import Floats

_GONE = 45.0  # e^-45 of the peak: anything beyond is negligible
_NODES = 1200


def noncentral_t_cdf(t: float, df: float, ncp: float) -> float:
    """P(T ≤ t) of the noncentral t, exact even far out in its tails.

    The mean of Φ(t·s − ncp) over s = √(χ²_ν/ν), by the trapezoid rule in ln s. SciPy 1.12's
    `nctdtr` is wrong in the tails and 1.17's `nct.cdf` is NaN there. NaN gives NaN;
    raises ValueError for df ≤ 0.

    >>> round(noncentral_t_cdf(5, 30, 4), 12)
    0.789609424789

    Johnson, Kotz and Balakrishnan (1995), Continuous Univariate Distributions 2, chapter 31.
    """
    chance = _mean_over_spread(
        df,
        ncp,
        t,
        lambda s: np.asarray(special.log_ndtr(t * s - ncp), dtype=np.float64),
    )
    return 1.0 if chance > 1 else chance  # by rounding; NaN stays NaN


def noncentral_t_above(t: float, df: float, ncp: float) -> float:
    """P(T > t), as exact in its tail as the cdf is in the other."""
    return noncentral_t_cdf(-t, df, -ncp)


def noncentral_t_pdf(t: float, df: float, ncp: float) -> float:
    """The density of the noncentral t: the mean of s·φ(t·s − ncp).

    >>> round(noncentral_t_pdf(5, 30, 4), 9)
    0.228208494
    """
    return _mean_over_spread(
        df,
        ncp,
        t,
        lambda s: np.asarray(np.log(s) - 0.5 * (t * s - ncp) ** 2 - 0.5 * math.log(2 * math.pi)),
    )


def _mean_over_spread(
    df: float,
    ncp: float,
    t: float,
    log_kernel: Callable[[Floats], Floats],
) -> float:
    """E[kernel(s)], s = √(χ²_ν/ν): first the range that matters, then a step finer than its
    steepest part.
    """
    if math.isnan(df) or math.isnan(ncp) or math.isnan(t):
        return math.nan
    if not (df > 0 and math.isfinite(df) and math.isfinite(ncp) and math.isfinite(t)):
        raise ValueError(
            f"df: must be above 0, and all finite, got t = {t:g}, df = {df:g}, ncp = {ncp:g}"
        )

    def log_f(u: Floats) -> Floats:
        return np.asarray(
            df * (u - 0.5 * special.expm1(2 * u)) + log_kernel(np.exp(u)), dtype=np.float64
        )

    width = 1 / math.sqrt(2 * df)
    low = -14 * width - 800 / df
    high = min(40 * width + 1, 20.0)
    for _ in range(60):
        u = np.linspace(low, high, 400)
        seen = log_f(u)
        # ≥: subtracting 45 from a huge number changes nothing
        kept = np.flatnonzero(seen >= seen.max() - _GONE)
        first = max(0, int(kept[0]) - 1)
        last = min(u.size - 1, int(kept[-1]) + 1)
        low = float(u[first])
        high = float(u[last])
        if last - first > 200:
            break

    # Φ(t·s − ncp) rises within 1/|ncp| of ln s: a wider step would miss it.
    steps = min(200_000, max(_NODES, math.ceil((high - low) * (abs(ncp) + 10) / 0.7)))
    u = np.linspace(low, high, steps)
    values = log_f(u)
    top = float(values.max())
    total = math.log(float(np.exp(values - top).sum()) * float(u[1] - u[0]))
    # The log density of ln s at 0, without the difference of large logarithms.
    half = df / 2
    log_root = 0.5 * math.log(2 * math.pi)
    stirling = 1 / (12 * half) - 1 / (360 * half**3) + 1 / (1260 * half**5)
    if half < 50:
        stirling = float(special.gammaln(half)) - (half - 0.5) * math.log(half) + half - log_root

    density = math.log(2) + 0.5 * math.log(half) - log_root - stirling
    return math.exp(top + total + density)


def noncentral_f_above(f: float, df1: float, df2: float, ncp: float) -> float:
    """P(F > f) of the noncentral F: Poisson weights over incomplete beta functions."""
    mean = ncp / 2
    reach = 12 * math.sqrt(mean) + 40
    j = np.arange(max(0, math.floor(mean - reach)), math.ceil(mean + reach) + 1, dtype=np.float64)
    log_weights = special.xlogy(j, mean) - mean - special.gammaln(j + 1)
    weights = np.exp(log_weights)
    above = special.betainc(df2 / 2, df1 / 2 + j, df2 / (df2 + df1 * f))
    return float(min(1.0, (weights * above).sum()))
