"""Standard errors and intervals of PAS and ECS: what they hold, and how often."""

import math

import numpy as np
import pytest
from benchmarks import coverage
from tests.replication.test_scores import SIDES, t_test

from karat.replication import (
    Side,
    StudyTest,
    difference_uncertainty,
    draw_scores,
    pas_interval_of_test,
    score_test,
    score_tests,
    score_uncertainty,
)


@pytest.mark.parametrize("kind", SIDES)
def test_the_interval_of_a_test_holds_its_pas(kind):
    side = SIDES[kind]
    score = score_test(StudyTest(study="s", finding="F1", test="T1", kind=kind, human=side, agent=side))
    found = pas_interval_of_test(score)
    assert 0 <= found.low <= score.pas <= found.high <= 1
    assert found.low < found.high


def test_an_interval_that_contains_no_effect_ends_there():
    score = score_test(t_test("s", "F1", "T1", 6.0, 0.5))
    found = pas_interval_of_test(score)
    nothing = score_test(t_test("s", "F1", "T1", 6.0, 0.0))
    assert found.low == pytest.approx(nothing.pas, abs=1e-12)


def test_an_f_of_several_groups_has_no_interval_and_says_so():
    side = Side(statistic=4.5, df1=2, df2=57, sizes=(20, 20, 20))
    found = pas_interval_of_test(
        score_test(StudyTest(study="s", finding="F1", test="T1", kind="anova", human=side, agent=side))
    )
    assert math.isnan(found.low)
    assert found.reason == "no signed statistic with an error"


def benchmark(studies=6):
    kinds = list(SIDES)
    tests = []
    for s in range(studies):
        for k in range(4):
            kind = kinds[(s + k) % len(kinds)]
            domain = "social" if s % 2 else "cognition"
            side = SIDES[kind]
            tests.append(
                StudyTest(study=f"s{s}", finding=f"F{k}", test="T1", kind=kind, domain=domain, human=side, agent=side)
            )
    return score_tests(tests)


def test_every_level_has_a_standard_error_and_only_benchmark_and_domains_an_interval():
    rng = np.random.default_rng(1)
    agreement = benchmark()
    found = score_uncertainty(agreement, rng=rng, replicates=300)
    assert {level for level, _ in found.pas} == {"benchmark", "domain", "study", "finding"}
    assert len(found.pas) == 1 + 2 + 6 + 24
    for (level, _), spread in found.pas.items():
        assert spread.se > 0
        assert spread.n >= 1
        if level in {"benchmark", "domain"}:
            assert max(0, spread.value - 1.96 * spread.se) == pytest.approx(spread.low, abs=1e-4)
        else:
            assert (math.isnan(spread.low), spread.reason) == (True, "no coverage claimed")
    assert found.ecs_fixed["benchmark", ""].low < agreement.benchmark.ecs.value
    assert found.replicates == 300


def test_one_seed_gives_one_result():
    agreement = benchmark()
    one, two = (score_uncertainty(agreement, rng=np.random.default_rng(7), replicates=50) for _ in range(2))
    assert repr(one.pas) == repr(two.pas)  # NaN equals nothing


def test_the_ecs_of_a_study_with_few_tests_has_no_interval():
    agreement = score_tests([t_test("a", "F1", "T1", 2.0, 2.0), t_test("a", "F2", "T1", 2.0, 1.0)])
    found = score_uncertainty(agreement, rng=np.random.default_rng(1), replicates=20).ecs_fixed["study", "a"]
    assert (math.isnan(found.low), found.reason) == (True, "needs 3 tests with errors, has 2")


def test_conditions_with_the_same_draws_differ_by_nothing():
    agreement = benchmark()
    draws = draw_scores(agreement, rng=np.random.default_rng(2), replicates=40)
    found = difference_uncertainty(agreement, agreement, first_draws=draws, second_draws=draws)
    assert (found.value, found.se, found.n) == (0.0, 0.0, 24)
    other = draw_scores(agreement, rng=np.random.default_rng(3), replicates=40)
    assert difference_uncertainty(agreement, agreement, first_draws=draws, second_draws=other).se > 0


def test_conditions_without_a_shared_test_have_no_difference():
    one, two = (score_tests([t_test(name, "F1", "T1", 2.0, 2.0)]) for name in ("a", "b"))
    draws = [draw_scores(each, rng=np.random.default_rng(2), replicates=10) for each in (one, two)]
    found = difference_uncertainty(one, two, first_draws=draws[0], second_draws=draws[1])
    assert (math.isnan(found.value), found.n) == (True, 0)


RUNS = {"PAS of the benchmark": 500, "PAS of one test": 2_000, "ECS for new studies": 2_000,
        "ECS for these studies": 500, "PAS, participants drawn": 150, "PAS, groups drawn": 150,
        "ECS, participants drawn": 120}  # fmt: skip


@pytest.mark.parametrize(("what", "low", "high"), coverage.BANDS)
def test_intervals_cover_as_they_claim(what, low, high):
    """The short version of benchmarks/coverage.py; the margin is two Monte Carlo errors."""
    share, runs = coverage.simulate(what, runs=RUNS[what], replicates=120, studies=3, seed=5, times=1)
    margin = 2 * math.sqrt(0.95 * 0.05 / runs)
    assert low - margin <= share <= high + margin
