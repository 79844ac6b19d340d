"""Results of agent frameworks, recognized by their attributes; no framework is imported.

pydantic-ai, the OpenAI Agents SDK, LangChain, LangGraph, smolagents, DSPy, CrewAI, LlamaIndex,
Agno, AutoGen, Haystack and Strands, and any other object with one text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.agents._reading import (
    COST_KEYS,
    MODEL,
    OTHER_TEXT_KEYS,
    STOP_KEYS,
    TEXT_KEYS,
    TOOL,
    USAGE_KEYS,
    Calls,
    are_blocks,
    are_messages,
    asks,
    dollars_of,
    get,
    items,
    joined_blocks,
    name_in,
    named_calls,
    role_of,
    several,
    summed,
    text_of,
    unfinished,
    whole_text,
    written,
)
from karat.errors import AgentFault, LimitReached
from karat.models.metering import usage_of
from karat.records import Reply, was_cut
from karat.thoughts import without_thoughts


def framework_result(result: object) -> Reply | None:
    """The reply in a framework's result; None if it is none.

    Raises TrialFault if it holds no answer, or more than one.
    """
    if are_messages(result):
        return from_messages(result)
    if isinstance(result, (list, tuple)):
        text = said(result)
        return None if text is None else Reply(text=text)
    if get(result, "new_items") is not None and hasattr(result, "final_output"):
        return _from_agents_sdk(result)
    if callable(get(result, "new_messages")) and hasattr(result, "output"):
        return _from_pydantic_ai(result)
    if hasattr(result, "state") and hasattr(result, "token_usage"):
        return _from_smolagents(result)
    if callable(get(result, "toDict")) and callable(get(result, "get_lm_usage")):
        return _from_dspy(result)
    if hasattr(result, "run_id") and hasattr(result, "metrics") and hasattr(result, "content"):
        return _from_agno(result)
    sent = items(get(result, "messages"))
    sent = sent or [get(result, "chat_message") or result]  # of an agent's Response; alone
    if all(hasattr(message, "models_usage") for message in sent):
        return _from_autogen(result, sent)
    if role_of(result) == MODEL:
        return from_messages([result])
    return _from_fields(result)


def said(value: object) -> str | None:
    """A text or a number as a text, also in blocks, in a model's message or in an object around
    one; None: it is something else.
    """
    text = written(value)
    if text is not None:
        return text
    if are_messages(value):
        return from_messages(value).text
    if role_of(value) == MODEL:
        if asks(value):
            raise unfinished()
        content = get(value, "content")
        text = joined_blocks(content)
        if not text and content != "":
            raise AgentFault("bad_reply", "the model's message holds no text")
        return text

    if isinstance(value, Mapping):  # a text there is an error's
        inner = value.get("message")
        if isinstance(inner, str):
            return None
        return said(inner)
    if are_blocks(value):
        return said({"role": "assistant", "content": value})
    return None


def _from_pydantic_ai(result: Any) -> Reply:
    if type(result.output).__name__ == "DeferredToolRequests":
        raise AgentFault(
            "bad_reply", "the run did not finish: it waits for the results of deferred tool calls"
        )

    calls = Calls()
    output_tool = get(result, "_output_tool_name")
    for part in (
        part for message in items(result.new_messages()) for part in items(get(message, "parts"))
    ):
        kind, name, call_id = (get(part, key) for key in ("part_kind", "tool_name", "tool_call_id"))
        if name is None or name == output_tool:  # the output tool carries the answer
            continue
        if kind in ("tool-call", "builtin-tool-call"):
            calls.called(call_id, name, get(part, "args"))
        elif kind in ("tool-return", "builtin-tool-return", "retry-prompt"):
            failed = kind == "retry-prompt" or get(part, "outcome") not in (None, "success")
            calls.returned(call_id, text_of(get(part, "content")), failed=failed)

    # a method in version 1
    if hasattr(result.usage, "input_tokens"):
        usage = result.usage
    else:
        usage = result.usage()

    if get(usage, "unmeasured_requests"):
        tokens = None
    else:
        tokens = usage_of(usage)

    last = get(result, "response")
    return Reply(
        text=whole_text(result.output),
        tool_calls=calls.joined(),
        usage=tokens,
        model=name_in(last, "model_name"),
        stop_reason=name_in(last, "finish_reason"),
    )


def _from_agents_sdk(result: Any) -> Reply:
    calls = Calls()
    for item in items(result.new_items):
        kind = get(item, "type")
        raw = get(item, "raw_item")
        call_id = get(raw, "call_id") or get(raw, "id")
        output = get(raw, "output")
        error = get(raw, "error")
        if kind == "tool_call_item":
            server = get(raw, "server_label") or get(get(item, "tool_origin"), "mcp_server_name")
            name = get(raw, "name") or get(raw, "type")  # a hosted tool has only a type
            calls.called(call_id, name, get(raw, "arguments"), server=server)
            if error is not None or output is not None:  # a hosted MCP call holds its result
                calls.returned(
                    call_id, output if error is None else error, failed=error is not None
                )
        elif kind == "tool_call_output_item":
            calls.returned(call_id, text_of(get(item, "output")) if output is None else output)

    total = summed([get(get(result, "context_wrapper"), "usage")])
    usage = total or summed(
        [get(response, "usage") for response in items(get(result, "raw_responses"))]
    )
    return Reply(text=whole_text(result.final_output), tool_calls=calls.joined(), usage=usage)


def from_messages(messages: Sequence[object], *, text: str | None = None) -> Reply:
    """The content of LangChain's messages after the user's last one.

    `text` replaces the text of the last message.
    """
    known = [(role_of(message), message) for message in items(messages)]
    start = max((place for place, (role, _) in enumerate(known) if role == "user"), default=-1) + 1
    turn = [(role, message) for role, message in known[start:] if role in (MODEL, TOOL)]
    if text is None:
        if not any(role == MODEL for role, _ in turn):
            raise AgentFault(
                "bad_reply", "no message of the model follows the last message of the user"
            )

        # a tool's message is the answer where its result is returned directly
        role, last = turn[-1]
        if role == MODEL and asks(last):
            raise unfinished()

        content = get(last, "content")
        if content is None:
            content = get(last, "text")  # Haystack's
        text = joined_blocks(content)
        if not text and content != "":
            raise AgentFault("bad_reply", "the last message holds no text")

    calls = Calls()
    for role, message in turn:
        if role == TOOL:
            failed = get(message, "status") == "error"
            calls.returned(get(message, "tool_call_id"), get(message, "content"), failed=failed)
            continue

        for call in items(get(message, "tool_calls")):
            calls.made(get(call, "id"), call)

    replies = [message for role, message in turn if role == MODEL]
    if replies:
        last = replies[-1]
    else:
        last = None

    about = get(last, "response_metadata") or get(last, "meta")  # Haystack's
    usage = []
    for message in replies:
        counts = [get(message, name) for name in USAGE_KEYS]
        counts.append(get(get(message, "meta"), "usage"))
        usage.append(next(filter(None, counts), counts[-1]))

    stopped = name_in(about, *STOP_KEYS)
    text, thought = without_thoughts(text, cut=was_cut(stopped))
    return Reply(
        text=text,
        reasoning=thought,
        tool_calls=calls.joined(),
        usage=summed(usage),
        model=name_in(about, "model_name", "model"),
        stop_reason=stopped,
    )


def model_messages(result: Mapping[object, object]) -> list[Any]:
    """The message of a model that a mapping holds as its answer; none beside a text."""
    if any(written(result.get(name)) is not None for name in (*TEXT_KEYS, *OTHER_TEXT_KEYS)):
        return []
    held = (result.get(name) for name in TEXT_KEYS)
    return [value for value in held if role_of(value) == MODEL][:1]


def haystack_replies(result: Mapping[object, object]) -> list[Any]:
    """What the generator in a pipeline's result replied; empty if there is none, or more than one.

    The result maps each component to its output; a generator's own has `replies`.
    """
    outputs = [result, *(output for output in result.values() if isinstance(output, Mapping))]
    found = []
    for output in outputs:
        if isinstance(output.get("replies"), list):
            found.append(output["replies"])

    if len(found) != 1:
        return []
    (replies,) = found
    if len(replies) > 1:
        raise several([f"replies[{place}]" for place in range(len(replies))])
    return list(replies)


_AGNO_UNFINISHED = ("PAUSED", "CANCELLED", "ERROR")


def _from_agno(result: Any) -> Reply:
    status = name_in(result, "status")
    if status in _AGNO_UNFINISHED:
        raise AgentFault("bad_reply", f"the run did not finish (status '{status}')")
    return Reply(
        text=written(result.content) or whole_text(result.content),
        reasoning=name_in(result, "reasoning_content"),
        tool_calls=named_calls(get(result, "tools")),
        usage=summed([result.metrics]),
        dollars=dollars_of(get(result.metrics, "cost")),
        model=name_in(result, "model"),
    )


def _from_autogen(result: object, sent: Sequence[object]) -> Reply:
    """The TaskResult of AgentChat: the task, what was done for it, and the last message."""
    calls = Calls()
    for message in sent:
        for event in items(get(message, "content")):
            if get(event, "arguments") is not None:
                calls.called(get(event, "id"), get(event, "name"), get(event, "arguments"))
            elif get(event, "call_id") is not None:
                failed = get(event, "is_error") is True
                calls.returned(get(event, "call_id"), get(event, "content"), failed=failed)

    text = written(get(sent[-1], "content"))
    if text is None or get(sent[-1], "source") == "user":
        raise AgentFault("bad_reply", "the last message holds no text of an agent")
    counted = [get(message, "models_usage") for message in sent]
    return Reply(
        text=text,
        tool_calls=calls.joined(),
        usage=summed([counts for counts in counted if counts is not None]),
        stop_reason=name_in(result, "stop_reason"),
    )


def _from_smolagents(result: object) -> Reply:
    """The RunResult that smolagents' `run` returns on demand."""
    calls = Calls()
    for step in items(get(result, "steps")):
        made = items(get(step, "tool_calls"))
        for call in made:
            function = get(call, "function") or call
            name = get(function, "name")
            if name != "final_answer":
                calls.called(get(call, "id"), name, get(function, "arguments"))

        if len(made) == 1:  # the observations of several calls are one text
            calls.returned(get(made[0], "id"), get(step, "observations"))

    output = get(result, "output")
    ended = name_in(result, "state")
    if output in (None, "") and ended == "max_steps_error":
        raise LimitReached("max_turns", "the agent ran out of steps before it answered (max_steps)")
    return Reply(
        text=written(output) or whole_text(output),
        tool_calls=calls.joined(),
        usage=summed([get(result, "token_usage")]),
        stop_reason=None if ended == "success" else ended,
    )


