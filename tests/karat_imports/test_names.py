"""A metric has one name, whatever other metrics a file has and in whatever order it has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.karat_imports.imported import imported, means
from tests.karat_imports.test_inspect import log

from karat.importers import Findings
from karat_imports.importers._reading import heads, title


def written(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def deepeval(folder: Path, graders: Sequence[str]) -> Path:
    metrics = [{"name": name, "score": 1.0, "threshold": 0.5, "success": True} for name in graders]
    case = {"input": "q", "actualOutput": "a", "success": True, "metricsData": metrics}
    return written(folder, "run.json", {"testCases": [case]})


def openai_evals(folder: Path, graders: Sequence[str]) -> Path:
    uuid = "-0a1b2c3d-0000-4000-8000-000000000001"
    results = [{"name": f"{name}{uuid}", "passed": True, "score": 1.0} for name in graders]
    sample = {"model": "m", "output": [{"role": "assistant", "content": "a"}]}
    item = {"object": "eval.run.output_item", "datasource_item_id": 1, "run_id": "r", "sample": sample}
    return written(folder, "items.json", [item | {"datasource_item": {"question": "q"}, "results": results}])


def skill_evals(folder: Path, graders: Sequence[str]) -> Path:
    results = [{"name": name, "passed": True} for name in graders]
    arms = {"with": [{"score": 1.0, "passed": True, "graders": results}]}
    case = {"name": "q", "promptMarkdown": "q", "graders": [], "arms": arms}
    whole = {"schemaVersion": 1, "claudeVersion": "2", "suite": {"ablation": "none"}, "cases": [case]}
    return written(folder, "results.json", whole)


def promptfoo(folder: Path, graders: Sequence[str]) -> Path:
    parts = [{"pass": True, "score": 1, "assertion": {"type": "javascript", "metric": name}} for name in graders]
    row = {
        "testIdx": 0, "promptIdx": 0, "vars": {"q": "q"}, "response": {"output": "a"}, "success": True, "score": 1,
        "gradingResult": {"pass": True, "score": 1, "componentResults": parts},
    }  # fmt: skip
    results = {"version": 3, "prompts": [{"raw": "{{q}}", "label": "p", "provider": "echo"}], "results": [row]}
    return written(folder, "results.json", {"evalId": "e", "results": results})


def inspect(folder: Path, graders: Sequence[str]) -> Path:
    return log(folder / "log.eval", {"scores": {name: {"value": {"right": 1, "brief": 0}} for name in graders}})


def lm_eval(folder: Path, graders: Sequence[str]) -> Path:
    rows = [
        {"doc_id": 0, "doc": {"question": "q"}, "target": "a", "resps": [["a"]], "filter": name, "exact_match": 1.0}
        for name in graders
    ]
    path = folder / "samples_task_2026-01-01T00-00-00.000000.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("made_by", [deepeval, openai_evals, skill_evals, promptfoo, inspect, lm_eval])
def test_a_metric_keeps_its_name_whatever_others_there_are(
    tmp_path: Path, made_by: Callable[[Path, Sequence[str]], Path]
) -> None:
    names = []
    for number, graders in enumerate((["right"], ["right", "brief"], ["brief", "right"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        tool = made_by.__name__.replace("_", "-")
        names.append({metric for _, metric in means(imported(tool, folder / "runs", made_by(folder, graders)))})
    alone, both, reversed_order = names
    assert alone < both
    assert both == reversed_order


def rewritten(row: dict[str, Any], **sample: Any) -> dict[str, Any]:
    return row | {"sample": row["sample"] | sample}


def test_output_items_without_a_run_are_parted_by_their_models(tmp_path: Path) -> None:
    (row,) = json.loads(openai_evals(tmp_path, ["right"]).read_text())
    del row["run_id"]
    path = written(tmp_path, "two.json", [row, rewritten(row, model="other")])
    assert imported("openai-evals", tmp_path / "runs", path).run.info.plan.conditions == ("m", "other")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("eval.a.csv", "eval.a"), ("eval.csv.gz", "eval"), ("eval", "eval"),
        (".latest_test_run.json", "latest_test_run"),
        ("2026-01-01T10.30.00.json", "2026-01-01T10.30.00"),
    ],
)  # fmt: skip
def test_a_file_is_named_without_its_ending_only(name: str, shown: str) -> None:
    assert title(Path(name)) == shown


def test_files_of_one_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    paths = [written(tmp_path / folder, "results.json", {"cases": []}) for folder in ("a", "b")]

    def marks(*files: Path) -> list[str]:
        found = heads(files, ("cases",), otherwise="has no cases", findings=Findings())
        return [mark for _, _, mark in found]

    assert marks(*paths) == ["results: ", "results (2): "]
    assert marks(paths[0]) == [""]
