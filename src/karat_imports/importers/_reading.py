"""Reads JSON of other tools within limits: line by line, or the items of one large array, one at a
time.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

import msgspec

from karat.documents.rows import has_too_many_nan
from karat.errors import BadDataset, Fault, unreadable
from karat.files import open_regular
from karat.foreign import Json
from karat.formats import clean, excerpt
from karat.importers import Findings, ImportedFailure
from karat.records import LedgerClass

LONGEST = 64 << 20  # bytes of one line, of one item, or of everything around the items
_MILLISECONDS_SINCE_1973 = 1e11
_SINCE_1973 = 1e8  # seconds since 1970; smaller numbers are dates: 20260102
_HEAD = 2**16  # bytes
_DEEPEST = 10_000  # levels: more than any decoder here accepts
_CHUNK = 64 << 10
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_FIRST = re.compile(rb"\s*+(?:\xef\xbb\xbf)?\s*+(\S)")
_KEY = re.compile(
    rb'[^"{}\[\]]*+(?:(' + _STRING + rb")\s*+(?::\s*+(?:([{\[])|(?=\S))|(?=[^\s:]))|([{}\[\]]))",
    re.DOTALL,
)
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+[{}\[\]]", re.DOTALL)
_ITEM = re.compile(
    rb"[\s,]*+(?:[{\[\]]|(?:" + _STRING + rb'|[^\s,"{}\[\]]++)(?=[\s,\]]))', re.DOTALL
)
_QUESTIONS = (
    "question",
    "query",
    "input",
    "prompt",
    "problem",
    "message",
    "goal",
    "ctx",
    "sentence",
    "text",
)
_LIMIT = re.compile(
    r"timed out after|time limit|max(?:imum)?.{0,20}(?:tokens|turns|steps)|context.?length|budget",
    re.IGNORECASE,
)
_SERVER = re.compile(
    r"rate.?limit|too many requests|overloaded|unavailable|bad gateway|connect|network|socket"
    r"|ECONN|ENOTFOUND"
    r"|timed? ?out|\b(?:429|500|502|503|504|529)\b",
    re.IGNORECASE,
)


_Read = TypeVar("_Read")
_Key = TypeVar("_Key", bound=Hashable)


class Unreadable(ValueError):
    """Text that is not JSON, or too large; the message says which."""


def each_readable(
    paths: Sequence[Path], read: Callable[[Path], _Read], findings: Findings
) -> list[_Read]:
    """What `read` makes of each file.

    One that cannot be read is a finding; raises BadDataset if none can.
    """
    made: list[_Read] = []
    unread: list[BadDataset] = []
    for path in paths:
        try:
            made.append(read(path))
        except BadDataset as error:
            unread.append(error)

    if not made:
        raise unread[0]
    for problem in unread:
        findings.unreadable(f"file: {problem.faults[0].message}", Path(problem.path).name)

    return made


def recognized(
    paths: Sequence[Path],
    findings: Findings,
    *,
    by: Callable[[Path, bytes], bool],
    otherwise: str,
    parquet: bool = False,
) -> list[Path]:
    """The files whose beginning an importer recognizes; any in Parquet, if it reads that.

    Another one is a finding, in the words of `otherwise`; raises BadDataset if there are no more.
    """

    def checked(path: Path) -> Path:
        if (parquet and path.suffix == ".parquet") or by(path, beginning(path)):
            return path
        raise bad_file(path, otherwise)

    return each_readable(paths, checked, findings)


def bad_file(path: Path, message: str, place: str = "file") -> BadDataset:
    return BadDataset(str(path), [Fault(place=place, message=message)])


def decode(text: bytes) -> object:
    """The JSON value, with None for NaN and infinities and `?` for half a surrogate pair.

    Raises Unreadable.
    """
    try:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            # NaN as Python's json writes it, or half a surrogate pair from JavaScript
            if has_too_many_nan(text):
                raise Unreadable("more than a million NaN or infinities") from None
            value = json.loads(
                text.decode("utf-8", "replace"), parse_constant=lambda _: None, parse_float=_finite
            )
            return msgspec.json.decode(
                json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
            )
    except Unreadable:
        raise
    except RecursionError:
        raise Unreadable("JSON that is nested too deeply") from None
    except (ValueError, msgspec.DecodeError):
        raise Unreadable("text that is not JSON") from None


def _finite(text: str) -> float | None:
    return value if math.isfinite(value := float(text)) else None


def is_json(text: bytes) -> bool:
    """Whether a text is JSON that `decode` reads."""
    try:
        decode(text)
    except Unreadable:
        return False

    return True


def lines(path: Path, findings: Findings) -> Iterator[tuple[str, Json]]:
    """Each line of a JSON Lines file that is an object, with its place.

    Raises BadDataset for an unreadable file.
    """
    with opened(path) as file:
        number = 0
        while text := file.readline(LONGEST):
            number += 1
            place = f"{path.name}, line {number}"
            if len(text) == LONGEST and not text.endswith(b"\n"):
                findings.lose("rest of the file: a line of more than 64 MB", place)
                return
            elif text.strip():
                yield from _objects(text.removeprefix(b"\xef\xbb\xbf"), place, "line", findings)


def grouped(
    rows: Callable[[Findings], Iterator[tuple[str, _Key | None, _Read]]], findings: Findings
) -> Iterator[tuple[str, _Key, list[_Read]]]:
    """The rows of each key, with the place of its last one; without those whose key is None.

    `rows` yields place, key and row, and is called twice: only incomplete groups are in memory.
    """
    ends = {key: number for number, (_, key, _) in enumerate(rows(findings)) if key is not None}
    started: dict[_Key, list[_Read]] = {}
    for number, (place, key, row) in enumerate(rows(Findings())):  # faults are counted already
        if key is not None:
            started.setdefault(key, []).append(row)
            if ends[key] == number:
                yield place, key, started.pop(key)


def lines_with(
    key: str, paths: Iterable[Path], findings: Findings
) -> Iterator[tuple[str, str, Json]]:
    """Each line of JSON Lines files with its place and what it has under a key.

    One without it is a finding.
    """
    for path in paths:
        for place, row in lines(path, findings):
            if value := row.shown(key):
                yield place, value, row
            else:
                findings.lose(f"line without a {key}", place)


def document(path: Path, *keys: str) -> Json:
    """The object in a file, with the array at `keys` (from the outside in) empty.

    Raises BadDataset.
    """
    try:
        with opened(path) as file:
            scan = _Scan(file)
            for _ in scan.items(keys):
                pass

            value = decode(bytes(scan.rest))
    except Unreadable as error:
        raise bad_file(path, f"holds {error}") from None

    if not isinstance(value, dict):
        raise bad_file(path, "holds no JSON object")
    return Json(value)


def items(path: Path, *keys: str, findings: Findings) -> Iterator[tuple[str, Json]]:
    """Each object in the array at `keys`, with its place; without keys the array is the whole file.

    Keeps one item at a time. A file that ends early, or stops being JSON somewhere, is a finding.
    """
    for number, text in enumerate(texts(path, *keys, findings=findings), start=1):
        place = f"{path.name}, {'.'.join(keys) or 'item'} {number}"
        yield from _objects(text, place, "result", findings)


def texts(path: Path, *keys: str, findings: Findings) -> Iterator[bytes]:
    """The same, before it is decoded."""
    number = 0
    try:
        with opened(path) as file:
            for text in _Scan(file).items(keys):
                number += 1
                yield text
    except Unreadable as error:
        findings.lose(f"rest of the file: {error}", f"{path.name}, after item {number}")


def following(path: Path, findings: Findings) -> Iterator[tuple[str, Json]]:
    """Each of the objects that follow each other, over several lines, with its place."""
    number = 0
    try:
        with opened(path) as file:
            for text in _Scan(file).objects():
                number += 1
                yield from _objects(text, f"{path.name}, item {number}", "object", findings)
    except Unreadable as error:
        if not number:
            raise bad_file(path, f"holds {error}") from None
        findings.lose(f"rest of the file: {error}", f"{path.name}, after item {number}")


def _objects(text: bytes, place: str, noun: str, findings: Findings) -> Iterator[tuple[str, Json]]:
    try:
        value = decode(text)
    except Unreadable as error:
        findings.lose(f"{noun} with {error}", place)
        return

    if isinstance(value, dict):
        yield place, Json(value)
    else:
        findings.lose(f"{noun} not a JSON object", place)


def opened(path: Path) -> BufferedReader:
    """The open file. Raises BadDataset."""
    try:
        return open_regular(path)
    except OSError as error:
        raise bad_file(path, f"cannot be read: {unreadable(error)}") from error


def beginning(path: Path) -> bytes:
    """As much of a file as shows its format. Raises BadDataset."""
    with opened(path) as file:
        return file.read(_HEAD)


class _Scan:
    """Finds where the items of an array begin and end by looking only at strings and brackets."""

    def __init__(self, file: BufferedReader) -> None:
        # data: from the current item on; at: where to look next
        self._file = file
        self._data = b""
        self._at = 0
        self.rest = bytearray()  # the text around the items

    def items(self, keys: Sequence[str]) -> Iterator[bytes]:
        """The text of each item of the array at `keys`.

        Raises Unreadable, also if the text ends too early.
        """
        yield from self._within(self._next(_FIRST)[1], [json.dumps(key).encode() for key in keys])
        self._keep()
        if self._goes_on():
            raise Unreadable("something after the end of its JSON")

    def objects(self) -> Iterator[bytes]:
        """The text of each of the objects that follow each other. Raises Unreadable."""
        while self._goes_on():
            if self._next(_FIRST)[1] != b"{":
                raise Unreadable("text that is not JSON")
            self._skip()
            yield self._take().lstrip(b", \t\r\n")

    def _goes_on(self) -> bool:
        """Whether anything but spaces and commas follows."""
        while not self._data[self._at :].strip(b", \t\r\n"):
            more = self._file.read(_CHUNK)
            if not more:
                return False
            self._data = more
            self._at = 0

        while self._data[self._at : self._at + 1] in (b",", b" ", b"\t", b"\r", b"\n"):
            self._at += 1

        return True

    def _within(self, opening: bytes, keys: Sequence[bytes]) -> Iterator[bytes]:
        """The same, within the value that begins with `opening`; afterwards that value has been
        read.
        """
        if opening not in b"{[":
            raise Unreadable("text that is not JSON")
        if not keys and opening == b"[":
            while True:
                self._keep()
                last = self._next(_ITEM)[0][-1:]
                if last == b"]":
                    return
                if last in b"{[":
                    self._skip()
                yield self._take().lstrip(b", \t\r\n")
        elif not keys or opening == b"[":
            self._skip()
        else:
            while (match := self._next(_KEY))[3] != b"}":
                if match[2] and match[1] == keys[0]:
                    yield from self._within(match[2], keys[1:])
                elif match[2] or match[3]:
                    self._skip()

    def _skip(self) -> None:
        """Skips to the end of the object or list that was just opened."""
        depth = 1
        while depth:
            self._next(_BRACKET)
            depth += 1 if self._data[self._at - 1] in b"{[" else -1
            if depth > _DEEPEST:
                raise Unreadable("JSON that is nested too deeply")

    def _next(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        while (match := pattern.match(self._data, self._at)) is None:
            if len(self._data) >= LONGEST:
                raise Unreadable("an item of more than 64 MB")
            more = self._file.read(max(_CHUNK, len(self._data)))
            if not more:
                raise Unreadable("JSON that ends too early")
            self._data += more

        self._at = match.end()
        return match

    def _take(self) -> bytes:
        taken = self._data[: self._at]
        self._data = self._data[self._at :]
        self._at = 0
        return taken

    def _keep(self) -> None:
        self.rest += self._take()
        if len(self.rest) > LONGEST:
            raise Unreadable("more than 64 MB around the results")


def asked(sample: Json) -> str | None:
    """The key of the question in a sample of a dataset, found by the usual names."""
    return next((key for key in _QUESTIONS if sample.text(key)), None)


def said_last(messages: object) -> str | None:
    """The text of a prompt: the text itself, or the user's last message in a chat."""
    if isinstance(messages, str):
        return messages or None
    chat = Json({"chat": messages}).list("chat")
    return next(
        (message.shown("content") for message in reversed(chat) if message.text("role") == "user"),
        None,
    )


