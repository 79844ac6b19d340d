"""Which trial is next: retries that are due go before new trials; back-off holds no slot."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

import msgspec

from karat.records import Reply, Trial

__all__ = ["Job", "TrialQueue"]


class Job(msgspec.Struct, frozen=True):
    """One attempt to be made."""

    trial: Trial
    attempt: int  # from 1
    kept: tuple[Reply, ...] = ()  # of the attempt before, from turn 0: the conversation goes on behind them


class TrialQueue:
    """Hands out jobs until there are none and none can come back."""

    def __init__(self, trials: Iterator[Trial], *, most_waiting: int = 64) -> None:
        """`most_waiting`: with so many trials waiting for another attempt, no new one is begun.

        A provider that refuses everything would otherwise be asked everything once.
        """
        self._fresh, self._most_waiting = trials, most_waiting
        self._due: deque[Job] = deque()
        self._backing_off = 0
        self._running = 0
        self._stopped = False
        self._change = asyncio.Event()

    async def next(self) -> Job | None:
        """The next job; waits while one may still come back; None at the end."""
        while not self._stopped:
            if self._due:
                self._running += 1
                return self._due.popleft()
            if self._backing_off < self._most_waiting:
                trial = next(self._fresh, None)
                if trial is not None:
                    self._running += 1
                    return Job(trial, 1)
            if not self._running and not self._backing_off:
                break
            self._change.clear()
            await self._change.wait()
        return None

    def done(self) -> None:
        """A job that was handed out is over."""
        self._running -= 1
        self._change.set()

    def again(self, job: Job, seconds: float) -> None:
        """Puts a job back, due after `seconds`. Call before `done`."""
        self._backing_off += 1
        asyncio.get_running_loop().call_later(seconds, self._came_due, job)

    def stop(self) -> None:
        """No more jobs: what is running goes on, what waits is given up."""
        self._stopped = True
        self._change.set()

    async def changed(self) -> None:
        """Returns after the next change: a job over, one due, or the end."""
        self._change.clear()
        await self._change.wait()

    def _came_due(self, job: Job) -> None:
        self._backing_off -= 1
        self._due.append(job)
        self._change.set()
