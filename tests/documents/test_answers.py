"""Which question, condition and repetition each row of recorded answers is."""

from __future__ import annotations

import pytest

from karat.documents.answers import (
    Copies,
    Repetitions,
    condition_columns,
    condition_of,
    conditions_of,
    error_in,
    hint,
    key_of,
    repetition_value,
    sample_columns,
    says_no_error,
    stop_reason,
    usual,
    usual_id,
)
from karat.documents.batches import Batch, Table


def table(*rows):
    return Table([*enumerate(rows, start=1)])


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        ([("a", 1), ("a", 2), ("b", 1), ("b", 2)], [0, 1, 0, 1]),
        ([("a", 20), ("a", 10), ("b", 10)], [1, 0, 0]),
        ([("a", "first"), ("a", "second"), ("b", "first")], [0, 1, 0]),
        ([("a", 4711), ("a", 42), ("b", 7), ("b", 99)], [1, 0, 0, 1]),
        # seeds, of which one is that of two questions
        ([("a", 1), ("a", 5), ("a", 6), ("b", 1), ("b", 7)], [0, 1, 2, 1, 0]),
        ([("a", 2), ("b", 2), ("a", "late")], [0, 0, 1]),
    ],
)
def test_repetitions_are_numbered_from_0(rows, numbers):
    repetitions = Repetitions()
    for sample, value in rows:
        repetitions.add(sample, None, value)
    assert [repetitions.number(sample, None, value) for sample, value in rows] == numbers


def test_each_condition_numbers_its_repetitions():
    repetitions = Repetitions()
    for condition, values in (("x", (1, 2)), ("y", (2, 3)), (None, (None,))):
        for value in values:
            for sample in ("a", "b", "c"):
                repetitions.add(sample, condition, value)
    assert [repetitions.number("a", "x", value) for value in (1, 2)] == [0, 1]
    assert [repetitions.number("c", "y", value) for value in (2, 3)] == [0, 1]


@pytest.mark.parametrize(
    ("value", "taken"),
    [(None, None), ("", None), (3, 3), (3.0, 3), ("3", 3), (" 3.0 ", 3), ("first", "first"), (2.5, "2.5"), (0, 0)],
)
def test_a_repetition_is_a_whole_number_or_a_text(value, taken):
    assert repetition_value(value, "run") == taken


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (True, "'run' is true, expected a number or a text"),
        ([1], "'run' is [1], expected a number or a text"),
        (-1, "'run' is -1, expected a whole number from 0"),
        ("-2.0", "'run' is -2, expected a whole number from 0"),
    ],
)
def test_a_repetition_is_nothing_else(value, why):
    with pytest.raises(ValueError, match="run") as error:
        repetition_value(value, "run")
    assert str(error.value) == why


def test_usual_names_are_found_however_they_are_written():
    assert usual(["model_name", "condition", "x"], ["Condition ", "Model - Name", "condition"]) == [
        *("Model - Name", "Condition ")
    ]
    assert usual_id(["text", "row", "Question ID"]) == "Question ID"
    assert usual_id(["text"]) is None


def test_a_hint_names_no_column_of_another_role():
    assert hint("golden", "answers", ["answer_key", "answer"]) == " (did you mean 'answer'?)"
    assert hint("golden", "expected_outputs", ["actual_output", "text"]) == " (known: actual_output, text)"
    assert hint("answer", "expected_outputs", ["expected_output", "text"]) == " (known: expected_output, text)"
    assert hint("cluster", "expected_outputs", ["expected_output", "text"]) == " (did you mean 'expected_output'?)"


def test_a_key_is_the_texts_without_differences_in_white_space():
    row = {"a": " x \n y", "b": {"c": 5}, "d": None, "e": ["x"]}
    assert key_of(row, ["a", "b.c", "d", "e", "gone"]) == ("x y", "5", "", '["x"]', "")
    assert key_of(row, []) == ()


QUESTIONS = [{"id": 1, "q": "A?", "g": "a"}, {"id": 2, "q": "B?", "g": "b"}]


@pytest.mark.parametrize(
    ("rows", "columns", "several"),
    [
        pytest.param(QUESTIONS, ["id"], False, id="a row for each id"),
        pytest.param([*QUESTIONS, QUESTIONS[0]], ["id"], True, id="several rows of an id"),
        pytest.param([*QUESTIONS, {"id": 1, "q": "", "g": "a"}], ["id"], True, id="an id without its question"),
        pytest.param([*QUESTIONS, {"id": 1, "q": "C?", "g": "c"}], ["q", "g"], True, id="an id of two questions"),
        pytest.param([*QUESTIONS, {"id": None, "q": "C?", "g": "c"}], ["q", "g"], True, id="a row without an id"),
        pytest.param([row | {"id": at} for at, row in enumerate(QUESTIONS * 2)], ["q", "g"], True, id="ids of rows"),
        pytest.param(
            [*(row | {"id": at} for at, row in enumerate(QUESTIONS * 2)), {"id": 9, "q": "C?", "g": "c"}],
            ["id"],
            False,
            id="ids of questions, of which some are the same",
        ),
    ],
)
def test_rows_of_one_question_agree_in_its_id_or_in_its_text(rows, columns, several):
    found = sample_columns(table(*rows), question="q", golden="g", id_column="id")
    assert found == (columns, several)


