"""Matches a million pairs at once: the rules of `match`, over arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from karat_conversations.numeric.matches import (
    Matches,
    another_currency,
    bare,
    close,
    near,
    prints_as,
    same_text,
    scaled,
)
from karat_conversations.numeric.values import (
    BOOLEANS,
    POWERS,
    UNITS,
    parse_value,
    plain,
    spelled,
    unit_power,
)

_MOST_DIGITS = 15

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Numbers(NamedTuple):
    """The parsed parts of each line; meaningless for lines that are not `fine`."""

    fine: Bools
    number: Floats  # scale and sign applied
    power: Ints  # of ten, of the unit; 0 without one
    decimals: Ints  # after the point


def read_lines(texts: list[str]) -> Numbers | None:
    """The numbers of some texts; None if one of them has more than one line."""
    joined = "\n".join([*texts, ""])
    if joined.count("\n") != len(texts):
        return None
    line = joined.encode("ascii", "replace")
    line = line.translate(_LOWER)
    if re.search(rb"[a-z]", line):
        words = _WORDS
    else:
        words = [(b"%", _CODES["percent"])]

    for word, code in words:
        line = line.replace(word, code)
    buffer = np.frombuffer(line + b"\n\n\n\n", dtype=np.uint8)
    lines = _Lines(buffer)
    number = lines.mantissa()
    shift = lines.power - lines.decimals
    number *= _POWERS_OF_TEN[np.maximum(shift, 0)]
    number /= _POWERS_OF_TEN[np.minimum(np.maximum(-shift, 0), len(_POWERS_OF_TEN) - 1)]
    number[lines.minus] *= -1
    return Numbers(lines.fine(), number, lines.power, lines.decimals)


_POWERS_OF_TEN = np.array([10.0**power for power in range(23)])
_WEIGHTS = 10 ** np.arange(_MOST_DIGITS, dtype=np.int64)

# Each unit becomes one unique byte, so the last byte of a line shows its unit.
_CODES = {unit: bytes([at]) for at, unit in enumerate(POWERS, 1)}
_WORDS = [
    (word.encode(), _CODES[unit])
    for word, unit in sorted(UNITS.items(), key=lambda item: -len(item[0]))
]
_LOWER = bytes(ord("?") if at < 9 else at for at in range(256)).lower()
_POWER = np.zeros(256, dtype=np.int64)
_POWER[[code[0] for code in _CODES.values()]] = list(POWERS.values())


class _Lines:
    """The positions of a number's parts in each line, byte by byte, for the common part of
    `parse_value`'s grammar.

    A line is `[sign or bracket][$][sign or bracket] digits and commas [. digits] [unit][)][unit]`,
    with at most one space between any two parts, and up to 15 digits. Everything else is left to
    the grammar itself. The results are equal: 15 digits and powers of ten up to 22 are exact in
    float64, so their product or quotient is correctly rounded.
    """

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        self.buffer = buffer
        self.ends = np.flatnonzero(buffer[:-4] == ord("\n"))
        self.digit = (buffer - np.uint8(ord("0"))) < 10  # wraps around below "0"
        # the number of digits before each byte
        self.before = np.zeros(buffer.size + 1, dtype=np.int64)
        np.cumsum(self.digit, out=self.before[1:])

        at = np.concatenate(([0], self.ends[:-1] + 1))
        self.minus = self._is(at, "-")
        self.bracket = self._is(at, "(")
        at = self._past_space(at + (self.minus | self.bracket))
        at = self._past_space(at + self._is(at, "$"))
        unsigned = ~(self.minus | self.bracket)
        sign = unsigned & self._is(at, "-")
        bracket = unsigned & self._is(at, "(")
        self.bracket |= bracket
        self.minus |= sign | self.bracket
        self.first = self._past_space(at + (sign | bracket))

        outer = self._power_before(self.ends)
        stop = self._before_space(self.ends - (outer != 0))
        self.closed = (stop > self.first) & self._is(stop - 1, ")")
        stop = self._before_space(stop - self.closed)
        inner = np.where(self.closed & (outer == 0), self._power_before(stop), 0)
        self.stop = self._before_space(stop - (inner != 0))
        self.power = outer + inner

        self.count = self.before[self.stop] - self.before[self.first]
        dots = np.flatnonzero(buffer == ord("."))
        at = np.searchsorted(self.ends, dots)
        self.dots = np.bincount(at, minlength=self.ends.size)
        self.dot = self.stop.copy()
        self.dot[at] = dots
        self.decimals = self.before[self.stop] - self.before[self.dot]

    def _is(self, at: NDArray[Any], byte: str) -> Bools:
        here: Bools = self.buffer[at] == ord(byte)
        return here

    def _past_space(self, at: NDArray[Any]) -> NDArray[Any]:
        return at + self._is(at, " ")

    def _before_space(self, at: NDArray[Any]) -> NDArray[Any]:
        return at - ((at > self.first) & self._is(at - 1, " "))

    def _power_before(self, at: NDArray[Any]) -> Ints:
        return np.where(at > self.first, _POWER[self.buffer[at - 1]], 0)

    def fine(self) -> Bools:
        """Which lines are one number, with commas in the right places only."""
        commas = np.flatnonzero(self.buffer == ord(","))
        at = np.searchsorted(self.ends, commas)
        many = np.bincount(at, minlength=self.ends.size)
        fine: Bools = (self.count > 0) & (self.count <= _MOST_DIGITS) & (self.dots <= 1)
        fine &= (self.stop - self.first == self.count + self.dots + many) & (
            self.bracket == self.closed
        )
        if commas.size:
            three = (
                self.digit[commas + 1]
                & self.digit[commas + 2]
                & self.digit[commas + 3]
                & ~self.digit[commas + 4]
            )
            fine[at[~(three & (commas < self.dot[at]))]] = False
            leading = self.count - self.decimals - 3 * many
            grouped = (leading >= 1) & (leading <= 3) & (self.buffer[self.first] != ord("0"))
            fine &= (many == 0) | grouped

        return fine

    def mantissa(self) -> Floats:
        """The digits of each line as one whole number."""
        value = self.buffer[self.digit].astype(np.int64) - ord("0")
        until = self.before[self.ends]
        following = np.repeat(until, np.diff(until, prepend=0)) - np.arange(1, value.size + 1)
        value *= _WEIGHTS[np.minimum(following, _MOST_DIGITS - 1)]
        # if it overflows, differences are still right
        total = np.zeros(value.size + 1, dtype=np.int64)
        np.cumsum(value, out=total[1:])
        return np.diff(total[until], prepend=0).astype(np.float64)


Values = Sequence[Any] | NDArray[Any]

NO_BOOLEAN = -1
SHORTEST = -(2**31)  # in `decimals`: given as a number, so its shortest spelling counts
_MANY = 8192  # texts read at once: their bytes and counts fit into the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Values as arrays of one length."""

    raw: Values  # as given
    number: Floats  # NaN: a boolean, or unreadable
    boolean: NDArray[np.int8]  # 1 yes, 0 no, NO_BOOLEAN
    # of ten, of the unit written with it and already applied: -2 for percent; 0: no unit
    power: NDArray[np.int8]
    # as written, before the unit: 1 for 10.5 million, -3 for 1e3; or SHORTEST
    decimals: NDArray[np.int32]

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
    """Each value as `parse_value` reads it.

    Raises ValueError for an array with more than one dimension.
    """
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"expected an array with one dimension, got {values.ndim}")
        if values.dtype.kind in "fiu":
            return _of_numbers(values)
        values = values.tolist()
    elif isinstance(values, str):
        raise ValueError("expected a sequence of values, got one text")
    elif type(values) is not list:
        values = list(values)

    types = set(map(type, values))
    if types <= {float, int}:
        try:
            return _of_numbers(np.array(values, dtype=np.float64), values)
        except OverflowError:  # an integer beyond float64 is unreadable: read one by one
            pass

    all_text = types == {str}
    columns = _blank(values, np.full(len(values), np.nan))
    texts = (
        range(len(values))
        if all_text
        else [at for at, x in enumerate(values) if isinstance(x, str)]
    )
    if all_text:
        others = []
    else:
        others = [at for at, x in enumerate(values) if not isinstance(x, str)]

    for first in range(0, len(texts), _MANY):
        at = texts[first : first + _MANY]
        _read_texts(columns, np.asarray(at), [values[row] for row in at])

    for row in others:
        value = parse_value(values[row])
        if value is None:
            continue
        columns.number[row] = value.number
        columns.boolean[row] = NO_BOOLEAN if value.boolean is None else value.boolean
        columns.decimals[row] = SHORTEST

    return columns


