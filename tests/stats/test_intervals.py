"""Intervals of means."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from karat import stats
from karat.stats.intervals import too_few_clusters

SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]  # Cushny and Peebles (1905), in Student (1908)

MICE = [52, 104, 146, 10, 50, 31, 40, 27, 46]  # days, control group: Efron and Tibshirani (1993), table 2.1


def _drawn(values, clusters=None, *, method="bootstrap-t", seed=1, **more):
    return stats.mean_interval(values, clusters, method=method, rng=np.random.default_rng(seed), **more)


values = st.floats(-1e6, 1e6, allow_nan=False)
answers = st.lists(st.tuples(values, st.integers(0, 6)), min_size=1, max_size=40)


def test_mean_interval_agrees_with_students_sleep_data():
    """Student (1908) prints 1.58 and 1.17 (with n); R's help page of `sleep` prints the interval."""
    found = stats.mean_interval(SLEEP)
    assert found.value == pytest.approx(1.58)
    assert (found.low, found.high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    assert (found.n, found.df, found.level, found.method, found.reason) == (10, 9, 0.95, "t", None)


def test_a_question_counts_once_however_often_it_was_answered():
    found = stats.mean_interval([1, 1, 1, 1, 5], ["a", "a", "a", "a", "b"])
    assert (found.value, found.n, found.observations) == (3.0, 2, 5)


@given(rows=answers, level=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_mean_interval_is_scipys_t_interval_of_the_question_means(rows, level):
    ys, qs = zip(*rows, strict=True)
    means = [np.mean([y for y, q in rows if q == question]) for question in dict.fromkeys(qs)]
    found = stats.mean_interval(ys, qs, level=level)
    assert found.value == pytest.approx(np.mean(means), rel=1e-9, abs=1e-6)
    if len(means) > 1 and found.se > 1e-6:
        low, high = scipy.stats.t.interval(level, len(means) - 1, np.mean(means), scipy.stats.sem(means))
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6, abs=1e-4)


@given(rows=answers, shift=st.integers(-1000, 1000), scale=st.sampled_from([-4.0, 0.5, 2.0]))
def test_mean_interval_moves_with_its_data(rows, shift, scale):
    ys, qs = zip(*rows, strict=True)
    one = stats.mean_interval(ys, qs)
    two = stats.mean_interval([scale * y + shift for y in ys], qs)
    assert two.value == pytest.approx(scale * one.value + shift, rel=1e-9, abs=1e-5)
    assert two.se == pytest.approx(abs(scale) * one.se, rel=1e-6, abs=1e-5, nan_ok=True)


@given(value=values, size=st.integers(2, 30))
def test_equal_values_give_exactly_no_error_and_a_reason(value, size):
    found = stats.mean_interval([value] * size)
    assert (found.value, found.se, found.low, found.high) == (value, 0.0, value, value)
    assert found.reason == f"all {size} cluster means are equal: the interval is a point"


@pytest.mark.parametrize(
    ("ys", "qs", "reason"),
    [
        pytest.param([], [], "no values", id="nothing"),
        pytest.param([1, None, 3], [1, 2, 3], "1 of 3 values are missing", id="None is not 0"),
        pytest.param([1, math.nan], [1, 2], "1 of 2 values are missing", id="NaN is not 0"),
        pytest.param([1, math.inf], [1, 2], "1 of 2 values are missing", id="infinity is no score"),
    ],
)
def test_what_cannot_be_known_is_nan_with_a_reason(ys, qs, reason):
    found = stats.mean_interval(ys, qs)
    assert all(math.isnan(number) for number in (found.value, found.se, found.low, found.high))
    assert found.reason == reason


def test_one_question_has_a_mean_and_no_error():
    found = stats.mean_interval([3, 4, 5], ["q"] * 3)
    assert found.value == 4.0
    assert math.isnan(found.se)
    assert math.isnan(found.low)
    assert found.reason == "only one cluster, so no interval"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.mean_interval([1, 2], level=1.0), "level: must lie between 0 and 1, got 1.0"),
        (lambda: stats.mean_interval([1, 2], [1]), "clusters: must be as many as values"),
        (lambda: stats.mean_interval([[1, 2]]), "values: must have one dimension, has 2"),
        (lambda: stats.mean_interval(["a"]), "values: must be numbers"),
        (lambda: stats.mean_interval([1], method="z"), "method: must be t, bootstrap-t or bca, got 'z'"),
        (lambda: stats.mean_interval([1], scope="these"), "scope: must be population, or fixed with method t"),
        (lambda: stats.mean_interval([1, 2], scope="fixed", method="bca"), "got 'fixed' with bca"),
        (lambda: stats.mean_interval([1, 2], method="bca"), "rng: is required for bca"),
        (lambda: _drawn([1, 2], replicates=39), "replicates: must be at least 40 for level 0.95, got 39"),
        (lambda: stats.clustered_se([1], [1], kind="CR9"), "kind: must be CR0"),
        (lambda: stats.clustered_se([1, 2], [1, 2], second=[1]), "clusters and second: must be as many"),
    ],
)
def test_a_wrong_argument_is_named_with_its_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bootstrap_t_agrees_with_efron_and_tibshirani():
    """An Introduction to the Bootstrap, section 12.5, prints (35.82, 116.74), from 1,000 resamples."""
    found = _drawn(MICE, level=0.9, replicates=50_000)
    assert found.value == pytest.approx(56.22, abs=0.005)
    assert found.low == pytest.approx(35.82, abs=1.5)
    assert found.high == pytest.approx(116.74, abs=6)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_bca_agrees_with_scipys(level):
    skewed = np.round(np.random.default_rng(3).gamma(2, size=31), 3)
    found = _drawn(skewed, method="bca", level=level, replicates=40_000)
    theirs = scipy.stats.bootstrap(
        (skewed,), np.mean, confidence_level=level, method="BCa", n_resamples=40_000, rng=np.random.default_rng(2)
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx(tuple(theirs), abs=0.06 * found.se)


def test_bootstrap_t_agrees_with_a_plain_loop():
    y = np.array([1.0, 2.0, 2.5, 4.0, 9.0, 3.5, 2.0])
    rng, n, ts = np.random.default_rng(9), 7, []
    for _ in range(20_000):
        again = y[rng.integers(n, size=n)]
        spread = again.std(ddof=1)
        ts.append((again.mean() - y.mean()) / (spread / n**0.5) if spread else np.inf * (again[0] - y.mean()))
    low, high = np.quantile(ts, [0.1, 0.9], method="nearest")
    se = y.std(ddof=1) / n**0.5
    found = _drawn(y, level=0.8, replicates=40_000)
    assert (found.low, found.high) == pytest.approx((y.mean() - high * se, y.mean() - low * se), abs=0.04 * se)


@given(
    y=st.lists(st.integers(1, 5), min_size=3, max_size=25),
    shift=st.integers(-100, 100),
    scale=st.sampled_from([-3.0, 0.5, 2.0]),
    method=st.sampled_from(["bootstrap-t", "bca"]),
)
def test_bootstrap_intervals_move_with_their_data_and_hold_the_mean(y, shift, scale, method):
    one = _drawn(y, method=method, replicates=199)
    two = _drawn([scale * value + shift for value in y], method=method, replicates=199)
    if math.isnan(one.low) or math.isnan(two.low):
        assert one.reason
        assert two.reason
        return
    ends = [scale * end + shift for end in (one.low, one.high)]
    assert (two.low, two.high) == pytest.approx((min(ends), max(ends)), rel=1e-9, abs=1e-7)
    assert one.low <= one.value <= one.high or one.se == 0


def test_a_seed_gives_one_result_and_clusters_are_what_is_drawn():
    y, at = [1, 5, 4, 2, 2, 3, 5, 5], [1, 1, 2, 2, 3, 3, 4, 4]
    assert repr(_drawn(y, at)) == repr(_drawn(y, at))  # NaN equals nothing
    by_means = _drawn([3, 3, 2.5, 5])
    assert (_drawn(y, at).low, _drawn(y, at).high) == (by_means.low, by_means.high)
    assert (_drawn(y, at).n, _drawn(y, at).observations, _drawn(y, at).method) == (4, 8, "bootstrap-t, 10000 resamples")


def test_a_bootstrap_that_cannot_say_is_nan_with_a_reason():
    rare = _drawn([5] * 19 + [4])
    assert math.isnan(rare.low)
    assert rare.reason.startswith("too few unequal values: ")
    assert _drawn([5]).reason == "only one cluster, so no interval"
    assert _drawn([5, 5, 5]).reason == "all 3 cluster means are equal: the interval is a point"
    assert _drawn([5, None]).reason == "1 of 2 values are missing"


def test_the_mean_over_these_questions_has_the_error_of_repetitions_alone():
    """Two questions, variances 2 and 1/3 of two and four answers: se = √(2/2 + (1/3)/4) / 2, and Satterthwaite's df."""
    y = [1, 3, 4, 5, 4, 5]
    found = stats.mean_interval(y, ["a", "a", "b", "b", "b", "b"], scope="fixed")
    parts = (1.0, (1 / 3) / 4)
    assert found.se == pytest.approx(math.sqrt(sum(parts)) / 2)
    assert found.df == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 1 + parts[1] ** 2 / 3))
    welch = scipy.stats.ttest_ind([1, 3], [4, 5, 4, 5], equal_var=False)  # the error of a difference is twice that
    assert found.df == pytest.approx(welch.df)
    assert found.se == pytest.approx(abs((2 - 4.5) / welch.statistic) / 2)
    once = stats.mean_interval([1, 3, 4], ["a", "a", "b"], scope="fixed")
    assert once.reason == "1 of 2 questions were answered once: their spread is not known"
    steady = stats.mean_interval([1, 1, 4, 4], ["a", "a", "b", "b"], scope="fixed")
    assert (steady.low, steady.high, steady.se) == (2.5, 2.5, 0.0)


