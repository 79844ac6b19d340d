"""An event loop that ends with its work, whatever agents and scorers have left running in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from karat.execution.foreign_code import GRACE_SECONDS, abandon
from karat.threads import MOST_THREADS

_T = TypeVar("_T")


def run_in_own_loop(
    work: Coroutine[object, object, _T], *, grace_seconds: float = GRACE_SECONDS
) -> _T:
    """As `asyncio.run`, which would wait for tasks that refuse to end, and for functions given to
    `to_thread`.
    """
    return asyncio.run(_ending(work, grace_seconds))


async def _ending(work: Coroutine[object, object, _T], grace_seconds: float) -> _T:
    loop = asyncio.get_running_loop()
    # asyncio's own has few: hung calls would stop all others
    threads = ThreadPoolExecutor(MOST_THREADS)
    loop.set_default_executor(threads)
    try:
        return await work
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        loop.set_default_executor(ThreadPoolExecutor(1))  # this one `asyncio.run` may wait for
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=grace_seconds)
        for task in left:
            if not task.done():
                abandon(task)
