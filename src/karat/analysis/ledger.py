"""How every planned trial ended, and what it cost: the ledger and the bill.

No statistics, no numpy.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from math import fsum
from typing import get_args

from msgspec import UNSET, structs

from karat.analysis import means_columns
from karat.analysis.model import (
    Account,
    Attempts,
    Cost,
    FailureKind,
    Latency,
    Ledger,
    Money,
    ServerProblem,
    ServerUse,
    Tokens,
)
from karat.analysis.numbers import quantile
from karat.index import Calls, FailureGroup, RunIndex, Tally
from karat.records import JsonObject, LedgerClass

CHARACTERS_A_TOKEN = 4
"""The usual rule of thumb for English.

No provider reports what a single result cost, and tokenisers differ.
"""

_CLASSES: tuple[str, ...] = (*get_args(LedgerClass), "decided")
_FEW = 50_000  # values that Python sorts in 30 ms
JUDGE_GAP = FailureGroup("judge", "score", "no_score")
"""An answer without a score for which the journal gives no reason."""


class Outcome:
    """How each trial ended: classes counted per condition, kinds counted over the run."""

    def __init__(self, conditions: int) -> None:
        self.counts: list[dict[str, int]] = []
        for _ in range(conditions):
            self.counts.append(dict.fromkeys(_CLASSES, 0))

        self.groups: dict[FailureGroup, int] = {}
        self.codes: dict[int, int] = {}  # cell → code of the failure that ended it
        # cell → class; absent: scored if answered, else not run, or `decided`
        self.classes: dict[int, str] = {}
        self.waiting = 0  # answers without a score because the answer to compare with is missing
        # 1: the cell was not run because it was decided; None: none
        self.decided: bytearray | None = None

    def end(self, condition: int, cell: int, cls: str, group: FailureGroup | None = None) -> None:
        # A class from a newer karat is still a trial that ended without a score.
        self.classes[cell] = cls if cls in _CLASSES else "infrastructure"
        self.counts[condition][self.classes[cell]] += 1
        if group is not None:
            self.groups[group] = self.groups.get(group, 0) + 1


def outcome(index: RunIndex, shown: Mapping[str, str]) -> Outcome:
    """The ledger's counts, from the journal's rows alone.

    `shown`: scorer → the scoring that counts: a trial without a row of it is not scored. If the
    part that made the scoring completed, a missing score is the judge's fault; else it is pending.
    """
    result = Outcome(len(index.conditions))
    by_code: dict[int, FailureGroup] = {}
    for group, count in index.groups.items():
        by_code[count.code] = group

    for counts, tally in zip(result.counts, index.tallies, strict=True):
        counts["not_run"] = len(index.samples) * index.repetitions - tally.answered
        counts["scored"] = tally.answered

    for cell, code in enumerate(index.failed) if index.groups else ():
        if code and not index.answered[cell]:
            condition = cell // index.repetitions % len(index.conditions)
            result.codes[cell] = code
            result.counts[condition]["not_run"] -= 1
            result.end(condition, cell, by_code[code].cls, by_code[code])

    result.decided = index.not_needed()
    if result.decided is not None:
        width = index.repetitions
        step = len(index.conditions) * width
        for name, column in index.conditions.items():
            counts = result.counts[column]
            spared = sum(
                result.decided[place::step].count(1)
                for place in range(column * width, (column + 1) * width)
            )
            counts["not_run"] -= spared
            if name in index.out:
                counts["decided"] = spared

    for cell, scorer in _unscored(index, shown).items():
        condition = cell // index.repetitions % len(index.conditions)
        result.counts[condition]["scored"] -= 1
        failure = _score_failure(index, cell, scorer, shown[scorer])
        if failure is not None:
            result.codes[cell] = failure
            result.end(condition, cell, "judge", by_code[failure])
        elif index.lacks_other_answer(cell, shown[scorer]):
            result.waiting += 1
            result.end(condition, cell, "not_run")
        elif index.completed.get(shown[scorer], False):
            result.end(condition, cell, "judge", JUDGE_GAP)
        else:
            result.end(condition, cell, "not_run")

    return result


def _unscored(index: RunIndex, shown: Mapping[str, str]) -> dict[int, str]:
    """Answered trials without a score, and the first scorer (one with a failure, if any) that gave
    none.

    Other tools choose scorers per sample, so in an imported run the score of one scorer is enough.
    """
    missing: dict[int, str] = {}
    if index.run.info.imported:
        imported = {scorer.scoring for scorer in index.run.info.scorers}
    else:
        imported = set()
    scored = {
        cell
        for (_, scoring), rows in index.scores.items()
        if scoring in imported
        for cell in rows.cells
    }
    for scorer, scoring in shown.items():
        lacking = bytearray(index.answered)
        if scoring in imported:
            for cell in scored:
                lacking[cell] = _score_failure(index, cell, scorer, scoring) is not None

        rows = index.scores.get((scorer, scoring))
        if rows is not None:
            for cell in rows.cells:
                lacking[cell] = 0
            for cell in rows.partial:
                lacking[cell] = 1

        cell = lacking.find(1)
        while cell >= 0:
            if (
                cell not in missing
                or _score_failure(index, cell, missing[cell], shown[missing[cell]]) is None
            ):
                missing[cell] = scorer

            cell = lacking.find(1, cell + 1)

    return missing


def _score_failure(index: RunIndex, cell: int, scorer: str, scoring: str) -> int | None:
    """The code of the failure that explains a missing score, if one was journalled."""
    for name in (scorer, None):
        failure = index.score_failed.get((cell, name))
        if failure is not None and failure[0] in (None, scoring):
            return failure[1]

    return None


def accounts(index: RunIndex, outcome: Outcome) -> tuple[dict[str, Account], Account]:
    """Per condition, and for the whole run, including records without a condition."""
    by_condition = {
        name: _account([index.tallies[column]], [outcome.counts[column]], index.retried_in(column))
        for name, column in index.conditions.items()
    }
    tallies = [*index.tallies, index.unassigned]
    total = _account(tallies, outcome.counts, index.retried.count(1))
    abandoned = index.unassigned.failed_attempts + index.unassigned.unfinished_attempts
    return by_condition, structs.replace(
        total, attempts=structs.replace(total.attempts, of_trials_not_run=abandoned)
    )


def _account(
    tallies: Sequence[Tally], counts: Sequence[Mapping[str, int]], retried: int
) -> Account:
    ended = {}
    for cls in _CLASSES:
        ended[cls] = sum(count[cls] for count in counts)
    seconds = ordered(tally.seconds for tally in tallies)
    failed = sum(tally.failed_attempts for tally in tallies)
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    sums: dict[str, int | None] = {}
    for place, name in enumerate(names):
        known = [tokens for tally in tallies if (tokens := tally.tokens[place]) is not None]
        if known:
            sums[name] = sum(known)
        else:
            sums[name] = None

    merged: dict[str, Calls] = {}
    for tally in tallies:
        for server, calls in tally.servers.items():
            into = merged.setdefault(server, Calls())
            into.calls += calls.calls
            into.errors += calls.errors
            into.trials += calls.trials
            into.characters += calls.characters
            into.milliseconds.extend(calls.milliseconds)

    servers = []
    for name in sorted(merged):
        calls = merged[name]
        taken = ordered([calls.milliseconds])
        servers.append(
            ServerUse(
                server=name,
                calls=calls.calls,
                errors=calls.errors,
                trials=calls.trials,
                median_ms=quantile(taken, 0.5),
                p95_ms=quantile(taken, 0.95),
                result_tokens_estimate=round(calls.characters / CHARACTERS_A_TOKEN),
            )
        )

    return Account(
        ledger=Ledger(planned=sum(ended.values()), **ended),
        cost=Cost(
            agent=Money(
                known=_sum(tally.dollars for tally in tallies),
                unknown=sum(t.unknown for t in tallies),
            ),
            judge=Money(
                known=_sum(tally.judge_dollars for tally in tallies),
                unknown=sum(t.judge_unknown for t in tallies),
            ),
        ),
        tokens=Tokens(**sums, unknown=sum(tally.tokens_unknown for tally in tallies)),
        latency=Latency(median=quantile(seconds, 0.5), p95=quantile(seconds, 0.95), n=len(seconds)),
        attempts=Attempts(
            answered=sum(tally.answered for tally in tallies),
            failed=failed,
            unfinished=sum(tally.unfinished_attempts for tally in tallies),
            of_trials_not_run=0,
            lost=Money(
                known=_sum(tally.lost_dollars for tally in tallies),
                unknown=sum(tally.lost_unknown for tally in tallies),
            ),
        ),
        failed_attempts=failed,
        retried=retried,
        cut=sum(tally.cut for tally in tallies),
        servers=tuple(servers),
        more=means_columns.times(seconds) or UNSET,
    )


def ledger_rows(accounts: Mapping[str, Account], total: Account) -> list[JsonObject]:
    """The ledger as flat rows: one per condition, and a last one for the whole run, with condition
    None.

    Only the last one has the attempts of trials that have not ended.
    """
    named: list[tuple[str | None, Account]] = [*accounts.items(), (None, total)]
    found = []
    for name, account in named:
        found.append(
            {
                "condition": name,
                **structs.asdict(account.ledger),
                "attempts": account.attempts.answered
                + account.attempts.failed
                + account.attempts.unfinished,
                "answered_attempts": account.attempts.answered,
                "failed_attempts": account.attempts.failed,
                "unfinished_attempts": account.attempts.unfinished,
                "lost_dollars": account.attempts.lost.known,
                "lost_unknown": account.attempts.lost.unknown,
            }
        )

    return found


def server_problems(
    accounts: Mapping[str, Account],
    servers: Mapping[str, Sequence[str]],
    unknown: Container[str],
    *,
    measures_calls: bool = False,
) -> tuple[ServerProblem, ...]:
    """Conditions whose answers do not show what their MCP servers do: no call was made, or half of
    them failed.

    `servers`: condition → the names of its servers. `unknown`: the conditions for which it is not
    known whether calls were made. Without an answer, a call or an infrastructure fault, nothing is
    reported yet. `measures_calls`: a failed call is a result, perhaps the expected one.
    """
    problems = []
    for condition, account in accounts.items():
        calls, errors = (
            sum(getattr(use, part) for use in account.servers) for part in ("calls", "errors")
        )
        if measures_calls and calls:
            continue
        started = account.latency.n or calls or account.ledger.infrastructure
        if servers.get(condition) and started and 2 * errors >= calls:
            answers = account.latency.n
            seen = bool(condition not in unknown or calls or not answers)
            problem = ServerProblem(
                condition=condition,
                answers=answers,
                calls=calls,
                errors=errors,
                reported=seen,
            )
            problems.append(problem)

    return tuple(problems)


def call_failures(index: RunIndex) -> list[FailureKind]:
    """Failed MCP calls by server and message, the most frequent first; the trials continued after
    them.
    """
    totals: dict[str, Calls] = {}
    for tally in (*index.tallies, index.unassigned):
        for server, calls in tally.servers.items():
            for message, count in calls.messages.values():
                totals.setdefault(server, Calls()).count_error(message, count)

    kinds = []
    for server, calls in totals.items():
        for message, count in calls.messages.values():
            failed = FailureKind(
                cls="mcp",
                stage="call",
                kind=server,
                trials=0,
                attempts=0,
                calls=count,
                example=message,
            )
            kinds.append(failed)

    return sorted(kinds, key=lambda kind: (-(kind.calls or 0), kind.kind, kind.example))


def _sum(parts: object) -> float:
    # fsum is exact, so the order of completion cannot change the last digit.
    return fsum(value for part in parts for value in part)  # type: ignore[attr-defined]  # arrays of dollars


def ordered(parts: Iterable[array[float]]) -> array[float]:
    """All values in ascending order. For more than 50,000 it is worth importing numpy."""
    values = array("d")
    for part in parts:
        values.extend(part)
    if len(values) <= _FEW:
        return array("d", sorted(values))
    import numpy as np

    np.frombuffer(values, dtype=np.float64).sort()
    return values
