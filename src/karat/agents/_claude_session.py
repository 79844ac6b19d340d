"""One session with Claude Code: several questions, one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from karat.agents._claude_launch import CANNOT_START
from karat.agents._claude_stream import Said
from karat.agents._claude_tools import ToolNames
from karat.errors import InfrastructureFault, TrialFault
from karat.models import Price, limiter
from karat.models.metering import spent
from karat.records import McpServer, Reply, Turn

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

__all__ = ["Conversation", "Terms"]

_LOOK_SECONDS = 0.05  # between two looks at servers that are starting
_SHOWN = 2000  # characters of its stderr


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every session of an agent."""

    provider: str
    base_url: str | None
    price: Price | None  # the user's own
    redact: Callable[[str], str]


class Conversation:
    """`open`, `ask` each question, `close`. What Claude Code reports is turned into replies and faults."""

    def __init__(
        self,
        options: ClaudeAgentOptions,
        *,
        names: ToolNames,
        servers: Sequence[McpServer],
        materials: str | None,
        terms: Terms,
        complaints: Iterable[str],
    ) -> None:
        from claude_agent_sdk import ClaudeSDKClient, HookMatcher

        timed: Any = [HookMatcher(hooks=[self._timed])]
        options.hooks = {"PostToolUse": timed, "PostToolUseFailure": timed}
        self._client = ClaudeSDKClient(options)
        self._names, self._servers, self._materials = names, servers, materials
        self._limiter = limiter(terms.provider, terms.base_url)
        self._price, self._redact, self._complaints = terms.price, terms.redact, complaints
        self._said: Said | None = None
        self._spent = 0.0  # dollars of the session so far, as Claude Code counts

    async def open(self) -> None:
        """Starts Claude Code, and waits for servers: it would begin without the late ones. Raises TrialFault."""
        from claude_agent_sdk import ClaudeSDKError

        begun = asyncio.get_running_loop().time()
        try:
            await self._client.connect()
            await self._servers_up(begun)
        except ClaudeSDKError as error:
            raise self._ended(error) from error

    async def ask(self, turn: Turn) -> Reply:
        """The answer to one question. Raises TrialFault, with what was said so far, and ForeignTools."""
        question = turn.question
        if self._materials is not None:
            question, self._materials = f"{self._materials}\n\n{question}", None
        said = self._said = Said(self._names, redact=self._redact, spent=self._spent, price=self._price)
        try:
            async with self._limiter.slot():
                await self._exchange(question, said)
            fault = said.fault()
        except TrialFault as error:
            fault = error
        finally:
            spent(said.usage, said.dollars)  # also of an attempt that is cut off
        if said.result is not None and said.result.total_cost_usd is not None:
            self._spent = said.result.total_cost_usd
        if fault is None:
            return said.reply()
        if said.anything:
            fault.reply = said.reply(whole=True)
        raise fault

    async def close(self) -> None:
        """Tells Claude Code that there are no more questions, and waits for its end."""
        from claude_agent_sdk import ClaudeSDKError

        with suppress(ClaudeSDKError):
            await self._client.disconnect()

    async def _exchange(self, question: str, said: Said) -> None:
        from claude_agent_sdk import ClaudeSDKError, SystemMessage

        try:
            await self._client.query(question)
            async for message in self._client.receive_response():
                if isinstance(message, SystemMessage):
                    self._told(message.subtype, message.data)
                said.add(message)
        except ClaudeSDKError as error:
            if said.result is None:
                raise self._ended(error) from error
        if said.result is not None and not said.result.is_error:
            self._limiter.success()

    def _told(self, subtype: str, data: dict[str, Any]) -> None:
        if subtype == "init":
            self._names.check(data)
        elif subtype == "api_retry" and data.get("error_status") in (429, 529):
            self._limiter.refused((data.get("retry_delay_ms") or 0) / 1000)

    async def _timed(self, told: Any, call: str | None, _context: Any) -> Any:
        if self._said is not None:
            self._said.took(call, told.get("duration_ms"))
        return {}

    async def _servers_up(self, begun: float) -> None:
        clock = asyncio.get_running_loop().time
        waiting = {server.name: server for server in self._servers}
        while waiting:
            for status in await self._statuses():
                server = waiting.get(status["name"])
                if server is None:
                    continue
                late = clock() - begun >= server.init_timeout_seconds
                if status["status"] == "connected":
                    del waiting[server.name]
                elif late or status["status"] != "pending":
                    raise self._refused(server, status, late=late)
            if waiting:
                await asyncio.sleep(_LOOK_SECONDS)

    async def _statuses(self) -> list[Any]:
        found = await self._client.get_mcp_status()
        return list(found.get("mcpServers", []))

    def _refused(self, server: McpServer, status: Any, *, late: bool) -> InfrastructureFault:
        about = f"MCP server '{server.name}'"
        if status["status"] == "needs-auth":
            message = f"{about} wants a login: check its headers in the experiment file"
            return InfrastructureFault("mcp_unauthorized", message)
        if late:
            limit = f"{server.init_timeout_seconds:g} s (init_timeout_seconds)"
            message = f"{about} did not finish its handshake with Claude Code within {limit}"
            return InfrastructureFault("mcp_init_timeout", message, retriable=True)
        kind = "mcp_server_start" if server.type == "stdio" else "mcp_unreachable"
        why = self._redact(str(status.get("error") or status["status"]))
        return InfrastructureFault(kind, f"{about} cannot be used by Claude Code: {why}", retriable=True)

    def _ended(self, error: Exception) -> InfrastructureFault:
        """Claude Code is gone, or says what is not its protocol."""
        words = "\n".join(map(self._redact, self._complaints))[-_SHOWN:].strip()
        if CANNOT_START in words:
            return InfrastructureFault("cli_start", words[words.index(CANNOT_START) :])
        message = f"Claude Code broke off: {self._redact(str(error))}"
        return InfrastructureFault(
            "cli_ended", f"{message}; its stderr ends:\n{words}" if words else message, retriable=True
        )
