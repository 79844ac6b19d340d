"""Why a turn failed: one label, the first that fits, with the evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from karat.numeric.document import Document
from karat.numeric.facts import TurnFacts
from karat.numeric.matches import close, match, near
from karat.numeric.proofs import Proof, replay
from karat.numeric.rounding import decimals
from karat.numeric.tampering import exchanged_operand, exchanged_operation
from karat.numeric.values import fold, parse_value

__all__ = ["LABELS", "MEANINGS", "Diagnosis", "Document", "Label", "Proof", "TurnFacts", "diagnose", "replay"]

Label = Literal[
    "unanswered",
    "unreadable",
    "scale",
    "sign",
    "scale_and_sign",
    "propagated",
    "rounding",
    "near_miss",
    "reciprocal",
    "ratio_vs_change",
    "wrong_operand",
    "wrong_operation",
    "stopped_early",
    "repeats_earlier",
    "gold_suspect",
    "other",
]
Evidence = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why an answer failed. `evidence` is plain data, enough to check the label without the code."""

    label: Label
    evidence: Evidence


def diagnose(turn: TurnFacts, history: Sequence[TurnFacts] = ()) -> Diagnosis | None:
    """The first label that fits a turn that is not right; None where it is right.

    `history` are the turns before it, oldest first. A label names what would explain the answer, not
    what happened: of `wrong_operand` and `wrong_operation` the evidence says how many
    exchanges were tried and how many of them gave the answer, for some fit by chance.

    >>> diagnose(TurnFacts(expected=0.1257, actual="12.57", unit="percent"))
    Diagnosis(label='scale', evidence={'factor': 100.0})
    >>> diagnose(TurnFacts(expected=0.1257, actual="0.126")) is None
    True
    """
    if turn.right:
        return None
    for label, check in _CHECKS.items():
        evidence = check(turn, history)
        if evidence is not None:
            return Diagnosis(label, evidence)
    return Diagnosis("other", {})


_NO_ANSWER = frozenset(
    {
        *("", "-", "?", "na", "n.a.", "n/a", "nan", "nil", "none", "not applicable", "not available", "not found"),
        *("null", "unanswerable", "undefined", "unknown", "cannot be determined", "cannot determine"),
    }
)


