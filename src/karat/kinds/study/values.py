"""One answer as text → an option, a number, a ranking or words; or why it is none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from karat.kinds.study.figures import number_of
from karat.kinds.study.format import Answered
from karat.kinds.study.kinds import CONTRADICTORY, INVALID, MISSING, OUT_OF_RANGE, REFUSED, Value
from karat.kinds.study.options import label_of, option_of

__all__ = ["CONTRADICTORY", "INVALID", "MISSING", "OUT_OF_RANGE", "REFUSED", "Value", "refuses", "unfilled", "value_of"]

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
_UNFILLED = re.compile(  # a form's own words: `[your answer]`, `...`
    r"[\W_]*|[\[<(]*(?:insert |enter |write |put |type )?(?:your|the|my|an) (?:own )?(?:short |brief |final )?"
    r"(?:answer|text|reasons?|reasoning|response|words|explanation)(?: here)?[\])>.]*",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\W{0,4}(?P<place>\d{0,2})\W{0,4}(?P<name>.*)", re.DOTALL)
_MARKS = "*_`\"'[] ."
_QUOTES = "*_`\"' \t|“”„‘’«»"
_AROUND = re.compile(r"<([^<>]+)>|\{([^{}]+)\}|\\boxed\s?\{(?:\\text\s?\{)?([^{}]+)\}{1,2}")
_APART = tuple(  # what stands between ranked options; never two of a kind at once: `a/b > c` has a tie
    re.compile(apart, re.IGNORECASE)
    for apart in (
        r"[,;>\n]",
        r",\s*(?:and\s+)?(?:then\s+)?|\s+(?:and\s+)?then\s+",
        r",|(?<=,)\s*and\s+|(?<=[^,\s])\s+and\s+(?=[^,]*$)",
        r"→|->",
        r"/",
        r"\s(?=\d{1,2}[.)]\s)",
    )
)


def refuses(text: str) -> bool:
    """Whether a text says that there will be no answer."""
    return _REFUSAL.search(text[:_LONGEST]) is not None or _REFUSAL.search(text[-_LONGEST:]) is not None


def unfilled(text: str) -> bool:
    """Whether words that are asked for are left as the form has them."""
    return _UNFILLED.fullmatch(text[:_LONGEST]) is not None


def value_of(text: str, one: Answered, *, whole: bool = False) -> Value:
    """What the text behind a key says. `whole`: it is all there is, and must be nothing but the answer."""
    plain = _bare(text[:_LONGEST])
    if plain.endswith((",", "}", '"')):
        plain = plain.rstrip(',}" ')
    if not plain:
        return Value(kind=MISSING)
    if one.type == "text":
        if unfilled(plain):
            return Value(kind=MISSING)
        return Value(kind=REFUSED) if refuses(plain) and len(plain) < 400 else Value(answer=plain)
    if one.type == "rank":
        found = _ranking(plain, one)
    elif one.type == "choice":
        found = option_of(plain, one, whole=whole)
    else:
        found = number_of(plain, one, whole=whole)
    return Value(kind=REFUSED) if found.kind == INVALID and refuses(plain) else found


def _bare(text: str) -> str:
    """An answer without quotes, brackets of a form, and pictures around it."""
    plain = text.strip().strip(_QUOTES)
    around = _AROUND.fullmatch(plain)
    plain = plain if around is None else next(part for part in around.groups() if part is not None)
    ends = [at for at, letter in enumerate(plain[:4]) if unicodedata.category(letter) not in {"So", "Mn", "Zs"}]
    return plain[ends[0] if ends else 0 :].strip(_QUOTES).strip()


def _ranking(text: str, one: Answered) -> Value:
    """Every option once, the first first; behind commas, `>`, or in numbered lines; else behind other marks."""
    usual, *others = (apart for apart in _APART if "and" not in apart.pattern or "," in text or "then" in text)
    found = _ranked(usual.split(text), one)
    if found.kind != INVALID:
        return found
    return next((other for apart in others if (other := _ranked(apart.split(text), one)).answer is not None), found)


def _ranked(texts: Sequence[str], one: Answered) -> Value:
    parts = [match for part in texts if (match := _PLACE.match(part)) and match["name"].strip(_MARKS)]
    order = [label for part in parts if (label := label_of(part["name"].strip(_MARKS), one)) is not None]
    if len(order) < len(parts):
        return Value(kind=INVALID)
    places = [int(part["place"]) for part in parts if part["place"]]
    if len(set(order)) < len(order) or places != sorted(set(places)):
        return Value(kind=CONTRADICTORY)  # also `2. warm, 1. cold`: which of the two is first?
    return Value(answer=order) if len(order) == len(one.labels) else Value(kind=INVALID)
