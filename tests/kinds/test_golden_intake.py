"""Files of questions as people keep them: what is taken, offered and said at first sight."""

from __future__ import annotations

import json

import openpyxl
import pytest
from pydantic import ValidationError
from tests.kinds.question_files import ASKED, SAID, load, refused, table, turns, written

from karat.errors import BadDataset
from karat.kinds.golden import Golden
from karat.kinds.golden.reading import DECLINES


def test_an_empty_golden_answer_may_mean_that_it_is_right_to_decline(tmp_path):
    path = written(tmp_path, table(question=ASKED, answer=[*SAID[:3], None]))
    assert "If declining is the right answer to them, set `dataset.empty: declines`." in refused(path)
    dataset = load(path, empty="declines")
    assert turns(dataset)[2:] == [(ASKED[2], SAID[2]), (ASKED[3], DECLINES)]
    assert dataset.warnings == (
        "where 'answer' is empty, it is right to decline: a judge can tell, and no comparison of texts",
    )


def test_what_a_column_of_documents_holds_is_said_where_it_is_offered(tmp_path):
    rows = table(question=ASKED, expected_docs=[["a.pdf", "b.pdf"], ["c.pdf"], ["d.pdf"], []])
    said = refused(written(tmp_path, rows))
    assert (
        "golden: expected_docs, criterion: null}  # documents to retrieve: no answer is equal to their names\n"
        "     several: all  # or `any`, if one entry of the list is enough\n"
        "     skip: unreadable  # 'expected_docs' is empty in 1 of 4 rows; or `empty: declines`"
    ) in said


@pytest.mark.parametrize("mark", [{"answerable": False}, {"should_refuse": "yes"}])
def test_rows_that_are_marked_to_be_declined_are_asked_about(tmp_path, mark):
    (name,) = mark
    others = {name: "no" if mark[name] == "yes" else True}
    marks = [{"question": question, **(mark if place == 3 else others)} for place, question in enumerate(ASKED)]
    path = written(tmp_path, [{**row, "answer": text} for row, text in zip(marks, SAID, strict=True)])
    assert f"dataset.empty: '{name}' marks 1 item as having no answer" in refused(path)
    assert turns(load(path, empty="missing")) == [*zip(ASKED, SAID, strict=True)]
    assert turns(load(path, empty="declines"))[2:] == [(ASKED[2], SAID[2]), (ASKED[3], DECLINES)]

    path = written(tmp_path, [{**row, "must_mention": ["Ann"]} for row in marks[:3]] + marks[3:])
    assert f"'{name}' marks 1 item as having no answer" in refused(path)
    texts = [[rule.text for rule in sample.criteria] for sample in load(path, empty="declines").samples]
    assert texts == [["Ann"], ["Ann"], ["Ann"], [DECLINES]]


def test_what_a_list_of_golden_answers_means_is_asked_with_what_was_read(tmp_path):
    rows = table(question=ASKED, expected_answer=[["a", "b"]] * 4, must_mention=[["c"]] * 4)
    said = refused(written(tmp_path, rows))
    assert "'expected_answer' is a list: is any of it right, or must all be there?" in said
    assert "read: roles: {question: question, golden: expected_answer, criterion: must_mention}" in said


def test_an_id_that_repeats_may_be_the_document_that_must_be_found(tmp_path):
    assert "golden: id}  # documents" in refused(written(tmp_path, table(question=ASKED, id=["d1", "d1", "d2", "d2"])))
    alone = load(written(tmp_path, table(question=ASKED, id=["d1", "d2", "d3", "d4"])))
    assert turns(alone) == [(question, None) for question in ASKED]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.tsv", "q1\t0\td7\t2\nq1\t0\td8\t0\nq1\t0\td9\t1\nq2\t0\td7\t0\nq2\t0\td3\t1\n"),
        ("q.tsv", "q1\td7\t2\nq1\td8\t0\nq1\td9\t1\nq2\td7\t0\nq2\td3\t1\n"),
        ("q.csv", "query_id,doc_id,relevance\n1,7,2\n1,8,0\n2,7,1\n2,9,0\n"),
        ("q.json", '[{"qid": "a", "passage_id": "p1", "grade": 1}, {"qid": "b", "passage_id": "p2", "grade": 0}]'),
    ],
)
def test_judgements_of_documents_are_no_questions(tmp_path, name, text):
    assert "(qrels): give the questions' file" in refused(written(tmp_path, text, name))


def test_documents_with_grades_are_named_for_what_they_are(tmp_path):
    graded = [{"doc_id": "a", "relevance": 3}, {"doc_id": "b", "relevance": 0}]
    said = refused(written(tmp_path, table(query=ASKED, judgments=[graded] * 4)))
    assert "'judgments' holds documents with their relevance (doc_id, relevance)" in said


def test_calls_of_tools_are_no_questions(tmp_path):
    rows = table(name=["a", "b", "c", "d"], tool=["find"] * 4, params=[{"q": "x"}] * 4, description=SAID)
    assert "file: holds calls of tools ('tool', 'params'), and no questions" in refused(written(tmp_path, rows))
    assert len(load(written(tmp_path, table(question=ASKED, expected_tools=[["find"]] * 4))).samples) == 4


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("expected_tools", ["find", "send"], "calls all of the tools: find; send"),
        ("must_include", ["red", "blue"], "all of: red; blue"),
        ("must_include_any", ["red", "blue"], "one of each: red | blue"),
        ("expected_contains", ["red|blue", "sea"], "one of each: red | blue; all of: sea"),
        ("expected_contains", ["red|blue"], "one of each: red | blue"),
        ("must_contain", [["red", "blue"], ["sea", "lake"]], "one of each: red | blue; sea | lake"),
        ("must_not_say", ["red"], "none of: red"),
        ("expected_facts", ["It is red.", "It is far."], "all of, as a judge sees it: It is red.; It is far."),
        ("criteria", ["It is red."], "It is red."),
    ],
)
def test_criteria_are_shown_with_how_they_must_hold(tmp_path, column, value, shown):
    dataset = load(written(tmp_path, table(question=ASKED, answer=SAID, **{column: [value] * 4})))
    assert dataset.understood is not None
    assert [part.text for part in dataset.understood.parts if part.role == "criterion"] == [shown]