def test_clustered_se_agrees_with_millers_printed_example_in_exact_fractions():
    """Miller (2024), appendix A: the double sum within clusters, here by hand: 0.04."""
    y, cluster = [1, 0, 1, 1, 0, 0, 1, 1, 1, 0], [1, 1, 2, 2, 2, 3, 3, 4, 4, 4]
    assert stats.clustered_se(y, cluster, kind="CR0").se == pytest.approx(0.04, rel=1e-12)


@given(rows=st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 4)), min_size=3, max_size=25))
def test_cr2_agrees_with_its_definition_in_dense_matrices(rows):
    """Bell and McCaffrey's adjustment by matrix square roots, and Satterthwaite's df by eigenvalues' sums."""
    y, cluster = (np.array(column) for column in zip(*rows, strict=True))
    if len(set(cluster)) < 2:
        return
    n, labels = y.size, sorted(set(cluster))
    hat = np.ones((n, n)) / n
    rest = (np.eye(n) - hat) @ y
    summed, columns = 0.0, []
    for label in labels:
        rows_of = np.flatnonzero(cluster == label)
        block = np.eye(rows_of.size) - hat[np.ix_(rows_of, rows_of)]
        size, vectors = np.linalg.eigh(block)
        adjusted = vectors @ np.diag(size**-0.5) @ vectors.T
        weights = np.ones(rows_of.size) @ adjusted / n
        summed += float(weights @ rest[rows_of]) ** 2
        columns.append((np.eye(n) - hat)[rows_of].T @ weights)
    gram = np.array(columns) @ np.array(columns).T
    found = stats.clustered_se(y, cluster)
    assert found.se == pytest.approx(math.sqrt(summed), rel=1e-6, abs=1e-9)
    assert found.df == pytest.approx(np.trace(gram) ** 2 / np.sum(gram**2), rel=1e-6)


