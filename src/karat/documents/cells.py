"""The values of a row under its roles: question, choices, golden answers, criteria.

Choices are written into the question with letters, and a golden letter, index or text becomes the
letter. A list of golden answers means any of them where its name says so; else the reader of the
file has to say.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from karat.documents.columns import Columns, Row, are_objects, cell, is_empty
from karat.documents.names import (
    any_speaker_and_text,
    ends_with_reply,
    is_choice_stem,
    joined,
    last_part,
    speaker_and_text,
    whose,
    word_set,
    words_of,
)
from karat.documents.nodes import plain
from karat.documents.reader import parse
from karat.formats import text_of

Several = Literal["any", "all"]

ANY_OF = word_set(
    """answers groundtruths groundtruth ideal aliases target targets possibleanswer possibleanswers
    correctanswers references acceptable acceptedanswers acceptableanswers goldanswers goldenanswers
    referenceanswers answeraliases text"""
)
"""Names whose list means that any of its texts is right."""
_ALIASES = word_set(
    """aliases alternativeanswers alternateanswers alternatives acceptedanswers acceptableanswers
    otheranswers answeraliases synonyms answervariants altanswers acceptanswers variants"""
)
"""Names of columns with further right answers beside the golden one."""
NOTHING = "[]"
"""The golden answer of an empty list of which all must be there: nothing is expected."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MARK = re.compile(r"####\s*(?P<said>\S[^\n]*)\s*$")
_BOXED = re.compile(
    r"\\boxed\{(?=[\W_]*[^\W_])(?P<said>(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})+)\}[\s$.)\]\\]*\Z"
)
"""An answer in a box at the end, in LaTeX; dots are the place of one."""
PLAIN = re.compile(r"(?!.*(?:####|\\boxed))\s*[^\s\[]", re.DOTALL).match
"""Matches a text that is the question or the golden answer as it is: it is not empty, nor a list,
and marks no part of itself as the answer.
"""
_LISTED = re.compile(r"\s*\[|[^|]*\|")
"""Matches a list in a text: as JSON or as Python prints it, or with bars."""
_ONE_QUOTED = re.compile(r"\s*\[\s*['\"].*\]\s*$", re.DOTALL)
_TEXT_KEYS = ("text", "choices", "value", "content", "option", "answer", "label")
_LABEL_KEYS = ("label", "labels", "key", "letter", "id")
_SAYS_RIGHT = frozenset({"correct", "right"})
"""Words of the name of what says that a choice is right: `isCorrect`, `correcta`."""
_TERM = re.compile(r"(?:\S+ ){0,4}\S+")
"""A code, a name or a few words, as lists in one text hold them."""
_LONGEST_CELL = 200_000  # characters of a list written in a cell


