"""`karat merge`: the shards of an experiment as one run."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output, typed

__all__ = ["command"]


@click.command("merge")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the run folder is made; default: the folder of results.",
)
@options.results
@options.output()
def command(runs: tuple[str, ...], out: Path | None, results: Path, output: Output) -> Exit:
    """Put the runs of one experiment together: the shards that `karat run --shard I/N` made.

    RUN is a run folder, the beginning of its name or id, or a folder of runs: all of these. The runs stay as they are.
    One that is not complete can be resumed, and all of them merged again: the merged run is then replaced. Runs of
    different experiments, datasets, conditions, scorers or code are refused. Where two runs have answered one trial,
    the answer of the run that was made first counts.
    """
    from karat import api
    from karat.execution import merge_runs

    paths = [path for run in runs for path in api.folders(run, results=results)]
    merged = merge_runs([api.open(path) for path in paths], out if out is not None else results)
    path = str(merged.run.path)
    state = "merged" if merged.changed else "nothing new"
    output.say(*(f"warning: {note}" for note in merged.notes))
    output.result(f"{state}: {path}\n", {"run": path, "changed": merged.changed, "notes": list(merged.notes)})
    output.say(f"next: {typed('report', path)}")
    return Exit.DONE
