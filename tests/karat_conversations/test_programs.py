"""Reading programs in every spelling, and what they are worth by the rules that are right."""

from __future__ import annotations

import ast
import json
import math
import operator
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.karat_conversations.strategies import anything, expressions, flat, nested, tokens
from tests.karat_conversations.vectors import DATA, conversations, rows, table_of

from karat_conversations.numeric.equivalence import equivalent
from karat_conversations.numeric.programs import execute, parse_program
from karat_conversations.numeric.trees import MAX_TREE, Argument, Call, ExecutionError, Program

TABLE = [
    ["", "2019", "2018", "2017"],
    ["revenue", "$ 1,234", "$ 1,100", "$ 900"],
    ["loss", "-12 ( 12 )", "( 5 )", "3"],
    ["rate", "27% ( 27 % )", "28%", "1%"],
    ["gaps", "1", "-", "2"],
    ["blank", "1", "", "2"],
    ["dup", "1", "2", "3"],
    ["dup", "10", "20", "30"],
    ["text", "abc", "1", "2"],
    ["shares, diluted (in millions)", "4", "6", "5"],
    ["nothing", "-", "", None],
    ["floats", 1.5, 2, float("nan")],
]


CALLS = st.sampled_from(
    ["add(1, 2)", "subtract(#0, 12%)", "divide(#7, none)", "greater(const_m1, 3)", "add(foo, 1)", "multiply(5-3, 2)",
     "foo(1, 2)", "table_sum(revenue, none)", "exp(1,000, 2)", "add(1 , 2)", "add(1, (2))", "EOF", ""]
)  # fmt: skip


@given(st.lists(CALLS, max_size=5))
def test_one_space_more_changes_nothing_about_a_program(calls):
    text = ", ".join(calls)
    read, spaced = parse_program(text), parse_program(f" {text}")
    assert (read.steps, read.number, read.error) == (spaced.steps, spaced.number, spaced.error)
    assert (read.operations, read.spelling, read.readable) == (spaced.operations, spaced.spelling, spaced.readable)


@pytest.mark.parametrize("row", rows("eval_program", key="correct"))
def test_default_answers_are_the_right_ones(row):
    program, table = row["args"]
    invalid, value = row["correct"]
    found = execute(program, table_of(table), rounding=5)
    assert isinstance(found, ExecutionError) if invalid else found == value


def test_every_golden_program_executes_to_its_golden_answer():
    wrong, turns = [], 0
    for conversation in conversations():
        dialogue = conversation["dialogue"]
        for program, answer in zip(dialogue["turn_program"], dialogue["executed_answers"], strict=True):
            turns += 1
            found = execute(program, conversation["doc"]["table"], rounding=5)
            found = {True: "yes", False: "no"}[found] if isinstance(found, bool) else found
            if found != answer or execute(program, rounding="official") != answer:
                wrong.append((conversation["id"], program, found, answer))
            if parse_program(program.replace(", ", ",")).steps != parse_program(program).steps:
                wrong.append((conversation["id"], program, "without spaces"))
    assert (turns, wrong) == (1490, [])


@pytest.mark.parametrize("row", rows("execute"))
def test_default_values_are_those_of_the_vectors(row):
    value = execute(*row["args"])
    if row["expected"] is None:
        assert isinstance(value, ExecutionError)
    else:
        assert value == pytest.approx(row["expected"], rel=1e-12)


@given(expressions())
@settings(derandomize=True)
def test_three_spellings_are_one_program(expression):
    of_text, of_nested, of_tokens = (parse_program(spell(expression)) for spell in (flat, nested, tokens))
    assert of_text.error is None or of_text.error.kind == "not_a_number"
    assert of_text.steps == of_nested.steps == of_tokens.steps
    assert of_text.number == of_nested.number == of_tokens.number
    assert of_text.tree == of_nested.tree == of_tokens.tree
    assert of_text.tokens == of_tokens.tokens == tuple(tokens(expression))


