"""The rows of a CSV or TSV file."""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO, TextIOWrapper
from itertools import chain, compress, islice, pairwise
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from karat.documents.batches import FEW, Batch
from karat.documents.columns import NO_NAME, NumberedRow
from karat.documents.encodings import encoding_of
from karat.documents.names import meanings
from karat.documents.row_list import Rows, bad
from karat.formats import plural, some_of

_MANY = 4096  # rows of a CSV file that are read together, if they have less than _LARGE bytes
_LARGE = 2**20
_KEPT = 2**19  # cells of a CSV file whose batches are kept, since it is read several times
# A quotation mark inside a cell, neither doubled nor at one of its ends: no delimiter and no end of
# a line is beside it.
_STRAY_QUOTE = re.compile(
    rb'(?<!\A\xef\xbb\xbf)(?<=[^\s,;|"])"(?=[^\s,;|"]| [^\s,;|"])|(?<=[^\s,;|"] )"(?=[^\s,;|"])'
)
_SPACED = re.compile(rb'^(?:\xef\xbb\xbf)?"[^"\n]*"[,;] +"', re.MULTILINE)
_MANY_LINES = 10  # with as many commas each, which part columns
LONGEST_LINE = 64 << 20  # bytes, of JSON Lines and of CSV
NO_TEXT = "is not a text file"
_MOST_BAD_LINES = 100
"""Lines that are no CSV; after more of them, the rest of a file is not read."""


def delimiter_of(header: str) -> str:
    """What parts the columns of the header: tabs, or more semicolons than commas, else commas; bars
    if there is nothing else. A line `sep=;` tells Excel.
    """
    line = header.strip("\r\n")
    if re.fullmatch(r"sep=[,;\t|]", line):
        return line[-1]
    unquoted = re.sub(r'"[^"]*"', "", header).strip()
    commas = unquoted.count(",")
    if unquoted.count("\t") >= max(commas, 1):
        return "\t"
    if unquoted.count(";") > commas:
        return ";"
    if "|" in unquoted and not commas:
        return "|"
    return ","


class CsvCells:
    """The cells of each line of a CSV file that is not empty, with the number of its first line."""

    def __init__(self, data: bytes, encoding: str, delimiter: str) -> None:
        self.data = data
        self.encoding = encoding
        self.delimiter = delimiter
        self.spaced = _SPACED.search(data) is not None
        self.begins = 1  # the line on which the row that could not be read begins

    def __iter__(self) -> Iterator[tuple[Sequence[int], Sequence[list[str]]]]:
        """Numbers and cells of lines that follow each other. Raises csv.Error after the last."""
        file = BytesIO(self.data)
        reader = csv.reader(
            TextIOWrapper(file, encoding=self.encoding, newline=""),
            strict=True,
            delimiter=self.delimiter,
            skipinitialspace=self.spaced,
        )
        ends: list[int] = []
        lines: Iterator[list[str]] = reader
        if b'"' in self.data:  # else each line is a row
            lines = _noted(reader, ends)
        begins = 1
        error = None
        while error is None:
            table: list[list[str]] = []
            start = file.tell()
            ends.clear()
            try:
                while len(table) < _MANY and file.tell() - start < _LARGE:
                    there = len(table)
                    table.extend(islice(lines, FEW))
                    if len(table) < there + FEW:
                        break
            except csv.Error as wrong:  # the lines before it are in the table
                error = wrong

            if not table:
                break
            after = begins + len(table)
            numbers: Sequence[int] = range(begins, after)
            if ends:
                numbers = [begins, *(end + 1 for end in ends)]
                after = numbers.pop()

            begins = after
            if [] in table:
                numbers = [number for number, cells in zip(numbers, table, strict=True) if cells]
                table = [*filter(None, table)]

            if table:
                yield numbers, table

        if error is not None:
            self.begins = begins
            raise error


