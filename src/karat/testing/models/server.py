"""The server: runs on a thread of its own and listens on this machine only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from karat.errors import BadOption
from karat.testing.models.request import Request
from karat.testing.models.router import Connection, ConnectionEnded, Router, ScriptPlayer
from karat.testing.models.script import Hook, Script, read_script

_LONGEST_HEAD = 256 * 1024  # bytes


class ModelServer:
    """A running server. `requests` grows while it runs."""

    def __init__(self, port: int, router: Router) -> None:
        self._port = port
        self._router = router

    def __repr__(self) -> str:
        return f"ModelServer({self.anthropic_url!r}, asked={self.asked})"

    @property
    def openai_url(self) -> str:
        """The base URL for clients of OpenAI."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for clients of Anthropic."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def gemini_url(self) -> str:
        """The base URL for clients of Gemini."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def asked(self) -> int:
        """How many requests there were so far."""
        return self._router.asked

    @property
    def requests(self) -> list[Request]:
        """The requests to models so far, in order of arrival, including token counts."""
        return list(self._router.requests)

    @property
    def others(self) -> list[str]:
        """All other requests, e.g. `HEAD /`."""
        return list(self._router.others)

    @property
    def most_busy(self) -> int:
        """The largest number of requests answered at the same time."""
        return self._router.most_busy


@contextmanager
def serve(
    script: Script | Sequence[object] | Mapping[str, object] | Path | str | Hook | None = None,
    *,
    port: int = 0,
    log: Path | str | None = None,
    keep: int | None = None,
) -> Iterator[ModelServer]:
    """A server that runs during the block. `port` 0: a free one. `log` gets a line of JSON per
    request.

    `keep` is how many of the newest requests are kept in memory; None keeps all.

    If a script in Python raises, its request gets no answer and the block raises the exception at
    its end.
    """
    hook: Hook | None = script if callable(script) else None
    player = ScriptPlayer(Script() if callable(script) else read_script(script), hook)
    with ExitStack() as closing:
        file = None
        if log is not None:
            file = closing.enter_context(Path(log).open("a", encoding="utf-8"))
        router = Router(player, log=file, keep=keep)
        thread = _Thread(router.serve, port)
        thread.start()
        try:
            yield ModelServer(thread.port(), router)
        finally:
            thread.stop()

    if thread.crashes:
        raise thread.crashes[0]


class _Thread(threading.Thread):
    """An event loop with a listening socket."""

    def __init__(self, answer: Callable[[Connection], Awaitable[None]], port: int) -> None:
        super().__init__(name="karat model server", daemon=True)
        self._answer = answer
        self._wanted = port
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port = 0
        self._ending: asyncio.Event | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._refused: OSError | None = None
        self.crashes: list[BaseException] = []

    def port(self) -> int:
        """The port it listens on, once it does. Raises BadOption if the port is taken."""
        self._ready.wait()
        if self._refused is not None:
            raise BadOption(
                "port", f"{self._wanted} cannot be used: {self._refused.strerror}"
            ) from self._refused

        return self._port

    def stop(self) -> None:
        if self._loop is not None and self._ending is not None:
            self._loop.call_soon_threadsafe(self._ending.set)
        self.join()

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._refused = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._ending = asyncio.Event()
        server = await asyncio.start_server(
            self._begin, "127.0.0.1", self._wanted, limit=_LONGEST_HEAD, backlog=1024
        )
        self._port = server.sockets[0].getsockname()[1]
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        await self._ending.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._end)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        try:
            while True:
                await self._answer(connection)
        except ConnectionEnded:
            return
        finally:
            connection.close()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        if task.cancelled():
            error = None
        else:
            error = task.exception()

        if error is not None:
            self.crashes.append(error)
