"""Three sources of spread: questions differ, the agent's answers differ, the judge's verdicts on one answer differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.stats._groups import Codes, Floats, group, summed_by
from karat.stats._reml import reml_of_two

__all__ = ["Nested", "answers_in_order", "nested", "pivotal_parts", "reml_parts"]

_POINTS = 8_192  # of the lattice: ends of 95 % intervals to about 1 % of their distance from the middle
Parts = tuple[float, float, float]  # variance between questions, between answers to one, between verdicts on one


@dataclass(frozen=True, kw_only=True, slots=True)
class Nested:
    """Verdicts within answers within questions, as sums of squares of unweighted means."""

    question: Codes  # of each answer
    verdicts: Floats  # on each answer: how many
    means: Floats  # of each answer
    answers: Floats  # to each question: how many
    question_means: Floats  # of its answers' means
    squares: Parts  # variance of question means; within questions, of answers' means; within answers
    df: tuple[int, int, int]
    shares: tuple[float, float, float]  # of the variances below in each square: answers in the first, verdicts in both

    @property
    def balanced(self) -> bool:
        """Every question has as many answers, every answer as many verdicts."""
        return self.df[0] > 0 and bool(
            (self.answers == self.answers[0]).all() and (self.verdicts == self.verdicts[0]).all()
        )

    @property
    def unknowable(self) -> str | None:
        """Why the three cannot be told apart."""
        if self.df[0] < 1:
            return "needs two questions"
        if self.df[1] < 1:
            return "no question was answered twice"
        return None if self.df[2] > 0 else "no answer was judged twice"

    def parts(self, squares: Any) -> tuple[Any, Any, Any]:
        """The variances that the squares stand for on average; may be negative."""
        of_answers, verdicts_above, verdicts = self.shares
        agent = squares[1] - verdicts * squares[2]
        return squares[0] - of_answers * agent - verdicts_above * squares[2], agent, squares[2]


def answers_in_order(question: Iterable[Any], judge: Iterable[Any]) -> list[Hashable]:
    """Which answer each verdict is on, where only judges are known: each judges the answers in the same order."""
    seen: Counter[tuple[Any, Any]] = Counter()
    places: list[Hashable] = []
    for key in zip(question, judge, strict=True):
        places.append(seen[key])
        seen[key] += 1
    return places


def nested(values: Floats, question: list[Any], answer: list[Any]) -> Nested:
    """Values by answer by question. Raises ValueError for unequal lengths."""
    if not len(question) == len(answer) == values.size:
        raise ValueError(
            f"question and answer: must be as many as values ({values.size}), got {len(question)}, {len(answer)}"
        )
    below = group(values, list(zip(question, answer, strict=True)))
    above = group(below.means, [label[0] for label in below.labels if isinstance(label, tuple)])
    answers, verdicts = above.counts.astype(np.float64), below.counts.astype(np.float64)
    df = (len(answers) - 1, len(verdicts) - len(answers), values.size - len(verdicts))
    each = summed_by(above.codes, 1 / verdicts, len(answers))  # Σ 1/J over the answers to a question
    centred = above.means - above.means[:1]
    squares = (
        float(np.var(centred, ddof=1)) if df[0] > 0 else math.nan,
        float(above.squares.sum()) / df[1] if df[1] > 0 else math.nan,
        float(below.squares.sum()) / df[2] if df[2] > 0 else math.nan,
    )
    shares = (
        float(np.mean(1 / answers)) if answers.size else math.nan,
        float(np.mean(each / answers**2)) if answers.size else math.nan,
        float(np.sum((answers - 1) * each / answers)) / df[1] if df[1] > 0 else math.nan,
    )
    return Nested(
        question=above.codes, verdicts=verdicts, means=below.means, answers=answers,
        question_means=above.means, squares=squares, df=df, shares=shares,
    )  # fmt: skip


def reml_parts(data: Nested) -> Parts:
    """By restricted maximum likelihood, profiled over the two ratios to the judge's variance.

    Where verdicts on one answer never differ, two levels are left.
    """
    from scipy.optimize import minimize

    total = data.squares[2] * data.df[2]
    if not total > 0:
        return *reml_of_two(group(data.means, data.question)), 0.0
    size = data.df[2] + data.means.size

    def fit(ratios: Any) -> tuple[float, float]:
        question, agent = ratios
        weights = data.verdicts / (1 + agent * data.verdicts)
        sums = summed_by(data.question, weights, data.answers.size)
        means = summed_by(data.question, weights * data.means, data.answers.size) / sums
        above = sums / (1 + question * sums)
        grand = float(above @ means) / float(above.sum())
        rest = total + float(weights @ (data.means - means[data.question]) ** 2) + float(above @ (means - grand) ** 2)
        spread = float(np.log1p(agent * data.verdicts).sum() + np.log1p(question * sums).sum())
        return (size - 1) * math.log(rest) + spread + math.log(float(above.sum())), rest

    def deviance(logs: Any) -> float:
        return fit(np.exp(np.clip(logs, -30.0, 30.0)))[0]

    grid = np.linspace(-12.0, 12.0, 25)
    start = np.array(min(((one, two) for one in grid for two in grid), key=deviance))
    found = minimize(deviance, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2_000})
    best = np.exp(np.clip(found.x, -30.0, 30.0))
    for edge in ((0.0, best[1]), (best[0], 0.0), (0.0, 0.0)):  # a variance that vanishes is 0, not tiny
        if fit(edge)[0] <= fit(best)[0] + 1e-9:
            best = np.array(edge)
    verdicts = fit(best)[1] / (size - 1)
    return float(best[0]) * verdicts, float(best[1]) * verdicts, verdicts


def pivotal_parts(data: Nested) -> Floats:
    """Variances (3, points) that the squares could stand for, each square over its own chi-squared.

    Generalised intervals are quantiles of functions of these (Weerahandi 1993, J. Am. Stat. Assoc.
    88:899; Burdick, Borror and Montgomery 2005, Design and Analysis of Gauge R&R Studies). The points
    are a fixed lattice, so that nothing is random. Exact for the judge, close for the others where
    answers and verdicts are not equally many.
    """
    from karat.stats.special import chdtri

    root = 1.324717957244746  # x³ = x + 1: steps of its powers fill a square evenly
    places = np.arange(_POINTS)
    tails = [(places + 0.5) / _POINTS, (places / root + 0.5) % 1.0, (places / root**2 + 0.5) % 1.0]
    squares = [square * df / chdtri(df, tail) for square, df, tail in zip(data.squares, data.df, tails, strict=True)]
    return np.stack(data.parts(squares))