class Options(msgspec.Struct, frozen=True):
    """The choices of one question, and which the row itself marks as right."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    right: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "\n".join(
            f"{label}) {text}" for label, text in zip(self.labels, self.texts, strict=True)
        )


class Golden(msgspec.Struct, frozen=True):
    """The golden answer of one question: the text, and every text that is right."""

    text: str
    accepted: tuple[str, ...]


class Unread(ValueError):
    """A cell that cannot be what its role says; its text says why."""


def as_text(value: object) -> str | None:
    """A cell as text: numbers as they are, true and false as yes and no, a list of one text, chat
    messages as a dialogue. None: it holds nothing. Raises Unread for other lists and objects.
    """
    if is_empty(value):
        return None
    value = only_text(value)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return text_of(value)
    if not isinstance(value, list):
        raise Unread("is an object")
    flat: list[object] = []
    for part in value:
        if isinstance(part, list):
            flat += part
        else:
            flat.append(part)

    if all(speaker_and_text(part) is not None for part in flat):
        return dialogue(flat)
    if len(flat) == 1 and not isinstance(flat[0], (dict, list)):
        return as_text(flat[0]) or ""
    raise Unread("is a list")


def only_text(value: object) -> object:
    """The text in a list of one text, also where a cell holds the list as text, once or several
    times; else the value.

    >>> only_text("['Paris']"), only_text(["Paris"]), only_text("[1]")
    ('Paris', 'Paris', '[1]')
    """
    listed = value
    if isinstance(value, str) and _ONE_QUOTED.match(value):
        listed = parsed(value)
    if isinstance(listed, list) and len(listed) == 1 and isinstance(listed[0], str):
        return only_text(listed[0])
    return value


def dialogue(messages: Iterable[object]) -> str:
    """Chat messages as one text. If only the user speaks, it is their text, after the system
    message; otherwise each line names its speaker.
    """
    said: list[tuple[str, str]] = []
    for message in messages:
        keys = speaker_and_text(message) or any_speaker_and_text(message)
        assert keys is not None
        assert isinstance(message, dict)
        who, text = message[keys[0]], message[keys[1]]
        if isinstance(text, list):
            parts = [part.get("text") for part in text if isinstance(part, dict)]
            text = "\n".join(part for part in parts if isinstance(part, str))

        if not is_empty(text):
            said.append((str(who), text if isinstance(text, str) else text_of(text)))

    speakers = [who.lower() for who, _ in said]
    asked_once = speakers.count("user") + speakers.count("human") == 1 and len(said) <= 2
    if asked_once and set(speakers) <= {"user", "human", "system", "developer"}:
        return "\n\n".join(text for _, text in said)
    return "\n".join(f"{who}: {text}" for who, text in said)


def without_reply(value: object) -> object:
    """A cell without the assistant's reply, if it holds chat messages that end with one."""
    if isinstance(value, list) and value and ends_with_reply(value):
        return value[:-1]
    return value


def reply_of(value: object) -> Golden | None:
    """The assistant's reply that ends chat messages, as golden answer; None: there is none."""
    if without_reply(value) is value or not isinstance(value, list):
        return None
    text = dialogue(value[-1:]).partition(": ")[2]
    if not text.strip():
        return None
    return _the_only(text)


def question(
    row: Row,
    paths: Sequence[str],
    *,
    golden: str | None = None,
    named: bool = False,
) -> str | None:
    """The question of a row: the texts of its columns, in order, parted by an empty line.

    `golden`: if it is one of the columns, what comes before the reply in it. `named`: a line for
    each column, after its name. Raises Unread.
    """
    if named:
        return lines_of({path: cell(row, path) for path in paths}) or None
    texts: list[str | None] = []
    for path in paths:
        value = cell(row, path)
        if isinstance(value, str) and value.lstrip()[:1] == "[":
            listed = parsed(value)
            if isinstance(listed, list) and listed and all(map(speaker_and_text, listed)):
                value = listed

        if path == golden:
            value = without_reply(value)
        for part in _parts(value):
            written = part
            if isinstance(part, Mapping):
                written = lines_of(part)
            texts.append(as_text(written))

    return "\n\n".join(text for text in texts if text is not None) or None


def _parts(value: object) -> list[object]:
    """The texts and objects in a list, also in lists inside it; chat messages stay together."""
    if not isinstance(value, list) or all(map(speaker_and_text, value)):
        return [value]
    if all(isinstance(part, list) and all(map(speaker_and_text, part)) for part in value):
        return [value]
    found: list[object] = []
    for part in value:
        found += _parts(part)

    return found


def lines_of(value: Mapping[str, Any]) -> str:
    """An object as text: a line for each key that holds something."""
    lines = []
    for key, below in value.items():
        if not is_empty(below):
            lines.append(f"{key}: {text_of(below)}")

    return "\n".join(lines)


def options(row: Row, paths: Sequence[str]) -> Options | None:
    """The choices of a row: a list, an object, a text, or columns with one choice each."""
    if len(paths) > 1:
        texts = [as_text(cell(row, path)) for path in paths]
        kept = [text for text in texts if text is not None]
        return _lettered(kept) if len(kept) > 1 else None

    value = cell(row, paths[0])
    if isinstance(value, str):
        value = parsed(value)
    if is_empty(value):
        return None
    if isinstance(value, list):
        if are_objects(value):
            return _options_of_objects(value)
        if any(isinstance(part, (list, Mapping)) for part in value):
            return None
        texts = [as_text(part) for part in value]
        kept = [text for text in texts if text is not None]
        return _unlabelled(kept) if len(kept) > 1 else None

    if isinstance(value, Mapping):
        return _options_of_object(value)
    if isinstance(value, str):
        for mark in ("\n", "|", ";", ","):
            parts = []
            for part in value.split(mark):
                if part.strip():
                    parts.append(part.strip())

            if len(parts) > 1:
                return _unlabelled(parts)

    return None


