"""Why a turn failed: one label, the first that fits, with the evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from karat_conversations.numeric.circuits import Circuit, Gate, table_value
from karat_conversations.numeric.document import Document, is_year
from karat_conversations.numeric.facts import TurnFacts
from karat_conversations.numeric.matches import close, match, near, prints_as
from karat_conversations.numeric.proofs import computed_in, replay, substitutions
from karat_conversations.numeric.reasoning import compare_programs
from karat_conversations.numeric.trees import TABLE
from karat_conversations.numeric.values import decimals, parse_value

MOST_TRIED: Final = 200_000
"""The most replacements of operands to try in one turn: literals × numbers of the report."""

MOST_SUBSTITUTED: Final = 3
"""The most wrong earlier answers to put in, one at a time, the latest first."""

MOST_SWAPPED: Final = 12
"""The most different literals to swap, two at a time."""

Evidence = dict[str, object]
Found = Evidence | None
History = Sequence[TurnFacts]
"""The turns before, oldest first."""

_EXCHANGED: Final = ("add", "subtract", "multiply", "divide")
_EPSILON: Final = 1e-12


def exchanged_operand(turn: TurnFacts, history: History = ()) -> Found:
    """The golden literals that give the answer if replaced by other numbers of the report.

    Tried first: one literal, replaced by any number, the best fit first; then one literal beside
    the agent's own wrong answer to an earlier turn. A literal that occurs in several places is
    replaced in each place alone and in all at once. A `const_` that is in the table counts as a
    literal. A bare-number program is replaced as a whole.
    """
    circuit = turn.circuit
    document = turn.document
    if circuit is None or document is None or not turn.readings or not len(document.numbers):
        return None
    evidence = _one_exchanged(turn, circuit, document, {})
    if evidence is None and circuit.computes:
        for earlier in substitutions(circuit, history, computed_in(circuit, turn.own_circuit))[
            -MOST_SUBSTITUTED:
        ]:
            evidence = _one_exchanged(
                turn,
                circuit,
                document,
                dict.fromkeys(earlier.slots, earlier.answer),
            )
            if evidence is not None:
                return {**evidence, "turn": earlier.turn, "answer": earlier.answer}

    return evidence


def _one_exchanged(
    turn: TurnFacts,
    circuit: Circuit,
    document: Document,
    given: Mapping[int, float],
) -> Found:
    import numpy as np

    # The slots that are replaced together: each literal alone, then all literals of one value
    places: list[tuple[int, ...]] = []
    by_value: dict[float, list[int]] = {}
    sources = {slot for slot, _ in circuit.sources}
    for slot, value in enumerate(circuit.values):
        if slot in circuit.named or (slot not in sources and value in document.cells):
            places.append((slot,))
            by_value.setdefault(value, []).append(slot)

    places += [tuple(slots) for slots in by_value.values() if len(slots) > 1]
    places = [slots for slots in places if not given.keys() & set(slots)]
    numbers = document.numbers[: max(1, MOST_TRIED // max(1, len(places)))]

    # The program's result with each number (column) in each place (row); NaN: the golden number,
    # or no result
    rows = []
    with np.errstate(all="ignore"):
        for slots in places:
            values: list[object] = list(circuit.values)
            for slot in slots:
                values[slot] = numbers
            after = circuit.run(values=values, given=given)
            if after is None or (root := np.asarray(after[circuit.root])).dtype != np.float64:
                return None
            golden = circuit.values[slots[0]]
            same = np.abs(numbers - golden) <= _EPSILON * abs(golden)
            if given:  # a minus next to an answer carried over is a different operation
                same |= np.abs(numbers + golden) <= _EPSILON * abs(golden)
            rows.append(np.where(same | ~np.isfinite(root), np.nan, root))

    if not rows:
        return None
    results = np.array(rows)
    for reading in turn.likely_readings:
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.abs(results - reading.number)
            fits = turn.given_by(results, reading)

        count = int(np.count_nonzero(fits))
        if count:  # the result closest to the answer
            row, column = divmod(int(np.argmin(np.where(fits, off, np.inf))), results.shape[1])
            instead = float(numbers[column])
            return {
                "literal": circuit.texts[places[row][0]],
                "instead": instead,
                **document.place_of(instead),
                "result": float(results[row, column]),
                "reading": reading.by,
                "tried": int(results.size),
                "fits": count,
            }

    return None


def swapped_operands(turn: TurnFacts, _history: History = ()) -> Found:
    """The step that gives the answer if its arguments are swapped, or two literals that do if
    swapped everywhere.
    """
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
        reading = _gives(
            circuit.value(values=[other.get(value, value) for value in circuit.values]), turn
        )
        if reading is not None:
            return {"swapped": [first, second], "reading": reading}

    return None


def exchanged_operation(turn: TurnFacts, _history: History = ()) -> Found:
    """The step that gives the answer with another operation, with its arguments in either order."""
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
            return {
                "step": step,
                "golden": before,
                "instead": after,
                "reading": reading,
                "tried": tried,
            }

    return None


def _tampered(
    circuit: Circuit, turn: TurnFacts
) -> Iterator[tuple[int, str, str, list[object] | None]]:
    """Each change of one step: its place among the steps, the old and new operation, and all slots
    after the change.
    """
    gates = list(circuit.gates)
    for at, gate in enumerate(circuit.gates):
        # Its arguments swapped, if that matters; then every other operation, in both orders
        changes = []
        if gate.operation not in {"add", "multiply"}:
            changes.append(Gate(gate.operation, gate.right, gate.left))
        for operation in _EXCHANGED if gate.operation != "greater" else ():
            if operation != gate.operation:
                changes.append(Gate(operation, gate.left, gate.right))

        for operation in ("subtract", "divide") if gate.operation != "greater" else ():
            if operation != gate.operation:
                changes.append(Gate(operation, gate.right, gate.left))

        for other in changes:
            gates[at] = other
            swapped = " (swapped)" if (other.left, other.right) != (gate.left, gate.right) else ""
            yield at, gate.operation, other.operation + swapped, circuit.run(gates=gates)

        gates[at] = gate

    table = None
    if turn.document:
        table = turn.document.table
    for slot, step in circuit.sources:
        for operation in sorted(TABLE - {step.operation}):
            value = table_value(step, operation, table)
            if value is not None:
                yield slot, step.operation, operation, circuit.run(given={slot: value})


def _gives(value: object, turn: TurnFacts) -> str | None:
    """The reading by which the value is the answer; None if it is not."""
    if isinstance(value, bool):
        return "answer" if turn.answer is not None and turn.answer.boolean is value else None
    if type(value) is not float:
        return None
    return next(
        (reading.by for reading in turn.likely_readings if turn.given_by(value, reading)), None
    )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why an answer failed.

    `evidence` is plain data, enough to check the label without the code.
    """

    label: str  # of `LABELS`
    evidence: Evidence


