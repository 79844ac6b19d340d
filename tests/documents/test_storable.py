"""Numbers and texts that can be kept."""

from __future__ import annotations

import pytest

from karat.documents.storable import Unfit, constant, finite, impossible, integer, why_unfit

NO_FLOAT = "which JSON does not allow or no floating-point number can hold"


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_numbers_of_json_are_kept_unless_nothing_can_hold_them():
    assert integer("-12") == -12
    assert integer("9" * 400) == int("9" * 400)
    assert integer("9" * 401) == Unfit("9" * 401)
    assert finite("-1.5e3") == -1500.0
    assert finite("1e400") == Unfit("1e400")
    assert constant("NaN") is None
    assert constant("-Infinity") == Unfit("-Infinity")


@pytest.mark.parametrize(
    "value",
    ["é", 2**64 - 1, -(2**63), {"a": [None, True, 1.5, "x"]}, nested(64), {"a": nested(63)}],
)
def test_ordinary_values_are_fit(value):
    assert why_unfit(value) is None


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": "x\ud83d"}, "holds half of a surrogate pair (\\ud83d), which is not text; remove it"),
        ({"\ud800": 1}, "holds half of a surrogate pair (\\ud800), which is not text; remove it"),
        ([2**64], "holds a whole number of 20 digits; write it in quotes"),
        (-(2**63) - 1, "holds a whole number of 19 digits; write it in quotes"),
        (nested(65), "is nested too deeply"),
        ({"a": nested(64)}, "is nested too deeply"),
        ({"a": {"b": Unfit("-Infinity")}}, f"holds -Infinity, {NO_FLOAT}"),
        ([Unfit("9" * 401)], "holds a whole number of 401 digits; write it in quotes"),
    ],
)
def test_what_cannot_be_kept_says_why(value, why):
    assert why_unfit(value) == why


def test_long_numbers_are_cut():
    assert impossible("1." + "3" * 400) == f"holds 1.{'3' * 21}…, {NO_FLOAT}"
    assert impossible("-12") == "holds a whole number of 2 digits; write it in quotes"
