"""What in a JSON value cannot be kept, in memory or in the journal: found before it can crash what walks it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from karat.formats import excerpt

__all__ = ["Unfit", "finite", "integer", "why_unfit"]

_DEEPEST = 64  # levels of nesting
_DIGITS = 400  # of a whole number; beyond 4,300 Python refuses, and no float is longer than 309
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # what a number can be in the memory of samples and in the journal


@dataclass(frozen=True, slots=True)
class Unfit:
    """Stands where a number stood that cannot be kept."""

    written: str


def integer(text: str) -> int | Unfit:
    """A whole number as JSON writes it (`parse_int`)."""
    return int(text) if len(text) <= _DIGITS else Unfit(text)


def finite(text: str) -> float | Unfit:
    """A number with a fraction or an exponent as JSON writes it (`parse_float`)."""
    value = float(text)
    return value if math.isfinite(value) else Unfit(text)


def why_unfit(row: Any) -> str | None:
    """What in a row cannot be kept; None: all of it can. Depth is bounded here: what walks rows may recurse."""
    waiting: list[tuple[Any, int]] = [(row, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            wrong = None if value.isascii() else _half_pair(value)
        elif isinstance(value, int):
            wrong = None if _SMALLEST <= value <= _LARGEST else _too_long(value)
        elif isinstance(value, (dict, list)):
            wrong = "is nested too deeply" if depth > _DEEPEST else None
            waiting += [(below, depth + 1) for below in value]
            waiting += [(below, depth + 1) for below in value.values()] if isinstance(value, dict) else []
        else:
            wrong = _impossible(value.written) if isinstance(value, Unfit) else None
        if wrong is not None:
            return wrong
    return None


def _half_pair(text: str) -> str | None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return f"holds half of a surrogate pair (\\u{ord(text[error.start]):04x}), which is no text; remove it"
    return None


def _too_long(number: int) -> str:
    return f"holds a whole number of {len(str(abs(number)))} digits; write it in quotes"


def _impossible(written: str) -> str:
    if written.lstrip("-").isdecimal():
        return f"holds a whole number of {len(written.lstrip('-'))} digits; write it in quotes"
    return f"holds {excerpt(written, 24)}, which JSON does not allow or no computer number can be"
