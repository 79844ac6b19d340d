"""`{{ dotted.name }}` becomes a value; nothing more: no logic, no filters, no second pass over
inserted values.

Used for texts that the author of a study or of an `http` agent writes. Golden prompts
are not templates: `{{ … }}` in them is unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from karat.errors import BadOption, did_you_mean

# includes the blanks: two ways to match them would backtrack for long
_FIELD = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\Z")


def names(text: str) -> tuple[str, ...]:
    """The names in a template, each once, in the order of the text.

    >>> names("You are {{ profile.age }} years old, {{name}}.")
    ('profile.age', 'name')
    """
    return tuple(dict.fromkeys(field[1].strip() for field in _FIELD.finditer(_closed(text))))


def fill(text: str, values: Mapping[str, object], *, place: str = "template") -> str:
    """The text with each field's value in its place.

    Text is inserted unchanged, other values as JSON. Raises BadOption, naming
    `place`, for names that `values` does not have.

    >>> fill(
    ...     "{{ greeting }}, {{ profile.name }}!",
    ...     {"greeting": "{{ profile }}", "profile": {"name": "Ada"}},
    ... )
    '{{ profile }}, Ada!'
    """
    closed = _closed(text)
    filled = _FIELD.sub(lambda field: _text(_value(field[1].strip(), values, place)), closed)
    return filled + text[len(closed) :]


def fill_body(body: object, values: Mapping[str, object], *, place: str = "body") -> object:
    """A JSON value with its fields filled as JSON values.

    In a mapping or list, a text that is only one field becomes the value itself, with its
    type; in a longer text values are inserted as by `fill`. A text is JSON with fields in
    it: outside quotes a field becomes the JSON value, inside quotes its escaped text.
    So no value can break out of its place. Keys are unchanged. Raises
    BadOption for unknown names, and for a text that is not JSON.

    >>> fill_body({"q": "{{ question }}", "n": "{{ n }}"}, {"question": 'a "b"', "n": 3})
    {'q': 'a "b"', 'n': 3}
    >>> fill_body('{"q": "{{ question }}", "n": {{ n }}}', {"question": 'a "b"', "n": 3})
    {'q': 'a "b"', 'n': 3}
    """
    if isinstance(body, str):
        parts: list[str] = []
        quoted, position = False, 0
        for field in _FIELD.finditer(_closed(body)):
            between = body[position : field.start()]
            for sign in re.findall(r'\\.|"', between, re.DOTALL):
                if sign == '"':  # a string of JSON begins or ends
                    quoted = not quoted

            value = _value(field[1].strip(), values, place)
            parts += [between, json.dumps(_text(value))[1:-1] if quoted else json.dumps(value)]
            position = field.end()

        parts.append(body[position:])
        try:
            return json.loads("".join(parts))
        except json.JSONDecodeError as error:
            raise BadOption(
                place,
                f"is not JSON once its fields are filled: {error.msg} at character {error.pos}",
            ) from None

    return _fill_json(body, values, place)


def _closed(text: str) -> str:
    """The text up to its last `}}`.

    After it no field ends, and each `{{` would cause a scan to the end of the text.
    """
    return text[: text.rfind("}}") + 2]


def _fill_json(body: object, values: Mapping[str, object], place: str) -> object:
    if isinstance(body, Mapping):
        return {key: _fill_json(below, values, f"{place}.{key}") for key, below in body.items()}
    if isinstance(body, (list, tuple)):
        return [_fill_json(below, values, f"{place}.{index}") for index, below in enumerate(body)]
    if not isinstance(body, str):
        return body
    match = _FIELD.fullmatch(body.strip())
    if match is not None and "}}" not in match[1]:
        return _value(match[1].strip(), values, place)
    return fill(body, values, place=place)


def _value(name: str, values: Mapping[str, object], place: str) -> object:
    if not _NAME.match(name):
        raise BadOption(
            place,
            (
                f"'{{{{ {name} }}}}' is not a field: a field is a dotted name, such as {{{{ "
                f"question }}}}"
            ),
        )

    here: Any = values
    for depth, part in enumerate(name.split(".")):
        if isinstance(here, Mapping) and part in here:
            here = here[part]
        elif (
            (isinstance(here, Sequence) and not isinstance(here, str))
            and (part.isdecimal() and len(part) < 10)
            and int(part) < len(here)
        ):
            here = here[int(part)]
        else:
            raise BadOption(place, f"there is no value called '{name}'{_hint(name, values, depth)}")

    return here


def _hint(name: str, values: Mapping[str, object], depth: int) -> str:
    """The nearest full name, among those with the same resolved prefix."""
    prefix = name.split(".")[:depth]
    here: Any = values
    for part in prefix:
        if isinstance(here, Mapping):
            here = here[part]
        else:
            here = None

    if not isinstance(here, Mapping):
        return ""
    return did_you_mean(name, [".".join([*prefix, str(key)]) for key in here])


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
