"""Whether the measures of tests leave out answers that could not be read, and count people once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from random import Random

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
from karat_studies.kinds.study.format import Answered, StudyFile, Test
from karat_studies.kinds.study.people import Person, people
from karat_studies.kinds.study.repeats import Columns, rows_of_people
from karat_studies.kinds.study.samples import as_data, random_values
from karat_studies.kinds.study.sides import group_rows

_PAIRS = "ttest_paired (`measure` and `against`)"
PAIRED = {
    "ttest_ind": f"{_PAIRS}, or add `cluster: participant`",
    "welch": f"{_PAIRS}, or add `cluster: participant`",
    "mannwhitney": "wilcoxon (`measure` and `against`)",
    "anova": f"{_PAIRS}, or ttest_one of a contrast",
    "interaction": "ttest_ind of their difference",
}
CLUSTERED = ("ttest_ind", "welch", "ttest_one", "ttest_paired")
_PEOPLE = 40  # of an arm, who are tried
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
            picks = min(_PICKS, max(len(field.labels) or 2 for field in fields.values()))
            unread = dict.fromkeys([tuple(fields), *((name,) for name in must)])
            cases[-1] += [(arm, gaps, pick) for gaps in unread for pick in range(picks)]

    read = ((arm, (), pick) for own in cases for arm, _, pick in own)
    every = list(dict.fromkeys(chain(*cases, read)))
    alone = [_person(study, case) for case in every]
    try:
        data = dict(zip(every, _data_of_few(study, alone), strict=True))
    except QueryTooLong:
        raise
    except BadOption as error:
        return [f"where an answer could not be read, {error}"] * len(tests)

    return [
        next((fault for case in own if (fault := _counted(test, case, data))), "")
        for test, own in zip(tests, cases, strict=True)
    ]


def repeated_people(study: StudyFile, tests: Sequence[Test], shape: Shape) -> list[tuple[str, str]]:
    """The fault of each test and a doubt about it, "" for none: rows that are not people.

    Tried with participants as they are drawn, who answer at random; each alone where `derive` does
    not say whose the rows are.
    """
    dice = Random(0)
    names_people = "participant" in shape.types
    drawn = people(study, list(study.arms), seed=0, per_arm=_PEOPLE if names_people else 2)
    answered = [[*_answers_of(study, person, dice)] for person in drawn]
    try:
        every = _data_of_few(study, [list(chain(*answered))] if names_people else answered)
    except QueryTooLong:
        raise
    except BadOption:
        return [("", "")] * len(tests)  # that is already a fault

    arms = {person.id: person.arms[0] for person in drawn}
    tables = []
    for data, who in zip(every, arms, strict=False):
        if names_people:
            alone = {}
        else:
            alone = {"participant": [who] * len(next(iter(data.columns.values()), ()))}

        tables.append({**alone, **data.columns})
    return [_repeated(test, tables, arms, names_people=names_people) for test in tests]


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


def _repeated(
    test: Test, tables: Sequence[Columns], arms: Mapping[str, str], *, names_people: bool
) -> tuple[str, str]:
    """`arms`: of each participant; `names_people`: whether `derive` says whose the rows are."""
    for columns in tables:
        if any(name not in columns for name in test.columns):
            continue
        everybody = np.arange(len(columns[test.measure]))
        counts = rows_of_people(test, columns, group_rows(test, columns) or [everybody])
        people = [(who, [own[who] for own in counts]) for who in Counter(chain(*counts))]
        # first those with several rows in a group, then those with rows in several
        for who, rows in sorted(people, key=lambda one: -max(one[1])):
            arm = arms.get(str(who), "")
            if max(rows) > 1 and (not names_people or (test.by or test.cluster) is None):
                ways = "`by: participant` (each person's mean, or share)"
                if test.kind in CLUSTERED:
                    ways += " or `cluster: participant` (every row, with the error between persons)"
                if names_people:
                    keep = ""
                else:
                    keep = "keep the column `participant` in `derive` and "

                return (
                    f"has {max(rows)} rows of one participant of arm '{arm}' in a group, and rows "
                    f"are not people: {keep}add {ways}, or give one row per person in `derive`"
                ), ""

            if sum(map(bool, rows)) > 1 and test.cluster is None:
                if test.kind in PAIRED:
                    return (
                        f"has one participant of arm '{arm}' in both groups, and takes them for "
                        f"two: give one row per person with a column for each value, and use "
                        f"{PAIRED[test.kind]}"
                    ), ""
                return "", (
                    f"the same people are in each of its groups, and a {test.kind} treats their "
                    f"answers as those of different people; for pairs, use a column for each, "
                    f"with ttest_paired, wilcoxon or binomial (of those who changed)"
                )

    return "", ""


def _answers_of(study: StudyFile, person: Person, dice: Random) -> Iterator[Response]:
    """Every answer of a participant, in each round of a game."""
    for arm in person.arms:
        asked = as_data(study.arms[arm].answered)
        rounds = study.arms[arm].rounds
        for number in range(1, (rounds.count if rounds is not None else 1) + 1):
            yield Response(
                participant=person.id,
                arm=arm,
                profile=person.profile,
                values=random_values(asked, dice),
                group=person.id if rounds is not None else None,
                round=number if rounds is not None else None,
            )


def _person(study: StudyFile, case: Case) -> list[Response]:
    """The rows of one participant: of the first round, in a within design of every arm."""
    arm, gaps, pick = case
    if study.design == "within":
        arms = list(study.arms)
    else:
        arms = [arm]

    [person] = people(study, arms, seed=0, per_arm=1)
    rows = []
    for row in _answers_of(study, person, Random(0)):
        if row.round in (None, 1):
            fields = study.arms[row.arm].answered
            if row.arm == arm:
                unread = gaps
            else:
                unread = ()

            values = {name: _answer(fields[name], pick) for name in fields if name not in unread}
            rows.append(replace(row, values=values))

    return rows


def _answer(field: Answered, pick: int) -> float | str | list[str]:
    labels = list(field.labels)
    if field.type == "choice":
        return labels[pick % len(labels)]
    if field.type == "rank":
        return labels[pick % len(labels) :] + labels[: pick % len(labels)]
    if field.type == "text":
        return "words"
    low, high = field.range or (None, None)
    if low is None:
        least = min(0.0, high or 0.0)
    else:
        least = low

    if not pick % 2:
        return least
    return least + 1 if high is None else high


def _counted(test: Test, case: Case, data: Mapping[Case, Selected]) -> str:
    arm, gaps, pick = case
    columns, read = (data[arm, some, pick].columns for some in (gaps, ()))
    if any(name not in columns for name in test.columns):
        return ""
    seen = _seen(test, columns)
    whole = _seen(test, read)
    # A person may give a row for each of several fields: then one of them is NULL, or none of
    # them is the test's
    if not seen or seen == whole:
        return ""
    if any(value is None or (isinstance(value, float) and math.isnan(value)) for value in seen):
        return ""

    value = next((one for one, other in zip(seen, whole, strict=False) if one != other), seen[0])
    if isinstance(value, bool):
        counted_as = str(value).lower()
    else:
        counted_as = shown(value)

    lacking = ", ".join(f"'{name}'" for name in gaps)
    return (
        f"an answer that could not be read counts as {counted_as}: '{test.measure}' of arm "
        f"'{arm}' without {lacking}; in `derive` it must be NULL there"
    )


def _seen(test: Test, columns: Columns) -> list[object]:
    """What the rows of the test's groups hold, the measure first."""
    grouped: Iterable[str] = ()
    if test.groups is not None:
        grouped = test.cells[0][0]
    named = [test.measure, *(name for name in test.columns if name not in grouped)]
    groups = group_rows(test, columns) or [np.arange(len(columns[test.measure]))]
    return [columns[name][at] for name in named for group in groups for at in group.tolist()]
