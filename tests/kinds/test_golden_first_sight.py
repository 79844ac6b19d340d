"""Files of questions in shapes that are common and that no name explains, at first sight."""

from __future__ import annotations

import json

import pytest
from tests.kinds.question_files import ASKED, SAID, load, refused, table, turns, written

from karat.errors import BadDataset


def test_parts_of_a_file_with_one_question_are_read_as_those_with_several(tmp_path):
    tests = {"easy": {"a": {"question": "1+1?", "answer": "2"}, "b": {"question": "2+2?", "answer": "4"}}}
    path = written(tmp_path, {**tests, "hard": {"c": {"question": "17*19?", "answer": "323"}}})
    assert "easy, hard; '*' reads all of them" in refused(path)
    assert [golden for _, golden in turns(load(path, split="*"))] == ["2", "4", "323"]


def test_questions_by_id_are_questions(tmp_path):
    path = written(tmp_path, dict(zip("abcd", ASKED, strict=True)))
    assert turns(load(path)) == [(asked, None) for asked in ASKED]


@pytest.mark.needs_package("karat_conversations")
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
            {"subject": ["Invoice", "Server", "Offer", "Bill"], "body": SAID[::-1], "queue": [*"abab"]},
            "question: [subject, body], golden: queue}",
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


@pytest.mark.needs_package("karat_conversations")
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


def test_an_empty_object_is_no_criterion(tmp_path):
    rules = [{"says": "ninety"}, {}, {"says": "north"}, None]
    roles = {"question": "question", "golden": None, "criterion": "rules"}
    read = load(written(tmp_path, table(question=ASKED, rules=rules)), roles=roles).samples
    assert [len(sample.criteria) for sample in read] == [1, 0, 1, 0]


def test_the_place_of_the_right_choice_is_no_score_even_if_it_is_0_or_1(tmp_path):
    rows = table(question=ASKED, choices=[["yes", "no"]] * 4, correct=[0, 1, 0, 1])
    assert [golden for _, golden in turns(load(written(tmp_path, rows)))] == ["A", "B", "A", "B"]


def test_what_a_user_says_beside_the_tool_to_call_is_a_question(tmp_path):
    rows = table(user=ASKED, tool=["find", "list", "find", "add"], args=[{"at": at} for at in range(4)])
    with pytest.raises(BadDataset) as bad:
        load(written(tmp_path, rows))
    assert any("question: user" in reading for reading in bad.value.readings)


def test_a_row_without_a_question_among_many_is_left_out(tmp_path):
    rows = [{"question": f"What is {at} + {at}?", "answer": str(2 * at)} for at in range(12)]
    dataset = load(written(tmp_path, [*rows, {"question": "", "answer": "none"}]))
    assert len(dataset.samples) == 12
    assert "1 unreadable item left out: item 13 'question' is empty" in dataset.warnings[0]
    assert "item 3" in refused(written(tmp_path, [*rows[:2], {"question": "", "answer": "none"}]))


def test_a_number_of_yaml_that_begins_with_0_is_a_text(tmp_path):
    text = "".join(f"- id: 0{at}\n  question: {ASKED[at]}\n  answer: {SAID[at]}\n" for at in range(4))
    dataset = load(written(tmp_path, text, "q.yaml"), id_key="id")
    assert [sample.id for sample in dataset.samples] == ["00", "01", "02", "03"]
    assert dataset.understood.notes == ("read as text, and no number: 00, 01, 02, 03",)


def test_cells_without_a_name_in_the_header_are_a_column(tmp_path):
    text = "id\tquestion\n" + "".join(f"{at}\t{ASKED[at]}\t{SAID[at]}\n" for at in range(4))
    path = written(tmp_path, text, "q.tsv")
    assert turns(load(path, roles={"golden": "column 3"})) == [*zip(ASKED, SAID, strict=True)]
    text = "question,answer\n" + "".join(f"{ASKED[at]},{SAID[at]},\n" for at in range(3)) + "a,b, c\n"
    assert "has 3 cells, the header has 2" in refused(written(tmp_path, text, "q.csv"))


def test_an_answer_that_no_name_explains_is_offered_with_where_it_is_right_to_decline(tmp_path):
    flags = [False, False, False, True]
    rows = table(question=ASKED, expected_expert=[*"abab"], antwort_knapp=[*SAID[1:], None], muss_ablehnen=flags)
    with pytest.raises(BadDataset) as bad:
        load(written(tmp_path, [{**row, "expected_place": "x"} for row in rows]))
    assert "golden: antwort_knapp" in bad.value.readings[0]
    assert "empty: declines  # 'antwort_knapp' is empty in 1 of 4 rows, as 'muss_ablehnen' says" in str(bad.value)


