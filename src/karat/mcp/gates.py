"""Conditions for an attempt to count, checked on the actual calls."""

from __future__ import annotations

from collections.abc import Sequence

from karat.errors import AgentFault
from karat.records import Gate, ToolCall


def check(gate: Gate, calls: Sequence[ToolCall]) -> None:
    """Raises a retriable AgentFault if the gate was missed; tools other than MCP's do not count.

    `gate_tool_use`: an MCP call was required and none was made. `gate_tool_success`: there
    were MCP calls and all failed; without calls only the first gate is missed.

    >>> check(
    ...     Gate(require_mcp_tool_use=True),
    ...     [ToolCall(server="docs", tool="search", result="found")],
    ... )
    """
    mcp_calls = [call for call in calls if call.server is not None]
    if gate.require_mcp_tool_use and not mcp_calls:
        raise AgentFault(
            "gate_tool_use",
            "the condition requires an MCP tool call, and the agent made none",
            retriable=True,
        )

    if (
        gate.require_mcp_tool_success
        and mcp_calls
        and all(call.error is not None for call in mcp_calls)
    ):
        if len(mcp_calls) == 1:
            count = "the only MCP tool call"
        else:
            count = f"all {len(mcp_calls)} MCP tool calls"

        last = f"the last, {mcp_calls[-1].server}.{mcp_calls[-1].tool}: {mcp_calls[-1].error}"
        message = f"the condition requires a successful MCP tool call, and {count} failed; {last}"
        raise AgentFault("gate_tool_success", message, retriable=True)
