"""What an agent of the Agent Client Protocol reports, does and may do, and the replies built from
it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath
from time import perf_counter
from urllib.parse import unquote

import msgspec

from karat.agents._reading import empty_answer
from karat.context import leads_out
from karat.errors import AgentFault, LimitReached, TrialFault
from karat.files import open_regular
from karat.foreign import Json
from karat.mcp.observed import Observed
from karat.records import JsonObject, Reply, ToolCall, Usage

LARGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes of one line from the agent, and of one file that it reads or writes by way of karat."""

_LARGEST_TURN = 4 * LARGEST_MESSAGE  # bytes of all lines that answer one question
_PATCHED = re.compile(
    (
        r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |\+\+\+ |--- "
        r"|rename to )([^\t\r\n]+)"
    ),
    re.MULTILINE,
)
_TEXTS = (  # names of inputs that are not paths, in small letters only
    " code command content contents description filetext glob insert instructions message newstr "
    "newstring newtext oldstr oldstring oldtext pattern prompt query regex replacement script "
    "search text title url "
)
_RISKY = ("edit", "delete", "move", "execute")


class KnownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent exceeds the protocol, or falls short of it."""

    mcp: tuple[str, ...] = (
        "mcp__{server}__{tool}",
        "{server}__{tool}",
        "{server}_{tool}",
        "mcp_{server}_{tool}",
    )
    title_is_name: bool = False  # the first title of a tool call is the tool's name
    id_has_name: bool = False  # `write_file__call_1`
    # the usage that it reports is that of the whole turn, not of its last response
    whole_usage: bool = True
    decides_itself: bool = False  # permissions are also answered by its own model


_KNOWN = {
    "OpenCode": KnownAgent(mcp=("{server}_{tool}",), title_is_name=True, whole_usage=False),
    "@agentclientprotocol/claude-agent-acp": KnownAgent(mcp=("mcp__{server}__{tool}",)),
    "gemini-cli": KnownAgent(mcp=("mcp_{server}_{tool}",), id_has_name=True),
}


def known_agent(name: str) -> KnownAgent:
    """What is known about an agent, by the name it reports."""
    return _KNOWN.get(name) or KnownAgent(decides_itself="codex" in name.lower())


class Lines:
    """Messages of the protocol, one per line; anything else is ignored. A transport of the SDK."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.received = 0  # bytes since the turn began
        self.too_long = False
        self.noise = ""  # the first line that was no message

    async def receive(self) -> JsonObject | None:
        """The next message; None when there are no more, or one is too long."""
        while not self.too_long:
            try:
                line = await self._reader.readuntil(b"\n")
            except (asyncio.IncompleteReadError, OSError):
                return None
            except asyncio.LimitOverrunError:
                self.too_long = True
                return None

            self.received += len(line)
            self.too_long = self.received > _LARGEST_TURN
            with suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message

            self.noise = self.noise or line.decode("utf-8", "replace").strip()

        return None

    async def send(self, message: JsonObject) -> None:
        with suppress(OSError):  # the agent has ended: `receive` sees that
            self._writer.write(json.dumps(message).encode() + b"\n")
            await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()


