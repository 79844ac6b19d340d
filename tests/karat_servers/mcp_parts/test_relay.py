"""What an agent that connects to its servers itself sees of them, without karat, through the recorder, and replayed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import (
    CreateMessageResult,
    EmptyResult,
    PromptReference,
    SubscriptionsListenRequest,
    TextContent,
)

from karat.errors import InfrastructureFault
from karat.mcp import Toolbox
from karat.mcp.attempts import Attempt
from karat.mcp.faults import leaves
from karat.records import Cassettes, McpServer
from karat.redact import Redactor
from karat.testing.mcp_server import stdio_server
from karat_servers.mcp_parts.cassettes import cassette_path

SERVER = '''
import sys
from typing import Annotated
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import Completion
from pydantic import Field

server = MCPServer("shelf", instructions="Ask for a book.", version="7.1", log_level="CRITICAL")

@server.tool()
async def count(ctx: Context, to: int) -> str:
    """Counts, reporting progress."""
    for number in range(to):
        await ctx.report_progress(number + 1, to, f"at {number + 1}")
    return f"counted to {to}"

@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(lambda: "new", name="added", structured_output=False)
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "grown"

@server.tool()
def locate(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Takes an argument that HTTP repeats in a header."""
    return f"found in {region}"

@server.tool()
async def consult(ctx: Context, question: str) -> str:
    """Asks the client's model."""
    from mcp_types import SamplingMessage, TextContent
    said = await ctx.session.create_message(
        messages=[SamplingMessage(role="user", content=TextContent(type="text", text=question))], max_tokens=9
    )
    return f"the model says {said.content.text}"

@server.resource("book://index")
def index() -> str:
    """The list of books."""
    return "Emma, Ulysses"

@server.resource("book://{title}/page")
def page(title: str) -> str:
    """The first page."""
    return f"{title} begins"

@server.prompt()
def review(title: str) -> str:
    """Asks for a review."""
    return f"Review {title}."

@server.completion()
async def complete(ref, argument, context):
    return Completion(values=[f"{argument.value}ma"])

