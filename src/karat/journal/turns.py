"""A trial of several turns, as its lines in the journal tell it.

A `reply` line stands for a turn that was answered and paid for. An attempt that follows a
failed one, or a kill, goes on behind those turns where its agent can take up a conversation
(its next line has the next turn), or begins anew (its next line has turn 0 again). So a
reply takes the place of whatever stood at its turn and behind, in any journal of any age.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

__all__ = ["MISSED_GATE", "Conversation"]

_Reply = TypeVar("_Reply")

MISSED_GATE = "gate_"
"""Begins the kinds of failures that concern all turns together: the next attempt begins anew."""


class Conversation(Generic[_Reply]):
    """What was said of a trial that has no answer yet; of each reply whatever the reader keeps of it."""

    __slots__ = ("_missed", "replies", "told")

    def __init__(self) -> None:
        self.replies: list[_Reply] = []  # of the conversation as it stands, from turn 0
        self.told = 0  # how many lines the attempt that goes on has
        self._missed = False

    def add(self, turn: int, reply: _Reply) -> list[_Reply]:
        """Takes a reply; gives those that are said in vain now."""
        self.told += 1
        self._missed = False
        vain = self.replies[turn:]
        if turn > len(self.replies):  # its beginning is lost, by nothing that karat does
            vain, self.replies = [*self.replies, reply], []
        else:
            self.replies[turn:] = [reply]
        return vain

    def failed(self, kind: str) -> int:
        """An attempt failed: how many of its replies had lines of their own. They come first among its replies."""
        told, self.told = self.told, 0
        self._missed = self._missed or kind.startswith(MISSED_GATE)
        return told

    def broken_off(self) -> None:
        """The process ended: the next attempt is another one."""
        self.told = 0

    @property
    def taken_up(self) -> Sequence[_Reply]:
        """What the next attempt may go on from."""
        return () if self._missed else self.replies
