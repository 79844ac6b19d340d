"""Logs of oaieval and output items of OpenAI's Evals API become runs with their own counts and means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means

from karat.errors import BadDataset
from karat.records import Answer, Failure, Score, Usage
from karat_imports.imported import format_of

FOLDER = FILES / "openai-evals"
SMALL, LARGE, FUZZY = (
    FOLDER / f"{name}.jsonl" for name in ("capitals_small", "capitals_large", "fuzzy-capitals_small")
)


def report(path: Path) -> dict[str, float]:
    rows = map(json.loads, path.read_text().splitlines())
    return next(row["final_report"] for row in rows if "final_report" in row)


def test_logs_of_one_eval_are_conditions_with_the_accuracy_of_their_reports(tmp_path: Path) -> None:
    made = imported("openai-evals", tmp_path, SMALL, LARGE)
    assert dict(made.counts) == {"answers": 6, "failures": 0, "scores": 6}
    assert means(made) == {
        ("small", "accuracy"): (pytest.approx(report(SMALL)["accuracy"]), 3),
        ("large", "accuracy"): (pytest.approx(report(LARGE)["accuracy"]), 3),
    }
    assert findings(made) == {}
    used = [answer.replies[0].usage for answer in made.run.events_of(Answer) if answer.condition == "small"]
    assert used == [Usage(input_tokens=11, output_tokens=2)] * 3
    assert report(SMALL)["usage_prompt_tokens"] == 3 * 11
    samples = {sample.id: sample.turns[0] for sample in made.run.samples()}
    assert samples["capitals.dev.1"].question == "Capital of Peru?"
    assert samples["capitals.dev.1"].golden == "Lima"
    replies = {answer.sample: answer.replies[0] for answer in made.run.events_of(Answer) if answer.condition == "small"}
    assert (replies["capitals.dev.1"].text, replies["capitals.dev.1"].answer) == ("Lima, of course", "Lima")
    assert replies["capitals.dev.2"].model == "scripted-small"


def test_recorded_metrics_are_metrics(tmp_path: Path) -> None:
    assert means(imported("openai-evals", tmp_path, FUZZY)) == {
        ("small", "match.accuracy"): (pytest.approx(report(FUZZY)["accuracy"]), 3),
        ("small", "metrics.accuracy"): (pytest.approx(report(FUZZY)["accuracy"]), 3),
        ("small", "f1_score"): (pytest.approx(report(FUZZY)["f1_score"]), 3),
    }


def test_events_of_samples_may_be_mixed_and_errors_are_failures(tmp_path: Path) -> None:
    def event(sample: str | None, kind: str, **data: object) -> str:
        return json.dumps({"sample_id": sample, "type": kind, "data": data})

    path = tmp_path / "log.jsonl"
    lines = [
        json.dumps({"spec": {"eval_name": "own.v0", "completion_fns": [1], "created_at": "2024-01-02 03:04:05.6"}}),
        event("a", "sampling", prompt="A?", sampled="1"),
        event("b", "error", type="RateLimitError", message="Rate limit reached"),
        event("a", "function_call", name="add", arguments={"x": 1}, return_value=2),
        event("a", "metrics", score=0.5, choice="Y", ok=True),
        event(None, "match", correct=True),
        '{"sample_id": "c", "type": "sam',
    ]
    path.write_text("\n".join(lines))
    made = imported("openai-evals", tmp_path / "runs", path)
    assert made.run.info.created == "2024-01-02T03:04:05.600000+00:00"
    (answer,) = made.run.events_of(Answer)
    assert (answer.sample, answer.text, answer.replies[0].tool_calls[0].result) == ("a", "1", "2")
    (score,) = made.run.events_of(Score)
    assert (score.values, score.labels) == ({"score": 0.5, "ok": True}, {"choice": "Y"})
    (failure,) = made.run.events_of(Failure)
    assert (failure.sample, failure.cls) == ("b", "infrastructure")
    assert findings(made) == {
        ("unreadable", "event without a sample_id"): 1,
        ("unreadable", "line with text that is not JSON"): 1,
    }


def item(number: int, run: str, *, passed: bool, error: str | None = None) -> dict[str, Any]:
    """As the API gives it."""
    return {
        "object": "eval.run.output_item", "id": f"outputitem_{run}_{number}", "created_at": 1, "eval_id": "eval_1",
        "run_id": run, "status": "pass" if passed else "fail", "datasource_item_id": number,
        "datasource_item": {"item": {"question": f"Is {number} even?", "correct_label": "yes", "level": 2}},
        "results": [{"name": "Match-0a1b2c3d-0000-4000-8000-0123456789ab", "passed": passed, "score": float(passed),
                     "type": "string-check-grader", "sample": None}],
        "sample": {
            "error": {"code": "server_error", "message": error} if error else None,
            "finish_reason": "stop", "model": "gpt-small" if run == "run_1" else "gpt-large",
            "input": [{"role": "user", "content": f"Q: Is {number} even?"}],
            "output": [] if error else [{"role": "assistant", "content": "yes"}],
            "max_completion_tokens": 9, "seed": 42, "temperature": 1.0, "top_p": 1.0,
            "usage": {"cached_tokens": 0, "completion_tokens": 1, "prompt_tokens": 7, "total_tokens": 8},
        },
    }  # fmt: skip


ITEMS = [
    item(0, "run_1", passed=True), item(1, "run_1", passed=False), item(0, "run_2", passed=True),
    item(1, "run_2", passed=True), item(2, "run_2", passed=False, error="503 Service Unavailable"),
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ITEMS),
        json.dumps({"object": "list", "data": ITEMS, "has_more": False}),
        json.dumps({"data": ITEMS, "object": "list"}, indent=1),
        "\n".join(map(json.dumps, ITEMS)),
    ],
    ids=["list", "page", "page of the SDK", "lines"],
)
def test_output_items_of_the_api_are_samples_and_graders_metrics(tmp_path: Path, text: str) -> None:
    path = tmp_path / "items.json"
    path.write_text(text)
    assert format_of(path) == "openai_evals"
    made = imported("openai-evals", tmp_path / "runs", path)
    assert means(made) == {
        ("gpt-small", "Match.pass"): (0.5, 2), ("gpt-large", "Match.pass"): (1, 2),
        ("gpt-small", "Match.score"): (0.5, 2), ("gpt-large", "Match.score"): (1, 2),
    }  # fmt: skip
    assert [scorer.name for scorer in made.run.scorers()] == ["Match"]
    first = next(made.run.samples())
    assert (first.turns[0].question, first.turns[0].golden, first.metadata["level"]) == ("Is 0 even?", "yes", 2)
    (failure,) = made.run.events_of(Failure)
    assert (failure.condition, failure.cls, failure.message) == (
        "gpt-large",
        "infrastructure",
        "503 Service Unavailable",
    )
    answer = next(made.run.events_of(Answer))
    assert answer.replies[0].usage == Usage(input_tokens=7, output_tokens=1, cache_read_tokens=0)
    assert answer.detail["prompt"] == [{"role": "user", "content": "Q: Is 0 even?"}]


def test_the_items_here_are_what_openais_own_type_reads() -> None:
    from openai.types.evals.runs import OutputItemListResponse  # takes a second, in each process that collects tests

    for whole in ITEMS:
        if whole["sample"]["error"] is None:
            sample = {**whole["sample"], "error": {"code": "", "message": ""}}
            OutputItemListResponse.model_validate({**whole, "sample": sample})


def test_two_graders_of_one_name_are_two_scorers(tmp_path: Path) -> None:
    first, second = (f"Match-0a1b2c3d-0000-4000-8000-{number:012}" for number in (1, 2))
    items = [item(number, "run_1", passed=True) for number in range(2)]
    for row in items:
        (result,) = row["results"]
        row["results"] = [{**result, "name": first}, {**result, "name": second, "passed": False, "score": 0.0}]
    path = tmp_path / "items.json"
    path.write_text(json.dumps(items))
    made = imported("openai-evals", tmp_path / "runs", path)
    assert [scorer.name for scorer in made.run.scorers()] == ["Match", "Match (2)"]
    assert sorted(means(made).values()) == [(0.0, 2), (0.0, 2), (1.0, 2), (1.0, 2)]


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("{}\n")
    with pytest.raises(BadDataset, match="neither a log of oaieval nor a list of output items"):
        imported("openai-evals", tmp_path / "runs", path)
