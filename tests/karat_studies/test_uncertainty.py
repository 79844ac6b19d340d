"""Standard errors and intervals of PAS and ECS: what they hold, and how often."""

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import coverage
from tests.karat_studies.test_scores import SIDES, t_test

from karat_studies.replication import (
    Side,
    StudyTest,
    draw_scores,
    pas_interval_of_test,
    score_test,
    score_tests,
    score_uncertainty,
    weighted_ccc,
)

from .studies import differences


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


def test_every_level_has_a_standard_error_and_every_level_above_findings_an_interval():
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
        elif level == "study":
            assert 0 <= spread.low < spread.value < spread.high <= 1
            assert spread.method == "wider of percentile and ± z SE"
        else:
            assert (math.isnan(spread.low), spread.reason) == (True, "no coverage claimed")
    assert found.ecs_fixed["benchmark", ""].low < agreement.benchmark.ecs.value
    assert found.replicates == 300


def test_one_study_has_one_ecs_with_one_interval():
    """Wherever it is printed: as the study, as its domain and as the headline of a run of that study alone."""
    effects = [("F1", "T1", 2.0, 1.0), ("F1", "T2", 3.0, 0.5), ("F1", "T3", 1.0, 3.0), ("F2", "T1", 4.0, -1.0)]
    tests = [replace(t_test("s0", *row), domain="cognition") for row in effects]
    agreement = score_tests(tests)
    (study,), (domain,) = agreement.studies, agreement.domains
    assert study.ecs.value == domain.ecs.value == agreement.benchmark.ecs.value == agreement.ecs_interval.value
    alike = weighted_ccc([one.human.d for one in agreement.tests], [one.agent.d for one in agreement.tests])
    assert study.ecs.value == alike.value
    found = score_uncertainty(agreement, rng=np.random.default_rng(1), replicates=200)
    for spreads in (found.pas, found.ecs_fixed):
        alone = spreads["study", "s0"]
        assert alone.low < alone.value <= alone.high
        assert spreads["benchmark", ""] == spreads["domain", "cognition"] == alone
    assert found.noise_ceiling == found.ecs_ceiling["s0"]


@pytest.mark.parametrize(
    ("kind", "agent"),
    [
        ("contingency", Side(table=((90, 0), (0, 76)))),
        ("contingency", Side(table=((90, 0), (76, 0)))),
        ("binomial", Side(statistic=150, n1=150)),
        ("binomial", Side(statistic=0, n1=150)),
        ("mannwhitney", Side(statistic=0, n1=150, n2=150, tie_term=2 * (150**3 - 150))),
    ],
)
def test_constant_answers_to_a_test_have_no_point_interval(kind, agent):
    people = {
        "contingency": Side(table=((60, 30), (20, 56))),
        "binomial": Side(statistic=30, n1=50),
        "mannwhitney": Side(statistic=400, n1=40, n2=30),
    }
    score = score_test(StudyTest(study="s", finding="F1", test="T1", kind=kind, human=people[kind], agent=agent))
    found = pas_interval_of_test(score)
    assert np.isfinite(found.value)
    assert np.isnan([found.low, found.high]).all()
    assert found.reason == "all answers within each group are the same"


def test_every_study_has_a_ceiling_of_its_ecs():
    agreement = benchmark()
    found = score_uncertainty(agreement, rng=np.random.default_rng(1), replicates=20)
    assert found.ecs_ceiling.keys() == {f"s{at}" for at in range(6)}
    for name, ceiling in found.ecs_ceiling.items():
        own = [one for one in agreement.tests if one.test.study == name and np.isfinite(one.human.d_se)]
        x, errors = np.array([one.human.d for one in own]), np.array([(o.human.d_se, o.agent.d_se) for o in own])
        if len(own) < 3:
            assert math.isnan(ceiling)
            continue
        noise = np.random.default_rng(2).standard_normal((4_000, len(own))) * np.hypot(*errors.T)
        expected = np.mean([weighted_ccc(x, x + one).value for one in noise])
        assert ceiling == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("kind", ["contingency", "binomial"])
def test_constant_answers_have_an_interval_and_not_a_point(kind):
    """All of 20 gave the same answer: that leaves open what the next 20 give, also where statistics alone are known."""
    same = Side(table=((20, 0), (20, 0))) if kind == "contingency" else Side(statistic=20, n1=20)
    human = Side(table=((16, 4), (6, 14))) if kind == "contingency" else Side(statistic=14, n1=20)
    tests = [StudyTest(study="s", finding=f"F{at}", test="T1", kind=kind, human=human, agent=same) for at in range(3)]
    found = score_uncertainty(score_tests(tests), rng=np.random.default_rng(1), replicates=2_000)
    spread = found.pas["study", "s"]
    assert spread.se > 0.001
    assert spread.low < spread.value < spread.high


def test_studies_that_are_left_out_of_a_comparison_do_not_count():
    tests = [t_test(name, f"F{at}", "T1", 3.0, t) for name, t in (("a", 3.0), ("b", -1.0)) for at in range(3)]
    first = score_tests(tests)
    second = score_tests([replace(one, agent=replace(one.agent, statistic=0.5)) for one in tests])
    draws = [draw_scores(each, rng=np.random.default_rng(2), replicates=50) for each in (first, second)]
    both = {"first_draws": draws[0], "second_draws": draws[1]}
    found = differences(first, second, without=["b"], **both)[0]
    assert (found.n, found.value) == (3, pytest.approx(second.studies[0].pas - first.studies[0].pas))
    nothing = differences(first, second, without=["a", "b"], **both)[0]
    assert (math.isnan(nothing.value), nothing.method) == (True, "no test outside a, b is scored under both")


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
    found = differences(agreement, agreement, first_draws=draws, second_draws=draws)[0]
    assert (found.value, found.se, found.n) == (0.0, 0.0, 24)
    other = draw_scores(agreement, rng=np.random.default_rng(3), replicates=40)
    assert differences(agreement, agreement, first_draws=draws, second_draws=other)[0].se > 0


def test_conditions_without_a_shared_test_have_no_difference():
    one, two = (score_tests([t_test(name, "F1", "T1", 2.0, 2.0)]) for name in ("a", "b"))
    draws = [draw_scores(each, rng=np.random.default_rng(2), replicates=10) for each in (one, two)]
    found = differences(one, two, first_draws=draws[0], second_draws=draws[1])[0]
    assert (math.isnan(found.value), found.n) == (True, 0)


RUNS = {"PAS of the benchmark": 200, "PAS of one test": 1_000, "ECS for new studies": 1_000,
        "ECS for these studies": 200, "PAS, participants drawn": 75, "PAS, groups drawn": 75,
        "ECS, participants drawn": 60}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("what", "low", "high"), coverage.BANDS)
def test_intervals_cover_as_they_claim(what, low, high):
    """The short version of benchmarks/coverage.py; the margin is two Monte Carlo errors."""
    share, runs = coverage.simulate(what, runs=RUNS[what], replicates=120, studies=3, seed=5, times=1)
    margin = 2 * math.sqrt(0.95 * 0.05 / runs)
    assert low - margin <= share <= high + margin
