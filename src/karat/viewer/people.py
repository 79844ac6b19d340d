"""Who takes part in a study: for each sample, a participant or the group of a game, what lists say and filter by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from karat.formats import excerpt
from karat.records import Sample

__all__ = ["People", "Person", "Unit", "profile_text", "searched_texts"]

_MOST_ARMS = 100  # of one participant
_LONGEST_NAME = 200
_PROFILE = 300  # characters

Unit = Literal["participant", "group", "session"]


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """What a list says of a sample."""

    study: str
    arms: str
    profile: str
    members: int  # of a group; 0: one participant


class _Member(msgspec.Struct, gc=False):
    participant: str
    profile: dict[str, object] = {}


class _Detail(msgspec.Struct, gc=False):
    study: str
    profile: dict[str, object] = {}
    members: tuple[_Member, ...] = ()


class People:
    """The participants and groups of a run, by the row of their sample; empty for other kinds of dataset."""

    def __init__(self) -> None:
        self.by_row: dict[int, Person] = {}
        self.arms: dict[tuple[str, str], list[int]] = {}  # study and arm → rows

    def add(self, row: int, sample: Sample) -> None:
        """Nothing where the sample is no participant: the run folder may come from anywhere."""
        try:
            detail = msgspec.convert(sample.detail, _Detail)
        except msgspec.ValidationError:
            return
        named = (str(turn.detail.get("arm", ""))[:_LONGEST_NAME] for turn in sample.turns)
        arms, study = list(dict.fromkeys(named))[:_MOST_ARMS], detail.study[:_LONGEST_NAME]
        profile = "" if detail.members else profile_text(detail.profile)
        arms_text = excerpt(", ".join(arms), _PROFILE)
        self.by_row[row] = Person(study=study, arms=arms_text, profile=profile, members=len(detail.members))
        for arm in arms:
            self.arms.setdefault((study, arm), []).append(row)

    @property
    def unit(self) -> Unit:
        """What one sample of the run is: a participant, a group of a game, or either."""
        groups = sum(person.members > 0 for person in self.by_row.values())
        if not groups:
            return "participant"
        return "group" if groups == len(self.by_row) else "session"


def searched_texts(sample: Sample) -> list[str]:
    """What the search knows of a participant or a group besides the tasks."""
    try:
        detail = msgspec.convert(sample.detail, _Detail)
    except msgspec.ValidationError:
        return []
    members = (text for member in detail.members for text in (member.participant, profile_text(member.profile)))
    return [profile_text(detail.profile), *members]


def profile_text(profile: Mapping[str, object], *, longest: int = _PROFILE) -> str:
    """A profile on one line.

    >>> profile_text({"age": 30, "home_town": "Graz"})
    'age 30, home town Graz'
    """
    parts = (f"{name.replace('_', ' ')} {_value(value)}" for name, value in list(profile.items())[:50])
    return excerpt(", ".join(parts), longest)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:_PROFILE]
