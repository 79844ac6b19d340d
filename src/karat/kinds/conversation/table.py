"""The table of a report: checked, described, and written as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karat.formats import count

__all__ = ["Table", "cell_text", "has_duplicate_columns", "has_non_numeric_values", "rendered", "wrong_with"]

Table = Mapping[str, Mapping[str, Any]] | Sequence[Sequence[Any]]
"""`{column: {row: value}}`, or rows of cells: the first row is the heading, the first cell of a row its label."""

_MOST_CELLS = 100_000  # once written out: columns that share no row are as sparse as they are many
_NUMERIC = re.compile(r"[\s$€£¥()%,.+\-−0-9]*[0-9][\s$€£¥()%,.+\-−0-9]*")


def wrong_with(table: Any) -> str | None:
    """What is wrong with a value that should be a table; None: nothing."""
    if isinstance(table, dict):
        if not all(isinstance(column, dict) for column in table.values()):
            return "must be an object of columns, {column: {row: value}}, or a list of rows"
        cells = [cell for column in table.values() for cell in column.values()]
        size = len(table) * len({label for column in table.values() for label in column})
    elif isinstance(table, list):
        if not all(isinstance(row, list) for row in table):
            return "must be a list of rows, [[cell, …], …], or an object of columns"
        cells = [cell for row in table for cell in row]
        size = len(table) * max((len(row) for row in table), default=0)
    else:
        return "must be an object of columns, {column: {row: value}}, or a list of rows, [[cell, …], …]"
    if size > _MOST_CELLS:
        return f"would have {count(size)} cells written out, more than {count(_MOST_CELLS)}"
    if any(isinstance(cell, (dict, list)) for cell in cells):
        return "has a cell that is a list or an object; a cell is a number or a text"
    return None


def rendered(table: Table) -> str:
    """The table in Markdown, as the agent reads it; "" where there are no cells.

    >>> print(rendered({"2007": {"price": 60.94, "volatility": -27.0}, "2006": {"price": 37.84}}))
    |  | 2007 | 2006 |
    | --- | --- | --- |
    | price | 60.94 | 37.84 |
    | volatility | -27 |  |
    """
    rows = [[cell_text(cell) for cell in row] for row in _rows(table)]
    wide = max((len(row) for row in rows), default=0)
    if not wide:
        return ""
    first, *others = [[*row, *[""] * (wide - len(row))] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [first, ["---"] * wide, *others])


def cell_text(cell: Any) -> str:
    """One cell on one line: whole numbers without `.0`, a bar so that it ends no cell.

    >>> cell_text(20454.0), cell_text("a|b"), cell_text(None)
    ('20454', 'a\\\\|b', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return " ".join(str(cell).split()).replace("|", "\\|")


def has_duplicate_columns(table: Table) -> bool:
    """Whether two columns have one name; cleaned tables number them: `2008 (1)`, `2008 (2)`."""
    if isinstance(table, Mapping):
        return any(re.search(r"\(\d\)$", name) for name in table)
    names = [str(cell).strip() for cell in (table[0][1:] if table else [])]
    return len(set(names)) < len(names)


def has_non_numeric_values(table: Table) -> bool:
    """Whether a cell is no number, labels and headings apart."""
    if isinstance(table, Mapping):
        return any(isinstance(cell, str) for column in table.values() for cell in column.values())
    return any(not _NUMERIC.fullmatch(str(cell)) for row in table[1:] for cell in row[1:])


def _rows(table: Table) -> Iterable[Sequence[Any]]:
    if not isinstance(table, Mapping):
        return table
    labels = dict.fromkeys(label for column in table.values() for label in column)
    body = ([label, *(column.get(label) for column in table.values())] for label in labels)
    return [["", *table], *body] if table else []
