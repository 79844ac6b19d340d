"""Fills tables from the journal, in a second pass after the index, which says what counts.

Rows go to files as they are made; only the index and the places of counting scores stay in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from io import BytesIO
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from karat import kinds
from karat.analysis.ledger import accounts, ledger_rows, outcome
from karat.analysis.use import expectations, is_reported, offered
from karat.index import LineReader, ScoreRows, read_index, trusted
from karat.journal import Attempt, RunFolder
from karat.journal.codec import decode
from karat.records import Answer, Failure, Sample, Score, Usage, recorded_seconds
from karat.tool_use import CalledTool, Offered, called_tool
from karat_query.sql import Filled
from karat_query.tables.columns import Runs, opened

if TYPE_CHECKING:
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
_TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
_BLOCK = 2**20  # bytes in which lines are counted at a time
_WHOLE = 2**63 - 1  # the largest integer in a column
_encode = msgspec.json.Encoder().encode

Row = dict[str, Any]
_Number = TypeVar("_Number", int, float)


def fill(
    runs: Runs,
    needed: Iterable[str],
    folder: Path,
    *,
    scorings: Mapping[str, str] | None = None,
    samples: Collection[str] | None = None,
) -> dict[str, Filled]:
    """Writes the needed tables of all runs into a folder, as JSON lines.

    `samples`: whose rows are enough; tables may have others. Raises BadRun for damaged runs.
    """
    with ExitStack() as stack:
        files = {name: stack.enter_context(_File(folder / f"{name}.jsonl")) for name in needed}
        for run in opened(runs) if files else ():
            for file in files.values():
                file.run = run.path.resolve().name
            with trusted(run):
                _Filling(run, files, scorings or {}, samples).fill()

        return {name: Filled(path=file.path, longest=file.longest) for name, file in files.items()}


class _File:
    """Writes one table's rows to disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = ""  # the run whose rows are being written
        self.longest = 0
        self._file = path.open("wb")

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, row: Mapping[str, object]) -> None:
        line = _encode({"run": self.run, **row})
        self.longest = max(self.longest, len(line))
        self._file.write(line + b"\n")


# event, cell, whether it ended the trial or its scoring
_Maker = Callable[..., Iterable[Mapping[str, object]]]


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
        if self._counts[place]:
            return self._rows.cells[place]
        return None


