"""Whether the measures of tests leave out answers that could not be read, and count people once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import msgspec
import numpy as np

from karat.documents.validation import shown
from karat.errors import BadOption, QueryTooLong
from karat_query.sql import Selected, Shape, Table, select_each
from karat_studies.kinds.study.columns import (
    arms_of,
    fields_needed,
)
from karat_studies.kinds.study.experiments import Response, table_of
from karat_studies.kinds.study.format import (
    Answered,
    StudyFile,
    Test,
)
from karat_studies.kinds.study.repeats import Columns, most_rows
from karat_studies.kinds.study.sides import group_rows

PAIRED = {"ttest_ind": "ttest_paired", "welch": "ttest_paired", "mannwhitney": "wilcoxon"}
CLUSTERED = ("ttest_ind", "welch", "ttest_one", "ttest_paired")
_PICKS = 6  # answers tried for the other fields, one after another
# arm, the fields that could not be read, which answers the others have
Case = tuple[str, tuple[str, ...], int]


def counted_unread(study: StudyFile, tests: Sequence[Test], shape: Shape) -> list[str]:
    """The fault of each test, "" for none: its measure must be NULL if a needed answer is.

    Each person is alone in the experiment, so no other's answers affect the measure.
    """
    cases: list[list[Case]] = []
    for test in tests:
        cases.append([])
        needed = fields_needed(study, test, shape)
        for arm in arms_of(study, test, needed):
            fields = study.arms[arm].answered
            must = [name for name in needed if name in fields and not fields[name].optional]
            if not must:
                continue
            cases[-1].append((arm, tuple(fields), 0))
            picks = min(_PICKS, max(len(field.labels) or 2 for field in fields.values()))
            if len(fields) > 1:
                cases[-1] += [(arm, (name,), pick) for name in must for pick in range(picks)]

    every = list(dict.fromkeys(case for own in cases for case in own))
    people = [[_person(study, case)] for case in every]
    try:
        if people:
            data = dict(zip(every, _data_of_few(study, people), strict=True))
        else:
            data = {}
    except QueryTooLong:
        raise
    except BadOption as error:
        return [f"where an answer could not be read, {error}"] * len(tests)

    return [
        next((fault for case in own if (fault := _counted(test, case, data[case].columns))), "")
        for test, own in zip(tests, cases, strict=True)
    ]


def repeated_people(study: StudyFile, tests: Sequence[Test]) -> list[str]:
    """The fault of each test, "" for none: a participant has several rows of a group without `by`
    or `cluster`.

    Tried with made-up participants, each alone: with the first of every attribute, and with the
    last.
    """
    if study.design == "within":
        arms = [list(study.arms)]
    else:
        arms = [[name] for name in study.arms]

    tried = []
    for own in arms:
        for pick in (0, 1):
            tried.append([row for arm in own for row in _whole_person(study, arm, pick)])

    try:
        every = [data.columns for data in _data_of_few(study, tried)]
    except QueryTooLong:
        raise
    except BadOption:
        return [""] * len(tests)  # that is already a fault

    persons = [(rows[0].arm, columns) for rows, columns in zip(tried, every, strict=True)]
    return [_repeated(test, persons) for test in tests]


def _data_of_few(study: StudyFile, people: Sequence[Sequence[Response]]) -> list[Selected]:
    """The table `data` of each, asked once however often a process reads a study."""
    return _selected(study.derive, msgspec.json.encode([table_of(study, rows) for rows in people]))


@lru_cache(maxsize=256)
def _selected(derive: str, tables: bytes) -> list[Selected]:
    return select_each(
        derive,
        "responses",
        msgspec.json.decode(tables, type=list[Table]),
        place="derive",
    )


def _repeated(test: Test, persons: Sequence[tuple[str, Mapping[str, Sequence[object]]]]) -> str:
    for arm, columns in persons:
        if any(name not in columns for name in test.columns):
            continue
        everybody = np.arange(len(columns[test.measure]))
        # Each is alone in `data`: without the column all rows are theirs.
        alone = {"participant": [arm] * len(everybody), **columns}
        rows = most_rows(test, alone, group_rows(test, columns) or [everybody])
        lost = "participant" not in columns
        if max(rows) > 1 and (lost or (test.by or test.cluster) is None):
            ways = "`by: participant` (each person's mean, or share)"
            if test.kind in CLUSTERED:
                ways += " or `cluster: participant` (every row, with the error between persons)"
            keep = "keep the column `participant` in `derive` and " if lost else ""
            return (
                f"has {max(rows)} rows of one participant of arm '{arm}' in a group, and rows are "
                f"not people: {keep}add {ways}, or give one row per person in `derive`"
            )

        if test.kind in PAIRED and test.cluster is None and min(rows) > 0:
            return (
                f"has one participant of arm '{arm}' in both groups, and takes them for two: give "
                f"one row per person with a column for each value, and use {PAIRED[test.kind]} "
                f"(`measure` and `against`)"
            )

    return ""


def _whole_person(study: StudyFile, arm: str, pick: int) -> Iterator[Response]:
    """A participant of an arm with every answer, in each round of a game."""
    person = _person(study, (arm, (), pick))
    listed = study.participants.profile
    profile = {}
    for name, value in person.profile.items():
        if pick and isinstance(listed.get(name), (list, Mapping)):
            profile[name] = _first(list(listed.get(name) or [])[-1:])
        else:
            profile[name] = value

    rounds = study.arms[arm].rounds
    for number in range(1, (rounds.count if rounds is not None else 1) + 1):
        values = {
            name: _answer(field, pick + number) for name, field in study.arms[arm].answered.items()
        }
        yield replace(
            person,
            profile=profile,
            values=values,
            round=number if rounds is not None else None,
        )


def _person(study: StudyFile, case: Case) -> Response:
    arm, gaps, pick = case
    values = {}
    for name, field in study.arms[arm].answered.items():
        if name not in gaps:
            values[name] = _answer(field, pick)

    if study.persons:
        given = study.persons[0]
    else:
        given = {}

    profile = {
        name: given.get(name, _first(study.participants.profile.get(name)))
        for name in study.attributes
    }
    game = study.arms[arm].rounds is not None
    return Response(
        participant="1",
        arm=arm,
        profile=profile,
        values=values,
        group="1" if game else None,
        round=1 if game else None,
    )


def _first(values: object) -> object:
    if isinstance(values, (Mapping, list)):
        return next(iter(values), None)
    return values


def _answer(field: Answered, pick: int) -> float | str | list[str]:
    labels = list(field.labels)
    if field.type == "choice":
        return labels[pick % len(labels)]
    if field.type == "rank":
        return labels[pick % len(labels) :] + labels[: pick % len(labels)]
    if field.type == "text":
        return "words"
    low, high = field.range or (None, None)
    if low is not None:
        least = low
    else:
        least = min(0.0, high or 0.0)

    if pick % 2:
        if high is not None:
            return high
        return least + 1

    return least


def _counted(test: Test, case: Case, columns: Columns) -> str:
    named = []
    for name in test.columns:
        if test.groups is None or name not in test.cells[0][0]:
            named.append(name)

    if any(name not in columns for name in test.columns):
        return ""
    rows = []
    for group in group_rows(test, columns):
        for at in group:
            rows.append(int(at))

    if test.groups is None:
        rows = list(range(len(columns[test.measure])))
    if not rows or not all(
        columns[name][at] is not None
        and not (isinstance(columns[name][at], float) and math.isnan(columns[name][at]))
        for name in named
        for at in rows
    ):
        return ""  # a person may give a row for each of several fields: then one of them is NULL

    arm, gaps, _ = case
    value = columns[test.measure][rows[0]]
    if isinstance(value, bool):
        counted_as = str(value).lower()
    else:
        counted_as = shown(value)

    lacking = ", ".join(f"'{name}'" for name in gaps)
    return (
        f"an answer that could not be read counts as {counted_as}: '{test.measure}' of arm "
        f"'{arm}' without {lacking}; in `derive` it must be NULL there"
    )
