import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat_conversations.numeric.diagnosis import LABELS, MEANINGS, Diagnosis, diagnose
from karat_conversations.numeric.document import Document
from karat_conversations.numeric.facts import TurnFacts
from karat_conversations.numeric.matches import match
from karat_conversations.numeric.programs import parse_program
from karat_conversations.numeric.proofs import replay, would_be_right
from karat_conversations.numeric.trees import Call

REPORT = Document(
    table={"2007": {"price": 60.94, "yield": -27.0, "units": 40.0}, "2005": {"price": 25.14, "yield": -28.0}},
    text="the plan paid $ 93 million and ( 12 ) million , or 6.5 % of 1,430 in 2006 .",
)
CHANGE = "subtract(60.94, 25.14)"
SHARE = "subtract(60.94, 25.14), divide(#0, 25.14)"


def label(expected, actual, program=None, *, history=(), **facts):
    found = diagnose(TurnFacts(expected=expected, actual=actual, program=program, document=REPORT, **facts), history)
    return None if found is None else found.label


LABELLED = [
    (35.8, "35.8", CHANGE, None),
    (35.8, "36.1", CHANGE, None),
    ("yes", "Yes", "greater(5, 3)", None),
    (35.8, None, CHANGE, "unanswered"),
    (35.8, float("nan"), CHANGE, "unanswered"),
    (35.8, " ", CHANGE, "unanswered"),
    (35.8, "N/A", CHANGE, "unanswered"),
    (35.8, "<UNKNOWN>", CHANGE, "unanswered"),
    (35.8, "N/A - the report does not say", CHANGE, "unanswered"),
    (35.8, "I cannot determine this from the report.", CHANGE, "unanswered"),
    (35.8, "The change is not disclosed.", CHANGE, "unanswered"),
    (35.8, "about the same", CHANGE, "unreadable"),
    (35.8, "yes", CHANGE, "unreadable"),
    ("yes", "35.8", "greater(5, 3)", "unreadable"),
    ("see below", "35.8", None, "unreadable"),
    (1.42403, "142.4", SHARE, "scale"),
    (142.4, "1.424", SHARE, "scale"),
    (35.8, "35800", CHANGE, "scale"),
    (35.8e6, "35.8", CHANGE, "scale"),
    (35.8, "358", CHANGE, "power_of_ten"),
    (35.8, "-3.58", CHANGE, "power_of_ten"),
    (35.8, "-35.8", CHANGE, "sign"),
    (1.42403, "-142.4", SHARE, "scale_and_sign"),
    (35.8, "-35800", CHANGE, "scale_and_sign"),
    (0.284, "0.3", None, "rounding"),
    (0.284, "28.9", None, "other"),
    (1234.0, "1200", None, "rounding"),
    (14.0, "10", None, "other"),
    (0.4, "0", None, "other"),
    (35.8, "36.9", None, "near_miss"),
    (35.8, "37.7", None, "other"),
    (4.0, "0.25", None, "reciprocal"),
    (1.42403, "2.424", SHARE, "ratio_vs_change"),
    (1.42403, "0.42403", SHARE, "ratio_vs_change"),
    ("25.14", "60.94", "25.14", "wrong_operand"),
    (35.8, "67.86", CHANGE, "wrong_operand"),  # 93 − 25.14
    (35.8, "86.08", CHANGE, "wrong_operation"),
    ("yes", "no", "greater(5, 3)", "wrong_operation"),
    (1.42403, "35.8", SHARE, "stopped_early"),
    (35.8, "777", CHANGE, "other"),
    ("25.14", "25.9", "25.14", "near_miss"),
    ("40", "39", "40", "near_miss"),
    ("40", "0.5", "40", "other"),
    ("60.94", "35.8", "60.94", "level_vs_change"),  # 60.94 − 25.14
    ("60.94", "142.4", "60.94", "level_vs_change"),
    (35.8, "60.94", CHANGE, "level_vs_change"),
    (35.8, "1.424", CHANGE, "level_vs_change"),
    (86.08, "60.94", "add(60.94, 25.14)", "stopped_early"),
    (1.42403, "-0.58746", SHARE, "swapped_operands"),
    (0.5, "4", "divide(subtract(60.94, 60.44), 1)", "other"),
    (4.0, "5", "subtract(2011, 2007)", "other"),
]


