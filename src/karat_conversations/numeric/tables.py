"""Rows of a table as numbers: cells as annual reports print them, labels matched exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from karat_conversations.numeric.trees import ExecutionError
from karat_conversations.numeric.values import read_literal, written

Table = Sequence[Sequence[object]] | Mapping[str, Mapping[str, object]]
"""Rows that start with their label (the first row has the column names), or `{column: {row:
value}}`.
"""

MOST = 1e308
_BLANK = frozenset({"", "-", "\u2212", "\u2013", "\u2014"})
_SIGNS = frozenset("-+\u2212")
_CURRENCY = str.maketrans("", "", "$€£¥")


def row_numbers(table: Table | None, label: str) -> list[Decimal] | ExecutionError:
    """The exact numbers of the only row with this label; blank and `-` cells are skipped."""
    rows = rows_called(table, label)
    if len(rows) != 1:
        return ExecutionError("unknown_row", f"{len(rows)} rows are called {label[:40]!r}")
    numbers = []
    for cell in rows[0]:
        if is_blank(cell):
            continue
        number = exact_number(cell)
        if number is None:
            return ExecutionError(
                "not_a_number", f"{str(cell)[:40]!r} in row {label[:40]!r} is not a number"
            )

        numbers.append(number)

    return numbers or ExecutionError("not_a_number", f"row {label[:40]!r} has no number")


def one_cell(table: Table | None, label: str, column: str) -> Decimal | ExecutionError:
    """The exact number of one cell, whose row and column names must match exactly once."""
    matches: list[object] = []
    if isinstance(table, Mapping):
        cells = table.get(column)
        if isinstance(cells, Mapping) and label in cells:
            matches = [cells[label]]
    elif table:
        for row in table[1:]:
            for head, cell in zip(table[0][1:], row[1:], strict=False):
                if head == column and row[0] == label:
                    matches.append(cell)

    if len(matches) != 1:
        return ExecutionError(
            "unknown_row", f"{len(matches)} cells are called {label[:40]!r}, {column[:40]!r}"
        )

    number = exact_number(matches[0])
    if number is None:
        return ExecutionError("not_a_number", f"{str(matches[0])[:40]!r} is not a number")
    return number


def rows_called(table: Table | None, label: str) -> list[list[object]]:
    """The cells of every row with this label."""
    if table is None:
        return []
    if isinstance(table, Mapping):
        cells = []
        for column in table.values():
            if isinstance(column, Mapping) and label in column:
                cells.append(column[label])

        if cells:
            return [cells]
        return []

    return [list(row[1:]) for row in table if row and row[0] == label]


def cells_of(table: Table | None) -> Iterator[tuple[str, str, object]]:
    """Label, heading and value of every cell; of rows, also of those in the heading."""
    if isinstance(table, Mapping):
        for column, rows in table.items():
            if isinstance(rows, Mapping):
                for label, cell in rows.items():
                    yield str(label), str(column), cell
    elif table is not None:
        if table and isinstance(table[0], list | tuple):
            head = [str(cell) for cell in table[0]]
        else:
            head = []

        for row in table:
            if isinstance(row, list | tuple) and row:
                for at, cell in enumerate(row[1:], 1):
                    heading = head[at] if at < len(head) else str(at)
                    yield str(row[0]), heading, cell


def is_blank(cell: object) -> bool:
    """Whether the cell is blank: empty, a dash, null, or the NaN that many readers use for null."""
    if isinstance(cell, str):
        return cell.translate(_CURRENCY).strip() in _BLANK
    return cell is None or written(cell) == "nan"


def cell_number(cell: object) -> float | None:
    """The cell's number: `-12 ( 12 )` is -12, `( 5 )` is -5, `27% ( 27 % )` is 0.27; None for text.

    >>> cell_number("$ ( 5 )")
    -5.0
    """
    if type(cell) is float:
        return cell if abs(cell) < MOST else None
    exact = exact_number(cell)
    if exact is None:
        return None
    return float(exact)


def exact_number(cell: object) -> Decimal | None:
    """The cell's number as printed, with every digit."""
    if not isinstance(cell, str):
        digits = written(cell)
        if digits and abs(float(digits)) < MOST:
            return Decimal(digits)
        return None

    before, bracket, after = cell.translate(_CURRENCY).partition("(")
    if before.strip() or not bracket:
        literal = read_literal(before)
        return None if literal is None else literal.exact

    inside, _, tail = after.partition(")")
    literal = read_literal(inside.strip() + tail.strip())
    if literal is None or inside.strip()[:1] in _SIGNS:
        return None
    return literal.exact.copy_negate()
