"""A chart as SVG: dots with intervals, bars and lines, drawn here without a library, a script or a
network.

Every text is escaped. Colours are those of an ink: variables on a page, which follows light and
dark, or fixed ones in a file. No chart relies on colour alone: there are also names, shapes or
dashes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from karat import formats
from karat.blocks import Axis, Chart, Curve, Line, Plane, Point, Rows
from karat.document.ink import INK, Ink

_PLOT = 460  # pixels of a plot
_ROW = 22  # of a line
_LETTER = 6.7  # of a column of text
_PAD = 12
_SMALL = 11  # pixels of the texts of axes, which are quieter
_LETTER_OF_TITLE = 8.0
_TICKS = 5
_FEW = 12  # whole numbers that each have a tick
_FONT = "system-ui, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', Arial, sans-serif"

SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-4.6L4.6 3.6h-9.2z",
    "M0-5L4.4 0 0 5-4.4 0z",
    "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
    "M0 4.6L-4.6-3.6h9.2z",
    "M4.6 0L-3.6 4.6v-9.2z",
)
"""Marks of the categories around (0, 0), one fewer than colours: no two of 56 conditions look the
same.
"""

_DASHES = ("", "6 3", "2 2", "8 3 2 3")


def render_svg(chart: Chart, *, ink: Ink = INK, framed: bool = False) -> str:
    """The drawing as one element.

    `framed`: with its title and a background, for a separate file.
    """
    drawing = _Drawing(chart, ink)
    if framed:
        for line in textwrap.wrap(chart.title.replace(" %", "\u00a0%"), drawing.title_columns) or [
            chart.title
        ]:
            drawing.text(0, drawing.y + 14, line, size=14, bold=True)
            drawing.y += 19

        drawing.y += 8

    drawing.legend()
    for at, panel in enumerate(chart.panels):
        if at + 1 < len(chart.panels):
            after = chart.panels[at + 1]
        else:
            after = None

        if isinstance(panel, Rows):
            drawing.rows(panel, last=not isinstance(after, Rows) or after.axis != panel.axis)
        else:
            drawing.plane(panel)

    return drawing.element(framed=framed)


class _Drawing:
    """The parts of a drawing, and its current vertical position."""

    def __init__(self, chart: Chart, ink: Ink) -> None:
        self.y = 0.0
        self._chart, self._ink = chart, ink
        self._parts: list[str] = []
        lines = [line for panel in chart.panels if isinstance(panel, Rows) for line in panel.lines]
        self._left = max([52.0, *(14 + _LETTER * formats.width(line.name) for line in lines)])
        self._width = (
            self._left
            + _PLOT
            + 18
            + max([0.0, *(_LETTER * formats.width(line.note) for line in lines)])
        )

    @property
    def title_columns(self) -> int:
        """Columns of a line of the title."""
        return int(self._width / _LETTER_OF_TITLE)

    def element(self, *, framed: bool) -> str:
        pad = _PAD if framed else 0
        width = round(self._width + 2 * pad)
        height = round(self.y + 2 * pad)
        if framed:
            ground = f'<rect width="{width}" height="{height}" fill="{self._ink.background}"/>'
        else:
            ground = ""

        body = "".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
            f'width="{width}" '
            f'height="{height}" font-family="{escape(_FONT)}" font-size="12">'
            f"<title>{escape(self._chart.title)}</title><desc>{escape(self._chart.description)}</desc>"
            f'{ground}<g transform="translate({pad} {pad})">{body}</g></svg>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        size: int = 12,
        bold: bool = False,
    ) -> None:
        quiet = size == _SMALL
        turned = anchor == "turned"
        if quiet:
            fill = self._ink.quiet
        else:
            fill = self._ink.text
        more = ' font-weight="600"' if bold else ""
        if turned:
            more += f' transform="rotate(-90 {_at(x)} {_at(y)})"'
        place = f'x="{_at(x)}" y="{_at(y)}" text-anchor="{"middle" if turned else anchor}"'
        written = escape(formats.clean(text))
        self._parts.append(f'<text {place} font-size="{size}" fill="{fill}"{more}>{written}</text>')

    def path(
        self,
        shape: str,
        color: str,
        *,
        wide: float = 1,
        dash: str = "",
        label: str = "",
    ) -> None:
        self._parts.append(_path(shape, color, wide=wide, dash=dash, label=label))

    def marker(self, x: float, y: float, series: int | None, label: str) -> None:
        self._parts.append(
            f'<path class="mark" d="{SHAPES[(series or 0) % len(SHAPES)]}" '
            f'transform="translate({_at(x)} {_at(y)})" '
            f'fill="{self._color(series)}"><title>{escape(formats.clean(label))}</title></path>'
        )

    def box(self, x: float, y: float, width: float, height: float, color: str, label: str) -> None:
        self._parts.append(
            f'<rect class="mark" x="{_at(x)}" y="{_at(y)}" width="{_at(max(0.0, width))}" '
            f'height="{_at(height)}" '
            f'fill="{color}"><title>{escape(formats.clean(label))}</title></rect>'
        )

    def _color(self, series: int | None) -> str:
        if series is None:
            return self._ink.mark
        if self._chart.ordered:
            steps = self._ink.steps
            last = max(1, len(self._chart.legend) - 1)
            return steps[round(series * (len(steps) - 1) / last)]

        return self._ink.categories[series % len(self._ink.categories)]

    def legend(self) -> None:
        """The names of the series, each with its mark."""
        x = 0.0
        end = self._left + _PLOT
        for series, name in enumerate(self._chart.legend):
            wide = 16 + _LETTER * formats.width(name) + 16
            if x and x + wide > end:
                x = 0.0
                self.y += 20
            if self._chart.ordered:
                self.box(x, self.y + 4, 10, 10, self._color(series), name)
            else:
                self.marker(x + 5, self.y + 9, series, name)

            self.text(x + 16, self.y + 13, name)
            x += wide

        if self._chart.legend:
            self.y += 28

    def rows(self, panel: Rows, *, last: bool) -> None:
        """Names on the left, marks on the right; the axis below the last of the panels that share
        it.
        """
        self._heading(panel.title)
        values = [
            value
            for line in panel.lines
            for mark in line.marks
            for value in (mark.value, mark.low, mark.high, mark.start)
        ]
        scale = _Scale(panel.axis, values, self._left, self._left + _PLOT)
        heights = [max(_ROW, (5 if line.joined else 9) * _lanes(line) + 4) for line in panel.lines]
        bottom = self.y + sum(heights)
        for tick in scale.ticks:
            self.path(f"M{_at(scale(tick))} {_at(self.y)}V{_at(bottom)}", self._ink.grid)
        if panel.axis.zero is not None:
            shape = f"M{_at(scale(panel.axis.zero))} {_at(self.y)}V{_at(bottom)}"
            self.path(shape, self._ink.quiet, wide=1.5, dash="4 3")

        for line, height in zip(panel.lines, heights, strict=True):
            middle = self.y + height / 2
            self.text(self._left - 10, middle + 4, line.name, anchor="end")
            points = [mark for mark in line.marks if mark.start is None]
            if line.joined and points:
                ends = [scale(mark.value) for mark in points]
                self.path(
                    f"M{_at(min(ends))} {_at(middle)}H{_at(max(ends))}", self._ink.quiet, wide=1.5
                )

            lanes = _lanes(line)
            for at, mark in enumerate(points):
                y = middle + (5 if line.joined else 9) * (at - (lanes - 1) / 2)
                label = f"{line.name}: {mark.label}"
                if mark.low is not None and mark.high is not None:
                    shape = f"M{_at(scale(mark.low))} {_at(y)}H{_at(scale(mark.high))}"
                    self.path(shape, self._color(mark.series), wide=2, label=label)

                self.marker(scale(mark.value), y, mark.series, label)

            for mark in line.marks:
                if mark.start is not None:
                    start = scale(mark.start)
                    end = scale(mark.value)
                    self.box(
                        start,
                        middle - 7,
                        end - start,
                        14,
                        self._color(mark.series),
                        f"{line.name}: {mark.label}",
                    )

            if line.tick is not None:
                self.path(f"M{_at(scale(line.tick))} {_at(middle - 7)}v14", self._ink.text, wide=2)
            if line.note:
                self.text(self._left + _PLOT + 10, middle + 4, line.note)

            self.y += height

        self.y += 8
        if last:
            self._axis(scale, panel.axis)

    def _heading(self, title: str) -> None:
        if title:
            self.text(0, self.y + 13, formats.excerpt(title, 80), bold=True)
            self.y += 22

    def _axis(self, scale: _Scale, axis: Axis) -> None:
        for tick, text in zip(scale.ticks, scale.texts, strict=True):
            self.text(scale(tick), self.y + 8, text, anchor="middle", size=_SMALL)
        self.text(self._left + _PLOT / 2, self.y + 26, axis.title, anchor="middle", size=_SMALL)
        self.y += 40

    def plane(self, panel: Plane) -> None:
        """Numbers on both axes."""
        self._heading(panel.title)
        self.y += 8
        points = [
            point for curve in panel.curves for point in curve.points if curve.form != "reference"
        ]
        across = _Scale(
            panel.x,
            [end for point in points for end in (point.x, point.left, point.right)],
            self._left,
            self._left + _PLOT,
        )
        top = self.y
        bottom = self.y + panel.height
        up = _Scale(
            panel.y,
            [end for point in points for end in (point.y, point.low, point.high)],
            bottom,
            top,
        )
        for tick, text in zip(up.ticks, up.texts, strict=True):
            self.path(f"M{_at(self._left)} {_at(up(tick))}h{_PLOT}", self._ink.grid)
            self.text(self._left - 8, up(tick) + 4, text, anchor="end", size=_SMALL)

        self.text(12, (top + bottom) / 2, panel.y.title, anchor="turned", size=_SMALL)
        # The content of an inner drawing is clipped at its edges.
        inner = "".join(self._under(curve, across, up) for curve in panel.curves)
        self._parts.append(
            f'<svg x="{_at(self._left)}" y="{_at(top)}" width="{_PLOT}" height="{panel.height}" '
            f'viewBox="{_at(self._left)} {_at(top)} {_PLOT} {panel.height}">{inner}</svg>'
        )
        for curve in panel.curves:
            if curve.form in ("points", "lines"):
                for point in curve.points:
                    self.marker(across(point.x), up(point.y), curve.series, point.label)
            elif curve.form == "bars":
                for point in curve.points:
                    left = across(point.left or 0.0)
                    right = across(point.right or 0.0)
                    y = up(point.y)
                    self.box(
                        left + 0.5,
                        y,
                        right - left - 1,
                        bottom - y,
                        self._color(curve.series),
                        point.label,
                    )

        self.y = bottom + 8
        self._axis(across, panel.x)

    def _under(self, curve: Curve, across: _Scale, up: _Scale) -> str:
        """Lines, bands and intervals."""

        def through(places: Iterable[tuple[float, float]]) -> str:
            return "M" + "L".join(f"{_at(across(x))} {_at(up(y))}" for x, y in places)

        color = self._color(curve.series)
        elements = []
        banded = []
        for p in curve.points:
            if p.low is not None and p.high is not None:
                banded.append((p.x, p.low, p.high))

        if curve.form in ("lines", "fit") and banded:
            edge = [(x, low) for x, low, _ in banded] + [
                (x, high) for x, _, high in reversed(banded)
            ]
            if curve.form == "lines":
                fill = color
            else:
                fill = self._ink.quiet
            elements.append(f'<path d="{through(edge)}z" fill="{fill}" opacity="0.16"/>')

        if curve.form == "points":
            for point in curve.points:
                for ends in (_span(point, upright=False), _span(point, upright=True)):
                    if ends:
                        shape = through(ends)
                        elements.append(_path(shape, color, label=point.label))
        elif curve.form != "bars" and len(curve.points) > 1:
            shape = through((point.x, point.y) for point in curve.points)
            looks: Mapping[str, tuple[str, float, str]] = {
                "lines": (color, 2, _DASHES[(curve.series or 0) % len(_DASHES)]),
                "fit": (self._ink.text, 2, ""),
                "reference": (self._ink.quiet, 1.5, "4 3"),
            }
            stroke, wide, dash = looks[curve.form]
            elements.append(_path(shape, stroke, wide=wide, dash=dash))

        return "".join(elements)


class _Scale:
    """Values to pixels, and where the ticks are."""

    def __init__(
        self,
        axis: Axis,
        values: Iterable[float | None],
        first: float,
        last: float,
    ) -> None:
        known = [value for value in values if value is not None and math.isfinite(value)] or [
            0.0,
            1.0,
        ]
        if axis.whole:
            pad = 0.5
        elif min(known) < max(known):
            pad = 0.0
        else:
            pad = 0.5

        if axis.start is None:
            self._start = min(known) - pad
        else:
            self._start = axis.start

        if axis.end is None:
            self._end = max(known) + pad
        else:
            self._end = axis.end

        if self._end <= self._start:
            self._end = self._start + 1
        self._first = first
        self._room = last - first
        if axis.whole and len(set(known)) <= _FEW:
            self.ticks: Sequence[float] = sorted({value for value in known if value == int(value)})
        else:
            # Round numbers from start to end, about as many as fit
            raw = (self._end - self._start) / _TICKS
            power = 10.0 ** math.floor(math.log10(raw))
            step = next(
                power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999
            )
            if axis.whole:
                step = max(1.0, math.ceil(step))
            slack = 1e-9 * (self._end - self._start)
            lowest = math.ceil((self._start - slack) / step)
            highest = math.floor((self._end + slack) / step)
            self.ticks = [round(at * step, 12) + 0.0 for at in range(lowest, highest + 1)]

        if axis.percent:
            texts = [f"{formats.brief(round(100 * tick, 6))} %" for tick in self.ticks]
        else:
            texts = [formats.brief(tick) for tick in self.ticks]

        self.texts = [text.replace("-", "\u2212") for text in texts]

    def __call__(self, value: float) -> float:
        return self._first + self._room * (value - self._start) / (self._end - self._start)


def _path(shape: str, color: str, *, wide: float = 1, dash: str = "", label: str = "") -> str:
    """A line; `label` is shown on hover."""
    if dash:
        more = f' stroke-dasharray="{dash}"'
    else:
        more = ""

    if label:
        named = f"<title>{escape(formats.clean(label))}</title>"
    else:
        named = ""

    return (
        f'<path d="{shape}" fill="none" stroke="{color}" stroke-width="{wide}"{more}>{named}</path>'
    )


def _lanes(line: Line) -> int:
    """Points of one line are stacked vertically, so equal ones do not hide each other."""
    return max(1, sum(mark.start is None for mark in line.marks))


def _span(point: Point, *, upright: bool) -> list[tuple[float, float]]:
    """The ends of an interval of a point; nothing if there is none."""
    if upright:
        low = point.low
        high = point.high
    else:
        low = point.left
        high = point.right

    if low is None or high is None:
        return []
    if upright:
        return [(point.x, low), (point.x, high)]
    return [(low, point.y), (high, point.y)]


def _at(value: float) -> str:
    """A coordinate in a drawing, to a tenth of a pixel."""
    return f"{round(value, 1):g}"
