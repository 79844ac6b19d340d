"""The Gemini API: `generateContent` and `streamGenerateContent`."""

from __future__ import annotations

from collections.abc import Iterator

from karat.records import JsonObject
from karat.testing.models.output import Event, ModelOutput, pieces

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
}


def whole(output: ModelOutput) -> JsonObject:
    """The answer in one piece."""
    say = output.say
    if say.reasoning:
        parts = [{"text": say.reasoning, "thought": True}]
    else:
        parts = []

    if say.text:
        parts += [{"text": say.text}]
    return _chunk(output, [*parts, *_calls(output)], last=True)


def events(output: ModelOutput) -> Iterator[Event]:
    """The answer in parts."""
    for piece in pieces(output.say.reasoning):
        yield None, _chunk(output, [{"text": piece, "thought": True}])
    for piece in pieces(output.say.text):
        yield None, _chunk(output, [{"text": piece}])
    yield None, _chunk(output, _calls(output) or [{"text": ""}], last=True)


def error(status: int, message: str) -> JsonObject:
    """An error response of the API."""
    kind = _STATUS.get(status, "UNAVAILABLE" if status >= 500 else "INVALID_ARGUMENT")
    return {"error": {"code": status, "message": message, "status": kind}}


def _calls(output: ModelOutput) -> list[JsonObject]:
    calls = []
    for number, call in enumerate(output.say.tool_calls):
        if isinstance(call.arguments, dict):
            given = call.arguments
        else:
            given = {"malformed": call.arguments}

        calls.append(
            {
                "functionCall": {
                    "id": output.call_id("call", number),
                    "name": call.name,
                    "args": given,
                }
            }
        )

    return calls


def _chunk(output: ModelOutput, parts: list[JsonObject], *, last: bool = False) -> JsonObject:
    candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": parts}}
    chunk: JsonObject = {
        "candidates": [candidate],
        "modelVersion": output.model,
        "responseId": output.id,
    }
    if last:
        candidate["finishReason"] = {None: "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}[
            output.say.stop
        ]
        spoken = output.output_tokens - output.reasoning_tokens
        chunk["usageMetadata"] = {
            "promptTokenCount": output.input_tokens,  # including cached ones
            "cachedContentTokenCount": output.parts[0],
            "candidatesTokenCount": spoken,  # without thoughts
            "thoughtsTokenCount": output.reasoning_tokens,
            "totalTokenCount": output.input_tokens + output.output_tokens,
        }

    return chunk
