"""Servers are listed before the first paid call, and a list that changes is reported."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import mcp_types
import pytest

from karat.mcp import ServerFault, ToolList
from karat.mcp.preflight import offer_of
from karat.records import McpServer, ServerEvent
from karat.testing.mcp_server import serving, stdio_server

PAGED = """
import json, sys
def answer(id, **rest): print(json.dumps({"jsonrpc": "2.0", "id": id, **rest}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked.get("method"), asked.get("params") or {}
    if method == "initialize":
        answer(asked["id"], result={"protocolVersion": "2025-06-18", "capabilities": CAPABILITIES,
                                    "serverInfo": {"name": "paged", "version": "1"}})
    elif method == "tools/list" and PAGES:
        page = int(params.get("cursor") or 0)
        tool = {"name": f"tool_{page}", "inputSchema": {"type": "object"}}
        result = {"tools": [tool], "nextCursor": str(page + 1)} if page + 1 < PAGES else {"tools": [tool]}
        answer(asked["id"], result=result)
    elif "id" in asked:
        answer(asked["id"], error={"code": -32601, "message": "Method not found"})
"""


def paged(pages: int, capabilities: str = "{'tools': {}}") -> McpServer:
    code = PAGED.replace("PAGES", str(pages)).replace("CAPABILITIES", capabilities)
    return McpServer(name="paged", type="stdio", command="python", args=("-c", code))


def listed(toolbox, *servers):
    async def story():
        async with toolbox(*servers) as box:
            return await box.preflight()

    return asyncio.run(story())


@pytest.mark.slow
def test_all_servers_are_listed_at_once_and_a_broken_one_is_a_value(toolbox):
    with serving("http") as url:
        servers = [
            stdio_server("own"),
            stdio_server("shared", scope="run"),
            McpServer(name="web", type="http", url=url),
            McpServer(name="absent", type="stdio", command="no-such-program"),
            stdio_server("silent", "--silent", init_timeout_seconds=2),
        ]
        found = listed(toolbox, *servers)
    assert list(found) == ["own", "shared", "web", "absent", "silent"]
    assert {name: one.kind for name, one in found.items() if isinstance(one, ServerFault)} == {
        "absent": "mcp_server_start",
        "silent": "mcp_init_timeout",
    }
    digests = {one.digest for one in found.values() if isinstance(one, ToolList)}
    assert len(digests) == 1, "the same tools have the same digest, whatever carries them"
    search = found["own"].tools[0]
    assert (search.server, search.name, search.description) == (
        "own",
        "search",
        "Searches a shelf of three documents.",
    )
    assert search.input_schema["properties"]["query"]["type"] == "string"


def test_no_servers_no_sdk():
    code = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from karat.mcp import Toolbox\nfrom karat.redact import Redactor\n"
        "async def main():\n    async with Toolbox([], redact=Redactor({}), folder=Path()) as box:\n"
        "        assert await box.preflight() == {}\n"
        "asyncio.run(main())\nassert not {'mcp', 'anyio', 'httpx2', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_every_page_is_listed(toolbox):
    found = listed(toolbox, paged(7))["paged"]
    assert [tool.name for tool in found.tools] == [f"tool_{page}" for page in range(7)]


def test_a_list_without_end_is_a_fault(toolbox):
    found = listed(toolbox, paged(1_000_000))["paged"]
    assert (found.kind, found.message) == (
        "mcp_tool_list",
        "MCP server 'paged': its list of tools does not end (100 tools so far)",
    )


def test_a_server_without_tools_is_no_fault(toolbox):
    assert listed(toolbox, paged(0, capabilities="{}"))["paged"].tools == ()


def test_the_digest_covers_names_descriptions_and_schemas_and_not_their_order():
    def digest_of(*tools, server="s"):
        return offer_of(server, {}, tools).tools.digest

    one = mcp_types.Tool(name="a", description="A", input_schema={"x": 1, "y": {"p": 1, "q": 2}})
    two = mcp_types.Tool(name="b", description="B", input_schema={})
    reordered = one.model_copy(update={"input_schema": {"y": {"q": 2, "p": 1}, "x": 1}})
    digest = digest_of(one, two)
    assert digest == digest_of(two, reordered, server="other")
    others = [
        digest_of(one),
        digest_of(one, two, two),
        digest_of(one.model_copy(update={"name": "c"}), two),
        digest_of(one.model_copy(update={"description": "C"}), two),
        digest_of(one.model_copy(update={"input_schema": {"x": 2}}), two),
    ]
    assert len({digest, *others}) == 6


@pytest.mark.slow
def test_a_server_that_changes_its_tools_is_reported_once(toolbox, condition, tmp_path):
    script = tmp_path / "server.py"

    def write(**tools: str) -> None:
        lines = ["from mcp.server.mcpserver import MCPServer", "server = MCPServer('s', log_level='CRITICAL')"]
        for name, description in tools.items():
            lines.append(f"server.add_tool(lambda: '', name={name!r}, description={description!r})")
        script.write_text("\n".join([*lines, "server.run()"]))

    async def story():
        server = McpServer(name="s", type="stdio", command="python", args=(str(script),))
        async with toolbox(server, on_news=news.append) as box:
            write(kept="same", altered="before", removed="x")
            await box.preflight()
            async with box.open(condition(server)):
                assert news == []
            await asyncio.to_thread(write, kept="same", altered="after", added="x")
            for _ in range(2):
                async with box.open(condition(server)) as tools:
                    seen = tools.tools
            return {tool.name for tool in seen}

    news: list[ServerEvent] = []
    assert asyncio.run(story()) == {"kept", "altered", "added"}
    names = {"added": ("added",), "removed": ("removed",), "altered": ("altered",)}
    assert news == [ServerEvent(server="s", what="changed", tools_digest=news[0].tools_digest, **names)]


@pytest.mark.quick(1)
@pytest.mark.parametrize("known_for", [0.0, 3600.0], ids=["list is old", "list is new"])
def test_a_shared_server_that_grows_a_tool_is_noticed_once_its_list_is_old(toolbox, condition, known_for):
    async def story():
        server = stdio_server("s", scope="run")
        news: list[ServerEvent] = []
        async with toolbox(server, relist_seconds=known_for, on_news=news.append) as box:
            await box.preflight()
            async with box.open(condition(server)) as tools:
                await tools.call("s", "grow", {"name": "sprout"})
            async with box.open(condition(server)) as tools:
                return [change.added for change in news], "sprout" in {tool.name for tool in tools.tools}

    noticed = ([("sprout",)], True) if known_for == 0 else ([], False)
    assert asyncio.run(story()) == noticed
