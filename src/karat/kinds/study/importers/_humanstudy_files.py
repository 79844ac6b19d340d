"""Reads the JSON files of a study folder as untrusted text: with limits, cleaned texts, and a place for every value."""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from karat.errors import BadDataset, Fault
from karat.files import open_regular
from karat.formats import clean
from karat.importers import Doubt

__all__ = ["Notes", "Spot", "Table", "read_folder", "slug", "tables_of"]

MAX_BYTES = 2_000_000  # of one file: the largest of the published folders has 26,000
MAX_FILES = 200  # materials
MAX_TEXT = 50_000  # characters of one text
_MOST = 10.0**15  # largest number: counts, means and statistics lie far below
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{},:\n]|[^\s\[\]{},:"]+')
_OUTER = ("metadata", "specification", "ground_truth")

Place = tuple[str | int, ...]


class Notes(msgspec.Struct):
    """Doubts, each once, in the order in which they were found."""

    doubts: list[Doubt] = []

    def add(self, kind: str, message: str, source: str) -> None:
        """Notes a doubt."""
        doubt = Doubt(kind=kind, message=message, source=source)
        if doubt not in self.doubts:
            self.doubts.append(doubt)


class Spot(msgspec.Struct, frozen=True):
    """A value in a file and its place. Methods return None or nothing if it is missing or of another type."""

    value: Any
    file: str
    place: Place
    lines: dict[Place, int]
    notes: Notes

    @property
    def where(self) -> str:
        """`ground_truth.json line 31 (studies.0.findings.1)`."""
        near = next((self.place[:end] for end in range(len(self.place), -1, -1) if self.place[:end] in self.lines), ())
        line = f" line {self.lines[near]}" if near in self.lines else ""
        below = clean(".".join(map(str, self.place)))[:120]
        return f"{self.file}{line}{f' ({below})' if below else ''}"

    def get(self, *keys: str) -> Spot:
        """The value under nested keys."""
        value, place = self.value, self.place
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
            place = (*place, key)
        return Spot(value, self.file, place, self.lines, self.notes)

    def items(self) -> list[Spot]:
        """The members of a list."""
        self._wants(list, "a list")
        values = self.value if isinstance(self.value, list) else []
        return [Spot(value, self.file, (*self.place, at), self.lines, self.notes) for at, value in enumerate(values)]

    def pairs(self) -> list[tuple[str, Spot]]:
        """Keys and values of a mapping, the keys cleaned."""
        values = self.value if isinstance(self.value, dict) else {}
        return [
            (_plain(key), Spot(value, self.file, (*self.place, key), self.lines, self.notes))
            for key, value in values.items()
        ]

    def text(self) -> str | None:
        """A text that is not blank, without terminal control characters."""
        self._wants(str, "text")
        return (_plain(self.value).strip() or None) if isinstance(self.value, str) else None

    def as_text(self) -> str | None:
        """A text, or a number as text."""
        if isinstance(self.value, (int, float)) and not isinstance(self.value, bool):
            return f"{self.value:g}"
        return self.text()

    def number(self) -> float | None:
        """A number, or a text that is one: `82 %`, `−0.3`, `1,500`, `$5`."""
        value = self.value
        if isinstance(value, str):
            match = re.fullmatch(r"[$€£]?\s*([-+−–]?[\d,]*\.?\d+)\s*(?:%|percent)?", value.strip()[:40])
            value = float(re.sub("[−–]", "-", match[1]).replace(",", "")) if match else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return float(value) if math.isfinite(value) and abs(value) <= _MOST else None

    def whole(self) -> int | None:
        """A count of at least one."""
        value = self.number()
        return int(value) if value is not None and value == int(value) and 1 <= value <= 10**9 else None

    def _wants(self, kind: type, expected: str) -> None:
        if self.value is not None and not isinstance(self.value, kind):
            self.notes.add("unreadable", f"is not {expected}", self.where)


def read_folder(folder: Path) -> tuple[dict[str, Spot], list[Spot], Notes]:
    """The top-level files by name, and the materials sorted by name.

    What cannot be read is noted and left out. Raises BadDataset if neither a `ground_truth.json`
    nor any material can be read.
    """
    notes = Notes()
    outer = {name: _read(folder / f"{name}.json", f"{name}.json", folder, notes) for name in _OUTER}
    there = sorted((folder / "materials").glob("*.json")) if (folder / "materials").is_dir() else []
    if len(there) > MAX_FILES:
        notes.add("left out", f"has {len(there)} files; the first {MAX_FILES} are read", "materials")
    read = [_read(path, f"materials/{_plain(path.name)}", folder, notes) for path in there[:MAX_FILES]]
    materials = [spot for spot in read if isinstance(spot.value, dict)]
    if not isinstance(outer["ground_truth"].value, dict) and not materials:
        faults = [Fault(place=doubt.source, message=doubt.message) for doubt in notes.doubts]
        raise BadDataset(str(folder), faults or [Fault(place="file", message="is not a folder of a study")])
    if not materials:
        notes.add("unreadable", "there is no material that can be read", "materials")
    return outer, materials, notes


def slug(text: str, *, longest: int = 40, first: str = "x") -> str:
    """A name for a file, column or group: lower-case letters, digits and `_`, starting with a letter (else `first`).

    >>> slug("Experiment I: Warm vs. Cold"), slug("1/2"), slug("../…")
    ('experiment_i_warm_vs_cold', 'x1_2', 'x')
    """
    plain = unicodedata.normalize("NFKD", text[:400]).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:longest].strip("_")
    return name if name[:1].isalpha() else f"{first}{name}"