def test_one_value_a_cluster_is_the_textbook_error():
    found = stats.clustered_se(SLEEP, range(10))
    assert found.se == pytest.approx(scipy.stats.sem(SLEEP))
    assert found.df == pytest.approx(9)


def test_one_cluster_has_no_error_and_a_large_one_is_told():
    assert math.isnan(stats.clustered_se([1, 2, 3], [1, 1, 1]).se)
    assert stats.clustered_se([1, 2, 3], [1, 1, 2]).reason == "one cluster holds more than half of the values"


def test_a_negative_two_way_variance_is_nan_with_a_reason():
    found = stats.clustered_se([1, -1, -1, 1], [1, 1, 2, 2], second=[1, 2, 1, 2])
    assert math.isnan(found.se)
    assert found.reason == "the two-way variance estimate is negative"


def test_every_public_name_is_there_and_unknown_ones_are_not():
    assert stats.__all__ == sorted(stats.__all__)
    assert all(callable(getattr(stats, name)) for name in stats.__all__)
    assert set(stats.__all__) <= set(dir(stats))
    with pytest.raises(AttributeError, match="no attribute 'median'"):
        _ = stats.median


@pytest.mark.parametrize("kind", ["CR0", "CR1", "CR2", "CR3", "two"])
def test_an_error_between_clusters_needs_two_of_them_and_every_value(kind):
    def over(values, clusters):
        second = range(len(values)) if kind == "two" else None
        return stats.clustered_se(values, clusters, kind="CR2" if kind == "two" else kind, second=second)

    alone = over([1, 2], [1, 1])
    assert (alone.value, alone.n, alone.reason) == (1.5, 1, "only one cluster, so no interval")
    nothing = over([], [])
    assert (nothing.n, nothing.observations, nothing.reason) == (0, 0, "no values")
    missing = over([1.0, math.nan], [1, 2])
    assert (missing.observations, missing.reason) == (2, "1 of 2 values are missing")
    assert math.isnan(missing.value)
    assert all(math.isnan(found.se) for found in (alone, nothing, missing))


