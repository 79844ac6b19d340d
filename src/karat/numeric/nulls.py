"""What answerers score that know nothing: the rate that every accuracy must be read against."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from karat.numeric.values import Value, parse_value

__all__ = ["null_answers"]


def null_answers(golden: Sequence[object], conversations: Sequence[Hashable]) -> dict[str, list[float | bool | None]]:
    """The answers of five trivial answerers to the same questions, in their order; nothing is drawn at random.

    `zero` and `one` always say 0 and 1. `sign_flipped` says the golden number with the other
    sign, and no for yes; `times_100` a hundred times the golden number. `another_turn` says the
    golden answer of the turn before, the first turn that of the last; in a conversation
    of one turn that of the question before. None where the golden answer gives nothing to say:
    it cannot be read, has no scale (yes and no), or is the only one.

    >>> null_answers([0.5, "10%"], ["a", "a"])["another_turn"]
    [0.1, 0.5]
    """
    if len(golden) != len(conversations):
        raise ValueError(f"conversations: must be as many as golden answers, {len(golden)}, got {len(conversations)}")
    values = [parse_value(each) for each in golden]
    return {
        "zero": [0.0] * len(values),
        "one": [1.0] * len(values),
        "sign_flipped": [_flipped(value) for value in values],
        "times_100": [_times_100(value) for value in values],
        "another_turn": [None if at is None else _said(values[at]) for at in _others(conversations)],
    }


def _flipped(value: Value | None) -> float | bool | None:
    if value is None:
        return None
    return -value.number if value.boolean is None else not value.boolean


def _times_100(value: Value | None) -> float | None:
    return None if value is None or value.boolean is not None else 100 * value.number


def _said(value: Value | None) -> float | bool | None:
    if value is None:
        return None
    return value.number if value.boolean is None else value.boolean


def _others(conversations: Sequence[Hashable]) -> list[int | None]:
    """For each turn the place of the one before it in its conversation, round about."""
    last = {conversation: at for at, conversation in enumerate(conversations)}
    before: list[int | None] = []
    seen: dict[Hashable, int] = {}
    for at, conversation in enumerate(conversations):
        other = seen.get(conversation, last[conversation])
        if other == at:  # its only turn
            other = (at or len(conversations)) - 1
        before.append(None if other == at else other)
        seen[conversation] = at
    return before
