"""What the readers of conversations share: rows made anew, and the column of the messages."""

from __future__ import annotations

from collections.abc import Iterable

from karat.documents.columns import Columns, NumberedRow
from karat.documents.names import with_role
from karat.documents.row_list import Rows

MESSAGES = "messages"
"""The column that a conversation is written to."""


def asks(columns: Columns, text: str | None = None) -> bool:
    """Whether a column besides `text` is surely the question, so that conversations are only its
    context.
    """
    asked = with_role(columns, "question")
    return any(columns[path].is_text for path in asked if path != text)


def with_rows(
    rows: Rows, numbered: Iterable[NumberedRow], note: str, *, regrouped: bool = False
) -> Rows:
    found = rows.emptied(note)
    found.regrouped = regrouped
    for number, row in numbered:
        found.add(number, row)

    return found