class _Filling:
    """Fills the tables of one run."""

    def __init__(
        self,
        run: RunFolder,
        files: Mapping[str, _File],
        scorings: Mapping[str, str],
        samples: Collection[str] | None,
    ) -> None:
        self._run, self.files = run, dict(files)
        self._kind = kinds.of(run.info.kind)
        self._tables_of_kind = {table.name for table in self._kind.tables}
        self._kept: dict[str, Sample] = {}  # for the tables of the kind
        self.index = index = read_index(run)
        self._conditions, self._samples = list(index.conditions), list(index.samples)
        self._shown = index.shown(scorings)
        self._ended = outcome(index, self._shown)
        # sample → question and golden of each turn
        self._turns: dict[str, tuple[tuple[str, str | None], ...]] = {}
        self._positions: dict[int, int] = {}  # sample → its position in the dataset
        self._cells = {
            at: cell
            for places in (index.failures, index.attempts)
            for at, cell, _ in places
            if cell >= 0
        }
        stages = {count.code: group.stage for group, count in index.groups.items()}
        # cell → where the failure that ended it, or its scoring, starts
        self._last_failure: dict[int | None, int] = {
            cell: at
            for at, cell, code in index.failures
            if cell >= 0 and (stages[code] == "score") == bool(index.answered[cell])
        }
        self._only: list[int] | None = None  # all cells of the samples that the run has
        if samples is not None:
            each = len(index.conditions) * index.repetitions
            self._only = []
            for row in sorted({index.samples[name] for name in samples if name in index.samples}):
                self._only += range(row * each, (row + 1) * each)

        scores = {key: index.scores[key] for key in self._shown.items() if key in index.scores}
        self._score_places: list[int] = []  # of the cells in `_only`
        self._scores: dict[tuple[str, str], Callable[[int], int | None]] = {}
        for key, rows in scores.items():
            if self._only is None:
                self._scores[key] = _CountingRows(rows).cell
                continue

            cells = {at: cell for cell in self._only for at in rows.places_of(cell)}
            self._scores[key] = cells.get
            self._score_places += cells

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
            for head in _MADE_OF.get(
                name, _MADE_OF_BY_A_KIND if name in self._tables_of_kind else ()
            ):
                written.setdefault(head, []).append((file, makers[name]))

        if self._only is None:
            lines = self._run.numbered_lines()
        else:
            lines = self._lines_of(self._only)

        for number, at, line in lines if written else ():
            tables = written.get(line[10:15])
            if tables is not None and line.startswith(b'{"event":"'):
                event = decode(line, path=str(self._run.path), number=number)
                assert isinstance(event, Answer | Score | Failure | Attempt)

                # The cell of the event at a byte; None for an answer or a score that does not
                # count
                if isinstance(event, Answer):
                    cell = self.index.cell(event.sample, event.condition, event.repetition)
                    cell = cell if cell is not None and self.index.answers[cell] == at else None
                elif isinstance(event, Score):
                    cell_at = self._scores.get((event.scorer, event.scoring))
                    cell = None if cell_at is None else cell_at(at)
                else:
                    cell = self._cells.get(at)

                if cell is not None or isinstance(event, Failure | Attempt):
                    place = {"trial": event.trial, **self._place(cell), "line": number}
                    for file, rows in tables:
                        for row in rows(event, cell, self._last_failure.get(cell) == at):
                            file.write({**place, **row})

        cells = range(self.index.planned) if self._only is None else self._only
        for cell in cells if "trials" in self.files else ():
            if not self.index.answered[cell] and cell not in self._last_failure:
                self.files["trials"].write({**self._place(cell), **self._planned(cell)})

        for row in (
            ledger_rows(*accounts(self.index, self._ended)) if "ledger" in self.files else ()
        ):
            self.files["ledger"].write(row)

    def _lines_of(self, cells: Iterable[int]) -> Iterator[tuple[int, int, bytes]]:
        """The lines that these cells, and failures outside the plan, are made of, as
        `numbered_lines` gives them.
        """
        index, wanted = self.index, set(cells)
        places = {index.answers[cell] for cell in wanted if index.answered[cell]}
        places.update(self._score_places)
        for lines in (index.failures, index.attempts):
            places.update(at for at, cell, _ in lines if cell < 0 or cell in wanted)

        number, read = 1, 0
        with (
            self._run.open_journal() or BytesIO() as file,
            self._run.open_journal() or BytesIO() as counted,
        ):
            reader = LineReader(self._run, file)
            for at in sorted(places):
                while read < at:
                    block = counted.read(min(at - read, _BLOCK))
                    read += len(block)
                    number += block.count(b"\n")

                yield number, at, reader.line(at)

    def _read_samples(self) -> None:
        of_kind = not self._tables_of_kind.isdisjoint(self.files)
        if not of_kind and not {"samples", "replies", "trials"} & self.files.keys():
            return
        for sample in self._run.samples():
            self._positions[self.index.samples[sample.id]] = sample.position
            if of_kind:
                self._kept[sample.id] = sample
            if "replies" in self.files:
                self._turns[sample.id] = tuple(
                    (turn.question, turn.golden) for turn in sample.turns
                )

            if "samples" in self.files:
                golden = []
                for turn in sample.turns:
                    if turn.golden is not None:
                        golden.append(turn.golden)

                row = {
                    "sample": sample.id,
                    "position": _whole(sample.position),
                    "turns": len(sample.turns),
                    "question": "\n\n".join(turn.question for turn in sample.turns),
                    "golden": "\n\n".join(golden) if golden else None,
                    "weight": sample.weight,
                    "metadata": _json(sample.metadata),
                }

                self.files["samples"].write(row)

    def _place(self, cell: int | None) -> Row:
        if cell is None:
            return {}
        row, condition, repetition = self.index.place(cell)
        return {
            "sample": self._samples[row],
            "condition": self._conditions[condition],
            "repetition": repetition,
        }

    def _planned(self, cell: int) -> Row:
        spared = self._ended.decided is not None and self._ended.decided[cell]
        if self.index.answered[cell]:
            answered = "scored"
        elif spared:
            answered = "decided"
        else:
            answered = "not_run"

        position = self._positions.get(self.index.place(cell)[0])
        return {"position": _whole(position), "outcome": self._ended.classes.get(cell, answered)}

    def _trials(self, event: Answer | Failure, cell: int | None, is_last: bool) -> Iterator[Row]:
        if isinstance(event, Failure):
            if cell is not None and is_last and not self.index.answered[cell]:
                yield {**self._planned(cell), "line": None}
            return

        assert cell is not None
        replies = event.replies
        times = [reply.milliseconds for reply in replies]
        dollars = _known(reply.dollars for reply in replies)
        used = {}
        for name in _TOKENS:
            used[name] = _known(_tokens(reply.usage, name) for reply in replies)
        yield {
            **self._planned(cell),
            "answer": event.text,
            "turns": len(replies),
            "tool_calls": sum(len(reply.tool_calls) for reply in replies),
            "attempts": _whole(event.attempts),
            # Older versions recorded the time it took to read the answer back.
            "seconds": recorded_seconds(times) if self.index.recorded else event.seconds,
            "started": event.started,
            "dollars": fsum(dollars) if dollars else None,
            "not_kept": "; ".join(event.workspace.left_out) or None
            if event.workspace is not None
            else None,
            **{name: _whole(sum(tokens)) if tokens else None for name, tokens in used.items()},
        }

    def _replies(self, answer: Answer, *_: object) -> Iterator[Row]:
        turns = self._turns.get(answer.sample, ())
        for turn, reply in enumerate(answer.replies):
            if turn < len(turns):
                question, golden = turns[turn]
            else:
                question, golden = (None, None)

            yield {
                "turn": turn,
                "question": question,
                "golden": golden,
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
            calls = []
            for tool, succeeded in all_calls:
                if tool.uses(part):
                    calls.append(succeeded)

            if reported:
                used = any(calls)
            else:
                used = None

            failed = len(calls) - sum(calls)
            yield {
                "kind": part.kind,
                "name": part.name,
                "used": used,
                "calls": len(calls),
                "failed_calls": failed,
            }

    @cached_property
    def _offered(self) -> dict[str, list[tuple[Offered, bool]]]:
        """For each condition, its offers, and whether their use would be reported."""
        parts = offered(self._run.widened_info()).items()
        found = {}
        for name, given in parts:
            found[name] = [(part, is_reported(self.index, part.kind)) for part in given]
        return found

    def _expected_tools(self, answer: Answer, *_: object) -> Iterator[Row]:
        row = self.index.samples[answer.sample]
        for scorer, expectation in self._expectations.items():
            if (tools := expectation.tools[row]) is not None:
                matched, others = expectation.choices(row, _calls(answer))
                for tool in sorted(tools | others):
                    called = tool in matched or tool in others
                    yield {
                        "scorer": scorer,
                        "tool": tool,
                        "expected": tool in tools,
                        "called": called,
                    }

    @cached_property
    def _expectations(self) -> dict[str, Expectation]:
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
            if value is None:
                number = None
            else:
                number = float(value)

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
            yield {
                **row,
                "attempt": _whole(event.n),
                "dollars": event.dollars,
                "seconds": event.seconds,
            }
            return

        place: Row = {}
        if cell is None:
            place = {
                "sample": event.sample,
                "condition": event.condition,
                "repetition": _whole(event.repetition),
            }

        ended = cell is not None and is_last and cell in self._ended.codes
        yield {**row, **place, "stands": ended, "scorer": event.scorer}

    def _rows_of_kind(
        self, table: str, record: Answer | Score, cell: int, is_last: bool
    ) -> Iterable[Mapping[str, object]]:
        del is_last
        sample = self._samples[self.index.place(cell)[0]]
        return self._kind.fill(table, self._kept[sample], record)


def _calls(answer: Answer) -> Iterator[tuple[CalledTool, bool]]:
    for call in (call for reply in answer.replies for call in reply.tool_calls):
        yield called_tool(call.tool, call.server, call.input), call.error is None


def _json(value: Mapping[str, Any]) -> str:
    return _encode(value).decode()


def _whole(value: int | None) -> int | None:
    """A count that fits into a column; karat writes no larger ones."""
    return value if value is None or -_WHOLE <= value <= _WHOLE else None


def _tokens(usage: Usage | None, name: str) -> int | None:
    if usage is not None:
        return _whole(getattr(usage, name))
    return None


def _known(values: Iterable[_Number | None]) -> list[_Number]:
    """The values; empty if one is not known."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    if len(known) == len(listed):
        return known
    return []
