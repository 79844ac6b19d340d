"""Other answers to "did it replicate?": new evidence, prediction intervals, small telescopes,
equivalence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from karat.stats import special, tost_of_estimate
from karat.stats.noncentral import noncentral_t_cdf
from karat.stats.power import effect_size_ttest
from karat_studies.replication._inputs import (
    check_choice,
    check_level,
    counts,
    domain,
)
from karat_studies.replication._mixture import log_effect_bf
from karat_studies.replication.bayes import SQRT_HALF, log_bf10_meta_ttest, log_bf10_ttest
from karat_studies.replication.effects import fisher_z_se
from karat_studies.replication.evidence import T_KINDS, Side
from karat_studies.replication.scores import TestScore


def log_replication_bayes_factor(
    t_original: float,
    n_original: Sequence[int],
    t_replication: float,
    n_replication: Sequence[int],
    *,
    rscale: float = SQRT_HALF,
    method: str = "evidence_updating",
) -> float:
    """Ln BF of "the effect of the original" against "no effect", for the data of the replication. A
    float.

    n: (n1, n2), or (n,) for one sample and pairs. `"evidence_updating"`: the evidence the new
    data add, ln BF10(both) − ln BF10(original), with one Cauchy prior. `"posterior"`: the effect is
    drawn from its posterior under a flat prior. Accurate to 1e-8.

    >>> round(log_replication_bayes_factor(2.10, (11, 11), 3.06, (27, 28), method="posterior"), 6)
    3.706898

    Ly et al. (2019), Behav. Res. Methods 51:2498; Verhagen & Wagenmakers (2014), J. Exp. Psychol.
    Gen. 143:1457.
    """
    check_choice("method", method, ("evidence_updating", "posterior"))
    first = _design("n_original", n_original)
    second = _design("n_replication", n_replication)
    if method == "posterior":
        t, root, df = (
            np.array(pair)
            for pair in zip((t_original, *first), (t_replication, *second), strict=True)
        )
        return log_effect_bf(t, root, df) - log_effect_bf(t[:1], root[:1], df[:1])

    if len(n_original) != len(n_replication):
        raise ValueError(
            "n_replication: must be of the same design as n_original (one group or two)"
        )

    sizes = list(zip(n_original, n_replication, strict=True))
    both = log_bf10_meta_ttest([t_original, t_replication], *sizes, rscale=rscale)
    return both - float(log_bf10_ttest(t_original, *n_original, rscale=rscale))


def _design(name: str, sizes: Sequence[int]) -> tuple[float, float]:
    """(√N, ν): the expected t is δ√N."""
    if len(sizes) not in {1, 2}:
        raise ValueError(f"{name}: must be (n,) or (n1, n2), got {sizes!r}")
    n = counts(name, list(sizes), least=1, errors="raise")
    df = float(n.sum() - n.size)
    domain(f"degrees of freedom of {name}", df, lambda v: v >= 1, "at least 1")
    return math.sqrt(1 / float((1 / n).sum())), df


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionInterval:
    """The range expected for the replication of an effect, by chance alone."""

    low: float
    high: float
    inside: bool | None  # None: no effect of the replication
    level: float
    method: str


def prediction_interval(
    original: float,
    se_original: float,
    replication: float,
    se_replication: float,
    *,
    level: float = 0.95,
    correlation: bool = False,
) -> PredictionInterval:
    """Original ± z·√(SE_o² + SE_r²), and whether the replication is inside.

    `correlation=True`: both are r, the errors those of Fisher's z, the interval back in r.

    >>> found = prediction_interval(0.4, 1 / 27**0.5, 0.1, 1 / 97**0.5, correlation=True)
    >>> round(found.low, 6), round(found.high, 6), found.inside
    (-0.002824, 0.691133, True)

    Patil, Peng & Leek (2016), Perspect. Psychol. Sci. 11:539.
    """
    reach = float(special.ndtri((1 + check_level(level)) / 2)) * math.hypot(
        se_original, se_replication
    )
    if correlation:
        centre = math.atanh(original)
    else:
        centre = original

    low = centre - reach
    high = centre + reach
    if correlation:
        low = math.tanh(low)
        high = math.tanh(high)
    if math.isnan(replication):
        inside = None
    else:
        inside = low <= replication <= high

    return PredictionInterval(
        low=low,
        high=high,
        inside=inside,
        level=level,
        method="normal, Fisher z" if correlation else "normal",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallTelescopes:
    """Whether the replication's effect is too small for the original study to have detected it."""

    d33: float  # the effect for which the original had a power of one third
    # of an effect this small or smaller if the true one were d33; if p is small, it did not
    # replicate
    p: float
    power: float
    method: str = "noncentral t"


