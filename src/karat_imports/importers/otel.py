"""`karat import otel`: traces of OpenTelemetry with spans of generative AI.

Source of the formats: OTLP in JSON, one object a line (the collector's file exporter) or one
object; spans as the Python SDK's `to_json` writes them; semantic conventions for generative AI 1.26
to 1.41, and those of open-telemetry/semantic-conventions-genai; OpenInference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from karat.foreign import Json
from karat.formats import text_of
from karat.importers import Findings, ImportedRun, ImportedTrial
from karat.records import JsonObject
from karat_imports.importers._reading import beginning, is_json, items, lines, title, unique
from karat_imports.importers._spans import Event, span_of
from karat_imports.importers._traces import (
    Span,
    TraceOptions,
    Traces,
    moment,
    run_of_traces,
)

__all__ = ["Otel"]

_OTLP = re.compile(rb'\s*(?:\[\s*)?\{\s*"resource(?:Spans|Logs)"\s*:\s*\[')
_SDK = re.compile(
    rb'\s*(?:\[\s*)?\{\s*"name"\s*:[^{}]*"context"\s*:\s*\{\s*"trace_id"\s*:[^{}]*\}'
    rb'\s*,\s*"kind"\s*:\s*"SpanKind'
)
_DEEPEST = 32  # levels of an attribute
_UNNAMED = re.compile(r"unknown_service(?::.*)?", re.DOTALL)


class Otel:
    """Traces of OpenTelemetry with spans of generative AI (OTLP JSON, spans of an SDK): agents with
    their models are conditions, evaluation results are metrics.
    """

    Options = TraceOptions

    def __init__(self, options: TraceOptions) -> None:
        self._options = options

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _OTLP.match(head) is not None or _SDK.match(head) is not None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run. Files with spans are told apart; files of logs belong to the spans of all."""
        expected = "expected resourceSpans, resourceLogs or spans"
        yield run_of_traces(
            "opentelemetry",
            paths,
            Traces(findings, self._options),
            _trials,
            by=self.recognizes,
            otherwise=f"holds no traces of OpenTelemetry ({expected})",
            parquet=False,
        )


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """A span, or a record of a log, and the file that it is in."""

    file: Path
    id: str
    of: Json
    resource: JsonObject
    is_log: bool = False


def _trials(files: Sequence[Path], traces: Traces) -> Iterator[ImportedTrial]:
    def rows(found: Findings) -> Iterator[tuple[str, str, _Row]]:
        for path in files:
            yield from _rows(path, found)

    owners = {row.file for _, _, row in rows(Findings()) if not row.is_log}
    names = dict(zip(files, unique([title(path) for path in files]), strict=True))

    def spans_of(of_trace: list[_Row]) -> list[Span]:
        spans = [row for row in of_trace if not row.is_log]
        if not spans:
            return []
        prefix = ""
        if len(owners) > 1:
            prefix = f"{names[spans[0].file]}: "

        logs: dict[str, list[Event]] = {}
        for row in of_trace:
            if row.is_log:
                logs.setdefault(row.id, []).append(_event(row.of))

        recorded = [_span(row, logs.pop(row.id, []), prefix) for row in spans]
        for events in logs.values():  # they name no span, or one that is not here
            scores = span_of({}, events, Span(id="")).scores
            recorded[0] = msgspec.structs.replace(
                recorded[0], scores=[*recorded[0].scores, *scores]
            )

        return recorded

    yield from traces.trials(
        rows, spans_of, without="records of a log whose trace is not in the files"
    )


def _rows(path: Path, findings: Findings) -> Iterator[tuple[str, str, _Row]]:
    """Place, trace and row of everything in a file that belongs to a trace."""
    for place, whole in _objects(path, findings):
        if "resourceSpans" not in whole and "resourceLogs" not in whole:
            found = [(whole, whole.at("resource"), False)]
            if "resourceMetrics" in whole:
                findings.left_out("metrics", place)
                continue
        else:
            found = list(_in_otlp(whole))

        for row, resource, is_log in found:
            trace = row.text("traceId", "trace_id") or row.at("context").text("trace_id")
            id_ = row.text("spanId", "span_id") or row.at("context").text("span_id")
            if trace is None or (id_ is None and not is_log):
                if not is_log:
                    findings.lose("span without a trace or an id", place)
                continue

            yield (
                place,
                _hex(trace),
                _Row(
                    file=path,
                    id=_hex(id_ or ""),
                    of=row,
                    resource=_attributes(resource.get("attributes")),
                    is_log=is_log,
                ),
            )


