"""A column of the table of means is declared once."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from karat.analysis import summarize
from karat.analysis.means_columns import ACCOUNT, COLUMNS, MeansColumn, in_reports, row_names, shown
from karat.analysis.numbers import Quantity
from karat.blocks import Number, Share

SCORES = {"alone": [[1.0, 2.0], [3.0, 5.0]]}

MEDIAN = MeansColumn(
    name="median",
    of=lambda values: Quantity(value=float(np.nanmedian(values))),
    head="median of {unit}s",
    legend="Median of all {unit}s.",
)


def test_rows_have_every_column_once_and_what_is_known_of_the_condition(tmp_path, journals):
    assert len(set(row_names())) == len(row_names()) == len(COLUMNS) + len(ACCOUNT)
    row = summarize(journals.table(tmp_path, SCORES)).table()[0]
    assert tuple(row) == row_names()


def test_a_new_column_is_a_function_and_its_declaration(tmp_path, journals):
    summary = summarize(journals.table(tmp_path, SCORES))
    info, result = summary.metrics[0], summary.results[0]
    assert MEDIAN.of is not None
    median = MEDIAN.of(np.array([[1.0, 5.0], [2.0, math.nan]]))
    result = msgspec.structs.replace(result, more={"median": median})
    assert MEDIAN.value_of(result) == 2.0
    assert MEDIAN.cell_of(info, result) == Number(2.0)
    share = msgspec.structs.replace(info, kind="share", low=0.0, high=1.0)
    assert MEDIAN.cell_of(share, result) == Share(2.0)
    heading = MEDIAN.heading(unit="question", level="95 %", averaged="12 questions")
    assert (heading.head, heading.legend) == ("median of questions", "Median of all questions.")


@pytest.mark.parametrize("missing", [False, True])
def test_reports_show_bounds_only_if_scores_are_missing(missing):
    names = [column.name for column in in_reports(missing=missing)]
    bounds = ["worst"] if missing else []
    assert names == ["mean", "within_sd", "n_answers", *bounds, "n_questions", "method"]


def test_numbers_are_shown_under_the_names_of_their_columns(tmp_path, journals):
    names = {column.name for column in COLUMNS}
    found = shown(summarize(journals.table(tmp_path, SCORES)).results[0])
    assert next(iter(found)) == "mean"
    assert set(found) <= names
