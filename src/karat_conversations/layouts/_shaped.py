"""Lists of messages whose keys no table of names has: who speaks and what is said, by what they
hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

import msgspec

from karat.documents.cells import parsed
from karat.documents.chats import Message, has_both_sides, with_sides
from karat.documents.columns import (
    LOOKED_AT,
    Column,
    Columns,
    Row,
    are_objects,
    cell,
    columns_of,
    is_empty,
    without,
)
from karat.documents.names import (
    NOT_SPEAKING,
    last_part,
    roles_of,
    side_of,
    side_of_flag,
    word_set,
    words_of,
)
from karat.documents.row_list import Rows
from karat_conversations.layouts._cells import SAYS, SPEAKERS, ends_in, is_spoken
from karat_conversations.layouts._rows import MESSAGES, with_rows
from karat_conversations.layouts._texts import ANYONE, FEW_SPEAKERS

_LONGEST_NAME = 40  # of somebody who speaks
_SHORTEST_TEXT = 10  # characters that messages have on average, where no name says what they are
_TIMES = word_set("time timestamp datetime date created updated sent ts at")
"""Words of the names of when something was said."""
_CHANGES = 0.8  # of the rows of a table are by another than the row before, if nothing else tells
_FEW_NAMES = 3  # that may be of speakers in such a table
_FEWEST_ROWS = 5


class Keys(msgspec.Struct, frozen=True):
    """Where messages hold who speaks, and what is said."""

    speaker: str
    texts: tuple[str, ...]  # a message has its text under one of them
    side: str | None = None  # of those whose `speaker` is true; None: it is their name

    def message(self, entry: Row) -> Message:
        """A message with the usual keys, and its own; without content if it has no text."""
        filled = [cell(entry, path) for path in self.texts]
        filled = [value for value in filled if not is_empty(value)]
        who = cell(entry, self.speaker)
        if self.side is not None:
            is_it = str(who).strip().lower() in ("true", "yes", "1")
            if is_it:
                who = self.side
            else:
                who = _OTHER[self.side]

        read = {path.partition(".")[0] for path in (self.speaker, *self.texts)}
        kept = without(entry, read)
        return {**kept, "role": str(who), "content": next(iter(filled), None)}


_OTHER = {"user": "assistant", "assistant": "user"}


def in_shaped_lists(rows: Rows, columns: Columns, agent: Sequence[str] | None) -> Rows | None:
    """Rows with a list of objects of which one key has few short values in turn, and another what
    they say.
    """
    first = rows.first_rows()
    for path in columns:
        lists = [_entries(cell(row, path)) for row in first]
        lists = [entries for entries in lists if entries]
        if 2 * len(lists) <= columns[path].filled:
            continue
        keys = message_keys(lists, path)
        if keys is None:
            continue
        chats = []
        for number, row in rows.rows:
            top = path.partition(".")[0]
            entries = []  # before the list, objects that are messages: what began the chat
            for key, value in row.items() if top in row else ():
                if key == top:
                    break
                if isinstance(value, Mapping) and not is_empty(cell(value, keys.speaker)):
                    entries.append(value)

            entries += _entries(cell(row, path))
            said = [keys.message(entry) for entry in entries]
            said = [message for message in said if message["content"] is not None]
            if agent != ANYONE:
                said = with_sides(said, agent, system_answers=True)
            others = without(row, (top,))
            chats.append((number, {**others, MESSAGES: said}))

        known = any(has_both_sides(row[MESSAGES]) for _, row in chats)
        if known or agent == ANYONE:
            texts = " or ".join(f"'{text}'" for text in keys.texts)
            note = f"'{path}': conversations, '{keys.speaker}' says who speaks, {texts} what"
            return with_rows(rows, chats, note)

    return None


def rows_keys(rows: Sequence[Row]) -> Keys | None:
    """Where the rows of a table that are messages hold who speaks, and what: also where no name
    says so, if two or three names alternate in exactly one column. None: it is not known.
    """
    keys = message_keys([rows], "")
    if keys is not None and keys.side is None and ends_in(keys.texts[0], SAYS):
        return keys
    if keys is not None or len(rows) < _FEWEST_ROWS:
        return None
    inside = columns_of(rows)
    texts = _texts(inside)
    if len(texts) != 1 or not ends_in(texts[0], SAYS):
        return None
    found = []
    for name, column in inside.items():
        names = [str(cell(row, name)) for row in rows]
        few = 1 < len({*names}) <= _FEW_NAMES and not column.flags and not column.numbers
        few = few and roles_of(name) <= {"metadata"}  # `name` says nothing else
        short = few and _are_names(column) and column.filled == len(rows) and name not in texts
        changes = sum(first != second for first, second in pairwise(names))
        if short and changes >= _CHANGES * (len(rows) - 1):
            found.append(name)

    if len(found) == 1:
        return Keys(found[0], texts)
    return None


def _entries(value: object) -> list[Row]:
    """The objects in a list, also in one that is written as text; none: it holds something else."""
    if isinstance(value, str):
        value = parsed(value)
    if not isinstance(value, list) or not are_objects(value):
        return []
    return value


def message_keys(lists: Sequence[Sequence[Row]], path: str) -> Keys | None:
    """Where the messages in such lists hold who speaks, and what; None: they are no messages."""
    entries = [*islice((entry for part in lists for entry in part), LOOKED_AT)]
    inside = columns_of(entries)
    texts = _texts(inside)
    beside = {name: column for name, column in inside.items() if name not in texts}
    if not texts:
        return None
    for name, column in beside.items():
        sides = {side_of(value) for value in column.values}
        in_most = 2 * column.filled > len(entries)
        if _are_names(column) and sides >= {"user", "assistant"} and in_most:
            return Keys(name, texts)
        flagged = side_of_flag(name)
        if flagged is not None and column.is_yes_or_no and len(column.values) == 2:
            return Keys(name, texts, flagged)

    if not is_spoken(path) and not all(ends_in(name, SAYS) for name in texts):
        return None  # objects of which nothing says that people speak: accounts and their roles
    for name in _may_speak(beside, len(entries), any_name=is_spoken(path)):
        in_turn = sum(_alternate(part, name) for part in lists)
        if 2 * in_turn > len(lists):
            return Keys(name, texts)

    return None


def _texts(inside: Columns) -> tuple[str, ...]:
    """The keys that hold what is said: by their names, else the one with by far the longest."""
    spoken = []
    for name, column in inside.items():
        if column.is_text and column.values and not _TIMES & {*words_of(last_part(name))}:
            spoken.append(name)

    named = [name for name in spoken if ends_in(name, SAYS)]
    if named:
        return tuple(named)
    for name in [*spoken]:
        values = inside[name].values
        with_words = 0
        for value in values:
            if any(map(str.isalpha, value)) and (" " in value or not value.isascii()):
                with_words += 1

        if 2 * with_words <= len(values):
            spoken.remove(name)  # times, or ids

    longest = sorted(spoken, key=lambda name: -inside[name].mean_length)
    if not longest or inside[longest[0]].mean_length < _SHORTEST_TEXT:
        return ()
    others = [inside[name].mean_length for name in longest[1:]]
    if others and 2 * others[0] > inside[longest[0]].mean_length:
        return ()
    return (longest[0],)


def _are_names(column: Column) -> bool:
    """Whether all values are as short as names."""
    return bool(column.values) and all(len(value) <= _LONGEST_NAME for value in column.values)


def _may_speak(inside: Columns, count: int, *, any_name: bool) -> Iterator[str]:
    """The keys that may say who speaks, in every message and shortly: by their names first."""
    short = []
    for name, column in inside.items():
        if _are_names(column) and column.filled == count and not column.flags:
            short.append(name)

    by_name = []
    for name in short:
        if SPEAKERS & {*words_of(last_part(name))}:
            by_name.append(name)

    yield from by_name
    if any_name:
        yield from (name for name in short if name not in by_name)


def _alternate(entries: Sequence[Row], speaker: str) -> bool:
    """Whether a few speak, and mostly another than before, as in a conversation."""
    names = [str(cell(entry, speaker)) for entry in entries]
    people = {*names}
    if not 1 < len(people) <= FEW_SPEAKERS or people <= NOT_SPEAKING:
        return False
    changes = sum(first != second for first, second in pairwise(names))
    again = len(people) < len(names) or len(names) <= 3
    return again and 2 * changes >= len(names) - 1
