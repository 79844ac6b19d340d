"""One pass over the journal, into arrays: what was answered, scored, failed, spent.

A *cell* is a planned trial: (sample · conditions + condition) · repetitions + repetition,
so that numbers are added up in the plan's order and never in the order of completion.
Texts are passed over undecoded. Without scores nothing here imports numpy.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import nan

import msgspec

from karat.journal import PlanInfo, Resume, RunFolder
from karat.records import Usage

__all__ = ["Attempts", "Calls", "Kind", "Reading", "Rows", "Tally", "read"]

Kind = tuple[str, str, str]
"""(class, stage, kind) of a failure."""


class _Call(msgspec.Struct, gc=False):
    server: str | None = None
    error: str | None = None
    milliseconds: float | None = None


class _Reply(msgspec.Struct, gc=False):
    tool_calls: tuple[_Call, ...] = ()
    usage: Usage | None = None
    dollars: float | None = None


class _Answer(msgspec.Struct, gc=False):
    trial: str
    sample: str
    condition: str
    repetition: int
    replies: tuple[_Reply, ...]
    seconds: float
    attempts: int = 1


class _Score(msgspec.Struct, gc=False):
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


class _Failure(msgspec.Struct, gc=False):
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


class _Attempt(msgspec.Struct, gc=False):
    trial: str
    kind: str
    message: str
    cls: str = msgspec.field(name="class")
    stage: str = "agent"
    usage: Usage | None = None
    dollars: float | None = None


_MOST_KINDS = 1000
"""Kinds are few unless a plug-in puts a number or a path into them; what comes then is one kind, "other"."""

_answer = msgspec.json.Decoder(_Answer).decode
_score = msgspec.json.Decoder(_Score).decode
_failure = msgspec.json.Decoder(_Failure).decode
_attempt = msgspec.json.Decoder(_Attempt).decode
_resume = msgspec.json.Decoder(Resume).decode


@dataclass(slots=True)
class Calls:
    """Calls to one MCP server under one condition."""

    calls: int = 0
    errors: int = 0
    trials: int = 0
    milliseconds: array[float] = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class Tally:
    """What one condition (or what no condition can be told of) has used up."""

    answered: int = 0
    failed_attempts: int = 0
    dollars: array[float] = field(default_factory=lambda: array("d"))
    unknown: int = 0
    judge_dollars: array[float] = field(default_factory=lambda: array("d"))
    judge_unknown: int = 0
    seconds: array[float] = field(default_factory=lambda: array("d"))
    tokens: list[int | None] = field(default_factory=lambda: [None] * 5)
    tokens_unknown: int = 0
    servers: dict[str, Calls] = field(default_factory=dict)

    def pay(self, dollars: float | None) -> None:
        if dollars is None:
            self.unknown += 1
        elif dollars:
            self.dollars.append(dollars)

    def pay_judge(self, dollars: float | None) -> None:
        if dollars is None:
            self.judge_unknown += 1
        elif dollars:
            self.judge_dollars.append(dollars)

    def use(self, usage: Usage | None) -> None:
        if usage is None:
            self.tokens_unknown += 1
            return
        mine = self.tokens
        told = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        )
        for place, tokens in enumerate(told):
            if tokens is not None:
                mine[place] = (mine[place] or 0) + tokens


@dataclass(slots=True)
class Rows:
    """Every score row of one scorer under one scoring, as columns in the journal's order."""

    cells: array[int] = field(default_factory=lambda: array("Q"))
    turns: array[int] = field(default_factory=lambda: array("i"))  # −1: the whole answer
    judges: array[int] = field(default_factory=lambda: array("i"))  # −1: not named
    repeats: array[int] = field(default_factory=lambda: array("i"))
    values: dict[str, array[float]] = field(default_factory=dict)  # metric → NaN where there is none
    names: dict[str, int] = field(default_factory=dict)  # judge → code
    numbers: set[str] = field(default_factory=set)  # metrics that were ever more than true or false
    partial: dict[int, set[tuple[int, int, int]]] = field(default_factory=dict)  # cell → rows there, of too few
    whole: set[int] = field(default_factory=set)  # cells of several rows that are all there
    offline: bool = False

    def add(self, cell: int, row: _Score) -> None:
        before = len(self.cells)
        self.cells.append(cell)
        self.turns.append(-1 if row.turn is None else row.turn)
        self.judges.append(-1 if row.judge is None else self.names.setdefault(row.judge, len(self.names)))
        self.repeats.append(row.repeat)
        if row.rows > 1:
            self._gather(cell, row.rows)
        if row.offline:
            self.offline = True
        for metric, value in row.values.items():
            column = self.values.get(metric)
            if column is None:
                column = self.values[metric] = array("d", [nan]) * before
            if value is None:
                column.append(nan)
                continue
            column.append(value)
            if value.__class__ is not bool:
                self.numbers.add(metric)
        if len(self.values) != len(row.values):
            for column in self.values.values():
                if len(column) == before:
                    column.append(nan)

    def _gather(self, cell: int, wanted: int) -> None:
        """A scoring of several rows that a kill cut short is none; a later one takes the place of its rows."""
        if cell in self.whole:
            return
        there = self.partial.setdefault(cell, set())
        there.add((self.turns[-1], self.judges[-1], self.repeats[-1]))
        if len(there) >= wanted:
            del self.partial[cell]
            self.whole.add(cell)


@dataclass(slots=True)
class Attempts:
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
        self._pending: dict[str, Attempts] = {}

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
        answer = _answer(line)
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
                _count_calls(tally.servers, reply.tool_calls)

    def add_score(self, line: bytes) -> None:
        row = _score(line)
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
        failure = _failure(line)
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
        attempt = _attempt(line)
        self.code((attempt.cls, attempt.stage, attempt.kind), attempt.message).attempts += 1
        if attempt.stage == "score":
            cell = self.trials.get(attempt.trial) if self.trials is not None else None
            tally = self.elsewhere if cell is None else self.tally(cell)
            if not self.free_scoring or attempt.dollars is not None:
                tally.pay_judge(attempt.dollars)
                tally.use(attempt.usage)
            return
        waiting = self._pending.setdefault(attempt.trial, Attempts())
        waiting.dollars.append(attempt.dollars)
        waiting.usages.append(attempt.usage)

    def add_resume(self, line: bytes) -> None:
        for scorer in _resume(line).scorers:
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


def _count_calls(servers: dict[str, Calls], calls: tuple[_Call, ...]) -> None:
    touched = set()
    for call in calls:
        if call.server is None:
            continue
        use = servers.get(call.server)
        if use is None:
            use = servers[call.server] = Calls()
        use.calls += 1
        touched.add(call.server)
        if call.error is not None:
            use.errors += 1
        if call.milliseconds is not None:
            use.milliseconds.append(call.milliseconds)
    for server in touched:
        servers[server].trials += 1