_REASONING = ("reasoning", "rationale")
"""Fields that DSPy puts before a signature's own; `trajectory` are the steps of its ReAct."""


def _from_dspy(result: Any) -> Reply:
    """A Prediction: the one output of its signature, or the one with a usual name."""
    outputs: dict[str, Any] = dict(result.toDict())
    reasoning = name_in(outputs, *_REASONING)
    steps = outputs.pop("trajectory", None)
    texts = {}
    for name, value in outputs.items():
        if name not in _REASONING:
            texts[name] = written(value) or whole_text(value)

    if not texts:
        raise AgentFault("bad_reply", "the prediction has no output")
    counts = list((result.get_lm_usage() or {}).values())  # by model
    calls = Calls()
    number = 0
    while (name := get(steps, f"tool_name_{number}")) is not None:
        if name != "finish":
            calls.called(number, name, get(steps, f"tool_args_{number}"))
            calls.returned(number, get(steps, f"observation_{number}"))

        number += 1

    return Reply(
        text=_one(texts),
        reasoning=reasoning,
        tool_calls=calls.joined(),
        usage=summed(counts) if counts else None,
    )


_FIELDS = (*TEXT_KEYS, "raw", "output_text", "final_output", "result", "message")
"""Where other objects have their text: `raw` of CrewAI, `response` of LlamaIndex, `text` of
completions, `message` of Ollama's chats, `result` of the Claude Agent SDK.
"""

