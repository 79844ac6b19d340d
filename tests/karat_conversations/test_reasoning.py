import json
from collections import Counter, defaultdict
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat_conversations.numeric.equivalence import equivalent
from karat_conversations.numeric.programs import execute, parse_program
from karat_conversations.numeric.reasoning import Reasoning, compare_programs

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
CHANGE = "subtract(60.94, 25.14)"
SHARE = "subtract(60.94, 25.14), divide(#0, 25.14)"
EARLIER = [("60.94", 60.94), ("25.14", 25.14), (CHANGE, 35.8)]
SHARES = (
    *("logic_recall", "logic_precision", "logic_f1", "order_score"),
    *("operand_recall", "operand_precision", "partial_credit"),
)


def test_the_vectors_of_logic_recall():
    path = SHARED / "vectors" / "numeric.json"
    if not path.is_file():
        pytest.skip("no ../shared/data beside this checkout")
    rows = [row for row in json.loads(path.read_text()) if row["function"] == "orig.logic_recall"]
    rows = [row for row in rows if "note_expected" in row]
    found = {json.dumps(row["args"]): compare_programs(*row["args"]).logic_recall for row in rows}
    assert found == {json.dumps(row["args"]): row["note_expected"] for row in rows}
    assert len(rows) >= 15


@pytest.mark.parametrize(
    ("gold", "predicted", "recall", "precision"),
    [
        (SHARE, ["divide", "subtract"], 1.0, 1.0),
        (SHARE, ["subtract", "subtract"], 0.5, 0.5),
        (SHARE, [], 0.0, 0.0),
        ("25.14", [], 1.0, 1.0),
        ("25.14", "60.94", 1.0, 1.0),
        ("25.14", ["add"], 0.0, 0.0),
        (SHARE, ["percentage_change"], 1.0, 1.0),
        (SHARE, ["percentage"], 0.5, 1.0),
        ("divide(1, 3), multiply(#0, const_100)", ["percentage"], 1.0, 1.0),
        ("divide(1, 3), multiply(#0, const_100)", ["percentage", "multiply"], 1.0, 1.0),
        ("divide(1, 3), multiply(#0, 4), multiply(#1, 5)", ["percentage", "percentage"], 1.0, 0.75),
        ("divide(1, 3), multiply(#0, 4), multiply(#1, 5)", ["multiply", "percentage", "multiply"], 1.0, 1.0),
        ("multiply(1, 3)", ["Multiply"], 1.0, 1.0),
        ("greater(5, 3)", ["subtract"], 0.0, 0.0),
        ("multiply(400, 6.65%), greater(#0, 5)", ["multiply"], 0.5, 1.0),
        ("table_average(revenue, none), divide(#0, 5)", ["divide"], 0.5, 1.0),
        ("exp(2, 3)", "exp(2, 3)", 1.0, 1.0),
    ],
)
def test_operations_are_counted_as_multisets(gold, predicted, recall, precision):
    found = compare_programs(gold, predicted)
    assert (found.logic_recall, found.logic_precision) == (recall, precision)


TABLE = {"2007": {"price": 60.94, "units": 40.0}, "2005": {"price": 25.14, "units": "n/m"}}
CELL = {"tool": "extract_value", "table_params": {"row_query": "price", "col_query": "2007"}}
COMPARED: list[tuple[Any, Any, Any, Any]] = [
    (SHARE, SHARE, "1.424", None),
    (SHARE, "divide(35.8, 25.14)", "1.424", EARLIER),
    (SHARE, "divide(#0, 25.14)", 142.4, EARLIER),
    (SHARE, "subtract(60.94, 25.14)", "35.8", EARLIER[:2]),
    (CHANGE, "60.94 - 25.14", "35.8", None),
    (CHANGE, {"steps": [CELL, {"operation": "subtract", "operands": ["#0", 25.14]}]}, "35.8", None),
    (CHANGE, {"steps": [{**CELL, "table_params": {"row_query": "none", "col_query": "2007"}}]}, "35.8", None),
    ("table_sum(price, none)", "add(60.94, 25.14)", "86.08", None),
    ("table_sum(price, none)", "table_average(price, none), multiply(#0, 2)", "86.08", None),
    ("table_max(units, none)", "table_max(units, none)", "40", None),
    ("25.14", CHANGE, "25.14", None),
    (CHANGE, "25.14", "yes", None),
    ("greater(60.94, 25.14)", "greater(25.14, 60.94)", "yes", None),
    (CHANGE, "subtract(60.94", "35.8", None),
    ("subtract(60.94", CHANGE, "35.8", None),
    (None, CHANGE, None, None),
    (CHANGE, None, "35.8", EARLIER),
]


