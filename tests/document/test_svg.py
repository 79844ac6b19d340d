"""Charts as drawings: golden files of every kind of mark, and what an axis shows."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from karat.blocks import Axis, Chart, Curve, Line, Mark, Plane, Point, Rows, Table
from karat.document.ink import LIGHT
from karat.document.render.svg import render_svg

TABLE = Table(caption="", columns=(), rows=())
MEANS = Axis(title="mean", start=1, end=5, zero=3)


def chart(*panels, **fields) -> Chart:
    return Chart(
        **{"name": "c", "title": "A title with 50 % of it", "description": "What is drawn", **fields},
        panels=panels,
        table=TABLE,
    )


def lines(text: str) -> str:
    return text.replace("><", ">\n<") + "\n"


def test_lines_of_marks_are_drawn(golden):
    rows = (
        Line(name="first", marks=(Mark(value=2, low=1.5, high=2.5, label="2.00"),), tick=2.25, note="a note"),
        Line(
            name="both", marks=(Mark(value=2, series=0, label="old"), Mark(value=4, series=1, label="new")), joined=True
        ),
        Line(name="apart", marks=(Mark(value=2, series=0), Mark(value=4, low=3.5, high=4.5, series=1))),
        Line(name="none", marks=(), joined=True),
    )
    steps = (Mark(value=2, start=1, series=0, label="1"), Mark(value=5, start=2, series=1, label="2"))
    panels = (
        Rows(axis=MEANS, lines=rows, title="Above"),
        Rows(axis=MEANS, lines=(Line(name="bars", marks=steps),)),
    )
    golden("documents/rows.svg", lines(render_svg(chart(*panels, legend=("old", "new")))))
    ordered = chart(panels[1], legend=("one", "two"), ordered=True)
    golden("documents/steps.svg", lines(render_svg(ordered, ink=LIGHT, framed=True)))


def test_curves_are_drawn(golden):
    points = (Point(x=1, y=0.2, low=0.1, high=0.3, label="a"), Point(x=2, y=0.6, low=0.4, high=0.7, label="b"))
    spread = (Point(x=1.5, y=0.5, left=1.25, right=1.75, label="left and right"), points[0])
    curves = (
        Curve(points=points, form="lines", series=0),
        Curve(points=points, form="fit"),
        Curve(points=(Point(x=0, y=0), Point(x=9, y=9)), form="reference"),
        Curve(points=spread, form="points", series=2),
    )
    bars = (Point(x=0, y=3, left=0, right=1, label="three"), Point(x=1, y=1, left=1, right=2, label="one"))
    panels = (
        Plane(x=Axis(title="turn", whole=True), y=Axis(title="share", start=0, end=1, percent=True), curves=curves),
        Plane(
            x=Axis(title="mean"),
            y=Axis(title="questions", start=0, whole=True),
            curves=(Curve(points=bars, form="bars"),),
            title="Bars",
            height=60,
        ),
    )
    golden("documents/planes.svg", lines(render_svg(chart(*panels, legend=("one", "two", "three")))))


def ticks(axis: Axis, *values: float) -> list[str]:
    """The texts below an axis, without its title."""
    marks = tuple(Mark(value=value) for value in values)
    drawing = render_svg(chart(Rows(axis=axis, lines=(Line(name="name", marks=marks),))))
    return re.findall(r'text-anchor="middle" font-size="11"[^>]*>([^<]*)<', drawing)[:-1]


@pytest.mark.parametrize(
    ("axis", "values", "texts"),
    [
        (Axis(title="x", start=0, end=1, percent=True), [0.5], ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        (Axis(title="x", start=1, end=5), [3], ["1", "2", "3", "4", "5"]),
        (Axis(title="x", start=-1, end=1), [0], ["−1", "−0.5", "0", "0.5", "1"]),
        (Axis(title="x"), [0.25, 0.75], ["0.3", "0.4", "0.5", "0.6", "0.7"]),
        (Axis(title="x"), [3], ["2.6", "2.8", "3", "3.2", "3.4"]),
        (Axis(title="x"), [], ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (Axis(title="x", start=2, end=2), [2], ["2", "2.2", "2.4", "2.6", "2.8", "3"]),
        (Axis(title="x", whole=True), [1, 2, 4, 2.5], ["1", "2", "4"]),
        (Axis(title="x", whole=True), range(12), [str(at) for at in range(12)]),
        (Axis(title="x", whole=True), range(13), ["0", "5", "10"]),
        (Axis(title="x", whole=True), [at / 10 for at in range(13)], ["0", "1"]),
        (Axis(title="x", start=0, end=100), [50], ["0", "20", "40", "60", "80", "100"]),
        (Axis(title="x", start=0, end=12), [5], ["0", "2.5", "5", "7.5", "10"]),
        (Axis(title="x"), [float("inf"), 1, 2], ["1", "1.2", "1.4", "1.6", "1.8", "2"]),
    ],
)
def test_ticks_are_round_numbers(axis, values, texts):
    assert ticks(axis, *values) == texts


def drawn(*panels, **fields) -> ElementTree.Element:
    return ElementTree.fromstring(render_svg(chart(*panels, **fields)))


def test_a_drawing_is_as_wide_as_its_names_and_notes():
    def size(name, note="", **options):
        line = Line(name=name, marks=(), note=note)
        text = render_svg(chart(Rows(axis=MEANS, lines=(line,))), **options)
        return [int(number) for number in re.findall(r'viewBox="0 0 (\d+) (\d+)"', text)[0]]

    assert size("short")[0] == 52 + 460 + 18
    assert size("x" * 20)[0] == round(14 + 6.7 * 20 + 460 + 18)
    assert size("short", "y" * 10)[0] == 52 + 460 + 18 + 67
    assert size("short")[1] == 22 + 8 + 40
    assert size("short", framed=True) == [52 + 460 + 18 + 24, 22 + 8 + 40 + 19 + 8 + 24]


def test_a_long_legend_is_broken_and_a_long_title_is_wrapped():
    names = tuple(f"condition number {at}" for at in range(5))
    wide = 16 + 6.7 * len(names[0]) + 16
    texts = [(text.get("x"), text.get("y")) for text in drawn(legend=names).iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [
        *((f"{round(wide * at + 16, 1):g}", "13") for at in range(3)),
        *((f"{round(wide * at + 16, 1):g}", "33") for at in range(2)),
    ]
    text = render_svg(chart(title="word " * 30), framed=True)
    titles = re.findall(r'font-size="14"[^>]*font-weight="600">([^<]*)<', text)
    assert len(titles) == 3
    assert max(map(len, titles)) <= (52 + 460 + 18) / 8


def test_series_have_marks_of_their_own_and_steps_have_shades():
    names = tuple("abcdefgh")
    marks = [path.get("d") for path in drawn(legend=names).iter("{http://www.w3.org/2000/svg}path")]
    assert len({*marks}) == 7
    assert marks[7] == marks[0]
    colors = [box.get("fill") for box in drawn(legend=names[:3], ordered=True).iter("{http://www.w3.org/2000/svg}rect")]
    assert len({*colors}) == 3
    alone = [box.get("fill") for box in drawn(legend=names[:1], ordered=True).iter("{http://www.w3.org/2000/svg}rect")]
    assert alone == colors[:1]
