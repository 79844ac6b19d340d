"""Reads programs: text (flat, nested or infix), token lists, and JSON plans.

A plan has steps that take a value from the document, and steps that compute: `{"steps": [{"tool":
"extract_value", "table_params": {…}}, {"tool": "compute", "operation": "subtract", "operands":
[{"type": "reference", "step_ref": 1}, {"type": "literal", "value": 5}]}]}`. References use a step's
`step_id` (by default its one-based place), and negative
ones for earlier turns: -1 and `prev_0` are the latest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final, NamedTuple

from karat_conversations.numeric.spellings import plain_program
from karat_conversations.numeric.trees import (
    OPERATIONS,
    TABLE,
    Argument,
    ExecutionError,
    Program,
    Step,
    fault_of,
)
from karat_conversations.numeric.values import CURRENCY, read_literal, written


class Bracketed(NamedTuple):
    """A number alone in parentheses: grouping inside a formula, unreadable elsewhere, because it
    may mean a minus.
    """

    argument: Argument


Part = str | Argument | Bracketed
"""Text, or the value of a call or of parentheses in it."""

_Parts = list[Part]
AddStep = Callable[[str, Sequence[Argument]], Argument]
"""Adds a step, and returns a reference to it."""


class FormError(Exception):
    """A fault in the form of a program; always caught by its reader."""


_TOKEN = re.compile(
    rf"""\s*+(?:
      {CURRENCY}?\s?(?P<number>
        (?: (?:[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})++(?![0-9])|[0-9]++) (?:\.[0-9]*+)? | \.[0-9]++ )
        (?:[eE][-+]?[0-9]++)? (?:\s?(?:%|percent\b))? ) (?!\s?%)
    | (?P<constant>(?i:const_m?)[0-9][0-9,]*+(?:\.[0-9]*+)?)
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
_RANK: Final = {
    "greater": 0,
    "add": 1,
    "subtract": 1,
    "multiply": 2,
    "divide": 2,
    "negate": 3,
    "exp": 4,
}
_HUNDRED: Final = Argument("const_100", "number", 100.0)
_MINUS_ONE: Final = Argument("const_m1", "number", -1.0)


def read_formula(
    parts: Sequence[Part],
    argument_of: Callable[[str], Argument],
    add_step: AddStep,
) -> Argument | None:
    """The value of a formula; its operations are passed to `add_step` in execution order.

    `parts` are texts, with the values of calls and parentheses in between. Powers bind tighter than
    a unary minus (-2^2 is -4) and from the right; a minus before a number is its sign, before
    anything else a multiplication by -1. None if the text holds anything but numbers and operators,
    or no operator; raises FormError if these are in a wrong order.
    """
    # Operators as text, numbers as `_Number`
    tokens: list[_Number | Part] = []
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
            if number is None:
                tokens.append(match["operator"])
            else:
                tokens.append(_Number(number))

            at = match.end()

    if not any(isinstance(token, str) for token in tokens):
        return None
    return _Yard(add_step).read(tokens, argument_of)


class _Number(NamedTuple):
    text: str


class _Yard:
    """Dijkstra's shunting yard: operands, and operators waiting for their right side."""

    def __init__(self, add_step: AddStep) -> None:
        self._add_step = add_step
        self._operands: list[Argument] = []
        self._waiting: list[str] = []

    def read(
        self, tokens: Sequence[_Number | Part], argument_of: Callable[[str], Argument]
    ) -> Argument:
        """The value of the whole formula."""
        operand_next = True
        for item in tokens:
            if isinstance(item, str):
                if item == "%" and not operand_next:
                    # A hundredth of a call's or parentheses' value; a number has its own %, and
                    # `(12)%` may mean a minus
                    if self._operands[-1].kind != "reference":
                        raise FormError("% without a number before it")
                    self._operands.append(
                        self._add_step("divide", (self._operands.pop(), _HUNDRED))
                    )
                    continue

                operation = _BINARY.get(item)
                if operand_next and operation == "subtract":
                    self._waiting.append("negate")
                elif operation is None or (operand_next and operation != "add"):
                    raise FormError("an operation lacks a number")
                elif not operand_next:
                    self._apply_down_to(_RANK[operation] + (operation == "exp"))
                    self._waiting.append(operation)

                operand_next = True
            elif operand_next:
                operand = argument_of(item.text) if isinstance(item, _Number) else item
                self._operands.append(
                    operand.argument if isinstance(operand, Bracketed) else operand
                )
                operand_next = False
            else:
                raise FormError("two numbers without an operation")

        if operand_next:
            raise FormError("an operation lacks a number")
        self._apply_down_to(-1)
        return self._operands[0]

    def _apply_down_to(self, rank: int) -> None:
        while self._waiting and _RANK[self._waiting[-1]] >= rank:
            operation = self._waiting.pop()
            right = self._operands.pop()
            if operation != "negate":
                self._operands.append(self._add_step(operation, (self._operands.pop(), right)))
            elif right.kind != "number" or right.value is None:
                self._operands.append(self._add_step("multiply", (right, _MINUS_ONE)))
            else:
                # The literal with the other sign, spelled so that it can be read again
                if right.text.startswith("const_"):
                    start, minus = ("const_", "m")
                else:
                    start, minus = ("", "-")
                digits = right.text.removeprefix(start + minus)
                if digits == right.text:
                    digits = minus + digits.removeprefix(start)
                self._operands.append(Argument(start + digits, "number", -right.value))


