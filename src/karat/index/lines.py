"""The lines of a journal with only the fields behind numbers: texts are not decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import msgspec

from karat.errors import BadRun
from karat.journal import checksum_fault
from karat.journal.codec import LONGEST_LINE, content_of
from karat.records import Usage

if TYPE_CHECKING:
    from karat.journal import RunFolder

_BLOCK = 2**17  # bytes to read at a time
_BEGINNING = b'{"event":"'


class CallLine(msgspec.Struct, gc=False):
    """A tool call; only the size of its result, and a skill's name in its input, are used."""

    tool: str = ""
    server: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: str | None = None
    milliseconds: float | None = None


class ReplyLine(msgspec.Struct, gc=False):
    """A reply, without its text."""

    tool_calls: tuple[CallLine, ...] = ()
    usage: Usage | None = None
    dollars: float | None = None
    milliseconds: float | None = None
    stop_reason: str | None = None


class SampleLine(msgspec.Struct, gc=False):
    """A sample, without what it asks."""

    id: str
    position: int
    digest: str
    content: str | None = None
    cluster: str | None = None


class AnswerLine(msgspec.Struct, gc=False):
    """An answer, without its text."""

    trial: str
    sample: str
    condition: str
    repetition: int
    replies: tuple[ReplyLine, ...]
    seconds: float | None = None
    attempts: int = 1


class ScoreLine(msgspec.Struct, gc=False):
    """A score row, without its texts."""

    trial: str
    scorer: str
    scoring: str
    values: dict[str, float | bool | None]
    turn: int | None = None
    judge: str | None = None
    repeat: int = 0
    rows: int = 1
    offline: bool = False
    usage: Usage | None = None
    dollars: float | None = None
    labels: dict[str, str] | None = None
    claims: tuple[msgspec.Raw, ...] = ()


class FailureLine(msgspec.Struct, gc=False):
    """A failure."""

    trial: str
    stage: str
    kind: str
    message: str
    cls: str = msgspec.field(name="class")
    sample: str | None = None
    condition: str | None = None
    repetition: int | None = None
    scorer: str | None = None
    scoring: str | None = None


class AttemptLine(msgspec.Struct, gc=False):
    """A failed attempt."""

    trial: str
    n: int
    kind: str
    message: str
    cls: str = msgspec.field(name="class")
    stage: str = "agent"
    usage: Usage | None = None
    dollars: float | None = None
    replies: tuple[ReplyLine, ...] = ()  # of the agent, before it failed


class ReplyEventLine(msgspec.Struct, gc=False):
    """One turn of several, as it arrived."""

    trial: str
    turn: int
    reply: ReplyLine


class EndLine(msgspec.Struct, gc=False):
    """The end of a part of the run."""

    reason: str


class LineReader:
    """Reads single lines of a run's journal again, by the byte where each starts; fastest in
    ascending order.
    """

    def __init__(self, run: RunFolder, file: BinaryIO) -> None:
        self._run = run
        self._file = file
        self._block = b""
        self._start = 0

    def line(self, at: int) -> bytes:
        """The line without its newline.

        Raises BadRun if it is not the line that was read before.
        """
        start = at - self._start
        if 0 <= start < len(self._block):
            end = self._block.find(b"\n", start)
        else:
            end = -1

        size = _BLOCK
        while end < 0:
            self._file.seek(at)
            self._block = self._file.read(size)
            self._start = at
            start = 0
            end = self._block.find(b"\n")
            if end < 0 and (len(self._block) < size or size > LONGEST_LINE):
                raise self._changed()
            size *= 8

        line = content_of(self._block[start:end])
        if checksum_fault(
            line, required=self._run.has_checksums
        ) is not None or not line.startswith(_BEGINNING):
            raise self._changed()

        return line

    def _changed(self) -> BadRun:
        return BadRun(
            self._run.path, "the journal changed while it was being read; run the command again"
        )