def _of_numbers(array: NDArray[Any], raw: Values | None = None) -> Columns:
    with np.errstate(over="ignore"):
        # not the caller's array: it is overwritten
        number = array.astype(np.float64, copy=raw is None)

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
    number = np.array([plain(texts[index]) for index in left])
    is_plain = ~np.isnan(number)
    where = at[left]
    columns.number[where[is_plain]] = number[is_plain]
    columns.decimals[where[is_plain]] = [
        _decimals(texts[left[index]]) for index in np.flatnonzero(is_plain).tolist()
    ]
    for index in np.flatnonzero(~is_plain).tolist():
        row = int(where[index])
        text = texts[left[index]]
        parts = spelled(text)
        if parts is None:
            columns.boolean[row] = BOOLEANS.get(" ".join(text.split()).lower(), NO_BOOLEAN)
        elif not math.isinf(parts.number):
            columns.number[row] = parts.number
            columns.power[row] = parts.power
            columns.decimals[row] = _decimals(parts.digits)


def _decimals(digits: str) -> int:
    mantissa, _, exponent = digits.strip().lower().partition("e")
    point = mantissa.find(".")
    if point >= 0:
        after = len(mantissa) - point - 1
    else:
        after = 0

    if not exponent:
        return after
    if len(exponent) > 9:  # only of a zero
        if exponent[0] == "-":
            return -SHORTEST - 1
        return 0

    return after - int(exponent)