MAX_TEXT = 10_000
"""The longest program to read, in characters."""
MAX_STEPS = 200
MAX_DEPTH = 50
_MOST_COMMAS = 50  # in one call

_OFFICIAL_TOKEN = re.compile(r"[^()]*\(|\)|[^()]+")
_PARENTHESIS = re.compile(r"[()]")
_NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]*\s*\Z")
_CALL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\s*\(")
_FLAT_CALL = re.compile(r"([a-z]+)\(([^(),\s]+), ([^(),\s]+)\)")
_FLAT = re.compile(rf"{_FLAT_CALL.pattern}(?:, {_FLAT_CALL.pattern})*+")
_COMMA = re.compile(
    r"""(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])(?!,[0-9])  # a number and its commas
    | (?P<comma>[,;])""",
    re.VERBOSE,
)
_GROUPED = re.compile(r"(?<![0-9.])[1-9][0-9]{0,2},[0-9]{3}(?![0-9])")
_REFERENCE = re.compile(r"#\s?([0-9]{1,6})")
_NOTHING = ",; \t\r\n"
_UNIT = "percent|thousand|million|billion|trillion"
_EQUALS = r"(?:=+|[\u2248\u2245\u2243])\s*+"
_RESULT = re.compile(
    rf"""
    (?: {_EQUALS}
        (?:[-+*/\u00d7\u00f7^%().$\d\s\u2212\u2013]|,(?=\d)|{_UNIT})*+
        (?=[=\u2248\u2245\u2243]) )*+
    {_EQUALS} [-\u2212\u2013]?+ \s? \(?+ [-\u2212\u2013]?+ \s? {CURRENCY}?+ \s?
    (?: [0-9][0-9,]*+(?:\.[0-9]*+)? | \.[0-9]++ )
    (?: \s?(?:%|{_UNIT})(?![a-z]) )?+ \s? \)?+ \s?%?+
    (?=\s*+(?:[,;]|EOF|[a-z_]+\s?\(|\Z))""",
    re.VERBOSE | re.IGNORECASE,
)
"""What a program is said to give: `= 880`, `= 0.1138 \u2248 11.4%`, `= $ 25 / 428 * 100 =
5.84 %`.
"""
_EOF = re.compile(r"(?<![^\s,])EOF(?![^\s,])")


def cut(text: str) -> tuple[str, ...]:
    """The tokens into which the official scorers split the text: at `', '`, after `(`, around `)`;
    then `EOF`.
    """
    return (
        *(token for piece in text.split(", ") for token in _OFFICIAL_TOKEN.findall(piece)),
        "EOF",
    )


def read_text(text: str) -> Program:
    """The program in a text."""
    if len(text) > MAX_TEXT:
        fault = ExecutionError("malformed", f"longer than {MAX_TEXT} characters")
        return Program(text, (), error=fault, spelling="other")

    if _FLAT.fullmatch(text) and (program := _Reader().flat(text)) is not None:
        return program
    pieces = [_without_results(plain_program(text))]
    return _Reader().program(pieces, text, cut(text), "text")


def _without_results(text: str) -> str:
    """The text without an `=` at its beginning, and without the results of its steps, outside of
    parentheses.
    """
    text = text.lstrip("= \t\r\n")

    def kept(match: re.Match[str]) -> str:
        inside = text.count("(", 0, match.start()) > text.count(")", 0, match.start())
        if inside:
            return match[0]
        return " "

    return _RESULT.sub(kept, text)


def read_tokens(tokens: Sequence[object]) -> Program:
    """The program in a list of tokens; numbers among them are read as text."""
    spelling = "tokens" if all(type(token) is str for token in tokens) else "other"
    if (
        len(tokens) > MAX_TEXT
        or sum(len(token) for token in tokens if isinstance(token, str)) > MAX_TEXT
    ):
        fault = ExecutionError("malformed", f"longer than {MAX_TEXT} characters")
        return Program("", tuple(map(_shown, tokens[:MAX_TEXT])), error=fault, spelling="other")

    words = tuple(map(_shown, tokens))
    text = ", ".join(words).replace("(, ", "(").replace(", )", ")")
    if "(" in words:  # parentheses and commas are tokens of their own
        pieces = [" ".join(words).removesuffix("EOF")]
        return _Reader().program(pieces, text, words, spelling)
    return _Reader().program(words, text.removesuffix(", EOF"), words, spelling)


class _Frame:
    """An open parenthesis: the operation before it (None: grouping), and what was read inside so
    far.
    """

    __slots__ = ("operation", "parts")

    def __init__(self, operation: str | None) -> None:
        self.operation = operation
        self.parts: _Parts = []


class _Reader:
    """Reads piece by piece.

    A fault in the form ends the reading; of other faults, the first one counts.
    """

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._error: ExecutionError | None = None
        self._open: list[_Frame] = []
        self._item: _Parts = []  # read outside parentheses since the last comma
        self._first = 0  # the first step of that item
        # the last step of each item with steps, in the order that `#k` counts
        self._numbered: list[int] = []
        self._bare: list[Argument] = []  # items without a step
        self._ended = False  # by EOF
        self._any_case = False  # whether operations may be written in capitals

    def program(
        self,
        pieces: Sequence[str],
        text: str,
        tokens: tuple[str, ...],
        spelling: str,
    ) -> Program:
        """The program in some pieces: one text, or the tokens of a list."""
        number = None
        self._any_case = spelling == "text"  # tokens are those of the official programs
        try:
            for piece in pieces:
                # Reads one token of a list, which ends what was read before it; or the whole
                # text.
                stripped = piece.strip()
                if stripped != ")":
                    self._separate(stripped)
                if self._open:
                    inside = self._open[-1]
                else:
                    inside = None

                if (
                    inside
                    and inside.operation in TABLE
                    and stripped != ")"
                    and not _CALL.fullmatch(stripped)
                ):
                    inside.parts.append(self._row(stripped))
                else:
                    self._read(piece)

            # The bare number, if that is the whole program; None if there are steps
            if self._open:
                raise FormError("a parenthesis is not closed")
            self._end_item()
            if self._steps and self._bare:
                raise FormError("a number is mixed with the steps")
            if not self._steps and not self._bare:
                raise FormError("there is no step and no number")
            if self._steps:
                number = None
            else:
                self._error = fault_of("add", self._bare, [])
                number = self._bare[0]
        except FormError as error:
            self._error = ExecutionError("malformed", str(error))

        return Program(
            text=text,
            tokens=tokens,
            steps=tuple(self._steps),
            number=number,
            error=self._error,
            operations=tuple(step.operation for step in self._steps),
            spelling=spelling,  # type: ignore[arg-type]  # one of the four, by the callers above
        )

    def flat(self, text: str) -> Program | None:
        """A program of calls without brackets inside, like nearly all golden ones; None if
        `program` has to read it.
        """
        for operation, left, right in _FLAT_CALL.findall(text):
            arguments = self._argument(left), self._argument(right)
            unclear = (
                operation not in OPERATIONS or operation in TABLE or len(self._steps) == MAX_STEPS
            )
            if unclear or any(argument.kind == "name" for argument in arguments):
                return None
            self._add_step(operation, arguments)
            self._numbered.append(len(self._steps) - 1)

        steps = tuple(self._steps)
        operations = tuple([step.operation for step in steps])
        return Program(text, cut(text), steps, None, self._error, operations, "text")

    def _separate(self, word: str) -> None:
        if not self._open:
            self._end_item()
            return

        parts = self._open[-1].parts
        if parts:
            last = parts[-1]
        else:
            last = ","

        if not (word.startswith(",") or (isinstance(last, str) and last.rstrip().endswith(","))):
            parts.append(", ")

    def _read(self, text: str) -> None:
        at = 0
        while parenthesis := _PARENTHESIS.search(text, at):
            piece = text[at : parenthesis.start()]
            at = parenthesis.end()
            if parenthesis[0] == ")":
                self._text(piece)
                if not self._open:
                    raise FormError("a closing parenthesis without an opening one")
                frame = self._open.pop()
                parts = _joined(frame.parts)
                if frame.operation is None:
                    if not _is_one(parts):
                        raise FormError("a comma in parentheses without an operation")
                    before = len(self._steps)
                    value = self._value(parts)
                    plain = len(self._steps) == before and isinstance(parts[0], str)
                    if plain and isinstance(value, Argument):
                        value = Bracketed(value)
                else:
                    value = self._call(frame.operation, parts)

                (self._open[-1].parts if self._open else self._item).append(value)
                continue

            name = _NAME.search(piece)
            if name:
                operation = name[0].rstrip()
            else:
                operation = None

            if operation is not None and self._any_case:
                operation = operation.lower()
            if name is None or operation in {"x", "X"}:  # a multiplication sign before grouping
                self._text(piece)
                self._begin(None)
            else:
                self._text(piece[: name.start()])
                self._begin(operation)
                if operation in TABLE and text[at:].strip():
                    at = self._read_row(text, at)

        self._text(text[at:])

    def _text(self, text: str) -> None:
        if self._open:
            if text:
                self._open[-1].parts.append(text)
            return

        if not text:
            return
        if text == ", ":
            self._end_item()
            return

        if "EOF" in text:
            before, *after = _EOF.split(text)
        else:
            before, *after = [text]

        if any(piece.strip(_NOTHING) for piece in ([before, *after] if self._ended else after)):
            raise FormError("something follows EOF")
        at = 0
        for comma in _COMMA.finditer(before) if "," in before or ";" in before else ():
            if comma["comma"]:
                self._item.append(before[at : comma.start()])
                self._end_item()
                at = comma.end()

        if before[at:].strip():
            self._item.append(before[at:])
        self._ended = self._ended or bool(after)

    def _end_item(self) -> None:
        """Ends the item since the last comma outside parentheses: one step, several, or a bare
        number.
        """
        if not self._item:
            return
        parts = _joined(self._item)
        self._item = []
        if not parts:
            return
        value = _unbracketed(self._value(parts))
        if len(self._steps) > self._first:
            self._first = len(self._steps)
            self._numbered.append(self._first - 1)
            return

        self._bare.append(value)
        if len(self._bare) > 1:
            raise FormError("two numbers without an operation")

    def _begin(self, operation: str | None) -> None:
        if self._ended:
            raise FormError("something follows EOF")
        operation = _ALIASES.get(operation or "", operation)
        if operation is not None and operation not in OPERATIONS | COMPOSITE:
            raise FormError(f"{operation[:40]!r} is not an operation")
        if len(self._open) == MAX_DEPTH:
            raise FormError(f"deeper than {MAX_DEPTH} parentheses")
        if not self._open and operation is not None and self._item:
            before = _joined(self._item)
            if before and isinstance(before[-1], Argument):
                self._end_item()  # steps need no comma between them

        self._open.append(_Frame(operation))

    def _read_row(self, text: str, at: int) -> int:
        """Reads the arguments of a table operation in text: a row's name may have commas and paired
        parentheses.
        """
        depth, end = 1, at
        while end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if depth == 0:
                break
            end += 1

        name, comma, second = text[at:end].rpartition(",")
        if comma:
            self._open[-1].parts += [self._row(name.strip()), comma]
        self._open[-1].parts.append(self._row(second.strip()))
        return end

    def _call(self, operation: str, parts: _Parts) -> Argument:
        if operation in ("sum", "average"):
            # The terms of a sum, which may be many: cut at commas with a space behind them, if
            # there are such commas.
            text = "".join(part for part in parts if isinstance(part, str))
            comma = ", " if ", " in text else ","
            if comma == "," and text.count(",") > 1 and _GROUPED.search(text):
                raise FormError(
                    "the terms of a sum can be read in several ways: put a space behind each comma"
                )

            terms: list[_Parts] = [[]]
            for part in parts:
                if not isinstance(part, str):
                    terms[-1].append(part)
                    continue
                first, *others = part.split(comma)
                terms[-1].append(first)
                terms += [[term] for term in others]

            sides = [_joined(term) for term in terms]
        else:
            if operation in TABLE and len(parts) == 1:
                sides = [parts]
            else:
                sides = _sides(operation, parts)

        arguments = [_unbracketed(self._value(side)) for side in sides]
        if operation in COMPOSITE:
            return written_out(operation, arguments, partial(self._add_step, name=operation))
        return self._add_step(operation, arguments)

    def _value(self, parts: _Parts) -> Argument | Bracketed:
        """The value of an argument, an item or the inside of parentheses, which may be a
        formula.
        """
        if not parts:
            raise FormError("an argument is missing")
        word = None
        if len(parts) == 1:
            if not isinstance(parts[0], str):
                return parts[0]
            word = self._argument(parts[0].strip())
            if word.kind != "name":
                return word

        value = read_formula(parts, self._argument, self._add_step) or word
        if value is None:
            raise FormError("neither a call nor a formula")
        return value

    def _add_step(
        self, operation: str, arguments: Sequence[Argument], name: str | None = None
    ) -> Argument:
        if len(self._steps) == MAX_STEPS:
            raise FormError(f"longer than {MAX_STEPS} steps")
        self._error = self._error or fault_of(operation, arguments, self._steps)
        return _appended(self._steps, Step(operation, tuple(arguments), name or operation))

    def _row(self, text: str) -> Argument:
        if _REFERENCE.fullmatch(text):
            return self._argument(text)
        return Argument(text, "name")

    def _argument(self, text: str) -> Argument:
        if match := _REFERENCE.fullmatch(text):
            place = int(match[1])
            if place >= len(self._numbered):
                return Argument(text, "reference")
            return Argument(f"#{self._numbered[place]}", "reference", index=self._numbered[place])

        if text[:6].lower() == "const_":
            text = text.lower()
        literal = read_literal(text)
        if literal is not None:
            return Argument(text, "number", literal.number)
        return Argument(text, "none" if text.lower() == "none" else "name")


def _appended(steps: list[Step], step: Step) -> Argument:
    """A reference to the step, which is the last one now."""
    steps.append(step)
    at = len(steps) - 1
    return Argument(f"#{at}", "reference", index=at)


def _joined(parts: Sequence[Part]) -> _Parts:
    """The parts with neighbouring texts joined, without blank ones."""
    if len(parts) == 1:
        if not isinstance(parts[0], str) or parts[0].strip():
            return [*parts]
        return []

    joined: _Parts = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)

    return [part for part in joined if not isinstance(part, str) or part.strip()]


