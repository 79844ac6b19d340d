"""Values of a row that are read with their places."""

from __future__ import annotations

import pytest

from karat.documents.values import Value

ROW = {"a": {"b": "text", "n": 5}, "list": ["x", {"y": 1}], "none": None, "empty": " ", "flag": True, "number": 2.5}


@pytest.fixture
def row():
    return Value(ROW)


def test_a_value_knows_its_place(row):
    assert (row.at("a").at("b").value, row.at("a").at("b").path) == ("text", "a.b")
    assert row.at("gone").value is None
    assert (row.at("list").at("y").value, row.at("list").at("y").path) == (None, "list.y")
    assert row.wrong == []


def test_an_object_is_wanted(row):
    inside = row.within("a")
    assert (inside.value, inside.path) == (ROW["a"], "a")
    assert row.within("gone") is None
    assert inside.within("b") is None
    assert row.wrong == ["has no 'gone'", "'a.b' must be an object, got 'text'"]


def test_a_list_is_wanted(row):
    entries = row.at("list").list()
    assert [(entry.value, entry.path) for entry in entries] == [("x", "list.0"), ({"y": 1}, "list.1")]
    entries[1].at("y").note("is odd")
    assert row.at("none").list(optional=True) == []
    assert row.at("list").list(optional=True)[0].value == "x"
    assert row.wrong == ["'list.1.y' is odd"]
    assert row.at("none").list() == []
    assert row.at("empty").list(optional=True) == []
    assert row.wrong[1:] == ["has no 'none'", "'empty' must be a list, got ' '"]


def test_a_text_is_wanted(row):
    assert row.at("a").at("b").text() == "text"
    assert row.at("number").text(number=True) == "2.5"
    assert row.at("a").at("b").text(number=True) == "text"
    assert row.at("none").text(optional=True) == row.at("empty").text(optional=True) == ""
    assert row.wrong == []
    for name, optional, number in (
        *(("none", False, False), ("empty", False, False), ("number", True, False), ("flag", False, True)),
    ):
        assert row.at(name).text(optional=optional, number=number) == ""
    assert row.wrong == [
        "has no 'none'",
        "'empty' must be a text, got ' '",
        "'number' must be a text, got 2.5",
        "'flag' must be a text, got true",
    ]


def test_an_id_is_a_text_or_a_whole_number(row):
    assert (row.at("a").at("b").id(), row.at("a").at("n").id()) == ("text", "5")
    assert row.wrong == []
    assert (row.at("number").id(), row.at("flag").id()) == ("", "")
    assert len(row.wrong) == 2


def test_a_choice_is_one_of_the_known_texts(row):
    assert row.at("a").at("b").choice(["text", "other"]) == "text"
    assert row.at("none").choice(["", "text"]) == ""
    assert row.wrong == []
    assert row.at("none").choice(["text", "other"]) == row.at("number").choice(["", "text"]) == ""
    assert row.wrong == [
        "'none' must be one of 'text', 'other', got nothing",
        "'number' must be one of '', 'text', got 2.5",
    ]
