"""Score rows → one number per trial and metric, as an array samples × conditions × repetitions.

Order of averaging: repeats of a judge on one turn, then judges, then turns. The last row of (trial,
turn, judge, repeat) counts. NaN if there is no number. If a kind's rates are over turns, the
sums over turns are kept too: its rates are over all turns, not over the means of samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from karat.analysis.model import MetricInfo
from karat.analysis.parts import TurnScoring, kind_of
from karat.index import RunIndex, ScoreRows
from karat.journal import RunFolder, ScorerInfo
from karat.records import Metric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Grid:
    """One metric's numbers."""

    info: MetricInfo
    values: Floats  # samples × conditions × repetitions
    # between repeats of a judge: variance of each group, and its cell
    judge_variance: tuple[Floats, Ints]
    # judge → samples × conditions × repetitions, when there are several
    by_judge: dict[str, Floats]
    turns: TurnSums | None = None  # if the run's rates are over turns
    is_tested: bool = True  # False: it measures what an earlier metric tests in another way
    # shaped like `values`: trials not run because it was decided; None: none
    not_needed: Flags | None = None


@dataclass(frozen=True, slots=True)
class TurnSums:
    """Sums over each trial's turns: samples × conditions × repetitions."""

    totals: Floats
    counts: Floats  # turns with a number; also of trials without an answer, if they count as wrong
    squares: Floats
    weights: Floats  # of the samples
    planned: Floats  # turns that would have numbers if the trial had an answer


@dataclass(frozen=True, slots=True)
class Counting:
    """How the rows of one scorer count, by the rules of the run's kind."""

    rules: TurnScoring
    flags: list[Flags]  # of each sample, turn by turn: whether the turn counts
    sizes: Ints  # of each sample: how many of its turns count


@dataclass(frozen=True, slots=True)
class Declared:
    """The turns of a run: how many each sample has, its weight, and the trials without an
    answer.
    """

    turns: Ints
    weights: Floats
    failed: NDArray[np.bool_]  # by cell
    # by scorer and scoring; without one every turn counts
    scorings: dict[tuple[str, str], Counting]


def declared(
    run: RunFolder,
    index: RunIndex,
    scorers: Iterable[ScorerInfo],
    *,
    rule: str,
) -> Declared | None:
    """None for a run whose samples are scored as a whole.

    `rule`: the match that makes a turn right.
    """
    kind = kind_of(run.info.kind)
    if not kind.by_turn:
        return None
    size = len(index.samples)
    turns = np.zeros(size, dtype=np.int64)
    weights = np.ones(size)
    scorings: dict[tuple[str, str], Counting] = {}
    for scorer in scorers:
        rules = kind.turn_scoring(scorer, rule)
        if rules is not None:
            nothing = [np.zeros(0, dtype=bool)] * size
            scorings[scorer.name, scorer.scoring] = Counting(
                rules, nothing, np.zeros(size, dtype=np.int64)
            )

    for sample in run.samples():
        row = index.samples[sample.id]
        turns[row] = len(sample.turns)
        weights[row] = sample.weight
        for counting in scorings.values():
            flags = np.array([counting.rules.counts(turn) for turn in sample.turns], dtype=bool)
            counting.flags[row] = flags
            counting.sizes[row] = flags.sum()

    failed = np.frombuffer(index.failed, dtype=np.uint16) > 0
    answered = np.frombuffer(index.answered, dtype=np.uint8) > 0
    return Declared(turns, weights, failed & ~answered, scorings)


def columns_of(rows: ScoreRows) -> dict[str, Floats]:
    """Metric → the number of each row, in the order of the journal; NaN if there is none."""
    return {name: np.frombuffer(values, dtype=np.float64) for name, values in rows.values.items()}


