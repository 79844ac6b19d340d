"""Early stopping: what is compared, after how many questions a run looks, and what a look decides.

The runner and the report apply the same rule to the same numbers. The test itself is
`karat.stats.sequential_look`.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from msgspec import UnsetType, structs

from karat import formats, stats
from karat.analysis.ledger import outcome
from karat.analysis.model import Difference, MetricInfo, StopLook, Stopping
from karat.analysis.numbers import Estimate, from_fields, known
from karat.analysis.verdicts import EQUIVALENT, ONLY_AHEAD
from karat.index import RunIndex
from karat.journal import Decided, Horizon
from karat.records import Metric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from karat.stats import SequentialLook

    Floats = NDArray[np.float64]

FIRST_LOOK = 20
"""Fewest questions, or clusters, with which the test decides anything early."""

REPEATED = "repeated t"
"""The method of an interval that is valid at all looks at once."""

_MOST_LOOKS = 100
Pair = tuple[str, str]


def in_order(clusters: Mapping[str, str | None], seed: int) -> list[list[str]]:
    """The questions in the random order of a run that may stop, those of a cluster together.

    `clusters`: of each question; None: it shares nothing. Leaving some out moves only what is left
    of a cluster that then has one question.
    """

    def place(name: str) -> bytes:
        return blake2b(f"{seed}\n{name}".encode("utf-8", "surrogatepass")).digest()

    units: dict[object, list[str]] = {}
    for name in sorted(clusters, key=place):
        units.setdefault(clusters[name] or (name,), []).append(name)
    return sorted(
        units.values(), key=lambda unit: place((len(unit) > 1 and clusters[unit[0]]) or unit[0])
    )


def questions_in_order(index: RunIndex, horizon: Horizon) -> list[list[str]]:
    """The questions of a run in the order of its horizon, by what its looks count: clusters, or
    each by itself.
    """
    if horizon.clusters is not None:
        clusters = index.clusters
    else:
        clusters = [None] * len(index.samples)

    return in_order({name: clusters[row] for name, row in index.samples.items()}, horizon.seed)


def order_digest(ids: Iterable[str]) -> str:
    """16 hex digits that identify questions in an order."""
    digest = blake2b(digest_size=8)
    for name in ids:
        data = name.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)

    return digest.hexdigest()


class StoppingRule:
    """Which comparisons are decided, look by look.

    Several comparisons: Holm's adjustment of each one's smallest sequential p-value so far;
    equivalence and futility at alpha divided by their number. A condition is out once every
    comparison with it is decided.

    Where questions come in clusters, looks are at whole clusters, and each counts once, by the mean
    difference of its questions, whatever its size: that mean lies on the metric's scale, as the
    test needs.
    """

    def __init__(
        self,
        horizon: Horizon,
        metric: Metric,
        conditions: Sequence[str],
        *,
        sizes: Sequence[int] | None = None,
    ) -> None:
        """`sizes`: questions of each cluster, in order; None: one each.

        Raises ValueError without a range.
        """
        import numpy as np

        low, high = metric.bounds
        if low is None or high is None or not low < high:
            raise ValueError(f"metric: must have a range, '{metric.name}' has none")
        self.horizon = horizon
        self.decided = dict[Pair, Decided]()
        self._scale = high - low
        self._direction = metric.direction
        self._columns = {name: column for column, name in enumerate(conditions)}
        self.pairs = [pair for pair in horizon.pairs if set(pair) <= self._columns.keys()]
        sizes = sizes or [1] * horizon.questions
        self._clusters = np.repeat(np.arange(len(sizes)), sizes)
        ends = list(accumulate(sizes))
        self._planned = len(sizes)
        self._sizes = [*ends[FIRST_LOOK - 1 : -1 : math.ceil(len(sizes) / _MOST_LOOKS)], ends[-1]]
        self._looks = 0
        self.least = dict.fromkeys(self.pairs, 1.0)  # smallest p-value of any look so far
        self._sign = dict.fromkeys(self.pairs, 0.0)  # sign of the difference at that look

    @property
    def next_look(self) -> float:
        """How many questions must end before the next look; infinite after the last one."""
        if self._looks < len(self._sizes):
            return self._sizes[self._looks]
        return math.inf

    @property
    def out(self) -> frozenset[str]:
        """Conditions whose comparisons are all decided."""
        waiting = {name for pair in self.pairs if pair not in self.decided for name in pair}
        return frozenset({name for pair in self.pairs for name in pair} - waiting)

    def restore(self, decided: Mapping[Pair, Decided]) -> None:
        """Adopts the decisions of earlier parts of the run."""
        for pair in self.pairs:
            if (decision := decided.get(pair)) is not None:
                self.decided[pair] = decision
                self.least[pair] = decision.p

    def look(self, means: Floats, ended: int, *, worst: Floats | None = None) -> list[Decided]:
        """The decisions of the looks that are due, in order.

        `means`: questions in order × conditions, NaN if there is no score; the first `ended` are
        complete. `worst`: the same, with each condition's lost trials at the metric's worst value;
        None: nothing was lost.
        """
        decisions: list[Decided] = []
        while self.next_look <= ended and len(self.decided) < len(self.pairs):
            decisions += self._decide(means, int(self.next_look), means if worst is None else worst)
            self._looks += 1

        return decisions

    def _decide(self, means: Floats, questions: int, worst: Floats) -> list[Decided]:
        import numpy as np

        alpha = self.horizon.alpha / len(self.pairs)
        waiting = [pair for pair in self.pairs if pair not in self.decided]
        looks = {pair: self.at(means, pair, questions, alpha=alpha) for pair in waiting}
        for pair, look in looks.items():
            # The larger p-value, with the losses of the side that is ahead at their worst
            leads = (look.value > 0) == (self._direction != "lower")
            column = self._columns[pair[1] if leads else pair[0]]
            if worst is means or np.array_equal(worst[:, column], means[:, column], equal_nan=True):
                p = look.p
            else:
                other = self._at_worst(means, worst, pair, questions, column)
                if other.value * look.value > 0:
                    p = max(look.p, other.p)
                else:
                    p = 1.0

            if p < self.least[pair]:
                self.least[pair], self._sign[pair] = p, math.copysign(1.0, look.value)

        adjusted = self.adjusted()
        decisions = list[Decided]()
        for pair, look in looks.items():
            verdict: Literal["better", "worse", "higher", "lower", "equivalent", "futile"]
            if adjusted[pair] <= self.horizon.alpha and self._sign[pair]:
                sign = self._sign[pair]
                if self._direction == "none":
                    verdict = "higher" if sign > 0 else "lower"
                else:
                    verdict = "better" if (sign > 0) == (self._direction == "higher") else "worse"
            elif look.decision == "equivalent" and all(
                self._at_worst(means, worst, pair, questions, self._columns[name]).decision
                == "equivalent"
                for name in pair
            ):
                verdict = "equivalent"
            elif look.decision == "futile":
                verdict = "futile"
            else:
                continue

            before = self.out
            self.decided[pair] = Decided(
                a=pair[0],
                b=pair[1],
                verdict=verdict,
                questions=questions,
                clusters=self.clusters_in(questions),
                n=self.answered(means, pair, questions),
                value=look.value,
                p=self.least[pair],
            )
            self.decided[pair] = structs.replace(
                self.decided[pair], out=tuple(sorted(self.out - before))
            )
            decisions.append(self.decided[pair])

        return decisions

    def _at_worst(
        self,
        means: Floats,
        worst: Floats,
        pair: Pair,
        questions: int,
        column: int,
    ) -> SequentialLook:
        """A look with the losses of one side at their worst."""
        filled = means.copy()
        filled[:, column] = worst[:, column]
        return self.at(filled, pair, questions, alpha=self.horizon.alpha / len(self.pairs))

    def adjusted(self) -> dict[Pair, float]:
        """The smallest p-value of each comparison so far, after Holm's adjustment."""
        return dict(
            zip(
                self.pairs,
                stats.adjust([self.least[pair] for pair in self.pairs]).tolist(),
                strict=True,
            )
        )

    def at(self, means: Floats, pair: Pair, questions: int, *, alpha: float) -> SequentialLook:
        """One look at a comparison, with the first `questions` of the order.

        Questions without a score under one condition are left out. The horizon of the last look is
        the number that remains: its boundary is narrower than the planned one, so earlier looks
        were only more cautious.
        """
        from karat.analysis.units import subtracted  # with numpy, which few runs need here

        a, b = (means[:questions, self._columns[name]] for name in pair)
        d = subtracted(a, b, self._clusters[:questions])
        last = questions >= self.horizon.questions
        if last:
            horizon = max(1, d.size)
        else:
            horizon = self._planned

        return stats.sequential_look(
            d,
            horizon=horizon,
            scale=self._scale,
            alpha=alpha,
            margin=self.horizon.margin,
            futility=self.horizon.futility,
            unit="question" if self.horizon.clusters is None else "cluster",
        )

    def answered(self, means: Floats, pair: Pair, questions: int) -> int:
        """How many of the first `questions` have a score under both conditions."""
        import numpy as np

        columns = [self._columns[name] for name in pair]
        return int(np.isfinite(means[:questions, columns]).all(axis=1).sum())

    def clusters_in(self, questions: int) -> int | None:
        """How many clusters the first `questions` are of; None: none is declared."""
        if self.horizon.clusters is None:
            return None
        return len({*self._clusters[:questions].tolist()})


