"""From tests to the benchmark: what is averaged, what is left out, what is said about it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from karat_studies.replication import (
    Side,
    StudyTest,
    log_bf10_anova,
    log_bf10_binomial,
    log_bf10_contingency,
    log_bf10_mann_whitney,
    log_bf10_pearson,
    log_bf10_ttest,
    log_bf10_z,
    pool_pas,
    score_test,
    score_tests,
    weighted_ccc,
)


def t_test(study, finding, test, t_human, t_agent, *, n=40, n_agent=None, **rest):
    n_agent = n_agent or n
    return StudyTest(
        study=study,
        finding=finding,
        test=test,
        kind="ttest_ind",
        human=Side(statistic=t_human, n1=n, n2=n),
        agent=Side(statistic=t_agent, n1=n_agent, n2=n_agent),
        **rest,
    )


SIDES = {
    "ttest_ind": Side(statistic=2.66, n1=40, n2=38),
    "welch": Side(statistic=-2.1, n1=40, n2=38),
    "ttest_paired": Side(statistic=3.0, n1=25),
    "ttest_one": Side(statistic=-1.0, n1=25),
    "anova": Side(statistic=7.1, df1=1, df2=78, n1=40, n2=40, sign=-1),
    "correlation": Side(statistic=-0.4, n1=50),
    "spearman": Side(statistic=0.4, n1=50),
    "contingency": Side(table=((121, 34), (43, 109))),
    "binomial": Side(statistic=30, n1=40),
    "proportion": Side(statistic=5, n1=40, p0=0.3),
    "mannwhitney": Side(statistic=120, n1=20, n2=20),
    "wilcoxon": Side(statistic=2.5, n1=30),
}
LOG_BF = {
    "ttest_ind": lambda: log_bf10_ttest(2.66, 40, 38),
    "welch": lambda: log_bf10_ttest(-2.1, 40, 38),
    "ttest_paired": lambda: log_bf10_ttest(3.0, 25),
    "ttest_one": lambda: log_bf10_ttest(-1.0, 25),
    "anova": lambda: log_bf10_anova(7.1, 1, 78, n_per_group=40),
    "correlation": lambda: log_bf10_pearson(-0.4, 50),
    "contingency": lambda: log_bf10_contingency([[121, 34], [43, 109]]),
    "binomial": lambda: log_bf10_binomial(30, 40),
    "proportion": lambda: log_bf10_binomial(5, 40, p0=0.3),
    "mannwhitney": lambda: log_bf10_mann_whitney(120, 20, 20),
    "wilcoxon": lambda: log_bf10_z(2.5, 90 / math.pi),
}
N_EFF = {"contingency": 307, "ttest_ind": 78, "welch": 78, "anova": 80, "mannwhitney": 40}
SIGN = {"welch": -1, "ttest_one": -1, "anova": -1, "correlation": -1, "proportion": -1, "mannwhitney": -1}


@pytest.mark.parametrize("kind", SIDES)
def test_a_copy_of_the_human_side_agrees_as_far_as_the_evidence_goes(kind):
    side = SIDES[kind]
    found = score_test(StudyTest(study="s", finding="F1", test="T1", kind=kind, human=side, agent=side))
    assert found.pas == pytest.approx(found.ceiling, abs=1e-15)
    assert found.pas_directional == pytest.approx(found.ceiling_directional, abs=1e-15)
    assert found.normalized == pytest.approx(1.0, abs=1e-9)
    assert (found.z_diff, found.ecs_test, found.same_direction, found.opposed) == (0.0, 1.0, True, False)
    assert found.human.sign == SIGN.get(kind, 1)
    assert found.human.n_eff == N_EFF.get(kind, side.n1)
    assert np.sign(found.human.d) == found.human.sign
    assert found.human.d_se > 0
    assert found.human.reasons == ()
    if kind in LOG_BF:
        assert found.human.log_bf == LOG_BF[kind]()


def test_f_without_a_sign_has_no_direction_and_f_of_three_groups_no_d():
    two = replace(SIDES["anova"], sign=None)
    found = score_test(StudyTest(study="s", finding="F1", test="T1", kind="anova", human=two, agent=two))
    assert found.pas == pytest.approx(found.ceiling)
    assert (math.isnan(found.pas_directional), math.isnan(found.human.d), found.same_direction) == (True, True, None)
    three = Side(statistic=4.5, df1=2, df2=57, sizes=(20, 20, 20))
    found = score_test(StudyTest(study="s", finding="F1", test="T1", kind="anova", human=three, agent=three))
    assert found.human.effect == pytest.approx(9 / 66)  # η²
    assert found.human.reasons == ("no effect on the scale of d: not in ECS",)
    assert found.method == "jzs"


def test_a_test_is_measured_with_what_both_sides_allow():
    sized, bare = Side(statistic=4.5, df1=2, df2=57, sizes=(20, 20, 20)), Side(statistic=4.5, df1=2, df2=57)
    found = score_test(StudyTest(study="s", finding="F1", test="T1", kind="anova", human=sized, agent=bare))
    assert found.method == "pearson"
    assert found.human.log_bf == found.agent.log_bf == log_bf10_anova(4.5, 2, 57, method="pearson")
    whole, tied = Side(statistic=120, n1=20, n2=20), Side(statistic=119.5, n1=20, n2=20)
    found = score_test(StudyTest(study="s", finding="F1", test="T1", kind="mannwhitney", human=whole, agent=tied))
    assert found.method == "asymptotic"
    assert found.human.log_bf == log_bf10_mann_whitney(120, 20, 20, method="asymptotic")


def test_findings_pool_tests_by_human_n_and_studies_average_findings():
    tests = [
        t_test("a", "F1", "T1", 3.0, 2.0, n=20),
        t_test("a", "F1", "T2", 0.5, 3.0, n=100, n_agent=20),
        t_test("a", "F2", "T1", 4.0, 4.0),
        t_test("b", "F1", "T1", 2.0, -1.0, domain="social"),
    ]
    found = score_tests(tests)
    pas = [score.pas for score in found.tests]
    assert [finding.id for finding in found.findings] == [("a", "", "F1"), ("a", "", "F2"), ("b", "", "F1")]
    assert found.findings[0].pas == pool_pas(pas[:2], [40, 200])
    assert found.studies[0].pas == pytest.approx((found.findings[0].pas + pas[2]) / 2)
    assert found.benchmark.pas == pytest.approx((found.studies[0].pas + pas[3]) / 2)
    assert [domain.name for domain in found.domains] == ["social"]
    assert found.domains[0].pas == pas[3]
    human, agent = ([getattr(score, side).d for score in found.tests] for side in ("human", "agent"))
    assert found.studies[0].ecs == weighted_ccc(human[:3], agent[:3])
    weighted = weighted_ccc(human, agent, [1 / 8, 1 / 8, 1 / 4, 1 / 2])
    assert found.benchmark.ecs == weighted
    assert (found.benchmark.tests_used, found.benchmark.tests_agreeing, found.benchmark.used) == (4, 3, 2)


def test_the_same_finding_id_in_two_parts_of_a_study_is_two_findings():
    tests = [t_test("a", "F1", "T1", 3.0, 3.0, sub_study="one"), t_test("a", "F1", "T1", 0.0, 3.0, sub_study="two")]
    found = score_tests(tests)
    assert [finding.id for finding in found.findings] == [("a", "one", "F1"), ("a", "two", "F1")]
    assert found.studies[0].pas == pytest.approx(sum(score.pas for score in found.tests) / 2)


def test_effect_sizes_alone_give_ecs_and_no_pas():
    tests = [
        StudyTest(
            study="a",
            finding=f"F{k}",
            test="T1",
            kind="ttest_ind",
            human=Side(d=0.2 * k, d_se=0.1),
            agent=Side(d=0.3 * k, d_se=0.1),
        )
        for k in range(4)
    ]
    found = score_tests(tests)
    assert math.isnan(found.benchmark.pas)
    assert found.benchmark.ecs.value == pytest.approx(weighted_ccc([0, 0.2, 0.4, 0.6], [0, 0.3, 0.6, 0.9]).value)
    assert found.tests[0].human.reasons == ("no test statistic: no Bayes factor, no PAS",)
    assert (found.benchmark.tests_used, found.benchmark.tests_planned, found.benchmark.tests_with_effects) == (0, 4, 4)


def test_what_is_missing_is_counted_and_never_a_half():
    tests = [
        t_test("a", "F1", "T1", 3.0, math.nan),
        t_test("a", "F2", "T1", 3.0, 3.0),
        t_test("b", "F1", "T1", math.nan, 1.0),
    ]
    found = score_tests(tests)
    assert math.isnan(found.findings[0].pas)
    assert found.studies[0].pas == found.tests[1].pas
    assert (found.studies[0].used, found.studies[0].planned) == (1, 2)
    assert math.isnan(found.studies[1].pas)
    assert found.benchmark.pas == found.tests[1].pas
    documented = score_tests(tests, fallbacks="documented")
    assert documented.findings[0].pas == 0.5
    assert documented.studies[1].pas == 0.5
    assert documented.studies[1].ecs.value == 0.0


def test_nothing_at_all_has_no_score():
    found = score_tests([])
    assert math.isnan(found.benchmark.pas)
    assert math.isnan(found.benchmark.ecs.value)
    assert score_tests([], fallbacks="documented").benchmark.pas == 0.5


def test_opposite_decisive_findings_are_named():
    tests = [t_test("a", "F1", "T1", 6.0, -6.0, n=60), t_test("a", "F2", "T1", 6.0, 6.0, n=60)]
    found = score_tests(tests)
    assert found.findings[0].pas > 0.99
    assert found.findings[0].pas_directional < 0.01
    assert found.opposed == (("a", "", "F1"),)
    assert (found.benchmark.tests_directed, found.benchmark.tests_agreeing) == (2, 1)


def test_a_number_outside_its_domain_costs_one_test_and_says_why():
    tests = [
        StudyTest(
            study="a",
            finding="F1",
            test="T1",
            kind="correlation",
            human=Side(statistic=1.4, n1=30),
            agent=Side(statistic=0.3, n1=30),
        ),
        t_test("a", "F2", "T1", 3.0, 3.0),
    ]
    found = score_tests(tests)
    assert found.tests[0].human.reasons[0] == "r: must be between −1 and 1, got 1.4"
    assert found.studies[0].pas == found.tests[1].pas


def test_both_conventions_are_named_and_differ():
    test = StudyTest(
        study="a", finding="F1", test="T1", kind="mannwhitney", human=SIDES["mannwhitney"], agent=SIDES["mannwhitney"]
    )
    published, standard = (score_tests([test], convention=one) for one in ("humanstudy", "standard"))
    assert (published.convention, standard.convention) == ("humanstudy", "standard")
    assert abs(published.tests[0].human.d) > abs(standard.tests[0].human.d)
