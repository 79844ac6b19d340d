"""`karat score`: a run again, and answers from elsewhere."""

from __future__ import annotations

import json
import shlex
from hashlib import sha256

import pytest
from tests.analysis.journals import resealed_file

from karat.journal import NO_PLAN, RunFolder
from karat.records import Answer, Failure
from karat.testing.models import serve


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
    resealed_file(here / run / "run.json", '"type": "overlap"', '"type": "os:system"')
    done = karat("score", run)
    assert done.code == 2
    assert "os:system" in done.err


FLAKY = """
from pathlib import Path
class Flaky:
    def score(self, sample, answer):
        if not Path("mended").exists():
            raise RuntimeError("not yet")
        return "2" in answer.text
"""


def test_a_scorer_in_code_is_named_by_the_command_that_is_printed(karat, experiment, here):
    (here / "sc.py").write_text(FLAKY, encoding="utf-8")
    scorers = ("--set", "judge=null", "--set", "scorers=[{type: 'sc:Flaky', name: flaky}, equals]")
    ran = karat("run", experiment.name, *scorers, "--set", "execution.max_failures=99")
    assert ran.code == 3
    run = next(path for path in (here / "results").iterdir())
    refused = karat("score", run.relative_to(here))
    assert refused.code == 2
    assert """--scorer '{type: "sc:Flaky", name: flaky}' --scorer '{type: equals, name: equals""" in refused.err
    command = shlex.split(refused.err.splitlines()[-1])
    assert command in [shlex.split(line, comments=True) for line in ran.err.splitlines() if "Flaky" in line]
    (here / "mended").touch()
    done = karat(*command[1:], "--json")
    assert done.code == 0, done.err
    summary = done.json["summary"]
    assert [metric["key"] for metric in summary["metrics"]] == ["flaky", "equals"]
    assert summary["total"]["ledger"]["scored"] == 8
    assert (run / "journal.jsonl").read_text(encoding="utf-8").count('"scorer":"equals"') == 8


def test_scoring_masks_the_secrets_of_the_run(karat, experiment, here, monkeypatch):
    monkeypatch.setenv("KARAT_TEST_TOKEN", "correct-horse-battery")
    settings = ("--set", "agent.env.TOKEN=${KARAT_TEST_TOKEN}")
    run = karat("run", experiment.name, *settings, "--json", "-q").json["run"]
    (here / "leak.py").write_text(
        "import os\nclass Leak:\n    def score(self, sample, answer):\n        return os.environ['KARAT_TEST_TOKEN']\n",
        encoding="utf-8",
    )
    done = karat("score", run, "--scorer", "{type: 'leak:Leak', name: leak}", "--events")
    assert "${KARAT_TEST_TOKEN}" in done.err
    assert "correct-horse" not in done.err + done.out + (here / run / "journal.jsonl").read_text(encoding="utf-8")


def test_a_stopped_run_stays_stopped_after_its_answers_were_scored(karat, experiment, here):
    (here / "adder.py").write_text("import sys\nsys.exit('out of paper')\n", encoding="utf-8")
    karat("run", experiment.name, "--set", "execution.retry.max_attempts=1")
    done = karat("score", "latest", "--scorer", "equals", "--json")
    assert done.json["summary"]["status"] == "max_failures"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param('"max_claims": ', '"max_clams": ', "no such key", id="options of a scorer"),
        pytest.param('"repetitions": 1', '"repetitions": -1', "repetitions is -1", id="fewer than none"),
        pytest.param('"repetitions": 1', f'"repetitions": {10**12}', "expected 1 to 100000", id="without end"),
        pytest.param('"value": 600.0', '"value": "soon"', "execution.timeout_seconds: must be a number", id="a limit"),
    ],
)
def test_a_run_folder_that_karat_did_not_write_is_a_bad_run(karat, run, here, old, new, said):
    path = here / run / "run.json"
    resealed_file(path, old, new)
    done = karat("score", run)
    assert done.code == 2, done.err
    assert said in done.err