def _unbracketed(value: Argument | Bracketed) -> Argument:
    if isinstance(value, Bracketed):
        raise FormError("a number alone in parentheses, which may be a minus")
    return value


def _sides(operation: str, parts: _Parts) -> list[_Parts]:
    """The two arguments: one comma separates them, and all others are thousands separators."""
    # true of nearly all calls
    if len(parts) == 1 and isinstance(parts[0], str) and parts[0].count(",") == 1:
        left, _, right = parts[0].partition(",")
        return [_joined([left]), _joined([right])]

    commas = [
        (at, place)
        for at, part in enumerate(parts)
        if isinstance(part, str)
        for place in [at for at, letter in enumerate(part) if letter == ","]
    ]
    if len(commas) > _MOST_COMMAS or not commas:
        raise FormError(f"{operation} has {len(commas) + 1} arguments")
    readings = []
    for at, place in commas:
        text = str(parts[at])
        sides = [
            _joined([*parts[:at], text[:place]]),
            _joined([text[place + 1 :], *parts[at + 1 :]]),
        ]
        if len(commas) == 1 or all(map(_is_one, sides)):
            readings.append(sides)

    if len(readings) > 1:
        raise FormError(f"the arguments of {operation} can be read in {len(readings)} ways")
    if not readings:
        raise FormError(f"{operation} has {len(commas) + 1} arguments")
    return readings[0]


