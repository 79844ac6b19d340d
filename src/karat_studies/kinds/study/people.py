"""Draws the participants with a seed, and fills a condition's system prompt for each of them.

A line that begins with `{{? profile.age }}` is left out for participants without an age, so that
one prompt serves studies whose participants have different attributes; with several names, for
those who have none of them. `{{ rest }}` is every attribute that the prompt does not name, as
`country: Japan; income: 40000`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from karat.records import JsonObject
from karat.templates import fill, names
from karat_studies.kinds.study.format import StudyFile


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """One participant: an id, the arms to go through, and who they are."""

    id: str
    arms: tuple[str, ...]  # one; in a within-subjects design all
    profile: JsonObject


def people(
    study: StudyFile,
    arms: Sequence[str],
    *,
    seed: int,
    per_arm: int | None = None,
) -> list[Person]:
    """The participants of these arms, arm by arm.

    A participant's profile depends only on the seed, the arm and their number in it: adding
    participants, or leaving out arms, does not change the others. `per_arm` overrides the study's.
    """
    if study.design == "within":
        size = max((_size(study, arm, per_arm) for arm in arms), default=0)
        return [_person(study, "p", tuple(arms), number, seed) for number in range(size)]

    found = []
    for arm in arms:
        for number in range(_size(study, arm, per_arm)):
            found.append(_person(study, arm, (arm,), number, seed))

    return found


def _size(study: StudyFile, arm: str, per_arm: int | None) -> int:
    if per_arm is not None:
        return per_arm
    declared = study.participants.per_arm
    if isinstance(declared, int):
        return declared
    return study.arms[arm].n or 0


def _person(study: StudyFile, group: str, arms: tuple[str, ...], number: int, seed: int) -> Person:
    # One of the listed persons: all of them take part once before anyone does twice
    if not study.persons:
        given: dict[str, object] = {}
    else:
        before = 0
        if group in study.arms:
            for arm in study.arms:
                if arm == group:
                    break
                before += study.arms[arm].n or 0

        around, place = divmod(before + number, len(study.persons))
        order = list(range(len(study.persons)))
        random.Random(f"{seed}/persons/{around}").shuffle(order)
        given = study.persons[order[place]]

    drawn = {}
    for name, attribute in study.participants.profile.items():
        if name not in given:
            # A value for an attribute, which the file gives as [low, high], values with shares,
            # values, or one value
            dice = random.Random(f"{seed}/{group}/{number}/{name}")
            if isinstance(attribute, Mapping):
                drawn[name] = dice.choices(
                    list(attribute), weights=[float(share) for share in attribute.values()]
                )[0]
            elif not isinstance(attribute, list):
                drawn[name] = attribute
            elif len(attribute) == 2 and all(
                isinstance(end, (int, float)) and not isinstance(end, bool) for end in attribute
            ):
                low, high = attribute
                integers = isinstance(low, int) and isinstance(high, int)
                if integers:
                    drawn[name] = dice.randint(low, high)
                else:
                    drawn[name] = round(dice.uniform(low, high), 3)
            else:
                drawn[name] = dice.choice(attribute)

    profile = {name: {**drawn, **given}[name] for name in study.attributes}
    return Person(id=f"{group}-{number + 1:03d}", arms=arms, profile=profile)


REST = "rest"
_OPTIONAL = re.compile(r"[ \t]*\{\{\?([\w. \t-]+)\}\}[ \t]*")
_GAP = re.compile(r"\n{3,}")


def persona(template: str, profile: Mapping[str, object]) -> str:
    """The prompt filled in for a participant. Raises BadOption for a name without a value.

    >>> persona(
    ...     "{{? profile.age }}Age: {{ profile.age }}\\n{{? profile.job }}Work: {{ profile.job }}",
    ...     {"age": 20},
    ... )
    'Age: 20'
    """
    known = known_to(template, profile)
    values: dict[str, object] = {"profile": dict(profile)}
    if REST in known:
        named = _named(template)
        rest = []
        for name, value in profile.items():
            if name not in named:
                if isinstance(value, str):
                    text = value
                else:
                    text = fill("{{ value }}", {"value": value})
                rest.append(f"{name}: {text}")

        values[REST] = "; ".join(rest)

    lines = _shown(template, known)
    text = "\n".join(lines)
    if len(lines) <= template.count("\n"):  # close the gap where lines were left out
        text = _GAP.sub("\n\n", text).strip()
    return fill(text, values, place="system_prompt")


def missing_in(template: str, attributes: Collection[str]) -> list[str]:
    """The names that a prompt uses and participants with these attributes lack, each once."""
    known = known_to(template, attributes)
    asked = [name for line in _shown(template, known) for name in names(line)]
    return [name for name in dict.fromkeys(asked) if name not in known]


def known_to(template: str, attributes: Collection[str]) -> list[str]:
    """The names that `{{ … }}` in this prompt may use, for participants with these attributes."""
    if set(attributes) - _named(template):
        rest = [REST]
    else:
        rest = []

    return [*(f"profile.{name}" for name in attributes), *rest]


def optional_names(template: str) -> list[str]:
    """The names in `{{? … }}`."""
    return [name for unless, _ in map(_line, template.split("\n")) for name in unless or ()]


def _shown(template: str, known: Collection[str]) -> list[str]:
    """The lines, without those whose `{{? … }}` names nothing known."""
    lines = map(_line, template.split("\n"))
    known = set(known)
    return [text for unless, text in lines if unless is None or not known.isdisjoint(unless)]


def _line(line: str) -> tuple[list[str] | None, str]:
    """The names of which at least one must be known for the line to appear (None: no condition),
    and the line.
    """
    optional = _OPTIONAL.match(line)
    if optional is None:
        return (None, line)
    return (optional[1].split(), line[optional.end() :])


def _named(template: str) -> set[str]:
    asked = (*names(template), *optional_names(template))
    return {name.removeprefix("profile.") for name in asked if name.startswith("profile.")}
