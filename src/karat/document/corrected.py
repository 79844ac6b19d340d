"""Means and differences as people would score them: lines and a table, for a calibration and for reports."""

from __future__ import annotations

from collections.abc import Iterator

from karat import formats
from karat.analysis.numbers import Estimate as Found
from karat.analysis.people import Calibrated, CorrectedDifference, CorrectedMean
from karat.blocks import Block, Cell, Column, Count, Estimate, Group, Note, Number, Row, Share, Table, Text

__all__ = ["corrected_blocks", "corrected_lines", "estimate"]


def corrected_lines(found: Calibrated) -> Iterator[str]:
    """Where the judge is off on average, and each difference as people would score it."""
    for mean in found.means:
        low, high = mean.bias.low, mean.bias.high
        if low is not None and high is not None and (low > 0 or high < 0):
            way = "more" if low > 0 else "less"
            by = _signed(mean.bias, mean.percent)
            yield f"{mean.metric} of {mean.condition}: the judge gives {way} than people, {by}"
    for pair in found.differences:
        low, high = pair.corrected.low, pair.corrected.high
        shown = low is not None and high is not None and (low > 0 or high < 0)
        yield (
            f"{pair.b} − {pair.a} on {pair.metric}, as people would score: {_signed(pair.corrected, pair.percent)}"
            f"{'' if shown else ': no difference shown'}"
        )


def _signed(found: Found, percent: bool) -> str:
    digits, scale = (1, 100) if percent else (2, 1)
    value, low, high = (None if end is None else scale * end for end in (found.value, found.low, found.high))
    unit = " points" if percent else ""
    return f"{formats.signed(value, digits=digits)} {formats.signed_interval(low, high, digits=digits)}{unit}".strip()


def _target(found: Calibrated) -> str:
    """Of what the intervals speak."""
    if found.target == "questions":
        return (
            "Intervals are for questions like these: they include which questions were asked and which answers drawn."
        )
    return (
        "Intervals are for these answers alone: they include which answers were drawn, not which questions were asked."
    )


def corrected_blocks(found: Calibrated) -> Iterator[Block]:
    """Means and differences as people would score them, beside the judge's."""
    level = formats.level(found.level)
    rows: list[Row | Group] = []
    for metric in dict.fromkeys(mean.metric for mean in found.means):
        rows.append(Group(metric))
        rows += [_mean(mean, found) for mean in found.means if mean.metric == metric]
        rows += [_difference(pair, found) for pair in found.differences if pair.metric == metric]
    width = found.half_width
    yield Table(
        caption="Means and differences as people would score all answers",
        columns=(
            Column("condition", number=False),
            Column(f"corrected [{level}]", legend=_target(found)),
            Column("judge", legend="Judge: its mean over the same answers."),
            Column(f"judge − people [{level}]", rank=1, legend="Judge − people: from the labelled answers."),
            Column("labels"),
            *([Column(f"labels for ±{width:g}", legend="Of questions like these, no number of labels makes an interval "
                      "narrower than the number of questions allows: – means that more questions are needed.")]
              if width is not None else []),
        ),
        rows=tuple(rows),
        brief=True,
    )  # fmt: skip
    estimates = [*(mean.corrected for mean in found.means), *(pair.corrected for pair in found.differences)]
    reasons = dict.fromkeys(one.reason for one in estimates if one.reason and one.low is None)
    if reasons:
        yield Note(texts=tuple(f"No interval: {reason}." for reason in reasons), brief=True)


def _mean(mean: CorrectedMean, found: Calibrated) -> Row:
    judge: Cell = Share(mean.judge) if mean.percent else Number(mean.judge)
    return Row(
        name=mean.condition,
        cells=(
            estimate(mean.corrected, mean.percent),
            judge,
            estimate(mean.bias, mean.percent, signed=True),
            Count(mean.labelled, of=mean.answers),
            *([Count(mean.labels_needed)] if found.half_width is not None else []),
        ),
    )


def _difference(pair: CorrectedDifference, found: Calibrated) -> Row:
    scale = 100 if pair.percent else 1
    return Row(
        name=f"{pair.b} − {pair.a}",
        cells=(
            estimate(pair.corrected, pair.percent, signed=True),
            Number(None if pair.judge is None else scale * pair.judge, digits=1 if pair.percent else 2, signed=True),
            Text(""),
            Count(pair.labelled, of=pair.answers),
            *([Count(pair.labels_needed)] if found.half_width is not None else []),
        ),
    )


def estimate(found: Found, percent: bool = False, *, signed: bool = False) -> Estimate:
    """An estimate as a cell."""
    return Estimate(found.value, found.low, found.high, percent=percent, signed=signed)
