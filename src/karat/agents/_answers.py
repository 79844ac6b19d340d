"""What a program, a function or an agent framework returned, as a Reply.

Results of agent frameworks and providers' SDKs are recognized by their attributes; no library is
imported. A name is read from an attribute or a key.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, TypeGuard

import msgspec
from pydantic import ConfigDict, TypeAdapter

from karat.agents._usage import unread_counts, usage_from
from karat.errors import AgentFault, Caught, LimitReached, TrialFault, described
from karat.models.metering import total, usage_of
from karat.records import JsonObject, Reply, ToolCall, Usage, absurd_dollars, plain, was_cut

TEXT_KEYS = ("text", "answer", "output", "response")
_WANTED = (
    "a text, a number, a mapping with `text`, or, from a Python function, a karat.Reply or the "
    "result of an agent framework or a provider's SDK"
)


def reply_from(value: object, unread: set[str] | None = None) -> Reply:
    """A text, a number, a Reply, or a mapping with `text` (or `answer`, `output`, `response`) and
    Reply's other fields.

    `usage` may have the shape of any provider that `_usage` knows; `cost` is another name of
    `dollars`. The names of further keys are added to `unread`, and those of a usage or cost that
    cannot be right: it is unknown. Raises AgentFault("bad_reply"): anything else is not an answer,
    including None.
    """
    if isinstance(value, Reply):
        return value
    text = _written(value)
    if text is not None:
        return Reply(text=text)
    if not isinstance(value, dict):
        raise AgentFault(
            "bad_reply", f"the agent returned a {type(value).__name__}, expected {_WANTED}"
        )

    fields = {name: value[name] for name in Reply.__struct_fields__ if name in value}
    if "text" not in fields:
        key = next((key for key in TEXT_KEYS if _written(value.get(key)) is not None), None)
        if key is None:
            raise AgentFault(
                "bad_reply",
                f"the object has no 'text' (keys: {', '.join(map(str, value)) or 'none'})",
            )

        fields["text"] = value[key]

    for name in _TEXTS & fields.keys():
        written = _written(fields[name])
        if written is not None:
            fields[name] = written

    cost_key = next((key for key in _COST_KEYS if value.get(key) is not None), "dollars")
    fields["dollars"] = _dollars(value.get(cost_key))
    counted = fields.pop("usage", None)
    usage = usage_from(counted)
    if unread is not None:
        unread.update(
            str(key) for key in value.keys() - {*Reply.__struct_fields__, *TEXT_KEYS, *_COST_KEYS}
        )
        unread.update(f"usage.{name}" for name in unread_counts(counted))
        if usage is None and isinstance(counted, Sequence):
            unread.add("usage")
        if fields["dollars"] is None and value.get(cost_key) is not None:
            unread.add(cost_key)

    try:
        reply = msgspec.convert(msgspec.to_builtins(fields, enc_hook=plain), Reply)
    except (msgspec.ValidationError, TypeError) as error:
        raise AgentFault("bad_reply", f"the object is not a reply: {error}") from error

    return msgspec.structs.replace(reply, usage=usage)


_TEXTS = frozenset({"text", "answer", "unit", "program"})
_COST_KEYS = ("dollars", "cost", "cost_usd", "total_cost_usd", "total_cost")


def _dollars(cost: object) -> float | None:
    """A cost as a number; None if it cannot be one: an answer is not lost for it."""
    if isinstance(cost, bool) or not isinstance(cost, (Real, Decimal)):
        return None
    try:
        dollars = float(cost)
    except (ValueError, OverflowError):  # a signalling NaN; more digits than a float has
        return None

    return dollars if absurd_dollars(dollars) is None else None


def _written(value: object) -> str | None:
    """A text as a plain `str`, or a number as its text; None for anything else, also for true and
    false.
    """
    if isinstance(value, str):
        # a subclass, such as smolagents' AgentText, may print itself in another way
        return str.__str__(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    return str(value)


MOST_ITEMS = 100_000
"""Messages, parts or run items in one result."""

_MODEL = "model"
_TOOL = "tool"
_ROLES = {
    **dict.fromkeys(("ai", "AIMessageChunk", "assistant"), _MODEL),
    **dict.fromkeys(("tool", "ToolMessageChunk"), _TOOL),
    **dict.fromkeys(("human", "HumanMessageChunk", "user"), "user"),
    **dict.fromkeys(("system", "SystemMessageChunk", "developer", "remove"), "other"),
}
_JSON = TypeAdapter(Any, config=ConfigDict(ser_json_bytes="base64"))
_TEXT_BLOCKS = ("text", "output_text", "input_text")


def empty_answer(stop_reason: str | None) -> TrialFault:
    """Why a model gave no text, from the provider's reason."""
    if was_cut(stop_reason):
        return LimitReached(
            "max_tokens", "the model ran out of tokens before it answered (max_tokens)"
        )

    if stop_reason in ("content_filter", "refusal"):
        return AgentFault(
            "content_filter", "the provider's filter stopped the answer, or the model refused"
        )

    return AgentFault("empty_answer", "the model ended its turn without an answer", retriable=True)


