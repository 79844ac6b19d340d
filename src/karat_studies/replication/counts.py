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
    floats,
    gamma_shift,
    stirling,
    unwrap,
)

HALF_LN_2PI = 0.5 * math.log(2 * math.pi)


def log_bf10_binomial(
    k: Numbers, n: Numbers, *, p0: Numbers = 0.5, alternative: str = "two-sided"
) -> Result:
    """Ln BF10 of k successes of n: a share that is uniform on (0, 1) against share = p0.

    One-sided: the prior truncated at p0. Full precision to n = 10¹⁵ (saddle-point binomial
    probabilities), one-sided to 1e-10.

        BF10 = 1/((n + 1)·dbinom(k; n, p0))

    >>> round(log_bf10_binomial(7, 10), 12)
    -0.253915209981

    Jeffreys (1961), Theory of Probability, 5.1; Loader (2000), Fast and accurate computation of
    binomial probabilities.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    size = counts("n", n)
    hits = counts("k", k)
    hits = domain("k", hits + 0 * size, lambda v: v <= size, "at most n")
    share = domain("p0", p0, lambda v: (v > 0) & (v < 1), "between 0 and 1")
    if alternative == "less":
        hits, share = size - hits, 1 - share

    def kernel(k: Floats, n: Floats, p0: Floats) -> Floats:
        log_bf = np.asarray(-np.log1p(n) - log_dbinom(k, n, p0))
        if alternative == "two-sided":
            return log_bf
        return np.asarray(log_bf + _log_above(k + 1, n - k + 1, p0) - np.log1p(-p0))

    return evaluate(kernel, hits, size, share)


def _log_above(a: Floats, b: Floats, x: Floats) -> Floats:
    """Ln P(p > x), p ~ Beta(a, b): by the incomplete beta function; beyond its range by
    Gauss–Laguerre.
    """
    mass = special.betaincc(a, b, x)
    log_p = np.log(mass)
    far = mass < 1e-280
    if far.any():
        p, q, at = a[far], b[far], x[far]
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


def log_bf10_contingency(table: Numbers) -> Result:
    """Ln BF10 of dependence in tables of counts, shape (…, I, J), whose rows are groups of fixed
    sizes: Gunel–Dickey, Dirichlet(1) on the cells.

    Empty cells and margins are fine; a table of zeros raises ValueError. Accurate to 1e-11
    relative, 1e-10 absolute for n ≤ 10⁷.

    >>> round(log_bf10_contingency([[50, 48], [21, 41]]), 9)
    0.634227194

    Gunel & Dickey (1974), Biometrika 61:545; Jamil et al. (2017), Behav. Res. Methods 49:638.
    """
    y = floats("table", table)
    if y.ndim < 2 or min(y.shape[-2:]) < 2:
        raise ValueError(f"table: must have shape (…, I, J) with I, J ≥ 2, has {y.shape}")
    with np.errstate(invalid="ignore"):
        bad = (y < 0) | (y != np.floor(y)) & ~np.isnan(y) | np.isinf(y)
    wrong = bad.any(axis=(-1, -2)) | ((y == 0).all(axis=(-1, -2)))
    if wrong.any() and y.ndim == 2:
        value = f"got {float(y[bad].flat[0]):g}" if bad.any() else "all are 0"
        raise ValueError(f"table: must hold whole numbers of at least 0, not all 0; {value}")

    y = np.where(wrong[..., None, None], np.nan, y)
    stacked = y.reshape(-1, *y.shape[-2:])
    logs = np.empty(stacked.shape[0])
    with np.errstate(all="ignore"):
        # cells on the first axis, so sums over cells add whole arrays
        for start in range(0, logs.size, BLOCK):
            cells = np.ascontiguousarray(np.moveaxis(stacked[start : start + BLOCK], 0, -1))
            logs[start : start + BLOCK] = gunel_dickey(cells)

    return unwrap(np.where(np.isnan(y).any(axis=(-1, -2)), np.nan, logs.reshape(y.shape[:-2])))


def gunel_dickey(y: Floats) -> Floats:
    """For tables (I, J, m).

    Every Γ is moved to the margins of y + 1, where the large parts cancel term by term.
    """
    rows, columns = y.shape[:2]
    x = y + 1
    r, c, n = x.sum(axis=1), x.sum(axis=0), x.sum(axis=(0, 1))
    log_bf = _log_gamma_table(x, r, c, n) + _rising(c - (rows - 1), rows - 1).sum(axis=0)
    log_bf = log_bf - _rising(n - columns * (rows - 1), columns * (rows - 1))
    return np.asarray(log_bf + (rows - 1) * math.lgamma(columns))


def _rising(x: Floats, by: int) -> Floats:
    """lnΓ(x + by) − lnΓ(x) for whole `by`."""
    if by > 6:
        return gamma_shift(x, by)
    product = x.copy()
    for more in range(1, by):
        product *= x + more
    return np.asarray(np.log(product))


def _log_gamma_table(x: Floats, r: Floats, c: Floats, n: Floats) -> Floats:
    """Σ lnΓ(x) − Σ lnΓ(row) − Σ lnΓ(column) + lnΓ(total), all by Stirling with the main parts
    paired.
    """
    rows, columns = x.shape[:2]
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
    return np.asarray(
        main - 0.5 * logs + tail + HALF_LN_2PI * (rows * columns - rows - columns + 1)
    )


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
