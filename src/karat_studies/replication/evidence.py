"""One side of one test, people or agent: from the reported numbers to Bayes factor, effect, d and
its error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from karat.stats.shares import wilson_bounds
from karat_studies.replication import bayes, correlations, counts, effects, ranks
from karat_studies.replication._inputs import (
    Floats,
    Numbers,
    Result,
    check_choice,
    floats,
    unwrap,
    z_of_level,
)

NAN = float("nan")
ROUNDING = 1e-12  # an |r| closer to 1 counts as 1: otherwise rounding could give a d of 10⁸
T_KINDS = ("ttest_ind", "welch", "ttest_paired", "ttest_one")
RANK_KINDS = ("mannwhitney", "wilcoxon")
SHARE_KINDS = ("binomial", "proportion")


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """The results of one side's data. Unknown numbers are NaN.

    `statistic`: t, F, r, U of the first group, z of signed ranks, k of n, or the ratio of
    variances.
    """

    statistic: float = NAN
    # contingency: rows = groups, columns = (true, false)
    table: tuple[tuple[int, ...], ...] | None = None
    n1: float = NAN  # the first group; all, if there is one group
    n2: float = NAN
    sizes: tuple[float, ...] = ()  # of all groups of an F
    # for a factorial design, as if cells were equally large; (): the sizes
    effective: tuple[float, ...] = ()
    df1: float = NAN
    df2: float = NAN
    p0: float = 0.5
    # for an F with one numerator degree of freedom, which has no sign itself
    sign: int | None = None
    tie_term: float = 0.0
    d: float = NAN  # Cohen's d, if only the effect is reported
    d_se: float = NAN
    # clustered rows: t, relative to that of as many independent people with the same d
    t_scale: float = 1.0
    missing: str | None = None  # why there is no result, if known


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The numbers of one side of one test. NaN: unknown, and `reasons` explain why."""

    log_bf: float = NAN
    log_bf_greater: float = NAN  # NaN if the test has no one-sided form
    log_bf_less: float = NAN
    mass_above: float = 0.5  # prior mass on positive effects
    effect: float = NAN  # in the unit of the kind
    se: float = NAN
    # of the effect's interval: Wilson's for shares, via Fisher's z for correlations
    low: float = NAN
    high: float = NAN
    d: float = NAN
    d_se: float = NAN
    sign: float = NAN  # −1, 0, 1; NaN: no direction
    n_eff: float = NAN
    reasons: tuple[str, ...] = ()


def common_method(kind: str, human: Side, agent: Side) -> str:
    """The method that the data of both sides allow, as both must be measured in the same way."""
    check_choice("kind", kind, effects.KINDS)
    if kind == "anova":
        return "jzs" if all(_group_size(side) is not None for side in (human, agent)) else "pearson"
    if kind == "mannwhitney":
        for side in (human, agent):
            u = side.statistic
            whole = not math.isfinite(u) or u == math.floor(u)
            few = side.n1 * side.n2 <= ranks.EXACT_PRODUCT
            if not whole or side.tie_term != 0 or not few:
                return "asymptotic"

        return "exact_null"

    return {
        "contingency": "independent_multinomial",
        "wilcoxon": "z",
        "variance_ratio": "none",
    }.get(kind, "default")


def _group_size(side: Side) -> list[float] | None:
    if side.effective or side.sizes:
        return list(side.effective or side.sizes)
    if side.df1 == 1 and math.isfinite(side.n1) and math.isfinite(side.n2):
        return [side.n1, side.n2]
    return None


