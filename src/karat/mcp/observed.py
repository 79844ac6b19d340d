"""Observed traffic with one MCP server: the calls of agents that report little about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from karat.errors import InfrastructureFault
from karat.mcp.faults import printable
from karat.mcp.results import Outcome, as_call, bounded
from karat.records import JsonObject, ToolCall


class Observed:
    """One agent's connection to one server.

    `ready` is set when the agent has the list of tools, or cannot get it.
    """

    def __init__(self, server: str, redact: Callable[[str], str]) -> None:
        self.server = server
        self._redact = redact
        self.ready = asyncio.Event()
        self.tools: set[str] = set()
        self.calls: list[ToolCall] = []
        self.fault: InfrastructureFault | None = None

    def answered(self, method: str, asked: JsonObject, outcome: Outcome | JsonObject) -> None:
        """A completed request: a result of the protocol, or an outcome without one."""
        if method == "tools/list" and isinstance(outcome, dict):
            self.tools.update(
                str(tool["name"]) for tool in outcome.get("tools") or () if isinstance(tool, dict)
            )
            if not outcome.get("nextCursor"):
                self.ready.set()
        elif method == "tools/call":
            if isinstance(outcome, Outcome):
                answer = outcome
            else:
                from mcp_types import CallToolResult, TextContent
                from pydantic import ValidationError

                try:
                    result = CallToolResult.model_validate(outcome)
                except ValidationError as error:
                    problem = error.errors()[0]["msg"]
                    words = f"the server's result does not follow the protocol: {problem}"
                    text = TextContent(type="text", text=words)
                    result = CallToolResult(content=[text], is_error=True)

                answer = Outcome(result=result)

            self.calls.append(
                as_call(
                    self.server,
                    str(asked.get("name")),
                    asked.get("arguments") or {},
                    bounded(answer),
                    clean=lambda text: printable(self._redact(text)).strip(),
                )
            )

    def failed(self, fault: InfrastructureFault) -> None:
        """The server could not be reached, or ended while it was in use."""
        self.fault = self.fault or fault
        self.ready.set()
