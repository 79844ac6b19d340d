"""Which turns of a trial are still to be asked, in which sessions, and what is sent."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

import msgspec

from karat.agents import Resumable, Session
from karat.records import Reply, Sample, Turn

__all__ = ["as_sent", "sittings", "taken_up"]


def sittings(sample: Sample, kept: int) -> Iterator[tuple[int, int]]:
    """The turns of each session: from the first to the one before the second. `kept`: so many are answered."""
    count = len(sample.turns)
    if not sample.apart:
        if kept < count:
            yield 0, count
        return
    for number in range(kept, count):
        yield number, number + 1


def as_sent(turn: Turn) -> Turn:
    """The turn with what is sent as its question: all that an agent knows of."""
    return turn if turn.asked is None else msgspec.structs.replace(turn, question=turn.asked)


async def taken_up(session: Session, sample: Sample, kept: Sequence[Reply]) -> Sequence[Reply]:
    """The replies behind which the session goes on: `kept`, or none where it cannot be told of them."""
    if not isinstance(session, Resumable):
        return ()
    told = session.restore([(as_sent(turn), reply) for turn, reply in zip(sample.turns, kept, strict=False)])
    if inspect.isawaitable(told):
        await told
    return kept
