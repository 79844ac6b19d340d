"""The participants: drawn from the study's population with a seed, the same ones in every condition and repetition."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.kinds.study.format import StudyFile

__all__ = ["Person", "people"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """One participant: an id, the arms to go through, and who they are."""

    id: str
    arms: tuple[str, ...]  # one; all, where the design is within subjects
    profile: dict[str, Any]


def people(study: StudyFile, arms: Sequence[str], *, seed: int, per_arm: int | None = None) -> list[Person]:
    """The participants of these arms, arm by arm.

    Who somebody is depends on nothing but the seed, the arm and their number in it: more
    participants, or fewer arms, leave the others as they are. `per_arm` overrides the study's.
    """
    if study.design == "within":
        size = max((_size(study, arm, per_arm) for arm in arms), default=0)
        return [_person(study, "p", tuple(arms), number, seed) for number in range(size)]
    return [_person(study, arm, (arm,), number, seed) for arm in arms for number in range(_size(study, arm, per_arm))]


def _size(study: StudyFile, arm: str, per_arm: int | None) -> int:
    if per_arm is not None:
        return per_arm
    said = study.participants.per_arm
    return said if isinstance(said, int) else study.arms[arm].n or 0


def _person(study: StudyFile, group: str, arms: tuple[str, ...], number: int, seed: int) -> Person:
    given = _given(study, group, number, seed)
    drawn = {
        name: _drawn(said, random.Random(f"{seed}/{group}/{number}/{name}"))
        for name, said in study.participants.profile.items()
        if name not in given
    }
    profile = {name: {**drawn, **given}[name] for name in study.attributes}
    return Person(id=f"{group}-{number + 1:03d}", arms=arms, profile=profile)


def _given(study: StudyFile, group: str, number: int, seed: int) -> dict[str, Any]:
    """One of the listed persons: each takes part once before anybody does twice."""
    if not study.persons:
        return {}
    before = 0
    if group in study.arms:
        for arm in study.arms:
            if arm == group:
                break
            before += study.arms[arm].n or 0
    around, place = divmod(before + number, len(study.persons))
    order = list(range(len(study.persons)))
    random.Random(f"{seed}/persons/{around}").shuffle(order)
    return study.persons[order[place]]


def _drawn(said: Any, dice: random.Random) -> Any:
    """One value of what the file says of an attribute: [low, high], values with shares, values, or one value."""
    if isinstance(said, Mapping):
        return dice.choices(list(said), weights=[float(share) for share in said.values()])[0]
    if not isinstance(said, list):
        return said
    if len(said) == 2 and all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in said):
        low, high = said
        whole = isinstance(low, int) and isinstance(high, int)
        return dice.randint(low, high) if whole else round(dice.uniform(low, high), 3)
    return dice.choice(said)
