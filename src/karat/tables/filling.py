"""journal → rows of the tables, in a second pass behind that of the index, which says what counts.

Rows go to files as they are made; what is kept is the index, and where the scores that count begin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from math import fsum
from pathlib import Path
from typing import Any

import msgspec

from karat.analysis.ledger import accounts, ledger_rows, outcome
from karat.index import ScoreRows, read_index, trusted
from karat.journal import Attempt, Event, RunFolder
from karat.journal.codec import decode
from karat.records import Answer, Failure, Reply, Sample, Score, Usage, recorded_seconds
from karat.sql import Filled
from karat.tables.columns import TABLES

__all__ = ["Runs", "fill"]

_KINDS = {
    "trials": (b"answe", b"failu"),
    "replies": (b"answe",),
    "tool_calls": (b"answe",),
    "scores": (b"score",),
    "failures": (b"failu", b"attem"),
    "ledger": (),
    "samples": (),
}  # table → the lines that it is made of, by the five bytes that follow `{"event":"`
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_WHOLE = 2**63 - 1  # what a column holds
_encode = msgspec.json.Encoder().encode

Row = dict[str, Any]
Runs = RunFolder | Sequence[RunFolder]


def fill(
    runs: Runs, wanted: Collection[str], folder: Path, *, scorings: Mapping[str, str] | None = None
) -> dict[str, Filled]:
    """Writes the wanted tables of all runs into a folder, a file of JSON lines each. Raises BadRun for damaged runs."""
    with ExitStack() as stack:
        files = {name: stack.enter_context(_File(folder / f"{name}.jsonl")) for name in TABLES if name in wanted}
        for run in ((runs,) if isinstance(runs, RunFolder) else runs) if files else ():
            for file in files.values():
                file.run = run.path.resolve().name
            with trusted(run):
                _Filling(run, files, scorings or {}).fill()
        return {name: Filled(path=file.path, longest=file.longest) for name, file in files.items()}


class _File:
    """One table's rows, on their way to the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = ""  # whose rows come now
        self.longest = 0
        self._file = path.open("wb")

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, row: Row) -> None:
        line = _encode({"run": self.run, **row})
        self.longest = max(self.longest, len(line))
        self._file.write(line + b"\n")


class _CountingRows:
    """The rows of one scoring, met one after the other."""

    def __init__(self, rows: ScoreRows) -> None:
        self._rows, self._next, self._counts = rows, 0, bytearray(len(rows.at))
        for place in rows.counting().tolist():
            self._counts[place] = 1

    def cell(self, at: int) -> int | None:
        """The cell of the row that begins there; None where it does not count."""
        place = self._next
        if place == len(self._rows.at) or self._rows.at[place] != at:
            return None
        self._next += 1
        return self._rows.cells[place] if self._counts[place] else None


