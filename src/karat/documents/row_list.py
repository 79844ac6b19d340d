"""The rows of a file that could be read, and the faults of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from karat.documents.columns import LOOKED_AT, Column, NumberedRow, Row, columns_of
from karat.documents.hub import shown
from karat.documents.storable import why_unfit
from karat.errors import BadDataset, Fault

MOST_FAULTS = 100_000  # rows; then reading stops


class TooManyFaults(Exception):
    """Reading stops."""


class Rows(msgspec.Struct):
    """The rows of a file that could be read, and the faults of the others."""

    sha256: str
    unit: str  # the word for a row: "line", "item", "row"
    rows: Iterable[NumberedRow] = []  # (1-based line or count, row); can be iterated repeatedly
    count: int = 0
    faults: list[Fault] = []
    as_text: str = "write it in quotes"  # how to make a number a text in this format
    commit: str | None = None  # of the Hub repository; None: local files
    notes: list[str] = []  # what was not plain about the file: its encoding, where its rows are
    most: int | None = None  # rows to read of a file that need not be read as a whole; None: all
    unread: int = 0  # further rows: their number is known, and nothing else
    regrouped: bool = False  # whether each is made of rows that are messages or exchanges
    columns: Sequence[str] = ()  # of every row; (): rows may differ

    def emptied(self, *notes: str) -> Rows:
        """The same without a row, to be filled with rows made of these; and with further notes."""
        said = [*self.notes, *notes]
        return msgspec.structs.replace(self, rows=[], count=0, columns=(), notes=said)

    def first_rows(self) -> list[Row]:
        """The rows that decide what columns hold."""
        return [row for _, row in islice(self.rows, LOOKED_AT)]

    def seen_columns(self) -> dict[str, Column]:
        """What the columns hold, by the first rows."""
        return columns_of(self.first_rows())

    def room(self, most: int) -> int:
        """How many more rows are wanted, of at most so many."""
        if self.most is None:
            return most
        return min(most, self.most - self.count)

    def enough(self) -> bool:
        """Whether no more rows are wanted; then counts one that is left unread."""
        if self.most is None or self.count < self.most:
            return False
        self.unread += 1
        return True

    def add(self, number: int, row: Row) -> None:
        """Keeps one row, or records why it cannot be stored."""
        assert isinstance(self.rows, list)
        wrong = why_unfit(row)
        if wrong is not None:
            self.fault(number, wrong)
            return

        self.rows.append((number, row))
        self.count += 1

    def fault(self, number: int, message: str) -> None:
        """Records a fault of one row. Raises TooManyFaults."""
        self.faults.append(Fault(place=f"{self.unit} {number}", message=message))
        if len(self.faults) == MOST_FAULTS:
            raise TooManyFaults

    def sorted_faults(self) -> list[Fault]:
        """The faults in the order of the file."""
        return in_order(self.faults)


def in_order(faults: Iterable[Fault]) -> list[Fault]:
    """Faults of rows, in the order of the file."""
    return sorted(faults, key=lambda fault: int(fault.place.rpartition(" ")[2]))


def bad(path: Path, place: str, message: str) -> BadDataset:
    """One fault of a file."""
    return BadDataset(shown(path), [Fault(place=place, message=message)])
