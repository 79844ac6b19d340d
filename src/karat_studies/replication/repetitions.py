"""Several repetitions of one experiment: every score is the mean over them, with its uncertainty.

Every repetition asks the same participants, so one draw of participants is used for all of
them: the variance they share (who was asked) does not shrink with the number of repetitions,
the rest (in the answers) does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from karat.stats import special
from karat_studies.replication._inputs import Floats, percentiles_of_level, z_of_level
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
    Draws,
    Key,
    Place,
    Spread,
    Uncertainty,
    _ecs_rows,
    _over,
    _pas,
    _pool,
    _sd,
    ecs_levels,
    ecs_spread,
    mean_rows,
    pas_spread,
    place_of,
    score_uncertainty,
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
    """A score over the tests that two agreements have."""

    fewest: int  # tests
    both: Callable[[TestScore, TestScore], bool]  # whether a test counts, given both its scores
    # (people and weights of these tests, the tests scored) → the score
    value: Callable[[Scores, Scores], float]
    # … and that of each replicate, from the draws at these places
    rows: Callable[[Scores, Scores, Draws, Places], Floats]

    def shared(self, first: Agreement, second: Agreement) -> tuple[Places, Places]:
        """The indices of the tests that count, in both agreements."""
        keys = [(score.test.finding_id, score.test.test) for score in first.tests]
        places = {}
        for at, score in enumerate(second.tests):
            places[score.test.finding_id, score.test.test] = at
        left, right = [], []
        for at, key in enumerate(keys):
            if key in places and self.both(first.tests[at], second.tests[places[key]]):
                left.append(at)
                right.append(places[key])

        return tuple(left), tuple(right)


Scores = Sequence[TestScore]
Places = tuple[int, ...]


def _pas_of(tests: Scores, scored: Scores) -> float:
    scores = np.array([[score.pas for score in scored]])
    return float(_pool(tests, scores)[WHOLE][0])


def _pas_rows(tests: Scores, scored: Scores, draws: Draws, places: Places) -> Floats:
    return _pool(tests, _pas(scored, draws.log_bf[:, list(places)]))[WHOLE]


def _ecs_of(tests: Scores, scored: Scores) -> float:
    weights = test_weights(tests, np.ones(len(tests), dtype=bool))
    return weighted_ccc(effects_of(tests)[0], effects_of(scored)[1], weights).value


def _ecs_rows_of(tests: Scores, _: Scores, draws: Draws, places: Places) -> Floats:
    weights = test_weights(tests, np.ones(len(tests), dtype=bool))
    return _ecs_rows(effects_of(tests)[0], draws.d[:, list(places)], weights)


PAS = _Measure(
    fewest=1,
    both=lambda one, other: not math.isnan(one.pas) and not math.isnan(other.pas),
    value=_pas_of,
    rows=_pas_rows,
)
ECS = _Measure(
    fewest=FEWEST,
    both=lambda one, other: bool(np.isfinite([one.human.d, one.agent.d, other.agent.d]).all()),
    value=_ecs_of,
    rows=_ecs_rows_of,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pair:
    """Two conditions in one repetition, each with its replicates."""

    first: Agreement
    second: Agreement
    first_draws: Draws
    second_draws: Draws

    def change(self, measure: _Measure, without: Collection[str]) -> tuple[int, float, Floats]:
        """How many tests count, the second minus the first, and that of each replicate."""
        left, right = [], []
        for here, there in zip(*measure.shared(self.first, self.second), strict=True):
            drawn = self.first_draws.d[:, here], self.second_draws.d[:, there]
            has_errors = all(np.isfinite(d).any() for d in drawn)
            left_out = self.first.tests[here].test.study in without
            if not left_out and (has_errors or measure is PAS):
                left.append(here)
                right.append(there)

        if len(left) < measure.fewest:
            return len(left), NAN, np.empty(0)
        tests = [self.first.tests[at] for at in left]
        others = [self.second.tests[at] for at in right]
        value = measure.value(tests, others) - measure.value(tests, tests)
        after = measure.rows(tests, others, self.second_draws, tuple(right))
        before = measure.rows(tests, tests, self.first_draws, tuple(left))
        return len(left), value, np.asarray(after - before)


def repeated_differences(
    first: Sequence[Agreement],
    second: Sequence[Agreement],
    *,
    first_draws: Sequence[Draws],
    second_draws: Sequence[Draws],
    paired: bool = True,
    without: Collection[str] = (),
) -> tuple[Difference, Difference]:
    """PAS of the benchmark and overall ECS, second minus first, over the tests that both have:
    means of the differences of each repetition.

    If both sets of replicates resample the same participants in the same draws, the difference is
    paired; drawn separately, it is as wide as for independent conditions. `paired` only reports
    which it is. Intervals have the level of `first`: of PAS ± z bootstrap SE; of ECS, for these
    studies, percentiles of the differences of replicates, shifted by their bias as for one
    condition. `without`: names of studies to leave out of PAS.
    """
    pairs = [
        _Pair(first=one, second=two, first_draws=one_draws, second_draws=two_draws)
        for one, two, one_draws, two_draws in zip(
            first, second, first_draws, second_draws, strict=True
        )
    ]
    level = first[0].level
    how = f"{'paired by draw' if paired else 'conditions drawn apart'}{_over(first_draws[0])}"
    z = z_of_level(level)
    outside = f" outside {', '.join(without)}" if without else ""
    pas = _mean_change(
        [pair.change(PAS, without) for pair in pairs],
        method=f"± {round(z, 2)} bootstrap SE, {how}",
        missing=f"no test{outside} is scored under both",
    )
    if not math.isnan(pas.value):
        pas = replace(pas, low=pas.value - z * pas.se, high=pas.value + z * pas.se)
    changes = [pair.change(ECS, ()) for pair in pairs]
    ecs = _mean_change(
        changes,
        method=f"percentile of the difference, moved by the bootstrap's bias, {how}",
        missing=f"needs {FEWEST} tests with errors",
    )
    if not math.isnan(ecs.value):
        draws = mean_rows([rows for _, value, rows in changes if not math.isnan(value)])
        draws = draws[np.isfinite(draws)]
        ends = np.quantile(draws, percentiles_of_level(level)) - (draws.mean() - ecs.value)
        ecs = replace(ecs, low=float(ends[0]), high=float(ends[1]))
    return pas, ecs


def _mean_change(
    changes: Sequence[tuple[int, float, Floats]], *, method: str, missing: str
) -> Difference:
    """Over the repetitions that have one, without an interval."""
    known = [change for change in changes if not math.isnan(change[1])]
    if not known:
        return Difference(value=NAN, se=NAN, low=NAN, high=NAN, n=changes[0][0], method=missing)
    return Difference(
        value=math.fsum(value for _, value, _ in known) / len(known),
        se=_sd(mean_rows([rows for _, _, rows in known])),
        low=NAN,
        high=NAN,
        n=max(n for n, _, _ in known),
        method=method,
    )


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
        _difference(own, draws, reference, PAS, missing="no test is scored on both sides"),
        _difference(
            own, draws, reference, ECS, missing=f"needs {FEWEST} tests with effects on both sides"
        ),
    )


def _difference(
    own: Sequence[Agreement],
    draws: Sequence[Draws],
    reference: Sequence[Agreement],
    measure: _Measure,
    *,
    missing: str,
) -> Difference:
    pairs: list[tuple[int, int, tuple[float, float, Floats]]] = []  # repetition, simulation
    # simulations mostly share the same tests, so the replicates there are computed once
    known: dict[tuple[int, Places], Floats] = {}
    n = 0
    for number, (agreement, drawn) in enumerate(zip(own, draws, strict=True)):
        for at, other in enumerate(reference):
            here, there = measure.shared(agreement, other)
            if len(here) < measure.fewest:
                continue
            tests = [agreement.tests[place] for place in here]
            value = measure.value(tests, tests)
            beside = measure.value(tests, [other.tests[place] for place in there])
            if math.isfinite(value) and math.isfinite(beside):
                if (number, here) not in known:
                    known[number, here] = measure.rows(tests, tests, drawn, here)
                pairs.append((number, at, (value, beside, known[number, here])))
                n = max(n, len(here))

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
