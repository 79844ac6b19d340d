"""The OpenAI chat-completions API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karat.testing.models.speech import CREATED, Event, Speech, arguments_text, pieces

__all__ = ["events", "whole"]


def whole(speech: Speech) -> dict[str, Any]:
    """The answer in one piece."""
    say = speech.say
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None, "refusal": None, "annotations": []}
    if say.stop == "refusal":
        message |= {"content": None, "refusal": say.text}
    if say.reasoning:
        message["reasoning_content"] = say.reasoning  # as vLLM and DeepSeek call it; OpenAI itself keeps it back
    if say.tool_calls:
        message["tool_calls"] = [_call(speech, number) for number in range(len(say.tool_calls))]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(speech)}
    return {**_head(speech, "chat.completion"), "choices": [choice], "usage": _usage(speech)}


def events(speech: Speech) -> Iterator[Event]:
    """The answer in parts; after them comes `[DONE]`."""
    say = speech.say
    yield _chunk(speech, {"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(say.reasoning):
        yield _chunk(speech, {"reasoning_content": piece})
    for piece in pieces(say.text):
        yield _chunk(speech, {"refusal" if say.stop == "refusal" else "content": piece})
    for number, call in enumerate(say.tool_calls):
        whole_call = _call(speech, number)
        begun = {**whole_call, "index": number, "function": {"name": call.name, "arguments": ""}}
        yield _chunk(speech, {"tool_calls": [begun]})
        for piece in pieces(arguments_text(call.arguments)):
            yield _chunk(speech, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield _chunk(speech, {}, finish=_finish(speech))
    if (speech.request.body.get("stream_options") or {}).get("include_usage"):
        yield None, {**_head(speech, "chat.completion.chunk"), "choices": [], "usage": _usage(speech)}


def _head(speech: Speech, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{speech.id}",
        "object": kind,
        "created": CREATED,
        "model": speech.model,
        "service_tier": "default",
        "system_fingerprint": "fp_rehearsal",
    }


def _chunk(speech: Speech, delta: dict[str, Any], finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return None, {**_head(speech, "chat.completion.chunk"), "choices": [choice]}


def _call(speech: Speech, number: int) -> dict[str, Any]:
    call = speech.say.tool_calls[number]
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": speech.call_id("call", number), "type": "function", "function": function}


def _finish(speech: Speech) -> str:
    if speech.say.stop == "length":
        return "length"
    return "tool_calls" if speech.say.tool_calls else "stop"


def _usage(speech: Speech) -> dict[str, Any]:
    read, written = speech.parts
    details: dict[str, int] = {"cached_tokens": read, "audio_tokens": 0}
    if written:
        details["cache_write_tokens"] = written
    return {
        "prompt_tokens": speech.input_tokens,
        "completion_tokens": speech.output_tokens,
        "total_tokens": speech.input_tokens + speech.output_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": {
            "reasoning_tokens": speech.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
