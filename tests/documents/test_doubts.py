"""What is said of columns whose values speak against their roles."""

from __future__ import annotations

import json

import pytest

from karat.documents.columns import columns_of
from karat.documents.doubts import Seen, doubts, marker_in, turned_round

QUESTIONS = ["How do I get my money back?", "Where is the office of the company?", "What does the plan cost?"]
ANSWERS = ["Ask for it within 30 days.", "In the centre of Oslo.", "Nine dollars a month."]


def said(roles, *, named=(), rows=6, **columns):
    """The doubts about rows whose columns repeat the given values."""
    table = [{name: values[at % len(values)] for name, values in columns.items()} for at in range(rows)]
    return doubts(Seen(rows=table, columns=columns_of(table), roles=roles), named=named)


def golden(values, **more):
    return said({"question": ["q"], "golden": ["g"]}, q=QUESTIONS, g=values, **more)


@pytest.mark.parametrize(
    ("values", "start"),
    [
        (["refund", "contact", "price"], None),  # three different words in six rows may be answers
        (
            ["refund", "refund", "contact"],
            "the golden answers in 'g' are labels (2 different in 6 rows: refund, contact)",
        ),
        (["get_refund", "find-office", "ask.price"], "the golden answers in 'g' are labels (3 different in 6 rows: "),
        (
            ["prices.pdf", "office.md", "terms of use.pdf"],
            "the golden answers in 'g' are labels (3 different in 6 rows: ",
        ),
        (["9", "12", "9"], None),
        (["A", "B", "A"], None),
        (ANSWERS, None),
        (
            ["The agent should ask for the receipt.", *ANSWERS[1:]],
            "golden answers in 'g' describe an answer instead of ",
        ),
        (["Refuses politely.", "Mentions Oslo", "It must name the price"], "golden answers in 'g' describe an answer "),
        (["It is nine dollars", "The system is free", "You should ask for it"], None),
        (["La réponse doit citer la loi", *ANSWERS[1:]], "golden answers in 'g' describe an answer "),
    ],
)
def test_golden_answers_that_are_labels_or_instructions_are_named(values, start):
    found = golden(values)
    assert (found[0].startswith(start), len(found)) == (True, 1) if start else found == []


def test_labels_that_are_put_into_one_text_are_named():
    values = ["Clean", "Typo", "Typo,Spam", "Spam", "Clean", "Spam,Typo", "Clean", "Spam", "Typo", "Clean"]
    roles = {"question": ["q"], "golden": ["g"]}
    words = [f"What is wrong with text {number}?" for number in range(20)]
    doubt = "4 golden answers put several labels into one text, such as 'Typo,Spam': only the same labels in the same "
    found = [text for text in said(roles, q=words, g=values, rows=20) if "put several labels" in text]
    assert found == [f"{doubt}order are right"]
    assert not any("put several" in text for text in said(roles, q=words, g=["Yes, it is", "No", "It is"], rows=20))


def test_yes_and_no_answer_questions_that_ask_for_them_and_labels_are_fine_if_agents_answer_with_them():
    assert golden(["yes", "no", "no"]) == []
    told = ["Tell me of the refund", "Describe the office", "Explain the price"]
    (found,) = said({"question": ["q"], "golden": ["g"]}, q=told, g=["yes", "no", "no"])
    assert found.startswith("the golden answers in 'g' are labels (2 different in 6 rows: yes, no)")
    roles = {"question": ["q"], "golden": ["g"], "answer": ["a"]}
    assert said(roles, q=QUESTIONS, g=["spam", "ham", "spam"], a=["ham", "ham", "spam"]) == []


def test_a_role_that_the_user_named_is_not_doubted():
    assert golden(["refund", "refund", "contact"], named={"golden"}) == []


def test_questions_that_are_codes_are_named():
    assert said({"question": ["q"]}, q=["p1_abs", "p2_max", "p3_min"]) == [
        "the questions in 'q' are ids, files or links, not words: p1_abs"
    ]


