"""Adjusted p-values."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from karat import stats

# Benjamini and Hochberg (1995), section 3.2: fifteen p-values of a study of heart attacks.
HEART = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]
METHODS = ("holm", "hochberg", "bh", "by", "bonferroni")
ps = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.parametrize(("method", "rejected"), [("bonferroni", 3), ("hochberg", 3), ("bh", 4)])
def test_the_printed_number_of_findings_is_reproduced(method, rejected):
    assert int(np.sum(stats.adjust(HEART, method) <= 0.05)) == rejected


@given(ps)
def test_benjamini_hochberg_and_yekutieli_agree_with_scipy(p):
    for method in ("bh", "by"):
        theirs = scipy.stats.false_discovery_control(p, method=method)
        assert stats.adjust(p, method) == pytest.approx(theirs, rel=1e-9, abs=1e-12)


@given(ps)
def test_holm_agrees_with_a_slow_twin_that_steps_down(p):
    m = len(p)
    order = sorted(range(m), key=lambda place: p[place])
    slow, highest = [0.0] * m, 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (m - rank) * p[place]))
        slow[place] = highest
    assert stats.adjust(p) == pytest.approx(slow)


@given(p=ps, method=st.sampled_from(METHODS))
def test_no_p_becomes_smaller_the_order_is_kept_and_bonferroni_is_the_bound(p, method):
    found = stats.adjust(p, method)
    assert np.all(found >= np.array(p) - 1e-15)
    assert np.all(found <= 1)
    order = np.argsort(p, kind="stable")
    assert np.all(np.diff(found[order]) >= -1e-15)
    if method != "by":
        assert np.all(found <= stats.adjust(p, "bonferroni") + 1e-12)


@given(p=ps, method=st.sampled_from(METHODS))
def test_a_missing_test_stays_missing_and_does_not_count(p, method):
    found = stats.adjust([math.nan, *p, None], method)
    assert math.isnan(found[0])
    assert math.isnan(found[-1])
    assert found[1:-1] == pytest.approx(stats.adjust(p, method))


def test_a_number_gives_a_number_and_nothing_gives_nothing():
    assert stats.adjust(0.03) == 0.03
    assert isinstance(stats.adjust(0.03, "BH"), float)
    assert stats.adjust([]).tolist() == []
    assert np.isnan(stats.adjust([math.nan])).all()


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"p: must lie between 0 and 1, got 1.2"):
        stats.adjust([0.5, 1.2])
    for p in ([0.5], []):
        with pytest.raises(ValueError, match="method: must be holm, hochberg, bh, by or bonferroni, got 'sidak'"):
            stats.adjust(p, "sidak")
