"""Journal lines → rows of the index, in one pass, with bounded memory.

Every transaction ends behind a whole line and notes how far it went, so that the next pass
goes on there, in this process or another one. What the journal tells twice counts as it does in
`karat.analysis`: the first answer of a trial, the last score at one place, whole scorings only.
"""

from __future__ import annotations

import math
import sqlite3
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from karat.formats import excerpt
from karat.index import trial_value
from karat.journal import LineDamaged, Resume, RunFolder, checksum_fault
from karat.viewer.lines import (
    AnswerLine,
    AttemptLine,
    FailureLine,
    ReplyLine,
    SampleLine,
    ScoreLine,
    TurnLine,
)
from karat.viewer.people import add_person

__all__ = ["MOST_METRICS", "Clash", "Filling", "packed", "unpacked"]

MOST_METRICS = 64
"""More are not indexed: a scorer that puts ids into metric names must not make every row wider."""

SEARCHED = 20_000
"""Characters of one text that the search knows."""

_REMEMBERED = 20_000  # trials, samples: rows that come together stand together
_WHOLE_NUMBERS = 2**63 - 1  # what a column holds
_MOST_LABELS = 64  # of one row: a task of a study asks for some twenty fields

_NEW_ANSWER = (
    "INSERT OR IGNORE INTO trials (id, answer_at, answer_length, seconds, dollars, tokens, calls, call_errors, "
    "attempts, sample, condition, repetition) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_NEW_ANSWERS = (
    "INSERT INTO trials (id, answer_at, answer_length, seconds, dollars, tokens, calls, call_errors, "
    "attempts, sample, condition, repetition, n, vals) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ANSWER = (
    "UPDATE OR IGNORE trials SET id = ?, answer_at = ?, answer_length = ?, seconds = ?, dollars = ?, tokens = ?, "
    "calls = ?, call_errors = ?, attempts = ?, failure_at = NULL, failure_length = NULL, stage = NULL, class = NULL, "
    "kind = NULL, scorer = NULL WHERE sample = ? AND condition = ? AND repetition = ?"
)
_UNANSWERED = "SELECT n FROM trials WHERE sample = ? AND condition = ? AND repetition = ? AND answer_at IS NULL"
_ANSWERED = "SELECT n, sample, vals, scorer FROM trials WHERE id = ? AND answer_at IS NOT NULL"
_NEW_FAILURE = (
    "INSERT OR IGNORE INTO trials (id, sample, condition, repetition, failure_at, failure_length, stage, class, kind, "
    "scorer) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_FAILURE = "UPDATE trials SET failure_at = ?, failure_length = ?, stage = ?, class = ?, kind = ?, scorer = ?"
_MENDED = (
    "UPDATE trials SET failure_at = NULL, failure_length = NULL, stage = NULL, class = NULL, kind = NULL, "
    "scorer = NULL WHERE n = ?"
)

_answer = msgspec.json.Decoder(AnswerLine).decode
_score = msgspec.json.Decoder(ScoreLine).decode
_failure = msgspec.json.Decoder(FailureLine).decode
_attempt = msgspec.json.Decoder(AttemptLine).decode
_turn = msgspec.json.Decoder(TurnLine).decode
_sample = msgspec.json.Decoder(SampleLine).decode
_resume = msgspec.json.Decoder(Resume).decode


class Clash(Exception):
    """Answers that were to be written together are not all of new trials: they must be looked at one by one."""


class _Trial:
    """A trial whose numbers are being gathered."""

    __slots__ = ("failed", "n", "sample", "vals", "written")

    def __init__(self, n: int, sample: int, vals: list[float], *, failed: str | None = None) -> None:
        self.n, self.sample, self.vals = n, sample, vals
        self.written = True
        self.failed = failed  # the scorer that failed: over once it gives scores; empty: nobody told which


class Filling:
    """What one pass remembers between lines. `base`: open for writing, inside a transaction."""

    def __init__(self, base: sqlite3.Connection, run: RunFolder, *, searchable: bool, began: int = 0) -> None:
        self.began = began  # byte of the journal
        self.one_by_one = False
        """Whether each answer is looked at by itself. Otherwise those of a batch are written together, which is
        quicker; Clash where one of them is not the first that is heard of its trial."""
        self._base, self._run, self._searchable = base, run, searchable
        self._studies = run.info.kind == "study"
        self._trials: dict[str, _Trial | None] = {}
        self._next = int(base.execute("SELECT ifnull(max(n), 0) + 1 FROM trials").fetchone()[0])
        self._new: list[tuple[_Trial, list[object]]] = []  # and what is told of it
        self._samples: dict[str, int | None] = {}
        self._conditions = {name: n for n, name in base.execute("SELECT n, name FROM conditions")}
        found = base.execute("SELECT scorer, scoring, name, n FROM metrics ORDER BY n")
        self._metrics = {(scorer, scoring, name): n for scorer, scoring, name, n in found}
        self._labelling = {name for (name,) in base.execute("SELECT DISTINCT scorer FROM labels LIMIT 1000")}
        self._hearing = base.execute("SELECT EXISTS (SELECT 1 FROM heard)").fetchone() == (1,)
        self._numbers: set[int] = set()  # metrics that were more than true or false
        self._changed: dict[int, _Trial] = {}
        self._mended: list[int] = []  # trials whose scorer has given scores after all
        self._scores: list[tuple[object, ...]] = []
        self._words: list[tuple[int, str]] = []
        # By the five bytes that follow `{"event":"`.
        self._handlers: dict[bytes, Callable[[bytes, int], None]] = {
            b"answe": self._add_answer,
            b"score": self._add_score,
            b"failu": self._add_failure,
            b"attem": self._add_attempt,
            b"reply": self._add_reply,
            b"resum": self._add_resume,
            b'end",': self._add_end,
        }
        self.latest: dict[str, str] = {}  # scorer → its newest scoring in these lines
        self.touched: set[int] = set()  # samples

    def add_sample(self, line: bytes, at: int) -> None:
        """A line of samples.jsonl."""
        sample = _sample(line)
        first = sample.turns[0].question if sample.turns else ""
        n: int = self._base.execute(
            "INSERT INTO samples (id, position, at, length, question, turns, digest) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET position=excluded.position, at=excluded.at, length=excluded.length, "
            "digest=excluded.digest RETURNING n",
            (
                sample.id,
                sample.position,
                at,
                len(line),
                excerpt(first, 300),
                len(sample.turns),
                (sample.content or sample.digest)[:100],
            ),
        ).fetchone()[0]
        texts = [sample.id, *(text for turn in sample.turns for text in (turn.question, turn.golden) if text)]
        if self._studies:
            texts[1:1] = add_person(self._base, n, line)  # before the tasks: those are cut where they are long
        if self._searchable:
            self._search(2 * n, texts)

    def add(self, lines: Iterable[bytes], at: int) -> int:
        """Lines of the journal, one behind the other from byte `at`; how many of them karat did not write.

        Those are passed over: a page still stands. Raises Clash.
        """
        damaged, handlers, required = 0, self._handlers, self._run.has_checksums
        for line in lines:
            handle = handlers.get(line[10:15])
            readable = line.startswith(b'{"event":"') and checksum_fault(line, required=required) is None
            if handle is not None and readable:
                try:
                    handle(line, at)
                except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError, LineDamaged):
                    readable = False
            damaged += not readable
            at += len(line) + 1
        return damaged

    def flush(self) -> None:
        """Writes what was gathered. Raises Clash."""
        base = self._base
        self._write_new()
        self._write_scores()
        changed = self._changed
        base.executemany(
            "UPDATE trials SET vals = ? WHERE n = ?", [(packed(one.vals) or None, n) for n, one in changed.items()]
        )
        base.executemany(_MENDED, [(n,) for n in self._mended])
        self.flush_words()
        base.executemany("UPDATE metrics SET numbers = 1 WHERE n = ?", [(n,) for n in self._numbers])
        self._changed, self._mended = {}, []
        self._numbers = set()

    def flush_words(self) -> None:
        """Writes the texts that the search knows; a row that it knows already keeps them."""
        if self._words:
            self._base.executemany("INSERT INTO words (rowid, said) VALUES (?, ?)", self._words)
        self._words = []

    def forget(self) -> None:
        """Bounds what is remembered. Only after `flush`."""
        if len(self._trials) > _REMEMBERED:
            self._trials = {}
        if len(self._samples) > _REMEMBERED:
            self._samples = {}

    def forget_samples(self) -> None:
        """Those that were not there may be there now."""
        self._samples = {}

    def _add_answer(self, line: bytes, at: int) -> None:
        answer = _answer(line)
        cell = self._cell(answer.sample, answer.condition, answer.repetition)
        if cell is None:
            return
        told: list[object] = [answer.trial, at, len(line), answer.seconds, *_spent(answer.replies)]
        told += (_fitting(answer.attempts), *cell)
        trial = self._one_more(told, cell) if self.one_by_one else self._another(cell[0], told)
        if trial is None:
            return
        if self._hearing:
            self._base.execute("DELETE FROM heard WHERE trial = ?", (answer.trial,))
        self._trials[answer.trial] = trial
        if self._searchable:
            self._search(2 * trial.n + 1, [reply.text for reply in answer.replies])

    def _another(self, sample: int, told: list[object]) -> _Trial:
        """A new trial, which is written with the others of the batch: `trials` itself refuses what is not new."""
        trial = _Trial(self._next, sample, [])
        trial.written = False
        self._next += 1
        self._new.append((trial, told))
        return trial

    def _one_more(self, told: list[object], cell: tuple[int, int, int]) -> _Trial | None:
        """The trial; None where it has an answer already, or another trial has its id."""
        made = self._base.execute(_NEW_ANSWER, told)
        if made.rowcount:
            n = made.lastrowid or 0
            self._next = n + 1
            return _Trial(n, cell[0], [])
        there = self._base.execute(_UNANSWERED, cell).fetchone()  # it had failed before
        if there is None or not self._base.execute(_ANSWER, told).rowcount:
            return None
        return _Trial(there[0], cell[0], [])

    def _write_new(self) -> None:
        if not self._new:
            return
        for trial, told in self._new:
            told.extend((trial.n, packed(trial.vals) or None))
            trial.written = True
        try:
            self._base.executemany(_NEW_ANSWERS, [told for _, told in self._new])
        except (sqlite3.IntegrityError, UnicodeError) as error:
            raise Clash from error
        self._new = []

    def _add_score(self, line: bytes, at: int) -> None:
        row = _score(line)
        self.latest[row.scorer] = row.scoring
        trial = self._trials.get(row.trial) or self._trial(row.trial)
        if trial is None:
            return
        turn = -1 if row.turn is None else _fitting(row.turn)
        rows, repeat = max(1, _fitting(row.rows)), _fitting(row.repeat)
        self._scores.append(
            (trial.n, row.scorer, row.scoring, turn, row.judge or "", repeat, rows, at, len(line), len(row.claims))
        )
        if row.labels or row.scorer in self._labelling:
            self._label(trial.n, row, turn)
        self._take(trial, row, self._gathered(trial, row) if rows > 1 else row.values)

    def _take(self, trial: _Trial, row: ScoreLine, found: Mapping[str, float | bool | None]) -> None:
        vals, known = trial.vals, False
        for name, value in found.items():
            known = known or (value is not None and value == value)
            n = self._metrics.get((row.scorer, row.scoring, name)) or self._metric(row.scorer, row.scoring, name)
            if n is None:
                continue
            said = row.values.get(name)
            if said is not None and said.__class__ is not bool:
                self._numbers.add(n)
            if len(vals) < n:
                vals.extend([math.nan] * (n - len(vals)))
            vals[n - 1] = math.nan if value is None else float(value)
        if known and trial.failed in ("", row.scorer):
            trial.failed = None
            self._mended.append(trial.n)
        if trial.written:
            self._changed[trial.n] = trial
        self.touched.add(trial.sample)

    def _gathered(self, trial: _Trial, row: ScoreLine) -> dict[str, float]:
        """The trial's numbers over all rows of a scoring; NaN while some are missing."""
        self._write_scores()
        rows = self._base.execute(
            "SELECT turn, judge, repeat, at, length FROM scores WHERE trial = ? AND scorer = ? AND scoring = ? "
            "ORDER BY turn, judge, repeat LIMIT 10000",
            (trial.n, row.scorer, row.scoring),
        ).fetchall()
        if len(rows) < row.rows:
            return dict.fromkeys(row.values, math.nan)
        return _averaged([(turn, judge, self._values(at, length)) for turn, judge, _, at, length in rows])

    def _values(self, at: int, length: int) -> dict[str, float | bool | None]:
        return _score(self._run.line(at, length)).values

    def _write_scores(self) -> None:
        self._base.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._scores)
        self._scores = []

    def _label(self, trial: int, row: ScoreLine, turn: int) -> None:
        self._labelling.add(row.scorer)
        place = (trial, row.scorer, turn)
        self._base.execute("DELETE FROM labels WHERE trial = ? AND scorer = ? AND turn = ?", place)
        for name, value in list(row.labels.items())[:_MOST_LABELS]:
            self._base.execute(
                "INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?)", (*place, name[:100], value[:200])
            )

    def _add_failure(self, line: bytes, at: int) -> None:
        failure = _failure(line)
        scorer = (failure.scorer or "") if failure.stage == "score" else None
        told = (at, len(line), failure.stage, failure.cls, failure.kind[:200], scorer)
        self._write_new()
        trial = self._trial(failure.trial)
        if trial is not None:
            if failure.stage == "score":
                trial.failed = scorer
                self._base.execute(f"{_FAILURE} WHERE n = ?", (*told, trial.n))
            return
        cell = self._cell(failure.sample, failure.condition, failure.repetition)
        if cell is not None:
            made = self._base.execute(_NEW_FAILURE, (failure.trial, *cell, *told))
            self._next = (made.lastrowid or 0) + 1 if made.rowcount else self._next
            self._base.execute(f"{_FAILURE} WHERE id = ? AND answer_at IS NULL", (*told, failure.trial))

    def _add_attempt(self, line: bytes, at: int) -> None:
        attempt = _attempt(line)
        self._base.execute("INSERT INTO attempts (trial, at, length) VALUES (?, ?, ?)", (attempt.trial, at, len(line)))

    def _add_reply(self, line: bytes, at: int) -> None:
        said = _turn(line)
        turn, self._hearing = _fitting(said.turn), True
        self._base.execute("DELETE FROM heard WHERE trial = ? AND turn >= ?", (said.trial, turn))
        self._base.execute("INSERT INTO heard VALUES (?, ?, ?, ?)", (said.trial, turn, at, len(line)))

    def _add_resume(self, line: bytes, at: int) -> None:
        resume = _resume(line)
        for name in resume.plan.conditions if resume.plan is not None else ():
            self.add_condition(name)
        for scorer in resume.scorers:
            self.latest[scorer.name] = scorer.scoring
        self._part("resume", line, at)

    def _add_end(self, line: bytes, at: int) -> None:
        self._part("end", line, at)

    def _part(self, event: str, line: bytes, at: int) -> None:
        self._base.execute("INSERT INTO parts (event, at, length) VALUES (?, ?, ?)", (event, at, len(line)))

    def add_condition(self, name: str) -> None:
        """A condition of the plan, in the plan's order."""
        if name not in self._conditions:
            n = self._conditions[name] = len(self._conditions)
            self._base.execute("INSERT INTO conditions VALUES (?, ?)", (n, name))

    def _cell(self, sample: str | None, condition: str | None, repetition: int | None) -> tuple[int, int, int] | None:
        if sample is None or condition is None or repetition is None or not 0 <= repetition <= 1_000_000:
            return None
        column = self._conditions.get(condition)
        if column is None:
            return None
        if sample not in self._samples:
            found = self._base.execute("SELECT n FROM samples WHERE id = ?", (sample,)).fetchone()
            self._samples[sample] = None if found is None else found[0]
        row = self._samples[sample]
        return None if row is None else (row, column, repetition)

    def _trial(self, name: str) -> _Trial | None:
        """The trial, if it has an answer."""
        if name not in self._trials:
            found = self._base.execute(_ANSWERED, (name,)).fetchone()
            n, sample, vals, failed = found or (0, 0, None, None)
            self._trials[name] = _Trial(n, sample, unpacked(vals), failed=failed) if found else None
        return self._trials[name]

    def _metric(self, scorer: str, scoring: str, name: str) -> int | None:
        key = (scorer, scoring, name)
        n = self._metrics.get(key)
        if n is None and len(self._metrics) < MOST_METRICS and len(name) <= 200:
            n = self._metrics[key] = len(self._metrics) + 1
            self._base.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, 0)", (n, *key))
        return n

    def _search(self, row: int, texts: Sequence[str]) -> None:
        said = "\n".join(texts)[:SEARCHED]
        self._words.append((row, said if said.isascii() else said.encode("utf-8", "replace").decode()))


