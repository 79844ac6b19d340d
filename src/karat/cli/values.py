"""`--set KEY=VALUE`: values on the command line are parsed as in the experiment file."""

from __future__ import annotations

from collections.abc import Iterable

from karat.documents import nodes, reader
from karat.errors import BadOption
from karat.records import Json, JsonObject


def parsed(option: str, text: str) -> Json:
    """The value of a YAML text. Raises BadOption for this option.

    >>> parsed("--set indent", "4"), parsed("--scorer", "{regex: {pattern: yes.*}}")
    (4, {'regex': {'pattern': 'yes.*'}})
    """
    node, problem = reader.parse_value(text)
    if problem:
        raise BadOption(option, f"the value is {problem}")
    value: Json = nodes.plain(node)
    return value


def settings_of(texts: Iterable[str]) -> JsonObject:
    """KEY=VALUE texts as a dict; the last of equal keys wins. Raises BadOption."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise BadOption("--set", f"expected KEY=VALUE, got '{text}'")
        settings[key] = parsed(f"--set {key}", value)

    return settings
