"""Which tools Claude Code says that its model has, and whether these are the condition's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from karat.errors import BadExperiment, Fault, ForeignTools
from karat.records import Condition

__all__ = ["ToolNames"]

_MCP = "mcp__"


class ToolNames:
    """A condition's servers and tools by the names that Claude Code gives them: `my docs` becomes `my_docs`."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition.name
        self._servers = {_spelled(server.name): server.name for server in condition.mcp_servers}
        self._tools: dict[str | None, set[str]] = {}
        if len(self._servers) < len(condition.mcp_servers):
            names = ", ".join(f"'{server.name}'" for server in condition.mcp_servers)
            message = f"Claude Code cannot tell the servers {names} apart: it knows A-Z, a-z, 0-9, - and _ only"
            place = f"conditions.{condition.name}.mcp_servers"
            raise BadExperiment("experiment", [Fault(place=place, message=message)])

    @property
    def allowed(self) -> list[str]:
        """What the model may call: every tool of the condition's servers."""
        return [f"{_MCP}{server}" for server in self._servers]

    def split(self, tool: str) -> tuple[str | None, str]:
        """Server and tool; no server for what is not a tool of one of them."""
        # Longest first: with servers `a` and `a__b`, the tool mcp__a__b__c is of the latter.
        for spelled in sorted(self._servers, key=len, reverse=True):
            prefix = f"{_MCP}{spelled}__"
            if tool.startswith(prefix):
                return self._servers[spelled], tool.removeprefix(prefix)
        return None, tool

    def offered(self, server: str | None) -> set[str]:
        """The tools of a server that the model was told of last."""
        return self._tools.get(server, set()) if server is not None else set()

    def check(self, told: Mapping[str, Any]) -> None:
        """Looks at a message with which Claude Code tells what it has. Raises ForeignTools."""
        tools: Sequence[str] = told.get("tools") or ()
        foreign = [tool for tool in tools if self.split(tool)[0] is None]
        servers = [one.get("name", "") for one in told.get("mcp_servers") or ()]
        strangers = [name for name in servers if name not in self._servers.values()]
        if foreign or strangers:
            raise ForeignTools(self._condition, sorted({*foreign, *strangers}))
        self._tools = {}
        for server, tool in map(self.split, tools):
            self._tools.setdefault(server, set()).add(tool)


def _spelled(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)
