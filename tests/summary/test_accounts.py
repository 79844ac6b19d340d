"""What was spent, on whom, and how long it took."""

from __future__ import annotations

import msgspec
import pytest

from karat.records import Reply, ToolCall, Usage
from karat.summary import summarize
from karat.summary.model import Latency, Money, ServerUse


@pytest.fixture
def script(tmp_path, journals):
    return journals.Script(tmp_path / "run", samples=4, scorers=())


def test_known_dollars_are_summed_and_unknown_ones_counted(script):
    script.answer(0, "baseline", reply=Reply(text="x", dollars=0.1))
    script.answer(1, "baseline", reply=Reply(text="x", dollars=0.2))
    script.answer(2, "baseline", reply=Reply(text="x"))
    script.answer(0, "with-docs", reply=Reply(text="x", dollars=0.0))
    summary = summarize(script.end())
    assert summary.accounts["baseline"].cost.agent == Money(known=pytest.approx(0.3), unknown=1)
    assert summary.accounts["with-docs"].cost.agent == Money(known=0.0, unknown=0)
    assert summary.total.cost.agent == Money(known=pytest.approx(0.3), unknown=1)


def test_failed_attempts_cost_too_whether_the_trial_succeeded_or_not(script):
    script.attempt(0, "baseline", dollars=0.5, usage=Usage(input_tokens=10))
    script.answer(0, "baseline", attempts=2, reply=Reply(text="x", dollars=1.0, usage=Usage(input_tokens=5)))
    script.attempt(1, "baseline", dollars=0.25)
    script.failure(1, "baseline", cls="infrastructure", kind="rate_limit")
    account = summarize(script.end()).accounts["baseline"]
    assert account.cost.agent == Money(known=1.75, unknown=0)
    assert (account.tokens.input, account.tokens.output, account.tokens.unknown) == (15, None, 1)
    assert (account.failed_attempts, account.retried) == (2, 1)


def test_what_a_killed_process_left_behind_is_on_nobodys_account_but_in_the_total(script):
    script.attempt(3, "with-docs", dollars=0.5)
    summary = summarize(script.stop())
    assert summary.accounts["with-docs"].cost.agent.known == 0
    assert summary.total.cost.agent.known == 0.5


def test_money_for_superseded_answers_was_spent_all_the_same(script):
    script.answer(0, "baseline", reply=Reply(text="x", dollars=1.0))
    script.answer(0, "baseline", reply=Reply(text="y", dollars=2.0))
    assert summarize(script.end()).total.cost.agent.known == 3.0


def test_offline_scores_are_free_and_judges_without_a_price_are_not(tmp_path, journals):
    model = msgspec.structs.replace(journals.JUDGE, name="model", scoring="cc" * 16, offline=False)
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",), scorers=(journals.JUDGE, model))
    script.scored(0, "only", value=3)
    script.score(0, "only", value=3, scorer=model, dollars=0.25, repeat=0)
    script.score(0, "only", value=3, scorer=model, repeat=1)
    script.attempt(0, "only", stage="score", cls="judge", kind="malformed", dollars=0.5)
    account = summarize(script.end()).accounts["only"]
    assert account.cost.judge == Money(known=0.75, unknown=1)
    assert account.failed_attempts == 0


def test_a_rule_that_fails_costs_nothing(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",))
    script.answer(0, "only")
    script.attempt(0, "only", stage="score", cls="judge", kind="crash")
    assert summarize(script.end()).accounts["only"].cost.judge == Money(known=0.0, unknown=0)


def test_latency_is_of_the_answers_that_count(script):
    for row, seconds in enumerate([1.0, 2.0, 4.0, 100.0]):
        script.answer(row, "baseline", seconds=seconds)
    script.answer(3, "baseline", seconds=5000.0)
    assert summarize(script.end()).accounts["baseline"].latency == Latency(median=3.0, p95=100.0, n=4)


def test_mcp_calls_are_counted_per_condition_and_server(script):
    calls = (
        ToolCall(tool="search", server="docs", result="r", milliseconds=10.0),
        ToolCall(tool="search", server="docs", error="no such index", milliseconds=30.0),
        ToolCall(tool="read", server="files", result="r"),
        ToolCall(tool="Bash", result="not MCP"),
    )
    script.answer(0, "with-docs", reply=Reply(text="x", tool_calls=calls))
    script.answer(1, "with-docs", reply=Reply(text="x", tool_calls=calls[:1]))
    summary = summarize(script.end())
    docs = ServerUse(server="docs", calls=3, errors=1, trials=2, median_ms=10.0, p95_ms=30.0)
    files = ServerUse(server="files", calls=1, errors=0, trials=1, median_ms=None, p95_ms=None)
    assert summary.accounts["with-docs"].servers == (docs, files)
    assert summary.accounts["baseline"].servers == ()
    assert summary.total.servers == (docs, files)


def test_failures_are_gathered_by_kind_with_one_example(script):
    script.attempt(0, "baseline", kind="rate_limit", message="slow down")
    script.attempt(0, "baseline", kind="rate_limit", message="slow down, please", n=2)
    script.failure(0, "baseline", cls="infrastructure", kind="rate_limit", message="gave up")
    script.failure(1, "baseline", kind="crash", message="Traceback")
    script.failure(2, "baseline", kind="crash", message="another")
    found = summarize(script.end()).failures
    assert [(one.cls, one.kind, one.trials, one.attempts, one.example) for one in found] == [
        ("agent", "crash", 2, 0, "Traceback"),
        ("infrastructure", "rate_limit", 1, 2, "slow down"),
    ]


def test_kinds_without_end_are_gathered(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1200, conditions=("only",), scorers=())
    for row in range(1200):
        script.failure(row, "only", kind=f"crash {row}")
    found = summarize(script.end()).failures
    assert (found[0].kind, found[0].trials) == ("other", 200)
    assert sum(one.trials for one in found) == 1200


def test_a_server_that_was_down_is_the_first_warning(tmp_path, journals):
    from karat.journal import ServerInfo

    down = ServerInfo(name="docs", digest="aa", fault="mcp_server_down: exit code 1")
    script = journals.Script(tmp_path / "run", scorers=(), servers=(down,))
    warnings = summarize(script.end("interrupted")).warnings
    assert warnings[0] == "MCP server 'docs' did not answer: mcp_server_down: exit code 1"
    assert warnings[1].startswith("the run is not complete (status: interrupted; 4 trials not run)")
