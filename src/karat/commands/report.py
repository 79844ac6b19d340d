"""`karat report`: writes a report of a run."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("look", 10)  # in `karat --help`


@click.command("report", cls=WithFlags)
@options.run_argument
@click.option(
    "--to",
    metavar="NAME",
    help="terminal (default), html, json, csv, …; `karat list reports` shows all.",
)
@options.out
@options.gathered("shown", options.Reported)
@options.results
@options.output()
def command(
    run: str,
    to: str | None,
    out: Path | None,
    shown: options.Reported,
    results: Path,
    output: Output,
) -> Exit:
    """Write a report of RUN, which may still be running.

    RUN is a run folder, the beginning of its name or id, or `latest`. The first lines say which
    condition is better than which; --full shows every section. With --json and without --to, the
    report is json. Changes nothing in the run folder.
    """
    from karat.cli.reporting import report

    return report(run, shown, name=to, out=out, results=results, output=output)
