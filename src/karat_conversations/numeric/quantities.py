"""Finds the numbers in prose, as people and models write them, and spells each so that
`parse_value` reads it.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import NamedTuple

from karat_conversations.numeric.values import CURRENCY, POWERS, WORDS, parse_value


class Quantity(NamedTuple):
    """A number in a text."""

    start: int  # with sign, currency and bracket
    end: int  # with unit and bracket
    answer: str  # as written if `parse_value` reads that, else spelled so that it does
    number: float
    bare: bool  # digits only, without unit, currency or sign: may be a year, a day, or a count
    remark: bool  # in a bracket that follows words or another number, so the bracket is no minus
    part_of_word: bool  # as in 12-month or 10-K


_MARK = "\x1f"  # in place of emphasis and LaTeX's commands, so that positions stay the same
_LIKE = {
    **dict.fromkeys("\u2010\u2011\u2013\u2212\ufe63\uff0d", "-"),
    **dict.fromkeys("\u00a0\u202f\u2009\u2007\u2008\u200a\u205f", " "),
    **dict.fromkeys("\u2019\u02bc", "'"),
    **dict(zip("\uff05\uff08\uff09\uff0e\uff0c\u00d7", "%().,x", strict=True)),
    **dict(
        zip(
            "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19",
            "0123456789",
            strict=True,
        )
    ),
}
_Match = re.Match[str]
_SAME_LENGTH = str.maketrans(_LIKE)
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|operatorname)\{([^{}]*)\}")
_LATEX_NEARLY = re.compile(r"\\(?:approx|simeq|doteq)(?![a-z])")
_LATEX_COMMA = re.compile(r"(?<=[0-9])(?:\{,\}|\\,)(?=[0-9]{3})")
_UNIT = "|".join(sorted(map(re.escape, WORDS), key=len, reverse=True))
_INVISIBLE = re.compile(
    r"\\(?=[%$])|\\[,;:! ()\[\]]|\\(?:left|right|quad)(?![a-z])|\*|</?(?:b|strong|em|i|u)>"
    r"|(?<![A-Za-z0-9_])_{1,2}(?=[-$(.0-9])|(?<=[0-9%)])_{1,2}(?![A-Za-z0-9_])"
    rf"|(?<=[0-9])\$(?=[ ](?:{_UNIT})\b)"
)
# before a number that a text begins with or states; elsewhere it parts words
_LONG_MINUS = re.compile(r"(?:\A|(?<=\n)|(?<=: )|(?<=is )|(?<=was ))\u2014(?=\$?\.?[0-9])")


def plain_prose(text: str) -> str:
    """The text with plain dashes, spaces and apostrophes, and without emphasis and LaTeX; of the
    same length.
    """

    def blank(match: _Match) -> str:
        return _MARK * len(match[0])

    def inner(match: _Match) -> str:
        begin = match.start(1) - match.start()
        return _MARK * begin + match[1] + _MARK

    def comma(match: _Match) -> str:
        if len(match[0]) == 2:
            return ",".rjust(len(match[0]), _MARK)
        return f"{_MARK},{_MARK}"

    text = _LONG_MINUS.sub("-", text.translate(_SAME_LENGTH))

    def nearly(match: _Match) -> str:
        return "\u2248".ljust(len(match[0]), _MARK)

    text = _LATEX_NEARLY.sub(nearly, _LATEX_COMMA.sub(comma, text))
    return _INVISIBLE.sub(blank, _LATEX_TEXT.sub(inner, text))


_GAP = rf"[ {_MARK}]*+"
_SCALE = "(?:lakh|million|crore|billion|trillion)s?"
_OTHER_SCALE = "hundred|dozen|score|quadrillion|quintillion"
_VULGAR = "\u00bc-\u00be\u2150-\u215e"  # fractions in one character
_NUMBER = re.compile(
    rf"""(?<![\w.])(?<![0-9][.,:'/])
    (?!(?:(?<=\b[0-9][ ])|(?<=\b[0-9][0-9][ ])|(?<=\b[0-9][0-9][0-9][ ]))[0-9]{{3}},[0-9])
    (?: (?P<full>[0-9]++)?[ ]?(?P<vulgar>[{_VULGAR}])
      | (?P<whole>[0-9]++[ ])?(?P<over>[0-9]++)[ ]?/[ ]?(?P<under>[1-9][0-9]*+)(?![ ]?/)
      | \\[dt]?frac\{{(?P<top>[0-9]++)\}}\{{(?P<bottom>[1-9][0-9]*+)\}}
      | (?P<european> [1-9][0-9]{{0,2}} (?: (?:\.[0-9]{{3}})+,[0-9]++
                                        | (?:[ ][0-9]{{3}})+,(?:[0-9]{{1,2}}|[0-9]{{4,}}+)
                                        | (?:\.[0-9]{{3}}){{2,}} ) )
      | (?P<digits> (?: [1-9][0-9]{{0,2}}
                        (?:(?P<sep>{_MARK}?,{_MARK}?|[ ']) [0-9]{{3}})(?:(?P=sep)[0-9]{{3}})*+
                      | [1-9][0-9]?(?:,[0-9]{{2}})+,[0-9]{{3}}
                      | [0-9]++ ) (?:\.[0-9]++)?
                    | \.[0-9]++ )
        (?P<exponent>e[-+]?[0-9]++)?
        (?: {_GAP}(?:x|\\times|\*){_GAP}10\^(?P<brace>\{{)?(?P<power>-?[0-9]{{1,3}})(?(brace)\}}) )?
    )
    (?![.,:'/]?[0-9]|[ '][0-9]{{3}},[0-9]|[ ]?[{_VULGAR}]|[ -]?(?:{_OTHER_SCALE})\b)
    (?:\.\.\.|\u2026)?
    (?: (?:(?:{_GAP}|-)(?P<times>thousand|lakh|million)s?(?={_GAP}{_SCALE}\b))?
        (?:{_GAP}|-)(?P<unit>{_UNIT})(?![\w]) | (?!\w) | (?=x(?!\w)) )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_MONEY = rf"(?:(?<![A-Za-z])[A-Z]{{1,2}})?{CURRENCY}{_GAP}"
_BEFORE = re.compile(
    rf"(?P<outer>{_MONEY})?(?P<open>\({_GAP})?(?P<inner>{_MONEY})?"
    rf"(?P<sign>(?i:\b(?:minus|negative)[ {_MARK}]+)(?:{_MONEY})?"
    rf"|(?<![\w)\]%.])[-+](?:{_MONEY})?)?\Z",
)
_REACH = 32  # characters before the digits that may belong to the number
_AFTER = re.compile(rf"{_GAP}\)(?:{_GAP}(?P<unit>{_UNIT})(?!\w))?", re.IGNORECASE | re.ASCII)
_CURRENCY_BEHIND = re.compile(rf"{_GAP}{CURRENCY}(?!{_GAP}[0-9(])")
COPULA = re.compile(
    r"""(?: \b(?:is|was|were|are|be|been|equals?|equal\sto|totals?|totall?ed|amount(?:s|ed)?\sto
        |(?:comes?|came)\sto|st(?:ands|ood)\sat|reach(?:es|ed)?|gives?|yields?|yielding|giving
        |mak(?:es|ing)|represents?|rounds?\sto
        |(?:increas|decreas|chang|declin|reduc)(?:ed?|es|ing)\sby
        |(?:grew|fell|rose|dropped|(?:in|de)creased|declined)\s(?:by|to)|(?:down|up)\sby)
        | [:=~\u2248] )
    [\s\x1f"'`_]*+
    (?:(?:now|only|just|also|thus|therefore|then|approximately|about|roughly|around|nearly|almost|exactly|approx\.?
        |equal\sto|an?|the|~|\u2248)[\s\x1f"'`_]+)*\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_OBJECT = re.compile(r"\b(?:of|by|at)[ \x1f]+\Z", re.IGNORECASE)
COPULA_REACH = 80  # characters before a number that may say that it is the value
_LABEL = re.compile(r"(?:\A|(?<=[\n{>]))[ \x1f]*\Z")


def quantities(text: str, prose: str | None = None) -> list[Quantity]:
    """The numbers of a text, from left to right. `prose`: what `plain_prose` makes of it.

    A bracket is a minus after a currency sign, at the start of a line, or where a value is stated
    ("the change was (5.2)"); elsewhere it encloses a remark. A hyphen after a letter, digit or
    bracket is no sign. Numbers inside words, and digits with wrong grouping, are left out.

    >>> [
    ...     quantity.answer
    ...     for quantity in quantities("It fell by \u20135.2 % to 3/4 of 1 234.5 crore (2007).")
    ... ]
    ['-5.2 percent', '0.75', '1234.5 crore', '2007']
    """
    if prose is None:
        prose = plain_prose(text)
    found = (_quantity(text, prose, match) for match in _NUMBER.finditer(prose))
    return [quantity for quantity in found if quantity is not None]


def may_be_a_year(quantity: Quantity) -> bool:
    """Whether a number is written as years are."""
    return quantity.bare and 1900 <= quantity.number < 2100 and quantity.number.is_integer()


def _quantity(text: str, prose: str, match: _Match) -> Quantity | None:
    before = _BEFORE.search(prose, max(0, match.start() - _REACH), match.start())
    assert before is not None  # every part may be missing
    start = before.start()
    end = match.end()
    unit = match["unit"]
    money = before["outer"] or before["inner"]
    if unit in ("b", "B") and not money and "." not in match[0]:
        return None  # item 1b
    if before["open"]:
        after = _AFTER.match(prose, end)
    else:
        after = None

    bracket = after is not None and before["sign"] is None
    if bracket and after is not None:
        numbered_item = unit is None and after["unit"] is None and prose[after.end() :][:1] == " "
        opening = before.start("open")
        is_stated = COPULA.search(prose, max(0, opening - COPULA_REACH), opening) or _OBJECT.search(
            prose, max(0, opening - 4), opening
        )
        label = _LABEL.search(prose, max(0, opening - 9), opening)
        bracket = bool(before["outer"] or is_stated or (label and not numbered_item))

    if before["open"] and not bracket:  # not part of the number
        start = before.end("open")
    if bracket and after is not None:
        end = after.end()
        unit = unit or after["unit"]

    if behind := _CURRENCY_BEHIND.match(prose, end):
        end = behind.end()
    minus = bracket or (before["sign"] or "+")[0] in "-mMnN"

    sign = "-" if minus else ""
    if unit:
        suffix = f" {WORDS[unit.lower()]}"
    else:
        suffix = ""

    answer = _spelled(match, sign, suffix)
    value = parse_value(answer)
    if value is None:
        return None
    as_written = text[start:end].strip()
    written = parse_value(as_written)
    if written is not None and written[:3] == value[:3]:
        answer = as_written
    start += len(text[start:end]) - len(text[start:end].lstrip())
    digits_only = match.end("digits") - match.start("digits") == end - start
    behind_it = prose[match.end() : match.end() + 2]
    return Quantity(
        start=start,
        end=end,
        answer=answer,
        number=value.number,
        bare=digits_only,
        remark=bool(before["open"]) and not bracket,
        part_of_word=behind_it[:1] == "-" and behind_it[1:].isalpha() and unit is None,
    )


def _spelled(match: _Match, sign: str, suffix: str) -> str:
    """The number as `parse_value` reads it; "" for a fraction that is too long."""
    over = match["over"] or match["top"]
    under = match["under"] or match["bottom"]
    if under is not None and len(over) + len(under) > 300:
        return ""
    if match["vulgar"]:
        part = unicodedata.numeric(match["vulgar"])
        number = float(match["full"] or 0) + part
        return f"{sign}{number!r}{suffix}"
    if under is not None:
        if len(match["whole"] or "") < 300:
            whole = int(match["whole"] or 0)
        else:
            whole = 0

        number = float(whole + Fraction(int(over), int(under)))
        return f"{sign}{number!r}{suffix}"
    if match["european"]:
        digits = re.sub("[. ]", "", match["european"]).replace(",", ".")
    else:
        digits = re.sub(rf"[,' {_MARK}]", "", match["digits"])
    exponent = match["exponent"] or ""
    if match["power"]:
        exponent = f"e{int(match['power'])}"
    if match["times"]:  # lakh crore, thousand million; two exponents cannot be read
        exponent += f"e{POWERS[match['times'].lower()]}"
    return f"{sign}{digits}{exponent}{suffix}"
