"""The path: which tools, in which order, with which arguments."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from karat import plugins
from karat.errors import BadOption, JudgeFault
from karat.records import Answer, Reply, Sample, ToolCall, Turn
from karat.scorers import ScorerSetting
from karat.scorers.trajectory import Trajectory

CALLS = (
    ToolCall(server="docs", tool="search", input={"query": "lamp", "limit": 3}, result="1, 2"),
    ToolCall(server="docs", tool="read", input={"id": 1}, error="no such document"),
    ToolCall(server="docs", tool="read", input={"id": 2}, result="A lamp is lit with a match."),
    ToolCall(tool="Bash", input={"command": "ls"}),
)


def build(folder, **options):
    # As the engine does: options are checked, dumped, and read again.
    checked, faults = plugins.check_options(Trajectory, options, place="scorers.0")
    assert faults == []
    return plugins.build(Trajectory, checked, setting=ScorerSetting(folder=folder, name="path"))


def say(scorer, calls=CALLS, detail=None, **metadata):
    """The calls in two turns."""
    replies = (Reply(text="", tool_calls=tuple(calls[:1])), Reply(text="", tool_calls=tuple(calls[1:])))
    answer = Answer(trial="t", sample="1", condition="c", repetition=0, replies=replies, started="", seconds=0.0)
    sample = Sample(id="1", position=0, digest="", turns=(Turn(question="q", detail=detail or {}),), metadata=metadata)
    try:
        return scorer.score(sample, answer)
    finally:
        scorer.close()


OBJECT = {"type": "object", "properties": {"id": {"type": "integer", "minimum": 2}}, "required": ["id"]}


@pytest.mark.parametrize(
    ("options", "value", "reason"),
    [
        ({"used": ["search", "docs.read", "docs.*", "Bash"]}, True, None),
        (
            {"used": ["read", "write"]},
            False,
            "not called: write (the calls were docs.search, docs.read, docs.read, Bash)",
        ),
        ({"used": ["other.search"]}, False, "not called: other.search"),
        ({"used": []}, True, None),
        ({"not_used": ["write", "files.*"]}, True, None),
        ({"not_used": ["Bash", "write"]}, False, "called: Bash"),
        ({"in_order": ["search", "Bash"]}, True, None),
        ({"in_order": ["read", "read"]}, True, None),
        ({"in_order": ["read", "search"]}, False, "search was not called after read"),
        ({"in_order": ["write"]}, False, "write was not called (the calls"),
        ({"max_calls": 4}, True, None),
        ({"max_calls": 3}, False, "4 calls, expected at most 3"),
        ({"arguments": [{"tool": "search", "equals": {"limit": 3, "query": "lamp"}}]}, True, None),
        (
            {"arguments": [{"tool": "search", "equals": {"query": "lamp"}}]},
            False,
            """call 1 of 'search': has {"query": "lamp", "limit": 3}, expected {"query": "lamp"}""",
        ),
        ({"arguments": [{"tool": "read", "equals": {"id": 2}}]}, True, None),
        ({"arguments": [{"tool": "read", "equals": {"id": 2}, "calls": "all"}]}, False, "call 1 of 'read': has"),
        ({"arguments": [{"tool": "write", "equals": {}, "calls": "all"}]}, False, "'write' was not called"),
        ({"arguments": [{"tool": "read", "schema": OBJECT}]}, True, None),
        (
            {"arguments": [{"tool": "read", "schema": OBJECT, "calls": "all"}]},
            False,
            "call 1 of 'read': id: 1 is less than the minimum of 2",
        ),
        ({"arguments": [{"tool": "read", "schema": OBJECT, "calls": "all"}], "only_successful": True}, True, None),
        ({"arguments": [{"tool": "read", "schema": "read.json"}]}, True, None),
        ({"in_order": ["read", "read"], "only_successful": True}, False, "read was not called after read"),
    ],
)
def test_one_expectation(tmp_path, options, value, reason):
    (tmp_path / "read.json").write_text(json.dumps(OBJECT))
    verdict = say(build(tmp_path, **options))
    assert verdict.values == {"path": value}
    assert (reason or "") in verdict.reasons.get("path", "")
    assert bool(verdict.reasons) == (reason is not None)


def test_several_expectations_are_metrics_of_their_own(tmp_path):
    scorer = build(tmp_path, used=["search"], max_calls=1, not_used=["Bash"])
    assert [metric.name for metric in scorer.metrics] == ["path", "used", "not_used", "max_calls"]
    assert {metric.kind for metric in scorer.metrics} == {"share"}
    verdict = say(scorer)
    assert verdict.values == {"path": False, "used": True, "not_used": False, "max_calls": False}
    assert verdict.reasons == {
        "path": "called: Bash; 4 calls, expected at most 1",
        "not_used": "called: Bash",
        "max_calls": "4 calls, expected at most 1",
    }


def test_an_agent_without_calls_has_called_nothing(tmp_path):
    verdict = say(build(tmp_path, used=["search"], not_used=["Bash"]), calls=())
    assert verdict.values == {"path": False, "used": False, "not_used": True}
    assert verdict.reasons["used"] == "not called: search (there were no calls)"


@pytest.mark.parametrize(
    ("metadata", "values"),
    [
        ({"tools": ["search"], "most": 9}, {"path": True, "used": True, "arguments": None, "max_calls": True}),
        ({"tools": "search, write", "most": "9"}, {"path": False, "used": False, "arguments": None, "max_calls": True}),
        ({"tools": '["search"]'}, {"path": True, "used": True, "arguments": None, "max_calls": None}),
        (
            {"args": [{"tool": "read", "schema": OBJECT}]},
            {"path": True, "used": None, "arguments": True, "max_calls": None},
        ),
        (
            {"args": '[{"tool": "read", "equals": {"id": 3}}]'},
            {"path": False, "used": None, "arguments": False, "max_calls": None},
        ),
        (
            {"args": [{"tool": "read", "schema": {"type": "no such type"}}]},
            {"path": None, "used": None, "arguments": None, "max_calls": None},
        ),
        ({"tools": "", "most": None}, {"path": None, "used": None, "arguments": None, "max_calls": None}),
    ],
)
def test_expectations_may_come_from_columns(tmp_path, metadata, values):
    scorer = build(tmp_path, columns={"used": "tools", "max_calls": "most", "arguments": "args"})
    assert say(scorer, **metadata).values == values


@pytest.mark.parametrize(
    ("actions", "values"),
    [
        ([("search", {"q": "x"}), ("read", {"id": 1})], {"path": True, "in_order": True, "arguments": True}),
        ([("read", {"id": 1}), ("search", {"q": "x"})], {"path": False, "in_order": False, "arguments": True}),
        ([("search", {"q": "x"}), ("read", {"id": 9})], {"path": False, "in_order": True, "arguments": False}),
        ([], {"path": None, "in_order": None, "arguments": None}),
    ],
)
def test_a_task_of_tau_bench_says_which_calls_it_expects(tmp_path, actions, values):
    calls = [ToolCall(tool="search", input={"q": "x"}), ToolCall(tool="read", input={"id": 1})]
    detail = {"actions": [{"name": name, "arguments": given} for name, given in actions]}
    scorer = build(tmp_path, columns={"in_order": "actions", "arguments": "actions"})
    assert say(scorer, calls, detail=detail).values == values


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("max_calls", "few", "the sample's 'max_calls' is not valid: Input should be a valid integer"),
        ("used", [3], "the sample's 'used' is not valid: 0: Input should be a valid string"),
        ("arguments", [{"tool": "x"}], "needs either `equals` or `schema`"),
    ],
)
def test_a_column_that_says_nonsense_is_a_fault_of_the_scorer(tmp_path, column, value, message):
    with pytest.raises(JudgeFault, match="bad_expectation") as fault:
        say(build(tmp_path, columns={column: "c"}), c=value)
    assert message in fault.value.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expects nothing; give at least one of used, not_used, in_order, arguments, max_calls"),
        ({"used": ["a"], "columns": {"used": "tools"}}, "is set both in the options and in `columns`"),
        ({"arguments": [{"tool": "a"}]}, "needs either `equals` or `schema`"),
        ({"arguments": [{"tool": "a", "equals": {}, "schema": {}}]}, "needs either `equals` or `schema`"),
        ({"columns": {"use": "tools"}}, "columns"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValidationError) as error:
        Trajectory.Options.model_validate(options)
    assert message in str(error.value)


def test_a_bad_schema_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(BadOption, match="schema"):
        build(tmp_path, arguments=[{"tool": "a", "schema": {"type": "no such type"}}])


def test_a_schema_that_never_ends_is_a_fault_within_its_time(tmp_path):
    slow = {"properties": {"x": {"pattern": "^(a+)+$"}}}
    scorer = build(tmp_path, arguments=[{"tool": "t", "schema": slow}], timeout_seconds=0.3)
    with pytest.raises(JudgeFault, match="scorer_timeout"):
        say(scorer, calls=[ToolCall(tool="t", input={"x": "a" * 40 + "!"})])
