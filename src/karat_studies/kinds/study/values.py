"""Reads the text of one answer as an option, a number, a ranking or words; or says why it is not an
answer.

The words around it decide: a text counts as an answer only if it cannot mean anything else. A
bound, a range, a sum or a number in another unit is not the number that was asked for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from karat_studies.kinds.study.format import Answered

REFUSED, MISSING, OUT_OF_RANGE = "refused", "missing", "out_of_range"
CONTRADICTORY, INVALID = "contradictory", "invalid"

TAKEN_BACK = (
    r"\b(?:no|wait|actually|sorry|correction|or|hmm|second thought|my mind|kidding|but|though"
    r"|although|however|then|now"
    r"|finally|final|revised|reflection|reconsidering|corrected|updated|instead(?! of)"
    r"|rather(?! than))\b"
)
"""Words after an answer that introduce a different one."""


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, or the kind of text that is there instead."""

    answer: float | str | list[str] | None = None
    kind: str | None = None  # None: there is an answer


LEAD = (
    r"(?:(?:my|the|an?|option|choice|answer|programme|program|plan|number|i(?:['’]d| would| will)?"
    r"|choose|pick|prefer"
    r"|say|go|with|is)\s+){0,6}"
)
_BEFORE = re.compile(  # may precede an option in a sentence that chooses it
    r"[\s\"'*`(\[]*(?:(?:i|i['’](?:d|ll|m|ve)|would|will|have|to|choose|chose|chosen|pick|picked|select|prefer|take|go"
    r"|going|for|with|opt|say|think|believe|that|it|it['’]s|is|was|the|an?|my|so|answer|choice|option|programme|program"
    r"|plan|definitely|probably|clearly|certainly|therefore|thus|hence|final|play|me|personally|honestly"
    r"|no doubt|of course)"
    r"[\s,:\"'*`(\[]+){0,10}",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\s*(?:$|[.,;:!?)\]}(—–]|-\s|because\b|since\b|as\b|rather\b|over\b|instead\b|for sure\b)",
    re.IGNORECASE,
)
_AND = re.compile(r"[\s.,;:!?)(]*(?:and|or|/|&|\+)\s*", re.IGNORECASE)
_SAYS_OF_IT = re.compile(  # `(A) is the worse one`: about the option, not a choice
    r"\s*(?:is|are|was|were|will|would|could|should|can|has|had|does|did|seems?|looks?|sounds?|feels?|may|might|must|not"
    r"|\w{1,8}n['’]t)\b",
    re.IGNORECASE,
)
_OPTION_REASON = re.compile(  # options named after it are not meant as answers
    r"\b(?:because|since|as|given|rather than|instead of|over|unlike|than|not)\b", re.IGNORECASE
)
# `Yes! Let me think`: words that are neither a reason nor `I think`
_SENTENCE_GOES_ON = re.compile(
    (
        r"\W{0,6}(?!(?:because|since|as|for sure|over|rather|not)\b|(?:i|he|she|it|they"
        r"|we)\s\w{1,8}\W*$)\w"
    ),
    re.IGNORECASE,
)
_LEFT_OPEN = re.compile(  # `A, wait no`, `A? Hmm`, `A - rejected`, `A vs B`
    r"\b(?:wait|actually|hmm+|rejected|on second thought|scratch that)\W*(?:no\W*)?$"
    r"|\?\s*(?:no|hmm+|nah)\b|\s(?:vs\.?|versus)\s|→",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\W{0,4}(?:no|not|nope|never)\b\s{0,3}", re.IGNORECASE)
_DENIALS = {"no", "not", "never"}  # labels that `no, not on purpose` repeats
_ORDINALS = {"first", "second", "third", "fourth", "last"}
_NO_DENIAL = re.compile(r"(?:doubt|question|matter|hesitation|only|because)\b", re.IGNORECASE)
# `A?`, `A, isn't it?`
_ASKED = re.compile(r"[^\w\n.!(]*\?|,\s*(?!why)[\w'’]+(?:\s\w+)?\s?\?", re.IGNORECASE)
_UNDECIDED = re.compile(
    r"\b(?:depends|understand|thanks?|sorry|unsure|no idea|don['’]t know"
    r"|can ?not|can['’]t|won['’]t|both|neither|either)\b",
    re.IGNORECASE,
)


def option_of(text: str, field: Answered, *, whole: bool) -> Value:
    """The option that a text chooses. `whole`: the text may contain nothing else."""
    labels = field.labels
    exact = label_of(text.rstrip(".!"), field)
    if exact is not None:
        return Value(answer=exact)
    lead = _patterns(labels).leading.match(text)
    if lead is not None and (value := _led(text[lead.end() :], lead, field)) is not None:
        if whole and value.answer is not None and _SENTENCE_GOES_ON.match(text[lead.end() :]):
            return Value(kind=INVALID)
        return value

    if whole:
        return Value(kind=INVALID)
    marks = list(_patterns(labels).standing.finditer(text))
    if len({spelled(match[1], labels) for match in marks}) > 1:
        return Value(kind=CONTRADICTORY)
    if marks and _BEFORE.fullmatch(text[: marks[0].start()]):
        rest = text[marks[0].end() :].lstrip("\"'*`)]")
        label = spelled(marks[0][1], labels)
        if _AFTER.match(rest):
            return _doubted(rest, label, field) or Value(answer=label)

    return Value(kind=INVALID)


def _led(rest: str, lead: re.Match[str], field: Answered) -> Value | None:
    """The option at the start of a text, judged by what follows; None if it may just be a word of a
    sentence.
    """
    labels = field.labels
    label = spelled(lead["label"], labels)
    also = _AND.match(rest)
    if also is not None:
        other = _patterns(labels).leading.match(rest[also.end() :])
    else:
        other = None

    if other is not None and spelled(other["label"], labels) != label:
        return Value(kind=CONTRADICTORY)
    marked = bool(set(lead["shut"]) & set(")]:*`") or (lead["shut"] and lead["open"]))
    if not (marked and not _SAYS_OF_IT.match(rest)) and not _AFTER.match(rest):
        return None
    if label.casefold() == "i" and not marked and re.match(r"\s*[,—–-]", rest):
        return Value(kind=INVALID)  # the pronoun
    if (
        label.casefold() in _ORDINALS
        and not marked
        and re.match(r"\s*,(?!\s*(?:because|since|as)\b)\s*\w", rest)
    ):
        return Value(kind=INVALID)  # `First, an even split is rare`

    return _doubted(rest, label, field) or Value(answer=label)


def _doubted(rest: str, label: str, field: Answered) -> Value | None:
    """What is wrong with an answer, given the text after it: it names another option, or takes the
    answer back.
    """
    labels = field.labels
    patterns = _patterns(labels)
    if any(
        spelled(match["label"], labels) != label for match in patterns.correcting.finditer(rest)
    ):
        return Value(kind=CONTRADICTORY)

    denied = _DENIED.match(rest)
    if denied is not None and label.casefold() not in _DENIALS:
        behind = rest[denied.end() :]
        if not _NO_DENIAL.match(behind) and not patterns.leading.match(behind):
            return Value(kind=CONTRADICTORY)

    if _LEFT_OPEN.search(rest):
        return Value(kind=CONTRADICTORY)
    reason = _OPTION_REASON.search(rest)
    if reason is None:
        plain = rest
    else:
        plain = rest[: reason.start()]

    if any(spelled(match[1], labels) != label for match in patterns.beside.finditer(plain)):
        return Value(kind=CONTRADICTORY)
    folded = " ".join(plain.casefold().split())
    if any(
        meaning.casefold() in folded for name, meaning in field.meanings.items() if name != label
    ):
        return Value(kind=CONTRADICTORY)

    if _ASKED.match(rest) or _UNDECIDED.search(plain):
        return Value(kind=INVALID)
    return None


def names_option(text: str, field: Answered) -> bool:
    """Whether a text names an option as such: a word at the end of a clause, or a letter in the
    option's own case.
    """
    labels = [label for label in field.labels if not label[:1].isdigit()]
    return bool(labels) and _patterns(tuple(labels)).beside.search(text) is not None


def label_of(text: str, field: Answered) -> str | None:
    """The option whose label or meaning the text equals."""
    folded = " ".join(text.casefold().split())
    for label in field.labels:
        meaning = field.meanings.get(label)
        known = [
            label,
            *([meaning, f"{label}: {meaning}", f"{label} ({meaning})"] if meaning else []),
        ]
        if folded in {" ".join(name.casefold().split()) for name in known}:
            return label

    return None


@dataclass(frozen=True, kw_only=True)
class _Patterns:
    leading: re.Pattern[str]  # at the start of a text
    correcting: re.Pattern[str]  # a second answer takes the first back: `A? No, B`, `A … wait, B`
    standing: re.Pattern[str]  # within a sentence: letters in their own case, and marked
    beside: re.Pattern[str]  # after an answer: letters, but not `A gamble`; words that end a clause


@lru_cache(maxsize=512)
def _patterns(labels: Sequence[str]) -> _Patterns:
    """How a text may name options with these labels. `A` and `I` are also words."""
    label = rf"(?P<label>{_any_of(labels)})"
    shut = r"(?!\w|['’]\w)(?P<shut>[)\]\"'*`:]{0,4})"
    words = [label for label in labels if len(label) > 2]
    letters = [label for label in labels if len(label) <= 2]
    standing = []
    if words:
        standing.append(rf"(?i:{_any_of(words)})")
    if letters:
        standing.append(
            rf"(?:(?<=[(\[\"'*`])|(?<=option )|(?<=Option )|(?<=choose )"
            rf"|(?<=pick ))(?:{_any_of(letters)})"
        )

    words = [label for label in labels if len(label) > 2 or label.islower()]
    letters = [label for label in labels if label not in words]
    beside = []
    if words:
        beside.append(rf"(?i:{_any_of(words)})(?=\W*$|[\"'*`)\]]{{0,4}}[.,;:!?])")
    if letters:
        beside.append(rf"(?:{_any_of(letters)})(?!(?<=[AI])\s+[a-z]|['’]\w)")
    return _Patterns(
        leading=re.compile(rf"\s*{LEAD}(?P<open>[(\[\"'*`]{{0,4}}){label}{shut}", re.IGNORECASE),
        correcting=re.compile(rf"{TAKEN_BACK}[^\n]{{0,30}}?(?<!\w){label}(?!\w)", re.IGNORECASE),
        standing=re.compile(rf"(?<!\w)({'|'.join(standing)})(?!\w)"),
        beside=re.compile(rf"(?<!\w)({'|'.join(beside)})(?!\w)"),
    )


def _any_of(labels: Sequence[str]) -> str:
    return "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))


def spelled(word: str, labels: Sequence[str]) -> str:
    """The label that a word is, whatever its capitals."""
    return next(label for label in labels if label.casefold() == word.casefold())


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
_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_COUNTED = (
    r"(?:dollars?|euros?|pounds?|francs?|points?|tokens?|coins?|chips?"
    r"|people|persons?|students|years?|days?|times)"
)
_WORD = re.compile(
    rf"(?P<sign>{_SIGN}?)\s?(?P<word>{'|'.join(_WORDS)})(?:\s{_COUNTED})?\W{{0,6}}", re.IGNORECASE
)
_ABOUT = r"(?:(?:about|around|roughly|approximately|approx\.|circa|nearly|almost|some)\s+)?"
_MEASURES = (  # of length, weight, time: in another unit it is another number
    r"m|met(?:er|re)s?",
    r"km|kms|kilomet(?:er|re)s?",
    r"cm|centimet(?:er|re)s?",
    r"mm|millimet(?:er|re)s?",
    r"mi|miles?",
    r"ft|feet|foot",
    r"inch|inches",
    r"yards?|yd",
    r"g|grams?",
    r"kg|kgs|kilos?|kilograms?",
    r"tons?|tonnes?",
    r"lbs?",
    r"ounces?|oz",
    r"seconds?|secs?",
    r"minutes?|mins?",
    r"hours?|hrs?",
    r"days?",
    r"weeks?",
    r"months?",
    r"years?|yrs?",
)
_MEASURE = re.compile(
    "|".join(rf"(?P<u{at}>{unit})" for at, unit in enumerate(_MEASURES)), re.IGNORECASE
)
_OUT_OF = re.compile(r"\s*(?:/|out of|of|in)\s*(\d{1,9}(?:\.\d{1,6})?)(?![\d.]*\d)", re.IGNORECASE)
_BOUND = re.compile(  # `less than 5`, `between ten and 20`, `COVID-19`, `I keep 7`
    r"[<>≤≥±—=^*×÷√]|\b(?:not|never|less|more|fewer|under|over|below|above|least|most|up to|than"
    r"|minimum|maximum|min"
    r"|max|between|from|without|twice|double|triple|third|quarter|average|mean|median|round|player|room|level|step"
    r"|keeps|kept|option|(?:my|own) share|for (?:me|myself)|squared|except|but|no|nor|neither|or"
    r"|if|unless|times|plus"
    rf"|minus|negative|half|keep|retain|hundred|thousand|dozen|{'|'.join(_WORDS)})\b|n['’]t\b|\w-?$",
    re.IGNORECASE,
)
# `12,5`, `1_000`, `1.234.567`, `5:30`, `5½`, `2nd`, `5 or more`, `5 hundred`, `50 cents`
_NUMBER_GOES_ON = re.compile(
    r"[.,:_'’·/]{1,2}\s?\d|[_^*×÷±²³‰½¼¾⅓⅔+°]|\s*=|\s*[-+×x*÷^]\s?\d|(?:(?:st|nd|rd|th)(?!\s+percentile\b)|x|e)\b"
    r"|[a-z]{1,8}\d|-?ish\b|['’]?s\b|\s*[¼-¾⅐-⅞]|-(?=\s*$)"
    r"|\s*(?:pct|basis|mil|mill|mln|mrd|millionen|tsd|tausend|grand|lakhs|crores|b|t|quarters?|squared|per"
    r"|and an? (?:half|third|quarter)"
    r"|(?:dollars? |euros? )?(?:for (?:me|myself)|to (?:me|keep)|(?:remains?|stays?) with me"
    r"|kept))\b"
    r"|\s*(?:or (?:more|less|fewer|higher|lower|above|below|under|over)"
    r"|and (?:above|below|under|over|up|a half|a quarter)"
    r"|at (?:most|least)|max(?:imum)?|min(?:imum)?|times|minus|plus|below|above|less|more|fewer"
    r"|higher|lower|greater"
    r"|hundred|hundreds|thousands|millions|mio|mn|bn|trillion|lakh|crore|dozen|dozens|score)\b",
    re.IGNORECASE,
)
# thousands separators, as printed
_THIN = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_METRES = re.compile(r"\b(?:m|met(?:er|re)s?)\b")
_CENTS = re.compile(r"\s*(?:cents?\b|¢|pence\b)", re.IGNORECASE)
_MONEY_BEHIND = re.compile(r"\s?(?:[€¥₹]|(?:eur|euros?|chf|francs?|kr|yen)\b)", re.IGNORECASE)
_MONEY_BEFORE = re.compile(
    r"(?:[¥₹₩₽₺]|\b(?:chf|eur|usd|gbp|jpy|inr|kr|rs|fr)\.?)\s?\Z", re.IGNORECASE
)
_ASIDE = re.compile(r"\([^()]{0,200}\)")
_NUMBER_REASON = re.compile(  # numbers after it are not meant as answers
    r"\b(?:because|since|as|given|rather than|instead of|not(?= \d)"
    r"|on an? (?:\S{1,12} )?scale|on the scale)\b|[.;!]\s+(?=[A-Z])",
    re.IGNORECASE,
)


def number_of(text: str, field: Answered, *, whole: bool) -> Value:
    """The number that a text gives. `whole`: the text may contain nothing else."""
    text = _THIN.sub(",", text[:_LOOKED_AT])
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        word = _WORD.fullmatch(text)
        if word is None:
            return Value(kind=INVALID)
        return _in_range(_signed(float(_WORDS.index(word["word"].casefold())), word["sign"]), field)

    first = numbers[0]
    head = text[: first.start()]
    rest = text[first.end() :]
    value = _valued(first, field)
    out_of = _OUT_OF.match(rest)
    if out_of is not None:
        whole_scale = (
            field.range is not None and field.range[1] == float(out_of[1]) and not first["unit"]
        )
        good = whole_scale and not _BOUND.search(head)
        if good:
            return _in_range(value, field)
        return Value(kind=CONTRADICTORY if rest[:1] == "/" else INVALID)

    if _RANGE.match(rest):
        return Value(kind=CONTRADICTORY)
    leads = re.fullmatch(rf"\s*{LEAD}{_ABOUT}", head, re.IGNORECASE) is not None
    if whole and (
        not leads or re.search(r"\w{12,}|\d", rest) or len(rest) > 40 or len(rest.split()) > 2
    ):
        return Value(kind=INVALID)

    others = {_valued(match, field) for match in numbers[1:]} - {value}
    if others:
        # Further numbers may belong to a reason, an aside or a separate sentence that does not
        # correct the answer
        taken_back = re.compile(TAKEN_BACK, re.IGNORECASE)
        outside = _ASIDE.sub(" ", rest)
        asides = " ".join(_ASIDE.findall(rest))
        explained = not _others(outside, value) and taken_back.search(asides) is None
        reason = _NUMBER_REASON.search(rest)
        if reason is not None and taken_back.search(rest) is None:
            explained = explained or not _others(rest[: reason.start()], value)
        if not leads or not explained:
            return Value(kind=CONTRADICTORY)
    if _BOUND.search(head) or _NUMBER_GOES_ON.match(rest) or not _in_its_unit(first, rest, field):
        return Value(kind=INVALID)
    return _in_range(value, field)


def _others(text: str, value: float) -> set[float]:
    """The numbers in a text besides this one."""
    return {_valued(match) for match in _NUMBER.finditer(text)} - {value}


def _in_its_unit(number: re.Match[str], rest: str, field: Answered) -> bool:
    """Allows percent only if a share is asked for, and cents only if cents are; `5 m` may be metres
    or millions.
    """
    unit = (number["unit"] or "").strip().casefold()
    hint = (field.hint or "").casefold()
    before = number.string[: number.start("digits")]
    money = number["money"] or _MONEY_BEHIND.match(rest) or _MONEY_BEFORE.search(before)
    if (money or field.whole) and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", number["digits"]):
        return False  # `€1.500`: thousands, in most of Europe

    # Whether the number has another unit than the hint asks for, e.g. kilometres instead of
    # metres.
    behind_word = re.match(r"\s?([A-Za-z]{1,12})\b", unit + rest)
    if behind_word is not None:
        given = _MEASURE.fullmatch(behind_word[1])
    else:
        given = None

    asked = {
        match.lastgroup
        for word in re.findall(r"[a-z]+", hint)
        if (match := _MEASURE.fullmatch(word))
    }
    other_measure = given is not None and bool(asked) and given.lastgroup not in asked

    if other_measure:
        return False
    if unit in {"%", "％", "percent", "per cent"}:
        if field.range is not None:
            high = field.range[1]
        else:
            high = None

        return high is None or high == 100 or "percent" in hint or "%" in hint

    if _CENTS.match(rest):
        return "cent" in hint or "pence" in hint
    return unit != "m" or bool(number["money"]) or _METRES.search(hint) is not None


def _valued(match: re.Match[str], field: Answered | None = None) -> float:
    unit = (match["unit"] or "").strip().casefold()
    if (
        unit == "m"
        and not match["money"]
        and field is not None
        and _METRES.search((field.hint or "").casefold())
    ):
        unit = ""

    value = float(match["digits"].replace(",", "")) * 10.0 ** int(match["power"] or 0)
    return _signed(value * _UNITS.get(unit, 1.0), match["sign"])


def _signed(value: float, sign: str) -> float:
    if sign and sign != "+" and value:
        return -value
    return value


def _in_range(value: float, field: Answered) -> Value:
    low, high = field.range or (None, None)
    if (low is not None and value < low) or (high is not None and value > high):
        return Value(kind=OUT_OF_RANGE)
    if (field.whole or field.type == "likert") and value != int(value):
        return Value(kind=OUT_OF_RANGE)
    return Value(answer=value)


_LONGEST = 4_000
_REFUSAL = re.compile(
    r"\bI(?: really| just)?(?: ?['’]d| would| must| have to| am|['’]m)?(?: not able| unable"
    r"| not going)?(?: to)?"
    r"(?: can ?not| can['’]t| won['’]t| will not| refuse| decline| prefer not| rather not"
    r"| do not wish"
    r"| don['’]t want)\b"
    r"|\bI(?: am|['’]m) (?:not able|unable|not comfortable|not in a position)\b"
    r"|\b(?:can ?not|can['’]t|unable to|refuse to|decline to|prefer not to|rather not) (?:answer"
    r"|choose|say|decide|provide|participate|take part|pick|give|comply|help)\b"
    r"|\bas an? (?:AI|language model|artificial)\b"
    r"|^[^\w\n]{0,9}(?:n/?a|none|no answer|no comment|refused?|declined?)[^\w\n]{0,9}$",
    re.IGNORECASE | re.MULTILINE,
)
_UNFILLED = re.compile(  # placeholders of the form: `[your answer]`, `...`
    r"[\W_]*|[\[<(]*(?:insert |enter |write |put |type )?(?:your|the|my|an) (?:own )?(?:short "
    r"|brief |final )?"
    r"(?:answer|text|reasons?|reasoning|response|words|explanation)(?: here)?[\])>.]*",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\W{0,4}(?P<place>\d{0,2})\W{0,4}(?P<name>.*)", re.DOTALL)
_MARKS = "*_`\"'[] ."
_QUOTES = "*_`\"' \t|“”„‘’«»"
_AROUND = re.compile(r"<([^<>]+)>|\{([^{}]+)\}|\\boxed\s?\{(?:\\text\s?\{)?([^{}]+)\}{1,2}")
_APART = tuple(  # separators of ranked options; never two kinds at once: `a/b > c` is a tie
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
    """Whether a text refuses to answer."""
    return (
        _REFUSAL.search(text[:_LONGEST]) is not None
        or _REFUSAL.search(text[-_LONGEST:]) is not None
    )


def unfilled(text: str) -> bool:
    """Whether a text answer is still the form's placeholder."""
    return _UNFILLED.fullmatch(text[:_LONGEST]) is not None


def value_of(text: str, field: Answered, *, whole: bool = False) -> Value:
    """The answer in the text after a key. `whole`: the text may contain nothing else."""
    # Without quotes, placeholder brackets and emoji around it
    plain = text[:_LONGEST].strip().strip(_QUOTES)
    around = _AROUND.fullmatch(plain)
    if around is not None:
        plain = next(part for part in around.groups() if part is not None)
    categories = [unicodedata.category(letter) for letter in plain[:4]]
    own = (at for at, category in enumerate(categories) if category not in {"So", "Mn", "Zs"})
    plain = plain[next(own, 0) :].strip(_QUOTES).strip()
    if plain.endswith((",", "}", '"')):
        plain = plain.rstrip(',}" ')
    if not plain:
        return Value(kind=MISSING)
    if field.type == "text":
        if unfilled(plain):
            return Value(kind=MISSING)
        if refuses(plain) and len(plain) < 400:
            return Value(kind=REFUSED)
        return Value(answer=plain)

    if field.type == "rank":
        # All options, each once; separated by commas, `>` or numbered lines, else by other marks
        listed = "," in plain or "then" in plain
        usual, *others = (apart for apart in _APART if listed or "and" not in apart.pattern)
        value = _ranked(usual.split(plain), field)
        if value.kind == INVALID:
            tried = (_ranked(apart.split(plain), field) for apart in others)
            value = next((other for other in tried if other.answer is not None), value)
    elif field.type == "choice":
        value = option_of(plain, field, whole=whole)
    else:
        value = number_of(plain, field, whole=whole)

    if value.kind == INVALID and refuses(plain):
        return Value(kind=REFUSED)
    return value


def _ranked(texts: Sequence[str], field: Answered) -> Value:
    parts = []
    for part in texts:
        if (match := _PLACE.match(part)) and match["name"].strip(_MARKS):
            parts.append(match)

    order = [
        label
        for part in parts
        if (label := label_of(part["name"].strip(_MARKS), field)) is not None
    ]
    if len(order) < len(parts):
        return Value(kind=INVALID)
    places = [int(part["place"]) for part in parts if part["place"]]
    if len(set(order)) < len(order) or places != sorted(set(places)):
        return Value(kind=CONTRADICTORY)  # also `2. warm, 1. cold`: which of the two is first?
    if len(order) == len(field.labels):
        return Value(answer=order)
    return Value(kind=INVALID)
