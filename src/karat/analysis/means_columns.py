"""The columns of the table of means. Each is declared here, once: the tables of reports, CSV, rows,
data frames and JSON follow.

To add a column, append a `MeansColumn` to `COLUMNS`: with `of`, a function from the values of one
metric under one condition to a quantity; or with `of_account`, a function from what is known of a
condition besides its scores (time, cost, how its trials ended), which is the same for each metric.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from karat import blocks, formats
from karat.analysis.numbers import Quantity
from karat.blocks import Cell, Column, Count, Text
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.analysis.estimates import Floats  # NumPy, which a run without scores does not need
    from karat.analysis.model import Account, MetricInfo, Result, Summary


class MeansColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column: its name in rows, its number, and how reports show it."""

    name: str
    # Its quantity, from the values of one metric under one condition: questions × repetitions, NaN
    # where there is none. None: another of these three reads it.
    of: Callable[[Floats], Quantity] | None = None
    of_account: Callable[[Account], Any] | None = None  # its number, from a condition's account
    value: Callable[[Result], Any] | None = None  # its number, from another field of the result
    # The number as displayed in JSON's `shown` and, of an account, in tables of reports. None: it
    # is not shown there.
    format: Callable[[Any], str] | None = None
    # How tables of reports show it; None: only rows have it. `{unit}` and `{level}` are replaced.
    head: str | None = None
    place: int = 100  # in these tables, from the left
    cell: Callable[[MetricInfo, Result], Cell] | None = None  # None: the number itself
    legend: str = ""  # a sentence
    # 0: always shown. Where a table is too wide, columns of the highest rank are left out first: a
    # terminal of 80 columns has room for ranks 0 and 1 of today; another of 1 takes their place.
    rank: int = 0
    detail: bool = False  # the first screen of a terminal leaves it out
    is_number: bool = True
    only_with_missing: bool = False  # shown only if some values are missing

    def value_of(self, result: Result, account: Account) -> Any:
        """The raw number. `account`: of the result's condition."""
        if self.value is not None:
            return self.value(result)
        if self.of_account is not None:
            return self.of_account(account)
        assert isinstance(result.more, dict)  # only columns declared with `of` are left
        return result.more[self.name].value

    def cell_of(self, info: MetricInfo, result: Result, account: Account) -> Cell:
        """What a table of a report shows. `account`: of the result's condition."""
        if self.cell is not None:
            return self.cell(info, result)
        number = self.value_of(result, account)
        if self.of_account is not None and self.format is not None:
            return Text(self.format(number))
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
        cell=lambda info, result: blocks.estimate(result.mean, percent=info.percent),
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
    MeansColumn(name="planned", of_account=attrgetter("ledger.planned")),
    MeansColumn(name="scored", of_account=attrgetter("ledger.scored")),
    MeansColumn(name="failed", of_account=attrgetter("ledger.failed")),
    MeansColumn(name="not_run", of_account=attrgetter("ledger.not_run")),
    MeansColumn(name="agent_dollars", of_account=attrgetter("cost.agent.known")),
    MeansColumn(name="agent_dollars_unknown", of_account=attrgetter("cost.agent.unknown")),
    MeansColumn(name="judge_dollars", of_account=attrgetter("cost.judge.known")),
    MeansColumn(name="judge_dollars_unknown", of_account=attrgetter("cost.judge.unknown")),
    MeansColumn(name="median_seconds", of_account=attrgetter("latency.median")),
)
"""In this order in rows, so a new one is the last."""


def quantities(values: Floats) -> dict[str, Quantity]:
    """Of the columns that are computed here, from the values of one metric under one condition."""
    return {column.name: column.of(values) for column in COLUMNS if column.of is not None}


def rows(summary: Summary) -> list[JsonObject]:
    """One row per condition and metric (per condition, if nothing was scored), raw numbers."""
    found: list[JsonObject] = []
    for result in summary.results:
        account = summary.accounts[result.condition]
        found.append({column.name: column.value_of(result, account) for column in COLUMNS})
    if not found:
        for condition in summary.conditions:
            row: JsonObject = {"condition": condition, "metric": None}
            for column in COLUMNS:
                if column.of_account is not None:
                    row[column.name] = column.of_account(summary.accounts[condition])

            found.append(row)

    return found


def row_names() -> tuple[str, ...]:
    """The names in a row of `rows`, in order."""
    return tuple(column.name for column in COLUMNS)


def shown(result: Result, account: Account) -> dict[str, str]:
    """Each number as displayed. `account`: of the result's condition."""
    mean = result.mean
    found = {"mean": formats.estimate(mean.value, mean.low, mean.high)}
    for column in COLUMNS:
        if column.format is not None:
            found[column.name] = column.format(column.value_of(result, account))

    return found


def in_reports(*, missing: bool) -> list[MeansColumn]:
    """The columns that tables of reports show, from the left. `missing`: some values are."""
    found = []
    for column in COLUMNS:
        if column.head is not None and (missing or not column.only_with_missing):
            found.append(column)

    return sorted(found, key=lambda column: column.place)