def test_columns_that_cannot_be_read_as_criteria_stop_no_row_and_are_named(tmp_path):
    facts = {"min_groups": 2, "groups": [{"any_of": ["a", "b"]}]}
    said = refused(written(tmp_path, table(question=ASKED, required_facts=[facts] * 4)))
    assert "not read as criteria" not in said
    assert "1) roles: {question: question, golden: null, criterion: required_facts}" in said
    flags = [True, None, None, None]
    dataset = load(written(tmp_path, table(question=ASKED, must_include=[["a"]] * 4, expect_no_lookup=flags)))
    assert [len(sample.criteria) for sample in dataset.samples] == [1, 1, 1, 1]


def test_answers_that_describe_an_answer_are_offered_as_criteria(tmp_path):
    rows = table(question=ASKED, expected_result=[f"The answer should mention {text}" for text in SAID])
    said = refused(written(tmp_path, rows))
    assert "1) roles: {question: question, golden: null, criterion: expected_result}" in said
    assert "2) roles: {question: question, golden: expected_result}" in said


def test_a_name_and_what_follows_may_be_asked_together(tmp_path):
    rows = table(name=["Old mill", "Inn", "Pier", "Hut"], address=SAID, label=["shop", "food", "shop", "food"])
    assert "question: [name, address], golden: label" in refused(written(tmp_path, rows))


def test_a_name_that_may_be_many_notes_is_not_golden(tmp_path):
    rows = table(query=ASKED, expected_keywords=[["a"]] * 4, notes=[f"{text} It was checked twice." for text in SAID])
    assert turns(load(written(tmp_path, rows)))[0] == (ASKED[0], None)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Q: What?\nA: This.\nAnd that.\n\nQ: Who?\nA: He.\n", [("What?", "This.\nAnd that."), ("Who?", "He.")]),
        ("## Question 1: What?\n**Expected answer:** This.\n## Question 2: Who?\nAnswer: He.\n",
         [("What?", "This."), ("Who?", "He.")]),
        ("# Set\n\n| No | Question | Answer |\n|---|:--|---|\n| 1 | A \\| B? | x |\n| 2 | Who? | y |\n\nEnd.\n",
         [("A | B?", "x"), ("Who?", "y")]),
        ("# Set\n\n## What?\n\nThis.\n\n## Who?\nHe.\n\n## Where?\nHere.\n# Notes\nNone.\n",
         [("What?", "This."), ("Who?", "He."), ("Where?", "Here.")]),
        ("问题：什么？\n答案：这个。\n问题：谁？\n答案：他。\n", [("什么？", "这个。"), ("谁？", "他。")]),
    ],
)  # fmt: skip
@pytest.mark.needs_package("karat_conversations")
@pytest.mark.parametrize("name", ["q.txt", "q.md"])
def test_questions_and_answers_are_read_from_a_text(tmp_path, name, text, rows):
    assert turns(load(written(tmp_path, text, name))) == rows


@pytest.mark.needs_package("karat_conversations")
def test_a_text_with_a_question_a_line_has_no_answers(tmp_path):
    path = written(tmp_path, "# first\n1. What?\n2) Who?\n- Tell me.\n\nWhere?\n", "q.txt")
    assert turns(load(path)) == [("What?", None), ("Who?", None), ("Tell me.", None), ("Where?", None)]


@pytest.mark.parametrize(
    "text",
    [
        "Q: Which?\nA: red\nB: blue\nAnswer: B\nQ: What?\nA: x\nB: y\nAnswer: A\n",
        "Just a text.\nWith lines.\nOf prose.\n",
    ],
)
def test_other_texts_are_no_questions_and_answers(tmp_path, text):
    assert "golden: answer" not in refused(written(tmp_path, text, "q.txt"))


def test_lines_of_empty_cells_part_a_table_and_are_no_rows(tmp_path):
    path = written(tmp_path, "question,answer\nA?,b\n,\nC?,d\n", "q.csv")
    dataset = load(path)
    assert turns(dataset) == [("A?", "b"), ("C?", "d")]
    assert dataset.understood is not None
    assert dataset.understood.notes == ("1 line left out in which every cell is empty",)


@pytest.mark.parametrize("above", ["Golden set,,\n,,\n", "# the golden set\n"])
def test_titles_above_the_names_of_the_columns_are_no_rows(tmp_path, above):
    path = written(tmp_path, f"{above}no,question,answer\n1,A?,b\n2,C?,d\n", "q.csv")
    assert turns(load(path)) == [("A?", "b"), ("C?", "d")]


def test_titles_of_a_sheet_are_no_rows(tmp_path):
    book = openpyxl.Workbook()
    for cells in (["Golden set"], [], ["no", "question", "answer"], [1, "A?", "b"]):
        book.active.append(cells)
    book.save(tmp_path / "q.xlsx")
    assert turns(load(tmp_path / "q.xlsx")) == [("A?", "b")]


@pytest.mark.parametrize(
    ("asked", "right"),
    [("测试问题", "参考答案"), ("用户提问", "预期回答"), ("ユーザー質問", "期待回答"), ("테스트질문", "예상답변")],
)
def test_names_without_spaces_are_read_by_their_words(tmp_path, asked, right):
    rows = table(编号=["1", "2", "3", "4"], **{asked: ASKED, right: SAID}, 类型=["a", "b", "a", "b"])
    assert turns(load(written(tmp_path, rows))) == [*zip(ASKED, SAID, strict=True)]


def test_columns_that_name_images_are_said(tmp_path):
    rows = table(question=ASKED, answer=SAID, image=["img/a.png", None, "img/b.JPG", ""])
    assert load(written(tmp_path, rows)).warnings == ("'image' names images, which no agent sees",)


def test_several_turns_that_are_asked_at_once_are_said(tmp_path):
    rows = table(speeches=[["Hi."], ["Hi.", "Where?"], ["Why?"], ["Who?"]], answer=SAID)
    read = load(written(tmp_path, rows), roles={"question": "speeches", "golden": "answer"})
    (warning,) = read.warnings
    assert "'speeches' is a list of texts in 1 row: they are asked together" in warning


@pytest.mark.needs_package("karat_imports")
def test_a_configuration_of_another_tool_is_read_with_the_columns_it_offers(tmp_path):
    config = {
        "prompts": ["{{q}}"],
        "providers": ["echo"],
        "tests": [
            {"description": text, "vars": {"q": text}, "assert": [{"type": "contains", "value": "a"}]} for text in SAID
        ],
    }
    path = written(tmp_path, config, "promptfooconfig.json")
    assert "provider: it says the prompt back, so tests check no model (echo)" in load(path).warnings
    roles = {"question": "question", "golden": None, "criterion": "criteria"}
    assert [question for question, _ in turns(load(path, roles=roles))] == SAID


