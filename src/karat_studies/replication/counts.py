"""Evidence in counts: ln BF10 of a share against a fixed one, and of a contingency table."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from karat.stats import special
from karat_studies.replication._inputs import (
    ALTERNATIVES,
    BLOCK,
    Floats,
    Numbers,
    Result,
    check_choice,
    counts,
    domain,
    evaluate,
    finite_above_0,
    floats,
    gamma_shift,
    stirling,
    unwrap,
)

SAMPLINGS = ("poisson", "joint_multinomial", "independent_multinomial", "hypergeometric")
HALF_LN_2PI = 0.5 * math.log(2 * math.pi)


def log_bf10_binomial(
    k: Numbers,
    n: Numbers,
    *,
    p0: Numbers = 0.5,
    a: Numbers = 1.0,
    b: Numbers = 1.0,
    alternative: str = "two-sided",
    errors: str = "nan",
) -> Result:
    """Ln BF10 of k successes of n: share ~ Beta(a, b) against share = p0.

    One-sided: the prior truncated at p0. Full precision to n = 10¹⁵ (saddle-point binomial
    probabilities), one-sided to 1e-10.

        BF10 = B(k + a, n − k + b) / (B(a, b) p0^k (1 − p0)^{n−k})
        a = b = 1: 1/((n + 1)·dbinom(k; n, p0))

    >>> round(log_bf10_binomial(7, 10), 12)
    -0.253915209981

    Jeffreys (1961), Theory of Probability, 5.1; Loader (2000), Fast and accurate computation of
    binomial probabilities.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    hits, size, share = _hits(k, n, p0, errors)
    prior_a = finite_above_0("a", a, errors=errors)
    prior_b = finite_above_0("b", b, errors=errors)
    if alternative == "two-sided":
        return evaluate(_binomial, hits, size, share, prior_a, prior_b)
    greater = alternative == "greater"
    return evaluate(
        lambda *args: _binomial_half(greater, *args),
        hits,
        size,
        share,
        prior_a,
        prior_b,
    )


def _hits(k: Numbers, n: Numbers, p0: Numbers, errors: str) -> tuple[Floats, Floats, Floats]:
    size = counts("n", n, errors=errors)
    hits = counts("k", k, errors=errors)
    hits = domain("k", hits + 0 * size, lambda v: v <= size, "at most n", errors=errors)
    return (
        hits,
        size,
        domain("p0", p0, lambda v: (v > 0) & (v < 1), "between 0 and 1", errors=errors),
    )


def _binomial(k: Floats, n: Floats, p0: Floats, a: Floats, b: Floats) -> Floats:
    log_bf = -np.log1p(n) - log_dbinom(k, n, p0)
    plain = (a == 1) & (b == 1)
    if plain.all():
        return np.asarray(log_bf)
    moved = (
        gamma_shift(k + 1, a - 1) + gamma_shift(n - k + 1, b - 1) - gamma_shift(n + 2, a + b - 2)
    )
    return np.asarray(log_bf + np.where(plain, 0.0, moved - special.betaln(a, b)))


def log_bf10_binomial_logistic(
    k: Numbers,
    n: Numbers,
    *,
    p0: Numbers = 0.5,
    rscale: Numbers = 0.5,
    errors: str = "nan",
) -> Result:
    """Ln BF10 of k successes of n: logit(share) − logit(p0) ~ Logistic(0, rscale) against share =
    p0.

    The prior of R's BayesFactor, for comparison with it; tests are scored with the beta prior of
    `log_bf10_binomial`. Accurate to 1e-9 for n ≤ 10⁷.

        BF10 = ∫ exp(kθ − n·ln(1 + e^θ) − kθ₀ + n·ln(1 + e^θ₀)) f((θ − θ₀)/r)/r dθ
        f(u) = e^{−u}/(1 + e^{−u})²

    >>> round(log_bf10_binomial_logistic(480, 1000), 6)
    -1.743998

    Morey & Rouder, BayesFactor (R), `proportionBF`.
    """
    hits, size, share = _hits(k, n, p0, errors)
    spread = finite_above_0("rscale", rscale, errors=errors)
    return evaluate(_binomial_logistic, hits, size, share, spread)


