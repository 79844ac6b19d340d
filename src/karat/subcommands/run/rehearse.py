"""`karat run --rehearse`: runs an experiment with scripted models."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("run --rehearse")
@options.experiment_file
@options.selection
@click.option(
    "--script",
    type=options.PATH,
    metavar="PATH",
    help="What the models say, as YAML; without it, replies are made up.",
)
@click.option(
    "--log",
    type=options.FILE,
    metavar="PATH",
    help="Append every request and reply of the models to this file, as lines of JSON.",
)
@options.rehearsed_results
@options.output(events=True)
def command(
    source: options.File,
    chosen: options.Chosen,
    script: Path | None,
    log: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Run the experiment in FILE with scripted models.

    Needs no API key and no provider, and costs nothing. A server on this machine plays the models
    of agent and judge; MCP servers are the real ones. Without --script the judge's scores mean
    nothing. The run and its reports say so.
    """
    from karat.cli.running import rehearse

    return rehearse(source, chosen, script=script, log=log, results=results, output=output)
