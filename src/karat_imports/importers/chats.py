"""`karat import chats`: logs of chats, a conversation a line or an item.

Source of the formats: `messages` as the APIs of OpenAI and Anthropic take them; `conversation` with
`model`, as in the logs of Chatbot Arena (LMSYS-Chat-1M) and WildChat; `conversations` with `from`
and `value`, ShareGPT's form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat.documents.chats import with_sides
from karat.documents.columns import columns_of
from karat.documents.names import NOT_SPEAKING, any_speaker_and_text, side_of, speaker_and_text
from karat.documents.row_list import Rows
from karat.documents.rows import read_rows
from karat.errors import BadOption
from karat.formats import clean, some_of
from karat.importers import Findings, ImportedCondition, ImportedRun, ImportedTrial
from karat.layouts import laid_out, speakers
from karat.records import JsonObject, Reply
from karat_imports.importers._chats import Message, messages, tool_calls
from karat_imports.importers._reading import (
    Json,
    bad_file,
    beginning,
    digest,
    each_readable,
    sample_name,
    utc,
)
from karat_imports.importers._records import records
from karat_imports.importers._traces import named_after

__all__ = ["Chats"]

_KEYS = ("messages", "conversation", "conversations")
_CHAT = re.compile(
    rb'\s*+(?:\[\s*+)?\{\s*+(?:"[^"\\]*+"\s*+:\s*+(?:"(?:[^"\\]|\\.)*+"|[\w.+-]++)\s*+,\s*+)*+'
    rb'"(?:messages|conversations?)"\s*+:\s*+\[\s*+\{\s*+"(?:role|content|from|value)"'
)
_IDS = ("conversation_id", "conversation_hash", "id")
_REPLIES = ("response", "answer", "reply", "output", "completion")


class Chats:
    """Logs of chats, also as tables: models are conditions, each question of the user with the
    answer to it is a sample.
    """

    class Options(BaseModel):
        """Who answers."""

        model_config = ConfigDict(extra="forbid")

        agent: str | None = Field(
            default=None,
            description="the speaker whose turns are the answers, where no usual name tells",
        )

    def __init__(self, options: Options) -> None:
        self._agent = options.agent

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _CHAT.match(head.removeprefix(b"\xef\xbb\xbf")) is not None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run of all files."""
        alone = len(paths) == 1
        logs = each_readable(paths, lambda path: self._opened(path, alone=alone), findings)
        conditions: dict[str, ImportedCondition] = {}
        yield ImportedRun(
            name=named_after([log.path for log in logs]),
            tool="chats",
            trials=_trials(logs, conditions, findings, self._agent),
            conditions=conditions,
            sparse=True,
        )

    def _opened(self, path: Path, *, alone: bool) -> _Log:
        if path.suffix == ".parquet" or Chats.recognizes(path, beginning(path)):
            return _Log(path)
        read = read_rows(path, results=True)
        rows = laid_out(read, agent=self._agent, whole=True)
        chats = []
        for name, column in columns_of(row for _, row in rows.rows).items():
            if 2 * column.messages > column.filled and "." not in name:
                chats.append(name)

        if chats:
            alike = {name.rpartition("_")[0] for name in chats}  # `conversation_a`, and `…_b`
            return _Log(path, rows, tuple(chats if len(alike) == 1 else chats[:1]))

        names = speakers(read)
        if names and alone:
            raise BadOption("--set agent=NAME", f"{path}: {who_answers(names)}")
        if names:  # the other files can be read
            raise bad_file(path, f"--set agent=NAME: {who_answers(names)}")
        raise bad_file(path, "holds no chats: messages, or turns of a user and an assistant")


class _Log(msgspec.Struct, frozen=True):
    """A file, and its conversations if they have another form than the usual ones."""

    path: Path
    rows: Rows | None = None
    columns: tuple[str, ...] = ()  # of their messages; several: each a model's


