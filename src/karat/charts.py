"""Charts, under the name that guides document; they are made in `karat.document.charts`."""

from __future__ import annotations

from karat.blocks import Chart
from karat.document.charts import charts, png, svg

__all__ = ["Chart", "charts", "png", "svg"]