def framework_reply(result: object) -> Reply | None:
    """The text, tool calls and tokens of a framework's result; None if it is no such result.

    Raises TrialFault if the result holds no answer, AgentFault("bad_reply") if it cannot be read.
    """
    if result is None or isinstance(result, (str, bytes, bool, int, float, Reply)):
        return None
    reply = None
    with Caught() as caught:  # its properties run code of the framework, or of the user
        reply = _reply(result)
    if caught.error is None:
        return reply
    if isinstance(caught.error, TrialFault):
        raise caught.error
    message = (
        f"the agent returned a {type(result).__name__} that cannot be read: "
        f"{described(caught.error)}"
    )
    raise AgentFault("bad_reply", message) from caught.error


def _reply(result: object) -> Reply | None:
    if isinstance(result, Mapping):
        messages = _get(result, "messages")
        text = next((result[key] for key in TEXT_KEYS if isinstance(result.get(key), str)), None)
        if messages is None and text is None:
            return _provided(result)
        if not _are_messages(messages) or (
            text is not None and all(isinstance(item, Mapping) for item in messages)
        ):
            return None  # a mapping of Reply's fields

        structured = _get(result, "structured_response")
        return _from_messages(messages, text=text if structured is None else _answer(structured))

    if _are_messages(result):
        return _from_messages(result)
    if isinstance(result, (list, tuple)):
        return None
    if _get(result, "new_items") is not None and hasattr(result, "final_output"):
        return _from_openai(result)
    if callable(_get(result, "new_messages")) and hasattr(result, "output"):
        return _from_pydantic_ai(result)
    provided = _provided(result)
    if provided is not None:
        return provided
    if _role(result) == _MODEL and hasattr(result, "content"):
        return _from_messages([result])
    return _from_fields(result)


def _is_completion(result: object) -> bool:
    choices = _get(result, "choices")
    return (
        isinstance(choices, (list, tuple))
        and len(choices) > 0
        and _get(choices[0], "message") is not None
    )


def _from_completion(result: object) -> Reply:
    """OpenAI's ChatCompletion, and what others return in its shape."""
    choices = _items(_get(result, "choices"))
    if len(choices) > 1:
        raise _several([f"choices[{place}].message.content" for place in range(len(choices))])
    message = _get(choices[0], "message")
    stopped = _reason(choices[0], "finish_reason")
    text = _blocks(_get(message, "content"))
    if _get(message, "tool_calls"):
        raise _unfinished()
    if not text:
        raise empty_answer("refusal" if _get(message, "refusal") else stopped)
    return Reply(
        text=text,
        usage=usage_from(_get(result, "usage")),
        model=_named(result),
        stop_reason=stopped,
    )


def _is_response(result: object) -> bool:
    return _get(result, "object") == "response" and isinstance(_get(result, "output"), list)


