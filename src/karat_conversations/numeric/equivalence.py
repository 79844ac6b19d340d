"""Whether two programs compute the same thing, not merely the same number."""

from __future__ import annotations

from decimal import Decimal

from karat_conversations.numeric.algebra import Form, Rational, Setting, form_of, literal, named
from karat_conversations.numeric.official import official_equivalent
from karat_conversations.numeric.programs import Dialect, History, Readable, parse_program, raw
from karat_conversations.numeric.tables import Table
from karat_conversations.numeric.values import read_literal, written

_DECIMALS = 5  # the rounding of a program's result in the data sets


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

    Commutation, algebra, nesting and the spelling of numbers make no difference; another operand
    does, even if the values agree. With `table`, operations on rows are written out over their
    cells; with `history` (pairs of program and answer, oldest first), a number that an earlier turn
    answered stands for that turn's program. `scale` ignores a factor of 100 or 1/100. A program
    with an error, or that divides by an identical zero, is equivalent to nothing, not even itself.
    `official` returns the verdict of the dialect's official scorer, with `a` as the golden program;
    other options then do not matter.

    >>> equivalent("subtract(118, 102), divide(#0, 102)", "subtract(divide(118, 102), 1)")
    True
    >>> equivalent("subtract(60.94, 25.14)", "35.8")
    False
    """
    if official:
        return official_equivalent(raw(a), raw(b), dialect)
    setting = setting_of(table, history)
    left = form_of(parse_program(a), setting)
    if left is None:
        right = None
    else:
        right = form_of(parse_program(b), setting)

    if left is None or right is None:
        return False
    if left.same(right):
        return True
    return scale and (left.same(right, 100) or right.same(left, 100))


def setting_of(table: Table | None, history: History) -> Setting:
    """The meaning of literals and rows after these turns; of two turns with the same answer, the
    later counts.

    Each earlier program is itself read in the context of those before it. Answers of bare numbers,
    and constants (1, 100 …), keep their value.
    """
    if not history:
        if table is None:
            return _NOWHERE
        return Setting(table=table)

    answers: list[Form | None] = []
    inlined: dict[str, Rational] = {}
    setting = Setting(table=table, answers=answers, inlined=inlined)
    for source, value in history:
        program = parse_program(source)
        form = form_of(program, setting)
        numbers: list[Decimal] = []  # the answer as given, and rounded as in the data sets
        if isinstance(value, str):
            number = read_literal(value)
            numbers += [] if number is None else [number.exact]
        elif (digits := written(value)) and abs(float(digits)) < 1e300:
            numbers.append(Decimal(digits))
            if not isinstance(value, int):
                numbers.append(Decimal(repr(round(float(digits), _DECIMALS))))

        if form is None and numbers:
            form = Form((literal(numbers[0], setting),))
        answers.append(form)
        if program.error is None and program.steps and form is not None and len(form.sides) == 1:
            for exact in numbers:
                name, sign, itself = named(exact)
                if itself is None:
                    inlined[name] = form.sides[0].times(sign)

    return setting


_NOWHERE = Setting()
