"""Whether two programs compute the same thing, for the same reason: not only the same number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from karat.numeric.algebra import Form, Rational, Setting, form_of, literal, named
from karat.numeric.official import official_equivalent
from karat.numeric.programs import Dialect, History, Readable, parse_program, raw
from karat.numeric.tables import Table
from karat.numeric.values import read_literal, written

__all__ = ["equivalent", "setting_of"]

_DECIMALS = 5  # to which the data sets round what a program's execution gives


def equivalent(
    a: Readable,
    b: Readable,
    *,
    history: History = (),
    table: Table | None = None,
    scale: bool = False,
    official: bool = False,
    dialect: Dialect = "convfinqa",
) -> bool:
    """Whether two programs are the same function of the numbers they take from the document.

    Commutation, algebra, nesting and the spelling of numbers make no difference; another
    operand does, also where the values agree. With `table`, operations on rows are written
    out in their cells; with `history` (pairs of program and answer, oldest first), a number
    that an earlier turn answered stands for that turn's program. `scale` forgives a factor
    100 or 1/100. A program that has an error, or divides by what is always zero, is
    equivalent to nothing, itself included. `official` answers what the official scorer of
    the dialect answers, with `a` the golden program; nothing but the dialect matters to it.

    >>> equivalent("subtract(118, 102), divide(#0, 102)", "subtract(divide(118, 102), 1)")
    True
    >>> equivalent("subtract(60.94, 25.14)", "35.8")
    False
    """
    if official:
        return official_equivalent(raw(a), raw(b), dialect)
    setting = setting_of(table, history)
    left = form_of(parse_program(a), setting)
    right = None if left is None else form_of(parse_program(b), setting)
    if left is None or right is None:
        return False
    if left.same(right):
        return True
    return scale and (left.same(right, 100) or right.same(left, 100))


def setting_of(table: Table | None, history: History) -> Setting:
    """What literals and rows mean after these turns; of two turns with one answer the later counts.

    The programs of the earlier turns are themselves read with what came before them. An
    answer that a bare number gave, and the numbers that mean themselves (1, 100 …), stay.
    """
    if not history:
        return _NOWHERE if table is None else Setting(table=table)
    answers: list[Form | None] = []
    inlined: dict[str, Rational] = {}
    setting = Setting(table=table, answers=answers, inlined=inlined)
    for source, value in history:
        program = parse_program(source)
        form = form_of(program, setting)
        numbers = _numbers(value)
        if form is None and numbers:
            form = Form((literal(numbers[0], setting),))
        answers.append(form)
        if program.error is None and program.steps and form is not None and len(form.sides) == 1:
            _inline(inlined, numbers, form.sides[0])
    return setting


_NOWHERE = Setting()


def _inline(inlined: dict[str, Rational], numbers: Sequence[Decimal], function: Rational) -> None:
    for number in numbers:
        name, sign, itself = named(number)
        if itself is None:
            inlined[name] = function.times(sign)


def _numbers(value: Any) -> list[Decimal]:
    """The answer as exact numbers: as it is, and rounded as the data sets round it."""
    if isinstance(value, str):
        found = read_literal(value)
        return [] if found is None else [found.exact]
    digits = written(value)
    if not digits or not abs(float(digits)) < 1e300:
        return []
    numbers = [Decimal(digits)]
    if not isinstance(value, int):
        numbers.append(Decimal(repr(round(float(value), _DECIMALS))))
    return numbers
