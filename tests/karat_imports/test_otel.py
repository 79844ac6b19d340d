"""Traces of OpenTelemetry become trials: by attributes, by events, by logs, and with their evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means

from karat.errors import BadDataset, BadOption
from karat.records import Answer, Failure, Score, ToolCall, Usage
from karat_imports.imported import format_of, import_results

TRACES, LOGS, SDK = (FILES / "otel" / name for name in ("traces.jsonl", "logs.jsonl", "sdk.json"))
DESK, PLAIN = "desk · small-1", "help-desk 1.4 · small-1"


def attributes(**values: Any) -> list[dict[str, Any]]:
    return [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in values.items()]


def chat(question: str, answer: str, **values: Any) -> dict[str, Any]:
    heard, said = ([{"role": role, "content": text}] for role, text in (("user", question), ("assistant", answer)))
    texts = {"gen_ai__input__messages": json.dumps(heard), "gen_ai__output__messages": json.dumps(said)}
    listed = attributes(gen_ai__operation__name="chat", gen_ai__request__model="m", **texts)
    return {"traceId": "aa", "spanId": "01", "name": "chat m", "attributes": listed} | values


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def written(path: Path, *objects: object, indent: int | None = None) -> Path:
    path.write_text("\n".join(json.dumps(one, indent=indent) for one in objects))
    return path


def test_a_trace_is_an_answer_with_its_calls_tokens_and_time(tmp_path: Path) -> None:
    made = imported("otel", tmp_path, TRACES, LOGS)
    answer = next(one for one in made.run.events_of(Answer) if one.condition == DESK)
    (reply,) = answer.replies
    assert (reply.text, reply.model, reply.stop_reason, answer.seconds) == (
        "It was sent on Tuesday.", "small-1", "stop", 2.0,
    )  # fmt: skip
    assert reply.usage == Usage(input_tokens=60, output_tokens=14), "of the models, not of the agent around them"
    assert reply.tool_calls == (
        ToolCall(tool="lookup", input={"order": 7}, result="sent on Tuesday", milliseconds=500.0),
    )
    assert [sample.turns[0].question for sample in made.run.samples()] == ["Where is order 7?", "Do you ship to Rome?"]
    assert made.run.info.conditions.keys() == {DESK, PLAIN}


def test_events_and_logs_of_the_older_conventions_hold_the_messages(tmp_path: Path) -> None:
    answers = imported("otel", tmp_path, TRACES, LOGS).run.events_of(Answer)
    found = {one.replies[0].text: one.replies[0].stop_reason for one in answers if one.condition == PLAIN}
    assert found == {"Yes.": "stop", "Yes, and": "length"}


def test_an_error_of_the_root_is_a_failure_of_its_class(tmp_path: Path) -> None:
    (failure,) = imported("otel", tmp_path, TRACES, LOGS).run.events_of(Failure)
    assert (failure.cls, failure.message, failure.condition) == ("infrastructure", "429 Too Many Requests", DESK)


def test_evaluations_are_metrics_wherever_they_are_recorded(tmp_path: Path) -> None:
    made = imported("otel", tmp_path, TRACES, LOGS)
    assert means(made) == {
        (DESK, "helpful"): (0.75, 1), (DESK, "polite"): (1.0, 1), (PLAIN, "toxicity"): (0.1, 1),
        (DESK, "toxicity"): (None, 0), (PLAIN, "helpful"): (None, 0), (PLAIN, "polite"): (None, 0),
    }  # fmt: skip
    helpful = next(one for one in made.run.events_of(Score) if one.scorer == "helpful")
    assert (helpful.labels, helpful.reasons) == ({"helpful": "good"}, {"helpful": "It says when."})
    (said,) = made.findings.notes
    assert said.startswith("taken to be better when higher: toxicity, polite, helpful")


def test_what_is_not_used_is_counted(tmp_path: Path) -> None:
    assert findings(imported("otel", tmp_path, TRACES, LOGS)) == {
        ("left out", "trace without calls of a model or an agent"): 1,
        ("left out", "records of a log whose trace is not in the files"): 1,
    }
    alone = findings(imported("otel", tmp_path, TRACES))
    assert alone["left out", "trace without the user's message: its content was not recorded"] == 1


def test_a_metric_can_be_named_lower_is_better(tmp_path: Path) -> None:
    (made,) = import_results("otel", [TRACES], tmp_path, options={"lower_is_better": ["toxicity"]})
    (scorer,) = made.run.scorers()
    assert scorer.metrics[0].direction == "lower"
    assert made.findings.notes == []
    with pytest.raises(BadOption, match="no metric is called 'x'"):
        list(import_results("otel", [TRACES], tmp_path, options={"lower_is_better": ["x"]}))


def test_spans_of_an_sdk_with_flat_attributes(tmp_path: Path) -> None:
    (answer,) = imported("otel", tmp_path, SDK).run.events_of(Answer)
    (reply,) = answer.replies
    assert (reply.text, answer.seconds, answer.condition) == ("We do.", 2.5, "small-1")
    assert reply.usage == Usage(input_tokens=8, output_tokens=3)


@pytest.mark.parametrize("indent", [None, 2])
def test_one_object_is_read_on_one_line_or_many(tmp_path: Path, indent: int | None) -> None:
    path = written(tmp_path / "t.json", otlp(chat("Hi?", "Yes.")), indent=indent)
    (answer,) = imported("otel", tmp_path / "runs", path).run.events_of(Answer)
    assert answer.replies[0].text == "Yes."
    assert format_of(path) == "otel"


def test_files_with_spans_are_told_apart(tmp_path: Path) -> None:
    before = written(tmp_path / "before.jsonl", otlp(chat("Hi?", "Yes.")))
    after = written(tmp_path / "after.jsonl", otlp(chat("Hi?", "No.", traceId="bb")))
    made = imported("otel", tmp_path / "runs", before, after)
    assert list(made.run.info.conditions) == ["before: m", "after: m"]
    assert (made.run.info.plan.samples, made.run.info.plan.repetitions) == (1, 1)


def test_a_call_that_two_libraries_record_counts_once(tmp_path: Path) -> None:
    tokens = attributes(gen_ai__operation__name="chat")
    tokens += [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": 5}}]
    inner = {"traceId": "aa", "spanId": "02", "parentSpanId": "01", "name": "chat", "attributes": tokens}
    outer = chat("Hi?", "Yes.")
    outer["attributes"] += tokens[1:]
    path = written(tmp_path / "t.jsonl", otlp(outer, inner))
    (answer,) = imported("otel", tmp_path / "runs", path).run.events_of(Answer)
    assert answer.replies[0].usage == Usage(input_tokens=5)


def test_spans_in_a_circle_and_deep_values_end(tmp_path: Path) -> None:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(200):
        value = {"arrayValue": {"values": [value]}}
    first = chat("Hi?", "Yes.", parentSpanId="02")
    first["attributes"].append({"key": "deep", "value": value})
    path = written(tmp_path / "t.jsonl", otlp(first, chat("Hi?", "No.", spanId="02", parentSpanId="01")))
    assert len(list(imported("otel", tmp_path / "runs", path).run.events_of(Answer))) == 1


def test_other_files_are_refused_and_broken_lines_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "t.json", {"spans": []})
    with pytest.raises(BadDataset, match="no traces of OpenTelemetry"):
        imported("otel", tmp_path / "runs", path)
    path.write_text(
        json.dumps(otlp(chat("Hi?", "Yes."))) + '\n{"resourceSpans": [\n{"a": 1}\n{"resourceMetrics": []}\n'
    )
    assert findings(imported("otel", tmp_path / "runs", path)) == {
        ("unreadable", "line with text that is not JSON"): 1,
        ("unreadable", "span without a trace or an id"): 1,
        ("left out", "metrics"): 1,
    }