if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    import asyncio, json, socket, uvicorn
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    port = listening.getsockname()[1]
    app = server.sse_app() if sys.argv[1] == "sse" else server.streamable_http_app()
    path = "/sse" if sys.argv[1] == "sse" else "/mcp"
    print(json.dumps({"url": f"http://127.0.0.1:{port}{path}"}), flush=True)
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[listening]))
'''

LISTEN = SubscriptionsListenRequest(params={"notifications": {"toolsListChanged": True}})


@pytest.fixture
def shelf(tmp_path):
    """`with shelf(transport) as (server, live)`: a server's definition, and what connects to it without karat."""
    script = tmp_path / "shelf.py"
    script.write_text(SERVER)

    @contextmanager
    def running(transport):
        argv = [sys.executable, str(script), transport]
        if transport == "stdio":
            live = stdio_client(StdioServerParameters(command=argv[0], args=argv[1:]))
            yield McpServer(name="s", type="stdio", command=argv[0], args=tuple(argv[1:])), live
            return
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            try:
                url = json.loads(process.stdout.readline())["url"]
                live = sse_client(url) if transport == "sse" else url
                yield McpServer(name="s", type=transport, url=url), live
            finally:
                process.kill()

    return running


@pytest.fixture
def box(tmp_path):
    """`box(mode, *servers)`: a toolbox that records to, or replays from, `tmp_path/tapes`."""

    def build(mode, *servers):
        cassettes = Cassettes(mode=mode, folder=tmp_path / "tapes")
        return Toolbox(servers, redact=Redactor({}), folder=tmp_path, cassettes=cassettes)

    return build


def proxied(toolbox, server):
    argv, env = toolbox.proxy_command(server)
    return stdio_client(StdioServerParameters(command=argv[0], args=argv[1:], env=env))


async def seen(transport, *, mode="auto", replayed=False):
    """Everything that a client sees of the shelf; `replayed`: but for what the server says unasked."""
    found: dict[str, Any] = {}
    news: list[str] = []

    async def sample(context, parameters):
        return CreateMessageResult(
            role="assistant", content=TextContent(type="text", text="yes"), model="m", stop_reason="endTurn"
        )

    async def news_of(message):
        news.append(type(message).__name__)

    async with Client(transport, mode=mode, sampling_callback=sample, message_handler=news_of) as client:
        found["revision"] = client.protocol_version
        found["capabilities"] = client.server_capabilities.model_dump(exclude_none=True)
        found["server"] = client.server_info.model_dump(exclude_none=True)
        found["instructions"] = client.instructions
        found["tools"] = (await client.list_tools()).tools
        found["resources"] = (await client.list_resources()).resources
        found["templates"] = (await client.list_resource_templates()).resource_templates
        found["index"] = (await client.read_resource("book://index")).contents
        found["page"] = (await client.read_resource("book://Emma/page")).contents
        found["prompts"] = (await client.list_prompts()).prompts
        found["prompt"] = (await client.get_prompt("review", {"title": "Emma"})).messages
        reference = PromptReference(type="ref/prompt", name="review")
        found["completion"] = (await client.complete(reference, {"name": "title", "value": "Em"})).completion.values
        found["located"] = (await client.call_tool("locate", {"region": "Köln"})).content
        found["progress"] = []

        async def progress(done, total, message):
            found["progress"].append((done, total, message))

        found["counted"] = (await client.call_tool("count", {"to": 3}, progress_callback=progress)).content
        with pytest.raises(MCPError) as unknown:
            await client.read_resource("book://nowhere/at/all")
        found["unknown"] = (unknown.value.code, unknown.value.error.message, unknown.value.error.data)
        if replayed:
            del found["progress"]
            with pytest.raises(MCPError, match="cannot answer 'subscriptions/listen' from the recording"):
                await client.session.send_request(LISTEN, EmptyResult)
        elif mode == "legacy":
            found["consulted"] = (await client.call_tool("consult", {"question": "Well?"})).content
            found["grown"] = (await client.call_tool("grow", {})).content
            with anyio.fail_after(20):
                while "ToolListChangedNotification" not in news:
                    await anyio.sleep(0.01)
        else:
            async with client.listen(tools_list_changed=True) as events:
                found["grown"] = (await client.call_tool("grow", {})).content
                with anyio.fail_after(20):
                    found["event"] = await anext(aiter(events))
    return found


WAYS = [("stdio", "auto"), ("stdio", "legacy"), ("http", "auto"), ("http", "legacy"), ("sse", "legacy")]


UNASKED = {"progress", "event", "consulted", "grown"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize(("transport", "mode"), WAYS)
def test_an_agent_sees_the_same_live_recorded_and_replayed(shelf, box, transport, mode):
    async def through(tape, server, **chosen):
        async with box(tape, server) as toolbox:
            with Attempt("t-1"):
                return await seen(proxied(toolbox, server), mode=mode, **chosen)

    with shelf(transport) as (_, live):
        expected = asyncio.run(seen(live, mode=mode))
    with shelf(transport) as (server, _):
        assert asyncio.run(through("record", server)) == expected
    replayed = asyncio.run(through("replay", server, replayed=True))
    assert replayed == {name: value for name, value in expected.items() if name not in UNASKED}
    assert expected["revision"] == ("2026-07-28" if mode == "auto" else "2025-11-25")
    assert expected["index"][0].text == "Emma, Ulysses"
    assert len(expected["progress"]) == 3
    assert expected["located"][0].text == "found in Köln"


def tape(tmp_path):
    (path,) = (tmp_path / "tapes").iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        (("--exit", "3", "--words", "no paper"), "mcp_server_start", "no paper"),
        (("crash",), "mcp_server_down", "no ink"),
    ],
)
def test_what_ended_the_server_is_in_the_recording_and_ends_the_replay(box, tmp_path, options, kind, words):
    server = stdio_server("s", *(options if options != ("crash",) else ()))

    async def go(mode):
        async with box(mode, server) as toolbox:
            with Attempt("t-1"), pytest.raises(ExceptionGroup) as error:
                async with Client(proxied(toolbox, server)) as client:
                    await client.call_tool("crash", {"words": "no ink"})
        return str(next(leaves(error.value)))

    assert asyncio.run(go("record")) == "Connection closed"
    (fault,) = [line["fault"] for line in tape(tmp_path) if "fault" in line]
    assert fault["kind"] == kind
    assert words in fault["message"]
    assert asyncio.run(go("replay")) == "Connection closed"


def test_a_call_that_the_agent_cancels_is_cancelled_at_the_server(box, shelf, tmp_path):
    server = stdio_server("s")

    async def go():
        async with box("record", server) as toolbox:
            with Attempt("t-1"):
                async with Client(proxied(toolbox, server)) as client:
                    with pytest.raises(MCPError, match=r"[Tt]imed out"):
                        await client.call_tool("hang", {"seconds": 2.5}, read_timeout_seconds=0.5)
                    await client.call_tool("echo", {"text": "goes on"})
                    await anyio.sleep(3)

    asyncio.run(go())
    called = {line["arguments"]["name"]: line for line in tape(tmp_path) if line.get("method") == "tools/call"}
    assert called["hang"].get("result") is None
    assert called["echo"]["result"]["content"][0]["text"] == "goes on"


def test_what_was_not_recorded_ends_the_replayed_trial(box, shelf):
    async def go(server, mode, uri):
        async with box(mode, server) as toolbox:
            with Attempt("t-1"):
                async with Client(proxied(toolbox, server)) as client:
                    try:
                        return (await client.read_resource(uri)).contents[0].text
                    except MCPError:
                        return "an answer all the same"

    with shelf("stdio") as (server, _):
        assert asyncio.run(go(server, "record", "book://Emma/page")) == "Emma begins"
        assert asyncio.run(go(server, "replay", "book://Emma/page")) == "Emma begins"
        with pytest.raises(InfrastructureFault, match=r"holds no answer to resources/read .*Ulysses") as fault:
            asyncio.run(go(server, "replay", "book://Ulysses/page"))
    assert fault.value.kind == "cassette_miss"


def test_a_recording_of_tools_alone_is_replayed_as_it_was(box, tmp_path):
    server = stdio_server("s")
    said = {"protocolVersion": "2026-07-28", "capabilities": {"resources": {}}, "serverInfo": {"name": "old"}}
    said["serverInfo"]["version"] = "1"
    schema = {"type": "object", "properties": {}}
    call = {"name": "look", "arguments": {}}
    lines = [
        {"event": "head", "format": 1, "server": "s", "digest": server.digest},
        {"event": "begin", "session": "t-1"},
        {"event": "asked", "session": "t-1", "method": "initialize", "result": said},
        {"event": "asked", "session": "t-1", "method": "tools/list", "result": {"tools": []}},
        {
            "event": "asked",
            "session": "t-1",
            "method": "tools/call",
            "arguments": call,
            "result": {"content": [{"type": "text", "text": "seen"}]},
        },
    ]
    lines[3]["result"]["tools"].append({"name": "look", "inputSchema": schema})
    path = cassette_path(tmp_path / "tapes", server)
    path.parent.mkdir()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    async def go():
        async with box("replay", server) as toolbox:
            with Attempt("t-1"):
                async with Client(proxied(toolbox, server)) as client:
                    with pytest.raises(MCPError, match="cannot answer 'resources/list' from the recording"):
                        await client.list_resources()
                    listed = [tool.name for tool in (await client.list_tools()).tools]
                    called = (await client.call_tool("look", {})).content[0].text
                    offered = client.server_capabilities.model_dump(exclude_none=True)
                    return client.server_info.name, client.protocol_version, offered, listed, called

    assert asyncio.run(go()) == ("old", "2025-11-25", {"tools": {}}, ["look"], "seen")
