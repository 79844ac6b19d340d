"""A tool's result as text: what an agent gets and what the journal keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from karat.records import JsonObject, ToolCall
from karat.redact import map_texts, without_surrogates

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from pydantic import BaseModel

__all__ = ["LARGEST_RESULT", "Outcome", "as_call", "as_json", "as_text", "bounded", "sendable"]

LARGEST_RESULT = 10 * 1024 * 1024
"""Bytes of UTF-8. A larger result is an error of the call: no agent could read it, and the journal would carry it."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request, in the protocol's words: a result, which may say that the tool failed, or an error."""

    result: Any = None  # CallToolResult
    error: str | None = None  # the request was refused, or its result cannot be taken
    code: int | None = None  # JSON-RPC's, where the server refused
    milliseconds: float | None = None


def as_call(
    server: str, tool: str, arguments: dict[str, object], outcome: Outcome, *, clean: Callable[[str], str]
) -> ToolCall:
    """The outcome as the journal keeps it. `clean` is applied to what went wrong."""
    text, outcome = None, bounded(outcome)
    error = clean(outcome.error) if outcome.error is not None else None
    if outcome.result is not None:
        text = as_text(outcome.result)
        if outcome.result.is_error:
            error = clean(text) or "the tool failed and did not say why"
    return ToolCall(
        tool=tool,
        server=server,
        input=arguments,
        result=text if error is None else None,
        error=error,
        milliseconds=outcome.milliseconds,
    )


def as_json(value: BaseModel) -> JsonObject:
    """A value of the SDK as the protocol writes it."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def sendable(arguments: JsonObject) -> JsonObject:
    """The arguments without halves of surrogate pairs: models do write them, and a session would break."""
    try:
        msgspec.json.encode(arguments)
    except UnicodeEncodeError:
        changed: JsonObject = map_texts(arguments, without_surrogates)
        return changed
    return arguments


def bounded(outcome: Outcome) -> Outcome:
    """The outcome, or an error in its place where its result is too much."""
    if outcome.result is None:
        return outcome
    size = len(as_text(outcome.result).encode("utf-8", "surrogatepass"))
    if size <= LARGEST_RESULT:
        return outcome
    error = f"the result has {size} bytes, more than the {LARGEST_RESULT} that are taken"
    return Outcome(error=error, milliseconds=outcome.milliseconds)


def as_text(result: CallToolResult) -> str:
    """Text blocks joined by line breaks, other blocks described; structured content as JSON where there is no text."""
    from mcp_types import TextContent

    parts = [_block(block) for block in result.content]
    has_text = any(isinstance(block, TextContent) and block.text for block in result.content)
    if not has_text and result.structured_content is not None:
        parts.append(msgspec.json.encode(result.structured_content).decode())
    return "\n".join(parts)


def _block(block: object) -> str:
    from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents

    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, (ImageContent, AudioContent)):
        return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
    if isinstance(block, ResourceLink):
        return f"[link {block.name}: {block.uri}]"
    if isinstance(block, EmbeddedResource):
        if isinstance(block.resource, TextResourceContents):
            return block.resource.text
        return f"[resource {block.resource.uri}, {len(block.resource.blob) * 3 // 4} bytes]"
    return f"[{getattr(block, 'type', type(block).__name__)}]"
