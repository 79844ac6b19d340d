"""MCP servers as a measured factor: started cleanly, listed before the first paid call, ended with
all their children.

    async with Toolbox(servers, redact=redact, folder=folder, on_news=events.append) as toolbox:
        listed = await toolbox.preflight()                # server → ToolList, or ServerFault
        async with toolbox.open(condition) as tools:      # what one trial sees: its own servers
            call = await tools.call("docs", "search_docs", {"query": "resume"})
        gates.check(condition.gate, tools.calls)
        events                                            # servers that changed their tools

With `cassettes` the toolbox records the traffic with servers, or replays it without
servers; agents that start servers themselves then get a proxy (proxy.py), which connects
to karat's own process (hub.py). What only `karat_servers` has is met in parts.py.

Importing this package loads neither the SDK nor other heavy modules, because every
server process starts by importing it (`python -m karat.mcp.launch`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat.mcp import attempts, gates
    from karat.mcp.preflight import ServerFault, Tool, ToolList
    from karat.mcp.servers import Toolbox, Tools
    from karat.mcp.stdio import launch_command

__all__ = [
    "ServerFault",
    "Tool",
    "ToolList",
    "Toolbox",
    "Tools",
    "attempts",
    "gates",
    "launch_command",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "attempts": "",
        "gates": "",
        "preflight": "ServerFault Tool ToolList",
        "servers": "Toolbox Tools",
        "stdio": "launch_command",
    },
)
