"""`karat import langsmith`: runs, examples and feedback exported from LangSmith.

Source of the formats: `langsmith.schemas` (Run, Example, Feedback) of langsmith-sdk, as JSON, JSON
Lines or Parquet; rows of an experiment with `run`, `example` and `evaluation_results`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from karat.formats import text_of
from karat.importers import Findings, ImportedRun, ImportedScore, ImportedTrial
from karat.records import ToolCall, Usage
from karat_imports.importers._chats import arguments, messages, unpacked
from karat_imports.importers._reading import Json, bad_file, each_readable, opened
from karat_imports.importers._records import numeric, rows_of, whole
from karat_imports.importers._traces import (
    Kind,
    Span,
    TraceOptions,
    Traces,
    answer_in,
    grouped,
    moment,
    plain,
    run_of_traces,
    scored,
)

__all__ = ["Langsmith"]

_HEAD = 2**16  # bytes
_RUN = re.compile(rb"\brun_type\b")
_TRACE = re.compile(rb"\b(?:trace_id|dotted_order|reference_example_id|session_id)\b")
_FEEDBACK = re.compile(rb'"feedback_source"|"evaluation_results"\s*:\s*\{\s*"results"')
_EXAMPLE = re.compile(rb'\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"dataset_id"\s*:')
_KINDS: dict[str, Kind] = {"llm": "model", "tool": "tool"}


class Langsmith:
    """Runs, examples and feedback exported from LangSmith (JSON, JSON Lines, Parquet): experiments,
    else agents with their models, are conditions, feedback is a metric.
    """

    Options = TraceOptions

    def __init__(self, options: TraceOptions) -> None:
        self._options = options

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        runs = _RUN.search(head) is not None and _TRACE.search(head) is not None
        return runs or any(known.search(head) for known in (_FEEDBACK, _EXAMPLE))

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run of all files: feedback and examples belong to the runs of all."""
        files = each_readable(paths, _checked, findings)
        yield run_of_traces("langsmith", files, self._options, findings, _trials)


class _Row(msgspec.Struct, frozen=True):
    kind: Literal["run", "feedback", "example"]
    of: Json


def _checked(path: Path) -> Path:
    with opened(path) as file:
        head = file.read(_HEAD)
    if path.suffix != ".parquet" and not Langsmith.recognizes(path, head):
        raise bad_file(path, "holds no runs, examples or feedback of LangSmith")
    return path


def _trials(files: Sequence[Path], traces: Traces, findings: Findings) -> Iterator[ImportedTrial]:
    examples: dict[str, str] = {}  # id → the reference output
    owners: dict[str, str] = {}  # run → trace
    for _, trace, row in rows_of(files, _rows, Findings()):
        if row.kind == "example" and (golden := answer_in(row.of.raw.get("outputs"))):
            examples[row.of.text("id") or ""] = golden
        if row.kind == "run":
            owners[row.of.text("id", "run_id") or ""] = trace

    def by_trace(found: Findings) -> Iterator[tuple[str, str, _Row]]:
        for place, trace, row in rows_of(files, _rows, found):
            if row.kind == "run":
                yield place, trace, row
            elif row.kind == "feedback":
                yield place, owners.get(row.of.text("run_id") or "", trace), row

    for place, of_trace in grouped(by_trace, findings):
        spans = _spans(of_trace, examples)
        if spans:
            yield from traces.trials([(place, spans)])
        else:
            findings.left_out("feedback for a run that is not in the files", place)

    traces.finish()


def _rows(place: str, row: Json, found: Findings) -> Iterator[tuple[str, str, _Row]]:
    """The runs, examples and feedback in a record."""
    if row.at("run").raw and "run_type" not in row.raw:  # a row of an experiment
        run = row.at("run")
        id_ = run.text("id") or place
        yield from _rows(place, Json({"id": id_, "run_type": "chain", **run.raw}), found)
        if row.at("example").raw:
            yield from _rows(place, Json({"dataset_id": "", **row.at("example").raw}), found)
        for feedback in row.at("evaluation_results").list("results"):
            yield place, id_, _Row("feedback", Json({"run_id": id_, **feedback.raw}))
    elif "run_type" in row.raw and (own := row.text("id", "run_id")) is not None:
        trace = row.text("trace_id") or own
        yield place, trace, _Row("run", Json(row.without("child_runs")))
        for child in row.list("child_runs"):
            yield from _rows(place, Json({"trace_id": trace, **child.raw}), found)
    elif "key" in row.raw and ("run_id" in row.raw or "trace_id" in row.raw):
        yield place, row.text("trace_id", "run_id") or "", _Row("feedback", row)
    elif "dataset_id" in row.raw and row.text("id") is not None:
        yield place, "", _Row("example", row)
    else:
        found.lose("record that is no run, example or feedback", place)


