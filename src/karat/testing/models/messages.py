"""The Anthropic Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

from karat.records import Json, JsonObject
from karat.testing.models.output import Event, ModelOutput, arguments_text, pieces


def whole(output: ModelOutput) -> JsonObject:
    """The answer in one piece."""
    return {
        **_head(output),
        "content": _blocks(output),
        "stop_reason": _stop(output),
        "usage": _usage(output),
    }


def events(output: ModelOutput) -> Iterator[Event]:
    """The answer in parts."""
    for kind, data in _events(output):
        yield kind, {"type": kind, **data}


def _events(output: ModelOutput) -> Iterator[tuple[str, JsonObject]]:
    usage = _usage(output)
    first_usage = {key: value for key, value in usage.items() if key != "output_tokens_details"}
    head = {
        **_head(output),
        "content": [],
        "stop_reason": None,
        "usage": {**first_usage, "output_tokens": 1},
    }
    yield "message_start", {"message": head}
    yield "ping", {}
    calls = iter(output.say.tool_calls)
    for index, block in enumerate(_blocks(output)):
        kind = block["type"]
        yield "content_block_start", {"index": index, "content_block": {**block, **_EMPTY[kind]}}
        if kind == "tool_use":
            deltas = [{"type": "input_json_delta", "partial_json": ""}]
            texts = pieces(arguments_text(next(calls).arguments))
            deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in texts]
        else:
            deltas = [{"type": f"{kind}_delta", kind: piece} for piece in pieces(block[kind])]

        if kind == "thinking":
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}

    yield (
        "message_delta",
        {"delta": {"stop_reason": _stop(output), "stop_sequence": None}, "usage": usage},
    )
    yield "message_stop", {}


_EMPTY: dict[str, JsonObject] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}


def _head(output: ModelOutput) -> JsonObject:
    return {
        "id": f"msg_{output.id}",
        "type": "message",
        "role": "assistant",
        "model": output.model,
        "stop_sequence": None,
    }


def _blocks(output: ModelOutput) -> list[JsonObject]:
    say = output.say
    blocks: list[JsonObject] = []
    if say.reasoning:
        blocks.append({"type": "thinking", "thinking": say.reasoning, "signature": output.id})
    if say.text:
        blocks.append({"type": "text", "text": say.text, "citations": None})
    for number, call in enumerate(say.tool_calls):
        head = {"type": "tool_use", "id": output.call_id("toolu", number), "name": call.name}
        given: Json = call.arguments
        if isinstance(given, str):  # a text that is no JSON stays one, as in the script
            with suppress(ValueError):
                given = json.loads(given)

        blocks.append({**head, "input": given})

    return blocks


def _stop(output: ModelOutput) -> str:
    if output.say.stop is not None:
        return {"length": "max_tokens", "refusal": "refusal"}[output.say.stop]
    return "tool_use" if output.say.tool_calls else "end_turn"


def _usage(output: ModelOutput) -> JsonObject:
    read, written = output.parts
    return {
        # Anthropic counts cache reads and cache writes separately.
        "input_tokens": max(0, output.input_tokens - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output.output_tokens,
        "output_tokens_details": {"thinking_tokens": output.reasoning_tokens},
        "service_tier": "standard",
    }
