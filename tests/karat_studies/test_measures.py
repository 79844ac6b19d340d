"""Other measures of replication, test by test, beside the functions and examples they come from."""

import math

import numpy as np
import pytest
from tests.karat_studies.test_scores import SIDES

from karat_studies.replication import (
    Side,
    StudyTest,
    draw_scores,
    log_bf10_binomial,
    log_bf10_binomial_logistic,
    replication_measures,
    score_test,
    score_tests,
    score_uncertainty,
    small_telescopes,
)

from .studies import differences


def score(kind, human, agent):
    return score_test(StudyTest(study="s", finding="F1", test="T1", kind=kind, human=human, agent=agent))


def t_side(t, n=60):
    return Side(statistic=t, n1=n, n2=n)


def test_a_copy_is_inside_what_is_expected_by_chance():
    found = replication_measures(score("ttest_ind", t_side(3), t_side(3)), bound=0.5)
    assert found.prediction.inside is True
    assert found.log_replication_bf > 0
    assert found.telescopes.p > 0.5
    d = 3 * math.sqrt(2 / 60)
    se = math.sqrt(2 * (2 / 60 + d * d / 240))
    assert found.equivalence.p == pytest.approx(math.erfc(0.5 / se / math.sqrt(2)) / 2)


def test_the_opposite_effect_is_outside_and_small_whatever_the_orientation():
    for sign in (1, -1):
        found = replication_measures(score("ttest_ind", t_side(4 * sign), t_side(-4 * sign)))
        assert found.prediction.inside is False
        assert found.telescopes == small_telescopes((60, 60), -4, (60, 60))
        assert found.telescopes.p < 1e-6
        assert found.log_replication_bf < -3
        assert found.equivalence is None


def test_a_correlation_is_predicted_on_its_own_scale():
    found = replication_measures(score("correlation", Side(statistic=0.4, n1=30), Side(statistic=0.1, n1=100)))
    assert (found.prediction.low, found.prediction.high) == pytest.approx((-0.002824, 0.691133), abs=5e-6)
    assert found.telescopes is None and math.isnan(found.log_replication_bf)


@pytest.mark.parametrize("kind", SIDES)
def test_every_kind_gives_what_it_can_and_never_fails(kind):
    side = SIDES[kind]
    found = replication_measures(score(kind, side, side), bound=0.2)
    if found.prediction is not None:
        assert found.prediction.inside is True


def test_a_side_without_sizes_has_no_measure_of_t():
    found = replication_measures(score("ttest_ind", Side(statistic=2.0), Side(statistic=2.0)), bound=0.2)
    assert found.prediction is None and found.telescopes is None and found.equivalence is None


def test_a_perfect_copy_with_tiny_errors_has_a_ceiling_near_one():
    tests = [
        StudyTest(study="s", finding=f"F{k}", test="T1", kind="ttest_ind",
                  human=Side(d=k / 5, d_se=se), agent=Side(d=k / 5, d_se=se))
        for k in range(6) for se in (1e-4,)
    ]  # fmt: skip
    sure = score_uncertainty(score_tests(tests), rng=np.random.default_rng(1), replicates=50)
    assert sure.noise_ceiling == pytest.approx(1, abs=1e-6)
    assert sure.noise_ceiling_n == 6


def test_conditions_with_the_same_draws_have_the_same_ecs():
    sides = [(t_side(k), t_side(k / 2)) for k in (-2, 0.5, 1, 3)]
    tests = [
        StudyTest(study="s", finding=f"F{at}", test="T1", kind="ttest_ind", human=human, agent=agent)
        for at, (human, agent) in enumerate(sides)
    ]
    agreement = score_tests(tests)
    draws = draw_scores(agreement, rng=np.random.default_rng(2), replicates=40)
    found = differences(agreement, agreement, first_draws=draws, second_draws=draws)[1]
    assert (found.value, found.se, found.low, found.high, found.n) == (0.0, 0.0, 0.0, 0.0, 4)
    few = score_tests(tests[:2])
    drawn = draw_scores(few, rng=np.random.default_rng(2), replicates=40)
    found = differences(few, few, first_draws=drawn, second_draws=drawn)[1]
    assert math.isnan(found.value) and found.method == "needs 3 tests with errors"


def test_a_low_coverage_takes_the_agent_from_a_finding_and_a_middling_one_flags_it():
    side = t_side(3)

    def test(finding, name, coverage):
        return StudyTest(
            study="s", finding=finding, test=name, kind="ttest_ind", human=side, agent=side, coverage=coverage
        )

    found = score_tests([test("F1", "T1", 0.9), test("F1", "T2", 0.49), test("F2", "T1", 0.79), test("F3", "T1", 0.8)])
    low, middling, fine = found.findings
    assert math.isnan(low.pas) and low.tests_used == 0 and low.coverage == 0.49
    assert found.tests[0].agent.reasons == ("coverage 0.49, below 0.5: not scored",)
    assert (middling.flagged, fine.flagged) == (True, False)
    assert middling.pas == fine.pas
    every = score_tests([test("F1", "T2", 0.49)], min_coverage=0.4)
    assert not math.isnan(every.findings[0].pas)


@pytest.mark.parametrize(("k", "n", "p0"), [(0, 0, 0.5), (3, 10, 0.5), (48, 100, 0.3), (700_000, 1_000_000, 0.5)])
def test_a_narrow_logistic_prior_is_no_evidence_and_both_priors_agree_roughly(k, n, p0):
    assert log_bf10_binomial_logistic(k, n, p0=p0, rscale=1e-9) == pytest.approx(0, abs=1e-2)
    both = log_bf10_binomial_logistic(k, n, p0=p0, rscale=1.0), log_bf10_binomial(k, n, p0=p0)
    assert both[0] == pytest.approx(both[1], abs=3 + 0.001 * abs(both[1]))


def test_the_logistic_prior_is_symmetric_and_broadcasts():
    k = np.arange(11)
    found = log_bf10_binomial_logistic(k, 10)
    assert found == pytest.approx(found[::-1])
    assert math.isnan(log_bf10_binomial_logistic([11], 10)[0])
    with pytest.raises(ValueError, match="k: must be at most n"):
        log_bf10_binomial_logistic(11, 10)
