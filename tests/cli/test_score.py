"""`karat score`: a run again, and answers from elsewhere."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest


@pytest.fixture
def run(karat, experiment):
    """A finished run, without its agent: whoever asked it would be noticed."""
    done = karat("run", experiment.name, "--json", "-q")
    (experiment.parent / "adder.py").unlink()
    return done.json["run"]


def test_another_scorer_is_added_without_asking_the_agent(karat, run):
    done = karat("score", run, "--scorer", "equals", "--scorer", "{regex: {name: digits, pattern: '[0-9]'}}", "--json")
    assert done.code == 0
    summary = done.json["summary"]
    assert {metric["scorer"] for metric in summary["metrics"]} == {"judge", "equals", "digits"}
    assert summary["total"]["ledger"]["scored"] == 8


def test_scoring_twice_with_the_same_scorer_adds_nothing(karat, run, here):
    journal = here / run / "journal.jsonl"
    karat("score", run)
    scores = journal.read_text(encoding="utf-8").count('{"event":"score"')
    karat("score", run)
    assert journal.read_text(encoding="utf-8").count('{"event":"score"') == scores == 8


def test_an_older_scoring_can_be_shown(karat, run):
    first = karat("report", run, "--json").json["provenance"]["scorers"]["judge"]
    karat("score", run, "--judge", "{type: overlap, max_claims: 1}")
    newest = karat("report", run, "--json").json["provenance"]["scorers"]["judge"]
    shown = karat("report", run, "--json", "--scoring", f"judge={first[:6]}").json["provenance"]["scorers"]["judge"]
    assert newest != first
    assert shown == first
    refused = karat("report", run, "--scoring", "judge=zz")
    assert refused.code == 2
    assert newest in refused.err


def test_a_scorer_is_checked_as_in_the_file(karat, run):
    done = karat("score", run, "--judge", "{type: overlap, max_claim: 1}")
    assert done.code == 2
    assert "did you mean 'max_claims'?" in done.err


def test_a_run_never_names_the_code_that_scores_it(karat, run, here):
    path = here / run / "run.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"type": "overlap"', '"type": "os:system"'), encoding="utf-8"
    )
    done = karat("score", run)
    assert done.code == 2
    assert "os:system" in done.err


def test_what_is_for_files_is_refused_for_a_run(karat, run):
    done = karat("score", run, "--dataset", "questions.jsonl")
    assert done.code == 2
    assert "--dataset" in done.err


def write(here, rows):
    path = here / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_answers_from_elsewhere_become_a_run(karat, experiment, here):
    rows = [
        {"id": f"q{n}", "answer": f"It is {2 * n}.", "condition": name} for n in range(1, 5) for name in ("old", "new")
    ]
    file = write(here, rows)
    done = karat("score", file.name, "--dataset", "questions.jsonl", "--json")
    assert done.code == 0
    summary = done.json["summary"]
    assert (summary["name"], summary["conditions"], summary["samples"]) == ("mine", ["old", "new"], 4)
    assert summary["total"]["ledger"]["scored"] == 8
    info = json.loads((here / done.json["run"] / "run.json").read_text(encoding="utf-8"))
    assert info["agent_type"] == "replay"
    assert info["source"] == {"file": str(file), "sha256": sha256(file.read_bytes()).hexdigest()}


def test_answers_that_a_file_does_not_hold_are_missing_and_the_others_scored(karat, experiment, here):
    write(here, [{"id": "q1", "answer": "It is 2."}, {"id": "q1", "answer": "It is 3."}, {"id": "q3", "answer": "6"}])
    done = karat("score", "mine.jsonl", "--dataset", "questions.jsonl", "--json")
    summary = done.json["summary"]
    assert done.code == 3
    assert (summary["conditions"], summary["repetitions"]) == (["answers"], 2)
    assert summary["total"]["ledger"] == {
        "planned": 8, "scored": 3, "agent": 5, "infrastructure": 0, "judge": 0, "limit": 0, "not_run": 0,
    }  # fmt: skip


def test_columns_may_be_called_otherwise(karat, here):
    (here / "asked.jsonl").write_text('{"key": "a", "prompt": "?", "answer": "yes"}\n', encoding="utf-8")
    (here / "said.csv").write_text("key,output\na,yes\n", encoding="utf-8")
    names = ("agent.id_key=key", "agent.answer_key=output", "dataset.question_key=prompt")
    settings = [word for name in names for word in ("--set", name)]
    done = karat("score", "said.csv", "--dataset", "asked.jsonl", "--scorer", "equals", *settings, "--json")
    assert done.code == 0
    assert done.json["summary"]["results"][0]["mean"]["value"] == 1.0


def test_a_column_that_is_missing_is_named(karat, experiment, here):
    write(here, [{"id": "q1", "text": "2"}])
    done = karat("score", "mine.jsonl", "--dataset", "questions.jsonl")
    assert done.code == 2
    assert "line 1: has no 'answer' (set answer_key to one of: id, text)" in done.err
