"""Recorded answers by (sample, condition, repetition).

Two implementations: `OffsetRows` keeps a few dozen bytes per row and reads each line when
needed; `TableRows` holds a file that cannot be read by offset.
"""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from karat.documents.answers import Copies, Repetitions, condition_of, key_of, repetition_value
from karat.documents.columns import cell
from karat.documents.rows import json_object, left_out, read_rows
from karat.errors import AgentFault, BadDataset, Fault
from karat.files import open_regular
from karat.formats import some_of
from karat.journal import RunFolder, checksum_fault
from karat.records import JsonObject

AnswerRow = Mapping[str, Any]  # of the file, by column
Key = tuple[str, str | None, int]
"""Sample id; condition, or None for any; repetition from 0."""

At = TypeVar("At")
_BLOCK = 4096  # bytes; most answers fit


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the columns."""

    # one: the sample's id; several: what rows of one sample agree in; none: the row's number
    id: tuple[str, ...]
    answers: tuple[str, ...]  # several: each is a condition; none: not checked
    condition: tuple[str, ...]
    repetition: str
    # a run's journal: repetitions count from 0, and only the first answer of a trial counts
    of_karat: bool = False


class _Keys:
    """Keys of rows, in the order of the file.

    First `add` every row, then ask for its key with `of`.
    """

    def __init__(self, columns: Columns, unit: str) -> None:
        self._columns = columns
        self._met: dict[tuple[str, str | None], int] = {}
        self._samples: dict[Hashable, int] = {}  # what rows of one sample agree in → its number
        self._numbers = Repetitions()
        self.unit = unit
        self.copies = Copies(unit)
        self.conditions: dict[str, None] = {}  # in the order of the file
        self.repetitions = 0  # the maximum over samples
        if len(columns.answers) > 1:
            self.conditions = dict.fromkeys(columns.answers)

    def add(self, row: AnswerRow, number: int) -> None:
        """Takes note of the row's repetition. `number`: of the row, from 0."""
        given = cell(row, self._columns.repetition)
        if given is None and len(self._columns.id) < 2:
            return  # several: samples are numbered in the order of the rows
        with suppress(ValueError):  # `of` raises it again
            value = repetition_value(given, self._columns.repetition)
            condition = condition_of(row, self._columns.condition)
            self._numbers.add(self._sample(row, number), condition, value)

    def of(self, row: AnswerRow, number: int, place: int) -> Key | None:
        """None: the row is identical to an earlier one. Raises ValueError that names the fault of
        the row.

        `place`: the row's number in messages.
        """
        columns = self._columns
        for name in columns.answers:
            if name not in row and cell(row, name) is None:
                raise ValueError(
                    f"has no '{name}' (set answer_key to one of: {some_of([*row], most=12)})"
                )

        for name in columns.id:
            if name not in row:
                raise ValueError(
                    f"has no '{name}' (set id_key to one of: {some_of([*row], most=12)}; or "
                    f"null to count rows)"
                )

        sample = self._sample(row, number)
        condition = condition_of(row, columns.condition)
        value = repetition_value(cell(row, columns.repetition), columns.repetition)
        if columns.of_karat and isinstance(value, int):
            repetition = value
        elif value is not None:
            repetition = self._numbers.number(sample, condition, value)
        elif self.copies.is_copy(place, row):
            return None
        else:
            repetition = self._met.get((sample, condition), 0)
            self._met[sample, condition] = repetition + 1

        if condition is not None:
            self.conditions[condition] = None
        self.repetitions = max(self.repetitions, repetition + 1)
        return sample, condition, repetition

    @property
    def uneven(self) -> bool:
        """Whether rows without a repetition are more for one sample than for another."""
        return len(set(self._met.values())) > 1

    def _sample(self, row: AnswerRow, number: int) -> str:
        columns = self._columns.id
        if not columns:
            return str(number)
        if len(columns) == 1:
            return str(cell(row, columns[0]))
        return str(self._samples.setdefault(key_of(row, columns), len(self._samples)))

    def index(
        self,
        rows: Callable[[], Iterable[tuple[int, At, AnswerRow]]],
        put: Callable[[Key, At], AnswerRow | None],
    ) -> list[Fault]:
        """Gives each row's place in the file to `put`, which returns the row that already has the
        key.

        Returns the faults. `rows`: number in messages, place in the file and content of each.
        """
        if not self._columns.of_karat:
            for number, (_, _, row) in enumerate(rows()):
                self.add(row, number)
        faults = []
        for number, (line, at, row) in enumerate(rows()):
            try:
                key = self.of(row, number, line)
                if key is None:
                    earlier = None
                else:
                    earlier = put(key, at)

                if earlier is not None and not self.copies.is_same(line, row, earlier):
                    assert key is not None
                    sample, condition, repetition = key
                    raise ValueError(
                        f"a second answer for sample '{sample}', condition {condition!r}, "
                        f"repetition {repetition}"
                    )
            except ValueError as error:
                faults.append(Fault(place=f"{self.unit} {line}", message=str(error)))

        return faults


