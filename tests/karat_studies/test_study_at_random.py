"""Random participants: every field gets an answer that can be read, in its range, and each option its share."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.records import Sample, Turn
from karat_studies.kinds.study import Study
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.samples import random_answers, random_reply, random_text, random_values, read_reply


def worded(labels: list[str]) -> bool:
    """In a ranking, a number may be the place of what follows."""
    return not any(label.isdecimal() for label in labels)


LABELS = st.lists(
    st.sampled_from(["A", "B", "C", "D", "left", "right", "both", "only_b", "cooperate", "1", "2", "3", "yes", "no"]),
    min_size=2,
    max_size=6,
    unique=True,
)
ENDS = st.tuples(st.integers(-1000, 1000), st.integers(1, 1000)).map(lambda ends: [float(ends[0]), float(sum(ends))])
RANGES = st.one_of(
    st.none(),
    ENDS,
    st.just([0.0, None]),
    st.just([None, 10.0]),
    st.just([0.0, 0.001]),
    st.just([0.0, 1e-7]),
    st.just([0.0, 1e18]),
    st.just([2.5, 2.5]),
)
FIELD = st.one_of(
    st.builds(lambda labels: {"type": "choice", "options": labels}, LABELS),
    st.builds(lambda labels: {"type": "rank", "options": labels}, LABELS.filter(worded)),
    st.builds(lambda range_: {"type": "number", "range": range_}, RANGES),
    st.builds(lambda range_: {"type": "number", "range": range_, "whole": True}, st.one_of(st.none(), ENDS)),
    st.builds(lambda range_: {"type": "likert", "range": range_}, ENDS),
    st.just({"type": "text"}),
)
FIELDS = st.lists(FIELD, min_size=1, max_size=5).map(lambda found: {f"field_{at}": one for at, one in enumerate(found)})


def sample(fields: dict[str, dict[str, Any]]) -> Sample:
    detail = {"study": "s", "profile": {}, "fields": [fields]}
    return Sample(id="p-001", position=0, digest="d", turns=(Turn(question="?"),), detail=detail)


@given(FIELDS, st.integers(0, 2**32))
def test_every_field_gets_an_answer_that_can_be_read(fields: dict[str, dict[str, Any]], seed: int) -> None:
    read = read_reply(sample(fields), 0, random_text(fields, random.Random(seed)))
    assert read.kinds == {}
    drawn = random_values(fields, random.Random(seed))
    assert list(read.values) == list(drawn)
    for name, value in drawn.items():  # a text like 8.4e-08 is read to the last bit but one
        assert read.values[name] == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)
    for name, one in fields.items():
        low, high = one.get("range") or (None, None)
        value = read.values[name]
        assert low is None or (isinstance(value, float | int) and value >= low)
        assert high is None or (isinstance(value, float | int) and value <= high)


def test_each_option_is_as_likely_as_any_other() -> None:
    fields = {
        "choice": {"type": "choice", "options": {"A": "saved", "B": "perhaps"}},
        "how": {"type": "likert", "range": [1, 4]},
    }
    met: dict[str, Counter[Any]] = {"choice": Counter(), "how": Counter()}
    for seed in range(4000):
        for name, value in read_reply(sample(fields), 0, random_text(fields, random.Random(seed))).values.items():
            met[name][value] += 1
    assert all(abs(count - 2000) < 160 for count in met["choice"].values()), "five standard deviations"
    assert len(met["how"]) == 4
    assert all(abs(count - 1000) < 140 for count in met["how"].values())


@pytest.mark.parametrize("name", sorted(shipped_studies()))
def test_every_answer_to_a_shipped_study_can_be_read(name: str) -> None:
    dice = random.Random(name)
    for one in Study(Study.Options(per_arm=3)).load(shipped_studies()[name]).samples:
        for turn in range(len(one.turns)):
            before = dice.getstate()
            read = read_reply(one, turn, random_reply(one, turn, dice))
            dice.setstate(before)
            assert (read.kinds, read.values) == ({}, random_answers(one, turn, dice))
