"""The main metric while scores come: sums per question, of which means and intervals are made when somebody looks.

What stands here is what a summary of the same scores would say of its first metric: the unit is the question, in a
run over conversations the turn, clustered by conversation. Adding a score loads nothing; looking loads numpy.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Literal

import msgspec

from karat import kinds
from karat.index import turn_values
from karat.journal import ScorerInfo
from karat.records import Metric, Sample, Score

if TYPE_CHECKING:
    from karat.analysis.model import Estimate
    from karat.stats import Interval

__all__ = ["Running"]

LEVEL = 0.95


class Running:
    """A Follower: the first metric of the first scorer, by condition."""

    def __init__(self) -> None:
        self.metric: Metric | None = None  # None: nothing is scored, or nothing yet
        self._scorer: ScorerInfo | None = None
        self._by_turn = False
        self._rows: dict[str, list[Score]] = {}  # trial → what is there, until it is complete
        self._questions: dict[str, int] = {}  # sample → its place in the sums
        self._weights: array[float] = array("d")
        self._sums: dict[str, _Sums] = {}  # by condition
        self._only_flags = True  # no value was ever more than true or false
        self._lock = threading.Lock()  # who looks must not see half a trial

    def expects(self, scorer: ScorerInfo, kind: str) -> None:
        """Which scorer's metric is followed."""
        self._scorer = scorer if kinds.of(kind).compared else None
        self._by_turn = kinds.of(kind).by_turn

    @property
    def unit(self) -> Literal["question", "turn"]:
        """What counts once in a mean."""
        return "turn" if self._by_turn else "question"

    @property
    def kind(self) -> Literal["ordinal", "share", "number"] | None:
        """Of the metric. What was only ever true or false is a share, whether or not its scorer said so."""
        if self.metric is None:
            return None
        return "share" if self.metric.kind == "number" and self._only_flags else self.metric.kind

    def scored(self, score: Score) -> None:
        """Keeps a row until its trial is complete."""
        if self._scorer is not None and score.scoring == self._scorer.scoring:
            self._rows.setdefault(score.trial, []).append(score)

    def settled(self, trial: str, condition: str, sample: Sample, *, answered: bool) -> None:
        """Adds what the trial came to. Scores of a scoring that was cut short are none."""
        rows = self._rows.pop(trial, None)
        if rows is None and (answered or not self._by_turn):
            return
        if self.metric is None and rows:
            self._choose(rows)
        values = self._values(rows or ())
        with self._lock:
            place = self._questions.setdefault(sample.id, len(self._questions))
            if place == len(self._weights):
                self._weights.append(sample.weight)
            sums = self._sums.get(condition)
            if sums is None:
                sums = self._sums[condition] = _Sums()
            if place >= len(sums.totals):
                sums.reach(place)
            if not answered:
                sums.lost[place] += len(sample.turns)
            elif values:
                sums.add(place, values if self._by_turn else (_mean(values),))

    def _choose(self, rows: Sequence[Score]) -> None:
        """The first announced metric that is measured; of a scorer that keeps to nothing, the first by name."""
        measured = {name for row in rows for name in row.values}
        announced = () if self._scorer is None else self._scorer.metrics
        found = [metric for metric in announced if metric.name in measured]
        self.metric = found[0] if found else Metric(name=min(measured)) if measured else None

    def _values(self, rows: Sequence[Score]) -> list[float]:
        """One number a turn: the mean over the repeats of each judge, then over judges."""
        if self.metric is None:
            return []
        name = self.metric.name
        if len(rows) == 1 and rows[0].rows == 1:  # nearly always; what follows would say the same
            value = rows[0].values.get(name)
            if value is None or not isfinite(value):
                return []
            self._only_flags &= isinstance(value, bool)
            return [float(value)]
        newest = {(row.turn, row.judge, row.repeat): row.values.get(name) for row in rows}
        if len(newest) < max((row.rows for row in rows), default=0):
            return []
        known = {place: value for place, value in newest.items() if value is not None and isfinite(value)}
        self._only_flags &= all(isinstance(value, bool) for value in known.values())
        return turn_values((turn, judge, value) for (turn, judge, _), value in known.items())

    def estimates(self) -> dict[str, Estimate]:
        """Condition → mean and interval. Loads numpy, and takes some milliseconds a million questions."""
        if self.metric is None:
            return {}
        from karat.analysis.estimates import estimated

        metric, share = self.metric, self.kind == "share"
        low, high = msgspec.structs.replace(metric, kind="share").bounds if share else metric.bounds
        with self._lock:
            weights = array("d", self._weights)
            copies = {condition: sums.copy(len(weights)) for condition, sums in self._sums.items()}
        make = self._rate if self._by_turn else _mean_of_questions
        return {name: estimated(make(sums, weights, share=share), low, high) for name, sums in copies.items()}

    def _rate(self, sums: _Sums, weights: array[float], *, share: bool) -> Interval:
        """Over turns. Those that were never reached are wrong where the report counts them so."""
        import numpy as np

        from karat.analysis.grids import RATES
        from karat.stats import Sums, ratio_interval

        totals, counts, squares = (np.frombuffer(part) for part in (sums.totals, sums.counts, sums.squares))
        if self._scorer is not None and self.metric is not None:
            wrong = self._scorer.type == "numeric" and self.metric.name in RATES
            counts = counts + np.frombuffer(sums.lost) if wrong else counts
        found = Sums.of(totals, counts, squares=squares, weights=np.frombuffer(weights))
        return ratio_interval(found, share=share and np.array_equal(totals, squares), level=LEVEL).interval


class _Sums:
    """Of each question under one condition: of its trials, or of the turns of its trials."""

    __slots__ = ("counts", "lost", "squares", "totals")

    def __init__(self) -> None:
        self.totals: array[float] = array("d")
        self.counts: array[float] = array("d")
        self.squares: array[float] = array("d")
        self.lost: array[float] = array("d")  # turns of trials that have no answer

    def reach(self, place: int) -> None:
        """Makes room for a question."""
        missing = place + 1 - len(self.totals)
        if missing > 0:
            for column in (self.totals, self.counts, self.squares, self.lost):
                column.frombytes(bytes(8 * missing))

    def add(self, place: int, values: Sequence[float]) -> None:
        self.counts[place] += len(values)
        for value in values:
            self.totals[place] += value
            self.squares[place] += value * value

    def copy(self, size: int) -> _Sums:
        """The same, with room for so many questions."""
        made = _Sums()
        made.totals, made.counts = array("d", self.totals), array("d", self.counts)
        made.squares, made.lost = array("d", self.squares), array("d", self.lost)
        made.reach(size - 1)
        return made


def _mean(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else sum(values) / len(values)


def _mean_of_questions(sums: _Sums, weights: array[float], *, share: bool) -> Interval:  # noqa: ARG001 - as `_rate`: of single questions the weights play no part
    import numpy as np

    from karat.stats.intervals import t_interval
    from karat.stats.shares import share_of_means

    totals, counts, squares = (np.frombuffer(part) for part in (sums.totals, sums.counts, sums.squares))
    there = counts > 0
    means, answers = totals[there] / counts[there], int(counts.sum())
    if share and answers and np.array_equal(totals, squares):
        return share_of_means(means, observations=answers, level=LEVEL)
    return t_interval(means, level=LEVEL, observations=answers)