class Files:
    """Reads and writes for the agent, in its working folder only, whatever links it contains."""

    def __init__(self, shown: Path, root: Path) -> None:
        """`shown`: the folder's path for the agent; `root`: its path for this process."""
        self._shown = shown
        self._root = root

    def read(self, path: str, line: int | None, limit: int | None) -> str:
        """The text, from `line` on (from 1) and at most `limit` lines.

        Raises OSError, ValueError.
        """
        with open_regular(
            self._root / self._below(path), within=self._root, at_most=LARGEST_MESSAGE
        ) as file:
            text = file.read(LARGEST_MESSAGE + 1).decode()

        if line is None and limit is None:
            return text
        start = max(0, (line or 1) - 1)
        return "".join(
            text.splitlines(keepends=True)[start : None if limit is None else start + limit]
        )

    def write(self, path: str, content: str) -> None:
        """Creates or replaces a file, and its parent folders. Raises OSError, ValueError."""
        *folders, name = self._below(path).parts
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with ExitStack() as closing:
            fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            closing.callback(os.close, fd)
            for folder in folders:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=fd)
                below = os.open(
                    folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd
                )
                os.dup2(below, fd, inheritable=False)
                os.close(below)

            with os.fdopen(os.open(name, flags, 0o666, dir_fd=fd), "wb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ValueError("not a regular file")
                file.truncate()
                file.write(content.encode("utf-8", "surrogatepass"))

    def outside(self, path: str) -> bool:
        """Whether a path that a tool of the agent is called with leads out of the folder, as the
        agent sees links.
        """
        view = str(self._root).removesuffix(str(self._shown))
        return leads_out(
            self._shown,
            unquote(path.removeprefix("file://")) if path.startswith("file://") else path,
            root=view,
        )

    def _below(self, path: str) -> PurePosixPath:
        asked = PurePosixPath(path)
        if not asked.is_absolute() or ".." in asked.parts or not asked.is_relative_to(self._shown):
            raise ValueError(f"outside of the working folder {self._shown}")
        below = asked.relative_to(self._shown)
        if not below.parts:
            raise ValueError("a folder")
        return below


class _Call:
    """A tool call, put together from the agent's updates."""

    def __init__(self) -> None:
        self.reported = Json()
        self.first_title = ""
        self.rejected = ""  # why
        self.outside = ""  # the first path out of the working folder that any report names
        self.started = perf_counter()
        self.milliseconds: float | None = None

    def update(self, report: JsonObject) -> None:
        self.first_title = self.first_title or str(report.get("title") or "")
        self.reported |= {name: value for name, value in report.items() if value is not None}
        if report.get("status") in ("completed", "failed"):
            self.milliseconds = self.milliseconds or round(
                (perf_counter() - self.started) * 1000, 3
            )


class TurnUpdates:
    """Collects what the agent says and does in answer to one question."""

    def __init__(
        self,
        agent: KnownAgent,
        observed: Sequence[Observed],
        *,
        tools: Sequence[str],
        outside: Callable[[str], bool],
        redact: Callable[[str], str],
    ) -> None:
        """`tools`: the allowed tools of the agent itself, by name or kind.

        `outside`: as `Files.outside`.
        """
        self._outside = outside
        self._agent = agent
        self._observed = observed
        self._tools = tools
        self._redact = redact
        self._started = perf_counter()
        self._texts: list[str] = []  # all texts of the model
        self._last: list[str] = []  # its texts since the last tool call
        self._trace: list[str] = []  # its thoughts, and its texts between tool calls
        self._calls: dict[str, _Call] = {}
        self._refused: list[ToolCall] = []  # files outside the working folder, and the like
        self._on_the_way = [len(server.calls) for server in observed]
        self.cost: float | None = None  # dollars of the session so far, as the agent counts

    def add(self, update: Json) -> None:
        """One `session/update`; unknown ones are ignored."""
        match update:
            case {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": str(text)},
            }:
                self._texts.append(text)
                self._last.append(text)
            case {
                "sessionUpdate": "agent_thought_chunk",
                "content": {"type": "text", "text": str(text)},
            }:
                self._trace.append(text)
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(key)}:
                self._reported(key, update).update(update)
            case {
                "sessionUpdate": "usage_update",
                "cost": {"amount": float() | int() as amount, "currency": "USD"},
            }:
                # agents report 0 for models whose price they do not know
                self.cost = float(amount) or None

    def permits(self, report: Json) -> bool:
        """Whether the condition allows the tool call that the agent asks permission for."""
        call = self._reported(str(report.get("toolCallId")), report)
        # what it reported before is closer to what the model asked for
        call.update(report | call.reported)
        if not self._allowed(call):
            call.rejected = "the condition does not allow this tool"
        elif call.outside and self._mcp(call) is None:
            call.rejected = f"{call.outside} is outside of the working folder"

        return not call.rejected

    def refuse(self, tool: str, path: str, reason: str) -> None:
        """Records what the agent asked of karat itself and did not get."""
        self._refused.append(ToolCall(tool=tool, input={"path": path}, error=self._redact(reason)))

    @property
    def anything(self) -> bool:
        """Whether the agent has said or done anything."""
        return bool(self._texts or self._trace or self._calls)

    def fault(self, stop: object) -> TrialFault | None:
        """Why there is no answer, by the reason the turn ended; None if there is one."""
        match stop:
            case "end_turn":
                pass
            case "max_tokens" | "refusal":
                return empty_answer(stop)
            case "max_turn_requests":
                return LimitReached(
                    "max_turns", "the agent reached its own limit of responses to one question"
                )
            case "cancelled":
                return AgentFault(
                    "cancelled", "the agent ended the turn as cancelled", retriable=True
                )
            case _:
                if stop is None:
                    named = "without a stop reason"
                else:
                    named = f"by an unknown stop reason, {stop!r:.60}"

                return AgentFault("bad_reply", f"the agent ended the turn {named}", retriable=True)

        for call in self._calls.values():
            if (
                call.outside
                and self._ran(call)
                and call.reported.get("kind") in _RISKY
                and self._mcp(call) is None
            ):
                message = (
                    f"the agent ran '{self._name(call)}' outside of the working folder, on "
                    f"{call.outside}"
                )
                message += ", without asking: configure the agent so that it asks"
                return AgentFault("outside_of_workspace", self._redact(message))

        ran = {
            self._name(call)
            for call in self._calls.values()
            if self._ran(call) and not self._allowed(call)
        }
        if ran:
            names = ", ".join(f"'{name}'" for name in sorted(ran))
            message = (
                f"the agent ran {names} without asking, and the condition does not allow it: "
                "name it in `tools`, or configure the agent so that it asks"
            )
            return AgentFault("tool_not_allowed", message)

        if self.text.strip():
            return None
        return empty_answer(None)

    @property
    def text(self) -> str:
        """The model's text after its last tool call; all its text, if it ended with a tool call."""
        last = "".join(self._last)
        if last.strip():
            return last
        return "".join(self._texts)

    def reply(self, *, whole: bool = False) -> Reply:
        """The answer with its tool calls; `whole`: with the texts between tool calls."""
        # MCP calls as the proxy saw them, in the order the agent reports; then the others
        seen = [
            call
            for server, n in zip(self._observed, self._on_the_way, strict=True)
            for call in server.calls[n:]
        ]
        listed = []
        for call in self._calls.values():
            mcp = self._mcp(call)
            given = call.reported.at("rawInput")
            same = (
                record
                for record in seen
                if mcp == (record.server, record.tool) and given in ({}, record.input)
            )
            alike = (record for record in seen if mcp is None and given and given == record.input)
            if (record := next(same, next(alike, None))) is not None:
                seen.remove(record)
                listed.append(msgspec.structs.replace(record, milliseconds=call.milliseconds))
            else:
                text, status, error = _text(call.reported), call.reported.get("status"), None
                if call.rejected:
                    error = self._redact(f"rejected: {call.rejected}")
                elif status == "failed":
                    error = self._redact(text) or "the tool failed and did not say why"
                elif status != "completed":
                    error = "the attempt ended before the call did"

                server, tool = mcp or (None, self._name(call))
                listed.append(
                    ToolCall(
                        tool=tool,
                        server=server,
                        input=given,
                        result=text if error is None else None,
                        error=error,
                        milliseconds=call.milliseconds,
                    )
                )

        return Reply(
            text="".join(self._texts) if whole else self.text,
            reasoning="".join(self._trace) or None,
            tool_calls=(*listed, *seen, *self._refused),
            milliseconds=round((perf_counter() - self._started) * 1000, 3),
        )

    @property
    def used_tools(self) -> bool:
        return bool(self._calls)

    def _reported(self, key: str, report: Json) -> _Call:
        """The call that a report is about."""
        if key not in self._calls:
            self._calls[key] = _Call()
            if self._last:
                self._trace.append("".join(self._last) + "\n\n")
                self._last = []

        call = self._calls[key]
        if call.outside:
            return call

        # Every path that the call may name: agents call their inputs as they like
        paths: list[str] = []
        for part in ("locations", "content"):
            for item in report.list(part):
                paths.append(item.text("path") or "")

        paths += _paths_in(report.get("rawInput"), "")
        call.outside = next(filter(self._outside, paths), "")
        return call

    def _name(self, call: _Call) -> str:
        """The tool's name where the agent gives one, else the kind of tool: titles are written by
        the model.
        """
        key = str(call.reported.get("toolCallId"))
        report = call.reported
        if self._agent.id_has_name and "__" in key:
            return key.rpartition("__")[0]
        if self._agent.title_is_name and call.first_title:
            return call.first_title
        return str(report.get("name") or report.get("kind") or "other")

    def _mcp(self, call: _Call) -> tuple[str, str] | None:
        """The server and the tool, if it is one of the condition's."""
        report = call.reported
        name = self._name(call)
        names = set()
        for title in (name,) if report.get("kind") in _RISKY else (name, call.first_title):
            names.add(_plain(title))
        for server in self._observed:
            for tool in server.tools:
                spelled = {
                    form.format(server=_plain(server.server), tool=_plain(tool))
                    for form in self._agent.mcp
                }
                if names & spelled:
                    return server.server, tool

        return None

    def _allowed(self, call: _Call) -> bool:
        return self._mcp(call) is not None or self._name(call) in self._tools

    def _ran(self, call: _Call) -> bool:
        return not call.rejected and call.reported.get("status") == "completed"


