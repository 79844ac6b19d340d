"""What a golden answer states, and what an answer says of it: the reading that `overlap` scores.

A fact is a number, a piece of code, a name or a content word of the golden answer that
the question does not already hold. An answer states a fact where it holds the same
number in the same unit, or the same word in another form. Nothing here understands
a sentence; every rule errs towards "not found" and "not contradicted".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from karat.scorers._words import (
    CODE,
    HEDGE,
    NAME,
    NEGATION,
    NUMBER,
    STOP,
    WORD,
    Number,
    Token,
    is_unit,
    number_at,
    tokens,
)

__all__ = ["Fact", "Golden", "Reading", "Sentence", "golden_of", "plain", "read"]

_SENTENCE = re.compile(r"\s(?<=[.!?;。！？]\s)\s*|\n")
_MARKER = re.compile(r"^[ \t]{0,16}(?:[-*•+#>]{1,6}|\d{1,3}[.)])[ \t]", re.MULTILINE)
_SPAN = re.compile(r"```[^\n`]{0,40}\n([^`]{1,4000})```|`([^`\n]{1,400})`")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
_WEIGHTS = {WORD: 1, NAME: 2, CODE: 2, NUMBER: 3}
_COMPARED = 64  # sentences of a golden answer that are compared one by one
_WHOLE = "="  # begins the key of a fact that is a whole text; no token begins so
_TOO_FEW = 3  # weight of facts below which those of the question count too


class Fact(NamedTuple):
    """One thing that the golden answer states."""

    kind: int
    key: str
    parts: tuple[str, ...]
    weight: int
    shown: str
    number: Number | None
    context: frozenset[str]  # keys of its sentence and of the question

    @property
    def critical(self) -> bool:
        """A number or a piece of code: without it the answer cannot be followed."""
        return self.kind >= CODE


class Sentence(NamedTuple):
    """One sentence or line, read."""

    text: str
    keys: frozenset[str]
    negated: bool
    hedged: bool  # only, unless, except: its sense cannot be told by counting negations
    numbers: tuple[Number, ...]
    marked: tuple[Token, ...]  # code, and names that do not begin the sentence
    words: int


@dataclass(slots=True)
class Numbers:
    """The numbers of a text, so that the same quantity is found in another unit."""

    every: set[float] = field(default_factory=set)  # as written
    bare: set[float] = field(default_factory=set)  # those without a known unit
    measured: set[tuple[str, float]] = field(default_factory=set)  # those with one, in base units

    def add(self, number: Number) -> None:
        self.every.add(number.value)
        if number.dimension:
            self.measured.add((number.dimension, round(number.base, 9)))
        else:
            self.bare.add(number.value)

    def __contains__(self, number: Number) -> bool:
        """A number without a unit is looked for among all; one with a unit among its kind and those without."""
        if not number.dimension:
            return number.value in self.every
        return (number.dimension, round(number.base, 9)) in self.measured or number.value in self.bare


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden answer, analysed once for all its answers."""

    pieces: list[str]  # the text without its white space
    facts: tuple[Fact, ...]
    weight: int
    known: frozenset[str]  # keys of golden answer and question
    numbers: Numbers  # of both
    sentences: tuple[Sentence, ...]
    opening: str  # "yes", "no" or empty
    words: int
    code: frozenset[str]  # keys of its pieces of code
    placeholders: bool  # its code names what to fill in, as FILE in `karat run FILE`
    coded: bool  # it sets commands apart with backquotes
    longest_line: int  # characters


@dataclass(slots=True)
class Reading:
    """An answer, read once."""

    text: str
    sentences: list[Sentence] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    numbers: Numbers = field(default_factory=Numbers)
    words: int = 0

    def states(self, fact: Fact) -> bool:
        """Whether the fact is found. Adding text never makes this false."""
        if fact.number is not None:
            return fact.number in self.numbers
        if fact.key.startswith(_WHOLE):
            return self._says(fact.key[len(_WHOLE) :])
        if fact.key in self.keys:
            return True
        return fact.kind != CODE and bool(fact.parts) and self.keys.issuperset(fact.parts)

    def _says(self, whole: str) -> bool:
        if whole in ("yes", "no"):
            return opening(self.text) == whole
        return whole in plain(self.text).lower()


def plain(text: str) -> str:
    """The text with what cannot be printed, and all white space, as single spaces."""
    return " ".join((text if text.isprintable() else _UNPRINTABLE.sub(" ", text)).split())


