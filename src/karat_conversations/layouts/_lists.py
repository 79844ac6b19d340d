"""Lists of questions in a row as rows of their own; of turns, with what was said before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karat.documents.chats import Message
from karat.documents.columns import (
    Columns,
    NumberedRow,
    Row,
    are_messages,
    cell,
    columns_of,
    is_empty,
    without,
)
from karat.documents.names import criterion_type, roles_of, with_role
from karat.documents.row_list import Rows
from karat.formats import excerpt, plural, some_of, text_of
from karat_conversations.layouts._cells import ANSWERED, ASKED, is_of_turns, pair
from karat_conversations.layouts._rows import MESSAGES, asks, with_rows


def listed_apart(rows: Rows, columns: Columns) -> Rows | None:
    """A row for each entry of the list that holds the questions, with what its row says beside."""
    if asks(columns):
        return None
    parallel = _parallel(rows, columns)
    if parallel:
        return _apart(rows, parallel)
    first = rows.first_rows()
    for path, column in columns.items():
        if "." in path or 2 * (column.lists + column.objects) <= column.rows:
            continue
        if criterion_type(path) is not None:
            continue
        example = column.example if isinstance(column.example, list) else []
        if example and all(isinstance(part, list) and are_messages(part) for part in example):
            chats: list[NumberedRow] = []
            for number, row in rows.rows:
                held = row.get(path)
                if not isinstance(held, list):
                    continue
                for chat in held:
                    chats.append((number, {**row, path: chat}))

            return with_rows(rows, chats, f"rows: the chats in '{path}'")

        entries = [part for row in first for part in _entries(row, path)]
        inside = columns_of(entries)
        asked = [name for name in with_role(inside, "question") if inside[name].is_text]
        deeper = []
        for name, held in inside.items():
            if isinstance(held.example, list):
                parts = []
                for part in held.example:
                    if isinstance(part, Mapping):
                        parts.append(part)

                if with_role(columns_of(parts), "question"):
                    deeper.append(name)

        if asked or (deeper and column.lists):
            turns = is_of_turns(path) and bool(asked)
            read = _read_entries(rows, path, asked[0] if turns else None)
            found = with_rows(rows, read, f"rows: the lists '{path}'")
            return _with_unread(rows, found, path, objects=True)

    return None


def _apart(rows: Rows, parallel: Sequence[str]) -> Rows:
    """A row for each question of lists that have as many golden answers or answers."""
    apart: list[NumberedRow] = []
    uneven = []
    for number, row in rows.rows:
        lists = {}
        for path in parallel:
            if isinstance(row.get(path), list):
                lists[path] = row[path]

        beside = without(row, parallel)
        if parallel[0] not in lists:
            if not is_empty(row.get(parallel[0])):
                apart.append((number, row))  # one question, as it is
        elif len({len(entries) for entries in lists.values()}) > 1:
            uneven.append(number)
        else:
            names = [*lists] if len(parallel) > 1 else ["question"]
            for entry in zip(*lists.values(), strict=True):
                apart.append((number, {**beside, **dict(zip(names, entry, strict=True))}))

    found = with_rows(rows, apart, f"rows: the lists {some_of(parallel)}")
    for number in uneven:
        found.fault(number, f"the lists {some_of(parallel)} are not equally long")

    return _with_unread(rows, found, parallel[0], objects=False)


def _with_unread(rows: Rows, found: Rows, path: str, *, objects: bool) -> Rows:
    """Notes the rows in which a list of questions is empty, and faults those that hold something
    else than `objects` in it, so that no row is lost unsaid.
    """
    empty = 0
    for number, row in rows.rows:
        value = row.get(path)
        unread = []
        for _, part in _parts(value):
            if objects and not isinstance(part, Mapping):
                unread.append(part)

        if is_empty(value):
            empty += 1
        elif unread:
            found.fault(number, f"'{path}' holds {excerpt(text_of(unread[0]), 24)}, no question")

    if empty:
        found.notes.append(f"'{path}' is empty in {empty} of {plural(rows.count, rows.unit)}")
    return found


def _parallel(rows: Rows, columns: Columns) -> list[str]:
    """The columns with questions, with as many golden answers or answers in every row, and with as
    many of anything else. Empty: a row holds one question.
    """
    listed = []
    for path, column in columns.items():
        if column.lists and "." not in path:
            listed.append(path)

    first = rows.first_rows()
    for asked in with_role(listed, "question"):
        alike = []
        for path in listed:
            if path == asked:
                continue
            for row in first:
                mine = row.get(asked)
                other = row.get(path)
                if not isinstance(mine, list) or not isinstance(other, list):
                    continue
                if len(mine) != len(other):
                    break
            else:
                alike.append(path)

        if roles_of(*alike) & {*ANSWERED} and any(
            isinstance(row.get(asked), list) and len(row[asked]) > 1 for row in first
        ):
            return [asked, *alike]

        texts = []
        for row in first:
            for _, part in _parts(row.get(asked)):
                texts.append(isinstance(part, str) and part.strip().endswith(("?", "？", "؟")))

        answered = roles_of(*columns) & {*ANSWERED, "criterion", "choices"}
        if len(texts) > len(first) and 2 * sum(texts) > len(texts) and not answered:
            return [asked]

    return []


def turns_apart(rows: Rows) -> Rows | None:
    """A row for each turn with a question in lists of turns, with its place in `turn`; None: there
    are no such lists.
    """
    first = rows.first_rows()
    columns = columns_of(first)
    for path, column in columns.items():
        if "." in path or 2 * column.lists <= column.rows or not is_of_turns(path):
            continue
        entries = [part for row in first for part in _entries(row, path)]
        if not with_role(columns_of(entries), "question"):
            continue
        turns: list[NumberedRow] = []
        for number, row in rows.rows:
            named = next(iter(with_role(row, "conversation", "id")), None)
            if named is not None:
                name = row[named]
            else:
                name = str(number)

            beside = without(row, (path, named))
            for place, entry in enumerate(_entries(row, path)):
                turn = {**beside, "turn": place, **entry, "conversation_id": name}
                turns.append((number, turn))

        return with_rows(rows, turns, f"rows: the turns in '{path}'")

    return None


def _entries(row: Row, path: str) -> Iterator[Row]:
    """The objects in a list, and in the lists of an object: then with their names in its place."""
    for name, part in _parts(row.get(path)):
        if isinstance(part, Mapping):
            yield {path: name, **part} if name else part


def _parts(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """What a list holds, or the lists of an object, with the names of their keys."""
    if isinstance(value, list):
        for part in value:
            yield name, part
    elif isinstance(value, Mapping) and not with_role([*value], "question"):
        for key, below in value.items():
            yield from _parts(below, f"{name}.{key}" if name else str(key))
    elif not is_empty(value):
        yield name, value


def _read_entries(rows: Rows, path: str, asked: str | None) -> Iterator[NumberedRow]:
    """`asked`: the question among an entry's keys if entries are turns; None: they are apart."""
    for number, row in rows.rows:
        beside = {}
        for key, value in row.items():
            if key != path:
                if asked is not None and key == "id":
                    name = "conversation_id"
                else:
                    name = key

                beside[name] = value

        before: list[Message] = []
        for entry in _entries(row, path):
            if asked is None:
                yield number, {**beside, **entry}
                continue

            question = {"role": "user", "content": cell(entry, asked)}
            if is_empty(question["content"]):
                chat = []
            else:
                chat = [*before, question]

            yield number, {**beside, **_without(entry, asked), MESSAGES: chat}
            before += pair(entry, ASKED, ANSWERED) or [question]


def _without(row: Row, path: str) -> dict[str, Any]:
    """A row without the value under a path."""
    key, _, below = path.partition(".")
    kept = without(row, (path,))
    if below and isinstance(kept.get(key), Mapping):
        kept[key] = _without(kept[key], below)
    return kept
