"""The reader of programs as text (flat or nested) and as token lists; plans are read in `plans`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from karat.numeric.literals import read_literal, written
from karat.numeric.trees import OPERATIONS, TABLE, Argument, ExecutionError, Program, Step, fault_of

__all__ = ["MAX_DEPTH", "MAX_STEPS", "MAX_TEXT", "cut", "read_text", "read_tokens"]

MAX_TEXT = 10_000
"""Characters of the longest program that is read."""
MAX_STEPS = 200
MAX_DEPTH = 50

_OFFICIAL_TOKEN = re.compile(r"[^()]*\(|\)|[^()]+")
_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
_PIECE = re.compile(
    r"""
    (?:[-+\u2212]\s?)?(?:const_m?)?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])[^(),]*  # a number and its commas
    | [^(),]+
    """,
    re.VERBOSE,
)
_REFERENCE = re.compile(r"#\s?([0-9]{1,6})")
_EOF = re.compile(r"(?<!\S)EOF(?!\S)")
_SPACE = re.compile(r"\s*")


def cut(text: str) -> tuple[str, ...]:
    """The text's tokens as the official scorers cut it: at `', '`, after every `(` and around every `)`, then `EOF`."""
    return (*(token for piece in text.split(", ") for token in _OFFICIAL_TOKEN.findall(piece)), "EOF")


def read_text(text: str) -> Program:
    """The program that the text spells."""
    if len(text) > MAX_TEXT:
        fault = ExecutionError("malformed", f"longer than {MAX_TEXT} characters")
        return Program(text, (), error=fault, spelling="other")
    reader = _Reader()
    reader.read(text)
    return reader.program(text, cut(text), "text")


def read_tokens(tokens: Sequence[object]) -> Program:
    """The program that a list of tokens spells; a number among them is taken by its text."""
    spelling = "tokens" if all(type(token) is str for token in tokens) else "other"
    if len(tokens) > MAX_TEXT or sum(len(token) for token in tokens if isinstance(token, str)) > MAX_TEXT:
        fault = ExecutionError("malformed", f"longer than {MAX_TEXT} characters")
        return Program("", tuple(map(_token_text, tokens[:MAX_TEXT])), error=fault, spelling="other")
    words = tuple(map(_token_text, tokens))
    reader = _Reader(listed=True)
    for word in words:
        if reader.broken:
            break
        reader.token(word)
    text = ", ".join(words).replace("(, ", "(").replace(", )", ")")
    return reader.program(text.removesuffix(", EOF"), words, spelling)


def _token_text(token: object) -> str:
    return token if isinstance(token, str) else written(token)


class _Frame:
    """A call that is open: its operation, and its arguments so far."""

    __slots__ = ("args", "operation")

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.args: list[Argument] = []


