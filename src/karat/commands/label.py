"""`karat label`: compares the judge with people, and corrects its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption

PLACE = ("decide", 30)  # in `karat --help`

if TYPE_CHECKING:
    from karat.analysis import Summary
    from karat.journal import RunFolder


@click.command("label", cls=WithFlags)
@options.run_argument
@click.argument("labels", metavar="[LABELS]", type=options.PATH, required=False)
@click.option(
    "--who", metavar="NAME", help="Who filled in LABELS; default: the name of your account."
)
@click.option("--draw", metavar="ID", help="Use this draw; default: the newest that has labels.")
@click.option(
    "--target",
    type=click.Choice(["questions", "answers"]),
    default="questions",
    show_default=True,
    help="Whether intervals hold for questions like these, or for these answers alone.",
)
@click.option(
    "--width",
    type=click.FloatRange(min=0, min_open=True),
    metavar="W",
    help="Also show how many labels an interval of ±W needs, e.g. 0.05 for a share.",
)
@click.option("--markdown", type=options.FILE, metavar="FILE", help="Write the result as Markdown.")
@options.results
@options.output()
def command(  # noqa: PLR0913 - an argument for each option
    run: str,
    labels: Path | None,
    who: str | None,
    draw: str | None,
    target: str,
    width: float | None,
    markdown: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Compare the judge of RUN with people, and correct for it.

    Corrects the means and differences of a run. LABELS is a sheet from `karat label RUN --sample N`
    with its scores filled in. Each person fills in their own sheet; a sheet may be passed more than
    once. Scores are saved in the run folder; without LABELS the saved ones are used. With
    --corrected, `karat report` shows the corrected numbers and `karat gate` decides on them.
    """
    import msgspec

    from karat import api
    from karat.analysis.calibration import calibrated
    from karat.document.calibrated import calibrated_document
    from karat.document.render.markdown import render_markdown
    from karat.document.render.terminal import render_terminal
    from karat.exports import save
    from karat.formats import OUTPUT_FORMAT

    folder = api.open(run, results=results, to_write=True)
    summary = api.summarize(folder)
    if labels is not None:
        output.say(*_keep(folder, summary, labels, who))
    calibration = calibrated(
        folder,
        summary,
        draw=draw,
        target="answers" if target == "answers" else "questions",
        half_width=width,
    )
    document = calibrated_document(
        calibration, name=f"{summary.name} {summary.run}: judge and people"
    )
    if markdown is not None:
        save({markdown.name: render_markdown(document)}, markdown, option="--markdown")
    text = render_terminal(document)
    output.result(
        text, {"format": OUTPUT_FORMAT, "run": summary.run, **msgspec.to_builtins(calibration)}
    )
    return Exit.DONE


def _keep(run: RunFolder, summary: Summary, labels: Path, who: str | None) -> list[str]:
    """Saves the new scores of a sheet, and returns what was saved, in words."""
    import getpass
    from contextlib import suppress

    from karat.analysis.label_sheet import read_sheet
    from karat.formats import clean, plural
    from karat.journal.calibration import add_calibration, read_calibrations

    if who is None:
        with suppress(OSError, KeyError):  # an account without a name
            who = getpass.getuser()
    name = " ".join(clean(who or "").split())[:60].strip()
    if not name:
        raise BadOption("--who", "say who filled in the sheet")
    kept = read_calibrations(run)
    scores, left_out = read_sheet(labels, kept, summary.metrics, who=name)
    before = [kept.scores.get(row.draw, {}).get(row.trial, {}).get(name, {}) for row in scores]
    new = [row for row, old in zip(scores, before, strict=True) if {**old, **row.scores} != old]
    changed = sum(
        bool(old) and {**row.scores, **old} != {**old, **row.scores}
        for row, old in zip(scores, before, strict=True)
    )
    if new:
        add_calibration(run, new)
    lines = [
        (
            f"{plural(len(new), 'labelled answer')} by '{name}' saved, {len(scores) - len(new)} "
            f"saved before"
        ),
        *left_out,
    ]
    if changed:
        lines.append(
            f"warning: {plural(changed, 'answer')} had other scores by '{name}', which these "
            f"replace; another person's sheet needs --who NAME"
        )

    return lines
