"""The proxy that agents get in the place of a server, asked by the official SDK's client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from karat.errors import InfrastructureFault
from karat.mcp import Toolbox
from karat.mcp.attempts import Attempt
from karat.records import Cassettes, McpServer
from karat.redact import Redactor
from karat.testing.mcp_server import serving, stdio_server

KEY = "canary-of-the-server-4711"


def toolbox_of(tmp_path, mode, *servers):
    cassettes = Cassettes(mode=mode, folder=tmp_path / "tapes")
    return Toolbox(servers, redact=Redactor({"KEY": KEY}), folder=tmp_path, cassettes=cassettes)


def client_of(command):
    argv, env = command
    return Client(stdio_client(StdioServerParameters(command=argv[0], args=argv[1:], env=env)))


async def conversation(toolbox, server):
    """What an agent sees of a server through the proxy."""
    with Attempt("t-1"):
        async with client_of(toolbox.proxy_command(server)) as client:
            tools = (await client.list_tools()).tools
            called = await asyncio.gather(
                client.call_tool("echo", {"text": "a"}),
                client.call_tool("echo", {"text": "b"}),
                client.call_tool("fail", {"message": "no"}),
                client.call_tool("picture", {}),
                client.call_tool("structured", {}),
            )
            return client.server_info.name, tools, called


def test_the_sdks_client_sees_the_servers_tools_whole_and_the_same_in_the_replay(tmp_path):
    async def go():
        with serving("http") as url:
            server = McpServer(name="s", type="http", url=url, headers={"X-Key": KEY})
            async with toolbox_of(tmp_path, "record", server) as toolbox:
                recorded = await conversation(toolbox, server)
        async with toolbox_of(tmp_path, "replay", server) as toolbox:
            replayed = await conversation(toolbox, server)
        return recorded, replayed

    recorded, replayed = asyncio.run(go())
    assert replayed == recorded
    name, tools, called = recorded
    assert name == "scripted"
    assert next(tool for tool in tools if tool.name == "structured").output_schema is not None
    assert [block.type for block in called[3].content] == ["image", "resource_link"]
    assert called[4].structured_content == {"seven": 7}
    assert (called[2].is_error, called[0].is_error) == (True, False)


def test_the_server_is_clean_and_its_key_does_not_reach_the_agent(tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY_OF_THE_PARENT", "sings")
    server = stdio_server("s", env={"KEY": KEY})

    async def go():
        async with toolbox_of(tmp_path, "record", server) as toolbox:
            with Attempt("t-1"):
                command = toolbox.proxy_command(server)
                async with client_of(command) as client:
                    seen = await client.call_tool("environment", {})
                return command, json.loads(seen.content[0].text)["variables"]

    command, variables = asyncio.run(go())
    assert KEY not in json.dumps(command)
    assert variables["KEY"] == "${KEY}", "the server has it, and the agent gets its name"
    assert "CANARY_OF_THE_PARENT" not in variables


def test_servers_end_with_the_attempt_and_a_proxy_that_comes_later_is_refused(tmp_path, ends):
    server = stdio_server("s")

    async def go():
        async with toolbox_of(tmp_path, "record", server) as toolbox:
            with Attempt("t-1"):
                command = toolbox.proxy_command(server)
                argv, env = command
                proxy = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                await _ask(proxy, "initialize", **HELLO)
                seen = await _ask(proxy, "tools/call", name="environment", arguments={})
                pid = json.loads(seen["content"][0]["text"])
            gone = await asyncio.to_thread(ends, pid["pid"]), await asyncio.to_thread(proxy.wait, 5)
            late = await asyncio.to_thread(subprocess.run, argv, env=env, capture_output=True, stdin=subprocess.DEVNULL)
            proxy.stdin.close()
            proxy.stdout.close()
            return gone, late

    gone, late = asyncio.run(go())
    assert gone == (True, 0)
    assert (late.stdout, late.returncode) == (b"", 0)


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}


async def _ask(proxy, method, **parameters):
    proxy.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}) + "\n")
    proxy.stdin.flush()
    return json.loads(await asyncio.to_thread(proxy.stdout.readline))["result"]


def test_an_agent_that_hides_a_miss_does_not_hide_it_from_karat(tmp_path):
    server = stdio_server("s")

    async def go(mode, text):
        async with toolbox_of(tmp_path, mode, server) as toolbox:
            with Attempt("t-1"):
                async with client_of(toolbox.proxy_command(server)) as client:
                    try:
                        await client.call_tool("echo", {"text": text})
                    except MCPError:
                        return "an answer all the same"

    asyncio.run(go("record", "asked"))
    with pytest.raises(InfrastructureFault, match="holds no answer") as fault:
        asyncio.run(go("replay", "never asked"))
    assert fault.value.kind == "cassette_miss"


NO_MESSAGES = [("{broken", -32700), ("[]", -32600)]
NOT_OF_A_SHARED_SERVER = [
    ('{"jsonrpc":"2.0","id":1,"method":"completion/complete"}', -32601),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}', -32602),
]


@pytest.mark.parametrize(
    ("scope", "sent", "code"),
    [
        *(("trial", *row) for row in NO_MESSAGES),
        *(("run", *row) for row in [*NO_MESSAGES, *NOT_OF_A_SHARED_SERVER]),
    ],
)
def test_what_is_no_request_gets_an_error_of_the_protocol(tmp_path, scope, sent, code):
    server = stdio_server("s", scope=scope)

    async def go():
        async with toolbox_of(tmp_path, "record", server) as toolbox:
            argv, env = toolbox.proxy_command(server)
            return await asyncio.to_thread(
                subprocess.run, argv, env=env, input=sent + "\n", capture_output=True, text=True, timeout=20
            )

    done = asyncio.run(go())
    assert json.loads(done.stdout)["error"]["code"] == code


def test_a_proxy_of_a_run_that_is_over_says_so(tmp_path):
    server = stdio_server("s")

    async def go():
        async with toolbox_of(tmp_path, "record", server) as toolbox:
            return toolbox.proxy_command(server)

    argv, env = asyncio.run(go())
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert done.returncode == 127
    assert "the run that this proxy belongs to is over" in done.stderr
    alone = subprocess.run([sys.executable, "-m", "karat.mcp.proxy"], capture_output=True, text=True)
    assert "KARAT_MCP_PROXY is not set" in alone.stderr


def test_without_cassettes_there_is_no_proxy(toolbox):
    server = stdio_server("s")
    assert toolbox(server).proxy_command(server) is None