class _Reader:
    """Reads piece by piece; after the first fault in the form nothing more is read, other faults are noted."""

    def __init__(self, *, listed: bool = False) -> None:
        self.steps: list[Step] = []
        self.error: ExecutionError | None = None
        self.broken = False
        self._listed = listed  # arguments of a token list need no commas between them
        self._open: list[_Frame] = []
        self._written: list[int] = []  # where the steps that `#k` counts stand among all steps
        self._bare: list[str] = []
        self._wanting = False  # after "(" and ",": an argument must follow

    def program(self, text: str, tokens: tuple[str, ...], spelling: str) -> Program:
        """What was read, once everything has been."""
        number = None
        if not self.broken and self._open:
            self._break("a parenthesis is not closed")
        if not self.broken and not self.steps and len(self._bare) == 1:
            number = self._argument(self._bare[0])
            self.error = fault_of("add", [number], [])
        elif not self.broken and (self._bare or not self.steps):
            self._break("a number stands beside the steps" if self._bare else "there is no step and no number")
        return Program(
            text=text,
            tokens=tokens,
            steps=tuple(self.steps),
            number=number,
            error=self.error,
            operations=tuple(step.operation for step in self.steps),
            spelling=spelling,  # type: ignore[arg-type]  # one of the four, by the callers above
        )

    def token(self, word: str) -> None:
        """One token of a list: a whole argument, or a piece of text where it has the form of one."""
        stripped = word.strip()
        if self._open and stripped != ")" and not _CALL.fullmatch(stripped):
            if self._open[-1].operation in TABLE:
                self._add(self._row(stripped))
                return
            if not stripped:
                self._add(self._argument(stripped))
                return
        self.read(word)

    def read(self, text: str) -> None:
        """A piece of text, from wherever the reading stands."""
        at = self._skip(text, 0)
        while at < len(text) and not self.broken:
            if text[at] == ")":
                self._close()
                at += 1
            elif text[at] == ",":
                self._comma()
                at += 1
            elif call := _CALL.match(text, at):
                self._begin(call[1])
                at = call.end()
                if call[1] in TABLE and not self._listed and not self.broken:
                    at = self._read_row(text, at)
            elif piece := _PIECE.match(text, at):
                self._word(piece[0].strip())
                at = piece.end()
            else:
                self._break("a parenthesis without an operation")
            at = self._skip(text, at)

    @staticmethod
    def _skip(text: str, at: int) -> int:
        found = _SPACE.match(text, at)
        return found.end() if found else at

    def _begin(self, operation: str) -> None:
        if operation not in OPERATIONS:
            self._break(f"{operation[:40]!r} is not an operation")
        elif len(self._open) == MAX_DEPTH or len(self.steps) + len(self._open) >= MAX_STEPS:
            self._break(f"deeper than {MAX_DEPTH} calls or longer than {MAX_STEPS} steps")
        elif self._open and not self._wanting and not self._listed:
            self._break("two arguments without a comma")
        else:
            self._open.append(_Frame(operation))
            self._wanting = True

    def _read_row(self, text: str, at: int) -> int:
        """The arguments of a table operation in text: a row's name may hold commas and paired parentheses."""
        depth, end = 1, at
        while end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if depth == 0:
                break
            end += 1
        name, comma, second = text[at:end].rpartition(",")
        for row in (name, second) if comma else (second,):
            self._add(self._row(row.strip()))
        self._wanting = False
        return end

    def _word(self, word: str) -> None:
        if not self._open:
            if word := _EOF.sub("", word).strip():
                self._bare.append(word)
                if len(self._bare) > 1:
                    self._break("two numbers without an operation")
        elif not self._wanting and not self._listed:
            self._break("two arguments without a comma")
        else:
            self._add(self._argument(word))

    def _comma(self) -> None:
        if self._open and self._wanting:
            self._break("an argument is missing")
        self._wanting = bool(self._open)

    def _add(self, argument: Argument) -> None:
        self._open[-1].args.append(argument)
        self._wanting = False

    def _close(self) -> None:
        if not self._open or self._wanting:
            self._break("an argument is missing" if self._open else "a parenthesis closes nothing")
            return
        frame = self._open.pop()
        if not (len(frame.args) == 2 or (len(frame.args) == 1 and frame.operation in TABLE)):
            self._break(f"{frame.operation} has {len(frame.args)} arguments")
            return
        fault = fault_of(frame.operation, frame.args, self.steps)
        self.error = self.error or fault
        self.steps.append(Step(frame.operation, tuple(frame.args), frame.operation))
        at = len(self.steps) - 1
        if self._open:
            self._add(Argument(f"#{at}", "reference", index=at))
        else:
            self._written.append(at)
        self._wanting = False

    def _row(self, text: str) -> Argument:
        return self._argument(text) if _REFERENCE.fullmatch(text) else Argument(text, "name")

    def _argument(self, text: str) -> Argument:
        if found := _REFERENCE.fullmatch(text):
            place = int(found[1])
            if place >= len(self._written):
                return Argument(text, "reference")
            return Argument(f"#{self._written[place]}", "reference", index=self._written[place])
        literal = read_literal(text)
        if literal is not None:
            return Argument(text, "number", literal.number)
        return Argument(text, "none" if text == "none" else "name")

    def _break(self, message: str) -> None:
        """A fault in the form outweighs what was noted before."""
        self.error = ExecutionError("malformed", message)
        self.broken = True
