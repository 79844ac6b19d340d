"""Files of questions in shapes that are common and that no name explains, at first sight."""

from __future__ import annotations

import json

import openpyxl
import pytest

from karat.errors import BadDataset
from karat.kinds.golden import Golden

ASKED = ["How high is the tower?", "Who wrote the old play?", "Where does the river end?", "When did it begin?"]
SAID = ["Ninety metres.", "A poet of the court did.", "In the cold sea.", "In the spring of 1820."]


def load(path, **options):
    return Golden(Golden.Options(**options)).load(path)


def written(folder, rows, name="q.json"):
    path = folder / name
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return path


def table(**columns):
    return [{name: values[at] for name, values in columns.items()} for at in range(4)]


def refused(path, **options):
    with pytest.raises(BadDataset) as bad:
        load(path, **options)
    return str(bad.value)


def turns(dataset):
    return [(turn.question, turn.golden) for sample in dataset.samples for turn in sample.turns]


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


def test_parts_of_a_file_with_one_question_are_read_as_those_with_several(tmp_path):
    tests = {"easy": {"a": {"question": "1+1?", "answer": "2"}, "b": {"question": "2+2?", "answer": "4"}}}
    path = written(tmp_path, {**tests, "hard": {"c": {"question": "17*19?", "answer": "323"}}})
    assert "easy, hard; '*' reads all of them" in refused(path)
    assert [golden for _, golden in turns(load(path, split="*"))] == ["2", "4", "323"]


def test_questions_by_id_are_questions(tmp_path):
    path = written(tmp_path, dict(zip("abcd", ASKED, strict=True)))
    assert turns(load(path)) == [(asked, None) for asked in ASKED]


def test_each_question_of_a_list_in_a_row_is_a_question(tmp_path):
    rows = [{"name": "towers", "questions": ASKED[:3]}, {"name": "plays", "questions": ASKED[3:]}]
    roles = {"question": "question", "golden": None}
    assert turns(load(written(tmp_path, rows), roles=roles)) == [(asked, None) for asked in ASKED]


def test_tables_in_markdown_with_one_header_are_read_together(tmp_path):
    part = "## {}\n\n| Question | Answer |\n|---|---|\n| {} | {} |\n\n"
    text = "".join(part.format(at, ASKED[at], SAID[at]) for at in range(4))
    assert turns(load(written(tmp_path, text, "q.md"))) == [*zip(ASKED, SAID, strict=True)]


TEXTS = [f"We offer {at} chairs of wood." for at in range(4)]
VALUES = {
    "transcript": [f"send me {at} boxes of long screws" for at in range(4)],
    "goods": ["screws", "nails", "a", "b"],
}


@pytest.mark.parametrize(
    ("columns", "reading"),
    [
        (VALUES | {"quantity": [0, 1, 2, 3]}, "question: transcript, golden: [goods, quantity]}"),
        ({"question": ASKED, "min": [1, 2, 3, 4], "max": [5, 6, 7, 8]}, "question: question, golden: [min, max]}"),
        ({"question": ASKED, "notes": SAID}, "question: question, golden: notes}"),
        (
            {"question": ASKED, "metadata": [{"gold_answer": said, "page": 1} for said in SAID]},
            "question: question, golden: metadata.gold_answer}",
        ),
        (
            {"premise": TEXTS, "hypothesis": SAID, "label": ["yes", "no", "yes", "no"]},
            "question: [premise, hypothesis], golden: label}",
        ),
        (
            {
                "instruction": ["Decline it.", "Ask for the price.", "Say yes.", "Wait."],
                "email": TEXTS,
                "must_mention": ["thank", "price", "yes", "no"],
            },
            "question: [instruction, email], golden: null, criterion: must_mention}",
        ),
        (
            {
                "subject": ["Invoice", "Server", "Offer", "Bill"],
                "body": SAID,
                "category": [*"abab"],
                "priority": [*"xyxy"],
            },
            "question: [subject, body], golden: priority}",
        ),
        (
            {"question": ASKED, "Candidate Answer": SAID, "Model Answer": SAID[::-1]},
            "question: question, golden: Model Answer, answer: Candidate Answer}",
        ),
        ({"task": ASKED, "final_state": [{"open": at} for at in range(4)]}, "question: task, golden: final_state}"),
        (
            {"de": ["Guten Tag", "Gute Nacht", "Hallo", "Tag"], "en": ["Good day", "Night", "Hello", "Hi"]},
            "question: de",
        ),
        (
            {"用户话术": ["帮我订明天的票", "取消我的订单", "今天天气", "你好吗"], "槽": [*"abcd"]},
            "question: 用户话术, golden",
        ),
    ],
)
def test_what_no_name_explains_is_offered_whatever_its_form(tmp_path, columns, reading):
    path = written(tmp_path, table(**columns))
    with pytest.raises(BadDataset) as bad:
        load(path)
    assert any(reading in offered for offered in bad.value.readings), bad.value


def test_choices_may_be_named_as_their_columns_are(tmp_path):
    rows = [{"question": "Which?", "Option A": "x", "Option B": "y", "correct": "Option B"}]
    rows.append({"question": "Who?", "Option A": "Ann", "Option B": "Bob", "correct": "Option A"})
    assert [golden for _, golden in turns(load(written(tmp_path, rows)))] == ["B", "A"]


def test_messages_beside_what_is_expected_are_a_question_a_row(tmp_path):
    chats = [json.dumps([{"role": "user", "content": asked}]) for asked in ASKED]
    rows = table(messages=chats, expected_answer=SAID)
    assert turns(load(written(tmp_path, rows))) == [*zip(ASKED, SAID, strict=True)]


def test_answers_with_verdicts_are_a_test_of_a_judge(tmp_path):
    assert "a test of a judge, and no questions" in refused(
        written(tmp_path, table(answer=SAID, verdict=["pass", "fail", "pass", "fail"]))
    )


def test_a_header_below_names_of_groups_is_the_header(tmp_path):
    text = ",Input,,Expected output,\nNo,Question,Language,Answer,Source\n" + "".join(
        f"{at},{asked},en,{said},a.pdf\n" for at, (asked, said) in enumerate(zip(ASKED, SAID, strict=True))
    )
    dataset = load(written(tmp_path, text, "q.csv"))
    assert turns(dataset) == [*zip(ASKED, SAID, strict=True)]
    assert dataset.understood.notes == ("left out above the header: Input, Expected output",)


def test_the_index_of_an_answer_counts_choices(tmp_path):
    rows = [{"question": "Which?", "option_1": "x", "option_2": "y", "answer_index": 1}]
    rows.append({"question": "Who?", "option_1": "Ann", "option_2": "Bob", "answer_index": 2})
    assert [golden for _, golden in turns(load(written(tmp_path, rows)))] == ["A", "B"]


def test_what_a_tool_is_given_is_no_golden_answer(tmp_path):
    expect = [{"tool": "list", "args": {"month": at}, "must_not": ["delete"]} for at in range(4)]
    read = load(written(tmp_path, table(input=ASKED, expect=expect))).samples[0]
    assert read.turns[0].golden is None
    assert [rule.type for rule in read.criteria] == ["tool", "not-icontains"]


def test_ways_to_ask_are_not_taken_for_the_question_beside_them(tmp_path):
    rows = table(canonical=ASKED, paraphrases=[["A?", "B?"], ["C?", "D?"], ["E?", "F?"], ["G?", "H?"]], answer=SAID)
    assert "1) roles: {question: canonical, golden: answer}" in refused(written(tmp_path, rows))
