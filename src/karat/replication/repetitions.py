"""Several repetitions of one experiment: every score is the mean over them, and how sure that mean is.

A repetition asks the same participants again, so one draw of participants serves all of
them: what repetitions share (who was asked) does not shrink with their number, what they
do not share (how an answer fell) does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from karat.replication._inputs import Floats, percentiles_of_level, z_of_level
from karat.replication.consistency import (
    EDGE,
    FEWEST,
    FEWEST_STUDIES,
    EcsInterval,
    weighted_ccc,
    weights_by_study,
)
from karat.replication.scores import Agreement, TestScore
from karat.replication.uncertainty import (
    NAN,
    WHOLE,
    Difference,
    Draws,
    FindingId,
    Key,
    Place,
    Spread,
    Uncertainty,
    _ecs_rows,
    _pas,
    _pool,
    _sd,
    difference_uncertainty,
    ecs_difference_uncertainty,
    ecs_spread,
    pas_spread,
    place_of,
    score_uncertainty,
)

__all__ = ["Repetitions", "directed_pas", "reference_differences", "repeated_differences", "repeated_uncertainty"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Repetitions:
    """Means over repetitions, with what is known of them; `each` is of every repetition alone."""

    pas: dict[Key, Spread]
    ecs_fixed: dict[Key, Spread]
    ecs_new: EcsInterval
    noise_ceiling: float
    ecs_ceiling: dict[str, float]  # the ECS that a perfect copy would get, study by study
    each: tuple[Uncertainty, ...]


def repeated_uncertainty(
    agreements: Sequence[Agreement], draws: Sequence[Draws], *, rng: np.random.Generator
) -> Repetitions:
    """Of one condition: an agreement and its replicates for every repetition, tests and replicates in one order."""
    each = tuple(score_uncertainty(one, rng=rng, draws=drawn) for one, drawn in zip(agreements, draws, strict=True))
    if len(each) == 1:
        only = each[0]
        return Repetitions(
            pas=only.pas, ecs_fixed=only.ecs_fixed, ecs_new=agreements[0].ecs_interval,
            noise_ceiling=only.noise_ceiling, ecs_ceiling=only.ecs_ceiling, each=each,
        )  # fmt: skip
    levels = [_pool(one.tests, _pas(one.tests, drawn.log_bf)) for one, drawn in zip(agreements, draws, strict=True)]
    effects = [_ecs_levels(one, drawn) for one, drawn in zip(agreements, draws, strict=True)]
    return Repetitions(
        pas={
            key: _pas_mean(
                place_of(key, agreements[0], draws[0]), [one.pas[key] for one in each], [one[key] for one in levels]
            )
            for key in each[0].pas
        },
        ecs_fixed={
            key: _ecs_mean(
                place_of(key, agreements[0], draws[0]),
                [one.ecs_fixed[key] for one in each],
                [one.get(key) for one in effects],
            )
            for key in each[0].ecs_fixed
        },
        ecs_new=_jackknife(agreements),
        noise_ceiling=_known_mean(one.noise_ceiling for one in each),
        ecs_ceiling={name: _known_mean(one.ecs_ceiling[name] for one in each) for name in each[0].ecs_ceiling},
        each=each,
    )


def _known_mean(values: Iterable[float]) -> float:
    known = [one for one in values if not math.isnan(one)]
    return math.fsum(known) / len(known) if known else NAN


def _pas_mean(place: Place, spreads: Sequence[Spread], levels: Sequence[Floats]) -> Spread:
    """Over the repetitions that have a score. Their replicates are added up draw by draw."""
    known = [at for at, one in enumerate(spreads) if not math.isnan(one.value)]
    if not known:
        return spreads[0]
    value = math.fsum(spreads[at].value for at in known) / len(known)
    n = max(spreads[at].n for at in known)
    return pas_spread(place, value, _mean_rows([levels[at] for at in known]), n=n)


def _ecs_mean(place: Place, spreads: Sequence[Spread], rows: Sequence[Floats | None]) -> Spread:
    """As of one repetition, from the replicates of the mean."""
    values = [one.value for one in spreads if not math.isnan(one.value)]
    if not values:
        return spreads[0]
    value = math.fsum(values) / len(values)
    known = [row for one, row in zip(spreads, rows, strict=True) if row is not None and not math.isnan(one.value)]
    if not known:
        first = spreads[0]
        return Spread(value=value, se=NAN, n=first.n, method=first.method, reason=first.reason)
    return ecs_spread(place, value, _mean_rows(known), n=max(one.n for one in spreads))


def _mean_rows(rows: Sequence[Floats]) -> Floats:
    stacked = np.stack(rows)
    there = np.isfinite(stacked)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there, stacked, 0.0).sum(axis=0) / there.sum(axis=0))


def _ecs_levels(agreement: Agreement, draws: Draws) -> dict[Key, Floats]:
    """The ECS of every level with enough tests, replicate by replicate."""
    human, agent = _effects(agreement.tests)
    names = [score.test.study for score in agreement.tests]
    domains = [score.test.domain for score in agreement.tests]
    ids = [score.test.finding_id for score in agreement.tests]
    known = np.isfinite(human) & np.isfinite(agent) & np.isfinite(draws.d).any(axis=0)
    inside: dict[Key, list[bool]] = {WHOLE: [True] * len(names)}
    inside |= {("domain", one.name): [name == one.name for name in domains] for one in agreement.domains}
    inside |= {("study", one.name): [name == one.name for name in names] for one in agreement.studies}
    found: dict[Key, Floats] = {}
    for key, own in inside.items():
        valid = known & np.array(own, dtype=bool)
        if valid.sum() >= FEWEST:
            weights = weights_by_study(names, ids, valid, level="study" if key[0] == "study" else "finding")
            found[key] = _ecs_rows(human[valid], draws.d[:, valid], weights[valid])
    return found


def _effects(tests: Sequence[TestScore]) -> tuple[Floats, Floats]:
    return np.array([score.human.d for score in tests]), np.array([score.agent.d for score in tests])


def _jackknife(agreements: Sequence[Agreement]) -> EcsInterval:
    """The interval for new studies of the mean ECS: a study is left out of all repetitions at once."""
    from karat.stats.special import stdtrit

    names = [score.test.study for score in agreements[0].tests]
    ids = [score.test.finding_id for score in agreements[0].tests]
    pairs = [_effects(one.tests) for one in agreements]
    weights = [weights_by_study(names, ids, np.isfinite(x) & np.isfinite(y)) for x, y in pairs]
    present = [
        name
        for name in dict.fromkeys(names)
        if any(one[at] > 0 for one in weights for at, own in enumerate(names) if own == name)
    ]

    def mean(left_out: str | None) -> float:
        kept = np.array([name != left_out for name in names])
        values = [weighted_ccc(x, y, w * kept).value for (x, y), w in zip(pairs, weights, strict=True)]
        known = [value for value in values if not math.isnan(value)]
        return math.fsum(known) / len(known) if known else NAN

    value, n = mean(None), len(present)
    first = agreements[0].ecs_interval
    method, scope = f"{first.method}, mean of {len(agreements)} repetitions", first.scope
    if n < FEWEST_STUDIES:
        reason = f"needs {FEWEST_STUDIES} studies, has {n}"
        return EcsInterval(value=value, level=first.level, n=n, method=method, scope=scope, reason=reason)
    z = np.arctanh(np.clip([mean(name) for name in present], -EDGE, EDGE))
    centre = math.atanh(max(-EDGE, min(EDGE, value)))
    se = math.sqrt((n - 1) / n * float(((z - z.mean()) ** 2).sum()))
    reach = float(stdtrit(n - 1, (1 + first.level) / 2)) * se
    return EcsInterval(
        value=value, se=se, low=math.tanh(centre - reach), high=math.tanh(centre + reach),
        level=first.level, n=n, method=method, scope=scope,
    )  # fmt: skip


def repeated_differences(
    first: Sequence[Agreement],
    second: Sequence[Agreement],
    *,
    first_draws: Sequence[Draws],
    second_draws: Sequence[Draws],
    paired: bool = True,
    without: Collection[str] = (),
) -> tuple[Difference, Difference]:
    """PAS of the benchmark and overall ECS, second less first: means of the differences of each repetition.

    `without`: names of studies to leave out of PAS.
    """
    if len(first) == 1:
        both = {"first_draws": first_draws[0], "second_draws": second_draws[0]}
        return (
            difference_uncertainty(first[0], second[0], paired=paired, without=without, **both),
            ecs_difference_uncertainty(first[0], second[0], paired=paired, **both),
        )
    pas, ecs = [], []
    pas_rows, ecs_rows = [], []
    for one, two, one_draws, two_draws in zip(first, second, first_draws, second_draws, strict=True):
        drawn = {"first_draws": one_draws, "second_draws": two_draws}
        pas.append(difference_uncertainty(one, two, paired=paired, without=without, **drawn))
        ecs.append(ecs_difference_uncertainty(one, two, paired=paired, **drawn))
        pas_rows.append(_pas_rows(one, two, one_draws, two_draws, without=without))
        ecs_rows.append(_ecs_change(one, two, one_draws, two_draws))
    level = first[0].level
    return (
        _change(pas, pas_rows, percentile=False, level=level),
        _change(ecs, ecs_rows, percentile=True, level=level),
    )


def _change(
    found: Sequence[Difference], rows: Sequence[Floats | None], *, percentile: bool, level: float
) -> Difference:
    known = [(one, row) for one, row in zip(found, rows, strict=True) if not math.isnan(one.value) and row is not None]
    if not known:
        return found[0]
    value = math.fsum(one.value for one, _ in known) / len(known)
    draws = _mean_rows([row for _, row in known])
    se, n, method = _sd(draws), max(one.n for one, _ in known), known[0][0].method
    if not percentile:
        reach = z_of_level(level) * se
        return Difference(value=value, se=se, low=value - reach, high=value + reach, n=n, method=method)
    draws = draws[np.isfinite(draws)]
    low, high = np.quantile(draws, percentiles_of_level(level)) - (draws.mean() - value)
    return Difference(value=value, se=se, low=float(low), high=float(high), n=n, method=method)


def _pas_rows(
    one: Agreement, two: Agreement, one_draws: Draws, two_draws: Draws, *, without: Collection[str]
) -> Floats | None:
    def scored(a: TestScore, b: TestScore) -> bool:
        return a.test.study not in without and not math.isnan(a.pas) and not math.isnan(b.pas)

    shared = _shared(one, two, scored)
    if not shared:
        return None
    here, there = (np.array(side) for side in zip(*shared, strict=True))
    tests, others = [one.tests[at] for at in here], [two.tests[at] for at in there]
    before = _pool(tests, _pas(tests, one_draws.log_bf[:, here]))[WHOLE]
    after = _pool(tests, _pas(others, two_draws.log_bf[:, there]))[WHOLE]
    return np.asarray(after - before)


def _ecs_change(one: Agreement, two: Agreement, one_draws: Draws, two_draws: Draws) -> Floats | None:
    shared = _shared(one, two, lambda a, b: bool(np.isfinite([a.human.d, a.agent.d, b.agent.d]).all()))
    shared = [
        (here, there)
        for here, there in shared
        if np.isfinite(one_draws.d[:, here]).any() and np.isfinite(two_draws.d[:, there]).any()
    ]
    if len(shared) < FEWEST:
        return None
    here, there = (np.array(side) for side in zip(*shared, strict=True))
    tests = [one.tests[at] for at in here]
    human = np.array([score.human.d for score in tests])
    names, ids = [score.test.study for score in tests], [score.test.finding_id for score in tests]
    weights = weights_by_study(names, ids, np.ones(len(tests), dtype=bool))
    return _ecs_rows(human, two_draws.d[:, there], weights) - _ecs_rows(human, one_draws.d[:, here], weights)


def _shared(one: Agreement, two: Agreement, both: Callable[[TestScore, TestScore], bool]) -> list[tuple[int, int]]:
    keys: dict[tuple[FindingId, str], int] = {
        (score.test.finding_id, score.test.test): at for at, score in enumerate(two.tests)
    }
    found = []
    for at, score in enumerate(one.tests):
        other = keys.get((score.test.finding_id, score.test.test))
        if other is not None and both(score, two.tests[other]):
            found.append((at, other))
    return found


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
