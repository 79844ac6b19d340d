"""A run as tables: samples, trials, replies, tool calls, scores and failures, to query with SQL or
export.

`karat_query.tables.columns` says what each column holds. A run folder is only read; queries run on
a copy, in a process that can reach nothing else (`karat_query.sql`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.kinds import Column, TableInfo
from karat.lazy import lazy
from karat_query.tables.columns import TABLES, Runs, tables_of

if TYPE_CHECKING:
    from karat_query.tables.asking import LIMITS, ask, whole
    from karat_query.tables.relations import Rows, query, relation
    from karat_query.tables.written import FORMS, csv_cell, write, write_rows, write_tables

__all__ = [
    "FORMS",
    "LIMITS",
    "TABLES",
    "Column",
    "Rows",
    "Runs",
    "TableInfo",
    "ask",
    "csv_cell",
    "query",
    "relation",
    "tables_of",
    "whole",
    "write",
    "write_rows",
    "write_tables",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "asking": "LIMITS ask whole",
        "relations": "Rows query relation",
        "written": "FORMS csv_cell write write_rows write_tables",
    },
)
