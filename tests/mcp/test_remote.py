"""Streamable HTTP and SSE, against real servers on this machine."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx2
import pytest
from werkzeug import Response

from karat.errors import InfrastructureFault
from karat.mcp.faults import Evidence
from karat.mcp.faults import fault_of as reason_of
from karat.mcp.remote import is_loopback
from karat.records import McpServer
from karat.redact import Redactor
from karat.testing.mcp_server import serving

CANARY = "c4nary-in-a-header"


def remote(kind: str, url: str, **fields) -> McpServer:
    return McpServer(name="r", type=kind, url=url, **fields)


async def fault_of(toolbox, condition, server, **secrets) -> InfrastructureFault:
    with pytest.raises(InfrastructureFault) as caught:
        async with asyncio.timeout(20), toolbox(server, **secrets).open(condition(server)):
            raise AssertionError("opened")
    return caught.value


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["http", "sse"])
def test_calls_work_and_headers_reach_the_server(toolbox, condition, kind):
    async def story(url):
        server = remote(kind, url, headers={"Authorization": f"Bearer {CANARY}"})
        async with toolbox(server).open(condition(server)) as tools:
            calls = await asyncio.gather(*(tools.call("r", "echo", {"text": str(number)}) for number in range(10)))
            failed = await tools.call("r", "fail", {})
            return [call.result for call in calls], failed.error, (await tools.call("r", "headers", {})).result

    with serving(kind, "--require-header", f"authorization: Bearer {CANARY}") as url:
        results, error, headers = asyncio.run(story(url))
    assert results == [str(number) for number in range(10)]
    assert error == "Error executing tool fail: out of order"
    assert json.loads(headers or "")["authorization"] == f"Bearer {CANARY}"


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_shared_session_serves_many_trials(toolbox, condition, shared_server, kind):
    async def one(box, server, number):
        async with box.open(condition(server)) as tools:
            return (await tools.call("r", "echo", {"text": str(number)})).result

    async def story(url):
        server = remote(kind, url, scope="run")
        async with toolbox(server) as box:
            return await asyncio.gather(*(one(box, server, number) for number in range(10)))

    assert asyncio.run(story(shared_server(kind))) == [str(number) for number in range(10)]


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["http", "sse"])
@pytest.mark.parametrize(
    ("options", "fault", "message", "retriable"),
    [
        pytest.param(("--status=401",), "mcp_unauthorized", "HTTP 401: check its headers", False, id="401"),
        pytest.param(("--status=429", "--retry-after=7"), "mcp_rate_limit", "HTTP 429", True, id="429"),
        pytest.param(("--status=500",), "mcp_http_error", "answered with HTTP 500", True, id="500"),
        pytest.param(("--status=404",), "mcp_http_error", "HTTP 404: is the path right?", False, id="404"),
    ],
)
def test_a_status_is_told_and_the_headers_value_is_not(toolbox, condition, kind, options, fault, message, retriable):
    with serving(kind, *options) as url:
        server = remote(kind, f"{url}?key={CANARY}", headers={"X-Key": CANARY})
        found = asyncio.run(fault_of(toolbox, condition, server, KEY=CANARY))
    assert (found.kind, found.retriable) == (fault, retriable)
    assert found.message.startswith(f"MCP server 'r' ({url}?key=${{KEY}}) ")
    assert message in found.message
    assert found.retry_after == (7.0 if fault == "mcp_rate_limit" else None)
    assert CANARY not in str(found)


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_redirect_to_another_origin_is_not_followed_and_named(toolbox, condition, shared_server, kind):
    elsewhere = shared_server(kind)
    with serving(kind, "--status=307", f"--location={elsewhere}?token=abc") as url:
        found = asyncio.run(fault_of(toolbox, condition, remote(kind, url, headers={"X-Key": CANARY})))
    assert (found.kind, found.retriable) == ("mcp_redirect", False)
    assert f"redirects to {elsewhere}, which is not followed" in found.message


def test_a_redirect_within_the_origin_is_followed_with_its_headers(toolbox, condition, shared_server):
    async def story(url):
        server = remote("http", f"{url}/", headers={"X-Key": CANARY})
        async with toolbox(server).open(condition(server)) as tools:
            return (await tools.call("r", "headers", {})).result

    assert json.loads(asyncio.run(story(shared_server("http"))) or "")["x-key"] == CANARY


def test_a_rate_limit_in_the_middle_is_a_fault_of_that_call_alone(toolbox, condition, httpserver):
    """The other trials of a shared session go on."""
    listing = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    asked = 0

    def answer(request):
        nonlocal asked
        message = request.json
        if message["method"] == "initialize":
            info = {"name": "s", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        elif message["method"] == "tools/list":
            result = listing
        elif message["method"] == "tools/call":
            asked += 1
            if asked == 1:
                return Response(status=429, headers={"Retry-After": "3"})
            result = {"content": [{"type": "text", "text": "fine"}]}
        elif "id" in message:
            return Response(status=404)
        else:
            return Response(status=202)
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return Response(body, content_type="application/json")

    httpserver.expect_request("/mcp", method="POST").respond_with_handler(answer)
    httpserver.expect_request("/mcp").respond_with_data(status=405)

    async def story():
        server = remote("http", httpserver.url_for("/mcp"), scope="run")
        async with toolbox(server) as box, box.open(condition(server)) as tools:
            with pytest.raises(InfrastructureFault) as caught:
                await tools.call("r", "t", {})
            return caught.value, (await tools.call("r", "t", {})).result

    fault, after = asyncio.run(story())
    assert (fault.kind, fault.retry_after, after) == ("mcp_rate_limit", 3.0, "fine")


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_nobody_there(toolbox, condition, kind):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = asyncio.run(fault_of(toolbox, condition, remote(kind, f"http://127.0.0.1:{port}/mcp")))
    assert (found.kind, found.retriable) == ("mcp_unreachable", True)
    assert found.message.startswith(f"MCP server 'r' (http://127.0.0.1:{port}/mcp) cannot be reached: ")


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_url_that_is_none(toolbox, condition, kind):
    found = asyncio.run(fault_of(toolbox, condition, remote(kind, "localhost:8080/mcp")))
    assert (found.kind, found.retriable) == ("mcp_unreachable", False)


@pytest.mark.parametrize("value", ["Bearer key\n", "Bearer k\u00e9y"])
def test_a_header_that_cannot_be_sent_is_named_at_once(toolbox, condition, raw_server, value):
    server = remote("http", raw_server.url, headers={"Authorization": value})
    found = asyncio.run(fault_of(toolbox, condition, server))
    assert (found.kind, found.retriable) == ("mcp_unreachable", False)
    assert "has headers that cannot be sent" in found.message


def test_a_fault_of_the_connection_is_not_called_one_of_the_headers():
    closed = httpx2.LocalProtocolError("Invalid input ConnectionInputs.SEND_HEADERS in state ConnectionState.CLOSED")
    no_text = UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
    evidence = Evidence()
    by_http, by_stdio = remote("http", "http://localhost/mcp"), McpServer(name="r", type="stdio", command="python")
    found = reason_of(by_http, closed, evidence, ready=False, redact=Redactor({}))
    assert (found.kind, found.retriable) == ("mcp_unreachable", True)
    found = reason_of(by_stdio, no_text, evidence, ready=False, redact=Redactor({}))
    assert found.kind == "mcp_handshake"
    assert "headers" not in found.message


def test_what_a_server_wrote_to_stdout_at_its_start_is_not_told_as_why_it_ended():
    server = McpServer(name="r", type="stdio", command="python")
    evidence = Evidence(exit_code=3, not_mcp="Server running")
    found = reason_of(server, None, evidence, ready=True, redact=Redactor({}))
    assert found.message.endswith(
        "while in use; earlier it wrote to stdout, which is for messages only: 'Server running'"
    )


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_server_that_accepts_and_says_nothing_is_given_up(toolbox, condition, kind):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = remote(kind, f"http://127.0.0.1:{silent.getsockname()[1]}/mcp", init_timeout_seconds=0.5)
        started = time.monotonic()
        found = asyncio.run(fault_of(toolbox, condition, server))
    assert found.kind == "mcp_init_timeout"
    assert time.monotonic() - started < 59  # what is given up without a setting of its own


def test_something_else_behind_the_url_does_not_speak_mcp(toolbox, condition, httpserver):
    httpserver.expect_request("/mcp").respond_with_data("<h1>Welcome</h1>", content_type="text/html")
    found = asyncio.run(fault_of(toolbox, condition, remote("http", httpserver.url_for("/mcp"))))
    assert found.kind == "mcp_handshake"
    assert "text/html" in found.message


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_server_that_goes_away_in_the_middle_is_a_fault_and_is_found_again(toolbox, condition, kind):
    async def story():
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        listening.close()
        first = await asyncio.to_thread(start, kind, port)
        server = remote(kind, f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}", scope="run")
        async with toolbox(server) as box:
            async with box.open(condition(server)) as tools:
                waiting = asyncio.create_task(tools.call("r", "hang", {}))
                await asyncio.sleep(0.3)
                first.kill()
                first.wait()
                with pytest.raises(InfrastructureFault) as caught:
                    async with asyncio.timeout(10):
                        await waiting
                with pytest.raises(InfrastructureFault) as again:
                    async with asyncio.timeout(10):
                        await tools.call("r", "echo", {"text": "x"})
            second = await asyncio.to_thread(start, kind, port)
            try:
                async with box.open(condition(server)) as tools:
                    return caught.value, again.value, (await tools.call("r", "echo", {"text": "back"})).result
            finally:
                second.kill()
                second.wait()

    fault, again, after = asyncio.run(story())
    assert (fault.retriable, again.retriable, after) == (True, True, "back")
    assert {fault.kind, again.kind} <= {"mcp_server_down", "mcp_unreachable"}


def start(kind: str, port: int) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-P", "-m", "karat.testing.mcp_server", "--transport", kind, "--port", str(port)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_large_results(toolbox, condition, shared_server, kind):
    """Streamable HTTP takes what stdio takes; one event of the older SSE transport may have 1 MB (the SDK's bound)."""

    async def story(url):
        server = remote(kind, url)
        async with toolbox(server).open(condition(server)) as tools:
            if kind == "sse":
                with pytest.raises(InfrastructureFault, match="exceeded the 1048576 byte limit"):
                    await tools.call("r", "large", {"megabytes": 2})
                return
            assert len((await tools.call("r", "large", {"megabytes": 9})).result) == 9 * 1024 * 1024
            assert "more than the 10485760" in (await tools.call("r", "large", {"megabytes": 11})).error
            assert (await tools.call("r", "echo", {"text": "still here"})).result == "still here"

    asyncio.run(story(shared_server(kind)))


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_cutting_off_a_trial_is_quick(toolbox, condition, shared_server, kind):
    async def story(url):
        server = remote(kind, url)
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5), toolbox(server).open(condition(server)) as tools:
                await tools.call("r", "hang", {})
        return time.monotonic() - started

    assert asyncio.run(story(shared_server(kind))) < 8