def _is_one(parts: Sequence[Part]) -> bool:
    """Whether every comma in the parts is a thousands separator."""
    return not any(
        comma["comma"] for part in parts if isinstance(part, str) for comma in _COMMA.finditer(part)
    )


MAX_PLAN = 50_000
"""The longest plan to read from text, in characters."""

_NAMED = re.compile(r"(?:(?P<step>step[_ ]?)|(?P<prev>prev_)|(?P<place>#))(?P<number>[0-9]{1,6})")
COMPOSITE: Final = frozenset({"sum", "average", "percentage", "percentage_change"})
"""Operations that are several basic ones."""
_ALIASES: Final = {"avg": "average", "mean": "average", "power": "exp", "pow": "exp"}


def written_out(operation: str, operands: Sequence[Argument], add: AddStep) -> Argument:
    """The value of a composite operation, whose basic steps are passed to `add` in execution
    order.
    """
    first, *others = operands
    if operation == "percentage":
        return add("multiply", [add("divide", operands), _HUNDRED])
    if operation == "percentage_change":
        share = add("divide", [add("subtract", [*others, first]), first])
        return add("multiply", [share, _HUNDRED])

    basic = "add" if operation in ("sum", "average") else operation
    total = reduce(lambda total, operand: add(basic, [total, operand]), others, first)
    if operation != "average":
        return total
    count = len(operands)
    return add("divide", [total, Argument(f"const_{count}", "number", float(count))])