class _Filling:
    """One run, on its way into its tables."""

    def __init__(self, run: RunFolder, files: Mapping[str, _File], scorings: Mapping[str, str]) -> None:
        self._run, self._files = run, files
        self._index = index = read_index(run)
        self._conditions, self._samples = list(index.conditions), list(index.samples)
        self._shown = index.shown(scorings)
        self._ended = outcome(index, self._shown)
        self._turns: dict[str, tuple[tuple[str, str | None], ...]] = {}  # sample → question and golden of each turn
        self._positions: dict[int, int] = {}  # of samples in the dataset
        self._cells = {at: cell for places in (index.failures, index.attempts) for at, cell, _ in places if cell >= 0}
        stages = {count.code: group.stage for group, count in index.groups.items()}
        self._last_failure = {  # cell → where the failure that ended it, or its scoring, begins
            cell: at
            for at, cell, code in index.failures
            if cell >= 0 and (stages[code] == "score") == bool(index.answered[cell])
        }
        self._scores = {key: _CountingRows(index.scores[key]) for key in self._shown.items() if key in index.scores}

    def fill(self) -> None:
        if {"samples", "replies", "trials"} & self._files.keys():
            self._read_samples()
        handlers: dict[bytes, list[Callable[[int, int, Any], None]]] = {}
        for name in self._files:
            for kind in _KINDS[name]:
                handlers.setdefault(kind, []).append(getattr(self, f"_{name}_of_{kind.decode()}"))
        at = 0
        for number, line in enumerate(self._run.lines() if handlers else (), start=1):
            found = handlers.get(line[10:15])
            if found is not None and line.startswith(b'{"event":"'):
                event: Event = decode(line, path=str(self._run.path), number=number)
                for handle in found:
                    handle(number, at, event)
            at += len(line) + 1
        if "trials" in self._files:
            self._rest_of_trials()
        for row in ledger_rows(*accounts(self._index, self._ended)) if "ledger" in self._files else ():
            self._files["ledger"].write(row)

    def _read_samples(self) -> None:
        for sample in self._run.samples():
            self._positions[self._index.samples[sample.id]] = sample.position
            if "replies" in self._files:
                self._turns[sample.id] = tuple((turn.question, turn.golden) for turn in sample.turns)
            if "samples" in self._files:
                self._files["samples"].write(_sample_row(sample))

    def _place(self, cell: int) -> Row:
        row, condition, repetition = self._index.place(cell)
        return {"sample": self._samples[row], "condition": self._conditions[condition], "repetition": repetition}

    def _counted(self, at: int, answer: Answer) -> int | None:
        """The cell of an answer; None where it came after the one that counts."""
        cell = self._index.cell(answer.sample, answer.condition, answer.repetition)
        return cell if cell is not None and self._index.answers[cell] == at else None

    def _planned(self, cell: int) -> Row:
        answered = "scored" if self._index.answered[cell] else "not_run"
        position = self._positions.get(self._index.place(cell)[0])
        outcome = self._ended.classes.get(cell, answered)
        return {**self._place(cell), "position": _whole(position), "outcome": outcome}

    def _trials_of_answe(self, number: int, at: int, answer: Answer) -> None:
        cell = self._counted(at, answer)
        if cell is None:
            return
        replies = answer.replies
        self._files["trials"].write(
            {
                "trial": answer.trial,
                **self._planned(cell),
                "answer": answer.text,
                "turns": len(replies),
                "tool_calls": sum(len(reply.tool_calls) for reply in replies),
                "attempts": _whole(answer.attempts),
                "seconds": self._seconds(answer),
                "started": answer.started,
                "dollars": _sum([reply.dollars for reply in replies]),
                **{name: _total([_told(reply.usage, name) for reply in replies]) for name in _TOKENS},
                "line": number,
            }
        )

    def _seconds(self, answer: Answer) -> float | None:
        if self._index.recorded:  # runs of older versions have the time that it took to read the answer back
            return recorded_seconds(reply.milliseconds for reply in answer.replies)
        return answer.seconds

    def _trials_of_failu(self, number: int, at: int, failure: Failure) -> None:
        cell = self._cells.get(at)
        if cell is not None and self._last_failure.get(cell) == at and not self._index.answered[cell]:
            self._unanswered(cell, failure.trial)

    def _unanswered(self, cell: int, trial: str | None) -> None:
        self._files["trials"].write({"trial": trial, **self._planned(cell)})

    def _rest_of_trials(self) -> None:
        for cell in range(self._index.planned):
            if not self._index.answered[cell] and cell not in self._last_failure:
                self._unanswered(cell, None)

    def _replies_of_answe(self, number: int, at: int, answer: Answer) -> None:
        cell = self._counted(at, answer)
        if cell is None:
            return
        place = self._place(cell)
        turns = self._turns.get(answer.sample, ())
        for turn, reply in enumerate(answer.replies):
            question, golden = turns[turn] if turn < len(turns) else (None, None)
            asked = {"turn": turn, "question": question, "golden": golden}
            self._files["replies"].write({"trial": answer.trial, **place, **asked, **_reply_row(reply), "line": number})

    def _tool_calls_of_answe(self, number: int, at: int, answer: Answer) -> None:
        cell = self._counted(at, answer)
        if cell is None:
            return
        place = self._place(cell)
        for turn, reply in enumerate(answer.replies):
            for index, call in enumerate(reply.tool_calls):
                said = {
                    "server": call.server,
                    "tool": call.tool,
                    "input": _json(call.input),
                    "result": call.result,
                    "error": call.error,
                    "milliseconds": call.milliseconds,
                }
                self._files["tool_calls"].write(
                    {"trial": answer.trial, **place, "turn": turn, "call": index, **said, "line": number}
                )

    def _scores_of_score(self, number: int, at: int, score: Score) -> None:
        rows = self._scores.get((score.scorer, score.scoring))
        cell = rows.cell(at) if rows is not None else None
        if cell is None:
            return
        facts = {
            "scorer": score.scorer,
            "scoring": score.scoring,
            "turn": _whole(score.turn),
            "judge": score.judge,
            "repeat": _whole(score.repeat),
            "offline": score.offline,
            "claims": score.claims,
            "labels": _json(score.labels),
        }
        for metric, value in score.values.items():
            number_of = None if value is None else float(value)
            said = {"metric": metric, "value": number_of, "reason": score.reasons.get(metric)}
            self._files["scores"].write({"trial": score.trial, **self._place(cell), **facts, **said, "line": number})

    def _failures_of_failu(self, number: int, at: int, failure: Failure) -> None:
        cell = self._cells.get(at)
        place = (
            self._place(cell)
            if cell is not None
            else {"sample": failure.sample, "condition": failure.condition, "repetition": _whole(failure.repetition)}
        )
        ended = cell is not None and self._last_failure.get(cell) == at and cell in self._ended.codes
        self._files["failures"].write(
            {"trial": failure.trial, **place, **_failure_row(failure), "stands": ended, "scorer": failure.scorer,
             "line": number}
        )  # fmt: skip

    def _failures_of_attem(self, number: int, at: int, attempt: Attempt) -> None:
        cell = self._cells.get(at)
        place = self._place(cell) if cell is not None else {}
        spent = {"attempt": _whole(attempt.n), "dollars": attempt.dollars, "seconds": attempt.seconds}
        self._files["failures"].write(
            {"trial": attempt.trial, **place, **_failure_row(attempt), **spent, "stands": False, "line": number}
        )


