"""Charts, under the name that guides document; most of them are made in `karat.document.charts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.document.charts import Chart, charts, png, svg

if TYPE_CHECKING:
    from karat.replication import Agreement, Uncertainty

__all__ = ["Chart", "charts", "png", "study_charts", "svg"]


def study_charts(agreement: Agreement, sure: Uncertainty, *, condition: str = "agent") -> tuple[Chart, ...]:
    """Of a table of study tests: posteriors of people and agent, effects against effects, a forest of differences."""
    from karat.kinds.study.charts import study_charts as charts_of_tests

    return charts_of_tests(agreement, sure, condition=condition)
