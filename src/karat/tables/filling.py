"""journal → rows of the tables, in a second pass behind that of the index, which says what counts.

Rows go to files as they are made; what is kept is the index, and where the scores that count begin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from karat import kinds
from karat.analysis.ledger import accounts, ledger_rows, outcome
from karat.index import ScoreRows, read_index, trusted
from karat.journal import Attempt, RunFolder
from karat.journal.codec import decode
from karat.records import Answer, Failure, Reply, Sample, Score, Usage, recorded_seconds
from karat.sql import ArrayColumn, Arrays, Filled
from karat.tables.columns import Runs, opened
from karat.tool_use import CalledTool, Offered, called_tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from karat.analysis.use import Expectation

__all__ = ["ARRAYS_FROM", "fill"]

_MADE_OF = {
    "trials": (b"answe", b"failu"),
    "replies": (b"answe",),
    "tool_calls": (b"answe",),
    "contexts": (b"answe",),
    "expected_tools": (b"answe",),
    "scores": (b"score",),
    "failures": (b"failu", b"attem"),
    "ledger": (),
    "samples": (),
}  # table → the lines that it is made of, by the five bytes that follow `{"event":"`
_MADE_OF_BY_A_KIND = (b"answe", b"score")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_WHOLE = 2**63 - 1  # what a column holds
_encode = msgspec.json.Encoder().encode

ARRAYS_FROM = 20_000
"""Planned trials from which loading numpy pays."""

_PLACE_COLUMNS = frozenset({"run", "sample", "condition", "repetition"})
_TRIAL_COLUMNS = _PLACE_COLUMNS | {"position", "outcome"}
_SCORE_COLUMNS = _PLACE_COLUMNS | {"scorer", "scoring", "turn", "judge", "repeat", "metric", "value", "offline"}

Row = dict[str, Any]
ArrayColumns = dict[str, tuple["NDArray[Any]", Sequence[str] | None]]


def fill(
    runs: Runs,
    needed: Mapping[str, Collection[str]],
    folder: Path,
    *,
    scorings: Mapping[str, str] | None = None,
    arrays_from: int = ARRAYS_FROM,
) -> dict[str, Filled]:
    """Writes tables of all runs into a folder, as JSON lines. `needed`: table → columns that have to be filled.

    Where the index holds all of a table's needed columns, a run with `arrays_from` trials is written as arrays of
    these columns alone, and its journal is not read again. Raises BadRun for damaged runs.
    """
    with ExitStack() as stack:
        files = {name: stack.enter_context(_File(folder / f"{name}.jsonl")) for name in needed}
        for run in opened(runs) if files else ():
            for file in files.values():
                file.run = run.path.resolve().name
            with trusted(run):
                filling = _Filling(run, files, scorings or {})
                for name in filling.as_arrays(needed) if filling.index.planned >= arrays_from else ():
                    del filling.files[name]
                if filling.files:
                    filling.fill()
        return {
            name: Filled(path=file.path, longest=file.longest, arrays=tuple(file.arrays))
            for name, file in files.items()
        }


class _File:
    """One table's rows, on their way to the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = ""  # whose rows come now
        self.longest = 0
        self.arrays: list[Arrays] = []
        self._file = path.open("wb")

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, row: Mapping[str, object]) -> None:
        line = _encode({"run": self.run, **row})
        self.longest = max(self.longest, len(line))
        self._file.write(line + b"\n")

    def add_arrays(self, columns: Mapping[str, tuple[NDArray[Any], Sequence[str] | None]], *, rows: int) -> None:
        """Rows as columns; of each its numbers, or codes and the text of each."""
        import numpy as np

        saved = {}
        for name, (values, texts) in columns.items():
            path = self.path.with_name(f"{self.path.stem}-{len(self.arrays)}-{name}.npy")
            np.save(path, values)
            saved[name] = ArrayColumn(path=path, texts=None if texts is None else tuple(texts))
        self.arrays.append(Arrays(rows=rows, columns=saved))


