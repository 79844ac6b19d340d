"""Conditions that no name tells: columns that an experimenter crossed with the questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import compress
from shlex import quote

import msgspec

from karat.documents.batches import Table
from karat.documents.columns import NO_NAME, Row, cell, number_in
from karat.documents.names import (
    is_measure,
    is_score_name,
    may_be_factor,
    names_persons,
    repeats,
    roles_of,
    with_role,
    words_of,
)
from karat.documents.sentences import NO_WORDS
from karat.formats import excerpt, some_of, text_of
from karat.hashes import Tally

_NEARLY_ALL = 0.8  # of the questions have a row for each condition
_FEW_ODD = 0.05  # of a question's conditions have more rows than others, as after an error
_FEWEST = 5  # questions: that all of fewer have the same values is chance
_MOST_VALUES = 20  # of a factor
_WIDEST = 24  # characters of a value in a sentence


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A column that is a condition by its values."""

    column: str
    values: tuple[str, ...]  # in the order of the file

    def __str__(self) -> str:
        return f"{self.column} ({some_of(_quoted(self.values, mark=''), most=6)})"


def factors_in(
    table: Table,
    ids: Sequence[str],
    conditions: Sequence[str],
    *,
    used: Collection[str],
) -> tuple[Factor, ...]:
    """The columns whose few values nearly each question has equally often.

    None if rows of a question and its conditions are still several, and no column numbers
    repetitions: then something else parts them. `ids`: columns in which rows of one question agree.
    `conditions`: those that are known. `used`: columns with another meaning.
    """
    groups = [*ids, *conditions]
    if _usual_rows(table, groups) < 2:
        return ()
    found: list[Factor] = []
    for factor in _candidates(table, {*groups, *used}):
        chosen = [*groups, *(known.column for known in found)]
        whole = not may_be_factor(factor.column)
        if _is_crossed(table, chosen, factor.column, whole=whole):
            found.append(factor)

    all_of_them = [*groups, *(factor.column for factor in found)]
    if with_role(table.columns, "repetition") or _usual_rows(table, all_of_them) < 2:
        return tuple(found)
    if conditions:  # what is finer than these
        return factors_in(table, ids, (), used={*used, *conditions})
    return ()


def sentence(conditions: Sequence[str], factors: Sequence[Factor]) -> str:
    """What was taken for conditions, the factors last, and how to say otherwise."""
    known = conditions[: len(conditions) - len(factors)]
    listed = ", ".join([*known, *map(str, factors)])
    return (
        f"conditions: {listed}, as nearly each question has a row with each value; if these are "
        f"repetitions, --map repetition={quote(factors[-1].column)}"
    )


def like_conditions(table: Table, columns: Sequence[str], *, used: Collection[str]) -> str | None:
    """A sentence that names a column whose values nearly each question has equally often, as it
    has those of conditions, or persons.

    None: there is none. `columns`: in which rows of one question and condition agree. `used`:
    columns with another meaning.
    """
    sizes = Counter[int]()
    for batch in table:
        sizes.update(map(hash, batch.keys(columns)))

    most_common = Counter(sizes.values()).most_common(1)
    ((size, number),) = most_common or [(0, 0)]
    if len(sizes) == 1 or size < 2 or number < _NEARLY_ALL * len(sizes):
        return None
    whole = next(code for code, rows_of_group in sizes.items() if rows_of_group == size)
    first: list[Row] = []
    for batch in table:
        is_first = [hash(key) == whole for key in batch.keys(columns)]
        if any(is_first):
            first += compress(batch.rows, is_first)

    for column in [name for name in first[0] if name not in used]:
        texts = []
        for row in first:
            value = cell(row, column)
            texts.append("" if value is None else text_of(value))

        counts = Counter(sorted(texts))
        counted = all(value.isdecimal() for value in counts) and not _is_set(column, counts)
        if counted or len(counts) == 1 or len({*counts.values()}) > 1:
            continue
        sums = dict.fromkeys(sizes, 0)  # of hashes: equal for equal values in any order
        for batch in table:
            for key, text in zip(batch.keys(columns), batch.texts(column), strict=True):
                sums[hash(key)] += hash(text)

        alike = sum(value == sums[whole] for value in sums.values())
        if alike >= _NEARLY_ALL * len(sizes):
            rows = f"each question has rows with {some_of(_quoted(counts))} in '{column}'"
            if names_persons(column):
                return f"{rows}: to compare by person, --map id={quote(column)} and no question"
            return f"{rows}: if they are conditions, --map condition={quote(column)}"

    return None


