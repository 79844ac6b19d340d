"""`karat query`: queries a run with SQL."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("look", 60)  # in `karat --help`


@click.command("query")
@options.run_argument
@click.argument("sql", metavar="[SQL]", required=False)
@options.gathered("asking", options.Asking)
@options.scoring
@options.results
@options.output()
def command(
    run: str,
    sql: str | None,
    asking: options.Asking,
    scorings: dict[str, str],
    results: Path,
    output: Output,
) -> Exit:
    """Query the tables of RUN with SQL, in the dialect of DuckDB.

    The SQL is one SELECT. Without it, lists the tables and their columns; with --to and --out as
    well, writes every table into a folder. RUN is a run folder, the beginning of its name or id,
    `latest`, or a folder of runs: then all of them are queried, and the column `run` of every table
    names the row's run. Runs are only read. A query cannot reach files, the network or settings,
    and is stopped after --seconds.
    """
    from karat_query.querying import query_runs

    return query_runs(run, sql, asking, scorings, results=results, output=output)
