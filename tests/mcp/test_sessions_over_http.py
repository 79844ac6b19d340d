"""Sessions that a server ends, its own errors, and replies that are none: what each costs a trial."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from werkzeug import Response

from karat.errors import InfrastructureFault
from karat.records import McpServer, ServerEvent

RENEWED = ServerEvent(server="r", what="renewed")


def remote(url: str, **fields) -> McpServer:
    return McpServer(name="r", type="http", url=url, scope="run", call_timeout_seconds=20, **fields)


def called(toolbox, condition, server, *, times: int = 1, at_once: bool = False):
    """The results and errors of calls on one shared session, and what was reported."""
    news: list[ServerEvent] = []

    async def one(tools):
        try:
            call = await tools.call("r", "t", {})
        except InfrastructureFault as fault:
            return fault
        return call.result or call.error

    async def story():
        async with toolbox(server, on_news=news.append) as box, box.open(condition(server)) as tools:
            if at_once:
                return await asyncio.gather(*(one(tools) for _ in range(times)))
            return [await one(tools) for _ in range(times)]

    return asyncio.run(story()), news


def gone(request, status: int, body: object) -> Response:
    if isinstance(body, str):
        return Response(body, status=status, content_type="text/plain")
    if isinstance(body, list):
        text = f": ping\r\n\r\nevent: message\r\ndata: {json.dumps(body[0] | {'id': request.json['id']})}\r\n\r\n"
        return Response([text[:40], text[40:]], status=status, content_type="text/event-stream")
    return Response(json.dumps(body), status=status, content_type="application/json")


def error(message: str, code: int = -32001) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(404, error("Session not found"), id="404 with an error"),
        pytest.param(404, "no such session", id="404 with a text"),
        pytest.param(404, "", id="404 with nothing"),
        pytest.param(400, error("Bad Request: No valid session ID provided", -32000), id="400 about the session"),
        pytest.param(400, error("Bad Request: Server not initialized", -32000), id="400 about the handshake"),
        pytest.param(400, "Invalid or missing session ID", id="400 with a text"),
        pytest.param(410, error("Session gone"), id="410 with an error"),
        pytest.param(410, "", id="410 with nothing"),
        pytest.param(200, error("Session not found"), id="200 with an error"),
        pytest.param(200, error("Your session has expired", -32000), id="200 about an expired session"),
        pytest.param(200, error("The session is no longer valid"), id="200 about a session not valid"),
        pytest.param(200, [error("Session not found")], id="200 with an error in a stream"),
        pytest.param(409, error("Unknown session", -32600), id="409 about the session"),
        pytest.param(500, error("Internal error: session not found", -32603), id="500 about the session"),
        pytest.param(422, "Unexpected message, expect initialize request", id="422 with a text"),
        pytest.param(422, {"detail": "Session has expired"}, id="422 with other JSON"),
        pytest.param(419, "session expired", id="419 with a text"),
    ],
)
def test_an_expired_session_is_renewed_and_the_call_repeated(toolbox, condition, raw_server, status, body):
    calls = 0

    def answer(request):
        nonlocal calls
        calls += 1
        known = request.headers.get("Mcp-Session-Id") == raw_server.session
        if calls % 2 == 0 or not known:
            return gone(request, status, body)
        return raw_server.text(f"as {raw_server.session}")

    raw_server.answers["tools/call"] = answer
    results, news = called(toolbox, condition, remote(raw_server.url), times=3)
    assert results == ["as s1", "as s2", "as s3"]
    assert news == [RENEWED, RENEWED]
    assert raw_server.seen.count("notifications/initialized") == 3


def test_calls_that_find_their_session_expired_together_renew_it_once(toolbox, condition, raw_server):
    def answer(request):
        if request.headers.get("Mcp-Session-Id") == "s1":
            return gone(request, 404, error("Session not found"))
        return raw_server.text("fine")

    raw_server.answers["tools/call"] = answer
    results, news = called(toolbox, condition, remote(raw_server.url), times=8, at_once=True)
    assert (results, news) == (["fine"] * 8, [RENEWED])


def test_a_session_that_expires_again_at_once_is_a_fault(toolbox, condition, raw_server):
    raw_server.answers["tools/call"] = lambda request: gone(request, 404, error("Session not found"))
    (fault,), news = called(toolbox, condition, remote(raw_server.url))
    assert (fault.kind, news, raw_server.seen.count("tools/call")) == ("mcp_http_error", [RENEWED], 2)


def test_a_server_that_does_not_open_another_session_says_why(toolbox, condition, raw_server):
    def answer(request):
        raw_server.answers["initialize"] = lambda request: Response(status=503)
        return gone(request, 404, error("Session not found"))

    raw_server.answers["tools/call"] = answer
    (fault,), news = called(toolbox, condition, remote(raw_server.url))
    assert (fault.kind, fault.retriable, "HTTP 503" in fault.message, news) == ("mcp_http_error", True, True, [])


@pytest.mark.parametrize("status", [200, 400, 404, 500])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32000, "quota used up, try tomorrow"),
        (-32000, "Connection closed"),
        (-32001, "Request timed out"),
        (-32602, "no such book"),
        (-32601, "Not Found"),
        (-32603, "Server returned an error response"),
    ],
)
def test_a_servers_own_error_is_its_answer(toolbox, condition, raw_server, status, code, message):
    expects_retry = status == 404 and code != -32601

    def answer(request):
        return raw_server.reply(request, {"error": {"code": code, "message": message}}, status=status)

    raw_server.answers["tools/call"] = answer
    results, news = called(toolbox, condition, remote(raw_server.url))
    if expects_retry:  # the session may have expired
        assert (results[0].kind, news) == ("mcp_http_error", [RENEWED])
    else:
        assert (results, news) == ([message], [])


def test_an_error_about_a_session_that_a_new_one_does_not_end_is_the_tool_s_own(toolbox, condition, raw_server):
    message = "The session of this user has expired"
    raw_server.answers["tools/call"] = lambda request: gone(request, 200, {**error(message), "id": request.json["id"]})
    results, news = called(toolbox, condition, remote(raw_server.url))
    assert (results, news, raw_server.seen.count("tools/call")) == ([message], [RENEWED], 2)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (402, "Your trial session has expired; pay"),
        (409, "tutoring session 12 is closed"),
        (422, "a session of chess; " + "it was long, " * 30 + "the game is closed"),
    ],
)
def test_a_text_about_another_session_opens_none_again(toolbox, condition, raw_server, status, text):
    raw_server.answers["tools/call"] = lambda request: gone(request, status, text)
    (fault,), news = called(toolbox, condition, remote(raw_server.url))
    assert (fault.kind, news, raw_server.seen.count("tools/call")) == ("mcp_http_error", [], 1)


@pytest.mark.parametrize("code", [-32000, -32001, -32042, -32603])
def test_over_stdio_a_servers_own_error_is_its_answer(toolbox, condition, code):
    reply = f'{{"error": {{"code": {code}, "message": "Connection closed"}}}}'
    results, _ = called(toolbox, condition, stdio(reply), times=2)
    assert results == ["Connection closed"] * 2


def test_a_closed_connection_is_none_of_its_answers(toolbox, condition):
    (fault,), _ = called(toolbox, condition, stdio("exit"))
    assert (fault.kind, fault.retriable) == ("mcp_server_down", True)


STDIO = """
import json, os, sys
print(42, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, key = message["method"], message.get("id")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    if key is None:
        continue
    elif method == "initialize":
        reply = {"result": about}
    elif method == "tools/list":
        reply = {"result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "nextCursor": ""}}
    elif method == "tools/call":
        if sys.argv[1] == "exit":
            os._exit(3)
        reply = json.loads(sys.argv[1])
    else:
        reply = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": key, **reply}), flush=True)
"""


def stdio(reply: str) -> McpServer:
    return McpServer(name="r", type="stdio", command=sys.executable, args=("-c", STDIO, reply), scope="run")


@pytest.mark.parametrize(
    ("response", "came"),
    [
        pytest.param({"status": 200}, "HTTP 200 and nothing", id="empty 200"),
        pytest.param({"status": 202}, "HTTP 202 and nothing", id="202"),
        pytest.param({"status": 204}, "HTTP 204 and nothing", id="204"),
        pytest.param(
            {"response": "<h1>Back soon</h1>", "content_type": "text/html; charset=utf-8"},
            "HTTP 200 and text/html",
            id="a proxy's page",
        ),
        pytest.param({"response": " \n", "content_type": "application/json"}, "HTTP 200 and app", id="empty JSON"),
        pytest.param({"response": "{}", "content_type": "application/json"}, "HTTP 200 and app", id="no message"),
        pytest.param(
            {"response": '{"jsonrpc": "2.0"}', "status": 202, "content_type": "application/json"}, "HTTP 202", id="202+"
        ),
        pytest.param(
            {"response": '{"error": {"code": 1}}', "status": 500, "content_type": "application/json"}, "500", id="500"
        ),
        pytest.param({"response": "Bad gateway", "status": 502}, "HTTP 502", id="502"),
    ],
)
def test_a_reply_that_is_no_message_is_a_failed_call_and_the_session_goes_on(
    toolbox, condition, raw_server, response, came
):
    def answer(request):
        if raw_server.seen.count("tools/call") == 1:
            made = Response(**response)
            if "content_type" not in response:
                made.headers.pop("Content-Type", None)
            return made
        return raw_server.text("fine")

    raw_server.answers["tools/call"] = answer
    (fault, following), _ = called(toolbox, condition, remote(raw_server.url), times=2)
    assert (fault.kind, fault.retriable, following) == ("mcp_http_error", True, "fine")
    assert came in fault.message


def test_a_rate_limit_is_one_whatever_its_body_says(toolbox, condition, raw_server):
    def answer(request):
        content = {"error": {"code": -32000, "message": "slow down"}}
        return raw_server.reply(request, content, status=429, headers={"Retry-After": "2"})

    raw_server.answers["tools/call"] = answer
    (fault,), _ = called(toolbox, condition, remote(raw_server.url))
    assert (fault.kind, fault.retry_after) == ("mcp_rate_limit", 2.0)
