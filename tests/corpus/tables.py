"""Numbers of nested values as tables that people can read and compare, and back.

A section begins with its place in brackets. A list of objects is a table: the first line names the columns, each other
line is a row. A single object is a line a value. Cells are separated by tabs; numbers in one cell by spaces.

Words are left out, since they may change, apart from those that say what a row is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# Of the day on which a file was written, of the installed versions, and of the wording of a text.
_PASSED_OVER = {"version", "versions", "shown", "retrieved_timestamp", "evaluation_timestamp", "file_bytes"}
_NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?\Z")
# fmt: off
_LABELS = (
    "name", "key", "id", "condition", "conditions", "a", "b", "baseline", "metric", "metric_name", "evaluation_name",
    "scorer", "sample", "sample_id", "conversation_id", "test", "study", "finding", "table", "attempt_id", "winner",
    "verdict",
)
# fmt: on


class Section(NamedTuple):
    """A table; of one object without `columns`, whose rows are a name and a value each."""

    place: str
    columns: list[str]
    rows: list[list[str]]


def sections(value: Any, place: str) -> Iterator[Section]:
    """The tables of a value that JSON can hold, the outer ones first."""
    inner: Inner = {}
    if isinstance(value, list):
        yield from _tables({place: [("", item) for item in value]})
        return
    yield Section(place, [], [[name, cell] for name, cell in _object({"": value}, inner, "").items()])
    yield from _tables({f"{place}/{name}": items for name, items in inner.items()})


Inner = dict[str, list[tuple[str, Any]]]  # by name: what each object in a table belongs to, and the object


def _tables(lists: Inner) -> Iterator[Section]:
    for place, items in lists.items():
        inner: Inner = {}
        rows = []
        for at, (of, item) in enumerate(items):
            label = f"{of} {_label(item) or at}".strip()
            cells = _object(item if isinstance(item, dict) else {"": item}, inner, label)
            rows.append({"of": of} | cells if of else cells)
        columns = list(dict.fromkeys(name for row in rows for name in row))
        yield Section(place, ["#", *columns], [[str(at), *_cells(row, columns)] for at, row in enumerate(rows)])
        yield from _tables({f"{place}/{name}": below for name, below in inner.items()})


def _label(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    names = [item[key] for key in _LABELS if isinstance(item.get(key), str) and item[key].strip()]
    return re.sub(r"\s+", " ", names[0])[:60] if names else None


def _cells(row: Mapping[str, str], columns: list[str]) -> list[str]:
    return [row.get(name, "") for name in columns]


def _object(item: Mapping[str, Any], inner: Inner, of: str, before: str = "") -> dict[str, str]:
    """The cells of an object by the dotted names of its values; lists of objects go to `inner`."""
    cells: dict[str, str] = {}
    for key, value in item.items():
        name = f"{before}.{key}".strip(".")
        if key in _PASSED_OVER:
            continue
        if isinstance(value, dict):
            cells |= _object(value, inner, of, name)
        elif isinstance(value, list):
            cells[name] = _list(value)
            if any(isinstance(one, dict | list) for one in value):
                inner.setdefault(name, []).extend((of, one) for one in value)
        else:
            text = _cell(value, label=key in _LABELS)
            if text is not None:
                cells[name] = text
    return cells


def _list(values: list[Any]) -> str:
    """The numbers of a list, or how long it is."""
    cells = [None if isinstance(value, dict | list) else _cell(value) for value in values]
    numbers = [cell for cell in cells if cell is not None]
    return " ".join(numbers) if numbers and len(numbers) == len(values) else f"({len(values)})"


def _cell(value: Any, *, label: bool = False) -> str | None:
    if not isinstance(value, str):
        return json.dumps(value)
    if _NUMBER.match(value):
        return value
    return re.sub(r"\s+", " ", value) if label else None


def text_of(tables: list[Section]) -> str:
    """The tables as one text."""
    return "\n".join(
        "\n".join([f"[{table.place}]", *("\t".join(row) for row in _lines(table))]) + "\n" for table in tables
    )


def _lines(table: Section) -> list[list[str]]:
    return [table.columns, *table.rows] if table.columns else table.rows


def values_of(text: str) -> dict[tuple[str, str, str], str]:
    """The cells of a text of tables by section, row and column; the number of rows of a table by row "rows"."""
    found: dict[tuple[str, str, str], str] = {}
    for block in text.strip("\n").split("\n\n"):
        heading, *lines = block.split("\n")
        place = heading[1:-1]
        rows = [line.split("\t") for line in lines]
        if not rows or rows[0][0] != "#":
            found |= {(place, "", name): cell for name, cell in rows}
            continue
        found[place, "rows", ""] = str(len(rows) - 1)
        for at, *cells in rows[1:]:
            found |= {(place, at, name): cell for name, cell in zip(rows[0][1:], cells, strict=True) if cell}
    return found
