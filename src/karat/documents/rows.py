"""A file of rows → mappings with their line or row number; reports every bad row at once."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice, takewhile
from operator import itemgetter, methodcaller
from pathlib import Path
from typing import Any

import msgspec

from karat.documents.cells import as_printed
from karat.documents.columns import NumberedRow, Row, columns_of
from karat.documents.csv_rows import LONGEST_LINE, NO_TEXT, read_csv
from karat.documents.hub import Fetched, fetch, hub_name, shown
from karat.documents.names import any_speaker_and_text, roles_of
from karat.documents.nodes import Node, plain, walk
from karat.documents.other_documents import known_document
from karat.documents.reader import Limits, parse
from karat.documents.row_list import MOST_FAULTS, Rows, TooManyFaults, bad, in_order
from karat.documents.storable import Unfit, constant, finite, impossible, integer, why_unfit
from karat.documents.tables import SPLITS, best_of, rows_of, tables_in, together, with_questions
from karat.documents.text_rows import rows_in_text
from karat.errors import BadDataset, Fault, MissingExtra, did_you_mean, unreadable
from karat.files import open_regular
from karat.formats import count, excerpt, plural, some_of
from karat.garbage import freeze_own_objects

_LONGEST_PRINTED = 1_000_000  # bytes of a line
_MOST_NAN = 1_000_000  # in JSON; each costs a microsecond
_LARGEST_JSON = 512 << 20  # bytes, of a JSON file, which is read as a whole
_KEPT = 2**21  # bytes of a JSONL file whose objects are kept, since they are read several times
_BLOCK = 64  # lines that are read at once


_COMMENT = re.compile(rb"^[ \t]*(?:#|//)", re.MULTILINE)
_COLON = re.compile(rb'"\s*:')


def repeated_key(text: bytes, value: Any) -> str | None:
    """A key that an object in the JSON text has twice, or None. JSON readers silently keep the last
    value.

    `value`: the parsed text. The text is parsed again only if it has more `":` than `value` has
    keys.
    """
    keys, waiting = 0, [value]
    while waiting:
        below = waiting.pop()
        if isinstance(below, dict):
            keys += len(below)
            waiting += below.values()
        elif isinstance(below, list):
            waiting += below

    repeated: list[str] = []
    if len(_COLON.findall(text)) > keys:

        def note(pairs: list[tuple[str, Any]]) -> None:
            repeated.extend(
                key for key, count in Counter(key for key, _ in pairs).items() if count > 1
            )

        json.loads(text, object_pairs_hook=note, parse_int=integer, parse_float=finite)

    if repeated:
        return repeated[0]
    return None


def has_too_many_nan(data: bytes) -> bool:
    """Whether JSON has so many NaN and infinities, which it must not have, that reading them would
    take seconds.
    """
    return data.count(b"NaN") + data.count(b"Infinity") > _MOST_NAN


Entry = Callable[[str, Any], Row | None]  # the row that an entry of an object is, if it is one
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\x0b\x0c"
_MANY_NAN = f"holds more than {count(_MOST_NAN)} NaN or Infinity, which JSON does not allow"
_TOO_LONG = f"is longer than {LONGEST_LINE >> 20} MB; write one object a line"
_TWICE = "an object has the key '{}' twice; remove one of them"


def read_rows(
    path: Path,
    *,
    section: str | None = None,
    sheet: str | None = None,
    entry: Entry | None = None,
    first: bool = False,
    results: bool = False,
    most: int | None = None,
) -> Rows:
    """The rows of a file, whose ending says its format. Raises BadDataset if nothing can be read.

    A JSON or YAML file may also be an object that holds lists: the one with questions, or the one
    called `section`, is read; or, with `entry`, an object whose entries are rows; or, with `first`,
    the first of several lists; or, with `results`, lists of the same columns are read as one, their
    names as conditions. `sheet`: which sheet of a workbook; None: the only one. A path
    `hf://…` is read from the Hugging Face Hub. `most`: how many rows of JSON Lines and CSV are
    read; `unread` counts the others.
    """
    from hashlib import sha256

    try:
        name = hub_name(path)
    except ValueError as error:
        raise bad(path, "file", str(error)) from error

    if name is not None:
        return _hub_rows(
            fetch(name, [*_OF_TABLES, *(f"{ending}.gz" for ending in _PACKED)]),
            path,
            section,
        )

    ending = path.suffix.lower()
    packed = ending == ".gz"
    if packed:
        ending = Path(path.stem).suffix.lower()
    if ending not in (_PACKED if packed else FORMATS):
        known = f"{', '.join(FORMATS)}; {', '.join(_PACKED)} also compressed (.gz)"
        if packed:
            named = f"{ending}.gz"
        else:
            named = ending

        raise bad(path, "file", f"cannot read files that end in '{named}', only {known}")

    if sheet is not None and ending != ".xlsx":
        raise bad(path, "dataset.sheet", "is for workbooks (.xlsx); this file has no sheets")
    try:
        with open_regular(path) as file:
            if (
                ending in (".jsonl", ".ndjson")
                and len(file.readline(LONGEST_LINE + 1)) > LONGEST_LINE
            ):
                raise bad(path, "line 1", _TOO_LONG)

            size = file.seek(0, io.SEEK_END)
            if ending == ".json" and size > _LARGEST_JSON:
                raise bad(
                    path,
                    "file",
                    f"is larger than {_LARGEST_JSON >> 20} MB; save it as JSON Lines",
                )

            file.seek(0)
            data = file.read()
    except (OSError, ValueError) as error:
        raise bad(path, "file", f"cannot be read: {unreadable(error)}") from error

    rows = Rows(sha256=sha256(data).hexdigest(), unit="line", most=most)
    if packed:
        data = _unpacked(path, data)
    if not data or data.isspace():
        raise bad(path, "file", "is empty; it needs at least one sample")
    if ending == ".csv" and data.startswith(b"PK\x03\x04"):
        ending = ".xlsx"
        rows.notes.append("an Excel workbook, whatever its name says")

    _refuse_without_rows(path, data)
    if ending not in (".xlsx", ".parquet"):
        data = _as_utf8(rows, path, data)
    try:
        if ending == ".xlsx":
            _workbook(rows, path, data, sheet, results=results)
        elif ending in _NESTED:
            _NESTED[ending](rows, path, data, within=_Within(section, entry, first, results))
        else:
            FORMATS[ending](rows, path, data)
    except TooManyFaults:
        rows.faults[10:] = [
            Fault(place="file", message=f"more than {count(MOST_FAULTS - 1)} rows are wrong")
        ]
        raise BadDataset(shown(path), rows.faults) from None

    if not rows.count and not rows.faults:
        raise bad(path, "file", "holds no sample; it needs at least one")
    return rows


def left_out(
    path: Path,
    faults: Sequence[Fault],
    *,
    skip: bool,
    unit: str,
    setting: str = "dataset.skip",
    besides: str = "",
) -> str | None:
    """What was left out, as a sentence; None: nothing. Raises BadDataset with the faults, unless
    `skip`.

    A fault that is not of a row is never skipped. `setting`: the key in an experiment that makes
    `skip` true. `besides`: a sentence with another remedy.
    """
    if not faults:
        return None
    of_rows = all(fault.place.startswith(f"{unit} ") for fault in faults)
    if of_rows:
        faults = in_order(faults)
    if not skip or not of_rows:
        remedy = (
            f"To leave such rows out, set `{setting}: unreadable` (on the command line: "
            f"--skip-unreadable)."
        )
        if besides:
            remedy += f"\n{besides}"
        raise BadDataset(shown(path), faults, remedy=remedy if of_rows else "")

    places = dict.fromkeys(fault.place for fault in faults)
    named = some_of([f"{fault.place} {fault.message}" for fault in faults])
    return f"{plural(len(places), f'unreadable {unit}')} left out: {named}"


def _hub_rows(fetched: Fetched, path: Path, section: str | None) -> Rows:
    """The rows of several files as one; sha256 is that of a single file, or of all files'
    digests.
    """
    from hashlib import sha256

    try:
        parts = [read_rows(file, section=section) for file in fetched.files]
    except BadDataset as error:
        raise BadDataset(shown(path), error.faults) from error

    (first, *others), before = parts, 0
    first.commit = fetched.commit
    if others:
        kept = []
        for part in parts:
            kept += [(before + number, row) for number, row in part.rows]
            if part is not first:
                first.faults += [
                    Fault(
                        place=f"{first.unit} {before + int(fault.place.rpartition(' ')[2])}",
                        message=fault.message,
                    )
                    for fault in part.faults
                ]

            before += part.count + len(part.faults)

        first.rows, first.count, first.columns = kept, len(kept), ()
        first.sha256 = sha256("".join(part.sha256 for part in parts).encode()).hexdigest()

    return first


_MOST_UNPACKED = 2**30  # bytes
_MOST_TIMES = 200  # times the file's size: text shrinks to about a tenth, a bomb to a thousandth
_SMALL = 10_000_000  # bytes: harmless, however small the file was
_CHUNK = 1 << 20


def unpacks_too_large(unpacked: int, packed: int) -> str | None:
    """Why a file of `packed` bytes that becomes `unpacked` bytes is refused; None if it is not."""
    if unpacked > _MOST_UNPACKED:
        return f"unpacks to more than {_MOST_UNPACKED >> 30} GiB; split it, or use Parquet"
    if unpacked > _SMALL and unpacked > _MOST_TIMES * packed:
        return (
            f"unpacks to more than {_MOST_TIMES} times its size, as only a damaged or hostile "
            f"file does"
        )

    return None


def _unpacked(path: Path, data: bytes) -> bytes:
    """The content of a .gz file, all members; stops reading at the allowed size."""
    packed, unpacked = io.BytesIO(data), bytearray()
    try:
        with gzip.GzipFile(fileobj=packed) as file:
            while chunk := file.read(_CHUNK):
                unpacked += chunk
                if (wrong := unpacks_too_large(len(unpacked), packed.tell())) is not None:
                    raise bad(path, "file", wrong)
    except EOFError:
        raise bad(path, "file", "is cut off: the end of the compressed data is missing") from None
    except (OSError, zlib.error):
        raise bad(path, "file", "is not a gzip file, or is damaged") from None

    return bytes(unpacked)


def _json_lines(rows: Rows, path: Path, data: bytes) -> None:
    _refuse_binary(path, data)
    unfit: list[int] = []
    # Lines end at \n only: a raw U+2028 or U+0085 inside a string is text.
    is_list = data.removeprefix(_BOM).lstrip()[:1] == b"["
    if is_list and not _is_by_line(data):
        _json_list(rows, path, data)
        return

    lines, last = _lines(data), 0
    while block := [*islice(lines, rows.room(_BLOCK))]:
        last = block[-1][0]
        if _are_objects([line for _, line in block]):
            rows.count += len(block)
            continue

        for number, line in block:
            try:
                json_object(line)
            except ValueError as error:
                rows.fault(number, str(error))
                unfit.append(number)
            else:
                rows.count += 1

    rows.unread += sum(1 for _ in lines)
    comments = len(_COMMENT.findall(data))
    if comments:
        rows.notes.append(f"without {plural(comments, 'comment line')}")

    rows.rows = _Objects(data, frozenset(unfit), last)
    several_lines = data.removeprefix(_BOM).lstrip().startswith((b"{\n", b"{\r\n"))
    if rows.faults and several_lines:
        rows.faults, rows.count = [], 0
        _json_objects(rows, path, data)


def _json_objects(rows: Rows, path: Path, data: bytes) -> None:
    """Objects one after another, each over several lines."""
    text, at = _text(path, data).removeprefix("\ufeff"), 0
    rows.unit, rows.rows = "item", []
    decoder = json.JSONDecoder(parse_constant=constant, parse_int=integer, parse_float=finite)
    number = 0
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1

        if at == len(text):
            return
        number += 1
        begins = at
        try:
            row, at = decoder.raw_decode(text, begins)
        except json.JSONDecodeError as error:
            message = f"is not JSON, column {error.colno}: {_lower(error.msg)}"
            raise bad(path, f"line {error.lineno}", message) from None
        except RecursionError:
            raise bad(path, "file", "is nested too deeply") from None

        key = repeated_key(text[begins:at].encode(), row)
        if key is not None:
            raise bad(path, f"item {number}", _TWICE.format(excerpt(key, 40)))
        _add_item(rows, number, row)


def json_object(line: bytes) -> dict[str, Any]:
    """The object in a line of JSON Lines. Raises ValueError with what is wrong with the line."""
    row = _decoded(line)
    if not isinstance(row, dict):
        raise ValueError(f"is {_kind(row)}; each line must be a JSON object")
    wrong = why_unfit(row)
    if wrong is None and (key := repeated_key(line, row)) is not None:
        wrong = _TWICE.format(excerpt(key, 40))
    if wrong is not None:
        raise ValueError(wrong)
    return row


def holds_row(line: bytes) -> bool:
    """Whether a line of JSON Lines is neither blank nor a comment."""
    return bool(line.strip()) and _COMMENT.match(line) is None


def _are_objects(lines: Sequence[bytes]) -> bool:
    """Whether `json_object` reads each line; asks for all at once."""
    try:
        rows = [msgspec.json.decode(line) for line in lines]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False

    if not all(isinstance(row, dict) for row in rows) or why_unfit(rows) is not None:
        return False
    return repeated_key(b"[%b]" % b",".join(lines), rows) is None


class _Objects:
    """The objects of a JSONL file. Those of a large file are decoded anew each time: only the text
    is kept in memory.
    """

    def __init__(self, data: bytes, unfit: frozenset[int], last: int) -> None:
        self._data, self._unfit, self._last = data, unfit, last
        self._kept: Sequence[NumberedRow] | None = None

    def __iter__(self) -> Iterator[NumberedRow]:
        rows = chain.from_iterable(self._blocks())
        if len(self._data) > _KEPT:
            return rows
        if self._kept is None:
            self._kept = [*rows]
        return iter(self._kept)

    def _blocks(self) -> Iterator[list[NumberedRow]]:
        """The objects of some lines at a time, so that one more costs little."""
        lines = takewhile(lambda numbered: numbered[0] <= self._last, _lines(self._data))
        while block := list(islice(lines, _BLOCK)):
            fit = []
            for number, line in block:
                if number not in self._unfit:
                    fit.append((number, line))

            try:
                objects = [(number, msgspec.json.decode(line)) for number, line in fit]
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                objects = [(number, _decoded(line)) for number, line in fit]

            yield objects


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are neither blank nor comments, and their numbers."""
    lines = map(methodcaller("strip", _BLANK + b"\n"), io.BytesIO(data.removeprefix(_BOM)))
    said = filter(itemgetter(1), enumerate(lines, start=1))
    if _COMMENT.search(data) is None:
        return said
    return (numbered for numbered in said if _COMMENT.match(numbered[1]) is None)


