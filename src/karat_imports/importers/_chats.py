"""Reads the messages of a chat, in the shapes that providers, frameworks and tracers write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from karat.documents.answers import stop_reason
from karat.foreign import Json
from karat.formats import text_of
from karat.records import JsonObject, ToolCall
from karat_imports.importers._reading import Unreadable, decode

_AROUND = ("messages", "generations", "choices", "output")  # keys of a list of messages
REPLIES = ("response", "answer", "reply", "output", "completion")
"""Keys of a reply beside the messages that it answers."""
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
_TEXTS = ("text", "input_text", "output_text")  # types of parts
_MARKUP = ("html", "markdown", "refusal")  # types of parts whose text is in the field of that name
_CALLS = ("tool_call", "tool_use", "toolUse", "function_call")
_RESULTS = ("tool_call_response", "tool_result", "toolResult", "function_call_output")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a model asked for."""

    id: str | None
    tool: str
    input: JsonObject


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a chat."""

    role: str  # system, user, assistant, tool, or as the file names it; "": it names none
    text: str | None
    calls: Sequence[Call] = ()
    results: Sequence[tuple[str | None, str]] = ()  # id of the call, what it returned
    finish_reason: str | None = None


def spoken(content: object) -> str | None:
    """The text in the content of a message: the content itself, or its parts that are text.

    >>> spoken([{"type": "text", "text": "Hi"}, {"type": "image_url"}, "there"])
    'Hi\\nthere'
    """
    if isinstance(content, str):
        return content or None
    if isinstance(content, dict) and "content" in content:  # LangChain's `data` of a message
        return spoken(content["content"])
    texts: list[str] = []
    parts = _parts(content)
    kinds = {Json(part).text("type") for part in parts if "text" in Json(part)}
    if any(isinstance(part, str) for part in parts) and kinds - {None, *_TEXTS}:
        # Telegram's: a text in pieces
        pieces = [part if isinstance(part, str) else Json(part).text("text") for part in parts]
        return "".join(filter(None, pieces)) or None

    for part in parts:
        row = Json(part)
        if isinstance(part, str):
            texts.append(part)
        elif row.text("type") in (None, *_TEXTS):
            texts.append(row.text("text", "content") or row.at("text").text("value") or "")
        elif row.text("type") in _MARKUP:
            texts.append(row.text(str(row["type"])) or "")

    return "\n".join(filter(None, texts)) or None


def messages(value: object) -> list[Message]:
    """The messages in a chat: a list, an object with `messages`, one message, or JSON of these.

    >>> [message.role for message in messages([{"role": "user", "content": "Hi"}])]
    ['user']
    """
    value = unpacked(value)
    for key in _AROUND:
        if isinstance(value, dict) and isinstance(inner := value.get(key), (list, dict)):
            value = inner

    if isinstance(value, dict):
        value = [value]
    rows: list[object] = []
    for item in _parts(value):
        rows += item if isinstance(item, list) else [item]  # a list: one of a batch of chats

    return [message for row in rows if (message := _message(row)) is not None]


def question(chat: Iterable[Message]) -> str | None:
    """What the user said last."""
    said = []
    for message in chat:
        if message.role == "user" and message.text:
            said.append(message.text)

    if said:
        return said[-1]
    return None


def tool_calls(chat: Iterable[Message]) -> tuple[ToolCall, ...]:
    """The calls in a chat, each once, with their results.

    A result that names no call is that of the first call before it without one.
    """
    calls: list[Call] = []
    places: dict[str, int] = {}  # id of a call → where it is
    results: dict[int, str] = {}
    first = 0  # no call before it is without a result
    for message in chat:
        for call in message.calls:
            if call.id is None or call.id not in places:
                places.setdefault(call.id or "", len(calls))
                calls.append(call)

        for id_, text in message.results:
            while first in results:
                first += 1

            place = places.get(id_ or "", len(calls))
            if id_ is None:
                place = first
            if place < len(calls):
                results.setdefault(place, text)

    return tuple(
        ToolCall(tool=call.tool, input=call.input, result=results.get(at))
        for at, call in enumerate(calls)
    )


def reply_beside(row: Json) -> str | None:
    """The reply to the last message, where a log has it aside: as a text or as a model's answer."""
    for key in (*REPLIES, "outputs", "result"):
        value = row.get(key)
        if isinstance(value, str) and value and key in REPLIES:
            return value
        text = row.at(key).text(*REPLIES)
        if text is not None:
            return text
        replies = []
        for message in messages(row.at(key).get("body", value)):  # `body`: of a batch
            if message.role == "assistant":
                replies.append(message.text)

        if replies:
            return replies[-1]

    return None


