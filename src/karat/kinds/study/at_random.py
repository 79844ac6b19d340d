"""Answers of somebody who does not read the question: each is as likely as any other. Pure but for the dice."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["random_text", "random_values"]

Value = float | str | list[str]
_SPAN = 100.0  # of a number whose range has no end
_WORDS = "able blue clear down early far green high kind late mild near open plain quick round soft tall wide young"
_EACH = tuple(_WORDS.split())


def random_values(fields: Mapping[str, Mapping[str, Any]], dice: random.Random) -> dict[str, Value]:
    """An answer to every field, as `read_answers` would read it.

    >>> random_values({"choice": {"type": "choice", "options": ["A"]}}, random.Random(0))
    {'choice': 'A'}
    """
    return {name: _answer(one, dice) for name, one in fields.items()}


def random_text(fields: Mapping[str, Mapping[str, Any]], dice: random.Random) -> str:
    """The same answers, one line a field, as the answer's form asks for it.

    >>> random_text({"how": {"type": "likert", "range": [4, 4]}}, random.Random(0))
    'how: 4'
    """
    said = random_values(fields, dice)
    return "\n".join(f"{name}: {_written(value, fields[name])}" for name, value in said.items())


def _answer(one: Mapping[str, Any], dice: random.Random) -> Value:
    labels: Sequence[str] = list(one.get("options") or ())
    match one["type"]:
        case "choice":
            return dice.choice(labels)
        case "rank":
            return dice.sample(labels, len(labels))
        case "text":
            return " ".join(dice.sample(_EACH, 3))
    low, high = one.get("range") or (None, None)
    if low is None:
        low = 0.0 if high is None else high - _SPAN
    if high is None:
        high = low + _SPAN
    if _is_whole(one):
        return float(dice.randint(_up(low), max(_up(low), int(high // 1))))
    return _rounded(dice.uniform(low, high), low, high)


def _is_whole(one: Mapping[str, Any]) -> bool:
    return one["type"] == "likert" or bool(one.get("whole"))


def _up(value: float) -> int:
    return -int(-value // 1)


def _rounded(value: float, low: float, high: float) -> float:
    """Two decimals, or as many as a narrow range needs to be drawn from at all."""
    span = high - low
    decimals = 2 if span >= 1 else next((some for some in range(3, 12) if span * 10**some >= 100), 12)
    return float(min(max(round(value, decimals), low), high))


def _written(value: Value, one: Mapping[str, Any]) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, str):
        return value
    return str(int(value)) if _is_whole(one) else repr(value)
