"""Thresholds on a run's metrics, decided on intervals: passed, failed or undecided."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from karat.analysis.model import MetricInfo, Summary
from karat.analysis.numbers import known
from karat.analysis.people import Corrected
from karat.analysis.thresholds import Threshold, resolve
from karat.analysis.totals import TOTALS
from karat.analysis.units import Units, shared, units_of
from karat.analysis.verdicts import server_warnings
from karat.errors import BadOption
from karat.stats import (
    OneSided,
    adjust,
    clustered_mean,
    corrected_bounds,
    one_sided_bounds,
    too_few_clusters,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Verdict = Literal["passed", "failed", "undecided"]
LEVEL = 0.95
_Z95, _Z80 = 1.6449, 0.8416  # points of the normal distribution
_MOST_QUESTIONS = 1_000_000
_ROUNDING = 1e-9  # relative to the scale: a mean of thirds may miss its end by rounding


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One threshold under one condition. The bounds are one-sided, at 95 %."""

    threshold: Threshold
    metric: str
    condition: str | None  # None: for the whole run
    verdict: Verdict
    value: float | None  # for a drop: how much better the run is than the baseline
    low: float | None
    high: float | None
    # one-sided, of "the threshold is kept", after Holm's adjustment; None: not tested
    p_failed: float | None
    questions: int
    # planned trials without the number; they count as worst for `low` and best for `high`
    missing: int
    method: str  # "known": a total, without an error
    percent: bool = False
    # undecided: questions that would decide 80 % of runs, if the value were the true one
    needed: int | None = None
    reason: str | None = None
    # False: correction was requested, but people gave no labels
    corrected: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def note(self) -> str:
        """A note to show with the verdict; "" for none."""
        return "not corrected" if self.corrected is False else ""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """All thresholds of a run.

    `passed` requires all to pass; one failure is enough for `failed`.
    """

    run: str
    name: str
    baseline: str | None
    verdict: Verdict
    checks: tuple[Check, ...]
    level: float = LEVEL
    warnings: tuple[str, ...] = ()


def gate(
    summary: Summary,
    thresholds: Sequence[Threshold],
    *,
    baseline: Summary | None = None,
    no_baseline: str | None = None,
    unchanged: Collection[str] = (),
) -> Gate:
    """Decides each threshold under each condition it is for.

    Passed: the lower 95 % bound meets a `min` (the upper one a `max`). Failed: the other bound
    misses it, after Holm's adjustment over all thresholds. A run passes if every threshold does,
    which needs no adjustment: an intersection-union test. Missing trials count as the worst value
    for one bound and as the best for the other.

    Raises BadOption for names that the run does not have, and for a `max_drop` without `baseline`;
    with `no_baseline`, the reason why there is none, it is undecided. `unchanged`: conditions whose
    every answer equals the baseline's; the agent is the same, so a drop of at most the threshold is
    no matter of chance and passes, however few questions.

    Berger (1982), Technometrics 24:295.
    """
    if not thresholds:
        raise BadOption(
            "gate",
            "no threshold: name some with --min, --max or --max-drop, or under `gate:` in the file",
        )

    against = baseline or no_baseline
    checks = [
        check
        for threshold in thresholds
        for check in _checks(summary, threshold, against, unchanged)
    ]
    adjusted = adjust([check.p_failed for check in checks]).tolist()
    decided = []
    for check, p in zip(checks, adjusted, strict=True):
        unsure = check.verdict == "failed" and p > 1 - LEVEL  # NaN: a total, which is known
        verdict: Verdict = "undecided" if unsure else check.verdict
        reason = check.reason or (
            "failed by itself, but not among so many thresholds" if unsure else None
        )
        p_failed = None if math.isnan(p) else p
        decided.append(structs.replace(check, verdict=verdict, p_failed=p_failed, reason=reason))

    verdicts = {check.verdict for check in decided}
    if "failed" in verdicts:
        worst: Verdict = "failed"
    elif "undecided" in verdicts:
        worst = "undecided"
    else:
        worst = "passed"

    warnings = []
    names = []
    for check in decided:
        if check.corrected is False:
            names.append(f"{check.metric} under {check.condition}")

    if names:
        warnings.append(
            f"NOT corrected: {', '.join(names)}: no labels by people, so the scorer's own scores "
            f"decide"
        )

    people = summary.calibrated
    corrections = []
    if people is not msgspec.UNSET:
        corrections.append(
            f"corrected: means as people would score, from {people.labelled} labels by "
            f"{', '.join(people.by)}"
        )
        corrections += people.notes

    return Gate(
        run=summary.run,
        name=summary.name,
        baseline=None if baseline is None else baseline.run,
        verdict=worst,
        checks=tuple(decided),
        warnings=(
            *warnings,
            *_off_the_scale(summary, thresholds),
            *summary.warnings,
            *corrections,
        ),
    )