def diagnose(turn: TurnFacts, history: History = ()) -> Diagnosis | None:
    """The first label that fits a wrong turn; None if the turn is right.

    `history`: the turns before it, oldest first. A label is a possible explanation of the answer,
    not a fact: some fit by chance. So for `wrong_operand` and `wrong_operation` the evidence gives
    how many replacements were tried and how many gave the answer.

    >>> diagnose(TurnFacts(expected=0.1257, actual="12.57", unit="percent"))
    Diagnosis(label='scale', evidence={'factor': 100.0})
    >>> diagnose(TurnFacts(expected=0.1257, actual="0.126")) is None
    True
    """
    if turn.right:
        return None
    for label, check in _CHECKS:
        evidence = check(turn, history)
        if evidence is not None:
            return Diagnosis(label, evidence)

    return Diagnosis("other", {})


def _unanswered(turn: TurnFacts, _history: History) -> Found:
    """No answer, or only the reason for giving none."""
    if not turn.unanswered:
        return None
    if turn.answer is not None:
        return {"answer": _shown(turn.actual), "program": _shown(turn.stated)}
    if isinstance(turn.actual, str):
        answer = _shown(turn.actual)
    else:
        answer = None

    return {"answer": answer}


def _unreadable(turn: TurnFacts, _history: History) -> Found:
    golden = turn.golden
    answer = turn.answer
    if golden is None or answer is None:
        if golden is None and answer is None:
            side = "both"
        elif golden is None:
            side = "expected"
        else:
            side = "actual"

        return {"side": side, "answer": _shown(turn.actual)}

    if (golden.boolean is None) == (answer.boolean is None):
        return None
    wanted = "a number" if golden.boolean is None else "yes or no"
    return {"side": "actual", "wanted": wanted, "answer": _shown(turn.actual)}


