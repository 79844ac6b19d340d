"""Conditions whose MCP servers were not used, which comparisons are shown, and intervals without width."""

from __future__ import annotations

import msgspec
import pytest

from karat.analysis import compare, summarize
from karat.analysis.model import ServerProblem
from karat.errors import BadOption
from karat.journal import Choice
from karat.records import Reply, ToolCall


def called(*errors: str | None) -> Reply:
    calls = tuple(
        ToolCall(server="docs", tool="search", result=None if error else "found", error=error) for error in errors
    )
    return Reply(text="Yes.", tool_calls=calls, dollars=0.0)


def run(folder, journals, reply: Reply, *, rows: int = 8, **info):
    script = journals.Script(folder, samples=rows, condition_servers={"with-docs": ("docs",)}, **info)
    for row in range(rows):
        script.answer(row, "baseline")
        script.answer(row, "with-docs", reply=reply)
        for condition in ("baseline", "with-docs"):
            script.score(row, condition, value=3 + (row + (condition == "baseline")) % 2)
    return script.end()


BROKEN = [
    pytest.param(
        called("no such file: index-7.db"),
        ServerProblem(condition="with-docs", answers=8, calls=8, errors=8),
        "with-docs: 8 of 8 MCP calls failed, so its scores do not show what its MCP servers do",
        id="every call fails",
    ),
    pytest.param(
        called("no such file: index-7.db", None),
        ServerProblem(condition="with-docs", answers=8, calls=16, errors=8),
        "with-docs: 8 of 16 MCP calls failed, so its scores do not show what its MCP servers do",
        id="half of the calls fail",
    ),
    pytest.param(
        called(),
        ServerProblem(condition="with-docs", answers=8, calls=0, errors=0),
        (
            "with-docs: no MCP call in 8 answers, so its scores show the effect of offering its MCP servers, not of "
            "using them"
        ),
        id="no call is made",
    ),
]


@pytest.mark.parametrize(("reply", "problem", "words"), BROKEN)
def test_a_condition_whose_servers_were_not_used_is_said_first(tmp_path, journals, reply, problem, words):
    folder = run(tmp_path / "run", journals, reply, reports_tool_calls=True)
    summary = summarize(folder)
    assert summary.server_problems == (problem,)
    assert summary.headline.startswith(f"{words}. with-docs against baseline on completeness: ")
    assert summary.warnings[0].startswith(words)
    assert [one.verdict for one in summary.differences] == ["MCP servers not measured"]
    found = compare(folder, folder, condition_a="baseline", condition_b="with-docs")
    assert (found.server_problems, found.warnings[0]) == ((problem,), words)
    assert found.headline.startswith(words)
    assert "o difference shown" not in f"{summary.headline} {found.headline} {found}"


def test_of_an_agent_that_may_not_report_its_calls_none_reported_is_not_none_made(tmp_path, journals):
    summary = summarize(run(tmp_path / "run", journals, called()))
    problem = ServerProblem(condition="with-docs", answers=8, calls=0, errors=0, reported=False)
    assert summary.server_problems == (problem,)
    words = "with-docs: no MCP call was reported in 8 answers, so whether its MCP servers were used is not known"
    assert summary.warnings[0].startswith(words)


def test_a_condition_whose_calls_failed_until_it_had_no_answers_is_said_first(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3, condition_servers={"with-docs": ("docs",)})
    for row in range(3):
        script.answer(row, "baseline")
        script.score(row, "baseline", value=3)
        script.attempt(row, "with-docs", kind="mcp_call_timeout", replies=(called("no result within 5 s"),))
        script.failure(row, "with-docs", cls="infrastructure", kind="mcp_call_timeout")
    summary = summarize(script.end())
    assert summary.server_problems == (ServerProblem(condition="with-docs", answers=0, calls=3, errors=3),)
    words = "with-docs: 3 of 3 MCP calls failed, and it has no answers"
    assert summary.headline.startswith(words)
    assert summary.warnings[0].startswith(words)


def test_a_condition_whose_server_could_not_be_started_is_said_first(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3, condition_servers={"with-docs": ("docs",)})
    for row in range(3):
        script.answer(row, "baseline")
        script.score(row, "baseline", value=3)
        script.failure(row, "with-docs", cls="infrastructure", stage="preflight", kind="mcp_server_start")
    summary = summarize(script.end())
    assert summary.server_problems == (ServerProblem(condition="with-docs", answers=0, calls=0, errors=0),)
    words = "with-docs: no answer, see Failures"
    assert summary.headline.startswith(words)
    assert summary.warnings[0].startswith(words)


def test_failed_calls_are_grouped_by_their_message_among_the_failures(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3, condition_servers={"with-docs": ("docs",)})
    for row in range(3):
        script.answer(row, "baseline")
        script.answer(row, "with-docs", reply=called(f"no such file: index-{row}.db", "timed out" if row else None))
    summary = summarize(script.end())
    found = [(one.cls, one.kind, one.calls, one.trials, one.example) for one in summary.failures if one.cls == "mcp"]
    assert found == [("mcp", "docs", 3, 0, "no such file: index-0.db"), ("mcp", "docs", 2, 0, "timed out")]


