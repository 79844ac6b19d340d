"""Secrets never reach the disk: they and their pieces are replaced by `${NAME}` wherever text
leaves karat.

Texts are compared in lower case. A stretch of six or more characters that occurs in a secret is a
piece of it if it is long, or ends where words end; one of ordinary words alone ("production", "the
walnut") is not, unless another word of the same pass phrase is near.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import normalize
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    import msgspec

_Struct = TypeVar("_Struct", bound="msgspec.Struct")

SHORTEST_SECRET = 8
"""Characters. A shorter value (`3`, `true`) would be masked in places where it is no secret."""

# characters; the second of escaped and encoded values, and of those longer than _LONG
_PIECE, _LONG_PIECE = 6, 8
_LONG = 128
_SURE = 10  # characters of a secret that no other text has, even in the middle of a word
_ORDINARY = 12  # the same of ordinary words
_NEAR = 32  # characters around a word of a pass phrase, for another of them
_BETWEEN_TEXTS = "\0\0"  # no variable can hold it

_JSON_DEPTH = 3
"""A tool's result is JSON in a string of a message that is JSON, and may quote JSON itself."""

_PERCENT = re.compile("%[0-9A-F]{2}")
_BREAKS = re.compile(r"(?:[\r\n]|\\[nr])*")
_WORD = re.compile(r"[^\W_]+")
_BETWEEN_WORDS = re.compile(
    r"""[a-z][a-z0-9+.-]*:// | %(?:25)*[0-9a-f]{2} | \\+(?:u[0-9a-f]{4}|x[0-9a-f]{2}) | \\+[nrt]
    | &\#?\w+; | [\s\-_./:,;'"()?&=@+\\]""",
    re.IGNORECASE | re.VERBOSE,
)
_ORDINARY_WORD = re.compile(
    r"""(?! .{17} | (?i: .*[bcdfghjklmnpqrstvwxz]{5} | .*[aeiouy]{4} | [bcdfghjklmnpqrstvwxz]+$ ) )
    (?: [^\W\d_][a-zß-ÿ]* | [A-ZÀ-Þ]+ | \d{1,5} )""",
    re.VERBOSE,
)
# one number a character, as dumps and escapes of whole texts write them
_NUMBER = r"""(?:(?:%|\\{1,8}x|0x)(?P<byte>[0-9a-f]{2})|\\{1,8}u(?P<wide>[0-9a-f]{4})
    |&\#x(?P<hex>[0-9a-f]{2,4});|&\#(?P<decimal>[0-9]{2,5});|\\{1,8}(?P<octal>[0-7]{3})
    |(?P<alone>[0-9a-f]{2})(?:  # or two together, as xxd writes them
        (?<![0-9a-z]..)(?=(?:[0-9a-f]{2})?(?![0-9a-z]))
        |(?<=[0-9a-f]{4})(?<![0-9a-z]....)(?![0-9a-z])
    ))"""
_UNIT = re.compile(_NUMBER, re.VERBOSE)
_DUMP = re.compile(rf"(?:{_NUMBER}[ \n:,-]{{0,2}}){{{_PIECE},}}", re.VERBOSE)
# as lists of bytes are printed
_LISTED = re.compile("(?P<decimal>[0-9]+)")
_LIST = re.compile(rf"(?:[0-9]{{1,3}}\s*,\s*){{{_PIECE - 1},}}[0-9]{{1,3}}")
_BASES = {"decimal": 10, "octal": 8}


