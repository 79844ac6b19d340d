"""`karat runs list`: the run folders below a folder."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption


@click.command("list")
@click.argument("folder", metavar="[FOLDER]", type=options.PATH, required=False)
@options.results
@options.output()
def command(folder: Path | None, results: Path, output: Output) -> Exit:
    """List the runs in FOLDER, the newest first.

    Without FOLDER, those in the folder of results: when each was made, its experiment, its
    conditions, how many trials it has, and whether it is done.
    """
    from karat.cli.listing import listed_runs

    place = folder or results
    if folder is not None and not place.is_dir():
        raise BadOption("FOLDER", f"{place} is not a folder")
    runs = listed_runs(place)
    output.result(str(runs), runs)
    output.complain(*runs.unreadable)
    return Exit.DONE
