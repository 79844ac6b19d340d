"""`karat score ANSWERS --dataset QUESTIONS`: rows are joined to questions by whatever column holds the ids."""

from __future__ import annotations

import json

import pytest

from karat.cli.joining import Join, answer_columns, joined_by_id
from karat.errors import BadOption
from karat.records import Sample, Turn

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


def samples(*metadata):
    """Samples with these metadata; their ids are their numbers."""
    return [
        Sample(id=str(at), position=at, digest="", turns=(Turn(question=f"Question {at}?"),), metadata=held)
        for at, held in enumerate(metadata)
    ]


@pytest.fixture
def joined(tmp_path):
    """`joined(rows, samples)`: how they are joined; None: the rows have no ids."""

    def join(rows, asked):
        file = tmp_path / "said.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return joined_by_id(file, asked)

    return join


ASKED = samples({"qid": "a", "doc_id": 1, "topic": "x"}, {"qid": "b", "doc_id": 2, "topic": "y"})


@pytest.mark.parametrize(
    ("rows", "asked", "found"),
    [
        pytest.param([{"qid": "a"}, {"qid": "b"}], ASKED, ("qid", "qid", 2, 2, 2), id="the same name"),
        pytest.param([{"id": "a"}, {"id": "x"}], ASKED, ("id", "qid", 1, 2, 2), id="half of the ids"),
        pytest.param([{"id": 2}], ASKED, ("id", "doc_id", 1, 1, 2), id="a number is its text"),
        pytest.param([{"id": "a", "key": "zz"}, {"id": "b", "key": "a"}], ASKED, ("id", "qid", 2, 2, 2), id="most ids"),
        pytest.param(
            [{"id": "x"}, {"id": "y"}],
            samples({"topic": "x"}, {"topic": "y"}),
            "no id in 'id'",
            id="no ids in the dataset",
        ),
        pytest.param([{"id": 1}, {"id": 0}], samples({}, {}), ("id", None, 2, 2, 2), id="the number of the question"),
        pytest.param([{"topic": "x"}], ASKED, None, id="no ids in the answers"),
        pytest.param([{"in": {"id": "a"}}], ASKED, None, id="ids inside objects are none"),
        pytest.param(
            [{"id": 1}, {"id": None}], samples({"key": True}, {"key": False}), ("id", None, 1, 1, 2), id="no flags"
        ),
        pytest.param([{"id": "a"}], samples({"qid": "a"}, {"qid": "a"}), "no id in 'id'", id="ids that stand twice"),
        pytest.param([{"id": "a"}, {"id": "x"}, {"id": "y"}], ASKED, "only 1 of 3 ids in 'id'", id="fewer than half"),
    ],
)
def test_ids_join_rows_to_questions(joined, rows, asked, found):
    if isinstance(found, str):
        with pytest.raises(BadOption, match=found):
            joined(rows, asked)
        return
    join = joined(rows, asked)
    assert (join and (join.answers, join.dataset, join.matched, join.ids, join.asked)) == found


def test_a_join_is_told_with_what_is_missing():
    join = Join(answers="id", dataset="qid", matched=2, ids=3, asked=4)
    assert str(join) == "joined by id: 'id' is 'qid' of the dataset: 2 of 3 ids are known; 2 questions have no answer"
    whole = Join(answers="id", dataset=None, matched=1, ids=1, asked=1)
    assert str(whole) == "joined by id: 'id' is the number of the question, from 0: 1 of 1 ids are known"


def test_questions_beside_ids_must_be_those_of_the_dataset(joined):
    many = samples(*({"qid": f"q{at}"} for at in range(10)))

    def rows(wrong):
        return [
            {"qid": f"q{at}", "question": "Other?" if at < wrong else f" Question  {at}?", "prediction": "a"}
            for at in range(10)
        ]

    assert joined(rows(1), many).matched == 10
    with pytest.raises(BadOption, match="2 of 10 have another question beside them"):
        joined(rows(2), many)


def test_ids_that_count_must_begin_with_the_same_number(joined):
    asked = samples({"qid": 0}, {"qid": 1}, {"qid": 2})
    assert joined([{"id": 0}, {"id": 1}], asked).matched == 2
    assert joined([{"id": 1}, {"id": 2}], asked).matched == 2  # all are known
    with pytest.raises(BadOption, match=r"'id' of .* counts from 1, and 'qid' of the dataset from 0"):
        joined([{"id": 1}, {"id": 2}, {"id": 3}], asked)
    assert joined([{"qid": 1}, {"qid": 2}, {"qid": 3}], asked).matched == 2  # of one name
    assert joined([{"id": 0}, {"id": 2}, {"id": 3}], asked).matched == 2
    with pytest.raises(BadOption, match="and the numbers of the questions from 0"):
        joined([{"id": 1}, {"id": 2}, {"id": 3}], samples({}, {}, {}))


@pytest.mark.parametrize(
    ("rows", "named", "found"),
    [
        ([{"id": 1, "prediction": "a"}], (), ("prediction",)),
        ([{"id": 1, "prediction": "a", "generated": "b"}], ("generated",), ("prediction",)),
        ([{"id": 1, "gpt_answer": "a", "claude_answer": "b"}], (), ("gpt_answer", "claude_answer")),
        ([{"id": 1, "tone_score": 3}], (), ()),
    ],
)
def test_the_columns_with_answers(tmp_path, rows, named, found):
    file = tmp_path / "said.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert answer_columns(file, named=named) == found
