"""The reader of programs as text (flat, nested or infix) and as token lists; plans are read in `plans`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from karat.numeric.formulas import Bracketed, FormError, read_formula
from karat.numeric.literals import read_literal, written
from karat.numeric.trees import OPERATIONS, TABLE, Argument, ExecutionError, Program, Step, fault_of

__all__ = ["MAX_DEPTH", "MAX_STEPS", "MAX_TEXT", "cut", "read_text", "read_tokens"]

MAX_TEXT = 10_000
"""Characters of the longest program that is read."""
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
    | (?P<comma>,)""",
    re.VERBOSE,
)
_REFERENCE = re.compile(r"#\s?([0-9]{1,6})")
_NOTHING = ", \t\r\n"
_EOF = re.compile(r"(?<![^\s,])EOF(?![^\s,])")

_Part = str | Argument | Bracketed
"""Text, or the value of a call or of parentheses in it."""


def cut(text: str) -> tuple[str, ...]:
    """The text's tokens as the official scorers cut it: at `', '`, after every `(` and around every `)`, then `EOF`."""
    return (*(token for piece in text.split(", ") for token in _OFFICIAL_TOKEN.findall(piece)), "EOF")


def read_text(text: str) -> Program:
    """The program that the text spells."""
    if len(text) > MAX_TEXT:
        fault = ExecutionError("malformed", f"longer than {MAX_TEXT} characters")
        return Program(text, (), error=fault, spelling="other")
    if _FLAT.fullmatch(text) and (program := _Reader().flat(text)) is not None:
        return program
    return _Reader().program([text], text, cut(text), "text")


def read_tokens(tokens: Sequence[object]) -> Program:
    """The program that a list of tokens spells; a number among them is taken by its text."""
    spelling = "tokens" if all(type(token) is str for token in tokens) else "other"
    if len(tokens) > MAX_TEXT or sum(len(token) for token in tokens if isinstance(token, str)) > MAX_TEXT:
        fault = ExecutionError("malformed", f"longer than {MAX_TEXT} characters")
        return Program("", tuple(map(_token_text, tokens[:MAX_TEXT])), error=fault, spelling="other")
    words = tuple(map(_token_text, tokens))
    text = ", ".join(words).replace("(, ", "(").replace(", )", ")")
    return _Reader().program(words, text.removesuffix(", EOF"), words, spelling)


def _token_text(token: object) -> str:
    return token if isinstance(token, str) else written(token)


class _Frame:
    """An open parenthesis: the operation before it, None for grouping, and what was read in it."""

    __slots__ = ("operation", "parts")

    def __init__(self, operation: str | None) -> None:
        self.operation = operation
        self.parts: list[_Part] = []


