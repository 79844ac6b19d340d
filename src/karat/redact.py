"""Secrets never reach the disk: their values are replaced by `${NAME}` wherever text leaves karat."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

SHORTEST_SECRET = 8
"""Characters. A shorter value (`3`, `true`) would be masked in places where it is no secret."""

_DISTINCT = 64
"""Characters of a secret that no other text begins with."""

_PERCENT = re.compile("%[0-9A-F]{2}")
_JSON_DEPTH = 3
"""A tool's result is JSON in a string of a message that is JSON, and may quote JSON itself."""


class Redactor:
    """Replaces secret values in text, in each spelling that text can carry them in.

    Raw, escaped for JSON (with and without ASCII escapes), percent-encoded, and base64
    at each of the three byte offsets, so that a value inside a longer base64 text
    ("user:password") is found too. One compiled expression; with no secrets, no work.

    >>> Redactor({"RAG_KEY": "s3cr3t-value"})("Authorization: Bearer s3cr3t-value")
    'Authorization: Bearer ${RAG_KEY}'
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._learned: dict[str, tuple[str, ...]] = {name: (value,) for name, value in secrets.items()}
        self._compile()

    def learn(self, name: str, values: Iterable[str]) -> None:
        """From now on masks these values, too, instead of those that it learned by this name before."""
        self._learned[name] = tuple(values)
        self._compile()

    def _compile(self) -> None:
        names: dict[str, str] = {}
        secrets = [(name, value) for name, values in self._learned.items() for value in values]
        for name, value in secrets:
            if len(value) >= SHORTEST_SECRET:
                for spelling in _spellings(value):
                    names.setdefault(spelling, f"${{{name}}}")
        self._names = names
        longest_first = sorted(names, key=len, reverse=True)
        forms = [
            *map(re.escape, longest_first),
            *(_cut_short(value) for _, value in secrets if len(value) >= SHORTEST_SECRET),
        ]
        self._pattern = re.compile("|".join(forms)) if names else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(self._mask, text)

    def _mask(self, match: re.Match[str]) -> str:
        name = self._names.get(match[0])
        if name is not None:
            return name
        return next((name for form, name in self._names.items() if form.startswith(match[0])), "${SECRET}")


def _cut_short(value: str) -> str:
    """The beginning of a secret where somebody cut the text: eight characters before "…", half of it at an end."""
    half = min(max(SHORTEST_SECRET, -(-len(value) // 2)), _DISTINCT)
    cut = f"{_prefixes(value, SHORTEST_SECRET)}(?=…)|{_prefixes(value, half)}(?=[\"'\\\\]|\\Z)"
    if len(value) <= _DISTINCT:
        return cut
    # So much of a long one (a private key) says enough, wherever it ends.
    return f"{re.escape(value[:_DISTINCT])}[^\\s\"'\\\\…]*|{cut}"


def _prefixes(value: str, shortest: int) -> str:
    letters = value[shortest : min(len(value) - 1, _DISTINCT)]
    return re.escape(value[:shortest]) + "".join(f"(?:{re.escape(letter)}" for letter in letters) + ")?+" * len(letters)


def _spellings(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    percent = {
        quote(value, safe="", errors="replace"),
        quote(value, errors="replace"),
        quote_plus(value, errors="replace"),
    }
    forms = {
        value,
        value.strip(),
        repr(value)[1:-1],
        html.escape(value),
        json.dumps(value)[1:-1].replace("/", "\\/"),
        *percent,
        *(_PERCENT.sub(lambda match: match[0].lower(), form) for form in percent),
    }
    for _ in range(_JSON_DEPTH):
        forms |= {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (True, False)}
    for offset in range(3):
        # Characters at the borders also encode neighbouring bytes: only the whole groups inside are the value's own.
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * offset + raw).decode()
            start = (0, 2, 3)[offset]
            tail = (offset + len(raw)) % 3
            stop = len(text) - (0, 3, 2)[tail]
            core = text[start:stop]
            if len(core) >= SHORTEST_SECRET:
                forms.add(core)
        if offset == 0:
            forms.add(base64.b64encode(raw).decode())
            forms.add(base64.urlsafe_b64encode(raw).decode())
    return {form for form in forms if len(form) >= SHORTEST_SECRET}


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every text in it changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(str(key)): map_texts(below, change) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_texts(below, change) for below in value]
    return value


def without_surrogates(text: str) -> str:
    """U+FFFD for halves of surrogate pairs: models and tools do write them, and no UTF-8 can hold them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
