"""`karat plan`: how large the next experiment must be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption

PLACE = ("decide", 10)  # in `karat --help`

if TYPE_CHECKING:
    from karat.analysis.planning import Pilot

_SHARE = click.FloatRange(min=0, max=1, min_open=True, max_open=True)


@click.command("plan")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--metric", metavar="NAME", help="Plan for this metric; default: the run's first.")
@click.option(
    "--pair",
    nargs=2,
    metavar="A B",
    help="Compare these conditions; default: the first comparison.",
)
@click.option(
    "--difference",
    type=click.FloatRange(min=0, min_open=True),
    metavar="D",
    help=(
        "Also show how many questions it takes to show a difference of D, in points of the metric "
        "(0.05 for a share)."
    ),
)
@click.option(
    "--power",
    type=_SHARE,
    default=0.8,
    show_default=True,
    metavar="P",
    help="Share of runs that show it.",
)
@click.option(
    "--alpha", type=_SHARE, default=0.05, show_default=True, metavar="P", help="Level of the test."
)
@click.option(
    "--questions",
    type=click.IntRange(min=2),
    multiple=True,
    metavar="N",
    help=(
        "Number of questions to show; default: the run's, and half, twice and four times as many. "
        "Repeatable."
    ),
)
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="K",
    help=(
        "Repetitions to show; default: 1, 2, 3, 5 and 8, or 1 if the run's do not vary. Repeatable."
    ),
)
@click.option(
    "--sd-questions",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SD",
    help="Without RUN: standard deviation of the true difference over questions.",
)
@click.option(
    "--sd-answers",
    type=click.FloatRange(min=0),
    metavar="SD",
    help="Without RUN: standard deviation between answers to the same question.",
)
@click.option(
    "--cost",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Without RUN: price of one judged answer.",
)
@click.option("--chart", type=options.FILE, metavar="FILE", help="Draw it, as SVG.")
@options.results
@options.output()
def command(  # noqa: PLR0913 - an argument for each option
    run: str | None,
    metric: str | None,
    pair: tuple[str, str] | None,
    difference: float | None,
    power: float,
    alpha: float,
    questions: tuple[int, ...],
    repetitions: tuple[int, ...],
    sd_questions: float | None,
    sd_answers: float | None,
    cost: float | None,
    chart: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Show how large an experiment must be, and its cost.

    Plans from a finished RUN, whose scores show how much questions and answers vary, or from
    assumed deviations: `karat plan --sd-questions 0.8 --sd-answers 0.5 --difference 0.2`.
    """
    import msgspec

    from karat.analysis.planning import Pilot, plan
    from karat.document.charts import svg
    from karat.document.planned import plan_chart, plan_document
    from karat.document.render.terminal import render_terminal
    from karat.exports import save
    from karat.formats import OUTPUT_FORMAT

    assumed = {"--sd-questions": sd_questions, "--sd-answers": sd_answers, "--cost": cost}
    numbers = {"--power": power, "--alpha": alpha, "--difference": difference, **assumed}
    for name, number in numbers.items():
        if number is not None and not math.isfinite(number):
            raise BadOption(name, f"must be a finite number, got {number:g}")
    if power <= alpha:
        raise BadOption("--power", f"must be above --alpha ({alpha:g}), got {power:g}")
    given = [name for name, value in assumed.items() if value is not None]
    if run is None:
        if sd_questions is None:
            raise BadOption(
                "--sd-questions",
                "is required without RUN: how much differences vary between questions",
            )

        if metric or pair:
            raise BadOption("--metric" if metric else "--pair", "needs a RUN")
        within = ((sd_answers or 0.0) ** 2,) * 2
        pilot = Pilot(between=sd_questions**2, within=within, cost_answer=cost, cost_score=0.0)
        title = "Plan from assumed variation"
        percent = False
    else:
        if given:
            raise BadOption(given[0], "is only for a plan without RUN; the run already defines it")
        pilot, title, percent = _from_run(run, metric, pair, results)

    planned = plan(
        pilot,
        delta=difference,
        power=power,
        alpha=alpha,
        questions=questions,
        repetitions=repetitions,
    )
    document = plan_document(planned, title=title, percent=percent)
    if chart is not None:
        save({chart.name: svg(plan_chart(planned, percent=percent))}, chart, option="--chart")
    text = render_terminal(document)
    output.result(text, {"format": OUTPUT_FORMAT, "title": title, **msgspec.to_builtins(planned)})
    return Exit.DONE


def _from_run(
    run: str, metric: str | None, pair: tuple[str, str] | None, results: Path
) -> tuple[Pilot, str, bool]:
    """The pilot data of a comparison, the comparison in words, and whether its metric is a
    share.
    """
    from karat import api
    from karat.analysis.planning import comparison_of, pilot_of

    summary = api.summarize(api.open(run, results=results), pairs="all" if pair else "baseline")
    chosen, info = comparison_of(summary, metric=metric, pair=pair)
    pilot = pilot_of(summary, chosen)
    title = f"{chosen.b} - {chosen.a} on {chosen.metric}"
    if math.isnan(pilot.between):
        why = f"run {summary.run} cannot say how much {title} varies: {pilot.reason}"
        raise BadOption("plan", f"{why}; leave out RUN and assume a value with --sd-questions")
    return pilot, title, info.percent
