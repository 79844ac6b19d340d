"""Answers as models give them: thoughts, boxes, tags, tables, several fields on a line, other units."""

from __future__ import annotations

from typing import Any

import pytest

from karat_studies.kinds.study.fields import read_answers
from karat_studies.kinds.study.format import Answered

CHOICE = {"choice": Answered(type="choice", options=["A", "B"])}
ASKED = {"agree": Answered(type="choice", options=["yes", "no"])}
NUMBER = {"estimate": Answered(type="number", range=[0, None])}
METRES = {"estimate": Answered(type="number", range=[0, None], hint="a number of metres")}
OFFER = {"offer": Answered(type="number", range=[0, 10], hint="dollars")}
PAIR = {"warm": Answered(type="likert", range=[1, 7]), "kind": Answered(type="likert", range=[1, 7])}
RANK = {"order": Answered(type="rank", options=["red", "green", "blue"])}
RGB = ["red", "green", "blue"]

READ: list[tuple[dict[str, Answered], str, dict[str, Any]]] = [
    # a model's thoughts are no answer
    (CHOICE, "<think>\nchoice: B\n</think>\n\nchoice: A", {"choice": "A"}),
    (CHOICE, "So choice: B it is … or not.\n</think>\nchoice: A", {"choice": "A"}),
    (CHOICE, "choice: A\n<reasoning>choice: B was close</reasoning>", {"choice": "A"}),
    # marks of a final answer
    (CHOICE, "B is a gamble.\n\n\\boxed{A}", {"choice": "A"}),
    (CHOICE, "$\\boxed{\\text{A}}$", {"choice": "A"}),
    (CHOICE, "choice: \\boxed{A}", {"choice": "A"}),
    (CHOICE, "<answer>A</answer>", {"choice": "A"}),
    (CHOICE, "<choice>A</choice>", {"choice": "A"}),
    (PAIR, "<warm>5</warm><kind>6</kind>", {"warm": 5, "kind": 6}),
    (CHOICE, "B is a gamble.\n\n**Final answer:** A", {"choice": "A"}),
    (CHOICE, "Answer: B is what most say.\nchoice: A", {"choice": "A"}),
    # quotes, brackets, pictures, tables, colons of other scripts
    (CHOICE, "choice: “A”", {"choice": "A"}),
    (CHOICE, "choice: <A>", {"choice": "A"}),
    (CHOICE, "choice： A", {"choice": "A"}),
    (CHOICE, "| field | answer |\n|---|---|\n| choice | A |", {"choice": "A"}),
    (CHOICE, "1. choice: A", {"choice": "A"}),
    (CHOICE, '{"choice": ["A"]}', {"choice": "A"}),
    (ASKED, "agree: ✅ yes", {"agree": "yes"}),
    (ASKED, "agree: no, not intentionally", {"agree": "no"}),
    # several fields on a line
    (PAIR, "warm: 5, kind: 6", {"warm": 5, "kind": 6}),
    (PAIR, "**Warm:** 5 | **Kind:** 6", {"warm": 5, "kind": 6}),
    (PAIR, "warm: 5 (kind: 6)", {"warm": 5, "kind": 6}),
    # numbers
    (NUMBER, "estimate: 1\u202f500", {"estimate": 1500}),
    (NUMBER, "I'd say about 1500.", {"estimate": 1500}),
    (METRES, "estimate: 1500m", {"estimate": 1500}),
    (METRES, "estimate: 1,500 meters", {"estimate": 1500}),
    (OFFER, "offer: four dollars", {"offer": 4}),
    (NUMBER, "estimate: the 66th percentile", {"estimate": 66}),
    # rankings
    (RANK, "order: red → green → blue", {"order": RGB}),
    (RANK, "order: red/green/blue", {"order": RGB}),
    (RANK, "order: Red, then green, then blue", {"order": RGB}),
    (RANK, "order: red, green, and blue", {"order": RGB}),
    (RANK, "order: 1. red 2. green 3. blue", {"order": RGB}),
]


