"""Games: who plays with whom, and that a round sees only what it may see."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import BadDataset
from karat_studies.kinds.study.format import Answered, Rounds
from karat_studies.kinds.study.people import Person
from karat_studies.kinds.study.rounds import filled_round, groups_of, round_template, seen_of_others

from .studies import STUDY, read

ROUNDS = """\
  game:
    values: {p: one half}
    n: 67
    rounds:
      {count: 3, group: 17, first: materials/start.md, prompt: materials/next.md,
       fields: {number: {type: number, range: [0, 100]}}}
"""
GAME = STUDY.replace("  rating:\n", f"{ROUNDS}  rating:\n")
TEXTS = {
    "start": "Say a number; {{ p }} of the mean wins. Round {{ round }}.",
    "next": "Round {{ round }}: you said {{ last.number }}; {{ others.n }} others: mean {{ others.mean }}, median "
    "{{ others.median }}, {{ others.number.lowest }} to {{ others.highest }}.",
}
FORM = "\n\nEnd your answer with one line in this form:\nnumber: a number from 0 to 100"


@given(st.integers(0, 200), st.integers(2, 30))
def test_groups_are_even_and_lose_nobody(count: int, size: int) -> None:
    persons = [Person(id=str(number), arms=("game",), profile={}) for number in range(count)]
    groups = groups_of(Rounds(count=2, group=size), persons)
    assert [person for group in groups for person in group] == persons
    assert len(groups) == -(-count // size)
    assert not groups or max(map(len, groups)) - min(map(len, groups)) <= 1
    assert max(map(len, groups), default=0) <= size


def test_the_published_groups_come_out():
    persons = [Person(id=str(number), arms=("game",), profile={}) for number in range(67)]
    assert Counter(map(len, groups_of(Rounds(count=4, group=17), persons))) == {17: 3, 16: 1}
    assert Counter(map(len, groups_of(Rounds(count=4), persons))) == {1: 67}


def test_a_round_sees_the_last_one_and_nothing_else(tmp_path: Path) -> None:
    study = read(tmp_path, GAME, TEXTS)
    arm = study.arms["game"]
    assert round_template(study, arm, {}, 1) == ("Say a number; one half of the mean wins. Round 1." + FORM)
    others = [{"number": 10.0}, {"number": 25.0}, {"number": 25.5}, {}]
    later = round_template(study, arm, {}, 2)
    assert filled_round(later, arm.answered, own={"number": 33.0}, others=others) == (
        "Round 2: you said 33; 4 others: mean 20.17, median 25, 10 to 25.5." + FORM
    )


def test_nobody_who_could_be_read_is_not_known():
    number = {"number": Answered(type="number", range=[0, 100])}
    assert seen_of_others(number, [{}, {}]) == {
        "n": 2, "mean": "unknown", "median": "unknown", "lowest": "unknown", "highest": "unknown",
        "number": {"mean": "unknown", "median": "unknown", "lowest": "unknown", "highest": "unknown"},
    }  # fmt: skip


def test_choices_of_others_are_counted():
    fields = {"move": Answered(type="choice", options=["left", "right"]), "sure": Answered(type="likert", range=[1, 5])}
    others = [{"move": "left", "sure": 2}, {"move": "left", "sure": 5}]
    assert seen_of_others(fields, others) == {
        "n": 2, "move": {"left": 2, "right": 0}, "sure": {"mean": 3.5, "median": 3.5, "lowest": 2, "highest": 5}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"start": "You said {{ last.number }}."}, "asks for {{ last.number }}, which has no value"),
        ({"start": "Others: {{ others.mean }}."}, "asks for {{ others.mean }}, which has no value"),
        (
            {"next": "Others: {{ others.meen }}."},
            "{{ others.meen }}, which has no value (did you mean 'others.mean'?)",
        ),
        ({"next": "You said {{ last.nmber }}."}, "did you mean 'last.number'?"),
    ],
)
def test_a_material_that_asks_for_what_its_round_may_not_see_is_a_fault(
    tmp_path: Path, texts: dict[str, str], said: str
) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, GAME, TEXTS | texts, sql=False)
    assert said in str(caught.value)
