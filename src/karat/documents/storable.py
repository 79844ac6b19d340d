"""Numbers that a dataset, its samples and the journal can hold."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from karat.formats import excerpt

_DEEPEST = 64  # levels of nesting
_DIGITS = 400  # of a whole number; beyond 4,300 Python refuses, and no float is longer than 309
# what a number can be in the memory of samples and in the journal
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


class Unfit(msgspec.Struct, frozen=True):
    """Replaces a number that cannot be stored."""

    written: str


def integer(text: str) -> int | Unfit:
    """A whole number in JSON (`parse_int`)."""
    if len(text) <= _DIGITS:
        return int(text)
    return Unfit(text)


def finite(text: str) -> float | Unfit:
    """A number with a fraction or an exponent in JSON (`parse_float`)."""
    value = float(text)
    if math.isfinite(value):
        return value
    return Unfit(text)


def constant(text: str) -> Unfit | None:
    """None for NaN, which pandas writes for what is missing; infinities cannot be stored."""
    return None if text == "NaN" else Unfit(text)


def why_unfit(row: Any) -> str | None:
    """Why a row cannot be stored; None if it can.

    Depth is bounded here, so code that walks rows may recurse.
    """
    waiting: list[tuple[Any, int]] = [(row, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            wrong = None
            if not value.isascii():
                try:
                    value.encode("utf-8")
                except UnicodeEncodeError as error:
                    half = f"\\u{ord(value[error.start]):04x}"
                    wrong = f"holds half of a surrogate pair ({half}), which is not text; remove it"
        elif isinstance(value, int):
            if _SMALLEST <= value <= _LARGEST:
                wrong = None
            else:
                wrong = impossible(str(value))
        elif isinstance(value, (dict, list)):
            wrong = "is nested too deeply" if depth > _DEEPEST else None
            waiting += [(below, depth + 1) for below in value]
            if isinstance(value, dict):
                waiting += [(below, depth + 1) for below in value.values()]
        else:
            if isinstance(value, Unfit):
                wrong = impossible(value.written)
            else:
                wrong = None

        if wrong is not None:
            return wrong

    return None


def impossible(written: str) -> str:
    """Why a number written so cannot be stored."""
    if written.lstrip("-").isdecimal():
        return f"holds a whole number of {len(written.lstrip('-'))} digits; write it in quotes"
    return (
        f"holds {excerpt(written, 24)}, which JSON does not allow or no floating-point number can "
        f"hold"
    )
