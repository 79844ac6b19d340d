"""Several repetitions of one experiment: every score is the mean over them, with its uncertainty.

Every repetition asks the same participants, so one draw of participants is used for all of
them: the variance they share (who was asked) does not shrink with the number of repetitions,
the rest (in the answers) does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from karat.stats import special
from karat_studies.replication._inputs import Floats
from karat_studies.replication.consistency import (
    FEWEST,
    EcsInterval,
    jackknife_interval,
    weighted_ccc,
)
from karat_studies.replication.scores import (
    Agreement,
    TestScore,
    effects_of,
    known_mean,
    test_weights,
)
from karat_studies.replication.uncertainty import (
    NAN,
    WHOLE,
    Difference,
    Draws,
    Key,
    Place,
    Spread,
    Uncertainty,
    _ecs_rows,
    _pas,
    _pool,
    _sd,
    both_ecs,
    both_pas,
    ecs_change,
    ecs_levels,
    ecs_spread,
    mean_change,
    mean_rows,
    pas_change,
    pas_spread,
    place_of,
    score_uncertainty,
    shared_tests,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Repetitions:
    """Means over repetitions, with their uncertainty; `each` holds every repetition separately."""

    pas: dict[Key, Spread]
    ecs_fixed: dict[Key, Spread]
    ecs_new: EcsInterval
    noise_ceiling: float
    ecs_ceiling: dict[str, float]  # the ECS that a perfect copy would get, study by study
    each: tuple[Uncertainty, ...]


def repeated_uncertainty(
    agreements: Sequence[Agreement], draws: Sequence[Draws], *, rng: np.random.Generator
) -> Repetitions:
    """One condition: an agreement and its replicates for every repetition, tests and replicates in
    the same order.
    """
    each = tuple(
        score_uncertainty(one, rng=rng, draws=drawn)
        for one, drawn in zip(agreements, draws, strict=True)
    )
    if len(each) == 1:
        return one_repetition(agreements[0], each[0])
    levels = [
        _pool(one.tests, _pas(one.tests, drawn.log_bf))
        for one, drawn in zip(agreements, draws, strict=True)
    ]
    effects = [
        ecs_levels(agreement, drawn) for agreement, drawn in zip(agreements, draws, strict=True)
    ]
    return Repetitions(
        pas={
            key: _pas_mean(
                place_of(key, agreements[0], draws[0]),
                [one.pas[key] for one in each],
                [level[key] for level in levels],
            )
            for key in each[0].pas
        },
        ecs_fixed={
            key: _ecs_mean(
                place_of(key, agreements[0], draws[0]),
                [sure.ecs_fixed[key] for sure in each],
                [effect[key][1] for effect in effects],
            )
            for key in each[0].ecs_fixed
        },
        ecs_new=_jackknife(agreements),
        noise_ceiling=known_mean(sure.noise_ceiling for sure in each),
        ecs_ceiling={
            name: known_mean(sure.ecs_ceiling[name] for sure in each)
            for name in each[0].ecs_ceiling
        },
        each=each,
    )


def one_repetition(agreement: Agreement, sure: Uncertainty) -> Repetitions:
    """A single one, whose uncertainty is that of the means."""
    return Repetitions(
        pas=sure.pas,
        ecs_fixed=sure.ecs_fixed,
        ecs_new=agreement.ecs_interval,
        noise_ceiling=sure.noise_ceiling,
        ecs_ceiling=sure.ecs_ceiling,
        each=(sure,),
    )


def _pas_mean(place: Place, spreads: Sequence[Spread], levels: Sequence[Floats]) -> Spread:
    """Over the repetitions that have a score. Their replicates are summed draw by draw."""
    known = [at for at, spread in enumerate(spreads) if not math.isnan(spread.value)]
    if not known:
        return spreads[0]
    value = known_mean(spread.value for spread in spreads)
    n = max(spreads[at].n for at in known)
    return pas_spread(place, value, mean_rows([levels[at] for at in known]), n=n)


def _ecs_mean(place: Place, spreads: Sequence[Spread], rows: Sequence[Floats | None]) -> Spread:
    """As for one repetition, from the replicates of the mean."""
    values = [spread.value for spread in spreads if not math.isnan(spread.value)]
    if not values:
        return spreads[0]
    value = math.fsum(values) / len(values)
    known = []
    for spread, row in zip(spreads, rows, strict=True):
        if row is not None and not math.isnan(spread.value):
            known.append(row)
    if not known:
        first = spreads[0]
        return Spread(value=value, se=NAN, n=first.n, method=first.method, reason=first.reason)
    return ecs_spread(place, value, mean_rows(known), n=max(spread.n for spread in spreads))


def _jackknife(agreements: Sequence[Agreement]) -> EcsInterval:
    """The interval for new studies of the mean ECS: a study is left out of all repetitions at
    once.
    """
    names = [score.test.study for score in agreements[0].tests]
    pairs = [effects_of(agreement.tests) for agreement in agreements]
    weights = [test_weights(agreements[0].tests, np.isfinite(x) & np.isfinite(y)) for x, y in pairs]
    present = []
    for name in dict.fromkeys(names):
        if any(weight[at] > 0 for weight in weights for at, own in enumerate(names) if own == name):
            present.append(name)

    def mean(left_out: str | None) -> float:
        kept = np.array([name != left_out for name in names])
        return known_mean(
            weighted_ccc(x, y, w * kept).value for (x, y), w in zip(pairs, weights, strict=True)
        )

    first = agreements[0].ecs_interval
    method = f"{first.method}, mean of {len(agreements)} repetitions"
    return jackknife_interval(
        mean(None), [mean(name) for name in present], level=first.level, method=method
    )


def repeated_differences(
    first: Sequence[Agreement],
    second: Sequence[Agreement],
    *,
    first_draws: Sequence[Draws],
    second_draws: Sequence[Draws],
    paired: bool = True,
    without: Collection[str] = (),
) -> tuple[Difference, Difference]:
    """PAS of the benchmark and overall ECS, second minus first: means of the differences of each
    repetition.

    `without`: names of studies to leave out of PAS.
    """
    pas, ecs = [], []
    for one, two, one_draws, two_draws in zip(
        first, second, first_draws, second_draws, strict=True
    ):
        pas.append(
            pas_change(
                one,
                two,
                first_draws=one_draws,
                second_draws=two_draws,
                paired=paired,
                without=without,
            )
        )
        ecs.append(
            ecs_change(one, two, first_draws=one_draws, second_draws=two_draws, paired=paired)
        )

    level = first[0].level
    return mean_change(pas, percentile=False, level=level), mean_change(
        ecs, percentile=True, level=level
    )


Places = tuple[int, ...]
Levels = tuple[float, float, Floats]
"""Agent, reference, and the agent's replicates, all over the same tests."""


