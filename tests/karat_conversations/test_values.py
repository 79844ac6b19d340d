"""Reading one value: §1 of the contract, clause by clause."""

import math
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat_conversations import numeric
from karat_conversations.numeric import Value, parse_value
from karat_conversations.numeric.values import unit_power

patiently = settings(deadline=None)

NUMBERS = {
    "1234": 1234.0,
    "1,234.5": 1234.5,
    "1,234,567.89": 1234567.89,
    "1,234.": 1234.0,
    " 7 ": 7.0,
    "\u00a07\n": 7.0,
    "+5": 5.0,
    "-5": -5.0,
    "\u22125": -5.0,
    "- 5": -5.0,
    "-0": -0.0,
    "5.": 5.0,
    ".450": 0.45,
    "-.5": -0.5,
    "007": 7.0,
    "1e3": 1000.0,
    "1E+3": 1000.0,
    "1.5e-3": 0.0015,
    "1,000e3": 1e6,
    "$5": 5.0,
    "$ 12.3": 12.3,
    "€12": 12.0,
    "£ 1,234": 1234.0,
    "₹5": 5.0,
    "5 €": 5.0,
    "-$5": -5.0,
    "$-5": -5.0,
    "- $ 5": -5.0,
    "$\u22125": -5.0,
    "(5)": -5.0,
    "( 5 )": -5.0,
    "(1,234.5)": -1234.5,
    "($12)": -12.0,
    "($ 12.3)": -12.3,
    "$(5)": -5.0,
    "$ ( 5 )": -5.0,
}


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_a_number_is_read_with_sign_commas_and_currency(text, number):
    assert parse_value(text) == Value(number, text=text)


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("5 thousand", 5e3, "thousand"),
        ("5k", 5e3, "thousand"),
        ("5K", 5e3, "thousand"),
        ("1.2 thousands", 1.2e3, "thousand"),
        ("10.5 million", 10.5e6, "million"),
        ("10.5 Millions", 10.5e6, "million"),
        ("10.5million", 10.5e6, "million"),
        ("5m", 5e6, "million"),
        ("5 MM", 5e6, "million"),
        ("2.2 billion", 2.2e9, "billion"),
        ("2.2bn", 2.2e9, "billion"),
        ("1 TRILLION", 1e12, "trillion"),
        ("$1.5 billion", 1.5e9, "billion"),
        ("-$1.5bn", -1.5e9, "billion"),
        ("($5 million)", -5e6, "million"),
        ("$(5) million", -5e6, "million"),
        ("1e2k", 1e5, "thousand"),
        ("25 basis points", 0.0025, "basis points"),
        ("1 basis point", 0.0001, "basis points"),
        ("25bps", 0.0025, "basis points"),
        ("1 bp", 0.0001, "basis points"),
    ],
)
def test_a_unit_scales_the_number_and_is_kept_in_one_spelling(text, number, unit):
    assert parse_value(text) == Value(number, unit=unit, text=text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10%", 0.1),
        ("14.1 %", 0.141),
        ("7 percent", 0.07),
        ("7 Percent", 0.07),
        ("3 percentage points", 0.03),
        ("1 percentage point", 0.01),
        ("-.6%", -0.006),
        ("5.%", 0.05),
        ("1,250%", 12.5),
        ("(12%)", -0.12),
        ("(12)%", -0.12),
        ("( 12 ) %", -0.12),
        ("1e3%", 10.0),
    ],
)
def test_a_percentage_is_a_hundredth_and_says_so(text, number):
    assert parse_value(text) == Value(number, percent=True, text=text)


@pytest.mark.parametrize(
    ("given_", "boolean"), [("yes", True), (" YES ", True), ("True", True), ("no", False), ("FALSE", False)]
)
def test_yes_and_no_are_booleans(given_, boolean):
    assert parse_value(given_) == Value(math.nan, boolean=boolean, text=given_)


@pytest.mark.parametrize("boolean", [True, False])
def test_a_bool_is_never_a_number(boolean):
    for x in (boolean, np.bool_(boolean)):
        found = parse_value(x)
        assert found == Value(math.nan, boolean=boolean, text=str(boolean))