@pytest.mark.parametrize(
    "text",
    [
        "subtract(8181, 20454), divide(#0, 20454)",
        "subtract(8181,20454),divide(#0,20454)",
        "  subtract ( 8181 ,20454 )\n divide( #0 , 20454 ) ",
        "subtract(8,181, 20,454), divide(#0, 20,454)",
        "subtract(8,181,20,454) divide(#0,20,454)",
        "divide(subtract(8181, 20454), 20454)",
        "divide(subtract(8181, 20454), 20454), EOF EOF",
        ["subtract(", "8181", "20454", ")", "divide(", "#0", "20454", ")", "EOF"],
        ["subtract(", "8181", "20454", ")", "divide(", "#0", "20454", ")"],
        ["subtract(", "8181", "20454", ")", " ", "divide(", "#0", "20454", ")", "EOF", "EOF"],
        ["divide(", "subtract(", "8181", "20454", ")", "20454", ")", "EOF"],
        ["subtract(", 8181, 20454, ")", "divide(", "#0", 20454.0, ")", "EOF"],
        '["subtract(", "8181", "20454", ")", "divide(", "#0", "20454", ")", "EOF"]',
    ],
)
def test_any_spacing_is_read(text):
    assert execute(text, rounding=5) == -0.60003


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("60.94", 60.94),
        ("206,588", 206588.0),
        (["-37.8", "EOF"], -37.8),
        ("\u22125", -5.0),
        (".450", 0.45),
        ("12%", 0.12),
        ("const_m1", -1.0),
        ("const_0.5", 0.5),
        ("add(const_1,000, 5 percent)", 1000.05),
        (7, 7.0),
        ("add(10%, 0.1)", 0.2),
        ("add(50 %, 1)", 1.5),
        ("add(1,2,345)", 2346.0),
        ("add(1,234)", 235.0),
        ("add(1,234,5)", 1239.0),
        ("add(1,234,56)", 1290.0),
        ("add(1,234, 567)", 1801.0),
        ("add(1, 234,567)", 234568.0),
        ("add(-1,234,5%)", -1233.95),
        ("divide(1,234-5,6)", 204.833333333),
        (["divide(", "60,243", ")", "EOF"], 0.24691358),
        ("add(1234,567)", 1801.0),
        ("add(0,123)", 123.0),
        ("add(1,2345)", 2346.0),
        ("exp(2, -2)", 0.25),
        ("exp(4, 0.5)", 2.0),
        ("greater(5, 3)", True),
        ("greater(3, 3)", False),
        ("add(1, 2), multiply(add(3, 4), #0)", 21.0),
        ("table_sum(revenue, none)", 3234.0),
        ("table_max(revenue)", 1234.0),
        ("table_min(loss, none)", -12.0),
        ("table_sum(loss, none)", -14.0),
        ("table_average(gaps, none)", 1.5),
        ("table_sum(blank, 2018)", 3.0),
        ("table_sum(rate, none)", 0.56),
        ("table_average(shares, diluted (in millions), none)", 5.0),
        (["table_average(", "shares, diluted (in millions)", "none", ")", "EOF"], 5.0),
        ("table_sum(floats, none)", 3.5),
        ("divide(table_sum(revenue, none), const_3)", 1078.0),
        (["divide", "(", "9", ",", "2", ")", "EOF"], 4.5),
        ("average(1, 2, 6)", 3.0),
        ("power(2, 3)", 8.0),
        ("growth = \\frac{9 - 4}{4} \\approx 1.2", 1.25),
        ("```\n[9 - 4] \\times 2 -> 10\n```", 10.0),
        ("Program: 5% of 200", 10.0),
    ],
)
def test_a_program_has_its_value(program, value):
    found = execute(program, TABLE, rounding=9)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("divide(1, 0)", "division_by_zero"),
        ("divide(1, subtract(5, 5.0))", "division_by_zero"),
        ("exp(0, -1)", "division_by_zero"),
        ("exp(-8, 0.3333)", "domain"),
        ("exp(10, 309)", "overflow"),
        ("multiply(1e308, 10)", "overflow"),
        ("exp(10, 308), multiply(#0, 100), divide(#1, #1)", "overflow"),
        ("add(#0, 1)", "unknown_reference"),
        ("add(1, 2), add(#1, 3)", "unknown_reference"),
        ("add(1, #3), add(1, 2)", "unknown_reference"),
        ("table_sum(missing, none)", "unknown_row"),
        ("table_sum(Revenue, none)", "unknown_row"),
        ("table_sum(dup, none)", "unknown_row"),
        ("table_sum(text, none)", "not_a_number"),
        ("table_sum(nothing, none)", "not_a_number"),
        ("table_sum(revenue, none), table_max(#0, none)", "not_a_number"),
        ("add(abc, 2)", "not_a_number"),
        ("add(none, 2)", "not_a_number"),
        ("add(inf, 1)", "not_a_number"),
        ("add(1_000, 1)", "not_a_number"),
        ("add(5%%, 1)", "not_a_number"),
        ("add(5 million, 1)", "not_a_number"),
        ("add($5, 1)", "not_a_number"),
        ("add(0#, 1)", "not_a_number"),
        ("nan", "not_a_number"),
        ("1e400", "not_a_number"),
        ("greater(2, 1), add(#0, 1)", "not_a_number"),
        ("add(1, 2", "malformed"),
        ("add(1, 2), subtract(#0, 1", "malformed"),
        ("add(1, 2, 3)", "malformed"),
        ("add(1,234,567)", "malformed"),
        ("add(1,234,567,890)", "malformed"),
        ("add(1, 234, 567)", "malformed"),
        ("add(1)", "malformed"),
        ("add(1,, 2)", "malformed"),
        ("add(1, 2,)", "malformed"),
        ("add((5), 1)", "malformed"),
        ("(5)", "malformed"),
        ("add(1, 2))", "malformed"),
        ("12,5", "malformed"),
        ("add(1, 2), 5", "malformed"),
        ("add(1, 2) EOF add(3, 4)", "malformed"),
        ("add(1, 2), EOF, 5", "malformed"),
        ("EOF add(1, 2)", "malformed"),
        ("5 EOF )", "malformed"),
        (["add(", "1", "2", ")", "EOF", "add(", "3", "4", ")", "EOF"], "malformed"),
        ("", "malformed"),
        ([], "malformed"),
        (["EOF"], "malformed"),
        (None, "malformed"),
        (True, "malformed"),
        ({}, "malformed"),
        ('{"steps": 5}', "malformed"),
        ("1" * 20_000, "malformed"),
        ("add(" * 1_000 + "1", "malformed"),
        (["add("] * 5_000, "malformed"),
        ("add(1, 2), " * 200 + "table_sum(revenue, none)", "malformed"),
    ],
)
def test_what_has_no_value_says_why(program, kind):
    found = execute(program, TABLE)
    assert isinstance(found, ExecutionError) and found.kind == kind


