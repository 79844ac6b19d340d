"""Many values at once, as arrays: what `match_many` compares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from karat.numeric.lines import read_lines
from karat.numeric.values import BOOLEANS, parse_value, plain, spelled

__all__ = ["Bools", "Columns", "Floats", "Values", "read"]

Values = Sequence[Any] | NDArray[Any]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NO_BOOLEAN = -1
SHORTEST = -(2**31)  # in `decimals`: given as a number, so it has those of its shortest spelling
_MANY = 8192  # texts read at once: their bytes and what is counted on them stay in the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Values as arrays of one length."""

    raw: Values  # as they were given
    number: Floats  # NaN: a boolean, or not readable
    boolean: NDArray[np.int8]  # 1 yes, 0 no, NO_BOOLEAN
    power: NDArray[np.int8]  # of ten, of the unit that is written with it and applied: -2 of a percent; 0 without
    decimals: NDArray[np.int32]  # as written, before the unit: 1 of 10.5 million, -3 of 1e3; or SHORTEST

    @property
    def readable(self) -> Bools:
        """Where there is a value."""
        return cast("Bools", np.isfinite(self.number) | (self.boolean != NO_BOOLEAN))

    def part(self, rows: slice) -> Columns:
        """Some of the rows."""
        return Columns(
            raw=self.raw[rows],
            number=self.number[rows],
            boolean=self.boolean[rows],
            power=self.power[rows],
            decimals=self.decimals[rows],
        )


def read(values: Values) -> Columns:
    """Each value as `parse_value` reads it. Raises ValueError for an array of more than one dimension."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"one dimension is wanted, got {values.ndim}")
        if values.dtype.kind in "fiu":
            return _of_numbers(values)
        values = values.tolist()
    elif isinstance(values, str):
        raise ValueError("a sequence of values is wanted, got one text")
    elif type(values) is not list:
        values = list(values)
    types = set(map(type, values))
    if types <= {float, int}:
        try:
            return _of_numbers(np.array(values, dtype=np.float64), values)
        except OverflowError:  # an integer that no float64 holds: not readable, one by one
            pass
    return _of_any(values, all_text=types == {str})


def _of_numbers(array: NDArray[Any], raw: Values | None = None) -> Columns:
    with np.errstate(over="ignore"):
        number = array.astype(np.float64, copy=raw is None)  # the caller's stays: what cannot be read is struck out
    wild = ~np.isfinite(number)
    if wild.any():
        number[wild] = np.nan
    columns = _blank(array if raw is None else raw, number)
    columns.decimals[:] = SHORTEST
    return columns


def _blank(raw: Values, number: Floats) -> Columns:
    n = number.size
    return Columns(
        raw=raw,
        number=number,
        boolean=np.full(n, NO_BOOLEAN, dtype=np.int8),
        power=np.zeros(n, dtype=np.int8),
        decimals=np.zeros(n, dtype=np.int32),
    )


def _of_any(values: Values, *, all_text: bool) -> Columns:
    columns = _blank(values, np.full(len(values), np.nan))
    texts = range(len(values)) if all_text else [at for at, x in enumerate(values) if isinstance(x, str)]
    others = [] if all_text else [at for at, x in enumerate(values) if not isinstance(x, str)]
    for first in range(0, len(texts), _MANY):
        at = texts[first : first + _MANY]
        _read_texts(columns, np.asarray(at), [values[one] for one in at])
    for one in others:
        found = parse_value(values[one])
        if found is None:
            continue
        columns.number[one] = found.number
        columns.boolean[one] = NO_BOOLEAN if found.boolean is None else found.boolean
        columns.decimals[one] = SHORTEST
    return columns


def _read_texts(columns: Columns, at: NDArray[np.intp], texts: list[str]) -> None:
    short = read_lines(texts)
    left = list(range(len(texts)))
    if short is not None:
        where = at[short.fine]
        columns.number[where] = short.number[short.fine]
        columns.power[where] = short.power[short.fine]
        columns.decimals[where] = short.decimals[short.fine]
        left = np.flatnonzero(~short.fine).tolist()
    if not left:
        return
    number = np.array([plain(texts[one]) for one in left])
    is_plain = ~np.isnan(number)
    where = at[left]
    columns.number[where[is_plain]] = number[is_plain]
    columns.decimals[where[is_plain]] = [_decimals(texts[left[one]]) for one in np.flatnonzero(is_plain).tolist()]
    for one in np.flatnonzero(~is_plain).tolist():
        _read_one(columns, int(where[one]), texts[left[one]])


def _read_one(columns: Columns, at: int, text: str) -> None:
    found = spelled(text)
    if found is None:
        columns.boolean[at] = BOOLEANS.get(" ".join(text.split()).lower(), NO_BOOLEAN)
    elif not math.isinf(found.number):
        columns.number[at] = found.number
        columns.power[at] = found.power
        columns.decimals[at] = _decimals(found.digits)


def _decimals(digits: str) -> int:
    mantissa, _, exponent = digits.strip().lower().partition("e")
    point = mantissa.find(".")
    after = len(mantissa) - point - 1 if point >= 0 else 0
    if not exponent:
        return after
    if len(exponent) > 9:  # of a zero, however it is written
        return -SHORTEST - 1 if exponent[0] == "-" else 0
    return after - int(exponent)
