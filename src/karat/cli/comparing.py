"""The work of `karat compare`: two runs or conditions, question by question, or a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from karat import api
from karat.analysis import compare
from karat.analysis.leaderboard import leaderboard
from karat.cli.ending import Exit
from karat.cli.options import Shown
from karat.cli.output import Output
from karat.cli.printed import aside
from karat.document.ranked import leaderboard_document
from karat.document.render.terminal import render_terminal
from karat.errors import BadOption, BadRun
from karat.formats import OUTPUT_FORMAT
from karat.journal import RunFolder


def compare_or_rank(
    texts: Sequence[str], metric: str | None, shown: Shown, *, results: Path, output: Output
) -> Exit:
    """Prints the comparison of the two `RUN[:CONDITION]`, or the ranking of one, or of three and
    more.

    Raises BadOption, BadRun.
    """
    if len(texts) != 2:
        sides = []
        run = None
        with aside():
            for text in texts:
                run, condition = _split(text, results=results, otherwise=run)
                summary = api.summarize(run, scorings=shown.scorings, **shown.asked)
                sides.append((summary, condition))

            ranking = leaderboard(sides, metric=metric)

        text = render_terminal(leaderboard_document(ranking))
        output.result(text, {"format": OUTPUT_FORMAT, **msgspec.to_builtins(ranking)})
        return Exit.DONE

    if metric is not None:
        raise BadOption(
            "--metric", "is for three or more conditions; two are compared on every metric"
        )

    first, second = texts
    run_a, condition_a = _split(first, results=results)
    run_b, condition_b = _split(second, results=results, otherwise=run_a)
    with aside():
        comparison = compare(
            run_a,
            run_b,
            condition_a=condition_a,
            condition_b=condition_b,
            scorings=shown.scorings,
            **shown.asked,
        )

    output.result(str(comparison), comparison.to_builtins())
    return Exit.DONE


def _split(
    text: str, *, results: Path, otherwise: RunFolder | None = None
) -> tuple[RunFolder, str | None]:
    """The run of `RUN:CONDITION`, and the condition if one is named; either may itself contain a
    colon.

    `otherwise` is the run if the text begins with a colon. Raises BadRun, BadOption.
    """
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