_Line = Answer | Score | Failure | Attempt
_Maker = Callable[..., Iterable[Mapping[str, object]]]  # event, cell, whether it ended the trial or its scoring


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
        self._run, self.files = run, dict(files)
        self._kind = kinds.of(run.info.kind)
        self._tables_of_kind = {table.name for table in self._kind.tables}
        self._kept: dict[str, Sample] = {}  # for the tables of the kind
        self.index = index = read_index(run)
        self._conditions, self._samples = list(index.conditions), list(index.samples)
        self._shown = index.shown(scorings)
        self._ended = outcome(index, self._shown)
        self._turns: dict[str, tuple[tuple[str, str | None], ...]] = {}  # sample → question and golden of each turn
        self._positions: dict[int, int] = {}  # of samples in the dataset
        self._cells = {at: cell for places in (index.failures, index.attempts) for at, cell, _ in places if cell >= 0}
        stages = {count.code: group.stage for group, count in index.groups.items()}
        self._last_failure: dict[int | None, int] = {  # cell → where the failure that ended it, or its scoring, begins
            cell: at
            for at, cell, code in index.failures
            if cell >= 0 and (stages[code] == "score") == bool(index.answered[cell])
        }
        self._scores = {key: _CountingRows(index.scores[key]) for key in self._shown.items() if key in index.scores}

    def fill(self) -> None:
        self._read_samples()
        makers: dict[str, _Maker] = {
            "trials": self._trials,
            "replies": self._replies,
            "tool_calls": self._tool_calls,
            "contexts": self._contexts,
            "expected_tools": self._expected_tools,
            "scores": self._score_rows,
            "failures": self._failures,
            **{name: partial(self._rows_of_kind, name) for name in self._tables_of_kind},
        }
        written: dict[bytes, list[tuple[_File, _Maker]]] = {}
        for name, file in self.files.items():
            for head in _MADE_OF.get(name, _MADE_OF_BY_A_KIND if name in self._tables_of_kind else ()):
                written.setdefault(head, []).append((file, makers[name]))
        at = 0
        for number, line in enumerate(self._run.lines() if written else (), start=1):
            tables = written.get(line[10:15])
            if tables is not None and line.startswith(b'{"event":"'):
                event = decode(line, path=str(self._run.path), number=number)
                assert isinstance(event, Answer | Score | Failure | Attempt)
                cell = self._cell(event, at)
                if cell is not None or isinstance(event, Failure | Attempt):
                    place = {"trial": event.trial, **self._place(cell), "line": number}
                    for file, rows in tables:
                        for row in rows(event, cell, self._last_failure.get(cell) == at):
                            file.write({**place, **row})
            at += len(line) + 1
        if "trials" in self.files:
            self._rest_of_trials()
        for row in ledger_rows(*accounts(self.index, self._ended)) if "ledger" in self.files else ():
            self.files["ledger"].write(row)

    def as_arrays(self, needed: Mapping[str, Collection[str]]) -> list[str]:
        """Writes the tables whose needed columns the index holds, and gives their names."""
        written = []
        for name, known, columns in (
            ("scores", _SCORE_COLUMNS, self._score_columns),
            ("trials", _TRIAL_COLUMNS, self._trial_columns),
        ):
            if name in needed and known.issuperset(needed[name]) and (found := columns()) is not None:
                self.files[name].add_arrays(
                    {column: found[column] for column in needed[name]}, rows=len(found["run"][0])
                )
                written.append(name)
        return written

    def _score_columns(self) -> ArrayColumns | None:
        """In the journal's order; None where the index does not hold each value as the journal has it."""
        import numpy as np

        scorings = [(key, self.index.scores[key]) for key in self._shown.items() if key in self.index.scores]
        if not scorings or not all(rows.exact for _, rows in scorings):
            return None
        parts: dict[str, list[NDArray[Any]]] = {}
        judges: list[str] = []
        metrics: list[str] = []
        for number, (_, rows) in enumerate(scorings):
            counting = np.sort(rows.counting())
            count, width = len(counting), len(rows.values)
            judge = np.frombuffer(rows.judges, dtype=np.int32)[counting]
            turn = np.frombuffer(rows.turns, dtype=np.int32)[counting]
            for name, values in {
                "at": np.frombuffer(rows.at, dtype=np.int64)[counting],
                "cell": np.frombuffer(rows.cells, dtype=np.int64)[counting],
                "scorer": np.full(count, number),
                "turn": np.where(turn >= 0, turn, np.nan),
                "judge": np.where(judge >= 0, judge + len(judges), -1),
                "repeat": np.frombuffer(rows.repeats, dtype=np.int32)[counting],
                "offline": np.full(count, rows.offline),
            }.items():
                parts.setdefault(name, []).append(np.repeat(values, width))
            parts.setdefault("metric", []).append(np.tile(np.arange(len(metrics), len(metrics) + width), count))
            numbers = [np.frombuffer(column)[counting] for column in rows.values.values()]
            parts.setdefault("value", []).append(np.column_stack(numbers).ravel())
            judges += rows.names
            metrics += rows.values
        order = np.argsort(np.concatenate(parts.pop("at")), kind="stable")
        columns = {name: np.concatenate(part)[order] for name, part in parts.items()}
        texts = {
            "scorer": [scorer for (scorer, _), _ in scorings],
            "scoring": [scoring for (_, scoring), _ in scorings],
            "judge": judges,
            "metric": metrics,
        }
        place = self._place_columns(columns.pop("cell"))
        columns["scoring"] = columns["scorer"]
        return place | {name: (values, texts.get(name)) for name, values in columns.items()}

    def _trial_columns(self) -> ArrayColumns:
        """In the order of answers and last failures in the journal; then what is not there, in the plan's order."""
        import numpy as np

        answered = np.frombuffer(self.index.answered, dtype=np.uint8).astype(bool)
        at = np.where(answered, np.frombuffer(self.index.answers, dtype=np.int64), np.iinfo(np.int64).max)
        for cell, place in self._last_failure.items():
            at[cell] = at[cell] if answered[cell] else place
        cells = np.argsort(at, kind="stable")
        outcomes = np.where(answered, 0, 1)
        classes = list(dict.fromkeys(["scored", "not_run", *self._ended.classes.values()]))
        if self._ended.decided is not None:
            outcomes[np.frombuffer(self._ended.decided, dtype=np.uint8) > 0] = len(classes)
            classes.append("decided")
        for cell, name in self._ended.classes.items():
            outcomes[cell] = classes.index(name)
        positions = np.array(self.index.positions)[cells // (len(self._conditions) * self.index.repetitions)]
        return self._place_columns(cells) | {"position": (positions, None), "outcome": (outcomes[cells], classes)}

    def _place_columns(self, cells: NDArray[np.int64]) -> ArrayColumns:
        import numpy as np

        rest, repetitions = np.divmod(cells, self.index.repetitions)
        rows, conditions = np.divmod(rest, len(self._conditions))
        return {
            "run": (np.zeros(len(cells), dtype=np.int8), [self._run.path.resolve().name]),
            "sample": (rows, self._samples),
            "condition": (conditions, self._conditions),
            "repetition": (repetitions, None),
        }

    def _read_samples(self) -> None:
        of_kind = not self._tables_of_kind.isdisjoint(self.files)
        if not of_kind and not {"samples", "replies", "trials"} & self.files.keys():
            return
        for sample in self._run.samples():
            self._positions[self.index.samples[sample.id]] = sample.position
            if of_kind:
                self._kept[sample.id] = sample
            if "replies" in self.files:
                self._turns[sample.id] = tuple((turn.question, turn.golden) for turn in sample.turns)
            if "samples" in self.files:
                self.files["samples"].write(_sample_row(sample))

    def _place(self, cell: int | None) -> Row:
        if cell is None:
            return {}
        row, condition, repetition = self.index.place(cell)
        return {"sample": self._samples[row], "condition": self._conditions[condition], "repetition": repetition}

    def _cell(self, event: _Line, at: int) -> int | None:
        """The cell that the event at a byte belongs to; None for an answer or a score that does not count."""
        if isinstance(event, Answer):
            cell = self.index.cell(event.sample, event.condition, event.repetition)
            return cell if cell is not None and self.index.answers[cell] == at else None
        if isinstance(event, Score):
            rows = self._scores.get((event.scorer, event.scoring))
            return rows.cell(at) if rows is not None else None
        return self._cells.get(at)

    def _planned(self, cell: int) -> Row:
        spared = self._ended.decided is not None and self._ended.decided[cell]
        answered = "scored" if self.index.answered[cell] else "decided" if spared else "not_run"
        position = self._positions.get(self.index.place(cell)[0])
        return {"position": _whole(position), "outcome": self._ended.classes.get(cell, answered)}

    def _trials(self, event: Answer | Failure, cell: int | None, is_last: bool) -> Iterator[Row]:
        if isinstance(event, Failure):
            if cell is not None and is_last and not self.index.answered[cell]:
                yield {**self._planned(cell), "line": None}
            return
        assert cell is not None
        replies = event.replies
        yield {
            **self._planned(cell),
            "answer": event.text,
            "turns": len(replies),
            "tool_calls": sum(len(reply.tool_calls) for reply in replies),
            "attempts": _whole(event.attempts),
            "seconds": self._seconds(event),
            "started": event.started,
            "dollars": _sum([reply.dollars for reply in replies]),
            **{name: _total([_tokens(reply.usage, name) for reply in replies]) for name in _TOKENS},
        }

    def _seconds(self, answer: Answer) -> float | None:
        if self.index.recorded:  # runs of older versions have the time that it took to read the answer back
            return recorded_seconds(reply.milliseconds for reply in answer.replies)
        return answer.seconds

    def _rest_of_trials(self) -> None:
        for cell in range(self.index.planned):
            if not self.index.answered[cell] and cell not in self._last_failure:
                self.files["trials"].write({**self._place(cell), **self._planned(cell)})

    def _replies(self, answer: Answer, *_: object) -> Iterator[Row]:
        turns = self._turns.get(answer.sample, ())
        for turn, reply in enumerate(answer.replies):
            question, golden = turns[turn] if turn < len(turns) else (None, None)
            yield {"turn": turn, "question": question, "golden": golden, **_reply_row(reply)}

    def _tool_calls(self, answer: Answer, *_: object) -> Iterator[Row]:
        for turn, reply in enumerate(answer.replies):
            for index, call in enumerate(reply.tool_calls):
                yield {
                    "turn": turn,
                    "call": index,
                    "server": call.server,
                    "tool": call.tool,
                    "input": _json(call.input),
                    "result": call.result,
                    "error": call.error,
                    "milliseconds": call.milliseconds,
                }

    def _contexts(self, answer: Answer, *_: object) -> Iterator[Row]:
        made = list(_calls(answer))
        for part, reported in self._offered.get(answer.condition, ()):
            calls = [succeeded for tool, succeeded in made if tool.uses(part)]
            used = any(calls) if reported else None
            failed = len(calls) - sum(calls)
            yield {"kind": part.kind, "name": part.name, "used": used, "calls": len(calls), "failed_calls": failed}

    @cached_property
    def _offered(self) -> dict[str, list[tuple[Offered, bool]]]:
        """Of each condition what it offers, and whether it would be known that it is used."""
        from karat.analysis.use import is_reported, offered  # with numpy

        parts = offered(self._run.widened_info()).items()
        return {name: [(part, is_reported(self.index, part.kind)) for part in given] for name, given in parts}

    def _expected_tools(self, answer: Answer, *_: object) -> Iterator[Row]:
        row = self.index.samples[answer.sample]
        for scorer, expectation in self._expectations.items():
            if (tools := expectation.tools[row]) is not None:
                matched, others = expectation.choices(row, _calls(answer))
                for tool in sorted(tools | others):
                    called = tool in matched or tool in others
                    yield {"scorer": scorer, "tool": tool, "expected": tool in tools, "called": called}

    @cached_property
    def _expectations(self) -> dict[str, Expectation]:
        from karat.analysis.use import expectations  # with numpy

        return expectations(self._run, self.index, self._run.scorers(), self._shown)

    def _score_rows(self, score: Score, *_: object) -> Iterator[Row]:
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
            number = None if value is None else float(value)
            yield {**facts, "metric": metric, "value": number, "reason": score.reasons.get(metric)}

    def _failures(self, event: Failure | Attempt, cell: int | None, is_last: bool) -> Iterator[Row]:
        row = {
            "stage": event.stage,
            "class": event.cls,
            "kind": event.kind,
            "message": event.message,
            "retriable": event.retriable,
            "stands": False,
        }
        if isinstance(event, Attempt):
            yield {**row, "attempt": _whole(event.n), "dollars": event.dollars, "seconds": event.seconds}
            return
        place: Row = {}
        if cell is None:
            place = {"sample": event.sample, "condition": event.condition, "repetition": _whole(event.repetition)}
        ended = cell is not None and is_last and cell in self._ended.codes
        yield {**row, **place, "stands": ended, "scorer": event.scorer}

    def _rows_of_kind(
        self, table: str, record: Answer | Score, cell: int, is_last: bool
    ) -> Iterable[Mapping[str, object]]:
        del is_last
        sample = self._samples[self.index.place(cell)[0]]
        return self._kind.fill(table, self._kept[sample], record)


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
        **{name: _tokens(reply.usage, name) for name in _TOKENS},
    }


def _calls(answer: Answer) -> Iterator[tuple[CalledTool, bool]]:
    for call in (call for reply in answer.replies for call in reply.tool_calls):
        yield called_tool(call.tool, call.server, call.input), call.error is None


def _json(value: Mapping[str, Any]) -> str:
    return _encode(value).decode()


def _whole(value: int | None) -> int | None:
    """A count that fits into a column; no run of karat's holds another."""
    return value if value is None or -_WHOLE <= value <= _WHOLE else None


def _tokens(usage: Usage | None, name: str) -> int | None:
    return _whole(getattr(usage, name)) if usage is not None else None


def _total(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return _whole(sum(known)) if known and len(known) == len(values) else None


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) if known and len(known) == len(values) else None
