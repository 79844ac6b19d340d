"""Which rows of a log are one conversation: what the user says of it, and what may be said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from shlex import quote

import msgspec

from karat.documents.chats import Message, has_both_sides
from karat.documents.columns import is_empty, without
from karat.documents.names import with_role, word_set, words_of
from karat.documents.row_list import Rows
from karat.errors import BadOption, did_you_mean
from karat.formats import plural
from karat_imports.importers._reading import Json, utc

_ID = "conversation_id"
ALL, ROW = "all", "row"
_NAMING = word_set(
    "user patient customer client caller phone mobile email session call room ticket channel group "
    "visitor member student participant case contact uid guest username userid "
    "person sender from author name"
)
"""Words of the names of columns that may tell conversations apart."""
_SENDERS = word_set("from sender source author fromid senderid")
_RECIPIENTS = word_set("to recipient receiver target addressee toid recipientid receiverid")
_DAYS = (("day",), ("date",))
_TIMES = word_set("time timestamp datetime date created sent ts at")
_PAUSE = 30  # minutes, that are offered as the end of a conversation
_LONG = timedelta(hours=12)
_MOST_WAYS = 8
_FEWEST = 5  # rows of which it matters how they are grouped


def setting(key: str, values: Sequence[str]) -> str:
    """An option of the importer, as a user writes it."""
    written = f"{key}=[{', '.join(values)}]"
    if len(values) == 1:
        written = f"{key}={values[0]}"
    return f"--set {quote(written)}"


def ways_listed(ways: Iterable[str]) -> str:
    """What a user may choose from, a line each."""
    lines = []
    for number, way in enumerate(ways, start=1):
        lines.append(f"\n  {number}) {way}")

    return "".join(lines)


class Grouping(msgspec.Struct, frozen=True):
    """Which columns name the conversation, and after how many minutes a new one begins."""

    columns: tuple[str, ...] = ()
    pause: float | None = None

    @property
    def is_said(self) -> bool:
        return bool(self.columns) or self.pause is not None

    def options(self) -> str:
        """As a user writes it."""
        said = []
        if self.columns:
            said.append(setting("conversation", self.columns))
        if self.pause is not None:
            said.append(setting("pause", [f"{self.pause:g}"]))
        return " ".join(said)


def grouped(rows: Rows, by: Grouping, path: Path) -> Rows:
    """The rows with the name of their conversation in the first column. Raises BadOption for a
    column that no row has.
    """
    if not by.is_said:
        return rows
    keys = keys_of(rows)
    columns = [*by.columns]
    each = columns == [ROW] and ROW not in keys
    if columns == [ALL] and ALL not in keys:
        columns = []
    elif not columns:
        columns = [key for key in with_role(keys, "conversation") if "." not in key][:1]
    for key in () if each else columns:
        if key not in keys:
            hint = did_you_mean(key, keys)
            raise BadOption("--set conversation", f"{path}: no column is called '{key}'{hint}")

    either_way = len(columns) == 2 and _send_to_each_other(rows, *columns)
    parts: dict[tuple[str, ...], int] = {}  # of what has the same name, by pauses
    last: dict[tuple[str, ...], datetime] = {}
    times = row_times(rows) if by.pause is not None else {}
    found = rows.emptied()
    for number, row in rows.rows:
        name = tuple(str(row.get(column)) for column in columns)
        if each or any(is_empty(row.get(column)) for column in columns):
            name = (f"row {number}",)  # a row that names none is a conversation of its own
        if either_way:
            name = tuple(sorted(name))
        time = times.get(number)
        if time is not None and by.pause is not None:
            begins = abs(time - last.get(name, time)) > timedelta(minutes=by.pause)
            parts[name] = parts.get(name, 1) + begins
            last[name] = time
        words = [*name]
        if name in parts:
            words.append(str(parts[name]))
        others = without(row, (_ID,))
        found.add(number, {_ID: " ".join(words) or path.stem, **others})

    return found


def choices(rows: Rows, lay: Callable[[Rows], Rows], path: Path) -> list[str]:
    """The ways in which the rows of a log may be conversations, to choose from; none: there is one
    that is certain. `lay` makes conversations of rows.
    """
    if rows.count < _FEWEST:
        return []
    keys = keys_of(rows)
    named = with_role(keys, "conversation")[:1]
    if named and not _long_pauses(rows, named[0]):
        return []
    by_columns = [*(Grouping((key,)) for key in named), *_by_columns(rows, keys)]
    parted = [Grouping(by.columns, _PAUSE) for by in by_columns]
    if not named:
        parted.append(Grouping((), _PAUSE))
    found: dict[tuple[int, ...], tuple[Grouping, str]] = {}
    for by in (Grouping((ROW,)), *by_columns, *parted):
        chats = _chats(rows, by, lay, path)
        complete = sum(has_both_sides(chat) for chat in chats)
        if len(chats) > 1 and 2 * complete > len(chats):
            said = plural(len(chats), "conversation")
            if by.pause is not None:
                said += f"; {_PAUSE} minutes without a message begin a new one"
            sizes = tuple(map(len, chats))
            found.setdefault(sizes, (by, f"{by.options()}  # {said}"))

    each_may_be_one = any(by.columns == (ROW,) for by, _ in found.values())
    by_names = [by for by, _ in found.values() if by.columns not in ((), (ROW,))]
    if not found or (each_may_be_one and not by_names):
        return []
    ways = [way for _, way in found.values()][:_MOST_WAYS]
    if not named:
        ways.append(f"{Grouping((ALL,)).options()}  # one conversation")
    return ways


def _chats(
    rows: Rows, by: Grouping, lay: Callable[[Rows], Rows], path: Path
) -> list[list[Message]]:
    """The conversations that there would be; none: a column holds what is said, or who says it."""
    found = []
    kept: set[str] = set()
    for _, row in lay(grouped(rows, by, path)).rows:
        chat = row.get("messages")
        if not isinstance(chat, list):
            return []
        found.append(chat)
        kept |= row.keys()

    of_a_pair = len(by.columns) == 2 and _send_to_each_other(rows, *by.columns)
    if of_a_pair or {*by.columns} - {ROW} <= kept:
        return found
    return []


def _by_columns(rows: Rows, keys: Mapping[str, None]) -> Iterator[Grouping]:
    """The columns whose names and values may tell conversations apart, also by day."""
    for key in keys:
        for other in keys:
            is_pair = {*words_of(key)} & _SENDERS and {*words_of(other)} & _RECIPIENTS
            if is_pair and _send_to_each_other(rows, key, other):
                yield Grouping((key, other))

    days = [key for key in keys if words_of(key) in _DAYS and _is_shared(rows, key)]
    for key in keys:
        words = words_of(key)
        may_name = words[-1:] == ("id",) or not _NAMING.isdisjoint(words)
        if may_name and _is_shared(rows, key):
            yield Grouping((key,))
            if days:
                yield Grouping((key, days[0]))


def _send_to_each_other(rows: Rows, sender: str, recipient: str) -> bool:
    """Whether two columns name the same persons, so that a pair is one in either order."""
    sent = {str(row.get(sender)) for _, row in rows.rows}
    received = {str(row.get(recipient)) for _, row in rows.rows}
    return len(sent & received) > 1


def _is_shared(rows: Rows, key: str) -> bool:
    """Whether a column has few values, of which most rows have one."""
    values = []
    for _, row in rows.rows:
        if not is_empty(row.get(key)):
            values.append(str(row.get(key)))

    return 1 < len({*values}) <= len(values) / 2 and 2 * len(values) > rows.count


def _long_pauses(rows: Rows, named: str) -> bool:
    """Whether many messages are of conversations that go on after half a day, so that their name
    may be that of a person.
    """
    last: dict[str, datetime] = {}
    sizes: dict[str, int] = {}
    resumed: set[str] = set()
    times = row_times(rows)
    for number, row in rows.rows:
        name = str(row.get(named))
        sizes[name] = sizes.get(name, 0) + 1
        time = times.get(number)
        if time is not None:
            if abs(time - last.get(name, time)) > _LONG:
                resumed.add(name)
            last[name] = time

    return 4 * sum(sizes[name] for name in resumed) > rows.count


def keys_of(rows: Rows) -> dict[str, None]:
    """The keys of all rows, in their order."""
    keys: dict[str, None] = {}
    for _, row in rows.rows:
        keys |= dict.fromkeys(row)

    return keys


def row_times(rows: Rows) -> dict[int, datetime]:
    """When each row was written, by its number; none: no column says so."""
    for key in keys_of(rows):
        if _TIMES.isdisjoint(words_of(key)) or words_of(key) in _DAYS:
            continue
        found = {}
        for number, row in rows.rows:
            written = utc(Json(row).text(key))
            if written is not None:
                found[number] = datetime.fromisoformat(written)

        if 2 * len(found) > rows.count:
            return found

    return {}