class RunLooks:
    """Applies the rule to a run's numbers; `decide` may be called at any time while the index
    follows the run.
    """

    def __init__(self, index: RunIndex, horizon: Horizon) -> None:
        """Raises ValueError if no scorer of the run has such a metric with a range, or its
        questions are others.
        """
        scorer = index.scorers.get(horizon.scoring)
        if scorer:
            metric = next(
                (metric for metric in scorer.metrics if metric.name == horizon.metric), None
            )
        else:
            metric = None

        if metric is None:
            raise ValueError(f"metric: no scorer of the run has '{horizon.metric}'")
        self._index, self._horizon = index, horizon
        self._units = [
            [index.samples[name] for name in unit] for unit in questions_in_order(index, horizon)
        ]
        self._rows = [row for unit in self._units for row in unit]
        sizes = [len(unit) for unit in self._units]
        if (len(self._rows), len(sizes)) != (
            horizon.questions,
            horizon.clusters or horizon.questions,
        ):
            raise ValueError("questions: the run has others than it planned")

        self.rule = StoppingRule(horizon, metric, list(index.conditions), sizes=sizes)
        self.rule.restore(index.decisions)
        self._ended = self._complete = self._read = 0
        self._scored = bytearray(index.planned)

    def ended(self) -> int:
        """How many questions, from the start of the order, have all the scores they will get; in
        whole clusters.
        """
        rows = self._index.scores.get((self._horizon.scorer, self._horizon.scoring))
        partial: Container[int] = ()
        if rows is not None:
            partial = rows.partial
            for cell in rows.cells[self._read :]:
                self._scored[cell] = 1
            self._read = len(rows.cells)

        index = self._index
        scorer = self._horizon.scorer
        out = self.rule.out
        width = index.repetitions
        columns = []
        for name, column in index.conditions.items():
            if name not in out:
                columns.append(column)

        for unit in self._units[self._complete :]:
            starts = (
                (row * len(index.conditions) + column) * width for row in unit for column in columns
            )
            cells = (cell for start in starts for cell in range(start, start + width))
            unscored = [cell for cell in cells if not self._scored[cell] or cell in partial]
            lost = index.score_failed
            if not all(
                index.failed[cell] or (cell, scorer) in lost or (cell, None) in lost
                for cell in unscored
            ):
                break

            self._complete += 1
            self._ended += len(unit)

        return self._ended

    def means(self) -> tuple[Floats, Floats]:
        """The mean of each question, in order, under each condition; NaN if there is no score.

        Then the same with each condition's lost trials at the metric's worst value.
        """
        import numpy as np

        from karat.analysis import grids, units

        horizon = self._horizon
        index = self._index
        shown = {horizon.scorer: horizon.scoring}
        all_grids = grids.grids(index, tuple(index.scorers.values()), shown)
        grid = next((grid for grid in all_grids if grid.info.name == horizon.metric), None)
        if grid is None:
            nothing = np.full((len(self._rows), len(index.conditions)), np.nan)
            return nothing, nothing

        losses = units.losses_of(index, outcome(index, shown))
        sides = [
            units.units_of_grid(grid, column, losses) for column in range(len(index.conditions))
        ]
        # the metric has a range
        worst = [units.with_losses_worst(side, seen=(0.0, 0.0)) for side in sides]
        of_units, of_worst = (
            np.column_stack([side.means[self._rows] for side in both]) for both in (sides, worst)
        )
        return of_units, of_worst

    def decide(self) -> list[Decided]:
        """The decisions of the looks that are due."""
        ended = self.ended()
        if self.rule.next_look > ended:
            return []
        means, worst = self.means()
        return self.rule.look(means, ended, worst=worst)


