"""Where the spread of scores comes from: the questions, or the agent's own noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from karat.stats import special
from karat.stats._groups import Codes, Floats, Groups, check_level, columns, group, summed_by
from karat.stats.intervals import centred_mean, sample_sd, t_interval
from karat.stats.results import Interval, VarianceComponents
from karat.sums import exact_sum


def reml_of_two(groups: Groups) -> tuple[float, float]:
    """(between, within) by restricted maximum likelihood, profiled over λ = between/within."""
    counts = groups.counts.astype(float)
    means = groups.means
    ss_within = float(groups.squares.sum())
    size = groups.values.size
    if not ss_within > 0:  # no answers differ: only the means are left
        return sample_sd(means) ** 2, 0.0

    def residual(ratio: float) -> tuple[float, Floats]:
        weights = counts / (1 + ratio * counts)
        centre = float(weights @ means) / float(weights.sum())
        return ss_within + float(weights @ (means - centre) ** 2), weights

    def deviance(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        rss, weights = residual(ratio)
        spread = float(np.log1p(ratio * counts).sum()) + math.log(float(weights.sum()))
        return (size - 1) * math.log(max(rss, 1e-300)) + spread

    grid = np.linspace(-25.0, 25.0, 201)
    best = int(np.argmin([deviance(point) for point in grid]))
    low = float(grid[max(0, best - 1)])
    high = float(grid[min(200, best + 1)])
    share = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        left = high - share * (high - low)
        right = low + share * (high - low)
        if deviance(left) < deviance(right):
            high = right
        else:
            low = left

    log_ratio = (low + high) / 2
    if best == 0:
        ratio = 0.0
    else:
        ratio = math.exp(log_ratio)

    within = residual(ratio)[0] / (size - 1)
    return ratio * within, within


# of the lattice: gives the ends of 95 % intervals to about 1 % of their distance from the middle
_POINTS = 8_192
# variance between questions, between answers to one, between verdicts on one
Parts = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Nested:
    """Verdicts within answers within questions, as sums of squares of unweighted means."""

    question: Codes  # of each answer
    verdicts: Floats  # per answer: how many
    means: Floats  # of each answer
    answers: Floats  # per question: how many
    question_means: Floats  # of its answers' means
    # variance of question means; within questions, of answers' means; within answers
    squares: Parts
    df: tuple[int, int, int]
    # of the variances below in each square: answers in the first, verdicts in both
    shares: tuple[float, float, float]

    @property
    def balanced(self) -> bool:
        """Every question has equally many answers, every answer equally many verdicts."""
        return self.df[0] > 0 and bool(
            (self.answers == self.answers[0]).all() and (self.verdicts == self.verdicts[0]).all()
        )

    @property
    def unknowable(self) -> str | None:
        """Why the three cannot be separated."""
        if self.df[0] < 1:
            return "needs two questions"
        if self.df[1] < 1:
            return "no question was answered twice"
        return None if self.df[2] > 0 else "no answer was judged twice"

    def parts(self, squares: Any) -> tuple[Any, Any, Any]:
        """The variances that the squares estimate; may be negative."""
        of_answers, verdicts_above, verdicts = self.shares
        agent = squares[1] - verdicts * squares[2]
        return squares[0] - of_answers * agent - verdicts_above * squares[2], agent, squares[2]


def answers_in_order(question: Iterable[object], judge: Iterable[object]) -> list[Hashable]:
    """The answer of each verdict, if only judges are known: each judges the answers in the same
    order.
    """
    seen: Counter[tuple[object, object]] = Counter()
    places: list[Hashable] = []
    for key in zip(question, judge, strict=True):
        places.append(seen[key])
        seen[key] += 1

    return places


def nested(values: Floats, question: list[object], answer: list[object]) -> Nested:
    """Values by answer by question. Raises ValueError for unequal lengths."""
    if not len(question) == len(answer) == values.size:
        raise ValueError(
            f"question and answer: must be as many as values ({values.size}), got "
            f"{len(question)}, {len(answer)}"
        )

    below = group(values, list(zip(question, answer, strict=True)))
    above = group(below.means, [label[0] for label in below.labels if isinstance(label, tuple)])
    answers = above.counts.astype(np.float64)
    verdicts = below.counts.astype(np.float64)
    df = (len(answers) - 1, len(verdicts) - len(answers), values.size - len(verdicts))
    # Σ 1/J over the answers to a question
    inverses = summed_by(above.codes, 1 / verdicts, len(answers))
    centred = above.means - above.means[:1]
    squares = (
        float(np.var(centred, ddof=1)) if df[0] > 0 else math.nan,
        float(above.squares.sum()) / df[1] if df[1] > 0 else math.nan,
        float(below.squares.sum()) / df[2] if df[2] > 0 else math.nan,
    )
    shares = (
        float(np.mean(1 / answers)) if answers.size else math.nan,
        float(np.mean(inverses / answers**2)) if answers.size else math.nan,
        float(np.sum((answers - 1) * inverses / answers)) / df[1] if df[1] > 0 else math.nan,
    )
    return Nested(
        question=above.codes,
        verdicts=verdicts,
        means=below.means,
        answers=answers,
        question_means=above.means,
        squares=squares,
        df=df,
        shares=shares,
    )


def reml_parts(data: Nested) -> Parts:
    """By restricted maximum likelihood, profiled over the two ratios to the judge's variance.

    If verdicts on one answer never differ, two levels are left.
    """
    from scipy.optimize import minimize

    total = data.squares[2] * data.df[2]
    if not total > 0:
        return *reml_of_two(group(data.means, data.question)), 0.0
    size = data.df[2] + data.means.size

    def fit(ratios: Floats | tuple[float, float]) -> tuple[float, float]:
        question, agent = ratios
        weights = data.verdicts / (1 + agent * data.verdicts)
        sums = summed_by(data.question, weights, data.answers.size)
        means = summed_by(data.question, weights * data.means, data.answers.size) / sums
        above = sums / (1 + question * sums)
        grand = float(above @ means) / float(above.sum())
        rss = (
            total
            + float(weights @ (data.means - means[data.question]) ** 2)
            + float(above @ (means - grand) ** 2)
        )
        spread = float(np.log1p(agent * data.verdicts).sum() + np.log1p(question * sums).sum())
        return (size - 1) * math.log(rss) + spread + math.log(float(above.sum())), rss

    def deviance(logs: Floats | tuple[float, float]) -> float:
        return fit(np.exp(np.clip(logs, -30.0, 30.0)))[0]

    grid = np.linspace(-12.0, 12.0, 25)
    start = np.array(min(((x, y) for x in grid for y in grid), key=deviance))
    result = minimize(
        deviance,
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2_000},
    )
    best = np.exp(np.clip(result.x, -30.0, 30.0))
    # a variance that vanishes is 0, not tiny
    for edge in ((0.0, best[1]), (best[0], 0.0), (0.0, 0.0)):
        if fit(edge)[0] <= fit(best)[0] + 1e-9:
            best = np.array(edge)

    verdicts = fit(best)[1] / (size - 1)
    return float(best[0]) * verdicts, float(best[1]) * verdicts, verdicts


def pivotal_parts(data: Nested) -> Floats:
    """Variances (3, points) compatible with the squares, each square over its own chi-squared.

    Generalised intervals are quantiles of functions of these (Weerahandi 1993, J. Am. Stat. Assoc.
    88:899; Burdick, Borror and Montgomery 2005, Design and Analysis of Gauge R&R Studies). The
    points are a fixed lattice, so nothing is random. Exact for the judge, close for the others if
    answers and verdicts are not equally many.
    """
    root = 1.324717957244746  # x³ = x + 1: steps of its powers fill a square evenly
    places = np.arange(_POINTS)
    tails = [(places + 0.5) / _POINTS, (places / root + 0.5) % 1.0, (places / root**2 + 0.5) % 1.0]
    squares = [
        ss * df / special.chdtri(df, tail)
        for ss, df, tail in zip(data.squares, data.df, tails, strict=True)
    ]
    return np.stack(data.parts(squares))


def pooled_sd(
    values: Iterable[object], clusters: Iterable[object], *, level: float = 0.95
) -> Interval:
    """The agent's noise: the root of the mean variance (n − 1) within questions.

    Questions with one answer do not contribute and are left out; `n` counts the others;
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
            value=math.nan,
            level=level,
            n=spread.n,
            method=method,
            observations=groups.values.size,
            reason=reason,
        )

    value = math.sqrt(spread.value)
    if value > 0:
        se = spread.se / (2 * value)
    else:
        se = spread.se

    if not math.isnan(spread.low):
        low = math.sqrt(max(0.0, spread.low))
    else:
        low = math.nan

    if not math.isnan(spread.high):
        high = math.sqrt(spread.high)
    else:
        high = math.nan

    return Interval(
        value=value,
        se=se,
        low=low,
        high=high,
        level=level,
        n=spread.n,
        method=method,
        df=spread.df,
        observations=groups.values.size,
        reason=spread.reason,
    )


