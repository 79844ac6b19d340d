"""Differences of two shares."""

import math

import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from karat import stats

counts = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
few = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("k1", "n1", "k2", "n2", "low", "high"),
    [
        pytest.param(56, 70, 48, 80, 0.0524, 0.3339, id="Newcombe 1998b, table II (a), method 10"),
        pytest.param(9, 10, 3, 10, 0.1705, 0.8090, id="Newcombe 1998b, table II (b), method 10"),
        pytest.param(10, 10, 0, 10, 0.6075, 1.0000, id="Newcombe 1998b, table II (h), method 10"),
    ],
)
def test_newcombe_agrees_with_the_printed_table(k1, n1, k2, n2, low, high):
    found = stats.newcombe(k1, n1, k2, n2)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@given(one=counts, two=counts)
def test_newcombe_holds_its_difference_and_turns_with_its_arguments(one, two):
    found, turned = stats.newcombe(*one, *two), stats.newcombe(*two, *one)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert (turned.low, turned.value, turned.high) == pytest.approx((-found.high, -found.value, -found.low))


def test_newcombe_without_trials_is_nan():
    assert stats.newcombe(0, 0, 1, 2).reason == "no trials"


@pytest.mark.parametrize(
    ("counts", "method", "low", "high"),
    [
        pytest.param((56, 70, 48, 80), "scorecc", 0.0428, 0.3422, id="table II (a), method 11"),
        pytest.param((9, 10, 3, 10), "scorecc", 0.1013, 0.8387, id="table II (b), method 11"),
        pytest.param((56, 70, 48, 80), "miettinen-nurminen", 0.0528, 0.3382, id="table II (a), method 6"),
        pytest.param((9, 10, 3, 10), "miettinen-nurminen", 0.1700, 0.8406, id="table II (b), method 6"),
    ],
)
def test_the_other_intervals_agree_with_newcombes_table(counts, method, low, high):
    found = stats.newcombe(*counts, method=method)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@given(one=few, two=few, level=st.sampled_from([0.8, 0.95]))
def test_miettinen_and_nurminens_ends_have_the_score_that_they_should(one, two, level):
    """The restricted shares come from a search here, from a cubic there."""
    (k1, n1), (k2, n2) = one, two
    found = stats.newcombe(*one, *two, method="miettinen-nurminen", level=level)
    assert -1 <= found.low <= found.value <= found.high <= 1
    bar = -stats.tost_of_estimate(0, 1, bounds=1, alpha=0.5 - level / 2).low
    for end in (found.low, found.high):
        if abs(end) > 1 - 1e-6:
            continue

        def against(q2, end=end):
            q1 = q2 + end
            parts = ((k1, q1), (n1 - k1, 1 - q1), (k2, q2), (n2 - k2, 1 - q2))
            return -sum(count * math.log(max(q, 1e-300)) for count, q in parts if count)

        bounds = (max(0.0, -end), min(1.0, 1 - end))
        q2 = scipy.optimize.minimize_scalar(against, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
        q1 = q2 + end
        variance = (q1 * (1 - q1) / n1 + q2 * (1 - q2) / n2) * (n1 + n2) / (n1 + n2 - 1)
        if variance > 1e-7:  # beyond, the search is no oracle
            assert abs(found.value - end) / math.sqrt(variance) == pytest.approx(bar, rel=2e-3)


@given(one=few, two=few, method=st.sampled_from(["score", "scorecc", "miettinen-nurminen"]))
def test_every_interval_of_a_difference_turns_with_its_arguments(one, two, method):
    found, turned = (stats.newcombe(*sides, method=method) for sides in ((*one, *two), (*two, *one)))
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=1e-9)


def test_repeated_questions_are_taken_at_their_effective_n():
    right = [3, 0, 3, 3, 0, 3, 3, 3]  # nothing but questions varies: eight answers, not 24
    found = stats.newcombe(right, [3] * 8, [1, 2, 0, 1], [3] * 4)
    plain = stats.newcombe(18, 24, 4, 12)
    assert found.value == pytest.approx(plain.value)
    assert found.high - found.low > 1.2 * (plain.high - plain.low)
    assert (found.n, found.observations) == (12, 36)
    assert found.method == "newcombe hybrid score, at effective n"
    with pytest.raises(ValueError, match="miettinen-nurminen takes one count a side"):
        stats.newcombe(right, [3] * 8, 1, 4, method="miettinen-nurminen")
    with pytest.raises(ValueError, match="method: must be score, scorecc or miettinen-nurminen, got 'wald'"):
        stats.newcombe(1, 2, 1, 2, method="wald")


def test_the_paired_interval_agrees_with_the_printed_table():
    """Newcombe (1998), Stat. Med. 17:2635, table II, the cells 36, 12, 2, 0."""
    found = stats.newcombe_paired(36, 12, 2, 0)
    assert (found.low, found.high) == pytest.approx((0.0569, 0.3404), abs=5e-5)


@given(st.lists(st.integers(0, 40), min_size=4, max_size=4))
def test_the_paired_interval_agrees_with_its_definition_and_turns(cells):
    both, first, second, neither = cells
    found = stats.newcombe_paired(*cells)
    n = sum(cells)
    if n == 0:
        assert found.reason == "no questions"
        return
    one, two = stats.proportion_interval(both + first, n), stats.proportion_interval(both + second, n)
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    phi = (both * neither - first * second) / math.sqrt(margins) if margins else 0.0
    below, above = one.value - one.low, two.high - two.value
    low = found.value - math.sqrt(max(0.0, below**2 - 2 * phi * below * above + above**2))
    assert found.value == pytest.approx(one.value - two.value, abs=1e-12)
    assert found.low == pytest.approx(max(-1.0, low), abs=1e-9)
    turned = stats.newcombe_paired(both, second, first, neither)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=1e-9)
    assert -1 <= found.low <= found.value <= found.high <= 1
    pairs = [(1, 1)] * both + [(1, 0)] * first + [(0, 1)] * second + [(0, 0)] * neither
    if n > 1:
        t = stats.paired_difference([b for _, b in pairs], [a for a, _ in pairs])
        assert found.se == pytest.approx(t.se * math.sqrt((n - 1) / n), abs=1e-12)


def test_where_no_question_differs_and_no_width_is_left_a_reason_says_so():
    for half in (1, 5, 7, 50):
        found = stats.newcombe_paired(half, 0, 0, half)
        assert (found.low, found.high) == pytest.approx((0.0, 0.0), abs=1e-12)
        assert found.reason == "no question differs: the interval is a point"
    assert stats.newcombe_paired(6, 0, 0, 4).reason is None
