"""Rows of results that hold several: a list of answers in a cell, with a list of their scores or
without, a list of metrics in a cell, or a row for each metric of an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

from karat.documents.candidates import TEXTS_OF_ANSWERS
from karat.documents.cells import parsed
from karat.documents.columns import (
    NumberedRow,
    Row,
    are_messages,
    are_objects,
    are_texts,
    is_empty,
    score_in,
    without,
)
from karat.documents.names import (
    DECIDED,
    SAID,
    Meaning,
    is_gold,
    is_score_name,
    joined,
    meanings,
    roles_of,
    speaker_and_text,
    word_set,
    words_of,
)
from karat.documents.results import COUNTED, repeats_scores
from karat.documents.row_list import Rows
from karat.formats import plural, some_of, text_of

_LOOKED_AT = 20  # rows that decide
_METRIC = word_set("metric metricname evaluator evaluatorname criterionname dimension measure")
_NAMES = (
    *("metric", "metric_name", "evaluator", "name", "key", "criterion", "dimension"),
    *("judge", "rater", "grader", "annotator", "reviewer"),
)
_RATERS = word_set("judge grader evaluator rater annotator reviewer scorer assessor coder")
_OF_RATERS = _RATERS | word_set("id name model llm no number")
_SPENT = word_set("cost usd tokens latency ms seconds time")
_VALUES = ("score", "value", "rating", "passed", "success")
_OF_ONE_METRIC = word_set(
    "threshold passed success reason explanation timestamp verdict detail details"
)
_SEVERAL = word_set(
    """results responses outputs answers runs trials generations completions models systems
    predictions attempts samples evaluations"""
)
_TEXTS = word_set("responses outputs generations completions predictions samples")
_SAID = ("answer", "golden")
_DIGITS = 10
_TOTALS = word_set("total num n")
_NEARLY_ALL = 0.8  # of the rows
_FEWEST = 3  # rows that a last one can sum up
_MOST = 10_000  # rows that are looked at as a whole
_MANY = 1_000  # rows of which each has one of several columns
_ROUNDED = 0.006  # files round their means
_DOES_NOT_APPLY = frozenset({"no", "false", "0", "n", "n/a", "na", "not applicable"})


_SUMMARY = re.compile(
    r"\W*(?:(?:grand|overall|final) )?(?:summary|averages?|avg|means?|totals?|sum|overall|promedio|"
    r"media|汇总|요약|média|moyenne|durchschnitt|mittelwert|gesamt|summe|итого|среднее|平均|合计|合計)\b",
    re.IGNORECASE,
)
_NUMBER_IN_WORDS = re.compile(r"[^\d:]{1,40}: *\d")


def is_summary(text: str) -> bool:
    """Whether a text is what a row with the means or totals of others is called."""
    return _SUMMARY.match(text) is not None


def unfolded(rows: Rows) -> Rows:
    """The rows with a row for each answer, and a column for each metric; the same rows if they are
    so already.
    """
    first = [row for _, row in islice(rows.rows, _LOOKED_AT)]
    if not first:
        return rows
    summary = _summary(rows)
    if summary is not None:
        number, text = summary
        others = ((at, row) for at, row in rows.rows if at != number)
        rows = _changed(rows, others, f"the last row sums up the others and is left out: {text}")

    parts = parts_of_golden(rows)
    if parts:
        note = f"'{parts[0]}' where it is empty is what fills its place: {some_of(parts[1:])}"
        rows = _changed(rows, from_one_of(rows.rows, parts), note)
        first = [row for _, row in islice(rows.rows, _LOOKED_AT)]

    asked = asked_by_columns(first)
    if asked:
        note = f"each column that is called as a question is one: {some_of(asked)}"
        return _changed(rows, a_row_a_question(rows.rows, asked), note)

    rows = with_written_objects(rows, first)
    applying = _applying(first)
    if applying:
        rows = _changed(rows, _where_they_apply(rows.rows, applying), *_said_of(rows, applying))
    counted = _counted(first)
    if counted:
        listed = some_of([f"'{name}' of '{whole}'" for name, whole in counted.items()])
        rows = _changed(rows, _as_shares(rows.rows, counted), f"taken as a share: {listed}")

    if rows.count:
        first = [row for _, row in islice(rows.rows, _LOOKED_AT)]
    together = _answers_and_scores(first)
    for name in () if together else first[0]:
        cells = [row.get(name) for row in first]
        lists = [cell for cell in cells if isinstance(cell, list) and cell]
        entries = [entry for cell in lists for entry in cell]
        metrics = all(isinstance(part, Mapping) and _metric_in(part) for part in entries)
        if len(lists) == len(cells) and metrics:
            rows = _changed(rows, _with_metrics(rows.rows, name))
        elif _are_answers(name, cells):
            # another column of the row may surely be the answer
            if any(key != name and Meaning("answer") in meanings(key) for key in first[0]):
                continue
            if any(_is_right_for(first, key, name) for key in first[0]):
                continue  # the list is one answer
            note = f"each entry of '{name}' is a row"
            rows = _changed(rows, _a_row_an_answer(rows.rows, name), note)

    settings = _lists_of_settings(first)
    if settings:
        note = f"each entry of {some_of(settings)} is a row, and its column the condition"
        return _changed(rows, _a_row_a_setting(rows.rows, settings), note)

    if together:
        note = f"each entry of {some_of(together)} is a row"
        return _changed(rows, _a_row_an_entry(rows.rows, together), note)

    metric = _metric_column(first, rows)
    if metric is not None:
        note = f"each '{metric}' is a metric of the answer in its row"
        return _changed(rows, _a_row_for_all_metrics(rows.rows, metric), note)

    return rows


def with_written_objects(rows: Rows, first: Sequence[Row]) -> Rows:
    """The rows with the objects that cells hold as text; `first`: the first of them."""
    written = []
    for name, value in first[0].items():
        cells = [row.get(name) for row in first]
        if _are_written_objects(name, cells) and not repeats_scores(value, first[0]):
            written.append(name)

    return _changed(rows, _with_objects(rows.rows, written)) if written else rows


def _changed(rows: Rows, numbered: Iterable[NumberedRow], *notes: str) -> Rows:
    changed = rows.emptied(*notes)
    for number, row in numbered:
        changed.add(number, row)

    return changed


def _reasons_in(judged: Mapping[str, Any]) -> dict[str, Any]:
    reasons = {}
    for key in ("reason", "explanation"):
        if key in judged:
            reasons[key] = judged[key]

    return reasons


# --- a last row that sums up the others -------------------------------------------------------


def _summary(rows: Rows) -> tuple[int, str] | None:
    """The number of a last row with the means or totals of the others, and what it is called.

    One of its texts says so, and it lacks a text that all others have, or says numbers in words
    where they have scores (`Right: 9/9`), or its numbers are the others' means. None: none does.
    """
    if not _FEWEST < rows.count <= _MOST:
        return None
    *others, (number, row) = rows.rows
    texts = [text for text in row.values() if isinstance(text, str)]
    name = next(filter(is_summary, texts), None)
    if name is None:
        return None
    lacks, means, numbers, texts_with_numbers = False, 0, 0, 0
    for column, value in row.items():
        above = [other.get(column) for _, other in others]
        if any(is_empty(cell) for cell in above):
            continue
        if is_empty(value):
            lacks = lacks or are_texts(above)
        scores = []
        for score in map(score_in, above):
            if score is not None:
                scores.append(score)

        mean = score_in(value)
        if len(scores) < len(above):
            continue
        if mean is None:
            texts_with_numbers += _NUMBER_IN_WORDS.match(str(value)) is not None
        else:
            numbers += 1
            means += abs(mean - sum(scores) / len(scores)) <= _ROUNDED

    texts = []
    for value in row.values():
        if isinstance(value, str) and score_in(value) is None:
            texts.append(value)

    if lacks or texts_with_numbers > 1 or (texts == [name] and 0 < numbers == means):
        return number, name
    return None


# --- a golden answer in one of several columns ------------------------------------------------


def parts_of_golden(rows: Rows) -> list[str]:
    """A golden column and those that are called like it and more, such as `expected` and
    `expected_format`, if a row has one of them and each has it in some rows. Empty: there are none.
    """
    looked_at = [row for _, row in islice(rows.rows, _MANY)]
    for golden in looked_at[0]:
        if Meaning("golden") not in meanings(golden):
            continue
        whole = words_of(golden)
        parts = [golden]
        for name in looked_at[0]:
            if words_of(name)[: len(whole)] == whole and name != golden:
                parts.append(name)

        if len(parts) > 1 and are_filled_in_turn(looked_at, parts):
            return parts

    return []


def are_filled_in_turn(rows: Sequence[Row], columns: Sequence[str]) -> bool:
    """Whether most rows have one of these columns, none two, and each is had."""
    counts = dict.fromkeys(columns, 0)
    for row in rows:
        filled = [name for name in columns if not is_empty(row.get(name))]
        if len(filled) > 1:
            return False

        for name in filled:
            if isinstance(row[name], (list, Mapping)):
                return False

            counts[name] += 1

    return all(counts.values()) and 2 * sum(counts.values()) > len(rows)


def from_one_of(rows: Iterable[NumberedRow], parts: Sequence[str]) -> Iterator[NumberedRow]:
    """The rows with the first filled one of some columns, whose name it takes."""
    for number, row in rows:
        filled = []
        for name in parts:
            if not is_empty(row.get(name)):
                filled.append(row[name])

        others = {}
        for name, value in row.items():
            if name not in parts[1:]:
                others[name] = value

        yield number, {**others, parts[0]: filled[0] if filled else None}


# --- a column that says where a score applies -------------------------------------------------


def _applying(first: Sequence[Row]) -> dict[str, str]:
    """Column of scores → the column that says where they apply: `tone` and `tone_applicable`."""
    metrics = {words_of(name): name for name in first[0]}
    found = {}
    for name in first[0]:
        words = words_of(name)
        if "applicable" not in words:
            continue
        of_metric = tuple(word for word in words if word not in ("applicable", "is", "not"))
        for ending in ((), ("score",), ("rating",)):
            metric = metrics.get((*of_metric, *ending))
            if metric is not None and "not" not in words:
                found[metric] = name

    return found


def asked_by_columns(rows: Sequence[Row]) -> list[str]:
    """The columns whose names are questions, if most are, and the texts in them answers."""
    found = []
    for name in rows[0]:
        cells = [row.get(name) for row in rows]
        texts = []
        for cell in cells:
            if isinstance(cell, str) and " " in cell.strip():
                texts.append(cell)

        if name.rstrip().endswith(("?", "？", "؟")) and 2 * len(texts) > len(cells):
            found.append(name)

    if len(found) < _FEWEST_ASKED or 2 * len(found) <= len(rows[0]):
        return []
    return found


def a_row_a_question(rows: Iterable[NumberedRow], asked: Sequence[str]) -> Iterator[NumberedRow]:
    """A row for each column that is called as a question, with its cell as the answer."""
    for number, row in rows:
        others = without(row, asked)
        for name in asked:
            yield number, {"question": name, "answer": row.get(name), **others}


_FEWEST_ASKED = 3
"""Columns that are called as questions."""


def _where_they_apply(
    rows: Iterable[NumberedRow],
    applying: Mapping[str, str],
) -> Iterator[NumberedRow]:
    for number, row in rows:
        changed = dict(row)
        for metric, column in applying.items():
            if _does_not_apply(row.get(column)):
                changed[metric] = None

        yield number, changed


def _does_not_apply(value: object) -> bool:
    return value is not None and text_of(value).strip().casefold() in _DOES_NOT_APPLY


def _said_of(rows: Rows, applying: Mapping[str, str]) -> list[str]:
    """How many scores are missing, and why; empty: none is."""
    counts = []
    for metric, column in applying.items():
        number = sum(_does_not_apply(row.get(column)) for _, row in rows.rows)
        if number:
            counts.append(f"'{metric}' in {plural(number, 'row')} where '{column}' says so")

    return [f"missing, as not applicable: {some_of(counts)}"] if counts else []


# --- how many of how many ---------------------------------------------------------------------


def _counted(first: Sequence[Row]) -> dict[str, str]:
    """Column of how many passed → the column of how many there are: `checks_passed` and
    `checks_total`.
    """
    wholes: dict[tuple[str, ...], str] = {}
    for name in first[0]:
        words = words_of(name)
        if not COUNTED & {*words} and _TOTALS & {*words}:
            wholes.setdefault(tuple(word for word in words if word not in _TOTALS), name)

    found = {}
    for name in first[0]:
        words = words_of(name)
        rest = tuple(word for word in words if word not in COUNTED)
        whole = wholes.get(rest)
        counted = rest and len(rest) < len(words)
        if counted and whole is not None and _are_counts(first, name, whole):
            found[name] = whole

    return found


def _are_counts(first: Sequence[Row], name: str, whole: str) -> bool:
    """Whether rows hold a whole number each, the first of which is never more than the second, or
    neither of them.
    """
    filled = 0
    for row in first:
        if row.get(name) is None and row.get(whole) is None:
            continue
        part = _whole_number(row.get(name))
        of = _whole_number(row.get(whole))
        if part is None or of is None or part > of:
            return False
        filled += 1

    return filled > 0


def _whole_number(value: object) -> int | None:
    """The number from 0 that a cell is; None: it is none."""
    text = text_of(value)
    if text.isdecimal() and len(text) < _DIGITS:
        return int(text)
    return None


def _as_shares(
    rows: Iterable[NumberedRow],
    counted: Mapping[str, str],
) -> Iterator[NumberedRow]:
    """0 of 0 is no share."""
    for number, row in rows:
        changed = dict(row)
        for name, whole in counted.items():
            part = _whole_number(row.get(name))
            of = _whole_number(row.get(whole))
            if part is None or of is None:
                continue
            changed[name] = None
            if of:
                changed[name] = part / of

        yield number, changed


# --- an object in a cell, as text -------------------------------------------------------------


def _are_written_objects(name: str, cells: Sequence[object]) -> bool:
    """Whether cells hold objects or lists of chat messages as text, or nothing.

    An object that is itself what is right, or what was answered, stays a text, which is compared.
    """
    texts = []
    for cell in cells:
        if cell is not None and cell != "":
            texts.append(cell)

    if not texts or not all(isinstance(cell, str) and cell[:1] in ("{", "[") for cell in texts):
        return False
    compared = bool(roles_of(name) & {*_SAID})
    for cell in texts:
        value = parsed(str(cell))
        messages = isinstance(value, list) and are_messages(value)
        if not isinstance(value, dict) and not messages:
            return False
        parts = value if isinstance(value, dict) else {}
        has_fields = any(joined(key) in TEXTS_OF_ANSWERS or is_score_name(key) for key in parts)
        if compared and not messages and not has_fields:
            return False

    return True


def _with_objects(
    rows: Iterable[NumberedRow],
    columns: Sequence[str],
) -> Iterator[NumberedRow]:
    for number, row in rows:
        changed = dict(row)
        for name in columns:
            if isinstance(row.get(name), str):
                value = parsed(row[name])
                keys = speaker_and_text(value)
                changed[name] = value
                if keys is not None and isinstance(value, dict):
                    changed[name] = value[keys[1]]

        yield number, changed


# --- a list of metrics in a cell --------------------------------------------------------------


def _metric_in(part: Mapping[str, Any]) -> tuple[str, str] | None:
    """The keys with the name of a metric and with its value."""
    name = next((key for key in _NAMES if isinstance(part.get(key), str)), None)
    value = next((key for key in _VALUES if score_in(part.get(key)) is not None), None)
    if name is None or value is None:
        return None

    if "text" in part or "content" in part:
        return None

    return name, value


def _with_metrics(rows: Iterable[NumberedRow], column: str) -> Iterator[NumberedRow]:
    for number, row in rows:
        metrics = {}
        for part in row.get(column) or ():
            keys = _metric_in(part) if isinstance(part, Mapping) else None
            if keys is not None:
                about = _reasons_in(part)
                metrics[part[keys[0]].replace(".", "_")] = {"score": part[keys[1]], **about}

        others = without(row, [column])
        yield number, {**others, "scores": metrics}


# --- a list of answers in a cell --------------------------------------------------------------


def _are_answers(name: str, cells: Sequence[object]) -> bool:
    words = words_of(name)
    if not words or words[-1] not in _SEVERAL:
        return False

    if not all(map(_is_list, cells)):
        return False

    parts = _entries_of(cells)
    if are_texts(parts):
        labels = words[-1] == "predictions" and not any(" " in part for part in parts)
        return words[-1] in _TEXTS and not labels

    if not are_objects(parts) or are_messages(parts):
        return False
    first = parts[0]
    assert isinstance(first, Mapping)
    roles = roles_of(*first)
    judged = any(is_score_name(key) for key in first) and roles & {"model", "condition"}
    written = words[-1] in _TEXTS and all(map(_is_written, parts))
    return bool(roles & {*_SAID}) or bool(judged) or written


def _is_right_for(first: Sequence[Row], key: str, name: str) -> bool:
    """Whether a golden column has a list of as many entries in nearly each row as another, and of
    several in one at least.
    """
    if Meaning("golden") not in meanings(key):
        return False
    pairs = [(row.get(key), row.get(name)) for row in first]
    lengths = []
    for right, said in pairs:
        if isinstance(right, list) and isinstance(said, list) and len(right) == len(said):
            lengths.append(len(right))

    return max(lengths, default=0) > 1 and len(lengths) >= _NEARLY_ALL * len(pairs)


def _is_written(part: Mapping[str, Any]) -> bool:
    """Whether an object holds a text under no name that says whose it is."""
    roles = roles_of(*part)
    return isinstance(part.get("text"), str) and not roles & {*_SAID}


def _entries_of(cells: Iterable[object]) -> list[Any]:
    """The entries of all cells that are lists."""
    found = []
    for cell in cells:
        if isinstance(cell, list):
            found += cell

    return found


def _entries(value: object) -> Sequence[object]:
    """The entries of a list; of anything else itself, so that no row is lost."""
    if isinstance(value, list):
        return value or [None]
    return [value]


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _a_row_an_answer(rows: Iterable[NumberedRow], column: str) -> Iterator[NumberedRow]:
    for number, row in rows:
        shared = without(row, [column])
        for part in _entries(row.get(column)):
            if isinstance(part, Mapping):
                said = {"response": part["text"]} if _is_written(part) else {}
                yield number, {**part, **said, **shared}
            else:
                yield number, {**shared, "response": part}


def _answers_and_scores(first: Sequence[Row]) -> list[str]:
    """Columns with a list of answers and as many scores in every row: `pred` and `score`."""
    lists = []
    for name in first[0]:
        if all(_is_list(row.get(name)) for row in first):
            lists.append(name)

    for answer in lists:
        surely = Meaning("answer") in meanings(answer)
        if not surely and "".join(words_of(answer)) not in _TEXTS:
            continue

        alike = []
        for name in lists:
            if all(len(row[name]) == len(row[answer]) for row in first):
                alike.append(name)

        if any(is_score_name(name) for name in alike):
            return alike

    return []


def _a_row_an_entry(
    rows: Iterable[NumberedRow],
    columns: Sequence[str],
) -> Iterator[NumberedRow]:
    for number, row in rows:
        shared = without(row, columns)
        lists = [_entries(row.get(name)) for name in columns]
        for entries in zip_longest(*lists):
            yield number, {**shared, **dict(zip(columns, entries, strict=True))}


# --- a list of objects in several cells -------------------------------------------------------


def _lists_of_settings(first: Sequence[Row]) -> list[str]:
    """Columns with lists of objects that have the same keys: `baseline` and `treated`."""
    keys: dict[frozenset[str], list[str]] = {}
    for name in first[0]:
        cells = [row.get(name) for row in first]
        parts = _entries_of(cells)
        if not parts or not all(map(_is_list, cells)):
            continue

        words = words_of(name)
        of_one = not (SAID | _SEVERAL).isdisjoint(words) or is_gold(words)
        objects = all(isinstance(part, Mapping) and part for part in parts)
        if of_one or not objects or are_messages(parts):
            continue

        own = frozenset(parts[0])
        for shared in keys:
            if 2 * len(shared & own) >= len(shared | own):
                own = shared
                break

        keys.setdefault(own, []).append(name)

    for shared, names in keys.items():
        roles = roles_of(*shared)
        named = roles_of(*names)
        answered = roles & {*_SAID, "score"} or shared & DECIDED
        others = named & {"context", "tools", "choices", "criterion"}
        several = len(names) > 1 and "condition" not in first[0]
        if several and answered and not others:
            return names

    return []


def _a_row_a_setting(
    rows: Iterable[NumberedRow],
    columns: Sequence[str],
) -> Iterator[NumberedRow]:
    for number, row in rows:
        shared = without(row, columns)
        for name in columns:
            for part in _entries(row.get(name)):
                if isinstance(part, Mapping):
                    yield number, {**shared, "condition": name, **part}


# --- a row for each metric --------------------------------------------------------------------


def _metric_column(first: Sequence[Row], rows: Rows) -> str | None:
    """The column that names the metric whose value is in the column `score`, or `value`, or the
    judge who gave it, if most answers have several.
    """
    if not roles_of(*first[0]) & {"question", "id"}:
        return None
    if _value_column(first[0]) is None:
        return None
    for name in first[0]:
        words = words_of(name)
        texts = all(isinstance(row.get(name), str) for row in first)
        if texts and "".join(words) in _METRIC:
            return name
        if {*words} & _RATERS and {*words} <= _OF_RATERS and _are_judges(rows, name):
            return name

    return None


def _are_judges(rows: Rows, judge: str) -> bool:
    """Whether each answer has several judges, each once, and judges have half of the answers on
    average: neither repetitions nor a crowd.
    """
    rated = [row for _, row in islice(rows.rows, _MANY) if _value_column(row) is not None]
    judges = [row.get(judge) for row in rated]
    if not all(isinstance(name, (str, int)) and not is_empty(name) for name in judges):
        return False
    answers = {text_of(_of_answer(row, judge)) for row in rated}
    once = {(text_of(_of_answer(row, judge, _RATERS)), row[judge]) for row in rated}
    return len(once) == len(rated) >= max(2, len({*judges}) / 2) * len(answers)


def _value_column(row: Row) -> str | None:
    named = ["score", "value", "verdict"]
    judged = [key for key in row if is_score_name(key)]
    if len(judged) == 1:
        named += judged
    for key in named:
        if score_in(row.get(key)) is not None:
            return key

    return None


def _of_answer(row: Row, metric: str, raters: frozenset[str] | None = None) -> dict[str, Any]:
    """What a row has beside a metric, or a judge, and what belongs to it. `raters`: words of all
    whose columns are left out, by default of this one's.
    """
    value = _value_column(row)
    if raters is None:
        raters = _RATERS & {*words_of(metric)}
    others = {}
    for key, cell in row.items():
        words = words_of(key)
        of_rater = raters & {*words} and {*words} <= _OF_RATERS | _SPENT
        if key not in (metric, value) and not (of_rater or _OF_ONE_METRIC & {*words[-1:]}):
            others[key] = cell

    return others


def _a_row_for_all_metrics(
    rows: Iterable[NumberedRow],
    metric: str,
) -> Iterator[NumberedRow]:
    merged: dict[tuple[str, int], tuple[int, dict[str, Any]]] = {}
    times = Counter[tuple[str, str]]()
    for number, row in rows:
        value = _value_column(row)
        others = _of_answer(row, metric)
        answer = text_of(others)
        named = str(row.get(metric)).replace(".", "_")
        times[answer, named] += 1  # again: a row of its own, so that no score is lost
        at = (answer, times[answer, named])
        _, whole = merged.setdefault(at, (number, {**others, "scores": {}}))
        if value is not None:
            whole["scores"][named] = {"score": row[value], **_reasons_in(row)}

    yield from merged.values()