_USAGES = (*USAGE_KEYS, "usage_metrics")
_STREAMS = ("__next__", "__anext__", "response_gen")


def _from_fields(result: object) -> Reply | None:
    """An object with one text. Raises AgentFault if its fields hold several; None: it has none."""
    held = [(name, get(result, name)) for name in _FIELDS]
    texts = {}
    # Lists and mappings, which may hold anything, count only where nothing else is a text
    plain = [(name, at) for name, at in held if written(at) is not None or role_of(at) == MODEL]
    for name, value in plain or held:
        text = said(value)
        if text is not None:
            texts[name] = text

    content = get(result, "content")
    if not texts and are_blocks(content):  # of a tool of MCP
        texts["content"] = joined_blocks(content)

    if get(result, "is_error") is True:  # the Claude Agent SDK's
        why = name_in(result, "result", "subtype") or texts.get("content", "no reason is given")
        raise AgentFault("bad_reply", f"the result is an error: {why}")

    if not texts:
        fields = getattr(type(result), "model_fields", None) or getattr(
            type(result), "__dataclass_fields__", {}
        )
        if isinstance(fields, Mapping) and len(fields) == 1:
            (name,) = fields
            text = written(get(result, name))
            if text is not None:
                texts = {name: text}

    if not texts:
        if any(hasattr(result, name) for name in _STREAMS):
            raise AgentFault(
                "bad_reply",
                f"the agent returned a {type(result).__name__}, which comes in pieces; read it to "
                f"its end and return the whole text",
            )

        return None

    counted = [get(result, name) for name in _USAGES]
    counted.append(get(get(result, "raw"), "usage"))  # LlamaIndex keeps the provider's response
    counted.append(get(get(result, "metrics"), "accumulated_usage"))  # Strands'
    if get(result, "eval_count") is not None:  # Ollama's counts stand beside the text
        counted.append(result)
    costs = (dollars_of(get(result, name)) for name in COST_KEYS)
    made = list(items(get(result, "tool_calls")))
    for call in items(get(result, "sources")):  # LlamaIndex's; another's may be documents
        if get(call, "tool_name") is not None:
            made.append(call)

    return Reply(
        text=_one(texts),
        reasoning=name_in(result, "reasoning"),
        tool_calls=named_calls(made),
        usage=next(filter(None, (summed([count]) for count in counted)), None),
        dollars=next((cost for cost in costs if cost is not None), None),
        model=name_in(result, "model"),
        stop_reason=name_in(result, *STOP_KEYS),
    )


def _one(texts: Mapping[str, str]) -> str:
    """The text of the usual name, else of any; all fields must agree. Raises AgentFault."""
    usual = {name: text for name, text in texts.items() if name in TEXT_KEYS}
    named = usual or texts
    if len(set(named.values())) > 1:
        raise several(sorted(named))
    return next(iter(named.values()))
