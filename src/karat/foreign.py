"""Reads JSON of others, where any key may be missing and any value of another type."""

from __future__ import annotations

import math

from karat.formats import text_of
from karat.records import JsonObject, Usage


class Json(dict[str, object]):
    """An object in what others wrote, empty for any other value.

    What its methods give has the requested type, or is missing.
    """

    __slots__ = ()

    def __init__(self, value: object = None) -> None:
        super().__init__(value if isinstance(value, dict) else {})

    def at(self, *keys: str) -> Json:
        """The object at a path of keys, an empty one if there is none."""
        value = self
        for key in keys:
            value = Json(value.get(key))

        return value

    def list(self, key: str) -> list[Json]:
        """The objects in a list."""
        values = self.get(key)
        if isinstance(values, list):
            return [Json(value) for value in values if isinstance(value, dict)]
        return []

    def text(self, *keys: str) -> str | None:
        """The first of these that is a text and not empty."""
        for key in keys:
            value = self.get(key)
            if isinstance(value, str) and value:
                return value

        return None

    def first(self, *keys: str) -> object:
        """The first of these that is there and not null."""
        for key in keys:
            value = self.get(key)
            if value is not None:
                return value

        return None

    def shown(self, *keys: str) -> str | None:
        """The same: a text as it is, anything else as JSON."""
        value = self.first(*keys)
        if value is None:
            return None
        return text_of(value)

    def flag(self, key: str) -> bool | None:
        value = self.get(key)
        if isinstance(value, bool):
            return value
        return None

    def number(self, key: str, *, low: float = -math.inf, times: float = 1.0) -> float | None:
        """A finite number (not a boolean) of at least `low`, multiplied by the unit that it
        is in.
        """
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        if low <= value and abs(value) < 1e300:
            return float(value) * times
        return None

    def score(self, key: str) -> float | bool | None:
        """A verdict, or a finite number."""
        flag = self.flag(key)
        if flag is None:
            return self.number(key)
        return flag

    def count(self, *keys: str) -> int | None:
        """The first of these that is a whole number from 0 on."""
        for key in keys:
            value = self.number(key, low=0)
            if value is not None and value == int(value):
                return int(value)

        return None

    def usage(self, **names: str | tuple[str, ...]) -> Usage | None:
        """Tokens: our name for them → the key, or the keys to try. None if none is known."""
        counts: dict[str, int | None] = {}
        for ours, keys in names.items():
            if isinstance(keys, str):
                counts[ours] = self.count(keys)
            else:
                counts[ours] = self.count(*keys)

        if any(tokens is not None for tokens in counts.values()):
            return Usage(**counts)
        return None

    def without(self, *keys: str) -> JsonObject:
        return {key: value for key, value in self.items() if key not in keys}
