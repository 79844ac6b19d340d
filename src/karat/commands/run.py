"""`karat run`: runs an experiment."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("run", 10)  # in `karat --help`


@click.command("run", cls=WithFlags)
@options.experiment_file
@options.shard_selection
@options.gathered("how", options.Running)
@options.results
@options.output(events=True)
def command(
    source: options.File,
    chosen: options.Chosen,
    how: options.Running,
    results: Path,
    output: Output,
) -> Exit:
    """Run the experiment in FILE.

    Every answer is saved before it is scored. Ctrl-C waits for the trials in flight; a second
    Ctrl-C stops at once. --resume RUN then asks only what is missing, nothing twice. RUN is a run
    folder, the beginning of its name or id, or `latest`.
    """
    from karat.cli.running import run

    return run(source, chosen, how, results=results, output=output)
