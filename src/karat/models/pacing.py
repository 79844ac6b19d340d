"""How many requests a provider gets at a time: more after every success, half as many after a
refusal.

One limiter per provider and address in each event loop, shared by all its users. Nothing is
bounded before the first refusal, so a provider that never refuses costs nothing.

Chiu, Jain (1989), "Analysis of the increase and decrease algorithms for congestion
avoidance in computer networks".
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from types import TracebackType
from weakref import WeakKeyDictionary

from karat.models.metering import waiting

LONGEST_RETRY_AFTER = 600.0
"""Seconds; a provider that asks for more is not waited for, unless the experiment allows it."""


class Limiter:
    """`async with limiter.slot():` around each request, then `success()` or `refused(retry_after)`.

    Models from `open_model` do this themselves. A slot inside a slot of the same limiter
    is the same slot, so nesting is harmless.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_flight = 0
        self._limit: float | None = None  # None: the provider has not refused, or has recovered
        self._most = 0  # most requests at a time so far
        self.cuts = 0
        self._paused_until = 0.0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int | None:
        """Requests at a time; None: not bounded."""
        if self._limit is None:
            return None
        return int(self._limit)

    def slot(self) -> Slot:
        """A place among the requests at a time; waits for one.

        The wait does not count towards an attempt's timeout.
        """
        return Slot(self)

    def success(self) -> None:
        """A request was answered: one more place after as many answers as places."""
        if self._limit is None or self._stale():
            return
        self._limit += 1.0 / self._limit
        if self._limit >= self._most:
            self._limit = None
        self._wake()

    def refused(self, retry_after: float | None = None) -> None:
        """The provider asked for less (429, 529): half the places, and none before `retry_after`
        seconds.

        Several refusals of concurrent requests count as one.
        """
        if not self._stale():
            self.cuts += 1
            at_once = self.in_flight if self._limit is None else min(self._limit, self.in_flight)
            self._limit = max(1.0, at_once // 2)

        # a longer wait is not worth it for every request
        if retry_after and retry_after <= LONGEST_RETRY_AFTER:
            loop = asyncio.get_running_loop()
            until = loop.time() + retry_after
            if until > self._paused_until:
                self._paused_until = until
                loop.call_at(until, self._wake)

    def _stale(self) -> bool:
        """Whether the caller's request began before the last cut, so its outcome does not count."""
        slot = _HELD.get().get(id(self))
        return slot is not None and slot.cuts < self.cuts

    def _has_room(self) -> bool:
        if self._paused_until and asyncio.get_running_loop().time() < self._paused_until:
            return False
        return self._limit is None or self.in_flight < int(self._limit)

    def _wake(self) -> None:
        while self._queue and self._has_room():
            waiter = self._queue.popleft()
            if not waiter.done():
                self._enter()
                waiter.set_result(None)

    def _enter(self) -> None:
        self.in_flight += 1
        self._most = max(self._most, self.in_flight)

    async def acquire(self) -> None:
        """Takes a place, once there is room."""
        if not self._queue and self._has_room():
            self._enter()
            return

        waiter = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        try:
            with waiting():
                await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.release()  # the place was already ours
            raise

    def release(self) -> None:
        """Gives a place back."""
        self.in_flight -= 1
        self._wake()


class Slot:
    """A place held during a block."""

    __slots__ = ("_limiter", "_token", "cuts")

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._token: object = None
        self.cuts = 0

    async def __aenter__(self) -> None:
        slots = _HELD.get()
        if id(self._limiter) in slots:
            return
        await self._limiter.acquire()
        self.cuts = self._limiter.cuts
        self._token = _HELD.set({**slots, id(self._limiter): self})

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _HELD.reset(self._token)  # type: ignore[arg-type]  # the token of our own set
            self._limiter.release()


_HELD: ContextVar[dict[int, Slot]] = ContextVar("karat_slots", default={})  # noqa: B039 - replaced, never changed
_LIMITERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Limiter]] = WeakKeyDictionary()


def limiters() -> dict[str, Limiter]:
    """The limiters of the running event loop, by name; the mapping itself, so that it can be
    watched.
    """
    return _LIMITERS.setdefault(asyncio.get_running_loop(), {})


def limiter(provider: str, base_url: str | None = None) -> Limiter:
    """The limiter of a provider (`openai`), or of a service at its own address; the same for all
    its users.
    """
    from urllib.parse import urlsplit

    name = provider
    if base_url is not None:
        name += f" {urlsplit(base_url).netloc.rpartition('@')[2] or base_url}"
    known = limiters()
    if name not in known:
        known[name] = Limiter(name)
    return known[name]