def _without_bad_lines(cells: CsvCells) -> tuple[bytes, dict[int, str]]:
    """The file with empty lines in place of those that are no CSV, and what is wrong with these;
    without the rest of the file if the header is one of them, or there are too many.
    """
    lines = cells.data.splitlines(keepends=True)
    wrong: dict[int, str] = {}
    rest = cells
    before = 0  # lines that have been looked at
    while True:
        try:
            for _ in rest:
                pass
        except csv.Error as error:
            begins = before + rest.begins
            wrong[begins] = (
                f"is not CSV: {error}; put text with quotes or commas in double quotes, and double "
                "quotes inside it twice"
            )
            if begins == 1 or len(wrong) > _MOST_BAD_LINES:
                for line in range(begins + 1, 1 + len(lines)):
                    wrong[line] = f"is not read, since line {begins} is not CSV"

                return b"".join(lines[: begins - 1]), wrong

            lines[begins - 1] = b"\n"
            before = begins
            rest = CsvCells(b"".join(lines[before:]), cells.encoding, cells.delimiter)
            rest.spaced = cells.spaced
        else:
            return b"".join(lines), wrong


def _noted(reader: Any, ends: list[int]) -> Iterator[list[str]]:
    """The rows of a reader. `ends`: gets the line on which each ends."""
    for cells in reader:
        ends.append(reader.line_num)
        yield cells


class CsvRows:
    """The rows of a CSV file, made anew each time unless it is small.

    In a file of one column the delimiter is text.
    """

    def __init__(
        self,
        cells: CsvCells,
        header: Sequence[str],
        *,
        count: int,
        lines: range,
        unfit: frozenset[int],
        uneven: bool,
        notes: Sequence[str],
    ) -> None:
        """`lines`: on which rows begin. `unfit`: those of rows that are left out. `uneven`: whether
        some lack their last cells, or have empty ones after them. `notes`: what was not plain about
        the file.
        """
        self.header = header
        self.count = count
        self.notes = notes
        self._cells = cells
        self._lines = lines
        self._unfit = unfit
        self._uneven = uneven
        self._kept: Sequence[Batch] | None = None

    def __iter__(self) -> Iterator[NumberedRow]:
        for batch in self.batches():
            yield from zip(batch.numbers, batch.rows, strict=True)

    def batches(self) -> Iterator[Batch]:
        """The same in batches."""
        if self.count * len(self.header) > _KEPT:
            return self._batches()
        if self._kept is None:
            self._kept = [*self._batches()]
        return iter(self._kept)

    def _batches(self) -> Iterator[Batch]:
        if not self._lines:
            return
        for numbers, table in self._cells:
            start = bisect_left(numbers, self._lines.start)
            stop = bisect_left(numbers, self._lines.stop)
            lines = numbers[start:stop]
            rows = table[start:stop]
            if not self._unfit.isdisjoint(lines):
                fit = [line not in self._unfit for line in lines]
                lines = [*compress(lines, fit)]
                rows = [*compress(rows, fit)]

            if lines:
                if self._uneven:
                    for row in rows:
                        row.extend([""] * (len(self.header) - len(row)))
                        del row[len(self.header) :]

                if len(self.header) == 1:
                    joined = [*map(self._cells.delimiter.join, rows)]
                    columns: dict[str, Sequence[str]] = {self.header[0]: joined}
                else:
                    columns = dict(zip(self.header, zip(*rows, strict=True), strict=True))

                yield Batch(lines, columns=columns)

            if numbers[-1] >= self._lines[-1]:  # a fault says what follows
                return


_sound: WeakValueDictionary[tuple[str, str], CsvRows] = WeakValueDictionary()
"""The files without faults that are in use: one may be the dataset and its answers. By their
SHA-256 and what parts their columns.
"""


