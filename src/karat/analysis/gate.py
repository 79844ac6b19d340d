"""Thresholds on what a run measured, decided on intervals: passed, failed or undecided."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from karat.analysis.model import MetricInfo, Summary
from karat.errors import BadOption, did_you_mean
from karat.stats import adjust, one_sided_bounds

__all__ = ["Check", "Gate", "Threshold", "gate", "parse_threshold"]

Verdict = Literal["passed", "failed", "undecided"]
LEVEL = 0.95
TOTALS = {"cost_usd": "the cost of the run, in dollars", "failed": "the share of planned trials without an answer"}
_TEXT = re.compile(r"(?:(?P<condition>.+)\.)?(?P<metric>[^.=]+)=(?P<value>[^=]+)")


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """A bound that a number must keep. `condition` None: each condition of the run must keep it."""

    metric: str  # of the run, or cost_usd, failed
    bound: Literal["min", "max", "max_drop"]
    value: float
    condition: str | None = None

    def __str__(self) -> str:
        name = f"{self.condition}.{self.metric}" if self.condition else self.metric
        sign = {"min": "at least", "max": "at most", "max_drop": "drops by at most"}[self.bound]
        return f"{name} {sign} {self.value:g}"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One threshold under one condition. The bounds are one-sided, at 95 %."""

    threshold: Threshold
    condition: str | None  # None: of the whole run
    verdict: Verdict
    value: float | None  # of a drop: the new mean minus the baseline's
    low: float | None
    high: float | None
    p_failed: float | None  # one-sided, of "the threshold is kept", after Holm's adjustment
    questions: int
    missing: int  # planned trials without the number; they count as worst for `low` and best for `high`
    method: str
    percent: bool = False
    needed: int | None = None  # undecided: questions that would decide 80 % of runs, were the value the true one
    reason: str | None = None


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """All thresholds of a run. `passed` needs every one; one that failed is enough for `failed`."""

    run: str
    name: str
    baseline: str | None
    verdict: Verdict
    checks: tuple[Check, ...]
    level: float = LEVEL


def parse_threshold(text: str, bound: Literal["min", "max", "max_drop"]) -> Threshold:
    """`[CONDITION.]METRIC=VALUE`. Raises BadOption for anything else.

    >>> parse_threshold("with-docs.completeness=4.2", "min")
    Threshold(metric='completeness', bound='min', value=4.2, condition='with-docs')
    """
    option = f"--{bound.replace('_', '-')}"
    match = _TEXT.fullmatch(text)
    try:
        value = float(match["value"].rstrip("%")) / (100 if match["value"].endswith("%") else 1) if match else math.nan
    except ValueError:
        value = math.nan
    if match is None or not math.isfinite(value):
        raise BadOption(option, f"want [CONDITION.]METRIC=NUMBER, got '{text}'")
    return Threshold(metric=match["metric"], bound=bound, value=value, condition=match["condition"])


def gate(summary: Summary, thresholds: Sequence[Threshold], *, baseline: Summary | None = None) -> Gate:
    """Decides each threshold under each condition it is for.

    Passed: the lower 95 % bound keeps a `min` (of `max` the upper one). Failed: the other bound misses it, after
    Holm's adjustment over all thresholds. A run passes where every threshold does, which needs no adjustment: an
    intersection-union test. Missing trials count as the worst value for one bound and as the best for the other.

    Raises BadOption for names that the run does not have, and for a `max_drop` without `baseline`.

    Berger (1982), Technometrics 24:295.
    """
    if not thresholds:
        raise BadOption("gate", "no threshold: name some with --min, --max or --max-drop, or under `gate:` in the file")
    checks = [check for threshold in thresholds for check in _checks(summary, threshold, baseline)]
    adjusted = adjust([math.nan if check.p_failed is None else check.p_failed for check in checks]).tolist()
    decided = []
    for check, p in zip(checks, adjusted, strict=True):
        verdict: Verdict = check.verdict
        if verdict == "failed" and not p <= 1 - LEVEL and check.p_failed is not None:
            verdict = "undecided"
        decided.append(msgspec.structs.replace(check, verdict=verdict, p_failed=None if math.isnan(p) else p))
    verdicts = {check.verdict for check in decided}
    worst: Verdict = "failed" if "failed" in verdicts else "undecided" if "undecided" in verdicts else "passed"
    return Gate(
        run=summary.run,
        name=summary.name,
        baseline=None if baseline is None else baseline.run,
        verdict=worst,
        checks=tuple(decided),
    )


