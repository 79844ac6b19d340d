"""Conditions × metrics, and the differences between conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from karat import formats
from karat.analysis import Summary
from karat.analysis.format_metric import POINT_LEGEND, is_point
from karat.analysis.model import Difference, Estimate, MetricInfo, Result
from karat.analysis.verdicts import NO_DIFFERENCE, NOT_TESTED, family_words
from karat.document.blocks import Block, Cell, Column, Group, Note, Row, Span, Table, columns, numbers, words
from karat.document.charts.written import estimated, is_share, signed_estimate, unit_of

__all__ = ["differences", "matrix", "measured", "rests_on", "scale"]

_MOST_REASONS = 6
_MOST_OPEN = 60  # rows of differences: more say less than the chart before them
_WIDE = 3  # metrics, from which on a table takes the whole width


def measured(summary: Summary) -> list[MetricInfo]:
    """The metrics that have a score, without those that the tables of conversations and studies show."""
    own = [part.scorer for part in (summary.conversation, summary.study) if part is not None]
    known = {one.metric for one in summary.results if one.n_answers}
    return [info for info in summary.metrics if info.key in known and info.scorer not in own]


def matrix(summary: Summary, metrics: Sequence[MetricInfo]) -> Iterator[Block]:
    """Conditions × metrics: each mean with its interval, drawn and written."""
    if not metrics:
        return
    heads = [Column(text="condition", number=False)]
    heads += [Column(text=info.key, told=scale(info)) for info in metrics]
    rows = tuple(
        Row(name=name, color=at, cells=tuple(_mean(summary, info, name, at) for info in metrics))
        for at, name in enumerate(summary.conditions)
    )
    caption = f"Means with their {formats.level(summary.level)} intervals"
    yield Table(
        caption=caption,
        columns=tuple(heads),
        rows=rows,
        legend=_matrix_legend(summary, metrics),
        matrix=True,
        slim=len(metrics) < _WIDE,
    )


def _matrix_legend(summary: Summary, metrics: Sequence[MetricInfo]) -> str:
    unit = unit_of(summary)
    parts = [
        f"The mean over {_averaged(summary, metrics, unit)}; repetitions of a {unit} are averaged first.",
        f"The interval says where it would lie for other {unit}s of this kind. A line is as long as its interval.",
    ]
    parts += [POINT_LEGEND] if any(is_point(one.mean) for one in summary.results) else []
    if any(info.offline for info in metrics):
        parts.append("Offline: scored by a rule, not by a model that understands.")
    return " ".join(parts)


def _averaged(summary: Summary, metrics: Sequence[MetricInfo], unit: str) -> str:
    """How many questions a mean rests on: of those that were asked, the ones that have a score."""
    keys = {info.key for info in metrics}
    counts = sorted({one.n_questions for one in summary.results if one.metric in keys})
    asked = formats.plural(summary.samples, unit)
    if counts == [summary.samples]:
        return asked
    few, most = formats.count(counts[0]), formats.count(counts[-1])
    return f"the {unit}s that have a score, {few if few == most else f'{few} to {most}'} of {asked}"


def scale(info: MetricInfo) -> str:
    """From where to where a metric goes, and what one must know to read it."""
    ends = "" if info.low is None or info.high is None else f"{formats.brief(info.low)} to {formats.brief(info.high)}"
    parts = ["share, in percent" if is_share(info) else ends]
    parts += ["lower is better"] if info.direction == "lower" else []
    parts += ["offline"] if info.offline else []
    return ", ".join(part for part in parts if part)


def _mean(summary: Summary, info: MetricInfo, condition: str, color: int) -> Cell:
    found = summary.result(condition, info.key)
    if found is None:
        return Cell(text=formats.UNKNOWN)
    value, interval = _split(estimated(found.mean, percent=is_share(info)))
    return Cell(text=value, below=interval, drawn=_drawn(summary, info, found.mean, color))


def _split(told: str) -> tuple[str, str]:
    """A written estimate as its value and its interval."""
    value, bracket, rest = told.partition(" [")
    return value, f"[{rest}" if bracket else ""


def _drawn(summary: Summary, info: MetricInfo, mean: Estimate, color: int) -> Span | None:
    if mean.value is None:
        return None
    known = [one.mean for one in summary.results if one.metric == info.key]
    values = [value for one in known for value in (one.value, one.low, one.high) if value is not None]
    low, high = (min(values), max(values)) if info.low is None or info.high is None else (info.low, info.high)
    return Span(value=mean.value, low=mean.low, high=mean.high, start=low, end=high, color=color)


def rests_on(summary: Summary, metrics: Sequence[MetricInfo]) -> Iterator[Block]:
    """What each mean rests on: how many, how it was made, what is missing."""
    if not metrics:
        return
    missing = any(one.n_missing for one in summary.results)
    unit = f"{unit_of(summary)}s"
    heads = ["condition", "mean", unit, "answers", "missing", *(["bounds"] if missing else []), "method"]
    rows: list[Row | Group] = []
    for info in metrics:
        rows.append(Group(name=info.key, note=", ".join(filter(None, (f"by {info.scorer}", scale(info))))))
        for at, name in enumerate(summary.conditions):
            found = summary.result(name, info.key)
            if found is not None:
                rows.append(Row(name=name, color=at, cells=_counts(info, found, missing=missing)))
    legend = "Bounds: the mean if every missing score were the worst, or the best, of the scale. " if missing else ""
    yield Table(
        caption="What each mean rests on",
        columns=columns(*heads, text=("method",)),
        rows=tuple(rows),
        legend=f"{legend}Missing: planned trials without this number; a fault is never counted as a wrong answer.",
        folded=True,
    )
    yield from _reasons(summary)


def _counts(info: MetricInfo, found: Result, *, missing: bool) -> tuple[Cell, ...]:
    mean, percent = found.mean, is_share(info)
    low, high = (found.best, found.worst) if info.direction == "lower" else (found.worst, found.best)
    write = formats.share if percent else formats.number
    bounds = f"{write(low.value)} … {write(high.value)}" if found.n_missing else ""
    lost = Cell(text=formats.count(found.n_missing), tone="bad" if found.n_missing else "quiet")
    method = f"{mean.method}, {formats.level(mean.level)}, n {formats.count(mean.n)}"
    return (
        Cell(text=estimated(mean, percent=percent)),
        *numbers(formats.count(found.n_questions), formats.count(found.n_answers)),
        lost,
        *(numbers(bounds) if missing else ()),
        words(method, tone="quiet"),
    )


def _reasons(summary: Summary) -> Iterator[Block]:
    """Why an interval is a point, or a number is not known; each reason once."""
    found: dict[str, dict[str, None]] = {}
    for one in summary.results:
        if one.mean.reason:
            found.setdefault(one.mean.reason, {})[f"{one.metric} of {one.condition}"] = None
    if found:
        told = (f"{', '.join(places)}: {reason}." for reason, places in list(found.items())[:_MOST_REASONS])
        yield Note(texts=tuple(told), tone="quiet")


def differences(summary: Summary) -> Iterator[Block]:
    """Every pair of conditions on every metric that is tested."""
    tested = [one for one in summary.differences if one.verdict != NOT_TESTED]
    if not tested:
        return
    unit = unit_of(summary)
    heads = (
        Column(text="second − first", number=False),
        Column(text="difference"),
        Column(text="interval"),
        Column(text="p (Holm)"),
        Column(text="d"),
        Column(text=f"{unit}s"),
        Column(text="verdict", number=False),
    )
    rows: list[Row | Group] = []
    for info in summary.metrics:
        own = [one for one in tested if one.metric == info.key]
        if own:
            rows.append(Group(name=info.key, note=scale(info)))
            rows += [_difference(one, info, own) for one in own]
    yield Table(
        caption="Pairs of conditions: differences with their intervals",
        columns=heads,
        rows=tuple(rows),
        legend=_differences_legend(summary, tested, unit),
        folded=len(rows) > _MOST_OPEN,
    )


def _difference(one: Difference, info: MetricInfo, alike: Sequence[Difference]) -> Row:
    found, percent = one.estimate, is_share(info)
    value, interval = _split(signed_estimate(found, percent=percent))
    ends = [abs(end) for each in alike for end in (each.estimate.value, each.estimate.low, each.estimate.high) if end]
    reach = max(ends, default=1.0) * 1.05
    drawn = None
    if found.value is not None:
        drawn = Span(value=found.value, low=found.low, high=found.high, start=-reach, end=reach, zero=0.0)
    lost = one.lost_a + one.lost_b + one.lost_both
    return Row(
        name=f"{one.b} − {one.a}",
        cells=(
            Cell(text=value),
            Cell(text=interval or formats.UNKNOWN, drawn=drawn),
            *numbers(formats.p_value(one.p_adjusted), formats.number(one.effect)),
            Cell(text=formats.count(one.n_pairs), below=f"{formats.count(lost)} lost" if lost else ""),
            words(one.verdict, tone=_tone(one), below=one.reason or ""),
        ),
    )


def _tone(one: Difference) -> Literal["good", "quiet", ""]:
    if one.winner is not None:
        return "good"
    return "quiet" if one.verdict == NO_DIFFERENCE else ""


def _differences_legend(summary: Summary, tested: Sequence[Difference], unit: str) -> str:
    level = formats.level(summary.level)
    parts = [
        f"Second minus first, paired by {unit}, with {level} intervals. d: the difference over its standard deviation.",
        f"p after Holm over {formats.plural(len(tested), 'comparison')}.",
    ]
    if len(tested) > 1:
        parts.append("An interval stands for its comparison alone, so it may leave out 0 where p shows no difference.")
    if any(one.verdict == NO_DIFFERENCE for one in tested):
        parts.append("“No difference shown” does not mean that there is none.")
    parts += [family_words(summary.family)] if summary.family is not None and summary.family.left_out else []
    parts += [POINT_LEGEND] if any(is_point(one.estimate) for one in tested) else []
    others = len(summary.differences) - len(tested)
    if others:
        parts.append(f"{formats.plural(others, 'further reading')} of the same answers not tested.")
    return " ".join(parts)
