"""Reads the records of an export: a table, JSON Lines, a list, a page of an API, or one object."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from karat.documents.rows import read_rows
from karat.foreign import Json
from karat.importers import Findings
from karat_imports.importers._chats import unpacked
from karat_imports.importers._reading import beginning, following, is_json, items, lines

Row = TypeVar("Row")
_TABLES = (".csv", ".tsv", ".parquet")
_PAGE = re.compile(rb'\s*\{\s*"(?:data|runs|traces|spans|observations|scores|feedback)"\s*:\s*\[')
_DEEPEST = 16


def records(path: Path, findings: Findings) -> Iterator[tuple[str, Json]]:
    """Each record with its place; in a table, a cell may be JSON. Raises BadDataset."""
    if path.suffix.lower() in _TABLES:
        rows = read_rows(path)
        for fault in rows.faults:
            findings.lose(fault.message, f"{path.name}, {fault.place}")

        for number, cells in rows.rows:
            filled = {}
            for key, cell in cells.items():
                if cell not in (None, ""):
                    filled[key] = unpacked(cell)

            yield f"{path.name}, {rows.unit} {number}", Json(filled)

        return

    head = beginning(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    first, newline, _ = head.partition(b"\n")
    if head.startswith(b"["):
        yield from items(path, findings=findings)
    elif page := _PAGE.match(head):
        yield from items(path, page[0].split(b'"')[1].decode(), findings=findings)
    elif newline and not is_json(first):
        yield from following(path, findings)
    else:
        yield from lines(path, findings)


def rows_of(
    files: Iterable[Path],
    read: Callable[[str, Json, Findings], Iterable[tuple[str, str, Row]]],
    findings: Findings,
) -> Iterator[tuple[str, str, Row]]:
    """What `read` makes of each record of the files: its place, its trace and a row."""
    for path in files:
        for place, record in records(path, findings):
            yield from read(place, record, findings)


def numeric(row: Json, *keys: str) -> float | None:
    """The first of these that is a finite number, also one written as text."""
    for key in keys:
        value = row.number(key)
        if value is None and (text := row.text(key)) is not None:
            try:
                value = Json({key: float(text)}).number(key)
            except ValueError:
                continue

        if value is not None:
            return value

    return None


def whole(row: Json, *keys: str) -> int | None:
    """The first of these that is a whole number from 0 on, also one written as text."""
    value = numeric(row, *keys)
    if value is None or value < 0 or value != int(value):
        return None
    return int(value)


def flat(
    value: Mapping[str, object], prefix: str = "", levels: int = _DEEPEST
) -> dict[str, object]:
    """The values in nested objects and lists of objects, under their keys with dots between.

    >>> flat({"llm": {"input": [{"role": "user"}], "tags": ["a"]}})
    {'llm.input.0.role': 'user', 'llm.tags': ['a']}
    """
    found: dict[str, object] = {}
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, dict) and levels:
            found |= flat(inner, f"{name}.", levels - 1)
        elif isinstance(inner, list) and levels and any(isinstance(item, dict) for item in inner):
            listed = {str(at): item for at, item in enumerate(inner)}
            found |= flat(listed, f"{name}.", levels - 1)
        else:
            found[name] = inner

    return found