def test_documents_to_retrieve_are_among_the_golden_answers_that_are_offered(tmp_path):
    path = written(tmp_path, table(question=ASKED, gold_sources=["a.pdf", "b.pdf", "c.pdf", "a.pdf"], anchor=SAID))
    assert "golden: gold_sources}  # documents to retrieve" in refused(path)
    listed = [[{"path": f"src/{at}.py", "symbol": f"f{at}"}] for at in range(4)]
    path = written(tmp_path, table(query=ASKED, operation=[*"abab"], relevant=listed))
    assert '1) roles: {question: query, golden: "relevant[].path"}' in refused(path)


def test_all_columns_that_are_called_alike_are_one_golden_answer_together(tmp_path):
    expected = {f"expected_{name}": [*"abab"] for name in ("current_state", "operator", "next_state")}
    told = refused(written(tmp_path, table(text=ASKED, **expected)))
    assert "golden: [expected_current_state, expected_operator, expected_next_state]" in told


def test_terms_that_most_golden_answers_lack_are_asked_about(tmp_path):
    rows = table(question=ASKED, answer=SAID, must_contain=[*SAID[1:], "Ninety"])
    told = refused(written(tmp_path, [*rows, {**rows[0], "question": "How wide is it?"}]))
    assert "whether answers must hold 'must_contain', which most golden answers lack" in told
    assert "1) roles: {question: question, golden: answer, criterion: null}" in told
    path = written(tmp_path, table(question=ASKED, answer=SAID, must_contain=["metres", "poet", "sea", "fall"]))
    assert len(load(path).samples) == 4


def test_questions_beside_longer_texts_may_be_what_is_made_of_these(tmp_path):
    texts = [f"{said} " * 9 for said in SAID]
    path = written(tmp_path, table(input=texts, target=ASKED))
    told = refused(path)
    assert "roles: {question: input, golden: target}" in told
    assert "roles: {question: target, golden: null}" in told


def test_files_without_questions_are_named_by_their_structure(tmp_path):
    people = {"mail": [f"{name}@a.example" for name in "abcd"], "phone": [f"+1-555-{at}" for at in range(4)]}
    places = {"street": [f"{at} Main St" for at in range(4)], "name": ["Ann B", "Bo C", "Cy D", "Di E"]}
    keyed = table(key=["ab_01", "ab_02", "ab_03", "ab_04"], **people, **places)
    assert "holds records" in refused(written(tmp_path, keyed))
    texts = [f"{said} {said} {said} {said} {said}" for said in SAID]
    grouped = table(
        file=["a.jpg", "b.jpg", "c.jpg", "d.jpg"], content_x=texts, tag=[1, 1, 2, 1], article_id=[1, 1, 2, 2]
    )
    assert "holds texts ('content_x') and the group of each ('article_id')" in refused(written(tmp_path, grouped))
    scores = {f"judge{judge}_{what}": [0.1, 0.2, 0.9, 0.4] for judge in (1, 2) for what in ("belief", "clarity")}
    judged = table(proposition=SAID, category=[*"abab"], **scores)
    assert "values that each of several gave ('judge1_belief', 'judge2_belief')" in refused(written(tmp_path, judged))


def test_placeholders_in_golden_answers_are_said(tmp_path):
    goldens = ["It is {height} metres.", "By {{author}}.", "{sea}", "In 1820."]
    told = load(written(tmp_path, table(question=ASKED, answer=goldens))).warnings
    assert any("hold placeholders that nothing fills in (3 of 4: {height})" in one for one in told)
    goldens = ["$\\frac{a}{b}$", "x_{n}", '{"a": 1}', "<p>{text}</p>"]
    told = load(written(tmp_path, table(question=ASKED, answer=goldens))).warnings
    assert not any("placeholders" in one for one in told)


def test_lines_that_ask_and_answer_in_turn_are_pairs(tmp_path):
    text = "".join(f'"{asked}"\n"{said}"\n' for asked, said in zip(ASKED, SAID, strict=True))
    path = written(tmp_path, text, "q.csv")
    dataset = load(path)
    assert turns(dataset) == [*zip(ASKED, SAID, strict=True)]
    assert "rows: two lines each, a question and its answer" in dataset.understood.notes
    assert turns(load(path, roles={"question": "question", "golden": None}))[0] == (ASKED[0], None)
    asked = written(tmp_path, "question\n" + "".join(f'"{one}"\n' for one in ASKED), "r.csv")
    assert turns(load(asked)) == [(one, None) for one in ASKED]
