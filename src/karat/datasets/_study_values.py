"""One answer as text → an option, a number, a ranking or words; or why it is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from karat.datasets._study_format import Answered

__all__ = ["CONTRADICTORY", "INVALID", "MISSING", "OUT_OF_RANGE", "REFUSED", "Value", "refuses", "value_of"]

REFUSED, MISSING, OUT_OF_RANGE = "refused", "missing", "out_of_range"
CONTRADICTORY, INVALID = "contradictory", "invalid"

_LONGEST = 4_000
_REFUSAL = re.compile(
    r"\bI(?: really| just)?(?: ?['’]d| would| must| have to| am|['’]m)?(?: not able| unable| not going)?(?: to)?"
    r"(?: can ?not| can['’]t| won['’]t| will not| refuse| decline| prefer not| rather not| do not wish"
    r"| don['’]t want)\b"
    r"|\bI(?: am|['’]m) (?:not able|unable|not comfortable|not in a position)\b"
    r"|\b(?:can ?not|can['’]t|unable to|refuse to|decline to|prefer not to|rather not) "
    r"(?:answer|choose|say|decide|provide|participate|take part|pick|give|comply|help)\b"
    r"|\bas an? (?:AI|language model|artificial)\b"
    r"|^[^\w\n]{0,9}(?:n/?a|none|no answer|no comment|refused?|declined?)[^\w\n]{0,9}$",
    re.IGNORECASE | re.MULTILINE,
)
_NOT = re.compile(r"\b(?:not|neither|nor|never|no longer|isn['’]t|wouldn['’]t|don['’]t)\b", re.IGNORECASE)
_AFTER = re.compile(
    r"\s*(?:$|[.,;:!?)\]}(—–]|-\s|because\b|since\b|as\b|rather\b|over\b|instead\b|for sure\b)", re.IGNORECASE
)
_AND = re.compile(r"[\s.,;:!?)(]*(?:and|or|/|&|\+)\s*", re.IGNORECASE)
_TAKEN_BACK = r"\b(?:no|wait|actually|sorry|correction|or|hmm|second thought|my mind)\b"
_LEAD = (
    r"(?:(?:my|the|an?|option|choice|answer|programme|program|plan|number|i(?:['’]d| would| will)?|choose|pick|prefer"
    r"|say|go|with|is)\s+){0,6}"
)
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-−–+]?)\s?[$€£]?\s?"
    r"(?P<digits>\d{1,3}(?:,\d{3}){1,9}(?:\.\d{1,12})?|\d{1,30}(?:\.\d{1,12})?|\.\d{1,12})"
    r"(?:[eE](?P<power>[-+]?\d{1,2}))?(?![\d])(?P<unit>\s?(?:%|thousand|million|billion|k|m)\b|%)?",
    re.IGNORECASE,
)
_UNITS = {"thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9}
_RANGE = re.compile(r"\s*(?:[-−–—]|to|or|and|through|up to)\s*[$€£]?\s?\d", re.IGNORECASE)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_OUT_OF = re.compile(r"\s*(?:/|out of|of)\s*(\d{1,9}(?:\.\d{1,6})?)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """An answer, or the kind of thing that stands in its place."""

    answer: float | str | list[str] | None = None
    kind: str | None = None  # None: there is an answer


def refuses(text: str) -> bool:
    """Whether a text says that there will be no answer."""
    return _REFUSAL.search(text[:_LONGEST]) is not None or _REFUSAL.search(text[-_LONGEST:]) is not None


def value_of(text: str, one: Answered, *, whole: bool = False) -> Value:
    """What the text behind a key says. `whole`: it is all there is, and must be nothing but the answer."""
    plain = text[:_LONGEST].strip().strip("*_`\"' \t").strip()
    if plain.endswith((",", "}", '"')):
        plain = plain.rstrip(',}" ')
    if not plain:
        return Value(kind=MISSING)
    if one.type == "text":
        return Value(kind=REFUSED) if refuses(plain) and len(plain) < 400 else Value(answer=plain)
    if one.type == "rank":
        found = _ranking(plain, one)
    elif one.type == "choice":
        found = _option(plain, one, whole=whole)
    else:
        found = _number(plain, one, whole=whole)
    return Value(kind=REFUSED) if found.kind == INVALID and refuses(plain) else found


def _option(text: str, one: Answered, *, whole: bool) -> Value:
    labels = one.labels
    exact = _label(text.rstrip(".!"), one)
    if exact is not None:
        return Value(answer=exact)
    lead = _leading(labels).match(text)
    if lead is not None:
        rest = text[lead.end() :]
        label = _spelled(lead["label"], labels)
        also = _AND.match(rest)
        other = _leading(labels).match(rest[also.end() :]) if also is not None else None
        if other is not None and _spelled(other["label"], labels) != label:
            return Value(kind=CONTRADICTORY)
        if any(_spelled(match["label"], labels) != label for match in _correcting(labels).finditer(rest)):
            return Value(kind=CONTRADICTORY)
        if lead["shut"] or _AFTER.match(rest):
            return Value(answer=label)
    if whole:
        return Value(kind=INVALID)
    named = {_spelled(match[1], labels) for match in _standing(labels).finditer(text)}
    if len(named) > 1:
        return Value(kind=CONTRADICTORY)
    if len(named) == 1 and not _NOT.search(text):
        return Value(answer=named.pop())
    return Value(kind=INVALID)


def _label(text: str, one: Answered) -> str | None:
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
        rf"\s*{_LEAD}[(\[\"'*`]{{0,4}}(?P<label>{_any_of(labels)})(?!\w)(?P<shut>[)\]\"'*`:]{{0,4}})", re.IGNORECASE
    )


@lru_cache(maxsize=512)
def _correcting(labels: Sequence[str]) -> re.Pattern[str]:
    """A second answer that takes the first one back: `A? No, B`, `A … wait, B`."""
    return re.compile(rf"{_TAKEN_BACK}[^\n]{{0,30}}?(?<!\w)(?P<label>{_any_of(labels)})(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=512)
def _standing(labels: Sequence[str]) -> re.Pattern[str]:
    """Labels within a sentence. `A` and `I` are words there: letters count only as they are written, and marked."""
    words = [label for label in labels if len(label) > 2]
    letters = [label for label in labels if len(label) <= 2]
    parts = [rf"(?i:{_any_of(words)})"] if words else []
    if letters:
        parts.append(rf"(?:(?<=[(\[\"'*`])|(?<=option )|(?<=Option )|(?<=choose )|(?<=pick ))(?:{_any_of(letters)})")
    return re.compile(rf"(?<!\w)({'|'.join(parts)})(?!\w)")


def _any_of(labels: Sequence[str]) -> str:
    return "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))


def _spelled(found: str, labels: Sequence[str]) -> str:
    return next(label for label in labels if label.casefold() == found.casefold())


def _number(text: str, one: Answered, *, whole: bool) -> Value:
    found = list(_NUMBER.finditer(text[:400]))
    if not found:
        word = re.sub(r"[^a-z]", "", text.casefold())
        return _in_range(float(_WORDS.index(word)), one) if word in _WORDS else Value(kind=INVALID)
    first = found[0]
    rest = text[first.end() :]
    value = _valued(first)
    out_of = _OUT_OF.match(rest)
    if out_of is not None and one.range is not None and one.range[1] == float(out_of[1]):
        return _in_range(value, one)
    if _RANGE.match(rest):
        return Value(kind=CONTRADICTORY)
    leads = re.fullmatch(rf"\s*{_LEAD}", text[: first.start()], re.IGNORECASE) is not None
    if whole and (not leads or re.search(r"\w{12,}|\d", rest) or len(rest) > 40):
        return Value(kind=INVALID)
    others = {_valued(match) for match in found[1:]} - {value}
    if others and re.search(_TAKEN_BACK, rest, re.IGNORECASE):
        return Value(kind=CONTRADICTORY)
    if others and not (leads and re.match(r"\s*[a-z%$€(.,;:–—-]", rest, re.IGNORECASE)):
        return Value(kind=CONTRADICTORY)
    if not leads and others:
        return Value(kind=CONTRADICTORY)
    return _in_range(value, one)


def _valued(match: re.Match[str]) -> float:
    value = float(match["digits"].replace(",", "")) * 10.0 ** int(match["power"] or 0)
    value *= _UNITS.get((match["unit"] or "").strip().casefold(), 1.0)
    return -value if match["sign"] in {"-", "−", "–"} else value


def _in_range(value: float, one: Answered) -> Value:
    low, high = one.range or (None, None)
    if (low is not None and value < low) or (high is not None and value > high):
        return Value(kind=OUT_OF_RANGE)
    if (one.whole or one.type == "likert") and value != int(value):
        return Value(kind=OUT_OF_RANGE)
    return Value(answer=value)


def _ranking(text: str, one: Answered) -> Value:
    """Every option once, the first first; behind commas, `>`, or in numbered lines."""
    parts = [re.sub(r"^\W{0,4}\d{0,2}\W{0,4}", "", part).strip("*_`\"'[] .") for part in re.split(r"[,;>\n]", text)]
    order = [label for part in parts if part and (label := _label(part, one)) is not None]
    if len(order) < len([part for part in parts if part]):
        return Value(kind=INVALID)
    if len(set(order)) < len(order):
        return Value(kind=CONTRADICTORY)
    return Value(answer=order) if len(order) == len(one.labels) else Value(kind=INVALID)