def log_bf10_of(
    kind: str,
    side: Side,
    statistic: Numbers,
    *,
    method: str,
    alternative: str = "two-sided",
) -> Result:
    """Ln BF10 for many values of the statistic of one test (tables: shape (…, I, J)); design and
    sizes are the side's.

    NaN if the kind has no Bayes factor, or none for a one-sided alternative.
    """
    if kind in T_KINDS:
        two = side.n2 if kind in {"ttest_ind", "welch"} else None
        return bayes.log_bf10_ttest(statistic, side.n1, two, alternative=alternative)

    if kind in RANK_KINDS:
        if kind == "wilcoxon":
            return bayes.log_bf10_z(statistic, 3 * side.n1 / np.pi, alternative=alternative)
        return ranks.log_bf10_mann_whitney(
            statistic,
            side.n1,
            side.n2,
            method=method,
            tie_term=side.tie_term,
            alternative=alternative,
        )

    if kind in {"correlation", "spearman"}:
        of = (
            correlations.log_bf10_pearson
            if kind == "correlation"
            else correlations.log_bf10_spearman
        )
        return of(statistic, side.n1, alternative=alternative)

    if kind in SHARE_KINDS:
        return counts.log_bf10_binomial(statistic, side.n1, p0=side.p0, alternative=alternative)
    if kind == "variance_ratio" or alternative != "two-sided":
        shape = floats("statistic", statistic).shape
        return unwrap(np.full(shape[: -2 if kind == "contingency" else None], np.nan))

    if kind == "contingency":
        return counts.log_bf10_contingency(statistic, sampling=method)
    if method == "jzs":
        sizes = _group_size(side)
    else:
        sizes = None

    return bayes.log_bf10_anova(statistic, side.df1, side.df2, n_per_group=sizes, method=method)


@lru_cache(maxsize=4_096)  # the human side is measured once for all conditions
def measure(
    kind: str,
    side: Side,
    *,
    method: str,
    convention: str = "humanstudy",
    level: float = 0.95,
) -> Measured:
    """Bayes factors, effect, d and standard errors of one side; `level` is that of the effect's
    interval.

    Missing data give NaN with a reason, never an error: a study with one
    unreadable test still has the others.
    """
    check_choice("kind", kind, effects.KINDS)
    check_choice("convention", convention, effects.CONVENTIONS)
    if side.missing is not None:
        return Measured(reasons=(side.missing,))
    reasons: list[str] = []
    statistic = floats("statistic", side.table if kind == "contingency" else side.statistic)
    known = not np.isnan(statistic).any()
    log_bf = greater = less = effect = se = NAN
    if known:
        try:
            log_bf = float(log_bf10_of(kind, side, statistic, method=method))
            greater, less = _both_sides(kind, side, log_bf, method)
            effect, se = _effect(kind, side)
        except ValueError as error:
            reasons.append(str(error))
    else:
        reasons.append("no test statistic: no Bayes factor, no PAS")

    if known and math.isnan(log_bf) and not reasons:
        if kind == "variance_ratio":
            why = "no Bayes factor for this kind"
        elif kind == "mannwhitney" and not math.isnan(side.n1 + side.n2) and side.tie_term > 0:
            why = "all answers are the same: there is no spread"
        else:
            why = "sizes are not known"

        reasons.append(why)

    d, d_se = _on_d(kind, side, effect, se, convention)
    low, high = interval_of_effect(kind, side, effect, se, level=level)
    if math.isnan(d):
        reasons.append("no effect on the scale of d: not in ECS")
    if kind in SHARE_KINDS:
        mass_above = 1 - side.p0
    else:
        mass_above = 0.5

    directed = kind != "anova" or (side.df1 == 1 and side.sign)
    if not math.isfinite(effect):
        sign = float(np.sign(d))
    elif kind in SHARE_KINDS:
        same = effects.same_share(effect, side.p0)
        sign = 0.0 if same else float(np.sign(effect - side.p0))
    else:
        sign = float(np.sign(effect if directed else d))

    n_eff = side.n1
    if kind == "contingency":
        n_eff = NAN if side.table is None else float(np.sum(side.table))
    elif kind == "anova":
        if side.sizes:
            n_eff = float(sum(side.sizes))
        else:
            n_eff = side.df1 + side.df2 + 1
    elif kind in {"ttest_ind", "welch", "mannwhitney", "variance_ratio"}:
        n_eff = side.n1 + side.n2

    return Measured(
        log_bf=log_bf,
        log_bf_greater=greater,
        log_bf_less=less,
        mass_above=mass_above,
        effect=effect,
        se=se,
        low=low,
        high=high,
        d=d,
        d_se=d_se,
        sign=sign,
        n_eff=n_eff,
        reasons=tuple(reasons),
    )


