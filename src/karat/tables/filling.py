"""journal → rows of the tables, in one pass behind that of the summary, with bounded memory.

What counts is what counts in `karat.analysis`: the first answer of a trial, the last score at one
place, whole scorings only. Rows go to files as they are made; what is kept grows with the planned
trials, and with scores by some twenty bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from math import fsum
from pathlib import Path
from typing import Any

import msgspec

from karat.analysis import chosen_scorings, trusted
from karat.analysis.grids import Layout
from karat.analysis.ledger import accounts, ledger_rows, outcome
from karat.analysis.lines import answer_of, failure_of
from karat.analysis.reading import Reading, read
from karat.analysis.tallies import Rows
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


class _Filling:
    """One run, on its way into its tables."""

    def __init__(self, run: RunFolder, files: Mapping[str, _File], scorings: Mapping[str, str]) -> None:
        self._run, self._files = run, files
        self._reading: Reading = read(run)
        self._conditions = list(self._reading.conditions)
        self._samples = list(self._reading.samples)
        self._shown = chosen_scorings(self._reading, (*run.info.scorers, *run.scorers()), scorings)
        self._ended = outcome(self._reading, self._shown)
        self._turns: dict[str, tuple[tuple[str, str | None], ...]] = {}  # sample → question and golden of each turn
        self._positions: dict[int, int] = {}  # of samples in the dataset
        known = self._reading.trials
        self._trials = known if known is not None else {}  # trial → cell
        self._standing: dict[int, int] = {}  # cell → line of the failure that ended it
        self._answered = array("Q", bytes(8 * self._reading.planned))  # cell → line of the answer that counts; or 0
        self._at: dict[tuple[str, str], int] = {}  # (scorer, scoring) → how many of its rows were met
        self._kept: dict[tuple[str, str], bytearray] = {}  # … → which of them count

    def fill(self) -> None:
        if {"samples", "replies", "trials"} & self._files.keys():
            self._read_samples()
        if self._files.keys() - {
            "samples",
            "scores",
            "ledger",
        }:  # the summary's reading knows the trials that have scores
            self._find_places()
        handlers: dict[bytes, list[Callable[[int, Any], None]]] = {}
        for name in self._files:
            for kind in _KINDS[name]:
                handlers.setdefault(kind, []).append(getattr(self, f"_{name}_of_{kind.decode()}"))
        for number, line in enumerate(self._run.lines(), start=1):
            found = handlers.get(line[10:15])
            if found is not None and line.startswith(b'{"event":"'):
                event: Event = decode(line, path=str(self._run.path), number=number)
                for handle in found:
                    handle(number, event)
        if "trials" in self._files:
            self._rest_of_trials()
        for row in ledger_rows(*accounts(self._reading, self._ended)) if "ledger" in self._files else ():
            self._files["ledger"].write(row)

    def _read_samples(self) -> None:
        for sample in self._run.samples():
            self._positions[self._reading.samples[sample.id]] = sample.position
            if "replies" in self._files:
                self._turns[sample.id] = tuple((turn.question, turn.golden) for turn in sample.turns)
            if "samples" in self._files:
                self._files["samples"].write(_sample_row(sample))

    def _find_places(self) -> None:
        """Which trial an id means, which answer counts, which failure stands."""
        reading = self._reading
        for number, line in enumerate(self._run.lines(), start=1):
            kind = line[10:15]
            if kind == b"answe":
                answer = answer_of(line)
                cell = reading.cell(answer.sample, answer.condition, answer.repetition)
                if cell is not None and reading.answered[cell]:
                    self._trials.setdefault(answer.trial, cell)
                    self._answered[cell] = self._answered[cell] or number
            elif kind == b"failu":
                failure = failure_of(line)
                cell = reading.cell_of(failure)
                if cell is not None:
                    self._trials.setdefault(failure.trial, cell)
                    if (failure.stage == "score") == bool(reading.answered[cell]):
                        self._standing[cell] = number

    def _place(self, cell: int) -> Row:
        row, condition = divmod(cell // self._reading.repetitions, len(self._conditions))
        return {
            "sample": self._samples[row],
            "condition": self._conditions[condition],
            "repetition": cell % self._reading.repetitions,
        }

    def _counted(self, number: int, answer: Answer) -> int | None:
        """The cell of an answer; None where it came after the one that counts."""
        cell = self._trials.get(answer.trial)
        return cell if cell is not None and self._answered[cell] == number else None

    def _planned(self, cell: int) -> Row:
        answered = "scored" if self._reading.answered[cell] else "not_run"
        position = self._positions.get(cell // self._reading.repetitions // len(self._conditions))
        outcome = self._ended.classes.get(cell, answered)
        return {**self._place(cell), "position": _whole(position), "outcome": outcome}

    def _trials_of_answe(self, number: int, answer: Answer) -> None:
        cell = self._counted(number, answer)
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
        if self._reading.recorded:  # runs of older versions have the time that it took to read the answer back
            return recorded_seconds(reply.milliseconds for reply in answer.replies)
        return answer.seconds

    def _trials_of_failu(self, number: int, failure: Failure) -> None:
        cell = self._trials.get(failure.trial)
        if cell is not None and self._standing.get(cell) == number and not self._reading.answered[cell]:
            self._unanswered(cell, failure.trial)

    def _unanswered(self, cell: int, trial: str | None) -> None:
        self._files["trials"].write({"trial": trial, **self._planned(cell)})

    def _rest_of_trials(self) -> None:
        for cell in range(self._reading.planned):
            if not self._answered[cell] and cell not in self._standing:
                self._unanswered(cell, None)

    def _replies_of_answe(self, number: int, answer: Answer) -> None:
        cell = self._counted(number, answer)
        if cell is None:
            return
        place = self._place(cell)
        turns = self._turns.get(answer.sample, ())
        for turn, reply in enumerate(answer.replies):
            question, golden = turns[turn] if turn < len(turns) else (None, None)
            asked = {"turn": turn, "question": question, "golden": golden}
            self._files["replies"].write({"trial": answer.trial, **place, **asked, **_reply_row(reply), "line": number})

    def _tool_calls_of_answe(self, number: int, answer: Answer) -> None:
        cell = self._counted(number, answer)
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

    def _scores_of_score(self, number: int, score: Score) -> None:
        cell = self._trials.get(score.trial)
        if cell is None or not self._reading.answered[cell] or not self._lasts(score):
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

    def _lasts(self, score: Score) -> bool:
        """Whether a row of scores counts: of a shown scoring that is whole, and the last at its place."""
        key = score.scorer, score.scoring
        if self._shown.get(score.scorer) != score.scoring or key not in self._reading.scores:
            return False
        if key not in self._kept:
            self._kept[key] = _lasting(self._reading.scores[key])
        at = self._at[key] = self._at.get(key, -1) + 1
        kept = self._kept[key]
        return at < len(kept) and bool(kept[at])

    def _failures_of_failu(self, number: int, failure: Failure) -> None:
        cell = self._trials.get(failure.trial)
        place = (
            self._place(cell)
            if cell is not None
            else {"sample": failure.sample, "condition": failure.condition, "repetition": _whole(failure.repetition)}
        )
        ended = cell is not None and self._standing.get(cell) == number and cell in self._ended.codes
        self._files["failures"].write(
            {"trial": failure.trial, **place, **_failure_row(failure), "stands": ended, "scorer": failure.scorer,
             "line": number}
        )  # fmt: skip

    def _failures_of_attem(self, number: int, attempt: Attempt) -> None:
        cell = self._trials.get(attempt.trial)
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


def _lasting(rows: Rows) -> bytearray:
    """Which rows count, in the journal's order: 1 or 0."""
    kept = bytearray(len(rows.cells))
    for at in Layout(rows).order.tolist():
        kept[at] = 1
    return kept
