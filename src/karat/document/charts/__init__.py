"""Charts: Vega-Lite specs of what a summary says, for the page, for files, for a notebook.

`charts(summary)` gives those of a run, `study_charts` those of the agreement of agents and
people; `png` and `svg` draw them (extra `plots`), without a network. A chart only gives
numbers a shape; it computes none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.document.charts.chart import Chart
from karat.document.charts.theme import themed

if TYPE_CHECKING:
    from karat.analysis import Summary
    from karat.document.charts.images import DRAWN, png, svg
    from karat.document.charts.studies import study_charts

__all__ = ["DRAWN", "Chart", "charts", "png", "study_charts", "svg", "themed"]

_HOME = {"DRAWN": "images", "png": "images", "svg": "images", "study_charts": "studies"}


def charts(summary: Summary) -> tuple[Chart, ...]:
    """Every chart of a run, in the order in which one reads them; none where nothing was scored.

    Means by condition, differences, where the scores lie, the questions on which conditions
    differ most; of conversations those of turns, readings, diagnoses, propagation and cost; of human
    studies those of agreement, effects and participants.
    """
    from karat.document.charts.runs import run_charts

    found = run_charts(summary)
    if getattr(summary, "conversation", None) is not None:
        from karat.document.charts.conversations import conversation_charts

        found = (*conversation_charts(summary), *found)
    if summary.study is not None:
        from karat.document.charts.participation import participation_charts

        found = participation_charts(summary.study)
    return _apart(found)


def _apart(found: tuple[Chart, ...]) -> tuple[Chart, ...]:
    """The same with names of their own, where two metrics are called alike."""
    from dataclasses import replace

    taken: set[str] = set()
    named = []
    for chart in found:
        name, again = chart.name, 1
        while name in taken:
            again += 1
            name = f"{chart.name}-{again}"
        taken.add(name)
        named.append(replace(chart, name=name))
    return tuple(named)


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