def _shown(actual: object) -> str:
    """The answer, shortened; only its type if it is neither text nor a float, because its text may
    be of any length.
    """
    if isinstance(actual, str):
        return actual[:200]
    if isinstance(actual, bool | float):
        return repr(actual)
    return type(actual).__name__


def _scale(turn: TurnFacts, _history: History) -> Found:
    """Off by a factor; also if the answer is right in its declared unit but, rounded, over 1 % off
    the factor.
    """
    golden = turn.golden_number
    if golden is None:
        return None
    off = _off_by_power(golden, turn.number)
    if off:
        return off
    for reading in turn.readings:
        if near(golden, reading.number):
            return {"factor": 10.0**-reading.power}

    return None


def _sign(turn: TurnFacts, _history: History) -> Found:
    golden = turn.golden_number
    number = turn.number
    if golden is None or number is None or not near(abs(golden), abs(number)):
        return None
    return {"expected": golden, "answer": number}


def _scale_and_sign(turn: TurnFacts, _history: History) -> Found:
    golden = turn.golden_number
    number = turn.number
    if golden is None or number is None:
        return None
    return _off_by_power(abs(golden), abs(number))


def _off_by_power(golden: float | None, number: float | None) -> Found:
    """The factor 100 or 1000^k, up or down, by which the number is off."""
    if not golden or not number:
        return None
    ratio = number / golden
    if not 0 < ratio < math.inf:
        return None
    power = round(math.log10(ratio))
    if power == 0 or (power % 3 and abs(power) != 2):
        return None
    factor = 10.0**power
    if close(golden * factor, number):
        return {"factor": factor}
    return None


def _other_gold(turn: TurnFacts, _history: History) -> Found:
    """The two golden answers disagree, and the answer equals the one it is not compared with, at a
    usual scale.
    """
    evidence = _gold_suspect(turn, _history)
    golden = turn.golden_number
    if evidence is None or turn.answer is None:
        return None
    for which, form in evidence.items():
        value = parse_value(form)
        if value is None or (golden is not None and near(golden, value.number)):
            continue
        result = match(
            form,
            turn.actual,
            declared_unit=turn.unit if isinstance(turn.unit, str) else None,
            printed=form,
        )
        scaled = value.boolean is None and _off_by_power(value.number, turn.number)
        if result.right or result.declared or result.printed or scaled:
            return {**evidence, "answer_is": which}

    return None


def _propagated(turn: TurnFacts, history: History) -> Found:
    """A proof by replay; not needed if the answer is right in its declared unit, as its scale
    explains it.
    """
    if turn.declared:
        proof = None
    else:
        proof = replay(turn, history)

    if proof is None:
        return None
    return {"proof": proof.as_dict()}


