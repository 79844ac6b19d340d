"""Tables of means and of failures, from numbers that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import FailureKind, Summary
from karat.analysis.numbers import Estimate
from karat.blocks import Group, Note, Row, Scale, Table, plain
from karat.document.failing import failures
from karat.document.scores import means, note_of

SPANS = {"old": (3.5, 3.0, 4.0), "new": (4.5, 4.0, 5.0)}


@pytest.fixture
def summary(journals, tmp_path) -> Summary:
    """Round means without warnings or notes."""
    found = summarize(journals.table(tmp_path, {"old": [[3.0], [4.0]], "new": [[4.0], [5.0]]}))
    results = tuple(
        structs.replace(result, offline=False, mean=mean(*SPANS[result.condition])) for result in found.results
    )
    return structs.replace(found, results=results, metrics=(structs.replace(found.metrics[0], offline=False),))


def mean(value: float | None, low: float | None, high: float | None, *, reason: str | None = None) -> Estimate:
    return Estimate(value=value, low=low, high=high, se=None, n=2, level=0.95, method="made up", reason=reason)


def metric(summary: Summary, **fields: Any) -> Summary:
    return structs.replace(summary, metrics=(structs.replace(summary.metrics[0], **fields),))


def result(summary: Summary, **fields: Any) -> Summary:
    """The first condition's result with other fields."""
    return structs.replace(summary, results=(structs.replace(summary.results[0], **fields), summary.results[1]))


def shown(summary: Summary) -> tuple[Table, list[str]]:
    table, *notes = means(summary, summary.metrics)
    assert isinstance(table, Table)
    texts: list[str] = []
    for note in notes:
        assert isinstance(note, Note)
        texts += note.texts
    return table, texts


def scales(table: Table) -> set[Scale | None]:
    return {row.cells[0].scale for row in table.rows if isinstance(row, Row)}  # type: ignore[union-attr]  # a mean


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({}, "1 to 5"),
        ({"low": None}, ""),
        ({"high": None}, ""),
        ({"low": 0, "high": 1, "kind": "share"}, "share, in percent"),
        ({"low": 0, "high": 1}, "0 to 1"),
        ({"direction": "lower"}, "1 to 5, lower is better"),
        ({"direction": "none"}, "1 to 5"),
        ({"offline": True, "direction": "lower", "low": None}, "lower is better, offline"),
    ],
)
def test_a_metric_is_introduced_by_its_scale_its_direction_and_how_it_was_scored(summary, fields, note):
    one = metric(summary, **fields)
    assert note_of(one.metrics[0], one) == note
    other = structs.replace(one.metrics[0], scorer="other", key="other")
    two = structs.replace(one, metrics=(*one.metrics, other))
    assert note_of(other, two) == (f"{note}, by other" if note else "by other")


def test_means_are_rows_under_their_metric_on_its_scale(summary):
    table, notes = shown(summary)
    assert [row.name for row in table.rows if isinstance(row, Group)] == ["completeness"]
    rows = [(row.name, row.color, plain(row.cells[0])) for row in table.rows if isinstance(row, Row)]
    assert rows == [("old", 0, "3.50 [3.00, 4.00]"), ("new", 1, "4.50 [4.00, 5.00]")]
    assert (scales(table), table.legend, notes) == ({Scale(1, 5)}, "", [])


@pytest.mark.parametrize("missing", ["low", "high"])
def test_a_metric_without_a_range_has_the_scale_of_what_was_measured(summary, missing):
    table, _ = shown(metric(summary, **{missing: None}))
    assert scales(table) == {Scale(3.0, 5.0)}
    unknown = [structs.replace(one, mean=mean(None, None, None)) for one in summary.results]
    table, _ = shown(metric(structs.replace(summary, results=tuple(unknown)), **{missing: None}))
    assert scales(table) == {None}


