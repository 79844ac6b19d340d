"""What tool calls show: the rule of use, and which expected tools an answer called."""

from __future__ import annotations

import msgspec
import pytest

from karat.records import Sample, Turn
from karat.tool_use import CalledTool, Offered, called_tool, chosen_tools, expected_tools

OFFERS = {
    "docs": Offered("server", "docs"),
    "tables": Offered("skill", "tables"),
    "house": Offered("plugin", "house"),
}


@pytest.mark.parametrize(
    ("tool", "server", "given", "used"),
    [
        ("search", "docs", {}, {"docs"}),
        ("search", "docs2", {}, set()),
        ("search", None, {}, set()),
        ("docs", None, {}, set()),
        ("Skill", None, {"skill": "skills:tables"}, {"tables"}),
        ("Skill", None, {"skill": "tables"}, {"tables"}),
        ("Skill", None, {"command": "skills:tables"}, {"tables"}),
        ("Skill", None, {"skill": "house:tables"}, {"house"}),
        ("Skill", None, {"skill": "houses:tables"}, set()),
        ("Skill", None, {"skill": 7}, set()),
        ("Skill", None, {}, set()),
        ("Skill", "docs", {"skill": "skills:tables"}, {"docs"}),
        ("Read", None, {"skill": "skills:tables"}, set()),
        ("find", "plugin:house:docs", {}, {"house"}),
        ("find", "plugin:houses:docs", {}, set()),
        ("find", "plugin:docs:house", {}, set()),
    ],
)
def test_a_call_uses_what_it_names_and_nothing_else(tool, server, given, used):
    for form in (given, msgspec.Raw(msgspec.json.encode(given))):
        called = called_tool(tool, server, form)
        assert {name for name, offered in OFFERS.items() if called.uses(offered)} == used


def sample(**metadata):
    return Sample(id="1", position=0, digest="", turns=(), metadata=metadata)


@pytest.mark.parametrize(
    ("options", "metadata", "expected"),
    [
        ({"used": ["search"]}, {}, {"search"}),
        ({"used": ["search"], "in_order": ["read", "search"]}, {}, {"search", "read"}),
        ({"arguments": [{"tool": "read", "equals": {}}]}, {}, {"read"}),
        ({"not_used": ["rm"], "max_calls": 3}, {}, None),
        ({"columns": {"used": "tools"}}, {"tools": ["search"]}, {"search"}),
        ({"columns": {"used": "tools"}}, {"tools": '["search", "read"]'}, {"search", "read"}),
        ({"columns": {"used": "tools"}}, {"tools": "search, read"}, {"search", "read"}),
        ({"columns": {"used": "tools"}}, {"tools": []}, set()),
        ({"columns": {"used": "tools"}}, {"tools": ""}, None),
        ({"columns": {"used": "tools"}}, {}, None),
        ({"columns": {"used": "tools"}}, {"tools": 7}, None),
        ({"columns": {"used": "tools"}, "used": None}, {"tools": ["search", None, "", 3]}, {"search"}),
        ({"columns": 3, "used": "search"}, {}, None),
        ({"columns": {"used": ["tools"]}, "in_order": [["a"], {"tool": 3}, {}]}, {"tools": ["a"]}, set()),
    ],
)
def test_expected_tools_are_those_that_the_scorer_wants_to_be_called(options, metadata, expected):
    found = expected_tools(options, sample(**metadata))
    assert found == (None if expected is None else frozenset(expected))


def test_the_actions_of_a_task_are_expected_tools():
    actions = [{"name": "book", "arguments": {}}, {"name": "pay", "arguments": {}}, {"arguments": {}}, 7]
    task = Sample(id="1", position=0, digest="", turns=(Turn(question="?", detail={"actions": actions}),))
    assert expected_tools({"columns": {"used": "actions"}}, task) == {"book", "pay"}
    assert expected_tools({"columns": {"used": "actions"}}, sample()) is None
    strange = Sample(id="1", position=0, digest="", turns=(Turn(question="?", detail={"actions": 7}),))
    assert expected_tools({"columns": {"used": "actions"}}, strange) is None


@pytest.mark.parametrize(
    ("called", "expected", "known", "matched", "others"),
    [
        ("docs.search", "search", "search", "search", ""),
        ("docs.search", "docs.*", "docs.*", "docs.*", ""),
        ("docs.search", "docs.* search", "docs.* search", "docs.* search", ""),
        ("docs.search", "read", "read docs.search search", "", "docs.search"),
        ("docs.search", "read", "read docs.* search", "", "search"),
        ("docs.search", "read", "read docs.*", "", "docs.*"),
        ("docs.search", "read", "read other.*", "", "docs.search"),
        ("other.search docs.search", "docs.search", "docs.search", "docs.search", "other.search"),
        ("", "read", "read", "", ""),
        ("docs.read docs.rm", "", "read", "", "read docs.rm"),
    ],
)
def test_a_call_is_named_as_expectations_name_it(called, expected, known, matched, others):
    tools = [CalledTool(*reversed(name.split("."))) for name in called.split()]
    found = chosen_tools(tools, expected.split(), known.split())
    assert found == (set(matched.split()), set(others.split()))
