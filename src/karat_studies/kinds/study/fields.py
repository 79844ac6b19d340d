"""Parses the fields of a reply: the answer to each, or the reason why there is none.

No answer is replaced by another: one that is not an option, out of range, refused or contradictory
stays so. Every pattern has bounded parts, so a hostile reply costs time in proportion to its
length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

import msgspec

from karat.records import Json
from karat.thoughts import spoken
from karat_studies.kinds.study.format import Answered
from karat_studies.kinds.study.prompts import described
from karat_studies.kinds.study.statements import stated
from karat_studies.kinds.study.values import (
    CONTRADICTORY,
    INVALID,
    MISSING,
    REFUSED,
    Value,
    names_option,
    refuses,
    unfilled,
    value_of,
)

_BOXED = re.compile(
    r"\$?\\boxed\s?\{\s*(?:\\text(?:bf)?\s?\{)?([^{}\n]{1,200})\}\s?\}?\s?\$?(?!\W{0,3}\?)"
)
# `not \boxed{A}`
_DENIED = re.compile(r"(?:\b(?:not|never|nor)\b|n['’]t\b)[^\n.,;:!?]*$", re.IGNORECASE)
_TAGGED = re.compile(r"<(\w{1,40})>([^<>]{1,400})</\1>(?!\W{0,3}\?)")
_MOST = 50  # marks that are examined: the last ones


def marked_answers(text: str, names: Collection[str]) -> list[tuple[str, str]]:
    r"""(name, answer) of `<name>A</name>`, and ("", answer) of `\boxed{A}` and
    `<answer>A</answer>`.

    >>> marked_answers(r"<kind>6</kind>, so $\boxed{\text{A}}$", ["kind"])
    [('kind', '6'), ('', 'A')]
    """
    boxes = [
        (match, text[max(0, match.start() - 40) : match.start()]) for match in _BOXED.finditer(text)
    ]
    answers = [
        (match.start(), "", match[1]) for match, before in boxes if not _DENIED.search(before)
    ]
    for match in _TAGGED.finditer(text):
        name = match[1].casefold()
        if name in names or name == "answer":
            answers.append((match.start(), name if name in names else "", match[2]))

    return [(name, answer.strip()) for _, name, answer in sorted(answers)[-_MOST:]]


KINDS = ("refused", "missing", "out_of_range", "contradictory", "invalid")
"""Why a field has no answer."""

_LONGEST = 200_000  # characters of a reply that are examined: its end
_OBJECTS = 20  # JSON objects that are tried
_MARKS = 1_000  # places with a key that are examined: the last ones
_BLOCK = 4_000  # characters of a multi-line answer
_CLAUSE = 80  # characters after a key in a sentence
_SENTENCE_END = re.compile(r"[\n;?!]|\.(?!\d)")
# `my first is A and my second is B`: the words of one field are not the other's
_CLAUSE_END = re.compile(r",|\band\b")
_EXAMPLE = re.compile(
    r"\b(?:for example|e\.g\.|such as|like|not|never)\W{0,6}(?:```(?:json)?\s{0,3})?$",
    re.IGNORECASE,
)
_MINE = re.compile(  # what may precede a key: nothing, `my`, `so the`; not `the average`, `a fair`
    r"(?:(?:^|[|({])[\W\d]*(?:(?:so|therefore|thus|hence|ok|okay|then)\W+(?:the\W+)?)?"
    r"|\bmy(?:\W+(?:own|final|new|chosen|answer|answer for))?\W+|\bfinal\W+)[\"'*_`(]*$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"\b(?:if|suppose|supposing|assuming|unless|whether|when)\b", re.IGNORECASE)
# `the worst choice is A`, `most people's choice is A`, `I will not write choice: A`
_NOT_OWN = re.compile(
    r"\b(?:not|never|can ?not|refuse|avoid|against|nobody|reject|doubt|silly|wrong|worst|worse|bad"
    r"|last|lowest|highest"
    r"|least|second|first|other|others|most|some|people|friend|his|her|their|your|he|she|they|form|format|example)\b"
    r"|n['’]t\b|(?<!\bit)(?<!\bthat)['’]s\b",
    re.IGNORECASE,
)
# `Most people would say:` in the line above; not `It is not easy, but here it is:`
_INTRODUCED = re.compile(
    r"(?:\b(?:not|never|refuse|wrong|worst|most people|others|(?<!as a )typical\w*"
    r"|(?<!as an )average|(?<!as )someone"
    r"|example|e\.g\.|suppos\w+|assuming|if (?!i (?:had|have|must)|forced|pressed))\b|n['’]t\b)"
    r"(?:(?!\b(?:but|here|still|however)\b)[^\n.;!?]){0,80}(?::|\bwrite|\bbe|\bsay)\s*(?:```\w*\s*)?$",
    re.IGNORECASE,
)
# of a table: its words are not answers
_HEADER = re.compile(r"[^\n]*\n[ \t]*\|[ \t]*:?-{2,}[^\n]*\n[ \t]*\|")
_REVOKED = re.compile(
    r"[\s*_(`]*(?:actually|wait|correction|on second thought|scratch that|never ?mind"
    r"|no\b(?! doubt| question)|sorry"
    r"|edit|i (?:mean|meant|take that back)|(?:hmm+\W+)?on (?:further )?reflection"
    r"|(?:hmm+\W+)?let me (?:reconsider|revise|rethink)|revised|i(?: have"
    r"|['’]ve)? changed my mind)\b",
    re.IGNORECASE,
)


_ASKS = re.compile(  # `Is the answer A?`
    r"\W*(?:is|are|was|do|does|did|should|could|would|can|may|which|what|who|why|how)\b[^\n]*\?\W*$",
    re.IGNORECASE,
)


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of one reply. A field is in exactly one of the two."""

    values: dict[str, float | str | list[str]] = {}
    kinds: dict[str, str] = {}  # field → why there is none: one of KINDS

    def complete(self, fields: Mapping[str, Answered]) -> bool:
        """Whether every field that must be answered is."""
        return all(name in self.values or field.optional for name, field in fields.items())


