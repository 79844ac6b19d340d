"""People's scores of drawn answers: which are drawn, and what they say of the judge and of the run."""

from __future__ import annotations

import csv
import io
from collections import Counter

import numpy as np
import pytest
from msgspec import structs
from tests.analysis.journals import JUDGE, SCALE, Script, sample
from tests.analysis.labelled import JUDGED, drawn, judged, label

from karat.analysis import summarize
from karat.analysis.calibration import calibrated, draw_answers, metrics_for_people, with_corrected
from karat.analysis.gate import gate
from karat.analysis.label_sheet import write_sheet
from karat.analysis.thresholds import Threshold
from karat.errors import BadOption
from karat.journal.calibration import add_calibration
from karat.records import Metric, Reply, Turn
from karat.stats import (
    cohen_kappa,
    corrected_bounds,
    gwet_ac,
    krippendorff_alpha,
    stratified_difference,
    stratified_mean,
)


def lower_by_one(at: int, judge: float) -> float:
    return max(1.0, judge - 1)


def by_trial(run):
    return {answer.trial: answer for answer in run.events() if hasattr(answer, "replies")}


def test_a_draw_takes_of_each_score_under_each_condition_its_part(tmp_path):
    scores = {name: rows * 5 for name, rows in JUDGED.items()}
    run, summary, draw = drawn(tmp_path / "run", scores, size=41)
    judge, answers = judged(run), by_trial(run)
    for part in draw.strata:
        given = [judge[trial] for trial in part.trials]
        assert (part.low, part.high) == (min(given), max(given))
        assert part.low == part.high or len(part.trials) < 40
        assert {answers[trial].condition for trial in part.trials} == {part.condition}
    assert sorted(trial for part in draw.strata for trial in part.trials) == sorted(answers)
    assert len(draw.drawn) == len(set(draw.drawn)) == 41
    for part in draw.strata:
        taken = len({*part.trials} & {*draw.drawn})
        assert abs(taken - 41 * len(part.trials) / 240) < 1
    assert (draw.metric, draw.seed) == ("completeness", 0)
    assert len(draw.id) == 6
    assert not set(draw.id) - set("bcdfghjklmnpqrstvwxz")
    metric = summary.metrics[0]
    again, other = (draw_answers(run, summary, 41, metric=metric, seed=seed) for seed in (0, 1))
    assert (again.id, again.drawn) == (draw.id, draw.drawn)
    assert other.id != draw.id
    assert other.drawn != draw.drawn


def test_only_single_answers_that_have_a_score_are_drawn(tmp_path):
    talk = sample(2)
    talk = type(talk)(id="2", position=2, digest=talk.digest, turns=(Turn(question="A?"), Turn(question="B?")))
    script = Script(tmp_path / "run", samples=[sample(0), sample(1), talk, sample(3)], conditions=("plain",))
    for row in (0, 2):
        script.scored(row, "plain", value=3.0)
    script.answer(1, "plain")
    script.failure(3, "plain")
    run = script.end()
    summary = summarize(run)
    assert draw_answers(run, summary, 9, metric=summary.metrics[0], seed=0).drawn == (script.trial(0, "plain", 0),)
    none = Script(tmp_path / "none", conditions=("plain",))
    none.answer(0, "plain")
    empty = none.end()
    with pytest.raises(BadOption, match="no answer of run 1234abcd to a single question has a score on 'completeness'"):
        draw_answers(empty, summarize(empty), 9, metric=summary.metrics[0], seed=0)


def test_people_score_the_metrics_that_are_named_or_those_of_the_first_scorer(tmp_path):
    two = type(JUDGE)(name="other", type="overlap", scoring="1a" * 16, metrics=(Metric(name="length"),))
    both = type(JUDGE)(
        name="judge", type="overlap", scoring="0f" * 16, metrics=(SCALE, Metric(name="tone", low=1, high=5))
    )
    script = Script(tmp_path / "run", conditions=("plain",), scorers=(both, two))
    script.answer(0, "plain")
    script.score(0, "plain", values={"completeness": 3, "tone": 4}, scorer=both)
    script.score(0, "plain", value=7, scorer=two)
    summary = summarize(script.end())
    assert [info.key for info in metrics_for_people(summary, ())] == ["completeness", "tone"]
    assert [info.key for info in metrics_for_people(summary, ["length", "tone", "length"])] == ["length", "tone"]
    unscored = Script(tmp_path / "none", conditions=("plain",), scorers=())
    unscored.answer(0, "plain")
    with pytest.raises(BadOption, match="run 1234abcd has no scores: score it first"):
        metrics_for_people(summarize(unscored.end()), ())


