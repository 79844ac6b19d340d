"""What a tool call gave: values, a schema, an error that is expected, and the time."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from karat import plugins
from karat.errors import JudgeFault
from karat.records import Answer, Reply, Sample, ToolCall, Turn
from karat.scorers import ScorerSetting
from karat.scorers.mcp_result import McpResult

FOUND = {"items": [{"name": "lamp", "price": 7, "new": True}], "total": 1}
GOOD = ToolCall(server="shop", tool="find", result="a lamp", milliseconds=120.0)
BAD = ToolCall(server="shop", tool="find", error="no such shelf: 9", milliseconds=3.0)


def score(options, call=GOOD, structured=FOUND, folder=None, **metadata):
    checked, faults = plugins.check_options(McpResult, options, place="scorers.0")
    assert faults == []
    scorer = plugins.build(McpResult, checked, setting=ScorerSetting(folder=folder, name="call"))
    reply = Reply(
        text="", answer=None if structured is None else json.dumps(structured), tool_calls=(call,) if call else ()
    )
    answer = Answer(trial="t", sample="1", condition="c", repetition=0, replies=(reply,), started="", seconds=0.0)
    try:
        return scorer.score(
            Sample(id="1", position=0, digest="", turns=(Turn(question="q"),), metadata=metadata), answer
        )
    finally:
        scorer.close()


SCHEMA = {"type": "object", "properties": {"total": {"type": "integer", "maximum": 0}}}


@pytest.mark.parametrize(
    ("options", "call", "structured", "value", "reason"),
    [
        ({"values": {"items[0].name": "lamp", "total": 1}}, GOOD, FOUND, True, None),
        ({"values": {"items[0].name": "rug"}}, GOOD, FOUND, False, 'items[0].name is "lamp", expected "rug"'),
        ({"values": {"items[1].name": "rug"}}, GOOD, FOUND, False, 'items[1].name is missing, expected "rug"'),
        ({"values": {"items[0].new": 1}}, GOOD, FOUND, False, "items[0].new is true, expected 1"),
        ({"values": {"total": None}}, GOOD, {"total": None}, True, None),
        ({"values": {"total": 1}}, GOOD, None, False, "there is no structuredContent"),
        ({"schema": SCHEMA}, GOOD, {"total": 0}, True, None),
        ({"schema": SCHEMA}, GOOD, FOUND, False, "total: 1 is greater than the maximum of 0"),
        ({"error": True}, BAD, None, True, None),
        ({"error": True}, GOOD, FOUND, False, "the call succeeded, expected an error"),
        ({"error": False}, BAD, None, False, 'the call failed: "no such shelf: 9"'),
        ({"error": "No such SHELF"}, BAD, None, True, None),
        ({"error": "denied"}, BAD, None, False, 'the error says "no such shelf: 9", expected "denied"'),
        ({"max_milliseconds": 120}, GOOD, FOUND, True, None),
        ({"max_milliseconds": 119}, GOOD, FOUND, False, "took 120 ms, expected at most 119"),
        ({"max_milliseconds": 9}, ToolCall(tool="find"), None, None, "it is not known how long the call took"),
    ],
)
def test_an_expectation(options, call, structured, value, reason):
    verdict = score(options, call, structured)
    assert verdict.values == {"call": value}
    assert verdict.reasons.get("call", "").startswith(reason or "") is True
    assert bool(verdict.reasons) == (reason is not None)


def test_each_of_several_expectations_is_a_metric_and_columns_hold_them():
    options = {"max_milliseconds": 100, "columns": {"values": "wanted", "error": "fails"}}
    verdict = score(options, wanted='{"total": 1}', fails="")
    assert verdict.values == {"call": False, "values": True, "max_milliseconds": False, "error": None}
    assert verdict.reasons == dict.fromkeys(("call", "max_milliseconds"), "took 120 ms, expected at most 100")


def test_a_sample_that_expects_nothing_has_no_score():
    verdict = score({"columns": {"values": "wanted"}})
    assert (verdict.values, verdict.reasons) == ({"call": None}, {"call": "the sample expects nothing"})


def test_an_answer_without_a_call_has_no_score():
    verdict = score({"error": True}, call=None)
    assert (verdict.values, verdict.reasons) == ({"call": None}, {"call": "the agent reports no tool call"})


def test_a_column_that_holds_no_expectation_is_a_fault():
    with pytest.raises(JudgeFault, match="`values` of the sample must be a JSON object"):
        score({"columns": {"values": "wanted"}}, wanted="lamp")


@pytest.mark.parametrize(
    ("options", "problem"),
    [({}, "expects nothing"), ({"error": True, "columns": {"error": "fails"}}, "'error' is set both")],
)
def test_options_that_cannot_be(options, problem):
    with pytest.raises(ValidationError, match=problem):
        McpResult.Options.model_validate(options)
