"""What a layout is: it makes rows with a question or a chat each of rows that hold them otherwise.

One file per layout. Rows are as their file has them where none is installed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from karat import plugins
from karat.documents.row_list import Rows

__all__ = ["Layout", "Unasked", "laid_out", "speakers", "unasked"]


class Unasked(msgspec.Struct, frozen=True):
    """What rows hold that have no question."""

    message: str  # the end of a sentence
    question: tuple[str, ...] = ()  # the paths of what is yet to be asked, in several turns


class Layout(Protocol):
    """Knows one way in which a row or several hold what is asked."""

    def laid_out(
        self, rows: Rows, named: Collection[str], *, agent: Sequence[str] | None, whole: bool
    ) -> Rows:
        """The rows with what is asked in a column of its own; the same rows if they are of another
        layout, or hold all the `named` columns.

        `agent`: the speakers who are the assistant, where all others are users; None: as names say.
        `whole`: turns of a question and an answer are one chat, not rows of their own.
        """

    def speakers(self, rows: Rows) -> Mapping[str, int]:
        """Who speaks in rows in which no name tells the assistant, with the number of their
        messages; none: there are none such.
        """

    def unasked(self, rows: Rows) -> Unasked | None:
        """What rows without a question hold instead; None: unknown."""


def laid_out(
    rows: Rows,
    named: Collection[str] = (),
    *,
    agent: Sequence[str] | None = None,
    whole: bool = False,
) -> Rows:
    """The rows as every layout makes them, one after the other."""
    for layout in _layouts():
        rows = layout.laid_out(rows, named, agent=agent, whole=whole)
    return rows


def speakers(rows: Rows) -> Mapping[str, int]:
    """Who speaks in rows in which no name tells the assistant, with the number of their messages;
    none: there are none such.
    """
    return next(filter(None, (layout.speakers(rows) for layout in _layouts())), {})


def unasked(rows: Rows) -> Unasked | None:
    """What rows without a question hold instead; None: unknown."""
    return next(filter(None, (layout.unasked(rows) for layout in _layouts())), None)


def _layouts() -> list[Layout]:
    return [plugins.find("layouts", name)() for name in plugins.names("layouts")]
