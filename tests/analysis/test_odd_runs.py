"""Runs in which something is out of the ordinary: the summary says what, and is never silently wrong."""

from __future__ import annotations

import pytest
from tests.analysis.journals import Script

from karat.analysis import compare, summarize
from karat.blocks import Rows
from karat.document.charts import charts
from karat.document.ink import LIGHT
from karat.document.render.svg import SHAPES
from karat.errors import BadRun
from karat.exports.terminal import Terminal
from karat.journal import ScorerInfo
from karat.journal.events import PlanInfo
from karat.records import Metric

SHARE = ScorerInfo(
    name="equals", type="equals", scoring="0e" * 16, offline=True,
    metrics=(Metric(name="right", low=0, high=1, kind="share"),),
)  # fmt: skip


def terminal(run, **options):
    return Terminal(Terminal.Options(width=120, full=True, **options)).render(summarize(run), run)["report.txt"]


@pytest.fixture
def nearly(tmp_path):
    """400 questions: under one condition all are right, under the other all but one."""
    script = Script(tmp_path / "run", samples=400, conditions=("all", "but one"), scorers=(SHARE,))
    for row in range(400):
        for name, right in (("all", True), ("but one", row > 0)):
            script.answer(row, name)
            script.score(row, name, value=right, scorer=SHARE)
    return script.end()


def test_a_share_is_whole_only_when_every_answer_is_right(nearly):
    lines = terminal(nearly, lowest=0).split("\n")
    means = lines[lines.index("Means with their 95 % intervals") :]
    rows = {line.split("  ")[2].strip(): line for line in reversed(means) if line.startswith("    ")}
    assert "100.0 % [99.0 %, 100.0 %]" in rows["all"]
    assert "99.8 % [98.6 %, >99.9 %]" in rows["but one"]


def test_differences_of_shares_are_points_wherever_they_are_told(nearly):
    summary = summarize(nearly)
    told = "on right: −0.2 points [−0.7, +0.2] over 400 questions"
    assert told in summary.headline
    assert "right (in percentage points, offline)" in terminal(nearly)
    compared = str(compare(nearly, nearly, condition_a="all", condition_b="but one"))
    assert told in compared
    assert "all 100.0 %, but one 99.8 %" in compared


def test_a_report_of_shares_alone_has_no_empty_column(nearly):
    assert "best answers" not in terminal(nearly, lowest=0)


def test_a_mean_without_an_interval_says_why(tmp_path):
    script = Script(tmp_path / "run", samples=1, conditions=("only",))
    script.scored(0, "only", value=4)
    assert "No interval for completeness of only: only one cluster, so no interval." in " ".join(
        terminal(script.end()).split()
    )


def test_scores_without_numbers_are_counted(tmp_path):
    script = Script(tmp_path / "run", samples=3)
    for row in range(3):
        script.scored(row, "baseline", value=4)
        script.scored(row, "with-docs", value=None)
    assert "completeness: the scorer gave no number for 3 of 6 scored answers" in summarize(script.end()).warnings


def test_scores_that_cannot_be_added_up_are_left_out_and_counted(tmp_path):
    scorer = ScorerInfo(name="size", type="size", scoring="0d" * 16, metrics=(Metric(name="size"),))
    script = Script(tmp_path / "run", samples=5, scorers=(scorer,))
    for row, value in enumerate((1e308, -1e308, 3.0, 4.0, 5.0)):
        for name in script.conditions:
            script.answer(row, name)
            script.score(row, name, value=value, scorer=scorer)
    run = script.end()
    summary = summarize(run)
    assert "4 scores too large to be added up (beyond 1e100): left out" in summary.warnings
    assert {(one.mean.value, one.n_answers, one.n_missing) for one in summary.results} == {(4.0, 3, 2)}
    assert charts(summary)
    assert max(map(len, terminal(run).split("\n"))) <= 120


@pytest.mark.parametrize("count", [0, 501])
def test_a_plan_of_no_conditions_or_of_thousands_is_none(tmp_path, count):
    names = tuple(f"c{at}" for at in range(count))
    script = Script(tmp_path / "run", plan=PlanInfo(samples=2, conditions=names, repetitions=1))
    with pytest.raises(BadRun, match=f"it names {count} conditions, expected 1 to 500"):
        summarize(script.end())


def test_a_chart_of_equal_means_names_no_winner(tmp_path):
    script = Script(tmp_path / "run", samples=3)
    for row in range(3):
        for name in script.conditions:
            script.scored(row, name, value=row + 1)
    title = charts(summarize(script.end()))[0].title
    assert title.startswith("completeness is the same under 2 conditions, 2.00 [")


def test_long_names_of_conditions_are_told_apart_in_every_chart(tmp_path):
    names = tuple(f"a-model-with-a-name-longer-than-any-axis-has-room-for-v{at}" for at in range(1, 5))
    script = Script(tmp_path / "run", samples=3, conditions=names)
    for row in range(3):
        for at, name in enumerate(names):
            script.scored(row, name, value=1 + (row + at) % 5)
    for chart in charts(summarize(script.end())):
        shown = {line.name for panel in chart.panels if isinstance(panel, Rows) for line in panel.lines}
        shown |= set(chart.legend) - {str(step) for step in range(1, 6)}
        shown = {label for label in shown if label.startswith("a-")}
        assert not any("(2)" in label for label in shown)
        assert all(label.endswith(("v1", "v2", "v3", "v4")) for label in shown)


def test_no_two_of_many_conditions_have_the_same_mark():
    colours, shapes = LIGHT.categories, SHAPES
    marks = {(at % len(colours), at % len(shapes)) for at in range(50)}
    assert len(marks) == 50