def read_answers(text: str, fields: Mapping[str, Answered], *, shown: str = "") -> Read:
    """The fields of a reply: by key in lines, in JSON, or in prose; a single field also without its
    key.

    `shown`: the prompt. Its lines say what each option is, and a reply may say that in place of the
    label.

    Lines and JSON take precedence over the prose above them, which may weigh answers; a
    model's thoughts never do. Otherwise two different answers to one field are contradictory;
    an answer next to a non-answer is an answer.

    >>> fields = {"choice": Answered(type="choice", options=["A", "B"])}
    >>> read_answers("The second one is a gamble.\\nchoice: A", fields).values
    {'choice': 'A'}
    >>> read_answers("I cannot choose between them.", fields).kinds
    {'choice': 'refused'}
    """
    text = spoken(text[-_LONGEST:])
    firm: dict[str, list[Value]] = {}
    names = {_folded(name): name for name in fields}
    for item in _objects(text):
        for key, value in item:
            if (name := names.get(_folded(key))) is not None:
                if isinstance(value, str):
                    read = _value_in(value, fields[name], fields)
                else:
                    read = _of_json(value, fields[name])

                firm.setdefault(name, []).append(read)

    revoked = False
    for name, answers in _in_lines(text, fields).items():
        firm.setdefault(name, []).extend(answers)
    if firm:
        # Where the last line with a key, or the last JSON, ends; after a text field everything
        # belongs to it
        end = text.rfind("}") + 1
        for mark in _keys(_KEY_OF_LINE, tuple(fields)).finditer(text):
            line_end = text.find("\n", mark.end())
            goes_on = line_end < 0 or fields[names[_folded(mark["key"])]].type == "text"
            end = max(end, len(text) if goes_on else line_end)

        behind = text[end:]
        revoked = _REVOKED.match(behind) is not None
        if len(fields) == 1:
            (only, field), *_ = fields.items()
            firm.setdefault(only, []).extend(
                [*_called_answer(behind, field), *_marked(behind, only, field, only=True)]
            )

        for name, answers in _in_prose(behind, fields, mine=False).items():
            firm.setdefault(name, []).extend(answers)  # a change of mind

    loose = _in_prose(text, fields)
    declined = refuses(text)
    values: dict[str, float | str | list[str]] = {}
    kinds: dict[str, str] = {}
    for name, field in fields.items():
        settled = _settled(firm.get(name, [])) or _settled(loose.get(name, []))
        if revoked and settled is not None and settled.answer is not None:
            settled = Value(kind=CONTRADICTORY)
        if settled is None:
            settled = _settled(_marked(text, name, field, only=len(fields) == 1))
        if settled is None and len(fields) == 1:
            settled = _alone(text, field) or _settled(_called_answer(text, field))
            if settled is None and field.type == "choice" and not declined:
                settled = stated(text, field, shown=shown)

        if settled is not None and settled.answer is not None:
            values[name] = settled.answer
        else:
            kind = MISSING if settled is None or settled.kind is None else settled.kind
            kinds[name] = REFUSED if declined and kind in {MISSING, INVALID} else kind

    return Read(values=values, kinds=kinds)


