"""One pass over the journal, into arrays: what was answered, scored, failed, spent.

A *cell* is a planned trial: (sample · conditions + condition) · repetitions + repetition,
so that numbers are added up in the plan's order and never in the order of completion.
Without scores nothing here imports numpy.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from karat.analysis.lines import (
    AttemptLine,
    FailureLine,
    ReplyLine,
    answer_of,
    attempt_of,
    end_of,
    failure_of,
    reply_of,
    resume_of,
    score_of,
)
from karat.analysis.tallies import Rows, Tally
from karat.errors import BadRun
from karat.formats import excerpt
from karat.journal import MISSED_GATE, Conversation, PlanInfo, RunFolder
from karat.records import Usage, recorded_seconds

__all__ = ["Kind", "Reading", "plan_of", "read", "right_rule", "trusted"]

_MOST_KINDS = 1000
"""Kinds are few unless a plug-in puts a number or a path into them; what comes then is one kind, "other"."""

_MOST_ERRORS = 50
"""Of exceptions' names that tell crashes apart."""

_MOST_REPETITIONS = 100_000  # as the experiment file allows
_MOST_CONDITIONS = 500  # every two of them are compared on every metric
_CLASS_NAME = re.compile(r"[A-Za-z_][\w.]{0,99}")


class Kind(NamedTuple):
    """Which failures are alike."""

    cls: str
    stage: str
    kind: str
    error: str | None = None  # of a crash: the exception's class
    scorer: str | None = None  # of the stage "score"


@dataclass(slots=True)
class _Waiting:
    """What a trial without an answer, or one whose condition is not known yet, has used up."""

    failed: int = 0  # attempts
    unfinished: int = 0  # attempts that were broken off
    underway: bool = False  # a turn was answered since the last attempt ended
    calls: list[tuple[float | None, Usage | None]] = field(default_factory=list)
    replies: list[ReplyLine] = field(default_factory=list)  # said in vain
    said: Conversation[ReplyLine] = field(default_factory=Conversation)  # turn by turn; a later attempt may go on
    tally: Tally | None = None  # where it belongs, once a failure has told

    def break_off(self) -> None:
        """Nothing more comes of the attempt that is under way."""
        self.unfinished += self.underway
        self.underway = False


