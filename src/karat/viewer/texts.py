"""The words of a trial, by their place in the journal."""

from __future__ import annotations

import sqlite3
from typing import TypeVar

import msgspec

from karat.errors import BadRun
from karat.journal import Attempt, LineDamaged, LineMoved, RunFolder
from karat.records import Answer, Failure, Reply, Sample, Score
from karat.viewer import schema
from karat.viewer.filling import unpacked
from karat.viewer.index import LONGEST_LINE
from karat.viewer.queries import Place

__all__ = ["Moved", "Texts", "Told"]

_MOST_TRIALS = 60  # of one question on one page
_MOST_ROWS = 400  # scores of one trial
_MOST_BYTES = 32 * 2**20  # of all lines of a page, but for those of its first trial
_Record = TypeVar("_Record")


class Moved(Exception):
    """A line is not where the index says: the index is of another journal."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the journal says of one trial."""

    n: int
    id: str
    condition: int
    repetition: int
    answer: Answer | None
    scores: tuple[Score, ...]  # of the newest scorings
    failure: Failure | None
    attempts: tuple[Attempt, ...]  # that failed
    heard: tuple[Reply, ...]  # of a conversation without an answer: what was said before it broke
    dollars: float | None
    tokens: int | None
    damaged: bool = False  # whether there is an answer whose line cannot be read
    values: tuple[float, ...]  # of each metric, by its number in the index less one; NaN: none


class _Said(msgspec.Struct):
    reply: Reply


class _Row(msgspec.Struct, array_like=True):
    n: int
    id: str
    condition: int
    repetition: int
    answer_at: int | None
    answer_length: int | None
    failure_at: int | None
    failure_length: int | None
    dollars: float | None
    tokens: int | None
    vals: bytes | None


_TRIALS = (
    "SELECT n, id, condition, repetition, answer_at, answer_length, failure_at, failure_length, dollars, tokens, vals "
    "FROM trials WHERE"
)


class Texts:
    """Reads lines of one run; `latest`: the scoring of each scorer that is shown."""

    def __init__(self, run: RunFolder, base: sqlite3.Connection, latest: dict[str, str]) -> None:
        self._run, self._base, self._latest = run, base, latest
        self._left = _MOST_BYTES

    @property
    def spent(self) -> bool:
        """Whether this page has read so much that `scores_of` gives no more."""
        return self._left <= -_MOST_BYTES

    def sample(self, place: Place) -> Sample:
        """A question with its texts. Raises Moved, and BadRun where its line is none of karat's."""
        found = self._line("samples.jsonl", place.at, place.length, Sample)
        if found is None:
            raise BadRun(str(self._run.path), f"samples.jsonl is damaged at byte {place.at}")
        if found.id != place.id:
            raise Moved
        return found

    def trials(self, sample: int, *, first: int = 0) -> tuple[list[Told], int]:
        """The trials of a question, by repetition, from a place on; and how many there are in all. Raises Moved."""
        total: int = self._base.execute("SELECT count(*) FROM trials WHERE sample = ?", (sample,)).fetchone()[0]
        rows = self._base.execute(
            f"{_TRIALS} sample = ? ORDER BY repetition, condition LIMIT ? OFFSET ?", (sample, _MOST_TRIALS, first)
        ).fetchall()
        found: list[Told] = []
        for row in _typed(rows):
            if found and self._left < 0:
                break
            found.append(self._told(row))
        return found, total

    def trial(self, name: str) -> Told | None:
        """One trial by its id. Raises Moved."""
        rows = _typed(self._base.execute(f"{_TRIALS} id = ?", (name,)).fetchall())
        return self._told(rows[0]) if rows else None

    def sample_of(self, trial: int) -> Sample | None:
        """The question of a trial, by the trial's number in the index. Raises as `sample`."""
        found = schema.rows(
            self._base,
            "SELECT s.n, s.id, s.position, s.at, s.length FROM trials r JOIN samples s ON s.n = r.sample WHERE r.n = ?",
            (trial,), tuple[int, str, int, int, int],
        )  # fmt: skip
        places = (Place(n=n, id=id_, position=position, at=at, length=length) for n, id_, position, at, length in found)
        return next((self.sample(place) for place in places), None)

    def scores_of(self, trial: int, turn: int) -> tuple[Score, ...]:
        """The rows of one turn of a trial, by the trial's number in the index. Raises Moved."""
        return self._scores(trial, turn)

    def _told(self, row: _Row) -> Told:
        answer = self._record(row.answer_at, row.answer_length, Answer)
        failure = self._record(row.failure_at, row.failure_length, Failure)
        if any(one is not None and one.trial != row.id for one in (answer, failure)):
            raise Moved
        return Told(
            n=row.n,
            id=row.id,
            condition=row.condition,
            repetition=row.repetition,
            answer=answer,
            scores=self._scores(row.n) if answer is not None else (),
            failure=failure,
            attempts=self._attempts(row.id),
            heard=self._heard(row.id) if answer is None else (),
            dollars=row.dollars,
            tokens=row.tokens,
            values=tuple(unpacked(row.vals)),
            damaged=answer is None and row.answer_at is not None,
        )

    def _scores(self, trial: int, turn: int | None = None) -> tuple[Score, ...]:
        places = self._base.execute(
            "SELECT scorer, scoring, at, length FROM scores WHERE trial = ? AND ifnull(?, turn) = turn "
            "ORDER BY scorer, scoring, turn, judge, repeat LIMIT ?",
            (trial, turn, _MOST_ROWS),
        ).fetchall()
        return tuple(
            found
            for scorer, scoring, at, length in msgspec.convert(places, list[tuple[str, str, int, int]])
            if self._latest.get(scorer) == scoring and not self.spent
            if (found := self._line("journal.jsonl", at, length, Score)) is not None
        )

    def _attempts(self, trial: str) -> tuple[Attempt, ...]:
        rows = self._base.execute("SELECT at, length FROM attempts WHERE trial = ? ORDER BY n LIMIT 20", (trial,))
        places = msgspec.convert(rows.fetchall(), list[tuple[int, int]])
        found = (self._line("journal.jsonl", *place, Attempt) for place in places)
        return tuple(one for one in found if one is not None)

    def _heard(self, trial: str) -> tuple[Reply, ...]:
        rows = self._base.execute("SELECT at, length FROM heard WHERE trial = ? ORDER BY turn LIMIT 200", (trial,))
        places = msgspec.convert(rows.fetchall(), list[tuple[int, int]])
        found = (self._line("journal.jsonl", *place, _Said) for place in places)
        return tuple(one.reply for one in found if one is not None)

    def _record(self, at: int | None, length: int | None, kind: type[_Record]) -> _Record | None:
        return None if at is None or length is None else self._line("journal.jsonl", at, length, kind)

    def _line(self, file: str, at: int, length: int, kind: type[_Record]) -> _Record | None:
        """A record; None where the line is there, and none of karat's. Raises Moved where there is no such line."""
        if not 0 <= length <= LONGEST_LINE or not 0 <= at < 2**62:
            raise Moved
        self._left -= length
        try:
            return msgspec.json.decode(self._run.line(at, length, name=file), type=kind)
        except (LineMoved, BadRun, OSError) as error:
            raise Moved from error
        except (LineDamaged, msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
            return None


def _typed(rows: list[object]) -> list[_Row]:
    return msgspec.convert(rows, list[_Row])
