"""Charts, under the name that guides document; most of them are made in `karat.document.charts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat import plugins
from karat.blocks import Chart
from karat.document.charts import charts, png, svg

if TYPE_CHECKING:
    from karat.replication import Agreement, Uncertainty

__all__ = ["Chart", "charts", "png", "study_charts", "svg"]


def study_charts(agreement: Agreement, sure: Uncertainty, *, condition: str = "agent") -> tuple[Chart, ...]:
    """For a table of study tests: posteriors of people and agent, effects against effects, a forest of differences."""
    charts_of_tests = plugins.load("karat.kinds.study.charts:study_charts")  # BadPlugin where the kind is not installed
    drawn: tuple[Chart, ...] = charts_of_tests(agreement, sure, condition=condition)
    return drawn
