"""The facts of one turn: the golden answer, the agent's answer, and the report that both use."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from karat_conversations.numeric.abstention import abstains
from karat_conversations.numeric.circuits import Circuit, circuit_of
from karat_conversations.numeric.document import Document
from karat_conversations.numeric.matches import near
from karat_conversations.numeric.programs import Readable
from karat_conversations.numeric.tables import Table
from karat_conversations.numeric.values import Value, decimals, parse_value, unit_power


class Reading(NamedTuple):
    """One way to read the agent's number, in the scale of the golden one."""

    # "answer": as written; "percent", "million", …: after applying the unit that the agent declared
    by: str
    number: float
    power: int = 0  # of ten, for the unit


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnFacts:
    """One turn. Derived values are computed once, so pass the same object to later turns as their
    history.

    `expected` and `actual` are numbers or text; `actual` is None if there was no answer. `unit` is
    the unit that the agent declared. `program` is the golden program, in any spelling, `stated` the
    agent's own, if it gave one. `executed` and `printed` are the two golden answers, if both are
    known. `document` is shared by the turns of a conversation.
    """

    expected: object
    actual: object
    unit: str | None = None
    program: Readable = None
    stated: Readable = None
    executed: object = None
    printed: object = None
    document: Document | None = None
    golden: Value | None = field(init=False, repr=False)
    """The golden answer as read."""
    answer: Value | None = field(init=False, repr=False)
    """The agent's answer as read."""

    def __post_init__(self) -> None:
        # Every turn needs both, and a `cached_property` would take longer than reading them.
        object.__setattr__(self, "golden", parse_value(self.expected))
        object.__setattr__(self, "answer", parse_value(self.actual))

    @property
    def golden_number(self) -> float | None:
        """The golden number; None for yes, no and unreadable text."""
        return _number(self.golden)

    @property
    def number(self) -> float | None:
        """The agent's number; None for yes, no and unreadable text."""
        return _number(self.answer)

    @cached_property
    def unanswered(self) -> bool:
        """Whether there is no answer, or only the reason for giving none.

        A 0, and yes or no for a number, is no answer if the agent's calculation is such a reason.
        """
        actual = self.actual
        if actual is None or (isinstance(actual, float) and math.isnan(actual)):
            return True
        if self.answer is None:
            return isinstance(actual, str) and abstains(actual)
        empty = self.number == 0 or (self.number is None and self.golden_number is not None)
        return empty and isinstance(self.stated, str) and abstains(self.stated)

    @cached_property
    def numerical(self) -> bool:
        """Whether the answer is numerically right."""
        golden = self.golden_number
        number = self.number
        return golden is not None and number is not None and bool(near(golden, number))

    @property
    def right(self) -> bool:
        """Whether the answer is right: numerical, or the same yes or no."""
        if self.numerical:
            return True
        golden = self.golden
        answer = self.answer
        return bool(
            golden and answer and golden.boolean is not None and golden.boolean is answer.boolean
        )

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """The agent's number unchanged, and in the unit that it declared."""
        if self.answer is None or self.number is None:
            return ()
        plain = Reading("answer", self.number)
        if isinstance(self.unit, str):
            power = unit_power(self.unit)
        else:
            power = None

        # the written unit is applied already
        if power is None or self.answer.percent or self.answer.unit is not None:
            return (plain,)
        if power > 0:
            number = self.number * 10.0**power
        else:
            number = self.number / 10.0**-power

        if math.isinf(number):
            return (plain,)
        return plain, Reading("percent" if power == _PERCENT else str(self.unit), number, power)

    @property
    def likely_readings(self) -> tuple[Reading, ...]:
        """The readings to search with: only the share, if a percentage was printed and percent was
        declared.
        """
        printed = parse_value(self.printed)
        percent = []
        for reading in self.readings:
            if reading.power == _PERCENT:
                percent.append(reading)

        if percent and printed is not None and printed.percent:
            return tuple(percent)
        return self.readings

    @cached_property
    def declared(self) -> bool:
        """Whether the answer is right in the unit that the agent declared."""
        golden = self.golden_number
        return golden is not None and any(near(golden, reading.number) for reading in self.readings)

    def given_by(self, value: Any, reading: Reading) -> Any:
        """Whether the value, a float or an array, equals the answer to the answer's digits.

        It may be off by half a unit of the last digit, or by 0.1 % if that is more, but never by
        more than 1 %: answers are rounded, and so are the numbers they are computed from.
        """
        digits = self._digits
        if digits is None:
            unit = 0.0
        else:
            unit = 10.0 ** max(-308, reading.power - digits)

        size = abs(value)
        off = abs(value - reading.number)
        return (off <= _LARGEST_SHARE * size) & (
            (off <= unit / 2 * _GUARD) | (off <= _SMALLEST_SHARE * size)
        )

    @cached_property
    def _digits(self) -> int | None:
        """Decimals of the answer.

        130 may have been rounded to tens, but here it is taken literally.
        """
        if self.answer is None:
            return None
        digits = decimals(self.answer)
        if digits is None or self.answer.unit:
            return digits
        return max(0, digits)

    @cached_property
    def circuit(self) -> Circuit | None:
        """The golden program, ready to recompute; None if there is none."""
        return circuit_of(self.program, self._table)

    @cached_property
    def own_circuit(self) -> Circuit | None:
        """The agent's own program, in the same form; None if it gave none that can be read."""
        return circuit_of(self.stated, self._table)

    @property
    def _table(self) -> Table | None:
        if self.document:
            return self.document.table
        return None


_PERCENT = -2
_GUARD = 1 + 1e-9
_LARGEST_SHARE = 0.01 * _GUARD
_SMALLEST_SHARE = 0.001 * _GUARD


def _number(value: Value | None) -> float | None:
    return value.number if value is not None and value.boolean is None else None
