"""A reasoning program once it is read: steps, arguments, their tree, and errors as results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

ErrorKind = Literal[
    "division_by_zero",
    "unknown_reference",
    "unknown_row",
    "not_a_number",
    "overflow",
    "domain",
    "malformed",
]

ARITHMETIC: Final = frozenset({"add", "subtract", "multiply", "divide", "exp", "greater"})
TABLE: Final = frozenset({"table_max", "table_min", "table_sum", "table_average"})
OPERATIONS: Final = ARITHMETIC | TABLE

MAX_TREE = 2_000
"""The most nodes of a tree; a program whose steps unfold to more has none."""


@dataclass(frozen=True, slots=True)
class ExecutionError:
    """Why there is no value: a result, not an exception."""

    kind: ErrorKind
    message: str


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as written (a reference to a step as `#` and its index), and its kind.

    `number`: a literal, with its `value`. `reference`: the value of the step at `index` of the same
    program; `index` is None if there is no such step. `none`: the word. `name`: anything else,
    which is a row in a table operation and an error elsewhere. Only in JSON plans: `history` is the
    value of an earlier turn, at `index` from the oldest (0) or from the latest (-1), and `cell` one
    cell of the row `text` in the column `column`.
    """

    text: str
    kind: Literal["number", "reference", "none", "name", "history", "cell"]
    value: float | None = None
    index: int | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a program.

    `written` is the operation's name in the source: `percentage` for both the divide and the
    multiply that a plan's `percentage` becomes.
    """

    operation: str
    arguments: tuple[Argument, ...]
    written: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A node of a program's tree: an operation and its arguments; equal sub-trees are the same
    object.
    """

    operation: str
    args: tuple[Call | Argument, ...]
    size: int = field(compare=False)

    def walk(self) -> Iterator[Call]:
        """Every operation of this tree, arguments before their users; repeated if used
        repeatedly.
        """
        for arg in self.args:
            if isinstance(arg, Call):
                yield from arg.walk()

        yield self


@dataclass(frozen=True)
class Program:
    """A program that was read. Steps are flat and in execution order; references are positions
    among them.

    `tokens` are the raw tokens (text is split as the official scorers do; a plan has none). A bare
    number is an extract-only program: `number` is set and is the program's value, and there are no
    steps, unless a plan ends by extracting a value. `error` says why the program could not be read,
    or why it has no value whatever the table and history; the steps read until then are kept.
    `operations` are the names as written.
    """

    text: str
    tokens: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    number: Argument | None = None
    error: ExecutionError | None = None
    operations: tuple[str, ...] = ()
    spelling: Literal["text", "tokens", "plan", "other"] = "text"

    @property
    def readable(self) -> bool:
        """Whether its operations are known, even if it has no value.

        False for malformed programs, and for text that is not a number and has no step. Such a
        program cannot be compared, so it does not count as wrong.
        """
        if self.error is None:
            return True
        return self.error.kind != "malformed" and (bool(self.steps) or self.spelling == "plan")

    @cached_property
    def tree(self) -> Call | Argument | None:
        """The last step with its references written out; None after an error or beyond `MAX_TREE`
        nodes.
        """
        if self.error is not None:
            return None
        if self.number is not None:
            return self.number
        calls: list[Call] = []
        known: dict[tuple[object, ...], Call] = {}
        for step in self.steps:
            args: list[Call | Argument] = []
            for arg in step.arguments:
                if arg.kind == "reference" and arg.index is not None:
                    args.append(calls[arg.index])
                else:
                    args.append(arg)

            size = 1 + sum(arg.size if isinstance(arg, Call) else 1 for arg in args)
            if size > MAX_TREE:
                return None
            key = (step.operation, *(id(arg) if isinstance(arg, Call) else arg for arg in args))
            calls.append(known.setdefault(key, Call(step.operation, tuple(args), size)))

        if calls:
            return calls[-1]
        return None


def fault_of(
    operation: str, arguments: Sequence[Argument], steps: Sequence[Step]
) -> ExecutionError | None:
    """The fault of a new step after these that no table and no history could fix; None if it has
    none.
    """
    for arg in arguments[:1] if operation in TABLE else arguments:
        if arg.kind == "number" and operation not in TABLE:
            continue
        shown = arg.text[:40]
        if arg.kind == "reference" and arg.index is None:
            return ExecutionError("unknown_reference", f"{shown} is not an earlier step")
        if operation in TABLE:
            if arg.kind != "name":
                return ExecutionError("not_a_number", f"{operation} needs a row, got {shown!r}")
        elif arg.kind in {"name", "none"}:
            return ExecutionError("not_a_number", f"{shown!r} is not a number")
        elif (
            arg.kind == "reference"
            and arg.index is not None
            and steps[arg.index].operation == "greater"
        ):
            return ExecutionError("not_a_number", f"{operation} needs numbers, got yes or no")

    return None
