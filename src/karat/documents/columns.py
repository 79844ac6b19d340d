"""What the cells of each column hold, by looking at the first rows of a file."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Any

import msgspec

from karat.documents import languages
from karat.documents.names import (
    any_speaker_and_text,
    ends_with_reply,
    is_score_name,
    names_persons,
    side_of,
    speaker_and_text,
    words_of,
)

Row = Mapping[str, Any]
NumberedRow = tuple[int, Row]
"""A row with the number of its line, or of its place in the file."""
NO_NAME = "column "
"""How the columns of a table without a header are called, before their numbers."""
LOOKED_AT = 500
"""Rows that decide what a column holds."""
_DEEPEST = 4  # levels of objects whose keys are columns of their own
_MOST_KEYS = 40  # of an object whose keys are columns
_MOST_COLUMNS = 1_000
_LONGEST_NUMBER = 40  # characters
_FEWEST_CLASSES = 3
_COMPARED = frozenset({"winner", "preferred", "preference", "better", "best", "weakest", "worst"})
_ROUNDED = 0.02  # by how much shares of one may be rounded together
_MOST_VERDICTS = 6  # such as correct, mostly correct, incorrect
_EMPTY_TEXTS = frozenset({"", "[None]", "[nan]"})
_FLAGS = frozenset(
    {"true", "false", "yes", "no", "pass", "fail", "passed", "failed", "correct", "incorrect"}
    | {"ok", "ko", "nok", "y", "n"}
    | {*languages.YES_OR_NO, *languages.VERDICTS}
)
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
"""Texts of a cell of scores that mean there is none, in lower case."""
_JUDGED: dict[str, bool] = {
    **dict.fromkeys(
        ("pass", "passed", "correct", "right", "hit", "correct answer", "合格", *"✓✔✅☑○◯⭕"), True
    ),
    **dict.fromkeys(
        ("fail", "failed", "incorrect", "wrong", "miss", "wrong answer", "不合格", *"✗✘❌×✕✖"),
        False,
    ),
    **languages.VERDICTS,
}
"""Words that are a verdict whatever the column is called."""
VERDICTS: dict[str, bool] = {
    **_JUDGED,
    **languages.YES_OR_NO,
    **dict.fromkeys(("true", "yes", "y", "good", "success", "up", "👍", "ok"), True),
    **dict.fromkeys(("false", "no", "n", "bad", "failure", "down", "👎", "ko", "nok"), False),
}
"""Words that a cell of scores may hold, in lower case."""
_BESIDE_VERDICT = re.compile(r"^[^\w+-]+(?=\w)|(?<=\w)[^\w%]+$")
"""Signs before and after a word: `✅ PASS`."""
_HASH = re.compile(r"(?=.*[a-fA-F])(?=.*\d)[0-9a-fA-F-]{16,}")
_RATED = re.compile(r"(\d+(?:\.\d+)?) *[-–—:(][^\d]{2,30}")
"""A number with what it means on its scale."""
_IMAGE = re.compile(r"\S[^\n]*\.(?i:png|jpe?g|gif|webp|bmp|tiff?)")
_FEW_LABELS = 20
_FEWEST_VERDICTS = 3  # of yes, and of no
_NUMBERED = re.compile(r"[^\W\d_]{2,8}[-_. ]?\d{1,4}")
_RATIO = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)")


class Column(msgspec.Struct):
    """What the cells under one path hold. Counts are of rows looked at."""

    path: str
    rows: int = 0  # looked at
    filled: int = 0  # that hold something
    texts: int = 0
    numbers: int = 0  # also numbers written as text
    flags: int = 0  # true, false; also as text
    lists: int = 0
    several: int = 0  # lists of more than one entry, or of objects
    objects: int = 0
    messages: int = 0  # lists of chat messages
    replies: int = 0  # of which the assistant has the last word
    single: int = 0  # of which the last is the only reply
    characters: int = 0  # of all texts
    values: set[str] = msgspec.field(default_factory=set)  # different ones, as text
    example: Any = None  # the first that is not empty
    # two columns of labels that are equal where this one says yes, and nowhere else
    compares: tuple[str, str] | None = None
    of_a_class: bool = False  # how likely a class is, of several

    def add(self, values: Iterable[object]) -> None:
        """Counts cells."""
        for value in values:
            text = value.strip() if isinstance(value, str) else None
            if text in _EMPTY_TEXTS or (text is None and is_empty(value)):
                continue
            if self.example is None:
                self.example = value
            self.filled += 1
            if isinstance(value, str):
                self.characters += len(value)
            said = None
            if text is not None:
                said = text.casefold()
                if not (text[0].isalnum() and text[-1].isalnum()):
                    said = verdict_word(text)
            if isinstance(value, bool) or said in _FLAGS:
                self.flags += 1
            elif isinstance(value, (int, float)) or (
                text is not None
                and not text[0].isalpha()
                and (
                    (text.isdecimal() and len(text) <= _LONGEST_NUMBER)
                    or number_in(text) is not None
                )
            ):
                self.numbers += 1
            elif text is not None:
                self.texts += 1
            elif isinstance(value, list):
                self.lists += 1
                self.several += len(value) > 1 or isinstance(value[0], dict)
                if are_messages(value):
                    replied = ends_with_reply(value)
                    earlier = (ends_with_reply(value[:at]) for at in range(2, len(value)))
                    self.messages += 1
                    self.replies += replied
                    self.single += replied and not any(earlier)
            elif isinstance(value, dict):
                self.objects += 1

            if isinstance(value, (str, int, float)):
                self.values.add(str(value)[:200])

    @property
    def is_text(self) -> bool:
        """Whether most cells hold words."""
        return 2 * self.texts > self.filled

    @property
    def has_spaces(self) -> bool:
        """Whether a cell holds several words."""
        return any(" " in value for value in self.values)

    @property
    def is_hashed(self) -> bool:
        """Whether cells hold nothing but hashes, which tell what is the same, and not what."""
        return bool(self.values) and all(map(_HASH.fullmatch, self.values))

    @property
    def is_numeric(self) -> bool:
        """Whether most cells hold numbers, or true and false."""
        return 2 * (self.numbers + self.flags) > self.filled

    @property
    def is_yes_or_no(self) -> bool:
        """Whether cells hold nothing but true and false, or 1 and 0."""
        digits = self.numbers == self.filled and self.values <= {"0", "1", "0.0", "1.0"}
        return self.flags == self.filled or digits

    @property
    def lowercase_values(self) -> set[str]:
        """The values in lower case, verdicts without the signs around them."""
        lowercase = set()
        for value in self.values:
            text = value.strip().casefold()
            if not (text[:1].isalnum() and text[-1:].isalnum()):
                text = verdict_word(text)
            lowercase.add(text)

        return lowercase

    @property
    def is_verdict(self) -> bool:
        """Whether cells say that something else is right, or wrong."""
        return len(self.values) <= _MOST_VERDICTS and bool(
            self.lowercase_values & {"incorrect", "wrong"}
        )

    @property
    def is_scored(self) -> bool:
        """Whether cells hold scores: numbers, or the two words of a verdict. Other words beside a
        verdict (*partly*) have no value that a file states.
        """
        if self.lists + self.objects > 0 or not self.values or self.of_a_class:
            return False
        scores = [score_in(value) for value in self.values]
        read = []
        for score in scores:
            if score is not None:
                read.append(score)

        words = self.lowercase_values
        if words <= {*VERDICTS, *MISSING}:
            return bool(read)
        has_verdicts = not words.isdisjoint(VERDICTS)
        return len(read) == len(scores) or (not has_verdicts and 2 * len(read) > len(scores))

    @property
    def is_judgement(self) -> bool:
        """Whether cells hold nothing but words that are a verdict whatever the column is called."""
        return bool(self.values) and self.lowercase_values <= {*_JUDGED}

    @property
    def is_few_verdicts(self) -> bool:
        """Whether cells hold few words, some of which are verdicts: yes, no, partly."""
        few = self.texts + self.flags > 0 and 1 < len(self.values) <= _MOST_VERDICTS
        return few and not self.lowercase_values.isdisjoint(VERDICTS)

    @property
    def is_constant(self) -> bool:
        """Whether all rows say the same."""
        return self.filled == self.rows > 1 and len(self.values) == 1 and not self.lists

    @property
    def names_images(self) -> bool:
        """Whether cells hold nothing but the names of images."""
        return bool(self.values) and all(map(_IMAGE.fullmatch, self.values))

    @property
    def numbers_rows(self) -> bool:
        """Whether each cell is another short code that ends with a number: `Web-01`."""
        coded = all(map(_NUMBERED.fullmatch, self.values))
        return coded and len(self.values) == self.filled > 2

    @property
    def repeats(self) -> bool:
        """Whether each value is, on average, in several rows."""
        return 1 < len(self.values) <= self.filled / 2

    @property
    def mean_length(self) -> float:
        return self.characters / max(self.texts + self.numbers + self.flags, 1)


Columns = Mapping[str, Column]
"""The columns of a file by their paths."""


def is_empty(value: object) -> bool:
    """Whether a cell holds nothing: null, white space, the number NaN, an empty list, `[None]`."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip() in _EMPTY_TEXTS
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, list):
        return all(is_empty(part) for part in value)
    return value == {}