@pytest.mark.parametrize(
    ("answers", "sentences"),
    [
        (["[ERROR: 429 quota]", *ANSWERS], ["2 answers of 6 in 'a' may be an error: [ERROR: 429 quota]"]),
        (["ERREUR: quota", "Fehler: Zeit", *ANSWERS], ["3 answers of 6 in 'a' may be an error: ERREUR: quota"]),
        (
            ["n1: Error code: 429 - {'error': {}}", *ANSWERS],
            ["2 answers of 6 in 'a' may be an error: n1: Error code: 429 - {'error': {}}"],
        ),
        (
            [
                "Errors are shown in red.",
                "An error costs money.",
                "Fehler sind rot.",
                "Erreurs de calcul",
                "HTTP is a protocol.",
            ],
            [],
        ),
        (
            [f"{n} {'word ' * 20}"[:60] for n in "123456"],
            ["6 answers in 'a' end after 60 characters: they seem to be cut"],
        ),
        ([*QUESTIONS], []),
        ([question * 2 for question in QUESTIONS], ["'q' and 'a' say the same in 6 of 6 rows"]),
    ],
)
def test_answers_that_are_errors_or_cut_or_the_question_are_named(answers, sentences):
    asked = [question * 2 for question in QUESTIONS] if "say the same" in "".join(sentences) else QUESTIONS
    assert said({"question": ["q"], "answer": ["a"]}, q=asked, a=answers) == sentences


def test_scores_that_are_properties_means_or_read_as_systems_are_named():
    assert said({"answer": ["a"], "score": ["s"]}, a=ANSWERS, s=[0.5, 250.0, 12.0]) == [
        "'s' is taken as a score and holds 0.5 to 250: it may be a property"
    ]
    assert said({"answer": ["a"], "score": ["text_length"]}, a=ANSWERS, text_length=[1, 3, 2]) == [
        "'text_length' is taken as a score and holds 1 to 3: it may be a property"
    ]
    assert said({"answer": ["a"], "score": ["s"]}, a=ANSWERS, s=[0.5, 1, 0.25]) == []
    assert said({"answer": ["a"], "score": ["s"]}, a=ANSWERS, s=[True], rows=19) == []
    assert said({"answer": ["a"], "score": ["s"]}, a=ANSWERS, s=[True], rows=20) == [
        "'s' is True in every row, so it tells no answers apart"
    ]
    assert said({"score": ["accuracy"]}, technique=["cot", "few"], accuracy=[0.5, 0.75], correct=[50, 75]) == [
        (
            "rows hold no text and may be means of several answers, as 'correct' says: "
            "intervals and differences count each row as one answer"
        )
    ]
    assert said({"score": ["accuracy"]}, technique=["cot", "few"], accuracy=[0.5, 0.75]) == []
    assert said({"question": ["q"], "answer": ["x", "y"]}, q=QUESTIONS, x=[1, 3, 2], y=[0.5, 2, 2]) == [
        "the columns taken as answers of several systems hold numbers or verdicts: x, y"
    ]


def test_foreign_text_in_a_doubt_is_short_and_on_one_line():
    (found,) = golden(["The agent must say\x1b[31m\n" + "very " * 500, *ANSWERS[1:]])
    assert "\x1b" not in found and "\n" not in found and len(found) < 250


