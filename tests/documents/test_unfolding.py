"""Rows of results that hold several answers or metrics."""

from __future__ import annotations

import json

import pytest

from karat.documents.rows import read_rows
from karat.documents.unfolding import unfolded
from karat.errors import BadDataset

SCORED = {"tone": {"score": 0.5, "reason": "dry"}, "v1_1": {"score": 1}}


@pytest.fixture
def rows_of(tmp_path):
    """`rows_of(document)`: the rows of results in a JSON document."""

    def read(document):
        path = tmp_path / "results.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return [row for _, row in unfolded(read_rows(path, results=True)).rows]

    return read


@pytest.mark.parametrize("name", ["metrics", "results"])
def test_a_list_of_metrics_becomes_scores_by_name(rows_of, name):
    listed = [{"metric": "tone", "score": 0.5, "reason": "dry"}, {"name": "v1.1", "value": 1, "threshold": 0.5}]
    assert rows_of([{"question": "A?", name: listed}]) == [{"question": "A?", "scores": SCORED}]


def test_a_row_for_each_metric_becomes_a_row_for_each_answer(rows_of):
    rows = [
        {"question": "A?", "answer": "a", "metric": "tone", "score": 0.5, "reason": "dry", "passed": True},
        {"question": "A?", "answer": "a", "metric": "v1.1", "score": 1, "passed": True},
        {"question": "B?", "answer": "b", "metric": "tone", "score": 0, "passed": False},
    ]
    verdicts = [{"question": "A?", "measure": name, "verdict": "pass"} for name in ("relevant", "supported")]
    assert rows_of(verdicts) == [
        {"question": "A?", "scores": {"relevant": {"score": "pass"}, "supported": {"score": "pass"}}}
    ]
    assert rows_of(rows) == [
        {"question": "A?", "answer": "a", "scores": SCORED},
        {"question": "B?", "answer": "b", "scores": {"tone": {"score": 0}}},
    ]


@pytest.mark.parametrize(
    ("judge", "score"), [("rater", "rating"), ("judge_model", "score"), ("Annotator ID", "verdict")]
)
def test_a_row_for_each_judge_of_an_answer_becomes_a_row_for_each_answer(rows_of, judge, score):
    judged = [(said, who) for who in ("ann", "bo") for said in ("a", "b")]
    rows = [{"question": "A?", "answer": said, judge: who, score: 1, f"{judge} cost": len(who)} for said, who in judged]
    both = {"ann": {"score": 1}, "bo": {"score": 1}}
    assert rows_of(rows) == [{"question": "A?", "answer": said, "scores": both} for said in ("a", "b")]
    once = [{"question": said, "answer": said, judge: who, score: 1} for said, who in judged[1:3]]
    assert rows_of(once) == once  # each answer has one judge
    twice = [*rows, {**rows[0], score: 0}]
    assert rows_of(twice) == twice  # the judge of one answer may have changed their mind
    crowd = [{**rows[0], "question": f"{at // 3}?", judge: f"w{at}"} for at in range(24)]
    assert rows_of(crowd) == crowd


def test_a_row_for_each_metric_loses_no_column_and_no_score(rows_of):
    row = {"id": 1, "question": "A?", "coder_output": "a", "metric": "tone", "score": 1}
    rows = [row, {**row, "score": 0}, {**row, "coder_output": "b"}]
    whole = {"id": 1, "question": "A?", "coder_output": "a", "scores": {"tone": {"score": 1}}}
    assert rows_of(rows) == [whole, {**whole, "scores": {"tone": {"score": 0}}}, {**whole, "coder_output": "b"}]


def test_who_answers_is_no_judge_whatever_both_are_called(rows_of):
    names = [(coder, judge) for coder in "ab" for judge in "cd"]
    rows = [
        {"question": "A?", "answer": "x", "coder_model": coder, "judge": judge, "score": 1} for coder, judge in names
    ]
    assert rows_of(rows) == rows
    both = {"c": {"score": 1}, "d": {"score": 1}}
    said = [{"question": "A?", "answer": coder, "coder_model": coder} for coder in "ab"]
    assert rows_of([{**row, "answer": row["coder_model"]} for row in rows]) == [{**one, "scores": both} for one in said]


