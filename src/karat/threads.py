"""Synchronous functions, each on a daemon thread: a call that hangs cannot hold the run, nor its
end.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from karat.errors import AgentFault, described

MOST_THREADS = 1000

_Work = tuple[Callable[[], object], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Threads:
    """As many threads as calls are open at once, kept for the next call.

    A call that timed out keeps its thread until the function returns; then the thread is reused.
    asyncio's default executor is not used: it has few threads, and a hung one would delay the end
    of the process.
    """

    def __init__(self, *, most: int = MOST_THREADS) -> None:
        self._most = most
        self._idle: list[queue.SimpleQueue[_Work | None]] = []
        self._alive = 0
        self._closed = False
        self._process = os.getpid()

    async def call(self, function: Callable[..., Any], *arguments: object, **named: object) -> Any:
        """What the function returns or raises; the caller's context variables are its own too.

        Raises AgentFault if too many calls hang.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()
        inbox: queue.SimpleQueue[_Work | None]
        if self._idle:
            inbox = self._idle.pop()
        else:
            if self._alive >= self._most:
                message = (
                    f"{self._most} calls hang, each on its own thread; make the function async, or "
                    f"give it a timeout"
                )
                raise AgentFault("threads_exhausted", message)

            self._alive += 1
            inbox = queue.SimpleQueue()
            threading.Thread(
                target=self._serve, args=(inbox,), name="karat-call", daemon=True
            ).start()

        inbox.put((lambda: context.run(function, *arguments, **named), future, loop))
        return await future

    def close(self) -> None:
        """Ends the threads that wait; one that hangs ends with its call, or with the process."""
        self._closed = True
        for inbox in self._idle:
            inbox.put(None)
        self._idle.clear()

    def _serve(self, inbox: queue.SimpleQueue[_Work | None]) -> None:
        while True:
            item = inbox.get()
            if item is None:
                return
            work, future, loop = item
            value: object = None
            problem: BaseException | None = None
            try:
                value = work()
            except BaseException as error:  # noqa: BLE001 -- raised for the caller of the function
                problem = error

            if os.getpid() != self._process:
                end_child(problem)
            try:
                loop.call_soon_threadsafe(self._finish, inbox, future, value, problem)
            except RuntimeError:
                return  # the loop was closed meanwhile: no caller is left

    def _finish(
        self,
        inbox: queue.SimpleQueue[_Work | None],
        future: asyncio.Future[object],
        value: object,
        problem: BaseException | None,
    ) -> None:
        if self._closed:
            inbox.put(None)
        else:
            self._idle.append(inbox)

        if future.cancelled():
            return
        if problem is None:
            future.set_result(value)
        elif not isinstance(problem, (KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration)):
            future.set_exception(problem)
        else:
            # Awaiting a future that raises one of these would end the event loop, or look like an
            # end of iteration.
            stopped = RuntimeError(described(problem))
            stopped.__cause__ = problem
            future.set_exception(stopped)


def end_child(problem: BaseException | None) -> None:
    """Ends this process, which foreign code has forked and which returns into karat: karat goes on
    only in the process that called that code.
    """
    code = problem.code if isinstance(problem, SystemExit) else None
    os._exit(
        code
        if isinstance(code, int)
        else int(problem is not None and not isinstance(problem, SystemExit))
    )
