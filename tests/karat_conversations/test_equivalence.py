"""One program for another: by the right rules, and by the official ones."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.karat_conversations.strategies import ARITHMETIC, Expression, anything, expressions, flat, nested, tokens
from tests.karat_conversations.vectors import rows

from karat_conversations.numeric.equivalence import equivalent
from karat_conversations.numeric.programs import execute, parse_program
from karat_conversations.numeric.trees import ExecutionError

TABLE = [["", "2019", "2018", "2017"], ["revenue", "$ 1,234", "$ 1,100", "$ 900"], ["loss", "-12 ( 12 )", "( 5 )", "3"]]


@pytest.mark.parametrize("row", rows("equal_program", key="correct"))
def test_default_verdicts_are_the_right_ones(row):
    golden, predicted = row["args"]
    assert equivalent(golden, predicted) is row["correct"]
    assert equivalent(predicted, golden) is row["correct"]


@pytest.mark.parametrize("row", rows("equal_program"))
def test_official_verdicts_are_the_official_ones(row):
    golden, predicted = row["args"]
    assert equivalent(golden, predicted, official=True, dialect=row["function"].split(".")[0]) is row["expected"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("add(3, 4)", "add(4, 3)"),
        ("subtract(118, 102)", "multiply(const_m1, subtract(102, 118))"),
        ("subtract(118, 102), divide(#0, 102)", "divide(118, 102), subtract(#0, const_1)"),
        ("multiply(7, 2)", "add(7, 7)"),
        ("divide(7, 2)", "multiply(7, 0.5)"),
        ("divide(7, const_100)", "multiply(7, 1%)"),
        ("multiply(7, 5%)", "multiply(0.05, 7.0)"),
        ("multiply(7, 50%)", "divide(7, 2)"),
        ("add(5, -3)", "subtract(5, 3)"),
        ("add(1,234.50, 1)", "add(1234.5, 1)"),
        ("exp(7, 2)", "multiply(7, 7)"),
        ("exp(7, -3)", "divide(1, multiply(7, multiply(7, 7)))"),
        ("exp(7, 0)", "const_1"),
        ("exp(add(3, 4), 0.5)", "exp(add(4, 3), .50)"),
        ("multiply(exp(7, 64), 7)", "multiply(7, exp(7, 64))"),
        ("add(table_sum(revenue, none), 3)", "add(3, table_sum(revenue, 2018))"),
        ("greater(3, add(4, 6))", "greater(3.0, add(6, 4))"),
        ("divide(7, 7)", "divide(9, 9)"),
        ("subtract(3, 4), add(1, 7)", "add(7, 1)"),
        ("1000000", "multiply(const_1000, const_1000)"),
    ],
)
def test_spelling_and_algebra_make_no_difference(first, second):
    assert equivalent(first, second) and equivalent(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("subtract(60.94, 25.14)", "35.8"),
        ("subtract(118, 102)", "subtract(102, 118)"),
        ("add(3, 4)", "7"),
        ("multiply(2, 3)", "6"),
        ("multiply(7, 3)", "add(7, add(7, 7))"),
        ("divide(5, 100)", "5%"),
        ("10", "multiply(2, 5)"),
        ("5", "-5"),
        ("greater(5, 3)", "greater(3, 5)"),
        ("greater(subtract(5, 3), 1)", "greater(5, add(3, 1))"),
        ("greater(5, 3)", "5"),
        ("exp(7, 0.5)", "exp(7, 0.25)"),
        ("multiply(exp(7, 0.5), exp(7, 0.5))", "7"),
        ("exp(7, 65)", "multiply(exp(7, 64), 7)"),
        ("table_sum(revenue, none)", "table_sum(loss, none)"),
        ("table_sum(revenue, none)", "table_average(revenue, none)"),
        ("table_sum(revenue, none)", "add(add(1234, 1100), 900)"),
        ("10000000000", "multiply(const_100000, const_100000)"),
    ],
)
def test_another_operand_or_operation_does(first, second):
    assert not equivalent(first, second) and not equivalent(second, first)


@pytest.mark.parametrize(
    "program",
    [
        "add(1, 2",
        "add(abc, 2)",
        "add(#0, 2)",
        "greater(2, 1), add(#0, 1)",
        "divide(7, 0)",
        "divide(7, subtract(3, 3.0)), add(1, 2)",
        "exp(subtract(3, 3), -1)",
        "add(774209, 576780, 2014)",
        "",
        None,
    ],
)
def test_what_cannot_mean_anything_is_equivalent_to_nothing(program):
    assert not equivalent(program, program)
    assert not equivalent(program, "add(1, 2)") and not equivalent("add(1, 2)", program)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("table_sum(revenue, none)", "add(1234, 1100), add(#0, 900)"),
        ("table_average(revenue, none)", "table_sum(revenue, none), divide(#0, const_3)"),
        ("table_average(revenue, none)", "add(900, 1100), add(1234, #0), divide(#1, 3)"),
        ("table_max(revenue, none)", "1,234"),
        ("table_min(loss, none)", "-12"),
        ("table_sum(loss, none)", "subtract(subtract(3, 12), 5)"),
    ],
)
def test_operations_on_rows_are_written_out_where_the_table_is_given(first, second):
    assert equivalent(first, second, table=TABLE)
    assert not equivalent(first, second)


def test_a_row_that_the_table_does_not_have_is_equal_to_itself_only():
    assert equivalent("table_sum(costs, none)", "table_sum(costs, 2018)", table=TABLE)
    assert not equivalent("table_sum(costs, none)", "table_max(costs, none)", table=TABLE)


@pytest.mark.parametrize(
    ("golden", "predicted", "history", "same"),
    [
        ("divide(subtract(206588, 181001), 181001)", "divide(25587, 181001)",
         [("subtract(206588, 181001)", 25587)], True),
        ("divide(subtract(206588, 181001), 181001)", "divide(25,587, 181001)",
         [("subtract(206588, 181001)", "25,587")], True),
        ("divide(subtract(206588, 181001), 181001)", "divide(25588, 181001)",
         [("subtract(206588, 181001)", 25587)], False),
        ("subtract(1891, 2383), divide(#0, 2383)", "divide(-492, 2383)", [("subtract(1891, 2383)", -492.0)], True),
        ("subtract(1891, 2383), divide(#0, 2383)", "divide(492, 2383)", [("subtract(1891, 2383)", -492.0)], False),
        ("divide(7, 3), multiply(#0, 13)", "multiply(2.33333, 13)", [("divide(7, 3)", 7 / 3)], True),
        ("multiply(divide(4, 9), 13)", "multiply(0.44444, 13)",
         [("9", 9), ("divide(4, 9)", 0.44444), ("multiply(0.44444, 3)", 1.33333)], True),
        ("multiply(multiply(divide(4, 9), 3), 13)", "multiply(1.33333, 13)",
         [("9", 9), ("divide(4, 9)", 0.44444), ("multiply(0.44444, 3)", 1.33333)], True),
        ("divide(7, 3), multiply(#0, 13)", "multiply(2.33333, 13)", [("divide(7, 3)", np.float64(7 / 3))], True),
        ("subtract(30, 20)", "10", [("subtract(30, 20)", 10)], False),
        ("add(60.94, 1)", "add(60.94, 1)", [("60.94", 60.94), ("add(1", None), (None, math.nan)], True),
    ],
)  # fmt: skip
def test_what_an_earlier_turn_answered_stands_for_its_program(golden, predicted, history, same):
    assert equivalent(golden, predicted, history=history) is same
    assert equivalent(predicted, golden, history=history) is same


def test_a_plan_may_point_at_earlier_turns():
    plan = {"steps": [{"tool": "compute", "operation": "divide", "operands": ["prev_0", 181001]}]}
    history = [("60.94", 60.94), ("subtract(206588, 181001)", 25587)]
    assert equivalent("subtract(206588, 181001), divide(#0, 181001)", plan, history=history)
    assert equivalent(plan, plan) and not equivalent(plan, "divide(25587, 181001)")


def test_the_percentages_of_plans_are_what_they_stand_for():
    change = {"steps": [{"tool": "compute", "operation": "percentage_change", "operands": [102, 118]}]}
    share = {"steps": [{"tool": "compute", "operation": "percentage", "operands": [102, 118]}]}
    assert equivalent(change, "subtract(118, 102), divide(#0, 102), multiply(#1, const_100)")
    assert equivalent(share, "divide(102, 118), multiply(#0, 100)")
    assert equivalent(change, "subtract(118, 102), divide(#0, 102)", scale=True)


def test_scale_forgives_a_hundred_and_nothing_else():
    golden = "subtract(118, 102), divide(#0, 102)"
    for predicted in (golden + ", multiply(#1, 100)", golden + ", divide(#1, const_100)", golden):
        assert equivalent(golden, predicted, scale=True) and equivalent(predicted, golden, scale=True)
    assert not equivalent(golden, golden + ", multiply(#1, 100)")
    assert not equivalent(golden, golden + ", multiply(#1, 1000)", scale=True)
    assert not equivalent("greater(5, 3)", "greater(500, 300)", scale=True)


def swapped(expression: Expression) -> Expression:
    """Commuting arguments the other way round, everywhere."""
    if isinstance(expression, str) or expression[0].startswith("table"):
        return expression
    operation, left, right = expression[0], swapped(expression[1]), swapped(expression[2])
    return (operation, right, left) if operation in {"add", "multiply"} else (operation, left, right)


def rewritten(expression: Expression) -> Expression:
    """Another formula of the same function."""
    if isinstance(expression, str) or expression[0].startswith("table"):
        return expression
    operation, left, right = expression[0], rewritten(expression[1]), rewritten(expression[2])
    if operation == "subtract":
        return "add", left, ("multiply", "const_m1", right)
    if operation == "add":
        return "subtract", right, ("subtract", "0", left)
    if operation == "multiply":
        return "divide", ("multiply", ("add", left, left), right), "2"
    return operation, left, right


def well_defined(program: str) -> bool:
    return equivalent(program, program)


@given(expressions())
@settings(derandomize=True)
def test_equivalence_is_reflexive_where_nothing_is_divided_by_zero(expression):
    program = parse_program(flat(expression))
    found = execute(program, TABLE)
    assume(program.error is None)
    assume(not (isinstance(found, ExecutionError) and found.kind == "division_by_zero"))
    for table in (None, TABLE):
        assert equivalent(program, program, table=table)


@given(expressions())
@settings(derandomize=True)
def test_commuting_renaming_and_nesting_make_no_difference(expression):
    assume(well_defined(flat(expression)))
    others = [nested(expression), tokens(expression), nested(swapped(expression))]
    if not isinstance(expression, str):
        others.append("multiply(6, 9), " + flat(expression, first=1))
    assert [equivalent(flat(expression), other) for other in others] == [True] * len(others)


@given(expressions())
@settings(derandomize=True)
def test_another_formula_of_the_same_function_is_equivalent_and_executes_alike(expression):
    first, second = nested(expression), nested(rewritten(expression))
    assume(well_defined(first))
    assert equivalent(first, second) and equivalent(second, first)
    values = [execute(program, TABLE) for program in (first, second)]
    if all(isinstance(value, float) for value in values):
        assume(all(1e-12 < abs(value) < 1e12 for value in values))
        assert math.isclose(*values, rel_tol=1e-3)


SMALL = expressions(("3", "4", "1", "const_2"), rows=False)


@given(st.lists(SMALL, min_size=3, max_size=3))
@settings(derandomize=True, max_examples=300)
def test_equivalence_is_symmetric_and_transitive(trees):
    a, b, c = map(nested, trees)
    assert equivalent(a, b) is equivalent(b, a)
    if equivalent(a, b) and equivalent(b, c):
        assert equivalent(a, c)


NUMBERS = {"1": 1, "2": 2, "0": 0, "0.5": Fraction(1, 2), "100": 100}


def exactly(expression: Expression, draw: dict[str, Fraction]) -> Fraction:
    """The slow twin: the function at one point of the rational numbers, by Python's fractions."""
    if isinstance(expression, str):
        return Fraction(NUMBERS[expression]) if expression in NUMBERS else draw[expression]
    operation, left = expression[0], exactly(expression[1], draw)
    right = Fraction(expression[2]) if operation == "exp" else exactly(expression[2], draw)
    return {
        "add": lambda: left + right,
        "subtract": lambda: left - right,
        "multiply": lambda: left * right,
        "divide": lambda: left / right,
        "exp": lambda: left ** int(right),
    }[operation]()