def _options_of_objects(parts: Sequence[Mapping[str, Any]]) -> Options | None:
    texts, labels, right = [], [], []
    names: Sequence[str] = _TEXT_KEYS
    if not any(name in part for part in parts for name in names):
        names = [name for name, value in parts[0].items() if isinstance(value, str)]
    for number, part in enumerate(parts):
        keys = [key for key in names if isinstance(part.get(key), (str, int))]
        if not keys:
            return None
        texts.append(text_of(part[keys[0]]))
        for name in _LABEL_KEYS:
            if name in part and name != keys[0]:
                label = part[name]
                labels.append("" if label is None else text_of(label))
                break

        if _says_right(part):
            right.append(number)

    are_different = len({*labels}) == len(texts)
    are_short = all(0 < len(label) <= 3 for label in labels)
    if are_different and are_short:
        return Options(tuple(texts), tuple(labels), tuple(right))
    if len(texts) > len(_LETTERS):
        return None
    return Options(tuple(texts), tuple(_LETTERS[: len(texts)]), tuple(right))


def _says_right(part: Mapping[str, Any]) -> bool | None:
    """Whether a choice is said to be right, as `is_correct` does, or Moodle's `fraction`; None: it
    says nothing of this.
    """
    for name, value in part.items():
        flagged = isinstance(value, bool) and bool(_SAYS_RIGHT & {*words_of(name)})
        if flagged or name == "is_answer":
            return bool(value)
        if joined(name) == "fraction":
            return text_of(value).removesuffix(".0") in ("1", "100")

    return None


def are_marked_choices(value: object) -> bool:
    """Whether a cell is a list of choices, each of which says whether it is right, or an object
    that does.
    """
    if isinstance(value, Mapping):
        given = _options_of_object(value)
        return given is not None and bool(given.right)
    if not isinstance(value, list) or len(value) < 2:
        return False
    if not are_objects(value):
        return False
    marks = [*map(_says_right, value)]
    return None not in marks and any(marks)


def _options_of_object(value: Mapping[str, Any]) -> Options | None:
    lists = {key: held for key, held in value.items() if isinstance(held, list)}
    texts = next((lists[key] for key in _TEXT_KEYS if key in lists), None)
    labels = lists.get("label", lists.get("labels"))
    if texts is not None and labels is not None and len(texts) == len(labels):
        written = tuple(text_of(text) for text in texts)
        if set(map(str, labels)) <= {"0", "1"} and len(labels) <= len(_LETTERS):
            right = tuple(at for at, label in enumerate(labels) if str(label) == "1")
            return Options(written, tuple(_LETTERS[: len(written)]), right)

        return Options(written, tuple(map(str, labels)))

    if texts is not None:
        return _lettered([*map(text_of, texts)])
    marked = all(mark in (0, 1) for mark in value.values())
    if marked and 1 < len(value) <= len(_LETTERS):
        written = tuple(map(str, value))
        right = tuple(at for at, mark in enumerate(value.values()) if mark)
        return Options(written, tuple(_LETTERS[: len(value)]), right)

    if len(value) < 2 or any(len(str(key)) > 3 for key in value):
        return None
    if not all(isinstance(text, (str, int, float)) for text in value.values()):
        return None
    return Options(tuple(map(text_of, value.values())), tuple(map(str, value)))