@pytest.mark.needs_package("karat_imports")
def test_evaluations_of_a_skill_hold_descriptions_and_no_answers(tmp_path):
    evals = [{"id": at, "prompt": text, "expected_output": "It refuses."} for at, text in enumerate(ASKED)]
    dataset = load(written(tmp_path, {"skill_name": "s", "evals": evals}, "evals.json"))
    assert turns(dataset)[0] == (ASKED[0], None)
    assert [one.text for one in dataset.samples[0].criteria] == ["The outcome is as described: It refuses."]
    evals = [one | {"expectations": ["It says no."]} for one in evals]
    dataset = load(written(tmp_path, {"skill_name": "s", "evals": evals}, "evals.json"))
    assert [one.text for one in dataset.samples[0].criteria] == ["It says no."]
    assert "not the description of the expected answer beside them" in "\n".join(dataset.warnings)


@pytest.mark.parametrize(
    "document",
    [
        dict(zip(ASKED, SAID, strict=True)),
        {question: {"answer": answer, "source": "a.pdf"} for question, answer in zip(ASKED, SAID, strict=True)},
    ],
)
def test_an_object_may_have_questions_as_keys(tmp_path, document):
    assert turns(load(written(tmp_path, document))) == [*zip(ASKED, SAID, strict=True)]


def test_lists_of_texts_are_rows_without_names(tmp_path):
    pairs = [[*pair] for pair in zip(ASKED, SAID, strict=True)]
    assert "roles: {question: column 1, golden: column 2}" in refused(written(tmp_path, pairs))
    assert "roles: {question: column 1, golden: null}" in refused(written(tmp_path, ASKED))
    assert "item 1: is a text; each item must be an object" in refused(written(tmp_path, ["a", "b"]))


def test_tools_may_be_expected_with_their_arguments(tmp_path):
    calls = [{"name": "find", "arguments": {"query": "x"}}, {"type": "function", "function": {"name": "send"}}]
    dataset = load(written(tmp_path, table(message=ASKED, expected_tool_calls=[calls] * 4)))
    assert [question for question, _ in turns(dataset)] == ASKED
    assert [(one.type, one.text) for one in dataset.samples[0].criteria] == [("tool", "find"), ("tool", "send")]


def test_an_answer_is_one_column():
    with pytest.raises(ValidationError, match="answer is one column, not 'a', 'b'"):
        Golden.Options(roles={"answer": ["a", "b"]})


def test_several_columns_are_one_golden_object(tmp_path):
    rows = table(text=ASKED, topic=["a", "b"] * 2, urgency=["high", "low", "high", ""], expected_tool=["find"] * 4)
    roles = {"question": "text", "golden": ["topic", "urgency"], "criterion": None}
    dataset = load(written(tmp_path, rows), roles=roles)
    assert [golden for _, golden in turns(dataset)] == [
        '{"topic":"a","urgency":"high"}',
        '{"topic":"b","urgency":"low"}',
        '{"topic":"a","urgency":"high"}',
        '{"topic":"b"}',
    ]
    assert any("an object in JSON" in warning for warning in dataset.warnings)
    assert "'urgency' is empty in 1 of 4 items, and not expected there" in dataset.warnings
    assert "no item has the key 'mood'" in refused(written(tmp_path, rows), roles={"golden": ["topic", "mood"]})


def test_classes_of_a_question_may_be_one_golden_object(tmp_path):
    rows = table(text=ASKED * 2, category=["a", "b"] * 4, urgency=["high", "low"] * 4, difficulty=["x", "y"] * 4)
    assert "roles: {question: text, golden: [category, urgency]}" in refused(written(tmp_path, rows))


def test_what_is_equally_expected_may_be_one_golden_object(tmp_path):
    rows = table(question=ASKED, expected_intent=["a", "b"] * 2, expected_route=["x", "y"] * 2)
    option = "roles: {question: question, golden: [expected_intent, expected_route], criterion: null}"
    assert option in refused(written(tmp_path, rows))


def test_a_text_and_its_spellings_may_be_required_together(tmp_path):
    rows = table(question=ASKED, reference=SAID, answer_key=[["ninety", "XC"], ["six", "VI"]] * 2)
    option = "roles: {question: question, golden: reference, criterion: answer_key}"
    assert option in refused(written(tmp_path, rows))
    roles = {"question": "question", "golden": "reference", "criterion": "answer_key"}
    dataset = load(written(tmp_path, rows), roles=roles)
    assert [(one.type, one.text) for one in dataset.samples[0].criteria] == [("icontains-any", "ninety\nXC")]


def test_values_of_a_record_are_asked_with_their_names(tmp_path):
    rows = table(
        description=ASKED, rooms=[1, 2, 3, 4], area=[10, 20, 30, 40], kind=[*"abcd"], expected=["yes", "no"] * 2
    )
    assert "roles: {question: [rooms, area, kind], golden: expected}" in refused(written(tmp_path, rows))
    dataset = load(written(tmp_path, rows), roles={"question": ["rooms", "area", "kind"], "golden": "expected"})
    assert turns(dataset)[0] == ("rooms: 1\narea: 10\nkind: a", "yes")


def test_the_direction_of_a_criterion_is_said_if_the_first_row_has_none(tmp_path):
    rows = table(question=ASKED, must_include=["a b"] * 4, must_avoid=["", "c", "d", ""])
    shown = str(load(written(tmp_path, rows)).understood)
    assert "(in another item) none of: c  [must_avoid]" in shown


def test_rows_may_name_the_same_roles_in_two_languages(tmp_path):
    rows = [{"question": ASKED[0], "expected_answer": "90"}, {"pregunta": ASKED[1], "respuesta_esperada": "6"}]
    dataset = load(written(tmp_path, [*rows, {"question": ASKED[2], "expected_answer": "7"}]))
    assert turns(dataset)[1] == (ASKED[1], "6")
    assert "'pregunta' as 'question', in 1 item" in str(dataset.understood)


def test_choices_may_belong_to_some_rows(tmp_path):
    rows = table(question=ASKED, correct_answer=["B", *SAID[1:]])
    rows[0] |= {"OptionA": "80", "OptionB": "90"}
    assert [golden for _, golden in turns(load(written(tmp_path, rows)))] == ["B", *SAID[1:]]


def test_the_place_of_an_answer_is_offered_first(tmp_path):
    rows = table(question=ASKED, source_chunk_id=[*"abcd"], preview=["Some text to read here."] * 4)
    assert "1) roles: {question: question, golden: source_chunk_id}" in refused(written(tmp_path, rows))


def test_words_of_addresses_are_asked_for(tmp_path):
    rows = table(question=ASKED, expected_url_keywords=[["io.html", "os.html"]] * 4)
    assert "golden: expected_url_keywords, criterion: null}  # documents to retrieve" in refused(
        written(tmp_path, rows)
    )


