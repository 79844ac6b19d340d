"""Sums of floats, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.sums import exact_sum


@given(st.lists(st.floats(-1e300, 1e300), max_size=50))
def test_the_sum_is_the_exact_one_rounded_once(values):
    assert exact_sum(iter(values)) == float(sum(map(Fraction, values)))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1e308, 1e308], math.inf),
        ([-1e308, -1e308], -math.inf),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
        ([], 0.0),
    ],
)
def test_what_is_too_large_is_infinite_and_not_an_error(values, wanted):
    assert exact_sum(values) == pytest.approx(wanted, nan_ok=True)
