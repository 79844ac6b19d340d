"""Charts of how far an agent does what people did: evidence by test, the profile of effects, their differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from karat import formats
from karat.document.charts.chart import Chart, known, made, slug
from karat.document.charts.pieces import ROW, WIDTH, beside, filtered, named, number, points, reference, tooltip
from karat.document.charts.study_view import Drawn, Line, TestShown, of_agreement
from karat.replication import Agreement, Uncertainty, z_of_level

__all__ = ["drawn_charts", "study_charts"]

TOGETHER = 40  # tests in one chart


def study_charts(agreement: Agreement, sure: Uncertainty, *, condition: str = "agent") -> tuple[Chart, ...]:
    """Posteriors of people and agent side by side, effects against effects, a forest of differences."""
    return drawn_charts(of_agreement(agreement, sure, condition=condition))


def drawn_charts(drawn: Drawn) -> tuple[Chart, ...]:
    """The same of whatever was brought into shape."""
    return (*_agreement(drawn), *_profile(drawn), *_forest(drawn))


def _chunks(tests: Sequence[TestShown]) -> Iterator[tuple[str, Sequence[TestShown]]]:
    """A few tests at a time, with the ending of the chart's name."""
    if len(tests) <= TOGETHER:
        yield "", tests
        return
    for at, start in enumerate(range(0, len(tests), TOGETHER)):
        yield f"-{at + 1}", tests[start : start + TOGETHER]


def _over(drawn: Drawn) -> str:
    """What is drawn of several repetitions."""
    return "" if drawn.repetitions < 2 else f" Means over {formats.plural(drawn.repetitions, 'repetition')}."


def _agreement(drawn: Drawn) -> list[Chart]:
    used = [one for one in drawn.tests if not math.isnan(one.pas)]
    return [_agreement_part(drawn, ending, tests) for ending, tests in _chunks(used) if tests]


def _agreement_part(drawn: Drawn, ending: str, tests: Sequence[TestShown]) -> Chart:
    floor = drawn.floor is not None
    beside = " The third mark is the floor: random answers." if floor else ""
    heads = ("finding and test", "π people", "π agent", *(["π floor"] if floor else []), "PAS", "directional PAS",
             "ln BF people", "ln BF agent", "note")  # fmt: skip
    return made(
        slug("agreement", drawn.condition) + ending,
        _agreement_title(drawn),
        "One line a test: the probability of an effect given the evidence of people and of the agent, joined by a "
        "line. Near together they are in the same state; opposite directions are written beside the line."
        f"{beside}{_over(drawn)}",
        {"width": WIDTH, "height": (ROW - 4) * len(tests), "layer": _posteriors(tests, floor=floor)},
        heads,
        [
            (one.name, *map(_three, (one.pi_human, one.pi_agent, *([one.pi_floor] if floor else []), one.pas,
                                     one.pas_directional)),
             _one(one.log_bf_human), _one(one.log_bf_agent), _note(one))
            for one in tests
        ],
    )  # fmt: skip


def _posteriors(tests: Sequence[TestShown], *, floor: bool) -> list[dict[str, Any]]:
    spans = [{"test": one.name, "human": one.pi_human, "agent": one.pi_agent, "note": _note(one)} for one in tests]
    dots = [
        {"test": one.name, "side": side, "place": place, "pi": pi, "pas": one.pas,
         "directional": one.pas_directional, "note": _note(one)}
        for one in tests
        for place, (side, pi) in enumerate(
            (("people", one.pi_human), ("agent", one.pi_agent), *([("floor", one.pi_floor)] if floor else []))
        )
        if not math.isnan(pi)
    ]  # fmt: skip
    shown = [one.name for one in tests]
    x = number("pi", "posterior probability of an effect, π", domain=(0, 1))
    y = named("test", shown, title="finding and test")
    offset, color = beside("side", 2 + floor, room=2.0)
    told = tooltip({"test": "test", "side": "side", "pi": "π", "pas": "PAS", "directional": "directional PAS",
                    "note": "note"})  # fmt: skip
    words = {"x": {"datum": 1}, "y": y, "text": {"field": "note", "type": "nominal"}}
    return [
        {"data": {"values": spans}, "mark": {"type": "rule", "style": "apart"},
         "encoding": {"x": {**x, "field": "human"}, "x2": {"field": "agent"}, "y": y}},
        {"data": {"values": dots}, "mark": {"type": "point"},
         "encoding": {"x": x, "y": y, "yOffset": offset, "color": color, "shape": {**color},
                      "tooltip": told}},
        {"data": {"values": [row for row in spans if row["note"]]},
         "mark": {"type": "text", "align": "left", "dx": 10}, "encoding": words},
    ]  # fmt: skip


