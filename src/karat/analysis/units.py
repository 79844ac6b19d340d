"""Units: the one input of every number that is compared.

A row is a unit: a question, or a conversation with its turns. Report, compare, gate, plan, stop and leaderboard take
`Units` and nothing else, so a property of the input (losses, weights, clusters) is written here once. A unit keeps the
mean of its repetitions, how many there are and their spread, not every value: that is what a summary, its JSON and its
cache keep, and all that means, differences and plans need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from karat.analysis.grids import Grid
from karat.analysis.model import MetricInfo, SampleColumn, Summary
from karat.stats import paired_difference, ratio_difference, ratio_interval
from karat.stats.intervals import t_interval
from karat.stats.ratios import Sums
from karat.stats.results import Interval, PairedDifference
from karat.stats.shares import share_of_means

__all__ = [
    "Compared",
    "Units",
    "columns_of",
    "difference",
    "mean",
    "question_means",
    "shared",
    "subtracted",
    "units_of",
    "units_of_grid",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Key = tuple[str, str]


class Units(Struct, frozen=True, kw_only=True):
    """One metric under one condition, a row a unit. Everything that a decision reads."""

    metric: MetricInfo
    keys: Sequence[Key]  # id and digest of the content: pair units across conditions and runs
    means: Floats  # over repetitions or, with `sums`, over turns; NaN: there is none
    answers: Ints  # repetitions with a value
    sds: Floats  # of the repetitions, n−1; NaN for fewer than two
    planned: Ints  # repetitions that there should be
    sums: Sums | None = None  # over the turns of each unit: its mean is a ratio; None: a unit is one value

    @property
    def there(self) -> Flags:
        """Which units have a mean."""
        there: Flags = ~np.isnan(self.means)
        return there

    @property
    def never_asked(self) -> Flags:
        """Units that were not asked because the comparison was decided: not missing."""
        never: Flags = (self.planned == 0) & ~self.there
        return never

    @property
    def missing(self) -> Ints:
        """Repetitions without a value that there should be."""
        return self.planned - self.answers

    @property
    def weights(self) -> Floats:
        """How many units of the population each represents."""
        return np.ones(self.means.size) if self.sums is None else self.sums.weights

    @property
    def plain_mean(self) -> float:
        """The mean over units, or the rate over turns; NaN without any."""
        if self.sums is not None:
            return self.sums.ratio
        return float(self.means[self.there].mean()) if self.there.any() else math.nan

    def only(self, rows: Sequence[int] | Ints | Flags) -> Units:
        """Some of the units, in that order."""
        index = np.asarray(rows)
        places = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64)
        return structs.replace(
            self,
            keys=[self.keys[place] for place in places.tolist()],
            means=self.means[places],
            answers=self.answers[places],
            sds=self.sds[places],
            planned=self.planned[places],
            sums=None if self.sums is None else self.sums.only(places),
        )

    def with_weights(self, weights: Floats) -> Units:
        """The same units, of other weights."""
        return self if self.sums is None else structs.replace(self, sums=replace(self.sums, weights=weights))


class Compared(NamedTuple):
    """Two conditions, unit by unit."""

    a: Units
    b: Units
    test: PairedDifference
    lost: tuple[int, int, int]  # units with a mean only under b, only under a, under neither


def mean(units: Units, *, level: float) -> Interval:
    """The mean of the units' means, or the rate over all turns, with the interval that every report shows."""
    if units.sums is not None:
        flags = units.metric.kind == "share" and bool(np.array_equal(units.sums.totals, units.sums.squares))
        return ratio_interval(units.sums, share=flags, level=level).interval
    there, answers = units.there, int(units.answers.sum())
    if answers and _only_flags(units):
        return share_of_means(units.means[there], observations=answers, level=level)
    return t_interval(units.means[there], level=level, observations=answers)


def _only_flags(units: Units) -> bool:
    """Whether every value is 0 or 1: in [0, 1] only these have a sum that equals their sum of squares."""
    if units.metric.kind != "share":
        return False
    n, means = units.answers[units.there], units.means[units.there]
    spread = np.where(n > 1, units.sds[units.there] ** 2 * (n - 1), 0.0)
    return bool(np.allclose(spread + n * means**2, n * means, rtol=0, atol=1e-9))


def difference(a: Units, b: Units, *, level: float) -> Compared:
    """How much higher b is than a, over the units that have a mean under both. Pairs the i-th units: see `shared`."""
    if a.sums is not None and b.sums is not None:
        test = ratio_difference(a.sums, b.sums, level=level)
    else:
        test = _paired(a.means, b.means, level=level)
    asked = ~(a.never_asked | b.never_asked)
    there_a, there_b = a.there[asked], b.there[asked]
    gone = (~there_a & there_b, there_a & ~there_b, ~there_a & ~there_b)
    only_b, only_a, neither = (int(np.count_nonzero(part)) for part in gone)
    return Compared(a, b, test, (only_b, only_a, neither))


