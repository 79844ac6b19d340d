"""Formats numbers for people. No other module does.

Three rules apply everywhere: an unknown number is `–`, never 0; 100.0 % means all,
0.0 % means none; a p-value is never 0. Foreign text goes through `clean` before it
reaches a terminal, and through `excerpt` where it must fit.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial

OUTPUT_FORMAT = 1
"""The format of everything that `--json` prints, and of summaries. 1: 2026-11, the first."""

UNKNOWN = "–"
"""What stands where no number is known."""

POINT = "*"
"""Marks an interval without width."""

_MINUS = "−"
_ENDLESS = 1e15  # from here on digits do not matter, and a double lacks some


def number(value: float | None, *, digits: int = 2) -> str:
    """A number with a fixed count of decimals; more if it would otherwise look like 0.

    >>> (
    ...     number(4.2),
    ...     number(-0.5),
    ...     number(0.0042),
    ...     number(12345.678),
    ...     number(None),
    ...     number(-0.0),
    ...     number(2e30),
    ... )
    ('4.20', '−0.50', '0.0042', '12,346', '–', '0.00', '2.0e+30')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    size = abs(value)
    if math.isinf(size):
        text = "∞"
    elif size >= _ENDLESS:
        text = f"{size:.1e}"
    elif size >= 1000:
        text = f"{size:,.0f}"
    elif size == 0 or size >= 0.5 * 10.0**-digits:
        text = f"{size:.{digits}f}"
    elif size >= 1e-4:
        text = f"{size:#.2g}"
    else:
        text = f"{size:.1e}"

    if value < 0:
        return f"{_MINUS}{text}"
    return text


def signed(value: float | None, *, digits: int = 2) -> str:
    """A difference, with its sign.

    >>> signed(1.2), signed(-0.35), signed(0.0), signed(None)
    ('+1.20', '−0.35', '0.00', '–')
    """
    text = number(value, digits=digits)
    if value is not None and value > 0:
        return f"+{text}"
    return text


def interval(low: float | None, high: float | None, *, digits: int = 2) -> str:
    """An interval; empty if there is none.

    `POINT` marks one without width: equal values tell nothing about how others would differ.

    >>> interval(3.9, 4.52), interval(4.0, 4.0), interval(None, None)
    ('[3.90, 4.52]', '[4.00, 4.00]*', '')
    """
    return bracketed(low, high, partial(number, digits=digits))


def bracketed(low: float | None, high: float | None, write: Callable[[float], str]) -> str:
    """An interval whose ends are written by `write`; empty if there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"[{write(low)}, {write(high)}]{POINT if low == high else ''}"


def between(
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    digits: int = 2,
    percent: bool = False,
    plain: bool = False,
) -> tuple[str, str]:
    """A difference and its interval ("" if there is none), with signs unless `plain`; for shares in
    points.

    >>> (
    ...     between(0.05, -0.01, 0.11, percent=True),
    ...     between(-0.5, None, None),
    ...     between(0.5, 0.4, 0.6, plain=True),
    ... )
    (('+5.0', '[−1.0, +11.0]'), ('−0.50', ''), ('0.50', '[0.40, 0.60]'))
    """
    scale = 1
    if percent:
        digits, scale = (1, 100)

    ends = [None if end is None else scale * end for end in (value, low, high)]
    write = partial(number if plain else signed, digits=digits)
    return write(ends[0]), bracketed(ends[1], ends[2], write)


def estimate(value: float | None, low: float | None, high: float | None, *, digits: int = 2) -> str:
    """A number and its interval.

    >>> estimate(4.21, 3.9, 4.52), estimate(4.0, None, None), estimate(None, None, None)
    ('4.21 [3.90, 4.52]', '4.00', '–')
    """
    return " ".join(between(value, low, high, digits=digits, plain=True)).rstrip()


def signed_estimate(
    value: float | None, low: float | None, high: float | None, *, digits: int = 2
) -> str:
    """A difference and its interval.

    >>> signed_estimate(0.05, -0.1, 0.25)
    '+0.05 [−0.10, +0.25]'
    """
    return " ".join(between(value, low, high, digits=digits)).rstrip()


def chance(value: float | None) -> str:
    """A probability that is itself an estimate, in whole percent.

    >>> chance(0.574), chance(1.0), chance(0.9999), chance(0.001), chance(math.nan)
    ('57 %', '100 %', '>99 %', '<1 %', '–')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    text = f"{100 * value:.0f}"
    if text == "100" and value < 1:
        return ">99 %"
    if text == "0" and value > 0:
        return "<1 %"
    return f"{text} %"


