"""Makes trials of traces: what tracing tools record of an application, as trees of spans.

A trace is one answer to one question. The question is what the user said last to the span nearest
to the root, the answer what that span, else the last one of an agent or a model, gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat.errors import BadOption
from karat.foreign import Json
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
)
from karat.records import JsonObject, Metric, Reply, ToolCall, Usage
from karat.sums import sum_of_known
from karat_imports.importers._chats import Message, arguments, question, tool_calls, unpacked
from karat_imports.importers._reading import (
    asked,
    digest,
    failure,
    grouped,
    recognized,
    repeats,
    sample_name,
    title,
    utc,
)

_MOST_PARENTS = 1000  # levels of a tree of spans
_DEEPEST = 16  # parts of a flat key
_VERDICTS = {"pass": True, "passed": True, "true": True}
_VERDICTS |= {"fail": False, "failed": False, "false": False}
_ANSWERS = (
    "output",
    "answer",
    "response",
    "result",
    "text",
    "content",
    "generation",
    "final_output",
)

Kind = Literal["agent", "model", "tool", "other"]
"""What a span is: "other" is a chain, a retrieval, a request, …"""

_Row = TypeVar("_Row")


class TraceOptions(BaseModel):
    """Which way scores are better, which traces do not record."""

    model_config = ConfigDict(extra="forbid")

    lower_is_better: list[str] = Field(default=[], description="scores for which lower is better")


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One operation within a trace. None, and what is empty: not recorded."""

    id: str
    parent: str | None = None
    kind: Kind = "other"
    started: float | None = None  # seconds since 1970
    ended: float | None = None
    input: Sequence[Message] = ()
    output: Sequence[Message] = ()
    asked: str | None = None  # where the input is no chat
    answered: str | None = None
    agent: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    dollars: float | None = None
    error: str | None = None
    call: ToolCall | None = None  # kind "tool"
    call_id: str | None = None
    scores: Sequence[ImportedScore] = ()
    sample: str | None = None  # id of the question in the tool's dataset
    golden: str | None = None
    condition: str | None = None  # what the tool calls an experiment
    prefix: str = ""  # of the condition's name, which tells files apart
    metadata: JsonObject = {}  # of the sample
    detail: JsonObject = {}


class Row(msgspec.Struct, frozen=True):
    """One part of a trace: a span, a score, what its tool has besides."""

    kind: str
    of: Json
    id: str = ""  # of the span


def scored(
    name: str,
    value: object,
    *,
    label: str | None = None,
    reason: str | None = None,
    judge: str | None = None,
    offline: bool = False,
    detail: JsonObject | None = None,
) -> ImportedScore:
    """One result of an evaluation. A label alone is a value only if it says pass or fail.

    >>> scored("helpful", None, label="pass").values, scored("helpful", 0.5).values
    ({'helpful': True}, {'helpful': 0.5})
    """
    found = Json({name: value}).score(name)
    if found is None:
        found = _VERDICTS.get((label or "").lower())
    return ImportedScore(
        scorer=name,
        values={name: found},
        labels={name: label} if label else {},
        reasons={name: reason},
        judge=judge,
        offline=offline,
        detail=detail or {},
    )


def tool_call(
    name: str | None,
    given: object,
    *,
    returned: str | None,
    error: str | None,
) -> ToolCall:
    """A call that is a span. What it returned counts only where it did not fail."""
    return ToolCall(
        tool=name or "",
        input=arguments(given),
        result=returned if error is None else None,
        error=error,
    )


def plain(value: object, usual: Sequence[str] = (), *, levels: int = 8) -> str | None:
    """The text in an input or an output that is no chat: itself, under a usual name, or alone."""
    value = unpacked(value)
    if isinstance(value, str):
        return value or None
    row = Json(value)
    key = asked(row)
    if usual:
        key = next((name for name in usual if row.text(name)), None)
    if key is None and len(row) == 1:
        key = next(iter(row))
    if key is None or not row.get(key) or not levels:
        return None
    if text := row.text(key):
        return text
    return plain(row[key], usual, levels=levels - 1)


def answer_in(value: object) -> str | None:
    """The same of an output."""
    return plain(value, _ANSWERS)


def with_scores(spans: Sequence[Span], scores: Mapping[str, Sequence[ImportedScore]]) -> list[Span]:
    """The spans with the scores under their ids; the first one has those of no span, too."""
    left = dict(scores)
    found = []
    for span in spans:
        own = [*left.pop(span.id, ()), *span.scores]
        found.append(msgspec.structs.replace(span, scores=own))

    if found:
        rest = [score for of_span in left.values() for score in of_span]
        found[0] = msgspec.structs.replace(found[0], scores=[*found[0].scores, *rest])

    return found