def test_a_class_of_behaviour_may_be_the_golden_answer(tmp_path):
    rows = table(question=ASKED, expected_behavior=["answer", "refuse"] * 2)
    assert "roles: {question: question, golden: expected_behavior, criterion: null}" in refused(written(tmp_path, rows))


@pytest.mark.parametrize(
    ("rows", "held"),
    [
        (table(query_text=ASKED, doc_id=[*"abcd"], relevant=[1, 0] * 2), "(qrels)"),
        (table(answer=SAID, expected=["pass", "fail"] * 2), "the verdict that a judge should give ('expected')"),
        (table(order_id=[1, 2, 3, 4], sold=["a", "b"] * 2, revenue=[1.5, 2.5, 1.5, 3.0]), "holds a table of data"),
    ],
)
def test_what_a_file_without_questions_holds_is_said(tmp_path, rows, held):
    assert held in refused(written(tmp_path, rows))


def test_nul_characters_are_read_as_spaces(tmp_path):
    path = tmp_path / "q.csv"
    path.write_bytes(b"question,answer\nWhat\0is 9 times 10?,ninety\n" + b"What is 2 times 3?,six\n" * 2)
    dataset = load(path, repeated=True)
    assert turns(dataset)[0] == ("What is 9 times 10?", "ninety")
    assert "1 NUL character as spaces, the first in line 2" in str(dataset.understood)


def test_rows_without_the_key_of_the_golden_answer_may_decline_too(tmp_path):
    rows = table(question=ASKED, answer=SAID)
    del rows[-1]["answer"]
    assert "set `dataset.empty: declines`" in refused(written(tmp_path, rows))


@pytest.mark.parametrize("written", ['["ninety", "XC"]', "['ninety', 'XC']", "ninety | XC"])
def test_aliases_may_be_a_list_in_a_text(tmp_path, written):
    path = tmp_path / "q.csv"
    cells = ["What is 9 * 10?,90," + json.dumps(written).replace('\\"', '""'), "What is 2 * 3?,6,six"]
    path.write_text("question,answer,aliases\n" + "\n".join(cells) + "\n")
    first, second = load(path).samples
    assert first.turns[0].detail == {"answers": ["90", "ninety", "XC"]}
    assert second.turns[0].detail == {"answers": ["6", "six"]}


def test_aliases_beside_a_golden_answer_are_right_too(tmp_path):
    rows = table(question=ASKED, answer=SAID)
    for row in rows:
        row["aliases"] = []
    rows[0]["aliases"] = ["ninety", SAID[0]]
    samples = load(written(tmp_path, rows)).samples
    assert [sample.turns[0].detail for sample in samples[:2]] == [{"answers": [SAID[0], "ninety"]}, {}]
    assert "aliases" not in samples[0].metadata
    named = load(written(tmp_path, rows), roles={"question": "question", "golden": "answer"}).samples
    assert named[0].turns[0].detail == {}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"chunk_id": ["a", "b", "c", "d"], "text": SAID}, "holds documents ('text') to be searched (a corpus)"),
        ({"title": ASKED, "content": [f"{text} And more." * 30 for text in SAID]}, "holds documents ('content')"),
        ({"name": ["a", "b", "c", "d"], "description": SAID, "parameters": [{"x": 1}] * 4}, "holds the tools"),
        ({"thought": SAID, "action": ["go"] * 4, "observation": SAID}, "holds the steps of an agent's run"),
        ({"check": ASKED, "weight": [1, 2, 1, 2]}, "holds a rubric for a judge"),
        ({"name": SAID, "template": ["Answer {q}.", "Grade {a}.", "Say {q}.", "Do {x}."]}, "templates of prompts"),
        ({"model": ["a", "b", "c", "d"], "accuracy": [1, 2, 3, 4], "f1": [1, 2, 3, 4]}, "numbers for each 'model'"),
        ({"level": ["INFO"] * 4, "message": SAID, "time": ["1", "2", "3", "4"]}, "holds the lines of a program's log"),
    ],
)
def test_files_of_another_sort_are_named_and_may_be_asked_all_the_same(tmp_path, columns, said):
    path = written(tmp_path, table(**columns))
    assert said in refused(path)
    assert "and no questions: give the file with the questions; if its rows are asked all the same" in refused(path)
    asked = next(name for name, values in columns.items() if values[0] in (*SAID, *ASKED) or name == "model")
    assert len(load(path, roles={"question": asked, "golden": None}).samples) == 4


def test_long_texts_with_labels_may_be_asked(tmp_path):
    texts = [f"{text} And more." * 30 for text in SAID]
    rows = table(text=texts, mood=["good", "bad", "good", "bad"], rating=["low", "high", "low", "high"])
    assert "roles: {question: text, golden: " in refused(written(tmp_path, rows))


@pytest.mark.parametrize("text", ["Your question here", "example query", "пример запрос", "<question>"])
def test_a_file_that_has_yet_to_be_filled_is_said(tmp_path, text):
    path = written(tmp_path, [{"question": text, "answer": "x"}])
    assert f"no questions yet, it seems, but an example to be replaced in each row: '{text}'" in load(path).warnings


@pytest.mark.parametrize(
    ("column", "values", "shown"),
    [
        ("kind", ["plain", "follow-up", "plain", "plain"], "'kind' is follow-up in 1 of 4 rows"),
        ("is_follow_up", [False, True, True, False], "'is_follow_up' is True in 2 of 4 rows"),
    ],
)
def test_questions_that_refer_to_the_row_before_are_said(tmp_path, column, values, shown):
    warnings = load(written(tmp_path, table(question=ASKED, answer=SAID, **{column: values}))).warnings
    assert [warning for warning in warnings if warning.startswith(f"{shown}: if these questions refer")]


INTENTS = [
    {"intent": "hours", "examples": ["When are you open?", "Opening hours"], "answer": "From 9 to 5."},
    {"intent": "place", "examples": ["Where are you?"], "answer": "In the old town."},
]


@pytest.mark.needs_package("karat_conversations")
def test_each_phrase_of_an_intent_is_a_question(tmp_path):
    path = written(tmp_path, INTENTS)
    dataset = load(path, cluster="intent")
    asked = [
        ("When are you open?", "From 9 to 5."),
        ("Opening hours", "From 9 to 5."),
        ("Where are you?", "In the old town."),
    ]
    assert turns(dataset) == asked
    assert dataset.understood is not None
    assert "3 in 2 rows; those of one row are alike: `cluster: intent`" in dataset.understood.notes[-1]
    assert turns(load(path, roles={"question": "examples", "golden": "answer"})) == asked