def test_many_slow_calls_of_a_shared_session_do_not_hold_up_the_next_one(toolbox, condition, shared_server):
    async def story(url):
        server = remote("http", url, scope="run")
        async with toolbox(server) as box, box.open(condition(server)) as tools:
            slow = [asyncio.create_task(tools.call("r", "hang", {})) for _ in range(120)]  # httpx2's limit: 100
            next_one = asyncio.create_task(tools.call("r", "echo", {"text": "here"}))
            try:
                return (await next_one).result
            finally:
                for call in slow:
                    call.cancel()
                await asyncio.gather(*slow, return_exceptions=True)

    assert asyncio.run(story(shared_server("http"))) == "here"


@asynccontextmanager
async def between(url, opened, *, drops=b"\0", sent=None):
    """The address of a proxy that keeps a list of its connections, and closes one that sends `drops`."""
    host, _, port = urlsplit(url).netloc.partition(":")

    async def forward(reader, writer):
        opened.append(writer)
        there, back = await asyncio.open_connection(host, int(port))
        await asyncio.gather(_copied(reader, back, writer, drops=drops, sent=sent), _copied(there, writer, back))

    async with await asyncio.start_server(forward, "127.0.0.1", 0) as front:
        yield url.replace(port, str(front.sockets[0].getsockname()[1]))


