"""What the cells of a row say under their roles: question, choices, golden answers."""

from __future__ import annotations

import math

import pytest

from karat.documents.cells import (
    Golden,
    Options,
    Unread,
    as_text,
    dialogue,
    golden,
    holds_texts,
    index_base,
    is_undecided_list,
    means_any,
    needs_base,
    of_choice,
    only_text,
    options,
    parsed,
    question,
    reply_of,
    with_distractors,
    with_options,
    without_reply,
)

USER = {"role": "user", "content": "Why?"}
REPLY = {"role": "assistant", "content": "So."}
SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("  ", None),
        ([], None),
        ({}, None),
        (math.nan, None),
        ("[None]", None),
        (" as it is ", " as it is "),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (2.5, "2.5"),
        (["one"], "one"),
        ("['one']", "one"),
        ('["one", "two"]', '["one", "two"]'),
        ("[1]", "[1]"),
        ([["one"]], "one"),
        ([7], "7"),
        ([USER], "Why?"),
        ([[USER], REPLY], "user: Why?\nassistant: So."),
    ],
)
def test_a_cell_is_a_text(value, text):
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": 1}, "is an object"),
        (["one", "two"], "is a list"),
        ([{"a": 1}], "is a list"),
        ([USER, "So."], "is a list"),
    ],
)
def test_a_cell_that_is_no_text_says_what_it_is(value, why):
    with pytest.raises(Unread) as error:
        as_text(value)
    assert str(error.value) == why


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([SYSTEM, USER], "Be brief.\n\nWhy?"),
        ([{"role": "Human", "content": "Why?"}], "Why?"),
        ([{"role": "developer", "content": "Be brief."}, USER], "Be brief.\n\nWhy?"),
        ([USER, REPLY], "user: Why?\nassistant: So."),
        ([USER, USER], "user: Why?\nuser: Why?"),
        ([SYSTEM, SYSTEM, USER], "system: Be brief.\nsystem: Be brief.\nuser: Why?"),
        ([SYSTEM], "system: Be brief."),
        ([SYSTEM, {"role": "user", "content": ""}], "system: Be brief."),
        (
            [{"role": "user", "content": [{"type": "text", "text": "Why"}, {"type": "image"}, {"text": "so?"}]}],
            "Why\nso?",
        ),
        ([{"role": "user", "content": 5}], "5"),
        ([USER, {"from": "admin", "body": "Hold on."}, REPLY], "user: Why?\nadmin: Hold on.\nassistant: So."),
    ],
)
def test_messages_are_a_dialogue_unless_only_the_user_speaks(messages, text):
    assert dialogue(messages) == text


def test_the_reply_is_what_the_assistant_says_last():
    assert without_reply([USER, REPLY]) == [USER]
    for other in ([USER], [REPLY], [], "text", [USER, REPLY, USER]):
        assert without_reply(other) is other
        assert reply_of(other) is None
    assert reply_of([USER, REPLY]) == Golden("So.", ("So.",))
    assert reply_of([USER, {"role": "assistant", "content": "First: so."}]) == Golden("First: so.", ("First: so.",))
    assert reply_of([USER, {"role": "assistant", "content": " "}]) is None


@pytest.mark.parametrize(
    ("row", "paths", "text"),
    [
        ({"a": "A text.", "q": "Why?"}, ["a", "q"], "A text.\n\nWhy?"),
        ({"a": None, "q": "Why?"}, ["a", "q"], "Why?"),
        ({"q": ""}, ["q"], None),
        ({"q": ["Here it is.", "Why?"]}, ["q"], "Here it is.\n\nWhy?"),
        ({"in": {"q": 7}}, ["in.q"], "7"),
        ({"q": ' [{"role": "user", "content": "Why?"}]'}, ["q"], "Why?"),
        ({"q": "[1] Why?"}, ["q"], "[1] Why?"),
        ({"q": '["Why?", "How?"]'}, ["q"], '["Why?", "How?"]'),
        ({"q": [USER, REPLY]}, ["q"], "user: Why?\nassistant: So."),
    ],
)
def test_a_question_is_the_texts_of_its_columns(row, paths, text):
    assert question(row, paths) == text


def test_a_question_ends_before_the_reply_that_is_its_golden_answer():
    row = {"chat": [USER, REPLY], "other": [USER, REPLY]}
    assert question(row, ["chat"], golden="chat") == "Why?"
    assert question(row, ["other"], golden="chat") == "user: Why?\nassistant: So."