class _Reader:
    """Reads piece by piece. A fault in the form ends the reading; other faults are kept, the first one counts."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._error: ExecutionError | None = None
        self._open: list[_Frame] = []
        self._item: list[_Part] = []  # what was read outside of parentheses since the last comma
        self._first = 0  # the first step of that item
        self._numbered: list[int] = []  # of each item with steps, in the order in which `#k` counts: its last step
        self._bare: list[Argument] = []  # items without a step
        self._ended = False  # by EOF

    def program(self, pieces: Sequence[str], text: str, tokens: tuple[str, ...], spelling: str) -> Program:
        """What the pieces spell: one text, or the tokens of a list."""
        number = None
        try:
            for piece in pieces:
                self._token(piece)
            number = self._end()
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
        """What calls without brackets in them spell: nearly all golden programs. None where only `program` can tell."""
        for operation, left, right in _FLAT_CALL.findall(text):
            arguments = self._argument(left), self._argument(right)
            unclear = operation not in OPERATIONS or operation in TABLE or len(self._steps) == MAX_STEPS
            if unclear or any(argument.kind == "name" for argument in arguments):
                return None
            self._add_step(operation, arguments)
            self._numbered.append(len(self._steps) - 1)
        steps = tuple(self._steps)
        operations = tuple([step.operation for step in steps])
        return Program(text, cut(text), steps, None, self._error, operations, "text")

    def _end(self) -> Argument | None:
        """The bare number that the whole program is; None where there are steps."""
        if self._open:
            raise FormError("a parenthesis is not closed")
        self._end_item()
        if self._steps and self._bare:
            raise FormError("a number stands beside the steps")
        if not self._steps and not self._bare:
            raise FormError("there is no step and no number")
        if self._steps:
            return None
        self._error = fault_of("add", self._bare, [])
        return self._bare[0]

    def _token(self, word: str) -> None:
        """One token of a list, which ends what was read before it; or the whole text."""
        stripped = word.strip()
        if stripped != ")":
            self._separate(stripped)
        inside = self._open[-1] if self._open else None
        if inside and inside.operation in TABLE and stripped != ")" and not _CALL.fullmatch(stripped):
            inside.parts.append(self._row(stripped))
        else:
            self._read(word)

    def _separate(self, word: str) -> None:
        if not self._open:
            self._end_item()
            return
        parts = self._open[-1].parts
        last = parts[-1] if parts else ","
        if not (word.startswith(",") or (isinstance(last, str) and last.rstrip().endswith(","))):
            parts.append(", ")

    def _read(self, text: str) -> None:
        at = 0
        while parenthesis := _PARENTHESIS.search(text, at):
            piece = text[at : parenthesis.start()]
            at = parenthesis.end()
            if parenthesis[0] == ")":
                self._text(piece)
                self._close()
                continue
            name = _NAME.search(piece)
            operation = name[0].rstrip() if name else None
            if name is None or operation in {"x", "X"}:  # a sign of multiplication before grouping
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
        before, *after = _EOF.split(text) if "EOF" in text else [text]
        if any(piece.strip(_NOTHING) for piece in ([before, *after] if self._ended else after)):
            raise FormError("something follows EOF")
        at = 0
        for comma in _COMMA.finditer(before) if "," in before else ():
            if comma["comma"]:
                self._item.append(before[at : comma.start()])
                self._end_item()
                at = comma.end()
        if before[at:].strip():
            self._item.append(before[at:])
        self._ended = self._ended or bool(after)

    def _end_item(self) -> None:
        """What was read outside of parentheses since the last comma is one step, several, or a bare number."""
        if not self._item:
            return
        parts, self._item = _joined(self._item), []
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
        if operation is not None and operation not in OPERATIONS:
            raise FormError(f"{operation[:40]!r} is not an operation")
        if len(self._open) == MAX_DEPTH:
            raise FormError(f"deeper than {MAX_DEPTH} parentheses")
        if not self._open and operation is not None and self._item:
            before = _joined(self._item)
            if before and isinstance(before[-1], Argument):
                self._end_item()  # steps need no comma between them
        self._open.append(_Frame(operation))

    def _read_row(self, text: str, at: int) -> int:
        """The arguments of a table operation in text: a row's name may hold commas and paired parentheses."""
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

    def _close(self) -> None:
        if not self._open:
            raise FormError("a parenthesis closes nothing")
        frame = self._open.pop()
        parts = _joined(frame.parts)
        value = self._group(parts) if frame.operation is None else self._call(frame.operation, parts)
        (self._open[-1].parts if self._open else self._item).append(value)

    def _group(self, parts: list[_Part]) -> Argument | Bracketed:
        if not _is_one(parts):
            raise FormError("a comma in parentheses without an operation")
        before = len(self._steps)
        value = self._value(parts)
        plain = len(self._steps) == before and isinstance(parts[0], str)
        return Bracketed(value) if plain and isinstance(value, Argument) else value

    def _call(self, operation: str, parts: list[_Part]) -> Argument:
        sides = [parts] if operation in TABLE and len(parts) == 1 else _sides(operation, parts)
        return self._add_step(operation, [_unbracketed(self._value(side)) for side in sides])

    def _value(self, parts: list[_Part]) -> Argument | Bracketed:
        """What an argument, an item or the inside of parentheses is: one value, or a formula."""
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

    def _add_step(self, operation: str, arguments: Sequence[Argument]) -> Argument:
        if len(self._steps) == MAX_STEPS:
            raise FormError(f"longer than {MAX_STEPS} steps")
        self._error = self._error or fault_of(operation, arguments, self._steps)
        self._steps.append(Step(operation, tuple(arguments), operation))
        at = len(self._steps) - 1
        return Argument(f"#{at}", "reference", index=at)

    def _row(self, text: str) -> Argument:
        return self._argument(text) if _REFERENCE.fullmatch(text) else Argument(text, "name")

    def _argument(self, text: str) -> Argument:
        if match := _REFERENCE.fullmatch(text):
            place = int(match[1])
            if place >= len(self._numbered):
                return Argument(text, "reference")
            return Argument(f"#{self._numbered[place]}", "reference", index=self._numbered[place])
        literal = read_literal(text)
        if literal is not None:
            return Argument(text, "number", literal.number)
        return Argument(text, "none" if text == "none" else "name")


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    """Neighbouring texts as one, without those that are blank."""
    if len(parts) == 1:
        return [*parts] if not isinstance(parts[0], str) or parts[0].strip() else []
    joined: list[_Part] = []
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


def _sides(operation: str, parts: list[_Part]) -> list[list[_Part]]:
    """The two arguments: of all commas one separates them, and every other one is a thousands separator."""
    if len(parts) == 1 and isinstance(parts[0], str) and parts[0].count(",") == 1:  # what nearly all calls are
        left, _, right = parts[0].partition(",")
        return [_joined([left]), _joined([right])]
    commas = [(at, place) for at, part in enumerate(parts) if isinstance(part, str) for place in _commas(part)]
    if len(commas) > _MOST_COMMAS or not commas:
        raise FormError(f"{operation} has {len(commas) + 1} arguments")
    readings = []
    for at, place in commas:
        text = str(parts[at])
        sides = [_joined([*parts[:at], text[:place]]), _joined([text[place + 1 :], *parts[at + 1 :]])]
        if len(commas) == 1 or all(map(_is_one, sides)):
            readings.append(sides)
    if len(readings) > 1:
        raise FormError(f"the arguments of {operation} can be read in {len(readings)} ways")
    if not readings:
        raise FormError(f"{operation} has {len(commas) + 1} arguments")
    return readings[0]


def _commas(text: str) -> list[int]:
    return [at for at, letter in enumerate(text) if letter == ","]


def _is_one(parts: Sequence[_Part]) -> bool:
    """Whether no comma in the parts separates anything."""
    return not any(comma["comma"] for part in parts if isinstance(part, str) for comma in _COMMA.finditer(part))
