"""`karat check`: everything that could stop a run, and what the run would be."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

__all__ = ["command"]


@click.command("check")
@options.experiment_file
@options.selection
@click.option("--no-start", is_flag=True, help="Start no MCP server and import no agent.")
@options.results
@options.output()
def command(source: options.File, chosen: options.Chosen, no_start: bool, results: Path, output: Output) -> Exit:
    """Validate the experiment in FILE and print its plan; no agent is asked, nothing is written.

    All faults are listed at once, each with its place and what is wanted. Each MCP server is
    started and its tools are listed; a broken one is a fault. Exit code 2 where `karat run`
    would not begin.
    """
    from karat.cli.checking import check

    start = output.say if not no_start else None
    found = check(source.load(), selection=chosen.as_selection(), results=results, start=start)
    output.result(str(found), found)
    output.say(*(f"warning: {text}" for text in found.warnings))
    output.complain(*found.problems)
    return Exit.DONE if found.ready else Exit.CHANGE_SOMETHING
