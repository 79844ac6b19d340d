"""Which of the options a text says. Words around an option decide: only what can mean nothing else is an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from karat.kinds.study.format import Answered
from karat.kinds.study.kinds import CONTRADICTORY, INVALID, TAKEN_BACK, Value

__all__ = ["label_of", "names_option", "option_of"]

LEAD = (
    r"(?:(?:my|the|an?|option|choice|answer|programme|program|plan|number|i(?:['’]d| would| will)?|choose|pick|prefer"
    r"|say|go|with|is)\s+){0,6}"
)
_BEFORE = re.compile(  # what may stand before an option in a sentence that chooses it
    r"[\s\"'*`(\[]*(?:(?:i|i['’](?:d|ll|m|ve)|would|will|have|to|choose|chose|chosen|pick|picked|select|prefer|take|go"
    r"|going|for|with|opt|say|think|believe|that|it|it['’]s|is|was|the|an?|my|so|answer|choice|option|programme|program"
    r"|plan|definitely|probably|clearly|certainly|therefore|thus|hence|final|play|me|personally|honestly"
    r"|no doubt|of course)"
    r"[\s,:\"'*`(\[]+){0,10}",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\s*(?:$|[.,;:!?)\]}(—–]|-\s|because\b|since\b|as\b|rather\b|over\b|instead\b|for sure\b)", re.IGNORECASE
)
_AND = re.compile(r"[\s.,;:!?)(]*(?:and|or|/|&|\+)\s*", re.IGNORECASE)
_SAYS_OF_IT = re.compile(  # `(A) is the worse one`: the option is spoken of, not chosen
    r"\s*(?:is|are|was|were|will|would|could|should|can|has|had|does|did|seems?|looks?|sounds?|feels?|may|might|must|not"
    r"|\w{1,8}n['’]t)\b",
    re.IGNORECASE,
)
_REASON = re.compile(  # options named behind it are not meant as answers
    r"\b(?:because|since|as|given|rather than|instead of|over|unlike|than|not)\b", re.IGNORECASE
)
_GOES_ON = re.compile(  # `Yes! Let me think`: words that are no reason, and no `I think`
    r"\W{0,6}(?!(?:because|since|as|for sure|over|rather|not)\b|(?:i|he|she|it|they|we)\s\w{1,8}\W*$)\w", re.IGNORECASE
)
_LEFT_OPEN = re.compile(  # `A, wait no`, `A? Hmm`, `A - rejected`, `A vs B`
    r"\b(?:wait|actually|hmm+|rejected|on second thought|scratch that)\W*(?:no\W*)?$"
    r"|\?\s*(?:no|hmm+|nah)\b|\s(?:vs\.?|versus)\s|→",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\W{0,4}(?:no|not|nope|never)\b\s{0,3}", re.IGNORECASE)
_DENIALS = {"no", "not", "never"}  # labels that `no, not on purpose` says again
_ORDINALS = {"first", "second", "third", "fourth", "last"}
_NO_DENIAL = re.compile(r"(?:doubt|question|matter|hesitation|only|because)\b", re.IGNORECASE)
_UNDECIDED = re.compile(
    r"\b(?:depends|understand|thanks?|sorry|unsure|no idea|don['’]t know"
    r"|can ?not|can['’]t|won['’]t|both|neither|either)\b",
    re.IGNORECASE,
)


def option_of(text: str, one: Answered, *, whole: bool) -> Value:
    """The option that a text chooses. `whole`: nothing but the option may be there."""
    labels = one.labels
    exact = label_of(text.rstrip(".!"), one)
    if exact is not None:
        return Value(answer=exact)
    lead = _leading(labels).match(text)
    if lead is not None and (found := _led(text[lead.end() :], lead, one)) is not None:
        if whole and found.answer is not None and _GOES_ON.match(text[lead.end() :]):
            return Value(kind=INVALID)
        return found
    if whole:
        return Value(kind=INVALID)
    marks = list(_standing(labels).finditer(text))
    if len({_spelled(match[1], labels) for match in marks}) > 1:
        return Value(kind=CONTRADICTORY)
    if marks and _BEFORE.fullmatch(text[: marks[0].start()]):
        rest = text[marks[0].end() :].lstrip("\"'*`)]")
        label = _spelled(marks[0][1], labels)
        if _AFTER.match(rest):
            return _doubted(rest, label, one) or Value(answer=label)
    return Value(kind=INVALID)


def _led(rest: str, lead: re.Match[str], one: Answered) -> Value | None:
    """The option at the head of a text, by what follows it; None where it may be a word of a sentence."""
    labels = one.labels
    label = _spelled(lead["label"], labels)
    also = _AND.match(rest)
    other = _leading(labels).match(rest[also.end() :]) if also is not None else None
    if other is not None and _spelled(other["label"], labels) != label:
        return Value(kind=CONTRADICTORY)
    marked = bool(set(lead["shut"]) & set(")]:*`") or (lead["shut"] and lead["open"]))
    if not (marked and not _SAYS_OF_IT.match(rest)) and not _AFTER.match(rest):
        return None
    if label.casefold() == "i" and not marked and re.match(r"\s*[,—–-]", rest):
        return Value(kind=INVALID)  # the pronoun
    if label.casefold() in _ORDINALS and not marked and re.match(r"\s*,(?!\s*(?:because|since|as)\b)\s*\w", rest):
        return Value(kind=INVALID)  # `First, an even split is rare`
    return _doubted(rest, label, one) or Value(answer=label)


def _doubted(rest: str, label: str, one: Answered) -> Value | None:
    """What is wrong with an answer, by the text behind it: another option beside it, or the answer taken back."""
    labels = one.labels
    if any(_spelled(match["label"], labels) != label for match in _correcting(labels).finditer(rest)):
        return Value(kind=CONTRADICTORY)
    denied = _DENIED.match(rest)
    if denied is not None and label.casefold() not in _DENIALS:
        behind = rest[denied.end() :]
        if not _NO_DENIAL.match(behind) and not _leading(labels).match(behind):
            return Value(kind=CONTRADICTORY)
    if _LEFT_OPEN.search(rest):
        return Value(kind=CONTRADICTORY)
    reason = _REASON.search(rest)
    plain = rest if reason is None else rest[: reason.start()]
    if any(_spelled(match[1], labels) != label for match in _beside(labels).finditer(plain)):
        return Value(kind=CONTRADICTORY)
    folded = " ".join(plain.casefold().split())
    if any(meaning.casefold() in folded for name, meaning in one.meanings.items() if name != label):
        return Value(kind=CONTRADICTORY)
    return Value(kind=INVALID) if _UNDECIDED.search(plain) else None


def names_option(text: str, one: Answered) -> bool:
    """Whether an option stands in a text as such: a word at the end of a clause, a letter as it is written."""
    labels = [label for label in one.labels if not label[:1].isdigit()]
    return bool(labels) and _beside(tuple(labels)).search(text) is not None


def label_of(text: str, one: Answered) -> str | None:
    """The option that a text is, by label or by meaning."""
    folded = " ".join(text.casefold().split())
    for label in one.labels:
        meaning = one.meanings.get(label)
        known = [label, *([meaning, f"{label}: {meaning}", f"{label} ({meaning})"] if meaning else [])]
        if folded in {" ".join(name.casefold().split()) for name in known}:
            return label
    return None


@lru_cache(maxsize=512)
def _leading(labels: Sequence[str]) -> re.Pattern[str]:
    return re.compile(
        rf"\s*{LEAD}(?P<open>[(\[\"'*`]{{0,4}})(?P<label>{_any_of(labels)})(?!\w|['’]\w)(?P<shut>[)\]\"'*`:]{{0,4}})",
        re.IGNORECASE,
    )


@lru_cache(maxsize=512)
def _correcting(labels: Sequence[str]) -> re.Pattern[str]:
    """A second answer that takes the first one back: `A? No, B`, `A … wait, B`."""
    return re.compile(rf"{TAKEN_BACK}[^\n]{{0,30}}?(?<!\w)(?P<label>{_any_of(labels)})(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=512)
def _standing(labels: Sequence[str]) -> re.Pattern[str]:
    """Labels within a sentence. `A` and `I` are words there: letters count only as they are written, and marked."""
    words = [label for label in labels if len(label) > 2]
    letters = [label for label in labels if len(label) <= 2]
    parts = [rf"(?i:{_any_of(words)})"] if words else []
    if letters:
        parts.append(rf"(?:(?<=[(\[\"'*`])|(?<=option )|(?<=Option )|(?<=choose )|(?<=pick ))(?:{_any_of(letters)})")
    return re.compile(rf"(?<!\w)({'|'.join(parts)})(?!\w)")


@lru_cache(maxsize=512)
def _beside(labels: Sequence[str]) -> re.Pattern[str]:
    """Labels beside an answer: letters as they are written, but not `A gamble`; words where a clause ends with them."""
    words = [label for label in labels if len(label) > 2 or label.islower()]
    letters = [label for label in labels if label not in words]
    parts = [rf"(?i:{_any_of(words)})(?=\W*$|[\"'*`)\]]{{0,4}}[.,;:!?])"] if words else []
    if letters:
        parts.append(rf"(?:{_any_of(letters)})(?!(?<=[AI])\s+[a-z]|['’]\w)")
    return re.compile(rf"(?<!\w)({'|'.join(parts)})(?!\w)")


def _any_of(labels: Sequence[str]) -> str:
    return "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))


def _spelled(found: str, labels: Sequence[str]) -> str:
    return next(label for label in labels if label.casefold() == found.casefold())
