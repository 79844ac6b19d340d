"""Tables in Python: rows of a query, data frames, DuckDB relations."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from karat import formats
from karat.analysis.shapes import frame
from karat.files import temporary_folder
from karat_query.sql import SQL_TYPES, Limits, load, need_duckdb
from karat_query.tables.asking import LIMITS, ask, whole
from karat_query.tables.columns import Runs, tables_of
from karat_query.tables.filling import fill

if TYPE_CHECKING:
    import duckdb

_SHOWN = 100  # rows in a notebook
_LONGEST = 200  # columns of a cell there


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """The result of a query. A notebook shows the first rows as a table."""

    types: Mapping[str, str]  # column → DOUBLE, BIGINT, HUGEINT, VARCHAR, VARCHAR[] or BOOLEAN
    rows: Sequence[Sequence[Any]] = field(repr=False)  # None: not known

    def __len__(self) -> int:
        return len(self.rows)

    def table(self) -> list[dict[str, Any]]:
        """One dict per row."""
        return [dict(zip(self.types, row, strict=True)) for row in self.rows]

    def to_frame(self) -> Any:
        """A pandas or polars DataFrame, whichever is installed. Raises BadOption without either."""
        return frame(self.table(), tuple(self.types))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{_safe(name)}</th>" for name in self.types)
        body = "".join(
            "<tr>" + "".join(f"<td>{_safe(_shown(value))}</td>" for value in row) + "</tr>"
            for row in self.rows[:_SHOWN]
        )
        if len(self) > _SHOWN:
            more = f"<p>{formats.plural(len(self), 'row')}; the first {_SHOWN} are shown</p>"
        else:
            more = ""

        return (
            f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
        )


def query(
    run: Runs, sql: str, *, scorings: Mapping[str, str] | None = None, limits: Limits | None = None
) -> Rows:
    """The rows of one SELECT over a run's tables."""
    with ask(
        run, sql, scorings=scorings, limits=limits or Limits(seconds=LIMITS.seconds)
    ) as stream:
        types = {name: SQL_TYPES[kind] for name, kind in stream.columns.items()}
        return Rows(types=types, rows=tuple(tuple(row) for rows in stream for row in rows))


def relation(
    run: Runs, name: str, *, scorings: Mapping[str, str] | None = None
) -> duckdb.DuckDBPyRelation:
    """A table as a DuckDB relation, in a database of its own that is closed with it."""
    need_duckdb()
    import duckdb

    tables = tables_of(run)
    select = whole(name, tables)
    with ExitStack() as undone:
        folder = undone.enter_context(temporary_folder("relation"))
        filled = fill(run, [name], folder, scorings=scorings)
        connection = duckdb.connect(str(folder / "tables.duckdb"))
        load(connection, name, tables[name].types, filled[name])
        table = connection.sql(select)
        weakref.finalize(connection, undone.pop_all().close)

    return table


def _shown(value: Any) -> str:
    if value is None:
        return formats.UNKNOWN
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return formats.raw(value)
    return str(value)


def _safe(text: str) -> str:
    return escape(formats.excerpt(text, _LONGEST))
