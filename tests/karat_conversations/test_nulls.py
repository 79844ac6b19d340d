"""What answerers score that know nothing."""

import json

import pytest

from karat_conversations.numeric import match_many, null_answers


def test_each_answers_every_question_by_its_own_rule():
    golden = [0.5, "10%", "yes", "N/A", 7]
    assert null_answers(golden, ["a", "a", "a", "b", "b"]) == {
        "zero": [0.0] * 5,
        "one": [1.0] * 5,
        "sign_flipped": [-0.5, -0.1, False, None, -7.0],
        "times_100": [50.0, 10.0, None, None, 700.0],
        "another_turn": [True, 0.5, 0.1, 7.0, None],
    }


@pytest.mark.parametrize(
    ("conversations", "answers"),
    [
        (["a", "b", "c"], [3.0, 1.0, 2.0]),
        (["a", "b", "a"], [3.0, 1.0, 1.0]),
        (["a", "a", "b"], [2.0, 1.0, 2.0]),
        (["a", "a", "a"], [3.0, 1.0, 2.0]),
    ],
)
def test_another_turn_is_of_the_same_conversation_where_it_has_one(conversations, answers):
    assert null_answers([1, 2, 3], conversations)["another_turn"] == answers


def test_without_another_question_there_is_no_other_answer():
    assert null_answers([1], ["a"])["another_turn"] == [None]
    assert all(answers == [] for answers in null_answers([], []).values())


def test_as_many_conversations_as_answers_are_needed():
    with pytest.raises(ValueError, match="conversations: must be as many as golden answers, 2, got 1"):
        null_answers([1, 2], ["a"])


def test_on_the_real_questions_who_knows_nothing_scores_next_to_nothing(shared_data):
    found = json.loads((shared_data / "convfinqa" / "dev.json").read_text("utf-8"))["dev"]
    turns = [(golden, each["id"]) for each in found for golden in each["dialogue"]["executed_answers"]]
    golden = [each for each, _ in turns]
    found = null_answers(golden, [conversation for _, conversation in turns])
    rates = {name: {key: each.mean() for key, each in _matches(golden, answers)} for name, answers in found.items()}
    assert len(turns) == 1490
    assert rates["zero"]["numerical"] <= 0.005
    assert rates["one"]["numerical"] <= 0.005
    assert rates["another_turn"]["numerical"] <= 0.015
    assert rates["sign_flipped"]["sign_agnostic"] > 0.99  # what this rule is worth against a wrong sign
    assert rates["times_100"]["unit_agnostic"] > 0.99


def _matches(golden, answers):
    return [(name, each) for name, each in match_many(golden, answers).items() if name != "unreadable"]
