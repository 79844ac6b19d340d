"""Which samples are drawn."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.kinds._samples import by_columns, draw, draw_equally
from karat.records import Sample, Turn


def sample(position: int) -> Sample:
    return Sample(id=str(position), position=position, digest="", turns=(Turn(question="q"),))


def ids(drawn: list[Sample]) -> list[int]:
    return [one.position for one in drawn]


HUNDRED = [sample(position) for position in range(100)]


def test_the_draw_is_the_same_on_every_machine() -> None:
    assert ids(draw(HUNDRED, 8, seed=0)) == [25, 27, 43, 54, 60, 66, 87, 93]
    assert ids(draw(HUNDRED, 8, seed=1)) != ids(draw(HUNDRED, 8, seed=0))


@pytest.mark.parametrize("size", [None, 100, 1000])
def test_all_are_drawn_where_there_are_no_more(size: int | None) -> None:
    assert draw(HUNDRED, size, seed=3) == HUNDRED


@given(st.integers(1, 99), st.integers(1, 99), st.integers(0, 5))
def test_a_larger_draw_keeps_the_smaller_one_and_the_order(one: int, other: int, seed: int) -> None:
    small, large = sorted((one, other))
    for stratum in (by_columns(()), lambda found: found.position % 3):
        few, many = (draw(HUNDRED, size, seed=seed, stratum=stratum) for size in (small, large))
        assert len(few) == small
        assert set(ids(few)) <= set(ids(many))
        assert ids(many) == sorted(ids(many))


def test_a_row_more_leaves_the_others_where_they_are() -> None:
    before = set(ids(draw(HUNDRED, 20, seed=0)))
    after = set(ids(draw([*HUNDRED, sample(100)], 20, seed=0)))
    assert len(before - after) <= 1


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.data())
def test_each_stratum_gives_its_share_to_within_one(sizes: list[int], data: st.DataObject) -> None:
    strata = [name for name, size in enumerate(sizes) for _ in range(size)]
    samples = [sample(position) for position in range(len(strata))]
    size = data.draw(st.integers(1, len(samples)))
    drawn = Counter(
        strata[one.position] for one in draw(samples, size, seed=0, stratum=lambda one: strata[one.position])
    )
    for name, count in enumerate(sizes):
        assert abs(drawn[name] - count * size / len(samples)) < 1


def test_each_sample_is_drawn_equally_often() -> None:
    counts = Counter(one for seed in range(2000) for one in ids(draw(HUNDRED[:10], 3, seed=seed)))
    assert all(520 < counts[position] < 680 for position in range(10))


@given(st.integers(4, 99), st.integers(4, 99), st.integers(0, 5))
def test_an_equal_draw_takes_as_many_of_each_and_keeps_the_smaller_one(one: int, other: int, seed: int) -> None:
    small, large = sorted((one, other))
    groups = {position: 3 if position < 2 else position % 3 for position in range(100)}  # of 2, 33, 33 and 32
    few, many = (
        draw_equally(HUNDRED, size, seed=seed, stratum=lambda found: groups[found.position]) for size in (small, large)
    )
    assert set(ids(few)) <= set(ids(many))
    assert ids(many) == sorted(ids(many))
    sizes = Counter(groups.values())
    taken = Counter(groups[drawn.position] for drawn in many)
    assert len(many) == large
    full = [group for group, count in taken.items() if count == sizes[group]]
    open_ones = [count for group, count in taken.items() if group not in full]
    assert not open_ones or max(open_ones) - min(open_ones) <= 1
    assert all(taken[group] <= max(open_ones, default=100) + 1 for group in full)
    assert sum(drawn.weight for drawn in many) == pytest.approx(100)
    assert {drawn.weight for drawn in many if groups[drawn.position] == 0} == {sizes[0] / taken[0]}


def test_an_equal_draw_of_all_has_no_weights_and_one_of_too_few_is_refused() -> None:
    assert draw_equally(HUNDRED, 100, seed=0, stratum=lambda found: found.position) == HUNDRED
    with pytest.raises(ValueError, match="there are 3 strata"):
        draw_equally(HUNDRED, 2, seed=0, stratum=lambda found: found.position % 3)