@pytest.mark.parametrize("reply", [called(None), called("lost", None, None)])
def test_servers_that_were_used_are_no_problem(tmp_path, journals, reply):
    summary = summarize(run(tmp_path / "run", journals, reply))
    assert summary.server_problems == ()
    assert summary.headline.startswith("No difference shown")


def conditions(folder, journals, means, *, scorer=None, **info):
    scorer = scorer or journals.JUDGE
    script = journals.Script(folder, samples=6, conditions=list(means), scorers=(scorer,), **info)
    for name, mean in means.items():
        for row in range(6):
            script.answer(row, name)
            script.score(row, name, value=mean + row % 2 / 10, scorer=scorer)
    return script.end()


MEANS = {"a": 2.0, "b": 3.0, "c": 4.5, "d": 1.5, "e": 2.5}


def pairs(summary):
    return [f"{one.a}{one.b}" for one in summary.differences]


def test_each_condition_is_compared_with_the_first_and_with_the_best(tmp_path, journals):
    folder = conditions(tmp_path / "run", journals, MEANS)
    summary = summarize(folder)
    assert pairs(summary) == ["ab", "ac", "ad", "ae", "bc", "cd", "ce"]
    assert msgspec.structs.asdict(summary.family) == {"pairs": "baseline", "baseline": "a", "tests": 7, "left_out": 3}
    every = summarize(folder, pairs="all")
    assert (len(every.differences), every.family.tests, every.family.left_out) == (10, 10, 0)
    by_pair = {(one.a, one.b): one for one in every.differences}
    assert [one.estimate for one in summary.differences] == [
        by_pair[one.a, one.b].estimate for one in summary.differences
    ]


def test_the_best_is_the_lowest_where_lower_is_better(tmp_path, journals):
    metric = msgspec.structs.replace(journals.SCALE, direction="lower")
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=(metric,))
    summary = summarize(conditions(tmp_path / "run", journals, MEANS, scorer=scorer))
    assert pairs(summary) == ["ab", "ac", "ad", "ae", "bd", "cd", "de"]


def test_the_baseline_of_the_experiment_is_the_first_of_each_pair(tmp_path, journals):
    more = {"experiment": {"baseline": Choice(value="e", source="file")}}
    folder = conditions(tmp_path / "run", journals, MEANS, **more)
    assert pairs(summarize(folder)) == ["ea", "eb", "ec", "ed", "ac", "bc", "cd"]
    assert pairs(summarize(folder, baseline="c")) == ["ca", "cb", "cd", "ce"]
    with pytest.raises(BadOption, match=r"has no condition 'cc'"):
        summarize(folder, baseline="cc")


def test_a_result_asked_for_with_swapped_or_unknown_names_is_refused(tmp_path, journals):
    summary = summarize(conditions(tmp_path / "run", journals, MEANS))
    assert summary.result("a", "completeness").n_answers == 6
    with pytest.raises(BadOption, match=r"no condition 'completeness' \(the condition comes first, then the metric\)"):
        summary.result("completeness", "a")
    with pytest.raises(BadOption, match=r"no metric 'completness' \(did you mean 'completeness'\?\)"):
        summary.result("a", "completness")


def test_runs_with_nothing_in_common_are_refused_before_they_are_read(tmp_path, journals):
    left = conditions(tmp_path / "left", journals, {"a": 1.0, "b": 2.0})
    right = conditions(tmp_path / "right", journals, {"c": 1.0, "d": 2.0}, run="9999abcd")
    for folder in (left, right):
        folder.journal.write_bytes(b"no journal at all\n")
    with pytest.raises(BadOption, match=r"the runs have no condition in common; say which .*known: a, b \| c, d"):
        compare(left, right)


def test_a_condition_named_on_one_side_is_compared_with_its_like(tmp_path, journals):
    left = conditions(tmp_path / "left", journals, {"a": 1.0, "b": 2.0})
    right = conditions(tmp_path / "right", journals, {"a": 2.0, "b": 4.0}, run="9999abcd")
    found = compare(left, right, condition_a="b")
    assert [(one.difference.a, one.difference.b) for one in found.pairings] == [("b (1234abcd)", "b (9999abcd)")]


def test_an_interval_without_width_carries_its_mark_wherever_it_is_written(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=6)
    for row in range(6):
        for condition in ("baseline", "with-docs"):
            script.answer(row, condition)
            script.score(row, condition, value=3)
    folder = script.end()
    summary = summarize(folder)
    assert "0.00 [0.00, 0.00]* over 6 questions" in summary.headline
    assert "3.00 [3.00, 3.00]*" in str(summary)
    assert "3.00 [3.00, 3.00]*" in summary._repr_html_()
    text = str(compare(folder, folder, condition_a="baseline", condition_b="with-docs"))
    assert "0.00 [0.00, 0.00]*, 6 questions" in text
    assert "*: every question scored the same; the interval cannot be estimated." in text


def test_failed_calls_are_results_where_the_calls_are_measured(tmp_path, journals):
    reply = called("Invalid arguments: 'query' is required")
    measured = run(tmp_path / "measured", journals, reply, reports_tool_calls=True, measures_calls=True)
    summary = summarize(measured)
    assert (summary.server_problems, summary.warnings, summary.failures) == ((), (), ())
    assert summarize(run(tmp_path / "used", journals, reply, reports_tool_calls=True)).server_problems != ()
