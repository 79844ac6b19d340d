"""What the reader of a run must know of its MCP servers, in sentences."""

from __future__ import annotations

import pytest

from karat.analysis.server_news import server_news
from karat.journal import ServerInfo
from karat.records import ServerEvent

TOOLS = "changed its tools during the run"
DECLINED = "because `elicit` does not fit it"
UNASKED = "over protocol 2026-07-28 servers send no requests: set `protocol: 2025-11-25` for this server"
BOTH = "answers before and after are not alike"


def changed(server="docs", **fields):
    return ServerEvent(server=server, what="changed", **fields)


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([], []),
        ([changed()], [f"MCP server 'docs' {TOOLS}: {BOTH}"]),
        (
            [changed(added=("a", "b")), changed(added=("b",), removed=("c",), altered=("d",)), changed("other")],
            [
                f"MCP server 'docs' {TOOLS} (new: a, b; gone: c; altered: d): {BOTH}",
                f"MCP server 'other' {TOOLS}: {BOTH}",
            ],
        ),
        (
            [changed(added=tuple("abcdefg"), protocol="2025-11-25"), changed(added=tuple("abcde"), server="five")],
            [
                f"MCP server 'docs' {TOOLS} (new: a, b, c, d, e and 2 more; it spoke protocol 2025-11-25): {BOTH}",
                f"MCP server 'five' {TOOLS} (new: a, b, c, d, e): {BOTH}",
            ],
        ),
        (
            [ServerEvent(server="docs", what="renewed")] * 2 + [ServerEvent(server="other", what="renewed")],
            [
                "MCP server 'docs' ended its session 2 times: karat opened another and repeated the request",
                "MCP server 'other' ended its session 1 time: karat opened another and repeated the request",
            ],
        ),
        (
            [ServerEvent(server="docs", what="unasked")] * 3,
            [
                f"MCP server 'docs' could not ask what `elicit` answers, 3 times: {UNASKED}",
            ],
        ),
        (
            [
                ServerEvent(server="docs", what="declined", problem=problem)
                for problem in ("no 'x'", "no 'y'", "no 'y'")
            ],
            [
                f"MCP server 'docs': its form was declined 2 times, {DECLINED}: no 'y'",
                f"MCP server 'docs': its form was declined 1 time, {DECLINED}: no 'x'",
            ],
        ),
    ],
)
def test_what_happened_is_said_once_for_each_server(events, told):
    assert [*server_news([], events)] == told


def test_tools_that_no_client_can_call_are_named_with_the_reason_of_a_single_one():
    servers = [
        ServerInfo(name="sound", digest="", tools=("a",)),
        ServerInfo(name="one", digest="", left_out={"bad name": "a space"}),
        ServerInfo(name="two", digest="", left_out={"x": "its schema", "y": "its name"}),
    ]
    assert [*server_news(servers, [])] == [
        "MCP server 'one' lists tools that no client can call: bad name: a space",
        "MCP server 'two' lists tools that no client can call: x, y",
    ]
