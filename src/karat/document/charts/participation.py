"""Charts of a run over human studies: how many participants answered and could be read, then what they did."""

from __future__ import annotations

from typing import Any

from karat import formats
from karat.document.charts.chart import Chart, apart, made, slug
from karat.document.charts.pieces import ROW, WIDTH, beside, named, number, tooltip
from karat.document.charts.studies import drawn_charts
from karat.document.charts.study_view import of_condition
from karat.kinds.study.analysis.model import Participants, StudyCondition, StudySummary

__all__ = ["participation_charts"]

TOGETHER = 40  # arms in one chart; where there are more, a line is a study
SERIES = ("asked", "answered", "parsed")


def participation_charts(found: StudySummary) -> tuple[Chart, ...]:
    """Agreement, effects and their differences of each condition, with the floor beside; then who took part."""
    floor = found.floor if found.floor is not None and found.floor.benchmark.pas.value is not None else None
    charts: list[Chart] = []
    for one in found.conditions:
        charts += drawn_charts(of_condition(one, floor=floor))
    return (*charts, *(chart for one in found.conditions for chart in _coverage(one)))


def _coverage(found: StudyCondition) -> list[Chart]:
    lines = _lines(found)
    if not lines or not found.participants.planned:
        return []
    names = apart(name for name, _ in lines)
    values = [row for name, (_, people) in zip(names, lines, strict=True) for row in _rows(name, people)]
    offset, color = beside("side", len(SERIES), room=0.6)
    told = tooltip({"group": "study and arm", "side": "participants", "share": "share of planned", "n": "n"},
                   percent=("share",))  # fmt: skip
    x = number("share", "share of the planned participants, in percent", domain=(0, 1), percent=True)
    y = named("group", names, title="study and arm")
    layer = {"mark": {"type": "point"},
             "encoding": {"x": x, "y": y, "yOffset": offset, "color": color, "shape": {**color},
                          "tooltip": told}}  # fmt: skip
    chart = made(
        slug("participants", found.condition),
        _title(found, lines),
        "One line an arm: the shares of its participants who were asked, who answered everything they were asked, and "
        "of whom every needed answer could be read.",
        {"data": {"values": values}, "width": WIDTH, "height": (ROW + 4) * len(names), "layer": [layer]},
        ("study and arm", "planned", *SERIES, "parsed, of planned"),
        [
            (name, *map(formats.count, (people.planned, people.asked, people.answered, people.parsed)),
             formats.share(people.parsed / people.planned))
            for name, (_, people) in zip(names, lines, strict=True)
        ],
    )  # fmt: skip
    return [chart]


def _lines(found: StudyCondition) -> list[tuple[str, Participants]]:
    arms = [(f"{one.study} {arm.arm}", arm.participants) for one in found.studies for arm in one.arms]
    if len(arms) > TOGETHER:
        arms = [(one.study, one.participants) for one in found.studies]
    return [(name, people) for name, people in arms if people.planned]


def _rows(name: str, people: Participants) -> list[dict[str, Any]]:
    counts = (people.asked, people.answered, people.parsed)
    return [
        {"group": name, "side": side, "place": place, "share": count / people.planned, "n": count}
        for place, (side, count) in enumerate(zip(SERIES, counts, strict=True))
    ]


def _title(found: StudyCondition, lines: list[tuple[str, Participants]]) -> str:
    people = found.participants
    said = (
        f"{found.condition}: of {formats.plural(people.planned, 'participant')} {formats.count(people.asked)} were "
        f"asked, {formats.count(people.answered)} answered and {formats.count(people.parsed)} could be read "
        f"({formats.share(people.parsed / people.planned)})"
    )
    name, least = min(lines, key=lambda line: line[1].parsed / line[1].planned)
    if least.parsed == least.planned:
        return said
    return f"{said}; fewest in {name}, {formats.count(least.parsed)} of {formats.count(least.planned)}"
