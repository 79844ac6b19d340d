"""Complete readings of a table that no name explains: which columns tell its rows apart, and what
the others are by how their values repeat, cross and differ. Names only rank what values allow.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product

import msgspec

from karat.documents.columns import NO_NAME, Column, Row, cell, leaves, number_in, score_in
from karat.documents.names import (
    SAID,
    is_gold,
    is_measure,
    is_score_name,
    joined,
    meanings,
    names_persons,
    repeats,
    roles_of,
    sure_roles,
    word_set,
    words_of,
)
from karat.documents.results import OF_JUDGES, columns_like, compares, joining_id, score_columns
from karat.documents.sentences import NO_WORDS, explains
from karat.formats import text_of

LOOKED_THROUGH = 5_000
"""Rows that decide how columns cross."""
Pairs = tuple[tuple[str, str], ...]
"""Targets with their columns; several columns of one target are of several systems."""
_NEARLY_ALL = 0.8
_MOST_CONDITIONS = 20  # values
_MOST_WORDS = 12  # different ones of a verdict
_LONG = 25  # characters on average: of a text that is asked or answered
_LABEL = 80  # characters on average at most: of a name
_AS_A_NUMBER = 3  # times as many numbers as words name samples rather than judge them
_MOST = 3  # readings
_PREDICTED = word_set("pred preds prediction predicted")
_STATISTICS = word_set("mean avg average median std sd se min max sum total lower upper low high")
_NAMING = word_set("id model name number no key index")
_VERDICTS = (("label",), ("verdict",), ("outcome",), ("decision",))
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PARTS = re.compile(r"[\s_.\-/]+")
_ANSWERED = re.compile(r"(?i)answer|output|respon|generat|predict|reply|picked|chosen")


class _Keys(msgspec.Struct, frozen=True, kw_only=True):
    """What tells rows apart. `id`: None if each row is a sample."""

    id: str | None
    conditions: tuple[str, ...] = ()
    repetition: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(filter(None, (self.id, *self.conditions, self.repetition)))


def proposals(rows: Sequence[Row], columns: Mapping[str, Column]) -> list[Pairs]:
    """The likeliest readings, the first one first; each has an answer or a score."""
    table = _Table(rows, columns)
    found: list[Pairs] = []
    keys = table.keys()
    grid = grid_in(columns)
    if grid:
        unpivoted = _unpivoted(columns, grid)
        identified = [key for key in keys if not key.conditions][:1]
        for key in identified or [_Keys(id=None)]:
            found.append((*table.named(key), *unpivoted))

    apart = {*chain.from_iterable(grid.values())}
    for key in (*keys, _Keys(id=None)):
        if key.id is None and found:
            break
        for pairs in table.readings(key):
            if not apart & {column for _, column in pairs}:
                found.append(pairs)

    results = []
    for pairs in dict.fromkeys(found):
        if any(target == "answer" or target.startswith("score.") for target, _ in pairs):
            results.append(pairs)

    return results[:_MOST]


def is_like_its_rows(header: Sequence[str], columns: Mapping[str, Column]) -> bool:
    """Whether the names of all columns look as their cells do, and none means something: the first
    line may be a row.
    """
    for name in header:
        column = columns.get(name)
        if column is None or not column.values or meanings(name) or name.startswith(NO_NAME):
            return False
        lengths = [len(value) for value in column.values]
        parts = [len(value.split()) for value in column.values]
        fits = min(lengths) / 2 <= len(name) <= max(lengths)
        alike = fits and min(parts) - 1 <= len(name.split()) <= max(parts)
        cased = {value.islower() for value in column.values}
        differ = 2 * len(column.values) > column.filled  # labels of a set are no name
        written = not any(mark in name for mark in "_.:/") and name.islower() in cased
        if column.texts < column.filled or not (alike and differ and written):
            return False

    return len(header) > 1


def by_place(number: int) -> list[Pairs]:
    """Readings of columns that are called by their places: the last is what others should have
    said, or the first is what is asked.
    """
    *others, last = [f"{NO_NAME}{place}" for place in range(1, number + 1)]
    compared = ("golden", last), *(("answer", name) for name in others)
    targets = ("question", "golden", "answer") if others[1:] else ("question", "answer")
    return [compared, tuple(zip(targets, (*others, last), strict=False))]


class _Table:
    """The cells of the columns that differ from row to row."""

    def __init__(self, rows: Sequence[Row], columns: Mapping[str, Column]) -> None:
        self.columns = columns
        self.cells: dict[str, list[str]] = {}
        self.number = len(rows)
        for path in _differing(columns):
            cells = []
            for row in rows:
                value = cell(row, path)
                cells.append("" if value is None else text_of(value))

            if len({*cells}) > 1:
                self.cells[path] = cells

        self.values = {path: {*filter(None, cells)} for path, cells in self.cells.items()}
        self.judging = {*score_columns(columns)} & {*self.cells}
        self.of_lists = [path for path in leaves(columns) if _are_objects(columns[path].example)]

    def keys(self) -> list[_Keys]:
        """What may tell rows apart: names that repeat as often as each other and are crossed with
        conditions, then names that are all different, then names that repeat.
        """
        crossed: list[_Keys] = []
        partly: list[_Keys] = []
        alone: list[str] = []
        repeated: list[_Keys] = []
        identifying = joining_id(self.columns)
        for path in self._names():
            if len(self.values[path]) == self.number:
                if not _is_said(self.columns[path]):
                    alone.append(path)
                continue
            conditions, repetition = self._crossed(path)
            if conditions or repetition:
                key = _Keys(id=path, conditions=conditions, repetition=repetition)
                whole = self._different(key.columns) >= _NEARLY_ALL * self.number
                (crossed if whole else partly).append(key)
            elif path == identifying or sure_roles(path) & {"id", "cluster"}:
                repeated.append(_Keys(id=path))

        def rank(path: str) -> tuple[bool, bool, bool]:
            return path != identifying, "id" not in roles_of(path), self._is_number(path)

        # more samples under fewer conditions, rather than the other way round
        def by_size(key: _Keys) -> tuple[bool, bool, float]:
            other, no_id, number = rank(str(key.id))
            size = len(self.values[str(key.id)])
            return other, no_id, -size / (_AS_A_NUMBER if number else 1)

        distinct = [_Keys(id=path) for path in sorted(alone, key=rank)][:1]
        named = [key for key in distinct if "id" in roles_of(str(key.id))]
        crossed.sort(key=by_size)
        partly.sort(key=by_size)
        taken = {path for key in crossed[:1] or partly[:1] for path in key.conditions}
        return [
            *(key for key in crossed[:3] if key.id not in taken),
            *named,
            *(key for key in partly[:3] if key.id not in taken),
            *(key for key in distinct if key not in named),
            *repeated[:1],
        ]

    def _names(self) -> list[str]:
        """The columns whose values may name samples: short, in nearly all rows, and mostly as often
        as each other.
        """
        found = []
        for path, cells in self.cells.items():
            column = self.columns[path]
            counts = Counter(filter(None, cells))
            usual = Counter(counts.values()).most_common(1)[0][0]
            even = [n for n in counts.values() if usual / 2 <= n <= 1.5 * usual]
            regular = len(even) >= _NEARLY_ALL * len(counts)
            filled = sum(counts.values()) >= _NEARLY_ALL * self.number
            other = path in self.judging or column.lists or _measures(path) or explains(path)
            said = is_gold(words_of(path)) or {"golden", "answer"} & sure_roles(path)
            short = column.mean_length <= _LABEL
            if regular and filled and short and not (other or said) and self._names_things(path):
                found.append(path)

        return found

    def _names_things(self, path: str) -> bool:
        """Whether values are words, or whole numbers that count up."""
        values = self.values[path]
        if not all(value.isdecimal() for value in values):
            return self.columns[path].is_text and not _is_time(self.columns[path])
        numbers = [*map(int, values)]
        counted = max(numbers) - min(numbers) + 1 == len(numbers)
        return counted or bool("id" in roles_of(path))

    def _is_number(self, path: str) -> bool:
        return all(number_in(value) is not None for value in self.values[path])

    def _crossed(self, name: str) -> tuple[tuple[str, ...], str | None]:
        """The columns of few values, nearly each of which nearly each name has as often as others,
        until they tell all rows apart; and one of them that numbers or names repetitions.
        """
        few = []
        for path, values in self.values.items():
            if path == name or not 1 < len(values) <= _MOST_CONDITIONS or path in self.judging:
                continue
            named = "condition" in roles_of(path) or self._repeats(path)
            if _measures(path) or (self.columns[path].is_yes_or_no and not named):
                continue
            if explains(path) or self.columns[path].mean_length > _LABEL:
                continue
            if len(values) <= len(self.values[name]):
                few.append(path)

        def rank(path: str) -> tuple[bool, bool, bool]:
            named = {"condition", "model"} & roles_of(path)
            return self._repeats(path), not named, self._is_number(path)

        conditions: list[str] = []
        repetition = None
        for path in sorted(few, key=rank):
            groups = [name, *conditions]
            if self._different(groups) >= _NEARLY_ALL * self.number and conditions:
                break
            if not self._is_crossed(groups, path):
                continue
            if self._repeats(path):
                repetition = repetition or path
            else:
                conditions.append(path)

        return tuple(conditions), repetition

    def _repeats(self, path: str) -> bool:
        """Whether a column says which repetition a row is, or who judged it."""
        judges = names_persons(path) or bool(OF_JUDGES & {*words_of(path)})
        return judges or repeats(path)

    def _different(self, paths: Iterable[str]) -> int:
        return len({*zip(*(self.cells[path] for path in paths), strict=True)})

    def _is_crossed(self, groups: Sequence[str], path: str) -> bool:
        counts = Counter(zip(*(self.cells[column] for column in (*groups, path)), strict=True))
        for key in [*counts]:
            if not all(key):
                del counts[key]

        met = {key[:-1] for key in counts}
        usual = Counter(counts.values()).most_common(1)[0][0] if counts else 1
        filled = sum(min(count, usual) for count in counts.values()) / usual
        full = len(met) * len(self.values[path])
        odd = sum(count > usual for count in counts.values())
        return len(met) > 1 and filled >= _NEARLY_ALL * full and odd <= full / 4

    def readings(self, key: _Keys) -> Iterable[Pairs]:
        """What the other columns are if these tell rows apart."""
        free = [path for path in self.cells if path not in key.columns]
        texts = [path for path in free if _is_said(self.columns[path])]
        if key.id is None and not self.judging and not texts:
            yield from self._of_labels(free)
            return
        scores = self._scores(free, key)
        judged = tuple((f"score.{path}", path) for path in scores)
        in_lists = key.id is not None and not scores and not texts
        for path in self.of_lists if in_lists else ():
            for name, value in self.columns[path].example[0].items():
                if score_in(value) is not None:
                    judged += ((f"score.{name}", f"{path}.{name}"),)

        named = self.named(key)
        if key.id is None or len(self.values[key.id]) == self.number:
            answers = asked = texts
        else:
            asked = [path for path in texts if self._is_same(path, key.id)]
            answers = [path for path in texts if path not in asked]
        ranked = sorted(answers, key=lambda path: _rank_of_answer(self.columns[path]))
        labels = []
        named_so = [path for path in self._labels(free) if path not in answers]
        for label in named_so[:1] if key.id is not None else ():
            if _says(label) or not (answers or judged):
                labels.append(label)

        if judged and not answers and key.id is not None:
            yield (*named, *self._asked(asked, ""), *judged)
        for answer in (*ranked[: 2 - len(labels)], *labels):
            said = ranked if answer in labels else [answer]
            others = [path for path in asked if path not in said]
            yield (*named, *self._asked(others, answer), ("answer", answer), *judged)

    def named(self, key: _Keys) -> Pairs:
        """What tells rows apart, as targets; an id that is a sentence is the question."""
        pairs = []
        if key.id is not None:
            target = "question" if _is_said(self.columns[key.id]) else "id"
            pairs.append((target, key.id))
        pairs += [("condition", path) for path in key.conditions]
        if key.repetition is not None:
            pairs.append(("repetition", key.repetition))
        return tuple(pairs)

    def _of_labels(self, free: Sequence[str]) -> Iterable[Pairs]:
        """Rows of nothing but labels: the one with the most values, or called so, is the answer,
        and one that all rows have is the condition.
        """
        labels = self._labels(free)
        for answer in labels[:2]:
            conditions = []
            for path in labels:
                regular = all(self.cells[path]) and len(self.values[path]) <= _MOST_CONDITIONS
                if path != answer and regular and 2 * len(self.values[path]) <= self.number:
                    conditions.append(("condition", path))

            if conditions:
                yield (*conditions[:1], ("answer", answer))

    def _labels(self, free: Sequence[str]) -> list[str]:
        """The columns of few words, those that say what was answered or judged first."""
        found = []
        for path in free:
            column = self.columns[path]
            words = column.texts and not column.is_hashed and not explains(path)
            aside = {"id", "condition", "model", "metadata"} & sure_roles(path)
            aside = aside or {"model"} & {*words_of(path)}
            short = column.mean_length <= _LABEL and not _is_time(column)
            if words and short and not aside:
                found.append(path)

        def rank(path: str) -> tuple[bool, int, bool, int]:
            regular = all(self.cells[path])
            return not _says(path), len(words_of(path)), regular, len(self.values[path])

        return sorted(found, key=rank)

    def _is_same(self, path: str, name: str) -> bool:
        """Whether a column says the same in all rows of a sample."""
        own = defaultdict(set)
        for key, value in zip(self.cells[name], self.cells[path], strict=True):
            own[key].add(value)

        return sum(len(values) == 1 for values in own.values()) >= _NEARLY_ALL * len(own)

    def _asked(self, texts: Sequence[str], answer: str) -> Pairs:
        """The question and the golden answer among texts that are the same in a sample's rows."""

        def asks(path: str) -> tuple[bool, float]:
            return "question" not in roles_of(path), -self.columns[path].mean_length

        right = []
        for path in texts:
            asks_by_name = "question" in roles_of(path)
            by_name = is_gold(words_of(path)) or "golden" in sure_roles(path)
            if by_name or (not asks_by_name and _twins(path, answer)):
                right.append(path)

        rest = sorted((path for path in texts if path not in right), key=asks)
        rest = [path for path in rest if not {"metadata", "criterion"} & sure_roles(path)]
        asked = [("question", path) for path in rest[:1]]
        return (*asked, *(("golden", path) for path in right[:1]))

    def _scores(self, free: Sequence[str], key: _Keys) -> list[str]:
        """The numbers that judge: by name if some do, else all that differ and measure nothing."""
        named = [path for path in free if path in self.judging]
        if named:
            return named
        found = []
        for path in free:
            column = self.columns[path]
            counted = (
                _measures(path) or sure_roles(path) - {"score"} or _is_time(self.columns[path])
            )
            serial = len(self.values[path]) == self.number and self._is_number(path)
            serial = serial and all(value.isdecimal() for value in self.values[path])
            if column.is_scored and not counted and not serial and key.id is not None:
                found.append(path)

        return found


