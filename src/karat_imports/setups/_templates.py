"""Templates of promptfoo, as far as they only insert variables: `{{ name }}`, `{{ name | dump }}`.

Source: promptfoo renders them with Nunjucks; tags (`{% … %}`) and other filters are not followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from karat.records import Json, JsonObject

_FIELD = re.compile(r"\{\{-?([^{}]{1,300}?)-?\}\}")
_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*\Z")
_FILTERS = ("dump", "safe", "trim")


def has_tags(text: str) -> bool:
    """Whether the template has parts that are programs."""
    return "{%" in text


def names(text: str) -> list[str]:
    """The variables that a template inserts, each once: the first part of `person.name`."""
    found = (_field(match[1]) for match in _FIELD.finditer(text))
    return list(dict.fromkeys(name.partition(".")[0] for name, _ in filter(None, found)))


def fill(text: str, variables: JsonObject) -> str:
    """The template with its variables; what is no variable stays as it is."""
    return replaced(text, lambda name: _value(name, variables))


def replaced(text: str, value_of: Callable[[str], Json]) -> str:
    """The template with `value_of(NAME)` for each variable; None leaves the field as it is."""

    def one(match: re.Match[str]) -> str:
        field = _field(match[1])
        if field is None:
            return match[0]
        value = value_of(field[0])
        if value is None:
            return match[0]
        if "dump" in field[1]:
            return json.dumps(value, ensure_ascii=False)
        text = shown(value)
        if "trim" in field[1]:
            return text.strip()
        return text

    return _FIELD.sub(one, text)


def shown(value: Json) -> str:
    """A variable as it is inserted: a text unchanged, other values as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _field(text: str) -> tuple[str, list[str]] | None:
    name, *filters = (part.strip() for part in text.split("|"))
    if not _NAME.match(name) or any(one not in _FILTERS for one in filters):
        return None
    return name, filters


def _value(name: str, variables: JsonObject) -> Json:
    value: Json = variables
    for part in [name] if name in variables else name.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]

    return value
