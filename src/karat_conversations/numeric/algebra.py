"""Compares programs as rational functions of their literals, at one random point of a large prime
field.

A literal is a variable named after its absolute value, times its sign; the few constants (0, 1,
2, 1/2 and powers of ten) are plain numbers. Each variable gets a fixed element of the field, drawn
by a hash of its name. Two programs that are different functions agree there with a probability of
at most degree / 2**126 (Schwartz, 1980, J. ACM 27:701). Programs beyond `MAX_DEGREE` are compared
as written instead, so a false yes is rarer than 1e-18.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from karat_conversations.numeric.tables import Table, one_cell, row_numbers
from karat_conversations.numeric.trees import TABLE, Argument, ExecutionError, Program, Step
from karat_conversations.numeric.values import read_literal

PRIME: Final = 2**127 - 1
MAX_DEGREE: Final = 2**60
MAX_EXPONENT: Final = 64
_MAX_POWER_OF_TEN: Final = 9


class Rational(NamedTuple):
    """A rational function at the random point: `above / below`, and the largest degree either can
    have.
    """

    above: int
    below: int
    degree: int

    @property
    def value(self) -> int:
        """The function's value at the random point; `below` is not 0 there."""
        if self.below == 1:
            return self.above
        return self.above * pow(self.below, -1, PRIME) % PRIME

    def same(self, other: Rational) -> bool:
        """Whether both are the same function; a false yes is rarer than 1e-18."""
        return (self.above * other.below - other.above * self.below) % PRIME == 0

    def times(self, number: int) -> Rational:
        """The function times a number."""
        return Rational(self.above * number % PRIME, self.below, self.degree)


Key = tuple[object, ...]
"""What a step computes, as a hashable value: equal keys mean the same function."""


