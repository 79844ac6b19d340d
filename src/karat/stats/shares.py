"""Intervals of shares: inside [0, 1], and never a point at 0 of n or n of n."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from karat.stats._groups import Floats, check_level, group, t_quantile, whole, z_quantile
from karat.stats.intervals import t_interval
from karat.stats.results import Interval

__all__ = ["newcombe", "proportion_interval", "share_interval", "share_of_means"]

ShareMethod = Literal["wilson", "jeffreys", "clopper-pearson", "agresti-coull"]


def proportion_interval(k: int, n: int, *, method: ShareMethod = "wilson", level: float = 0.95) -> Interval:
    """The share k of n independent trials, with an interval that stays inside [0, 1].

    Never a point at 0 of n or n of n. `wilson` is the score interval; `jeffreys` has low =
    0 at k = 0 and high = 1 at k = n; `clopper-pearson` is exact and wide; `agresti-coull`
    is cut at 0 and 1. With n = 0 all is NaN. Raises ValueError unless 0 ≤ k ≤ n are whole.
    Answers that repeat questions are not independent: see `share_interval`.

    >>> found = proportion_interval(81, 263)
    >>> round(found.low, 4), round(found.high, 4)
    (0.2553, 0.3662)

    Wilson (1927), J. Am. Stat. Assoc. 22:209; Brown, Cai and DasGupta (2001), Stat. Sci. 16:101.
    """
    check_level(level)
    k, n = whole("k", k), whole("n", n)
    if k > n:
        raise ValueError(f"k: must be at most n ({n}), got {k}")
    if method not in _SHARE:
        raise ValueError(f"method: must be one of {', '.join(_SHARE)}, got {method!r}")
    if n == 0:
        return Interval(value=math.nan, level=level, n=0, method=method, reason="no trials")
    share = k / n
    low, high = _SHARE[method](k, n, level)
    se = math.sqrt(share * (1 - share) / n)
    return Interval(value=share, se=se, low=low, high=high, level=level, n=n, method=method, observations=n)


def wilson_bounds(share: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's score interval of a share at a real-valued n > 0; exactly 0 and 1 at the ends."""
    z = z_quantile(0.5 + level / 2)
    centre = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if share <= 0 else max(0.0, (centre - reach) / scale)
    high = 1.0 if share >= 1 else min(1.0, (centre + reach) / scale)
    return low, high


def _wilson(k: int, n: int, level: float) -> tuple[float, float]:
    return wilson_bounds(k / n, n, level)


def _jeffreys(k: int, n: int, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(betaincinv(k + 0.5, n - k + 0.5, tail))
    high = 1.0 if k == n else float(betaincinv(k + 0.5, n - k + 0.5, 1 - tail))
    return low, high


def _clopper_pearson(k: int, n: int, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
    return low, high


def _agresti_coull(k: int, n: int, level: float) -> tuple[float, float]:
    z = z_quantile(0.5 + level / 2)
    padded = n + z * z
    centre = (k + z * z / 2) / padded
    reach = z * math.sqrt(centre * (1 - centre) / padded)
    return max(0.0, centre - reach), min(1.0, centre + reach)


_SHARE = {
    "wilson": _wilson,
    "jeffreys": _jeffreys,
    "clopper-pearson": _clopper_pearson,
    "agresti-coull": _agresti_coull,
}


def share_interval(values: Iterable[Any], clusters: Iterable[Any] | None = None, *, level: float = 0.95) -> Interval:
    """The share of true answers, each question counted once, with Wilson's interval at the effective n.

    `values` are 0/1 or bool, `clusters` the questions. The effective n is the number of
    independent answers that would give the error seen between questions, made smaller by
    (z/t)² for its few degrees of freedom, and kept between half the questions and all
    answers; questions that do not differ count once each. So the width never collapses
    at 0 or 1. A NaN makes everything NaN; a value other than 0 and 1 raises ValueError.

    >>> found = share_interval([1, 1, 1, 0, 1, 1, 0, 0], ["a", "a", "b", "b", "c", "c", "d", "d"])
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.625, 0.142, 0.944)

    Korn and Graubard (1998), Survey Methodology 24:193; Miller (2024), arXiv:2411.00640.
    """
    groups = group(values, clusters)
    wrong = groups.values[np.isfinite(groups.values) & (groups.values != 0) & (groups.values != 1)]
    if wrong.size:
        raise ValueError(f"values: must be 0 or 1, got {wrong[0]:g}")
    return share_of_means(groups.means, observations=groups.values.size, missing=groups.missing, level=level)


def share_of_means(means: Floats, *, observations: int, missing: int = 0, level: float = 0.95) -> Interval:
    """As `share_interval`, from the share of each question and the number of all answers."""
    over = t_interval(means, level=check_level(level), observations=observations, missing=missing)
    method = "wilson at effective n"
    if math.isnan(over.value):
        size, reason = over.observations, over.reason
        return Interval(value=math.nan, level=level, n=over.n, method=method, observations=size, reason=reason)
    effective = _effective_n(over)
    share = min(1.0, max(0.0, over.value))
    low, high = wilson_bounds(share, effective, level)
    note = "one question: its answers are taken as one" if over.n == 1 else None
    return Interval(
        value=share,
        se=over.se,
        low=low,
        high=high,
        level=level,
        n=over.n,
        method=method,
        df=over.df,
        observations=over.observations,
        reason=note,
    )


def _effective_n(over: Interval) -> float:
    if over.n < 2 or not over.se > 0:
        return float(over.n)
    shrink = z_quantile(0.5 + over.level / 2) / t_quantile(0.5 + over.level / 2, over.df)
    independent = over.value * (1 - over.value) / over.se**2 * shrink**2
    return min(max(independent, over.n / 2), float(over.observations))


def newcombe(k1: int, n1: int, k2: int, n2: int, *, level: float = 0.95) -> Interval:
    """The difference k1/n1 − k2/n2 of two independent shares, with Newcombe's hybrid score interval.

    >>> found = newcombe(9, 10, 3, 10)
    >>> round(found.value, 3), round(found.low, 4), round(found.high, 4)
    (0.6, 0.1705, 0.809)

    Newcombe (1998), Stat. Med. 17:873, method 10.
    """
    one, two = (proportion_interval(k, n, level=level) for k, n in ((k1, n1), (k2, n2)))
    method = "newcombe hybrid score"
    total = one.n + two.n
    if one.n == 0 or two.n == 0:
        return Interval(value=math.nan, level=level, n=total, method=method, observations=total, reason="no trials")
    value = one.value - two.value
    low = value - math.hypot(one.value - one.low, two.high - two.value)
    high = value + math.hypot(one.high - one.value, two.value - two.low)
    se = math.hypot(one.se, two.se)
    return Interval(value=value, se=se, low=low, high=high, level=level, n=total, method=method, observations=total)
