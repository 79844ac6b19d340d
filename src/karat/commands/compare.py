"""`karat compare`: two runs, or two conditions, question by question."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("look", 40)  # in `karat --help`


@click.command("compare", cls=WithFlags)
@click.argument("first", metavar="RUN[:CONDITION]")
@click.argument("second", metavar="RUN[:CONDITION]", required=False)
@click.argument("others", metavar="[RUN[:CONDITION]]...", nargs=-1)
@click.option(
    "--metric",
    metavar="NAME",
    help="With three or more: rank by this metric; default: the first that all have.",
)
@options.gathered("shown", options.Shown)
@options.results
@options.output()
def command(
    first: str,
    second: str | None,
    others: tuple[str, ...],
    metric: str | None,
    shown: options.Shown,
    results: Path,
    output: Output,
) -> Exit:
    """Show what changed between two runs, or rank more of them.

    Runs are compared question by question. For each metric: the mean difference (second minus
    first) with its interval, p (Holm, over all comparisons), and the questions that changed most.
    For human studies: PAS and ECS, second minus first, and the tests that changed. Unless you name
    conditions, all that both runs have are compared. To compare two conditions of one run, leave
    out the second RUN: `karat compare RUN:baseline :with-docs`.

    Three or more are ranked by one metric, over the questions that all have: conditions that share
    a letter cannot be told apart. A RUN without a condition means all of its conditions, so one RUN
    is enough.
    """
    from karat.cli.comparing import compare_or_rank

    texts = [first, *([second] if second is not None else []), *others]
    return compare_or_rank(texts, metric, shown, results=results, output=output)