AB = Options(("9", "2"), ("A", "B"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["9", "2"], AB),
        ([9, None, 2], AB),
        (["9"], None),
        ([["9"], "2"], None),
        ([], None),
        ("", None),
        (7, None),
        ("9\n2", AB),
        ("9|2", AB),
        ("9;2", AB),
        (" 9, 2,", AB),
        ("9, 1\n2", Options(("9, 1", "2"), ("A", "B"))),
        ("one text", None),
        ('["9", "2"]', AB),
        (["x) 9", "y. 2"], Options(("9", "2"), ("x", "y"))),
        (["(1) 9", "12: 2"], Options(("9", "2"), ("1", "12"))),
        (["A) 9", "A) 2"], Options(("A) 9", "A) 2"), ("A", "B"))),
        (["A) 9", "2"], Options(("A) 9", "2"), ("A", "B"))),
        ([str(number) for number in range(27)], None),
        (
            [str(number) for number in range(26)],
            Options(tuple(map(str, range(26))), tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
        ),
        # objects
        ([{"label": "x", "text": "9"}, {"label": "y", "text": "2"}], Options(("9", "2"), ("x", "y"))),
        ([{"text": 9}, {"text": 2}], AB),
        ([{"label": "x", "text": "9"}, {"label": "x", "text": "2"}], AB),
        ([{"label": "x", "text": "9"}, {"text": "2"}], AB),
        ([{"label": "long", "text": "9"}, {"label": "y", "text": "2"}], AB),
        ([{"label": "abc", "text": "9"}, {"label": "y", "text": "2"}], Options(("9", "2"), ("abc", "y"))),
        ([{"id": 1, "content": "9"}, {"id": 2, "content": "2"}], Options(("9", "2"), ("1", "2"))),
        ([{"label": "9"}, {"label": "2"}], AB),
        ([{"text": "9"}, {"other": "2"}], None),
        ([{"text": "9"}, {"text": "2", "is_correct": True}], Options(("9", "2"), ("A", "B"), (1,))),
        ([{"text": "9", "correct": True}, {"text": "2", "correct": 1}], Options(("9", "2"), ("A", "B"), (0,))),
        ([{"text": str(number)} for number in range(27)], None),
        # one object
        ({"text": ["9", "2"], "label": ["x", "y"]}, Options(("9", "2"), ("x", "y"))),
        ({"choices": [9, 2], "labels": [1, 2]}, Options(("9", "2"), ("1", "2"))),
        ({"choices": ["9", "2"], "labels": [0, 1]}, Options(("9", "2"), ("A", "B"), (1,))),
        ({"choices": ["9", "2"], "labels": ["1", "1"]}, Options(("9", "2"), ("A", "B"), (0, 1))),
        ({"text": ["9", "2"], "label": ["x"]}, AB),
        ({"text": ["9", "2"]}, AB),
        ({"x": "9", "y": 2}, Options(("9", "2"), ("x", "y"))),
        ({"x": "9"}, None),
        ({"long": "9", "y": "2"}, None),
        ({"abc": "9", "y": "2"}, Options(("9", "2"), ("abc", "y"))),
        ({"x": "9", "y": ["2"]}, None),
    ],
)
def test_choices_are_a_list_an_object_or_a_text(value, expected):
    assert options({"choices": value}, ["choices"]) == expected


def test_as_many_choices_as_letters_may_be_marked_as_right():
    def marked(many):
        labels = [int(at == 3) for at in range(many)]
        return options({"choices": {"text": [str(at) for at in range(many)], "label": labels}}, ["choices"])

    assert (marked(26).labels[-1], marked(26).right) == ("Z", (3,))
    assert (marked(27).labels[:2], marked(27).right) == (("0", "0"), ())


def test_choices_may_be_columns():
    row = {"a": "9", "b": "2", "c": None, "d": ""}
    assert options(row, ["a", "b", "c"]) == AB
    assert options(row, ["a", "c", "d"]) is None


def test_a_golden_answer_among_distractors_is_not_always_first():
    row = {"right": "2", "wrong": ["9", "7"], "other": "2", "none": None}
    mixed = with_distractors(row, "right", ["wrong", "other"])
    assert mixed is not None
    assert (sorted(mixed.texts), mixed.labels) == (["2", "7", "9"], ("A", "B", "C"))
    again = with_distractors({"right": "7", "wrong": ["2", "9"]}, "right", ["wrong"])
    assert again == mixed  # the order is that of the texts
    assert with_distractors(row, "none", ["wrong"]) is None
    assert with_distractors(row, "right", ["none"]) is None
    many = with_distractors({"right": "x", "wrong": [str(number) for number in range(25)]}, "right", ["wrong"])
    assert many is not None
    assert [*many.texts] != sorted(many.texts)
    assert with_distractors({"right": "x", "wrong": [*map(str, range(26))]}, "right", ["wrong"]) is None


