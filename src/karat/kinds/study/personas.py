"""A condition's system prompt as one participant reads it: `{{ profile.… }}` is filled with who they are.

A line that begins with `{{? profile.age }}` is left out for participants who have no age, so that
one prompt serves studies whose participants have different attributes; with several names, for those
who have none of them. `{{ rest }}` is every attribute that the prompt does not name, as
`country: Japan; income: 40000`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from karat.templates import fill, names

__all__ = ["REST", "PersonaNames", "known_to", "missing_in", "optional_names", "persona", "persona_names"]

REST = "rest"
_OPTIONAL = re.compile(r"[ \t]*\{\{\?([\w. \t-]+)\}\}[ \t]*")
_GAP = re.compile(r"\n{3,}")


def persona(template: str, profile: Mapping[str, Any], *, place: str = "system_prompt") -> str:
    """The prompt for a participant. Raises BadOption for a name that nothing gives.

    >>> persona("{{? profile.age }}Age: {{ profile.age }}\\n{{? profile.job }}Work: {{ profile.job }}", {"age": 20})
    'Age: 20'
    """
    known = known_to(template, profile)
    values: dict[str, Any] = {"profile": dict(profile)}
    if REST in known:
        named = _named(template)
        values[REST] = "; ".join(f"{name}: {_told(value)}" for name, value in profile.items() if name not in named)
    lines = _shown(template, known)
    text = "\n".join(lines)
    if len(lines) <= template.count("\n"):  # where lines were left out, no hole stays
        text = _GAP.sub("\n\n", text).strip()
    return fill(text, values, place=place)


def missing_in(template: str, attributes: Collection[str]) -> list[str]:
    """The names that a prompt asks for and participants with these attributes do not have, each once."""
    known = known_to(template, attributes)
    asked = [name for line in _shown(template, known) for name in names(line)]
    return [name for name in dict.fromkeys(asked) if name not in known]


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonaNames:
    """The names of a prompt, for participants with certain attributes."""

    missing: tuple[str, ...]  # asked for, and not known
    optional: tuple[str, ...]  # in {{? … }}, known or not
    known: tuple[str, ...]  # what {{ … }} may be


def persona_names(template: str, attributes: Collection[str]) -> PersonaNames:
    """What the prompt asks for."""
    return PersonaNames(
        missing=tuple(missing_in(template, attributes)),
        optional=tuple(optional_names(template)),
        known=tuple(known_to(template, attributes)),
    )


def known_to(template: str, attributes: Collection[str]) -> list[str]:
    """What `{{ … }}` of this prompt may be, for participants with these attributes."""
    rest = [REST] if set(attributes) - _named(template) else []
    return [*(f"profile.{name}" for name in attributes), *rest]


def optional_names(template: str) -> list[str]:
    """The names in `{{? … }}`."""
    return [name for unless, _ in map(_line, template.split("\n")) for name in unless or ()]


def _shown(template: str, known: Collection[str]) -> list[str]:
    """The lines, without those that begin with what is not known."""
    lines, known = map(_line, template.split("\n")), set(known)
    return [text for unless, text in lines if unless is None or not known.isdisjoint(unless)]


def _line(line: str) -> tuple[list[str] | None, str]:
    """Of what something must be known for the line to be shown (None: nothing), and the line."""
    begun = _OPTIONAL.match(line)
    return (None, line) if begun is None else (begun[1].split(), line[begun.end() :])


def _named(template: str) -> set[str]:
    asked = (*names(template), *optional_names(template))
    return {name.removeprefix("profile.") for name in asked if name.startswith("profile.")}


def _told(value: Any) -> str:
    return value if isinstance(value, str) else fill("{{ value }}", {"value": value})
