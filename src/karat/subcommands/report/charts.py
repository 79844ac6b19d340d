"""`karat report --charts`: writes the charts of a run as files."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("report --charts")
@options.run_argument
@click.option(
    "--out",
    type=options.FOLDER,
    metavar="DIR",
    help=(
        "The folder for the charts, created if missing; default: the name of the run plus -charts."
    ),
)
@click.option(
    "--format",
    "forms",
    type=click.Choice(["png", "svg", "json"]),
    multiple=True,
    help="The file format; json has title, description and numbers. Repeatable; default: svg.",
)
@click.option("--dark", is_flag=True, help="Draw for a dark background.")
@options.gathered("shown", options.Compared)
@options.results
@options.output()
def command(
    run: str,
    out: Path | None,
    forms: tuple[str, ...],
    dark: bool,
    shown: options.Compared,
    results: Path,
    output: Output,
) -> Exit:
    """Write the charts of RUN into a folder, as SVG.

    RUN is a run folder, the beginning of its name or id, or `latest`. --format png needs the extra
    `plots`. With --json the result has each chart's title and its numbers as a table.
    """
    from karat.cli.plotting import draw_run

    return draw_run(run, shown, out, forms, dark=dark, results=results, output=output)
