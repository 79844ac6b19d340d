"""Sentences that say which option was chosen, and those that do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat_studies.kinds.study.fields import read_answers
from karat_studies.kinds.study.format import Answered

YES_NO, A_B, C_D, E_F = ["yes", "no"], ["A", "B"], ["C", "D"], ["E", "F"]

SAID = [
    ("The answer to this question is no", YES_NO, "no"),
    ("The answer to the question is: yes.", YES_NO, "yes"),
    ("So the answer is yes.", YES_NO, "yes"),
    ("After thinking about it, my answer is no.", YES_NO, "no"),
    ("The answer would be yes, since it is only ten dollars.", YES_NO, "yes"),
    ("I would say yes.", YES_NO, "yes"),
    ("No, I wouldn't buy it again.", YES_NO, "no"),
    ("Yes, I would drive there to save five dollars.", YES_NO, "yes"),
    ("No. Ten dollars is ten dollars.", YES_NO, "no"),
    ("Yes\n\nThe money is gone anyway.", YES_NO, "yes"),
    ("Answer: no\n\nExplanation: the ticket is too expensive.", YES_NO, "no"),
    ("My answer: **no**.", YES_NO, "no"),
    ("Choose: No, it is too far away.", YES_NO, "no"),
    ("no\nThe answer must be yes or no.", YES_NO, "no"),
    ('The answer to the question "Would you still pay $10 for a ticket?" is no.', YES_NO, "no"),
    ("The correct answer is A.", A_B, "A"),
    ("I chose B because it is safer.", A_B, "B"),
    ("I have chosen A.", A_B, "A"),
    ("My decision is B.", A_B, "B"),
    ("I would pick option A.", A_B, "A"),
    ("Choose: B, the gamble.", A_B, "B"),
    ("I will go with programme A.", A_B, "A"),
    ("I prefer B over the sure thing.", A_B, "B"),
    ("The right choice is B.\nIt has the higher expected value.", A_B, "B"),
    ("My preference is (B).", A_B, "B"),
    ("I choose A rather than B.", A_B, "A"),
    ("My answer to the question is: \n\nB", A_B, "B"),
    ("I think the answer is B.", A_B, "B"),
    ("The chosen answer is D.", C_D, "D"),
    ("I'd choose C.", C_D, "C"),
    ("Therefore, the answer is D.", C_D, "D"),
    ("My final choice would be: D", C_D, "D"),
    ('The selected option is "C".', C_D, "C"),
    ("I'm going with C!", C_D, "C"),
    ("The answer is therefore D.", C_D, "D"),
    ("I pick D: the gamble.", C_D, "D"),
    ("Given the odds, I'd take F.", E_F, "F"),
    ("E: You win $30 with a chance of 25 %.", E_F, "E"),
]
NOT_SAID = [
    ("A or B", A_B),
    ("choice: A or B", A_B),
    ("Choose: yes or no", YES_NO),
    ("The answer must be yes or no.", YES_NO),
    ("The answer is yes and no.", YES_NO),
    ("The answer is A or B.", A_B),
    ("The answer is A, or maybe B.", A_B),
    ("A: 200 people will be saved.\nB: one third.", A_B),
    ("yes\nChoose a different option: no", YES_NO),
    ("So, the answer is C. On the other hand, the answer is D.", C_D),
    ("I choose A. But B is also good.", A_B),
    ("The answer is not A.", A_B),
    ("I would not choose A.", A_B),
    ("The wrong answer is A.", A_B),
    ("Most people's choice is A.", A_B),
    ("If I were rich, my answer would be yes.", YES_NO),
    ("The question is whether the answer is no.", YES_NO),
    ("The answer could be yes.", YES_NO),
    ("It depends on the rules.", YES_NO),
    ("Yes, let me think about that.", YES_NO),
    ("No, it depends on the price.", YES_NO),
    ("There is no answer.", YES_NO),
    ("The answer is E.", A_B),
    ("I'd choose C.", A_B),
    ("A: It is hard to say what the answer would be.", A_B),
]


def read(text: str, options: list[str]) -> str | None:
    value = read_answers(text, {"choice": Answered(type="choice", options=options)}).values.get("choice")
    assert value is None or isinstance(value, str)
    return value


@pytest.mark.parametrize(("text", "options", "answer"), SAID)
def test_a_sentence_that_names_one_option_is_an_answer(text: str, options: list[str], answer: str) -> None:
    assert read(text, options) == answer


@pytest.mark.parametrize(("text", "options"), NOT_SAID)
def test_a_sentence_that_may_mean_another_option_is_none(text: str, options: list[str]) -> None:
    assert read(text, options) is None


def test_a_refusal_is_a_kind_of_its_own() -> None:
    fields = {"choice": Answered(type="choice", options=YES_NO)}
    assert read_answers("No, I cannot answer this question.", fields).kinds == {"choice": "refused"}


def test_what_a_reader_reads_of_a_small_model_is_read(shared_data: Path) -> None:
    """Of 25 answers that a reader reads, 90 %; and none that the reader does not read."""
    text = (shared_data / "small_model" / "studies.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    readable = agreeing = 0
    for row in rows:
        fields = {name: Answered(type="choice", options=options) for name, options in row["fields"].items()}
        values = read_answers(row["text"], fields).values
        readable += row["read"] is not None
        agreeing += row["read"] is not None and values == row["read"]
        assert not values or values == row["read"], row["text"]
    assert agreeing >= 0.9 * readable


SHOWN = (
    "Which of these?\n\nA: You win $30 with a chance of 25 %.\nB: You win $45 with a chance of 20 %.\n\nchoice: A or B"
)
CHOICE = {"choice": Answered(type="choice", options=["A", "B"])}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("You win $30 with a chance of 25 %.", "A"),
        ("**you win $45 with a chance of 20%**", "B"),
        ("I choose: You win $45 with a chance of 20 %, because it is more.", "B"),
        ("You win $30 with a chance of 25 %.\n\nIt is more likely.", "A"),
        ("You win $30 with a chance of 25 %. You win $45 with a chance of 20 %.", None),
        ("You win $30 with a chance of 25 %, or B.", None),
        ("You win $30 with a chance of 25 %?", None),
        ("I would not say: You win $30 with a chance of 25 %.", None),
        ("You win $30", None),
    ],
)
def test_an_option_is_said_by_its_own_words(text: str, answer: str | None) -> None:
    assert read_answers(text, CHOICE, shown=SHOWN).values.get("choice") == answer
    meant = Answered(
        type="choice", options={"A": "You win $30 with a chance of 25 %", "B": "You win $45 with a chance of 20 %"}
    )
    assert read_answers(text, {"choice": meant}).values.get("choice") == answer
    assert answer is None or read_answers(text, CHOICE).values == {}, "what the options mean is not known"


def test_a_prompt_that_describes_one_option_says_nothing_of_the_others() -> None:
    assert read_answers("It rains.", CHOICE, shown="A: It rains.\n\nA or B?").values == {}


@pytest.mark.parametrize(
    "text",
    [
        "Is the answer A?", "Would it be B?", "Which of them, A?", "My choice is A?", "choice: A?", "A?", "**A** ?",
        "My answer is A, isn't it?", "choice: A, right?", "Final answer: A?", "<answer>A?</answer>",
        "<answer>A</answer>?", r"\boxed{A}?", '{"choice": "A?"}', "I choose A?",
    ],
)  # fmt: skip
def test_a_question_is_no_answer(text: str) -> None:
    assert read_answers(text, CHOICE).values == {}


@pytest.mark.parametrize("text", ["choice: A (why not?)", "choice: A. Is that all?", "Is it A? No.\nchoice: A"])
def test_an_answer_beside_a_question_is_one(text: str) -> None:
    assert read_answers(text, CHOICE).values == {"choice": "A"}
