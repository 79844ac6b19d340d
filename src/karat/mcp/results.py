"""A tool's result as text: as given to an agent and kept in the journal."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from karat.records import Elicited, JsonObject, ToolCall
from karat.redact import Redactor, map_texts, without_surrogates

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, TextResourceContents
    from pydantic import BaseModel

LARGEST_RESULT = 10 * 1024 * 1024
"""Bytes of UTF-8.

A larger result is an error of the call: no agent could read it, and the journal would carry it.
"""

LONGEST_MESSAGE = 64 * 2**20
"""Bytes of one message, or line, between programs. A longer one ends their session: the start of
the next cannot be found.
"""

READS = {
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
}
"""What can be asked besides tools, and the SDK's type of the result."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one request, in the protocol's terms: a result, which may report a failed
    tool, or an error.
    """

    result: Any = None  # CallToolResult, or the method's type in READS
    error: str | None = None  # the request was refused, or its result is invalid
    code: int | None = None  # JSON-RPC's, if the server refused
    milliseconds: float | None = None
    elicited: tuple[Elicited, ...] = ()  # the server's questions to the user in between


def recorded_arguments(method: str, parameters: dict[str, object]) -> dict[str, object]:
    """What distinguishes a request from others of its method: not the client's description of
    itself.
    """
    if method in ("initialize", "server/discover"):
        return {}
    arguments = {key: value for key, value in parameters.items() if key != "_meta"}
    if method == "tools/call":
        return arguments | {"arguments": arguments.get("arguments") or {}}
    return arguments


def as_call(
    server: str,
    tool: str,
    arguments: dict[str, object],
    outcome: Outcome,
    *,
    clean: Callable[[str], str],
) -> ToolCall:
    """An outcome, `bounded` before, as kept in the journal. `clean` is applied to errors."""
    text = error = None
    if outcome.error is not None:
        error = clean(outcome.error)
    if outcome.result is not None:
        text = as_text(outcome.result)
        if getattr(outcome.result, "is_error", False):
            error = clean(text)

    if error == "":
        error = "the tool failed and did not say why"
    return ToolCall(
        tool=tool,
        server=server,
        input=arguments,
        result=text if error is None else None,
        error=error,
        milliseconds=outcome.milliseconds,
        elicited=tuple(
            msgspec.structs.replace(asked, message=clean(asked.message))
            for asked in outcome.elicited
        ),
    )


def failure_of(outcome: Outcome) -> str:
    """Why a request failed, in the server's words; empty if it did not."""
    failed = getattr(outcome.result, "is_error", False)
    return outcome.error or (as_text(outcome.result) if failed else "")


def masked(value: Any, redact: Redactor) -> Any:
    """An SDK value without secrets: a server may repeat what it is sent, and a model may read
    it.
    """
    if redact.active:
        text = value.model_dump_json(by_alias=True, exclude_unset=True)
    else:
        text = ""

    if redact(text) == text:
        return value
    return type(value).model_validate(
        redact.values(value.model_dump(mode="json", by_alias=True, exclude_unset=True))
    )


def as_json(value: BaseModel) -> JsonObject:
    """An SDK value in the protocol's form."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def content_of(result: BaseModel) -> JsonObject:
    """A result without its envelope, which depends on the version of the protocol."""
    return {key: value for key, value in as_json(result).items() if key not in _ENVELOPE}


def answer_of(result: BaseModel) -> JsonObject | None:
    """What a program reads of a result: structuredContent of a tool, None if it has none; else all
    of it.
    """
    from mcp_types import CallToolResult

    return result.structured_content if isinstance(result, CallToolResult) else content_of(result)


def misfit(error: BaseException) -> str:
    """What is wrong with a result, without its values: a scorer could find the answer in them."""
    from jsonschema import ValidationError as SchemaMisfit
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        errors = error.errors(include_url=False, include_input=False)
        # Of a union such as the blocks of a content, only the form of this `type`
        others = {fault["loc"] for fault in errors if fault["loc"][-1:] == ("type",)}
        first = min(
            errors,
            key=lambda fault: ((*fault["loc"][:-1], "type") in others, fault["loc"] not in others),
        )
        # Without the names of the SDK's types
        parts = map(str, first["loc"])
        where = ".".join(part for part in parts if not part[:1].isupper())
        message = first["msg"]
        message = message[:1].lower() + message[1:]
        return f"{where or 'it'}: {message}"
    if isinstance(cause := error.__cause__, SchemaMisfit):
        place = ["structuredContent", *map(str, cause.absolute_path)]
        return f"{'.'.join(place)} is not as `{cause.validator}` of the tool's outputSchema says"
    return str(error)


_ENVELOPE = ("_meta", "resultType", "ttlMs", "cacheScope")


def result_of(method: str, result: JsonObject | None) -> BaseModel | None:
    """A value in the protocol's form as an SDK value. `method`: `tools/call`, or one of READS."""
    import mcp_types

    if result is None:
        return None
    model: type[BaseModel] = getattr(mcp_types, READS.get(method, "CallToolResult"))
    return model.model_validate(result)