def unpacked(value: object) -> object:
    """The value in a text of JSON; any other text, and any other value, as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode(value.encode("utf-8", "replace"))
        except Unreadable:
            return value

    return value


def arguments(value: object) -> JsonObject:
    """What a tool was called with, as an object.

    >>> arguments('{"city": "Rome"}'), arguments(3)
    ({'city': 'Rome'}, {'input': 3})
    """
    value = unpacked(value)
    if isinstance(value, dict):
        return value
    if value is None or value == "":
        return {}
    return {"input": value}


def _parts(content: object) -> list[object]:
    if isinstance(content, dict):
        return [content]
    if not isinstance(content, list):
        return []
    # OpenInference nests a part once more
    return [Json(part).get("message_content", part) for part in content]


def _message(value: object) -> Message | None:
    row = Json(value)
    if row.at("message"):  # as OpenInference, and a choice of OpenAI's, nest it
        row = Json({**row.without("message"), **row.at("message")})
    if row.at("kwargs") and row.get("lc") is not None:  # as LangChain serializes it
        names = row.get("id")
        name = ""
        if isinstance(names, list) and names:
            name = str(names[-1])
        row = Json({**row.at("kwargs"), "type": name.partition("Message")[0].lower()})

    if not row:
        return None

    if row.text("type") in (*_CALLS, *_RESULTS):  # an item of OpenAI's Responses API
        row = Json({"role": "assistant", "content": [row]})
    role = row.text("role", "type") or ""
    role = _ROLES.get(role, role)
    content = row.get("parts", row.get("content", row.get("contents", row.get("blocks"))))
    if role != "user":
        content = unpacked(content)
    text = spoken(content)

    calls: list[Call] = []
    results: list[tuple[str | None, str]] = []
    beside = row.at("additional_kwargs").list("tool_calls")
    for call in [*row.list("tool_calls"), *row.list("toolCalls"), *beside]:
        of = Json({**call.without("tool_call"), **call.at("tool_call")})
        if of.at("function"):
            of = Json({**of.without("function", "type"), **of.at("function")})
        calls.append(_call(of))
        returned = of.first("result", "output")
        if returned is not None:
            results.append((calls[-1].id, spoken(returned) or _shown(returned)))

    for part in map(Json, _parts(content)):
        for kind in (*_CALLS, *_RESULTS):
            of = part.at(kind)
            if part.text("type") == kind:
                of = part
            if of and kind in _CALLS:
                calls.append(_call(of))
            elif of:
                result = of.first("response", "result", "content", "output")
                id_ = of.text("call_id", "tool_use_id", "toolUseId", "id")
                results.append((id_, spoken(result) or _shown(result)))

    if text is None and not calls and not results and isinstance(row.get("content"), str):
        text = row.text("content")  # JSON is what it says

    if role == "tool" and not results:
        results = [(row.text("tool_call_id", "id"), text or _shown(content))]
        text = None

    return Message(
        role=role,
        text=text,
        calls=calls,
        results=results,
        finish_reason=stop_reason(row),
    )


def _shown(value: object) -> str:
    if value is None:
        return ""
    return text_of(value)


def _call(of: Json) -> Call:
    return Call(
        id=of.text("call_id", "id", "toolUseId", "tool_call_id", "toolCallId"),
        tool=of.text("name", "toolName", "tool_name", "tool") or "",
        input=arguments(of.first("arguments", "args", "input")),
    )