def test_the_whole_of_what_is_found(golden):
    told = []
    for gold, predicted, stated, earlier in COMPARED:
        found = compare_programs(gold, predicted, stated=stated, earlier=earlier or (), table=TABLE)
        told.append(f"{gold} {predicted} {stated} {len(earlier or ())}\n    {found}\n")
    golden("conversations/reasoning.txt", "".join(told))


def test_a_plans_percentages_count_as_their_names_do():
    operands = [{"type": "literal", "value": 25.14}, {"type": "literal", "value": 60.94}]

    def plan(operation):
        return {"steps": [{"tool": "compute", "operation": operation, "operands": operands}]}

    change = compare_programs(SHARE, plan("percentage_change"))
    assert (change.logic_recall, change.logic_precision, change.operand_recall) == (1.0, 1.0, pytest.approx(1.0))
    share = compare_programs("divide(25.14, 60.94)", plan("percentage"))
    assert (share.logic_recall, share.logic_precision, share.operand_precision) == (1.0, 1.0, 1.0)
    times = compare_programs("divide(25.14, 60.94), multiply(#0, const_100)", plan("percentage"))
    assert (times.logic_f1, times.program_match) == (1.0, True)


@pytest.mark.parametrize(
    ("predicted", "score"),
    [
        (["subtract", "divide"], 1.0),
        (["divide", "subtract"], 0.5),
        (["add", "subtract", "add", "divide"], 0.5),
        ([], 0.0),
    ],
)
def test_order_is_the_longest_common_subsequence_over_the_longer_one(predicted, score):
    assert compare_programs(SHARE, predicted).order_score == score


def test_operands_are_found_by_value_and_constants_are_none():
    gold = "subtract(1,000, 5%), divide(#0, const_100)"
    same = compare_programs(gold, "subtract(1000, 0.05), divide(#0, 100)")
    assert (same.operand_recall, same.operand_precision) == (1.0, 1.0)
    half = compare_programs(gold, "subtract(1000, 7), divide(#0, 8)")
    assert (half.operand_recall, half.operand_precision) == (0.5, 1 / 3)
    assert compare_programs("add(4, 4)", "add(4, 5)").operand_recall == 0.5
    assert compare_programs("add(const_1, const_2)", "add(1, 2)").operand_recall is None
    assert compare_programs("add(4, -4)", "subtract(4, 4)").operand_recall == 1.0


def test_partial_credit_is_for_golden_parts_however_they_are_written():
    assert compare_programs(SHARE, "subtract(60.94, 25.14), add(#0, 1)").partial_credit == 0.5
    assert compare_programs(SHARE, "subtract(divide(60.94, 25.14), 1)").partial_credit == 0.5
    assert compare_programs(SHARE, "divide(subtract(60.94, 25.14), 25.14)").partial_credit == 1.0
    assert compare_programs("25.14", "add(25.14, 1)").partial_credit == 1.0
    assert compare_programs("25.14", "60.94").partial_credit == 0.0


def test_reusing_an_earlier_answer_costs_nothing_in_the_step_reading():
    found = compare_programs(SHARE, "divide(35.8, 25.14)", earlier=EARLIER)
    assert (found.operations, found.logic_recall, found.partial_credit, found.program_match) == (2, 0.5, 0.0, False)
    step = found.step
    assert step is not None
    assert (step.operations, step.logic_recall, step.logic_precision) == (1, 1.0, 1.0)
    assert (step.partial_credit, step.program_match, step.operand_recall) == (1.0, True, None)


def test_computing_an_earlier_answer_again_costs_nothing_either():
    found = compare_programs(SHARE, SHARE, earlier=EARLIER)
    assert (found.logic_f1, found.step.logic_f1, found.step.operations) == (1.0, 1.0, 1)
    again = compare_programs(CHANGE, CHANGE, earlier=EARLIER)
    assert (again.step.operations, again.step.logic_recall, again.step.partial_credit) == (0, 1.0, 1.0)
    taken = compare_programs(CHANGE, "35.8", earlier=EARLIER)
    assert (taken.step.logic_recall, taken.step.partial_credit, taken.step.program_match) == (1.0, 1.0, True)
    assert (taken.logic_recall, taken.program_match) == (0.0, False)


