"""Text as tokens: words, names, code and numbers with their units. Linear time, whatever the text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "CODE",
    "HEDGE",
    "NAME",
    "NEGATION",
    "NUMBER",
    "POLARITY",
    "STOP",
    "WORD",
    "Number",
    "Token",
    "is_unit",
    "number_at",
    "tokens",
]

STOP, NEGATION, HEDGE, WORD, NAME, CODE, NUMBER, POLARITY = range(8)

# Every repeat is bounded and the pieces of a token share no character with what joins them,
# so that no text makes this slow; a token is at most 400 characters long.
_TOKEN = re.compile(
    r"[^\W\d\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]\w{0,79}(?:[-'’./:@]\w{1,40}){0,8}"
    r"|(?<![\w.-])--?[A-Za-z][\w-]{0,79}"  # a flag
    r"|(?:(?<![\w)\]])[-−])?(?:"
    r"\d{1,3}(?:[.\u00a0\u202f]\d{3}){1,12},\d{1,40}(?![.,]?\d)"  # 1.200,50
    r"|(?<!\d,)(?:\d{1,40},\d{1,2}|0,\d{1,40})(?![.,]?\d)"  # 1200,50; but 1,2,3 is three numbers
    r"|\d{1,40}(?:[,\u00a0\u202f]\d{3}(?!\d)){0,12}(?:\.\d{1,40}){0,5})"  # 1,200.50 and versions
    r"|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # scripts without spaces: each character
    r"|%"
)
_DECIMAL_COMMA = re.compile(r"-?(?:[\d.]*,\d{1,2}|0,\d+|\d{1,3}(?:\.\d{3})+,\d+)")
_POINTS_GROUP = re.compile(r"-?[1-9]\d{0,2}(?:\.\d{3}){1,2}")  # 1.200.000; a single point may be a decimal one
_PIECES = re.compile(r"[^\W_]{1,80}")

_STOP_TEXT = """
a about above after again all also although am an and any are aren as at be because been before being below between
both by can could did do does doing down during each either else etc ever every few for from further get gets getting
give given gives go goes got had has have having he hence her here hers him his how however i if in into is it its
itself just like made make makes many may me might more most much must my of off on once one onto or other others our
ours out over own per please quite re s same say says she should since so some still such t than that the their theirs
them then there these they thing things this those though through thus to too under up upon us use used uses using
very via was we well were what when where whether which while who whom whose why will with within would yes yet you
your yours
"""
_NEGATION_TEXT = "not no never cannot none nor neither nothing without"
_HEDGE_TEXT = "only unless except until but instead rather otherwise besides"
_SPELLED_TEXT = "two three four five six seven eight nine ten eleven twelve"

_STOP_WORDS = frozenset(_STOP_TEXT.split())
_SPELLED = {word: float(value) for value, word in enumerate(_SPELLED_TEXT.split(), 2)}

_UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), ("time", 0.001)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", 1.0)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("time", 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("time", 3600.0)),
    **dict.fromkeys(("day", "days"), ("time", 86400.0)),
    **dict.fromkeys(("week", "weeks"), ("time", 604800.0)),
    **dict.fromkeys(("byte", "bytes"), ("size", 1.0)),
    "kb": ("size", 1e3),
    "mb": ("size", 1e6),
    "gb": ("size", 1e9),
    "kib": ("size", 1024.0),
    "mib": ("size", 1024.0**2),
    "gib": ("size", 1024.0**3),
    **dict.fromkeys(("%", "percent"), ("percent", 1.0)),
    **dict.fromkeys(("k", "thousand"), ("", 1e3)),
    "million": ("", 1e6),
    "billion": ("", 1e9),
}


class Token(NamedTuple):
    """One token, and the keys under which another text may say the same."""

    kind: int
    key: str
    text: str
    parts: tuple[str, ...] = ()  # of `read-only`, `judge.repeats`: the keys of its pieces
    value: float = 0.0  # of a number
    other: float | None = None  # its value where points group thousands, if both readings are possible


class Number(NamedTuple):
    """A number with the unit that follows it, in base units where the unit is known."""

    value: float  # as written, thousands and millions multiplied out
    base: float  # in seconds, bytes, percent; else as `value`
    dimension: str  # time, size, percent, or empty
    shown: str
    other: Number | None = None  # what it may mean too: 1.200 is 1.2 or 1200


def tokens(text: str) -> list[Token]:
    """The tokens of a text, in order."""
    return [_token(found) for found in _TOKEN.findall(text)]


def number_at(found: list[Token], position: int) -> Number:
    """The number at this position, with the unit after it."""
    token = found[position]
    number = _measured(token, token.value, found, position)
    if token.other is None:
        return number
    return number._replace(other=_measured(token, token.other, found, position))


def _measured(token: Token, value: float, found: list[Token], position: int) -> Number:
    after = found[position + 1] if position + 1 < len(found) else None
    dimension, scale = _UNITS.get(after.text.lower(), ("", 0.0)) if after is not None else ("", 0.0)
    if after is None or not scale:
        return Number(value, value, "", token.text)
    gap = "" if after.text == "%" else " "
    return Number(value if dimension else value * scale, value * scale, dimension, f"{token.text}{gap}{after.text}")


def is_unit(found: list[Token], position: int) -> bool:
    """Whether this token is the unit of the number before it."""
    return position > 0 and found[position - 1].kind == NUMBER and found[position].text.lower() in _UNITS


@lru_cache(maxsize=16_384)
def _token(text: str) -> Token:
    first = text[0]
    if first.isdecimal() or (len(text) > 1 and first in "-−" and text[1].isdecimal()):
        return _number(text)
    if first == "-":
        return Token(CODE, text.lower(), text)
    lower = text.lower().replace("’", "'")
    known = _KNOWN.get(lower)
    if known is not None:
        return Token(*known, text) if lower not in _SPELLED else Token(*known, text, (), _SPELLED[lower])
    if lower.endswith("n't"):
        return Token(NEGATION, "not", text)
    if "'" in lower[1:4]:  # I'll, you're, they've
        return Token(STOP, lower, text)
    return _content(text, lower.removesuffix("'s"))


_KNOWN = {
    "%": (STOP, "%"),
    **{word: (STOP, word) for word in _STOP_WORDS},
    **{word: (NEGATION, word) for word in _NEGATION_TEXT.split()},
    **{word: (HEDGE, word) for word in _HEDGE_TEXT.split()},
    **{word: (NUMBER, f"#{value!r}") for word, value in _SPELLED.items()},
}


def _content(text: str, lower: str) -> Token:
    pieces = _PIECES.findall(lower)
    if len(pieces) > 1:
        parts = tuple(stem(piece) for piece in pieces if piece not in _STOP_WORDS)
        kind = CODE if not set(lower).isdisjoint("_./:@") else NAME if _is_name(text) else WORD
        return Token(kind, lower, text, parts)
    if any(letter.isdigit() for letter in lower):
        return Token(CODE, lower, text)
    return Token(NAME if _is_name(text) else WORD, stem(lower), text)


def _number(text: str) -> Token:
    plain = text.replace("−", "-").replace("\u00a0", "").replace("\u202f", "")
    grouped = _POINTS_GROUP.fullmatch(plain) is not None
    if "," in plain and _DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif grouped and plain.count(".") > 1:
        plain = plain.replace(".", "")
    plain = plain.replace(",", "")
    if plain.count(".") > 1:  # a version
        return Token(CODE, plain, text)
    value = float(plain) if len(plain) < 300 else float("inf")
    other = float(plain.replace(".", "")) if grouped and "." in plain else None
    return Token(NUMBER, f"#{value!r}", text, (), value, other)


def _is_name(text: str) -> bool:
    return any(letter.isupper() for letter in text)


def stem(word: str) -> str:
    """A word without its commonest endings; made so that forms of one word meet, not to be read."""
    if len(word) > 4 and word.endswith(("ies", "ied")):
        word = word[:-3] + "y"
    elif len(word) > 5 and word.endswith("ing"):
        word = word[:-3]
    elif len(word) > 4 and word.endswith(("ed", "ses", "xes", "zes", "ches", "shes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word
