"""`karat label --failed`: questions whose answers failed become rows of a dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.journals import Script, sample, table

from karat.kinds.golden import Golden
from karat.records import Metric

ENOUGH = ("label", "results/run", "--failed", "--enough", "4")


@pytest.fixture
def judged(here: Path):
    """4 questions × 2 conditions × 2 repetitions: two questions have answers that failed."""
    rows = {
        "plain": [[5.0, 5.0], [2.0, 4.0], [None, 5.0], [4.0, 4.0]],
        "docs": [[5.0, 4.0], [1.0, 5.0], [5.0, 5.0], [5.0, 5.0]],
    }
    return table(here / "results" / "run", rows)


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_question_is_a_row_with_its_worst_answer_and_where_it_comes_from(karat, judged):
    done = karat(*ENOUGH)
    run = judged.info.run
    assert rows_of(done.out) == [
        {
            "question": "Question 1?", "answer": "Golden answer 1.", "agent_answer": "Answer 1 docs 0.",
            "metric": "completeness", "score": 1.0, "reason": None, "failure": None, "failed_trials": 2,
            "origin": {"run": run, "sample": "1", "condition": "docs", "repetition": 0},
        },
        {
            "question": "Question 2?", "answer": "Golden answer 2.", "agent_answer": None,
            "metric": "completeness", "score": None, "reason": None, "failure": "agent: it fell over",
            "failed_trials": 1,
            "origin": {"run": run, "sample": "2", "condition": "plain", "repetition": 0},
        },
    ]  # fmt: skip
    assert "3 of 16 trials failed: 2 with completeness worse than 4, 1 without an answer" in done.err
    assert "2 questions written" in done.err


def test_a_question_that_is_there_is_named_and_not_written_twice(karat, judged, here):
    (here / "q.jsonl").write_text('{"question": "question  1?", "answer": "Mine."}', encoding="utf-8")
    first = karat(*ENOUGH, "--to", "q.jsonl")
    assert "1 question written to q.jsonl" in first.err
    assert "not written again: 1 (q.jsonl, 0)" in first.err
    text = (here / "q.jsonl").read_text(encoding="utf-8")
    assert [row["answer"] for row in rows_of(text)] == ["Mine.", "Golden answer 2."]
    again = karat(*ENOUGH, "--to", "q.jsonl", "--json").json
    assert (again["written"], again["known"]) == (0, {"1": "q.jsonl, 0", "2": "q.jsonl, 1"})
    assert (here / "q.jsonl").read_text(encoding="utf-8") == text
    (here / "all.csv").write_text("question,answer\nQuestion 2?,Yes.\n")
    other = karat(*ENOUGH, "--to", "new.jsonl", "--dataset", "all.csv")
    assert "not written again: 2 (all.csv, 0)" in other.err
    assert len(Golden(Golden.Options()).load(here / "new.jsonl").samples) == 1


@pytest.mark.needs_package("karat_imports")
def test_an_imported_trace_has_an_empty_golden_answer_that_a_dataset_must_have(karat, here):
    (here / "r.csv").write_text("question,output,ok\nWhy \x9bnow?,Because.,no\nHow?,So.,yes\n", encoding="utf-8")
    mapped = ("--map", "answer=output", "--map", "score.ok=ok")
    assert karat("import", "csv", "r.csv", *mapped, "--out", "runs").code == 0
    done = karat("label", "runs", "--failed", "--to", "q.jsonl")
    assert done.code == 0
    (row,) = rows_of((here / "q.jsonl").read_text(encoding="utf-8"))
    assert (row["answer"], row["agent_answer"], row["score"]) == ("", "Because.", 0.0)
    assert "\x9b" not in (here / "q.jsonl").read_text(encoding="utf-8")
    assert "1 of 2 trials failed: 1 with ok worse than 1, 0 without an answer" in done.err


def test_failures_that_are_not_the_agents_are_counted_only(karat, here):
    script = Script(here / "results" / "run", samples=3, conditions=("plain",))
    script.failure(0, "plain", cls="infrastructure")
    script.failure(1, "plain", cls="limit")
    script.answer(2, "plain")
    script.end()
    done = karat("label", "results/run", "--failed", "--json").json
    assert (done["failed"], done["written"], done["left_out"]) == (1, 1, {"infrastructure": 1, "no score": 1})


def test_a_share_fails_below_1_and_a_cost_above_what_is_enough(karat, here):
    table(here / "share", {"plain": [[1.0], [0.0]]}, metric=Metric(name="ok", kind="share"))
    done = karat("label", "share", "--failed", "--json").json
    assert (done["failed"], done["passed"], done["enough"]) == (1, 1, 1.0)
    table(here / "cost", {"plain": [[1.0], [9.0]]}, metric=Metric(name="steps", direction="lower"))
    done = karat("label", "cost", "--failed", "--enough", "4", "--json").json
    assert (done["failed"], done["passed"]) == (1, 1)
    assert "--enough: say which score of steps (a number)" in karat("label", "cost", "--failed").err


def test_the_same_question_under_two_ids_is_one_row(karat, here):
    same = [sample(0), sample(0, name="again", digest="f" * 32)]
    table(here / "results" / "run", {"plain": [[1.0], [2.0]]}, samples=same)
    done = karat(*ENOUGH)
    assert [row["origin"]["sample"] for row in rows_of(done.out)] == ["0"]
    assert "not written again: again (the question of 0)" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--metric", "complete"), "did you mean 'completeness'"),
        (("--enough", "4", "--to", "q.csv"), "--to: q.csv: expected a file of JSON Lines"),
        (("--enough", "4", "--dataset", "no.jsonl"), "no.jsonl"),
    ],
)
def test_what_cannot_be_is_said(karat, judged, words, said):
    done = karat("label", "results/run", "--failed", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_json_has_every_key_also_where_nothing_is_scored(karat, judged, here):
    told = karat(*ENOUGH, "--to", "new/q.jsonl", "--json").json
    assert told == {
        "format": told["format"], "run": judged.info.run, "metric": "completeness", "enough": 4.0, "failed": 3,
        "passed": 13, "left_out": {}, "written": 2, "known": {}, "to": "new/q.jsonl",
    }  # fmt: skip
    script = Script(here / "results" / "bare", samples=1, conditions=("plain",), scorers=())
    script.failure(0, "plain")
    script.end()
    bare = karat("label", "bare", "--failed", "--json").json
    assert (bare["metric"], bare["enough"], bare["failed"]) == (None, None, 1)
    said = karat("label", "bare", "--failed")
    assert "1 of 1 trial failed: 1 without an answer" in said.err
    assert "Fill in `answer` where it is empty, then use the rows as a dataset." in said.err
    (here / "file").write_text("")
    refused = karat(*ENOUGH, "--to", "file/q.jsonl")
    assert (refused.code, "--to: " in refused.err) == (2, True)
