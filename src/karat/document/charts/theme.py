"""Colours and fonts, light and dark: the only place that knows them.

Categories are those of Okabe & Ito (2008), which people with any of the common colour-blindnesses
tell apart, in shades that have a contrast of 3 to 1 or more against the background. No chart
tells by colour alone: there are names, shapes or dashes beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.document.charts.chart import Chart

__all__ = ["DARK", "LIGHT", "config", "themed"]

FONT = "Liberation Sans, DejaVu Sans, Arial, Helvetica, sans-serif"
# One fewer than colours: as both begin anew, no two of 56 conditions have the same mark.
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

LIGHT = {
    "background": "#ffffff",
    "text": "#1b1b1b",
    "quiet": "#5c5c5c",
    "grid": "#e3e3e3",
    "mark": "#0072b2",
    # blue, vermillion, bluish green, reddish purple, black, orange, sky blue, yellow: the light ones darkened
    "categories": ["#0072b2", "#d55e00", "#00875f", "#b65f90", "#1b1b1b", "#a87400", "#2f87b8", "#7d7400"],
    "steps": ["#d9e6f2", "#a9cbe4", "#6aa5cf", "#2d7db3", "#08467a"],
}
DARK = {
    "background": "#16181d",
    "text": "#f0f0f0",
    "quiet": "#b4b4b4",
    "grid": "#343840",
    "mark": "#56b4e9",
    "categories": ["#56b4e9", "#f07f2e", "#1fbf92", "#e19cc2", "#f0f0f0", "#e69f00", "#3f9bd8", "#f0e442"],
    "steps": ["#23415c", "#2f668f", "#4a90c2", "#86bbe0", "#d6e9f8"],
}


def themed(chart: Chart, *, dark: bool = False) -> dict[str, Any]:
    """The spec with everything that drawing it needs."""
    return {**chart.spec, "config": config(dark=dark)}


def config(*, dark: bool = False, ink: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A Vega-Lite config: the look of every chart. `ink`: other colours, under the names of `LIGHT`."""
    ink = ink or (DARK if dark else LIGHT)
    named = {"titleColor": ink["text"], "labelColor": ink["text"], "titleFontSize": 12, "labelFontSize": 11}
    return {
        "background": ink["background"],
        "font": FONT,
        "padding": 12,
        "view": {"stroke": None},
        "title": {"color": ink["text"], "anchor": "start", "fontSize": 14, "frame": "bounds", "offset": 12},
        "axis": {**named, "gridColor": ink["grid"], "domainColor": ink["quiet"], "tickColor": ink["quiet"],
                 "labelLimit": 320, "titleFontWeight": "normal"},
        "axisY": {"grid": False, "labelPadding": 8},  # a mark at the end of the scale leaves the names alone
        "legend": {**named, "labelLimit": 320, "symbolOpacity": 1, "symbolStrokeWidth": 0, "titleFontWeight": "normal"},
        "header": {**named, "labelFontSize": 12, "labelFontWeight": "bold", "labelLimit": 420, "labelPadding": 2},
        "range": {"category": ink["categories"], "ordinal": ink["steps"], "ramp": ink["steps"], "symbol": list(SHAPES)},
        "mark": {"color": ink["mark"]},
        "bar": {"color": ink["mark"]},
        "point": {"filled": True, "size": 60, "opacity": 1},
        "line": {"strokeWidth": 2},
        "rule": {"strokeWidth": 2, "color": ink["mark"]},
        "text": {"color": ink["text"], "fontSize": 11},
        "style": {
            "reference": {"color": ink["quiet"], "strokeDash": [4, 3], "strokeWidth": 1.5},
            "fit": {"color": ink["text"], "strokeWidth": 2},
            "band": {"color": ink["quiet"], "opacity": 0.2},
            "apart": {"color": ink["quiet"], "strokeWidth": 1.5},
        },
    }  # fmt: skip
