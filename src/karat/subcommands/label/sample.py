"""`karat label --sample`: draws answers for people to score."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("label --sample")
@options.run_argument
@options.gathered("asked", options.Drawing)
@options.results
@options.output()
def command(run: str, asked: options.Drawing, results: Path, output: Output) -> Exit:
    """Draw answers of RUN for people to score, as a CSV sheet.

    Answers are drawn in proportion to how often the judge gave each score under each condition. The
    sheet lists them in random order, without their condition or the judge's scores. The draw is
    saved in the run folder; pass the filled-in sheet to `karat label RUN SHEET`.
    """
    from karat.cli.labelling import draw_for_people

    return draw_for_people(run, asked, results=results, output=output)
