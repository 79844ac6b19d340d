"""Which of millions of things were met before, by their hashes, in a few bytes each.

Two things with one hash are taken as the same: of a million texts, that befalls one set in some
ten million.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FIRST = 2**10  # slots
_FEW = 100_000  # things: no need to load numpy


class HashSet:
    """Says at once whether a thing is new; 16 to 24 bytes each. It cannot be listed.

    >>> met = HashSet()
    >>> met.add("a"), met.add("b"), met.add("a"), len(met), met.number("b")
    (True, True, False, 2, 1)
    """

    def __init__(self) -> None:
        self._codes = array("q")  # hashes, in the order of the things
        self._slots = array("i", bytes(4 * _FIRST))  # number of a thing, from 1; 0: free

    def __len__(self) -> int:
        return len(self._codes)

    def add(self, thing: Hashable) -> bool:
        """Whether the thing is new."""
        return len(self._codes) == self.number(thing)

    def number(self, thing: Hashable) -> int:
        """How many other things were met before this one was for the first time."""
        code = hash(thing)
        codes, slots = self._codes, self._slots
        mask = len(slots) - 1
        at = code & mask
        while number := slots[at]:
            if codes[number - 1] == code:
                return number - 1
            at = (at + 1) & mask

        codes.append(code)
        slots[at] = len(codes)
        if 2 * len(codes) > mask:
            slots = self._slots = array("i", bytes(8 * len(slots)))
            mask = len(slots) - 1
            for number, code in enumerate(codes, start=1):
                at = code & mask
                while slots[at]:
                    at = (at + 1) & mask
                slots[at] = number

        return len(codes) - 1


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
        return len(self._codes) - len(self._later())

    def again(self) -> set[int]:
        """The hashes of those that there were several of."""
        return {*self._later().tolist()}

    def counts(self) -> NDArray[np.int64]:
        """How often there was each thing, in no order."""
        import numpy as np

        codes: NDArray[np.int64] = np.sort(self._codes)
        firsts = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
        return np.diff(firsts, append=len(codes))

    def usual(self) -> int:
        """How often there was a thing, mostly; 0: there was none."""
        import numpy as np

        if not self._codes:
            return 0
        return int(np.bincount(self.counts()).argmax())

    def _later(self) -> NDArray[np.int64]:
        """The hashes that there were before, once for each time."""
        import numpy as np

        # of a million, a hundred times as fast as `np.unique`
        codes: NDArray[np.int64] = np.sort(self._codes)
        later: NDArray[np.int64] = codes[1:][codes[1:] == codes[:-1]]
        return later
