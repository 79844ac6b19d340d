"""Numbers as programs write them: as in §1 of values, without currency signs, unit words and brackets; `const_` too."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import NamedTuple

from karat.numeric.values import CURRENCY, spelled

__all__ = ["MAX_LITERAL", "Literal", "read_literal", "written"]

MAX_LITERAL = 100
"""Characters of the longest literal that is read as a number."""

_NOT_IN_PROGRAMS = re.compile(rf"[()]|{CURRENCY}")
_CONSTANT = re.compile(r"const_(?P<minus>m)?(?P<digits>(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)")
_UNITS = {None, "percent", "basis points"}
_MAX_EXPONENT = 9_999
_LARGEST = sys.float_info.max


class Literal(NamedTuple):
    """A number that stands in a program: its exact value, and whether it was spelled `const_…`."""

    exact: Decimal
    constant: bool

    @property
    def number(self) -> float:
        """The nearest float; always finite."""
        return float(self.exact)


def read_literal(text: str) -> Literal | None:
    """The number that the text is, or None: no currency signs, unit words, brackets, `nan` or infinities.

    >>> read_literal("1,234.5%")
    Literal(exact=Decimal('12.345'), constant=False)
    >>> read_literal("const_m1").number
    -1.0
    >>> read_literal("1,23") is None
    True
    """
    return _read(text) if len(text) <= MAX_LITERAL else None


def written(x: object) -> str:
    """A number of any kind, NumPy's too, in its shortest digits; nothing for a bool and beyond what a float64 holds."""
    if isinstance(x, bool) or not isinstance(x, Real):
        return ""
    if isinstance(x, Integral):
        return str(int(x)) if abs(int(x)) <= _LARGEST else ""
    try:
        return repr(float(x))
    except OverflowError:
        return ""


@lru_cache(maxsize=16_384)
def _read(text: str) -> Literal | None:
    text = text.strip()
    if found := _CONSTANT.fullmatch(text):
        exact = Decimal(("-" if found["minus"] else "") + found["digits"].replace(",", ""))
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
    return Literal(exact, constant=False) if math.isfinite(float(exact)) else None