def grids(
    index: RunIndex,
    scorers: Sequence[ScorerInfo],
    shown: Mapping[str, str],
    by_turn: Declared | None = None,
) -> list[Grid]:
    """Every metric of every shown scoring, in the order of the scorers.

    `by_turn`: if rates are over turns.
    """
    described = {(scorer.name, scorer.scoring): scorer for scorer in scorers}
    metrics: list[MetricInfo] = []
    for name, scoring in shown.items():
        scorer = described.get((name, scoring))
        rows = index.scores.get((name, scoring))
        metrics += _metrics(name, scoring, scorer, rows)

    names = [info.name for info in metrics]

    layouts: dict[int, Layout] = {}
    all_grids: list[Grid] = []
    decided = index.not_needed()
    shape = (len(index.samples), len(index.conditions), index.repetitions)
    if decided is None:
        not_needed = None
    else:
        not_needed = np.frombuffer(decided, dtype=np.uint8).reshape(shape) > 0

    for metric in metrics:
        info = metric
        if names.count(metric.name) > 1:
            info = msgspec.structs.replace(metric, key=f"{metric.scorer}.{metric.name}")
        scored_by = metric.scorer, metric.scoring
        scorer = described.get(scored_by)
        rows = index.scores.get(scored_by)
        counting = None
        if by_turn is not None:
            counting = by_turn.scorings.get(scored_by)
        if rows is not None and id(rows) not in layouts:
            layouts[id(rows)] = Layout(rows, counting.rules if counting is not None else None)
        if rows is not None:
            layout = layouts[id(rows)]
        else:
            layout = None

        grid = replace(_grid(index, info, layout), not_needed=not_needed)
        # its repeats differ in the order shown, not by noise
        if scorer is not None and scorer.compared_with is not None:
            once = msgspec.structs.replace(grid.info, repeats=1)
            grid = replace(
                grid, info=once, judge_variance=(np.empty(0), np.empty(0, dtype=np.int64))
            )

        if by_turn is not None:
            sums = _turn_sums(layout, metric.name, grid.values.shape, by_turn, counting)
            grid = replace(grid, turns=sums)
        if by_turn is not None and counting is not None:
            is_rate = metric.name in counting.rules.rates and bool(counting.sizes.any())
            if not is_rate and not sums.counts.any():
                continue  # no turn has what it measures
            tested = counting.rules.tested({} if rows is None else columns_of(rows))
            grid = replace(grid, is_tested=metric.name in tested)
            if metric.name == tested[0]:
                by = [other.info.scorer for other in all_grids]
                if info.scorer in by:
                    place = by.index(info.scorer)
                else:
                    place = len(by)
                all_grids.insert(place, grid)
                continue

        all_grids.append(grid)

    return all_grids


def _metrics(
    scorer: str,
    scoring: str,
    info: ScorerInfo | None,
    rows: ScoreRows | None,
) -> list[MetricInfo]:
    """Announced metrics that are measured, then unannounced ones; the key is the name.

    One with only true and false values is a share, even if its scorer did not announce it so.
    """
    announced: dict[str, Metric] = {}
    if info is not None:
        announced.update((metric.name, metric) for metric in info.metrics)
    offline = info is not None and info.offline
    if rows is not None:
        offline = rows.offline
        for name in sorted({*rows.values}.difference(announced)):
            announced[name] = Metric(name=name)

    measured = []
    for name, listed in announced.items():
        metric = listed
        if rows is not None:
            values = rows.values.get(name)
            if values is None:
                continue
            only_flags = name not in rows.numbers and not np.isnan(values).all()
            if only_flags and metric.kind == "number":
                metric = msgspec.structs.replace(metric, low=0.0, high=1.0, kind="share")

        # The least reliable value: right (share), or one step below the best (ordinal).
        low, high = metric.bounds
        threshold = None
        step = 1.0 if metric.kind == "ordinal" else 0.0
        if metric.kind != "number" and metric.direction == "higher" and high is not None:
            threshold = high - step
        elif metric.kind != "number" and metric.direction == "lower" and low is not None:
            threshold = low + step

        measured.append(
            MetricInfo(
                key=name,
                name=name,
                scorer=scorer,
                scoring=scoring,
                low=low,
                high=high,
                direction=metric.direction,
                kind=metric.kind,
                offline=offline,
                threshold=threshold,
                description=metric.description,
                compared=msgspec.UNSET if metric.compared else False,
            )
        )

    return measured


class Layout:
    """The rows of one scoring that count, ordered by cell, turn, judge and repeat."""

    def __init__(self, rows: ScoreRows, rules: TurnScoring | None = None) -> None:
        """`rules`: of the run's kind; None: the numbers are those of the scorer."""
        self.rows, self._rules = rows, rules
        self.order = rows.counting()
        self.judge_names = sorted(rows.names)
        self.cells = np.frombuffer(rows.cells, dtype=np.int64)[self.order]
        self.turns = np.frombuffer(rows.turns, dtype=np.int32)[self.order]
        self.repeats = np.frombuffer(rows.repeats, dtype=np.int32)[self.order]
        self.judges = rows.judge_ranks()[self.order]

    def values(self, metric: str) -> Floats:
        if self._rules is None:
            return np.frombuffer(self.rows.values[metric], dtype=np.float64)[self.order]
        return self._rules.values(metric, columns_of(self.rows))[self.order]


