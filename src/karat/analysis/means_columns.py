"""The columns of the table of means. Each is declared here, once, and every face follows without a
change: terminal, Markdown, HTML, notebooks, JSON, CSV, data frames and the reference of reports.

To add one, append a `MeansColumn` to `COLUMNS`. One function gives its number: `of`, from the
values of one metric under one condition; `of_times`, from the seconds that the answers of a
condition took, in ascending order; `of_account`, from what else is known of a condition, such as
its cost. What `Account` does not hold yet is counted for each answer in `Tally`, by
`RunIndex._add_answer`, and added up by `_account` in `ledger.py`. Reports show it if it has a
`head`:

    MeansColumn(
        name="third_quartile",
        of_times=lambda seconds: quantile(seconds, 0.75),
        format=formats.duration,
        head="q75",
        place=45,
        rank=2,
        legend="q75: three of four answers take no longer.",
    ),

Give its number in the small run of `tests/analysis/test_means_columns.py`, which looks for each
column in each face by itself. `make docs` writes it into the reference and the tutorial, and
`pytest --accept` into the golden reports: read both with `git diff`. No other file needs a look,
but tell users in `changes/NAME.added.md`, in a sentence or two.

A quantile is the smallest value that so many do not exceed: of 1, 2, 3 and 10 s, 90 % of answers
take no longer than 10 s. A terminal of 80 columns shows `rank=1`, and leaves out another of 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from karat import blocks, formats
from karat.analysis.format_metric import estimated
from karat.analysis.numbers import Quantity
from karat.blocks import Cell, Column, Count, Text
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.analysis.estimates import Floats  # NumPy, which a run without scores does not need
    from karat.analysis.model import Account, MetricInfo, Result, Summary


class MeansColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column: its name in rows, its number, and how reports show it."""

    name: str
    # Its number, by one of these four. The values of a metric: questions × repetitions, NaN where
    # there is none. Seconds: in ascending order; none if no answer has a time.
    of: Callable[[Floats], Quantity] | None = None
    of_times: Callable[[Sequence[float]], float | None] | None = None
    of_account: Callable[[Account], Any] | None = None
    value: Callable[[Result], Any] | None = None  # from a field of the result
    # The number as displayed: in JSON's `shown`, and in reports where it is of a condition (of a
    # metric, they show a share or a number). None: it is not shown there.
    format: Callable[[Any], str] | None = None
    # How tables of reports show it; None: only rows have it. `{unit}` and `{level}` are replaced.
    head: str | None = None
    place: int = 100  # in these tables, from the left
    cell: Callable[[MetricInfo, Result], Cell] | None = None  # None: the number itself
    legend: str = ""  # a sentence, below tables of reports and in the reference
    about: str = ""  # the sentence of the reference, if there is no legend
    # 0: always shown. Where a table is too wide, columns of the highest rank are left out first,
    # and of one rank the last. A terminal of 80 columns has room for ranks 0 and 1 of today, and
    # for `questions` of 2, which another column of 1 pushes out.
    rank: int = 0
    detail: bool = False  # the first screen of a terminal leaves it out
    is_number: bool = True
    only_with_missing: bool = False  # shown only if some values are missing

    @property
    def is_of_condition(self) -> bool:
        """Whether its number needs no score, and is the same for each metric."""
        return self.of_times is not None or self.of_account is not None

    def value_of(self, result: Result | None, account: Account) -> Any:
        """The raw number. `account`: of the result's condition. Without a result, only that of a
        condition.
        """
        if self.of_account is not None:
            return self.of_account(account)
        if self.of_times is not None:
            assert isinstance(account.more, dict)  # since a column has `of_times`
            return account.more[self.name]

        assert result is not None
        if self.value is not None:
            return self.value(result)
        assert isinstance(result.more, dict)  # since a column has `of`
        return result.more[self.name].value

    def cell_of(self, info: MetricInfo, result: Result, account: Account) -> Cell:
        """What a table of a report shows. `account`: of the result's condition."""
        if self.cell is not None:
            return self.cell(info, result)
        number = self.value_of(result, account)
        if self.is_of_condition and self.format is not None:
            return Text(self.format(number))
        if isinstance(number, int):
            return Count(number)
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
    MeansColumn(
        name="condition",
        value=attrgetter("condition"),
        about="The condition.",
    ),
    MeansColumn(
        name="metric",
        value=attrgetter("metric"),
        about="The metric, with its scorer if two scorers share its name.",
    ),
    MeansColumn(
        name="offline",
        value=attrgetter("offline"),
        about="Whether a rule gave the scores, not a model that understands.",
    ),
    MeansColumn(
        name="mean",
        value=attrgetter("mean.value"),
        head="mean [{level}]",
        place=0,
        cell=lambda info, result: blocks.estimate(result.mean, percent=info.percent),
        legend="Mean over {averaged}; repetitions of a {unit} are averaged first.",
    ),
    MeansColumn(
        name="low",
        value=attrgetter("mean.low"),
        about="The lower end of the interval.",
    ),
    MeansColumn(
        name="high",
        value=attrgetter("mean.high"),
        about="The upper end.",
    ),
    MeansColumn(
        name="level",
        value=attrgetter("mean.level"),
        about="The level of the interval.",
    ),
    MeansColumn(
        name="method",
        value=attrgetter("mean.method"),
        head="method",
        place=50,
        cell=lambda _, result: Text(result.mean.method, tone="quiet"),
        rank=3,
        detail=True,
        is_number=False,
        about="How the interval was computed.",
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
        about="Standard deviation between the means of questions.",
    ),
    MeansColumn(
        name="judge_sd",
        value=attrgetter("judge_sd.value"),
        format=formats.number,
        about="Standard deviation between repeats of one judge on one answer.",
    ),
    MeansColumn(
        name="top_share",
        value=attrgetter("top_share.value"),
        format=formats.share,
        about="Share of answers with the best value of the scale.",
    ),
    MeansColumn(
        name="reliability",
        value=attrgetter("reliability.value"),
        format=formats.share,
        about="Share of questions in which every repetition was good.",
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
        about="The mean if every missing score were the best of the scale.",
    ),
    MeansColumn(
        name="n_questions",
        value=attrgetter("n_questions"),
        head="{unit}s",
        place=40,
        rank=2,
        about="How many questions the mean is over.",
    ),
    MeansColumn(
        name="n_answers",
        value=attrgetter("n_answers"),
        head="answers",
        place=20,
        cell=_answers,
        about="How many answers have a score; reports add of how many planned, if some have none.",
    ),
    MeansColumn(
        name="n_missing",
        value=attrgetter("n_missing"),
        about="Planned trials without a score.",
    ),
    MeansColumn(
        name="planned",
        of_account=attrgetter("ledger.planned"),
        about="Planned trials of the condition.",
    ),
    MeansColumn(
        name="scored",
        of_account=attrgetter("ledger.scored"),
        about="Those that were scored.",
    ),
    MeansColumn(
        name="failed",
        of_account=attrgetter("ledger.failed"),
        about="Those that failed.",
    ),
    MeansColumn(
        name="not_run",
        of_account=attrgetter("ledger.not_run"),
        about="Those that were not run.",
    ),
    MeansColumn(
        name="agent_dollars",
        of_account=attrgetter("cost.agent.known"),
        about="What its agent cost, as far as prices are known.",
    ),
    MeansColumn(
        name="agent_dollars_unknown",
        of_account=attrgetter("cost.agent.unknown"),
        about="Calls of the agent without a price.",
    ),
    MeansColumn(
        name="judge_dollars",
        of_account=attrgetter("cost.judge.known"),
        about="What its judges cost, as far as prices are known.",
    ),
    MeansColumn(
        name="judge_dollars_unknown",
        of_account=attrgetter("cost.judge.unknown"),
        about="Calls of judges without a price.",
    ),
    MeansColumn(
        name="median_seconds",
        of_account=attrgetter("latency.median"),
        about="Median seconds an answer took.",
    ),
)
"""In this order in rows, so a new one is the last."""


