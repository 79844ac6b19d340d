"""Looking a number up in a report, and nothing more: no arithmetic, no understanding."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["looked_up"]

_WORD = re.compile(r"[a-z]+|\d+")
_SILENT = frozenset(
    _WORD.findall(
        "a all an and are as at be by did do does for from had has how in is it its many much of on or so than that "
        "the then these this those to up was were what which who will with would"
    )
)
_NUMBER = re.compile(r"\d(?:[\d,]*\d)?(?:\.\d+)?")


def looked_up(question: str, earlier: Sequence[str], document: Mapping[str, Any]) -> str | None:
    """The answer in the form that conversations ask for; None where the document holds no number.

    The cell of the table whose row and column share most words with the question; where several
    do, with the earlier questions too; then the first. Without such a cell, the document's last number.
    """
    asked, before = _words(question), _words(" ".join(earlier))
    best: tuple[tuple[int, int], str] | None = None
    for label, value in _cells(document.get("table")):
        words = _words(label)
        shared = len(words & asked), len(words & before)
        if shared[0] and (best is None or shared > best[0]):
            best = shared, value
    found = best[1] if best is not None else _last_number(document)
    return None if found is None else json.dumps({"answer": found, "unit": "none", "program": found})


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _WORD.findall(text.lower()) if word not in _SILENT}


def _cells(table: Any) -> Iterator[tuple[str, str]]:
    """Row and column in one text, and the number, of each cell that holds one."""
    from karat.numeric import parse_value

    for label, cell in _labelled(table):
        value = parse_value(cell)
        if value is not None and value.boolean is None:
            yield label, repr(float(value.number)).removesuffix(".0")


def _labelled(table: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(table, Mapping):
        for column, rows in table.items():
            yield from ((f"{row} {column}", cell) for row, cell in rows.items())
    elif isinstance(table, list) and table:
        header, *rows = table
        for row in rows:
            yield from ((f"{row[0]} {column}", cell) for column, cell in zip(header[1:], row[1:], strict=False))


def _last_number(document: Mapping[str, Any]) -> str | None:
    text = f"{document.get('pre_text') or ''} {document.get('post_text') or ''}"
    found = _NUMBER.findall(text)
    return str(found[-1]).replace(",", "") if found else None
