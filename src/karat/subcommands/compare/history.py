"""`karat compare --history`: one metric over the runs of an experiment."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("compare --history")
@click.argument("folder", metavar="[FOLDER]", type=options.PATH, required=False)
@click.option("--name", metavar="NAME", help="The experiment; default: that of the newest run.")
@click.option("--metric", metavar="NAME", help="The metric; default: the first of the newest run.")
@click.option("--condition", metavar="NAME", help="Only this condition.")
@click.option("--chart", type=options.FILE, metavar="FILE", help="Draw it, as SVG.")
@options.results
@options.output()
def command(
    folder: Path | None,
    name: str | None,
    metric: str | None,
    condition: str | None,
    chart: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Follow a metric over the runs of one experiment.

    The oldest comes first. Includes every run with the same name and dataset content as the newest
    run in FOLDER (default: the folder of results). Says when the metric changed, at an error rate
    of 5 %, and raises an alarm if the newest runs have drifted away from the earlier ones (false
    alarms: 4 % of series of 100 equal runs).
    """
    import msgspec

    from karat import api
    from karat.analysis.history import history
    from karat.document.charts import svg
    from karat.document.followed import history_chart, history_document
    from karat.document.render.terminal import render_terminal
    from karat.errors import BadOption, BadRun
    from karat.exports import save
    from karat.formats import OUTPUT_FORMAT

    if folder is not None and not folder.is_dir():
        raise BadOption("FOLDER", f"{folder} is not a folder")
    place = folder or results
    summaries = []
    for path in api.folders(place) if place.is_dir() else ():
        try:
            run = api.open(path)
            if run.info.shard is None:  # else a part of a run
                summaries.append(api.summarize(run))
        except BadRun as error:  # one run that cannot be read hides no other
            output.complain(f"left out: {error}")

    timeline = history(summaries, name=name, metric=metric, condition=condition)
    if chart is not None:
        save({chart.name: svg(history_chart(timeline))}, chart, option="--chart")
    text = render_terminal(history_document(timeline))
    output.result(text, {"format": OUTPUT_FORMAT, **msgspec.to_builtins(timeline)})
    return Exit.DONE
