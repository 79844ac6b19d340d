"""Intraclass correlations: how much of the spread of ratings is between the things rated."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from karat.stats import special
from karat.stats._groups import Floats, check_level, columns, group
from karat.stats.planning import spearman_brown
from karat.stats.results import Interval
from karat.stats.variance import variance_components

Model = Literal["ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)"]
_UNLIKE = "ratings of one thing are as unlike as they can be: their mean has no reliability"
_FAILS = "Satterthwaite's approximation does not hold for this negative estimate: no interval"
_ROUNDING = 1e-9
_MODELS = ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)")


def icc(
    y: Iterable[Any],
    question: Iterable[object] | None = None,
    rater: Iterable[object] | None = None,
    *,
    model: Model = "ICC(1,1)",
    level: float = 0.95,
) -> Interval:
    """How alike two ratings of one thing are, compared with ratings of different things.

    `y` with the `question` that each value belongs to, and, for the forms 2 and 3, the `rater`; or
    `y` alone as a table (things × raters). Form 1: each thing has different raters, or repetitions
    of one agent. Form 2: the same raters rate all, as a sample of raters; a difference in their
    levels counts as disagreement (a judge and people: use `ICC(2,1)`). Form 3: these raters only,
    and their levels do not count. `k`: of the mean of all ratings of a thing instead of one.

    From analysis of variance, with intervals from F; negative estimates are kept. Form 2 has no
    interval if Satterthwaite's degrees of freedom give one that excludes its own (negative)
    estimate. No variance at all, a missing value, or (forms 2 and 3) a thing not rated exactly once
    by each rater: NaN with a reason. Form 1 takes any number of ratings per thing.

    >>> round(icc([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"]).value, 4)
    0.6364
    >>> table = [
    ...     [9, 2, 5, 8],
    ...     [6, 1, 3, 2],
    ...     [8, 4, 6, 8],
    ...     [7, 1, 2, 6],
    ...     [10, 5, 6, 9],
    ...     [6, 2, 4, 7],
    ... ]
    >>> round(icc(table, model="ICC(2,1)").value, 2)
    0.29

    Shrout and Fleiss (1979), Psychol. Bull. 86:420.
    """
    if model not in _MODELS:
        raise ValueError(f"model: must be one of {', '.join(_MODELS)}, got {model!r}")
    check_level(level)
    if question is None:
        if rater is not None:
            raise ValueError("question: must be given where rater is")
        listed = list(y)
        if any(np.ndim(row) != 1 for row in listed):
            raise ValueError(
                "y: without question, must be a table with a row a thing and a column a rater"
            )

        rows = [columns("y", row) for row in listed]
        if not rows or len({row.size for row in rows}) != 1 or not rows[0].size:
            raise ValueError(
                "y: without question, must be a table with a row a thing and a column a rater"
            )

        table = np.stack(rows)
        if model.startswith("ICC(1"):
            labels = np.repeat(np.arange(table.shape[0]), table.shape[1])
            return _one_way(table.reshape(-1), labels, model, level)

        return _two_way(table, model, level, None)

    if model.startswith("ICC(1"):
        return _one_way(y, question, model, level)
    if rater is None:
        raise ValueError(f"rater: must be given for {model}, or y as a table")

    things = group(values := columns("y", y), question)
    raters = group(values, rater)
    table = np.full((len(things.labels), len(raters.labels)), np.nan)
    table[things.codes, raters.codes] = values
    cells = np.unique(np.stack([things.codes, raters.codes]), axis=1).shape[1]
    if cells < values.size:
        reason = f"{values.size - cells} ratings repeat one of the same item by the same rater"
    elif cells < table.size:
        reason = f"{table.size - cells} of {table.size} ratings are missing"
    else:
        reason = None

    return _two_way(table, model, level, reason)


def _one_way(y: Iterable[object], question: Iterable[object], model: str, level: float) -> Interval:
    components = variance_components(y, question, method="anova", level=level)
    single = components.icc
    if model == "ICC(1,1)":
        return replace(single, method=f"{model}, anova")
    stepped = [
        _stepped_up(value, components.n0) for value in (single.value, single.low, single.high)
    ]
    reason = _UNLIKE if math.isnan(stepped[0]) and not math.isnan(single.value) else single.reason
    return replace(
        single,
        value=stepped[0],
        low=stepped[1],
        high=stepped[2],
        method=f"{model}, anova",
        reason=reason,
    )


def _stepped_up(value: float, k: float) -> float:
    """The reliability of the mean of k ratings; NaN if two ratings are as different as possible."""
    if 1 + (k - 1) * value > 1e-12:
        return spearman_brown(min(value, 1.0), k)
    return math.nan


class _Squares(NamedTuple):
    """Mean squares of a table: between things, between raters, and the residual."""

    things: float
    raters: float
    rest: float


def _two_way(table: Floats, model: str, level: float, reason: str | None) -> Interval:
    n, k = table.shape
    method = f"{model}, anova"
    size = table.size
    missing = int(np.count_nonzero(~np.isfinite(table)))
    if reason is None and missing:
        reason = f"{missing} of {size} values are missing"
    if reason is None and (n < 2 or k < 2):
        reason = "needs two questions" if n < 2 else "needs two raters"
    if reason is not None:
        return Interval(
            value=math.nan,
            level=level,
            n=n,
            method=method,
            observations=size,
            reason=reason,
        )

    squares = _squares(table)
    agreement = model.startswith("ICC(2")
    if agreement:
        of_raters = k * (squares.raters - squares.rest) / n
    else:
        of_raters = 0.0

    total = squares.things + (k - 1) * squares.rest + of_raters
    if not total > 0:
        reason = "the estimated variances add up to 0"
        if squares.things == squares.rest == 0:
            reason = (
                "no variance but between raters" if squares.raters > 0 else "all values are equal"
            )

        return Interval(
            value=math.nan,
            level=level,
            n=n,
            method=method,
            observations=size,
            reason=reason,
        )

    value = (squares.things - squares.rest) / total
    if agreement:
        bounds = _agreement_bounds(squares, value, n, k, level)
    else:
        if squares.rest == 0:
            bounds = 1.0, 1.0
        else:
            ratio = squares.things / squares.rest
            df = (n - 1, (n - 1) * (k - 1))
            low = ratio / _f_quantile(*df, 0.5 + level / 2)
            high = ratio * _f_quantile(df[1], df[0], 0.5 + level / 2)
            bounds = (low - 1) / (low + k - 1), (high - 1) / (high + k - 1)

    computed = not all(map(math.isnan, bounds))
    # also if one bound is NaN
    fails = computed and not bounds[0] - _ROUNDING <= value <= bounds[1] + _ROUNDING
    if fails:
        parts = [value, math.nan, math.nan]
    else:
        parts = [value, *bounds]

    if model.endswith("k)"):
        parts = [_stepped_up(part, k) for part in parts]
    if math.isnan(parts[0]):
        note = _UNLIKE
    elif fails:
        note = _FAILS
    else:
        note = None

    if note is None and math.isnan(parts[1]):
        note = "all things have the same mean: no interval"
    if note is None and parts[1] == parts[2]:
        note = "things and raters account for every rating: the interval is a point"
    return Interval(
        value=parts[0],
        low=parts[1],
        high=parts[2],
        level=level,
        n=n,
        method=method,
        observations=size,
        reason=note,
    )


def _squares(table: Floats) -> _Squares:
    n, k = table.shape
    centred = table - table[0, 0]
    rows = centred.mean(axis=1)
    cols = centred.mean(axis=0)
    grand = rows.mean()
    things = k * float(np.sum((rows - grand) ** 2)) / (n - 1)
    raters = n * float(np.sum((cols - grand) ** 2)) / (k - 1)
    residual = float(np.sum((centred - rows[:, None] - cols[None, :] + grand) ** 2)) / (
        (n - 1) * (k - 1)
    )
    # Rounding alone must not give a table of sums a residual, or make equally rated things differ.
    noise = 1e-26 * float(np.max(np.abs(centred))) ** 2
    return _Squares(*(square if square > noise else 0.0 for square in (things, raters, residual)))


def _f_quantile(df1: float, df2: float, tail: float) -> float:
    if df1 > 0 and df2 > 0:
        return float(special.fdtri(df1, df2, tail))
    return math.nan


def _agreement_bounds(
    squares: _Squares,
    value: float,
    n: int,
    k: int,
    level: float,
) -> tuple[float, float]:
    """Satterthwaite's degrees of freedom for the mixture of rater and residual in the
    denominator.
    """
    things, raters, rest = squares
    if rest == 0 and raters == 0:
        return 1.0, 1.0
    if things == 0:
        return math.nan, math.nan
    others = k * raters + (k * n - k - n) * rest
    # a * raters + b * rest, never below 0
    mixed = n * things * k * (raters + (n - 1) * rest) / (n * things + others)
    a = k * value
    b = n * (1 + (k - 1) * value) - k * value
    df = mixed**2 / ((a * raters) ** 2 / (k - 1) + (b * rest) ** 2 / ((n - 1) * (k - 1)))
    upper = _f_quantile(n - 1, df, 0.5 + level / 2)
    lower = _f_quantile(df, n - 1, 0.5 + level / 2)
    low = n * (things - upper * rest) / (upper * others + n * things)
    high = n * (lower * things - rest) / (others + n * lower * things)
    return low, high
