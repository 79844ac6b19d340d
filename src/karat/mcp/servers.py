"""The MCP servers of a run, and one trial's view of them."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import AgentFault, InfrastructureFault, did_you_mean
from karat.mcp import attempts
from karat.mcp.attempts import Attempt
from karat.mcp.elicitation import Answering
from karat.mcp.faults import printable
from karat.mcp.hub import Hub, ProxySession
from karat.mcp.observed import Observed
from karat.mcp.parts import Carrier, Recordings, ServerConnection, ServerTokens, part, require
from karat.mcp.preflight import ServerFault, Tool, ToolList, tool_change
from karat.mcp.results import Outcome, answer_of, as_call, bounded, images_of
from karat.mcp.session import Session
from karat.records import (
    MODERN_PROTOCOL,
    Cassettes,
    Condition,
    JsonObject,
    McpServer,
    ServerEvent,
    ToolCall,
)
from karat.redact import Redactor

if TYPE_CHECKING:
    from pydantic import BaseModel

    from karat.mcp.session import Session

MOST_STARTS = 10
"""How often a stdio server with `scope: run` is started in one run, the first time included.
Connecting to a server that runs elsewhere starts nothing, and is bounded by the attempts of the
trials.
"""

_QUIET = logging.NullHandler()


class Tools:
    """The tools that one trial may call: only those of its condition's servers."""

    def __init__(
        self, lines: dict[str, ServerConnection], lists: Sequence[ToolList], redact: Redactor
    ) -> None:
        self._lines = lines
        self._redact = redact
        self._calls: list[ToolCall] = []
        self.tools: tuple[Tool, ...] = tuple(tool for listed in lists for tool in listed.tools)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The actual calls, in the order they ended."""
        return tuple(self._calls)

    async def call(self, server: str, tool: str, arguments: JsonObject) -> ToolCall:
        """One call. The tool's own error is in `error`.

        Raises InfrastructureFault if the server died or did not answer in time (the call
        is still recorded), AgentFault for a server that the condition does not have.
        """
        return (await self.call_in_full(server, tool, arguments))[0]

    async def call_in_full(
        self, server: str, tool: str, arguments: JsonObject
    ) -> tuple[ToolCall, JsonObject | None]:
        """The same, with the result's structuredContent; None if it has none."""
        call, result = await self._asked(
            server, tool, arguments, lambda line: line.ask(tool, arguments)
        )
        return call, None if result is None else answer_of(result)

    async def call_with_images(
        self, server: str, tool: str, arguments: JsonObject
    ) -> tuple[ToolCall, tuple[tuple[str, bytes], ...]]:
        """The same, with media type and bytes of each image in the result that models can be
        sent.
        """
        call, result = await self._asked(
            server, tool, arguments, lambda line: line.ask(tool, arguments)
        )
        return call, () if result is None else tuple(images_of(result))

    async def read(
        self, server: str, method: str, parameters: JsonObject
    ) -> tuple[ToolCall, JsonObject | None]:
        """A resource (`resources/read`) or a prompt (`prompts/get`): as a call of the method, and
        the whole result.
        """
        call, result = await self._asked(
            server, method, parameters, lambda line: line.read(method, parameters)
        )
        return call, None if result is None else answer_of(result)

    async def _asked(
        self,
        server: str,
        tool: str,
        arguments: JsonObject,
        ask: Callable[[ServerConnection], Coroutine[object, object, Outcome]],
    ) -> tuple[ToolCall, BaseModel | None]:
        line = self._lines.get(server)
        if line is None:
            hint = did_you_mean(server, self._lines) or " (it has none)"
            raise AgentFault(
                "unknown_mcp_server", f"the condition has no MCP server '{server}'{hint}"
            )

        try:
            outcome = bounded(await ask(line))
        except InfrastructureFault as fault:
            self._calls.append(
                ToolCall(tool=tool, server=server, input=arguments, error=fault.message)
            )
            raise

        call = as_call(
            server,
            tool,
            arguments,
            outcome,
            clean=lambda text: printable(self._redact(text)).strip(),
        )
        self._calls.append(call)
        return call, outcome.result


