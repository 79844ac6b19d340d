"""Lists of tools that change, or hold tools that no client can call, and results that are too large."""

from __future__ import annotations

import asyncio
import json

import pytest
from werkzeug import Response

from karat.records import McpServer, ServerEvent

MODERN = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
ABOUT = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
GOOD = {"name": "good", "inputSchema": {"type": "object"}}


def opened(toolbox, condition, server, *calls):
    """The tools, what the calls gave, and what was reported."""
    news: list[ServerEvent] = []

    async def story():
        async with toolbox(server, on_news=news.append) as box:
            listed = (await box.preflight())["r"]
            async with box.open(condition(server)) as tools:
                made = [await tools.call_in_full("r", name, {}) for name in calls]
                return listed, [tool.name for tool in tools.tools], made

    return *asyncio.run(story()), news


def remote(raw_server, scope="run") -> McpServer:
    return McpServer(name="r", type="http", url=raw_server.url, scope=scope, protocol="2025-06-18")


@pytest.mark.parametrize("scope", ["run", "trial"])
def test_tools_that_change_during_a_call_are_reported_even_if_it_is_the_last(toolbox, condition, raw_server, scope):
    def answer(request):
        raw_server.tools = [{**raw_server.tools[0], "description": "another"}, GOOD]
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        reply = {"jsonrpc": "2.0", "id": request.json["id"], **raw_server.text("fine")}
        events = "".join(f"data: {json.dumps(event)}\n\n" for event in (changed, reply))
        return Response(events, content_type="text/event-stream")

    raw_server.answers["tools/call"] = answer
    _, _, made, news = opened(toolbox, condition, remote(raw_server, scope), "t")
    assert made[0][0].result == "fine"
    assert [(event.what, event.added, event.altered) for event in news] == [("changed", ("good",), ("t",))]


@pytest.mark.parametrize(
    ("bad", "name", "problem"),
    [
        ({"name": "bad", "inputSchema": {}}, "bad", "inputSchema"),
        ({"name": "bad"}, "bad", "inputSchema"),
        ({"name": "bad", "inputSchema": {"type": "array"}}, "bad", "inputSchema"),
        ({"inputSchema": {"type": "object"}}, "number 2 of the list", "name"),
        ("bad", "number 2 of the list", "is not valid"),
    ],
)
def test_a_tool_that_no_client_can_call_is_left_out_named_and_not_called(
    toolbox, condition, raw_server, bad, name, problem
):
    raw_server.tools = [GOOD, bad]
    listed, names, made, _ = opened(toolbox, condition, remote(raw_server), "good", "bad")
    assert names == ["good"]
    assert list(listed.left_out) == [name]
    assert problem in listed.left_out[name]
    assert made[0][0].result == "fine"
    if name == "bad":
        assert made[1][0].error.startswith("the tool was not called, because no client can: ")
        assert raw_server.seen.count("tools/call") == 1


def test_a_modern_server_may_list_a_tool_with_a_header_that_cannot_be_sent(toolbox, condition, raw_server):
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}}
    raw_server.tools = [GOOD, {"name": "bad", "inputSchema": schema}]
    raw_server.answers |= {
        "server/discover": lambda request: {"result": ABOUT | MODERN},
        "tools/list": lambda request: {"result": {"tools": raw_server.tools} | MODERN},
    }
    server = McpServer(name="r", type="http", url=raw_server.url, scope="run")
    listed, names, made, _ = opened(toolbox, condition, server, "bad")
    assert (listed.protocol, names) == ("2026-07-28", ["good"])
    assert "x-mcp-header" in listed.left_out["bad"]
    assert made[0][0].error.endswith(listed.left_out["bad"])
    assert "tools/call" not in raw_server.seen


def test_of_two_tools_with_one_name_the_first_is_used_and_the_other_named(toolbox, condition, raw_server):
    pages = iter([{"tools": [GOOD], "nextCursor": "2"}, {"tools": [GOOD | {"description": "other"}]}] * 9)
    raw_server.answers["tools/list"] = lambda request: {"result": next(pages)}
    listed, names, made, _ = opened(toolbox, condition, remote(raw_server), "good")
    assert (names, listed.left_out) == (["good"], {"another good": "a tool before it has the same name"})
    assert made[0][0].result == "fine"


def test_an_empty_cursor_ends_the_list(toolbox, condition, raw_server):
    raw_server.answers["tools/list"] = lambda request: {"result": {"tools": [GOOD], "nextCursor": ""}}
    assert opened(toolbox, condition, remote(raw_server))[1] == ["good"]


def test_structured_content_counts_towards_the_size_of_a_result(toolbox, condition, raw_server):
    def answer(request):
        content = {"content": [{"type": "text", "text": "ok"}], "structuredContent": {"rows": ["x" * 1000] * 12_000}}
        return {"result": content}

    raw_server.answers["tools/call"] = answer
    ((call, structured),) = opened(toolbox, condition, remote(raw_server), "t")[2]
    assert (call.result, structured) == (None, None)
    assert call.error.startswith("the result has 12036010 bytes, more than")


def test_a_version_that_is_refused_and_offered_is_asked_for_again(toolbox, condition, raw_server):
    refusals = 0

    def discover(request):
        nonlocal refusals
        refusals += 1
        if refusals == 1:
            error = {"code": -32022, "message": "unsupported", "data": {"supported": ["2026-07-28"]}}
            return raw_server.reply(request, {"error": error}, status=400)
        return {"result": ABOUT | MODERN}

    raw_server.answers |= {
        "server/discover": discover,
        "tools/list": lambda request: {"result": {"tools": [GOOD]} | MODERN},
    }
    server = McpServer(name="r", type="http", url=raw_server.url, scope="run", protocol="2026-07-28")
    assert opened(toolbox, condition, server)[0].protocol == "2026-07-28"
