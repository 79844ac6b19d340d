"""Where the rows of a document are, whatever it is made of."""

from __future__ import annotations

import pytest

from karat.documents.tables import best_of, rows_of, tables_in, together

ASKED = {"question": "A?", "answer": "a"}
USER = {"role": "user", "content": "Why?"}
REPLY = {"role": "assistant", "content": "So."}
LIKELY = [{"text": "a", "probability": 0.9}, {"text": "b", "probability": 0.1}]


@pytest.mark.parametrize(
    ("document", "tables"),
    [
        pytest.param([ASKED], {"": [ASKED]}, id="a list"),
        pytest.param("text", {}, id="a text"),
        pytest.param({}, {}, id="nothing"),
        pytest.param({"dev": [ASKED], "test": [ASKED, ASKED]}, {"dev": [ASKED], "test": [ASKED, ASKED]}, id="lists"),
        pytest.param({"a": {"b": {"c": [ASKED]}}}, {"a.b.c": [ASKED]}, id="a list inside objects"),
        pytest.param({"a": {"b": {"c": {"d": [ASKED]}}}}, {"a.b.c.d": [ASKED]}, id="at the deepest"),
        pytest.param({"a": {"b": {"c": {"d": {"e": [ASKED]}}}}}, {}, id="too deep"),
        pytest.param({"dev": [], "names": ["x"], "n": 1}, {}, id="no list of objects"),
        pytest.param({"results": [{"rows": [ASKED], "n": 2}]}, {"results.rows": [ASKED]}, id="a run of rows"),
        pytest.param({"results": [ASKED]}, {"results": [ASKED]}, id="a run that is a row"),
        pytest.param({"results": [{"n": 1}]}, {"results": [{"n": 1}]}, id="a run without rows"),
        pytest.param(
            {"q1": ASKED, "q2": {**ASKED, "id": 7}},
            {"": [{"id": "q1", **ASKED}, {"key": "q2", "id": 7, **ASKED}]},
            id="rows by id",
        ),
        pytest.param(
            {"data": {"q1": ASKED, "q2": ASKED}},
            {"data": [{"id": "q1", **ASKED}, {"id": "q2", **ASKED}]},
            id="rows by id inside an object",
        ),
        pytest.param(
            {"small": {"answer": 1}, "large": {"answer": 2}},
            {"": [{"condition": "small", "answer": 1}, {"condition": "large", "answer": 2}]},
            id="means by condition",
        ),
        pytest.param(
            {"q1": {"answer": 1}, "q2": {"answer": 2}},
            {"": [{"id": "q1", "answer": 1}, {"id": "q2", "answer": 2}]},
            id="numbers by id",
        ),
        pytest.param(
            {"small": {"answer": "x"}, "large": {"answer": "y"}},
            {"": [{"id": "small", "answer": "x"}, {"id": "large", "answer": "y"}]},
            id="texts by id",
        ),
        pytest.param(
            {
                "small": {"responses": ["a", "b"], "scores": [1, 0], "cost": 3},
                "large": {"responses": ["c", None], "scores": [0, 1], "cost": 4},
            },
            {
                "": [
                    {"condition": "small", "item": 1, "responses": "a", "scores": 1, "cost": 3},
                    {"condition": "small", "item": 2, "responses": "b", "scores": 0, "cost": 3},
                    {"condition": "large", "item": 1, "responses": "c", "scores": 0, "cost": 4},
                    {"condition": "large", "item": 2, "responses": None, "scores": 1, "cost": 4},
                ]
            },
            id="lists of answers and scores by condition",
        ),
        pytest.param(
            {
                "small": {"responses": ["a", "b"], "scores": [1, 0], "cost": 3},
                "large": {"responses": ["c"], "scores": [0, 1], "cost": 4},
            },
            {
                "": [
                    {"id": "small", "responses": ["a", "b"], "scores": [1, 0], "cost": 3},
                    {"id": "large", "responses": ["c"], "scores": [0, 1], "cost": 4},
                ]
            },
            id="lists of different lengths",
        ),
        pytest.param(
            {
                "q1": LIKELY,
                "q2": [{"text": "c", "probability": 1}],
            },
            {
                "": [
                    {"question_id": "q1", **LIKELY[0], "other_candidates": LIKELY[1:]},
                    {"question_id": "q2", "text": "c", "probability": 1, "other_candidates": []},
                ]
            },
            id="likely answers by id",
        ),
        pytest.param(
            {"columns": ["question", "answer"], "data": [["A?", "a"], ["B?", "b"]]},
            {"": [ASKED, {"question": "B?", "answer": "b"}]},
            id="names and cells",
        ),
        pytest.param(
            {"columns": ["question", "answer"], "rows": [["A?", "a"]]}, {"": [ASKED]}, id="names and rows of cells"
        ),
        pytest.param({"columns": ["question", 2], "data": [["A?", "a"]]}, {}, id="a name that is none"),
        pytest.param(
            {"columns": ["question", "answer"], "data": [["A?"]]}, {}, id="a row without a cell for each name"
        ),
        pytest.param(
            {"a": [USER, REPLY], "b": [USER]},
            {"": [{"id": "a", "messages": [USER, REPLY]}, {"id": "b", "messages": [USER]}]},
            id="chats by id",
        ),
        pytest.param(
            {"queries": {"q": "A?"}, "corpus": {"d": "x", "e": "y"}, "relevant_docs": {"q": ["e", "gone"]}},
            {"": [{"id": "q", "question": "A?", "relevant_docs": ["e", "gone"], "context": ["y"]}]},
            id="a retrieval set",
        ),
        pytest.param(
            {"questions": {"q": "A?"}, "corpus": {"d": "x"}, "relevant_docs": {"r": ["d"]}},
            {"": [{"id": "q", "question": "A?", "relevant_docs": [], "context": []}]},
            id="a retrieval set in which nothing is relevant",
        ),
        pytest.param(
            {"question": ["A?", "B?"], "answer": ["a", "b"]},
            {"": [ASKED, {"question": "B?", "answer": "b"}]},
            id="columns as lists",
        ),
        pytest.param(
            {"question": {"0": "A?", "1": "B?"}, "answer": {"0": "a", "1": "b"}, "n": 2},
            {"": [ASKED, {"question": "B?", "answer": "b"}]},
            id="columns with numbers of rows",
        ),
        pytest.param(
            {"question": {"x": "A?", "y": "B?"}, "answer": {"x": "a", "y": "b"}},
            {"": [{"id": "x", **ASKED}, {"id": "y", "question": "B?", "answer": "b"}]},
            id="columns with ids",
        ),
        pytest.param(ASKED, {"": [ASKED]}, id="one row"),
        pytest.param({"messages": "Hi", "n": 1}, {"": [{"messages": "Hi", "n": 1}]}, id="one chat as text"),
        pytest.param({"question": "A?"}, {}, id="a question alone"),
        pytest.param(
            {"A?": "a", "B?": ["b", "c"]},
            {"": [{"question": "A?", "answer": "a"}, {"question": "B?", "answer": ["b", "c"]}]},
            id="texts by key",
        ),
        pytest.param({"A?": "a"}, {}, id="one text"),
        pytest.param({"A?": "a", "n": 3}, {}, id="a text and a number"),
        pytest.param({"A?": "a", "B?": []}, {}, id="a text and an empty list"),
        pytest.param(
            {"messages": [USER, REPLY, USER], "notes": [{"x": 1}]},
            {"": [{"messages": [USER, REPLY, USER], "notes": [{"x": 1}]}]},
            id="a chat and what is said of it",
        ),
        pytest.param(
            {"messages": [USER, USER], "notes": [{"x": 1}]},
            {"messages": [USER, USER], "notes": [{"x": 1}]},
            id="no chat, since one side is missing",
        ),
        pytest.param(
            {"items": [USER, REPLY], "notes": [{"x": 1}]},
            {"items": [USER, REPLY], "notes": [{"x": 1}]},
            id="no chat by its name",
        ),
    ],
)
def test_tables_of_a_document(document, tables):
    assert tables_in(document) == tables


