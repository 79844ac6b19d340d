"""The work of `karat plan`: plans from a run, or from assumed deviations."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from karat import api
from karat.analysis.planning import Pilot, comparison_of, pilot_of, plan
from karat.cli.ending import Exit
from karat.cli.options import Planning
from karat.cli.output import Output
from karat.document.charts import svg
from karat.document.planned import plan_chart, plan_document
from karat.document.render.terminal import render_terminal
from karat.errors import BadOption
from karat.exports import save
from karat.formats import OUTPUT_FORMAT


def show_plan(run: str | None, asked: Planning, *, results: Path, output: Output) -> Exit:
    """Prints the plan. Raises BadOption, BadRun."""
    assumed = {
        "--sd-questions": asked.sd_questions,
        "--sd-answers": asked.sd_answers,
        "--cost": asked.cost,
    }
    power, alpha = asked.power, asked.alpha
    numbers = {"--power": power, "--alpha": alpha, "--difference": asked.difference, **assumed}
    for name, number in numbers.items():
        if number is not None and not math.isfinite(number):
            raise BadOption(name, f"must be a finite number, got {number:g}")

    if power <= alpha:
        raise BadOption("--power", f"must be above --alpha ({alpha:g}), got {power:g}")
    given = [name for name, value in assumed.items() if value is not None]
    if run is None:
        # Pilot data as assumed, a title, and that no metric is a share
        if asked.sd_questions is None:
            raise BadOption(
                "--sd-questions",
                "is required without RUN: how much differences vary between questions",
            )

        if asked.metric or asked.pair:
            raise BadOption("--metric" if asked.metric else "--pair", "needs a RUN")
        within = ((asked.sd_answers or 0.0) ** 2,) * 2
        between = asked.sd_questions**2
        pilot = Pilot(between=between, within=within, cost_answer=asked.cost, cost_score=0.0)
        title = "Plan from assumed variation"
        percent = False
        largest = math.inf
    elif given:
        raise BadOption(given[0], "is only for a plan without RUN; the run already defines it")
    else:
        # The pilot data of a comparison, the comparison in words, and whether its metric is a
        # share
        opened = api.open(run, results=results)
        summary = api.summarize(opened, pairs="all" if asked.pair else "baseline")
        chosen, info = comparison_of(summary, metric=asked.metric, pair=asked.pair)
        pilot = pilot_of(summary, chosen)
        title = f"{chosen.b} - {chosen.a} on {chosen.metric}"
        if math.isnan(pilot.between):
            why = f"run {summary.run} cannot say how much {title} varies: {pilot.reason}"
            raise BadOption("plan", f"{why}; leave out RUN and assume a value with --sd-questions")

        percent = info.percent
        largest = info.width

    planned = plan(
        pilot,
        delta=asked.difference,
        power=power,
        alpha=alpha,
        questions=asked.questions,
        repetitions=asked.repetitions,
        largest=largest,
    )
    document = plan_document(planned, title=title, percent=percent)
    chart = asked.chart
    if chart is not None:
        save({chart.name: svg(plan_chart(planned, percent=percent))}, chart, option="--chart")
    text = render_terminal(document)
    output.result(text, {"format": OUTPUT_FORMAT, "title": title, **msgspec.to_builtins(planned)})
    return Exit.DONE
