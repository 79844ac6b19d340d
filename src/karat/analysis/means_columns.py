"""The columns of the table of means. Each is declared here, once: the tables of reports, CSV, rows,
data frames and JSON follow.

To add a column, write a function from the values of one metric under one condition to a quantity,
and append a `MeansColumn` to `COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from karat import blocks, formats
from karat.analysis.numbers import Quantity
from karat.blocks import Cell, Column, Count, Text
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.analysis.estimates import Floats  # NumPy, which a run without scores does not need
    from karat.analysis.model import MetricInfo, Result, Summary


class MeansColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column: its name in rows, its number, and how reports show it."""

    name: str
    # Its quantity, from the values of one metric under one condition: questions × repetitions, NaN
    # where there is none. None: `value` reads another field of the result.
    of: Callable[[Floats], Quantity] | None = None
    value: Callable[[Result], Any] | None = None  # as in rows; None: what `of` found
    # The number as displayed, in JSON's `shown`; None: it is not shown there.
    format: Callable[[Any], str] | None = None
    # How tables of reports show it; None: only rows have it. `{unit}` and `{level}` are replaced.
    head: str | None = None
    place: int = 100  # in these tables, from the left
    cell: Callable[[MetricInfo, Result], Cell] | None = None  # None: the number itself
    legend: str = ""  # a sentence
    rank: int = 0  # 0: always shown; columns of the highest rank are the first left out
    detail: bool = False  # the first screen of a terminal leaves it out
    is_number: bool = True
    only_with_missing: bool = False  # shown only if some values are missing

    def value_of(self, result: Result) -> Any:
        """The raw number."""
        if self.value is not None:
            return self.value(result)
        assert isinstance(result.more, dict)  # only columns declared with `of` have no `value`
        return result.more[self.name].value

    def cell_of(self, info: MetricInfo, result: Result) -> Cell:
        """What a table of a report shows."""
        if self.cell is not None:
            return self.cell(info, result)
        number = self.value_of(result)
        if info.percent:
            return blocks.Share(number)
        return blocks.Number(number)

    def heading(self, *, unit: str, level: str, averaged: str) -> Column:
        """Its heading in tables of reports. `averaged`: what means are over."""
        assert self.head is not None
        words = {"unit": unit, "level": level, "averaged": averaged}
        return Column(
            self.head.format(**words),
            number=self.is_number,
            rank=self.rank,
            legend=self.legend.format(**words),
            detail=self.detail,
        )


def _mean(info: MetricInfo, result: Result) -> Cell:
    return blocks.estimate(result.mean, percent=info.percent)


def _answers(_: MetricInfo, result: Result) -> Cell:
    return Count(
        result.n_answers,
        of=result.n_answers + result.n_missing,
        tone="bad" if result.n_missing else "",
    )


def _bounds(info: MetricInfo, result: Result) -> Cell:
    if not result.n_missing:
        return Text("")
    ends = (result.worst.value, result.best.value)
    if info.direction == "lower":
        low, high = reversed(ends)
    else:
        low, high = ends
    return blocks.Range(low, high, percent=info.percent)