def _both_sides(kind: str, side: Side, log_bf: float, method: str) -> tuple[float, float]:
    """Ln BF of effects above and below none; under a symmetric prior one follows from the other."""
    if kind in {"contingency", "anova", "variance_ratio"}:
        return NAN, NAN
    if kind in SHARE_KINDS:
        above, below = (
            float(log_bf10_of(kind, side, side.statistic, method=method, alternative=direction))
            for direction in ("greater", "less")
        )
        return above, below

    if kind == "mannwhitney":
        middle = side.n1 * side.n2 / 2
    else:
        middle = 0.0

    upward = side.statistic > middle
    wrong = "less" if upward else "greater"
    minor = float(log_bf10_of(kind, side, side.statistic, method=method, alternative=wrong))
    if math.isinf(log_bf):
        major = log_bf
    else:
        major = math.log(2) + log_bf + math.log1p(-0.5 * math.exp(min(0.0, minor - log_bf)))

    if upward:
        return (major, minor)
    return (minor, major)


def _effect(kind: str, side: Side) -> tuple[float, float]:
    """The effect in the unit of its kind (r for correlations), and its standard error (of
    atanh r).
    """
    t = side.statistic
    n1 = side.n1
    n2 = side.n2
    if kind in T_KINDS:
        second = n2 if kind in {"ttest_ind", "welch"} else None
        d = float(effects.cohens_d(t / side.t_scale, n1, second))
        return d, float(effects.cohens_d_se(d, n1, second)) / side.t_scale

    if kind == "anova":
        if side.df1 != 1:
            return float(effects.eta_squared(side.statistic, side.df1, side.df2)), NAN
        if side.sign is None:
            return NAN, NAN
        pair = _pair(side)
        unit = 1 / pair[0] + 1 / pair[1]
        d = side.sign * math.sqrt(side.statistic * unit)
        return d, math.sqrt(unit + d * d / (2 * sum(pair)))

    if kind in {"correlation", "spearman"}:
        return t, float(effects.fisher_z_se(n1, spearman_r=t if kind == "spearman" else None))
    if kind == "contingency":
        if np.asarray(side.table).shape != (2, 2):
            return NAN, NAN
        effect = float(effects.log_odds_ratio(side.table))
        return effect, float(effects.log_odds_ratio_se(side.table))

    if kind in SHARE_KINDS:
        return t / n1, float(effects.proportion_se(t / n1, n1))
    if kind == "variance_ratio":
        return math.log(t) if t > 0 else NAN, math.sqrt(2 / (n1 - 1) + 2 / (n2 - 1))
    if kind == "mannwhitney":
        r = float(effects.rank_biserial(t, n1, n2))
        se = float(effects.rank_biserial_se(r, n1, n2))
    else:
        se = _matched_unit(side)
        r = t * se
        if abs(r) > 1 - ROUNDING:
            r = math.copysign(1.0, r)

    return r, se


def _matched_unit(side: Side) -> float:
    """The matched rank-biserial correlation per unit of z: its standard error without an effect."""
    n = side.n1
    return math.sqrt(2 * (2 * n + 1) / (3 * n * (n + 1)) - side.tie_term / (3 * (n * (n + 1)) ** 2))


def _pair(side: Side) -> tuple[float, float]:
    """The sizes of two groups; equal halves of df2 + 2 if they are not known."""
    sizes = _group_size(side)
    if sizes is not None and len(sizes) == 2:
        return sizes[0], sizes[1]
    return (side.df2 + 2) / 2, (side.df2 + 2) / 2


def interval_of_effect(
    kind: str,
    side: Side,
    effect: float,
    se: float,
    *,
    level: float,
) -> tuple[float, float]:
    """For an effect in the unit of its kind. (NaN, NaN): it has none."""
    if kind in SHARE_KINDS and 0 <= effect <= 1:
        return wilson_bounds(effect, side.n1, level)
    if not math.isfinite(effect) or not math.isfinite(se):
        return NAN, NAN
    z = z_of_level(level)
    if kind in {"correlation", "spearman"}:
        if abs(effect) == 1:
            return NAN, NAN
        return math.tanh(math.atanh(effect) - z * se), math.tanh(math.atanh(effect) + z * se)

    return effect - z * se, effect + z * se


def d_by(convention: str, kind: str, side: Side, measured: Measured) -> float:
    """The d of a measured side, by this convention."""
    return _on_d(kind, side, measured.effect, measured.se, convention)[0]


