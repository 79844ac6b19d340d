"""The matches of a million pairs at once: the rules of `match`, over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from karat.numeric.columns import NO_BOOLEAN, SHORTEST, Bools, Columns, Floats, Values, read
from karat.numeric.matches import Matches, close, near, prints_as, same_text, scaled
from karat.numeric.values import POWERS, parse_value, unit_power

__all__ = ["match_many"]

Units = str | Sequence[str | None] | None

_MATCHES = tuple(field.name for field in fields(Matches))
_SIDES = np.array([None, "expected", "actual", "both"], dtype=object)
_AT_ONCE = 16384  # pairs whose intermediate results stay in the cache: three times as fast as whole arrays
_PERCENT = POWERS["percent"]


def match_many(
    expected: Values,
    actual: Values,
    *,
    declared_unit: Units = None,
    printed: Values | None = None,
) -> dict[str, NDArray[Any]]:
    """One array for each field of `Matches`, element by element what `match` answers.

    All are of bool, but `unreadable`: objects, None or the side. `declared_unit` is one for
    all or one a pair; `printed` has None where `expected` is as printed. Arrays of numbers
    are fastest. Raises ValueError where lengths differ or an array is not one-dimensional.

    >>> found = match_many([0.14136, 5, "yes"], ["14.1%", "N/A", True])
    >>> found["numerical"].tolist(), found["general"].tolist(), found["unreadable"].tolist()
    ([True, False, False], [True, False, True], [None, 'actual', None])
    """
    e, a = read(expected), read(actual)
    forms = e if printed is None else read(_forms(e.raw, printed))
    n = e.number.size
    units = None if declared_unit is None or isinstance(declared_unit, str) else list(declared_unit)
    sizes = {n, a.number.size, forms.number.size, n if units is None else len(units)}
    if len(sizes) != 1:
        raise ValueError(f"expected, actual, declared_unit and printed: must have one length, got {sorted(sizes)}")
    found = {name: np.empty(n, dtype=object if name == "unreadable" else np.bool_) for name in _MATCHES}
    with np.errstate(over="ignore", invalid="ignore"):  # NaN is no number here, and an overflow matches nothing
        for first in range(0, n, _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            declared = units[part] if units else declared_unit
            golden = e.part(part)
            rows = _compare(golden, a.part(part), golden if forms is e else forms.part(part), declared)
            for name, array in found.items():
                array[part] = rows[name]
    return found


def _forms(expected: Values, printed: Values) -> list[Any]:
    if len(printed) != len(expected):
        raise ValueError(f"printed: must have the length of expected, {len(expected)}, got {len(printed)}")
    return [golden if form is None else form for golden, form in zip(expected, printed, strict=True)]


def _compare(e: Columns, a: Columns, forms: Columns, units: Units) -> dict[str, NDArray[Any]]:
    numerical = near(e.number, a.number)
    x, y = abs(e.number), abs(a.number)
    without_sign = near(x, y)
    same = (e.boolean != NO_BOOLEAN) & (e.boolean == a.boolean)
    right = numerical | same
    return {
        "numerical": numerical,
        "soft": close(e.number, a.number),
        "unit_agnostic": numerical | scaled(e.number, a.number),
        "sign_agnostic": without_sign,
        "general": right | _bare(e, a) | _same_text(e, a),
        "exact": _same_at_five(e.number, a.number) | same,
        "scale_and_sign": without_sign | scaled(x, y),
        "declared": right if units is None else _declared(e, a, forms, units) | same,
        "printed": _printed(forms, a) & e.readable,
        "right": right,
        "unreadable": _SIDES[(~e.readable).astype(np.intp) + 2 * ~a.readable],
    }


def _same_at_five(e: Floats, a: Floats) -> Bools:
    """Equal by Python's `round(…, 5)`, which rounds the exact binary value; asked itself where a tie is too near."""
    same = cast("Bools", e == a)
    at = np.flatnonzero((abs(a - e) < 1.1e-5) & ~same)
    if at.size:
        x, y = e[at] * 1e5, a[at] * 1e5
        same[at] = np.rint(x) == np.rint(y)
        for one in at[_tied(x) | _tied(y)].tolist():
            same[one] = round(float(e[one]), 5) == round(float(a[one]), 5)
    return same


