"""What is sent of a turn, and how many sessions a sample has."""

from __future__ import annotations

import pytest

from karat.execution.trial import question_for, session_count
from karat.records import Sample, Turn


def sample(*turns: Turn) -> Sample:
    return Sample(id="s", position=0, digest="d", turns=turns)


def test_a_turn_is_sent_as_it_is_asked():
    plain, reworded = Turn(question="q", golden="g"), Turn(question="q", asked="other words", golden="g")
    both = sample(plain, reworded)
    assert question_for(both, 0, []) == plain
    assert question_for(both, 1, []) == Turn(question="other words", asked="other words", golden="g")


@pytest.mark.parametrize(
    ("seats", "sessions"), [([], 1), ([None, None], 1), ([0], 1), ([0, 1], 2), ([0, 1, 0, 2, 1], 3)]
)
def test_each_member_of_a_group_has_a_session_and_a_conversation_has_one(seats: list[int | None], sessions: int):
    assert session_count(sample(*(Turn(question="q", seat=seat) for seat in seats))) == sessions
