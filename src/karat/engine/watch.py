"""Events → what a person sees of a run while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from karat.journal import Attempt
from karat.models import Limiter
from karat.records import Answer, Score

__all__ = ["Watch"]

Listener = Callable[[Any], None]


class Watch:
    """Running counts for the progress line. Reports never read them: their totals come from the journal."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.planned = 0
        self.before = 0  # answered by earlier parts of the run
        self.answered = 0
        self.settled = 0  # answered and scored, or failed for good
        self.failed = 0  # trials
        self.retries = 0
        self.in_flight = 0
        self.dollars = 0.0
        self.dollars_unknown = False
        self.by_condition: dict[str, int] = {}
        self.notices: list[str] = []
        self.limiters: Mapping[str, Limiter] = {}  # the providers that were asked, by name
        self.draining: str | None = None  # why, once the run is winding down
        self.started = monotonic()
        self._listener = listener

    def saw(self, event: Any) -> None:
        """Counts a journalled event and passes it on."""
        if isinstance(event, Answer):
            self.answered += 1
            self.by_condition[event.condition] = self.by_condition.get(event.condition, 0) + 1
            for reply in event.replies[event.kept :]:
                self._spent(reply.dollars)
                self.dollars_unknown = self.dollars_unknown or reply.dollars is None
        elif isinstance(event, Attempt):
            self.retries += event.retriable
            self._spent(event.dollars)
            for reply in event.replies:
                self._spent(reply.dollars)
        elif isinstance(event, Score):
            self._spent(event.dollars)
        if self._listener is not None:
            self._listener(event)

    def _spent(self, dollars: float | None) -> None:
        if dollars is not None:
            self.dollars += dollars

    def notice(self, text: str) -> None:
        """Something a person should read, once."""
        if text not in self.notices:
            self.notices.append(text)
            if self._listener is not None:
                self._listener(text)

    @property
    def slowed(self) -> dict[str, int]:
        """Providers that refused requests, and how many each gets at a time now."""
        return {name: one.limit for name, one in list(self.limiters.items()) if one.limit is not None}

    @property
    def seconds(self) -> float:
        return monotonic() - self.started
