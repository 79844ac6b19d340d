"""What the server was asked, in one form for all three APIs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

__all__ = ["Api", "Offered", "Request", "Said", "digest_of"]

Api = Literal["chat", "responses", "messages", "count_tokens"]


@dataclass(frozen=True, kw_only=True)
class Said:
    """One message of the conversation."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""  # for "tool": the result
    tool_calls: tuple[str, ...] = ()  # the names that the assistant called
    tool_call_ids: tuple[str, ...] = ()  # of `tool_calls`; for "tool": of the call that it answers
    error: bool = False  # for "tool": the client says that the call failed


@dataclass(frozen=True, kw_only=True)
class Offered:
    """One tool that the model may call."""

    name: str
    description: str = ""
    schema: Mapping[str, Any]  # of its arguments


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request to a model. `body` is what was sent, word for word."""

    number: int  # from 1, in order of arrival
    api: Api
    path: str
    headers: Mapping[str, str]  # lower case names; the key stands here in clear
    body: Mapping[str, Any]
    model: str
    stream: bool
    system: str = ""
    asides: tuple[str, ...] = ()  # what the client told the model in between, in the system's name; Claude Code does
    messages: tuple[Said, ...] = ()
    tools: tuple[Offered, ...] = ()
    forced: str | None = None  # a tool must be called: its name, or "*" for any. None: as the model likes
    schema: Mapping[str, Any] | None = None  # of the JSON that must be answered with, where it was asked for

    @property
    def key(self) -> str:
        """The key that was sent; empty if there was none."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def question(self) -> str:
        """What the user said last."""
        return next((said.text for said in reversed(self.messages) if said.role == "user"), "")

    @property
    def tool_results(self) -> tuple[str, ...]:
        """The results of the tools since the user spoke last."""
        found = []
        for said in reversed(self.messages):
            if said.role == "user":
                break
            if said.role == "tool":
                found.append(said.text)
        return tuple(reversed(found))

    def offered(self, name: str) -> Offered | None:
        """The tool of this name, or the one whose prefixed name (`mcp__docs__search`, `docs_search`) ends so."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        return next((tool for tool in self.tools if tool.name.endswith(f"_{name}")), None)

    @cached_property
    def digest(self) -> str:
        """Hex, over the conversation and the model: the same whenever the same is asked."""
        said = [[one.role, one.text, one.tool_calls] for one in self.messages]
        return digest_of([self.model, self.system, said])

    def as_json(self) -> dict[str, Any]:
        """For the log file: without the key."""
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


_KEYS = {"authorization", "x-api-key", "api-key", "cookie", "proxy-authorization"}


def digest_of(value: Any) -> str:
    """24 hex digits over a value of JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