@dataclass(slots=True)
class KindCount:
    """How often failures of a kind came, and the newest words of one."""

    code: int
    example: str  # of any, mended or not
    attempts: int = 0
    newest: tuple[int, str] | None = None  # cell and message of the last failure that ended a trial


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
        self.kinds: dict[Kind, KindCount] = {}
        self.carried: dict[str, bool] = {}  # scoring → whether its last part went to its end
        self.tallies = [Tally() for _ in self.conditions]
        self.elsewhere = Tally()  # spent on trials that left no other trace
        self.scores: dict[tuple[str, str], Rows] = {}  # (scorer, scoring)
        self.latest: dict[str, str] = {}  # scorer → its newest scoring
        self.trials: dict[str, int] | None = None  # trial id → cell, when there are scorers
        self.recorded = False  # answers were made elsewhere: how long it took to read them back is no latency
        self.free_scoring = False  # every scorer works by a rule: its failed attempts cost nothing
        self.duplicates = 0
        self.outside = 0  # answers and failures of trials that no plan holds
        self.foreign = 0  # lines that karat did not write
        self.orphans = 0  # scores of trials that have no answer
        self.part: tuple[str, ...] = ()  # the scorings of the part that is being read
        self.own: tuple[str, ...] = ()  # those of the run itself
        self._pending: dict[str, _Waiting] = {}
        self._unnamed: dict[str, list[AttemptLine]] = {}  # of scorers: the next row of the trial says of which
        self._errors: set[str] = set()

    def cell(self, sample: str | None, condition: str | None, repetition: int | None) -> int | None:
        if sample is None or condition is None or repetition is None:
            return None
        row, column = self.samples.get(sample), self.conditions.get(condition)
        if row is None or column is None or not 0 <= repetition < self.repetitions:
            return None
        return (row * len(self.conditions) + column) * self.repetitions + repetition

    def cell_of(self, failure: FailureLine) -> int | None:
        """The cell of a failed trial; None where no plan holds it."""
        cell = self.cell(failure.sample, failure.condition, failure.repetition)
        return self.trials.get(failure.trial) if cell is None and self.trials is not None else cell

    def tally(self, cell: int) -> Tally:
        return self.tallies[cell // self.repetitions % len(self.conditions)]

    def retried_in(self, condition: int) -> int:
        """How many answered trials of a condition took more than one attempt."""
        step, start = len(self.conditions), condition
        return sum(
            self.retried.count(1, row * self.repetitions, (row + 1) * self.repetitions)
            for row in range(start, len(self.samples) * step, step)
        )

    def kind(self, line: FailureLine | AttemptLine, scorer: str | None) -> KindCount:
        """The kind of a failure, new or known."""
        kind = Kind(line.cls, line.stage, line.kind, self._error(line), scorer if line.stage == "score" else None)
        if kind not in self.kinds and len(self.kinds) >= _MOST_KINDS:
            kind = Kind(line.cls, line.stage, "other")
        known = self.kinds.get(kind)
        if known is None:
            known = self.kinds[kind] = KindCount(len(self.kinds) + 1, line.message)
        return known

    def _error(self, line: FailureLine | AttemptLine) -> str | None:
        if line.kind != "crash":
            return None
        name, colon, _ = line.message.partition(":")
        if not colon or _CLASS_NAME.fullmatch(name) is None:
            return None
        if len(self._errors) < _MOST_ERRORS:
            self._errors.add(name)
        return name if name in self._errors else None

    def add_answer(self, line: bytes) -> None:
        answer = answer_of(line)
        cell = self.cell(answer.sample, answer.condition, answer.repetition)
        if cell is None:
            self.outside += 1
            return
        tally = self.tally(cell)
        for reply in answer.replies:
            tally.heard(reply)
        earlier = self._answered(answer.trial, tally) if self._pending else False
        if self.answered[cell]:
            self.duplicates += 1
            return
        self.answered[cell] = 1
        tally.answered += 1
        seconds = answer.seconds
        if self.recorded:
            seconds = recorded_seconds(reply.milliseconds for reply in answer.replies)
        if seconds is not None:
            tally.seconds.append(seconds)
        if answer.attempts > 1 or earlier or self.failed[cell]:
            self.retried[cell] = 1
        if self.trials is not None:
            self.trials[answer.trial] = cell
        if any(reply.tool_calls for reply in answer.replies):
            tally.count(answer.replies, answered=True)

    def add_score(self, line: bytes) -> None:
        row = score_of(line)
        if self._unnamed:
            self._name(row.trial, row.scorer)
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
        cell = self.cell_of(failure)
        if self._unnamed and failure.stage == "score":
            self._name(failure.trial, failure.scorer)
        kind = self.kind(failure, failure.scorer)
        kind.example = failure.message
        if cell is None:
            self.outside += 1
            return
        kind.newest = (cell, failure.message)
        if (waiting := self._pending.get(failure.trial)) is not None:
            self._book(waiting, self.tally(cell))
            if not waiting.said.replies:
                del self._pending[failure.trial]
        if failure.stage == "score":
            self.score_failed[cell, failure.scorer] = (failure.scoring, kind.code)
        else:
            self.failed[cell] = kind.code

    def add_attempt(self, line: bytes) -> None:
        attempt = attempt_of(line)
        if attempt.stage == "score":
            self._unnamed.setdefault(attempt.trial, []).append(attempt)
            cell = self.trials.get(attempt.trial) if self.trials is not None else None
            tally = self.elsewhere if cell is None else self.tally(cell)
            if not self.free_scoring or attempt.dollars is not None:
                tally.pay_judge(attempt.dollars)
                tally.use(attempt.usage)
            return
        self._failed([attempt], None)
        waiting = self._pending.setdefault(attempt.trial, _Waiting())
        waiting.failed += 1
        waiting.underway = False
        told = waiting.said.failed(attempt.kind)
        waiting.replies += attempt.replies[told:]
        # Gates are looked at after the last call, so they cost nothing more.
        heard = attempt.replies or waiting.said.replies
        if not (heard and attempt.kind.startswith(MISSED_GATE) and attempt.dollars is None):
            waiting.calls.append((attempt.dollars, attempt.usage))

    def add_reply(self, line: bytes) -> None:
        told = reply_of(line)
        waiting = self._pending.setdefault(told.trial, _Waiting())
        waiting.underway = True
        waiting.replies += waiting.said.add(told.turn, told.reply)

    def add_resume(self, line: bytes) -> None:
        resume = resume_of(line)
        for scorer in resume.scorers:
            self.latest[scorer.name] = scorer.scoring
        self.part = tuple(scorer.scoring for scorer in resume.scorers) if resume.command == "score" else self.own
        self.carried.update(dict.fromkeys(self.part, False))
        for waiting in self._pending.values():
            waiting.said.broken_off()
            waiting.break_off()
        self._name_rest()

    def add_end(self, line: bytes) -> None:
        self.carried.update(dict.fromkeys(self.part, end_of(line).reason == "done"))

    def finish(self) -> None:
        """Books what led to no answer, on nobody's account where nothing tells whose it was."""
        for waiting in self._pending.values():
            tally = waiting.tally or self.elsewhere
            waiting.break_off()
            waiting.replies += waiting.said.replies
            self._book(waiting, tally)
        self._pending.clear()
        self._name_rest()

    def _answered(self, trial: str, tally: Tally) -> bool:
        """Books what a trial used up besides its answer; whether an attempt failed."""
        waiting = self._pending.pop(trial, None)
        if waiting is None:
            return False
        failed = waiting.failed > 0 or waiting.tally is not None
        self._book(waiting, tally)
        return failed

    def _book(self, waiting: _Waiting, tally: Tally) -> None:
        """What stands, of turns that were answered, is left: an answer may come to hold them."""
        for dollars, usage in waiting.calls:
            tally.pay(dollars)
            tally.lose(dollars)
            tally.use(usage)
        for reply in waiting.replies:
            tally.heard(reply)
            tally.lose(reply.dollars)
        tally.count(waiting.replies, answered=False)
        tally.failed_attempts += waiting.failed
        tally.unfinished_attempts += waiting.unfinished
        waiting.calls, waiting.replies, waiting.tally = [], [], tally
        waiting.failed = waiting.unfinished = 0

    def _name(self, trial: str, scorer: str | None) -> None:
        self._failed(self._unnamed.pop(trial, ()), scorer)

    def _name_rest(self) -> None:
        for trial in list(self._unnamed):
            self._name(trial, None)

    def _failed(self, attempts: Iterable[AttemptLine], scorer: str | None) -> None:
        for attempt in attempts:
            count = self.kind(attempt, scorer)
            count.attempts += 1
            count.example = attempt.message


@contextmanager
def trusted(run: RunFolder) -> Iterator[None]:
    """Around whatever takes a run at its word: what no run of karat's holds becomes BadRun.

    A run folder may come from anywhere. Some of its lines are read in part only, and sizes and
    depths show only in use.
    """
    try:
        yield
    except RecursionError as error:
        raise BadRun(str(run.path), "holds values that are nested too deeply to be read") from error
    except (MemoryError, OverflowError) as error:
        raise BadRun(str(run.path), "holds numbers that are too large to be worked with") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRun(str(run.path), f"the journal is damaged: {error}") from error


def plan_of(run: RunFolder) -> PlanInfo:
    """The run's plan. Raises BadRun where it is none that karat writes."""
    with trusted(run):
        plan = run.plan()
    if not 1 <= plan.repetitions <= _MOST_REPETITIONS:
        wanted = f"want 1 to {_MOST_REPETITIONS}"
        raise BadRun(str(run.path), f"the plan is damaged: repetitions is {plan.repetitions}, {wanted}")
    if not 1 <= len(plan.conditions) <= _MOST_CONDITIONS:
        named = f"it names {len(plan.conditions)} conditions, want 1 to {_MOST_CONDITIONS}"
        raise BadRun(str(run.path), f"the plan is damaged: {named}")
    if len(set(plan.conditions)) < len(plan.conditions):
        raise BadRun(str(run.path), "the plan is damaged: it names a condition twice")
    return plan


def right_rule(run: RunFolder) -> tuple[str, str | None]:
    """By which match a turn of the run is right; also a warning where its own rule is unknown: then "numerical"."""
    from karat.numeric import RIGHT_RULES

    setting = run.info.experiment.get("dataset.right")
    rule = setting.value if setting is not None else "numerical"
    if rule in RIGHT_RULES:
        return str(rule), None
    unknown = f"run.json has an unknown rule for right turns, dataset.right: '{excerpt(str(rule), 60)}'"
    return "numerical", f"{unknown}; numerical is used (--right chooses another)"


def read(run: RunFolder) -> Reading:
    """Raises BadRun at a damaged line."""
    plan = plan_of(run)
    scorers = run.scorers()
    ordered = sorted((sample.position, sample.id) for sample in run.samples())
    samples = {name: index for index, (_, name) in enumerate(ordered)}
    if len(samples) < len(ordered):
        raise BadRun(str(run.path), "samples.jsonl is damaged: it holds a sample twice")
    reading = Reading(plan, samples)
    reading.recorded = run.info.agent_type == "replay"
    reading.own = reading.part = tuple(scorer.scoring for scorer in run.info.scorers)
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
    b"reply": Reading.add_reply,
    b'end",': Reading.add_end,
}
