"""Columns with two meanings, choices beside a question, and golden texts that no answer can equal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat import kinds, plugins
from karat.errors import BadDataset


def load(tmp_path: Path, rows, name="q.jsonl", kind="golden", **options):
    path = tmp_path / name
    path.write_text(rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows))
    return plugins.build(plugins.find("kinds", kind), options).load(path)


@pytest.mark.parametrize("other", ["ground_truth", "Ground Truth", "expected_output", "reference", "target", "ideal"])
def test_two_columns_for_the_golden_answer_are_a_fault(tmp_path, other):
    rows = [{"question": "A?", "answer": "x", other: "y"}]
    with pytest.raises(BadDataset, match=f"write `answer_key: answer` or `answer_key: {other}` below `dataset`"):
        load(tmp_path, rows)
    for key, golden in (("answer", "x"), (other, "y")):
        assert load(tmp_path, rows, answer_key=key).samples[0].turns[0].golden == golden


def test_no_hint_crosses_roles(tmp_path):
    with pytest.raises(BadDataset) as bad:
        load(tmp_path, [{"question": "A?", "actual_output": "x"}], answer_key="expected_output")
    assert "did you mean" not in str(bad.value)


@pytest.mark.parametrize(
    ("choices", "column"),
    [
        ({"choices": ["9", "2"]}, "choices"),
        ({"options": {"A": "9", "B": "2"}}, "options"),
        ({"choices": {"text": ["9", "2"], "label": ["A", "B"]}}, "choices"),
        ({"choice0": "9", "choice1": "2"}, "choice0"),
        ({"option_a": "9", "option_b": "2"}, "option_a"),
        ({"A": "9", "B": "2", "C": "7", "D": "5"}, "A"),
        ({"distractor1": "9", "distractor2": "2"}, "distractor1"),
    ],
)
def test_choices_that_the_question_lacks_are_a_fault(tmp_path, choices, column):
    with pytest.raises(BadDataset, match=f"the choices in '{column}' are not part of 'question'"):
        load(tmp_path, [{"question": "Which is smallest?", "answer": "B", **choices}])
    assert len(load(tmp_path, [{"question": "Which is smallest: 9, 2, 7 or 5?", "answer": "B", **choices}])) == 1


def test_choices_may_be_left_out_of_the_question_and_are_then_named(tmp_path):
    rows = [{"question": "Which is smallest?", "answer": "B", "choices": ["9", "2"]}] * 2
    dataset = load(tmp_path, rows, choices="left_out")
    (warning,) = [text for text in dataset.warnings if "choices" in text]
    assert warning.startswith("the choices in 'choices' are not part of 'question', so no scorer sees them")


@pytest.mark.parametrize(
    ("row", "taken"),
    [
        ({"user_input": "A?", "reference": "x", "response": "y", "retrieved_contexts": []}, ("A?", "x")),
        ({"Prompt": "A?", "Expected Output": "x"}, ("A?", "x")),
        ({"question": "A?", "ground_truth": "x"}, ("A?", "x")),
        ({"input": "A?", "answer": "x"}, ("A?", "x")),
        ({"Question": "A?", "Answer": "x"}, ("A?", "x")),
        ({"Question": "A?", "Answer": "x", "Expected": "y"}, "no line has the key 'answer'"),
        ({"instruction": "Translate.", "input": "A", "target": "x"}, "no line has the key 'question'"),
        ({"input": "A?", "prompt": "B?", "answer": "x"}, "no line has the key 'question'"),
        ({"question": "A?", "reference": "x", "target": "y"}, "no line has the key 'answer'"),
        ({"question": "A?", "response": "x"}, "no line has the key 'answer'"),
        ({"input": [{"role": "user", "content": "A?"}], "ideal": "x"}, "'input' is a list"),
        ({"question": "A?", "__other": "equals: x"}, "no line has the key 'answer'"),
    ],
)
def test_the_only_column_with_a_usual_name_is_taken_and_named(tmp_path, row, taken):
    if isinstance(taken, str):
        with pytest.raises(BadDataset, match=taken):
            load(tmp_path, [row])
        return
    dataset = load(tmp_path, [row])
    (turn,) = dataset.samples[0].turns
    assert (turn.question, turn.golden) == taken
    named = [column for column in row if column not in ("question", "answer") and row[column] in taken]
    assert [text.split("'")[1] for text in dataset.warnings] == named


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
        ("It is 3*2 = 6.\n#### 6", "its working before '####'"),
        ("#### 6", "begins with '####'"),
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


def test_a_question_that_stands_twice_is_named(tmp_path):
    rows = [{"question": "A?", "answer": "x"}, {"question": "B?", "answer": "x"}, {"question": "a? ", "answer": "x"}]
    assert load(tmp_path, rows).warnings == ("1 question asked twice, counted as one: '0' and '2'",)


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
