"""Foreign code within a time limit: every way in which a call may end, or not."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from karat.errors import AgentFault, BadRun
from karat.execution import RunStatus
from karat.execution.foreign_code import GRACE_SECONDS, ForeignCode, abandon
from karat.execution.retry import AttemptError
from karat.records import Usage

SET_BY_CALL: ContextVar[str] = ContextVar("set_by_call", default="nothing")


def called(work: Callable[[], Coroutine[Any, Any, Any]], seconds: float = 5.0) -> Any:
    """What comes of a call in an event loop of its own."""

    async def within() -> Any:
        foreign_code = ForeignCode(RunStatus(), redact=str)
        try:
            return await foreign_code.call(work, seconds, "agent")
        finally:
            await foreign_code.close([])

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
def test_a_call_returns_its_result_whatever_it_waits_for(how: Callable[[], Awaitable[Any]]) -> None:
    assert called(lambda: _waits(how)) == "done"


@pytest.mark.parametrize(
    ("error", "nested"),
    [
        (KeyError("own"), False),
        (KeyError("own"), True),
        (asyncio.CancelledError("own"), False),
        (asyncio.CancelledError("own"), True),
        (GeneratorExit("out"), False),
        (SystemExit(3), False),  # nested, it ends the event loop: asyncio means it to
    ],
)
def test_whatever_a_call_raises_is_data(error: BaseException, nested: bool) -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise error

    async def waits_for_one_that_fails() -> None:
        await asyncio.create_task(fails())

    outcome = called(waits_for_one_that_fails if nested else fails)
    assert (outcome.cls, outcome.kind) == ("agent", "crash")
    assert outcome.message.startswith(type(error).__name__)


def test_an_error_of_the_operator_is_raised() -> None:
    async def full() -> None:
        raise BadRun("run", "the disk is full")

    with pytest.raises(BadRun, match="the disk is full"):
        called(full)


@pytest.mark.parametrize("in_a_task", [False, True])
def test_a_call_that_ends_when_it_is_cancelled_is_a_timeout(in_a_task: bool) -> None:
    tidied: list[str] = []

    async def hangs() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            tidied.append("tidied")

    async def waits() -> None:
        await asyncio.create_task(hangs())

    outcome = called(waits if in_a_task else hangs, 0.1)
    assert (outcome.cls, outcome.kind, outcome.message) == ("limit", "timeout", "no answer within 0.1 s")
    assert tidied == ["tidied"]


def test_a_timeout_keeps_what_the_call_says_it_has_cost() -> None:
    async def pays() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise AgentFault("cut_off", "in the middle", dollars=0.5) from None

    outcome = called(pays, 0.02)
    assert (outcome.kind, outcome.dollars) == ("timeout", 0.5)


def test_what_a_call_held_is_free_when_it_has_returned() -> None:
    class Held:
        pass

    async def within() -> None:
        held = Held()
        gone = weakref.ref(held)

        async def uses(held: Held = held) -> str:
            return type(held).__name__

        foreign_code = ForeignCode(RunStatus(), redact=str)
        assert await foreign_code.call(uses, 60, "agent") == "Held"
        del held, uses
        gc.collect()
        assert gone() is None
        await foreign_code.close([])

    asyncio.run(within())


def test_a_timeout_of_a_scorer_is_the_judges() -> None:
    async def within() -> Any:
        foreign_code = ForeignCode(RunStatus(), redact=str)
        return await foreign_code.call(lambda: asyncio.sleep(60), 0.01, "score")

    outcome = asyncio.run(within())
    assert (outcome.cls, outcome.kind, outcome.message) == ("judge", "timeout", "no score within 0.01 s")
    assert not outcome.retriable


def test_a_call_that_ignores_its_time_limit_is_abandoned_and_told_of_once() -> None:
    status = RunStatus()

    async def refuses() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)
        return "late"

    async def within() -> Any:
        foreign_code = ForeignCode(status, redact=str, grace_seconds=0.0)
        outcome = await foreign_code.call(refuses, 0.01, "agent")
        await foreign_code.close([])
        return outcome

    outcome = asyncio.run(within())
    assert (outcome.cls, outcome.kind) == ("limit", "timeout")
    assert status.notices == ["an agent or a scorer did not stop after its time limit and was abandoned"]


REFUSES = """
import asyncio
from karat.execution import RunStatus
from karat.execution.foreign_code import ForeignCode
left = []
async def refuses():
    try:
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                pass
    finally:
        left.append("left")
