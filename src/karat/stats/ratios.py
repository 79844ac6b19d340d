"""Rates over unequal clusters: all turns of all conversations, an error between conversations.

A mean of cluster means lets a conversation of one turn weigh as much as one of eight; a rate over
all turns is a ratio of two sums that both vary between conversations. Its error is that of the
linearised ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from karat.stats._groups import Codes, Floats, check_level, columns, group
from karat.stats.differences import cliffs_delta, correlation, t_test
from karat.stats.intervals import clustered_mean
from karat.stats.results import Interval, PairedDifference
from karat.stats.shares import effective_n, wilson_bounds

_NOISE = 1e-12  # of a sum of deviations, relative to the sum: only rounding


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusteredRatio:
    """A rate over all turns, and how much clustering widens its interval."""

    interval: Interval  # n: clusters; observations: turns
    naive_se: float  # as if turns were independent
    design_effect: float  # (se / naive_se)²: NaN if either is 0 or unknown


@dataclass(frozen=True, kw_only=True, slots=True)
class Sums:
    """Per cluster: the sum of its values, how many there are, the sum of their squares, and its
    weight.

    Clusters without a value do not count. Raises ValueError for columns of unequal length,
    numbers that are not finite, counts and weights below 0.
    """

    totals: Floats
    counts: Floats
    squares: Floats
    weights: Floats

    @classmethod
    def of(
        cls,
        totals: Iterable[object],
        counts: Iterable[object],
        *,
        squares: Iterable[object] | None = None,
        weights: Iterable[object] | None = None,
    ) -> Sums:
        """`squares`: None if all values are 0 or 1.

        `weights`: how many clusters each represents; None: one.
        """
        total = columns("totals", totals)
        count = columns("counts", counts)
        if squares is None:
            square = total
        else:
            square = columns("squares", squares)

        if weights is None:
            weight = np.ones(total.size)
        else:
            weight = columns("weights", weights)

        if not total.size == count.size == square.size == weight.size:
            raise ValueError(
                f"counts, squares and weights: must be as many as totals ({total.size})"
            )

        listed = np.concatenate([total, count, square, weight])
        if not np.isfinite(listed).all() or (count < 0).any() or (weight < 0).any():
            raise ValueError(
                "totals, counts, squares, weights: must be finite, counts and weights at least 0"
            )

        return cls(totals=total, counts=count, squares=square, weights=weight)

    def only(self, kept: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Sums:
        """Some of the clusters, by flags or by place."""
        return Sums(
            totals=self.totals[kept],
            counts=self.counts[kept],
            squares=self.squares[kept],
            weights=self.weights[kept],
        )

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        """Which clusters have a value that counts."""
        return (self.counts > 0) & (self.weights > 0)

    @property
    def means(self) -> Floats:
        """Of each cluster; NaN for one without a value."""
        unknown: Floats = np.full(self.counts.size, np.nan)
        means: Floats = np.divide(self.totals, self.counts, out=unknown, where=self.counts > 0)
        return means

    @property
    def size(self) -> float:
        """Σ w m: how many values there are, with their weights."""
        return float((self.weights * self.counts).sum())

    @property
    def ratio(self) -> float:
        """Σ w y / Σ w m."""
        if self.size > 0:
            return float((self.weights * self.totals).sum()) / self.size
        return math.nan

    def pulls(self) -> Floats:
        """Each cluster's influence on the rate: that of all, minus the rate without it, to first
        order.

        w (y − R m) / Σ w m, divided by the other clusters' share of all values.
        """
        raw = self._raw()
        others = 1 - self.shares
        return np.divide(raw, others * self.size, out=np.zeros_like(raw), where=others > 0)

    @property
    def shares(self) -> Floats:
        """Each cluster's share of all values."""
        shares: Floats = self.weights * self.counts / self.size
        return shares

    def scores(self) -> Floats:
        """The linearised rate less itself: w (y − R m) / Σ w m."""
        return self._raw() / self.size

    def _raw(self) -> Floats:
        raw: Floats = self.weights * (self.totals - self.ratio * self.counts)
        raw[np.abs(raw) <= _NOISE * self.weights * self.counts * (1 + abs(self.ratio))] = 0.0
        return raw


def _jackknife(pulls: Floats) -> float:
    """The jackknife error from the influences; with equal numbers of values it is the t-test's."""
    n = pulls.size
    return math.sqrt((n - 1) / n * float(np.sum(pulls**2)))