@pytest.mark.parametrize(("expected", "actual", "program", "wanted"), LABELLED)
def test_each_label_has_its_answers(expected, actual, program, wanted):
    assert label(expected, actual, program) == wanted


def test_the_evidence_of_each_label(golden):
    told = []
    for expected, actual, program, _ in LABELLED:
        facts = TurnFacts(expected=expected, actual=actual, program=program, stated=program, document=REPORT)
        told.append(f"{expected} {actual} {program}: {diagnose(facts)}\n")
    golden("conversations/diagnoses.txt", "".join(told))


def test_every_label_has_a_meaning_and_its_place():
    assert tuple(MEANINGS) == LABELS


def test_a_declared_unit_is_read_before_the_answer_is_compared():
    assert label(0.126, "13", unit="percent") == "rounding"
    assert label(0.284, "29.4", unit="percent") == "near_miss"
    assert label(4.0, "25", unit="percent") == "reciprocal"
    assert label(0.42, "142", unit="percent") == "ratio_vs_change"
    assert label(0.126, "13%", unit="percent") == "rounding"
    assert label(0.00455, "0.46", unit="percent") == "scale"


def test_only_a_printed_golden_answer_was_rounded():
    assert label("8%", "7.6%") == "rounding"
    assert label("8", "7.6", printed="8", executed=7.96) == "rounding"
    assert label(8, "7.6") == "near_miss"
    assert label("8", "7.6", printed="8", executed=8.0) == "near_miss"


def test_an_answer_given_before_is_recognised_whether_the_agents_or_the_golden_one():
    first = TurnFacts(expected=777.0, actual="778000")
    assert label(3.0, "778000", history=[first]) == "repeats_earlier"
    found = diagnose(TurnFacts(expected=3.0, actual="777"), [first])
    assert found == Diagnosis("repeats_earlier", {"turn": 0, "whose": "golden", "value": 777.0})


def test_golden_answers_that_disagree_are_suspected_last():
    assert label(85.0, "777", "subtract(205, 120)", executed=85.0, printed="193") == "gold_suspect"
    assert label(85.0, "-85", "subtract(205, 120)", executed=85.0, printed="193") == "sign"
    assert label(-0.09709, "777", executed=-0.09709, printed="-10%") == "other"
    assert label(-0.09709, "777", executed=-0.09709, printed="10%") == "gold_suspect"


def test_the_golden_answer_that_was_not_compared_with_is_suspected_first():
    assert label(-0.27, "27", "subtract(1, 1.27)", unit="percent", executed=-0.27, printed="27%") == "gold_suspect"
    assert label(-0.27, "-27", "subtract(1, 1.27)", unit="percent", executed=-0.27, printed="27%") == "scale"
    assert label("27%", "-27%", "subtract(1, 1.27)", executed=-0.27, printed="27%") == "gold_suspect"
    assert label(0.27, "27", "subtract(1, 0.73)", executed=0.27, printed="27") == "scale"
    assert label(0.27, "777", "subtract(1, 0.73)", executed=0.27, printed="27") == "other"


def test_the_other_golden_answer_is_recognised_at_a_usual_scale():
    assert label(-2238.8, "958", "subtract(3.2, 2242)", executed=-2238.8, printed="0.96") == "gold_suspect"
    assert label(-2238.8, "777", "subtract(3.2, 2242)", executed=-2238.8, printed="777") == "gold_suspect"
    assert label(-2238.8, "777", "subtract(3.2, 2242)", executed=-2238.8, printed="-2238.8") == "other"


