"""The main metric while scores arrive: sums per question, from which means and intervals are
computed when asked for.

The numbers equal those of a summary of the same scores for its first metric: the unit is the
question or, in a run over conversations, the turn, clustered by conversation. Adding a score loads
nothing; reading the means loads numpy.
"""

from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from collections.abc import Collection, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Literal

import msgspec

from karat import kinds, stats
from karat.analysis.model import MetricInfo
from karat.index import turn_values
from karat.journal import ScorerInfo
from karat.records import Metric, Sample, Score
from karat.sums import exact_sum

if TYPE_CHECKING:
    from karat.analysis.numbers import Estimate

LEVEL = 0.95
_ROOM = 1024  # questions for which room is made at once


class RunningMeans:
    """A Follower: the first metric of the first scorer, by condition."""

    def __init__(self) -> None:
        self.metric: Metric | None = None  # None: nothing is scored, or nothing yet
        self._scorer: ScorerInfo | None = None
        self._by_turn = False
        self._noun = "question"
        # metrics in which turns never reached count as wrong, as in the report
        self._rates: Collection[str] = ()
        self._rows: dict[str, list[Score]] = {}  # trial → its scores so far, until it is complete
        self._questions: dict[str, int] = {}  # sample → its place in the sums
        self._weights: array[float] = array("d")
        self._clusters: list[str | None] = []
        self._sums: defaultdict[str, _Sums] = defaultdict(_Sums)  # by condition
        self._only_flags = True  # every value so far was true or false
        self._lock = threading.Lock()  # a reader must not see half a trial

    def expects(self, scorer: ScorerInfo, kind: str) -> None:
        """Sets the scorer whose metric is followed."""
        self._scorer = scorer if kinds.of(kind).compared else None
        self._by_turn = kinds.of(kind).by_turn
        self._noun = kinds.of(kind).unit
        scoring = kinds.of(kind).turn_scoring(scorer, "")
        if scoring is not None:
            self._rates = scoring.rates
        else:
            self._rates = ()

    @property
    def noun(self) -> str:
        """The word for one of those over which a mean is taken."""
        return self._noun

    @property
    def unit(self) -> Literal["question", "turn"]:
        """The unit that counts once in a mean."""
        return "turn" if self._by_turn else "question"

    @property
    def kind(self) -> Literal["ordinal", "share", "number"] | None:
        """The kind of metric.

        One with only true and false values is a share, even if its scorer does not say so.
        """
        if self.metric is None:
            return None
        return "share" if self.metric.kind == "number" and self._only_flags else self.metric.kind

    def scored(self, score: Score) -> None:
        """Keeps a row until its trial is complete."""
        if self._scorer is not None and score.scoring == self._scorer.scoring:
            self._rows.setdefault(score.trial, []).append(score)

    def settled(self, trial: str, condition: str, sample: Sample, *, answered: bool) -> None:
        """Adds the result of the trial. Scores of an incomplete scoring do not count."""
        rows = self._rows.pop(trial, None)
        if rows is None and (answered or not self._by_turn):
            return
        # the first announced metric with a value, else the first by name
        if self.metric is None and rows:
            measured = {name for row in rows for name in row.values}
            if self._scorer is not None:
                announced = self._scorer.metrics
            else:
                announced = ()

            if measured:
                by_name = Metric(name=min(measured))
            else:
                by_name = None

            self.metric = next((metric for metric in announced if metric.name in measured), by_name)

        values = self._values(rows or ())
        with self._lock:
            place = self._questions.setdefault(sample.id, len(self._questions))
            if place == len(self._weights):
                self._weights.append(sample.weight)
                self._clusters.append(sample.cluster)

            sums = self._sums[condition]
            sums.reach(place)
            if not answered:
                sums.lost[place] += len(sample.turns)
            elif values:
                if not self._by_turn and len(values) > 1:
                    values = [exact_sum(values) / len(values)]
                sums.add(place, values)

    def _values(self, rows: Sequence[Score]) -> list[float]:
        """One number per turn: the mean over each judge's repeats, then over judges."""
        if self.metric is None:
            return []
        name = self.metric.name
        if len(rows) == 1 and rows[0].rows == 1:  # a shortcut for nearly all trials
            value = rows[0].values.get(name)
            if value is None or not isfinite(value):
                return []
            self._only_flags &= isinstance(value, bool)
            return [float(value)]

        newest = {(row.turn, row.judge, row.repeat): row.values.get(name) for row in rows}
        if len(newest) < max((row.rows for row in rows), default=0):
            return []
        known = {
            place: value for place, value in newest.items() if value is not None and isfinite(value)
        }
        self._only_flags &= all(isinstance(value, bool) for value in known.values())
        return turn_values((turn, judge, value) for (turn, judge, _), value in known.items())

    def estimates(self) -> dict[str, Estimate]:
        """Condition → mean and interval.

        Loads numpy; takes some milliseconds per million questions.
        """
        if self.metric is None:
            return {}
        import numpy as np

        from karat.analysis import estimates, units

        with self._lock:
            weights = array("d", self._weights)
            clusters = units.clusters_of(self._clusters)
            columns = {
                condition: sums.columns(len(weights)) for condition, sums in self._sums.items()
            }

        metric = self.metric
        kind = self.kind or metric.kind
        low, high = msgspec.structs.replace(metric, kind=kind).bounds
        scorer = self._scorer
        info = MetricInfo(
            key=metric.name,
            name=metric.name,
            scorer="" if scorer is None else scorer.name,
            scoring="" if scorer is None else scorer.scoring,
            low=low,
            high=high,
            direction=metric.direction,
            kind=kind,
            offline=False,
        )

        found = {}
        for name, arrays in columns.items():
            # Turns, clustered by conversation, or questions, which are not weighted
            totals, counts, squares, lost, weighed = map(np.frombuffer, (*arrays, weights))
            sums = None
            if self._by_turn:
                if info.name in self._rates:
                    counts = counts + lost
                sums = stats.Sums.of(totals, counts, squares=squares, weights=weighed)

            means = np.divide(totals, counts, out=np.full(counts.size, np.nan), where=counts > 0)
            spread = np.maximum(squares - counts * means**2, 0.0)
            unknown = np.full(counts.size, np.nan)
            side = units.Units(
                metric=info,
                keys=(),
                means=means,
                answers=counts.astype(np.int64),
                sds=np.sqrt(np.divide(spread, counts - 1, out=unknown, where=counts > 1)),
                planned=counts.astype(np.int64),
                lost={},
                clusters=clusters,
                sums=sums,
            )
            found[name] = estimates.estimated(units.mean(side, level=LEVEL), info.low, info.high)

        return found


class _Sums:
    """Sums for each question under one condition: over its trials, or over their turns."""

    __slots__ = ("counts", "lost", "squares", "totals")

    def __init__(self) -> None:
        self.totals: array[float] = array("d")
        self.counts: array[float] = array("d")
        self.squares: array[float] = array("d")
        self.lost: array[float] = array("d")  # turns of trials without an answer

    def reach(self, place: int) -> None:
        """Makes room for a question, and for more after it."""
        if place >= len(self.totals):
            room = bytes(8 * (place + _ROOM - len(self.totals)))
            for column in (self.totals, self.counts, self.squares, self.lost):
                column.frombytes(room)

    def add(self, place: int, values: Sequence[float]) -> None:
        self.counts[place] += len(values)
        for value in values:
            self.totals[place] += value
            self.squares[place] += value * value

    def columns(self, size: int) -> tuple[array[float], ...]:
        """Copies of totals, counts, squares and lost turns of the first `size` questions."""
        self.reach(size - 1)
        columns = (self.totals, self.counts, self.squares, self.lost)
        return tuple(column[:size] for column in columns)
