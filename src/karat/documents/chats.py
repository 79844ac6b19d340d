"""Chat messages with the user and the assistant as their speakers, whatever they are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from karat.documents.names import NOT_SPEAKING, any_speaker_and_text, side_of
from karat.formats import clean, count, plural, some_of

Message = dict[str, Any]
NAME = "speaker"
"""The key of a message for the name of its speaker, where `role` is `user` or `assistant`."""
NAMES_OF_SPEAKERS = (
    *(("name",), ("sender", "name"), ("agent", "name"), ("agent",), ("speaker", "name")),
)
"""The words of names of columns that tell several speakers of one role apart."""
NO_TEXT = "[no text]"
"""In place of a user's message that is empty."""
BY_TURNS = ("speaker 1", "speaker 2")
"""Who speaks where nothing says so."""
_SYSTEMS = ("system", "sistema", "sistem")


def with_sides(
    messages: Sequence[Message],
    agent: Collection[str] | None = None,
    *,
    system_answers: bool = False,
) -> list[Message]:
    """The messages, with `role` set to user or assistant where the speaker is known to be one.

    `agent`: the speakers who are the assistant; all others are then users. `system_answers`: if no
    speaker's name is an assistant's, messages of the system are the assistant's, unless its
    only one is the first.
    """
    names = dict.fromkeys(map(_who, messages))
    people = []
    for name in names:
        if name and name not in NOT_SPEAKING:
            people.append(name)

    if agent is not None:
        answering = [name.strip().lower() for name in agent]
        sides = dict.fromkeys(people, "user") | dict.fromkeys(answering, "assistant")
    else:
        sides = sides_of(people)

    found = []
    unanswered = "assistant" not in sides.values()
    speaking = [_who(message) for message in messages]
    by_system = len([who for who in speaking if who in _SYSTEMS])
    for at, message in enumerate(messages):
        who = speaking[at]
        # the only message of a system, at the start, is the system prompt
        if system_answers and unanswered and who in _SYSTEMS and (at or by_system > 1):
            found.append(as_side(message, "assistant"))
        elif who in sides:
            found.append(as_side(message, sides[who]))
        else:
            found.append(message)

    return found


def as_side(message: Message, side: str) -> Message:
    """The message with its side as `role`, and the name that the file has for it beside."""
    named = dict(message)
    if _who(message) != side:
        named[NAME] = message["role"]
    named["role"] = side
    return named


def sides_of(people: Sequence[str]) -> dict[str, str]:
    """Speaker, in lower case → side.

    If there are two speakers and one is the assistant, the other is the user; if one is called
    user, the other is the assistant.
    """
    sides: dict[str, str] = {}
    for name in people:
        if (side := side_of(name)) is not None:
            sides[name] = side

    unknown = []
    for name in people:
        if name not in sides:
            unknown.append(name)

    if len(people) == 2 and len(unknown) == 1:
        (known,) = sides
        if sides[known] == "assistant":
            sides[unknown[0]] = "user"
        elif known in ("user", "human"):
            sides[unknown[0]] = "assistant"

    return sides


def has_both_sides(messages: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the user and the assistant speak."""
    return {"user", "assistant"} <= {message["role"] for message in messages}


def of_people(speakers: Mapping[str, int]) -> str:
    """What to say of messages in which no name tells the assistant. `speakers`: with the numbers of
    their messages.
    """
    held = plural(sum(speakers.values()), "message")
    if {*speakers} <= {*BY_TURNS}:
        return (
            f"holds {held}, and nothing says who speaks; if two speak by turns, who answers: "
            f"`karat import chats FILE --set 'agent={BY_TURNS[1]}'` (the first is {BY_TURNS[0]})"
        )

    most_first = sorted(speakers.items(), key=lambda item: -item[1])
    named = []
    for name, number in most_first:
        named.append(f"'{clean(name)}' ({count(number)})")

    return (
        f"holds {held} of {count(len(named))} people, none of them an assistant by name: "
        f"{some_of(named, most=6)}; only if one is the agent, say so: "
        "`karat import chats FILE --set agent=NAME`, or `--set 'agent=[NAME, NAME]'`"
    )


def of_users(where: str, paths: Sequence[str] = ()) -> str:
    """The sentence about users' turns that have no replies. `paths`: of their texts in a row."""
    at_once = ""
    if paths:
        if len(paths) > 1:
            listed = f"[{', '.join(paths)}]"
        else:
            listed = paths[0]

        at_once = (
            f"; `roles: {{question: {listed}}}` asks those of a row at once, in one message (see "
            "`karat check FILE`)"
        )

    return (
        f"holds what users say {where}, but no replies: turns that an agent has yet to be asked, "
        f"one after the other in a session of its own, where karat asks single questions{at_once}; "
        "`karat import chats` reads the finished chats"
    )


def in_place_of_text(content: object) -> str | None:
    """What stands for a message of parts without a text, such as `[image]`; None: it has no parts.

    >>> in_place_of_text([{"type": "image_url"}])
    '[image]'
    """
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping):
            kind = part.get("content_type") or part.get("type") or "attachment"
            return f"[{str(kind).partition('_')[0]}]"

    return None


def are_parts(value: object) -> bool:
    """Whether a list holds the parts of one message: texts, and objects of a type or with a text.

    >>> are_parts(["Hi ", {"type": "bold", "text": "you"}]), are_parts([{"role": "user"}])
    (True, False)
    """
    if not isinstance(value, list) or not value:
        return False
    for part in value:
        is_object = isinstance(part, Mapping) and bool({"type", "text"} & part.keys())
        if not isinstance(part, str) and (not is_object or any_speaker_and_text(part)):
            return False

    return True


def _who(message: Message) -> str:
    return str(message.get("role", "")).strip().lower()
