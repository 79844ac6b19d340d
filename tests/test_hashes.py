"""Hashes say what a set and a counter say of the things themselves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from karat.hashes import HashSet, Tally

THINGS = st.lists(st.one_of(st.integers(-5, 5), st.text("ab", max_size=2)))


@given(THINGS)
def test_a_hash_set_finds_new_what_a_set_lacks(things: list[int | str]) -> None:
    met = HashSet()
    known: set[int | str] = set()
    for thing in things:
        is_new = hash(thing) not in {hash(other) for other in known}
        assert met.add(thing) == is_new
        known.add(thing)
    assert len(met) == len({hash(thing) for thing in things})


def test_a_hash_set_grows() -> None:
    met = HashSet()
    assert all(met.add(number) for number in range(10_000))
    assert not any(met.add(number) for number in range(10_000))
    assert len(met) == 10_000


@given(THINGS)
def test_a_tally_counts_as_a_counter(things: list[int | str]) -> None:
    tally = Tally()
    tally.update(things)
    counts = Counter(map(hash, things))
    assert (len(tally), tally.different()) == (len(things), len(counts))
    assert tally.again() == {code for code, count in counts.items() if count > 1}


def test_a_tally_of_many_things_counts_alike() -> None:
    tally = Tally()
    tally.update(f"row {number % 120_000}" for number in range(150_000))
    assert (tally.different(), len(tally.again())) == (120_000, 30_000)
