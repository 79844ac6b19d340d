"""Conditions of many runs in one order, and which of them do not differ significantly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import msgspec
import numpy as np

from karat.analysis.estimates import estimated, holds, p_to_adjust
from karat.analysis.model import MetricInfo, Summary, check_condition
from karat.analysis.numbers import Estimate
from karat.analysis.parts import kind_of
from karat.analysis.units import Compared, Units, difference, mean, shared, units_of
from karat.errors import BadOption, did_you_mean
from karat.stats import adjust
from karat.stats.ranking import maximal_groups


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One condition of one run."""

    run: str
    name: str  # of the experiment
    condition: str
    mean: Estimate  # over the shared questions
    groups: str  # letters; entries that share one do not differ significantly


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions, the best first.

    Only questions with the same content that every entry has a score for count.
    """

    metric: str
    percent: bool
    direction: str
    level: float
    questions: int
    left_out: int  # questions missing from some entry, or that differ in content between runs
    tests: int  # pairs of entries, by paired t tests under Holm's adjustment
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()


def leaderboard(
    sides: Sequence[tuple[Summary, str | None]], *, metric: str | None = None, level: float = 0.95
) -> Leaderboard:
    """Ranks conditions of several runs on one metric, by default the first that all have.

    `sides`: summaries, each with a condition (None: all of them). Every pair is compared by a
    paired t test over the questions that all share; p-values are adjusted by Holm's method over all
    pairs. Entries get letters by Piepho's insert-and-absorb method: two entries share a letter if
    and only if no difference between them is shown. Raises BadOption if there is nothing to rank.

    Piepho (2004), Journal of Computational and Graphical Statistics 13:456.
    """
    entries = list(
        dict.fromkeys(
            (index, name)
            for index, (summary, condition) in enumerate(sides)
            for name in (summary.conditions if condition is None else (condition,))
        )
    )
    for summary, condition in sides:
        if condition is not None:
            check_condition(summary, condition)

    if len(entries) < 2:
        raise BadOption("compare", f"ranks 2 conditions or more, got {len(entries)}")
    summaries = [summary for summary, _ in sides]
    shared = []
    for info in summaries[0].metrics:
        if all(info.key in {m.key for m in run.metrics} for run in summaries):
            shared.append(info)

    if not shared:
        raise BadOption("compare", "the runs share no metric; score them alike with `karat score`")
    names = [info.key for info in shared]
    if metric is not None and metric not in names:
        raise BadOption(
            "--metric", f"not every run has a metric '{metric}'{did_you_mean(metric, names)}"
        )

    info = shared[0 if metric is None else names.index(metric)]
    asked, units, total = _shared([(summaries[at], name) for at, name in entries], info)
    means = np.array([side.plain_mean for side in units])
    order = np.argsort(means if info.direction == "lower" else -means, kind="stable").tolist()
    pairs = list(combinations(range(len(order)), 2))
    found = [_compared(asked, units, (order[a], order[b]), level) for a, b in pairs]
    tested = [p_to_adjust(one) for one in found]
    apart = set()
    for at, (pair, p) in enumerate(zip(pairs, adjust(tested).tolist(), strict=True)):
        if p <= 1 - level and holds(found[at], tested, at, alpha=1 - level):
            apart.add(pair)

    groups = letters(len(order), apart)
    questions = len(units[0].keys)
    warnings = [
        f"run {summary.run} is not complete (status: {summary.status})"
        for summary in summaries
        if summary.status != "done"
    ]
    warnings += [
        f"run {summary.run} ended early, once it was decided: the groups do not allow for that"
        for summary in summaries
        if summary.stopping is not msgspec.UNSET and summary.stopping.out
    ]
    scorings = set()
    for summary in summaries:
        for scored in summary.metrics:
            if scored.key == info.key:
                scorings.add(scored.scoring)

    if len(scorings) > 1:
        warnings.append(
            f"{info.key} was scored differently in some runs: score them alike with `karat score`"
        )

    return Leaderboard(
        metric=info.key,
        percent=info.percent,
        direction=info.direction,
        level=level,
        questions=questions,
        left_out=total - questions,
        tests=sum(not math.isnan(p) for p in tested),
        entries=tuple(
            Entry(
                run=summaries[entries[at][0]].run,
                name=summaries[entries[at][0]].name,
                condition=entries[at][1],
                mean=estimated(mean(units[at], level=level), info.low, info.high),
                groups=groups[place],
            )
            for place, at in enumerate(order)
        ),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _compared(
    asked: Sequence[Units],
    units: Sequence[Units],
    pair: tuple[int, int],
    level: float,
) -> Compared:
    """Two sides by the questions that all have a score for; losses count also where they left
    none.
    """
    a, b = pair
    worst = difference(asked[a], asked[b], level=level).worst
    compared = difference(units[a], units[b], level=level)
    return compared._replace(worst=worst)


def letters(count: int, apart: set[tuple[int, int]]) -> list[str]:
    """Letters for entries 0 to count - 1: two share one exactly if their pair (lower first) is not
    in `apart`.

    >>> letters(3, {(0, 2)})
    ['a', 'ab', 'b']
    """
    found = [""] * count
    for at, group in enumerate(maximal_groups(range(count), sorted(apart))):
        letter = chr(ord("a") + at % 26) + str(at // 26 or "")
        for entry in group:
            found[entry] += letter

    return found


def _shared(
    sides: Sequence[tuple[Summary, str]],
    info: MetricInfo,
) -> tuple[list[Units], list[Units], int]:
    """The questions that every side has, with the same content, those of them that every side has a
    score for, and how many there are in all.
    """
    for summary, _ in sides:
        if summary.table_of_samples is None:
            raise BadOption("compare", f"run {summary.run} has no scores; `karat score` makes some")
        if summary.table_of_samples.weights is not None:
            raise BadOption(
                "compare",
                f"run {summary.run} has weighted {kind_of(summary.kind).unit}s, which are "
                "compared two at a time",
            )

    every = [units_of(summary, name, info.key) for summary, name in sides]
    units = shared(every)
    if not units[0].keys:
        raise BadOption("compare", "no question, by id and content, is in every run")
    there = np.logical_and.reduce([side.there for side in units])
    if not there.any():
        raise BadOption(
            "compare",
            f"no question has a score on {info.key} under every condition; name fewer of them",
        )

    names: set[str] = set()
    for side in every:
        names.update(name for name, _ in side.keys)

    scored = [side.only(there) for side in units]
    return units, scored, len(names)
