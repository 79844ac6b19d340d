"""`karat check`: everything that could stop a run, and what the run would do."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("start", 20)  # in `karat --help`


@click.command("check", cls=WithFlags)
@options.experiment_file
@options.selection
@click.option("--no-start", is_flag=True, help="Start no MCP server and import no agent.")
@click.option(
    "--ask",
    is_flag=True,
    help="Have each judge score a right and a wrong answer; costs two judgements.",
)
@options.results
@options.output()
def command(
    *,
    source: options.File,
    chosen: options.Chosen,
    no_start: bool,
    ask: bool,
    results: Path,
    output: Output,
) -> Exit:
    """Check the experiment or study in FILE and describe it. Asks no agent and writes nothing.

    All faults are listed, each with its place and how to fix it. Each MCP server is started
    and asked for its tools; if it does not work, that is a fault. Exit code 2 if `karat run` would
    refuse to start.

    A study is a study.yaml, a folder with one or more of them, or a name from `karat list studies`.
    Exit code 2 also if its copy.jsonl does not reproduce the human results. --set then takes
    options of the dataset, e.g. wording=other.
    """
    from karat.cli.file_checks import check_file

    return check_file(source, chosen, start=not no_start, ask=ask, results=results, output=output)