def _paths_in(value: object, key: str) -> Iterator[str]:
    match value:
        case dict():
            yield from (name for name in value if "/" in name)
            for name, below in value.items():
                yield from _paths_in(below, re.sub(r"[^a-z]", "", name.casefold()))
        case list():
            for below in value:
                yield from _paths_in(below, key)
        case str() if "patch" in key or "diff" in key:
            yield from (path for path in _PATCHED.findall(value) if path != "/dev/null")
        case str() if f" {key} " not in _TEXTS and "\n" not in value:
            yield value


def _plain(name: str) -> str:
    """Names of servers and tools as agents spell them for their models."""
    return "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_"
        for letter in name
    )


def _text(report: Json) -> str:
    """A tool's result: its content, else its raw output."""
    parts = []
    for item in report.list("content"):
        match item:
            case {"type": "content", "content": {"type": "text", "text": str(text)}}:
                parts.append(text)
            case {"type": "diff", "path": str(path)}:
                parts.append(f"[diff of {path}]")
            case {"type": str(kind)}:
                parts.append(f"[{kind}]")

    raw = report.get("rawOutput")
    if parts or raw is None:
        return "\n".join(parts)
    if isinstance(raw, str):
        return raw
    return json.dumps(raw, ensure_ascii=False)


def reported_usage(reported: object) -> Usage | None:
    """The tokens of a turn, as the agent reports them; None: it does not, or they do not add up.

    >>> reported_usage(
    ...     {"inputTokens": 150, "outputTokens": 15, "cachedReadTokens": 50, "totalTokens": 215}
    ... )
    ... # doctest: +NORMALIZE_WHITESPACE
    Usage(input_tokens=200, output_tokens=15, cache_read_tokens=50, cache_write_tokens=None,
    reasoning_tokens=None)
    """
    if not isinstance(reported, dict):
        return None
    names = (
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "cachedReadTokens",
        "cachedWriteTokens",
        "thoughtTokens",
    )
    counts = [reported.get(name) for name in names]
    if any(
        isinstance(n, bool) or not (n is None or (isinstance(n, int) and n >= 0)) for n in counts
    ):
        return None

    given, spoken, total, read, written, thoughts = counts
    if given is None or spoken is None or not given + spoken:
        return None
    cached = (read or 0) + (written or 0)
    thought = thoughts or 0
    # Only the sum shows whether input tokens include cached ones, and output tokens include
    # reasoning.
    for more_in, more_out in ((cached, thought), (cached, 0), (0, thought), (0, 0)):
        if given + more_in + spoken + more_out == total:
            return Usage(
                input_tokens=given + more_in,
                output_tokens=spoken + more_out,
                cache_read_tokens=read,
                cache_write_tokens=written,
                reasoning_tokens=thoughts,
            )

    return None
