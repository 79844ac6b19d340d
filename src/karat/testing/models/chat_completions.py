"""The OpenAI chat-completions API."""

from __future__ import annotations

from collections.abc import Iterator

from karat.records import JsonObject
from karat.testing.models.output import CREATED, Event, ModelOutput, arguments_text, pieces


def whole(output: ModelOutput) -> dict[str, object]:
    """The answer in one piece."""
    say = output.say
    message: JsonObject = {
        "role": "assistant",
        "content": say.text or None,
        "refusal": None,
        "annotations": [],
    }
    if say.stop == "refusal":
        message |= {"content": None, "refusal": say.text}
    if say.reasoning:
        # the name that vLLM and DeepSeek use; OpenAI does not return it
        message["reasoning_content"] = say.reasoning

    if say.tool_calls:
        message["tool_calls"] = [_call(output, number) for number in range(len(say.tool_calls))]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(output)}
    return {**_head(output, "chat.completion"), "choices": [choice], "usage": _usage(output)}


def events(output: ModelOutput) -> Iterator[Event]:
    """The answer in parts, followed by `[DONE]`."""
    say = output.say
    yield _chunk(output, {"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(say.reasoning):
        yield _chunk(output, {"reasoning_content": piece})
    for piece in pieces(say.text):
        yield _chunk(output, {"refusal" if say.stop == "refusal" else "content": piece})
    for number, call in enumerate(say.tool_calls):
        whole_call = _call(output, number)
        first_part = {
            **whole_call,
            "index": number,
            "function": {"name": call.name, "arguments": ""},
        }
        yield _chunk(output, {"tool_calls": [first_part]})
        for piece in pieces(arguments_text(call.arguments)):
            yield _chunk(
                output, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}
            )

    yield _chunk(output, {}, finish=_finish(output))
    if (output.request.body.get("stream_options") or {}).get("include_usage"):
        yield (
            None,
            {**_head(output, "chat.completion.chunk"), "choices": [], "usage": _usage(output)},
        )


def _head(output: ModelOutput, kind: str) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{output.id}",
        "object": kind,
        "created": CREATED,
        "model": output.model,
        "service_tier": "default",
        "system_fingerprint": "fp_rehearsal",
    }


def _chunk(output: ModelOutput, delta: dict[str, object], finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return None, {**_head(output, "chat.completion.chunk"), "choices": [choice]}


def _call(output: ModelOutput, number: int) -> dict[str, object]:
    call = output.say.tool_calls[number]
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": output.call_id("call", number), "type": "function", "function": function}


def _finish(output: ModelOutput) -> str:
    if output.say.stop == "length":
        return "length"
    return "tool_calls" if output.say.tool_calls else "stop"


def _usage(output: ModelOutput) -> dict[str, object]:
    read, written = output.parts
    details: dict[str, int] = {"cached_tokens": read, "audio_tokens": 0}
    if written:
        details["cache_write_tokens"] = written
    return {
        "prompt_tokens": output.input_tokens,
        "completion_tokens": output.output_tokens,
        "total_tokens": output.input_tokens + output.output_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": {
            "reasoning_tokens": output.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