def test_the_sheet_has_the_texts_and_neither_condition_nor_score(tmp_path):
    run, summary, draw = drawn(tmp_path / "run", size=5)
    rows = [*csv.reader(io.StringIO(write_sheet(run, summary, draw, summary.metrics).removeprefix("\ufeff")))]
    answers = by_trial(run)
    expected = []
    for at, trial in enumerate(draw.drawn, start=1):
        answer = answers[trial]
        texts = (f"Question {answer.sample}?", f"Golden answer {answer.sample}.", answer.replies[0].text)
        expected.append([f"{draw.id}-{at}", *texts, ""])
    assert rows == [["id", "question", "golden answer", "answer", "completeness"], *expected]


def test_an_answer_that_no_cell_holds_is_cut_and_says_so(tmp_path):
    script = Script(tmp_path / "run", samples=2, conditions=("plain",))
    for row, length in enumerate((32_000, 32_001)):
        script.answer(row, "plain", reply=Reply(text="x" * length))
        script.score(row, "plain", value=3)
    run = script.end()
    summary = summarize(run)
    draw = draw_answers(run, summary, 2, metric=summary.metrics[0], seed=0)
    rows = [*csv.DictReader(io.StringIO(write_sheet(run, summary, draw, ()).removeprefix("\ufeff")))]
    cut = " [… cut here; `karat view` shows all]"
    assert {row["answer"] for row in rows} == {"x" * 32_000, "x" * 32_000 + cut}


def test_where_every_answer_is_labelled_the_corrected_numbers_are_those_of_the_labels(tmp_path):
    """The judge gives one more than people wherever it can; nothing is left to chance but the questions."""
    run, summary, draw = drawn(tmp_path / "run")
    label(run, draw, "ann", lower_by_one)
    report = calibrated(run, summary, target="answers")
    plain, docs = (float(np.mean(JUDGED[name])) for name in ("plain", "docs"))
    assert [(row.condition, row.against, row.labelled, row.answers) for row in report.corrected] == [
        ("plain", None, 24, 24),
        ("docs", None, 24, 24),
        ("docs", "plain", 48, 48),
    ]
    assert [row.judge for row in report.corrected] == pytest.approx([plain, docs, docs - plain])
    assert [row.people.value for row in report.corrected] == pytest.approx([plain - 1, docs - 1, docs - plain])
    assert [row.bias.value for row in report.corrected] == pytest.approx([1, 1, 0])
    assert [row.people.se for row in report.corrected] == pytest.approx([0, 0, 0], abs=1e-12)
    assert (report.draw, report.strata_by, report.by, report.target) == (draw.id, "completeness", ("ann",), "answers")
    assert (report.drawn, report.labelled, report.answers, report.strata) == (48, 48, 48, len(draw.strata))
    assert report.notes == ()
    [agreement] = report.agreement
    assert (agreement.labelled, agreement.questions, agreement.exact) == (48, 12, 0.0)
    table = np.array(agreement.confusion)
    given = Counter(value for rows in JUDGED.values() for row in rows for value in row)
    assert {(people + 1, judge + 1): table[people, judge] for people, judge in np.argwhere(table)} == {
        (value - 1, value): times for value, times in given.items()
    }
    assert agreement.people_alpha is None


def test_a_judge_that_people_confirm_keeps_its_means(tmp_path):
    # one stratum a condition, and a draw without any of the low scores of "plain"
    scores = {"plain": [[5]] * 8 + [[1]] * 2, "docs": [[5]] * 10}
    run, summary, draw = drawn(tmp_path / "run", scores, size=8)
    label(run, draw, "ann", lambda at, judge: judge)
    assert {judged(run)[trial] for trial in draw.drawn} == {5.0}
    plain, docs, pair = calibrated(run, summary).corrected
    assert (plain.people.value, docs.people.value, pair.people.value) == pytest.approx((4.2, 5.0, 0.8))
    assert plain.people.low < 4.0 < plain.people.high


