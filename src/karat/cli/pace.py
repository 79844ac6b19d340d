"""How fast trials come to their end, and what that says of the rest."""

from __future__ import annotations

from collections import deque

__all__ = ["ENOUGH", "Pace", "in_all"]

ENOUGH = 3
"""Trials: from fewer nothing can be said of the rest."""

_MANY = 30
_LEAST_SECONDS = 30.0
_BETWEEN_MARKS = 1.0  # seconds
_MOST_MARKS = 1000


class Pace:
    """The rate at which trials were settled lately.

    Trials come in crowds, one after each wait for a model, and a provider that refuses stops
    them for minutes. So the stretch that is looked at is at least half a minute long, has
    seen at least thirty trials end and three times those in flight, and reaches to now,
    also where nothing happens. Attempts do not count: what is tried again has not ended.
    """

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, now: float, settled: int) -> None:
        """What a clock and the count of settled trials show; the first note is where the run begins."""
        if self._marks and now < self._marks[-1][0] + _BETWEEN_MARKS:
            return
        self._marks.append((now, settled))
        if len(self._marks) > _MOST_MARKS:
            # Every second one: far back, whole seconds make no difference.
            self._marks = deque(mark for index, mark in enumerate(self._marks) if index % 2 == 0)

    def per_second(self, now: float, settled: int, *, in_flight: int) -> float | None:
        """Trials a second; None where too few have ended."""
        if not self._marks:
            return None
        wanted = max(_MANY, 3 * in_flight)
        since, before = self._marks[0]
        found = False
        for at, count in reversed(self._marks):
            if found and count != before:
                break  # the stretch begins where a crowd has just come in, not where the next one does
            if found or (settled - count >= wanted and now - at >= _LEAST_SECONDS):
                since, before, found = at, count, True
        return (settled - before) / (now - since) if settled - before >= ENOUGH and now > since else None


def in_all(spent: float, *, over: float, left: float) -> float | None:
    """What will have been spent, if each of those that are left costs what each of `over` cost.

    >>> in_all(2.0, over=10, left=30), in_all(2.0, over=2, left=30), in_all(2.0, over=2, left=0)
    (8.0, None, 2.0)
    """
    if left <= 0:
        return spent
    return spent * (over + left) / over if over >= ENOUGH else None
