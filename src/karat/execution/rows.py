"""The loop's findings as rows of the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from karat.errors import AgentFault, LimitReached
from karat.execution.retry import AttemptError
from karat.journal import Attempt, ScorerInfo
from karat.records import Reply, Score, absurd_reply, checked

__all__ = ["attempt_row", "checked_reply", "score_row"]


LONGEST_REPLY = 10_000_000
"""Characters, where its agent has no limit of its own."""


def checked_reply(reply: object, *, bounded: bool = False) -> Reply:
    """What `ask` returned, known to fit into the journal and to hold no absurd number. Raises TrialFault.

    `bounded`: its agent has refused what was too long.
    """
    if not isinstance(reply, Reply):
        raise AgentFault("bad_reply", f"`ask` returned a {type(reply).__name__}, want a karat.Reply")
    try:
        found = checked(reply)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise AgentFault("bad_reply", f"the reply is not what a Reply says: {error}") from error
    if (wrong := absurd_reply(found)) is not None:
        raise AgentFault("bad_reply", f"the reply cannot be right: {wrong}")
    if not bounded and (size := _size(found)) > LONGEST_REPLY:
        raise LimitReached("output_too_long", f"the reply has {size} characters, want at most {LONGEST_REPLY}")
    return found


def _size(reply: Reply) -> int:
    texts = sum(len(value) for value in msgspec.structs.astuple(reply) if isinstance(value, str))
    return texts + (len(repr(reply.tool_calls)) if reply.tool_calls else 0)


def attempt_row(
    trial: str,
    n: int,
    fallen: AttemptError,
    stage: Literal["agent", "score"],
    *,
    seconds: float | None = None,
    replies: Sequence[Reply] = (),
) -> Attempt:
    """A failed attempt."""
    return Attempt(
        trial=trial, n=n, cls=fallen.cls, kind=fallen.kind, message=fallen.message, retriable=fallen.retriable,
        stage=stage, usage=fallen.usage, dollars=fallen.dollars, seconds=seconds and round(seconds, 6),
        replies=tuple(replies),
    )  # fmt: skip


def score_row(trial: str, info: ScorerInfo, verdict: Any, rows: int, seconds: float) -> Score:
    """One verdict of a scorer."""
    return Score(
        trial=trial, scorer=info.name, scoring=info.scoring, offline=info.offline, rows=rows,
        values=verdict.values, turn=verdict.turn, judge=verdict.judge, repeat=verdict.repeat,
        labels=verdict.labels, reasons=verdict.reasons, claims=verdict.claims, detail=verdict.detail,
        usage=verdict.usage, dollars=verdict.dollars, seconds=round(seconds, 6),
    )  # fmt: skip
