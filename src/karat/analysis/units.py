"""Units: the one input of every number that is compared.

A row is a unit: a question, or a conversation with its turns. Report, compare, gate, plan, stop and
leaderboard take `Units` and nothing else, so a property of the input (losses, weights, clusters) is
written here once. A unit keeps the
mean of its repetitions, how many there are and their spread, not every value: that is what a
summary, its JSON and its cache keep, and all that means, differences and plans need.
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
from karat.analysis.ledger import Outcome
from karat.analysis.model import MetricInfo, SampleColumn, Summary, metric_of
from karat.analysis.parts import kind_of
from karat.clusters import codes_of
from karat.index import RunIndex
from karat.journal import lacks_plan
from karat.stats import (
    clustered_mean,
    paired_difference,
    ratio_difference,
    ratio_interval,
    too_few_clusters,
)
from karat.stats.intervals import t_interval
from karat.stats.ratios import Sums
from karat.stats.results import Interval, PairedDifference
from karat.stats.shares import share_of_means

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Key = tuple[str, str]

OWN_LOSSES = frozenset({"agent", "limit"})
"""Classes of failures that may depend on the answer."""

TOLERATED = 0.05
"""The share of a condition's trials up to which losses by infrastructure and judges are taken as
random.
"""

_NOISE = 1e-12  # of a difference, relative to the values: only rounding

_NO_LOSSES: Mapping[str, Flags] = {}


class Units(Struct, frozen=True, kw_only=True):
    """One metric under one condition, a row a unit. Everything that a decision reads."""

    metric: MetricInfo
    # id and digest of the content: pair units across conditions and runs; () within one run
    keys: Sequence[Key]
    means: Floats  # over repetitions or, with `sums`, over turns; NaN: there is none
    answers: Ints  # repetitions with a value
    sds: Floats  # of the repetitions, n−1; NaN for fewer than two
    planned: Ints  # repetitions that there should be
    # repetitions without a value, by the class of the failure that ended them
    lost: Mapping[str, Ints]
    # the least and the greatest value of an answer; None: no values
    ends: tuple[float, float] | None = None
    # what makes units dependent, such as a document; None: nothing is declared
    clusters: Ints | None = None
    # over the turns of each unit: its mean is a ratio; None: a unit is one value
    sums: Sums | None = None
    partial: bool = False  # of a file that may lack units that were asked

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
    def loss(self) -> float:
        """The share of planned repetitions that were lost by a failure; NaN if none was planned."""
        planned = int(self.planned.sum())
        if planned:
            return sum(int(part.sum()) for part in self.lost.values()) / planned
        return math.nan

    @property
    def counted_losses(self) -> Ints:
        """Lost repetitions that count against the condition.

        Those that the agent caused do, since an answer that was not given may have been a bad one.
        Those that infrastructure or a judge caused do once they exceed 5 % of the planned ones.
        """
        own = np.zeros(self.means.size, dtype=np.int64)
        others = np.zeros(self.means.size, dtype=np.int64)
        for cls, part in self.lost.items():
            if cls in OWN_LOSSES:
                own = own + part
            else:
                others = others + part

        if others.sum() > TOLERATED * self.planned.sum():
            return own + others
        return own

    @property
    def weights(self) -> Floats:
        """How many units of the population each represents."""
        if self.sums is None:
            return np.ones(self.means.size)
        return self.sums.weights

    @property
    def lengths(self) -> Floats:
        """Turns of one repetition of each unit; where it never began, those of the others on
        average.
        """
        if self.sums is None:
            return np.ones(self.means.size)
        lengths = np.divide(
            self.sums.counts,
            self.answers,
            out=np.full(self.means.size, np.nan),
            where=self.answers > 0,
        )
        known = np.isfinite(lengths)
        return np.where(known, lengths, lengths[known].mean() if known.any() else 1.0)

    @property
    def plain_mean(self) -> float:
        """The mean over units, or the rate over turns; NaN without any."""
        if self.sums is not None:
            return self.sums.ratio
        if self.there.any():
            return float(self.means[self.there].mean())
        return math.nan

    def only(self, rows: Sequence[int] | Ints | Flags) -> Units:
        """Some of the units, in that order."""
        index = np.asarray(rows)
        if index.dtype == bool:
            places = np.flatnonzero(index)
        else:
            places = index.astype(np.int64)

        if self.clusters is None:
            clusters = None
        else:
            clusters = self.clusters[places]

        if self.sums is None:
            sums = None
        else:
            sums = self.sums.only(places)

        return structs.replace(
            self,
            keys=[self.keys[place] for place in places.tolist()] if self.keys else (),
            means=self.means[places],
            answers=self.answers[places],
            sds=self.sds[places],
            planned=self.planned[places],
            lost={cls: part[places] for cls, part in self.lost.items()},
            clusters=clusters,
            sums=sums,
        )

    def with_weights(self, weights: Floats) -> Units:
        """The same units, of other weights."""
        if self.sums is None:
            return self
        return structs.replace(self, sums=replace(self.sums, weights=weights))


class Compared(NamedTuple):
    """Two conditions, unit by unit."""

    a: Units
    b: Units
    test: PairedDifference
    lost: tuple[int, int, int]  # units with a mean only under b, only under a, under neither
    bounds: tuple[
        float, float
    ]  # of the difference: every missing value the lowest, or the highest, of b's; NaN: no range
    # with the leader's own losses at the worst value; None: it lost nothing
    worst: PairedDifference | None

    @property
    def too_few(self) -> str | None:
        """Why there can be no verdict: the questions are of too few clusters; None: they are
        not.
        """
        if self.test.clusters is None:
            return None
        return too_few_clusters(self.test.clusters, self.test.df)


def mean(units: Units, *, level: float) -> Interval:
    """The mean of the units' means, or the rate over all turns, with the interval that every report
    shows.
    """
    if units.sums is not None:
        flags = units.metric.kind == "share" and bool(
            np.array_equal(units.sums.totals, units.sums.squares)
        )
        found = ratio_interval(units.sums, share=flags, sources=units.clusters, level=level)
        return replace(found.interval, design_effect=found.design_effect)

    there = units.there
    answers = int(units.answers.sum())
    means = units.means[there]
    clusters = None if units.clusters is None else units.clusters[there]
    only_flags = False
    if units.metric.kind == "share":
        # Every value is 0 or 1: in [0, 1] only these have a sum that equals their sum of squares
        n = units.answers[there]
        spread = np.where(n > 1, units.sds[there] ** 2 * (n - 1), 0.0)
        only_flags = bool(np.allclose(spread + n * means**2, n * means, rtol=0, atol=1e-9))

    if answers and only_flags:
        return share_of_means(means, clusters, observations=answers, level=level)
    if clusters is None:
        return t_interval(means, level=level, observations=answers)
    return replace(clustered_mean(means, clusters, level=level), observations=answers)


def difference(a: Units, b: Units, *, level: float) -> Compared:
    """How much higher b is than a, over the units that have a mean under both.

    Pairs the i-th units: see `shared`.
    """
    test = _tested(a, b, level=level)
    asked = ~(a.never_asked | b.never_asked)
    there_a = a.there[asked]
    there_b = b.there[asked]
    gone = (~there_a & there_b, there_a & ~there_b, ~there_a & ~there_b)
    only_b, only_a, neither = (int(np.count_nonzero(part)) for part in gone)

    # The difference if every missing value were the lowest under b and the highest under a, and
    # the reverse
    asked_a, asked_b = a, b
    if not asked.all():
        asked_a = a.only(asked)
        asked_b = b.only(asked)
    low, high = (math.nan if end is None else end for end in (a.metric.low, a.metric.high))
    ends = [
        filled(asked_b, asked_b.missing, of_b).plain_mean
        - filled(asked_a, asked_a.missing, of_a).plain_mean
        for of_b, of_a in ((low, high), (high, low))
    ]
    least, most = (0.0 if abs(end) <= _NOISE * max(abs(low), abs(high)) else end for end in ends)
    return Compared(
        a=a,
        b=b,
        test=test,
        lost=(only_b, only_a, neither),
        bounds=(least, most),
        worst=_at_worst(a, b, test.value, level=level),
    )


def _tested(a: Units, b: Units, *, level: float) -> PairedDifference:
    clusters = b.clusters if a.clusters is None else a.clusters
    if a.sums is not None and b.sums is not None:
        return ratio_difference(a.sums, b.sums, sources=clusters, level=level)

    d, noise = _subtracted(a.means, b.means)
    if not d.size:
        return paired_difference(d, d, level=level)
    if clusters is None:
        kept = None
    else:
        kept = clusters[a.there & b.there]

    test = paired_difference(np.zeros(d.size), d, sources=kept, level=level)
    if test.value and abs(test.value) <= noise:
        test = replace(test, value=0.0, d_z=0.0)
    return test


def _at_worst(a: Units, b: Units, value: float, *, level: float) -> PairedDifference | None:
    """The test again, the losses of the side that is ahead at their worst, the other's left out."""
    if not value or math.isnan(value):
        return None
    b_leads = (value > 0) == (a.metric.direction != "lower")
    if a.sums is None:  # what the other side lost is left out
        kept = a.there if b_leads else b.there
        a = a.only(kept)
        b = b.only(kept)
    leader = b if b_leads else a
    if not leader.counted_losses.any():
        return None
    ends = [side.ends for side in (a, b) if side.ends is not None]
    seen = min(end[0] for end in ends), max(end[1] for end in ends)
    filled = with_losses_worst(leader, seen=seen)
    if b_leads:
        return _tested(a, filled, level=level)
    return _tested(filled, b, level=level)