def _binomial_logistic(k: Floats, n: Floats, p0: Floats, r: Floats) -> Floats:
    """Trapezoid in u with θ = mode + s·sinh(u): the integrand is log-concave, its tails
    exponential.
    """
    start = special.logit(p0)
    low = np.minimum(start, -40.0) - 40
    high = np.maximum(start, 40.0) + 40
    for _ in range(64):
        mode = (low + high) / 2
        rising = k - n * special.expit(mode) - np.tanh((mode - start) / (2 * r)) / r > 0
        low = np.where(rising, mode, low)
        high = np.where(rising, high, mode)

    steep = np.cosh(np.clip((mode - start) / (2 * r), -300, 300))
    bend = n * special.expit(mode) * special.expit(-mode) + 1 / (2 * r * r * steep**2)
    width = 1 / np.sqrt(bend)
    reach = np.arcsinh((45 * r + 45) / width)
    miss = n - k
    origin = k * special.log_expit(start) + miss * special.log_expit(-start)
    total = np.zeros_like(k)
    peak = np.full_like(k, -np.inf)
    for u in np.linspace(-1.0, 1.0, 321):
        theta = mode + width * np.sinh(reach * u)
        away = np.abs(theta - start) / r
        here = (
            k * special.log_expit(theta)
            + miss * special.log_expit(-theta)
            - origin
            - away
            - 2 * np.log1p(np.exp(-away))
        )
        here = here + np.log(np.cosh(reach * u))
        top = np.maximum(peak, here)
        total = total * np.exp(peak - top) + np.exp(here - top)
        peak = top

    return np.asarray(peak + np.log(total * reach * width / (160 * r)))


def _binomial_half(greater: bool, k: Floats, n: Floats, p0: Floats, a: Floats, b: Floats) -> Floats:
    if not greater:
        k, p0, a, b = n - k, 1 - p0, b, a
    return _binomial(k, n, p0, a, b) + _log_above(k + a, n - k + b, p0) - _log_above(a, b, p0)


def _log_above(a: Floats, b: Floats, x: Floats) -> Floats:
    """Ln P(p > x), p ~ Beta(a, b): by the incomplete beta function; beyond its range by
    Gauss–Laguerre.
    """
    mass = special.betaincc(a, b, x)
    log_p = np.log(mass)
    far = mass < 1e-280
    if far.any():
        p = a[far]
        q = b[far]
        at = x[far]
        steep = q - (p - 1) * (1 - at) / at  # of the logarithm, in w with 1 − p = (1 − x)e^{−w}
        total = np.zeros_like(p)
        for point, weight in zip(*np.polynomial.laguerre.laggauss(32), strict=True):
            w = point / steep
            gain = (p - 1) * np.log1p(-(1 - at) / at * special.expm1(-w)) - q * w + point
            total += weight * np.exp(gain)

        log_p[far] = (
            q * np.log1p(-at) + (p - 1) * np.log(at) - special.betaln(p, q) + np.log(total / steep)
        )

    return np.asarray(log_p)


def log_dbinom(k: Floats, n: Floats, p: Floats) -> Floats:
    """Ln of the binomial probability: Stirling errors and deviances, without lnΓ of large
    numbers.
    """
    q = 1 - p
    inside = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k) - _deviance(k, n * p)
    inside = inside - _deviance(n - k, n * q) - HALF_LN_2PI + 0.5 * np.log(n / k / (n - k))
    inside = np.where(k == 0, n * np.log1p(-p), inside)
    return np.where(k == n, np.where(n == 0, 0.0, n * np.log(p)), inside)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """X ln(x/mean) + mean − x, near x = mean without cancellation."""
    off = (x - mean) / mean
    return np.asarray(mean * ((1 + off) * np.log1p(off) - off))


def _stirling_error(n: Floats) -> Floats:
    """lnΓ(n + 1) − [(n + ½) ln n − n + ½ ln 2π] for whole n."""
    small = np.minimum(n, 15).astype(np.int64)
    safe = np.maximum(n, 16)
    return np.where(
        n < 16, _SMALL[small], stirling(safe + 1) + (safe + 0.5) * np.log1p(1 / safe) - 1
    )


_SMALL = np.array(
    [0.0] + [math.lgamma(n + 1) - ((n + 0.5) * math.log(n) - n + HALF_LN_2PI) for n in range(1, 16)]
)


