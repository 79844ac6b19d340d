"""Groups of similar failures, each with a message of one that ended a trial."""

from __future__ import annotations

import msgspec

from karat.analysis.ledger import JUDGE_GAP, Outcome, call_failures
from karat.analysis.model import FailureKind
from karat.analysis.numbers import from_fields
from karat.index import FailureLine, RunIndex

_GAP = "answered, but the journal holds neither a score nor a failure; `karat score` asks again"
_GAP_IN_FILES = (
    "answered, but the imported files hold no score and say not why; `karat score` can score it"
)


def failure_kinds(index: RunIndex, outcome: Outcome) -> tuple[FailureKind, ...]:
    """The most frequent first; failures that a later part repaired without a failed attempt are
    left out.

    The example is the newest message among the failures that ended a trial, or, if there is none,
    the newest of all.
    """
    # Code of a group → the newest message among its failures that ended a trial
    newest = {code: at for at, cell, code in index.failures if outcome.codes.get(cell) == code}
    decode = msgspec.json.Decoder(FailureLine).decode
    messages = {
        code: decode(line).message
        for code, line in zip(newest, index.lines(newest.values()), strict=True)
    }

    groups = []
    for group, count in index.groups.items():
        if count.attempts or outcome.groups.get(group, 0):
            groups.append(
                from_fields(
                    FailureKind,
                    group,
                    trials=outcome.groups.get(group, 0),
                    attempts=count.attempts,
                    example=messages.get(count.code, count.example),
                )
            )

    gap = outcome.groups.get(JUDGE_GAP, 0)
    if gap and JUDGE_GAP not in index.groups:
        cls = JUDGE_GAP.cls
        stage = JUDGE_GAP.stage
        kind = JUDGE_GAP.kind
        message = _GAP_IN_FILES if index.run.info.imported else _GAP
        groups.append(
            FailureKind(cls=cls, stage=stage, kind=kind, trials=gap, attempts=0, example=message)
        )

    groups.sort(key=lambda kind: (kind.cls, kind.kind, kind.error or "", kind.scorer or ""))
    groups.sort(key=lambda kind: (kind.trials, kind.attempts), reverse=True)
    if not index.run.info.measures_calls:
        groups += call_failures(index)
    return tuple(groups)
