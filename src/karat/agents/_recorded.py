"""Recorded answers by (sample, condition, repetition).

Two implementations: `OffsetRows` keeps a few dozen bytes per row and reads each line when
needed; `TableRows` holds a file that cannot be read by offset.
"""

from __future__ import annotations

import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from karat.documents.answers import (
    Copies,
    Repetitions,
    conditions_of,
    error_in,
    repetition_value,
)
from karat.documents.attempts import Attempts
from karat.documents.batches import Batch, Table
from karat.documents.columns import cell
from karat.documents.rows import holds_row, json_object, left_out, read_rows
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
_ROWS, _LARGE = 64, 2**20  # that are read together, unless they have more bytes


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the columns."""

    # one: the sample's id; several: what rows of one sample agree in; none: the row's number
    id: tuple[str, ...]
    answers: tuple[str, ...]  # several: each is a condition; none: not checked
    condition: tuple[str, ...]
    repetition: str
    # a run's journal: repetitions count from 0, and only the first answer of a trial counts
    of_karat: bool = False


Place = tuple[Batch, Sequence[At]]
"""Rows that follow each other, and where each is in the file."""


class _Keys:
    """Keys of rows, in the order of the file."""

    def __init__(self, columns: Columns, unit: str) -> None:
        self._columns = columns
        self._needed = {*columns.id, *columns.answers}
        # of each sample and condition, the rows without a repetition: those that count, and all
        self.counts = Counter[tuple[str, str | None]]()
        self.rows = Counter[tuple[str, str | None]]()
        self._samples: dict[Hashable, int] = {}  # what rows of one sample agree in → its number
        self._numbers = Repetitions()
        self.unit = unit
        self.copies = Copies(unit)
        self.attempts = Attempts()
        self.conditions: dict[str, None] = {}  # in the order of the file
        self.repetitions = 0  # the maximum over samples
        if len(columns.answers) > 1:
            self.conditions = dict.fromkeys(columns.answers)

    @property
    def answers(self) -> tuple[str, ...]:
        """The columns with answers."""
        return self._columns.answers

    def index(
        self,
        places: Callable[[], Iterable[Place[At]]],
        put: Callable[[Key, At], AnswerRow | None],
        get: Callable[[Key], AnswerRow | None],
    ) -> list[Fault]:
        """Gives each row's place in the file to `put`, which returns the row that already has the
        key, as `get` does.

        Returns the faults. `places`: read twice.
        """
        number = 0  # of rows before the batch
        for batch, _ in () if self._columns.of_karat else places():
            rows = zip(batch.rows, self._written(batch, number), strict=True)
            number += len(batch.numbers)
            for row, (sample, condition, given) in rows:
                if given is None:
                    self.attempts.add((sample, condition), failed=error_in(row) is not None)
                    continue

                with suppress(ValueError):  # `_key` raises it again
                    value = repetition_value(given, self._columns.repetition)
                    self._numbers.add(sample, condition, value)

        number = 0
        faults = []
        for batch, ats in places():
            found = zip(batch.numbers, batch.rows, ats, self._written(batch, number), strict=True)
            number += len(batch.numbers)
            for line, row, at, written in found:
                try:
                    self._check(row)
                    key = self._key(line, row, written, get)
                    earlier = None if key is None else put(key, at)
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

    def _written(
        self, batch: Batch, number: int
    ) -> Iterable[tuple[str, str | None, int | str | None]]:
        """Sample, condition and repetition, as each row has them."""
        columns = self._columns
        if not columns.id:
            samples = [str(number + place) for place in range(len(batch.numbers))]
        elif len(columns.id) == 1:
            samples = [*map(str, batch.column(columns.id[0]))]
        else:  # samples are numbered in the order of the rows
            known = self._samples
            samples = [str(known.setdefault(key, len(known))) for key in batch.keys(columns.id)]

        given = batch.column(columns.repetition)
        return zip(samples, conditions_of(batch, columns.condition), given, strict=True)

    def _check(self, row: AnswerRow) -> None:
        """Raises ValueError if the row lacks a column."""
        if row.keys() >= self._needed:
            return
        for name in self._columns.answers:
            if name not in row and cell(row, name) is None:
                raise ValueError(
                    f"has no '{name}' (set answer_key to one of: {some_of([*row], most=12)})"
                )

        for name in self._columns.id:
            if name not in row and cell(row, name) is None:
                raise ValueError(
                    f"has no '{name}' (set id_key to one of: {some_of([*row], most=12)}; or "
                    f"null to count rows)"
                )

    def _key(
        self,
        line: int,
        row: AnswerRow,
        written: tuple[str, str | None, int | str | None],
        get: Callable[[Key], AnswerRow | None],
    ) -> Key | None:
        """None: the row is identical to an earlier one, or a failed attempt. Raises ValueError for
        its repetition.
        """
        sample, condition, given = written
        value = repetition_value(given, self._columns.repetition)
        if self._columns.of_karat and isinstance(value, int):
            repetition = value
        elif value is not None:
            repetition = self._numbers.number(sample, condition, value)
        else:
            if error_in(row) is not None and self.attempts.was_repeated((sample, condition)):
                return None
            self.rows[sample, condition] += 1
            repetition = self.counts[sample, condition]
            first = get((sample, condition, 0)) if repetition == 1 else None
            if first is not None:  # only from now on a row can be a copy of it
                self.copies.remember(first)
            if (repetition or not self._columns.id) and self.copies.is_copy(line, row):
                return None
            self.counts[sample, condition] += 1

        if condition is not None:
            self.conditions[condition] = None
        if repetition >= self.repetitions:
            self.repetitions = repetition + 1
        return sample, condition, repetition


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
        faults = self.keys.index(self._places, self._put, self.get)
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

    def batches(self) -> Iterator[Batch]:
        """The same in batches."""
        return (batch for batch, _ in self._places())

    def _rows(self) -> Iterator[tuple[int, int, AnswerRow]]:
        for number, start, row, wrong in self._read():
            if wrong is None:
                yield number, start, row

    def _places(self) -> Iterator[Place[int]]:
        numbers: list[int] = []
        starts: list[int] = []
        rows: list[AnswerRow] = []
        for number, start, row in self._rows():
            if len(rows) == _ROWS or (rows and start - starts[0] > _LARGE):
                yield Batch(numbers, rows), starts
                numbers, starts, rows = [], [], []

            numbers.append(number)
            starts.append(start)
            rows.append(row)

        yield Batch(numbers, rows), starts

    def _read(self) -> Iterator[tuple[int, int, AnswerRow, str | None]]:
        """Number, offset and object of each line, or what is wrong with it."""
        only = b"" if self._run is None else b'{"event":"answer"'
        for number, (start, line) in enumerate(self._lines(), start=1):
            if not line.startswith(only) or not holds_row(line):
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
        batches = Table(table.rows)
        faults = self.keys.index(
            lambda: ((batch, batch.rows) for batch in batches), self._put, self.get
        )
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
