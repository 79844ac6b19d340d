"""Answers and judgments of MT-bench: each turn is a sample, and what a judge could not say is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means, summary

from karat.errors import BadDataset
from karat.records import Answer, Failure, Score
from karat_imports.imported import format_of

FOLDER = FILES / "mt-bench"


def test_each_turn_is_a_sample_with_the_scores_of_its_judge(tmp_path: Path) -> None:
    made = imported("mt-bench", tmp_path, FOLDER)
    assert [(one.id, one.turns[0].question, one.turns[0].golden) for one in made.run.samples()] == [
        ("81 turn 1", "Write a line about tea.", None), ("81 turn 2", "Now in capitals.", None),
        ("101 turn 1", "What is 6 times 7?", "42"), ("101 turn 2", "And minus 2?", "40"),
    ]  # fmt: skip
    assert means(made) == {
        ("large", "score"): (pytest.approx(29 / 3), 3), ("small", "score"): (8.0, 3),
        ("large", "win"): (0.75, 1), ("small", "win"): (0.25, 1),
    }  # fmt: skip
    first = next(one for one in made.run.events_of(Score) if one.values == {"score": 6.0})
    assert (first.judge, first.reasons) == ("gpt-made", {"score": "Rating: [[6]]"})
    assert {one.repetition for one in made.run.events_of(Answer)} == {0, 1}
    assert summary(made).metrics[0].high == 10


def test_an_answer_that_the_api_did_not_give_is_a_failure(tmp_path: Path) -> None:
    (failure,) = [one for one in imported("mt-bench", tmp_path, FOLDER).run.events_of(Failure) if one.stage == "agent"]
    assert (failure.sample, failure.condition, failure.cls) == ("101 turn 2", "small", "infrastructure")


def test_what_is_not_used_is_counted(tmp_path: Path) -> None:
    made = imported("mt-bench", tmp_path, FOLDER)
    assert findings(made) == {("left out", "judgments of answers that are not in the files"): 1}
    alone = imported("mt-bench", tmp_path / "alone", FOLDER / "small.jsonl")
    assert alone.findings.notes[0] == "questions are named by their ids: pass question.jsonl, too"
    assert "import with --cluster question_id" in alone.findings.notes[1]
    assert next(alone.run.samples()).turns[0].question == "question 81, turn 1"


def test_the_files_are_recognized_and_others_refused(tmp_path: Path) -> None:
    assert {format_of(path) for path in FOLDER.glob("*.jsonl")} == {"mt_bench"}
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"question_id": 1}) + "\n")
    with pytest.raises(BadDataset, match="no questions, answers or judgments"):
        imported("mt-bench", tmp_path / "runs", other)
