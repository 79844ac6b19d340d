"""`karat compare`: two runs, or two conditions, question by question."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

__all__ = ["command"]


@click.command("compare")
@click.argument("first", metavar="RUN[:CONDITION]")
@click.argument("second", metavar="RUN[:CONDITION]")
@options.scoring
@options.results
@options.output()
def command(first: str, second: str, scorings: dict[str, str], results: Path, output: Output) -> Exit:
    """Show what changed from the first to the second, question by question.

    For each metric: the mean difference with its interval, p (Holm, over all comparisons), and
    the questions that moved most. Without conditions, those that both runs have are compared.
    A second RUN may be left out: `karat compare RUN:baseline :with-docs`.
    """
    from karat.cli.sides import split
    from karat.summary import compare

    run_a, condition_a = split(first, results=results)
    run_b, condition_b = split(second, results=results, otherwise=run_a)
    found = compare(run_a, run_b, condition_a=condition_a, condition_b=condition_b, scorings=scorings)
    output.result(str(found), found)
    return Exit.DONE
