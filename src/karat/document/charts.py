"""The charts of a run, for pages and files: the distribution of scores, the questions on which
conditions differ.

Means and differences are drawn by their tables; the charts of a kind come with its sections. `svg`
draws a chart, `png` with the extra `plots`. A chart only draws numbers; it computes none.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from math import isnan, nan
from statistics import median

import msgspec

from karat import formats
from karat.analysis import Summary
from karat.analysis.model import MetricInfo, Result
from karat.blocks import (
    Axis,
    Block,
    Chart,
    Column,
    Count,
    Curve,
    Fold,
    Group,
    Line,
    Mark,
    Number,
    Plane,
    Point,
    Row,
    Rows,
    Share,
    Table,
    columns,
    forest,
    labels,
    slug,
)
from karat.document.ink import DARK, LIGHT
from karat.document.render.svg import render_svg
from karat.errors import MissingExtra
from karat.kinds import of

_STEPS = 11  # the most steps of a scale that are shown one by one
_BINS = 20
_SHOWN = 25  # questions
_SCALE = 2.0  # PNG pixels per chart pixel: sharp on paper and on dense screens


def charts(summary: Summary) -> tuple[Chart, ...]:
    """Every chart of a run, in the order of its report; none if nothing was scored."""
    from karat.document.run import document

    return tuple(chart for section in document(summary).sections for chart in _of(section.blocks))


def _of(blocks: Iterable[Block]) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, Fold):
            yield from _of(block.blocks)
        elif isinstance(block, Table) and block.chart:
            drawn = forest(block)
            if any(
                line.marks
                for panel in drawn.panels
                if isinstance(panel, Rows)
                for line in panel.lines
            ):
                yield drawn


def svg(chart: Chart, *, dark: bool = False) -> str:
    """The chart as SVG text, named and described for screen readers."""
    return render_svg(chart, ink=DARK if dark else LIGHT, framed=True)


def png(chart: Chart, *, dark: bool = False, scale: float = _SCALE) -> bytes:
    """The chart as a PNG. Raises MissingExtra without the extra `plots`."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra("plots", "drawing a chart as PNG") from error

    drawn: bytes = vl_convert.svg_to_png(svg(chart, dark=dark), scale=scale)
    return drawn


def spread(summary: Summary) -> Iterator[Chart]:
    """Answers by step of the scale; for metrics without steps, questions by their mean.

    If rates are over turns, means are between the steps: then only the first metric is shown.
    """
    kind = of(summary.kind)
    metrics = [info for info in summary.metrics if _scored(summary, info)]
    if not kind.compared or not metrics:
        return
    if kind.by_turn:
        metrics = [info for info in metrics[:1] if info is summary.metrics[0]]
    alike: dict[tuple[str, ...], list[MetricInfo]] = {}
    for info in metrics:
        steps = {step for result in _scored(summary, info) for step in result.distribution or {}}
        if 0 < len(steps) <= _STEPS and not kind.by_turn:
            alike.setdefault(tuple(sorted(steps, key=int)), []).append(info)
        else:  # too many, or values are between them
            yield from _histogram(summary, info, kind.unit)

    for stepped, group in alike.items():
        yield _by_step(summary, group, stepped)


def _scored(summary: Summary, info: MetricInfo) -> list[Result]:
    return [result for result in summary.results if result.metric == info.key and result.n_answers]


def _by_step(summary: Summary, group: Sequence[MetricInfo], steps: tuple[str, ...]) -> Chart:
    names = labels(summary.conditions)
    axis = Axis(title="share of answers", start=0.0, end=1.0, percent=True)
    rows: list[Row | Group] = []
    panels = []
    for info in group:
        lines = []
        rows.append(Group(info.key))
        for result in _scored(summary, info):
            below, marks, cells = 0.0, [], []
            for series, step in enumerate(steps):
                answers = (result.distribution or {}).get(step, 0)
                share = answers / result.n_answers
                text = f"{step}: {formats.plural(answers, 'answer')} ({formats.share(share)})"
                marks.append(Mark(start=below, value=below + share, series=series, label=text))
                cells.append(Count(answers, below=formats.share(share)))
                below += share

            lines.append(Line(name=names[result.condition], marks=tuple(marks)))
            rows.append(Row(name=result.condition, cells=tuple(cells)))

        panels.append(Rows(title=info.key, axis=axis, lines=tuple(lines)))

    first = group[0]
    shares = []
    if len(group) == 1:
        name = first.key
    else:
        name = f"{first.key} and {len(group) - 1} more"

    for result in _scored(summary, first)[:3]:
        scored = formats.plural(result.n_answers, "answer")
        shares.append(f"{result.condition} {formats.share(result.top_share.value)} of {scored}")

    top = first.low if first.direction == "lower" else first.high
    if first.percent:
        end = "right"
    elif top is not None:
        end = f"at the best step, {formats.brief(top)}"
    else:
        end = "at the best"

    caption = "Answers on each step of the scale"
    return Chart(
        name=slug("scores", name),
        title=f"{first.key} {end}: {'; '.join(shares)}",
        description="One panel per metric, one bar per condition: the shares of answers on each "
        "step of the scale, lowest on the left.",
        panels=tuple(panels),
        table=Table(
            caption=caption,
            columns=columns("condition", *(Column(step) for step in steps)),
            rows=tuple(rows),
        ),
        legend=steps,
        ordered=True,
        detail=True,
    )


