"""`karat compare`: two runs, or two conditions, question by question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

if TYPE_CHECKING:
    from karat.errors import BadRun
    from karat.journal import RunFolder

__all__ = ["command"]


@click.command("compare")
@click.argument("first", metavar="RUN[:CONDITION]")
@click.argument("second", metavar="RUN[:CONDITION]")
@options.gathered("shown", options.Shown)
@options.results
@options.output()
def command(first: str, second: str, shown: options.Shown, results: Path, output: Output) -> Exit:
    """Show what changed from the first to the second, question by question.

    For each metric: the mean difference with its interval, p (Holm, over all comparisons), and the
    questions that changed most. For human studies: PAS and ECS of the second minus the first, paired
    by participant whatever wording they read, and the tests that changed, reversed ones first.
    Without conditions, those that both runs have are compared. For two conditions of one run leave
    out the second RUN: `karat compare RUN:baseline :with-docs`.
    """
    from karat.analysis import compare
    from karat.cli.printed import aside

    run_a, condition_a = _split(first, results=results)
    run_b, condition_b = _split(second, results=results, otherwise=run_a)
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


def _split(text: str, *, results: Path, otherwise: RunFolder | None = None) -> tuple[RunFolder, str | None]:
    """The run of `RUN:CONDITION`, and the condition where one is named; both may hold a colon themselves.

    `otherwise` is the run of a text that begins with the colon. Raises BadRun, BadOption.
    """
    from karat import api
    from karat.errors import BadOption, BadRun

    if text.startswith(":"):
        if otherwise is None:
            raise BadOption("compare", f"'{text}' names no run; write RUN{text}")
        return otherwise, text[1:]
    complaint: BadRun | None = None
    for place in [len(text), *(place for place, char in enumerate(text) if char == ":")]:
        try:
            return api.open(text[:place], results=results), text[place + 1 :] or None
        except BadRun as error:
            # Of several, the complaint about the shortest: what stands before the first colon is most likely the run.
            complaint = error if complaint is None or len(error.path) < len(complaint.path) else complaint
    assert complaint is not None
    raise complaint
