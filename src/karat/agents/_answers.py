"""What a program, a function or an agent framework returned, as a Reply.

Results of agent frameworks and providers' SDKs are recognized by their attributes; no library is
imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any

from karat.agents._frameworks import (
    framework_result,
    from_messages,
    haystack_replies,
    model_messages,
    said,
)
from karat.agents._providers import provider_reply
from karat.agents._reading import (
    COST_KEYS,
    LAST_TEXT_KEYS,
    OTHER_TEXT_KEYS,
    STOP_KEYS,
    TEXT_KEYS,
    USAGE_KEYS,
    are_blocks,
    are_messages,
    calls_in,
    camel,
    dollars_of,
    empty_answer,
    get,
    items,
    joined_blocks,
    name_in,
    whole_text,
    written,
)
from karat.errors import AgentFault, Caught, TrialFault, described
from karat.models.faults import error_in
from karat.models.usage import unread_counts, usage_from
from karat.records import Reply, absurd_reply, checked, plain

_WANTED = (
    "a text, a number, a mapping with `text`, or, from a Python function, a karat.Reply or the "
    "result of an agent framework or a provider's SDK"
)


def reply_from(value: object, unread: set[str] | None = None) -> Reply:
    """A text, a number, a Reply, or a mapping with `text` (or another usual name of it) and Reply's
    other fields.

    `usage` may have the shape of any provider that `karat.models.usage` knows; `cost` is another
    name of `dollars`. The names of further keys are added to `unread`, with those of other texts,
    and of a usage or cost that cannot be right: it is unknown. Raises AgentFault("bad_reply"):
    anything else is not an answer, including None.
    """
    if isinstance(value, Reply):
        return value
    text = written(value)
    if text is not None:
        return Reply(text=text)
    if not isinstance(value, Mapping):
        raise AgentFault(
            "bad_reply", f"the agent returned a {type(value).__name__}, expected {_WANTED}"
        )

    held = [value.get(key) for key in _TEXT_KEYS]
    # one by one: a message without a text raises
    late = name_in(value, *LAST_TEXT_KEYS)
    texts = chain(map(written, held), map(said, held), map(said, [value]), [late])
    text = next((text for text in texts if text is not None), None)
    if text is None or (text == "" and value.get("error")):
        raise AgentFault("bad_reply", _without_text(value))
    if get(value, "is_error") is True:  # of MCP
        raise AgentFault("bad_reply", f"the agent reported an error: {text}")

    beside = {key: value[key] for key in value if str(key).endswith(_BESIDE)}
    counted = next(filter(None, (get(value, key) for key in USAGE_KEYS)), beside)
    usage = usage_from(counted)
    cost_keys = (key for key in COST_KEYS if get(value, key) is not None)
    cost_key = next(cost_keys, "dollars")
    cost = get(value, cost_key)
    dollars = dollars_of(get(counted, "cost") if cost is None else cost)
    if unread is not None:
        known = {*COST_KEYS, *USAGE_KEYS, *STOP_KEYS, "is_error"}
        known |= {*map(camel, known), *beside}
        known |= {*Reply.__struct_fields__, *_TEXT_KEYS, "role", "message"}
        known |= {key for key in value if late == text == written(value[key])}
        unread.update(str(key) for key in value.keys() - known)
        for name in _TEXT_KEYS:  # another text than the one that is taken
            other = written(value.get(name))
            if name not in Reply.__struct_fields__ and other not in (None, text):
                unread.add(name)

        unread.update(f"usage.{name}" for name in unread_counts(counted))
        if usage is None and isinstance(counted, Sequence):
            unread.add("usage")
        if dollars is None and cost is not None:
            unread.add(cost_key)

    others = _others(value, set() if unread is None else unread)
    stopped = name_in(value, *STOP_KEYS)
    return Reply(text=text, usage=usage, dollars=dollars, stop_reason=stopped, **others)


def _others(value: Mapping[str, Any], unread: set[str]) -> dict[str, Any]:
    """The other fields of a reply. An answer is not lost for one of another form, which is added to
    `unread`, except for those that scorers read: without them it would get a wrong score.
    """
    fields = {}
    for name in _OTHERS & value.keys():
        given = value[name]
        if name == "tool_calls":
            calls = calls_in(given)
            if calls is not None:
                given = calls
        elif name in _TEXTS and are_blocks(given):
            given = joined_blocks(given)
        elif name in _TEXTS:
            given = written(given) or given
        if given is None:
            continue
        try:
            field: dict[str, Any] = {name: given}
            one = checked(Reply(text="", **field))
            wrong = absurd_reply(one)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            wrong = str(error)

        if wrong is None:
            fields[name] = getattr(one, name)
        elif name in _SCORED:
            raise AgentFault("bad_reply", f"the object is not a reply: {wrong}")
        else:
            unread.add(name)

    return fields


_TEXT_KEYS = (*TEXT_KEYS, *OTHER_TEXT_KEYS)
# counts beside the text, such as Ollama's and llama.cpp's
_BESIDE = ("_tokens", "Tokens", "eval_count", "tokens_evaluated", "tokens_predicted")


def _without_text(value: Mapping[str, object]) -> str:
    """Why a mapping is no answer: with its own words, if it tells of an error."""
    if value.keys() & {"error", "errors", "detail"}:
        reported = (error_in(value) or {}).get("message")
    else:
        reported = None

    if reported:
        return f"the agent reported an error: {reported}"
    return f"the object has no 'text' (keys: {', '.join(map(str, value)) or 'none'})"


_TEXTS = ("answer", "unit", "program")
_SCORED = (*_TEXTS, "verdict", "tool_calls")
_OTHERS = {*Reply.__struct_fields__} - {"text", "usage", "dollars", "stop_reason"}


def framework_reply(result: object, unread: set[str] | None) -> Reply:
    """The reply in the result of a framework, of a provider's SDK, or else as `reply_from`.

    Raises TrialFault if the result holds no answer, AgentFault("bad_reply") if it cannot be read.
    """
    if result is None or isinstance(result, (str, bytes, bool, int, float, Reply)):
        return reply_from(result, unread)
    if isinstance(result, Enum):
        return reply_from(result.value, unread)
    reply = None
    with Caught() as caught:  # its properties run code of the framework, or of the user
        # The value in LangGraph's GraphOutput, or the result itself. Raises AgentFault if the
        # graph was interrupted.
        wrapped = isinstance(get(result, "interrupts"), tuple) and hasattr(result, "value")
        if get(result, "__interrupt__") or (wrapped and get(result, "interrupts")):
            raise AgentFault("bad_reply", "the graph waits for a person: the run did not finish")
        if wrapped:
            result = get(result, "value")
        if isinstance(result, tuple) and hasattr(result, "_asdict"):
            result = result._asdict()
        # the list of a pipeline of Transformers; a number of NumPy or PyTorch
        if isinstance(result, list) and len(result) == 1 and isinstance(result[0], dict):
            (result,) = result
        elif getattr(result, "shape", None) == ():
            result = plain(result)

        reply = _reply(result)
        made = items(get(result, "tool_calls"))
        if reply is not None and unread is not None and len(reply.tool_calls) < len(made):
            unread.add("tool_calls")  # some have no name

    if caught.error is None:
        if reply is None:
            reply = reply_from(result, unread)
        why = empty_answer(reply.stop_reason)
        if reply.text or why.kind == "empty_answer":  # a program may mean an empty text
            return reply
        why.reply = reply  # what it cost
        raise why

    if isinstance(caught.error, TrialFault):
        raise caught.error
    message = (
        f"the agent returned a {type(result).__name__} that cannot be read: "
        f"{described(caught.error)}"
    )
    raise AgentFault("bad_reply", message) from caught.error


def _reply(result: object) -> Reply | None:
    if not isinstance(result, Mapping):
        return provider_reply(result) or framework_result(result)
    messages = result.get("messages")
    text = name_in(result, *TEXT_KEYS)
    if messages is None and text is None:
        replies = haystack_replies(result) or model_messages(result)
        if replies:
            if isinstance(replies[0], str):
                return reply_from(replies[0])
            return from_messages(replies)
        return provider_reply(result)

    if not are_messages(messages) or (
        text is not None and all(isinstance(item, Mapping) for item in messages)
    ):
        return None  # a mapping of Reply's fields

    structured = result.get("structured_response")
    return from_messages(messages, text=text if structured is None else whole_text(structured))
