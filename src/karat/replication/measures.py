"""Other measures of replication, test by test: new evidence, prediction, small telescopes, equivalence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from karat.replication.beyond import (
    Equivalence,
    PredictionInterval,
    SmallTelescopes,
    equivalence_test,
    log_replication_bayes_factor,
    prediction_interval,
    small_telescopes,
)
from karat.replication.effects import fisher_z_se
from karat.replication.evidence import T_KINDS, Side
from karat.replication.scores import TestScore

__all__ = ["ReplicationMeasures", "replication_measures"]

NAN = float("nan")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicationMeasures:
    """Of one test: the agent as a replication of the people. None and NaN: not to be had for this test."""

    log_replication_bf: float = NAN  # ln BF of the human effect against none, for the agent's data; t tests
    prediction: PredictionInterval | None = None  # where the agent's d should fall by chance; of correlations r
    telescopes: SmallTelescopes | None = None  # t tests
    equivalence: Equivalence | None = None  # of the difference in d, at the bound that was stated


def replication_measures(score: TestScore, *, bound: float | None = None) -> ReplicationMeasures:
    """All of them that the test has the numbers for. `bound`: the largest difference in d that counts as none.

    State it beforehand: chosen afterwards, it shows nothing.
    """
    return ReplicationMeasures(
        log_replication_bf=_new_evidence(score),
        prediction=_prediction(score),
        telescopes=_telescopes(score),
        equivalence=_equivalence(score, bound) if bound is not None else None,
    )


def _sizes(kind: str, side: Side) -> tuple[int, ...] | None:
    """The groups of a t test; None where they are not known, or too small."""
    sizes = (side.n1, side.n2) if kind in {"ttest_ind", "welch"} else (side.n1,)
    if kind not in T_KINDS or not math.isfinite(side.statistic) or not all(map(math.isfinite, sizes)):
        return None
    return tuple(int(size) for size in sizes) if sum(sizes) > len(sizes) else None


def _new_evidence(score: TestScore) -> float:
    kind, human, agent = score.test.kind, score.test.human, score.test.agent
    before, after = _sizes(kind, human), _sizes(kind, agent)
    if before is None or after is None:
        return NAN
    return log_replication_bayes_factor(human.statistic, before, agent.statistic, after)


def _telescopes(score: TestScore) -> SmallTelescopes | None:
    """The agent's t with the sign that the human effect has: positive is the same direction."""
    kind, human, agent = score.test.kind, score.test.human, score.test.agent
    before, after = _sizes(kind, human), _sizes(kind, agent)
    if before is None or after is None or not human.statistic:
        return None
    return small_telescopes(before, math.copysign(1, human.statistic) * agent.statistic, after)


def _prediction(score: TestScore) -> PredictionInterval | None:
    kind, human, agent = score.test.kind, score.human, score.agent
    if kind == "correlation" and abs(human.effect) < 1 and abs(agent.effect) < 1:
        errors = fisher_z_se(score.test.human.n1), fisher_z_se(score.test.agent.n1)
        if all(map(math.isfinite, errors)):
            return prediction_interval(human.effect, errors[0], agent.effect, errors[1], correlation=True)
    if not all(map(math.isfinite, (human.d, human.d_se, agent.d, agent.d_se))):
        return None
    return prediction_interval(human.d, human.d_se, agent.d, agent.d_se)


def _equivalence(score: TestScore, bound: float) -> Equivalence | None:
    se = math.hypot(score.human.d_se, score.agent.d_se)
    apart = score.agent.d - score.human.d
    if not math.isfinite(apart) or not math.isfinite(se) or se == 0:
        return None
    return equivalence_test(apart, se, low=-bound, high=bound)
