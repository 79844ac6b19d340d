"""What people said of the turns on a page, and which form asks the one who looks at it."""

from __future__ import annotations

from typing import Any

import msgspec

from karat.journal import Label, Labels

__all__ = ["NOBODY", "VERDICTS", "Voices"]

_MOST_PEOPLE = 12  # of one turn; the newest

VERDICTS = {"right": "right", "wrong": "wrong", "cannot_tell": "cannot tell"}
"""What one can say of an answer against the golden one, as pages write it."""


class Voices(msgspec.Struct, frozen=True, kw_only=True):
    """Every label that counts, and who is looking."""

    labels: Labels
    reviewer: str

    def of_turn(self, trial: str, turn: int) -> list[Label]:
        """What people said of one turn (from 0), the oldest first."""
        return [one for one in self.labels.of(trial) if one.turn == turn][-_MOST_PEOPLE:]

    def own(self, trial: str, turn: int) -> Label | None:
        """What the one who looks said of a turn."""
        return next((one for one in self.of_turn(trial, turn) if one.who == self.reviewer), None)

    def verdicts(self, trial: str, turn: int, right: bool | None) -> list[dict[str, Any]]:
        """What people said of a turn against its golden answer, written. `right`: what karat says; None: nothing."""
        opposite = None if right is None else "wrong" if right else "right"
        return [
            {
                "who": one.who,
                "verdict": VERDICTS[one.verdict],
                "diagnosis": one.diagnosis.replace("_", " "),
                "differs": one.verdict == opposite,
            }
            for one in self.of_turn(trial, turn)
            if one.verdict is not None
        ]

    def own_verdict(self, trial: str, turn: int) -> dict[str, Any]:
        """What a form has to begin with."""
        own = self.own(trial, turn)
        return {
            "verdict": "" if own is None else own.verdict or "",
            "diagnosis": "" if own is None else own.diagnosis,
            "note": "" if own is None else own.note,
        }


NOBODY = Voices(labels=Labels(newest={}), reviewer="")
