"""A request to a model, in one format for all four APIs."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from karat.records import JsonObject

Api = Literal["chat", "responses", "messages", "gemini", "count_tokens"]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""  # for "tool": the result
    tool_calls: tuple[str, ...] = ()  # the names that the assistant called
    tool_call_ids: tuple[str, ...] = ()  # of `tool_calls`; for "tool": of the call that it answers
    error: bool = False  # for "tool": the client reports that the call failed


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool that the model may call."""

    name: str
    description: str = ""
    schema: JsonObject  # of its arguments


class Request(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One request to a model. `body` is exactly what was sent."""

    number: int  # from 1, in order of arrival
    api: Api
    path: str
    headers: Mapping[str, str]  # lower-case names; includes the API key
    body: JsonObject
    model: str
    stream: bool
    system: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[OfferedTool, ...] = ()
    # the tool that must be called, or "*" for any; None: the model is free
    forced: str | None = None
    schema: JsonObject | None = None  # of the requested structured output

    @property
    def key(self) -> str:
        """The API key that was sent; empty if there was none."""
        named = self.headers.get("x-api-key") or self.headers.get("x-goog-api-key")
        return named or self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def question(self) -> str:
        """The last user message."""
        return next(
            (message.text for message in reversed(self.messages) if message.role == "user"), ""
        )

    @property
    def tool_results(self) -> tuple[str, ...]:
        """The results of tools since the last user message."""
        results = []
        for message in reversed(self.messages):
            if message.role == "user":
                break
            if message.role == "tool":
                results.append(message.text)

        return tuple(reversed(results))

    def offered(self, name: str) -> OfferedTool | None:
        """The tool with this name, or whose prefixed name (`mcp__docs__search`, `docs_search`) ends
        with it.
        """
        for tool in self.tools:
            if tool.name == name:
                return tool

        return next((tool for tool in self.tools if tool.name.endswith(f"_{name}")), None)

    @cached_property
    def digest(self) -> str:
        """Hex digest of the conversation and the model."""
        messages = [[message.role, message.text, message.tool_calls] for message in self.messages]
        return digest_of([self.model, self.system, messages])

    def as_json(self) -> dict[str, object]:
        """The request for the log file, without the API key."""
        kept = {name: "***" if name in _KEYS else value for name, value in self.headers.items()}
        return {
            "number": self.number,
            "api": self.api,
            "path": self.path,
            "model": self.model,
            "stream": self.stream,
            "tools": [tool.name for tool in self.tools],
            "headers": kept,
            "body": self.body,
        }


_KEYS = {"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "proxy-authorization"}


def digest_of(value: object) -> str:
    """A digest of 24 hex digits of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


# What Claude Code inserts into its user's text and after the results of tools.
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)

_BILLING = re.compile(r"^x-anthropic-billing-header:.*\n?")  # which of its builds asks


class BadRequest(Exception):
    """Not a valid request of this API."""


def read_request(
    api: Api, *, number: int, path: str, headers: Mapping[str, str], body: JsonObject
) -> Request:
    """The request. Raises BadRequest with what is missing or wrong."""
    model = body.get("model")
    stream = body.get("stream") is True
    if api == "gemini":
        model, _, method = path.rpartition("/")[2].partition(":")
        stream = method == "streamGenerateContent"

    if not isinstance(model, str):
        raise BadRequest("model: a text is required")
    try:
        parts = _READ[api](body)
    except (AttributeError, KeyError, TypeError) as error:
        raise BadRequest(
            f"not a valid request of this API: {type(error).__name__}: {error}"
        ) from error

    # Checks what providers check: each call is directly followed by its result, and each result
    # has its call
    open_calls: dict[str, None] = {}
    for message in parts["messages"]:
        if message.role != "tool":
            if open_calls:
                raise BadRequest(f"messages: a tool call has no result: {', '.join(open_calls)}")
            open_calls = dict.fromkeys(message.tool_call_ids)
            continue

        for call in message.tool_call_ids:
            if call not in open_calls:
                raise BadRequest(f"messages: a result answers no tool call right before it: {call}")
            del open_calls[call]

    if open_calls:
        raise BadRequest(f"messages: a tool call has no result: {', '.join(open_calls)}")

    return Request(
        number=number,
        api=api,
        path=path,
        headers=headers,
        body=body,
        model=model,
        stream=stream,
        **parts,
    )