def quantities(values: Floats) -> dict[str, Quantity]:
    """Of the columns that are computed here, from the values of one metric under one condition."""
    return {column.name: column.of(values) for column in COLUMNS if column.of is not None}


def times(seconds: Sequence[float]) -> dict[str, float | None]:
    """Of the columns that are computed here, from the ordered seconds of a condition's answers."""
    found = {}
    for column in COLUMNS:
        if column.of_times is not None:
            found[column.name] = column.of_times(seconds)

    return found


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
                if column.is_of_condition:
                    row[column.name] = column.value_of(None, summary.accounts[condition])

            found.append(row)

    return found


def row_names() -> tuple[str, ...]:
    """The names in a row of `rows`, in order."""
    return tuple(column.name for column in COLUMNS)


def shown(info: MetricInfo, result: Result, account: Account) -> dict[str, str]:
    """Each number as displayed. `account`: of the result's condition."""
    found = {"mean": estimated(result.mean, percent=info.percent)}
    for column in COLUMNS:
        write = column.format
        if info.percent and write is formats.number:
            write = formats.share
        if write is not None:
            found[column.name] = write(column.value_of(result, account))

    return found


def in_reports(*, missing: bool) -> list[MeansColumn]:
    """The columns that tables of reports show, from the left. `missing`: some values are."""
    found = []
    for column in COLUMNS:
        if column.head is not None and (missing or not column.only_with_missing):
            found.append(column)

    return sorted(found, key=lambda column: column.place)
