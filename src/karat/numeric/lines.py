"""Short numbers, thousands at a time: the common part of `parse_value`'s grammar, byte by byte in NumPy.

A line is `[sign or bracket][$][sign or bracket] digits and commas [. digits] [unit][)][unit]`,
with at most one space between any two, and up to 15 digits. Everything else is left to the
grammar itself. The numbers are the same: 15 digits and powers of ten up to 22 are exact in
float64, so their product or quotient is correctly rounded, as Python's `float` is.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from karat.numeric.values import POWERS, UNITS

__all__ = ["Numbers", "read_lines"]

_MOST_DIGITS = 15


class Numbers(NamedTuple):
    """What was read of each line; meaningless where it is not `fine`."""

    fine: NDArray[np.bool_]
    number: NDArray[np.float64]  # scale and sign applied
    power: NDArray[np.int64]  # of ten, of the unit; 0 without one
    decimals: NDArray[np.int64]  # behind the point


def read_lines(texts: list[str]) -> Numbers | None:
    """The numbers of some texts; None where one of them is more than a line."""
    joined = "\n".join([*texts, ""])
    if joined.count("\n") != len(texts):
        return None
    buffer = np.frombuffer(_with_units_as_bytes(joined.encode("ascii", "replace")) + b"\n\n\n\n", dtype=np.uint8)
    lines = _Lines(buffer)
    number = lines.mantissa()
    shift = lines.power - lines.decimals
    number *= _TENS[np.maximum(shift, 0)]
    number /= _TENS[np.minimum(np.maximum(-shift, 0), len(_TENS) - 1)]
    number[lines.minus] *= -1
    return Numbers(lines.fine(), number, lines.power, lines.decimals)


_TENS = np.array([10.0**power for power in range(23)])
_WEIGHTS = 10 ** np.arange(_MOST_DIGITS, dtype=np.int64)

# Each unit becomes one byte that nothing else has: so a unit can be told from the last byte of a line.
_CODES = {unit: bytes([at]) for at, unit in enumerate(POWERS, 1)}
_WORDS = [(word.encode(), _CODES[unit]) for word, unit in sorted(UNITS.items(), key=lambda item: -len(item[0]))]
_LOWER = bytes(ord("?") if at < 9 else at for at in range(256)).lower()
_POWER = np.zeros(256, dtype=np.int64)
_POWER[[code[0] for code in _CODES.values()]] = list(POWERS.values())


def _with_units_as_bytes(line: bytes) -> bytes:
    line = line.translate(_LOWER)
    words = _WORDS if re.search(rb"[a-z]", line) else [(b"%", _CODES["percent"])]
    for word, code in words:
        line = line.replace(word, code)
    return line


class _Lines:
    """Where the parts of a number stand in each line."""

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        self.buffer = buffer
        self.ends = np.flatnonzero(buffer[:-4] == ord("\n"))
        self.digit = (buffer - np.uint8(ord("0"))) < 10  # wraps around below "0"
        self.before = np.zeros(buffer.size + 1, dtype=np.int64)  # how many digits stand before each byte
        np.cumsum(self.digit, out=self.before[1:])
        self._read_front()
        self._read_back()
        self.count = self.before[self.stop] - self.before[self.first]
        dots = np.flatnonzero(buffer == ord("."))
        at = np.searchsorted(self.ends, dots)
        self.dots = np.bincount(at, minlength=self.ends.size)
        self.dot = self.stop.copy()
        self.dot[at] = dots
        self.decimals = self.before[self.stop] - self.before[self.dot]

    def _read_front(self) -> None:
        at = np.concatenate(([0], self.ends[:-1] + 1))
        self.minus = self._is(at, "-")
        self.bracket = self._is(at, "(")
        at = self._past_space(at + (self.minus | self.bracket))
        at = self._past_space(at + self._is(at, "$"))
        unsigned = ~(self.minus | self.bracket)
        sign, bracket = unsigned & self._is(at, "-"), unsigned & self._is(at, "(")
        self.bracket |= bracket
        self.minus |= sign | self.bracket
        self.first = self._past_space(at + (sign | bracket))

    def _read_back(self) -> None:
        outer = self._power_before(self.ends)
        stop = self._before_space(self.ends - (outer != 0))
        self.closed = (stop > self.first) & self._is(stop - 1, ")")
        stop = self._before_space(stop - self.closed)
        inner = np.where(self.closed & (outer == 0), self._power_before(stop), 0)
        self.stop = self._before_space(stop - (inner != 0))
        self.power = outer + inner

    def _is(self, at: NDArray[Any], byte: str) -> NDArray[np.bool_]:
        here: NDArray[np.bool_] = self.buffer[at] == ord(byte)
        return here

    def _past_space(self, at: NDArray[Any]) -> NDArray[Any]:
        return at + self._is(at, " ")

    def _before_space(self, at: NDArray[Any]) -> NDArray[Any]:
        return at - ((at > self.first) & self._is(at - 1, " "))

    def _power_before(self, at: NDArray[Any]) -> NDArray[np.int64]:
        return np.where(at > self.first, _POWER[self.buffer[at - 1]], 0)

    def fine(self) -> NDArray[np.bool_]:
        """Which lines are one number, with commas in the right places only."""
        commas = np.flatnonzero(self.buffer == ord(","))
        at = np.searchsorted(self.ends, commas)
        many = np.bincount(at, minlength=self.ends.size)
        fine: NDArray[np.bool_] = (self.count > 0) & (self.count <= _MOST_DIGITS) & (self.dots <= 1)
        fine &= (self.stop - self.first == self.count + self.dots + many) & (self.bracket == self.closed)
        if commas.size:
            three = self.digit[commas + 1] & self.digit[commas + 2] & self.digit[commas + 3] & ~self.digit[commas + 4]
            fine[at[~(three & (commas < self.dot[at]))]] = False
            leading = self.count - self.decimals - 3 * many
            grouped = (leading >= 1) & (leading <= 3) & (self.buffer[self.first] != ord("0"))
            fine &= (many == 0) | grouped
        return fine

    def mantissa(self) -> NDArray[np.float64]:
        """The digits of each line as one whole number."""
        value = self.buffer[self.digit].astype(np.int64) - ord("0")
        until = self.before[self.ends]
        following = np.repeat(until, np.diff(until, prepend=0)) - np.arange(1, value.size + 1)
        value *= _WEIGHTS[np.minimum(following, _MOST_DIGITS - 1)]
        total = np.zeros(value.size + 1, dtype=np.int64)  # where it overflows, differences still hold
        np.cumsum(value, out=total[1:])
        return np.diff(total[until], prepend=0).astype(np.float64)
