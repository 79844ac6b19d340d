"""A metric over many runs: changes found looking back, and alarms asked for after every run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.stats import change_point, cusum_alarm, whitened

series = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=10, max_size=40)


@given(values=series, seed=st.integers(0, 9))
def test_the_split_is_the_one_with_the_largest_t(values, seed):
    """Against scipy's two-sample t over every split with five runs a side."""
    found = change_point(values, rng=np.random.default_rng(seed), draws=99)
    assert 0 < found.p <= 1
    if np.ptp(values) == 0:
        assert found.index is None
        return
    assert found.before == pytest.approx(np.mean(values[: found.index]), abs=1e-9)
    assert found.after == pytest.approx(np.mean(values[found.index :]), abs=1e-9)
    residual = sum(np.var(part) * len(part) for part in (values[: found.index], values[found.index :]))
    if residual > 1e-6 * np.var(values):
        with np.errstate(all="ignore"):
            every = [
                abs(stats.ttest_ind(values[:k], values[k:]).statistic)
                for k in range(5, len(values) - 4)
                if np.ptp(values[:k]) + np.ptp(values[k:]) > 0
            ]
        assert found.statistic == pytest.approx(max(every), rel=1e-6, abs=1e-7)


@given(values=series, shift=st.integers(-50, 50), factor=st.sampled_from([0.5, 2.0, 4.0]))
def test_neither_unit_nor_origin_matters(values, shift, factor):
    moved = [factor * value + shift for value in values]
    one, other = cusum_alarm(values), cusum_alarm(moved)
    assert other.statistic == pytest.approx(one.statistic, rel=1e-5, abs=1e-5)


def test_the_scores_of_the_cusum_are_those_of_hawkins():
    """The t of each run against all before it with n - 2 degrees of freedom, as a normal quantile; from run 11 on."""
    x = np.random.default_rng(5).standard_normal(40)
    up = down = largest = 0.0
    for n in range(11, 41):
        before = x[: n - 1]
        t = (x[n - 1] - before.mean()) / before.std(ddof=1) * math.sqrt((n - 1) / n)
        u = stats.norm.ppf(stats.t.cdf(t, n - 2))
        up, down = max(0, up + u - 0.25), max(0, down - u - 0.25)
        largest = max(largest, up, down)
    assert cusum_alarm(x).statistic == pytest.approx(largest, rel=1e-9)


def test_a_shift_raises_an_alarm_that_says_when_it_began_and_which_way():
    x = np.random.default_rng(6).standard_normal(100)
    x[60:] -= 2
    alarm = cusum_alarm(x)
    assert alarm.index is not None
    assert 60 <= alarm.index <= 75
    assert abs(alarm.since - 60) <= 8
    assert not alarm.upwards


def test_few_series_without_a_change_raise_an_alarm():
    """4 % of 100 runs (Monte Carlo); at most 6.4 % of 1,000."""
    rng = np.random.default_rng(7)
    assert np.mean([cusum_alarm(rng.standard_normal(100)).index is not None for _ in range(1000)]) <= 0.064
    looked_back = [change_point(rng.standard_normal(30), rng=rng, draws=199).p <= 0.05 for _ in range(300)]
    assert np.mean(looked_back) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)


def test_most_shifts_of_one_standard_deviation_are_found():
    rng = np.random.default_rng(8)
    alarms = [cusum_alarm(np.append(rng.standard_normal(60), 1 + rng.standard_normal(40))).index for _ in range(300)]
    found = [alarm - 60 for alarm in alarms if alarm is not None and alarm >= 60]
    assert len(found) / 300 >= 0.9
    assert 10 <= np.median(found) <= 20


def test_runs_that_depend_on_each_other_are_whitened():
    rng = np.random.default_rng(9)
    x = np.empty(200)
    x[0] = 0
    for i in range(1, 200):
        x[i] = 0.6 * x[i - 1] + rng.standard_normal()
    white, correlation = whitened(x)
    assert correlation == pytest.approx(0.6, abs=0.15)
    assert abs(whitened(white)[1]) < 0.2
    assert white.mean() == pytest.approx(x.mean(), abs=0.3)


def test_independent_runs_and_short_series_stay_as_they_are():
    x = np.random.default_rng(10).standard_normal(50)
    assert (whitened(x)[0] == x).all()
    assert math.isnan(whitened([1.0, 2.0])[1])


@pytest.mark.parametrize("values", [[], [1.0] * 9, [None, math.nan]])
def test_too_few_runs_say_so(values):
    found = change_point(values, rng=np.random.default_rng(0))
    assert found.index is None
    assert math.isnan(found.p)
    assert found.reason == "needs 10 runs to detect a change"
    assert "from run 11 on" in (cusum_alarm(values).reason or "")
    assert "equal" in (cusum_alarm([2.0] * 20).reason or "")


@pytest.mark.parametrize("size", [2.0, 4.0, 9.0])
def test_a_large_shift_does_not_hide_as_correlation(size):
    rng = np.random.default_rng(8)
    found = 0
    for _ in range(40):
        series = np.append(rng.standard_normal(15), size + rng.standard_normal(15))
        found += change_point(whitened(series)[0], rng=rng, draws=199).p <= 0.05
    assert found >= 30


def test_correlated_runs_without_a_shift_raise_few_alarms():
    rng = np.random.default_rng(9)
    alarms = 0
    for _ in range(300):
        series = [rng.standard_normal()]
        for step in rng.standard_normal(99):
            series.append(0.4 * series[-1] + math.sqrt(1 - 0.16) * step)
        alarms += cusum_alarm(whitened(series)[0]).index is not None
    assert alarms <= 0.064 * 300
