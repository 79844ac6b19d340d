"""Charts of a conversation run: where accuracy breaks, what each reading forgives, why turns failed, what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from karat import formats
from karat.analysis import Summary
from karat.document.charts.chart import Chart, labels, made
from karat.document.charts.costs import cost_charts
from karat.document.charts.failing import accuracy, diagnosis_chart, feature_chart, first_wrong_chart, propagation_chart
from karat.document.charts.pieces import ROW, WIDTH, colored, facets, lines, named, number, points, tooltip, whole
from karat.document.charts.written import share_estimate
from karat.kinds.conversation.analysis.model import ConversationResult, ConversationSummary, Rung, Stratum

__all__ = ["conversation_charts"]


def conversation_charts(summary: Summary) -> tuple[Chart, ...]:
    """By turn, by operations, by reading, diagnoses, propagation, features, cost; empty ones are left out."""
    found = summary.conversation
    if found is None or not any(one.turns for one in found.conditions):
        return ()
    names = labels(one.condition for one in found.conditions)
    made_of: tuple[Callable[[ConversationSummary, dict[str, str]], list[Chart]], ...] = (
        _by_turn, _by_operations, partial(_ladder, summary),
        diagnosis_chart, propagation_chart, first_wrong_chart, feature_chart, cost_charts,
    )  # fmt: skip
    return tuple(chart for make in made_of for chart in make(found, names))


def _by_turn(found: ConversationSummary, names: dict[str, str]) -> list[Chart]:
    words = ("accuracy-by-turn", "turn of the conversation, from 0", "turn")
    return _along(found, names, words, [(one, one.by_turn) for one in found.conditions])


def _by_operations(found: ConversationSummary, names: dict[str, str]) -> list[Chart]:
    words = ("complexity-ceiling", "operations of the golden program", "operations")
    return _along(found, names, words, [(one, one.by_operations) for one in found.conditions])


Values = list[dict[str, Any]]
Table = list[tuple[str, ...]]


def _along(
    found: ConversationSummary,
    names: dict[str, str],
    words: tuple[str, str, str],
    parts: Sequence[tuple[ConversationResult, Sequence[Stratum]]],
) -> list[Chart]:
    """Accuracy along whole numbers, one line a condition."""
    name, axis, unit = words
    values, table = _strata(names, parts)
    if not values:
        return []
    heads = {"condition": "condition", "at": unit, "accuracy": "accuracy", "low": "low", "high": "high"}
    told = tooltip(
        heads | {"right": "right", "turns": "turns", "conversations": "conversations"},
        percent=("accuracy", "low", "high"),
    )
    color = colored("condition", list(names.values()))
    y = number("accuracy", f"{accuracy(found)}, share of turns", domain=(0, 1), percent=True)
    level = formats.level(found.level)
    layers = lines(whole("at", axis, (row["at"] for row in values)), y, color, told)
    chart = made(
        name,
        _ends(values, unit, accuracy(found)),
        f"One line a condition: {accuracy(found)} as the share of turns, with a band of its {level} interval, "
        "clustered by conversation.",
        {"data": {"values": values}, "width": WIDTH, "height": 240, "layer": layers},
        ("condition", unit, f"accuracy [{level} interval]", "right", "turns"),
        table,
    )
    return [chart]


def _strata(
    names: dict[str, str], parts: Sequence[tuple[ConversationResult, Sequence[Stratum]]]
) -> tuple[Values, Table]:
    values: Values = []
    table: Table = []
    for one, strata in parts:
        for stratum in strata:
            if not stratum.key.isdigit() or stratum.n == 0:
                continue
            at, rate = int(stratum.key), stratum.estimate
            values.append({
                "at": at, "condition": names[one.condition], "accuracy": rate.value, "low": rate.low,
                "high": rate.high, "turns": stratum.n, "right": stratum.right, "conversations": rate.n,
            })  # fmt: skip
            told = share_estimate(rate.value, rate.low, rate.high)
            table.append((one.condition, formats.count(at), told, *map(formats.count, (stratum.right, stratum.n))))
    return values, table


FEW = 20  # turns: below, an end of the line is chance


def _ends(values: Sequence[dict[str, Any]], unit: str, name: str) -> str:
    """The first point and the last that rests on enough turns, of the first condition."""
    condition = values[0]["condition"]
    own = sorted((row for row in values if row["condition"] == condition), key=lambda row: int(row["at"]))
    solid = [row for row in own if row["turns"] >= FEW] or own
    first, last = solid[0], solid[-1]

    def told(row: dict[str, Any]) -> str:
        value = share_estimate(row["accuracy"], row["low"], row["high"])
        at = formats.plural(row["at"], "operation") if unit == "operations" else f"turn {row['at']}"
        return f"{value} at {at} (n {formats.plural(row['turns'], 'turn')})"

    if first is last:
        return f"{name} of {condition}: {told(first)}"
    return f"{name} of {condition}: {told(first)}, {told(last)}"


RUNGS = {
    "exact": "exact",
    "numerical": "numerical",
    "declared": "declared unit",
    "unit_agnostic": "unit forgiven",
    "sign_agnostic": "sign forgiven",
    "scale_and_sign": "both forgiven",
}


def _ladder(summary: Summary, found: ConversationSummary, names: dict[str, str]) -> list[Chart]:
    """The same answers under rules from the strictest to the most forgiving."""
    values, table = _rungs(summary, found, names)
    if not values:
        return []
    heads = {"condition": "condition", "reading": "reading", "rate": "accuracy", "low": "low", "high": "high"}
    heads |= {"forgiven": "right here, not numerically", "turns": "turns", "trivial": "best trivial answerer"}
    told = tooltip(heads | {"words": "forgives"}, percent=("rate", "low", "high", "trivial"))
    readings = list(dict.fromkeys(str(row["reading"]) for row in values))
    x = number("rate", "share of turns that are right, in percent", domain=(0, 1), percent=True)
    y = named("reading", readings)
    tick = {"mark": {"type": "tick", "style": "fit", "thickness": 2},
            "encoding": {"x": {**x, "field": "trivial"}, "y": y, "tooltip": told}}  # fmt: skip
    body = facets(values, [tick, *points(x, y, None, told)], field="condition", height=ROW * len(readings))
    level = formats.level(found.level)
    chart = made(
        "ladder-of-matches",
        _ladder_title(summary, found),
        f"One panel a condition, one line a reading: accuracy as a point with its {level} interval; the tick is what "
        "the best of the trivial answerers gets by the same rule.",
        body,
        ("condition", "reading", f"accuracy [{level} interval]", "right", "right and not numerical", "turns",
         "best trivial answerer", "forgives"),
        table,
    )  # fmt: skip
    return [chart]


def _rungs(summary: Summary, found: ConversationSummary, names: dict[str, str]) -> tuple[Values, Table]:
    values: Values = []
    table: Table = []
    for order, one in enumerate(found.conditions):
        for rung in one.ladder:
            rate, reading = one.rate(rung.metric), RUNGS.get(rung.metric, rung.metric)
            low, high = _interval(summary, one, rung)
            known = [null for null in rate.nulls.values() if null is not None] if rate is not None else []
            trivial = max(known, default=None)
            values.append({
                "condition": names[one.condition], "condition_order": order, "reading": reading, "rate": rung.rate,
                "low": low, "high": high, "trivial": trivial, "right": rung.right, "forgiven": rung.forgiven,
                "turns": rung.n, "words": rung.forgives,
            })  # fmt: skip
            counts = map(formats.count, (rung.right, rung.forgiven, rung.n))
            told = share_estimate(rung.rate, low, high)
            table.append((one.condition, reading, told, *counts, formats.share(trivial), rung.forgives))
    return values, table


def _interval(summary: Summary, one: ConversationResult, rung: Rung) -> tuple[float | None, float | None]:
    """Of the rate of that name; else of the metric's mean over conversations, where that is the same number."""
    rate = one.rate(rung.metric)
    result = next((own for own in summary.results if (own.condition, own.metric) == (one.condition, rung.metric)), None)
    if rate is not None:
        return rate.estimate.low, rate.estimate.high
    mean = result.mean if result is not None else None
    if mean is None or mean.value is None or rung.rate is None or not math.isclose(mean.value, rung.rate):
        return None, None
    return mean.low, mean.high


def _ladder_title(summary: Summary, found: ConversationSummary) -> str:
    first = next(one for one in found.conditions if one.ladder)
    rungs = {rung.metric: rung for rung in first.ladder}
    told = []
    for metric in ("numerical", "declared", "scale_and_sign"):
        rung = rungs.get(metric)
        if rung is not None:
            low, high = _interval(summary, first, rung)
            told.append(f"{share_estimate(rung.rate, low, high)} {RUNGS[metric]}")
    return f"{first.condition} is right in {', '.join(told)} (n {formats.plural(first.turns, 'turn')})"
