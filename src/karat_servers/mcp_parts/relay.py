"""Passes on the messages of an agent and its MCP server unchanged, and records the requests with
their answers.

Agent and server negotiate the protocol between themselves, in any revision, and see
each other as without karat: resources, prompts, notifications, cancellations, and
requests of the server. Requests of the agent go to the cassette with their answers.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.foreign import Json
from karat.mcp.attempts import WHOLE_RUN, Attempt
from karat.mcp.faults import fault_of
from karat.mcp.observed import Observed
from karat.mcp.remote import RemoteLink
from karat.mcp.results import Outcome, masked, recorded_arguments
from karat.mcp.stdio import StdioLink
from karat.records import JsonObject, McpServer
from karat.redact import Redactor
from karat_servers.mcp_parts.cassettes import OpenRequest, RecordedFault, Recording

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage
    from pydantic import BaseModel

__all__ = ["Relay"]

CLOSE_SECONDS = 3.0  # for a server that runs elsewhere to confirm the end of its session
_PARSE_ERROR = -32700
_INVALID = -32600


class Relay:
    """One agent's connection to one server, which is started or reached at the agent's first
    message.
    """

    def __init__(
        self,
        server: McpServer,
        recording: Recording | None,
        *,
        folder: Path,
        redact: Redactor,
        observed: Observed | None,
        on_renewed: Callable[[], object],
    ) -> None:
        """`recording`: None: nothing is recorded. `on_renewed`: as in RemoteLink."""
        self._server = server
        self._recording = recording or Recording(None, Attempt(WHOLE_RUN))
        self._redact = redact
        self._observed = observed
        self._broken = asyncio.Event()
        self._link: StdioLink | RemoteLink
        if server.type == "stdio":
            self._link = StdioLink(server, folder=folder, on_broken=self._broken.set)
        else:
            self._link = RemoteLink(server, on_broken=self._broken.set, on_renewed=on_renewed)

        self._pending: dict[int | str, tuple[OpenRequest, float]] = {}
        self._headers = _Headers()

    async def carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Runs until one side closes.

        Raises InfrastructureFault if the server does, or cannot be reached.
        """
        import anyio

        first = await self._next(reader, writer)
        if first is None:
            return
        server_closed = False
        try:
            with anyio.CancelScope() as scope:
                async with self._link.connect() as (incoming, outgoing):
                    try:
                        server_closed = await self._both(reader, writer, incoming, outgoing, first)
                    finally:
                        scope.deadline = anyio.current_time() + CLOSE_SECONDS
        finally:
            self._end(sys.exception(), server_closed)

    async def _both(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        incoming: Any,
        outgoing: Any,
        first: SessionMessage,
    ) -> bool:
        """Carries in both directions until one ends. Returns whether the server's did."""
        up = asyncio.create_task(self._up(first, reader, writer, outgoing))
        down = asyncio.create_task(self._down(incoming, writer))
        broken = asyncio.create_task(self._broken.wait())
        tasks = {up, down, broken}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return broken.done() or (down.done() and down.exception() is None)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _up(
        self,
        message: SessionMessage | None,
        reader: StreamReader,
        writer: StreamWriter,
        to: Any,
    ) -> None:
        while message is not None:
            await to.send(message)
            message = await self._next(reader, writer)

    async def _down(self, incoming: Any, writer: StreamWriter) -> None:
        async for item in incoming:
            if not isinstance(item, Exception):  # that would be a line that is not a message
                message = masked(item.message, self._redact)
                self._answered(message)
                await _write(writer, message)

    async def _next(self, reader: StreamReader, writer: StreamWriter) -> SessionMessage | None:
        """The agent's next message; None if there is no more.

        Anything but a message gets an error.
        """
        from mcp.shared.message import ClientMessageMetadata, SessionMessage
        from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

        while line := await reader.readline():
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError as error:
                no_json = "json_invalid" in str(error)
                problem = "no JSON" if no_json else "no message of JSON-RPC"
                data = ErrorData(code=_PARSE_ERROR if no_json else _INVALID, message=problem)
                await _write(writer, JSONRPCError(jsonrpc="2.0", id=None, error=data))
                continue

            headers = self._headers.of(message)
            if isinstance(message, JSONRPCRequest) and message.method != "ping":
                asking = self._recording.asking(
                    message.method,
                    recorded_arguments(message.method, message.params or {}),
                    relayed=True,
                )
                again = self._pending.get(message.id)
                self._pending[message.id] = (asking, time.perf_counter())
                if again is not None:
                    again[0].end(cut=True)

            return SessionMessage(
                message, ClientMessageMetadata(headers=headers) if headers else None
            )

        return None

    def _answered(self, message: Any) -> None:
        """Records an answer before it is passed on."""
        if hasattr(message, "method") or message.id not in self._pending:
            return
        self._link.end_at_once = False
        asking, started = self._pending.pop(message.id)
        asking.keep(milliseconds=round((time.perf_counter() - started) * 1000, 3))
        if hasattr(message, "result"):
            self._headers.learn(asking.method, message.result)
            if self._observed is not None:
                self._observed.answered(asking.method, asking.arguments, message.result)
            asking.end(result=message.result)
        else:
            error = message.error
            if self._observed is not None:
                self._observed.answered(
                    asking.method, asking.arguments, Outcome(error=error.message)
                )

            asking.end(error=error.message, code=error.code, data=error.data)

    def _end(self, error: BaseException | None, server_closed: bool) -> None:
        """Records unanswered requests, and why."""
        left = [asking for asking, _ in self._pending.values()]
        if not server_closed and (error is None or isinstance(error, asyncio.CancelledError)):
            for asking in left:
                asking.end(cut=True)
            return

        reason = error or EOFError("it closed the connection")
        ready = not self._link.end_at_once  # it has answered
        fault = fault_of(
            self._server,
            reason,
            self._link.evidence,
            ready=ready,
            redact=self._redact,
        )
        for asking in left:
            asking.end(fault=RecordedFault.of(fault))
        raise fault from error


