"""A column of the table of means is declared once."""

from __future__ import annotations

import math
from operator import attrgetter

import msgspec
import numpy as np
import pytest

from karat.analysis import summarize
from karat.analysis.means_columns import COLUMNS, MeansColumn, in_reports, row_names, shown
from karat.analysis.model import Latency
from karat.analysis.numbers import Quantity
from karat.blocks import Number, Share, Text
from karat.formats import duration

SCORES = {"alone": [[1.0, 2.0], [3.0, 5.0]]}

MEDIAN = MeansColumn(
    name="median",
    of=lambda values: Quantity(value=float(np.nanmedian(values))),
    head="median of {unit}s",
    legend="Median of all {unit}s.",
)


def test_rows_have_every_column_once_and_what_is_known_of_the_condition(tmp_path, journals):
    assert len(set(row_names())) == len(row_names()) == len(COLUMNS)
    row = summarize(journals.table(tmp_path, SCORES)).table()[0]
    assert tuple(row) == row_names()


def test_a_new_column_is_a_function_and_its_declaration(tmp_path, journals):
    summary = summarize(journals.table(tmp_path, SCORES))
    info, result, account = summary.metrics[0], summary.results[0], summary.accounts["alone"]
    assert MEDIAN.of is not None
    median = MEDIAN.of(np.array([[1.0, 5.0], [2.0, math.nan]]))
    result = msgspec.structs.replace(result, more={"median": median})
    assert MEDIAN.value_of(result, account) == 2.0
    assert MEDIAN.cell_of(info, result, account) == Number(2.0)
    share = msgspec.structs.replace(info, kind="share", low=0.0, high=1.0)
    assert MEDIAN.cell_of(share, result, account) == Share(2.0)
    heading = MEDIAN.heading(unit="question", level="95 %", averaged="12 questions")
    assert (heading.head, heading.legend) == ("median of questions", "Median of all questions.")


def test_a_column_of_what_is_known_of_a_condition_is_a_function_too(tmp_path, journals):
    summary = summarize(journals.table(tmp_path, SCORES))
    slow = MeansColumn(name="p95", of_account=attrgetter("latency.p95"), format=duration, head="95 % of answers")
    latency = Latency(median=1.0, p95=12.5, n=4)
    account = msgspec.structs.replace(summary.accounts["alone"], latency=latency)
    assert slow.value_of(summary.results[0], account) == 12.5
    assert slow.cell_of(summary.metrics[0], summary.results[0], account) == Text("12.5 s")


@pytest.mark.parametrize("missing", [False, True])
def test_reports_show_bounds_only_if_scores_are_missing(missing):
    names = [column.name for column in in_reports(missing=missing)]
    bounds = ["worst"] if missing else []
    assert names == ["mean", "within_sd", "n_answers", *bounds, "n_questions", "method"]


def test_numbers_are_shown_under_the_names_of_their_columns(tmp_path, journals):
    names = {column.name for column in COLUMNS}
    summary = summarize(journals.table(tmp_path, SCORES))
    found = shown(summary.results[0], summary.accounts["alone"])
    assert next(iter(found)) == "mean"
    assert set(found) <= names
