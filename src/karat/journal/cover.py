"""What shows that lines are missing: `end` and `resume` state what came before them.

Each states `lines`, the number of lines before it, and `digest`, the BLAKE2b (8 bytes, hex) of the
last ten bytes of every line since the last statement, where a line's checksum is. The first line
after a statement is the line that makes it, preceded by its digest; so a statement rests on the
earlier ones. A line is its content: without a byte order mark, the line end of Windows, or blank
lines. What follows the last statement is not covered yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from operator import itemgetter

import msgspec

from karat.formats import plural
from karat.journal.events import End, Resume

_END = b'{"event":"end"'
_RESUME = b'{"event":"resume"'
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
    command: str = "run"


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
        self._crashed = True  # whether a `run` has no `end` yet
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
        """Compares with the number of lines that the last writer left; None: not known.

        Of a `run` without an `end`, the run's status says that it crashed, whatever is missing.
        """
        if lines not in (None, self.lines) and not self.gaps and not self._crashed:
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
        self._crashed = not self._ended and stated.command == "run"

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
