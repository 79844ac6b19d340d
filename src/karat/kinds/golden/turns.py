"""Rows that hold what users say in several turns, which have yet to be asked."""

from __future__ import annotations

from collections.abc import Mapping

from karat.documents.columns import Columns, is_empty
from karat.documents.roles import Reading, Undecided, assign


def asked_at_once(columns: Columns, turns: tuple[str, ...], needs_golden: bool) -> Undecided:
    """The readings in which an agent is asked all turns of a row in one message."""
    named = {"question": turns}
    result = assign(columns, door="dataset", named=named, needs_golden=needs_golden)
    readings = []
    for reading in (result,) if isinstance(result, Reading) else result.readings:
        if turns != reading.roles.get("golden"):
            readings.append(reading)

    return Undecided(asked="what is asked, and what is right,", readings=tuple(readings))


def paths_beside(columns: Columns, path: str) -> list[str]:
    """The path, and those of what else is filled in the objects of its list: `turns[].user`."""
    listed, is_inside, _ = path.partition("[].")
    example = columns[listed].example if is_inside else []
    found = {path: None}
    for entry in example if isinstance(example, list) else ():
        for key, value in entry.items() if isinstance(entry, Mapping) else ():
            if not is_empty(value):
                found[f"{listed}[].{key}"] = None

    return [*found]
