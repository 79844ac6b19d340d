"""Who is asked no more, what an open turn asks, and how a system prompt reads for whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import BadOption
from karat.records import AgentSpec, Condition, Sample, Turn
from karat_studies.kinds.study.people import Person
from karat_studies.kinds.study.samples import group_sample, is_stopped, person_sample, prompt_for, turn_question

from .studies import read
from .test_study_rounds import GAME, TEXTS

READ, UNREAD, NONE = "number: 5", "I would rather not say.", None
FIELD = {"number": {"type": "number", "range": [0, 100]}}


def playing(members: int, rounds: int, stop: int | None) -> Sample:
    turns = tuple(
        Turn(question="{{ last.number }} {{ others.n }}" if number else "?", seat=member, open=number > 0,
             detail={"arm": "game", "round": number + 1, "member": member})
        for number in range(rounds) for member in range(members)
    )  # fmt: skip
    people = [{"participant": str(member), "profile": {"age": 20 + member}} for member in range(members)]
    detail = {"study": "s", "members": people, "fields": [FIELD] * len(turns)}
    return Sample(
        id="g", position=0, digest="d", turns=turns, detail=detail | ({"stop_after_unread": stop} if stop else {})
    )


@pytest.mark.parametrize(
    ("said", "stop", "stopped"),
    [
        ([UNREAD, UNREAD], 2, True),
        ([UNREAD, UNREAD], 3, False),
        ([UNREAD, UNREAD], None, False),
        ([UNREAD, READ, UNREAD], 2, False),
        ([READ, UNREAD, UNREAD], 2, True),
        ([UNREAD, UNREAD, NONE, NONE], 2, True),
        ([UNREAD, NONE, UNREAD], 2, True),
        ([NONE, NONE, NONE], 2, False),
        ([UNREAD], 1, True),
        ([""], 1, True),
        ([], 1, False),
    ],
)
def test_so_many_unread_in_a_row_are_enough(said: list[str | None], stop: int | None, stopped: bool) -> None:
    sample = playing(1, len(said) + 1, stop)
    assert is_stopped(sample, len(said), said) is stopped
    assert (turn_question(sample, len(said), said) is None) is stopped


@given(st.lists(st.sampled_from([READ, UNREAD]), min_size=30, max_size=30), st.integers(1, 4))
def test_who_is_stopped_stays_so_and_it_is_nobody_else_s_doing(said: list[str], stop: int) -> None:
    sample, replies = playing(3, 10, stop), [*said]
    stopped: set[int] = set()
    told: list[str | None] = []
    for turn, reply in enumerate(replies):
        seat = turn % 3
        asked = turn_question(sample, turn, told)
        own = [told[at] for at in range(seat, turn, 3)]
        alone = playing(1, 10, stop)
        assert (asked is None) == is_stopped(alone, len(own), own)
        assert asked is None or seat not in stopped
        stopped |= {seat} if asked is None else set()
        if asked is not None and turn >= 3:
            before = [told[at] for at in range(turn // 3 * 3 - 3, turn // 3 * 3) if at % 3 != seat]
            last = "5" if own[-1] == READ else "unknown"
            assert asked == f"{last} {sum(one == READ for one in before)}"
        told.append(None if asked is None else reply)


def test_a_field_of_several_that_was_read_is_enough(tmp_path: Path) -> None:
    study = read(tmp_path)
    person = Person(id="rating-001", arms=("rating",), profile={"occupation": "student"})
    sample = person_sample(study, person, position=0, seed=0, stop_after_unread=1)
    assert [turn.open for turn in sample.turns] == [False, True]
    assert turn_question(sample, 1, ["first: 4"]) == sample.turns[1].question
    assert turn_question(sample, 1, ["first: never"]) is None
    free = person_sample(study, person, position=0, seed=0)
    assert [turn.open for turn in free.turns] == [False, False]
    assert free.digest != sample.digest, "another option may ask something else"
    assert free == person_sample(study, person, position=0, seed=0, stop_after_unread=2), "it cannot come to that"


def test_what_a_value_holds_is_not_filled_again(tmp_path: Path) -> None:
    text = GAME.replace("occupation: student", 'occupation: "{{ secret }}"').replace("Round {{ round }}", "Round", 1)
    texts = {**TEXTS, "next": "{{ profile.occupation }}: you said {{ last.number }}."}
    study = read(tmp_path, text, texts)
    member = Person(id="game-001", arms=("game",), profile={"occupation": "{{ secret }}"})
    with pytest.raises(BadOption, match=r"\{\{ secret \}\} occurs in a value of 'game-001'"):
        group_sample(study, "game", [member], name="game-group-01", position=0)


def test_everybody_reads_their_own_system_prompt_and_only_in_studies() -> None:
    condition = Condition(
        name="a", position=0, digest="", agent=AgentSpec(type="x"), system_prompt="You are {{ profile.age }}."
    )
    assert [prompt_for(condition, playing(2, 1, None), seat) for seat in (0, 1)] == ["You are 20.", "You are 21."]
    golden = Sample(id="0", position=0, digest="d", turns=(Turn(question="?"),))
    assert prompt_for(condition, golden, None) == condition.system_prompt