def who_answers(names: Sequence[str]) -> str:
    """What to say where no name tells who of these speakers answers."""
    shown = some_of([f"'{clean(name)}'" for name in names], most=6)
    return f"say which of the speakers answers: {shown}"


def _records(log: _Log, findings: Findings) -> Iterator[tuple[str, Json]]:
    if log.rows is None:
        yield from records(log.path, findings)
        return

    for fault in log.rows.faults:
        findings.lose(fault.message, f"{log.path.name}, {fault.place}")
    # Column of chats → the column with its model, by the ends of their names: `conversation_a`
    # and `model_a`
    models: dict[str, str] = {}
    if len(log.columns) > 1:
        models = {name: f"model_{name.rpartition('_')[2]}" for name in log.columns}

    for number, row in log.rows.rows:
        beside = {key: value for key, value in row.items() if key not in log.columns}
        for name in log.columns:
            chat = {**beside, "messages": row.get(name)}
            if name in models:
                chat["model"] = row.get(models[name], name)
            yield f"{log.path.name}, {log.rows.unit} {number}", Json(chat)


def _trials(
    logs: Sequence[_Log],
    conditions: dict[str, ImportedCondition],
    findings: Findings,
    agent: str | None,
) -> Iterator[ImportedTrial]:
    for log in logs:
        for place, row in _records(log, findings):
            # The messages with the usual keys, whatever names speaker and text have
            listed = next((row.list(key) for key in _KEYS if isinstance(row.get(key), list)), [])
            written: list[JsonObject] = []
            for item in listed:
                keys = speaker_and_text(item) or any_speaker_and_text(item)
                usual = {} if keys is None else {"role": item[keys[0]], "content": item[keys[1]]}
                written.append({**item, **usual})

            # A chat that begins with the user, and whose `speaker`, not `role`, may name the
            # system: a dialogue, as in the Schema-Guided Dialogue dataset
            first = next(iter(written), {})
            of_system = "speaker" in first and side_of(str(first.get("role"))) == "user"
            said = with_sides(
                written, agent if log.rows is None else None, system_answers=of_system
            )
            beside = row.text(*_REPLIES)  # to the last message, where the log has it aside
            if beside is not None and said and said[-1].get("role") == "user":
                said.append({"role": "assistant", "content": beside})
            sides = {str(message.get("role")) for message in said}
            names = dict.fromkeys(str(message.get("role", "")) for message in written)
            people = [name for name in names if name.strip().lower() not in ("", *NOT_SPEAKING)]
            somebody_answers = "assistant" in sides or sides <= {"user", *NOT_SPEAKING}
            if not somebody_answers and len(people) > 1:
                findings.left_out(f"chat, --set agent=NAME: {who_answers(people)}", place)
                continue

            # What the user said each time, and all that followed until the next time
            turns: list[tuple[str, list[Message]]] = []
            for message in messages(said):
                if message.role == "user" and message.text:
                    turns.append((message.text, []))
                elif turns:
                    turns[-1][1].append(message)

            if not turns:
                findings.left_out("chat in which the user says nothing", place)
                continue

            model = row.text("model") or "not named"
            conditions.setdefault(model, ImportedCondition(model=row.text("model")))
            name = row.text(*_IDS)
            if name is None:
                name = sample_name(turns[0][0], digest([turns[0][0]]))
            for number, (question, answer) in enumerate(turns, start=1):
                sample = name
                if len(turns) > 1:
                    sample = f"{name} turn {number}"

                # What the assistant said last; None: nothing
                texts = [
                    message.text
                    for message in answer
                    if message.role == "assistant" and message.text
                ]
                calls = tool_calls(answer)
                if not texts and not calls:
                    reply = None
                else:
                    reply = Reply(
                        text="".join(texts[-1:]), tool_calls=calls, model=row.text("model")
                    )

                yield ImportedTrial(
                    sample=sample,
                    question=question,
                    condition=model,
                    reply=reply,
                    started=utc(row.text("timestamp")),
                    metadata={"conversation": name, "turn": number},
                    detail=row.without(*_KEYS),
                )
