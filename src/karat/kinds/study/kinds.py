"""What stands in the place of an answer that could not be read, and words that every type of answer knows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CONTRADICTORY", "INVALID", "MISSING", "OUT_OF_RANGE", "REFUSED", "TAKEN_BACK", "Value"]

REFUSED, MISSING, OUT_OF_RANGE = "refused", "missing", "out_of_range"
CONTRADICTORY, INVALID = "contradictory", "invalid"

TAKEN_BACK = (
    r"\b(?:no|wait|actually|sorry|correction|or|hmm|second thought|my mind|kidding|but|though|although|however|then|now"
    r"|finally|final|revised|reflection|reconsidering|corrected|updated|instead(?! of)|rather(?! than))\b"
)
"""Words behind an answer that lead to another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """An answer, or the kind of thing that stands in its place."""

    answer: float | str | list[str] | None = None
    kind: str | None = None  # None: there is an answer
