"""Answers of somebody who does not read the question: each is as likely as any other."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["at_random"]

_SPAN = 100.0  # of a number whose range has no end
_WORDS = "able blue clear down early far green high kind late mild near open plain quick round soft tall wide young"


def at_random(fields: Mapping[str, Mapping[str, Any]], dice: random.Random) -> str:
    """One line a field, as the answer's form asks for it.

    >>> at_random({"choice": {"type": "choice", "options": ["A"]}}, random.Random(0))
    'choice: A'
    """
    return "\n".join(f"{name}: {_answer(one, dice)}" for name, one in fields.items())


def _answer(one: Mapping[str, Any], dice: random.Random) -> str:
    labels: Sequence[str] = list(one.get("options") or ())
    match one["type"]:
        case "choice":
            return dice.choice(labels)
        case "rank":
            return ", ".join(dice.sample(labels, len(labels)))
        case "text":
            return " ".join(dice.sample(_WORDS.split(), 3))
    low, high = one.get("range") or (None, None)
    if low is None:
        low = 0.0 if high is None else high - _SPAN
    if high is None:
        high = low + _SPAN
    if one["type"] == "likert" or one.get("whole"):
        return str(dice.randint(_up(low), max(_up(low), int(high // 1))))
    return _written(dice.uniform(low, high), low, high)


def _up(value: float) -> int:
    return -int(-value // 1)


def _written(value: float, low: float, high: float) -> str:
    """Two decimals, or as many as a narrow range needs to be drawn from at all."""
    decimals = next((some for some in range(2, 12) if (high - low) * 10**some >= 100), 12)
    return repr(min(max(round(value, decimals), low), high))