def _objects(path: Path, findings: Findings) -> Iterator[tuple[str, Json]]:
    """The objects in a file: one a line, in a list, or one over many lines."""
    head = beginning(path)
    first, newline, _ = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    if first.startswith(b"["):
        yield from items(path, findings=findings)
        return

    if not newline or is_json(first):
        yield from lines(path, findings)
        return

    for key in ("resourceSpans", "resourceLogs"):
        if f'"{key}"'.encode() in head or key == "resourceSpans":
            for place, item in items(path, key, findings=findings):
                yield place, Json({key: [item]})


def _in_otlp(whole: Json) -> Iterator[tuple[Json, Json, bool]]:
    for part in whole.list("resourceSpans"):
        for scope in [*part.list("scopeSpans"), *part.list("instrumentationLibrarySpans")]:
            for span in scope.list("spans"):
                yield span, part.at("resource"), False

    for part in whole.list("resourceLogs"):
        for scope in part.list("scopeLogs"):
            for record in scope.list("logRecords"):
                yield record, part.at("resource"), True


def _span(row: _Row, logged: Sequence[Event], prefix: str) -> Span:
    span = row.of
    service = Json(row.resource)
    status = span.at("status")
    failed = status.get("code", status.get("status_code")) in (
        2, "2", "STATUS_CODE_ERROR", "ERROR", "StatusCode.ERROR",
    )  # fmt: skip
    name = service.text("service.name")
    error = None
    if name is not None and _UNNAMED.fullmatch(name):
        name = None
    if failed:
        error = status.text("message", "description") or ""
    base = Span(
        id=row.id,
        prefix=prefix,
        parent=_hex(span.text("parentSpanId", "parent_id") or "") or None,
        started=_time(span, "startTimeUnixNano", "start_time"),
        ended=_time(span, "endTimeUnixNano", "end_time"),
        error=error,
        agent=name and " ".join(filter(None, (name, service.text("service.version")))),
    )
    events = [*map(_event, span.list("events")), *logged]
    return span_of(_attributes(span.get("attributes")), events, base)


def _event(row: Json) -> Event:
    attributes = _attributes(row.get("attributes"))
    body = row.get("body")
    if isinstance(body, dict):
        body = _value(body, 0)
    return Event(
        name=row.text("name", "eventName", "event_name")
        or Json(attributes).text("event.name")
        or "",
        attributes=attributes,
        body=body,
    )


def _attributes(value: object) -> JsonObject:
    """Attributes as an object, from OTLP's list of keys and values or from an object."""
    if isinstance(value, dict):
        return value
    found: JsonObject = {}
    for pair in Json({"": value}).list(""):
        if (key := pair.text("key")) is not None:
            found[key] = _value(pair.get("value"), 0)

    return found


def _value(value: object, depth: int) -> object:
    """A value of OTLP, which names its type: {"intValue": "3"} is 3."""
    row = Json(value)
    if depth > _DEEPEST or not row:
        return None
    kind, inner = next(iter(row.items()))
    if kind == "intValue":
        return _int(inner)
    if kind == "arrayValue":
        found = []
        for item in row.at(kind).list("values"):
            found.append(_value(item, depth + 1))

        return found

    if kind == "kvlistValue":
        made = {}
        for pair in row.at(kind).list("values"):
            made[pair.text("key") or ""] = _value(pair.get("value"), depth + 1)

        return made

    if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        return inner
    return row  # the body of a log, as an SDK writes it


def _int(value: object) -> int | None:
    try:
        return int(text_of(value)[:40])
    except ValueError:
        return None


def _time(span: Json, nanoseconds: str, iso: str) -> float | None:
    if (number := _int(span.get(nanoseconds))) is not None:
        return number / 1e9
    return moment(span.get(iso))


def _hex(text: str) -> str:
    return text.removeprefix("0x").lower()
