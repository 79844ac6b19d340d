"""Questions that come in clusters: the error is that between clusters, the mean is that of the questions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from karat import stats
from karat.stats import Sums, ratio_difference, ratio_interval

VALUES = [4, 5, 3, 3, 5, 4, 2, 4]
SIX_BY_TEN = np.repeat(np.arange(6), 10)


def by_matrices(y, cluster, weights):
    """CR2 and Satterthwaite's df of weighted least squares on a constant, with dense matrices and identity target.

    Bell and McCaffrey (2002); Pustejovsky and Tipton (2018), equations 4 and 11, as in clubSandwich's `vcovCR`.
    """
    n = y.size
    ones, p = np.ones((n, 1)), (weights / weights.sum()).reshape(1, n)
    rest = np.eye(n) - ones @ p
    total, columns = 0.0, []
    for label in np.unique(cluster):
        at = np.flatnonzero(cluster == label)
        block = rest[at] @ rest[at].T
        size, vectors = np.linalg.eigh(block)
        row = p[:, at] @ vectors @ np.diag(size**-0.5) @ vectors.T
        total += (row @ (rest @ y)[at]).item() ** 2
        columns.append((row @ rest[at]).ravel())
    gram = np.array(columns) @ np.array(columns).T
    return math.sqrt(total), np.trace(gram) ** 2 / np.sum(gram**2)


def test_two_unequal_clusters_agree_with_a_calculation_by_hand_in_fractions():
    """The values 0, 1, 1, 3 in clusters of 1 and 3: m/n = 1/4, 3/4; scores −5/4 and 5/4; adjusted by 4/3 and 4."""
    n, sums = 4, (Fraction(-5, 4), Fraction(5, 4))
    variance = sum(s**2 / (1 - Fraction(m, n)) for s, m in zip(sums, (1, 3), strict=True)) / n**2
    assert variance == Fraction(25, 48)
    found = stats.clustered_mean([0, 1, 1, 3], ["a", "b", "b", "b"])
    assert found.value == 1.25
    assert found.se**2 == pytest.approx(float(variance), rel=1e-14)
    assert found.df == pytest.approx(1)  # two clusters: the scores are each other's negative
    assert found.reason == "one cluster holds more than half of the values"


def test_three_unequal_clusters_agree_with_fractions_of_satterthwaites_formula():
    """Sizes 1, 2, 3: B = (diag m − m mᵀ/n) ∘ a aᵀ with a² = 6/5, 6/4, 6/3: trace 6, squares in exact fractions."""
    m, n = (1, 2, 3), 6
    a2 = [1 / (1 - Fraction(size, n)) for size in m]
    squares = sum(
        ((m[j] if j == k else 0) - Fraction(m[j] * m[k], n)) ** 2 * a2[j] * a2[k] for j in range(3) for k in range(3)
    )
    found = stats.clustered_mean([1, 4, 2, 0, 3, 5], [1, 2, 2, 3, 3, 3])
    assert found.df == pytest.approx(float(36 / squares), rel=1e-13)


@given(
    rows=st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 4), st.floats(0.1, 9)), min_size=3, max_size=25),
    weighted=st.booleans(),
)
def test_the_error_agrees_with_dense_matrices(rows, weighted):
    y, cluster, weights = (np.array(column) for column in zip(*rows, strict=True))
    if np.unique(cluster).size < 2:
        return
    se, df = by_matrices(y, cluster, weights if weighted else np.ones(y.size))
    found = stats.clustered_mean(y, cluster, weights=weights if weighted else None)
    assert found.se == pytest.approx(se, rel=1e-6, abs=1e-9)
    assert found.df == pytest.approx(df, rel=1e-6)
    assert found.value == pytest.approx(np.average(y, weights=weights if weighted else None), abs=1e-9)


@given(table=st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=2, max_size=9))
def test_equal_clusters_are_the_t_test_of_their_means(table):
    y = np.array(table, dtype=float)
    cluster = np.repeat(np.arange(len(table)), 3)
    found, means = stats.clustered_mean(y.ravel(), cluster), stats.mean_interval(y.mean(axis=1))
    assert found.df == pytest.approx(len(table) - 1)
    assert (found.low, found.high) == pytest.approx((means.low, means.high), abs=1e-9)
    twice = stats.clustered_mean(y.ravel(), cluster, weights=np.full(y.size, 2.0))
    assert (twice.value, twice.se, twice.df) == (found.value, found.se, found.df)


def test_without_clusters_or_with_one_question_each_it_is_students_t_to_the_bit():
    bare = stats.mean_interval(VALUES)
    assert stats.clustered_mean(VALUES, None) == bare
    assert stats.clustered_mean(VALUES, range(8)) == bare
    assert stats.paired_difference([0] * 8, VALUES, sources=range(8)).p == stats.paired_difference([0] * 8, VALUES).p


@pytest.mark.parametrize(
    ("values", "clusters", "weights", "reason"),
    [
        ([], [], None, "no values"),
        ([1, 2], ["a", "a"], None, "only one cluster, so no interval"),
        ([1, None], ["a", "b"], None, "1 of 2 values are missing"),
        ([1, 2, 3], ["a", "a", "b"], [1, 1, 0], "only one cluster, so no interval"),
    ],
)
def test_what_cannot_be_known_is_nan_with_a_reason(values, clusters, weights, reason):
    found = stats.clustered_mean(values, clusters, weights=weights)
    assert math.isnan(found.low)
    assert found.reason == reason


@pytest.mark.parametrize("weights", [[1, -1], [1, math.nan], [1]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="weights: must be"):
        stats.clustered_mean([1, 2], ["a", "b"], weights=weights)


def test_clusters_that_cancel_have_no_error_whatever_the_rounding():
    found = stats.clustered_mean([0.1, 0.3, 0.3, 0.1, 0.1, 0.3], [1, 1, 2, 2, 3, 3])
    assert found.se == 0
    assert found.reason == "all 3 cluster means are equal: the interval is a point"


def test_the_case_of_six_documents_has_no_winner():
    """Ten questions each that agree within a document: 60 values, six of them independent."""
    d = np.repeat([1, 1, 1, 1, -1, 1], 10)
    alone, found = (stats.paired_difference(np.zeros(60), d, sources=sources) for sources in (None, SIX_BY_TEN))
    assert alone.p < 1e-8
    assert (found.p, found.clusters) == (pytest.approx(scipy.stats.ttest_1samp(d[::10], 0).pvalue), 6)
    assert found.n == 60
    assert found.design_effect == pytest.approx((found.se / alone.se) ** 2 * 59 / 60, rel=0.05)


def test_sources_follow_the_questions_through_repetitions_and_losses():
    a, b = [1, 3, 2, 2, None, 5], [2, 2, 4, 4, 1, 7]
    questions, documents = ["q1", "q1", "q2", "q3", "q4", "q5"], ["x", "x", "x", "y", "y", "z"]
    found = stats.paired_difference(a, b, questions, sources=documents)
    by_hand = stats.clustered_mean([0, 2, 2, 2], ["x", "x", "y", "z"])
    assert (found.value, found.se, found.df, found.n, found.clusters) == (*_three(by_hand), 4, 3)
    with pytest.raises(ValueError, match="sources: 'q1' has two, 'x' and 'y'"):
        stats.paired_difference(a, b, questions, sources=["x", "y", "x", "y", "y", "z"])


def _three(interval):
    return interval.value, interval.se, interval.df


def test_clusters_that_all_differ_alike_have_the_p_of_whole_clusters():
    found = stats.paired_difference([0] * 6, [1] * 6, sources=[1, 1, 2, 2, 3, 3])
    assert found.p == 2.0**-2
    assert found.reason == "all 3 mean differences of clusters are equal: p by sign flips"


def test_whole_clusters_are_flipped():
    d = [3, -1, 2, 2, 1, 1, 4, 0, 1, 1]
    clusters = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    found = stats.sign_flip_test(d, clusters=clusters)
    sums = [2, 4, 2, 4, 2]
    by_hand = [sum(s if bit >> at & 1 else -s for at, s in enumerate(sums)) for bit in range(32)]
    assert found.p == pytest.approx(sum(abs(total) >= 14 for total in by_hand) / 32)
    assert (found.n, found.value) == (5, 1.4)
    assert stats.sign_flip_test(d, clusters=range(10)).p == stats.sign_flip_test(d).p


def test_a_share_counts_clusters_at_its_effective_n():
    right = np.repeat([1, 1, 0, 1, 1, 1], 10)
    found = stats.share_interval(right, range(60), sources=SIX_BY_TEN)
    over_means = stats.share_interval(right[::10], range(6))
    assert (found.low, found.high) == pytest.approx((over_means.low, over_means.high))
    assert found.n == 6
    perfect = stats.share_interval(np.ones(60), range(60), sources=SIX_BY_TEN)
    assert perfect.low == pytest.approx(stats.proportion_interval(6, 6).low)
    alone = stats.share_interval([1, 0, 1], [1, 2, 3], sources=[1, 1, 1])
    assert (math.isnan(alone.low), alone.reason) == (True, "only one cluster, so no interval")


def test_a_rate_over_turns_is_the_mean_weighted_by_turns():
    totals, counts, documents = [1, 2, 0, 2, 1, 3], [2, 3, 2, 3, 1, 3], [1, 1, 2, 2, 3, 3]
    rates = np.array(totals) / counts
    by_weights = stats.clustered_mean(rates, documents, weights=counts)
    found = ratio_interval(Sums.of(totals, counts), share=False, sources=documents).interval
    assert _three(found) == pytest.approx(_three(by_weights))
    assert (found.n, found.observations) == (3, 14)
    other = Sums.of([2, 2, 1, 3, 1, 2], counts)
    change = ratio_difference(Sums.of(totals, counts), other, sources=documents)
    paired = stats.clustered_mean(np.array([2, 2, 1, 3, 1, 2]) / counts - rates, documents, weights=counts)
    assert (change.value, change.se, change.df) == pytest.approx(_three(paired))
    assert (change.clusters, change.n) == (3, 6)


def test_a_rate_with_one_conversation_a_document_is_the_rate_over_conversations():
    sums, other = Sums.of([1, 2, 0, 2], [2, 3, 2, 3]), Sums.of([2, 2, 1, 3], [2, 3, 2, 3])
    assert ratio_interval(sums, share=True, sources="abcd") == ratio_interval(sums, share=True)
    assert repr(ratio_difference(sums, other, sources="abcd")) == repr(ratio_difference(sums, other))


def test_one_sided_bounds_count_clusters():
    values, documents = [3.0, 4, 2, 5, 4, 4], [1, 1, 2, 2, 3, 3]
    found, two = stats.one_sided_bounds(values, sources=documents), stats.clustered_mean(values, documents, level=0.9)
    assert (found.low, found.high, found.n) == (pytest.approx(two.low), pytest.approx(two.high), 3)
    perfect = stats.one_sided_bounds([5] * 60, sources=SIX_BY_TEN, scale=(1, 5))
    assert perfect.low == pytest.approx(5 - 4 * (1 - 0.05 ** (1 / 6)))
    share = stats.one_sided_bounds([1] * 60, sources=SIX_BY_TEN, scale=(0, 1))
    assert share.low == pytest.approx(0.05 ** (1 / 6))
    crowded = stats.one_sided_bounds([5] * 58 + [4, 3], sources=SIX_BY_TEN, scale=(1, 5))
    weights = [1.0] * 60 + [10.0]
    added = stats.clustered_mean([5] * 58 + [4, 3, 1], [*SIX_BY_TEN, 6], weights=weights, level=0.9)
    assert crowded.low == pytest.approx(added.low)


@pytest.mark.parametrize("sizes", ["equal", "unequal"])
@pytest.mark.parametrize("icc", [0.0, 0.3, 0.8])
def test_equal_conditions_differ_in_five_of_a_hundred(sizes, icc):
    rng, found = np.random.default_rng(7), []
    for _ in range(400):
        clusters = np.repeat(np.arange(12), 5 if sizes == "equal" else rng.integers(2, 25, 12))
        shared = math.sqrt(icc) * rng.standard_normal(12)[clusters]
        d = shared + math.sqrt(1 - icc) * rng.standard_normal(clusters.size)
        found.append(stats.paired_difference(np.zeros(d.size), d, sources=clusters).p < 0.05)
    assert 0.02 <= np.mean(found) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)
