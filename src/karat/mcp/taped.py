"""One attempt's view of a server whose traffic is recorded, or comes from a recording."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import msgspec

from karat.errors import InfrastructureFault
from karat.mcp import attempts
from karat.mcp.attempts import Attempt
from karat.mcp.cassettes import Asked, Kept, Player, Recorder, cassette_path
from karat.mcp.preflight import Offer, offer_of
from karat.mcp.results import Outcome, bounded
from karat.records import Cassettes, McpServer
from karat.redact import Redactor

__all__ = ["Asking", "Deck", "Line", "Recording", "Replayed"]


UNREPEATABLE = frozenset({"subscriptions/listen"})
"""Methods whose answer is a stream of notifications, which are not recorded."""


class Line(Protocol):
    """What can be asked as a server: a session with it, or a view that records or replays one."""

    async def offer(self) -> Offer: ...

    async def ask(self, tool: str, arguments: dict[str, Any]) -> Outcome: ...


class Deck:
    """The cassettes of a run, one a server, opened when first needed."""

    def __init__(self, cassettes: Cassettes, redact: Redactor) -> None:
        self.replays = cassettes.mode == "replay"
        self._folder, self._redact = cassettes.folder, redact
        self._recorders: dict[str, Recorder] = {}
        self._players: dict[str, Player] = {}
        self._whole_run = Attempt(attempts.WHOLE_RUN)

    def recorded(self, server: McpServer, line: Line, attempt: Attempt | None) -> Line:
        """The same line, with everything that goes over it written down."""
        return _Recorded(line, self.recording(server, attempt))

    def recording(self, server: McpServer, attempt: Attempt | None) -> Recording:
        """Where the requests of this attempt to the server are written."""
        return Recording(self._recorder(server), attempt or self._whole_run)

    def refused(self, server: McpServer, fault: InfrastructureFault, attempt: Attempt | None) -> None:
        """Keeps why there was no line at all."""
        asked = Asked(session=(attempt or self._whole_run).name, method="initialize", fault=Kept.of(fault))
        self._recorder(server).add(attempt or self._whole_run, asked)

    def replayed(self, server: McpServer, attempt: Attempt | None) -> Replayed:
        """A line on which the recording answers, and nobody else."""
        path = cassette_path(self._folder, server)
        if path.name not in self._players:
            self._players[path.name] = Player(path, self._redact)
        return Replayed(server, self._players[path.name], attempt or self._whole_run)

    def close(self) -> None:
        for recorder in self._recorders.values():
            recorder.close()
        self._recorders.clear()

    def _recorder(self, server: McpServer) -> Recorder:
        path: Path = cassette_path(self._folder, server)
        if path.name not in self._recorders:
            self._recorders[path.name] = Recorder(path, server, self._redact)
        return self._recorders[path.name]


class Recording:
    """The requests of one attempt to one server, and the cassette that they are written to."""

    def __init__(self, recorder: Recorder, attempt: Attempt) -> None:
        self._recorder, self._attempt = recorder, attempt

    def asking(self, method: str, arguments: dict[str, Any], *, relayed: bool = False) -> Asking:
        """A request that is being made. `relayed`: by an agent that connects to the server itself."""
        n = self._attempt.next(self._recorder.name, self._recorder.request(method, arguments))
        asked = Asked(session=self._attempt.name, method=method, arguments=arguments, n=n, relayed=relayed)
        return Asking(asked, self._recorder, self._attempt)


class _Recorded:
    def __init__(self, line: Line, recording: Recording) -> None:
        self._line, self._recording = line, recording

    async def offer(self) -> Offer:
        with self._recording.asking("initialize", {}) as asking:
            offer = await self._line.offer()
            asking.keep(result=offer.introduction)
        listed = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in offer.as_listed]
        with self._recording.asking("tools/list", {}) as asking:
            asking.keep(result={"tools": listed})
        return offer

    async def ask(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        with self._recording.asking("tools/call", {"name": tool, "arguments": arguments}) as asking:
            outcome = bounded(await self._line.ask(tool, arguments))
            found = outcome.result
            result = found.model_dump(mode="json", by_alias=True, exclude_none=True) if found is not None else None
            asking.keep(result=result, error=outcome.error, code=outcome.code, milliseconds=outcome.milliseconds)
        return outcome


class Asking:
    """A request under way, written down when it is over, however it ends."""

    def __init__(self, asked: Asked, recorder: Recorder, attempt: Attempt) -> None:
        self._asked, self._recorder, self._attempt = asked, recorder, attempt

    @property
    def method(self) -> str:
        return self._asked.method

    def keep(self, **found: Any) -> None:
        self._asked = msgspec.structs.replace(self._asked, **found)

    def __enter__(self) -> Asking:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, InfrastructureFault):
            self.end(fault=Kept.of(error))
        else:
            self.end(cut=error is not None)  # if so, the trial was over first

    def end(self, **found: Any) -> None:
        """Writes the request down, with what came of it."""
        self.keep(**found)
        self._recorder.add(self._attempt, self._asked)


class Replayed:
    """The recording of one server, as one attempt asks it."""

    def __init__(self, server: McpServer, player: Player, attempt: Attempt) -> None:
        self._server, self._player, self._attempt = server, player, attempt

    async def offer(self) -> Offer:
        from mcp_types import Tool

        # Asking for the list once more than was recorded is no news: it is asked for again by the clock.
        introduction = _sound(await self._found("initialize", {}, or_last=True))
        listed = _sound(await self._found("tools/list", {}, or_last=True))
        tools = [Tool.model_validate(one) for one in (listed.result or {})["tools"]]
        return offer_of(self._server.name, introduction.result or {}, tools)

    async def ask(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        from mcp_types import CallToolResult

        asked = _sound(await self._found("tools/call", {"name": tool, "arguments": arguments}))
        result = CallToolResult.model_validate(asked.result) if asked.result is not None else None
        return Outcome(result=result, error=asked.error, code=asked.code, milliseconds=asked.milliseconds)

    async def answer(self, method: str, arguments: dict[str, Any]) -> Asked | None:
        """What an agent got that asked this itself; None if it was not recorded, and could not be.

        The server's fault, if there was one, is in it. Raises InfrastructureFault for what should
        be in the recording. In recordings of the tools alone, that is the handshake and the tools.
        """
        expected = method in ("initialize", "tools/list", "tools/call") or self._player.relayed(self._attempt)
        if method in UNREPEATABLE or not (expected or self._player.find(self._attempt, method, arguments, None)):
            return None
        return await self._found(method, arguments, or_last=method != "tools/call")

    async def _found(self, method: str, arguments: dict[str, Any], *, or_last: bool = False) -> Asked:
        n = self._attempt.next(self._player.path.name, self._player.request(method, arguments))
        asked = self._player.find(self._attempt, method, arguments, n)
        if asked is None and or_last:
            asked = self._player.find(self._attempt, method, arguments, None)
        if asked is not None and asked.cut:  # then the attempt ended at its own limit, and shall again
            await asyncio.sleep(self._server.call_timeout_seconds)
            raise self._miss("was cut off before there was an answer to", method, arguments, n)
        if asked is None:
            raise self._miss("holds no answer to", method, arguments, n)
        return asked

    def _miss(self, what: str, method: str, arguments: dict[str, Any], n: int) -> InfrastructureFault:
        if not self._player.known:
            reason = f"there is no recording of it with this definition ({self._player.path})"
        else:
            request = self._player.request(method, arguments)
            shown = request if len(request) <= 300 else f"{request[:299]}…"
            times = f", asked for the {n + 1}. time" if n else ""
            reason = f"the recording {what} {shown}{times} (session {self._attempt.name}, {self._player.path.name})"
        fault = InfrastructureFault("cassette_miss", f"MCP server '{self._server.name}' is replayed: {reason}")
        # Kept beside: the agent may be another program, which is only told that its call failed.
        self._attempt.fault = self._attempt.fault or fault
        return fault


def _sound(asked: Asked) -> Asked:
    """The request itself, if the server had no fault."""
    if asked.fault is not None:
        raise asked.fault.as_fault()
    return asked