async def refuses_everything():
    while True:
        try:
            await asyncio.sleep(600)
        except BaseException:
            pass
async def waits_for_a_task():
    await asyncio.create_task(refuses_everything())
async def gathers():
    await asyncio.gather(refuses_everything(), refuses_everything())
async def main():
    status = RunStatus()
    foreign_code = ForeignCode(status, redact=str, grace_seconds=0.1)
    for work in (refuses, refuses_everything, waits_for_a_task, gathers):
        outcome = await foreign_code.call(work, 0.02, "agent")
        print(work.__name__, outcome.kind, asyncio.current_task().cancelling(), flush=True)
    await foreign_code.close([])
    print(left, status.notices, flush=True)
    import os
    os._exit(0)
asyncio.run(main())
"""


def test_a_call_that_refuses_to_end_is_abandoned_and_its_caller_continues() -> None:
    # In a process of its own: what was abandoned is destroyed with it, and Python complains of that.
    done = subprocess.run([sys.executable, "-c", REFUSES], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        *(f"{name} timeout 0" for name in ("refuses", "refuses_everything", "waits_for_a_task", "gathers")),
        "['left'] ['an agent or a scorer did not stop after its time limit and was abandoned']",
    ], done.stderr


def test_a_time_limit_of_the_call_s_own_is_not_karat_s() -> None:
    async def has_limits_of_its_own() -> str:
        for _ in range(3):
            with anyio.move_on_after(0.01):
                await anyio.sleep(60)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0.05)
        return "done"

    assert GRACE_SECONDS == 5.0
    assert called(has_limits_of_its_own, 60) == "done"


def test_the_limit_stands_still_while_a_provider_makes_the_call_wait() -> None:
    from karat.models.metering import waiting

    async def waits() -> str:
        with waiting():
            await asyncio.sleep(0.15)
        return "done"

    assert called(waits, 0.1) == "done"


def test_a_cancelled_caller_waits_until_its_call_has_cleaned_up() -> None:
    seen: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            seen.append("closed")

    async def within() -> None:
        foreign_code = ForeignCode(RunStatus(), redact=str)
        caller = asyncio.create_task(foreign_code.call(waits, 60, "agent"))
        await asyncio.sleep(0.01)
        foreign_code.stopping = True
        await foreign_code.close([caller])
        assert caller.cancelled()

    asyncio.run(within())
    assert seen == ["closed"]


def test_a_call_sees_the_caller_s_context_variables_and_keeps_its_own() -> None:
    async def sets() -> str:
        before = SET_BY_CALL.get()
        SET_BY_CALL.set("call")
        await asyncio.sleep(0)
        return before + SET_BY_CALL.get()

    async def within() -> tuple[str | AttemptError, str]:
        SET_BY_CALL.set("caller ")
        foreign_code = ForeignCode(RunStatus(), redact=str)
        found = await foreign_code.call(sets, 60, "agent")
        await foreign_code.close([])
        return found, SET_BY_CALL.get()

    assert asyncio.run(within()) == ("caller call", "caller ")


@pytest.mark.parametrize("late", [False, True])
def test_a_call_that_cancels_its_own_task_leaves_no_trace(late: bool) -> None:
    async def cancels_itself() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if not late:
            await asyncio.sleep(0)
        return "done"

    async def within() -> tuple[Any, int]:
        foreign_code = ForeignCode(RunStatus(), redact=str)
        outcome = await foreign_code.call(cancels_itself, 60, "agent")
        await asyncio.sleep(0)
        await foreign_code.close([])
        task = asyncio.current_task()
        assert task is not None
        return outcome, task.cancelling()

    outcome, cancelling = asyncio.run(within())
    assert cancelling == 0
    assert outcome == "done" if late else outcome.message.startswith("CancelledError")


def test_a_key_that_interrupts_a_call_interrupts_the_run() -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        called(interrupted)


async def _fails_as_it_is_closed() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    try:
        await asyncio.sleep(60)
    finally:
        raise ValueError("late")


async def _refuses_to_be_closed() -> None:
    for _ in range(2):
        with suppress(BaseException):
            await asyncio.sleep(60)
    await asyncio.sleep(0)
    raise ValueError("late")


@pytest.mark.parametrize("work", [_fails_as_it_is_closed, _refuses_to_be_closed])
def test_nothing_is_heard_of_a_task_that_was_abandoned(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    problems: list[dict[str, Any]] = []

    async def go() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        task = loop.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        abandon(task)
        assert task not in asyncio.all_tasks(), "the end of the loop does not wait for it"
        for _ in range(5):
            await asyncio.sleep(0)
        assert task.done()
        del task
        gc.collect()

    asyncio.run(go())
    assert problems == []


FORKS = """
import asyncio, os, sys
from karat.execution import RunStatus
from karat.execution.foreign_code import ForeignCode
def forks(end):
    async def work():
        child = os.fork()
        if not child:
            return end()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return work