def _from_response(result: object) -> Reply:
    """OpenAI's Response: its texts, and the calls of MCP servers that the provider made."""
    calls = _Calls()
    texts = []
    asks = refused = False
    for item in _items(_get(result, "output")):
        kind = _get(item, "type")
        if kind == "message":
            texts.append(_blocks(_get(item, "content")))
            blocks = _items(_get(item, "content"))
            refused = refused or any(_get(block, "type") == "refusal" for block in blocks)
        elif kind == "mcp_call":
            server, name = (_get(item, key) for key in ("server_label", "name"))
            calls.called(_get(item, "id"), name, _get(item, "arguments"), server=server)
            error = _get(item, "error")
            answer = _get(item, "output") if error is None else error
            calls.returned(_get(item, "id"), answer, failed=error is not None)
        elif kind in ("function_call", "custom_tool_call"):
            asks = True

    text = "".join(texts)
    stopped = _reason(_get(result, "incomplete_details"), "reason")
    if asks:
        raise _unfinished()
    if not text and _get(result, "error") is not None:
        message = _get(_get(result, "error"), "message")
        raise AgentFault("provider_error", f"the response failed: {message}", retriable=True)
    if not text:
        raise empty_answer("refusal" if refused else stopped)
    return Reply(
        text=text,
        tool_calls=calls.joined(),
        usage=usage_from(_get(result, "usage")),
        model=_named(result),
        stop_reason=stopped,
    )


def _is_anthropic(result: object) -> bool:
    return (
        _get(result, "type") == "message"
        and _get(result, "role") == "assistant"
        and isinstance(_get(result, "content"), list)
    )


def _from_anthropic(result: object) -> Reply:
    """Anthropic's Message, with the calls of tools that the provider made."""
    calls = _Calls()
    asks = False
    for block in _items(_get(result, "content")):
        kind = str(_get(block, "type"))
        if kind in ("mcp_tool_use", "server_tool_use"):
            server, name = (_get(block, key) for key in ("server_name", "name"))
            calls.called(_get(block, "id"), name, _get(block, "input"), server=server)
        elif kind.endswith("_tool_result"):
            failed = _get(block, "is_error") is True
            calls.returned(_get(block, "tool_use_id"), _get(block, "content"), failed=failed)
        elif kind == "tool_use":
            asks = True

    text = _blocks(_get(result, "content"))
    stopped = _reason(result, "stop_reason")
    if asks:
        raise _unfinished()
    if not text:
        raise empty_answer(stopped)
    return Reply(
        text=text,
        tool_calls=calls.joined(),
        usage=usage_from(_get(result, "usage")),
        model=_named(result),
        stop_reason=stopped,
    )


def _provided(result: object) -> Reply | None:
    if _is_completion(result):
        return _from_completion(result)
    if _is_response(result):
        return _from_response(result)
    if _is_anthropic(result):
        return _from_anthropic(result)
    return None


_FIELDS = (*TEXT_KEYS, "raw", "output_text", "final_output", "result", "message")
"""Where other objects have their text: `raw` of CrewAI, `response` of LlamaIndex, `output` of
smolagents, `answer` of most DSPy signatures, `text` of Google's SDK, `message` of Ollama's.
"""

_USAGES = ("usage", "token_usage", "usage_metadata", "usage_metrics")
_REASONING = frozenset({"reasoning", "rationale", "trajectory"})  # fields that DSPy adds


def _from_fields(result: object) -> Reply | None:
    """An object with one text. Raises AgentFault if its fields hold several; None: it has none."""
    found = {name: _field_text(_get(result, name)) for name in _FIELDS}
    predicted = _get(result, "toDict")
    if callable(predicted):  # a prediction of DSPy: its signature names its fields
        outputs = predicted()
        found |= {name: _field_text(outputs[name]) for name in outputs.keys() - _REASONING}

    texts = {name: text for name, text in found.items() if text is not None}
    if not texts:
        return None
    if len(set(texts.values())) > 1:
        raise _several(sorted(texts))
    count = _get(result, "get_lm_usage")
    if callable(count):  # DSPy's, by model
        reported = list((count() or {}).values())
        usage = _usage(reported) if reported else None
    else:
        held = [_get(result, name) for name in _USAGES]
        if _get(result, "eval_count") is not None:  # Ollama's counts stand beside the text
            held.append(result)
        usage = next(filter(None, (_usage([one]) for one in held)), None)

    return Reply(text=next(iter(texts.values())), usage=usage, model=_named(result))


