"""PAS: the probability that people and an agent are in the same state, given the evidence of both.

π is the posterior probability of an effect. All are available in log-odds, which
do not saturate: logit PAS = logit π_h ⊞ logit π_a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from karat.stats import special
from karat_studies.replication._inputs import (
    Floats,
    Numbers,
    Result,
    above_0,
    check_choice,
    domain,
    evaluate,
    finite_above_0,
    floats,
    unwrap,
    within_0_1,
)

CLAMP = 1e-6
FLAT = 1e-8  # if |2H − 1| is below it, the human evidence is neutral and agreement cannot be shown


def posterior(log_bf: Numbers, prior_odds: Numbers = 1.0, *, errors: str = "nan") -> Result:
    """The probability of an effect after the evidence: BF·O/(1 + BF·O), for any ln BF without
    overflow.

    >>> round(posterior(-3.0, 10), 9), posterior(1e5), posterior(float("-inf"))
    (0.332385625, 1.0, 0.0)
    """
    odds = finite_above_0("prior_odds", prior_odds, errors=errors)
    return evaluate(
        lambda bf, o: np.asarray(special.expit(bf + np.log(o))), floats("log_bf", log_bf), odds
    )


def pas(pi_human: Numbers, pi_agent: Numbers, *, errors: str = "nan") -> Result:
    """π_h·π_a + (1 − π_h)(1 − π_a): an effect on both sides, or on neither.

    Ignores direction: with decisive evidence for opposite effects PAS is near 1; see
    `pas_directional`.

    >>> round(pas(0.9, 0.8), 12)
    0.74

    HumanStudy-Bench (2025), probability alignment score.
    """
    human = within_0_1("pi_human", pi_human, errors=errors)
    agent = within_0_1("pi_agent", pi_agent, errors=errors)
    return evaluate(lambda h, a: h * a + (1 - h) * (1 - a), human, agent)


def pas_log_odds(log_odds_human: Numbers, log_odds_agent: Numbers) -> Result:
    """Logit PAS of the two posterior log-odds (ln BF + ln prior odds), exact wherever floats reach.

    a ⊞ b = sgn(a)·sgn(b)·min(|a|, |b|) + ln(1 + e^{−|a+b|}) − ln(1 + e^{−|a−b|})

    >>> pas_log_odds(100.0, -200.0), round(pas_log_odds(3.0, 2.0), 12)
    (-100.0, 1.693453660971)

    2·PAS − 1 = tanh(a/2)·tanh(b/2); Hagenauer et al. (1996), IEEE Trans. Inf. Theory 42:429.
    """

    def kernel(a: Floats, b: Floats) -> Floats:
        smaller = np.minimum(np.abs(a), np.abs(b))
        least = np.sign(a) * np.sign(b) * smaller
        near = smaller < 0.5  # there the three terms cancel
        of_a = np.tanh(np.where(near, a, 0) / 2)
        of_b = np.tanh(np.where(near, b, 0) / 2)
        small = 2 * np.arctanh(of_a * of_b)
        both = np.isinf(a) & np.isinf(b)
        total = np.abs(a + b)
        gap = np.abs(a - b)
        correction = np.log1p(np.exp(-total)) - np.log1p(np.exp(-gap))
        return np.where(both, least, np.where(near, small, least + correction))

    return evaluate(
        kernel, floats("log_odds_human", log_odds_human), floats("log_odds_agent", log_odds_agent)
    )


def pas_ceiling(pi_human: Numbers, *, errors: str = "nan") -> Result:
    """H = π_h² + (1 − π_h)²: the PAS of a perfect copy of the human evidence.

    >>> round(pas_ceiling(0.9), 12)
    0.82
    """
    return evaluate(lambda h: h * h + (1 - h) ** 2, within_0_1("pi_human", pi_human, errors=errors))


def pas_normalized(
    pas: Numbers,
    pi_human: Numbers,
    *,
    fallbacks: str | None = None,
    errors: str = "nan",
) -> Result:
    """R' = (2·PAS − 1)/(2·H − 1): the share of the possible correlation that is reached. Auxiliary.

    NaN if the human evidence is neutral (|2H − 1| < 1e-8); 0 with `fallbacks="documented"`,
    as HumanStudy-Bench documents it.

    >>> round(pas_normalized(0.8, 0.9), 12)
    0.9375
    """
    neutral = 0.0 if documented_fallbacks(fallbacks) else np.nan

    def kernel(p: Floats, h: Floats) -> Floats:
        room = (2 * h - 1) ** 2  # 2H − 1
        return np.where(np.abs(room) < FLAT, neutral, (2 * p - 1) / room)

    return evaluate(
        kernel,
        within_0_1("pas", pas, errors=errors),
        within_0_1("pi_human", pi_human, errors=errors),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectionalPosterior:
    """The probabilities of the three states of one test, or of many; NaN if there is no
    direction.
    """

    positive: Result
    negative: Result
    null: Result

    @property
    def ceiling(self) -> Result:
        """π₊² + π₋² + π₀²: the directional PAS of a perfect copy."""
        return self.positive**2 + self.negative**2 + self.null**2


def directional_posterior(
    log_bf: Numbers,
    log_bf_greater: Numbers = None,
    log_bf_less: Numbers = None,
    *,
    sign: Numbers = None,
    prior_odds: Numbers = 1.0,
    mass_above: Numbers = 0.5,
) -> DirectionalPosterior:
    """π± = ½·BF±0·O/(1 + BF10·O) and π0, from the one-sided Bayes factors.

    `mass_above` replaces the ½ if the prior is not symmetric: a uniform prior on a share
    tested against 0.3 has 0.7 above it.

    A test without those is split by the `sign` of its effect: all of π on that side. Sign 0
    or NaN has no direction: all three are NaN.

    >>> found = directional_posterior(2.0, sign=-1)
    >>> round(found.negative, 6), found.positive
    (0.880797, 0.0)
    """
    both = floats("log_bf", log_bf)
    odds = above_0("prior_odds", prior_odds)
    null = np.asarray(posterior(-both, 1 / odds))
    if log_bf_greater is not None and log_bf_less is not None:
        above = floats("log_bf_greater", log_bf_greater)
        below = floats("log_bf_less", log_bf_less)
        mass = domain("mass_above", mass_above, lambda v: (v > 0) & (v < 1), "between 0 and 1")
        with np.errstate(invalid="ignore"):
            # BF10 as the mean of both sides, weighted by prior mass, so that the three sum to
            # exactly 1
            tilt = np.asarray(posterior(above - below, mass / (1 - mass)))

        positive = (1 - null) * tilt
        negative = (1 - null) * (1 - tilt)
    elif sign is not None:
        signs = floats("sign", sign)
        lost = np.isnan(signs) | (signs == 0)
        positive = np.where(lost, np.nan, (1 - null) * (signs > 0))
        negative = np.where(lost, np.nan, (1 - null) * (signs < 0))
        null = np.where(lost, np.nan, null)
    else:
        raise ValueError("directional_posterior: needs log_bf_greater and log_bf_less, or sign")

    return DirectionalPosterior(
        positive=unwrap(positive), negative=unwrap(negative), null=unwrap(null)
    )


def pas_directional(human: DirectionalPosterior, agent: DirectionalPosterior) -> Result:
    """The probability that both are in the same of three states: positive, negative, none.

    >>> up = DirectionalPosterior(positive=0.99, negative=0.0, null=0.01)
    >>> down = DirectionalPosterior(positive=0.0, negative=0.99, null=0.01)
    >>> round(pas_directional(up, up), 4), round(pas_directional(up, down), 4)
    (0.9802, 0.0001)
    """
    return (
        human.positive * agent.positive + human.negative * agent.negative + human.null * agent.null
    )


def pool_pas(
    pas: Numbers,
    n_eff: Numbers = None,
    *,
    clamp: float = CLAMP,
    empty: float = float("nan"),
    fallbacks: str | None = None,
) -> float:
    """The PAS of a finding, pooled over its tests.

    r = 2·PAS − 1 clamped to ±(1 − clamp); one test: its PAS; several: mean of atanh r weighted
    by the human n (weights that sum to ≤ 0: unweighted), tanh, (r + 1)/2. Except for the clamp
    this is the weighted mean of logit PAS. Only NaN is left out; if nothing is left: `empty`,
    with `fallbacks="documented"` 0.5.

    >>> round(pool_pas([0.9, 0.6, 0.75], [50, 80, 20]), 12)
    0.749347984301
    >>> pool_pas([]), pool_pas([0.3])
    (nan, 0.3)

    HumanStudy-Bench (2025); Fisher (1921), Metron 1:3.
    """
    values = within_0_1("pas", pas, errors="raise").reshape(-1)
    pooled = pool_scores(2 * values - 1, n_eff, clamp=clamp)
    if np.isnan(pooled):
        return 0.5 if documented_fallbacks(fallbacks) else empty
    kept = values[~np.isnan(values)]
    if kept.size == 1:
        return float(kept[0])
    return (pooled + 1) / 2


def pool_scores(r: Floats, n_eff: Numbers, *, clamp: float = CLAMP) -> float:
    """Tanh of the weighted mean of atanh r; r of one score unchanged; NaN for none."""
    if not 0 <= clamp < 1:
        raise ValueError(f"clamp: must be at least 0 and below 1, got {clamp:g}")
    if n_eff is None:
        weights = np.ones_like(r)
    else:
        weights = np.broadcast_to(floats("n_eff", n_eff).reshape(-1), r.shape)

    kept = ~np.isnan(r)
    r = r[kept]
    weights = np.nan_to_num(weights[kept])
    if r.size < 2:
        if r.size:
            return float(r[0])
        return float("nan")

    if weights.sum() <= 0:
        weights = np.ones_like(r)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.arctanh(np.clip(r, -(1 - clamp), 1 - clamp))
        return float(np.tanh((z * weights).sum() / weights.sum()))


def documented_fallbacks(fallbacks: str | None) -> bool:
    """Whether `fallbacks="documented"` is wanted; raises ValueError for any other text."""
    return (
        fallbacks is not None
        and check_choice("fallbacks", fallbacks, ("documented",)) == "documented"
    )