def between_sd(
    values: Iterable[object], clusters: Iterable[object], *, level: float = 0.95
) -> Interval:
    """The standard deviation (n − 1) of question means, including the agent's noise.

    `variance_components` takes that noise out. The interval is chi-squared, exact if
    question means are normal. Fewer than two questions: NaN.

    >>> between_sd([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"]).value
    0.8660254037844386
    """
    groups = group(values, clusters)
    check_level(level)
    n = len(groups.labels)
    method = "sd of question means"
    if groups.missing or n < 2:
        missing = f"{groups.missing} of {groups.values.size} values are missing"
        reason = missing if groups.missing else "needs two questions"
        return Interval(
            value=math.nan,
            level=level,
            n=n,
            method=method,
            observations=groups.values.size,
            reason=reason,
        )

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
    y: Iterable[object],
    question: Iterable[object],
    *,
    judge: Iterable[object] | None = None,
    answer: Iterable[object] | None = None,
    method: Literal["auto", "anova", "reml"] = "auto",
    level: float = 0.95,
) -> VarianceComponents:
    """Variance between questions, between repetitions of one question, and between verdicts on one
    answer.

    With `y` and `question` alone: two levels, and the judge's noise is part of the repetitions'
    variance. If answers were judged more than once, `answer` names the repetition that each value
    judges (within its question), and the judge's variance is separate. `judge` alone does the same:
    it names the judge, or the repeat, and each is assumed to judge a question's answers in the same
    order. Levels that differ between judges count as the judge's variance.

    Random effects. `auto`: ANOVA if all counts are equal, else REML. Raw ANOVA estimates may be
    negative and are kept; the shares come from max(0, ·). Intervals of two levels: chi-squared
    within, Williams–Tukey between, Searle's F for the ICC; if counts differ, the last two use
    unweighted question means and the harmonic mean of the counts (Thomas and Hultquist), not the
    estimate, which is rarely outside: `reason` reports it. For three levels: generalised, by
    chi-squared pivots. Variances are cut at 0. Too few questions, repetitions or verdicts to
    separate them: NaN with a reason.

    >>> found = variance_components([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"])
    >>> round(found.within.value, 4), round(found.between.value, 4), round(found.icc.value, 4)
    (0.3333, 0.5833, 0.6364)
    >>> judged = variance_components(
    ...     [4, 5, 2, 2, 1, 2, 3, 4], [*"aaaabbbb"], answer=[1, 1, 2, 2, 1, 1, 2, 2]
    ... )
    >>> judged.within.value, judged.judge and judged.judge.value
    (2.375, 0.375)

    Searle, Casella and McCulloch (1992), Variance Components, chapters 3 and 5; Thomas and
    Hultquist (1978), Ann. Stat. 6:582; Weerahandi (1993), J. Am. Stat. Assoc. 88:899.
    """
    if method not in ("auto", "anova", "reml"):
        raise ValueError(f"method: must be auto, anova or reml, got {method!r}")
    check_level(level)
    if judge is not None or answer is not None:
        # Three levels.
        y = columns("y", y)
        question = list(question)
        if judge is None:
            judges = None
        else:
            judges = list(judge)

        if judges is not None and not len(judges) == len(question) == y.size:
            raise ValueError(
                f"question and judge: must be as many as values ({y.size}), got "
                f"{len(question)}, {len(judges)}"
            )

        if answer is None:
            named = answers_in_order(question, judges or ())
        else:
            named = list(answer)

        data = nested(y, question, named)
        missing = int(np.count_nonzero(~np.isfinite(y)))
        reason = data.unknowable
        if missing:
            reason = f"{missing} of {y.size} values are missing"
        if method == "auto":
            method = "anova" if data.balanced else "reml"
        if reason is not None:
            return _unknown(group(y, question), 3, level=level, method=method, reason=reason)
        if method == "anova":
            parts = data.parts(data.squares)
        else:
            parts = reml_parts(data)

        return _three(data, parts, method=method, level=level, size=y.size)

    groups = group(y, question)
    reason = None
    if groups.missing:
        reason = f"{groups.missing} of {groups.values.size} values are missing"
    elif len(groups.labels) < 2:
        reason = "needs two questions"
    elif groups.values.size <= len(groups.labels):
        reason = "no question was answered twice"

    if reason is not None:
        return _unknown(groups, 2, level=level, method=method, reason=reason)
    if method == "auto":
        method = "anova" if bool((groups.counts == groups.counts[0]).all()) else "reml"
    return _components(groups, method, level)