def _chat(body: JsonObject) -> JsonObject:
    messages = []
    system = []
    for entry in _listed(body, "messages"):
        if entry["role"] in ("system", "developer"):
            system.append(_text(entry["content"]))
        elif entry["role"] == "tool":
            messages.append(
                Message(
                    role="tool",
                    text=_text(entry["content"]),
                    tool_call_ids=(entry["tool_call_id"],),
                )
            )
        elif entry["role"] == "assistant":
            listed = entry.get("tool_calls") or []
            calls = tuple(_function(call)["name"] for call in listed)
            ids = tuple(call["id"] for call in listed)
            text = _text(entry.get("content"))
            messages.append(
                Message(role="assistant", text=text, tool_calls=calls, tool_call_ids=ids)
            )
        else:
            messages.append(Message(role="user", text=_text(entry["content"])))

    tools = [_offered(_function(tool), "parameters") for tool in body.get("tools") or []]
    asked = body.get("response_format") or {}
    return {
        "system": "\n\n".join(system),
        "messages": tuple(messages),
        "tools": tuple(tools),
        "forced": _forced(body.get("tool_choice")),
        "schema": (asked.get("json_schema") or {}).get("schema"),
    }


def _responses(body: JsonObject) -> JsonObject:
    given = body.get("input")
    items = (
        [{"role": "user", "content": given}] if isinstance(given, str) else _listed(body, "input")
    )
    messages = []
    system = [body.get("instructions") or ""]
    for item in items:
        kind = item.get("type", "message")
        role = item.get("role")
        if kind == "function_call_output":
            messages.append(
                Message(role="tool", text=_text(item["output"]), tool_call_ids=(item["call_id"],))
            )
        elif role in ("system", "developer"):
            system.append(_text(item["content"]))
        elif role == "user":
            messages.append(Message(role="user", text=_text(item["content"])))
        else:
            # One response of the model is several items here: its thoughts, its text, its calls.
            if messages and messages[-1].role == "assistant":
                before = messages.pop()
            else:
                before = Message(role="assistant")

            text = before.text + (_text(item["content"]) if kind == "message" else "")
            calls = before.tool_calls
            ids = before.tool_call_ids
            if kind == "function_call":
                calls = (*calls, item["name"])
                ids = (*ids, item["call_id"])

            messages.append(
                Message(role="assistant", text=text, tool_calls=calls, tool_call_ids=ids)
            )

    tools = []
    for tool in body.get("tools") or []:
        if tool.get("type") == "function":
            tools.append(_offered(tool, "parameters"))

    asked = (body.get("text") or {}).get("format") or {}
    return {
        "system": "\n\n".join(filter(None, system)),
        "messages": tuple(messages),
        "tools": tuple(tools),
        "forced": _forced(body.get("tool_choice")),
        "schema": asked.get("schema"),
    }


def _messages(body: JsonObject) -> JsonObject:
    messages: list[Message] = []
    for entry in _listed(body, "messages"):
        if isinstance(entry["content"], str):
            blocks = [{"type": "text", "text": entry["content"]}]
        else:
            blocks = entry["content"]

        if entry["role"] == "system":
            continue  # between other messages, as Claude Code sends them
        if entry["role"] == "assistant":
            listed = [block for block in blocks if block["type"] == "tool_use"]
            calls = tuple(block["name"] for block in listed)
            ids = tuple(block["id"] for block in listed)
            messages.append(
                Message(role="assistant", text=_text(blocks), tool_calls=calls, tool_call_ids=ids)
            )
            continue

        results = []
        for block in blocks:
            if block["type"] == "tool_result":
                results.append(
                    Message(
                        role="tool",
                        text=_unreminded(_text(block.get("content"))),
                        tool_call_ids=(block["tool_use_id"],),
                        error=bool(block.get("is_error")),
                    )
                )

        text = _unreminded(_text(blocks)) or ("" if results else _text(blocks))
        messages += results
        if text or not results:
            messages += [Message(role="user", text=text)]

    asked = body.get("output_format") or (body.get("output_config") or {}).get("format") or {}
    return {
        "system": _BILLING.sub("", _text(body.get("system"))),
        "messages": tuple(messages),
        "tools": tuple(_offered(tool, "input_schema") for tool in body.get("tools") or []),
        "forced": _forced(body.get("tool_choice")),
        "schema": asked.get("schema"),
    }


