"""The rows of a file by column, some thousand at a time: what is done to a whole column costs a
tenth of what it costs row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any, Protocol, runtime_checkable

from karat.documents.columns import NumberedRow, Row, cell
from karat.formats import text_of

FEW = 64  # rows of any format that are read together
_ODD_SPACES = ("  ", " \0", "\0 ", *"\t\n\v\f\r\x1c\x1d\x1e\x1f")


class Batch:
    """Rows that follow each other in a file."""

    def __init__(
        self,
        numbers: Sequence[int],
        rows: Sequence[Row] | None = None,
        *,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`numbers`: of the rows in the file. `columns`: instead of `rows`, if all is text."""
        self.numbers = numbers
        self._rows, self._columns = rows, columns

    @property
    def rows(self) -> Sequence[Row]:
        """Column → value of each row."""
        if self._rows is None:
            columns = self._columns or {}
            cells = zip(*columns.values(), strict=True)
            self._rows = [dict(zip(columns, row, strict=True)) for row in cells]

        return self._rows

    def column(self, path: str) -> Sequence[Any]:
        """The values under a path; None: a row has none."""
        if self._columns is None:
            return [cell(row, path) for row in self.rows]
        return self._columns.get(path) or [None] * len(self.numbers)

    def texts(self, path: str, text: Callable[[object], str] = text_of) -> Sequence[str]:
        """The same as texts; "": a row has none. `text`: makes one of another value."""
        if self._columns is not None and path in self._columns:
            return self._columns[path]
        return ["" if value is None else text(value) for value in self.column(path)]

    def keys(self, columns: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """The texts in these columns, without differences in white space."""
        if not columns:
            return [()] * len(self.numbers)
        return [*zip(*map(self.spaced, columns), strict=True)]

    def spaced(self, column: str) -> Sequence[str]:
        """The texts with one space between words; mostly, they are so already."""
        texts = self.texts(column)
        together = "\0".join(["", *texts, ""])
        if together.isascii() and not any(mark in together for mark in _ODD_SPACES):
            return texts
        return [*map(" ".join, map(str.split, texts))]

    def others(self, used: Collection[str]) -> Iterable[dict[str, Any]]:
        """The rows without these columns."""
        if self._columns is None:
            return [
                {name: value for name, value in row.items() if name not in used}
                for row in self.rows
            ]

        names = []
        for name in self._columns:
            if name not in used:
                names.append(name)

        if not names:
            return repeat({}, len(self.numbers))
        cells = zip(*map(self._columns.__getitem__, names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in cells]


@runtime_checkable
class Batched(Protocol):
    """Rows of a file that make batches by themselves."""

    def batches(self) -> Iterator[Batch]: ...


class Table:
    """The rows of a file in batches, read anew each time."""

    def __init__(self, rows: Iterable[NumberedRow]) -> None:
        self._rows = rows

    @property
    def columns(self) -> Sequence[str]:
        """The columns of all rows, in the order in which they appear."""
        header: Sequence[str] | None = getattr(self._rows, "header", None)
        if header is not None:
            return header
        rows = (row for batch in self for row in batch.rows)
        return [*dict.fromkeys(chain.from_iterable(rows))]

    def __iter__(self) -> Iterator[Batch]:
        if isinstance(self._rows, Batched):
            yield from self._rows.batches()
            return

        rows = iter(self._rows)
        while block := [*islice(rows, FEW)]:
            yield Batch([number for number, _ in block], [row for _, row in block])