def test_a_proof_comes_before_what_else_fits():
    swapped = turns_of(("60.94", 60.94, "25.14", None), ("25.14", 25.14, "60.94", None))
    assert label(35.8, "-35.8", CHANGE, history=swapped) == "propagated"
    assert label(35.8, "-35.8", CHANGE) == "sign"
    near = turns_of(("60.94", 60.94, "60", None))
    assert label(2.42403, "242.4", "divide(60.94, 25.14)", history=near, unit="percent") == "scale"


def test_a_number_of_the_report_comes_before_a_near_miss():
    report = Document(table={"high": {"q1": 42.72, "q2": 41.31}})
    found = diagnose(TurnFacts(expected=42.72, actual="41.31", program="42.72", document=report))
    assert found is not None
    assert (found.label, found.evidence["row"], found.evidence["column"]) == ("wrong_operand", "q2", "high")


def test_two_operands_of_the_agents_own_program_are_wrong_operands():
    listed = Document(text="amortization of $ 98.1 million , $ 95.9 million , $ 92.4 million and $ 90.5 million")
    turn = TurnFacts(
        expected=2.2, actual="1.9", program="subtract(98.1, 95.9)", stated="92.4 - 90.5 = 1.9", document=listed
    )
    assert diagnose(turn) == Diagnosis("wrong_operand", {"program": "92.4 - 90.5 = 1.9"})


def test_an_operand_is_exchanged_beside_an_error_that_was_carried_on():
    history = turns_of((CHANGE, 35.8, "50", None))
    found = diagnose(TurnFacts(expected=1.42403, actual="1.25", program=SHARE, document=REPORT), history)
    assert found is not None
    assert (found.label, found.evidence["turn"], found.evidence["answer"]) == ("wrong_operand", 0, 50.0)
    assert found.evidence["instead"] == 40.0
    report = Document(text="60.94 and 25.14 and -7")
    carried = turns_of((CHANGE, 35.8, "200", None))
    turn = TurnFacts(expected=42.8, actual="193", program=f"{CHANGE}, add(#0, 7)", document=report)
    assert diagnose(turn, carried) == Diagnosis("other", {})


def test_a_constant_of_the_table_is_an_operand():
    index = Document(table={"2008": {"stock": 100.0, "peers": 59.03}, "2012": {"stock": 110.78}})
    found = diagnose(TurnFacts(expected=10.78, actual="51.75", program="subtract(110.78, const_100)", document=index))
    assert found is not None
    assert (found.label, found.evidence["literal"], found.evidence["instead"]) == ("wrong_operand", "const_100", 59.03)


@pytest.mark.parametrize(
    ("stated", "actual", "wanted"),
    [
        ("subtract(90, 60.94)", "29.06", "wrong_operand"),
        ("60.94 * 25.14 - 60.94", "1471.09", "wrong_operation"),
        ("60.94 + 777", "837.94", "wrong_operation"),  # another number, too
        ("subtract(90, 60.94)", "31", "other"),  # not what the program gives
        ("add(90, 17)", "107", "other"),
        ("the difference", "777", "other"),
    ],
)
def test_the_agents_own_program_says_what_is_wrong(stated, actual, wanted):
    found = diagnose(TurnFacts(expected=35.8, actual=actual, program=CHANGE, stated=stated))
    assert found is not None
    assert found.label == wanted


def test_earlier_answers_in_another_program_are_a_wrong_operation():
    history = turns_of((CHANGE, 35.8, "35.8", None), ("add(40, 1)", 41.0, "41", None))
    turn = {"program": f"{CHANGE}, add(40, 1), multiply(#0, #1)", "stated": "35.8 + 41 * 7"}
    assert label(1467.8, "322.8", **turn, history=history) == "other"
    assert label(1467.8, "76.8", **turn | {"stated": "35.8 + 41"}, history=history) == "wrong_operation"