def _field_text(value: object) -> str | None:
    """A text or a number, or what a message holds."""
    text = _written(value)
    if text is None:
        text = _written(_get(value, "content"))
    return text


def _several(fields: Sequence[str]) -> AgentFault:
    return AgentFault(
        "bad_reply",
        f"the result could be several texts: {', '.join(fields)}; return the one that is the "
        f"answer",
    )


def _unfinished() -> AgentFault:
    return AgentFault("bad_reply", "the model asks for a tool: the run did not finish")


def _named(result: object) -> str | None:
    model = _get(result, "model")
    return model if isinstance(model, str) else None


def _reason(value: object, name: str) -> str | None:
    reason = _get(value, name)
    return reason if isinstance(reason, str) else None


def _from_pydantic_ai(result: Any) -> Reply:
    if type(result.output).__name__ == "DeferredToolRequests":
        raise AgentFault(
            "bad_reply", "the run did not finish: it waits for the results of deferred tool calls"
        )

    calls = _Calls()
    output_tool = _get(result, "_output_tool_name")
    for part in (
        part for message in _items(result.new_messages()) for part in _items(_get(message, "parts"))
    ):
        kind, name, call_id = (
            _get(part, key) for key in ("part_kind", "tool_name", "tool_call_id")
        )
        if name is None or name == output_tool:  # the output tool carries the answer
            continue
        if kind in ("tool-call", "builtin-tool-call"):
            calls.called(call_id, name, _get(part, "args"))
        elif kind in ("tool-return", "builtin-tool-return", "retry-prompt"):
            failed = kind == "retry-prompt" or _get(part, "outcome") not in (None, "success")
            calls.returned(call_id, _text(_get(part, "content")), failed=failed)

    # a method in version 1
    if hasattr(result.usage, "input_tokens"):
        usage = result.usage
    else:
        usage = result.usage()

    if _get(usage, "unmeasured_requests"):
        tokens = None
    else:
        tokens = usage_of(usage)

    return Reply(text=_answer(result.output), tool_calls=calls.joined(), usage=tokens)


def _from_openai(result: Any) -> Reply:
    calls = _Calls()
    for item in _items(result.new_items):
        kind = _get(item, "type")
        raw = _get(item, "raw_item")
        call_id = _get(raw, "call_id") or _get(raw, "id")
        output = _get(raw, "output")
        error = _get(raw, "error")
        if kind == "tool_call_item":
            server = _get(raw, "server_label") or _get(_get(item, "tool_origin"), "mcp_server_name")
            name = _get(raw, "name") or _get(raw, "type")  # a hosted tool has only a type
            calls.called(call_id, name, _get(raw, "arguments"), server=server)
            if error is not None or output is not None:  # a hosted MCP call holds its result
                calls.returned(
                    call_id, output if error is None else error, failed=error is not None
                )
        elif kind == "tool_call_output_item":
            calls.returned(call_id, _text(_get(item, "output")) if output is None else output)

    total = _usage([_get(_get(result, "context_wrapper"), "usage")])
    usage = total or _usage(
        [_get(response, "usage") for response in _items(_get(result, "raw_responses"))]
    )
    return Reply(text=_answer(result.final_output), tool_calls=calls.joined(), usage=usage)


