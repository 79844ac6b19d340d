"""Servers over streamable HTTP on this machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from karat.records import McpServer
from karat.redact import Redactor
from karat.testing.mcp_server import serving
from karat_servers.server_checks.running import check_server

SOUND = '''
import json, socket, sys
from typing import Annotated
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import Field

server = MCPServer("sound", version="2.5", log_level="CRITICAL")

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def double(a: Annotated[int, Field(description="the number")]) -> int:
    """Doubles a number."""
    return 2 * a

@server.resource("karat://a")
def text() -> str:
    """A text."""
    return "a"

open_to_all = TransportSecuritySettings(enable_dns_rebinding_protection=False) if "open" in sys.argv else None
app = server.streamable_http_app(transport_security=open_to_all)
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
print(json.dumps(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"), flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])
'''


@pytest.fixture
def sound_server():
    processes = []

    def start(*options):
        process = subprocess.Popen([sys.executable, "-c", SOUND, *options], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process.stdout.readline().strip().strip('"')

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def checked(url, tmp_path, **fields):
    server = McpServer(name="web", type="http", url=url, init_timeout_seconds=20, **fields)
    report = asyncio.run(check_server(server, folder=tmp_path, redact=Redactor({"KEY": "secret-key-1"}), seconds=10))
    return report, {check.id: check for check in report.checks}


def test_a_sound_server_over_http_has_no_finding(sound_server, tmp_path):
    report, checks = checked(sound_server(), tmp_path)
    assert [check for check in report.checks if check.verdict in ("failed", "warning")] == []
    assert (report.type, report.about, report.tools, report.resources) == ("http", "sound 2.5", 1, 1)
    applied = ("protocol.2025-06-18", "protocol.2026-07-28", "calls.structured", "http.origin", "http.session")
    assert {checks[name].verdict for name in applied} == {"passed"}
    assert {checks[name].verdict for name in ("stdout", "shutdown", "children")} == {"not_applicable"}


@pytest.mark.slow
def test_a_server_that_any_page_can_call_is_found(sound_server, tmp_path):
    _, checks = checked(sound_server("open"), tmp_path)
    assert checks["http.origin"].verdict == "failed"


@pytest.mark.slow
def test_a_closed_door_is_one_failed_check(tmp_path):
    with serving("http", "--require-header", "authorization: Bearer secret-key-1") as url:
        report, checks = checked(url, tmp_path)
        assert checks["handshake"].seen == "no connection: 2025-11-25: HTTP 401"
        assert report.counts == {"failed": 1, "warning": 0, "passed": 0, "not_applicable": len(report.checks) - 1}
        report, checks = checked(url, tmp_path, headers={"authorization": "Bearer secret-key-1"})
        assert checks["handshake"].verdict == "passed"


def test_an_address_where_nothing_listens(tmp_path):
    report, checks = checked("http://127.0.0.1:9/mcp", tmp_path)
    assert report.failed
    assert checks["handshake"].seen.startswith("no connection: 2025-11-25: the end of the connection (ConnectError")
