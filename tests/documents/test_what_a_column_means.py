"""Columns with two meanings, choices beside a question, and golden texts that no answer can equal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat import kinds, plugins
from karat.documents.names import meanings, words_of
from karat.errors import BadDataset


def load(tmp_path: Path, rows, name="q.jsonl", kind="golden", **options):
    path = tmp_path / name
    path.write_text(rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows))
    return plugins.build(plugins.find("kinds", kind), options).load(path)


def turn(tmp_path, row, **options):
    """Question, golden answer and every text that is right, of a file with this one row."""
    (read,) = load(tmp_path, [row], **options).samples[0].turns
    return read.question, read.golden, *read.detail.get("answers", ())[1:]


def refused(tmp_path, rows, **options):
    with pytest.raises(BadDataset) as bad:
        load(tmp_path, rows if isinstance(rows, list) else [rows], **options)
    return str(bad.value)


@pytest.mark.parametrize("other", ["ground_truth", "Ground Truth", "expected_output", "reference", "target", "ideal"])
def test_two_columns_for_the_golden_answer_are_a_question_with_whole_readings(tmp_path, other):
    row = {"question": "A?", "answer": "x", other: "y"}
    said = refused(tmp_path, row)
    assert f"1) roles: {{question: question, golden: {other}, answer: answer}}" in said
    assert "2) roles: {question: question, golden: answer}" in said
    assert turn(tmp_path, row, answer_key="answer") == ("A?", "x")
    assert turn(tmp_path, row, roles={"golden": other}) == ("A?", "y")


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [("Frage", "Antwort", "Musterlösung"), ("pregunta", "respuesta", "respuesta de referencia")],
)
def test_the_same_question_is_asked_in_other_languages(tmp_path, question, answer, other):
    said = refused(tmp_path, {question: "A?", answer: "x", other: "y"})
    assert f"1) roles: {{question: {question}, golden: {other}, answer: {answer}}}" in said


def test_no_hint_crosses_roles(tmp_path):
    assert "did you mean" not in refused(
        tmp_path, {"question": "A?", "actual_output": "x"}, answer_key="expected_output"
    )


LETTERED = "Which is smallest?\n\nA) 9\nB) 2"


@pytest.mark.parametrize(
    ("choices", "answer"),
    [
        ({"choices": ["9", "2"]}, "B"),
        ({"choices": "9|2"}, "B"),
        ({"choices": "['9', '2']"}, "B"),
        ({"options": {"A": "9", "B": "2"}}, "B"),
        ({"choices": {"text": ["9", "2"], "label": ["A", "B"]}}, "B"),
        ({"options": [{"label": "A", "text": "9"}, {"label": "B", "text": "2"}]}, "B"),
        ({"options": ["A) 9", "B) 2"]}, "(B)"),
        ({"choice0": "9", "choice1": "2"}, "B"),
        ({"option_a": "9", "option_b": "2"}, "b"),
        ({"A": "9", "B": "2"}, "B"),
        ({"choices": ["9", "2"]}, "2"),
    ],
)
def test_choices_are_written_into_the_question_and_the_golden_choice_becomes_its_letter(tmp_path, choices, answer):
    row = {"question": "Which is smallest?", "answer": answer, **choices}
    assert turn(tmp_path, row) == (LETTERED, "B", "2", "B) 2")


def test_the_golden_answer_is_mixed_with_its_distractors(tmp_path):
    question, golden, *others = turn(tmp_path, {"question": "Q?", "correct_answer": "2", "distractors": ["9", "7"]})
    assert sorted(question.split("\n")[2:]) != question.split("\n")[2:] or golden in "ABC"
    assert f"{golden}) 2" in question.split("\n")
    assert others == ["2", f"{golden}) 2"]


def test_an_index_counts_from_what_the_file_shows(tmp_path):
    def rows(*answers):
        return [
            {"question": f"Q{n}?", "answer": answer, "choices": ["x", "y", "z"]} for n, answer in enumerate(answers)
        ]

    def letters(*answers, **options):
        return [sample.turns[0].golden for sample in load(tmp_path, rows(*answers), **options)]

    assert letters(0, 1) == ["A", "B"]
    assert letters(1, 3) == ["A", "C"]
    assert letters("2", "0") == ["C", "A"]
    assert "from 0 or from 1? Write `choices_from: 0`" in refused(tmp_path, rows(1, 2))
    assert letters(1, 2, choices_from=1) == ["A", "B"]
    assert letters([1], [0]) == ["B", "A"]


def test_choices_may_be_left_out_of_the_question(tmp_path):
    row = {"question": "Which is smallest?", "answer": "B", "choices": ["9", "2"]}
    assert turn(tmp_path, row, choices="left_out") == ("Which is smallest?", "B", "2", "B) 2")


def test_choices_that_the_question_has_are_not_written_again(tmp_path):
    row = {"question": "Which is smallest: 9 or 2?", "answer": "2", "choices": ["9", "2"]}
    assert turn(tmp_path, row)[0] == "Which is smallest: 9 or 2?"


@pytest.mark.parametrize(
    ("row", "taken"),
    [
        ({"user_input": "A?", "reference": "x", "response": "y", "retrieved_contexts": []}, ("A?", "x")),
        ({"Prompt": "A?", "Expected Output": "x"}, ("A?", "x")),
        ({"question": "A?", "ground_truth": "x"}, ("A?", "x")),
        ({"input": "A?", "answer": "x"}, ("A?", "x")),
        ({"Question": "A?", "Answer": "x"}, ("A?", "x")),
        ({"userQuestion": "A?", "goldStandardAnswer": "x", "modelAnswer": "y"}, ("A?", "x")),
        ({"inputs": {"question": "A?"}, "outputs": {"answer": "x"}}, ("A?", "x")),
        ({"input": [{"role": "user", "content": "A?"}], "ideal": ["x", "y"]}, ("A?", "x", "y")),
        ({"input": '[{"role": "user", "content": "A?"}]', "ideal": "x"}, ("A?", "x")),
        ({"prompt": "[{'role': 'user', 'content': 'A?'}]", "answer": "x"}, ("A?", "x")),
        ({"prompt": "[1] A?", "answer": "x"}, ("[1] A?", "x")),
        ({"question": "A?", "answers": ["x", "y"]}, ("A?", "x", "y")),
        ({"Frage": "A?", "Modellantwort": "y", "Lösung": "x"}, ("A?", "x")),
        ({"pregunta": "A?", "respuesta generada": "y", "respuesta de referencia": "x"}, ("A?", "x")),
        ({"question": "A?", "answer": ["x"]}, ("A?", "x")),
        ({"question": "A?", "answer": True}, ("A?", "yes")),
        ({"question": "A?", "answer": 42}, ("A?", "42")),
        ({"question": "A?", "answer": {"value": "x", "aliases": ["y"]}}, ("A?", "x", "y")),
        ({"question": "A?", "__expected": "equals: x"}, ("A?", None)),
        ({"question": "A?", "must_mention": ["x", "y"]}, ("A?", None)),
        ({"question": "A?", "expected_answer": "x", "expected_sources": ["s"]}, ("A?", "x")),
        ({"question": "A?", "query": "SELECT 1"}, ("A?", "SELECT 1")),
        ({"id": "1", "text": "A?", "label": "x"}, ("A?", "x")),
        ({"question": "It is 2 + 1.", "answer": "It is 3.\n#### 3"}, ("It is 2 + 1.", "3")),
    ],
)
def test_a_row_is_understood_by_its_names(tmp_path, row, taken):
    assert turn(tmp_path, row) == taken


@pytest.mark.parametrize(
    ("row", "readings"),
    [
        (
            {"instruction": "Translate.", "input": "A", "target": "x"},
            ["question: [instruction, input], golden: target", "question: input, golden: target"],
        ),
        ({"input": "A?", "prompt": "B?", "answer": "x"}, ["question: input, golden: answer", "question: prompt"]),
        ({"question": "A?", "reference": "x", "target": "y"}, ["golden: reference", "golden: target"]),
        ({"question": "A?", "response": "x"}, ["golden: response", "golden: null, answer: response"]),
        ({"question": "A?", "answer": "x", "latency_ms": 5}, ["golden: answer", "golden: null, answer: answer"]),
        ({"question": "A?", "answer": "x", "faithfulness": 0.5}, ["golden: answer", "golden: null, answer: answer"]),
        ({"query": "A?", "expected_response": "x", "expected_score": 0}, ["golden: null, answer: expected_response"]),
        ({"Goal": "A", "Target": "Sure, here is"}, ["golden: Target", "golden: null, answer: Target"]),
        (
            {"question": "A?", "expected_intent": "x", "expected_resolved": True},
            ["golden: expected_intent, criterion: null", "golden: null, criterion: expected_intent"],  # true is no rule
        ),
        (
            {"question": "A?", "ground_truth": {"total": 1.5, "unit": "m"}},
            ["golden: ground_truth.total", "golden: ground_truth.unit"],
        ),
    ],
)
def test_what_a_name_leaves_open_is_one_question_with_complete_readings(tmp_path, row, readings):
    said = refused(tmp_path, row)
    assert said.count("is not certain") == 1
    assert [reading for reading in readings if reading not in said] == []


def test_a_list_of_golden_answers_means_any_only_where_its_name_says_so(tmp_path):
    row = {"question": "A?", "answer": ["x", "y"]}
    assert "is any of it right, or must all be there? Write `several: any`" in refused(tmp_path, row)
    assert turn(tmp_path, row, several="any") == ("A?", "x", "y")
    assert turn(tmp_path, row, several="all") == ("A?", "x; y")


def test_a_name_of_the_file_raises_a_question_but_settles_none(tmp_path):
    rows = [{"question": "A?", "answer": "x"}]
    assert len(load(tmp_path, rows, name="golden.jsonl")) == 1
    with pytest.raises(BadDataset, match="golden: null, answer: answer"):
        load(tmp_path, rows, name="predictions.jsonl")


def test_a_column_that_is_mostly_empty_holds_no_role(tmp_path):
    rows = [
        {"question": "A?", "answer": "x", "reference": ""},
        {"question": "B?", "answer": "y", "reference": "[None]"},
    ]
    assert [sample.turns[0].golden for sample in load(tmp_path, rows)] == ["x", "y"]
    assert "'question' is empty in most rows" in refused(tmp_path, [{"question": "", "answer": "x"}])


def test_roles_say_that_a_file_has_no_golden_answer(tmp_path):
    row = {"question": "A?", "response": "x"}
    assert turn(tmp_path, row, roles={"question": "question", "golden": None, "answer": "response"}) == ("A?", None)


def test_the_first_row_is_shown_as_understood(tmp_path):
    row = {"id": 7, "input": "Which is smallest?", "choices": ["9", "2"], "target": "B", "level": "easy", "n": 1}
    assert load(tmp_path, [row]).understood.lines() == [
        "question   Which is smallest? A) 9 B) 2  [input, choices]",
        "golden     B (or: 2, B) 2)  [target]",
        "not used   id, level, n",
        "ids        0, 1, 2, …; for the file's, set dataset.id_key: id",
    ]


def test_a_text_that_no_agent_sees_is_named(tmp_path):
    rows = [{"question": "Who?", "context": "Ann did.", "answer": "Ann"}]
    (warning,) = load(tmp_path, rows).warnings
    assert warning.startswith("no agent sees 'context'")
    squad = {"id": "a", "question": "Who?", "context": "Ann.", "answers": {"text": ["Ann"], "answer_start": [0]}}
    assert load(tmp_path, [squad]).warnings == ()


def test_a_column_that_an_option_names_is_never_replaced(tmp_path):
    with pytest.raises(BadDataset, match="no line has the key 'query'"):
        load(tmp_path, [{"prompt": "A?", "answer": "x"}], question_key="query")


@pytest.mark.parametrize(
    ("golden", "why"),
    [
        ("equals: yes", "a rule of promptfoo"),
        ("icontains-any: yes, no", "a rule of promptfoo"),
        ("similar(0.8): yes", "a rule of promptfoo"),
        ('["yes", "Yes"]', "a list as one text"),
    ],
)
def test_a_golden_text_that_no_answer_can_equal_is_named(tmp_path, golden, why):
    (warning,) = load(tmp_path, [{"question": "A?", "answer": golden}, {"question": "B?", "answer": "no"}]).warnings
    assert warning.startswith("no answer can equal 1 golden text ('0'): it")
    assert why in warning
    linted = plugins.build(plugins.find("kinds", "golden"), {}).lint(tmp_path / "q.jsonl")
    assert [doubt.reasons for doubt in linted.doubted] == [("no_answer_equals",)]


@pytest.mark.parametrize("golden", ["yes: it is", "Cost: 5", "[1] and [2]", "#5", "It contains: three parts"])
def test_ordinary_golden_texts_are_not_doubted(tmp_path, golden):
    assert load(tmp_path, [{"question": "A?", "answer": golden}]).warnings == ()


def test_questions_that_nothing_is_compared_with_are_counted(tmp_path):
    rows = [{"question": f"{name}?", "must_mention": None} for name in "ABCD"]
    rows[2]["must_mention"] = ["me"]
    warning = "questions without a golden answer or a criterion: 3 of 4"
    assert load(tmp_path, rows).warnings == (warning,)


def test_a_question_that_stands_twice_is_named(tmp_path):
    rows = [{"question": "A?", "answer": "x"}, {"question": "B?", "answer": "x"}, {"question": "a? ", "answer": "x"}]
    assert load(tmp_path, rows).warnings == ("1 question asked twice, counted as one: '0' and '2'",)


def test_a_question_that_stands_twice_with_other_golden_answers_is_counted(tmp_path):
    rows = [{"question": "A?", "answer": "x"}, {"question": "A?", "answer": "X "}, {"question": "a? ", "answer": "y"}]
    (said,) = load(tmp_path, rows).warnings[1:]
    assert said == (
        "asked again with another golden answer: 1 of them ('2'), such as '0' with 'x' and '2' with 'y': an answer "
        "that fits one fails the other; `karat check --lint FILE` lists all"
    )


def test_unreadable_rows_are_left_out_only_if_asked(tmp_path):
    text = '{"question": "A?", "answer": "x"}\nnonsense\n{"question": "", "answer": "y"}\n'
    with pytest.raises(BadDataset, match=r"2 faults[^$]*To leave such rows out, set `dataset.skip: unreadable`"):
        load(tmp_path, text)
    dataset = load(tmp_path, text, skip="unreadable")
    assert len(dataset) == 1
    assert dataset.warnings[0].startswith("2 unreadable lines left out: line 2 is not JSON")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("version: 1\ncases:\n  - question: A?\n    answer: x\n", "golden"),
        ("cases:\n- question: A?\n  answer: x\n", "golden"),
        ("study: s\narms:\n  - name: a\n", "study"),
        ("cases: [{question: What?, answer: A lid.}]\n", "golden"),
        ("cases:\n  # the first\n\n  - question: What?\n    answer: A lid.\n", "golden"),
        ("cases:\n  -\n    question: What?\n    answer: A lid.\n", "golden"),
        ("train:\n  - question: What?\ndev:\n  - question: What?\n", "golden"),
    ],
)
@pytest.mark.needs_kind("study")
def test_a_yaml_file_with_its_list_under_a_key_is_a_dataset(tmp_path, text, kind):
    (tmp_path / "q.yaml").write_text(text)
    assert kinds.kind_of(tmp_path / "q.yaml") == kind


@pytest.mark.needs_kind("conversation")
@pytest.mark.parametrize(
    ("lines", "kept", "said"),
    [
        (['{"conversation_id": "b", "turn_idx": 0, "question": "", "answer": 1}'], ["a"], "1 unreadable line left out"),
        (["nonsense"], ["a"], "line 3 is not JSON"),
        (['{"conversation_id": "b", "turn_idx": 0, "question": "x?", "answer": null}'], ["a"], "'b' has no executed"),
        (
            [
                '{"conversation_id": "b", "turn_idx": 0, "question": "x?", "answer": 1}',
                '{"conversation_id": "b", "turn_idx": 2, "question": "y?", "answer": 2}',
            ],
            ["a"],
            "'b' has no turn 1",
        ),
    ],
)
def test_conversations_that_cannot_be_read_are_left_out_only_if_asked(tmp_path, lines, kept, said):
    whole = [{"conversation_id": "a", "turn_idx": at, "question": f"q{at}?", "answer": at} for at in range(2)]
    text = "\n".join([*map(json.dumps, whole), *lines])
    with pytest.raises(BadDataset, match=r"To leave such rows out, set `dataset.skip: unreadable`"):
        load(tmp_path, text, kind="conversation")
    dataset = load(tmp_path, text, kind="conversation", skip="unreadable")
    assert [sample.id for sample in dataset] == kept
    (warning,) = dataset.warnings
    assert said in warning


@pytest.mark.needs_kind("conversation")
def test_an_empty_span_of_tatqa_is_left_out(tmp_path):
    question = {
        "uid": "q1",
        "order": 1,
        "question": "Which rows?",
        "answer": ["Sales", "Costs", ""],
        "derivation": "",
        "answer_type": "multi-span",
        "answer_from": "table",
        "rel_paragraphs": [],
        "req_comparison": False,
        "scale": "",
    }
    table = {"uid": "t1", "table": [["", "2020"], ["Sales", "10"]]}
    record = {"table": table, "paragraphs": [{"uid": "p1", "order": 1, "text": "Up."}], "questions": [question]}
    (sample,) = load(tmp_path, json.dumps([record]), name="t.json", kind="conversation")
    assert sample.turns[0].detail["answers"] == ["Sales", "Costs"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Where is it?,In the hall.\nWho is Ann?,A doctor.\n", "1) roles: {question: column 1, golden: column 2}"),
        ("When did the hall open to the public?\nWho built it?\n", "1) roles: {question: column 1, golden: null}"),
        (
            "2026-01-09 21:40:09,when does it start,I do not know that yet.\n2026-01-09 21:50:10,and end?,Soon.\n",
            "column 2",
        ),
    ],
)
def test_a_table_without_a_header_keeps_its_first_row_and_asks(tmp_path, text, asked):
    assert asked in refused_text(tmp_path, text, "q.csv")
    read = load(tmp_path, text, "q.csv", roles={"question": "column 1", "golden": None})
    assert [sample.turns[0].question for sample in read.samples] == [line.split(",")[0] for line in text.splitlines()]
    assert read.understood.notes == (f"line 1 is a row: columns are called {called(text)}",)


def called(text):
    return ", ".join(f"column {place}" for place in range(1, text.splitlines()[0].count(",") + 2))


def refused_text(tmp_path, text, name):
    with pytest.raises(BadDataset) as bad:
        load(tmp_path, text, name)
    return str(bad.value)


@pytest.mark.parametrize("header", ["Is the answer right?,question,answer", "question,answer,2026", "q,a,x/y"])
def test_a_header_may_hold_a_sentence_a_number_or_a_path(tmp_path, header):
    assert len(load(tmp_path, f"{header}\nA?,b,c\n", "q.csv", roles={"question": header.split(",")[0], "golden": None}))


def test_a_table_of_one_column_keeps_the_commas_of_its_lines(tmp_path):
    read = load(tmp_path, 'question\nA, b, or c?\n"D, e?"\n', "q.csv", roles={"golden": None})
    assert [sample.turns[0].question for sample in read.samples] == ["A, b, or c?", "D, e?"]


def test_quotes_after_a_space_are_quotes(tmp_path):
    read = load(tmp_path, 'question,answer\n"A, b?", "Yes, both."\n', "q.csv")
    assert (read.samples[0].turns[0].question, read.samples[0].turns[0].golden) == ("A, b?", "Yes, both.")


def test_golden_answers_of_a_few_rows_are_asked_about(tmp_path):
    rows = [
        {"question": f"{n}?", "must_mention": ["x"], **({"reference_answer": "y"} if n == 1 else {})} for n in range(5)
    ]
    said = refused(tmp_path, rows)
    assert "1) roles: {question: question, golden: reference_answer, criterion: must_mention}" in said
    assert "2) roles: {question: question, golden: null, criterion: must_mention}" in said


def test_the_fields_of_a_golden_object_are_asked_about_each_and_all(tmp_path):
    row = {"question": "A?", "expected": {"answer": "x", "sql": "SELECT 1"}}
    said = refused(tmp_path, row)
    for path in ("expected.answer", "expected.sql", "expected"):
        assert f"roles: {{question: question, golden: {path}}}" in said
    assert turn(tmp_path, row, answer_key="expected") == ("A?", '{"answer":"x","sql":"SELECT 1"}')


def test_answers_that_are_called_wrong_may_be_anyones(tmp_path):
    rows = [{"question": "A?", "answer": "x", "kind": kind} for kind in ("correct", "incorrect", "mostly_correct")]
    assert "2) roles: {question: question, golden: null, answer: answer}" in refused(tmp_path, rows)


def test_names_of_speakers_are_question_and_answer_only_together(tmp_path):
    assert "1) roles: {question: user, golden: ai}" in refused(tmp_path, [{"user": "Hi there", "ai": "Hello"}])
    assert "question: user" not in refused(tmp_path, [{"user": "ann", "tweet": "Hi there", "label": "glad"}])


def test_retrieval_sets_are_joined_and_parts_of_them_named(tmp_path):
    whole = {"queries": {"q1": "A?"}, "corpus": {"d1": "x", "d2": "y"}, "relevant_docs": {"q1": ["d2"]}}
    read = load(tmp_path, json.dumps(whole), "r.json", roles={"golden": None})
    assert (read.samples[0].turns[0].question, read.samples[0].metadata["context"]) == ("A?", ["y"])
    assert "says which documents are relevant" in refused_text(
        tmp_path, "query-id\tcorpus-id\tscore\n1\t2\t1\n", "r.tsv"
    )
    assert "one text an id, but no questions" in refused_text(tmp_path, json.dumps({"7": "yes", "8": "no"}), "r.json")


@pytest.mark.parametrize(
    "names",
    [
        *("Câu hỏi|Trả lời", "Pertanyaan|Jawaban", "perguntas|verdades", "question|réponse attendue", "Otázka|Odpověď"),
        *("pertanyaan|jawaban_benar", "soru|beklenen cevap", "вопрос|ожидаемый ответ"),
        *("질문|정답", "प्रश्न|सही उत्तर", "السؤال|الإجابة الصحيحة", "cau_hoi|dap_an", "questão|gabarito"),
    ],
)
def test_names_in_other_languages_are_read(tmp_path, names):
    question, golden = names.split("|")
    assert turn(tmp_path, {question: "A?", golden: "x"}) == ("A?", "x")


def test_the_right_answer_and_that_of_the_system_are_told_apart_in_other_languages(tmp_path):
    row = {"pertanyaan": "A?", "jawaban_benar": "x", "jawaban_sistem": "y"}
    assert turn(tmp_path, row) == ("A?", "x")
    assert [meanings(name)[0].role for name in ("jawaban_sistem", "respuesta_sistema")] == ["answer", "answer"]


@pytest.mark.parametrize(
    "names",
    [
        *(
            "Pregunta|Respuesta de referencia|Respuesta generada por el modelo",
            "Frage|Lösung|Antwort des Modells",
        ),
        *("问题|标准答案|模型的回答", "質問|期待される回答|モデルの回答", "질문|기대 답변|생성된 답변"),
        *("Câu hỏi|Đáp án|Câu trả lời của mô hình", "soru|referans_cevap|üretilen_cevap", "سوال|پاسخ مرجع|پاسخ مدل"),
    ],
)
def test_a_system_is_named_before_or_after_what_it_says(names):
    roles = [meanings(name)[0].role for name in names.split("|")]
    assert roles == ["question", "golden", "answer"]


def test_words_between_others_say_nothing_but_languages_are_kept():
    assert words_of("Puntuación de la respuesta") == ("score", "answer")
    assert words_of("text_de") == ("text", "de")


def test_a_question_in_parts_is_its_parts_in_their_order(tmp_path):
    assert turn(tmp_path, {"question": ["Here is a text.", "What is it?"], "answer": "x"})[0] == (
        "Here is a text.\n\nWhat is it?"
    )
    two = {"context": "A text.", "question": "What is it?", "answer": "x"}
    assert (
        turn(tmp_path, two, roles={"question": ["context", "question"], "golden": "answer"})[0]
        == "A text.\n\nWhat is it?"
    )


def test_the_reply_in_a_chat_is_golden_only_where_there_is_no_golden_answer(tmp_path):
    chat = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    assert turn(tmp_path, {"messages": chat}) == ("Why?", "So.")
    assert turn(tmp_path, {"messages": chat, "golden_answer": "Because."})[1] == "Because."


def test_a_column_of_two_numbers_may_be_the_label(tmp_path):
    rows = [{"Sentence": f"This place was number {n} of my trip", "mood": n % 2} for n in range(8)]
    assert "roles: {question: Sentence, golden: mood}" in refused(tmp_path, rows)


def test_a_span_of_the_answer_is_golden_beside_ids(tmp_path):
    row = {"question": "Who?", "answer_span": "Ann", "gold_block_ids": ["b1", "b2"]}
    assert turn(tmp_path, row) == ("Who?", "Ann")
    row = {"question": "Who?", "relevant_ids": "1|2"}
    assert "golden: relevant_ids, criterion: null}  # documents to retrieve" in refused(tmp_path, row)


def test_a_table_of_numbers_is_called_one(tmp_path):
    assert "holds nothing but numbers (2 columns)" in refused(tmp_path, [{"WD": 1, "TI": 2.5}, {"WD": 2, "TI": 3}])


def test_an_expected_object_is_offered_beside_its_fields_and_not_a_class_instead(tmp_path):
    expected = {"covered": True, "reason": "In time", "share": 3}
    row = {"category": "fire", "input": {"day": "Monday", "said": "My house burns"}, "expected_output": expected}
    said = refused(tmp_path, row)
    assert "golden: expected_output}" in said
    assert "golden: category" not in said


def test_days_are_never_offered_as_questions(tmp_path):
    rows = [{"made": f"9/{n}/2017", "who": f"Ann Smith the {n}th", "category": "other"} for n in range(1, 9)]
    assert "question: made" not in refused(tmp_path, rows)


def test_a_list_that_always_holds_the_golden_answer_is_named(tmp_path):
    rows = [{"question": f"What is {n}?", "target": f"t{n}", "refs": [f"t{n}", f"u{n}"][: 1 + n % 2]} for n in range(9)]
    (said,) = [warning for warning in load(tmp_path, rows).warnings if "refs" in warning]
    assert said.startswith("'refs' holds 'target' in every row, and more in 4 of 9: if any of them is right, set")
    read = load(tmp_path, rows, roles={"golden": "refs"}, several="any").samples[1].turns[0]
    assert read.detail == {"answers": ["t1", "u1"]}


def test_a_table_without_questions_is_said_to_have_none(tmp_path):
    rows = [{"Name": f"Inn {n}", "Stars": n, "Terrace": n % 2} for n in range(9)]
    said = refused(tmp_path, rows)
    assert "no column looks like a question: 2 of 3 hold numbers, or yes and no; if several make one" in said
