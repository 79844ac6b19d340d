"""`karat import langfuse`: traces, observations and scores exported from Langfuse.

Source of the formats: `langfuse.api.commons.types` of langfuse-python 4 (a trace as JSON, and pages
of the API), and the fields of exports to blob storage (JSON, JSON Lines, CSV, Parquet), which have
the same names in snake case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

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

__all__ = ["Langfuse"]

_MARKS = (b"parentObservationId", b"parent_observation_id", b'"htmlPath"')
_SCORE = re.compile(rb"observation_?[iI]d\b")
_SCORE_TYPE = re.compile(rb"data_?[tT]ype\b")
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_KINDS: dict[str, Kind] = {
    "AGENT": "agent",
    "GENERATION": "model",
    "TOOL": "tool",
}
_CACHED = ("input_cached_tokens", "cache_read_input_tokens", "input_cache_read")


class Langfuse:
    """Traces, observations and scores exported from Langfuse (JSON, JSON Lines, CSV, Parquet):
    traces with their models are conditions, scores are metrics.
    """

    Options = TraceOptions

    def __init__(self, options: TraceOptions) -> None:
        self._options = options

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        scores = _SCORE.search(head) is not None and _SCORE_TYPE.search(head) is not None
        return scores or any(mark in head for mark in _MARKS)

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run of all files: scores and observations belong to the traces of all."""
        yield run_of_traces(
            "langfuse",
            paths,
            Traces(findings, self._options),
            _trials,
            by=self.recognizes,
            otherwise="holds no traces, observations or scores of Langfuse",
        )


def _trials(files: Sequence[Path], traces: Traces) -> Iterator[ImportedTrial]:
    return traces.trials(
        partial(rows_of, files, _rows), _spans, without="scores of a trace that is not in the files"
    )


def _rows(place: str, row: Json, found: Findings) -> Iterator[tuple[str, str, Row]]:
    """The trace, the observation or the score in a record, and what is in the trace."""
    # The same with keys in snake case: exports differ
    row = Json({_CAPITAL.sub(r"_\1", key).lower(): value for key, value in row.items()})
    trace = row.text("trace_id")
    if "data_type" in row or ("string_value" in row and "type" not in row):
        if trace is None:
            found.left_out("score of a session or of a dataset's run", place)
        elif row.text("data_type") in ("TEXT", "CORRECTION"):
            found.left_out("score that is a text", place)
        else:
            yield place, trace, Row("score", row)
    elif trace is not None and row.text("id"):
        yield place, trace, Row("observation", row)
    elif (own := row.text("id")) is not None and "timestamp" in row:
        yield place, own, Row("trace", Json(row.without("observations", "scores")))
        for kind in ("observations", "scores"):
            inner = row.list(kind)
            if row.get(kind) and not inner:
                found.left_out(f"{kind} of a trace that are not in the file", place)
            for part in inner:
                yield from _rows(place, Json({"trace_id": own, **part}), found)
    else:
        found.lose("record that is no trace, observation or score", place)


def _spans(rows: Sequence[Row]) -> list[Span]:
    traces = []
    for row in rows:
        if row.kind == "trace":
            traces.append(row.of)

    observations = [row.of for row in rows if row.kind == "observation"]
    scores: dict[str, list[ImportedScore]] = {}
    for score in (row.of for row in rows if row.kind == "score"):
        kind = score.text("data_type")
        label = score.text("string_value")
        value = numeric(score, "value")
        shown: float | bool | None = value
        if kind == "BOOLEAN" and value in (0, 1):
            shown = bool(value)
        if kind == "CATEGORICAL" and label is None:
            label = score.text("value")
        scores.setdefault(score.text("observation_id") or "", []).append(
            scored(
                score.text("name") or "score",
                shown,
                label=label,
                reason=score.text("comment"),
                detail=score.without("name", "value", "string_value", "comment", "author_user_id"),
            )
        )

    spans = [_observation(row) for row in observations]
    if traces:
        # The root. It failed if it has no output, and an observation right below it failed
        trace = traces[-1]
        top = [span for span in spans if span.parent is None]
        started = moment(trace.text("timestamp"))
        ended = [span.ended for span in top if span.ended is not None]
        latency = numeric(trace, "latency")
        output = unpacked(trace.get("output"))
        error = None
        if output is None or output == "":
            error = next((span.error for span in top if span.error is not None), None)
        session = trace.text("session_id")
        end = max(ended, default=None)
        if started is not None and latency:
            end = started + latency
        root = Span(
            id=f"trace {trace.text('id')}",
            started=started,
            ended=end,
            input=messages(trace.get("input")),
            output=messages(output),
            asked=plain(trace.get("input")),
            answered=answer_in(output),
            agent=_named(trace, "name"),
            dollars=numeric(trace, "total_cost") or None,  # 0 where no price is known
            error=error,
            metadata={"conversation": session} if session else {},
            detail=trace.without("input", "output", "user_id"),
        )

        spans = [root, *(msgspec.structs.replace(s, parent=s.parent or root.id) for s in spans)]

    return with_scores(spans, scores)


def _named(row: Json, key: str) -> str | None:
    """A name with its version, or its release."""
    name = row.text(key)
    return name and " ".join(filter(None, (name, row.text("version", "release"))))


def _observation(row: Json) -> Span:
    kind: Kind = _KINDS.get((row.text("type") or "").upper(), "other")
    heard = row.get("input")
    said = row.get("output")
    error = None
    call = None
    if row.text("level") == "ERROR":
        error = row.text("status_message") or "error"
    if kind == "tool":
        returned = None
        if said is not None:
            returned = text_of(said)
        call = tool_call(row.text("name"), heard, returned=returned, error=error)

    session = row.text("session_id")
    metadata = dict[str, object]()
    if session:
        metadata = {"conversation": session}
    agent = _named(row, "trace_name")
    if kind == "agent":
        agent = _named(row, "name")

    details = Json(unpacked(row.get("cost_details")))
    known = numeric(row, "total_cost", "calculated_total_cost") or numeric(details, "total")
    return Span(
        id=row.text("id") or "",
        parent=row.text("parent_observation_id"),
        kind=kind,
        started=moment(row.text("start_time")),
        ended=moment(row.text("end_time")),
        input=messages(heard),
        output=messages(said),
        asked=plain(heard),
        answered=answer_in(said),
        agent=agent,
        model=row.text("provided_model_name", "model"),
        usage=_usage(row),
        dollars=known or None,
        error=error,
        call=call,
        metadata=metadata,
    )


def _usage(row: Json) -> Usage | None:
    """Tokens: those of the input and the output have several entries, which add up."""
    details = Json(unpacked(row.get("usage_details")))
    usage = Json(unpacked(row.get("usage")))
    if details:
        sums: dict[str, int | None] = {}
        for name, part in (("input_tokens", "input"), ("output_tokens", "output")):
            counts = []
            for key in details:
                if part in key:
                    counts.append(whole(details, key))

            if counts and None not in counts:
                sums[name] = sum(filter(None, counts))
            else:
                sums[name] = None

        return Usage(**sums, cache_read_tokens=whole(details, *_CACHED))

    if usage.text("unit") not in (None, "TOKENS"):
        return None
    heard = whole(usage, "input", "promptTokens") or whole(row, "prompt_tokens") or None
    said = whole(usage, "output", "completionTokens") or whole(row, "completion_tokens") or None
    if heard is None and said is None:  # 0 where they are not known
        return None
    return Usage(input_tokens=heard, output_tokens=said)
