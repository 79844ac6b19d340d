"""Would a verdict come out the same if the run were made again?"""

from __future__ import annotations

import math

from msgspec import Struct

from karat.stats import special
from karat.stats._groups import check_level, t_quantile, z_quantile

# standard errors: the spread of true effects that are not 0; the detectable difference is 2.8
USUAL_EFFECT = 2.3
NULL_SHARE = 0.2  # of comparisons in which nothing differs
_LEAST = 1e-300  # a p that rounds to 0


class SameVerdict(Struct, frozen=True, kw_only=True):
    """The chance that a repeat of a comparison gives the same verdict.

    NaN: unknown; `reason` explains why.
    """

    new_questions: float  # a repeat with other questions of the same kind
    same_questions: float  # a repeat of the same questions; NaN if each was answered once
    significant: bool  # the verdict itself: the interval excludes 0
    level: float
    reason: str | None = None


def same_verdict(
    value: float,
    se: float,
    df: float,
    *,
    agent_variance: float = math.nan,
    level: float = 0.95,
) -> SameVerdict:
    """The chance that a repeat gives the same verdict: a difference with the same sign, or again
    none.

    `value`, `se`, `df`: of the difference, as `paired_difference` returns them. `agent_variance`:
    the part of se^2 that comes from repeated answers to one question, the sum over both conditions
    of (variance within questions) / (repetitions * questions).

    Observed winners are too large on average, so true effects are taken as 0 in a fifth of
    comparisons, and else as normal around 0 with a standard deviation of 2.3 standard errors:
    narrow winners are shrunk the most. In simulations where effects have a spread of 2 to 2.8
    standard errors, and where half of those are null, predictions are within 7 points of what
    repeats give, in every tenth of the winners. Where nothing differs at all a winner repeats 2
    times in 100, whatever is predicted. The difference is first put on the normal scale by its p:
    with few questions a large t is mostly a small error, and taken at its size 98 of 100 winners of
    6 questions would be expected again, where 79 are.

    >>> chance = same_verdict(1.98, 1.0, 1e6)
    >>> round(chance.new_questions, 2), round(same_verdict(3.2905, 1.0, 1e6).new_questions, 2)
    (0.37, 0.72)

    Goodman (1992), Statistics in Medicine 11:875; Senn (2002), Statistics in Medicine 21:2437 (the
    flat prior).
    """
    beyond = 0.5 + check_level(level) / 2
    bar = t_quantile(beyond, df) * se
    if not se > 0 or math.isnan(bar) or math.isnan(value):
        return SameVerdict(
            new_questions=math.nan,
            same_questions=math.nan,
            significant=False,
            level=level,
            reason="the difference has no interval"
            if se != 0
            else "every question has the same difference",
        )

    significant = abs(value) > bar
    if agent_variance >= 0:
        agent = min(agent_variance / se**2, 1.0)
    else:
        agent = math.nan

    # The chance that nothing differs, given a difference of z standard errors
    p = float(special.stdtr(df, -abs(value) / se))
    z = -float(special.ndtri(max(p, _LEAST)))
    bar = z_quantile(beyond)
    if z > 30:
        null = 0.0  # its exponential would overflow
    else:
        spread = 1 + USUAL_EFFECT**2
        evidence = math.exp(z * z / 2 * (1 - 1 / spread)) / math.sqrt(spread)
        null = NULL_SHARE / (NULL_SHARE + (1 - NULL_SHARE) * evidence)

    def chance(variance: float) -> float:
        """Of a repeat whose answers and questions differ from these by this variance."""
        if math.isnan(variance):
            return math.nan
        if_null = _same(z, bar, variance=variance, prior=0.0, significant=significant)
        if_not = _same(z, bar, variance=variance, prior=USUAL_EFFECT**2, significant=significant)
        return null * if_null + (1 - null) * if_not

    reason = (
        None
        if agent_variance >= 0
        else "each question was answered once: the agent's own spread is not known"
    )
    return SameVerdict(
        new_questions=chance(1.0),
        same_questions=chance(agent),
        significant=significant,
        level=level,
        reason=reason,
    )


def _same(z: float, bar: float, *, variance: float, prior: float, significant: bool) -> float:
    """The chance of the same verdict if true effects have the variance `prior` around 0; all in
    standard errors.
    """
    kept = (prior + 1 - variance) / (prior + 1)
    mean = kept * z
    sd = math.sqrt(variance * (1 + kept))
    if sd == 0:
        return 1.0
    above = float(special.ndtr((mean - bar) / sd))
    if significant:
        return above
    return 1 - above - float(special.ndtr((-bar - mean) / sd))
