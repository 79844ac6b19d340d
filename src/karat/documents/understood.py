"""The first row as karat understands it: what is asked, what is right, and what is not used; and
examples from the columns of a file whose roles are uncertain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import shorten

import msgspec

from karat.documents.cells import dialogue, lines_of
from karat.documents.columns import Columns, are_messages, paths_in
from karat.documents.names import Role, criterion_type
from karat.documents.roles import Undecided
from karat.formats import clean, excerpt

_WIDEST, _NARROWEST = 84, 24  # columns of a text on a line
_LABELS = 10
_LONGEST = 300  # columns of a recorded text
_EXAMPLES = 12  # columns of a file
_MEANINGS: dict[Role, str] = {
    "question": "what is asked",
    "golden": "the right answer, to compare with",
    "criterion": "a rule that an answer must meet",
    "answer": "what the agent answered",
}


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the row holds: its role, its text, and the columns that it came from."""

    role: str
    text: str
    columns: tuple[str, ...] = ()

    def on_one_line(self, width: int) -> str:
        """The text, cut to so many columns, and the columns of the file that it came from."""
        text = excerpt(" ".join(clean(self.text).split()), width)
        if self.columns:
            return f"{text}  [{clean(', '.join(self.columns))}]"
        return text


class Understood(msgspec.Struct, frozen=True, kw_only=True):
    """The first row of a dataset as it was read; `unused`: columns that are only kept."""

    parts: tuple[Part, ...]
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # how the file was read, if that is not plain

    def masked(self, redact: Callable[[str], str]) -> Understood:
        """The same without the secrets in its texts: before these are cut, so that no piece of one
        remains.
        """
        parts = []
        for part in self.parts:
            parts.append(msgspec.structs.replace(part, text=redact(part.text)))

        return msgspec.structs.replace(self, parts=tuple(parts))

    def lines(self) -> list[str]:
        """A line each, for people: a label, the text on one line, and the columns."""
        found = []
        for part in self.parts:
            room = max(_WIDEST - len(", ".join(part.columns)), _NARROWEST)
            found.append(f"{part.role:<{_LABELS}} {part.on_one_line(room)}")

        if self.unused:
            found.append(f"{'not used':<{_LABELS}} {clean(', '.join(self.unused))}")
        if "id" in self.unused:
            found.append(f"{'ids':<{_LABELS}} 0, 1, 2, …; for the file's, set dataset.id_key: id")
        found += [f"{'read':<{_LABELS}} {note}" for note in self.notes]
        return found

    def texts(self) -> dict[str, str]:
        """Role → its text, cut, and the columns that it came from; for a run's record."""
        found: dict[str, str] = {}
        for part in self.parts:
            found.setdefault(part.role, part.on_one_line(_LONGEST))

        if self.unused:
            found["not used"] = clean(", ".join(self.unused))
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())


def beginning(value: object) -> str:
    """What a cell begins with, on one line; cut between words, so that no piece of a secret
    remains.
    """
    if isinstance(value, list) and are_messages(value):
        value = dialogue(value)
    elif isinstance(value, Mapping):
        value = lines_of(value)

    return shorten(clean(str(value)), _WIDEST, placeholder=" …")


def examples(undecided: Undecided, columns: Columns) -> list[str]:
    """What the roles of the readings mean, and the first text of each column that they name, to
    choose a reading by.
    """
    roles, named = [], []
    for role, meaning in _MEANINGS.items():
        paths: list[str] = []
        for reading in undecided.readings:
            paths += reading.roles.get(role, ())

        if paths:
            roles.append(f"{role}: {meaning}")
            named += paths

    texts = []
    others = paths_in(columns) if named else undecided.columns
    for path in list(dict.fromkeys([*named, *others]))[:_EXAMPLES]:
        if path in columns and columns[path].filled:
            refused = (criterion_type(path) or "").startswith("not-")
            said = "none of: " if refused else ""
            texts.append(f"    {clean(path)}: {said}{beginning(columns[path].example)}")

    if not texts:
        return []
    meanings = [f"  ({'; '.join(roles)})"] if roles else []
    return [*meanings, "  the first row has:", *texts]