_PAIRS = (
    ("old", "new"),
    ("part", "whole"),
    ("a", "b"),
    ("left", "right"),
    ("numerator", "denominator"),
)
_MANY = frozenset({"add", "multiply", "sum", "average"})
_VALUES = ("value", "result", "extracted_value")


def read_json(text: str) -> Program:
    """The plan or token list in a JSON text; text that is not JSON is read as a program."""
    if len(text) <= MAX_PLAN:
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return read_text(text)

        if isinstance(parsed, Mapping) or (
            isinstance(parsed, list) and parsed and isinstance(parsed[0], Mapping)
        ):
            return read_plan(parsed, text)

        if isinstance(parsed, list):
            return read_tokens(parsed)

    return read_text(text)


def read_plan(plan: Plan | Sequence[object], text: str = "") -> Program:
    """The program of a plan; `operations` keeps the plan's names, the steps are basic
    operations.
    """
    reader = _Planner()
    steps: Sequence[object] = () if isinstance(plan, Mapping) else plan
    # also `{"plan": {"steps": […]}}`
    for wrapped in (plan, *plan.values()) if isinstance(plan, Mapping) else ():
        if isinstance(wrapped, Mapping):
            inner = wrapped.get("steps")
        else:
            inner = None

        if isinstance(inner, list | tuple):
            steps = inner
            break

    for place, step in enumerate(steps[: MAX_STEPS + 1], start=1):
        reader.read(place, step)

    return reader.program(text)