def test_each_entry_of_a_list_of_results_is_a_row(rows_of):
    runs = [{"model": "a", "answer": "x"}, {"model": "b", "answer": "y"}]
    assert rows_of([{"question": "A?", "results": runs}]) == [
        {"model": "a", "answer": "x", "question": "A?"},
        {"model": "b", "answer": "y", "question": "A?"},
    ]
    assert rows_of([{"question": "A?", "responses": [{"text": "x"}]}]) == [
        {"text": "x", "response": "x", "question": "A?"}
    ]
    assert rows_of([{"question": "A?", "responses": ["x", "y"]}]) == [
        {"question": "A?", "response": "x"},
        {"question": "A?", "response": "y"},
    ]


def test_each_of_a_list_of_answers_has_its_score_and_none_is_lost(rows_of):
    rows = [
        {"question": "A?", "gt": "1", "pred": ["1", "2"], "score": [True, False], "report": [None]},
        {"question": "B?", "gt": "1", "pred": ["1"], "score": [True], "report": [None]},
    ]
    assert rows_of(rows) == [
        {"question": "A?", "gt": "1", "report": [None], "pred": "1", "score": True},
        {"question": "A?", "gt": "1", "report": [None], "pred": "2", "score": False},
        {"question": "B?", "gt": "1", "report": [None], "pred": "1", "score": True},
    ]
    many = [{"id": n, "pred": ["1"], "score": [True]} for n in range(20)]
    others = [{"id": 20, "pred": [], "score": []}, {"id": 21, "pred": "2", "score": 0}]
    assert rows_of([*many, *others])[-2:] == [
        {"id": 20, "pred": None, "score": None},
        {"id": 21, "pred": "2", "score": 0},
    ]
    several = [{"id": n, "responses": ["1"]} for n in range(20)]
    assert rows_of([*several, {"id": 20, "responses": "none"}])[-1] == {"id": 20, "response": "none"}


@pytest.mark.parametrize(
    "document",
    [
        {"columns": ["question", "output"], "data": [["A?", "a"], ["B?", "b"]]},
        {"question": {"0": "A?", "1": "B?"}, "output": {"0": "a", "1": "b"}},
        {"question": ["A?", "B?"], "output": ["a", "b"]},
    ],
)
def test_tables_are_read_however_pandas_writes_them(rows_of, document):
    assert rows_of(document) == [{"question": "A?", "output": "a"}, {"question": "B?", "output": "b"}]


def test_columns_with_the_same_ids_are_rows(rows_of):
    document = {"answer": {"q1": "a", "q2": "b"}, "sp": {"q1": ["x"], "q2": []}}
    assert rows_of(document) == [{"id": "q1", "answer": "a", "sp": ["x"]}, {"id": "q2", "answer": "b", "sp": []}]
    with pytest.raises(BadDataset, match="holds means or settings, but no rows"):
        rows_of({"result": {"loss": 0.1}, "config": {"loss": 0.2}, "name": "run"})


@pytest.mark.parametrize(
    "row",
    [
        {"question": "A?", "answers": ["a", "b"]},
        {"question": "A?", "results": [{"text": "chunk", "score": 0.5, "name": "doc"}]},
        {"question": "A?", "prediction": "p", "results": [{"answer": "x"}]},
        {"question": "A?", "results": []},
        {"method": "few shots", "predictions": ["true", "false"], "accuracy": 0.5},
    ],
)
def test_other_lists_stay_in_their_row(rows_of, row):
    assert rows_of([row]) == [row]


def test_lists_by_system_are_one_table_with_the_system_as_condition(rows_of):
    row = {"question": "A?", "answer": "a"}
    assert rows_of({"small": {"rows": [row]}, "large": {"rows": [row]}}) == [
        {"condition": "small", **row},
        {"condition": "large", **row},
    ]


@pytest.mark.parametrize("column", ["agent_answer", "model_output", "prediction"])
def test_a_list_beside_the_answer_itself_is_no_list_of_answers(rows_of, column):
    row = {"question": "A?", "responses": ["a", "b"], column: "x"}
    assert rows_of([row]) == [row]
    assert rows_of([{"question": "A?", "responses": ["a", "b"]}]) == [
        {"question": "A?", "response": "a"},
        {"question": "A?", "response": "b"},
    ]


