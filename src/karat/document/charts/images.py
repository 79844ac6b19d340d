"""Charts as PNG and SVG, drawn on this machine by vl-convert: no browser, no network."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

from karat.document.charts.chart import Chart
from karat.document.charts.theme import themed
from karat.errors import MissingExtra

__all__ = ["DRAWN", "SCHEMA", "altair_chart", "bundle", "png", "svg"]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""What the specs keep to. A name, which editors read; nothing is fetched from there."""

DRAWN = ("png", "svg")
SCALE = 2.0  # pixels of a PNG for one of the chart: sharp on paper and on dense screens


def png(chart: Chart, *, dark: bool = False, scale: float = SCALE) -> bytes:
    """The chart as a PNG. Raises MissingExtra without the extra `plots`."""
    found: bytes = _drawer("vegalite_to_png")(themed(chart, dark=dark), scale=scale, allowed_base_urls=[])
    return found


def svg(chart: Chart, *, dark: bool = False) -> str:
    """The chart as SVG text, named and described for screen readers. Raises MissingExtra without `plots`."""
    found: str = _drawer("vegalite_to_svg")(themed(chart, dark=dark), allowed_base_urls=[])
    numbers = {number: str(at) for at, number in enumerate(dict.fromkeys(_CLIPPED.findall(found)))}
    return _named(_CLIPPED.sub(lambda match: match[0].replace(match[1], numbers[match[1]]), found), chart)


def _named(drawing: str, chart: Chart) -> str:
    """Vega names a chart only in a browser; a file has to do it itself. Every tag goes first in its element."""
    head, end, rest = drawing.partition(">")
    told = f"<title>{escape(chart.title)}</title><desc>{escape(chart.description)}</desc>"
    return f'{head} role="img"{end}{told}{rest}'


# Counted on from drawing to drawing: the same chart would be another file each time.
_CLIPPED = re.compile(r'(?:(?<= id="clip)|(?<="url\(#clip))(\d+)(?=["\)])')


def _drawer(name: str) -> Callable[..., Any]:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra("plots", "drawing a chart as PNG or SVG") from error
    drawer: Callable[..., Any] = getattr(vl_convert, name)
    return drawer


def bundle(chart: Chart) -> dict[str, Any]:
    """The chart in every form that a notebook may show; what is foreign in the table is escaped."""
    spec = themed(chart)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in chart.rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in chart.columns)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return {
        **{f"application/vnd.vegalite.v{n}+json": {"$schema": SCHEMA.replace("v6", f"v{n}"), **spec} for n in (5, 6)},
        "text/html": f"<div><p><strong>{escape(chart.title)}</strong></p>{table}</div>",
        "text/plain": chart.title,
    }


def altair_chart(chart: Chart, *, dark: bool = False) -> Any:
    """The chart as one of altair's. Raises MissingExtra without it."""
    try:
        import altair
    except ImportError as error:
        raise MissingExtra("plots", "a chart of altair") from error
    return altair.Chart.from_dict(themed(chart, dark=dark))
