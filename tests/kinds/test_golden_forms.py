"""SQuAD and tasks of tau-bench as golden datasets. The texts were written for these tests; only the form is public."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from karat.errors import BadDataset
from karat.kinds.golden import Golden

CONTEXT = "The Aare is 288 km long. It ends in the Rhine near Koblenz."
SAY_SO = "If the text does not answer the question, reply with one word: unanswerable"


def answer(text: str) -> dict[str, Any]:
    return {"text": text, "answer_start": CONTEXT.index(text)}


def squad(*questions: dict[str, Any], version: str = "v2.0") -> dict[str, Any]:
    return {
        "version": version,
        "data": [{"title": "Aare", "paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}],
    }


LONG = {"id": "q1", "question": "How long is the Aare?", "answers": [answer("288 km"), answer("288"), answer("288 km")]}
NAMED = {
    "id": "q2",
    "question": "Who named the Aare?",
    "answers": [],
    "plausible_answers": [answer("Koblenz")],
    "is_impossible": True,
}


def load(path: Path, found: object, **options: Any) -> list[Any]:
    path.write_text(json.dumps(found))
    return list(Golden(Golden.Options(**options)).load(path))


def test_squad_keeps_every_golden_answer_and_its_text_precedes_the_question(tmp_path):
    (sample,) = load(tmp_path / "dev.json", squad(LONG, version="1.1"))
    assert (sample.id, sample.materials, sample.metadata) == ("q1", CONTEXT, {"title": "Aare"})
    (turn,) = sample.turns
    assert (turn.question, turn.golden) == ("How long is the Aare?", "288 km")
    assert turn.detail == {"answers": ["288 km", "288"]}


def test_a_question_without_an_answer_is_unanswerable_and_every_agent_is_told_what_to_say(tmp_path):
    first, second = load(tmp_path / "dev.json", squad({**LONG, "is_impossible": False}, NAMED))
    assert [sample.turns[0].golden for sample in (first, second)] == ["288 km", "unanswerable"]
    assert second.turns[0].detail == {"impossible": True}
    assert first.materials == second.materials == f"{CONTEXT}\n\n{SAY_SO}"
    assert first.metadata == second.metadata  # which an agent may ask for: it gives nothing away


def test_squad_one_question_a_row_is_the_same_from_json_lines_and_parquet(tmp_path):
    rows = [
        {"id": row["id"], "title": "Aare", "context": CONTEXT, "question": row["question"], "answers": answers}
        for row, answers in (
            (LONG, {"text": ["288 km", "288"], "answer_start": [12, 12]}),
            (NAMED, {"text": [], "answer_start": []}),
        )
    ]
    path = tmp_path / "dev.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM read_json('{path}')) TO '{tmp_path / 'dev.parquet'}'")
    nested = load(tmp_path / "dev.json", squad(LONG, NAMED))
    for row in rows:
        row["answers"] = [{"text": text, "answer_start": 12} for text in row["answers"]["text"]]
    (tmp_path / "listed.json").write_text(json.dumps({"data": rows}))
    for name in ("dev.jsonl", "dev.parquet", "listed.json"):
        assert list(Golden(Golden.Options()).load(tmp_path / name)) == nested


TASKS = [
    {
        "annotator": "0",
        "user_id": "ida_1",
        "instruction": "You are ida_1. Cancel reservation AB1.",
        "actions": [{"name": "cancel_reservation", "kwargs": {"reservation_id": "AB1"}}],
        "outputs": ["120"],
    },
    {"annotator": "0", "user_id": "bo_2", "instruction": "You want a refund.", "actions": [], "outputs": []},
]


def test_a_task_of_tau_bench_is_its_instruction_and_expects_calls_and_outputs(tmp_path):
    first, second = load(tmp_path / "tasks.json", TASKS)
    assert (first.id, first.turns[0].question) == ("0", "You are ida_1. Cancel reservation AB1.")
    assert first.turns[0].golden == (
        'The agent calls, in this order:\n- cancel_reservation {"reservation_id":"AB1"}\n'
        "The agent tells the user:\n- 120"
    )
    assert first.turns[0].detail == {
        "actions": [{"name": "cancel_reservation", "arguments": {"reservation_id": "AB1"}}],
        "outputs": ["120"],
    }
    assert first.metadata == {"user_id": "ida_1", "annotator": "0"}
    assert (second.id, second.turns[0].golden) == ("1", "The agent changes nothing.")


def test_a_task_of_tau2_bench_is_what_its_user_knows_and_wants(tmp_path):
    task = {
        "id": "7",
        "user_scenario": {
            "persona": None,
            "instructions": {
                "domain": "airline",
                "reason_for_call": "You want a refund.",
                "known_info": "You are Bo.",
                "unknown_info": None,
                "task_instructions": "Insist twice.",
            },
        },
        "evaluation_criteria": {
            "actions": [{"action_id": "7_0", "name": "get_user", "arguments": {"user_id": "bo"}, "info": None}],
            "communicate_info": ["4"],
            "nl_assertions": ["The agent refuses."],
        },
    }
    plain = {"id": "8", "user_scenario": {"instructions": "Say hello."}, "evaluation_criteria": {"actions": None}}
    first, second = load(tmp_path / "tasks.json", [task, plain])
    assert (first.id, first.metadata) == ("7", {"domain": "airline"})
    assert first.turns[0].question == "You want a refund.\n\nYou are Bo.\n\nInsist twice."
    assert first.turns[0].golden == (
        'The agent calls, in this order:\n- get_user {"user_id":"bo"}\n'
        "The agent tells the user:\n- 4\nWhat must hold:\n- The agent refuses."
    )
    assert (second.turns[0].question, second.turns[0].golden) == ("Say hello.", "The agent changes nothing.")


@pytest.mark.parametrize(
    ("found", "faults"),
    [
        (
            squad(
                {"id": "x", "question": " ", "answers": [{"text": 4}]},
                {"question": "q?", "answers": []},
                {"id": "y", "question": "q?", "answers": {}},
            ),
            [
                "item 1: 'paragraphs.0.qas.0.question' must be a text, got ' '",
                "item 1: 'paragraphs.0.qas.0.answers.0.text' must be a text, got 4",
                "item 1: has no 'paragraphs.0.qas.1.id'",
                "item 1: 'paragraphs.0.qas.1.answers' has no golden answer, and the question is not `is_impossible`",
                "item 1: 'paragraphs.0.qas.2.answers' must be a list, got a mapping",
                "item 1: 'paragraphs.0.qas.2.answers' has no golden answer, and the question is not `is_impossible`",
            ],
        ),
        (
            {"data": [{"paragraphs": [{"qas": 3}, 7]}, {"title": "S"}]},
            [
                "item 1: has no 'paragraphs.0.context'",
                "item 1: 'paragraphs.0.qas' must be a list, got 3",
                "item 1: has no 'paragraphs.1.context'",
                "item 1: has no 'paragraphs.1.qas'",
                "item 2: has no 'paragraphs'",
            ],
        ),
        (squad(LONG, LONG), ["item 1: the id 'q1' is also in item 1; each sample needs its own"]),
        (
            [{"instruction": "", "actions": [{"kwargs": {}}, 3], "outputs": "none"}],
            [
                "item 1: has no 'actions.0.name'",
                "item 1: has no 'actions.1.name'",
                "item 1: 'instruction' must be a text, got ''",
                "item 1: 'outputs' must be a list, got 'none'",
            ],
        ),
        ({"dev": [], "test": []}, ["file: holds nothing but empty lists: dev, test"]),
    ],
    ids=["questions", "articles", "twice", "tau", "two lists"],
)
def test_each_fault_is_named_with_its_place(tmp_path, found, faults):
    with pytest.raises(BadDataset) as caught:
        load(tmp_path / "bad.json", found)
    assert sorted(map(str, caught.value.faults)) == sorted(faults)


def test_columns_with_a_question_and_an_answer_are_no_other_form(tmp_path):
    rows = [{"question": "q", "answer": "a", "paragraphs": ["p"], "context": "c", "answers": ["a"]}]
    with pytest.raises(BadDataset, match=r"1\) roles: {question: question, golden: answer}"):
        load(tmp_path / "q.json", rows)
    (sample,) = load(tmp_path / "q.json", rows, answer_key="answer")
    assert (sample.turns[0].golden, sample.materials) == ("a", None)
    keys = {"question_key": "instruction", "answer_key": "actions"}
    (named,) = load(tmp_path / "q.json", [{"instruction": "do", "actions": "x"}], **keys)
    assert named.turns[0].golden == "x"


def test_stratify_knows_what_a_form_says_of_its_questions(tmp_path):
    assert len(load(tmp_path / "t.json", TASKS, sample_size=1, stratify="annotator")) == 1
    with pytest.raises(BadDataset, match=r"dataset.stratify.0: no item has the key 'titel' \(did you mean 'title'\?\)"):
        load(tmp_path / "dev.json", squad(LONG), stratify="titel")


def test_the_same_question_of_another_text_contradicts_nothing(tmp_path):
    found = squad(LONG)
    found["data"][0]["paragraphs"].append(
        {"context": "The Reuss is 164 km long.", "qas": [{**LONG, "id": "q3", "answers": [{"text": "164 km"}]}]}
    )
    (tmp_path / "dev.json").write_text(json.dumps(found))
    assert Golden(Golden.Options()).lint(tmp_path / "dev.json").doubted == ()
