"""Participants resampled: replicates of a study's tests, the same people in every test and every
condition.

The unit is the participant, in games the group; rows that `derive` made for a group follow it.
Units are drawn within the arms they were asked in. `derive` runs once, before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from karat.errors import BadOption
from karat_studies.kinds.study.experiments import Reducer, Response
from karat_studies.kinds.study.format import StudyFile, Test, level_name
from karat_studies.kinds.study.repeats import COUNTED, Columns, Places
from karat_studies.kinds.study.sides import (
    TOGETHER,
    agent_side,
    compared_with,
    numbers_of,
    outcome_of,
    rows_of,
)
from karat_studies.replication import (
    Draws,
    TestRows,
    TestScore,
    draw_statistics,
    measure,
    multiplicities,
    replicate_test,
)

Floats = NDArray[np.float64]
REDUCED = 200  # replicates of a study with a reducer: each runs its code
NOBODY = -1
KEPT = 0.8  # share of the variance kept when drawing n of n within each arm: (n − 1)/n


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyDraws:
    """Replicates of the tests of one run, in the order of its scores."""

    draws: Draws
    # test → why its statistic was drawn instead
    reasons: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """The units drawn: participants, or their groups."""

    strata: Places  # of each unit: the arms it was asked in, as a number
    participants: Mapping[str, int]  # → unit
    groups: Mapping[tuple[str, str], int]  # (arm, group) → unit
    grouped: NDArray[np.bool_]  # whether a unit is a group

    @property
    def sizes(self) -> Places:
        """Units in each stratum."""
        return np.asarray(np.bincount(self.strata), dtype=np.intp)

    def kind(self, rows: Places) -> str:
        """The kind of units of these rows: participants, groups, or both."""
        own = self.grouped[np.unique(rows)]
        if own.all() and own.size:
            return "groups"
        if own.any():
            return "participants and groups"
        return "participants"

    def of_rows(self, data: Columns) -> Places:
        """The unit of each row of `data`; −1: none."""
        count = len(next(iter(data.values()), ()))
        nothing = [None] * count
        people, groups, arms = (
            data.get(name, nothing) for name in ("participant", "group_id", "arm")
        )
        alone: dict[str, int] = {}
        for (_, name), unit in self.groups.items():
            alone[name] = unit if alone.get(name, unit) == unit else NOBODY
        places = (
            self.participants.get(who, NOBODY)
            if isinstance(who, str)
            else self.groups.get((arm, group), alone.get(group, NOBODY))
            if isinstance(group, str)
            else NOBODY
            for who, group, arm in zip(people, groups, arms, strict=True)
        )
        return np.fromiter(places, dtype=np.intp, count=count)


class StudyRun(msgspec.Struct, frozen=True, kw_only=True):
    """A study under one condition, in one repetition: the data for resampling its participants."""

    responses: Sequence[Response]  # a row for everyone who was asked
    data: Columns  # the result of `derive`; not yet reduced
    # the study's tests, as measured by `karat_studies.replication.score_tests`
    scores: Sequence[TestScore]


def study_draws(
    study: StudyFile,
    runs: Sequence[StudyRun],
    *,
    rng: np.random.Generator,
    replicates: int = 2_000,
    reducer: Reducer | None = None,
) -> list[StudyDraws]:
    """Replicates of every run's tests, from resampled participants: the same ones for all runs.

    A study with a `reducer` has 200 replicates, since its code runs in each. Tests whose rows
    cannot be traced to participants are drawn from the sampling distribution of their statistic;
    `reasons` explain why.
    """
    units = units_of(response for run in runs for response in run.responses)
    plans = [_Plan(study, run, units, reducer=reducer) for run in runs]
    count = REDUCED if study.reducer is not None and reducer is not None else replicates
    width = max((len(plan.places) for plan in plans), default=0)
    blocks = multiplicities(units.strata, rng=rng.spawn(1)[0], replicates=count, width=width)
    apart = rng.spawn(len(plans))
    smoothing = rng.spawn(1)[0]
    dice = [deepcopy(smoothing) for _ in plans]  # equal answers have equal replicates
    results: list[list[Floats]] = [[] for _ in plans]
    for weights in blocks:
        for plan, parts, own in zip(plans, results, dice, strict=True):
            parts.append(plan.replicates(weights, own))

    draws = []
    for plan, parts, own in zip(plans, results, apart, strict=True):
        if parts:
            joined = np.concatenate(parts)
        else:
            joined = np.empty((0, 2, len(plan.run.scores)))

        draws.append(plan.draws(joined, rng=own))

    return draws


def units_of(responses: Iterable[Response]) -> Units:
    """All asked participants, joined if they played in one group; sorted by name."""
    together = _Together()
    arms: dict[tuple[str, ...], set[str]] = {}
    for response in responses:
        who = ("", response.participant)
        arms.setdefault(who, set()).add(response.arm)
        together.add(who)
        if response.group is not None:
            together.join(who, (response.arm, response.group))

    members: dict[object, list[tuple[str, ...]]] = {}
    for node in arms:
        members.setdefault(together.root(node), []).append(node)
    ordered = sorted(members, key=lambda root: min(members[root]))
    place = {root: at for at, root in enumerate(ordered)}
    asked = [
        tuple(sorted(set().union(*(arms[node] for node in members[root])))) for root in ordered
    ]
    strata = {name: at for at, name in enumerate(sorted(set(asked)))}
    grouped = {node: place[together.root(node)] for node in together.nodes if node[0]}
    return Units(
        strata=np.array([strata[name] for name in asked], dtype=np.intp),
        participants={node[1]: place[together.root(node)] for node in arms},
        groups={(node[0], node[1]): at for node, at in grouped.items()},
        grouped=np.isin(np.arange(len(ordered)), list(grouped.values())),
    )


class _Together:
    """Groups of members: sets that grow by joining two."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(self, node: tuple[str, ...]) -> None:
        self.nodes.setdefault(node, node)

    def root(self, node: tuple[str, ...]) -> tuple[str, ...]:
        while self.nodes[node] != node:
            self.nodes[node] = node = self.nodes[self.nodes[node]]
        return node

    def join(self, one: tuple[str, ...], two: tuple[str, ...]) -> None:
        self.add(two)
        self.nodes[self.root(two)] = self.root(one)