# --- infix --------------------------------------------------------------------------------------

_COMPUTE = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def by_python(text):
    """The value by Python's own grammar; None where that reads something else than a formula, or finds no number."""

    def value(node):
        if isinstance(node, ast.Constant) and type(node.value) in {int, float}:
            return float(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            return -value(node.operand) if isinstance(node.op, ast.USub) else value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTE:
            result = _COMPUTE[type(node.op)](value(node.left), value(node.right))
            if isinstance(result, complex) or not math.isfinite(result):
                raise ArithmeticError
            return result
        raise SyntaxError

    try:
        return value(ast.parse(text.strip().replace("^", "**"), mode="eval").body)
    except (SyntaxError, ArithmeticError):
        return None


_signs = st.sampled_from(["+", "-", "*", "/", "^", "**"])
_space = st.sampled_from(["", " "])
_formulas = st.recursive(
    st.sampled_from(["2", "3.5", "0.25", "10", "206588", "1e3", ".5", "7."]),
    lambda part: st.one_of(
        st.tuples(part, _space, _signs, _space, part).map("".join),
        st.tuples(st.just("("), part, st.just(")")).map("".join),
        st.tuples(st.sampled_from(["-", "+"]), part).map("".join),
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(_formulas)
@settings(derandomize=True, max_examples=1_000)
def test_infix_has_the_value_that_python_gives_it(text):
    text += " + 1"
    expected, value = by_python(text), execute(text)
    assert isinstance(value, ExecutionError) if expected is None else value == expected


def test_infix_is_read_as_a_model_writes_it():
    path = DATA / "convfinqa" / "predictions_sonnet.jsonl"
    if not path.is_file():
        pytest.skip("no ../shared/data/convfinqa/predictions_sonnet.jsonl")
    texts = [json.loads(line)["predicted_calculation"] for line in path.read_text(encoding="utf-8").splitlines()]
    values = [by_python(re.sub("(?<=[0-9]),(?=[0-9]{3})", "", text)) for text in texts]
    known = [(text, value) for text, value in zip(texts, values, strict=True) if value is not None]
    assert len(known) == 1440
    assert [text for text, value in known if execute(text) != value] == []
    assert sum(not parse_program(text).readable for text in texts) == 26


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("(2.3 - 2.1) / 2.1 * 100", "subtract(2.3, 2.1), divide(#0, 2.1), multiply(#1, 100)"),
        ("(2.3 \u2212 2.1) \u00f7 2.1 \u00d7 100", "subtract(2.3, 2.1), divide(#0, 2.1), multiply(#1, 100)"),
        ("(2.3 - 2.1) x 100", "subtract(2.3, 2.1), multiply(#0, 100)"),
        ("$1,234.5 - $ 1,100", "subtract(1,234.5, 1,100)"),
        ("10% * 50", "multiply(10%, 50)"),
        ("(5 - 3)%", "subtract(5, 3), divide(#0, const_100)"),
        ("2 ** 3", "exp(2, 3)"),
        ("-(5 - 3)", "subtract(5, 3), multiply(#0, const_m1)"),
        ("5 - -3", "subtract(5, -3)"),
        ("-const_100 + 1", "add(const_m100, 1)"),
        ("18.85 > 13.73", "greater(18.85, 13.73)"),
        ("divide(5, 3) * 100", "divide(5, 3), multiply(#0, 100)"),
        ("subtract(5, 3), #0 / 3", "subtract(5, 3), divide(#0, 3)"),
        ("divide(206,588 - 181,001, 181,001)", "subtract(206588, 181001), divide(#0, 181001)"),
        ("table_sum(revenue, none) / 2", "table_sum(revenue, none), divide(#0, 2)"),
        ("(table_max(revenue) - 34) / 100", "table_max(revenue), subtract(#0, 34), divide(#1, 100)"),
        ("(5) + 3", "add(5, 3)"),
    ],
)
def test_infix_is_the_tree_that_it_means(text, same):
    program = parse_program(text)
    assert program.operations == parse_program(same).operations
    assert execute(program, TABLE) == execute(same, TABLE)
    assert equivalent(program, same)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("8000 - 7120 = 880", "subtract(8000, 7120)"),
        ("8000 - 7120 = $ 880 million", "subtract(8000, 7120)"),
        ("7120 - 8000 = (880)", "subtract(7120, 8000)"),
        ("= 8000 - 7120", "subtract(8000, 7120)"),
        ("=880", "880"),
        ("485 / 4264 = 0.1138 ≈ 11.4%", "divide(485, 4264)"),
        ("(453 - 428) / 428 * 100 = 25 / 428 * 100 = 5.84%", "subtract(453, 428), divide(#0, 428), multiply(#1, 100)"),
        ("subtract(8000, 7120) = 880", "subtract(8000, 7120)"),
        ("subtract(8000, 7120) = 880, divide(#0, 7120) = 0.1236", "subtract(8000, 7120), divide(#0, 7120)"),
        ("subtract(8000, 7120); divide(#0, 7120)", "subtract(8000, 7120), divide(#0, 7120)"),
        ("subtract(8000, 7120) = 880; divide(#0, 7120) = 0.1236;", "subtract(8000, 7120), divide(#0, 7120)"),
        ("SUBTRACT(8000, 7120), Divide(#0, CONST_100)", "subtract(8000, 7120), divide(#0, const_100)"),
        ("Table_Sum(revenue, NONE)", "table_sum(revenue, none)"),
        ("sum(1, 2, 3)", "add(1, 2), add(#0, 3)"),
        ("sum(1,200, 300)", "add(1200, 300)"),
        ("SUM(10,20,30), divide(#0, 3)", "add(add(10, 20), 30), divide(#0, 3)"),
        ("percentage_change(100, 110)", "subtract(110, 100), divide(#0, 100), multiply(#1, const_100)"),
        ("percentage_change(1,000, 1,100) = 10%", "(1100 - 1000) / 1000 * 100"),
        ("percentage(5, 10)", "divide(5, 10), multiply(#0, const_100)"),
        ({"steps": [{"operation": "Sum", "operands": [1, 2, 3]}]}, "add(add(1, 2), 3)"),
        ({"steps": [{"operation": "SUBTRACT", "operands": [5, 3]}]}, "subtract(5, 3)"),
    ],
)
def test_what_models_write_beside_the_operations_is_read(text, same):
    program = parse_program(text)
    assert program.readable
    assert execute(program, TABLE) == execute(same, TABLE)
    assert equivalent(program, same, table=TABLE)


