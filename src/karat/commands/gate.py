"""`karat gate`: thresholds on what a run measured."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("decide", 20)  # in `karat --help`

_THRESHOLD = "[CONDITION.]METRIC=VALUE"


@click.command("gate")
@options.run_argument
@click.option(
    "--min",
    "least",
    multiple=True,
    metavar=_THRESHOLD,
    help="The metric is at least this. Repeatable.",
)
@click.option(
    "--max",
    "most",
    multiple=True,
    metavar=_THRESHOLD,
    help=(
        "The metric is at most this; also cost_usd (of the whole run) and failed (share of "
        "trials). Repeatable."
    ),
)
@click.option(
    "--max-drop",
    "drop",
    multiple=True,
    metavar=_THRESHOLD,
    help="The metric is worse than in --baseline by at most this. Repeatable.",
)
@click.option(
    "--baseline",
    metavar="RUN",
    help="The run to compare with, or latest:NAME for the newest "
    "other finished run of that experiment with the same dataset, if its gate did not fail.",
)
@click.option(
    "--undecided",
    type=click.Choice(["fail", "warn"]),
    default="fail",
    show_default=True,
    help="What an undecided gate ends with: exit code 4, or 0.",
)
@click.option(
    "--corrected", is_flag=True, help="Decide on means as people would score (`karat label`)."
)
@click.option(
    "--junit",
    type=options.FILE,
    metavar="FILE",
    help="Write JUnit XML: a test case for each threshold.",
)
@click.option(
    "--markdown",
    type=options.FILE,
    metavar="FILE",
    help="Write the result as Markdown, for a pull request.",
)
@click.option(
    "--github",
    is_flag=True,
    help="Print GitHub workflow annotations for thresholds that did not pass.",
)
@options.results
@options.output()
def command(  # noqa: PLR0913 - an argument for each option
    run: str,
    least: tuple[str, ...],
    most: tuple[str, ...],
    drop: tuple[str, ...],
    baseline: str | None,
    undecided: str,
    corrected: bool,
    junit: Path | None,
    markdown: Path | None,
    github: bool,
    results: Path,
    output: Output,
) -> Exit:
    """Decide whether a run meets its thresholds.

    The outcome is passed, failed or undecided. Passed means that the lower 95 % bound (for --max:
    the upper) meets the threshold, failed that the other bound misses it. In between, the run has
    too few questions to decide. Thresholds in the run's experiment file (`gate:`) count too, unless
    an option of the same name replaces them. Exit code 0: passed, 1: failed, 4: undecided. The
    outcome is kept in the run folder: a run whose gate failed, or left a drop undecided, is no
    baseline for `latest`.
    """
    import msgspec

    from karat import api
    from karat.analysis.thresholds import Bound, parse_threshold
    from karat.document import gated
    from karat.document.render.markdown import render_markdown
    from karat.document.render.terminal import render_terminal
    from karat.exports import save
    from karat.formats import OUTPUT_FORMAT

    given: list[tuple[Bound, tuple[str, ...]]] = [("min", least), ("max", most), ("max_drop", drop)]
    low, high, drops = (
        {rule.name: rule.value for rule in (parse_threshold(text, bound) for text in texts)}
        for bound, texts in given
    )
    decided = api.gate(
        run,
        min=low,
        max=high,
        max_drop=drops,
        baseline=baseline,
        results=results,
        corrected=corrected,
    )
    document = gated.gate_document(decided)
    if junit is not None:
        save({junit.name: gated.junit(decided)}, junit, option="--junit")
    if markdown is not None:
        save({markdown.name: render_markdown(document)}, markdown, option="--markdown")
    text = render_terminal(document)
    if github:
        text = _annotated(gated.github_lines(decided), text, output)
    output.result(text, {"format": OUTPUT_FORMAT, **msgspec.to_builtins(decided)})
    if undecided == "warn" and decided.verdict == "undecided":
        return Exit.DONE
    return {"passed": Exit.DONE, "failed": Exit.GATE_MISSED, "undecided": Exit.GATE_UNDECIDED}[
        decided.verdict
    ]


def _annotated(lines: list[str], text: str, output: Output) -> str:
    """The annotations, then the text, in which no name from the run can act as a workflow
    command.
    """
    import secrets

    if output.as_json:
        output.complain(*lines)
        return text
    token = secrets.token_hex(16)
    return "\n".join([*lines, f"::stop-commands::{token}", text.rstrip("\n"), f"::{token}::", ""])
