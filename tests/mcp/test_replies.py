"""Replies that break the protocol: the call's error says what is wrong, without waiting for the timeout."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp_types import BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, JSONRPCRequest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from karat.mcp import Toolbox
from karat.mcp.replies import Pending
from karat.mcp.results import LARGEST_RESULT, Outcome, bounded, images_of
from karat.records import AgentSpec, Condition, McpServer
from karat.redact import Redactor

# A stdio server that handles the handshake well and answers tools/call with the bytes of its first argument.
_SERVER = r"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    number, method = message["id"], message["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "odd", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call" and message["params"]["name"] == "ask":
        reply = sys.argv[1].replace("ID", json.dumps(number)).encode("latin-1")
        sys.stdout.buffer.write(reply + b"\n")
        sys.stdout.flush()
        continue
    else:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
"""

GOOD = '{"content": [{"type": "text", "text": "fine"}]}'
NOT_FOLLOWED = "the server does not follow the protocol: "

MALFORMED = [
    pytest.param('{"jsonrpc": "2.0", "id": ID, "result": null}', "its result must be an object, got null", id="null"),
    pytest.param('{"jsonrpc": "2.0", "id": ID, "result": [1]}', "its result must be an object, got a list", id="list"),
    pytest.param('{"jsonrpc": "2.0", "id": ID, "result": "yes"}', "must be an object, got a text", id="text"),
    pytest.param('{"jsonrpc": "2.0", "id": ID}', "its reply has neither result nor error", id="neither"),
    pytest.param(
        '{"jsonrpc": "2.0", "id": ID, "error": "no index"}',
        "its error must be an object with code and message, got 'no index'",
        id="error is text",
    ),
    pytest.param('{"jsonrpc": "2.0", "id": ID, "error": {"code": "x"}}', "its error needs a code", id="error code"),
    pytest.param(
        '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "\\ud800"}]}}',
        "half of a surrogate pair",
        id="lone surrogate",
    ),
    pytest.param('{"id": ID, "result": GOOD}', "its reply has jsonrpc null instead of '2.0'", id="no jsonrpc"),
    pytest.param('{"jsonrpc": "2.0", "id": "ID", "result": GOOD}', "its reply has the id '", id="id as text"),
    pytest.param('{"jsonrpc": "2.0", "id": ID.0, "result": GOOD}', "as id", id="id as float"),
    pytest.param('{"jsonrpc": "2.0", "id": null, "result": GOOD}', "its reply has null as id", id="id is null"),
    pytest.param(
        '{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "cannot parse"}}',
        "cannot parse",
        id="error without id",
    ),
    pytest.param('[{"jsonrpc": "2.0", "id": ID, "result": GOOD}]', "its reply is a batch", id="batch"),
    pytest.param('{"jsonrpc": "2.0", "id": ID, "result": {"x": "\xff"}}', "its reply is not UTF-8", id="not UTF-8"),
    pytest.param(
        '{"jsonrpc": "2.0", "id": ID, "result": {"x": ' + "[" * 20_000 + "]" * 20_000 + "}}",
        "its reply is nested too deeply",
        id="nested",
    ),
    pytest.param(
        '{"jsonrpc": "2.0", "id": ID, "result": {"x": ' + "[" * 300 + "]" * 300 + "}}",
        "its reply is nested too deeply",
        id="nested for the SDK",
    ),
]

AROUND = [
    pytest.param('Searching... {"jsonrpc": "2.0", "id": ID, "result": GOOD}', id="text before it"),
    pytest.param('\r 10%|#   |\r100%|####|{"jsonrpc": "2.0", "id": ID, "result": GOOD} done', id="a progress bar"),
    pytest.param('\xef\xbb\xbf{"jsonrpc": "2.0", "id": ID, "result": GOOD}', id="byte order mark"),
    pytest.param(
        '{"id": ID, "error": null}\n{"error": "no cache"}\n{"jsonrpc": "2.0", "id": ID, "result": GOOD}',
        id="logs in JSON",
    ),
    pytest.param(
        'DEBUG got {"jsonrpc": "2.0", "id": ID, "method": "tools/call"}\n{"jsonrpc": "2.0", "id": ID, "result": GOOD}',
        id="a log of the request",
    ),
    pytest.param(
        '{"jsonrpc": "2.0", "id": ID, "result": GOOD}{"jsonrpc": "2.0", "method": "notifications/message"}',
        id="two messages in a line",
    ),
]


