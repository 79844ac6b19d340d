"""Conversations in the rows of a file, whatever their shape, as chat messages in one column.

A cell may hold them as lists of pairs, turns with a side each, a text with the speakers' names, or
ChatGPT's tree; a table may have a column a turn, or a row a message. Lists of questions in a row
become rows of their own; if they are turns, each with what was said before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from karat.documents.chats import BY_TURNS, Message, has_both_sides, of_people, of_users
from karat.documents.columns import (
    Column,
    Columns,
    are_messages,
    are_texts,
    is_empty,
    without,
)
from karat.documents.names import (
    NOT_SPEAKING,
    any_speaker_and_text,
    roles_of,
    side_of,
    with_role,
    words_of,
)
from karat.documents.row_list import Rows
from karat.documents.sentences import sentences
from karat.formats import plural, some_of
from karat.layouts import Unasked
from karat_conversations.layouts._cells import (
    are_of_speakers,
    is_spoken,
    last_branch,
    messages_in,
    messages_under,
    of_tree,
    side_of_column,
)
from karat_conversations.layouts._columns import (
    in_columns_of_sides,
    in_lists_of_sides,
    in_numbered_columns,
    in_parallel_lists,
)
from karat_conversations.layouts._lists import listed_apart
from karat_conversations.layouts._messages import (
    in_rows,
    message_a_row,
    speaker_and_text_columns,
)
from karat_conversations.layouts._phrases import phrases_apart
from karat_conversations.layouts._questions import questions_in
from karat_conversations.layouts._rows import MESSAGES, asks, with_rows
from karat_conversations.layouts._shaped import in_shaped_lists
from karat_conversations.layouts._texts import ANYONE, conversations, said_in_log, under_headers

__all__ = ["Talks"]

_LOOKED_AT = 20  # cells that decide what all cells of a column are
_OF_TEXTS = 2  # columns of an object whose keys are ids and whose values are texts
_FEW_WORDS = 5  # times as many rows as have them
_FEWEST_TURNS = 4  # of a text in a column that names call something else
_FOLLOWS = ("followup", "nextturn")  # beginnings of names of what a user asks later
_MOST_LEVELS = 3  # of lists of questions in lists


class Talks:
    """Conversations in cells, in columns or in rows; lists of questions in a row."""

    def laid_out(
        self,
        rows: Rows,
        named: Collection[str],
        *,
        agent: Sequence[str] | None,
        whole: bool,
    ) -> Rows:
        """The rows with each conversation in the column `messages`, and with a row for each of the
        questions that a row lists.
        """
        if not whole:
            rows = phrases_apart(rows, named)
        return _gathered(rows, named, agent, whole)

    def speakers(self, rows: Rows) -> dict[str, int]:
        """Who speaks in conversations in which no name tells the assistant, with the number of
        their messages; none: there are no such conversations.
        """
        return _speakers(rows, whole=True)

    def unasked(self, rows: Rows) -> Unasked | None:
        """That rows are messages of people, without an assistant; of a text, also that it is no
        conversation.
        """
        columns = rows.seen_columns()
        turns = []
        for path, column in columns.items():
            if _asked_in_turn(path, column):
                turns.append(path)

        if turns:
            where = f"in several turns ({some_of([repr(path) for path in turns])})"
            asked = _of_texts(turns, columns)
            said = of_users(where, asked)
            if is_spoken(turns[0]) and not _of_one_side(columns[turns[0]].example):
                said += "; if two speak by turns, who answers: `--set 'agent=speaker 2'`"
            return Unasked(said, asked)

        acting = _without_words(columns)
        if acting is not None:
            return Unasked(
                f"holds who speaks ('{acting}'), but not what is said: turns of labels, such as "
                "dialogue acts, and no texts of messages"
            )
        of_text = [*columns] == ["transcript"]
        of_people_alone = [*columns] == [MESSAGES] and not columns[MESSAGES].messages
        speaker, text = speaker_and_text_columns(columns)
        roles = with_role(columns, "question", "golden", "answer")
        if roles and not (of_text or of_people_alone):
            return None
        names = _speakers(rows, whole=False)
        beside = roles_of(*columns) & {"question", "golden", "answer"}  # also weakly
        by_turns = {*names} <= {*BY_TURNS}
        only_people = not by_turns and not any(map(side_of, names))
        holds_talk = of_text or of_people_alone or text is not None
        if names and (holds_talk or (only_people and not beside)):
            return Unasked(of_people(names))
        if of_text:
            return Unasked("no conversation: its lines have no speakers")
        if speaker is None or text is None:
            return None
        said = f"holds messages ('{text}') of people ('{speaker}'), but none of an assistant"
        return Unasked(said)


def _without_words(columns: Mapping[str, Column]) -> str | None:
    """The column that says which side a row is of, where no other holds words in a fair share of
    the rows; None: there is none such.
    """
    speaker = None
    for path, column in columns.items():
        sides = {side_of(value) for value in column.values}
        if sides == {"user", "assistant"} and column.filled == column.rows:
            speaker = path
        elif column.messages:
            return None
        elif _FEW_WORDS * column.filled >= column.rows:
            texts = [*column.values]
            for part in column.example if isinstance(column.example, list) else ():
                texts += map(str, part.values() if isinstance(part, Mapping) else [part])
            if any(" " in text or not text.isascii() for text in texts):
                return None

    return speaker


def _speakers(rows: Rows, *, whole: bool) -> dict[str, int]:
    """Who speaks, where no name tells the assistant. `whole`: also in a column that names call
    something else.
    """
    names: Counter[str] = Counter()
    several = False
    for _, row in _gathered(rows, (), ANYONE, whole).rows:
        said = row.get(MESSAGES)
        several = several or (isinstance(said, list) and are_of_speakers(said))
        for message in said if isinstance(said, list) else ():
            keys = any_speaker_and_text(message)
            if keys is not None and message[keys[0]] not in NOT_SPEAKING:
                names[str(message[keys[0]])] += 1

    if several:
        return dict(names)
    return {}


def _asked_in_turn(path: str, column: Column) -> bool:
    """Whether a column holds what one user says in several turns: plain texts of one conversation,
    objects with the user's side alone, or what follows the first question.
    """
    if is_spoken(path) and _of_one_side(column.example):
        return True
    texts = isinstance(column.example, list) and are_texts(column.example)
    words = words_of(path)
    of_a_side = (
        words[-1:] in (("turns",), ("messages",)) and side_of("_".join(words[:-1])) == "user"
    )
    numbered = words[:1] == ("turn",) and "".join(words[1:]).isdecimal()
    if of_a_side or numbered or "".join(words).startswith(_FOLLOWS):
        return texts or column.is_text
    return texts and is_spoken(path)


def _of_texts(turns: Sequence[str], columns: Columns) -> tuple[str, ...]:
    """The paths of what the user says: columns of one text each, a list of turns, or a key of its
    objects; none: the first question is elsewhere.
    """
    path = turns[0]
    example = columns[path].example
    follows = "".join(words_of(path)).startswith(_FOLLOWS)
    if not isinstance(example, list):
        others = [other for other in sentences(columns, "question") if other not in turns]
        if follows and not others:
            return ()
        return (*others[:follows], *turns)
    if follows:
        return ()
    first = next(iter(example), None)
    for key in first if isinstance(first, Mapping) else ():
        if side_of_column(key) == "user":
            return (f"{path}[].{key}",)

    return (path,)


def _of_one_side(turns: object) -> bool:
    """Whether each object of a list says something under a key of the user, and none under one of
    the assistant.
    """
    if not isinstance(turns, list) or not turns:
        return False
    sides: set[str | None] = set()
    for turn in turns:
        if not isinstance(turn, Mapping):
            return False
        of_turn = set()
        for key, value in turn.items():
            if isinstance(value, str):
                of_turn.add(side_of_column(key))

        if "user" not in of_turn:
            return False
        sides |= of_turn

    return "assistant" not in sides


def _gathered(rows: Rows, named: Collection[str], agent: Sequence[str] | None, whole: bool) -> Rows:
    for _ in range(_MOST_LEVELS):
        columns = rows.seen_columns()
        if named and all(path in columns for path in named):
            return rows
        chats = []
        for path, column in columns.items():
            if column.messages * 2 > column.rows:
                chats.append(path)

        if agent is None and chats:
            return _alike(rows, chats[0])
        if [*columns] == ["transcript"] and agent is None and not whole:
            ((number, row),) = rows.rows
            asked = questions_in(row["transcript"])
            if asked:
                numbered = ((number, question) for question in asked)
                return with_rows(rows, numbered, "the questions in the text")

        found = (
            in_numbered_columns(rows, columns)
            or in_lists_of_sides(rows, columns)
            or in_parallel_lists(rows, columns, agent)
        )
        if found is None and not asks(columns):
            found = _in_cells(rows, columns, agent, whole)
            found = found or in_shaped_lists(rows, columns, agent)

        found = found or in_rows(rows, columns, agent)
        if found is None and whole and agent is None:
            found = in_columns_of_sides(rows, columns)
        if found is not None:
            return found
        listed = listed_apart(rows, columns)
        if listed is None:
            return rows
        rows = listed

    return rows


def _alike(rows: Rows, path: str) -> Rows:
    """The rows, with chats that a few cells of a column hold in another shape as messages, too; the
    same rows if there are none.
    """
    others: dict[int, list[Message]] = {}
    for number, row in rows.rows if "." not in path else ():
        value = row.get(path)
        if not is_empty(value) and not (isinstance(value, list) and are_messages(value)):
            said = messages_in(value)
            if said:
                others[number] = said

    if not others:
        return rows
    changed = (
        (number, {**row, path: others[number]} if number in others else row)
        for number, row in rows.rows
    )
    return with_rows(rows, changed, f"'{path}': conversations")


def _are_spoken(texts: Sequence[object]) -> bool:
    """Whether most texts are turns whose lines begin with their speakers, whatever their column is
    called.
    """
    spoken = 0
    for text in texts:
        if isinstance(text, str):
            spoken += sum(map(len, conversations(text, ANYONE))) >= _FEWEST_TURNS

    return 2 * spoken > len(texts)


def _in_cells(
    rows: Rows,
    columns: Columns,
    agent: Sequence[str] | None,
    whole: bool,
) -> Rows | None:
    first = rows.first_rows()
    for path in [path for path in columns if "." not in path]:
        values = [row.get(path) for row in first]
        filled = [value for value in values if not is_empty(value)]
        if 2 * len(filled) <= len(values):
            continue
        filled = filled[:_LOOKED_AT]
        known = {"golden", "context"} & roles_of(path)
        called_so = known and columns[path].is_text and len(columns) > _OF_TEXTS
        if called_so and not (whole and _are_spoken(filled)):
            continue
        read = partial(messages_under, path=path, agent=agent, whole=whole)
        if 2 * sum(1 for value in filled if read(value)) > len(filled):
            chats = []
            beside = 0  # messages of other branches
            for number, row in rows.rows:
                others = without(row, (path,))
                value = row.get(path)
                parts = []
                if isinstance(value, str):
                    parts = under_headers(value)

                if parts and rows.count == 1:
                    for name, part in parts:
                        chat = {"conversation_id": name, MESSAGES: read(part)}
                        chats.append((number, {**others, **chat}))

                    continue

                if rows.count == 1 and isinstance(value, str):
                    several = conversations(value, agent)
                    if len(several) > 1:
                        chats += [(number, {**others, MESSAGES: chat}) for chat in several]
                        continue

                held = last_branch(value, row.get("current_node"))
                if isinstance(value, Mapping):
                    beside += len(of_tree(value)) - len(of_tree(held))
                chats.append((number, {**others, MESSAGES: read(held)}))

            expects = with_role(columns, "golden", "criterion")
            alone = len(chats) > 1 and all(len(row[MESSAGES]) <= 1 for _, row in chats)
            if alone and not expects:
                return message_a_row(rows, chats, path)
            if agent and not any(has_both_sides(row[MESSAGES]) for _, row in chats):
                continue
            note = f"'{path}': conversations"
            if isinstance(filled[0], str) and said_in_log(filled[0]):
                note += " of a log, of which only the lines are read in which somebody speaks"
            if len(chats) > rows.count:
                if parts:
                    borders = "lines with their names"
                else:
                    borders = "empty lines or headings"

                note += f", parted by {borders}"
            if beside:
                note += f"; {plural(beside, 'message')} of other branches not read"
            return with_rows(rows, chats, note)

    return None
