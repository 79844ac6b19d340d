"""Means and differences as people would score them: lines and a table, for a calibration and for
reports.
"""

from __future__ import annotations

from collections.abc import Iterator

from karat import formats
from karat.analysis.format_metric import POINT_LEGEND, is_point
from karat.analysis.people import Calibrated, Corrected
from karat.blocks import (
    Block,
    Cell,
    Column,
    Count,
    Estimate,
    Group,
    Note,
    Number,
    Row,
    Share,
    Table,
    estimate,
    plain,
)

_TARGETS = {
    "questions": "Intervals are for questions like these: they include which questions were asked "
    "and which answers drawn.",
    "answers": "Intervals are for these answers alone: they include which answers were drawn, not "
    "which questions were asked.",
}


def corrected_lines(report: Calibrated) -> Iterator[str]:
    """Each difference as people would score it, then where the judge is biased."""
    for row in sorted(report.corrected, key=lambda row: row.against is None):
        if row.against is None:
            low = row.bias.low
            high = row.bias.high
        else:
            low = row.people.low
            high = row.people.high

        shown = low is not None and high is not None and (low > 0 or high < 0)
        unit = " points" if row.percent else ""
        if row.against is not None:
            note = "" if shown else ": no difference shown"
            yield (
                f"{_name(row)} on {row.metric}, as people would score: "
                f"{plain(_people(row))}{unit}{note}"
            )
        elif shown:
            way = "more" if (row.bias.value or 0.0) > 0 else "less"
            yield (
                f"{row.metric} of {row.condition}: the judge gives {way} than people, "
                f"{plain(_bias(row))}{unit}"
            )


def corrected_blocks(report: Calibrated) -> Iterator[Block]:
    """Means and differences as people would score them, next to the judge's."""
    level = formats.level(report.level)
    width = report.half_width
    rows: list[Row | Group] = []
    for metric in dict.fromkeys(row.metric for row in report.corrected):
        rows.append(Group(metric))
        for row in report.corrected:
            if row.metric == metric:
                if row.percent:
                    judge: Cell = Share(row.judge)
                else:
                    judge = Number(row.judge)

                if row.against is not None:
                    judge = Estimate(row.judge, percent=row.percent, signed=True)
                cells = [_people(row), judge, _bias(row), Count(row.labelled, of=row.answers)]
                if report.half_width is not None:
                    cells.append(Count(row.labels_needed))

                rows.append(Row(name=_name(row), cells=tuple(cells)))

    points = any(is_point(row.people) or is_point(row.bias) for row in report.corrected)
    legend = "A dash: no number of labels makes it so narrow; more questions do."
    yield Table(
        caption="Means and differences as people would score all answers",
        columns=(
            Column("condition", number=False),
            Column(f"corrected [{level}]", legend=_TARGETS[report.target]),
            Column("judge", legend="Judge: over the same answers."),
            Column(
                f"judge − people [{level}]",
                legend="Judge − people: from the labelled answers.",
            ),
            Column("labels", rank=1),
            *([] if width is None else [Column(f"labels for ±{width:g}", legend=legend)]),
        ),
        rows=tuple(rows),
        legend=POINT_LEGEND if points else "",
        brief=True,
    )
    reasons = dict.fromkeys(
        row.people.reason
        for row in report.corrected
        if row.people.reason and row.people.low is None
    )
    if reasons:
        yield Note(texts=tuple(f"No interval: {reason}." for reason in reasons), brief=True)


def _name(row: Corrected) -> str:
    if row.against is None:
        return row.condition
    return f"{row.condition} − {row.against}"


def _people(row: Corrected) -> Estimate:
    return estimate(row.people, percent=row.percent, signed=row.against is not None)


def _bias(row: Corrected) -> Estimate:
    return estimate(row.bias, percent=row.percent, signed=True)
