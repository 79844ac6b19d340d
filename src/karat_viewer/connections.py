"""Limits on connections: how long a request's head may take, and how many may be open without the
cookie.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""For the head of a request, and for a new connection until a request on it shows the cookie or the
token.
"""

MOST_UNAUTHENTICATED = 64
"""Open connections that have shown neither.

Above this, the oldest is closed, those without a request first.
"""

# many connections are accepted before the first is read: none counts as idle until then
_SETTLE_SECONDS = 0.1


class LimitedConnection(H11Protocol):
    """uvicorn's connection with the limits above, which it lacks. Its own limit for idle
    connections stays.

    Call a request's `scope["state"]["authenticate"]` once its sender is known.
    """

    head_seconds = HEAD_SECONDS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.app_state = {**self.app_state, "authenticate": self._authenticate}
        self.authenticated = False
        self.since = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        self._start_deadline()
        self.loop.call_later(_SETTLE_SECONDS, self._make_room)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.authenticated:
            return  # its deadline stays, whatever it sends
        if self.is_busy():
            self._stop_deadline()
        elif self._deadline is None:
            self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        super().connection_lost(exc)

    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _authenticate(self) -> None:
        if not self.authenticated:
            self.authenticated = True
            self._stop_deadline()

    def _make_room(self) -> None:
        counted = [
            other
            for other in self.connections
            if isinstance(other, LimitedConnection)
            and not (other.authenticated or other.transport.is_closing())
        ]
        counted.sort(key=lambda other: (other.is_busy(), other.since))
        for other in counted[: max(0, len(counted) - MOST_UNAUTHENTICATED)]:
            other.transport.abort()

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self._end)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        if self.authenticated:
            self.transport.close()  # pending data is still sent
        else:
            self.transport.abort()
