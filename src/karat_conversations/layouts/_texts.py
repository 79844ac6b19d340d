"""Conversations in a text: each message begins with its speaker, as people or models write."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from karat.documents.chats import NAME, Message, as_side, has_both_sides, sides_of, with_sides
from karat.documents.names import roles_of, side_of

ANYONE: Sequence[str] = ()  # in place of the assistant's name: all speakers keep their names
FEW_SPEAKERS = 6  # among more, nobody can tell which one is the assistant
_IN_LINES = re.compile(r"(?<![\w'-])([A-Z][\w-]{1,20}):(?= )")
_AT = r"[ \t]*(?:\(?\[?\d[\d:.,/T+ -]{3,30}(?:[AP]M|Z)?\]?\)?[ \t]*[-–]?[ \t]*)?"  # a time
_MARKED = re.compile(
    rf"^{_AT}(?:<[@+~&% ]?(\w[\w|^`\[\]{{}}-]{{0,30}})>|\[(\w[\w ]{{0,20}})\]:?(?!\()"
    rf"|\*{{0,2}}(\w(?:[\w ]|[.-](?=\w)){{0,30}}?)\*{{0,2}}"
    rf"(?: ?[(\[][^()\[\]\n]{{1,40}}[)\]])?[:：]\*{{0,2}})",
    re.MULTILINE,
)
_STAMPED = re.compile(
    r"^\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\.?,?[ T]+\d{1,2}[:.]\d\d(?:[:.]\d\d)?"
    r"(?:\s?[ap]\.?\s?m\.?)?"
    r"(?:\]|\s[-–])[ ~]*(?:(\S[^:\n]{0,50}?):(?:\s|$))?",
    re.MULTILINE | re.IGNORECASE,
)
"""A line of an exported group: its time and, if somebody speaks in it, who."""
_DIRECTIONS = re.compile(
    "[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)  # marks of the writing's direction
_HEADER = re.compile(
    r"^[ \t]*+[-=#*_~\[(<|]*+[ \t]*+(?P<kind>chat|conversation|conv|dialog|dialogue|session|call"
    r"|transcript)[ _]?(?:id|no|nr|number)?\.?[ \t]*+[:#=.-]?[ \t]*+"
    r"(?P<name>(?=[\w-]{0,40}\d)[\w-]{1,40})[ \t]*+[-=#*_~\])>|:]*+[ \t\r]*+$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that names the conversation below it: `Chat ID: 12`, `=== Session 3 ===`."""
