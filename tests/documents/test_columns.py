"""What the cells of a column hold."""

from __future__ import annotations

import math

import pytest

from karat.documents.columns import (
    Column,
    are_messages,
    cell,
    columns_of,
    is_empty,
    number_in,
    outermost,
    paths_in,
    score_in,
    without_number,
    without_point,
)

USER = {"role": "user", "content": "Why?"}
REPLY = {"role": "assistant", "content": "So."}


def column(*values):
    return columns_of([{"x": value} for value in values])["x"]


def test_cells_are_counted_by_what_they_hold():
    seen = column("a text", " ", None, "[nan]", 7, "7.5", "1,5", True, "Yes", ["x"], [USER, REPLY], {"a": 1}, "١٢")
    assert (seen.rows, seen.filled) == (13, 10)
    assert (seen.texts, seen.numbers, seen.flags) == (1, 4, 2)
    assert (seen.lists, seen.objects) == (2, 1)
    assert (seen.messages, seen.replies, seen.single) == (1, 1, 1)
    assert seen.example == "a text"
    assert seen.values == {"a text", "7", "7.5", "1,5", "True", "Yes", "١٢"}
    assert seen.characters == len("a text") + len("7.5") + len("1,5") + len("Yes") + len("١٢")
    assert seen.mean_length == seen.characters / 7


@pytest.mark.parametrize(
    ("chat", "counts"),
    [
        ([USER], (1, 0, 0)),
        ([REPLY], (1, 0, 0)),
        ([USER, REPLY], (1, 1, 1)),
        ([USER, REPLY, USER], (1, 0, 0)),
        ([USER, REPLY, USER, REPLY], (1, 1, 0)),
        ([USER, "So."], (0, 0, 0)),
    ],
)
def test_chats_are_counted_by_who_has_the_last_word(chat, counts):
    seen = column(chat)
    assert (seen.messages, seen.replies, seen.single) == counts


def test_only_the_beginning_of_a_long_text_is_compared():
    seen = column("x" * 201, "x" * 200 + "y", "x" * 199)
    assert seen.values == {"x" * 200, "x" * 199}


@pytest.mark.parametrize(
    ("values", "true"),
    [
        (["a", "b", 1], {"is_text"}),
        (["a", 1], set()),
        ([1, 0, 2], {"is_numeric", "is_scored"}),
        ([1, 0], {"is_numeric", "is_yes_or_no", "is_scored"}),
        (["1.0", "0.0"], {"is_numeric", "is_yes_or_no", "is_scored"}),
        ([True, "no"], {"is_numeric", "is_yes_or_no", "is_scored"}),
        (["0123456789abcdef", "0123456789ABCDE-"], {"is_hashed", "is_text"}),
        (["0123456789abcdef", "short"], {"is_text"}),
        (["correct", "incorrect"], {"is_numeric", "is_yes_or_no", "is_verdict", "is_judgement", "is_scored"}),
        (["right", "WRONG"], {"is_text", "is_verdict", "is_judgement", "is_scored"}),
        (["good", "bad"], {"is_text", "is_scored"}),
        (["wrong", "so so"], {"is_text", "is_verdict"}),
        (["wrong", *"abcde"], {"is_text", "is_verdict"}),
        (["wrong", *"abcdef"], {"is_text"}),
        ([1, 2, "a"], {"is_numeric", "is_scored"}),
        ([1, "a"], set()),
        ([1, 2, 3, "wrong", "a"], {"is_numeric", "is_verdict"}),
        ([1, "wrong"], {"is_verdict", "is_scored"}),
        (["n/a", "-"], {"is_text"}),
        (["good", "n/a"], {"is_text", "is_scored"}),
        ([1, [2]], set()),
        (["a", "a"], {"is_text", "is_constant"}),
        (["a"], {"is_text"}),
        (["a", "a", ""], {"is_text"}),
    ],
)
def test_what_a_column_is(values, true):
    seen = column(*values)
    names = ("text", "hashed", "numeric", "yes_or_no", "verdict", "scored", "judgement", "constant")
    found = {f"is_{name}" for name in names if getattr(seen, f"is_{name}")}
    assert found == true


def test_an_empty_column_is_nothing():
    empty = Column("x", rows=3)
    assert not (empty.is_text or empty.is_hashed or empty.is_numeric or empty.is_verdict)
    assert not (empty.is_scored or empty.is_judgement or empty.is_constant)
    assert empty.mean_length == 0


EMPTY: list[object] = [None, "", " \n", "[None]", " [nan] ", math.nan, [], [None, ""], [[]], {}]
FILLED: list[object] = ["x", "None", 0, 0.0, False, [0], ["", "x"], {"a": None}]