def _paired(a: Floats, b: Floats, *, level: float) -> PairedDifference:
    d, noise = _subtracted(a, b)
    if not d.size:
        return paired_difference(d, d, level=level)
    test = paired_difference(np.zeros(d.size), d, level=level)
    if test.value and abs(test.value) <= noise:
        test = replace(test, value=0.0, d_z=0.0)
    return test


def subtracted(a: Floats, b: Floats) -> Floats:
    """B − a for the questions that have a mean under both."""
    return _subtracted(a, b)[0]


def _subtracted(a: Floats, b: Floats) -> tuple[Floats, float]:
    """B − a with rounding errors removed, and their size: thirds do not subtract exactly, so equal differences vary."""
    both = ~np.isnan(a) & ~np.isnan(b)
    d = b[both] - a[both]
    if not d.size:
        return d, 0.0
    noise = float(1e-12 * max(np.abs(a[both]).max(), np.abs(b[both]).max()))
    d[np.abs(d) <= noise] = 0.0
    if np.ptp(d) <= noise:
        d[:] = d[0]
    return d, noise


def shared(sides: Sequence[Units]) -> list[Units]:
    """The units that all sides have, by id and content, in the order of the first."""
    first = sides[0].keys
    if all(side.keys is first for side in sides):
        return list(sides)
    places = [{key: row for row, key in enumerate(side.keys)} for side in sides]
    common = [key for key in first if all(key in place for place in places)]
    return [side.only([place[key] for key in common]) for side, place in zip(sides, places, strict=True)]


def question_means(values: Floats) -> tuple[Floats, Ints]:
    """Mean of each row's numbers (NaN without any), and how many there are."""
    there = ~np.isnan(values)
    n = there.sum(axis=1)
    sums = np.where(there, values, 0.0).sum(axis=1)
    return np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0), n


def units_of_grid(grid: Grid, column: int, keys: Sequence[Key] | None = None) -> Units:
    """The units of one metric under the condition in that column. `keys`: of the samples; None: their rows."""
    values = grid.values[:, column, :]
    means, n = question_means(values)
    squares = np.where(np.isnan(values), 0.0, (values - means[:, None]) ** 2).sum(axis=1)
    sds = np.sqrt(np.divide(squares, n - 1, out=np.full(len(n), np.nan), where=n > 1))
    planned = np.full(len(n), values.shape[1], dtype=np.int64)
    if grid.not_needed is not None:
        planned = planned - grid.not_needed[:, column, :].sum(axis=1)
    sums = None
    if grid.turns is not None:
        parts = (grid.turns.totals, grid.turns.counts, grid.turns.squares)
        totals, counts, squares = (part[:, column, :].sum(axis=1) for part in parts)
        means = np.divide(totals, counts, out=np.full(len(n), np.nan), where=counts > 0)
        sums = Sums(totals=totals, counts=counts, squares=squares, weights=grid.turns.weights)
    return Units(
        metric=grid.info,
        keys=_ROWS if keys is None else keys,
        means=means,
        answers=n,
        sds=sds,
        planned=planned,
        sums=sums,
    )


_ROWS: tuple[Key, ...] = ()


def columns_of(units: Mapping[str, Units], repetitions: int) -> Iterable[SampleColumn]:
    """The columns of a summary for one metric. `units`: by condition."""
    for condition, side in units.items():
        spared = repetitions - side.planned
        yield SampleColumn(
            condition=condition,
            metric=side.metric.key,
            mean=_listed(side.means),
            sd=_listed(side.sds),
            n=side.answers.tolist(),
            turns=None if side.sums is None else side.sums.counts.tolist(),
            not_needed=spared.tolist() if spared.any() else None,
        )


def _listed(values: Floats) -> list[float | None]:
    """With None for NaN. Equal numbers share one object, as a scale has few: eight bytes each, not 32."""
    different, places = np.unique(np.ascontiguousarray(values).view(np.int64), return_inverse=True)  # 0.0 is not -0.0
    numbers = [None if math.isnan(value) else value for value in different.view(np.float64).tolist()]
    listed: list[float | None] = np.array(numbers, dtype=object)[places].tolist()
    return listed


def units_of(summary: Summary, condition: str, metric: str) -> Units:
    """The units of a summary, also of one from the cache or from JSON."""
    table = summary.table_of_samples
    assert table is not None  # a run with metrics has one
    column = next(one for one in table.columns if (one.condition, one.metric) == (condition, metric))
    means = np.array(column.mean, dtype=np.float64)
    answers = np.array(column.n, dtype=np.int64)
    sums = None
    if column.turns is not None and table.weights is not None:
        counts = np.array(column.turns, dtype=np.float64)
        sums = Sums.of(np.nan_to_num(means) * counts, counts, weights=table.weights)
    spared = 0 if column.not_needed is None else np.array(column.not_needed, dtype=np.int64)
    return Units(
        metric=next(info for info in summary.metrics if info.key == metric),
        keys=list(zip(table.ids, table.digests, strict=True)),
        means=means,
        answers=answers,
        sds=np.array(column.sd, dtype=np.float64),
        planned=np.full(len(means), summary.repetitions, dtype=np.int64) - spared,
        sums=sums,
    )