def with_losses_worst(units: Units, *, seen: tuple[float, float]) -> Units:
    """The units if each lost repetition that counts had the metric's worst value.

    `seen`: the least and the greatest value under either condition, for a metric without a range.
    """
    info = units.metric
    low, high = (seen[at] if end is None else end for at, end in enumerate((info.low, info.high)))
    return filled(units, units.counted_losses, high if info.direction == "lower" else low)


def filled(units: Units, missing: Ints, value: float) -> Units:
    """The units with that many more repetitions of a value; over conversations, of average
    length.
    """
    if not missing.any():
        return units
    if math.isnan(value):
        return structs.replace(units, means=np.full(units.means.size, np.nan), sums=None)
    if units.sums is not None:
        turns = missing * units.lengths
        sums = replace(
            units.sums, totals=units.sums.totals + value * turns, counts=units.sums.counts + turns
        )
        return structs.replace(units, sums=sums, means=sums.means)

    answers = units.answers + missing
    totals = np.where(units.there, units.means * units.answers, 0.0) + value * missing
    means = np.divide(totals, answers, out=np.full(answers.size, np.nan), where=answers > 0)
    return structs.replace(units, means=np.where(missing > 0, means, units.means), answers=answers)


def subtracted(a: Floats, b: Floats, clusters: Ints) -> Floats:
    """The mean of b − a over the questions of each cluster that have a mean under both."""
    d, _ = _subtracted(a, b)
    kept = clusters[~np.isnan(a) & ~np.isnan(b)]
    sizes = np.bincount(kept)
    return np.bincount(kept, weights=d)[sizes > 0] / sizes[sizes > 0]


