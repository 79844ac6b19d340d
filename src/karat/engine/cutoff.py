"""Foreign code in a task of its own, with an end: it may hang, refuse to be cut off, or try to end the process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

__all__ = ["GRACE_SECONDS", "contained", "ended", "in_time"]

_T = TypeVar("_T")
GRACE_SECONDS = 5.0
"""How long what was cut off may take to end; then it is given up."""


async def contained(work: Coroutine[Any, Any, _T], limit: asyncio.Timeout) -> _T:
    """`work` within its limit; a SystemExit, which would end the process with the agent's code, is an error."""
    try:
        async with limit:
            return await work
    except SystemExit as error:
        raise RuntimeError(f"SystemExit: {error.code}") from error


async def in_time(task: asyncio.Task[Any], limit: asyncio.Timeout) -> bool:
    """Waits for a task that carries its own limit; False when it goes on long after it was cut off.

    The limit may be moved meanwhile. Cancelling this wait cancels the task too.
    """
    clock = asyncio.get_running_loop().time
    try:
        while not task.done():
            when = limit.when()
            left = 0.0 if when is None else max(0.0, when - clock())
            await asyncio.wait({task}, timeout=left + GRACE_SECONDS)
            if not task.done() and limit.expired():
                break
    finally:
        await ended([task])
    return task.done()


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