def test_a_wrong_operand_is_named_with_its_place_and_the_number_of_tries():
    found = diagnose(TurnFacts(expected=25.14, actual="60.94", program="25.14", document=REPORT))
    numbers = len(REPORT.numbers)
    assert found is not None
    assert found.evidence == {
        "literal": "25.14",
        "instead": 60.94,
        "row": "price",
        "column": "2007",
        "result": 60.94,
        "reading": "answer",
        "tried": numbers,
        "fits": 1,
    }


@pytest.mark.parametrize(
    ("expected", "actual", "program", "instead", "tried"),
    [
        (86.08, "43.04", "table_sum(price, none)", "table_average", 1),
        (60.94, "25.14", "table_max(price, none)", "table_min", 2),
        (43.04, "86.08", "table_average(price, none)", "table_sum", 3),
        (35.8, "17.9", "table_max(price, none), subtract(#0, 25.14)", "table_average", 6),
    ],
)
def test_another_operation_on_a_row_is_named(expected, actual, program, instead, tried):
    found = diagnose(TurnFacts(expected=expected, actual=actual, program=program, document=REPORT))
    assert found is not None
    golden = program.partition("(")[0]
    named = {"step": 0, "golden": golden, "instead": instead, "reading": "answer", "tried": tried}
    assert (found.label, found.evidence) == ("wrong_operation", named)


def test_a_literal_that_stands_twice_is_exchanged_in_both_places_too():
    found = diagnose(TurnFacts(expected=1.42403, actual="0.5235", program=SHARE, document=REPORT))
    assert found is not None
    assert found.label == "wrong_operand"
    assert found.evidence["instead"] == 40.0
    assert found.evidence["tried"] == 4 * len(REPORT.numbers)


def test_an_exchange_that_divides_by_zero_gives_nothing():
    report = Document(text="60.94 and 25.14")
    found = diagnose(TurnFacts(expected=0.5, actual="7", program="divide(1, subtract(60.94, 25.14))", document=report))
    assert found == Diagnosis("other", {})


def test_the_numbers_of_a_document_are_those_people_would_read():
    text = "201crestricted 2013 , q3 1,430 and 12,5 at 6.5% ( 12 ) -7 . 3 .5"
    assert list(Document(text=text).places) == [2013.0, 1430.0, 12.0, 5.0, 6.5, 0.065, -12.0, 7.0, -7.0, 3.0, 0.5]
    rows = [["", "2007", "2006"], ["sales", "$ 1,234", "( 5 )"], ["share", "12 %", None]]
    assert {1234.0, -5.0, 5.0, 0.12, 2007.0} <= set(Document(table=rows).places)


# --- propagated ---------------------------------------------------------------------------------


def turns_of(*turns):
    return [TurnFacts(expected=e, actual=a, program=p, unit=u, document=REPORT) for p, e, a, u in turns]


def test_an_error_that_is_carried_on_is_proved_with_what_was_put_in():
    history = turns_of((CHANGE, 35.8, "50", None))
    turn = TurnFacts(expected=1.42403, actual="1.989", program=SHARE)
    found = diagnose(turn, history)
    assert found is not None
    assert found.label == "propagated"
    assert found.evidence["proof"] == {
        "turns": [0],
        "substitutions": [{"turn": 0, "golden": 60.94 - 25.14, "answer": 50.0}],
        "program": SHARE,
        "result": 50 / 25.14,
        "reading": "answer",
    }


