"""Whether an answer that could not be read counts as one: `derive` is asked about people who did not answer all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karat.documents.validation import shown
from karat.errors import BadOption
from karat.kinds.study.columns import fields_needed
from karat.kinds.study.format import Answered, StudyFile, Test
from karat.kinds.study.sides import columns_of, group_rows
from karat.kinds.study.test_checks import arms_of
from karat.kinds.study.tests import Response, data_of_each

if TYPE_CHECKING:
    from karat.sql import Shape

__all__ = ["counted_unread"]

_PICKS = 6  # answers that the other fields are given, one after another
Case = tuple[str, tuple[str, ...], int]  # arm, the fields that could not be read, which answers the others have


def counted_unread(study: StudyFile, tests: Sequence[Test], shape: Shape) -> list[str]:
    """For each test what is wrong, "" for nothing: its measure must be NULL where a needed answer is.

    Each person is alone in the experiment, so that no other's answers are in the measure.
    """
    cases = [list(_cases(study, test, fields_needed(study, test, shape))) for test in tests]
    every = list(dict.fromkeys(case for own in cases for case in own))
    people = [[_person(study, case)] for case in every]
    try:
        data = dict(zip(every, data_of_each(study, people), strict=True)) if people else {}
    except BadOption as error:
        return [f"where an answer could not be read, {error}"] * len(tests)
    return [
        next((said for case in own if (said := _counted(test, case, data[case].columns))), "")
        for test, own in zip(tests, cases, strict=True)
    ]


def _cases(study: StudyFile, test: Test, needed: Sequence[str]) -> Iterator[Case]:
    for arm in arms_of(study, test, needed):
        fields = study.arms[arm].answered
        must = [name for name in needed if name in fields and not fields[name].optional]
        if not must:
            continue
        yield arm, tuple(fields), 0
        picks = min(_PICKS, max(len(one.labels) or 2 for one in fields.values()))
        yield from ((arm, (name,), pick) for name in must for pick in range(picks) if len(fields) > 1)


def _person(study: StudyFile, case: Case) -> Response:
    arm, gaps, pick = case
    values = {name: _answer(one, pick) for name, one in study.arms[arm].answered.items() if name not in gaps}
    given = study.persons[0] if study.persons else {}
    profile = {name: given.get(name, _first(study.participants.profile.get(name))) for name in study.attributes}
    game = study.arms[arm].rounds is not None
    return Response(
        participant="1", arm=arm, profile=profile, values=values, group="1" if game else None, round=1 if game else None
    )


def _first(said: Any) -> Any:
    return next(iter(said), None) if isinstance(said, (Mapping, list)) else said


def _answer(one: Answered, pick: int) -> float | str | list[str]:
    labels = list(one.labels)
    if one.type == "choice":
        return labels[pick % len(labels)]
    if one.type == "rank":
        return labels[pick % len(labels) :] + labels[: pick % len(labels)]
    if one.type == "text":
        return "words"
    low, high = one.range or (None, None)
    least = low if low is not None else min(0.0, high or 0.0)
    return (high if high is not None else least + 1) if pick % 2 else least


def _counted(test: Test, case: Case, columns: Mapping[str, Sequence[Any]]) -> str:
    named = [name for name in columns_of(test) if test.groups is None or name not in test.cells[0][0]]
    if any(name not in columns for name in columns_of(test)):
        return ""
    rows = [int(at) for group in group_rows(test, columns) for at in group]
    rows = rows if test.groups is not None else list(range(len(columns[test.measure])))
    if not rows or not all(_known(columns[name][at]) for name in named for at in rows):
        return ""  # a person may give a row for each of several fields: then one of them is NULL
    arm, gaps, _ = case
    value = columns[test.measure][rows[0]]
    told = str(value).lower() if isinstance(value, bool) else shown(value)
    lacking = ", ".join(f"'{name}'" for name in gaps)
    return (
        f"an answer that could not be read counts as {told}: '{test.measure}' of arm '{arm}' without {lacking}; "
        "in `derive` it must be NULL there"
    )


def _known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))
