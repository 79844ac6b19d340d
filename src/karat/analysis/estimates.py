"""Grids → results per condition and differences between conditions.

The statistics themselves are `karat.stats`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import UNSET, structs
from numpy.typing import NDArray

from karat.analysis.grids import Grid, TurnSums
from karat.analysis.means_columns import quantities
from karat.analysis.model import (
    Difference,
    Group,
    JudgeMean,
    MetricInfo,
    Reliability,
    Result,
    Stopping,
)
from karat.analysis.numbers import Estimate, Quantity, known
from karat.analysis.stopping import adjusted_by, look_of
from karat.analysis.units import Compared, Units, filled, mean, question_means
from karat.analysis.units import difference as compared
from karat.analysis.verdicts import (
    ALPHA,
    NO_DIFFERENCE,
    NO_VERDICT,
    NOT_TESTED,
    UNLIKE,
    ahead,
    choice_factor,
    few_clusters_factor,
    verdict,
    winner,
)
from karat.stats import adjust, between_sd, pooled_sd, proportion_interval
from karat.stats.results import Interval, PairedDifference

_NOISE = 1e-12  # relative to the scale: only rounding

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def results(
    grid: Grid,
    units: Mapping[str, Units],
    retried: Flags,
    *,
    level: float,
) -> list[Result]:
    """One result per condition.

    `units`: by condition. `retried`: samples × conditions × repetitions.
    """
    return [
        _result(grid, index, (name, side), retried[:, index, :], level=level)
        for index, (name, side) in enumerate(units.items())
    ]


def _result(
    grid: Grid,
    index: int,
    subject: tuple[str, Units],
    retried: Flags,
    *,
    level: float,
) -> Result:
    condition, units = subject
    info = grid.info
    values = grid.values[:, index, :]
    there = ~np.isnan(values)
    flat = values[there]
    questions = np.nonzero(there)[0]
    asked = units.planned > 0  # the others were never asked because the comparison was decided
    worst, best = _bounds(units, grid.turns, index, there)
    found = mean(units, level=level)
    if units.sums is None:
        distribution = _distribution(info, flat)
    else:
        # Turns by value, for metrics that are 0 or 1 for each turn
        if info.kind != "share" or not np.array_equal(units.sums.totals, units.sums.squares):
            distribution = None
        else:
            right = int(units.sums.totals.sum())
            distribution = {"0": int(units.sums.counts.sum()) - right, "1": right}

    if units.clusters is None:
        clusters = None
        design_effect = None
    else:
        clusters = len(set(units.clusters[units.there].tolist()))
        design_effect = known(found.design_effect)

    variance, cells = grid.judge_variance
    mine = cells // values.shape[1] % grid.values.shape[1] == index
    variance = variance[mine & ~np.isnan(variance)]
    judge_sd = Quantity(value=None, reason="each answer was judged once")
    if variance.size:
        judge_sd = Quantity(value=math.sqrt(float(variance.mean())))

    _, top = _worst_and_best(info)
    if top is None or info.kind == "number" or info.direction == "none":
        top_share = Quantity(value=None, reason="the metric has no steps with a best one")
    elif not flat.size:
        top_share = Quantity(value=None, reason="no values")
    else:
        top_share = Quantity(value=float(np.mean(np.isclose(flat, top, rtol=0, atol=1e-9))))

    by_judge = []
    for name, part in grid.by_judge.items():
        means, counts = question_means(part[:, index, :])
        means = means[counts > 0]
        by_judge.append(
            JudgeMean(
                judge=name,
                mean=float(means.mean()) if means.size else None,
                answers=int(counts.sum()),
            )
        )

    return Result(
        condition=condition,
        metric=info.key,
        mean=estimated(found, info.low, info.high),
        within_sd=_quantity(pooled_sd(flat, questions, level=level)),
        between_sd=_quantity(between_sd(flat, questions, level=level)),
        judge_sd=judge_sd,
        top_share=top_share,
        distribution=distribution,
        reliability=_reliability(info, values[asked], there[asked], level=level),
        n_questions=int(np.count_nonzero(units.answers)),
        n_answers=int(flat.size),
        n_missing=int(units.missing.sum()),
        worst=worst,
        best=best,
        first_attempt=_group(values[there & ~retried]),
        retried=_group(values[there & retried]),
        by_judge=tuple(by_judge),
        offline=info.offline,
        clusters=clusters,
        design_effect=design_effect,
        more=quantities(values) or UNSET,
    )


def estimated(
    interval: Interval | PairedDifference, least: float | None, most: float | None
) -> Estimate:
    """The estimate and its interval, cut to the range `least` to `most`, which a t interval and a
    corrected mean ignore.

    Numbers below rounding are 0. One question has no interval: nothing shows how much questions
    vary.
    """
    value = known(interval.value)
    low = known(interval.low)
    high = known(interval.high)
    span = 0.0
    for end in (least, most, value, low, high):
        if end is not None and math.isfinite(end):
            span = max(span, abs(end))

    if least is None:
        bottom = -math.inf
    else:
        bottom = least

    if most is None:
        top = math.inf
    else:
        top = most

    inside: list[float | None] = []
    cut = False
    for end in (value, low, high):
        if end is None:
            inside.append(None)
            continue
        if abs(end) <= _NOISE * span:
            end = 0.0  # noqa: PLW2901 - the same number, without its rounding error
        inside.append(min(max(end, bottom), top))
        cut = cut or inside[-1] != end

    alone = interval.n == 1 and low is not None
    if cut:
        method = f"{interval.method}, cut at the end of the scale"
    else:
        method = interval.method

    return Estimate(
        value=inside[0],
        low=None if alone else inside[1],
        high=None if alone else inside[2],
        se=known(interval.se),
        n=interval.n,
        level=interval.level,
        method=method,
        reason="only one question, so no interval" if alone else interval.reason,
    )


def _quantity(interval: Interval) -> Quantity:
    value = known(interval.value)
    return Quantity(value=value, reason=interval.reason if value is None else None)


def _distribution(info: MetricInfo, flat: Floats) -> dict[str, int] | None:
    """Answers by step of the scale; a mean over judges or repeats counts at the nearest step."""
    if info.kind == "number":
        return None
    steps = np.floor(flat + 0.5).astype(np.int64)
    counts = dict(
        zip(*(part.tolist() for part in np.unique(steps, return_counts=True)), strict=True)
    )
    if info.low is None or info.high is None or info.width > 100:
        return {str(step): count for step, count in counts.items()}
    scale = range(int(info.low), int(info.high) + 1)
    return {str(step): counts.get(step, 0) for step in sorted({*scale, *counts})}


def _reliability(info: MetricInfo, values: Floats, there: Flags, *, level: float) -> Reliability:
    k = values.shape[1]
    complete = there.all(axis=1)
    threshold = info.threshold
    incomplete = int(values.shape[0] - complete.sum())
    if threshold is None or not complete.any():
        reason = (
            "the metric has no threshold"
            if threshold is None
            else "no question has a score in every repetition"
        )
        return Reliability(
            value=None,
            low=None,
            high=None,
            k=k,
            threshold=threshold,
            questions=int(complete.sum()),
            incomplete=incomplete,
            level=level,
            method="wilson",
            reason=reason,
        )

    slack = 1e-9  # a mean over judges may miss the threshold only by rounding
    if info.direction == "lower":
        reached = values <= threshold + slack
    else:
        reached = values >= threshold - slack

    alone = int(complete.sum()) == 1
    wins = int(reached[complete].all(axis=1).sum())
    interval = proportion_interval(wins, int(complete.sum()), level=level)
    return Reliability(
        value=interval.value,
        low=None if alone else interval.low,
        high=None if alone else interval.high,
        k=k,
        threshold=threshold,
        questions=interval.n,
        incomplete=incomplete,
        level=level,
        method=interval.method,
        reason="only one question, so no interval" if alone else None,
    )


def _bounds(
    units: Units,
    turns: TurnSums | None,
    index: int,
    there: Flags,
) -> tuple[Quantity, Quantity]:
    """The mean if all that is missing had the worst, or the best, value of the scale: planned
    trials without a number, or all turns of the trials that are not `there`.

    A turn without a number in a trial that has some (no golden program, say) is not missing: it
    cannot have one.
    """
    missing = float(units.missing.sum())
    size = float(units.means.size)
    total = 0.0
    empty = "nothing was planned"
    if turns is not None:
        planned, counts, totals = (
            float(turns.weights @ np.where(where, part[:, index, :], 0.0).sum(axis=1))
            for part, where in (
                (turns.planned, ~there),
                (turns.counts, there),
                (turns.totals, there),
            )
        )
        missing = planned
        size = counts + planned
        total = totals
        empty = "there are no turns to score"

    bounds = []
    for end in _worst_and_best(units.metric):
        if not size:
            bound = Quantity(value=None, reason=empty)
        elif end is None and missing:
            bound = Quantity(value=None, reason="the metric is not bounded on this side")
        elif turns is not None:
            bound = Quantity(value=(total + missing * (end or 0.0)) / size)
        else:
            value = known(filled(units, units.missing, end or 0.0).plain_mean)
            bound = Quantity(value=value, reason="no values" if value is None else None)

        bounds.append(bound)

    worst, best = bounds
    return worst, best


def _worst_and_best(info: MetricInfo) -> tuple[float | None, float | None]:
    if info.direction == "lower":
        return (info.high, info.low)
    return (info.low, info.high)


def _group(flat: Floats) -> Group:
    return Group(mean=float(flat.mean()) if flat.size else None, answers=int(flat.size))


def differences(
    grids: Sequence[Grid],
    conditions: Sequence[str],
    units: Sequence[Mapping[str, Units]],
    *,
    level: float,
    baseline: int = 0,
    every: bool = False,
    stopping: Stopping | None = None,
) -> list[Difference]:
    """Comparisons of conditions on every metric; p-values adjusted (Holm) over all returned.

    The p-values of the best condition's comparisons, except that with the baseline, are first
    multiplied by `choice_factor`, those over few clusters by `few_clusters_factor`.

    `units`: of each grid, by condition. Each condition is compared with the one at `baseline`, and
    with the best on the metric; with `every` every pair. The baseline is always first in a pair,
    otherwise the order is the file's. `stopping`: the looks at comparisons that were examined
    before the end.
    """
    raw: list[tuple[Grid, str, str, Compared]] = []
    first = conditions[baseline]
    chosen_from = choice_factor(len(conditions))
    for grid, sides in zip(grids, units, strict=True):
        if grid.info.compared is False:
            continue
        # The condition with the best mean (the first, if tied); None if no direction is better
        means = {name: float(side.plain_mean) for name, side in sides.items() if side.there.any()}
        direction = next(iter(sides.values())).metric.direction
        if direction == "none" or not means:
            best = None
        elif direction == "higher":
            best = max(means, key=means.__getitem__)
        else:
            best = min(means, key=means.__getitem__)

        for a, b in combinations(dict.fromkeys((first, *sides)), 2):
            if every or first in (a, b) or best in (a, b):
                raw.append((grid, a, b, compared(sides[a], sides[b], level=level)))

    looks = [look_of(stopping, grid.info, a, b) for grid, a, b, _ in raw]
    times = []
    tested = []
    for (grid, a, b, found), look in zip(raw, looks, strict=True):
        planned = every or first in (a, b)
        times.append(1.0 if planned else chosen_from)
        if not grid.is_tested:
            tested.append(math.nan)
        elif look is None:
            tested.append(p_to_adjust(found, factor=times[-1]))
        else:
            tested.append(float(np.minimum(look.p * times[-1], 1.0)))

    if raw:
        adjusted = adjust(tested).tolist()
    else:
        adjusted = []

    shown = []
    for at, ((grid, a, b, found), p, look) in enumerate(zip(raw, adjusted, looks, strict=True)):
        still = holds(found, tested, at, factor=times[at])
        effect = difference((a, b), found, p, holds=still)
        effect = adjusted_by(look, effect, stopping)
        if not grid.is_tested:
            effect = structs.replace(effect, verdict=NOT_TESTED)
        shown.append(effect)

    return shown


def p_to_adjust(found: Compared, *, factor: float = 1.0) -> float:
    """The p-value that is adjusted with others: times `factor`, and `few_clusters_factor`.

    NaN where the questions are of too few clusters for a verdict.
    """
    if found.too_few:
        return math.nan
    return _multiplied_p(found.test, factor)


def _multiplied_p(test: PairedDifference, factor: float) -> float:
    if test.clusters is not None:
        factor *= few_clusters_factor(test.df)
    return float(np.minimum(test.p * factor, 1.0))


def holds(
    found: Compared,
    tested: Sequence[float],
    at: int,
    *,
    alpha: float = ALPHA,
    factor: float = 1.0,
) -> bool:
    """Whether the side that is ahead would still win with its own losses at the worst value.

    `tested`: the p-values that are adjusted together; that of this comparison is at `at`, times
    `factor`.
    """
    worst = found.worst
    # not ahead; adjusting again would take as long as all comparisons
    if worst is None or not tested[at] <= alpha:
        return True

    others = [*tested]
    others[at] = _multiplied_p(worst, factor)
    still_ahead = worst.value * found.test.value > 0
    return still_ahead and float(adjust(others)[at]) <= alpha


def difference(names: tuple[str, str], found: Compared, p: float, *, holds: bool) -> Difference:
    """One comparison, with the verdict its numbers allow.

    `p`: adjusted. `holds`: also with its losses counted.
    """
    info = found.a.metric
    test = found.test
    gone = found.lost
    value = known(test.value)
    p_adjusted = known(p)
    words = verdict(info, *names, value, p_adjusted)
    best = winner(info, *names, value, p_adjusted)
    if not holds and words not in (NO_DIFFERENCE, UNLIKE):
        words = ahead(info, *names, value)
        best = None
    if value is not None and found.too_few:
        words, best = NO_VERDICT, None
    return Difference(
        metric=info.key,
        a=names[0],
        b=names[1],
        estimate=estimated(test, -info.width, info.width),
        p=None if found.too_few else known(test.p),
        p_adjusted=p_adjusted,
        effect=known(test.d_z),
        n_pairs=test.n,
        lost_a=gone[0],
        lost_b=gone[1],
        lost_both=gone[2],
        winner=best,
        verdict=words,
        offline=info.offline,
        reason=found.too_few or test.reason,
        least=known(found.bounds[0]),
        most=known(found.bounds[1]),
        loss_a=known(found.a.loss) or 0.0,
        loss_b=known(found.b.loss) or 0.0,
        clusters=test.clusters,
        df=known(test.df),
        design_effect=known(test.design_effect),
    )
