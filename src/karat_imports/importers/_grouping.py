"""Which rows of a log are one conversation: what the user says of it, and what may be said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from shlex import quote

import msgspec

from karat.documents.candidates import SHOWN
from karat.documents.chats import Message, has_both_sides
from karat.documents.columns import MISSING, Row, are_objects, is_empty, without
from karat.documents.names import meanings, roles_of, with_role, word_set, words_of
from karat.documents.row_list import Rows
from karat.errors import BadOption, did_you_mean
from karat.formats import plural, some_names, some_of
from karat_imports.importers._reading import moment

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
OF_TIME = word_set("time timestamp datetime date created updated sent ts at")
_NOBODY = MISSING | {"unknown", "anonymous", "undefined"}
_PAUSE = 30  # minutes, that are offered as the end of a conversation
_LONG = timedelta(hours=12)
_FEWEST_BELOW = 3  # rows of a block, with its first
_FEWEST_BLOCKS = 2
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


_TIME_PARTS = re.compile(r"\d+[-:/.]\d+")


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
    """The rows with the name of their conversation in the first column, and those that hold chats
    with long pauses in parts. Raises BadOption for a column that no row has.
    """
    if not by.is_said:
        return rows
    are_chats = by.pause is not None and any(_timed(row) for _, row in rows.rows)
    columns, each = _naming(rows, by, path, are_chats=are_chats)
    either_way = len(columns) == 2 and _send_to_each_other(rows, *columns)
    parts: dict[tuple[str, ...], int] = {}  # of what has the same name, by pauses
    last: dict[tuple[str, ...], datetime] = {}
    if by.pause is not None and not are_chats:
        times = row_times(rows)
    else:
        times = {}

    pause = timedelta(minutes=by.pause or 0)
    splits = 0
    found = rows.emptied()
    for number, row in rows.rows:
        name = tuple(str(row.get(column)) for column in columns)
        if each or any(is_empty(row.get(column)) for column in columns):
            name = (f"row {number}",)  # a row that names none is a conversation of its own
        if either_way:
            name = tuple(sorted(name))
        time = times.get(number)
        if time is not None:
            is_new = abs(time - last.get(name, time)) > pause
            splits += is_new
            parts[name] = parts.get(name, 1) + is_new
            last[name] = time

        if are_chats:
            pieces = _parted(row, pause)
        else:
            pieces = [row]

        splits += len(pieces) - 1
        for piece in pieces:
            if are_chats:
                parts[name] = parts.get(name, 0) + 1
            words = [*name]
            if name in parts:
                words.append(str(parts[name]))
            others = without(piece, (_ID,))
            found.add(number, {_ID: " ".join(words) or path.stem, **others})

    if by.pause is not None and not splits:
        if parts:
            why = "no gap is that long"
        else:
            why = "no column holds the times of messages"

        found.notes.append(f"pause={by.pause:g} splits no conversation: {why}")

    return found


def _naming(rows: Rows, by: Grouping, path: Path, *, are_chats: bool) -> tuple[list[str], bool]:
    """The columns that name the conversation, and whether each row is one."""
    keys = keys_of(rows)
    columns = [*by.columns]
    if columns == [ROW] and ROW not in keys:
        return [], True
    if columns == [ALL] and ALL not in keys:
        return [], False
    if not columns:
        named = with_role(keys, "conversation")
        if are_chats:
            named += with_role(keys, "id")
        columns = [key for key in named if "." not in key][:1]
        return columns, are_chats and not columns

    for key in columns:
        if key not in keys:
            hint = did_you_mean(key, keys)
            raise BadOption("--set conversation", f"{path}: no column is called '{key}'{hint}")

    return columns, False


def times_of(said: Sequence[Mapping[str, object]]) -> list[str]:
    """When each message was written; none: some do not say."""
    found = []
    for message in said:
        for key in message:
            if OF_TIME.isdisjoint(words_of(key)):
                time = None
            else:
                time = moment(message[key])

            if time is not None:
                found.append(time)
                break
        else:
            return []

    return found


def _timed(row: Row) -> str | None:
    """The column with a list of messages that all say when they were written; None: none has."""
    for key, value in row.items():
        listed = isinstance(value, list) and are_objects(value)
        if listed and times_of(value):
            return key

    return None


def _parted(row: Row, pause: timedelta) -> list[Row]:
    """The row, or one for each part of its chat that a pause ends."""
    key = _timed(row)
    if key is None:
        return [row]
    parts: list[list[object]] = []
    before = None
    for message, written in zip(row[key], times_of(row[key]), strict=True):
        time = datetime.fromisoformat(written)
        if before is None or abs(time - before) > pause:
            parts.append([])
        parts[-1].append(message)
        before = time

    return [{**row, key: part} for part in parts]


def without_placeholders(rows: Rows, by: Grouping) -> Rows:
    """The rows without the words for none in columns that name the conversation; without a column
    that holds nothing else.
    """
    keys = keys_of(rows)
    notes = []
    empty = []  # columns
    looked_at = dict.fromkeys([*with_role(keys, "conversation"), *by.columns])
    for key in looked_at:
        named = []
        for _, row in rows.rows:
            if not is_empty(row.get(key)):
                named.append(row[key])

        words = Counter(_word(value) for value in named if _word(value) in _NOBODY)
        said = some_of([f"'{word}' ({plural(words[word], 'row')})" for word in words])
        if words:
            notes.append(f"{said} in '{key}' names no conversation")
        if words and words.total() == len(named) and key not in by.columns:
            empty.append(key)

    if not notes:
        return rows
    found = rows.emptied(*notes)
    for number, row in rows.rows:
        kept = without(row, empty)
        for key in kept.keys() & looked_at.keys():
            if _word(kept[key]) in _NOBODY:
                kept[key] = None

        found.add(number, kept)

    return found


def _word(value: object) -> str:
    return str(value).strip().casefold()


def with_headers(rows: Rows, by: Grouping) -> Rows:
    """The rows, each with the cells that only the first row of its conversation fills, if several
    columns with an id are filled so and others always; the id names the conversation if nothing
    else is said.
    """
    filled: dict[str, list[int]] = {}
    for place, (_, row) in enumerate(rows.rows):
        for key in row:
            if not is_empty(row[key]):
                filled.setdefault(key, []).append(place)

    heads: dict[tuple[int, ...], list[str]] = {}
    always = 0
    for key, places in filled.items():
        always += 10 * len(places) >= 9 * rows.count
        if places[0] == 0 and 1 < len(places) <= rows.count / _FEWEST_BELOW:
            heads.setdefault(tuple(places), []).append(key)

    keys = max(heads.values(), key=len, default=[])
    ids = []
    for key in keys:
        named = set()
        for _, row in rows.rows:
            if not is_empty(row.get(key)):
                named.add(str(row.get(key)))

        is_id = any(meaning.role in ("conversation", "id") for meaning in meanings(key))
        if is_id and len(named) == len(filled[key]):
            ids.append(key)

    if len(keys) < 2 or not ids or always < 2:
        return rows
    shown = some_names(keys, most=6)
    note = f"{shown}: on the first row of {len(filled[ids[0]])} blocks only, read for all below it"
    found = rows.emptied(note)
    head: dict[str, object] = {}
    for number, row in rows.rows:
        if not is_empty(row.get(ids[0])):
            head = {key: row[key] for key in keys}
        whole = {**row, **head}
        if not by.is_said:
            whole = {_ID: str(whole.pop(ids[0])), **whole}
        found.add(number, whole)

    if not by.is_said:
        found.notes[-1] += f"; '{ids[0]}' names the conversation"
    return found


def choices(rows: Rows, lay: Callable[[Rows], Rows], path: Path) -> list[str]:
    """The ways in which the rows of a log may be conversations, to choose from; none: there is one
    that is certain. `lay` makes conversations of rows.
    """
    keys = keys_of(rows)
    dated = _are_dated(rows, keys)
    if rows.count < _FEWEST and not dated:
        return []
    named = with_role(keys, "conversation")[:1]
    if named and not _long_pauses(rows, named[0]):
        return []
    apart = _chats(rows, Grouping((ROW,)), lay, path)
    exchanges = 2 * sum(map(has_both_sides, apart)) > len(apart)
    if rows.count < _FEWEST and not exchanges:
        return []
    by_columns = [Grouping((key,)) for key in named]
    by_columns += _by_columns(rows, keys, blocks=not exchanges)
    parted = [Grouping(by.columns, _PAUSE) for by in by_columns]
    if not named:
        parted.append(Grouping((), _PAUSE))
    found: dict[tuple[int, ...], tuple[Grouping, str]] = {}
    for by in (Grouping((ROW,)), *by_columns, *parted):
        chats = _chats(rows, by, lay, path)
        complete = sum(map(has_both_sides, chats))
        if len(chats) > 1 and 2 * complete > len(chats):
            said = plural(len(chats), "conversation")
            if by.pause is not None:
                said = _parted_at(len(chats))
            sizes = tuple(map(len, chats))
            found.setdefault(sizes, (by, f"{by.options()}  # {said}"))

    each_may_be_one = any(by.columns == (ROW,) for by, _ in found.values())
    by_names = [by for by, _ in found.values() if by.columns not in ((), (ROW,))]
    # a pause between all rows says that none follows another
    dated = dated and len(_chats(rows, Grouping((), _PAUSE), lay, path)) < rows.count
    if not found or (each_may_be_one and not (by_names or dated)):
        return []
    ways = [way for _, way in found.values()][:SHOWN]
    if not named:
        ways.append(f"{Grouping((ALL,)).options()}  # one conversation")
    return ways


def _are_dated(rows: Rows, keys: Collection[str]) -> bool:
    """Whether a column says when most rows were written, in whatever form, so that they may follow
    each other; and none that several models or settings were compared, or which turn each is.
    """
    if with_role(keys, "model", "condition", "turn"):
        return False
    for key in keys:
        written = 0
        for _, row in rows.rows:
            written += len(_TIME_PARTS.findall(str(row.get(key)))) > 1

        if not OF_TIME.isdisjoint(words_of(key)) and 2 * written > rows.count:
            return True

    return False


def choices_of_chats(rows: Rows) -> list[str]:
    """The same of rows that are chats: each is one conversation, or pauses part those of a person;
    none: few go on after half a day.
    """
    said = resumed = parts = 0
    for _, row in rows.rows:
        key = _timed(row)
        parts += len(_parted(row, timedelta(minutes=_PAUSE)))
        if key is None:
            continue
        said += len(row[key])
        if len(_parted(row, _LONG)) > 1:
            resumed += len(row[key])

    if 4 * resumed <= said:
        return []
    named = [key for key in with_role(keys_of(rows), "conversation", "id") if "." not in key]
    each = Grouping(tuple(named[:1]) or (ROW,))
    parted = Grouping((), _PAUSE)
    return [
        f"{parted.options()}  # {_parted_at(parts)}",
        f"{each.options()}  # {plural(rows.count, 'conversation')}",
    ]


def _parted_at(conversations: int) -> str:
    held = plural(conversations, "conversation")
    return f"{held}; {_PAUSE} minutes without a message begin a new one"


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


def _by_columns(rows: Rows, keys: Mapping[str, None], *, blocks: bool) -> Iterator[Grouping]:
    """The columns whose names and values may tell conversations apart, also by day. `blocks`: or
    the places of their values alone.
    """
    for key in keys:
        for other in keys:
            is_pair = {*words_of(key)} & _SENDERS and {*words_of(other)} & _RECIPIENTS
            if is_pair and _send_to_each_other(rows, key, other):
                yield Grouping((key, other))

    days = []
    for key in keys:
        if words_of(key) in _DAYS and _is_shared(rows, key):
            days.append(key)

    for key in keys:
        words = words_of(key)
        if "turn" in roles_of(key):
            continue
        may_name = words[-1:] == ("id",) or not _NAMING.isdisjoint(words)
        stands = not roles_of(key) and _in_blocks(rows, key)
        if stands and not may_name:
            # in every value a digit, as ids have and categories have not
            may_name = True
            for _, row in rows.rows:
                has_digit = any(map(str.isdecimal, str(row.get(key))))
                may_name = may_name and (blocks or has_digit)

        if may_name and _is_shared(rows, key):
            yield Grouping((key,))
            if days:
                yield Grouping((key, days[0]))


def _send_to_each_other(rows: Rows, sender: str, recipient: str) -> bool:
    """Whether two columns name the same persons, so that a pair is one in either order."""
    sent = {str(row.get(sender)) for _, row in rows.rows}
    received = {str(row.get(recipient)) for _, row in rows.rows}
    return len(sent & received) > 1


def _in_blocks(rows: Rows, key: str) -> bool:
    """Whether the rows of each value of a column stand together, and no name says it is a time."""
    if not OF_TIME.isdisjoint(words_of(key)):
        return False
    values = [str(row.get(key)) for _, row in rows.rows]
    blocks = 1 + sum(first != second for first, second in pairwise(values))
    return blocks == len({*values}) and blocks >= _FEWEST_BLOCKS


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
    numbers = {number for number, _ in rows.rows}  # a row may have been parted
    for key in keys_of(rows):
        if OF_TIME.isdisjoint(words_of(key)) or words_of(key) in _DAYS:
            continue
        found = {}
        for number, row in rows.rows:
            written = moment(row.get(key))
            if written is not None:
                found[number] = datetime.fromisoformat(written)

        if 2 * len(found) > len(numbers):
            return found

    return {}
