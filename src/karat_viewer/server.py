"""The server: listens, serves until a signal, and ends cleanly."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat.errors import BadOption, MissingExtra

if TYPE_CHECKING:
    import uvicorn


# collecting millions of small values without cycles took an eighth of indexing time
_COLLECTED = (50_000, 20, 20)


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where the viewer listens."""

    url: str  # with the token: works once
    host: str
    port: int


def serve(
    root: Path,
    *,
    only: Iterable[str] = (),
    host: str = "127.0.0.1",
    port: int = 0,
    remote: bool = False,
    reviewer: str = "",
    ready: Callable[[Listening], None] = lambda _: None,
) -> None:
    """Serves the runs in `root`, or `only` these, until Ctrl-C or SIGTERM.

    `port` 0: any free one. `ready` is called with the address once the server listens. Raises
    MissingExtra without the extra `view`, and BadOption if it cannot listen at the address, or if
    that is not a loopback address and `remote` is false.
    """
    try:
        import starlette  # noqa: F401 -- looked for before a port is taken
        import uvicorn  # noqa: F401 -- as above
    except ImportError as error:
        raise MissingExtra("view", "the viewer") from error

    from karat_viewer.site_server import refuse_reachable, site_server  # they need Starlette

    if not remote:
        refuse_reachable(host)
    listener = _listener(host, port)
    with (
        listener,
        ThreadPoolExecutor(max_workers=3, thread_name_prefix="karat-view") as pool,
    ):
        port = listener.getsockname()[1]
        served = site_server(root, only=only, pool=pool, host=host, port=port, reviewer=reviewer)
        gc.freeze()
        gc.set_threshold(*_COLLECTED)
        try:
            with _ended_by_signals(served.server):
                ready(Listening(url=served.url, host=host, port=port))
                logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
                served.server.run(sockets=[listener])
        finally:
            served.library.closing.set()


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host,
            port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        if port:
            place = f"{host} port {port}"
        else:
            place = host

        option = "--port" if port else "--host"
        # `create_server` adds the address to the text, as a Python tuple; an unknown name has no
        # errno.
        if error.errno and error.errno > 0:
            why = os.strerror(error.errno)
        else:
            why = error.strerror or str(error)

        raise BadOption(option, f"cannot listen at {place}: {why}") from error


@contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the server, also where they come before it runs. Python may lose the
    KeyboardInterrupt of a signal that comes while modules are imported.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
