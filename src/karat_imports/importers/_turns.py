"""The turns of a chat: what a user says, and all that follows until the next time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from karat.documents.chats import NAME, NO_TEXT, in_place_of_text
from karat.documents.names import word_set, words_of
from karat.foreign import Json
from karat.records import JsonObject, Reply
from karat_imports.importers._chats import Message, messages, tool_calls


class Answering(msgspec.Struct, frozen=True):
    """A message that follows a question."""

    message: Message
    mark: JsonObject  # what tells it from a reply that it replaces
    speaker: str  # as the file names it


class Turn(msgspec.Struct):
    """What the user said, and all that followed until the next time."""

    question: str
    asked_by: str = ""
    answer: list[Answering] = msgspec.field(default_factory=list)
    model: str | None = None  # that the messages of the answer name
    joined: int = 0  # messages that others follow, with these
    asked: int = 1  # messages of the user

    def reply(self, model: str | None) -> tuple[Reply | None, int]:
        """What the assistant said after the last call of a tool, None: nothing; and how many
        replies are left out: those before the call, or before one that is marked as a retry.
        """
        last: list[str] = []
        working: list[str] = []  # said with a call
        aside = 0
        mark: JsonObject = {}
        for part in self.answer:
            message = part.message
            is_work = len(message.calls) > len(message.results) or message.role == "tool"
            if is_work or (message.results and not message.calls):
                aside += len(last)
                last = []
            if message.role != "assistant" or not message.text:
                continue
            if is_work:
                working = [message.text]  # said with a call that is yet to return
                continue
            if last and part.mark != mark:
                aside += len(last)
                last = []
            mark = part.mark
            last.append(message.text)

        calls = tool_calls(part.message for part in self.answer)
        if not last and not working and not calls:
            return None, aside
        self.joined += max(0, len(last) - 1)
        return Reply(text="\n".join(last or working), tool_calls=calls, model=model), aside


def of_each(turns: Sequence[Turn], agents: Sequence[str]) -> Iterator[tuple[int, str | None, Turn]]:
    """The turns with their numbers, as each of several agents answers them, with the agent's name;
    what none answers, each was asked.
    """
    for number, turn in enumerate(turns, start=1):
        if len(agents) < 2:
            yield number, None, turn
            continue
        parts: dict[str, list[Answering]] = {}
        speaker = agents[0]
        for part in turn.answer:
            if part.message.role == "assistant":
                speaker = part.speaker
            parts.setdefault(speaker, []).append(part)

        joined = turn.joined
        for name in parts or agents:
            answer = parts.get(name, [])
            yield number, name, msgspec.structs.replace(turn, answer=answer, joined=joined)
            joined = 0


_RETRIES = word_set("retry retries regenerated regeneration attempt variant version revision")
"""Words of keys that tell a reply from the one that it replaces."""


def turns_in(said: Iterable[Mapping[str, object]]) -> tuple[list[Turn], int]:
    """The turns of a chat, and how many replies precede the first."""
    turns: list[Turn] = []
    unheard = 0
    for item in said:
        for message in messages([item]):
            text = message.text
            if message.role == "user" and not message.results:
                asked = text or in_place_of_text(item.get("content")) or NO_TEXT
                _ask(turns, asked, str(item.get(NAME, "user")))
            elif turns:
                mark = {}
                for key in item:
                    if not _RETRIES.isdisjoint(words_of(key)):
                        mark[key] = item[key]

                speaker = str(item.get(NAME, message.role))
                turns[-1].answer.append(Answering(message, mark, speaker))
                turns[-1].model = Json(item).text("model") or turns[-1].model
            elif message.role == "assistant" and text:
                unheard += 1

    return [turn for turn in turns if turn.answer or turn.question != NO_TEXT], unheard


def _ask(turns: list[Turn], text: str, speaker: str) -> None:
    """Adds a turn, or joins what the same user says in succession with the turn before."""
    last = None
    if turns:
        last = turns[-1]

    goes_on = last is not None and not last.answer and last.asked_by == speaker
    if last is None or not goes_on or NO_TEXT in (text, last.question):
        turns.append(Turn(text, speaker))
        return
    last.question += f"\n{text}"
    last.asked += 1
    last.joined += 1


_ASKS = frozenset("?？؟")


def without_last_words(turns: list[Turn]) -> bool:
    """Takes what a user says at the end of a chat that nobody answers and that asks nothing, if
    others are answered, such as thanks; whether there was any.
    """
    ends_so = any(turn.answer for turn in turns) and not turns[-1].answer
    ends_so = ends_so and _ASKS.isdisjoint(turns[-1].question)
    if ends_so:
        turns.pop()
    return ends_so
