"""Every column of the table of means is in every face, and has the right number in a small run.

A new column needs its line in `SMALL_RUN`, and nothing else: the other tests go through all of `COLUMNS`.
"""

from __future__ import annotations

import csv
import json
import math
from html import unescape
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.analysis.journals import JUDGE, Script

from karat import plugins
from karat.analysis import summarize
from karat.analysis.means_columns import COLUMNS, MeansColumn, in_reports, rows
from karat.analysis.numbers import Quantity, quantile
from karat.blocks import Number, Share, Text, plain
from karat.formats import duration
from karat.records import Reply

# Two questions, two repetitions; scores 1 and 2, 4 and none; after 1, 2, 3 and 10 seconds.
SMALL_RUN = {
    "condition": "alone",
    "metric": "completeness",
    "offline": True,
    "mean": 2.75,
    "low": 1.0,
    "high": 5.0,
    "level": 0.95,
    "method": "t, cut at the end of the scale",
    "within_sd": math.sqrt(0.5),
    "between_sd": 2.5 / math.sqrt(2),
    "judge_sd": None,
    "top_share": 0.0,
    "reliability": 0.0,
    "worst": 2.0,
    "best": 3.0,
    "n_questions": 2,
    "n_answers": 3,
    "n_missing": 1,
    "planned": 4,
    "scored": 3,
    "failed": 1,
    "not_run": 0,
    "agent_dollars": 0.04,
    "agent_dollars_unknown": 0,
    "judge_dollars": 0.0,
    "judge_dollars_unknown": 0,
    "median_seconds": 2.5,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    script = Script(tmp_path_factory.mktemp("small") / "run", conditions=("alone",), repetitions=2)
    for row, repetition, value, seconds in ((0, 0, 1, 1.0), (0, 1, 2, 2.0), (1, 0, 4, 3.0), (1, 1, None, 10.0)):
        script.answer(row, "alone", repetition, reply=Reply(text="Yes.", dollars=0.01), seconds=seconds)
        if value is not None:
            script.score(row, "alone", repetition, value=value)
    silent = {"kind": "malformed", "message": "no number"}
    script.failure(1, "alone", 1, cls="judge", stage="score", scorer=JUDGE.name, **silent)
    return script.end()


@pytest.fixture(scope="module")
def summary(run):
    return summarize(run)


def written(face: str, run, summary, **options: Any) -> str:
    export = plugins.find("exports", face)
    (text,) = export(export.Options(**options)).render(summary, run).values()
    return text


def test_every_column_has_the_right_number(summary):
    (row,) = rows(summary)
    expected = {name: pytest.approx(value) if isinstance(value, float) else value for name, value in SMALL_RUN.items()}
    assert list(row) == list(expected), "a new column is the last of COLUMNS, and has its number in SMALL_RUN"
    assert row == expected


def test_every_column_is_in_csv(run, summary):
    (row,) = csv.DictReader(written("csv", run, summary).splitlines())
    assert list(row) == [column.name for column in COLUMNS]
    assert float(row["median_seconds"]) == 2.5


def test_every_column_with_a_format_is_in_json_as_displayed(run, summary):
    (result,) = json.loads(written("json", run, summary))["results"]
    (row,) = rows(summary)
    for column in COLUMNS:
        if column.format is not None:
            assert result["shown"][column.name] == column.format(row[column.name])
    assert result["shown"]["mean"].startswith("2.75")


@pytest.mark.parametrize("column", in_reports(missing=True), ids=lambda column: column.name)
@pytest.mark.parametrize("face", [("terminal", {"width": 300, "full": True}), ("markdown", {}), ("html", {})])
def test_every_column_with_a_heading_is_in_every_report(face, column, run, summary):
    name, options = face
    text = " ".join(unescape(written(name, run, summary, **options)).replace("\\", "").split())
    heading = column.heading(unit="question", level="95 %", averaged="2 questions")
    cell = column.cell_of(summary.metrics[0], summary.results[0], summary.accounts["alone"])
    for part in (heading.head, heading.legend, plain(cell)):
        assert part in text


def test_every_column_is_explained():
    for column in COLUMNS:
        assert bool(column.legend) != bool(column.about), column.name


def test_columns_of_missing_values_are_shown_where_some_are():
    every, few = (in_reports(missing=missing) for missing in (True, False))
    assert [column for column in every if not column.only_with_missing] == few
    assert len(every) > len(few)
    assert [column.place for column in every] == sorted(column.place for column in every)


def test_a_new_column_is_a_function_of_scores_or_of_times_and_its_declaration(summary):
    info, result, account = summary.metrics[0], summary.results[0], summary.accounts["alone"]
    median = MeansColumn(
        name="median",
        of=lambda values: Quantity(value=float(np.nanmedian(values))),
        head="median of {unit}s",
        legend="Median of all {unit}s.",
    )
    assert median.of is not None
    result = msgspec.structs.replace(result, more={"median": median.of(np.array([[1.0, 5.0], [2.0, math.nan]]))})
    assert median.value_of(result, account) == 2.0
    assert median.cell_of(info, result, account) == Number(2.0)
    share = msgspec.structs.replace(info, kind="share", low=0.0, high=1.0)
    assert median.cell_of(share, result, account) == Share(2.0)
    heading = median.heading(unit="question", level="95 %", averaged="12 questions")
    assert (heading.head, heading.legend) == ("median of questions", "Median of all questions.")

    slow = MeansColumn(name="slow", of_times=lambda seconds: quantile(seconds, 0.95), format=duration, head="slow")
    assert slow.of_times is not None
    account = msgspec.structs.replace(account, more={"slow": slow.of_times([1.0, 2.0, 12.5])})
    assert slow.value_of(None, account) == 12.5
    assert slow.cell_of(info, result, account) == Text("12.5 s")


def test_without_scores_a_row_has_what_is_known_of_the_condition(tmp_path):
    script = Script(tmp_path / "run", samples=1, conditions=("alone",), scorers=())
    script.answer(0, "alone", seconds=2.0)
    (row,) = rows(summarize(script.end()))
    assert set(row) == {"condition", "metric", *(column.name for column in COLUMNS if column.is_of_condition)}
    assert (row["condition"], row["median_seconds"]) == ("alone", 2.0)
