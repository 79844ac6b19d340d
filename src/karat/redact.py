"""Secrets never reach the disk: their values are replaced by `${NAME}` wherever text leaves karat."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

__all__ = ["SHORTEST_SECRET", "Redactor"]

SHORTEST_SECRET = 8
"""Characters. A shorter value (`3`, `true`) would be masked in places where it is no secret."""

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
        names: dict[str, str] = {}
        for name, value in secrets.items():
            if len(value) >= SHORTEST_SECRET:
                for spelling in _spellings(value):
                    names.setdefault(spelling, f"${{{name}}}")
        self._names = names
        longest_first = sorted(names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if names else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._names[found[0]], text)


def _spellings(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    forms = {
        value,
        json.dumps(value)[1:-1].replace("/", "\\/"),
        quote(value, safe="", errors="replace"),
        quote(value, errors="replace"),
        quote_plus(value, errors="replace"),
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
