"""`karat label --sample`: draws answers for people to score."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption


@click.command("label --sample")
@options.run_argument
@click.option(
    "--sample",
    "size",
    type=click.IntRange(min=1, max=100_000),
    required=True,
    metavar="N",
    help="Draw N answers; a few more if a stratum would have fewer than 4.",
)
@click.option(
    "--metric",
    multiple=True,
    metavar="NAME",
    help="Ask for scores of this metric; default: all of the judge's. The first one's scores make "
    "the strata. Repeatable.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Another seed draws other answers.",
)
@options.out
@options.results
@options.output()
def command(
    run: str,
    size: int,
    metric: tuple[str, ...],
    seed: int,
    out: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Draw answers of RUN for people to score, as a CSV sheet.

    Answers are drawn in proportion to how often the judge gave each score under each condition. The
    sheet lists them in random order, without their condition or the judge's scores. The draw is
    saved in the run folder; pass the filled-in sheet to `karat label RUN SHEET`.
    """
    from karat import api
    from karat.analysis.calibration import draw_answers, metrics_for_people
    from karat.analysis.label_sheet import scale_of, write_sheet
    from karat.cli.output import typed
    from karat.exports import save
    from karat.formats import OUTPUT_FORMAT, plural
    from karat.installation import shown_path
    from karat.journal.calibration import add_calibration, read_calibrations

    if out is not None and out.exists():  # it may hold people's scores
        raise BadOption("--out", f"{out} exists: name another file, or remove it")
    folder = api.open(run, results=results)
    summary = api.summarize(folder)
    chosen = metrics_for_people(summary, metric)
    draw = draw_answers(folder, summary, size, metric=chosen[0], seed=seed)
    sheet = write_sheet(folder, summary, draw, chosen)
    if draw.id not in read_calibrations(folder).draws:
        add_calibration(folder, [draw])
    if out is not None:
        save({out.name: sheet}, out)
    elif not output.as_json:
        output.file(sheet)

    answers = sum(len(stratum.trials) for stratum in draw.strata)
    drawn = (
        f"{plural(len(draw.drawn), 'answer')} of {answers} drawn from "
        f"{plural(len(draw.strata), 'stratum', 'strata')}"
    )
    place = out or Path("SHEET.csv")
    output.say(
        f"draw {draw.id}: {drawn}",
        *(f"  {info.key}: {scale_of(info)}" for info in chosen),
        f"Fill in the columns, then: {typed('label', shown_path(folder.path), str(place))}",
    )
    if output.as_json:
        counts = {
            "draw": draw.id,
            "drawn": len(draw.drawn),
            "answers": answers,
            "strata": len(draw.strata),
        }
        if out is not None:
            shown = {"sheet": str(out)}
        else:
            shown = {"text": sheet}

        output.result(
            "",
            {"format": OUTPUT_FORMAT, **counts, "metrics": [info.key for info in chosen], **shown},
        )

    return Exit.DONE
