"""The scorer `replication`: what is read of a participant's replies, turn by turn, and why something is not."""

from __future__ import annotations

from typing import Any

import pytest

from karat.errors import JudgeFault
from karat.records import NOT_ASKED, Answer, Reply, Sample, Turn
from karat_studies.scorers.replication import Replication

pytestmark = pytest.mark.needs_kind("study")

CHOICE = {"choice": {"type": "choice", "options": ["A", "B"]}}
RATING = {"rating": {"type": "likert", "range": [1.0, 7.0]}, "why": {"type": "text", "optional": True}}


def sample(*fields: dict[str, Any]) -> Sample:
    turns = tuple(Turn(question="?", detail={"arm": "a", "task": "t"}) for _ in fields)
    detail = {"study": "s", "profile": {}, "fields": list(fields)}
    return Sample(id="a-001", position=0, digest="d", turns=turns, detail=detail, kind="study")


def scored(one: Sample, *replies: Reply | str) -> list[tuple[Any, ...]]:
    said = tuple(Reply(text=reply) if isinstance(reply, str) else reply for reply in replies)
    answer = Answer(trial="t", sample="a-001", condition="c", repetition=0, replies=said, started="", seconds=0.1)
    verdicts = Replication().score(one, answer)
    assert [verdict.turn for verdict in verdicts] == list(range(len(one.turns)))
    return [(verdict.values["parsed"], verdict.labels, verdict.detail.get("answers")) for verdict in verdicts]


def test_each_turn_has_a_row_with_what_was_read() -> None:
    assert scored(sample(CHOICE, RATING), "choice: B", '{"rating": 5}') == [
        (True, {}, {"choice": "B"}),
        (True, {"why": "missing"}, {"rating": 5.0}),
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I cannot answer that.", "refused"),
        ("", "missing"),
        ("choice: C", "invalid"),
        ("choice: A\nchoice: B", "contradictory"),
    ],
)
def test_what_is_no_answer_stays_none_and_says_why(text: str, kind: str) -> None:
    assert scored(sample(CHOICE), text) == [(False, {"choice": kind}, {})]


def test_a_number_out_of_range_is_no_answer() -> None:
    assert scored(sample(RATING), "rating: 8") == [(False, {"rating": "out_of_range", "why": "missing"}, {})]


def test_turns_that_were_not_asked_or_not_recorded_have_no_value() -> None:
    found = scored(
        sample(CHOICE, CHOICE, CHOICE, CHOICE), "choice: A", NOT_ASKED, Reply(text="", stop_reason="not_recorded")
    )
    assert [one[:2] for one in found] == [
        (True, {}),
        (None, {"turn": "stopped"}),
        (None, {"turn": "unrecorded"}),
        (None, {"turn": "unrecorded"}),
    ]


def test_an_empty_reply_was_asked_and_says_nothing() -> None:
    assert scored(sample(CHOICE), Reply(text="", stop_reason="end_turn")) == [(False, {"choice": "missing"}, {})]


def test_an_answer_that_is_given_apart_is_read_where_there_is_no_text() -> None:
    assert scored(sample(CHOICE), Reply(text="", answer="A")) == [(True, {}, {"choice": "A"})]


def test_samples_of_other_datasets_have_nothing_to_be_read() -> None:
    one = Sample(id="x", position=0, digest="d", turns=(Turn(question="?", golden="A"),))
    assert scored(one, "choice: A") == [(None, {}, None)]


def test_fields_that_no_study_has_are_a_fault_of_the_run() -> None:
    with pytest.raises(JudgeFault, match="cannot be read"):
        scored(sample({"choice": {"type": "nothing"}}), "choice: A")
