"""Effects and p-values: against SciPy, by their laws, at their edges."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from karat_studies.replication import (
    CONVENTIONS,
    KINDS,
    Side,
    StudyTest,
    cohens_d,
    cohens_d_se,
    cohens_h,
    d_from_means,
    fisher_z,
    log_odds_ratio,
    log_odds_ratio_se,
    measure,
    p_value,
    rank_biserial,
    score_test,
    to_cohens_d,
    to_cohens_d_se,
    z_diff,
)

patiently = settings(deadline=None)  # the first call of a kernel imports SciPy


def test_the_other_groups_u_turns_the_effect_round():
    for u in (0, 12, 55.5, 100):
        assert rank_biserial(u, 10, 10) == pytest.approx(-rank_biserial(100 - u, 10, 10))


def test_d_of_means_is_d_of_their_t():
    rng = np.random.default_rng(2)
    x, y = rng.normal(0.4, 1, 23), rng.normal(0, 1.4, 31)
    t = stats.ttest_ind(x, y).statistic
    d = d_from_means(x.mean(), x.std(ddof=1), 23, mean2=y.mean(), sd2=y.std(ddof=1), n2=31)
    assert d == pytest.approx(cohens_d(t, 23, 31), rel=1e-12)
    assert math.isnan(d_from_means(1, 0, 5, mean2=0, sd2=0, n2=5))


@pytest.mark.parametrize(
    ("kind", "value", "unit"),
    [
        ("contingency", 0.7, lambda v: v),
        ("binomial", 0.7, lambda v: v),
        ("mannwhitney", 0.4, lambda v: v),
        ("correlation", 0.4, math.atanh),
        ("spearman", -0.6, math.atanh),
        ("ttest_ind", 0.4, lambda v: v),
    ],
)
@pytest.mark.parametrize("convention", ["humanstudy", "standard"])
def test_the_error_of_d_is_the_slope_of_its_conversion(kind, value, unit, convention):
    step = 1e-6
    slope = (
        to_cohens_d(kind, value + step, p0=0.3, convention=convention)
        - to_cohens_d(kind, value - step, p0=0.3, convention=convention)
    ) / (unit(value + step) - unit(value - step))
    found = to_cohens_d_se(kind, value, 0.1, p0=0.3, convention=convention)
    assert found == pytest.approx(0.1 * abs(slope), rel=1e-7)


@pytest.mark.parametrize(("kind", "value"), [("correlation", 1.0), ("mannwhitney", -1.0), ("variance_ratio", 0.3)])
@pytest.mark.parametrize("convention", ["humanstudy", "standard"])
def test_what_has_no_d_is_missing(kind, value, convention):
    assert math.isnan(to_cohens_d(kind, value, convention=convention))
    assert math.isnan(to_cohens_d("binomial", 0.5, p0=1.0, convention=convention))


@patiently
@given(v=st.floats(-0.99, 0.99))
def test_conversions_are_odd_and_grow(v):
    for kind in ("correlation", "mannwhitney", "contingency", "ttest_ind"):
        for convention in ("humanstudy", "standard"):
            assert to_cohens_d(kind, -v, convention=convention) == pytest.approx(
                -to_cohens_d(kind, v, convention=convention), abs=1e-12
            )
            assert to_cohens_d(kind, v + 0.005, convention=convention) > to_cohens_d(kind, v, convention=convention)


def test_an_empty_cell_adds_one_half_to_all():
    assert log_odds_ratio([[10, 0], [5, 5]]) == pytest.approx(math.log(10.5 * 5.5 / (0.5 * 5.5)))
    assert log_odds_ratio_se([[10, 0], [5, 5]]) == pytest.approx(math.sqrt(1 / 10.5 + 1 / 0.5 + 2 / 5.5))
    assert log_odds_ratio(np.array([[[1, 2], [3, 4]], [[3, 4], [1, 2]]])).sum() == pytest.approx(0)
    with pytest.raises(ValueError, match="table: must hold counts of at least 0, got -1"):
        log_odds_ratio([[1, -1], [2, 3]])
    with pytest.raises(ValueError, match=r"table: must have shape"):
        log_odds_ratio([[1, 2, 3], [4, 5, 6]])


def test_effects_refuse_and_miss():
    with pytest.raises(ValueError, match=r"kind: must be one of .*, got 'chi'"):
        to_cohens_d("chi", 1.0)
    with pytest.raises(ValueError, match="convention: must be one of humanstudy, standard"):
        to_cohens_d("binomial", 0.5, convention="other")
    assert math.isnan(fisher_z(1.0))
    assert math.isnan(z_diff(0.5, 0.0, 0.4, 0.0))
    assert z_diff(0.5, 0.3, 0.4, 0.4) == pytest.approx(-0.2)
    assert cohens_d_se(0.0, 10, 10) == pytest.approx(math.sqrt(0.2))


def test_p_values_agree_with_scipy():
    rng = np.random.default_rng(4)
    x, y = np.round(rng.normal(0.5, 1, 12), 1), np.round(rng.normal(0, 1.5, 15), 2)
    assert p_value("ttest_ind", stats.ttest_ind(x, y).statistic, n1=12, n2=15) == pytest.approx(
        stats.ttest_ind(x, y).pvalue
    )
    welch = stats.ttest_ind(x, y, equal_var=False)
    assert p_value("welch", welch.statistic, df=welch.df) == pytest.approx(welch.pvalue)
    assert p_value("ttest_one", stats.ttest_1samp(x, 0).statistic, n1=12) == pytest.approx(
        stats.ttest_1samp(x, 0).pvalue
    )
    r = stats.pearsonr(x, y[:12])
    assert p_value("correlation", r.statistic, n1=12) == pytest.approx(r.pvalue)
    f = stats.f_oneway(x, y, y + 0.3)
    assert p_value("anova", f.statistic, df=2, df2=39) == pytest.approx(f.pvalue)
    for k, n, p0 in [(3, 20, 0.3), (0, 9, 0.5), (15, 20, 0.9), (500, 1000, 0.47)]:
        assert p_value("binomial", k, n1=n, p0=p0) == pytest.approx(stats.binomtest(k, n, p0).pvalue)
    for table in ([[3, 7], [6, 4]], [[109, 43], [34, 121]], [[0, 5], [7, 3]]):
        assert p_value("contingency", table) == pytest.approx(stats.fisher_exact(table).pvalue)
    wide = [[12, 5, 8], [6, 14, 9]]
    assert p_value("contingency", wide) == pytest.approx(stats.chi2_contingency(wide).pvalue)
    u = stats.mannwhitneyu(x, y + 0.003, method="exact")
    assert p_value("mannwhitney", u.statistic, n1=12, n2=15) == pytest.approx(u.pvalue)
    assert p_value("wilcoxon", 1.96) == pytest.approx(0.05, abs=1e-4)
    ratio = x.var(ddof=1) / y.var(ddof=1)
    assert p_value("variance_ratio", ratio, n1=12, n2=15) == pytest.approx(
        2 * min(stats.f.cdf(ratio, 11, 14), stats.f.sf(ratio, 11, 14))
    )


def test_every_kind_has_a_p_value():
    given = {
        "contingency": [[3, 7], [6, 4]],
        "binomial": 3,
        "proportion": 3,
        "correlation": 0.3,
        "spearman": 0.3,
    }
    for kind in KINDS:
        found = p_value(kind, given.get(kind, 2.0), n1=12, n2=15, df=1 if kind == "anova" else 25, df2=25)
        assert 0 < found < 1, kind


def test_p_values_name_what_they_lack():
    with pytest.raises(ValueError, match="df: is required for Welch's t"):
        p_value("welch", 2.0, n1=10, n2=10)
    with pytest.raises(ValueError, match="U must lie between 0 and 100, got 101"):
        p_value("mannwhitney", 101, n1=10, n2=10)
    with pytest.raises(ValueError, match="must be 0 ≤ k ≤ n"):
        p_value("binomial", 11, n1=10)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        pytest.param(81, 263, 0.2553, 0.3662, id="Newcombe 1998, table I, method 3"),
        pytest.param(15, 148, 0.0624, 0.1605, id="Newcombe 1998, the second example"),
        pytest.param(0, 20, 0.0, 0.1611, id="none of n"),
        pytest.param(29, 29, 0.8830, 1.0, id="all of n"),
    ],
)
def test_wilson_stands_beside_the_standard_error_of_a_share(k, n, low, high):
    side = Side(statistic=float(k), n1=n)
    found = measure("binomial", side, method="default")
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_a_correlation_has_its_interval_through_fisher():
    found = measure("correlation", Side(statistic=0.5, n1=28), method="default")
    ends = np.tanh(np.arctanh(0.5) + 0.2 * 1.959964 * np.array([-1, 1]))
    assert (found.low, found.high) == pytest.approx(tuple(ends))


def swapped(table):
    """The table with its rows, its columns, and both exchanged."""
    (a, b), (c, d) = table
    return [[c, d], [a, b]], [[b, a], [d, c]], [[d, c], [b, a]]


cells = st.integers(0, 10**6)
rows_of_people = st.tuples(cells, cells).filter(lambda row: sum(row) > 0)


@patiently
@given(one=rows_of_people, two=rows_of_people)
def test_exchanged_rows_or_columns_turn_a_log_odds_ratio_round_to_the_last_bit(one, two):
    table = [list(one), list(two)]
    rows, columns, both = (log_odds_ratio(other) for other in swapped(table))
    assert rows == columns == -log_odds_ratio(table)
    assert both == log_odds_ratio(table)
    assert [log_odds_ratio_se(other) for other in swapped(table)] == pytest.approx([log_odds_ratio_se(table)] * 3)
    assert log_odds_ratio([table, table]).tolist() == [log_odds_ratio(table)] * 2


@patiently
@given(k=st.integers(0, 1_000), rest=st.integers(0, 1_000), one=st.integers(1, 50), two=st.integers(1, 50))
def test_equal_shares_have_no_effect_in_any_measure(k, rest, one, two):
    """The same share in groups of other sizes: by multiples of the counts, so that it is equal in fractions."""
    if k + rest == 0:
        return
    table = [[one * k, one * rest], [two * k, two * rest]]
    n = one * (k + rest), two * (k + rest)
    p, q = one * k / n[0], two * k / n[1]
    for other in (table, *swapped(table)):
        assert log_odds_ratio(other) == 0
        assert measure("contingency", Side(table=tuple(map(tuple, other))), method="independent_multinomial").sign == 0
    for first, second in ((p, q), (q, p), (1 - p, 1 - q), (1 - p, two * rest / n[1])):
        assert cohens_h(first, second) == 0
    if 0 < p < 1:
        for hits, reference in ((k, q), (rest, 1 - q)):
            share = hits / (k + rest)
            assert [to_cohens_d("binomial", share, p0=reference, convention=one) for one in CONVENTIONS] == [0, 0]
            found = measure("binomial", Side(statistic=hits, n1=k + rest, p0=reference), method="default")
            assert (found.sign, found.d) == (0, 0)
    if k > 1 and rest:
        assert d_from_means(p, 1, n[0] + 1, mean2=q, sd2=1, n2=n[1] + 1) == 0


@pytest.mark.parametrize(
    ("kind", "agent"),
    [
        ("contingency", Side(table=((20, 0), (20, 0)))),
        ("contingency", Side(table=((20, 0), (33, 0)))),
        ("contingency", Side(table=((0, 7), (0, 7)))),
        ("contingency", Side(table=((3, 9), (5, 15)))),
        ("binomial", Side(statistic=7.0, n1=21, p0=1 / 3)),
        ("binomial", Side(statistic=14.0, n1=21, p0=1 - 1 / 3)),
    ],
)
def test_an_agent_whose_answers_do_not_vary_has_no_direction(kind, agent):
    human = Side(table=((30, 10), (12, 28))) if kind == "contingency" else Side(statistic=9.0, n1=10, p0=0.5)
    found = score_test(StudyTest(study="s", finding="F", test="T", kind=kind, human=human, agent=agent))
    assert (found.agent.sign, found.same_direction, found.opposed) == (0, None, False)
    assert math.isnan(found.pas_directional) is (kind == "contingency")


def test_groups_without_anybody_have_an_n_of_0():
    side = Side(statistic=4.0, df1=2.0, df2=9.0, sizes=(0.0, 0.0, 0.0))
    assert measure("anova", side, method="jzs").n_eff == 0
    assert measure("anova", replace(side, sizes=()), method="jzs").n_eff == 12
