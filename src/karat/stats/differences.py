"""Two conditions over the same questions: how much they differ, and whether by chance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from karat.stats import special
from karat.stats._groups import (
    Codes,
    Floats,
    Groups,
    check_level,
    columns,
    group,
    labels_of,
    t_two_sided,
)
from karat.stats.intervals import centred_mean, clustered_mean, sample_sd
from karat.stats.results import Equivalence, Interval, PairedDifference


def paired_difference(
    a: Iterable[object],
    b: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    clusters_b: Iterable[object] | None = None,
    sources: Iterable[object] | None = None,
    level: float = 0.95,
) -> PairedDifference:
    """How much higher b is than a: paired t on differences of question means.

    `clusters` names the question of each value of `a`, and of `b` too unless `clusters_b` does;
    without clusters the i-th values belong together. Only questions with a value under both count;
    the result reports how many were lost on either side, with a warning if the losses differ. None
    and NaN are failed trials: left out and counted. Equal to the balanced mixed model. If every
    difference is the same, t is infinite or NaN; p is then that of the sign-flip test, never 0.
    `sources`: the document or other origin of each value of `a`, if questions of one source are not
    independent; error and degrees of freedom are then those of `clustered_mean`.

    >>> found = paired_difference([3, 4, 2, 5], [4, 4, 3, 5], ["q1", "q2", "q3", "q4"])
    >>> found.value, round(found.p, 3), found.better, found.equal
    (0.5, 0.182, 2, 2)

    Miller (2024), arXiv:2411.00640, section 4.
    """
    check_level(level)
    pairs = _pairs(a, b, clusters, clusters_b, sources)
    lost_a, lost_b = (
        int(np.count_nonzero(np.isnan(means))) for means in (pairs.means_a, pairs.means_b)
    )
    missing_a, missing_b = pairs.missing
    both = ~np.isnan(pairs.means_a) & ~np.isnan(pairs.means_b)
    means_a, means_b = pairs.means_a[both], pairs.means_b[both]
    warning = ""
    if lost_a != lost_b:
        warning = f"questions lost under a: {lost_a}, under b: {lost_b}"
    elif missing_a != missing_b:
        warning = f"answers missing under a: {missing_a}, under b: {missing_b}"

    d = means_b - means_a
    if pairs.sources is None:
        kept = None
    else:
        kept = pairs.sources[both]

    interval = clustered_mean(d, kept, level=level)
    units = "differences" if interval.n == interval.observations else "mean differences of clusters"
    statistic, p, reason = t_test(
        interval,
        unknown=interval.reason if interval.observations else "no question has a value under both",
        zero=f"all {interval.n} {units} are 0",
        units=units,
    )
    sd = sample_sd(d)
    if sd > 0:
        d_z = interval.value / sd
    else:
        d_z = math.nan

    return PairedDifference(
        value=interval.value,
        se=interval.se,
        low=interval.low,
        high=interval.high,
        level=level,
        n=d.size,
        method="paired t on question means" if kept is None else "paired CR2 on question means",
        statistic=statistic,
        df=interval.df,
        p=p,
        mean_a=centred_mean(means_a),
        mean_b=centred_mean(means_b),
        d_z=d_z,
        better=int(np.count_nonzero(d > 0)),
        worse=int(np.count_nonzero(d < 0)),
        equal=int(np.count_nonzero(d == 0)),
        lost_a=lost_a,
        lost_b=lost_b,
        missing_a=missing_a,
        missing_b=missing_b,
        clusters=None if kept is None else interval.n,
        design_effect=interval.design_effect,
        warnings=(f"{warning}; the compared parts may differ",) if warning else (),
        reason=reason,
    )


class _Pairs(NamedTuple):
    """The question means of both sides in one order, NaN for a question without a value."""

    means_a: Floats
    means_b: Floats
    missing: tuple[int, int]  # values under a and under b
    sources: Codes | None  # of each question; -1 for one that was asked under b alone


def _pairs(
    a: Iterable[object],
    b: Iterable[object],
    clusters: Iterable[object] | None,
    clusters_b: Iterable[object] | None,
    sources: Iterable[object] | None,
) -> _Pairs:
    if clusters is None and clusters_b is not None:
        raise ValueError("clusters: must be given where clusters_b is")
    values_a, values_b = columns("a", a), columns("b", b)
    if clusters_b is None and values_a.size != values_b.size:
        raise ValueError(
            f"b: must be as long as a ({values_a.size}), got {values_b.size}; or give clusters_b"
        )

    if isinstance(clusters, np.ndarray):
        questions = clusters.tolist()
    else:
        questions = clusters and list(clusters)

    sides = (
        group(values_a, questions),
        group(values_b, questions if clusters_b is None else clusters_b),
    )
    asked = dict.fromkeys(question for side in sides for question in side.labels)
    answered = [answered_means(side) for side in sides]
    first, second = (
        np.array([means.get(question, math.nan) for question in asked], dtype=np.float64)
        for means in answered
    )
    origins = None
    if sources is not None:
        known = group(np.zeros(len(sides[0].labels)), labels_of(sides[0], sources)).codes
        origins = np.append(known, np.full(len(asked) - known.size, -1))
    return _Pairs(
        means_a=first, means_b=second, missing=(sides[0].missing, sides[1].missing), sources=origins
    )


def answered_means(side: Groups) -> dict[object, float]:
    """The mean of each question that has a value; NaN and infinities do not count."""
    kept = np.isfinite(side.values)
    if kept.all():
        return dict(zip(side.labels, side.means.tolist(), strict=True))
    labels = [side.labels[code] for code in side.codes[kept]]
    left = group(side.values[kept], labels)
    return dict(zip(left.labels, left.means.tolist(), strict=True))


def t_test(
    d: Interval, *, unknown: str | None, zero: str, units: str
) -> tuple[float, float, str | None]:
    """Statistic, p and reason of "the mean of these differences is 0"; the reasons are in the
    caller's words.
    """
    if math.isnan(d.se):
        return math.nan, math.nan, unknown
    if d.se > 0:
        return d.value / d.se, t_two_sided(d.value / d.se, d.df), None
    if d.value == 0:
        return math.nan, 1.0, zero
    p = max(2.0 ** (1 - d.n), math.ulp(0.0))
    return math.copysign(math.inf, d.value), p, f"all {d.n} {units} are equal: p by sign flips"


def tost(
    a: Iterable[object],
    b: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    bounds: float | tuple[float, float],
    clusters_b: Iterable[object] | None = None,
    alpha: float = 0.05,
) -> Equivalence:
    """Whether b − a lies between two bounds: two one-sided t-tests on question means.

    `bounds`: the smallest difference that would matter, on both sides, or two numbers (lower,
    upper); choose them before seeing the data. Over the questions that both answered, which
    `clusters` name as in `paired_difference`. Shares are 0/1 values. A large p shows neither
    equivalence nor a difference. If every difference is the same, p is that of sign flips about
    each bound. Raises ValueError for bounds out of order and alpha outside (0, 0.5).

    >>> found = tost([3, 4, 2, 5, 4, 4], [3, 4, 3, 5, 4, 4], bounds=0.8)
    >>> round(found.value, 3), round(found.p, 4), found.equivalent
    (0.167, 0.0063, True)

    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15:657.
    """
    low, high = (-bounds, bounds) if isinstance(bounds, (int, float)) else bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
            f"bounds: must be finite, the lower below the upper, got {low:g} and {high:g}"
        )

    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha: must lie between 0 and 0.5, got {alpha}")
    d = paired_difference(a, b, clusters, clusters_b=clusters_b, level=1 - 2 * alpha)
    over, under = d.value - low, d.value - high
    t_low = t_high = p_low = p_high = math.nan
    if d.se > 0:
        t_low, t_high = over / d.se, under / d.se
        p_low, p_high = _below(-t_low, d.df), _below(t_high, d.df)
    elif d.se == 0:
        smallest = max(2.0**-d.n, math.ulp(0.0))
        t_low = math.copysign(math.inf, over) if over else math.nan
        t_high = math.copysign(math.inf, under) if under else math.nan
        p_low = smallest if over > 0 else 1.0
        p_high = smallest if under < 0 else 1.0

    return Equivalence(
        value=d.value,
        se=d.se,
        low=d.low,
        high=d.high,
        bounds=(low, high),
        alpha=alpha,
        t_low=t_low,
        t_high=t_high,
        p_low=p_low,
        p_high=p_high,
        n=d.n,
        df=d.df,
        method="tost, paired",
        warnings=d.warnings,
        reason="all values are equal: p by sign flips" if d.se == 0 else d.reason,
    )


def _below(t: float, df: float) -> float:
    return max(float(special.stdtr(df, t)), math.ulp(0.0))
