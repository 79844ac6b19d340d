"""`karat import chats`: logs of chats, a conversation a line or an item.

Source of the formats: `messages` as the APIs of OpenAI and Anthropic take them; `conversation` with
`model`, as in the logs of Chatbot Arena (LMSYS-Chat-1M) and WildChat; `conversations` with `from`
and `value`, ShareGPT's form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat.documents import understood
from karat.documents.cells import parsed
from karat.documents.chats import NAME, NAMES_OF_SPEAKERS, of_people, of_users, with_sides
from karat.documents.columns import LOOKED_AT, cell, columns_of, is_empty, without
from karat.documents.doubts import Seen, doubts, is_error_of_service
from karat.documents.names import (
    NOT_SPEAKING,
    any_speaker_and_text,
    roles_of,
    side_of,
    speaker_and_text,
    with_role,
    words_of,
)
from karat.documents.row_list import Rows
from karat.documents.rows import read_rows
from karat.documents.sentences import is_aside
from karat.errors import BadDataset, BadOption, OperatorError
from karat.foreign import Json
from karat.formats import clean, count, excerpt, plural, some_of
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedTrial,
)
from karat.layouts import laid_out, speakers, unasked
from karat.records import JsonObject
from karat_imports.importers._chats import REPLIES, reply_beside
from karat_imports.importers._grouping import (
    OF_TIME,
    Grouping,
    choices,
    choices_of_chats,
    grouped,
    times_of,
    ways_listed,
    with_headers,
    without_placeholders,
)
from karat_imports.importers._reading import (
    bad_file,
    beginning,
    digest,
    each_readable,
    sample_name,
    utc,
)
from karat_imports.importers._records import records
from karat_imports.importers._speaking import (
    ADD,
    Speaking,
    as_messages,
    asked_and_answered,
    beside_history,
    certain_reading,
    compared,
    joined,
    question,
    said_again,
    shown_with_counts,
    tests_in_turn,
    two_texts,
    unread_replies,
    with_reply_texts,
)
from karat_imports.importers._traces import named_after
from karat_imports.importers._turns import Turn, of_each, turns_in, without_last_words

__all__ = ["Chats"]

_KEYS = ("messages", "conversation", "conversations")
_CHAT = re.compile(
    rb'\s*+(?:\[\s*+)?\{\s*+(?:"[^"\\]*+"\s*+:\s*+(?:"(?:[^"\\]|\\.)*+"|[\w.+-]++)\s*+,\s*+)*+'
    rb'"(?:messages|conversations?)"\s*+:\s*+\[\s*+\{\s*+(?:"(?:role|content|from|value)"'
    rb'|(?:"(?!role")[^"\\]*+"\s*+:\s*+(?:"(?:[^"\\]|\\.)*+"|[\w.+-]++)\s*+,\s*+)++"role")'
)
_IDS = ("conversation_id", "conversation_hash", "id")
_MOST_NAMED = 12  # columns in a note
_MANY_AGAIN = 0.1  # of the answers
_FEWEST_ALIKE = 5  # answers that are surely not one text by chance
_OF_MESSAGES = {
    *("id", "name", "type", "model", "role", "content", "contents", "parts", "message", "kwargs"),
    *("tool_calls", "toolCalls", "tool_call_id", "function_call", "additional_kwargs", "lc"),
    *(NAME, "finish_reason", "stop_reason", "refusal"),
}
"""Keys of messages that are read, or say nothing to compare."""
_AROUND = (
    "request",
    "input",
    "inputs",
    "body",
    "payload",
    "params",
    "data",
    "conversation",
    "chat",
)
"""Columns of objects whose messages are those of the row."""
_PREFERENCES = ("chosen", "rejected")
"""Columns of two answers to one prompt, of which people prefer the first."""
_REPLIED = (("reply",), ("response",), ("answer",))  # last words of columns
_USED = {*_KEYS, "model", "timestamp"}


class Chats:
    """Logs of chats, also as tables: models are conditions, each question of the user with the
    answer to it is a sample.
    """

    class Options(BaseModel):
        """Who answers, and where."""

        model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

        agent: str | list[str] | None = Field(
            default=None,
            description="whose turns are the answers, where no usual name tells: one speaker, or a "
            "list; or the columns with the answers",
        )
        text: str | list[str] | None = Field(
            default=None,
            description="the column with what is said or asked; of several, the first that a row "
            "fills",
        )
        speaker: str | None = Field(default=None, description="the column that says who speaks")
        conversation: str | list[str] | None = Field(
            default=None,
            description="which column names the conversation of a row, or columns; `all`: rows are "
            "one conversation, `row`: each is one",
        )
        pause: float | None = Field(
            default=None, gt=0, description="minutes without a message that begin a new one"
        )
        order: Literal["oldest", "newest"] | None = Field(
            default=None, description="which message of a chat stands first in the file"
        )
        part: str | None = Field(
            default=None, description="which list of a JSON file holds the chats, of several"
        )
        sheet: str | None = Field(default=None, description="which sheet of a workbook")

    def __init__(self, options: Options) -> None:
        self._options = options
        self._alone = True  # whether there is one file
        self._agent = _one_or_several(options.agent) or None
        self._speaking = Speaking(_one_or_several(options.text), options.speaker, self._agent)
        self._grouping = Grouping(_one_or_several(options.conversation), options.pause)

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _CHAT.match(head.removeprefix(b"\xef\xbb\xbf")) is not None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run of all files."""
        self._alone = len(paths) == 1
        logs = each_readable(paths, self._in_order, findings)
        conditions: dict[str, ImportedCondition] = {}
        first: dict[str, str] = {}
        yield ImportedRun(
            name=named_after([log.path for log in logs]),
            tool="chats",
            trials=_trials(logs, conditions, first, findings, self._agent),
            conditions=conditions,
            first_row=first,
            sparse=True,
            answers_all=True,
        )

    def _in_order(self, path: Path) -> _Log:
        """The file. Raises BadOption, of one of several files BadDataset, if its chats seem to
        stand newest first.
        """
        log = msgspec.structs.replace(self._opened(path), order=self._options.order)
        option = "--set order=newest"
        if log.order is None and _seems_newest_first(log, self._agent):
            message = (
                "most chats begin with different words of the agent, and many end with a user whom "
                "nobody answers: if the newest message comes first, add --set order=newest, else "
                "--set order=oldest"
            )
            raise self._refusal(option, path, message)

        return log

    def _opened(self, path: Path) -> _Log:
        asked = self._options
        whole = asked.part is None and asked.sheet is None and not self._grouping.is_said
        if whole and (path.suffix == ".parquet" or Chats.recognizes(path, beginning(path))):
            return self._with_replies(_Log(path))
        read = table(path, part=asked.part, sheet=asked.sheet)
        read = with_headers(without_placeholders(read, self._grouping), self._grouping)
        read = self._doubted(grouped(read, self._grouping, path), path)
        if asked.text is not None or asked.speaker is not None:
            return self._as_said(read, self._speaking, path)
        if self._agent is None and with_role(read.seen_columns(), "question"):
            read = with_reply_texts(read)
        if self._agent is None:
            turns = beside_history(read)
        else:
            turns = None

        if turns is not None:
            return self._as_said(*turns, path)
        found = _chats(path, laid_out(read, agent=self._agent, whole=True))
        tests = tests_in_turn(read)
        if tests is not None:
            raise bad_file(path, tests)
        if found is not None:
            self._ask_who_answers(read, found, path)
            self._ask_what_groups(read, found, path)
            return self._with_replies(self._with_unread(found, read))
        if self._agent is not None:
            return self._as_said(read, self._speaking, path)
        certain = certain_reading(read)
        if certain is not None:
            return self._as_said(read, certain, path)
        names = speakers(read)
        if names:
            raise self._refusal("--set agent=NAME", path, of_people(names))
        columns = read.seen_columns()
        reading = asked_and_answered(columns, path)
        if reading is not None:
            roles = reading.roles
            exchanged = Speaking(roles["question"][:1], None, roles["answer"][:1])
            return self._as_said(read, exchanged, path)

        other = unasked(read)
        if other is not None:
            message = other.message
        else:
            message = question(
                read, "holds no chats: messages, or turns of a user and an assistant"
            )

        asks = "question" in roles_of(*columns)
        said = [path for path, column in columns.items() if column.is_text]
        replies = any(words_of(path)[-1:] in _REPLIED for path in said)
        if reading is not None or (asks and replies):
            message += "; if each row is a question and the answer to it, use `karat import csv`"
        raise self._refusal("--set text=COLUMN", path, message, asks=ADD in message)

    def _doubted(self, read: Rows, path: Path) -> Rows:
        """The rows, with a note if they are texts in two columns and nothing else. Raises
        BadOption, of one of several files BadDataset, if many answers are what other rows ask.
        """
        columns = two_texts(read)
        if not columns or self._agent is not None or self._speaking.text:
            return read
        shown = " and ".join(f"'{name}'" for name in columns)
        again = said_again(read, columns)
        if again > max(_FEWEST_ALIKE, _MANY_AGAIN * read.count):
            ways = Speaking((columns[0],), None, (columns[1],)).options()
            message = (
                f"only {shown}, and {count(again)} of {plural(read.count, 'answer')} are what "
                "other rows ask: dialogues cut into pairs to learn from, it seems; if they are "
                f"right answers, see `karat check FILE`; if an agent gave them, add {ways}"
            )
            raise self._refusal("--set agent=COLUMN", path, message)

        note = f"only {shown}: if they are questions and right answers to them, see "
        return msgspec.structs.replace(read, notes=[*read.notes, f"{note}`karat check FILE`"])

    def _as_said(self, read: Rows, speaking: Speaking, path: Path) -> _Log:
        """The conversations in the columns that say who speaks, and what."""

        said = as_messages(read, speaking, path)

        def lay(rows: Rows) -> Rows:
            return joined(msgspec.structs.replace(said, rows=rows))

        found = _chats(path, lay(said.rows))
        if found is None:
            raise bad_file(path, "the columns that are named hold no messages")
        if speaking.speaker is None:
            self._ask_who_answers(read, found, path)
        self._ask_what_groups(said.rows, found, path, lay)
        return self._with_unread(found, said.rows)

    def _ask_who_answers(self, read: Rows, found: _Log, path: Path) -> None:
        """Raises BadOption, of one of several files BadDataset, if some replies are not read."""
        if found.rows is None or self._agent is not None:
            return
        message = unread_replies(read, found.rows)
        if message is not None:
            raise self._refusal("--set agent=COLUMN", path, message)

    def _ask_what_groups(
        self,
        read: Rows,
        found: _Log,
        path: Path,
        lay: Callable[[Rows], Rows] | None = None,
    ) -> None:
        """Raises BadOption, of one of several files BadDataset, if rows are messages or exchanges
        and it is not certain which are one conversation, or chats of which many pause for long.
        """
        if self._grouping.is_said or found.rows is None:
            return
        if found.rows.regrouped:
            ways = choices(read, lay or partial(laid_out, agent=self._agent, whole=True), path)
        else:
            ways = choices_of_chats(read)

        if not ways:
            return
        message = "which rows are one conversation is not certain; add one of these:"
        message += ways_listed(ways)
        raise self._refusal("--set conversation=COLUMN", path, message)

    def _refusal(
        self,
        option: str,
        path: Path,
        message: str,
        *,
        asks: bool = True,
    ) -> OperatorError:
        """A question to the user; of one of several files, its fault, so that the others are
        read. `asks`: whether the message says what may be answered.
        """
        if self._alone and asks:
            return BadOption(option, f"{path}: {message}")
        return bad_file(path, message)

    def _with_unread(self, log: _Log, read: Rows) -> _Log:
        """The same, with the columns of its messages whose values are in none of them, and name no
        conversation or time.
        """
        if log.rows is None or not log.rows.regrouped:
            return log
        said: set[str] = set()
        kept: set[str] = set()
        for _, row in log.rows.rows:
            kept |= row.keys()
            for message in row.get("messages") or ():
                said |= {compared(value) for value in message.values()}

        columns = read.seen_columns()
        used = {*with_role(columns, "conversation", "turn", "id"), *self._grouping.columns}
        unread = []
        for path, column in columns.items():
            if path in kept or path in used or "." in path or OF_TIME & {*words_of(path)}:
                continue
            example = column.example
            if isinstance(example, str) and parsed(example) is not example:  # messages as JSON
                continue
            values = {compared(value) for value in column.values}
            if 2 * len(values - said) > len(values):
                unread.append(path)

        return msgspec.structs.replace(log, unread=tuple(unread))

    def _with_replies(self, log: _Log) -> _Log:
        """The same. Raises BadDataset if nobody replies in it to what users say."""
        if self._agent is None and not _anybody_replies(log):
            raise bad_file(log.path, of_users("in turn"))
        return log