@pytest.mark.parametrize(
    ("program", "expected", "actual", "unit", "proved"),
    [
        ("divide(60.94, 25.14)", 2.42403, "2.785", None, (0,)),  # 70 / 25.14
        ("divide(60.94, 25.14)", 2.42403, "278.5", "percent", (0,)),
        ("divide(60.94, 25.14)", 2.42403, "278.5", None, None),
        ("divide(60.94, 25.14)", 2.42403, "3.5", None, (0, 1)),  # 70 / 20
        ("divide(60.94, const_100)", 0.6094, "0.7", None, (0,)),
        ("divide(25.14, const_100)", 0.2514, "0.5", None, None),
        ("add(subtract(60.94, 25.14), 100)", 135.8, "150", None, (2,)),
        ("60.94", 60.94, "70", None, None),  # a program without an operation carries nothing on
        (CHANGE, 35.8, "50", None, (2,)),  # the fewest turns: 70 - 20, of turns 0 and 1, is 50 too
        ("add(100, const_100)", 200.0, "103", None, (3,)),  # the literal, not the constant
    ],
)
def test_replay_puts_in_the_answers_of_wrong_turns(program, expected, actual, unit, proved):
    history = turns_of(
        ("60.94", 60.94, "70", None),
        ("25.14", 25.14, "20", None),
        (CHANGE, 35.8, "50", None),
        ("100", 100.0, "3", None),
    )
    proof = replay(TurnFacts(expected=expected, actual=actual, program=program, unit=unit), history)
    assert (None if proof is None else proof.turns) == proved


def test_right_turns_and_turns_without_a_number_are_not_put_in():
    history = turns_of(("60.94", 60.94, "61", None), ("25.14", 25.14, "no idea", None))
    assert replay(TurnFacts(expected=2.42403, actual="2.4264", program="divide(60.94, 25.14)"), history) is None


def test_a_turn_that_only_earlier_errors_made_wrong_would_be_right():
    history = turns_of((CHANGE, 35.8, "50", None))
    carried = TurnFacts(expected=1.42403, actual="1.989", program=SHARE)
    assert would_be_right(carried, history)
    assert not would_be_right(TurnFacts(expected=1.42403, actual="198.9", unit="percent", program=SHARE), history)
    assert would_be_right(TurnFacts(expected=1.42403, actual="1.42403", program=SHARE), history)
    assert not would_be_right(TurnFacts(expected=1.42403, actual="3", program=SHARE), history)


@pytest.mark.parametrize("share", ["add(25.14, 60.94), divide(#0, 25.14)", "divide(add(60.94, 25.14), 25.14)"])
def test_an_answer_is_put_in_whatever_the_order_of_a_sum(share):
    history = turns_of(("add(60.94, 25.14)", 86.08, "90", None))
    assert label(3.42403, "3.57995", share, history=history) == "propagated"


@pytest.mark.parametrize(
    ("stated", "actual", "wanted"),
    [
        (None, "1.989", "propagated"),  # 50 / 25.14
        ("50 / 25.14", "1.989", "propagated"),
        ("(60.94 - 25.14) / 18", "1.989", "wrong_operand"),  # computed in this turn, not taken from turn 0
        ("subtract(60.94, 25.14), divide(#0, 18)", "1.989", "wrong_operand"),
    ],
)
def test_nothing_is_put_in_where_the_agent_computed_it_itself(stated, actual, wanted):
    history = turns_of((CHANGE, 35.8, "50", None))
    assert label(1.42403, actual, SHARE, history=history, stated=stated) == wanted


@pytest.mark.parametrize(
    ("earlier", "stated", "actual"),
    [
        ([(CHANGE, 35.8, "35.8", None), ("25.14", 25.14, "60.94", None)], None, 0.5875),
        ([("25.14", 25.14, "60.94", None)], "(60.94 - 25.14) / 60.94", 0.5875),
        ([("25.14", 25.14, "20", None)], "divide(subtract(60.94, 25.14), 20)", 1.79),
    ],
)
def test_a_wrong_number_is_carried_on_beside_a_result_that_was_right(earlier, stated, actual):
    found = diagnose(TurnFacts(expected=1.42403, actual=actual, program=SHARE, stated=stated), turns_of(*earlier))
    assert found is not None
    assert found.label == "propagated"
    assert found.evidence["proof"]["kept"] == [0]


