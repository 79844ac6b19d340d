"""Foreign text on a page: whole, harmless, and with invisible characters made visible."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from karat import formats

LONGEST = 20_000
"""Characters of one text on a page. What is longer is cut, with a note of how much."""

SHORT = 400
"""Characters of a text in a table."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# Controls beyond ASCII; marks that change text direction; zero-width characters except joiners:
# scripts and emoji need those. Marks of one direction (U+200E, U+200F) are harmless inside an
# isolate.
_HIDDEN = re.compile(
    "([\x80-\x9f\u00ad\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb])\\1*|[\U000e0000-\U000e007f]+"
)
_SPACES = re.compile(r"[ \t\n\x0b\x0c\r]+")  # not non-breaking spaces
_TIED = re.compile(
    r"\[[^\[\]\n]{1,30}\]|\b[pn] [=<>] |\(n [^()\n]{1,16}\)|\bturn (?=\d)|(?<=\d) %|≥ \$"
)
# More than four marks on one letter overlap the lines above and below.
_PILED = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})"
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+)"
)


def visible(text: str) -> str:
    r"""Text as plain visible characters: controls as their symbols, hidden ones by number.

    Newlines and tabs are kept. Half of a surrogate pair becomes U+FFFD.

    >>> visible("\x1b[31mred\x00 a\u202eb \u200b\u200b\u200bc \ud800")
    '␛[31mred␀ a⟨U+202E⟩b ⟨3 × U+200B⟩c �'
    """
    text = _SURROGATES.sub("\ufffd", text.replace("\r\n", "\n"))
    if text.isascii():
        return _CONTROLS.sub(_symbol, text)
    text = _HIDDEN.sub(_numbered, _CONTROLS.sub(_symbol, text))
    return _PILED.sub(
        lambda match: f"{match[1]}⟨{formats.plural(len(match[2]), 'more mark')}⟩", text
    )


def _symbol(match: re.Match[str]) -> str:
    if match[0] == "\x7f":
        return "\u2421"
    return chr(0x2400 + ord(match[0]))


def _numbered(match: re.Match[str]) -> str:
    if len(match[0]) > 1:
        many = f"{formats.count(len(match[0]))} × "
    else:
        many = ""

    return f"⟨{many}U+{ord(match[0][0]):04X}⟩"


def foreign(text: str | None, limit: int = LONGEST) -> Markup:
    """Foreign text for a page: escaped, visible, isolated from the direction of the text around it.

    Longer ones are cut, with a note of how much. None is a dash.

    >>> foreign("</script><b>"), foreign(None)
    (Markup('<bdi>&lt;/script&gt;&lt;b&gt;</bdi>'), Markup('–'))
    """
    if text is None:
        return escape(formats.UNKNOWN)
    return Markup("<bdi>{}</bdi>{}").format(visible(text[:limit]), cut_note(text, limit))


def cut_note(text: str, limit: int) -> Markup:
    """How much of a text is not shown; empty if it is complete."""
    if len(text) <= limit:
        return Markup("")
    left = formats.plural(len(text) - limit, "character")
    return Markup(' <span class="cut">… {} left out</span>').format(left)


def line(text: str | None, limit: int = SHORT) -> Markup:
    """Foreign text on one line, for names and cells. White space becomes single spaces."""
    if text is None:
        return escape(formats.UNKNOWN)
    if len(text) > limit:
        return foreign(text, limit)
    return Markup("<bdi>{}</bdi>").format(_SPACES.sub(" ", visible(text)).strip(" "))


def short(text: str, columns: int) -> Markup:
    """A name for little space: cut in the middle.

    The full name is elsewhere on the page, or behind a link.
    """
    plain = _SPACES.sub(" ", visible(text[: 8 * columns])).strip(" ")
    return Markup("<bdi>{}</bdi>").format(formats.middle(plain, columns))


def tied(text: str) -> str:
    r"""A sentence whose intervals and units are never split over two lines.

    >>> tied("by 0.84 [0.47, 1.21], p < 0.001").count("\xa0")
    3
    """
    return _TIED.sub(lambda match: match[0].replace(" ", "\u00a0"), text)