def _settled(values: list[Value]) -> Value | None:
    """One answer out of all that were found for a field; None if there is nothing."""
    answers = [value for value in values if value.kind not in {MISSING, INVALID}]
    if not answers:
        return next(
            (value for value in values if value.kind == INVALID), values[0] if values else None
        )

    if any(answer != answers[0] for answer in answers):
        return Value(kind=CONTRADICTORY)
    return answers[0]


def _alone(text: str, field: Answered) -> Value | None:
    """A reply that is only the answer to the only question."""
    plain = text.strip()
    if not plain:
        return None
    if field.type == "text":
        if _bare(plain).endswith(_bare(described(field))) or unfilled(plain):
            return None  # the form, repeated
        if refuses(plain):
            return Value(kind=REFUSED)
        return Value(answer=plain)

    if len(plain) > 200 or "\n" in plain or _ASKS.match(plain):
        return None
    value = value_of(plain, field, whole=True)
    return value if value.kind != INVALID else None


def _marked(text: str, name: str, field: Answered, *, only: bool) -> list[Value]:
    """Answers in explicit marks; those without a name belong to the only field."""
    marks = marked_answers(text, (name.casefold(),))
    return [value_of(answer, field) for named, answer in marks if named or only]


def _called_answer(text: str, field: Answered) -> list[Value]:
    """Lines such as `Final answer: A`, if there is only one question that they can answer."""
    if field.type == "text":
        return []
    marks = list(_ANSWER_LINE.finditer(text))[-_MARKS:]
    values = [value_of(match["said"], field) for match in marks]
    if marks and _REVOKED.match(text, marks[-1].end()):
        values.append(Value(kind=CONTRADICTORY))
    return [value for value in values if value.kind != INVALID]


class _Pairs(tuple[tuple[str, Json], ...]):
    """A JSON object with every key it has: a repeated one may have two values."""

    __slots__ = ()


