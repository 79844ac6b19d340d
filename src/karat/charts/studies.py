"""Charts of how far an agent does what people did: evidence by test, the profile of effects, their differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from karat import formats
from karat.charts.chart import Chart, apart, known, made, slug
from karat.charts.pieces import ROW, WIDTH, beside, filtered, named, number, points, reference, tooltip
from karat.replication import Agreement, TestScore, Uncertainty

__all__ = ["study_charts"]

TOGETHER = 40  # tests in one chart
Z95 = 1.959963984540054


def study_charts(agreement: Agreement, sure: Uncertainty, *, condition: str = "agent") -> tuple[Chart, ...]:
    """Posteriors of people and agent side by side, effects against effects, a forest of differences."""
    names = _names(agreement)
    parts = [*_agreement(agreement, sure, condition, names), *_profile(agreement, sure, condition, names)]
    return (*parts, *_forest(agreement, condition, names))


def _names(agreement: Agreement) -> list[str]:
    """One label a test."""
    return apart(f"{'/'.join(filter(None, one.test.finding_id))} {one.test.test}" for one in agreement.tests)


def _chunks(places: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
    """A few tests at a time, with the ending of the chart's name."""
    if len(places) <= TOGETHER:
        yield "", places
        return
    for at, start in enumerate(range(0, len(places), TOGETHER)):
        yield f"-{at + 1}", places[start : start + TOGETHER]


def _agreement(agreement: Agreement, sure: Uncertainty, condition: str, names: list[str]) -> list[Chart]:
    used = [at for at, score in enumerate(agreement.tests) if not math.isnan(score.pas)]
    return [
        _agreement_part(agreement, sure, condition, names, (ending, places))
        for ending, places in _chunks(used)
        if places
    ]


def _agreement_part(
    agreement: Agreement, sure: Uncertainty, condition: str, names: list[str], part: tuple[str, Sequence[int]]
) -> Chart:
    ending, places = part
    tests = [(names[at], agreement.tests[at]) for at in places]
    return made(
        slug("agreement", condition) + ending,
        _agreement_title(agreement, sure, condition),
        "One line a test: the probability of an effect given the evidence of people and of the agent, joined by a "
        "line. Near together they are in the same state; opposite directions are written beside the line.",
        {"width": WIDTH, "height": (ROW - 4) * len(tests), "layer": _posteriors(tests)},
        ("finding and test", "π people", "π agent", "PAS", "directional PAS", "ln BF people", "ln BF agent", "note"),
        [
            (name, *map(_three, (score.pi_human, score.pi_agent, score.pas, score.pas_directional)),
             _one(score.human.log_bf), _one(score.agent.log_bf), _note(score))
            for name, score in tests
        ],
    )  # fmt: skip


def _posteriors(tests: Sequence[tuple[str, TestScore]]) -> list[dict[str, Any]]:
    spans = [
        {"test": name, "human": score.pi_human, "agent": score.pi_agent, "note": _note(score)} for name, score in tests
    ]
    dots = [
        {"test": name, "side": side, "place": place, "pi": pi, "pas": score.pas,
         "directional": score.pas_directional, "note": _note(score)}
        for name, score in tests
        for place, (side, pi) in enumerate((("people", score.pi_human), ("agent", score.pi_agent)))
    ]  # fmt: skip
    shown = [name for name, _ in tests]
    x = number("pi", "posterior probability of an effect, π", domain=(0, 1))
    y = named("test", shown, title="finding and test")
    offset, color = beside("side", 2, room=2.0)
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


def _note(score: TestScore) -> str:
    return "opposite directions" if score.opposed else ""


def _three(value: float) -> str:
    return formats.number(value, digits=3)


def _one(value: float) -> str:
    return formats.number(value, digits=1)


def _agreement_title(agreement: Agreement, sure: Uncertainty, condition: str) -> str:
    whole, spread = agreement.benchmark, sure.pas.get(("benchmark", ""))
    low, high = (spread.low, spread.high) if spread is not None else (None, None)
    opposed = len(agreement.opposed)
    against = f"; {formats.plural(opposed, 'finding')} in the opposite direction" if opposed else ""
    return (
        f"{condition} is in the same state as people with a probability (PAS) of "
        f"{formats.estimate(whole.pas, low, high, digits=3)} over {formats.plural(whole.tests_used, 'test')} of "
        f"{formats.plural(whole.used, 'study', 'studies')}{against}"
    )


