"""The reader of infix: `(2.3 - 2.1) / 2.1 * 100` becomes the steps that it means, by Python's precedence."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from karat.numeric.trees import Argument
from karat.numeric.values import CURRENCY

__all__ = ["Bracketed", "FormError", "read_formula"]


class Bracketed(NamedTuple):
    """A number alone in parentheses: grouping within a formula, unreadable elsewhere, where it may be a minus."""

    argument: Argument


class FormError(Exception):
    """What is wrong with the form of a program; never leaves its reader."""


_TOKEN = re.compile(
    rf"""\s*+(?:
      {CURRENCY}?\s?(?P<number>
        (?: (?:[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})++(?![0-9])|[0-9]++) (?:\.[0-9]*+)? | \.[0-9]++ )
        (?:[eE][-+]?[0-9]++)? (?:\s?(?:%|percent\b))? ) (?!\s?%)
    | (?P<constant>const_m?[0-9][0-9,]*+(?:\.[0-9]*+)?)
    | (?P<reference>\#\s?[0-9]{{1,6}})
    | (?P<operator>\*\*|[-+*/^%>\u00d7\u00f7\u00b7\u22c5\u2212\u2013]|(?:(?<=\s)|\A)[xX](?=\s|\Z))
    )\s*+""",
    re.VERBOSE,
)
_BINARY: Final = {
    "+": "add",
    **dict.fromkeys("-\u2212\u2013", "subtract"),
    **dict.fromkeys("*\u00d7\u00b7\u22c5xX", "multiply"),
    **dict.fromkeys("/\u00f7", "divide"),
    **dict.fromkeys(("^", "**"), "exp"),
    ">": "greater",
}
_RANK: Final = {"greater": 0, "add": 1, "subtract": 1, "multiply": 2, "divide": 2, "negate": 3, "exp": 4}
_HUNDRED: Final = Argument("const_100", "number", 100.0)
_MINUS_ONE: Final = Argument("const_m1", "number", -1.0)


def read_formula(
    parts: Sequence[str | Argument | Bracketed],
    argument_of: Callable[[str], Argument],
    add_step: Callable[[str, Sequence[Argument]], Argument],
) -> Argument | None:
    """The value of a formula, its operations handed to `add_step` in the order of their execution.

    `parts` are text, and the values of calls and parentheses between. Powers bind before a
    minus in front (-2^2 is -4) and from the right; a minus in front of a number is its
    sign, in front of anything else a multiplication by -1. None where the text holds
    anything but numbers and operators, or no operator; FormError where these are in no order.
    """
    tokens = _tokens(parts)
    if tokens is None or not any(isinstance(token, str) for token in tokens):
        return None
    return _Yard(add_step).read(tokens, argument_of)


class _Number(NamedTuple):
    text: str


def _tokens(parts: Sequence[str | Argument | Bracketed]) -> list[str | _Number | Argument | Bracketed] | None:
    """Operators as text, numbers as `_Number`; None where the text holds anything else."""
    tokens: list[str | _Number | Argument | Bracketed] = []
    for part in parts:
        if not isinstance(part, str):
            tokens.append(part)
            continue
        at = 0
        while at < len(part):
            match = _TOKEN.match(part, at)
            if match is None:
                return None
            number = match["number"] or match["constant"] or match["reference"]
            tokens.append(match["operator"] if number is None else _Number(number))
            at = match.end()
    return tokens


class _Yard:
    """Dijkstra's shunting yard: operands, and the operators that wait for their right side."""

    def __init__(self, add_step: Callable[[str, Sequence[Argument]], Argument]) -> None:
        self._add_step = add_step
        self._operands: list[Argument] = []
        self._waiting: list[str] = []

    def read(
        self, tokens: Sequence[str | _Number | Argument | Bracketed], argument_of: Callable[[str], Argument]
    ) -> Argument:
        """The value of the whole formula."""
        operand_next = True
        for each in tokens:
            if isinstance(each, str):
                if each == "%" and not operand_next:
                    self._percent()
                else:
                    self._operator(each, operand_next=operand_next)
                    operand_next = True
            elif operand_next:
                operand = argument_of(each.text) if isinstance(each, _Number) else each
                self._operands.append(operand.argument if isinstance(operand, Bracketed) else operand)
                operand_next = False
            else:
                raise FormError("two numbers without an operation")
        if operand_next:
            raise FormError("an operation lacks a number")
        self._apply_down_to(-1)
        return self._operands[0]

    def _operator(self, sign: str, *, operand_next: bool) -> None:
        operation = _BINARY.get(sign)
        if operand_next:
            if operation == "subtract":
                self._waiting.append("negate")
            elif operation != "add":
                raise FormError("an operation lacks a number")
            return
        if operation is None:
            raise FormError("an operation lacks a number")
        self._apply_down_to(_RANK[operation] + (operation == "exp"))
        self._waiting.append(operation)

    def _apply_down_to(self, rank: int) -> None:
        while self._waiting and _RANK[self._waiting[-1]] >= rank:
            operation = self._waiting.pop()
            right = self._operands.pop()
            if operation == "negate":
                self._operands.append(_negative(right) or self._add_step("multiply", (right, _MINUS_ONE)))
            else:
                self._operands.append(self._add_step(operation, (self._operands.pop(), right)))

    def _percent(self) -> None:
        """A hundredth of what a call or parentheses gave; a number has its own % already, `(12)%` may be a minus."""
        if self._operands[-1].kind != "reference":
            raise FormError("% follows no number")
        self._operands.append(self._add_step("divide", (self._operands.pop(), _HUNDRED)))


def _negative(argument: Argument) -> Argument | None:
    """The literal with the other sign, spelled so that it can be read again; None of anything but a literal."""
    if argument.kind != "number" or argument.value is None:
        return None
    text = argument.text
    if text.startswith("const_"):
        text = f"const_{text[7:]}" if text[6] == "m" else f"const_m{text[6:]}"
    else:
        text = text[1:] if text[0] == "-" else f"-{text}"
    return Argument(text, "number", -argument.value)
