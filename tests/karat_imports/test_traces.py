"""Exports of Langfuse, LangSmith and Phoenix become trials: the same trace, whatever tool recorded it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means

from karat.errors import BadDataset
from karat.records import Answer, Failure, Score, ToolCall, Usage
from karat_imports.imported import format_of, import_results
from karat_imports.importers._chats import messages, question, tool_calls

LOOKUP = ToolCall(tool="lookup", input={"order": 7}, result="sent on Tuesday", milliseconds=500.0)


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answer_to(made: Any, text: str) -> Answer:
    return next(one for one in made.run.events_of(Answer) if one.replies[0].text == text)


@pytest.mark.parametrize(
    ("tool", "condition", "dollars", "usage"),
    [
        ("langfuse", "desk 1.4 · small-1", 0.003, Usage(input_tokens=68, output_tokens=14)),
        ("langsmith", "exp-a", 0.003, Usage(input_tokens=60, output_tokens=14)),
        ("phoenix", "desk · small-1", None, Usage(input_tokens=20, output_tokens=5)),
    ],
)
def test_a_trace_is_an_answer_with_its_calls_tokens_and_time(
    tmp_path: Path, tool: str, condition: str, dollars: float | None, usage: Usage
) -> None:
    made = imported(tool, tmp_path, FILES / tool)
    answer = answer_to(made, "It was sent on Tuesday.")
    (reply,) = answer.replies
    assert (answer.condition, answer.seconds, reply.model) == (condition, 2.0, "small-1")
    assert (reply.dollars, reply.usage) == (dollars, usage)
    (call,) = reply.tool_calls
    assert (call.tool, call.result, call.milliseconds) == (LOOKUP.tool, LOOKUP.result, LOOKUP.milliseconds)
    assert means(made)[condition, "helpful"] == (0.75, 1)
    helpful = next(one for one in made.run.events_of(Score) if one.values == {"helpful": 0.75})
    assert helpful.reasons == {"helpful": "It says when."}
    assert made.run.info.name == tool
    assert any(note.startswith("taken to be better when higher: ") for note in made.findings.notes)


@pytest.mark.parametrize(
    ("tool", "message", "condition"),
    [
        ("langfuse", "Request timed out", "desk 1.4"),
        ("langsmith", "RateLimitError('429 Too Many Requests')", "exp-b"),
        ("phoenix", "APITimeoutError: Request timed out.", "small-1"),
    ],
)
def test_an_error_is_a_failure_of_its_class(tmp_path: Path, tool: str, message: str, condition: str) -> None:
    (failure,) = imported(tool, tmp_path, FILES / tool).run.events_of(Failure)
    assert (failure.cls, failure.message, failure.condition) == ("infrastructure", message, condition)


def test_scores_of_langfuse_have_their_types_and_what_is_no_number_is_counted(tmp_path: Path) -> None:
    made = imported("langfuse", tmp_path, FILES / "langfuse")
    values = {name: (value, one.labels) for one in made.run.events_of(Score) for name, value in one.values.items()}
    assert (values["polite"], values["topic"]) == ((True, {"polite": "True"}), (0.0, {"topic": "shipping"}))
    assert findings(made) == {
        ("left out", "score of a session or of a dataset's run"): 1,
        ("left out", "score that is a text"): 1,
        ("left out", "scores of a trace that is not in the files"): 1,
    }
    assert means(made)["desk 1.4 · small-2", "helpful"] == (0.25, 1), "from the table beside the traces"


def test_experiments_of_langsmith_share_examples_with_their_golden_answers(tmp_path: Path) -> None:
    made = imported("langsmith", tmp_path, FILES / "langsmith")
    assert {one.id: (one.turns[0].question, one.turns[0].golden) for one in made.run.samples()} == {
        "e1": ("Where is order 7?", "Sent on Tuesday."), "e2": ("Do you ship to Rome?", "Yes, we do."),
    }  # fmt: skip
    assert list(made.run.info.conditions) == ["exp-c", "exp-a", "exp-b"]
    assert means(made)["exp-a", "brief"] == (0.5, 1), "feedback that is only in the run's statistics"
    assert findings(made) == {("left out", "feedback for a run that is not in the files"): 1}


def test_annotations_of_phoenix_belong_to_spans_or_traces(tmp_path: Path) -> None:
    made = imported("phoenix", tmp_path, FILES / "phoenix")
    assert (means(made)["small-2", "helpful"], means(made)["small-2", "brief"]) == ((0.25, 1), (1.0, 1))
    assert {scorer.name: scorer.offline for scorer in made.run.scorers()} == {"helpful": False, "brief": True}
    assert findings(made) == {("left out", "annotations of a span that is not in the files"): 1}


def test_a_metric_can_be_named_lower_is_better(tmp_path: Path) -> None:
    (made,) = import_results("phoenix", [FILES / "phoenix"], tmp_path, options={"lower_is_better": ["brief"]})
    directions = {metric.name: metric.direction for scorer in made.run.scorers() for metric in scorer.metrics}
    assert directions == {"helpful": "higher", "brief": "lower"}


@pytest.mark.parametrize("tool", ["langfuse", "langsmith", "phoenix"])
def test_the_files_are_recognized_and_others_refused(tmp_path: Path, tool: str) -> None:
    files = [path for path in (FILES / tool).iterdir() if path.suffix != ".md"]
    assert {format_of(path) for path in files} == {tool}
    other = written(tmp_path / "other.json", {"a": 1})
    assert format_of(other) is None
    with pytest.raises(BadDataset, match="holds no"):
        imported(tool, tmp_path / "runs", other)


def test_a_page_of_an_api_and_broken_records(tmp_path: Path) -> None:
    row = {
        "id": "o",
        "traceId": "t",
        "type": "GENERATION",
        "parentObservationId": None,
        "input": "Hi?",
        "output": "Yes.",
    }
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"data": [row, {"id": 3}, 4], "meta": {"page": 1}}))
    made = imported("langfuse", tmp_path / "runs", page)
    assert answer_to(made, "Yes.").sample.startswith("Hi?")
    assert findings(made) == {
        ("unreadable", "record that is no trace, observation or score"): 1,
        ("unreadable", "result not a JSON object"): 1,
    }


@pytest.mark.parametrize(
    "chat",
    [
        [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"n": 7}'}}]},
            {"role": "tool", "tool_call_id": "c", "content": "here"},
        ],
        [
            {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "find", "input": {"n": 7}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "here"}]},
        ],
        [
            {"role": "user", "parts": [{"type": "text", "content": "Where?"}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "find", "arguments": {"n": 7}}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "here"}]},
        ],
        [
            {"role": "user", "content": [{"text": "Where?"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "find", "input": {"n": 7}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "here"}]}}]},
        ],
        [[
            {"type": "human", "content": "Where?"},
            {"type": "ai", "content": "", "tool_calls": [{"name": "find", "args": {"n": 7}, "id": "c"}]},
            {"type": "tool", "content": "here", "tool_call_id": "c"},
        ]],
    ],
    ids=["openai", "anthropic", "otel", "bedrock", "langchain"],
)  # fmt: skip
def test_a_chat_says_the_same_in_every_shape(chat: list[Any]) -> None:
    read = messages(chat)
    assert question(read) == "Where?"
    assert tool_calls(read) == (ToolCall(tool="find", input={"n": 7}, result="here"),)
    assert messages({"messages": chat}) == messages(json.dumps(chat)) == read