def share(value: float | None) -> str:
    """A share of one, in percent. 100.0 % only if all are right, 0.0 % only if none is.

    >>> share(0.9999), share(1.0), share(0.5), share(0.0001), share(0.0), share(math.nan)
    ('>99.9 %', '100.0 %', '50.0 %', '<0.1 %', '0.0 %', '–')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    text = f"{100 * value:.1f}"
    if text == "100.0" and value < 1:
        return ">99.9 %"
    if text in ("0.0", "-0.0") and value > 0:
        return "<0.1 %"
    return f"{text} %"


def level(value: float) -> str:
    """The level of an interval.

    >>> level(0.95), level(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * value:.6g} %"


def p_value(value: float | None) -> str:
    """A p-value; never 0, and never rounded across 0.05.

    >>> p_value(0.0), p_value(0.0123), p_value(0.0496), p_value(1.0), p_value(None)
    ('<0.001', '0.012', '0.0496', '1.000', '–')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    if value < 0.001:
        return "<0.001"
    text = f"{value:.3f}"
    if text == "0.050" and value < 0.05:
        if value < 0.04995:
            return f"{value:.4f}"
        return "<0.05"

    return ">0.999" if text == "1.000" and value < 1 else text


def dollars(known: float | None, *, unknown: int = 0) -> str:
    """An amount of money. `unknown`: how many parts of the sum have no known price.

    >>> dollars(0.0), dollars(1.5), dollars(0.07), dollars(0.0042), dollars(None)
    ('$0.00', '$1.50', '$0.07', '$0.0042', '–')
    >>> dollars(1.5, unknown=3), dollars(0.0, unknown=3), dollars(-0.5)
    ('≥ $1.50', '–', '−$0.50')
    """
    if known is None or math.isnan(known) or (unknown and known == 0):
        return UNKNOWN
    if known < 0:
        return f"{_MINUS}{dollars(-known)}"
    if known >= _ENDLESS:
        return f"{'≥ ' if unknown else ''}${number(known)}"
    if known == 0 or known >= 0.1:
        text = f"${known:,.2f}"
    elif known >= 0.0001:
        whole, _, cents = f"{known:.4f}".partition(".")
        text = f"${whole}.{cents.rstrip('0'):0<2}"
    else:
        text = "<$0.0001"

    if unknown and not text.startswith("<"):
        return f"≥ {text}"
    return text


def duration(seconds: float | None) -> str:
    """A time span, in a suitable unit.

    >>> (
    ...     duration(0.0004),
    ...     duration(0.12),
    ...     duration(1.34),
    ...     duration(65),
    ...     duration(3720),
    ...     duration(None),
    ... )
    ('<1 ms', '120 ms', '1.3 s', '1 min 05 s', '1 h 02 min', '–')
    """
    if seconds is None or math.isnan(seconds) or seconds < 0:
        return UNKNOWN
    if seconds >= _ENDLESS:
        return f"{number(seconds)} s"
    if seconds < 0.001:
        return "<1 ms" if seconds > 0 else "0 ms"
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"


def some_of(names: Sequence[str], *, most: int = 4) -> str:
    """Names with commas; if there are many, the first ones and the number of the others.

    >>> some_of(["a", "b"]), some_of(["a", "b", "c", "d"], most=2)
    ('a, b', 'a, b and 2 more')
    """
    if len(names) > most:
        more = f" and {len(names) - most} more"
    else:
        more = ""

    return f"{', '.join(names[:most])}{more}"


def some_names(names: Iterable[str], *, most: int = 4) -> str:
    """The same of names in quotation marks.

    >>> some_names(["a", "b"])
    "'a', 'b'"
    """
    return some_of([f"'{name}'" for name in names], most=most)


def count(value: int | None) -> str:
    """A count, with separators.

    >>> count(10000), count(0), count(None)
    ('10,000', '0', '–')
    """
    if value is None:
        return UNKNOWN
    return f"{value:,}"


def plural(value: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "question"), plural(1200, "question"), plural(2, "try", "tries")
    ('1 question', '1,200 questions', '2 tries')
    """
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def raw(value: float | int | str | None) -> str:
    """A number for machines: every digit, a point, no separators; empty where unknown.

    >>> raw(0.1), raw(3), raw(None), raw(math.nan)
    ('0.1', '3', '', '')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, bool):
        return str(value)
    return str(int(value))


def csv_cell(value: float | int | str | None) -> str:
    """A cell of a CSV file: numbers as `raw`, foreign text cleaned.

    A spreadsheet runs text that begins like a formula, so such text gets a leading apostrophe. A
    number given as text stays a number.

    >>> csv_cell(-7.4), csv_cell("-7.4%"), csv_cell("-1,234"), csv_cell("=1+1"), csv_cell("- none")
    ('-7.4', '-7.4%', '-1,234', "'=1+1", "'- none")
    """
    if not isinstance(value, str):
        return raw(value)
    text = clean(value)
    start = text.strip()
    if start.startswith(_FORMULA) and not _NUMBER.fullmatch(start):
        return f"'{text}"
    return text


_FORMULA = ("=", "+", "-", "@", "|")
_NUMBER = re.compile(r"[+-]?[$€£¥]?(\d[\d,]*(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?[ ]?%?", re.ASCII)


def brief(value: float) -> str:
    """A number of any size, to at most six digits.

    >>> brief(0.04090909090909091), brief(17.0), brief(180041.58004)
    ('0.0409091', '17', '180042')
    """
    return f"{value:.6g}"


# CSI, OSC and other strings (ended by BEL or ST, or by the end of a line when they never end), then
# two-byte escapes.
_ESCAPES = re.compile(
    r"""
    (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?
  | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\n)|$)?
  | \x1b[ -/]*[0-~]?
    """,
    re.VERBOSE,
)
# Control characters except tab and newline; marks that change text direction; invisible ones; lone
# surrogates.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    r"""Foreign text without anything a terminal interprets: escape sequences, controls, direction
    marks.

    Newlines and tabs are kept; a carriage return becomes a newline.

    >>> clean("\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07ok\r\nnext")
    'red ok\nnext'
    """
    if text.isprintable():  # nearly all texts: none of the characters below is printable
        return text
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def escaped(json: str) -> str:
    r"""The same JSON, with everything a terminal interprets as `\u…`: programs read the same,
    people are safe.

    >>> escaped('{"a": "\u202eabc\x9b"}')
    '{"a": "\\u202eabc\\u009b"}'
    """
    return _CONTROLS.sub(lambda match: _ascii(match[0]), json)


def _ascii(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def excerpt(text: str, columns: int) -> str:
    """Foreign text on one line of limited width, cleaned.

    >>> excerpt("How do I\\n  resume a run?", 12)
    'How do I re…'
    """
    # One line needs only the start of a long text: cleaning all of it would waste time.
    line = " ".join(clean(text[: 20 * columns + 200]).split())
    return cut(line, columns)


def cut(line: str, columns: int) -> str:
    """A line cut to a number of columns, counting wide characters twice.

    >>> cut("baseline", 5), cut("漢字漢字", 5), cut("ok", 5)
    ('base…', '漢字…', 'ok')
    """
    if width(line) <= columns:
        return line
    kept, used = [], 1
    for char in line:
        used += _columns(char)
        if used > columns:
            break
        kept.append(char)

    return "".join(kept).rstrip() + "…"


def middle(line: str, columns: int) -> str:
    """A line cut in the middle to a number of columns: similar names differ at their ends.

    >>> middle("a-model-with-a-long-name-v1", 16), middle("baseline", 16)
    ('a-model-wi…me-v1', 'baseline')
    """
    if width(line) <= columns:
        return line
    end = line
    while width(end) > columns // 3:
        end = end[1:]
    return cut(line, columns - width(end)) + end


def width(line: str) -> int:
    """How many columns a line takes on a terminal.

    >>> width("abc"), width("漢字")
    (3, 4)
    """
    if line.isascii():
        return len(line)
    return sum(map(_columns, line))


@lru_cache
def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def text_of(value: object) -> str:
    """A text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    import msgspec  # slow to load, and a text needs none

    return msgspec.json.encode(value).decode()


def json_file(value: object) -> str:
    """The text of a JSON file for people: indented, and with a line end."""
    import msgspec

    return (
        msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8", "replace") + "\n"
    )
