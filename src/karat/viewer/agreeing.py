"""How far a person's scores agree with the judge's: exactly, within one step, and beyond chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from karat import formats
from karat.stats import Interval, cohen_kappa
from karat.viewer.columns import Column
from karat.viewer.told import steps_of

__all__ = ["Agreement", "Pair", "agreements"]


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that both scored."""

    column: Column
    who: str
    person: float
    judge: float  # a mean, where there were repeats or several judges
    cluster: int  # the question: answers to one question are not independent


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """One person and the judge on one metric, written for people."""

    metric: str
    who: str
    answers: int
    questions: int
    exact: str
    within_one: str
    kappa: str
    kappa_note: str
    bias: str  # judge less person, on average


def agreements(pairs: Sequence[Pair]) -> list[Agreement]:
    """One row a metric and person, in the order in which they come."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.column.key, pair.who), []).append(pair)
    return [_agreement(group) for _, group in sorted(groups.items())]


def _agreement(group: Sequence[Pair]) -> Agreement:
    column, n = group[0].column, len(group)
    steps = [float(value) for value, _ in steps_of(column)]
    # A mean over repeats counts at the nearest step, as between the judges of a panel.
    apart = [abs(one.person - (_rounded(one.judge) if steps else one.judge)) for one in group]
    exact = formats.share(sum(one == 0 for one in apart) / n) if steps else formats.UNKNOWN
    within = formats.share(sum(one <= 1 for one in apart) / n) if len(steps) > 2 else formats.UNKNOWN
    kappa = _kappa(group, steps) if steps else None
    return Agreement(
        metric=column.key,
        who=group[0].who,
        answers=n,
        questions=len({one.cluster for one in group}),
        exact=exact,
        within_one=within,
        kappa=formats.UNKNOWN if kappa is None else _estimate(kappa),
        kappa_note="no steps to agree on"
        if kappa is None
        else kappa.reason or f"{kappa.method}, {formats.level(kappa.level)}",
        bias=formats.signed(math.fsum(one.judge - one.person for one in group) / n),
    )


def _kappa(group: Sequence[Pair], steps: Sequence[Any]) -> Interval:
    judged = [min(max(_rounded(one.judge), steps[0]), steps[-1]) for one in group]
    people = [one.person for one in group]
    if any(value not in steps for value in (*judged, *people)):
        return Interval(
            value=math.nan, level=0.95, n=0, method="cohen's kappa", reason="some scores are none of the metric's steps"
        )
    return cohen_kappa(people, judged, [one.cluster for one in group], categories=list(steps))


def _rounded(value: float) -> float:
    return math.floor(value + 0.5)


def _estimate(found: Interval) -> str:
    return formats.estimate(found.value, min(1.0, max(-1.0, found.low)), min(1.0, max(-1.0, found.high)))
