"""Files with one row a turn: which column is what, and what is wrong with a file, counted."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import BadDataset
from karat.kinds import RecordedFaults
from karat.records import Reply, Sample, Turn, Usage
from karat_conversations.kinds.conversation.recorded import NOT_RECORDED, RecordedTurns, TurnColumns

TABLE = {"2019": {"sales": 110.0, "costs": 80.0}, "2018": {"sales": 100.0, "costs": 90.0}}
ASKED = {"a.pdf-1": ["sales in 2019?", "and in 2018?", "the growth?"], "b.pdf": ["costs in 2019?", "and in 2018?"]}


def samples(asked: dict[str, list[str]] | None = None) -> list[Sample]:
    return [
        Sample(
            id=name, position=at, digest="", turns=tuple(map(_turn, questions)), detail={"table": TABLE, "pre_text": ""}
        )
        for at, (name, questions) in enumerate((asked or ASKED).items())
    ]


def _turn(question: str) -> Turn:
    return Turn(question=question)


def written(folder: Path, rows: Any, name: str = "said.jsonl") -> Path:
    path = folder / name
    if name.endswith(".jsonl"):
        text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")
    elif name.endswith(".json"):
        path.write_text(json.dumps(rows), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
            table.writeheader()
            table.writerows(rows)
    return path


def held(folder: Path, rows: Any, name: str = "said.jsonl", **columns: Any) -> RecordedTurns:
    return RecordedTurns(written(folder, rows, name), TurnColumns(**columns))


def census(found: RecordedTurns, *, conditions: tuple[str, ...] = ("answers",), repetitions: int = 1) -> RecordedFaults:
    return found.census(samples(), conditions=conditions, repetitions=repetitions)


def answers(found: RecordedTurns) -> dict[str, list[str]]:
    return {
        sample.id: [found.reply(sample, turn, "answers", 0).answer or "" for turn in range(len(sample.turns))]
        for sample in samples()
    }


WHOLE = {"a.pdf-1": ["110", "100", "0.1"], "b.pdf": ["80", "90"]}
PLAIN = [
    {"conversation_id": name, "turn": turn, "answer": said}
    for name, said_of in WHOLE.items()
    for turn, said in enumerate(said_of)
]


@pytest.mark.parametrize(
    ("rows", "name", "columns"),
    [
        pytest.param(PLAIN, "said.jsonl", {}, id="a column for each"),
        pytest.param(PLAIN[::-1], "said.csv", {}, id="CSV, in any order"),
        pytest.param({"made": "today", "results": PLAIN}, "said.json", {}, id="a list inside an object"),
        pytest.param(
            [{"id": f"{row['conversation_id']}-{row['turn']}", "predicted_answer": row["answer"]} for row in PLAIN],
            "said.json",
            {},
            id="id and turn in one, with a dash",
        ),
        pytest.param(
            [{"Question ID": f"{row['conversation_id']}_{row['turn']}", "Answer": row["answer"]} for row in PLAIN],
            "said.jsonl",
            {},
            id="id and turn in one, with an underscore, names in other case",
        ),
        pytest.param(
            [{"id": row["conversation_id"], "answer": row["answer"]} for row in PLAIN],
            "said.jsonl",
            {},
            id="rows that count up",
        ),
        pytest.param(
            [
                {"key": row["conversation_id"], "k": row["turn"] + 1, "mine": row["answer"], "answer": 7}
                for row in PLAIN
            ],
            "said.jsonl",
            {"conversation_id": "key", "turn": "k", "answer": "mine", "first_turn": 1},
            id="columns that were named, turns from 1",
        ),
        pytest.param(
            [{**row, "answer": float(row["answer"]) if row["turn"] else int(row["answer"])} for row in PLAIN],
            "said.jsonl",
            {},
            id="numbers",
        ),
    ],
)
def test_each_way_of_writing_gives_the_same_answers(tmp_path, rows, name, columns):
    found = held(tmp_path, rows, name, **columns)
    got = {name: [float(one) for one in said] for name, said in answers(found).items()}
    assert got == {name: [float(one) for one in said] for name, said in WHOLE.items()}
    counted = census(found)
    assert (counted.rows, counted.used, counted.turns, counted.faults) == (5, 5, 5, ())


PAIRS = {name: list(zip(ASKED[name], said, strict=True)) for name, said in WHOLE.items()}
CALL = [{"type": "text", "text": "Let me add 7."}, {"type": "tool_use", "name": "add", "input": {}}]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(
            [
                {
                    "id": name,
                    "conversations": [
                        {"from": who, "value": text}
                        for pair in pairs
                        for who, text in zip(("human", "gpt"), pair, strict=True)
                    ],
                }
                for name, pairs in PAIRS.items()
            ],
            id="ShareGPT",
        ),
        pytest.param(
            [
                {
                    "id": name,
                    "messages": [
                        {"role": "system", "content": "Answer from the report."},
                        {"role": "assistant", "content": "Ask me. I know 3 reports."},
                        *(
                            message
                            for asked, said in pairs
                            for message in (
                                {"role": "user", "content": f"Report: 5.\n{asked}"},
                                {"role": "assistant", "content": CALL},
                                {"role": "user", "content": [{"type": "tool_result", "content": "999"}]},
                                {"role": "assistant", "content": [{"type": "text", "text": said}]},
                            )
                        ),
                    ],
                }
                for name, pairs in PAIRS.items()
            ],
            id="calls of tools, and a greeting",
        ),
        pytest.param(
            [
                {"id": name, "turns": [{"question": asked, "answer": said} for asked, said in pairs]}
                for name, pairs in PAIRS.items()
            ],
            id="pairs",
        ),
        pytest.param(
            [
                {"dialog_id": name, "question": asked, "model_output": f"<think>Or 5?</think>{said}"}
                for name, pairs in PAIRS.items()
                for asked, said in reversed(pairs)
            ],
            id="rows without turns, in another order, with thoughts",
        ),
        pytest.param(
            [
                {"conversation_id": name, "role": who, "content": text}
                for name, pairs in PAIRS.items()
                for pair in pairs
                for who, text in zip(("user", "assistant"), pair, strict=True)
            ],
            id="a message a row",
        ),
        pytest.param([{"id": name, "predictions": said} for name, said in WHOLE.items()], id="lists of answers"),
    ],
)
def test_recorded_conversations_are_read_in_the_shapes_of_chats(tmp_path, rows):
    found = held(tmp_path, rows)
    assert answers(found) == WHOLE
    assert census(found).faults == ()


def test_an_unanswered_question_in_a_chat_moves_no_other_answer(tmp_path):
    messages = [
        {"role": role, "content": text}
        for role, text in (
            ("user", "sales in 2019?"),
            ("user", "and in 2018?"),
            ("assistant", "100"),
            ("user", "the growth?"),
            ("assistant", "0.1"),
        )
    ]
    found = held(tmp_path, [{"id": "a.pdf-1", "messages": messages}])
    assert answers(found)["a.pdf-1"] == ["", "100", "0.1"]


def test_what_was_said_before_the_first_question_is_no_turn(tmp_path):
    chat = [{"question": "the report: 7 pages", "answer": "Thanks."}]
    chat += [{"question": asked, "answer": said} for asked, said in PAIRS["b.pdf"]]
    found = held(tmp_path, [{"id": "b.pdf", "turns": chat}])
    assert answers(found)["b.pdf"] == WHOLE["b.pdf"]
    counted = found.census(samples({"b.pdf": ASKED["b.pdf"]}), conditions=("answers",), repetitions=1)
    assert [fault.message for fault in counted.faults] == [
        "asks 'the report: 7 pages', as no other turn of 'b.pdf' does"
    ]


def test_a_question_that_is_asked_twice_is_answered_in_order(tmp_path):
    asked = ["sales?", "and?", "costs?", "and?"]
    rows = [{"conversation_id": "a", "question": text, "answer": str(at)} for at, text in enumerate(asked)]
    found = held(tmp_path, rows)
    (sample,) = samples({"a": asked})
    assert [found.reply(sample, turn, "answers", 0).text for turn in range(4)] == ["0", "1", "2", "3"]


def test_many_turns_are_matched_by_their_questions_at_once(tmp_path):
    asked = [f"sales of store {number}?" for number in range(100)]
    rows = [{"conversation_id": "long", "question": text, "program": f"add({text[15:-1]}, 0)"} for text in asked]
    found = held(tmp_path, rows[::-1])
    (sample,) = samples({"long": asked})
    began = time.process_time()
    said = [found.reply(sample, turn, "answers", 0).answer for turn in range(100)]
    assert said == [f"{number}.0" for number in range(100)]
    assert time.process_time() - began < 2


def test_the_history_that_a_row_sent_is_no_answer(tmp_path):
    sent = [{"role": "user", "content": "sales?"}, {"role": "assistant", "content": "7"}]
    found = held(tmp_path, [{**row, "messages": sent} for row in PLAIN])
    assert answers(found) == WHOLE


def test_parquet_is_read_as_well(tmp_path):
    import duckdb

    source, path = written(tmp_path, PLAIN), tmp_path / "said.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM read_json_auto('{source}')) TO '{path}' (FORMAT parquet)")
    assert answers(RecordedTurns(path, TurnColumns())) == WHOLE


PROGRAMS = {
    "a.pdf-1-0": ["110", "EOF"],
    "a.pdf-1-1": ["100", "EOF"],
    "a.pdf-1-2": ["subtract(", "110", "100", ")", "divide(", "#0", "100", ")", "EOF"],
    "b.pdf-0": ["table_min(", "costs", "none", ")", "EOF"],
    "b.pdf-1": ["divide(", "1", "0", ")", "EOF"],
}


def test_the_programs_of_a_leaderboard_file_are_executed_for_the_answers(tmp_path):
    found = held(tmp_path, [{"id": name, "predicted": tokens} for name, tokens in PROGRAMS.items()], "said.json")
    assert answers(found) == {"a.pdf-1": ["110.0", "100.0", "0.1"], "b.pdf": ["80.0", ""]}
    reply = found.reply(samples()[0], 2, "answers", 0)
    assert reply == Reply(
        text="subtract(110, 100), divide(#0, 100)", answer="0.1", program="subtract(110, 100), divide(#0, 100)"
    )
    assert census(found).faults == ()


def test_an_object_of_programs_is_executed_too(tmp_path):
    rows = {"a.pdf-1_0": "table_max(sales, none)", "a.pdf-1_1": "add(60, 40)"}
    assert answers(held(tmp_path, rows, "said.json"))["a.pdf-1"] == ["110.0", "100.0", ""]


def test_a_plan_in_json_is_executed_too(tmp_path):
    plan = {
        "steps": [
            {"tool": "extract_value", "value": 110},
            {"tool": "compute", "operation": "percentage_change", "operands": [100, 110]},
        ]
    }
    rows = [{"id": "a.pdf-1-0", "plan": plan}, {"id": "a.pdf-1-1", "plan": json.dumps(plan)}]
    found = held(tmp_path, rows, "said.json")
    sample = samples()[0]
    replies = [found.reply(sample, turn, "answers", 0) for turn in range(2)]
    assert json.loads(replies[0].program or "") == plan
    assert [float(reply.answer or "nan") for reply in replies] == pytest.approx([10.0, 10.0])


def test_an_answer_is_never_computed_where_the_file_has_answers(tmp_path):
    rows = [{"id": "a.pdf-1-0", "answer": None, "program": "add(1, 2)"}]
    reply = held(tmp_path, rows).reply(samples()[0], 0, "answers", 0)
    assert reply == Reply(text="", program="add(1, 2)")


def test_everything_that_a_row_says_is_kept(tmp_path):
    row = {
        "record_id": "b.pdf",
        "turn_idx": 1,
        "predicted_answer": "9",
        "predicted_unit": "percent",
        "correct": True,
        "predicted_reasoning": "because",
        "tokens_in": 12,
        "tokens_out": 3,
        "latency_ms": 250,
        "cost_usd": 0.5,
    }
    reply = held(tmp_path, [row]).reply(samples()[1], 1, "answers", 0)
    usage = Usage(input_tokens=12, output_tokens=3)
    assert reply == Reply(
        text="9",
        answer="9",
        unit="percent",
        reasoning="because",
        verdict=True,
        usage=usage,
        milliseconds=250.0,
        dollars=0.5,
    )


FAULTY = [
    *PLAIN[:2],
    {"conversation_id": "a.pdf-1", "turn": 1, "answer": "100"},
    {"conversation_id": "a.pdf-1", "turn": 1, "answer": "101"},
    {"conversation_id": "c.pdf", "turn": 0, "answer": "1"},
    {"conversation_id": "b.pdf", "turn": 2, "answer": "1"},
    {"conversation_id": "b.pdf", "turn": "two", "answer": "1"},
    {"turn": 0, "answer": "1"},
    {"conversation_id": "b.pdf", "turn": 1, "answer": [["90"]], "correct": "maybe", "question": "the  COSTS in 2017?"},
    "{broken",
]


def test_every_fault_is_listed_and_counted(tmp_path):
    counted = census(held(tmp_path, FAULTY))
    assert counted.counts == {
        "unknown_id": 1,
        "unknown_turn": 1,
        "duplicate": 2,
        "missing_turn": 2,
        "other_question": 1,
        "bad_row": 3,
        "bad_value": 2,
    }
    assert [(fault.place, fault.message) for fault in counted.faults] == [
        ("line 10", "is not JSON, column 2: expecting property name enclosed in double quotes"),
        ("line 3", "a second row for 'a.pdf-1', turn 1, alike; line 2 counts"),
        ("line 4", "a second row for 'a.pdf-1', turn 1, with another answer; line 2 counts"),
        ("line 7", "'turn' is 'two', expected a whole number from 0"),
        ("line 8", "'conversation_id' is missing, expected the id of a conversation"),
        ("line 9", "'answer' is a list, expected a number or a text: it counts as wrong"),
        ("line 9", "'correct' is 'maybe', expected true or false: left out"),
        ("conversation 'a.pdf-1'", "has no row for turn 2"),
        ("line 9", "asks 'the  COSTS in 2017?', turn 1 of 'b.pdf' is 'and in 2018?'"),
        ("conversation 'b.pdf'", "has no row for turn 0"),
        ("line 5", "no conversation is called 'c.pdf'"),
        ("line 6", "turn 2: 'b.pdf' has turns 0 to 1"),
    ]
    assert (counted.rows, counted.used, counted.turns) == (10, 3, 5)
    notes = held(tmp_path, FAULTY).notes(samples(), conditions=["answers"], repetitions=1)
    assert notes["faults"].startswith("the file of answers has faults: 1 row of a conversation that is not asked")


def test_a_turn_without_a_row_is_answered_with_nothing(tmp_path):
    found = held(tmp_path, PLAIN[:1])
    assert found.reply(samples()[0], 1, "answers", 0) == Reply(text="", answer="", stop_reason=NOT_RECORDED)


def test_of_two_rows_for_a_turn_the_first_counts(tmp_path):
    assert answers(held(tmp_path, FAULTY))["a.pdf-1"] == ["110", "100", ""]


def test_turns_counted_from_1_are_guessed_and_said_but_never_shifted(tmp_path):
    counted = census(held(tmp_path, [{**row, "turn": row["turn"] + 1} for row in PLAIN]))
    assert counted.counts == {"unknown_turn": 2, "missing_turn": 2}
    assert counted.hint == "no row is of turn 0: if the file counts turns from 1, say --map first_turn=1"


def test_turns_counted_from_1_are_guessed_from_ids_too(tmp_path):
    rows = [{"id": f"{row['conversation_id']}-{row['turn'] + 1}", "answer": "1"} for row in PLAIN]
    assert "--map first_turn=1" in (census(held(tmp_path, rows)).hint or "")


def test_a_file_of_another_dataset_shows_both_ways_of_writing_ids(tmp_path):
    counted = census(held(tmp_path, [{"id": "x_0", "answer": 1}, {"id": "x_1", "answer": 1}]))
    assert counted.counts == {"unknown_id": 2, "missing_turn": 5}
    assert counted.hint == "no row is of this dataset: the file's ids look like 'x_0', the dataset's like 'a.pdf-1'"


def test_more_repetitions_than_the_file_has_are_missing_and_the_remedy_is_named(tmp_path):
    found = held(tmp_path, PLAIN)
    counted = found.census(samples(), conditions=["answers"], repetitions=3)
    assert counted.hint == (
        "the file has 1 answer to a turn, and 3 repetitions are asked for: set execution.num_repetitions to 1"
    )
    assert found.notes(samples(), conditions=["answers"], repetitions=3)["faults"].endswith(counted.hint)


def test_conditions_and_repetitions_stay_apart(tmp_path):
    rows = [
        {**row, "answer": f"{name} {repetition}", "condition": name, "repetition": repetition}
        for row in PLAIN
        for name in ("old", "new")
        for repetition in range(2)
    ]
    found = held(tmp_path, rows[:-1])
    assert (list(found.conditions), found.repetitions) == (["old", "new"], 2)
    assert found.reply(samples()[0], 0, "new", 1).text == "new 1"
    counted = census(found, conditions=("old", "new"), repetitions=2)
    (fault,) = counted.faults
    assert (fault.place, fault.message) == (
        "conversation 'b.pdf', condition 'new', repetition 1",
        "has no row for turn 1",
    )
    assert counted.turns == 20


def test_rows_of_what_is_not_asked_are_told_apart(tmp_path):
    rows = [*PLAIN, {**PLAIN[0], "condition": "old"}, {**PLAIN[0], "repetition": 1}]
    counted = census(held(tmp_path, rows))
    assert [fault.message for fault in counted.faults] == [
        "condition 'old' is not asked for",
        "repetition 1 is not asked for: there are 1, counted from 0",
    ]
    assert counted.counts == {"unknown_condition": 2}


def test_rows_without_a_condition_serve_every_one(tmp_path):
    counted = census(held(tmp_path, PLAIN), conditions=("old", "new"))
    assert (counted.used, counted.turns, counted.faults) == (5, 10, ())


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        pytest.param(
            PLAIN, {"answer": "anser"}, "answer: no row has the column 'anser' (did you mean 'answer'?)", id="misspelt"
        ),
        pytest.param([{"half": "a", "answer": 1}], {}, "none names the conversation", id="no id"),
        pytest.param([{"id": "a-0", "text": "1"}], {}, "none holds the answer, nor a program", id="no answer"),
        pytest.param(PLAIN, {"answer": ""}, "none holds the answer, nor a program", id="its answer left alone"),
    ],
)
def test_a_file_without_what_every_row_must_have_is_refused(tmp_path, rows, columns, said):
    with pytest.raises(BadDataset) as caught:
        held(tmp_path, rows, **columns)
    assert said in str(caught.value)


NAMES = ["conversation_id", "id", "turn", "answer", "program", "correct", "condition", "tokens_in"]
ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.text(max_size=3))


LOST = ("bad_row", "duplicate", "unknown_id", "unknown_turn", "unknown_condition")


@given(rows=st.lists(st.dictionaries(st.sampled_from(NAMES), ANYTHING), min_size=1, max_size=8))
def test_whatever_the_rows_hold_each_is_used_or_a_fault(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    try:
        found = held(folder, [{"id": "a.pdf-1-0", "answer": "1"}, *rows])
    except BadDataset:
        return
    counted = census(found)
    rest = sum(counted.counts.get(kind, 0) for kind in LOST)
    assert counted.used + rest == counted.rows == len(rows) + 1
    for sample in samples():
        for turn in range(len(sample.turns)):
            assert isinstance(found.reply(sample, turn, "answers", 0), Reply)