_HEADING = re.compile(r"(#{1,6})[ \t]")
"""How a heading in Markdown begins."""
_FENCED = re.compile(
    r"^[ \t]*(`{3,9}|~{3,9}).*\n(?:(?![ \t]*\1).*\n)*[ \t]*\1[ \t\r]*$",
    re.MULTILINE,
)
"""Code in Markdown, in which lines are no speakers' unless the whole chat is in it."""
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n[ \t\r\n]*$")
_ASKING_MARKS = "q question frage pregunta pergunta вопрос 问 問 질문 u h п в"
_ANSWERING_MARKS = "a answer antwort respuesta resposta ответ 答 답변 b б о r"
_LETTERS = {
    **dict.fromkeys(_ASKING_MARKS.split(), "user"),
    **dict.fromkeys(_ANSWERING_MARKS.split(), "assistant"),
}
"""Marks that are the two sides' if they are the only ones."""
_TIME_INSIDE = re.compile(r"(?<=\S)[ \t]+(?=[\[(]\d{1,2}:\d\d(?::\d\d)?[\])][ \t]+\w[\w ]{0,30}:)")
"""Where a line goes on with the time of the next message and its speaker."""
_CUE = re.compile(r"^(?:WEBVTT.*|NOTE.*|\d+|[\d:.,]+ --> .*)(?:\n|\Z)", re.MULTILINE)
_VOICE = re.compile(r"^<v(?:\.\S+)? ([^>\n]{1,40})>(.*?)(?:</v>)?$", re.MULTILINE)
"""Who speaks in a subtitle."""
_NAMED_WITH_TIME = re.compile(
    r"^(?:\*\*)?([^\W\d_][\w .'-]{0,40}?)(?:\*\*)?[ \t]+"
    r"[(\[]?\d{1,2}:\d\d(?::\d\d)?[)\]]?[ \t\r]*$",
    re.MULTILINE,
)
"""A speaker and a time on a line of their own, as programs write down what they hear."""
_TABBED = re.compile(
    r"^\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]?\t([^\t\n]{1,40})\t", re.MULTILINE | re.IGNORECASE
)
"""A time, who speaks and what, with tabs between them."""
_LEVEL = (
    r"\[?\b(?:(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL)\b|(?i:inf|err|wrn|dbg|stdout|stderr)(?=\]))"
    r"\]?[ \t]*[|:-]?[ \t]*"
)
_LOGGED = re.compile(
    rf"^[ \t]*(?P<before>{_LEVEL})?\[?\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?"
    rf"(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]*[|:-]?[ \t]*(?P<after>{_LEVEL})?"
    r"(?:[\[(]?(?P<who>\w[\w .-]{0,30}?)[\])]?[ \t]*\|)?",
    re.MULTILINE,
)
"""The beginning of a line of a log, and who speaks if a bar follows."""
_SPOKEN = re.compile(
    r"\W*(\w[\w -]{0,30}?) (?:said|says|asks?|asked|answers|answered|repl(?:y|ies|ied)|responds|"
    r"responded|response): *(\S.*)",
    re.DOTALL | re.IGNORECASE,
)
"""What a line of a log says of one who speaks."""
_FEWEST_AFTER_HEAD = 5  # messages, with the head
_AGAIN = 3  # times that a speaker speaks, where others may be no speakers
_MOST = 0.8  # of the marks in a text are then those of speakers
_HEAD = 0.25  # of a text may be the head before its first speaker
_TIMED = re.compile(r"[ \t]*[(\[]?\d")  # a mark that begins with a time
_CLOSED = re.compile(r"(?:\[/(\w{1,20})\]|</(\w{1,20})>)[ \t\r]*$", re.MULTILINE)
_TEMPLATE = re.compile(
    r"<\|(?:im_start\|>|start_header_id\|>)?(\w+)(?:\|>|<\|end_header_id\|>)?"
    r"|<start_of_turn>(\w+)|#{3,4} (\w+):|^#{1,4} (\w+):?[ \t]*$|\[(/?INST)\]",
    re.MULTILINE,
)
_ALONE = re.compile(r"^\*{0,2}([^\W\d_][\w ]{1,20}?)(?: said)?:?\*{0,2}[ \t\r]*$", re.MULTILINE)
"""A speaker on a line of its own, as chats are copied from a page."""
_IN_TEMPLATES = {
    "you": "user",
    "instruction": "user",
    "inst": "user",
    "response": "assistant",
    "/inst": "assistant",
}
_TEMPLATE_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|end|endoftext|begin_of_text)\|>|</?s>|<end_of_turn>|<bos>"
)


def under_headers(text: str) -> list[tuple[str, str]]:
    """The names of conversations and what is below each, where lines name several, all in one way;
    none: no such lines part the text, or something else precedes them.
    """
    headers = [*_HEADER.finditer(text)]
    names = [header["name"] for header in headers]
    kinds = {header["kind"].lower() for header in headers}
    if len({*names}) < 2 or len({*names}) < len(names) or len(kinds) > 1:
        return []
    if any(mark in text[: headers[0].start()] for mark in ":："):
        return []
    ends = [header.start() for header in headers[1:]]
    found = []
    for header, end in zip(headers, [*ends, len(text)], strict=True):
        found.append((header["name"], text[header.end() : end]))

    return found


def said_in_log(text: str) -> str:
    """What people say in a log, a line each after its speaker; "": it is none, or less than two
    speak in it.
    """
    begins = [*_LOGGED.finditer(text)]
    if not begins or begins[0].start() or not any(begins[0].groups()):
        return ""
    ends = [line.start() for line in begins[1:]]
    spoken = []
    for line, end in zip(begins, [*ends, len(text)], strict=True):
        said = _SPOKEN.fullmatch(text[line.end() : end].strip())
        if said is not None:
            spoken.append((said[1], said[2]))

    if len({who for who, _ in spoken}) < 2:
        return ""
    return "\n".join(f"{who}: {what}" for who, what in spoken)


def marked(text: str, agent: Sequence[str] | None) -> list[Message]:
    """The messages of a text in which each begins with its speaker: `Agent: …`, `<user> …`, or as
    models are prompted: `### Instruction:`, `<|im_start|>user`, `[INST]`.
    """
    return [message for chat in conversations(text, agent) for message in chat]


