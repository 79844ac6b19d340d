"""A question in SQL to a run: its tables are filled apart from it, and the query reaches nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from karat.errors import BadOption, did_you_mean
from karat.files import temporary_folder
from karat.sql import Filled, Limits, Stream
from karat.tables.columns import TABLES
from karat.tables.filling import ARRAYS_FROM, Runs, fill

__all__ = ["LIMITS", "ask", "whole"]

LIMITS = Limits(seconds=60.0, megabytes=512, rows=10_000_000)
"""Of one query. Seconds count from when its tables are filled."""

_PLACE = "query"
_TYPES = {table.name: table.types for table in TABLES.values()}
_UNKNOWN_COLUMN = re.compile(
    r'(?:column|named?) "(?P<name>[^"]+)" (?:not found|does not exist)|have a column named "(?P<other>[^"]+)"'
)
_UNKNOWN_TABLE = re.compile(r"Table with name (?P<name>.+?) does not exist")


@contextmanager
def ask(
    runs: Runs,
    sql: str,
    *,
    scorings: Mapping[str, str] | None = None,
    limits: Limits = LIMITS,
    arrays_from: int = ARRAYS_FROM,
) -> Iterator[Stream]:
    """The rows of one SELECT, as they come. Only the tables that it names are filled.

    Raises BadOption for whatever the query may not or cannot do, BadRun for a damaged run.
    """
    with temporary_folder("query") as folder:

        def fill_needed(needed: Mapping[str, Collection[str]]) -> Mapping[str, Filled]:
            return fill(runs, needed, folder, scorings=scorings, arrays_from=arrays_from)

        try:
            stream = Stream(sql, _TYPES, fill_needed, folder, limits=limits, place=_PLACE)
        except BadOption as error:
            raise _told(error) from None
        with stream:
            yield stream


def whole(name: str) -> str:
    """The SELECT that gives a table as it is. Raises BadOption where there is none of this name."""
    if name not in TABLES:
        raise BadOption("table", f"there is no table '{name}'{did_you_mean(name, TABLES)}")
    return f'SELECT * FROM "{name}"'  # noqa: S608 -- one of ours


def _told(error: BadOption) -> BadOption:
    """With the nearest name, where a column or a table is not there."""
    text = str(error).removeprefix(f"{_PLACE}: ")
    if (found := _UNKNOWN_TABLE.search(text)) is not None:
        return BadOption(_PLACE, f"there is no table '{found['name']}'{_near(found['name'], TABLES)}")
    if (found := _UNKNOWN_COLUMN.search(text)) is not None:
        name = found["name"] or found["other"]
        columns = dict.fromkeys(column for types in _TYPES.values() for column in types)
        return BadOption(_PLACE, f"there is no column '{name}'{_near(name, columns)}; {_SHOWN}")
    return error


_SHOWN = "`karat query RUN` lists tables and columns"


def _near(name: str, known: Collection[str]) -> str:
    return did_you_mean(name.lower(), known)