def _from_messages(messages: Sequence[object], *, text: str | None = None) -> Reply:
    """The content of LangChain's messages after the user's last one.

    `text` replaces the text of the last message.
    """
    known = [(_role(message), message) for message in _items(messages)]
    start = max((place for place, (role, _) in enumerate(known) if role == "user"), default=-1) + 1
    turn = [(role, message) for role, message in known[start:] if role in (_MODEL, _TOOL)]
    if text is None:
        if not any(role == _MODEL for role, _ in turn):
            raise AgentFault(
                "bad_reply", "no message of the model follows the last message of the user"
            )

        # a tool's message is the answer where its result is returned directly
        role, last = turn[-1]
        if role == _MODEL and _get(last, "tool_calls"):
            raise AgentFault(
                "bad_reply", "the last message asks for a tool: the run did not finish"
            )

        content = _get(last, "content")
        text = _blocks(content)
        if not text and content != "":
            raise AgentFault("bad_reply", "the last message holds no text")

    calls = _Calls()
    for role, message in turn:
        if role == _TOOL:
            failed = _get(message, "status") == "error"
            calls.returned(_get(message, "tool_call_id"), _get(message, "content"), failed=failed)
            continue

        for call in _items(_get(message, "tool_calls")):
            function = _get(call, "function") or call  # a chat completion's call has one
            arguments = _get(function, "args") or _get(function, "arguments")
            calls.called(_get(call, "id"), _get(function, "name"), arguments)

    usage = _usage([_get(message, "usage_metadata") for role, message in turn if role == _MODEL])
    return Reply(text=text, tool_calls=calls.joined(), usage=usage)


class _Calls:
    """Tool calls in the order they were made, joined with their results by id."""

    def __init__(self) -> None:
        self._calls: list[tuple[object, ToolCall]] = []
        self._results: dict[object, tuple[str, bool]] = {}

    def called(
        self, call_id: object, name: object, arguments: object, *, server: object = None
    ) -> None:
        server = server if isinstance(server, str) else None
        self._calls.append(
            (call_id, ToolCall(tool=str(name), server=server, input=_arguments(arguments)))
        )

    def returned(self, call_id: object, content: object, *, failed: bool = False) -> None:
        if call_id is not None:
            self._results[call_id] = (_blocks(content) or _text(content), failed)

    def joined(self) -> tuple[ToolCall, ...]:
        calls = []
        for call_id, call in self._calls:
            text, failed = self._results.get(call_id, (None, False))
            if failed:
                result, error = (None, text)
            else:
                result, error = (text, None)

            calls.append(msgspec.structs.replace(call, result=result, error=error))

        return tuple(calls)


def _usage(counts: Sequence[object]) -> Usage | None:
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


def _answer(output: object) -> str:
    """Text unchanged, anything else as JSON. Raises if it is None or has no JSON form."""
    if output is None:
        raise AgentFault(
            "bad_reply", "the run has no output: it was interrupted, or did not finish"
        )

    if isinstance(output, str):
        return output
    return _JSON.dump_json(output).decode()


def _text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return _JSON.dump_json(content, fallback=_unknown).decode()


def _unknown(value: object) -> str:
    return f"<{type(value).__name__}>"


def _blocks(content: object) -> str:
    """The text of a message's content: text, or a list of texts and typed blocks."""
    if not isinstance(content, (list, tuple)):
        return _text(content)
    texts = []
    for block in _items(content):
        if isinstance(block, str) or _get(block, "type") in _TEXT_BLOCKS:
            if isinstance(block, str):
                texts.append(block)
            else:
                texts.append(_get(block, "text"))

    return "".join(map(str, texts))


def _arguments(arguments: object) -> JsonObject:
    """The arguments of a tool call: a mapping or its JSON text.

    Anything else is kept as `arguments`.
    """
    if arguments is None or arguments == "":
        return {}
    try:
        value = json.loads(_text(arguments))
    except ValueError:
        value = arguments  # the model did not write JSON

    if isinstance(value, dict):
        return value
    return {"arguments": value}


def _are_messages(value: object) -> TypeGuard[Sequence[object]]:
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(_role(message) for message in value)
    )


def _role(message: object) -> str | None:
    kinds = (_get(message, "type"), _get(message, "role"))
    return next((_ROLES[kind] for kind in kinds if isinstance(kind, str) and kind in _ROLES), None)


def _items(values: object) -> Sequence[Any]:
    if not isinstance(values, (list, tuple)):
        return ()
    if len(values) > MOST_ITEMS:
        raise AgentFault(
            "bad_reply",
            f"the result holds a list of {len(values)} items, expected at most {MOST_ITEMS}",
        )

    return values


def _get(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)