@pytest.mark.parametrize(
    ("old", "direction", "finding"),
    [
        ((3.5, 3.0, 4.0), "higher", ("is highest under new, 4.50 [4.00, 5.00] over 2 questions; lowest under old, 3.50 "
         "[3.00, 4.00]")),
        ((3.5, 3.0, 4.0), "lower", ("is lowest under old, 3.50 [3.00, 4.00] over 2 questions; highest under new, 4.50 "
         "[4.00, 5.00]")),
        ((4.5, 4.0, 5.0), "higher", "is the same under 2 conditions, 4.50 [4.00, 5.00] over 2 questions"),
        ((None, None, None), "higher", "of new: 4.50 [4.00, 5.00] over 2 questions"),
    ],
)  # fmt: skip
def test_the_finding_names_the_best_mean_and_the_worst(summary, old, direction, finding):
    table, _ = shown(metric(result(summary, mean=mean(*old)), direction=direction))
    assert table.finding == f"completeness {finding}"


def test_the_finding_says_that_scores_are_of_a_rule_or_that_there_are_none(summary):
    assert shown(metric(summary, offline=True))[0].finding.endswith("over 2 questions, offline scores; lowest under "
        "old, 3.50 [3.00, 4.00]")  # fmt: skip
    nothing = tuple(structs.replace(one, mean=mean(None, None, None)) for one in summary.results)
    assert shown(structs.replace(summary, results=nothing))[0].finding == "completeness: no mean is known"
    assert "a rule" in shown(result(summary, offline=True))[0].legend


def test_a_reason_for_no_interval_is_given_once_with_all_its_means(summary):
    alone = mean(3.5, None, None, reason="only one question")
    both = structs.replace(summary, results=tuple(structs.replace(one, mean=alone) for one in summary.results))
    assert shown(both)[1] == ["No interval for completeness of old, completeness of new: only one question."]
    assert shown(result(summary, mean=alone))[1] == ["No interval for completeness of old: only one question."]


def test_clusters_are_told_of_with_what_they_cost(summary):
    _, [text] = shown(result(summary, clusters=7, design_effect=1.5))
    assert text.startswith("The questions are of 7 clusters,")
    assert text.endswith(
        "Design effect on completeness, the variance relative to that of independent questions: old 1.50."
    )
    other = structs.replace(summary.results[0], metric="other", clusters=7)
    assert shown(structs.replace(summary, results=(*summary.results, other)))[1] == []


def test_a_scorer_that_measures_itself_has_its_metrics_explained(summary):
    own = structs.replace(summary.metrics[0], key="bias", compared=False, description="how often the first wins")
    described = structs.replace(summary.metrics[0], description="how whole it is")
    assert shown(structs.replace(summary, metrics=(described, own)))[1] == [
        "completeness: how whole it is.", "bias: how often the first wins.",
    ]  # fmt: skip
    assert shown(structs.replace(summary, metrics=(described,)))[1] == []


def failure(kind: str = "rate_limit", *, trials: int = 2, calls: int | None = None, **fields: Any) -> FailureKind:
    given = {"cls": "agent", "stage": "ask", "attempts": 5, "example": "refused", **fields}
    return FailureKind(kind=kind, trials=trials, calls=calls, **given)


@pytest.mark.parametrize(
    ("one", "row", "tone"),
    [
        (failure(), ("rate limit", "agent", "2", "5", "refused"), "bad"),
        (failure(trials=0), ("rate limit", "agent", "0", "5", "refused"), "quiet"),
        (failure(scorer="judge", cls="not_run"), ("rate limit", "not run, scorer judge", "2", "5", "refused"), "bad"),
        (failure("docs", cls="mcp", calls=1, trials=0), ("docs", "mcp", "0", "1 call", "refused"), "quiet"),
        (failure("docs", cls="mcp", calls=0, trials=0), ("docs", "mcp", "0", "0 calls", "refused"), "quiet"),
    ],
)
def test_a_kind_of_failure_is_a_row(one, row, tone):
    [table] = failures([one])
    assert isinstance(table, Table)
    [found] = table.rows
    assert isinstance(found, Row)
    assert (found.name, *map(plain, found.cells)) == row
    assert found.cells[1].tone == tone  # type: ignore[union-attr]  # a count
    assert table.legend.startswith("Class mcp") == bool(one.calls)


def test_only_the_most_frequent_kinds_are_rows_and_the_others_are_counted():
    for count, legend in ((1, ""), (20, ""), (21, "1 rarer kind left out."), (22, "2 rarer kinds left out.")):
        [table] = failures([failure(str(at)) for at in range(count)])
        assert isinstance(table, Table)
        assert (len(table.rows), table.legend) == (min(count, 20), legend)