DEEP = "[" * 20_000 + "]" * 20_000
NO_REPLY = [
    '{"level": "error", "id": 1, "error": "no database, trying again"}',
    '{"level": "error", "id": null, "error": "no database"}',
    '{"jsonrpc": "2.0", "level": "info"}',
    '{"jsonrpc": "2.0"}',
    'usage: reply with {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}',
    '[debug] sent "{"jsonrpc": "2.0", "id": 1, "result": {}}", trying again',
    '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"id": 1, "data": DEEP}}',
    '{"jsonrpc": "2.0", "result": {"id": 1, "data": DEEP}}',
    '{"jsonrpc": "2.0", "result": {"id": 1, "data": DEEP}, "id": 9}',
]


def pending(*numbers: int) -> Pending:
    requests = Pending()
    for number in numbers:
        requests.sent(JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call", params={}))
    return requests


@pytest.mark.parametrize("line", NO_REPLY)
def test_a_line_that_is_no_reply_ends_no_request(line: str) -> None:
    requests = pending(1)
    assert requests.malformed(line.replace("DEEP", DEEP).encode())[0] == []
    (reply,), _ = requests.malformed(b'{"id": 1, "result": {}}')
    assert reply.id == 1, "it still waits"


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": 2, "result": {"id": 1, "data": DEEP}}',
        '{"id": 2, "jsonrpc": "2.0", "error": {"id": 1, "data": DEEP}}',
        '{"jsonrpc": "2.0", "result": {"id": 1, "data": DEEP}, "id": 2}',
        '{"result": {"id": 1, "data": DEEP}, "id": 2, "jsonrpc": "2.0"}\n',
    ],
)
def test_a_reply_that_is_nested_too_deeply_is_of_the_request_with_its_own_id(line: str) -> None:
    (reply,), _ = pending(1, 2).malformed(line.replace("DEEP", DEEP).encode())
    assert reply.id == 2
    assert "nested too deeply" in reply.error.message


def called(server: McpServer, folder: Path) -> Any:
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="floor"), mcp_servers=(server,))

    async def run() -> Any:
        async with (
            Toolbox((server,), redact=Redactor({}), folder=folder) as toolbox,
            toolbox.open(condition) as tools,
        ):
            first = await tools.call("odd", "ask", {})
            return first, await tools.call("odd", "other", {})

    return asyncio.run(run())


@pytest.mark.parametrize(("reply", "said"), MALFORMED)
def test_a_stdio_server_is_told_what_is_wrong_with_its_reply(tmp_path: Path, reply: str, said: str) -> None:
    args = ("-c", _SERVER, reply.replace("GOOD", GOOD))
    server = McpServer(name="odd", type="stdio", command=sys.executable, args=args, call_timeout_seconds=60)
    call, after = called(server, tmp_path)
    assert call.error.startswith(NOT_FOLLOWED)
    assert said in call.error
    assert after.error == "no such method", "the session goes on"


@pytest.mark.parametrize("reply", AROUND)
def test_a_reply_is_read_whatever_else_a_stdio_server_prints(tmp_path: Path, reply: str) -> None:
    args = ("-c", _SERVER, reply.replace("GOOD", GOOD))
    server = McpServer(name="odd", type="stdio", command=sys.executable, args=args, call_timeout_seconds=60)
    assert called(server, tmp_path)[0].result == "fine"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"content": "Paris"}, "content: input should be a valid list"),
        ({"content": [{"type": "text", "text": ["Paris"]}]}, "content.0.text: input should be a valid string"),
        ({"content": [{"type": "image", "data": "Paris"}]}, "content.0.mimeType: field required"),
        ({"content": [{"type": "video", "text": "Paris"}]}, "content.0.type: input should be "),
        ({"content": [], "structuredContent": {"city": "Paris"}}, "structuredContent.city is not as `type` of the"),
    ],
)
def test_an_invalid_result_is_not_quoted_where_a_scorer_could_find_the_answer(
    toolbox, condition, raw_server, result, said
):
    schema = {"type": "object", "properties": {"city": {"type": "integer"}}}
    raw_server.tools[0]["outputSchema"] = schema
    raw_server.answers["tools/call"] = lambda request: {"result": result}
    server = McpServer(name="r", type="http", url=raw_server.url)

    async def story():
        async with toolbox(server) as box, box.open(condition(server)) as tools:
            return await tools.call("r", "t", {})

    call = asyncio.run(story())
    assert said in call.error
    assert "Paris" not in call.error


