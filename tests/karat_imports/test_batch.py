"""Requests and results of batches are joined by their ids, whatever order and model they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.karat_imports.imported import FILES, findings, imported

from karat.errors import BadDataset
from karat.records import Answer, Failure, ToolCall, Usage
from karat_imports.imported import format_of

BATCH = FILES / "batch"


def test_results_are_answers_to_the_questions_of_their_requests(tmp_path: Path) -> None:
    made = imported("batch", tmp_path, BATCH)
    questions = {one.id: one.turns[0].question for one in made.run.samples()}
    found = {(questions[one.sample], one.condition): one.replies[0] for one in made.run.events_of(Answer)}
    assert {key: (reply.text, reply.stop_reason) for key, reply in found.items()} == {
        ("Where is order 7?", "small-1"): ("", "tool_calls"),
        ("Where is order 7?", "large-1"): ("On its way.", "stop"),
        ("Do you ship to Rome?", "small-1"): ("Yes, and", "length"),
        ("q-9", "small-1"): ("Found.", None),
        ("Hi?", "claude-made"): ("Hello.", "end_turn"),
    }  # fmt: skip
    asked = found["Where is order 7?", "small-1"]
    assert asked.tool_calls == (ToolCall(tool="lookup", input={"order": 7}),)
    assert asked.usage == Usage(input_tokens=12, output_tokens=5, cache_read_tokens=4, reasoning_tokens=2)
    assert asked.model == "small-1-2026-01-01"
    hello = found["Hi?", "claude-made"]
    assert hello.usage == Usage(input_tokens=10, output_tokens=2, cache_read_tokens=7, cache_write_tokens=0)
    assert made.counts == {"answers": 5, "failures": 3, "scores": 0, "not run": 1}


def test_a_request_without_an_answer_is_a_failure_of_its_class(tmp_path: Path) -> None:
    made = imported("batch", tmp_path, BATCH)
    assert {(one.sample, one.cls, one.kind, one.message) for one in made.run.events_of(Failure)} == {
        ("q-3", "infrastructure", "error", "429: rate_limit_exceeded: Rate limit reached"),
        ("a-2", "agent", "error", "invalid_request_error: messages: at least one is required"),
        ("a-3", "infrastructure", "expired", "the request was expired"),
    }
    changed = "result whose request is not in the files: its id is asked"
    assert findings(made) == {("changed", changed): 1}


def test_further_choices_and_broken_lines_are_counted(tmp_path: Path) -> None:
    choices = [{"message": {"role": "assistant", "content": text}} for text in "ab"]
    row = {"custom_id": "x", "response": {"status_code": 200, "body": {"model": "m", "choices": choices}}}
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(row) + '\n{"response": {}}\n{"custom_id": "y", "response"\n')
    made = imported("batch", tmp_path / "runs", path)
    assert [one.text for one in made.run.events_of(Answer)] == ["a"]
    assert findings(made)["left out", "choices of an answer after the first"] == 1
    assert findings(made)["unreadable", "line without a custom_id"] == 1
    assert findings(made)["unreadable", "line with text that is not JSON"] == 1


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ({"incomplete_details": {"reason": "max_output_tokens"}}, None),
        ({"stop_reason": "max_output_tokens"}, None),
        ({"choices": [{"message": {"role": "assistant", "content": "a"}, "finish_reason": "max_output_tokens"}]}, None),
        ({"choices": [{"text": "a", "finish_reason": "max_output_tokens"}], "content": ""}, None),
        ({"error": {"code": "batch_expired"}}, ("infrastructure", "expired", "batch_expired")),
        ({"error": {"type": "batch_expired", "message": "too late"}}, ("infrastructure", "expired", "too late")),
        ({"error": {"message": "no"}}, ("agent", "error", "no")),
    ],
)
def test_why_an_answer_ended_or_is_missing(tmp_path: Path, body: Any, failure: Any) -> None:
    row = {"custom_id": "x", "response": {"status_code": 200, "body": {"model": "m", **body}}}
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(row) + "\n")
    made = imported("batch", tmp_path / "runs", path)
    stops = [one.replies[0].stop_reason for one in made.run.events_of(Answer)]
    failures = [(one.cls, one.kind, one.message) for one in made.run.events_of(Failure)]
    assert (stops, failures) == (([], [failure]) if failure else (["max_output_tokens"], []))


def test_the_files_are_recognized_and_others_refused(tmp_path: Path) -> None:
    assert {format_of(path) for path in BATCH.glob("*.jsonl")} == {"batch"}
    other = tmp_path / "other.jsonl"
    other.write_text('{"custom": 1}\n')
    with pytest.raises(BadDataset, match="no lines of a batch"):
        imported("batch", tmp_path / "runs", other)