def stopping_of(index: RunIndex, *, level: float) -> Stopping | None:
    """The looks of a run; None for a run that asks every question.

    Each interval is valid at all looks at once, at `level`. A decided comparison is shown as of its
    look.
    """
    horizon = index.horizon
    if horizon is None:
        return None
    try:
        looks = RunLooks(index, horizon)
    except ValueError:  # not a run folder that karat wrote
        return None

    ended, (means, worst), rule = looks.ended(), looks.means(), looks.rule
    rule.look(means, ended, worst=worst)
    adjusted = rule.adjusted()
    stop_looks = []
    for pair in rule.pairs:
        decided = index.decisions.get(pair)
        if decided is None:
            questions = ended
        else:
            questions = min(decided.questions, horizon.questions)

        look = rule.at(means, pair, questions, alpha=1 - level)
        stop_looks.append(
            StopLook(
                a=pair[0],
                b=pair[1],
                verdict=None if decided is None else decided.verdict,
                questions=questions,
                clusters=rule.clusters_in(questions),
                n=rule.answered(means, pair, questions),
                p=rule.least[pair],
                p_adjusted=adjusted[pair],
                estimate=Estimate(
                    value=known(look.value),
                    low=known(look.low),
                    high=known(look.high),
                    se=None,
                    n=look.n,
                    level=level,
                    method=REPEATED,
                    reason=look.reason,
                ),
            )
        )

    return from_fields(
        Stopping,
        horizon,
        horizon=horizon.questions,
        comparisons=tuple(stop_looks),
        out=tuple(name for name in index.conditions if name in index.out),
    )