def functions() -> st.SearchStrategy[Expression]:
    leaves = st.sampled_from(["3", "7", *NUMBERS])
    powers = st.tuples(st.just("exp"), leaves, st.sampled_from(["2", "3", "-2"]))
    return st.recursive(leaves | powers, lambda one: st.tuples(st.sampled_from(ARITHMETIC[:4]), one, one), max_leaves=4)


@pytest.mark.slow
@given(functions(), functions(), st.integers(0, 2**32))
@settings(derandomize=True, max_examples=500)
def test_verdicts_are_those_of_exact_fractions(first, second, seed):
    points = Random(seed)
    draws = [{name: Fraction(points.randrange(10**30, 10**40), 7**30) for name in ("3", "7")} for _ in range(2)]
    try:
        same = all(exactly(first, draw) == exactly(second, draw) for draw in draws)
    except ZeroDivisionError:
        same = False
    assert equivalent(nested(first), nested(second)) is same


@given(SMALL, SMALL)
@settings(derandomize=True, max_examples=300)
def test_execution_of_equivalent_programs_agrees(a, b):
    first, second = nested(a), nested(b)
    if equivalent(first, second):
        values = [execute(program) for program in (first, second)]
        if all(isinstance(value, float) for value in values):
            assert math.isclose(*values, rel_tol=1e-6, abs_tol=1e-9)
        if all(isinstance(value, bool) for value in values):
            assert values[0] is values[1]