class OffsetRows:
    """Rows of a JSONL file, found by an open-addressing table of offsets and read one by one."""

    def __init__(
        self, path: Path, columns: Columns, *, run: RunFolder | None = None, skip: bool = False
    ) -> None:
        """`run`: the file is its journal, of which only the answers are read. `skip`: leave
        unreadable rows out.

        Raises BadDataset with all faults.
        """
        self.path = path
        self._run = run
        self._decode = msgspec.json.Decoder().decode
        try:
            self._file = self.open()
        except OSError as error:
            raise BadDataset(
                path, [Fault(place="file", message=f"cannot be read: {error.strerror}")]
            ) from error

        weakref.finalize(self, self._file.close)
        lines = sum(1 for _ in self._lines()) + 1
        # At most 4/5 full, so that a search ends soon.
        self._mask = (1 << (lines + lines // 4).bit_length()) - 1
        self._offsets = array("q", bytes(8 * (self._mask + 1)))  # plus 1; 0: free
        self._hashes = array("q", bytes(8 * (self._mask + 1)))
        self.keys = _Keys(columns, "line")
        faults = self.keys.index(self._rows, self._put)
        faults += [
            Fault(place=f"line {place}", message=wrong)
            for place, _, _, wrong in self._read()
            if wrong
        ]
        self.left_out = left_out(path, faults, skip=skip, unit="line", setting="agent.skip")

    def open(self) -> BufferedReader | BytesIO:
        """The file; for a run, the lines of its journal."""
        if self._run is None:
            return open_regular(self.path)
        return self._run.open_journal() or BytesIO()

    def get(self, key: Key) -> AnswerRow | None:
        """The row, read from the file; None if there is none."""
        code = hash(key)
        at = code & self._mask
        while offset := self._offsets[at]:
            if self._hashes[at] == code:
                line = self._line(offset - 1)
                if (
                    self._run
                    and (fault := checksum_fault(line, required=self._run.has_checksums))
                    is not None
                ):
                    raise AgentFault(
                        "bad_record", f"{self.path} was damaged at byte {offset - 1}: {fault}"
                    )

                row: JsonObject = self._decode(line)
                return row

            at = (at + 1) & self._mask

        return None

    def __iter__(self) -> Iterator[tuple[int, AnswerRow]]:
        return ((number, row) for number, _, row in self._rows())

    def _rows(self) -> Iterator[tuple[int, int, AnswerRow]]:
        for number, start, row, wrong in self._read():
            if wrong is None:
                yield number, start, row

    def _read(self) -> Iterator[tuple[int, int, AnswerRow, str | None]]:
        """Number, offset and object of each line, or what is wrong with it."""
        only = b"" if self._run is None else b'{"event":"answer"'
        for number, (start, line) in enumerate(self._lines(), start=1):
            if not line.strip() or not line.startswith(only):
                continue
            try:
                if self._run is None:
                    row = json_object(line)
                else:
                    row = self._decode(line)
            except (ValueError, RecursionError) as error:
                yield number, start, {}, str(error)
            else:
                yield number, start, row, None

    def _put(self, key: Key, start: int) -> AnswerRow | None:
        code = hash(key)
        at = code & self._mask
        while self._offsets[at]:
            if self._hashes[at] == code:
                # in a journal, the first answer counts
                if self._run is None:
                    return self.get(key)
                return None

            at = (at + 1) & self._mask

        self._offsets[at] = start + 1
        self._hashes[at] = code
        return None

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        if self._run is not None:
            yield from ((at, line) for _, at, line in self._run.numbered_lines())
            return
        start = 0
        with open_regular(self.path) as file:
            for line in file:
                yield (
                    (start + 3, line[3:])
                    if start == 0 and line.startswith(b"\xef\xbb\xbf")
                    else (start, line)
                )
                start += len(line)

    def _line(self, start: int) -> bytes:
        size = _BLOCK
        while True:
            self._file.seek(start)
            block = self._file.read(size)
            end = block.find(b"\n")
            if end >= 0 or len(block) < size:
                if end < 0:
                    return block
                return block[:end]

            size *= 8


class TableRows:
    """Rows of a CSV, JSON or Parquet file, in memory."""

    def __init__(self, path: Path, columns: Columns, *, skip: bool = False) -> None:
        """`skip`: leave unreadable rows out. Raises BadDataset with all faults."""
        self.path = path
        self._rows: dict[Key, AnswerRow] = {}
        table = read_rows(path)
        self.keys = _Keys(columns, table.unit)
        faults = self.keys.index(lambda: ((line, row, row) for line, row in table.rows), self._put)
        self.left_out = left_out(
            path, [*table.faults, *faults], skip=skip, unit=table.unit, setting="agent.skip"
        )

    def __iter__(self) -> Iterator[tuple[int, AnswerRow]]:
        return enumerate(self._rows.values(), start=1)

    def get(self, key: Key) -> AnswerRow | None:
        """The row; None if there is none."""
        return self._rows.get(key)

    def _put(self, key: Key, row: AnswerRow) -> AnswerRow | None:
        earlier = self._rows.setdefault(key, row)
        return None if earlier is row else earlier