@pytest.mark.parametrize("text", ["sum(1,200,300)", "sum()", "sum(1, )", "percentage_change(1, 2, 3)", "add(1, 2, 3)"])
def test_a_sum_that_can_be_read_in_several_ways_is_not_read(text):
    assert not parse_program(text).readable


def test_a_row_with_an_equals_sign_keeps_its_name():
    assert execute("table_sum(a = 5, none) = 7", [["", "2019"], ["a = 5", "7"]]) == 7.0


@pytest.mark.parametrize(
    "text",
    [
        *("N/A", "(2.3 - ) / 2", "2(3 + 4)", "(1 + 2)(3 + 4)", "5 +", "* 5", "(5)", "(12)%", "10 % 3", "5x", "1 2"),
        *(
            "2.1 billion (directly stated)",
            "8000 - 7120 = profit",
            "880 = 8000 - 7120",
            "max(28.65, 34.5)",
            "net income / revenue",
            "(5, 3)",
        ),
        *("1 +" * 2_000 + "1", "(" * 1_000_000 + "1" + ")" * 1_000_000, "(" * 4_000 + "1" + ")" * 4_000),
    ],
)
def test_what_is_no_program_is_not_readable(text):
    program = parse_program(text)
    assert not program.readable
    assert isinstance(execute(program), ExecutionError)