def look_of(
    stopping: Stopping | UnsetType | None,
    info: MetricInfo,
    a: str,
    b: str,
) -> StopLook | None:
    """The looks at two conditions on a metric; None if there was none."""
    if (
        not isinstance(stopping, Stopping)
        or (info.name, info.scorer, info.scoring) != stopping.measured
    ):
        return None

    return next((look for look in stopping.comparisons if {look.a, look.b} == {a, b}), None)


def adjusted_by(
    look: StopLook | None, difference: Difference, stopping: Stopping | None
) -> Difference:
    """A comparison with the interval and the verdict of its looks; without looks unchanged."""
    if look is None or stopping is None:
        return difference
    estimate = look.estimate
    sign = 1 if look.a == difference.a else -1
    if sign < 0:
        ends = [
            None if end is None else -end for end in (estimate.value, estimate.high, estimate.low)
        ]
        estimate = structs.replace(estimate, value=ends[0], low=ends[1], high=ends[2])

    best = {"better": look.b, "worse": look.a}.get(look.verdict or "")
    verdicts = {
        "better": f"{look.b} is better",
        "worse": f"{look.a} is better",
        "higher": f"{look.b} is higher",
        "lower": f"{look.a} is higher",
        "equivalent": f"{EQUIVALENT}{formats.brief(stopping.margin or 0.0)}",
        "futile": "given up, not decided",
    }
    words = verdicts.get(
        look.verdict or "",
        "not decided" if look.questions >= stopping.horizon else "not decided yet",
    )
    if look.verdict is None and difference.verdict.endswith(ONLY_AHEAD):
        words = difference.verdict
    return structs.replace(
        difference,
        estimate=estimate,
        p=look.p,
        p_adjusted=look.p_adjusted,
        n_pairs=look.n,
        winner=best,
        verdict=words,
        reason=estimate.reason,
        clusters=look.clusters,
    )