def _is_by_line(data: bytes) -> bool:
    """Whether the first lines are objects, or lists, of their own."""
    lines = _lines(data)
    first = next(lines, (0, b""))[1]
    second = next(lines, (0, b""))[1]
    is_whole = first[:1] + first[-1:] in (b"{}", b"[]")
    return is_whole and first[:1] == second[:1]


class _Within(msgspec.Struct, frozen=True):
    """The list may be inside an object: the name of the list to read; None: the only one."""

    section: str | None
    entry: Entry | None
    first: bool
    results: bool


def _json_list(rows: Rows, path: Path, data: bytes, within: _Within | None = None) -> None:
    _refuse_binary(path, data)
    if _is_by_line(data):
        _json_lines(rows, path, data)  # one object a line, whatever the file's name
        return

    rows.unit = "item"
    data = data.removeprefix(_BOM)
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        document = _odd_json(path, data)
        if document is _SEVERAL:
            _json_objects(rows, path, data)
            return

    if (key := repeated_key(data, document)) is not None:
        raise bad(path, "file", _TWICE.format(excerpt(key, 40)))
    items, _ = _list_in(rows, path, document, within)
    for number, row in enumerate(items, start=1):
        _add_item(rows, number, row)


def _list_in(
    rows: Rows,
    path: Path,
    document: Any,
    within: _Within | None,
) -> tuple[list[Any], str | None]:
    """The document's list, and its name if it is inside an object; notes that, and which others are
    not read.
    """
    if within is None or isinstance(document, list):
        if not isinstance(document, list):
            raise bad(
                path,
                "file",
                f"is {_kind(document)}; it must be a list of objects: [{{…}}, {{…}}]",
            )

        return document, None

    if within.entry is not None and isinstance(document, dict):
        entries = [within.entry(key, value) for key, value in document.items()]
        if entries and None not in entries:
            return entries, None

    tables = tables_in(document)
    name = within.section
    if name == _ALL_LISTS and name not in tables:
        likely = best_of(tables, results=within.results)
        rows.notes.append(f"rows: the lists {some_of(likely)}, named in the column 'list'")
        return _of_all(tables, likely), name

    if name is not None:
        known = [*tables]
        if name not in tables:
            named = document.get(name) if isinstance(document, dict) else None
            if isinstance(named, list):
                rows.notes.append(f"rows: the list '{name}'")
                return named, name

            raise bad(
                path,
                "dataset.split",
                f"there is no list '{name}' in the file{did_you_mean(name, known)}",
            )

        rows.notes.append(f"rows: the list '{name}'")
        return tables[name], name

    held = known_document(document, tables)
    if held is not None or not tables:
        raise bad(path, "file", held or _what_it_is(document))
    likely = best_of(tables, results=within.results)
    if within.results:
        items, lists = _of_several(tables, likely)
        if items:
            rows.notes.append(f"rows: the list {lists}")
            return items, lists

        likely = _talk_alone(tables, likely)

    if len(likely) > 1 and not within.first:
        message = f"must name one of the file's lists: {some_of([excerpt(t, 40) for t in likely])}"
        if not {name.casefold() for name in likely} & SPLITS:
            message += f"; '{_ALL_LISTS}' reads all of them"
        error = bad(path, "dataset.split", message)
        error.parts = tuple(likely)
        raise error

    if likely[0]:
        others = []
        for other, items in tables.items():
            if other != likely[0] and len(items) > 1:
                others.append(f"'{excerpt(other, 40)}' ({plural(len(items), 'row')})")

        left = f"; not read: {some_of(others)}" if others else ""
        if _FAILED.search(likely[0]):
            left += "; by its name, it holds only what failed"
        rows.notes.append(f"rows: the list '{likely[0]}'{left}")

    return tables[likely[0]], likely[0] or None