def _subtracted(a: Floats, b: Floats) -> tuple[Floats, float]:
    """B − a with rounding errors removed, and their size: thirds do not subtract exactly, so equal
    differences vary.
    """
    both = ~np.isnan(a) & ~np.isnan(b)
    d = b[both] - a[both]
    if not d.size:
        return d, 0.0
    noise = float(_NOISE * max(np.abs(a[both]).max(), np.abs(b[both]).max()))
    d[np.abs(d) <= noise] = 0.0
    if np.ptp(d) <= noise:
        d[:] = d[0]
    return d, noise


def by_cluster(a: Units, b: Units) -> tuple[Units, Units]:
    """A unit for each cluster, whose value is the mean of its questions that have one under
    both.
    """
    codes = b.clusters if a.clusters is None else a.clusters
    both = a.there & b.there
    if codes is None:
        return a, b
    names, places = np.unique(codes[both], return_inverse=True)
    sizes = np.bincount(places, minlength=names.size)
    return _gathered(a, both, places, sizes), _gathered(b, both, places, sizes)


def _gathered(units: Units, both: Flags, places: Ints, sizes: Ints) -> Units:
    return Units(
        metric=units.metric,
        keys=(),
        means=np.bincount(places, weights=units.means[both], minlength=sizes.size) / sizes,
        answers=np.ones(sizes.size, dtype=np.int64),
        sds=np.full(sizes.size, np.nan),
        planned=np.ones(sizes.size, dtype=np.int64),
        lost={},
    )


