"""MCP servers as a measured factor: started cleanly, listed before the first paid call, ended with all their children.

    async with Toolbox(servers, redact=redact, folder=folder) as toolbox:
        listed = await toolbox.preflight()                # server → ToolList, or ServerFault
        async with toolbox.open(condition) as tools:      # one trial's view: its condition's servers, nothing else
            call = await tools.call("docs", "search_docs", {"query": "resume"})
        gates.check(condition.gate, tools.calls)
        toolbox.changes                                   # servers that changed their tools during the run

With `cassettes` the toolbox records the traffic with servers, or replays it without
servers (cassettes.py, taped.py); agents that start servers themselves then get a proxy
(proxy.py), which connects to karat's own process (hub.py).

Importing this package loads neither the SDK nor other heavy modules, because every
server process starts by importing it (`python -m karat.mcp.launch`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.mcp import attempts, gates
    from karat.mcp.preflight import ServerFault, Tool, ToolChange, ToolList
    from karat.mcp.servers import Toolbox, Tools
    from karat.mcp.stdio import launch_command

__all__ = ["ServerFault", "Tool", "ToolChange", "ToolList", "Toolbox", "Tools", "attempts", "gates", "launch_command"]

_HOME = {
    "ServerFault": "preflight",
    "Tool": "preflight",
    "ToolChange": "preflight",
    "ToolList": "preflight",
    "Toolbox": "servers",
    "Tools": "servers",
    "launch_command": "stdio",
}


def __getattr__(name: str) -> object:
    import importlib

    if name in ("attempts", "gates"):
        return importlib.import_module(f"karat.mcp.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"karat.mcp.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