def _sample_row(sample: Sample) -> Row:
    golden = [turn.golden for turn in sample.turns if turn.golden is not None]
    return {
        "sample": sample.id,
        "position": _whole(sample.position),
        "turns": len(sample.turns),
        "question": "\n\n".join(turn.question for turn in sample.turns),
        "golden": "\n\n".join(golden) if golden else None,
        "weight": sample.weight,
        "metadata": _json(sample.metadata),
    }


def _reply_row(reply: Reply) -> Row:
    return {
        "text": reply.text,
        "answer": reply.answer,
        "unit": reply.unit,
        "program": reply.program,
        "reasoning": reply.reasoning,
        "model": reply.model,
        "stop_reason": reply.stop_reason,
        "responses": _whole(reply.responses),
        "tool_calls": len(reply.tool_calls),
        "milliseconds": reply.milliseconds,
        "dollars": reply.dollars,
        **{name: _told(reply.usage, name) for name in _TOKENS},
    }


def _failure_row(failed: Failure | Attempt) -> Row:
    return {
        "stage": failed.stage,
        "class": failed.cls,
        "kind": failed.kind,
        "message": failed.message,
        "retriable": failed.retriable,
    }


def _json(value: Mapping[str, Any]) -> str:
    return _encode(value).decode()


def _whole(value: int | None) -> int | None:
    """A count that fits into a column; no run of karat's holds another."""
    return value if value is None or -_WHOLE <= value <= _WHOLE else None


def _told(usage: Usage | None, name: str) -> int | None:
    return _whole(getattr(usage, name)) if usage is not None else None


def _total(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return _whole(sum(known)) if known and len(known) == len(values) else None


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) if known and len(known) == len(values) else None