def test_a_list_beside_a_golden_list_of_as_many_is_one_answer(rows_of):
    rows = [{"id": n, "expected_outputs": ["1", "2"], "outputs": ["1", "3"]} for n in range(3)]
    assert rows_of(rows) == rows
    texts = [{**row, "expected_outputs": "1"} for row in rows]
    assert len(rows_of(texts)) == 6


def test_scores_of_a_list_of_metrics_are_those_that_have_a_name_and_a_value(rows_of):
    first = {"question": "A?", "metrics": [{"key": "tone", "rating": "pass", "explanation": "dry"}]}
    later = {"question": "B?", "metrics": ["odd", {"metric": "x"}, {"metric": "y", "value": 2, "score": 1}]}
    none = {"question": "C?"}
    assert rows_of([*[first] * 20, later, none])[19:] == [
        {"question": "A?", "scores": {"tone": {"score": "pass", "explanation": "dry"}}},
        {"question": "B?", "scores": {"y": {"score": 1}}},
        {"question": "C?", "scores": {}},
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "A?", "metrics": [{"metric": "tone", "score": "much"}]},
        {"question": "A?", "metrics": [{"metric": 5, "score": 1}]},
        {"question": "A?", "metrics": [{"metric": "tone", "score": 1, "content": "x"}]},
        {"question": "A?", "notes": ["x", "y"]},
        {"question": "A?", "responses": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]},
        {"question": "A?", "responses": ["x", {"text": "y"}]},
        {"question": "A?", "predictions": ["yes", "no"]},
        {"question": "A?", "runs": [{"model": "m", "n": 1}]},
        {"question": "A?", "runs": [{"tone_score": 1}]},
        {"question": "A?", "pred": ["a", "b"], "score": [1]},
        {"question": "A?", "notes": ["a", "b"], "score": [1, 2]},
        {"question": "A?", "pred": ["a", "b"], "score": []},
        {"metric": "tone", "score": 1},
        {"question": "A?", "metric": "tone", "n": 1},
        {"question": "A?", "metric": 5, "score": 1},
    ],
)
def test_rows_that_hold_one_answer_stay_as_they_are(rows_of, row):
    assert rows_of([row]) == [row]


def test_what_makes_an_entry_an_answer(rows_of):
    judged = [{"model": "m", "tone_score": 1}, {"model": "n", "tone_score": 2}]
    assert rows_of([{"question": "A?", "runs": judged}]) == [{**run, "question": "A?"} for run in judged]
    assert rows_of([{"question": "A?", "predictions": ["yes it is"]}]) == [{"question": "A?", "response": "yes it is"}]
    golden_only = [{"reference": "x"}]
    assert rows_of([{"question": "A?", "results": golden_only}]) == [{"reference": "x", "question": "A?"}]


def test_unfolded_rows_say_so(tmp_path):
    path = tmp_path / "results.json"

    def notes(row):
        path.write_text(json.dumps([row]), encoding="utf-8")
        return unfolded(read_rows(path, results=True)).notes

    assert notes({"question": "A?", "responses": ["x"]}) == ["each entry of 'responses' is a row"]
    assert notes({"question": "A?", "pred": ["x"], "score": [1]}) == ["each entry of pred, score is a row"]
    assert notes({"question": "A?", "metric": "t", "score": 1}) == [
        "each 'metric' is a metric of the answer in its row"
    ]
    assert notes({"id": "q", "Metric Name": "t", "value": 1}) == [
        "each 'Metric Name' is a metric of the answer in its row"
    ]
    assert notes({"question": "A?", "metrics": [{"name": "t", "score": 1}]}) == []


def test_a_last_row_of_means_is_left_out_and_named(tmp_path):
    path = tmp_path / "r.csv"
    answered = "".join(f"What is {n}?,It is {n}.,0.{n}\n" for n in range(5))
    path.write_text(f"question,answer,score\n{answered}Average,,0.2\n")
    rows = unfolded(read_rows(path, results=True))
    assert rows.count == 5
    assert rows.notes == ["the last row sums up the others and is left out: Average"]
    path.write_text("qid,tone\n" + "".join(f"{n},{n}\n" for n in range(5)) + "mean,2.0\n")
    assert unfolded(read_rows(path, results=True)).count == 5