@lru_cache(maxsize=64)
def golden_of(golden: str, question: str) -> Golden:
    """The analysis of a golden answer to a question; the last 64 are kept.

    A run asks one sample under all conditions before the next one, so few are in use at a time.
    """
    asked = _sentences(question)
    stated = _sentences(golden)
    in_question = frozenset().union(*(sentence.keys for sentence in asked))
    facts = _facts(golden, stated, in_question)
    numbers = Numbers()
    for sentence in (*asked, *stated):
        for number in sentence.numbers:
            numbers.add(number)
    return Golden(
        pieces=golden.split(),
        facts=facts,
        weight=sum(fact.weight for fact in facts),
        known=in_question.union(*(sentence.keys for sentence in stated)),
        numbers=numbers,
        sentences=tuple(sentence for sentence in stated if len(sentence.keys) > 1)[:_COMPARED],
        opening=opening(golden),
        words=sum(sentence.words for sentence in stated),
        code=frozenset(fact.key for fact in facts if fact.kind == CODE),
        placeholders=not all(_code_keys(golden).values()),
        coded="`" in golden,
        longest_line=max((len(line) for line in golden.split("\n")), default=0),
    )


def read(text: str) -> Reading:
    """Everything the text holds, in one pass."""
    reading = Reading(text, _sentences(text))
    for sentence in reading.sentences:
        reading.keys |= sentence.keys
        reading.words += sentence.words
        for number in sentence.numbers:
            reading.numbers.add(number)
    return reading


def opening(text: str) -> str:
    """How a text answers a yes-or-no question, where it begins with that."""
    first = text.lstrip(" \t\n*_`\"'")[:4].lower()
    for word in ("yes", "no"):
        if first.startswith(word) and not first[len(word) : len(word) + 1].isalnum():
            return word
    return ""


def _sentences(text: str) -> list[Sentence]:
    if "\n" in text or text[:1] in "-*•+#> \t0123456789":
        text = _MARKER.sub("", text)
    if "。" in text:  # scripts that set no space between sentences
        text = text.replace("。", "。\n")
    parts = _SENTENCE.split(text)
    return [_sentence(part, listed) for part in parts if part and (listed := tokens(part))]


def _sentence(text: str, listed: list[Token]) -> Sentence:
    keys: set[str] = set()
    numbers: list[Number] = []
    marked: list[Token] = []
    negated = hedged = False
    for position, token in enumerate(listed):
        kind = token[0]
        if kind == WORD:
            keys.add(token[1])
        elif kind == STOP:
            continue
        elif kind == NUMBER:
            numbers.append(number_at(listed, position))
        elif kind == NEGATION:
            negated = True
            continue
        elif kind == HEDGE:
            hedged = True
            continue
        else:
            keys.add(token[1])
            if kind == CODE or position:
                marked.append(token)
        if token[3]:
            keys.update(token[3])
    return Sentence(text, frozenset(keys), negated, hedged, tuple(numbers), tuple(marked), len(listed))


def _facts(golden: str, stated: list[Sentence], in_question: frozenset[str]) -> tuple[Fact, ...]:
    in_code = _code_keys(golden)
    everything: dict[object, Fact] = {}
    for sentence in stated:
        listed = tokens(sentence.text)
        context = sentence.keys | in_question
        for position, token in enumerate(listed):
            placeholder = not in_code.get(token.key, True)
            if token.kind not in _WEIGHTS or placeholder or is_unit(listed, position):
                continue
            fact = _fact(listed, position, in_code, context)
            everything.setdefault((fact.key, fact.number and (fact.number.dimension, fact.number.base)), fact)
    told = tuple(fact for fact in everything.values() if fact.number is not None or fact.key not in in_question)
    if sum(fact.weight for fact in told) >= _TOO_FEW:
        return told
    return tuple(everything.values()) or _whole(golden)


def _fact(listed: list[Token], position: int, in_code: dict[str, bool], context: frozenset[str]) -> Fact:
    token = listed[position]
    number = number_at(listed, position) if token.kind == NUMBER else None
    kind = token.kind
    if kind == NAME and position == 0 and token.text[1:].islower():
        kind = WORD  # a capital because the sentence begins
    if in_code.get(token.key) and kind != NUMBER:
        kind = CODE
    return Fact(
        kind=kind,
        key=token.key,
        parts=token.parts,
        weight=_WEIGHTS[kind],
        shown=number.shown if number is not None else token.text,
        number=number,
        context=context,
    )


def _code_keys(golden: str) -> dict[str, bool]:
    """Keys of what stands in backquotes; False for placeholders, as FILE in `karat run FILE`."""
    found: dict[str, bool] = {}
    for fenced, inline in _SPAN.findall(golden):
        listed = [token for token in tokens(fenced or inline) if token.kind in _WEIGHTS]
        for position, token in enumerate(listed):
            placeholder = position > 0 and token.text.isupper() and token.kind == NAME
            found[token.key] = found.get(token.key, False) or not placeholder
    return found


def _whole(golden: str) -> tuple[Fact, ...]:
    """A golden answer without a content word ("No.", "It is.", "👍") is one fact, found as it stands."""
    told = plain(golden).lower()
    bare = told.strip(" .!*_`\"'")
    key = bare if bare in ("yes", "no") else told
    return (Fact(WORD, f"{_WHOLE}{key}", (), 1, plain(golden)[:80], None, frozenset()),) if told else ()