class Redactor:
    """Replaces secret values and their pieces in text, in each spelling that text can carry them
    in.

    Raw, escaped for JSON (with and without ASCII escapes), percent-encoded, hexadecimal, as one
    number a character, and base64 at each of the three byte offsets, so that a value inside a
    longer base64 text ("user:password") is found too. Takes time in proportion to the text,
    whatever the number of secrets.

    >>> redact = Redactor({"RAG_KEY": "s3cr3t-v4lu3-0f-rag"})
    >>> redact("Authorization: Bearer s3cr3t-v4lu3-0f-rag; it ends with ...V4LU3-0F-RAG")
    'Authorization: Bearer ${RAG_KEY}; it ends with ...${RAG_KEY}'
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.active = False  # whether there is anything to mask
        self._values: dict[str, tuple[str, ...]] = {
            name: (value,) for name, value in secrets.items()
        }
        self._gather()

    def learn(self, name: str, values: Iterable[str]) -> None:
        """From now on masks these values, too, instead of those that it learned by this name
        before.
        """
        self._values[name] = tuple(values)
        self._gather()

    def _gather(self) -> None:
        self._wholes: dict[str, str] = {}  # → name
        # → how many characters in a row are a piece, of which secret
        self._grams: dict[str, tuple[int, str]] = {}
        self._phrases: dict[str, frozenset[str]] = {}  # name → words
        for name, values in self._values.items():
            for value in values:
                # the longer words of a pass phrase; none of a value that is something else, such as
                # a path or a key
                words = [word for word in _BETWEEN_WORDS.split(value) if len(word) > _PIECE - 3]
                several = len(words) >= 3 or " " in value.strip()
                odd = any(_is_odd(word) and len(word) > _ORDINARY for word in words)
                self._phrases.setdefault(name, frozenset())
                if several and "/" not in value and not odd:
                    phrase = frozenset(_lower(word) for word in words if word.isalpha())
                    self._phrases[name] |= phrase

                for whole in _spellings(value) | _encodings(value):
                    self._wholes.setdefault(_lower(whole), name)
                for gram, least in _grams(value).items():
                    self._grams[gram] = min((least, name), self._grams.get(gram, (least, name)))

        self.active = bool(self._grams)

    def __call__(self, text: str) -> str:
        if not self._grams or len(text) < _PIECE:
            return text
        found = list(self._found(text))
        lowered = _lower(text)
        for dumps, unit in ((_DUMP, _UNIT), (_LIST, _LISTED)):
            for dump in dumps.finditer(lowered):
                units = list(unit.finditer(lowered, *dump.span()))
                for first, last, name in self._found("".join(map(_character, units))):
                    found.append((units[first].start(), units[last - 1].end(), name))

        parts: list[str] = []
        end = 0
        mask = ""
        for start, stop, name in sorted(found):
            if stop <= end:
                continue
            if f"${{{name}}}" != mask or not _BREAKS.fullmatch(text, end, max(start, end)):
                mask = f"${{{name}}}"
                parts += text[end:start], mask

            end = stop

        return "".join((*parts, text[end:]))

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The stretches that are pieces of secrets, and the names of these."""
        lowered = _lower(text)
        for first, last in self._runs(lowered):
            windows = [lowered[at : at + _PIECE] for at in range(first, last - _PIECE + 1)]
            found = text[first:last]
            start, stop = last - len(found.lstrip()), first + len(found.rstrip())
            grams = [self._grams[gram] for gram in windows if gram in self._grams]
            name = self._named(lowered, start, stop, grams)
            # the name in a mask that is already there, or in a reference to a variable
            held = text[start:stop]
            is_mask = text[start - 2 : stop + 1] == f"${{{held}}}" and held in self._values
            if name is not None and not is_mask:
                yield start, stop, name

    def values(self, value: Any) -> Any:
        """A JSON value with secrets masked in all its texts, keys included, also those spread over
        several texts.
        """
        texts: list[str] = []

        def noted(text: str) -> str:
            texts.append(text)
            return text

        map_texts(value, noted)
        masked = self(_BETWEEN_TEXTS.join(texts)).split(_BETWEEN_TEXTS)
        if len(masked) != len(texts):  # a text contains the separator
            masked = [self(text) for text in texts]
        following = iter(masked)
        return map_texts(value, lambda _: next(following))

    def struct(self, value: _Struct) -> _Struct:
        """The same of a struct."""
        if not self._grams:
            return value
        import msgspec

        fields = msgspec.to_builtins(value)
        masked = self.values(fields)
        if masked == fields:
            return value
        return msgspec.convert(masked, type(value))

    def _runs(self, lowered: str) -> Iterator[tuple[int, int]]:
        """The longest stretches of which any six characters in a row occur in a secret."""
        grams = self._grams
        start = stop = 0
        for at in [
            at for at in range(len(lowered) - _PIECE + 1) if lowered[at : at + _PIECE] in grams
        ]:
            if at >= stop > 0:
                yield start, stop
            start = at if at >= stop else start
            stop = at + _PIECE

        if stop:
            yield start, stop

    def _named(
        self, lowered: str, start: int, stop: int, grams: Sequence[tuple[int, str]]
    ) -> str | None:
        """The name of the secret that a stretch is a piece of; None: it is ordinary text."""
        piece = lowered[start:stop]
        size = stop - start
        if piece in self._wholes:
            return self._wholes[piece]
        least, _ = min(grams)
        name = Counter(name for _, name in grams).most_common(1)[0][0]

        # Whether a stretch of the text neither begins nor ends within a word
        begins = (
            not (lowered[start - 1 : start].isalnum() and lowered[start].isalnum())
            or lowered[start - 2 : start - 1] == "\\"
        )
        in_words = begins and not (
            lowered[stop - 1].isalnum() and lowered[stop : stop + 1].isalnum()
        )

        if least < _ORDINARY and size >= (least if in_words else _SURE):
            return name
        # directories are in many paths
        several = size >= _ORDINARY and not piece.isalnum() and "/" not in piece
        if any(whole in piece or (several and piece in whole) for whole in self._wholes):
            return name
        # two words of a pass phrase here and near, in any order
        phrase = self._phrases[name] if in_words else frozenset()
        own = phrase.intersection(_WORD.findall(piece))
        near = lowered[max(0, start - _NEAR) : stop + _NEAR].replace("\\n", " ")
        found = bool(own) and len(phrase.intersection(_WORD.findall(near))) > 1
        return name if found else None


