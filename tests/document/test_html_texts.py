"""The texts that a page quotes of a run: of the lowest questions, and what was claimed without proof."""

from __future__ import annotations

import pytest

from karat.analysis import summarize
from karat.document.failing import Claim, Claims
from karat.document.html_texts import experiment_file, read_texts
from karat.records import Metric, Reply


@pytest.mark.parametrize(("direction", "kept"), [("higher", "Answer 0 baseline 1."), ("lower", "Answer 0 baseline 2.")])
def test_the_worst_answer_to_a_low_question_is_quoted(tmp_path, journals, direction, kept):
    metric = Metric(name="m", low=1, high=5, direction=direction)
    run = journals.table(tmp_path / "run", {"baseline": [[3, 1, 5, 2]]}, metric=metric)
    texts, left_out = read_texts(run, summarize(run))
    assert texts.answers == {("0", "baseline"): (kept,)}
    assert texts.golden == {"0": ("Golden answer 0.",)}
    assert texts.questions == {"0": ("Question 0?",)}
    assert left_out == []


def test_an_answer_with_a_score_is_quoted_rather_than_one_without(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, repetitions=2, conditions=("baseline",))
    script.answer(0, "baseline", 0)
    script.answer(0, "baseline", 1, reply=Reply(text="I would say 3.", answer="3"))
    script.score(0, "baseline", 1, value=3)
    run = script.end()
    texts, _ = read_texts(run, summarize(run))
    assert texts.answers == {("0", "baseline"): ("3",)}


def test_only_the_lowest_questions_are_quoted(tmp_path, journals):
    run = journals.table(tmp_path / "run", {"baseline": [[5 - at / 10] for at in range(12)]})
    summary = summarize(run)
    texts, _ = read_texts(run, summary)
    assert set(texts.questions) == {low.sample for low in summary.lowest}
    assert 0 < len(texts.questions) < 12


def test_claims_are_counted_and_the_first_sixty_listed(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=2)
    for row in range(2):
        script.answer(row, "baseline")
        script.score(row, "baseline", value=3, claims=[f"Claim {at}" for at in range(40)] + ["x" * 1_001, "Claim 0"])
        script.scored(row, "with-docs", value=5)
    run = script.end()
    texts, _ = read_texts(run, summarize(run))
    assert texts.claims == {"baseline": Claims(total=84, answers=2), "with-docs": Claims(total=0, answers=0)}
    assert texts.different == 82
    first = [f"Claim {at}" for at in range(40)] + ["x" * 1_000]
    told = [("0", text) for text in first] + [("1", text) for text in first[:19]]
    assert texts.claimed == [Claim(condition="baseline", sample=sample, text=text) for sample, text in told]


def test_the_experiment_file_is_none_where_it_is_missing_or_empty(tmp_path, journals):
    run = journals.table(tmp_path / "run", {"baseline": [[3]]})
    path = run.path / "experiment.yaml"
    path.unlink(missing_ok=True)
    assert experiment_file(run) is None
    path.write_text("")
    assert experiment_file(run) is None
    path.write_text("name: ü\n", encoding="utf-8")
    assert experiment_file(run) == "name: ü\n"
