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
    turns: dict[str, dict[int, list[Label]]] = {}  # of the trials that were asked for, by turn, the oldest first

    def of_turn(self, trial: str, turn: int) -> list[Label]:
        """What people said of one turn (from 0), the oldest first."""
        return self._all_of(trial, turn)[-_MOST_PEOPLE:]

    def own(self, trial: str, turn: int) -> Label | None:
        """What the one who looks said of a turn."""
        return next((one for one in self._all_of(trial, turn) if one.who == self.reviewer), None)

    def _all_of(self, trial: str, turn: int) -> list[Label]:
        labels = self.labels.of(trial)
        if labels and trial not in self.turns:
            found: dict[int, list[Label]] = {}
            for one in labels:
                if one.turn is not None:
                    found.setdefault(one.turn, []).append(one)
            self.turns[trial] = found
        return self.turns.get(trial, {}).get(turn, [])

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
