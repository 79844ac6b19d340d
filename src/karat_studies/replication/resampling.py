"""Tests recomputed from resampled participants, all replicates at once.

A replicate says how often each unit (a participant; in games a group) was drawn. Tests are
computed from sums over rows, so replicates are the rows of a matrix of multiplicities, and all
their sums are one matrix product. Rank tests need the ranks within each replicate, which follow
from weighted counts of sorted values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from karat_studies.replication import bayes, correlations, counts, effects, ranks
from karat_studies.replication._inputs import Floats, check_choice
from karat_studies.replication.evidence import ROUNDING, SHARE_KINDS

Places = npt.NDArray[np.intp]

NO_SPREAD = 1e-12  # relative to the largest number: smaller differences are rounding errors
# relative to the raw sum of squares: a smaller spread is recomputed without cancellation
DOUBTFUL = 1e-7
CELLS = 1 << 21  # in one block of replicates: 16 MB per matrix


@dataclass(frozen=True, kw_only=True, slots=True)
class TestRows:
    """The rows of data for one test, as numbers, without unusable rows."""

    __test__ = False  # not a test class, despite the name

    kind: str  # one of effects.KINDS
    units: Places  # the unit of each row
    groups: Places  # the compared group of each row, from 0
    levels: int  # the number of groups; in a factorial design its cells, those of a group adjacent
    # the measure; for tables the outcome's index, for shares 1 and 0, for pairs the difference
    values: Floats
    against: Floats | None = None  # correlations: the other measure
    cells: int = 1  # of each compared group: more than one in a factorial design
    outcomes: int = 2  # of a table
    p0: float = 0.5
    scale: float = 0.0  # the largest absolute number that the values come from


@dataclass(frozen=True, kw_only=True, slots=True)
class Replicates:
    """One test in each replicate; NaN if it cannot be computed there, e.g. because all answers are
    the same.
    """

    statistic: Floats  # tables: ln OR if 2×2
    log_bf: Floats
    d: Floats


def ties_merged(values: Floats, *, largest: float | None = None) -> Floats:
    """The same values, made equal if they differ only by rounding; remainders of rounding become 0.

    `largest`: the largest absolute number that the values were computed from; by default that of
    the values. Signs
    are kept: the negatives of the values give the negatives. Without this function 0.3 − 0.2 and
    0.2 − 0.1 are not tied, and rounding would decide the order of ranks and the direction of an
    effect.

    >>> np.unique(ties_merged(np.array([0.3 - 0.2, 0.2 - 0.1, 0.1]))).size
    1
    """
    if not values.size:
        return values
    if largest is None:
        scale = float(np.abs(values).max())
    else:
        scale = largest

    order = np.argsort(np.abs(values), kind="stable")
    sizes = np.abs(values)[order]
    first = np.diff(sizes, prepend=-np.inf) > NO_SPREAD * scale
    merged = sizes[np.flatnonzero(first)[np.cumsum(first) - 1]]
    tied = np.empty_like(values)
    tied[order] = np.where(merged > NO_SPREAD * scale, merged, 0.0)
    return np.copysign(tied, values)


def multiplicities(
    strata: Places,
    *,
    rng: np.random.Generator,
    replicates: int,
    width: int = 0,
) -> Iterator[Floats]:
    """How often each unit is drawn, with replacement; each stratum keeps its number of units.

    Yields blocks (replicates, units) of limited size; `width`: the largest number of rows in any
    test, if that exceeds the number of units.
    """
    order = np.argsort(strata, kind="stable")
    if strata.size:
        sizes = np.bincount(strata)
    else:
        sizes = np.zeros(0, dtype=np.intp)

    if sizes.size:
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    else:
        starts = sizes

    block = max(1, CELLS // max(strata.size, width, 1))
    for first in range(0, replicates, block):
        rows = min(block, replicates - first)
        draws = np.zeros((rows, strata.size), order="F")  # a test takes the columns of its units
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            drawn = rng.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
            tally = np.bincount(drawn.reshape(-1), minlength=rows * size).reshape(rows, size)
            draws[:, order[start : start + size]] = tally

        yield draws


def replicate_test(
    rows: TestRows,
    weights: Floats,
    *,
    method: str,
    rng: np.random.Generator | None = None,
) -> Replicates:
    """The test in every replicate. `weights`: (replicates, units), how often each unit was drawn.

    `method` is that of the test's Bayes factor; rank tests are always asymptotic here. With `rng`,
    groups whose answers are all the same are smoothed (`counts.smoothed_counts`), in tables and
    shares: 20 of 20 is not a certainty.

    >>> rows = TestRows(
    ...     kind="binomial",
    ...     units=np.arange(4),
    ...     groups=np.zeros(4, dtype=int),
    ...     levels=1,
    ...     values=np.array([1.0, 1.0, 1.0, 0.0]),
    ... )
    >>> replicate_test(
    ...     rows, np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 0.0, 2.0]]), method="default"
    ... ).statistic
    array([3., 2.])
    """
    check_choice("kind", rows.kind, effects.KINDS)
    with np.errstate(all="ignore"):
        if rows.kind == "contingency":
            return _tables(rows, weights, method, rng)
        if rows.kind in SHARE_KINDS:
            n, k = _sums(weights, rows.units, np.ones_like(rows.values), rows.values)
            if rng is not None and rows.values.size and np.ptp(rows.values) == 0:
                k = counts.smoothed_counts(
                    np.stack([k, n - k], axis=-1)[:, None], np.array([True]), rng
                )[:, 0, 0]

            n = np.where(n > 0, n, np.nan)
            k = np.where(n > 0, k, np.nan)
            d = np.asarray(effects.to_cohens_d(rows.kind, k / n, p0=rows.p0))
            return Replicates(
                statistic=k, log_bf=np.asarray(counts.log_bf10_binomial(k, n, p0=rows.p0)), d=d
            )

        if rows.kind in {"correlation", "spearman"}:
            return _correlations(rows, weights)
        if rows.kind == "mannwhitney":
            values = _Sorted(rows.values)
            first, second = (
                values.counted(weights, rows.units, rows.groups == level) for level in (0, 1)
            )
            n1, n2 = (_positive(side.sum(axis=1)) for side in (first, second))
            below = np.cumsum(second, axis=1) - second / 2
            u = (first * below).sum(axis=1) + 0 * n1 * n2
            tie_term = _tie_term(first + second)
            r = effects.rank_biserial(u, n1, n2)
            d = np.asarray(effects.to_cohens_d("mannwhitney", r))
            log_bf = ranks.log_bf10_mann_whitney(u, n1, n2, method="asymptotic", tie_term=tie_term)
            return Replicates(statistic=u, log_bf=np.asarray(log_bf), d=d)

        if rows.kind == "wilcoxon":
            apart = ties_merged(rows.values, largest=rows.scale)
            there = apart != 0
            size = np.abs(apart[there])
            positive = apart[there] > 0
            units = rows.units[there]
            ranked = _Sorted(size)
            every = ranked.counted(weights, units, np.ones(size.size, dtype=bool))
            n = _positive(every.sum(axis=1))
            place = np.cumsum(every, axis=1) - (every - 1) / 2
            above = (place * ranked.counted(weights, units, positive)).sum(axis=1)
            spread = np.sqrt(_positive(n * (n + 1) * (2 * n + 1) / 24 - _tie_term(every) / 48))
            z = (above - n * (n + 1) / 4) / spread
            r = _whole_at_one(z * spread / (n * (n + 1) / 4))
            d = np.asarray(effects.to_cohens_d("wilcoxon", r))
            log_bf = bayes.log_bf10_z(z, 3 * n / np.pi)
            return Replicates(statistic=z, log_bf=np.asarray(log_bf), d=d)

        return _means(rows, weights, method)


def _tables(
    rows: TestRows,
    weights: Floats,
    method: str,
    rng: np.random.Generator | None,
) -> Replicates:
    cells = rows.groups * rows.outcomes + rows.values.astype(np.intp)
    used, own = _used(rows.units)
    many = rows.levels * rows.outcomes
    sums = (
        np.bincount(own * many + cells, minlength=used.size * many)
        .reshape(-1, many)
        .astype(np.float64)
    )
    table = (weights[:, used] @ sums).reshape(-1, rows.levels, rows.outcomes)
    if rng is not None:
        observed = sums.sum(axis=0).reshape(rows.levels, rows.outcomes)
        table = counts.smoothed_counts(table, (observed > 0).sum(axis=-1) == 1, rng)

    smallest = table.sum(axis=-1).min(axis=-1)[:, None, None]
    table = np.where(smallest > 0, table, np.nan)
    log_bf = np.asarray(counts.log_bf10_contingency(table, sampling=method))
    if table.shape[1:] != (2, 2):
        nothing = np.full(len(table), np.nan)
        return Replicates(statistic=nothing, log_bf=log_bf, d=nothing)

    log_or = np.asarray(effects.log_odds_ratio(table))
    d = np.asarray(effects.to_cohens_d("contingency", log_or))
    return Replicates(statistic=log_or, log_bf=log_bf, d=d)


def _means(rows: TestRows, weights: Floats, method: str) -> Replicates:
    """T tests, F and the ratio of variances: all from the n, mean and sum of squares of each
    group.
    """
    spreads = [_spread(rows, weights, rows.groups == level) for level in range(rows.levels)]
    n, mean, squares = (np.stack(part, axis=1) for part in zip(*spreads, strict=True))
    n = np.where(n.min(axis=1, keepdims=True) >= 2, n, np.nan)
    if rows.kind in {"ttest_one", "ttest_paired"}:
        t = mean[:, 0] / np.sqrt(_positive(squares[:, 0]) / (n[:, 0] - 1) / n[:, 0])
        return _of_t(rows.kind, t, n[:, 0], None)

    if rows.kind == "variance_ratio":
        first, second = (_positive(squares[:, at]) / (n[:, at] - 1) for at in (0, 1))
        nothing = np.full(len(n), np.nan)
        return Replicates(statistic=first / second, log_bf=nothing, d=nothing)

    if rows.kind == "welch":
        error = _positive((squares / (n - 1) / n).sum(axis=1))
        return _of_t(
            rows.kind,
            (mean[:, 0] - mean[:, 1]) / np.sqrt(error),
            n[:, 0],
            n[:, 1],
        )

    total = n.sum(axis=1)
    within = _positive(squares.sum(axis=1)) / _positive(total - rows.levels)
    if rows.kind == "ttest_ind":
        t = (mean[:, 0] - mean[:, 1]) / np.sqrt(within * (1 / n).sum(axis=1))
        return _of_t(rows.kind, t, n[:, 0], n[:, 1])

    if rows.cells > 1:  # unweighted means of the cells: Yates's weighted squares of means
        n, mean = (part.reshape(len(n), -1, rows.cells) for part in (n, mean))
        n = rows.cells**2 / (1 / n).sum(axis=2)
        mean = mean.mean(axis=2)

    grand = (n * mean).sum(axis=1) / n.sum(axis=1)
    f = (n * (mean - grand[:, None]) ** 2).sum(axis=1) / (n.shape[1] - 1) / within
    df2 = total - rows.levels
    df1 = n.shape[1] - 1.0
    equal = np.ptp(mean, axis=1) <= NO_SPREAD * rows.scale
    f = np.where(equal & np.isfinite(f), 0.0, f)
    sizes = n if method == "jzs" else None
    log_bf = np.asarray(bayes.log_bf10_anova(f, df1, df2, n_per_group=sizes, method=method))
    if df1 != 1:
        return Replicates(statistic=f, log_bf=log_bf, d=np.full(len(f), np.nan))
    apart = mean[:, 0] - mean[:, 1]
    sign = np.where(equal, np.nan, np.sign(apart))  # F has no direction itself
    return Replicates(statistic=f, log_bf=log_bf, d=sign * np.sqrt(f * (1 / n).sum(axis=1)))


def _positive(values: Floats) -> Floats:
    return np.where(values > 0, values, np.nan)


def _of_t(kind: str, t: Floats, n1: Floats, n2: Floats | None) -> Replicates:
    log_bf = np.asarray(bayes.log_bf10_ttest(t, n1, n2))
    d = effects.to_cohens_d(kind, effects.cohens_d(t, n1, n2))
    return Replicates(statistic=t, log_bf=log_bf, d=np.asarray(d))


def _correlations(rows: TestRows, weights: Floats) -> Replicates:
    assert rows.against is not None
    if rows.kind == "spearman":  # the ranks within each replicate
        drawn = weights[:, rows.units]
        n = drawn.sum(axis=1)
        everybody = np.ones(rows.values.size, dtype=bool)
        away = []
        for part in (rows.values, rows.against):
            values = _Sorted(part)
            every = values.counted(weights, rows.units, everybody)
            place = np.cumsum(every, axis=1) - (every - 1) / 2
            away.append(place[:, values.inverse] - (n[:, None] + 1) / 2)

        first, second, both = (
            np.einsum("ij,ij,ij->i", drawn, away[left], away[right])
            for left, right in ((0, 0), (1, 1), (0, 1))
        )
    else:
        n, first, second, both = _cross_sums(rows, weights)

    r = both / np.sqrt(_positive(first)) / np.sqrt(_positive(second))
    r = np.where(n >= 3, _whole_at_one(r), np.nan)
    of = (
        correlations.log_bf10_pearson
        if rows.kind == "correlation"
        else correlations.log_bf10_spearman
    )
    known = np.where(n >= (3 if rows.kind == "correlation" else 4), r, np.nan)
    d = np.asarray(effects.to_cohens_d(rows.kind, known))
    return Replicates(statistic=r, log_bf=np.asarray(of(r, n)), d=d)


def _whole_at_one(r: Floats) -> Floats:
    """Corrects a rounded 1: an r of 1 has no d, one of 1 − 10⁻¹⁶ would have 10⁸."""
    return np.where(np.abs(r) > 1 - ROUNDING, np.sign(r), r)


def _tie_term(counted: Floats) -> Floats:
    return np.asarray((counted**3 - counted).sum(axis=1))


def _sums(weights: Floats, units: Places, *columns: Floats) -> list[Floats]:
    """The weighted sum of each column, in every replicate: summed within units first."""
    used, own = _used(units)
    sums = np.stack(
        [np.bincount(own, weights=column, minlength=used.size) for column in columns], axis=1
    )
    return list((weights[:, used] @ sums).T)


def _used(units: Places) -> tuple[Places, Places]:
    """The existing units, and the unit of each row."""
    existing, own = np.unique(units, return_inverse=True)
    return existing, own


def _spread(
    rows: TestRows, weights: Floats, inside: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """N, mean and sum of squares about the mean, over the rows `inside`."""
    values = rows.values[inside]
    units = rows.units[inside]
    if values.size:
        centre = float(values.mean())
    else:
        centre = 0.0

    away = values - centre
    n, total, raw = _sums(weights, units, np.ones_like(away), away, away * away)
    if not values.size or np.ptp(values) <= NO_SPREAD * rows.scale:
        return n, np.full_like(n, centre), np.zeros_like(n)
    squares = raw - total * total / n
    for at in np.flatnonzero(~(squares > DOUBTFUL * raw) & (n > 0)):
        drawn = weights[at, units]
        squares[at] = _squares(away, away, drawn, rows.scale)

    return n, centre + total / n, squares


def _squares(x: Floats, y: Floats, drawn: Floats, scale: float) -> float:
    """Σw(x − x̄)(y − ȳ) in two passes; 0 if x and y differ only by rounding."""
    kept = drawn > 0
    first = x[kept]
    second = y[kept]
    weight = drawn[kept]
    if x is y and np.ptp(first) <= NO_SPREAD * scale:
        return 0.0
    first, second = (part - (weight * part).sum() / weight.sum() for part in (first, second))
    return float((weight * first * second).sum())


def _cross_sums(rows: TestRows, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """N, both sums of squares, and the sum of products, each about the means."""
    assert rows.against is not None
    x, y = (part - part.mean() if part.size else part for part in (rows.values, rows.against))
    n, sx, sy, xx, yy, xy = _sums(weights, rows.units, np.ones_like(x), x, y, x * x, y * y, x * y)
    first = xx - sx * sx / n
    second = yy - sy * sy / n
    both = xy - sx * sy / n
    largest = [float(np.abs(part).max(initial=0.0)) for part in (rows.values, rows.against)]
    if not x.size or any(
        np.ptp(part) <= NO_SPREAD * most for part, most in zip((x, y), largest, strict=True)
    ):
        return n, np.zeros_like(n), np.zeros_like(n), np.zeros_like(n)

    doubtful = ~((first > DOUBTFUL * xx) & (second > DOUBTFUL * yy)) & (n > 0)
    for at in np.flatnonzero(doubtful):
        drawn = weights[at, rows.units]
        first[at], second[at] = (
            _squares(part, part, drawn, most) for part, most in zip((x, y), largest, strict=True)
        )
        both[at] = _squares(x, y, drawn, 0.0)

    return n, first, second, both


class _Sorted:
    """Sorted values, and how often each distinct one is drawn."""

    def __init__(self, values: Floats) -> None:
        distinct, self.inverse = np.unique(ties_merged(values), return_inverse=True)
        self._distinct = distinct.size
        self._order = np.argsort(self.inverse, kind="stable")
        self._starts = np.searchsorted(self.inverse[self._order], np.arange(self._distinct))

    def counted(self, weights: Floats, units: Places, inside: npt.NDArray[np.bool_]) -> Floats:
        """(replicates, distinct values): how often each value occurs in rows `inside`."""
        if not self._distinct:
            return np.zeros((len(weights), 0))
        drawn = weights[:, units[self._order]] * inside[self._order]
        return np.asarray(np.add.reduceat(drawn, self._starts, axis=1))