def _differing(columns: Mapping[str, Column]) -> list[str]:
    """The columns of values that may differ from row to row: not those of objects."""
    found = []
    for path in leaves(columns):
        column = columns[path]
        plain = column.filled and not column.messages and 2 * column.objects <= column.filled
        if plain and not column.is_constant and not _are_objects(column.example):
            found.append(path)

    return found


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _is_time(column: Column) -> bool:
    texts = [value for value in column.values if _DATE.match(value)]
    return 2 * len(texts) > len(column.values)


def _is_said(column: Column) -> bool:
    """Whether cells are sentences or texts of several words, or lists of texts, in some rows."""
    lists = 2 * column.lists > column.filled
    if not column.is_text and not lists:
        return False
    example = column.example
    if isinstance(example, str) and NO_WORDS.fullmatch(example.strip()):
        return False
    long = lists or column.mean_length >= _LONG
    return long and not explains(column.path) and not _is_time(column)


def _rank_of_answer(column: Column) -> tuple[bool, bool, float]:
    """What ranks a text as the answer: its name, then how different and how long it is."""
    path = column.path
    said = bool(_ANSWERED.search(path)) or "answer" in sure_roles(path) or joined(path) in SAID
    aside = {"metadata", "criterion", "question", "golden"} & sure_roles(path)
    different = len(column.values) * column.mean_length
    return bool(aside) or is_gold(words_of(path)), not said, -different


