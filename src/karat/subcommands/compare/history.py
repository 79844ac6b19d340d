"""`karat compare --history`: one metric over the runs of an experiment."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("compare --history")
@click.argument("folder", metavar="[FOLDER]", type=options.PATH, required=False)
@options.gathered("asked", options.Following)
@options.results
@options.output()
def command(folder: Path | None, asked: options.Following, results: Path, output: Output) -> Exit:
    """Follow a metric over the runs of one experiment.

    The oldest comes first. Includes every run with the same name and dataset content as the newest
    run in FOLDER (default: the folder of results). Says when the metric changed, at an error rate
    of 5 %, and raises an alarm if the newest runs have drifted away from the earlier ones (false
    alarms: 4 % of series of 100 equal runs).
    """
    from karat.cli.history import show_history

    return show_history(folder, asked, results=results, output=output)