@pytest.mark.needs_package("karat_imports")
def test_check_import_and_score_say_what_they_doubt(karat, here):
    rows = [
        {"question": f"{QUESTIONS[n % 3]} ({n})", "expected_answer": ["refund", "contact"][n % 2]} for n in range(8)
    ]
    (here / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    doubt = "the golden answers in 'expected_answer' are labels (2 different in 8 rows: refund, contact)"
    checked = karat("check", "questions.jsonl")
    assert (checked.code, doubt in " ".join((checked.out + checked.err).split())) == (0, True)
    answered = [{**row, "model_answer": f"{ANSWERS[n % 3]} ({n})"} for n, row in enumerate(rows)]
    (here / "answers.jsonl").write_text("\n".join(map(json.dumps, answered)))
    for words in (["score", "answers.jsonl", "--scorer", "equals"], ["import", "csv", "answers.jsonl"]):
        done = karat(*words)
        assert (done.code, doubt in " ".join((done.out + done.err).split())) == (0, True), done.err


def test_columns_that_are_named_for_scores_and_answers_and_hold_nothing_are_named():
    roles = {"question": ["q"], "answer": ["a"]}
    (found,) = said(roles, q=QUESTIONS, a=ANSWERS, correctness=[""], gold_answer=[None], notes=[""])
    assert found == "empty in every row: 'correctness', 'gold_answer'"


@pytest.mark.parametrize(
    ("scores", "marked"),
    [
        ([0.5, -1, 1.0], (-1, True)),
        ([1, 4, 5, -1], (-1, True)),  # of a scale from 1
        ([0, 1, -1], (-1, False)),  # lost, drawn and won
        ([4, 0, -1], (-1, False)),  # points off for what is wrong
        ([3, 999, 80], (999, True)),
        ([0.5, 0.0, 1.0], None),
        ([-1, -2, 2], None),
        ([-1], None),
    ],
)
def test_a_number_off_the_scale_of_scores_means_that_there_is_none(scores, marked):
    column = columns_of([{"quality": score} for score in scores])["quality"]
    assert marker_in(column) == marked


def test_a_few_golden_answers_that_tell_how_to_judge_are_enough_for_a_doubt():
    told = [f"It is number {at}, as the list says." for at in range(60)]
    assert golden(told, rows=60) == golden([*told[:59], "The answer must say so."], rows=60) == []
    (found,) = golden([*told[:29], "The answer must say that nothing is known."], rows=60)
    assert "(2 of 60: The answer must say that" in found


def test_golden_answers_that_say_there_is_none_are_named():
    words = ["in May", "in June", "at noon", "never", "nan", "nan"]
    found = "2 cells hold the text 'nan' in 'g': it may mean that there is none"
    assert said({"golden": ["g"]}, g=words) == [found]
    assert said({"golden": ["g"]}, g=[*words[:4], "None"]) == [
        found.replace("2 cells hold", "1 cell holds").replace("nan", "None")
    ]
    classes = ["None", "spam", "spam", "None", "ham", "spam", "None", "ham", "spam"]
    found = said({"golden": ["g"]}, rows=9, g=classes)
    assert not any("there is none" in text for text in found)


@pytest.mark.parametrize(
    ("last", "answer", "named"),
    [
        ("AVERAGE SCORE (final)", "", True),
        ("Итого", "", True),
        ("Mean of what?", "It depends.", False),
        ("Meanwhile?", "", False),
    ],
)
def test_a_last_row_that_sums_up_is_named(last, answer, named):
    questions = [*(f"{number}, what is it?" for number in range(5)), last]
    found = said({"question": ["q"], "answer": ["a"]}, q=questions, a=["b.", "c.", "d.", "e.", "f.", answer])
    assert found == ([f"the last row seems to sum up the others and has no answer: {last}"] if named else [])


ASKED = {"question": ["q"], "golden": ["g"]}


@pytest.mark.parametrize(
    ("columns", "doubted"),
    [
        pytest.param({"g": ["x", "y"]}, True, id="a third are different"),
        pytest.param({"g": ["x", "y", "z"]}, False, id="half are different"),
        pytest.param({"g": ["x" * 41, "y"]}, False, id="a long one"),
        pytest.param({"g": ["one two three four", "y"]}, True, id="four words"),
        pytest.param({"g": ["one two three four five", "y"]}, False, id="five words"),
        pytest.param({"g": ["True", "wrong", "no"]}, True, id="verdicts"),
        pytest.param({"g": ["a.b"] * 9 + ["c d"]}, True, id="nearly all are codes"),
        pytest.param({"g": ["1.5", "2.5"]}, False, id="numbers"),
        pytest.param({"g": [["x"], ["y"]]}, False, id="lists"),
        pytest.param({"g": ["x", "y"], "q": ["A1", "B1"]}, False, id="no questions in words"),
    ],
)
def test_which_golden_answers_are_labels(columns, doubted):
    rows = 10 if len(columns["g"]) == 10 else 6
    found = said(ASKED, **{"q": QUESTIONS, **columns}, rows=rows)
    assert [text[:31] for text in found] == ["the golden answers in 'g' are l"] * doubted


def test_a_name_may_say_that_golden_answers_are_labels():
    roles = {"question": ["q"], "golden": ["expected_intent"]}
    intents = [f"wish {at}" for at in range(6)]
    assert said(roles, q=QUESTIONS, expected_intent=intents)[0].startswith("the golden answers in 'expected_intent' a")
    assert said({**roles, "choices": ["c"]}, q=QUESTIONS, expected_intent=intents) == []
    assert said(roles, q=QUESTIONS, expected_intent=intents, rows=4) == []
    assert said(roles, q=QUESTIONS, expected_intent=[str(at) for at in range(6)]) == []


def test_cells_inside_objects_are_doubted_like_others():
    rows = [{"q": QUESTIONS[at % 3], "in": {"g": "xy"[at % 2]}} for at in range(6)]
    seen = Seen(rows=rows, columns=columns_of(rows), roles={"question": ["q"], "golden": ["in.g"]})
    assert seen.texts("in.g") == [*"xyxyxy"]
    assert seen.texts("in") == [""] * 6
    assert seen.filled("answer") == []
    assert seen.filled("golden") == [*"xyxyxy"]
    assert doubts(seen)[0].startswith("the golden answers in 'in.g' are labels (2 different in 6 rows: x, y)")


@pytest.mark.parametrize(
    ("questions", "rows", "doubted"),
    [
        (["a_b"], 5, True),
        (["a_b"], 4, False),
        (["a_b"] * 9 + ["Why is it?"], 10, True),
        (["a_b"] * 8 + ["Why is it?"] * 2, 10, False),
        (["LONG_NAME", "https://x.org", "a file.pdf"], 6, True),
        (["word", "other"], 6, False),
    ],
)
def test_how_many_questions_are_codes(questions, rows, doubted):
    assert len(said({"question": ["q"]}, q=questions, rows=rows)) == doubted


@pytest.mark.parametrize(
    ("answers", "golden_answers", "rows", "same"),
    [
        (["x" * 41 + str(at) for at in range(10)], None, 10, 10),
        (["x" * 41 + str(at) for at in range(9)] + ["other" * 10], "same", 10, 9),
        (["x" * 41 + str(at) for at in range(8)] + ["other" * 10] * 2, "same", 10, 0),
        ([str(at) for at in range(20)], None, 20, 20),
        ([str(at) for at in range(19)], None, 19, 0),
        (["x" * 41], None, 10, 0),
    ],
)
def test_golden_answers_and_answers_that_are_the_same_are_named(answers, golden_answers, rows, same):
    right = [text.upper() for text in answers]
    if golden_answers is not None:
        right = ["X" * 41 + str(at) for at in range(10)]
    found = said({"golden": ["g"], "answer": ["a"]}, g=right, a=answers, rows=rows)
    sentences = [text for text in found if "say the same" in text]
    assert sentences == [f"'g' and 'a' say the same in {same} of {rows} rows"] * bool(same)


def test_answers_that_end_like_sentences_are_not_cut():
    def cut(*endings, length=60, rows=30):
        texts = [f"{at:<{length - 1}}" + endings[at % len(endings)] for at in range(rows)]
        found = said({"answer": ["a"]}, a=texts, rows=rows)
        return [text for text in found if "cut" in text]

    assert cut("x") == ["30 answers in 'a' end after 60 characters: they seem to be cut"]
    assert cut(".", ")", "。") == []
    assert cut("x", length=49) == []
    assert cut("x", length=50) != []
    assert cut("x", *["."] * 9) != []
    assert cut("x", *["."] * 14) == []
    assert said({"answer": ["a"]}, a=["ERROR: x"], rows=4) == []


def test_a_score_that_is_nowhere_on_a_scale_is_a_property():
    def property_of(*values):
        return said({"answer": ["a"], "score": ["s"]}, a=ANSWERS, s=[*values]) != []

    assert [property_of(-5, 10), property_of(-6, 10), property_of(-5, 11)] == [False, True, True]
    assert [property_of(0, 100), property_of(0, 101), property_of(50, 99)] == [False, True, False]
    assert property_of("x", "y", "z") is False


def test_means_are_of_few_rows_without_texts():
    columns = {"accuracy": [0.5, 0.75], "n": [10, 20]}
    assert len(said({"score": ["accuracy"]}, **columns, rows=40)) == 1
    assert said({"score": ["accuracy"]}, **columns, rows=41) == []
    assert said({"score": ["accuracy"], "answer": ["a"]}, **columns, a=ANSWERS) == []
    assert said({"score": ["accuracy"]}, accuracy=[1, 0], n=[10, 20]) == []
    assert said({"score": ["accuracy", "n"]}, **columns) == []
    assert len(said({"score": ["mean_score"]}, mean_score=[0.5, 0.75])) == 1
    assert said({}, **columns) == []


@pytest.mark.parametrize("named", [(), ("question",)])
def test_a_list_of_texts_is_one_question_which_is_said(named):
    found = said({"question": ["q"]}, named=named, q=[["Write a poem.", "Now shorter."], ["Only one."], "Plain?"])
    assert found == [
        ("'q' is a list of texts in 2 rows: they are asked together, as one question, even if they are turns of a chat")
    ]


def test_a_score_that_sums_up_the_others_is_named():
    parts = {"tone": [1, 2, 3], "style": [3, 4, 1]}
    roles = {"score": ["tone", "style", "overall"]}
    means = [2, 3, 2]
    (found,) = said(roles, **parts, overall=means)
    assert found == "'overall' is the mean of the other scores: it tells nothing beside them"
    (found,) = said(roles, **parts, overall=[4, 6, 4])
    assert "the sum of" in found
    assert said(roles, **parts, overall=[2, 3, 3]) == []
    assert said({"score": ["tone", "style", "clarity"]}, **parts, clarity=means) == []


def turned(lower, rows=10, **columns):
    table = [{name: held[at % len(held)] for name, held in columns.items()} for at in range(rows)]
    return [*turned_round(Seen(rows=table, columns=columns_of(table), roles={}), lower).values()]


def test_a_metric_that_rises_with_the_others_may_count_the_absence_of_what_it_names():
    up, down = [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]
    lower = {"judge_bias": "bias"}
    (said,) = turned(lower, judge_bias=up, judge_accuracy=up, judge_fluency=up)
    assert said == (
        "'judge_bias' rises with judge_accuracy, judge_fluency, although by its name lower is better: "
        "if a high value means that an answer has none of it, --set 'higher_is_better=[bias]'"
    )
    assert turned(lower, judge_bias=up, judge_accuracy=down) == []
    assert turned(lower, judge_bias=up, judge_accuracy=up, judge_fluency=down) == []  # half of them
    assert turned(lower, judge_bias=up, other_accuracy=up) == []
    assert turned(lower, judge_bias=up, judge_latency_ms=up) == []
    assert turned(lower, judge_bias=up, judge_accuracy=[3]) == []
    assert turned(lower, rows=9, judge_bias=up, judge_accuracy=up) == []
    assert turned({"gone_bias": "bias"}, judge_bias=up, judge_accuracy=up) == []
    both = {"judge_bias": "bias", "again_bias": "bias"}
    assert len(turned(both, judge_bias=up, judge_accuracy=up, again_bias=up, again_accuracy=up)) == 1


@pytest.mark.parametrize(("letters", "is_said"), [(["A"], True), (["A", "B"], False)])
def test_right_choices_that_stand_at_one_place_are_named(letters, is_said):
    roles = {"question": ["q"], "golden": ["g"], "choices": ["c"]}
    found = said(roles, q=QUESTIONS, g=letters, c=[["yes", "no"]])
    assert any("at the same place in every row of 'c'" in text for text in found) == is_said
