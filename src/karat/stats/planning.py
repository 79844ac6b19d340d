"""Before an experiment: how many questions and repetitions, the effects they can show, and their
cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from karat.stats import special
from karat.stats._groups import Groups, columns, group, z_quantile
from karat.stats.intervals import sample_sd
from karat.stats.power import (
    Planned,
    check_power,
    effect_size_ttest,
    normal_sum,
    power_ttest,
    sample_size_ttest,
)
from karat.sums import exact_sum

OneOrTwo = float | tuple[float, float]
Method = Literal["t", "z"]


def questions_needed(
    delta: float,
    var_between: float,
    var_within: OneOrTwo = 0.0,
    repetitions: OneOrTwo = 1,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    method: Method = "t",
) -> Planned:
    """How many questions show a difference of `delta` between two conditions that both answer them
    all.

    `var_between`: the variance over questions of the *true difference* between the conditions, not
    of scores;
    `var_within`: the variance of repeated answers to one question; both from
    `difference_variances`. A pair gives one number per condition. `t` uses the noncentral t; `z` is
    the normal formula, which is about two questions short. `value` is the solution, `n` the
    smallest whole number that is enough.

    >>> found = questions_needed(0.03, 1 / 9, method="z")
    >>> round(found.value, 3), found.n
    (968.997, 969)

    Miller (2024), arXiv:2411.00640, section 5.
    """
    check_power(power, alpha)
    spread = question_variance(var_between, var_within, repetitions)
    if not delta > 0:
        raise ValueError(f"delta: must be above 0, got {delta:g}")
    if spread == 0:
        none = "nothing varies: two questions show every difference"
        test = _named(method)
        test = "paired t, two-sided" if test == "t" else test
        return Planned(value=2.0, n=2, power=1.0, alpha=alpha, method=test, reason=none)

    if method == "t":
        return sample_size_ttest(delta / math.sqrt(spread), power=power, alpha=alpha)
    value = normal_sum(power, alpha) ** 2 * spread / delta**2
    n = max(2, math.ceil(value))
    reached = _normal_power(delta * math.sqrt(n / spread), alpha)
    return Planned(value=value, n=n, power=reached, alpha=alpha, method=_named(method))


def minimum_detectable_effect(
    questions: int,
    var_between: float,
    var_within: OneOrTwo = 0.0,
    repetitions: OneOrTwo = 1,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    method: Method = "t",
) -> Planned:
    """The smallest difference between two conditions that this many questions show with this power.

    Everything else as in `questions_needed`, its inverse. Fewer than two questions: NaN.

    >>> round(minimum_detectable_effect(200, 0.25, 0.5, 3).value, 3)
    0.152

    Miller (2024), arXiv:2411.00640, section 5.
    """
    spread = question_variance(var_between, var_within, repetitions)
    if _named(method) == "z":
        check_power(power, alpha)
        errors = normal_sum(power, alpha)
        if not questions > 1:
            few = "too few questions"
            return Planned(
                value=math.nan,
                n=questions,
                power=power,
                alpha=alpha,
                method="z",
                reason=few,
            )

        value = errors * math.sqrt(spread / questions)
        reached = _normal_power(errors, alpha)
        return Planned(value=value, n=questions, power=reached, alpha=alpha, method="z")

    effect = effect_size_ttest(questions, power=power, alpha=alpha)
    return Planned(
        value=effect.value * math.sqrt(spread),
        n=effect.n,
        power=power,
        alpha=alpha,
        method=effect.method,
        reason=effect.reason,
    )


def repetitions_needed(
    delta: float,
    questions: int,
    var_between: float,
    var_within: OneOrTwo,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
) -> Planned:
    """How often each of a fixed number of questions must be answered, under both conditions, to
    show `delta`.

    Repetitions only reduce the noise of the answers: if questions differ too much, no
    number is enough, and `reason` explains it. `n` counts repetitions here.

    >>> repetitions_needed(0.2, 100, 0.2, 0.5).n
    4
    >>> repetitions_needed(0.1, 100, 0.2, 0.5).reason
    'no number of repetitions is enough: 100 questions show 0.13 at best'

    Miller (2024), arXiv:2411.00640, section 5.
    """
    if not delta > 0:
        raise ValueError(f"delta: must be above 0, got {delta:g}")
    first, second = _pair("var_within", var_within)
    question_variance(var_between, var_within, 1)
    size = effect_size_ttest(questions, power=power, alpha=alpha)
    room = (delta / size.value) ** 2 - var_between
    if math.isnan(size.value) or room <= 0:
        best = size.value * math.sqrt(var_between)
        shown = f"no number of repetitions is enough: {questions} questions show {best:.2g} at best"
        why = size.reason or shown
        return Planned(
            value=math.nan,
            n=None,
            power=power,
            alpha=alpha,
            method=size.method,
            reason=why,
        )

    value = (first + second) / room
    n = max(1, math.ceil(value * (1 - 1e-12)))
    spread = question_variance(var_between, var_within, n)
    reached = 1.0
    if spread > 0:
        reached = power_ttest(delta / math.sqrt(spread), questions, alpha=alpha).power
    return Planned(value=value, n=n, power=reached, alpha=alpha, method=size.method)


def planned_se(
    questions: int,
    var_between: float,
    var_within: float = 0.0,
    repetitions: int = 1,
) -> float:
    """The error that the mean of one condition will have: √((s_b² + s_w²/K) / questions).

    >>> round(planned_se(100, 0.4, 0.5, 3), 6)
    0.075277

    Miller (2024), arXiv:2411.00640, section 3.
    """
    if questions < 1 or repetitions < 1:
        raise ValueError(
            f"questions, repetitions: must be at least 1, got {questions}, {repetitions}"
        )

    question_variance(var_between, var_within, 1)
    return math.sqrt((var_between + var_within / repetitions) / questions)


def spearman_brown(reliability: float, k: float) -> float:
    """The reliability of a mean of k answers, given that of one (its ICC).

    >>> round(spearman_brown(0.8, 3), 4)
    0.9231

    Spearman (1910), Br. J. Psychol. 3:271; Brown (1910), Br. J. Psychol. 3:296.
    """
    if not k > 0:
        raise ValueError(f"k: must be above 0, got {k:g}")
    if reliability > 1:
        raise ValueError(f"reliability: must be at most 1, got {reliability:g}")
    below = 1 + (k - 1) * reliability
    if below > 0:
        return k * reliability / below
    return math.nan


@dataclass(frozen=True, kw_only=True, slots=True)
class DifferenceVariances:
    """The variance parts of a difference between two conditions; NaN and a reason if unknown."""

    # variance over questions of the differences of means: as planned for the same repetitions
    total: float
    between: float  # of the true differences; at least 0
    raw_between: float  # the estimate itself, which may be negative
    within: tuple[float, float]  # of repeated answers to one question, under a and b
    n: int  # questions answered under both
    reason: str | None = None


def difference_variances(
    a: Iterable[object],
    b: Iterable[object],
    clusters: Iterable[object],
    *,
    clusters_b: Iterable[object] | None = None,
) -> DifferenceVariances:
    """Variances for a plan from a pilot run: of the differences between questions, and of repeated
    answers.

    Var(d) − s_a²/K_a − s_b²/K_b over the questions that both answered (1/K averaged if it varies).
    None, NaN and infinities are left out. If no question was answered twice under a condition, its
    part cannot be separated: NaN; a plan for the same repetitions can then use `total` and no
    `var_within`.

    >>> found = difference_variances(
    ...     [3, 4, 2, 2, 5, 4], [4, 4, 2, 3, 4, 4], ["q1", "q1", "q2", "q2", "q3", "q3"]
    ... )
    >>> round(found.total, 4), round(found.between, 4), found.n
    (0.3333, 0.0833, 3)

    Miller (2024), arXiv:2411.00640, section 5.
    """
    at = list(clusters)
    first = _known(a, at)
    second = _known(b, at if clusters_b is None else list(clusters_b))
    places = {label: place for place, label in enumerate(second.labels)}
    both = []
    for place, label in enumerate(first.labels):
        if label in places:
            both.append((place, places[label]))

    here, there = (np.array([pair[side] for pair in both], dtype=np.int64) for side in (0, 1))
    total = sample_sd(second.means[there] - first.means[here]) ** 2
    within = _within(first, here), _within(second, there)
    noise = exact_sum(
        part * float(np.mean(1 / groups.counts[rows])) if rows.size else math.nan
        for part, groups, rows in zip(within, (first, second), (here, there), strict=True)
    )
    raw = total - noise
    reason = None
    if math.isnan(total):
        reason = "needs two questions answered under both"
    elif math.isnan(raw):
        reason = "no question was answered twice under each condition"
    elif raw < 0:
        reason = "answers vary more than differences do: taken as 0 between questions"

    if raw == raw:
        between = max(0.0, raw)
    else:
        between = math.nan

    return DifferenceVariances(
        total=total,
        between=between,
        raw_between=raw,
        within=within,
        n=len(both),
        reason=reason,
    )


def _known(values: Iterable[object], clusters: list[object]) -> Groups:
    listed = columns("values", values)
    if listed.size != len(clusters):
        raise ValueError(
            f"clusters: must be as many as values ({listed.size}), got {len(clusters)}"
        )

    kept = np.isfinite(listed)
    return group(
        listed[kept], [at for at, there in zip(clusters, kept.tolist(), strict=True) if there]
    )


def _within(groups: Groups, rows: npt.NDArray[np.int64]) -> float:
    spare = int((groups.counts[rows] - 1).sum())
    if spare:
        return float(groups.squares[rows].sum()) / spare
    return math.nan


def question_variance(var_between: float, var_within: OneOrTwo, repetitions: OneOrTwo) -> float:
    """The variance of one question's difference.

    Raises ValueError if negative, or for less than one repetition.
    """
    within = _pair("var_within", var_within)
    times = _pair("repetitions", repetitions)
    for name, value in (
        ("var_between", var_between),
        *(("var_within", variance) for variance in within),
    ):
        if not (value >= 0 and math.isfinite(value)):
            raise ValueError(f"{name}: must be a number of at least 0, got {value:g}")

    if not min(times) >= 1:
        raise ValueError(f"repetitions: must be at least 1, got {min(times):g}")
    return var_between + exact_sum(variance / k for variance, k in zip(within, times, strict=True))


def _pair(name: str, value: OneOrTwo) -> tuple[float, float]:
    if isinstance(value, (int, float, np.number)):
        return float(value), float(value)
    listed = tuple(float(number) for number in value)
    if len(listed) != 2:
        raise ValueError(
            f"{name}: must be one number, or one for each of two conditions, got {len(listed)}"
        )

    return listed


def _normal_power(errors: float, alpha: float) -> float:
    """The power of a two-sided normal test, given the effect in standard errors."""
    bar = -z_quantile(alpha / 2)
    return float(special.ndtr(errors - bar) + special.ndtr(-errors - bar))


def _named(method: Method) -> str:
    if method not in ("t", "z"):
        raise ValueError(f"method: must be t or z, got {method!r}")
    return method


_MOST_REPETITIONS, _MOST_JUDGEMENTS = 1_000, 50


def optimal_repetitions(
    var_between: float,
    var_within: float,
    *,
    cost_question: float,
    cost_run: float,
) -> float:
    """How often to ask each question so that a budget gives the smallest error: √(c_q/c_r · s²/w²),
    at least 1.

    A question costs `cost_question` once; `cost_run`: one repetition under all the conditions
    compared. If a question costs 0, the answer is 1: more questions are always better than more
    repetitions. If questions do not differ, infinity. `var_within` is the sum over the conditions
    compared.

    >>> round(optimal_repetitions(0.3, 0.2, cost_question=2, cost_run=1), 4)
    1.1547

    Cochran (1977), Sampling Techniques, section 10.6.
    """
    question_variance(var_between, var_within, 1)
    if cost_question < 0 or not cost_run > 0:
        raise ValueError(
            f"cost_run: must be above 0 and cost_question at least 0, got {cost_run:g}, "
            f"{cost_question:g}"
        )

    if cost_question == 0 or var_within == 0:
        return 1.0
    if var_between:
        return max(1.0, math.sqrt(cost_question / cost_run * var_within / var_between))
    return math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """The best use of a budget."""

    questions: int  # 0: the budget is too small for two
    repetitions: int  # answers to each question under each condition
    judge_repeats: int  # scores per answer
    se: float  # of the difference (of the mean, with one condition)
    cost: float  # total cost, in the unit of the costs
    reason: str | None = None


def best_split(  # noqa: PLR0913 – a budget, three prices, three variances, and the comparison
    budget: float,
    cost_agent: float,
    cost_judge: float = 0.0,
    *,
    var_between: float,
    var_within: float,
    var_judge: float = 0.0,
    cost_question: float = 0.0,
    conditions: int = 2,
    max_questions: int | None = None,
) -> Split:
    """More questions or more repetitions: the whole numbers that make the error smallest for this
    money.

    A question costs `cost_question` once, each answer `cost_agent`, each score of an answer
    `cost_judge`. `var_between`: of the true difference over questions (with one condition: of the
    questions' true means); `var_within`: of answers to one question, `var_judge`: of scores of one
    answer, both under one condition. Every combination of up to 1,000 repetitions and 50 scores per
    answer is tried (if the best is the last, `reason` reports it); among equals the cheapest is
    chosen. If questions are free and `max_questions` is not given, repetitions never pay.

    >>> best_split(60, 0.02, 0.01, var_between=0.25, var_within=0.5, cost_question=0.5)
    Split(questions=75, repetitions=5, judge_repeats=1, se=0.0774..., cost=60.0, reason=None)

    Cochran (1977), Sampling Techniques, chapter 10; Miller (2024), arXiv:2411.00640, section 3.
    """
    costs = {
        "budget": budget,
        "cost_agent": cost_agent,
        "cost_judge": cost_judge,
        "cost_question": cost_question,
    }
    for name, value in {**costs, "var_judge": var_judge}.items():
        if not (value >= 0 and math.isfinite(value)):
            raise ValueError(f"{name}: must be a number of at least 0, got {value:g}")

    if conditions not in (1, 2):
        raise ValueError(f"conditions: must be 1 or 2, got {conditions}")
    question_variance(var_between, var_within, 1)
    answers = np.arange(1, _MOST_REPETITIONS + 1, dtype=np.float64)[:, None]
    scores = np.arange(1, (_MOST_JUDGEMENTS if var_judge > 0 else 1) + 1, dtype=np.float64)[None, :]
    price = cost_question + conditions * answers * (cost_agent + scores * cost_judge)
    if max_questions is None and not float(price[0, 0]) > 0:
        raise ValueError("max_questions: is required where nothing costs anything")
    with np.errstate(divide="ignore", invalid="ignore"):
        # 1e-9: 60 / 0.6 questions are 100, despite floating-point rounding
        paid = np.where(price > 0, np.floor(budget / price * (1 + 1e-9)), math.inf)

    questions = np.minimum(paid, math.inf if max_questions is None else max_questions)
    spread = var_between + conditions * (var_within + var_judge / scores) / answers
    variance = np.where(questions >= 2, spread / np.maximum(questions, 1), math.inf)
    least = float(variance.min())
    cost = questions * price
    if math.isinf(least):
        few = "the budget is not enough for two questions"
        split = Split(
            questions=0,
            repetitions=0,
            judge_repeats=0,
            se=math.nan,
            cost=0.0,
            reason=few,
        )
    else:
        cheapest = np.argmin(np.where(variance <= least * (1 + 1e-12), cost, math.inf))
        row, column = (int(place) for place in np.unravel_index(cheapest, cost.shape))
        split = Split(
            questions=int(questions[row, column]),
            repetitions=row + 1,
            judge_repeats=column + 1,
            se=math.sqrt(least),
            cost=float(cost[row, column]),
        )

    if max_questions is not None and max_questions < 2:
        return replace(
            split, reason=f"max_questions is {max_questions}: an error needs two questions"
        )

    # at the edge of the search, more might be even better
    if split.repetitions == _MOST_REPETITIONS:
        most = [f"{_MOST_REPETITIONS} repetitions"]
    else:
        most = []

    if split.judge_repeats == _MOST_JUDGEMENTS:
        most += [f"{_MOST_JUDGEMENTS} judge repeats"]
    return replace(
        split,
        reason=split.reason or (f"no more than {' and '.join(most)} were tried" if most else None),
    )