@pytest.mark.parametrize("last", ["Total cost is what?,It is 6.,0.6", "mean what?,It is 6.,0.2", "Average,It is 6.,9"])
def test_a_last_row_with_an_answer_is_one_like_others(tmp_path, last):
    path = tmp_path / "r.csv"
    answered = "".join(f"What is {n}?,It is {n}.,0.{n}\n" for n in range(5))
    path.write_text(f"question,answer,score\n{answered}{last}\n")
    assert unfolded(read_rows(path, results=True)).count == 6


def test_a_score_that_does_not_apply_is_missing(rows_of, tmp_path):
    rows = [{"tone_score": 0, "tone_applicable": said, "Closed": 1} for said in ("yes", "No", None)]
    assert [row["tone_score"] for row in rows_of(rows)] == [0, None, 0]
    rows = [{"Labels match": "No", "Applicable - Labels match": said} for said in ("", "N/A")]
    assert [row["Labels match"] for row in rows_of(rows)] == ["No", None]
    notes = unfolded(read_rows(tmp_path / "results.json", results=True)).notes
    (said,) = notes
    assert said == ("missing, as not applicable: 'Labels match' in 1 row where 'Applicable - Labels match' says so")


def test_an_object_that_is_compared_stays_a_text(rows_of):
    row = {"question": "A?", "target": '{"city": "Bonn"}', "prediction": '{"city": "Bonn"}'}
    assert rows_of([row]) == [row]
    wrapped = {"question": "A?", "answer": "{'query': 'A?', 'result': 'a'}"}
    assert rows_of([wrapped]) == [{"question": "A?", "answer": {"query": "A?", "result": "a"}}]


def test_questions_and_answers_in_two_lists_are_joined_by_their_ids(rows_of, tmp_path):
    asked = [{"id": n, "question": f"What is {n}?", "reference": f"{n}"} for n in range(3)]
    answers = [{"question_id": n, "answer": f"It is {n}."} for n in (2, 0)]
    document = {"questions": asked, "answers": answers, "summary": {"mean": 0.5}}
    assert rows_of(document) == [
        {"id": n, "question": f"What is {n}?", "reference": f"{n}", "question_id": n, "answer": f"It is {n}."}
        for n in (2, 0)
    ]
    for row in asked:
        row["metrics"] = ["tone"]  # to be measured
    assert [row["answer"] for row in rows_of(document)] == ["It is 2.", "It is 0."]
    (note,) = read_rows(tmp_path / "results.json", results=True).notes
    assert note == "rows: the list 'answers', each row with its entry in 'questions'"


def test_a_result_without_its_question_has_that_of_its_case_and_no_other(rows_of):
    cases = [{"name": name, "input": f"{name}?", "query": name} for name in "ab"]
    results = [{"name": "a", "input": "a?", "actual_output": "x"}, {"name": "b", "error": "timeout"}]
    assert rows_of({"test_cases": cases, "results": results}) == [
        {"name": "a", "input": "a?", "actual_output": "x"},
        {"name": "b", "input": "b?", "error": "timeout"},
    ]


def test_lists_of_other_things_are_not_joined(rows_of):
    asked = [{"id": n, "question": f"What is {n}?"} for n in range(3)]
    others = [{"id": n + 7, "answer": "x"} for n in range(3)]
    assert rows_of({"questions": asked, "answers": others})[0] == asked[0]
    by_model = {name: [{**row, "response": name, "score": 1} for row in asked] for name in ("small", "large")}
    assert len(rows_of(by_model)) == 6


def test_golden_answers_in_columns_that_are_filled_in_turn_are_one(rows_of):
    rows = [
        {"question": "A?", "correct": "yes", "expected": "a", "expected_format": None},
        {"question": "B?", "correct": "no", "expected": None, "expected_format": "upper case"},
    ]
    golden = [row.get("expected") for row in rows_of(rows)]
    assert golden == ["a", "upper case"]
    rows[0]["expected_format"] = "lower case"
    assert rows_of(rows) == rows