def number_in(text: str) -> float | None:
    """The number that a text is, with a decimal point or comma; None: it is none."""
    written = text.strip().removesuffix("%").strip()
    if not written or len(written) > _LONGEST_NUMBER:
        return None
    if "," in written and "." not in written and written.count(",") == 1:
        written = written.replace(",", ".")
    try:
        value = float(written)
    except ValueError:
        return None

    if math.isfinite(value):
        return value
    return None


def verdict_word(text: str) -> str:
    """A text in lower case; a word without the signs around it.

    >>> verdict_word("✅ PASS"), verdict_word("**Fail**"), verdict_word("✓"), verdict_word("-1")
    ('pass', 'fail', '✓', '-1')
    """
    folded = text.strip().casefold()
    plain = _BESIDE_VERDICT.sub("", folded)
    return plain if plain in VERDICTS else folded


def score_in(value: object) -> float | None:
    """The score that a cell is: a number, a percentage as its number, a share of a whole, or a
    verdict as 1 or 0, a number before the word for it. None: it is none.

    >>> score_in("4/5"), score_in("85%"), score_in("INCORRECT"), score_in("partly")
    (0.8, 85.0, 0.0, None)
    >>> score_in("4 - good")
    4.0
    """
    if isinstance(value, (bool, int, float)):
        return float(value) if math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    text = verdict_word(value)
    if text in VERDICTS:
        return float(VERDICTS[text])
    ratio = _RATIO.fullmatch(text) if "/" in text else None
    if ratio is not None and 0 < float(ratio[2]) >= float(ratio[1]):
        return float(ratio[1]) / float(ratio[2])
    rated = _RATED.fullmatch(text)
    return float(rated[1]) if rated is not None else number_in(text)