def test_a_corrected_mean_stays_on_the_scale(tmp_path):
    # people give every drawn answer the best score: among them an unusual share of the judge's low ones
    scores = {"plain": [[5]] * 8 + [[1]] * 2, "docs": [[5]] * 10}
    run, summary, draw = drawn(tmp_path / "run", scores, size=8, seed=1)
    assert 1.0 in {judged(run)[trial] for trial in draw.drawn}
    label(run, draw, "ann", lambda at, judge: 5.0)
    assert calibrated(run, summary).corrected[0].people.value == 5.0


def test_corrected_numbers_are_those_of_the_statistics(tmp_path):
    run, summary, draw = drawn(tmp_path / "run", size=24)
    label(run, draw, "ann", lambda at, judge: judge - (at % 3 == 0))
    people = {}
    given = judged(run)
    of = {trial: at for at, part in enumerate(draw.strata) for trial in part.trials}
    for at, trial in enumerate(draw.drawn):
        people[trial] = given[trial] - (at % 3 == 0)
    answers = by_trial(run)
    columns = [
        (people.get(trial), of[trial], answers[trial].sample, answers[trial].condition, given[trial])
        for trial in answers
    ]
    values, strata, samples, groups, scores = (list(column) for column in zip(*columns, strict=True))
    report = calibrated(run, summary)
    pair = stratified_difference(values, strata, samples, groups=groups, a="plain", b="docs", judge=scores)
    mine = [at for at, name in enumerate(groups) if name == "docs"]
    *drawn_from, judged_as = ([column[at] for at in mine] for column in (values, strata, samples, scores))
    alone = stratified_mean(*drawn_from, judge=judged_as)
    for row, found in zip(report.corrected[1:], (alone, pair), strict=True):
        assert row.people.value == pytest.approx(found.value)
        assert row.people.se == pytest.approx(found.se)
        assert row.df == pytest.approx(found.df)
    assert report.target == "questions"
    assert report.notes == ()
    assert (report.labelled, report.drawn, report.answers) == (24, 24, 48)
    judge = [given[trial] for trial in answers if trial in people]
    labels = [people[trial] for trial in answers if trial in people]
    names = [answers[trial].sample for trial in answers if trial in people]
    [agreement] = report.agreement
    assert agreement.exact == pytest.approx(2 / 3)
    steps = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert agreement.kappa.value == pytest.approx(cohen_kappa(judge, labels, names, categories=steps).value)
    assert agreement.ac2.value == pytest.approx(gwet_ac(judge, labels, clusters=names, categories=steps).value)
    alpha = krippendorff_alpha(judge, labels, clusters=names, level="ordinal")
    assert agreement.alpha.value == pytest.approx(alpha.value)


def test_where_people_and_judge_are_farthest_apart_stands_first(tmp_path):
    run, summary, draw = drawn(tmp_path / "run")
    label(run, draw, "ann", lambda at, judge: {0: 1.0, 1: 5.0}.get(at, judge + (at == 7 and judge < 5)))
    found = calibrated(run, summary).disagreements
    gaps = [abs(case.judge - case.people) for case in found]
    assert gaps == sorted(gaps, reverse=True)
    assert 0 not in gaps
    answers = by_trial(run)
    for case in found:
        answer = answers[draw.drawn[int(case.row.removeprefix(f"{draw.id}-")) - 1]]
        assert (case.sample, case.condition, case.repetition) == (answer.sample, answer.condition, answer.repetition)
        assert case.question == f"Question {answer.sample}?"
        assert case.metric == "completeness"
    other, summary, draw = drawn(tmp_path / "other")
    label(other, draw, "ann", lambda at, judge: 1.0)
    assert len(calibrated(other, summary).disagreements) == 10


def test_several_people_count_as_their_mean_and_are_compared_with_each_other(tmp_path):
    run, summary, draw = drawn(tmp_path / "run")
    label(run, draw, "bob", lambda at, judge: judge if at else None)
    label(run, draw, "ann", lambda at, judge: judge if at == 0 else max(1.0, judge - 2))
    report = calibrated(run, summary, target="answers")
    assert report.by == ("ann", "bob")
    means = report.corrected[:2]
    lost: list[float] = [min(2, value - 1) / 2 for name in ("plain", "docs") for row in JUDGED[name] for value in row]
    biases = [row.bias.value * row.answers for row in means]
    assert sum(biases) == pytest.approx(sum(lost), abs=1.01)
    assert report.agreement[0].people_alpha.value is not None
    assert report.agreement[0].people_alpha.value < 1