def _talk_alone(tables: Mapping[str, Sequence[Any]], names: list[str]) -> list[str]:
    """The list of messages, each of which says who speaks, and what, where the others hold no
    question; else the same lists.
    """
    if len(names) < 2:
        return names
    talks = []
    for name in names:
        items = tables[name]
        rows = [item for item in items if isinstance(item, Mapping)]
        if items and all(any_speaker_and_text(item) is not None for item in items):
            talks.append(name)
        elif "question" in roles_of(*columns_of(rows)):
            return names

    return talks if len(talks) == 1 else names


_FAILED = re.compile(r"(?:fail|error|mistake|incorrect|wrong|\bmiss)[^.]*$", re.IGNORECASE)


def _of_several(
    tables: Mapping[str, Sequence[Any]],
    likely: Sequence[str],
) -> tuple[list[dict[str, Any]], str]:
    """The rows of results that several lists hold together, and which; empty if they do not."""
    joined = together(tables, likely) if len(likely) > 1 else []
    if joined:
        return joined, f"'{some_of(likely)}'"
    items, answered, asked = with_questions(tables)
    return items, f"'{answered}', each row with its entry in '{asked}'"


_ALL_LISTS = "*"
"""The name of all lists of a file that are alike."""


def _of_all(tables: Mapping[str, Sequence[Any]], names: Sequence[str]) -> list[Any]:
    """The rows of several lists, each with the name of its own."""
    found = []
    for name in names:
        for item in tables[name]:
            if isinstance(item, Mapping):
                found.append({"list": name, **item})
            else:
                found.append(item)

    return found


