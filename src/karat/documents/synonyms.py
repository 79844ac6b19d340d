"""Rows that name the same thing differently, such as those of a file in two languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from karat.documents.columns import Columns, is_empty, paths_in
from karat.documents.names import Role, with_role
from karat.documents.row_list import Rows
from karat.formats import plural

_ROLES: tuple[Role, ...] = ("question", "golden")


def as_one(rows: Rows, columns: Columns, named: Mapping[Role, Sequence[str]]) -> Rows:
    """The rows with the question, and the golden answer, under one name each where every row has
    them under one of several; else the same rows. `named`: the columns that the user has named.
    """
    taken = {path for paths in named.values() for path in paths}
    renamed: dict[str, str] = {}
    for role in _ROLES:
        given = [path for path in named.get(role, ()) if path in columns]
        if role in named and (len(given) != 1 or (role == "golden" and not renamed)):
            continue  # it is as the user says, and other rows have none
        others = [path for path in with_role(paths_in(columns), role) if path not in taken]
        paths = [*given, *(path for path in others if columns[path].filled)]
        filled = sum(columns[path].filled for path in paths)
        if len(paths) < 2 or filled > columns[paths[0]].rows:
            continue
        usual = max(paths, key=lambda path: (path in given, columns[path].filled))
        both = 0
        for _, row in rows.rows:
            both += sum(not is_empty(row.get(path)) for path in paths) > 1

        for path in paths:
            if path != usual and not both:
                renamed[path] = usual

    if not renamed:
        return rows
    found, changed = [], Counter[tuple[str, str]]()
    for number, row in rows.rows:
        called: dict[str, object] = {}
        for path, value in row.items():
            usual = renamed.get(path, path)
            if path in renamed and not is_empty(value):
                changed[path, usual] += 1
            if usual not in called or not is_empty(value):
                called[usual] = value

        found.append((number, called))

    notes = [*rows.notes]
    for (path, usual), times in changed.items():
        notes.append(f"'{path}' as '{usual}', in {plural(times, rows.unit)}")

    return msgspec.structs.replace(rows, rows=found, columns=(), notes=notes)
