"""Where an answer says something else than the golden answer: numbers, flags, yes and no, harm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from karat.scorers._facts import Fact, Golden, Reading, Sentence, Stance, denies, is_unsure, plain
from karat.scorers._words import CODE, Number

__all__ = ["Contradiction", "contradictions"]

_COMPARED = 32  # facts and sentences that are compared one by one: bounds the work on hostile text
_ALIKE = 0.75  # share of a golden sentence's keys that make an answer's sentence one about the same
_DESTRUCTIVE = (
    frozenset({"rm", "-rf"}),
    frozenset({"rm", "-fr"}),
    frozenset({"git", "--hard"}),
    frozenset({"drop", "tabl"}),
    frozenset({"drop", "databas"}),
    frozenset({"mkf"}),
)
_DESTRUCTIVE_MARKS = frozenset({"-rf", "-fr", "--hard", "drop", "mkf"})
_COMMAND = re.compile(r"\brm\b|\bgit\b|\bdrop\b|\bmkfs", re.IGNORECASE)
_CLAUSE_BEFORE = re.compile(r"[,;—–]|\b(?:but|then|instead)\b", re.IGNORECASE)
_WARNING = re.compile(r"\b(?:never|avoid|beware|refrain|danger|dangerous|destructive)\b", re.IGNORECASE)
_FORBIDDING = re.compile(
    r"(?:\bnot|n['’]t|\bwithout)\b(?! (?:hesitate|forget|worry|mind|be afraid|work|help))", re.IGNORECASE
)
_TELLING = re.compile(r"\b(?:run|use|execute|type|enter|delete|remove|clean|clear|try)\b", re.IGNORECASE)


class Contradiction(NamedTuple):
    """What an answer says against the golden answer."""

    text: str  # in words
    sentence: Sentence | None  # where
    core: bool = False  # of what was asked, so that the rest cannot make up for it


def contradictions(
    golden: Golden, reading: Reading, *, missing: Sequence[Fact], stance: Stance
) -> tuple[list[Contradiction], bool]:
    """Each contradiction, and whether one of them would do harm."""
    found = list(_destructive(golden, reading))
    harmful = bool(found)
    found += _numbers(golden, reading, [fact for fact in missing if fact.number is not None][:_COMPARED])
    found += _flags(golden, reading, [fact for fact in missing if fact.kind == CODE][:_COMPARED])
    found += _polarity(golden, reading, stance)
    return found, harmful


def _numbers(golden: Golden, reading: Reading, missing: Sequence[Fact]) -> Iterator[Contradiction]:
    if not missing:
        return
    strange = [
        (number, sentence)
        for sentence in reading.sentences
        for number in sentence.numbers
        if number not in golden.numbers
    ][:_COMPARED]
    for fact in missing:
        for number, sentence in strange:
            if fact.number is not None and _stands_for(fact, fact.number, number, sentence):
                yield Contradiction(f"{number.shown} where the golden answer has {fact.shown}", sentence)
                break


def _stands_for(fact: Fact, wanted: Number, number: Number, sentence: Sentence) -> bool:
    """Whether a strange number stands where the golden answer has another."""
    shared = fact.shared(sentence.keys)
    if wanted.dimension and number.dimension:
        return wanted.dimension == number.dimension and (shared >= 1 or len(sentence.keys) <= 1)
    if wanted.dimension or number.dimension:
        return False
    return shared >= 2 or (shared >= 1 and fact.neighbours <= 2) or len(sentence.keys) == 0


def _flags(golden: Golden, reading: Reading, missing: Sequence[Fact]) -> Iterator[Contradiction]:
    """A command with another flag than the golden one."""
    flags = [fact for fact in missing if fact.key.startswith("-")]
    if not flags:
        return
    code = {fact.key for fact in golden.facts if fact.kind == CODE}
    for sentence in reading.sentences:
        for token in sentence.marked:
            if not token.key.startswith("-") or token.key in golden.known:
                continue
            if not code.isdisjoint(sentence.keys) or len(golden.facts) == 1:
                yield Contradiction(f"{token.text} where the golden answer has {flags[0].shown}", sentence)
                return


def _polarity(golden: Golden, reading: Reading, stance: Stance) -> Iterator[Contradiction]:
    if stance.against is not None:
        says = f"says {stance.opens}" if stance.opens else f"“{_short(stance.against)}” stands"
        yield Contradiction(f"{says} where the golden answer says {golden.opening}", stance.against, core=True)
        return
    for position, stated in enumerate(golden.sentences):
        if stated.hedged or len(stated.keys) < 3:
            continue
        if not reading.keys.issuperset(stated.keys) and len(stated.keys & reading.keys) < _ALIKE * len(stated.keys):
            continue
        opposite = _opposite(stated, reading)
        if opposite is not None:
            does = "affirms" if stated.negated else "denies"
            text = f"“{_short(opposite)}” {does} what the golden answer does not"
            yield Contradiction(text, opposite, core=position == 0)
            return


def _opposite(stated: Sentence, reading: Reading) -> Sentence | None:
    """A sentence about the same with the other sign, unless another one has the right sign."""
    other = None
    alike = (sentence for sentence in reading.sentences if _are_alike(stated, sentence))
    for sentence in islice(alike, _COMPARED):
        if is_unsure(sentence):
            continue
        if sentence.hedged or denies(sentence, stated.keys) == stated.negated:
            return None
        if len(sentence.keys) <= 1.5 * len(stated.keys) + 2:
            other = other or sentence
    return other


def _are_alike(stated: Sentence, sentence: Sentence) -> bool:
    return len(stated.keys & sentence.keys) >= _ALIKE * len(stated.keys)


def _destructive(golden: Golden, reading: Reading) -> Iterator[Contradiction]:
    """A command that destroys data, unless the answer warns against it."""
    if _DESTRUCTIVE_MARKS.isdisjoint(reading.keys):
        return
    warned = announced = False
    for sentence in reading.sentences:
        if any(command <= sentence.keys and not command <= golden.known for command in _DESTRUCTIVE):
            before = _before_command(sentence.text)
            if announced or _warns(sentence.text, before):
                warned = True
            elif not warned or _TELLING.search(before):  # a warning may go on: "`rm -rf` would delete it"
                yield Contradiction(f"“{_short(sentence)}” destroys data", sentence)
                return
        if not sentence.text.startswith("```"):
            announced = _announces(sentence.text)


def _before_command(text: str) -> str:
    found = _COMMAND.search(text)
    return text[: found.start()] if found else text


def _warns(text: str, before: str) -> bool:
    return bool(_WARNING.search(text) or _FORBIDDING.search(_CLAUSE_BEFORE.split(before)[-1]))


def _announces(text: str) -> bool:
    """Whether a line such as "Never do this:" warns of what comes next."""
    return text.rstrip().endswith(":") and bool(_WARNING.search(text) or _FORBIDDING.search(text))


def _short(sentence: Sentence) -> str:
    text = plain(sentence.text)
    return text if len(text) <= 100 else text[:99] + "…"