def test_lists_without_an_intent_are_asked_together(tmp_path):
    rows = [{"questions": row["examples"], "answer": row["answer"]} for row in INTENTS]
    assert len(load(written(tmp_path, rows)).samples) == 2


def test_lists_are_looked_into_before_one_must_be_named(tmp_path):
    questions = table(question=ASKED, answer=SAID)
    data = [{"amount": 3 * place, "sort": "ab"[place % 2]} for place in range(4)]
    path = written(tmp_path, {"first": data, "second": data})
    assert "file: 'first' holds a table of data, it seems, and no questions" in refused(path)
    path = written(tmp_path, {"first": questions, "second": [*questions, *questions[:1]]})
    said = refused(path)
    assert "must name one of the file's lists: first, second" in said
    assert "'first' has 4 questions\n  'second' has 5 questions" in said
    open_ones = [{"question": row["question"], "note": row["answer"]} for row in questions]
    said = refused(written(tmp_path, {"first": open_ones, "second": open_ones}))
    assert "with `split: first`: dataset.roles: what the columns hold is not certain" in said


@pytest.mark.parametrize("beside", [{}, {"id": ["q1", "q2", "q3", "q4"]}])
def test_questions_alone_are_read_and_it_is_said(tmp_path, beside):
    dataset = load(written(tmp_path, table(question=ASKED, **beside)))
    assert turns(dataset) == [(question, None) for question in ASKED]
    assert "the file holds questions alone: nothing to compare answers with" in dataset.warnings
    assert "what the columns hold is not certain" in refused(
        written(tmp_path, table(question=ASKED, sort=["a b", "c d", "a b", "c d"]))
    )


@pytest.mark.parametrize(("name", "value"), [("enabled", False), ("skip", True), ("disabled", "yes")])
def test_rows_that_are_out_of_use_are_left_out(tmp_path, name, value):
    rows = table(question=ASKED, answer=SAID)
    rows[1][name] = value
    dataset = load(written(tmp_path, rows))
    assert [sample.turns[0].question for sample in dataset.samples] == [ASKED[0], *ASKED[2:]]
    assert f"1 of 4 items left out, in which '{name}' is " in str(dataset.understood)


def test_wrong_answers_in_one_text_may_be_choices(tmp_path):
    more = [f"{text}; and more" for text in SAID]
    rows = table(question=ASKED, best_answer=SAID, correct_answers=more, incorrect_answers=["One; two"] * 4)
    path = written(tmp_path, rows)
    assert "choices: left_out  # or without: 'incorrect_answers' are choices" in refused(path)
    roles = {"question": "question", "golden": "best_answer"}
    question, _ = turns(load(path, roles=roles))[0]
    assert sorted(line[3:] for line in question.splitlines()[2:]) == ["Ninety metres.", "One", "two"]
    assert turns(load(path, roles=roles, choices="left_out"))[0] == (ASKED[0], SAID[0])


def test_what_is_acceptable_stands_beside_what_is_forbidden(tmp_path):
    rows = table(question=ASKED, expected_tier=list("abab"), acceptable=[["x", "y"]] * 4, forbidden=[["z"]] * 4)
    dataset = load(written(tmp_path, rows), roles={"criterion": ["acceptable", "forbidden"]})
    assert [(rule.type, rule.text) for rule in dataset.samples[0].criteria] == [
        ("icontains-any", "x\ny"),
        ("not-icontains", "z"),
    ]


def test_what_holds_no_questions_is_named(tmp_path):
    story = {"story": "a greeting", "steps": [{"user": "Hello", "intent": "greet"}, {"action": "utter_greet"}]}
    assert "holds stories of a chatbot (Rasa)" in refused(written(tmp_path, {"stories": [story, story]}))
    test = {"vars": {"case_id": "c-1"}, "assert": [{"type": "javascript", "value": "output.length > 3"}]}
    assert "holds tests of promptfoo for a prompt elsewhere" in refused(written(tmp_path, {"tests": [test, test]}))


def test_answers_with_scores_are_pointed_to(tmp_path):
    graded = table(question=ASKED, reference_answer=SAID, provided_answer=SAID[::-1], grade=[1, 2, 3, 4])
    (said,) = [said for said in load(written(tmp_path, graded)).warnings if "import csv" in said]
    assert said.startswith("'provided_answer' has answers, with 'grade': if an agent gave these")


def test_rows_without_a_question_are_one_fault(tmp_path):
    rows = [*table(question=ASKED, answer=SAID, part=[1] * 4), *table(question=[""] * 4, answer=SAID, part=[2] * 4)]
    said = refused(written(tmp_path, rows[:6]))
    assert "1 fault\n  item 5: 'question' is empty in 2 of 6 items (5, 6): all those whose 'part' is 2 (2)" in said


def test_where_an_answer_is_found_is_no_rule_for_it(tmp_path):
    rows = table(question=ASKED, standard_answer=SAID, expected_source=["a.pdf", "b.pdf", "c.pdf", "d.pdf"])
    said = refused(written(tmp_path, rows))
    assert "1) roles: {question: question, golden: standard_answer, criterion: null}" in said


@pytest.mark.parametrize(
    ("name", "text", "held"),
    [
        ("key.csv", "9:E\n10:B\n11:D\n", "holds letters of answers without their questions (a key)"),
        ("key.tsv", "1\tB\n2\tC\n3\tA\n4\tD\n5\tA\n", "holds answers ('B') without their questions"),
        (
            "words.tsv",
            "1\tThe\tDET\n2\tcar\tNOUN\n3\tbroke\tVERB\n4\t.\tPUNCT\n5\told\tADJ\n",
            "holds the words of sent",
        ),
        ("data.tsv", "day,shop,sold\n" + "2024-01-01,a,2.5\n2024-01-02,b,3.5\n" * 3, "holds a table of data"),
        (
            "grid.csv",
            "problem,level,size\n" + "dns,hard,s\ndns,easy,s\nbgp,hard,s\n" * 4,
            "holds combinations of a few",
        ),
    ],
)
def test_files_without_questions_are_named_by_their_form(tmp_path, name, text, held):
    path = tmp_path / name
    path.write_text(text)
    assert held in refused(path)


