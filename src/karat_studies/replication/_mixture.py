"""The integral behind every Bayes factor with a Cauchy prior: normal effects with variance g, g ~
InvGamma(½, ½).

With y = 1/(2g), x = 2y/G, W the unexplained share, c = (1 − W)/W:

    ln BF10 = −p₂ ln W + (p/2) ln(2/G) − ½ ln π + ln S,
    S = ∫₀^∞ y^{(p−1)/2} e^{−y} (1 + x)^{−p/2} (1 + c·x/(1 + x))^{−p₂} dy

The factor that overflows, W^{−p₂}, is outside the integral. The trapezoid rule in s with
y = exp(s − e^{−s})/λ converges uniformly, because all singularities lie at Im ln y = ±π.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from karat.stats import special
from karat_studies.replication._inputs import Floats, gamma_shift

NODES = 48  # error below 4e-12 in ln BF against 40-digit quadrature; 32 nodes: 3e-8
LOW = -3.55  # lower limit of s: y is e^-38 / λ
FEW = 32  # up to this many elements all nodes are in one array, as calls cost more than arithmetic
GONE = 36.0  # e^-36: below the last bit of the sum
LN2 = math.log(2.0)
LN_PI = math.log(math.pi)


def log_single(c: Floats, g: Floats, p2: Floats) -> Floats:
    """Ln BF10 for one parameter (p = 1): t tests, and F with one numerator degree of freedom."""
    scale = 2.0 / g
    rate = 1.0 + scale * (0.5 + p2 * c)
    # The upper limit of s: ln of λ·y at which the integrand has dropped by e^-36.
    y_high = _highest(special.expm1(GONE / p2) / c, g, GONE)
    h = (np.log(rate * y_high) + 0.05 - LOW) / (NODES - 1)
    total = np.zeros_like(h)
    for nodes in np.array_split(np.arange(NODES), 1 if h.size <= FEW else NODES):
        s = LOW + h * nodes[:, None]
        steep = np.exp(-s)
        y = np.exp(s - steep) / rate
        x = y * scale
        falling = np.exp(-y - p2 * np.log1p(c * x / (1.0 + x))) / np.sqrt(1.0 + x)
        total += (falling * y * (1.0 + steep)).sum(axis=0)

    log_bf = p2 * np.log1p(c) + 0.5 * (np.log(scale) - LN_PI) + np.log(total * h)
    return np.where(np.isposinf(c), np.inf, log_bf)


def log_mixture(p: Floats, c: Floats, g: Floats, p2: Floats) -> Floats:
    """Ln BF10 for p parameters that share one g: ANOVA, regression."""
    alone = p == 1
    log_bf = np.empty_like(c)
    if alone.any():
        log_bf[alone] = log_single(c[alone], g[alone], p2[alone])
    if not alone.all():
        several = ~alone
        p = p[several]
        c = c[several]
        g = g[several]
        p2 = p2[several]
        scale = 2.0 / g
        power = (p - 1.0) / 2.0
        rate = 1.0 + scale * (p / 2.0 + p2 * c)
        # the tail of Γ((p + 1)/2), by Chernoff's bound
        gone = GONE + power + np.sqrt(2.0 * GONE * power)
        y_high = _highest(special.expm1(gone / p2) / c, g, gone)
        nodes = int(NODES * max(1.0, np.sqrt(p.max() / 4.0)))  # the peak narrows as 1/√p
        step = (np.log(rate * y_high) + 0.05 - LOW) / (nodes - 1)
        s = LOW + step * np.arange(nodes)[:, None]
        steep = np.exp(-s)
        log_y = s - steep  # but for λ
        y = np.exp(log_y) / rate
        x = y * scale
        log_f = (power + 1.0) * log_y + np.log1p(steep) - y - 0.5 * p * np.log1p(x)
        log_f -= p2 * np.log1p(c * x / (1.0 + x))
        log_s = log_sum(log_f, step) - (power + 1.0) * np.log(rate)
        of_these = p2 * np.log1p(c) + 0.5 * p * np.log(scale) - 0.5 * LN_PI + log_s
        log_bf[several] = np.where(np.isposinf(c), np.inf, of_these)

    return log_bf


def log_sum(log_f: Floats, step: Floats) -> Floats:
    """Ln of an integral, from ln of its integrand at nodes a step apart."""
    top = log_f.max(axis=0)
    return np.asarray(top + np.log(np.exp(log_f - top).sum(axis=0) * step))


def _highest(q: Floats, g: Floats, gone: Floats | float) -> Floats:
    """The y at which the share x/(1 + x) is q, beyond which the integrand is negligible; at most
    `gone`.
    """
    return np.where(q < 1.0, np.minimum(gone, g * q / (2.0 * (1.0 - q))), gone)


def log_mixture_normal(z: Floats, g: Floats) -> Floats:
    """Ln BF10 of an estimate with known standard error: the limit of infinite degrees of
    freedom.
    """
    return _normal_sum(z, g, wrong=False)


def _normal_sum(z: Floats, g: Floats, *, wrong: bool) -> Floats:
    half = 0.5 * z * z
    scale = 2.0 / g
    rate = 1.0 + scale * (0.5 + half)
    if wrong:
        y_high = np.full_like(half, GONE)
    else:
        y_high = _highest(GONE / half, g, GONE)

    step = (np.log(rate * y_high) + 0.05 - LOW) / (NODES - 1)
    s = LOW + step * np.arange(NODES)[:, None]
    steep = np.exp(-s)
    y = np.exp(s - steep) / rate
    x = y * scale
    weight = y * (1.0 + steep) * np.exp(-y) / np.sqrt(1.0 + x)
    if wrong:
        inner = special.erfcx(np.abs(z) * np.sqrt(0.5 / (1.0 + x)))
    else:
        inner = np.exp(-half * x / (1.0 + x))

    log_s = np.log((weight * inner).sum(axis=0) * step) + 0.5 * (np.log(scale) - LN_PI)
    return np.asarray(log_s if wrong else log_s + half)


def log_halves(t: Floats, c: Floats, g: Floats, p2: Floats) -> tuple[Floats, Floats]:
    """Ln BF of (effects below 0, effects above 0) against none, each with a half-Cauchy prior."""
    # Ln BF of the wrong direction: 1/B(p₂, ½) ∫₀^∞ e^{−p₂w} E^{−½} erfcx(√(G/2·(d + (1 − d)E)/E))
    # dw.
    d = np.where(np.isposinf(c), 1.0, c / (1.0 + c))
    low, nodes = -4.3, 56  # deeper than LOW: at t = 0 the integrand starts as w^{-½}
    step = (np.log(GONE) + 0.05 - low) / (nodes - 1)
    total = np.zeros_like(c)
    for some in np.array_split(low + step * np.arange(nodes), 1 if c.size <= FEW else nodes):
        s = some[:, None]
        steep = np.exp(-s)
        u = np.exp(s - steep)
        e = -special.expm1(-u / p2)
        tail = special.erfcx(np.sqrt(0.5 * g * (d + (1.0 - d) * e) / e))
        total += (u * (1.0 + steep) * np.exp(-u) / np.sqrt(e) * tail).sum(axis=0)

    minor = np.asarray(np.log(total * step / p2) + gamma_shift(p2, 0.5) - 0.5 * LN_PI)
    return _halves(t, log_single(c, g, p2), minor)


def log_halves_normal(z: Floats, g: Floats) -> tuple[Floats, Floats]:
    """The same for an estimate with known standard error."""
    return _halves(z, log_mixture_normal(z, g), _normal_sum(z, g, wrong=True))


def _halves(t: Floats, both: Floats, minor: Floats) -> tuple[Floats, Floats]:
    minor = np.where(t == 0, both, np.minimum(minor, both))
    major = LN2 + both + np.log1p(-0.5 * np.exp(minor - both))
    major = np.where(t == 0, both, major)
    return np.where(t > 0, minor, major), np.where(t > 0, major, minor)


NEGLIGIBLE = 45.0  # e^-45 of the peak: anything beyond is negligible


def log_likelihood_ratio(t: float, df: float, ncp: Floats) -> Floats:
    """Ln f(t | ν, ncp) − ln f(t | ν, 0) of Student's noncentral t, for every ncp.

    e^{−ncp²ν/(2(t²+ν))} · ∫ v^ν e^{−(v−a)²/2} dv / ∫ v^ν e^{−v²/2} dv over v > 0, with a =
    t·ncp/√(t² + ν): log-concave, by Gauss–Legendre about its peak.
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

    if alternative == "two-sided":
        side = 0
    elif alternative == "greater":
        side = 1
    else:
        side = -1

    integral = _log_integral(
        log_f,
        t,
        root_n,
        df,
        side=side,
    )
    return integral + (0.0 if alternative == "two-sided" else math.log(2.0))