def _by_source(
    value: float,
    scores: Floats,
    shares: Floats,
    sources: Codes,
    *,
    level: float,
) -> Interval:
    """The interval of a linearised rate, or of a difference of rates, over sources: CR2."""
    return clustered_mean(value + scores / shares, sources, weights=shares, level=level)


def _sources(labels: Iterable[object] | None, there: npt.NDArray[np.bool_]) -> Codes | None:
    """The source of each cluster with a value; None if they are independent: each has its own
    source, or none.
    """
    if labels is None:
        return None
    codes = group(np.zeros(there.size), labels).codes[there]
    return None if np.unique(codes).size == codes.size else codes


def ratio_interval(
    sums: Sums,
    *,
    share: bool,
    sources: Iterable[object] | None = None,
    level: float = 0.95,
) -> ClusteredRatio:
    """The rate Σ w y / Σ w m over clusters, with an interval that allows for correlation within
    them.

    The error is the linearised ratio's, √((G−1)/G Σ e²) with e = w (y − R m) / (Σ w m − w m), the
    jackknife over clusters, with t of G − 1 degrees of freedom; without weights that is the mean of
    all values with √((G−1)/G) CR3, and with one value per cluster Student's. `share`: all values
    are 0 or 1; the interval is then Wilson's at the effective n of that error, so it stays inside
    [0, 1] and is not a point at 0 or 1. One cluster: no interval. `sources`: the document or other
    origin of each cluster, if conversations of one document are not independent; error and degrees
    of freedom are then those of `clustered_mean` over sources, and `n` counts sources.

    >>> found = ratio_interval(Sums.of([1, 2, 0, 2], [2, 3, 2, 3]), share=True)
    >>> (
    ...     found.interval.value,
    ...     round(found.interval.se, 4),
    ...     found.interval.n,
    ...     round(found.design_effect, 2),
    ... )
    (0.5, 0.1392, 4, 0.7)

    Cochran (1977), Sampling Techniques, section 6.3; Bell and McCaffrey (2002), Survey Methodology
    28:169; Kish (1965), Survey Sampling, section 8.2; Korn and Graubard (1998), Survey Methodology
    24:193.
    """
    check_level(level)
    kept = sums.only(sums.there)
    sources_of = _sources(sources, sums.there)
    if sources_of is None:
        clusters = kept.counts.size
        over = Interval(
            value=kept.ratio,
            level=level,
            n=clusters,
            method="t",
            observations=int(kept.counts.sum()),
            reason="only one cluster, so no interval" if clusters else "no values",
        )
        if clusters > 1:
            se = _jackknife(kept.pulls())
            reason = None
            if se == 0:
                reason = f"all {clusters} clusters have the same rate"
            elif float(kept.shares.max()) > 0.5:
                reason = "one cluster holds more than half of the values"

            over = over.with_error(se, clusters - 1, reason)
    else:
        mean = _by_source(kept.ratio, kept.scores(), kept.shares, sources_of, level=level)
        over = replace(mean, value=kept.ratio, observations=int(kept.counts.sum()))

    method = "wilson at effective n, clustered ratio" if share else "t, clustered ratio"
    # the error if every value were independent of the others; NaN for fewer than two
    n = float(kept.counts.sum())
    ratio = kept.ratio
    naive = math.nan
    if n >= 2:
        squares = kept.squares - 2 * ratio * kept.totals + ratio**2 * kept.counts
        squares[np.abs(squares) <= _NOISE * kept.counts * (1 + ratio**2)] = 0.0
        spread = float((kept.weights**2 * np.maximum(squares, 0.0)).sum())
        naive = math.sqrt(n / (n - 1) * spread) / kept.size

    if math.isnan(over.se):
        return ClusteredRatio(
            interval=replace(over, method=method), naive_se=naive, design_effect=math.nan
        )

    low = over.low
    high = over.high
    if share:
        low, high = wilson_bounds(
            min(1.0, max(0.0, over.value)), effective_n(over, 0.5 + level / 2), level
        )

    interval = replace(over, method=method, low=low, high=high)
    if over.se > 0 and naive > 0:
        effect = (over.se / naive) ** 2
    else:
        effect = math.nan

    return ClusteredRatio(interval=interval, naive_se=naive, design_effect=effect)


