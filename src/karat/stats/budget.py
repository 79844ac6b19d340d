"""What a budget is best spent on: more questions, more repetitions, or more judging."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from karat.stats._groups import Floats
from karat.stats.planning import question_variance

__all__ = ["Split", "best_split", "optimal_repetitions"]

_MOST_REPETITIONS, _MOST_JUDGEMENTS = 1_000, 50


def optimal_repetitions(var_between: float, var_within: float, *, cost_question: float, cost_run: float) -> float:
    """How often to ask each question so that a budget gives the smallest error: √(c_q/c_r · s²/w²), at least 1.

    A question costs `cost_question` once; `cost_run`: one repetition under all the conditions compared. Where it
    costs nothing once, the answer is 1: more questions are always better than more repetitions. Where
    questions do not differ, infinity. `var_within` sums over the conditions that are compared.

    >>> round(optimal_repetitions(0.3, 0.2, cost_question=2, cost_run=1), 4)
    1.1547

    Cochran (1977), Sampling Techniques, section 10.6.
    """
    question_variance(var_between, var_within, 1)
    if cost_question < 0 or not cost_run > 0:
        raise ValueError(f"cost_run: must be above 0 and cost_question at least 0, got {cost_run:g}, {cost_question:g}")
    if cost_question == 0 or var_within == 0:
        return 1.0
    return max(1.0, math.sqrt(cost_question / cost_run * var_within / var_between)) if var_between else math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """What a budget is best spent on."""

    questions: int  # 0: the budget is not enough for two
    repetitions: int  # answers to each question under each condition
    judge_repeats: int  # scores of each answer
    se: float  # of the difference (of the mean, with one condition)
    cost: float  # what it comes to, in the unit of the costs
    reason: str | None = None


def best_split(  # noqa: PLR0913 – a budget, three prices, three variances, and what is compared
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
    """More questions or more repetitions: the whole numbers that make the error smallest for this money.

    A question costs `cost_question` once, each answer `cost_agent`, each score of an answer `cost_judge`.
    `var_between`: of the true difference over questions (with one condition: of the questions' true means);
    `var_within`: of answers to one question, `var_judge`: of scores of one answer, both under one condition.
    Every combination of up to 1,000 repetitions and 50 scores an answer is tried (where the best is the last, `reason`
    says so); of equals the cheapest is taken. Without a cost once and without
    `max_questions` repetitions never pay.

    >>> best_split(60, 0.02, 0.01, var_between=0.25, var_within=0.5, cost_question=0.5)
    Split(questions=75, repetitions=5, judge_repeats=1, se=0.0774..., cost=60.0, reason=None)

    Cochran (1977), Sampling Techniques, chapter 10; Miller (2024), arXiv:2411.00640, section 3.
    """
    costs = {"budget": budget, "cost_agent": cost_agent, "cost_judge": cost_judge, "cost_question": cost_question}
    for name, value in {**costs, "var_judge": var_judge}.items():
        if not (value >= 0 and math.isfinite(value)):
            raise ValueError(f"{name}: must be a number of at least 0, got {value:g}")
    if conditions not in (1, 2):
        raise ValueError(f"conditions: must be 1 or 2, got {conditions}")
    question_variance(var_between, var_within, 1)
    answers = np.arange(1, _MOST_REPETITIONS + 1, dtype=np.float64)[:, None]
    scores = np.arange(1, (_MOST_JUDGEMENTS if var_judge > 0 else 1) + 1, dtype=np.float64)[None, :]
    each = cost_question + conditions * answers * (cost_agent + scores * cost_judge)
    if max_questions is None and not float(each[0, 0]) > 0:
        raise ValueError("max_questions: is required where nothing costs anything")
    with np.errstate(divide="ignore", invalid="ignore"):
        # 1e-9: 60 / 0.6 questions are 100, whatever floats make of it
        paid = np.where(each > 0, np.floor(budget / each * (1 + 1e-9)), math.inf)
    questions = np.minimum(paid, math.inf if max_questions is None else max_questions)
    spread = var_between + conditions * (var_within + var_judge / scores) / answers
    variance = np.where(questions >= 2, spread / np.maximum(questions, 1), math.inf)
    found = _cheapest(questions, variance, questions * each)
    if max_questions is not None and max_questions < 2:
        return replace(found, reason=f"max_questions is {max_questions}: an error needs two questions")
    return replace(found, reason=found.reason or _at_the_edge(found, judged=var_judge > 0))


def _at_the_edge(found: Split, *, judged: bool) -> str | None:
    """More than what is tried might be better still."""
    most = [f"{_MOST_REPETITIONS} repetitions"] if found.repetitions == _MOST_REPETITIONS else []
    most += [f"{_MOST_JUDGEMENTS} judge repeats"] if judged and found.judge_repeats == _MOST_JUDGEMENTS else []
    return f"no more than {' and '.join(most)} were tried" if most else None


def _cheapest(questions: Floats, variance: Floats, cost: Floats) -> Split:
    least = float(variance.min())
    if math.isinf(least):
        few = "the budget is not enough for two questions"
        return Split(questions=0, repetitions=0, judge_repeats=0, se=math.nan, cost=0.0, reason=few)
    row, column = np.unravel_index(np.argmin(np.where(variance <= least * (1 + 1e-12), cost, math.inf)), cost.shape)
    at = int(row), int(column)
    return Split(
        questions=int(questions[at]),
        repetitions=at[0] + 1,
        judge_repeats=at[1] + 1,
        se=math.sqrt(least),
        cost=float(cost[at]),
    )