def log_effect_bf(t: Floats, root_n: Floats, df: Floats) -> float:
    """Ln ∫ Π f(t_i | δ)/f(t_i | 0) dδ: the same with a flat, improper prior."""
    return _log_integral(lambda delta: _likelihood(t, root_n, df, delta), t, root_n, df, side=0)


def _likelihood(t: Floats, root_n: Floats, df: Floats, delta: Floats) -> Floats:
    total = np.zeros_like(delta)
    for statistic, root, free in zip(t.tolist(), root_n.tolist(), df.tolist(), strict=True):
        total += log_likelihood_ratio(statistic, free, delta * root)
    return np.asarray(total)


def _log_integral(log_f: object, t: Floats, root_n: Floats, df: Floats, *, side: int) -> float:
    """Ln ∫ e^{log_f} over all δ (side 0), δ > 0 (1), δ < 0 (−1): a coarse scan, then Gauss–Legendre
    near the peak.
    """
    assert callable(log_f)
    weight = root_n**2 / (1 + t**2 / (2 * df))
    centre = float((t / root_n * weight).sum() / weight.sum())
    sd = float(1 / np.sqrt(weight.sum()))
    grid = np.concatenate(
        [centre + sd * np.linspace(-40, 40, 321), np.sinh(np.linspace(-7, 7, 141)) * sd, t / root_n]
    )
    grid = np.unique(np.concatenate([grid, [0.0]]))
    if side:
        grid = grid[grid * side >= 0]
    with np.errstate(all="ignore"):
        seen = np.nan_to_num(log_f(grid), nan=-np.inf)
        kept = np.flatnonzero(seen > seen.max() - NEGLIGIBLE)
        low = grid[max(0, kept[0] - 1)]
        high = grid[min(grid.size - 1, kept[-1] + 1)]
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