def test_many_means_are_rows_by_id():
    few, many = ({f"row {'x' * at}": {"answer": at} for at in range(number)} for number in (19, 20))
    assert [*tables_in(few)[""][0]] == ["condition", "answer"]
    assert [*tables_in(many)[""][0]] == ["id", "answer"]


@pytest.mark.parametrize(
    ("item", "rows"),
    [
        (ASKED, [ASKED]),
        ([ASKED, {}], [ASKED, {}]),
        ([USER, REPLY], [{"messages": [USER, REPLY]}]),
        ([ASKED, 1], []),
        ("text", []),
        (None, []),
    ],
)
def test_an_item_of_a_list_holds_rows(item, rows):
    assert rows_of(item) == rows


def test_the_tables_that_speak_most_of_questions_are_the_best():
    tables = {
        "meta": [{"n": 1}],
        "answers": [{"answer": "a", "reference": "b"}],
        "odd": [1, {"text": "A?", "answer": "a"}],
        "sure": [ASKED],
        "more": [{"question": "B?", "golden": "b", "notes": 1}],
    }
    assert best_of(tables) == ["sure", "more"]
    del tables["sure"], tables["more"]
    assert best_of(tables) == ["odd"]
    del tables["odd"]
    assert best_of(tables) == ["answers"]
    assert best_of({"meta": [{"n": 1}], "more": [{"m": 1}]}) == ["meta", "more"]
    assert best_of({}) == []
    inside = {"meta": [{"golden": 1}], "inside": [{"row": {"golden": "a", "prediction": "b"}}]}
    assert best_of(inside) == ["inside"]


