"""Tokens of a response, and an attempt's cost and clock, which stops while a provider makes it
wait.

The engine opens a meter around every attempt. Whatever ends the attempt – a timeout, a
crash, a limit – the tokens and dollars of the responses that had arrived are known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any

import msgspec

from karat.records import Usage


class Meter(msgspec.Struct):
    """Sums over the responses of a block."""

    timeout: asyncio.Timeout | None = None  # of the attempt: stopped while a provider makes it wait
    outer: Meter | None = None
    usage: Usage | None = None  # None: no response reported it
    responses: int = 0
    priced: float | None = 0.0  # dollars; None: some response has no known price
    waits: int = 0  # open `waiting` blocks
    waited: float = 0.0  # seconds of closed `waiting` blocks; those that overlap count once
    waiting_since: float = 0.0
    remaining: float = 0.0  # seconds of the timeout, while it is stopped

    @property
    def dollars(self) -> float | None:
        """None: there was no response, or one whose price is not known."""
        return self.priced if self.responses else None

    def add(self, usage: Usage | None, dollars: float | None) -> None:
        """Counts one response, here and in the enclosing meters."""
        self.responses += 1
        self.usage = total(self.usage, usage)
        if dollars is None or self.priced is None:
            self.priced = None
        else:
            self.priced = self.priced + dollars

        if self.outer is not None:
            self.outer.add(usage, dollars)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A block whose duration counts neither towards the attempt's timeout nor towards its
        latency.
        """
        clock = asyncio.get_running_loop().time
        if not self.waits:
            self.waiting_since = clock()
            if self.timeout is not None and not self.timeout.expired():
                when = self.timeout.when()
                if when is not None:
                    self.remaining = when - clock()
                    self.timeout.reschedule(None)

        self.waits += 1
        try:
            with self.outer.waiting() if self.outer is not None else nullcontext():
                yield
        finally:
            self.waits -= 1
            if not self.waits:
                self.waited += clock() - self.waiting_since
                if self.timeout is not None and self.timeout.when() is None:
                    with suppress(RuntimeError):  # the attempt is over already
                        self.timeout.reschedule(clock() + self.remaining)


METER: ContextVar[Meter | None] = ContextVar("karat_meter", default=None)
"""The meter around the current call; a task that is started within counts for it, too."""


@contextmanager
def metered(timeout: asyncio.Timeout | None = None) -> Iterator[Meter]:
    """`with metered() as meter:` counts every response that arrives in the block, including tasks
    that it starts.
    """
    meter = Meter(timeout, METER.get())
    token = METER.set(meter)
    try:
        yield meter
    finally:
        METER.reset(token)


def spent(usage: Usage | None, dollars: float | None) -> None:
    """Counts one response in the enclosing meters."""
    meter = METER.get()
    if meter is not None:
        meter.add(usage, dollars)


@contextmanager
def waiting() -> Iterator[None]:
    """A block in which the enclosing attempt waits for a provider."""
    meter = METER.get()
    if meter is None:
        yield
    else:
        with meter.waiting():
            yield


def usage_of(counted: Any) -> Usage | None:
    """The tokens of one response or of a run, as pydantic-ai counts them; None: the provider did
    not report them.

    Input tokens include cached ones, output tokens include reasoning. Kinds that a provider
    does not count are None if pydantic-ai has a zero and the details do not mention them.
    """
    if counted is None or not (counted.input_tokens or counted.output_tokens):
        return None
    reasoning = getattr(counted, "output_reasoning_tokens", 0) or counted.details.get(
        "reasoning_tokens", 0
    )
    return Usage(
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.cache_read_tokens or None,
        cache_write_tokens=counted.cache_write_tokens or None,
        reasoning_tokens=reasoning or None,
    )


def stop_reason(response: Any) -> str | None:
    """Why a response of pydantic-ai ends there: by its word, or the provider's where it knows
    none.
    """
    given = response.finish_reason or (response.provider_details or {}).get("finish_reason")
    return given if isinstance(given, str) else None


def total(first: Usage | None, second: Usage | None) -> Usage | None:
    """The sum of both. If one does not know a number, the other's is used.

    >>> total(Usage(input_tokens=1), Usage(input_tokens=2, output_tokens=3))
    Usage(input_tokens=3, output_tokens=3, cache_read_tokens=None, cache_write_tokens=None,
    reasoning_tokens=None)
    """
    if first is None or second is None:
        return first or second
    counts = msgspec.structs.asdict(first)
    for name, more in msgspec.structs.asdict(second).items():
        if counts[name] is None:
            counts[name] = more
        else:
            counts[name] += more or 0

    return Usage(**counts)


def less(whole: Usage, part: Usage | None) -> Usage:
    """The rest of the whole; never below 0, and None if the whole is not known."""
    if part is None:
        return whole
    rest = msgspec.structs.asdict(whole)
    for name, less_by in msgspec.structs.asdict(part).items():
        if rest[name] is not None:
            rest[name] = max(0, rest[name] - (less_by or 0))

    return Usage(**rest)
