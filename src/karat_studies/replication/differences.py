"""Differences of PAS and ECS: of two conditions, and of a condition and simulations of a reference.

Both are computed over the tests that the two sides have, whose human numbers are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from karat.stats import special
from karat_studies.replication._inputs import Floats, percentiles_of_level, z_of_level
from karat_studies.replication.consistency import FEWEST, weighted_ccc
from karat_studies.replication.scores import Agreement, TestScore, effects_of, test_weights
from karat_studies.replication.uncertainty import (
    NAN,
    WHOLE,
    Draws,
    ecs_rows,
    mean_rows,
    over,
    pas_rows,
    pool,
    sd,
)

Scores = Sequence[TestScore]
Pairs = tuple[tuple[int, int], ...]
"""The indices of the tests that count, in both agreements."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """How much higher the second condition scores than the first."""

    value: float
    se: float
    low: float
    high: float
    n: int  # tests scored under both
    method: str
    df: float = math.inf  # of `se`


@dataclass(frozen=True, kw_only=True, slots=True)
class _Measure:
    """A score over the tests that two agreements have, of which the first gives the human side."""

    fewest: int  # tests
    both: Callable[[TestScore, TestScore], bool]  # whether a test counts
    needs_errors: bool  # a test without replicates of its effect does not count
    percentile: bool  # the interval of a difference; else ± z bootstrap SE


PAS = _Measure(
    fewest=1,
    both=lambda one, other: not math.isnan(one.pas) and not math.isnan(other.pas),
    needs_errors=False,
    percentile=False,
)
ECS = _Measure(
    fewest=FEWEST,
    both=lambda one, other: bool(np.isfinite([one.human.d, one.agent.d, other.agent.d]).all()),
    needs_errors=True,
    percentile=True,
)


def _weights(tests: Scores) -> Floats:
    return test_weights(tests, np.ones(len(tests), dtype=bool))


def _value(measure: _Measure, tests: Scores, scored: Scores) -> float:
    """The score; `tests` give the human side."""
    if measure is ECS:
        return weighted_ccc(effects_of(tests)[0], effects_of(scored)[1], _weights(tests)).value
    # Two rows: NumPy adds those of one alone in another order, and the last digit would differ.
    return float(pool(tests, np.array([[score.pas for score in scored]] * 2))[WHOLE][0])


def _rows(
    measure: _Measure,
    tests: Scores,
    scored: Scores,
    draws: Draws,
    places: list[int],
) -> Floats:
    """That of each replicate, from the draws at these places."""
    if measure is ECS:
        return ecs_rows(effects_of(tests)[0], draws.d[:, places], _weights(tests))
    return pool(tests, pas_rows(scored, draws.log_bf[:, places]))[WHOLE]


def _shared(measure: _Measure, first: Agreement, second: Agreement) -> Pairs:
    places = {(score.test.finding_id, score.test.test): at for at, score in enumerate(second.tests)}
    found = []
    for at, score in enumerate(first.tests):
        there = places.get((score.test.finding_id, score.test.test))
        if there is not None and measure.both(score, second.tests[there]):
            found.append((at, there))

    return tuple(found)


def repeated_differences(
    first: Sequence[Agreement],
    second: Sequence[Agreement],
    *,
    first_draws: Sequence[Draws],
    second_draws: Sequence[Draws],
    paired: bool = True,
    without: Collection[str] = (),
) -> tuple[Difference, Difference]:
    """PAS of the benchmark and overall ECS, second minus first, over tests that have them under
    both: means of the differences of each repetition.

    If both sets of replicates resample the same participants in the same draws, the difference is
    paired; drawn separately, it is as wide as for independent conditions. `paired` only reports
    which it is. The intervals have the level of `first`; that of ECS is of these studies:
    percentiles of the differences of replicates, shifted by their bias as for one condition.
    `without`: names of studies to leave out of PAS.
    """
    each = zip(first, second, first_draws, second_draws, strict=True)
    pairs = [_Pair(*sides) for sides in each]
    pas = [pair.change(PAS, paired=paired, without=without) for pair in pairs]
    ecs = [pair.change(ECS, paired=paired) for pair in pairs]
    level = first[0].level
    return _mean_change(PAS, pas, level), _mean_change(ECS, ecs, level)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Change:
    """How much higher the second condition scores in one repetition."""

    value: float = NAN
    n: int  # tests scored under both
    method: str
    rows: Floats | None = None  # that of each replicate; None: too few tests


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two conditions in one repetition, each with its replicates."""

    first: Agreement
    second: Agreement
    first_draws: Draws
    second_draws: Draws

    def change(self, measure: _Measure, *, paired: bool, without: Collection[str] = ()) -> _Change:
        shared = []
        for here, there in _shared(measure, self.first, self.second):
            drawn = self.first_draws.d[:, here], self.second_draws.d[:, there]
            has_errors = all(np.isfinite(d).any() for d in drawn)
            left_out = self.first.tests[here].test.study in without
            if not left_out and (has_errors or not measure.needs_errors):
                shared.append((here, there))

        if len(shared) < measure.fewest:
            outside = ""
            if without:
                outside = f" outside {', '.join(without)}"
            method = f"no test{outside} is scored under both"
            if measure.needs_errors:
                method = f"needs {measure.fewest} tests with errors"
            return _Change(n=len(shared), method=method)

        left = [here for here, _ in shared]
        right = [there for _, there in shared]
        tests = [self.first.tests[here] for here in left]
        others = [self.second.tests[there] for there in right]
        after = _rows(measure, tests, others, self.second_draws, right)
        how = f"± {round(z_of_level(self.first.level), 2)} bootstrap SE"
        if measure.percentile:
            how = "percentile of the difference, moved by the bootstrap's bias"
        drawn_as = "paired by draw" if paired else "conditions drawn apart"
        return _Change(
            value=_value(measure, tests, others) - _value(measure, tests, tests),
            n=len(shared),
            method=f"{how}, {drawn_as}{over(self.first_draws)}",
            rows=np.asarray(after - _rows(measure, tests, tests, self.first_draws, left)),
        )


