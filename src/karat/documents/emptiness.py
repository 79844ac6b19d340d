"""Rows in which the golden answer is empty: how many, and what they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from karat.documents.columns import NumberedRow, Row, cell, is_empty
from karat.documents.languages import YES_OR_NO
from karat.documents.names import joined, last_part, word_set, words_of
from karat.documents.row_list import Rows
from karat.formats import count, excerpt, plural, some_of

_FEW_VALUES = 12  # a column with more does not say what kind of row it is
_FEW = 3
_SHOWN = 24  # characters of a value
_HAS_AN_ANSWER = word_set("answerable isanswerable hasanswer hasgroundtruth inscope isinscope")
_HAS_NONE = word_set(
    "unanswerable isunanswerable impossible isimpossible outofscope isoutofscope noanswer"
)
_DECLINES = word_set(
    "decline declines declined refuse refuses refused refusal abstain abstains abstention"
)
_EXPECTED = word_set("should must expect expects expected expectation require requires required")
_IN_USE, _OUT_OF_USE = word_set("enabled isenabled"), word_set("disabled isdisabled skip skipped")
_YES, _NO = {"true", "yes", "1"}, {"false", "no", "0"}
for _word, _is_yes in YES_OR_NO.items():
    (_YES if _is_yes else _NO).add(_word)


def emptiness(rows: Rows, path: str) -> str | None:
    """In how many rows a column is empty, which values of another column these rows have, and what
    they hold instead; None: in fewer than two, in all, or in a few that have nothing in common.
    """
    empty: list[NumberedRow] = []
    filled: list[Row] = []
    for number, row in rows.rows:
        if is_empty(cell(row, path)):
            empty.append((number, row))
        else:
            filled.append(row)

    if len(empty) < 2 or not filled:
        return None
    among = plural(len(empty) + len(filled), rows.unit)
    places = some_of([str(number) for number, _ in empty])
    sentence = f"'{path}' is empty in {count(len(empty))} of {among} ({places})"
    without = [row for _, row in empty]
    in_common = _shared_value(without, filled)
    in_common += _held_instead(without, filled)
    if not in_common and len(empty) <= _FEW:
        return None
    return sentence + in_common


def unanswerable(rows: Rows, path: str) -> tuple[str, set[int]] | None:
    """The column that marks rows without an answer as having none, and the numbers of the rows in
    which `path` is empty and it says so; None: there is no such column.
    """
    marked: dict[str, set[int]] = {}
    for number, row in rows.rows:
        if not is_empty(cell(row, path)):
            continue
        for name, value in row.items():
            if says_unanswerable(name, value):
                marked.setdefault(name, set()).add(number)

    if not marked:
        return None
    return max(marked.items(), key=lambda found: len(found[1]))


def says_unanswerable(name: str, value: object) -> bool:
    """Whether a cell says that its row has no answer.

    >>> says_unanswerable("answerable", False), says_unanswerable("should_refuse", "no")
    (True, False)
    """
    return str(value).strip().casefold() in unanswerable_values(name)


def unanswerable_values(name: str) -> Collection[str]:
    """The values with which a column of this name says that a row has no answer; none: it does not
    speak of that.
    """
    words = {*words_of(last_part(name))}
    above = {*words_of(last_part(name.rpartition(".")[0]))}
    if above and above <= _EXPECTED:  # `expect: {refuse: true}`
        words |= above
    expected = words & _EXPECTED and words & _DECLINES and words <= _EXPECTED | _DECLINES
    if expected or joined(name) in _HAS_NONE:
        return _YES

    if joined(name) in _HAS_AN_ANSWER:
        return _NO

    return ()


def in_use(rows: Rows) -> Rows:
    """The rows that no column such as `enabled` or `skip` puts out of use; counts the others."""
    names: dict[str, None] = {}
    for row in rows.first_rows():
        names.update(dict.fromkeys(row))

    for name in names:
        if joined(name) not in _IN_USE | _OUT_OF_USE:
            continue
        left = 0
        kept = rows.emptied()
        unwanted = _NO if joined(name) in _IN_USE else _YES
        for number, row in rows.rows:
            if str(row.get(name)).strip().casefold() in unwanted:
                left += 1
            else:
                kept.add(number, row)

        if 0 < left < rows.count:
            of = plural(rows.count, rows.unit)
            value = "false" if unwanted is _NO else "true"
            rows = kept
            rows.notes.append(f"{left} of {of} left out, in which '{name}' is {value}")

    return rows


def _shared_value(empty: list[Row], filled: list[Row]) -> str:
    """The column whose values tell the empty rows from the others, the one with the fewest."""
    found: dict[str, Mapping[str, int]] = {}
    for name in empty[0]:
        values = [row.get(name) for row in (*empty, *filled)]
        if not all(isinstance(value, (str, bool, int)) for value in values):
            continue
        texts = [str(value) for value in values]
        inside = Counter(texts[: len(empty)])
        outside = {*texts[len(empty) :]}
        different = len({*texts})
        few = different <= _FEW_VALUES and 2 * different <= len(texts)
        if few and outside.isdisjoint(inside):
            found[name] = inside

    if not found:
        return ""
    name = min(found, key=lambda name: len(found[name]))
    listed = []
    for text, number in found[name].items():
        listed.append(f"{excerpt(text, _SHOWN)} ({number})")

    return f": all those whose '{name}' is {some_of(listed)}, and no other"


def _held_instead(empty: list[Row], filled: list[Row]) -> str:
    """The columns that hold something in these rows alone."""
    counts: Counter[str] = Counter()
    for row in empty:
        for name, value in row.items():
            if not is_empty(value):
                counts[name] += 1

    for row in filled:
        for name, value in row.items():
            if not is_empty(value):
                del counts[name]

    if not counts:
        return ""
    names = [f"'{name}' ({number})" for name, number in counts.items()]
    return f"; they alone have {some_of(names)}"
