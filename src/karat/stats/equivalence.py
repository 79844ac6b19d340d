"""Whether two conditions are the same for all purposes: shown at a bound, not taken from a missing difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from karat.stats._groups import group, t_quantile
from karat.stats.intervals import t_interval
from karat.stats.paired import paired_difference
from karat.stats.results import Equivalence
from karat.stats.unpaired import mean_difference, share_of_arrangements

__all__ = ["tost", "tost_of_estimate"]

Bounds = float | Sequence[float]


def tost(
    a: Iterable[Any],
    b: Iterable[Any] | None = None,
    clusters: Iterable[Any] | None = None,
    *,
    bounds: Bounds,
    clusters_b: Iterable[Any] | None = None,
    design: Literal["paired", "independent", "pooled"] = "paired",
    alpha: float = 0.05,
) -> Equivalence:
    """Whether b − a lies between two bounds: two one-sided t-tests on question means.

    `bounds`: the smallest difference that would matter, to both sides, or two numbers (lower, upper); to be
    chosen before the data are seen. Without `b`, the mean of `a` itself is tested. `design`: `paired` over
    the questions that both answered, `independent` for different questions (Welch), `pooled` the same with one
    variance (Student); these two want `clusters_b` beside `clusters`. Shares are 0/1 values. A large p shows nothing:
    neither equivalence nor a difference.
    Missing values count as in `paired_difference` and `mean_difference`; in `a` alone they make all
    NaN. Raises ValueError for bounds that are not in order and alpha outside (0, 0.5).

    >>> found = tost([3, 4, 2, 5, 4, 4], [3, 4, 3, 5, 4, 4], bounds=0.8)
    >>> round(found.value, 3), round(found.p, 4), found.equivalent
    (0.167, 0.0063, True)

    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15:657.
    """
    if design not in ("paired", "independent", "pooled"):
        raise ValueError(f"design: must be paired, independent or pooled, got {design!r}")
    if b is None:
        groups = group(a, clusters)
        alone = t_interval(groups.means, level=0.95, observations=groups.values.size, missing=groups.missing)
        found = tost_of_estimate(alone.value, alone.se, alone.df, bounds=bounds, alpha=alpha, n=alone.n)
        return _flat(replace(found, method="tost, one sample", reason=found.reason and alone.reason))
    if design == "paired":
        both = paired_difference(a, b, clusters, clusters_b=clusters_b)
        found = tost_of_estimate(both.value, both.se, both.df, bounds=bounds, alpha=alpha, n=both.n)
        named = replace(found, method="tost, paired", warnings=both.warnings, reason=found.reason and both.reason)
        return _flat(named)
    apart = mean_difference(a, b, clusters, clusters_b, equal_variances=design == "pooled")
    found = tost_of_estimate(apart.value, apart.se, apart.df, bounds=bounds, alpha=alpha, n=apart.n)
    named = replace(found, method=f"tost, {design}", warnings=apart.warnings, reason=found.reason and apart.reason)
    return _flat(named, sides=(apart.n_a, apart.n_b))


def tost_of_estimate(
    value: float, se: float, df: float = math.inf, *, bounds: Bounds, alpha: float = 0.05, n: int = 0
) -> Equivalence:
    """The same of any estimate with an error and degrees of freedom (∞: normal), such as a published one.

    An error of 0 or NaN: p is NaN, with a reason.

    >>> found = tost_of_estimate(0.4, 1 / 5, 24, bounds=0.5, n=25)
    >>> round(found.t_low, 3), round(found.t_high, 3), round(found.p, 4)
    (4.5, -0.5, 0.3108)

    Lakens (2017), Soc. Psychol. Personal. Sci. 8:355.
    """
    low, high = _ends(bounds)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds: must be finite, the lower below the upper, got {low:g} and {high:g}")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha: must lie between 0 and 0.5, got {alpha}")
    if se < 0:
        raise ValueError(f"se: must be at least 0, got {se}")
    nan, reason = math.nan, None
    if math.isnan(value) or math.isnan(se):
        reason = "the estimate or its error is not known"
    elif se == 0:
        reason = "the error is 0: there is no spread to test with"
    elif not df > 0:
        reason = "the degrees of freedom are not known"
    known = Equivalence(
        value=value, se=se, low=nan, high=nan, bounds=(low, high), alpha=alpha, t_low=nan, t_high=nan,
        p_low=nan, p_high=nan, n=n, df=df, method="tost", reason=reason,
    )  # fmt: skip
    if reason is not None:
        return known
    t_low, t_high, reach = (value - low) / se, (value - high) / se, _quantile(1 - alpha, df) * se
    return replace(
        known,
        low=value - reach,
        high=value + reach,
        t_low=t_low,
        t_high=t_high,
        p_low=_below(-t_low, df),
        p_high=_below(t_high, df),
    )


def _ends(bounds: Bounds) -> tuple[float, float]:
    listed = np.asarray(bounds, dtype=np.float64)
    if listed.ndim == 0:
        return 0.0 - float(listed), float(listed)
    if listed.shape != (2,):
        raise ValueError(f"bounds: must be one number, or a lower and an upper one, got {listed.size}")
    return float(listed[0]), float(listed[1])


def _flat(found: Equivalence, sides: tuple[int, int] | None = None) -> Equivalence:
    """Values that are all equal: p is that of sign flips about each bound, or of a permutation."""
    if found.se != 0 or found.n < 2:
        return found
    smallest = share_of_arrangements(*sides) if sides else max(2.0**-found.n, math.ulp(0.0))
    over, under = found.value - found.bounds[0], found.value - found.bounds[1]
    return replace(
        found,
        low=found.value,
        high=found.value,
        t_low=math.copysign(math.inf, over) if over else math.nan,
        t_high=math.copysign(math.inf, under) if under else math.nan,
        p_low=smallest if over > 0 else 1.0,
        p_high=smallest if under < 0 else 1.0,
        reason=f"all values are equal: p by {'permutation' if sides else 'sign flips'}",
    )


def _below(t: float, df: float) -> float:
    from karat.stats.special import ndtr, stdtr

    return max(float(ndtr(t) if math.isinf(df) else stdtr(df, t)), math.ulp(0.0))


def _quantile(probability: float, df: float) -> float:
    from karat.stats.special import ndtri

    return float(ndtri(probability)) if math.isinf(df) else t_quantile(probability, df)
