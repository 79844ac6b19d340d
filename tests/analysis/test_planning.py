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
from karat.records import Reply
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


def test_the_comparison_is_the_first_with_a_value_that_is_asked_for(tmp_path, journals):
    scores = {"a": [[1], [2], [3]], "b": [[None], [None], [None]], "c": [[2], [4], [5]]}
    summary = summarize(journals.table(tmp_path / "run", scores), pairs="all")
    first, info = comparison_of(summary)
    assert ((first.a, first.b), info.key) == (("a", "c"), "completeness")
    assert comparison_of(summary, metric="completeness", pair=("c", "a"))[0] == first
    with pytest.raises(BadOption, match=r"no comparison of a and b on completeness in run .* has a question scored"):
        comparison_of(summary, metric="completeness", pair=("a", "b"))
    with pytest.raises(BadOption, match="no comparison of a and b in run"):
        comparison_of(summary, pair=("a", "b"))
    with pytest.raises(BadOption, match="these two conditions were not compared on that metric"):
        comparison_of(summary, pair=("a", "a"))
    alone = summarize(journals.table(tmp_path / "alone", {"a": [[1], [2]]}))
    with pytest.raises(BadOption, match="compares nothing: it has one condition, or no scores"):
        comparison_of(alone)


def test_a_pilot_has_the_prices_and_the_longest_median_of_its_sides(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3, repetitions=2)
    for row in range(3):
        for repetition in range(2):
            for at, name in enumerate(script.conditions):
                reply = Reply(text="x", dollars=0.5)
                script.answer(row, name, repetition, reply=reply, seconds=2.0 + at)
                script.score(row, name, repetition, value=1 + (row + at + repetition) % 4, dollars=0.25, offline=False)
    summary = summarize(script.end())
    pilot = pilot_of(summary, summary.differences[0])
    assert (pilot.cost_answer, pilot.cost_score, pilot.scores, pilot.seconds) == (0.5, 0.25, 1, 3.0)
    assert (pilot.questions, pilot.repetitions, pilot.unit) == (3, 2, "question")
    assert pilot.cost(10, 3) == 2 * 10 * 3 * 0.75


def test_a_pilot_without_a_price_has_no_cost(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3)
    for row in range(3):
        for at, name in enumerate(script.conditions):
            script.answer(row, name, reply=Reply(text="x", dollars=None if row == 1 else 0.5))
            script.score(row, name, value=1 + (row * at) % 4)
    summary = summarize(script.end())
    pilot = pilot_of(summary, summary.differences[0])
    assert (pilot.cost_answer, pilot.cost(10, 3)) == (None, None)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ({"a": [[1]], "b": [[2]]}, "fewer than two questions were answered under both"),
        ({"a": [[1], [2]], "b": [[2], [3]]}, "every question has the same difference"),
        (
            {"a": [[1], [2]], "b": [[2], [1]]},
            "each question was answered once: what repetitions would change is not known",
        ),
        ({"a": [[1, 2], [2, 2]], "b": [[2, 2], [1, 4]]}, None),
    ],
)
def test_a_pilot_says_what_the_run_does_not_show(tmp_path, journals, scores, reason):
    summary = summarize(journals.table(tmp_path / "run", scores))
    pilot = pilot_of(summary, summary.differences[0])
    assert pilot.reason == reason


def test_where_questions_come_in_clusters_a_plan_counts_clusters(tmp_path, journals):
    samples = [msgspec.structs.replace(journals.sample(row), cluster=f"document {row // 2}") for row in range(12)]
    scores = {name: [[1 + (row * step) % 5] for row in range(12)] for name, step in (("a", 2), ("b", 3))}
    summary = summarize(journals.table(tmp_path / "run", scores, samples=samples))
    pilot = pilot_of(summary, summary.differences[0])
    assert (pilot.questions, pilot.unit) == (6, "cluster")
    assert pilot.reason == "sizes count clusters of questions, each with as many as in this run"


def test_sizes_and_repetitions_are_those_of_the_pilot_unless_given():
    known = Pilot(between=1.0, within=(1.0, 1.0), questions=40, repetitions=3)
    made = plan(known)
    assert sorted({design.questions for design in made.designs}) == [20, 40, 80, 160]
    assert sorted({design.repetitions for design in made.designs}) == [1, 2, 3, 5, 8]
    assert sorted({design.questions for design in plan(Pilot(between=1.0)).designs}) == [25, 50, 100, 200]
    assert sorted({design.questions for design in plan(Pilot(between=1.0, questions=2)).designs}) == [2, 4, 8]
    assert len(plan(Pilot(between=1.0, questions=2)).designs) == 3
    beyond = plan(Pilot(between=1.0, questions=2), largest=1.5)  # no mean differs by more than the scale is long
    assert [design.detectable is None for design in beyond.designs] == [True, True, False]
    constant = Pilot(between=1.0, questions=40, repetitions=3)
    assert {design.repetitions for design in plan(constant).designs} == {1}
    unknown = Pilot(between=1.0, questions=40, repetitions=3, reason="answered once")
    assert {design.repetitions for design in plan(unknown).designs} == {3}
    given = plan(known, questions=[9, 5, 9], repetitions=[2])
    assert [(design.questions, design.repetitions) for design in given.designs] == [(5, 2), (9, 2)]
