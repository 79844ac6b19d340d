"""Early stopping: what is compared, after how many questions a run looks, and what a look decides.

The runner and the report apply the same rule to the same numbers. The test itself is `karat.stats.sequential_look`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

from msgspec import UnsetType, structs

from karat import formats
from karat.analysis.model import Difference, MetricInfo, StopLook, Stopping
from karat.analysis.numbers import Estimate
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
"""Fewest questions with which the test decides anything."""

REPEATED = "repeated t"
"""The method of an interval that is valid at all looks at once."""

_MOST_LOOKS = 100
Pair = tuple[str, str]


def in_order(ids: Iterable[str], seed: int) -> list[str]:
    """The questions in the random order of a run that may stop. Leaving some out does not move the others."""
    return sorted(ids, key=lambda name: blake2b(f"{seed}\n{name}".encode("utf-8", "surrogatepass")).digest())


def order_digest(ids: Iterable[str]) -> str:
    """16 hex digits that identify questions in an order."""
    digest = blake2b(digest_size=8)
    for name in ids:
        data = name.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


class StoppingRule:
    """Which comparisons are decided, look by look.

    Several comparisons: Holm's adjustment of each one's smallest sequential p-value so far; equivalence and futility at
    alpha divided by their number. A condition is out once every comparison with it is decided.
    """

    def __init__(self, horizon: Horizon, metric: Metric, conditions: Sequence[str]) -> None:
        """Raises ValueError for a metric without a range."""
        low, high = metric.bounds
        if low is None or high is None or not low < high:
            raise ValueError(f"metric: must have a range, '{metric.name}' has none")
        self.horizon, self.decided = horizon, dict[Pair, Decided]()
        self._scale, self._direction = high - low, metric.direction
        self._columns = {name: column for column, name in enumerate(conditions)}
        self.pairs = [pair for pair in horizon.pairs if set(pair) <= self._columns.keys()]
        step = math.ceil(horizon.questions / _MOST_LOOKS)
        self._sizes = [*range(FIRST_LOOK, horizon.questions, step), horizon.questions]
        self._looks = 0
        self.least = dict.fromkeys(self.pairs, 1.0)  # smallest p-value of any look so far
        self._sign = dict.fromkeys(self.pairs, 0.0)  # sign of the difference at that look

    @property
    def next_look(self) -> float:
        """How many questions must end before the next look; infinite after the last one."""
        return self._sizes[self._looks] if self._looks < len(self._sizes) else math.inf

    @property
    def out(self) -> frozenset[str]:
        """Conditions whose comparisons are all decided."""
        waiting = {name for pair in self.pairs if pair not in self.decided for name in pair}
        return frozenset({name for pair in self.pairs for name in pair} - waiting)

    def restore(self, decided: Mapping[Pair, Decided]) -> None:
        """Adopts the decisions of earlier parts of the run."""
        for pair in self.pairs:
            if (decision := decided.get(pair)) is not None:
                self.decided[pair], self.least[pair] = decision, decision.p

    def look(self, means: Floats, ended: int, *, worst: Floats | None = None) -> list[Decided]:
        """The decisions of the looks that are due, in order.

        `means`: questions in order × conditions, NaN if there is no score; the first `ended` are complete. `worst`:
        the same, with each condition's lost trials at the metric's worst value; None: nothing was lost.
        """
        decisions: list[Decided] = []
        while self.next_look <= ended and len(self.decided) < len(self.pairs):
            decisions += self._decide(means, int(self.next_look), means if worst is None else worst)
            self._looks += 1
        return decisions

    def _decide(self, means: Floats, questions: int, worst: Floats) -> list[Decided]:
        alpha = self.horizon.alpha / len(self.pairs)
        waiting = [pair for pair in self.pairs if pair not in self.decided]
        looks = {pair: self.at(means, pair, questions, alpha=alpha) for pair in waiting}
        for pair, look in looks.items():
            p = self._with_losses(means, worst, pair, questions, look)
            if p < self.least[pair]:
                self.least[pair], self._sign[pair] = p, math.copysign(1.0, look.value)
        adjusted, decisions = self.adjusted(), list[Decided]()
        for pair, look in looks.items():
            verdict: Literal["better", "worse", "higher", "lower", "equivalent", "futile"]
            if adjusted[pair] <= self.horizon.alpha and self._sign[pair]:
                verdict = self._side(self._sign[pair])
            elif look.decision in ("equivalent", "futile"):
                verdict = look.decision
            else:
                continue
            before = self.out
            self.decided[pair] = Decided(
                a=pair[0], b=pair[1], verdict=verdict, questions=questions, n=look.n, value=look.value,
                p=self.least[pair],
            )  # fmt: skip
            self.decided[pair] = structs.replace(self.decided[pair], out=tuple(sorted(self.out - before)))
            decisions.append(self.decided[pair])
        return decisions

    def _with_losses(self, means: Floats, worst: Floats, pair: Pair, questions: int, look: SequentialLook) -> float:
        """The p-value of a look, or the larger one with the losses of the side that is ahead at their worst."""
        import numpy as np

        leads = (look.value > 0) == (self._direction != "lower")
        column = self._columns[pair[1] if leads else pair[0]]
        if worst is means or np.array_equal(worst[:, column], means[:, column], equal_nan=True):
            return look.p
        filled = means.copy()
        filled[:, column] = worst[:, column]
        other = self.at(filled, pair, questions, alpha=self.horizon.alpha / len(self.pairs))
        return max(look.p, other.p) if other.value * look.value > 0 else 1.0

    def _side(self, sign: float) -> Literal["better", "worse", "higher", "lower"]:
        if self._direction == "none":
            return "higher" if sign > 0 else "lower"
        return "better" if (sign > 0) == (self._direction == "higher") else "worse"

    def adjusted(self) -> dict[Pair, float]:
        """The smallest p-value of each comparison so far, after Holm's adjustment."""
        from karat.stats import adjust

        return dict(zip(self.pairs, adjust([self.least[pair] for pair in self.pairs]).tolist(), strict=True))

    def at(self, means: Floats, pair: Pair, questions: int, *, alpha: float) -> SequentialLook:
        """One look at a comparison, with the first `questions` of the order.

        Questions without a score under one condition are left out. The horizon of the last look is the number of
        questions that remain: its boundary is narrower than the planned one, so earlier looks were only more cautious.
        """
        from karat.analysis.units import subtracted
        from karat.stats import sequential_look

        a, b = (means[:questions, self._columns[name]] for name in pair)
        d = subtracted(a, b)
        last = questions >= self.horizon.questions
        return sequential_look(
            d, horizon=max(1, d.size) if last else self.horizon.questions, scale=self._scale, alpha=alpha,
            margin=self.horizon.margin, futility=self.horizon.futility,
        )  # fmt: skip


