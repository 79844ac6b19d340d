"""Conversations in the rows of a file, whatever their shape, as chat messages in one column.

A cell may hold them as lists of pairs, turns with a side each, a text with the speakers' names, or
ChatGPT's tree; a table may have a column a turn, or a row a message. Lists of questions in a row
become rows of their own; if they are turns, each with what was said before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

import msgspec

from karat.documents.cells import parsed
from karat.documents.chats import Message, has_both_sides, in_place_of_text, sides_of, with_sides
from karat.documents.columns import LOOKED_AT, Column, Row, are_messages, cell, columns_of, is_empty
from karat.documents.names import (
    SPEAKING,
    Role,
    any_speaker_and_text,
    meanings,
    side_of,
    speaker_and_text,
    with_role,
    word_set,
    words_of,
)
from karat.documents.row_list import Rows
from karat.formats import excerpt, plural, some_of, text_of

__all__ = ["Talks"]

MESSAGES = "messages"
"""The column that a conversation is written to."""
_BESIDE = ("tool_calls", "tool_call_id", "name", "model")  # keys of messages, kept as they are
_LOOKED_AT = 20  # cells that decide what all cells of a column are
_MOST_LEVELS = 3  # of lists of questions in lists
_MOST_SPEAKERS = 6  # of whom a person can tell the assistant
_ANYONE = ""  # in place of the assistant's name: all speakers keep their names
_TIMES = word_set("time timestamp date datetime created sent at")
_SPEAKERS = word_set("role speaker sender author from actor participant direction")
_SAYS = word_set("content text message utterance body value")
_SAID = _SAYS | word_set("msg question query input prompt response reply answer output")
_ASKED: Sequence[Role] = ("question",)
_ANSWERED: Sequence[Role] = ("answer", "golden")
_SIDES = (("user", _ASKED), ("assistant", _ANSWERED))
_IDENTIFYING = (("id",), ("number",), ("conversation",), ("dialogue",), ("dialog",), ("call",))
_GROUPS = (("group",), ("session",), ("chat",), ("thread",), ("room",), ("ticket",))
_TIMES = word_set("time timestamp datetime date created sent ts at")  # words of their columns
_SINCE_1973 = 1e8  # seconds since 1970; smaller numbers are durations
_NUMBERED = re.compile(r"(.*?)[\s_.-]*(\d{1,2})(?!\d)[\s_.-]*(.*)")
_TURNS = ("turns", "messages")  # of plain texts, they may all be the user's
_SHORT = {"q": "question", "a": "answer"}
_COUNTED = word_set("turn round step exchange t")  # what a number in a column's name counts
_AT = r"[ \t]*(?:\(?\[?\d[\d:.,/T+ -]{3,30}(?:[AP]M|Z)?\]?\)?[ \t]*[-–]?[ \t]*)?"  # a time
_MARKED = re.compile(
    rf"^{_AT}(?:<(\w{{1,20}})>|\[(\w[\w ]{{0,20}})\]:?(?!\()"
    rf"|\*{{0,2}}(\w[\w ]{{0,30}}?)\*{{0,2}}(?: ?[(\[][^()\[\]\n]{{1,40}}[)\]])?[:：]\*{{0,2}})",
    re.MULTILINE,
)
_TIMED = re.compile(r"[ \t]*[(\[]?\d")  # a mark that begins with a time
_CLOSED = re.compile(r"(?:\[/(\w{1,20})\]|</(\w{1,20})>)[ \t\r]*$", re.MULTILINE)
_IN_LINES = re.compile(r"(?<![\w'-])([A-Z][\w-]{1,20}):(?= )")
_TEMPLATE = re.compile(
    r"<\|(?:im_start\|>|start_header_id\|>)?(\w+)(?:\|>|<\|end_header_id\|>)?"
    r"|<start_of_turn>(\w+)|#{3,4} (\w+):|^#{1,4} (\w+)[ \t]*$|\[(/?INST)\]",
    re.MULTILINE,
)
_IN_TEMPLATES = {
    "instruction": "user",
    "inst": "user",
    "response": "assistant",
    "/inst": "assistant",
}
_TEMPLATE_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|end|endoftext|begin_of_text)\|>|</?s>|<end_of_turn>|<bos>"
)


class Talks:
    """Conversations in cells, in columns or in rows; lists of questions in a row."""

    def laid_out(
        self,
        rows: Rows,
        named: Collection[str],
        *,
        agent: str | None,
        whole: bool,
    ) -> Rows:
        """The rows with each conversation in the column `messages`, and with a row for each of the
        questions that a row lists.
        """
        return _gathered(rows, named, agent, whole)

    def speakers(self, rows: Rows) -> list[str]:
        """Who speaks in conversations in which no name tells the assistant; none: there are no such
        conversations.
        """
        names: dict[str, None] = {}
        for _, row in _gathered(rows, (), _ANYONE, False).rows:
            said = row.get(MESSAGES)
            for message in said if isinstance(said, list) and are_of_speakers(said) else ():
                keys = any_speaker_and_text(message)
                if keys is not None:
                    names.setdefault(str(message[keys[0]]))

        if len(names) > 1:
            return [*names]
        return []

    def unasked(self, columns: Mapping[str, Column]) -> str | None:
        """That rows are messages of people, without an assistant."""
        speaker, text = speaker_and_text_columns(columns)
        if speaker is None or text is None or with_role(columns, "question", "golden", "answer"):
            return None
        return f"holds messages ('{text}') of people ('{speaker}'), but none of an assistant"


def _gathered(rows: Rows, named: Collection[str], agent: str | None, whole: bool) -> Rows:
    for _ in range(_MOST_LEVELS):
        columns = columns_of(row for _, row in rows.rows)
        if named and all(path in columns for path in named):
            return rows
        chats = [path for path, column in columns.items() if column.messages * 2 > column.rows]
        if agent is None and chats:
            return _alike(rows, chats[0])
        found = _in_numbered_columns(rows, columns) or _in_objects(rows, columns, agent)
        if found is None and not _asks(columns):
            found = _in_cells(rows, columns, agent, whole)
        found = found or _in_rows(rows, columns, agent)
        if found is None and whole and agent is None:
            found = _in_columns_of_sides(rows, columns)
        if found is not None:
            return found
        listed = _listed(rows, columns)
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
    return _with(rows, changed, f"'{path}': conversations")


def are_of_speakers(value: Sequence[object]) -> bool:
    """Whether a list holds what a few people say in turn, whatever they are called."""
    keys = [any_speaker_and_text(part) for part in value]
    found = set()
    for part, names in zip(value, keys, strict=True):
        if names is None or not isinstance(part, Mapping):
            return False
        found.add(part[names[0]])

    return 1 < len(found) <= _MOST_SPEAKERS and (len(found) < len(value) or len(value) == 2)


def _asks(columns: Mapping[str, Column], text: str | None = None) -> bool:
    """Whether a column besides `text` is surely the question, so that conversations are only its
    context.
    """
    asked = with_role(columns, "question")
    return any(columns[path].is_text for path in asked if path != text)


def _with(rows: Rows, numbered: Iterable[tuple[int, Row]], note: str) -> Rows:
    found = msgspec.structs.replace(rows, rows=[], count=0, columns=(), notes=[*rows.notes, note])
    for number, row in numbered:
        found.add(number, row)
    return found


# --- a conversation in a cell -----------------------------------------------------------------


def _in_cells(
    rows: Rows,
    columns: Mapping[str, Column],
    agent: str | None,
    whole: bool,
) -> Rows | None:
    for path in [path for path in columns if "." not in path]:
        known = any(meaning.role in ("golden", "context") for meaning in meanings(path))
        if known and columns[path].is_text:
            continue
        values = [row.get(path) for _, row in islice(rows.rows, LOOKED_AT)]
        filled = [value for value in values if not is_empty(value)]
        if 2 * len(filled) <= len(values):
            continue
        filled = filled[:_LOOKED_AT]
        read = partial(_messages_under, path=path, agent=agent, whole=whole)
        if 2 * sum(1 for value in filled if read(value)) > len(filled):
            chats = []
            beside = 0  # messages of other branches
            for number, row in rows.rows:
                others = {key: value for key, value in row.items() if key != path}
                value = row.get(path)
                held = _last_branch(value, row.get("current_node"))
                if isinstance(value, Mapping):
                    beside += len(_of_tree(value)) - len(_of_tree(held))
                chats.append((number, {**others, MESSAGES: read(held)}))

            note = f"'{path}': conversations"
            if beside:
                note += f"; {plural(beside, 'message')} of other branches not read"
            return _with(rows, chats, note)

    return None


def _messages_under(value: object, path: str, agent: str | None, whole: bool) -> list[Message]:
    """The messages in a cell, also if only the column's name says that it is a conversation."""
    said = messages_in(value, agent=agent)
    if isinstance(value, str):
        listed = parsed(value)
    else:
        listed = value
    if said or not isinstance(listed, list) or not listed or not is_of_turns(path):
        return said
    if all(isinstance(part, dict) and [*part] == ["content"] for part in listed):
        return [{"role": "user", "content": part["content"]} for part in listed]
    if all(isinstance(part, str) for part in listed) and not {*_TURNS} & {*words_of(path)}:
        names = [f"speaker {1 + at % 2}" for at in range(len(listed))]
        # Two people by turns: only the user can tell who of them answers
        if agent is None:
            return []
        pairs = zip(names, listed, strict=True)
        said = [{"role": name, "content": text} for name, text in pairs]
        if agent == _ANYONE:
            return said
        return with_sides(said, agent, system_answers=True)

    found = []
    for part in listed if whole else ():
        texts = part if isinstance(part, list) and len(part) == 2 else []
        if texts and all(isinstance(text, str) for text in texts) and " " in texts[0].strip():
            # What the user and the assistant say: words, and no names
            asked, said = texts
            pair = [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
        else:
            pair = _pair(part, _ASKED, _ANSWERED)

        if not pair or (isinstance(part, dict) and with_role(part, "golden")):
            return []
        found += pair

    return found


def messages_in(value: object, *, agent: str | None = None) -> list[Message]:
    """The chat messages that a cell holds, in one of the shapes; none: it holds no conversation.

    `agent`: who is the assistant.
    """
    if isinstance(value, str):
        unpacked = parsed(value)
        if unpacked is value:
            return _marked(value, agent)
        value = unpacked

    if isinstance(value, Mapping):
        value = _of_tree(value)
    if not isinstance(value, list) or not value:
        return []
    if are_messages(value):
        return _written(value, agent)
    if are_of_speakers(value):
        said = _written(value, agent)
        return said if agent == _ANYONE or has_both_sides(said) else []

    read: list[Message] = []
    for part in value:
        said = _pair(part, (), ())
        if not said:
            return []
        read += said

    return read if has_both_sides(read) else []


def _written(value: Sequence[Any], agent: str | None = None) -> list[Message]:
    """Messages with the usual keys, their speakers as the user and the assistant."""
    found: list[Message] = []
    for message in value:
        keys = speaker_and_text(message) or any_speaker_and_text(message) or ("role", "content")
        kept = {key: message[key] for key in _BESIDE if key in message}
        found.append({"role": message[keys[0]], "content": message[keys[1]], **kept})

    if agent == _ANYONE:
        return found
    return with_sides(found, agent, system_answers=True)


def _pair(part: object, asking: Sequence[Role], answering: Sequence[Role]) -> list[Message]:
    """A turn that is a list of speaker and text, or an object with a text of each side: under the
    speakers' names, or those of such roles.
    """
    if isinstance(part, list) and len(part) == 2 and all(isinstance(text, str) for text in part):
        who, text = part
        known = who.strip().lower() in SPEAKING
        if known:
            return [{"role": side_of(who) or who, "content": text}]
        return []

    if not isinstance(part, Mapping):
        return []
    wrapped = [value for value in part.values() if speaker_and_text(value) is not None]
    if len(wrapped) == 1:
        return _written(wrapped)
    if len(part) == 1:
        ((name, text),) = part.items()
        who = _side_of_column(name)
        if who and isinstance(text, str):
            return [{"role": who, "content": text}]
        return []

    found: list[Message] = []
    columns = [*columns_of([part])]
    sides = (("user", asking), ("assistant", answering))
    for side, roles in sides:
        texts = [cell(part, path) for path in _of_side(columns, side, roles)]
        said = next((text for text in texts if isinstance(text, str)), None)
        if said is None:
            return []
        found.append({"role": side, "content": said})

    return found


def _of_side(columns: Iterable[str], side: str, roles: Sequence[Role]) -> list[str]:
    """The columns whose names are those of a speaker, or of what this side says."""
    spoken, said = [], []
    for path in columns:
        name = path.rpartition(".")[2]
        who = _side_of_column(name) or ("assistant" if name.lower() == "system" else None)
        found = [meaning.role for meaning in meanings(path)[:1] if meaning.role in roles]
        if who == side:
            spoken.append(path)
        elif who is None and found:
            said.append((roles.index(found[0]), path))

    return [*spoken, *(path for _, path in sorted(said))]


def _side_of_column(name: str) -> str | None:
    """Whose words a column or a key holds by its name: `user`, `assistant_text`, `bot_response`."""
    words = words_of(name)
    if len(words) == 2 and words[1] in _SAID:
        return side_of(words[0])
    return side_of(name)


def _last_branch(value: Any, last: object) -> Any:
    """The nodes of ChatGPT's tree that lead to the `last` one, in their order; without one, to the
    last that no other follows. Anything else as it is.
    """
    if not isinstance(value, Mapping):
        return value
    if not all(isinstance(node, Mapping) and "parent" in node for node in value.values()):
        return value
    if not isinstance(last, str) or last not in value:
        ends = [name for name, node in value.items() if not node.get("children")]
        last = next(reversed(ends), None)

    branch: dict[object, Any] = {}
    while isinstance(last, str) and last in value and last not in branch:
        branch[last] = value[last]
        last = value[last]["parent"]

    return dict(reversed(branch.items()))


def _of_tree(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The messages of ChatGPT's export, in their order; one message as a list."""
    if speaker_and_text(value) is not None:
        return [value]
    found: list[Message] = []
    for node in value.values():
        message = None
        if isinstance(node, Mapping):
            message = node.get("message")
        if not isinstance(message, Mapping):
            continue
        who, said = cell(message, "author.role"), cell(message, "content.parts")
        hidden = cell(message, "metadata.is_visually_hidden_from_conversation")
        if not isinstance(who, str) or not isinstance(said, list) or hidden:
            continue
        text = "\n".join(part for part in said if isinstance(part, str))
        shown: Message = {"role": who, "content": text}
        if not text.strip():
            shown["content"] = in_place_of_text(said) or ""
        model, recipient = cell(message, "metadata.model_slug"), message.get("recipient")
        if isinstance(model, str):
            shown["model"] = model
        if who == "assistant" and recipient not in (None, "all"):
            # What a tool is asked is no reply
            call = {"name": str(recipient), "arguments": text}
            shown |= {"content": "", "tool_calls": [call]}

        if shown["content"] or "tool_calls" in shown:
            found.append(shown)

    return found


def _marked(text: str, agent: str | None) -> list[Message]:
    """The messages of a text in which each begins with its speaker: `Agent: …`, `<user> …`, or as
    models are prompted: `### Instruction:`, `<|im_start|>user`, `[INST]`.
    """
    if "\n" not in text:
        text = text.replace("\\n", "\n")  # as some tables write the ends of lines
    text = _CLOSED.sub(lambda end: "" if side_of(end[1] or end[2]) else end[0], text)
    found = _parted(text, _MARKED, agent)
    if found and found[0]["role"] == "system":
        return []  # text before the first speaker
    if agent is not None:
        return found
    if not found and (first := _IN_LINES.match(text)) is not None and side_of(first[1]):
        found = _parted(text, _IN_LINES, agent)
    return found or _parted(_TEMPLATE_ENDS.sub("", text), _TEMPLATE, agent)


def _parted(text: str, mark: re.Pattern[str], agent: str | None) -> list[Message]:
    """The text between such marks, as messages; none: the marks are not of both sides."""
    marks = [
        (match, next(name for name in match.groups() if name is not None))
        for match in mark.finditer(text)
    ]
    timed = bool(marks)
    for match, _ in marks:
        said_after = text[match.end() : match.end() + 1].isspace()  # and no time goes on
        timed = timed and said_after and _TIMED.match(match[0]) is not None
    sides = _sides_of_marks([said.lower() for _, said in marks], mark, agent, timed=timed)
    begins, role, found = 0, "system", []
    for match, said in marks:
        if said.lower() in sides:
            found.append({"role": role, "content": text[begins : match.start()].strip()})
            begins = match.end()
            role = sides[said.lower()]
            if agent == _ANYONE:
                role = said

    found.append({"role": role, "content": text[begins:].strip()})
    joined: list[Message] = []  # what one speaker says in succession is one message
    for message in found:
        if not message["content"]:
            continue
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {**message, "content": f"{joined[-1]['content']}\n{message['content']}"}
        else:
            joined.append(message)

    found = joined
    return found if agent == _ANYONE or has_both_sides(found) else []


def _sides_of_marks(
    said: Sequence[str], mark: re.Pattern[str], agent: str | None, *, timed: bool
) -> dict[str, str]:
    """What marks a message in a text → whose it is. Names that say nothing count if they are all
    that is marked, and begin lines often enough or after a time each.
    """
    names = [*dict.fromkeys(said)]
    often = 1 < len(names) <= 3 < len(said)
    in_turn = mark is _MARKED and (often or (timed and len(names) <= _MOST_SPEAKERS))
    if agent is not None:
        if not in_turn:
            return {}
        return dict.fromkeys(names, "user") | {agent.strip().lower(): "assistant"}

    sides: dict[str, str] = {}
    for name in names:
        side = side_of(name) or _IN_TEMPLATES.get(name)
        if side is not None:
            sides[name] = side
        elif mark is _TEMPLATE and name == "system":
            sides[name] = "system"

    if in_turn:
        return sides | sides_of(names)
    return sides


# --- a column a turn --------------------------------------------------------------------------


def _in_numbered_columns(rows: Rows, columns: Mapping[str, Column]) -> Rows | None:
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
            stems = [_SHORT.get(name.lower(), name) for name in names if name]

        for side, roles in _SIDES:
            of_a_side = (stem for stem in stems if any(_of_side([stem], *one) for one in _SIDES))
            said = next(of_a_side, None)
            if said is not None and columns[path].is_text and _of_side([said], side, roles):
                sides.setdefault(number, {}).setdefault(side, path)

    turns = [turn for _, turn in sorted(sides.items(), key=lambda item: int(item[0]))]
    turns = [turn for turn in turns if len(turn) == 2]
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

        others = {key: value for key, value in row.items() if key not in used}
        chats.append((place, {**others, MESSAGES: messages}))

    return _with(rows, chats, "a row: the turns of a conversation")


def _in_columns_of_sides(rows: Rows, columns: Mapping[str, Column]) -> Rows | None:
    """Tables with a column a speaker: rows with a message each, or with a message and the reply.

    Without a column that names the conversation, rows with both sides are chats of their own, and
    others are one chat.
    """
    spoken: dict[str, str] = {}
    for path, column in columns.items():
        side = _side_of_column(path)
        if side is not None and column.is_text and spoken.setdefault(side, path) != path:
            return None  # two columns of one side: of whom is not certain

    if len(spoken) < 2 or with_role(columns, "golden"):
        return None
    both = 0
    said: list[tuple[int, Row, Message]] = []
    for number, row in rows.rows:
        beside = {key: value for key, value in row.items() if key not in spoken.values()}
        both += not any(is_empty(row.get(path)) for path in spoken.values())
        for side in ("user", "assistant"):
            said.append((number, beside, {"role": side, "content": row.get(spoken[side])}))

    named = next(iter(with_role(columns, "conversation")), None)
    note = f"columns of the speakers: '{spoken['user']}', '{spoken['assistant']}'"
    if named is None and 2 * both > rows.count:
        apart: dict[int, list[Message]] = {}
        for number, _, message in said:
            if not is_empty(message["content"]):
                apart.setdefault(number, []).append(message)
        alone = []
        for number, row in rows.rows:
            beside = {key: value for key, value in row.items() if key not in spoken.values()}
            alone.append((number, {**beside, MESSAGES: apart.get(number, [])}))

        return _with(rows, alone, f"{note}; no column names the conversation: a row is a chat")

    when = _time_column(rows, columns)
    chats, moved = _by_conversation(said, named, None, when)
    if named is None:
        note += "; no column names the conversation: all rows are one chat"
    return _with(rows, chats, note + _put_in_order(moved, when))


# --- a row a message --------------------------------------------------------------------------


def _in_rows(rows: Rows, columns: Mapping[str, Column], agent: str | None) -> Rows | None:
    """Rows that are messages, of the conversations that a column names, else all of one."""
    speaker, text = speaker_and_text_columns(columns)
    if speaker is None or text is None or _asks(columns, text) or with_role(columns, "golden"):
        return None
    if agent is not None and with_role(columns, "answer"):
        return None
    named = _conversation(rows, columns, speaker)
    if named is None and "author" in words_of(speaker):
        return None  # who wrote each text
    others = [path for path in columns if path not in (speaker, text)]
    classes = [path for path in others if 2 * columns[path].filled > columns[path].rows]
    roles = {meaning.role for path in classes for meaning in meanings(path)}
    if named is None and "golden" in roles:
        return None  # a class of each message
    said: list[tuple[int, Row, Message]] = []
    for number, row in rows.rows:
        beside = {key: value for key, value in row.items() if key not in (speaker, text)}
        said.append((number, beside, {"role": str(row.get(speaker)), "content": row.get(text)}))

    when = _time_column(rows, columns)
    chats, moved = _by_conversation(said, named, agent, when)
    if agent != _ANYONE and not has_both_sides(part for _, row in chats for part in row[MESSAGES]):
        return None
    return _with(rows, chats, "a row: a message" + _put_in_order(moved, when))


def _put_in_order(moved: int, when: str | None) -> str:
    """The end of a note on conversations whose rows were in another order; "": none."""
    if not moved:
        return ""
    return f"; {plural(moved, 'conversation')} put in the order of '{when}'"


def _in_objects(rows: Rows, columns: Mapping[str, Column], agent: str | None) -> Rows | None:
    """Rows that hold a message each in an object, beside other events, as sessions of coding agents
    are logged.
    """
    for path in [path for path in columns if f"{path}.role" in columns and "." not in path]:
        sides = {side_of(value) for value in columns[f"{path}.role"].values}
        if not sides >= {"user", "assistant"} or 2 * columns[path].objects < columns[path].rows:
            continue
        said = []
        for number, row in rows.rows:
            message = row.get(path)
            if isinstance(message, Mapping):
                beside = {key: value for key, value in row.items() if key != path}
                said.append((number, beside, {**message, "content": message.get("content")}))

        named = next(iter(with_role(columns, "conversation")), None)
        chats, _ = _by_conversation(said, named, agent)
        return _with(rows, chats, f"'{path}': a message a row")

    return None


def _by_conversation(
    said: Iterable[tuple[int, Row, Message]],
    named: str | None,
    agent: str | None,
    when: str | None = None,
) -> tuple[list[tuple[int, Row]], int]:
    """A row for each conversation: what all its rows agree in, and its messages; and how many
    conversations were not in the order of their times.

    `said`: the messages that are not empty, with their rows. `named`: the column that names the
    conversation; None: there is one. `when`: the column with the times of messages.
    """
    groups: dict[object, list[tuple[int, Row, Message]]] = {}
    for number, row, message in said:
        name = None
        if named is not None:
            name = str(row.get(named))
        groups.setdefault(name, []).append((number, row, message))

    chats: list[tuple[int, Row]] = []
    moved = 0
    for group in groups.values():
        number, first, _ = group[0]
        shared = {}
        for key, value in first.items():
            if all(row.get(key) == value for _, row, _ in group):
                shared[key] = value

        timed = []
        for place, (_, row, message) in enumerate(group):
            time = math.nan
            if when is not None:
                time = _place(row.get(when), when)
            timed.append((time, place, message))

        if not any(math.isnan(time) for time, _, _ in timed):
            moved += timed != sorted(timed, key=itemgetter(0, 1))
            timed.sort(key=itemgetter(0, 1))

        filled = [message for _, _, message in timed if not is_empty(message["content"])]
        chats.append((number, {**shared, MESSAGES: _written(filled, agent)}))

    return chats, moved


def _time_column(rows: Rows, columns: Mapping[str, Column]) -> str | None:
    """The column that says when each message was sent: of several, the one that differs most."""
    best = None
    for path, column in columns.items():
        if "." in path or not _TIMES & {*words_of(path)}:
            continue
        cells = [row.get(path) for _, row in islice(rows.rows, LOOKED_AT)]
        dated = all(_seconds(value) is not None for value in cells if not is_empty(value))
        if dated and (best is None or len(column.values) > len(columns[best].values)):
            best = path

    if best is None:
        best = next((path for path in with_role(columns, "turn") if "." not in path), None)
    return best


def _place(value: object, path: str) -> float:
    """Where a message belongs among others, by its time or the number of its turn; NaN: unknown."""
    seconds = _seconds(value)
    if seconds is None and any(meaning.role == "turn" for meaning in meanings(path)):
        with suppress(ValueError):
            return float(str(value))
    return math.nan if seconds is None else seconds


def _seconds(value: object) -> float | None:
    """The time that a cell is, in seconds since 1970; None: it is none, or has no date."""
    text = str(value).strip()
    with suppress(ValueError):
        number = float(text)
        return number if _SINCE_1973 <= number < math.inf else None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None

    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def _conversation(rows: Rows, columns: Mapping[str, Column], speaker: str) -> str | None:
    """The column that names the conversation of a message: by its name, or an id with several
    speakers; None: there is none.
    """
    named = with_role(columns, "conversation")
    if named:
        return named[0]
    for path in columns:
        words = words_of(path)
        if "." in path or (words[-1:] not in _IDENTIFYING and words not in _GROUPS):
            continue
        spoken: dict[str, set[str]] = {}
        for _, row in islice(rows.rows, LOOKED_AT):
            spoken.setdefault(str(row.get(path)), set()).add(str(row.get(speaker)))
        shared = [names for names in spoken.values() if len(names) > 1]
        if 2 * len(shared) > len(spoken):
            return path

    return None


def speaker_and_text_columns(columns: Mapping[str, Column]) -> tuple[str | None, str | None]:
    """The columns that name who speaks, and what is said, in rows that are messages."""
    return _column(columns, _SPEAKERS), _column(columns, _SAYS)


def _column(columns: Mapping[str, Column], words: frozenset[str]) -> str | None:
    """The first column of texts whose name has one of the words, and says nothing of a time."""
    for path, column in columns.items():
        named = {*words_of(path)}
        if "." not in path and column.is_text and words & named and not _TIMES & named:
            return path

    return None


# --- a list of questions in a row -------------------------------------------------------------


def _listed(rows: Rows, columns: Mapping[str, Column]) -> Rows | None:
    """A row for each entry of the list that holds the questions, with what its row says beside."""
    if _asks(columns):
        return None
    parallel = _parallel(rows, columns)
    if parallel:
        return _apart(rows, parallel)
    for path, column in columns.items():
        if "." in path or 2 * (column.lists + column.objects) <= column.rows:
            continue
        example = column.example if isinstance(column.example, list) else []
        if example and all(isinstance(part, list) and are_messages(part) for part in example):
            chats: list[tuple[int, Row]] = []
            for number, row in rows.rows:
                held = row.get(path)
                for chat in held if isinstance(held, list) else ():
                    chats.append((number, {**row, path: chat}))

            return _with(rows, chats, f"rows: the chats in '{path}'")
        entries = [part for _, row in islice(rows.rows, LOOKED_AT) for part in _entries(row, path)]
        inside = columns_of(entries)
        asked = [name for name in with_role(inside, "question") if inside[name].is_text]
        deeper = []
        for name, held in inside.items():
            if isinstance(held.example, list):
                parts = [part for part in held.example if isinstance(part, Mapping)]
                if with_role(columns_of(parts), "question"):
                    deeper.append(name)

        if asked or (deeper and column.lists):
            turns = is_of_turns(path) and bool(asked)
            read = _read_entries(rows, path, asked[0] if turns else None)
            found = _with(rows, read, f"rows: the lists '{path}'")
            return _with_unread(rows, found, path, objects=True)

    return None


def _apart(rows: Rows, parallel: Sequence[str]) -> Rows:
    """A row for each question of lists that have as many golden answers or answers."""
    apart: list[tuple[int, Row]] = []
    uneven = []
    for number, row in rows.rows:
        lists = {path: row[path] for path in parallel if isinstance(row.get(path), list)}
        beside = {key: value for key, value in row.items() if key not in parallel}
        if parallel[0] not in lists:
            if not is_empty(row.get(parallel[0])):
                apart.append((number, row))  # one question, as it is
        elif len({len(entries) for entries in lists.values()}) > 1:
            uneven.append(number)
        else:
            for entry in zip(*lists.values(), strict=True):
                apart.append((number, {**beside, **dict(zip(lists, entry, strict=True))}))

    found = _with(rows, apart, f"rows: the lists {some_of(parallel)}")
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
        unread = [part for _, part in _parts(value) if objects and not isinstance(part, Mapping)]
        if is_empty(value):
            empty += 1
        elif unread:
            found.fault(number, f"'{path}' holds {excerpt(text_of(unread[0]), 24)}, no question")

    if empty:
        found.notes.append(f"'{path}' is empty in {empty} of {plural(rows.count, rows.unit)}")
    return found


def _parallel(rows: Rows, columns: Mapping[str, Column]) -> list[str]:
    """The columns with questions, with as many golden answers or answers in every row, and with as
    many of anything else. Empty: a row holds one question.
    """
    listed = [path for path, column in columns.items() if column.lists and "." not in path]
    first = [row for _, row in islice(rows.rows, LOOKED_AT)]
    for asked in with_role(listed, "question"):
        alike = []
        for path in listed:
            sizes = []
            for row in first:
                lists = [part for part in (row.get(asked), row.get(path)) if isinstance(part, list)]
                sizes.append([len(part) for part in lists])

            if all(len(both) < 2 or both[0] == both[1] for both in sizes):
                alike.append(path)

        roles = {found.role for path in alike if path != asked for found in meanings(path)}
        if roles & {*_ANSWERED} and any(
            isinstance(row.get(asked), list) and len(row[asked]) > 1 for row in first
        ):
            return [asked, *(path for path in alike if path != asked)]

    return []


def turns_apart(rows: Rows) -> Rows | None:
    """A row for each turn with a question in lists of turns, with its place in `turn`; None: there
    are no such lists.
    """
    columns = columns_of(row for _, row in rows.rows)
    for path, column in columns.items():
        if "." in path or 2 * column.lists <= column.rows or not is_of_turns(path):
            continue
        entries = [part for _, row in islice(rows.rows, LOOKED_AT) for part in _entries(row, path)]
        if not with_role(columns_of(entries), "question"):
            continue
        turns: list[tuple[int, Row]] = []
        for number, row in rows.rows:
            named = next(iter(with_role(row, "conversation", "id")), None)
            if named is not None:
                name = row[named]
            else:
                name = str(number)
            beside = {key: value for key, value in row.items() if key not in (path, named)}
            for place, entry in enumerate(_entries(row, path)):
                turn = {**beside, "turn": place, **entry, "conversation_id": name}
                turns.append((number, turn))

        return _with(rows, turns, f"rows: the turns in '{path}'")

    return None


def is_of_turns(path: str) -> bool:
    """Whether a list under this name holds the turns of one conversation."""
    words = {*words_of(path)}
    named = any(meaning.role == "messages" for meaning in meanings(path))
    return named or bool(words & {"steps", "history", "rounds", "exchanges", "dialog", "dialogue"})


def _entries(row: Row, path: str) -> list[Row]:
    """The objects in a list, and in the lists of an object: then with their names in its place."""
    found: list[Row] = []
    for name, part in _parts(row.get(path)):
        if isinstance(part, Mapping):
            found.append({path: name, **part} if name else part)
    return found


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


def _read_entries(rows: Rows, path: str, asked: str | None) -> Iterator[tuple[int, Row]]:
    """`asked`: the question among an entry's keys if entries are turns; None: they are apart."""
    for number, row in rows.rows:
        beside = {}
        for key, value in row.items():
            if key != path:
                name = "conversation_id" if asked is not None and key == "id" else key
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
            before += _pair(entry, _ASKED, _ANSWERED) or [question]


def _without(row: Row, path: str) -> dict[str, Any]:
    """A row without the value under a path."""
    key, _, below = path.partition(".")
    kept = {name: value for name, value in row.items() if name != path}
    if below and isinstance(kept.get(key), Mapping):
        kept[key] = _without(kept[key], below)
    return kept