def test_what_is_not_in_the_corrected_numbers_is_said(tmp_path):
    scores = {"plain": [[3], [4], [3], [4], [None], [2]], "docs": [[5], [4], [5], [4], [5], [None]]}
    run, summary, draw = drawn(tmp_path / "run", scores, size=8)
    label(run, draw, "ann", lambda at, judge: judge if at > 1 else None)
    label(run, draw, "ann", lambda at, judge: 1.0, metric="tone")
    notes = calibrated(run, summary).notes
    assert notes == (
        "labels on tone are left out: the run shows no such metric",
        "docs − plain: 2 questions scored under one of the two only, and counted",
    )
    other, summary, draw = drawn(tmp_path / "other", scores, size=8)
    label(other, draw, "ann", lambda at, judge: judge if at > 1 else None)
    assert calibrated(other, summary).notes[0] == (
        "2 drawn answers without a label: taken as left out at random within their stratum"
    )


def test_answers_that_were_scored_after_the_draw_are_counted_besides(tmp_path):
    script = Script(tmp_path / "run", samples=6, conditions=("plain",))
    for row in range(6):
        script.answer(row, "plain")
    for row in range(4):
        script.score(row, "plain", value=3 + row % 2)
    before = script.end()
    draw = draw_answers(before, summarize(before), 4, metric=summarize(before).metrics[0], seed=0)
    later = Script(tmp_path / "later", samples=6, conditions=("plain",))
    for row in range(6):
        later.answer(row, "plain")
        later.score(row, "plain", value=3 + row % 2)
    run = later.end()
    add_calibration(run, [draw])
    label(run, draw, "ann", lambda at, judge: judge)
    report = calibrated(run, summarize(run))
    assert report.notes == ("2 answers scored after the draw: not in the corrected numbers",)
    assert report.answers == 4


def test_the_newest_draw_with_labels_counts_unless_one_is_named(tmp_path):
    run, summary, first = drawn(tmp_path / "run", size=8)
    second, third = (draw_answers(run, summary, 9, metric=summary.metrics[0], seed=seed) for seed in (1, 2))
    add_calibration(run, [second, third])
    with pytest.raises(BadOption, match="run 1234abcd has no labels of drawn answers: draw some with"):
        calibrated(run, summary)
    for draw in (first, second):
        label(run, draw, "ann", lambda at, judge: judge)
    assert calibrated(run, summary).draw == second.id
    assert calibrated(run, summary, draw=first.id).draw == first.id
    with pytest.raises(BadOption, match="has no labels of drawn answers"):
        calibrated(run, summary, draw=third.id)
    with pytest.raises(BadOption, match=f"run 1234abcd has no draw 'x{first.id}'"):
        calibrated(run, summary, draw=f"x{first.id}")


def test_labels_for_a_narrower_interval_are_more_or_cannot_be(tmp_path):
    run, summary, draw = drawn(tmp_path / "run", size=24)
    label(run, draw, "ann", lambda at, judge: judge - (at % 2))
    assert {row.labels_needed for row in calibrated(run, summary).corrected} == {None}
    for target, width in (("questions", 0.5), ("answers", 0.2)):
        for row in calibrated(run, summary, half_width=width, target=target).corrected:
            now = (row.people.high - row.people.low) / 2
            assert ((row.labels_needed or row.answers) > row.labelled) == (now > width)
            assert row.labels_needed is not None or target == "questions"
    assert {row.labels_needed for row in calibrated(run, summary, half_width=0.001).corrected} == {None}
    assert calibrated(run, summary, half_width=0.3).half_width == 0.3
    every, summary, draw = drawn(tmp_path / "every")
    label(every, draw, "ann", lower_by_one)
    for width, needed in ((5.0, [24, 24, 48]), (0.001, [None] * 3)):  # no further label would change anything
        rows = calibrated(every, summary, half_width=width).corrected
        assert [row.labels_needed for row in rows] == needed