def _says(path: str) -> bool:
    """Whether a name is of what was answered, or judged in words."""
    said = _ANSWERED.search(path) or {"answer", "score"} & roles_of(path)
    return bool(said) or compares([path]) or words_of(path)[-1:] in _VERDICTS or is_score_name(path)


def _measures(path: str) -> bool:
    """Whether a name says that numbers are counted or measured, and judge and name nothing."""
    return is_measure({*words_of(path)} - _NAMING)


def _twins(path: str, answer: str) -> bool:
    """Whether two names end alike, so that one is what the other is compared with."""
    own, other = words_of(path), words_of(answer)
    return len(own) > 1 and own[-1:] == other[-1:]


def grid_in(columns: Mapping[str, Column]) -> dict[str, list[str]]:
    """Systems and fields whose names are put together in those of columns, `bart_r1` and `t5_r1`:
    field → its columns, one a system. Empty: there are none.
    """
    best: dict[str, list[str]] = {}
    most = 3  # columns of the smaller ones
    for last, whole in product((False, True), (False, True)):
        fields_of: dict[str, dict[str, str]] = defaultdict(dict)
        for path in _differing(columns):
            parts = _PARTS.split(path)
            at = len(parts) - 1 if last else 1
            stem, field = "_".join(parts[:at]), "_".join(parts[at:])
            if stem and field:
                system, field = (field, stem) if whole else (stem, field)
                fields_of[system][field] = path

        alike = Counter(frozenset(fields) for fields in fields_of.values() if len(fields) > 1)
        for fields, number in alike.items():
            systems = [name for name, own in fields_of.items() if {*own} == fields]
            by_field = {}
            for field in sorted(fields):
                by_field[field] = [fields_of[name][field] for name in systems]

            size = number * len(fields)
            if number > 1 and size > most and _are_systems(columns, systems, by_field):
                best, most = by_field, size

    return best


