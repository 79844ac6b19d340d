"""Conversations in a cell: lists of messages or pairs, ChatGPT's tree, or a text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from karat.documents.cells import parsed
from karat.documents.chats import BY_TURNS, Message, has_both_sides, in_place_of_text, with_sides
from karat.documents.columns import are_messages, are_texts, cell, columns_of
from karat.documents.names import (
    SPEAKING,
    Role,
    any_speaker_and_text,
    is_gold,
    last_part,
    meanings,
    roles_of,
    side_of,
    speaker_and_text,
    with_role,
    word_set,
    words_of,
)
from karat_conversations.layouts._texts import ANYONE, FEW_SPEAKERS, marked

_BESIDE = ("tool_calls", "tool_call_id", "name", "model")  # keys of messages, kept as they are
SPEAKERS = word_set("role speaker speakers sender author from actor participant direction who nick")
"""Words of the names of who speaks."""
SAYS = word_set("content text message utterance utterances body value talk line speech")
"""Words of the names of what is said."""
_SAID = SAYS | word_set("msg question query input prompt response reply answer output")
ASKED: Sequence[Role] = ("question",)
ANSWERED: Sequence[Role] = ("answer", "golden")
_SHORTEST = 3  # messages of a chat in which each person may speak once
_TEXTS = ("text", "content", "utterance", "transcript", "message")  # keys of a speaker's object
_SPOKEN = word_set("exchanges speeches dialog dialogue dialogs dialogues utterances")
_TURNS = ("turns", "messages", "speeches")  # of plain texts, they may all be the user's


def are_of_speakers(value: Sequence[object]) -> bool:
    """Whether a list holds what people say in turn, whatever they are called: a few, or many of
    whom each says something again and again.
    """
    keys = [any_speaker_and_text(part) for part in value]
    found = set()
    for part, names in zip(value, keys, strict=True):
        if names is None or not isinstance(part, Mapping):
            return False
        found.add(part[names[0]])

    if len(found) > FEW_SPEAKERS:
        return 5 * len(found) <= 3 * len(value)
    return len(found) > 1 and (len(found) < len(value) or len(value) <= _SHORTEST)


def messages_under(
    value: object, path: str, agent: Sequence[str] | None, whole: bool
) -> list[Message]:
    """The messages in a cell, also if only the column's name says that it is a conversation."""
    said = messages_in(value, agent=agent)
    if isinstance(value, str):
        listed = parsed(value)
    else:
        listed = value

    if said or not isinstance(listed, list) or not listed:
        return said
    if all(isinstance(part, dict) and {*part} >= {"text", "metadata"} for part in listed):
        listed = [part["text"] for part in listed]  # MultiWOZ: a text a turn
    elif not is_of_turns(path) and not (agent and {*agent} <= {*BY_TURNS}):
        return []

    if all(isinstance(part, dict) and [*part] == ["content"] for part in listed):
        return [{"role": "user", "content": part["content"]} for part in listed]
    of_users = bool({*_TURNS} & {*words_of(path)}) and not agent
    if are_texts(listed) and not of_users:
        names = [BY_TURNS[at % 2] for at in range(len(listed))]
        # Two people by turns: only the user can tell who of them answers
        if agent is None:
            return []
        pairs = zip(names, listed, strict=True)
        said = [{"role": name, "content": text} for name, text in pairs]
        if agent == ANYONE:
            return said
        return with_sides(said, agent, system_answers=True)

    found = []
    asked_in_words = any(
        isinstance(part, list) and len(part) == 2 and " " in str(part[0]).strip() for part in listed
    )
    for part in listed if whole else ():
        if isinstance(part, list) and len(part) == 2 and are_texts(part) and asked_in_words:
            # What the user and the assistant say: words, and no names
            asked, said = part
            turn = [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
        else:
            turn = pair(part, ASKED, ANSWERED)

        expected = []
        for key in part if isinstance(part, dict) else ():
            if is_gold(words_of(key)):
                expected.append(part[key])

        # the reply may be what is expected of an agent
        if not turn or turn[-1]["content"] in expected:
            return []
        if isinstance(part, dict) and with_role(part, "golden"):
            return []
        found += turn

    return found


def messages_in(value: object, *, agent: Sequence[str] | None = None) -> list[Message]:
    """The chat messages that a cell holds, in one of the shapes; none: it holds no conversation.

    `agent`: who is the assistant.
    """
    if isinstance(value, str):
        unpacked = parsed(value)
        if unpacked is value:
            return marked(value, agent)
        value = unpacked

    if isinstance(value, Mapping):
        value = of_tree(value)
    if not isinstance(value, list) or not value:
        return []
    if are_messages(value):
        return written(value, agent)
    if _are_named_texts(value):
        value = [{"speaker": who, "text": text} for who, text in value]
    if are_of_speakers(value):
        said = written(value, agent)
        if agent is not None or has_both_sides(said):
            return said
        return []

    read: list[Message] = []
    for part in value:
        said = pair(part, (), ())
        if not said:
            return []
        read += said

    if has_both_sides(read):
        return read
    return []


def _are_named_texts(value: Sequence[object]) -> bool:
    """Whether a list holds pairs of one of a few who speak again, whatever they are called, and
    what they say.
    """
    names = []
    worded = 0
    for part in value:
        if not isinstance(part, list) or len(part) != 2:
            return False
        who, text = part
        if not isinstance(who, str) or not isinstance(text, str):
            return False
        names.append(who)
        worded += " " in text.strip() or not text.isascii()

    few = 1 < len({*names}) <= FEW_SPEAKERS and 2 * len({*names}) <= len(names)
    unknown = all(name.strip().lower() not in SPEAKING for name in names)
    return few and unknown and 2 * worded > len(names)


def written(value: Sequence[Any], agent: Sequence[str] | None = None) -> list[Message]:
    """Messages with the usual keys, their speakers as the user and the assistant."""
    found: list[Message] = []
    for message in value:
        keys = speaker_and_text(message) or any_speaker_and_text(message) or ("role", "content")
        kept = {key: message[key] for key in _BESIDE if key in message}
        found.append({"role": message[keys[0]], "content": message[keys[1]], **kept})

    if agent == ANYONE:
        return found
    return with_sides(found, agent, system_answers=True)


def pair(part: object, asking: Sequence[Role], answering: Sequence[Role]) -> list[Message]:
    """A turn that is a list of speaker and text, or an object with a text of each side: under the
    speakers' names, or those of such roles.
    """
    if isinstance(part, list) and len(part) == 2 and are_texts(part):
        who, text = part
        known = who.strip().lower() in SPEAKING
        if known:
            return [{"role": side_of(who) or who, "content": text}]
        return []

    if not isinstance(part, Mapping):
        return []
    wrapped = []
    for value in part.values():
        if speaker_and_text(value) is not None:
            wrapped.append(value)

    if len(wrapped) == 1:
        return written(wrapped)
    by_key = _of_objects(part)
    if by_key:
        return by_key
    if len(part) == 1:
        ((name, text),) = part.items()
        who = side_of_column(name)
        if who and isinstance(text, str):
            return [{"role": who, "content": text}]
        return []

    found: list[Message] = []
    columns = [*columns_of([part])]
    sides = (("user", asking), ("assistant", answering))
    for side, roles in sides:
        texts = [cell(part, path) for path in of_side(columns, side, roles)]
        said = next((text for text in texts if isinstance(text, str)), None)
        if said is None:
            return []
        found.append({"role": side, "content": said})

    return found


def _of_objects(part: Mapping[str, Any]) -> list[Message]:
    """A turn that has an object with a text for each speaker, in its order: `{"user_utterance":
    {"text": …}}`; where the user has one, the system is the assistant.
    """
    found: list[Message] = []
    for key, value in part.items():
        if isinstance(value, Mapping):
            texts = [value[name] for name in _TEXTS if name in value]
        else:
            texts = []

        words = words_of(key)
        of_system = words[:1] == ("system",) and words[-1] in _SAID
        who = side_of_column(key) or ("assistant" if of_system else None)
        if who is not None and texts and isinstance(texts[0], str):
            found.append({"role": who, "content": texts[0]})

    return found


def of_side(columns: Iterable[str], side: str, roles: Sequence[Role]) -> list[str]:
    """The columns whose names are those of a speaker, or of what this side says."""
    spoken = []
    said = []
    for path in columns:
        name = path.rpartition(".")[2]
        who = side_of_column(name) or ("assistant" if name.lower() == "system" else None)
        found = []
        for meaning in meanings(path)[:1]:
            if meaning.role in roles:
                found.append(meaning.role)

        if who == side:
            spoken.append(path)
        elif who is None and found:
            said.append((roles.index(found[0]), path))

    return [*spoken, *(path for _, path in sorted(said))]


def side_of_column(name: str) -> str | None:
    """Whose words a column or a key holds by its name: `user`, `assistant_text`, `bot_response`."""
    words = words_of(name)
    if len(words) == 2 and (words[1] in _SAID or words[1].removesuffix("s") in _SAID):
        return side_of(words[0])
    if len(words) == 2 and words[0] in _SAID and words[1] != "model":  # `respuesta_bot`
        return side_of(words[1])
    return side_of(name)


def last_branch(value: Any, last: object) -> Any:
    """The nodes of ChatGPT's tree that lead to the `last` one and on to its last children, in their
    order; without one, to the last that no other follows. Anything else as it is.
    """
    if not isinstance(value, Mapping):
        return value
    if not all(isinstance(node, Mapping) and "parent" in node for node in value.values()):
        return value
    if not isinstance(last, str) or last not in value:
        ends = []
        for name, node in value.items():
            if not node.get("children"):
                ends.append(name)

        last = next(reversed(ends), None)

    below: set[object] = set()
    while isinstance(last, str) and last in value and last not in below:
        below.add(last)
        children = value[last].get("children")
        if not isinstance(children, list) or not children:
            break
        last = children[-1]

    branch: dict[object, Any] = {}
    while isinstance(last, str) and last in value and last not in branch:
        branch[last] = value[last]
        last = value[last]["parent"]

    return dict(reversed(branch.items()))


def of_tree(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
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
        who = cell(message, "author.role")
        said = cell(message, "content.parts")
        hidden = cell(message, "metadata.is_visually_hidden_from_conversation")
        if not isinstance(who, str) or not isinstance(said, list) or hidden:
            continue
        text = "\n".join(part for part in said if isinstance(part, str))
        shown: Message = {"role": who, "content": text}
        if not text.strip():
            shown["content"] = in_place_of_text(said) or ""
        model = cell(message, "metadata.model_slug")
        recipient = message.get("recipient")
        if isinstance(model, str):
            shown["model"] = model
        if who == "assistant" and recipient not in (None, "all"):
            # What a tool is asked is no reply
            call = {"name": str(recipient), "arguments": text}
            shown |= {"content": "", "tool_calls": [call]}

        if shown["content"] or "tool_calls" in shown:
            found.append(shown)

    return found


def ends_in(path: str, words: Collection[str]) -> bool:
    """Whether the last word of a name is one of these."""
    return any(word in words for word in words_of(last_part(path))[-1:])


def is_of_turns(path: str) -> bool:
    """Whether a list under this name holds the turns of one conversation."""
    return is_spoken(path) or bool({*words_of(path)} & {"steps", "history", "rounds"})


def is_spoken(path: str) -> bool:
    """Whether a list under this name holds what people say."""
    return "messages" in roles_of(path) or bool({*words_of(path)} & _SPOKEN)