def conversations(text: str, agent: Sequence[str] | None) -> list[list[Message]]:
    """The same, by conversation: an empty line parts them where each begins with the same speaker
    and one has several turns.
    """
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]  # quoted twice
    if "\n" not in text:
        text = text.replace("\\n", "\n")  # as some tables write the ends of lines
    if " --> " in text:
        text = _VOICE.sub(r"\1: \2", _CUE.sub("", text.replace("\r", "")))
    text = _TIME_INSIDE.sub("\n", text)
    exported = _exported(text)
    if exported:
        return _with_roles([exported], agent)
    text = said_in_log(text) or text
    logged = _LOGGED.match(text)
    if logged is not None and any(logged.groups()):
        text = _LOGGED.sub(lambda line: f"{line['who'] or ''}:".removeprefix(":"), text)
    text = _TABBED.sub(r"\1: ", text)
    if len(_NAMED_WITH_TIME.findall(text)) > 1:
        text = _NAMED_WITH_TIME.sub(r"\1:", text)
    text = _CLOSED.sub(lambda end: "" if side_of(end[1] or end[2]) else end[0], text)
    found = _parted(text, _MARKED, agent)
    if found and found[0][0]["role"] == "system":
        head = len(found[0][0]["content"])
        if head > _HEAD * len(text) or len(found[0]) < _FEWEST_AFTER_HEAD:
            return []  # text that quotes speakers

    if agent is not None:
        return found
    if not found and (first := _IN_LINES.match(text)) is not None and side_of(first[1]):
        found = _parted(text, _IN_LINES, agent)
    found = found or _parted(_TEMPLATE_ENDS.sub("", text), _TEMPLATE, agent)
    return found or _parted(text, _ALONE, agent)


def _exported(text: str) -> list[Message]:
    """The messages of a group as WhatsApp exports it, with their speakers' names; what the program
    itself says is left out. None: it is another text.
    """
    text = _DIRECTIONS.sub("", text).lstrip("\ufeff\r\n ")
    if _STAMPED.match(text) is None:
        return []
    lines = [*_STAMPED.finditer(text)]
    ends = [line.start() for line in lines[1:]]
    found = []
    for line, end in zip(lines, [*ends, len(text)], strict=True):
        said = text[line.end() : end].strip()
        if line[1] is not None and said:
            found.append({"role": line[1].strip(), "content": said})

    angles = sum(message["role"].startswith("<") for message in found)
    if len({message["role"] for message in found}) < 2 or 2 * angles > len(found):
        return []
    return found


def _with_roles(
    chats: Sequence[Sequence[Message]], agent: Sequence[str] | None
) -> list[list[Message]]:
    """Chats of people with their sides as roles; none: by name none is an assistant."""
    if agent == ANYONE:
        return [[*chat] for chat in chats]
    found = [_joined(with_sides(chat, agent)) for chat in chats]
    if agent is None and not has_both_sides(message for chat in found for message in chat):
        return []
    return found


def _joined(messages: Sequence[Message]) -> list[Message]:
    """What users or one agent say in succession as one message."""
    joined: list[Message] = []
    for message in messages:
        if joined:
            last = joined[-1]
        else:
            last = {}

        same_agent = last.get(NAME) == message.get(NAME)
        if last.get("role") == message["role"] and (same_agent or message["role"] == "user"):
            joined[-1] = {**message, "content": f"{joined[-1]['content']}\n{message['content']}"}
        else:
            joined.append(message)

    return joined


