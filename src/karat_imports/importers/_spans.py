"""Reads the attributes and events of a span: OpenTelemetry's conventions for generative AI, old and
new, OpenLLMetry's flat ones, and OpenInference's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from karat.foreign import Json
from karat.records import JsonObject
from karat_imports.importers._chats import Message, messages, unpacked
from karat_imports.importers._traces import Kind, Span, answer_in, nested, plain, scored, tool_call

_OPERATIONS: dict[str | None, Kind] = {
    **dict.fromkeys(("invoke_agent", "invoke_workflow", "create_agent"), "agent"),
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "model"),
    "execute_tool": "tool",
}
_KINDS: dict[str, Kind] = {  # of OpenInference
    "AGENT": "agent",
    "LLM": "model",
    "TOOL": "tool",
}
_EVALUATION = "gen_ai.evaluation.result"
_DETAILS = "gen_ai.client.inference.operation.details"
_TOKENS: dict[str, tuple[str, ...]] = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
    ),
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_creation.input_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a span, or a record of a log that names the span."""

    name: str
    attributes: JsonObject
    body: object = None


def span_of(attributes: JsonObject, events: Sequence[Event], base: Span) -> Span:
    """A span with what it recorded.

    `base` has its place and times, why it failed ("" if it does not say), and an agent's name for
    spans without one.
    """
    known = Json(attributes)
    heard, said = _chats(attributes, events)
    operation = known.text("gen_ai.operation.name")
    named = (known.text("openinference.span.kind") or "").upper()
    kind = _OPERATIONS.get(operation) or _KINDS.get(named, "other")
    if named not in _KINDS and operation is None and known.text("gen_ai.request.model"):
        kind = "model"  # conventions before gen_ai.operation.name

    error = base.error
    call = None
    if error is not None:
        raised = [Json(event.attributes) for event in events if event.name == "exception"]
        thrown = [row.text("exception.message", "exception.type") for row in raised]

        # Without what an earlier part says
        problems: list[str] = []
        for part in (known.text("error.type"), error, *thrown):
            if part and not any(part in earlier for earlier in problems):
                problems.append(part)

        error = ": ".join(problems) or "error"

    if kind == "tool":
        call = tool_call(
            known.text("gen_ai.tool.name", "tool.name"),
            known.first("gen_ai.tool.call.arguments", "tool.parameters", "input.value"),
            returned=known.shown("gen_ai.tool.call.result", "output.value"),
            error=error,
        )

    evaluations: list[Mapping[str, object]] = []
    for event in events:
        if event.name == _EVALUATION:
            evaluations.append(event.attributes)

    if "gen_ai.evaluation.name" in attributes and not evaluations:
        evaluations = [attributes]
    scores = list(base.scores)
    for evaluation in evaluations:
        row = Json(dict(evaluation))
        detail = {}
        for key in row:
            if key.startswith("gen_ai.evaluation."):
                detail[key] = row[key]

        scores.append(
            scored(
                row.text("gen_ai.evaluation.name") or "evaluation",
                row.get("gen_ai.evaluation.score.value"),
                label=row.text("gen_ai.evaluation.score.label"),
                reason=row.text("gen_ai.evaluation.explanation"),
                detail=detail,
            )
        )

    reasons = attributes.get("gen_ai.response.finish_reasons")
    stop_reason = known.text("gen_ai.response.finish_reasons", "llm.finish_reason")
    if isinstance(reasons, list) and reasons:
        stop_reason = str(reasons[-1])

    metadata = base.metadata
    if (conversation := known.text("gen_ai.conversation.id", "session.id")) is not None:
        metadata = {"conversation": conversation}

    return msgspec.structs.replace(
        base,
        kind=kind,
        input=heard,
        output=said,
        asked=plain(attributes.get("input.value")),
        answered=answer_in(attributes.get("output.value")),
        agent=known.text("gen_ai.agent.name", "agent.name") or base.agent,
        model=known.text("gen_ai.request.model", "gen_ai.response.model", "llm.model_name"),
        stop_reason=stop_reason,
        usage=known.usage(**_TOKENS),
        dollars=known.number("llm.cost.total", low=0),
        error=error,
        call=call,
        call_id=known.text("gen_ai.tool.call.id", "tool_call.id"),
        scores=scores,
        metadata=metadata,
    )


def _chats(
    attributes: JsonObject, events: Sequence[Event]
) -> tuple[Sequence[Message], Sequence[Message]]:
    """What a model or an agent was told, and what it said."""
    sources = [attributes, *(event.attributes for event in events if event.name == _DETAILS)]
    heard: list[Message] = []
    said: list[Message] = []
    for source in sources:
        for key in ("gen_ai.input.messages", "gen_ai.prompt"):
            heard = heard or _written(source.get(key), "user")

        for key in ("gen_ai.output.messages", "gen_ai.completion"):
            said = said or _written(source.get(key), "assistant")

    for prefix in ("gen_ai.prompt", "llm.input_messages"):
        heard = heard or messages(nested(attributes, prefix))

    for prefix in ("gen_ai.completion", "llm.output_messages"):
        said = said or messages(nested(attributes, prefix))

    if not heard and not said:
        for event in events:
            role, of_event = _of_event(event)
            if role == "choice":
                said = [*said, *of_event]
            else:
                heard = [*heard, *of_event]

    return heard, said


def _written(value: object, role: str) -> list[Message]:
    """A chat in an attribute; a plain text is one message of the role."""
    value = unpacked(value)
    if isinstance(value, str) and value:
        return [Message(role=role, text=value)]
    return messages(value)


def _of_event(event: Event) -> tuple[str, list[Message]]:
    """The messages in an event of the older conventions: gen_ai.user.message, gen_ai.choice, …"""
    known = Json(event.attributes)
    if event.name == "gen_ai.content.prompt":
        return "user", _written(known.get("gen_ai.prompt"), "user")
    if event.name == "gen_ai.content.completion":
        return "choice", _written(known.get("gen_ai.completion"), "assistant")
    first, _, rest = event.name.partition(".")
    role = rest.partition(".")[0]
    if first != "gen_ai" or rest not in (
        "system.message", "user.message", "assistant.message", "tool.message", "choice",
    ):  # fmt: skip
        return "", []

    body = unpacked(known.get("gen_ai.event.content", event.body))
    row = Json({**event.attributes, **Json(body)})
    if isinstance(body, str):
        row = Json({**row, "content": body})
    shown = role
    if role == "choice":
        shown = "assistant"
    inner = unpacked(row.get("message"))
    if isinstance(inner, dict):
        row = Json({**row.without("message"), **inner})
    elif inner is not None:
        row = Json({**row.without("message"), "content": inner})

    if isinstance(content := unpacked(row.get("content")), list):
        row = Json({**row, "content": content})
    return role, messages([{**row, "role": shown}])