def log_bf10_contingency(
    table: Numbers,
    *,
    sampling: str = "independent_multinomial",
    fixed: str = "rows",
    a: float = 1.0,
    errors: str = "nan",
) -> Result:
    """Ln BF10 of dependence in tables of counts, shape (…, I, J): Gunel–Dickey, Dirichlet(a) on the
    cells.

    `sampling`: the totals fixed by design. `"independent_multinomial"`: the sizes of the groups,
    which are the rows (or `fixed="columns"`); `"joint_multinomial"`: the total; `"poisson"`:
    nothing; `"hypergeometric"`: both margins, 2×2 only. Empty cells and margins are fine; a
    table of zeros raises ValueError. Accurate to 1e-11 relative, 1e-10 absolute for n ≤ 10⁷.

    >>> round(log_bf10_contingency([[50, 48], [21, 41]]), 9)
    0.634227194

    Gunel & Dickey (1974), Biometrika 61:545; Jamil et al. (2017), Behav. Res. Methods 49:638.
    """
    check_choice("sampling", sampling, SAMPLINGS)
    check_choice("fixed", fixed, ("rows", "columns"))
    prior = float(finite_above_0("a", a))
    y = floats("table", table)
    if y.ndim < 2 or min(y.shape[-2:]) < 2:
        raise ValueError(f"table: must have shape (…, I, J) with I, J ≥ 2, has {y.shape}")
    rows, columns = y.shape[-2:]
    if sampling == "hypergeometric" and (rows, columns) != (2, 2):
        raise ValueError(f"table: must be 2×2 for sampling='hypergeometric', has {y.shape[-2:]}")
    least = 1 - 1 / max(rows, columns)
    if prior <= least:  # Ja − (J − 1) > 0: else the margins have no prior
        raise ValueError(f"a: must be above {least:g} for a {rows}×{columns} table, got {prior:g}")

    with np.errstate(invalid="ignore"):
        bad = (y < 0) | (y != np.floor(y)) & ~np.isnan(y) | np.isinf(y)
    wrong = bad.any(axis=(-1, -2)) | ((y == 0).all(axis=(-1, -2)))
    if wrong.any() and (y.ndim == 2 or errors == "raise"):
        value = "all are 0"
        if bad.any():
            value = f"got {float(y[bad].flat[0]):g}"

        raise ValueError(f"table: must hold whole numbers of at least 0, not all 0; {value}")

    y = np.where(wrong[..., None, None], np.nan, y)
    if fixed == "columns":
        y = np.swapaxes(y, -1, -2)
    shape = y.shape[:-2]
    stacked = y.reshape(-1, *y.shape[-2:])
    logs = np.empty(stacked.shape[0])
    with np.errstate(all="ignore"):
        # cells on the first axis, so sums over cells add whole arrays
        for start in range(0, logs.size, BLOCK):
            cells = np.ascontiguousarray(np.moveaxis(stacked[start : start + BLOCK], 0, -1))
            if sampling == "hypergeometric":
                logs[start : start + BLOCK] = [
                    _hypergeometric(cells[..., at], prior) for at in range(cells.shape[-1])
                ]
            else:
                logs[start : start + BLOCK] = gunel_dickey(cells, prior, sampling)

    return unwrap(np.where(np.isnan(y).any(axis=(-1, -2)), np.nan, logs.reshape(shape)))