class _Plan:
    """The plan of a run's replicates: which tests are recomputed, and from which rows."""

    def __init__(
        self,
        study: StudyFile,
        run: StudyRun,
        units: Units,
        *,
        reducer: Reducer | None,
    ) -> None:
        self.run = run
        self.units = units
        self.places = units.of_rows(run.data)
        self.reasons: dict[int, str] = {}
        self._reducer = reducer if study.reducer is not None else None
        self._tests = {
            (finding.sub_study, finding.id, test.id): test for finding, test in study.tests
        }
        self._rows: dict[int, TestRows] = {}
        for at, score in enumerate(run.scores):
            if score.test.agent.missing is None:
                if self._reducer is not None:
                    reason = _undrawable(self.places, self.units, self.run.data)
                else:
                    test = self._test(score)
                    rows = test_rows(test, self.run.data, self.places)

                    # Rows cannot be resampled for a test that has several of each person.
                    if test.cluster is not None:
                        reason = "its error is between persons (`cluster`)"
                    elif test.by is not None and test.kind in COUNTED:
                        reason = "each person counts in shares (`by`)"
                    else:
                        reason = _undrawable(rows.units, self.units, self.run.data)

                    self._rows[at] = rows

                if reason is not None:
                    self.reasons[at] = reason
                    self._rows.pop(at, None)

    def _test(self, score: TestScore) -> Test:
        return self._tests[score.test.sub_study, score.test.finding, score.test.test]

    def replicates(self, weights: Floats, rng: np.random.Generator) -> Floats:
        """(replicates, 2, tests): ln BF and d.

        `rng`: of groups whose answers are all the same.
        """
        values = np.full((len(weights), 2, len(self.run.scores)), np.nan)
        if self._reducer is not None:
            if self.reasons:
                return values
            tests = enumerate(self.run.scores)
            wanted = [(at, score) for at, score in tests if score.test.agent.missing is None]
            for drawn, own in zip(weights, values, strict=True):
                try:
                    columns = self._reducer(copied_rows(self.run.data, self.places, drawn))
                except BadOption:
                    continue  # the study's own code fails for it

                for at, score in wanted:
                    own[:, at] = measured(self._test(score), columns, score.method)

            return values

        for at, rows in self._rows.items():
            method = self.run.scores[at].method
            replicate = replicate_test(rows, weights, method=method, rng=rng)
            values[:, 0, at] = replicate.log_bf
            values[:, 1, at] = replicate.d

        return values

    def draws(self, values: Floats, *, rng: np.random.Generator) -> StudyDraws:
        """All replicates; tests without their own are drawn from their statistics."""
        log_bf = values[:, 0].copy()
        d = values[:, 1].copy()
        for at in self.reasons:
            score = self.run.scores[at]
            log_bf[:, at], d[:, at] = draw_statistics(score, rng=rng, replicates=len(values))

        kinds, units = [], []
        for at in range(len(self.run.scores)):
            # The units of the smallest arm of a test; 0: its statistic was drawn
            rows = self._rows.get(at)
            if rows is None:
                used = self.places[self.places != NOBODY]
            else:
                used = rows.units

            if at in self.reasons:
                kinds.append("statistic")
            else:
                kinds.append(self.units.kind(self.places if rows is None else used))

            if at in self.reasons or not len(used):
                fewest = 0
            else:
                fewest = int(self.units.sizes[np.unique(self.units.strata[np.unique(used)])].min())

            units.append(fewest)

        return StudyDraws(
            draws=Draws(
                log_bf=log_bf,
                d=d,
                drawn=tuple(kinds),
                units=tuple(units),
            ),
            reasons=self.reasons,
        )