def small_telescopes(
    n_original: Sequence[int],
    t_replication: float,
    n_replication: Sequence[int],
    *,
    power: float = 1 / 3,
    alpha: float = 0.05,
) -> SmallTelescopes:
    """The original's d33, and P(T ≤ t) of the replication if the effect were d33.

    The replication's t is relative to the original effect: positive is the same direction.

    >>> found = small_telescopes((20, 20), 0.3, (50, 50))
    >>> round(found.d33, 4), round(found.p, 4)
    (0.4959, 0.0146)

    Simonsohn (2015), Psychol. Sci. 26:559.
    """
    d33 = effect_with_power(n_original, power=power, alpha=alpha)
    root, df = _design("n_replication", n_replication)
    return SmallTelescopes(d33=d33, p=noncentral_t_cdf(t_replication, df, d33 * root), power=power)


def effect_with_power(n: Sequence[int], *, power: float = 1 / 3, alpha: float = 0.05) -> float:
    """The effect d > 0 that a two-sided t test at `alpha` finds with this power. n: (n1, n2) or
    (n,).

    >>> round(effect_with_power((10, 10)), 6)
    0.721969
    """
    _design("n", n)
    first, *second = n
    if second:
        return effect_size_ttest(
            first,
            n2=second[0],
            power=power,
            type="two-sample",
            alpha=alpha,
        ).value

    return effect_size_ttest(first, power=power, type="one-sample", alpha=alpha).value


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """Two one-sided tests: a small p shows that an effect is between two bounds."""

    t_low: float  # against "at or below the lower bound"
    t_high: float  # against "at or above the upper bound"
    p: float  # the larger of the two
    low: float
    high: float
    df: float
    method: str = "TOST"


def equivalence_test(
    value: float,
    se: float,
    *,
    low: float,
    high: float,
    df: float = math.inf,
) -> Equivalence:
    """Whether an effect, or a difference of agent and people, is between bounds stated beforehand.

    t = (value − bound)/se against each bound, with df degrees of freedom (∞: normal).

    >>> found = equivalence_test(0.4, 1 / 5, low=-0.5, high=0.5, df=24)
    >>> found.t_low, round(found.t_high, 12), round(found.p, 6)
    (4.5, -0.5, 0.310814)

    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15:657; Lakens (2017), Soc. Psychol. Personal.
    Sci. 8:355.
    """
    found = tost_of_estimate(value, se, df, bounds=(low, high))
    return Equivalence(
        t_low=found.t_low,
        t_high=found.t_high,
        p=found.p,
        low=low,
        high=high,
        df=df,
    )


NAN = float("nan")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicationMeasures:
    """For one test: the agent as a replication of the people.

    None and NaN: not available for this test.
    """

    # ln BF of the human effect against none, for the agent's data; t tests
    log_replication_bf: float = NAN
    # the range expected for the agent's d by chance; for correlations r
    prediction: PredictionInterval | None = None
    telescopes: SmallTelescopes | None = None  # t tests
    equivalence: Equivalence | None = None  # of the difference in d, at the stated bound


def replication_measures(score: TestScore, *, bound: float | None = None) -> ReplicationMeasures:
    """All that can be computed for the test. `bound`: the largest difference in d that counts as
    none.

    State it beforehand: chosen afterwards, it shows nothing.
    """
    kind = score.test.kind
    human = score.test.human
    agent = score.test.agent
    before = _sizes(kind, human)
    after = _sizes(kind, agent)
    log_bf, telescopes, equivalence = NAN, None, None
    if before is not None and after is not None:
        log_bf = log_replication_bayes_factor(human.statistic, before, agent.statistic, after)
        # the agent's t relative to the human effect: positive is the same direction
        if human.statistic:
            telescopes = small_telescopes(
                before, math.copysign(1, human.statistic) * agent.statistic, after
            )

    se = math.hypot(score.human.d_se, score.agent.d_se)
    apart = score.agent.d - score.human.d
    if bound is not None and math.isfinite(apart) and math.isfinite(se) and se > 0:
        equivalence = equivalence_test(apart, se, low=-bound, high=bound)

    prediction = None
    errors = [NAN]
    effects = (score.human.effect, score.agent.effect)
    ds = (score.human.d, score.human.d_se, score.agent.d, score.agent.d_se)
    if kind == "correlation" and all(abs(effect) < 1 for effect in effects):
        errors = [float(fisher_z_se(side.n1)) for side in (human, agent)]
    if all(map(math.isfinite, errors)):
        prediction = prediction_interval(
            effects[0],
            errors[0],
            effects[1],
            errors[1],
            correlation=True,
        )
    elif all(map(math.isfinite, ds)):
        prediction = prediction_interval(*ds)

    return ReplicationMeasures(
        log_replication_bf=log_bf,
        prediction=prediction,
        telescopes=telescopes,
        equivalence=equivalence,
    )


def _sizes(kind: str, side: Side) -> tuple[int, ...] | None:
    """The groups of a t test; None if they are not known, or too small."""
    sizes = (side.n1, side.n2) if kind in {"ttest_ind", "welch"} else (side.n1,)
    if (
        kind not in T_KINDS
        or not math.isfinite(side.statistic)
        or not all(map(math.isfinite, sizes))
    ):
        return None

    if sum(sizes) > len(sizes):
        return tuple(int(size) for size in sizes)
    return None