def _plain(text: str) -> str:
    """The cleaned text, without lone surrogates and characters that YAML does not allow."""
    return re.sub("[\x85\u2028\u2029]", "\n", re.sub("[\ufeff\ufffe\uffff]", "", clean(text[:MAX_TEXT])))


def _read(path: Path, name: str, folder: Path, notes: Notes) -> Spot:
    value: Any = None
    lines: dict[Place, int] = {}
    try:
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise ValueError("leads out of the folder")
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"is larger than {MAX_BYTES:_} bytes")
        text = data.decode("utf-8-sig")
        value = json.loads(text, parse_constant=_no_number)
        lines = dict(_lines(text))
        if not isinstance(value, dict):
            raise ValueError("is not a JSON object")
    except FileNotFoundError:
        notes.add("unreadable", "is missing", name)
    except OSError as error:
        notes.add("unreadable", f"cannot be read: {error.strerror}", name)
    except UnicodeDecodeError:
        notes.add("unreadable", "is not UTF-8", name)
    except json.JSONDecodeError as error:
        notes.add("unreadable", f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]}", f"{name} line {error.lineno}")
    except RecursionError:
        value = None
        notes.add("unreadable", "is nested too deeply", name)
    except ValueError as error:  # also for an integer with thousands of digits
        notes.add("unreadable", str(error)[:120], name)
    return Spot(value if isinstance(value, dict) else None, name, (), lines, notes)


def _no_number(name: str) -> Any:
    raise ValueError(f"holds {name}, which is not JSON")


def _lines(text: str) -> Iterator[tuple[Place, int]]:
    """The line of every member of a mapping or list in a JSON text."""
    frames: list[str | int | None] = []  # the current key or position in each open mapping or list
    objects: list[bool] = []
    waiting, line = False, 1  # waiting for the member of a list, or the key of a mapping
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark == "\n":
            line += 1
            continue
        if waiting and mark not in "]}":
            if objects[-1]:
                frames[-1] = json.loads(mark)
            yield tuple(part for part in frames if part is not None), line
        waiting = False
        if mark in ("{", "["):
            objects.append(mark == "{")
            frames.append(None if mark == "{" else 0)
            waiting = True
        elif mark in ("}", "]"):
            objects.pop()
            frames.pop()
        elif mark == "," and frames:
            last = frames[-1]
            frames[-1] = last + 1 if isinstance(last, int) else last
            waiting = True


_MOST_TABLES, _MOST_ROWS, _MOST_COLUMNS = 50, 500, 30


class Table(msgspec.Struct, frozen=True):
    """Every row is as long as the headers."""

    name: str
    where: str
    headers: list[str]
    rows: list[list[str]]


def tables_of(results: Spot, notes: Notes) -> list[Table]:
    """The tables of `overall_original_results`; anything else there is noted."""
    tables: list[Table] = []
    left = [key for key, _ in results.pairs() if key not in {"description", "data_tables"}]
    if left:
        notes.add("left out", f"also contains: {', '.join(left)}"[:120], results.where)
    for spot in results.get("data_tables").items()[:_MOST_TABLES]:
        rows = [[_cell(cell) for cell in row.items()[:_MOST_COLUMNS]] for row in spot.get("rows").items()]
        headers = [_cell(cell) for cell in spot.get("headers").items()[:_MOST_COLUMNS]]
        wide = max([len(headers), *map(len, rows)])
        if not wide:
            notes.add("unreadable", "is not a table of headers and rows", spot.where)
            continue
        if len(rows) > _MOST_ROWS:
            notes.add("left out", f"{len(rows) - _MOST_ROWS} rows are beyond the first {_MOST_ROWS}", spot.where)
        filled = [row + [""] * (wide - len(row)) for row in [headers, *rows[:_MOST_ROWS]]]
        name = spot.get("table_name").as_text() or "A table without a name"
        tables.append(Table(name, spot.where, filled[0], filled[1:]))
    return tables


def _cell(spot: Spot) -> str:
    if isinstance(spot.value, (int, float)) and not isinstance(spot.value, bool):
        return repr(spot.value)[:40]
    return (spot.text() or "") if isinstance(spot.value, str) else ""