def _on_d(kind: str, side: Side, effect: float, se: float, convention: str) -> tuple[float, float]:
    if math.isnan(effect) or (kind == "anova" and side.df1 != 1) or kind == "variance_ratio":
        return side.d, side.d_se
    d = float(effects.to_cohens_d(kind, effect, p0=side.p0, convention=convention))
    if math.isnan(se):
        return d, NAN
    d_se = effects.to_cohens_d_se(kind, effect, se, p0=side.p0, convention=convention)
    return d, float(d_se)


def draw_agent(
    kind: str,
    side: Side,
    rng: np.random.Generator,
    draws: int,
    *,
    method: str,
    convention: str = "humanstudy",
) -> tuple[Floats, Floats]:
    """(ln BF10, d) of `draws` repetitions of the agent's side of a test.

    Counts are redrawn as counts, row by row (the bootstrap over participants). For
    the other kinds only the statistic is known: effect ~ Normal(e, SE²), converted back into the
    statistic; an F with several numerator degrees of freedom is drawn from its noncentral
    distribution. U is asymptotic here.
    """
    if kind == "contingency" and side.table is not None:
        table = np.asarray(side.table, dtype=np.float64)
        drawn = _drawn_counts(table, rng, draws)
        log_bf = np.asarray(log_bf10_of("contingency", side, drawn, method=method))
        if table.shape != (2, 2):
            return log_bf, np.full(draws, np.nan)
        d = effects.to_cohens_d("contingency", effects.log_odds_ratio(drawn), convention=convention)
        return log_bf, np.asarray(d)

    if kind in SHARE_KINDS and math.isfinite(side.statistic):
        cells = _drawn_counts(np.array([[side.statistic, side.n1 - side.statistic]]), rng, draws)
        k = cells[:, 0, 0]
        d = effects.to_cohens_d(kind, k / side.n1, p0=side.p0, convention=convention)
        return np.asarray(log_bf10_of(kind, side, k, method=method)), np.asarray(d)

    if kind == "anova" and side.df1 > 1:
        # F about itself: the group effects ~ Normal(observed, SE²), so df1·F is the noncentrality.
        noncentrality = max(side.df1 * side.statistic, 1e-12)
        above = rng.noncentral_chisquare(side.df1, noncentrality, draws) / side.df1
        below = rng.chisquare(side.df2, draws) / side.df2
        f = np.asarray(above / below)
        return np.asarray(log_bf10_of(kind, side, f, method=method)), np.full(draws, np.nan)

    measured = measure(kind, side, method=method, convention=convention)
    if kind in {"correlation", "spearman"}:
        centre = math.atanh(measured.effect)
    else:
        centre = measured.effect

    if math.isnan(centre) or math.isnan(measured.se):
        return np.full(draws, np.nan), side.d + side.d_se * rng.standard_normal(draws)
    statistic, value = statistic_of(kind, side, centre + measured.se * rng.standard_normal(draws))
    d = effects.to_cohens_d(kind, value, p0=side.p0, convention=convention)
    method = "asymptotic" if kind == "mannwhitney" else method
    return np.asarray(log_bf10_of(kind, side, statistic, method=method)), np.asarray(d)


def _drawn_counts(table: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """(draws, rows, outcomes): each row redrawn; for a row with equal answers, see
    `counts.smoothed_counts`.
    """
    rows = [rng.multinomial(int(row.sum()), row / max(row.sum(), 1.0), draws) for row in table]
    return counts.smoothed_counts(
        np.stack(rows, axis=1).astype(np.float64), (table > 0).sum(axis=-1) == 1, rng
    )


def statistic_of(kind: str, side: Side, effect: Floats) -> tuple[Floats, Floats]:
    """(the statistic with this effect, the effect in the unit of `to_cohens_d`)."""
    if kind in T_KINDS:
        unit = 1 / side.n1 + (1 / side.n2 if kind in {"ttest_ind", "welch"} else 0.0)
        return effect / math.sqrt(unit) * side.t_scale, effect

    if kind == "anova":
        first, second = _pair(side)
        return effect**2 / (1 / first + 1 / second), effect

    if kind in {"correlation", "spearman"}:
        return np.tanh(effect), np.tanh(effect)
    if kind == "mannwhitney":
        r = np.clip(effect, -1.0, 1.0)
        return (r + 1) / 2 * side.n1 * side.n2, r

    if kind == "wilcoxon":
        return effect / _matched_unit(side), np.clip(effect, -1.0, 1.0)
    return np.exp(effect), effect
