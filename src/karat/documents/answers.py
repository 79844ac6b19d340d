"""Rows that hold answers: which question, condition and repetition each row belongs to.

Every door for answers reads its rows through here: `karat score FILE`, the agent `replay`, `karat
import csv`, and recorded conversations and studies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from operator import itemgetter

import msgspec

from karat.documents.batches import Batch, Table
from karat.documents.columns import LOOKED_AT, MISSING, Columns, Row, cell, is_empty
from karat.documents.names import (
    Role,
    last_part,
    may_be_factor,
    roles_of,
    with_role,
    word_set,
    words_of,
)
from karat.errors import did_you_mean
from karat.formats import excerpt, plural, some_of, text_of
from karat.hashes import HashSet, Tally

_ALWAYS = ("condition", "model", "model_name")  # also if no question has rows with two values
_EMPTY = (None, "")
_JOINED = " · "
_MANY_PARTED = 0.25  # of the ids have several golden answers
_FEW_SPELLINGS = 0.02  # of the questions of a file are written in two ways


def usual(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """The columns with these names, in the order of the names; case, spaces and hyphens do not
    matter.
    """
    folded: dict[str, str] = {}
    for column in columns:
        folded.setdefault(re.sub(r"[\s-]+", "_", column.strip()).casefold(), column)

    return [folded[name] for name in names if name in folded]


def hint(role: str, column: str, columns: Collection[str]) -> str:
    """The nearest name to a missing column, among those that do not hold something else.

    `role`: of `names`, or new.
    """
    asked_or_said = ("question", "golden", "answer")
    others = set()
    for name in columns:
        roles = roles_of(name)
        if role in asked_or_said and role not in roles and roles & {*asked_or_said}:
            others.add(name)

    return did_you_mean(column, columns, other_roles=others)


def key_of(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    """The texts in these columns, without differences in white space."""
    texts = []
    for column in columns:
        value = row.get(column)
        if not isinstance(value, str):
            value = _text(cell(row, column))
        texts.append(" ".join(value.split()))

    return tuple(texts)


def _text(value: object) -> str:
    if value is None:
        return ""
    return text_of(value)


def sample_columns(
    table: Iterable[Batch],
    *,
    question: str,
    golden: str | None,
    id_column: str | None,
) -> tuple[list[str], bool]:
    """The columns in which rows of one question agree: its id, else its text and golden answer; and
    whether several rows may agree in them.

    A column of ids counts if no id has two questions, or few of ids with several rows each have two
    spellings of one; it may stand for a question that is left out, as in rows of errors. Ids that
    differ from row to row number the rows, not the questions, if questions with the same golden
    answer have two rows or more on average.
    """
    if golden is None:
        text = [question]
    else:
        text = [question, golden]

    if id_column is None:
        return text, True
    names, texts, named = Tally(), Tally(), Tally()
    for batch in table:
        if not all(batch.texts(id_column)):
            return text, True
        ids, asked = batch.spaced(id_column), batch.spaced(question)
        names.update(ids)
        texts.update(batch.keys(text))
        named.update(pair for pair in zip(ids, asked, strict=True) if pair[1])

    different = names.different()
    more = named.different() - different
    if more > (_FEW_SPELLINGS * different if names.usual() > 1 else 0):
        return text, True
    numbers_rows = golden is not None and different == len(names) >= 2 * texts.different()
    if numbers_rows:
        return text, True
    return [id_column], different < len(names)


def whole_id(table: Table, name: str, *, golden: str | None, used: Collection[str]) -> list[str]:
    """The columns that tell questions apart in a file that holds their ids and golden answers, but
    no texts.

    That is the column of ids; where many ids have several golden answers, another one as well, with
    which none has (a number counts in each task anew); else the golden answer as well. `used`:
    columns with another meaning.
    """
    if golden is None:
        return [name]
    pairs, several = _of_ids(table, [name], golden)
    if not several:
        return [name]
    found: dict[str, int] = {}
    for column in table.columns if several > _MANY_PARTED * pairs else ():
        if column in {name, golden, *used, *with_role([column], "condition", "model")}:
            continue
        if not may_be_factor(column):
            continue
        values, whole = Tally(), Tally()
        for batch in table:
            values.update(filter(None, batch.texts(column)))
            whole.update(batch.keys([column, name]))

        each_has_several_ids = whole.different() >= 2 * values.different()
        _, still_several = _of_ids(table, [name, column], golden)
        if each_has_several_ids and not still_several:
            found[column] = values.different()

    parting = min(found, key=lambda column: found[column], default=golden)
    return [name, parting]


def _of_ids(table: Table, ids: Sequence[str], golden: str) -> tuple[int, int]:
    """How many different ids with golden answers there are, and how many ids have several."""
    pairs = HashSet()
    names = Tally()
    for batch in table:
        for key in batch.keys([*ids, golden]):
            if key[-1] and pairs.add(key):
                names.update([key[:-1]])

    return names.different(), len(names.again())


def stop_reason(row: Row) -> str | None:
    """Why the answer of a row ended, in a column with a usual name; None: it does not say."""
    reasons = (_text(row[column]) for column in _columns_with("stop_reason", tuple(row)))
    return next(filter(None, reasons), None)


def error_in(row: Row) -> str | None:
    """The error that a row reports instead of an answer, in a column with a usual name, or in one
    that says how its run ended; None: it reports none.
    """
    for column in _columns_with("error", tuple(row)):
        if not is_empty(row[column]) and says_failed(column, text := _text(row[column])):
            return text

    return None


def says_failed(column: str, text: str) -> bool:
    """Whether the text of a column for errors, or for how runs ended, says that there is no result.

    >>> says_failed("error", "no key"), says_failed("run_status", "done")
    (True, False)
    """
    return says_not_run(text) if is_status(column) else not says_no_error(text)


def says_no_error(text: str) -> bool:
    """Whether the text of a column for errors says that there was none, or how far an answer is
    from the right one.
    """
    said = text.strip().lower()
    return said in _NO_ERROR or _DISTANCE.fullmatch(said) is not None


def failing_status(columns: Columns) -> str | None:
    """The column that says of each row how its run ended, where some did not end as they should:
    in an error, a timeout, blocked. None: there is none.
    """
    for path, column in columns.items():
        if is_status(path) and any(map(says_not_run, column.values)):
            return path

    return None


def is_status(path: str) -> bool:
    """Whether a column's name says that it holds how a run ended."""
    return words_of(last_part(path))[-1:] in (("status",), ("state",))