def _grid(index: RunIndex, info: MetricInfo, layout: Layout | None) -> Grid:
    shape = (len(index.samples), len(index.conditions), index.repetitions)
    flat = np.full(index.planned, np.nan)
    nothing: tuple[Floats, Ints] = (np.empty(0), np.empty(0, dtype=np.int64))
    if layout is None or not len(layout.cells):
        return Grid(info, flat.reshape(shape), nothing, {})
    values = layout.values(info.name)
    cells = layout.cells
    turns = layout.turns
    judges = layout.judges
    starts = _starts(cells, turns, judges)
    judge_variance = nothing
    # else each value is a group of its own, in a large run nearly always
    if len(starts) < len(cells):
        means, counts = _mean(values, starts)
        noisy = counts > 1

        # Variance (n−1) within each group; NaN for a group with fewer than two numbers
        spread = np.repeat(means, np.diff(np.append(starts, len(values))))
        squares = np.where(np.isnan(values), 0.0, (values - spread) ** 2)
        sums = np.add.reduceat(squares, starts)
        variance: Floats = np.divide(
            sums,
            counts - 1,
            out=np.full(len(starts), np.nan),
            where=counts > 1,
        )

        judge_variance = (variance[noisy], cells[starts][noisy])
        values = means
        cells = cells[starts]
        turns = turns[starts]
        judges = judges[starts]

    by_judge: dict[str, Floats] = {}
    if len(layout.judge_names) > 1:
        for code, name in enumerate(layout.judge_names):
            mine = judges == code
            firsts = _starts(cells[mine])
            filled = np.full(shape[0] * shape[1] * shape[2], np.nan)
            if len(firsts):
                filled[cells[mine][firsts]] = _mean(values[mine], firsts)[0]
            by_judge[name] = filled.reshape(shape)

    for keys in ((cells, turns), (cells,)):
        starts = _starts(*keys)
        if len(starts) < len(cells):
            values = _mean(values, starts)[0]
            cells = cells[starts]
            turns = turns[starts]

    flat[cells] = values
    repeats = int(layout.repeats.max()) + 1
    info = msgspec.structs.replace(info, judges=tuple(layout.judge_names), repeats=repeats)
    return Grid(info, flat.reshape(shape), judge_variance, by_judge)


def _turn_sums(
    layout: Layout | None,
    metric: str,
    shape: tuple[int, ...],
    by_turn: Declared,
    counting: Counting | None,
) -> TurnSums:
    """`counting`: None if every turn counts."""
    size = len(by_turn.failed)

    # Cell, turn and number of each turn that has one: the mean over repeats, then over judges
    if layout is None or not len(layout.cells):
        cells = np.empty(0, dtype=np.int64)
        turns = np.empty(0, dtype=np.int64)
        means = np.empty(0)
    else:
        starts = _starts(layout.cells, layout.turns, layout.judges)
        means, _ = _mean(layout.values(metric), starts)
        cells = layout.cells[starts]
        turns = layout.turns[starts].astype(np.int64)
        starts = _starts(cells, turns)
        means, _ = _mean(means, starts)
        there = ~np.isnan(means)
        cells = cells[starts][there]
        turns = turns[starts][there]
        means = means[there]

    if counting is not None:
        # Which rows belong to a turn that counts; older scores may have rows of others
        samples = cells // (size // shape[0])
        first = np.concatenate(([0], np.cumsum([flags.size for flags in counting.flags])))
        flat = np.concatenate([*counting.flags, np.zeros(1, dtype=bool)])
        inside = (turns >= 0) & (turns < np.diff(first)[samples])
        kept: Flags = inside & flat[np.where(inside, first[samples] + turns, flat.size - 1)]

        cells = cells[kept]
        turns = turns[kept]
        means = means[kept]

    counts = np.bincount(cells, minlength=size).astype(np.float64)
    totals, squares = (
        np.bincount(cells, weights=part, minlength=size).astype(np.float64)
        for part in (means, means**2)
    )
    per_answer = bool(turns.size) and bool((turns < 0).all())  # a number for the whole answer
    sizes = by_turn.turns if counting is None else counting.sizes
    if per_answer:
        per_sample = np.ones(shape[0])
    else:
        per_sample = sizes.astype(np.float64)

    planned = np.repeat(per_sample, size // shape[0])
    if counting is not None and metric in counting.rules.rates:
        counts = np.where(by_turn.failed, planned, counts)
    return TurnSums(
        totals=totals.reshape(shape),
        counts=counts.reshape(shape),
        squares=squares.reshape(shape),
        weights=by_turn.weights,
        planned=planned.reshape(shape),
    )


def _starts(*keys: NDArray[Any]) -> Ints:
    """Where the groups of equal keys begin, in sorted rows."""
    if not len(keys[0]):
        return np.empty(0, dtype=np.int64)
    changed: NDArray[np.bool_] = keys[0][1:] != keys[0][:-1]
    for key in keys[1:]:
        changed = changed | (key[1:] != key[:-1])
    return np.concatenate(([0], np.flatnonzero(changed) + 1))


def _mean(values: Floats, starts: Ints) -> tuple[Floats, Ints]:
    """Mean of each group and how many numbers it has; NaN for a group without numbers."""
    known = ~np.isnan(values)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts)
    return np.divide(sums, counts, out=np.full(len(starts), np.nan), where=counts > 0), counts