def test_a_stratum_with_one_label_has_no_interval_and_says_what_to_do(tmp_path):
    run, summary, draw = drawn(tmp_path / "run")
    label(run, draw, "ann", lambda at, judge: judge - at % 2 if at < 1 else None)
    reasons = {row.people.reason for row in calibrated(run, summary).corrected}
    assert reasons == {"a stratum has fewer than two labels: label more rows of the sheet"}


def test_the_verdict_is_that_of_the_people(tmp_path):
    """The judge likes the answers with docs, people all alike or those without."""
    run, summary, draw = drawn(tmp_path / "run")
    assert summary.headline.startswith("docs beats plain on completeness")
    label(run, draw, "ann", lambda at, judge: 3.0 + at % 2)
    told = with_corrected(run, summary)
    assert told.headline == "no difference shown between docs and plain on completeness, as people would score"
    [pair] = told.differences
    assert (pair.winner, pair.reason, pair.again) == (None, "verdict as people would score", None)
    assert told.calibrated == calibrated(run, summary)
    trials = by_trial(run)
    order = [trials[trial].condition for trial in draw.drawn]
    label(run, draw, "ann", lambda at, judge: 2.0 if order[at] == "docs" else 4.0 + at % 2)
    told = with_corrected(run, summary)
    assert told.headline == "plain is better on completeness, as people would score"
    assert told.differences[0].winner == "plain"


def test_a_metric_without_steps_is_compared_by_alpha_alone(tmp_path):
    seconds = Metric(name="seconds", low=0)
    rows = {"plain": [[2.5], [3.25], [4.0], [2.75]], "docs": [[5.5], [4.5], [6.25], [7.0]]}
    run, summary, draw = drawn(tmp_path / "run", rows, size=8, metric=seconds)
    judge = {}
    for answer in by_trial(run).values():
        judge[answer.trial] = rows[answer.condition][int(answer.sample)][0]
    given = {at: judge[trial] for at, trial in enumerate(draw.drawn)}
    label(run, draw, "ann", lambda at, _: given[at], metric="seconds")
    [agreement] = calibrated(run, summary).agreement
    assert (agreement.exact, agreement.confusion, agreement.steps) == (None, (), ())
    assert agreement.alpha.value == pytest.approx(1)
    assert (agreement.kappa.value, agreement.kappa.reason) == (None, "the metric has no steps")
    assert (agreement.ac2.reason, agreement.ac2.n) == ("the metric has no steps", 0)


def test_a_gate_decides_on_what_people_would_give(tmp_path):
    """The judge gives two more than people: what it passes fails by theirs."""
    run, summary, draw = drawn(tmp_path / "run", size=40)
    label(run, draw, "ann", lambda at, judge: max(1.0, judge - 2 - (at % 5 == 0)))
    told = with_corrected(run, summary)
    high, low = (Threshold(name="docs.completeness", bound="min", value=value) for value in (3.2, 1.2))
    (before,) = gate(summary, [high]).checks
    (after,) = gate(told, [high]).checks
    assert (before.verdict, after.verdict) == ("passed", "failed")
    (mean,) = [row for row in told.calibrated.corrected if (row.condition, row.against) == ("docs", None)]
    assert after.value == mean.people.value
    bounds = corrected_bounds(mean.people.value, mean.people.se, mean.df, labels=mean.labelled, scale=(1, 5))
    assert (after.low, after.high) == (pytest.approx(bounds.low), pytest.approx(bounds.high))
    assert after.needed is None
    assert gate(told, [low]).checks[0].verdict == "passed"
    middle = Threshold(name="docs.completeness", bound="min", value=mean.people.value)
    (unsure,) = gate(told, [middle]).checks
    assert (unsure.verdict, unsure.reason) == ("undecided", "more labels, or more questions, would decide it")


def test_what_people_did_not_score_is_decided_by_the_judge_and_says_so(tmp_path):
    run, summary, draw = drawn(tmp_path / "run")
    label(run, draw, "ann", lower_by_one)
    told = with_corrected(run, summary)
    without = tuple(row for row in told.calibrated.corrected if row.condition != "plain")
    told = structs.replace(told, calibrated=structs.replace(told.calibrated, corrected=without))
    checks = gate(told, [Threshold(name="completeness", bound="min", value=2.0)]).checks
    said = {check.condition: (check.verdict, check.corrected is False, check.reason) for check in checks}
    assert said["plain"] == ("passed", True, "not corrected: people did not score it")
    assert said["docs"][:2] == ("passed", False)
