"""The lines of a journal, with the fields that pages filter, sort and count by."""

from __future__ import annotations

import msgspec

from karat.records import Usage

__all__ = [
    "AnswerLine",
    "AttemptLine",
    "FailureLine",
    "ReplyLine",
    "SampleLine",
    "ScoreLine",
    "TurnLine",
]


class CallLine(msgspec.Struct, gc=False):
    """A tool call; only whether it failed."""

    error: str | None = None


class ReplyLine(msgspec.Struct, gc=False):
    """A reply."""

    text: str
    tool_calls: tuple[CallLine, ...] = ()
    usage: Usage | None = None
    dollars: float | None = None


class AnswerLine(msgspec.Struct, gc=False):
    """An answer."""

    trial: str
    sample: str
    condition: str
    repetition: int
    replies: tuple[ReplyLine, ...]
    seconds: float | None = None
    attempts: int = 1


class ScoreLine(msgspec.Struct, gc=False):
    """A score row, without its words."""

    trial: str
    scorer: str
    scoring: str
    values: dict[str, float | bool | None]
    turn: int | None = None
    judge: str | None = None
    repeat: int = 0
    rows: int = 1
    labels: dict[str, str] = {}
    claims: tuple[msgspec.Raw, ...] = ()


class FailureLine(msgspec.Struct, gc=False):
    """A failure, without its message."""

    trial: str
    stage: str
    kind: str
    cls: str = msgspec.field(name="class")
    sample: str | None = None
    condition: str | None = None
    repetition: int | None = None
    scorer: str | None = None


class AttemptLine(msgspec.Struct, gc=False):
    """A failed attempt."""

    trial: str


class TurnLine(msgspec.Struct, gc=False):
    """One turn of several."""

    trial: str
    turn: int


class _Question(msgspec.Struct, gc=False):
    question: str
    golden: str | None = None


class SampleLine(msgspec.Struct, gc=False):
    """A planned sample."""

    id: str
    position: int
    digest: str
    turns: tuple[_Question, ...]
    content: str | None = None
