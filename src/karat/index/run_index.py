"""The index of one run in memory: columns by trial and by score row, and where each line is in the
journal.

A *cell* is a planned trial: (sample · conditions + condition) · repetitions + repetition. Numbers
are thus added up in the plan's order, never in the order of completion. Without scores nothing here
imports numpy.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from math import nan
from operator import lt
from typing import TYPE_CHECKING, TypeVar

import msgspec

from karat.errors import BadRun
from karat.index.lines import (
    AnswerLine,
    AttemptLine,
    EndLine,
    FailureLine,
    LineReader,
    ReplyEventLine,
    ReplyLine,
    SampleLine,
    ScoreLine,
)
from karat.index.rules import PartialAnswer, PartialScorings, counting_rows, shown_scorings
from karat.index.spending import CallRows, Ints, Tally
from karat.journal import (
    MISSED_GATE,
    Decided,
    Gap,
    Horizon,
    LineDamaged,
    PlanInfo,
    Resume,
    RunFolder,
    ScorerInfo,
    lacks_plan,
)
from karat.records import (
    MOST_CONDITIONS,
    MOST_REPETITIONS,
    MOST_VALUE,
    Sample,
    Usage,
    recorded_seconds,
    was_cut,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Line = TypeVar("_Line")

_MOST_GROUPS = 1000
"""Groups are few unless a plug-in puts a number or a path into a kind; further ones join one group,
"other".
"""

_CLASS_NAME = re.compile(r"[A-Za-z_][\w.]{0,99}")
_MOST = 2**31 - 1  # of a turn and a repeat

_answer = msgspec.json.Decoder(AnswerLine).decode
_score = msgspec.json.Decoder(ScoreLine).decode
_failure = msgspec.json.Decoder(FailureLine).decode
_attempt = msgspec.json.Decoder(AttemptLine).decode
_reply = msgspec.json.Decoder(ReplyEventLine).decode
_resume = msgspec.json.Decoder(Resume).decode
_end = msgspec.json.Decoder(EndLine).decode
_horizon = msgspec.json.Decoder(Horizon).decode
_decided = msgspec.json.Decoder(Decided).decode


class FailureGroup(msgspec.Struct, frozen=True):
    """A group of similar failures."""

    cls: str
    stage: str
    kind: str
    error: str | None = None  # of a crash: the exception's class
    scorer: str | None = None  # of the stage "score"


class FailureCount(msgspec.Struct):
    """How often failures of a group occurred."""

    code: int  # from 1
    example: str  # message of the newest, whether or not its trial failed in the end
    attempts: int = 0


class OpenTrial(msgspec.Struct):
    """A trial without an answer so far: what was spent on it, and its conversation."""

    cell: int = -1  # once a failure names it
    failed_attempts: int = 0
    unfinished_attempts: int = 0  # broken off
    underway: bool = False  # a turn was answered since the last attempt ended
    calls: list[tuple[float | None, Usage | None]] = []
    lost_replies: list[ReplyLine] = []
    partial: PartialAnswer[tuple[int, ReplyLine]] = msgspec.field(default_factory=PartialAnswer)

    def end_attempt(self) -> None:
        """Ends the current attempt, which left no line of its own."""
        self.unfinished_attempts += self.underway
        self.underway = False


class ScoreRows:
    """Every row of one scorer under one scoring, as columns in the journal's order."""

    def __init__(self) -> None:
        self.at = array("q")  # where the line starts, in bytes
        self.cells = array("q")
        self.turns = array("i")  # −1: the whole answer
        self.judges = array("i")  # codes; −1: not named
        self.repeats = array("i")
        self.values: dict[str, array[float]] = {}  # metric → NaN if there is none
        self.names: dict[str, int] = {}  # judge → code
        self.numbers: set[str] = set()  # metrics with any value other than true or false
        # name and value → positions of the rows that have it
        self.labels: dict[tuple[str, str], array[int]] = {}
        self.claims = array("q")  # positions of the rows with unverified claims
        self.offline = False
        self.too_large = 0  # values left out because they exceed `MOST_VALUE`
        self.incomplete: PartialScorings[int, tuple[int, int, int]] = PartialScorings()  # by cell
        self._complete: set[int] = set()  # cells whose several rows are all there
        self._order: NDArray[np.int64] | None = None
        self._ordered = 0  # rows covered by `_order`
        # `_order`; cells and places in that order
        self._by_cell: tuple[NDArray[np.int64], ...] | None = None

    @property
    def partial(self) -> Mapping[int, set[tuple[int, int, int]]]:
        """The cells with too few rows, and the rows they have: turn, judge's code, repeat."""
        return self.incomplete.places

    def add(self, cell: int, at: int, row: ScoreLine) -> None:
        """Adds a row.

        Raises OverflowError, and adds nothing, for numbers that karat never writes.
        """
        if not (-_MOST <= (row.turn or 0) <= _MOST and -_MOST <= row.repeat <= _MOST):
            raise OverflowError
        count = len(self.cells)
        self.cells.append(cell)
        self.at.append(at)
        self.turns.append(-1 if row.turn is None else row.turn)
        if row.judge is None:
            self.judges.append(-1)
        else:
            self.judges.append(self.names.setdefault(row.judge, len(self.names)))

        self.repeats.append(row.repeat)
        if row.rows > 1:
            # Counts a scoring of several rows once all are there; later rows then replace them one
            # by one.
            place = self.turns[-1], self.judges[-1], self.repeats[-1]
            if cell not in self._complete and self.incomplete.completes(cell, place, rows=row.rows):
                self._complete.add(cell)

        if row.labels:
            for label in row.labels.items():
                self.labels.setdefault(label, array("q")).append(count)

        if row.claims:
            self.claims.append(count)
        self.offline |= row.offline
        for metric, value in row.values.items():
            column = self.values.get(metric)
            if column is None:
                column = self.values[metric] = array("d", [nan]) * count
            if value is None:
                column.append(nan)
            elif -MOST_VALUE <= value <= MOST_VALUE:
                column.append(value)
                if value.__class__ is not bool:
                    self.numbers.add(metric)
            else:
                self.too_large += 1
                column.append(nan)

        if len(self.values) != len(row.values):
            for column in self.values.values():
                column.extend([nan] * (count + 1 - len(column)))

    def counting(self) -> NDArray[np.int64]:
        """The rows that count, in the order of cell, turn, judge's name and repeat; −1, not named,
        comes first.
        """
        import numpy as np

        if self._order is None or self._ordered != len(self.cells):
            cells, turns, repeats = (
                np.frombuffer(column, dtype=column.typecode)
                for column in (self.cells, self.turns, self.repeats)
            )
            self._order = counting_rows(
                cells,
                turns,
                self.judge_ranks(),
                repeats,
                partial=self.partial,
            )
            self._ordered = len(self.cells)

        return self._order

    def places_of(self, cell: int) -> list[int]:
        """Where the counting rows of a cell start in the journal, by turn, judge and repeat."""
        import numpy as np

        order = self.counting()
        if self._by_cell is None or self._by_cell[0] is not order:
            columns = (
                np.frombuffer(column, dtype=np.int64)[order] for column in (self.cells, self.at)
            )
            self._by_cell = order, *columns

        _, cells, at = self._by_cell
        first, after = np.searchsorted(cells, (cell, cell + 1))
        return [int(place) for place in at[first:after]]

    def judge_ranks(self) -> NDArray[np.int32]:
        """For every row, its judge's rank among the judges by name; −1: not named."""
        import numpy as np

        ranks = {name: rank for rank, name in enumerate(sorted(self.names))}
        by_code = np.array([-1, *(ranks[name] for name in self.names)], dtype=np.int32)
        return by_code[np.frombuffer(self.judges, dtype=np.int32) + 1]