def _undrawable(rows: Places, units: Units, data: Columns) -> str | None:
    """Why participants cannot be resampled for these rows; None: they can."""
    if "participant" not in data and "group_id" not in data:
        return "`derive` gives no column `participant`, so rows cannot be matched to participants"
    if (rows == NOBODY).any():
        return "some rows of `data` name neither a participant nor a group that was asked"
    used = np.unique(rows)
    groups, people = (
        np.unique(units.strata[used[units.grouped[used] == in_group]]) for in_group in (True, False)
    )
    if (units.sizes[groups] < 2).any():
        return "an arm has a single group: there is no other to draw"
    asked = int(units.sizes[people].sum())
    if asked and 1 - len(people) / asked < KEPT:
        return f"{asked} participants in {len(people)} arms: too few in each to resample them"
    return None


def test_rows(test: Test, data: Columns, places: Places) -> TestRows:
    """The rows that a test can use, as numbers. `places`: the unit of each row of `data`."""
    data, groups, first = rows_of(test, data)
    places = places[first]
    everybody = np.arange(len(first))
    if test.kind in TOGETHER:
        groups = [np.concatenate(groups or [everybody])]
    rows = np.concatenate([everybody[:0], *groups])
    level = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    against = None
    if test.kind in {"contingency", "binomial", "proportion"}:
        place: dict[str | None, float] = {"true": 1.0, "false": 0.0}
        if test.kind == "contingency":
            names = [level_name(outcome) for outcome in test.outcomes or (True, False)]
            place = {name: float(at) for at, name in reversed(list(enumerate(names)))}

        truth = test.kind != "contingency" or test.outcomes is None
        column = data[test.measure]
        seen = (place.get(outcome_of(column[at], truth=truth), np.nan) for at in rows.tolist())
        values = np.fromiter(seen, dtype=np.float64, count=len(rows))
    else:
        values = numbers_of(data[test.measure])[rows]
        if isinstance(test.against, str) or test.kind in {"ttest_paired", "ttest_one", "wilcoxon"}:
            against = compared_with(test, data, rows)

    second = values if against is None else against
    good = np.isfinite(values) & np.isfinite(second)
    largest = float(np.abs(np.concatenate([values[good], second[good]])).max(initial=0.0))
    if against is not None and test.kind not in {"correlation", "spearman"}:
        values = values - second
        against = None
    return TestRows(
        kind=test.statistic_kind,
        units=places[rows][good],
        groups=level[good],
        levels=len(groups),
        cells=len(test.cells[0]) if test.cells else 1,
        values=values[good],
        against=None if against is None else against[good],
        outcomes=len(test.outcomes or (True, False)),
        p0=test.p0,
        scale=largest,
    )


test_rows.__test__ = False  # type: ignore[attr-defined]  # not a test, despite the name


def copied_rows(data: Columns, places: Places, weights: Floats) -> dict[str, list[object]]:
    """`data` of one replicate: rows as often as their unit was drawn, and every copy a separate
    participant.

    Code that groups rows by participant must not mix two copies.
    """
    times = weights[places].astype(np.intp)
    rows = np.repeat(np.arange(len(places)), times)
    copy = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    picked = rows.tolist()
    columns = {name: [column[at] for at in picked] for name, column in data.items()}
    for name in ("participant", "group_id"):
        if name in columns:
            columns[name] = [
                f"{who}#{number}" if number and isinstance(who, str) else who
                for who, number in zip(columns[name], copy.tolist(), strict=True)
            ]

    return columns


def measured(test: Test, columns: Columns, method: str) -> tuple[float, float]:
    """Ln BF and d of one replicate, computed like every other test; rank tests are asymptotic."""
    side = agent_side(test, columns)
    method = "asymptotic" if test.kind == "mannwhitney" else method
    measures = measure(test.statistic_kind, side, method=method)
    return measures.log_bf, measures.d