def run_of_traces(
    tool: str,
    paths: Sequence[Path],
    traces: Traces,
    read: Callable[[Sequence[Path], Traces], Iterable[ImportedTrial]],
    *,
    by: Callable[[Path, bytes], bool],
    otherwise: str,
    parquet: bool = True,
) -> ImportedRun:
    """One run of all files that are recognized. `read`: the trials in them, once they are asked
    for.
    """
    files = recognized(paths, traces.findings, by=by, otherwise=otherwise, parquet=parquet)
    return ImportedRun(
        name=named_after(files),
        tool=tool,
        trials=read(files, traces),
        conditions=traces.conditions,
        metrics=traces.metrics,
        sparse=True,
    )


def named_after(files: Sequence[Path]) -> str:
    """The name of a run: that of its file, of several that of their folder."""
    if len(files) > 1:
        return files[0].absolute().parent.name
    return title(files[0])


class Traces:
    """Trials of traces, with their conditions and metrics, which are complete at the end."""

    def __init__(self, findings: Findings, options: TraceOptions) -> None:
        self.conditions: dict[str, ImportedCondition] = {}
        self.metrics: dict[str, Sequence[Metric]] = {}
        self.findings = findings
        self._lower = options.lower_is_better
        self._higher: dict[str, None] = {}  # metrics whose direction nothing shows

    def trials(
        self,
        rows: Callable[[Findings], Iterator[tuple[str, str, _Row]]],
        spans_of: Callable[[list[_Row]], Sequence[Span]],
        *,
        without: str,
    ) -> Iterator[ImportedTrial]:
        """The trial of each trace, whose rows are grouped; what has no question is counted.

        `without`: what rows are whose spans are not in the files. Says at the end which way scores
        were taken. Raises BadOption for a metric that there is not.
        """
        for place, _, of_trace in grouped(rows, self.findings):
            # From the root on: by depth, then by their start, then as the file has them
            found = spans_of(of_trace)
            known: dict[str | None, Span] = {span.id: span for span in found}
            spans = sorted(found, key=lambda span: (len(_around(span, known)), span.started or 0.0))
            if not spans:
                self.findings.left_out(without, place)
            elif (trial := self._trial(place, spans)) is not None:
                yield trial

        if unknown := set(self._lower) - set(self.metrics):
            raise BadOption("--set lower_is_better", f"no metric is called '{min(unknown)}'")
        if assumed := [name for name in self._higher if name not in self._lower]:
            self.findings.note(
                f"taken to be better when higher: {', '.join(assumed)} (name others with --set "
                f"lower_is_better=[…])"
            )

    def _trial(self, place: str, spans: Sequence[Span]) -> ImportedTrial | None:
        said = (question(span.input) or span.asked for span in spans if span.kind != "tool")
        asked_for = next(filter(None, said), None)
        if asked_for is None:
            worked = any(span.kind != "other" for span in spans)
            problem = "trace without calls of a model or an agent"
            if worked:
                problem = "trace without the user's message: its content was not recorded"
            self.findings.left_out(problem, place)
            return None

        root = spans[0]
        golden = next(filter(None, (span.golden for span in spans)), None)
        identity = digest([asked_for, golden])
        named = next(filter(None, (span.sample for span in spans)), None)
        sample = named or sample_name(asked_for, identity)

        # The name of an experiment, else the agent with its model
        agent = next(filter(None, (span.agent for span in spans)), None)
        models = [span.model for span in spans if span.model]
        name = next(filter(None, (span.condition for span in spans)), None)
        if name is None:
            name = " · ".join(filter(None, (agent, *models[-1:]))) or "not named"
        condition = root.prefix + name
        self.conditions.setdefault(
            condition, ImportedCondition(model=models[-1] if models else None)
        )

        given = [score for span in spans for score in span.scores]
        scores: list[ImportedScore] = []
        for score, repeat in zip(given, repeats(score.scorer for score in given), strict=True):
            scores.append(msgspec.structs.replace(score, repeat=repeat))
            for name in score.values:
                if name not in self.metrics:
                    lower = name in self._lower
                    self.metrics[score.scorer] = ()
                    if lower:
                        self.metrics[score.scorer] = (Metric(name=name, direction="lower"),)
                    self._higher[name] = None

        failed = failure(root.error)
        return ImportedTrial(
            sample=sample,
            question=asked_for,
            golden=golden,
            condition=condition,
            reply=_reply(spans, failed),
            started=utc(root.started),
            seconds=_seconds(root),
            failure=failed,
            scores=scores,
            metadata=next((span.metadata for span in spans if span.metadata), {}),
            detail=root.detail,
        )


def _around(span: Span, known: Mapping[str | None, Span]) -> list[str]:
    """The ids of the spans around one, from its parent on."""
    around: list[str] = []
    above = known.get(span.parent)
    while above is not None and len(around) < _MOST_PARENTS:
        around.append(above.id)
        above = known.get(above.parent)

    return around