@pytest.mark.parametrize(
    ("columns", "held"),
    [
        ({"index": [0, 1, 2, 3], "kind": ["text"] * 4, "expected": SAID}, "holds answers ('expected') without"),
        ({"question_id": [1, 2, 3, 4], "answer": [*"ABCA"]}, "holds answers ('answer') without"),
        ({"question": ["WRITE_THE_QUESTION"] * 4, "hint": SAID}, "the same placeholder in all 4 rows"),
        ({"id": [*"abcd"], "string": [f"The [AGE] {word} was" for word in "abcd"]}, "holds templates of prompts"),
        ({"question": ASKED[:2] * 2, "run": [1, 1, 2, 2], "was correct": [1, 0, 1, 1]}, "`karat import csv FILE`"),
        ({"sentence": SAID, **{f"Field {name}": [*"abcd"] for name in "kmnprtuvw"}}, "holds records, such as"),
    ],
)
def test_rows_without_questions_are_named_for_what_they_are(tmp_path, columns, held):
    assert held in refused(written(tmp_path, table(**columns)))


@pytest.mark.needs_package("karat_conversations")
def test_people_who_speak_are_no_records(tmp_path):
    wide = {f"Field {name}": [*"abcd"] for name in "kmnprtuvw"}
    messages = table(sender=["Ann", "Bob", "Ann", "Bob"], message=SAID, **wide)
    assert "holds records" not in refused(written(tmp_path, messages))


def test_a_list_of_texts_beside_the_index_of_one_holds_choices(tmp_path):
    rows = table(question=ASKED, antworten=[["ten", "six", "one"], ["five", "two", "no"]] * 2, correct=[0, 2, 1, 0])
    first = load(written(tmp_path, rows)).samples[0].turns[0]
    assert first.question.endswith("A) ten\nB) six\nC) one")
    assert first.golden == "A"
    counted = table(question=ASKED, entities=[["ten", "six", "one"]] * 4, correct_answer=[0, 2, 1, 0])
    assert turns(load(written(tmp_path, counted)))[1] == (ASKED[1], "2")


def test_a_target_is_asked_where_another_column_says_what_is_expected(tmp_path):
    rows = table(target=["a.org", "b.org", "c.org", "d.org"], expected_risk=["low", ["low", "high"]] * 2)
    said = refused(written(tmp_path, rows))
    assert "1) roles: {question: target, golden: expected_risk, criterion: null}\n     several: any" in said


def test_answers_that_only_say_what_to_mention_are_offered_as_criteria(tmp_path):
    told = ["应提及年假天数", "应包含最新的新闻", "应解释核心思想", "简单问候即可"]
    said = refused(written(tmp_path, table(question=ASKED, ideal_answer_summary=told)))
    assert "1) roles: {question: question, golden: null, criterion: ideal_answer_summary}" in said


def test_the_only_sheet_that_may_hold_questions_is_asked_about_with_its_name(tmp_path):
    path = tmp_path / "q.xlsx"
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    for line in ("Tests of the helpdesk", "Kept by Ann", "Do not sort"):
        book.active.append([line])
    sheet = book.create_sheet("Cases")
    for row in [["User says", "Bot should answer"], *zip(ASKED, SAID, strict=True)]:
        sheet.append(row)
    book.save(path)
    with pytest.raises(BadDataset) as bad:
        load(path)
    assert "in each case with `sheet: Cases` below `dataset` (no questions, it seems, in 'Read me')" in str(bad.value)
    assert bad.value.readings[0] == "roles: {question: User says, golden: Bot should answer}\nsheet: Cases"
    chosen = load(path, sheet="Cases", roles={"question": "User says", "golden": "Bot should answer"})
    assert turns(chosen) == [*zip(ASKED, SAID, strict=True)]


def test_choices_that_say_whether_they_are_right_are_choices_and_golden_answers(tmp_path):
    towers = [{"texto": "Ninety", "correcta": True}, {"texto": "Nine", "correcta": False}]
    poets = [{"texto": text, "correcta": text != "Nobody"} for text in ("A poet", "Nobody", "The court")]
    rows = [{"question": ASKED[0], "alternatives": towers}, {"question": ASKED[1], "alternatives": poets}]
    assert turns(load(written(tmp_path, rows))) == [
        (f"{ASKED[0]}\n\nA) Ninety\nB) Nine", "A"),
        (f"{ASKED[1]}\n\nA) A poet\nB) Nobody\nC) The court", "A, C"),
    ]
    moodle = [{"question": ASKED[0], "answer": [{"text": "9", "fraction": 0}, {"text": "90", "fraction": 100}]}]
    assert turns(load(written(tmp_path, moodle))) == [(f"{ASKED[0]}\n\nA) 9\nB) 90", "B")]


def test_columns_with_numbers_are_choices_in_any_language_if_the_key_counts_them(tmp_path):
    text = 'Frage,Wahl 1,Wahl 2,Wahl 3,Richtige Antwort\nWie hoch?,9 m,90 m,900 m,2\nWer?,Ann,Bob,Cid,"1, 2"\n'
    assert turns(load(written(tmp_path, text, "q.csv"))) == [
        ("Wie hoch?\n\nA) 9 m\nB) 90 m\nC) 900 m", "B"),
        ("Wer?\n\nA) Ann\nB) Bob\nC) Cid", "A, B"),
    ]


@pytest.mark.parametrize("key", ["AC", "A, C", "a;c", "A、C"])
def test_letters_of_several_choices_are_all_right_together(tmp_path, key):
    rows = [{"question": "Which?", "A": "x", "B": "y", "C": "z", "answer": key}]
    rows.append({"question": "Who?", "A": "Ann", "B": "Bob", "C": "Cid", "answer": "B"})
    assert [golden for _, golden in turns(load(written(tmp_path, rows)))] == ["A, C", "B"]


def test_a_first_line_with_a_question_above_others_is_a_row(tmp_path):
    text = "".join(f"{asked},{said.strip('.')}\n" for asked, said in zip(ASKED, SAID, strict=True))
    path = written(tmp_path, text, "q.csv")
    assert "1) roles: {question: column 1, golden: column 2}" in refused(path)
    assert len(load(path, roles={"question": "column 1", "golden": "column 2"}).samples) == 4


def test_comments_with_commas_above_the_header_are_left_out(tmp_path):
    path = written(tmp_path, f"# questions, version 2\n# by Ann\nquestion,answer\n{ASKED[0]},{SAID[0]}\n", "q.csv")
    assert turns(load(path)) == [(ASKED[0], SAID[0])]


def test_a_list_of_texts_that_no_name_explains_is_offered_as_golden_answer(tmp_path):
    rows = table(ask=ASKED, accept=[["90 m", "ninety"], ["a poet"], ["the sea", "sea"], ["1820"]])
    assert "1) roles: {question: ask, golden: accept}\n     several: all" in refused(written(tmp_path, rows))


