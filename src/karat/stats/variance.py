"""Where the spread of scores comes from: the questions, or the agent's own unsteadiness."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from karat.stats._groups import Floats, Groups, check_level, group
from karat.stats.intervals import centred_mean, sample_sd, t_interval
from karat.stats.results import Interval, VarianceComponents

__all__ = ["between_sd", "icc", "pooled_sd", "variance_components"]


def pooled_sd(values: Iterable[Any], clusters: Iterable[Any], *, level: float = 0.95) -> Interval:
    """The agent's unreliability: the root of the mean variance (n − 1) within questions.

    Questions with one answer say nothing about it and are left out; `n` counts the others;
    none: NaN. The interval is Student's t over the questions' variances, under the root,
    cut at 0. A NaN value makes everything NaN.

    >>> round(pooled_sd([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"]).value, 4)
    0.5774
    """
    groups = group(values, clusters)
    repeated = groups.counts > 1
    method = "root of the mean variance"
    spread = t_interval(
        groups.squares[repeated] / (groups.counts[repeated] - 1),
        level=check_level(level),
        observations=groups.values.size,
        missing=groups.missing,
    )
    if math.isnan(spread.value):
        reason = spread.reason if groups.missing else "no question was answered twice"
        return Interval(
            value=math.nan, level=level, n=spread.n, method=method, observations=groups.values.size, reason=reason
        )
    value = math.sqrt(spread.value)
    return Interval(
        value=value,
        se=spread.se / (2 * value) if value > 0 else spread.se,
        low=math.sqrt(max(0.0, spread.low)) if not math.isnan(spread.low) else math.nan,
        high=math.sqrt(spread.high) if not math.isnan(spread.high) else math.nan,
        level=level,
        n=spread.n,
        method=method,
        df=spread.df,
        observations=groups.values.size,
        reason=spread.reason,
    )


def between_sd(values: Iterable[Any], clusters: Iterable[Any], *, level: float = 0.95) -> Interval:
    """The standard deviation (n − 1) of question means, as they are: the agent's noise is part of it.

    `variance_components` takes that noise out. The interval is chi-squared, exact where
    question means are normal. Fewer than two questions: NaN.

    >>> between_sd([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"]).value
    0.8660254037844386
    """
    groups = group(values, clusters)
    check_level(level)
    n, method = len(groups.labels), "sd of question means"
    if groups.missing or n < 2:
        missing = f"{groups.missing} of {groups.values.size} values are missing"
        reason = missing if groups.missing else "needs two questions"
        return Interval(value=math.nan, level=level, n=n, method=method, observations=groups.values.size, reason=reason)
    sd = sample_sd(groups.means)
    low, high = _chi_squared_bounds(sd**2, n - 1, level)
    return Interval(
        value=sd,
        se=sd / math.sqrt(2 * (n - 1)),
        low=math.sqrt(low),
        high=math.sqrt(high),
        level=level,
        n=n,
        method=method,
        df=n - 1,
        observations=groups.values.size,
        reason=None if sd > 0 else f"all {n} question means are equal",
    )


def variance_components(
    y: Iterable[Any],
    question: Iterable[Any],
    *,
    method: Literal["auto", "anova", "reml"] = "auto",
    level: float = 0.95,
) -> VarianceComponents:
    """Variance between questions and between repetitions of one question, with intervals.

    One-way random effects. `auto`: ANOVA where every question has the same number of
    answers, REML otherwise. Raw ANOVA estimates may be negative and are shown; the shares
    come from max(0, ·). Intervals: chi-squared within, Williams–Tukey between, Searle's F
    for the ICC (with n0 repetitions where unbalanced). Fewer than two questions, or no
    question answered twice: NaN with a reason.

    >>> found = variance_components([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"])
    >>> round(found.within.value, 4), round(found.between.value, 4), round(found.icc.value, 4)
    (0.3333, 0.5833, 0.6364)

    Searle, Casella and McCulloch (1992), Variance Components, chapter 3.
    """
    if method not in ("auto", "anova", "reml"):
        raise ValueError(f"method: must be auto, anova or reml, got {method!r}")
    check_level(level)
    groups = group(y, question)
    reason = _unknowable(groups)
    if reason is not None:
        return _unknown(groups, level=level, method=method, reason=reason)
    chosen = method
    if chosen == "auto":
        chosen = "anova" if bool((groups.counts == groups.counts[0]).all()) else "reml"
    return _components(groups, chosen, level)


def icc(y: Iterable[Any], question: Iterable[Any], *, level: float = 0.95) -> Interval:
    """ICC(1): how alike two answers to one question are, compared with answers to different questions.

    From one-way ANOVA; negative estimates are shown as they are; no variance at all: NaN.

    >>> round(icc([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"]).value, 4)
    0.6364

    Shrout and Fleiss (1979), Psychol. Bull. 86:420.
    """
    return variance_components(y, question, method="anova", level=level).icc


def _unknowable(groups: Groups) -> str | None:
    if groups.missing:
        return f"{groups.missing} of {groups.values.size} values are missing"
    if len(groups.labels) < 2:
        return "needs two questions"
    return None if groups.values.size > len(groups.labels) else "no question was answered twice"


def _unknown(groups: Groups, *, level: float, method: str, reason: str) -> VarianceComponents:
    nan, n, size = math.nan, len(groups.labels), groups.values.size
    nothing = Interval(value=nan, level=level, n=n, method=method, observations=size, reason=reason)
    mean = t_interval(groups.means, level=level, observations=size, missing=groups.missing)
    return VarianceComponents(
        mean=mean.value,
        se_mean=mean.se,
        between=nothing,
        within=nothing,
        share_between=nan,
        share_within=nan,
        icc=nothing,
        ms_between=nan,
        ms_within=nan,
        n0=nan,
        statistic=nan,
        df=(nan, nan),
        p=nan,
        n=n,
        observations=size,
        method=method,
        reason=reason,
    )


class _Table(NamedTuple):
    """The one-way table of variances."""

    ms_between: float
    ms_within: float
    n0: float
    df: tuple[float, float]

    @property
    def ratio(self) -> float:
        if self.ms_within > 0:
            return self.ms_between / self.ms_within
        return math.inf if self.ms_between > 0 else math.nan


def _table(groups: Groups) -> _Table:
    n, size = len(groups.labels), groups.values.size
    grand = centred_mean(groups.values)
    df = (float(n - 1), float(size - n))
    return _Table(
        ms_between=float(np.sum(groups.counts * (groups.means - grand) ** 2)) / df[0],
        ms_within=float(groups.squares.sum()) / df[1],
        n0=(size - float(np.sum(groups.counts.astype(float) ** 2)) / size) / df[0],
        df=df,
    )


def _components(groups: Groups, method: str, level: float) -> VarianceComponents:
    from scipy.special import fdtrc

    n, size, table = len(groups.labels), groups.values.size, _table(groups)
    between, within = (table.ms_between - table.ms_within) / table.n0, table.ms_within
    if method == "reml":
        between, within = _reml(groups)
    reason = None if table.ms_within > 0 or table.ms_between > 0 else "all values are equal"
    kept, raw_total = max(0.0, between), between + within
    mean = t_interval(groups.means, level=level, observations=size)
    bounds = _bounds(table, level)

    def estimate(part: str, value: float, why: str | None = None) -> Interval:
        low, high = bounds[part]
        return Interval(value=value, low=low, high=high, level=level, n=n, method=method, observations=size, reason=why)

    return VarianceComponents(
        mean=mean.value,
        se_mean=mean.se,
        between=estimate("between", between),
        within=estimate("within", within),
        share_between=kept / (kept + within) if kept + within > 0 else math.nan,
        share_within=within / (kept + within) if kept + within > 0 else math.nan,
        icc=estimate("icc", between / raw_total if raw_total > 0 else math.nan, reason),
        ms_between=table.ms_between,
        ms_within=table.ms_within,
        n0=table.n0,
        statistic=table.ratio,
        df=table.df,
        p=math.nan if math.isnan(table.ratio) else max(float(fdtrc(*table.df, table.ratio)), math.ulp(0.0)),
        n=n,
        observations=size,
        method=method,
        reason=reason,
    )


def _bounds(table: _Table, level: float) -> dict[str, tuple[float, float]]:
    """Williams–Tukey for the variance between, chi-squared within, Searle's F for the ICC."""
    from scipy.special import fdtri

    within = _chi_squared_bounds(table.ms_within, table.df[1], level)
    small, large = _chi_squared_bounds(table.ms_between, table.df[0], level)
    n0, ratio = table.n0, table.ratio
    if not math.isfinite(ratio):
        point = (1.0, 1.0) if ratio > 0 else (math.nan, math.nan)
        return {"within": within, "between": (small / n0, large / n0), "icc": point}
    upper, lower = (float(fdtri(*table.df, tail)) for tail in (0.5 + level / 2, 0.5 - level / 2))
    between = (0.0, 0.0)
    if ratio > 0:
        between = (max(0.0, small * (1 - upper / ratio) / n0), max(0.0, large * (1 - lower / ratio) / n0))
    low, high = ((ratio / bound - 1) / (ratio / bound + n0 - 1) for bound in (upper, lower))
    return {"within": within, "between": between, "icc": (low, high)}


def _chi_squared_bounds(variance: float, df: float, level: float) -> tuple[float, float]:
    from scipy.special import chdtri

    low, high = (variance * df / float(chdtri(df, tail)) for tail in (0.5 - level / 2, 0.5 + level / 2))
    return low, high


def _reml(groups: Groups) -> tuple[float, float]:
    """(between, within) by restricted maximum likelihood, profiled over λ = between/within."""
    counts, means = groups.counts.astype(float), groups.means
    ss_within, size = float(groups.squares.sum()), groups.values.size

    def residual(ratio: float) -> tuple[float, Floats]:
        weights = counts / (1 + ratio * counts)
        centre = float(weights @ means) / float(weights.sum())
        return ss_within + float(weights @ (means - centre) ** 2), weights

    def deviance(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        rest, weights = residual(ratio)
        spread = float(np.log1p(ratio * counts).sum()) + math.log(float(weights.sum()))
        return (size - 1) * math.log(max(rest, 1e-300)) + spread

    grid = np.linspace(-25.0, 25.0, 201)
    best = int(np.argmin([deviance(point) for point in grid]))
    log_ratio = _golden_section(deviance, float(grid[max(0, best - 1)]), float(grid[min(200, best + 1)]))
    ratio = 0.0 if best == 0 else math.exp(log_ratio)
    within = residual(ratio)[0] / (size - 1)
    return ratio * within, within


def _golden_section(function: Any, low: float, high: float) -> float:
    share = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        left, right = high - share * (high - low), low + share * (high - low)
        if function(left) < function(right):
            high = right
        else:
            low = left
    return (low + high) / 2
