"""Golden programs in flat form, to recompute them with other literals, answers or operations.

A circuit is a list of slots: first the literals, then the steps in execution order. Every
question of a diagnosis ("what if this had been 37.84?") is one pass over the steps, with floats
or with whole arrays of floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from karat_conversations.numeric.programs import (
    COMPUTE,
    Readable,
    execute,
    once_a_text,
    read_program,
)
from karat_conversations.numeric.trees import TABLE, Argument, Program, Step

if TYPE_CHECKING:
    from karat_conversations.numeric.tables import Table


@dataclass(frozen=True, slots=True)
class Gate:
    """One step: an operation on two slots."""

    operation: str
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Circuit:
    """A program whose arguments are all known.

    Slots are numbered: `values` fills the first ones (literals, then results from the table), each
    gate the next. `named` are the slots of literals that are not `const_`; `sources` are the steps
    of table operations, whose value is looked up once and then given. Slots that are written alike
    (numbers: with the same value) have the same `keys`, even across programs of one process.
    """

    values: tuple[float, ...]
    gates: tuple[Gate, ...]
    keys: tuple[int, ...]
    texts: tuple[str, ...]
    named: tuple[int, ...]
    sources: tuple[tuple[int, Step], ...]
    root: int

    @property
    def computes(self) -> bool:
        """Whether there is an operation at all."""
        return bool(self.gates or self.sources)

    def below(self, slot: int) -> set[int]:
        """The slot, and all that its value is computed from."""
        slots = {slot}
        first = len(self.values)
        for at in range(slot, first - 1, -1):
            if at in slots:
                slots |= {self.gates[at - first].left, self.gates[at - first].right}

        return slots

    def run(
        self,
        *,
        values: Sequence[Any] | None = None,
        given: Mapping[int, float] | None = None,
        gates: Sequence[Gate] | None = None,
    ) -> list[Any] | None:
        """The value of every slot, or None if a step has no finite value.

        `values` replaces the literals (by floats or arrays), `given` the results of slots, `gates`
        the steps. Arrays are not checked for values that are not finite.
        """
        slots = list(self.values if values is None else values)
        if given:
            for slot, value in given.items():
                if slot < len(slots):
                    slots[slot] = value

        try:
            for gate in self.gates if gates is None else gates:
                if given and len(slots) in given:
                    slots.append(given[len(slots)])
                    continue

                value = COMPUTE[gate.operation](slots[gate.left], slots[gate.right])
                if type(value) is float:
                    if value - value != 0:
                        return None
                elif type(value) is complex:
                    return None

                slots.append(value)
        except (ZeroDivisionError, OverflowError):
            return None

        return slots

    def value(self, **changes: Any) -> float | None:
        """The final number; None if it is yes or no, or missing. `changes` as in `run`."""
        slots = self.run(**changes)
        if slots is None:
            return None
        final = slots[self.root]
        return final if type(final) is float else None


def circuit_of(program: Readable, table: Table | None = None) -> Circuit | None:
    """The circuit of a program; None if it cannot be read, needs earlier turns, or the table has no
    answer.
    """
    if program is None or program == "":
        return None
    circuit = _laid_flat(program)
    if circuit is not None and circuit.sources:
        values = list(circuit.values)
        for slot, step in circuit.sources:
            value = table_value(step, step.operation, table)
            if value is None:
                return None
            values[slot] = value

        return replace(circuit, values=tuple(values))

    return circuit


@once_a_text
def _laid_flat(source: Readable) -> Circuit | None:
    program = read_program(source)
    if program.error is not None:
        return None
    layer = _Layer()
    if program.number is not None:
        if program.number.value is not None:
            return layer.done(layer.literal(program.number))
        return None

    for step in program.steps:
        if step.operation in TABLE:
            layer.source(step)
        elif not layer.read(step):
            return None

    layer.gate_all(program.steps)
    return layer.done(layer.of_step[-1])


class _Layer:
    """Collects slots: literals and table values must be known before the first gate is numbered."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.keys: list[int] = []
        self.texts: list[str] = []
        self.named: list[int] = []
        self.sources: list[tuple[int, Step]] = []
        self.gates: list[Gate] = []
        self.of_step: list[int] = []
        self._arguments: list[int] = []

    def read(self, step: Step) -> bool:
        """Whether the arguments are literals and earlier steps; literals get their slots."""
        for argument in step.arguments:
            if argument.value is not None:
                self._arguments.append(self.literal(argument))
            elif argument.kind != "reference" or argument.index is None:
                return False

        return True

    def literal(self, argument: Argument) -> int:
        value = float(argument.value or 0.0)
        if not argument.text.startswith("const_"):
            self.named.append(len(self.values))
        return self._slot(value, argument.text, literal_key(value))

    def source(self, step: Step) -> None:
        row = step.arguments[0].text
        slot = self._slot(float("nan"), f"{step.operation}({row})", hash((step.operation, row)))
        self.sources.append((slot, step))

    def _slot(self, value: float, text: str, key: int) -> int:
        self.values.append(value)
        self.texts.append(text)
        self.keys.append(key)
        return len(self.values) - 1

    def gate_all(self, steps: Sequence[Step]) -> None:
        literals = iter(self._arguments)
        sources = iter(self.sources)
        for step in steps:
            if step.operation in TABLE:
                self.of_step.append(next(sources)[0])
                continue

            left, right = (
                next(literals) if argument.value is not None else self.of_step[argument.index or 0]
                for argument in step.arguments
            )
            self.gates.append(Gate(step.operation, left, right))
            sides = [self.keys[left], self.keys[right]]
            if step.operation in {"add", "multiply"}:
                sides.sort()
            self.keys.append(hash((step.operation, *sides)))
            self.of_step.append(len(self.keys) - 1)

    def done(self, root: int) -> Circuit:
        return Circuit(
            values=tuple(self.values),
            gates=tuple(self.gates),
            keys=tuple(self.keys),
            texts=tuple(self.texts),
            named=tuple(self.named),
            sources=tuple(self.sources),
            root=root,
        )


def literal_key(value: float) -> int:
    """The key of a literal of this value."""
    return hash(("literal", value))


def table_value(step: Step, operation: str, table: Table | None) -> float | None:
    """The result of a table operation on the step's row; None if the row has no number."""
    alone = Step(operation, step.arguments, operation)
    value = execute(Program(text="", tokens=(), steps=(alone,)), table)
    return value if isinstance(value, float) else None
