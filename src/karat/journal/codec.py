"""Events to lines and back.

Every line that karat writes ends with its checksum: `,"crc":"1a2b3c4d"}`, the CRC-32 of the bytes
before it. A line stays a JSON object, and a reader that does not know the key ignores it.
`checksum_fault` is the one function that checks a line; every reader of a run folder calls it.

Checksums of lines do not show that lines are missing: `end` and `resume` state what came before
them. Each states `lines`, the number of lines before it, and `digest`, the BLAKE2b (8 bytes, hex)
of the last ten bytes of every line since the last statement, where a line's checksum is. The first
line after a statement is the line that makes it, preceded by its digest; so a statement rests on
the earlier ones. A line is its content: without a byte order mark, the line end of Windows, or
blank lines. What follows the last statement is not covered yet.
"""

from __future__ import annotations

import struct
import sys
from binascii import hexlify
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from operator import itemgetter
from typing import BinaryIO
from zlib import crc32

import msgspec

from karat.errors import BadRun
from karat.formats import plural
from karat.journal.events import End, Event, Resume
from karat.records import Sample
from karat.redact import Redactor, map_texts, without_surrogates

LONGEST_LINE = 64 * 2**20
"""Bytes. An answer of many turns, with tool results of 10 MB each, stays below."""

_KEY = b',"crc":"'
_LENGTH = len(_KEY) + len(b'1a2b3c4d"}')
_BODY = itemgetter(slice(None, -_LENGTH))
_TAIL = itemgetter(slice(-_LENGTH, None))
_RESUME = b'{"event":"resume"'
_FRAME = b"\xef\xbb\xbf\r"
_FIRST_BLOCK, _LARGEST_BLOCK = 2**13, 2**20  # bytes; small at first, for readers of a single line

