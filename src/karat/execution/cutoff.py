"""Foreign code with an end: it may hang, refuse to be cut off, or try to end the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from karat.errors import described

__all__ = ["GRACE_SECONDS", "Contained", "GivenUpError", "ended", "undisturbed"]

_T = TypeVar("_T")
GRACE_SECONDS = 5.0
"""How long what was cut off may take to end; then it is given up."""


class GivenUpError(Exception):
    """What was cut off went on; it is left where it stood."""


class Contained(Generic[_T]):
    """`await Contained(work, limit)`: the result of foreign code, run within the task that waits for it.

    In the same task, because a task of its own costs two turns of the event loop, which a
    crowd of short attempts feels; yet the wait can be ended while the work goes on. Raises
    TimeoutError when the limit, which may be moved meanwhile, was reached; GivenUpError when
    the work goes on GRACE_SECONDS after that; RuntimeError in place of a SystemExit or a GeneratorExit, which
    mean something else to who waits. Context variables that the work sets are gone afterwards.
    """

    def __init__(self, work: Coroutine[Any, Any, _T], limit: asyncio.Timeout) -> None:
        self._work, self._limit = _limited(work, limit), limit
        self._context = copy_context()
        self._behind: asyncio.Future[Any] | None = None  # what the work waits for, where it may refuse to be cancelled
        self._grace: asyncio.TimerHandle | None = None
        self._given_up = False

    def __await__(self) -> Generator[Any, None, _T]:
        return self  # type: ignore[return-value]  # it keeps the generator's protocol: __next__, send, throw, close

    def __iter__(self) -> Contained[_T]:
        return self

    def __next__(self) -> Any:
        return self._step(self._work.send, None)

    def send(self, value: Any) -> Any:
        return self._step(self._work.send, value)

    def throw(self, kind: Any, value: BaseException | None = None, trace: Any = None) -> Any:
        """What the task raises where it waits: a cancellation, or the exception of what it waited for."""
        error = kind if isinstance(kind, BaseException) else value if value is not None else kind()
        if self._given_up:
            self.close()
            raise GivenUpError from None
        if isinstance(error, asyncio.CancelledError):
            if self._grace is None and self._limit.expired():
                task, loop = asyncio.current_task(), asyncio.get_running_loop()
                assert task is not None
                self._grace = loop.call_later(GRACE_SECONDS, self._give_up, task)
            if self._behind is not None and self._behind.cancel():
                return _gate(self._behind)
        return self._step(self._work.throw, error)

    def close(self) -> None:
        """Ends the work where it stands; what it does on its way out is nobody's any more."""
        try:
            self._context.run(self._work.close)
        except (RuntimeError, StopIteration):
            return  # it refuses even that

    def _step(self, resume: Callable[[Any], Any], what: Any) -> Any:
        self._behind, over = None, True
        try:
            waits_for = self._context.run(resume, what)
            over = False
        except (GeneratorExit, SystemExit) as error:
            raise RuntimeError(described(error)) from error  # raised by the work: nobody closes it here
        finally:
            if over and self._grace is not None:
                self._grace.cancel()
        if waits_for is None or type(waits_for) is asyncio.Future:
            return waits_for
        # A task, or a gathering of some, is done when it likes; only a plain future ends when it is cancelled.
        self._behind = waits_for
        return _gate(waits_for)

    def _give_up(self, task: asyncio.Task[Any]) -> None:
        self._given_up = True
        task.cancel()


async def _limited(work: Coroutine[Any, Any, _T], limit: asyncio.Timeout) -> _T:
    async with limit:
        return await work


def _gate(behind: asyncio.Future[Any]) -> Any:
    """A future that opens when `behind` is done, as a task waits for it; cancelling it leaves `behind` alone."""
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def opened(_: object) -> None:
        if not gate.done():
            gate.set_result(None)

    behind.add_done_callback(opened)
    return next(gate.__await__())


async def undisturbed() -> None:
    """Takes back what foreign code left behind that cancelled the task it ran in."""
    task = asyncio.current_task()
    if task is None or not task.cancelling():
        return
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # where the cancellation was asked for and did not arrive yet
    while task.cancelling():
        task.uncancel()


async def ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancels what still goes on and waits for it, but not for ever."""
    going_on = [task for task in tasks if not task.done()]
    for task in going_on:
        task.cancel()
    if not going_on:
        return
    _, refusing = await asyncio.wait(going_on, timeout=GRACE_SECONDS)
    for task in refusing:
        # Or `asyncio.run` would wait for it at its end, for ever. Documented under "Extending asyncio".
        asyncio._unregister_task(task)  # noqa: SLF001 -- there is no other way, and it is documented
