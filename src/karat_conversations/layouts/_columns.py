"""Conversations in the columns of a table: a column a turn, or a column a speaker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from karat.documents.chats import NO_TEXT, Message, has_both_sides
from karat.documents.columns import (
    Columns,
    NumberedRow,
    Row,
    are_texts,
    columns_of,
    is_empty,
    without,
)
from karat.documents.names import with_role, word_set, words_of
from karat.documents.row_list import Rows
from karat.formats import plural
from karat_conversations.layouts._cells import (
    ANSWERED,
    ASKED,
    SAYS,
    SPEAKERS,
    ends_in,
    of_side,
    pair,
    side_of_column,
    written,
)
from karat_conversations.layouts._messages import (
    by_conversation,
    put_in_order,
    runs_of_turns,
    time_column,
)
from karat_conversations.layouts._rows import MESSAGES, with_rows
from karat_conversations.layouts._texts import ANYONE

_SIDES = (("user", ASKED), ("assistant", ANSWERED))
_NUMBERED = re.compile(r"(.*?)[\s_.-]*(\d{1,2})(?!\d)[\s_.-]*(.*)")
_SHORT = {"q": "question", "a": "answer"}
_LISTED = {"messages": "user", "replies": "assistant", "responses": "assistant"}
"""Whose words a list holds beside the other side's."""
_COUNTED = word_set("turn round step exchange t")  # what a number in a column's name counts


def in_numbered_columns(rows: Rows, columns: Columns) -> Rows | None:
    """Tables with columns such as `q1`, `a1`, `q2`, `a2`: what each side says in each turn."""
    sides: dict[str, dict[str, str]] = {}  # of each number: side → column
    for path in sorted(columns, key=lambda path: _NUMBERED.fullmatch(path) is None):
        match = _NUMBERED.fullmatch(path)
        number = "1"
        stems = [path]
        if match is not None:
            number = match[2].lstrip("0") or "0"
            # What a name says besides its number: all, what follows the number, what precedes it
            before = "_".join(word for word in words_of(match[1]) if word not in _COUNTED)
            names = (f"{before}_{match[3]}".strip("_"), match[3], before)
            stems = []
            for name in filter(None, names):
                stems.append(_SHORT.get(name.lower(), name))

        if not columns[path].is_text:
            continue
        for stem in stems:
            said = [side for side, roles in _SIDES if of_side([stem], side, roles)]
            for side in said:
                sides.setdefault(number, {}).setdefault(side, path)

            if said:
                break

    turns = []
    for number in sorted(sides, key=int):
        if len(sides[number]) == 2:
            turns.append(sides[number])

    if len(turns) < 2:
        return None
    used = {path for turn in turns for path in turn.values()}
    chats = []
    for place, row in rows.rows:
        messages = []
        for turn in turns:
            for side in ("user", "assistant"):
                if not is_empty(row.get(turn[side])):
                    messages.append({"role": side, "content": row[turn[side]]})

        others = without(row, used)
        chats.append((place, {**others, MESSAGES: messages}))

    return with_rows(rows, chats, "a row: the turns of a conversation")


def in_lists_of_sides(rows: Rows, columns: Columns) -> Rows | None:
    """Tables with a list of all that the user says, and one of all that the assistant says: by
    turns, and whoever says one thing more begins.
    """
    lists: dict[str, str] = {}
    for path, column in columns.items():
        side = side_of_column(path) or _LISTED.get(path.lower())
        if side is not None and 2 * column.lists > column.rows and "." not in path:
            lists.setdefault(side, path)

    if len(lists) < 2:
        return None
    chats = []
    for number, row in rows.rows:
        said = {side: row.get(path) or [] for side, path in lists.items()}
        texts = [text for listed in said.values() for text in listed]
        apart = len(said["user"]) - len(said["assistant"])
        if not are_texts(texts) or not -1 <= apart <= 1:
            return None  # what follows what is unknown
        order = ["user", "assistant"]
        if apart < 0:
            order.reverse()
        messages = []
        for at in range(max(map(len, said.values()))):
            for side in order:
                if at < len(said[side]):
                    messages.append({"role": side, "content": said[side][at]})

        beside = without(row, lists.values())
        chats.append((number, {**beside, MESSAGES: messages}))

    named = f"'{lists['user']}' and '{lists['assistant']}'"
    return with_rows(rows, chats, f"conversations: the lists {named}, by turns")


def in_parallel_lists(rows: Rows, columns: Columns, agent: Sequence[str] | None) -> Rows | None:
    """Tables with a list of all that is said, and one of who says it."""
    if [*columns] == ["id", "value"] and columns["value"].lists == rows.count:
        # One object: its keys are rows
        whole = {str(row["id"]): row["value"] for _, row in rows.rows}
        rows = with_rows(rows, [(1, whole)], "one conversation")
        columns = columns_of([whole])

    speaker = text = None
    listed = [path for path, column in columns.items() if 2 * column.lists > column.rows]
    for path in listed:
        if speaker is None and ends_in(path, SPEAKERS):
            speaker = path

    for path in listed:
        if text is None and path != speaker and not SAYS.isdisjoint(words_of(path)):
            text = path

    if speaker is None or text is None:
        return None
    chats = []
    for number, row in rows.rows:
        names = row.get(speaker) or []
        texts = row.get(text) or []
        if len(names) != len(texts) or not are_texts(texts):
            return None
        pairs = zip(names, texts, strict=True)
        said = []
        for name, content in pairs:
            said.append({"role": str(name), "content": content})

        beside = without(row, (speaker, text))
        chats.append((number, {**beside, MESSAGES: written(said, agent)}))

    known = any(has_both_sides(row[MESSAGES]) for _, row in chats)
    if known or agent == ANYONE:
        note = f"conversations: the list '{text}', '{speaker}' says who speaks"
        return with_rows(rows, chats, note)

    return None


