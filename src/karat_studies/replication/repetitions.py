"""Several repetitions of one experiment: every score is the mean over them, with its uncertainty.

Every repetition asks the same participants, so one draw of participants is used for all of
them: the variance they share (who was asked) does not shrink with the number of repetitions,
the rest (in the answers) does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from karat_studies.replication.consistency import (
    EcsInterval,
    jackknife_interval,
    weighted_ccc,
)
from karat_studies.replication.scores import (
    Agreement,
    effects_of,
    known_mean,
    test_weights,
)
from karat_studies.replication.uncertainty import (
    NAN,
    WHOLE,
    Draws,
    Spread,
    Uncertainty,
    ecs_levels,
    ecs_spread,
    mean_rows,
    pas_rows,
    pas_spread,
    place_of,
    pool,
    score_uncertainty,
)


def repeated_uncertainty(
    agreements: Sequence[Agreement],
    draws: Sequence[Draws],
    *,
    rng: np.random.Generator,
) -> Uncertainty:
    """That of the means over repetitions, of one condition: an agreement and its replicates for
    every repetition, tests and replicates in the same order.
    """
    each = tuple(
        score_uncertainty(one, rng=rng, draws=drawn)
        for one, drawn in zip(agreements, draws, strict=True)
    )
    if len(each) == 1:
        return replace(each[0], each=each)
    levels = [
        pool(one.tests, pas_rows(one.tests, drawn.log_bf))
        for one, drawn in zip(agreements, draws, strict=True)
    ]
    effects = [
        ecs_levels(agreement, drawn) for agreement, drawn in zip(agreements, draws, strict=True)
    ]
    # Over the repetitions that have a score; their replicates are summed draw by draw
    pas = dict(each[0].pas)
    ecs = dict(each[0].ecs_fixed)
    for key in pas:
        spreads = [one.pas[key] for one in each]
        known = [at for at, spread in enumerate(spreads) if not math.isnan(spread.value)]
        if known:
            pas[key] = pas_spread(
                place_of(key, agreements[0], draws[0]),
                known_mean(spread.value for spread in spreads),
                mean_rows([levels[at][key] for at in known]),
                n=max(spreads[at].n for at in known),
            )

    for key, first in each[0].ecs_fixed.items():
        spreads = [one.ecs_fixed[key] for one in each]
        values = [spread.value for spread in spreads if not math.isnan(spread.value)]
        rows = []
        for spread, effect in zip(spreads, effects, strict=True):
            row = effect[key][1]
            if row is not None and not math.isnan(spread.value):
                rows.append(row)

        if values and rows:
            ecs[key] = ecs_spread(
                place_of(key, agreements[0], draws[0]),
                math.fsum(values) / len(values),
                mean_rows(rows),
                n=max(spread.n for spread in spreads),
            )
        elif values:
            value = math.fsum(values) / len(values)
            ecs[key] = Spread(
                value=value,
                se=NAN,
                n=first.n,
                method=first.method,
                reason=first.reason,
            )

    return replace(
        each[0],
        pas=pas,
        ecs_fixed=ecs,
        ecs_new=_jackknife(agreements),
        noise_ceiling=known_mean(sure.noise_ceiling for sure in each),
        ecs_ceiling={
            name: known_mean(sure.ecs_ceiling[name] for sure in each)
            for name in each[0].ecs_ceiling
        },
        each=each,
    )


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
        mean(None),
        [mean(name) for name in present],
        level=first.level,
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
    return float(pool(agreement.tests, np.array([scores]))[WHOLE][0])