Plan = Mapping[str, Any]


class _Planner:
    """Reads step by step; extracted values become arguments of the steps that use them."""

    def __init__(self) -> None:
        self.error: ExecutionError | None = None
        self._steps: list[Step] = []
        self._operations: list[str] = []
        self._results: dict[str, Argument] = {}  # by step id
        self._places: list[Argument] = []  # by place in the plan
        self._broken = False

    def program(self, text: str) -> Program:
        """The program, once all steps have been read."""
        if self._places:
            last = self._places[-1]
        else:
            last = None

        if last is None and not self._broken:
            self._break("the plan has no step")
        number = last
        if last is not None and last.kind == "reference" and last.index is not None:
            number = None
            del self._steps[last.index + 1 :]  # the plan ends with a reference to an earlier step

        if number is not None:
            self.error = self.error or fault_of("add", [number], [])
        return Program(
            text=text or " ".join(self._operations),
            tokens=(),
            steps=tuple(self._steps),
            number=number,
            error=self.error,
            operations=tuple(self._operations),
            spelling="plan",
        )

    def read(self, place: int, step: object) -> None:
        """Reads one step of the plan."""
        if self._broken:
            return
        if not isinstance(step, Mapping):
            self._break(f"step {place} is not a mapping")
            return

        if len(self._steps) >= MAX_STEPS:
            self._break(f"longer than {MAX_STEPS} steps")
            return

        operation = step.get("operation")
        tool = step.get("tool")
        if tool == "extract_value" or (operation is None and tool != "compute"):
            result: Argument | None = self._taken(step)
        elif isinstance(operation, str):
            result = self._compute(operation, self._operands(step))
        else:
            result = None
            self._break(f"step {place} has no operation")

        if result is not None:
            self._places.append(result)
            self._results[_shown(_first(step, ("step_id", "id", "step"), place))] = result

    def _taken(self, step: Plan) -> Argument:
        """The value that an `extract_value` step states, or the cell that it names."""
        stated = _first(step, _VALUES)
        if stated is not None:
            return self._operand(stated)
        params = next(
            (step[key] for key in ("table_params", "params") if isinstance(step.get(key), Mapping)),
            step,
        )
        row = _first(params, ("row_query", "row"))
        column = _first(params, ("col_query", "column", "col"))
        if isinstance(row, str) and isinstance(column, str):
            return Argument(row, "cell", column=column)
        return Argument("a value that the plan does not state", "name")

    def _operands(self, step: Plan) -> list[Argument]:
        given = _first(step, ("operands", "arguments", "args"), [])
        if isinstance(given, Mapping):
            pair = next((pair for pair in _PAIRS if all(key in given for key in pair)), None)
            if pair:
                given = [given[key] for key in pair]
            else:
                given = list(given.values())

        if isinstance(given, list | tuple):
            return [self._operand(operand) for operand in given[:MAX_STEPS]]
        return []

    def _operand(self, given: object) -> Argument:
        if isinstance(given, Mapping):
            reference = _first(given, ("step_ref", "ref", "step_id"))
            if reference is not None:
                return self._reference(reference)
            turn = _first(given, ("turn", "turn_idx"))
            if type(turn) is int:
                return Argument(f"turn {turn}", "history", index=turn)
            given = _first(given, (*_VALUES, "row"))

        if isinstance(given, str) and (match := _NAMED.fullmatch(given.strip())):
            number = int(match["number"])
            if match["prev"]:
                return self._reference(-1 - number)
            if match["step"]:
                return self._reference(number)
            return self._at(number, given)

        text = _shown(given)
        literal = read_literal(text)
        if literal is None:
            return Argument(text, "name")
        return Argument(text, "number", literal.number)

    def _reference(self, to: object) -> Argument:
        if isinstance(to, str) and (match := _NAMED.fullmatch(to.strip())):
            number = int(match["number"])
            if match["place"]:
                return self._at(number, to)
            if match["prev"]:
                to = -1 - number
            else:
                to = number

        if type(to) is int and to < 0:
            return Argument(f"step {_shown(to)}", "history", index=to)
        return self._results.get(_shown(to), Argument(f"step {_shown(to)[:40]}", "reference"))

    def _at(self, place: int, text: str) -> Argument:
        if place < len(self._places):
            return self._places[place]
        return Argument(text, "reference")

    def _compute(self, operation: str, operands: list[Argument]) -> Argument | None:
        """Adds the basic steps of one operation; returns a reference to the last of them."""
        operation = operation.strip().lower()
        self._operations.append(operation[:40])
        count = len(operands)
        if (operation in COMPOSITE and count == 2) or (operation in _MANY and count >= 2):
            return written_out(operation, operands, partial(self._step, name=operation))
        if operation in OPERATIONS and (count == 2 or (operation in TABLE and count == 1)):
            return self._step(operation, operands, operation)
        known = operation in OPERATIONS | COMPOSITE
        self._break(
            f"{operation[:40]} " + (f"has {count} operands" if known else "is not an operation")
        )
        return None

    def _step(self, operation: str, arguments: Sequence[Argument], name: str) -> Argument:
        self.error = self.error or fault_of(operation, arguments, self._steps)
        return _appended(self._steps, Step(operation, tuple(arguments), name))

    def _break(self, message: str) -> None:
        self.error = ExecutionError("malformed", message)
        self._broken = True


def _first(given: Plan, keys: Sequence[str], default: object = None) -> object:
    return next((given[key] for key in keys if given.get(key) is not None), default)


def _shown(given: object) -> str:
    """Text unchanged, a number's digits, "" for anything else, which may be of any size."""
    if isinstance(given, str):
        return given
    return written(given)