def _mean_change(measure: _Measure, changes: Sequence[_Change], level: float) -> Difference:
    """Over the repetitions that have one."""
    known = []
    for change in changes:
        if not math.isnan(change.value) and change.rows is not None:
            known.append((change, change.rows))

    if not known:
        return Difference(
            value=NAN,
            se=NAN,
            low=NAN,
            high=NAN,
            n=changes[0].n,
            method=changes[0].method,
        )

    value = math.fsum(change.value for change, _ in known) / len(known)
    draws = mean_rows([rows for _, rows in known])
    se = sd(draws)
    n = max(change.n for change, _ in known)
    method = known[0][0].method
    if measure.percentile:
        draws = draws[np.isfinite(draws)]
        low, high = map(
            float, np.quantile(draws, percentiles_of_level(level)) - (draws.mean() - value)
        )
    else:
        reach = z_of_level(level) * se
        low = value - reach
        high = value + reach

    return Difference(value=value, se=se, low=low, high=high, n=n, method=method)


def reference_differences(
    own: Sequence[Agreement], draws: Sequence[Draws], reference: Sequence[Agreement]
) -> tuple[Difference, Difference]:
    """PAS of the benchmark and overall ECS, the agent's minus the reference's, over tests that both
    have.

    `own`, `draws`: an agreement and its replicates for each repetition; `reference`: one for each
    simulation. The interval is t, with the degrees of freedom of Welch and Satterthwaite: the
    agent's bootstrap error counts as known, that of the reference as estimated from its
    simulations.
    """
    return (
        _beside(PAS, own, draws, reference, missing="no test is scored on both sides"),
        _beside(
            ECS,
            own,
            draws,
            reference,
            missing=f"needs {FEWEST} tests with effects on both sides",
        ),
    )


def _beside(
    measure: _Measure,
    own: Sequence[Agreement],
    draws: Sequence[Draws],
    reference: Sequence[Agreement],
    *,
    missing: str,
) -> Difference:
    values: list[tuple[float, float]] = []  # of the agent and the reference
    simulated: list[list[float]] = [[] for _ in reference]
    repeated: list[list[Floats]] = [[] for _ in own]
    n = 0
    for agreement, drawn, rows in zip(own, draws, repeated, strict=True):
        # simulations mostly have the same tests, whose replicates are computed once
        known: dict[tuple[int, ...], Floats] = {}
        for other, besides in zip(reference, simulated, strict=True):
            shared = _shared(measure, agreement, other)
            if len(shared) < measure.fewest:
                continue
            here = tuple(at for at, _ in shared)
            tests = [agreement.tests[at] for at in here]
            value = _value(measure, tests, tests)
            beside = _value(measure, tests, [other.tests[at] for _, at in shared])
            if math.isfinite(value) and math.isfinite(beside):
                if here not in known:
                    known[here] = _rows(measure, tests, tests, drawn, list(here))
                rows.append(known[here])
                values.append((value, beside))
                besides.append(beside)
                n = max(n, len(shared))

    if not values:
        return Difference(value=NAN, se=NAN, low=NAN, high=NAN, n=0, method=missing)
    value = math.fsum(agent - beside for agent, beside in values) / len(values)
    means = np.array([math.fsum(some) / len(some) for some in simulated if some])
    agent_se = sd(mean_rows([mean_rows(some) for some in repeated if some]))
    count = len(means)
    method = f"bootstrap SE and the spread of {count} simulations, Welch's t"
    if count < 2 or math.isnan(agent_se):
        method = (
            "one simulation has no spread"
            if count < 2
            else "the agent's side has no standard error"
        )
        return Difference(value=value, se=NAN, low=NAN, high=NAN, n=n, method=method)

    reference_se = float(means.std(ddof=1)) / math.sqrt(count)
    se = math.hypot(agent_se, reference_se)
    # without a spread, practically normal
    if reference_se > 1e-6 * se:
        df = (count - 1) * (se / reference_se) ** 4
    else:
        df = 1e12

    df = min(df, 1e12)
    reach = float(special.stdtrit(df, (1 + own[0].level) / 2)) * se
    return Difference(
        value=value,
        se=se,
        low=value - reach,
        high=value + reach,
        n=n,
        method=method,
        df=df,
    )