def says_not_run(text: str) -> bool:
    """Whether the text of a column of statuses says that there is no result.

    >>> says_not_run("blocked_by_quota"), says_not_run("timed out"), says_not_run("done")
    (True, True, False)
    """
    words = words_of(text)
    return bool(_NOT_RUN & {*words}) or words[:2] == ("timed", "out")


_NOT_RUN = word_set(
    "error errors errored timeout crash crashed exception blocked aborted cancelled"
)
_NO_ERROR = frozenset({"", *MISSING, "false", "no", "0", "[]", "{}"})
_DISTANCE = re.compile(r"[-+]?\d*\.\d+(?:e[-+]?\d+)?")


@lru_cache
def _columns_with(role: Role, columns: tuple[str, ...]) -> list[str]:
    found = with_role(columns, role)
    if role == "error":
        found += filter(is_status, columns)
    return found


def usual_id(columns: Iterable[str]) -> str | None:
    """The column with a usual name for ids."""
    return next(iter(with_role(columns, "id")), None)


def condition_columns(
    table: Table,
    ids: Sequence[str],
    *,
    used: Collection[str] = (),
    first: Sequence[str] = (),
    inside: Sequence[str] = (),
) -> tuple[str, ...]:
    """The columns whose values are conditions: usually one, none, or several that only together
    tell rows apart.

    A column with a usual name counts if a question has rows with different values in it. `ids`:
    columns in which rows of one question agree. `used`: columns with another meaning. `first`: the
    first ones, as the user has decided. `inside`: columns in objects that may be conditions.
    """
    columns = table.columns
    always = usual(_ALWAYS, columns)
    chosen = [*first]
    named = [name_inside(table, path) for path in with_role(columns, "condition", "model")]
    for column in dict.fromkeys([*filter(None, named), *inside]):
        if column in used or column in chosen:
            continue
        values, groups, parts = Tally(), Tally(), Tally()
        for batch in table:
            texts = batch.texts(column)
            grouped = zip(batch.keys(ids), *map(batch.texts, chosen), strict=True)
            pairs = []
            for pair in zip(grouped, texts, strict=True):
                if pair[1]:
                    pairs.append(pair)

            values.update(filter(None, texts))
            groups.update(map(itemgetter(0), pairs))
            parts.update(pairs)

        parts_a_group = parts.different() > groups.different()
        is_first_of_several = not chosen and column in always and values.different() > 1
        if parts_a_group or is_first_of_several:
            chosen.append(column)

    return tuple(chosen)


def name_inside(table: Table, column: str) -> str | None:
    """The column, or what names the object that it holds: `agent.name`. None: nothing does."""
    for batch in table:
        held = next((value for value in batch.column(column) if value is not None), None)
        if not isinstance(held, Mapping):
            return column
        keys = [key for key in ("name", "id", "label", "model") if key in held]
        return f"{column}.{keys[0]}" if keys else None

    return column