def with_distractors(row: Row, golden: str, paths: Sequence[str]) -> Options | None:
    """The golden answer among its distractors, in an order that depends on the texts alone."""
    right = as_text(cell(row, golden))
    texts: list[str] = []
    for path in paths:
        value = cell(row, path)
        joined = isinstance(value, str) and len(paths) == 1
        parts = value.split(";") if joined else _parts(value)
        texts += [text.strip() for text in map(as_text, parts) if text is not None]

    if right is None or not texts:
        return None
    mixed = sorted(
        {right, *texts},
        key=lambda text: blake2b(text.encode("utf-8", "surrogatepass")).digest(),
    )
    return _lettered(mixed)


_LABELLED = re.compile(r"^\(?([A-Za-z]|\d{1,2})[).:]\s+(.*)$", re.DOTALL)


def _unlabelled(texts: Sequence[str]) -> Options | None:
    """Texts whose own letters, `A) …`, are their labels; else lettered."""
    by_label = {}
    for text in texts:
        match = _LABELLED.match(text.strip())
        if match is not None:
            by_label[match[1]] = match[2]

    if len(by_label) == len(texts):
        return Options(tuple(by_label.values()), tuple(by_label))
    return _lettered(texts)


def _lettered(texts: Sequence[str]) -> Options | None:
    if len(texts) > len(_LETTERS):
        return None
    return Options(tuple(texts), tuple(_LETTERS[: len(texts)]))


def with_options(question: str, given: Options) -> str:
    """The question with its choices, unless it has them already."""
    if all(text.strip() in question for text in given.texts):
        return question
    return f"{question.rstrip()}\n\n{given}"


def index_base(
    rows: Iterable[tuple[object, Options | None]], columns: Sequence[str] = ()
) -> int | None:
    """Whether golden indexes count from 0 or from 1, if one of them shows it, or the numbers of the
    `columns` with choices do; None: none does, or they are no indexes.
    """
    shown: set[int] = set()
    for value, given in rows:
        for number in map(_index, several_choices(value)):
            if given is None or number is None:
                continue
            if number == 0:
                shown.add(0)
            if number == len(given.texts):
                shown.add(1)

    if len(shown) == 1:
        return shown.pop()
    if not shown and len(columns) > 1 and columns[0].endswith(("0", "1")):
        return int(columns[0][-1])
    return None


def needs_base(rows: Iterable[tuple[object, Options | None]]) -> bool:
    """Whether golden answers are indexes of choices: whole numbers of which most are neither labels
    nor texts of choices.
    """
    indexes = texts = 0
    for value, given in rows:
        if given is None or is_empty(value):
            continue
        for part in several_choices(value):
            number = _index(part)
            if number is None or number > len(given.texts):
                return False
            if str(number) in given.labels or str(number) in given.texts:
                texts += 1
            else:
                indexes += 1

    return indexes > texts


def _index(value: object) -> int | None:
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{1,2}(\.0)?", value.strip()):
        return int(float(value))
    return None


def of_choice(value: object, given: Options, *, base: int | None) -> Golden | None:
    """The golden choice as its letter; its text is right, too. None: the value is no choice."""
    if given.right:
        return _chosen(given, given.right)
    values = [value]
    if _place(value, given, base) is None:
        values = several_choices(value)
    found: list[int] = []
    for part in values:
        at = _place(part, given, base)
        if at is None:
            return None
        found.append(at)

    return _chosen(given, found) if found else None


def several_choices(value: object) -> list[Any]:
    """The letters or numbers of choices in a list or a text: `A, C`, `ACD`, `1;3`."""
    if isinstance(value, list):
        return value
    written = value.strip() if isinstance(value, str) else ""
    if _MARKS.fullmatch(written):
        return _CHOICE.findall(written)
    if _LETTERS_IN_ORDER.fullmatch(written) and len(written) > 1:
        return [*written]
    return [value]


_CHOICE = re.compile(r"[A-Za-z]|\d{1,2}")
_MARKS = re.compile(rf"\W?(?:{_CHOICE.pattern})(?:\W*[,;|/&+、，]\W*(?:{_CHOICE.pattern}))+\W?")
_LETTERS_IN_ORDER = re.compile("A?B?C?D?E?F?G?H?")


