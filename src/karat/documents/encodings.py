"""In which encoding a file of text is that is not UTF-8."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from itertools import islice

_LETTER = re.compile(r"[^\W\d_A-Za-z]|[\u2500-\u259f]")  # or a part of a box, which texts lack
_WORD = re.compile(r"(?<![A-Za-z])[^\W\d_A-Za-z]{2,}(?![A-Za-z])")
"""Letters beside each other and beside none of A to Z, unlike `é` in *café*."""
_FEWEST = 6  # letters that show a script
_IN_WORDS = 0.7  # of them, at least
_USUAL = 0.7  # of the letters of a text, at least
_LOOKED_AT = 2_000  # lines with other signs than ASCII


def _range(*ends: int, rare: str = "", codec: str = "ascii") -> bytes:
    """All bytes between each two of the ends, with both of them, but those of rare letters."""
    found = b""
    for first, last in zip(ends[::2], ends[1::2], strict=True):
        found += bytes(range(first, last + 1))

    return found.translate(None, rare.encode(codec))


_SCRIPTS = (
    ("cp949", "EUC-KR", _range(0xB0, 0xC8)),
    ("gb18030", "GBK", _range(0xB0, 0xD7)),
    ("euc_jp", "EUC-JP", _range(0xA4, 0xA5, 0xB0, 0xCF)),
    ("cp932", "Shift-JIS", _range(0x82, 0x83, 0x88, 0x97)),
    ("cp950", "Big5", _range(0xA4, 0xC6)),
    (
        "cp1251",
        "Windows-1251",
        _range(0xE0, 0xFF, *b"\xb3\xb3\xba\xba\xbf\xbf", rare="щъфхэ", codec="cp1251"),
    ),
    ("koi8_r", "KOI8-R", _range(0xC0, 0xDF)),
    ("cp866", "IBM 866", _range(0xA0, 0xAF, 0xE0, 0xEF)),
    ("cp1253", "Windows-1253", _range(0xDC, 0xFE, rare="ΰζϊϋψ", codec="cp1253")),
    ("cp1255", "Windows-1255", _range(0xE0, 0xFA, rare="זטךסףץצ", codec="cp1255")),
    (
        "cp1256",
        "Windows-1256",
        _range(0xC1, 0xED, rare="ئإزطظذد×àâçèéêë", codec="cp1256"),
    ),
    (
        "cp874",
        "Windows-874",
        _range(0xA1, 0xFB, rare="ฃฅฆฌญฎฏฐฑฒณฝฤฦฬฮศษำ", codec="cp874"),
    ),
)
"""Encodings of other scripts than Latin: each with its usual name and the first bytes of usual
letters, which are the lower case where there are two.
"""


def encoding_of(data: bytes) -> tuple[str, str | None]:
    """The encoding of a text, and a note on it; None: it is UTF-8.

    That is the one in which most letters are usual ones of its script, if they stand in words of
    that script; else Windows-1252, in which spreadsheets save.
    """
    with suppress(UnicodeDecodeError):
        data.decode("utf-8-sig")
        return "utf-8-sig", None

    shares = {script: _share(data, script[0], script[2]) for script in _SCRIPTS}
    likeliest = max(_SCRIPTS, key=shares.__getitem__)
    western = ("cp1252", "Windows-1252", b"")
    for script in (likeliest, western):
        codec, name, _ = script
        if shares.get(script, 1) < _USUAL:
            continue
        with suppress(UnicodeDecodeError):
            data.decode(codec)
            return codec, f"read as {name}, since it is not UTF-8"

    return "mac_roman", "read as Mac Roman, since it is neither UTF-8 nor Windows-1252"


def _share(data: bytes, codec: str, usual: bytes) -> float:
    """How many of a text's letters beyond ASCII are usual ones of the codec's script; 0: it cannot
    be decoded, or they stand in words of other letters.
    """
    lines = (line for line in data.splitlines() if not line.isascii())
    looked_at = b"\n".join(islice(lines, _LOOKED_AT))
    try:
        text = looked_at.decode(codec)
    except UnicodeDecodeError:
        return 0

    letters = _LETTER.findall(text)
    in_words = sum(map(len, _WORD.findall(text)))
    if len(letters) < _FEWEST or in_words < _IN_WORDS * len(letters):
        return 0

    firsts = b""
    for letter, times in Counter(letters).items():
        first = letter.encode(codec)[:1]
        firsts += first * times

    unusual = firsts.translate(None, usual)
    return 1 - len(unusual) / len(firsts)
