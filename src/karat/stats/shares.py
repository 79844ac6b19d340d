"""Intervals of shares: inside [0, 1], and never a point at 0 of n or n of n."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np

from karat.stats import special
from karat.stats._groups import (
    Floats,
    check_level,
    group,
    labels_of,
    t_quantile,
    z_quantile,
)
from karat.stats.intervals import clustered_mean, t_interval
from karat.stats.results import Interval

_NOISE = 1e-12  # of an error of a share: only rounding, as between 1/3 and 1 − 2/3

ShareMethod = Literal["wilson", "clopper-pearson"]


def proportion_interval(
    k: int, n: int, *, method: ShareMethod = "wilson", level: float = 0.95
) -> Interval:
    """The share k of n, with an interval that stays inside [0, 1].

    Never a point at 0 of n or n of n. `wilson` is the score interval; `clopper-pearson` is exact
    and wide. With n = 0 all is NaN. Answers that repeat a question are not independent: see
    `share_interval`. Raises ValueError unless 0 ≤ k ≤ n are whole.

    >>> found = proportion_interval(81, 263)
    >>> round(found.low, 4), round(found.high, 4)
    (0.2553, 0.3662)

    Wilson (1927), J. Am. Stat. Assoc. 22:209; Newcombe (1998), Stat. Med. 17:857; Brown, Cai and
    DasGupta (2001), Stat. Sci. 16:101.
    """
    check_level(level)
    _check_method(method)
    if not (0 <= k <= n and k == int(k) and n == int(n)):
        raise ValueError(f"k, n: must be whole numbers, 0 ≤ k ≤ n, got {k} and {n}")
    if n == 0:
        return Interval(value=math.nan, level=level, n=0, method=method, reason="no trials")
    share = k / n
    low, high = _SHARE[method](share, n, level)
    return Interval(
        value=share,
        se=math.sqrt(share * (1 - share) / n),
        low=low,
        high=high,
        level=level,
        n=n,
        method=method,
        observations=n,
    )


def _check_method(method: str) -> None:
    if method not in _SHARE:
        raise ValueError(f"method: must be one of {', '.join(_SHARE)}, got {method!r}")


def wilson_bounds(share: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's score interval of a share at a real-valued n > 0; exactly 0 and 1 at the ends."""
    z = z_quantile(0.5 + level / 2)
    centre = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    if share <= 0:
        low = 0.0
    else:
        low = max(0.0, (centre - reach) / scale)

    if share >= 1:
        high = 1.0
    else:
        high = min(1.0, (centre + reach) / scale)

    return low, high


def clopper_pearson_bounds(share: float, n: float, level: float) -> tuple[float, float]:
    """The exact interval of a share at a real-valued n > 0."""
    k, failures = n * share, n * (1 - share)
    if share <= 0:
        low = 0.0
    else:
        low = _beta(k, failures + 1, level)[0]

    if share >= 1:
        high = 1.0
    else:
        high = _beta(k + 1, failures, level)[1]

    return low, high


def _beta(a: float, b: float, level: float) -> tuple[float, float]:
    return float(special.betaincinv(a, b, 0.5 - level / 2)), float(
        special.betaincinv(a, b, 0.5 + level / 2)
    )


_SHARE = {"wilson": wilson_bounds, "clopper-pearson": clopper_pearson_bounds}


def share_interval(
    values: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    sources: Iterable[object] | None = None,
    method: ShareMethod = "wilson",
    level: float = 0.95,
) -> Interval:
    """The share of true answers, counting each question once, with the interval of a share at the
    effective n.

    `values` are 0/1 or bool, `clusters` the questions. The effective n is the number of independent
    answers that would give the error seen between questions, reduced by (z/t)² for its few degrees
    of freedom, and kept between half the questions and all answers; if questions do not differ,
    each counts once. So the width never collapses at 0 or 1. `method` as for `proportion_interval`.
    `sources`: the document or other origin of each value; the error is then that between sources,
    as in `clustered_mean`, and sources take the place of questions. A NaN makes everything NaN; a
    value other than 0 and 1 raises ValueError.

    >>> found = share_interval([1, 1, 1, 0, 1, 1, 0, 0], ["a", "a", "b", "b", "c", "c", "d", "d"])
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.625, 0.142, 0.944)

    Korn and Graubard (1998), Survey Methodology 24:193; Miller (2024), arXiv:2411.00640.
    """
    _check_method(method)
    groups = group(values, clusters)
    wrong = groups.values[np.isfinite(groups.values) & (groups.values != 0) & (groups.values != 1)]
    if wrong.size:
        raise ValueError(f"values: must be 0 or 1, got {wrong[0]:g}")
    size, missing = groups.values.size, groups.missing
    if sources is None:
        origins = None
    else:
        origins = labels_of(groups, sources)

    means = groups.means
    return share_of_means(
        means, origins, observations=size, missing=missing, level=level, method=method
    )


def share_of_means(
    means: Floats,
    clusters: Iterable[object] | None = None,
    *,
    observations: int,
    missing: int = 0,
    level: float = 0.95,
    method: ShareMethod = "wilson",
) -> Interval:
    """As `share_interval`, from the share of each question, its source, and the total number of
    answers.
    """
    if missing or clusters is None:
        over = t_interval(
            means, level=check_level(level), observations=observations, missing=missing
        )
    else:
        over = replace(clustered_mean(means, clusters, level=level), observations=observations)

    named = f"{method} at effective n"
    if math.isnan(over.value):
        return replace(over, method=named)
    share = min(1.0, max(0.0, over.value))
    if over.n == 1 and means.size > 1:
        return replace(over, value=share, method=named)
    low, high = _SHARE[method](share, effective_n(over, 0.5 + level / 2), level)
    note = "only one question: repeated answers count once" if over.n == 1 else None
    return replace(over, value=share, low=low, high=high, method=named, reason=note)


_MEDIAN = 0.5 + 1e-6
"""Of a quantile: at the median itself both quantiles are 0, and so is their ratio's denominator."""


def effective_n(over: Interval, quantile: float) -> float:
    """The number of independent answers with this error of a share, less what its degrees of
    freedom cost.

    `quantile`: of the interval's end, 0.975 for 95 % on both sides.
    """
    if over.n < 2 or not over.se > _NOISE:
        return float(over.n)
    beyond = max(quantile, _MEDIAN)
    shrink = z_quantile(beyond) / t_quantile(beyond, over.df)
    independent = over.value * (1 - over.value) / over.se**2 * shrink**2
    return min(max(independent, over.n / 2), float(over.observations))