def _place(value: object, given: Options, base: int | None) -> int | None:
    written = "" if is_empty(value) else text_of(value).strip()
    number = _index(value)
    if number is not None and base is not None and 0 <= number - base < len(given.texts):
        return number - base
    for texts in (given.labels, given.texts):
        for at, text in enumerate(texts):
            if text.strip().casefold() == written.casefold():
                return at

    match = re.match(r"^\(?([A-Za-z])[).:](?:\s|$)", written)
    named = re.fullmatch(r"([^\W_]{3,})[\W_]+[A-Za-z]", written)  # `Option B`
    if named is not None and is_choice_stem(named[1]):
        match = re.search(r"([A-Za-z])$", written)
    if match is not None and match[1].upper() in given.labels:
        return given.labels.index(match[1].upper())
    return None


def _chosen(given: Options, places: Sequence[int]) -> Golden:
    if len(places) > 1:
        return _the_only(", ".join(given.labels[at] for at in places))

    (at,) = places
    label, text = given.labels[at], given.texts[at].strip()
    accepted = [label, f"{label}) {text}"]
    if text.casefold() not in {other.casefold() for other in given.labels}:
        accepted.insert(1, text)
    return Golden(label, tuple(accepted))


def as_written(value: object, chosen: Golden, given: Options) -> Golden:
    """The golden choice where the letters are not in the question: first what the row says, unless
    it is the number of this choice and the text of another.
    """
    if isinstance(value, list):
        return chosen
    written = as_text(value)
    others = {*given.labels, *given.texts}
    others -= {*chosen.accepted}
    if written is None or written in others:
        return chosen
    return Golden(written, (written, *chosen.accepted))


def aliases_beside(golden: str, columns: Columns) -> str | None:
    """The column whose lists are further right answers beside a column of texts; None: none is."""
    if golden not in columns or columns[golden].lists or columns[golden].objects:
        return None
    for path, column in columns.items():
        written = column.texts == column.filled and any(map(_LISTED.match, column.values))
        listed = 0 < column.lists == column.filled
        if path != golden and (listed or written) and joined(path) in _ALIASES:
            return path

    return None


def texts_in(value: object) -> list[str]:
    """The texts in a list, also in one that a cell holds as text, perhaps parted by bars; none: it
    is no list.
    """
    if isinstance(value, str):
        listed = parsed(value)
        value = listed
        if isinstance(listed, str):
            value = [part.strip() for part in listed.split("|")]

    if not isinstance(value, list):
        return []
    return [text_of(part) for part in value if not is_empty(part)]


def golden(
    value: object,
    *,
    path: str,
    several: Several | None,
    whole: bool = False,
) -> Golden | None:
    """The golden answer of a cell; None: it holds none.

    `several`: what a list means, if its name does not say. `whole`: an object of other things is
    the answer, as JSON. Raises Unread.
    """
    of_object = isinstance(value, Mapping)
    value = _unpacked(value, path, several)
    if value == [] and several == "all":
        return _the_only(NOTHING)
    if is_empty(value):
        return None
    if isinstance(value, list) and not all(speaker_and_text(part) for part in value):
        texts = []
        objects = False
        for part in value:
            if isinstance(part, list) and len(part) > 1:
                raise Unread("has lists inside a list, which no text equals: name it `criterion`")
            written: str | None
            if isinstance(part, Mapping):
                key = text_key(part)
                objects = objects or key is None
                if key is None:
                    written = text_of(part)
                else:
                    written = as_text(part[key])
            else:
                written = as_text(part)

            if written is not None:
                texts.append(written)

        if objects and several == "all":
            return _the_only(text_of(value))
        if objects and several is None and not means_any(path):
            raise Unread("is a list of objects: write `several: any` or `several: all`")
        if len(texts) > 1 and several == "all":
            return _the_only("; ".join(texts))
        if len(texts) > 1 and (several == "any" or means_any(path) or of_object):
            kept = tuple(dict.fromkeys(texts))
            return Golden(kept[0], kept)

        if len(texts) > 1:
            raise Unread("is a list, and its name does not say whether any or all of it is right")
        value = texts[0]

    if isinstance(value, list) and len(value) == 1 and whose(value[0]) == "assistant":
        value = dialogue(value).partition(": ")[2]
    if whole and isinstance(value, Mapping):
        text: str | None = text_of(value)
    else:
        text = as_text(value)

    if text is None:
        return None
    return _the_only(_marked(text))