@pytest.mark.parametrize(
    "text", ["add(revenue, 2)", "add(#3, 1)", "divide(1, 0)", "table_sum(missing, none)", "5", "#0 + 1"]
)
def test_a_program_without_a_value_can_be_readable(text):
    assert parse_program(text).readable


def test_large_powers_and_long_chains_end():
    assert execute("9**9**9") == ExecutionError("overflow", "exp leaves the range of numbers")
    assert execute("9^" * 4_000 + "9") == ExecutionError("malformed", "longer than 200 steps")
    assert execute("-" * 5_000 + "5") == 5.0


def test_what_was_read_before_the_fault_is_kept():
    program = parse_program("add(1, 2), subtract(#0, 1")
    assert program.operations == ("add",)
    assert program.error == ExecutionError("malformed", "a parenthesis is not closed")
    assert program.tokens == ("add(", "1", "2", ")", "subtract(", "#0", "1", "EOF")


def test_arguments_say_what_they_are():
    program = parse_program("add(5%, const_100), table_sum(net income, none), divide(#1, #0)")
    assert [step.arguments for step in program.steps] == [
        (Argument("5%", "number", 0.05), Argument("const_100", "number", 100.0)),
        (Argument("net income", "name"), Argument("none", "name")),
        (Argument("#1", "reference", index=1), Argument("#0", "reference", index=0)),
    ]


