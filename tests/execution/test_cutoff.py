"""Foreign code within a limit: every way in which it may end, or not."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from karat.execution import cutoff
from karat.execution.cutoff import Contained, GivenUpError, undisturbed

SET_BY_WORK: ContextVar[str] = ContextVar("set_by_work", default="nothing")


def contained(work: Callable[[], Any], seconds: float | None = 5.0) -> Any:
    """What comes of `work` in a loop of its own."""

    async def within() -> Any:
        return await Contained(work(), asyncio.timeout(seconds))

    return asyncio.run(within())


async def _waits(how: Callable[[], Awaitable[Any]]) -> str:
    await how()
    return "done"


@pytest.mark.parametrize(
    "how",
    [
        lambda: asyncio.sleep(0),
        lambda: asyncio.sleep(0.01),
        lambda: asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0)),
        lambda: asyncio.wait_for(asyncio.sleep(0.01), 1),
        lambda: asyncio.create_task(asyncio.sleep(0.01)),
        lambda: asyncio.shield(asyncio.sleep(0.01)),
        lambda: asyncio.to_thread(int),
        lambda: anyio.sleep(0.01),
    ],
)
def test_whatever_work_waits_for_it_ends_with_its_result(how: Callable[[], Awaitable[Any]]) -> None:
    assert contained(lambda: _waits(how)) == "done"


@pytest.mark.parametrize("nested", [False, True])
def test_an_exception_arrives_as_it_was_raised(nested: bool) -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("own")

    async def waits_for_one_that_fails() -> None:
        await asyncio.create_task(fails())

    with pytest.raises(KeyError, match="own"):
        contained(waits_for_one_that_fails if nested else fails)


def test_a_system_exit_is_an_error_and_ends_nothing() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        contained(leaves)


@pytest.mark.parametrize("in_a_task", [False, True])
def test_what_ends_when_it_is_cut_off_is_a_timeout(in_a_task: bool) -> None:
    tidied: list[str] = []

    async def hangs() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            tidied.append("tidied")

    async def waits() -> None:
        await asyncio.create_task(hangs())

    with pytest.raises(TimeoutError):
        contained(waits if in_a_task else hangs, 0.02)
    assert tidied == ["tidied"]


REFUSES = """
import asyncio
from karat.execution import cutoff
cutoff.GRACE_SECONDS = 0.1
async def refuses():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
async def waits_for_one_that_refuses():
    await asyncio.create_task(refuses())
async def gathers():
    await asyncio.gather(refuses(), refuses())
async def main():
    for work in (refuses, waits_for_one_that_refuses, gathers):
        try:
            await cutoff.Contained(work(), asyncio.timeout(0.02))
        except cutoff.GivenUpError:
            await cutoff.undisturbed()
            print(work.__name__, asyncio.current_task().cancelling(), flush=True)
    import os
    os._exit(0)
asyncio.run(main())
"""


def test_what_refuses_to_be_cut_off_is_given_up_and_its_task_goes_on() -> None:
    import subprocess
    import sys

    # In a process of its own: what was given up is destroyed with it, and Python complains of that.
    done = subprocess.run([sys.executable, "-c", REFUSES], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[:3] == ["refuses 0", "waits_for_one_that_refuses 0", "gathers 0"], done.stderr


def test_a_cancellation_of_its_own_making_ends_no_grace() -> None:
    """An inner time limit cancels the task that all share; that is no cut-off, and what goes on afterwards may."""

    async def has_limits_of_its_own() -> str:
        for _ in range(3):
            with anyio.move_on_after(0.01):
                await anyio.sleep(60)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0.05)
        return "done"

    async def within() -> tuple[str, int, list[asyncio.TimerHandle]]:
        found = await Contained(has_limits_of_its_own(), asyncio.timeout(60))
        task = asyncio.current_task()
        assert task is not None
        loop: Any = asyncio.get_running_loop()
        return found, task.cancelling(), [one for one in loop._scheduled if one.when() - loop.time() < 10]

    found, cancelling, timers = asyncio.run(within())
    assert (found, cancelling) == ("done", 0)
    assert [one for one in timers if not one.cancelled()] == [], "no grace is running"


def test_the_limit_can_be_moved_while_the_work_goes_on() -> None:
    async def within() -> str:
        limit = asyncio.timeout(0.05)

        async def waits() -> str:
            limit.reschedule(None)
            await asyncio.sleep(0.1)
            return "done"

        return await Contained(waits(), limit)

    assert asyncio.run(within()) == "done"


def test_a_cancellation_from_outside_arrives_as_one() -> None:
    seen: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("cut off")

    async def within() -> None:
        async def whole() -> None:
            await Contained(waits(), asyncio.timeout(60))

        task = asyncio.create_task(whole())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(within())
    assert seen == ["cut off"]


def test_context_variables_are_those_of_the_caller_and_what_is_set_is_gone() -> None:
    async def sets() -> str:
        before = SET_BY_WORK.get()
        SET_BY_WORK.set("work")
        await asyncio.sleep(0)
        return before + SET_BY_WORK.get()

    async def within() -> tuple[str, str]:
        SET_BY_WORK.set("caller ")
        return await Contained(sets(), asyncio.timeout(60)), SET_BY_WORK.get()

    assert asyncio.run(within()) == ("caller work", "caller ")


@pytest.mark.parametrize("late", [False, True])
def test_work_that_cancels_its_task_leaves_no_trace(late: bool) -> None:
    async def cancels_itself() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if not late:
            await asyncio.sleep(0)
        return "done"

    async def within() -> tuple[str, int]:
        try:
            found = await Contained(cancels_itself(), asyncio.timeout(60))
        except asyncio.CancelledError:
            found = "cancelled"
        await undisturbed()
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return found, task.cancelling()

    assert asyncio.run(within()) == ("done" if late else "cancelled", 0)


@pytest.mark.slow
def test_work_that_is_left_ends_where_it_stands() -> None:
    ended: list[str] = []

    async def refuses() -> None:
        try:
            while True:
                try:
                    await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    ended.append("refused")
        finally:
            ended.append("left")

    async def within() -> None:
        with pytest.raises(GivenUpError):
            await Contained(refuses(), asyncio.timeout(0.01))

    assert cutoff.GRACE_SECONDS == 5.0
    asyncio.run(within())
    gc.collect()
    assert ended == ["refused", "left"]
