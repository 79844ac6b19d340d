"""Queries a run with SQL: the query sees copies of the run's tables and nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from karat.errors import BadOption, did_you_mean
from karat.files import temporary_folder
from karat_query.sql import Filled, Limits, Stream
from karat_query.tables.columns import Runs, tables_of
from karat_query.tables.filling import fill

LIMITS = Limits(seconds=60.0, megabytes=512, rows=10_000_000)
"""Limits of one query. Time counts from when its tables are filled."""

_PLACE = "query"
_UNKNOWN_COLUMN = re.compile(
    r'(?:column|named?) "(?P<name>[^"]+)" (?:not found|does not exist)'
    r'|have a column named "(?P<other>[^"]+)"'
)
_UNKNOWN_TABLE = re.compile(r"Table with name (?P<name>.+?) does not exist")


@contextmanager
def ask(
    runs: Runs,
    sql: str,
    *,
    scorings: Mapping[str, str] | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Stream]:
    """The rows of one SELECT, as they arrive. Only the tables that it names are filled.

    Raises BadOption if the query is not allowed or fails, BadRun for a damaged run.
    """
    tables = tables_of(runs)
    types = {name: table.types for name, table in tables.items()}
    with temporary_folder("query") as folder:

        def fill_needed(
            needed: Iterable[str], samples: Collection[str] | None
        ) -> Mapping[str, Filled]:
            return fill(runs, needed, folder, scorings=scorings, samples=samples)

        try:
            stream = Stream(sql, types, fill_needed, folder, limits=limits, place=_PLACE)
        except BadOption as error:
            # The error with the nearest name, if it is about a missing column or table
            text = str(error).removeprefix(f"{_PLACE}: ")
            if (match := _UNKNOWN_TABLE.search(text)) is not None:
                name = match["name"]
                clearer = BadOption(
                    _PLACE, f"there is no table '{name}'{did_you_mean(name.lower(), tables)}"
                )
            elif (match := _UNKNOWN_COLUMN.search(text)) is not None:
                name = match["name"] or match["other"]
                columns = dict.fromkeys(
                    column for table in tables.values() for column in table.types
                )
                hint = (
                    f"{did_you_mean(name.lower(), columns)}; `karat query RUN` lists tables and "
                    "columns"
                )
                clearer = BadOption(_PLACE, f"there is no column '{name}'{hint}")
            else:
                clearer = error

            raise clearer from None

        with stream:
            yield stream


def whole(name: str, tables: Collection[str]) -> str:
    """The SELECT that returns a whole table. Raises BadOption if there is no such table."""
    if name not in tables:
        raise BadOption("table", f"there is no table '{name}'{did_you_mean(name, tables)}")
    return f'SELECT * FROM "{name}"'  # noqa: S608 -- one of ours
