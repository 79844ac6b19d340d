"""Independent units resampled with replacement, and bootstrap intervals of their mean."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from karat.stats import special
from karat.stats._groups import Floats, z_quantile

# a block fits in the cache, and has fewer rows if there are many units
_ROWS, _CELLS = 1_000, 2_000_000
_NOISE = 1e-12  # relative to a sum of squares: smaller values are rounding errors

Bounds = tuple[float, float, str | None]  # low, high, why they are unknown


def resampled_counts(size: int, *, rng: np.random.Generator, replicates: int) -> Iterator[Floats]:
    """How often each of `size` units is drawn, in blocks (replicates, units).

    Counts times data gives all sums of a replicate at once, for any number of columns. A seed
    gives one result: the length of a block depends only on `size`.
    """
    block = max(1, min(_ROWS, _CELLS // max(size, 1)))
    for first in range(0, replicates, block):
        rows = min(block, replicates - first)
        drawn = rng.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
        yield (
            np.bincount(drawn.reshape(-1), minlength=rows * size)
            .reshape(rows, size)
            .astype(np.float64)
        )


def check_replicates(replicates: int, level: float) -> int:
    """Returns the number. Raises ValueError if it is too small to have a tail at this level."""
    least = math.ceil(2 / (1 - level) - 1e-9)
    if replicates < least:
        raise ValueError(
            f"replicates: must be at least {least} for level {level:g}, got {replicates}"
        )

    return replicates


def bootstrap_t_bounds(
    values: Floats,
    *,
    level: float,
    rng: np.random.Generator,
    replicates: int,
) -> Bounds:
    """Bounds of the mean from the distribution of t over replicates; wider on the side of the
    longer tail.
    """
    n, d, _ = _centred(values)
    t = np.concatenate(
        [studentized(counts, d) for counts in resampled_counts(n, rng=rng, replicates=replicates)]
    )
    low, high = _tails(np.sort(t), (1 - level) / 2, (1 + level) / 2)
    if not math.isfinite(low - high):
        reason = (
            f"too few unequal values: {np.count_nonzero(np.isinf(t))} of {replicates} resamples "
            f"have no spread"
        )
        return math.nan, math.nan, reason

    mean = float(values.mean())
    se = float(np.std(values, ddof=1)) / math.sqrt(n)
    return mean - high * se, mean - low * se, None


def studentized(counts: Floats, values: Floats) -> Floats:
    """Student's t of replicates, from how often each of n centred values was drawn.

    A replicate without spread gives ±∞, or 0 if its mean has not moved. Both are judged relative to
    the spread of all values: centring leaves about 1e-16 of a value at the mean, which is a
    rounding error.
    """
    n = len(values)
    squared = values * values
    sums = counts @ values
    squares = counts @ squared
    spread = squares - sums * sums / n
    scale = np.maximum(squares, squared.sum(axis=0))
    flat = spread <= _NOISE * scale
    moved = flat & (np.abs(sums) > math.sqrt(_NOISE) * np.sqrt(n * scale))
    with np.errstate(divide="ignore", invalid="ignore"):
        known = sums / np.sqrt(spread * n / (n - 1))
    t: Floats = np.where(flat, np.where(moved, np.copysign(np.inf, sums), 0.0), known)
    return t


def bca_bounds(
    values: Floats,
    *,
    level: float,
    rng: np.random.Generator,
    replicates: int,
) -> Bounds:
    """Percentiles of the replicates' means, adjusted for bias and skewness."""
    n, d, scale = _centred(values)
    means = (
        np.concatenate(
            [counts @ d for counts in resampled_counts(n, rng=rng, replicates=replicates)]
        )
        / n
    )
    ties = np.abs(means) <= _NOISE * scale
    below = (np.count_nonzero((means < 0) & ~ties) + 0.5 * np.count_nonzero(ties)) / replicates
    skew = float(np.sum(d * d * d)) / (6 * float(np.sum(d * d)) ** 1.5)
    if 0 < below < 1:
        bias = z_quantile(below)
    else:
        bias = math.nan

    at = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        reach = bias + z_quantile(tail)
        if skew * reach < 1:
            at.append(float(special.ndtr(bias + reach / (1 - skew * reach))))
        else:
            at.append(math.nan)

    if math.isnan(at[0] + at[1]):
        return math.nan, math.nan, "too few values, or too skewed, for BCa"
    low, high = _tails(np.sort(means), *at)
    mean = float(values.mean())
    return mean + low, mean + high, None


def _centred(values: Floats) -> tuple[int, Floats, float]:
    d = values - values.mean()
    return values.size, d, float(np.abs(d).max())


def _tails(ordered: Floats, low: float, high: float) -> tuple[float, float]:
    """The order statistics at two probabilities, rounded outwards if they fall between two."""
    size = ordered.size
    first = min(max(math.floor((size + 1) * low) - 1, 0), size - 1)
    last = min(max(math.ceil((size + 1) * high) - 1, 0), size - 1)
    return float(ordered[first]), float(ordered[last])
