"""Writes rows to files: CSV for spreadsheets, Parquet for data frames.

A query itself never writes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import msgspec

from karat import formats
from karat.errors import BadOption
from karat.files import temporary_folder
from karat_query.sql import Filled, Limits, Stream, load, need_duckdb, quoted
from karat_query.tables.asking import LIMITS, ask, whole
from karat_query.tables.columns import Runs, tables_of

Batches = Iterable[list[list[Any]]]


def csv_cell(value: Any) -> str:
    """A cell for spreadsheets; lists become JSON."""
    return formats.csv_cell(
        msgspec.json.encode(value).decode() if isinstance(value, list) else value
    )


def write_rows(rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    """Writes rows as lines of CSV."""
    csv.writer(out, lineterminator="\n").writerows(
        [csv_cell(value) for value in row] for row in rows
    )


def write(stream: Stream, form: str, out: Path) -> int:
    """Writes a result to a file, which appears only once complete.

    Returns the number of rows. Raises BadOption.
    """
    part = out.with_name(f".{out.name}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.is_dir():
            raise BadOption("--out", f"{out} is a folder; name a file in it")
        count = FORMS[form](stream.columns, stream, part)
        part.replace(out)
    except OSError as error:
        raise BadOption(
            "--out", f"cannot write {error.filename or out}: {error.strerror}"
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()

    return count


def write_tables(
    run: Runs, form: str, folder: Path, *, scorings: Mapping[str, str] | None = None
) -> dict[Path, int]:
    """Writes each table to a file in a folder. Returns path → rows."""
    written = {}
    # the query is karat's own
    limits = Limits(seconds=24 * 3600.0, megabytes=LIMITS.megabytes, rows=1 << 60)
    tables = tables_of(run)
    for name in tables:
        with ask(run, whole(name, tables), scorings=scorings, limits=limits) as stream:
            path = folder / f"{name}.{form}"
            written[path] = write(stream, form, path)

    return written


def _csv(columns: Mapping[str, str], batches: Batches, path: Path) -> int:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        write_rows([list(columns)], file)
        count = 0
        for rows in batches:
            write_rows(rows, file)
            count += len(rows)

    return count


def _parquet(columns: Mapping[str, str], batches: Batches, path: Path) -> int:
    """Lets DuckDB write the file in this process: it only reads rows and runs no SQL but ours.

    All whole numbers become BIGINT. Parquet has none beyond 64 bits, and DuckDB would round them,
    so they are refused.
    """
    need_duckdb()
    import duckdb

    with temporary_folder("parquet") as folder:
        count, longest = 0, 0
        huge = [at for at, kind in enumerate(columns.values()) if kind == "huge"]
        rows_file = folder / "rows.jsonl"
        # a query may name its columns anything
        names = [f"c{index}" for index in range(len(columns))]
        with rows_file.open("wb") as file:
            for rows in batches:
                _require_64_bits(rows, huge)
                lines = [
                    msgspec.json.encode(dict(zip(names, row, strict=True))) + b"\n" for row in rows
                ]
                longest = max(longest, *map(len, lines))
                file.writelines(lines)
                count += len(rows)

        types = {
            name: "whole" if kind == "huge" else kind
            for name, kind in zip(names, columns.values(), strict=True)
        }
        with duckdb.connect(str(folder / "rows.duckdb")) as connection:
            connection.execute(f"SET memory_limit = '{LIMITS.megabytes}MB'")
            connection.execute("SET threads = 1")  # the same rows give the same file
            load(connection, "rows", types, Filled(path=rows_file, longest=longest))
            named = ", ".join(
                f"{name} AS {quoted(column)}" for name, column in zip(names, columns, strict=True)
            )
            target = str(path).replace("'", "''")
            selected = f"SELECT {named} FROM rows"  # noqa: S608 -- quoted
            connection.execute(
                f"COPY ({selected}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
            )

    return count


def _require_64_bits(rows: list[list[Any]], places: Sequence[int]) -> None:
    for at in places:
        for row in rows:
            if row[at] is not None and not -(1 << 63) <= row[at] < 1 << 63:
                fault = (
                    f"the number {row[at]} is too large for Parquet, whose whole numbers have 64 "
                    f"bits"
                )
                raise BadOption("--to", f"{fault}; CAST(… AS DOUBLE), or AS VARCHAR")


FORMS: dict[str, Callable[[Mapping[str, str], Batches, Path], int]] = {
    "csv": _csv,
    "parquet": _parquet,
}
"""File formats of a result."""
