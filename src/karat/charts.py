"""Charts under the name that guides documented; they are in `karat.document.charts`."""

from karat.document.charts import Chart, charts, png, study_charts, svg, themed

__all__ = ["Chart", "charts", "png", "study_charts", "svg", "themed"]
