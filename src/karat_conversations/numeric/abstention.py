"""Whether a text says that there is no answer: N/A, unknown, "the report does not disclose it"."""

from __future__ import annotations

import re
from typing import Final

from karat_conversations.numeric.values import fold

_NOTHING: Final = frozenset(
    [
        "",
        "-",
        "–",
        "—",
        "?",
        "na",
        "n.a",
        "n/a",
        "nan",
        "nil",
        "none",
        "null",
        "not applicable",
        "not available",
        "not found",
        "unanswerable",
        "undefined",
        "unknown",
        "tbd",
        "no answer",
        "cannot be determined",
        "cannot determine",
    ]
)
_ENDING: Final = re.compile(
    r"""(?:\banswer\b\W*(?:is\b)?|\bboxed\s?\{(?:\\text\{)?)\W*
    (?:n/?a|none|null|unknown|nan|not\s\w+|unanswerable|undefined|tbd|insufficient\s\w+)
    \W*(?:</\w+>)?\W*\Z""",
    re.VERBOSE,
)
_BEGINNINGS: Final = ("n/a ", "n/a:", "n/a,", "n/a;", "n/a.", "n/a(", "n/a-")
_LONGEST: Final = 1_000  # characters of a reason for not answering
_WORD: Final = re.compile(r"\w")
_SHORT: Final = 80  # characters of the last statement
_NOT: Final = re.compile(r"(?<=[a-z])n?['\u2019]t\b")  # isn't, can't
_ABSENT: Final = re.compile(
    r"""\b(?:
      (?:not|never)\s(?:\w+\s){0,2}?
        (?:available|disclosed|provided|given|stated|reported|found|mentioned|specified|included|listed|shown|
           present|contained|applicable|answerable|known|in\sthe)
    | (?:does|do|did)\snot\s(?:\w+\s){0,2}?
        (?:contain|provide|give|disclose|report|have|include|mention|state|specify|show|list|say|know)
    | (?:cannot|(?:can?|could)\snot)\s(?:\w+\s)?
        (?:determined?|computed?|calculated?|answer(?:ed)?|found?|derived?|find)
    | not\s(?:\w+\s)?(?:sure|certain)
    | unable\sto | impossible\sto | not\s(?:\w+\s)?enough | no\saccess
    | no\s(?:\w+\s){0,3}?(?:data|information|figures?|values?|numbers?|amounts?)
    | unavailable | undisclosed | unknown | unanswerable | insufficient | missing | lacks?
    )\b""",
    re.VERBOSE,
)


def abstains(text: str) -> bool:
    """Whether a text, which is not a number, says that there is no answer.

    >>> abstains("N/A"), abstains("the report does not disclose 2014"), abstains("1.3 - 1.2")
    (True, True, False)
    """
    beginning = fold(text[:_LONGEST].replace("_", " "))
    folded = _NOT.sub(" not", beginning)
    words = folded.strip(" .!<>[]()\"'`*_")
    if words in _NOTHING or words.startswith(_BEGINNINGS):
        return True
    if not _WORD.search(folded) or _ABSENT.search(folded):
        return True
    ending = fold(text[-_SHORT:].replace("_", " "))
    return _ENDING.search(ending) is not None