def read_csv(rows: Rows, path: Path, data: bytes, delimiter: str = ",") -> None:
    """Fills `rows`. `delimiter`: if it is a comma, the header decides, and where it is not in the
    first lines, which all have as many others. Raises BadDataset.
    """
    if b"\0" in data:
        raise bad(path, "file", NO_TEXT)

    name = rows.sha256, delimiter
    known = _sound.get(name)
    if known is not None and rows.most is None:
        rows.rows = known
        rows.columns = known.header
        rows.count = known.count
        rows.notes += known.notes
        return

    notes = len(rows.notes)
    encoding, note = encoding_of(data)
    if note is not None:
        rows.notes.append(note)
    begin = BytesIO(data)
    lines = [begin.readline().decode(encoding) for _ in range(_MANY_LINES)]
    found = delimiter_of(lines[0])
    counts = {line.count(found) for line in lines if line.strip()}
    in_each = len(counts) == 1 and counts != {0}
    if delimiter == "," or (in_each and delimiter not in lines[0]):
        delimiter = found

    csv.field_size_limit(LONGEST_LINE)
    cells = CsvCells(data, encoding, delimiter)
    scan = _Scan(rows, delimiter)
    try:
        for numbers, table in cells:
            scan.add(numbers, table)
    except csv.Error:
        begins = cells.begins
        doubled = _STRAY_QUOTE.sub(b'""', data)
        repaired, wrong = _without_bad_lines(CsvCells(doubled, encoding, delimiter))
        del rows.notes[notes:], rows.faults[:]
        rows.count = rows.unread = 0
        for line, message in wrong.items():
            rows.fault(line, message)

        read_csv(rows, path, repaired, delimiter)
        if begins not in wrong:
            rows.notes.append(f"quotes inside cells are read as text (first in line {begins})")
        return

    scan.take_short_lines()
    if scan.blanks:
        rows.notes.append(f"{plural(scan.blanks, 'line')} left out in which every cell is empty")
    if scan.longer:
        lines_end = plural(scan.longer, "line ends", "lines end")
        rows.notes.append(f"{lines_end} with empty cells, for which the header has no column")

    if scan.headers:
        rows.notes.append(f"{plural(scan.headers, 'line')} left out that repeat the header")
    read = CsvRows(
        cells,
        scan.header,
        count=rows.count,
        lines=range(scan.first_line, scan.last_line + 1),
        unfit=frozenset(scan.unfit),
        uneven=bool(scan.short) or scan.longer > 0,
        notes=rows.notes[notes:],
    )
    rows.rows, rows.columns = read, scan.header
    if rows.most is None and not rows.faults:
        _sound[name] = read


class _Scan:
    """Which lines of a CSV file are its header and its rows."""

    def __init__(self, rows: Rows, delimiter: str) -> None:
        self._rows = rows
        self._delimiter = delimiter
        self.header: list[str] = []
        self.headers = 0  # the same line again, as where files were put together
        self.blanks = 0  # lines of empty cells, as between the parts of a table
        self.first_line, self.last_line = 0, -1  # of rows
        self.unfit: list[int] = []  # lines that are no row
        self.longer = 0  # lines with empty cells after the last column
        self.short: dict[int, int] = {}  # lines that end early → how many cells they have

    def add(self, numbers: Sequence[int], table: Sequence[list[str]]) -> None:
        """Counts rows, and notes faults of lines that are none."""
        rows = self._rows
        start = 0
        if not self.header:
            start = self._read_header(table)
            ends = {*map(len, table[start:])}
            alike = len(ends) == 1 and 1 < max(ends) < len(self.header)
            if alike and len(table) - start > 1:  # one short row may be a file that was cut off
                (width,) = ends
                without = self.header[width:]
                names = plural(len(without), "column")
                rows.notes.append(f"{names} without a cell in any row: {some_of(without)}")
                self.header = self.header[:width]

        lines = numbers[start:]
        cells = table[start:]
        width = len(self.header)
        sizes = [*map(len, cells)]
        blank = [""] * width
        again = self.header in cells or blank in cells
        even = sizes.count(width) == len(sizes)
        if lines and rows.most is None and even and not again:
            rows.count += len(sizes)  # as nearly always
            self.first_line = self.first_line or lines[0]
            self.last_line = lines[-1]
            return

        for number, row in zip(lines, cells, strict=True):
            if rows.most is not None and rows.enough():
                continue
            self.first_line = self.first_line or number
            self.last_line = number
            if again and row == self.header:
                self.headers += 1
                self.unfit.append(number)
            elif again and row == blank and width > 1:
                self.blanks += 1
                self.unfit.append(number)
            elif len(row) == width or width == 1:
                rows.count += 1
            elif len(row) > width and not any(row[width:]):
                self.longer += 1
                rows.count += 1
            elif 1 < len(row) < width:
                self.short[number] = len(row)
                rows.count += 1
            else:
                self._leave_out(number, len(row))

    def take_short_lines(self) -> None:
        """Reads lines without the last cells as rows if several lack the same ones; says so."""
        sizes = {*self.short.values()}
        alike = len(self.short) > 1 and len(sizes) == 1
        if alike and 2 * min(sizes) >= len(self.header):
            lacking = some_of(self.header[min(sizes) :])
            lines = plural(len(self.short), "line ends", "lines end")
            self._rows.notes.append(f"{lines} before {lacking}, which is empty there")
            return

        for number, size in self.short.items():
            self._rows.count -= 1
            self._leave_out(number, size)

    def _leave_out(self, number: int, size: int) -> None:
        found = f"has {plural(size, 'cell')}, the header has {len(self.header)}"
        self._rows.fault(number, f"{found}; put text with commas in quotes")
        self.unfit.append(number)

    def _read_header(self, table: Sequence[list[str]]) -> int:
        """Finds the names of the columns. Returns how many lines it takes."""
        start = 0
        if table[0] == ["sep=", ""]:  # tells Excel what parts the cells
            start = 1
            if len(table) == 1:
                return 1

        above = titles(table[start:])
        start += len(above)
        self._rows.notes += above_the_header(above)

        following: list[str] = []
        if len(table) > start + 1:
            following = table[start + 1]
            self.header = grouped_header(table[start], following)
            if self.header:
                return start + 2

        if are_data(table[start], following):
            self.header = numbered_header(self._rows, start + 1, len(table[start]))
            return start

        names = table[start]
        if max(map(len, table)) > len(names):
            names = names + [""] * columns_beyond(names, table[start + 1 :], self._delimiter)
        self.header = header_names(self._rows, names)
        return start + 1


