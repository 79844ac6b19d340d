"""One pass over the journal, into arrays: what was answered, scored, failed, spent.

A *cell* is a planned trial: (sample · conditions + condition) · repetitions + repetition,
so that numbers are added up in the plan's order and never in the order of completion.
Without scores nothing here imports numpy.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import msgspec

from karat.journal import PlanInfo, RunFolder
from karat.records import Usage
from karat.summary.lines import answer_of, attempt_of, failure_of, resume_of, score_of
from karat.summary.tallies import Rows, Tally

__all__ = ["Kind", "Reading", "read"]

Kind = tuple[str, str, str]
"""(class, stage, kind) of a failure."""

_MOST_KINDS = 1000
"""Kinds are few unless a plug-in puts a number or a path into them; what comes then is one kind, "other"."""


@dataclass(slots=True)
class _Attempts:
    """Failed attempts of a trial whose condition is not known yet."""

    dollars: list[float | None] = field(default_factory=list)
    usages: list[Usage | None] = field(default_factory=list)


@dataclass(slots=True)
class _KindCount:
    code: int
    example: str
    attempts: int = 0


class Reading:
    """What a journal says, before any statistics."""

    def __init__(self, plan: PlanInfo, samples: dict[str, int]) -> None:
        self.samples = samples  # id → index
        self.conditions = {name: index for index, name in enumerate(plan.conditions)}
        self.repetitions = plan.repetitions
        size = len(samples) * len(self.conditions) * plan.repetitions
        self.planned = size
        self.answered = bytearray(size)
        self.retried = bytearray(size)
        self.failed = array("H", bytes(2 * size))  # code of the last failure, while there is no answer
        self.score_failed: dict[tuple[int, str | None], tuple[str | None, int]] = {}
        self.kinds: dict[Kind, _KindCount] = {}
        self.tallies = [Tally() for _ in self.conditions]
        self.elsewhere = Tally()  # spent on trials that left no other trace
        self.scores: dict[tuple[str, str], Rows] = {}  # (scorer, scoring)
        self.latest: dict[str, str] = {}  # scorer → its newest scoring
        self.trials: dict[str, int] | None = None  # trial id → cell, when there are scorers
        self.free_scoring = False  # every scorer works by a rule: its failed attempts cost nothing
        self.duplicates = 0
        self.outside = 0  # answers and failures of trials that no plan holds
        self.foreign = 0  # lines that karat did not write
        self.orphans = 0  # scores of trials that have no answer
        self._pending: dict[str, _Attempts] = {}

    def cell(self, sample: str | None, condition: str | None, repetition: int | None) -> int | None:
        if sample is None or condition is None or repetition is None:
            return None
        row, column = self.samples.get(sample), self.conditions.get(condition)
        if row is None or column is None or not 0 <= repetition < self.repetitions:
            return None
        return (row * len(self.conditions) + column) * self.repetitions + repetition

    def tally(self, cell: int) -> Tally:
        return self.tallies[cell // self.repetitions % len(self.conditions)]

    def retried_in(self, condition: int) -> int:
        """How many answered trials of a condition took more than one attempt."""
        step, start = len(self.conditions), condition
        return sum(
            self.retried.count(1, row * self.repetitions, (row + 1) * self.repetitions)
            for row in range(start, len(self.samples) * step, step)
        )

    def code(self, kind: Kind, message: str) -> _KindCount:
        if kind not in self.kinds and len(self.kinds) >= _MOST_KINDS:
            kind = (kind[0], kind[1], "other")
        known = self.kinds.get(kind)
        if known is None:
            known = self.kinds[kind] = _KindCount(len(self.kinds) + 1, message)
        return known

    def add_answer(self, line: bytes) -> None:
        answer = answer_of(line)
        cell = self.cell(answer.sample, answer.condition, answer.repetition)
        if cell is None:
            self.outside += 1
            return
        tally = self.tally(cell)
        for reply in answer.replies:
            tally.pay(reply.dollars)
            tally.use(reply.usage)
        earlier = self._settle(answer.trial, tally) if self._pending else False
        if self.answered[cell]:
            self.duplicates += 1
            return
        self.answered[cell] = 1
        tally.answered += 1
        tally.seconds.append(answer.seconds)
        if answer.attempts > 1 or earlier or self.failed[cell]:
            self.retried[cell] = 1
        if self.trials is not None:
            self.trials[answer.trial] = cell
        for reply in answer.replies:
            if reply.tool_calls:
                tally.count(reply.tool_calls)

    def add_score(self, line: bytes) -> None:
        row = score_of(line)
        cell = self.trials.get(row.trial) if self.trials is not None else None
        tally = self.elsewhere if cell is None else self.tally(cell)
        tally.pay_judge(0.0 if row.offline and row.dollars is None else row.dollars)
        if row.usage is not None or not row.offline:
            tally.use(row.usage)
        if cell is None:
            self.orphans += 1
            return
        key = (row.scorer, row.scoring)
        rows = self.scores.get(key)
        if rows is None:
            rows = self.scores[key] = Rows()
        rows.add(cell, row)
        self.latest[row.scorer] = row.scoring

    def add_failure(self, line: bytes) -> None:
        failure = failure_of(line)
        cell = self.cell(failure.sample, failure.condition, failure.repetition)
        if cell is None and self.trials is not None:
            cell = self.trials.get(failure.trial)
        kind = self.code((failure.cls, failure.stage, failure.kind), failure.message)
        if cell is None:
            self.outside += 1
            return
        if self._pending:
            self._settle(failure.trial, self.tally(cell))
        if failure.stage == "score":
            self.score_failed[cell, failure.scorer] = (failure.scoring, kind.code)
        else:
            self.failed[cell] = kind.code

    def add_attempt(self, line: bytes) -> None:
        attempt = attempt_of(line)
        self.code((attempt.cls, attempt.stage, attempt.kind), attempt.message).attempts += 1
        if attempt.stage == "score":
            cell = self.trials.get(attempt.trial) if self.trials is not None else None
            tally = self.elsewhere if cell is None else self.tally(cell)
            if not self.free_scoring or attempt.dollars is not None:
                tally.pay_judge(attempt.dollars)
                tally.use(attempt.usage)
            return
        waiting = self._pending.setdefault(attempt.trial, _Attempts())
        waiting.dollars.append(attempt.dollars)
        waiting.usages.append(attempt.usage)

    def add_resume(self, line: bytes) -> None:
        for scorer in resume_of(line).scorers:
            self.latest[scorer.name] = scorer.scoring

    def finish(self) -> None:
        """Books what is left on nobody's account."""
        for trial in list(self._pending):
            self._settle(trial, self.elsewhere)

    def _settle(self, trial: str, tally: Tally) -> bool:
        waiting = self._pending.pop(trial, None)
        if waiting is None:
            return False
        for dollars, usage in zip(waiting.dollars, waiting.usages, strict=True):
            tally.pay(dollars)
            tally.use(usage)
        tally.failed_attempts += len(waiting.dollars)
        return True


def read(run: RunFolder) -> Reading:
    """Raises BadRun at a damaged line."""
    plan = run.plan()
    scorers = run.scorers()
    ordered = sorted((sample.position, sample.id) for sample in run.samples())
    reading = Reading(plan, {name: index for index, (_, name) in enumerate(ordered)})
    if scorers:
        reading.trials = {}
        reading.free_scoring = all(scorer.offline for scorer in scorers)
        reading.latest = {scorer.name: scorer.scoring for scorer in run.info.scorers}
    try:
        for line in run.lines():
            handle = _HANDLERS.get(line[10:15])
            if handle is not None:
                handle(reading, line)
            elif not line.startswith(b'{"event":"'):
                reading.foreign += 1
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Counting lines would slow down the thousands of journals that are whole.
        for _ in run.events():
            pass
        raise
    reading.finish()
    return reading


# By the five bytes that follow `{"event":"`.
_HANDLERS = {
    b"answe": Reading.add_answer,
    b"score": Reading.add_score,
    b"failu": Reading.add_failure,
    b"attem": Reading.add_attempt,
    b"resum": Reading.add_resume,
}
