"""Failures that are alike, each with the words of one that still stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.analysis.ledger import JUDGE_GAP, Outcome, call_failures
from karat.analysis.lines import failure_of
from karat.analysis.model import FailureKind
from karat.analysis.reading import Reading

if TYPE_CHECKING:
    from karat.journal import RunFolder

__all__ = ["failure_kinds"]

_GAP = "answered, but the journal holds neither a score nor a failure; `karat score` asks again"


def failure_kinds(run: RunFolder, reading: Reading, outcome: Outcome) -> tuple[FailureKind, ...]:
    """The most frequent end of a trial first; what a later part mended without a failed attempt is left out.

    The example is the newest message among the failures that stand, or, where all are
    mended, the newest at all.
    """
    words = _standing(run, reading, outcome)
    found = [
        FailureKind(
            cls=kind.cls,
            stage=kind.stage,
            kind=kind.kind,
            error=kind.error,
            scorer=kind.scorer,
            trials=outcome.kinds.get(kind, 0),
            attempts=count.attempts,
            example=words.get(count.code, count.example),
        )
        for kind, count in reading.kinds.items()
        if count.attempts or outcome.kinds.get(kind, 0)
    ]
    gap = outcome.kinds.get(JUDGE_GAP, 0)
    if gap and JUDGE_GAP not in reading.kinds:
        cls, stage, kind, *_ = JUDGE_GAP
        found.append(FailureKind(cls=cls, stage=stage, kind=kind, trials=gap, attempts=0, example=_GAP))
    return (*sorted(found, key=_rank), *call_failures(reading))


def _rank(one: FailureKind) -> tuple[int, int, str, str, str, str]:
    return -one.trials, -one.attempts, one.cls, one.kind, one.error or "", one.scorer or ""


def _standing(run: RunFolder, reading: Reading, outcome: Outcome) -> dict[int, str]:
    """Code of a kind → the newest message among the failures that stand."""
    words: dict[int, str] = {}
    mended = set()
    for kind, count in reading.kinds.items():
        if not outcome.kinds.get(kind, 0) or count.newest is None:
            continue
        cell, message = count.newest
        if outcome.codes.get(cell) == count.code:
            words[count.code] = message
        else:
            mended.add(count.code)
    # Only where a kind's newest failure was mended and an older one was not: once more over the journal.
    for line in run.lines() if mended else ():
        if not line.startswith(b'{"event":"failure"'):
            continue
        failure = failure_of(line)
        place = reading.cell_of(failure)
        code = reading.kind(failure, failure.scorer).code
        if place is not None and code in mended and outcome.codes.get(place) == code:
            words[code] = failure.message
    return words
