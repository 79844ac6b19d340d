"""Which of millions of things were met before, by their hashes, in a few bytes each.

Two things with one hash are taken as the same: of a million texts, that befalls one set in some
ten million.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable

_FIRST = 2**10  # slots
_FEW = 100_000  # things: no need to load numpy


class HashSet:
    """Says at once whether a thing is new; 16 to 32 bytes each. It cannot be listed.

    >>> met = HashSet()
    >>> met.add("a"), met.add("b"), met.add("a"), len(met)
    (True, True, False, 2)
    """

    def __init__(self) -> None:
        self._slots = array("q", bytes(8 * _FIRST))  # 0: free
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, thing: Hashable) -> bool:
        """Whether the thing is new."""
        code = hash(thing) or -1  # which is no object's hash
        slots = self._slots
        mask = len(slots) - 1
        at = code & mask
        while there := slots[at]:
            if there == code:
                return False
            at = (at + 1) & mask

        slots[at] = code
        self._count += 1
        if 2 * self._count > mask:
            slots = array("q", bytes(16 * len(self._slots)))
            mask = len(slots) - 1
            for code in filter(None, self._slots):
                at = code & mask
                while slots[at]:
                    at = (at + 1) & mask
                slots[at] = code

            self._slots = slots
        return True


class Tally:
    """Says at the end how many different things there were, and which came again; 8 bytes each.

    >>> met = Tally()
    >>> met.update("abca")
    >>> met.different(), met.again() == {hash("a")}
    (3, True)
    """

    def __init__(self) -> None:
        self._codes = array("q")

    def __len__(self) -> int:
        return len(self._codes)

    def update(self, things: Iterable[Hashable]) -> None:
        """Counts each."""
        self._codes.extend(map(hash, things))

    def different(self) -> int:
        """How many different things there were."""
        if len(self._codes) < _FEW:
            return len({*self._codes})
        import numpy as np

        return len(np.unique(self._codes))

    def again(self) -> set[int]:
        """The hashes of those that there were several of."""
        import numpy as np

        codes, counts = np.unique(self._codes, return_counts=True)
        return {*codes[counts > 1].tolist()}
