"""A condition's MCP servers, for an agent that starts or reaches them itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karat.mcp import Toolbox, launch_command
from karat.records import Condition

__all__ = ["client_config"]


def client_config(condition: Condition, folder: Path, toolbox: Toolbox) -> dict[str, dict[str, Any]]:
    """Server name → what MCP clients take: type, command, args and env, or type, url and headers.

    Local servers go through karat's launcher, so that they see PATH, HOME, LANG and their
    own `env` only, whoever starts them. Where traffic is recorded or replayed, every server is
    a local one: karat's proxy, good for the attempt under way.
    """
    config: dict[str, dict[str, Any]] = {}
    for server in condition.mcp_servers:
        started = toolbox.proxy_command(server)
        if started is None and server.type == "stdio":
            started = launch_command(server, folder=folder)
        if started is not None:
            command, env = started
            config[server.name] = {"type": "stdio", "command": command[0], "args": command[1:], "env": env}
        else:
            config[server.name] = {"type": server.type, "url": server.url, "headers": dict(server.headers)}
    return config