def _checks(summary: Summary, threshold: Threshold, baseline: Summary | None) -> list[Check]:
    if threshold.metric in TOTALS:
        return [_total(summary, threshold)]
    known = [info.key for info in summary.metrics]
    info = next((info for info in summary.metrics if info.key == threshold.metric), None)
    if info is None:
        names = [*known, *TOTALS]
        hint = did_you_mean(threshold.metric, names)
        raise BadOption("gate", f"run {summary.run} has no metric '{threshold.metric}' ({', '.join(names)}){hint}")
    if threshold.condition is not None and threshold.condition not in summary.conditions:
        hint = did_you_mean(threshold.condition, summary.conditions)
        raise BadOption("gate", f"run {summary.run} has no condition '{threshold.condition}'{hint}")
    chosen = summary.conditions if threshold.condition is None else (threshold.condition,)
    if threshold.bound != "max_drop":
        return [_level(summary, threshold, info, condition) for condition in chosen]
    if baseline is None:
        raise BadOption("--max-drop", "needs a run to compare with: --baseline RUN")
    return [_drop(summary, threshold, info, condition, baseline) for condition in chosen]


def _total(summary: Summary, threshold: Threshold) -> Check:
    """What is known without an error: no interval."""
    if threshold.condition is not None or threshold.bound == "max_drop":
        raise BadOption("gate", f"{threshold.metric} is of the whole run and has a `min` or a `max`: {threshold}")
    ledger, cost = summary.total.ledger, summary.total.cost
    unknown, reason = 0, None
    if threshold.metric == "failed":
        value = (ledger.planned - ledger.scored) / ledger.planned if ledger.planned else None
    else:
        value, unknown = cost.agent.known + cost.judge.known, cost.agent.unknown + cost.judge.unknown
    if value is None:
        verdict: Verdict = "undecided"
    elif threshold.bound == "max":
        verdict = "failed" if value > threshold.value else "undecided" if unknown else "passed"
    else:
        verdict = "passed" if value >= threshold.value else "undecided" if unknown else "failed"
    if unknown:
        reason = f"{unknown} calls have no known price"
    return Check(
        threshold=threshold, condition=None, verdict=verdict, value=value, low=value,
        high=None if unknown else value, p_failed=None, questions=summary.samples, missing=0, method="known",
        percent=threshold.metric == "failed", reason=reason,
    )  # fmt: skip


def _filled(summary: Summary, info: MetricInfo, condition: str) -> tuple[dict[str, tuple[float, float, float]], int]:
    """Question: its mean over the answers there are, the least and the greatest it can be; how many are missing."""
    table = summary.table_of_samples
    if table is None:
        return {}, 0
    column = next(one for one in table.columns if (one.condition, one.metric) == (condition, info.key))
    low, high = (math.nan if end is None else end for end in (info.low, info.high))
    found, missing, k = {}, 0, summary.repetitions
    for name, mean, n in zip(table.ids, column.mean, column.n, strict=True):
        gone = k - n
        missing += gone
        value = math.nan if mean is None else mean
        least, most = (value if not gone else ((value * n if n else 0.0) + gone * end) / k for end in (low, high))
        found[name] = value, least, most
    return found, missing


def _level(summary: Summary, threshold: Threshold, info: MetricInfo, condition: str) -> Check:
    questions, missing = _filled(summary, info, condition)
    scale = None if info.low is None or info.high is None else (info.low, info.high)
    rows = np.array(list(questions.values()), dtype=np.float64).reshape(-1, 3)
    return _decided(threshold, info, condition, rows, missing, scale)


