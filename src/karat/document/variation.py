"""Where the variation comes from: questions, repetitions, the judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karat import formats
from karat.analysis import Summary
from karat.analysis.model import MetricInfo, Quantity, Result
from karat.document.blocks import Bar, Block, Cell, Column, Group, Note, Row, Table, columns, numbers
from karat.document.charts.written import unit_of
from karat.document.scores import scale

__all__ = ["retried", "variation"]


def variation(summary: Summary, metrics: Sequence[MetricInfo]) -> Iterator[Block]:
    """The parts of the variation, and how reliable they make an answer; the judges of a panel."""
    results = [one for info in metrics for one in summary.results if one.metric == info.key and one.n_answers]
    if not results:
        return
    unit = unit_of(summary)
    judged = any(one.judge_sd.value is not None for one in results)
    stepped = any(one.top_share.value is not None for one in results)
    reliable = any(one.reliability.value is not None for one in results)
    heads = [
        Column(text="condition", number=False),
        Column(text=f"between {unit}s"),
        Column(text="between repetitions"),
    ]
    heads += [Column(text="between judgings")] if judged else []
    heads += [Column(text="best answers")] if stepped else []
    heads += [Column(text="reliable")] if reliable else []
    rows: list[Row | Group] = []
    for info in metrics:
        own = [one for one in results if one.metric == info.key]
        rows += [Group(name=info.key, note=_note(info))] if own else []
        widest = max((part.value or 0.0 for one in own for part in _parts(one)), default=0.0)
        for one in own:
            cells = _cells(one, widest, judged=judged, stepped=stepped, reliable=reliable)
            rows.append(Row(name=one.condition, color=summary.conditions.index(one.condition), cells=cells))
    legend = _legend(unit, judged=judged, stepped=stepped, reliable=reliable)
    yield Table(caption="Parts of the variation", columns=tuple(heads), rows=tuple(rows), legend=legend)
    yield from _unknown(results)
    yield from _panel(summary)


def _note(info: MetricInfo) -> str:
    if info.threshold is None:
        return scale(info)
    bound = "up to" if info.direction == "lower" else "from"
    reliable = f"reliable {bound} {formats.brief(info.threshold)}"
    return ", ".join(filter(None, (scale(info), reliable)))


def _parts(one: Result) -> tuple[Quantity, Quantity, Quantity]:
    return one.between_sd, one.within_sd, one.judge_sd


def _cells(one: Result, widest: float, *, judged: bool, stepped: bool, reliable: bool) -> tuple[Cell, ...]:
    shown = _parts(one) if judged else _parts(one)[:2]
    found = [
        Cell(
            text=formats.number(part.value),
            drawn=Bar(parts=(("spread", part.value / widest),)) if part.value and widest else None,
        )
        for part in shown
    ]
    if stepped:
        found.append(Cell(text=formats.share(one.top_share.value)))
    if reliable:
        found.append(_reliable(one))
    return tuple(found)


def _reliable(one: Result) -> Cell:
    found = one.reliability
    interval = "" if found.low is None else f"[{formats.share(found.low)}, {formats.share(found.high)}]"
    return Cell(text=formats.share(found.value), below=interval)


def _legend(unit: str, *, judged: bool, stepped: bool, reliable: bool) -> str:
    parts = [
        f"Standard deviations, in the metric's own unit. Between {unit}s: of their means.",
        f"Between repetitions: of answers to one {unit}, which is what the agent does differently each time.",
    ]
    parts += ["Between judgings: of one judge on one answer."] if judged else []
    parts += ["Best answers: the share with the best value of the scale."] if stepped else []
    parts += [f"Reliable: the share of {unit}s whose every repetition reached the threshold."] if reliable else []
    return " ".join(parts)


def _unknown(results: Sequence[Result]) -> Iterator[Note]:
    """Each reason for a number that is not known, once."""
    named = ("between", "repetitions", "judgings")
    found = dict.fromkeys(
        f"{name}: {part.reason}"
        for one in results
        for name, part in zip(named, _parts(one), strict=True)
        if part.value is None and part.reason
    )
    if found:
        yield Note(texts=(f"Not known: {'; '.join(found)}.",), tone="quiet")


def _panel(summary: Summary) -> Iterator[Block]:
    """Judges of a panel: what each gave, and how far every two agree."""
    if not summary.panel:
        return
    yield _by_judge(summary)
    rows: list[Row | Group] = []
    for info in summary.metrics:
        own = [one for one in summary.panel if one.metric == info.key]
        rows += [Group(name=info.key)] if own else []
        rows += [
            Row(
                name=f"{one.a} – {one.b}",
                cells=numbers(formats.share(one.exact), formats.share(one.within_one), formats.count(one.answers)),
            )
            for one in own
        ]
    yield Table(
        caption="How far judges agree",
        columns=columns("judges", "same step", "at most one apart", "answers"),
        rows=tuple(rows),
        legend="The share of the answers that two judges put on one step, or at most one apart.",
    )


def _by_judge(summary: Summary) -> Table:
    rows: list[Row | Group] = []
    for info in summary.metrics:
        given = {
            (each.judge, one.condition): each
            for one in summary.results if one.metric == info.key for each in one.by_judge
        }  # fmt: skip
        rows += [Group(name=info.key)] if given else []
        for judge in dict.fromkeys(judge for judge, _ in given):
            cells = []
            for condition in summary.conditions:
                found = given.get((judge, condition))
                told = "" if found is None else formats.plural(found.answers, "answer")
                cells.append(Cell(text=formats.number(found.mean if found is not None else None), below=told))
            rows.append(Row(name=judge, cells=tuple(cells)))
    return Table(caption="What each judge gave", columns=columns("judge", *summary.conditions), rows=tuple(rows))


def retried(summary: Summary) -> Iterator[Block]:
    """Whether trying again changed the result, on the first metric."""
    first = summary.metrics[0].key if summary.metrics else None
    found = [one for one in summary.results if one.metric == first and one.retried.answers]
    if not found:
        return
    rows = tuple(
        Row(
            name=one.condition,
            color=summary.conditions.index(one.condition),
            cells=numbers(
                formats.number(one.first_attempt.mean), formats.count(one.first_attempt.answers),
                formats.number(one.retried.mean), formats.count(one.retried.answers),
            ),
        )
        for one in found
    )  # fmt: skip
    yield Table(
        caption=f"Does trying again change the result? {first}",
        columns=columns("condition", "first attempt", "answers", "retried", "answers"),
        rows=rows,
        slim=True,
    )
