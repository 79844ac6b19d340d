"""The event loop of a run."""

from __future__ import annotations

import asyncio
import threading

from karat.execution import run_in_own_loop


def test_calls_that_hang_leave_threads_for_others() -> None:
    """More than asyncio gives a loop by itself: all of these wait until the last one is there."""
    calls = 50
    together = threading.Barrier(calls)

    async def work() -> set[str]:
        async with asyncio.timeout(30):
            waiting = [asyncio.to_thread(together.wait, 30) for _ in range(calls)]
            return {"there" for place in await asyncio.gather(*waiting) if place < calls}

    assert run_in_own_loop(work()) == {"there"}