def test_cr1_and_cr3_weigh_up_cr0():
    """CR1: by √(n / (n - 1)); CR3: each cluster by 1 / (1 - its share of the values)."""
    values, clusters = [1, 0, 1, 1, 0, 0], [1, 1, 2, 2, 3, 3]
    plain, one, three = (stats.clustered_se(values, clusters, kind=kind) for kind in ("CR0", "CR1", "CR3"))
    assert one.se == pytest.approx(plain.se * math.sqrt(3 / 2))
    assert three.se == pytest.approx(plain.se * 3 / 2)
    assert (plain.df, one.df, three.df) == (2, 2, 2)
    assert plain.reason is None, "no cluster holds more than half"


@pytest.mark.parametrize(
    ("clusters", "df", "reason"),
    [
        (5, 4.0, None),
        (4, 9.0, "4 clusters: a verdict needs at least 5"),
        (1, 0.0, "1 cluster: a verdict needs at least 5"),
        (5, 3.9, "5 clusters of very unequal size count as few: 3.9 degrees of freedom, a verdict needs 4"),
    ],
)
def test_few_clusters_give_no_verdict(clusters, df, reason):
    assert too_few_clusters(clusters, df) == reason


def test_over_exactly_these_questions_only_repetitions_vary():
    """Two questions with variances of their means of 1/2 · 2/2 and 0."""
    found = stats.mean_interval([0, 2, 5, 5], [1, 1, 2, 2], scope="fixed")
    assert (found.value, found.se, found.df, found.n) == (3, 0.5, 1, 2)
    assert found.method == "t, these questions"


@pytest.mark.parametrize(
    ("values", "clusters", "value", "reason"),
    [
        ([1, 2, 3], [1, 1, 2], 2.25, "1 of 2 questions were answered once: their spread is not known"),
        ([1, None, 3, 3], [1, 1, 2, 2], math.nan, "1 of 4 values are missing"),
        ([], [], math.nan, "no values"),
    ],
)
def test_questions_without_a_spread_of_their_own_have_no_interval(values, clusters, value, reason):
    found = stats.mean_interval(values, clusters, scope="fixed")
    assert found.value == pytest.approx(value, nan_ok=True)
    assert (math.isnan(found.se), math.isnan(found.low), found.reason) == (True, True, reason)


def test_answers_that_never_differ_are_a_point_over_these_questions():
    found = stats.mean_interval([1, 1, 3, 3], [1, 1, 2, 2], scope="fixed")
    assert (found.low, found.value, found.high, found.se) == (2, 2, 2, 0)
    assert found.reason == "answers to one question never differ: the interval is a point"