class Toolbox:
    """All servers of a run. Nothing is started, and the SDK is not loaded, until needed."""

    def __init__(
        self,
        servers: Sequence[McpServer],
        *,
        redact: Redactor,
        folder: Path,
        cassettes: Cassettes | None = None,
        person: object | None = None,
        on_news: Callable[[ServerEvent], object] = lambda event: None,
        relist_seconds: float = 5.0,
    ) -> None:
        """`cassettes`: where traffic is recorded, or replayed from without servers.

        `on_news`: hears what the servers do during the run that a report must say.
        `person`: logs in to servers now, for the part `oauth`; None: no person is there.
        `relist_seconds`: the age at which a trial requests a shared server's list of tools again.
        Raises BadOption if a part that this takes is not there.
        """
        self._servers = tuple(servers)
        self._relist_seconds = relist_seconds
        self._redact = redact
        self._folder = folder
        self._on_news = on_news
        self._open: set[Session] = set()
        self._shared: dict[str, Session] = {}
        self._starts: dict[str, int] = {}
        self._person = person
        self._tokens: dict[str, ServerTokens] = {}
        # by server, and whether it may ask the user
        self._first_lists: dict[tuple[str, bool], ToolList] = {}
        self._changes: set[tuple[str, str]] = set()  # server and digest of its tools
        self._cassettes: Recordings | None = None
        if cassettes is not None:
            self._cassettes = part("cassettes", f"mcp.{cassettes.mode}")(cassettes, redact)
        for server in servers:
            if server.auth is not None:
                require("oauth", f"mcp_servers.{server.name}.auth")

        self._hub = Hub(self._serve) if self._servers else None

    async def __aenter__(self) -> Toolbox:
        # The SDK logs what it also raises; our own handler keeps Python from printing it to stderr.
        for name in ("mcp", "client"):
            logging.getLogger(name).addHandler(_QUIET)
        if self._hub is not None:
            await self._hub.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._hub is not None:
                await self._hub.stop()
        finally:
            await _close(set(self._open), at_once=False)
            if self._cassettes is not None:
                self._cassettes.close()

    def proxy_command(self, server: McpServer) -> tuple[list[str], dict[str, str]] | None:
        """The command line and environment of a stdio server in place of this one, for the current
        attempt.

        For agents that start or reach servers themselves. None if they may use the server itself:
        nothing is recorded or replayed, and nothing in its definition needs karat's own session.
        """
        attempt = attempts.current()
        if self._hub is None or (
            self._cassettes is None and not _only_through_karat(server, attempt)
        ):
            return None

        return self._hub.command(server, attempt)

    def observed_command(
        self, server: McpServer, observed: Observed
    ) -> tuple[list[str], dict[str, str]]:
        """The same for any server, recorded or not; `observed` gets its requests."""
        if self._hub is None:
            raise ValueError(f"the server '{server.name}' is not of this run")
        attempt = attempts.current()
        if self._is_relayed(server, attempt):
            require("relay", f"mcp_servers.{server.name}")
        return self._hub.command(server, attempt, observed)

    def _is_relayed(self, server: McpServer, attempt: Attempt | None) -> bool:
        """Whether an agent's own messages reach the server unchanged."""
        replays = self._cassettes is not None and self._cassettes.replays
        return not replays and not _only_through_karat(server, attempt)

    async def preflight(
        self,
        again: Callable[
            [McpServer, ServerFault, int], float | None
        ] = lambda server, fault, attempt: None,
    ) -> dict[str, ToolList | ServerFault]:
        """Every server started and listed, all at once, each bounded by its own timeout.

        A server that cannot be listed is a value, not an error. Shared ones stay up. `again`: the
        seconds until a server is tried again after so many attempts; None: it is not.
        """
        outcomes = await asyncio.gather(*(self._probed(server, again) for server in self._servers))
        return {
            server.name: outcome for server, outcome in zip(self._servers, outcomes, strict=True)
        }

    @asynccontextmanager
    async def open(self, condition: Condition) -> AsyncIterator[Tools]:
        """The condition's tools, for one trial.

        Servers with `scope: trial` are started, all at once, and ended with the block, even
        if it is cancelled; those with `scope: run` are shared, and started again if they
        died. Raises InfrastructureFault.
        """
        own: set[Session] = set()
        at_once = True
        try:
            attempt = attempts.current()
            lines = {
                server.name: self._line(server, attempt, own) for server in condition.mcp_servers
            }
            lists = [(await line.offer()).tools for line in lines.values()]
            for listed in lists:
                self._hear(listed, elicits=attempt is not None and bool(attempt.elicit))
            yield Tools(lines, lists, self._redact)
            at_once = False
        finally:
            await _close(own, at_once=at_once)
            self._forget()

    async def _serve(
        self,
        server: McpServer,
        attempt: Attempt | None,
        observed: Observed | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """One server, for an agent that uses it through the proxy."""
        own: set[Session] = set()
        if self._is_relayed(server, attempt):
            recording = None
            if self._cassettes is not None:
                recording = self._cassettes.recording(server, attempt)
            relay: Carrier = part("relay", f"mcp_servers.{server.name}")(
                server,
                recording,
                folder=self._folder,
                redact=self._redact,
                observed=observed,
                on_renewed=lambda: self._on_news(ServerEvent(server=server.name, what="renewed")),
            )
            await relay.carry(reader, writer)
        else:
            try:
                await ProxySession(
                    self._line(server, attempt, own), reader, writer, observed
                ).serve()
            finally:
                await _close(own, at_once=False)
                self._forget()

    async def _probed(
        self, server: McpServer, again: Callable[[McpServer, ServerFault, int], float | None]
    ) -> ToolList | ServerFault:
        clock = asyncio.get_running_loop().time
        deadline = clock() + server.init_timeout_seconds
        for attempt in itertools.count(1):
            own: set[Session] = set()
            outcome: ToolList | ServerFault
            try:
                outcome = (await self._line(server, attempts.current(), own).offer()).tools
            except InfrastructureFault as fault:
                outcome = ServerFault(
                    server=server.name,
                    kind=fault.kind,
                    message=fault.message,
                    retriable=fault.retriable,
                    retry_after=fault.retry_after,
                )
            finally:
                await _close(own, at_once=False)
                self._forget()

            if isinstance(outcome, ToolList):
                self._hear(outcome)
                break

            wait = again(server, outcome, attempt)
            if wait is None or clock() + wait > deadline:
                break
            await asyncio.sleep(wait)

        return outcome

    def _line(
        self, server: McpServer, attempt: Attempt | None, own: set[Session]
    ) -> ServerConnection:
        """A connection to the server, or to its recording.

        `own` gets the session that ends with the caller's block.
        """
        if self._cassettes is not None and self._cassettes.replays:
            return self._cassettes.replayed(server, attempt)
        try:
            session = self._session(server, attempt)
        except InfrastructureFault as fault:
            if self._cassettes is not None:
                self._cassettes.refused(server, fault, attempt)
            raise

        if server.scope == "trial":
            own.add(session)
        if self._cassettes is None:
            return session
        return self._cassettes.recorded(server, session, attempt)

    def _session(self, server: McpServer, attempt: Attempt | None) -> Session:
        """A new session, or the shared one if it is still alive."""
        if server.scope == "trial":
            return self._start(server, attempt)
        shared = self._shared.get(server.name)
        if shared is not None and shared.alive:
            return shared
        starts = self._starts.get(server.name, 0)
        if starts >= MOST_STARTS and server.type == "stdio":
            often = f"it was started {starts} times in this run, and is not started any more"
            message = f"MCP server '{server.name}' failed repeatedly: {often}"
            raise InfrastructureFault("mcp_server_down", message)

        self._starts[server.name] = starts + 1
        self._shared[server.name] = self._start(server)
        return self._shared[server.name]

    def _start(self, server: McpServer, attempt: Attempt | None = None) -> Session:
        answering = None
        if attempt is not None and attempt.elicit:
            answering = Answering(attempt, server.name, on_news=self._on_news)

        if server.auth is not None and server.name not in self._tokens:
            tokens = part("oauth", f"mcp_servers.{server.name}.auth")
            self._tokens[server.name] = tokens(server, redact=self._redact, person=self._person)

        session = Session(
            server,
            folder=self._folder,
            redact=self._redact,
            relist_seconds=self._relist_seconds,
            report=partial(self._hear, elicits=answering is not None),
            answering=answering,
            tokens=self._tokens.get(server.name),
        )
        known = self._first_lists.get((server.name, False))
        # A program stays what it is; what listens at an address may be replaced by a newer one
        if known is not None and server.type == "stdio":
            session.is_older = known.protocol != MODERN_PROTOCOL
        self._open.add(session)
        return session

    def _forget(self) -> None:
        self._open = {session for session in self._open if session.pending}

    def _hear(self, news: ToolList | ServerEvent, *, elicits: bool = False) -> None:
        """A list of tools is compared with the server's first; each other one is reported once."""
        if isinstance(news, ServerEvent):
            self._on_news(news)
            return

        change = tool_change(self._first_lists.setdefault((news.server, elicits), news), news)
        if change is not None and (news.server, news.digest) not in self._changes:
            self._changes.add((news.server, news.digest))
            self._on_news(change)


def _only_through_karat(server: McpServer, attempt: Attempt | None) -> bool:
    """Whether an agent that connects to its servers itself reaches this one through karat's own
    session.
    """
    elicits = attempt is not None and bool(attempt.elicit)
    return server.scope == "run" or server.protocol != "auto" or server.auth is not None or elicits


async def _close(sessions: set[Session], *, at_once: bool) -> None:
    # stop all before awaiting anything: a second cancellation must not lose one
    for session in sessions:
        session.stop(at_once=at_once)
    if sessions:
        await asyncio.gather(*(session.gone() for session in sessions))
