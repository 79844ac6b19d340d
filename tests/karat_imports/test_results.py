"""Results of other tools become run folders that hold what the files say, and nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import karat
from karat.errors import BadDataset, BadOption, BadRun
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    bounded,
)
from karat.journal import Codec, End, Resume, RunFolder, ScorerInfo, verify
from karat.records import Answer, Failure, Metric, Reply, Sample, Score, ToolCall, Usage
from karat_imports.imported import Imported, _write, import_results

TABLE = """\
id,question,expected,output,model,run,correct,quality,cost,topic
q1,What is 1+1?,2,2,alpha,0,yes,4,0.01,math
q1,What is 1+1?,2,3,alpha,1,no,1,0.01,math
q2,Capital of France?,Paris,Paris,alpha,0,true,5,0.02,geo
q1,What is 1+1?,2,2,beta,0,1,5,0.01,math
q2,Capital of France?,Paris,Lyon,beta,0,0,,0.02,geo
q3,Colour of the sky?,blue,,beta,0,,,0.02,nature
q1,What is 1+1?,2,2,alpha,0,yes,4,0.5,math
"""
MAP = {
    "golden": "expected", "answer": "output", "repetition": "run", "score.correct": "correct",
    "score.quality": "quality", "dollars": "cost",
}  # fmt: skip


def table(folder: Path, text: str = TABLE, **mapped: str) -> Imported:
    path = folder / "r.csv"
    path.write_text(text)
    (made,) = import_results("csv", [path], folder / "results", options={"map": mapped or MAP})
    return made


def test_an_error_column_may_say_that_there_was_none(tmp_path: Path) -> None:
    words = ("false", "None", "0", "timeout")
    rows = "".join(f"q{number},A?,yes,{word}\n" for number, word in enumerate(words))
    made = table(tmp_path, f"id,question,answer,error\n{rows}", answer="answer")
    assert [answer.sample for answer in made.run.events_of(Answer)] == ["q0", "q1", "q2"]
    assert [failure.message for failure in made.run.events_of(Failure)] == ["timeout"]


def test_an_error_of_one_system_is_no_error_of_another(tmp_path: Path) -> None:
    rows = []
    for number in range(3):
        answers = {name: {"output": f"{name} says {number}", "latency_ms": 5} for name in ("GPT2", "Llama")}
        failed = {"output": None, "latency_ms": None, "error_type": "ModuleNotFoundError"}
        rows.append({"id": f"q{number}", "prompt": f"Say {number}", "responses": {**answers, "Ministral": failed}})
    path = tmp_path / "r.json"
    path.write_text(json.dumps(rows))
    (made,) = import_results("csv", [path], tmp_path / "results")
    assert len([*made.run.events_of(Answer)]) == 6
    assert [*made.run.events_of(Failure)] == []
    assert {answer.seconds for answer in made.run.events_of(Answer)} == {None}, "the latency of GPT2 is not Llama's"


def test_scenarios_beside_numbered_runs_are_the_samples(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    rows = [f"{run},s{number},flag,flag,true\n" for run in range(3) for number in range(4)]
    path.write_text(f"run_id,scenario_id,expected,actual,pass\n{''.join(rows)}")
    (made,) = import_results("csv", [path], tmp_path / "results")
    plan = made.run.info.plan
    assert (plan.samples, plan.repetitions) == (4, 3)


@pytest.mark.parametrize("column", ["prompt_version", "backend", "prompt_style", "treatment"])
def test_versions_of_a_prompt_and_backends_are_conditions_if_a_question_has_several(
    tmp_path: Path, column: str
) -> None:
    path = tmp_path / "r.csv"
    rows = [f"q{number},Which {number}?,It is {number},{name},0.5\n" for number in range(3) for name in ("v1", "v2")]
    path.write_text(f"id,question,answer,{column},score\n{''.join(rows)}")
    (made,) = import_results("csv", [path], tmp_path / "results")
    plan = made.run.info.plan
    assert ([*plan.conditions], plan.repetitions) == (["v1", "v2"], 1)


def trial(**fields: object) -> ImportedTrial:
    given: dict[str, object] = {
        "sample": "q1", "question": "What?", "condition": "alpha", "repetition": 0, "reply": Reply(text="That."),
    }  # fmt: skip
    return msgspec.convert(given | fields, ImportedTrial)


def written(results: Path, *trials: ImportedTrial, **of_run: object) -> tuple[RunFolder, Findings]:
    findings = Findings()
    run = ImportedRun(name="made here", tool="tool 1.0", trials=trials)
    for name, value in of_run.items():
        setattr(run, name, value)
    folder, _ = _write(run, results, "identity", {"format": "tool", "file": "x", "sha256": "y"}, findings)
    assert verify(folder.path).damages == ()
    return folder, findings


def scores(folder: RunFolder) -> list[Score]:
    return list(folder.events_of(Score))


def test_a_table_becomes_a_run(tmp_path: Path) -> None:
    made = table(tmp_path)
    assert made.counts == {"answers": 5, "failures": 0, "scores": 9, "not run": 1}
    summary = karat.summarize(made.run)
    means = {(one.condition, one.metric): one.mean.value for one in summary.results}
    assert means["alpha", "correct"] == pytest.approx((0.5 + 1) / 2)
    assert means["alpha", "quality"] == pytest.approx((2.5 + 5) / 2)
    assert means["beta", "correct"] == pytest.approx(0.5)
    assert means["beta", "quality"] == 5
    assert summary.total.cost.agent.known == pytest.approx(0.07), "the second result of q1 does not count"
    assert summary.total.latency.median is None, "no time was recorded"
    assert [found[:3] for found in made.findings] == [
        ("left out", "a second result of a sample, condition and repetition", 1)
    ]
    samples = list(made.run.samples())
    assert [sample.id for sample in samples] == ["q1", "q2", "q3"]
    assert samples[1].metadata == {"topic": "geo"}
    assert samples[1].turns[0].golden == "Paris"
    assert {answer.started for answer in made.run.events_of(Answer)} == {None}


def test_the_scale_of_a_metric_shows_in_its_values(tmp_path: Path) -> None:
    kinds = {metric.name: metric.kind for scorer in table(tmp_path).run.scorers() for metric in scorer.metrics}
    assert kinds == {"correct": "share", "quality": "number"}


def test_the_same_files_make_the_same_run(tmp_path: Path) -> None:
    first = table(tmp_path)
    before = {path.name: path.read_bytes() for path in first.run.path.iterdir()}
    again = table(tmp_path)
    assert again.run.path == first.run.path
    assert again.counts == {}
    assert {path.name: path.read_bytes() for path in first.run.path.iterdir()} == before
    other = table(tmp_path, TABLE.replace("Lyon", "Nice"))
    assert other.run.info.run != first.run.info.run


def test_repetitions_are_counted_where_no_column_has_them(tmp_path: Path) -> None:
    made = table(tmp_path, "question,answer\nA?,1\nA?,2\nB?,3\n", answer="answer")
    placed = [(answer.sample, answer.repetition, answer.text) for answer in made.run.events_of(Answer)]
    assert placed == [("A?", 0, "1"), ("A?", 1, "2"), ("B?", 0, "3")]


def test_errors_and_numbers_that_are_none_are_counted(tmp_path: Path) -> None:
    made = table(
        tmp_path,
        "id,answer,error,score.s,seconds\na,x,,0.5,1.5\nb,,out of memory,,2\nc,y,,many,soon\n,z,,1,1\n",
        answer="answer",
    )
    assert dict(made.counts) == {"answers": 2, "failures": 1, "scores": 1}
    (failure,) = made.run.events_of(Failure)
    assert (failure.sample, failure.cls, failure.message) == ("b", "agent", "out of memory")
    assert [score.values["s"] for score in scores(made.run)] == [0.5, None]
    assert [answer.seconds for answer in made.run.events_of(Answer)] == [1.5, None]
    found = {what: places for kind, what, _, places in made.findings if kind == "unreadable"}
    assert found == {
        "'s' is not a number": ("r.csv, line 4",),
        "'seconds' is not a number": ("r.csv, line 4",),
        "row without an id or a question": ("r.csv, line 5",),
    }


@pytest.mark.parametrize(
    ("mapped", "message"),
    [
        ({"score.x": "outpt"}, "no column 'outpt' (did you mean 'output'?)"),
        ({"scorex": "output"}, "unknown target 'scorex'"),
    ],
)
def test_columns_that_are_not_there_are_named(tmp_path: Path, mapped: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption) as refused:
        table(tmp_path, **mapped)
    assert message in str(refused.value)
    assert not (tmp_path / "results").exists()


def test_one_id_with_two_questions_is_two_samples(tmp_path: Path) -> None:
    folder, findings = written(tmp_path, trial(), trial(condition="beta", question="What else?"))
    assert [(sample.id, sample.turns[0].question) for sample in folder.samples()] == [
        ("q1", "What?"),
        ("q1 (2)", "What else?"),
    ]
    assert [kind for kind, *_ in findings] == ["changed"]


def test_a_failed_trial_keeps_what_it_cost_and_has_no_answer(tmp_path: Path) -> None:
    failure = ImportedFailure(cls="limit", kind="token_limit", message="more than 100 tokens")
    usage = Usage(input_tokens=90, output_tokens=20)
    folder, _ = written(tmp_path, trial(reply=Reply(text="part", dollars=0.5, usage=usage), failure=failure))
    summary = karat.summarize(folder)
    assert summary.total.ledger.limit == 1
    assert summary.total.cost.agent.known == 0.5
    assert list(folder.events_of(Answer)) == []


def test_a_scorer_that_failed_is_the_judges_fault(tmp_path: Path) -> None:
    failure = ImportedFailure(cls="judge", kind="error", message="no JSON", stage="score", scorer="model_graded")
    folder, _ = written(
        tmp_path,
        trial(failure=failure),
        trial(sample="q2", scores=[ImportedScore(scorer="model_graded", values={"grade": 1.0})]),
    )
    ledger = karat.summarize(folder).total.ledger
    assert (ledger.scored, ledger.judge) == (1, 1)


def test_what_cannot_be_right_is_missing_and_said(tmp_path: Path) -> None:
    reply = Reply(text="x", dollars=-1.0, tool_calls=(ToolCall(tool="t", milliseconds=-5.0),))
    values = {"a": math.nan, "b": math.inf, "c": 2.0}
    folder, findings = written(
        tmp_path,
        trial(reply=reply, scores=[ImportedScore(scorer="s", values=values)]),
        metrics={"s": [Metric(name="c", low=0.0, high=1.0)]},
    )
    (answer,) = folder.events_of(Answer)
    assert answer.replies[0].dollars is None
    assert answer.replies[0].tool_calls[0].milliseconds is None
    assert scores(folder)[0].values == {"a": None, "b": None, "c": 2.0}
    assert {metric.name: metric.bounds for metric in folder.scorers()[0].metrics}["c"] == (None, None)
    assert [what for _, what, _, _ in findings] == [
        "cost, tokens or times that cannot be right (dollars is -1.0, expected 0 to 1e+06) are missing",
        "a score that is not a finite number is missing",
    ]
    assert findings.notes == ["c has values beyond the scale that its tool states: no bounds are assumed"]


def test_whatever_a_detail_holds_the_journal_can_be_read(tmp_path: Path) -> None:
    deep: object = "bottom"
    for _ in range(5000):
        deep = [deep]
    detail = {"deep": deep, "long": 10**400, "half \ud83d": "\ud83d", "nan": math.nan, "fine": [1, {"a": None}]}
    folder, _ = written(tmp_path, trial(detail=detail, metadata=detail, question="half \ud83d"))
    (answer,) = folder.events_of(Answer)
    assert answer.detail["fine"] == [1, {"a": None}]
    assert answer.detail["long"] == "a whole number beyond 64 bits"
    assert answer.detail["nan"] is None
    (sample,) = folder.samples()
    assert isinstance(sample, Sample)
    assert bounded(answer.detail) == answer.detail


def test_a_condition_keeps_the_name_that_a_terminal_obeys_out(tmp_path: Path) -> None:
    long = "\x1b]0;evil\x07red" + "x" * 500
    folder, _ = written(tmp_path, trial(condition=long + "a"), trial(condition=long + "b"))
    first, second = folder.info.plan.conditions
    assert "\x1b" not in first
    assert len(first) <= 120
    assert second == f"{first} (2)"
    assert [answer.condition for answer in folder.events_of(Answer)] == [first, second]


def test_an_import_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def trials() -> Iterator[ImportedTrial]:
        yield trial()
        raise BadDataset("x", [])

    with pytest.raises(BadDataset):
        written(tmp_path, trials=trials())
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_scores_is_not_opened_as_a_run(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("question,answer\nOne?,one\n")
    with pytest.raises(BadRun, match="a table without scores needs `karat score`"):
        karat.open(tmp_path / "r.csv")


def test_a_table_that_must_be_asked_about_is_opened_once_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        "id,the mail,reply,correctness\n1,My parcel is late,Sent again,1\n2,Please cancel my order,Cancelled,0\n"
    )
    with pytest.raises(BadRun) as done:
        karat.open(tmp_path / "r.csv")
    assert f"import it with `karat import csv {tmp_path / 'r.csv'}` and more options" in str(done.value)
    assert "--map id=id --map question='the mail' --map answer=reply" in str(done.value)


def test_a_scorer_that_was_not_asked_of_a_sample_is_no_fault(tmp_path: Path) -> None:
    def by(scorer: str) -> list[ImportedScore]:
        return [ImportedScore(scorer=scorer, values={scorer: 1.0})]

    folder, _ = written(
        tmp_path, trial(scores=by("exact")), trial(sample="q2", scores=by("graded")), trial(sample="q3")
    )
    summary = karat.summarize(folder)
    assert (summary.total.ledger.scored, summary.total.ledger.judge) == (2, 1)
    (failure,) = summary.failures
    assert "the imported files hold no score and say not why" in failure.example


def test_a_scorer_that_karat_adds_must_score_every_answer(tmp_path: Path) -> None:
    score = ImportedScore(scorer="exact", values={"exact": 1.0})
    folder, _ = written(tmp_path, trial(scores=[score]), trial(sample="q2", scores=[score]))
    journal = folder.path / "journal.jsonl"
    scored = Codec().line(
        Resume(
            at="2026-11-22T00:00:00Z", versions={}, host="", pid=1, command="score",
            scorers=(ScorerInfo(name="new", type="new", scoring="n" * 32, metrics=()),),
        )
    )  # fmt: skip
    ended = Codec().line(End(at="2026-11-22T00:00:01Z", reason="done", command="score"))
    journal.write_bytes(journal.read_bytes() + scored + ended)
    assert karat.summarize(RunFolder.open(folder.path)).total.ledger.judge == 2


def test_repetitions_and_conditions_that_no_run_can_have_are_left_out(tmp_path: Path) -> None:
    trials = [trial(repetition=10**30), trial(repetition=-1), *(trial(condition=f"c{number}") for number in range(502))]
    folder, findings = written(tmp_path, *trials)
    assert karat.summarize(folder).repetitions == 1
    assert len(folder.info.conditions) == 500
    assert {what: count for _, what, count, _ in findings} == {
        "a repetition that is not from 0 to 99999": 2,
        "a result of more than 500 conditions": 2,
    }


def test_what_is_known_of_a_condition_is_kept_as_its_settings(tmp_path: Path) -> None:
    facts = {
        "alpha": ImportedCondition(model="m1", system_prompt="Be brief.", detail={"temperature": 0.5, "seed": None})
    }
    folder, _ = written(tmp_path, trial(), trial(condition="beta"), conditions=facts)
    assert {key: choice.value for key, choice in folder.info.experiment.items()} == {
        "conditions.alpha.agent.model": "m1",
        "conditions.alpha.system_prompt": "Be brief.",
        "conditions.alpha.temperature": 0.5,
    }


def test_files_that_hold_part_of_what_was_begun_make_an_unfinished_run(tmp_path: Path) -> None:
    assert written(tmp_path / "whole", trial())[0].status() == "done"
    folder, _ = written(tmp_path / "part", trial(), unfinished=["half of it"])
    assert folder.status() == "interrupted"
    assert "the run is not complete" in " ".join(
        karat.summarize(written(tmp_path / "p", trial(), unfinished=["half of it"], planned=(1, 2))[0]).warnings
    )


def test_a_file_that_is_named_twice_is_one_run(tmp_path: Path) -> None:
    path = tmp_path / "eval.csv"
    path.write_text("id,score.ok\nq1,1\n")
    assert len(list(import_results("csv", [path, path], tmp_path / "runs"))) == 1


def test_models_beside_two_answers_are_conditions_and_what_judges_both_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "battles.csv"
    path.write_text(
        "prompt,response_a,response_b,model_a,model_b,preference\nHi?,Hello,Yes?,small,large,1\nWho?,I,Me,large,small,2\n"
    )
    (made,) = import_results("csv", [path], tmp_path / "runs")
    said = {(answer.condition, answer.text) for answer in made.run.events_of(Answer)}
    assert said == {("small", "Hello"), ("large", "Yes?"), ("large", "I"), ("small", "Me")}
    assert [*made.run.events_of(Score)] == []
    assert "not taken, as it judges no single answer of its row: preference" in made.findings.notes


def test_what_is_not_read_as_it_may_be_meant_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {"session_id": "s1", "question": "Hi?", "answer": ["Hello", "You?"], "correctness": "partial"},
        {"session_id": "s1", "question": "Why?", "answer": ["So"], "correctness": "error"},
        {"session_id": "s2", "question": "Who?", "answer": ["I", "Me"], "correctness": "yes"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    runs = tmp_path / "runs"
    with pytest.raises(BadOption, match="'correctness' judges in words") as raised:
        [*import_results("csv", [path], runs)]
    assert "--map answer=answer" in str(raised.value)
    (made,) = import_results("csv", [path], runs, options={"map": {"answer": "answer"}})
    assert [*made.run.events_of(Score)] == []
    assert {
        (
            "not taken, as it judges in words: 'correctness' (error, partial, yes); if so: "
            """--map score.correctness=correctness --set 'words={"error": null, "partial": ?, "yes": 1}'"""
        ),
        "'answer' holds lists: each list is one answer",
        "rows of one 'session_id' may be turns of one conversation: each is taken as a question of its own",
    } <= {*made.findings.notes}


def test_columns_that_no_name_explains_are_said_to_be_unused(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps([{"user": "Hi?", "assistant": "Hello", "tone": 3, "hint": None, "eval": {"f1": 1, "n": 2}}] * 2)
    )
    (made,) = import_results("csv", [path], tmp_path / "runs")
    assert {
        "not used: tone, eval.n",
        "rows may be turns of one conversation: each is taken as a question of its own",
    } <= {*made.findings.notes}


def test_rows_that_are_messages_are_no_results(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("case,customer_message,agent_response\n1,Where is it?,\n1,,On its way\n2,Why?,\n2,,So\n")
    with pytest.raises(BadDataset, match="no row holds both 'customer_message' and 'agent_response'"):
        list(import_results("csv", [path], tmp_path / "runs"))


def test_nan_is_a_score_that_is_missing(tmp_path: Path) -> None:
    for name in ("ragas.json", "ragas.jsonl"):
        path = tmp_path / name
        rows = [
            {"question": text, "answer": "a", "faithfulness": score} for text, score in (("A?", math.nan), ("B?", 0.5))
        ]
        path.write_text(json.dumps(rows) if name == "ragas.json" else "\n".join(map(json.dumps, rows)))
        (made,) = import_results("csv", [path], tmp_path / f"runs of {name}")
        assert [score.values for score in made.run.events_of(Score)] == [
            {"faithfulness": None},
            {"faithfulness": 0.5},
        ]
        assert made.counts["answers"] == 2
