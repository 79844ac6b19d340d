"""What files state about themselves is compared with what they hold, and identity is content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.importers.imported import imported, summary
from tests.importers.test_inspect import log

from karat.errors import BadDataset
from karat.execution.imported import import_results

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


def test_results_that_the_statistics_count_and_the_file_lacks_are_missing(tmp_path: Path) -> None:
    result = summary(imported("promptfoo", tmp_path / "runs", promptfoo(tmp_path, 4, stated=6)))
    assert result.notices == ("Not the whole run: results.json: 4 of 6 samples are here",)
    assert result.total.ledger.not_run == 4
