"""A text that no name explains is asked about where a question or an answer is missing."""

import pytest

from karat.documents.columns import columns_of
from karat.documents.roles import Reading, Undecided, assign

SENTENCES = (
    "My parcel has not arrived yet",
    "Please cancel the order of today",
    "The invoice shows a wrong address",
    "Who signs for the second delivery?",
)
REPLIES = (
    "We have sent it once more",
    "It is cancelled, nothing is charged",
    "A corrected invoice is on its way",
    "Your neighbour signs for it this time",
)


def rows(door: str, **cells: object):
    """What is read of four rows; each cell is a list of four, or the same in all of them."""
    written = [
        {name: cell[place] if isinstance(cell, tuple) else cell for name, cell in cells.items()} for place in range(4)
    ]
    return assign(columns_of(written), door=door)


def choices(result, *roles: str) -> list[tuple[str | None, ...]]:
    assert isinstance(result, Undecided), result
    return [tuple(reading.one(role) for role in roles) for reading in result.readings]


def test_a_text_beside_answers_without_a_question_may_be_the_question():
    result = rows("results", case_id=("a", "b", "c", "d"), customer_email=SENTENCES, generated_reply=REPLIES)
    assert choices(result, "question", "answer") == [("customer_email", "generated_reply"), (None, "generated_reply")]


def test_a_text_beside_scores_without_an_answer_may_be_the_answer():
    result = rows("results", question=SENTENCES, what_it_wrote=REPLIES, correctness=(1, 0, 1, 1))
    assert choices(result, "question", "answer") == [("question", "what_it_wrote"), ("question", None)]


def test_two_texts_are_offered_as_both():
    result = rows("results", id=("a", "b", "c", "d"), mail=SENTENCES, written=REPLIES, correctness=(1, 0, 1, 1))
    assert ("mail", "written") in choices(result, "question", "answer")
    assert ("written", "mail") in choices(result, "question", "answer")


def test_a_weak_name_yields_to_no_unknown_text_unasked():
    result = rows("dataset", customer_mail=SENTENCES, intent=REPLIES, expected_answer=("yes", "no", "yes", "no"))
    assert {chosen for (chosen,) in choices(result, "question")} == {"customer_mail", "intent"}


def test_a_question_may_have_a_name_that_says_little():
    result = rows("results", title=SENTENCES, answer=REPLIES, golden=("yes", "no", "yes", "no"))
    assert choices(result, "question")[0] == ("title",)


def test_without_an_answer_a_text_is_offered():
    result = rows("results", question=SENTENCES, written=REPLIES)
    assert choices(result, "question", "answer") == [("question", "written")]


@pytest.mark.parametrize(
    "beside",
    [
        {"verdict_reason": REPLIES},
        {"stderr": REPLIES},
        {"judge_comment": REPLIES},
        {"attack": ("theft", "theft", "fraud", "theft")},
        {"page": ("https://a.example/1", "https://a.example/2", "https://a.example/3", "https://a.example/4")},
    ],
)
def test_what_a_name_or_the_cells_explain_is_not_asked_about(beside):
    result = rows("results", case_id=("a", "b", "c", "d"), prediction=("yes", "no", "yes", "yes"), **beside)
    assert isinstance(result, Reading)
    assert (result.one("question"), result.one("answer")) == (None, "prediction")


def test_what_the_user_named_is_not_asked_about():
    columns = columns_of([{"id": str(place), "mail": SENTENCES[place], "reply": REPLIES[place]} for place in range(4)])
    result = assign(columns, door="results", named={"question": ("mail",), "answer": ("reply",)})
    assert isinstance(result, Reading)
    assert (result.one("question"), result.one("answer")) == ("mail", "reply")