def _unknown(
    groups: Groups,
    levels: int,
    *,
    level: float,
    method: str,
    reason: str,
) -> VarianceComponents:
    n = len(groups.labels)
    size = groups.values.size
    nothing = Interval(
        value=math.nan,
        level=level,
        n=n,
        method=method,
        observations=size,
        reason=reason,
    )
    mean = t_interval(groups.means, level=level, observations=size, missing=groups.missing)
    parts = (nothing,) * levels
    return _result(
        _Table(math.nan, math.nan, math.nan, (math.nan, math.nan)),
        mean,
        parts,
        parts,
        icc=nothing,
    )


def _result(
    table: _Table,
    mean: Interval,
    parts: Sequence[Interval],
    shares: Sequence[Interval],
    *,
    icc: Interval,
) -> VarianceComponents:
    """`parts` and `shares`: between, within and, of three levels, the judge."""
    three = len(parts) > 2
    if three:
        judge = parts[2]
    else:
        judge = None

    return VarianceComponents(
        mean=mean.value,
        se_mean=mean.se,
        between=parts[0],
        within=parts[1],
        judge=judge,
        share_between=shares[0].value,
        share_within=shares[1].value,
        share_judge=shares[2].value if three else None,
        share_intervals=tuple(shares),
        icc=icc,
        ms_between=table.ms_between,
        ms_within=table.ms_within,
        n0=table.n0,
        statistic=table.ratio,
        df=table.df,
        p=table.p,
        n=icc.n,
        observations=icc.observations,
        method=icc.method,
        reason=icc.reason,
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

    @property
    def p(self) -> float:
        if math.isnan(self.ratio):
            return math.nan
        return max(float(special.fdtrc(*self.df, self.ratio)), math.ulp(0.0))


def _components(groups: Groups, method: str, level: float) -> VarianceComponents:
    n = len(groups.labels)
    size = groups.values.size
    grand = centred_mean(groups.values)
    df = (float(n - 1), float(size - n))
    table = pivot = _Table(
        ms_between=float(np.sum(groups.counts * (groups.means - grand) ** 2)) / df[0],
        ms_within=float(groups.squares.sum()) / df[1],
        n0=(size - float(np.sum(groups.counts.astype(float) ** 2)) / size) / df[0],
        df=df,
    )
    if bool((groups.counts != groups.counts[0]).any()):
        # Weighted mean squares are then not a multiple of a chi-squared, and the intervals covered
        # too little: they are based on unweighted question means.
        harmonic = n / float(np.sum(1 / groups.counts))
        pivot = table._replace(ms_between=harmonic * sample_sd(groups.means) ** 2, n0=harmonic)

    between = (table.ms_between - table.ms_within) / table.n0
    within = table.ms_within
    if method == "reml":
        between, within = reml_of_two(groups)
    reason = None if table.ms_within > 0 or table.ms_between > 0 else "all values are equal"
    mean = t_interval(groups.means, level=level, observations=size)
    shares, bounds = _shares((between, within)), _bounds(pivot, level)

    def estimate(part: str, value: float) -> Interval:
        low, high = bounds[part]
        why = reason or (_point(pivot) if low == high else None)
        # others are cut at 0, estimates are not
        outside = value > high or (value < low and (low > 0 or part == "icc"))
        if reason is None and pivot is not table and outside:
            why = "made from unweighted question means, the interval does not hold the estimate"
        return Interval(
            value=value,
            low=low,
            high=high,
            level=level,
            n=n,
            method=method,
            observations=size,
            reason=why,
        )

    of_each = [
        estimate(part, share)
        for part, share in zip(("of between", "of within"), shares, strict=True)
    ]
    icc = estimate("icc", between / (between + within) if between + within > 0 else math.nan)
    parts = estimate("between", between), estimate("within", within)
    return replace(_result(table, mean, parts, of_each, icc=icc), reason=reason)


def _point(table: _Table) -> str:
    """Why an interval has only one end."""
    if not table.ms_within > 0:
        return "answers to one question never differ: the interval is a point"
    if not table.ms_between > 0:
        return "all question means are equal: the interval is a point"
    return (
        "questions differ less than the noise of answers explains: no part of the interval is "
        "above 0"
    )


def _shares(parts: tuple[float, ...]) -> list[float]:
    """The shares of max(0, ·) in their sum; NaN if the sum is 0."""
    kept = [max(0.0, part) for part in parts]
    found = []
    for part in kept:
        if exact_sum(kept) > 0:
            found.append(part / exact_sum(kept))
        else:
            found.append(math.nan)

    return found


def _bounds(table: _Table, level: float) -> dict[str, tuple[float, float]]:
    """Williams–Tukey for the variance between, chi-squared within, Searle's F for the ICC."""
    within = _chi_squared_bounds(table.ms_within, table.df[1], level)
    small, large = _chi_squared_bounds(table.ms_between, table.df[0], level)
    n0 = table.n0
    ratio = table.ratio
    if not math.isfinite(ratio):
        between, low, high = (
            (small / n0, large / n0),
            *((1.0, 1.0) if ratio > 0 else (math.nan, math.nan)),
        )
    else:
        upper, lower = (
            float(special.fdtri(*table.df, tail)) for tail in (0.5 + level / 2, 0.5 - level / 2)
        )
        between = (0.0, 0.0)
        if ratio > 0:
            between = (
                max(0.0, small * (1 - upper / ratio) / n0),
                max(0.0, large * (1 - lower / ratio) / n0),
            )

        low, high = ((ratio / bound - 1) / (ratio / bound + n0 - 1) for bound in (upper, lower))

    share = (min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))  # this argument order keeps NaN
    of_within = (1 - share[1], 1 - share[0])
    return {
        "within": within,
        "between": between,
        "icc": (low, high),
        "of between": share,
        "of within": of_within,
    }