def _what_it_is(document: Any) -> str:
    """What a document without rows seems to be."""
    if not isinstance(document, dict):
        return f"is {_kind(document)}; it must be a list of objects: [{{…}}, {{…}}]"
    if {"agent", "conditions"} <= {*document}:
        return "is an experiment file, not a dataset"
    empty = [name for name, value in document.items() if value == []]
    if empty:
        return f"holds nothing but empty lists: {some_of(empty)}"
    if {"queries", "corpus"} <= {*document} or {"questions", "corpus"} <= {*document}:
        return "is a retrieval set: questions, documents and which of them is relevant"
    leaves: list[Any] = []  # the values in the object and in the objects inside it
    waiting: list[Mapping[str, Any]] = [document]
    while waiting:
        for value in waiting.pop().values():
            if isinstance(value, Mapping):
                waiting.append(value)
            else:
                leaves.append(value)

    numbers = [value for value in leaves if isinstance(value, (int, float))]
    if numbers and 2 * len(numbers) > len(leaves):
        return "holds means or settings, but no rows: give the file with one row a question"
    return (
        'is an object without a list of rows; it must be {"dev": [{…}, {…}]} or a list of objects'
    )


def _add_item(rows: Rows, number: int, item: Any) -> None:
    if not (found := rows_of(item)):
        rows.fault(number, f"is {_kind(item)}; each item must be an object")
    for row in found:
        rows.add(number, row)


