"""A response as it is sent: its tokens, its ids, and its pieces in a stream."""

from __future__ import annotations

import json
import math

import msgspec

from karat.testing.models.request import Request, digest_of
from karat.testing.models.script import ScriptedResponse

# the time in every response, so that equal responses are equal bytes at any time
CREATED = 1_700_000_000

Event = tuple[str | None, dict[str, object]]
"""One part of a stream: the event's name, if the API has names, and its data."""

_PIECES = 12  # of one text in a stream, at most
_SHORTEST = 8  # characters


class ModelOutput(msgspec.Struct, frozen=True, kw_only=True):
    """One response to one request, with everything the APIs report."""

    say: ScriptedResponse
    request: Request
    id: str  # hex: the same for the same text in the same conversation
    model: str
    input_tokens: int  # including cached ones
    output_tokens: int  # including reasoning
    reasoning_tokens: int

    @property
    def parts(self) -> tuple[int, int]:
        """Tokens read from the cache and written to it."""
        return self.say.usage.cache_read, self.say.usage.cache_write

    def call_id(self, prefix: str, number: int) -> str:
        """The id of the n-th tool call."""
        return f"{prefix}_{self.id}{number:02d}"


def model_output(say: ScriptedResponse, request: Request) -> ModelOutput:
    """The response to send.

    Tokens that the script does not give are counted: four characters per token.
    """
    spoken = say.text + "".join(
        call.name + arguments_text(call.arguments) for call in say.tool_calls
    )
    if say.usage.reasoning is None:
        reasoning = _tokens(say.reasoning)
    else:
        reasoning = say.usage.reasoning

    counted = max(tokens_in(request), say.usage.cache_read + say.usage.cache_write)
    if say.usage.output is None:
        output_tokens = max(1, _tokens(spoken)) + reasoning
    else:
        output_tokens = say.usage.output

    return ModelOutput(
        say=say,
        request=request,
        id=digest_of([request.digest, spoken]),
        model=say.model or request.model,
        input_tokens=counted if say.usage.input is None else say.usage.input,
        output_tokens=output_tokens,
        reasoning_tokens=reasoning,
    )


def tokens_in(request: Request) -> int:
    """The tokens reported for a request: four characters per token, including tools."""
    messages = sum(
        len(message.text) + sum(map(len, message.tool_calls)) for message in request.messages
    )
    offered = sum(
        len(tool.name) + len(tool.description) + len(json.dumps(tool.schema))
        for tool in request.tools
    )
    return max(1, (len(request.system) + messages + offered) // 4)


def _tokens(text: str) -> int:
    return math.ceil(len(text) / 4)


def arguments_text(arguments: dict[str, object] | str) -> str:
    """Arguments as the model would write them: JSON, unless the script gives a text."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False)


def pieces(text: str) -> list[str]:
    """The text in a few parts; an empty text has none."""
    size = max(_SHORTEST, math.ceil(len(text) / _PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]
