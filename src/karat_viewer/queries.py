"""Queries of a run's index for pages: filter, sort, count and search its questions, one page at a
time.
"""

from __future__ import annotations

import math
import re
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from io import BytesIO
from itertools import chain
from typing import BinaryIO, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from karat.analysis.compare_runs import NOISE
from karat.analysis.grids import Grid, grids
from karat.analysis.model import MetricInfo
from karat.analysis.units import question_means, units_of_grid
from karat.errors import BadRun, KaratError
from karat.formats import excerpt
from karat.index import FailureGroup, RunIndex, ScoreRows
from karat.journal import checksum_fault
from karat.kind_views import SampleList
from karat.kinds import of as kind_named
from karat.records import Sample

PAGE = 50
_SECONDS = 5.0  # of processor time for one search
_BLOCK = 8 * 2**20
_MOST_CHOICES = 100

Sort = Literal["position", "gap", "worst", "best", "variance"]
ORDERS = ("worst", "best", "largest")
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_Line = TypeVar("_Line")


class TooSlow(KaratError):
    """A search that takes too long on a large run."""

    def __init__(self) -> None:
        super().__init__(
            "this search takes too long on a run of this size: use a rarer word, or `karat query`"
        )


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which questions to list, and in which order."""

    sort: Sort = "position"
    metric: str = ""  # for the score range and for sorting; empty: the first
    condition: str = ""  # for range, failure, diagnosis and claims; empty: any
    low: float | None = None  # bound on a question's mean under a condition
    high: float | None = None
    label: str = ""  # name=value; =value: under any name
    failure: str = ""  # kind; "any"
    claims: bool = False  # only those with unverified claims
    text: str = ""
    # filters of this kind of dataset: parameter and value
    choices: tuple[tuple[str, str], ...] = ()


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One question under one condition."""

    condition: int
    mean: float  # NaN: no score
    sd: float  # NaN: fewer than two scores
    n: int
    answers: int
    failures: int


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One question in a list."""

    row: int
    id: str
    position: int
    question: str
    turns: int
    gap: float  # between conditions; NaN: fewer than two conditions
    cells: tuple[Cell, ...]


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The choices that filters offer."""

    conditions: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]  # value of `Filter.label`, and its text
    failures: tuple[str, ...]
    claims: bool
    more: dict[str, tuple[str, ...]]  # those of the kind of dataset, by parameter


class _Turn(msgspec.Struct, gc=False):
    question: str


class _SampleLine(msgspec.Struct, gc=False):
    turns: tuple[_Turn, ...]


class _Reply(msgspec.Struct, gc=False):
    text: str


class _AnswerLine(msgspec.Struct, gc=False):
    sample: str
    condition: str
    repetition: int
    replies: tuple[_Reply, ...]


_sample_line = msgspec.json.Decoder(_SampleLine).decode
_sample = msgspec.json.Decoder(Sample).decode
_answer = msgspec.json.Decoder(_AnswerLine).decode


class _Means:
    """Means of one metric: over repetitions per question and condition, then over conditions per
    question.
    """

    def __init__(self, grid: Grid) -> None:
        units = [units_of_grid(grid, column) for column in range(grid.values.shape[1])]
        # Each samples × conditions.
        self.mean: Floats = np.column_stack([side.means for side in units])
        self.sd: Floats = np.column_stack([side.sds for side in units])
        self.n: Ints = np.column_stack([side.answers for side in units])
        known = ~np.isnan(self.mean)
        self.low = np.where(known, self.mean, np.inf).min(axis=1)  # per question; ±inf: no score
        self.high = np.where(known, self.mean, -np.inf).max(axis=1)
        self.gap = np.where(known.sum(axis=1) > 1, self.high - self.low, np.nan)
        self.spread, _ = question_means(self.sd**2)

    def order(self, sort: Sort, *, lower: bool) -> Ints:
        """The questions that have a score, in order; ties in the dataset's order, or its
        reverse.
        """
        rows = np.arange(len(self.low))
        if sort in ("worst", "best"):
            if (sort == "worst") != lower:
                key = self.low
            else:
                key = -self.high
        else:
            key = -(self.gap if sort == "gap" else self.spread)

        order = np.lexsort((rows if key is self.low else -rows, key))  # NaN comes last
        ordered: Ints = order[np.isfinite(self.low[order])]
        return ordered


