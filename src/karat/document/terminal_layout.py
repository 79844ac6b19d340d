"""Aligned columns for the terminal. Cells are plain text, so that no foreign name is read as markup.

Unlike a table of rich, a row may be one title over all columns, and a name that is too long
for its column gets a line of its own instead of being folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from karat import formats

__all__ = ["Cell", "Columns", "Section"]

Cell = tuple[str, str]
"""Text and style."""

_GAP = 2
_INDENT = 2


class Columns:
    """A heading, rows and titles; the first column is a name, the others are numbers, set right."""

    def __init__(self, heads: Sequence[str], *, left: Sequence[str] = ()) -> None:
        self._heads = [(head, "dim") for head in heads]
        self._left = [place == 0 or head in left for place, head in enumerate(heads)]
        self._rows: list[list[Cell] | Text | None] = []

    def title(self, text: Text) -> None:
        self._rows.append(text)

    def rule(self) -> None:
        self._rows.append(None)

    def row(self, name: str, cells: Sequence[Cell], *, indent: int = 0) -> None:
        self._rows.append([(" " * indent + formats.clean(name), ""), *cells])

    def lines(self, width: int) -> list[Text]:
        """The table, indented, no line wider than asked for (unless the numbers alone are)."""
        rows = [row for row in self._rows if isinstance(row, list)]
        columns = list(zip(self._heads, *rows, strict=True))
        widths = [max(formats.width(text) for text, _ in column) for column in columns]
        room = width - _INDENT - sum(widths[1:]) - _GAP * (len(widths) - 1)
        widths[0] = min(widths[0], max(room, 2))
        total = sum(widths) + _GAP * (len(widths) - 1)
        lines = [self._line(self._heads, widths), Text("─" * total, style="dim")]
        for row in self._rows:
            if row is None:
                lines.append(Text("─" * total, style="dim"))
            elif isinstance(row, Text):
                row.truncate(max(total, width - _INDENT), overflow="ellipsis")
                lines.append(row)
            elif formats.width(row[0][0]) > widths[0]:
                lines.append(Text(formats.cut(row[0][0], width - _INDENT)))
                lines.append(self._line([("", ""), *row[1:]], widths))
            else:
                lines.append(self._line(row, widths))
        return [Text(" " * _INDENT, no_wrap=True).append_text(line) for line in lines]

    def _line(self, cells: Sequence[Cell], widths: Sequence[int]) -> Text:
        line = Text()
        for place, ((text, style), wide, left) in enumerate(zip(cells, widths, self._left, strict=True)):
            blank = " " * (wide - formats.width(text))
            line.append(" " * _GAP if place else "")
            line.append("" if left else blank).append(text, style=style or None).append(blank if left else "")
        line.rstrip()
        return line


class Section(NamedTuple):
    """A table with its title and what a reader must know."""

    title: str
    table: Columns
    legend: str = ""