Units = str | Sequence[str | None] | None

_MATCHES = tuple(field.name for field in fields(Matches))
_SIDES = np.array([None, "expected", "actual", "both"], dtype=object)
# pairs whose intermediate results fit into the cache: three times as fast as whole arrays
_AT_ONCE = 16384
_PERCENT = POWERS["percent"]


def match_many(
    expected: Values,
    actual: Values,
    *,
    declared_unit: Units = None,
    golden_unit: Units = None,
    printed: Values | None = None,
) -> dict[str, NDArray[Any]]:
    """One array per field of `Matches`, with the result of `match` for each pair.

    All are arrays of bool, except `unreadable`: objects, None or the side. `declared_unit` and
    `golden_unit` are one unit for all pairs or one per pair; `printed` is None where `expected` is
    as printed. Arrays of numbers are fastest. Raises ValueError if lengths differ or an array is
    not one-dimensional.

    >>> found = match_many([0.14136, 5, "yes"], ["14.1%", "N/A", True])
    >>> found["numerical"].tolist(), found["general"].tolist(), found["unreadable"].tolist()
    ([True, False, False], [True, False, True], [None, 'actual', None])
    """
    e = read(expected)
    a = read(actual)
    n = e.number.size
    forms = e
    if printed is not None:
        if len(printed) != n:
            raise ValueError(f"printed: must have the length of expected, {n}, got {len(printed)}")
        forms = read(
            [golden if form is None else form for golden, form in zip(e.raw, printed, strict=True)]
        )

    units = [
        unit if unit is None or isinstance(unit, str) else list(unit)
        for unit in (declared_unit, golden_unit)
    ]
    sizes = {
        n,
        a.number.size,
        forms.number.size,
        *(len(unit) for unit in units if isinstance(unit, list)),
    }
    if len(sizes) != 1:
        raise ValueError(
            f"expected, actual, units and printed: must have one length, got {sorted(sizes)}"
        )

    arrays = {
        name: np.empty(n, dtype=object if name == "unreadable" else np.bool_) for name in _MATCHES
    }
    with np.errstate(over="ignore", invalid="ignore"):  # NaN and overflows match nothing
        for first in range(0, n, _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            declared, stated = (unit[part] if isinstance(unit, list) else unit for unit in units)
            golden = e.part(part)
            if forms is e:
                printed_part = golden
            else:
                printed_part = forms.part(part)

            rows = _compare(golden, a.part(part), printed_part, units=declared, golden_units=stated)
            for name, array in arrays.items():
                array[part] = rows[name]

    return arrays


def _compare(
    e: Columns,
    a: Columns,
    forms: Columns,
    *,
    units: Units,
    golden_units: Units,
) -> dict[str, NDArray[Any]]:
    numerical = near(e.number, a.number)
    x = abs(e.number)
    y = abs(a.number)
    without_sign = near(x, y)
    same = (e.boolean != NO_BOOLEAN) & (e.boolean == a.boolean)
    right = numerical | same
    # Compared as text only if unreadable: otherwise the same text is the same value.
    alike = np.zeros(e.number.size, dtype=np.bool_)
    for row in np.flatnonzero(~(e.readable & a.readable)).tolist():
        alike[row] = same_text(e.raw[row], a.raw[row])

    percentage = np.zeros(e.number.size, dtype=np.bool_)
    e_percent = e.power == _PERCENT
    a_percent = a.power == _PERCENT
    at = np.flatnonzero(e_percent != a_percent)
    if at.size:
        percentage[at] = bare(
            e.number[at],
            a.number[at],
            e_percent=e_percent[at],
            a_percent=a_percent[at],
        )

    # Equal by Python's `round(…, 5)`, which rounds the exact binary value; called only if a tie is
    # too close
    exact = cast("Bools", e.number == a.number)
    at = np.flatnonzero((abs(a.number - e.number) < 1.1e-5) & ~exact)
    if at.size:
        wanted = e.number[at] * 1e5
        got = a.number[at] * 1e5
        exact[at] = np.rint(wanted) == np.rint(got)
        for row in at[_tied(wanted) | _tied(got)].tolist():
            exact[row] = round(float(e.number[row]), 5) == round(float(a.number[row]), 5)

    return {
        "numerical": numerical,
        "soft": close(e.number, a.number),
        "unit_agnostic": numerical | scaled(e.number, a.number),
        "sign_agnostic": without_sign,
        "general": right | percentage | alike,
        "exact": exact | same,
        "scale_and_sign": without_sign | scaled(x, y),
        "declared": same | _declared(e, a, forms, units, golden_units),
        "printed": _printed(forms, a) & e.readable,
        "right": right,
        "unreadable": _SIDES[(~e.readable).astype(np.intp) + 2 * ~a.readable],
    }


def _tied(x: Floats) -> Bools:
    return abs(abs(x - np.floor(x)) - 0.5) <= 1e-6 + 4e-16 * abs(x)


def _declared(e: Columns, a: Columns, forms: Columns, units: Units, golden_units: Units) -> Bools:
    own = a.power != 0
    stated, is_stated = _powers(units, a.number.size)
    power = np.where(own, a.power, stated)
    plain = np.where(own, _shifted(a.number, -a.power.astype(np.int64)), a.number)
    scaled_number = np.where(own, a.number, _shifted(a.number, power))
    golden_power, is_golden = _powers(golden_units, e.number.size)
    percent_printed = forms.power == _PERCENT  # then the golden number is a share
    is_golden &= (e.power == 0) & ~percent_printed
    as_it_stands = np.where(is_golden, ~(own | is_stated), ~(percent_printed & (power == _PERCENT)))
    declared = as_it_stands & near(e.number, plain)
    declared |= ~is_golden & near(e.number, scaled_number)
    declared |= is_golden & near(e.number, _shifted(plain, power - golden_power))

    # Clears the rows whose currency is another one than the golden one's
    golden = (e, forms)
    named = [
        golden_units,
        *(text for column in (*golden, a) for text in column.raw if isinstance(text, str)),
    ]
    if units is None or isinstance(units, str):
        named += [units]
    else:
        named += list(units)

    if _ANOTHER.search(" ".join(map(str, named)).casefold()):
        for row in np.flatnonzero(declared).tolist():
            texts = [str(column.raw[row]) for column in golden]
            unit, golden_unit = (
                x if x is None or isinstance(x, str) else x[row] for x in (units, golden_units)
            )
            declared[row] = not another_currency(
                [*texts, golden_unit or ""], [str(a.raw[row]), unit or ""]
            )

    return cast("Bools", declared)


def _powers(units: Units, size: int) -> tuple[Ints, Bools]:
    """The power of ten of each unit, 0 without one; and whether there is one."""
    listed = [units] * size if units is None or isinstance(units, str) else units
    known = {unit: unit_power(unit) for unit in set(listed)}
    if not any(power is not None for power in known.values()):
        return np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    powers = np.array([known[unit] or 0 for unit in listed], dtype=np.int64)
    return powers, np.array([known[unit] is not None for unit in listed], dtype=np.bool_)


def _shifted(number: Floats, power: Ints) -> Floats:
    return cast("Floats", number * _TENS[np.maximum(power, 0)] / _TENS[np.maximum(-power, 0)])


_ANOTHER = re.compile("[£€¥￥₹]|[b-z]{2}")  # no other currency than $ without one of these
_TENS = np.array([10.0**power for power in range(max(POWERS.values()) - min(POWERS.values()) + 1)])


def _printed(forms: Columns, a: Columns) -> Bools:
    """`prints_as`, called only where float64 cannot decide on which side of half a last decimal the
    answer is.
    """
    printed: Bools = (forms.number == a.number) | (
        (forms.boolean != NO_BOOLEAN) & (forms.boolean == a.boolean)
    )
    off = abs(a.number - forms.number)

    # The decimals of each printed form; and where they are still unknown: numbers (not texts)
    # close to the answer. A number is tried with more and more decimals, as long as the answer
    # may still round to it.
    decimals = forms.decimals.astype(np.int64)
    left = np.flatnonzero(forms.decimals == SHORTEST)
    for tried in range(_MOST_DECIMALS + 1):
        decimals[left] = tried
        left = left[off[left] * 10.0**tried <= 0.5 + 1e-6]
        shifted = forms.number[left] * 10.0**tried
        left = left[np.rint(shifted) / 10.0**tried != forms.number[left]]
        if not left.size:
            break

    open_ = np.zeros(off.size, dtype=np.bool_)
    open_[left] = True

    at = np.flatnonzero(~printed & np.isfinite(off) & ~open_)
    step = np.power(10.0, np.clip(decimals[at] - forms.power[at], -330, 330))
    halves = off[at] * step - 0.5
    unsure = (
        1e-6
        + 8 * np.finfo(np.float64).eps * np.maximum(abs(a.number[at]), abs(forms.number[at])) * step
    )
    printed[at[halves < -unsure]] = True
    for row in [*at[~(abs(halves) > unsure)].tolist(), *np.flatnonzero(open_).tolist()]:
        form = forms.raw[row]
        actual = a.raw[row]
        value = parse_value(actual)
        printed[row] = value is not None and prints_as(form, parse_value(form), value)

    return printed


_MOST_DECIMALS = 15