class _Headers:
    """The HTTP headers that repeat parts of a message. Over stdio they are not sent."""

    def __init__(self) -> None:
        # negotiated by `initialize`; later revisions name theirs in each request
        self._version: str | None = None
        self._of_tools: JsonObject = {}  # tool → which arguments are repeated

    def of(self, message: Any) -> dict[str, str]:
        from mcp.shared import inbound
        from mcp_types import PROTOCOL_VERSION_META_KEY

        parameters = getattr(message, "params", None) or {}
        version = Json(parameters).at("_meta").text(PROTOCOL_VERSION_META_KEY)
        if version is None:
            if self._version is not None:
                return {inbound.MCP_PROTOCOL_VERSION_HEADER: self._version}
            return {}

        headers = {
            inbound.MCP_PROTOCOL_VERSION_HEADER: version,
            inbound.MCP_METHOD_HEADER: message.method,
        }
        name = parameters.get(inbound.NAME_BEARING_METHODS.get(message.method, ""))
        if isinstance(name, str):
            headers[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)
            if message.method == "tools/call" and name in self._of_tools:
                headers |= inbound.mcp_param_headers(
                    self._of_tools[name], parameters.get("arguments") or {}
                )

        return headers

    def learn(self, method: str, result: JsonObject) -> None:
        from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

        if method == "initialize" and isinstance(result.get("protocolVersion"), str):
            self._version = result["protocolVersion"]
        for tool in Json(result).list("tools") if method == "tools/list" else ():
            schema = tool.get("inputSchema")
            if schema is not None and find_invalid_x_mcp_header(schema) is None:
                self._of_tools[str(tool.get("name"))] = x_mcp_header_map(schema)


async def _write(writer: StreamWriter, message: BaseModel) -> None:
    text = message.model_dump_json(by_alias=True, exclude_unset=True)
    writer.write(text.encode("utf-8", "surrogatepass") + b"\n")
    await writer.drain()