def _profile(agreement: Agreement, sure: Uncertainty, condition: str, names: list[str]) -> list[Chart]:
    places = _with_effects(agreement)
    if not places:
        return []
    tests = [(names[at], agreement.tests[at]) for at in places]
    dots = [
        {"test": name, "study": formats.excerpt(score.test.study, 48), "human": score.human.d, "agent": score.agent.d,
         "human_low": score.human.d - Z95 * score.human.d_se, "human_high": score.human.d + Z95 * score.human.d_se,
         "agent_low": score.agent.d - Z95 * score.agent.d_se, "agent_high": score.agent.d + Z95 * score.agent.d_se}
        for name, score in tests
    ]  # fmt: skip
    reach = 1.1 * max(max(abs(score.human.d), abs(score.agent.d)) for _, score in tests) or 1.0
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
        slug("effects", condition),
        _profile_title(agreement, sure, condition),
        "One point a test: the agent's effect over that of people, with 95 % intervals. On the dashed line of identity "
        "both are equal; the solid line is the weighted least-squares line, its band the interval of its slope.",
        {"width": 400, "height": 400, "layer": [*_lines(agreement, x, y, reach), *marks]},
        ("finding and test", "d people [95 % interval]", "d agent [95 % interval]"),
        [(name, _effect(score.human.d, score.human.d_se), _effect(score.agent.d, score.agent.d_se))
         for name, score in tests],
    )  # fmt: skip
    return [chart]


def _with_effects(agreement: Agreement) -> list[int]:
    return [at for at, one in enumerate(agreement.tests) if math.isfinite(one.human.d) and math.isfinite(one.agent.d)]


def _effect(value: float, se: float) -> str:
    span = formats.signed_interval(value - Z95 * se, value + Z95 * se)
    return f"{formats.signed(value)} {span}".rstrip()


def _lines(agreement: Agreement, x: dict[str, Any], y: dict[str, Any], reach: float) -> list[dict[str, Any]]:
    """The line of identity; the line of caricature with the band of its slope, through the centre of the points."""
    found = agreement.caricature
    identity = {"mark": {"type": "line", "style": "reference"}, "encoding": {"x": x, "y": y},
                "data": {"values": [{"human": -reach, "agent": -reach}, {"human": reach, "agent": reach}]}}  # fmt: skip
    if math.isnan(found.slope):
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


def _profile_title(agreement: Agreement, sure: Uncertainty, condition: str) -> str:
    whole, found = agreement.benchmark, agreement.caricature
    fixed = sure.ecs_fixed.get(("benchmark", ""))
    low, high = (fixed.low, fixed.high) if fixed is not None else (None, None)
    slope = formats.estimate(found.slope, found.low, found.high)
    return (
        f"{condition}: ECS {formats.estimate(whole.ecs.value, low, high, digits=3)} over "
        f"{formats.plural(whole.tests_with_effects, 'effect')}; slope of its effects on those of people {slope}"
    )


def _forest(agreement: Agreement, condition: str, names: list[str]) -> list[Chart]:
    places = _with_effects(agreement)
    return [_forest_part(agreement, condition, names, (ending, part)) for ending, part in _chunks(places) if part]


def _forest_part(agreement: Agreement, condition: str, names: list[str], part: tuple[str, Sequence[int]]) -> Chart:
    ending, places = part
    rows = []
    for at in places:
        score = agreement.tests[at]
        more, se = score.agent.d - score.human.d, math.hypot(score.human.d_se, score.agent.d_se)
        rows.append({
            "test": names[at], "difference": more, "low": more - Z95 * se, "high": more + Z95 * se,
            "human": score.human.d, "agent": score.agent.d, "z": score.z_diff,
        })  # fmt: skip
    ends = [abs(value) for row in rows for value in (row["difference"], row["low"], row["high"])
            if isinstance(value, float) and math.isfinite(value)]  # fmt: skip
    reach = 1.05 * max(ends) or 1.0
    x = number("difference", "agent − people, Cohen's d", domain=(-reach, reach))
    told = tooltip({"test": "test", "difference": "difference", "low": "low", "high": "high", "human": "d people",
                    "agent": "d agent", "z": "z"})  # fmt: skip
    shown = [names[at] for at in places]
    y = named("test", shown, title="finding and test")
    return made(
        slug("effect-differences", condition) + ending,
        _forest_title(agreement, condition),
        "A forest plot: one line a test, the agent's effect less that of people with its 95 % interval; the dashed "
        "line is no difference.",
        {"data": {"values": rows}, "width": WIDTH, "height": (ROW - 4) * len(shown),
         "layer": [reference(x=0), *points(x, y, None, told)]},
        ("finding and test", "agent − people, d [95 % interval]", "d people", "d agent", "z"),
        [(names[at], _difference(agreement.tests[at]), formats.signed(agreement.tests[at].human.d),
          formats.signed(agreement.tests[at].agent.d), formats.signed(agreement.tests[at].z_diff)) for at in places],
    )  # fmt: skip


def _difference(score: TestScore) -> str:
    return _effect(score.agent.d - score.human.d, math.hypot(score.human.d_se, score.agent.d_se))


def _forest_title(agreement: Agreement, condition: str) -> str:
    scores = [agreement.tests[at] for at in _with_effects(agreement)]
    judged = [score for score in scores if math.isfinite(score.z_diff)]
    differing = [score for score in judged if abs(score.z_diff) > Z95]
    above = sum(score.z_diff > 0 for score in differing)
    return (
        f"{condition} differs from people in {formats.count(len(differing))} of "
        f"{formats.plural(len(judged), 'effect')} (95 % interval without 0): "
        f"{formats.count(above)} above, {formats.count(len(differing) - above)} below"
    )
