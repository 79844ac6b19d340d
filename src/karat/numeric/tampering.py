"""One thing exchanged in a golden program: an operand for another number of the report, or one operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from karat.numeric.circuits import Circuit, Gate, table_value
from karat.numeric.facts import Reading, TurnFacts
from karat.numeric.matches import close
from karat.numeric.programs import TABLE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["MOST_TRIED", "exchanged_operand", "exchanged_operation"]

MOST_TRIED: Final = 200_000
"""Exchanges of operands that are tried in one turn: literals × numbers of the report."""

_EXCHANGED: Final = ("add", "subtract", "multiply", "divide")
_EPSILON: Final = 1e-12


def exchanged_operand(turn: TurnFacts, _history: Sequence[TurnFacts] = ()) -> dict[str, Any] | None:
    """The one golden literal whose exchange for a number of the report gives the answer, the best fit first.

    A literal that stands in several places is exchanged in each alone and in all at once.
    A result fits when the answer is within 1 % of it; an absolute tolerance would let every
    small one fit. Of a bare-number program the whole is exchanged.
    """
    circuit, document = turn.circuit, turn.document
    if circuit is None or document is None or not turn.readings or not len(document.numbers):
        return None
    places = list(_places(circuit))
    numbers = document.numbers[: max(1, MOST_TRIED // max(1, len(places)))]
    results = _results(circuit, places, numbers)
    if results is None:
        return None
    best = _best(results, turn.readings)
    if best is None:
        return None
    row, column, reading, fits = best
    return {
        "literal": circuit.texts[places[row][0]],
        "instead": float(numbers[column]),
        **document.told(float(numbers[column])),
        "result": float(results[row, column]),
        "reading": reading,
        "tried": int(results.size),
        "fits": fits,
    }


def _places(circuit: Circuit) -> Iterator[tuple[int, ...]]:
    """The slots that are exchanged together: each literal alone, then all literals of one value."""
    by_value: dict[float, list[int]] = {}
    for slot in circuit.named:
        yield (slot,)
        by_value.setdefault(circuit.values[slot], []).append(slot)
    yield from (tuple(slots) for slots in by_value.values() if len(slots) > 1)


def _results(
    circuit: Circuit, places: Sequence[tuple[int, ...]], numbers: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64] | None:
    """What the program gives with each number (column) in each place (row); NaN for the golden number and no result."""
    import numpy as np

    rows = []
    with np.errstate(all="ignore"):
        for slots in places:
            values: list[Any] = list(circuit.values)
            for slot in slots:
                values[slot] = numbers
            after = circuit.run(values=values)
            if after is None or (root := np.asarray(after[circuit.root])).dtype != np.float64:
                return None
            golden = circuit.values[slots[0]]
            same = np.abs(numbers - golden) <= _EPSILON * abs(golden)
            rows.append(np.where(same | ~np.isfinite(root), np.nan, root))
    return np.array(rows) if rows else None


def _best(results: npt.NDArray[np.float64], readings: Sequence[Reading]) -> tuple[int, int, str, int] | None:
    """Row and column of the result nearest to the answer, its reading, and how many fit; None where none does."""
    import numpy as np

    for reading in readings:
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.abs(results - reading.number)
        fits = off <= 0.01 * np.abs(results) * (1 + 1e-9)
        count = int(np.count_nonzero(fits))
        if count:
            at = int(np.argmin(np.where(fits, off, np.inf)))
            return at // results.shape[1], at % results.shape[1], reading.by, count
    return None


def exchanged_operation(turn: TurnFacts, _history: Sequence[TurnFacts] = ()) -> dict[str, Any] | None:
    """The one step that gives the answer with another operation, or with its arguments swapped."""
    circuit = turn.circuit
    if circuit is None or turn.answer is None:
        return None
    tried = 0
    for step, before, after, slots in _tampered(circuit, turn):
        tried += 1
        if slots is None:
            continue
        reading = _gives(slots[circuit.root], turn)
        if reading is not None:
            return {"step": step, "golden": before, "instead": after, "reading": reading, "tried": tried}
    return None


def _tampered(circuit: Circuit, turn: TurnFacts) -> Iterator[tuple[int, str, str, list[Any] | None]]:
    """Each change of one step: the step's slot among the steps, what it did, what it does, and all slots after it."""
    gates = list(circuit.gates)
    for at, gate in enumerate(circuit.gates):
        for other in _changes(gate):
            gates[at] = other
            swapped = " (swapped)" if (other.left, other.right) != (gate.left, gate.right) else ""
            yield at, gate.operation, other.operation + swapped, circuit.run(gates=gates)
        gates[at] = gate
    table = turn.document.table if turn.document else None
    for slot, step in circuit.sources:
        for operation in sorted(TABLE - {step.operation}):
            value = table_value(step, operation, table)
            if value is not None:
                yield slot, step.operation, operation, circuit.run(given={slot: value})


def _changes(gate: Gate) -> Iterator[Gate]:
    """The arguments swapped, where that matters, then every other operation, then those swapped."""
    if gate.operation not in {"add", "multiply"}:
        yield Gate(gate.operation, gate.right, gate.left)
    if gate.operation == "greater":
        return
    others = [operation for operation in _EXCHANGED if operation != gate.operation]
    yield from (Gate(operation, gate.left, gate.right) for operation in others)
    yield from (Gate(operation, gate.right, gate.left) for operation in others if operation in {"subtract", "divide"})


def _gives(value: Any, turn: TurnFacts) -> str | None:
    """By which reading the value is the answer."""
    if isinstance(value, bool):
        return "answer" if turn.answer is not None and turn.answer.boolean is value else None
    if type(value) is not float:
        return None
    return next((reading.by for reading in turn.readings if close(value, reading.number)), None)
