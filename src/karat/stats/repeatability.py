"""Would a verdict come out the same if the run were made again?"""

from __future__ import annotations

import math

from msgspec import Struct

from karat.stats import special
from karat.stats._groups import check_level, t_quantile

__all__ = ["SameVerdict", "same_verdict"]


class SameVerdict(Struct, frozen=True, kw_only=True):
    """The chance that a repeat of a comparison gives the same verdict. NaN: unknown; `reason` explains why."""

    new_questions: float  # a repeat with other questions of the same kind
    same_questions: float  # a repeat of the same questions; NaN if each was answered once
    significant: bool  # the verdict itself: the interval excludes 0
    level: float
    reason: str | None = None


def same_verdict(
    value: float, se: float, df: float, *, agent_variance: float = math.nan, level: float = 0.95
) -> SameVerdict:
    """The chance that a repeat gives the same verdict: a difference with the same sign, or again none.

    `value`, `se`, `df`: of the difference, as `paired_difference` returns them. `agent_variance`: the part of se^2
    that comes from repeated answers to one question, the sum over both conditions of (variance within questions) /
    (repetitions * questions). A repeat is assumed normal around `value` with variance 2*se^2 (new questions) or
    2*agent_variance (the same ones), so effects of all sizes count as equally likely: if there is no difference,
    "no difference" is more repeatable than this estimates (90 % instead of 76 %).

    >>> chance = same_verdict(1.98, 1.0, 1e6)
    >>> round(chance.new_questions, 2), round(same_verdict(3.2905, 1.0, 1e6).new_questions, 2)
    (0.51, 0.83)

    Goodman (1992), Statistics in Medicine 11:875.
    """
    bar = t_quantile(0.5 + check_level(level) / 2, df) * se
    if not se > 0 or math.isnan(bar) or math.isnan(value):
        return SameVerdict(
            new_questions=math.nan,
            same_questions=math.nan,
            significant=False,
            level=level,
            reason="the difference has no interval" if se != 0 else "every question has the same difference",
        )
    significant = abs(value) > bar

    def chance(variance: float) -> float:
        if math.isnan(variance):
            return math.nan
        sd = math.sqrt(2 * variance)
        if sd == 0:
            return 1.0
        above = float(special.ndtr((abs(value) - bar) / sd))
        return above if significant else 1 - above - float(special.ndtr((-bar - abs(value)) / sd))

    reason = None if agent_variance >= 0 else "each question was answered once: the agent's own spread is not known"
    return SameVerdict(
        new_questions=chance(se * se),
        same_questions=chance(min(agent_variance, se * se) if agent_variance >= 0 else math.nan),
        significant=significant,
        level=level,
        reason=reason,
    )