def directed_pas(agreement: Agreement) -> float:
    """The benchmark PAS from each test's directional PAS, if it has one; NaN without any score.

    An effect in the wrong direction counts as none; a test without a direction keeps its PAS. An
    agent that gives one arbitrary answer per arm has a high PAS by chance, and its directional PAS
    leaves out most tests.
    """
    if not agreement.tests:
        return NAN
    scores = [
        test.pas if math.isnan(test.pas_directional) else test.pas_directional
        for test in agreement.tests
    ]
    return float(_pool(agreement.tests, np.array([scores]))[WHOLE][0])


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
        _difference(own, draws, reference, _Pas(), missing="no test is scored on both sides"),
        _difference(
            own,
            draws,
            reference,
            _Ecs(),
            missing=f"needs {FEWEST} tests with effects on both sides",
        ),
    )


@dataclass(slots=True)
class _Pas:
    """Benchmark PAS over the tests that both sides have."""

    fewest: int = 1
    rows: dict[tuple[int, Places], Floats] = field(default_factory=dict)

    def both(self, one: TestScore, other: TestScore) -> bool:
        return not math.isnan(one.pas) and not math.isnan(other.pas)

    def levels(
        self, own: Agreement, drawn: Draws, other: Agreement, places: tuple[Places, Places]
    ) -> Levels:
        here, there = places
        tests = [own.tests[at] for at in here]
        value, beside = both_pas(tests, [other.tests[at] for at in there])
        key = id(drawn), here
        if key not in self.rows:
            self.rows[key] = _pool(tests, _pas(tests, drawn.log_bf[:, list(here)]))[WHOLE]
        return value, beside, self.rows[key]


@dataclass(slots=True)
class _Ecs:
    """Overall ECS over the tests with an effect on both sides."""

    fewest: int = FEWEST
    rows: dict[tuple[int, Places], Floats] = field(default_factory=dict)

    def both(self, one: TestScore, other: TestScore) -> bool:
        return bool(np.isfinite([one.human.d, one.agent.d, other.agent.d]).all())

    def levels(
        self, own: Agreement, drawn: Draws, other: Agreement, places: tuple[Places, Places]
    ) -> Levels:
        here, there = places
        tests = [own.tests[at] for at in here]
        value, beside, human, weights = both_ecs(tests, [other.tests[at] for at in there])
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
    pairs: list[tuple[int, int, Levels]] = []  # repetition, simulation
    n = 0
    for number, (agreement, drawn) in enumerate(zip(own, draws, strict=True)):
        for at, other in enumerate(reference):
            shared = _places(agreement, other, measure.both)
            if len(shared[0]) >= measure.fewest:
                levels = measure.levels(agreement, drawn, other, shared)
                if math.isfinite(levels[0]) and math.isfinite(levels[1]):
                    pairs.append((number, at, levels))
                    n = max(n, len(shared[0]))

    if not pairs:
        return Difference(value=NAN, se=NAN, low=NAN, high=NAN, n=0, method=missing)
    value = math.fsum(agent - beside for _, _, (agent, beside, _) in pairs) / len(pairs)
    simulated = []
    for index in range(len(reference)):
        simulated.append([beside for _, at, (_, beside, _) in pairs if at == index])
    means = np.array([math.fsum(some) / len(some) for some in simulated if some])
    repeated = []
    for index in range(len(own)):
        repeated.append([rows for number, _, (_, _, rows) in pairs if number == index])
    agent_se = _sd(mean_rows([mean_rows(some) for some in repeated if some]))
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
        value=value, se=se, low=value - reach, high=value + reach, n=n, method=method, df=df
    )


def _places(
    one: Agreement, other: Agreement, both: Callable[[TestScore, TestScore], bool]
) -> tuple[Places, Places]:
    shared = shared_tests(one, other, both)
    return tuple(here for here, _ in shared), tuple(there for _, there in shared)
