"""Conversations and their tables as read from a file of any form, before a golden answer is
chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from karat.documents.values import Value
from karat.formats import count, plural

Table = Mapping[str, Mapping[str, Any]] | Sequence[Sequence[Any]]
"""`{column: {row: value}}`, or rows of cells: the first row is the heading, the first cell of a row
its label.
"""

_MOST_CELLS = 100_000  # once expanded: many columns without common rows are sparse
_NUMERIC = re.compile(r"[\s$€£¥()%,.+\-−0-9]*[0-9][\s$€£¥()%,.+\-−0-9]*")


def wrong_with(table: object) -> str | None:
    """What is wrong with a value that should be a table; None if nothing."""
    if isinstance(table, dict):
        if not all(isinstance(column, dict) for column in table.values()):
            return "must be an object of columns, {column: {row: value}}, or a list of rows"
        cells = [cell for column in table.values() for cell in column.values()]
        size = len(table) * len({label for column in table.values() for label in column})
    elif isinstance(table, list):
        if not all(isinstance(row, list) for row in table):
            return "must be a list of rows, [[cell, …], …], or an object of columns"
        cells = [cell for row in table for cell in row]
        wide = max(map(len, table), default=0)
        size = len(table) * wide
    else:
        return (
            "must be an object of columns, {column: {row: value}}, or a list of rows, [[cell, …], "
            "…]"
        )

    if size > _MOST_CELLS:
        return f"would have {count(size)} cells written out, more than {count(_MOST_CELLS)}"
    if any(isinstance(cell, (dict, list)) for cell in cells):
        return "has a cell that is a list or an object; a cell is a number or a text"
    return None


def rendered(table: Table) -> str:
    """The table in Markdown, as the agent reads it; "" if there are no cells.

    >>> print(rendered({"2007": {"price": 60.94, "volatility": -27.0}, "2006": {"price": 37.84}}))
    |  | 2007 | 2006 |
    | --- | --- | --- |
    | price | 60.94 | 37.84 |
    | volatility | -27 |  |
    """
    cells: Iterable[Sequence[object]] = table
    if isinstance(table, Mapping):
        labels = dict.fromkeys(label for column in table.values() for label in column)
        body = []
        for label in labels:
            body.append([label, *(column.get(label) for column in table.values())])

        cells = []
        if table:
            cells = [["", *table], *body]

    rows = []
    for row in cells:
        rows.append([cell_text(cell) for cell in row])
    wide = max(map(len, rows), default=0)
    if not wide:
        return ""
    first, *others = [[*row, *[""] * (wide - len(row))] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [first, ["---"] * wide, *others])


def cell_text(cell: object) -> str:
    """A cell on one line: whole numbers without `.0`, and `|` escaped so that it does not end the
    cell.

    >>> cell_text(20454.0), cell_text("a|b"), cell_text(None)
    ('20454', 'a\\\\|b', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return " ".join(str(cell).split()).replace("|", "\\|")


def has_duplicate_columns(table: Table) -> bool:
    """Whether two columns have the same name; cleaned tables number them: `2008 (1)`, `2008
    (2)`.
    """
    if isinstance(table, Mapping):
        return any(re.search(r"\(\d\)$", name) for name in table)
    names = []
    for cell in table[0][1:] if table else []:
        names.append(str(cell).strip())
    return len(set(names)) < len(names)


def has_non_numeric_values(table: Table) -> bool:
    """Whether a cell is not a number, except labels and headings."""
    if isinstance(table, Mapping):
        return any(isinstance(cell, str) for column in table.values() for cell in column.values())
    return any(not _NUMERIC.fullmatch(str(cell)) for row in table[1:] for cell in row[1:])


_MOST_TURNS = 200
# characters of questions, answers and programs: each turn may include all earlier ones
_LONGEST_DIALOGUE = 200_000
_LONGEST_DOCUMENT = 2_000_000  # characters: more than any model can read


class DraftTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its golden answers, if any."""

    question: str
    executed: float | str | None = None  # the golden program's result; None: not in the file
    printed: str | None = None  # as people wrote it; None: not in the file
    program: str | None = None
    # whether it comes from the second of two questions; None: not in the file
    qa_split: bool | None = None
    unit: str | None = None
    detail: Mapping[str, Any] = {}  # further data for a scorer


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation."""

    number: int  # of its row, as numbered in faults
    id: str
    turns: Sequence[DraftTurn]
    pre_text: str = ""
    post_text: str = ""
    table: Table | None = None  # None: there is none
    features: Mapping[str, Any] = {}  # the file's attributes of the whole conversation
    single: bool = False  # whether the file's form has one question per conversation
    dialect: Literal["finqa", "convfinqa"] = "convfinqa"  # the official scorer of programs
    answer_format: str | None = None  # the requested answer format; None: as for numbers


def joined_text(at: Value) -> str:
    """A text, or paragraphs, which are joined; "" if there is none."""
    value = at.value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = " ".join(value)
    if value is None:
        return ""
    if not isinstance(value, str):
        at.refuse("a text or a list of texts")
        return ""

    if len(value) > _LONGEST_DOCUMENT:
        at.note(f"has {count(len(value))} characters, more than {count(_LONGEST_DOCUMENT)}")
        return ""

    return value


def table_of(at: Value) -> Table | None:
    """A table of either form; None if there is none."""
    wrong = wrong_with(at.value)
    if at.value is None or wrong is None:
        return at.value  # type: ignore[return-value]  # `wrong_with` has looked at it
    at.note(wrong)
    return None


def entries(at: Value) -> list[Value]:
    """A list of limited length; empty, and a fault, if there is none."""
    if isinstance(at.value, list) and len(at.value) > _MOST_TURNS:
        at.note(f"has {len(at.value)} entries; a conversation has at most {_MOST_TURNS} turns")
        return []

    return at.list()


def questions(at: Value) -> list[str]:
    """One text per turn. An empty one is a fault."""
    if at.value == []:
        at.note("is empty; a conversation needs at least one question")
    listed = entries(at)
    for entry in listed:
        if not isinstance(entry.value, str):
            entry.refuse("a text")
        elif not entry.value.strip():
            entry.note("is empty; fill it in, or remove the turn")

    return [entry.value if isinstance(entry.value, str) else "" for entry in listed]


def numbers(at: Value, turns: int) -> list[float | str | None]:
    """Golden answers: numbers and texts, one per turn; None if the file has none."""
    values = _each(
        at,
        turns,
        "a number or a text",
        lambda value: not isinstance(value, (list, dict)),
    )
    return [plain_answer(value) for value in values]


def texts(at: Value, turns: int) -> list[str | None]:
    """One text per turn, or None; numbers are read as their text."""
    return [plain_text(value) for value in _each(at, turns, "a text", _is_text)]


def marks(at: Value, turns: int) -> list[bool | None]:
    """Yes or no per turn: true and false, or 1 and 0."""
    return [
        None if mark is None else mark == 1
        for mark in _each(at, turns, "true or false", lambda x: x in (0, 1))
    ]


def _each(at: Value, turns: int, wanted: str, fits: Callable[[object], bool]) -> list[object]:
    """As many values as turns; if the number differs, that is a fault and all are None."""
    if at.value is None or not turns:
        return [None] * turns
    before = len(at.wrong)
    listed = entries(at)
    if len(listed) != turns:
        if len(at.wrong) == before:
            at.note(
                f"has {plural(len(listed), 'entry', 'entries')}, the conversation has "
                f"{plural(turns, 'question')}"
            )

        return [None] * turns

    for entry in listed:
        if entry.value is not None and not fits(entry.value):
            entry.refuse(wanted)

    return [entry.value for entry in listed]


def _is_text(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def plain_text(value: object) -> str | None:
    """A text, or a number as text; None: it is neither, or empty."""
    if _is_text(value) and str(value).strip():
        return str(value)
    return None


def plain_answer(value: object) -> float | str | None:
    """A golden answer in its stored form: a number, a text, or None; true and false are yes
    and no.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return value
    return value if isinstance(value, str) and value.strip() else None


def sized_wrong(turns: Sequence[DraftTurn]) -> str | None:
    """What is wrong with a dialogue's length; None if nothing."""
    if len(turns) > _MOST_TURNS:
        return f"has {len(turns)} turns; a conversation has at most {_MOST_TURNS}"
    length = sum(
        len(turn.question)
        + len(str(turn.executed))
        + len(turn.printed or "")
        + len(turn.program or "")
        for turn in turns
    )
    if length > _LONGEST_DIALOGUE:
        most = count(_LONGEST_DIALOGUE)
        return (
            f"has questions, answers and programs of {count(length)} characters, more than {most}"
        )

    return None