def are_messages(value: Sequence[object]) -> bool:
    """Whether a list holds chat messages: each says who speaks, and what. Others may speak, too,
    if the user and the assistant do.
    """
    if all(speaker_and_text(part) is not None for part in value):
        return bool(value)
    sides: set[str | None] = set()
    for part in value:
        keys = any_speaker_and_text(part)
        if keys is None or not isinstance(part, dict):
            return False
        sides.add(side_of(part[keys[0]]))

    return sides >= {"user", "assistant"}


def cell(row: Row, path: str) -> Any:
    """The value under a path, such as `inputs.question`; a key that contains dots wins. Of a list
    of objects, the values of all of them, as a list: `documents.id`, or `documents[].id`.
    """
    if path in row:
        return row[path]
    if "." not in path and "[]" not in path:
        return None
    value: Any = row
    keys = path.replace("[]", "").split(".")
    while keys:
        end = 1
        if isinstance(value, list):
            value = [part[keys[0]] for part in _objects_in(value) if keys[0] in part] or None
        elif isinstance(value, Mapping):
            end = len(keys)
            while end > 1 and ".".join(keys[:end]) not in value:
                end -= 1
            value = value.get(".".join(keys[:end]))
        else:
            return None
        keys = keys[end:]

    return value


def without(row: Row, keys: Container[str | None]) -> dict[str, Any]:
    """What a row holds under other keys than these."""
    kept = {}
    for key, value in row.items():
        if key not in keys:
            kept[key] = value

    return kept


def _objects_in(values: Iterable[object]) -> Iterator[Row]:
    """The objects in a list, also in lists inside it."""
    for value in values:
        if isinstance(value, list):
            yield from _objects_in(value)
        elif isinstance(value, Mapping):
            yield value


def are_texts(values: Iterable[object]) -> bool:
    """Whether all values are texts."""
    return all(isinstance(value, str) for value in values)


def are_objects(values: Iterable[object]) -> bool:
    """Whether all values are objects."""
    return all(isinstance(value, Mapping) for value in values)


def shared_cells(rows: Sequence[Row]) -> dict[str, Any]:
    """The cells that are equal in all these rows."""
    shared = {}
    for key, value in rows[0].items():
        if all(row.get(key) == value for row in rows):
            shared[key] = value

    return shared