@pytest.mark.parametrize(
    ("value", "empty"),
    [
        *((value, True) for value in EMPTY),
        *((value, False) for value in FILLED),
    ],
)
def test_a_cell_may_hold_nothing(value, empty):
    assert is_empty(value) == empty


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5.0),
        (" 5 % ", 5.0),
        ("1,5", 1.5),
        ("1,000.5", None),
        ("1,000,000", None),
        ("-1e3", -1000.0),
        ("inf", None),
        ("nan", None),
        ("1e999", None),
        ("", None),
        ("%", None),
        ("five", None),
        ("1" * 40, float("1" * 40)),
        ("1" * 41, None),
    ],
)
def test_a_text_may_be_a_number(text, number):
    assert number_in(text) == number


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (3, 3.0),
        (True, 1.0),
        (math.inf, None),
        (math.nan, None),
        (None, None),
        ([1], None),
        (" Correct ", 1.0),
        ("miss", 0.0),
        ("合格", 1.0),
        ("failure", 0.0),
        ("3 / 4", 0.75),
        ("4/4", 1.0),
        ("0/4", 0.0),
        ("5/4", None),
        ("0/0", None),
        ("1/2/2026", None),
        ("85%", 85.0),
        ("partly", None),
    ],
)
def test_a_cell_may_be_a_score(value, score):
    assert score_in(value) == score


def test_messages_are_a_list_of_which_each_says_who_speaks():
    assert are_messages([USER, REPLY])
    assert not are_messages([])
    assert not are_messages([USER, {"content": "So."}])


def test_a_cell_is_found_by_its_path():
    row = {"a.b": 1, "a": {"b": 2, "c": {"d": 3}, "e": 5}}
    paths = ("a.b", "a.c.d", "a.c", "a.c.x", "a.e.x", "x", "x.y")
    assert [cell(row, path) for path in paths] == [1, 3, {"d": 3}, None, None, None, None]


def test_keys_of_objects_are_columns():
    rows = [{"a": {"b": {"c": {"d": {"e": {}}}}}, "n": 1}, {"a.b": 7, "a": {"b": 8}}]
    columns = columns_of(rows)
    assert [*columns] == ["a", "a.b", "a.b.c", "a.b.c.d", "n"]
    assert columns["a.b"].rows == 2
    assert columns["a.b"].values == {"7"}  # a key with a dot wins, if it comes first
    assert [*columns_of([{"a": dict.fromkeys(map(str, range(40)), 1)}])][:3] == ["a", "a.0", "a.1"]
    assert [*columns_of([{"a": dict.fromkeys(map(str, range(41)), 1)}])] == ["a"]
    assert [*columns_of([{"a": {}}])] == ["a"]


def test_the_first_rows_decide():
    assert column(*["a"] * 500, "b").values == {"a"}
    assert column(*["a"] * 499, "b").values == {"a", "b"}
    assert len(columns_of([{f"c{number}": 1 for number in range(1_001)}])) == 1_000


def test_a_point_between_digits_is_part_of_a_name():
    assert without_point("gpt-3.5-turbo.answer") == "gpt-3\u20245-turbo.answer"
    assert paths_in(["a", "a.b", "gpt-4.1"]) == ["a", "gpt-4.1"]


def test_a_number_at_the_end_is_no_part_of_a_name():
    names = ("Response 2", "response_10", "response-1", "RESPONSE", "q1a")
    assert [without_number(name) for name in names] == ["response", "response", "response", "response", "q1a"]


def test_paths_with_the_fewest_dots_are_outermost():
    assert outermost(["a.b", "c", "d.e.f", "g"]) == ["c", "g"]
    assert outermost(["a.b.c", "d.e"]) == ["d.e"]
    assert outermost([]) == []


def test_a_key_with_a_point_is_found_inside_an_object():
    row = {"outputs": {"0.05": {"text": "Yes.", "b": 1}, "0": {"text": "No."}}}
    assert [cell(row, path) for path in ("outputs.0.05.text", "outputs.0.text", "outputs.0.5.text")] == [
        *("Yes.", "No.", None),
    ]


def test_probabilities_of_classes_are_no_scores():
    shares = [(0.7, 0.2, 0.1), (0.1, 0.1, 0.8), (0.25, 0.5, 0.25)]
    rows = [dict(zip(("cat", "dog", "cow"), share, strict=True)) for share in shares]
    labelled = [{"labels": [*row], **row} for row in rows]
    assert not any(column.is_scored for column in columns_of(labelled).values())


def test_scores_are_no_probabilities_of_classes():
    shares = [(0.7, 0.2, 0.1), (0.1, 0.1, 0.8), (0.25, 0.5, 0.25)]
    judged = ("faithfulness", "relevance", "fluency")
    systems = ("gpt4", "claude", "llama")
    for names, label, parts in ((judged, "part", 1), (systems, "part", 2), (systems, "winner", 1)):
        rows = []
        for named, share in zip(names, shares, strict=True):
            numbers = [number / parts for number in share]
            rows.append({label: named, **dict(zip(names, numbers, strict=True))})
        columns = columns_of(rows)
        assert all(columns[name].is_scored for name in names)

    votes = [{"vote": systems[at], **{each: int(each == systems[at]) for each in systems}} for at in range(3)]
    assert all(columns_of(votes)[each].is_scored for each in systems)
