"""From a run to the next: what a difference was made of, whether it would come out again, what a plan would show."""

from __future__ import annotations

import itertools
import math

import msgspec
import numpy as np
import pytest
from scipy import special

from karat.analysis import compare, summarize
from karat.analysis.planning import Pilot, comparison_of, pilot_of, plan
from karat.analysis.verdicts import probable_flips
from karat.errors import BadOption
from karat.stats import power_ttest, same_verdict


def drawn(rng, questions, repetitions, *, delta=0.0, between=0.5, within=0.7):
    """Scores of two conditions: planted variances between questions (of the differences) and of answers."""
    level, moved = rng.normal(3, 1, questions), rng.normal(delta, math.sqrt(between), questions)
    noise = rng.normal(0, math.sqrt(within), (2, questions, repetitions))
    first, second = level[:, None] + noise[0], (level + moved)[:, None] + noise[1]
    return {"base": first.tolist(), "other": second.tolist()}


def test_a_pilot_recovers_planted_components_of_variance(tmp_path, journals):
    summary = summarize(journals.table(tmp_path / "run", drawn(np.random.default_rng(4), 1500, 4)))
    difference, info = comparison_of(summary)
    pilot = pilot_of(summary, difference)
    assert (pilot.questions, pilot.repetitions, info.key) == (1500, 4, difference.metric)
    assert not pilot.reason
    assert pilot.between == pytest.approx(0.5, rel=0.15)
    assert [*pilot.within] == pytest.approx([0.7, 0.7], rel=0.08)
    # Law: on its own size the pilot gives the standard error of the run itself.
    assert pilot.se(1500, 4) == pytest.approx(difference.estimate.se, rel=1e-9)


def test_a_pilot_of_single_answers_says_what_is_not_known(tmp_path, journals):
    summary = summarize(journals.table(tmp_path / "run", drawn(np.random.default_rng(1), 40, 1)))
    pilot = pilot_of(summary, summary.differences[0])
    assert "answered once" in pilot.reason
    assert pilot.within == (0.0, 0.0)
    assert [design.repetitions for design in plan(pilot).designs] == [1, 1, 1, 1]  # nothing is promised of more
    again = summary.differences[0].again
    assert again.same_questions is None
    assert "answered once" in again.reason


def test_the_power_that_a_plan_promises_is_kept():
    rng = np.random.default_rng(20)
    pilot = Pilot(between=0.64, within=(0.5, 0.9))
    made = plan(pilot, delta=0.35, questions=[40], repetitions=[1, 3])
    for design in (*made.needed, *made.designs):
        n, k, runs = design.questions, design.repetitions, 4000
        moved = rng.normal(0.35, 0.8, (runs, n))
        noise = rng.normal(0, math.sqrt(0.5 / k), (runs, n)) - rng.normal(0, math.sqrt(0.9 / k), (runs, n))
        differences = moved + noise
        t = differences.mean(axis=1) / (differences.std(axis=1, ddof=1) / math.sqrt(n))
        shown = float((np.abs(t) > special.stdtrit(n - 1, 0.975)).mean())
        assert shown == pytest.approx(design.power, abs=0.03)
    assert all(design.power >= 0.8 for design in made.needed)
    assert all(power_ttest(0.35 / pilot.se(1, d.repetitions), d.questions - 1).value < 0.8 for d in made.needed)


def test_more_of_anything_shows_smaller_differences():
    pilot = Pilot(between=0.5, within=(0.4, 0.4), cost_answer=0.01, cost_score=0.002, seconds=3.0)
    made = plan(pilot, delta=0.3, questions=[20, 50, 100], repetitions=[1, 2, 4])
    size = {(design.questions, design.repetitions): design for design in made.designs}
    for n, k in itertools.product([20, 50], [1, 2]):
        assert size[n, k].detectable > size[2 * n if n == 50 else 50, k].detectable
        assert size[n, k].detectable > size[n, 2 * k].detectable
        assert size[n, k].power < size[n, 2 * k].power
    assert size[50, 2].cost == pytest.approx(2 * 50 * 2 * 0.012)
    assert size[50, 2].seconds == pytest.approx(600)
    (cheapest,) = (design for design in made.needed if design.cheapest)
    assert cheapest.cost == min(design.cost for design in made.needed)


