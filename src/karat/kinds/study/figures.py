"""Which number a text says. A bound, a range, a sum or a number in another unit is not the number that is asked for."""

from __future__ import annotations

import re

from karat.kinds.study.format import Answered
from karat.kinds.study.kinds import CONTRADICTORY, INVALID, OUT_OF_RANGE, TAKEN_BACK, Value
from karat.kinds.study.options import LEAD

__all__ = ["number_of"]

_LOOKED_AT = 400  # characters
_SIGN = r"(?:[-−–‐‑‒+]|\bminus\b|\bnegative\b)"
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<sign>{_SIGN}?)\s?(?P<money>[$€£]?)\s?"
    r"(?P<digits>\d{1,3}(?:,\d{3}){1,9}(?:\.\d{1,40})?|\d{1,30}(?:\.\d{1,40})?|\.\d{1,40})"
    r"(?:[eE](?P<power>[-+]?\d{1,2}))?(?![\d])(?P<unit>\s?(?:percent|per\scent|thousand|million|billion|k|m)\b|\s?[%％])?",
    re.IGNORECASE,
)
_UNITS = {"thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9}
_RANGE = re.compile(r"\s*(?:[-−–—]|to|or|and|through|up to)\s*[$€£]?\s?\d", re.IGNORECASE)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTED = (
    r"(?:dollars?|euros?|pounds?|francs?|points?|tokens?|coins?|chips?|people|persons?|students|years?|days?|times)"
)
_WORD = re.compile(rf"(?P<sign>{_SIGN}?)\s?(?P<word>{'|'.join(_WORDS)})(?:\s{_COUNTED})?\W{{0,6}}", re.IGNORECASE)
_ABOUT = r"(?:(?:about|around|roughly|approximately|approx\.|circa|nearly|almost|some)\s+)?"
_MEASURES = (  # of length, weight, time: a unit of another size is another number
    r"m|met(?:er|re)s?", r"km|kms|kilomet(?:er|re)s?", r"cm|centimet(?:er|re)s?", r"mm|millimet(?:er|re)s?",
    r"mi|miles?", r"ft|feet|foot", r"inch|inches", r"yards?|yd", r"g|grams?", r"kg|kgs|kilos?|kilograms?",
    r"tons?|tonnes?", r"lbs?", r"ounces?|oz", r"seconds?|secs?", r"minutes?|mins?", r"hours?|hrs?", r"days?",
    r"weeks?", r"months?", r"years?|yrs?",
)  # fmt: skip
_MEASURE = re.compile("|".join(rf"(?P<u{at}>{unit})" for at, unit in enumerate(_MEASURES)), re.IGNORECASE)
_OUT_OF = re.compile(r"\s*(?:/|out of|of|in)\s*(\d{1,9}(?:\.\d{1,6})?)(?![\d.]*\d)", re.IGNORECASE)
_BOUND = re.compile(  # `less than 5`, `between ten and 20`, `COVID-19`, `I keep 7`
    r"[<>≤≥±—=^*×÷√]|\b(?:not|never|less|more|fewer|under|over|below|above|least|most|up to|than|minimum|maximum|min"
    r"|max|between|from|without|twice|double|triple|third|quarter|average|mean|median|round|player|room|level|step"
    r"|keeps|kept|option|(?:my|own) share|for (?:me|myself)|squared|except|but|no|nor|neither|or|if|unless|times|plus"
    rf"|minus|negative|half|keep|retain|hundred|thousand|dozen|{'|'.join(_WORDS)})\b|n['’]t\b|\w-?$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(  # `12,5`, `1_000`, `1.234.567`, `5:30`, `5½`, `2nd`, `5 or more`, `5 hundred`, `50 cents`
    r"[.,:_'’·/]{1,2}\s?\d|[_^*×÷±²³‰½¼¾⅓⅔+°]|\s*=|\s*[-+×x*÷^]\s?\d|(?:(?:st|nd|rd|th)(?!\s+percentile\b)|x|e)\b"
    r"|[a-z]{1,8}\d|-?ish\b|['’]?s\b|\s*[¼-¾⅐-⅞]|-(?=\s*$)"
    r"|\s*(?:pct|basis|mil|mill|mln|mrd|millionen|tsd|tausend|grand|lakhs|crores|b|t|quarters?|squared|per"
    r"|and an? (?:half|third|quarter)"
    r"|(?:dollars? |euros? )?(?:for (?:me|myself)|to (?:me|keep)|(?:remains?|stays?) with me|kept))\b"
    r"|\s*(?:or (?:more|less|fewer|higher|lower|above|below|under|over)"
    r"|and (?:above|below|under|over|up|a half|a quarter)"
    r"|at (?:most|least)|max(?:imum)?|min(?:imum)?|times|minus|plus|below|above|less|more|fewer|higher|lower|greater"
    r"|hundred|hundreds|thousands|millions|mio|mn|bn|trillion|lakh|crore|dozen|dozens|score)\b",
    re.IGNORECASE,
)
_THIN = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")  # thousands, as they are set apart in print
_METRES = re.compile(r"\b(?:m|met(?:er|re)s?)\b")
_CENTS = re.compile(r"\s*(?:cents?\b|¢|pence\b)", re.IGNORECASE)
_MONEY_BEHIND = re.compile(r"\s?(?:[€¥₹]|(?:eur|euros?|chf|francs?|kr|yen)\b)", re.IGNORECASE)
_MONEY_BEFORE = re.compile(r"(?:[¥₹₩₽₺]|\b(?:chf|eur|usd|gbp|jpy|inr|kr|rs|fr)\.?)\s?\Z", re.IGNORECASE)
_ASIDE = re.compile(r"\([^()]{0,200}\)")
_REASON = re.compile(  # numbers behind it are not meant as answers
    r"\b(?:because|since|as|given|rather than|instead of|not(?= \d)"
    r"|on an? (?:\S{1,12} )?scale|on the scale)\b|[.;!]\s+(?=[A-Z])",
    re.IGNORECASE,
)


def number_of(text: str, one: Answered, *, whole: bool) -> Value:
    """The number that a text says. `whole`: it is all there is, and must be nothing but the number."""
    text = _THIN.sub(",", text[:_LOOKED_AT])
    found = list(_NUMBER.finditer(text))
    if not found:
        word = _WORD.fullmatch(text)
        if word is None:
            return Value(kind=INVALID)
        return _in_range(_signed(float(_WORDS.index(word["word"].casefold())), word["sign"]), one)
    first = found[0]
    head, rest = text[: first.start()], text[first.end() :]
    value = _valued(first, one)
    out_of = _OUT_OF.match(rest)
    if out_of is not None:
        whole_scale = one.range is not None and one.range[1] == float(out_of[1]) and not first["unit"]
        good = whole_scale and not _BOUND.search(head)
        return _in_range(value, one) if good else Value(kind=CONTRADICTORY if rest[:1] == "/" else INVALID)
    if _RANGE.match(rest):
        return Value(kind=CONTRADICTORY)
    leads = re.fullmatch(rf"\s*{LEAD}{_ABOUT}", head, re.IGNORECASE) is not None
    if whole and (not leads or re.search(r"\w{12,}|\d", rest) or len(rest) > 40 or len(rest.split()) > 2):
        return Value(kind=INVALID)
    others = {_valued(match, one) for match in found[1:]} - {value}
    if others and not (leads and _explained(rest, value)):
        return Value(kind=CONTRADICTORY)
    if _BOUND.search(head) or _GOES_ON.match(rest) or not _in_its_unit(first, rest, one):
        return Value(kind=INVALID)
    return _in_range(value, one)


def _explained(rest: str, value: float) -> bool:
    """Whether further numbers belong to a reason, an aside or a sentence of their own, and take nothing back."""
    if re.search(TAKEN_BACK, rest, re.IGNORECASE):
        return bool(_in_asides(rest, value))
    return _in_asides(rest, value) or bool(
        (mark := _REASON.search(rest))
        and not {_valued(match) for match in _NUMBER.finditer(rest[: mark.start()])} - {value}
    )


def _in_asides(rest: str, value: float) -> bool:
    outside, asides = _ASIDE.sub(" ", rest), " ".join(_ASIDE.findall(rest))
    others = {_valued(match) for match in _NUMBER.finditer(outside)} - {value}
    return not others and re.search(TAKEN_BACK, asides, re.IGNORECASE) is None


def _in_its_unit(number: re.Match[str], rest: str, one: Answered) -> bool:
    """Percent only where a share is asked for, cents only where cents are, and `5 m` may be metres or millions."""
    unit, hint = (number["unit"] or "").strip().casefold(), (one.hint or "").casefold()
    before = number.string[: number.start("digits")]
    money = number["money"] or _MONEY_BEHIND.match(rest) or _MONEY_BEFORE.search(before)
    if (money or one.whole) and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", number["digits"]):
        return False  # `€1.500`: thousands, in most of Europe
    if _other_measure(unit + rest, hint):
        return False
    if unit in {"%", "％", "percent", "per cent"}:
        high = one.range[1] if one.range is not None else None
        return high is None or high == 100 or "percent" in hint or "%" in hint
    if _CENTS.match(rest):
        return "cent" in hint or "pence" in hint
    return unit != "m" or bool(number["money"]) or _METRES.search(hint) is not None


def _other_measure(behind: str, hint: str) -> bool:
    """Whether the hint asks for metres, say, and the number is one of kilometres."""
    said = re.match(r"\s?([A-Za-z]{1,12})\b", behind)
    given = _MEASURE.fullmatch(said[1]) if said is not None else None
    asked = {found.lastgroup for word in re.findall(r"[a-z]+", hint) if (found := _MEASURE.fullmatch(word))}
    return given is not None and bool(asked) and given.lastgroup not in asked


def _valued(match: re.Match[str], one: Answered | None = None) -> float:
    unit = (match["unit"] or "").strip().casefold()
    if unit == "m" and not match["money"] and one is not None and _METRES.search((one.hint or "").casefold()):
        unit = ""
    value = float(match["digits"].replace(",", "")) * 10.0 ** int(match["power"] or 0)
    return _signed(value * _UNITS.get(unit, 1.0), match["sign"])


def _signed(value: float, sign: str) -> float:
    return -value if sign and sign != "+" and value else value


def _in_range(value: float, one: Answered) -> Value:
    low, high = one.range or (None, None)
    if (low is not None and value < low) or (high is not None and value > high):
        return Value(kind=OUT_OF_RANGE)
    if (one.whole or one.type == "likert") and value != int(value):
        return Value(kind=OUT_OF_RANGE)
    return Value(answer=value)
