"""The texts of trials, read from the journal at the positions in the index."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

from karat.errors import BadRun
from karat.index import LineReader
from karat.index.lines import AnswerLine
from karat.journal import Attempt
from karat.kind_views import TrialRecord
from karat.records import Answer, Failure, Reply, Sample, Score
from karat_viewer.queries import Questions

_MOST_TRIALS = 60  # of one question on one page
_MOST_BYTES = 32 * 2**20  # of all lines on a page, except those of its first trial
_Record = TypeVar("_Record")


class Moved(Exception):
    """A line is not where the index says: the journal has changed."""


class _ReplyEvent(msgspec.Struct):
    reply: Reply


class Texts:
    """Reads lines of one run, as many as a page may."""

    def __init__(self, questions: Questions, reader: LineReader) -> None:
        self._questions = questions
        self._index = questions.index
        self._reader = reader
        self._left = _MOST_BYTES

    @property
    def spent(self) -> bool:
        """Whether this page has used up its reads, so that `scores_of` returns nothing."""
        return self._left <= -_MOST_BYTES

    def sample(self, row: int) -> Sample:
        """A question with its texts. Raises Moved, or BadRun if its line is invalid."""
        try:
            sample = msgspec.json.decode(self._questions.sample_bytes(row), type=Sample)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRun(str(self._index.run.path), f"samples.jsonl is damaged: {error}") from error

        if self._index.samples.get(sample.id) != row:
            raise Moved
        return sample

    def sample_of(self, trial: int) -> Sample:
        """The question of a trial, by its cell. Raises like `sample`."""
        return self.sample(self._index.place(trial)[0])

    def trials(self, row: int, *, first: int = 0) -> tuple[list[TrialRecord], int]:
        """The trials of a question by repetition, starting at `first`; and how many there are.

        Raises Moved.
        """
        index = self._index
        failures = self._questions.failures
        step = len(index.conditions) * index.repetitions
        cells = [
            cell
            for cell in range(row * step, (row + 1) * step)
            if index.answered[cell] or cell in failures
        ]
        cells.sort(key=lambda cell: index.place(cell)[:0:-1])
        trials: list[TrialRecord] = []
        for cell in cells[first : first + _MOST_TRIALS]:
            if trials and self._left < 0:
                break
            trials.append(self._trial(cell))

        return trials, len(cells)

    def trial(self, name: str) -> TrialRecord | None:
        """One trial by its id, if it has an answer. Raises Moved."""
        cell = self._index.cell_of(name)
        if cell is None:
            return None
        return self._trial(cell)

    def scores_of(self, trial: int, turn: int | None = None) -> tuple[Score, ...]:
        """The scores of a trial, by its cell, or of one turn. Raises Moved."""
        places = [at for rows in self._questions.scores.values() for at in rows.places_of(trial)]
        scores = (self._line(at, Score) for at in places if not self.spent)
        return tuple(score for score in scores if score is not None and turn in (None, score.turn))

    def _trial(self, cell: int) -> TrialRecord:
        index = self._index
        questions = self._questions
        row, condition, repetition = index.place(cell)
        place = (row, condition, repetition)
        answered = bool(index.answered[cell])
        if answered:
            answer = self._line(index.answers[cell], Answer)
        else:
            answer = None

        failed = questions.failures.get(cell)
        if failed is None:
            failure = None
        else:
            failure = self._line(failed[0], Failure)

        heard = next((trial for trial in index.open_trials.values() if trial.cell == cell), None)
        replies = () if heard is None or answered else (at for at, _ in heard.partial.replies[:200])
        events = [self._line(at, _ReplyEvent) for at in replies]
        attempts = [self._line(at, Attempt) for at in index.attempts_of(cell)[:20]]
        if answer is None:
            dollars, tokens = None, None
        else:
            # Dollars and tokens; None: some reply did not report them
            costs = [reply.dollars for reply in answer.replies if reply.dollars is not None]
            used = [reply.usage for reply in answer.replies if reply.usage is not None]
            total = sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in used)
            dollars = None
            if len(costs) == len(answer.replies):
                dollars = math.fsum(costs)
            tokens = total if used and len(used) == len(answer.replies) else None

        trial = (
            answer or failure or (self._line(index.answers[cell], AnswerLine) if answered else None)
        )
        if trial is None:
            raise Moved
        if answer is not None:
            scores = self.scores_of(cell)
        else:
            scores = ()

        return TrialRecord(
            n=cell,
            id=trial.trial,
            condition=condition,
            repetition=repetition,
            answer=answer,
            scores=scores,
            failure=failure,
            attempts=tuple(attempt for attempt in attempts if attempt is not None),
            heard=tuple(event.reply for event in events if event is not None),
            dollars=dollars,
            tokens=tokens,
            values={key: float(values[place]) for key, values in questions.values.items()},
            damaged=answer is None and answered,
        )

    def _line(self, at: int, kind: type[_Record]) -> _Record | None:
        """A record; None if the line is invalid. Raises Moved if there is no such line."""
        try:
            line = self._reader.line(at)
        except (BadRun, OSError) as error:
            raise Moved from error

        self._left -= len(line)
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
            return None