def _spans(rows: Sequence[_Row], examples: Mapping[str, str]) -> list[Span]:
    feedback: dict[str, list[ImportedScore]] = {}
    for row in rows:
        if row.kind == "feedback":
            feedback.setdefault(row.of.text("run_id") or "", []).append(_feedback(row.of))

    spans = []
    for row in rows:
        if row.kind == "run":
            scores = feedback.pop(row.of.text("id", "run_id") or "", [])
            spans.append(_span(row.of, scores, examples))

    rest = [score for of_run in feedback.values() for score in of_run]
    if spans and rest:
        spans[0] = msgspec.structs.replace(spans[0], scores=[*spans[0].scores, *rest])
    return spans


def _span(row: Json, scores: Sequence[ImportedScore], examples: Mapping[str, str]) -> Span:
    heard, said = unpacked(row.raw.get("inputs")), unpacked(row.raw.get("outputs"))
    extra = Json(unpacked(row.raw.get("extra")))
    kind: Kind = _KINDS.get(row.text("run_type") or "", "other")
    error, parent, call = row.text("error"), row.text("parent_run_id"), None
    if error is None and row.text("status") == "error":
        error = "error"
    if kind == "tool":
        call = ToolCall(tool=row.text("name") or "", input=arguments(heard), error=error)
        if said is not None and error is None:
            call = msgspec.structs.replace(call, result=answer_in(said) or text_of(said))
    example = row.text("reference_example_id")
    experiment = agent = None
    if parent is None and example is not None:
        experiment = row.text("session_name", "project_name", "session_id")
    if parent is None:
        agent = row.text("name")
    known = {score.scorer for score in scores}

    inputs = whole(row, "prompt_tokens", "input_tokens")
    outputs = whole(row, "completion_tokens", "output_tokens")
    if not inputs and not outputs:  # 0 where they are not known
        usage: Usage | None = None
    else:
        details = Json(unpacked(row.raw.get("prompt_token_details")))
        usage = Usage(
            input_tokens=inputs,
            output_tokens=outputs,
            cache_read_tokens=whole(details, "cache_read"),
        )

    return Span(
        id=row.text("id", "run_id") or "",
        parent=parent,
        kind=kind,
        started=moment(row.text("start_time")),
        ended=moment(row.text("end_time")),
        input=messages(heard),
        output=messages(said),
        asked=plain(heard),
        answered=answer_in(said),
        agent=agent,
        model=extra.at("metadata").text("ls_model_name")
        or extra.at("invocation_params").text("model", "model_name"),
        usage=usage,
        dollars=numeric(row, "total_cost"),
        error=error,
        call=call,
        scores=[*scores, *(one for one in _stats(row) if one.scorer not in known)],
        sample=example,
        golden=examples.get(example or ""),
        condition=experiment,
    )


def _stats(row: Json) -> Iterator[ImportedScore]:
    """The means of a run's feedback, where the feedback itself is not in the files."""
    stats = Json(unpacked(row.raw.get("feedback_stats")))
    for key in stats.raw:
        of_key = stats.at(key)
        yield scored(key, numeric(of_key, "avg"), detail=of_key.raw)


def _feedback(row: Json) -> ImportedScore:
    value = row.raw.get("score")
    if not isinstance(value, bool):
        value = numeric(row, "score")
    source = Json(unpacked(row.raw.get("feedback_source")))
    return scored(
        row.text("key") or "feedback",
        value,
        label=row.text("value"),
        reason=row.text("comment"),
        detail={"source": source.text("type"), "correction": row.raw.get("correction")},
    )
