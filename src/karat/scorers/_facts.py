"""What a golden answer states, and what an answer says of it: the reading that `overlap` scores.

A fact is the yes or no that the golden answer begins with, a number, a piece of code, a name or a content word.
What the question holds too weighs little. An answer states a fact where it takes the same side, holds the same number
near its unit or a word of the matter, or the same word in another form. Rules err towards "not found".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from karat.scorers._words import (
    CODE,
    HEDGE,
    NAME,
    NEGATION,
    NUMBER,
    POLARITY,
    STOP,
    WORD,
    Number,
    Token,
    is_unit,
    number_at,
    stem,
    tokens,
)

__all__ = [
    "Fact",
    "Golden",
    "Reading",
    "Sentence",
    "Stance",
    "denies",
    "golden_of",
    "is_unsure",
    "plain",
    "read",
    "stance",
]

_SENTENCE = re.compile(r"\s(?<=[.!?;。！？]\s)\s*|\n")
_MARKER = re.compile(r"^[ \t]{0,16}(?:[-*•+#>]{1,6}|\d{1,3}[.)])[ \t]", re.MULTILINE)
_SPAN = re.compile(r"```[^\n`]{0,40}\n([^`]{1,4000})```|`([^`\n]{1,400})`")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
_WEIGHTS = {WORD: 2, NAME: 4, CODE: 4, NUMBER: 6, POLARITY: 4}
_ASKED_WEIGHTS = {WORD: 1, NAME: 1, CODE: 1, NUMBER: 2}  # of what the question holds too
_COMPARED = 64  # sentences of a golden answer that are compared one by one
_NONE: frozenset[str] = frozenset()
_WHOLE = "="  # begins the key of a fact that is a whole text; no token begins so
_TOO_FEW = 6  # weight of facts below which the words of the question count too
_ALIKE = 0.75  # share of a claim's keys that make a sentence one about the same
_LESS_ALIKE = 0.6  # that share where the head of the claim is among them
_LONG = 600  # characters of a sentence whose clauses are not told apart
_OCCURRENCES = 64  # places where a number is looked at
_SMALL = 10  # whole numbers up to here stand in lists and scores everywhere
_ORDERING = re.compile(r"\W{0,9}(?:please )?(?:give|make|get|use)\b", re.IGNORECASE)  # "Give it a 5."
_YES = frozenset({"yes", "yeah", "yep", "ja", "oui", "sí"})
_NO = frozenset({"no", "nope", "nein", "non"})
_OPENING = re.compile(r"([^\W\d_]{2,4})(?!\w|['’]|-\w)(.?)[ \t]*([^\W\d_]*)", re.DOTALL)
_REMARK = re.compile(r"[^.!?\n]{1,60}[,:]\s?(yes|no)(?:[,.;:!\n]|$)", re.IGNORECASE)  # "In short: no."
_SUBJECTS = frozenset({"it", "its", "they", "you", "we", "he", "she", "there", "this", "that", "i"})
_POLAR_TEXT = "is are was were am do does did can could may might must should shall will would has have had"
_POLAR = frozenset(_POLAR_TEXT.split())
_CLAUSE = re.compile(r"[,;:()—–]|\s-\s")
_UNSURE = re.compile(
    r"^\s{0,9}(?:if|suppose)\b"
    r"|\b(?:whether|unsure|(?:not|n['’]t) (?:know|sure|certain)|(?:cannot|can['’]t) (?:say|tell))\b",
    re.IGNORECASE,
)
_ANNOUNCING_TEXT = "answer result total sum number value amount maximum minimum limit final equals roughly"
_ANNOUNCING = frozenset(map(stem, _ANNOUNCING_TEXT.split()))  # around a number, and about no matter


class Fact(NamedTuple):
    """One thing that the golden answer states."""

    kind: int
    key: str
    parts: tuple[str, ...]
    weight: int
    shown: str
    number: Number | None
    context: frozenset[str]  # keys of its sentence
    question: frozenset[str]  # keys of the question
    asked: bool = False  # the question holds it too

    @property
    def critical(self) -> bool:
        """A number or a piece of code: without it the answer cannot be followed."""
        return self.kind in (CODE, NUMBER) and not self.asked

    @property
    def neighbours(self) -> int:
        """How many words it is stated or asked for with; not exact beyond two."""
        most = max(len(self.context), len(self.question))
        return most if most > 2 else len(self.context | self.question)

    def shared(self, keys: frozenset[str]) -> int:
        """How many of these keys it is stated or asked for with."""
        return len(self.context & keys) + len((self.question & keys) - self.context)


class Sentence(NamedTuple):
    """One sentence or line, read."""

    text: str
    keys: frozenset[str]
    negated: bool
    hedged: bool  # only, unless, except: its sense cannot be told by counting negations
    numbers: tuple[Number, ...]
    marked: tuple[Token, ...]  # code, and names that do not begin the sentence
    words: int


class Claim(NamedTuple):
    """What a golden "yes" or "no" is about: the question, or the sentence that spells it out."""

    keys: frozenset[str]
    side: str  # which an answer takes that affirms it
    coded: bool  # sets code apart; else what an answer says in code does not count
    head: str = ""  # the key that matters most: that of "free" in "Is it free for teams?"


class Stance(NamedTuple):
    """Which side an answer takes where the golden answer begins with yes or no."""

    confirmed: bool = False
    opens: str = ""  # "yes", "no" or empty: what the answer begins with
    against: Sentence | None = None  # takes the other side


@dataclass(slots=True)
class Numbers:
    """The numbers of a golden answer, so that the same quantity is known in another unit."""

    every: set[float] = field(default_factory=set)  # as written
    bare: set[float] = field(default_factory=set)  # those without a known unit
    measured: set[tuple[str, float]] = field(default_factory=set)  # those with one, in base units

    def add(self, number: Number) -> None:
        self.every.add(number.value)
        if number.dimension:
            self.measured.add((number.dimension, round(number.base, 9)))
        else:
            self.bare.add(number.value)
        if number.other is not None:
            self.add(number.other)

    def __contains__(self, number: Number) -> bool:
        """A number without a unit is looked for among all; one with a unit among its kind and those without."""
        if number.other is not None and number.other in self:
            return True
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
    claims: tuple[Claim, ...]  # what that is about
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
    places: dict[object, list[tuple[int, Number]]] = field(default_factory=dict)  # sentences with this number
    words: int = 0
    shared: dict[tuple[int, frozenset[str]], int] = field(default_factory=dict)  # what `_shares` found

    def states(self, fact: Fact) -> bool:
        """Whether the fact, other than a yes or no, is found. Adding a line never makes this false."""
        if fact.number is not None:
            return self._counts(fact, fact.number)
        if fact.key.startswith(_WHOLE):
            return fact.key[len(_WHOLE) :] in plain(self.text).lower()
        if fact.key in self.keys:
            return True
        return fact.kind != CODE and bool(fact.parts) and self.keys.issuperset(fact.parts)

    def add(self, index: int, number: Number) -> None:
        """Notes that this sentence holds this number."""
        self.places.setdefault(number.value, []).append((index, number))
        if number.dimension:
            self.places.setdefault((number.dimension, round(number.base, 9)), []).append((index, number))
        if number.other is not None:
            self.add(index, number.other)

    def _counts(self, fact: Fact, wanted: Number) -> bool:
        if wanted.dimension and (wanted.dimension, round(wanted.base, 9)) in self.places:
            return True  # the same quantity with its unit
        for index, number in self.places.get(wanted.value, ())[:_OCCURRENCES]:
            if not (wanted.dimension and number.dimension) and self._is_near(fact, wanted, index):
                return True
        return wanted.other is not None and self._counts(fact, wanted.other)

    def _is_near(self, fact: Fact, wanted: Number, index: int) -> bool:
        """Whether a number stands in its neighbourhood: a lone "5" may be a list or a score."""
        sentence = self.sentences[index]
        several = len(sentence.numbers) > 1 and "=" not in sentence.text
        small = fact.neighbours > 0 and abs(wanted.value) <= _SMALL and wanted.value.is_integer()
        if self._shares(fact, index) >= (2 if several and small and fact.neighbours > 1 else 1):
            return True
        if several:
            return False
        if small and _ORDERING.match(sentence.text):
            return False
        foreign = len(sentence.keys - _ANNOUNCING)
        if index == 0 or self._shares(fact, index - 1):
            return foreign <= (0 if small else 2)
        return not foreign and not small

    def _shares(self, fact: Fact, index: int) -> int:
        pair = index, fact.context
        if pair not in self.shared:
            self.shared[pair] = fact.shared(self.sentences[index].keys)
        return self.shared[pair]


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
    facts = _facts(golden, stated, asked)
    numbers = Numbers()
    for sentence in (*asked, *stated):
        for number in sentence.numbers:
            numbers.add(number)
    begins = opening(golden)
    return Golden(
        pieces=golden.split(),
        facts=facts,
        weight=sum(fact.weight for fact in facts),
        known=frozenset().union(*(sentence.keys for sentence in (*asked, *stated))),
        numbers=numbers,
        sentences=tuple(map(_signed, [sentence for sentence in stated if len(sentence.keys) > 1][:_COMPARED])),
        opening=begins,
        claims=_claims(begins, asked, stated) if begins else (),
        words=sum(sentence.words for sentence in stated),
        code=frozenset(fact.key for fact in facts if fact.kind == CODE),
        placeholders=not all(_code_keys(golden).values()),
        coded="`" in golden,
        longest_line=max((len(line) for line in golden.split("\n")), default=0),
    )


def read(text: str) -> Reading:
    """Everything the text holds, in one pass."""
    reading = Reading(text, _sentences(text))
    for index, sentence in enumerate(reading.sentences):
        reading.keys |= sentence.keys
        reading.words += sentence.words
        for number in sentence.numbers:
            reading.add(index, number)
    return reading


def stance(golden: Golden, reading: Reading) -> Stance:
    """The side that an answer takes, by its first word or else by sentences about the same."""
    if not golden.opening:
        return Stance()
    begins = opening(reading.text) or _remark(reading.text)
    if begins:
        agrees = begins == golden.opening
        return Stance(agrees, begins, None if agrees else reading.sentences[0])
    against = None
    hedged = False
    for side, sentence in _sides(golden, reading):
        if side == golden.opening:
            return Stance(confirmed=True)
        hedged = hedged or sentence.hedged
        against = against or sentence
    return Stance(against=None if hedged else against)


def denies(sentence: Sentence, keys: frozenset[str]) -> bool:
    """Whether a negation stands in the clause of a sentence that holds these keys, or half of them."""
    if not sentence.negated or len(sentence.text) > _LONG:
        return sentence.negated
    told = weakly = False
    for clause in _CLAUSE.split(sentence.text):
        listed = tokens(clause)
        held = keys & {key for token in listed for key in (token.key, *token.parts)}
        if not held:  # the "no" of "No, it is" negates nothing
            continue
        negated = any(token.kind == NEGATION for token in listed)
        if 2 * len(held) < len(keys):
            weakly = weakly or negated
        elif negated:
            return True
        else:
            told = True
    return weakly and not told


def opening(text: str) -> str:
    """How a text answers a yes-or-no question, where it begins with that."""
    found = _OPENING.match(text.lstrip(" \t\n*_`\"'“>#")[:40])
    if found is None:
        return ""
    word = found[1].lower()
    if word in _YES:
        return "yes"
    if word in _NO and (not found[2].isspace() or found[2] == "\n" or found[3].lower() in ("", *_SUBJECTS)):
        return "no"  # "No, …", "No it is not", but not "No more than 5"
    return ""


def _remark(text: str) -> str:
    found = _REMARK.match(text)
    return "" if found is None else "yes" if found[1].lower() == "yes" else "no"


def _sides(golden: Golden, reading: Reading) -> Iterator[tuple[str, Sentence]]:
    """Each sentence that affirms or denies what the golden yes or no is about."""
    for sentence in reading.sentences:
        for claim in golden.claims:
            if _is_about(claim, sentence.keys) and len(sentence.keys - golden.known) <= len(claim.keys) + 1:
                if is_unsure(sentence) or ("`" in sentence.text and not _in_prose(claim, sentence)):
                    continue
                yield (_other(claim.side) if denies(sentence, claim.keys) else claim.side), sentence
                break


def is_unsure(sentence: Sentence) -> bool:
    """Whether a sentence asks, supposes or does not know, so that it takes no side."""
    return sentence.text.rstrip().endswith("?") or _UNSURE.search(sentence.text[:_LONG]) is not None


def _is_about(claim: Claim, keys: Set[str]) -> bool:
    share = _LESS_ALIKE if claim.head in keys else _ALIKE
    return len(claim.keys & keys) >= share * len(claim.keys)


def _in_prose(claim: Claim, sentence: Sentence) -> bool:
    return claim.coded or _is_about(claim, {token.key for token in tokens(_SPAN.sub(" ", sentence.text))})


def _other(side: str) -> str:
    return "no" if side == "yes" else "yes"


def _claims(begins: str, asked: list[Sentence], stated: list[Sentence]) -> tuple[Claim, ...]:
    claims = []
    question = asked[-1] if asked else None
    if question is not None and question.keys and not question.negated and _is_polar(question.text):
        claims.append(Claim(question.keys, "yes", "`" in question.text, _head(question.text)))
    spelled = next((sentence for sentence in stated if sentence.keys), None)
    if spelled is not None and not spelled.hedged:
        side = _other(begins) if denies(spelled, spelled.keys) else begins
        claims.append(Claim(spelled.keys, side, "`" in spelled.text))
    return tuple(claims)


def _is_polar(question: str) -> bool:
    words = question.lower().split()
    return words[0] in _POLAR and "or" not in words


def _head(question: str) -> str:
    """After a pronoun as subject, the first content word says what is asked of it."""
    words = question.lower().split()
    if len(words) < 2 or words[1] not in _SUBJECTS:
        return ""
    return next((token.key for token in tokens(question) if token.kind >= WORD), "")


def _signed(sentence: Sentence) -> Sentence:
    return sentence._replace(negated=denies(sentence, sentence.keys))


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


def _facts(golden: str, stated: list[Sentence], asked: list[Sentence]) -> tuple[Fact, ...]:
    in_code = _code_keys(golden)
    in_question = frozenset().union(*(sentence.keys for sentence in asked))
    quantities = {(number.dimension, number.base) for sentence in asked for number in sentence.numbers}
    everything: dict[object, Fact] = {}
    for sentence in stated:
        listed = tokens(sentence.text)
        for position, token in enumerate(listed):
            placeholder = not in_code.get(token.key, True)
            if token.kind not in _WEIGHTS or placeholder or is_unit(listed, position):
                continue
            fact = _fact(listed, position, in_code)._replace(context=sentence.keys, question=in_question)
            quantity = fact.number and (fact.number.dimension, fact.number.base)
            if quantity in quantities or (quantity is None and fact.key in in_question):
                fact = fact._replace(asked=True, weight=_ASKED_WEIGHTS[fact.kind])
            everything.setdefault((fact.key, quantity), fact)
    facts = tuple(everything.values())
    if sum(fact.weight for fact in facts if not fact.asked) >= _TOO_FEW:
        facts = tuple(fact for fact in facts if fact.number is not None or not fact.asked)
    begins = opening(golden)
    if begins:
        facts = Fact(POLARITY, "", (), _WEIGHTS[POLARITY], begins, None, _NONE, _NONE), *facts
    return facts or _whole(golden)


def _fact(listed: list[Token], position: int, in_code: dict[str, bool]) -> Fact:
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
        context=_NONE,
        question=_NONE,
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
    """A golden answer without a content word ("It is.", "👍") is one fact, found as it stands."""
    told = plain(golden).lower()
    return (Fact(WORD, f"{_WHOLE}{told}", (), 1, plain(golden)[:80], None, _NONE, _NONE),) if told else ()