@pytest.mark.parametrize(("fields", "text", "wanted"), READ, ids=[row[1] for row in READ])
def test_what_a_model_says_is_read(fields: dict[str, Answered], text: str, wanted: dict[str, Any]) -> None:
    read = read_answers(text, fields)
    assert (read.values, read.kinds) == (wanted, {})


NOT_READ: list[tuple[dict[str, Answered], str, dict[str, str]]] = [
    (CHOICE, "<think>choice: A</think>", {"choice": "missing"}),
    (CHOICE, "<think>choice: A, I believe, but", {"choice": "missing"}),  # cut off in its thoughts
    (CHOICE, "\\boxed{A} or \\boxed{B}", {"choice": "contradictory"}),
    (CHOICE, "\\boxed{C}", {"choice": "invalid"}),
    (CHOICE, "Answer: A\nAnswer: B", {"choice": "contradictory"}),
    (CHOICE, "choice: A, choice: B", {"choice": "contradictory"}),
    (PAIR, "Answer: 5", {"warm": "missing", "kind": "missing"}),
    (PAIR, "\\boxed{5}", {"warm": "missing", "kind": "missing"}),
    (ASKED, "agree: yes, not really", {"agree": "contradictory"}),
    (ASKED, "agree: no, no, yes", {"agree": "contradictory"}),
    (METRES, "estimate: 1.5 km", {"estimate": "invalid"}),
    (METRES, "estimate: 900 feet", {"estimate": "invalid"}),
    (NUMBER, "estimate: €1.500", {"estimate": "invalid"}),
    (NUMBER, "estimate: 1500m", {"estimate": "invalid"}),
    (NUMBER, "estimate: 66th", {"estimate": "invalid"}),
    (OFFER, "offer: four hundred", {"offer": "invalid"}),
    (RANK, "order: red/green > blue", {"order": "invalid"}),  # a tie
    (RANK, "order: red and green, blue", {"order": "invalid"}),
    (RANK, "order: red, then green and blue", {"order": "invalid"}),
]


@pytest.mark.parametrize(("fields", "text", "wanted"), NOT_READ, ids=[row[1] for row in NOT_READ])
def test_what_a_model_says_is_not_guessed(fields: dict[str, Answered], text: str, wanted: dict[str, str]) -> None:
    read = read_answers(text, fields)
    assert (read.values, read.kinds) == ({}, wanted)


def test_a_field_called_answer_is_a_key_like_any_other() -> None:
    fields = {"answer": Answered(type="choice", options=["A", "B"])}
    assert read_answers("answer: A\nanswer: B", fields).kinds == {"answer": "contradictory"}
    assert read_answers("<answer>B</answer>", fields).values == {"answer": "B"}


GUESS = {"guess": Answered(type="number", range=[0, 100])}
SENT = {"sent": Answered(type="number", range=[0, 10], whole=True)}
MORE = {"more": Answered(type="choice", options=["first", "second"])}
FAMILIES = {"families": Answered(type="number", range=[0, 100_000], whole=True)}
SHARE = {"share": Answered(type="number", range=[0, 1])}
PERCENT = {"percent": Answered(type="number", range=[0, 100])}
ORDER = {"order": Answered(type="rank", options=["warm", "kind", "cold"])}
WHY = {"why": Answered(type="text")}
FILM = {
    "film_percent": Answered(type="number", range=[0, 100], hint="percent"),
    "film_choice": Answered(type="choice", options=["sign", "refuse"]),
}
APART = {
    "first": Answered(type="choice", options=["A", "B"]),
    "second": Answered(type="choice", options=["C", "D"], optional=True),
}