def _one_or_several(named: str | Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(named, str):
        return (named,)
    return tuple(named or ())


class _Log(msgspec.Struct, frozen=True):
    """A file, and its conversations if they have another form than the usual ones."""

    path: Path
    rows: Rows | None = None
    columns: tuple[str, ...] = ()  # of their messages; several: each a model's
    ids: tuple[str, ...] = ()  # columns that hold another id in each row
    unread: tuple[str, ...] = ()  # columns of messages or exchanges that say something else
    order: str | None = None  # the message that stands first: "newest" or "oldest"


def _chats(path: Path, rows: Rows) -> _Log | None:
    """The conversations that these rows hold; None: no column holds any."""
    columns = rows.seen_columns()
    held = []
    for name, column in columns.items():
        if 2 * column.messages > column.filled:
            held.append(name)

    chats = [name for name in held if "." not in name]
    chats = chats or [name for name in held if name.partition(".")[0] in _AROUND][:1]
    if not chats:
        return None
    alike = {name.rpartition("_")[0] or name for name in chats}  # `conversation_a`, and `…_b`
    if {*_PREFERENCES} <= {*chats}:
        chats = [*_PREFERENCES]
    elif len(alike) > 1:
        chats = chats[:1]
    ids = []
    for name in columns:
        if "." not in name and "id" in roles_of(name):
            values = [row.get(name) for _, row in rows.rows]
            if len({str(value) for value in values if not is_empty(value)}) == rows.count:
                ids.append(name)  # it has another value in each row

    return _Log(path, rows, tuple(chats), tuple(ids))


def _anybody_replies(log: _Log) -> bool:
    """Whether a chat holds more than what a user says."""
    for _, row in _records(log, Findings()):
        names = set()
        for item in map(_with_usual_keys, _listed(row)):
            names.add(str(item.get("role")))

        others = []
        for name in names - {"system"}:
            if side_of(name) != "user":
                others.append(name)

        if others or reply_beside(row) is not None:
            return True

    return False


def _seems_newest_first(log: _Log, agent: Sequence[str] | None) -> bool:
    """Whether most chats begin with an agent who does not greet all alike, and many end with what a
    user says; no times or numbers of turns tell.
    """
    chats = ending = 0
    openings = []
    for _, row in islice(_records(log, Findings()), LOOKED_AT):
        said = _said(log, row, agent)
        sides = [str(message.get("role")) for message in said]
        told = times_of(said) or (said and with_role(said[0], "turn"))
        if told or not {"user", "assistant"} <= {*sides}:
            continue
        chats += 1
        if sides[0] == "assistant":
            openings.append(str(said[0].get("content")))
            ending += sides[-1] == "user"

    begin_so = chats >= _FEWEST_ALIKE and 4 * len(openings) > 3 * chats
    return begin_so and 4 * ending > chats and 2 * len({*openings}) > len(openings)


def _is_newest_first(log: _Log, listed: Sequence[Mapping[str, object]]) -> bool:
    """Whether the messages of a chat stand in the reverse order, as is said or their times show."""
    if log.order is not None:
        return log.order == "newest"
    times = times_of(listed)
    return bool(times) and times[0] > times[-1] and times == sorted(times, reverse=True)


def table(path: Path, *, part: str | None, sheet: str | None) -> Rows:
    """The rows of a file of results. Raises BadOption where a list or a sheet has to be named."""
    try:
        return read_rows(path, section=part, sheet=sheet, results=True)
    except BadDataset as error:
        (first, *_) = error.faults
        option = {"dataset.split": "part", "dataset.sheet": "sheet"}.get(first.place)
        if option is None:
            raise
        raise BadOption(f"--set {option}=NAME", f"{path}: {first.message}") from error


def who_answers(names: Sequence[str]) -> str:
    """What to say where no name tells who of these speakers answers."""
    shown = some_of([f"'{clean(name)}'" for name in names], most=6)
    return f"say which of the speakers answers: {shown}"


def _model_inside(row: Json) -> str | None:
    """The model that an object beside the messages names, such as `metadata`; None: none does."""
    for key in row:
        inside = row.at(key)
        if is_aside(f"{key}.model"):
            model = inside.text(*with_role(inside, "model"))
            if model is not None:
                return model

    return None


def _models(log: _Log) -> dict[str, str]:
    """Column of chats → the column with its model, by the ends of their names: `conversation_a` and
    `model_a`.
    """
    if len(log.columns) < 2:
        return {}
    return {name: f"model_{name.rpartition('_')[2]}" for name in log.columns}


def _records(log: _Log, findings: Findings) -> Iterator[tuple[str, Json]]:
    if log.rows is None:
        yield from records(log.path, findings)
        return

    for text in log.rows.notes:
        findings.note(text)

    for fault in log.rows.faults:
        findings.lose(fault.message, f"{log.path.name}, {fault.place}")

    models = _models(log)
    for number, row in log.rows.rows:
        used = {name.partition(".")[0] for name in log.columns}
        beside = without(row, used)
        for name in log.columns:
            around = cell(row, name.rpartition(".")[0])  # of a request: its model
            if not isinstance(around, Mapping):
                around = {}
            said = cell(row, name)
            before = row.get("prompt")
            if name in _PREFERENCES and isinstance(said, list) and isinstance(before, list):
                said = [*before, *(one for one in said if one not in before)]
            chat = {**around, **beside, "messages": said}
            if name in models:
                chat["model"] = row.get(models[name], name)
            yield f"{log.path.name}, {log.rows.unit} {number}", Json(chat)


def _trials(
    logs: Sequence[_Log],
    conditions: dict[str, ImportedCondition],
    first_row: dict[str, str],
    findings: Findings,
    agent: Sequence[str] | None,
) -> Iterator[ImportedTrial]:
    """What was said, turn by turn. Fills `conditions`, and `first_row` with the first answer."""
    heard = _Heard()
    for log in logs:
        continued = _continued(log)
        heard.unused |= dict.fromkeys(log.unread)
        names = None if agent is not None else _named_agents(log)
        agents = agent or (names.agents if names is not None else ())
        if names is not None:
            findings.note(f"'{names.key}' tells {len(agents)} agents apart: a condition each")
        for place, row in _records(log, findings):
            if place in continued:
                findings.left_out("chat that another record of it continues or repeats", place)
                continue
            said = _said(log, row, agent)
            heard.messages += len(said)
            heard.reversed += log.order is None and _is_newest_first(log, _listed(row))
            for part in _KEYS:
                heard.keys_of(part, row.list(part))

            why_not = _why_not(said, row, agent)
            if why_not is not None:
                findings.left_out(why_not, place)
                continue
            for other in heard.speakers(said):
                findings.left_out(f"message of '{other}', neither user nor agent", place)

            turns, unheard = turns_in(said if names is None else names.added_to(said))
            if names is not None:
                turns = _answered(turns, place, findings)
            for _ in range(unheard):
                findings.left_out("reply before the user says anything", place)

            if not turns:
                findings.left_out("chat in which the user says nothing", place)
                continue

            heard.chats += 1
            heard.used += sum(turn.asked + len(turn.answer) for turn in turns)
            script = "\n".join(turn.question for turn in turns)
            heard.last_words += without_last_words(turns)
            name, key = _name(log, row)
            name = name or sample_name(turns[0].question, digest([script]))
            by_model = ["model", *with_role(row, "model"), "agent_model"]
            used = {*_USED, *_models(log).values(), key, *by_model}
            if len(said) > len(_listed(row)):
                used |= {*REPLIES}
            heard.unused |= {one: None for one in row if one not in used and not is_empty(row[one])}
            for number, agent_name, turn in of_each(turns, agents):
                sample = name
                if len(turns) > 1:
                    sample = f"{name} turn {number}"

                model = turn.model or row.text(*by_model) or _model_inside(row)
                condition = agent_name or model or "not named"
                conditions.setdefault(condition, ImportedCondition(model=model))
                reply, aside = turn.reply(model)
                heard.joined += turn.joined
                heard.used -= aside
                for _ in range(aside):
                    findings.left_out("reply that another follows: the last counts", place)

                failure = None
                if reply is not None and is_error_of_service(reply.text):
                    failure = ImportedFailure(cls="agent", kind="error", message=reply.text)
                elif reply is not None and reply.text:
                    heard.exchange(turn.question, reply.text)
                    first_row.setdefault("question", understood.beginning(turn.question))
                    first_row.setdefault("answer", understood.beginning(reply.text))

                yield ImportedTrial(
                    sample=sample,
                    question=turn.question,
                    condition=condition,
                    reply=reply,
                    failure=failure,
                    started=utc(row.text("timestamp", *with_role(row, "started"))),
                    metadata={"conversation": name, "turn": number},
                    detail=row.without(*_KEYS),
                )

    for text in heard.notes():
        findings.note(text)


class _Heard(msgspec.Struct):
    """What is to be said of all chats of a run."""

    unused: dict[str, None] = {}  # columns
    names: dict[str, Counter[str]] = {}  # of each side's speakers, with their messages
    inside: dict[str, None] = {}  # paths of keys of messages
    exchanges: list[dict[str, str]] = []  # the first
    joined: int = 0  # messages, with the one before
    chats: int = 0
    last_words: int = 0  # of users, of these
    reversed: int = 0  # of these
    messages: int = 0
    used: int = 0  # messages
    answers: int = 0
    first_answer: str | None = None
    is_one_answer: bool = True  # so far

    def keys_of(self, path: str, listed: Sequence[JsonObject]) -> None:
        """Notes which keys of messages are not used."""
        for message in listed:
            keys = speaker_and_text(message) or any_speaker_and_text(message) or ()
            for name, value in message.items():
                known = name in keys or name in _OF_MESSAGES or "turn" in roles_of(name)
                if not (known or OF_TIME & {*words_of(name)} or is_empty(value)):
                    self.inside[f"{path}[].{name}"] = None

    def speakers(self, said: Iterable[Mapping[str, object]]) -> Iterator[str]:
        """Counts who speaks on each side; yields a name for each message of neither."""
        for message in said:
            side = str(message.get("role"))
            if side in ("user", "assistant"):
                self.names.setdefault(side, Counter())[str(message.get(NAME, side))] += 1
            elif side.strip().lower() not in ("", *NOT_SPEAKING):
                yield clean(side)

    def exchange(self, question: str, answer: str) -> None:
        self.answers += 1
        if self.first_answer is None:
            self.first_answer = answer
        self.is_one_answer = self.is_one_answer and answer == self.first_answer
        if len(self.exchanges) < LOOKED_AT:
            self.exchanges.append({"question": question, "answer": answer})

    def notes(self) -> Iterator[str]:
        """Who is taken for the assistant, what answers seem to be, and what is not used."""
        for side, does in (("assistant", "answers"), ("user", "asks")):
            names = self.names.get(side, Counter())
            if {*names} - {side}:
                yield f"who {does}: {shown_with_counts(dict(names.most_common()))}"

        roles = {"question": ["question"], "answer": ["answer"]}
        columns = columns_of(self.exchanges)
        yield from doubts(Seen(rows=self.exchanges, columns=columns, roles=roles))
        if self.is_one_answer and self.answers >= _FEWEST_ALIKE:
            text = excerpt(self.first_answer or "", 40)
            yield f"all {count(self.answers)} answers are the same text ('{text}'): a placeholder?"
        if self.chats:
            said = plural(self.chats, "conversation")
            if self.last_words:
                said += f"; {count(self.last_words)} end with last words of a user, no question"
                said += ": no failure"
            if self.chats > 1 and 2 * self.last_words > self.chats:
                said += "; if an agent has yet to answer these, see `karat check FILE`"
            yield said
        if self.used < self.messages:
            left = f"{count(self.messages - self.used)} not (left out, or before what is asked)"
            yield f"{plural(self.messages, 'message')}: {count(self.used)} used, {left}"
        if self.reversed:
            chats = plural(self.reversed, "chat")
            yield f"{chats} newest first, by the times of the messages: read from the end"
        if self.joined:
            joined = plural(self.joined, "message")
            yield f"{joined} joined with the one before, of the same speaker"
        for path in with_role(self.unused, "golden", "criterion")[:1]:
            yield (
                f"'{path}' says what is right: if the replies were written with the questions, an "
                "agent has yet to be asked, see `karat check FILE`"
            )

        unused = [*self.unused, *self.inside]
        if unused:
            yield f"not used: {some_of(unused, most=_MOST_NAMED)}"


class _Names(msgspec.Struct, frozen=True):
    """The key of messages that tells several assistants apart, and their names."""

    key: str
    agents: tuple[str, ...]

    def added_to(self, said: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """The messages, those of assistants with their names."""
        for message in said:
            if message.get("role") == "assistant":
                yield {**message, NAME: message[self.key]}
            else:
                yield message


def _named_agents(log: _Log) -> _Names | None:
    """What tells several assistants of one chat apart; None: one answers, or nothing tells."""
    names: dict[str, Counter[str]] = {}
    together: set[str] = set()  # keys of which one chat has several names
    answers = 0
    for _, row in _records(log, Findings()):
        inside: dict[str, set[str]] = {}
        for message in _said(log, row, None):
            if message.get("role") != "assistant":
                continue
            answers += 1
            for key, value in message.items():
                if words_of(key) in NAMES_OF_SPEAKERS and isinstance(value, str) and value:
                    names.setdefault(key, Counter())[value] += 1
                    inside.setdefault(key, set()).add(value)

        together |= {key for key, values in inside.items() if len(values) > 1}

    for key in together:
        if names[key].total() == answers and len(names[key]) <= _MOST_NAMED:
            return _Names(key, tuple(names[key]))

    return None


def _answered(turns: Sequence[Turn], place: str, findings: Findings) -> list[Turn]:
    """The turns that some agent answers; of the others nobody knows whom they ask."""
    found = []
    for turn in turns:
        if turn.answer:
            found.append(turn)
        else:
            findings.left_out("question that no agent answers", place)

    return found


def _said(log: _Log, row: Json, agent: Sequence[str] | None) -> list[JsonObject]:
    """The messages of a record, with their sides as roles where they are known."""
    listed = _listed(row)
    if _is_newest_first(log, listed):
        listed.reverse()
    # Where the `speaker`, not the `role`, may be the system, it answers, as in the
    # Schema-Guided Dialogue dataset
    first: object = next(iter(listed), None)
    of_system = isinstance(first, Mapping) and "role" not in first
    said = with_sides(
        [*map(_with_usual_keys, listed)],
        agent if log.rows is None else None,
        system_answers=of_system,
    )
    beside = reply_beside(row)
    if beside is not None and said and said[-1].get("role") == "user":
        said.append({"role": "assistant", "content": beside})
    return said


def _why_not(said: Sequence[JsonObject], row: Json, agent: Sequence[str] | None) -> str | None:
    """Why a chat is left out: nobody in it answers; None: it is read."""
    sides = {str(message.get("role")) for message in said}
    names = dict.fromkeys(str(m.get("role", "")) for m in map(_with_usual_keys, _listed(row)))
    people = []
    for name in names:
        if name.strip().lower() not in ("", *NOT_SPEAKING):
            people.append(name)

    somebody_answers = "assistant" in sides or sides <= {"user", *NOT_SPEAKING}
    if agent is not None and said and "assistant" not in sides:
        return f"chat without {some_of([repr(name) for name in agent])}"
    if not somebody_answers and len(people) > 1:
        return f"chat, --set agent=NAME: {who_answers(people)}"
    return None


def _listed(row: Json) -> list[Json]:
    """The messages of a record."""
    return next((row.list(key) for key in _KEYS if isinstance(row.get(key), list)), [])


_FEWEST_GROWING = 3  # records, each with the beginning of the next, are one chat


def _continued(log: _Log) -> set[str]:
    """The places of records that hold the beginning of a later record of the same chat, as logs do
    that save a chat after each turn: of the same name, or in succession, if three or more of one
    chat show that the log does so, in whatever order; then also those that say the same again.
    """
    chats: dict[str, list[_Saved]] = {}
    last = None
    runs: list[list[_Saved]] = [[]]  # of records that each begin the next, or continue it
    for place, row in _records(log, Findings()):
        begun: list[int] = []
        for message in _listed(row):
            begun.append(hash((*begun[-1:], msgspec.json.encode(message))))

        if not begun:
            continue
        saved = (place, begun)
        name, key = _name(log, row)
        if name is not None:
            chats.setdefault(name, []).append(saved)
        if key is not None and "conversation" not in roles_of(key):
            name = None  # each record has another
        if runs[-1]:
            before = runs[-1][-1][1]
        else:
            before = begun

        goes_on = begun[-1] in before or before[-1] in begun
        if name != last or not goes_on:
            runs.append([])
        runs[-1].append(saved)
        last = name

    found: set[str] = set()
    for group in chats.values():
        found |= _continued_in(reversed(group), alike=False)

    if any(len({len(begun) for _, begun in run}) >= _FEWEST_GROWING for run in runs):
        for run in runs:
            found |= _continued_in(sorted(run, key=lambda one: -len(one[1])), alike=True)

    return found


_Saved = tuple[str, list[int]]
"""Where a record is, and a hash of each beginning of what it holds."""


def _continued_in(saved: Iterable[_Saved], *, alike: bool) -> set[str]:
    """The places of records that one before them continues; `alike`: or repeats."""
    found = set()
    known: set[int] = set()
    for place, begun in saved:
        if begun[-1] in known:
            found.add(place)
        known.update(begun if alike else begun[:-1])

    return found


def _with_usual_keys(item: JsonObject) -> JsonObject:
    """The message with `role` and `content`, whatever names speaker and text have."""
    keys = speaker_and_text(item) or any_speaker_and_text(item)
    if keys is None:
        return item
    return {**item, "role": item[keys[0]], "content": item[keys[1]]}


def _name(log: _Log, row: Json) -> tuple[str | None, str | None]:
    """How a chat is called by its record, and the key that says so; None: it has no name.

    Where a column numbers repetitions, what is another in each row names no chat.
    """
    keys = [*_IDS, *with_role(row, "conversation", "id"), *log.ids]
    if with_role(row, "repetition"):
        keys = [key for key in keys if key not in log.ids]
    for key in keys:
        value = row.get(key)
        if isinstance(value, (str, int)) and value != "":
            return str(value), key

    return None, None