_LIMITS = Limits(
    max_bytes=10_000_000,
    max_nodes=200_000,
    too_large="in YAML is read slowly: save it as JSON Lines",
    too_many="save it as JSON Lines",
    numbers_as_written=True,
)


def _yaml(rows: Rows, path: Path, data: bytes, within: _Within | None = None) -> None:
    """A list of mappings. Of values that YAML 1.1 misreads, `no` is a fault; `010` and `1:30` are
    texts.
    """
    document = parse(data, what="a dataset", limits=_LIMITS)
    misread = [warning.partition(": ") for warning in document.warnings]
    faults = [
        *document.faults,
        *(Fault(place=place, message=message) for place, _, message in misread),
    ]
    if faults:
        raise BadDataset(str(path), faults)
    if document.as_written:
        written = some_of([*dict.fromkeys(document.as_written)])
        rows.notes.append(f"read as text, and no number: {written}")
    root = document.root or Node(None)
    items, name = _list_in(rows, path, plain(root), within)
    at = root
    for key in (name or "").split("."):
        at = at.get(key) or at

    nodes = [node for _, node in at.children()]
    lines = [node.line or 0 for node in nodes]
    is_list = isinstance(at.value, list) and len(nodes) == len(items)
    if not is_list:  # rows by id, columns as lists, one row
        nodes = [at] * len(items)
    if not is_list or len(set(lines)) < len(lines):  # several on one line
        rows.unit, lines = "item", list(range(1, len(items) + 1))
    for number, row, node in zip(lines, items, nodes, strict=True):
        endless = next(
            (at.written for _, at in walk(node) if at.value in _ENDLESS or at.value != at.value),
            None,
        )
        if endless is not None:
            rows.fault(number, impossible(endless))
        else:
            _add_item(rows, number, row)