def _marked(text: str) -> str:
    """What a text marks as its last word: `#### N`, or its only box; else all of it."""
    marked = _MARK.search(text)
    if marked is None and text.count("\\boxed") == 1:  # of several, all may be right
        marked = _BOXED.search(text)
    if marked is None:
        return text
    return marked["said"].strip()


def _the_only(text: str) -> Golden:
    """A golden answer that nothing else equals."""
    return Golden(text, (text,))


def text_key(part: Mapping[str, Any]) -> str | None:
    """The key with the text of an object in a list of golden answers; None: it is more than a text:
    a number with its name or its tolerance.
    """
    key = next((key for key in _TEXT_KEYS if key in part), None)
    if key == "value" and len(part) > 1 and not isinstance(part[key], str):
        return None
    return key


def parts_of(texts: Sequence[str]) -> str | None:
    """What parts each of some texts into codes or terms, such as a comma; None: nothing does."""
    for mark in ("\n", "|", ";", ","):
        parts = []
        for text in texts:
            for part in text.split(mark):
                parts.append(part.strip())

        if len(parts) > len(texts) and all(map(_TERM.fullmatch, filter(None, parts))):
            return mark

    return None


def has_lists(value: object) -> bool:
    """Whether a list has lists of several texts in it."""
    if not isinstance(value, list):
        return False
    return any(isinstance(part, list) and len(part) > 1 for part in value)


def holds_texts(value: object) -> bool:
    """Whether an object is a golden answer with its other spellings, such as `{value, aliases}`."""
    return isinstance(value, Mapping) and _unpacked(value, "") is not value


def means_any(path: str) -> bool:
    """Whether a list under this name means any of its texts."""
    return "".join(words_of(last_part(path))) in ANY_OF


def is_undecided_list(value: object, path: str) -> bool:
    """Whether a cell is a list of several texts whose name does not say any or all."""
    if isinstance(value, Mapping) or means_any(path):
        return False
    value = _unpacked(value, path)
    if not isinstance(value, list):
        return False
    objects = any(isinstance(part, Mapping) and text_key(part) is None for part in value)
    return objects or sum(not is_empty(part) for part in value) > 1


def _unpacked(value: object, path: str, several: Several | None = None) -> object:
    """A list that a cell holds as text; an object of texts and aliases as the list of them."""
    written = value.strip() if isinstance(value, str) else ""
    if written.startswith("[") and written.endswith("]"):
        listed = parsed(written)
        if not isinstance(listed, list):
            return value
        quoted = written[1:].lstrip().startswith(('"', "'"))
        decided = several is not None or means_any(path)
        simple = all(isinstance(part, (str, int, float)) for part in listed)
        if simple and (decided or (len(listed) == 1 and quoted)):
            return listed
        return value

    if isinstance(value, Mapping):
        lower = {}
        for key, below in value.items():
            lower[str(key).lower()] = below

        if isinstance(lower.get("text"), list):
            return lower["text"]
        if isinstance(lower.get("value"), str):
            aliases = lower.get("aliases")
            others = aliases if isinstance(aliases, list) else []
            return [lower["value"], *others]

    return value


def parsed(text: str) -> object:
    """A list or object written in a cell, as JSON or as Python prints it; else the text."""
    written = text.strip()
    if written[:1] not in ("[", "{") or len(written) > _LONGEST_CELL:
        return text
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        document = parse(written.encode("utf-8", "surrogateescape"))

    if not document.faults and document.root is not None:
        return plain(document.root)
    printed = as_printed(written)  # with quotes that Python escapes
    return text if printed is None else printed


def as_printed(text: str) -> Any:
    """The list or object in a text as Python prints it, with single quotes; None: there is none."""
    try:
        value = ast.literal_eval(text.strip())
        if isinstance(value, (list, dict)):
            return json.loads(json.dumps(value))  # without tuples
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        pass
    return None
