"""What files state about themselves is compared with what they hold, and identity is content."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means, summary
from tests.karat_imports.test_inspect import log

from karat.errors import BadDataset
from karat_imports.imported import import_results

WRONG = {"scores": {"match": {"value": "I"}}}


def stating(samples: int, accuracy: float | None = None) -> dict[str, Any]:
    """The results in the header of a log of Inspect."""
    metrics = {} if accuracy is None else {"accuracy": {"name": "accuracy", "value": accuracy}}
    scores = [{"name": "match", "scorer": "match", "metrics": metrics}]
    return {"total_samples": samples, "completed_samples": samples, "scores": scores}


def test_a_truncated_log_is_no_finished_run_and_the_first_line_says_so(tmp_path: Path) -> None:
    made = imported("inspect", tmp_path / "runs", log(tmp_path / "cut.eval", WRONG, results=stating(79, 0.354)))
    assert made.findings.notes == ["cut.eval: 1 of 79 samples are here"]
    result = summary(made)
    assert result.status == "interrupted"
    assert result.notices == ("Not the whole run: cut.eval: 1 of 79 samples are here",)


def test_a_log_that_holds_what_it_states_is_finished_without_a_note(tmp_path: Path) -> None:
    made = imported("inspect", tmp_path / "runs", log(tmp_path / "whole.eval", {}, WRONG, results=stating(2, 0.5)))
    assert (made.findings.notes, summary(made).status, summary(made).notices) == ([], "done", ())


def test_a_mean_that_is_not_that_of_the_values_is_named(tmp_path: Path) -> None:
    made = imported("inspect", tmp_path / "runs", log(tmp_path / "odd.eval", {}, WRONG, results=stating(2, 0.9)))
    assert made.findings.notes == ["odd.eval states 0.9 as the mean of match; its values have 0.5"]


def test_a_log_without_samples_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    empty = log(tmp_path / "empty.eval", spec={"task": "other"})
    first, second = log(tmp_path / "a.eval", {}), log(tmp_path / "b.eval", {}, spec={"task": "third"})
    made = list(import_results("inspect", [empty, first, second], tmp_path / "runs"))
    assert [result.run.info.name for result in made] == ["made", "third"]
    assert made[0].findings.notes == ["'other' is left out: holds no results"]
    with pytest.raises(BadDataset, match="holds no results"):
        list(import_results("inspect", [empty], tmp_path / "alone"))


def test_two_datasets_of_one_task_are_two_runs(tmp_path: Path) -> None:
    paths = [log(tmp_path / f"{name}.eval", {}, spec={"dataset": {"name": name}}) for name in ("easy", "hard")]
    made = list(import_results("inspect", paths, tmp_path / "runs"))
    assert [result.run.info.dataset.path for result in made] == ["easy", "hard"]
    assert len({result.run.path for result in made}) == 2
    assert all(result.counts for result in made)
    again = list(import_results("inspect", paths, tmp_path / "runs"))
    assert [result.run.path for result in again] == [result.run.path for result in made]
    assert not any(result.counts for result in again)


def test_two_tables_whose_names_begin_alike_are_two_runs(tmp_path: Path) -> None:
    for name, score in (("eval.a.csv", 1), ("eval.b.csv", 0)):
        (tmp_path / name).write_text(f"id,answer,score.right\nq,x,{score}\n", encoding="utf-8")
    made = list(import_results("csv", [tmp_path / "eval.a.csv", tmp_path / "eval.b.csv"], tmp_path / "runs"))
    assert [result.run.info.name for result in made] == ["eval.a", "eval.b"]
    assert [result.counts["answers"] for result in made] == [1, 1]
    assert [result.run.info.dataset.path for result in made] == ["eval.a.csv", "eval.b.csv"]


def promptfoo(folder: Path, results: int, *, stated: int) -> Path:
    """Tests that name their prompt: of each question only one of two prompts is asked."""
    rows = [
        {
            "testIdx": number, "promptIdx": number % 2, "provider": {"id": "echo"}, "vars": {"q": f"q{number}"},
            "prompt": {"raw": f"P{number % 2} {{{{q}}}}", "label": f"P{number % 2}"}, "response": {"output": "x"},
            "success": True, "score": 1, "gradingResult": {"pass": True, "score": 1, "componentResults": [
                {"pass": True, "score": 1, "reason": "", "assertion": {"type": "contains", "value": "x"}},
            ]},
        }
        for number in range(results)
    ]  # fmt: skip
    prompts = [{"raw": f"P{number} {{{{q}}}}", "label": f"P{number}", "provider": "echo"} for number in range(2)]
    stats = {"successes": stated, "failures": 0, "errors": 0}
    path = folder / "results.json"
    content = {"evalId": "e", "results": {"version": 3, "prompts": prompts, "results": rows, "stats": stats}}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_test_that_names_its_prompts_leaves_nothing_missing_under_the_others(tmp_path: Path) -> None:
    result = summary(imported("promptfoo", tmp_path / "runs", promptfoo(tmp_path, 6, stated=6)))
    assert (result.total.ledger.planned, result.total.ledger.not_run, result.status) == (6, 0, "done")
    assert {row.n_missing for row in result.results} == {0}
    assert {(row.worst.value, row.best.value) for row in result.results} == {(1.0, 1.0)}


def test_tests_of_one_question_that_name_other_providers_are_no_repetitions(tmp_path: Path) -> None:
    path = promptfoo(tmp_path, 6, stated=6)
    whole = json.loads(path.read_bytes())
    for row in whole["results"]["results"]:
        row["vars"] = {"q": f"q{row['testIdx'] // 2}"}
    path.write_text(json.dumps(whole))
    result = summary(imported("promptfoo", tmp_path / "runs", path))
    assert (result.samples, result.repetitions, result.total.ledger.planned) == (3, 1, 6)


def test_results_of_promptfoo_without_a_list_of_prompts_are_all_here(tmp_path: Path) -> None:
    path = promptfoo(tmp_path, 6, stated=6)
    whole = json.loads(path.read_bytes())
    del whole["results"]["prompts"]
    path.write_text(json.dumps(whole))
    assert incomplete(tmp_path, "promptfoo", path) == ()


def test_results_that_the_statistics_count_and_the_file_lacks_are_missing(tmp_path: Path) -> None:
    result = summary(imported("promptfoo", tmp_path / "runs", promptfoo(tmp_path, 4, stated=6)))
    assert result.notices == ("Not the whole run: results.json: 4 of 6 samples are here",)
    assert result.total.ledger.not_run == 4


def incomplete(folder: Path, name: str, *paths: Path) -> tuple[str, ...]:
    """What the first line of the report says of the one run in the files; it says so of unfinished runs only."""
    result = summary(imported(name, folder / "runs", *paths))
    assert result.status == ("interrupted" if result.notices else "done")
    return result.notices


def test_a_retried_log_is_finished_where_the_newest_attempt_is(tmp_path: Path) -> None:
    spec = {"task_id": "t", "dataset": {"name": "made", "sample_ids": ["q0", "q1"]}}
    failed = log(tmp_path / "failed.eval", {}, spec=spec, status="error", error={"message": "boom"})
    later = spec | {"created": "2026-02-01T00:00:00+00:00"}
    again = log(tmp_path / "again.eval", {}, {}, spec=later, results=stating(2))
    assert incomplete(tmp_path / "1", "inspect", failed) == (
        "Not the whole run: failed.eval ended with the status error (boom); failed.eval: 1 of 2 samples are here",
    )
    assert incomplete(tmp_path / "2", "inspect", failed, again) == ()
    cut = log(tmp_path / "cut.eval", {}, spec=later, status="cancelled")
    assert incomplete(tmp_path / "3", "inspect", failed, cut) == (
        "Not the whole run: cut.eval ended with the status cancelled; cut.eval: 1 of 2 samples are here",
    )


def test_planned_samples_and_epochs_are_compared_with_what_was_read(tmp_path: Path) -> None:
    spec = {"dataset": {"name": "made", "sample_ids": ["q0", "q1"]}, "config": {"epochs": 3}}
    path = log(tmp_path / "few.eval", {}, {}, spec=spec)
    assert incomplete(tmp_path, "inspect", path) == ("Not the whole run: few.eval: 2 of 6 samples are here",)
    stopped = {"early_stops": [{"id": "q0", "epoch": epoch} for epoch in range(4)]}
    results = stating(6) | {"early_stopping": stopped}
    assert incomplete(tmp_path, "inspect", log(tmp_path / "early.eval", {}, {}, spec=spec, results=results)) == ()


def unreadable_files() -> list[Any]:
    return [
        pytest.param("inspect", "inspect/one.eval", "bad.eval", id="inspect"),
        pytest.param("deepeval", "deepeval/latest_test_run.json", "bad.json", id="deepeval"),
        pytest.param("promptfoo", "promptfoo/v3.json", "bad.json", id="promptfoo"),
        pytest.param("skill-evals", "skill-evals/plugin-eval.json", "bad.json", id="skill-evals"),
        pytest.param("openai-evals", "openai-evals/capitals_small.jsonl", "bad.jsonl", id="openai-evals"),
        pytest.param("eee", "eee/2050fa10-06c5-4184-9270-472afae86e78_samples.jsonl", "bad.json", id="eee"),
    ]


@pytest.mark.parametrize(("tool", "good", "bad"), unreadable_files())
def test_a_file_that_cannot_be_read_is_named_and_stops_no_other(tmp_path: Path, tool: str, good: str, bad: str) -> None:
    (tmp_path / bad).write_bytes(b"PK\x03\x04 and no zip")
    made = imported(tool, tmp_path / "runs", tmp_path / bad, FILES / good)
    assert made.counts["answers"] > 0
    ((kind, what, count, places),) = made.findings
    assert (kind, what.startswith("file: "), count, places) == ("unreadable", True, 1, (bad,))
    with pytest.raises(BadDataset):
        imported(tool, tmp_path / "runs", tmp_path / bad)


def test_what_is_found_in_a_run_is_said_of_that_run(tmp_path: Path) -> None:
    first = log(tmp_path / "a.eval", {})
    second = log(tmp_path / "b.eval", {}, {"epoch": "none"}, spec={"task": "other"})
    made = {result.run.info.name: result for result in import_results("inspect", [first, second], tmp_path / "runs")}
    assert findings(made["made"]) == {}
    assert [kind for kind, _ in findings(made["other"])] == ["unreadable"]
    assert "unreadable" in made["other"].run.info.source["notes"]


def plugin(folder: Path, **changes: Any) -> Path:
    whole = json.loads((FILES / "skill-evals" / "plugin-eval.json").read_bytes())
    path = folder / "results.json"
    path.write_text(json.dumps(whole | changes), encoding="utf-8")
    return path


def test_a_partial_evaluation_of_a_plugin_is_not_finished(tmp_path: Path) -> None:
    path = plugin(tmp_path, partial=True, partialReason="cost_ceiling")
    assert incomplete(tmp_path, "skill-evals", path) == ("Not the whole run: results.json is partial: cost_ceiling",)


def test_cases_and_runs_that_an_evaluation_of_a_skill_counts_and_lacks_are_missing(tmp_path: Path) -> None:
    whole = json.loads((FILES / "skill-evals" / "plugin-eval.json").read_bytes())
    cut = plugin(tmp_path, cases=whole["cases"][:1])
    said = "Not the whole run: results.json: 4 of 6 samples are here"
    assert incomplete(tmp_path / "1", "skill-evals", cut) == (said,)
    benchmark = json.loads((FILES / "skill-evals" / "benchmark.json").read_bytes())
    path = tmp_path / "benchmark.json"
    path.write_text(json.dumps(benchmark | {"runs": benchmark["runs"][:5]}))
    said = "Not the whole run: benchmark.json: 5 of 8 samples are here"
    assert incomplete(tmp_path / "2", "skill-evals", path) == (said,)


def eee(folder: Path, name: str, rows: int, *, stated: int | None = None, score: float = 0.5) -> Path:
    """Instances of one model, of which every second one is right, and their aggregate."""
    head = {"schema_version": "0.3.0", "evaluation_id": f"own/lab/m/{name}", "model_id": "lab/m"}
    lines = [
        head | {
            "sample_id": str(number), "evaluation_name": "own", "evaluation_result_id": "acc",
            "input": {"raw": f"{number}?"}, "interaction_type": "single_turn", "output": {"raw": [name]},
            "evaluation": {"score": float(number % 2)},
        }
        for number in range(rows)
    ]  # fmt: skip
    details = {"score": score, "uncertainty": {"num_samples": stated or rows}}
    result = {"evaluation_result_id": "acc", "evaluation_name": "own", "score_details": details}
    aggregate = head | {
        "model_info": {"id": "lab/m"}, "retrieved_timestamp": "1",
        "evaluation_results": [result | {"metric_config": {"metric_name": "acc"}}],
        "detailed_evaluation_results": {"total_rows": stated or rows},
    }  # fmt: skip
    path = folder / f"{name}_samples.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps(aggregate), encoding="utf-8")
    return path


def test_figures_of_an_aggregate_are_compared_with_its_instances(tmp_path: Path) -> None:
    whole = eee(tmp_path, "whole", 4)
    assert incomplete(tmp_path / "1", "eee", whole) == ()
    whole.write_text(whole.read_text().replace('"model_id": "lab/m"', '"model_id": "m"'))
    assert incomplete(tmp_path / "4", "eee", whole) == ()
    (said,) = incomplete(tmp_path / "2", "eee", eee(tmp_path, "cut", 4, stated=6))
    assert "cut_samples.jsonl: 4 of 6 rows are here" in said
    made = imported("eee", tmp_path / "3", eee(tmp_path, "odd", 4, score=0.9))
    assert made.findings.notes == ["odd_samples.jsonl states 0.9 as the mean of acc; its values have 0.5"]


def test_two_files_of_one_model_share_its_condition_and_lose_nothing(tmp_path: Path) -> None:
    made = imported("eee", tmp_path / "runs", eee(tmp_path, "a", 4), eee(tmp_path, "b", 6))
    assert made.run.info.plan.conditions == ("lab/m",)
    assert (made.counts["answers"], made.run.info.plan.samples, findings(made)) == (10, 6, {})
    assert means(made)["lab/m", "acc"] == (pytest.approx(0.5), 10)
    (said,) = incomplete(tmp_path / "2", "eee", eee(tmp_path, "a", 4), eee(tmp_path, "b", 4, stated=6))
    assert said.endswith("a_samples.jsonl, b_samples.jsonl: 8 of 10 samples are here")


def test_what_cannot_be_read_of_a_file_makes_its_run_unfinished(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text('id,answer,score.ok\na,x,1\nb,"unclosed,1\n', encoding="utf-8")
    (said,) = incomplete(tmp_path / "1", "csv", table)
    assert said.startswith("Not the whole run: is not CSV: unexpected end of data")
    whole = (FILES / "openai-evals" / "capitals_small.jsonl").read_text().splitlines()
    cut = tmp_path / "cut.jsonl"
    cut.write_text("\n".join(whole[:-1]) + whole[-1][:20])
    (said,) = incomplete(tmp_path / "2", "openai-evals", cut)
    assert "line with text that is not JSON (cut.jsonl, line " in said
    (said,) = incomplete(tmp_path / "3", "inspect", log(tmp_path / "odd.eval", {}, {"epoch": "first"}))
    assert said.startswith("Not the whole run: a sample ")


def test_a_log_of_oaieval_without_its_final_report_is_unfinished(tmp_path: Path) -> None:
    lines = (FILES / "openai-evals" / "capitals_small.jsonl").read_text().splitlines()
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(line for line in lines if "final_report" not in line))
    assert incomplete(tmp_path, "openai-evals", path) == ("Not the whole run: log.jsonl has no final report",)


def test_an_accuracy_that_a_final_report_states_is_compared_with_the_matches(tmp_path: Path) -> None:
    lines = (FILES / "openai-evals" / "capitals_small.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    for row in told:
        if "final_report" in row:
            row["final_report"]["accuracy"] = 0.25
    path = tmp_path / "small.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in told))
    notes = imported("openai-evals", tmp_path / "runs", path).findings.notes
    stated = "small.jsonl states 0.25 as the mean of accuracy; its values have 0.666667"
    assert [note for note in notes if "states" in note] == [stated]


def test_tasks_whose_samples_are_not_here_are_named(tmp_path: Path) -> None:
    for path in (FILES / "lm-eval").glob("*tiny_choice*"):
        shutil.copy(path, tmp_path)
    results = Path(shutil.copy(next((FILES / "lm-eval").glob("results*")), tmp_path))
    for paths in ([results], [tmp_path]):
        notes = imported("lm-eval", tmp_path / "runs", *paths).findings.notes
        assert f"{results.name} has results of tasks without samples here: tiny_words" in notes
        shutil.rmtree(tmp_path / "runs")


def test_a_test_that_holds_neither_an_output_nor_an_error_failed(tmp_path: Path) -> None:
    path = promptfoo(tmp_path, 6, stated=6)
    whole = json.loads(path.read_bytes())
    whole["results"]["results"][5] |= {"response": {}, "gradingResult": None}
    del whole["results"]["stats"]
    path.write_text(json.dumps(whole))
    ledger = summary(imported("promptfoo", tmp_path / "runs", path)).total.ledger
    assert (ledger.planned, ledger.agent, ledger.not_run) == (6, 1, 0)


def test_scores_that_a_run_of_deepeval_states_are_compared_with_its_cases(tmp_path: Path) -> None:
    metric = {"name": "Faithfulness", "score": 0.9, "threshold": 0.5, "success": True}
    content = {
        "testCases": [{"input": "q", "actualOutput": "a", "success": True, "metricsData": [metric]}],
        "metricsScores": [{"metric": "Faithfulness", "scores": [0.9, 0.1], "passes": 1, "fails": 1, "errors": 0}],
    }
    path = tmp_path / "run.json"
    path.write_text(json.dumps(content))
    notes = imported("deepeval", tmp_path / "runs", path).findings.notes
    assert notes == ["run.json states 0.5 as the mean of Faithfulness; its values have 0.9"]


@pytest.mark.parametrize(("value", "said"), [("C", False), (1, False), (True, False), (0.25, True), (7, True)])
def test_a_number_whose_direction_no_log_states_is_said_to_be_better_when_higher(
    tmp_path: Path, value: object, said: bool
) -> None:
    made = imported("inspect", tmp_path / "runs", log(tmp_path / "log.eval", {"scores": {"size": {"value": value}}}))
    assert any("better when higher" in note for note in summary(made).warnings) is said
