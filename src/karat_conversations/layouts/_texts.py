"""Conversations in a text: each message begins with its speaker, as people or models write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from karat.documents.chats import Message, has_both_sides, sides_of
from karat.documents.names import side_of

ANYONE = ""  # in place of the assistant's name: all speakers keep their names
MOST_SPEAKERS = 6  # of whom a person can tell the assistant
_IN_LINES = re.compile(r"(?<![\w'-])([A-Z][\w-]{1,20}):(?= )")
_AT = r"[ \t]*(?:\(?\[?\d[\d:.,/T+ -]{3,30}(?:[AP]M|Z)?\]?\)?[ \t]*[-–]?[ \t]*)?"  # a time
_MARKED = re.compile(
    rf"^{_AT}(?:<(\w{{1,20}})>|\[(\w[\w ]{{0,20}})\]:?(?!\()"
    rf"|\*{{0,2}}(\w[\w ]{{0,30}}?)\*{{0,2}}(?: ?[(\[][^()\[\]\n]{{1,40}}[)\]])?[:：]\*{{0,2}})",
    re.MULTILINE,
)
_TIMED = re.compile(r"[ \t]*[(\[]?\d")  # a mark that begins with a time
_CLOSED = re.compile(r"(?:\[/(\w{1,20})\]|</(\w{1,20})>)[ \t\r]*$", re.MULTILINE)
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


def marked(text: str, agent: str | None) -> list[Message]:
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
            if agent == ANYONE:
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
    return found if agent == ANYONE or has_both_sides(found) else []


def _sides_of_marks(
    said: Sequence[str], mark: re.Pattern[str], agent: str | None, *, timed: bool
) -> dict[str, str]:
    """What marks a message in a text → whose it is. Names that say nothing count if they are all
    that is marked, and begin lines often enough or after a time each.
    """
    names = [*dict.fromkeys(said)]
    often = 1 < len(names) <= 3 < len(said)
    in_turn = mark is _MARKED and (often or (timed and len(names) <= MOST_SPEAKERS))
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
