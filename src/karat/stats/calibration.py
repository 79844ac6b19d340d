"""A judge held against people: how far it is off, and what people would have said of all of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from karat.stats._groups import Floats, Groups, check_level, columns, group, t_quantile
from karat.stats.intervals import centred_mean, mean_interval, t_interval
from karat.stats.results import Interval

__all__ = ["Calibration", "calibrate"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """What people's scores say of a judge's. Each question counts once."""

    bias: Interval  # judge less person, where both scored
    judge: Interval  # the judge's mean over everything it scored: what is reported without people
    people: Interval  # the people's mean over what they scored
    corrected: Interval  # the mean that people would have given to everything; for many more unlabelled than labelled
    steps: tuple[float, ...]  # of the rows and columns of `confusion`
    confusion: tuple[tuple[int, ...], ...] | None  # row: the person's step, column: the judge's. None: no steps given
    exact: float  # share of answers on the same step; NaN: no steps given, or no answers
    labelled: int  # answers that both scored
    unlabelled: int  # answers that only the judge scored
    dropped: int  # answers that a person scored and the judge did not


def calibrate(
    judge: Iterable[Any],
    human: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    *,
    categories: Sequence[float] | None = None,
    level: float = 0.95,
) -> Calibration:
    """How far a judge is off, step by step and on average, and its mean put right by people's scores.

    One entry an answer: the judge's score, and the person's, None or NaN where there is none. Answers of one
    cluster (a question) are averaged first. `categories`: the steps of the scale; a mean over repeats or people counts
    at the nearest, between two at the upper. Raises ValueError for a score beyond them.

    `corrected` is the judge's mean over the answers that people did not score, plus the mean of person less judge over
    those that both scored. It estimates what people would say on average of answers like these, however bad the
    judge is, provided that the answers which people scored were drawn at random; a better judge makes it narrower.
    It is made for many more answers that were not read than were. With few its interval is wider than that of
    `people`: 100 read and 10 not have an error of about 0.35 where the people's own mean has 0.10. With one question
    not read it has no interval, and `reason` says so; with none it is the people's own mean.

    >>> found = calibrate([5, 4, 5, 3, 4, 5, 5, 2], [4, 4, 5, 2, None, None, None, None], categories=[1, 2, 3, 4, 5])
    >>> found.bias.value, found.exact, found.corrected.value
    (0.5, 0.5, 3.5)

    Angelopoulos et al. (2023), Science 382:669.
    """
    check_level(level)
    judged, told = columns("judge", judge), columns("human", human)
    if judged.size != told.size:
        raise ValueError(f"human: must be one an answer, as judge ({judged.size}), got {told.size}")
    at = list(range(judged.size)) if clusters is None else list(clusters)
    if len(at) != judged.size:
        raise ValueError(f"clusters: want one an answer ({judged.size}), got {len(at)}")
    has_judge, has_human = np.isfinite(judged), np.isfinite(told)
    both, alone = has_judge & has_human, has_judge & ~has_human

    def over(values: Floats, rows: Bools) -> Interval:
        return mean_interval(values[rows], _at(at, rows), level=level)

    confusion, exact = _confusion(judged[both], told[both], categories)
    return Calibration(
        bias=over(judged - told, both),
        judge=over(judged, has_judge),
        people=over(told, has_human),
        corrected=_corrected(_by(at, judged, alone), _by(at, told - judged, both), over(told, both)),
        steps=() if categories is None else tuple(float(step) for step in categories),
        confusion=confusion,
        exact=exact,
        labelled=int(both.sum()),
        unlabelled=int(alone.sum()),
        dropped=int((has_human & ~has_judge).sum()),
    )


def _at(clusters: Sequence[Any], rows: Bools) -> list[Any]:
    return [clusters[row] for row in np.flatnonzero(rows).tolist()]


def _by(clusters: Sequence[Any], values: Floats, rows: Bools) -> Groups:
    return group(values[rows], _at(clusters, rows))


def _corrected(alone: Groups, gap: Groups, people: Interval) -> Interval:
    """The judge's mean where it is alone, plus the mean of person less judge where both are."""
    method, level = "prediction-powered mean", people.level
    first, second = len(alone.labels), len(gap.labels)
    clusters = len({*alone.labels, *gap.labels})
    size = alone.values.size + gap.values.size
    if not first:
        reason = people.reason or "nothing is left to correct: the people's own mean"
        return replace(people, method=f"{method}, people alone", reason=reason)
    bare = Interval(value=math.nan, level=level, n=clusters, method=method, observations=size)
    if not second:
        return replace(bare, reason="nobody scored what the judge scored")
    one, other = (t_interval(groups.means, level=level, observations=0) for groups in (alone, gap))
    value = one.value + other.value
    if first < 2 or second < 2:
        which = "both scored" if second < 2 else "the judge alone scored"
        return replace(bare, value=value, reason=f"{which} one question only: its spread cannot be known")
    se = _joint_error(alone, gap)
    widest = max(one.se, other.se)
    if se == 0 or not widest > 0:
        return replace(
            bare, value=value, se=0.0, low=value, high=value, reason="nothing varies: the interval is a point"
        )
    parts = (one.se / widest) ** 2, (other.se / widest) ** 2
    welch = sum(parts) ** 2 / (parts[0] ** 2 / (first - 1) + parts[1] ** 2 / (second - 1))
    df = min(welch, clusters - 1.0)
    reach = t_quantile(0.5 + level / 2, df) * se
    return replace(bare, value=value, se=se, low=value - reach, high=value + reach, df=df)


def _joint_error(alone: Groups, gap: Groups) -> float:
    """Of the sum of both means; a question that is in both counts in both at once."""
    moved: dict[Any, float] = {}
    for groups in (alone, gap):
        n = len(groups.labels)
        parts = (groups.means - centred_mean(groups.means)) / math.sqrt(n * (n - 1))
        for label, part in zip(groups.labels, parts.tolist(), strict=True):
            moved[label] = moved.get(label, 0.0) + part
    return math.sqrt(math.fsum(part * part for part in moved.values()))


def _confusion(
    judged: Floats, told: Floats, categories: Sequence[float] | None
) -> tuple[tuple[tuple[int, ...], ...] | None, float]:
    if categories is None:
        return None, math.nan
    steps = columns("categories", categories)
    if not steps.size or not np.isfinite(steps).all() or (np.diff(steps) <= 0).any():
        raise ValueError("categories: must be numbers that rise")
    for name, values in (("judge", judged), ("human", told)):
        outside = values[(values < steps[0]) | (values > steps[-1])]
        if outside.size:
            raise ValueError(f"{name}: {outside[0]:g} is beyond the categories ({steps[0]:g} to {steps[-1]:g})")
    borders = (steps[1:] + steps[:-1]) / 2
    rows, below = (np.searchsorted(borders, values, side="right") for values in (told, judged))
    table = np.zeros((steps.size, steps.size), dtype=np.int64)
    np.add.at(table, (rows, below), 1)
    exact = float(np.trace(table)) / judged.size if judged.size else math.nan
    return tuple(tuple(row) for row in table.tolist()), exact
