"""Reads numbers written for people: `$ (1,234.5)`, `14.1%`, `2.2 billion`, `yes`."""

from __future__ import annotations

import math
import numbers
import re
import sys
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import NamedTuple


class Value(NamedTuple):
    """One parsed value."""

    # finite, scale and sign applied (10% is 0.1, 2 million is 2e6); NaN for yes and no
    number: float
    # written with %, percent or percentage points: `number` is divided by 100
    percent: bool = False
    # thousand, lakh, million, crore, billion, trillion or basis points, already applied
    unit: str | None = None
    boolean: bool | None = None  # yes and true, no and false; None: a number
    text: str = ""  # as given; for a number its shortest spelling


class Spelled(NamedTuple):
    """The parts of a number as written."""

    digits: str  # ASCII, with sign and exponent, without commas, for `float` and `Decimal`
    unit: str | None  # percent, thousand, lakh, million, crore, billion, trillion or basis points

    @property
    def power(self) -> int:
        """The unit's power of ten: -2 for percent, 6 for million, 0 without a unit."""
        if self.unit:
            return POWERS[self.unit]
        return 0

    @property
    def number(self) -> float:
        """The value as a float, scale applied; correctly rounded unless there is an exponent too;
        may be infinite.
        """
        digits = self.digits
        power = self.power
        if "e" not in digits and "E" not in digits:
            return float(f"{digits}e{power}")
        if power >= 0:
            return float(digits) * 10.0**power
        return float(digits) / 10.0**-power


def parse_value(x: object) -> Value | None:
    """The value of a number, a bool or a text that is only one value; None if it cannot be read.

    * Numbers of any type are accepted (NumPy's, Decimal and Fraction too); NaN, infinities and
      numbers that overflow a float64 cannot be read. A bool is a boolean, never 1 or 0.
    * Thousands have all their commas or none: `1,234.5`, never `12,5`, `1234,567`, `0,123` or
      `1,2,3`. `.450` and `5.` are numbers, exponents are allowed, digits are ASCII.
    * At most one sign: `+`, `-`, `−` (U+2212), or an accounting bracket, which is a minus:
      so `(5)` and `($ 12.3)` are negative, `(-5)` and `-(5)` cannot be read.
    * At most one currency sign, before or after the sign or the bracket, or at the very end.
      It does not affect the value.
    * At most one unit, inside the bracket or after it, in any case: thousand(s), lakh(s),
      million(s), crore(s), billion(s), trillion(s), k, m, mm, bn; `%`, percent, percentage
      point(s); basis point(s), bp, bps. `m` and `mm` are million. A basis point is 1/10,000, not a
      percent.
    * Any spaces may surround each of these parts, but not split the digits.
    * yes, no, true and false are booleans, in any case.
    * Anything else, such as prose, needs `extract`.

    Scales are applied to the decimal, not to the float: `14.1%` is 0.141 and not 14.1 / 100.
    Takes time linear in the length of the text, and never raises.

    >>> parse_value("(12%)")
    Value(number=-0.12, percent=True, unit=None, boolean=None, text='(12%)')
    >>> parse_value("$10.5 Million").number, parse_value("12,5")
    (10500000.0, None)
    """
    if isinstance(x, str):
        if len(x) <= _SHORT and type(x) is str:
            return _of_short_text(x)
        return _of_text(x)

    if type(x) is float and x:  # not for 0: 0.0 equals -0.0 but has another text
        return _of_float(x)
    if isinstance(x, bool) or (type(x).__name__ in _NUMPY_BOOLS and type(x).__module__ == "numpy"):
        return Value(math.nan, boolean=bool(x), text=str(bool(x)))
    if isinstance(x, (numbers.Real, Decimal)):
        try:
            number = float(x)
        except (OverflowError, ValueError):  # an integer beyond 1.8e308; a signalling NaN
            return None

        if not math.isfinite(number):
            return None
        ratio = isinstance(x, numbers.Rational) and not isinstance(x, numbers.Integral)
        return Value(number, text=str(number if ratio else x))

    return None


