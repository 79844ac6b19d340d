"""The lines of a journal, with only those fields that make numbers: texts are passed over undecoded."""

from __future__ import annotations

import msgspec

from karat.journal import Resume
from karat.records import Usage

__all__ = [
    "AnswerLine",
    "AttemptLine",
    "CallLine",
    "EndLine",
    "FailureLine",
    "ReplyEventLine",
    "ReplyLine",
    "ScoreLine",
    "answer_of",
    "attempt_of",
    "end_of",
    "failure_of",
    "reply_of",
    "resume_of",
    "score_of",
]


class CallLine(msgspec.Struct, gc=False):
    """A tool call; of what it brought only the size is looked at."""

    server: str | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: str | None = None
    milliseconds: float | None = None


class ReplyLine(msgspec.Struct, gc=False):
    """A reply, without its words."""

    tool_calls: tuple[CallLine, ...] = ()
    usage: Usage | None = None
    dollars: float | None = None
    milliseconds: float | None = None
    stop_reason: str | None = None


class AnswerLine(msgspec.Struct, gc=False):
    """An answer, without its words."""

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
    offline: bool = False
    usage: Usage | None = None
    dollars: float | None = None


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
    replies: tuple[ReplyLine, ...] = ()  # what the agent had said before it failed


class ReplyEventLine(msgspec.Struct, gc=False):
    """One turn of several, as it arrived."""

    trial: str
    turn: int
    reply: ReplyLine


class EndLine(msgspec.Struct, gc=False):
    """The end of a part of the run."""

    reason: str


answer_of = msgspec.json.Decoder(AnswerLine).decode
score_of = msgspec.json.Decoder(ScoreLine).decode
failure_of = msgspec.json.Decoder(FailureLine).decode
reply_of = msgspec.json.Decoder(ReplyEventLine).decode
end_of = msgspec.json.Decoder(EndLine).decode
attempt_of = msgspec.json.Decoder(AttemptLine).decode
resume_of = msgspec.json.Decoder(Resume).decode
