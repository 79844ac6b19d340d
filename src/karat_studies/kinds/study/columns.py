"""The columns of a study: the columns of `responses`, those from `derive`, and the answers that a
test needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from karat.templates import names
from karat_studies.kinds.study.format import Answered, StudyFile, Test

if TYPE_CHECKING:
    from karat_query.sql import Shape

OWN = {"participant": "text", "arm": "text", "group_id": "text", "round": "whole"}
"""Columns of every study; the last two are filled in games only."""

PAYOFF = "payoff"
"""What a participant earned in a round: the column of `responses`, and the last part of {{
last.ROLE.payoff }}.
"""

_OF_FIELDS = {
    "number": "number",
    "likert": "number",
    "choice": "text",
    "text": "text",
    "rank": "texts",
}


def column_type(field: Answered) -> str:
    """Number, text or (for ranks, best first) texts."""
    return _OF_FIELDS[field.type]


def attribute_type(study: StudyFile, name: str) -> str:
    """Number or text: the type of a person's attribute in `responses`."""
    attribute = study.participants.profile.get(name)
    if attribute is None:
        values: list[object] = [person.get(name) for person in study.persons]
    elif isinstance(attribute, Mapping):
        values = list(attribute)
    else:
        if isinstance(attribute, list):
            values = attribute
        else:
            values = [attribute]

    numeric = all(
        isinstance(one, (int, float)) and not isinstance(one, bool)
        for one in values
        if one is not None
    )
    return "number" if numeric else "text"


def responses_types(study: StudyFile) -> dict[str, str]:
    """The columns of `responses`: participant, arm, the profile, and one per field."""
    profile = {name: attribute_type(study, name) for name in study.attributes}
    return (
        own_columns(study)
        | profile
        | {name: column_type(field) for name, field in study.fields.items()}
    )


def own_columns(study: StudyFile) -> dict[str, str]:
    """The columns of `responses` that are neither answers nor the profile; `payoff` only where the
    study has any.
    """
    return OWN | ({PAYOFF: "number"} if study.pays else {})


def shape_of_data(study: StudyFile) -> Shape:
    """The columns that `derive` would give.

    Raises BadOption if it is not a SELECT over `responses`.
    """
    from karat_query.sql import shape_of

    return shape_of(study.derive, {"responses": responses_types(study)}, place="derive")


def fields_needed(study: StudyFile, test: Test, shape: Shape | None) -> tuple[str, ...]:
    """The fields that a participant must have answered for the test: from the file, or derived from
    `derive`.

    If a column cannot be traced to a field, every field is needed. Without
    `shape` only columns that are fields themselves are known.
    """
    if test.needs is not None:
        return tuple(test.needs)
    seen: set[str] = set()
    waiting = test.columns
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if shape is not None:
            waiting += shape.sources.get(name, ())
        if name == PAYOFF:  # the fields that payoffs are computed from
            formulas = [formula for arm in study.arms.values() for formula in arm.payoffs.values()]
            waiting += [
                used.split(".")[1] for formula in formulas for used in names(formula) if "." in used
            ]

    traced = tuple(name for name in study.fields if name in seen)
    return traced or (tuple(study.fields) if shape is not None else ())


def arms_of(study: StudyFile, test: Test, needed: Sequence[str]) -> list[str]:
    """The arms that a test covers: its levels, or all with answers it needs."""
    if test.groups is not None and test.groups.column == "arm":
        return [name for name in test.groups.names if name in study.arms]
    with_it = []
    for name, arm in study.arms.items():
        if set(needed) & set(arm.answered):
            with_it.append(name)

    return with_it or list(study.arms)
