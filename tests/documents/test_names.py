"""What a column's name alone says about its role."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat.documents.columns import columns_of
from karat.documents.names import (
    ADDED,
    Meaning,
    criterion_type,
    lower_is_better,
    meanings,
    speaker_and_text,
    words_of,
)
from karat.documents.roles import Reading, assign


@pytest.mark.parametrize("name", ["expected_output", "expectedOutput", "Expected Output", "EXPECTED-output"])
def test_a_name_is_its_words_however_it_is_written(name):
    assert words_of(name) == ("expected", "output")


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("question", "question user_query customer_message Prompt testInput pergunta 问题"),
        ("golden", "reference_answer goldSQL ground_truth verified_ground_truth ideal resposta_esperada answer_orig"),
        ("answer", "model_answer generated_sql predictedIntent rag_agent_answer actual_output top1_actual"),
        (
            "criterion",
            "expected_sources must_mention gold_url forbiddenTools __expected2 relevant_ids tools_expected",
        ),
        ("score", "faithfulness correctness_score gpt_groundedness recall@5 is_correct judge_accuracy"),
    ],
)
def test_names_are_composed_of_words_that_tools_use(role, names):
    for name in names.split():
        assert role in {meaning.role for meaning in meanings(name)}, name


@pytest.mark.parametrize(
    "name",
    [
        "answer_start",
        "answer_not_matching_behavior",
        "difficulty_score",
        "confidence",
        "topic_id",
        "weather",
        "expected_unit",
    ],
)
def test_names_that_only_sound_alike_say_nothing_of_questions_answers_or_scores(name):
    assert {meaning.role for meaning in meanings(name)} & {
        "question",
        "golden",
        "answer",
        "score",
        "criterion",
    } == set()


@pytest.mark.parametrize("name", ["answer", "output", "label", "response", "completion", "summary", "sql"])
def test_names_that_tools_use_for_both_are_weak(name):
    assert {meaning.weak for meaning in meanings(name) if meaning.role == "golden"} == {True}


def test_less_is_better_by_a_closed_list_only():
    names = ("latency_ms", "hallucination", "faithfulness", "quality")
    assert [lower_is_better(name) for name in names] == [True, True, False, None]


def test_a_message_says_who_speaks_and_what():
    assert speaker_and_text({"role": "user", "content": "Hi"}) == ("role", "content")
    assert speaker_and_text({"sender": "customer", "text": "Hi"}) == ("sender", "text")
    assert speaker_and_text({"type": "ip", "value": "1.2.3.4"}) is None


SURE = ("question", "context", "id", "reason", "error", "latency", "cost", *ADDED.roles)


def test_the_spellings_of_other_tools_are_known(shared_data: Path):
    roles = json.loads((shared_data / "roles.json").read_text(encoding="utf-8"))
    unknown = []
    for role in SURE:
        for entry in roles[role]:
            for name in entry["written"]:
                known = {meaning.role for meaning in meanings(name)}
                plain = name.replace("_", "").replace(" ", "").isalnum()
                if plain and not entry["ambiguous_with"] and role not in known:
                    unknown.append((role, name))
    assert unknown == []


@pytest.mark.parametrize(("values", "golden"), [((True, False), None), ((1, 0), None), (("x", "y"), "correct")])
def test_a_column_correct_of_yes_and_no_is_a_score_and_no_golden_answer(values, golden):
    rows = [{"question": f"{n}?", "pred_label": "x", "correct": value} for n, value in enumerate(values)]
    reading = assign(columns_of(rows), door="results", file="rows.csv")
    assert isinstance(reading, Reading)
    assert (reading.one("golden"), reading.one("answer")) == (golden, "pred_label")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("expect_contains", "icontains"),
        ("good_answer_contains", "icontains"),
        ("forbid_contains", "not-icontains"),
        ("must_not_contain", "not-icontains"),
        ("contains", None),
    ],
)
def test_what_an_answer_contains_is_a_rule(name, kind):
    assert criterion_type(name) == kind
    assert (Meaning("criterion") in meanings(name)) == (kind is not None)


def test_a_rule_may_be_that_of_a_few_questions():
    rows = [{"question": f"Who {n}?", "expected_facts": ["I"], "must_not_contain": None} for n in range(9)]
    rows[4]["must_not_contain"] = "me"
    result = assign(columns_of(rows), door="dataset")
    assert isinstance(result, Reading)
    assert result.roles["criterion"] == ("expected_facts", "must_not_contain")
