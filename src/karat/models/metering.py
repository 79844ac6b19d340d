"""What an attempt has spent so far, and its clock, which stops while a provider makes it wait.

The engine opens a meter around every attempt. Whatever ends the attempt – a timeout, a
crash, a limit – the tokens and dollars of the responses that had arrived are known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar

import msgspec

from karat.models.usage import total
from karat.records import Usage

__all__ = ["METER", "Meter", "metered", "spent", "waiting"]


class Meter(msgspec.Struct):
    """Sums over the responses of a block."""

    timeout: asyncio.Timeout | None = None  # of the attempt: it stops while a provider makes the attempt wait
    outer: Meter | None = None
    usage: Usage | None = None  # None: no response reported it
    responses: int = 0
    priced: float | None = 0.0  # dollars; None: some response has no known price
    waits: int = 0  # blocks of `waiting` that are open
    remaining: float = 0.0  # seconds of the timeout, while it is stopped

    @property
    def dollars(self) -> float | None:
        """None: there was no response, or one whose price is not known."""
        return self.priced if self.responses else None

    def add(self, usage: Usage | None, dollars: float | None) -> None:
        """Counts one response, here and in the meters around."""
        self.responses += 1
        self.usage = total(self.usage, usage)
        self.priced = None if dollars is None or self.priced is None else self.priced + dollars
        if self.outer is not None:
            self.outer.add(usage, dollars)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A block whose length does not count against the attempt's timeout."""
        if self.timeout is None:
            with self.outer.waiting() if self.outer is not None else nullcontext():
                yield
            return
        clock = asyncio.get_running_loop().time
        when = self.timeout.when()
        if not self.waits and when is not None and not self.timeout.expired():
            self.remaining = when - clock()
            self.timeout.reschedule(None)
        self.waits += 1
        try:
            yield
        finally:
            self.waits -= 1
            if not self.waits and self.timeout.when() is None:
                with suppress(RuntimeError):  # the attempt is over already
                    self.timeout.reschedule(clock() + self.remaining)


METER: ContextVar[Meter | None] = ContextVar("karat_meter", default=None)
"""The meter around the current call; a task that is started within counts for it, too."""


@contextmanager
def metered(timeout: asyncio.Timeout | None = None) -> Iterator[Meter]:
    """`with metered() as meter:` counts every response that arrives in the block, tasks that it starts included."""
    meter = Meter(timeout, METER.get())
    token = METER.set(meter)
    try:
        yield meter
    finally:
        METER.reset(token)


def spent(usage: Usage | None, dollars: float | None) -> None:
    """Counts one response in the meters around this call."""
    meter = METER.get()
    if meter is not None:
        meter.add(usage, dollars)


@contextmanager
def waiting() -> Iterator[None]:
    """A block in which the attempt around it waits for a provider."""
    meter = METER.get()
    if meter is None:
        yield
    else:
        with meter.waiting():
            yield
