"""Charts of the distribution of scores and of gaps between conditions, from numbers that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import SampleColumn, SampleTable, Summary
from karat.blocks import Axis, Chart, Fold, Note, Plane, Rows, plain
from karat.charts import charts
from karat.document.charts import gaps, spread, with_names_apart


@pytest.fixture(scope="module")
def summary(journals, tmp_path_factory) -> Summary:
    scores = {"old": [[3.0], [4.0]], "new": [[4.0], [5.0]]}
    return summarize(journals.table(tmp_path_factory.mktemp("run") / "run", scores))


def measured(summary: Summary, means: dict[str, list[float | None]], **fields: Any) -> Summary:
    """A run whose questions have these means. `fields`: of the metric."""
    many = len(next(iter(means.values())))
    columns = tuple(
        SampleColumn(condition=name, metric="completeness", mean=values, sd=[None] * many, n=[1] * many)
        for name, values in means.items()
    )
    ids = [f"q{at}" for at in range(many)]
    table = SampleTable(ids=ids, positions=[*range(many)][::-1], digests=ids, columns=columns)
    other = structs.replace(columns[0], metric="other", mean=[99.0] * many)
    table = structs.replace(table, columns=(*columns, other))
    info = structs.replace(summary.metrics[0], **fields)
    results = tuple(structs.replace(result, distribution=None) for result in summary.results)
    return structs.replace(summary, metrics=(info,), results=results, table_of_samples=table)


def only(found: Any) -> Chart:
    (chart,) = found
    assert isinstance(chart, Chart)
    return chart


def texts(chart: Chart) -> list[tuple[str, ...]]:
    return [(row.name, *map(plain, getattr(row, "cells", ()))) for row in chart.table.rows]


def test_means_without_steps_are_a_histogram(summary):
    means: dict[str, list[float | None]] = {"old": [0.0, 1.0, 19.9, None], "new": [20.0, 0.99, 10.0, 10.5]}
    chart = only(spread(measured(summary, means, kind="number", low=None, high=None)))
    assert chart.name == "scores-completeness"
    assert chart.title == (
        "completeness: means of questions lie between 0.00 and 20.00, their median is 10.00 (4 questions a condition)"
    )
    assert texts(chart) == [
        ("old",),
        ("[0.000, 1.000]", "1"),
        ("[1.000, 2.000]", "1"),
        ("[19.000, 20.000]", "1"),
        ("new",),
        ("[0.000, 1.000]", "1"),
        ("[10.000, 11.000]", "2"),
        ("[19.000, 20.000]", "1"),
    ]
    old, new = chart.panels
    assert isinstance(old, Plane)
    assert isinstance(new, Plane)
    assert (old.title, new.title) == ("old", "new")
    assert old.x == Axis(title="mean of a question, in the metric's own unit", start=0.0, end=20.0)
    assert old.y == Axis(title="questions", start=0.0, whole=True)
    bars = new.curves[0].points
    assert [(bar.x, bar.y, bar.left, bar.right) for bar in bars] == [(0, 1, 0, 1), (10, 2, 10, 11), (19, 1, 19, 20)]
    assert bars[1].label == "10.00 to 11.00: 2 questions"
    assert (chart.detail, chart.ordered, new.curves[0].form) == (True, False, "bars")


def test_a_histogram_of_shares_spans_all_shares_and_of_one_value_has_one_bar(summary):
    share = only(spread(measured(summary, {"old": [0.5, 0.52], "new": [0.6, 1.0]}, kind="share", low=0, high=1)))
    panel = share.panels[0]
    assert isinstance(panel, Plane)
    assert panel.x == Axis(title="mean of a question", start=0.0, end=1.0, percent=True)
    assert [bar.label for bar in panel.curves[0].points] == ["50.0 % to 55.0 %: 2 questions"]
    assert "lie between 50.0 % and 100.0 %, their median is 56.0 %" in share.title
    same = only(spread(measured(summary, {"old": [3.0, 3.0], "new": [3.0, None]}, kind="number")))
    assert texts(same) == [("old",), ("[3.000, 4.000]", "2"), ("new",), ("[3.000, 4.000]", "1")]
    assert [*spread(measured(summary, {"old": [None], "new": [None]}))] == []
    nothing = tuple(structs.replace(result, n_answers=0) for result in summary.results)
    assert [*spread(structs.replace(summary, results=nothing))] == []


def stepped(summary: Summary, **fields: Any) -> Chart:
    shares = {"old": {"1": 1, "5": 3}, "new": {"5": 4, "10": 0}}
    results = tuple(
        structs.replace(result, distribution=shares[result.condition], n_answers=4) for result in summary.results
    )
    info = structs.replace(summary.metrics[0], **fields)
    return only(spread(structs.replace(summary, metrics=(info,), results=results)))


def test_answers_on_steps_are_bars_of_shares(summary):
    chart = stepped(summary)
    assert chart.legend == ("1", "5", "10")
    assert texts(chart) == [
        ("completeness",),
        ("old", "1 25.0 %", "3 75.0 %", "0 0.0 %"),
        ("new", "0 0.0 %", "4 100.0 %", "0 0.0 %"),
    ]
    (panel,) = chart.panels
    assert isinstance(panel, Rows)
    assert panel.axis == Axis(title="share of answers", start=0.0, end=1.0, percent=True)
    marks = panel.lines[0].marks
    assert [(mark.start, mark.value, mark.series) for mark in marks] == [(0.0, 0.25, 0), (0.25, 1.0, 1), (1.0, 1.0, 2)]
    assert marks[1].label == "5: 3 answers (75.0 %)"


@pytest.mark.parametrize(
    ("fields", "start"),
    [
        ({}, "completeness at the best step, 5: old "),
        ({"direction": "lower"}, "completeness at the best step, 1: old "),
        ({"high": None}, "completeness at the best: old "),
        ({"kind": "share", "low": 0, "high": 1}, "completeness right: old "),
    ],
)
def test_the_title_says_how_many_are_at_the_best_step(summary, fields, start):
    chart = stepped(summary, **fields)
    assert chart.title.startswith(start)
    assert chart.title.count(" of 4 answers") == 2


def test_the_widest_gaps_come_first(summary):
    means: dict[str, list[float | None]] = {"old": [1.0, 2.0, None, 3.0, 4.0], "new": [2.0, 4.0, 5.0, 3.0, 3.0]}
    chart = only(gaps(measured(summary, means)))
    assert chart.title == "completeness: conditions differ on 3 of 4 questions, most on question q1: 2.00"
    assert texts(chart) == [
        ("q1", "2.00", "4.00", "2.00"),
        ("q4", "4.00", "3.00", "1.00"),  # of equal gaps that of the earlier position
        ("q0", "1.00", "2.00", "1.00"),
    ]
    (panel,) = chart.panels
    assert isinstance(panel, Rows)
    assert panel.axis == Axis(title="mean, in points of the score", start=1.0, end=5.0)
    assert [(mark.value, mark.series, mark.label) for mark in panel.lines[0].marks] == [
        (2.0, 0, "old 2.00"),
        (4.0, 1, "new 4.00"),
    ]
    assert all(line.joined for line in panel.lines)
    assert (chart.name, chart.detail, chart.legend) == ("gaps-completeness", True, ("old", "new"))
    share = only(gaps(measured(summary, {"old": [0.5], "new": [1.0]}, kind="share", low=0, high=1)))
    assert texts(share) == [("q0", "50.0 %", "100.0 %", "50.0 %")]
    panel = share.panels[0]
    assert isinstance(panel, Rows)
    assert panel.axis == Axis(title="mean share of answers", start=0, end=1, percent=True)


def test_of_many_gaps_the_widest_are_drawn_and_of_none_nothing(summary):
    many: dict[str, list[float | None]] = {"old": [0.0] * 26, "new": [float(at + 1) for at in range(26)]}
    chart = only(gaps(measured(summary, many)))
    assert len(chart.table.rows) == 25
    assert chart.title.endswith("differ on 26 of 26 questions, most on question q25: 26.00; the 25 widest gaps")
    few = {name: values[:25] for name, values in many.items()}
    assert "widest gaps" not in only(gaps(measured(summary, few))).title
    assert [*gaps(measured(summary, {"old": [1.0], "new": [1.0]}))] == []
    assert [*gaps(measured(summary, {"old": [1.0], "new": [None]}))] == []
    assert [*gaps(structs.replace(summary, table_of_samples=None))] == []
    assert [*gaps(structs.replace(summary, metrics=()))] == []


def test_charts_of_one_name_are_numbered(summary):
    chart = only(gaps(measured(summary, {"old": [1.0], "new": [2.0]})))
    note = Note(texts=("x",))
    taken: set[str] = set()
    named = with_names_apart([chart, note, Fold("more", (chart, chart))], taken)
    assert [block.name for block in (named[0], *named[2].blocks)] == [
        *("gaps-completeness", "gaps-completeness-2", "gaps-completeness-3"),
    ]
    assert named[1] is note
    assert len(taken) == 3


def test_charts_of_a_run_are_in_the_order_of_its_report(summary):
    assert [chart.name for chart in charts(summary)] == [
        "means", "differences", "scores-completeness", "gaps-completeness",
    ]  # fmt: skip