def test_null_is_as_if_absent(toolbox, condition, raw_server):
    content = [{"type": "text", "text": "fine", "annotations": None}]
    raw_server.answers["tools/call"] = lambda request: {
        "result": {"content": content, "isError": None, "structuredContent": None}
    }
    server = McpServer(name="r", type="http", url=raw_server.url)

    async def story():
        async with toolbox(server) as box, box.open(condition(server)) as tools:
            return await tools.call("r", "t", {})

    assert asyncio.run(story()).result == "fine"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ('{"jsonrpc": "2.0", "id": ID, "result": null}', "result: input should be an object"),
        ('{"jsonrpc": "2.0", "id": ID, "error": "no index"}', "error: input should be "),
        ('{"jsonrpc": "2.0", "id": "ID", "result": GOOD}', "its reply has the id '"),
        ('{"jsonrpc": "2.0", "id": ID, "result": {"x": "\\ud800"}}', "Invalid JSON: "),
        ('{"jsonrpc": "2.0", "id": ID, ', "Invalid JSON: "),
        ('[{"jsonrpc": "2.0", "id": ID, "result": GOOD}]', "its reply is not valid (input should be an object)"),
    ],
)
def test_an_http_server_is_told_what_is_wrong_with_its_reply(
    tmp_path: Path, httpserver: HTTPServer, reply: str, said: str
) -> None:
    def answer(request: Request) -> Response:
        if request.method != "POST":
            return Response(status=405)
        message = request.get_json()
        if "id" not in message:
            return Response(status=202)
        number, method = message["id"], message["method"]
        results = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]},
        }
        whole: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        if method in results:
            text = json.dumps(whole | {"result": results[method]})
        elif method == "tools/call" and message["params"]["name"] == "ask":
            text = reply.replace("GOOD", GOOD).replace("ID", json.dumps(number))
        else:
            text = json.dumps(whole | {"error": {"code": -32601, "message": "no such method"}})
        return Response(text, content_type="application/json")

    httpserver.expect_request("/mcp").respond_with_handler(answer)
    server = McpServer(name="odd", type="http", url=httpserver.url_for("/mcp"), call_timeout_seconds=60)
    call, after = called(server, tmp_path)
    assert call.error.startswith(NOT_FOLLOWED)
    assert said in call.error
    assert after.error == "no such method"


def test_a_timeout_names_what_stood_on_stdout_instead_of_a_reply(tmp_path: Path) -> None:
    from karat.errors import InfrastructureFault

    args = ("-c", _SERVER, "Traceback: no such index")
    server = McpServer(name="odd", type="stdio", command=sys.executable, args=args, call_timeout_seconds=1)
    with pytest.raises(InfrastructureFault, match=r"gave no result within 1 s .*messages only: 'Traceback: no such"):
        called(server, tmp_path)


def test_a_reply_with_nothing_wrong_that_is_known_is_not_called_nested():
    line = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 99999999999999999999999, "message": "x"}}'
    (reply,), _ = pending(1).malformed(line)
    assert reply.error.message == f"{NOT_FOLLOWED}its reply is not valid"


def test_a_long_fault_of_the_sdk_is_shortened_in_time():
    started = time.process_time()
    (reply,) = [pending(1).unreadable(ValueError("JSONRPCError.x\n" + " " * 10**5))]
    assert reply is not None
    assert time.process_time() - started < 2


def test_an_error_without_words_is_an_error(toolbox, condition, raw_server):
    raw_server.answers["tools/call"] = lambda request: {"error": {"code": -32000, "message": ""}}
    server = McpServer(name="r", type="http", url=raw_server.url)

    async def story():
        async with toolbox(server) as box, box.open(condition(server)) as tools:
            return await tools.call("r", "t", {})

    assert asyncio.run(story()).error == "the tool failed and did not say why"


def test_an_error_of_the_protocol_has_the_size_limit_of_a_result():
    long = "x" * LARGEST_RESULT
    assert bounded(Outcome(error=long)).error == long
    assert bounded(Outcome(error=long + "y")).error.startswith("the result has 10485761 bytes, more than")


@pytest.mark.parametrize("data", ["AAA", "no base64 at all", "\u00e9AAA"])
def test_an_image_that_is_no_base64_and_one_of_an_unknown_type_are_not_sent(data):
    good = ImageContent(type="image", data="AAAA", mime_type="image/png")
    bad = ImageContent(type="image", data=data, mime_type="image/png")
    other = ImageContent(type="image", data="AAAA", mime_type="image/svg+xml")
    assert list(images_of(CallToolResult(content=[bad, good, other]))) == [("image/png", b"\0\0\0")]


def test_an_image_is_sent_however_a_server_spells_it():
    spelled = [("image/jpg", "AA\nAA"), ("Image/PNG; q=1", "data:image/png;base64,AAAA")]
    blocks = [ImageContent(type="image", data=data, mime_type=kind) for kind, data in spelled]
    resource = BlobResourceContents(uri="file:///a", mime_type="image/webp", blob="AAAA")
    result = CallToolResult(content=[*blocks, EmbeddedResource(type="resource", resource=resource)])
    assert list(images_of(result)) == [(f"image/{kind}", b"\0\0\0") for kind in ("jpeg", "png", "webp")]
