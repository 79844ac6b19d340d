"""Golden programs with something exchanged: operands for other numbers of the report, or one operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from karat.numeric.circuits import Circuit, Gate, table_value
from karat.numeric.facts import TurnFacts
from karat.numeric.programs import TABLE
from karat.numeric.proofs import substitutions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from karat.numeric.document import Document

__all__ = ["MOST_TRIED", "exchanged_operand", "exchanged_operation", "swapped_operands"]

MOST_TRIED: Final = 200_000
"""Exchanges of operands that are tried in one turn: literals × numbers of the report."""

MOST_SUBSTITUTED: Final = 3
"""Wrong earlier answers that are put in, one at a time, the latest ones."""

MOST_MOVES: Final = 400
"""Rows and columns by which the cells of a program are moved."""

MOST_ALONG: Final = 12
"""Numbers of the text by which those of a program are moved."""

MOST_SWAPPED: Final = 12
"""Different literals that are swapped, two at a time."""

_EXCHANGED: Final = ("add", "subtract", "multiply", "divide")
_EPSILON: Final = 1e-12


def exchanged_operand(turn: TurnFacts, history: Sequence[TurnFacts] = ()) -> dict[str, Any] | None:
    """The golden literals whose exchange for numbers of the report gives the answer.

    First one literal, for any number, the best fit first; then one literal where the
    agent's own wrong answer of an earlier turn is put in for what it stands for; then all cells
    of the table at once, for those of another row or column. A literal that stands in
    several places is exchanged in each alone and in all at once. A `const_` that is a number of
    the table is a literal too. Of a bare-number program the whole is exchanged.
    """
    circuit, document = turn.circuit, turn.document
    if circuit is None or document is None or not turn.readings or not len(document.numbers):
        return None
    evidence = _one_exchanged(turn, circuit, document, {})
    if evidence is None and circuit.computes:
        for earlier in substitutions(circuit, history)[-MOST_SUBSTITUTED:]:
            evidence = _one_exchanged(turn, circuit, document, dict.fromkeys(earlier.slots, earlier.answer))
            if evidence is not None:
                return {**evidence, "turn": earlier.turn, "answer": earlier.answer}
        evidence = _another_row(turn, circuit, document)
    return evidence


def _one_exchanged(
    turn: TurnFacts, circuit: Circuit, document: Document, given: Mapping[int, float]
) -> dict[str, Any] | None:
    places = [slots for slots in _places(circuit, document) if not given.keys() & set(slots)]
    numbers = document.numbers[: max(1, MOST_TRIED // max(1, len(places)))]
    results = _results(circuit, places, numbers, given)
    best = None if results is None else _best(results, turn)
    if best is None or results is None:
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


def _another_row(turn: TurnFacts, circuit: Circuit, document: Document) -> dict[str, Any] | None:
    """All literals of the table moved by as many rows, or columns; or all of the text by as many numbers of it."""
    rows, columns = (max((place[axis] for place in document.grid), default=0) for axis in (0, 1))
    down = [(rows_down, 0) for rows_down in range(-rows, rows + 1)][:MOST_MOVES]
    right = [(0, columns_right) for columns_right in range(-columns, columns + 1)][:MOST_MOVES]
    along = [(0, numbers_on) for numbers_on in range(-MOST_ALONG, MOST_ALONG + 1)]
    for grid, cells, moves in (
        (document.grid, document.cells, [*down, *right]),
        (document.sequence, document.in_sequence, along),
    ):
        at = {slot: cells[circuit.values[slot]] for slot in circuit.named if circuit.values[slot] in cells}
        if len(set(at.values())) < 2:
            continue
        for move in moves:
            instead = {slot: grid.get((place[0] + move[0], place[1] + move[1])) for slot, place in at.items()}
            if not any(move) or None in instead.values():
                continue
            value = circuit.value(values=[instead.get(slot, value) for slot, value in enumerate(circuit.values)])
            reading = _gives(value, turn)
            if reading is not None:
                return {"moved": list(move), "instead": [*instead.values()], "result": value, "reading": reading}
    return None


def _places(circuit: Circuit, document: Document) -> Iterator[tuple[int, ...]]:
    """The slots that are exchanged together: each literal alone, then all literals of one value."""
    by_value: dict[float, list[int]] = {}
    sources = {slot for slot, _ in circuit.sources}
    for slot, value in enumerate(circuit.values):
        if slot in circuit.named or (slot not in sources and value in document.cells):
            yield (slot,)
            by_value.setdefault(value, []).append(slot)
    yield from (tuple(slots) for slots in by_value.values() if len(slots) > 1)


def _results(
    circuit: Circuit,
    places: Sequence[tuple[int, ...]],
    numbers: npt.NDArray[np.float64],
    given: Mapping[int, float],
) -> npt.NDArray[np.float64] | None:
    """What the program gives with each number (column) in each place (row); NaN for the golden number and no result."""
    import numpy as np

    rows = []
    with np.errstate(all="ignore"):
        for slots in places:
            values: list[Any] = list(circuit.values)
            for slot in slots:
                values[slot] = numbers
            after = circuit.run(values=values, given=given)
            if after is None or (root := np.asarray(after[circuit.root])).dtype != np.float64:
                return None
            golden = circuit.values[slots[0]]
            same = np.abs(numbers - golden) <= _EPSILON * abs(golden)
            if given:  # a minus beside an answer that was carried on is another operation
                same |= np.abs(numbers + golden) <= _EPSILON * abs(golden)
            rows.append(np.where(same | ~np.isfinite(root), np.nan, root))
    return np.array(rows) if rows else None


def _best(results: npt.NDArray[np.float64], turn: TurnFacts) -> tuple[int, int, str, int] | None:
    """Row and column of the result nearest to the answer, its reading, and how many fit; None where none does."""
    import numpy as np

    for reading in turn.likely_readings:
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.abs(results - reading.number)
            fits = turn.given_by(results, reading)
        count = int(np.count_nonzero(fits))
        if count:
            at = int(np.argmin(np.where(fits, off, np.inf)))
            return at // results.shape[1], at % results.shape[1], reading.by, count
    return None


def swapped_operands(turn: TurnFacts, _history: Sequence[TurnFacts] = ()) -> dict[str, Any] | None:
    """The step that gives the answer with its arguments swapped, or the two literals that do, swapped everywhere."""
    circuit = turn.circuit
    if circuit is None or not turn.readings:
        return None
    gates = list(circuit.gates)
    for at, gate in enumerate(circuit.gates):
        gates[at] = Gate(gate.operation, gate.right, gate.left)
        reading = _gives(circuit.value(gates=gates), turn)
        if reading is not None:
            return {"step": at, "golden": gate.operation, "reading": reading}
        gates[at] = gate
    literals = sorted({circuit.values[slot] for slot in circuit.named})[:MOST_SWAPPED]
    for first, second in combinations(literals, 2):
        other = {first: second, second: first}
        reading = _gives(circuit.value(values=[other.get(value, value) for value in circuit.values]), turn)
        if reading is not None:
            return {"swapped": [first, second], "reading": reading}
    return None


def exchanged_operation(turn: TurnFacts, _history: Sequence[TurnFacts] = ()) -> dict[str, Any] | None:
    """The one step that gives the answer with another operation, its arguments in either order."""
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
    return next((reading.by for reading in turn.likely_readings if turn.given_by(value, reading)), None)
