"""Reasoning programs: reads what a turn computed, in any spelling, into a list of steps, and
executes it.

Nothing here raises for a model's output: a program that cannot be read has an `error`, and
executing a program that cannot be executed returns one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar

from karat_conversations.numeric.official import official_value
from karat_conversations.numeric.parsing import (
    MAX_TEXT,
    cut,
    read_json,
    read_plan,
    read_text,
    read_tokens,
)
from karat_conversations.numeric.tables import Table, one_cell, row_numbers
from karat_conversations.numeric.trees import (
    TABLE,
    Argument,
    ExecutionError,
    Program,
    Step,
)
from karat_conversations.numeric.values import read_literal, written

Readable = str | Sequence[object] | Mapping[str, object] | Program | int | float | None
History = Sequence[tuple[Readable, object]]
Number = float | bool
Result = Number | ExecutionError
Dialect = Literal["finqa", "convfinqa"]


def parse_program(source: Readable) -> Program:
    """The program, in any spelling: flat or nested text, a token list, or a JSON plan. Never
    raises.

    >>> flat = ["subtract(", "8181", "20454", ")", "divide(", "#0", "20454", ")", "EOF"]
    >>> parse_program("divide(subtract(8181, 20454), 20454)").steps == parse_program(flat).steps
    True
    >>> parse_program("add(1, 2").error
    ExecutionError(kind='malformed', message='a parenthesis is not closed')
    """
    if isinstance(source, Program):
        return source
    if isinstance(source, str):
        if source[:1] in {"{", "["}:
            return read_json(source)
        return read_text(source)

    if isinstance(source, Mapping):
        return read_plan(source)
    if isinstance(source, list | tuple):
        if source and isinstance(source[0], Mapping):
            return read_plan(source)
        return read_tokens(source)

    if digits := written(source):
        return read_text(digits)
    return Program(
        "",
        (),
        error=ExecutionError("malformed", "there is no program"),
        spelling="other",
    )


def raw(source: Readable) -> Program | Sequence[object]:
    """What the official scorers see: the given tokens, or those into which they would split the
    text.
    """
    if isinstance(source, list | tuple):
        return source
    if isinstance(source, str) and len(source) <= MAX_TEXT and source[:1] not in {"{", "["}:
        return cut(source)
    return parse_program(source)


def execute(
    program: Readable,
    table: Table | None = None,
    history: History = (),
    *,
    rounding: int | Literal["official"] | None = None,
    dialect: Dialect = "convfinqa",
) -> float | bool | str | ExecutionError:
    """The program's value, or why there is none.

    `table` provides rows, `history` (pairs of program and value, oldest first) what a plan takes
    from earlier turns. `rounding`: None, a number of decimals for the final value, or `"official"`
    for the exact result of the dialect's official scorer. `greater` gives a bool, or `"yes"` or
    `"no"` in the official mode.

    >>> execute("subtract(60.94, 25.14), divide(#0, 25.14)", rounding=5)
    1.42403
    >>> execute("divide(1, subtract(2, 2))")
    ExecutionError(kind='division_by_zero', message='divide by 0')
    """
    if rounding == "official":
        return official_value(raw(program), table, dialect)
    read = parse_program(program)
    if read.error is not None:
        return read.error
    if read.number is not None:
        value: Result = _value(read.number, [], table, history)
    else:
        values: list[Number] = []
        for step in read.steps:
            if step.operation in TABLE:
                value = _table_value(step, table)
            else:
                value = _arithmetic(step, values, table, history)

            if isinstance(value, ExecutionError):
                return value
            values.append(value)

    if isinstance(value, float) and isinstance(rounding, int):
        return round(value, rounding)
    return value


def _arithmetic(step: Step, values: list[Number], table: Table | None, history: History) -> Result:
    left, right = (_value(argument, values, table, history) for argument in step.arguments)
    if isinstance(left, ExecutionError):
        return left
    if isinstance(right, ExecutionError):
        return right
    if isinstance(left, bool) or isinstance(right, bool):
        return ExecutionError("not_a_number", f"{step.operation} needs numbers, got yes or no")
    try:
        value: float | bool | complex = COMPUTE[step.operation](left, right)
    except ZeroDivisionError:
        return ExecutionError("division_by_zero", f"{step.operation} by 0")
    except OverflowError:
        return ExecutionError("overflow", f"{step.operation} leaves the range of numbers")

    if isinstance(value, complex):
        return ExecutionError("domain", "a root of a negative number")
    if not math.isfinite(value):
        return ExecutionError("overflow", f"{step.operation} leaves the range of numbers")
    return value


COMPUTE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "exp": operator.pow,
    "greater": operator.gt,
}


def _value(
    argument: Argument,
    values: list[Number],
    table: Table | None,
    history: History,
) -> Result:
    if argument.value is not None:
        return argument.value
    if argument.column is not None:
        cell = one_cell(table, argument.text, argument.column)
        if isinstance(cell, ExecutionError):
            return cell
        return float(cell)

    if argument.index is None:
        return ExecutionError("not_a_number", f"{argument.text[:40]!r} is not a number")
    if argument.kind == "reference":
        return values[argument.index]

    if argument.index is None or not -len(history) <= argument.index < len(history):
        return ExecutionError("unknown_reference", f"{argument.text[:40]} is not an earlier turn")
    value = history[argument.index][1]
    if isinstance(value, str):
        literal = read_literal(value)
        value = value if literal is None else literal.number

    if isinstance(value, bool):
        return value
    digits = written(value)
    if digits and math.isfinite(float(digits)):
        return float(digits)
    return ExecutionError("not_a_number", f"the answer to {argument.text[:40]} is not a number")


def _table_value(step: Step, table: Table | None) -> float | ExecutionError:
    cells = row_numbers(table, step.arguments[0].text)
    if isinstance(cells, ExecutionError):
        return cells
    numbers = [float(cell) for cell in cells]
    if step.operation == "table_max":
        return max(numbers)
    if step.operation == "table_min":
        return min(numbers)
    try:
        total = math.fsum(numbers)
    except OverflowError:
        return ExecutionError("overflow", f"{step.operation} leaves the range of numbers")

    if step.operation == "table_sum":
        return total
    return total / len(numbers)


_MOST_KEPT: Final = 2_000  # characters of a program's text
_TEXTS: Final = 4_096
_Made = TypeVar("_Made")


def once_a_text(make: Callable[[Readable], _Made]) -> Callable[[Readable], _Made]:
    """What `make` makes of a program, made only once for texts of usual length."""
    kept = lru_cache(maxsize=_TEXTS)(make)

    def made(source: Readable) -> _Made:
        if isinstance(source, str) and len(source) <= _MOST_KEPT:
            return kept(source)
        return make(source)

    return made


read_program = once_a_text(parse_program)
"""Like `parse_program`, but texts of usual length are read only once."""