def _off_the_scale(summary: Summary, thresholds: Sequence[Threshold]) -> Iterator[str]:
    """Thresholds that every run would meet, or none."""
    infos = {info.key: info for info in summary.metrics}
    for threshold in thresholds:
        info = infos.get(resolve(threshold.name, summary.conditions, infos)[1])
        if info is None or info.low is None or info.high is None:
            continue
        if threshold.bound == "max_drop":
            low = 0.0
            high = info.width
        else:
            low = info.low
            high = info.high

        if not low <= threshold.value <= high:
            if info.percent:
                share = f" ({threshold.value / 100:g}, or {threshold.value:g}%, is a share)"
            else:
                share = ""

            yield f"{threshold}: outside of what it can be, {low:g} to {high:g}{share}"


def _checks(
    summary: Summary,
    threshold: Threshold,
    baseline: Summary | str | None,
    unchanged: Collection[str],
) -> list[Check]:
    infos = {info.key: info for info in summary.metrics}
    condition, metric = resolve(threshold.name, summary.conditions, infos)
    info = infos.get(metric)
    if condition is not None:
        chosen: tuple[str, ...] = (condition,)
    else:
        chosen = summary.conditions

    if info is None:
        if condition is None and TOTALS[metric].of_run:
            return [_total(summary, threshold, None, metric)]
        return [_total(summary, threshold, name, metric) for name in chosen]
    if threshold.bound == "max_drop" and summary.calibrated is not msgspec.UNSET:
        raise BadOption(
            "--corrected", "applies to --min and --max: the baseline has its own labels"
        )

    if threshold.bound != "max_drop":
        return [_level(summary, threshold, info, name) for name in chosen]
    if baseline is None:
        raise BadOption(
            "--max-drop",
            "needs a run to compare with: --baseline RUN, or `gate.baseline` in the file",
        )

    if info.direction == "none":
        raise BadOption(
            "--max-drop", f"'{metric}' is better in no direction: set a --min or a --max"
        )

    drops = [_drop(summary, threshold, info, name, baseline) for name in chosen]
    usable = set(unchanged) - {problem.condition for problem in summary.server_problems}
    alike = isinstance(baseline, Summary) and info.scoring in {
        metric.scoring for metric in baseline.metrics
    }
    found = []
    for check in drops:
        drop = check
        small = drop.value is not None and drop.value >= -threshold.value
        if alike and drop.condition in usable and small and not drop.missing:
            # The agent is the same, so that chance has no part in the drop
            reason = "unchanged: every answer is the baseline's, byte by byte"
            if drop.reason:
                reason += f"; {drop.reason}"
            drop = structs.replace(
                drop,
                verdict="passed",
                p_failed=None,
                needed=None,
                reason=reason,
            )

        found.append(drop)

    return found


def _total(summary: Summary, threshold: Threshold, condition: str | None, metric: str) -> Check:
    """A value known without error: no interval."""
    if threshold.bound == "max_drop":
        raise BadOption("--max-drop", f"{metric} has no drop: set a --max")
    if condition is None:
        account = summary.total
    else:
        account = summary.accounts[condition]

    total = TOTALS[metric]
    value, unknown, reason = total.read(account)
    verdict: Verdict = "undecided"
    if value is not None:
        if threshold.bound == "max":
            above = value > threshold.value
        else:
            above = value >= threshold.value

        if unknown and not above:  # what is unknown can only raise the sum
            verdict = "undecided"
        elif above == (threshold.bound == "min"):
            verdict = "passed"
        else:
            verdict = "failed"

    return Check(
        threshold=threshold,
        metric=metric,
        condition=condition,
        verdict=verdict,
        value=value,
        low=value,
        high=None if unknown else value,
        p_failed=None,
        questions=summary.samples,
        missing=0,
        method="known",
        percent=total.unit == "share",
        reason=reason,
    )