def _said(span: Span) -> str | None:
    texts = []
    for message in span.output:
        if message.role != "user" and message.text:
            texts.append(message.text)

    if texts:
        return texts[-1]
    return span.answered


def _answer(spans: Sequence[Span]) -> str | None:
    """What the root gave, else the last agent, else the last model."""
    if (text := _said(spans[0])) is not None:
        return text
    for kind in ("agent", "model"):
        of_kind = sorted((s for s in spans if s.kind == kind), key=lambda s: s.ended or 0.0)
        for span in reversed(of_kind):
            if (text := _said(span)) is not None:
                return text

    return None


def _reply(spans: Sequence[Span], failed: ImportedFailure | None) -> Reply | None:
    # The calls of models, without those around another: a framework's and a provider's library
    # may both record one
    known: dict[str | None, Span] = {span.id: span for span in spans}
    calls_of_models = [span for span in spans if span.kind == "model"]
    around: set[str] = set()
    for span in calls_of_models:
        around.update(_around(span, known))

    models = [span for span in calls_of_models if span.id not in around]

    text = _answer(spans)
    if text is None and failed is not None:
        return None
    last = max(models, key=lambda span: span.ended or 0.0, default=spans[0])
    stop = last.stop_reason or next(
        (message.finish_reason for message in reversed(last.output) if message.finish_reason), None
    )
    if text is None:
        stop = "not_recorded"

    # The tokens of all calls of models; one that a call does not record is not known
    sums: dict[str, int | None] = {}
    for name in Usage.__struct_fields__:
        counts = [getattr(model.usage or Usage(), name) for model in models]
        if counts and None not in counts:
            sums[name] = sum(filter(None, counts))

    usage = spans[0].usage
    if any(count is not None for count in sums.values()):
        usage = Usage(**sums)

    dollars = spans[0].dollars
    if dollars is None:
        dollars = sum_of_known(span.dollars for span in models)

    return Reply(
        text=text or "",
        tool_calls=_calls(spans, models),
        usage=usage,
        dollars=dollars,
        model=last.model,
        stop_reason=stop,
    )


def _calls(spans: Sequence[Span], models: Sequence[Span]) -> tuple[ToolCall, ...]:
    """The calls that are spans, in the order of their start; else those in the models' chats.

    What a span does not record of a call, the chat may.
    """
    chat = [message for span in models for message in (*span.input, *span.output)]
    tools = [span for span in spans if span.call is not None]
    if not tools:
        return tool_calls(chat)
    inputs = {call.id: call.input for message in chat for call in message.calls if call.id}
    results = {}
    for message in chat:
        for id_, text in message.results:
            if id_:
                results[id_] = text

    made = []
    for span in sorted(tools, key=lambda span: span.started or 0.0):
        call = span.call or ToolCall(tool="")
        if not call.input and span.call_id in inputs:
            call = msgspec.structs.replace(call, input=inputs[span.call_id])
        if call.result is None and call.error is None and span.call_id in results:
            call = msgspec.structs.replace(call, result=results[span.call_id])
        if call.milliseconds is None and (seconds := _seconds(span)) is not None:
            call = msgspec.structs.replace(call, milliseconds=1000 * seconds)
        made.append(call)

    return tuple(made)


def _seconds(span: Span) -> float | None:
    if span.started is None or span.ended is None or span.ended < span.started:
        return None
    return span.ended - span.started


def moment(text: object) -> float | None:
    """Seconds since 1970 from ISO 8601 (UTC where it names no zone); None: it is no time."""
    try:
        known = datetime.fromisoformat(str(text))
        if known.tzinfo is None:
            known = known.replace(tzinfo=UTC)
        return known.timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def nested(attributes: Mapping[str, object], prefix: str) -> list[object]:
    """The list under flat keys: "PREFIX.0.role", "PREFIX.0.content", …

    >>> nested({"p.0.role": "user", "p.1.calls.0.name": "f"}, "p")
    [{'role': 'user'}, {'calls': [{'name': 'f'}]}]
    """
    tree: dict[str, object] = {}
    for key, value in attributes.items():
        if not key.startswith(f"{prefix}."):
            continue
        at = tree
        *above, last = key[len(prefix) + 1 :].split(".")[:_DEEPEST]
        for part in above:
            below = at.setdefault(part, {})
            if not isinstance(below, dict):
                break
            at = below
        else:
            at[last] = value

    listed = _listed(tree)
    if isinstance(listed, list):
        return listed
    return []


def _listed(tree: object) -> object:
    """Objects whose keys are numbers become lists."""
    if not isinstance(tree, dict):
        return tree
    inner = {key: _listed(value) for key, value in tree.items()}
    if inner and all(key.isdecimal() and len(key) < 7 for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner
