"""The pieces of a library's result: texts, roles of messages, tool calls, tokens and costs.

A name is read from an attribute or a key, so that an object and its JSON form are alike.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any, TypeGuard

import msgspec
from pydantic import ConfigDict, TypeAdapter

from karat.errors import AgentFault, InfrastructureFault, LimitReached, TrialFault
from karat.models.metering import total
from karat.models.usage import usage_from
from karat.records import (
    MOST_COUNTED,
    Elicited,
    JsonObject,
    ToolCall,
    Usage,
    absurd_dollars,
    was_cut,
)

TEXT_KEYS = ("text", "answer", "output", "response")
# of a mapping that is a reply
OTHER_TEXT_KEYS = ("content", "result", "reply", "completion", "generated_text", "raw")
# where none of those holds one: beside an answer they may be an id or a count
LAST_TEXT_KEYS = ("output_text", "final_output", "generation")
USAGE_KEYS = ("usage", "token_usage", "usage_metadata")
COST_KEYS = ("dollars", "cost", "cost_usd", "costUSD", "total_cost_usd", "total_cost")
STOP_KEYS = ("stop_reason", "finish_reason", "done_reason", "stop_type", "completion_reason")

MODEL = "model"
TOOL = "tool"
_ROLES = {
    **dict.fromkeys(("ai", "AIMessageChunk", "assistant"), MODEL),
    **dict.fromkeys(("tool", "ToolMessageChunk"), TOOL),
    **dict.fromkeys(("human", "HumanMessageChunk", "user"), "user"),
    **dict.fromkeys(("system", "SystemMessageChunk", "developer", "remove"), "other"),
}
_JSON = TypeAdapter(Any, config=ConfigDict(ser_json_bytes="base64"))
_TEXT_BLOCKS = ("text", "output_text", "input_text")


def get(value: object, name: str) -> Any:
    """The attribute or key, which JSON may write in camel case; None if there is none."""
    if isinstance(value, Mapping):
        found = value.get(name)
        if found is None:
            return value.get(camel(name))
        return found
    return getattr(value, name, None)


@functools.cache
def camel(name: str) -> str:
    """A name as JavaScript writes it."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def items(values: object) -> Sequence[Any]:
    """A list or a tuple; empty for anything else."""
    return values if isinstance(values, (list, tuple)) else ()


def role_of(message: object) -> str | None:
    """Whose message it is: MODEL, TOOL, "user" or "other"; None: it is no message."""
    kinds = (get(message, "type"), get(message, "role"))
    return next((_ROLES[kind] for kind in kinds if isinstance(kind, str) and kind in _ROLES), None)


def are_messages(value: object) -> TypeGuard[Sequence[object]]:
    """Whether it is a list of messages, not empty."""
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(role_of(message) for message in value)
    )


_OBJECT = re.compile(r"\{(?:\s*(?:[\"'}]|\w+\s*:)|[^}]*\Z)")


def begins_object(text: str) -> bool:
    """Whether a text begins as an object in JSON, Python or JavaScript does, which a set of
    numbers does not.

    >>> begins_object('{"text": "Par'), begins_object("{1, 2}")
    (True, False)
    """
    return _OBJECT.match(text) is not None


def written(value: object) -> str | None:
    """A text as a plain `str`, or a number as its text; None for anything else, also for true and
    false.
    """
    if isinstance(value, str):
        # a subclass, such as smolagents' AgentText, may print itself in another way
        return str.__str__(value)

    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        return None
    return str(value)


def text_of(content: object) -> str:
    """Text unchanged, nothing as "", anything else as JSON, whatever it holds."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return _JSON.dump_json(content, fallback=lambda value: f"<{type(value).__name__}>").decode()


def joined_blocks(content: object) -> str:
    """The text of a message's content: text, or a list of texts and blocks (Bedrock's, with a text
    alone, have no type).
    """
    if not isinstance(content, (list, tuple)):
        return text_of(content)
    texts = []
    for block in items(content):
        kind = get(block, "type")
        if isinstance(block, str):
            texts.append(block)
        elif kind in _TEXT_BLOCKS or (kind is None and isinstance(get(block, "text"), str)):
            texts.append(get(block, "text"))

    return "".join(map(str, texts))


def are_blocks(value: object) -> bool:
    """Whether it is the content of a model's message in blocks, of which one holds text.

    Passages of a search are none: they have a score, or no type.
    """
    blocks = items(value)
    if len(blocks) == 1 and isinstance(blocks[0], Mapping) and blocks[0].keys() == {"text"}:
        return bool(joined_blocks(blocks))  # Bedrock's
    if not all(
        isinstance(get(block, "type"), str) and get(block, "score") is None for block in blocks
    ):
        return False
    return any(get(one, "type") in _TEXT_BLOCKS and written(get(one, "text")) for one in blocks)


def whole_text(output: object) -> str:
    """Text unchanged, anything else as JSON. Raises if it is None or has no JSON form."""
    if output is None:
        raise AgentFault(
            "bad_reply", "the run has no output: it was interrupted, or did not finish"
        )

    if isinstance(output, str):
        return output
    return _JSON.dump_json(output).decode()


def name_in(value: object, *names: str) -> str | None:
    """The first of these fields that is a text, or a member of an enumeration of texts."""
    for name in names:
        found = get(value, name)
        found = getattr(found, "value", found)
        if isinstance(found, str) and found:
            return found

    return None


class Calls:
    """Tool calls in the order they were made, joined with their results by id."""

    def __init__(self) -> None:
        self._calls: list[tuple[object, ToolCall]] = []
        self._results: dict[object, tuple[str, bool]] = {}

    def called(
        self, call_id: object, name: object, arguments: object, *, server: object = None
    ) -> None:
        server = server if isinstance(server, str) else None
        call = ToolCall(tool=str(name), server=server, input=_arguments(arguments))
        self._calls.append((call_id, call))

    def made(self, call_id: object, call: object) -> None:
        """A call by its usual keys, perhaps with its result; one without a name is left out."""
        read = call_in(call)
        if read is not None:
            self._calls.append((call_id, read))

    def returned(self, call_id: object, content: object, *, failed: bool = False) -> None:
        if call_id is not None:
            self._results[call_id] = (joined_blocks(content) or text_of(content), failed)

    def joined(self) -> tuple[ToolCall, ...]:
        calls = []
        for call_id, call in self._calls:
            if call_id not in self._results:
                calls.append(call)
                continue
            text, failed = self._results[call_id]
            if failed:
                result, error = (None, text)
            else:
                result, error = (text, None)

            calls.append(msgspec.structs.replace(call, result=result, error=error))

        return tuple(calls)


def _arguments(given: object) -> JsonObject:
    if given is None or given == "":
        return {}
    try:
        value = json.loads(text_of(given))
    except ValueError:
        value = given  # the model did not write JSON

    return value if isinstance(value, dict) else {"arguments": value}


_ARGUMENTS = ("input", "arguments", "args", "tool_args", "tool_kwargs", "raw_input")
_RESULTS = ("result", "output", "content")


def calls_in(reported: object) -> tuple[ToolCall, ...] | None:
    """The tool calls in a list of mappings, objects or names, by their usual keys; None: it is
    something else, or one of them has no name.
    """
    if not reported:
        return ()
    calls = named_calls(reported)
    return calls if calls and len(calls) == len(items(reported)) else None


def named_calls(reported: object) -> tuple[ToolCall, ...]:
    """The calls in a list that have a name."""
    return tuple(filter(None, map(call_in, items(reported))))


def call_in(call: object, unnamed: str | None = None) -> ToolCall | None:
    """One tool call, by its usual keys; None: it has no name, and there is none for such calls."""
    if isinstance(call, ToolCall):
        return call
    function = get(call, "function") or call  # OpenAI's calls have one
    named: str | None = None
    if isinstance(call, str):
        named = call
    else:
        named = name_in(function, "tool", "name", "tool_name")

    name = named or unnamed
    if name is None:
        return None
    server = get(call, "server")
    took = get(call, "milliseconds")
    timed = isinstance(took, (int, float)) and 0 <= took <= MOST_COUNTED
    outcome = get(call, "tool_output") or call  # LlamaIndex's
    result = _first(outcome, _RESULTS)
    error = get(outcome, "error")
    if error in (None, "", False):
        error = None
        if True in (get(outcome, "is_error"), get(call, "tool_call_error")):
            result, error = None, "" if result is None else result

    elicited: tuple[Elicited, ...] = ()
    with suppress(msgspec.ValidationError):
        elicited = msgspec.convert(get(call, "elicited") or (), tuple[Elicited, ...])
    return ToolCall(
        tool=name,
        server=server if isinstance(server, str) else None,
        input=_arguments(_first(function, _ARGUMENTS)),
        result=None if result is None else text_of(result),
        error=None if error is None else text_of(error),
        milliseconds=took if timed else None,
        elicited=elicited,
    )


def _first(value: object, names: Sequence[str]) -> object:
    """The first of these fields that is not None; an empty text only where all others are None."""
    found = [get(value, name) for name in names]
    given = [held for held in found if held is not None]
    return next(filter(text_of, given), given[0] if given else None)


def summed(counts: Sequence[object]) -> Usage | None:
    """The sum over all responses; None if one was not counted, or if all counts are 0: frameworks
    start at 0.
    """
    usages = [usage_from(count) for count in counts]
    counted = []
    for usage in usages:
        if usage is not None and None not in (usage.input_tokens, usage.output_tokens):
            counted.append(usage)

    if len(counted) < len(usages):
        return None
    whole = functools.reduce(total, counted, None)
    return whole if whole is not None and (whole.input_tokens or whole.output_tokens) else None


def dollars_of(cost: object) -> float | None:
    """A cost as a number, or as a mapping with its total; None if it cannot be one: an answer is
    not lost for it.
    """
    if isinstance(cost, Mapping) and cost.get("currency") in (None, "USD"):
        amounts = [cost.get(name) for name in ("total", *COST_KEYS)]
        cost = next(filter(None, amounts), None)
    if isinstance(cost, bool) or not isinstance(cost, (Real, Decimal)):
        return None
    try:
        dollars = float(cost)
    except (ValueError, OverflowError):  # a signalling NaN; more digits than a float has
        return None

    return dollars if absurd_dollars(dollars) is None else None


def empty_answer(stop_reason: str | None) -> TrialFault:
    """Why a model gave no text, from the provider's reason."""
    if was_cut(stop_reason):
        return LimitReached(
            "max_tokens", "the model ran out of tokens before it answered (max_tokens)"
        )

    reason = (stop_reason or "").rpartition(".")[2].lower().replace("-", "_")
    if reason == "error":
        message = "the provider broke off its response with an error"
        return InfrastructureFault("server_error", message, retriable=True)
    if reason in ("tool_use", "tool_call", "tool_calls"):
        return unfinished()
    if reason in _FILTERED:
        return AgentFault(
            "content_filter", "the provider's filter stopped the answer, or the model refused"
        )

    return AgentFault("empty_answer", "the model ended its turn without an answer", retriable=True)


