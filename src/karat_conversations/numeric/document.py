"""The numbers of a report, from which a wrong operand may have been taken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from karat_conversations.numeric.tables import Table, cell_number, cells_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_TEXT: Final = 400_000
"""How many characters of a document's text are searched for numbers."""

MAX_NUMBERS: Final = 4_000
"""How many different numbers of a document are tried as operands: first the table's, then the
text's, in order.
"""

# starts with a set of characters, which makes the search fast
_NUMBER = re.compile(r"[.\d][\d,]*(?:\.\d+)?", re.ASCII)
_MINUS = frozenset("-\u2212(")
_CUT_OFF = frozenset("_.")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)


class Place(NamedTuple):
    """The first occurrence of a number: a cell or a header of the table, or a position in the
    text.
    """

    row: str = ""
    column: str = ""
    at: int = -1  # characters into the text; -1: in the table


@dataclass(frozen=True, eq=False)
class Document:
    """A table and the text around it, and the numbers in them, which are parsed once, on first
    access.
    """

    table: Table | None = None
    text: str = ""

    @cached_property
    def places(self) -> dict[float, Place]:
        """Each number once, at its first occurrence.

        Numbers with a minus or in brackets are also listed by absolute value, because tables are
        often damaged there. A percentage is listed as written and as a share.
        """
        places: dict[float, Place] = {}
        for value, place in _numbers_of_table(self.table):
            places.setdefault(value, place)
            if len(places) >= MAX_NUMBERS:
                return places

        for value, at in self._in_text:
            if value not in places:
                places[value] = Place(at=at)
                if len(places) >= MAX_NUMBERS:
                    return places

        return places

    @cached_property
    def _in_text(self) -> list[tuple[float, int]]:
        return _in_text(self.text[:MAX_TEXT])

    @cached_property
    def grid(self) -> dict[tuple[int, int], float]:
        """The numbers of the table's cells, by row and column, both from 0."""
        rows: dict[str, int] = {}
        columns: dict[str, int] = {}
        grid: dict[tuple[int, int], float] = {}
        for row, column, cell in cells_of(self.table):
            number = cell_number(cell)
            if number is not None and len(grid) < MAX_NUMBERS:
                grid[rows.setdefault(row, len(rows)), columns.setdefault(column, len(columns))] = (
                    number
                )

        return grid

    @cached_property
    def cells(self) -> dict[float, tuple[int, int]]:
        """The first cell of the table that holds a number, with either sign."""
        cells: dict[float, tuple[int, int]] = {}
        for place, number in self.grid.items():
            cells.setdefault(number, place)
        return {**{-number: place for number, place in cells.items()}, **cells}

    def place_of(self, number: float) -> dict[str, str]:
        """The number's location, in words."""
        place = self.places.get(number)
        if place is None:
            return {}
        if place.at < 0:
            return {"row": place.row[:80], "column": place.column[:80]}
        return {"text": " ".join(self.text[max(0, place.at - 40) : place.at + 40].split())}

    @cached_property
    def numbers(self) -> npt.NDArray[np.float64]:
        """The numbers of `places`, in order, except years."""
        import numpy as np

        return np.array([number for number in self.places if not is_year(number)], dtype=np.float64)


def is_year(number: float) -> bool:
    """Whether a number of a report is more likely a year than an amount."""
    return number in _YEARS


_YEARS: Final = frozenset(map(float, range(1980, 2051)))


def _numbers_of_table(table: Table | None) -> Iterator[tuple[float, Place]]:
    is_row = {}  # header → whether of a row
    for row, column, cell in cells_of(table):
        number = cell_number(cell)
        if number is not None:
            if number < 0:
                values = [number, -number]
            else:
                values = [number]
        else:
            if isinstance(cell, str):
                values = [value for value, _ in _in_text(cell)]
            else:
                values = []

        if values:
            place = Place(row, column)
            yield from [(value, place) for value in values]

        is_row[row], is_row[column] = True, False

    for header, of_row in is_row.items():
        for value, _ in _in_text(header):
            yield value, Place(row=header) if of_row else Place(column=header)


def _in_text(text: str) -> list[tuple[float, int]]:
    """Each number with its position."""
    numbers = []
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        before = text[max(0, start - 4) : start]
        behind = text[end : end + 2]
        if behind[:1].isalpha() or before[-1:].isalnum() or before[-1:] in _CUT_OFF:
            continue
        digits = match[0]
        if "," not in digits or _THOUSANDS.fullmatch(digits):
            pieces = [digits]
        else:
            pieces = digits.split(",")

        minus = before.rstrip(" $")[-1:] in _MINUS
        share = "%" in behind and behind.strip()[0] == "%"
        for piece in pieces:
            bare = piece.replace(",", "")
            # a full stop, thirty digits: no number of a report
            if bare in {"", "."} or len(bare) > 30:
                continue
            number = float(bare)
            if number:
                for value in (number, -number) if minus else (number,):
                    numbers.append((value, start))
                    if share:
                        numbers.append((value / 100, start))

    return numbers