class _Means(msgspec.Struct, frozen=True, kw_only=True):
    """Each question's mean under one condition, one entry per question."""

    # columns: over the existing answers, the least possible, the most possible; NaN: not known
    rows: Floats
    weights: Floats  # the weight of a question in the mean
    units: Units


def _means(units: Units) -> _Means:
    # the others were not run because it was decided: not missing
    units = units.only(units.planned > 0)
    info = units.metric
    value = units.means
    n = units.answers.astype(np.float64)
    k = units.planned
    missing = units.missing
    ends = [np.nan if end is None else end for end in (info.low, info.high)]
    sums = [np.where(n > 0, value * n, 0.0)] * 2
    if units.sums is not None and info.low == 0:
        # Some rates of conversations count a failed trial as wrong; in the best case it is right.
        sums[1] = np.minimum(np.where(n > 0, value * k, 0.0), n * ends[1])

    least, most = (
        np.where(missing > 0, (there + missing * end) / k, value)
        for there, end in zip(sums, ends, strict=True)
    )
    return _Means(
        rows=np.column_stack([value, least, most]),
        weights=units.lengths * units.weights,
        units=units,
    )


def _spread(values: Floats, weights: Floats) -> Floats:
    """Values whose plain mean is the weighted mean, and whose spread gives its error (linearised).

    >>> _spread(np.array([1.0, 0.0]), np.array([3.0, 1.0])).tolist()
    [1.125, 0.375]
    """
    if not values.size or np.ptp(weights) == 0:
        return values
    mean = float((weights * values).sum() / weights.sum())
    return np.asarray(mean + weights / weights.mean() * (values - mean))


class _Rows(NamedTuple):
    """One number for each question, and what makes questions dependent."""

    seen: Floats  # the values that there are
    sides: Sequence[Floats]  # each question's least possible value, and its most
    clusters: Ints | None  # of the sides


def _level(summary: Summary, threshold: Threshold, info: MetricInfo, condition: str) -> Check:
    means = _means(units_of(summary, condition, info.key))
    seen = np.isfinite(means.rows[:, 0])
    first = _spread(means.rows[seen, 0], means.weights[seen])
    rows = _Rows(
        first,
        [_spread(means.rows[:, side], means.weights) for side in (1, 2)],
        means.units.clusters,
    )
    missing = int(means.units.missing.sum())
    ends = (info.low, info.high)
    if summary.calibrated is msgspec.UNSET:
        return _decided(summary, threshold, info, condition, rows, missing, ends)
    every = summary.calibrated.corrected
    alike = []
    for entry in every:
        if (entry.metric, entry.condition, entry.against) == (info.key, condition, None):
            alike.append(entry)

    if not alike or info.low is None or info.high is None:
        check = _decided(summary, threshold, info, condition, rows, missing, ends)
        reason = (
            "not corrected: people did not score it"
            if not alike
            else "not corrected: the metric has no range"
        )
        reason = "; ".join(filter(None, [reason, check.reason]))
        return structs.replace(check, reason=reason, corrected=False)

    [people] = alike
    share = missing / max(summary.samples * summary.repetitions, 1)
    check = _decided(
        summary,
        threshold,
        info,
        condition,
        rows,
        missing,
        ends,
        people=(people, share),
    )
    hint = (
        "more labels, or more questions, would decide it" if check.verdict == "undecided" else None
    )
    return structs.replace(
        check,
        value=people.people.value,
        needed=None,
        reason=check.reason or hint,
    )


