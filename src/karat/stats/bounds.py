"""One-sided bounds: is a mean, a share or a difference on the right side of a threshold?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from karat.stats import special
from karat.stats._groups import Floats, check_level, group, t_quantile
from karat.stats.elementary import log
from karat.stats.intervals import centred_mean, sample_sd

__all__ = ["OneSided", "one_sided_bounds"]

CROWDED = 0.3  # if at least this share of questions has one value, rare other values are allowed for


class OneSided(Struct, frozen=True, kw_only=True):
    """An estimate with a lower and an upper bound, each valid by itself. NaN: `reason` explains why."""

    value: float
    low: float  # the truth is below it in at most 1 - level of experiments
    high: float  # the truth is above it in at most 1 - level of experiments
    level: float
    n: int  # questions
    method: Literal["t", "t with one pseudo-value", "Clopper-Pearson", "Hall"]
    reason: str | None = None


def one_sided_bounds(
    values: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    *,
    scale: tuple[float, float] | None = None,
    skewed: bool = False,
    level: float = 0.95,
) -> OneSided:
    """Bounds of the mean of question means, for a decision against a threshold.

    Values of 0 and 1 on a `scale` of 0 to 1, one per question: Clopper and Pearson's. `scale`, ends included: if at
    least 30 % of the question means are equal to their most frequent value, each bound is computed with one more value
    at its own end of the scale, since t falsely passes 9-21 % if 92-97 % of the answers have the best score. For
    differences give the scale of differences, (-4, 4) for 1 to 5. `skewed`: positive amounts such as costs, by Hall's
    cubic transformation, and at least Cox's upper bound if they may be lognormal. NaN or None make everything NaN.
    Raises ValueError for values outside the scale, unequal lengths, and a level outside (0, 1).

    >>> bounds = one_sided_bounds([1] * 48 + [0] * 2, scale=(0, 1))
    >>> round(bounds.low, 4), round(bounds.high, 4), bounds.method
    (0.8794, 0.9928, 'Clopper-Pearson')

    Clopper and Pearson (1934), Biometrika 26:404; Hall (1992), J. R. Stat. Soc. B 54:221;
    Zhou and Gao (1997), Stat. Med. 16:783 (Cox's).
    """
    check_level(level)
    groups = group(values, clusters)
    means, n = groups.means, len(groups.labels)
    value = centred_mean(means)
    if not n or groups.missing:
        reason = f"{groups.missing} of {groups.values.size} values are missing" if n else "no values"
        return OneSided(value=math.nan, low=math.nan, high=math.nan, level=level, n=n, method="t", reason=reason)
    if scale is not None and (means.min() < scale[0] or means.max() > scale[1]):
        outside = means.min() if means.min() < scale[0] else means.max()
        raise ValueError(f"scale: {outside:g} is outside {scale[0]:g} to {scale[1]:g}")
    if (
        scale is not None
        and scale[0] == 0
        and scale[1] == 1
        and bool(np.isin(means, (0.0, 1.0)).all())
        and groups.values.size == n
    ):
        low, high = _clopper_pearson(int(means.sum()), n, level)
        return OneSided(value=value, low=low, high=high, level=level, n=n, method="Clopper-Pearson")
    if scale is not None and np.unique(means, return_counts=True)[1].max() >= max(2, CROWDED * n):
        low, high = (_t_bound(np.append(means, end), side, level) for end, side in zip(scale, (-1, 1), strict=True))
        return OneSided(value=value, low=low, high=high, level=level, n=n, method="t with one pseudo-value")
    if n < 2:
        reason = "one question: its spread cannot be known"
        return OneSided(value=value, low=math.nan, high=math.nan, level=level, n=n, method="t", reason=reason)
    if skewed and sample_sd(means) > 0:
        low, high = _hall_bounds(means, level)
        return OneSided(value=value, low=low, high=high, level=level, n=n, method="Hall")
    low, high = (_t_bound(means, side, level) for side in (-1, 1))
    return OneSided(value=value, low=low, high=high, level=level, n=n, method="t")


def _t_bound(means: Floats, side: int, level: float) -> float:
    return centred_mean(means) + side * t_quantile(level, means.size - 1) * sample_sd(means) / math.sqrt(means.size)


def _clopper_pearson(k: int, n: int, level: float) -> tuple[float, float]:
    low = float(special.betaincinv(k, n - k + 1, 1 - level)) if k else 0.0
    return low, float(special.betaincinv(k + 1, n - k, level)) if k < n else 1.0


def _hall_bounds(means: Floats, level: float) -> tuple[float, float]:
    """T + g*T^2/3 + g^2*T^3/27 + g/(6n) is nearly normal; T = (mean - truth)/s, g the skewness."""
    n = means.size
    mean, sd = centred_mean(means), sample_sd(means)
    off = means - mean
    skewness = float((off * off * off).mean()) / sd**3
    reach = t_quantile(level, n - 1) / math.sqrt(n)
    bounds = []
    for w in (reach, -reach):
        if abs(skewness) < 1e-8:
            bounds.append(mean - sd * w)
        else:
            root = math.cbrt(1 + skewness * (w - skewness / (6 * n)))
            bounds.append(mean - sd * 3 / skewness * (root - 1))
    return bounds[0], max(bounds[1], _lognormal_bound(means, level))


def _lognormal_bound(means: Floats, level: float) -> float:
    """Cox's upper bound if the amounts may be lognormal, where Hall's misses 7-9 % at an sd of 1; else -inf."""
    if means.min() <= 0:
        return -math.inf
    logs, n = log(means), means.size
    sd, off = sample_sd(logs), logs - logs.mean()
    if not sd > 0 or float((off * off * off).mean()) / sd**3 < -2 * math.sqrt(6 / n):  # two of its errors
        return -math.inf
    reach = t_quantile(level, n - 1) * math.sqrt(sd**2 / n + sd**4 / (2 * (n + 1)))
    return math.exp(centred_mean(logs) + sd**2 / 2 + reach)
