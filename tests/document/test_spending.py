"""How trials ended and what they cost, from accounts that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import Cost, Ledger, Money, ServerUse, Summary
from karat.blocks import Bar, Row, Table, plain
from karat.document.spending import ledger, servers, spent


@pytest.fixture(scope="module")
def summary(journals, tmp_path_factory) -> Summary:
    scores = {"old": [[3.0], [4.0]], "new": [[4.0], [5.0]]}
    return summarize(journals.table(tmp_path_factory.mktemp("run") / "run", scores))


def changed(summary: Summary, **fields: Any) -> Summary:
    """The total and both accounts with other fields."""
    accounts = {name: structs.replace(account, **fields) for name, account in summary.accounts.items()}
    return structs.replace(summary, total=structs.replace(summary.total, **fields), accounts=accounts)


def only(blocks: Any) -> Table:
    (table,) = blocks
    assert isinstance(table, Table)
    return table


def texts(table: Table) -> list[tuple[str, ...]]:
    heads = tuple(column.head for column in table.columns)
    return [heads, *((row.name, *map(plain, row.cells)) for row in table.rows if isinstance(row, Row))]


ENDED = Ledger(planned=20, scored=10, agent=1, infrastructure=2, judge=0, limit=0, not_run=4, decided=3)


def test_classes_that_a_trial_is_in_are_columns(summary):
    table = only(ledger(changed(summary, ledger=ENDED)))
    numbers = ("20", "10", "1", "2", "4", "3")
    assert texts(table) == [
        ("condition", "planned", "scored", "agent's fault", "infrastructure", "not run", "not run: decided"),
        ("old", *numbers),
        ("new", *numbers),
        ("in all", *numbers),
    ]
    assert [(row.color, row.total) for row in table.rows] == [(0, False), (1, False), (None, True)]
    cells = table.rows[0].cells
    shares = {
        "scored": 0.5,
        "agent": 0.05,
        "infrastructure": 0.1,
        "judge": 0,
        "limit": 0,
        "not-run": 0.2,
        "decided": 0.15,
    }
    assert cells[0].bar == Bar(tuple(shares.items()))
    assert [cell.tone for cell in cells[1:]] == ["", "bad", "bad", "", ""]
    nothing = structs.replace(ENDED, scored=0, agent=0)
    mixed = structs.replace(summary.accounts["old"], ledger=nothing)
    whole = changed(summary, ledger=ENDED)
    table = only(ledger(structs.replace(whole, accounts={"old": mixed})))
    assert [cell.tone for cell in table.rows[0].cells[1:3]] == ["quiet", "quiet"]
    assert len(table.rows) == 1  # one condition is all


def test_what_nobody_scores_is_answered_and_nothing_planned_has_no_bar(summary):
    unscored = structs.replace(changed(summary, ledger=ENDED), metrics=())
    assert texts(only(ledger(unscored)))[0][2] == "answered"
    none = Ledger(planned=0, scored=0, agent=0, infrastructure=0, judge=0, limit=0, not_run=0)
    table = only(ledger(changed(summary, ledger=none)))
    assert texts(table)[0] == ("condition", "planned", "scored")
    assert table.rows[0].cells[0].bar is None


def test_further_counts_are_columns_only_if_there_are_some(summary):
    table = only(ledger(changed(summary, retried=2, failed_attempts=0, cut=1)))
    assert texts(table)[1] == ("old", "2", "2", "2", "1")
    assert [(column.head, column.rank) for column in table.columns[3:]] == [("retried", 1), ("cut", 1)]
    table = only(ledger(changed(summary, failed_attempts=5, retried=0, cut=0)))
    assert [(column.head, column.rank) for column in table.columns[3:]] == [("failed attempts", 2)]


def test_money_that_is_not_known_is_told_of(summary):
    def cost(agent: int, judge: int) -> Table:
        money = Cost(agent=Money(known=1.5, unknown=agent), judge=Money(known=0.0, unknown=judge))
        return only(spent(changed(summary, cost=money)))

    assert "No price known for 3 calls: ≥ leaves them out" in cost(1, 2).legend
    assert texts(cost(1, 2))[1][1:3] == ("≥ $1.50", "–")
    assert "No price known" not in cost(0, 0).legend
    assert texts(cost(0, 0))[3][:3] == ("in all", "$1.50", "$0.00")
    assert [column.rank for column in cost(0, 0).columns] == [0, 0, 0, 0, 1, 2, 2, 3, 3]
    alone = structs.replace(summary, accounts={"old": summary.accounts["old"]})
    assert [row.name for row in only(spent(alone)).rows] == ["old"]


def test_servers_are_rows_under_their_condition(summary):
    docs = ServerUse(
        server="docs", calls=5, errors=2, trials=3, median_ms=1500.0, p95_ms=None, result_tokens_estimate=90
    )
    fine = structs.replace(docs, server="web", errors=0)
    account = structs.replace(summary.accounts["new"], servers=(docs, fine))
    table = only(servers(structs.replace(summary, accounts={**summary.accounts, "new": account})))
    assert texts(table)[1:] == [
        ("docs", "new", "5", "2", "3", "1.5 s", "–", "90"),
        ("web", "new", "5", "0", "3", "1.5 s", "–", "90"),
    ]
    assert [row.cells[2].tone for row in table.rows] == ["bad", "quiet"]
    assert [(column.number, column.rank) for column in table.columns] == [
        *((False, 0), (False, 0), (True, 0), (True, 0), (True, 2), (True, 0), (True, 1), (True, 0)),
    ]
    assert [*servers(summary)] == []
