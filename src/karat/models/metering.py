"""What an attempt has spent so far, and its clock, which stops while a provider makes it wait.

The engine opens a meter around every attempt. Whatever ends the attempt – a timeout, a
crash, a limit – the tokens and dollars of the responses that had arrived are known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar

from karat.models.usage import total
from karat.records import Usage

__all__ = ["Meter", "metered", "spent", "waiting"]


class Meter:
    """Sums over the responses of a block."""

    def __init__(self, timeout: asyncio.Timeout | None = None, *, outer: Meter | None = None) -> None:
        self.usage: Usage | None = None  # None: no response reported it
        self.responses = 0
        self._dollars: float | None = 0.0
        self._timeout, self._outer = timeout, outer
        self._waits, self._left = 0, 0.0

    def __enter__(self) -> Meter:
        self._token = _METER.set(self)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        _METER.reset(self._token)

    @property
    def dollars(self) -> float | None:
        """None: there was no response, or one whose price is not known."""
        return self._dollars if self.responses else None

    def add(self, usage: Usage | None, dollars: float | None) -> None:
        """Counts one response, here and in the meters around."""
        self.responses += 1
        self.usage = total(self.usage, usage)
        self._dollars = None if dollars is None or self._dollars is None else self._dollars + dollars
        if self._outer is not None:
            self._outer.add(usage, dollars)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A block whose length does not count against the attempt's timeout."""
        if self._timeout is None:
            with self._outer.waiting() if self._outer is not None else nullcontext():
                yield
            return
        clock = asyncio.get_running_loop().time
        when = self._timeout.when()
        if not self._waits and when is not None and not self._timeout.expired():
            self._left = when - clock()
            self._timeout.reschedule(None)
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits and self._timeout.when() is None:
                with suppress(RuntimeError):  # the attempt is over already
                    self._timeout.reschedule(clock() + self._left)


_METER: ContextVar[Meter | None] = ContextVar("karat_meter", default=None)


def metered(timeout: asyncio.Timeout | None = None) -> Meter:
    """`with metered() as meter:` counts every response that arrives in the block, tasks that it starts included."""
    return Meter(timeout, outer=_METER.get())


def spent(usage: Usage | None, dollars: float | None) -> None:
    """Counts one response in the meters around this call."""
    meter = _METER.get()
    if meter is not None:
        meter.add(usage, dollars)


@contextmanager
def waiting() -> Iterator[None]:
    """A block in which the attempt around it waits for a provider."""
    meter = _METER.get()
    if meter is None:
        yield
    else:
        with meter.waiting():
            yield
