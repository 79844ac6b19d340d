"""The results of the official scorers of FinQA and ConvFinQA, step by step, even where they are
wrong.

Only for numbers that must be comparable with a leaderboard: these scorers accept `nan` as a number,
ignore a truncated step, and call an empty program valid.
`tests/karat_conversations/test_official.py` has an example of each of their rules.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from karat_conversations.numeric.algebra import MAX_DEGREE, Form, Rational, combine, variable
from karat_conversations.numeric.tables import Table
from karat_conversations.numeric.trees import ARITHMETIC, OPERATIONS, ExecutionError, Program

MAX_TOKENS = 4_000
MAX_CHARACTERS = 100_000
"""Programs beyond either limit are refused, unlike in the official scorers; real ones have dozens
of tokens.
"""

_MALFORMED = ExecutionError("malformed", "not in the form that the official scorer requires")


Value = float | complex | str
"""What a step gives: a number, or yes and no as text."""


class OfficialStep(NamedTuple):
    """A step as the official scorers split it: its whole text, and what they regard as its
    parts.
    """

    text: str
    operation: str
    first: str
    second: str


def official_tokens(program: Program | Sequence[object]) -> Sequence[str] | None:
    """The raw tokens except the last one, whatever it is; None if the scorers would fail on
    them.
    """
    if isinstance(program, Program):
        if program.spelling not in {"text", "tokens"}:
            return None
        program = program.tokens

    kept = program[:-1]
    if len(kept) > MAX_TOKENS or not {*map(type, kept)} <= {str}:
        return None
    words = cast("Sequence[str]", kept)
    return words if sum(map(len, words)) <= MAX_CHARACTERS else None


def well_formed(tokens: Sequence[str]) -> bool:
    """Whether an operation is at every fourth place from 0 and `)` at every fourth from 3."""
    return all(word.strip("(") in OPERATIONS for word in tokens[::4]) and all(
        word == ")" for word in tokens[3::4]
    )


def official_steps(tokens: Sequence[str]) -> list[OfficialStep | None]:
    """The closed steps; None for one that has no opening parenthesis, several, or fewer than two
    arguments.
    """
    steps: list[OfficialStep | None] = []
    for text in map(str.strip, "|".join(tokens).split(")")[:-1]):
        parts = text.split("(")
        if len(parts) == 2:
            arguments = parts[1].strip("|").strip().split("|")
        else:
            arguments = []

        if len(arguments) < 2:
            steps.append(None)
        else:
            steps.append(
                OfficialStep(
                    text,
                    parts[0].strip("|").strip(),
                    arguments[0].strip(),
                    arguments[1].strip(),
                )
            )

    return steps


def official_number(text: str) -> float | None:
    """The number as the official scorers read it: `nan`, `1_000` and `5%%` are numbers, `$5` is
    not.
    """
    text = text.replace(",", "")
    number = _float(text)
    if number is None and "%" in text:
        number = _float(text.replace("%", ""))
        if number is None:
            return None
        return number / 100.0

    if number is None and "const_" in text:
        text = text.replace("const_", "")
        return _float("-1" if text == "m1" else text)

    return number


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def official_value(
    program: Program | Sequence[object], table: Table | None, dialect: Literal["finqa", "convfinqa"]
) -> float | str | ExecutionError:
    """The value, rounded to 5 decimals; `"yes"` and `"no"`; `"n/a"` for a program without a closed
    step.
    """
    tokens = official_tokens(program)
    if tokens is None:
        return _MALFORMED
    if dialect == "convfinqa" and len(tokens) == 1:
        number = official_number(tokens[0])
        if number is None:
            return ExecutionError("not_a_number", "not a number")
        return round(number, 5)

    if not well_formed(tokens):
        return _MALFORMED
    run = _Run(table)
    for step in official_steps(tokens):
        if step is not None:
            fault = run.take(step)
        else:
            fault = _MALFORMED
        if fault is not None:
            return fault

    return run.answer()


class _Run:
    """One execution, with the state that the official scorers carry from step to step."""

    def __init__(self, table: Table | None) -> None:
        self._table = table
        self._rows: Mapping[object, Sequence[object]] | None = None
        self._numbers: dict[str, list[float] | None] = {}
        # the last row read; a table operation on `#k` uses it again
        self._row: list[float] | None = None
        self._results: dict[int, Value] = {}
        self._at = 0
        self._value: Value = "n/a"

    def answer(self) -> float | str | ExecutionError:
        """The last value, rounded."""
        if isinstance(self._value, str):
            known = self._value in {"yes", "no", "n/a"}
            if known:
                return self._value
            return ExecutionError("not_a_number", "text is not a number")

        if isinstance(self._value, complex):
            return ExecutionError("domain", "a root of a negative number")
        return float(round(self._value, 5))

    def take(self, step: OfficialStep) -> ExecutionError | None:
        """Executes one step; where the official scorers raise an exception, it returns an error."""
        _, operation, first, second = step
        fault = None
        if operation in ARITHMETIC:
            fault = self._compute(operation, self._argument(first), self._argument(second))
        elif "table" in operation:
            fault = self._read(operation, first)

        self._at += 1
        return fault

    def _compute(
        self, operation: str, left: Value | ExecutionError, right: Value | ExecutionError
    ) -> ExecutionError | None:
        for side in (left, right):
            if type(side) is ExecutionError:
                return side

        if type(left) is str and type(right) is str and len(left) + len(right) > MAX_CHARACTERS:
            return ExecutionError("overflow", "text grew without end")
        try:
            self._value = _COMPUTE[operation](left, right)
        except ZeroDivisionError:
            return ExecutionError("division_by_zero", f"{operation} by 0")
        except OverflowError:
            return ExecutionError("overflow", f"{operation} leaves the range of numbers")
        except TypeError:
            return ExecutionError("not_a_number", f"{operation} needs numbers")

        self._results[self._at] = self._value
        return None

    def _argument(self, text: str) -> Value | ExecutionError:
        if "#" in text:
            return self._reference(text)
        number = official_number(text)
        if number is None:
            return ExecutionError("not_a_number", f"{text[:40]!r} is not a number")
        return number

    def _reference(self, text: str) -> Value | ExecutionError:
        index = step_index(text)
        if index not in self._results:
            return ExecutionError("unknown_reference", f"{text[:40]!r} is not an earlier step")
        return self._results[index]

    def _read(self, operation: str, first: str) -> ExecutionError | None:
        if self._rows is None:
            self._rows = _rows(self._table)
        if self._rows is None:
            return ExecutionError("unknown_row", "there is no readable table")
        if "#" in first:
            error = self._reference(first)
            if isinstance(error, ExecutionError):
                return error
        elif first not in self._rows:
            return ExecutionError("unknown_row", f"no row is called {first[:40]!r}")
        else:
            if first not in self._numbers:
                numbers = []
                for cell in self._rows[first]:
                    text = cell if isinstance(cell, str) else ""
                    plain = text.replace("$", "").strip().split("(")[0].strip()
                    number = official_number(plain)
                    if number is not None:
                        numbers.append(number)

                whole = len(numbers) == len(self._rows[first])
                self._numbers[first] = numbers if whole else None
            self._row = self._numbers[first]

        if self._row is None:
            return ExecutionError("not_a_number", "a cell is not a number")
        row = self._row
        if not row and operation in {"table_max", "table_min", "table_average"}:
            return ExecutionError("not_a_number", "the row has no cell")
        total = 0.0
        for number in row:  # not `sum`, which compensates from Python 3.12 on
            total += number
        values = {
            "table_max": lambda: max(row),
            "table_min": lambda: min(row),
            "table_sum": lambda: total,
            "table_average": lambda: total / len(row),
        }
        if operation in values:
            self._value = values[operation]()
        self._results[self._at] = self._value
        return None


_COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "exp": operator.pow,
    "greater": lambda left, right: "yes" if left > right else "no",
}


def step_index(text: str) -> int | None:
    """The step that an argument with `#` refers to: `int` of the text without every `#`."""
    try:
        return int(text.replace("#", ""))
    except ValueError:
        return None


def _rows(table: Table | None) -> Mapping[object, Sequence[object]] | None:
    """Cells by label (the last duplicate wins); None if the scorers would fail on the table."""
    if table is None:
        return None
    if isinstance(table, Mapping):
        rows: dict[object, list[object]] = {}
        for column in table.values():
            if isinstance(column, Mapping):
                for label, cell in column.items():
                    rows.setdefault(label, []).append(cell if isinstance(cell, str) else str(cell))

        return rows

    if all(row for row in table):
        return {row[0]: row[1:] for row in table}
    return None


MAX_NESTING = 190
"""Calls within calls; the official scorers pass a formula to Python, which refuses 200 nested
parentheses.
"""


def official_equivalent(
    golden: Program | Sequence[object],
    predicted: Program | Sequence[object],
    dialect: Literal["finqa", "convfinqa"],
) -> bool:
    """Whether the prediction is right for the official scorer; if the scorer would fail, it is not.

    The prediction must be well formed, the golden program need not be. Arguments are symbols by
    their spelling; the symbol of a table operation is its whole step, including the `|` that
    precedes every step but the first.
    """
    wanted = official_tokens(golden)
    given = official_tokens(predicted)
    if wanted is None:
        return False
    if dialect == "convfinqa" and len(wanted) == 1:
        return given is not None and len(given) == 1 and given[0] == wanted[0]
    steps = official_steps(wanted)
    known = [step for step in steps if step is not None]
    if not known or len(known) != len(steps):
        return False
    symbols = {symbol for step in known for symbol in _symbols(step)}
    if given is None or not well_formed(given):
        return False
    answers = _backward(official_steps(given), symbols)
    if not answers:
        return False
    left = _Reading(known).last()
    right = _Reading(answers).last()
    return left is not None and right is not None and left.same(right)


def _symbols(step: OfficialStep) -> list[str]:
    if "table" in step.operation:
        return [step.text]
    return [argument for argument in (step.first, step.second) if "#" not in argument]


def _backward(steps: Sequence[OfficialStep | None], symbols: set[str]) -> list[OfficialStep] | None:
    """The steps, if each uses only these symbols and refers only to steps before it."""
    checked = []
    for at, step in enumerate(steps):
        if step is None or not symbols.issuperset(_symbols(step)):
            return None
        if "table" not in step.operation:
            for argument in (step.first, step.second):
                if "#" in argument:
                    index = step_index(argument.strip("#"))
                else:
                    index = -1

                if index is None or "#" in argument.strip("#") or index >= at:
                    return None

        checked.append(step)

    return checked


class _Reading:
    """The functions of one program's steps, each read when another needs it."""

    def __init__(self, steps: Sequence[OfficialStep]) -> None:
        self._steps = steps
        self._forms: dict[int, Form | None] = {}
        self._open: set[int] = set()
        # whether it divides by an identical zero: then only the same formula is equal
        self._undefined = False

    def last(self) -> Form | None:
        """The function of the last step."""
        at = len(self._steps) - 1
        form = self._form(at)
        high = any(
            side.degree > MAX_DEGREE
            for known in self._forms.values()
            if known
            for side in known.sides
        )
        if form is None or form == _UNDEFINED or not (high or self._undefined):
            return form
        return Form((), (self._formula(at, {}),))

    def _form(self, at: int) -> Form | None:
        if at in self._forms:
            return self._forms[at]
        if at in self._open or len(self._open) >= MAX_NESTING or not 0 <= at < len(self._steps):
            return None
        self._open.add(at)
        form = self._read(self._steps[at])
        self._open.remove(at)
        self._forms[at] = form
        return form

    def _read(self, step: OfficialStep) -> Form | None:
        if "table" in step.operation:
            return Form((_symbol(step.text),))
        left = self._argument(step.first)
        right = self._argument(step.second)
        if left is None or right is None or step.operation not in ARITHMETIC:
            return None
        if _UNDEFINED in {left, right} and step.operation != "greater":
            return _UNDEFINED
        if len(left.sides) != 1 or len(right.sides) != 1:
            return None
        if step.operation == "greater":
            return Form((*left.sides, *right.sides))
        if step.operation == "divide" and not left.sides[0].above and not right.sides[0].above:
            return _UNDEFINED
        combined = combine(step.operation, left.sides[0], right.sides[0])
        self._undefined = self._undefined or combined is None
        return Form((combined or _NOTHING,))

    def _argument(self, text: str) -> Form | None:
        if "#" not in text:
            return Form((_symbol(text),))
        index = step_index(text)
        if index is None:
            return None
        return self._form(index)

    def _formula(self, at: int, known: dict[int, int]) -> int:
        """A hash of the formula; its references have been read before, so there is no cycle."""
        if at not in known:
            step = self._steps[at]
            parts: list[object] = [step.text]
            if "table" not in step.operation:
                parts = [step.operation]
                for text in (step.first, step.second):
                    index = step_index(text) if "#" in text else None
                    if index is None:
                        parts.append(text)
                    else:
                        parts.append(self._formula(index, known))

            known[at] = hash(tuple(parts))

        return known[at]


_UNDEFINED = Form((), ("0/0",))  # which the official scorers find equal to itself
_NOTHING = Rational(1, 1, 0)


def _symbol(text: str) -> Rational:
    return Rational(variable("symbol " + text), 1, 1)
