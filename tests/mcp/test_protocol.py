"""Versions of the protocol: pinned, negotiated, recorded, and the same on tape as live."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from karat.mcp import Toolbox, ToolList
from karat.mcp.attempts import Attempt
from karat.mcp.preflight import tool_change
from karat.records import Cassettes, McpServer
from karat.redact import Redactor
from karat.testing.mcp_server import serving, stdio_server

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")

OLD = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if asked["method"] == "initialize":
        about = {"name": "old", "version": "1"}
        answer["result"] = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": about}
    elif "id" in asked:
        answer["error"] = {"code": -32601, "message": "no such method"}
    else:
        continue
    print(json.dumps(answer), flush=True)
"""

MODERN = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    error = {"code": -32022, "message": "not this version", "data": {"supported": ["2026-07-28"], "requested": "?"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "error": error}), flush=True)
"""


def python(code, **fields):
    return McpServer(name="s", type="stdio", command="python", args=("-c", code), **fields)


def listed(toolbox, server):
    async def story():
        async with toolbox(server) as box:
            return (await box.preflight())[server.name]

    return asyncio.run(story())


@pytest.mark.quick(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_that_is_pinned_is_spoken(toolbox, version):
    assert listed(toolbox, stdio_server("s", protocol=version)).protocol == version


@pytest.mark.quick(1)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_a_pinned_version_is_spoken_over_http(toolbox, shared_server, version):
    server = McpServer(name="s", type="http", url=shared_server("http"), protocol=version)
    assert listed(toolbox, server).protocol == version


def test_without_a_pin_the_newest_that_both_know_is_spoken_and_kept(toolbox):
    assert listed(toolbox, stdio_server("s")).protocol == "2026-07-28"
    assert listed(toolbox, python(OLD)).protocol == "2024-11-05"


@pytest.mark.parametrize(
    ("code", "pinned", "spoken"),
    [
        (OLD, "2025-06-18", "2024-11-05"),
        (OLD, "2026-07-28", "an older one (it answered: no such method)"),
        (MODERN, "2025-06-18", "2026-07-28"),
    ],
)
def test_a_server_that_speaks_another_version_is_a_fault_that_names_both(toolbox, code, pinned, spoken):
    fault = listed(toolbox, python(code, protocol=pinned))
    assert (fault.kind, fault.retriable) == ("mcp_protocol", False)
    assert fault.message == f"MCP server 's' speaks protocol {spoken}, and the experiment pins {pinned}"


@pytest.mark.slow
def test_a_server_that_refuses_entry_is_not_called_too_old(toolbox):
    with serving("http", "--status", "401") as url:
        fault = listed(toolbox, McpServer(name="s", type="http", url=url, protocol="2026-07-28"))
    assert fault.kind == "mcp_unauthorized"


def test_another_version_is_a_change_of_the_server():
    before = ToolList(server="s", tools=(), digest="d", protocol="2025-11-25")
    assert tool_change(before, before) is None
    change = tool_change(before, msgspec.structs.replace(before, protocol="2026-07-28"))
    assert change is not None
    assert change.protocol == "2026-07-28"


@pytest.mark.quick(1)
@pytest.mark.needs_package("karat_servers")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_recorded_is_live_for_tools_resources_and_prompts(tmp_path, condition, version):
    server = stdio_server("s", digest="d", protocol=version)
    gone = python("exit(1)", digest="d", protocol=version)

    async def once(mode, one):
        cassettes = Cassettes(mode=mode, folder=tmp_path / "tapes")
        async with Toolbox((one,), redact=Redactor({}), folder=tmp_path, cassettes=cassettes) as box:
            with Attempt("t-1"):
                async with box.open(condition(one)) as tools:
                    return [
                        await tools.call_in_full("s", "structured", {}),
                        await tools.call_in_full("s", "fail", {"message": "out of paper"}),
                        await tools.read("s", "resources/list", {}),
                        await tools.read("s", "resources/read", {"uri": "shelf://lamps"}),
                        await tools.read("s", "resources/read", {"uri": "shelf://none"}),
                        await tools.read("s", "prompts/list", {}),
                        await tools.read("s", "prompts/get", {"name": "ask_about", "arguments": {"topic": "lamps"}}),
                    ]

    live = asyncio.run(once("record", server))
    assert asyncio.run(once("replay", gone)) == live
    assert live[0][1] == {"seven": 7}
    assert [call.error is None for call, _ in live] == [True, False, True, True, False, True, True]
    assert live[3][1] is not None
    assert live[3][1]["contents"][0]["mimeType"] == "text/markdown"
    assert live[6][0].result == "user: What do you know about lamps?"


@pytest.mark.quick(1)
@pytest.mark.parametrize("version", ["auto", "2025-06-18"])
def test_an_agent_that_connects_itself_gets_the_pinned_version_and_resources(tmp_path, version):
    """Through karat's proxy: `scope: run` and pinned servers are asked by sessions of karat's own."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    server = stdio_server("s", protocol=version, scope="run" if version == "auto" else "trial")

    async def story():
        async with Toolbox((server,), redact=Redactor({}), folder=tmp_path) as box:
            with Attempt("t-1"):
                started = box.proxy_command(server)
                assert started is not None
                argv, env = started
                async with Client(StdioServerParameters(command=argv[0], args=argv[1:], env=env)) as client:
                    read = await client.read_resource("shelf://lamps")
                    prompt = await client.get_prompt("ask_about", {"topic": "rain"})
                    return read, prompt, await client.call_tool("structured")

    read, prompt, called = asyncio.run(story())
    assert read.contents[0].text.startswith("# Lamps")
    assert prompt.messages[0].content.text == "What do you know about rain?"
    assert called.structured_content == {"seven": 7}
