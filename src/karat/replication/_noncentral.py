"""The likelihood of a standardised effect given t, as a ratio to no effect, and its integrals."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from karat.replication._inputs import Floats

__all__ = ["log_effect_bf", "log_meta_bf"]

GONE = 45.0  # e^-45 of the peak: beyond it nothing counts


def log_likelihood_ratio(t: float, df: float, ncp: Floats) -> Floats:
    """Ln f(t | ν, ncp) − ln f(t | ν, 0) of Student's noncentral t, for every ncp.

    e^{−ncp²ν/(2(t²+ν))} · ∫ v^ν e^{−(v−a)²/2} dv / ∫ v^ν e^{−v²/2} dv over v > 0, with a = t·ncp/√(t² + ν):
    log-concave, by Gauss–Legendre about its peak.
    """
    a = t * ncp / math.sqrt(t * t + df)
    rise = _log_hh(df, a) - _log_hh(df, np.zeros(1))
    return np.asarray(-0.5 * ncp * ncp * df / (t * t + df) + rise, dtype=np.float64)


def _log_hh(df: float, a: Floats) -> Floats:
    root = np.sqrt(a * a + 4 * df)
    peak = np.where(a > 0, (a + root) / 2, 2 * df / (root - a))
    width = 1 / np.sqrt(1 + df / peak**2)
    reach = 12 + 30 / math.sqrt(df)
    low = np.maximum(peak - reach * width, 0.0)
    points, weights = _legendre(6, 24)
    v = low + (peak + reach * width - low) * points[:, None]
    log_f = df * np.log(v / peak) - 0.5 * (v - a) ** 2 + 0.5 * (peak - a) ** 2
    total = (np.exp(log_f) * weights[:, None]).sum(axis=0) * (peak + reach * width - low)
    return np.asarray(np.log(total) + df * np.log(peak) - 0.5 * (peak - a) ** 2)


def log_meta_bf(t: Floats, root_n: Floats, df: Floats, rscale: float, alternative: str) -> float:
    """Ln BF10 of tests that share one δ ~ Cauchy(0, rscale)."""
    if np.isnan(t).any():
        return math.nan

    def log_f(delta: Floats) -> Floats:
        prior = -np.log(np.pi * rscale) - np.log1p((delta / rscale) ** 2)
        return np.asarray(_likelihood(t, root_n, df, delta) + prior)

    whole = _log_integral(log_f, t, root_n, df, side=0 if alternative == "two-sided" else _side(alternative))
    return whole + (0.0 if alternative == "two-sided" else math.log(2.0))


def _side(alternative: str) -> int:
    return 1 if alternative == "greater" else -1


def log_effect_bf(t: Floats, root_n: Floats, df: Floats) -> float:
    """Ln ∫ Π f(t_i | δ)/f(t_i | 0) dδ: the same with a flat, improper prior."""
    return _log_integral(lambda delta: _likelihood(t, root_n, df, delta), t, root_n, df, side=0)


def _likelihood(t: Floats, root_n: Floats, df: Floats, delta: Floats) -> Floats:
    total = np.zeros_like(delta)
    for one, root, free in zip(t.tolist(), root_n.tolist(), df.tolist(), strict=True):
        total += log_likelihood_ratio(one, free, delta * root)
    return np.asarray(total)


def _log_integral(log_f: object, t: Floats, root_n: Floats, df: Floats, *, side: int) -> float:
    """Ln ∫ e^{log_f} over all δ (side 0), δ > 0 (1), δ < 0 (−1): a coarse look, then Gauss–Legendre on what counts."""
    assert callable(log_f)
    weight = root_n**2 / (1 + t**2 / (2 * df))
    centre, sd = float((t / root_n * weight).sum() / weight.sum()), float(1 / np.sqrt(weight.sum()))
    grid = np.concatenate([centre + sd * np.linspace(-40, 40, 321), np.sinh(np.linspace(-7, 7, 141)) * sd, t / root_n])
    grid = np.unique(np.concatenate([grid, [0.0]]))
    grid = grid[grid * side >= 0] if side else grid
    with np.errstate(all="ignore"):
        seen = np.nan_to_num(log_f(grid), nan=-np.inf)
        kept = np.flatnonzero(seen > seen.max() - GONE)
        low, high = grid[max(0, kept[0] - 1)], grid[min(grid.size - 1, kept[-1] + 1)]
        points, weights = _legendre(24, 24)
        values = log_f(low + (high - low) * points)
        top = float(values.max())
        return top + math.log(float((np.exp(values - top) * weights).sum()) * float(high - low))


@cache
def _legendre(panels: int, order: int) -> tuple[Floats, Floats]:
    """Nodes and weights on (0, 1): equal panels of Gauss–Legendre."""
    points, weights = np.polynomial.legendre.leggauss(order)
    nodes = np.concatenate([(points + 1) / (2 * panels) + k / panels for k in range(panels)])
    return nodes, np.tile(weights / (2 * panels), panels)
