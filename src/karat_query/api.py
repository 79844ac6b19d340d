"""Queries from Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from karat import api
from karat.api import RunLike
from karat.journal import RunFolder
from karat_query import tables

if TYPE_CHECKING:
    import duckdb

    from karat_query.tables import Rows


def query(run: RunLike, sql: str, *, scorings: Mapping[str, str] | None = None) -> Rows:
    """The rows of one SELECT over a run, or every run of a folder: `.table()`, `.to_frame()`, or a
    notebook's table.

    `karat query RUN` lists tables and columns. The query reaches no file, no network and no
    setting. Raises BadOption if it is not allowed, fails, or exceeds its time or memory.
    """
    return tables.query(_runs_meant(run), sql, scorings=scorings)


def relation(
    run: RunLike, table: str, *, scorings: Mapping[str, str] | None = None
) -> duckdb.DuckDBPyRelation:
    """One table of a run as a relation of DuckDB: `.filter(…)`, `.aggregate(…)`, `.df()`, `.pl()`.

    It is in its own temporary database, so nothing you do with it changes the run.
    """
    return tables.relation(_runs_meant(run), table, scorings=scorings)


def _runs_meant(run: RunLike) -> list[RunFolder]:
    if isinstance(run, RunFolder):
        return [run]
    return [api.open(folder) for folder in api.folders(run)]