def shared(sides: Sequence[Units]) -> list[Units]:
    """The units that all sides have, by id and content, in the order of the first.

    A partial side has all that others have, if it has any of it: what it lacks counts as lost, as
    within one import.
    """
    places: list[dict[Key, int]] = []
    ids: list[set[str]] = []
    for side in sides:
        places.append({key: row for row, key in enumerate(side.keys)})
        ids.append({name for name, _ in side.keys})

    of_all = set(places[0]).intersection(*places)
    common = []
    for key in dict.fromkeys(key for place in places for key in place):
        if all(
            key in place or (of_all and side.partial and side.sums is None and key[0] not in own)
            for side, place, own in zip(sides, places, ids, strict=True)
        ):
            common.append(key)

    found = []
    for side, place in zip(sides, places, strict=True):
        rows = np.array([place.get(key, -1) for key in common], dtype=np.int64)
        found.append(structs.replace(_lacking(side.only(rows), rows < 0), keys=common))

    return found


def _lacking(units: Units, absent: Flags) -> Units:
    """The units if these were lost, whatever they hold; each is a cluster of its own."""
    if not absent.any():
        return units
    planned = np.where(absent, units.planned.max(), units.planned)
    lost = {cls: np.where(absent, 0, part) for cls, part in units.lost.items()}
    lost["infrastructure"] = np.where(absent, planned, lost.get("infrastructure", 0))
    clusters = units.clusters
    if clusters is not None:
        clusters = np.where(absent, clusters.max() + np.cumsum(absent), clusters)

    return structs.replace(
        units,
        means=np.where(absent, np.nan, units.means),
        answers=np.where(absent, 0, units.answers),
        sds=np.where(absent, np.nan, units.sds),
        planned=planned,
        lost=lost,
        clusters=clusters,
    )


def question_means(values: Floats) -> tuple[Floats, Ints]:
    """Mean of each row's numbers (NaN without any), and how many there are."""
    there = ~np.isnan(values)
    n = there.sum(axis=1)
    sums = np.where(there, values, 0.0).sum(axis=1)
    return np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0), n


def units_of_grid(
    grid: Grid,
    column: int,
    losses: Mapping[str, Flags] = _NO_LOSSES,
    clusters: Ints | None = None,
) -> Units:
    """The units of one metric under the condition in that column.

    `losses`: class of a failure → the trials that it ended, samples × conditions × repetitions.
    `clusters`: of the samples, see `clusters_of`.
    """
    values = grid.values[:, column, :]
    means, n = question_means(values)
    squares = np.where(np.isnan(values), 0.0, (values - means[:, None]) ** 2).sum(axis=1)
    sds = np.sqrt(np.divide(squares, n - 1, out=np.full(len(n), np.nan), where=n > 1))
    planned = np.full(len(n), values.shape[1], dtype=np.int64)
    if grid.not_needed is not None:
        planned = planned - grid.not_needed[:, column, :].sum(axis=1)
    sums = None
    lacking = np.isnan(values)
    there = values[~np.isnan(values)]
    if grid.turns is not None:
        # a rate that counts unreached turns as wrong lacks nothing
        lacking = grid.turns.counts[:, column, :] == 0
        parts = (grid.turns.totals, grid.turns.counts, grid.turns.squares)
        totals, counts, squares = (part[:, column, :].sum(axis=1) for part in parts)
        sums = Sums(totals=totals, counts=counts, squares=squares, weights=grid.turns.weights)
        means = sums.means

    if there.size:
        ends = (float(there.min()), float(there.max()))
    else:
        ends = None

    return Units(
        metric=grid.info,
        keys=(),
        means=means,
        answers=n,
        sds=sds,
        planned=planned,
        lost={cls: (flags[:, column, :] & lacking).sum(axis=1) for cls, flags in losses.items()},
        ends=ends,
        clusters=clusters,
        sums=sums,
    )


def clusters_of(names: Sequence[str | None] | None) -> Ints | None:
    """The cluster of each unit as a number; None if no two units share one."""
    if names is None:
        codes = None
    else:
        codes = codes_of(names)

    if codes is None:
        return None
    return np.array(codes, dtype=np.int64)