def test_without_an_id_or_a_golden_answer_the_question_is_enough():
    rows = table(*QUESTIONS)
    assert sample_columns(rows, question="q", golden="g", id_column=None) == (["q", "g"], True)
    assert sample_columns(rows, question="q", golden=None, id_column=None) == (["q"], True)
    by_id = [row | {"id": at} for at, row in enumerate(QUESTIONS * 2)]
    assert sample_columns(table(*by_id), question="q", golden=None, id_column="id") == (["id"], False)


def test_a_row_says_why_its_answer_ended():
    assert stop_reason({"text": "x", "finish_reason": "length"}) == "length"
    assert stop_reason({"finish_reason": None, "stop_reason": 5}) == "5"
    assert stop_reason({"finish_reason": "", "text": "x"}) is None


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"error": "timed out"}, "timed out"),
        ({"error": {"code": 5}}, '{"code":5}'),
        ({"error": " None "}, None),
        ({"error": "No"}, None),
        ({"error": 0}, None),
        ({"error": False}, None),
        ({"error": []}, None),
        ({"error": None, "exception": "KeyError"}, "KeyError"),
        ({"error": "false", "errorMessage": "lost"}, "lost"),
        ({"text": "timed out"}, None),
        ({"text": "It", "run_status": "timed out"}, "timed out"),
        ({"text": "It", "status": "done"}, None),
    ],
)
def test_a_row_may_report_an_error(row, error):
    assert error_in(row) == error


def test_words_say_that_there_was_no_error():
    assert [says_no_error(text) for text in ("", " N/A", "0", "-", "1", "none at all")] == [*[True] * 4, False, False]


def both(**columns):
    """Two questions, each with a row for each of the values."""
    rows = []
    for question in ("A?", "B?"):
        for values in zip(*columns.values(), strict=True):
            rows.append({"q": question, **dict(zip(columns, values, strict=True))})
    return table(*rows)


@pytest.mark.parametrize(
    ("columns", "options", "chosen"),
    [
        pytest.param({"variant": ["x", "y"]}, {}, ("variant",), id="two values of a question"),
        pytest.param({"variant": ["x", "x"]}, {}, (), id="one value"),
        pytest.param({"variant": ["x", ""]}, {}, (), id="a value and none"),
        pytest.param({"other": ["x", "y"]}, {}, (), id="no usual name"),
        pytest.param({"variant": ["x", "y"]}, {"used": ["variant"]}, (), id="another meaning"),
        pytest.param({"variant": ["x", "y"]}, {"first": ["other"]}, ("other", "variant"), id="beside a first one"),
        pytest.param(
            {"variant": ["x", "y"], "other": ["1", "2"]}, {"first": ["other"]}, ("other",), id="told by the first one"
        ),
        pytest.param({"variant": ["x", "y"], "setting": ["1", "2"]}, {}, ("variant",), id="one is enough"),
        pytest.param(
            {"variant": ["x", "x", "y"], "setting": ["1", "2", "1"]}, {}, ("variant", "setting"), id="only together"
        ),
    ],
)
def test_conditions_are_columns_that_part_the_rows_of_a_question(columns, options, chosen):
    if options.get("first") and "other" not in columns:
        columns = {**columns, "other": ["", ""]}
    assert condition_columns(both(**columns), ["q"], **options) == chosen


def test_a_model_is_a_condition_also_if_no_question_has_two():
    rows = [{"q": "A?", "model": "small", "setting": "x"}, {"q": "B?", "model": "large", "setting": "y"}]
    assert condition_columns(table(*rows), ["q"]) == ("model",)
    assert condition_columns(table(*rows), ["q"], used=["model"]) == ()
    assert condition_columns(table(rows[0], rows[0]), ["q"]) == ()


def test_a_condition_is_its_texts_together():
    row = {"model": "m", "k": 5, "none": ""}
    assert condition_of(row, ["model", "none", "k"]) == "m · 5"
    assert condition_of(row, ["none", "gone"]) is None
    assert condition_of(row, []) is None
    batch = Batch([1, 2], [row, {"k": 6}])
    assert conditions_of(batch, ["model", "k"]) == ["m · 5", "6"]
    assert conditions_of(batch, ["none"]) == [None, None]
    assert conditions_of(batch, []) == [None, None]


def test_copies_are_counted_once_and_named():
    copies = Copies("line")
    rows = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}, {"a": 1, "b": 2}]
    assert copies.sentence() is None
    assert [copies.is_copy(number, row) for number, row in enumerate(rows, start=1)] == [False, True, False, True]
    assert copies.sentence() == (
        "2 lines repeat an earlier line word for word and count once (line 2, 4); if they are repetitions, number them "
        "in a column 'repetition'"
    )
    one = Copies("item")
    assert one.is_same(3, {"a": 1}, {"a": 1})
    assert not one.is_same(4, {"a": 1}, {"a": 2})
    assert (one.sentence() or "").startswith("1 item repeats an earlier item word for word and count once (item 3); ")