def columns_of(rows: Iterable[Row], named: Iterable[str] = ()) -> dict[str, Column]:
    """The columns of a file, and the keys of objects in them as columns of their own; also the
    `named` paths that lead into lists.
    """
    looked_at = list(islice(rows, LOOKED_AT))
    cells: dict[str, dict[int, Any]] = {}
    _gather(cells, enumerate(looked_at))
    for path in named:
        found = {}
        for at, row in enumerate(looked_at):
            found[at] = cell(row, path)

        if path not in cells and any(not is_empty(value) for value in found.values()):
            cells[path] = found

    columns = {}
    for path, values in cells.items():
        columns[path] = Column(path, rows=len(looked_at))
        columns[path].add(values.values())

    _find_compared(columns, cells)
    if len(columns) >= _FEWEST_CLASSES:
        _find_classes(columns, cells)
    return columns


def _find_classes(columns: Columns, cells: Mapping[str, Mapping[int, object]]) -> None:
    """Finds the columns that say how likely each class is: they are called as the labels in another
    one are, by no name of a score, and their numbers are shares of one in each row.
    """
    likely = []
    for path, column in columns.items():
        shares = all(0 <= (number_in(value) or 0) <= 1 for value in column.values)
        if column.numbers == column.rows > 1 and shares and not is_score_name(path):
            likely.append(path)

    for path, values in cells.items() if len(likely) >= _FEWEST_CLASSES else ():
        if _COMPARED & {*words_of(path)}:
            continue
        labels = set()
        for value in values.values():
            if isinstance(value, list):
                parts = value
            else:
                parts = [value]

            labels |= {part for part in parts if isinstance(part, str)}

        named = [name for name in likely if name in labels]
        votes = all(columns[name].is_yes_or_no for name in named)
        if votes or len(named) < _FEWEST_CLASSES:
            continue
        rows = zip(*(cells[name].values() for name in named), strict=True)
        sums = [sum(filter(None, map(score_in, row))) for row in rows]
        if all(math.isclose(total, 1, abs_tol=_ROUNDED) for total in sums):
            for name in named:
                columns[name].of_a_class = True


def _find_compared(
    columns: Columns,
    cells: Mapping[str, Mapping[int, object]],
) -> None:
    """Finds the columns that say whether two others are equal, as a grade does of labels."""
    labels = []
    for path, column in columns.items():
        few = 1 < len(column.values) <= _FEW_LABELS and 2 * len(column.values) <= column.filled
        if few and column.texts == column.filled == column.rows and not names_persons(path):
            labels.append(path)

    if len(labels) < 2:
        return
    for path, column in columns.items():
        if not column.is_yes_or_no:
            continue
        verdicts = []
        for row in range(columns[path].rows):
            verdicts.append(score_in(cells[path].get(row)))

        if min(verdicts.count(0.0), verdicts.count(1.0)) < _FEWEST_VERDICTS or None in verdicts:
            continue
        for first, second in combinations(labels, 2):
            if not columns[first].values & columns[second].values:
                continue
            pairs = zip(cells[first].values(), cells[second].values(), verdicts, strict=True)
            if all((one == other) == bool(verdict) for one, other, verdict in pairs):
                columns[path].compares = (first, second)
                break


def _gather(
    cells: dict[str, dict[int, Any]],
    rows: Iterable[NumberedRow],
    *,
    prefix: str = "",
    depth: int = 1,
) -> None:
    """Adds path → row → value. A key that contains dots wins if it comes first."""
    for number, row in rows:
        for key, value in row.items():
            path = f"{prefix}{key}"
            if path not in cells and len(cells) >= _MOST_COLUMNS:
                break
            cells.setdefault(path, {}).setdefault(number, value)
            if isinstance(value, dict) and depth < _DEEPEST and 0 < len(value) <= _MOST_KEYS:
                _gather(cells, [(number, value)], prefix=f"{path}.", depth=depth + 1)


_POINT = re.compile(r"(?<=\d)[.](?=\d)")


def without_point(path: str) -> str:
    """The path without points between digits, which are part of a name: of `gpt-3.5-turbo`."""
    return _POINT.sub("\N{ONE DOT LEADER}", path)


def paths_in(columns: Iterable[str]) -> list[str]:
    """The top-level columns, without the keys of objects."""
    return [path for path in columns if "." not in without_point(path)]


def leaves(columns: Iterable[str]) -> list[str]:
    """The columns without the objects around them."""
    paths = [*columns]
    around = set()
    for path in paths:
        parts = path.split(".")
        around |= {".".join(parts[:end]) for end in range(1, len(parts))}

    return [path for path in paths if path not in around]


def without_number(path: str) -> str:
    """The path without a number at its end, and without case."""
    return re.sub(r"[\s_-]*\d+$", "", path).casefold()


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths with the fewest dots."""
    ordered = sorted(paths, key=lambda path: path.count("."))
    return [path for path in ordered if path.count(".") == ordered[0].count(".")]
