"""A sheet of an Excel workbook (.xlsx) as rows: cells as last calculated, never formulas."""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, time
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from karat.documents.columns import is_empty
from karat.documents.csv_rows import (
    above_the_header,
    are_data,
    grouped_header,
    header_names,
    numbered_header,
    texts_of,
    titles,
)
from karat.documents.names import roles_of, with_role
from karat.documents.row_list import Rows
from karat.documents.rows import unpacks_too_large
from karat.documents.tables import SPLITS
from karat.errors import BadDataset, Fault, MissingExtra, did_you_mean
from karat.formats import count, some_names

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

# including empty ones: a row with only its last cell set has all those before it
_MOST_CELLS = 5_000_000
_MOST_COLUMNS = 1_000  # of 16,384: cells further right are strays, or meant to make reading slow
_MOST_ROWS = 1_048_576  # of a sheet in Excel
_ALL = "*"  # the name of all sheets that are alike
_FIRST = 100  # rows among which a sheet has its header
_ERRORS = frozenset(
    {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!"}
)
_OF_ANSWERS = frozenset({"golden", "answer", "criterion"})
_DAMAGED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading foreign XML can raise."""

_Cells = Sequence[object]


def read_workbook(
    rows: Rows,
    path: Path,
    data: bytes,
    *,
    sheet: str | None = None,
    results: bool = False,
) -> None:
    """Adds the rows of one sheet; the first non-empty row names the columns. Raises BadDataset,
    MissingExtra.

    Sheets with one header are read together: of `results` with the same questions, each as a
    condition, and so are all alike if `sheet` is `*`.

    Dates and times become ISO 8601 text. An error value, or a formula without a stored value, is a
    fault.
    """
    rows.unit = "row"
    rows.as_text = (
        "put ' before it, or save the sheet as CSV, which writes numbers as they are shown"
    )
    try:
        import openpyxl  # noqa: F401 -- before anything is said of the file
    except ImportError as error:
        raise MissingExtra("excel", f"{path}: an Excel workbook") from error

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about charts, validations and styles, which are not read
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                # zipfile never reads more of a member than its declared size.
                size = sum(member.file_size for member in archive.infolist())
                if any(name.endswith(".iwa") for name in archive.namelist()):
                    raise _bad(path, "file", "is an Apple Numbers document: export it as CSV")

            wrong = unpacks_too_large(size, len(data))
            if wrong is not None:
                raise _bad(path, "file", wrong)
            every = sheet == _ALL
            alike: list[str] = []
            if sheet is None or every:
                alike = _alike(data, asked=not every, results=results)
            if alike:
                _read_together(rows, path, data, alike, results=results, every=every)
            else:
                _read_sheet(rows, path, data, sheet)
        except BadDataset as error:
            (first, *_) = error.faults
            if first.place != "dataset.sheet" or sheet is not None:
                raise
            together = _alike(data, asked=False, results=results)
            if not together:
                raise
            every_sheet = f"; '{_ALL}' reads those with the same columns, each as a condition"
            if not results:
                every_sheet = f"; '{_ALL}' reads {some_names(together)} as one"
            whole = _bad(path, first.place, first.message + every_sheet)
            whole.parts = error.parts
            raise whole from error
        except _DAMAGED as error:
            raise _bad(
                path,
                "file",
                f"is not an Excel workbook (.xlsx), or is damaged: {str(error)[:200]}",
            ) from error


def _alike(data: bytes, *, asked: bool, results: bool) -> list[str]:
    """The sheets with the same header; if they are no `results`, also those with the same question
    and the same columns of what is right. `asked`: only if all sheets have one header with a
    question. Empty: there is one sheet, or they differ or are splits of one dataset.
    """
    with _opened(data, values=True) as workbook:
        headers = _headers(workbook.worksheets)

    forms = {}
    for title, header in headers.items():
        questions = with_role(header, "question")[:1]
        forms[title] = header
        if questions and not asked and not results:
            forms[title] = [*questions, *sorted(roles_of(*header) & _OF_ANSWERS)]

    alike: list[str] = []
    for form in forms.values():
        same = [title for title in forms if forms[title] == form]
        if len(same) > max(1, len(alike)):
            alike = same

    if not alike or not SPLITS.isdisjoint(map(str.casefold, headers)):
        return []
    if not asked:
        return alike
    if len(alike) == len(headers) and with_role(headers[alike[0]], "question"):
        return alike
    return []


def _read_together(
    rows: Rows,
    path: Path,
    data: bytes,
    titles: Sequence[str],
    *,
    results: bool,
    every: bool,
) -> None:
    """Adds the rows of several sheets, each row with the name of its sheet: as its condition if two
    sheets of results ask the same question, or the user wants `every` sheet of results.
    """
    assert isinstance(rows.rows, list)
    before = 0
    asked: dict[object, str] = {}  # question → its sheet
    repeated = every
    sheets = []
    for title in titles:
        start = len(rows.rows)
        before = _read_sheet(rows, path, data, title, before=before)
        for _, row in rows.rows[start:]:
            sheets.append(title)
            for name in with_role(row, "question")[:1]:
                question = row[name]
                if question is not None and asked.setdefault(question, title) != title:
                    repeated = True

    if repeated and not results and not every:
        raise _must_name(path, titles)
    name = "sheet"
    if repeated and results and all("condition" not in row for _, row in rows.rows):
        name = "condition"
    for place, title in enumerate(sheets):
        number, row = rows.rows[place]
        rows.rows[place] = number, {name: title, **row}

    rows.notes.append(f"rows: the sheets {some_names(titles)}, named in the column '{name}'")


def _must_name(path: Path, titles: Collection[str]) -> BadDataset:
    listed = ", ".join(f"'{title}'" for title in titles)
    error = _bad(
        path,
        "dataset.sheet",
        f"must name one of the workbook's sheets: {listed} "
        "(of answers to score, save one sheet as a CSV file)",
    )
    error.parts = tuple(titles)
    return error


def _read_sheet(rows: Rows, path: Path, data: bytes, sheet: str | None, *, before: int = 0) -> int:
    """Adds the rows of a sheet; None: the only one. Returns how many rows have been read. `before`:
    how many other sheets have.
    """
    header: list[str] | None = None
    has_empty = False
    asking = slice(None)  # the columns of the table with the questions
    number = 0
    with _sheet(path, data, sheet, values=True) as worksheet:
        if sheet is None:
            sheet = worksheet.title
            _note_others(rows, worksheet)

        lines = _numbered(path, worksheet)
        first = [*islice(lines, _FIRST)]
        left_out = titles(_of_one_width(cells for _, cells in first))
        rows.notes += above_the_header(left_out)
        first = first[len(left_out) :]
        asking = _beside_another(rows, [cells for _, cells in first])
        table = [cells[asking] for _, cells in first]
        filled = [cells for cells in table if not all(map(is_empty, cells))]
        groups: list[str] = []
        if len(filled) > 1:
            above, below = _of_one_width(filled[:2])
            groups = grouped_header(texts_of(above), texts_of(below))

        for number, every_cell in chain(first, lines):
            cells = every_cell[asking]
            if all(map(is_empty, cells)) or (groups and cells in filled[:2]):
                header = groups or header
                continue

            if header is None:
                names = texts_of(cells)
                if not are_data(names, ()):
                    header = header_names(rows, names)
                    continue

                header = numbered_header(rows, number, len(names))

            _add(rows, before + number, header, cells)
            for name, cell in zip_longest(header, cells):
                if name and cell is None:
                    has_empty = True

    if header is not None and has_empty:
        _find_formulas(rows, path, data, sheet, header, before, asking)
    return before + number


def _beside_another(rows: Rows, lines: Sequence[_Cells]) -> slice:
    """The columns of the table with the questions, if a longer table is beside it, with an empty
    column between them; else all columns.
    """
    whole = slice(None)
    table = [cells for cells in lines if not all(map(is_empty, cells))]
    tables: list[list[int]] = [[]]
    for place, column in enumerate(zip(*_of_one_width(table), strict=True)):
        if not all(map(is_empty, column)):
            tables[-1].append(place)
        elif tables[-1]:
            tables.append([])

    asking: list[slice] = []
    asked: list[str] = []
    beside: list[str] = []
    parts = [*filter(None, tables)]
    for places in parts:
        part = slice(places[0], places[-1] + 1)
        names = []
        for cell in table[0][part]:
            if not is_empty(cell):
                names.append(str(cell))

        if len(names) > 1 and with_role(names, "question"):
            asking.append(part)
            asked += names
        else:
            beside += names

    if len(asking) != 1 or len(parts) < 2:
        return whole
    goes_on = any(all(map(is_empty, cells[asking[0]])) for cells in table)
    answers_are_beside = roles_of(*beside) & _OF_ANSWERS and not roles_of(*asked) & _OF_ANSWERS
    if not goes_on or answers_are_beside:
        return whole
    rows.notes.append(
        f"two tables side by side: {some_names(asked)} are read, and not {some_names(beside)}"
    )
    return asking[0]


def _of_one_width(lines: Iterable[_Cells]) -> list[list[object]]:
    """Lines that end with their last cell, filled up with empty ones."""
    return [[*cells] for cells in zip(*zip_longest(*lines), strict=True)]


def _bad(path: Path, place: str, message: str) -> BadDataset:
    return BadDataset(str(path), [Fault(place=place, message=message)])


def _opened(data: bytes, *, values: bool) -> closing[Workbook]:
    from openpyxl import load_workbook

    return closing(
        load_workbook(io.BytesIO(data), read_only=True, data_only=values, keep_links=False)
    )


@contextmanager
def _sheet(
    path: Path,
    data: bytes,
    name: str | None,
    *,
    values: bool,
) -> Iterator[ReadOnlyWorksheet]:
    with _opened(data, values=values) as workbook:
        sheets = {sheet.title: sheet for sheet in workbook.worksheets}
        if name is None and len(sheets) > 1:
            likely = _likely(_headers(workbook.worksheets)) or [*sheets]
            sheets = {title: sheets[title] for title in likely}

        if name is None and len(sheets) != 1:
            if sheets:
                raise _must_name(path, sheets)
            raise _bad(path, "dataset.sheet", "the workbook has no sheet")

        if name is not None and name not in sheets:
            raise _bad(
                path,
                "dataset.sheet",
                f"the workbook has no sheet '{name}'{did_you_mean(name, sheets)}",
            )

        chosen = sheets[next(iter(sheets)) if name is None else name]
        chosen.reset_dimensions()  # the size that the file declares is not trusted
        yield chosen


def _note_others(rows: Rows, worksheet: ReadOnlyWorksheet) -> None:
    """Notes which sheets with something in them are not read."""
    others = _headers(worksheet.parent.worksheets)
    others.pop(worksheet.title, None)
    if others:
        read = f"rows: the sheet '{worksheet.title}'"
        rows.notes.append(f"{read}; not read: {some_names(others)}")


def _headers(sheets: Sequence[ReadOnlyWorksheet]) -> dict[str, list[str]]:
    """The names of the columns of each sheet that is not empty."""
    headers = {}
    for sheet in sheets:
        sheet.reset_dimensions()
        rows = islice(sheet.iter_rows(values_only=True, max_col=_MOST_COLUMNS), _FIRST)
        first = [*rows]
        left_out = titles(_of_one_width(first))
        for cells in first[len(left_out) :]:
            if any(cells):
                headers[sheet.title] = [str(cell).strip() for cell in cells if cell is not None]
                break

    return headers


def _likely(headers: Mapping[str, Sequence[str]]) -> list[str]:
    """The only sheet that names a question, if it names an answer, too; else all."""
    asking = [title for title, names in headers.items() if with_role(names, "question")]
    if len(asking) != 1:
        return [*headers]
    roles = roles_of(*headers[asking[0]])
    if not roles & {"golden", "answer"}:
        return [*headers]
    return asking


def _numbered(path: Path, sheet: ReadOnlyWorksheet) -> Iterator[tuple[int, _Cells]]:
    cells_read = 0
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        if len(cells) > _MOST_COLUMNS:
            wide = f"has {count(len(cells))} columns, more than {count(_MOST_COLUMNS)}"
            raise _bad(
                path,
                f"row {number}",
                f"{wide}; delete stray cells far to the right, or save the sheet as CSV",
            )

        cells_read += len(cells)
        if number > _MOST_ROWS or cells_read > _MOST_CELLS:
            raise _bad(
                path,
                "file",
                f"has more than {count(_MOST_ROWS)} rows or {count(_MOST_CELLS)} cells",
            )

        yield number, cells


def _add(rows: Rows, number: int, header: Sequence[str], cells: _Cells) -> None:
    row = {}
    for name, cell in zip_longest(header, cells):
        if isinstance(cell, str) and cell in _ERRORS:
            rows.fault(number, f"'{name}' is {cell}: correct the formula, or empty the cell")
            return

        if name:
            row[name] = _plain(cell)
        elif cell is not None:
            rows.fault(
                number,
                (
                    f"has {str(cell)[:40]!r} in a column without a name; name the column in the "
                    f"first row"
                ),
            )
            return

    rows.add(number, row)


def _plain(cell: object) -> object:
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    if cell is None or isinstance(cell, (str, bool, int, float)):
        return cell
    return str(cell)


def _find_formulas(
    rows: Rows,
    path: Path,
    data: bytes,
    sheet: str | None,
    header: Sequence[str],
    before: int,
    asking: slice,
) -> None:
    """Records a fault for each formula without a stored value: such a cell is not empty."""
    unknown: dict[int, str] = {}
    with (
        _sheet(path, data, sheet, values=True) as values,
        _sheet(path, data, sheet, values=False) as formulas,
    ):
        for (number, cells), (_, written) in zip(
            _numbered(path, values),
            _numbered(path, formulas),
            strict=True,
        ):
            # a row may be shorter than the header
            for name, value, formula in zip(header, cells[asking], written[asking], strict=False):
                if value is None and formula is not None:
                    unknown.setdefault(before + number, name)

    rows.rows = [(number, row) for number, row in rows.rows if number not in unknown]
    rows.count = len(rows.rows)
    for number, name in unknown.items():
        rows.fault(
            number,
            f"'{name}' is a formula without a stored value; open the file in Excel, and save it",
        )