async def _copied(reader, *writers, drops=b"\0", sent=None):
    try:
        while (piece := await reader.read(65_536)) and drops not in piece:
            if sent is not None:
                sent.append(piece)
            writers[0].write(piece)
            await writers[0].drain()
    except ConnectionError:
        pass
    finally:
        for writer in writers:
            writer.close()


def test_a_connection_that_was_idle_is_not_used_again(toolbox, condition, shared_server):
    """Its server may close it at the same moment."""
    opened: list[object] = []

    async def story(url):
        async with between(url, opened) as front:
            server = remote("http", front, scope="run")
            async with toolbox(server) as box, box.open(condition(server)) as tools:
                await tools.call("r", "echo", {"text": "one"})
                before = len(opened)
                await asyncio.sleep(1.5)
                assert (await tools.call("r", "echo", {"text": "two"})).result == "two"
                return before

    before = asyncio.run(story(shared_server("http")))
    assert len(opened) > before >= 1


def test_a_connection_that_breaks_off_ends_one_call(toolbox, condition, shared_server):
    sent: list[bytes] = []

    async def story(url):
        async with between(url, [], drops=b"drop this", sent=sent) as front:
            server = remote("http", front, scope="run")
            async with toolbox(server) as box, box.open(condition(server)) as tools:
                slow = [asyncio.create_task(tools.call("r", "hang", {"seconds": 1})) for _ in range(5)]
                with pytest.raises(InfrastructureFault) as caught:
                    await tools.call("r", "echo", {"text": "drop this"})
                others = [(await call).result for call in slow]
                return caught.value, others, (await tools.call("r", "echo", {"text": "next"})).result

    fault, others, following = asyncio.run(story(shared_server("http")))
    assert (fault.kind, fault.retriable, "broke off while in use" in str(fault)) == ("mcp_server_down", True, True)
    assert (others, following) == (["here after 1 s"] * 5, "next")
    assert sum(b'"initialize"' in piece or b"server/discover" in piece for piece in sent) == 1


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:8080/mcp", True),
        ("http://api.localhost/", True),
        ("http://127.0.0.2/", True),
        ("http://[::1]:8080/", True),
        ("https://example.org/mcp", False),
        ("http://10.0.0.1/", False),
        ("http://127.0.0.1.example.org/", False),
    ],
)
def test_the_environments_proxies_are_not_asked_for_this_machine(url, here):
    assert is_loopback(url) is here