class Places(msgspec.Struct):
    """Lines of one kind: the byte where each starts, and its cell; −1: no planned trial is
    known.
    """

    at: Ints = msgspec.field(default_factory=lambda: array("q"))
    cells: Ints = msgspec.field(default_factory=lambda: array("q"))
    codes: Ints = msgspec.field(default_factory=lambda: array("H"))  # a failure's group

    def add(self, at: int, cell: int, code: int) -> None:
        self.at.append(at)
        self.cells.append(cell)
        self.codes.append(code)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.at, self.cells, self.codes, strict=True)


class TrialCells:
    """Trial id → cell for very many trials, in a quarter of a dict's memory: the newest in a dict,
    the others sorted.

    An id that karat never writes (longer than 24 ASCII characters, or ending in NUL) stays in a
    dict.
    """

    _LENGTH = 24

    def __init__(self, *, most_new: int = 2**16) -> None:
        self._most_new = most_new
        self._new: dict[str, int] = {}
        self._odd: dict[str, int] = {}
        self._sorted: tuple[NDArray[np.bytes_], NDArray[np.int64]] | None = None

    def __setitem__(self, trial: str, cell: int) -> None:
        if len(trial) > self._LENGTH or not trial.isascii() or trial.endswith("\0"):
            self._odd[trial] = cell
            return

        self._new[trial] = cell
        if len(self._new) >= max(
            self._most_new, 0 if self._sorted is None else len(self._sorted[1]) // 4
        ):
            import numpy as np

            names = np.array(list(self._new), dtype=f"S{self._LENGTH}")
            cells = np.fromiter(self._new.values(), dtype=np.int64)
            self._new = {}
            if self._sorted is not None:  # finds the first of equal ids, which is the newest
                names = np.concatenate((names, self._sorted[0]))
                cells = np.concatenate((cells, self._sorted[1]))

            order = np.argsort(names, kind="stable")
            self._sorted = names[order], cells[order]

    def get(self, trial: str, default: int = -1) -> int:
        """The cell set last; `default` if none was."""
        cell = self._new.get(trial, self._odd.get(trial) if self._odd else None)
        if cell is None and self._sorted is not None and trial.isascii():
            names, cells = self._sorted
            name = trial.encode()
            at = int(names.searchsorted(name))
            if at < len(names) and names[at] == name:
                cell = int(cells[at])

        return default if cell is None else cell