class RunLooks:
    """Applies the rule to a run's numbers; `decide` may be called at any time while the index follows the run."""

    def __init__(self, index: RunIndex, horizon: Horizon) -> None:
        """Raises ValueError if the run's scorers have no such metric with a range."""
        scorer = index.scorers.get(horizon.scoring)
        metric = next((metric for metric in scorer.metrics if metric.name == horizon.metric), None) if scorer else None
        if metric is None:
            raise ValueError(f"metric: no scorer of the run has '{horizon.metric}'")
        self._index, self._horizon = index, horizon
        self.rule = StoppingRule(horizon, metric, list(index.conditions))
        self.rule.restore(index.decisions)
        self._rows = [index.samples[name] for name in in_order(index.samples, horizon.seed)][: horizon.questions]
        self._ended = self._read = 0
        self._scored = bytearray(index.planned)

    def ended(self) -> int:
        """How many questions, from the start of the order, have all the scores they will get."""
        rows = self._index.scores.get((self._horizon.scorer, self._horizon.scoring))
        if rows is not None:
            for cell in rows.cells[self._read :]:
                self._scored[cell] = 1
            self._read = len(rows.cells)
        partial = rows.partial if rows is not None else {}
        out, width = self.rule.out, self._index.repetitions
        columns = [column for name, column in self._index.conditions.items() if name not in out]
        while self._ended < len(self._rows):
            first = self._rows[self._ended] * len(self._index.conditions)
            starts = ((first + column) * width for column in columns)
            cells = (cell for start in starts for cell in range(start, start + width))
            if not all((self._scored[cell] and cell not in partial) or self._failed(cell) for cell in cells):
                break
            self._ended += 1
        return self._ended

    def _failed(self, cell: int) -> bool:
        index, scorer = self._index, self._horizon.scorer
        return bool(index.failed[cell]) or any((cell, name) in index.score_failed for name in (scorer, None))

    def means(self) -> tuple[Floats, Floats]:
        """The mean of each question, in order, under each condition; NaN if there is no score.

        Then the same with each condition's lost trials at the metric's worst value.
        """
        import numpy as np

        from karat.analysis.grids import grids
        from karat.analysis.ledger import outcome
        from karat.analysis.units import losses_of, units_of_grid, with_losses_worst

        horizon, index = self._horizon, self._index
        all_grids = grids(index, tuple(index.scorers.values()), {horizon.scorer: horizon.scoring})
        grid = next((grid for grid in all_grids if grid.info.name == horizon.metric), None)
        if grid is None:
            nothing = np.full((len(self._rows), len(index.conditions)), np.nan)
            return nothing, nothing
        losses = losses_of(index, outcome(index, {horizon.scorer: horizon.scoring}))
        units = [units_of_grid(grid, column, losses) for column in range(len(index.conditions))]
        worst = [with_losses_worst(side, seen=(0.0, 0.0)) for side in units]  # the metric has a range
        of_units, of_worst = (np.column_stack([side.means[self._rows] for side in sides]) for sides in (units, worst))
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

    Each interval is valid at all looks at once, at `level`. A decided comparison is shown as of its look.
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
    adjusted, stop_looks = rule.adjusted(), []
    for pair in rule.pairs:
        decided = index.decisions.get(pair)
        questions = ended if decided is None else min(decided.questions, horizon.questions)
        look = rule.at(means, pair, questions, alpha=1 - level)
        stop_looks.append(
            StopLook(
                a=pair[0], b=pair[1], verdict=None if decided is None else decided.verdict, questions=questions,
                n=look.n, p=rule.least[pair], p_adjusted=adjusted[pair],
                estimate=Estimate(
                    value=_known(look.value), low=_known(look.low), high=_known(look.high), se=None, n=look.n,
                    level=level, method=REPEATED, reason=look.reason,
                ),
            )
        )  # fmt: skip
    return Stopping(
        metric=horizon.metric, scorer=horizon.scorer, scoring=horizon.scoring, alpha=horizon.alpha,
        margin=horizon.margin, futility=horizon.futility, horizon=horizon.questions, comparisons=tuple(stop_looks),
        out=tuple(name for name in index.conditions if name in index.out),
    )  # fmt: skip


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def look_of(stopping: Stopping | UnsetType | None, info: MetricInfo, a: str, b: str) -> StopLook | None:
    """The looks at two conditions on a metric; None if there was none."""
    if not isinstance(stopping, Stopping) or (info.name, info.scorer, info.scoring) != stopping.measured:
        return None
    return next((look for look in stopping.comparisons if {look.a, look.b} == {a, b}), None)