def test_equal_sub_trees_are_shared_and_a_tree_that_unfolds_without_end_is_not_written_out():
    tree = parse_program("add(1, 2), add(1, 2), multiply(#0, #1)").tree
    assert isinstance(tree, Call) and tree.args[0] is tree.args[1]
    assert [call.operation for call in tree.walk()] == ["add", "add", "multiply"]
    doubling = "add(1, 1), " + ", ".join(f"add(#{at}, #{at})" for at in range(60))
    assert parse_program(doubling).tree is None and MAX_TREE < 2**60
    assert execute(doubling) == 2.0**61


def test_columns_of_rows_are_a_table_too():
    columns = {"2019": {"revenue": 1234.0, "loss": "( 5 )"}, "2018": {"revenue": "$ 1,100", "loss": "-"}}
    assert execute("table_sum(revenue, none)", columns) == 2334.0
    assert execute("table_average(loss, none)", columns) == -5.0
    assert execute("table_sum(revenue, none)", columns, rounding="official") == 2334.0


def test_numbers_of_any_kind_are_numbers():
    columns = {"2019": {"sales": np.float64(1.5)}, "2018": {"sales": np.int64(2)}, "2017": {"sales": np.float32("nan")}}
    earlier = {"steps": [compute("add", reference(-1), np.float64(1.5))]}
    assert execute("table_sum(sales, none)", columns) == 3.5
    assert execute(["add(", np.float64(1.5), np.int64(2), ")", "EOF"]) == execute(np.float64(3.5)) == 3.5
    assert execute(earlier, history=[("2", np.int64(2))]) == 3.5
    for beyond in (10**400, 10**5_000, np.float64("inf")):
        assert isinstance(execute(beyond), ExecutionError)
        assert isinstance(execute(["add(", beyond, "1", ")", "EOF"]), ExecutionError)
        assert isinstance(execute(earlier, history=[("2", beyond)]), ExecutionError)


def reference(to):
    return {"type": "reference", "step_ref": to}


def compute(operation, *operands, **more):
    return {"tool": "compute", "operation": operation, "operands": list(operands), **more}


TAKE = {"step_id": 1, "tool": "extract_value", "table_params": {"row_query": "revenue", "col_query": "2019"}}


