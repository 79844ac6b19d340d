"""Connections without the cookie neither shut the owner out nor last; the owner's are left alone."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from tests.analysis.journals import Script, table
from tests.karat_viewer.serving import Viewer
from tests.karat_viewer.test_sharing import asked_until

from karat.records import Reply
from karat_viewer.connections import MOST_UNAUTHENTICATED, LimitedConnection

HALF_OPEN = 200
HEAD = b"GET / HTTP/1.1\r\nHost: "


@pytest.fixture
def sockets():
    with ExitStack() as opened:
        yield opened


def connect(sockets: ExitStack, viewer: Viewer) -> socket.socket:
    return sockets.enter_context(socket.create_connection(("127.0.0.1", viewer.port), timeout=120))


def half_open(sockets: ExitStack, viewer: Viewer) -> list[socket.socket]:
    """Of three, one sends nothing, one a part of a head, and one this after a request with a wrong cookie."""
    wrong = f"GET / HTTP/1.1\r\nHost: {viewer.home}\r\nCookie: karat_{viewer.port}=x\r\n\r\n".encode()
    opened = [connect(sockets, viewer) for _ in range(HALF_OPEN)]
    for number, one in enumerate(opened):
        with suppress(OSError):  # closed by then, as there are too many
            one.sendall((b"", HEAD, wrong + HEAD)[number % 3])
    return opened


def is_closed(one: socket.socket, drop: bytes = b"") -> bool:
    """Whether the server has closed it. `drop` is sent first: one more piece of a head that never ends."""
    one.settimeout(0.001)
    try:
        one.sendall(drop)
        while one.recv(65_536):
            pass
    except TimeoutError:
        return False
    except OSError:  # reset, or broken while it was written to
        pass
    return True


def test_half_open_connections_do_not_keep_the_owner_out(tmp_path, sockets):
    table(tmp_path / "run", {"baseline": [[3.0]]})
    with Viewer(tmp_path) as viewer:
        opened = half_open(sockets, viewer)
        viewer.enter()
        assert viewer.get("/").status == 200
        opened += half_open(sockets, viewer)
        asked_until(viewer, "/runs/run/samples", "Question 0?")
        assert viewer.stop(signal.SIGTERM) == 0  # those that are left do not hold it up
        assert not any("Traceback" in line for line in viewer.errors)
        assert all(is_closed(one) for one in opened)


def large_text(folder) -> None:
    script = Script(folder, samples=1, conditions=("baseline",))
    script.answer(0, "baseline", reply=Reply(text="x" * 13_000_000))
    script.score(0, "baseline", value=3)
    script.end()


def kept_alive(sockets: ExitStack, viewer: Viewer) -> http.client.HTTPConnection:
    """A connection that the server has answered on, and left open."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=120)
    sockets.callback(connection.close)
    connection.request("GET", "/", headers={"host": viewer.home, "cookie": viewer.cookie})
    answer = connection.getresponse()
    assert (answer.status, bool(answer.read())) == (200, True)
    return connection


@pytest.mark.slow
def test_heads_have_a_time_limit_and_the_owners_other_connections_go_on(tmp_path, sockets):
    large_text(tmp_path / "run")
    with Viewer(tmp_path) as viewer:
        page = asked_until(viewer.enter(), "/runs/run/samples/1", "/text/")
        [path] = set(re.findall(r'"(/runs/run/text/[^"]+)"', page))
        download = connect(sockets, viewer)
        download.sendall(f"GET {path} HTTP/1.1\r\nHost: {viewer.home}\r\nCookie: {viewer.cookie}\r\n\r\n".encode())
        assert download.recv(12) == b"HTTP/1.1 200"  # and no more for now
        unfinished, used = (kept_alive(sockets, viewer) for _ in range(2))
        unfinished.sock.sendall(HEAD)
        opened, first = [unfinished.sock, *half_open(sockets, viewer)], used.sock
        end = time.monotonic() + 300
        while opened:
            assert time.monotonic() < end, f"{len(opened)} are still open"
            opened = [one for one in opened if not is_closed(one, b"x" if one is unfinished.sock else b"")]
            used.request("GET", "/", headers={"host": viewer.home, "cookie": viewer.cookie})
            answer = used.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
            assert used.sock is first  # http.client would have opened another one
            time.sleep(0.05)
        with download.makefile("rb") as rest:
            assert rest.readline().endswith(b"\r\n")
            headers = http.client.parse_headers(rest)
            assert headers["content-length"] == "13000000"
            assert rest.read(13_000_000) == b"x" * 13_000_000


class WithoutDeadline(LimitedConnection):
    head_seconds = 86_400.0


@contextmanager
def serving(connection: type[LimitedConnection]):
    """The address of a server that takes every request for the owner's."""

    async def app(scope, receive, send):
        scope["state"]["authenticate"]()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"in"})

    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            app, http=connection, lifespan="off", ws="none", log_config=None, timeout_keep_alive=86_400
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join(timeout=120)
    assert not thread.is_alive()


def last_of_many(sockets: ExitStack, address: tuple[str, int]) -> list[socket.socket]:
    """Those that may stay of many connections, once the others are closed."""
    opened = [sockets.enter_context(socket.create_connection(address, timeout=120)) for _ in range(HALF_OPEN)]
    end = time.monotonic() + 120
    while not all(is_closed(one) for one in opened[:-MOST_UNAUTHENTICATED]):
        assert time.monotonic() < end
    return opened[-MOST_UNAUTHENTICATED:]


def test_too_many_without_the_cookie_make_room_the_oldest_first(sockets):
    with serving(WithoutDeadline) as address:
        owners = last_of_many(sockets, address)
        for one in owners:
            one.settimeout(120)
            one.sendall(HEAD + b"x\r\n\r\n")
            assert one.recv(12) == b"HTTP/1.1 200"
        strangers = last_of_many(sockets, address)
        assert not any(is_closed(one) for one in [*owners, *strangers])