def test_reusing_ones_own_answer_is_reuse_even_where_it_was_rounded_or_wrong():
    own = [("60.94", 60.94, "60.94"), ("25.14", 25.14, "25.14"), (CHANGE, 35.8, "36")]
    found = compare_programs(SHARE, "divide(36, 25.14)", earlier=own, expected=1.42403)
    assert (found.program_match, found.step.program_match, found.step.partial_credit) == (False, True, 1.0)
    assert (found.operand_recall, found.execution_match) == (1 / 3, False)  # 25.14 once of twice
    assert compare_programs(SHARE, "divide(37, 25.14)", earlier=own).step.program_match is False


def test_steps_that_lead_to_an_earlier_answer_are_not_counted():
    gold = "subtract(8, 3), divide(#0, 3), add(#1, 7)"
    found = compare_programs(gold, ["add"], earlier=[("subtract(8, 3), divide(#0, 3)", 5 / 3)])
    assert (found.logic_recall, found.step.logic_recall) == (1 / 3, 1.0)


def test_numbers_that_an_earlier_answer_gave_are_no_operands():
    found = compare_programs("divide(35.8, 8)", "divide(35.8, 9)", earlier=EARLIER)
    assert (found.operand_recall, found.operand_precision) == (0.0, 0.0)
    own = compare_programs("divide(50, 8)", "divide(49, 8)", earlier=[("add(25, 25)", 50.0, "49")])
    assert (own.operand_recall, own.operand_precision) == (1.0, 1.0)
    chain = compare_programs(CHANGE, CHANGE, earlier=EARLIER[:2])
    assert (chain.operand_recall, chain.step.operand_recall) == (1.0, None)


def test_the_programs_value_is_compared_with_the_golden_answer_and_with_the_stated_one():
    found = compare_programs(SHARE, SHARE, expected=1.42403, stated="142.4", unit="percent")
    assert (found.execution_match, found.self_consistent) == (True, True)
    found = compare_programs(SHARE, SHARE, expected="142.4%", stated="1.8")
    assert (found.execution_match, found.self_consistent) == (True, False)
    found = compare_programs(SHARE, CHANGE, stated="35.8")
    assert (found.execution_match, found.self_consistent, found.step.self_consistent) == (False, True, True)
    found = compare_programs("greater(5, 3)", "greater(4, 3)", expected="yes", stated="no")
    assert (found.execution_match, found.self_consistent) == (True, False)
    broken = compare_programs(SHARE, "divide(1, 0)", expected=1.42403, stated="1.42")
    assert (broken.execution_match, broken.self_consistent) == (False, False)


@pytest.mark.parametrize("gold", [None, "", [], "Add(1, 2", "sqrt(4)"])
def test_without_a_golden_program_nothing_is_available(gold):
    assert compare_programs(gold, ["add"]) == Reasoning(step=Reasoning())


def test_without_a_prediction_only_the_golden_operations_are_known():
    only = Reasoning(operations=2)
    assert compare_programs(SHARE, None) == Reasoning(operations=2, step=only)
    assert compare_programs(SHARE, "").logic_recall is None


@pytest.mark.parametrize(
    "text", ["no program at all", "N/A", "divide(subtract(60.94, 25.14), ", "add(1, 2, 3)", "2 (3"]
)
def test_nothing_is_available_of_a_prediction_that_cannot_be_read(text):
    only = Reasoning(operations=2, unreadable=True)
    found = compare_programs(SHARE, text, expected=1.42403, stated="1.42")
    assert found == Reasoning(operations=2, unreadable=True, step=only)


def test_infix_is_compared_by_what_it_computes():
    found = compare_programs(SHARE, "(60.94 - 25.14) / 25.14 * 100", expected=1.42403, stated="142.4", unit="percent")
    assert (found.logic_recall, found.logic_precision, found.operand_recall) == (1.0, 2 / 3, 1.0)
    assert (found.partial_credit, found.program_match, found.unreadable) == (1.0, False, False)
    assert compare_programs(SHARE, "60.94 / 25.14 - 1").program_match


# --- laws ---------------------------------------------------------------------------------------

numbers = st.sampled_from(["60.94", "25.14", "7", "5%", "1,234", "const_100", "const_m1", "35.8"])
operations = st.sampled_from(["add", "subtract", "multiply", "divide"])


