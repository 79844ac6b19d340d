"""`karat import phoenix`: spans and annotations exported from Arize Phoenix.

Source of the formats: spans and annotations of Phoenix's REST API (`/v1/projects/…/spans`,
`/v1/span_annotations`), which its command line prints too; data frames of its Python client
(`get_spans_dataframe`, `get_span_annotations_dataframe`) saved as CSV, JSON or Parquet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from karat.foreign import Json
from karat.importers import Findings, ImportedRun, ImportedScore, ImportedTrial
from karat_imports.importers._chats import unpacked
from karat_imports.importers._records import flat, numeric, rows_of
from karat_imports.importers._spans import Event, span_of
from karat_imports.importers._traces import (
    Row,
    Span,
    TraceOptions,
    Traces,
    moment,
    run_of_traces,
    scored,
    with_scores,
)

__all__ = ["Phoenix"]

_SPAN = re.compile(rb"\bspan_kind\b.*\bstatus_code\b|\bstatus_code\b.*\bspan_kind\b", re.DOTALL)
_ANNOTATION = re.compile(rb"\bannotator_kind\b")


class Phoenix:
    """Spans and annotations exported from Arize Phoenix (JSON, JSON Lines, CSV, Parquet): agents
    with their models are conditions, annotations are metrics.
    """

    Options = TraceOptions

    def __init__(self, options: TraceOptions) -> None:
        self._options = options

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        spans = b"trace_id" in head and _SPAN.search(head) is not None
        return spans or (b"span_id" in head and _ANNOTATION.search(head) is not None)

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run of all files: annotations belong to the spans of all."""
        yield run_of_traces(
            "phoenix",
            paths,
            Traces(findings, self._options),
            _trials,
            by=self.recognizes,
            otherwise="holds no spans or annotations of Phoenix",
        )


def _trials(files: Sequence[Path], traces: Traces) -> Iterator[ImportedTrial]:
    owners: dict[str, str] = {}  # span → trace
    for _, trace, row in rows_of(files, _rows, Findings()):
        if row.kind == "span":
            owners[row.id] = trace

    def by_trace(found: Findings) -> Iterator[tuple[str, str, Row]]:
        for place, trace, row in rows_of(files, _rows, found):
            yield place, owners.get(row.id, trace), row

    yield from traces.trials(
        by_trace, _spans, without="annotations of a span that is not in the files"
    )


def _spans(rows: Sequence[Row]) -> list[Span]:
    scores: dict[str, list[ImportedScore]] = {}
    spans: list[Span] = []
    for row in rows:
        if row.kind == "annotation":
            result = Json({**row.of, **row.of.at("result")})
            kind = row.of.text("annotator_kind")
            scores.setdefault(row.id, []).append(
                scored(
                    row.of.text("name", "annotation_name") or "annotation",
                    numeric(result, "score", "result.score"),
                    label=result.text("label", "result.label"),
                    reason=result.text("explanation", "result.explanation"),
                    offline=kind == "CODE",
                    detail={"annotator_kind": kind, "metadata": row.of.get("metadata")},
                )
            )
            continue

        span = row.of
        error = None
        if span.text("status_code") == "ERROR":
            error = span.text("status_message") or ""
        base = Span(
            id=row.id,
            parent=span.text("parent_id"),
            started=moment(span.get("start_time")),
            ended=moment(span.get("end_time")),
            error=error,
        )

        columns = {}
        for key, value in span.items():
            if key.startswith("attributes."):
                columns[key.removeprefix("attributes.")] = value

        attributes = flat({**columns, **span.at("attributes")})
        attributes.setdefault("openinference.span.kind", span.text("span_kind"))
        events = []
        for event in Json({"events": unpacked(span.get("events"))}).list("events"):
            events.append(
                Event(name=event.text("name") or "", attributes=flat(event.at("attributes")))
            )

        spans.append(span_of(attributes, events, base))

    return with_scores(spans, scores)


def _rows(place: str, row: Json, found: Findings) -> Iterator[tuple[str, str, Row]]:
    """The span or annotation in a record, or the spans of a trace."""
    context = row.at("context")
    trace = context.text("trace_id") or row.text("context.trace_id", "trace_id")
    id_ = context.text("span_id") or row.text("context.span_id", "span_id", "index")
    if "annotator_kind" in row and id_ is not None:
        yield place, "", Row("annotation", row, id_)
    elif trace is not None and id_ is not None:
        yield place, trace, Row("span", row, id_)
        for annotation in row.list("annotations"):
            yield place, trace, Row("annotation", annotation, id_)
    elif inner := row.list("spans"):
        for span in inner:
            yield from _rows(place, span, found)
    elif "annotator_kind" in row and trace is not None:
        yield place, trace, Row("annotation", row)
    elif "annotator_kind" in row:
        found.left_out("annotation of a session or a document", place)
    else:
        found.lose("record that is no span or annotation", place)
