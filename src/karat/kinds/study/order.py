"""In which order the participants of a study are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

__all__ = ["in_turn"]

_T = TypeVar("_T")


def in_turn(queues: Sequence[Sequence[_T]]) -> Iterator[_T]:
    """All of several queues, in turn, so that any beginning holds about its share of each.

    What changes while a run goes on (an agent's version, its load) then meets all arms alike, and
    the first few are some of each arm. Of equals the earlier queue goes first.

    >>> "".join(in_turn(["aaaa", "bb", "cccc"]))
    'acbacacbac'
    """
    places = sorted(
        ((2 * at + 1) / (2 * len(queue)), number, at) for number, queue in enumerate(queues) for at in range(len(queue))
    )
    return (queues[number][at] for _, number, at in places)
