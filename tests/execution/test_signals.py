"""What a signal does to a run, in this process and with a run that only notes what it is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from karat.execution.limits import RunStatus
from karat.execution.scoring import PendingScore
from karat.execution.signals import SignalHandler, _held_by
from karat.execution.trial import Attempt, Job
from karat.records import AgentSpec, Answer, Condition, Sample, Trial

Work = Callable[[SignalHandler], Any]


class Noting:
    """In place of a runner."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def drain(self, reason: str) -> None:
        self.told.append(reason)

    def cancel(self) -> None:
        self.told.append("cancelled")


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """What a handler of signals must put back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1


def within(work: Work, *, handle: bool = True) -> tuple[Any, list[str]]:
    status = RunStatus()

    async def go() -> Any:
        with SignalHandler(status, handle=handle) as stop:
            return await work(stop)

    return asyncio.run(go()), status.notices


async def sent(*numbers: signal.Signals, until: Callable[[], bool]) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)
    while not until():
        await asyncio.sleep(0.002)


def test_the_first_signal_drains_a_run_and_each_later_one_stops_it() -> None:
    runner: Any = Noting()

    async def work(stop: SignalHandler) -> None:
        stop.runner = runner
        await sent(signal.SIGINT, until=lambda: len(runner.told) == 1)
        await sent(signal.SIGTERM, until=lambda: len(runner.told) == 2)
        await sent(signal.SIGHUP, until=lambda: len(runner.told) == 3)

    _, notices = within(work)
    assert runner.told == ["interrupted", "cancelled", "cancelled"]
    assert notices == [
        "finishing the trials in flight; Ctrl-C again stops at once",
        "stopping at once: what was in flight is cut off",
    ]


def test_a_signal_before_the_run_starts_ends_its_preparation() -> None:
    async def work(stop: SignalHandler) -> None:
        await sent(signal.SIGINT, until=lambda: False)

    with pytest.raises(KeyboardInterrupt):
        within(work)


def test_after_the_end_the_first_signal_is_told_and_the_second_only_ends_the_closing() -> None:
    seen: list[str] = []
    status = RunStatus()

    async def go() -> None:
        with SignalHandler(status, handle=True) as stop:
            stop.ended = True
            await sent(signal.SIGINT, until=lambda: bool(status.notices))
            seen.append("closing")
            await sent(signal.SIGINT, until=lambda: False)
        seen.append("ended")

    asyncio.run(go())
    assert seen == ["closing", "ended"]
    assert status.notices == ["the run has ended and is closing its agents and servers; Ctrl-C again stops at once"]


def test_another_signal_is_the_programs_own() -> None:
    heard: list[int] = []

    async def work(stop: SignalHandler) -> str:
        stop.runner = Noting()  # type: ignore[assignment]
        await sent(signal.SIGUSR1, until=lambda: bool(heard))
        await asyncio.sleep(0.05)
        return repr(stop.runner.told)  # type: ignore[union-attr]

    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        assert within(work) == ("[]", [])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]


def test_signals_are_left_alone_unless_asked() -> None:
    """`asyncio.run` has a handler of its own for SIGINT."""

    async def work(stop: SignalHandler) -> Any:
        return signal.getsignal(signal.SIGTERM)

    assert within(work, handle=False) == (signal.getsignal(signal.SIGTERM), [])


def test_a_cancellation_by_others_is_passed_on() -> None:
    async def go() -> None:
        task = asyncio.current_task()
        assert task is not None
        with SignalHandler(RunStatus(), handle=False):
            task.cancel()
            await asyncio.sleep(1)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(go())
    with pytest.raises(ZeroDivisionError):
        within(lambda stop: 1 / 0, handle=False)


def test_what_preparing_a_run_raises_after_a_signal_is_its_own_error() -> None:
    async def work(stop: SignalHandler) -> None:
        try:
            await sent(signal.SIGINT, until=lambda: False)
        except asyncio.CancelledError:
            raise ZeroDivisionError from None

    with pytest.raises(ZeroDivisionError):
        within(work)


def test_two_signals_before_the_run_starts_end_its_preparation_though_it_tidies_up() -> None:
    tidied: list[str] = []

    async def work(stop: SignalHandler) -> None:
        try:
            await sent(signal.SIGINT, until=lambda: False)
        except asyncio.CancelledError:
            tidied.append("once")
            await sent(signal.SIGTERM, until=lambda: False)

    with pytest.raises(KeyboardInterrupt):
        within(work)
    assert tidied == ["once"]


def test_preparation_that_ends_by_itself_after_a_signal_is_a_stop_no_more() -> None:
    async def work(stop: SignalHandler) -> str:
        try:
            await sent(signal.SIGINT, until=lambda: False)
        except asyncio.CancelledError:
            return "done"
        return "never"

    assert within(work) == ("done", [])


def test_a_task_that_others_cancel_as_well_is_cancelled_and_not_only_stopped() -> None:
    status = RunStatus()

    async def go() -> None:
        task = asyncio.current_task()
        assert task is not None
        with SignalHandler(status, handle=True) as stop:
            stop.ended = True
            await sent(signal.SIGINT, until=lambda: bool(status.notices))
            with suppress(asyncio.CancelledError):
                await sent(signal.SIGINT, until=lambda: False)
            task.cancel()
            await sent(until=lambda: False)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(go())


def test_signals_that_an_agent_takes_are_taken_back() -> None:
    async def work(stop: SignalHandler) -> None:
        ours = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        while signal.getsignal(signal.SIGTERM) != ours:
            await asyncio.sleep(0.05)
        runner: Any = Noting()
        stop.runner = runner
        await sent(signal.SIGTERM, until=lambda: bool(runner.told))

    within(work)


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    async def work(stop: SignalHandler) -> Any:
        return signal.getsignal(signal.SIGHUP)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert within(work) == (signal.SIG_IGN, [])
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_a_forked_process_signals_do_what_they_do_without_karat() -> None:
    async def work(stop: SignalHandler) -> bytes:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            defaults = [signal.getsignal(number) is signal.SIG_DFL for number in numbers]
            os.write(writing, repr((defaults, signal.set_wakeup_fd(-1))).encode())
            os._exit(0)
        os.close(writing)
        try:
            return os.read(reading, 100)
        finally:
            os.close(reading)
            os.waitpid(child, 0)

    assert within(work) == (b"([True, True, True], -1)", [])
    assert within(work, handle=False)[0] != b"([True, True, True], -1)", "they were not taken"


def test_a_fork_leaves_the_mask_of_signals_as_it_was() -> None:
    def masks() -> list[set[int]]:
        reading, writing = os.pipe()
        if not (child := os.fork()):
            os.write(writing, bytes(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
            os._exit(0)
        os.close(writing)
        try:
            return [set(os.read(reading, 100)), set(signal.pthread_sigmask(signal.SIG_BLOCK, []))]
        finally:
            os.close(reading)
            os.waitpid(child, 0)

    async def work(stop: SignalHandler) -> list[list[set[int]]]:
        free = masks()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            return [free, masks()]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    assert within(work)[0] == [[set(), set()], [{signal.SIGTERM}] * 2]
    assert masks() == [set(), set()]


def test_the_thread_that_listens_has_a_name_and_holds_no_process() -> None:
    async def work(stop: SignalHandler) -> list[tuple[str, bool]]:
        return [(thread.name, thread.daemon) for thread in threading.enumerate() if thread.name.startswith("karat-s")]

    assert within(work) == ([("karat-stop", True)], [])


@pytest.mark.parametrize("handle", [True, False])
def test_nothing_is_left_open(handle: bool) -> None:
    async def work(stop: SignalHandler) -> None:
        await asyncio.sleep(0)

    within(work, handle=handle)
    before = sorted(os.listdir("/proc/self/fd")), threading.active_count()
    within(work, handle=handle)
    assert (sorted(os.listdir("/proc/self/fd")), threading.active_count()) == before


def held(attempt: object = None, pending: object = None) -> tuple[str, str]:
    return _held_by(sys._getframe())


def test_who_holds_the_event_loop_is_named_by_trial_and_place() -> None:
    condition = Condition(name="c", position=0, digest="d", agent=AgentSpec(type="t"))
    sample = Sample(id="s", position=0, digest="d", turns=())
    trial = Trial(id="t", index=0, sample=sample, condition=condition, repetition=3, seed=0)
    answer = Answer(trial="t", sample="s2", condition="c2", repetition=4, replies=())
    asked, judged = Attempt(Job(trial), ()), PendingScore(answer=answer, sample=sample, scorers=())
    line = held.__code__.co_firstlineno + 1
    place = f"test_signals.py, line {line}, in held"
    assert held(asked) == (place, "the agent of the trial sample 's', condition 'c', repetition 3")
    assert held(asked, judged) == (place, "a scorer of the trial sample 's2', condition 'c2', repetition 4")
    assert held() == (place, "an agent or scorer")