def conditions_of(batch: Batch, columns: Sequence[str]) -> Sequence[str | None]:
    """The conditions of rows; None: a row names none."""
    if not columns:
        return [None] * len(batch.numbers)
    rows = zip(*map(batch.texts, columns), strict=True)
    return [_JOINED.join(filter(None, values)) or None for values in rows]


def condition_of(row: Row, columns: Sequence[str]) -> str | None:
    """The row's condition; None: it names none."""
    if not columns:
        return None
    values = [_text(cell(row, column)) for column in columns]
    return _JOINED.join(value for value in values if value) or None


def repetition_value(value: object, column: str) -> int | str | None:
    """What a row says of its repetition: a whole number or a text; None: nothing.

    Raises ValueError.
    """
    if value in _EMPTY:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"'{column}' is {excerpt(_text(value), 40)}, expected a number or a text")
    written = str(value).strip().removesuffix(".0")
    try:
        number = int(written)
    except ValueError:
        return written

    if number < 0:
        raise ValueError(f"'{column}' is {number}, expected a whole number from 0")
    return number


class Repetitions:
    """Numbers repetitions from 0, whatever a file counts from: 1, 2, 3 or 10, 20 or `first`,
    `second`.

    Each condition has its own values. Values that questions do not share, such as seeds, number the
    rows of each question. First `add` every row, then ask for its `number`.
    """

    def __init__(self) -> None:
        self._of_value: dict[tuple[str | None, int | str], dict[Hashable, None]] = {}
        self._numbers: dict[tuple[str | None, Hashable], dict[int | str, int]] | None = None

    def add(self, sample: Hashable, condition: str | None, value: int | str | None) -> None:
        if value is not None:
            samples = self._of_value.setdefault((condition, value), {})
            if len(samples) < 2:  # more are not needed
                samples[sample] = None

    def number(self, sample: Hashable, condition: str | None, value: int | str) -> int:
        """From 0."""
        if self._numbers is None:
            values_of = Counter(name for name, _ in self._of_value)
            shared_of = Counter(
                name for (name, _), samples in self._of_value.items() if len(samples) > 1
            )
            groups: dict[tuple[str | None, Hashable], list[int | str]] = {}
            for (name, other), samples in self._of_value.items():
                is_shared = 2 * shared_of[name] >= values_of[name]
                group = (name, None if is_shared else next(iter(samples)))
                groups.setdefault(group, []).append(other)

            self._numbers = {}  # the sample None: one numbering for all
            for group, others in groups.items():
                if all(isinstance(other, int) for other in others):
                    others.sort(key=int)
                self._numbers[group] = {other: number for number, other in enumerate(others)}

        common = self._numbers.get((condition, None))
        if common is not None:
            return common[value]
        own = self._numbers.setdefault((condition, sample), {})
        return own.setdefault(value, len(own))  # a few questions may share a seed


def mostly_copies(rows: Iterable[Row]) -> str | None:
    """How many of the first rows are identical to an earlier one, if these are more than half:
    then they are hardly there by mistake. None: they are fewer.
    """
    copies = Copies("row")
    number = again = 0
    for row in islice(rows, LOOKED_AT):
        number += 1
        again += not copies.remember(row)

    if 2 * again <= number:
        return None
    return f"{again} of {plural(number, 'row')} are identical to an earlier one"


class Copies:
    """Rows that are identical to an earlier one. They count once, and are named."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._seen = HashSet()
        self._numbers: list[int] = []

    def is_copy(self, number: int, row: Row) -> bool:
        """Whether an earlier row was the same in every column.

        `number`: of the row, for the sentence.
        """
        if self.remember(row):
            return False
        self._numbers.append(number)
        return True

    def remember(self, row: Row) -> bool:
        """Takes a row for one that others may be copies of; whether it is the first such row."""
        return self._seen.add(msgspec.json.encode(row, order="sorted"))

    def is_same(self, number: int, row: Row, earlier: Row) -> bool:
        """Whether a row is the same as an earlier one with its question, condition and
        repetition.
        """
        if row == earlier:
            self._numbers.append(number)
        return row == earlier

    def sentence(self) -> str | None:
        """How many there are, and where; None: there are none."""
        if not self._numbers:
            return None
        copies = plural(len(self._numbers), f"{self._unit} repeats", f"{self._unit}s repeat")
        places = some_of([str(number) for number in self._numbers])
        return (
            f"{copies} an earlier {self._unit} word for word and count once ({self._unit} "
            f"{places}); if they are repetitions, number them in a column 'repetition'"
        )
