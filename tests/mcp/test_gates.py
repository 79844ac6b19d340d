"""Gates count MCP calls, and what became of them."""

from __future__ import annotations

import pytest

from karat.errors import AgentFault
from karat.mcp import gates
from karat.records import Gate, ToolCall

WORKED = ToolCall(server="docs", tool="search", result="found")
EMPTY = ToolCall(server="docs", tool="search", result="")
FAILED = ToolCall(server="docs", tool="search", error="timed out")
OWN = ToolCall(tool="bash", result="done")
OWN_FAILED = ToolCall(tool="bash", error="no")


@pytest.mark.parametrize(
    ("calls", "use", "success"),
    [
        pytest.param([], "gate_tool_use", None, id="no call"),
        pytest.param([OWN, OWN_FAILED], "gate_tool_use", None, id="only tools of the agent's own"),
        pytest.param([WORKED], None, None, id="one that worked"),
        pytest.param([EMPTY], None, None, id="an empty result is a success"),
        pytest.param([FAILED], None, "gate_tool_success", id="one that failed"),
        pytest.param([FAILED, FAILED, OWN], None, "gate_tool_success", id="all MCP calls failed, another tool worked"),
        pytest.param([FAILED, WORKED], None, None, id="one of two worked"),
    ],
)
def test_gates(calls, use, success):
    assert missed(Gate(require_mcp_tool_use=True), calls) == use
    assert missed(Gate(require_mcp_tool_success=True), calls) == success
    assert missed(Gate(require_mcp_tool_use=True, require_mcp_tool_success=True), calls) == (use or success)
    assert missed(Gate(), calls) is None


def missed(gate: Gate, calls: list[ToolCall]) -> str | None:
    try:
        gates.check(gate, calls)
    except AgentFault as fault:
        return fault.kind if fault.retriable else "not retriable"
    return None


def test_a_missed_gate_tells_what_went_wrong():
    with pytest.raises(AgentFault, match=r"all 2 MCP tool calls failed; the last, docs\.search: timed out"):
        gates.check(Gate(require_mcp_tool_success=True), [FAILED, FAILED])
    with pytest.raises(AgentFault, match=r"the only MCP tool call failed; the last, docs\.search: timed out"):
        gates.check(Gate(require_mcp_tool_success=True), [FAILED])
