"""Pieces of Vega-Lite that several charts are made of.

Field names and titles of axes are karat's own, always: Vega-Lite writes both into expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "ROW",
    "WIDTH",
    "beside",
    "colored",
    "facets",
    "filtered",
    "lines",
    "named",
    "number",
    "points",
    "reference",
    "tooltip",
    "whole",
]

WIDTH = 460  # pixels of a plot
ROW = 22  # pixels of a line of names
FEW = 12  # whole numbers that each have a tick
Piece = dict[str, Any]


def number(
    field: str, title: str, *, domain: Sequence[float] | None = None, percent: bool = False, zero: bool = False
) -> Piece:
    """A field on an axis of numbers. `domain`: from where to where, when that is known beforehand."""
    scale: Piece = {"zero": zero} if domain is None else {"domain": list(domain), "nice": False}
    axis: Piece = {"tickCount": 6, **({"format": ".0%"} if percent else {})}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def whole(field: str, title: str, among: Iterable[int]) -> Piece:
    """A field that counts something, on an axis of whole numbers: those that there are, where they are few.

    Left to itself a wide axis of few numbers has ticks between them, and each is written as a whole one.
    """
    there = sorted(set(among))
    ticks: Piece = {"values": there} if len(there) <= FEW else {"tickMinStep": 1}
    axis = {**ticks, "format": "d", "grid": False}
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, "nice": False, "padding": 12},
        "axis": axis,
    }


def named(field: str, names: Sequence[str], *, title: str | None = None) -> Piece:
    """A field of names on an axis, in this order.

    The order is the scale's domain: a `sort` list would be compiled into an expression.
    """
    return {
        "field": field,
        "type": "nominal",
        "title": title,
        "sort": None,
        "scale": {"domain": list(names)},
        "axis": {"ticks": False, "domain": False},
    }


def colored(field: str, names: Sequence[str], *, title: str | None = None, legend: bool = True) -> Piece:
    """A field of names as colours."""
    shown: Piece | None = {"orient": "top", "columns": 3, "title": title} if legend else None
    return {"field": field, "type": "nominal", "sort": None, "scale": {"domain": list(names)}, "legend": shown}


def beside(field: str, places: int, *, room: float = 1.0) -> tuple[Piece, Piece]:
    """Marks of one line a little apart, so that equal ones do not hide each other: (offset, colour).

    Each row has its `place`, from 0. More `room`: nearer together. The colours are ordered by
    place, too: given a domain of names beside an offset, Vega-Lite would compile them into an
    expression.
    """
    offset = {"field": "place", "type": "ordinal", "scale": {"domain": list(range(places)), "padding": room}}
    legend = {"orient": "top", "columns": 3, "title": None}
    order = {"field": "place", "op": "min"}
    return offset, {"field": field, "type": "nominal", "sort": order, "legend": legend}


def tooltip(fields: Mapping[str, str], *, percent: Sequence[str] = ()) -> list[Piece]:
    """What is shown on pointing at a mark: field → heading. Numbers keep four digits."""
    found = []
    for field, title in fields.items():
        number_like = field not in TEXTS
        one: Piece = {"field": field, "type": "quantitative" if number_like else "nominal", "title": title}
        if number_like:
            one["format"] = ".1%" if field in percent else ".4~g"
        found.append(one)
    return found


TEXTS = frozenset(
    {"condition", "metric", "pair", "question", "score", "reading", "label", "feature", "finding", "test", "side",
     "study", "note", "group", "words"}
)  # fmt: skip


def filtered(field: str) -> list[Piece]:
    """Only rows in which the field is known. Null intervals are then left out, not drawn at 0."""
    return [{"filter": {"field": field, "valid": True}}]


def points(x: Piece, y: Piece, color: Piece | None, told: list[Piece]) -> list[Piece]:
    """Points with their intervals, from `low` to `high`: two layers."""
    tinted: Piece = {"color": color} if color is not None else {}
    spans: Piece = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **tinted, "tooltip": told}
    shaped: Piece = {"shape": {**color, "legend": None}} if color is not None else {}
    marks: Piece = {"x": x, "y": y, **tinted, **shaped, "tooltip": told}
    return [
        {"transform": filtered("low"), "mark": {"type": "rule"}, "encoding": spans},
        {"transform": filtered(x["field"]), "mark": {"type": "point"}, "encoding": marks},
    ]


def lines(x: Piece, y: Piece, color: Piece, told: list[Piece]) -> list[Piece]:
    """Lines with points, and bands from `low` to `high`: three layers. Dashes and shapes tell lines apart, too."""
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": color}
    # The same legend everywhere: one `null` would take it from all.
    line = {"x": x, "y": y, "color": color, "strokeDash": {**color}}
    point = {"x": x, "y": y, "color": color, "shape": {**color}, "tooltip": told}
    return [
        {"transform": filtered("low"), "mark": {"type": "area", "opacity": 0.14, "clip": True}, "encoding": band},
        {"transform": filtered(y["field"]), "mark": {"type": "line"}, "encoding": line},
        {"transform": filtered(y["field"]), "mark": {"type": "point"}, "encoding": point},
    ]


def reference(x: float | None = None, y: float | None = None) -> Piece:
    """A dashed line at a value that means something, such as no difference."""
    encoding = {axis: {"datum": value} for axis, value in (("x", x), ("y", y)) if value is not None}
    return {"mark": {"type": "rule", "style": "reference"}, "encoding": encoding}


def facets(values: list[Piece], layers: list[Piece], *, field: str, height: int) -> Piece:
    """One panel below the other, each with its name on top; `<field>_order` is their order."""
    panels = {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": {"field": f"{field}_order", "op": "min"},
        "header": {"labelAngle": 0, "labelOrient": "top", "labelAnchor": "start", "labelAlign": "left"},
    }
    return {
        "data": {"values": values},
        "facet": {"row": panels},
        "spec": {"width": WIDTH, "height": height, "layer": layers},
        "spacing": 14,
    }
