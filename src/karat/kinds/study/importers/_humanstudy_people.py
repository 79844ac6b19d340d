"""Who took part: age range, shares of genders, population and how many, from a study folder."""

from __future__ import annotations

import re
from typing import Any

from karat.formats import excerpt
from karat.kinds.study.importers._humanstudy_files import Notes, Spot

__all__ = ["profile_of", "sizes_of"]

_GENDERS = {"women": "female", "female": "female", "females": "female", "woman": "female", "girls": "female",
            "men": "male", "male": "male", "males": "male", "man": "male", "boys": "male"}  # fmt: skip
_AGES = re.compile(r"(\d{1,3})\s*(?:-|–|−|to)\s*(\d{1,3})")
_READ = {"age_range", "age", "gender", "sex", *_GENDERS}


def profile_of(specification: Spot, notes: Notes) -> dict[str, Any]:
    """The profile of the draft: age, gender and population, as far as they are given."""
    people = specification.get("participants")
    given = people.get("demographics")
    profile: dict[str, Any] = {}
    ages = given.get("age_range").said() or given.get("age").said()
    if ages is not None:
        match = _AGES.fullmatch(ages.strip())
        if match is not None and 0 < int(match[1]) <= int(match[2]) <= 130:
            profile["age"] = [int(match[1]), int(match[2])]
        else:
            notes.add("unreadable", f"no range of ages: '{excerpt(ages, 60)}'", given.where)
    genders = _genders(given, notes) or _added_up(people)
    if genders:
        profile["gender"] = genders if len(genders) > 1 else next(iter(genders))
    if (population := people.get("population").text()) is not None:
        profile["population"] = " ".join(population.split())[:300]
    left = [key for key, _ in given.pairs() if key not in _READ]
    if left:
        notes.add("left out", f"holds besides: {excerpt(', '.join(left), 90)}", given.where)
    return profile


def sizes_of(specification: Spot, notes: Notes) -> list[float]:
    """Every number of people that the specification names; parts that do not add up to the whole are noted."""
    people = specification.get("participants")
    whole = people.get("n").whole()
    parts = [n for _, one in people.get("by_sub_study").pairs() if (n := one.get("n").whole()) is not None]
    if whole is not None and parts and sum(parts) != whole:
        notes.add("contradiction", f"n is {whole}, its parts add up to {sum(parts)}", people.get("n").where)
    for key, one in people.get("by_sub_study").pairs():
        counts = [n for word, spot in one.get("demographics").pairs() if word in _GENDERS and (n := spot.whole())]
        n = one.get("n").whole()
        if n is not None and counts and sum(counts) != n:
            notes.add("contradiction", f"{excerpt(key, 40)}: n is {n}, women and men are {sum(counts)}", one.where)
    return [float(n) for n in dict.fromkeys([*([whole] if whole else []), *parts])]


def _genders(given: Spot, notes: Notes) -> dict[str, float]:
    """Shares by gender: of counts, of shares, or one gender alone."""
    for key in ("gender", "sex"):
        spot = given.get(key)
        if isinstance(spot.value, str):
            word = _GENDERS.get((spot.text() or "").lower())
            if word is None:
                notes.add("unreadable", f"gives no shares: '{excerpt(spot.value, 60)}'", spot.where)
                return {}
            return {word: 1.0}
        if isinstance(spot.value, dict):
            return _shares(spot)
    return _shares(given)


def _shares(spot: Spot) -> dict[str, float]:
    found: dict[str, float] = {}
    for word, one in spot.pairs():
        value, name = one.number(), _GENDERS.get(word.lower())
        if name is not None and value is not None and value >= 0:
            found[name] = found.get(name, 0.0) + value
    total = sum(found.values())
    return {name: round(value / total, 4) for name, value in found.items()} if len(found) > 1 and total > 0 else {}


def _added_up(people: Spot) -> dict[str, float]:
    """Counts of the parts of the study, added up."""
    sums: dict[str, float] = {}
    for _, part in people.get("by_sub_study").pairs():
        for word, one in part.get("demographics").pairs():
            if word in _GENDERS and (n := one.whole()) is not None:
                sums[_GENDERS[word]] = sums.get(_GENDERS[word], 0.0) + n
    total = sum(sums.values())
    return {name: round(value / total, 4) for name, value in sums.items()} if len(sums) > 1 else {}
