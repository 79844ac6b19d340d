"""Two groups with questions of their own: how much their means differ."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from karat.stats._groups import Floats, Groups, check_level, columns, group, t_quantile, t_two_sided, unbiased
from karat.stats.intervals import centred_mean, sample_sd
from karat.stats.paired import answered_means, cliffs_delta
from karat.stats.results import MeanDifference

__all__ = ["mean_difference", "share_of_arrangements"]


def mean_difference(
    a: Iterable[Any],
    b: Iterable[Any],
    clusters_a: Iterable[Any] | None = None,
    clusters_b: Iterable[Any] | None = None,
    *,
    equal_variances: bool = False,
    level: float = 0.95,
) -> MeanDifference:
    """How much higher b is than a, where the two have no questions in common: Welch's t on question means.

    `equal_variances`: Student's t with the pooled variance instead. Over the same questions use
    `paired_difference`, which sees far smaller differences. Without clusters each value is its own
    question. None and NaN are failed trials: left out and counted, with a warning where their
    shares differ. Where no question differs from the others of its group, p is that of a permutation
    test. Welch's t needs two questions a group, Student's three in all; with fewer the error is NaN.
    Raises ValueError for clusters of one group only.

    >>> found = mean_difference([3, 4, 2, 5], [4, 5, 5, 4, 5])
    >>> round(found.value, 3), round(found.p, 3), round(found.hedges_g, 3)
    (1.1, 0.189, 1.038)

    Welch (1947), Biometrika 34:28; Hedges (1981), J. Educ. Stat. 6:107.
    """
    check_level(level)
    first, second = _sides(a, b, clusters_a, clusters_b)
    one, two = _means(first), _means(second)
    method = f"{'student' if equal_variances else 'welch'} t on question means"
    value = centred_mean(two) - centred_mean(one)
    error = _error(one, two, equal_variances)
    statistic, p, reason = _test(value, error, one.size, two.size)
    d = value / error.pooled_sd if error.pooled_sd > 0 else math.nan
    reach = t_quantile(0.5 + level / 2, error.df) * error.se if error.se > 0 else error.se
    return MeanDifference(
        value=value,
        se=error.se,
        low=value - reach,
        high=value + reach,
        level=level,
        n_a=one.size,
        n_b=two.size,
        method=method,
        statistic=statistic,
        df=error.df,
        p=p,
        mean_a=centred_mean(one),
        mean_b=centred_mean(two),
        cohens_d=d,
        hedges_g=d * unbiased(one.size + two.size - 2),
        cliffs_delta=cliffs_delta(one, two),
        missing_a=first.missing,
        missing_b=second.missing,
        warnings=_warnings(first, second),
        reason=reason,
    )


def _sides(
    a: Iterable[Any], b: Iterable[Any], clusters_a: Iterable[Any] | None, clusters_b: Iterable[Any] | None
) -> tuple[Groups, Groups]:
    if (clusters_a is None) != (clusters_b is None):
        raise ValueError("clusters_b: must be given where clusters_a is, and the other way round")
    return group(columns("a", a), clusters_a), group(columns("b", b), clusters_b)


class _Error(NamedTuple):
    se: float
    df: float
    pooled_sd: float


def _error(one: Floats, two: Floats, equal_variances: bool) -> _Error:
    sizes, nan = (one.size, two.size), math.nan
    if min(sizes) < 1 or sum(sizes) < 3:
        return _Error(nan, nan, nan)
    spread = [0.0 if side.size < 2 else sample_sd(side) ** 2 for side in (one, two)]
    df = sum(sizes) - 2
    pooled = math.sqrt(((sizes[0] - 1) * spread[0] + (sizes[1] - 1) * spread[1]) / df)
    if equal_variances:
        return _Error(pooled * math.sqrt(1 / sizes[0] + 1 / sizes[1]), float(df), pooled)
    if min(sizes) < 2:
        return _Error(nan, nan, pooled)
    parts = [variance / size for variance, size in zip(spread, sizes, strict=True)]
    if not max(parts) > 0:
        return _Error(0.0, float(df), pooled)
    shares = [part / sum(parts) for part in parts]
    welch = 1 / sum(share**2 / (size - 1) for share, size in zip(shares, sizes, strict=True))
    return _Error(math.sqrt(sum(parts)), welch, pooled)


def _test(value: float, error: _Error, n_a: int, n_b: int) -> tuple[float, float, str | None]:
    if math.isnan(value):
        return math.nan, math.nan, "a group has no value"
    if math.isnan(error.se):
        return math.nan, math.nan, "too few questions: their spread cannot be known"
    if error.se > 0:
        return value / error.se, t_two_sided(value / error.se, error.df), None
    if value == 0:
        return math.nan, 1.0, "all question means are equal"
    p = share_of_arrangements(n_a, n_b, 2 if n_a == n_b else 1)  # only groups of one size can change places
    return math.copysign(math.inf, value), p, "no spread within either group: p by permutation"


def share_of_arrangements(n_a: int, n_b: int, like: int = 1) -> float:
    """So many of all the ways to put n_a + n_b values into two groups: at most 1, never 0."""
    n, least = n_a + n_b, math.ulp(0.0)
    # A number of a hundred thousand digits takes seconds, and its inverse is below every float.
    if n > 1_100 and math.lgamma(n + 1) - math.lgamma(n_a + 1) - math.lgamma(n_b + 1) > 750:
        return least
    return max(min(1.0, like / math.comb(n, n_a)), least)


def _means(side: Groups) -> Floats:
    return np.array(list(answered_means(side).values()), dtype=np.float64)


def _warnings(first: Groups, second: Groups) -> tuple[str, ...]:
    missing, sizes = (first.missing, second.missing), (first.values.size, second.values.size)
    if missing[0] * sizes[1] == missing[1] * sizes[0]:
        return ()
    said = " and ".join(f"{lost} of {size} under {side}" for lost, size, side in zip(missing, sizes, "ab", strict=True))
    return (f"answers missing: {said}; what is compared may not be like",)
