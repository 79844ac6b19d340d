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
@options.gathered("shown", options.Shown)
@options.results
@options.output()
def command(first: str, second: str, shown: options.Shown, results: Path, output: Output) -> Exit:
    """Show what changed from the first to the second, question by question.

    Of human studies: PAS and ECS of the second less those of the first, paired by participant in
    whatever words they were asked, and the tests that moved, those that turned round first.
    For each metric: the mean difference with its interval, p (Holm, over all comparisons), and
    the questions that moved most. Without conditions, those that both runs have are compared.
    A second RUN may be left out: `karat compare RUN:baseline :with-docs`.
    """
    from karat.analysis import compare
    from karat.cli.printed import aside
    from karat.cli.sides import split

    run_a, condition_a = split(first, results=results)
    run_b, condition_b = split(second, results=results, otherwise=run_a)
    with aside():
        found = compare(
            run_a,
            run_b,
            condition_a=condition_a,
            condition_b=condition_b,
            scorings=shown.scorings,
            allow_code=shown.code,
            right=shown.right,
        )
    output.result(str(found), found.to_builtins())
    return Exit.DONE
