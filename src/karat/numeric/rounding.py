"""How many decimals a number was written with."""

from __future__ import annotations

from karat.numeric.values import Value, spelled

__all__ = ["decimals"]


def decimals(value: Value) -> int | None:
    """Decimals of the number in its own scale, trailing zeros of a whole number taken as rounded away; None: unknown.

    Two digits stay at least: 1200 has -2 decimals, 100 has -1, 10 and 8 have 0. `12.5%` has 3. An exponent shifts.
    """
    found = spelled(value.text)
    if found is None:
        return None
    digits, _, exponent = found.digits.lower().partition("e")
    if len(exponent) > 4:
        return None
    whole, _, after = digits.lstrip("-").partition(".")
    count = len(after) - int(exponent or 0) - found.power
    if after:
        return count
    bare = whole.lstrip("0")
    zeros = len(bare) - len(bare.rstrip("0"))
    return count - max(0, min(zeros, len(bare) - 2))
