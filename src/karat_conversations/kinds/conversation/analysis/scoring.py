"""How the rows of the scorer `numeric` become numbers of turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat_conversations.numeric import parse_value, right_by

if TYPE_CHECKING:
    from karat.analysis.grids import Floats
    from karat.records import Turn

_OTHERS_TESTED = ("declared", "logic_recall")
"""Metrics on which conditions are tested, after the match that makes a turn right. The others
measure the same answers in other ways; testing them too would only increase the adjusted p-values
of these.
"""


@dataclass(frozen=True, slots=True)
class NumericTurns:
    """Turns whose golden answer is a number, yes or no.

    `right`: the match that makes a turn right.
    """

    right: str
    rates: ClassVar[frozenset[str]] = frozenset(
        {
            "numerical",
            "soft",
            "unit_agnostic",
            "sign_agnostic",
            "general",
            "exact",
            "scale_and_sign",
            "declared",
            "right",
        }
    )

    def counts(self, turn: Turn) -> bool:
        return parse_value(turn.golden) is not None

    def tested(self, columns: Mapping[str, Floats]) -> tuple[str, ...]:
        """First the match that makes a turn right, or `right` if that also takes the same yes or
        no.
        """
        import numpy as np

        first = self.right
        if {self.right, "right", "numerical"} <= columns.keys():
            own = columns[self.right]
            first = (
                first if np.array_equal(right_by(columns, first), own, equal_nan=True) else "right"
            )

        return tuple(dict.fromkeys((first, *_OTHERS_TESTED)))

    def values(self, metric: str, columns: Mapping[str, Floats]) -> Floats:
        if metric != "right" or not {self.right, "numerical"} <= columns.keys():
            return columns[metric]
        chosen: Floats = right_by(columns, self.right)
        return chosen
