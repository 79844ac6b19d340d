"""Laws that Bayes factors obey, beside the vectors."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from karat_studies.replication import (
    log_bf10_anova,
    log_bf10_binomial,
    log_bf10_bound_from_p,
    log_bf10_contingency,
    log_bf10_kendall,
    log_bf10_mann_whitney,
    log_bf10_meta_ttest,
    log_bf10_pearson,
    log_bf10_regression,
    log_bf10_spearman,
    log_bf10_ttest,
    log_bf10_z,
)

patiently = settings(deadline=None)  # the first call of a kernel imports SciPy

SIZES = st.integers(2, 10_000_000)
TS = st.floats(-300, 300)


@patiently
@given(t=TS, n1=SIZES, n2=SIZES)
def test_t_is_finite_and_the_same_for_groups_the_other_way_round(t, n1, n2):
    found = log_bf10_ttest(t, n1, n2)
    assert math.isfinite(found)
    assert found == log_bf10_ttest(-t, n1, n2)
    assert found == log_bf10_ttest(t, n2, n1)


@pytest.mark.parametrize(("n1", "n2"), [(2, 2), (5, 90), (40, 40), (10**7, 10**7), (3, 10**6), (12, None)])
def test_evidence_grows_with_the_distance_of_t_from_0(n1, n2):
    steps = np.diff(log_bf10_ttest(np.linspace(0, 300, 6_001), n1, n2))
    assert (steps > 0).all()


@patiently
@given(t=st.floats(-100, 100), n=st.integers(3, 100_000), rscale=st.floats(0.1, 3))
def test_the_two_sides_share_the_evidence(t, n, rscale):
    both, above, below = (
        log_bf10_ttest(t, n, rscale=rscale, alternative=one) for one in ("two-sided", "greater", "less")
    )
    assert np.logaddexp(above, below) == pytest.approx(math.log(2) + both, abs=1e-10, rel=1e-12)
    assert below == pytest.approx(log_bf10_ttest(-t, n, rscale=rscale, alternative="greater"), abs=1e-12)


@patiently
@given(t=st.floats(0, 60), n1=st.integers(2, 5_000), n2=st.integers(2, 5_000), rscale=st.floats(0.1, 2))
def test_f_of_two_groups_is_t_squared(t, n1, n2, rscale):
    as_t = log_bf10_ttest(t, n1, n2, rscale=rscale * math.sqrt(2))
    as_f = log_bf10_anova(t * t, 1, n1 + n2 - 2, n_per_group=[n1, n2], rscale=rscale)
    assert as_f == pytest.approx(as_t, abs=1e-9, rel=1e-11)


def test_the_default_scales_of_t_and_f_agree():
    for t, n in itertools.product((0, 0.3, 2.66, 9), (5, 40, 1000)):
        as_f = log_bf10_anova(t * t, 1, 2 * n - 2, n_per_group=n, rscale=0.5)
        assert as_f == pytest.approx(log_bf10_ttest(t, n, n, rscale=math.sqrt(0.5)), abs=1e-11)


def test_t_of_many_is_z():
    n = 10**7
    for z in (0.0, 1.0, 3.0, 8.0):
        assert log_bf10_ttest(z, n) == pytest.approx(log_bf10_z(z, n), abs=2e-4)
        for one in ("greater", "less"):
            assert log_bf10_ttest(z, n, alternative=one) == pytest.approx(log_bf10_z(z, n, alternative=one), abs=2e-4)


def test_regression_of_one_predictor_is_the_f_of_the_correlation():
    """A slope with scale r, N observations: G = N·r² on both pages."""
    r2, n = 0.3, 50
    f = r2 / (1 - r2) * (n - 2)
    as_f = log_bf10_anova(f, 1, n - 2, n_per_group=n, rscale=0.3)
    assert log_bf10_regression(r2, n, 1, rscale=0.3) == pytest.approx(as_f, abs=1e-12)


def test_little_information_is_little_evidence():
    assert abs(log_bf10_ttest(0.0, 2, rscale=1e-4)) < 1e-3
    assert abs(log_bf10_z(0.0, 1e-6)) < 1e-2
    assert log_bf10_binomial(0, 0) == 0.0
    assert log_bf10_pearson(1.0, 2) == 0.0


@pytest.mark.parametrize("function", [log_bf10_pearson, log_bf10_spearman, log_bf10_kendall])
@pytest.mark.parametrize("n", [4, 5, 20, 300, 100_000])
def test_evidence_of_a_correlation_grows_with_it_and_its_sides_share_it(function, n):
    r = np.linspace(0, 0.999, 200)
    both, above, below = (function(r, n, alternative=one) for one in ("two-sided", "greater", "less"))
    assert np.isfinite(both).all()
    assert (np.diff(both) > -1e-9).all()
    assert np.logaddexp(above, below) == pytest.approx(math.log(2) + both, abs=1e-8, rel=1e-10)
    assert function(-r, n) == pytest.approx(both, abs=1e-12)
    assert function(-r, n, alternative="less") == pytest.approx(above, abs=1e-12)


@pytest.mark.parametrize("kappa", [0.2, 1 / 3, 1, 2, 7])
def test_pearson_agrees_with_quadrature_over_the_likelihood(kappa):
    """Independent of the hypergeometric form: Hotelling's density by SciPy's 2F1, a fine grid in atanh ρ."""
    z = np.linspace(-12, 12, 60_001)
    rho, a = np.tanh(z), 1 / kappa
    for r, n in [(0.0, 5), (0.3, 40), (-0.7, 12), (0.9, 60)]:
        likelihood = (1 - rho**2) ** ((n - 1) / 2) * (1 - rho * r) ** (1.5 - n)
        likelihood *= special.hyp2f1(0.5, 0.5, n - 0.5, (1 + rho * r) / 2) / special.hyp2f1(0.5, 0.5, n - 0.5, 0.5)
        prior = 2 ** (1 - 2 * a) / special.beta(a, a) * (1 - rho**2) ** a
        wanted = math.log(float((likelihood * prior).sum() * (z[1] - z[0])))
        assert log_bf10_pearson(r, n, kappa=kappa) == pytest.approx(wanted, abs=1e-8)


@patiently
@given(k=st.integers(0, 60), n=st.integers(0, 60), p0=st.floats(0.02, 0.98))
def test_binomial_agrees_with_the_sum_over_all_outcomes(k, n, p0):
    """Under a uniform prior every k of n is as likely, 1/(n + 1)."""
    k = min(k, n)
    chance = math.comb(n, k) * p0**k * (1 - p0) ** (n - k)
    assert log_bf10_binomial(k, n, p0=p0) == pytest.approx(-math.log((n + 1) * chance), abs=1e-10)


@patiently
@given(k=st.integers(0, 500), n=st.integers(1, 500), p0=st.floats(0.05, 0.95), a=st.floats(0.3, 5), b=st.floats(0.3, 5))
def test_binomial_is_the_same_for_failures_and_its_sides_share_it(k, n, p0, a, b):
    k = min(k, n)
    both = log_bf10_binomial(k, n, p0=p0, a=a, b=b)
    assert both == pytest.approx(log_bf10_binomial(n - k, n, p0=1 - p0, a=b, b=a), abs=1e-8)
    above = log_bf10_binomial(k, n, p0=p0, a=a, b=b, alternative="greater")
    below = log_bf10_binomial(k, n, p0=p0, a=a, b=b, alternative="less")
    mass = special.betaincc(a, b, p0)
    assert np.logaddexp(math.log(mass) + above, math.log1p(-mass) + below) == pytest.approx(both, abs=1e-8)


def test_one_sided_binomial_stays_finite_against_all_evidence():
    n = 10**6
    assert log_bf10_binomial(0, n, alternative="greater") == pytest.approx(-math.log(n + 1), abs=1e-5)
    assert log_bf10_binomial([0, n], n, alternative="less")[0] == pytest.approx(
        log_bf10_binomial(0, n) + math.log(2), abs=1e-9
    )


TABLES = st.lists(st.lists(st.integers(0, 300), min_size=2, max_size=3), min_size=2, max_size=2).filter(
    lambda rows: len(rows[0]) == len(rows[1]) and sum(map(sum, rows)) > 0
)


@patiently
@given(table=TABLES)
def test_a_table_says_the_same_turned_and_reordered(table):
    y = np.array(table)
    for sampling in ("poisson", "joint_multinomial"):
        found = log_bf10_contingency(y, sampling=sampling)
        assert found == pytest.approx(log_bf10_contingency(y.T, sampling=sampling), abs=1e-9)
        assert found == pytest.approx(log_bf10_contingency(y[::-1, ::-1], sampling=sampling), abs=1e-9)
    rows = log_bf10_contingency(y, fixed="rows")
    assert rows == pytest.approx(log_bf10_contingency(y.T, fixed="columns"), abs=1e-9)


@patiently
@given(k1=st.integers(0, 80), k2=st.integers(0, 80), n1=st.integers(1, 80), n2=st.integers(1, 80))
def test_two_groups_with_rows_fixed_is_two_uniform_shares_against_one(k1, k2, n1, n2):
    """BF = ∫∫ of two independent shares over ∫ of a common one: B-functions, nothing of Gunel & Dickey."""
    k1, k2 = min(k1, n1), min(k2, n2)
    wanted = special.betaln(k1 + 1, n1 - k1 + 1) + special.betaln(k2 + 1, n2 - k2 + 1)
    wanted = wanted - special.betaln(k1 + k2 + 1, n1 + n2 - k1 - k2 + 1)
    both = log_bf10_contingency([[k1, n1 - k1], [k2, n2 - k2]])
    # Dirichlet(1) on the cells: margins of columns under H0 are Beta(1, 1), shares of rows Beta(1, 1)
    assert both == pytest.approx(wanted, abs=1e-9)


def test_mann_whitney_is_the_same_for_the_other_group_and_grows_with_the_distance():
    u = np.arange(0, 401)
    found = log_bf10_mann_whitney(u, 20, 20)
    assert found == pytest.approx(found[::-1], abs=1e-9)
    assert (np.diff(found[200:]) > 0).all()
    above, below = (log_bf10_mann_whitney(u, 20, 20, alternative=one) for one in ("greater", "less"))
    assert np.logaddexp(above, below) == pytest.approx(math.log(2) + found, abs=1e-9)
    assert np.isfinite(log_bf10_mann_whitney([0.5, 12.0], 20, 20)).all()  # ties: asymptotic


@pytest.mark.parametrize(("n1", "n2"), [(1, 1), (2, 3), (7, 4), (20, 22)])
def test_the_counts_of_u_are_those_of_all_orders(n1, n2):
    from karat_studies.replication.ranks import log_null

    found = np.exp(log_null(n1, n2))
    assert found.sum() == pytest.approx(1, abs=1e-12)
    if n1 + n2 <= 11:
        seen = [
            sum(rank - place for place, rank in enumerate(picked))
            for picked in itertools.combinations(range(n1 + n2), n1)
        ]
        assert found * math.comb(n1 + n2, n1) == pytest.approx(np.bincount(seen, minlength=n1 * n2 + 1), abs=1e-9)


@given(t=st.floats(-8, 8), n=st.integers(2, 500))
def test_one_test_pooled_is_that_test(t, n):
    assert log_bf10_meta_ttest([t], [n]) == pytest.approx(log_bf10_ttest(t, n), abs=1e-9)
    for one in ("greater", "less"):
        # One-sided, the pooled integral ends at 0: at |t| below 1e-3 it is good to 7e-8 (the contract asks for 1e-6).
        assert log_bf10_meta_ttest([t], [n], alternative=one) == pytest.approx(
            log_bf10_ttest(t, n, alternative=one), abs=1e-7
        )


def test_a_bound_is_above_every_bayes_factor_of_its_p():
    t = np.linspace(0.1, 12, 300)
    p = 2 * special.stdtr(58, -t)
    assert (log_bf10_ttest(t, 30, 30) <= log_bf10_bound_from_p(p)).all()
    assert log_bf10_bound_from_p(0.0) == math.inf
    assert log_bf10_bound_from_p(0.9) == 0.0


SWEEP = np.array([0, 1e-8, 1, 50, 1e3, -1e-8, -1, -50, -1e3])


@pytest.mark.parametrize("n", [2, 3, 10, 10**6])
def test_nothing_overflows_and_nothing_warns(n):
    with np.errstate(all="raise"):
        for one in ("two-sided", "greater", "less"):
            assert np.isfinite(log_bf10_ttest(SWEEP, n, alternative=one)).all()
            assert np.isfinite(log_bf10_ttest(SWEEP, n, n, alternative=one)).all()
            assert np.isfinite(log_bf10_z(SWEEP, n, alternative=one)).all()
        assert np.isfinite(log_bf10_anova(SWEEP**2, 3, 4 * n, n_per_group=n)).all()
        assert np.isfinite(log_bf10_anova(SWEEP**2, 3, 4 * n, method="pearson")).all()


def test_certainty_is_infinite():
    assert log_bf10_ttest(math.inf, 10, 10) == math.inf
    assert log_bf10_ttest([-math.inf], 10, alternative="greater")[0] < 0
    assert log_bf10_pearson(-1.0, 10) == math.inf
    assert log_bf10_pearson(-1.0, 10, alternative="less") == math.inf
    assert log_bf10_spearman(1.0, 10) == math.inf
    assert log_bf10_regression(1.0, 10, 2) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_bf10_ttest(1.0, 1), "n1: must be a whole number of at least 2, got 1"),
        (lambda: log_bf10_ttest(1.0, 1, 1), "n1 \\+ n2: must be at least 3"),
        (lambda: log_bf10_ttest(1.0, 10.5), "n1: must be a whole number"),
        (lambda: log_bf10_ttest(1.0, 10, 0), "n2: must be a whole number of at least 1, got 0"),
        (lambda: log_bf10_ttest(1.0, 10, rscale=0), "rscale: must be above 0, got 0"),
        (lambda: log_bf10_ttest("a", 10), "t: must be numbers, got 'a'"),
        (lambda: log_bf10_ttest(1.0, 10, alternative="up"), "alternative: must be one of"),
        (lambda: log_bf10_pearson(1.01, 10), "r: must be between −1 and 1, got 1.01"),
        (lambda: log_bf10_binomial(11, 10), "k: must be at most n, got 11"),
        (lambda: log_bf10_binomial(1, 10, p0=1), "p0: must be between 0 and 1, got 1"),
        (lambda: log_bf10_anova(-1, 1, 10, n_per_group=6), "f: must be at least 0, got -1"),
        (lambda: log_bf10_anova(1, 1, 10), "n_per_group: is required"),
        (lambda: log_bf10_anova(1, 2, 10, n_per_group=[5, 5]), "one number, or df1 \\+ 1 sizes"),
        (lambda: log_bf10_mann_whitney(101, 10, 10), "u: must be at most n1·n2, got 101"),
        (lambda: log_bf10_contingency([[0, 0], [0, 0]]), "not all 0; all are 0"),
        (lambda: log_bf10_contingency([[1, -2], [3, 4]]), "got -2"),
        (lambda: log_bf10_contingency([1, 2]), "must have shape"),
        (lambda: log_bf10_contingency([[1, 2], [3, 4]], a=0.5), "a: must be above 0.5"),
    ],
)
def test_a_number_outside_its_domain_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_in_arrays_what_is_outside_is_nan_unless_errors_are_wanted():
    found = log_bf10_pearson([0.3, 1.5, math.nan], 40)
    assert np.isnan(found).tolist() == [False, True, True]
    assert found[0] == log_bf10_pearson(0.3, 40)
    with pytest.raises(ValueError, match=r"r: must be between −1 and 1, got 1.5"):
        log_bf10_pearson([0.3, 1.5], 40, errors="raise")
    assert np.isnan(log_bf10_ttest(1.0, [1, 10], 5)).tolist() == [False, False]
    assert np.isnan(log_bf10_ttest(1.0, [0, 10], 5)).tolist() == [True, False]
    tables = np.array([[[1, 2], [3, 4]], [[0, 0], [0, 0]], [[1, 2.5], [3, 4]]])
    assert np.isnan(log_bf10_contingency(tables)).tolist() == [False, True, True]
    assert math.isnan(log_bf10_ttest(math.nan, 10))


def test_arguments_broadcast_and_blocks_do_not_show():
    t, n = np.linspace(-5, 5, 9_001)[:, None], np.array([10, 50])
    found = log_bf10_ttest(t, n, n)
    assert found.shape == (9_001, 2)
    assert found.dtype == np.float64
    alone = [log_bf10_ttest(float(x), 50, 50) for x in t[4_095:4_098, 0]]
    assert found[4_095:4_098, 1] == pytest.approx(alone, rel=1e-13)
