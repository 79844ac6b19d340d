"""Operations as multisets and sequences: what of the golden ones is in the prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from karat.numeric.trees import Program, Step

__all__ = [
    "MOST_OPERATIONS",
    "PERCENTAGES",
    "Shares",
    "named_operations",
    "operation_shares",
    "operations_attempted",
    "order_score",
    "settled",
    "step_operations",
]

MOST_OPERATIONS: Final = 1_000
"""Operations of a prediction that are looked at."""

_PERHAPS: Final = "multiply?"  # the multiply of a percentage: it counts while golden ones are unmatched
PERCENTAGES: Final = {"percentage": ("divide", _PERHAPS), "percentage_change": ("subtract", "divide")}


class Shares(NamedTuple):
    """How many golden ones were found and how many predicted ones are golden; 0 to 1."""

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """The harmonic mean; 0 where both are 0."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


def named_operations(names: Iterable[str]) -> list[str]:
    """The basic operations of a list of names, in its order; `percentage` and `percentage_change` written out."""
    found: list[str] = []
    for name in names:
        word = name.strip().lower()
        found.extend(PERCENTAGES.get(word, (word,)))
        if len(found) >= MOST_OPERATIONS:
            break
    return found


def step_operations(steps: Iterable[Step]) -> list[str]:
    """The operations of a prediction's steps; of a plan's percentages only what counts for them."""
    found: list[str] = []
    for step in steps:
        if step.operation != "multiply" or step.said not in PERCENTAGES:
            found.append(step.operation)
        elif step.said == "percentage":
            found.append(_PERHAPS)
    return found


def operations_attempted(program: Program) -> int | None:
    """How many operations an agent's program has, whatever the golden one asks for; None where it cannot be read.

    As in the comparison with the golden program, `percentage(a, b)` is one divide and `percentage_change` a
    subtract and a divide: the factor 100 is a matter of the unit.
    """
    if not program.readable:
        return None
    return sum(name != _PERHAPS for name in step_operations(program.steps))


def settled(predicted: Sequence[str], golden: Sequence[str]) -> list[str]:
    """The predicted operations, with the multiply of a percentage only while golden multiplies remain unmatched."""
    if _PERHAPS not in predicted:
        return list(predicted)
    remaining = golden.count("multiply") - predicted.count("multiply")
    found = []
    for operation in predicted:
        if operation != _PERHAPS:
            found.append(operation)
        elif remaining > 0:
            found.append("multiply")
            remaining -= 1
    return found


def operation_shares(golden: Sequence[str], predicted: Sequence[str]) -> Shares:
    """Recall and precision of multisets; with nothing on one side 1.0 iff there is nothing on the other."""
    if not golden or not predicted:
        same = float(not golden and not predicted)
        return Shares(same, same)
    shared = (Counter(golden) & Counter(predicted)).total()
    return Shares(shared / len(golden), shared / len(predicted))


def order_score(golden: Sequence[str], predicted: Sequence[str]) -> float:
    """The longest common subsequence over the longer length; 1.0 of two empty ones."""
    if golden == predicted:
        return 1.0
    lengths = [0] * (len(predicted) + 1)
    for mine in golden:
        before = 0
        for at, theirs in enumerate(predicted, 1):
            above = lengths[at]
            lengths[at] = before + 1 if mine == theirs else max(above, lengths[at - 1])
            before = above
    return lengths[-1] / max(len(golden), len(predicted))
