"""Means and differences as people would score them: lines and a table, for a calibration and for reports."""

from __future__ import annotations

from collections.abc import Iterator

from karat import formats
from karat.analysis.people import Calibrated, Corrected
from karat.blocks import Block, Cell, Column, Count, Estimate, Group, Note, Number, Row, Share, Table, plain

__all__ = ["corrected_blocks", "corrected_lines"]

_TARGETS = {
    "questions": "Intervals are for questions like these: they include which questions were asked and which answers "
    "drawn.",
    "answers": "Intervals are for these answers alone: they include which answers were drawn, not which questions were "
    "asked.",
}


def corrected_lines(found: Calibrated) -> Iterator[str]:
    """Where the judge is biased, and each difference as people would score it."""
    for one in found.corrected:
        low, high = (one.bias.low, one.bias.high) if one.against is None else (one.people.low, one.people.high)
        shown = low is not None and high is not None and (low > 0 or high < 0)
        unit = " points" if one.percent else ""
        if one.against is not None:
            rest = "" if shown else ": no difference shown"
            yield f"{_name(one)} on {one.metric}, as people would score: {plain(_people(one))}{unit}{rest}"
        elif shown:
            way = "more" if (one.bias.value or 0.0) > 0 else "less"
            yield f"{one.metric} of {one.condition}: the judge gives {way} than people, {plain(_bias(one))}{unit}"


def corrected_blocks(found: Calibrated) -> Iterator[Block]:
    """Means and differences as people would score them, next to the judge's."""
    level, width = formats.level(found.level), found.half_width
    rows: list[Row | Group] = []
    for metric in dict.fromkeys(one.metric for one in found.corrected):
        rows += [Group(metric), *(_row(one, found) for one in found.corrected if one.metric == metric)]
    legend = "A dash: no number of labels makes it so narrow; more questions do."
    yield Table(
        caption="Means and differences as people would score all answers",
        columns=(
            Column("condition", number=False),
            Column(f"corrected [{level}]", legend=_TARGETS[found.target]),
            Column("judge", legend="Judge: over the same answers."),
            Column(f"judge − people [{level}]", rank=1, legend="Judge − people: from the labelled answers."),
            Column("labels"),
            *([] if width is None else [Column(f"labels for ±{width:g}", legend=legend)]),
        ),
        rows=tuple(rows),
        brief=True,
    )
    reasons = dict.fromkeys(
        one.people.reason for one in found.corrected if one.people.reason and one.people.low is None
    )
    if reasons:
        yield Note(texts=tuple(f"No interval: {reason}." for reason in reasons), brief=True)


def _row(one: Corrected, found: Calibrated) -> Row:
    judge: Cell = Share(one.judge) if one.percent else Number(one.judge)
    if one.against is not None:
        judge = Estimate(one.judge, percent=one.percent, signed=True)
    needed = [] if found.half_width is None else [Count(one.labels_needed)]
    return Row(name=_name(one), cells=(_people(one), judge, _bias(one), Count(one.labelled, of=one.answers), *needed))


def _name(one: Corrected) -> str:
    return one.condition if one.against is None else f"{one.condition} − {one.against}"


def _people(one: Corrected) -> Estimate:
    found = one.people
    return Estimate(found.value, found.low, found.high, percent=one.percent, signed=one.against is not None)


def _bias(one: Corrected) -> Estimate:
    return Estimate(one.bias.value, one.bias.low, one.bias.high, percent=one.percent, signed=True)