def test_choices_are_written_below_the_question_once():
    assert with_options("Which? \n", AB) == "Which?\n\nA) 9\nB) 2"
    assert with_options("Which: 9 or 2?", AB) == "Which: 9 or 2?"
    assert with_options("Which: 9 or what?", AB) == "Which: 9 or what?\n\nA) 9\nB) 2"
    assert with_options("9 or 2?", Options((" 9", "2 "), ("A", "B"))) == "9 or 2?"


XYZ = Options(("x", "y", "z"), ("A", "B", "C"))


@pytest.mark.parametrize(
    ("values", "base"),
    [
        ([0, 1], 0),
        ([1, 3], 1),
        ([1, 2], None),
        ([0, 3], None),
        (["0"], 0),
        (["3.0"], 1),
        ([[0]], 0),
        ([[0, 1]], 0),
        (["1, 3"], 1),
        ([3.0], 1),
        ([2.5], None),
        ([False], None),
        (["A"], None),
        (["003"], None),
        ([], None),
    ],
)
def test_an_index_shows_from_what_it_counts(values, base):
    assert index_base((value, XYZ) for value in values) == base
    assert index_base((value, None) for value in values) is None


@pytest.mark.parametrize(
    ("values", "needed"),
    [
        ([1, 2], True),
        ([3], True),
        ([4], False),
        ([1, "A"], False),
        ([1, None], True),
        ([None], False),
        ([], False),
    ],
)
def test_indexes_are_numbers_that_are_no_choices(values, needed):
    assert needs_base((value, XYZ) for value in values) == needed
    assert not needs_base((value, None) for value in values)
    numbers = Options(("1", "2", "3"), ("A", "B", "C"))
    assert not needs_base((value, numbers) for value in values)
    labelled = Options(("x", "y", "z"), ("1", "2", "3"))
    assert not needs_base((value, labelled) for value in values)


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        ("B", None, Golden("B", ("B", "y", "B) y"))),
        (" b ", None, Golden("B", ("B", "y", "B) y"))),
        ("Y", None, Golden("B", ("B", "y", "B) y"))),
        ("(B) y", None, Golden("B", ("B", "y", "B) y"))),
        ("b.", None, Golden("B", ("B", "y", "B) y"))),
        ("b.5", None, None),
        ("D) w", None, None),
        (1, None, None),
        (0, 0, Golden("A", ("A", "x", "A) x"))),
        (2, 0, Golden("C", ("C", "z", "C) z"))),
        (3, 0, None),
        (3, 1, Golden("C", ("C", "z", "C) z"))),
        (0, 1, None),
        (["A", "C"], None, Golden("A, C", ("A, C",))),
        (["A", "w"], None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_a_golden_choice_is_its_letter(value, base, expected):
    assert of_choice(value, XYZ, base=base) == expected


def test_a_choice_that_is_called_like_a_letter_is_not_accepted_by_its_text():
    crossed = Options(("b", "a"), ("A", "B"))
    assert of_choice("A", crossed, base=None) == Golden("A", ("A", "A) b"))


def test_what_the_choices_mark_as_right_wins():
    marked = Options(("x", "y", "z"), ("A", "B", "C"), (2,))
    assert of_choice("A", marked, base=None) == Golden("C", ("C", "z", "C) z"))


BOXES = [
    "They are \\boxed{1} and \\boxed{-1}.",
    "Put it in \\boxed{...}. The sum is 0",
    "Put it in \\boxed{...}.",
    "It is \\boxed{5} cm.",
]
"""Texts that are golden as a whole, whatever is in a box."""


@pytest.mark.parametrize(
    ("value", "path", "several", "text", "accepted"),
    [
        ("x", "answer", None, "x", ["x"]),
        (True, "answer", None, "yes", ["yes"]),
        (["x"], "answer", None, "x", ["x"]),
        (["x", "", "y"], "answers", None, "x", ["x", "y"]),
        (["x", "y", "x"], "row.Ground Truths", None, "x", ["x", "y"]),
        (["x", "y"], "answer", "any", "x", ["x", "y"]),
        (["x", "y"], "answer", "all", "x; y", ["x; y"]),
        (["x"], "answer", "all", "x", ["x"]),
        ([{"text": "x"}, {"text": "y"}], "answers", None, "x", ["x", "y"]),
        ([{"text": "x"}, "y"], "answers", None, "x", ["x", "y"]),
        ({"value": "x", "aliases": ["y"]}, "answer", None, "x", ["x", "y"]),
        ({"Value": "x", "aliases": "y"}, "answer", None, "x", ["x"]),
        ({"text": ["x", "y"], "answer_start": [0]}, "answer", None, "x", ["x", "y"]),
        ('["x", "y"]', "answers", None, "x", ["x", "y"]),
        ('["x", "y"]', "answer", None, '["x", "y"]', ['["x", "y"]']),
        ('["x"]', "answer", None, "x", ["x"]),
        ("['x']", "answer", None, "x", ["x"]),
        ("[5]", "answer", None, "[5]", ["[5]"]),
        ('[["x"]]', "answers", None, '[["x"]]', ['[["x"]]']),
        ("It is 3.\n#### 3 ", "answer", None, "3", ["3"]),
        ("So it is $\\boxed{\\frac{1}{2}}$. ", "answer", None, "\\frac{1}{2}", ["\\frac{1}{2}"]),
        ("\\[x = \\boxed{5}.\\]", "answer", None, "5", ["5"]),
        *((text, "answer", None, text, [text]) for text in BOXES),
        ("#### 3\nand so on", "answer", None, "#### 3\nand so on", ["#### 3\nand so on"]),
        ([USER, REPLY], "answer", None, "user: Why?\nassistant: So.", ["user: Why?\nassistant: So."]),
    ],
)
def test_a_golden_answer_may_have_several_right_texts(value, path, several, text, accepted):
    assert golden(value, path=path, several=several) == Golden(text, tuple(accepted))


def test_a_golden_answer_may_be_missing_or_unreadable():
    empty: list[object] = [None, " ", [], {}, [None], {"text": []}]
    for nothing in empty:
        assert golden(nothing, path="answer", several=None) is None
    for value, why in (
        (["x", "y"], "is a list, and its name does not say whether any or all of it is right"),
        ([{"other": "x"}], "is a list of objects: write `several: any` or `several: all`"),
        ({"total": 1}, "is an object"),
        ([["x", "y"], "z"], "has lists inside a list, which no text equals: name it `criterion`"),
    ):
        with pytest.raises(Unread) as error:
            golden(value, path="answer", several=None)
        assert str(error.value) == why


def test_a_whole_object_may_be_the_golden_answer():
    whole = '{"total":1}'
    assert golden({"total": 1}, path="answer", several=None, whole=True) == Golden(whole, (whole,))
    assert golden("x", path="answer", several=None, whole=True) == Golden("x", ("x",))


def test_what_a_list_means_is_decided_by_its_name():
    assert [means_any(name) for name in ("answers", "row.Acceptable Answers", "answer", "answers.x")] == [
        *(True, True, False, False)
    ]
    undecided = {"answer": ["x", "y"], "answers": ["x", "y"]}
    assert [is_undecided_list(value, path) for path, value in undecided.items()] == [True, False]
    assert not is_undecided_list(["x", None], "answer")
    assert not is_undecided_list("x", "answer")
    assert not is_undecided_list({"value": "x", "aliases": ["y"]}, "answer")


def test_an_object_with_texts_and_aliases_is_a_golden_answer():
    assert holds_texts({"value": "x"})
    assert holds_texts({"text": ["x"]})
    assert not holds_texts({"text": "x"})
    assert not holds_texts({"value": 1})
    assert not holds_texts("x")


def test_a_list_in_a_cell_is_read_as_json_or_as_python_writes_it():
    assert parsed(' ["x", 1] ') == ["x", 1]
    assert parsed("['x', 'y']") == ["x", "y"]
    assert parsed("{'x': 1}") == {"x": 1}
    for text in ("x", "", "[not closed", "(1, 2)"):
        assert parsed(text) == text
    just = "[" + " " * 199_998 + "]"
    assert parsed(just) == []
    longer = "[" + " " * 199_999 + "]"
    assert parsed(longer) is longer


def test_a_text_that_is_wrapped_in_lists_again_and_again_is_unwrapped():
    wrapped = repr([repr([repr(["It's in Rome."])])])
    assert only_text(wrapped) == "It's in Rome."
    assert as_text(wrapped) == "It's in Rome."
    assert only_text(repr([b"x"])) == repr([b"x"])