def _objects(text: str) -> Iterator[_Pairs]:
    """The JSON objects of a text, up to a limit; those given as examples in a sentence are
    skipped.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    at = text.find("{")
    for _ in range(_OBJECTS):
        if at < 0:
            return
        try:
            item, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(item, _Pairs) and not _EXAMPLE.search(text[max(0, at - 40) : at]):
                yield item

        at = text.find("{", end)


def _of_json(value: object, field: Answered) -> Value:
    if value is None or value in ("", []):
        return Value(kind=MISSING)
    if isinstance(value, _Pairs):
        return Value(kind=INVALID)
    if isinstance(value, list) and field.type == "rank":
        flat = all(isinstance(item, (str, int, float)) for item in value)
        if flat:
            return value_of(", ".join(map(str, value)), field)
        return Value(kind=INVALID)

    if isinstance(value, list):
        if len(value) == 1 and not isinstance(value[0], list):
            return _of_json(value[0], field)
        return Value(kind=INVALID)

    if isinstance(value, bool):
        if {"yes", "no"} <= set(field.labels):
            value = {True: "yes", False: "no"}[value]
        else:
            value = str(value).lower()

    return value_of(str(value), field)


def _in_lines(text: str, fields: Mapping[str, Answered]) -> dict[str, list[Value]]:
    """Lines that begin with a key: `choice: A`, `**choice** = A`. Rank and text may go on in the
    next lines.
    """
    answers: dict[str, list[Value]] = {}
    marks = list(_keys(_KEY_OF_LINE, tuple(fields)).finditer(text))[-_MARKS:]
    names = {_folded(name): name for name in fields}
    for at, mark in enumerate(marks):
        name = names[_folded(mark["key"])]
        field = fields[name]
        if at + 1 < len(marks):
            end = marks[at + 1].start()
        else:
            end = len(text)

        line = text[mark.end() : min(end, mark.end() + _BLOCK)]
        if mark["cell"] and _HEADER.match(line):
            continue
        if _INTRODUCED.search(text[max(0, mark.start() - 2 * _CLAUSE) : mark.start()]):
            # another's answer, or one under a condition
            answers.setdefault(name, []).append(Value(kind=CONTRADICTORY))
            continue

        # Whether the text after a key describes the options: `First: A: a sure gain` above `B:
        # a chance`
        lines = [line for line in line.split("\n", 4)[:4] if line.strip()][:2]
        heads = []
        for start in lines:
            for label in field.labels:
                if re.match(rf"\W*{re.escape(label)}\s?[:.)]\s*\S", start):
                    heads.append(label)

        listed = field.type == "choice" and len(set(heads)) > 1

        if field.type != "text":
            first, _, below = line.partition("\n")
            if field.type == "rank" and not first.strip(" *_`"):
                line = below.partition("\n\n")[0]
            else:
                line = first

            # Up to the key of another field: `warm: 5, kind: 6`
            keys = _keys(_KEY_INLINE, tuple(fields)).finditer(line)
            others = []
            for key in keys:
                if _folded(key["key"]) != _folded(name):
                    others.append(key.start())

            line = line[: min(others, default=len(line))]

        if _bare(line) == _bare(described(field)):
            continue  # the form, repeated
        if listed:
            value = Value(kind=INVALID)
        else:
            value = _value_in(line, field, fields)

        answers.setdefault(name, []).append(value)

    return answers


def _value_in(line: str, field: Answered, fields: Mapping[str, Answered]) -> Value:
    """The answer in a line; `60% refuse` is not 60 if `refuse` is an option: whose share it is is
    unknown.
    """
    value = value_of(line, field)
    if value.answer is None or field.type not in {"number", "likert"}:
        return value
    chosen = [other for other in fields.values() if other.type == "choice"]
    if any(names_option(line, other) for other in chosen):
        return Value(kind=CONTRADICTORY)
    return value


def _in_prose(
    text: str, fields: Mapping[str, Answered], *, mine: bool = True
) -> dict[str, list[Value]]:
    """Keys within sentences: `my choice is A`, `choice: A`. Only answers count."""
    answers: dict[str, list[Value]] = {}
    names = {_folded(name): name for name in fields}
    marks = list(_keys(_KEY_IN_PROSE, tuple(fields)).finditer(text))[-_MARKS:]
    for at, mark in enumerate(marks):
        name = names[_folded(mark["key"])]
        before = text[max(0, mark.start() - 2 * _CLAUSE) : mark.start()]
        if fields[name].type in {"text", "rank"} or _INTRODUCED.search(before):
            continue
        # Whether it is the participant's own answer, by the words before it
        sentence = _SENTENCE_END.split(before[-_CLAUSE:])[-1]
        lead = _CLAUSE_END.split(sentence)[-1]
        if _SUPPOSED.search(sentence) or _NOT_OWN.search(lead) or (mine and not _MINE.search(lead)):
            continue
        end = min(mark.end() + _CLAUSE, marks[at + 1].start() if at + 1 < len(marks) else len(text))
        clause = _SENTENCE_END.split(text[mark.end() : end], maxsplit=1)[0]
        asked_at = mark.end() + len(clause)
        if text[asked_at : asked_at + 1] == "?":
            continue
        value_text = re.sub(r"\W+and(?:\W+(?:my|the|for my|for the))?\W*$", "", clause)
        value = _value_in(value_text, fields[name], fields)
        if value.kind not in {MISSING, INVALID} and _bare(clause) != _bare(described(fields[name])):
            answers.setdefault(name, []).append(value)

    return answers


# Before a key, and behind it: at the beginning of a line, also of a table's (`| choice | A |`);
# behind another answer; and in a sentence
_BEHIND = r"[*_`\"']{0,4}[ \t]{0,4}"
_KEY_OF_LINE = (
    r"^(?:\d{1,2}[.)]\s)?[ \t>*_`\"'#•-]{0,8}(?P<cell>\|[ \t*_`]{0,8})?",
    _BEHIND + r"(?(cell)[:=：＝|]|[:=：＝])[*_`]{0,4}",
)
_KEY_INLINE = (r"[\s,;|/]{1,4}(?:and\s)?[*_`\"']{0,4}(?<!\w)", _BEHIND + "[:=：＝]")
_KEY_IN_PROSE = (r"(?<!\w)", _BEHIND + r"(?:[:=：＝]|is\b|would be\b)")


@lru_cache(maxsize=768)
def _keys(around: tuple[str, str], names: tuple[str, ...]) -> re.Pattern[str]:
    """Each name, longest first; an underscore may be written as a space."""
    ordered = sorted(names, key=len, reverse=True)
    key = "|".join(re.escape(name).replace("_", r"[_ -]") for name in ordered)
    return re.compile(rf"{around[0]}(?P<key>{key}){around[1]}", _FLAGS)


_FLAGS = re.IGNORECASE | re.MULTILINE
_ANSWER_LINE = re.compile(
    r"^[ \t>*_`#•-]{0,8}(?:my |the )?(?:final )?answer[*_`]{0,4}[ \t]{0,4}[:：]"
    r"[*_` \t]{0,8}(?P<said>[^\n]{1,400})",
    _FLAGS,
)


def _folded(key: object) -> str:
    return re.sub(r"[ -]", "_", str(key).strip().casefold())


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().casefold()