def test_of_results_scores_and_ids_decide_between_tables():
    tables = {"notes": [{"text": "x"}], "scores": [{"text": "x", "caseId": 1, "tone_score": 2}]}
    assert best_of(tables) == ["notes", "scores"]
    assert best_of(tables, results=True) == ["scores"]


ROW = {"question": "A?", "response": "a"}
BY_ID = [{"id": "1", "prediction": "a", "reference": "b"}, {"id": "2", "prediction": "c", "reference": "d"}]


@pytest.mark.parametrize(
    ("tables", "rows"),
    [
        pytest.param(
            {"small": [ROW], "gpt-4.1": [ROW]},
            [{"condition": "small", **ROW}, {"condition": "gpt-4.1", **ROW}],
            id="names of systems",
        ),
        pytest.param(
            {"runs.small.rows": [ROW], "runs.large.rows": [ROW]},
            [{"condition": "small", **ROW}, {"condition": "large", **ROW}],
            id="the part that differs",
        ),
        pytest.param({"a.small": [ROW], "b.large": [ROW]}, [], id="two parts differ"),
        pytest.param({"small": [ROW], "a.large": [ROW]}, [], id="names of different depths"),
        pytest.param({"a.large": [ROW], "small": [ROW]}, [], id="the first name is the deepest"),
        pytest.param({"train": [ROW], "Test": [ROW]}, [], id="parts of a dataset"),
        pytest.param({"small": [ROW], "large": [{"question": "A?", "x": 1, "y": 2}]}, [], id="different columns"),
        pytest.param(
            {"small": [{**ROW, "x": 1}], "large": [ROW]},
            [{"condition": "small", **ROW, "x": 1}, {"condition": "large", **ROW}],
            id="most columns are the same",
        ),
        pytest.param({"small": [{"response": "a"}], "large": [{"response": "b"}]}, [], id="no questions and no ids"),
        pytest.param(
            {"small": BY_ID, "large": BY_ID},
            [{"condition": name, **row} for name in ("small", "large") for row in BY_ID],
            id="the same ids",
        ),
        pytest.param(
            {"small": BY_ID, "large": [{**row, "id": f"other {row['id']}"} for row in BY_ID]}, [], id="other ids"
        ),
        pytest.param(
            {"q1": [{"id": "small", "response": "a"}], "q2": [{"id": "small", "response": "b"}]},
            [
                {"condition": "small", "id": "q1", "response": "a"},
                {"condition": "small", "id": "q2", "response": "b"},
            ],
            id="numbered names are of questions",
        ),
        pytest.param(
            {"run1": [{"id": "small", "response": "a"}], "run2": [{"id": "small", "response": "b"}]},
            [],
            id="numbered names of repetitions",
        ),
        pytest.param(
            {name: [{"id": f"d{at}", "response": "a"} for at in range(2)] for name in ("q1", "q2")},
            [],
            id="ids are numbered, too",
        ),
    ],
)
def test_tables_of_the_same_columns_are_one(tables, rows):
    assert together(tables, [*tables]) == rows


@pytest.mark.needs_package("karat_conversations")
def test_lists_of_texts_are_talks_where_their_name_says_so():
    talks = [["Hi.", "Hello.", "Bye."], ["Where?", "Here."]]
    assert tables_in({"topics": ["greetings"], "conversations": talks}) == {
        "conversations": [{"dialogue": talk} for talk in talks]
    }
    assert tables_in({"topics": ["greetings"], "colours": talks}) == {}


def test_many_objects_by_id_that_hold_the_same_are_rows_whatever_they_hold():
    index = {f"n{number}": {"title": f"Case {number}", "parts": [number]} for number in range(25)}
    (rows,) = tables_in(index).values()
    assert rows[24] == {"id": "n24", "title": "Case 24", "parts": [24]}