COLUMNS: tuple[MeansColumn, ...] = (
    MeansColumn(name="condition", value=attrgetter("condition")),
    MeansColumn(name="metric", value=attrgetter("metric")),
    MeansColumn(name="offline", value=attrgetter("offline")),
    MeansColumn(
        name="mean",
        value=attrgetter("mean.value"),
        head="mean [{level}]",
        place=0,
        cell=_mean,
        legend="Mean over {averaged}; repetitions of a {unit} are averaged first.",
    ),
    MeansColumn(name="low", value=attrgetter("mean.low")),
    MeansColumn(name="high", value=attrgetter("mean.high")),
    MeansColumn(name="level", value=attrgetter("mean.level")),
    MeansColumn(
        name="method",
        value=attrgetter("mean.method"),
        head="method",
        place=50,
        cell=lambda _, result: Text(result.mean.method, tone="quiet"),
        rank=3,
        detail=True,
        is_number=False,
    ),
    MeansColumn(
        name="within_sd",
        value=attrgetter("within_sd.value"),
        format=formats.number,
        head="SD",
        place=10,
        legend="SD: standard deviation between repetitions of one {unit}.",
    ),
    MeansColumn(
        name="between_sd",
        value=attrgetter("between_sd.value"),
        format=formats.number,
    ),
    MeansColumn(
        name="judge_sd",
        value=attrgetter("judge_sd.value"),
        format=formats.number,
    ),
    MeansColumn(
        name="top_share",
        value=attrgetter("top_share.value"),
        format=formats.share,
    ),
    MeansColumn(
        name="reliability",
        value=attrgetter("reliability.value"),
        format=formats.share,
    ),
    MeansColumn(
        name="worst",
        value=attrgetter("worst.value"),
        format=formats.number,
        head="bounds",
        place=30,
        cell=_bounds,
        legend="Bounds: the mean if every missing score were the worst, or the best, of the scale.",
        rank=1,
        only_with_missing=True,
    ),
    MeansColumn(
        name="best",
        value=attrgetter("best.value"),
        format=formats.number,
    ),
    MeansColumn(
        name="n_questions",
        value=attrgetter("n_questions"),
        head="{unit}s",
        place=40,
        cell=lambda _, result: Count(result.n_questions),
        rank=2,
    ),
    MeansColumn(
        name="n_answers",
        value=attrgetter("n_answers"),
        head="answers",
        place=20,
        cell=_answers,
    ),
    MeansColumn(name="n_missing", value=attrgetter("n_missing")),
)

ACCOUNT: Mapping[str, Callable[[Summary, str], object]] = {
    "planned": lambda summary, name: summary.accounts[name].ledger.planned,
    "scored": lambda summary, name: summary.accounts[name].ledger.scored,
    "failed": lambda summary, name: summary.accounts[name].ledger.failed,
    "not_run": lambda summary, name: summary.accounts[name].ledger.not_run,
    "agent_dollars": lambda summary, name: summary.accounts[name].cost.agent.known,
    "agent_dollars_unknown": lambda summary, name: summary.accounts[name].cost.agent.unknown,
    "judge_dollars": lambda summary, name: summary.accounts[name].cost.judge.known,
    "judge_dollars_unknown": lambda summary, name: summary.accounts[name].cost.judge.unknown,
    "median_seconds": lambda summary, name: summary.accounts[name].latency.median,
}
"""What rows say of a condition besides its means."""


def quantities(values: Floats) -> dict[str, Quantity]:
    """Of the columns that are computed here, from the values of one metric under one condition."""
    return {column.name: column.of(values) for column in COLUMNS if column.of is not None}


def rows(summary: Summary) -> list[JsonObject]:
    """One row per condition and metric (per condition, if nothing was scored), raw numbers."""
    found: list[JsonObject] = []
    for result in summary.results:
        found.append({column.name: column.value_of(result) for column in COLUMNS})
    if not found:
        found = [{"condition": name, "metric": None} for name in summary.conditions]
    for row in found:
        row.update((name, value(summary, row["condition"])) for name, value in ACCOUNT.items())
    names = row_names()
    return [{name: row[name] for name in names if name in row} for row in found]


def row_names() -> tuple[str, ...]:
    """The names in a row of `rows`, in order: columns that were added later are the last."""
    first = [column.name for column in COLUMNS if column.of is None]
    last = [column.name for column in COLUMNS if column.of is not None]
    return (*first, *ACCOUNT, *last)


def shown(result: Result) -> dict[str, str]:
    """Each number as displayed."""
    mean = result.mean
    found = {"mean": formats.estimate(mean.value, mean.low, mean.high)}
    for column in COLUMNS:
        if column.format is not None:
            found[column.name] = column.format(column.value_of(result))

    return found


def in_reports(*, missing: bool) -> list[MeansColumn]:
    """The columns that tables of reports show, from the left. `missing`: some values are."""
    found = []
    for column in COLUMNS:
        if column.head is not None and (missing or not column.only_with_missing):
            found.append(column)

    return sorted(found, key=lambda column: column.place)