@pytest.mark.parametrize(
    ("x", "number"),
    [
        (5, 5.0),
        (-0.5, -0.5),
        (np.float64(2.5), 2.5),
        (np.int32(7), 7.0),
        (Decimal("1.50"), 1.5),
        (Fraction(1, 4), 0.25),
        pytest.param(Fraction(10**5000, 10**5000 - 1), 1.0, id="a long ratio"),
        (10**300, 1e300),
        (5e-324, 5e-324),
    ],
)
def test_numbers_of_all_kinds_pass(x, number):
    found = parse_value(x)
    assert found is not None
    assert found[:4] == (number, False, None, None)


UNREADABLE = """1_000|12,5|1,2,3|1234,567|12,34,567|0,123|,123|1,,234|1,234,|1.234,567|1,23.4|1,2345
5%%|% 5|%|5%% %|(5%)%|5 million %|5 million thousand|(-5)|(+5)|-(5)|+(5)|((5))|(5|5)|)5(|()
--5|+-5|5-|- -5|$$5|$5$|-$-5|$-$5|$|-|+|.|e5|1e|1e5.5|1e400|-1e400|1e400%|0x10|1 234|1.2.3|5..
five|12 apples|N/A|n/a|none|null|nan|NaN|inf|-Infinity|the answer is 5|5 or 6|yes.|yes no|maybe|y|n
5 ms|5 ks|5 bns|5 millionth|5 m m|million|5\u212a|\u0665|\uff15|5\u2013|\u20135|5e\u0665|1/2|5x|~5|5 dollars|5\x00"""


@pytest.mark.parametrize(
    "text", ["", " ", "\n", *(each for line in UNREADABLE.split("\n") for each in line.split("|"))]
)
def test_what_is_no_value_cannot_be_read(text):
    assert parse_value(text) is None


@pytest.mark.parametrize(
    "x",
    [
        None,
        math.nan,
        math.inf,
        -math.inf,
        10**400,
        pytest.param(10**5000, id="huge"),
        Decimal("sNaN"),
        Decimal("1e999"),
        1j,
        b"5",
        [5],
        {},
    ],
)
def test_what_is_no_number_cannot_be_read(x):
    assert parse_value(x) is None


@patiently
@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_every_spelling_of_a_decimal_is_the_same_number(decimal):
    number = float(decimal)
    spellings = (f"{decimal}", f"{decimal:,}", f"$ {decimal:,}", f"{decimal:e}", f"{decimal * 100}%")
    assert {parse_value(text).number for text in spellings} == {number}
    assert parse_value(f"({abs(decimal):,})").number == -abs(number)
    assert parse_value(f"{decimal} million").number == float(decimal * 10**6)


@patiently
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_survives_its_own_text(number):
    assert parse_value(repr(number)).number == parse_value(number).number == number


@patiently
@given(st.text(alphabet="0123456789.,-+()$%€ emkbn\u2212_\n") | st.text())
def test_any_text_is_read_or_not_and_never_raises(text):
    found = parse_value(text)
    if found is not None:
        assert math.isfinite(found.number) or found.boolean is not None
        assert not (found.percent and found.unit)
        assert parse_value(f"  {text} ") == found._replace(text=f"  {text} ")


@pytest.mark.parametrize(
    "piece", ["1", "1,111,", "(", " ", "5 ", "$ ", "1e", "9e9", ".", "%", "million ", "-", "\u2212", "0."]
)
def test_long_texts_are_read_or_not(piece):
    for text in (piece * 50_000, "0." + piece * 50_000, piece * 50_000 + "x"):
        parse_value(text)


@pytest.mark.parametrize(
    ("unit", "power"),
    [
        *[(unit, -2) for unit in ("%", "Percent", "percentage", "percentage points")],
        *[("basis points", -4), ("thousand", 3), ("Millions", 6), ("mm", 6), ("bn", 9), (" trillion ", 12)],
        *[(unit, None) for unit in ("raw", "ratio", "USD", "none", "", None)],
    ],
)
def test_a_unit_named_apart_has_the_scale_of_its_word(unit, power):
    assert unit_power(unit) == power


def test_every_public_name_of_the_package_is_there_and_no_module():
    """A submodule that is called as a public function would hide it, once it is imported."""
    for name in numeric.__all__:
        assert not isinstance(getattr(numeric, name), types.ModuleType), name
    for name in numeric.__all__:
        assert not isinstance(getattr(numeric, name), types.ModuleType), name
    assert list(numeric.__all__) == sorted(numeric.__all__, key=lambda name: (not name.isupper(), name))