def _tied(x: Floats) -> Bools:
    return abs(abs(x - np.floor(x)) - 0.5) <= 1e-6 + 4e-16 * abs(x)


def _bare(e: Columns, a: Columns) -> Bools:
    """The bare number of a percentage against what is none."""
    found = np.zeros(e.number.size, dtype=np.bool_)
    e_percent, a_percent = e.power == _PERCENT, a.power == _PERCENT
    at = np.flatnonzero(e_percent != a_percent)
    if at.size:
        x = np.where(e_percent[at], 100 * e.number[at], e.number[at])
        y = np.where(a_percent[at], 100 * a.number[at], a.number[at])
        found[at] = near(x, y) & np.isfinite(x)
    return found


def _same_text(e: Columns, a: Columns) -> Bools:
    """The same text, asked only where it cannot be read: elsewhere the same text is the same value."""
    found = np.zeros(e.number.size, dtype=np.bool_)
    for one in np.flatnonzero(~(e.readable & a.readable)).tolist():
        found[one] = same_text(e.raw[one], a.raw[one])
    return found


def _declared(e: Columns, a: Columns, forms: Columns, units: str | Sequence[str | None]) -> Bools:
    if isinstance(units, str):
        power = np.full(a.number.size, unit_power(units) or 0)
    else:
        powers = {unit: unit_power(unit) or 0 for unit in set(units)}
        power = np.array([powers[unit] for unit in units], dtype=np.int64)
    power[a.power != 0] = 0  # carries its own unit
    number = a.number * _TENS[np.maximum(power, 0)] / _TENS[np.maximum(-power, 0)]
    bare = (power == _PERCENT) & (forms.power != _PERCENT)
    return cast("Bools", near(e.number, number) | (bare & near(e.number, a.number)))


_TENS = np.array([10.0**power for power in range(max(POWERS.values()) + 1)])


def _printed(forms: Columns, a: Columns) -> Bools:
    """`prints_as`, asked itself where float64 leaves open on which side of half a last decimal the answer is."""
    found: Bools = (forms.number == a.number) | ((forms.boolean != NO_BOOLEAN) & (forms.boolean == a.boolean))
    off = abs(a.number - forms.number)
    open_, decimals = _shortest_decimals(forms, off)
    at = np.flatnonzero(~found & np.isfinite(off) & ~open_)
    step = np.power(10.0, np.clip(decimals[at] - forms.power[at], -330, 330))
    halves = off[at] * step - 0.5
    unsure = 1e-6 + 8 * np.finfo(np.float64).eps * np.maximum(abs(a.number[at]), abs(forms.number[at])) * step
    found[at[halves < -unsure]] = True
    for one in [*at[~(abs(halves) > unsure)].tolist(), *np.flatnonzero(open_).tolist()]:
        found[one] = _prints(forms.raw[one], a.raw[one])
    return found


def _prints(form: Any, actual: Any) -> bool:
    value = parse_value(actual)
    return value is not None and prints_as(form, parse_value(form), value)


def _shortest_decimals(forms: Columns, off: Floats) -> tuple[Bools, NDArray[np.int64]]:
    """The decimals of each printed form, and where they were not found: of a number given as such, close to the answer.

    A number is tried with ever more decimals, as long as the answer may still round to it.
    """
    decimals = forms.decimals.astype(np.int64)
    left = np.flatnonzero(forms.decimals == SHORTEST)
    for tried in range(_MOST_DECIMALS + 1):
        decimals[left] = tried
        left = left[off[left] * 10.0**tried <= 0.5 + 1e-6]
        whole = forms.number[left] * 10.0**tried
        left = left[np.rint(whole) / 10.0**tried != forms.number[left]]
        if not left.size:
            break
    open_ = np.zeros(off.size, dtype=np.bool_)
    open_[left] = True
    return open_, decimals


_MOST_DECIMALS = 15
