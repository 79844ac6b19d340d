"""`karat label --failed`: writes questions whose answers failed as rows of a dataset."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("label --failed")
@options.run_argument
@click.option(
    "--to",
    type=options.FILE,
    metavar="FILE",
    help="Write the rows to this file (.jsonl), after those it has; default: standard output.",
)
@click.option("--metric", metavar="NAME", help="By this metric; default: the run's first.")
@click.option(
    "--enough",
    type=float,
    metavar="SCORE",
    help="An answer with a worse score failed; default: the score that counts as reliable.",
)
@click.option(
    "--dataset",
    type=options.PATH,
    metavar="FILE",
    help="Leave out the questions of this dataset. Those in --to FILE are left out, too.",
)
@options.results
@options.output()
def command(
    run: str,
    to: Path | None,
    metric: str | None,
    enough: float | None,
    dataset: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Write questions whose answers failed as rows of a dataset.

    A row has the question, an empty `answer` to fill in (or the run's golden answer), the agent's
    worst answer with its score, and where it comes from. An answer failed if its score is worse
    than --enough, or if the agent gave none. Works for imported traces, too.
    """
    from karat.cli.failed_questions import write_failed

    return write_failed(
        run,
        to=to,
        metric=metric,
        enough=enough,
        dataset=dataset,
        results=results,
        output=output,
    )