def _rounding(turn: TurnFacts, _history: History) -> Found:
    """Equal if the number with more digits is rounded to the digits of the other, and not to
    nothing.

    An executed golden answer is exact; only a printed one was rounded to its digits.
    """
    golden = turn.golden
    answer = turn.answer
    if (
        golden is None
        or answer is None
        or not turn.readings
        or not golden.number
        or not answer.number
    ):
        return None

    executed = parse_value(turn.executed)
    printed = isinstance(turn.expected, str) and (
        executed is None or executed.number != golden.number
    )
    of_golden = decimals(golden) if printed else None
    of_answer = decimals(answer)
    if of_answer is None:
        return None
    for reading in turn.readings:
        digits = of_answer - reading.power
        digits = max(-308, digits if of_golden is None else min(digits, of_golden))
        unit = 10.0**-digits
        off = abs(reading.number - golden.number)
        if (
            off <= unit / 2 * (1 + 1e-9)
            and abs(golden.number) >= unit / 2
            and abs(reading.number) >= unit / 2
        ):
            return {"decimals": digits, "reading": reading.by}

    return None


def _near_miss(turn: TurnFacts, _history: History) -> Found:
    golden = turn.golden_number
    for reading in turn.readings:
        if golden and abs(reading.number - golden) <= 0.05 * abs(golden) * (1 + 1e-9):
            return {"off_by": (reading.number - golden) / abs(golden), "reading": reading.by}

    return None


def _reciprocal(turn: TurnFacts, _history: History) -> Found:
    golden = turn.golden_number
    if not golden or math.isinf(1 / golden):
        return None
    for reading in turn.readings:
        if close(1 / golden, reading.number):
            return {"reciprocal": 1 / golden, "reading": reading.by}

    return None


def _ratio_vs_change(turn: TurnFacts, _history: History) -> Found:
    """Off by exactly 1, if the golden program divides or is unknown."""
    golden = turn.golden_number
    circuit = turn.circuit
    if circuit is not None and not any(gate.operation == "divide" for gate in circuit.gates):
        return None
    for reading in turn.likely_readings if golden is not None else ():
        for step in (1, -1):
            if golden is not None and abs(golden + step - reading.number) < 0.001:
                return {"off_by": step, "reading": reading.by}

    return None


def _power_of_ten(turn: TurnFacts, _history: History) -> Found:
    """Off by a power of ten that people do not use as a scale: 10, 10,000 …"""
    golden = turn.golden_number
    number = turn.number
    if not golden or not number or not 0 < abs(number / golden) < math.inf:
        return None
    factor = 10.0 ** round(math.log10(abs(number / golden)))
    if factor != 1 and close(abs(golden) * factor, abs(number)):
        return {"factor": factor}
    return None


def _stopped_early(turn: TurnFacts, _history: History) -> Found:
    """The answer is the result of a step before the last one, or a number that the last steps
    needed.
    """
    circuit = turn.circuit
    if circuit is None or not turn.readings or not circuit.computes:
        return None
    slots = circuit.run()
    if slots is None:
        return None
    steps = [*(slot for slot, _ in circuit.sources), *range(len(circuit.values), len(slots))]
    for at, slot in enumerate(steps):
        if slot == circuit.root:
            continue
        evidence = _is_slot(slots[slot], turn)
        if evidence is not None:
            return {"step": at, **evidence}

    if _changed(circuit):
        return None
    return next(
        (hit for slot in circuit.named if (hit := _is_slot(slots[slot], turn)) is not None), None
    )


def _is_slot(value: object, turn: TurnFacts) -> Found:
    if type(value) is not float:
        return None
    reading = _gives(value, turn)
    if reading is None:
        return None
    return {"value": value, "reading": reading}


def _changed(circuit: Circuit) -> tuple[int, int, bool] | None:
    """The slots of the two levels whose change the golden program computes, and whether it is a
    relative change.

    Constants may scale the change.
    """
    first = len(circuit.values)
    slot = circuit.root
    relative = False
    while slot >= first and (gate := circuit.gates[slot - first]).operation in {
        "divide",
        "multiply",
    }:
        constant = gate.right < first and gate.right not in circuit.named
        relative = relative or not (constant or gate.operation == "multiply")
        slot = gate.left

    if slot < first or circuit.gates[slot - first].operation != "subtract":
        return None
    gate = circuit.gates[slot - first]
    return gate.left, gate.right, relative


