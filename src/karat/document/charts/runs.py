"""Charts of every run: means, differences, where the scores lie, the questions on which conditions differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from karat import formats
from karat.analysis import Summary
from karat.analysis.model import Difference, MetricInfo, Result
from karat.analysis.verdicts import said
from karat.document.charts.chart import Chart, apart, labels, made, slug
from karat.document.charts.pieces import (
    ROW,
    colored,
    facets,
    named,
    number,
    points,
    reference,
    tooltip,
)
from karat.document.charts.spread import gap_chart, spread_charts
from karat.document.charts.written import estimated, group_label, is_share, signed_estimate, unit_of

__all__ = ["run_charts"]

HALF = 20  # columns of a name in a pair
TOGETHER = 8  # metrics in one chart; further ones go to the next


def run_charts(summary: Summary) -> tuple[Chart, ...]:
    """Means, differences and distributions by scale, then the gaps between conditions."""
    metrics = [info for info in summary.metrics if _measured(summary, info)]
    if not metrics:
        return ()
    names = labels(summary.conditions)
    found: list[Chart] = []
    for group in _groups(metrics):
        found.append(_means(summary, group, names))
        found += _differences(summary, group, names)
    for group in _groups(metrics):
        found += spread_charts(summary, group, names)
    return (*found, *gap_chart(summary, metrics[0], names))


def _measured(summary: Summary, info: MetricInfo) -> bool:
    return any(one.metric == info.key and one.n_answers for one in summary.results)


def _groups(metrics: Sequence[MetricInfo]) -> Iterator[list[MetricInfo]]:
    """Metrics that can share an axis: of one scale, a few at a time."""
    scales: dict[tuple[Any, ...], list[MetricInfo]] = {}
    for info in metrics:
        bounded = info.low is not None and info.high is not None
        key = (info.kind == "share", info.low, info.high) if bounded else (info.key,)
        scales.setdefault(key, []).append(info)
    for alike in scales.values():
        for start in range(0, len(alike), TOGETHER):
            yield alike[start : start + TOGETHER]


def _means(summary: Summary, group: Sequence[MetricInfo], names: dict[str, str]) -> Chart:
    first, percent, keys = group[0], is_share(group[0]), labels(info.key for info in group)
    values: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for order, info in enumerate(group):
        for result in _results(summary, info):
            mean = result.mean
            values.append({
                "metric": keys[info.key], "metric_order": order, "condition": names[result.condition],
                "mean": mean.value, "low": mean.low, "high": mean.high,
                "questions": result.n_questions, "answers": result.n_answers, "missing": result.n_missing,
            })  # fmt: skip
            counts = (result.n_questions, result.n_answers, result.n_missing)
            table.append((info.key, result.condition, estimated(mean, percent=percent), *map(formats.count, counts)))
    unit = f"{unit_of(summary)}s"
    told = tooltip(
        {"metric": "metric", "condition": "condition", "mean": "mean", "low": "low", "high": "high",
         "questions": unit, "answers": "answers", "missing": "missing"},
        percent=("mean", "low", "high") if percent else (),
    )  # fmt: skip
    shown = [names[name] for name in summary.conditions]
    x = number("mean", _axis(group, "mean"), domain=_ends(first), percent=percent)
    layers = points(x, named("condition", shown), colored("condition", shown, legend=False), told)
    body = facets(values, layers, field="metric", height=ROW * len(shown))
    level = formats.level(summary.level)
    return made(
        slug("means", group_label(group)),
        _means_title(summary, first),
        f"One panel a metric, one line a condition: the mean over {unit} as a point, its {level} interval as a bar.",
        body,
        ("metric", "condition", f"mean [{level} interval]", unit, "answers", "missing"),
        table,
    )


def _results(summary: Summary, info: MetricInfo) -> list[Result]:
    return [one for one in summary.results if one.metric == info.key]


def _means_title(summary: Summary, info: MetricInfo) -> str:
    """The best mean, and the worst beside it."""
    found = [one for one in _results(summary, info) if one.mean.value is not None]
    if not found:
        return f"{info.key}: no mean is known"
    ranked = sorted(found, key=lambda one: one.mean.value or 0.0, reverse=info.direction != "lower")
    best, worst, percent = ranked[0], ranked[-1], is_share(info)
    over = formats.plural(best.n_questions, unit_of(summary))
    offline = ", offline scores" if info.offline else ""
    if len(ranked) == 1:
        return f"{info.key} of {best.condition}: {estimated(best.mean, percent=percent)} over {over}{offline}"
    if best.mean.value == worst.mean.value:
        alike = formats.plural(len(ranked), "condition")
        return f"{info.key} is the same under {alike}, {estimated(best.mean, percent=percent)} over {over}{offline}"
    most, least = ("lowest", "highest") if info.direction == "lower" else ("highest", "lowest")
    return (
        f"{info.key} is {most} under {best.condition}, {estimated(best.mean, percent=percent)} over {over}{offline}; "
        f"{least} under {worst.condition}, {estimated(worst.mean, percent=percent)}"
    )


def _axis(group: Sequence[MetricInfo], what: str) -> str:
    first = group[0]
    if is_share(first):
        return f"{what} share of answers, in percent"
    if first.low is None or first.high is None:
        return f"{what}, in the metric's own unit"
    return f"{what} score, {first.low:g} to {first.high:g}"


def _ends(info: MetricInfo) -> tuple[float, float] | None:
    return (info.low, info.high) if info.low is not None and info.high is not None else None


def _differences(summary: Summary, group: Sequence[MetricInfo], names: dict[str, str]) -> list[Chart]:
    """A forest plot: every pair of conditions on every metric of the group."""
    keys = labels(info.key for info in group)
    found = [one for info in group for one in summary.differences if one.metric == info.key]
    known = [one for one in found if one.estimate.value is not None]
    if not known:
        return []
    percent, pairs, unit = is_share(group[0]), _pairs(found, names), f"{unit_of(summary)}s"
    values = [_difference(one, keys, pairs) for one in known]
    table = [_difference_row(one, pairs, percent=percent) for one in found]
    told = tooltip(
        {"metric": "metric", "pair": "conditions", "difference": "difference", "low": "low", "high": "high",
         "p": "p (Holm)", "questions": unit, "words": "verdict"},
        percent=("difference", "low", "high") if percent else (),
    )  # fmt: skip
    reach = _reach(values)
    scale = "percentage points" if percent else "points of the score"
    x = number("difference", f"difference, in {scale}", domain=(-reach, reach), percent=percent)
    y = named("pair", list(pairs.values()))
    layers = [reference(x=0), *points(x, y, None, told)]
    body = facets(values, layers, field="metric", height=ROW * max(2, len(pairs)))
    level = formats.level(summary.level)
    chart = made(
        slug("differences", group_label(group)),
        said(found, group, unit=unit_of(summary)),
        f"A forest plot: one line a pair of conditions, second minus first, as a point with its {level} interval; "
        "the dashed line is no difference.",
        body,
        ("metric", "second − first", f"difference [{level} interval]", "p (Holm)", unit, "verdict"),
        table,
    )
    return [chart]


def _pairs(found: Sequence[Difference], names: dict[str, str]) -> dict[tuple[str, str], str]:
    """Both names of a pair, each cut so that the other is seen as well."""
    pairs = list(dict.fromkeys((one.a, one.b) for one in found))
    said = [f"{formats.middle(names[b], HALF)} − {formats.middle(names[a], HALF)}" for a, b in pairs]
    return dict(zip(pairs, apart(said), strict=True))


def _difference(one: Difference, keys: dict[str, str], pairs: dict[tuple[str, str], str]) -> dict[str, Any]:
    found = one.estimate
    return {
        "metric": keys[one.metric],
        "metric_order": list(keys).index(one.metric),
        "pair": pairs[one.a, one.b],
        "difference": found.value,
        "low": found.low,
        "high": found.high,
        "p": one.p_adjusted,
        "questions": one.n_pairs,
        "words": formats.excerpt(one.verdict, 80),
    }


def _difference_row(one: Difference, pairs: dict[tuple[str, str], str], *, percent: bool) -> tuple[str, ...]:
    told = signed_estimate(one.estimate, percent=percent)
    return (
        one.metric,
        pairs[one.a, one.b],
        told,
        formats.p_value(one.p_adjusted),
        formats.count(one.n_pairs),
        one.verdict,
    )


def _reach(values: Sequence[dict[str, Any]]) -> float:
    """Half the axis: no difference stands in the middle."""
    ends = [abs(value) for row in values for value in (row["difference"], row["low"], row["high"]) if value is not None]
    widest = max([end for end in ends if math.isfinite(end)], default=0.0)
    return 1.08 * widest if widest else 1.0
