"""Intraclass correlations."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from karat import stats

# Shrout and Fleiss (1979), table 2: six subjects, four judges.
RATINGS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
FORMS = ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)")
PRINTED = (0.17, 0.29, 0.71, 0.44, 0.62, 0.91)

tables = st.tuples(st.integers(2, 7), st.integers(2, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(0, 9), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    )
)


@pytest.mark.parametrize(("model", "printed"), list(zip(FORMS, PRINTED, strict=True)))
def test_every_form_agrees_with_shrout_and_fleiss(model, printed):
    """Table 4."""
    assert stats.icc(RATINGS, model=model).value == pytest.approx(printed, abs=0.005)


def test_the_interval_of_consistency_agrees_with_its_f_distribution():
    """MS 11.24 between targets and 1.02 residual (table 3): F with 5 and 15 degrees of freedom."""
    found = stats.icc(RATINGS, model="ICC(3,1)")
    ratio = 11.241667 / 1.019444
    low, high = ratio / scipy.stats.f.ppf(0.975, 5, 15), ratio * scipy.stats.f.ppf(0.975, 15, 5)
    assert (found.low, found.high) == pytest.approx(((low - 1) / (low + 3), (high - 1) / (high + 3)), rel=1e-6)


@given(table=tables)
def test_single_ratings_agree_with_correlations_in_the_plain_sense(table):
    """ICC(3,1) is the mean covariance of two raters over their mean variance; ICC(2,1) adds their own variance."""
    cover = np.atleast_2d(np.cov(np.array(table).T))
    k, n = len(cover), len(table)
    covariance = (cover.sum() - np.trace(cover)) / (k * (k - 1))
    found, agreement = stats.icc(table, model="ICC(3,1)"), stats.icc(table, model="ICC(2,1)")
    if np.trace(cover) > 1e-9:
        assert found.value == pytest.approx(k * covariance / np.trace(cover), abs=1e-9)
    between = np.var(np.mean(table, axis=0), ddof=1) - (np.trace(cover) / k - covariance) / n
    total = np.trace(cover) / k + between
    if total > 1e-9:
        assert agreement.value == pytest.approx(covariance / total, abs=1e-9)


def _of_one_rater(bound: float, k: int, model: str) -> float:
    """A bound of the mean of k raters as that of one (Spearman and Brown): the mean's has a pole at -1/(k - 1), where
    rounding decides its size.
    """
    return bound / (k - (k - 1) * bound) if model.endswith(",k)") else bound


@given(table=tables, model=st.sampled_from(FORMS))
@example(table=[[1, 9, 9], [8, 6, 7], [1, 9, 6], [8, 7, 4]], model="ICC(2,k)")
@example(table=[[0, 0, 0, 0, 3], [0, 0, 0, 2, 1]], model="ICC(2,1)")  # equal means: no interval, whatever the rounding
def test_a_table_and_its_columns_give_the_same(table, model):
    n, k = len(table), len(table[0])
    y, at, by = np.ravel(table), np.repeat(range(n), k), np.tile(range(k), n)
    mixed = np.random.default_rng(1).permutation(n * k)
    one, two = stats.icc(table, model=model), stats.icc(y[mixed], at[mixed], by[mixed], model=model)
    assert one.value == pytest.approx(two.value, abs=1e-9, nan_ok=True)
    for bound, other in ((one.low, two.low), (one.high, two.high)):
        assert _of_one_rater(bound, k, model) == pytest.approx(_of_one_rater(other, k, model), abs=1e-9, nan_ok=True)


@given(table=tables, scale=st.sampled_from([-2.0, 0.5]), shift=st.integers(-50, 50), model=st.sampled_from(FORMS))
def test_the_scale_does_not_matter_and_the_value_lies_in_its_interval(table, scale, shift, model):
    one = stats.icc(table, model=model)
    two = stats.icc([[scale * value + shift for value in row] for row in table], model=model)
    assert [one.value, one.low] == pytest.approx([two.value, two.low], abs=1e-9, nan_ok=True)
    assert one.value <= 1 + 1e-12 or math.isnan(one.value)
    assert math.isnan(one.value) == (one.reason is not None and math.isnan(one.low) and math.isnan(one.value))
    if not math.isnan(one.low):
        assert one.low - 1e-9 <= one.value <= one.high + 1e-9


def test_an_interval_that_would_leave_out_its_estimate_is_none():
    """Shrout and Fleiss's formula gives −.2071 with the interval [−.2135, −.2129] here: nothing can be said."""
    found = stats.icc([[0, 0, 0, 3], [0, 0, 0, 4], [0, 0, 0, 4], [0, 0, 4, 0]], model="ICC(2,1)")
    assert found.value == pytest.approx(-0.2071, abs=1e-4)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.reason is not None
    assert "no interval" in found.reason


