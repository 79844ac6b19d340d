"""Looking a number up in a conversation's report: what reading alone finds, without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from karat_conversations.numeric import parse_value

_TERM = re.compile(r"[a-z]+|\d+")
_SILENT = frozenset(
    _TERM.findall(
        "a all an and are as at be by did do does for from had has how in is it its many much of "
        "on or so than that the then these this those to up was were what which who will with "
        "would"
    )
)
_NUMBER = re.compile(r"\d(?:[\d,]*\d)?(?:\.\d+)?")


def look_up_number(
    question: str, earlier: Sequence[str], document: Mapping[str, object]
) -> str | None:
    """The answer in the form that conversations ask for; None if the document (a sample's detail)
    has no number.

    The cell of the table whose row and column share most words with the question; where several do,
    with the earlier questions too; then the first. Without such a cell, the document's last number.
    """
    asked = _terms(question)
    before = _terms(" ".join(earlier))
    best: tuple[tuple[int, int], str] | None = None
    table = document.get("table")
    cells: list[tuple[str, object]] = []  # row and column in one text
    if isinstance(table, Mapping):
        for column, rows in table.items():
            cells += [(f"{row} {column}", cell) for row, cell in rows.items()]
    elif isinstance(table, list) and table:
        header, *lines = table
        for line in lines:
            pairs = zip(header[1:], line[1:], strict=False)
            cells += [(f"{line[0]} {column}", cell) for column, cell in pairs]

    for label, cell in cells:
        value = parse_value(cell)
        if value is None or value.boolean is not None:
            continue
        words = _terms(label)
        shared = len(words & asked), len(words & before)
        if shared[0] and (best is None or shared > best[0]):
            best = shared, repr(float(value.number)).removesuffix(".0")

    if best is not None:
        number = best[1]
    elif numbers := _NUMBER.findall(
        f"{document.get('pre_text') or ''} {document.get('post_text') or ''}"
    ):
        number = numbers[-1].replace(",", "")
    else:
        return None

    return json.dumps({"answer": number, "unit": "none", "program": number})


def _terms(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _TERM.findall(text.lower()) if word not in _SILENT}