def _drop(
    summary: Summary,
    threshold: Threshold,
    info: MetricInfo,
    condition: str,
    baseline: Summary | str,
) -> Check:
    """How much better the run is, over the questions that both runs have, by id and content."""
    if isinstance(baseline, str):
        nothing = _Rows(np.empty(0), [np.empty(0)] * 2, None)
        check = _decided(summary, threshold, info, condition, nothing, 0, (None, None))
        return structs.replace(check, reason=baseline)

    theirs = next((metric for metric in baseline.metrics if metric.key == info.key), None)
    if theirs is None or condition not in baseline.conditions:
        raise BadOption("--baseline", f"run {baseline.run} has no '{info.key}' under '{condition}'")
    every = (units_of(run, condition, info.key) for run in (summary, baseline))
    ours, before = (units.only(units.planned > 0) for units in every)
    # What only the run has is left out: its baseline may have had fewer questions
    new, old = map(_means, shared([ours, structs.replace(before, partial=False)]))
    a = new.rows
    b = old.rows
    of_a = new.weights
    of_b = old.weights
    seen = np.isfinite(a[:, 0]) & np.isfinite(b[:, 0])
    change = _spread(a[seen, 0], of_a[seen]) - _spread(b[seen, 0], of_b[seen])
    # The new run's least minus the old run's most, and the reverse.
    least = _spread(a[:, 1], of_a) - _spread(b[:, 2], of_b)
    most = _spread(a[:, 2], of_a) - _spread(b[:, 1], of_b)
    if info.direction != "higher":
        change = -change
        least, most = -most, -least

    clusters = new.units.clusters
    if clusters is None:
        clusters = old.units.clusters
    rows = _Rows(change, [least, most], clusters)
    scale: tuple[float | None, float | None] = (None, None)
    if math.isfinite(info.width):
        scale = (-info.width, info.width)

    missing = int(new.units.missing.sum() + old.units.missing.sum())
    check = _decided(summary, threshold, info, condition, rows, missing, scale)
    other = len({*ours.keys, *before.keys}) - len(new.units.keys)
    reason = None
    if other:
        reason = f"questions that one of the two runs does not have are left out: {other}"
    if theirs.scoring != info.scoring:
        reason = (
            f"the baseline was scored differently: score both alike with `karat score` "
            f"({info.scorer})"
        )
        check = structs.replace(check, verdict="undecided", p_failed=None, needed=None)

    return structs.replace(check, reason="; ".join(filter(None, [reason, check.reason])) or None)


_ASK_AGAIN = "trials are missing: `karat run FILE --resume RUN --retry-failed` asks them again"
_STOPPED = (
    "the run stopped when its comparisons were decided (`execution.stop`): a gate needs every "
    "question"
)


def _why_missing(summary: Summary, condition: str) -> str:
    if summary.accounts[condition].ledger.decided:
        return _STOPPED
    if "format" in summary.provenance.source:
        return "trials are missing in the imported files"
    return _ASK_AGAIN


def _decided(  # noqa: PLR0913 - a threshold, its subject, and all that bounds it
    summary: Summary,
    threshold: Threshold,
    info: MetricInfo,
    condition: str,
    rows: _Rows,
    missing: int,
    ends: tuple[float | None, float | None],
    people: tuple[Corrected, float] | None = None,
) -> Check:
    """One threshold under one condition.

    `people`: decide on the mean people would give; includes the share of planned trials that are
    missing.
    """
    limit = -threshold.value if threshold.bound == "max_drop" else threshold.value
    sides = rows.sides
    bounded = [bool(np.isfinite(side).all()) for side in sides]
    reason = None if all(bounded) else "the metric has no range that would bound the missing trials"
    scale = None
    if ends[0] is not None and ends[1] is not None:
        scale = (ends[0], ends[1])

    skewed = scale is None and info.low == 0 and threshold.bound != "max_drop"
    bounds = _Bounds(sides=sides, scale=scale, skewed=skewed, people=people, clusters=rows.clusters)
    intervals = bounds.at(LEVEL)
    # on the scale: a pseudo-value, or a conversation with a larger weight, may exceed it
    low, high = intervals[0].low, intervals[1].high
    if ends[0] is not None:
        low = max(low, ends[0])
    if ends[1] is not None:
        high = min(high, ends[1])

    above = threshold.bound == "max"
    if above:
        kept = high <= limit
        missed = low > limit
    else:
        kept = low >= limit
        missed = high < limit

    broken = [problem for problem in summary.server_problems if problem.condition == condition]
    if broken:  # such scores can fail a threshold, but never pass it
        kept = False
        reason = server_warnings(broken)[0]
    if (few := bounds.too_few) is not None:
        kept, missed, reason = False, False, few
    if kept:
        verdict: Verdict = "passed"
    elif missed:
        verdict = "failed"
    else:
        verdict = "undecided"

    if verdict == "undecided" and missing and reason is None:
        reason = _why_missing(summary, condition)

    seen = rows.seen
    value = math.nan
    if seen.size:
        value = float(seen.mean())

    needed = None
    if verdict == "undecided" and seen.size > 1 and not missing:
        needed = _needed(value - limit, float(seen.std(ddof=1)))
        if needed is not None and rows.clusters is not None:
            needed = None
            reason = reason or "questions of more clusters would decide it, at the present mean"
        elif needed is not None and needed <= seen.size:
            # all values are equal, or the rule needs more than the test
            needed = bounds.needed(limit, above=above)

    p_failed = None
    if bounded[0 if above else 1] and seen.size:
        p_failed = bounds.p_missed(limit, above=above)

    return Check(
        threshold=threshold,
        metric=info.key,
        condition=condition,
        verdict=verdict,
        value=known(value),
        low=known(low),
        high=known(high),
        p_failed=p_failed,
        questions=seen.size,
        missing=missing,
        method=intervals[0].method,
        percent=info.percent,
        needed=needed,
        reason=reason or intervals[0].reason,
    )


