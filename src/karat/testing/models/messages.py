"""The Anthropic Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from karat.testing.models.speech import Event, Speech, arguments_text, pieces

__all__ = ["events", "whole"]


def whole(speech: Speech) -> dict[str, Any]:
    """The answer in one piece."""
    return {**_head(speech), "content": _blocks(speech), "stop_reason": _stop(speech), "usage": _usage(speech)}


def events(speech: Speech) -> Iterator[Event]:
    """The answer in parts."""
    for kind, data in _events(speech):
        yield kind, {"type": kind, **data}


def _events(speech: Speech) -> Iterator[tuple[str, dict[str, Any]]]:
    usage = _usage(speech)
    begun = {key: value for key, value in usage.items() if key != "output_tokens_details"}
    head = {**_head(speech), "content": [], "stop_reason": None, "usage": {**begun, "output_tokens": 1}}
    yield "message_start", {"message": head}
    yield "ping", {}
    calls = iter(speech.say.tool_calls)
    for index, block in enumerate(_blocks(speech)):
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
    yield "message_delta", {"delta": {"stop_reason": _stop(speech), "stop_sequence": None}, "usage": usage}
    yield "message_stop", {}


_EMPTY: dict[str, dict[str, Any]] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}


def _head(speech: Speech) -> dict[str, Any]:
    return {
        "id": f"msg_{speech.id}",
        "type": "message",
        "role": "assistant",
        "model": speech.model,
        "stop_sequence": None,
    }


def _blocks(speech: Speech) -> list[dict[str, Any]]:
    say = speech.say
    blocks: list[dict[str, Any]] = []
    if say.reasoning:
        blocks.append({"type": "thinking", "thinking": say.reasoning, "signature": speech.id})
    if say.text:
        blocks.append({"type": "text", "text": say.text, "citations": None})
    for number, call in enumerate(say.tool_calls):
        head = {"type": "tool_use", "id": speech.call_id("toolu", number), "name": call.name}
        blocks.append({**head, "input": _input(call.arguments)})
    return blocks


def _input(arguments: dict[str, Any] | str) -> Any:
    """An object where the text is one; else the text as it stands, which is then the script's wish."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _stop(speech: Speech) -> str:
    if speech.say.stop is not None:
        return {"length": "max_tokens", "refusal": "refusal"}[speech.say.stop]
    return "tool_use" if speech.say.tool_calls else "end_turn"


def _usage(speech: Speech) -> dict[str, Any]:
    read, written = speech.parts
    return {
        # Anthropic counts what came from the cache, and what went to it, apart.
        "input_tokens": max(0, speech.input_tokens - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": speech.output_tokens,
        "output_tokens_details": {"thinking_tokens": speech.reasoning_tokens},
        "service_tier": "standard",
    }