def losses_of(index: RunIndex, ended: Outcome) -> dict[str, Flags]:
    """Class of a failure → the trials that it ended, samples × conditions × repetitions.

    Answers to which a scorer gives no number count under `judge`. Trials that imported files lack
    count under `infrastructure`, if the files have them under another condition.
    """
    shape = (len(index.samples), len(index.conditions), index.repetitions)
    cells: dict[str, list[int]] = {}
    for cell, cls in ended.classes.items():
        if cls not in ("not_run", "decided"):
            cells.setdefault(cls, []).append(cell)

    losses = {}
    for cls, places in cells.items():
        flags = np.zeros(index.planned, dtype=bool)
        flags[places] = True
        losses[cls] = flags.reshape(shape)

    nothing = np.zeros(shape, dtype=bool)
    answers = np.frombuffer(index.answered, dtype=np.uint8)
    answered = answers.reshape(shape) > 0
    if not kind_of(index.run.info.kind).by_turn:
        scored = answered.copy()
        scored.ravel()[list(ended.classes)] = False
        losses["judge"] = losses.get("judge", nothing) | scored

    if index.run.info.imported:
        failures = np.frombuffer(index.failed, dtype=np.uint16)
        failed = failures.reshape(shape) > 0
        held = answered | failed
        in_another_repetition = held.any(axis=1, keepdims=True)
        absent = ~held & (in_another_repetition | (shape[1] == 1))
        if ended.decided is not None:  # of all conditions, those never planned
            decided = np.frombuffer(ended.decided, dtype=np.uint8)
            absent &= decided.reshape(shape) == 0

        losses["infrastructure"] = losses.get("infrastructure", nothing) | absent

    return losses


def columns_of(units: Mapping[str, Units], repetitions: int) -> Iterable[SampleColumn]:
    """The columns of a summary for one metric. `units`: by condition."""
    decided = any((side.planned < repetitions).any() for side in units.values())
    for condition, side in units.items():
        spared = repetitions - side.planned
        yield SampleColumn(
            condition=condition,
            metric=side.metric.key,
            mean=_listed(side.means),
            sd=_listed(side.sds),
            n=side.answers.tolist(),
            turns=None if side.sums is None else side.sums.counts.tolist(),
            not_needed=spared.tolist() if decided else None,
            lost={cls: part.tolist() for cls, part in side.lost.items() if part.any()},
            ends=side.ends if None in (side.metric.low, side.metric.high) else None,
        )


def _listed(values: Floats) -> list[float | None]:
    """With None for NaN. Equal numbers share one object, as a scale has few: eight bytes each, not
    32.
    """
    # 0.0 is not -0.0
    different, places = np.unique(np.ascontiguousarray(values).view(np.int64), return_inverse=True)
    numbers = [
        None if math.isnan(value) else value for value in different.view(np.float64).tolist()
    ]
    listed: list[float | None] = np.array(numbers, dtype=object)[places].tolist()
    return listed


def units_of(summary: Summary, condition: str, metric: str) -> Units:
    """The units of a summary, also of one from the cache or from JSON."""
    table = summary.table_of_samples
    assert table is not None  # a run with metrics has one
    column = next(
        one for one in table.columns if (one.condition, one.metric) == (condition, metric)
    )
    means = np.array(column.mean, dtype=np.float64)
    answers = np.array(column.n, dtype=np.int64)
    sums = None
    if column.turns is not None and table.weights is not None:
        counts = np.array(column.turns, dtype=np.float64)
        sums = Sums.of(np.nan_to_num(means) * counts, counts, weights=table.weights)

    spared = 0 if column.not_needed is None else np.array(column.not_needed, dtype=np.int64)
    info = metric_of(summary, metric)
    return Units(
        metric=info,
        keys=list(zip(table.ids, table.digests, strict=True)),
        means=means,
        answers=answers,
        sds=np.array(column.sd, dtype=np.float64),
        planned=np.full(len(means), summary.repetitions, dtype=np.int64) - spared,
        lost={cls: np.array(part, dtype=np.int64) for cls, part in column.lost.items()},
        # With a range, the scale's ends are enough.
        ends=column.ends if info.low is None or info.high is None else (info.low, info.high),
        clusters=clusters_of(table.clusters),
        sums=sums,
        partial=lacks_plan(summary.provenance.source),
    )
