"""A program taken apart for comparison: its steps, what each computes, and which of them an earlier turn computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from karat.numeric.algebra import MAX_DEGREE, PRIME, Form, Setting, form_of, step_forms
from karat.numeric.counting import PERCENTAGES
from karat.numeric.equivalence import setting_of
from karat.numeric.kept import MOST_KEPT, TEXTS, read_program
from karat.numeric.programs import Program, Readable, parse_program
from karat.numeric.tables import Table, one_cell
from karat.numeric.trees import TABLE, Argument, ExecutionError, Step
from karat.numeric.values import parse_value

__all__ = ["Before", "Earlier", "Key", "Parts", "parts_of"]

Key = tuple[int, ...] | bytes
"""What a step computes, as a value that can be looked up: equal keys are one function."""

Earlier = Sequence[tuple[Readable, Any] | tuple[Readable, Any, Any]]
"""Of each turn before, oldest first: the golden program, the golden answer, and where it is known the agent's own."""

_PLAIN = Setting()


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A program in one reading.

    `keys` has what each of all its steps computes, `whole` what it computes; None where it
    does not parse or divides by an identical zero. `counted` are the steps of this turn,
    `literals` the absolute values of the numbers in them, each with whether it is a
    constant (`const_`).
    """

    program: Program
    keys: tuple[Key, ...] | None
    whole: Key | None
    counted: tuple[int, ...]
    literals: tuple[tuple[float, bool], ...]

    @property
    def steps(self) -> list[Step]:
        """The counted steps."""
        return [self.program.steps[at] for at in self.counted]


def parts_of(source: Readable, table: Table | None) -> Parts:
    """The program as it stands alone; what depends on nothing but its text is computed once."""
    if isinstance(source, str) and len(source) <= MOST_KEPT:
        parts = _of_text(source)
        program = parts.program
        if table is None or not any(_asks_the_table(step) for step in program.steps):
            return parts
    else:
        program = parse_program(source)
    return _apart(program, _PLAIN if table is None else Setting(table=table))


@lru_cache(maxsize=TEXTS)
def _of_text(text: str) -> Parts:
    return _apart(read_program(text), _PLAIN)


def _asks_the_table(step: Step) -> bool:
    return step.operation in TABLE or any(argument.kind == "cell" for argument in step.arguments)


def _apart(program: Program, setting: Setting) -> Parts:
    keys, whole = _keys(program, setting)
    counted = tuple(range(len(program.steps)))
    return Parts(program, keys, whole, counted, tuple(_literals(program, counted, setting.table)))


def _keys(program: Program, setting: Setting) -> tuple[tuple[Key, ...] | None, Key | None]:
    """What each step computes, and what the program does."""
    forms = step_forms(program.steps, setting) if program.error is None else None
    if forms is None:
        return None, None
    keys = tuple(map(_key, forms))
    if forms and program.number is None and all(s.degree <= MAX_DEGREE for form in forms for s in form.sides):
        return keys, keys[-1]
    whole = form_of(program, setting)
    return keys, None if whole is None else _key(whole)


def _key(form: Form) -> Key:
    if form.structure is not None:
        return form.structure
    return tuple(
        side.above if side.below == 1 else side.above * pow(side.below, -1, PRIME) % PRIME for side in form.sides
    )


def _literals(program: Program, counted: Sequence[int], table: Table | None) -> Iterator[tuple[float, bool]]:
    for at in counted:
        step = program.steps[at]
        for argument in step.arguments:
            # Nobody wrote the hundred of a plan's percentage.
            if not (argument.text == "const_100" and step.said in PERCENTAGES):
                yield from _literal(argument, table)
    if program.number is not None:
        yield from _literal(program.number, table)


def _literal(argument: Argument, table: Table | None) -> Iterator[tuple[float, bool]]:
    if argument.kind == "number" and argument.value is not None:
        yield abs(argument.value), argument.text.startswith("const_")
    elif argument.kind == "cell":
        cell = one_cell(table, argument.text, argument.column or "")
        if not isinstance(cell, ExecutionError):
            yield abs(float(cell)), False


class Before:
    """What came before a turn: the golden programs of the earlier turns, and what was answered there."""

    def __init__(self, earlier: Earlier, table: Table | None) -> None:
        self.table = table
        self._golden: list[tuple[Program, Any]] = []
        self._own: list[tuple[Program, Any]] = []
        computed: list[Any] = []
        self._extracted: list[Any] = []
        self.keys: set[Key] = set()
        for source, value, *own in earlier:
            parts = parts_of(source, table)
            self._golden.append((parts.program, value))
            self._own.extend((parts.program, answer) for answer in own)
            if parts.program.steps and parts.whole is not None:
                self.keys.add(parts.whole)
            (computed if parts.program.steps else self._extracted).extend((value, *own))
        self.computed = frozenset(_sizes(computed))

    @cached_property
    def extracted(self) -> frozenset[float]:
        """Absolute values of the earlier answers that were taken out of the report."""
        return frozenset(_sizes(self._extracted))

    @cached_property
    def setting(self) -> Setting:
        """What literals mean after these turns: answers, golden ones first, mean the golden programs."""
        golden = setting_of(self.table, self._golden)
        own = setting_of(self.table, self._own).inlined
        return replace(golden, inlined={**own, **golden.inlined}) if own else golden

    def step(self, parts: Parts) -> Parts:
        """The program without what earlier turns computed: such steps are values, and what leads to them is nothing.

        An earlier answer that stands in the program stands for the program that gave it.
        """
        keys, whole = parts.keys, parts.whole
        if keys is not None and self._answers_in(parts):
            keys, whole = _keys(parts.program, self.setting)
        counted = _counted(parts.program.steps, keys, self.keys) if keys and self.keys else parts.counted
        if keys is parts.keys and whole is parts.whole and counted == parts.counted:
            return parts
        literals = tuple(_literals(parts.program, counted, self.table))
        return Parts(parts.program, keys, whole, counted, literals)

    def _answers_in(self, parts: Parts) -> bool:
        """Whether an earlier answer stands in the program: without one the history changes nothing."""
        if any(number in self.computed for number, _ in parts.literals):
            return True
        return any(argument.kind == "history" for step in parts.program.steps for argument in step.arguments)


def _counted(steps: Sequence[Step], keys: Sequence[Key], known: set[Key]) -> tuple[int, ...]:
    """The steps that are neither known nor used by known ones only."""
    values = {at for at, key in enumerate(keys) if key in known}
    if not values:
        return tuple(range(len(steps)))
    used = [
        {arg.index for arg in step.arguments if arg.kind == "reference" and arg.index is not None} for step in steps
    ]
    wanted = set(range(len(steps))).difference(*used)
    for at in range(len(steps) - 1, -1, -1):
        if at in wanted and at not in values:
            wanted |= used[at]
    return tuple(sorted(wanted - values))


def _sizes(values: Iterable[Any]) -> Iterator[float]:
    """Absolute values, as they are and to the 5 decimals of the data sets."""
    for given in values:
        number = given if type(given) is float else None
        if number is None:
            value = parse_value(given)
            number = value.number if value is not None and value.boolean is None else float("nan")
        yield abs(number)
        yield abs(round(number, 5))
