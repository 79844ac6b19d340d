"""The loop's findings as rows of the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from karat.engine.retry import Fallen
from karat.errors import AgentFault
from karat.journal import Attempt, ScorerInfo
from karat.records import Reply, Score, checked

__all__ = ["attempt_row", "checked_reply", "score_row"]


def checked_reply(reply: object) -> Reply:
    """What `ask` returned, known to fit into the journal. Raises AgentFault("bad_reply")."""
    if not isinstance(reply, Reply):
        raise AgentFault("bad_reply", f"`ask` returned a {type(reply).__name__}, want a karat.Reply")
    try:
        return checked(reply)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise AgentFault("bad_reply", f"the reply is not what a Reply says: {error}") from error


def attempt_row(
    trial: str,
    n: int,
    fallen: Fallen,
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
