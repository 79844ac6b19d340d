"""A value in a row with its place: reads it as a text, list and so on, and records faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.documents.validation import shown


class Value:
    """A value and its place. Faults go to `wrong`, which all values of a row share."""

    def __init__(self, value: object, path: str = "", wrong: list[str] | None = None) -> None:
        self.value, self.path = value, path
        self.wrong: list[str] = [] if wrong is None else wrong

    def at(self, key: str) -> Value:
        """The value under a key; a value of None if the key is missing."""
        if isinstance(self.value, Mapping):
            value = self.value.get(key)
        else:
            value = None

        return Value(value, f"{self.path}.{key}" if self.path else key, self.wrong)

    def within(self, key: str) -> Value | None:
        """The object under a key; None, and a fault, if there is none."""
        value = self.at(key)
        if isinstance(value.value, Mapping):
            return value
        value.refuse("an object")
        return None

    def note(self, fault: str) -> None:
        """Records a fault of this value."""
        self.wrong.append(f"'{self.path}' {fault}")

    def refuse(self, wanted: str) -> None:
        """Records that the value is missing, or is not what is wanted."""
        if self.value is None:
            self.wrong.append(f"has no '{self.path}'")
        else:
            self.note(f"must be {wanted}, got {shown(self.value)}")

    def list(self, *, optional: bool = False) -> list[Value]:
        """The entries of a list; none, and a fault, if it is not a list."""
        value = [] if optional and self.value is None else self.value
        if not isinstance(value, list):
            self.refuse("a list")
            return []

        found: list[Value] = []
        for index, below in enumerate(value):
            found.append(Value(below, f"{self.path}.{index}", self.wrong))

        return found

    def text(self, *, number: bool = False, optional: bool = False) -> str:
        """A text that is not empty, or a number as text; "" if there is none, which is a fault
        unless `optional`.
        """
        value = self.value
        if number and isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return value
        if not optional or (value is not None and not isinstance(value, str)):
            self.refuse("a text")
        return ""

    def id(self) -> str:
        """A text, or a whole number as text."""
        return self.text(number=isinstance(self.value, int))

    def choice(self, known: Sequence[str]) -> str:
        """One of the known texts; a missing value is "" if that is one of them."""
        value = "" if self.value is None and "" in known else self.value
        if isinstance(value, str) and value in known:
            return value
        listed = ", ".join(f"'{text}'" for text in known)
        self.note(f"must be one of {listed}, got {shown(value)}")
        return ""