def test_values_nested_without_end_are_a_bad_run(karat, run, here):
    deep = "[" * 20_000 + "]" * 20_000
    path = here / run / "run.json"
    good = path.read_text(encoding="utf-8")
    path.write_text(good.replace('"value": 600.0', f'"value": {deep}'), encoding="utf-8")
    assert karat("report", run).code == 2
    assert karat("report", "nothing").code == 2
    path.write_text(good, encoding="utf-8")
    with (here / run / "journal.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"event":"answer","trial":"x","more":' + deep + "}\n")
    assert karat("report", run).code == 2
    assert karat("score", run).code == 2


def test_an_answer_to_a_sample_that_is_gone_is_a_bad_run(karat, run, here):
    path = here / run / "samples.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    done = karat("score", run, "--scorer", "equals")
    assert done.code == 2
    assert "lacks 'q1'" in done.err


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
    assert info["source"] == {**NO_PLAN, "file": str(file), "sha256": sha256(file.read_bytes()).hexdigest()}


def test_answers_that_a_file_does_not_hold_are_missing_and_the_others_scored(karat, experiment, here):
    write(here, [{"id": "q1", "answer": "It is 2."}, {"id": "q1", "answer": "It is 3."}, {"id": "q3", "answer": "6"}])
    done = karat("score", "mine.jsonl", "--dataset", "questions.jsonl", "--json")
    summary = done.json["summary"]
    assert done.code == 3
    assert (summary["conditions"], summary["repetitions"]) == (["answers"], 2)
    assert summary["total"]["ledger"] == {
        "planned": 5, "scored": 3, "agent": 2, "infrastructure": 0, "judge": 0, "limit": 0, "not_run": 0,
    }  # fmt: skip


def test_rows_that_report_an_error_or_nothing_are_no_answers(karat, here):
    rows = [
        "question,reference,response,model,error",
        "Five?,5,5,a,",
        "Six?,6,6,a,none",
        "Five?,5,,b,timeout",
        "Six?,6,,b,",
    ]
    (here / "said.csv").write_text("\n".join(rows) + "\n")
    done = karat("score", "said.csv", "--scorer", "equals")
    assert done.code == 3
    run = RunFolder.open(next((here / "results").glob("said-*")))
    answered = {(answer.condition, answer.text) for answer in run.events_of(Answer)}
    assert answered == {("a", "5"), ("a", "6")}
    failed = {(failure.condition, failure.kind, failure.message) for failure in run.events_of(Failure)}
    assert failed == {("b", "error", "timeout"), ("b", "not_recorded", "'response' is empty in said.csv")}


def test_answers_to_unknown_samples_are_counted_and_named(karat, experiment, here):
    write(here, [{"id": f"q{n}", "answer": "4"} for n in (1, 2, 7, 8)] + [{"id": "q7", "answer": "5"}])
    told = "3 answers left out: the dataset has no sample called 'q7', 'q8'"
    done = karat("score", "mine.jsonl", "--dataset", "questions.jsonl")
    assert told in done.out
    assert told in done.err
    assert told in karat("score", "mine.jsonl", "--dataset", "questions.jsonl", "--json").json["summary"]["warnings"]


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


def test_a_model_named_on_the_command_line_judges_again(karat, run, here):
    """Its scores take the place of the older judge's; asking twice costs nothing."""
    said = {name: {"reasoning": "r", "score": 2} for name in ("factual_adherence", "completeness")}
    said["helpfulness_and_clarity"] = {"reasoning": "r", "score": 3}
    rules = [{"say": {"tool_calls": [{"name": "record_judgement", "arguments": said}]}}]
    with serve(rules) as server:
        judge = f"{{model: openai:rehearsal, base_url: '{server.openai_url}', temperature: 0.5}}"
        done = karat("score", run, "--judge", judge, "--json")
        assert done.code == 0, done.err
        assert "warning: judge.temperature: above 0 the judge scores one answer differently" in done.err
        assert karat("score", run, "--judge", judge, "--json").code == 0
        assert len(server.requests) == 8
    summary = done.json["summary"]
    assert [result["mean"]["value"] for result in summary["results"]] == [2, 2, 2, 2, 3, 3]
    assert summary["provenance"]["judge"] == "openai:rehearsal"
    assert summary["provenance"]["judges"]["judge"]["temperature"] == 0.5
    assert not summary["metrics"][0]["offline"]


