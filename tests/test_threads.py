"""Calls of plain functions: each on a thread, so many and no more, and none that can hold the end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from karat.errors import AgentFault
from karat.threads import Threads


def test_calls_that_hang_are_bounded_and_a_thread_that_comes_back_is_used_again() -> None:
    let_go = threading.Event()

    async def go() -> list[Any]:
        threads = Threads(most=3)
        hung = [asyncio.create_task(threads.call(let_go.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in hung:
            task.cancel()  # given up: their threads hang on
        found = await asyncio.gather(*hung, threads.call(str, 1), return_exceptions=True)
        let_go.set()
        while (again := await outcome(threads.call(str, 2))) != "2":
            assert isinstance(again, AgentFault)
            await asyncio.sleep(0.01)
        threads.close()
        return found

    *cancelled, refused = asyncio.run(asyncio.wait_for(go(), 20))
    assert all(isinstance(one, asyncio.CancelledError) for one in cancelled)
    assert isinstance(refused, AgentFault)
    assert (refused.kind, refused.retriable) == ("threads_exhausted", False)
    assert refused.message.startswith("3 calls hang")


async def outcome(call: Any) -> Any:
    found: list[Any] = await asyncio.gather(call, return_exceptions=True)
    return found[0]


def test_threads_are_kept_for_the_next_call() -> None:
    async def go() -> list[int]:
        threads = Threads(most=1)
        found = [await threads.call(threading.get_ident) for _ in range(5)]
        threads.close()
        return found

    assert len(set(asyncio.run(go()))) == 1


def exits() -> None:
    raise SystemExit(3)


def stops() -> None:
    raise StopIteration


@pytest.mark.parametrize(("function", "says"), [(exits, "SystemExit: 3"), (stops, "StopIteration: ")])
def test_what_cannot_pass_through_a_future_is_an_error(function: Callable[[], None], says: str) -> None:
    async def go() -> Any:
        threads = Threads()
        found = await outcome(threads.call(function))
        threads.close()
        return found

    found = asyncio.run(go())
    assert isinstance(found, RuntimeError)
    assert str(found) == says


def test_a_call_sees_the_callers_context() -> None:
    name = contextvars.ContextVar("name", default="nobody")

    async def go() -> Any:
        threads = Threads()
        name.set("caller")
        found = await threads.call(name.get)
        threads.close()
        return found

    assert asyncio.run(go()) == "caller"