def packed(values: list[float]) -> bytes:
    """Doubles, one behind the other."""
    return _PACKERS[len(values)](*values)


_PACKERS = [struct.Struct(f"<{n}d").pack for n in range(MOST_METRICS + 1)]


def unpacked(values: bytes | None) -> list[float]:
    """The other way round; nothing where there is nothing."""
    return [] if values is None else list(struct.unpack(f"<{len(values) // 8}d", values[: len(values) // 8 * 8]))


def _averaged(rows: list[tuple[int, str, dict[str, float | bool | None]]]) -> dict[str, float]:
    """Over the repeats of a judge, then over judges, then over turns; NaN where there is no number."""
    names = dict.fromkeys(name for _, _, values in rows for name in values)
    means = {name: trial_value((turn, judge, values.get(name)) for turn, judge, values in rows) for name in names}
    return {name: math.nan if mean is None else mean for name, mean in means.items()}


def _spent(replies: tuple[ReplyLine, ...]) -> tuple[float | None, int | None, int, int]:
    """Dollars, tokens, tool calls and how many of them failed. None: not told of every reply."""
    if len(replies) == 1 and not replies[0].tool_calls and replies[0].usage is None:  # what follows would say the same
        return replies[0].dollars, None, 0, 0
    dollars = [reply.dollars for reply in replies]
    used = [reply.usage for reply in replies]
    tokens = [(one.input_tokens or 0) + (one.output_tokens or 0) for one in used if one is not None]
    calls = [call for reply in replies for call in reply.tool_calls]
    known = [one for one in dollars if one is not None]
    return (
        math.fsum(known) if len(known) == len(dollars) else None,
        _fitting(sum(tokens)) if tokens and len(tokens) == len(used) else None,
        len(calls),
        sum(call.error is not None for call in calls),
    )


def _fitting(value: int) -> int:
    return value if -_WHOLE_NUMBERS <= value <= _WHOLE_NUMBERS else _WHOLE_NUMBERS if value > 0 else -_WHOLE_NUMBERS