def _are_systems(
    columns: Mapping[str, Column], systems: Sequence[str], by_field: Mapping[str, Sequence[str]]
) -> bool:
    """Whether each field holds the same kind of cells for each system, and no system is called as
    a role is.
    """
    for name in systems:
        words = words_of(name)
        other = roles_of(name) - {"metadata", "model"} or _STATISTICS & {*words} or is_gold(words)
        if other or explains(name) or is_score_name(name) or _measures(name):
            return False

    for field, paths in by_field.items():
        if is_gold(words_of(field)) or field.casefold() in _PREDICTED:
            return False
        kinds = {columns[path].is_numeric for path in paths}
        matched = _pattern(paths, columns)
        if len(kinds) > 1 or matched is None:
            return False

    said = [field for field, paths in by_field.items() if _is_said(columns[paths[0]])]
    numbers = [field for field, paths in by_field.items() if columns[paths[0]].is_scored]
    return bool(said) or len(numbers) == len(by_field)


def _pattern(paths: Sequence[str], columns: Mapping[str, Column]) -> str | None:
    """What matches these columns and no others; None: nothing does."""
    parts = [_PARTS.split(path) for path in paths]
    first = parts[0]
    for pattern in (f"*{paths[0][len(first[0]) :]}", f"{paths[0][: -len(first[-1])]}*"):
        if {*columns_like([pattern], columns)} == {*paths}:
            return pattern

    return None


def _unpivoted(columns: Mapping[str, Column], by_field: Mapping[str, Sequence[str]]) -> Pairs:
    """A pattern for each field: one of texts is the answer, those of numbers are scores."""
    answers, scores = [], []
    for field, paths in by_field.items():
        pattern = str(_pattern(paths, columns))
        if _is_said(columns[paths[0]]):
            answers.append((paths, pattern))
        elif columns[paths[0]].is_scored and not _measures(field):
            scores.append((f"score.{field}", pattern))

    answers.sort(key=lambda one: _rank_of_answer(columns[one[0][0]]))
    order = [*columns]
    scores.sort(key=lambda one: order.index(columns_like([one[1]], order)[0]))
    return (*(("answer", pattern) for _, pattern in answers[:1]), *scores)