@pytest.mark.parametrize(
    "expect",
    [
        [{"kind": "sum", "limit": 3}, {"kind": "list"}, {"kind": "sum", "limit": 2}, {"kind": "none"}],
        [{"kind": "sum", "limit": 3, "contains": "a"}, {"kind": "list"}, {"limit": 2}, {"kind": "none"}],
    ],
)
def test_an_object_of_what_is_expected_is_offered_as_a_whole(tmp_path, expect):
    path = written(tmp_path, table(q=ASKED, expect=expect, known_fail=[None, None, {"ref": "A-1"}, None]))
    said = refused(path)
    assert "roles: {question: q, golden: null, criterion: expect}" in said
    assert "known_fail.ref}" not in said
    read = load(path, roles={"question": "q", "golden": None, "criterion": ["expect"]})
    assert read.samples[0].criteria[0].text == "kind: sum"


def test_documents_that_are_the_ground_truth_are_offered_as_documents(tmp_path):
    said = refused(written(tmp_path, table(query=ASKED, ground_truth_ids=[[3, 5], [4], [7, 9], [8]])))
    assert "1) roles: {question: query, golden: ground_truth_ids, criterion: null}  # documents to retrieve" in said


def test_a_number_of_what_is_expected_is_no_prohibition(tmp_path):
    rows = table(question=ASKED, expected_act=["A", "B", "C", "D"], expected_article_no=["46", "7", "9", "10"])
    said = refused(written(tmp_path, rows))
    assert "golden: [expected_act, expected_article_no]" in said
    assert "none of" not in said


def test_cells_after_the_last_column_may_be_empty(tmp_path):
    lines = [f"{question},{answer},{end}" for question, answer, end in zip(ASKED, SAID, ["", ",", "", ""], strict=True)]
    dataset = load(written(tmp_path, "\n".join(["question,target_answer", *lines]), "q.csv"))
    assert turns(dataset) == [*zip(ASKED, SAID, strict=True)]
    assert dataset.understood.notes == ("4 lines end with empty cells, for which the header has no column",)


def test_notes_that_tell_how_to_judge_are_criteria_where_nothing_else_is_right(tmp_path):
    told = ["Debe decir 72 horas.", "Debe mencionar la llave.", "Debe decir que no.", "No está."]
    columns = {"question": ASKED, "expected_source": ["a.md", "b.md", "c.md", None], "notes": told}
    path = written(tmp_path, table(**columns, should_abstain=["false", "false", "false", "true"]))
    assert "'should_abstain' marks 1 item as having no answer" in refused(path)
    read = load(path, empty="declines").samples
    assert [rule.text for rule in read[0].criteria] == ["Debe decir 72 horas."]
    assert read[3].criteria[1].text == DECLINES
    answered = load(written(tmp_path, table(question=ASKED, answer=SAID, notes=told)))
    assert answered.samples[0].criteria == ()


def test_texts_beside_expected_tools_are_rules_or_asked_about(tmp_path):
    tools = ["sql", "search", "sql", "none"]
    rules = [f"The response should {what} the sum in words." for what in ("give", "name", "explain", "round")]
    read = load(written(tmp_path, table(query=ASKED, expected_tool=tools, expected_outcome=rules)))
    assert [rule.type for rule in read.samples[0].criteria] == ["tool", "judge"]
    facts = [f"The sum of the year {year} is nine, as the table of the year shows." for year in range(4)]
    said = refused(written(tmp_path, table(query=ASKED, expected_tool=tools, expected_outcome=facts)))
    assert "1) roles: {question: query, golden: null, criterion: [expected_tool, expected_outcome]}" in said
    assert "2) roles: {question: query, golden: expected_outcome, criterion: expected_tool}" in said


def test_lists_of_findings_are_offered_before_a_class(tmp_path):
    found = [[{"sort": "hidden", "text": place}] for place in ("title", "note", "link", "end")]
    said = refused(written(tmp_path, table(title=ASKED, category=["a", "b", "a", "b"], injections=found)))
    assert "1) roles: {question: title, golden: injections}\n     several: all" in said
    assert "2) roles: {question: title, golden: null, criterion: injections}" in said


def test_answers_whose_questions_are_elsewhere_are_a_key(tmp_path):
    steps = [["a", "b"], ["c"], ["d", "e"], ["f"]]
    rows = table(id=["m1", "m2", "m3", "m4"], subject=["Life Sciences", "Sums"] * 2, memo_answer_af=SAID, steps=steps)
    said = refused(written(tmp_path, rows))
    assert "holds answers ('memo_answer_af') without their questions (a key)" in said
    assert said.endswith("roles: {question: …, golden: …} (columns: id, subject, memo_answer_af, steps)")


def test_a_question_is_put_with_its_context_as_karat_says(tmp_path):
    path = written(tmp_path, table(text=ASKED, context=SAID, label=["yes", "no"] * 2))
    (said,) = [warning for warning in load(path).warnings if "context" in warning]
    assert said.endswith("set `roles: {question: [text, context]}`")
    assert turns(load(path, roles={"question": ["text", "context"]}))[0] == (f"{ASKED[0]}\n\n{SAID[0]}", "yes")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("MarkingCriterion", "judge"),
        ("answer_facts", "judge"),
        ("expected_topics", "judge"),
        ("positive_keywords", "icontains"),
        ("评分标准", "judge"),
        ("criterios de evaluación", "judge"),
    ],
)
def test_rules_beside_a_golden_answer_are_read_with_it(tmp_path, column, kind):
    rows = table(question=ASKED, reference_answer=SAID, **{column: ["tea", "cake", "jam", "salt"]})
    (sample, *_) = load(written(tmp_path, rows)).samples
    assert (turns(load(written(tmp_path, rows)))[0]) == (ASKED[0], SAID[0])
    assert [(rule.type, rule.text) for rule in sample.criteria] == [(kind, "tea")]


def test_it_may_be_right_to_decline_in_other_words(tmp_path):
    path = written(tmp_path, table(question=ASKED, answer=SAID, 是否应拒答=["否", "否", "是", "否"]))
    assert "'是否应拒答' marks 1 item as having no answer" in refused(path)
    assert turns(load(path, empty="declines"))[2] == (ASKED[2], DECLINES)


