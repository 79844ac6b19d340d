"""How far an agent is above a reference that was made several times over, such as random answers.

The reference is no participant: it is simulated, as often as one likes, so its error is the
spread between the simulations and needs no bootstrap. It is independent of the agent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from karat.replication._inputs import Floats
from karat.replication.consistency import FEWEST, weighted_ccc, weights_by_study
from karat.replication.repetitions import _mean_rows, _shared
from karat.replication.scores import Agreement, TestScore
from karat.replication.uncertainty import NAN, WHOLE, Difference, Draws, _ecs_rows, _pas, _pool, _sd

__all__ = ["directed_pas", "reference_differences"]

Places = tuple[int, ...]
Levels = tuple[float, float, Floats]
"""Agent, reference, and the agent's replicates, all over the same tests."""


def directed_pas(agreement: Agreement) -> float:
    """The benchmark PAS with each test's directional PAS in its place, where it has one; NaN without any score.

    An effect in the wrong direction counts as none, and no effect where people have one counts as what it is: an agent
    that gives one arbitrary answer an arm has a high PAS by chance, and its directional PAS leaves out most tests.
    """
    if not agreement.tests:
        return NAN
    each = [one.pas if math.isnan(one.pas_directional) else one.pas_directional for one in agreement.tests]
    return float(_pool(agreement.tests, np.array([each]))[WHOLE][0])


def reference_differences(
    own: Sequence[Agreement], draws: Sequence[Draws], reference: Sequence[Agreement]
) -> tuple[Difference, Difference]:
    """PAS of the benchmark and overall ECS, the agent's less the reference's, over tests that both have.

    `own`, `draws`: an agreement and its replicates for each repetition; `reference`: one for each
    simulation. The interval is t, with the degrees of freedom of Welch and Satterthwaite: the
    agent's bootstrap error is taken as known, that of the reference as estimated from its simulations.
    """
    return (
        _difference(own, draws, reference, _Pas(), missing="no test is scored on both sides"),
        _difference(own, draws, reference, _Ecs(), missing=f"needs {FEWEST} tests with effects on both sides"),
    )


@dataclass(slots=True)
class _Pas:
    """Benchmark PAS over the tests that both sides have."""

    fewest: int = 1
    rows: dict[tuple[int, Places], Floats] = field(default_factory=dict)

    def both(self, one: TestScore, other: TestScore) -> bool:
        return not math.isnan(one.pas) and not math.isnan(other.pas)

    def levels(self, one: Agreement, drawn: Draws, other: Agreement, places: tuple[Places, Places]) -> Levels:
        here, there = places
        tests = [one.tests[at] for at in here]
        pas = np.array([[score.pas for score in tests], [other.tests[at].pas for at in there]])
        value, beside = _pool(tests, pas)[WHOLE]
        key = id(drawn), here
        if key not in self.rows:
            self.rows[key] = _pool(tests, _pas(tests, drawn.log_bf[:, list(here)]))[WHOLE]
        return float(value), float(beside), self.rows[key]


@dataclass(slots=True)
class _Ecs:
    """Overall ECS over the tests with an effect on both sides."""

    fewest: int = FEWEST
    rows: dict[tuple[int, Places], Floats] = field(default_factory=dict)

    def both(self, one: TestScore, other: TestScore) -> bool:
        return bool(np.isfinite([one.human.d, one.agent.d, other.agent.d]).all())

    def levels(self, one: Agreement, drawn: Draws, other: Agreement, places: tuple[Places, Places]) -> Levels:
        here, there = places
        tests = [one.tests[at] for at in here]
        human = np.array([score.human.d for score in tests])
        names, ids = [score.test.study for score in tests], [score.test.finding_id for score in tests]
        weights = weights_by_study(names, ids, np.ones(len(tests), dtype=bool))
        agents = ([score.agent.d for score in tests], [other.tests[at].agent.d for at in there])
        value, beside = (weighted_ccc(human, np.array(one), weights).value for one in agents)
        key = id(drawn), here
        if key not in self.rows:
            self.rows[key] = _ecs_rows(human, drawn.d[:, list(here)], weights)
        return value, beside, self.rows[key]


def _difference(
    own: Sequence[Agreement],
    draws: Sequence[Draws],
    reference: Sequence[Agreement],
    measure: _Pas | _Ecs,
    *,
    missing: str,
) -> Difference:
    found: list[tuple[int, int, Levels]] = []  # repetition, simulation
    n = 0
    for number, (one, drawn) in enumerate(zip(own, draws, strict=True)):
        for at, other in enumerate(reference):
            shared = _places(one, other, measure.both)
            if len(shared[0]) >= measure.fewest:
                levels = measure.levels(one, drawn, other, shared)
                if math.isfinite(levels[0]) and math.isfinite(levels[1]):
                    found.append((number, at, levels))
                    n = max(n, len(shared[0]))
    if not found:
        return Difference(value=NAN, se=NAN, low=NAN, high=NAN, n=0, method=missing)
    value = math.fsum(agent - beside for _, _, (agent, beside, _) in found) / len(found)
    simulated = [[beside for _, at, (_, beside, _) in found if at == one] for one in range(len(reference))]
    means = np.array([math.fsum(some) / len(some) for some in simulated if some])
    repeated = [[rows for number, _, (_, _, rows) in found if number == one] for one in range(len(own))]
    agent_se = _sd(_mean_rows([_mean_rows(some) for some in repeated if some]))
    return _between(value, agent_se, means, n, level=own[0].level)


def _places(one: Agreement, other: Agreement, both: Callable[[TestScore, TestScore], bool]) -> tuple[Places, Places]:
    shared = _shared(one, other, both)
    return tuple(here for here, _ in shared), tuple(there for _, there in shared)


def _between(value: float, agent_se: float, means: Floats, n: int, *, level: float) -> Difference:
    """`means`: of each simulation of the reference."""
    from karat.stats.special import stdtrit

    count = len(means)
    method = f"bootstrap SE and the spread of {count} simulations, Welch's t"
    if count < 2 or math.isnan(agent_se):
        method = "one simulation has no spread" if count < 2 else "the agent's side has no standard error"
        return Difference(value=value, se=NAN, low=NAN, high=NAN, n=n, method=method)
    own = float(means.std(ddof=1)) / math.sqrt(count)
    se = math.hypot(agent_se, own)
    df = (count - 1) * (se / own) ** 4 if own > 1e-6 * se else 1e12  # without a spread: as good as normal
    reach = float(stdtrit(min(df, 1e12), (1 + level) / 2)) * se
    return Difference(value=value, se=se, low=value - reach, high=value + reach, n=n, method=method)