class RunIndex:
    """The journal's data for each planned trial, before any statistics."""

    def __init__(
        self,
        run: RunFolder,
        *,
        plan: PlanInfo | None = None,
        scorers: Sequence[ScorerInfo] | None = None,
    ):
        """With a plan and scorers, an index without samples and lines, for `stored` to fill.

        Raises BadRun for a plan or samples that karat would not write.
        """
        self.run = run
        self.end = 0  # bytes of the journal read so far
        self.damaged = 0  # lines that `follow` skipped
        self.gaps: tuple[Gap, ...] = ()  # as `RunFolder.gaps`
        # whether the run was resumed with a larger plan, which changes the cells
        self.outgrown = False
        if plan is None:
            self.plan = plan_of(run)
        else:
            self.plan = plan

        if scorers is not None:
            known = scorers
        else:
            known = run.scorers()

        self.scorers = {scorer.scoring: scorer for scorer in known}  # as `RunFolder.scorers`
        self.samples: dict[str, int] = {}  # id → row
        # per row: in the dataset, in samples.jsonl
        self.positions = array("q")
        self.sample_lines = array("q")
        self.digests: list[str] = []
        # what each sample shares with others; all None: nothing is declared
        self.clusters: list[str | None] = []
        if plan is None:
            self._read_samples()
        plan = self.plan
        scorers = tuple(known)
        self.conditions = {name: index for index, name in enumerate(plan.conditions)}
        self.repetitions = plan.repetitions
        self.planned = len(self.samples) * len(self.conditions) * plan.repetitions
        self.answered = bytearray(self.planned)
        # by cell: where the answer's line starts, once answered
        self.answers = array("q", bytes(8 * self.planned))
        self.retried = bytearray(self.planned)
        # code of the last failure, until there is an answer
        self.failed = array("H", bytes(2 * self.planned))
        self.score_failed: dict[tuple[int, str | None], tuple[str | None, int]] = {}
        self.failures = Places()
        self.attempts = Places()  # failed ones; complete once everything is read
        self.groups: dict[FailureGroup, FailureCount] = {}
        self.completed: dict[str, bool] = {}  # scoring → whether its last part ran to its end
        self.tallies = [Tally() for _ in self.conditions]
        self.unassigned = Tally()  # spent on trials whose condition is not known
        self.calls = CallRows()
        self.scores: dict[tuple[str, str], ScoreRows] = {}  # (scorer, scoring)
        # scorer → its newest scoring
        self.newest = {scorer.name: scorer.scoring for scorer in run.info.scorers}
        self.open_trials: dict[str, OpenTrial] = {}  # by id; an answer removes its trial
        self.recorded = run.info.agent_type == "replay"
        """Whether answers were made elsewhere: the time to read them back is not a latency."""
        self.duplicates = 0
        self.outside_plan = 0  # answers and failures of trials that are in no plan
        self.foreign_lines = 0  # lines that karat did not write
        self.orphan_scores = 0  # scores of trials without an answer
        self.horizon: Horizon | None = None  # of a run that may stop early
        self.decisions: dict[tuple[str, str], Decided] = {}  # by comparison; the first one counts
        # failed attempts cost nothing
        self._free_scoring = bool(scorers) and all(scorer.offline for scorer in scorers)
        # trial id → cell, of answered trials
        self._cells: dict[str, int] | TrialCells | None = {} if scorers else None
        self._attempted: dict[str, int] = {}  # trial id → cell, of trials with failed attempts
        self._attempt_trials: list[str] = []
        # `_part`: of the part being read
        self._run_scorings = self._part_scorings = tuple(self.newest.values())
        # attempts of a scorer: the trial's next row names it
        self._unnamed: dict[str, list[AttemptLine]] = {}

    def _read_samples(self) -> None:
        ids: list[str] = []
        for sample in self.run.samples_as(SampleLine):
            ids.append(sample.id)
            self.positions.append(sample.position)
            self.digests.append(sample.content or sample.digest)
            self.clusters.append(sample.cluster)

        order: Sequence[int] = range(len(ids))
        in_order = all(map(lt, self.positions, islice(self.positions, 1, None)))
        if not in_order:
            order = sorted(order, key=lambda line: (self.positions[line], ids[line]))
        self.sample_lines.extend(order)
        if not in_order:
            self.positions = array("q", (self.positions[line] for line in order))
            self.digests = [self.digests[line] for line in order]
            self.clusters = [self.clusters[line] for line in order]

        self.samples = {ids[line]: row for row, line in enumerate(order)}
        if len(self.samples) < len(ids):
            raise BadRun(self.run.path, "samples.jsonl is damaged: a sample appears twice")
        if len(ids) < (planned := self.run.plan().samples):  # cut off between two lines
            message = f"samples.jsonl holds {len(ids)} of {planned} samples; restore it from a copy"
            raise BadRun(self.run.path, message)

    def cell(self, sample: str | None, condition: str | None, repetition: int | None) -> int | None:
        if sample is None or condition is None or repetition is None:
            return None
        row = self.samples.get(sample)
        column = self.conditions.get(condition)
        if row is None or column is None or not 0 <= repetition < self.repetitions:
            return None
        return (row * len(self.conditions) + column) * self.repetitions + repetition

    def place(self, cell: int) -> tuple[int, int, int]:
        """Sample, condition and repetition, as indices."""
        rest, repetition = divmod(cell, self.repetitions)
        row, condition = divmod(rest, len(self.conditions))
        return row, condition, repetition

    @property
    def all_tallies(self) -> tuple[Tally, ...]:
        """The tallies of all conditions, and of trials whose condition is not known."""
        return (*self.tallies, self.unassigned)

    @property
    def out(self) -> frozenset[str]:
        """Conditions no longer asked, because every comparison with them is decided."""
        return frozenset(
            name for one in self.decisions.values() for name in one.out if name in self.conditions
        )

    @property
    def sparse(self) -> bool:
        """Whether trials without a result were not planned: the run holds everything that
        there is.
        """
        whole = all(self.completed.get(scorer.scoring, False) for scorer in self.run.info.scorers)
        return self.run.info.sparse and whole

    def not_needed(self) -> bytearray | None:
        """For each cell, whether it was not run because its comparison was decided, or never
        planned; None: none.

        Files of results do not say how many repetitions were planned: those after the first that
        no question of a condition has were not. Those of a table were, unless rows of it were
        left out, where another condition has them of the same question.
        """
        source = self.run.info.source
        whole = self.run.info.imported and "incomplete" not in source
        if not (self.out or self.sparse or whole):
            return None

        cells = bytearray(self.planned)
        held = bytes(map(any, zip(self.answered, self.failed, strict=True)))
        step = len(self.conditions) * self.repetitions
        of_any: dict[int, bytes] = {}  # repetition → the samples that have it, of a table
        left_out = "faults" in source or "left out" in source
        if whole and self.sparse and lacks_plan(source) and not left_out:
            for repetition in range(1, self.repetitions):
                every = [held[at::step] for at in range(repetition, step, self.repetitions)]
                of_any[repetition] = bytes(map(any, zip(*every, strict=True)))

        names = self.conditions if self.sparse else self.out
        spared = {self.conditions[name] for name in names}
        for place in range(step):
            own = held[place::step]
            repetition = place % self.repetitions
            unused = repetition > 0 and not any(own)
            if (whole and unused) or place // self.repetitions in spared:
                if unused:
                    known = own
                else:
                    known = of_any.get(repetition, own)

                cells[place::step] = bytearray(not flag for flag in known)

        return cells if any(cells) else None

    def tally(self, cell: int) -> Tally:
        if cell >= 0:
            return self.tallies[cell // self.repetitions % len(self.conditions)]
        return self.unassigned

    def retried_in(self, condition: int) -> int:
        """How many answered trials of a condition took more than one attempt."""
        if 1 not in self.retried:
            return 0
        step = len(self.conditions)
        start = condition
        return sum(
            self.retried.count(1, row * self.repetitions, (row + 1) * self.repetitions)
            for row in range(start, len(self.samples) * step, step)
        )

    def samples_of(self, rows: Iterable[int]) -> Iterator[Sample]:
        """The samples of these rows, in the order of samples.jsonl."""
        return self.run.samples(lines={self.sample_lines[row] for row in rows})

    def shown(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Scorer → scoring that counts: the newest, unless `wanted` names another.

        Raises BadOption.
        """
        announced = [
            (scorer.name, scorer.scoring)
            for scorer in (*self.run.info.scorers, *self.scorers.values())
        ]
        return shown_scorings(self.newest, announced, self.scores, wanted)

    def scored(self, scoring: str) -> bytearray:
        """For each cell, whether it has all rows of a scoring."""
        scored = bytearray(self.planned)
        for (_, digest), rows in self.scores.items():
            if digest == scoring:
                for cell in rows.cells:
                    scored[cell] = 1
                for cell in rows.partial:
                    scored[cell] = 0

        return scored

    def lacks_other_answer(self, cell: int, scoring: str) -> bool:
        """Whether a scoring compares a cell's answer with another one that is missing."""
        info = self.scorers.get(scoring)
        width = self.repetitions * len(self.conditions)
        if info is None or info.compared_with not in self.conditions:
            return False
        other = (
            cell // width * width
            + self.conditions[info.compared_with] * self.repetitions
            + cell % self.repetitions
        )
        return not self.answered[other]

    def partial_rows(self, scoring: str) -> dict[int, set[tuple[int | None, str | None, int]]]:
        """For cells that lack rows of a scoring: cell → turn, judge and repeat of the rows they
        have.
        """
        present: dict[int, set[tuple[int | None, str | None, int]]] = {}
        for (_, digest), rows in self.scores.items():
            names = [*rows.names, None]  # −1: not named
            for cell, places in rows.partial.items() if digest == scoring else ():
                present[cell] = {
                    (turn if turn >= 0 else None, names[judge], repeat)
                    for turn, judge, repeat in places
                }

        return present

    @contextmanager
    def reader(self) -> Iterator[LineReader]:
        """Reads lines again, by their bytes."""
        with self.run.open_journal() or BytesIO() as file:
            yield LineReader(self.run, file)

    def lines(self, places: Iterable[int]) -> Iterator[bytes]:
        """The lines that start at these bytes. Raises BadRun if the journal has been replaced."""
        with self.reader() as reader:
            yield from map(reader.line, places)

    def answer_lines(self, decode: Callable[[bytes], _Line]) -> Iterator[tuple[int, _Line]]:
        """Cell and line of every answer that counts, in the journal's order."""
        cells = sorted(
            (cell for cell in range(self.planned) if self.answered[cell]),
            key=self.answers.__getitem__,
        )
        return zip(
            cells, map(decode, self.lines(self.answers[cell] for cell in cells)), strict=True
        )

    def score_lines(
        self, scoring: tuple[str, str], decode: Callable[[bytes], _Line]
    ) -> Iterator[tuple[int, _Line]]:
        """Cell and line of every row of a scoring, in the journal's order, including rows that do
        not count.
        """
        rows = self.scores.get(scoring) or ScoreRows()
        return zip(rows.cells, map(decode, self.lines(rows.at)) if rows.at else (), strict=True)

    def group(self, line: FailureLine | AttemptLine, scorer: str | None) -> FailureCount:
        """The group of a failure, existing or new."""
        scorer = scorer if line.stage == "score" else None
        name, colon, _ = line.message.partition(":")
        if line.kind == "crash" and colon and _CLASS_NAME.fullmatch(name):
            error = name
        else:
            error = None

        group = FailureGroup(line.cls, line.stage, line.kind, error, scorer)
        if group not in self.groups and len(self.groups) >= _MOST_GROUPS:
            group = FailureGroup(line.cls, line.stage, "other")
        known = self.groups.get(group)
        if known is None:
            known = self.groups[group] = FailureCount(len(self.groups) + 1, line.message)
        return known

    def read(self) -> None:
        """Reads the whole journal. Raises BadRun at a damaged line, with its number."""
        handlers = self._handlers()
        end = 0
        try:
            for _, at, line in self.run.numbered_lines():
                handle = handlers.get(line[10:15])
                if handle is not None:
                    handle(at, line)
                elif not line.startswith(b'{"event":"'):
                    self.foreign_lines += 1

                end = at + len(line) + 1
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Lines are not counted above: that would slow down the many undamaged journals.
            for _ in self.run.events():
                pass
            raise

        self.end = end
        self.gaps = self.run.gaps
        # Books costs without an answer; as unassigned if no line names the trial's condition.
        for pending in self.open_trials.values():
            pending.end_attempt()
            pending.lost_replies += (reply for _, reply in pending.partial.replies)
            self._book(pending)

        self._name_all_attempts()
        for number, trial in enumerate(self._attempt_trials):
            self.attempts.cells[number] = self._attempted[trial]
        self._cells = None
        self._attempted = {}
        self._attempt_trials = []

    def follow(self, *, at_most: int = sys.maxsize) -> bool:
        """Reads about `at_most` bytes of what the journal has gained; returns whether there was
        anything.

        To show a run while it runs, call this repeatedly. Damaged lines are counted and skipped;
        nothing after a line that is too long is read. The cost of open trials is not booked, as
        they may still be answered.
        """
        if not isinstance(self._cells, TrialCells):
            self._cells = TrialCells()
        start = self.end
        handlers = self._handlers()

        def pass_over(error: LineDamaged) -> None:
            self.end = max(self.end, error.end)
            self.damaged += error.end > 0

        try:
            for _, at, line in self.run.numbered_lines(start=start, on_damage=pass_over):
                self.end = at + len(line) + 1
                handle = handlers.get(line[10:15])
                try:
                    if handle is not None:
                        handle(at, line)
                    self.damaged += not line.startswith(b'{"event":"')
                except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError):
                    self.damaged += 1

                if self.end - start >= at_most:
                    break
        except BadRun:  # the line is too long
            return False

        return self.end > start

    def cell_of(self, trial: str) -> int | None:
        """The cell of a trial with an answer, or some turns of one.

        Only for an index that follows its run.
        """
        pending = self.open_trials.get(trial)
        cell = (self._cells or {}).get(trial, pending.cell if pending is not None else -1)
        return cell if cell >= 0 else None

    def attempts_of(self, cell: int) -> list[int]:
        """Where the failed attempts of a cell start. Only for an index that follows its run."""
        trials = {trial for trial, of in self._attempted.items() if of == cell}
        found = []
        for at, trial in zip(self.attempts.at, self._attempt_trials, strict=True):
            if trial in trials:
                found.append(at)

        return found

    def _handlers(self) -> dict[bytes, Callable[[int, bytes], None]]:
        """Functions by the five bytes that follow `{"event":"`."""
        return {
            b"answe": self._add_answer,
            b"score": self._add_score,
            b"failu": self._add_failure,
            b"attem": self._add_attempt,
            b"resum": self._add_resume,
            b"reply": self._add_reply,
            b'end",': self._add_end,
            b"horiz": self._add_horizon,
            b"decid": self._add_decided,
        }

    def _add_answer(self, at: int, line: bytes) -> None:
        answer = _answer(line)
        cell = self.cell(answer.sample, answer.condition, answer.repetition)
        if cell is None:
            self.outside_plan += 1
            return

        tally = self.tallies[self.conditions[answer.condition]]
        trial = answer.trial
        replies = answer.replies
        called = cut = False
        for reply in replies:
            tally.add_reply(reply)
            called = called or bool(reply.tool_calls)
            cut = cut or was_cut(reply.stop_reason)

        earlier = False  # whether an attempt failed
        pending = self.open_trials.pop(trial, None)
        if pending is not None:  # what the trial used in addition to its answer
            earlier = pending.failed_attempts > 0 or pending.cell >= 0
            pending.cell = cell
            self._book(pending)

        if self.answered[cell]:
            self.duplicates += 1
            return

        self.answered[cell] = 1
        self.answers[cell] = at
        tally.answered += 1
        tally.cut += cut
        if self.recorded:
            seconds = recorded_seconds([reply.milliseconds for reply in replies])
        else:
            seconds = answer.seconds

        if seconds is not None:
            tally.seconds.append(seconds)
        if answer.attempts > 1 or earlier or self.failed[cell]:
            self.retried[cell] = 1
        if self._cells is not None:
            self._cells[trial] = cell
        if trial in self._attempted:
            self._attempted[trial] = cell
        if called:
            tally.count_calls(replies, answered=True)
            self.calls.add(cell, replies)

    def _add_score(self, at: int, line: bytes) -> None:
        row = _score(line)
        if self._unnamed:
            self._name_attempts(row.trial, row.scorer)
        if self._cells is not None:
            cell = self._cells.get(row.trial, -1)
        else:
            cell = -1

        # a rule costs nothing
        if not row.offline or row.dollars is not None or row.usage is not None:
            tally = self.tally(cell)
            tally.pay_judge(0.0 if row.offline and row.dollars is None else row.dollars)
            if row.usage is not None or not row.offline:
                tally.use(row.usage)
            if row.usage is not None:
                tally.judge_tokens += (row.usage.input_tokens or 0) + (row.usage.output_tokens or 0)

        if cell < 0:
            self.orphan_scores += 1
            return

        key = (row.scorer, row.scoring)
        rows = self.scores.get(key)
        if rows is None:
            rows = self.scores[key] = ScoreRows()
        rows.add(cell, at, row)
        self.newest[row.scorer] = row.scoring

    def _add_failure(self, at: int, line: bytes) -> None:
        failure = _failure(line)
        trial = failure.trial
        cell = self.cell(failure.sample, failure.condition, failure.repetition)
        if cell is None and self._cells is not None:
            known = self._cells.get(trial, -1)
            cell = known if known >= 0 else None

        if self._unnamed and failure.stage == "score":
            self._name_attempts(trial, failure.scorer)
        group = self.group(failure, failure.scorer)
        group.example = failure.message
        self.failures.add(at, -1 if cell is None else cell, group.code)
        if cell is None:
            self.outside_plan += 1
            return

        if trial in self._attempted:
            self._attempted[trial] = cell
        if (pending := self.open_trials.get(trial)) is not None:
            pending.cell = cell
            self._book(pending)
            if not pending.partial.replies:
                del self.open_trials[trial]

        if failure.stage == "score":
            self.score_failed[cell, failure.scorer] = (failure.scoring, group.code)
        else:
            self.failed[cell] = group.code

    def _add_attempt(self, at: int, line: bytes) -> None:
        attempt = _attempt(line)
        trial = attempt.trial
        if self._cells is not None:
            cell = self._cells.get(trial, -1)
        else:
            cell = -1

        self._attempted.setdefault(trial, cell)
        self._attempt_trials.append(trial)
        self.attempts.add(at, cell, 0)
        if attempt.stage == "score":
            self._unnamed.setdefault(trial, []).append(attempt)
            if not self._free_scoring or attempt.dollars is not None:
                tally = self.tally(cell)
                tally.pay_judge(attempt.dollars)
                tally.use(attempt.usage)

            return

        self._count_attempt(attempt, None)
        pending = self.open_trials.setdefault(trial, OpenTrial())
        pending.failed_attempts += 1
        pending.underway = False
        journalled = pending.partial.end_attempt(attempt.kind)
        pending.lost_replies += attempt.replies[journalled:]
        # Gates are checked after the last call, so they cost nothing more.
        replied = attempt.replies or pending.partial.replies
        if not (replied and attempt.kind.startswith(MISSED_GATE) and attempt.dollars is None):
            pending.calls.append((attempt.dollars, attempt.usage))

    def _add_reply(self, at: int, line: bytes) -> None:
        event = _reply(line)
        pending = self.open_trials.setdefault(event.trial, OpenTrial())
        pending.underway = True
        pending.lost_replies += (
            reply for _, reply in pending.partial.add(event.turn, (at, event.reply))
        )

    def _add_resume(self, _: int, line: bytes) -> None:
        resume = _resume(line)
        for scorer in resume.scorers:
            self.newest[scorer.name] = scorer.scoring
            self.scorers.pop(scorer.scoring, None)
            self.scorers[scorer.scoring] = scorer

        if (plan := resume.plan) is not None:
            self.outgrown |= (
                plan.repetitions > self.repetitions
                or not self.conditions.keys() >= set(plan.conditions)
            )

        again = resume.command == "score"
        if again:
            self._part_scorings = tuple(scorer.scoring for scorer in resume.scorers)
        else:
            self._part_scorings = self._run_scorings

        self.completed.update(dict.fromkeys(self._part_scorings, False))
        for pending in self.open_trials.values():
            pending.partial.end_process()
            pending.end_attempt()

        self._name_all_attempts()

    def _add_end(self, _: int, line: bytes) -> None:
        self.completed.update(dict.fromkeys(self._part_scorings, _end(line).reason == "done"))

    def _add_horizon(self, _: int, line: bytes) -> None:
        self.horizon = self.horizon or _horizon(line)

    def _add_decided(self, _: int, line: bytes) -> None:
        decided = _decided(line)
        self.decisions.setdefault((decided.a, decided.b), decided)

    def _book(self, pending: OpenTrial) -> None:
        """Books the cost of a trial, except replies that an answer may still include."""
        tally = self.tally(pending.cell)
        for dollars, usage in pending.calls:
            tally.pay(dollars)
            tally.lose(dollars)
            tally.use(usage)

        for reply in pending.lost_replies:
            tally.add_reply(reply)
            tally.lose(reply.dollars)

        tally.count_calls(pending.lost_replies, answered=False)
        tally.failed_attempts += pending.failed_attempts
        tally.unfinished_attempts += pending.unfinished_attempts
        pending.calls = []
        pending.lost_replies = []
        pending.failed_attempts = pending.unfinished_attempts = 0

    def _name_attempts(self, trial: str, scorer: str | None) -> None:
        for attempt in self._unnamed.pop(trial, ()):
            self._count_attempt(attempt, scorer)

    def _name_all_attempts(self) -> None:
        for trial in list(self._unnamed):
            self._name_attempts(trial, None)

    def _count_attempt(self, attempt: AttemptLine, scorer: str | None) -> None:
        group = self.group(attempt, scorer)
        group.attempts += 1
        group.example = attempt.message


@contextmanager
def trusted(run: RunFolder) -> Iterator[None]:
    """Wraps code that uses a run's values: turns errors from values that karat never writes into
    BadRun.

    A run folder may come from a stranger. Some lines are only partly decoded, so excessive sizes
    and depths show only when values are used.
    """
    try:
        yield
    except RecursionError as error:
        raise BadRun(run.path, "holds values nested too deeply to be read") from error
    except (MemoryError, OverflowError) as error:
        raise BadRun(run.path, "holds numbers that are too large to compute with") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRun(run.path, f"the journal is damaged: {error}") from error


def plan_of(run: RunFolder) -> PlanInfo:
    """The run's plan. Raises BadRun if karat would not write such a plan."""
    with trusted(run):
        plan = run.plan()
    fault = None
    if not 1 <= plan.repetitions <= MOST_REPETITIONS:
        fault = f"repetitions is {plan.repetitions}, expected 1 to {MOST_REPETITIONS}"
    elif not 1 <= len(plan.conditions) <= MOST_CONDITIONS:
        fault = f"it names {len(plan.conditions)} conditions, expected 1 to {MOST_CONDITIONS}"
    elif len(set(plan.conditions)) < len(plan.conditions):
        fault = "it names a condition twice"

    if fault is not None:
        raise BadRun(run.path, f"the plan is damaged: {fault}")
    return plan
