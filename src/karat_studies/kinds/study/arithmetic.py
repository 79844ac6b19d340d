"""Arithmetic of payoffs: numbers, + - * / ^ and parentheses, and nothing else of Python."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

_LONGEST = 10_000  # characters, of a formula with its values filled in

_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def compute(formula: str) -> float:
    """The value of a formula; NaN where it divides by zero or is too large.

    Raises ValueError, with what is wrong, for whatever is not arithmetic of numbers.

    >>> compute("10 - 4 * (1 + 2) ^ 2")
    -26.0
    >>> compute("1 / (2 - 2)")
    nan
    """
    if len(formula) > _LONGEST:
        raise ValueError("cannot be computed: it is too long")
    try:
        tree = ast.parse(formula.strip().replace("^", "**"), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            f"cannot be computed: {formula[:100]!r} (numbers, + - * / ^ and parentheses)"
        ) from None

    try:
        return _value(tree.body)
    except (ZeroDivisionError, OverflowError):
        return math.nan
    except RecursionError:
        raise ValueError("cannot be computed: it is nested too deeply") from None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            value = _OPERATIONS[type(operation)](_value(left), _value(right))
            return value if isinstance(value, float) else math.nan  # (-1) ^ 0.5 is complex
        case ast.Compare():
            raise ValueError("gives yes or no, and must give a number")
        case _:
            part = ast.unparse(node)[:100]
            raise ValueError(
                f"cannot be computed: {part!r} is not arithmetic (numbers, + - * / ^ and "
                f"parentheses)"
            )