def adjusted_by(look: StopLook | None, difference: Difference, stopping: Stopping | None) -> Difference:
    """A comparison with the interval and the verdict of its looks; without looks unchanged."""
    if look is None or stopping is None:
        return difference
    estimate, sign = look.estimate, 1 if look.a == difference.a else -1
    if sign < 0:
        ends = [None if end is None else -end for end in (estimate.value, estimate.high, estimate.low)]
        estimate = structs.replace(estimate, value=ends[0], low=ends[1], high=ends[2])
    best = {"better": look.b, "worse": look.a}.get(look.verdict or "")
    words = _words(look, stopping)
    if look.verdict is None and difference.verdict.endswith(ONLY_AHEAD):
        words = difference.verdict
    return structs.replace(
        difference, estimate=estimate, p=look.p, p_adjusted=look.p_adjusted, n_pairs=look.n, winner=best,
        verdict=words, reason=estimate.reason,
    )  # fmt: skip


def _words(look: StopLook, stopping: Stopping) -> str:
    words = {
        "better": f"{look.b} is better",
        "worse": f"{look.a} is better",
        "higher": f"{look.b} is higher",
        "lower": f"{look.a} is higher",
        "equivalent": f"{EQUIVALENT}{formats.brief(stopping.margin or 0.0)}",
        "futile": "given up, not decided",
    }
    return words.get(look.verdict or "", "not decided" if look.questions >= stopping.horizon else "not decided yet")
