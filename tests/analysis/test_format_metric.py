"""Numbers of a metric as people read them."""

from __future__ import annotations

import pytest

from karat import formats
from karat.analysis.format_metric import (
    estimated,
    interval_of,
    is_point,
    measured,
    share_estimate,
    signed_estimate,
)
from karat.analysis.numbers import Estimate, known, mean


def estimate(value: float | None, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value=value, low=low, high=high, se=None, n=9, level=0.95, method="t")


@pytest.mark.parametrize(
    ("value", "number", "share"),
    [(0.5, "0.50", "50.0 %"), (1.0, "1.00", "100.0 %"), (0.99999, "1.00", ">99.9 %"), (None, "–", "–")],
)
def test_a_share_is_in_percent_and_anything_else_a_number(value: float | None, number: str, share: str):
    assert (measured(value), measured(value, percent=True)) == (number, share)


@pytest.mark.parametrize(
    ("given", "number", "share"),
    [
        (estimate(0.5, 0.25, 0.75), "0.50 [0.25, 0.75]", "50.0 % [25.0 %, 75.0 %]"),
        (estimate(0.5, None, 0.75), "0.50", "50.0 %"),
        (estimate(0.5, 0.25, None), "0.50", "50.0 %"),
        (estimate(None), "–", "–"),
        (estimate(0.5, 0.5, 0.5), f"0.50 [0.50, 0.50]{formats.POINT}", f"50.0 % [50.0 %, 50.0 %]{formats.POINT}"),
    ],
)
def test_a_mean_has_its_interval_where_there_is_one(given: Estimate, number: str, share: str):
    assert (estimated(given), estimated(given, percent=True)) == (number, share)
    assert interval_of(given) == number.partition(" ")[2]
    assert share_estimate(given.value, given.low, given.high) == share
    assert is_point(given) == (given.low == 0.5)


@pytest.mark.parametrize(
    ("given", "number", "points"),
    [
        (estimate(0.05, -0.01, 0.11), "+0.05 [−0.01, +0.11]", "+5.0 points [−1.0, +11.0]"),
        (estimate(-0.5, None, None), "−0.50", "−50.0 points"),
        (estimate(None), "–", "–"),
    ],
)
def test_a_difference_has_its_sign_and_is_in_points_for_shares(given: Estimate, number: str, points: str):
    assert signed_estimate(given, percent=False) == number
    assert signed_estimate(given, percent=True) == points
    assert formats.between(0.5, 0.4, 0.6, plain=True) == ("0.50", "[0.40, 0.60]")
    assert formats.between(0.5, 0.4, 0.6, percent=True, plain=True) == ("50.0", "[40.0, 60.0]")


def test_what_is_not_finite_is_not_known():
    assert [known(value) for value in (None, float("nan"), float("inf"), float("-inf"), 0, 2)] == [None] * 4 + [
        0.0,
        2.0,
    ]
    assert mean([1.0, None, float("nan"), 2.0]) == 1.5
    assert mean([None]) is None
    assert mean([]) is None
