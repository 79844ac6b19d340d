"""`karat label`: compares the judge with people, and corrects its numbers."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("decide", 30)  # in `karat --help`


@click.command("label", cls=WithFlags)
@options.run_argument
@click.argument("labels", metavar="[LABELS]", type=options.PATH, required=False)
@options.gathered("asked", options.Labelling)
@options.results
@options.output()
def command(
    run: str, labels: Path | None, asked: options.Labelling, results: Path, output: Output
) -> Exit:
    """Compare the judge of RUN with people, and correct for it.

    Corrects the means and differences of a run. LABELS is a sheet from `karat label RUN --sample N`
    with its scores filled in. Each person fills in their own sheet; a sheet may be passed more than
    once. Scores are saved in the run folder; without LABELS the saved ones are used. With
    --corrected, `karat report` shows the corrected numbers and `karat gate` decides on them.
    """
    from karat.cli.labelling import compare_with_people

    return compare_with_people(run, labels, asked, results=results, output=output)