def sendable(arguments: JsonObject) -> JsonObject:
    """The arguments without lone surrogates: models do write them, and a session would break."""
    try:
        msgspec.json.encode(arguments)
    except UnicodeEncodeError:
        changed: JsonObject = map_texts(arguments, without_surrogates)
        return changed

    return arguments


def bounded(outcome: Outcome) -> Outcome:
    """The outcome, or an error instead if its result is too large."""
    texts = [outcome.error or ""]
    if outcome.result is not None:
        answer = answer_of(outcome.result)
        texts += as_text(outcome.result), msgspec.json.encode(answer).decode()
    size = max(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if size <= LARGEST_RESULT:
        return outcome
    error = f"the result has {size} bytes, more than the {LARGEST_RESULT} that are taken"
    return msgspec.structs.replace(outcome, result=None, error=error)


def as_text(result: BaseModel) -> str:
    """Text blocks joined by line breaks, other blocks described; structured content as JSON if
    there is no text.

    In a prompt each message follows its role; a list is JSON.
    """
    from mcp_types import CallToolResult, GetPromptResult, ReadResourceResult, TextContent

    if isinstance(result, ReadResourceResult):
        return "\n".join(map(_resource, result.contents))
    if isinstance(result, GetPromptResult):
        return "\n\n".join(
            f"{message.role}: {_block(message.content)}" for message in result.messages
        )

    if not isinstance(result, CallToolResult):
        return msgspec.json.encode(content_of(result)).decode()
    parts = [_block(block) for block in result.content]
    has_text = any(isinstance(block, TextContent) and block.text for block in result.content)
    if not has_text and result.structured_content is not None:
        parts.append(msgspec.json.encode(result.structured_content).decode())
    return "\n".join(parts)


def images_of(result: BaseModel) -> Iterator[tuple[str, bytes]]:
    """Media type and bytes of each image in a tool's result that models can be sent."""
    from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent

    for block in getattr(result, "content", ()):
        if isinstance(block, ImageContent):
            named, data = block.mime_type, block.data
        elif isinstance(block, EmbeddedResource) and isinstance(
            block.resource, BlobResourceContents
        ):
            named, data = block.resource.mime_type or "", block.resource.blob
        else:
            continue

        kind = named.partition(";")[0].strip().lower().replace("image/jpg", "image/jpeg")
        if kind in SENDABLE_IMAGES:
            # some servers send lines of 76 characters, or a data URL
            text = "".join(data.rpartition(";base64,")[2].split())
            with suppress(ValueError):  # not base64: the model reads only its description
                yield kind, base64.b64decode(text, validate=True)


SENDABLE_IMAGES = ("image/gif", "image/jpeg", "image/png", "image/webp")


def _block(block: object) -> str:
    from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent

    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, (ImageContent, AudioContent)):
        return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
    if isinstance(block, ResourceLink):
        return f"[link {block.name}: {block.uri}]"
    if isinstance(block, EmbeddedResource):
        return _resource(block.resource)
    return f"[{getattr(block, 'type', type(block).__name__)}]"


def _resource(contents: TextResourceContents | BlobResourceContents) -> str:
    from mcp_types import TextResourceContents

    if isinstance(contents, TextResourceContents):
        return contents.text
    return f"[resource {contents.uri}, {len(contents.blob) * 3 // 4} bytes]"