def _chi_squared_bounds(variance: float, df: float, level: float) -> tuple[float, float]:
    low, high = (
        variance * df / float(special.chdtri(df, tail))
        for tail in (0.5 - level / 2, 0.5 + level / 2)
    )
    return low, high


def _three(
    data: Nested,
    parts: tuple[float, ...],
    *,
    method: str,
    level: float,
    size: int,
) -> VarianceComponents:
    # Mean squares of questions over those of answers; they have no F if counts are unequal
    answers, verdicts = (
        float(counts.mean()) if data.balanced else math.nan
        for counts in (data.answers, data.verdicts)
    )
    table_of_three = _Table(
        ms_between=answers * verdicts * data.squares[0],
        ms_within=verdicts * data.squares[1],
        n0=1 / data.shares[0],
        df=(float(data.df[0]), float(data.df[1])),
    )

    total = exact_sum(parts)
    shares = _shares(parts)
    table = table_of_three
    reason = "all values are equal" if math.isnan(shares[0]) else None
    possible = np.maximum(pivotal_parts(data), 0.0)
    if reason is None:
        ratios = possible / possible.sum(axis=0)
    else:
        ratios = np.full_like(possible, np.nan)

    mean = t_interval(data.question_means, level=level, observations=size)

    def estimate(value: float, points: Floats) -> Interval:
        low, high = np.quantile(points, (0.5 - level / 2, 0.5 + level / 2)).tolist()
        why = reason or ("it is the same at every point of the interval" if low == high else None)
        interval = Interval(
            value=value,
            low=low,
            high=high,
            level=level,
            n=data.df[0] + 1,
            method=method,
        )
        return replace(interval, observations=size, reason=why)

    of_parts = [estimate(part, points) for part, points in zip(parts, possible, strict=True)]
    of_each = [estimate(share, points) for share, points in zip(shares, ratios, strict=True)]
    icc = replace(of_each[0], value=parts[0] / total if total > 0 else math.nan)
    return replace(_result(table, mean, of_parts, of_each, icc=icc), reason=reason)