def _note(one: TestShown) -> str:
    return "opposite directions" if one.opposed else ""


def _three(value: float) -> str:
    return formats.number(value, digits=3)


def _one(value: float) -> str:
    return formats.number(value, digits=1)


def _agreement_title(drawn: Drawn) -> str:
    against = f"; {formats.plural(drawn.opposed, 'finding')} in the opposite direction" if drawn.opposed else ""
    floor = "" if drawn.floor is None else f"; random answers {formats.estimate(*drawn.floor, digits=3)}"
    return (
        f"{drawn.condition} is in the same state as people with a probability (PAS) of "
        f"{formats.estimate(*drawn.pas, digits=3)} over {formats.plural(drawn.tests_used, 'test')} of "
        f"{formats.plural(drawn.studies_used, 'study', 'studies')}{floor}{against}"
    )


def _profile(drawn: Drawn) -> list[Chart]:
    tests = [one for one in drawn.tests if one.has_effects]
    if not tests:
        return []
    z, interval = z_of_level(drawn.level), f"{formats.level(drawn.level)} interval"
    dots = [
        {"test": one.name, "study": formats.excerpt(one.study, 48), "human": one.d_human, "agent": one.d_agent,
         "human_low": one.d_human - z * one.d_human_se, "human_high": one.d_human + z * one.d_human_se,
         "agent_low": one.d_agent - z * one.d_agent_se, "agent_high": one.d_agent + z * one.d_agent_se}
        for one in tests
    ]  # fmt: skip
    reach = 1.1 * max(max(abs(one.d_human), abs(one.d_agent)) for one in tests) or 1.0
    x = number("human", "effect of people, Cohen's d", domain=(-reach, reach))
    y = number("agent", "effect of the agent, Cohen's d", domain=(-reach, reach))
    heads = {"human": "d people", "human_low": "people from", "human_high": "people to"}
    heads |= {"agent": "d agent", "agent_low": "agent from", "agent_high": "agent to"}
    told = tooltip({"test": "test", "study": "study"} | heads)
    cross = {"type": "rule", "strokeWidth": 1, "opacity": 0.45, "clip": True}
    marks = [
        {"data": {"values": dots}, "transform": filtered("human_low"), "mark": cross,
         "encoding": {"x": {**x, "field": "human_low"}, "x2": {"field": "human_high"}, "y": y}},
        {"data": {"values": dots}, "transform": filtered("agent_low"), "mark": cross,
         "encoding": {"y": {**y, "field": "agent_low"}, "y2": {"field": "agent_high"}, "x": x}},
        {"data": {"values": dots}, "mark": {"type": "point"}, "encoding": {"x": x, "y": y, "tooltip": told}},
    ]  # fmt: skip
    chart = made(
        slug("effects", drawn.condition),
        _profile_title(drawn),
        f"One point a test: the agent's effect over that of people, with {interval}s. On the dashed line of identity "
        "both are equal; the solid line is the weighted least-squares line, its band the interval of its slope."
        f"{_over(drawn)}",
        {"width": 400, "height": 400, "layer": [*_lines(drawn.line, x, y, reach), *marks]},
        ("finding and test", f"d people [{interval}]", f"d agent [{interval}]"),
        [(one.name, _effect(one.d_human, one.d_human_se, z), _effect(one.d_agent, one.d_agent_se, z))
         for one in tests],
    )  # fmt: skip
    return [chart]


def _effect(value: float, se: float, z: float) -> str:
    span = formats.signed_interval(value - z * se, value + z * se)
    return f"{formats.signed(value)} {span}".rstrip()


