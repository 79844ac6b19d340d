"""Which columns of a log say what is asked, who speaks and who answers, as a user names them; and
the readings to choose from where nobody has named any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path

import msgspec

from karat.documents.candidates import SHOWN
from karat.documents.cells import parsed
from karat.documents.chats import BY_TURNS, NAME, Message
from karat.documents.columns import (
    NO_NAME,
    Column,
    Columns,
    NumberedRow,
    Row,
    cell,
    is_empty,
    shared_cells,
    without,
)
from karat.documents.names import (
    NOT_SPEAKING,
    is_gold,
    meanings,
    roles_of,
    side_of,
    side_of_flag,
    with_role,
    word_set,
    words_of,
)
from karat.documents.roles import Reading, assign
from karat.documents.row_list import Rows
from karat.errors import BadOption, did_you_mean
from karat.foreign import Json
from karat.formats import clean, count, plural, some_names, some_of
from karat_imports.importers._chats import reply_beside
from karat_imports.importers._grouping import (
    OF_TIME,
    keys_of,
    row_times,
    setting,
    ways_listed,
)

_ENTRY = "[]."
_FEW_SPEAKERS = 6  # values of a column that nothing but its rows shows to be who speaks
_IN_TURN = 0.2  # more of its rows than by chance are then followed by another's
_FEW_WORDS, _UNLIKE = 12, 8  # characters of texts in two columns; times as long as the other's
_MOST_TEXTS = 3  # times as many rows as a column of texts fills, at most
_FEW_TEXTS = 3  # columns of texts without names that tell, of which the first may be asked
_MOST_SPEAKERS = 12
_MOST_NAMED = 30  # columns
_TRUE, _FALSE = frozenset(("true", "yes", "1")), frozenset(("false", "no", "0"))
_SIDES = {"user": "assistant", "assistant": "user"}
_SPEAKING = word_set("role speaker sender author from who by side")
"""Last words of columns that may say who speaks."""
_FEW_KNOWN, _MOST_KNOWN = 0.1, 0.9  # of the rows that name a speaker: to offer a column, to take it
_TALKS = (("conversation",), ("dialogue",), ("dialog",), ("chat",), ("thread",), ("call",))
"""Names of columns that may name the conversation of a row."""
_FIELDS = word_set("message text content body response reply msg utterance query said")


class Speaking(msgspec.Struct, frozen=True):
    """What a user says of the columns of a log."""

    text: tuple[str, ...] = ()  # of several, the first that a row fills
    speaker: str | None = None
    agent: tuple[str, ...] | None = None  # speakers who answer, or columns with answers

    def options(self) -> str:
        """As a user writes it."""
        lists: dict[str, tuple[str, ...]] = {}
        if self.speaker is not None:
            lists["speaker"] = (self.speaker,)
        lists |= {"text": self.text, "agent": self.agent or ()}
        return " ".join(setting(key, values) for key, values in lists.items() if values)


class Said(msgspec.Struct, frozen=True):
    """Rows with one message each, and who of their speakers answers."""

    rows: Rows  # with the keys `role`, `speaker` and `content` in `messages`
    agents: tuple[str, ...] | None
    exchanges: bool  # whether what is asked and answered is in one row


def entries_apart(rows: Rows, prefix: str) -> Rows:
    """A row for each object in the lists under a path, its keys named as paths; each list is a
    conversation.
    """
    found = rows.emptied()
    top = prefix.partition(".")[0]
    for number, row in rows.rows:
        listed = cell(row, prefix)
        if not isinstance(listed, list):
            continue
        beside = without(row, (top,))
        if not with_role(beside, "conversation"):
            beside = {"conversation_id": f"row {number}", **beside}
        for entry in listed:
            if isinstance(entry, Mapping):
                named = {f"{prefix}{_ENTRY}{key}": value for key, value in entry.items()}
                found.add(number, {**beside, **named})

    return found


def as_messages(rows: Rows, speaking: Speaking, path: Path) -> Said:
    """The messages that the columns hold that a user names. Raises BadOption for what is missing,
    with the columns that there are.
    """
    agents = speaking.agent or ()
    named = dict.fromkeys(speaking.text, "--set text")
    if speaking.speaker:
        named[speaking.speaker] = "--set speaker"
    lists: dict[str, None] = {}
    for name in (*named, *agents):
        prefix, entry, _ = name.partition(_ENTRY)
        if entry:
            lists[prefix] = None

    if len(lists) > 1:
        raise BadOption("--set text", f"{path}: {some_of([*lists])} are two lists; name one")
    for prefix in lists:
        rows = entries_apart(rows, prefix)

    columns = rows.seen_columns()
    for name, option in named.items():
        if name not in columns:
            message = f"no column is called '{name}'{did_you_mean(name, columns)}"
            raise BadOption(option, f"{path}: {message}; {_columns(columns)}")

    in_columns = bool(agents) and all(name in columns for name in agents)
    text = speaking.text
    if in_columns and speaking.speaker is None:
        text = text or tuple(_asked(columns, agents))
        if text and len(agents) == 1 and _alternate(rows, text, agents):
            return Said(_one_each(rows, text, agents), agents, False)
        if text and not {*text} & {*agents}:
            return Said(_exchanged(rows, text, agents), agents, True)
        missing = "--set text=COLUMN must name the column with what is asked"
        raise BadOption("--set text", f"{path}: {missing}; {_columns(columns)}")

    if speaking.speaker is None:
        unknown = [name for name in agents if name not in columns]
        missing = "add --set speaker=COLUMN (who speaks), or --set agent=COLUMN (with the answers)"
        if unknown:
            missing = (
                f"no column is called '{unknown[0]}'; to name a speaker, add --set speaker=COLUMN "
                "and --set text=COLUMN"
            )

        raise BadOption("--set agent", f"{path}: {missing}; {_columns(columns)}")

    if not text:
        worded = [name for name in _worded(columns) if name != speaking.speaker]
        if len(worded) != 1:
            missing = "--set text=COLUMN must name the column with what is said"
            raise BadOption("--set text", f"{path}: {missing}; {_columns(columns)}")

        text = (worded[0],)

    return _spoken(rows, speaking.speaker, text, speaking.agent, path)


def _alternate(rows: Rows, text: Sequence[str], agents: Sequence[str]) -> bool:
    """Whether what is asked and what is answered are in rows of their own."""
    sides = Counter[tuple[bool, bool]]()
    for _, row in rows.rows:
        asks = not is_empty(_first_filled(row, text))
        answers = not is_empty(_first_filled(row, agents))
        sides[asks, answers] += 1

    apart = min(sides[True, False], sides[False, True])
    return not sides[True, True] and _MOST_TEXTS * apart >= rows.count


def _one_each(rows: Rows, text: Sequence[str], agents: Sequence[str]) -> Rows:
    """A row for each message, whose side its column tells."""
    shown = some_of([f"'{name}'" for name in agents])
    asked = some_of([f"'{name}'" for name in text])
    found = rows.emptied(f"a row: a message, asked ({asked}) or answered ({shown})")
    for number, row in rows.rows:
        beside = without(row, (*text, *agents))
        for side, names in (("user", text), ("assistant", agents)):
            said = _first_filled(row, names)
            if not is_empty(said):
                message = {"role": side, "content": str(said)}
                found.add(number, {**beside, "messages": [message]})

    return found


def _exchanged(rows: Rows, text: Sequence[str], agents: Sequence[str]) -> Rows:
    """A row for each thing that a row asks, and for each answer to it."""
    shown = some_names(agents)
    asked = some_names(text)
    note = f"a row: what was asked ({asked}) and answered ({shown})"
    if len(agents) > 1:
        rows_of_two = 0
        for _, row in rows.rows:
            answers = [name for name in agents if not is_empty(cell(row, name))]
            rows_of_two += len(answers) > 1

        note += f"; {count(rows_of_two)} rows with the answers of several"

    found = rows.emptied(note)
    unasked = 0
    for number, row in rows.rows:
        beside = without(row, (*text, *agents))
        asks = _first_filled(row, text)
        if is_empty(asks):
            unasked += 1
            continue

        found.add(number, {**beside, "messages": [{"role": "user", "content": str(asks)}]})
        for name in agents:
            answer = cell(row, name)
            if not is_empty(answer):
                message = {"role": "assistant", "content": str(answer)}
                if len(agents) > 1:
                    message[NAME] = name
                found.add(number, {**beside, "messages": [message]})

    if unasked:
        found.notes.append(f"not read: {plural(unasked, 'row')} in which nothing is asked")
    return found


def _spoken(
    rows: Rows, speaker: str, text: Sequence[str], agent: Sequence[str] | None, path: Path
) -> Said:
    names = Counter[str]()
    for _, row in rows.rows:
        if not is_empty(_first_filled(row, text)):
            names[str(cell(row, speaker))] += 1

    sides = sides_of_values(speaker, names)
    if agent is not None:
        answering = {*map(compared, agent)}
        unknown = sorted(answering - {*map(compared, names)})
        if unknown:
            message = f"nobody in '{speaker}' is called '{unknown[0]}'"
            there_are = shown_with_counts(names)
            raise BadOption("--set agent", f"{path}: {message}; there are {there_are}")

        for name in names:
            sides[name] = "user"
            if compared(name) in answering:
                sides[name] = "assistant"
    elif {*sides.values()} != {"user", "assistant"}:
        message = f"say which value of '{speaker}' answers: {shown_with_counts(names)}"
        raise BadOption("--set agent=NAME", f"{path}: {message}")

    shown = some_names(text)
    note = f"a row: a message; '{speaker}' says who speaks, {shown} what"
    found = rows.emptied(note)
    others = Counter[str]()
    silent: list[Row] = []
    for number, row in rows.rows:
        who = str(cell(row, speaker))
        said = _first_filled(row, text)
        if who not in sides:
            others[who] += 1
            continue

        beside = without(row, (speaker, *text))
        if is_empty(said):
            silent.append(beside)
        else:
            spoken = {"role": sides[who], NAME: who, "content": str(said)}
            found.add(number, {**beside, "messages": [spoken]})

    if silent:
        found.notes.append(f"not read: {_without_text(silent, found)}")
    if others:
        found.notes.append(
            f"not read: {plural(sum(others.values()), 'row')} of {shown_with_counts(others)}"
        )

    return Said(found, tuple(agent) if agent else None, False)


def _without_text(silent: Sequence[Row], said: Rows) -> str:
    """How many messages hold no text, and the conversations that hold no others."""
    text = f"{plural(len(silent), 'message')} without text"
    keys: dict[str, None] = {}
    for row in silent:
        keys |= dict.fromkeys(row)

    named = with_role(keys, "conversation")
    if not named:
        return text
    lost = {str(row.get(named[0])) for row in silent}
    lost -= {str(row.get(named[0])) for _, row in said.rows}
    if not lost:
        return text
    return f"{text}, with them all of {plural(len(lost), 'conversation')} ({some_of([*lost])})"


def joined(said: Said) -> Rows:
    """The conversations of such rows: those with one name in the column that names them, each in
    the order of its times. Without such a column, each exchange is a conversation, and messages
    are all of one.
    """
    rows = said.rows
    keys = [key for key in keys_of(rows) if "." not in key]
    named = next(iter(with_role(keys, "conversation")), None)
    for key in keys if named is None else ():
        values = {str(row.get(key)) for _, row in rows.rows}
        if words_of(key) in _TALKS and 1 < len(values) <= rows.count / 2:
            named = key
            break

    if named is None and said.exchanges:
        numbers = {number for number, _ in rows.rows}
        for key in with_role(keys, "id"):
            values = {str(row.get(key)) for _, row in rows.rows}
            if len(values) == len(numbers):  # each row has another
                named = key
                break

    when = row_times(rows)
    groups: dict[str, list[NumberedRow]] = {}
    for number, row in rows.rows:
        called = ""
        if named is not None and not is_empty(row.get(named)):
            called = str(row.get(named))
        elif named is not None or said.exchanges:
            called = f"row {number}"

        groups.setdefault(called, []).append((number, row))

    if said.exchanges:
        note = "a conversation: a row"
    else:
        note = "all rows are one conversation"

    if named is not None:
        note = f"'{named}' names the conversation"
    found = rows.emptied(note)
    found.regrouped = True
    for name, group in groups.items():
        if all(number in when for number, _ in group):
            group.sort(key=lambda numbered: when[numbered[0]].timestamp())
        shared = shared_cells([row for _, row in group])

        if name and named is not None and with_role([named], "conversation", "id"):
            shared[named] = name
        elif name:
            shared.pop(named or "", None)
            shared["conversation_id"] = name

        messages: list[Message] = []
        for _, row in group:
            messages += row["messages"]

        found.add(group[0][0], {**shared, "messages": messages})

    return found


def sides_of_values(speaker: str, values: Mapping[str, object]) -> dict[str, str]:
    """The side of each value of a column that says who speaks: by its name, by the column's where
    it is true or false, or as a message of this side.

    >>> sides_of_values("isBot", {"True": 2, "False": 3})
    {'True': 'assistant', 'False': 'user'}
    >>> sides_of_values("event", {"user_message": 2, "agent_response": 1, "start": 1})
    {'user_message': 'user', 'agent_response': 'assistant'}
    """
    sides: dict[str, str] = {}
    lowered = {value.strip().lower() for value in values}
    side = side_of_flag(speaker)
    if lowered <= _TRUE | _FALSE and side is not None:
        for value in values:
            is_it = value.strip().lower() in _TRUE
            sides[value] = side if is_it else _SIDES[side]

        return sides

    for value in values:
        if value.strip().lower() in NOT_SPEAKING:
            continue
        parts = words_of(value)
        named = value
        if side_of(value) is None and len(parts) == 2 and parts[1] in _FIELDS:
            named = parts[0]
        who = side_of(named) or _DIRECTIONS.get(value.strip().lower())
        if who is not None:
            sides[value] = who

    return sides


_DIRECTIONS = {
    "inbound": "user",
    "incoming": "user",
    "in": "user",
    "received": "user",
    "outbound": "assistant",
    "outgoing": "assistant",
    "out": "assistant",
    "sent": "assistant",
}
"""Who speaks by where a message goes, from where the agent is."""


def certain_reading(rows: Rows) -> Speaking | None:
    """The column that says who speaks in nearly all rows, with the column of what is said; None:
    there is no such column, or there are several.
    """
    found = []
    for speaking, _ in _of_columns(rows, rows.seen_columns()):
        if speaking.speaker is None or speaking.agent is not None:
            continue
        names = Counter(str(cell(row, speaking.speaker)) for _, row in rows.rows)
        sides = sides_of_values(speaking.speaker, names)
        known = sum(names[name] for name in sides)
        if known >= _MOST_KNOWN * rows.count:
            found.append(speaking)

    if len(found) == 1:
        return found[0]
    return None


def beside_history(rows: Rows) -> tuple[Rows, Speaking] | None:
    """The rows without the column of what was said before, and what is asked and answered in each;
    None: no column holds that, or the exchange of a row is a part of it.
    """
    columns = rows.seen_columns()
    histories = []
    for path, column in columns.items():
        if words_of(path)[-1:] == ("history",) and "." not in path and column.lists:
            histories.append(path)

    replies = []
    outer = {}
    for path, column in columns.items():
        around, _, name = path.rpartition(".")
        if not around:
            outer[path] = column
            says = is_reply(path) and not with_role([path], "model")
        else:
            says = name in _FIELDS and "." not in around and is_reply(around)

        if column.is_text and says:
            replies.append(path)

    asked = _asked(outer, replies)
    if not asked:
        asked = [path for path in ("message", "text", "msg") if path in columns]
    others = []
    for path in with_role(outer, "question"):
        if path not in asked and outer[path].is_text:
            others.append(path)

    if len(histories) != 1 or len(replies) != 1 or len(asked) != 1 or others:
        return None
    inside = 0
    for _, row in rows.rows:
        inside += str(cell(row, replies[0])) in str(row.get(histories[0]))

    if 2 * inside > rows.count:
        return None
    found = rows.emptied(f"'{histories[0]}': what was said before a row, in rows of its own")
    for number, row in rows.rows:
        found.add(number, without(row, histories))

    return found, Speaking((asked[0],), None, (replies[0],))


def with_reply_texts(rows: Rows) -> Rows:
    """The rows, with the texts of replies that are objects or lists, as models return them, beside
    what is asked in a text; the same rows if there are none.
    """
    columns = rows.seen_columns()
    replies = []
    others = 0  # columns of messages
    for path, column in columns.items():
        is_held = "." not in path and 2 * (column.lists + column.objects) > column.rows
        if is_held and is_reply(path) and not with_role([path], "model"):
            replies.append(path)
        else:
            others += column.messages > 0

    if len(replies) != 1 or others:
        return rows
    found = rows.emptied()
    for number, row in rows.rows:
        text = reply_beside(Json({"response": row.get(replies[0])}))
        if text is None:
            return rows
        found.add(number, {**row, replies[0]: text})

    return found


def tests_in_turn(rows: Rows) -> str | None:
    """What to say where lists hold what is asked in turn and what is expected, and no replies;
    None: they hold something else.
    """
    for path, column in rows.seen_columns().items():
        if not isinstance(column.example, list):
            continue
        entry = next(iter(column.example), None)
        if not isinstance(entry, Mapping):
            continue
        expected = [key for key in entry if is_gold(words_of(key))]
        expected += with_role(entry, "criterion")
        questions = with_role(entry, "question")
        asked = []
        for key in entry:
            if side_of(key) == "user" or key in questions:
                asked.append(key)

        replies = [key for key in entry if is_reply(key) and key not in expected]
        if asked and expected and not replies:
            return (
                f"holds tests: what is asked in turn ('{path}{_ENTRY}{asked[0]}') and what is "
                f"expected ('{path}{_ENTRY}{expected[0]}'), but no replies of an agent; "
                "`karat check FILE` tells how to ask one"
            )

    return None


def asked_and_answered(columns: Columns, path: Path) -> Reading | None:
    """The columns with what is asked and answered in each row of a log; None: they are not certain,
    or a row is more than that.

    Of several readings, the one whose questions are words, where those of others are labels.
    """
    result = assign(columns, door="results", file=path.name)
    if isinstance(result, Reading):
        ways: tuple[Reading, ...] = (result,)
    else:
        ways = result.readings
        answers = {reading.roles.get("answer") for reading in ways}
        if len(ways) < 2 or len(answers) > 1:
            return None

    found = []
    for reading in ways:
        roles = {*reading.roles}
        if not {"question", "answer"} <= roles or {"golden", "score"} & roles:
            continue
        asked = columns[reading.roles["question"][0]]
        answered = columns[reading.roles["answer"][0]]
        if 2 * min(asked.filled, answered.filled) <= asked.rows or not answered.is_text:
            continue
        if isinstance(answered.example, str) and isinstance(parsed(answered.example), list):
            continue
        worded = sum(" " in value or not value.isascii() for value in asked.values)
        if len(ways) == 1 or 2 * worded > len(asked.values):
            found.append(reading)

    if len(found) == 1:
        return found[0]
    return None


def by_structure(rows: Rows) -> Iterator[tuple[Speaking, str]]:
    """The ways in which columns may be messages, or what is asked and answered, whatever they are
    called: one of few values that change from row to row beside texts, or two columns of texts.
    """
    columns = rows.seen_columns()
    texts = []
    for name in _worded(columns):
        filled = columns[name].filled
        varied = len(columns[name].values) > min(_FEW_SPEAKERS, filled / 2)
        if varied and _MOST_TEXTS * filled > columns[name].rows:
            texts.append(name)

    for speaker in columns:
        values = [
            str(cell(row, speaker)) for _, row in rows.rows if not is_empty(cell(row, speaker))
        ]
        names = Counter(values)
        changes = sum(first != second for first, second in pairwise(values))
        by_chance = 1 - sum((number / len(values)) ** 2 for number in names.values())
        few = 1 < len(names) <= _FEW_SPEAKERS and 2 * len(values) > rows.count
        in_turn = (
            few
            and 3 * len(names) <= len(values)
            and changes > (by_chance + _IN_TURN) * (len(values) - 1)
        )
        is_count = columns[speaker].is_numeric and len(names) > len(_SIDES)
        if in_turn and speaker not in texts and not is_count and "id" not in roles_of(speaker):
            (*_, who) = names
            said = f"a row: a message; agent: one of {shown_with_counts(names)}, or a list"
            for text in texts[:_FEW_TEXTS]:
                yield Speaking((text,), speaker, (who,)), said

    lengths = sorted(columns[name].mean_length for name in texts)
    beside = len({name.rpartition(".")[0] for name in texts}) == 1
    words = Counter(word for name in texts for word in words_of(name.rpartition(".")[2]))
    versions = 2 in words.values()  # `original_text` and `clean_text`
    unnamed = len(texts) == 2 and beside and not versions and not roles_of(*texts)
    if unnamed and lengths[0] > _FEW_WORDS and lengths[1] < _UNLIKE * lengths[0]:
        before, answer = texts
        said = f"a row: what was asked ('{before}') and answered ('{answer}')"
        if _alternate(rows, (before,), (answer,)):
            said = f"a row: a message, asked ('{before}') or answered ('{answer}')"
        yield Speaking((before,), None, (answer,)), said


def readings(rows: Rows) -> Iterator[tuple[Speaking, str]]:
    """The ways in which columns may be messages, or what is asked and answered, with a comment."""
    columns = rows.seen_columns()
    yield from _of_columns(rows, columns)
    for path, apart in _lists_apart(rows, columns):
        inside = apart.seen_columns()
        within = {}
        for name, column in inside.items():
            if name.startswith(path):
                within[name] = column

        yield from _of_columns(apart, within)


_MOST_LISTS = 20  # columns with lists that are looked into: a file of chats has few


def _lists_apart(rows: Rows, columns: Columns) -> Iterator[tuple[str, Rows]]:
    """The first columns that hold lists of objects, each with a row for each of its objects."""
    looked_into = 0
    for path, column in columns.items():
        entries = column.example
        if looked_into == _MOST_LISTS or not isinstance(entries, list):
            continue
        if any(isinstance(entry, Mapping) for entry in entries):
            looked_into += 1
            yield path, entries_apart(rows, path)


def _of_columns(rows: Rows, columns: Columns) -> Iterator[tuple[Speaking, str]]:
    worded = _worded(columns)
    yield from _with_speakers(rows, columns, worded)
    yield from _with_replies(columns, worded)


def _with_speakers(
    rows: Rows, columns: Columns, worded: Sequence[str]
) -> Iterator[tuple[Speaking, str]]:
    in_most = [name for name in worded if _RARE * columns[name].filled >= columns[name].rows]
    for speaker in columns:
        names = Counter[str]()
        for _, row in rows.rows:
            if not is_empty(cell(row, speaker)):
                names[str(cell(row, speaker))] += 1

        sides = sides_of_values(speaker, names)
        of_sides = sum(names[name] for name in sides)
        total = sum(names.values())
        both = {*sides.values()} == {"user", "assistant"}
        if both and of_sides >= _FEW_KNOWN * total:
            texts = _texts_of(rows, columns, speaker, sides)
            of_calls = _DIRECTIONS.keys() >= {*map(compared, sides)}
            if of_calls and not any(_FIELDS & {*words_of(text)[-1:]} for text in texts):
                continue  # directions of calls that rows describe, not of messages
            ways = [tuple(texts)]
            if not texts:
                ways = [(name,) for name in in_most[:3]]
            for text in ways:
                yield Speaking(text, speaker), "a row: a message"

            continue

        is_called_so = not _SPEAKING.isdisjoint(words_of(speaker)[-1:])
        few = 1 < len(names) <= _MOST_SPEAKERS and 2 * len(names) <= total
        if speaker in worded or not is_called_so or not few:
            continue
        who = names.most_common(1)[0][0]
        for value in names:
            if side_of(value) == "assistant":
                who = value

        said = f"a row: a message; agent: one of {shown_with_counts(names)}, or a list"
        for name in in_most[:3]:
            yield Speaking((name,), speaker, (who,)), said


def _with_replies(columns: Columns, worded: Sequence[str]) -> Iterator[tuple[Speaking, str]]:
    answers = [name for name in worded if is_reply(name)]
    asked = _asked(columns, answers)
    if not asked:
        answers = [name for name in answers if _RARE * columns[name].filled > columns[name].rows]
    others = []
    for name in worded:
        if name not in (*answers, *asked) and "." not in name:
            others.append(name)

    unnamed = all(name.startswith(NO_NAME) for name in worded)
    named = asked or answers or "question" in roles_of(*others)
    if not (named or unnamed or len(worded) == len(columns)):
        return  # no name tells, and there is more than texts
    if not answers and (len(others) == 1 or unnamed or not asked):
        answers = others[not asked :]
    if not asked and (len(others) <= _FEW_TEXTS or unnamed):
        asked = others[:1]
    if len(answers) > 1 and asked and not unnamed:
        yield Speaking(tuple(asked), None, tuple(answers)), "each an agent of its own"
    for before in asked:
        for answer in answers:
            if answer != before:
                said = f"a row: what was asked ('{before}') and answered ('{answer}')"
                yield Speaking((before,), None, (answer,)), said


def is_reply(path: str) -> bool:
    """Whether a column of texts holds what an agent says, by its name: `aria_response`, `my_bot`"""
    words = words_of(path.rpartition(".")[2].rpartition(_ENTRY)[2])
    if not words:
        return False
    roles = {meaning.role for meaning in meanings(path)[:1]}
    return roles == {"answer"} or side_of(words[-1]) == "assistant" or words[-1] in _REPLIES


_REPLIES = word_set("response answer reply output completion")


def _texts_of(rows: Rows, columns: Columns, speaker: str, sides: Mapping[str, str]) -> list[str]:
    """The columns of texts that hold what the speakers say, in rows of a side: the fullest of each
    side.
    """
    named = {*with_role(columns, "conversation", "id", "started"), speaker}
    best: dict[str, str] = {}
    filled: dict[str, Counter[str]] = {"user": Counter(), "assistant": Counter()}
    worded = Counter[str]()  # rows by column
    of_sides = 0
    for _, row in rows.rows:
        side = sides.get(str(cell(row, speaker)))
        of_sides += side is not None
        for path in columns if side else ():
            value = cell(row, path)
            if OF_TIME & {*words_of(path)}:
                continue
            if side and path not in named and isinstance(value, str) and " " in value.strip():
                filled[side][path] += len(value)
                worded[path] += 1

    for side, counts in filled.items():
        for path, _ in counts.most_common(1):
            best[side] = path

    found = [*dict.fromkeys(best.values())]
    if _RARE * sum(worded[path] for path in found) < of_sides:
        return []  # words among labels
    return found


def _asked(columns: Columns, agents: Sequence[str]) -> list[str]:
    """The column with what a user says, by its name; none: no name tells."""
    texts = []
    for name in columns:
        if columns[name].is_text and name not in agents:
            texts.append(name)

    for name in texts:
        words = words_of(name.rpartition(".")[2].rpartition(_ENTRY)[2])
        if not words:
            continue
        ends = len(words) == 1 or words[-1] in _FIELDS | word_set("input question prompt")
        if ends and side_of(words[0]) == "user":
            return [name]

    return with_role(texts, "question")[:1]


def _worded(columns: Columns) -> list[str]:
    """The columns of texts in words."""
    found = []
    named = with_role(columns, "conversation", "started")
    for name, column in columns.items():
        if name in named or OF_TIME & {*words_of(name)}:
            continue
        worded = 0
        for value in column.values:
            spaced = " " in value.strip() or not value.isascii()
            worded += spaced and any(map(str.isalpha, value))

        if column.is_text and 3 * worded > len(column.values):
            found.append(name)

    return found


def unread_replies(rows: Rows, found: Rows) -> str | None:
    """What to ask where rows hold replies of several columns, and the conversations found in them
    only some; None: all are read, or are none.
    """
    columns = rows.seen_columns()
    replies = []
    for name in _worded(columns):
        if "." not in name and is_reply(name):
            replies.append(name)

    asked = _asked(columns, replies)
    said = set()
    for _, row in found.rows:
        messages = row.get("messages")
        if not isinstance(messages, list):
            continue
        for message in messages:
            if isinstance(message, Mapping):
                said.add(str(message.get("content")))

    read = []
    left = []
    for name in replies:
        texts = set()
        for _, row in rows.rows:
            if not is_empty(row.get(name)):
                texts.add(str(row[name]))

        if texts & said:
            read.append(name)
        elif _RARE * columns[name].filled > columns[name].rows:
            left.append(name)

    if not (left and read and asked):
        return None
    alone = 0
    for _, row in rows.rows:
        filled = sum(not is_empty(row.get(name)) for name in (*read, *left))
        alone += filled == 1

    if 2 * alone > rows.count:
        each = "the one who answers is another by row"
    else:
        each = "each answers all"

    question_in = tuple(asked)
    ways = [f"{Speaking(question_in, None, (*read, *left)).options()}  # agents: {each}"]
    for name in (*read, *left):
        ways.append(Speaking(question_in, None, (name,)).options())

    shown = some_names((*read, *left))
    asked_for = f"which of {shown} the agent answers is not certain; add one of these:"
    return asked_for + ways_listed(ways)


_RARE = 5  # times as many rows as have a reply: then it may be an exception


ADD = "if columns hold them under other names, add one of these"
"""Before the ways to read a log."""


_FORM = (
    "name those that hold them: --set text=COLUMN (what is said or asked) with --set agent=COLUMN "
    "(what is answered) or with --set speaker=COLUMN and --set agent=NAME"
)


def question(rows: Rows, why: str) -> str:
    """The ways to say what the columns are, with all columns."""
    ways: dict[str, str] = {}
    columns = rows.seen_columns()
    for speaking, comment in readings(rows):
        ways.setdefault(speaking.options(), comment)

    apart = [rows]
    for _, part in _lists_apart(rows, columns):
        apart.append(part)

    by_turns = [path for path, column in columns.items() if _holds_turns(column)]
    if not ways and len(by_turns) == 1:
        said = f"'{by_turns[0]}': two speak by turns, the first is {BY_TURNS[0]}"
        ways[setting("agent", BY_TURNS[1:])] = said
    for speaking, comment in chain.from_iterable(map(by_structure, [] if ways else apart)):
        ways.setdefault(speaking.options(), comment)

    offered = []
    for options, comment in [*ways.items()][:SHOWN]:
        offered.append(f"{options}  # {comment}")

    if not columns:
        return why
    if not offered:
        return f"{why}; {_columns(columns)}; {_FORM}"
    roles = "speaker=, text=, agent=, conversation= and pause= may name any of these columns"
    return f"{why}; {ADD}:{ways_listed(offered)}\n  {_columns(columns)}; {roles}"


def _holds_turns(column: Column) -> bool:
    """Whether most cells of a column are lists, as its first is one of several texts in words."""
    listed = column.example
    if not isinstance(listed, list) or "." in column.path or len(listed) <= _FEW_TEXTS:
        return False
    worded = [text for text in listed if isinstance(text, str) and " " in text.strip()]
    return 2 * column.lists > column.rows and len(worded) == len(listed)


def _columns(columns: Columns) -> str:
    named = []
    for path, column in columns.items():
        example = column.example
        keys: dict[str, None] = {}
        for entry in example if isinstance(example, list) else ():
            if isinstance(entry, Mapping):
                keys |= dict.fromkeys(entry)

        named += [f"{path}{_ENTRY}{key}" for key in keys] or [path]

    return f"its columns: {some_of([clean(str(name)) for name in named], most=_MOST_NAMED)}"


def compared(value: object) -> str:
    """A value as columns keep it to look at, in one case."""
    return str(value)[:200].strip().casefold()


def two_texts(rows: Rows) -> tuple[str, ...]:
    """The columns of rows that hold texts in two columns and nothing else; empty: there is more."""
    columns = rows.seen_columns()
    worded = []
    for path, column in columns.items():
        spaced = sum(" " in value.strip() for value in column.values)
        if column.is_text and 2 * spaced > len(column.values):
            worded.append(path)

    if len(worded) == len(columns) == 2:
        return tuple(worded)
    return ()


def said_again(rows: Rows, columns: Sequence[str]) -> int:
    """How many texts of the second column rows hold in the first, whatever marks are in them."""
    letters: list[list[str]] = []
    for _, row in rows.rows:
        texts = [compared(row.get(column)) for column in columns]
        letters.append(["".join(filter(str.isalnum, text)) for text in texts])

    asked = {question for question, _ in letters}
    return sum(answer in asked for _, answer in letters)


def shown_with_counts(names: Mapping[str, int]) -> str:
    """Speakers, with how many messages each has."""
    shown = []
    for name, number in names.items():
        shown.append(f"'{clean(name)}' ({count(number)})")

    return some_of(shown, most=6)


def _first_filled(row: Row, paths: Sequence[str]) -> object:
    for path in paths:
        value = cell(row, path)
        if not is_empty(value):
            return value

    return None
