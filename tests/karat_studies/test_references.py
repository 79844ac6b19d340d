"""How far an agent is above a simulated reference: against plain NumPy, and by the laws it must obey."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from tests.karat_studies.test_repetitions import agreement, rng

from karat_studies.replication import draw_scores, pool_pas, reference_differences, score_uncertainty, weighted_ccc


def test_one_repetition_against_simulations_is_what_can_be_added_up_by_hand() -> None:
    one, simulated = agreement(), [agreement(-shift) for shift in (2.0, 2.4, 3.1, 2.2)]
    draws = draw_scores(one, rng=rng(), replicates=400)
    pas, ecs = reference_differences([one], [draws], simulated)
    beside = [other.benchmark.pas for other in simulated]
    agent = score_uncertainty(one, rng=rng(), draws=draws).pas["benchmark", ""]
    own = float(np.std(beside, ddof=1)) / 2
    assert pas.value == pytest.approx(one.benchmark.pas - float(np.mean(beside)))
    assert pas.se == pytest.approx(math.hypot(agent.se, own))
    df = pas.se**4 / (own**4 / 3)
    assert pas.high - pas.value == pytest.approx(float(scipy_stats.t.ppf(0.975, df)) * pas.se)
    assert pas.n == 12
    others = [other.benchmark.ecs.value for other in simulated]
    assert ecs.value == pytest.approx(one.benchmark.ecs.value - float(np.mean(others)))
    assert ecs.low < ecs.value < ecs.high


def test_both_sides_are_taken_over_the_tests_that_both_have() -> None:
    one, simulated = agreement(missing=(0, 3)), [agreement(-2.0), agreement(-2.5)]
    draws = draw_scores(one, rng=rng(), replicates=200)
    pas, ecs = reference_differences([one], [draws], simulated)
    assert pas.n == ecs.n == 8
    kept = [at for at, score in enumerate(one.tests) if score.test.study not in {"s0", "s3"}]

    def mean(tests: list[float]) -> float:
        return float(np.mean([pool_pas(pair, [100.0, 100.0]) for pair in zip(tests[::2], tests[1::2], strict=True)]))

    values = [mean([which.tests[at].pas for at in kept]) for which in (one, *simulated)]
    assert pas.value == pytest.approx(values[0] - float(np.mean(values[1:])))
    human = np.array([one.tests[at].human.d for at in kept])
    d = [np.array([which.tests[at].agent.d for at in kept]) for which in (one, *simulated)]
    found = [weighted_ccc(human, other).value for other in d]
    assert ecs.value == pytest.approx(found[0] - float(np.mean(found[1:])))


def test_several_repetitions_are_averaged() -> None:
    own, simulated = [agreement(), agreement(0.3)], [agreement(-2.0), agreement(-2.5)]
    draws = [draw_scores(one, rng=rng(at), replicates=200) for at, one in enumerate(own)]
    both, _ = reference_differences(own, draws, simulated)
    alone = [reference_differences([one], [drawn], simulated)[0] for one, drawn in zip(own, draws, strict=True)]
    assert both.value == pytest.approx(float(np.mean([one.value for one in alone])))
    assert both.se < max(one.se for one in alone)


def test_what_cannot_be_known_says_why() -> None:
    one = agreement()
    draws = draw_scores(one, rng=rng(), replicates=50)
    alone, _ = reference_differences([one], [draws], [agreement(-1.0)])
    assert math.isfinite(alone.value)
    assert math.isnan(alone.low)
    assert alone.method == "one simulation has no spread"
    nobody = agreement(missing=tuple(range(6)))
    for own, other in ((nobody, one), (one, nobody)):
        pas, ecs = reference_differences([own], [draw_scores(own, rng=rng(), replicates=50)], [other, other])
        assert math.isnan(pas.value)
        assert math.isnan(ecs.value)
        assert (pas.n, pas.method) == (0, "no test is scored on both sides")


def test_a_reference_that_is_always_the_same_adds_no_error() -> None:
    one, same = agreement(), agreement(-2.0)
    draws = draw_scores(one, rng=rng(), replicates=200)
    pas, _ = reference_differences([one], [draws], [same, same, same])
    agent = score_uncertainty(one, rng=rng(), draws=draws).pas["benchmark", ""]
    assert pas.se == pytest.approx(agent.se)
    assert pas.high - pas.value == pytest.approx(1.959964 * agent.se, rel=1e-5)
