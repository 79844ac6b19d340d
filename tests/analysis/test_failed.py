"""Questions that an agent failed, for people to look at."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.analysis.journals import Script, sample, table
from tests.analysis.test_verdicts import info

from karat.analysis import summarize
from karat.analysis.failed import failed_questions, threshold_of
from karat.errors import BadOption
from karat.records import NOT_ASKED, Metric, Reply


def failed(run, enough=4.0, *, metric=True):
    summary = summarize(run)
    return failed_questions(run, summary, summary.metrics[0] if metric else None, enough)


def test_a_question_stands_once_with_the_worst_answer_to_it(tmp_path):
    scores = {
        "plain": [[5, 5], [2, 4], [None, 5], [4, 4]],
        "docs": [[5, 4], [1, 3], [5, 5], [5, 5]],
    }
    run = table(tmp_path / "run", scores)
    found = failed(run)
    assert (found.trials, found.scored, found.passed, found.left_out) == (4, 3, 12, {})
    low, broken = found.questions
    assert low.row("1234abcd", summarize(run).metrics[0]) == {
        "question": "Question 1?",
        "answer": "Golden answer 1.",
        "agent_answer": "Answer 1 docs 0.",
        "metric": "completeness",
        "score": 1.0,
        "reason": None,
        "failure": None,
        "failed_trials": 3,
        "origin": {"run": "1234abcd", "sample": "1", "condition": "docs", "repetition": 0},
    }
    assert (broken.sample, broken.condition, broken.repetition, broken.trials) == ("2", "plain", 0, 1)
    assert (broken.answer, broken.score, broken.failure) == (None, None, "agent: it fell over")
    assert broken.row("r", None)["metric"] is None


def test_the_least_of_a_cost_is_the_best(tmp_path):
    steps = Metric(name="steps", direction="lower")
    found = failed(table(tmp_path / "run", {"plain": [[1, 4], [9, 6]]}, metric=steps))
    assert (found.passed, found.scored) == (2, 2)
    assert [(one.sample, one.score) for one in found.questions] == [("1", 9.0)]


def test_a_mean_that_misses_by_rounding_is_enough(tmp_path):
    found = failed(table(tmp_path / "run", {"plain": [[0.3 - 1e-12], [0.3 - 1e-6]]}, metric=Metric(name="m")), 0.3)
    assert (found.passed, found.scored) == (1, 1)


def test_an_answer_with_a_score_is_worse_than_none(tmp_path):
    """An answer shows more than its absence, whatever came first."""
    found = failed(table(tmp_path / "run", {"plain": [[None, 3], [2, None]]}))
    assert [(one.score, one.trials) for one in found.questions] == [(3.0, 2), (2.0, 2)]


def test_what_says_nothing_of_the_agent_is_counted_only(tmp_path):
    script = Script(tmp_path / "run", samples=7, conditions=("plain",))
    for row, cls in enumerate(("infrastructure", "limit", "agent", "infrastructure")):
        script.failure(row, "plain", cls=cls)
    for row in (4, 5):
        script.answer(row, "plain")
    run = script.stop()
    found = failed(run)
    assert [one.failure for one in found.questions] == ["limit: it fell over", "agent: it fell over"]
    assert (found.trials, found.scored, found.passed) == (2, 0, 0)
    assert found.left_out == {"infrastructure": 2, "no score": 2, "not run": 1}
    assert failed(run, metric=False) == found


def test_the_judges_reason_stands_beside_the_score_and_an_absent_answer_is_none(tmp_path):
    script = Script(tmp_path / "run", samples=[sample(0), sample(1)], conditions=("plain",))
    script.answer(0, "plain", reply=Reply(text="Perhaps."))
    script.score(0, "plain", value=2, reasons={"completeness": "Says nothing.", "tone": "Friendly."})
    script.answer(1, "plain", reply=NOT_ASKED)
    script.score(1, "plain", value=1)
    said, silent = failed(script.end()).questions
    assert (said.answer, said.score, said.reason) == ("Perhaps.", 2.0, "Says nothing.")
    assert (silent.answer, silent.score, silent.reason) == (None, 1.0, None)


def test_the_score_that_is_enough_is_given_or_that_of_a_reliable_answer():
    assert threshold_of(structs.replace(info(), threshold=1.0), None) == 1.0
    assert threshold_of(structs.replace(info(), threshold=1.0), 0.0) == 0.0
    with pytest.raises(BadOption, match=r"say which score of quality \(a whole number from 1 to 5\) is enough"):
        threshold_of(info(), None)
    with pytest.raises(BadOption, match="neither direction of quality is better: name another"):
        threshold_of(info(direction="none"), 3.0)


@pytest.mark.needs_kind("conversation")
def test_a_question_of_a_conversation_is_no_row(tmp_path):
    run = table(tmp_path / "run", {"plain": [[1.0]]}, kind="conversation")
    with pytest.raises(BadOption, match="a question of a conversation dataset is not a row with one answer"):
        failed(run)
