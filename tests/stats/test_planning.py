"""Plans: printed formulas, slow twins, the laws of asking more, and a simulation of what was promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats import (
    best_split,
    difference_variances,
    minimum_detectable_effect,
    optimal_repetitions,
    paired_difference,
    planned_se,
    power_ttest,
    questions_needed,
    repetitions_needed,
    spearman_brown,
    variance_components,
)

variances = st.floats(0.01, 2.0)
deltas = st.floats(0.05, 1.0)
times = st.integers(1, 10)


@pytest.mark.parametrize(
    ("within", "needed"),
    [(0.0, 969), (1 / 6, 3_876)],  # statistics_reference.md §1.5: no noise, and variance 1/6 under each condition
)
def test_three_points_need_about_a_thousand_questions_and_four_times_that_with_noise(within, needed):
    assert questions_needed(0.03, 1 / 9, within, method="z").n == needed


@given(delta=deltas, between=variances, within=variances, k=times)
def test_the_least_detectable_effect_turns_the_number_of_questions_round(delta, between, within, k):
    for method in ("t", "z"):
        needed = questions_needed(delta, between, within, k, method=method)
        if needed.n <= 2:
            continue
        at, below = (
            minimum_detectable_effect(n, between, within, k, method=method).value for n in (needed.n, needed.n - 1)
        )
        assert at <= delta * (1 + 1e-9) < below * (1 + 2e-9)


@pytest.mark.slow
@given(delta=deltas, between=variances, within=variances, k=times)
def test_asking_more_never_needs_more(delta, between, within, k):
    def value(delta=delta, within=within, k=k, **test):
        return questions_needed(delta, between, within, k, **test).value

    assert value(k=k + 1) <= value()
    assert value(delta=delta * 1.1) <= value()
    assert value(within=within * 1.1) >= value()
    assert value(power=0.9) >= value()
    assert value() >= value(method="z")  # the normal formula is short of questions


@given(between=variances, a=variances, b=variances, k_a=times, k_b=times)
def test_one_number_stands_for_both_conditions(between, a, b, k_a, k_b):
    pair = questions_needed(0.1, between, (a, b), (k_a, k_b), method="z").value
    other = questions_needed(0.1, between, (b, a), (k_b, k_a), method="z").value
    assert pair == pytest.approx(other)
    alone = questions_needed(0.1, between, a, k_a, method="z").value
    assert alone == pytest.approx(questions_needed(0.1, between, (a, a), (k_a, k_a), method="z").value)


@given(delta=deltas, questions=st.integers(5, 2000), between=variances, within=variances)
def test_so_many_repetitions_are_just_enough(delta, questions, between, within):
    found = repetitions_needed(delta, questions, between, within)
    if found.n is None:
        assert "at best" in found.reason
        assert minimum_detectable_effect(questions, between, 0.0).value >= delta * (1 - 1e-9)
        return
    assert minimum_detectable_effect(questions, between, within, found.n).value <= delta * (1 + 1e-6)
    if found.n > 1:
        assert minimum_detectable_effect(questions, between, within, found.n - 1).value >= delta * (1 - 1e-6)


def scores(rng, n, k, gap, between, within):
    """Two conditions over n questions, k answers each; the difference varies over questions."""
    level = rng.normal(3, 1, n)
    shift = gap + math.sqrt(between) * rng.normal(size=n)
    a, b = (rng.normal(mean[:, None], math.sqrt(within), (n, k)) for mean in (level, level + shift))
    return a.ravel(), b.ravel(), np.repeat(np.arange(n), k)


def test_an_experiment_of_this_size_finds_the_difference_as_often_as_promised():
    rng, runs = np.random.default_rng(11), 2_000
    plan = questions_needed(0.35, 0.25, 0.5, 3)
    shown = 0
    for _ in range(runs):
        a, b, at = scores(rng, plan.n, 3, 0.35, 0.25, 0.5)
        shown += paired_difference(a, b, at).p < 0.05
    assert shown / runs == pytest.approx(plan.power, abs=3 * math.sqrt(0.16 / runs))


def test_a_pilot_tells_the_variances_that_it_was_made_with():
    rng = np.random.default_rng(3)
    found = [difference_variances(*scores(rng, 30, 3, 0.2, 0.25, 0.5)) for _ in range(300)]
    assert np.mean([one.raw_between for one in found]) == pytest.approx(0.25, abs=0.03)
    assert np.mean([one.within for one in found]) == pytest.approx(0.5, abs=0.02)
    a, b, at = scores(rng, 30, 3, 0.2, 0.25, 0.5)
    one = difference_variances(a, b, at)
    assert one.within == pytest.approx([variance_components(side, at).within.value for side in (a, b)])
    assert one.total == pytest.approx(paired_difference(a, b, at).se ** 2 * 30)


def test_a_pilot_uses_only_what_both_answered():
    nan = math.nan
    found = difference_variances([1, 2, 5, nan], [2, 2, 4, 9], ["a", "a", "b", "c"], clusters_b=["a", "a", "b", "d"])
    assert (found.n, found.within[0]) == (2, pytest.approx(0.5))
    once = difference_variances([1, 2, 4], [2, 2, 2], ["a", "b", "c"])
    assert (once.total, once.reason) == (pytest.approx(7 / 3), "no question was answered twice under each condition")
    assert math.isnan(once.between)
    assert "two questions" in difference_variances([1], [2], ["a"]).reason
    noisy = difference_variances([1, 5, 5, 1], [5, 1, 1, 5], ["a", "a", "b", "b"])
    assert (noisy.between, noisy.raw_between < 0) == (0.0, True)
    assert "taken as 0" in noisy.reason


def by_hand(budget, agent, judge, question, spread, conditions, most):
    between, within, noise = spread
    best = (math.inf, 0.0)
    for k in range(1, 130):
        for j in range(1, 51 if noise else 2):
            each = question + conditions * k * (agent + j * judge)
            n = min(math.floor(budget / each + 1e-9), most)
            if n >= 2:
                best = min(best, ((between + conditions * (within + noise / j) / k) / n, n * each))
    return best


@given(
    budget=st.integers(5, 60),
    agent=st.sampled_from([0.25, 0.5, 1.0]),
    judge=st.sampled_from([0.0, 0.25]),
    question=st.sampled_from([0.0, 2.0, 8.0]),
    spread=st.tuples(variances, variances, st.sampled_from([0.0, 0.3, 1.0])),
    conditions=st.sampled_from([1, 2]),
    most=st.sampled_from([4, 10_000]),
)
def test_the_split_is_the_best_of_all(budget, agent, judge, question, spread, conditions, most):
    found = best_split(
        budget, agent, judge, var_between=spread[0], var_within=spread[1], var_judge=spread[2],
        cost_question=question, conditions=conditions, max_questions=most,
    )  # fmt: skip
    variance, _ = by_hand(budget, agent, judge, question, spread, conditions, most)
    if math.isinf(variance):
        assert found.questions == 0
        assert "not enough" in found.reason
        return
    assert found.se == pytest.approx(math.sqrt(variance))
    assert found.cost <= budget * (1 + 1e-8)
    each = question + conditions * found.repetitions * (agent + found.judge_repeats * judge)
    assert found.cost == pytest.approx(found.questions * each)


def test_repetitions_pay_only_where_questions_cost_or_run_out():
    parts = {"var_between": 0.25, "var_within": 0.5}
    free = best_split(60, 0.02, 0.01, **parts)
    assert (free.questions, free.repetitions) == (1000, 1)
    capped = best_split(60, 0.02, 0.01, **parts, max_questions=100)
    assert (capped.questions, capped.repetitions) == (100, 10)
    many = best_split(20_000, 0.02, 0.01, **parts, cost_question=5.0)
    ideal = optimal_repetitions(0.25, 2 * 0.5, cost_question=5.0, cost_run=2 * 0.03)
    assert many.repetitions == pytest.approx(ideal, abs=1)
    with pytest.raises(ValueError, match="max_questions"):
        best_split(60, 0.0, 0.0, **parts)


def test_the_ideal_number_of_repetitions_has_its_ends():
    assert optimal_repetitions(0.3, 0.2, cost_question=0, cost_run=1) == 1
    assert optimal_repetitions(5.0, 0.2, cost_question=2, cost_run=1) == 1
    assert optimal_repetitions(0.0, 0.2, cost_question=2, cost_run=1) == math.inf
    assert optimal_repetitions(0.1, 0.0, cost_question=2, cost_run=1) == 1


@given(reliability=st.floats(0, 1), j=times, k=times)
def test_reliability_grows_as_if_answers_were_added(reliability, j, k):
    assert spearman_brown(reliability, 1) == pytest.approx(reliability)
    assert spearman_brown(spearman_brown(reliability, j), k) == pytest.approx(spearman_brown(reliability, j * k))


@given(between=variances, within=variances, k=times)
def test_the_planned_error_is_that_of_spearman_and_brown(between, within, k):
    icc = between / (between + within)
    assert planned_se(10, between, within, k) ** 2 * 10 == pytest.approx(between / spearman_brown(icc, k))


def test_nothing_that_varies_needs_two_questions():
    found = questions_needed(0.1, 0.0)
    assert (found.n, found.power, found.method) == (2, 1.0, questions_needed(0.1, 0.1).method)
    assert repetitions_needed(0.1, 10, 0.0, 0.0).power == 1.0
    assert "nothing varies" in found.reason
    assert "too few" in minimum_detectable_effect(1, 0.2).reason
    assert "too few" in minimum_detectable_effect(1, 0.2, method="z").reason


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: questions_needed(0, 0.1), "delta"),
        (lambda: questions_needed(math.nan, 0.1), "delta"),
        (lambda: questions_needed(0.1, -0.1), "var_between"),
        (lambda: questions_needed(0.1, 0.1, math.nan), "var_within"),
        (lambda: questions_needed(0.1, 0.1, 0.1, 0), "repetitions"),
        (lambda: questions_needed(0.1, 0.1, (0.1, 0.2, 0.3)), "one number, or one for each"),
        (lambda: questions_needed(0.1, 0.1, method="normal"), "method"),
        (lambda: questions_needed(0.1, 0.1, power=1), "power"),
        (lambda: questions_needed(0.1, 0.1, power=0.05, method="z"), "power: must be above alpha"),
        (lambda: minimum_detectable_effect(10, 0.1, power=0.04, method="z"), "power: must be above alpha"),
        (lambda: repetitions_needed(-1, 10, 0.1, 0.1), "delta"),
        (lambda: optimal_repetitions(0.1, 0.1, cost_question=1, cost_run=0), "cost_run"),
        (lambda: best_split(-1, 1, var_between=0.1, var_within=0.1), "budget"),
        (lambda: best_split(1, 1, var_between=0.1, var_within=0.1, conditions=3), "conditions"),
        (lambda: planned_se(0, 0.1), "at least 1"),
        (lambda: spearman_brown(0.5, 0), "k: "),
        (lambda: spearman_brown(1.5, 2), "reliability"),
        (lambda: difference_variances([1], [1, 2], ["a"]), "as many as"),
    ],
)
def test_what_makes_no_sense_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_the_power_is_that_of_the_whole_number():
    z = questions_needed(0.2, 0.25, method="z")
    shift, bar = 0.2 * math.sqrt(z.n / 0.25), 1.959963984540054
    both = math.erfc((bar - shift) / math.sqrt(2)) / 2 + math.erfc((bar + shift) / math.sqrt(2)) / 2
    assert z.power == pytest.approx(both)
    assert 0.8 < z.power < 0.81
    assert minimum_detectable_effect(200, 0.25, method="z").power == pytest.approx(0.8, abs=1e-5)
    often = repetitions_needed(0.2, 100, 0.2, 0.5)
    assert often.power == power_ttest(0.2 / math.sqrt(0.2 + 2 * 0.5 / often.n), 100).power
    assert often.power > 0.8


@pytest.mark.parametrize("repetitions", [np.int64(3), np.float32(3), (np.int64(3), 3)])
def test_numbers_may_be_numpys(repetitions):
    assert questions_needed(0.1, 0.2, np.float64(0.5), repetitions) == questions_needed(0.1, 0.2, 0.5, 3)


@pytest.mark.parametrize("spread", [1e-6, 1e-12, 1e-20, 1e-200])
def test_a_pilot_without_noise_needs_two_questions(spread):
    assert questions_needed(0.1, spread).n == 2


def test_infinities_of_a_pilot_are_left_out_as_gaps_are():
    a, b, clusters = [3, 4, 2, 2, 5, 4], [4, 4, 2, 3, 4, 4], [*"ppqqrr"]
    known = difference_variances(a, b, clusters)
    assert difference_variances([*a, math.inf], [*b, 1], [*clusters, "s"]) == known
    assert difference_variances([*a, None], [*b, 1], [*clusters, "s"]) == known


def test_a_split_at_the_end_of_what_is_tried_says_so():
    spread = {"var_between": 1e-9, "var_within": 1.0}
    assert best_split(1e6, 0.01, **spread, max_questions=10).reason == "no more than 1000 repetitions were tried"
    both = best_split(1e6, 0.01, **spread, var_judge=1.0, max_questions=10)
    assert both.reason == "no more than 1000 repetitions and 50 judge repeats were tried"
    assert best_split(100, 1, **spread, max_questions=1).reason == "max_questions is 1: an error needs two questions"
    free = best_split(0, 0, 0, **spread, max_questions=10)
    assert (free.questions, free.repetitions, free.cost) == (10, 1_000, 0.0)
