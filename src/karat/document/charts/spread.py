"""Where the scores lie, and the questions on which conditions are furthest apart."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from karat import formats
from karat.analysis import Summary
from karat.analysis.model import MetricInfo, Result, SampleColumn
from karat.document.charts.chart import Chart, labels, made, slug
from karat.document.charts.pieces import ROW, WIDTH, beside, facets, named, number, tooltip
from karat.document.charts.written import group_label, is_share, unit_of
from karat.kinds import of

__all__ = ["gap_chart", "spread_charts"]

STEPS = 11  # the most steps of a scale that are shown one by one
BINS = 20
SHOWN = 25  # questions


def spread_charts(summary: Summary, group: Sequence[MetricInfo], names: dict[str, str]) -> list[Chart]:
    """Answers by step of the scale; of metrics without steps, questions by their mean.

    A conversation has a mean over its turns, which lies between the steps: of these the first metric is shown.
    """
    if of(summary.kind).by_turn:
        return _histogram(summary, group[0], names) if group[0] is summary.metrics[0] else []
    stepped = [info for info in group if _steps(summary, info)]
    found = [_by_step(summary, stepped, names)] if stepped else []
    return found + [chart for info in group if info not in stepped for chart in _histogram(summary, info, names)]


def _steps(summary: Summary, info: MetricInfo) -> list[str]:
    """The steps of the scale; none where there are too many, or where values lie between them."""
    results = _with_answers(summary, info)
    steps = sorted({step for one in results for step in one.distribution or {}}, key=int)
    return steps if 0 < len(steps) <= STEPS else []


def _with_answers(summary: Summary, info: MetricInfo) -> list[Result]:
    return [one for one in summary.results if one.metric == info.key and one.n_answers]


def _by_step(summary: Summary, group: Sequence[MetricInfo], names: dict[str, str]) -> Chart:
    keys = labels(info.key for info in group)
    values: list[dict[str, Any]] = []
    table = []
    for order, info in enumerate(group):
        for one in _with_answers(summary, info):
            below = 0.0
            for step in _steps(summary, info):
                count = (one.distribution or {}).get(step, 0)
                share = count / one.n_answers
                values.append({
                    "metric": keys[info.key], "metric_order": order, "condition": names[one.condition], "score": step,
                    "from": below, "to": below + share, "share": share, "answers": count, "of": one.n_answers,
                })  # fmt: skip
                below += share
                table.append((info.key, one.condition, step, formats.count(count), formats.share(share)))
    told = tooltip(
        {"metric": "metric", "condition": "condition", "score": "score", "share": "share", "answers": "answers",
         "of": "of"}, percent=("share",)
    )  # fmt: skip
    steps = sorted({row["score"] for row in values}, key=int)
    color: dict[str, Any] = {
        "field": "score", "type": "ordinal", "sort": None, "scale": {"domain": steps},
        "legend": {"orient": "top", "title": "score", "columns": len(steps)},
    }  # fmt: skip
    shown = [names[name] for name in summary.conditions]
    x = number("from", "share of answers, in percent", domain=(0, 1), percent=True)
    places = {"x": x, "x2": {"field": "to"}, "y": named("condition", shown)}
    bar = {"mark": {"type": "bar"}, "encoding": {**places, "color": color, "tooltip": told}}
    return made(
        slug("scores", group_label(group)),
        _steps_title(summary, group[0]),
        "One panel a metric, one bar a condition: the shares of answers on each step of the scale, lowest on the left.",
        facets(values, [bar], field="metric", height=ROW * len(shown)),
        ("metric", "condition", "score", "answers", "share of answers"),
        table,
    )


def _steps_title(summary: Summary, info: MetricInfo) -> str:
    told = []
    for one in _with_answers(summary, info)[:3]:
        best = one.top_share.value
        told.append(f"{one.condition} {formats.share(best)} of {formats.plural(one.n_answers, 'answer')}")
    top = info.low if info.direction == "lower" else info.high
    end = "right" if is_share(info) else f"at the best step, {top:g}" if top is not None else "at the best"
    return f"{info.key} {end}: {'; '.join(told)}" if told else info.key


def _histogram(summary: Summary, info: MetricInfo, names: dict[str, str]) -> list[Chart]:
    columns = [one for one in _columns(summary) if one.metric == info.key]
    means = {one.condition: [value for value in one.mean if value is not None] for one in columns}
    every = [value for found in means.values() for value in found]
    if not every:
        return []
    unit, percent = unit_of(summary), is_share(info)
    ends = (0.0, 1.0) if percent else (min(every), max(every))
    values, table = _binned(means, ends, names)
    heads = {"condition": "condition", "start": "from", "end": "to", "questions": f"{unit}s", "of": "of"}
    told = tooltip(heads, percent=("start", "end") if percent else ())
    scale = "in percent" if percent else "in the metric's own unit"
    x = number("start", f"mean of a {unit}, {scale}", percent=percent)
    bar = {"mark": {"type": "bar", "binSpacing": 1},
           "encoding": {"x": {**x, "bin": {"binned": True}}, "x2": {"field": "end"},
                        "y": number("questions", f"{unit}s", zero=True), "tooltip": told}}  # fmt: skip
    write = formats.share if percent else formats.number
    counted = formats.plural(max(map(len, means.values())), unit)
    chart = made(
        slug("scores", info.key),
        f"{info.key}: means of {unit}s lie between {write(min(every))} and {write(max(every))}, their median is "
        f"{write(median(every))} ({counted} a condition)",
        f"A histogram for each condition: how many {unit}s have a mean in each interval.",
        facets(values, [bar], field="condition", height=4 * ROW),
        ("condition", f"mean of the {unit}", f"{unit}s"),
        table,
    )
    return [chart]


def _binned(
    means: dict[str, list[float]], ends: tuple[float, float], names: dict[str, str]
) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
    low, high = ends
    bins = BINS if high > low else 1
    wide = (high - low) / bins or 1.0
    values: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for order, (condition, found) in enumerate(means.items()):
        counts = [0] * bins
        for value in found:
            counts[max(0, min(bins - 1, int((value - low) / wide)))] += 1
        for at, count in enumerate(counts):
            start, end = low + at * wide, low + (at + 1) * wide
            values.append({"condition": names[condition], "condition_order": order, "start": start, "end": end,
                           "questions": count, "of": len(found)})  # fmt: skip
            if count:
                table.append((condition, formats.interval(start, end, digits=3), formats.count(count)))
    return values, table


def _columns(summary: Summary) -> tuple[SampleColumn, ...]:
    return summary.table_of_samples.columns if summary.table_of_samples is not None else ()


def gap_chart(summary: Summary, info: MetricInfo, names: dict[str, str]) -> list[Chart]:
    """Questions with the largest gap between two conditions; nothing for one condition, or without a gap."""
    columns = {one.condition: one for one in _columns(summary) if one.metric == info.key}
    table = summary.table_of_samples
    if table is None or len(columns) < 2:
        return []
    found = []
    for at, name in enumerate(table.ids):
        scored = {condition: mean for condition, one in columns.items() if (mean := one.mean[at]) is not None}
        if len(scored) > 1:
            found.append((max(scored.values()) - min(scored.values()), table.positions[at], name, scored))
    found.sort(key=lambda one: (-one[0], one[1]))
    if not found or found[0][0] <= 0:
        return []  # a picture of no gap at all shows nothing; the differences say it
    return [_gaps(summary, info, names, found)]


Gap = tuple[float, int, str, dict[str, float]]


def _gaps(summary: Summary, info: MetricInfo, names: dict[str, str], found: list[Gap]) -> Chart:
    top = [one for one in found if one[0] > 0][:SHOWN]
    ids = labels(name for _, _, name, _ in top)
    places = {condition: at for at, condition in enumerate(summary.conditions)}
    spans = [
        {"question": ids[name], "least": min(scored.values()), "most": max(scored.values()), "gap": gap}
        for gap, _, name, scored in top
    ]
    dots = [
        {"question": ids[name], "condition": names[condition], "place": places[condition], "mean": mean, "gap": gap}
        for gap, _, name, scored in top
        for condition, mean in scored.items()
    ]
    percent, questions = is_share(info), list(ids.values())
    offset, color = beside("condition", len(places))
    bounds = (info.low, info.high) if info.low is not None and info.high is not None else None
    title = "mean share of answers, in percent" if percent else "mean, in points of the score"
    x = number("mean", title, domain=bounds, percent=percent)
    told = tooltip({"question": unit_of(summary), "condition": "condition", "mean": "mean", "gap": "gap"})
    y = named("question", questions, title=unit_of(summary))
    layers = [
        {"data": {"values": spans}, "mark": {"type": "rule", "style": "apart"},
         "encoding": {"x": {**x, "field": "least"}, "x2": {"field": "most"}, "y": y}},
        {"data": {"values": dots}, "mark": {"type": "point"},
         "encoding": {"x": x, "y": y, "yOffset": offset, "color": color, "shape": {**color}, "tooltip": told}},
    ]  # fmt: skip
    apart = sum(gap > 0 for gap, *_ in found)
    of = formats.plural(len(found), unit_of(summary))
    widest = formats.share(top[0][0]) if percent else formats.number(top[0][0])
    some = f"; the {len(top)} widest gaps" if apart > len(top) else ""
    return made(
        slug("gaps", info.key),
        f"{info.key}: conditions differ on {formats.count(apart)} of {of}, by at most {widest} on {top[0][2]}{some}",
        f"One line a {unit_of(summary)}, the widest gap first: the means of conditions as points, the gap as a line.",
        {"width": WIDTH, "height": ROW * len(questions), "layer": layers},
        (unit_of(summary), "condition", "mean", "gap"),
        [(name, condition, formats.number(mean), formats.number(gap))
         for gap, _, name, scored in top for condition, mean in scored.items()],
    )  # fmt: skip
