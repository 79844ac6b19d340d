"""Tables of what answers used, from uses that are made up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import ContextUse, ScoreByUse, Summary, ToolConfusion, ToolUse
from karat.analysis.numbers import Estimate
from karat.blocks import Group, Note, Scale, Table, plain
from karat.document.use import tools, use


def estimate(value: float | None, *, n: int = 10) -> Estimate:
    low, high = (None, None) if value is None else (value - 0.05, value + 0.05)
    return Estimate(value=value, low=low, high=high, se=None, n=n, level=0.95, method="made up")


@pytest.fixture
def summary(journals, tmp_path) -> Summary:
    return summarize(journals.table(tmp_path, {"old": [[3.0], [4.0]], "new": [[4.0], [5.0]]}))


def cells(block: Any) -> list[tuple[str, ...]]:
    """A table as texts: its heads, then its rows; a heading is a row of one."""
    assert isinstance(block, Table)
    rows = [(row.name,) if isinstance(row, Group) else (row.name, *map(plain, row.cells)) for row in block.rows]
    return [tuple(column.head for column in block.columns), *rows]


def context(condition: str, name: str, *, used: int | None = 6, failed: int = 0, **fields: Any) -> ContextUse:
    share = estimate(None if used is None else used / 10, n=10)
    plain: dict[str, Any] = {
        "kind": "server", "answers": 10, "only_failed": None if used is None else failed, "share": share, "scores": (),
    }  # fmt: skip
    return ContextUse(**{**plain, **fields}, condition=condition, name=name, used=used)


def by_use(metric: str = "completeness", *, used: int = 6, unused: int = 4) -> ScoreByUse:
    return ScoreByUse(
        metric=metric, used=estimate(0.5, n=2), answers_used=used, not_used=estimate(0.25, n=2), answers_not_used=unused
    )  # fmt: skip


def with_uses(summary: Summary, *contexts: ContextUse) -> list[Any]:
    return list(use(structs.replace(summary, contexts=contexts)))


def test_nothing_is_shown_where_nothing_is_offered(summary):
    assert with_uses(summary) == []


def test_a_row_says_how_many_answers_used_what_is_offered(summary):
    [table] = with_uses(summary, context("new", "docs"), context("old", "grep", kind="skill", used=1, answers=20))
    assert cells(table) == [
        ("condition", "offers", "used [95 %]", "answers"),
        ("new", "MCP server docs", "60.0 % [55.0 %, 65.0 %]", "10"),
        ("old", "skill grep", "10.0 % [5.0 %, 15.0 %]", "20"),
    ]
    assert {row.cells[1].scale for row in table.rows} == {Scale(0, 1)}
    assert [row.color for row in table.rows] == [summary.conditions.index(name) for name in ("new", "old")]


def test_a_column_counts_answers_with_failed_calls_only_where_there_are_some(summary):
    [table] = with_uses(summary, context("new", "docs", failed=2), context("old", "docs"))
    assert [row[4:] for row in cells(table)] == [("only failed calls",), ("2",), ("0",)]
    assert [row.cells[-1].tone for row in table.rows] == ["bad", "quiet"]


def test_use_that_is_not_known_is_a_dash_with_each_reason_once(summary):
    unknown = structs.replace(estimate(None), reason="no call is reported")
    blocks = with_uses(summary, *(context(name, "docs", used=None, share=unknown) for name in ("old", "new")))
    assert [row[2] for row in cells(blocks[0])[1:]] == ["–", "–"]
    assert blocks[1:] == [Note(texts=("Use is not known: no call is reported.",), tone="quiet")]


def test_scores_are_shown_side_by_side_where_there_are_answers_of_both_sides(summary):
    scores = (by_use(), by_use("other metric"))
    one_sided = context("old", "grep", scores=(by_use(used=0), by_use(unused=0)))
    _, table, note = with_uses(summary, context("new", "docs", scores=scores), one_sided)
    assert cells(table) == [
        ("condition", "used [95 %]", "answers", "not used [95 %]", "answers"),
        ("completeness",),
        ("new: MCP server docs", "0.50 [0.45, 0.55]", "6", "0.25 [0.20, 0.30]", "4"),
    ]
    assert "intervals allow for answers to one question being alike" in table.legend
    assert "not randomised" in note.texts[0]
    assert len(with_uses(summary, one_sided)) == 1


def tool(condition: str, name: str, *, called: int = 4, scorer: str = "tools") -> ToolUse:
    return ToolUse(
        scorer=scorer, condition=condition, tool=name, expected=5, called=called, matched=3, precision=estimate(0.75),
        recall=estimate(0.6),
    )  # fmt: skip


def of_tools(summary: Summary, *found: ToolUse, offers: Iterable[str] = (), confused: Any = ()) -> list[Any]:
    contexts = tuple(context(name, "docs") for name in offers)
    return list(tools(structs.replace(summary, tools=found, contexts=contexts, confusions=confused)))


def test_tools_are_grouped_by_condition_and_by_scorer_if_there_are_several(summary):
    numbers = ("75.0 % [70.0 %, 80.0 %]", "60.0 % [55.0 %, 65.0 %]", "5", "4", "3")
    head = ("tool", "precision [95 %]", "recall [95 %]", "expected", "called", "both")
    [table] = of_tools(summary, tool("old", "grep"), tool("old", "cat"), tool("new", "cat"))
    assert cells(table) == [head, ("old",), ("grep", *numbers), ("cat", *numbers), ("new",), ("cat", *numbers)]
    assert (table.limit, [column.rank for column in table.columns]) == (30, [0, 0, 0, 1, 1, 2])
    [table] = of_tools(summary, tool("old", "grep"), tool("old", "cat", scorer="skills"))
    assert cells(table) == [head, ("old, tools",), ("grep", *numbers), ("old, skills",), ("cat", *numbers)]


def test_a_condition_that_offers_and_calls_nothing_has_no_recall(summary):
    idle = tool("old", "grep", called=0)
    assert of_tools(summary, idle) == []
    assert len(of_tools(summary, idle, offers=("new",))) == 0
    assert len(of_tools(summary, idle, offers=("old",))) == 1


def test_a_tool_called_instead_of_another_is_listed_and_a_missing_call_is_not(summary):
    one = ToolConfusion(scorer="tools", condition="old", expected="grep", called="cat", answers=2)
    [table] = of_tools(summary, confused=(one, structs.replace(one, called=None)))
    assert cells(table) == [("expected", "called instead", "condition", "answers"), ("grep", "cat", "old", "2")]
    assert table.limit == 20
    assert [column.number for column in table.columns] == [False, False, False, True]