def columns_beyond(header: Sequence[str], lines: Sequence[Sequence[str]], delimiter: str) -> int:
    """How many columns without a name follow those of the header: many lines have as many cells
    more, or all of them where commas may part texts.
    """
    further = {len(line) - len(header) for line in lines if any(line[len(header) :])}
    ends = [line[-1] for line in lines if any(line[len(header) :])]
    few = 3 * len(ends) < len(lines) or (delimiter != "\t" and len(ends) < len(lines))
    if len(header) < 2 or len(ends) < 2 or len(further) > 1 or few:
        return 0
    if any(end.startswith(" ") for end in ends):  # after a comma of a text
        return 0
    return max(further)


_MOST_TITLES = 10  # lines above a header; among more, no line is the header for sure
_SENTENCE = re.compile(r"\S+(?:\s+\S+){2,}[.?!।。？！]['\"”]?|\S.{10,}[。？！]|.{80,}", re.DOTALL)
_QUESTION = re.compile(r"\S+(?:\s+\S+){2,}[?？؟]|\S.{5,}[？؟]")
_DIGITS = re.compile(r"[0-9a-f]{16,}|\d+")
_DATE_OR_PATH = re.compile(
    r"\d{4}-\d\d-\d\d(?!\d).*|-?\d+[.]\d+|(?:https?:/)?/?[\w.-]+(?:/[\w.-]+)+"
)
_MEASURED = re.compile(r"-?\d+[.]\d{6,}|\d{4}-\d\d-\d\d[ T](?!00:00:00)\d\d:\d\d:\d\d.*")
"""Numbers and times as no column is called, other than dates in workbooks."""


def numbered_header(rows: Rows, line: int, width: int) -> list[str]:
    """The names of the columns of a table whose first line is a row, which is noted."""
    header = [f"{NO_NAME}{place}" for place in range(1, width + 1)]
    shown = ", ".join(header[:3])
    rows.notes.append(f"line {line} is a row: columns are called {shown}")
    return header


def with_first_line(rows: Rows) -> Rows:
    """The rows of a table whose header is one of them, with columns called by their places."""
    columns = [*dict.fromkeys(chain.from_iterable(row for _, row in rows.rows))]
    places = {name: f"{NO_NAME}{place}" for place, name in enumerate(columns, start=1)}
    changed = rows.emptied("the first line is a row")
    changed.add(1, {places[name]: name for name in columns})
    for number, row in rows.rows:
        changed.add(number, {places[name]: value for name, value in row.items()})

    return changed


