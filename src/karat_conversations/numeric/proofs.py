"""Proves that an error was carried over: executes the golden program with the agent's own earlier
answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from karat_conversations.numeric.circuits import Circuit, literal_key
from karat_conversations.numeric.facts import Reading, TurnFacts
from karat_conversations.numeric.matches import near
from karat_conversations.numeric.programs import read_program

MOST_TURNS: Final = 3
"""The most earlier turns to replace at once."""

MOST_CANDIDATES: Final = 12
"""The most wrong earlier turns to combine: the latest of those that the program contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """With the agent's own answers to `turns`, the golden program gives `result`, which is what the
    agent answered.
    """

    turns: tuple[int, ...]  # zero-based
    replaced: tuple[float | None, ...]  # the golden values, one per turn
    by: tuple[float, ...]  # the agent's answers that replace them
    program: str
    result: float
    reading: str  # "answer", or "percent": the answer divided by 100
    kept: tuple[int, ...]  # the steps of the golden program in which nothing was replaced

    def as_dict(self) -> dict[str, object]:
        """The proof as plain data, sufficient to compute it again."""
        rows = zip(self.turns, self.replaced, self.by, strict=True)
        proof: dict[str, object] = {
            "turns": list(self.turns),
            "substitutions": [
                {"turn": turn, "golden": golden, "answer": answer} for turn, golden, answer in rows
            ],
            "program": self.program,
            "result": self.result,
            "reading": self.reading,
        }
        if self.kept:
            proof["kept"] = list(self.kept)
        return proof


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A wrong earlier turn whose program occurs in this one's: the agent's answer, and the slots it
    replaces.
    """

    turn: int
    golden: float | None
    answer: float
    slots: tuple[int, ...]


def replay(turn: TurnFacts, history: Sequence[TurnFacts]) -> Proof | None:
    """The proof that this answer follows from wrong earlier ones, or None.

    The golden program must have an operation. Each of its sub-trees that is an earlier turn's
    golden program (for a bare-number program: each literal of its value that is not a `const_`) is
    replaced by the agent's answer to that turn, for turns that were answered, but not numerically
    right, one, two or three at a time. Nothing is replaced in a sub-tree that the agent's own
    program computes in this turn. Sub-trees that an earlier turn got right are replaced inside
    first, then kept. It is proved if the result matches the answer by `numerical`, or a hundredth
    of it if percent was declared.
    """
    return next(proofs(turn, history), None)


def would_be_right(turn: TurnFacts, history: Sequence[TurnFacts]) -> bool:
    """Whether the turn is right, or provably wrong only because earlier ones were.

    A proof through a declared percent does not count: with right earlier turns the answer would be
    a hundred times the golden one, which is not numerically right.
    """
    return turn.right or any(proof.reading == "answer" for proof in proofs(turn, history))


def proofs(turn: TurnFacts, history: Sequence[TurnFacts]) -> Iterator[Proof]:
    """Every proof, those with the fewest turns first."""
    circuit = turn.circuit
    readings = turn.readings
    if circuit is None or not circuit.computes or not readings:
        return
    readings = tuple(reading for reading in readings if reading.power in {0, -2})
    own = computed_in(circuit, turn.own_circuit)
    right = own.union(*(computed_in(circuit, past.circuit) for past in history if past.numerical))
    for kept in (own,) if right == own else (own, right):
        wrong = substitutions(circuit, history, kept)[-MOST_CANDIDATES:]
        steps = tuple(
            slot - len(circuit.values) for slot in sorted(kept) if slot >= len(circuit.values)
        )
        for size in range(1, MOST_TURNS + 1):
            for some in combinations(wrong, size):
                proof = _proof(turn, circuit, readings, some, kept=steps)
                if proof is not None:
                    yield proof


def computed_in(circuit: Circuit, other: Circuit | None) -> frozenset[int]:
    """The slots of the circuit that belong to sub-trees with an operation which the other one
    computes, too.
    """
    if other is None or not other.gates:
        return frozenset()
    keys = frozenset(other.keys[len(other.values) :])
    shared = (
        slot for slot in range(len(circuit.values), len(circuit.keys)) if circuit.keys[slot] in keys
    )
    return frozenset().union(*map(circuit.below, shared))


def substitutions(
    circuit: Circuit, history: Iterable[TurnFacts], kept: frozenset[int]
) -> list[_Earlier]:
    """The wrong earlier turns whose program occurs in this one's, outside of `kept`, with the
    agent's answers there.
    """
    wrong = []
    for at, earlier in enumerate(history):
        if (
            earlier.numerical
            or earlier.unanswered
            or earlier.number is None
            or earlier.circuit is None
        ):
            continue

        # Steps written like its last one, or literals of its value
        part = earlier.circuit
        places: Iterable[int] = circuit.named
        if part.computes:
            places = range(len(circuit.keys))
            key = part.keys[part.root]
        else:
            key = literal_key(part.values[part.root])

        alike = (slot for slot in places if circuit.keys[slot] == key)
        slots = tuple(slot for slot in alike if slot not in kept)
        if slots:
            wrong.append(_Earlier(at, earlier.circuit.value(), earlier.number, slots))

    return wrong


def _proof(
    turn: TurnFacts,
    circuit: Circuit,
    readings: Sequence[Reading],
    some: Sequence[_Earlier],
    *,
    kept: tuple[int, ...],
) -> Proof | None:
    given: dict[int, float] = {}
    for earlier in some:
        given.update(dict.fromkeys(earlier.slots, earlier.answer))
    result = circuit.value(given=given)
    if result is None:
        return None
    for reading in readings:
        if near(result, reading.number):
            return Proof(
                turns=tuple(earlier.turn for earlier in some),
                replaced=tuple(earlier.golden for earlier in some),
                by=tuple(earlier.answer for earlier in some),
                program=turn.program
                if isinstance(turn.program, str)
                else read_program(turn.program).text,
                result=result,
                reading=reading.by,
                kept=kept,
            )

    return None
