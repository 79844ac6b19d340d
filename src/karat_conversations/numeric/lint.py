"""Contradictory golden answers: between their program, its result, the printed answer, and the
page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final, Literal, NamedTuple

from karat_conversations.numeric.programs import History, execute, parse_program
from karat_conversations.numeric.tables import Table, cell_number, cells_of
from karat_conversations.numeric.trees import ExecutionError, Program
from karat_conversations.numeric.values import parse_value, spelled

REASONS: Final[Mapping[str, str]] = {
    "program_fails": "the golden program cannot be read or executed",
    "program_disagrees": "the golden program does not give the executed answer",
    "printed_disagrees": (
        "the printed answer is not the executed one, at any scale, rounded or cut to its digits"
    ),
    "printed_sign": "the printed answer is the executed one with the other sign",
    "unreadable": "a golden answer is neither a number nor yes or no",
    "cell_sign": "a number of the program is in the table only with the other sign",
    "cell_scale": "a number of the program is in the table only without its decimal point",
    "operand_not_found": "a number of the program is nowhere in the document",
}
"""Slug → what it says about a turn."""

_MOST_SHOWN = 5  # operands of a turn that the evidence names
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_SMALL = (*_DIGITS, *_TEENS)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORD = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[- ]+({'|'.join(_SMALL[1:10])}))?|({'|'.join(_SMALL)}))\b"
)
_EXACT = Context(prec=800, traps=[InvalidOperation])
_ROUNDINGS = (ROUND_HALF_EVEN, ROUND_HALF_UP, ROUND_DOWN)  # people also cut digits off
_SCALES = (0, 2, -2, 3, -3, 6, -6, 9, -9)  # powers of ten: percent, thousand, million, billion
_UNITS = (3, 6, 9)  # powers of ten: a program says 1000000 for 1 million, or 212 for 212,000


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenTurn:
    """One question with its golden answers; None: not in the dataset."""

    question: str
    executed: float | str | None = None
    printed: str | None = None
    program: str | None = None


class Doubt(NamedTuple):
    """One reason to doubt a turn's golden answer."""

    reason: str  # a key of REASONS
    evidence: Mapping[str, object]  # its evidence: plain values


def doubts(
    turns: Sequence[GoldenTurn], *, text: str = "", table: Table | None = None
) -> list[list[Doubt]]:
    """Reasons to doubt the golden answers of a conversation: for each turn, none or some reasons.

    `text` is the document around the table. Operands that an earlier turn computed, or that a
    question names, are not searched for on the page.

    >>> [[doubt]] = doubts(
    ...     [GoldenTurn(question="Up by?", executed=2.0, printed="-2", program="subtract(5, 3)")],
    ...     text="It was 3, then 5.",
    ... )
    >>> doubt.reason
    'printed_sign'
    """
    page = _Page(text, table)
    history: list[tuple[Program | str, float | str | None]] = []
    excused: set[Decimal] = set()  # numbers that questions name or earlier turns computed
    by_turn = []
    for turn in turns:
        if turn.program is not None:
            program = parse_program(turn.program)
        else:
            program = None

        excused.update(_in_text(turn.question))
        of_turn: list[Doubt] = []
        wrong = {}
        for name, value in (("executed", turn.executed), ("printed", turn.printed)):
            if value is not None and parse_value(value) is None:
                wrong[name] = str(value)[:80]

        if wrong:
            of_turn.append(Doubt("unreadable", wrong))

        if turn.printed is not None and turn.executed is not None:
            verdict = agreement(turn.executed, turn.printed)
            if verdict in {"sign", "differs"}:
                reason = "printed_sign" if verdict == "sign" else "printed_disagrees"
                evidence = {"executed": turn.executed, "printed": turn.printed[:80]}
                of_turn.append(Doubt(reason, evidence))

        if program is not None:
            of_turn += [
                *_executed(turn, program, history, table),
                *_operands(program, excused, page),
            ]
            for answer in (turn.executed, turn.printed) if program.steps else ():
                result = None
                if answer is not None:
                    result = parse_value(answer)
                if result is not None and result.boolean is None:
                    number = abs(Decimal(repr(result.number)))
                    excused |= {number.normalize(_EXACT), number.scaleb(2).normalize(_EXACT)}

        history.append((program or "", turn.executed))
        by_turn.append(of_turn)

    return by_turn


def agreement(executed: object, printed: str) -> Literal["same", "sign", "differs"] | None:
    """How an executed answer and a printed one agree; None if either cannot be read.

    `same`: equal if the executed one is rounded, or cut, to the digits of the printed one, at its
    own scale or (with two digits or more) in percent, thousands, millions or billions. `sign`: the
    same except for the sign.

    >>> agreement(1.42403, "142.4%"), agreement(-0.09709, "10%"), agreement(18770.0, "1877")
    ('same', 'sign', 'differs')
    """
    value = parse_value(executed)
    other = parse_value(printed)
    if value is None or other is None:
        return None
    if value.boolean is not None or other.boolean is not None:
        return "same" if value.boolean is other.boolean else "differs"
    parts = spelled(printed)
    if parts is None:
        return None
    stated = Decimal(parts.digits)
    number = Decimal(repr(value.number)).scaleb(-parts.power, _EXACT)
    if _prints_as(number, stated):
        return "same"
    return "sign" if _prints_as(-number, stated) else "differs"


def _prints_as(number: Decimal, stated: Decimal) -> bool:
    scales = _SCALES if len(stated.normalize(_EXACT).as_tuple().digits) > 1 else _SCALES[:3]
    for power in scales:
        scaled = number.scaleb(power, _EXACT)
        for rounding in _ROUNDINGS:
            try:
                if scaled.quantize(stated, rounding=rounding, context=_EXACT) == stated:
                    return True
            except InvalidOperation:
                continue

    return False