def _parted(text: str, mark: re.Pattern[str], agent: Sequence[str] | None) -> list[list[Message]]:
    """The text between such marks, as messages by conversation; none: the marks are not of both
    sides.
    """
    marks = [
        (match, next(name for name in match.groups() if name is not None))
        for match in mark.finditer(text)
    ]
    marks = [(match, said) for match, said in marks if not said.lower().startswith("http")]
    borders = [border for fence in _FENCED.finditer(text) for border in fence.span()]
    outside = [mark for mark in marks if bisect_right(borders, mark[0].start()) % 2 == 0]
    if outside or not any(side_of(said) for _, said in marks):
        marks = outside
    timed = bool(marks)
    in_angles = bool(marks) and all("<" in match[0] for match, _ in marks)
    for match, _ in marks:
        said_after = text[match.end() : match.end() + 1].isspace()  # and no time goes on
        timed = timed and said_after and _TIMED.match(match[0]) is not None

    said_by = [said.lower() for _, said in marks]
    sides = _sides_of_marks(said_by, mark, agent, timed=timed, in_angles=in_angles)
    begins = 0
    role = "system"
    name = role
    found: list[Message] = []
    starts = []  # of messages after an empty line
    headed: dict[int, str] = {}  # of those below a heading like the first: what is above it
    first_level = ""
    for match, said in marks:
        if said.lower() in sides:
            content = text[begins : match.start()].strip()
            above, level = _above_heading(text[begins : match.start()])
            if not found:  # what is before the first message
                content, first_level = above, level
            found.append(as_side({"role": name, "content": content}, role))
            begins = match.end()
            name = said
            role = sides[said.lower()]
            if agent == ANYONE:
                role = name
            if _PARAGRAPH.search(text, max(0, match.start() - 20), match.start()):
                starts.append(len(found))
            if level and level == first_level and len(found) > 1:
                headed[len(found)] = above

    found.append(as_side({"role": name, "content": text[begins:].strip()}, role))
    if found[0]["content"]:
        first = 0
    else:
        first = 1

    bounds = _bounds(found, [1, *headed])
    if bounds:
        for start, above in headed.items():
            found[start - 1] = {**found[start - 1], "content": above}
        bounds[0] = first
    else:
        bounds = _bounds(found, [first, *starts]) or [0, len(found)]
    chats = []
    for start, end in pairwise(bounds):
        filled = [message for message in found[start:end] if message["content"]]
        if agent != ANYONE:
            filled = _joined(filled)
        chats.append(filled)

    if agent is None and not has_both_sides(message for chat in chats for message in chat):
        return []
    made = []
    for chat in chats:
        if len({message["role"] for message in found}) > 1 and chat:
            made.append(chat)

    return made


def _above_heading(said: str) -> tuple[str, str]:
    """What is above the headings in Markdown at the end of a text, and the marks of the last one;
    the whole text and none: it ends otherwise.
    """
    lines = said.split("\n")
    level = ""
    while lines and not said[-1:].strip():
        line = lines[-1].strip()
        heading = _HEADING.match(line)
        if heading is not None:
            level = level or heading[1]
        elif line:
            break
        lines.pop()

    return "\n".join(lines).strip(), level


def _bounds(found: Sequence[Message], starts: Sequence[int]) -> list[int]:
    """Where conversations that begin at such messages begin and end; none: they are too short, or
    begin with other speakers.
    """
    if len(starts) < 2:
        return []
    bounds = [*starts, len(found)]
    sizes = [end - start for start, end in pairwise(bounds)]
    alike = len({found[start]["role"] for start in starts}) == 1
    if not alike or min(sizes) < 2 or max(sizes) < 4:
        return []
    return bounds


def _sides_of_marks(
    said: Sequence[str],
    mark: re.Pattern[str],
    agent: Sequence[str] | None,
    *,
    timed: bool,
    in_angles: bool,
) -> dict[str, str]:
    """What marks a message in a text → whose it is. Names that say nothing count if they are all
    that is marked, and begin lines often enough or after a time each.
    """
    names = [*dict.fromkeys(said)]
    by_letter = {name: _LETTERS.get(name, "") for name in names}
    if agent is None and {*by_letter.values()} == {"user", "assistant"}:
        return by_letter
    often = 1 < len(names) <= 3 < len(said)
    in_turn = mark is _MARKED and (often or (timed and (in_angles or len(names) <= FEW_SPEAKERS)))
    if mark is _MARKED and not in_turn:
        # names that are said once are words with a colon
        times = Counter(said)
        again = []
        for name in names:
            if times[name] >= _AGAIN:
                again.append(name)

        marked_again = sum(times[name] for name in again)
        in_turn = 1 < len(again) <= FEW_SPEAKERS and marked_again >= _MOST * len(said)
        if in_turn:
            names = again

    if mark is _MARKED and not in_turn and len(names) > FEW_SPEAKERS:
        # a play or a panel: many speak again, and their names are not those of fields of records
        fields = sum(bool(roles_of(name)) or not name[0].isalpha() for name in names)
        in_turn = 5 * len(names) <= 3 * len(said) and 4 * fields <= len(names)

    if agent is not None:
        if not in_turn:
            return {}
        answering = [name.strip().lower() for name in agent]
        return dict.fromkeys(names, "user") | dict.fromkeys(answering, "assistant")

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
