"""One-sided bounds: is a mean, a share or a difference on the right side of a threshold?"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Literal

import numpy as np
from msgspec import Struct, structs

from karat.stats import special
from karat.stats._groups import Floats, Groups, check_level, group, labels_of, t_quantile
from karat.stats.intervals import centred_mean, clustered_mean, sample_sd
from karat.stats.results import Interval
from karat.stats.shares import clopper_pearson_bounds, effective_n

# if at least this share of questions has one value, rare other values are allowed for
CROWDED = 0.3


class OneSided(Struct, frozen=True, kw_only=True):
    """An estimate with a lower and an upper bound, each valid by itself.

    NaN: `reason` explains why.
    """

    value: float
    low: float  # the truth is below it in at most 1 - level of experiments
    high: float  # the truth is above it in at most 1 - level of experiments
    level: float
    n: int  # questions, or their sources
    method: Literal[
        "t", "t with one pseudo-value", "exact at the end of the scale", "Clopper-Pearson", "Hall"
    ]
    reason: str | None = None


def one_sided_bounds(
    values: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    sources: Iterable[object] | None = None,
    scale: tuple[float, float] | None = None,
    skewed: bool = False,
    level: float = 0.95,
) -> OneSided:
    """Bounds of the mean of question means, for a decision against a threshold.

    Values of 0 and 1 on a `scale` of 0 to 1, one per question: Clopper and Pearson's. `scale`, ends
    included: if all question means are at one end, the bound towards the other is exact: the mean
    of n independent values that are all at the end is at least
    `end − range · (1 − (1 − level)^(1/n))`. If at least
    30 % of the question means are equal to their most frequent value, each bound is computed with
    one more value at its own end of the scale, since t falsely passes 9-21 % if 92-97 % of the
    answers have the best score. For differences give the scale of differences, (-4, 4) for 1 to 5.
    `skewed`: positive amounts such as costs, by Hall's cubic transformation, and at least the upper
    bound of a lognormal mean if they may be lognormal. `sources`: the document or other origin of
    each value, if questions of one source are not independent; t then has the error and the degrees
    of freedom of `clustered_mean`, exact bounds and those of amounts count sources, and those of
    shares the effective n, unless at least 30 % of the sources have the same mean. NaN or None make
    everything NaN. Raises ValueError for values outside the scale, unequal lengths, and a level
    outside (0, 1).

    >>> bounds = one_sided_bounds([1] * 48 + [0] * 2, scale=(0, 1))
    >>> round(bounds.low, 4), round(bounds.high, 4), bounds.method
    (0.8794, 0.9928, 'Clopper-Pearson')

    Clopper and Pearson (1934), Biometrika 26:404; Hall (1992), J. R. Stat. Soc. B 54:221;
    Zou, Huo and Taleban (2009), Environmetrics 20:172 (lognormal).
    """
    check_level(level)
    groups = group(values, clusters)
    if sources is None:
        origins = None
    else:
        origins = group(groups.means, labels_of(groups, sources))

    means = groups.means
    n = len(groups.labels if origins is None else origins.labels)
    nothing = OneSided(value=math.nan, low=math.nan, high=math.nan, level=level, n=n, method="t")
    if not n or groups.missing:
        if n:
            reason = f"{groups.missing} of {groups.values.size} values are missing"
        else:
            reason = "no values"

        return structs.replace(nothing, reason=reason)

    over = clustered_mean(means, None if origins is None else origins.codes, level=level)
    known = structs.replace(nothing, value=over.value)
    if scale is not None:
        if means.min() < scale[0] or means.max() > scale[1]:
            if means.min() < scale[0]:
                outside = means.min()
            else:
                outside = means.max()

            raise ValueError(f"scale: {outside:g} is outside {scale[0]:g} to {scale[1]:g}")

        bounded = _on_scale(
            known,
            over,
            means,
            scale,
            once=groups.values.size == means.size,
            origins=origins,
        )
        if bounded is not None:
            return bounded

    if n < 2:
        unit = "question" if means.size == 1 else "cluster"
        return structs.replace(known, reason=f"only one {unit}, so no interval")
    if skewed:
        if origins is None:
            bounds = _skewed(over.value, means, origins, level)
        else:
            bounds = _skewed(over.value, origins.means, origins, level)

        if bounds is not None:
            return structs.replace(known, low=bounds[0], high=bounds[1], method="Hall")
    return structs.replace(known, low=_t_bound(over, -1, level), high=_t_bound(over, 1, level))


def _skewed(
    mean: float,
    means: Floats,
    origins: Groups | None,
    level: float,
) -> tuple[float, float] | None:
    """Bounds of the mean of amounts; None if all are equal. `means`: of questions, or of origins.

    An origin weighs as many as it has: its deviation from the mean is multiplied accordingly.
    """
    values = means
    if origins is not None:
        weights = origins.counts / origins.counts.mean()
        values = mean + weights * (means - mean)
    sd = sample_sd(values)
    if not sd > 0:
        return None
    # T + g*T^2/3 + g^2*T^3/27 + g/(6n) is nearly normal; T = (mean - truth)/s, g the skewness
    n = values.size
    mean = centred_mean(values)
    off = values - mean
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


def _on_scale(
    known: OneSided,
    over: Interval,
    means: Floats,
    scale: tuple[float, float],
    *,
    once: bool,
    origins: Groups | None,
) -> OneSided | None:
    """Bounds that use the ends of the scale; None if t needs no help of them.

    `once`: one value a question.
    """
    n = known.n
    level = known.level
    flags = False
    if once and scale == (0.0, 1.0):
        flags = bool(np.isin(means, (0.0, 1.0)).all())
    if flags and not (origins is not None and _crowded(origins.means)):
        if origins is None:
            size = float(n)
        else:
            size = effective_n(over, level)

        # two-sided: each end at `level`
        low, high = clopper_pearson_bounds(over.value, size, 2 * level - 1)
        return structs.replace(known, low=low, high=high, method="Clopper-Pearson")

    for end, other in (scale, scale[::-1]):
        if n > 1 and bool((means == end).all()):
            bound = end + (other - end) * (1 - (1 - level) ** (1 / n))
            low, high = sorted((end, bound))
            return structs.replace(
                known,
                low=low,
                high=high,
                method="exact at the end of the scale",
            )

    if not _crowded(means):
        return None
    bounds = []
    for end, side in zip(scale, (-1, 1), strict=True):
        more = np.append(means, end)
        if origins is None:
            added = clustered_mean(more, None)
        else:  # one more cluster, of average size
            clusters = np.append(origins.codes, n)
            weights = np.append(np.ones(means.size), means.size / n)
            added = clustered_mean(more, clusters, weights=weights)

        bounds.append(_t_bound(added, side, level))

    low, high = bounds
    return structs.replace(known, low=low, high=high, method="t with one pseudo-value")


def _crowded(means: Floats) -> bool:
    most = np.unique(means, return_counts=True)[1].max()
    return bool(most >= max(2, CROWDED * means.size))


def _t_bound(over: Interval, side: int, level: float) -> float:
    return over.value + side * t_quantile(level, over.df) * over.se


_LARGEST = math.log(sys.float_info.max)  # exponent


def _lognormal_bound(means: Floats, level: float) -> float:
    """The upper bound if the amounts may be lognormal, where Hall's misses 7-20 %; else -inf.

    It puts together the bounds of the mean and of the variance of their logarithms.
    """
    if means.min() <= 0:
        return -math.inf
    logs = np.log(means)
    n = means.size
    sd = sample_sd(logs)
    off = logs - logs.mean()
    # two of its errors
    if not sd > 0 or float((off * off * off).mean()) / sd**3 < -2 * math.sqrt(6 / n):
        return -math.inf
    of_mean = t_quantile(level, n - 1) * sd / math.sqrt(n)
    chi_squared = float(special.chdtri(n - 1, level))
    of_variance = sd**2 / 2 * ((n - 1) / chi_squared - 1)
    reach = math.copysign(math.hypot(of_mean, of_variance), level - 0.5)
    exponent = centred_mean(logs) + sd**2 / 2 + reach
    if exponent < _LARGEST:
        return math.exp(exponent)
    return math.inf