# Names that link rows. They come from the experiment, never from an agent or a tool.
_STRUCTURAL = frozenset({"event", "trial", "sample", "condition", "scorer", "scoring", "class"})

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a line that karat did not write may raise."""

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class Codec:
    """Writes an event as JSON: secrets replaced, lone surrogates as U+FFFD, NaN as null."""

    def __init__(self, redact: Redactor | None = None) -> None:
        if redact is None:
            self._redact = Redactor({})
        else:
            self._redact = redact

        self._encode = msgspec.json.Encoder().encode

    def line(self, event: object, *, checksum: bool = True) -> bytes:
        """With its checksum and a newline."""
        try:
            line = self._encode(event)
        except UnicodeEncodeError:
            # Models and tools do send lone surrogates; U+FFFD keeps the rest of the text.
            event = msgspec.convert(
                map_texts(msgspec.to_builtins(event), without_surrogates), type(event)
            )
            line = self._encode(event)

        # it may learn secrets during the run
        if self._redact.active and self._redact(text := line.decode()) != text:
            # Text by text, so no replacement can cross a JSON quote of the line.
            fields = msgspec.to_builtins(event)
            # Only an event has such names, and only at its top level: a tool's input may have a key
            # of the same name.
            names = frozenset() if isinstance(event, Sample) else _STRUCTURAL
            masked = self._redact.values(
                [value for key, value in fields.items() if key not in names]
            )
            others = iter(masked)
            line = self._encode(
                {key: value if key in names else next(others) for key, value in fields.items()}
            )

        if not checksum:
            return line
        return with_checksum(line, end=b"\n")

    def lines(self, events: Sequence[object]) -> list[bytes]:
        """Each with its checksum, without a newline."""
        if not self._redact.active:
            with suppress(UnicodeEncodeError):
                return with_checksums(map(self._encode, events))

        return with_checksums([self.line(event, checksum=False) for event in events])


class LineDamaged(Exception):
    """A line is not as karat wrote it.

    `number`: its number among the lines read, from 1. `end`: the byte after it.
    """

    def __init__(self, number: int, reason: str, *, end: int = 0) -> None:
        self.number = number
        self.reason = reason
        self.end = end
        super().__init__(reason)


def with_checksum(line: bytes, *, end: bytes = b"") -> bytes:
    """A JSON object, with its checksum as the last key, and the line ending."""
    body = line[:-1]
    return b'%b,"crc":"%08x"}%b' % (body, crc32(body), end)


def with_checksums(lines: Iterable[bytes]) -> list[bytes]:
    """The same of many, in a third of the time."""
    bodies = [line[:-1] for line in lines]
    tails = _tails(bodies)
    starts = range(0, len(tails), _LENGTH)
    return [
        body + tails[start : start + _LENGTH] for body, start in zip(bodies, starts, strict=True)
    ]


def ended(lines: Sequence[bytes]) -> bytes:
    """The lines of a file, each with its newline."""
    return b"\n".join([*lines, b""])


def _tails(bodies: Sequence[bytes]) -> bytes:
    """The ends of lines, one after the other."""
    digits = hexlify(struct.pack(f">{len(bodies)}I", *map(crc32, bodies)))
    tails = bytearray(_KEY + b'........"}') * len(bodies)
    for place in range(8):
        tails[len(_KEY) + place :: _LENGTH] = digits[place::8]
    return bytes(tails)


def has_checksum(line: bytes) -> bool:
    """Whether a line has a checksum, right or wrong."""
    return line[-_LENGTH:-10] == _KEY


def checksum_fault(line: bytes, *, required: bool) -> str | None:
    """Why a line is not as karat wrote it; None: it is. `required`: whether it must have a
    checksum.

    >>> checksum_fault(with_checksum(b'{"a":1}'), required=True)
    >>> checksum_fault(with_checksum(b'{"a":1}').replace(b"1", b"2", 1), required=True)
    'its checksum does not match'
    """
    if has_checksum(line):
        return (
            None
            if line[-10:] == b'%08x"}' % crc32(line[:-_LENGTH])
            else "its checksum does not match"
        )

    if required:
        return "it has no checksum"
    return "it holds NUL bytes" if b"\0" in line else None


class _Checks:
    """Checks the lines of one file, in order, against their checksums.

    After a line that has a checksum every line must, until an older karat resumes the run: its
    `resume` line has none.
    """

    __slots__ = ("_required", "_strict")

    def __init__(self, *, required: bool) -> None:
        self._required = self._strict = required

    def all_match(self, lines: list[bytes]) -> bool:
        """Whether there are lines, all with the right checksum.

        Twice as fast as calling `checksum_fault` for each.
        """
        if not lines or not has_checksum(lines[0]):
            return False
        matches = b"".join(map(_TAIL, lines)) == _tails([*map(_BODY, lines)])
        self._strict |= matches
        return matches

    def fault(self, line: bytes) -> str | None:
        if not self._required and line.startswith(_RESUME) and not has_checksum(line):
            self._strict = False
        fault = checksum_fault(line, required=self._strict)
        self._strict |= fault is None and has_checksum(line)
        return fault


def fail(error: LineDamaged) -> None:
    """Raises at a damaged line."""
    raise error


def content_of(line: bytes) -> bytes:
    """A line without what editors add: a byte order mark, the line end of Windows."""
    return line.strip(_FRAME)


def checked_lines(
    file: BinaryIO,
    *,
    stop: int | None = None,
    required: bool,
    check: bool = True,
    torn: bool = True,
    on_damage: Callable[[LineDamaged], None] = fail,
    cover: Cover | None = None,
) -> Iterator[tuple[int, int, bytes]]:
    """Every line from the file's current position up to byte `stop`: number from 1, byte where it
    starts, content.

    Blank lines are passed over. `torn`: ignore a last line that is incomplete. `required`: whether
    the first line must have a checksum. `check=False`: for lines that were checked before.
    `on_damage` raises LineDamaged by default; if it returns, the damaged line is skipped. `cover`
    gets every line, the damaged ones too.
    """
    rest = b""
    number = 0
    size = _FIRST_BLOCK
    at = file.tell()
    if stop is None:
        left = sys.maxsize
    else:
        left = stop - at

    checks = _Checks(required=required)
    while block := file.read(min(size, left)):
        left -= len(block)
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        plain = check and checks.all_match(lines)
        contents = lines
        if not plain:
            contents = [*map(content_of, lines)]
        if cover is not None:
            cover.add([*filter(None, contents)])
        if plain:  # nearly always
            for line in lines:
                number += 1
                yield number, at, line
                at += len(line) + 1

            contents = lines = []

        for line, content in zip(lines, contents, strict=True):
            number += 1
            start = at
            at += len(line) + 1
            fault = None
            if check and content:
                fault = checks.fault(content)
            if fault is not None:
                on_damage(LineDamaged(number, fault, end=at))
            elif content:
                yield number, start, content

        if len(rest) > LONGEST_LINE:
            raise LineDamaged(number + 1, f"it is longer than {LONGEST_LINE // 2**20} MB")
        size = max(min(2 * size, _LARGEST_BLOCK), len(rest))

    last = content_of(rest)
    if last and (is_whole(last) or not torn):
        if cover is not None:
            cover.add([last])
        if (fault := checks.fault(last)) is not None:
            on_damage(LineDamaged(number + 1, fault))
        else:
            yield number + 1, at, last
    elif check and is_unended(rest):
        on_damage(LineDamaged(number + 1, "its newline is damaged"))


def is_whole(rest: bytes) -> bool:
    """Whether the text after the last newline is a whole line that lacks only its newline."""
    return has_checksum(rest) and checksum_fault(rest, required=True) is None


def is_unended(rest: bytes) -> bool:
    """Whether the text after the last newline is a whole line with another byte in place of its
    newline.
    """
    return is_whole(rest[:-1])


def decode(line: bytes, *, path: str, number: int) -> Event:
    """The event in a line. Raises BadRun with the line's number."""
    try:
        return _decoder.decode(line)
    except UNREADABLE as error:
        raise damaged(path, number, error) from error


