"""Exact match and F1 by the rules of SQuAD and of TAT-QA: worked out by hand, and laws."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.records import Answer, Reply, Sample, Turn
from karat_conversations.scorers.span import Span


def answered(reply: Reply) -> Answer:
    return Answer(trial="t", sample="s", condition="c", repetition=0, replies=(reply,), started="", seconds=0.0)


def scores(text: str, golden: str = "g", reply: dict | None = None, options: dict | None = None, **detail):
    turn = Turn(question="q", golden=golden, detail=detail)
    sample = Sample(id="s", position=0, digest="d", turns=(turn,))
    (verdict,) = Span(Span.Options(**(options or {}))).score(sample, answered(Reply(text=text, **(reply or {})))) or []
    return verdict.values["exact_match"], round(verdict.values["f1"], 6)


@pytest.mark.parametrize(
    ("text", "answers", "exact", "f1"),
    [
        ("The Denver Broncos.", ["Denver Broncos"], True, 1),
        ("denver", ["Denver Broncos", "the Broncos"], False, 0.666667),  # P 1/1, R 1/2
        ("the the Broncos win", ["Broncos"], False, 0.666667),  # P 1/2, R 1/1
        ("a b b", ["b b c"], False, 0.8),  # without the article: P 2/2, R 2/3
        ("24-10", ["24–10"], False, 0),  # an en dash is no ASCII punctuation, as in the public script
        ("", ["x"], False, 0),
        ("unanswerable", ["x"], False, 0),
        ("x", ["the", "x"], True, 1),
        ("y", ["the"], False, 0),
    ],
)
def test_squad_by_hand(text, answers, exact, f1):
    assert scores(text, answers=answers) == (exact, f1)


@pytest.mark.parametrize(
    ("text", "right"), [("", True), ("Unanswerable.", True), ("No answer", True), ("Nobody", False), ("N/A", False)]
)
def test_nothing_is_the_right_answer_to_a_question_without_one(text, right):
    assert scores(text, impossible=True) == (right, float(right))
    assert scores("N/A", impossible=True, options={"no_answer": ["n/a"]}) == (True, 1)


def test_any_golden_answer_can_be_matched_and_without_one_there_is_no_score():
    assert scores("the Answer!", golden="answer") == (True, 1)
    sample = Sample(id="s", position=0, digest="d", turns=(Turn(question="q"),))
    assert Span().score(sample, answered(Reply(text="x"))) is None


@pytest.mark.parametrize(
    ("kind", "answers", "scale", "given", "given_scale", "exact", "f1"),
    [
        ("arithmetic", ["-12.6"], "million", -12.6, "million", True, 1),
        ("arithmetic", ["-12.6"], "million", -12.6, "", False, 0),  # the scale counts
        ("arithmetic", ["-12.6"], "million", "-12,600,000", "", True, 1),
        ("arithmetic", ["23.42"], "percent", 0.2342, "", True, 1),
        ("arithmetic", ["23.42"], "percent", "23.42%", "", True, 1),
        ("arithmetic", ["23.42"], "percent", 23.418, "percent", True, 1),  # two decimals
        ("arithmetic", ["23.42"], "percent", 23.4, "percent", False, 0),
        ("count", ["3"], "", 3, "", True, 1),
        ("count", ["3"], "", "three", "", False, 0),
        ("multi-span", ["2018", "2019"], "", ["2019", "2018"], "", True, 1),
        ("multi-span", ["2018", "2019"], "", ["2019"], "", False, 0.67),  # P 1/1, R 1/2
        ("span", ["the Board of Directors"], "", "board of directors.", "", True, 1),
        ("span", ["Defined benefit schemes"], "", "benefit schemes of Germany", "", False, 0.57),  # P 2/4, R 2/3
        ("span", ["$1,496.5"], "million", "1496.5", "million", True, 1),
        ("span", ["$1,496.5"], "million", "1496.5", "thousand", False, 0),
        ("span", ["(9.8)"], "million", -9.8, "million", True, 1),
        ("span", ["(1,234)"], "", "1234", "", True, 1),  # a bracket with a comma is no minus in the public script
        ("span", ["13.0%"], "", 13, "percent", True, 1),
        ("span", ["x"], "", [], "", False, 0),
        ("span", ["x"], "", None, "million", False, 0),
    ],
)
def test_tatqa_as_its_public_script_counts(kind, answers, scale, given, given_scale, exact, f1):
    text = f"So:\n```json\n{json.dumps({'answer': given, 'scale': given_scale})}\n```"
    assert scores(text, answer_type=kind, answers=answers, scale=scale) == (exact, f1)


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("12.5 million", {}),
        ('{"Answer": 12.5, "unit": "million"}', {}),
        ('{"answer": ["12.5"], "scale": "Million"}', {}),
        ("see the table", {"answer": "12.5", "unit": "million"}),
        ("see the table", {"answer": '{"answer": [12.5], "scale": "million"}'}),
        ("see the table", {"answer": '{"answer": 12.5}', "unit": "million"}),
    ],
)
def test_the_scale_is_found_wherever_an_agent_says_it(text, reply):
    assert scores(text, reply=reply, answer_type="arithmetic", answers=["12.5"], scale="million") == (True, 1)


SPANS = st.lists(st.text("abc 12.5%$(),", max_size=12), max_size=3)


@given(SPANS, SPANS, st.sampled_from(["", "thousand", "percent"]))
def test_scores_are_shares_and_an_exact_match_has_an_f1_of_one(given, answers, scale):
    text = json.dumps({"answer": given, "scale": scale})
    for detail in ({"answer_type": "multi-span", "scale": scale}, {}):
        exact, f1 = scores(text, answers=answers, **detail)
        assert 0 <= f1 <= 1
        assert f1 == 1 or not exact
