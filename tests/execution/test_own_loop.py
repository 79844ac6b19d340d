"""The event loop of a run."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

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


def test_an_error_of_the_work_is_raised_and_what_it_left_may_clean_up() -> None:
    seen: list[str] = []

    async def cleans_up() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            seen.append("clean")

    async def work() -> None:
        left = asyncio.create_task(cleans_up())
        await asyncio.sleep(0)
        assert not left.done()
        raise LookupError("the work's own")

    with pytest.raises(LookupError, match="the work's own"):
        run_in_own_loop(work())
    assert seen == ["clean"]


def test_a_task_that_refuses_to_end_is_closed_after_a_while() -> None:
    seen: list[str] = []

    async def refuses() -> None:
        try:
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
                seen.append("refused")
        finally:
            seen.append("closed")

    async def work() -> list[asyncio.Task[None]]:
        left = [asyncio.create_task(refuses())]
        await asyncio.sleep(0)
        return left

    run_in_own_loop(work(), grace_seconds=0.01)
    assert seen == ["refused", "closed"]


def test_a_function_that_is_still_called_keeps_nobody_waiting() -> None:
    """Not even where it was left by `to_thread`, whose threads `asyncio.run` waits for."""
    begun, over = threading.Event(), threading.Event()

    def called() -> bool:
        begun.set()
        return over.wait(60)

    async def work() -> str:
        left = asyncio.create_task(asyncio.to_thread(called))
        while not begun.is_set():
            await asyncio.sleep(0)
        return "still called" if not left.done() else "not called"

    assert run_in_own_loop(work()) == "still called"
    assert not over.is_set()
    over.set()