def ratio_difference(
    a: Sums,
    b: Sums,
    *,
    sources: Iterable[object] | None = None,
    level: float = 0.95,
) -> PairedDifference:
    """How much higher b's rate is than a's, paired by cluster: the i-th clusters of both are the
    same conversation.

    Over the clusters with values under both; the result reports how many were lost. The error is
    that of the differences of the linearised scores, with t of G − 1 degrees of freedom. With one
    value per cluster, this is the paired t-test. `sources` as for `ratio_interval`.

    >>> one, two = Sums.of([1, 2, 0, 2], [2, 3, 2, 3]), Sums.of([2, 2, 1, 3], [2, 3, 2, 3])
    >>> found = ratio_difference(one, two)
    >>> round(found.value, 3), round(found.p, 3), found.n
    (0.3, 0.1, 4)

    Cochran (1977), Sampling Techniques, section 6.9.
    """
    check_level(level)
    if a.counts.size != b.counts.size:
        raise ValueError(
            f"b: must have as many clusters as a ({a.counts.size}), got {b.counts.size}"
        )

    there_a = a.there
    there_b = b.there
    first = a.only(there_a & there_b)
    second = b.only(there_a & there_b)
    n = first.counts.size
    value = second.ratio - first.ratio
    value = 0.0 if abs(value) <= _NOISE else value
    bare = Interval(
        value=value,
        level=level,
        n=n,
        method="paired t on clustered ratios",
        observations=n,
    )
    sources_of = _sources(sources, there_a & there_b)
    if sources_of is not None:
        scores = _moved(second.scores() - first.scores())
        shares = (first.shares + second.shares) / 2
        bare = replace(_by_source(value, scores, shares, sources_of, level=level), value=value)
    elif n > 1:
        bare = bare.with_error(_jackknife(_moved(second.pulls() - first.pulls())), n - 1)

    statistic, p, reason = t_test(
        bare,
        unknown="only one cluster, so no interval" if bare.n else "no cluster has values in both",
        zero=f"all {bare.n} clusters have the same rate on both sides",
        units="differences",
    )
    x, y = (part.totals / part.counts for part in (first, second))
    change = np.where(np.abs(y - x) <= _NOISE, 0.0, y - x)
    if bare.se > 0:
        d_z = value / (bare.se * math.sqrt(n))
    else:
        d_z = math.nan

    return PairedDifference(
        value=value,
        se=bare.se,
        low=bare.low,
        high=bare.high,
        level=level,
        n=n,
        method="paired t on clustered ratios",
        statistic=statistic,
        df=bare.df,
        p=p,
        mean_a=first.ratio,
        mean_b=second.ratio,
        d_z=d_z,
        cliffs_delta=cliffs_delta(x, y),
        correlation=correlation(first.pulls(), second.pulls()),
        better=int(np.count_nonzero(change > 0)),
        worse=int(np.count_nonzero(change < 0)),
        equal=int(np.count_nonzero(change == 0)),
        lost_a=int(np.count_nonzero(~there_a & there_b)),
        lost_b=int(np.count_nonzero(there_a & ~there_b)),
        clusters=None if sources_of is None else bare.n,
        design_effect=bare.design_effect,
        reason=reason,
    )


def _moved(changes: Floats) -> Floats:
    """The changes, without those of rounding alone, which would give a tiny error and a huge t."""
    return np.where(np.abs(changes) <= _NOISE / max(changes.size, 1), 0.0, changes)


def ratio_gap(
    a: Sums,
    b: Sums,
    *,
    sources_a: Iterable[object] | None = None,
    sources_b: Iterable[object] | None = None,
    level: float = 0.95,
) -> Interval:
    """How much higher b's rate is than a's, for different clusters: their variances add up.

    Student's t with Welch's degrees of freedom. `sources` as for `ratio_interval`. Fewer than two
    clusters on a side: no interval.

    >>> found = ratio_gap(Sums.of([1, 2, 0, 2], [2, 3, 2, 3]), Sums.of([2, 2, 1], [2, 2, 2]))
    >>> round(found.value, 3), round(found.se, 3), found.n
    (0.333, 0.217, 7)

    Welch (1947), Biometrika 34:28.
    """
    first, second = (
        ratio_interval(side, share=False, sources=sources, level=level).interval
        for side, sources in ((a, sources_a), (b, sources_b))
    )
    value = second.value - first.value
    variance = first.se**2 + second.se**2
    method = "t of two clustered ratios"
    n = first.n + second.n
    observations = first.observations + second.observations
    if math.isnan(variance):
        reason = first.reason or second.reason
        return Interval(
            value=value,
            level=level,
            n=n,
            method=method,
            observations=observations,
            reason=reason,
        )

    parts = first.se**4 / first.df + second.se**4 / second.df
    if parts > 0:
        df = variance**2 / parts
    else:
        df = first.df + second.df

    bare = Interval(value=value, level=level, n=n, method=method, observations=observations)
    return bare.with_error(math.sqrt(variance), df)
