"""What was spent, on whom, and how long it took."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import structs

from karat.analysis import summarize
from karat.analysis.model import Latency, Money, ServerUse
from karat.document.run import document
from karat.document.spending import ledger
from karat.records import Reply, ToolCall, Usage


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
        ToolCall(tool="read", server="files", result="r" * 400),
        ToolCall(tool="Bash", result="not MCP"),
    )
    script.answer(0, "with-docs", reply=Reply(text="x", tool_calls=calls))
    script.answer(1, "with-docs", reply=Reply(text="x", tool_calls=calls[:1]))
    summary = summarize(script.end())
    docs = ServerUse(server="docs", calls=3, errors=1, trials=2, median_ms=10.0, p95_ms=30.0, result_tokens_estimate=4)
    files = ServerUse(
        server="files", calls=1, errors=0, trials=1, median_ms=None, p95_ms=None, result_tokens_estimate=100
    )
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
        ("agent", "crash", 2, 0, "another"),
        ("infrastructure", "rate_limit", 1, 2, "gave up"),
    ]


def test_crashes_are_told_apart_by_the_exception(script):
    script.failure(0, "baseline", message="KeyError: 'a' (agent.py, line 3, in query)")
    script.failure(1, "baseline", message="KeyError: 'b' (agent.py, line 3, in query)")
    script.failure(2, "baseline", message="ValueError: no")
    script.failure(3, "baseline", message="what: a sentence")
    script.failure(0, "with-docs", kind="exit", message="KeyError: not a crash")
    found = {(one.kind, one.error): (one.trials, one.example[:13]) for one in summarize(script.end()).failures}
    assert found == {
        ("crash", "KeyError"): (2, "KeyError: 'b'"),
        ("crash", "ValueError"): (1, "ValueError: n"),
        ("crash", "what"): (1, "what: a sente"),
        ("exit", None): (1, "KeyError: not"),
    }


def test_exceptions_without_end_are_gathered(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1020, conditions=("only",), scorers=())
    for row in range(1020):
        script.failure(row, "only", message=f"Error{row}: no")
    found = summarize(script.end()).failures
    assert (len(found), found[0].kind, found[0].error, found[0].trials) == (1001, "other", None, 20)


def test_the_example_is_the_newest_failure_that_stands(script):
    script.failure(0, "baseline", message="KeyError: first")
    script.failure(1, "baseline", message="KeyError: second")
    script.failure(2, "baseline", message="KeyError: third")
    script.resume()
    script.answer(2, "baseline")
    script.failure(3, "baseline", message="ValueError: mended")
    script.answer(3, "baseline")
    found = summarize(script.end()).failures
    assert [(one.error, one.trials, one.example) for one in found] == [("KeyError", 2, "KeyError: second")]


def test_failures_of_scorers_name_the_scorer(tmp_path, journals):
    other = msgspec.structs.replace(journals.JUDGE, name="tone", scoring="cc" * 16)
    script = journals.Script(tmp_path / "run", samples=2, conditions=("only",), scorers=(journals.JUDGE, other))
    bad = {"cls": "judge", "stage": "score", "kind": "malformed"}
    script.scored(0, "only", value=3)
    script.attempt(0, "only", message="tone: expected a number", **bad)
    script.failure(0, "only", message="tone: expected a number", scorer="tone", scoring=other.scoring, **bad)
    script.answer(1, "only")
    script.attempt(1, "only", message="judge: slow", **bad)
    script.score(1, "only", value=3)
    script.score(1, "only", value=3, scorer=other)
    found = summarize(script.end()).failures
    assert [(one.scorer, one.trials, one.attempts, one.example) for one in found] == [
        ("tone", 1, 1, "tone: expected a number"),
        ("judge", 0, 1, "judge: slow"),
    ]


CALLS = (
    ToolCall(tool="search", server="docs", error="no such index", milliseconds=30.0),
    ToolCall(tool="search", server="docs", error="no such index", milliseconds=10.0),
)


def said(dollars: float | None, *, calls: tuple[ToolCall, ...] = (), tokens: int = 10) -> Reply:
    return Reply(text="x", dollars=dollars, usage=Usage(input_tokens=tokens), tool_calls=calls)


def test_what_was_said_before_an_attempt_failed_was_paid_and_called(script):
    gate = {"cls": "agent", "kind": "gate_tool_success", "message": "every call failed"}
    script.attempt(0, "baseline", replies=(said(0.5, calls=CALLS),), **gate)
    script.answer(0, "baseline", attempts=2, reply=said(0.25, calls=CALLS[:1]))
    account = summarize(script.end()).accounts["baseline"]
    assert account.cost.agent == Money(known=0.75, unknown=0)
    assert (account.tokens.input, account.tokens.unknown, account.failed_attempts) == (20, 0, 1)
    use = ServerUse(server="docs", calls=3, errors=3, trials=1, median_ms=30.0, p95_ms=30.0, result_tokens_estimate=10)
    assert account.servers == (use,)


def test_an_attempt_that_failed_in_its_second_turn_cost_both_calls(script):
    script.attempt(0, "baseline", replies=(said(0.5),), dollars=0.125, usage=Usage(input_tokens=1))
    script.failure(0, "baseline", cls="infrastructure", kind="rate_limit")
    account = summarize(script.end()).accounts["baseline"]
    assert (account.cost.agent, account.tokens.input) == (Money(known=0.625, unknown=0), 11)


def test_replies_are_counted_once_whether_or_not_their_attempt_was_told(script):
    script.reply(0, "baseline", reply=said(0.5, calls=CALLS), attempt=1)
    script.attempt(0, "baseline", n=1, dollars=0.0, usage=Usage(), replies=(said(0.5, calls=CALLS),))
    script.reply(0, "baseline", reply=said(0.25), attempt=2)
    script.answer(0, "baseline", attempts=2, reply=said(0.25))
    script.reply(1, "with-docs", reply=said(0.125, calls=CALLS[:1]), attempt=1)  # then the process was killed
    script.resume()
    script.reply(1, "with-docs", reply=said(1.0), attempt=1)
    script.answer(1, "with-docs", reply=said(1.0))
    summary = summarize(script.end())
    assert summary.accounts["baseline"].cost.agent == Money(known=0.75, unknown=0)
    assert summary.accounts["baseline"].servers[0].calls == 2
    assert summary.accounts["with-docs"].cost.agent == Money(known=1.125, unknown=0)
    assert summary.accounts["with-docs"].servers[0].calls == 1
    assert summary.total.tokens.input == 40
    assert summary.total.retried == 1


def test_replies_of_a_process_that_was_killed_are_in_the_total(script):
    script.reply(1, "with-docs", reply=said(0.125), attempt=1)
    summary = summarize(script.stop())
    assert (summary.total.cost.agent.known, summary.accounts["with-docs"].cost.agent.known) == (0.125, 0)


def test_an_answer_of_several_turns_is_one_trial_of_its_server(script):
    script.answer(0, "baseline", replies=(said(0.0, calls=CALLS), said(0.0, calls=CALLS)))
    assert [(use.calls, use.trials) for use in summarize(script.end()).accounts["baseline"].servers] == [(4, 1)]


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


@pytest.mark.parametrize("reason", ["length", "max_tokens", "model_length", "MAX_TOKENS"])
def test_cut_answers_are_counted_by_condition_and_named_first_from_three_percent_on(tmp_path, journals, reason):
    script = journals.Script(tmp_path / "run", samples=40, scorers=(journals.JUDGE,))
    for sample in range(40):
        for condition, cut in (("baseline", sample < 2), ("with-docs", sample < 1)):
            script.answer(sample, condition, reply=Reply(text="Par", stop_reason=reason if cut else "stop"))
            script.score(sample, condition, value=3)
    summary = summarize(script.end())
    assert [account.cut for account in summary.accounts.values()] == [2, 1]
    assert summary.total.cut == 3
    (notice,) = summary.notices
    assert notice.startswith("Answers were cut at the token limit, and scored as they are: 2 of 40 of baseline;")
    assert document(summary).verdicts[0] == summary.notices[0]
    (table, *_) = ledger(summary)
    assert [column.head for column in table.columns][-1] == "cut"


def test_cut_replies_of_one_conversation_make_one_cut_answer(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",), scorers=())
    script.answer(0, "only", replies=(Reply(text="x", stop_reason="length"), Reply(text="y", stop_reason="length")))
    assert summarize(script.end()).total.cut == 1


@pytest.mark.parametrize(
    ("provenance", "last", "said"),
    [
        ({"judges": ["small-model"]}, 3, True),
        ({"judges": ["small-model"]}, 4, False),
        ({}, 3, False),  # no model judged
    ],
)
def test_a_judge_that_gave_one_value_to_everything_is_named_first(tmp_path, journals, provenance, last, said):
    judge = structs.replace(journals.JUDGE, offline=False, provenance=provenance)
    script = journals.Script(tmp_path / "run", samples=10, conditions=("only",), scorers=(judge,))
    for sample in range(10):
        script.answer(sample, "only")
        script.score(sample, "only", value=last if sample == 9 else 3, scorer=judge)
    summary = summarize(script.end())
    notices = [notice for notice in summary.notices if "in all 10 judgements" in notice]
    assert [notice.partition(":")[0] for notice in notices] == ["small-model gave 3 in all 10 judgements"] * said
    if said:
        assert document(summary).verdicts[0] == notices[0]


def test_scores_of_a_scorer_that_a_damaged_run_does_not_name_are_counted(tmp_path, journals):
    unnamed = structs.replace(journals.JUDGE, scoring="1f" * 16)
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",))
    script.answer(0, "only")
    script.score(0, "only", value=3, scorer=unnamed)
    assert summarize(script.end()).total.attempts.answered == 1