def digest(parts: object) -> str:
    """16 hex digits that depend on the JSON values, but not on the order of their keys."""
    return sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:16]


def failure(message: str | None) -> ImportedFailure | None:
    """Why there is no answer, from the error message: a server or the network, a limit, else the
    agent. None: there is no error.
    """
    if message is None:
        return None
    first = message.partition("\n")[0]  # what follows is a stack trace
    if _LIMIT.search(first):
        return ImportedFailure(cls="limit", kind="limit", message=message)
    cls: LedgerClass = "infrastructure" if _SERVER.search(first) else "agent"
    return ImportedFailure(cls=cls, kind="error", message=message)


def moment(value: object) -> str | None:
    """The same as `utc`, of what a file holds."""
    if isinstance(value, (str, int, float)):
        return utc(value)
    return None


def utc(moment: str | float | None) -> str | None:
    """A time in UTC, from ISO 8601 (UTC where it names no zone), or seconds or milliseconds since
    1970; None: it is neither.
    """
    try:
        seconds = float(moment or "")
    except ValueError:
        seconds = math.nan

    if seconds >= _MILLISECONDS_SINCE_1973:
        seconds /= 1000
    try:
        if seconds >= _SINCE_1973:
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        known = datetime.fromisoformat(str(moment))
        return (known if known.tzinfo else known.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def seconds_between(row: Json, start: str, end: str) -> float | None:
    """From the time under one key to that under another; None: not recorded."""
    times = [utc(row.text(key)) for key in (start, end)]
    if times[0] is None or times[1] is None:
        return None
    seconds = (datetime.fromisoformat(times[1]) - datetime.fromisoformat(times[0])).total_seconds()
    if seconds < 0:
        return None
    return seconds


def sample_name(question: str, identity: str) -> str:
    """The id of a sample whose file gives it none: its first words, and part of a digest."""
    return f"{excerpt(clean(question), 48)} ({identity[:8]})"


def title(path: Path) -> str:
    """The name of a file without its ending: "eval.a" of "eval.a.csv", "log" of "log.csv.gz"."""
    name = path.name.removesuffix(".gz").strip(".")
    return name.rpartition(".")[0] or name


def heads(
    paths: Sequence[Path], *lists: tuple[str, ...], otherwise: str, findings: Findings
) -> list[tuple[Path, Json, str]]:
    """Each file with its object, without what is in the first of the lists, and what precedes its
    conditions: its name, or nothing if there is only one file.

    One that has none of the lists is a finding, in the words of `otherwise`; raises BadDataset if
    there are no more.
    """

    def read(path: Path) -> tuple[Path, Json]:
        head = document(path, *lists[0])
        if not any(isinstance(head.at(*above).get(last), list) for *above, last in lists):
            raise bad_file(path, otherwise)
        return path, head

    known = each_readable(paths, read, findings)
    names = unique([title(path) for path, _ in known])
    if len(names) > 1:
        marks = [f"{name}: " for name in names]
    else:
        marks = [""]

    return [(path, head, mark) for (path, head), mark in zip(known, marks, strict=True)]


def repeats(names: Iterable[str]) -> Iterator[int]:
    """How often each name has occurred before.

    What has one name in one answer are repeats, whose mean counts.
    """
    counts = Counter[str]()
    for name in names:
        yield counts[name]
        counts[name] += 1


def unique(names: Sequence[str]) -> list[str]:
    """The same names, with a number added to repeated ones."""
    found = []
    for name, number in zip(names, repeats(names), strict=True):
        found.append(f"{name} ({number + 1})" if number else name)

    return found


def by_name(names: Sequence[str], values: Iterable[_Read]) -> dict[str, _Read]:
    """The values under unique names, in order."""
    return dict(zip(unique(names), values, strict=True))