def gunel_dickey(y: Floats, a: float, sampling: str) -> Floats:
    """For tables (I, J, m).

    Every Γ is moved to the margins of y + a, where the large parts cancel term by term.
    """
    rows, columns = y.shape[:2]
    x = y + a
    r = x.sum(axis=1)
    c = x.sum(axis=0)
    n = x.sum(axis=(0, 1))
    # Σ lnΓ(x) − Σ lnΓ(row) − Σ lnΓ(column) + lnΓ(total), all by Stirling with the main parts paired
    expected = r[:, None] * c[None] / n
    # Σ x ln(x/e) = Σ [x ln(x/e) − x + e]: each part is ≥ 0, and exact near x = e
    off = (x - expected) / expected
    main = (expected * ((1 + off) * np.log1p(off) - off)).sum(axis=(0, 1))
    if rows * columns < 25:
        logs = np.log(x.prod(axis=(0, 1)) * n) - np.log(r.prod(axis=0) * c.prod(axis=0))
    else:
        logs = (
            np.log(x).sum(axis=(0, 1)) - np.log(r).sum(axis=0) - np.log(c).sum(axis=0) + np.log(n)
        )

    tail = (
        _remainder(x).sum(axis=(0, 1))
        - _remainder(r).sum(axis=0)
        - _remainder(c).sum(axis=0)
        + _remainder(n)
    )
    log_bf = main - 0.5 * logs + tail + HALF_LN_2PI * (rows * columns - rows - columns + 1)
    log_bf = log_bf + _rising(c - (rows - 1), rows - 1).sum(axis=0)
    log_bf = log_bf - _rising(n - columns * (rows - 1), columns * (rows - 1))
    prior_rows = _dirichlet(rows * a - (rows - 1), columns)
    if sampling == "independent_multinomial":
        return np.asarray(log_bf + prior_rows - rows * _dirichlet(a, columns))
    log_bf = log_bf + _rising(r - (columns - 1), columns - 1).sum(axis=0)
    log_bf = log_bf - _rising(n - rows * (columns - 1), rows * (columns - 1))
    log_bf = (
        log_bf
        + prior_rows
        + _dirichlet(columns * a - (columns - 1), rows)
        - _dirichlet(a, rows * columns)
    )
    if sampling == "poisson":
        free = (rows - 1) * (columns - 1)
        total = y.sum(axis=(0, 1))
        alone = rows * columns * a - free
        log_bf = log_bf + gamma_shift(total + alone, free) - gamma_shift(np.asarray(alone), free)
        log_bf = log_bf - free * np.log1p(total / (rows * columns * a))

    return np.asarray(log_bf)


def _rising(x: Floats, by: int) -> Floats:
    """lnΓ(x + by) − lnΓ(x) for whole `by`."""
    if by > 6:
        return gamma_shift(x, by)
    product = x.copy()
    for more in range(1, by):
        product *= x + more
    return np.asarray(np.log(product))


def _dirichlet(value: float, entries: int) -> float:
    """D(v, …, v) = Σ lnΓ(v) − lnΓ(Σ v)."""
    return entries * math.lgamma(value) - math.lgamma(entries * value)


def _remainder(x: Floats) -> Floats:
    """The remainder of lnΓ(x) after Stirling's formula."""
    remainder = stirling(x)
    small = np.flatnonzero(x < 16)
    if small.size:
        near = x.reshape(-1)[small]
        remainder.reshape(-1)[small] = special.gammaln(near) - (
            (near - 0.5) * np.log(near) - near + HALF_LN_2PI
        )

    return remainder


def _hypergeometric(y: Floats, a: float) -> float:
    if np.isnan(y).any():
        return float("nan")
    (r1, r2), c1 = y.sum(axis=1), y[:, 0].sum()
    first = np.arange(max(0.0, c1 - r2), min(r1, c1) + 1)
    cells = np.stack([first, r1 - first, c1 - first, r2 - c1 + first])
    # H1: Π Γ(y + a)/y! over the tables with these margins
    alike = gamma_shift(cells + 1, a - 1).sum(axis=0)
    null = log_dbinom(first, np.full_like(first, r1), np.full_like(first, 0.5))
    null = null + log_dbinom(c1 - first, np.full_like(first, r2), np.full_like(first, 0.5))
    seen = int(np.flatnonzero(first == y[0, 0])[0])
    return float(alike[seen] - _log_sum(alike) - null[seen] + _log_sum(null))


def _log_sum(values: Floats) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))


def smoothed_counts(
    redrawn: Floats, constant: NDArray[np.bool_], rng: np.random.Generator
) -> Floats:
    """Redraws (…, outcomes) of groups with a single outcome: Beta-binomial.

    Redrawn participants always give the same outcome, as if its share were known to be 1. Instead
    the share is drawn from its posterior with Jeffreys' prior, Dirichlet(½, …, ½ + n), and the
    counts from the share. `constant`: the groups to draw, on the second-to-last axis; the others
    are unchanged.

    Brown, Cai and DasGupta (2001), Stat. Sci. 16:101, section 4.
    """
    for group in np.flatnonzero(constant):
        cells = redrawn[..., group, :]
        gamma = rng.standard_gamma(cells + 0.5)
        redrawn[..., group, :] = rng.multinomial(
            cells.sum(axis=-1).astype(np.intp), gamma / gamma.sum(axis=-1, keepdims=True)
        )

    return redrawn
