"""The official scorers' answers, bit for bit: their vectors, and each clause of the contract by an example."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from tests.karat_conversations.strategies import anything
from tests.karat_conversations.vectors import rows, table_of

from karat_conversations.numeric.official import official_number
from karat_conversations.numeric.parsing import cut
from karat_conversations.numeric.programs import execute, parse_program
from karat_conversations.numeric.trees import ExecutionError

TABLE = [
    ["", "2019", "2018"],
    ["revenue", "$ 1,234", "$ 1,100"],
    ["loss", "-12 ( 12 )", "( 5 )"],
    ["net loss", "-12 ( 12 )", "-5 ( 5 )"],
    ["gaps", "1", "-"],
    ["dup", "1", "2"],
    ["dup", "10", "20"],
    ["nothing"],
    ["odd", "nan", "1_0"],
]
INVALID = object()


@pytest.mark.parametrize("row", rows("eval_program"))
def test_execution_is_what_the_official_scorer_answers(row):
    program, table = row["args"]
    found = execute(program, table_of(table), rounding="official", dialect=row["function"].split(".")[0])
    invalid, value = row["expected"]
    if invalid:
        assert isinstance(found, ExecutionError)
    elif value in {"nan", "inf"}:
        assert isinstance(found, float) and str(found) == value
    else:
        assert found == value and type(found) is type(value)


@pytest.mark.parametrize("row", rows("program_tokenization"))
def test_text_is_cut_as_the_official_scorer_cuts_it(row):
    assert list(parse_program(row["args"][0]).tokens) == row["expected"]


@pytest.mark.parametrize("row", rows("str_to_num"))
def test_numbers_are_what_the_official_scorer_reads(row):
    found = official_number(row["args"][0])
    if isinstance(row["expected"], str):
        assert found is None or (row["expected"] == "nan" and math.isnan(found))
    else:
        assert found == row["expected"]


def step(operation, first, second):
    return [operation + "(", first, second, ")"]


ADD = step("add", "1", "2")


@pytest.mark.parametrize(
    ("clause", "program", "finqa", "convfinqa"),
    [
        ("a: the last token is dropped, whatever it is", ADD, "n/a", "n/a"),
        ("a", [*ADD, "add("], 3.0, 3.0),
        ("a", [], "n/a", "n/a"),
        ("b: one token left is a number", ["60.941234567", "EOF"], INVALID, 60.94123),
        ("b", ["12%", "x"], INVALID, 0.12),
        ("b", ["#0", "EOF"], INVALID, INVALID),
        ("b", ["add(", "EOF"], "n/a", INVALID),
        ("b", ["", "EOF"], INVALID, INVALID),
        ("c: operations at 0, 4, 8", ["foo(", "1", "2", ")", "EOF"], INVALID, INVALID),
        ("c", [*ADD, "none", "EOF"], INVALID, INVALID),
        ("c: `)` at 3, 7, 11", ["add(", "1", "2", "3", ")", "EOF"], INVALID, INVALID),
        ("c: past the end nothing is checked", [*ADD, "add(", "1", "EOF"], 3.0, 3.0),
        ("d: no closed step is valid", ["EOF"], "n/a", "n/a"),
        ("d", ["add(", "1", "2", "EOF"], "n/a", "n/a"),
        ("d: the unclosed tail is ignored", [*ADD, "add(", "#9", "x", "EOF"], 3.0, 3.0),
        ("d: one `(` at most", ["(add(", "1", "2", ")", "EOF"], INVALID, INVALID),
        ("d: it may be anywhere", ["add", "(1", "2", ")", "EOF"], 3.0, 3.0),
        ("d: two arguments at least", ["add(", "", "2", ")", "EOF"], INVALID, INVALID),
        ("d: the first two parts", ["add(", "1|5", "2", ")", "EOF"], 6.0, 6.0),
        ("d: `|` is stripped", ["add(", "|1", "2|", ")", "EOF"], 3.0, 3.0),
        ("d: a token may close a step", ["add(", "1|2)add(3", "4", ")", "EOF"], 7.0, 7.0),
        ("e: commas go", [*step("add", "1,2,3", "1"), "EOF"], 124.0, 124.0),
        ("e: what float() takes", [*step("add", "1_000", " ٣ "), "EOF"], 1003.0, 1003.0),
        ("e: %", [*step("add", "5%%", "%5"), "EOF"], 0.1, 0.1),
        ("e: const_", [*step("add", "const_1_0", "5const_0"), "EOF"], 60.0, 60.0),
        ("e: const_m1", [*step("add", "const_m1", "0"), "EOF"], -1.0, -1.0),
        ("e: const_m2", [*step("add", "const_m2", "0"), "EOF"], INVALID, INVALID),
        ("e: no $", [*step("add", "$5", "0"), "EOF"], INVALID, INVALID),
        ("f: every # goes", [*ADD, *step("add", "##0", "0#"), "EOF"], 6.0, 6.0),
        ("f: int()", [*ADD, *step("add", "# 0 ", "#0_0"), "EOF"], 6.0, 6.0),
        ("f: only what is there", [*ADD, *step("add", "#-1", "1"), "EOF"], INVALID, INVALID),
        ("f: not a later step", [*step("add", "#1", "1"), *ADD, "EOF"], INVALID, INVALID),
        ("g: the last duplicate wins", [*step("table_sum", "dup", "none"), "EOF"], 30.0, 30.0),
        ("g: the second argument is ignored", [*step("table_max", "revenue", "#9"), "EOF"], 1234.0, 1234.0),
        ("g: before the first (", [*step("table_sum", "net loss", "none"), "EOF"], -17.0, -17.0),
        ("g: an unreadable cell", [*step("table_max", "loss", "none"), "EOF"], INVALID, INVALID),
        ("g", [*step("table_max", "gaps", "none"), "EOF"], INVALID, INVALID),
        ("g: cells by rule (e)", [*step("table_min", "odd", "none"), "EOF"], math.nan, math.nan),
        ("g: an empty row", [*step("table_sum", "nothing", "none"), "EOF"], 0.0, 0.0),
        ("g", [*step("table_average", "nothing", "none"), "EOF"], INVALID, INVALID),
        ("g: #k takes the last row again", [*step("table_sum", "dup", "none"), *step("table_max", "#0", "none"), "EOF"],
         20.0, 20.0),
        ("g: where there was one", [*ADD, *step("table_max", "#0", "none"), "EOF"], INVALID, INVALID),
        ("h: greater", [*step("greater", "3", "3"), "EOF"], "no", "no"),
        ("h: also of words", [*step("greater", "2", "1"), *step("greater", "#0", "#0"), "EOF"], "no", "no"),
        ("h: added words", [*step("greater", "2", "1"), *step("add", "#0", "#0"), "EOF"], INVALID, INVALID),
        ("h: ** and its limits", [*step("exp", "10", "309"), "EOF"], INVALID, INVALID),
        ("h: complex", [*step("exp", "-8", "0.5"), "EOF"], INVALID, INVALID),
        ("h: which nobody sees in an unused step", [*step("exp", "-8", "0.5"), *ADD, "EOF"], 3.0, 3.0),
        ("i: 5 decimals", [*step("divide", "2", "3"), "EOF"], 0.66667, 0.66667),
        ("i: only at the end", [*step("divide", "2", "3"), *step("multiply", "#0", "1000000"), "EOF"],
         666666.66667, 666666.66667),
    ],
)  # fmt: skip
def test_each_clause_of_the_official_mode(clause, program, finqa, convfinqa):
    for dialect, value in (("finqa", finqa), ("convfinqa", convfinqa)):
        found = execute(program, TABLE, rounding="official", dialect=dialect)
        if value is INVALID:
            assert isinstance(found, ExecutionError)
        elif isinstance(value, float) and math.isnan(value):
            assert isinstance(found, float) and math.isnan(found)
        else:
            assert found == value and type(found) is type(value)


def test_text_that_is_spelled_otherwise_is_invalid_as_it_is_there():
    assert isinstance(execute("add(1,2)", rounding="official"), ExecutionError)
    assert isinstance(execute("divide(subtract(5, 3), 3)", rounding="official"), ExecutionError)
    assert isinstance(execute({"steps": []}, rounding="official"), ExecutionError)
    assert isinstance(execute("add(1, 2), " * 2_000, rounding="official"), ExecutionError)
    assert isinstance(execute(["add(", 1, 2, ")", "EOF"], rounding="official"), ExecutionError)


def test_words_that_double_end_in_an_error_and_not_in_all_memory():
    doubling = [*step("greater", "2", "1"), *(t for at in range(200) for t in step("add", f"#{at}", f"#{at}")), "EOF"]
    assert execute(doubling, rounding="official") == ExecutionError("overflow", "text grew without end")


@given(anything())
@settings(derandomize=True)
def test_tokens_and_their_program_have_one_official_answer(program):
    read = parse_program(program)
    if read.spelling in {"text", "tokens"}:
        for dialect in ("finqa", "convfinqa"):
            first, second = (
                execute(one, TABLE, rounding="official", dialect=dialect) for one in (read, list(read.tokens))
            )
            assert first == second or (first != first and second != second)


def test_cutting_keeps_every_character_but_the_separators():
    assert cut("a(b, c)d) (e") == ("a(", "b", "c", ")", "d", ")", " (", "e", "EOF")
