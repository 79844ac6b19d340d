"""`karat import langsmith`: runs, examples and feedback exported from LangSmith.

Source of the formats: `langsmith.schemas` (Run, Example, Feedback) of langsmith-sdk, as JSON, JSON
Lines or Parquet; rows of an experiment with `run`, `example` and `evaluation_results`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from karat.foreign import Json
from karat.formats import text_of
from karat.importers import Findings, ImportedRun, ImportedScore, ImportedTrial
from karat.records import Usage
from karat_imports.importers._chats import messages, unpacked
from karat_imports.importers._records import numeric, rows_of, whole
from karat_imports.importers._traces import (
    Kind,
    Row,
    Span,
    TraceOptions,
    Traces,
    answer_in,
    moment,
    plain,
    run_of_traces,
    scored,
    tool_call,
    with_scores,
)

__all__ = ["Langsmith"]

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
        yield run_of_traces(
            "langsmith",
            paths,
            Traces(findings, self._options),
            _trials,
            by=self.recognizes,
            otherwise="holds no runs, examples or feedback of LangSmith",
        )


def _trials(files: Sequence[Path], traces: Traces) -> Iterator[ImportedTrial]:
    examples: dict[str, str] = {}  # id → the reference output
    owners: dict[str, str] = {}  # run → trace
    for _, trace, row in rows_of(files, _rows, Findings()):
        if row.kind == "example" and (golden := answer_in(row.of.get("outputs"))):
            examples[row.of.text("id") or ""] = golden
        if row.kind == "run":
            owners[row.of.text("id", "run_id") or ""] = trace

    def by_trace(found: Findings) -> Iterator[tuple[str, str, Row]]:
        for place, trace, row in rows_of(files, _rows, found):
            if row.kind == "run":
                yield place, trace, row
            elif row.kind == "feedback":
                yield place, owners.get(row.of.text("run_id") or "", trace), row

    yield from traces.trials(
        by_trace,
        lambda rows: _spans(rows, examples),
        without="feedback for a run that is not in the files",
    )


def _rows(place: str, row: Json, found: Findings) -> Iterator[tuple[str, str, Row]]:
    """The runs, examples and feedback in a record."""
    if row.at("run") and "run_type" not in row:  # a row of an experiment
        run = row.at("run")
        id_ = run.text("id") or place
        yield from _rows(place, Json({"id": id_, "run_type": "chain", **run}), found)
        if row.at("example"):
            yield from _rows(place, Json({"dataset_id": "", **row.at("example")}), found)
        for feedback in row.at("evaluation_results").list("results"):
            yield place, id_, Row("feedback", Json({"run_id": id_, **feedback}))
    elif "run_type" in row and (own := row.text("id", "run_id")) is not None:
        trace = row.text("trace_id") or own
        yield place, trace, Row("run", Json(row.without("child_runs")))
        for child in row.list("child_runs"):
            yield from _rows(place, Json({"trace_id": trace, **child}), found)
    elif "key" in row and ("run_id" in row or "trace_id" in row):
        yield place, row.text("trace_id", "run_id") or "", Row("feedback", row)
    elif "dataset_id" in row and row.text("id") is not None:
        yield place, "", Row("example", row)
    else:
        found.lose("record that is no run, example or feedback", place)


def _spans(rows: Sequence[Row], examples: Mapping[str, str]) -> list[Span]:
    feedback: dict[str, list[ImportedScore]] = {}
    for given in (row.of for row in rows if row.kind == "feedback"):
        value = given.get("score")
        if not isinstance(value, bool):
            value = numeric(given, "score")
        source = Json(unpacked(given.get("feedback_source")))
        feedback.setdefault(given.text("run_id") or "", []).append(
            scored(
                given.text("key") or "feedback",
                value,
                label=given.text("value"),
                reason=given.text("comment"),
                detail={"source": source.text("type"), "correction": given.get("correction")},
            )
        )

    spans = []
    for run in (row.of for row in rows if row.kind == "run"):
        known = {score.scorer for score in feedback.get(run.text("id", "run_id") or "", ())}
        heard = unpacked(run.get("inputs"))
        said = unpacked(run.get("outputs"))
        extra = Json(unpacked(run.get("extra")))
        kind: Kind = _KINDS.get(run.text("run_type") or "", "other")
        error = run.text("error")
        parent = run.text("parent_run_id")
        call = None
        if error is None and run.text("status") == "error":
            error = "error"
        if kind == "tool":
            returned = None if said is None else answer_in(said) or text_of(said)
            call = tool_call(run.text("name"), heard, returned=returned, error=error)

        example = run.text("reference_example_id")
        experiment = agent = None
        if parent is None and example is not None:
            experiment = run.text("session_name", "project_name", "session_id")
        if parent is None:
            agent = run.text("name")

        input_tokens = whole(run, "prompt_tokens", "input_tokens")
        output_tokens = whole(run, "completion_tokens", "output_tokens")
        usage = None
        if input_tokens or output_tokens:  # 0 where they are not known
            details = Json(unpacked(run.get("prompt_token_details")))
            usage = Usage(
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cache_read_tokens=whole(details, "cache_read"),
            )

        # The means of its feedback, where the feedback itself is not in the files
        stats = Json(unpacked(run.get("feedback_stats")))
        means = []
        for key in stats:
            if key not in known:
                means.append(scored(key, numeric(stats.at(key), "avg"), detail=stats.at(key)))

        spans.append(
            Span(
                id=run.text("id", "run_id") or "",
                parent=parent,
                kind=kind,
                started=moment(run.text("start_time")),
                ended=moment(run.text("end_time")),
                input=messages(heard),
                output=messages(said),
                asked=plain(heard),
                answered=answer_in(said),
                agent=agent,
                model=extra.at("metadata").text("ls_model_name")
                or extra.at("invocation_params").text("model", "model_name"),
                usage=usage,
                dollars=numeric(run, "total_cost"),
                error=error,
                call=call,
                scores=means,
                sample=example,
                golden=examples.get(example or ""),
                condition=experiment,
            )
        )

    return with_scores(spans, feedback)
