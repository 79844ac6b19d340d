"""Fills tables from the journal, in a second pass after the index, which says what counts.

Rows go to files as they are made; only the index and the places of counting scores stay in memory.
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
}  # table → the lines it is made of, by the five bytes that follow `{"event":"`
_MADE_OF_BY_A_KIND = (b"answe", b"score")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_WHOLE = 2**63 - 1  # the largest integer in a column
_encode = msgspec.json.Encoder().encode

ARRAYS_FROM = 20_000
"""The number of planned trials from which loading numpy pays off."""

_PLACE_COLUMNS = frozenset({"run", "sample", "condition", "repetition"})
_TRIAL_COLUMNS = _PLACE_COLUMNS | {"position", "outcome"}
_SCORE_COLUMNS = _PLACE_COLUMNS | {"scorer", "scoring", "turn", "judge", "repeat", "metric", "value", "offline"}

Row = dict[str, Any]
ArrayColumns = dict[str, Callable[[], tuple["NDArray[Any]", Sequence[str] | None]]]
"""Column → a function for its numbers, or its codes and their texts; only one column is in memory at a time."""


def fill(
    runs: Runs,
    needed: Mapping[str, Collection[str]],
    folder: Path,
    *,
    scorings: Mapping[str, str] | None = None,
    arrays_from: int = ARRAYS_FROM,
) -> dict[str, Filled]:
    """Writes tables of all runs into a folder, as JSON lines. `needed`: table → columns to fill.

    If a run has `arrays_from` trials and the index holds all needed columns of a table, these are written as arrays
    and the journal is not read again. Raises BadRun for damaged runs.
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
    """Writes one table's rows to disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = ""  # the run whose rows are being written
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

    def add_arrays(self, columns: ArrayColumns, *, rows: int) -> None:
        """Adds rows, column by column."""
        import numpy as np

        saved = {}
        for name, column in columns.items():
            path = self.path.with_name(f"{self.path.stem}-{len(self.arrays)}-{name}.npy")
            values, texts = column()
            np.save(path, values if texts is None else values.astype(np.int32))
            saved[name] = ArrayColumn(path=path, texts=None if texts is None else tuple(texts))
        self.arrays.append(Arrays(rows=rows, columns=saved))


_Line = Answer | Score | Failure | Attempt
_Maker = Callable[..., Iterable[Mapping[str, object]]]  # event, cell, whether it ended the trial or its scoring


class _CountingRows:
    """The rows of one scoring, in the order in which they are met."""

    def __init__(self, rows: ScoreRows) -> None:
        self._rows, self._next, self._counts = rows, 0, bytearray(len(rows.at))
        for place in rows.counting().tolist():
            self._counts[place] = 1

    def cell(self, at: int) -> int | None:
        """The cell of the row that starts at `at`; None if the row does not count."""
        place = self._next
        if place == len(self._rows.at) or self._rows.at[place] != at:
            return None
        self._next += 1
        return self._rows.cells[place] if self._counts[place] else None


class _Filling:
    """Fills the tables of one run."""

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
        self._positions: dict[int, int] = {}  # sample → its position in the dataset
        self._cells = {at: cell for places in (index.failures, index.attempts) for at, cell, _ in places if cell >= 0}
        stages = {count.code: group.stage for group, count in index.groups.items()}
        self._last_failure: dict[int | None, int] = {  # cell → where the failure that ended it, or its scoring, starts
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
        """Writes the tables whose needed columns the index holds, and returns their names."""
        written = []
        for name, known, columns in (
            ("scores", _SCORE_COLUMNS, self._score_columns),
            ("trials", _TRIAL_COLUMNS, self._trial_columns),
        ):
            if name in needed and known.issuperset(needed[name]) and (arrays := columns()) is not None:
                wanted = {column: arrays[column] for column in needed[name]}
                self.files[name].add_arrays(wanted, rows=len(arrays["run"]()[0]))
                written.append(name)
        return written

    def _score_columns(self) -> ArrayColumns | None:
        """The scores in the journal's order; None if the index does not hold each value exactly."""
        import numpy as np

        shown = {key: self.index.scores[key] for key in self._shown.items() if key in self.index.scores}
        if not shown or not all(rows.exact for rows in shown.values()):
            return None
        parts = [(rows, np.sort(rows.counting()), len(rows.values)) for rows in shown.values()]
        order: NDArray[np.int64] | None = None  # the journal's order, if there are several scorings

        def in_order(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
            joined = np.concatenate(list(arrays))
            return joined if order is None else joined[order]

        def of_lines(name: str) -> NDArray[Any]:
            columns = [(getattr(rows, name), counting, width) for rows, counting, width in parts]
            return in_order(np.repeat(np.frombuffer(of, of.typecode)[at], width) for of, at, width in columns)

        def of_scorings(values: Iterable[object]) -> NDArray[Any]:
            sizes = [len(counting) * width for _, counting, width in parts]
            return in_order(np.full(size, value) for size, value in zip(sizes, values, strict=True))

        def turns() -> NDArray[Any]:
            codes = of_lines("turns")
            return np.where(codes >= 0, codes, np.nan)

        def judges() -> NDArray[Any]:
            codes = of_lines("judges")
            first = np.cumsum([0, *(len(rows.names) for rows in shown.values())])[:-1]
            return np.where(codes >= 0, codes + of_scorings(first), -1)

        def metrics() -> NDArray[Any]:
            ends = np.cumsum([width for _, _, width in parts])
            columns = zip(ends, parts, strict=True)
            return in_order(np.tile(np.arange(end - width, end), len(at)) for end, (_, at, width) in columns)

        def values() -> NDArray[Any]:
            scores = ([np.frombuffer(column)[at] for column in rows.values.values()] for rows, at, _ in parts)
            return in_order(np.column_stack(columns).ravel() for columns in scores)

        if len(parts) > 1:
            order = np.argsort(of_lines("at"), kind="stable")
        return self._place_columns(lambda: of_lines("cells")) | {
            "scorer": lambda: (of_scorings(range(len(shown))), [scorer for scorer, _ in shown]),
            "scoring": lambda: (of_scorings(range(len(shown))), [scoring for _, scoring in shown]),
            "turn": lambda: (turns(), None),
            "judge": lambda: (judges(), [name for rows in shown.values() for name in rows.names]),
            "repeat": lambda: (of_lines("repeats"), None),
            "offline": lambda: (of_scorings([rows.offline for rows in shown.values()]), None),
            "metric": lambda: (metrics(), [name for rows in shown.values() for name in rows.values]),
            "value": lambda: (values(), None),
        }

    def _trial_columns(self) -> ArrayColumns:
        """The trials in the order of their answers and last failures; then the missing ones, in the plan's order."""
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
        return self._place_columns(lambda: cells) | {
            "position": lambda: (positions, None),
            "outcome": lambda: (outcomes[cells], classes),
        }

    def _place_columns(self, cells: Callable[[], NDArray[np.int64]]) -> ArrayColumns:
        width, conditions = self.index.repetitions, len(self._conditions)
        return {
            "run": lambda: (cells() * 0, [self._run.path.resolve().name]),
            "sample": lambda: (cells() // (width * conditions), self._samples),
            "condition": lambda: (cells() // width % conditions, self._conditions),
            "repetition": lambda: (cells() % width, None),
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
        """The cell of the event at a byte; None for an answer or a score that does not count."""
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
        if self.index.recorded:  # older versions recorded the time it took to read the answer back
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
        all_calls = list(_calls(answer))
        for part, reported in self._offered.get(answer.condition, ()):
            calls = [succeeded for tool, succeeded in all_calls if tool.uses(part)]
            used = any(calls) if reported else None
            failed = len(calls) - sum(calls)
            yield {"kind": part.kind, "name": part.name, "used": used, "calls": len(calls), "failed_calls": failed}

    @cached_property
    def _offered(self) -> dict[str, list[tuple[Offered, bool]]]:
        """For each condition, its offers, and whether their use would be reported."""
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
    """A count that fits into a column; karat writes no larger ones."""
    return value if value is None or -_WHOLE <= value <= _WHOLE else None


def _tokens(usage: Usage | None, name: str) -> int | None:
    return _whole(getattr(usage, name)) if usage is not None else None


def _total(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return _whole(sum(known)) if known and len(known) == len(values) else None


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) if known and len(known) == len(values) else None
