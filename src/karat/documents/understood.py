"""The first row as karat understands it: what is asked, what is right, and what is not used."""

from __future__ import annotations

import msgspec

from karat.formats import clean, excerpt

_WIDEST = 100  # columns of a line
_LABELS = 10
_LONGEST = 300  # columns of a recorded text


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the row holds: its role, its text, and the columns that it came from."""

    role: str
    text: str
    columns: tuple[str, ...] = ()


class Understood(msgspec.Struct, frozen=True, kw_only=True):
    """The first row of a dataset as it was read; `unused`: columns that are only kept."""

    parts: tuple[Part, ...]
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # how the file was read, if that is not plain

    def lines(self) -> list[str]:
        """A line each, for people: a label, the text on one line, and the columns."""
        found = []
        for part in self.parts:
            source = f"  [{', '.join(part.columns)}]" if part.columns else ""
            room = max(_WIDEST - _LABELS - 4 - len(source), 24)
            text = excerpt(" ".join(clean(part.text).split()), room)
            found.append(f"{part.role:<{_LABELS}} {text}{source}")
        if self.unused:
            found.append(f"{'not used':<{_LABELS}} {', '.join(self.unused)}")
        found += [f"{'read':<{_LABELS}} {note}" for note in self.notes]
        return found

    def texts(self) -> dict[str, str]:
        """Role → its text, cut, and the columns that it came from; for a run's record."""
        found: dict[str, str] = {}
        for part in self.parts:
            if part.role in found:
                continue
            source = f" [{', '.join(part.columns)}]" if part.columns else ""
            found[part.role] = excerpt(" ".join(clean(part.text).split()), _LONGEST) + source
        if self.unused:
            found["not used"] = ", ".join(self.unused)
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())