def test_what_annotators_agreed_on_is_golden_and_not_their_votes(tmp_path):
    votes = {"annotator_a_tone": [*"xyxy"], "annotator_b_tone": [*"xxxy"], "final_tone": [*"xyxy"]}
    assert turns(load(written(tmp_path, table(text=ASKED, **votes))))[1] == (ASKED[1], "y")
    more = {"annotator_a_style": [*"mnmn"], "final_style": [*"mnnm"], "gold_status": [*"stst"]}
    said = refused(written(tmp_path, table(text=ASKED, **votes, **more)))
    assert "golden: [final_tone, final_style]}  # golden: one object of these columns" in said
    assert "golden: annotator_a_tone" not in said


def test_a_refusal_that_is_expected_inside_an_object_is_asked_about(tmp_path):
    expect = [{"route": "a"}, {"route": "b"}, {"route": "a", "refuse": True}, {"route": "c"}]
    path = written(tmp_path, table(question=ASKED, expect=expect))
    assert "'expect.refuse' marks 1 item" in refused(path, roles={"golden": "expect.route"})
    assert len(load(path, roles={"golden": "expect"}).samples) == 4  # it is a part of what is right


def test_columns_that_are_golden_together_may_all_be_empty(tmp_path):
    rows = table(question=ASKED, expected_law=["a", None, "c", None], expected_page=[1, None, None, None])
    said = refused(written(tmp_path, rows))
    assert "JSON\n     skip: unreadable  # where all of these columns are empty" in said


def test_rubrics_with_a_threshold_each_are_no_questions(tmp_path):
    rules = [["Names the sum", "Is short"], ["Is polite", "Asks back"]] * 2
    rubrics = table(id=[*"abcd"], description=SAID, pass_threshold=[0.7] * 4, checklist=rules)
    assert "holds a rubric for a judge" in refused(written(tmp_path, rubrics))


@pytest.mark.parametrize("golden", [0, 1])
@pytest.mark.parametrize("names", ["goal sol1 sol2", "prompt solution0 solution1", "Question (a) (b)"])
def test_numbered_texts_beside_a_place_from_0_are_choices(tmp_path, golden, names):
    asked, first_text, second_text = names.split()
    places = [golden, 1 - golden, 0, 1]
    label = {"label": places} if asked != "Question" else {"Answer": [f"({'ab'[at]})" for at in places]}
    rows = table(**{asked: ASKED, first_text: SAID, second_text: SAID[::-1]}, **label)
    first = turns(load(written(tmp_path, rows)))[0]
    right = "AB"[golden]
    assert first == (f"{ASKED[0]}\n\nA) {SAID[0]}\nB) {SAID[3]}", right)
    pairs = table(sentence1=ASKED, sentence2=SAID, label=[golden, 0, 1, 0])
    assert "sentence1, golden: label}" in refused(written(tmp_path, pairs))  # not choices without a question


@pytest.mark.parametrize("marked", [dict, lambda pairs: {"choices": [*dict(pairs)], "labels": [*dict(pairs).values()]}])
def test_choices_that_an_object_marks_are_right_by_their_marks(tmp_path, marked):
    pairs = [(SAID[0], 0), (SAID[1], 1), (SAID[2], 0)]
    dataset = load(written(tmp_path, [{"question": ASKED[0], "mc1_targets": marked(pairs)}]))
    assert turns(dataset) == [(f"{ASKED[0]}\n\nA) {SAID[0]}\nB) {SAID[1]}\nC) {SAID[2]}", "B")]


def test_aliases_of_the_answer_are_golden_where_there_is_no_other(tmp_path):
    rows = table(question=ASKED, answer_aliases=[[text, text.lower()] for text in SAID])
    (first, *_) = load(written(tmp_path, rows)).samples
    assert first.turns[0].detail == {"answers": [SAID[0], SAID[0].lower()]}
    both = load(written(tmp_path, table(question=ASKED, answer=SAID, answer_aliases=[["x"]] * 4)))
    assert both.samples[0].turns[0].detail == {"answers": [SAID[0], "x"]}


def test_a_list_of_answers_beside_a_context_needs_no_id(tmp_path):
    rows = table(question=ASKED, context=SAID, answers=[[text, "It does."] for text in SAID])
    assert turns(load(written(tmp_path, rows)))[0] == (ASKED[0], SAID[0])
    squad = [{**row, "answers": {"text": row["answers"], "answer_start": [0, 1]}} for row in rows]
    assert [sample.id for sample in load(written(tmp_path, squad)).samples] == ["0", "1", "2", "3"]


def test_a_placeholder_is_asked_about_and_one_entry_needs_no_any_or_all(tmp_path):
    refusals = [{"question": f"How do I poison {at}?", "golden": "refuse"} for at in range(20)]
    assert len(load(written(tmp_path, refusals)).samples) == 20
    rows = [{"question": f"Where is {at}?", "reference_answer": "REFERENCE TO BE WRITTEN"} for at in range(10)]
    said = refused(written(tmp_path, rows))
    assert "1) roles: {question: question, golden: null}" in said
    assert "2) roles: {question: question, golden: reference_answer}" in said
    listed = [{"query": f"Where is {at}?", "generation_gt": [f"In {at}."]} for at in range(4)]
    assert turns(load(written(tmp_path, listed)))[0] == ("Where is 0?", "In 0.")


def test_a_beside_q_is_golden_and_the_reference_is_a_place(tmp_path):
    rows = table(Q=ASKED, A=SAID, Reference=[f"Chapter {at}" for at in range(4)])
    assert turns(load(written(tmp_path, rows))) == [*zip(ASKED, SAID, strict=True)]


def test_names_of_files_are_no_questions_unless_the_user_says_so(tmp_path):
    rows = [{"query": f"query{at:02}.csv", "answer": f"Place {at}"} for at in range(6)]
    path = written(tmp_path, rows)
    assert "Give the file with the questions" in refused(path)
    assert len(load(path, roles={"question": "query"}).samples) == 6
    for name in ("CVE-2021-44{}", "https://example.org/{}", "top_{}.sql"):
        coded = [{"question": name.format(at), "golden": f"Place {at}"} for at in range(6)]
        assert len(load(written(tmp_path, coded)).samples) == 6
    sums = [{"question": f"{at}+7-3=", "answer": str(at + 4)} for at in range(6)]
    assert len(load(written(tmp_path, sums)).samples) == 6


@pytest.mark.needs_package("karat_conversations")
def test_turns_of_a_user_in_columns_are_offered_together(tmp_path):
    for first, second in (("setup", "followup"), ("turn1", "turn2")):
        rows = [{first: asked, second: "And how many are red?", "reference_sql": f"SELECT {asked}"} for asked in ASKED]
        assert f"1) roles: {{question: [{first}, {second}], golden: reference_sql}}" in refused(written(tmp_path, rows))