def _unanswered(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    """Also what begins with N/A and goes on to say why."""
    actual = turn.actual
    if actual is None or (isinstance(actual, float) and math.isnan(actual)):
        return {"answer": None}
    if not isinstance(actual, str):
        return None
    said = fold(actual[:1_000]).strip(" .!<>[]()\"'`*_")
    nothing = said in _NO_ANSWER or said.startswith(("n/a ", "n/a:", "n/a,", "n/a(", "n/a-"))
    return {"answer": _shown(actual)} if nothing and turn.answer is None else None


def _unreadable(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    golden, answer = turn.golden, turn.answer
    if golden is None or answer is None:
        side = "both" if golden is None and answer is None else "expected" if golden is None else "actual"
        return {"side": side, "answer": _shown(turn.actual)}
    if (golden.boolean is None) == (answer.boolean is None):
        return None
    wanted = "a number" if golden.boolean is None else "yes or no"
    return {"side": "actual", "wanted": wanted, "answer": _shown(turn.actual)}


def _shown(actual: Any) -> str:
    """The answer, short; of what is neither text nor a float only its type: its text may be of any length."""
    if isinstance(actual, str):
        return actual[:200]
    return repr(actual) if isinstance(actual, bool | float) else type(actual).__name__


def _scale(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    return _off_by_power(turn.golden_number, turn.number)


def _sign(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    golden, number = turn.golden_number, turn.number
    if golden is None or number is None or not near(abs(golden), abs(number)):
        return None
    return {"expected": golden, "answer": number}


def _scale_and_sign(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    golden, number = turn.golden_number, turn.number
    return None if golden is None or number is None else _off_by_power(abs(golden), abs(number))


def _off_by_power(golden: float | None, number: float | None) -> Evidence | None:
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
    return {"factor": factor} if close(golden * factor, number) else None


def _propagated(turn: TurnFacts, history: Sequence[TurnFacts]) -> Evidence | None:
    proof = replay(turn, history)
    return None if proof is None else {"proof": proof.told()}


def _rounding(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    """Equal when the one with more digits is rounded to the digits of the other, and not to nothing.

    An executed golden answer is exact: only a printed one has digits that it was rounded to.
    """
    golden, answer = turn.golden, turn.answer
    if golden is None or answer is None or not turn.readings or not golden.number or not answer.number:
        return None
    executed = parse_value(turn.executed)
    printed = isinstance(turn.expected, str) and (executed is None or executed.number != golden.number)
    of_golden, of_answer = decimals(golden) if printed else None, decimals(answer)
    if of_answer is None:
        return None
    for reading in turn.readings:
        digits = of_answer - reading.power
        digits = max(-308, digits if of_golden is None else min(digits, of_golden))
        unit = 10.0**-digits
        off = abs(reading.number - golden.number)
        if off <= unit / 2 * (1 + 1e-9) and abs(golden.number) >= unit / 2 and abs(reading.number) >= unit / 2:
            return {"decimals": digits, "reading": reading.by}
    return None


def _near_miss(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    golden = turn.golden_number
    for reading in turn.readings:
        if golden and abs(reading.number - golden) <= 0.05 * abs(golden) * (1 + 1e-9):
            return {"off_by": (reading.number - golden) / abs(golden), "reading": reading.by}
    return None


def _reciprocal(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    golden = turn.golden_number
    if not golden or math.isinf(1 / golden):
        return None
    for reading in turn.readings:
        if close(1 / golden, reading.number):
            return {"reciprocal": 1 / golden, "reading": reading.by}
    return None


def _ratio_vs_change(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    golden = turn.golden_number
    for reading in turn.readings if golden is not None else ():
        for step in (1, -1):
            if golden is not None and near(golden + step, reading.number):
                return {"off_by": step, "reading": reading.by}
    return None


def _stopped_early(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    """The answer is what a step before the last one gives."""
    circuit = turn.circuit
    slots = circuit.run() if circuit is not None and turn.readings else None
    if circuit is None or slots is None:
        return None
    steps = [*(slot for slot, _ in circuit.sources), *range(len(circuit.values), len(slots))]
    for at, slot in enumerate(steps):
        value = slots[slot]
        if slot == circuit.root or type(value) is not float:
            continue
        for reading in turn.readings:
            if close(value, reading.number):
                return {"step": at, "value": value, "reading": reading.by}
    return None


def _repeats_earlier(turn: TurnFacts, history: Sequence[TurnFacts]) -> Evidence | None:
    """The answer is one that the agent gave before, or a golden one from before."""
    number = turn.number
    for whose in ("answer", "golden"):
        for back, earlier in enumerate(reversed(history), 1):
            value = earlier.number if whose == "answer" else earlier.golden_number
            if number is not None and value is not None and close(value, number):
                return {"turn": len(history) - back, "whose": whose, "value": value}
    return None


def _gold_suspect(turn: TurnFacts, _history: Sequence[TurnFacts]) -> Evidence | None:
    """The two golden answers disagree: executed is neither near printed nor rounds to it."""
    executed, printed = parse_value(turn.executed), parse_value(turn.printed)
    if executed is None or printed is None:
        return None
    found = match(turn.printed, turn.executed, printed=turn.printed)
    return None if found.right or found.printed else {"executed": turn.executed, "printed": turn.printed}


_CHECKS: Final[Mapping[Label, Callable[[TurnFacts, Sequence[TurnFacts]], Evidence | None]]] = {
    "unanswered": _unanswered,
    "unreadable": _unreadable,
    "scale": _scale,
    "sign": _sign,
    "scale_and_sign": _scale_and_sign,
    "propagated": _propagated,
    "rounding": _rounding,
    "near_miss": _near_miss,
    "reciprocal": _reciprocal,
    "ratio_vs_change": _ratio_vs_change,
    "wrong_operand": exchanged_operand,
    "wrong_operation": exchanged_operation,
    "stopped_early": _stopped_early,
    "repeats_earlier": _repeats_earlier,
    "gold_suspect": _gold_suspect,
}

LABELS: Final[tuple[Label, ...]] = (*_CHECKS, "other")
"""All labels, in the order in which they are tried."""

MEANINGS: Final[Mapping[Label, str]] = {
    "unanswered": "nothing was answered, or that it is not known",
    "unreadable": "one side is no number, or yes or no stands against a number",
    "scale": "off by a factor of 100 or of a power of 1,000",
    "sign": "right but for the sign",
    "scale_and_sign": "right but for such a factor and the sign",
    "propagated": "what the golden program gives with the agent's own wrong earlier answers: proved by replay",
    "rounding": "equal when rounded to the digits of the shorter one",
    "near_miss": "off by 1 to 5 %",
    "reciprocal": "the golden number turned over",
    "ratio_vs_change": "off by exactly 1, as a ratio is from a change",
    "wrong_operand": "what the golden program gives with another number of the report in one place",
    "wrong_operation": "what the golden program gives with one other operation, or its arguments swapped",
    "stopped_early": "what a step before the last one gives",
    "repeats_earlier": "an answer that was given before",
    "gold_suspect": "nothing fits, and the printed and the executed golden answer disagree",
    "other": "nothing fits",
}
"""What each label says of an answer, in half a sentence."""
