"""Rows of errors whose questions were asked again: attempts, and no repetitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from karat.formats import plural


class Attempts:
    """Tells failed rows that were repeated until there was an answer from repetitions without one.

    First `add` every row, then ask for each failed one whether it `was_repeated`. Where groups
    (a question under a condition) without failed rows all have the same number of rows, more of
    them in a group with failed rows are attempts. Where all groups have the same number of rows,
    each failed one is a repetition that is lost.
    """

    def __init__(self) -> None:
        self._answered = Counter[Hashable]()
        self._failed = Counter[Hashable]()
        self._left: Counter[Hashable] | None = None  # attempts by group, once all rows are known
        self._number = 0

    def add(self, group: Hashable, *, failed: bool) -> None:
        """The next row."""
        if failed:
            self._failed[group] += 1
        else:
            self._answered[group] += 1

    def was_repeated(self, group: Hashable) -> bool:
        """Whether a failed row of this group is an attempt: then it does not count."""
        if self._left is None:
            self._left = self._superfluous()
        if not self._left[group]:
            return False
        self._left[group] -= 1
        self._number += 1
        return True

    def _superfluous(self) -> Counter[Hashable]:
        sizes = set()
        for group, size in self._answered.items():
            if group not in self._failed:
                sizes.add(size)

        found = Counter[Hashable]()
        if len(sizes) != 1:
            return found
        (planned,) = sizes
        for group, failed in self._failed.items():
            more = failed + self._answered[group] - planned
            found[group] = max(0, min(failed, more))

        return found

    def sentence(self) -> str | None:
        """How many rows do not count; None: each does."""
        if not self._number:
            return None
        rows = plural(self._number, "row")
        return (
            f"{rows} with an error left out, since the question was asked again: an attempt is no "
            "repetition; if it is one, number repetitions in a column 'repetition'"
        )