class _Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a mean when only the least and most possible value of each question are known."""

    sides: Sequence[Floats]
    scale: tuple[float, float] | None
    skewed: bool
    people: tuple[Corrected, float] | None
    clusters: Ints | None

    @property
    def too_few(self) -> str | None:
        """Why there can be no verdict: the questions are of too few clusters."""
        if self.clusters is None or not self.clusters.size:
            return None
        over = clustered_mean(self.sides[0], self.clusters)
        return too_few_clusters(over.n, over.df)

    def at(self, level: float) -> tuple[OneSided, OneSided]:
        low, high = (self._one(side, level) for side in self.sides)
        return low, high

    def _one(self, side: Floats, level: float) -> OneSided:
        scale = self.scale
        if self.people is not None and scale is not None:
            (people, missing), estimate = self.people, self.people[0].people
            value = math.nan if estimate.value is None else estimate.value
            se = math.nan if estimate.se is None else estimate.se
            bounds = corrected_bounds(
                value,
                se,
                people.df or math.nan,
                labels=people.labelled,
                scale=scale,
                level=level,
            )
            return structs.replace(
                bounds,
                low=(1 - missing) * bounds.low + missing * scale[0],
                high=(1 - missing) * bounds.high + missing * scale[1],
                reason=estimate.reason or bounds.reason,
            )

        if scale is not None and side.size and np.isfinite(side).all():
            slack = _ROUNDING * (scale[1] - scale[0])
            side = np.where((side < scale[0]) & (side >= scale[0] - slack), scale[0], side)
            side = np.where((side > scale[1]) & (side <= scale[1] + slack), scale[1], side)
            # Conversations with a larger weight exceed the scale.
            scale = min(scale[0], float(side.min())), max(scale[1], float(side.max()))

        return one_sided_bounds(
            side,
            sources=self.clusters,
            scale=scale,
            skewed=self.skewed,
            level=level,
        )

    def needed(self, limit: float, *, above: bool) -> int | None:
        """The fewest questions that decide, if values keep the shares that they have, to 2 %; None:
        no number does.
        """
        if self.people is not None:
            return None

        def decides(n: int) -> bool:
            low, high = (self._one(np.resize(side, n), LEVEL) for side in self.sides)
            if above:
                return high.high <= limit or low.low > limit
            return low.low >= limit or high.high < limit

        least = most = max(side.size for side in self.sides)
        while not decides(most):
            least = most
            most = 2 * most
            if most > _MOST_QUESTIONS:
                return None

        while most - least > max(1, least // 50):
            middle = (least + most) // 2
            if decides(middle):
                most = middle
            else:
                least = middle

        return most

    def p_missed(self, limit: float, *, above: bool) -> float:
        """The smallest alpha at which the bound misses the limit, by bisection."""

        def missed(alpha: float) -> bool:
            bounds = self._one(self.sides[0 if above else 1], 1 - alpha)
            if above:
                return bounds.low > limit
            return bounds.high < limit

        least, most = 1e-12, 0.5
        if not missed(most):
            return 1.0
        for _ in range(20):  # to 3 parts in 100,000
            middle = math.sqrt(least * most)
            if missed(middle):
                most = middle
            else:
                least = middle

        return most


def _needed(margin: float, sd: float) -> int | None:
    """Questions whose one-sided test decides 80 % of runs, if the observed margin were the true
    one; None: no number.

    Guenther (1981), Am. Stat. 35:243: the normal formula, plus half the square of its 95 % point
    for Student's t.
    """
    if abs(margin) <= _ROUNDING:
        return None
    n = math.ceil((_Z95 + _Z80) ** 2 * (sd / margin) ** 2 + _Z95**2 / 2)
    return n if n <= _MOST_QUESTIONS else None
