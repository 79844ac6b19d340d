"""What the tests of MCP servers share: conditions, toolboxes, and a look at the processes of this machine."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from tests.mcp.raw_server import RawServer

from karat.mcp import Toolbox
from karat.records import AgentSpec, Condition, McpServer, ServerEvent
from karat.redact import Redactor


@pytest.fixture
def condition() -> Callable[..., Condition]:
    """A condition with these servers."""

    def build(*servers: McpServer) -> Condition:
        return Condition(name="c", position=0, digest="", agent=AgentSpec(type="floor"), mcp_servers=servers)

    return build


@pytest.fixture
def toolbox(tmp_path: Path) -> Callable[..., Toolbox]:
    """A toolbox with these servers, whose folder is `tmp_path`."""

    def build(
        *servers: McpServer,
        relist_seconds: float = 5.0,
        on_news: Callable[[ServerEvent], object] = lambda event: None,
        **secrets: str,
    ) -> Toolbox:
        return Toolbox(
            servers, redact=Redactor(secrets), folder=tmp_path, relist_seconds=relist_seconds, on_news=on_news
        )

    return build


@pytest.fixture
def raw_server(httpserver: HTTPServer) -> RawServer:
    return RawServer(httpserver)


@pytest.fixture
def ends() -> Callable[[int], bool]:
    """Whether a process ends within five seconds; a zombie has ended."""

    def gone(pid: int) -> bool:
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout.strip()
        return not state or state.startswith("Z")

    def wait(pid: int) -> bool:
        deadline = time.monotonic() + 30
        while not gone(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        return gone(pid)

    return wait