@pytest.mark.parametrize(
    "reason",
    [
        "N/A - not in the document",
        "not disclosed",
        "The report does not provide figures for 2014.",
        "cannot be determined from the table",
        "No data for 2014 is given",
        "unknown",
    ],
)
def test_a_zero_for_what_the_report_does_not_have_is_no_answer_and_proves_nothing(reason):
    zero = TurnFacts(expected=35.8, actual="0", program=CHANGE, stated=reason)
    assert diagnose(zero) == Diagnosis("unanswered", {"answer": "0", "program": reason})
    follower = TurnFacts(expected=1.42403, actual="0", program=SHARE, stated="0 / 25.14")
    assert replay(follower, [zero]) is None
    assert replay(follower, [TurnFacts(expected=35.8, actual="0", program=CHANGE)]) is not None
    assert label(35.8, "0", CHANGE, stated="subtract(60.94, 60.94)") == "wrong_operand"
    assert diagnose(TurnFacts(expected=0.0, actual="0", stated=reason)) is None
    assert label(35.8, "no", CHANGE, stated=reason) == "unanswered"
    assert label("yes", "no", "greater(5, 3)", stated=reason) == "wrong_operation"


# --- laws ---------------------------------------------------------------------------------------

numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3))
anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30), st.lists(st.integers(), max_size=2)
)
answers = st.one_of(anything, numbers, numbers.map(str), numbers.map(lambda x: f"{x}%"))
units = st.one_of(st.none(), st.sampled_from(["percent", "million", "raw", "trillion", "basis points"]), anything)
literals = st.one_of(numbers.map(repr), st.sampled_from(["60.94", "25.14", "const_100", "5%", "#0", "#1", "#7", "x"]))
operations = st.sampled_from(["add", "subtract", "multiply", "divide", "exp", "greater", "table_sum", "sqrt"])
programs = st.one_of(
    st.none(),
    st.text(max_size=20),
    literals,
    st.lists(st.tuples(operations, literals, literals), min_size=1, max_size=4).map(
        lambda steps: ", ".join(f"{operation}({left}, {right})" for operation, left, right in steps)
    ),
)
facts = st.builds(
    TurnFacts,
    expected=answers,
    actual=answers,
    unit=units,
    program=programs,
    executed=answers,
    printed=answers,
    document=st.sampled_from([None, REPORT]),
)


@given(turn=facts, history=st.lists(facts, max_size=4))
def test_whatever_was_answered_there_is_one_label_and_evidence_that_can_be_written(turn, history):
    found = diagnose(turn, history)
    assert (found is None) == turn.right
    if found is not None:
        assert found.label in LABELS
        json.dumps(found.evidence, allow_nan=False)
    assert would_be_right(turn, history) or not turn.right


@given(expected=answers, actual=answers, unit=units)
def test_a_turn_is_right_as_the_matches_have_it(expected, actual, unit):
    assert TurnFacts(expected=expected, actual=actual, unit=unit).right == match(expected, actual).right


@given(expected=st.floats(1, 1e6), power=st.sampled_from([-6, -3, -2, 2, 3, 6, 9]), minus=st.booleans())
def test_powers_of_a_thousand_and_a_hundred_are_scale_with_and_without_the_sign(expected, power, minus):
    actual = expected * 10.0**power
    if match(expected, actual).right or match(expected, -actual).right:
        return
    assert label(expected, -actual if minus else actual, SHARE) == ("scale_and_sign" if minus else "scale")


