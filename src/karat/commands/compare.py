"""`karat compare`: two runs, or two conditions, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption

PLACE = ("look", 40)  # in `karat --help`

if TYPE_CHECKING:
    from karat.errors import BadRun
    from karat.journal import RunFolder


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
    from karat.analysis import compare
    from karat.cli.printed import aside

    if second is None or others:
        texts = [first, *([second] if second else []), *others]
        return _ranked(texts, metric, shown, results=results, output=output)
    if metric is not None:
        raise BadOption(
            "--metric", "is for three or more conditions; two are compared on every metric"
        )

    run_a, condition_a = _split(first, results=results)
    run_b, condition_b = _split(second, results=results, otherwise=run_a)
    with aside():
        comparison = compare(
            run_a,
            run_b,
            condition_a=condition_a,
            condition_b=condition_b,
            scorings=shown.scorings,
            allow_code=shown.code,
            right=shown.right,
        )

    output.result(str(comparison), comparison.to_builtins())
    return Exit.DONE


def _ranked(
    texts: Sequence[str], metric: str | None, shown: options.Shown, *, results: Path, output: Output
) -> Exit:
    import msgspec

    from karat import api
    from karat.analysis.leaderboard import leaderboard
    from karat.cli.printed import aside
    from karat.document.ranked import leaderboard_document
    from karat.document.render.terminal import render_terminal
    from karat.formats import OUTPUT_FORMAT

    sides = []
    run = None
    with aside():
        for text in texts:
            run, condition = _split(text, results=results, otherwise=run)
            summary = api.summarize(
                run, scorings=shown.scorings, allow_code=shown.code, right=shown.right
            )
            sides.append((summary, condition))

        ranking = leaderboard(sides, metric=metric)

    text = render_terminal(leaderboard_document(ranking))
    output.result(text, {"format": OUTPUT_FORMAT, **msgspec.to_builtins(ranking)})
    return Exit.DONE


def _split(
    text: str, *, results: Path, otherwise: RunFolder | None = None
) -> tuple[RunFolder, str | None]:
    """The run of `RUN:CONDITION`, and the condition if one is named; either may itself contain a
    colon.

    `otherwise` is the run if the text begins with a colon. Raises BadRun, BadOption.
    """
    from karat import api
    from karat.errors import BadRun

    if text.startswith(":"):
        if otherwise is None:
            raise BadOption("compare", f"'{text}' names no run; write RUN{text}")
        return otherwise, text[1:]

    complaint: BadRun | None = None
    for place in [len(text), *(place for place, char in enumerate(text) if char == ":")]:
        try:
            return api.open(text[:place], results=results), text[place + 1 :] or None
        except BadRun as error:
            # Report the shortest reading: what comes before the first colon is most likely the run.
            complaint = (
                error if complaint is None or len(error.path) < len(complaint.path) else complaint
            )

    assert complaint is not None
    raise complaint
