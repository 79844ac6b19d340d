"""Recorded answers by (sample, condition, repetition).

Two implementations: `OffsetRows` keeps 16 to 32 bytes per row and reads each line when
needed; `TableRows` holds a file that cannot be read by offset.
"""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Iterator, Mapping
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

import msgspec

from karat.documents.rows import read_rows
from karat.errors import AgentFault, BadDataset, Fault
from karat.files import open_regular
from karat.journal import RunFolder, checksum_fault

__all__ = ["Columns", "Key", "OffsetRows", "TableRows"]

Key = tuple[str, str | None, int]
"""Sample id; condition, or None for any; repetition from 0."""

_MOST_FAULTS = 50
_BLOCK = 4096  # bytes; most answers fit


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the columns."""

    id: str | None  # None: rows are numbered from 0
    answer: str | None  # None: not checked
    condition: str
    repetition: str


class _Keys:
    """Keys of rows, in the order of the file."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._met: dict[tuple[str, str | None], int] = {}
        self.conditions: dict[str, None] = {}  # in the order of the file
        self.repetitions = 0  # the maximum over samples

    def of(self, row: Any, number: int) -> Key:
        """Raises ValueError that names the fault of the row."""
        columns = self._columns
        if not isinstance(row, dict):
            raise ValueError(f"is a {type(row).__name__}, want an object")
        if columns.answer is not None and columns.answer not in row:
            raise ValueError(f"has no '{columns.answer}' (set answer_key to one of: {', '.join(row)})")
        if columns.id is not None and columns.id not in row:
            raise ValueError(f"has no '{columns.id}' (set id_key to one of: {', '.join(row)}; or null to count rows)")
        name = str(number) if columns.id is None else str(row[columns.id])
        condition = row.get(columns.condition)
        condition = None if condition in (None, "") else str(condition)
        repetition = row.get(columns.repetition)
        if repetition in (None, ""):
            repetition = self._met.get((name, condition), 0)
            self._met[name, condition] = repetition + 1
        try:
            count = int(str(repetition))
        except ValueError:
            raise ValueError(f"'{columns.repetition}' is {repetition!r}, want a whole number from 0") from None
        if condition is not None:
            self.conditions[condition] = None
        self.repetitions = max(self.repetitions, count + 1)
        return name, condition, count


class OffsetRows:
    """Rows of a JSONL file, found by an open-addressing table of offsets and read one by one."""

    def __init__(self, path: Path, columns: Columns, *, run: RunFolder | None = None) -> None:
        """`run`: the file is its journal, of which only the answers are read. Raises BadDataset with all faults."""
        self.path = path
        self._run, self._columns = run, columns
        self._only = b"" if run is None else b'{"event":"answer"'
        self._decode = msgspec.json.Decoder().decode
        try:
            self._file = self.open()
        except OSError as error:
            raise BadDataset(str(path), [Fault(place="file", message=f"cannot be read: {error.strerror}")]) from error
        weakref.finalize(self, self._file.close)
        lines = sum(1 for _ in self._lines()) + 1
        # At most 4/5 full, so that a search ends soon.
        self._mask = (1 << (lines + lines // 4).bit_length()) - 1
        self._offsets = array("q", bytes(8 * (self._mask + 1)))  # plus 1; 0: free
        self._hashes = array("q", bytes(8 * (self._mask + 1)))
        self._index()

    def open(self) -> BufferedReader | BytesIO:
        """The file; for a run, the lines of its journal."""
        return open_regular(self.path) if self._run is None else self._run.open_journal() or BytesIO()

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """The row, read from the file; None if there is none."""
        code = hash(key)
        at = code & self._mask
        while offset := self._offsets[at]:
            if self._hashes[at] == code:
                line = self._line(offset - 1)
                if self._run and (fault := checksum_fault(line, required=self._run.has_checksums)) is not None:
                    raise AgentFault("bad_record", f"{self.path} was damaged at byte {offset - 1}: {fault}")
                row: dict[str, Any] = self._decode(line)
                return row
            at = (at + 1) & self._mask
        return None

    def _index(self) -> None:
        self.keys = keys = _Keys(self._columns)
        faults, number = [], 0
        for line_number, (start, line) in enumerate(self._lines(), start=1):
            if not line.strip() or not line.startswith(self._only):
                continue
            try:
                key = keys.of(self._decode(line), number)
                number += 1
                # In a run's journal, the first answer of a trial counts.
                if not self._put(hash(key), start) and not self._only:
                    raise ValueError(
                        f"a second answer for sample '{key[0]}', condition {key[1]!r}, repetition {key[2]}"
                    )
            except (ValueError, RecursionError) as error:
                faults.append(Fault(place=f"line {line_number}", message=str(error)))
                if len(faults) == _MOST_FAULTS:
                    break
        if faults:
            raise BadDataset(str(self.path), faults)

    def _put(self, code: int, start: int) -> bool:
        at = code & self._mask
        while self._offsets[at]:
            if self._hashes[at] == code:
                return False
            at = (at + 1) & self._mask
        self._offsets[at], self._hashes[at] = start + 1, code
        return True

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        start = 0
        if self._run is not None:
            for line in self._run.lines():
                yield start, line
                start += len(line) + 1
            return
        with open_regular(self.path) as file:
            for line in file:
                yield (start + 3, line[3:]) if start == 0 and line.startswith(b"\xef\xbb\xbf") else (start, line)
                start += len(line)

    def _line(self, start: int) -> bytes:
        size = _BLOCK
        while True:
            self._file.seek(start)
            block = self._file.read(size)
            end = block.find(b"\n")
            if end >= 0 or len(block) < size:
                return block if end < 0 else block[:end]
            size *= 8


class TableRows:
    """Rows of a CSV, JSON or Parquet file, in memory."""

    def __init__(self, path: Path, columns: Columns) -> None:
        """Raises BadDataset with all faults."""
        self.path = path
        self._rows: dict[Key, Mapping[str, Any]] = {}
        table = read_rows(path)
        self.keys = keys = _Keys(columns)
        faults = list(table.faults)
        for number, (line, row) in enumerate(table.rows):
            try:
                key = keys.of(row, number)
                if key in self._rows:
                    raise ValueError(
                        f"a second answer for sample '{key[0]}', condition {key[1]!r}, repetition {key[2]}"
                    )
                self._rows[key] = row
            except ValueError as error:
                faults.append(Fault(place=f"{table.unit} {line}", message=str(error)))
        if faults:
            raise BadDataset(str(path), faults[:_MOST_FAULTS])

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """The row; None if there is none."""
        return self._rows.get(key)