def parting(table: Table, columns: Sequence[str], *, used: Collection[str]) -> list[str]:
    """The columns of names or ids that tell all rows apart which agree in `columns`, and do not
    number the rows of the file. `used`: columns with another meaning.
    """
    found = []
    for column in table.columns:
        is_id = "id" in roles_of(column)
        may_part = may_be_factor(column) and not is_measure(words_of(column))
        if not is_id and not may_part:
            continue

        if is_score_name(column) or column in {*columns, *used}:
            continue

        values, whole = Tally(), Tally()
        for batch in table:
            values.update(filter(None, batch.texts(column)))
            whole.update(batch.keys([*columns, column]))

        is_whole = len(values) == len(whole) == whole.different()
        if is_whole and 1 < values.different() <= len(whole) / 2:
            found.append(column)

    return sorted(found, key=lambda column: "id" not in roles_of(column))


def _candidates(table: Table, used: Collection[str]) -> list[Factor]:
    """The columns that may be conditions by their names and their few values: words before
    numbers, as `low` and `high` say more than 1 and 2.
    """
    values: dict[str, dict[str, None]] = {}
    for column in table.columns:
        if column in used or column.startswith(NO_NAME):
            continue
        if may_be_factor(column, rarely=True):
            values[column] = {}

    for batch in table:
        for column, met in [*values.items()]:
            met.update(dict.fromkeys(batch.texts(column)))
            if len(met) > _MOST_VALUES:
                del values[column]

    found = []
    for column, met in values.items():
        texts = tuple(filter(None, met))
        if len(texts) > 1 and _is_set(column, texts):
            found.append(Factor(column=column, values=texts))

    return sorted(found, key=lambda factor: number_in(factor.values[0]) is not None)


def _is_set(column: str, values: Iterable[str]) -> bool:
    """Whether values may be chosen by an experimenter: they count nothing, are no hashes or times,
    and name no repetition.
    """
    texts = [*values]
    counts = {text.strip() for text in texts}
    counts_up = any(
        counts == {str(number) for number in range(first, first + len(counts))} for first in (0, 1)
    )
    hashed = all(map(NO_WORDS.fullmatch, texts))
    return (
        may_be_factor(column, rarely=True)
        and not counts_up
        and not hashed
        and not any(map(repeats, texts))
    )


def _is_crossed(table: Table, groups: Sequence[str], column: str, *, whole: bool) -> bool:
    """Whether nearly each group of rows has each value of the column, and as often as others;
    `whole`: each without exception.
    """
    met, cells, values = Tally(), Tally(), Tally()
    for batch in table:
        keys, texts = batch.keys(groups), batch.texts(column)
        met.update(key for key in keys if key[0])
        pairs = []
        for pair in zip(keys, texts, strict=True):
            if pair[0][0] and pair[1]:
                pairs.append(pair)

        cells.update(pairs)
        values.update(text for _, text in pairs)

    number = met.different()
    if number < _FEWEST:
        return False
    counts = cells.counts()
    usual = cells.usual()
    full = number * values.different()
    filled = counts.clip(max=usual).sum() / usual
    odd = (counts > usual).sum()
    if whole:
        return bool(filled == full and not odd)
    return bool(filled >= _NEARLY_ALL * full and odd <= _FEW_ODD * full)


def _usual_rows(table: Table, groups: Sequence[str]) -> int:
    """How many rows agree in these columns, mostly."""
    rows = Tally()
    for batch in table:
        rows.update(key for key in batch.keys(groups) if key[0])

    if rows.different() == len(rows):
        return min(len(rows), 1)
    return rows.usual()


def _quoted(values: Iterable[str], *, mark: str = "'") -> list[str]:
    return [f"{mark}{excerpt(value, _WIDEST)}{mark}" for value in values]