_NUMPY_BOOLS = {"bool", "bool_"}  # by name, so that NumPy need not be imported
BOOLEANS = {"yes": True, "true": True, "no": False, "false": False}
POWERS = {
    "percent": -2,
    "basis points": -4,
    "thousand": 3,
    "lakh": 5,
    "million": 6,
    "crore": 7,
    "billion": 9,
    "trillion": 12,
}
_SCALES = ("thousand", "lakh", "million", "crore", "billion", "trillion")
UNITS = {word + plural: word for word in _SCALES for plural in ("", "s")} | {
    "k": "thousand",
    "m": "million",
    "mm": "million",
    "bn": "billion",
    **dict.fromkeys(("%", "percent", "percentage point", "percentage points"), "percent"),
    **dict.fromkeys(("basis point", "basis points", "bp", "bps"), "basis points"),
}
WORDS = UNITS | {
    **dict.fromkeys(("per cent", "pct", "pct.", "pp", "pps", "p.p.", "ppt", "ppts"), "percent"),
    **dict.fromkeys(("percentage-point", "percentage-points", "%-points"), "percent"),
    **dict.fromkeys(("basis-point", "basis-points"), "basis points"),
    "tsd": "thousand",
    **dict.fromkeys(("mn", "mln", "mio"), "million"),
    **dict.fromkeys(("b", "bln", "mrd", "milliard", "milliards"), "billion"),
    "tn": "trillion",
    **dict.fromkeys(("lac", "lacs"), "lakh"),
    "cr": "crore",
}
"""The names of units in prose, and of units that are given separately from their numbers."""
UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
CURRENCY = "[$£¥\u20a0-\u20cf\uff04\uffe1\uffe5\uffe6]"
# For folded text: with single spaces, no two parts can share a run of spaces, so matching stays
# linear.
_GRAMMAR = re.compile(
    rf"""({CURRENCY}?)[ ]?([-+(]?)[ ]?({CURRENCY}?)[ ]?
    ( (?: [1-9][0-9]{{0,2}} (?:,[0-9]{{3}})++ | [0-9]++ ) (?:\.[0-9]*+)? | \.[0-9]++ )
    ( (?:e[-+]?[0-9]++)? )
    [ ]?({UNIT}|)[ ]?(\)?)[ ]?({UNIT}|)[ ]?({CURRENCY}?)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


def _of_text(text: str) -> Value | None:
    number = plain(text)
    if number == number:
        return Value(number, text=text)
    parts = spelled(text)
    if parts is None:
        boolean = BOOLEANS.get(" ".join(text.split()).lower())
        if boolean is None:
            return None
        return Value(math.nan, boolean=boolean, text=text)

    number = parts.number
    if math.isinf(number):
        return None
    percent = parts.unit == "percent"
    return Value(number, percent, None if percent else parts.unit, None, text)


# characters of texts to cache: they are read again and again while a turn is compared in many ways
_SHORT = 24
_of_short_text = lru_cache(maxsize=8192)(_of_text)


def plain(text: str) -> float:
    """The number in a text that has no commas, currency signs or units; NaN for any other text.

    Unlike in Python's `float`, underscores, foreign digits, nan and inf are not allowed.
    """
    try:
        number = float(text)
    except ValueError:
        return math.nan

    return number if number - number == 0 and "_" not in text and text.isascii() else math.nan


def spelled(text: str) -> Spelled | None:
    """The parts of a text that is one number, however large, in the grammar of `parse_value`; else
    None.
    """
    match = _GRAMMAR.fullmatch(" ".join(text.split()).replace("\u2212", "-"))
    if match is None:
        return None
    before, sign, after, digits, exponent, inner, close, outer, behind = match.groups()
    if (inner and outer) or len(before + after + behind) > 1 or (sign == "(") != (close == ")"):
        return None
    minus = "-" if sign in {"-", "("} else ""
    unit = inner or outer
    return Spelled(
        minus + digits.replace(",", "") + exponent, UNITS[unit.lower()] if unit else None
    )


def fold(text: str) -> str:
    """The text in one case, with single spaces, stripped."""
    return " ".join(text.casefold().split())


@lru_cache(maxsize=1024)
def unit_power(unit: str | None) -> int | None:
    """The power of ten of a unit given separately from its number; None if it names no scale, or
    two.

    Accepts the units of `parse_value`, in any case, also among other words; `raw`, `ratio` or `USD`
    have no scale.

    >>> (
    ...     unit_power("$ million"),
    ...     unit_power("thousands of dollars"),
    ...     unit_power("USD"),
    ...     unit_power("dollars per million"),
    ... )
    (6, 3, None, None)
    """
    words = fold(unit or "").replace("percentage", "percent")
    if words in WORDS:
        return POWERS[WORDS[words]]
    if _PER.search(words):
        return None
    scales = {WORDS[word] for word in _UNIT_IN_WORDS.findall(words)}
    if len(scales) == 1:
        return POWERS[scales.pop()]
    return None


_PER = re.compile(r"\bper (?!cent)|/")
_AMBIGUOUS = {"b", "cr", "tn"}  # class b shares
_UNIT_IN_WORDS = re.compile(
    "|".join(
        rf"(?<![a-z]){re.escape(word)}(?![a-z])"
        for word in sorted({*WORDS} - _AMBIGUOUS, key=len, reverse=True)
    )
)

_CURRENCIES = {
    **dict.fromkeys(("$", "dollar", "dollars"), ("USD", "CAD", "AUD", "NZD", "HKD", "SGD")),
    **dict.fromkeys(("€", "euro", "euros"), ("EUR",)),
    **dict.fromkeys(("£", "pound", "pounds"), ("GBP",)),
    **dict.fromkeys(("¥", "￥"), ("JPY", "CNY")),
    **dict.fromkeys(("yen",), ("JPY",)),
    **dict.fromkeys(("₹", "rupee", "rupees"), ("INR",)),
    **dict.fromkeys(("yuan", "rmb"), ("CNY",)),
    **{
        code.lower(): (code,)
        for code in ("USD", "CAD", "AUD", "NZD", "HKD", "SGD", "EUR", "GBP", "JPY", "CNY", "INR")
    },
    **{code.lower(): (code,) for code in ("CHF", "SEK", "NOK", "DKK", "KRW", "BRL", "MXN", "ZAR")},
    "francs": ("CHF",),
}
_DOLLARS = {
    "us$": "USD",
    "c$": "CAD",
    "ca$": "CAD",
    "a$": "AUD",
    "au$": "AUD",
    "nz$": "NZD",
    "hk$": "HKD",
    "s$": "SGD",
    "r$": "BRL",
    "mx$": "MXN",
}
_CURRENCY_WORD = re.compile(r"(?<![a-z])[a-z]{1,2}\$|[$€£¥￥₹]|[a-z]+")


@lru_cache(maxsize=8192)
def currencies(text: str) -> frozenset[str]:
    """The currencies that a text may name, as codes: `$` may be several. Empty: it names none.

    >>> sorted(currencies("€ million")), currencies("million")
    (['EUR'], frozenset())
    """
    codes: set[str] = set()
    for word in _CURRENCY_WORD.findall(text.casefold()):
        if word[1:].endswith("$"):
            if word in _DOLLARS:
                codes.add(_DOLLARS[word])
            else:
                codes.update(_CURRENCIES["$"])
        else:
            codes.update(_CURRENCIES.get(word, ()))

    return frozenset(codes)


@lru_cache(maxsize=8192)
def _of_float(x: float) -> Value | None:
    if math.isfinite(x):
        return Value(x, text=str(x))
    return None


def decimals(value: Value) -> int | None:
    """Decimals of the number in its own scale; trailing zeros of a whole number count as rounded
    away. None: unknown.

    At least two digits stay: 1200 has -2 decimals, 100 has -1, 10 and 8 have 0. `12.5%` has 3. An
    exponent shifts them.
    """
    parts = spelled(value.text)
    if parts is None:
        return None
    digits, _, exponent = parts.digits.lower().partition("e")
    if len(exponent) > 4:
        return None
    integer, _, after = digits.lstrip("-").partition(".")
    count = len(after) - int(exponent or 0) - parts.power
    if after:
        return count
    bare = integer.lstrip("0")
    zeros = len(bare) - len(bare.rstrip("0"))
    return count - max(0, min(zeros, len(bare) - 2))


MAX_LITERAL = 100
"""The longest literal to read as a number, in characters."""

_NOT_IN_PROGRAMS = re.compile(rf"[()]|{CURRENCY}")
_CONSTANT = re.compile(
    r"const_(?P<minus>m)?(?P<digits>(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)"
)
_UNITS = {None, "percent", "basis points"}
_MAX_EXPONENT = 9_999
_LARGEST = sys.float_info.max


class Literal(NamedTuple):
    """A number in a program: its exact value, and whether it was spelled `const_…`."""

    exact: Decimal
    constant: bool

    @property
    def number(self) -> float:
        """The nearest float; always finite."""
        return float(self.exact)


def read_literal(text: str) -> Literal | None:
    """The number in a text, or None; currency signs, unit words, brackets, `nan` and infinities are
    not allowed.

    >>> read_literal("1,234.5%")
    Literal(exact=Decimal('12.345'), constant=False)
    >>> read_literal("const_m1").number
    -1.0
    >>> read_literal("1,23") is None
    True
    """
    if len(text) <= MAX_LITERAL:
        return _read(text)
    return None


def written(x: object) -> str:
    """A number of any type, including NumPy's, in its shortest digits; "" for a bool, or beyond a
    float64.
    """
    if isinstance(x, bool) or not isinstance(x, Real):
        return ""
    if isinstance(x, Integral):
        if abs(int(x)) <= _LARGEST:
            return str(int(x))
        return ""

    try:
        return repr(float(x))
    except OverflowError:
        return ""


@lru_cache(maxsize=16_384)
def _read(text: str) -> Literal | None:
    text = text.strip()
    if match := _CONSTANT.fullmatch(text):
        exact = Decimal(("-" if match["minus"] else "") + match["digits"].replace(",", ""))
        return Literal(exact, constant=True)

    if _NOT_IN_PROGRAMS.search(text):
        return None
    parts = spelled(text)
    if parts is None or parts.unit not in _UNITS:
        return None
    digits, _, exponent = parts.digits.lower().partition("e")
    if len(exponent) > 8 or abs(int(exponent or 0)) > _MAX_EXPONENT:
        return None
    exact = Decimal(f"{digits}e{int(exponent or 0) + parts.power}")
    if math.isfinite(float(exact)):
        return Literal(exact, constant=False)
    return None
