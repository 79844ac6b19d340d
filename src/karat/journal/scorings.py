"""Which scorings of several rows are whole: a kill may stand between two of their rows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Torn"]

_Scoring = TypeVar("_Scoring", bound=Hashable)
_Place = TypeVar("_Place", bound=Hashable)


class Torn(Generic[_Scoring, _Place]):
    """The scorings that lack rows, by whatever tells one from another; a row's place is its turn, judge and repeat.

    A torn scoring may be made again from its first row, so distinct places count and not lines.

    >>> torn = Torn()
    >>> torn.completes("equals of q1", (0, None, 0), rows=2), torn.completes("equals of q1", (0, None, 0), rows=2)
    (False, False)
    >>> torn.completes("equals of q1", (1, None, 0), rows=2), torn.there
    (True, {})
    """

    __slots__ = ("there",)

    def __init__(self) -> None:
        self.there: dict[_Scoring, set[_Place]] = {}  # scoring → its rows, where some are missing

    def completes(self, scoring: _Scoring, place: _Place, *, rows: int) -> bool:
        """Whether this row makes its scoring of so many rows whole. Not to be asked of one that is whole already."""
        if rows <= 1:
            return True
        seen = self.there.setdefault(scoring, set())
        seen.add(place)
        if len(seen) < rows:
            return False
        del self.there[scoring]
        return True