def test_programs_of_any_degree_are_equal_to_themselves_and_by_their_form_only():
    squares = "multiply(3, 7), " + ", ".join(f"multiply(#{at}, #{at})" for at in range(150))
    other = "multiply(7, 3), " + ", ".join(f"multiply(#{at}, #{at})" for at in range(150))
    fermat = "exp(3, 2), " + ", ".join(f"exp(#{at}, 64)" for at in range(40))
    assert equivalent(squares, squares) and not equivalent(squares, other)
    assert equivalent(fermat, fermat) and not equivalent(fermat, squares) and not equivalent(fermat, "1")


@pytest.mark.parametrize("dialect", ["finqa", "convfinqa"])
@pytest.mark.parametrize(
    ("golden", "predicted", "same"),
    [
        ("add(5, 3)", "add(3, 5)", True),
        ("add(5, 3)", "add(3.0, 5)", False),
        ("multiply(7, const_2)", "add(7, 7)", False),
        ("add(5, 3), add(#0, 3)", "add(3, 3), add(5, #0)", True),
        ("divide(5, 3)", ["divide(", "5", "3", ")"], False),
        ("divide(5, 3)", ["divide(", "5", "3", ")", "divide(", "5", "EOF"], True),
        (["foo(", "5", "3", ")", "add(", "5", "3", ")", "EOF"], "add(3, 5)", True),
        ("add(5, 3), divide(#0, 3)", "add(3, 5), divide(##0, 3)", True),
        ("add(5, 3), divide(#0, 3)", "add(3, 5), divide(#1, 3)", False),
        ("greater(5, 3)", "greater(5, 3)", True),
        ("greater(5, 3)", "greater(3, 5)", False),
        ("exp(add(5, 3), 2)", "exp(5, 3)", False),
        ("exp(5, 3), multiply(#0, 5)", "exp(5, 3), multiply(5, #0)", True),
        ("exp(5, 2)", "multiply(5, 5)", False),
        ("table_sum(revenue, none)", "table_sum(revenue, none)", True),
        ("table_sum(revenue, none)", "table_sum(revenue, 2018)", False),
        ("table_max(revenue, none), table_min(revenue, none), subtract(#0, #1)",
         "table_min(revenue, none), table_max(revenue, none), subtract(#1, #0)", False),
        ("add(#1, 5), add(5, 3), add(#0, #1)", "add(5, 3), add(#0, 5), add(#0, #1)", True),
        ("add(#0, 5)", "add(5, 5)", False),
        ("divide(5, subtract(3, 3))", "5", False),
        ("subtract(3, 3), divide(5, #0)", "subtract(3, 3), divide(5, #0)", True),
        ("subtract(3, 3), divide(#0, #0)", "subtract(5, 5), divide(#0, #0), add(#1, 3)", False),
        ([], [], False),
        (None, None, False),
    ],
)  # fmt: skip
def test_the_official_verdict_follows_its_own_rules(golden, predicted, same, dialect):
    assert equivalent(golden, predicted, official=True, dialect=dialect) is same


def test_a_single_number_is_official_in_one_dialect_only():
    for golden, predicted, same in [
        (["12", "EOF"], ["12", "EOF"], True),
        (["12", "EOF"], ["12", "x"], True),
        (["12", "EOF"], ["12.0", "EOF"], False),
        (["12", "EOF"], ["12"], False),
        (["12", "EOF"], ["12", "EOF", "EOF"], False),
        (["add(", "EOF"], ["add(", "EOF"], True),
    ]:
        assert equivalent(golden, predicted, official=True, dialect="convfinqa") is same
        assert not equivalent(golden, predicted, official=True, dialect="finqa")


@given(anything(), anything())
@settings(derandomize=True, max_examples=300)
def test_nothing_raises_on_what_a_model_may_write(first, second):
    for official in (False, True):
        equivalent(first, second, official=official)
        equivalent(first, first, official=official)
    same = equivalent(first, second, table=TABLE, history=[(first, 1.5), (second, "7")], scale=True)
    assert same is equivalent(second, first, table=TABLE, history=[(first, 1.5), (second, "7")], scale=True)
