"""Prints the rows of a query on the screen or as JSON, or writes them to a file."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import msgspec

from karat import api, formats
from karat.analysis.verdicts import REHEARSED
from karat.cli.ending import Exit
from karat.cli.options import Asking
from karat.cli.output import Output, aligned
from karat.errors import BadOption
from karat.formats import OUTPUT_FORMAT
from karat_query.sql import SQL_TYPES, Limits
from karat_query.tables import LIMITS, ask, tables_of, write, write_rows, write_tables

if TYPE_CHECKING:
    from karat.journal import RunFolder
    from karat_query.sql import Stream

_SHOWN = 1000  # rows on a screen
_WIDEST = 60  # columns of a cell if the screen's width is unknown
# columns to which a cell may shrink; a row that is still too wide is cut at the edge
_NARROWEST = 6
_CELL = 200
_RIGHT = {"number", "whole", "huge"}
_IN_MEMORY = 8 << 20  # bytes of a result held until its last row; beyond that, it is held in a file
_PART = 1 << 20  # characters


class ListedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table, as `--json` lists it."""

    name: str
    rows: str
    columns: tuple[dict[str, str], ...]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """`karat query RUN --json`."""

    format: int = OUTPUT_FORMAT
    tables: tuple[ListedTable, ...]


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """`--json` if the rows went into files."""

    format: int = OUTPUT_FORMAT
    files: dict[str, int]  # path → rows


def query_runs(
    run: str,
    sql: str | None,
    asking: Asking,
    scorings: Mapping[str, str],
    *,
    results: Path,
    output: Output,
) -> Exit:
    """Prints the rows of a query, or writes them or the tables; without either, lists the tables.

    Raises BadOption, BadRun.
    """
    folders = api.folders(run, results=results)
    opened = [api.open(folder) for folder in folders]
    if sql is not None:
        answer(opened, sql, asking, scorings, output)
    elif asking.to is not None:
        take_tables(opened, asking, scorings, output)
    else:
        list_tables(opened, output)
        return Exit.DONE

    output.say(
        f"queried {folders[0]}" if len(folders) == 1 else f"queried {len(folders)} runs in {run}"
    )
    if any(folder.info.rehearsed for folder in opened):
        output.say(f"warning: {REHEARSED}")
    for text in (text for folder in opened for text in folder.gap_notices()):
        output.say(f"warning: {text}")
    return Exit.DONE


def list_tables(runs: Sequence[RunFolder], output: Output) -> None:
    """Lists every table of the runs with its columns."""
    lines: list[str] = []
    listed = []
    for table in tables_of(runs).values():
        rows = [
            ("", column.name, SQL_TYPES[column.type], column.meaning) for column in table.columns
        ]
        lines += ["", f"{table.name}: {table.rows}", *aligned(rows)]
        columns = tuple(
            {"name": name, "type": kind, "meaning": meaning} for _, name, kind, meaning in rows
        )
        listed.append(ListedTable(name=table.name, rows=table.rows, columns=columns))

    output.result("\n".join(lines[1:]), Listed(tables=tuple(listed)))


def take_tables(
    run: Sequence[RunFolder], asking: Asking, scorings: Mapping[str, str], output: Output
) -> None:
    """Writes every table to a file of its own."""
    assert asking.to is not None
    if asking.out is None:
        raise BadOption(
            "--out", f"every table as {asking.to} makes several files: name a folder for them"
        )

    if asking.out.is_file():
        raise BadOption("--out", f"{asking.out} is a file; every table needs a folder")
    written = write_tables(run, asking.to, asking.out, scorings=scorings)
    _show_written({str(path): rows for path, rows in written.items()}, output)