class Form(NamedTuple):
    """What a program computes: one function, both sides of a `greater`, or (if its degree is too
    high) its steps as written.
    """

    sides: tuple[Rational, ...]
    written: tuple[object, ...] = ()

    @property
    def key(self) -> Key:
        """The function as a hashable value."""
        if self.written:
            return self.written
        return tuple(side.value for side in self.sides)

    def same(self, other: Form, factor: int = 1) -> bool:
        """Whether this is `factor` times the other; factors apply only to single functions."""
        if self.written or other.written:
            return factor == 1 and self.written == other.written
        if len(self.sides) != len(other.sides) or (factor != 1 and len(self.sides) != 1):
            return False
        return all(
            mine.same(other.times(factor))
            for mine, other in zip(self.sides, other.sides, strict=True)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """The meaning of names outside the program: the table, the earlier turns, and which literals
    were their answers.
    """

    table: Table | None = None
    answers: Sequence[Form | None] = ()
    inlined: Mapping[str, Rational] = field(default_factory=dict)


def variable(name: str) -> int:
    """The field element of a name; never 0."""
    if len(name) <= _LONGEST_KEPT:
        return _variable(name)
    return _drawn(name)


def _drawn(name: str) -> int:
    digest = blake2b(
        name.encode("utf-8", "surrogatepass"), digest_size=24, person=b"karat-numeric/1"
    ).digest()
    return 1 + int.from_bytes(digest, "big") % (PRIME - 1)


_LONGEST_KEPT: Final = 200
_variable = lru_cache(maxsize=16_384)(_drawn)


@lru_cache(maxsize=16_384)
def named(exact: Decimal) -> tuple[str, int, Rational | None]:
    """A number's name (from its absolute value), its sign, and its value if it is a constant."""
    negative, digits, end = exact.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    text = written.rstrip("0")
    exponent = int(end) + len(written) - len(text)
    sign = -1 if negative else 1
    if not text:
        return "0", 1, Rational(0, 1, 0)
    name = f"{text}e{exponent}"
    if text == "1" and abs(exponent) <= _MAX_POWER_OF_TEN:
        return (
            name,
            sign,
            Rational(sign * 10 ** max(exponent, 0) % PRIME, 10 ** max(-exponent, 0), 0),
        )

    if name in {"2e0", "5e-1"}:
        return (
            name,
            sign,
            Rational(sign * (2 if exponent == 0 else 1) % PRIME, 1 if exponent == 0 else 2, 0),
        )

    return name, sign, None


def literal(exact: Decimal, setting: Setting) -> Rational:
    """A literal as a function."""
    name, sign, number = named(exact)
    if number is not None:
        return number
    if setting.inlined and name in setting.inlined:
        return setting.inlined[name].times(sign)
    return Rational(sign * variable(name) % PRIME, 1, 1)


def form_of(program: Program, setting: Setting) -> Form | None:
    """What the program computes; None if it does not parse, is ill-typed, or divides by an
    identical zero.
    """
    if program.error is not None:
        return None
    forms = step_forms(program.steps, setting)
    if forms is None:
        return None
    return whole_form(program, forms, setting)


def whole_form(program: Program, forms: Sequence[Form], setting: Setting) -> Form:
    """What the program computes. `forms`: what its steps compute."""
    if program.number is None:
        form = forms[-1]
    else:
        form = _argument(program.number, forms, setting)

    if any(side.degree > MAX_DEGREE for side in form.sides):
        return Form((), program.steps)
    return form


def step_forms(steps: Sequence[Step], setting: Setting) -> list[Form] | None:
    """What each step computes, in order; None if one divides by an identical zero."""
    forms: list[Form] = []
    for step in steps:
        if step.operation not in TABLE:
            form = _combine(step, forms, setting)
        else:
            form = _row(step, setting)
        if form is None:
            return None
        forms.append(form)

    return forms


def _combine(step: Step, forms: Sequence[Form], setting: Setting) -> Form | None:
    left, right = (_argument(argument, forms, setting) for argument in step.arguments)
    if len(left.sides) != 1 or len(right.sides) != 1:
        return None
    if step.operation == "greater":
        return Form((*left.sides, *right.sides))
    if step.operation == "exp":
        # The literal exponent if it is an integer of at most `MAX_EXPONENT`
        argument = step.arguments[1]
        if argument.kind == "number":
            number = read_literal(argument.text)
        else:
            number = None

        if (
            number is None
            or abs(number.exact) > MAX_EXPONENT
            or number.exact != number.exact.to_integral_value()
        ):
            exponent = None
        else:
            exponent = int(number.exact)
    else:
        exponent = None

    combined = combine(step.operation, left.sides[0], right.sides[0], exponent)
    if combined is None:
        return None
    return Form((combined,))


def combine(
    operation: str,
    left: Rational,
    right: Rational,
    exponent: int | None = None,
) -> Rational | None:
    """One operation on two functions; None if it divides by an identical zero."""
    a, b, m = left
    c, d, n = right
    if operation == "add":
        return Rational((a * d + c * b) % PRIME, b * d % PRIME, m + n)
    if operation == "subtract":
        return Rational((a * d - c * b) % PRIME, b * d % PRIME, m + n)
    if operation == "multiply":
        return Rational(a * c % PRIME, b * d % PRIME, m + n)
    if operation == "divide":
        if c:
            return Rational(a * d % PRIME, b * c % PRIME, m + n)
        return None

    return power(left, right, exponent)


def power(base: Rational, right: Rational, exponent: int | None) -> Rational | None:
    """The base multiplied out for an integer exponent; for any other, an unknown function of
    both.
    """
    above, below, degree = base
    if exponent is None:
        # The degree stays: unknown functions are the same if their arguments are.
        name = f"exp {base.value} {right.value}"
        return Rational(variable(name), 1, max(degree, right.degree))

    if exponent < 0:
        above, below = below, above
    if not below:
        return None
    exponent = abs(exponent)
    return Rational(pow(above, exponent, PRIME), pow(below, exponent, PRIME), degree * exponent)


def _argument(argument: Argument, forms: Sequence[Form], setting: Setting) -> Form:
    """The function of an argument; an unknown argument is a variable of its own."""
    if argument.kind == "reference" and argument.index is not None:
        return forms[argument.index]
    if argument.kind == "number":
        number = read_literal(argument.text)
        if number is not None:
            return Form((literal(number.exact, setting),))

    if argument.kind == "cell":
        cell = one_cell(setting.table, argument.text, argument.column or "")
        if not isinstance(cell, ExecutionError):
            return Form((literal(cell, setting),))

    if argument.kind == "history" and argument.index is not None:
        count = len(setting.answers)
        if -count <= argument.index < count:
            answer = setting.answers[argument.index]
            if answer is not None:
                return answer

    return Form(
        (
            Rational(
                variable(repr((argument.kind, argument.text, argument.column, argument.index))),
                1,
                1,
            ),
        )
    )


def _row(step: Step, setting: Setting) -> Form:
    """A table operation written out over the row's cells; a variable of its own if there is no such
    row.
    """
    label = step.arguments[0].text
    if setting.table is None or isinstance(
        cells := row_numbers(setting.table, label), ExecutionError
    ):
        return Form((Rational(variable(repr((step.operation, label))), 1, 1),))

    if step.operation == "table_max":
        return Form((literal(max(cells), setting),))
    if step.operation == "table_min":
        return Form((literal(min(cells), setting),))
    total = Rational(0, 1, 0)
    for cell in cells:
        total = combine("add", total, literal(cell, setting)) or total
    if step.operation == "table_average":
        total = combine("divide", total, literal(Decimal(len(cells)), setting)) or total
    return Form((total,))
