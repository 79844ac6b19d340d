"""Conversations in rows that are messages, in the order of their times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter

from karat.documents.chats import BY_TURNS, NAMES_OF_SPEAKERS, Message, are_parts, has_both_sides
from karat.documents.columns import (
    Columns,
    NumberedRow,
    Row,
    cell,
    is_empty,
    number_in,
    shared_cells,
    without,
)
from karat.documents.names import (
    last_part,
    roles_of,
    side_of,
    side_of_flag,
    who_speaks,
    with_role,
    word_set,
    words_of,
)
from karat.documents.row_list import Rows
from karat.formats import plural
from karat_conversations.layouts._cells import SAYS, SPEAKERS, ends_in, written
from karat_conversations.layouts._rows import MESSAGES, asks, with_rows
from karat_conversations.layouts._shaped import rows_keys
from karat_conversations.layouts._texts import ANYONE, FEW_SPEAKERS

_PERSONS: Sequence[tuple[str, ...]] = (
    *(("user",), ("username",), ("user", "name"), ("name",), ("nick",), ("member",)),
    *(("source", "name"), ("author", "name"), ("sender", "name")),
)
"""Names of columns that say who wrote a message that has a time, and no reply beside it."""
_NUMBERED_SPEAKERS = (("speaker",), ("role",), ("sender",), ("speakers",))
"""Names of columns that say who speaks, also by a number."""
_REPLIES = word_set("answer reply response output bot assistant question label score rating")
_IDENTIFYING = (("id",), ("number",), ("conversation",), ("dialogue",), ("dialog",), ("call",))
_GROUPS = (("group",), ("session",), ("chat",), ("thread",), ("room",), ("ticket",), ("channel",))
_MESSAGE = word_set("message messages msg utterance utterances")
"""Words of the names of what is surely said by somebody."""
_TIMES = word_set("time timestamp datetime date created sent ts at")  # words of their columns
_FEW = 4  # messages that are surely one conversation
_SINCE_1973 = 1e8  # seconds since 1970; smaller numbers are durations
_Saying = tuple[int, Row, Message]
"""A message, with the number of its row and what else the row says."""


def in_rows(rows: Rows, columns: Columns, agent: Sequence[str] | None) -> Rows | None:
    """Rows that are messages, of the conversations that a column names, else all of one."""
    speaker, text = speaker_and_text_columns(columns)
    if asks(columns, text or "") or with_role(columns, "golden"):
        return None
    if speaker is None or text is None:
        keys = rows_keys(rows.first_rows())
        if keys is not None and not with_role(columns, "answer"):
            speaker, text = keys.speaker, keys.texts[0]

    if text is None:
        return None
    if speaker is None:
        return _by_turns(rows, columns, text, agent)
    if agent is not None and with_role(columns, "answer"):
        return None
    named = _conversation(rows, columns, speaker)
    if named is None:
        is_author = "author" in words_of(last_part(speaker))
        if is_author and not columns[speaker].objects:
            return None  # who wrote each text
        beside = {path for path, column in columns.items() if 2 * column.filled > column.rows}
        if "golden" in roles_of(*beside - {speaker, text}):
            return None  # a class of each message

    said = _messages_of(rows, columns, speaker, text)
    turn = None
    if named is None:
        turn, said = _by_turn_numbers(rows, columns, said)
    key = named
    if turn is not None:
        key = "conversation_id"
    when = time_column(rows, columns)
    chats, moved = by_conversation(said, key, agent, when)
    messages = chain.from_iterable(row[MESSAGES] for _, row in chats)
    if agent != ANYONE and not has_both_sides(messages):
        return None
    note = "a row: a message"
    if turn is not None:
        note += f"; '{turn}' counts the turns of {plural(len(chats), 'conversation')}"
    elif named is not None:
        note += f"; '{named}' names the conversation"
    elif len(said) > _FEW:
        note += ", all of one conversation"

    if named is not None and not {"conversation", "id"} & roles_of(named):
        for place, (number, row) in enumerate(chats):
            renamed = {"conversation_id": row.get(named), **row}
            chats[place] = number, without(renamed, (named,))

    may_be_of_persons = key is None or key in with_role(columns, "conversation")
    note += put_in_order(moved, when)
    return with_rows(rows, chats, note, regrouped=may_be_of_persons)


def _messages_of(rows: Rows, columns: Columns, speaker: str, text: str) -> list[_Saying]:
    """The message of each row. Where a flag or an object marks bots, all others are users."""
    said: list[_Saying] = []
    bots = 0
    beside = (path for path in columns if words_of(path) in NAMES_OF_SPEAKERS and path != speaker)
    named = next(beside, None)
    for number, row in rows.rows:
        spoken = {"role": _speaker(row, speaker), "content": cell(row, text)}
        bots += spoken["role"] == "assistant" and not isinstance(cell(row, speaker), str)
        if named is not None and not is_empty(row.get(named)):
            spoken["name"] = row[named]
        said.append((number, without(row, (speaker, text)), spoken))

    if not bots:
        return said
    for _, _, spoken in said:
        if spoken["role"] not in ("assistant", ""):
            spoken["role"] = "user"

    return said


def _by_turn_numbers(
    rows: Rows, columns: Columns, said: list[_Saying]
) -> tuple[str | None, list[_Saying]]:
    """The column that counts turns of several conversations, and the messages with the name of
    theirs in place of it; None: no column does.
    """
    counted = runs_of_turns(rows, columns, steps=(0, 1))
    if counted is None or counted[1][-1] < 2:
        return None, said
    turn, places = counted
    found: list[_Saying] = []
    for (number, beside, message), run in zip(said, places, strict=True):
        named = {**without(beside, (turn,)), "conversation_id": f"chat {run}"}
        found.append((number, named, message))

    return turn, found


def _speaker(row: Row, path: str) -> str:
    """Who speaks in a row; where the column is empty, the assistant if a column such as `bot_id`
    holds something.
    """
    value = cell(row, path)
    if not is_empty(value):
        return who_speaks(value) or ""
    for key in row:
        words = words_of(key)
        if not words or is_empty(row[key]):
            continue
        if side_of(words[0]) == "assistant":
            return "assistant"

    return ""


def _by_turns(rows: Rows, columns: Columns, text: str, agent: Sequence[str] | None) -> Rows | None:
    """Rows that are messages of two who speak by turns, since no column says who speaks: only the
    user can tell which of them answers.
    """
    named = next(iter(with_role(columns, "conversation")), None)
    for path in columns:
        if named is None and words_of(path)[-1:] in _IDENTIFYING:
            named = path

    is_said = _MESSAGE & {*words_of(text)} and not with_role(columns, "answer", "question")
    if agent is None or named is None or not is_said:
        return None
    turns: dict[str, int] = {}
    said: list[_Saying] = []
    when = time_column(rows, columns)
    for number, row in rows.rows:
        name = str(row.get(named))
        who = BY_TURNS[turns.get(name, 0) % 2]
        turns[name] = turns.get(name, 0) + 1
        beside = without(row, (text,))
        said.append((number, beside, {"role": who, "content": cell(row, text)}))

    if 2 * len(turns) > len(said):
        return None  # most are alone
    chats, moved = by_conversation(said, named, agent, when)
    note = f"a row: a message; '{named}' names the conversation; two speak by turns"
    return with_rows(rows, chats, note + put_in_order(moved, when))


def runs_of_turns(
    rows: Rows, columns: Columns, *, steps: Sequence[int]
) -> tuple[str, list[int]] | None:
    """The column that counts turns, and of each row the number of its conversation: another begins
    where the count falls back to 0 or 1. None: no column counts so, by such `steps`.
    """
    turn = next(iter(with_role(columns, "turn")), None)
    if turn is None:
        return None
    places: list[int] = []
    runs = 0
    last: float | None = None
    for _, row in rows.rows:
        at = number_in(str(row.get(turn)))
        goes_on = at is not None and last is not None and at - last in steps
        if at in (0, 1) and not goes_on:
            runs += 1
        elif not goes_on:
            return None

        last = at
        places.append(runs)

    return turn, places


def put_in_order(moved: int, when: str | None) -> str:
    """The end of a note on conversations whose rows were in another order; "": none."""
    if not moved:
        return ""
    return f"; {plural(moved, 'conversation')} put in the order of '{when}'"


def message_a_row(rows: Rows, chats: Sequence[NumberedRow], path: str) -> Rows:
    """The conversations in rows that hold a message each, in a cell, beside other events."""
    columns = rows.seen_columns()
    said = []
    for number, row in chats:
        for message in row[MESSAGES]:
            said.append((number, without(row, (MESSAGES,)), message))

    named = next(iter(with_role(columns, "conversation")), None)
    when = time_column(rows, columns)
    talks, moved = by_conversation(said, named, ANYONE, when)
    note = f"'{path}': a message a row" + put_in_order(moved, when)
    return with_rows(rows, talks, note, regrouped=True)


def by_conversation(
    said: Iterable[_Saying],
    named: str | None,
    agent: Sequence[str] | None,
    when: str | None = None,
) -> tuple[list[NumberedRow], int]:
    """A row for each conversation: what all its rows agree in, and its messages; and how many
    conversations were not in the order of their times.

    `said`: the messages with their rows; empty ones count only as missing replies. `named`: the
    column that names the conversation; None: there is one. `when`: the column with their times.
    """
    groups: dict[object, list[_Saying]] = {}
    for number, row, message in said:
        name = None
        if named is not None:
            name = str(row.get(named))
        groups.setdefault(name, []).append((number, row, message))

    chats: list[NumberedRow] = []
    moved = 0
    for group in groups.values():
        number = group[0][0]
        shared = shared_cells([row for _, row, _ in group])

        timed = []
        for place, (_, row, message) in enumerate(group):
            time = math.nan
            if when is not None:
                time = _place(row.get(when), when)
            timed.append((time, place, message))

        if not any(math.isnan(time) for time, _, _ in timed):
            moved += timed != sorted(timed, key=itemgetter(0, 1))
            timed.sort(key=itemgetter(0, 1))

        filled = []
        for _, _, message in timed:
            if not is_empty(message["content"]):
                filled.append(message)
            elif side_of(message["role"]) == "assistant":
                filled.append({**message, "content": ""})  # there was no reply

        chats.append((number, {**shared, MESSAGES: written(filled, agent)}))

    return chats, moved


def time_column(rows: Rows, columns: Columns) -> str | None:
    """The column that says when each message was sent: of several, the one that differs most."""
    best = None
    most = -1
    first = rows.first_rows()
    for path, column in columns.items():
        if "." in path or not _TIMES & {*words_of(path)}:
            continue
        is_dated = True
        for row in first:
            value = row.get(path)
            if not is_empty(value) and _seconds(value) is None:
                is_dated = False
                break

        if is_dated and len(column.values) > most:
            best = path
            most = len(column.values)

    if best is not None:
        return best
    for path in with_role(columns, "turn"):
        if "." not in path:
            return path

    return None


def _place(value: object, path: str) -> float:
    """Where a message belongs among others, by its time or the number of its turn; NaN: unknown."""
    seconds = _seconds(value)
    if seconds is None and "turn" in roles_of(path):
        with suppress(ValueError):
            return float(str(value))

    if seconds is None:
        return math.nan
    return seconds


def _seconds(value: object) -> float | None:
    """The time that a cell is, in seconds since 1970; None: it is none, or has no date."""
    text = str(value).strip()
    with suppress(ValueError):
        number = float(text)
        if _SINCE_1973 <= number < math.inf:
            return number
        return None

    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None

    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def _conversation(rows: Rows, columns: Columns, speaker: str) -> str | None:
    """The column that names the conversation of a message: by its name, or an id with several
    speakers; None: there is none.
    """
    named = with_role(columns, "conversation")
    if named:
        return named[0]
    first = rows.first_rows()
    for path in columns:
        words = words_of(path)
        may_name = words[-1:] in _IDENTIFYING or words in _GROUPS
        if "." in path or not may_name:
            continue
        spoken: dict[str, set[str]] = {}
        for row in first:
            who = str(cell(row, speaker))
            spoken.setdefault(str(row.get(path)), set()).add(who)

        shared = sum(len(names) > 1 for names in spoken.values())
        if 2 * shared > len(spoken) and not _names_exchanges(rows, columns, path):
            return path

    return None


def _names_exchanges(rows: Rows, columns: Columns, path: str) -> bool:
    """Whether an id is that of an exchange in a log with times: each names two messages."""
    if words_of(path)[-1:] != ("id",) or time_column(rows, columns) is None:
        return False
    sizes = Counter(str(row.get(path)) for _, row in rows.rows)
    return len(sizes) > 1 and {*sizes.values()} == {2}


def speaker_and_text_columns(columns: Columns) -> tuple[str | None, str | None]:
    """The columns that name who speaks, and what is said, in rows that are messages."""
    speaker = _column(columns, SPEAKERS)
    text = _column(columns, SAYS)
    if text is None and any(column.lists + column.objects for column in columns.values()):
        text = _inside(columns)
    if speaker is None and text is not None:
        objects, numbered, sided = [], [], []
        for path, column in columns.items():
            words = words_of(path)
            is_object = column.objects and words[-1:] != ("body",)
            if is_object and "." not in path and ends_in(path, SPEAKERS):
                objects.append(path)
            if words in _NUMBERED_SPEAKERS and len(column.values) <= FEW_SPEAKERS:
                numbered.append(path)
            if {"user", "assistant"} <= {*map(side_of, column.values)}:
                sided.append(path)  # whatever it is called: `event`, `sent_by`

        speaker = next(iter((*objects, *numbered, *sided)), None)

    if speaker is not None:
        return speaker, text
    known = set[str]()
    ends = set[str]()
    flagged = False  # by a column that says by true and false who speaks
    for path, column in columns.items():
        known |= {*words_of(path)}
        if column.is_text:
            ends |= {*words_of(path)[-1:]}
        if column.is_yes_or_no and len(column.values) == 2:
            flagged = flagged or side_of_flag(path) is not None

    if _TIMES & known and not _REPLIES & ends and not flagged:
        for path, column in columns.items():
            words = words_of(last_part(path))
            if not column.is_text:
                continue
            if speaker is None and words in _PERSONS:
                speaker = path
            if text is None and {*words} <= SAYS:
                text = path

    return speaker, text


def _inside(columns: Columns) -> str | None:
    """A column of what is said whose cells are lists of parts, or objects with the text."""
    for path, column in columns.items():
        *around, name = path.split(".")
        in_parts = are_parts(column.example) or (column.lists and column.texts)
        if not around and in_parts and ends_in(name, SAYS | {"parts", "blocks"}):
            return path
        if len(around) == 1 and column.is_text and {around[0], name} <= SAYS:
            return path

    return None


def _column(columns: Columns, words: frozenset[str]) -> str | None:
    """The first column of texts whose name has one of the words, at best as its last, and says
    nothing of a time.
    """
    found = []
    for path, column in columns.items():
        named = {*words_of(path)}
        # half of what is said may be numbers
        is_said = column.is_text or 0 < column.filled <= 2 * column.texts
        if "." not in path and is_said and words & named and not _TIMES & named:
            found.append(path)

    ending = [path for path in found if ends_in(path, words)]
    return next(iter((*ending, *found)), None)