def answer(
    run: Sequence[RunFolder], sql: str, asking: Asking, scorings: Mapping[str, str], output: Output
) -> None:
    """Runs one query and sends its rows to their destination."""
    if asking.to == "parquet" and asking.out is None:
        raise BadOption("--out", "parquet is not text: name a file for it")
    if asking.to is None and asking.out is not None:
        raise BadOption("--out", "say what to write: --to csv or --to parquet")
    limits = Limits(seconds=asking.seconds, megabytes=asking.megabytes, rows=LIMITS.rows)
    with ask(run, sql, scorings=scorings, limits=limits) as stream:
        if asking.to is not None and asking.out is not None:
            _show_written({str(asking.out): write(stream, asking.to, asking.out)}, output)
        elif asking.to == "csv":
            with _printed_whole() as file:
                for rows in chain([[list(stream.columns)]], stream):
                    part = io.StringIO()
                    write_rows(rows, part)
                    file.write(
                        formats.clean(part.getvalue()) if sys.stdout.isatty() else part.getvalue()
                    )
        elif output.as_json:
            _print_json(stream)
        else:
            kinds = tuple(stream.columns.values())
            rows = list(islice((row for batch in stream for row in batch), _SHOWN + 1))
            cells = []
            for row in rows[:_SHOWN]:
                cells.append([_cell(value) for value in row])
            heads = [formats.excerpt(name, _CELL) for name in stream.columns]
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            for line in _table(heads, cells, kinds, width):
                click.echo(line)
            if len(rows) > _SHOWN:
                output.say(
                    f"the first {formats.plural(_SHOWN, 'row')}; --json and --to csv give all"
                )
            else:
                output.say(formats.plural(len(rows), "row"))


def _show_written(files: dict[str, int], output: Output) -> None:
    lines = [f"{path}: {formats.plural(rows, 'row')}" for path, rows in files.items()]
    output.result(formats.clean("\n".join(lines)), Written(files=files))


@contextmanager
def _printed_whole() -> Iterator[IO[str]]:
    """A file whose text is printed only once it is complete: a query may fail at its last row."""
    with tempfile.SpooledTemporaryFile(
        mode="w+",
        max_size=_IN_MEMORY,
        encoding="utf-8",
        errors="replace",
        newline="",
        prefix="karat-query-",
    ) as file:
        yield file
        file.seek(0)
        while part := file.read(_PART):
            click.echo(part, nl=False)


def _print_json(stream: Stream) -> None:
    types = {name: SQL_TYPES[kind] for name, kind in stream.columns.items()}
    head = msgspec.json.encode({"format": OUTPUT_FORMAT, "columns": types}).decode()
    # JSON has integers of any size; msgspec only those of 64 bits
    huge = "huge" in stream.columns.values()
    names = tuple(stream.columns)
    comma = "\n"
    with _printed_whole() as file:
        file.write(formats.escaped(f'{head[:-1]},"rows":['))
        for rows in stream:
            named = [dict(zip(names, row, strict=True)) for row in rows]
            if huge:
                lines = [
                    json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in named
                ]
            else:
                lines = [msgspec.json.encode(row).decode() for row in named]

            file.write(formats.escaped(comma + ",\n".join(lines)))
            comma = ",\n"

        file.write("\n]}\n")


def _cell(value: Any) -> str:
    if value is None:
        return formats.UNKNOWN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return formats.brief(value)
    if isinstance(value, list):
        value = msgspec.json.encode(value).decode()
    return formats.excerpt(value if isinstance(value, str) else formats.raw(value), _CELL)


def _table(
    heads: Sequence[str], cells: Sequence[Sequence[str]], kinds: Sequence[str], width: int | None
) -> list[str]:
    widths = [max(map(formats.width, column)) for column in zip(heads, *cells, strict=True)]
    if width is None:
        widths = [min(wide, _WIDEST) for wide in widths]
    else:  # the widest columns shrink first
        while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > _NARROWEST:
            widths[widths.index(max(widths))] -= 1

    rows = []
    for row in (heads, *cells):
        rows.append([formats.cut(cell, wide) for cell, wide in zip(row, widths, strict=True)])
    rows.insert(1, ["─" * wide for wide in widths])
    lines = aligned(rows, right={at for at, kind in enumerate(kinds) if kind in _RIGHT})
    found = []
    for line in lines:
        if width is not None:
            found.append(formats.cut(line, width))
        else:
            found.append(line)

    return found