# by OpenAI, Anthropic, Bedrock and Google
_FILTERED = {
    *("content_filter", "refusal", "content_filtered", "guardrail_intervened"),
    *("safety", "recitation", "blocklist", "prohibited_content", "spii"),
}


def several(fields: Sequence[str]) -> AgentFault:
    """Two texts differ, and none has a name that makes it the answer."""
    return AgentFault(
        "bad_reply",
        f"the result could be several texts: {', '.join(fields)}; return the one that is the "
        f"answer",
    )


def unfinished() -> AgentFault:
    """The model waits for a tool that nobody called."""
    return AgentFault("bad_reply", "the model asks for a tool: the run did not finish")


def asks(message: object) -> bool:
    """Whether a model's message asks for a tool: what it says beside is no answer yet.

    Calls that hold their result, or that a text follows, were made.
    """
    for call in items(get(message, "tool_calls")):
        if not isinstance(call, str) and all(get(call, name) is None for name in _OUTCOMES):
            return True

    content = get(message, "content")
    if get(message, "function_call") or (get(message, "invalid_tool_calls") and not content):
        return True
    for block in reversed(items(content)):
        if get(block, "type") == "tool_use" or get(block, "tool_use"):
            return True
        text = written(block) or get(block, "text")
        if isinstance(text, str) and text.strip():
            return False

    return False


_OUTCOMES = (*_RESULTS, "error", "tool_output")