def _level_vs_change(turn: TurnFacts, _history: History) -> Found:
    """A level instead of a change between levels, a change instead of a level, or a relative for an
    absolute change.

    A level's change is the one from another number in its row or column of the table.
    """
    circuit = turn.circuit
    golden = turn.golden_number
    if circuit is None or not turn.readings or golden is None:
        return None
    slots = circuit.run()
    if slots is None:
        return None
    if not circuit.computes:
        document = turn.document
        if document is None:
            return None
        place = document.cells.get(golden)
        if place is None:
            return None
        for base in (
            number
            for (row, column), number in document.grid.items()
            if row == place[0] or column == place[1]
        ):
            if base == golden:
                continue
            for change in (
                golden - base,
                _quotient(golden - base, base),
                100 * _quotient(golden - base, base),
            ):
                evidence = _is_slot(change, turn)
                if evidence is not None:
                    return {"level": golden, "from": base, **evidence}

        return None

    levels = _changed(circuit)
    if levels is None:
        return None
    new = slots[levels[0]]
    old = slots[levels[1]]
    for level in (new, old):
        evidence = _is_slot(level, turn)
        if evidence is not None:
            return {"level": level, **evidence}

    for base in () if levels[2] else (old, new):
        evidence = _is_slot(_quotient(new - old, base), turn)
        if evidence is not None:
            return {"relative_to": base, **evidence}

    return None


def _quotient(above: float, below: float) -> float:
    """NaN if it is not a usable number."""
    if below and math.isfinite(above / below):
        return above / below
    return math.nan


def _literal_operand(turn: TurnFacts, _history: History) -> Found:
    """For a bare-number program: the answer is, digit for digit, another number of the report."""
    circuit = turn.circuit
    document = turn.document
    number = turn.number
    if (
        circuit is None
        or circuit.computes
        or document is None
        or number is None
        or number not in document.places
        or is_year(number)
    ):
        return None

    return {
        "literal": circuit.texts[circuit.root],
        "instead": number,
        **document.place_of(number),
        "result": number,
        "reading": "answer",
        "tried": len(document.numbers),
        "fits": 1,
    }


def _own_program(turn: TurnFacts, history: History) -> tuple[float, float, float] | None:
    """For the agent's own program: F1 of its operations, recall and precision of its numbers, as in
    `Reasoning`.

    Only operations of this turn count; the same for numbers, unless earlier turns contained them
    all. None if the program does not give the agent's answer.
    """
    if turn.stated is None or turn.program is None:
        return None
    earlier = [(past.program, past.expected, past.actual) for past in history]
    table = None
    if turn.document is not None:
        table = turn.document.table
    unit = turn.unit if isinstance(turn.unit, str) else None
    chain = compare_programs(
        turn.program,
        turn.stated,
        earlier=earlier,
        table=table,
        expected=turn.expected,
        stated=turn.actual,
        unit=unit,
    )
    step = chain.step
    if step is None or not chain.self_consistent or step.logic_f1 is None:
        return None
    numbers = step if step.operand_recall is not None else chain
    if numbers.operand_recall is None:
        return None
    precision = 1.0 if numbers.operand_precision is None else numbers.operand_precision
    return step.logic_f1, numbers.operand_recall, precision


def _own_operand(turn: TurnFacts, history: History) -> Found:
    """The agent's own program has the golden operations, but other numbers."""
    scores = _own_program(turn, history)
    if scores and scores[0] == 1.0 and scores[1:] != (1.0, 1.0):
        return {"program": _shown(turn.stated)}
    return None


def _own_operation(turn: TurnFacts, history: History) -> Found:
    """The agent's own program has other operations, on some golden numbers or on nothing but
    earlier answers.
    """
    scores = _own_program(turn, history)
    if scores is None:
        return None
    logic, recall, precision = scores
    alike = recall > 0.0 or precision == 1.0
    if logic < 1.0 and alike:
        return {"program": _shown(turn.stated)}
    return None