_ENDLESS = (math.inf, -math.inf)


def _xml(rows: Rows, path: Path, data: bytes, within: _Within | None = None) -> None:
    from karat.documents.xml_rows import read_xml

    rows.unit = "item"
    try:
        document = read_xml(_text(path, data))
    except ValueError as error:
        raise bad(path, "file", str(error)) from None

    items, _ = _list_in(rows, path, document, within)
    for number, row in enumerate(items, start=1):
        _add_item(rows, number, row)


def has_key(path: Path, names: Iterable[str]) -> bool:
    """Whether a YAML file begins a line with one of these keys, in its first 64 KB."""
    key = re.compile(rf"^[\"']?(?:{'|'.join(names)})[\"']?[ \t]*:".encode(), re.MULTILINE)
    with suppress(OSError, ValueError), open_regular(path) as file:
        return key.search(file.read(65536)) is not None

    return False


_SEVERAL = object()


def _odd_json(path: Path, data: bytes) -> Any:
    """The value, with `Unfit` for numbers that JSON or karat cannot hold; `_SEVERAL` if objects
    follow each other.
    """
    if has_too_many_nan(data):
        raise bad(path, "file", _MANY_NAN)
    text = _text(path, data)
    try:
        return json.loads(text, parse_constant=constant, parse_int=integer, parse_float=finite)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            return _SEVERAL
        message = f"is not JSON, column {error.colno}: {_lower(error.msg)}"
        raise bad(path, f"line {error.lineno}", message) from None
    except RecursionError:
        raise bad(path, "file", "is nested too deeply") from None


