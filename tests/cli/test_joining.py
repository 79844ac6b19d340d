"""`karat score ANSWERS --dataset QUESTIONS`: rows are joined to questions by whatever column holds the ids."""

from __future__ import annotations

import json

import pytest

QUESTIONS = [
    {"qid": "a", "question": "One?", "answer": "1"},
    {"qid": "b", "question": "Two?", "answer": "2"},
    {"qid": "c", "question": "Three?", "answer": "3"},
]


@pytest.fixture
def score(karat, here):
    """`score(answers, questions)`: how `karat score` ends for these files; a text is a CSV."""

    def run(answers, questions=QUESTIONS, *flags):
        (here / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8")
        name = "said.csv" if isinstance(answers, str) else "said.json"
        text = answers if isinstance(answers, str) else json.dumps(answers)
        (here / name).write_text(text, encoding="utf-8")
        return karat("score", name, "--dataset", "asked.jsonl", "--scorer", "equals", *flags, "--json")

    return run


def means(done):
    assert done.code in (0, 3), done.err  # 3: questions without an answer
    return {found["condition"]: found["mean"]["value"] for found in done.json["summary"]["results"]}


def test_an_object_of_answers_by_id_is_joined(score):
    done = score({"a": "1", "b": "3"})
    assert means(done) == {"answers": 0.5}
    said = "joined by id: 'id' is 'qid' of the dataset: 2 of 2 ids are known; 1 question has no answer"
    assert said in done.err


@pytest.mark.parametrize("name", ["question_id", "qid", "case_id", "example_id", "item id", "key"])
def test_the_column_of_ids_may_have_any_name(score, name):
    assert means(score(f"{name},prediction\na,1\nb,2\nc,4\n")) == {"answers": pytest.approx(2 / 3)}


def test_each_system_is_a_condition(score):
    done = score("qid,gpt_answer,claude_answer\na,1,1\nb,2,0\nc,3,0\n")
    assert means(done) == {"gpt_answer": 1.0, "claude_answer": pytest.approx(1 / 3)}


def test_the_golden_answer_beside_a_prediction_is_not_scored(score):
    assert means(score("qid,answer,predicted_answer\na,1,0\nb,2,0\nc,3,3\n")) == {"answers": pytest.approx(1 / 3)}


@pytest.mark.parametrize(
    ("answers", "questions", "said"),
    [
        pytest.param(
            "qid,output\nx,1\ny,2\n", QUESTIONS, "no id in 'qid' of said.csv is an id of a question", id="none is known"
        ),
        pytest.param("qid,output\na,1\nx,1\ny,2\nz,2\n", QUESTIONS, "only 1 of 4 ids in 'qid'", id="few ids are known"),
        pytest.param(
            "id,output\n1,1\n2,2\n3,3\n", [{**row, "qid": place} for place, row in enumerate(QUESTIONS)],
            "'id' of said.csv counts from 1, and 'qid' of the dataset from 0", id="they count from different numbers",
        ),
        pytest.param(
            "id,question,output\na,Other?,1\nb,Two?,2\nc,Else?,3\n", QUESTIONS,
            "2 of 3 have another question beside them", id="other questions",
        ),
        pytest.param(
            "qid,model_output,parsed_prediction\na,1,1\n", QUESTIONS, "--answer parsed_prediction", id="two answers"
        ),
    ],
)  # fmt: skip
def test_a_join_that_is_not_certain_is_refused(score, here, answers, questions, said):
    done = score(answers, questions)
    assert done.code == 2
    assert said in done.err
    assert not (here / "results").exists()


def test_named_columns_are_not_guessed(score):
    assert means(
        score("n,a,b\na,1,9\nb,2,9\nc,3,9\n", QUESTIONS, "--map=id=n", "--map=answer=a", "--set=dataset.id_key=qid")
    ) == {"answers": 1.0}