@pytest.mark.parametrize("name", ["openai:gpt-4.1", "openai/gpt-4.1", "openai:rehearsal"])
def test_a_judge_that_is_named_alone_is_a_model_and_needs_its_key(karat, run, monkeypatch, name):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = karat("score", run, "--judge", name)
    assert done.code == 2
    assert "OPENAI_API_KEY" in done.err


def test_a_judge_that_is_a_class_is_looked_for_as_a_class(karat, run):
    done = karat("score", run, "--judge", "no_such_module:Strict")
    assert done.code == 2
    assert "module 'no_such_module' cannot be imported" in done.err


def test_a_row_with_an_error_is_not_answered_whatever_its_answer_says(tmp_path, karat):
    file = tmp_path / "asked.csv"
    rows = ["a?,1,1,", "b?,2,failed to answer,timed out after 120 s", "c?,3,4,"]
    file.write_text("\n".join(["question,expected_answer,answer,error", *rows]), encoding="utf-8")
    said = karat("score", str(file), "--scorer", "equals", "--results", str(tmp_path)).out
    assert "Trials scored: 2 of 3" in said
    assert "timed out after 120 s" in said


def test_an_error_that_is_a_distance_is_none(tmp_path, karat):
    file = tmp_path / "asked.csv"
    rows = ["a?,1.5,1.4,0.1", "b?,2,2,0.0", "c?,3,2.75,-0.25"]
    file.write_text("\n".join(["question,expected_answer,answer,error", *rows]), encoding="utf-8")
    assert "Trials scored: 3 of 3" in karat("score", str(file), "--scorer", "equals", "--results", str(tmp_path)).out


def test_rows_without_questions_are_called_by_their_ids(tmp_path, karat):
    file = tmp_path / "predictions.jsonl"
    rows = [
        {
            "id": f"{arm}{n}"[1:],
            "arm": arm,
            "pred": "spam" if n % 3 else "ham",
            "gold": "spam",
            "raw": f"I say it is {n}.",
        }
        for arm in "xy"
        for n in range(12)
    ]
    for without in ((), ("raw",)):
        lines = [json.dumps({key: value for key, value in row.items() if key not in without}) for row in rows]
        file.write_text("\n".join(lines), encoding="utf-8")
        named = ["--golden", "gold", "--answer", "pred"]
        said = karat("score", str(file), "--scorer", "equals", *named, "--results", str(tmp_path / "runs"))
        assert "there are no questions: each row is named by its 'id'" in said.err
        assert "Asked: 12 questions × 2 conditions" in said.out
        assert "--cluster pred" not in said.err  # the answers are no source of the questions


def test_a_list_of_one_text_is_that_text_on_both_sides(tmp_path, karat):
    file = tmp_path / "asked.csv"
    file.write_text("question,ground_truth,answer\nA?,['Bonn'],['Bonn']\nB?,['Rome'],Rome\n", encoding="utf-8")
    said = karat("score", str(file), "--scorer", "equals", "--results", str(tmp_path / "runs")).out
    assert "answers: equals 100.0 %" in said


@pytest.mark.needs_package("karat_imports")
def test_answers_inside_of_texts_are_scored_once_they_are_taken_apart(tmp_path, karat):
    file = tmp_path / "asked.jsonl"
    rows = [{"question": f"{n}?", "golden": f"{n}", "answer": str({"query": f"{n}?", "result": f"{n}"})} for n in "ab"]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    refused = karat("score", str(file), "--scorer", "equals")
    assert refused.code == 2
    assert "answer.result is inside of a cell. `karat import csv" in refused.err
    karat("import", "csv", str(file), "--out", str(tmp_path / "runs"))
    (run,) = (tmp_path / "runs").iterdir()
    assert "answers: equals 100.0 %" in karat("score", str(run), "--scorer", "equals").out