async def main():
    foreign_code = ForeignCode(RunStatus(), redact=str)
    ends = (int, lambda: sys.exit(7), lambda: 1 / 0)
    print([await foreign_code.call(forks(end), 60, "agent") for end in ends])
    await foreign_code.close([])
asyncio.run(main())
"""


def test_a_process_that_a_call_has_forked_ends_where_the_call_ends() -> None:
    """What it returns, raises or leaves with is its own, and the run goes on once."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[0, 7, 1]\n"


def test_callers_that_are_cancelled_wait_no_longer_than_the_grace_for_a_call_that_refuses() -> None:
    seen: list[str] = []

    async def refuses() -> None:
        try:
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
        finally:
            seen.append("closed")

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("cleaned")

    async def within() -> list[bool]:
        foreign_code = ForeignCode(RunStatus(), redact=str, grace_seconds=0.01)
        foreign_code.stopping = True
        callers = [asyncio.create_task(foreign_code.call(work, 60, "agent")) for work in (refuses, waits)]
        over = asyncio.create_task(asyncio.sleep(0))
        await asyncio.sleep(0.01)
        await foreign_code.close([*callers, over])
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        return [caller.cancelled() for caller in (*callers, over)]

    assert asyncio.run(within()) == [True, True, False]
    assert seen == ["cleaned", "closed"]


def test_secrets_are_masked_in_what_a_call_raises_and_the_stage_says_whose_fault_it_is() -> None:
    async def fails() -> None:
        raise ValueError("the key is hunter2")

    async def within() -> Any:
        foreign_code = ForeignCode(RunStatus(), redact=lambda text: text.replace("hunter2", "KEY"))
        return await foreign_code.call(fails, 60, "score")

    outcome = asyncio.run(within())
    assert (outcome.cls, outcome.kind) == ("judge", "crash")
    assert outcome.message.startswith("ValueError: the key is KEY")


def test_what_a_call_has_metered_is_the_cost_of_its_failure_and_of_it_alone() -> None:
    from karat.models.metering import METER

    async def pays() -> None:
        meter = METER.get()
        assert meter is not None
        meter.add(Usage(input_tokens=3), 0.25)
        raise ValueError("after it was paid")

    async def within() -> tuple[Any, Any, Any]:
        foreign_code = ForeignCode(RunStatus(), redact=str)
        before = METER.get()
        outcome = await foreign_code.call(pays, 60, "agent")
        return outcome, before, METER.get()

    outcome, before, after = asyncio.run(within())
    assert (outcome.dollars, outcome.usage) == (0.25, Usage(input_tokens=3))
    assert before is after