class Questions:
    """One state of a run's index, for pages to query."""

    def __init__(self, index: RunIndex, listing: SampleList, sample_places: array[int]) -> None:
        """`sample_places`: where each line of samples.jsonl starts, and where the last one ends."""
        self.index = index
        self.listing = listing
        self.end = index.end
        self.views = kind_named(index.run.info.kind).views()
        self._sample_places = sample_places
        self.shown = index.shown({})  # scorer → scoring
        self.scores = {
            name: index.scores[name, scoring]
            for name, scoring in self.shown.items()
            if (name, scoring) in index.scores
        }
        measured = grids(
            index, list(index.scorers.values()), {name: self.shown[name] for name in self.scores}
        )
        self.columns: tuple[MetricInfo, ...] = tuple(grid.info for grid in measured)
        self._grids = {grid.info.key: grid for grid in measured}
        # samples × conditions × repetitions
        self.values = {key: grid.values for key, grid in self._grids.items()}
        self.conditions = tuple(index.conditions)
        self.ids = tuple(index.samples)
        self._means: dict[str, _Means] = {}
        self._ordered: dict[Filter, Ints] = {}
        self._found: dict[tuple[tuple[str, ...], str], Flags] = {}  # by words and condition

    def column(self, key: str) -> MetricInfo | None:
        """The metric with this key, or else the first."""
        return next(
            (column for column in self.columns if column.key == key),
            self.columns[0] if self.columns else None,
        )

    def means(self, column: MetricInfo) -> _Means:
        if column.key not in self._means:
            self._means[column.key] = _Means(self._grids[column.key])
        return self._means[column.key]

    def rows(self, wanted: Filter) -> Ints:
        """The rows of the questions that match a filter, in its order. Raises TooSlow."""
        if wanted not in self._ordered:
            column = self.column(wanted.metric)
            if column is None or wanted.sort == "position":
                order = np.arange(len(self.index.samples))
            else:
                order = self.means(column).order(wanted.sort, lower=column.direction == "lower")

            for flags in self._masks(wanted, column):
                order = order[flags[order]]
            if len(self._ordered) >= 8:
                del self._ordered[next(iter(self._ordered))]
            self._ordered[wanted] = order

        return self._ordered[wanted]

    def listed(self, wanted: Filter, *, page: int = 0) -> list[Listed]:
        """One page of questions. Raises TooSlow."""
        column = self.column(wanted.metric)
        if column is None:
            means = None
        else:
            means = self.means(column)

        rows = self.rows(wanted)[page * PAGE : (page + 1) * PAGE].tolist()
        return [self.question(row, means) for row in rows]

    def question(self, row: int, means: _Means | None = None) -> Listed:
        """One question, with its numbers on one metric."""
        turns = _sample_line(self.sample_bytes(row)).turns
        if means is None:
            gap = math.nan
        else:
            gap = float(means.gap[row])

        cells: list[Cell] = []
        repetitions = self.index.repetitions
        for condition in range(len(self.conditions)):
            first = (row * len(self.conditions) + condition) * repetitions
            answers = self.index.answered.count(1, first, first + repetitions)
            failures = sum(cell in self.failures for cell in range(first, first + repetitions))
            if answers or failures:
                at = row, condition
                if means is None:
                    mean = math.nan
                    sd = math.nan
                    n = 0
                else:
                    mean = float(means.mean[at])
                    sd = float(means.sd[at])
                    n = int(means.n[at])

                cells.append(
                    Cell(
                        condition=condition,
                        mean=mean,
                        sd=sd,
                        n=n,
                        answers=answers,
                        failures=failures,
                    )
                )

        return Listed(
            row=row,
            id=self.ids[row],
            position=self.index.positions[row],
            question=excerpt(turns[0].question, 300) if turns else "",
            turns=len(turns),
            gap=gap,
            cells=tuple(cells),
        )

    def sample_bytes(self, row: int) -> bytes:
        """The sample's line. Raises BadRun if it no longer exists."""
        number = self.index.sample_lines[row]
        start = self._sample_places[number]
        end = self._sample_places[number + 1]
        with self.index.run.open_file("samples.jsonl") or BytesIO() as file:
            file.seek(start)
            line = file.read(end - start).removesuffix(b"\n")

        if checksum_fault(line, required=self.index.run.has_checksums) is not None:
            raise BadRun(str(self.index.run.path), f"samples.jsonl is damaged at byte {start}")
        return line

    @cached_property
    def choices(self) -> Choices:
        """The choices for filters of this run; long lists are cut."""
        pairs = sorted({pair for rows in self.scores.values() for pair in rows.labels})[
            :_MOST_CHOICES
        ]
        kinds = sorted({self._groups[code].kind for _, code in self.failures.values()})
        return Choices(
            conditions=self.conditions,
            labels=tuple(self.views.label_choices(pairs)),
            failures=tuple(kinds[:_MOST_CHOICES]),
            claims=any(rows.claims for rows in self.scores.values()),
            more={
                name: tuple(sorted(values)[: 3 * _MOST_CHOICES])
                for name, values in self.listing.choices.items()
                if len(values) > 1
            },
        )

    @cached_property
    def _groups(self) -> dict[int, FailureGroup]:
        return {count.code: group for group, count in self.index.groups.items()}

    @cached_property
    def failures(self) -> dict[int, tuple[int, int]]:
        """Cell → where its last failure starts, and its group's code; without failures that a retry
        fixed.
        """
        index = self.index
        last = {cell: (at, code) for at, cell, code in index.failures if cell >= 0}
        failures = {cell: failure for cell, failure in last.items() if not index.answered[cell]}
        later: dict[int, dict[str, int]] = {}  # for answered trials: scorer → its last row
        unscored = {code for code, group in self._groups.items() if group.stage == "score"}
        suspects = {
            cell for cell, (_, code) in last.items() if cell not in failures and code in unscored
        }
        for scorer, rows in self.scores.items() if suspects else ():
            for cell, at in zip(rows.cells, rows.at, strict=True):
                if cell in suspects:
                    later.setdefault(cell, {})[scorer] = at

        for cell in suspects:
            at, code = last[cell]
            failed = self._groups[code].scorer
            rows_at = later.get(cell, {})
            if failed is None:
                newest = max(rows_at.values(), default=-1)
            else:
                newest = rows_at.get(failed, -1)

            if newest < at:
                failures[cell] = last[cell]

        return failures

    def _masks(self, wanted: Filter, column: MetricInfo | None) -> Iterator[Flags]:
        """For each part of a filter, flags of the questions that match."""
        if wanted.condition:
            condition = self.index.conditions.get(wanted.condition, -1)
        else:
            condition = None

        if column is not None and (wanted.low is not None or wanted.high is not None):
            if wanted.low is None:
                low = -np.inf
            else:
                low = wanted.low
            high = np.inf if wanted.high is None else wanted.high
            mean = self.means(column).mean
            inside: Flags = (mean >= low) & (mean <= high)
            under_any: Flags = np.logical_or.reduce(inside, axis=1)
            yield (
                under_any
                if condition is None
                else inside[:, condition]
                if condition >= 0
                else self._none()
            )

        if wanted.failure:
            kinds = ((cell, self._groups[code].kind) for cell, (_, code) in self.failures.items())
            yield self._having(
                (cell for cell, kind in kinds if wanted.failure in ("any", kind)), condition
            )

        name, equals, value = wanted.label.partition("=")
        if equals:
            cells = (
                _counting_cells(rows, positions)
                for rows in self.scores.values()
                for (label, of), positions in rows.labels.items()
                if of == value and name in ("", label)
            )
            yield self._having(chain.from_iterable(cells), condition)

        if wanted.claims:
            cells = (_counting_cells(rows, rows.claims) for rows in self.scores.values())
            yield self._having(chain.from_iterable(cells), condition)

        for name, value in wanted.choices:
            flags = self._none()
            flags[self.listing.choices.get(name, {}).get(value, [])] = True
            yield flags

        if wanted.text:
            yield self.search(wanted.text, wanted.condition)

    def search(self, text: str, condition: str) -> Flags:
        """The questions that contain all words, or have an answer that does under the condition
        (empty: any).

        The result is cached. Needs no lock: it reads files, and parts of the index that never
        change. Raises TooSlow.
        """
        words = tuple(re.findall(r"[^\W_]+", text[:200].lower())[:10])
        if (words, condition) not in self._found:
            if condition:
                place = self.index.conditions.get(condition, -1)
            else:
                place = None

            if len(self._found) >= 8:
                del self._found[next(iter(self._found))]
            flags = self._none()
            flags[list(self._search(words, place) if words else range(len(flags)))] = True
            self._found[words, condition] = flags

        return self._found[words, condition]

    def _none(self) -> Flags:
        return np.zeros(len(self.index.samples), dtype=bool)

    def _having(self, cells: Iterable[int], condition: int | None) -> Flags:
        """The questions of these cells, or only of those under `condition`."""
        places = np.fromiter(cells, dtype=np.int64) // self.index.repetitions
        if condition is not None:
            places = places[places % len(self.conditions) == condition]
        flags = self._none()
        flags[places // len(self.conditions)] = True
        return flags

    def _search(self, words: Sequence[str], condition: int | None) -> Iterator[int]:
        """Rows of questions whose text, or one answer, contains all words; the last may be the
        start of a word.
        """
        patterns = [re.compile(rf"(?<![^\W_]){word}(?![^\W_])") for word in words[:-1]]
        patterns.append(re.compile(rf"(?<![^\W_]){words[-1]}"))
        rare = max(words, key=len)
        rare = rare if rare.isascii() else ""  # JSON can spell other characters in several ways
        index = self.index
        end = time.thread_time() + _SECONDS
        for _, sample in self._lines_with(
            rare,
            index.run.open_file("samples.jsonl"),
            b"{",
            _sample,
            end,
        ):
            texts = [
                sample.id,
                *(text for turn in sample.turns for text in (turn.question, turn.golden) if text),
            ]
            texts += self.views.searched_texts(sample)
            if sample.id in index.samples and _holds(texts, patterns):
                yield index.samples[sample.id]

        for at, answer in self._lines_with(
            rare,
            index.run.open_journal(),
            b'{"event":"answer"',
            _answer,
            end,
        ):
            cell = index.cell(answer.sample, answer.condition, answer.repetition)
            if cell is None or not index.answered[cell] or index.answers[cell] != at:
                continue
            row, of, _ = index.place(cell)
            if condition in (None, of) and _holds(
                [reply.text for reply in answer.replies], patterns
            ):
                yield row

    def _lines_with(
        self,
        word: str,
        lines: BinaryIO | None,
        beginning: bytes,
        decode: Callable[[bytes], _Line],
        end: float,
    ) -> Iterator[tuple[int, _Line]]:
        """Place and content of the lines of a file that contain a word. Raises TooSlow at `end`."""
        sought = word.encode()
        partial = b""
        place = 0
        with lines or BytesIO() as file:
            while block := file.read(_BLOCK):
                block = partial + block
                length = block.rfind(b"\n") + 1
                lowered = block[:length].lower()
                at = lowered.find(sought)
                while 0 <= at < length:
                    if time.thread_time() > end:
                        raise TooSlow
                    start = block.rfind(b"\n", 0, at) + 1
                    after = block.find(b"\n", at)
                    if block.startswith(beginning, start):
                        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
                            yield place + start, decode(block[start:after])

                    at = lowered.find(sought, after + 1)

                partial = block[length:]
                place += length


class Flips:
    """The questions for which two conditions, of one run or two, differ on a metric.

    Compares means over repetitions, for questions that have a number on both sides and the same id
    and content.
    """

    def __init__(
        self, sides: tuple[Questions, Questions], conditions: tuple[str, str], *, metric: str
    ) -> None:
        self._first, second = sides
        means = []
        for side, condition in zip(sides, conditions, strict=True):
            for column in side.columns:
                if column.key == metric:
                    means.append(side.means(column).mean[:, side.index.conditions[condition]])

        rows = others = np.arange(len(self._first.ids))
        if second is not self._first:
            a = self._first.index
            b = second.index
            both = ((row, b.samples[name]) for name, row in a.samples.items() if name in b.samples)
            same = []
            for row, other in both:
                if a.digests[row] == b.digests[other]:
                    same.append((row, other))

            rows, others = np.array(same, dtype=np.int64).reshape(-1, 2).T

        change = means[1][others] - means[0][rows]
        differing = np.abs(change) > NOISE
        self._rows = rows[differing]
        self._others = others[differing]
        self._change = change[differing]
        self._a = means[0][self._rows]
        self._b = means[1][self._others]
        self.up, self.down = int((self._change > 0).sum()), int((self._change < 0).sum())

    def page(
        self, number: int, *, order: str, lower: bool
    ) -> Iterator[tuple[int, int, Listed, tuple[float, float]]]:
        """Rows in both runs, question and means. `worst`: the largest losses of the second side
        come first.

        `lower`: whether lower is better.
        """
        if lower:
            gain = -self._change
        else:
            gain = self._change
        key = {"worst": gain, "best": -gain, "largest": -np.abs(gain)}[order]
        for at in np.lexsort((self._rows, key))[number * PAGE : (number + 1) * PAGE].tolist():
            row = int(self._rows[at])
            yield (
                row,
                int(self._others[at]),
                self._first.question(row),
                (float(self._a[at]), float(self._b[at])),
            )


def _counting_cells(rows: ScoreRows, positions: array[int]) -> list[int]:
    """The cells of those rows that count."""
    some = np.array(positions, dtype=np.int64)
    cells = np.frombuffer(rows.cells, dtype=np.int64)[some[np.isin(some, rows.counting())]]
    return [int(cell) for cell in cells]


def _holds(texts: list[str], patterns: list[re.Pattern[str]]) -> bool:
    text = "\n".join(texts).lower()
    return all(pattern.search(text) is not None for pattern in patterns)
