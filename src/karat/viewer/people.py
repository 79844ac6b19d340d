"""Who takes part in a study, in the index: a row for each sample, which is a participant or a group of a game."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from karat.formats import excerpt
from karat.viewer.schema import rows

__all__ = ["Person", "add_person", "person_of", "profile_text", "unit_in"]

_MOST_ARMS = 100  # of one participant
_LONGEST_NAME = 200
_PROFILE = 300  # characters

Unit = Literal["participant", "group", "session"]


class _Place(msgspec.Struct, frozen=True, gc=False):
    arm: str = ""


class _Turn(msgspec.Struct, frozen=True, gc=False):
    detail: _Place = _Place()


class _Member(msgspec.Struct, frozen=True, gc=False):
    participant: str
    profile: dict[str, Any] = {}


class _Who(msgspec.Struct, frozen=True, gc=False):
    study: str
    profile: dict[str, Any] = {}
    members: tuple[_Member, ...] = ()


class _Sample(msgspec.Struct, frozen=True, gc=False):
    turns: tuple[_Turn, ...]
    detail: _Who


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """What a list says of a sample."""

    study: str
    arms: str
    profile: str
    members: int  # of a group; 0: one participant


_sample = msgspec.json.Decoder(_Sample).decode


def add_person(base: sqlite3.Connection, n: int, line: bytes) -> list[str]:
    """Notes who a line of samples.jsonl is about; what the search is to know of them besides.

    Nothing where the line is of no participant: the run folder may come from anywhere.
    """
    try:
        found = _sample(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        return []
    who = found.detail
    arms = list(dict.fromkeys(turn.detail.arm[:_LONGEST_NAME] for turn in found.turns))[:_MOST_ARMS]
    study, members = _plain(who.study[:_LONGEST_NAME]), who.members
    told = profile_text(who.profile) if not members else ""
    said = (n, study, excerpt(", ".join(arms), _PROFILE), told, len(members))
    base.execute("INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?, ?)", said)
    base.executemany("INSERT OR REPLACE INTO arms VALUES (?, ?, ?)", [(study, _plain(arm), n) for arm in arms])
    return [told, *(text for one in members for text in (one.participant, profile_text(one.profile)))]


def person_of(base: sqlite3.Connection, n: int) -> Person | None:
    """Who a sample is."""
    found = rows(base, "SELECT study, arms, profile, members FROM people WHERE sample = ?", (n,),
                 tuple[str, str, str, int])  # fmt: skip
    return next((Person(study=a, arms=b, profile=c, members=d) for a, b, c, d in found), None)


def unit_in(base: sqlite3.Connection) -> Unit:
    """What one sample of the run is: a participant, a group of a game, or either."""
    fewest, most = base.execute("SELECT min(members), max(members) FROM people").fetchone()
    if fewest == 0 and most:
        return "session"
    return "group" if most else "participant"


def profile_text(profile: Mapping[str, Any], *, longest: int = _PROFILE) -> str:
    """A profile on one line.

    >>> profile_text({"age": 30, "home_town": "Graz"})
    'age 30, home town Graz'
    """
    told = (f"{name.replace('_', ' ')} {_value(value)}" for name, value in list(profile.items())[:50])
    return excerpt(", ".join(told), longest)


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:_PROFILE]


def _plain(text: str) -> str:
    """Without halves of surrogate pairs, which no database takes."""
    return text.encode("utf-8", "replace").decode()