def _parquet(rows: Rows, path: Path, data: bytes) -> None:
    freeze_own_objects()  # and not DuckDB's, which it would report as lost
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingExtra("query", f"{path}: a Parquet file") from error

    rows.unit = "row"
    if data[:4] != b"PAR1":
        raise bad(path, "file", "is not a Parquet file")
    with duckdb.connect() as connection:
        try:
            # Escape brackets and stars in the path, so that they are not a pattern.
            pattern = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path))
            connection.execute("SET TimeZone = 'UTC'")
            table = connection.read_parquet(pattern)
            selected = []
            for name, kind in zip(table.columns, map(str, table.types), strict=True):
                # DuckDB's own values of times with a zone need another package
                plain = kind.replace("TIMESTAMP WITH TIME ZONE", "VARCHAR")
                quoted = '"' + name.replace('"', '""') + '"'
                if plain == kind:
                    selected.append(quoted)
                else:
                    selected.append(f"CAST({quoted} AS {plain})")

            names = table.columns
            cursor = table.project(", ".join(selected))
            for number, values in enumerate(cursor.fetchall(), start=1):
                rows.add(number, dict(zip(names, map(_json_value, values), strict=True)))
        except duckdb.Error as error:
            raise bad(
                path,
                "file",
                f"cannot be read as Parquet: {str(error).partition(chr(10))[0]}",
            ) from error


def _workbook(
    rows: Rows,
    path: Path,
    data: bytes,
    sheet: str | None = None,
    *,
    results: bool = False,
) -> None:
    from karat.documents.workbook import read_workbook

    read_workbook(rows, path, data, sheet=sheet, results=results)


def _transcript(rows: Rows, _: Path, data: bytes) -> None:
    """The rows in a text; else the whole as one cell, to be read as a conversation."""
    text = data.decode()
    found, note = rows_in_text(text)
    for number, row in found:
        rows.add(number, row)

    if found:
        rows.notes.append(note)
    else:
        rows.add(1, {"transcript": text})