OF_ANOTHER: list[tuple[dict[str, Answered], str]] = [
    # another's answer, or one under a condition
    (GUESS, "The target guess is 33.33. I'll undercut and say 30."),
    (GUESS, "The mean guess is 50."),
    (OFFER, "A low offer is 2 and may be rejected. So half."),
    (SENT, "Every dollar sent is 3 dollars for the other."),
    (CHOICE, "The rational choice is A. But I feel like B."),
    (CHOICE, "Experts say the choice is A."),
    (CHOICE, "Most people would answer:\nchoice: A\n\nI do not."),
    (CHOICE, "If I were risk averse:\nchoice: A"),
    (CHOICE, "not \\boxed{A}"),
    (CHOICE, "[THINK]\nchoice: B\nhmm"),
    # taken back
    (CHOICE, "choice: A\n\nNo, B."),
    (CHOICE, "choice: A\n\nFinal answer: B"),
    (CHOICE, "choice: A, wait no"),
    (CHOICE, "Answer: A\nOn reflection, B."),
    (OFFER, "offer: 5\n\nOn reflection: 4."),
    (GUESS, "guess: 20. Revised: 30"),
    # words of a sentence
    (MORE, "First, an even split is rare, so the second is more common."),
    (MORE, "more: First, an even split is rare, so the second kind is more common."),
    (ASKED, "Yes! Let me think about it."),
    ({"warm": PAIR["warm"]}, "1. Think about it"),
    # other numbers
    (FAMILIES, "families: 50.000"),
    (SHARE, "share: 1 per cent"),
    (NUMBER, "estimate: 1.5 Millionen"),
    (NUMBER, "estimate: CHF 1.500"),
    (NUMBER, "estimate: ¥1.500"),
    (NUMBER, "a third of 30"),
    (OFFER, "offer: 7 for me"),
    (OFFER, "offer: my share is 6"),
    (OFFER, "offer: for me 6"),
    # nothing, or no order
    (ORDER, '{"order": [["warm"], ["kind", "cold"]]}'),
    (APART, "First: A: sure gain of 240.\nB: 25% chance."),
    (WHY, "why: ..."),
    (WHY, "why: [your answer]"),
    (WHY, "[your answer]"),
]


@pytest.mark.parametrize(("fields", "text"), OF_ANOTHER, ids=[row[1] for row in OF_ANOTHER])
def test_an_answer_of_another_or_taken_back_is_not_counted(fields: dict[str, Answered], text: str) -> None:
    assert read_answers(text, fields).values == {}


def test_a_share_of_an_option_is_no_number_of_its_own() -> None:
    read = read_answers("film_percent: 60% refuse\nfilm_choice: sign", FILM)
    assert (read.values, read.kinds) == ({"film_choice": "sign"}, {"film_percent": "contradictory"})
    assert read_answers('{"film_percent": "60% refuse"}', FILM).kinds["film_percent"] == "contradictory"
    assert read_answers("film_percent: 60%\nfilm_choice: sign", FILM).values == {
        "film_percent": 60,
        "film_choice": "sign",
    }


@pytest.mark.parametrize(
    ("fields", "text", "wanted"),
    [
        (CHOICE, "It is not easy, but here is my answer:\nchoice: A", {"choice": "A"}),
        (CHOICE, "As someone who is 22, I would say:\nchoice: A", {"choice": "A"}),
        (CHOICE, "If I must choose:\nchoice: A", {"choice": "A"}),
        (CHOICE, "So my final choice is A.", {"choice": "A"}),
        (CHOICE, "choice: A\n\nNo doubt about it.", {"choice": "A"}),
        (CHOICE, "choice: A: a sure gain", {"choice": "A"}),
        (MORE, "more: first, because it is rare", {"more": "first"}),
        (PERCENT, "percent: 60 per cent", {"percent": 60}),
        (WHY, "why: my answer is fair", {"why": "my answer is fair"}),
    ],
)
def test_words_around_an_answer_do_not_hide_it(fields: dict[str, Answered], text: str, wanted: dict[str, Any]) -> None:
    assert read_answers(text, fields).values == wanted


@pytest.mark.parametrize(
    "text",
    [
        "<ns:thinking>choice: B</ns:thinking>choice: A",
        '<think lang="en">choice: B</think >\nchoice: A',
        "[THINK]choice: B[/THINK]\nchoice: A",
        "◁think▷choice: B◁/think▷choice: A",
        "<|channel|>analysis choice: B<|channel|>final<|message|>choice: A",
        "<|channel|>analysis<|message|>B<|end|><|start|>assistant<|channel|>final<|message|>choice: A<|return|>",
    ],
)
def test_thoughts_in_other_marks_are_no_answer(text: str) -> None:
    assert read_answers(text, CHOICE).values == {"choice": "A"}
