"""The limiter: more with every success, half as many at a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from karat.models import Limiter, limiter, limiters, metered
from karat.models.pacing import Slot


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


async def opened(pace: Limiter, count: int) -> list[Slot]:
    """So many requests under way, each in a task of its own as far as the limiter can see."""
    slots = [pace.slot() for _ in range(count)]
    for slot in slots:
        await asyncio.create_task(slot._limiter.acquire())
        slot.cuts = pace.cuts
    return slots


def test_nothing_is_bounded_before_the_first_refusal() -> None:
    async def work() -> None:
        pace = Limiter("openai")
        await opened(pace, 500)
        pace.success()
        assert (pace.limit, pace.in_flight) == (None, 500)

    run(work())


def test_requests_that_were_refused_together_halve_the_limit_once() -> None:
    async def one(pace: Limiter, go: asyncio.Event) -> None:
        async with pace.slot():
            await go.wait()
            pace.refused()

    async def work() -> None:
        pace, go = Limiter("openai"), asyncio.Event()
        tasks = [asyncio.create_task(one(pace, go)) for _ in range(40)]
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*tasks)
        assert pace.limit == 20

    run(work())


def test_the_limit_is_kept_grows_with_success_and_goes_when_it_does_not_bind() -> None:
    async def work() -> None:
        pace, most = Limiter("openai"), 0
        for slot in await opened(pace, 8):
            slot._limiter.release()
        pace.in_flight = 8
        pace.refused()
        pace.in_flight = 0
        assert pace.limit == 4
        seen = []

        async def one() -> None:
            nonlocal most
            async with pace.slot():
                most = max(most, pace.in_flight)
                await asyncio.sleep(0.001)
                pace.success()
                seen.append(pace.limit)

        await asyncio.gather(*(one() for _ in range(4)))
        assert most == 4
        assert pace.limit == 4  # a window of successes brings one place: 4 + 1/4 + 1/4.25 + …
        await asyncio.gather(*(one() for _ in range(60)))
        assert list(dict.fromkeys(seen))[-4:] == [5, 6, 7, None]

    run(work())


def test_nobody_starts_before_retry_after_and_the_wait_is_no_time_of_the_attempt() -> None:
    async def work() -> None:
        pace = Limiter("openai")
        pace.refused(1.5)
        clock = asyncio.get_running_loop().time
        before = clock()
        limit = asyncio.timeout(2)
        with metered(limit), metered():
            async with limit:
                async with pace.slot():
                    pass
                assert clock() - before >= 1.5
                assert limit.when() - clock() == pytest.approx(2, abs=1)
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(60)
                raise TimeoutError

    with pytest.raises(TimeoutError):
        run(work())


def test_a_provider_that_asks_for_a_day_does_not_pause_the_run() -> None:
    async def work() -> None:
        pace = Limiter("openai")
        pace.refused(86_400)
        async with asyncio.timeout(5), pace.slot():
            pass

    run(work())


def test_who_gives_up_waiting_takes_no_place() -> None:
    async def work() -> None:
        pace = Limiter("openai")
        pace.refused()
        assert pace.limit == 1
        async with pace.slot():
            waiting = [asyncio.create_task(pace.acquire()) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.gather(waiting[0], return_exceptions=True)
        waiting[1].cancel()  # the place was just given to it
        await asyncio.gather(waiting[1], return_exceptions=True)
        await waiting[2]
        assert pace.in_flight == 1

    run(work())


def test_a_slot_inside_of_a_slot_is_the_same() -> None:
    async def work() -> None:
        pace = Limiter("openai")
        pace.refused()
        async with pace.slot(), pace.slot():
            assert pace.in_flight == 1
        assert pace.in_flight == 0

    run(work())


def test_agent_and_judge_share_the_limiter_of_their_provider() -> None:
    async def work() -> None:
        assert limiter("openai") is limiter("openai")
        local = limiter("openai", "http://user:secret@localhost:8000/v1")
        assert local.name == "openai localhost:8000"
        assert local is not limiter("openai")
        assert set(limiters()) == {"openai", "openai localhost:8000"}

    run(work())