def test_things_that_all_raters_rated_alike_have_no_correlation():
    """The means of such rows differ by rounding alone."""
    found = stats.icc([[0, 0, 0, 0, 1]] * 3, model="ICC(3,1)")
    assert math.isnan(found.value)
    assert found.reason == "no variance but between raters"


@given(table=tables, shifts=st.lists(st.integers(-9, 9), min_size=5, max_size=5))
def test_levels_of_raters_count_for_agreement_only(table, shifts):
    moved = [[value + shift for value, shift in zip(row, shifts, strict=False)] for row in table]
    one, two = (stats.icc(rows, model="ICC(3,1)") for rows in (table, moved))
    assert one.value == pytest.approx(two.value, abs=1e-9, nan_ok=True)


def test_a_mean_of_ratings_is_spearman_and_browns():
    for one, many in (("ICC(1,1)", "ICC(1,k)"), ("ICC(2,1)", "ICC(2,k)"), ("ICC(3,1)", "ICC(3,k)")):
        single, mean = stats.icc(RATINGS, model=one), stats.icc(RATINGS, model=many)
        assert mean.value == pytest.approx(stats.spearman_brown(single.value, 4))
        assert mean.low == pytest.approx(4 * single.low / (1 + 3 * single.low))


def test_unequal_numbers_of_ratings_are_for_form_1_only():
    y, at = [4, 5, 3, 3, 5, 4, 4], [1, 1, 2, 2, 3, 3, 3]
    assert stats.icc(y, at).value == pytest.approx(stats.variance_components(y, at, method="anova").icc.value)
    assert not math.isnan(stats.icc(y, at, model="ICC(1,k)").value)
    found = stats.icc(y, at, [1, 2, 1, 2, 1, 2, 3], model="ICC(2,1)")
    assert found.reason == "2 of 9 ratings are missing"
    assert stats.icc(y[:6], at[:6], [1, 1, 1, 2, 1, 2], model="ICC(2,1)").reason == (
        "1 ratings repeat one of the same item by the same rater"
    )


@pytest.mark.parametrize(
    ("table", "model", "reason"),
    [
        ([[1, 1], [1, 1]], "ICC(2,1)", "all values are equal"),
        ([[1, 2], [1, 2]], "ICC(3,1)", "no variance but between raters"),
        ([[1, 2], [2, 1]], "ICC(2,1)", "the estimated variances add up to 0"),
        ([[1, 2], [2, 1]], "ICC(3,k)", "ratings of one thing are as unlike as they can be: their mean has no reliab"),
        ([[1, 2], [1, 2]], "ICC(1,k)", "ratings of one thing are as unlike as they can be: their mean has no reliab"),
        ([[1, 2, 3]], "ICC(2,1)", "needs two questions"),
        ([[1], [2]], "ICC(3,k)", "needs two raters"),
        ([[1, None], [2, 3]], "ICC(2,1)", "1 of 4 values are missing"),
        ([[1, None], [2, 3]], "ICC(1,k)", "1 of 4 values are missing"),
    ],
)
def test_what_cannot_be_known_is_nan_with_a_reason(table, model, reason):
    found = stats.icc(table, model=model)
    assert math.isnan(found.value)
    assert found.reason.startswith(reason)


@pytest.mark.parametrize("model", FORMS)
def test_raters_that_always_agree_have_a_correlation_of_1(model):
    found = stats.icc([[1, 1, 1], [2, 2, 2], [5, 5, 5]], model=model)
    assert (found.value, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.icc(RATINGS, model="ICC(4,1)"), r"model: must be one of ICC\(1,1\), .*, got 'ICC\(4,1\)'"),
        (lambda: stats.icc([1, 2, 3]), "y: without question, must be a table"),
        (lambda: stats.icc([[1, 2], [3]]), "y: without question, must be a table"),
        (lambda: stats.icc([]), "y: without question, must be a table"),
        (lambda: stats.icc(RATINGS, rater=[1]), "question: must be given where rater is"),
        (lambda: stats.icc([1, 2], [1, 2], model="ICC(2,1)"), r"rater: must be given for ICC\(2,1\)"),
        (lambda: stats.icc([1, 2], [1, 2], [1], model="ICC(2,1)"), "clusters: must be as many as values"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("model", "table", "reason"),
    [
        ("ICC(3,1)", [[1, 2], [2, 3]], "things and raters account for every rating: the interval is a point"),
        ("ICC(2,1)", [[1, 1], [2, 2]], "things and raters account for every rating: the interval is a point"),
        ("ICC(1,1)", [[1, 1], [2, 2]], "answers to one question never differ: the interval is a point"),
    ],
)
def test_a_point_has_a_reason(model, table, reason):
    found = stats.icc(table, model=model)
    assert (found.low, found.high, found.reason, found.method) == (1.0, 1.0, reason, f"{model}, anova")
