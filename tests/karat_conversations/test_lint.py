"""Golden answers that contradict themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat_conversations.numeric.lint import REASONS, GoldenTurn, agreement, doubts

TABLE = {
    "2007": {"price": 60.94, "volatility": -27.0, "dividend": 455.0, "costs": 1200.0},
    "2005": {"price": 25.14, "volatility": -28.0, "dividend": 430.0, "costs": 1100.0},
}
TEXT = "Its volatility was 31.5 %, its dividend $ .44; 3,200 people and two dogs work there for twenty-one years."


def reasons(program: str | None, executed: Any = None, printed: str | None = None, **page: Any) -> list[str]:
    [found] = doubts(
        [GoldenTurn(question="how much?", executed=executed, printed=printed, program=program)],
        **({"text": TEXT, "table": TABLE} | page),
    )
    assert {doubt.reason for doubt in found} <= set(REASONS)
    return [doubt.reason for doubt in found]


@pytest.mark.parametrize(
    ("executed", "printed", "expected"),
    [
        pytest.param(1.42403, "142.4%", "same", id="percent"),
        pytest.param(0.10826, "10.83", "same", id="percent without its sign"),
        pytest.param(35.8, "35.80", "same", id="more digits"),
        pytest.param(0.0111, ".0111", "same", id="no digit before the point"),
        pytest.param(9.41928, "9.41", "same", id="cut, not rounded"),
        pytest.param(0.125, "12%", "same", id="half to even"),
        pytest.param(0.125, "13%", "same", id="half up"),
        pytest.param(10_460_000.0, "10.5 million", "same", id="million"),
        pytest.param(12.6, "12600", "same", id="thousand"),
        pytest.param("no", "No", "same", id="no"),
        pytest.param(-0.09709, "10%", "sign", id="a fall in words"),
        pytest.param(-2.1, "2.1", "sign", id="a fall"),
        pytest.param(-1.0, "1", "sign", id="one digit is not cut from 0.9"),
        pytest.param(18770.0, "1877", "differs", id="a scale that no unit has"),
        pytest.param(1.1, "1.2", "differs", id="the last digit"),
        pytest.param(0.0012, "1", "differs", id="one digit fits too many scales"),
        pytest.param("yes", "no", "differs", id="yes and no"),
        pytest.param(1.0, "yes", "differs", id="yes is not 1"),
        pytest.param(0.0, "0", "same", id="nothing"),
        pytest.param(1.0, "n/a", None, id="no number"),
        pytest.param("n/a", "1", None, id="no number either"),
    ],
)
def test_how_a_printed_answer_goes_with_the_executed_one(executed: Any, printed: str, expected: str | None) -> None:
    assert agreement(executed, printed) == expected


@given(st.floats(-1e9, 1e9), st.integers(0, 4))
def test_an_answer_agrees_with_itself_however_it_is_printed(number: float, digits: int) -> None:
    assert agreement(number, f"{number:.{digits}f}") == "same"
    assert agreement(number / 100, f"{number:.{digits}f}%") in {"same", "differs" if abs(number) > 1e6 else "same"}


@pytest.mark.parametrize(
    ("program", "executed", "printed", "expected"),
    [
        pytest.param("subtract(60.94, 25.14), divide(#0, 25.14)", 1.42403, "142.4%", [], id="right"),
        pytest.param("subtract(60.94, 25.14)", 35.9, None, ["program_disagrees"], id="another number"),
        pytest.param("greater(60.94, 25.14)", "yes", "yes", [], id="yes"),
        pytest.param("greater(60.94, 25.14)", "no", None, ["program_disagrees"], id="no, it is yes"),
        pytest.param("greater(60.94, 25.14)", 1.0, None, ["program_disagrees"], id="yes is not 1"),
        pytest.param("subtract(60.94", 35.8, None, ["program_fails"], id="cut off"),
        pytest.param("divide(60.94, subtract(25.14, 25.14))", 1.0, None, ["program_fails"], id="by zero"),
        pytest.param("table_max(price, none)", 60.94, None, [], id="a row"),
        pytest.param("table_max(prices, none)", 60.94, None, ["program_fails"], id="no such row"),
        pytest.param(None, 3.0, "4", ["printed_disagrees"], id="no program"),
        pytest.param(None, "n/a", "4", ["unreadable"], id="no answer"),
        pytest.param("27", 27.0, None, ["cell_sign"], id="the other sign"),
        pytest.param("27%", 0.27, None, ["cell_sign"], id="the other sign, of a percentage"),
        pytest.param("-27", -27.0, None, [], id="the sign of the cell"),
        pytest.param("subtract(.455, .430)", 0.025, None, ["cell_scale"], id="without the point"),
        pytest.param("subtract(.44, .430)", 0.01, None, ["cell_scale"], id="one of two in the text"),
        pytest.param("31.5", 31.5, None, [], id="in the text"),
        pytest.param("multiply(31.5%, 3200)", 1008.0, None, [], id="a percentage and thousands of the text"),
        pytest.param("divide(3200000, const_1000)", 3200.0, None, [], id="thousands written out"),
        pytest.param("add(2, 2005)", 2007.0, None, [], id="a word and a heading"),
        pytest.param("divide(3.2, 21)", 0.15238, None, [], id="counted in thousands, and words"),
        pytest.param("divide(1200, 7)", 171.42857, None, ["operand_not_found"], id="nowhere"),
        pytest.param("divide(1200, 7), add(27, #0)", 198.42857, None, ["operand_not_found", "cell_sign"], id="both"),
    ],
)
def test_what_is_said_of_a_turn(program: str | None, executed: Any, printed: str | None, expected: list[str]) -> None:
    assert reasons(program, executed, printed) == expected


def test_the_evidence_names_the_cell() -> None:
    [[doubt]] = doubts([GoldenTurn(question="?", executed=27.0, program="27")], table=TABLE)
    assert doubt.evidence == {"operands": [{"operand": "27", "row": "volatility", "column": "2007", "value": -27.0}]}


def test_what_was_computed_or_named_before_is_not_looked_for_on_the_page() -> None:
    turns = [
        GoldenTurn(question="the sum?", executed=86.08, program="add(60.94, 25.14)"),
        GoldenTurn(question="and with 14 more?", executed=100.08, program="add(86.08, 14)"),
        GoldenTurn(question="and 14 less?", executed=72.08, program="subtract(86.08, 14)"),
        GoldenTurn(question="what is read off wrongly?", executed=19.0, program="19"),
        GoldenTurn(question="doubled?", executed=38.0, program="multiply(19, const_2)"),
    ]
    found = doubts(turns, table=TABLE)
    assert [[doubt.reason for doubt in of_turn] for of_turn in found] == [
        [],
        [],
        [],
        ["operand_not_found"],
        ["operand_not_found"],
    ]


def test_a_table_of_rows_is_read_as_reports_print_it() -> None:
    rows = [["", "2007"], ["loss", "$ -5 ( 5 )"], ["share", "27% ( 27 % )"], ["note", "see page 12"]]
    for program, expected in {
        "-5": [],
        "5": ["cell_sign"],
        "27": [],
        "27%": [],
        "12": [],
        "13": ["operand_not_found"],
    }.items():
        value = 0.27 if program == "27%" else float(program)
        assert reasons(program, value, text="", table=rows) == expected, program


PIECES = st.sampled_from(
    [
        "add(",
        "divide(",
        "table_sum(",
        "greater(",
        "#0",
        "#9",
        "27",
        ".455",
        "5%",
        "const_100",
        "9" * 60,
        "1e308",
        ")",
        ", ",
        "x",
        "−",
    ]
)
ANSWERS = (
    st.none()
    | st.floats()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["5%", "1e400", "9" * 40, "$ 3", "1e-320"])
)


@given(
    st.lists(st.tuples(st.text(max_size=20), st.lists(PIECES, max_size=8).map("".join), ANSWERS, ANSWERS), max_size=4),
    st.text(max_size=60),
    st.none()
    | st.dictionaries(st.text(max_size=4), st.dictionaries(st.text(max_size=4), ANSWERS, max_size=3), max_size=3)
    | st.lists(st.lists(ANSWERS, max_size=3), max_size=3),
)
def test_nothing_that_stands_in_a_dataset_raises(turns: list[Any], text: str, table: Any) -> None:
    golden = [
        GoldenTurn(
            question=question, executed=executed, printed=None if printed is None else str(printed), program=program
        )
        for question, program, executed, printed in turns
    ]
    assert len(doubts(golden, text=text, table=table)) == len(turns)


def test_convfinqa_is_found_to_be_damaged_where_it_is(shared_data: Path) -> None:
    path = shared_data / "convfinqa" / "dev.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} in the shared data")
    found: Counter[str] = Counter()
    damaged = {}
    for record in json.loads(path.read_text(encoding="utf-8"))["dev"]:
        dialogue, doc = record["dialogue"], record["doc"]
        columns = zip(*(dialogue[key] for key in _COLUMNS), strict=True)
        turns = [GoldenTurn(question=a, executed=b, printed=c, program=d) for a, b, c, d in columns]
        for index, of_turn in enumerate(
            doubts(turns, text=f"{doc['pre_text']} {doc['post_text']}", table=doc["table"])
        ):
            found.update(doubt.reason for doubt in of_turn)
            if of_turn:
                damaged[record["id"], index] = [doubt.reason for doubt in of_turn]
    assert found == {
        "cell_sign": 57,
        "printed_disagrees": 28,
        "operand_not_found": 18,
        "printed_sign": 13,
        "cell_scale": 13,
    }
    # Looked at by hand: `( 27 % )` read as −27, `.3` as 3, a digit lost, a fall printed without its sign.
    assert damaged["Double_STT/2008/page_83.pdf", 0] == ["cell_scale"]
    assert damaged["Double_PM/2015/page_127.pdf", 0] == ["cell_sign"]
    assert damaged["Single_CDNS/2018/page_31.pdf-1", 2] == ["printed_disagrees"]
    assert damaged["Single_UNP/2008/page_77.pdf-2", 4] == ["printed_sign"]
    assert damaged["Single_AMT/2010/page_34.pdf-1", 1] == ["operand_not_found"]


_COLUMNS = ("conv_questions", "executed_answers", "conv_answers", "turn_program")