def _repeats_earlier(turn: TurnFacts, history: History) -> Found:
    """The answer repeats an earlier answer of the agent, or an earlier golden answer."""
    number = turn.number
    for whose in ("answer", "golden"):
        for back, earlier in enumerate(reversed(history), 1):
            if whose == "answer" and earlier.unanswered:
                continue
            value = earlier.number if whose == "answer" else earlier.golden_number
            if number is not None and value is not None and close(value, number):
                return {"turn": len(history) - back, "whose": whose, "value": value}

    return None


def _gold_suspect(turn: TurnFacts, _history: History) -> Found:
    """The two golden answers disagree: executed is neither near printed nor rounds to it, in no
    usual scale.
    """
    if turn.executed is turn.expected:
        executed = turn.golden
    else:
        executed = parse_value(turn.executed)

    printed = parse_value(turn.printed)
    if (
        executed is None
        or printed is None
        or (executed.boolean is not None and executed.boolean is printed.boolean)
    ):
        return None

    for scale in _SCALES if executed.boolean is None else ():
        scaled = executed.number * scale
        if near(printed.number, scaled) or prints_as(
            turn.printed, printed, executed._replace(number=scaled)
        ):
            return None

    return {"executed": turn.executed, "printed": turn.printed}


_SCALES: Final = (1.0, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6)

_Check = Callable[[TurnFacts, History], Found]
_CHECKS: Final[Sequence[tuple[str, _Check]]] = (
    ("unanswered", _unanswered),
    ("unreadable", _unreadable),
    ("gold_suspect", _other_gold),
    ("propagated", _propagated),
    ("scale", _scale),
    ("sign", _sign),
    ("scale_and_sign", _scale_and_sign),
    ("rounding", _rounding),
    ("reciprocal", _reciprocal),
    ("ratio_vs_change", _ratio_vs_change),
    ("swapped_operands", swapped_operands),
    ("wrong_operand", _own_operand),
    ("wrong_operand", _literal_operand),
    ("stopped_early", _stopped_early),
    ("level_vs_change", _level_vs_change),
    ("wrong_operand", exchanged_operand),
    ("wrong_operation", exchanged_operation),
    ("wrong_operation", _own_operation),
    ("near_miss", _near_miss),
    ("power_of_ten", _power_of_ten),
    ("repeats_earlier", _repeats_earlier),
    ("gold_suspect", _gold_suspect),
)
"""In this order: what is proved before what fits, and a fit of one number before a fit of one in
thousands.
"""

LABELS: Final[tuple[str, ...]] = (*dict.fromkeys(label for label, _ in _CHECKS), "other")
"""All labels, in the order in which they are first tried."""

MEANINGS: Final[Mapping[str, str]] = {
    "unanswered": "nothing was answered, or that it is not known",
    "unreadable": "one side is not a number, or yes or no is compared with a number",
    "gold_suspect": (
        "printed and executed golden answer disagree; the answer is the other one, or nothing fits"
    ),
    "propagated": (
        "what the golden program gives with the agent's own wrong earlier answers: proved by replay"
    ),
    "scale": "off by a factor of 100 or of a power of 1,000",
    "sign": "right but for the sign",
    "scale_and_sign": "right but for such a factor and the sign",
    "rounding": "equal when rounded to the digits of the shorter one",
    "reciprocal": "the golden number turned over",
    "ratio_vs_change": "off by exactly 1, as a ratio is from a change",
    "swapped_operands": "what the golden program gives with two of its operands exchanged",
    "wrong_operand": (
        "what the golden program gives with other numbers, of the report or of the agent's own "
        "program"
    ),
    "stopped_early": "what a step before the last one gives, or one of its numbers",
    "level_vs_change": (
        "a level for a change, a change for a level, or a relative change for an absolute one"
    ),
    "wrong_operation": (
        "what the golden program gives with one other operation, or its numbers in another program"
    ),
    "near_miss": "off by 1 to 5 %",
    "power_of_ten": "off by 10, 10,000 or another power of ten that is not a usual scale",
    "repeats_earlier": "an answer that was given before",
    "other": "nothing fits",
}
"""What each label says about an answer, in a phrase."""