@pytest.mark.parametrize(
    ("steps", "value", "operations"),
    [
        ([TAKE], 1234.0, ()),
        ([TAKE, compute("divide", reference(1), {"type": "literal", "value": 2})], 617.0, ("divide",)),
        ([compute("percentage", 5, "8")], 62.5, ("percentage",)),
        ([compute("percentage_change", 8, 10)], 25.0, ("percentage_change",)),
        ([{"tool": "compute", "operation": "percentage_change", "operands": {"new": 10, "old": 8}}], 25.0, ...),
        ([compute("add", 1, 2, 3, 4)], 10.0, ("add",)),
        ([compute("add", 1, 2, step_id=7), compute("multiply", reference(7), "#0")], 9.0, ("add", "multiply")),
        ([compute("subtract", reference(-1), "prev_1")], 4.0, ("subtract",)),
        ([compute("add", {"type": "history", "turn": 0}, 1)], 7.0, ("add",)),
        ([compute("table_sum", "revenue")], 3234.0, ("table_sum",)),
        ([{"tool": "extract_value", "value": "12%"}, compute("add", "step_1", 1)], 1.12, ("add",)),
        ([compute("add", 1, 2), compute("add", 4, 5), {"tool": "extract_value", "value": "#0"}], 3.0, ("add", "add")),
        ([compute("add", 1, 2), compute("add", reference("#0"), reference("step_1"))], 6.0, ...),
        ([compute("subtract", reference("prev_0"), reference("prev_1"))], 4.0, ("subtract",)),
        ([{"operation": "Subtract ", "args": {"first": {"result": 9}, "second": "2%"}}], 8.98, ("subtract",)),
        ([{"row": "revenue", "column": "2018"}, compute("add", "#0", 1)], 1101.0, ("add",)),
        ([{"id": "a", "value": 3}, compute("add", reference("a"), {"turn_idx": 0})], 9.0, ("add",)),
    ],
)
def test_plans_are_read_into_the_same_steps(steps, value, operations):
    plan, history = {"thought_process": "…", "steps": steps}, [("6", 6), ("add(6, 4)", "10")]
    assert execute(plan, TABLE, history, rounding=9) == value
    assert execute(json.dumps({"plan": plan}), TABLE, history, rounding=9) == value
    assert operations is ... or parse_program(plan).operations == operations


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([compute("add", reference(2), 1), compute("add", 1, 2)], "unknown_reference: "),
        ([compute("add", reference(-3), 1)], "unknown_reference: "),
        ([compute("add", {"type": "history", "turn": 9}, 1)], "unknown_reference: "),
        ([{"tool": "extract_value", "text_params": {"search_keywords": ["income"]}}], "not_a_number: "),
        ([{"tool": "extract_value", "table_params": {"row_query": "x", "col_query": "2019"}}], "unknown_row: "),
        ([{"tool": "extract_value", "value": "#5"}], "unknown_reference: "),
        ([compute("add", 1, 2), {"tool": "extract_value", "value": reference(9)}], "unknown_reference: "),
        ([compute("modulo", 1, 2)], "malformed: modulo is not an operation"),
        ([compute("percentage", 1)], "malformed: percentage has 1 operands"),
        ([compute("table_max", 1, 2, 3)], "malformed: table_max has 3 operands"),
        ([{"tool": "compute", "operation": "add", "operands": 5}], "malformed: add has 0 operands"),
        ([compute("greater", 1, 2), compute("add", "#0", 1)], "not_a_number: "),
        ([TAKE, None], "malformed: step 2 is not a mapping"),
        ([None, {"tool": "compute"}], "malformed: step 1 is not a mapping"),
        ([{"tool": "compute"}], "malformed: step 1 has no operation"),
        ([], "malformed: the plan has no step"),
        ("add", "malformed: the plan has no step"),
        ([compute("add", 1, 2)] * 500, "malformed: longer than 200 steps"),
    ],
)
def test_plans_that_cannot_be_executed_say_why(steps, said):
    found = execute({"steps": steps}, TABLE, [("6", 6)])
    assert isinstance(found, ExecutionError)
    assert f"{found.kind}: {found.message}".startswith(said)


@given(anything())
@settings(derandomize=True, max_examples=400)
def test_nothing_raises_on_what_a_model_may_write(program):
    read = parse_program(program)
    assert isinstance(read, Program)
    for rounding in (None, 5, "official"):
        value = execute(program, TABLE, [("6", 6)], rounding=rounding)
        assert isinstance(value, float | bool | str | ExecutionError)
        assert rounding == "official" or not isinstance(value, str)
        assert rounding == "official" or isinstance(value, ExecutionError) or math.isfinite(value)


@given(st.lists(st.sampled_from([*"(),#|%. 1", "add(", "table_sum(", "EOF", "\u2212", "const_"])).map("".join))
@settings(derandomize=True, max_examples=400)
def test_a_program_without_error_has_a_tree_or_steps(text):
    read = parse_program(text)
    assert (read.error is None) == (read.tree is not None)
    assert read.error is not None or read.steps or read.number is not None