def are_data(cells: Sequence[str], following: Sequence[str]) -> bool:
    """Whether the first line of a table is a row, not the names of its columns. `following`: the
    next line, whose numbers and ids may be like those of the first beside a whole sentence.
    """
    likely = long = like = 0
    measured = False
    for place, cell in enumerate(cells):
        text = cell.strip()
        under = following[place].strip() if place < len(following) else ""
        both_ask = _QUESTION.fullmatch(text) and _QUESTION.fullmatch(under)
        if both_ask and text != under:
            return True
        measured = measured or _MEASURED.fullmatch(text) is not None
        if _SENTENCE.fullmatch(text) or _DATE_OR_PATH.fullmatch(text):
            likely += 1
            long += " " in text
        elif meanings(text):
            return False
        elif text.count(" ") > 3:
            long += 1
        elif under and _DIGITS.search(text):
            like += _DIGITS.sub("0", text) == _DIGITS.sub("0", under)

    if long and like:
        return 2 * (long + like) > len(cells)
    return measured or 2 * likely > len(cells)


def titles(lines: Iterable[Sequence[object]]) -> list[Sequence[object]]:
    """The lines above the header of a table: those with one text at most, such as a title or a
    comment, with a label and its value, or with names of groups of columns. Empty if no header
    follows the first lines.
    """
    found: list[Sequence[object]] = []
    for cells, following in pairwise([*islice(lines, _MOST_TITLES + 1), ()]):
        above = texts_of(cells)
        below = texts_of(following)
        filled = [*filter(None, above)]
        first = above[0]
        if first.startswith("#"):
            sentence = first.startswith("# ") and len(above) != len(below)
            of_header = [*map(str.strip, above[1:])] == below[1:]
            is_title = len(filled) == 1 or of_header or sentence
        else:
            is_title = False

        if len(cells) > 2 and len(filled) < 2:
            is_title = True
        if len(cells) > 3 and len(filled) == 2:  # `Reviewer:` and a name
            is_title = is_title or filled[0].rstrip().endswith((":", "："))

        named = len([*filter(meanings, filled)])
        named_below = len([*filter(meanings, below)])
        of_groups = len(filled) < len(cells) < 2 * named_below
        if of_groups and named_below > named:
            if grouped_header(above, below):
                return found  # they are needed: columns of several groups have the same name
            is_title = True

        if not is_title:
            return found
        found.append(cells)

    return []


def texts_of(cells: Iterable[object]) -> list[str]:
    """Cells of a header or of a line above it as texts; an empty one is an empty text."""
    return ["" if cell is None else str(cell) for cell in cells]


def above_the_header(lines: Iterable[Sequence[object]]) -> list[str]:
    """A note on what titles say; empty: there are none."""
    texts: list[str] = []
    for cells in lines:
        texts += filter(None, texts_of(cells))

    if not texts:
        return []
    return [f"left out above the header: {some_of(texts)}"]


def grouped_header(above: Sequence[str], below: Sequence[str]) -> list[str]:
    """The names of columns under a header of two lines, of which the first names groups and the
    second repeats names in each group: `GPT` over `Answer` and `Score`, `Claude` over the same.
    Empty: the lines are no such header.
    """
    if len(above) != len(below) or len(above) < 3:
        return []
    tops = [*map(str.strip, above)]
    names = [*map(str.strip, below)]
    whole = []
    group = ""
    for top, name in zip(tops, names, strict=True):
        if not (name or top):
            return []
        if len(name) > _LONGEST_NAME or _DIGITS.search(name):
            return []
        group = top or group
        whole.append(f"{group} {name}".strip())

    named = [*filter(None, names)]
    is_repeated = len({*named}) < len(named)
    is_grouped = 1 < len([*filter(None, tops)]) < len(tops)
    is_different = len({*whole}) == len(whole)
    if is_repeated and is_grouped and is_different:
        return whole
    return []


_LONGEST_NAME = 40  # characters


def header_names(rows: Rows, cells: Iterable[str]) -> list[str]:
    """The names of the columns. A column without a name gets its number, and so does one whose name
    another has already, which is noted.
    """
    header: list[str] = []
    for place, cell in enumerate(cells, start=1):
        name = cell.strip() or f"{NO_NAME}{place}"
        again = name
        while name in header:
            name = f"{name} {place}"

        if name != again:
            rows.notes.append(f"column {place}, another '{again}', is called '{name}'")
        header.append(name)

    return header
