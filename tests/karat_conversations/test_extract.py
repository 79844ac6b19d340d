"""The answer out of a text: §6 of the contract."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karat_conversations.numeric import Extracted, extract, parse_value

patiently = settings(deadline=None)


@pytest.mark.parametrize(
    ("text", "answer", "unit", "program"),
    [
        pytest.param('{"answer": "14.1", "unit": "percent"}', "14.1", "percent", None, id="the text is the object"),
        pytest.param('Thus {"answer": 0.10}. Done.', "0.10", None, None, id="a number as it was written"),
        pytest.param('{"answer": -1.50e3}', "-1.50e3", None, None, id="with its exponent"),
        pytest.param('{"answer": true}', "true", None, None, id="true"),
        pytest.param('{"answer": null, "unit": null}', None, None, None, id="null is no answer"),
        pytest.param('{"answer": NaN}', "NaN", None, None, id="NaN is a text that cannot be read"),
        pytest.param('{"Answer": 5, "UNIT": "k"}', "5", "k", None, id="keys in any case"),
        pytest.param('{"answer": "1,234\nmillion"}', "1,234\nmillion", None, None, id="a line break in a string"),
        pytest.param('{"answer": 1} and {"answer": 2}', "2", None, None, id="the last one"),
        pytest.param('{"answer": 1} as in {"note": 2}', "1", None, None, id="the last one with an answer"),
        pytest.param('{"steps": {"answer": 1}}', None, None, None, id="of an outer object, not of an inner one"),
        pytest.param('```json\n{"answer": 1}\n```\nsee {"answer": 2}', "1", None, None, id="a fenced block goes first"),
        pytest.param('```\n{"answer": 1}\n```\n```\n{"answer": 2}\n```', "2", None, None, id="the last fenced block"),
        pytest.param(
            '```\n{"x": 1}\n``` {"answer": 2}', "2", None, None, id="a fenced block without an answer does not"
        ),
        pytest.param('```json\n{"answer": 1}', "1", None, None, id="a block that was never closed"),
        pytest.param('\\frac{a}{b} = {x} so {"answer": 1}', "1", None, None, id="braces before"),
        pytest.param('{"answer": <number>} means {"answer": 1}', "1", None, None, id="a template before"),
        pytest.param('a 5" pipe: {"answer": 1}', "1", None, None, id="a stray quote before"),
        pytest.param('{"answer": 12,5}', None, None, None, id="no JSON"),
        pytest.param('{"answer": "5', None, None, None, id="cut off"),
        pytest.param("I do not know.", None, None, None, id="prose"),
        pytest.param("", None, None, None, id="nothing"),
        pytest.param('{"answer": [5, 1.50]}', "[5, 1.5]", None, None, id="a list is its JSON"),
        pytest.param('{"answer": 1, "program": "add(1, 2)"}', "1", None, "add(1, 2)", id="a program as text"),
        pytest.param('{"answer": 1, "program": ["add(", "1"]}', "1", None, '["add(", "1"]', id="as tokens"),
        pytest.param('{"answer": 1, "program": {"v": [5, null]}}', "1", None, '{"v": [5, null]}', id="as a plan"),
    ],
)
def test_the_last_json_object_holds_the_answer(text, answer, unit, program):
    found = extract(text)
    assert (found.answer, found.unit, found.program, found.how) == (answer, unit, program, "json")
    if answer is not None:
        assert found.span is not None
        start, end = found.span
        assert text[start] + text[end - 1] == "{}"


@pytest.mark.parametrize("how", ["json", "last_number"])
@pytest.mark.parametrize("text", ["14.1%", " yes ", "\n$ (5) million\n", "FALSE", ".450"])
def test_a_text_that_is_one_value_is_the_answer(text, how):
    start = len(text) - len(text.lstrip())
    assert extract(text, how) == Extracted(text.strip(), None, None, "whole", (start, start + len(text.strip())))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Sales fell from 12 to 10.5 million.", "10.5 million"),
        ("In 2016, the total was 257.", "257"),
        ("It is 1,234,567.89, roughly", "1,234,567.89"),
        ("the change is -5", "-5"),
        ("the change is \u22125%", "\u22125%"),
        ("from 5-10", "10"),
        ("page a-5", "5"),
        ("3 - 5 = -2", "-2"),
        ("it lost $-5 million.", "$-5 million"),
        ("it lost -$5.2 mm!", "-$5.2 mm"),
        ("it lost $(5.2) million", "$(5.2) million"),
        ("it lost $ (1,234.5).", "$ (1,234.5)"),
        ("14.14% (0.1414)", "0.1414"),
        ("rose 10% ($5.2 million)", "$5.2 million"),
        ("rose (by 5%)", "5%"),
        ("up 10 basis points", "10 basis points"),
        ("up 5 percentage points in all", "5 percentage points"),
        ("a ratio of 1.2x", "1.2"),
        ("5e-3 in short", "5e-3"),
        ("a fraction of .5 only", ".5"),
        ("the answer is 5. The 3rd of Q4, version 1.2.3, 0x10, and 1,2,3 or 12,5", "5"),
        ("no numbers here", None),
        ("yes, it did", None),
    ],
)
def test_the_last_number_comes_with_sign_currency_and_unit(text, answer):
    found = extract(text, "last_number")
    assert (found.answer, found.how) == (answer, "last_number")
    if answer is None:
        assert found.span is None
    else:
        assert found.span is not None
        assert text[slice(*found.span)] == answer
        assert parse_value(answer) is not None


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("A: 1. A: 2", r"A: (\d)", Extracted("2", None, None, "regex", (9, 10))),
        ("A: 1", r"\d", Extracted("1", None, None, "regex", (3, 4))),
        ("5 kg", r"(?P<answer>\d) (?P<unit>\w+)", Extracted("5", "kg", None, "regex", (0, 1))),
        ("p: add(1)", r"p: (?P<program>.*)", Extracted("p: add(1)", None, "add(1)", "regex", (0, 9))),
        ("ab", r"a(x)?b", Extracted(None, None, None, "regex", None)),
        ("ab", "c", Extracted(None, None, None, "regex", None)),
        ("5", "c", Extracted(None, None, None, "regex", None)),
    ],
)
def test_the_users_own_expression_takes_its_last_match(text, pattern, found):
    assert extract(text, "regex", pattern) == found


@pytest.mark.parametrize(
    ("pattern", "message"), [(None, "needs one"), ("", "needs one"), ("(", r"pattern: missing \), unterminated")]
)
def test_a_pattern_that_is_none_is_the_users_fault(pattern, message):
    with pytest.raises(ValueError, match=message):
        extract("5", "regex", pattern)


PIECES = [
    "{",
    "}",
    '"',
    '{"',
    '{"answer": ',
    '{"a":',
    "[",
    "]",
    ":",
    ",",
    "```",
    "```json\n",
    "\\",
    "\\u12",
    "5",
    "1,111",
]
PIECES += [
    "$",
    "(",
    ")",
    "-",
    "%",
    " ",
    "\n",
    "million",
    "e",
    ".",
    "null",
    "NaN",
    "true",
    "\u0665",
    "\ud800",
    "x",
    "{}",
]


@patiently
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5)).map("".join), st.sampled_from(["json", "last_number"]))
@example("\u00bc", "last_number")
def test_any_text_has_an_answer_or_none_and_never_raises(text, how):
    found = extract(text, how)
    if found.span is not None:
        start, end = found.span
        assert 0 <= start < end <= len(text)
    if found.how in {"last_number", "whole"} and found.answer is not None and found.span is not None:
        value = parse_value(found.answer)
        assert value is not None
        written = text[slice(*found.span)]
        if written != found.answer:  # in digits, since `parse_value` reads what is written, as ¼, in another way or not
            assert (parse_value(written) or ())[:3] != value[:3]


@patiently
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists), st.text())
def test_what_is_written_as_json_is_found_again(answer, unit):
    text = "So: " + json.dumps({"answer": answer, "unit": unit})
    found = extract(text)
    assert found.unit == unit
    assert found.answer == (answer if answer is None or isinstance(answer, str) else json.dumps(answer))


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", [*PIECES, '{"a":"', '{"a":{}', '{"a":x', '{"answer":1}', "1.", "1,", "5 ", "$( ", "5%"]
)
def test_long_texts_are_read_or_not(piece):
    for how in ("json", "last_number"):
        extract(piece * (60_000 // len(piece)), how)


def test_a_number_of_ten_thousand_digits_is_an_answer_that_cannot_be_read():
    digits = "1" * 10_000
    found = extract(f'{{"answer": {digits}, "program": [{digits}]}}')
    assert (found.answer, found.program) == (digits, f'["{digits}"]')
    assert parse_value(found.answer) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": {"value": 1.577, "unit": "billion"}}',
        '{"value": 1.577, "unit": "billion"}',
        '{"answer": 1.577, "scale": "billion"}',
    ],
)
def test_a_unit_is_kept_wherever_an_object_has_it(text):
    found = extract(text, "final")
    assert (found.answer, found.unit) == ("1.577", "billion")