@lru_cache
def _grams(value: str) -> dict[str, int]:
    """Each six characters of a secret → how many in a row are a piece of it."""
    least = _PIECE if len(value) <= _LONG else _LONG_PIECE
    short = "/" in value  # the signs in a path or a pattern of paths are no password's
    forms = [(form, _LONG_PIECE, _odd(form, short)) for form in _spellings(value)]
    forms += [(form, _LONG_PIECE, "x" * len(form)) for form in _encodings(value)]
    if len(value) >= SHORTEST_SECRET:
        forms += [(value, least, _odd(value, short))]
    # the last one of a key
    forms += [(line, _PIECE, _odd(line, short)) for line in value.split() if len(line) < least]
    grams: dict[str, int] = {}
    for form, size, odd in forms:
        lowered = _lower(form)
        for at in range(len(form) - _PIECE + 1):
            gram = lowered[at : at + _PIECE]
            strange = odd.count("x", at, at + _PIECE)
            grams[gram] = min(
                size if strange >= _PIECE // 2 else _ORDINARY, grams.get(gram, _ORDINARY)
            )

    return grams


def _odd(form: str, short: bool = False) -> str:
    """An "x" for each character of a word that no language has. `short`: of no word up to three
    characters.

    >>> _odd("Bearer t0ken-wxzkq")
    '       xxxxx xxxxx'
    """
    words = _BETWEEN_WORDS.sub(lambda between: " " * len(between[0]), form)
    return re.sub(
        r"\S+", lambda word: ("x" if _is_odd(word[0], short) else " ") * len(word[0]), words
    )


def _is_odd(word: str, short: bool = False) -> bool:
    if len(word) <= _PIECE - 3 and (short or word.isalnum()):
        return False
    if not any(map(str.isalnum, word)):  # an operator
        return False
    return _ORDINARY_WORD.fullmatch(word) is None


def _lower(text: str) -> str:
    """In lower case, of the same length."""
    if text.isascii():
        return text.lower()
    return "".join(letter.lower()[0] for letter in text)


def _spellings(value: str) -> set[str]:
    """The value as it is, and escaped."""
    percent = {
        quote(value, safe="", errors="replace"),
        quote(value, errors="replace"),
        quote_plus(value, errors="replace"),
    }
    forms = {
        value,
        value.strip(),
        repr(value)[1:-1],
        repr(value.encode("utf-8", "surrogatepass"))[2:-1],
        value.encode("utf-8", "surrogatepass").decode("latin-1"),  # a byte a character
        normalize("NFC", value),
        normalize("NFD", value),  # as macOS names files
        html.escape(value),
        json.dumps(value)[1:-1].replace("/", "\\/"),
        *percent,
        *(_PERCENT.sub(lambda match: match[0].lower(), form) for form in percent),
        *(quote(form, safe="") for form in percent),
    }
    for _ in range(_JSON_DEPTH):
        forms |= {
            json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            for form in forms
            for ascii_only in (True, False)
        }

    return {form for form in forms if len(form) >= SHORTEST_SECRET}


def _encodings(value: str) -> set[str]:
    """Hexadecimal, and base64 with any beginning."""
    raw = value.encode("utf-8", "surrogatepass")
    forms = {raw.hex()}
    for offset in range(3):
        # Characters at the borders also encode neighbouring bytes: only the whole groups inside are
        # the value's own.
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * offset + raw).decode()
            start = (0, 2, 3)[offset]
            tail = (offset + len(raw)) % 3
            stop = len(text) - (0, 3, 2)[tail]
            forms.add(text[start:stop])
            if offset == 0:
                forms.add(text)

    return {form for form in forms if len(form) >= SHORTEST_SECRET}


def _character(unit: re.Match[str]) -> str:
    kind = unit.lastgroup or ""
    return chr(int(unit[kind], _BASES.get(kind, 16)))


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every text in it changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(str(key)): map_texts(below, change) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_texts(below, change) for below in value]
    return value


def without_surrogates(text: str) -> str:
    """U+FFFD for halves of surrogate pairs: models and tools do write them, and no UTF-8 can hold
    them.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