def in_columns_of_sides(rows: Rows, columns: Columns) -> Rows | None:
    """Tables with a column a speaker: rows with a message each, or with a message and the reply.

    Without a column that names the conversation, rows with both sides are chats of their own, and
    others are one chat.
    """
    spoken: dict[str, str] = {}
    models = with_role(columns, "model")
    others = [path for path in columns if path not in models]
    answered = any(side_of_column(path) == "assistant" for path in others)
    for path, column in columns.items():
        side = side_of_column(path)
        if side is None or not column.is_text or (path in models and answered):
            continue
        if spoken.setdefault(side, path) != path:
            return None  # two columns of one side: of whom is not certain

    if len(spoken) < 2 or with_role(columns, "golden"):
        return None
    named = next(iter(with_role(columns, "conversation")), None)
    note = f"columns of the speakers: '{spoken['user']}', '{spoken['assistant']}'"
    alike, converted = _in_one_shape(rows, spoken)
    if converted:
        rows = msgspec.structs.replace(rows, rows=alike)
        note += f"; in {plural(converted, 'row')} other columns of such names"

    filled = []
    exchanges = 0
    for _, row in rows.rows:
        sides = {side for side, path in spoken.items() if not is_empty(row.get(path))}
        filled.append(sides)
        exchanges += len(sides) > 1

    if named is None and 2 * exchanges > rows.count:
        counted = _by_numbers_of_turns(rows, columns, spoken)
        if counted is not None:
            chats, turn = counted
            note += f"; '{turn}' counts the turns of {plural(len(chats), 'conversation')}"
            return with_rows(rows, chats, note, regrouped=len(chats) == 1)

    neither = filled.count(set())
    if neither:
        note += f", both empty in {plural(neither, 'row')}"
    if named is None and exchanges:
        alone = _rows_apart(rows, columns, spoken)
        note += "; no column names the conversation: a row is a chat"
        return with_rows(rows, alone, note, regrouped=True)

    said: list[tuple[int, Row, Message]] = []
    unasked = 0
    for (number, row), sides in zip(rows.rows, filled, strict=True):
        beside = without(row, spoken.values())
        if exchanges and named is not None and is_empty(row.get(named)):
            beside[named] = f"row {number}"  # of which conversation it is nobody knows
        if exchanges and sides == {"assistant"}:
            unasked += 1  # it does not answer the question of the row before
            continue

        for side in ("user", "assistant"):
            if side in sides or (exchanges and sides):
                said.append((number, beside, {"role": side, "content": row.get(spoken[side])}))

    if unasked:
        note += f"; not read: {plural(unasked, 'reply', 'replies')} in rows without a question"
    when = time_column(rows, columns)
    chats, moved = by_conversation(said, named, None, when)
    if named is None:
        note += "; no column names the conversation: all rows are one chat"
    return with_rows(rows, chats, note + put_in_order(moved, when), regrouped=True)


def _by_numbers_of_turns(
    rows: Rows, columns: Columns, spoken: Mapping[str, str]
) -> tuple[list[NumberedRow], str] | None:
    """A conversation of each run of rows whose turns are counted from 0 or 1 on, and the column
    that counts them; what the assistant says unasked is kept. None: no column counts turns so.
    """
    counted = runs_of_turns(rows, columns, steps=(1,))
    if counted is None:
        return None
    turn, places = counted
    said: list[tuple[int, Row, Message]] = []
    for (number, row), run in zip(rows.rows, places, strict=True):
        beside = without(row, (turn, *spoken.values())) | {"conversation_id": f"chat {run}"}
        asked = row.get(spoken["user"])
        if is_empty(asked):
            asked = NO_TEXT
        said.append((number, beside, {"role": "user", "content": asked}))
        reply = {"role": "assistant", "content": row.get(spoken["assistant"])}
        said.append((number, beside, reply))

    if 2 * max(places) > rows.count:
        return None
    chats, _ = by_conversation(said, "conversation_id", None)
    return chats, turn


def _in_one_shape(rows: Rows, spoken: Mapping[str, str]) -> tuple[list[NumberedRow], int]:
    """The rows, with a question and an answer that a row without the columns of the speakers has
    under other names, in these columns; and how many rows have.
    """
    found: list[NumberedRow] = []
    converted = 0
    for number, row in rows.rows:
        said: list[Message] = []
        if not any(path in row for path in spoken.values()):
            said = pair(row, ASKED, ANSWERED)
        if has_both_sides(said):
            texts = {}
            for message in said:
                texts[spoken[message["role"]]] = message["content"]

            found.append((number, {**row, **texts}))
            converted += 1
        else:
            found.append((number, row))

    return found, converted


def _rows_apart(rows: Rows, columns: Columns, spoken: Mapping[str, str]) -> Iterator[NumberedRow]:
    """Each row as a chat of a question and its answer; what is asked again is no repetition, where
    no id says so.
    """
    ids = []
    for path in with_role(columns, "id"):
        ids.append([str(row.get(path)) for _, row in rows.rows])

    is_named = any(len({*values}) == len(values) for values in ids)
    for number, row in rows.rows:
        chat: list[Message] = []
        for side in ("user", "assistant"):
            if not is_empty(row.get(spoken[side])):
                chat.append({"role": side, "content": row.get(spoken[side])})

        beside = without(row, spoken.values())
        if not is_named:
            beside["conversation_id"] = f"row {number}"
        yield (number, {**beside, MESSAGES: chat})
