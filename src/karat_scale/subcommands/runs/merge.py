"""`karat runs merge`: the shards of an experiment as one run."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("merge")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--out",
    type=options.FOLDER,
    metavar="DIR",
    help="Where to make the run folder; default: the folder of results.",
)
@options.results
@options.output()
def command(runs: tuple[str, ...], out: Path | None, results: Path, output: Output) -> Exit:
    """Merge the runs of one experiment, such as its shards.

    `karat run --shard I/N` makes shards. RUN is a run folder, the beginning of its name or id, or a
    folder of runs (then all of them). The runs are left unchanged. If one is incomplete, resume it
    and merge again. Runs of different experiments are refused. If two runs have answered the same
    trial, the answer of the earlier run counts.
    """
    from karat_scale.merging_runs import merge

    return merge(runs, out if out is not None else results, results=results, output=output)