def _drop(summary: Summary, threshold: Threshold, info: MetricInfo, condition: str, baseline: Summary) -> Check:
    """New minus old over the questions that both runs have, by id and content."""
    if condition not in baseline.conditions or baseline.result(condition, info.key) is None:
        raise BadOption("--baseline", f"run {baseline.run} has no '{info.key}' under '{condition}'")
    new, missing = _filled(summary, info, condition)
    old, missing_old = _filled(baseline, info, condition)
    tables = summary.table_of_samples, baseline.table_of_samples
    digests = [dict(zip(t.ids, t.digests, strict=True)) if t is not None else {} for t in tables]
    same = [name for name in new if name in old and digests[0][name] == digests[1][name]]
    sign = -1.0 if info.direction == "lower" else 1.0
    pairs = [(new[name], old[name]) for name in same]
    rows = np.array(
        [(sign * (a[0] - b[0]), *sorted((sign * (a[1] - b[2]), sign * (a[2] - b[1])))) for a, b in pairs], dtype=float
    ).reshape(-1, 3)
    width = None if info.low is None or info.high is None else info.high - info.low
    scale = None if width is None else (-width, width)
    at_least = msgspec.structs.replace(threshold, bound="min", value=-abs(threshold.value))
    check = _decided(at_least, info, condition, rows, missing + missing_old, scale)
    other = len(new) - len(same)
    reason = f"{other} questions are not in the baseline and are left out" if other else check.reason
    return msgspec.structs.replace(check, threshold=threshold, reason=reason)


def _decided(
    threshold: Threshold, info: MetricInfo, condition: str, rows: np.ndarray, missing: int,
    scale: tuple[float, float] | None,
) -> Check:  # fmt: skip
    seen = rows[np.isfinite(rows[:, 0]), 0]
    least, most = rows[:, 1], rows[:, 2]
    reason = None
    if not (np.isfinite(least).all() and np.isfinite(most).all()):
        reason = f"{missing} trials have no number, and the metric has no range that would bound them"
    sides = [one_sided_bounds(side, scale=scale, level=LEVEL) for side in (least, most)]
    low, high = sides[0].low, sides[1].high
    needed = None
    kept, missed = (low >= threshold.value, high < threshold.value)
    if threshold.bound == "max":
        kept, missed = high <= threshold.value, low > threshold.value
    verdict: Verdict = "passed" if kept else "failed" if missed else "undecided"
    value = float(seen.mean()) if seen.size else math.nan
    if verdict == "undecided" and seen.size > 1 and not missing:
        needed = _needed(value - threshold.value, float(seen.std(ddof=1)), seen.size)
    return Check(
        threshold=threshold,
        condition=condition,
        verdict=verdict,
        value=_known(value),
        low=_known(low),
        high=_known(high),
        p_failed=_p_failed(threshold, least, most, scale),
        questions=int(seen.size),
        missing=missing,
        method=sides[0].method,
        percent=info.percent,
        needed=needed,
        reason=reason or sides[0].reason,
    )


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _p_failed(
    threshold: Threshold, least: np.ndarray, most: np.ndarray, scale: tuple[float, float] | None
) -> float | None:
    """The smallest alpha at which the bound misses the threshold, by bisection."""

    def missed(level: float) -> bool:
        if threshold.bound == "max":
            return one_sided_bounds(least, scale=scale, level=level).low > threshold.value
        return one_sided_bounds(most, scale=scale, level=level).high < threshold.value

    if not np.isfinite(least).all() or not np.isfinite(most).all():
        return None
    low, high = 1e-12, 0.5
    if not missed(1 - high):
        return 1.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if missed(1 - middle) else (middle, high)
    return high


def _needed(margin: float, sd: float, questions: int) -> int | None:
    """Questions whose one-sided test decides 80 % of runs, were the observed margin the true one."""
    from karat.stats import sample_size_ttest

    if not sd > 0 or margin == 0:
        return None
    n = sample_size_ttest(abs(margin) / sd, alternative="greater").n
    return n if n is not None and n > questions else None
