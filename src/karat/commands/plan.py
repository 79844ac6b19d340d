"""`karat plan`: how large the next experiment must be."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("decide", 10)  # in `karat --help`


@click.command("plan")
@click.argument("run", metavar="[RUN]", required=False)
@options.gathered("asked", options.Planning)
@options.results
@options.output()
def command(run: str | None, asked: options.Planning, results: Path, output: Output) -> Exit:
    """Show how large an experiment must be, and its cost.

    Plans from a finished RUN, whose scores show how much questions and answers vary, or from
    assumed deviations: `karat plan --sd-questions 0.8 --sd-answers 0.5 --difference 0.2`.
    """
    from karat.cli.planning import show_plan

    return show_plan(run, asked, results=results, output=output)