def _lines(found: Line, x: dict[str, Any], y: dict[str, Any], reach: float) -> list[dict[str, Any]]:
    """The line of identity; the line of caricature with the band of its slope, through the centre of the points."""
    identity = {"mark": {"type": "line", "style": "reference"}, "encoding": {"x": x, "y": y},
                "data": {"values": [{"human": -reach, "agent": -reach}, {"human": reach, "agent": reach}]}}  # fmt: skip
    if math.isnan(found.slope) or math.isnan(found.centre):
        return [identity]
    ends = [-reach + step * reach / 20 for step in range(41)]
    rows = known([
        {"human": at, "agent": found.centre_agent + found.slope * (at - found.centre),
         "one": found.centre_agent + found.low * (at - found.centre),
         "two": found.centre_agent + found.high * (at - found.centre)}
        for at in ends
    ])  # fmt: skip
    band = {"data": {"values": rows}, "transform": filtered("one"),
            "mark": {"type": "area", "style": "band", "clip": True},
            "encoding": {"x": x, "y": {**y, "field": "one"}, "y2": {"field": "two"}}}  # fmt: skip
    line = {"data": {"values": rows}, "mark": {"type": "line", "style": "fit", "clip": True},
            "encoding": {"x": x, "y": y}}  # fmt: skip
    return [band, identity, line]


def _profile_title(drawn: Drawn) -> str:
    slope = formats.estimate(drawn.line.slope, drawn.line.low, drawn.line.high)
    floor = "" if drawn.floor_ecs is None else f" (random answers {formats.estimate(*drawn.floor_ecs, digits=3)})"
    return (
        f"{drawn.condition}: ECS {formats.estimate(*drawn.ecs, digits=3)}{floor} over "
        f"{formats.plural(drawn.tests_with_effects, 'effect')}; slope of its effects on those of people {slope}"
    )


def _forest(drawn: Drawn) -> list[Chart]:
    tests = [one for one in drawn.tests if one.has_effects]
    return [_forest_part(drawn, ending, part) for ending, part in _chunks(tests) if part]


def _forest_part(drawn: Drawn, ending: str, tests: Sequence[TestShown]) -> Chart:
    z, interval = z_of_level(drawn.level), f"{formats.level(drawn.level)} interval"
    rows = []
    for one in tests:
        more, se = one.apart
        rows.append({
            "test": one.name, "difference": more, "low": more - z * se, "high": more + z * se,
            "human": one.d_human, "agent": one.d_agent, "z": one.z_diff,
        })  # fmt: skip
    ends = [abs(value) for row in rows for value in (row["difference"], row["low"], row["high"])
            if isinstance(value, float) and math.isfinite(value)]  # fmt: skip
    reach = 1.05 * max(ends) or 1.0
    x = number("difference", "agent − people, Cohen's d", domain=(-reach, reach))
    told = tooltip({"test": "test", "difference": "difference", "low": "low", "high": "high", "human": "d people",
                    "agent": "d agent", "z": "z"})  # fmt: skip
    y = named("test", [one.name for one in tests], title="finding and test")
    return made(
        slug("effect-differences", drawn.condition) + ending,
        _forest_title(drawn),
        f"A forest plot: one line a test, the agent's effect less that of people with its {interval}; the dashed "
        f"line is no difference.{_over(drawn)}",
        {"data": {"values": rows}, "width": WIDTH, "height": (ROW - 4) * len(tests),
         "layer": [reference(x=0), *points(x, y, None, told)]},
        ("finding and test", f"agent − people, d [{interval}]", "d people", "d agent", "z"),
        [(one.name, _effect(*one.apart, z), *map(formats.signed, (one.d_human, one.d_agent, one.z_diff)))
         for one in tests],
    )  # fmt: skip


def _forest_title(drawn: Drawn) -> str:
    judged = [one for one in drawn.tests if one.has_effects and math.isfinite(one.z_diff)]
    differing = [one for one in judged if abs(one.z_diff) > z_of_level(drawn.level)]
    above = sum(one.z_diff > 0 for one in differing)
    return (
        f"{drawn.condition} differs from people in {formats.count(len(differing))} of "
        f"{formats.plural(len(judged), 'effect')} ({formats.level(drawn.level)} interval without 0): "
        f"{formats.count(above)} above, {formats.count(len(differing) - above)} below"
    )