def _histogram(summary: Summary, info: MetricInfo, unit: str) -> Iterator[Chart]:
    table = summary.table_of_samples
    means = {}
    for column in table.columns if table is not None else ():
        if column.metric == info.key:
            means[column.condition] = [value for value in column.mean if value is not None]

    every = [value for values in means.values() for value in values]
    if not every:
        return
    if info.percent:
        low, high = (0.0, 1.0)
    else:
        low = min(every)
        high = max(every)

    bins = _BINS if high > low else 1
    wide = (high - low) / bins or 1.0
    write = formats.share if info.percent else formats.number
    rows: list[Row | Group] = []
    panels = []
    for condition, values in means.items():
        counts = [0] * bins
        for value in values:
            counts[max(0, min(bins - 1, int((value - low) / wide)))] += 1
        places = [
            (low + at * wide, low + (at + 1) * wide, count) for at, count in enumerate(counts)
        ]
        bars = tuple(
            Point(
                x=start,
                y=count,
                left=start,
                right=end,
                label=f"{write(start)} to {write(end)}: {formats.plural(count, unit)}",
            )
            for start, end, count in places
            if count
        )
        title = f"mean of a {unit}" + ("" if info.percent else ", in the metric's own unit")
        panels.append(
            Plane(
                title=labels([condition])[condition],
                x=Axis(title=title, start=low, end=low + bins * wide, percent=info.percent),
                y=Axis(title=f"{unit}s", start=0.0, whole=True),
                curves=(Curve(points=bars, form="bars"),),
            )
        )
        rows.append(Group(condition))
        rows += [
            Row(name=formats.interval(start, end, digits=3), cells=(Count(count),))
            for start, end, count in places
            if count
        ]

    yield Chart(
        name=slug("scores", info.key),
        title=f"{info.key}: means of {unit}s lie between {write(min(every))} and "
        f"{write(max(every))}, their median is {write(median(every))} "
        f"({formats.plural(max(map(len, means.values())), unit)} a condition)",
        description=(
            f"A histogram for each condition: how many {unit}s have a mean in each interval."
        ),
        panels=tuple(panels),
        table=Table(
            caption=f"Means of {unit}s",
            columns=columns(f"mean of the {unit}", f"{unit}s"),
            rows=tuple(rows),
        ),
        detail=True,
    )


def _widths(means: Iterable[Sequence[float | None]]) -> array[float]:
    """Of each question, the gap between the highest and the lowest condition; NaN if fewer than two
    have a score.
    """
    widths = array("d")
    for values in zip(*means, strict=True):
        known = [mean for mean in values if mean is not None]
        if len(known) > 1:
            widths.append(max(known) - min(known))
        else:
            widths.append(nan)

    return widths


def gaps(summary: Summary) -> Iterator[Chart]:
    """Questions with the largest gap between two conditions, on the first metric that has a
    score.
    """
    table = summary.table_of_samples
    info = next((info for info in summary.metrics if _scored(summary, info)), None)
    if table is None or info is None or not of(summary.kind).compared:
        return
    means = {column.condition: column.mean for column in table.columns if column.metric == info.key}
    widths = _widths(means.values())
    wide = (at for at, width in enumerate(widths) if width > 0)
    # Of a hundred thousand questions only a few are shown, so only these get a dictionary.
    top = [
        (
            widths[at],
            table.ids[at],
            {name: mean for name, values in means.items() if (mean := values[at]) is not None},
        )
        for at in nsmallest(_SHOWN, wide, key=lambda at: (-widths[at], table.positions[at]))
    ]
    if not top:
        return  # a chart without gaps shows nothing; the differences report it
    unit = of(summary.kind).unit
    conditions = list(summary.conditions)
    write, cell = (formats.share, Share) if info.percent else (formats.number, Number)
    ids = labels(name for _, name, _ in top)
    lines = []
    for _, name, scored in top:
        lines.append(
            Line(
                name=ids[name],
                joined=True,
                marks=tuple(
                    Mark(
                        value=mean,
                        series=conditions.index(condition),
                        label=f"{condition} {write(mean)}",
                    )
                    for condition, mean in scored.items()
                ),
            )
        )

    rows = tuple(
        Row(
            name=name, cells=(*(cell(scored.get(condition)) for condition in conditions), cell(gap))
        )
        for gap, name, scored in top
    )
    differing = sum(width > 0 for width in widths)
    compared = sum(not isnan(width) for width in widths)
    if differing > len(top):
        some = f"; the {len(top)} widest gaps"
    else:
        some = ""

    axis = Axis(
        title="mean share of answers" if info.percent else "mean, in points of the score",
        start=info.low,
        end=info.high,
        percent=info.percent,
    )
    yield Chart(
        name=slug("gaps", info.key),
        title=f"{info.key}: conditions differ on {formats.count(differing)} of "
        f"{formats.plural(compared, unit)}, most on {unit} "
        f"{top[0][1]}: {write(top[0][0])}{some}",
        description=(
            f"One line per {unit}, the widest gap first: the means of conditions as points, the "
            f"gap as a line."
        ),
        panels=(Rows(axis=axis, lines=tuple(lines)),),
        table=Table(
            caption=f"Widest gaps on {info.key}",
            columns=columns(unit, *conditions, "gap"),
            rows=rows,
        ),
        legend=tuple(conditions),
        detail=True,
    )


def with_names_apart(blocks: Iterable[Block], taken: set[str]) -> tuple[Block, ...]:
    """The blocks, with charts renamed if conditions or metrics give two the same name."""
    named: list[Block] = []
    for block in blocks:
        if isinstance(block, Chart):
            name = block.name
            again = 1
            while name in taken:
                again += 1
                name = f"{block.name}-{again}"

            taken.add(name)
            named.append(msgspec.structs.replace(block, name=name))
        elif isinstance(block, Fold):
            named.append(Fold(block.title, with_names_apart(block.blocks, taken)))
        else:
            named.append(block)

    return tuple(named)