# --- the real data ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def conversations():
    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "convfinqa"
    if not folder.is_dir():
        pytest.skip("no ../shared/data beside this checkout")
    said = {}
    for line in (folder / "predictions_sonnet.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        said[row["record_id"], row["turn_idx"]] = row
    found = []
    for each in json.loads((folder / "dev.json").read_text(encoding="utf-8"))["dev"]:
        report = Document(each["doc"]["table"], f"{each['doc']['pre_text']} {each['doc']['post_text']}")
        dialogue = each["dialogue"]
        columns = zip(dialogue["turn_program"], dialogue["executed_answers"], dialogue["conv_answers"], strict=True)
        found.append(
            [
                TurnFacts(
                    expected=executed,
                    actual=said[each["id"], at]["predicted_answer"],
                    unit=said[each["id"], at]["predicted_unit"],
                    program=program,
                    executed=executed,
                    printed=printed,
                    document=report,
                )
                for at, (program, executed, printed) in enumerate(columns)
            ]
        )
    return found


def test_real_errors_have_a_cause_and_carried_ones_a_proof(conversations):
    labels: Counter[str] = Counter()
    for turns in conversations:
        for at, turn in enumerate(turns):
            found = diagnose(turn, turns[:at])
            if found is None:
                continue
            labels[found.label] += 1
            assert (found.label == "propagated") == ("proof" in found.evidence)
            if found.label == "propagated":
                check_proof(found.evidence["proof"], turn, turns[:at])
    assert labels.total() == 489
    assert 1 - labels["other"] / labels.total() >= 0.85
    assert 70 <= labels["propagated"] <= 75, "55, and 17 that are off by their sign or by their scale as well"
    assert set(labels) <= set(LABELS)


KEPT = {
    "turns": [1],
    "substitutions": [{"turn": 1, "golden": 3460.0, "answer": 3576.0}],
    "result": pytest.approx(116 / 3576),
    "reading": "percent",
    "kept": [0],
}
"""The only real proof that replaces a number in one step and keeps the other step, which an earlier turn got right."""


def check_proof(proof, turn, history):
    """Computes the proof again, by recursion over trees, and asks for each of its premises."""
    answer_of = {}
    for each in proof["substitutions"]:
        earlier = history[each["turn"]]
        assert not match(earlier.expected, earlier.actual).numerical
        assert float(earlier.actual.replace(",", "").rstrip("%")) == pytest.approx(each["answer"])
        answer_of[written(parse_program(earlier.program).tree)] = each["answer"]
    if "kept" in proof:
        assert proof == {**KEPT, "program": proof["program"]}
        return
    tree = parse_program(proof["program"]).tree
    assert isinstance(tree, Call)
    result = compute(tree, answer_of)
    assert result == pytest.approx(proof["result"])
    actual = float(turn.actual.replace(",", "")) / (100 if proof["reading"] == "percent" else 1)
    assert proof["reading"] == "answer" or turn.unit == "percent"
    assert match(result, actual).numerical
    assert not match(turn.expected, turn.actual).numerical


def written(node):
    if isinstance(node, Call):
        return (node.operation, *map(written, node.args))
    return node.value


def compute(node, answer_of):
    if not isinstance(node, Call):
        given = None if node.text.startswith("const_") else answer_of.get(node.value)
        return node.value if given is None else given
    if written(node) in answer_of:
        return answer_of[written(node)]
    left, right = (compute(arg, answer_of) for arg in node.args)
    return {"add": left + right, "subtract": left - right, "multiply": left * right}.get(node.operation) or (
        left / right if node.operation == "divide" else 0.0
    )


def test_every_proof_that_exists_is_found_by_trying_every_subset(conversations):
    for turns in conversations[:200]:
        for at, turn in enumerate(turns):
            tree = parse_program(turn.program).tree
            if turn.right or turn.number is None or not isinstance(tree, Call):
                continue
            wrong = [each for each in turns[:at] if not each.numerical and each.number is not None]
            readings = [turn.number, *([turn.number / 100] if turn.unit == "percent" else [])]
            proved = False
            for size in (1, 2, 3):
                for some in combinations(wrong, size):
                    answer_of = {written(parse_program(each.program).tree): each.number for each in some}
                    result = compute(tree, answer_of)
                    changed = result != compute(tree, {})
                    proved |= changed and any(match(result, reading).numerical for reading in readings)
            assert proved <= (replay(turn, turns[:at]) is not None)


def test_real_conversations_would_be_better_without_their_earlier_errors(conversations):
    turns = [(turn, whole[:at]) for whole in conversations for at, turn in enumerate(whole)]
    right = sum(turn.right for turn, _ in turns)
    assert (len(turns), right) == (1490, 1001), "997 numbers and 4 times yes or no"
    assert right < sum(would_be_right(*each) for each in turns) < right + 87