def _gemini(body: JsonObject) -> JsonObject:
    messages: list[Message] = []
    # ids are optional: the n-th result of a tool belongs to its n-th call
    called: Counter[str] = Counter()
    returned: Counter[str] = Counter()
    for content in _listed(body, "contents"):
        text = "".join(
            part["text"] for part in content["parts"] if "text" in part and not part.get("thought")
        )
        calls = []
        for part in content["parts"]:
            if "functionCall" in part:
                calls.append(part["functionCall"]["name"])

        results = []
        for part in content["parts"]:
            if "functionResponse" in part:
                results.append(part["functionResponse"])

        if content.get("role") == "model":
            ids = tuple(_numbered(name, called) for name in calls)
            messages.append(
                Message(role="assistant", text=text, tool_calls=tuple(calls), tool_call_ids=ids)
            )
            continue

        for result in results:
            given = result.get("response") or {}
            shown = given.get("output", given.get("error", given))
            if not isinstance(shown, str):
                shown = json.dumps(shown, ensure_ascii=False)
            ids = (_numbered(result["name"], returned),)
            messages.append(
                Message(role="tool", text=shown, tool_call_ids=ids, error="error" in given)
            )

        if text or not results:
            messages += [Message(role="user", text=text)]

    declared = [
        tool
        for group in body.get("tools") or []
        for tool in group.get("functionDeclarations") or []
    ]
    asked = body.get("generationConfig") or {}
    choice = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    # the second: Google's SDK
    schemas = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    return {
        "system": _text((body.get("systemInstruction") or {}).get("parts")),
        "messages": tuple(messages),
        "tools": tuple(
            _offered(tool, next((key for key in schemas if key in tool), "")) for tool in declared
        ),
        "forced": "*" if choice.get("mode") == "ANY" else None,
        "schema": asked.get("responseJsonSchema") or asked.get("responseSchema"),
    }


def _numbered(name: str, seen: Counter[str]) -> str:
    seen[name] += 1
    return f"{name}#{seen[name]}"


_READ = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
    "gemini": _gemini,
    "count_tokens": _messages,
}


def _listed(body: JsonObject, name: str) -> Iterable[JsonObject]:
    items = body.get(name)
    if not isinstance(items, list) or not items:
        raise BadRequest(f"{name}: a non-empty list is required")
    return items


def _text(content: str | Sequence[JsonObject] | None) -> str:
    """The text of a message, which is one text or a list of blocks."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(block["text"] for block in content if isinstance(block.get("text"), str))


def _unreminded(text: str) -> str:
    if "<system-reminder>" in text:
        return _REMINDER.sub("\n", text).strip("\n")
    return text


def _function(tool: Mapping[str, object]) -> JsonObject:
    function = tool.get("function") or tool.get("custom") or {}
    if isinstance(function, dict):
        return function
    return {}


def _offered(tool: JsonObject, schema: str) -> OfferedTool:
    described = tool.get("description") or ""
    return OfferedTool(
        name=str(tool.get("name", "")), description=described, schema=tool.get(schema) or {}
    )


def _forced(choice: object) -> str | None:
    """OpenAI: "auto", "required", {function}; Anthropic: {type: auto | any | tool, name}."""
    if isinstance(choice, str):
        return "*" if choice == "required" else None
    if not isinstance(choice, Mapping):
        return None
    if choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools") or choice
        return "*" if allowed.get("mode") == "required" else None

    name = _function(choice).get("name") or choice.get("name")
    if name:
        return str(name)
    if choice.get("type") == "any":
        return "*"
    return None