@st.composite
def written(draw):
    """A program in which each step may use the steps before it."""
    steps = []
    for at in range(draw(st.integers(0, 4))):
        arguments = st.one_of(numbers, st.integers(0, at - 1).map("#{}".format)) if at else numbers
        steps.append(f"{draw(operations)}({draw(arguments)}, {draw(arguments)})")
    return ", ".join(steps) or draw(numbers)


histories = st.lists(st.tuples(written(), st.floats(-100, 100)), max_size=3)


@given(program=written(), earlier=histories)
def test_a_program_is_all_that_it_should_be(program, earlier):
    found = compare_programs(program, program, earlier=earlier)
    for reading in (found, found.step):
        assert {getattr(reading, name) for name in SHARES} <= {1.0, None}
        assert reading.program_match in {True, None}
    valid = equivalent(program, program)
    assert (found.program_match is True) == valid
    assert (found.partial_credit is not None) == valid


@given(gold=written(), predicted=written(), earlier=histories)
def test_shares_are_shares_and_programs_match_as_equivalence_has_it(gold, predicted, earlier):
    found = compare_programs(gold, predicted, earlier=earlier)
    for reading in (found, found.step):
        for name in SHARES:
            value = getattr(reading, name)
            assert value is None or 0 <= value <= 1
    if found.program_match is not None:
        assert found.program_match == equivalent(gold, predicted)
        assert not found.program_match or found.partial_credit > 0
    if found.step.program_match is not None:
        assert found.step.program_match == equivalent(gold, predicted, history=earlier)
    assert found.step.operations <= found.operations


@given(gold=written(), predicted=written())
def test_recall_and_precision_change_places_with_the_programs(gold, predicted):
    one, other = compare_programs(gold, predicted), compare_programs(predicted, gold)
    assert (one.logic_recall, one.logic_f1) == (other.logic_precision, other.logic_f1)
    assert one.order_score == other.order_score


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), written()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["steps", "tool", "operation", "operands", "value", "turn"]), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


@given(predicted=junk, stated=junk, unit=junk, own=junk)
def test_nothing_that_a_model_wrote_raises(predicted, stated, unit, own):
    earlier = [(CHANGE, 35.8, own)]
    found = compare_programs(SHARE, predicted, earlier=earlier, stated=stated, unit=unit, expected=1.42403)
    assert {field.name for field in fields(found)} > set(SHARES)


# --- the real data ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared():
    path = SHARED / "convfinqa" / "predictions_programs.json"
    if not path.is_file():
        pytest.skip("no ../shared/data beside this checkout")
    conversations: dict[str, dict[int, Any]] = defaultdict(dict)
    for row in json.loads(path.read_text(encoding="utf-8"))["results"]:
        conversation, _, turn = row["question_id"].rpartition("-")
        conversations[conversation][int(turn)] = row
    found = []
    for turns in conversations.values():
        earlier: list[Any] = []
        for _, row in sorted(turns.items()):
            reasoning = compare_programs(
                row["expected_program"],
                row["predicted_program"],
                earlier=earlier,
                expected=row["expected_answer"],
                stated=row["predicted_answer"],
            )
            found.append((row, reasoning))
            earlier.append((row["expected_program"], row["expected_answer"], row["predicted_answer"]))
    return found


def test_real_programs_are_judged_as_a_model_judged_them_but_for_units_and_history(compared):
    """The file's own verdicts forgive ×100 and units, and do not see that a number is an earlier answer."""
    verdicts = Counter((row["program_correct"], bool(found.step.program_match)) for row, found in compared)
    assert len(compared) == 355
    assert (verdicts[True, True] + verdicts[False, False]) / len(compared) >= 0.80
    forgiven = [
        row
        for row, found in compared
        if row["program_correct"] and not found.step.program_match and found.step.logic_recall < 0.5
    ]
    assert len(forgiven) <= 10
    chain, step = (
        sum(bool(reading.program_match) for reading in readings)
        for readings in zip(*((found, found.step) for _, found in compared), strict=True)
    )
    assert (chain, step) == (239, 267)


def test_real_programs_that_match_give_the_golden_answer(compared):
    for row, found in compared:
        if found.program_match:
            value = execute(row["predicted_program"])
            assert found.execution_match, row
            assert value == pytest.approx(execute(row["expected_program"]))
            assert parse_program(row["predicted_program"]).error is None
    answers = Counter((row["answer_correct"], bool(found.execution_match)) for row, found in compared)
    assert answers[False, True] <= 4
    assert answers[True, True] >= 260