FORMATS: Mapping[str, Callable[[Rows, Path, bytes], None]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_list,
    ".csv": read_csv,
    ".tsv": partial(read_csv, delimiter="\t"),
    ".yaml": _yaml,
    ".yml": _yaml,
    ".xml": _xml,
    ".xlsx": _workbook,
    ".parquet": _parquet,
    ".txt": _transcript,
    ".md": _transcript,
    ".srt": _transcript,
    ".vtt": _transcript,
    ".log": _transcript,
}
# on the Hub, a text is a notice
_OF_TABLES = [ending for ending, read in FORMATS.items() if read is not _transcript]
_NESTED = {".json": _json_list, ".yaml": _yaml, ".yml": _yaml, ".xml": _xml}
_PACKED = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")


_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_FEWEST_PER_NUL = 20
"""Bytes of a text for each NUL character, which a tool that made it left there; else it is none."""


def _as_utf8(rows: Rows, path: Path, data: bytes) -> bytes:
    """The file's text in UTF-8, whatever it was saved in. Raises BadDataset for what is no text."""
    if data[:2] in _UTF16:
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError:
            raise bad(path, "file", "is UTF-16 cut in the middle of a character") from None

        rows.notes.append("read as UTF-16")
        return text.encode("utf-8", "surrogatepass")

    lost = data.count(b"\0")
    table = path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    if table and 0 < lost * _FEWEST_PER_NUL < len(data):  # JSON and YAML forbid them
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return data

        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        rows.notes.append(
            f"{plural(lost, 'NUL character')} as spaces, the first in line {line} of the file"
        )
        return data.replace(b"\0", b" ")

    return data


def _refuse_without_rows(path: Path, data: bytes) -> None:
    """Raises BadDataset that says what a file without rows is instead."""
    if path.suffix.lower() == ".xml":
        return
    for start, what in _NO_ROWS.items():
        if data.lstrip()[: len(start)].lower() == start:
            raise bad(path, "file", what)


_NO_ROWS = {
    b"version https://git-lfs": "is a pointer of Git LFS, not the file: run `git lfs pull`",
    b"<!doctype html": "is a web page, not the file: download the file itself",
    b"<html": "is a web page, not the file: download the file itself",
    b"<?xml": "is XML; if it is JUnit, `karat import junit` reads it",
    b"<testsuite": "is JUnit XML: `karat import junit` reads it",
}


def _refuse_binary(path: Path, data: bytes) -> None:
    if b"\0" in data:
        raise bad(path, "file", NO_TEXT)


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        faults = []
        for number, line in enumerate(data.split(b"\n"), start=1):
            wrong = _wrong_byte(line)
            if wrong is not None:
                faults.append(Fault(place=f"line {number}", message=wrong))

        raise BadDataset(str(path), faults) from None


def _wrong_byte(line: bytes) -> str | None:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return (
            f"byte 0x{line[error.start]:02x} is not UTF-8 (is the file Latin-1 or Windows-1252?); "
            f"save it as UTF-8"
        )

    return None


def _decoded(line: bytes) -> Any:
    """The value in a line of JSON, with `Unfit` for numbers that JSON or karat cannot hold. Raises
    ValueError with what is wrong with the line.
    """
    with suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return msgspec.json.decode(line)

    wrong = _wrong_byte(line)
    if wrong is None and has_too_many_nan(line):
        wrong = _MANY_NAN
    if wrong is not None:
        raise ValueError(wrong)
    try:
        return json.loads(line, parse_constant=constant, parse_int=integer, parse_float=finite)
    except json.JSONDecodeError as error:
        if line.lstrip().startswith(b"{'") and len(line) <= _LONGEST_PRINTED:
            printed = as_printed(line.decode(errors="replace"))
            if printed is not None:
                return printed
        message = f"is not JSON, column {error.colno}: {_lower(error.msg)}"
        raise ValueError(message) from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _kind(value: Any) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return "a text"
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case Unfit():
            return f"a number ({excerpt(value.written, 24)})"

    return f"a number ({value})"


def _json_value(value: Any) -> Any:
    """A database value as JSON: dates, decimals and so on become text."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): _json_value(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(below) for below in value]
    return str(value)
