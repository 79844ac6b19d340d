"""Effect sizes for each kind of test, their standard errors, and Cohen's d as the common scale.

An effect is positive if the first group is above the second, if row 1 of a table has the larger
share in the first column, or if a sample is above its reference. Effects are never reversed after
seeing the result. Arrays broadcast; unknown values are NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from karat.stats import special
from karat_studies.replication._inputs import (
    Floats,
    Numbers,
    Result,
    above_0,
    at_least_0,
    check_choice,
    counts,
    domain,
    evaluate,
    floats,
    gamma_shift,
    unwrap,
    within_0_1,
    within_1,
)

KINDS = (
    "ttest_ind",
    "welch",
    "ttest_paired",
    "ttest_one",
    "anova",
    "correlation",
    "spearman",
    "contingency",
    "binomial",
    "proportion",
    "mannwhitney",
    "wilcoxon",
    "variance_ratio",
)
CONVENTIONS = ("humanstudy", "standard")
_RANKS, _SHARES = ("mannwhitney", "wilcoxon"), ("binomial", "proportion")
_STANDARDISED = ("ttest_ind", "welch", "ttest_paired", "ttest_one", "anova")
LOGISTIC = float(np.sqrt(3) / np.pi)


def cohens_d(t: Numbers, n1: Numbers, n2: Numbers = None, *, errors: str = "nan") -> Result:
    """Cohen's d of a t statistic: t√(1/n1 + 1/n2), or t/√n1 for one sample and for pairs (n2 None).

    >>> round(cohens_d(-2.88, 19), 6)
    -0.660717

    Cohen (1988), Statistical power analysis, 2.5.
    """
    return evaluate(lambda t, v: t * np.sqrt(v), floats("t", t), _unit_variance(n1, n2, errors))


def cohens_d_se(d: Numbers, n1: Numbers, n2: Numbers = None, *, errors: str = "nan") -> Result:
    """The standard error of d: √(1/n1 + 1/n2 + d²/(2(n1 + n2))), or √(1/n1 + d²/(2·n1)) if n2 is
    None.

    >>> round(cohens_d_se(0.5, 40, 40), 6)
    0.227074

    Hedges & Olkin (1985), Statistical methods for meta-analysis, 5.11.
    """
    total = counts("n1", n1, least=1, errors=errors)
    if n2 is not None:
        total = total + counts("n2", n2, least=1, errors=errors)
    variance = _unit_variance(n1, n2, errors)
    return evaluate(lambda d, v, n: np.sqrt(v + d * d / (2 * n)), floats("d", d), variance, total)


def _unit_variance(n1: Numbers, n2: Numbers, errors: str) -> Floats:
    first = counts("n1", n1, least=1, errors=errors)
    if n2 is None:
        return np.asarray(1 / first)
    return np.asarray(1 / first + 1 / counts("n2", n2, least=1, errors=errors))


def d_from_means(
    mean1: Numbers,
    sd1: Numbers,
    n1: Numbers,
    *,
    mean2: Numbers,
    sd2: Numbers,
    n2: Numbers,
    errors: str = "nan",
) -> Result:
    """Cohen's d of two groups from published summaries, with the pooled standard deviation.

    NaN if both standard deviations are 0.

    >>> round(d_from_means(100, 15, 200, mean2=95, sd2=14, n2=180), 6)
    0.343996
    """
    spread1 = at_least_0("sd1", sd1, errors=errors)
    spread2 = at_least_0("sd2", sd2, errors=errors)
    first = counts("n1", n1, least=2, errors=errors)
    second = counts("n2", n2, least=2, errors=errors)

    def kernel(m1: Floats, s1: Floats, a: Floats, m2: Floats, s2: Floats, b: Floats) -> Floats:
        pooled = np.sqrt(((a - 1) * s1**2 + (b - 1) * s2**2) / (a + b - 2))
        return np.where(pooled > 0, (m1 - m2) / pooled, np.nan)

    return evaluate(
        kernel,
        floats("mean1", mean1),
        spread1,
        first,
        floats("mean2", mean2),
        spread2,
        second,
    )


def hedges_g(d: Numbers, df: Numbers, *, errors: str = "nan") -> Result:
    """D corrected for small-sample bias: J(df)·d with J = Γ(df/2)/(√(df/2)·Γ((df − 1)/2)). NaN for
    df ≤ 1.

    >>> round(hedges_g(-1.0, 8), 9)
    -0.902703334

    Hedges (1981), J. Educ. Stat. 6:107.
    """
    free = domain("df", df, lambda v: v > 1, "above 1", errors=errors)
    return evaluate(
        lambda d, m: d * np.exp(gamma_shift((m - 1) / 2, 0.5)) / np.sqrt(m / 2),
        floats("d", d),
        free,
    )


def d_from_t_df(t: Numbers, df: Numbers, paired: bool = False, *, errors: str = "nan") -> Result:
    """Cohen's d if only the degrees of freedom are known: 2t/√df, or t/√df for one sample and
    pairs.

    >>> round(d_from_t_df(2.5, 38), 6), round(d_from_t_df(-4, 11, paired=True), 6)
    (0.811107, -1.206045)
    """
    free = above_0("df", df, errors=errors)
    return evaluate(lambda t, m: (1 if paired else 2) * t / np.sqrt(m), floats("t", t), free)


def eta_squared(f: Numbers, df1: Numbers, df2: Numbers, *, errors: str = "nan") -> Result:
    """The share of variance that a one-way F explains: df1·F/(df1·F + df2). It has no direction.

    >>> round(eta_squared(4.5, 2, 57), 6)
    0.136364
    """
    fs = at_least_0("f", f, errors=errors)
    first = above_0("df1", df1, errors=errors)
    second = above_0("df2", df2, errors=errors)
    return evaluate(lambda f, a, b: a * f / (a * f + b), fs, first, second)


def fisher_z(r: Numbers, *, errors: str = "nan") -> Result:
    """Atanh r; NaN for |r| = 1, which has no finite value.

    >>> round(fisher_z(-0.68), 6)
    -0.829114
    """
    rs = within_1("r", r, errors=errors)
    return evaluate(lambda r: np.where(np.abs(r) < 1, np.arctanh(r), np.nan), rs)


def fisher_z_se(n: Numbers, *, spearman_r: Numbers = None, errors: str = "nan") -> Result:
    """The standard error of atanh r: 1/√(n − 3), for Spearman's r √((1 + r²/2)/(n − 3)). NaN for n
    ≤ 3.

    >>> fisher_z_se(28)
    0.2

    Fisher (1921), Metron 1:3; Bonett & Wright (2000), Psychometrika 65:23.
    """
    size = counts("n", n, least=1, errors=errors)
    size = np.where(size > 3, size, np.nan)
    if spearman_r is None:
        return evaluate(lambda n: 1 / np.sqrt(n - 3), size)
    rs = within_1("spearman_r", spearman_r, errors=errors)
    return evaluate(lambda n, r: np.sqrt((1 + r * r / 2) / (n - 3)), size, rs)


def log_odds_ratio(table: Numbers) -> Result:
    """ln(ad/bc) of tables [[a, b], [c, d]]; if a cell is 0, 0.5 is added to all four.

    Rows are the groups, columns (true, false): positive if row 1 has the larger share. Equal shares
    (ad = bc in the counts, neither row empty) give exactly 0, even if a cell is 0 and the rows
    differ in size; swapping rows or columns gives exactly the negative.

    >>> round(log_odds_ratio([[109, 43], [34, 121]]), 6)
    2.199578
    >>> log_odds_ratio([[20, 0], [10, 0]])
    0.0

    Haldane (1955), Ann. Hum. Genet. 20:309.
    """
    cells = _cells(table)
    given = floats("table", table)
    # Products of counts are exact up to 2^53, so equal shares are detected before taking
    # logarithms.
    ad = cells[..., 0, 0] * cells[..., 1, 1]
    bc = cells[..., 0, 1] * cells[..., 1, 0]
    equal = given[..., 0, 0] * given[..., 1, 1] == given[..., 0, 1] * given[..., 1, 0]
    equal &= (given.sum(axis=-1) > 0).all(axis=-1) & np.isfinite(ad + bc)
    return unwrap(np.where(equal, 0.0, np.log(ad) - np.log(bc)))


def log_odds_ratio_se(table: Numbers) -> Result:
    """√(1/a + 1/b + 1/c + 1/d), with the same 0.5 if a cell is 0.

    >>> round(log_odds_ratio_se([[110, 40], [0, 86]]), 6)
    1.43014

    Woolf (1955), Ann. Hum. Genet. 19:251.
    """
    return unwrap(np.asarray(np.sqrt((1 / _cells(table)).sum(axis=(-1, -2)))))


def _cells(table: Numbers) -> Floats:
    cells = floats("table", table)
    if cells.shape[-2:] != (2, 2):
        raise ValueError(f"table: must have shape (…, 2, 2), has {cells.shape}")
    with np.errstate(invalid="ignore"):
        bad = np.asarray((cells < 0).any(axis=(-1, -2)))
        if cells.ndim == 2 and bad:
            raise ValueError(f"table: must hold counts of at least 0, got {float(cells.min()):g}")
        cells = np.where(bad[..., None, None], np.nan, cells)
        return np.asarray(cells + 0.5 * (cells == 0).any(axis=(-1, -2))[..., None, None])


def rank_biserial(u: Numbers, n1: Numbers, n2: Numbers, *, errors: str = "nan") -> Result:
    """2U/(n1·n2) − 1 with U = #(x > y) + ties/2 of the first group: P(x > y) − P(x < y).

    With the second group's U′ = n1·n2 − U it is 1 − 2U′/(n1·n2).

    >>> round(rank_biserial(29.5, 11, 10), 6)
    -0.463636

    Kerby (2014), Compr. Psychol. 3:11.IT.3.1.
    """
    us, first, second = sizes_of_u(u, n1, n2, errors)
    return evaluate(lambda u, m: 2 * u / m - 1, us, first * second)


def sizes_of_u(u: Numbers, n1: Numbers, n2: Numbers, errors: str) -> tuple[Floats, Floats, Floats]:
    """U and the sizes of both groups."""
    first = counts("n1", n1, least=1, errors=errors)
    second = counts("n2", n2, least=1, errors=errors)
    most = first * second
    us = at_least_0("u", u, errors=errors)
    us = domain("u", us + 0 * most, lambda v: v <= most, "at most n1·n2", errors=errors)
    return us, first, second


def rank_biserial_se(r: Numbers, n1: Numbers, n2: Numbers, *, errors: str = "nan") -> Result:
    """√(1/n1 + 1/n2 + r²/(2(n1 + n2))), as documented by HumanStudy-Bench.

    >>> round(rank_biserial_se(0.5, 20, 20), 6)
    0.321131
    """
    return cohens_d_se(r, n1, n2, errors=errors)


def proportion_se(p: Numbers, n: Numbers, *, errors: str = "nan") -> Result:
    """√(p(1 − p)/n): 0 at p = 0 and 1, where Wilson's interval should be shown
    (`karat.stats.proportion_interval`).

    >>> proportion_se(0.5, 100)
    0.05
    """
    share = within_0_1("p", p, errors=errors)
    return evaluate(
        lambda p, n: np.sqrt(p * (1 - p) / n), share, counts("n", n, least=1, errors=errors)
    )


def cohens_h(p1: Numbers, p2: Numbers, *, errors: str = "nan") -> Result:
    """2·asin√p1 − 2·asin√p2; exactly 0 for equal shares.

    >>> round(cohens_h(0.5, 0.4), 9)
    0.201357921

    Cohen (1988), 6.2.
    """
    first = within_0_1("p1", p1, errors=errors)
    second = within_0_1("p2", p2, errors=errors)
    return evaluate(
        lambda a, b: np.where(same_share(a, b), 0.0, _arcsine(a) - _arcsine(b)), first, second
    )


def same_share(p: Result, q: Result) -> NDArray[np.bool_]:
    """Whether two shares are equal up to the rounding of 1 − p; shares of up to 10⁷ differ by 10⁻¹⁴
    or more.
    """
    return np.asarray(np.abs(p - q) <= 2.0**-52)


def _arcsine(p: Floats) -> Floats:
    return np.asarray(2 * np.arctan2(np.sqrt(p), np.sqrt(1 - p)))


def to_cohens_d(
    kind: str,
    value: Numbers,
    *,
    p0: Numbers = 0.5,
    convention: str = "humanstudy",
    errors: str = "nan",
) -> Result:
    """An effect of the kind of test as Cohen's d.

    `value` is d for t tests and F with one numerator df, r for correlations, ln OR for tables, the
    share for `binomial` and `proportion`, the rank-biserial r for rank tests. Two conventions
    differ in shares, 2(p − p0)/√(p0(1 − p0)) or Cohen's h (`"standard"`), and in ranks, 2r/√(1 −
    r²) or √2·Φ⁻¹((r + 1)/2). |r| = 1, p0 of 0 or 1, and kinds without a d give NaN.

    >>> round(to_cohens_d("contingency", -1.0), 6), to_cohens_d("binomial", 0.75)
    (-0.551329, 1.0)
    >>> (
    ...     round(to_cohens_d("mannwhitney", 0.5), 6),
    ...     round(to_cohens_d("mannwhitney", 0.5, convention="standard"), 6),
    ... )
    (1.154701, 0.953873)

    Borenstein et al. (2009), Introduction to meta-analysis, 7; HumanStudy-Bench.
    """
    values, share = _convertible(kind, value, p0, convention, errors)
    return evaluate(lambda v, q: _convert(kind, v, q, convention)[0], values, share)


def to_cohens_d_se(
    kind: str,
    value: Numbers,
    se: Numbers,
    *,
    p0: Numbers = 0.5,
    convention: str = "humanstudy",
    errors: str = "nan",
) -> Result:
    """The standard error of `to_cohens_d` by the delta method, |dd/dx|·se.

    `se` is in the unit of the effect; for correlations that of Fisher's z.

    >>> round(to_cohens_d_se("correlation", 0.5, 0.2), 6)
    0.46188
    """
    values, share = _convertible(kind, value, p0, convention, errors)
    error = at_least_0("se", se, errors=errors)
    return evaluate(
        lambda v, q, s: np.abs(_convert(kind, v, q, convention)[1]) * s,
        values,
        share,
        error,
    )


def _convertible(
    kind: str,
    value: Numbers,
    p0: Numbers,
    convention: str,
    errors: str,
) -> tuple[Floats, Floats]:
    check_choice("kind", kind, KINDS)
    check_choice("convention", convention, CONVENTIONS)
    values = floats("value", value)
    if kind in _SHARES:
        values = within_0_1("value", value, errors=errors)
    elif kind in _RANKS or kind in {"correlation", "spearman"}:
        values = within_1("value", value, errors=errors)

    return values, within_0_1("p0", p0, errors=errors)


def _convert(kind: str, v: Floats, p0: Floats, convention: str) -> tuple[Floats, Floats]:
    """(d, slope of d in the unit of the standard error)."""
    if kind in _STANDARDISED:
        return v, np.ones_like(v)
    if kind == "contingency":
        return LOGISTIC * v, np.full_like(v, LOGISTIC)
    if kind in _SHARES:
        inside = (p0 > 0) & (p0 < 1)
        same = same_share(v, p0)
        if convention == "humanstudy":
            unit = np.where(inside, np.sqrt(p0 * (1 - p0)), np.nan)
            return np.where(same, 0.0, 2 * (v - p0)) / unit, 2 / unit

        known = np.where(inside, 1.0, np.nan)
        h = known * np.where(same, 0.0, _arcsine(v) - _arcsine(p0))
        return h, np.where((v > 0) & (v < 1), 1 / np.sqrt(v * (1 - v)), np.nan)

    if kind in {"correlation", "spearman"} or (kind in _RANKS and convention == "humanstudy"):
        left = np.where(np.abs(v) < 1, (1 - v) * (1 + v), np.nan)
        root = np.sqrt(left)
        d = 2 * v / root
        if kind in _RANKS:
            return d, 2 / (left * root)
        return d, 2 / root  # the standard error of a correlation is that of atanh r

    if kind in _RANKS:
        z = np.where(np.abs(v) < 1, special.ndtri((v + 1) / 2), np.nan)
        return np.sqrt(2.0) * z, np.sqrt(np.pi) * np.exp(z * z / 2)

    return np.full_like(v, np.nan), np.full_like(v, np.nan)


def z_diff(
    effect_human: Numbers,
    se_human: Numbers,
    effect_agent: Numbers,
    se_agent: Numbers,
    *,
    errors: str = "nan",
) -> Result:
    """How many standard errors the agent's effect is above the human one; NaN if both errors are 0.

    (e_a − e_h)/√(SE_a² + SE_h²), both in the same unit.

    >>> round(z_diff(-0.5, 0.2, 0.5, 0.2), 6)
    3.535534
    """
    first = at_least_0("se_human", se_human, errors=errors)
    second = at_least_0("se_agent", se_agent, errors=errors)

    def kernel(h: Floats, a: Floats, s: Floats, u: Floats) -> Floats:
        together = np.hypot(s, u)
        return np.where(together > 0, (a - h) / together, np.nan)

    return evaluate(
        kernel,
        floats("effect_human", effect_human),
        floats("effect_agent", effect_agent),
        first,
        second,
    )
