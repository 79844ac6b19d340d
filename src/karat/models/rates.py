"""Limits of requests and tokens per minute for a model, if the experiment file sets them.

One limit per model in each event loop, shared by all agents and judges that use it. Requests are
spread evenly, so no window of a minute, by any clock, has more than the limit, and there are no
bursts. Tokens are reserved before a request, by an estimate, and corrected by its usage: a sliding
window of one minute counts what ended in it and what is under way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Protocol
from weakref import WeakKeyDictionary

import msgspec

from karat.models.metering import waiting
from karat.models.names import ModelName, parse_model
from karat.records import Usage

_MINUTE = 61.0
"""Seconds: one more than a minute, because requests reach a provider sooner or later than they are
sent.
"""

_FIRST_OUTPUT = 1000
"""Tokens of a response, while none is known."""


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A model's limits in the experiment file."""

    requests_per_minute: float | None = None  # None: not limited
    tokens_per_minute: float | None = None  # input and output


class _Entry(msgspec.Struct):
    tokens: float
    ends: float | None = None  # when it leaves the window; None: under way


class Admission(Protocol):
    """What a model waits for before each request: a `RateLimit`, or a stand-in for one."""

    def estimate(self, characters: int, max_tokens: int | None) -> float: ...
    def admitted(
        self, estimate: float
    ) -> AbstractAsyncContextManager[Callable[[Usage | None], None]]: ...


class RateLimit:
    """`async with limit.admitted(estimate) as used:` around a request; `used(usage)` when it is
    answered.

    First come, first served. A request estimated above the whole limit waits until nothing else
    counts.
    """

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._next = 0.0  # when the next request may be sent
        self._entries: deque[_Entry] = deque()
        self._largest_output = 0.0
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    def estimate(self, characters: int, max_tokens: int | None) -> float:
        """Tokens of a request before it is sent: three characters per token, and the largest
        response so far.
        """
        return characters / 3 + (max_tokens or self._largest_output or _FIRST_OUTPUT)

    @asynccontextmanager
    async def admitted(self, estimate: float) -> AsyncGenerator[Callable[[Usage | None], None]]:
        """Waits until the limit allows a request; the wait does not count towards an attempt's
        timeout.

        A request that fails keeps its estimate: its provider's count is not known.
        """
        clock = asyncio.get_running_loop().time
        with waiting():
            async with self._turn:
                while (seconds := self._wait(estimate, clock())) > 0:
                    self._changed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            await self._changed.wait()

                if self.rate.requests_per_minute is not None:
                    self._next = max(self._next, clock()) + _MINUTE / self.rate.requests_per_minute
                entry = _Entry(estimate)
                self._entries.append(entry)

        try:
            yield partial(self.correct, entry)
        finally:
            entry.ends = clock() + _MINUTE
            self._changed.set()

    def _wait(self, estimate: float, now: float) -> float:
        """Seconds until a request may be sent, or until the next check is useful; 0: now."""
        if self.rate.requests_per_minute is not None:
            seconds = self._next - now
        else:
            seconds = 0.0

        if self.rate.tokens_per_minute is not None:
            counted = []
            for entry in self._entries:
                if entry.ends is None or entry.ends > now:
                    counted.append(entry)

            self._entries = deque(counted)
            if (
                counted
                and sum(entry.tokens for entry in counted) + estimate > self.rate.tokens_per_minute
            ):
                ends = [entry.ends for entry in counted if entry.ends is not None]
                seconds = max(seconds, min(ends, default=now + _MINUTE) - now)
        else:
            self._entries.clear()

        return max(0.0, seconds)

    def correct(self, entry: _Entry, usage: Usage | None) -> None:
        """Replaces the estimate by the usage, if the provider reports it."""
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            entry.tokens = usage.input_tokens + usage.output_tokens
        self.learn(usage)

    def learn(self, usage: Usage | None) -> None:
        """Raises estimates to the size of this response."""
        if usage is not None and usage.output_tokens is not None:
            self._largest_output = max(self._largest_output, usage.output_tokens)


_LIMITS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], Admission]] = (
    WeakKeyDictionary()
)


def limit_rates(
    rates: Mapping[str, Rate],
    limit: Callable[[str, Rate], Admission] = lambda _, rate: RateLimit(rate),
) -> None:
    """Limits models of the running event loop, by `provider:name`. Raises BadOption for a key that
    is not a model.

    `limit` creates each model's limit.
    """
    named = {name: parse_model(name, place="limits") for name in rates}
    limits = {model.limited_as: limit(name, rates[name]) for name, model in named.items()}
    _LIMITS[asyncio.get_running_loop()] = limits


def rate_limit(model: ModelName) -> Admission | None:
    """The limit of a model in the running event loop; None: it has none."""
    return _LIMITS.get(asyncio.get_running_loop(), {}).get(model.limited_as)