def damaged(path: str, number: int, reason: object) -> BadRun:
    """The message for an unusable line of the journal."""
    remedy = (
        f"restore the journal from a copy, or delete that line: its trial is then asked, or "
        f"scored, again; `karat runs verify {path}` names every damaged line"
    )
    return BadRun(path, f"line {number} of the journal is damaged ({reason}); {remedy}")


_END = b'{"event":"end"'
_STATING = (_END, _RESUME)
_SERVER = b'{"event":"server"'  # may follow `end`: servers are closed after it
_RESTORE = "restore the journal from a copy: karat does not know which of the lines are its own"
_MISSING = (
    "restore the journal from a copy, or go on with `karat run FILE --resume RUN`: a lost answer "
    "is then asked again, a lost score made again, and a lost cost stays missing"
)
_checksums = itemgetter(slice(-10, None))


class Gap(msgspec.Struct, frozen=True):
    """A stretch of the journal that is not as it was written."""

    first: int  # lines, from 1, blank ones not counted
    last: int
    reason: str
    remedy: str

    def __str__(self) -> str:
        if self.first == self.last:
            where = f"line {self.first}"
        else:
            where = f"lines {self.first} to {self.last}"

        return f"{where} of the journal: {self.reason}"


class _Statement(msgspec.Struct):
    lines: int | None = None  # None: of an older karat
    digest: str = ""


_statement = msgspec.json.Decoder(_Statement).decode


class Cover:
    """The running checksum of a journal, from its first line on."""

    def __init__(self) -> None:
        self.lines = 0  # so far
        self.gaps: list[Gap] = []
        self.older = False  # whether an `end` or `resume` of an older karat makes no statement
        self._start = 0  # the lines before the last statement
        self._stated = 0  # as the last statement counts them
        self._ended = False  # whether only news of servers and a `resume` may follow
        self._begin("")

    def _begin(self, digest: str) -> None:
        self._hash = blake2b(digest.encode(), digest_size=8)

    @property
    def states(self) -> bool:
        """Whether any line made a statement: those of an older karat make none."""
        return self._start > 0

    @property
    def uncovered(self) -> int:
        """The lines that no statement covers yet: since the last one, without the line that makes
        it.
        """
        return self.lines - self._start - self.states

    def stated_by(self, event: End | Resume) -> End | Resume:
        """An event that follows now, with its statement."""
        lines = self._stated + self.lines - self._start
        return msgspec.structs.replace(event, lines=lines, digest=self._hash.hexdigest())

    def add(self, lines: Sequence[bytes]) -> None:
        """Adds lines, complete and without their ends."""
        first = 0
        for place, line in enumerate(lines):
            if self._ended or line.startswith(_STATING):
                self._count(lines[first:place])
                first = place
                self._check(line)

        self._count(lines[first:])

    def end_at(self, lines: int | None) -> None:
        """Compares with the number of lines that the last writer left; None: not known."""
        if lines not in (None, self.lines) and not self.gaps:
            self._add_gap(lines - self.lines)

    def _count(self, lines: Sequence[bytes]) -> None:
        self.lines += len(lines)
        self._hash.update(b"".join(map(_checksums, lines)))

    def _check(self, line: bytes) -> None:
        if self._ended and line.startswith(_SERVER):
            return
        if self._ended and not line.startswith(_RESUME):
            here = self.lines + 1
            self.gaps.append(
                Gap(here, here, "lines were added from here on, after the run had ended", _RESTORE)
            )

        self._ended = False
        stated = _stated(line)
        if stated.lines is None:
            self.older = self.older or line.startswith(_STATING)
            return

        if stated.digest != self._hash.hexdigest():
            self._add_gap(stated.lines - self._stated - (self.lines - self._start))
        self._begin(stated.digest)
        self._start = self.lines
        self._stated = stated.lines
        self._ended = line.startswith(_END)

    def _add_gap(self, missing: int) -> None:
        """Of the lines since the last statement.

        `missing`: below 0, that many were added; 0: they are other ones.
        """
        reason = "lines were changed, replaced or moved"
        remedy = _RESTORE
        if missing > 0:
            reason = f"{plural(missing, 'line is', 'lines are')} missing"
            remedy = _MISSING
        elif missing < 0:
            reason = f"{plural(-missing, 'line was', 'lines were')} added"

        first = self._start + 1
        self.gaps.append(Gap(first, max(first, self.lines), reason, remedy))


def _stated(line: bytes) -> _Statement:
    if line.startswith(_STATING):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _statement(line)

    return _Statement()