def _executed(
    turn: GoldenTurn,
    program: Program,
    history: History,
    table: Table | None,
) -> Iterator[Doubt]:
    # a number or a bool: "yes" and "no" are the official mode's
    value = execute(program, table=table, history=history)
    if isinstance(value, ExecutionError):
        yield Doubt(
            "program_fails",
            {"program": program.text[:200], "error": value.kind, "message": value.message},
        )
        return

    if turn.executed is None:
        return
    stated = parse_value(turn.executed)
    if stated is None:
        return
    if isinstance(value, float) and stated.boolean is None:
        # Equal if rounded to five decimals in any way; a stated answer may have been rounded more
        # than once.
        right = abs(value - stated.number) <= 1e-5 * (1 + 1e-9) + 1e-9 * abs(stated.number)
    else:
        right = value is stated.boolean

    if not right:
        evidence = {"program": program.text[:200], "gives": value, "executed": turn.executed}
        yield Doubt("program_disagrees", evidence)


class _Cell(NamedTuple):
    row: str
    column: str
    value: Decimal


class _Page:
    """The numbers of a document: those of cells with their sign, those of the text without."""

    def __init__(self, text: str, table: Table | None) -> None:
        self.cells: dict[Decimal, _Cell] = {}
        self._plain: set[Decimal] = set(_in_text(text))
        for row, column, cell in cells_of(table):
            read = cell_number(cell)
            if read is None:
                self._plain |= set(_in_text(str(cell)))
                continue

            number = Decimal(str(read))
            of_percent = isinstance(cell, str) and "%" in cell
            for value in (number, number.scaleb(2)) if of_percent else (number,):
                self.cells.setdefault(value.normalize(_EXACT), _Cell(row, column, value))

        labels = set()
        for row, column, _ in cells_of(table):
            labels |= {row, column}

        for label in labels:
            self._plain |= set(_in_text(label))

    def has(self, forms: Sequence[Decimal]) -> bool:
        """Whether the page has a number in one of its forms, as is, written out, or counted in
        thousands, …
        """
        written = []
        for form in forms:
            for unit in _UNITS:
                if abs(form) >= 1000:
                    written.append(form.scaleb(-unit))

        counted = []
        for form in forms:
            for unit in _UNITS:
                if abs(form) >= 1:
                    counted.append(form.scaleb(unit))

        for form in [*forms, *written, *counted]:
            size = abs(form).normalize(_EXACT)
            if form.normalize(_EXACT) in self.cells or size in self._plain:
                return True

        return False

    def with_other_sign(self, forms: Sequence[Decimal]) -> _Cell | None:
        """The cell with the number of opposite sign."""
        return next(
            (self.cells[key] for form in forms if (key := (-form).normalize(_EXACT)) in self.cells),
            None,
        )

    def without_point(self, number: Decimal) -> _Cell | None:
        """The cell that has the digits after the point of `.455` as a whole number."""
        exponent = number.normalize(_EXACT).as_tuple().exponent
        if not 0 < abs(number) < 1 or not isinstance(exponent, int):
            return None
        for place in range(-exponent, -exponent + 3):  # .450 became 450, and its float is .45
            for sign in (1, -1):
                key = (sign * number.scaleb(place)).normalize(_EXACT)
                if key in self.cells:
                    return self.cells[key]

        return None


def _operands(program: Program, excused: Set[Decimal], page: _Page) -> Iterator[Doubt]:
    by_reason: dict[str, dict[str, dict[str, object]]] = {}
    of_steps = (argument for step in program.steps for argument in step.arguments)
    for argument in (program.number, *of_steps):
        if argument is None or argument.kind != "number":
            continue
        if argument.text.strip().startswith("const"):
            continue  # it need not have come from the page
        # The number, and, if written in percent, its percentage.
        number = Decimal(repr(argument.value))
        if "%" in argument.text:
            forms = [number, number.scaleb(2)]
        else:
            forms = [number]

        if page.has(forms) or not excused.isdisjoint(abs(form).normalize(_EXACT) for form in forms):
            continue
        reason = "operand_not_found"
        evidence = dict[str, object](operand=argument.text[:40])
        for name, cell in (
            ("cell_sign", page.with_other_sign(forms)),
            ("cell_scale", page.without_point(forms[0])),
        ):
            if cell is not None:
                reason = name
                evidence = evidence | cell._asdict() | {"value": float(cell.value)}
                break

        by_reason.setdefault(reason, {})[argument.text] = evidence

    yield from (
        Doubt(reason, {"operands": list(of_it.values())[:_MOST_SHOWN]})
        for reason, of_it in by_reason.items()
    )


_NUMBER = re.compile(r"(?<![\w.])(?:[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)(\s?%)?", re.ASCII)


def _in_text(text: str) -> Iterator[Decimal]:
    """The numbers of a text without signs, in figures or in words; a percentage also as a share."""
    for match in _NUMBER.finditer(text):
        digits = match[0].rstrip("% \n\t").replace(",", "")
        if len(digits) <= 30:
            number = Decimal(digits)
            yield number.normalize(_EXACT)
            if match[1]:
                yield number.scaleb(-2).normalize(_EXACT)

    for tens, unit, small in _WORD.findall(text.lower()):
        if tens:
            value = 10 * _TENS.index(tens) + 20
        else:
            value = _SMALL.index(small)

        yield Decimal(value + (_SMALL.index(unit) if unit else 0)).normalize(_EXACT)