def test_the_verdicts_of_a_run_say_whether_they_would_come_out_again(tmp_path, journals):
    scores = drawn(np.random.default_rng(7), 60, 3, delta=0.4)
    summary = summarize(journals.table(tmp_path / "run", scores))
    (difference,) = summary.differences
    again = difference.again
    pilot = pilot_of(summary, difference)
    chance = same_verdict(
        difference.estimate.value, difference.estimate.se, 59, agent_variance=sum(pilot.within) / 180, level=0.95
    )
    assert again.shown == (difference.p_adjusted < 0.05)
    assert (again.new_questions, again.same_questions) == (chance.new_questions, chance.same_questions)
    assert probable_flips(summary.differences) == (pytest.approx(1 - again.new_questions), 1)


def test_what_would_settle_a_verdict_is_enough(tmp_path, journals):
    scores = drawn(np.random.default_rng(12), 30, 2, delta=0.3, between=0.1, within=1.6)
    summary = summarize(journals.table(tmp_path / "run", scores))
    difference = summary.differences[0]
    pilot, again = pilot_of(summary, difference), difference.again
    assert not again.shown
    steps = {step.what: step.more for step in again.settle}
    size = abs(difference.estimate.value)
    # The noncentral t, which the approximation stands in for: right to one question, and to one repetition.
    assert power_ttest(size / pilot.se(1, 2), 30 + steps["question"] + 1).value >= 0.8
    assert power_ttest(size / pilot.se(1, 2), 30 + steps["question"] - 2).value < 0.8
    assert power_ttest(size / pilot.se(1, 2 + steps["repetition"] + 1), 30).value >= 0.8
    assert power_ttest(size / pilot.se(1, 2 + steps["repetition"] - 2), 30).value < 0.8


def test_two_runs_say_it_as_one_run_with_two_conditions_does(tmp_path, journals):
    scores = drawn(np.random.default_rng(3), 25, 3, delta=0.5)
    together = summarize(journals.table(tmp_path / "both", scores)).differences[0].again
    first = journals.table(tmp_path / "one", {"base": scores["base"]}, run="11111111")
    second = journals.table(tmp_path / "two", {"base": scores["other"]}, run="22222222")
    apart = compare(first, second).pairings[0].difference.again
    assert apart.new_questions == pytest.approx(together.new_questions, rel=1e-9)
    assert apart.same_questions == pytest.approx(together.same_questions, rel=1e-9)
    assert apart.settle == together.settle


def test_a_comparison_without_values_is_refused_by_name(tmp_path, journals):
    summary = summarize(journals.table(tmp_path / "run", {"base": [[1], [2]], "other": [[None], [None]]}))
    assert summary.differences[0].again is None
    with pytest.raises(BadOption, match="has a question scored under both"):
        comparison_of(summary)
    with pytest.raises(BadOption, match="no metric 'qualty'"):
        comparison_of(summary, metric="qualty")
    with pytest.raises(BadOption, match="no condition 'basis'"):
        comparison_of(summary, pair=("basis", "other"))


def test_a_question_that_counts_without_an_answer_counts_as_one_answer(tmp_path, journals):
    """As a conversation whose first turn failed: its turns are wrong, though none was answered."""
    scores = {"base": [[1, 2], [3, 3], [2, 4]], "other": [[2, 2], [4, 5], [3, 3]]}
    summary = summarize(journals.table(tmp_path / "run", scores))
    table = summary.table_of_samples
    first = msgspec.structs.replace(table.columns[0], n=[0, 2, 2], sd=[None, *table.columns[0].sd[1:]])
    table = msgspec.structs.replace(table, columns=(first, *table.columns[1:]))
    pilot = pilot_of(msgspec.structs.replace(summary, table_of_samples=table), summary.differences[0])
    assert pilot.questions == 3
    assert pilot.between >= 0
    assert pilot.within[0] == pytest.approx(1.0)  # of the two questions that have two answers: variances 0 and 2


def test_a_plan_says_how_often_a_gate_would_be_undecided():
    made = plan(Pilot(between=1.0), questions=[50, 100, 200])
    # Simulated: 60, 37 and 12 in 100 gates at a true margin of 0.2 standard deviations.
    assert [design.undecided for design in made.designs] == pytest.approx([0.60, 0.37, 0.12], abs=0.015)
