"""pass^k, pass@k and consistency."""

import itertools
import math
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import stats

tallies = st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


def test_pass_at_k_agrees_with_the_printed_estimator():
    """Chen et al. (2021), figure 3: 1 − C(n − c, k) / C(n, k)."""
    assert stats.pass_at_k(200, 10, 100).value == pytest.approx(1 - comb(190, 100) / comb(200, 100), rel=1e-12)


@given(tally=tallies, k=st.integers(1, 12))
def test_both_are_the_exact_shares_of_all_subsets(tally, k):
    n, c = tally
    every, any_ = stats.pass_hat_k(n, c, k), stats.pass_at_k(n, c, k)
    if k > n:
        assert math.isnan(every.value)
        assert every.reason == f"1 of 1 questions have fewer than {k} attempts"
        return
    outcomes = [1] * c + [0] * (n - c)
    subsets = list(itertools.combinations(outcomes, k)) if comb(n, k) < 1000 else None
    if subsets is not None:
        assert every.value == pytest.approx(float(Fraction(sum(map(all, subsets)), len(subsets))), abs=1e-12)
        assert any_.value == pytest.approx(float(Fraction(sum(map(any, subsets)), len(subsets))), abs=1e-12)
    assert every.value <= c / n + 1e-12
    assert any_.value >= c / n - 1e-12


@given(st.lists(tallies, min_size=2, max_size=20))
def test_one_attempt_is_the_mean_accuracy(rows):
    n, c = zip(*rows, strict=True)
    accuracy = stats.mean_interval([right / tried for tried, right in rows])
    for found in (stats.pass_hat_k(n, c, 1), stats.pass_at_k(n, c, 1)):
        assert found.value == pytest.approx(accuracy.value)
        assert found.se == pytest.approx(accuracy.se, abs=1e-12)
        assert 0 <= found.low <= found.value + 1e-12
        assert found.value <= found.high + 1e-12 <= 1 + 2e-12


def test_questions_with_too_few_attempts_are_left_out_and_counted():
    found = stats.pass_hat_k([3, 3, 2], [3, 0, 2], 3)
    assert (found.value, found.n, found.observations) == (0.5, 2, 3)
    assert found.reason == "1 of 3 questions have fewer than 3 attempts"


def test_a_thousand_attempts_do_not_overflow():
    assert stats.pass_hat_k(1000, 999, 500).value == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (3, 4, 1, r"c: must be at most n \(3\), got 4"),
        (3, 1, 0, "k: must be at least 1, got 0"),
        ([3, 3], [1], 1, r"c: must be as long as n \(2\), got 1"),
        (3, 1.5, 1, "c: must be a whole number"),
    ],
)
def test_impossible_counts_are_named(n, c, k, message):
    with pytest.raises(ValueError, match=message):
        stats.pass_hat_k(n, c, k)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(lambda cells: sum(cells) > 1))
def test_consistency_is_the_share_of_agreeing_pairs(cells):
    answers = [category for category, count in enumerate(cells) for _ in range(count)]
    pairs = list(itertools.combinations(answers, 2))
    assert stats.consistency(cells).value == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))


def test_consistency_is_averaged_over_questions():
    found = stats.consistency([[3, 0], [2, 1], [1, 0]])
    assert found.value == pytest.approx((1 + 1 / 3) / 2)
    assert found.reason == "1 of 3 questions have fewer than 2 answers"
    assert math.isnan(stats.consistency([1, 0]).value)


def test_questions_of_one_document_share_their_error():
    """The error of `clustered_se` over the chances of the questions; one document alone has none."""
    n, c, documents = [4] * 6, [4, 4, 3, 1, 0, 2], ["x", "x", "x", "y", "y", "z"]
    found = stats.pass_hat_k(n, c, 2, clusters=documents)
    chances = [math.comb(won, 2) / math.comb(4, 2) for won in c]
    other = stats.clustered_se(chances, documents)
    assert (found.value, found.se, found.df, found.n) == pytest.approx((other.value, other.se, other.df, 3))
    assert (found.low, found.high) == (max(0.0, other.low), min(1.0, other.high))
    assert found.value == pytest.approx(stats.pass_hat_k(n, c, 2).value)
    assert math.isnan(stats.pass_at_k(n, c, 2, clusters=["x"] * 6).se)
    few = stats.pass_at_k([4, 1, 4], [1, 1, 4], 2, clusters=["x", "x", "y"])
    assert few.reason == "1 of 3 questions have fewer than 2 attempts"
    with pytest.raises(ValueError, match=r"clusters: must be as many as questions \(6\), got 1"):
        stats.pass_at_k(n, c, 2, clusters=["x"])
