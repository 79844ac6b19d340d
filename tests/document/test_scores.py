"""Tables of means and of failures, from numbers that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.format_metric import POINT_LEGEND
from karat.analysis.model import Difference, FailureKind, Family, Repeat, Step, Summary
from karat.analysis.numbers import Estimate
from karat.analysis.verdicts import NO_DIFFERENCE, NOT_TESTED
from karat.blocks import Group, KindBlocks, Note, Row, Scale, Table, plain
from karat.document.failing import failures
from karat.document.scores import differences, means, measured, note_of, same_again

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
    # the difference in the first line of the report is a point
    assert (scales(table), table.legend, notes) == ({Scale(1, 5)}, POINT_LEGEND, [])


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


def test_the_table_says_over_how_many_questions_means_are(summary):
    def averaged(*counts: int, asked: int = 2) -> str:
        results = tuple(
            structs.replace(one, n_questions=count) for one, count in zip(summary.results, counts, strict=True)
        )
        table, _ = shown(structs.replace(summary, results=results, samples=asked))
        return next(column.legend for column in table.columns if column.head.startswith("mean"))

    assert averaged(2, 2).startswith("Mean over 2 questions;")
    assert averaged(2, 2, asked=3).startswith("Mean over the questions that have a score, 2 of 3 questions;")
    assert averaged(1, 2).startswith("Mean over the questions that have a score, 1 to 2 of 2 questions;")


def test_points_are_explained_and_their_reasons_are_not_given(summary):
    table, notes = shown(result(summary, mean=mean(3.5, 3.5, 3.5, reason="all the same")))
    assert (POINT_LEGEND in table.legend, notes) == (True, [])


def differ(summary: Summary, **fields: Any) -> Difference:
    (pair,) = summary.differences
    given = {
        "estimate": mean(1.0, 0.5, 1.5),
        "p": 0.01,
        "p_adjusted": 0.02,
        "effect": 1.25,
        "n_pairs": 9,
        "winner": "new",
    }
    given |= {"verdict": "new is better", "reason": None, "again": None, "least": None, "most": None, "offline": False}
    return structs.replace(pair, **{**given, **fields})


def compared(summary: Summary, *pairs: Difference, **fields: Any) -> list[Any]:
    return list(differences(structs.replace(summary, differences=pairs, **fields)))


def cells(table: Table) -> list[tuple[str, ...]]:
    return [(row.name, *map(plain, row.cells)) for row in table.rows if isinstance(row, Row)]


NONE: dict[str, Any] = {"winner": None, "verdict": NO_DIFFERENCE}


def test_a_difference_is_a_row_with_its_verdict(summary):
    again = Repeat(shown=True, new_questions=0.9, same_questions=0.95)
    [table] = compared(summary, differ(summary, again=again), differ(summary, **NONE), differ(summary, winner="old"))
    assert cells(table) == [
        ("new − old", "+1.00 [+0.50, +1.50]", "0.020", "1.25", "9", "better", "90 % 95 %"),
        ("new − old", "+1.00 [+0.50, +1.50]", "0.020", "1.25", "9", "no difference shown", "–"),
        ("new − old", "+1.00 [+0.50, +1.50]", "0.020", "1.25", "9", "worse", "–"),
    ]
    rows = [row for row in table.rows if isinstance(row, Row)]
    assert [row.cells[4].tone for row in rows] == ["good", "quiet", "good"]
    assert [row.cells[0].scale for row in rows] == [Scale(-1.05 * 1.5, 1.05 * 1.5, 0.0)] * 3
    heads = [column.head for column in table.columns]
    assert heads == ["second − first", "difference [95 %]", "p (Holm)", "d", "questions", "verdict", "same again"]
    assert "“No difference shown” does not mean that there is none." in table.legend
    assert table.columns[2].legend.endswith("p-values are (Holm, over 3 comparisons).")
    assert (table.folded, table.chart) == (False, "differences")


def test_one_difference_is_not_adjusted(summary):
    [table] = compared(summary, differ(summary), differ(summary, p_adjusted=None))
    assert (table.columns[2].head, table.columns[2].legend, table.legend) == ("p", "", "")
    assert cells(table)[1][2] == "–"


def test_lost_questions_reasons_and_bounds_stand_beside_a_difference(summary):
    lost = {"lost_a": 1, "lost_b": 2, "lost_both": 4, "reason": "too few", "least": -1.0, "most": 2.0}
    [table] = compared(summary, differ(summary, **lost), differ(summary))
    first, second = (row for row in table.rows if isinstance(row, Row))
    assert plain(first.cells[3]) == "9 7 lost"
    assert first.cells[4].below == "too few"
    assert [plain(first.cells[-1]), plain(second.cells[-1])] == ["[−1.00, +2.00]", ""]
    assert table.columns[-1].head == "bounds"
    for loss in ({"loss_a": 0.1}, {"loss_b": 0.1}, {"least": 0.0, "most": 1.0}):
        assert compared(summary, differ(summary, **loss))[0].columns[-1].head == "bounds"
    assert compared(summary, differ(summary, least=1.0, most=1.0))[0].columns[-1].head == "same again"


def test_what_is_not_tested_is_counted(summary):
    untested = differ(summary, verdict=NOT_TESTED)
    assert compared(summary, untested) == []
    [table] = compared(summary, differ(summary), untested, untested)
    assert table.legend == "2 further readings of the same answers not tested."
    family = Family(pairs="baseline", baseline="old", tests=3, left_out=2)
    left_out = compared(summary, differ(summary), family=family)[0].legend
    assert left_out
    assert compared(summary, differ(summary), family=structs.replace(family, left_out=0))[0].legend == ""
    assert POINT_LEGEND in compared(summary, differ(summary, estimate=mean(1.0, 1.0, 1.0)))[0].legend


def test_a_long_table_of_differences_is_folded(summary):
    assert not compared(summary, *[differ(summary)] * 59)[0].folded
    assert compared(summary, *[differ(summary)] * 60)[0].folded
    [table] = compared(summary, differ(summary, estimate=mean(None, None, None)))
    assert {row.cells[0].scale for row in table.rows if isinstance(row, Row)} == {Scale(-1.05, 1.05, 0.0)}


def test_what_would_show_a_difference_is_listed(summary):
    steps = (Step(what="question", more=3, cost=1.5), Step(what="judge repeat", more=1, cost=None))
    open_still = Repeat(shown=False, new_questions=0.5, same_questions=None, settle=steps)
    pair = differ(summary, again=open_still, **NONE)
    _, note = compared(summary, pair)
    line = "new − old on completeness: 3 more questions ($1.50) or 1 more judge repeat."
    assert (note.texts, note.title) == ((line,), "What would show a difference, if it is as large as it looks")
    assert len(compared(summary, *[pair] * 7)[1].texts) == 6
    assert len(compared(summary, differ(summary, again=structs.replace(open_still, shown=True)))) == 1


def test_the_chance_of_the_same_verdict_is_a_dash_if_it_is_not_known():
    assert same_again(None).text == "–"
    alone = same_again(Repeat(shown=True, new_questions=0.5, same_questions=None))
    assert (alone.text, alone.below) == ("50 %", "")
    assert same_again(Repeat(shown=True, new_questions=0.5, same_questions=0.25)).below == "25 %"


def test_metrics_without_a_score_or_with_a_table_of_their_own_are_left_out(summary):
    other = structs.replace(summary.metrics[0], key="other")
    both = structs.replace(summary, metrics=(*summary.metrics, other))
    assert measured(both, KindBlocks()) == [summary.metrics[0]]
    assert measured(both, KindBlocks(scorers=(summary.metrics[0].scorer,))) == []
    unscored = tuple(structs.replace(one, n_answers=0) for one in summary.results)
    assert measured(structs.replace(both, results=unscored), KindBlocks()) == []
    assert [*means(summary, ())] == []
