"""The work of `karat compare --history`: follows one metric over runs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from karat import api
from karat.analysis.history import history
from karat.cli.ending import Exit
from karat.cli.options import Following
from karat.cli.output import Output
from karat.document.charts import svg
from karat.document.followed import history_chart, history_document
from karat.document.render.terminal import render_terminal
from karat.errors import BadOption, BadRun
from karat.exports import save
from karat.formats import OUTPUT_FORMAT


def show_history(folder: Path | None, asked: Following, *, results: Path, output: Output) -> Exit:
    """Prints the metric of each run below the folder, the oldest first. Raises BadOption."""
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

    timeline = history(summaries, name=asked.name, metric=asked.metric, condition=asked.condition)
    chart = asked.chart
    if chart is not None:
        save({chart.name: svg(history_chart(timeline))}, chart, option="--chart")
    text = render_terminal(history_document(timeline))
    output.result(text, {"format": OUTPUT_FORMAT, **msgspec.to_builtins(timeline)})
    return Exit.DONE
