"""FinQA and TAT-QA as conversations. The reports were written for these tests; only the form is public."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import karat
from karat.config import Experiment
from karat.errors import BadDataset
from karat.kinds import kind_of
from karat.records import Answer, Reply
from karat_conversations.kinds.conversation import Conversation
from karat_conversations.scorers.numeric import Numeric
from karat_conversations.scorers.span import Span

FINQA: list[dict[str, Any]] = [
    {
        "id": "XYZ/2016/page_3.pdf-1",
        "filename": "XYZ/2016/page_3.pdf",
        "pre_text": ["net revenue of the utility ,", "in millions , follows ."],
        "post_text": ["the change is due to rates ."],
        "table_ori": [["", "Amount"], ["2015", "$ 5,829"], ["2014", "5,735"]],
        "table": [["", "amount"], ["2015", "$ 5829"], ["2014", "5735"]],
        "qa": {
            "question": "what is the net change in net revenue?",
            "answer": "94",
            "explanation": "",
            "program": "subtract(5829, 5735)",
            "gold_inds": {"table_1": "the 2015 of amount is $ 5829 ;"},
            "exe_ans": 94.0,
            "program_re": "subtract(5829, 5735)",
        },
    },
    {
        "id": "XYZ/2016/page_3.pdf-2",
        "pre_text": [],
        "post_text": [],
        "table": [["", "share"], ["2015", "8.1"]],
        "qa": {"question": "is it more than 5?", "answer": "yes", "program": "greater(8.1, 5)", "exe_ans": "yes"},
    },
]


def question(uid: str, kind: str, answer: object, scale: str = "", **others: Any) -> dict[str, Any]:
    asked = {"uid": uid, "order": 1, "question": f"What of {uid}?", "answer": answer, "derivation": ""}
    return {**asked, "answer_type": kind, "answer_from": "table", "scale": scale, **others}


TATQA: list[dict[str, Any]] = [
    {
        "table": {"uid": "t1", "table": [["", "2019", "2018"], ["Fixed price", "$ 1,452.4", "$ 1,146.2"]]},
        "paragraphs": [
            {"uid": "p1", "order": 1, "text": "Sales by type of contract, in millions."},
            {"uid": "p2", "order": 2, "text": "Most contracts have a fixed price."},
        ],
        "questions": [
            question("u1", "multi-span", ["2019", "2018"]),
            question("u2", "arithmetic", 306.2, "million"),
            question("u3", "count", 2.0),
            question("u4", "span", ["$ 1,452.4"], "million"),
        ],
    }
]


def load(path: Path, found: object, **options: Any) -> list[Any]:
    path.write_text(json.dumps(found))
    return list(Conversation(Conversation.Options(**options)).load(path))


def answered(text: str) -> Answer:
    return Answer(
        trial="t", sample="s", condition="c", repetition=0, replies=(Reply(text=text),), started="", seconds=0
    )


def test_a_record_of_finqa_is_one_question_with_its_program(tmp_path):
    first, second = load(tmp_path / "test.json", FINQA)
    (turn,) = first.turns
    assert (first.id, turn.question, turn.golden) == (FINQA[0]["id"], "what is the net change in net revenue?", "94.0")
    assert turn.detail == {
        "executed": 94.0,
        "printed": "94",
        "program": "subtract(5829, 5735)",
        "operations": 1,
        "qa_split": None,
    }
    assert first.detail["pre_text"] == "net revenue of the utility , in millions , follows ."
    assert "| 2015 | $ 5829 |" in first.materials
    assert second.turns[0].golden == "yes"
    assert load(tmp_path / "test.json", FINQA, expected="printed")[0].turns[0].golden == "94"
    assert kind_of(tmp_path / "test.json") == "conversation"


def test_the_official_scorer_is_that_of_the_form_unless_an_option_says_otherwise(tmp_path):
    def dialect(found, **options):
        return load(tmp_path / "test.json", found, **options)[0].detail.get("dialect", "convfinqa")

    assert (dialect(FINQA), dialect(TATQA)) == ("finqa", "convfinqa")
    assert dialect(FINQA, dialect="convfinqa") == "convfinqa"
    assert dialect([{"conversation_id": "a", "question": "q", "answer": 1}]) == "convfinqa"
    assert dialect([{"conversation_id": "a", "question": "q", "answer": 1}], dialect="finqa") == "finqa"


def test_the_answer_and_the_program_to_a_question_of_finqa_are_scored(tmp_path):
    (sample, _) = load(tmp_path / "test.json", FINQA)
    (verdict,) = Numeric().score(sample, answered('{"answer": 94, "unit": "none", "program": "subtract(5829, 5735)"}'))
    assert verdict.values["right"] is True
    assert verdict.values["program_match"] is True


def test_each_question_of_tatqa_is_asked_alone_with_its_report(tmp_path):
    samples = load(tmp_path / "dev.json", TATQA)
    assert [(sample.id, sample.turns[0].golden) for sample in samples] == [
        ("u1", "2019; 2018"),
        ("u2", "306.2"),
        ("u3", "2"),
        ("u4", "$ 1,452.4"),
    ]
    assert [sample.turns[0].detail["printed"] for sample in samples][1:] == ["306.2 million", "2", "$ 1,452.4 million"]
    typed = samples[1].turns[0].detail
    assert [typed[key] for key in ("answers", "answer_type", "scale")] == [["306.2"], "arithmetic", "million"]
    assert (
        samples[0].detail["pre_text"] == "Sales by type of contract, in millions.\nMost contracts have a fixed price."
    )
    assert '{"answer": …, "scale": …}' in samples[0].materials
    assert samples[0].materials.startswith("Here is an extract of a report. A question about it follows.\n\nSales by")
    assert samples[0].metadata["answer_from"] == "table"
    assert "scale" not in samples[1].metadata  # an agent may ask for these
    assert kind_of(tmp_path / "dev.json") == "conversation"


@pytest.mark.parametrize(
    ("replies", "exact"),
    [
        (
            [
                '{"answer": ["2018", "2019"], "scale": ""}',
                '{"answer": 306.2, "scale": "million"}',
                "2",
                "$1,452.4 million",
            ],
            4,
        ),
        (["2019", "306.2", "three", '{"answer": "1452.4", "scale": "thousand"}'], 0),
    ],
)
def test_tatqa_is_scored_by_its_own_rule(tmp_path, replies, exact):
    samples = load(tmp_path / "dev.json", TATQA)
    verdicts = [Span().score(sample, answered(text))[0] for sample, text in zip(samples, replies, strict=True)]
    assert [verdict.values["exact_match"] for verdict in verdicts].count(True) == exact


def test_answers_of_tatqa_and_their_scales_contradict_nothing(tmp_path):
    path = tmp_path / "dev.json"
    scales = [question(f"s{scale}", "arithmetic", 5, scale) for scale in ("", "thousand", "million", "percent")]
    path.write_text(json.dumps([{**TATQA[0], "questions": TATQA[0]["questions"] + scales}]))
    linted = Conversation(Conversation.Options()).lint(path)
    assert (linted.turns, linted.doubted) == (8, ())


def test_the_official_predictions_of_tatqa_are_read(tmp_path):
    predictions = {"u1": [["2019", "2018"], ""], "u2": [306.2, "million"], "u3": ["2", ""], "u4": [["7"], "million"]}
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(predictions))
    recorded = Conversation.recorded(path, Conversation.recorded_columns()())
    samples = load(tmp_path / "dev.json", TATQA)
    replies = [recorded.reply(sample, 0, "c", 0) for sample in samples]
    answers = [replace(answered(""), replies=(reply,)) for reply in replies]
    verdicts = [Span().score(sample, answer)[0] for sample, answer in zip(samples, answers, strict=True)]
    assert [verdict.values["exact_match"] for verdict in verdicts] == [True, True, True, False]
    assert recorded.census(samples, conditions=["c"], repetitions=1).faults == ()


def test_an_object_of_many_lists_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "lists.json"
    path.write_text(json.dumps({f"q{number}": [1, 2] for number in range(1_668)}))
    with pytest.raises(BadDataset) as caught:
        Conversation(Conversation.Options()).load(path)
    assert "is an object without a list of rows" in str(caught.value)


def test_answers_made_elsewhere_are_judged_by_the_rule_of_the_dataset(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(TATQA))
    dataset = Conversation(Conversation.Options()).load(path)
    assert Conversation.judge(dataset) is None
    assert Conversation.own_scorer(dataset) == "span"
    path.write_text(json.dumps(FINQA))
    dataset = Conversation(Conversation.Options()).load(path)
    assert (Conversation.judge(dataset), Conversation.own_scorer(dataset)) == (None, None)


@pytest.mark.parametrize(
    ("found", "named", "types"),
    [
        (TATQA, {}, ["span"]),
        (FINQA, {}, ["numeric"]),
        (TATQA, {"judge": {"type": "overlap"}}, ["span", "overlap"]),
        (TATQA, {"scorers": ["numeric"]}, ["numeric"]),
        (TATQA, {"scorers": []}, []),
    ],
)
def test_a_run_that_names_no_scorer_has_the_one_that_suits_its_dataset(tmp_path, found, named, types):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(found))
    made = Experiment(
        dataset={"kind": "conversation", "path": str(path)}, agent={"type": "floor"}, conditions={"a": {}}, **named
    )
    run = karat.run(made, results=tmp_path / "results")
    assert [scorer.type for scorer in run.info.scorers] == types
    listed = run.info.experiment["scorers"].value
    assert [one["type"] for one in listed] == [name for name in types if name != "overlap"]


def test_lint_doubts_no_answer_of_tatqa_for_being_words(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(TATQA))
    assert Conversation(Conversation.Options()).lint(path).doubted == ()
    path.write_text(json.dumps([{**FINQA[0], "qa": {**FINQA[0]["qa"], "exe_ans": 95.0}}]))
    (doubt,) = Conversation(Conversation.Options()).lint(path).doubted
    assert "program_disagrees" in doubt.reasons


def changed(at: int, **others: Any) -> list[dict[str, Any]]:
    questions = [{**asked, **others} if at == number else asked for number, asked in enumerate(TATQA[0]["questions"])]
    return [{**TATQA[0], "questions": questions}]


TYPES = "must be one of 'span', 'multi-span', 'arithmetic', 'count'"
SCALES = "must be one of '', 'thousand', 'million', 'billion', 'percent'"


@pytest.mark.parametrize(
    ("found", "faults"),
    [
        (changed(1, answer_type="spans"), [f"item 1: 'questions.1.answer_type' {TYPES}, got 'spans'"]),
        (changed(1, scale="dozen"), [f"item 1: 'questions.1.scale' {SCALES}, got 'dozen'"]),
        (changed(0, answer={"a": 1}), ["item 1: 'questions.0.answer' must be texts or a number, got a mapping"]),
        (
            changed(0, question=" ", uid=None),
            ["item 1: 'questions.0.question' must be a text, got ' '", "item 1: has no 'questions.0.uid'"],
        ),
        (changed(0, uid="u2"), ["item 1: the id 'u2' is also in item 1; each conversation needs its own"]),
        (
            changed(2, answer=None),
            ["item 1: 'u3' has no executed answer to turn 0 (from 0); fill it in, or set `expected: printed`"],
        ),
        (
            [{"table": 3, "questions": {}}],
            [
                "item 1: 'table' must be an object, got 3",
                "item 1: has no 'paragraphs'",
                "item 1: 'questions' must be a list, got a mapping",
            ],
        ),
        (
            [
                {"id": "a", "table": [["", "b"]], "qa": {"question": 3, "exe_ans": [1], "program": {}}},
                {**FINQA[0], "id": None},
            ],
            [
                "item 1: 'qa.question' must be a text, got 3",
                "item 1: 'qa.exe_ans' must be a number or a text, got a list",
                "item 1: 'qa.program' must be a text, got a mapping",
                "item 2: has no 'id'",
            ],
        ),
    ],
)
def test_each_fault_is_named_with_its_place(tmp_path, found, faults):
    with pytest.raises(BadDataset) as caught:
        load(tmp_path / "bad.json", found)
    assert list(map(str, caught.value.faults)) == faults
