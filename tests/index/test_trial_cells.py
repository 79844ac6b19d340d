"""A table of trials is a dict that needs less memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karat.index.run_index import TrialCells

trials = st.one_of(
    st.text(max_size=30), st.text("0123456789abcdef", min_size=24, max_size=24), st.sampled_from(["", "\0", "a\0", "é"])
)


@given(pairs=st.lists(st.tuples(trials, st.integers(0, 2**40)), max_size=60), asked=st.lists(trials, max_size=10))
def test_it_finds_what_was_set_last(pairs, asked):
    table, known = TrialCells(most_new=4), {}
    for trial, cell in pairs:
        table[trial] = known[trial] = cell
    for trial in [*known, *asked]:
        assert table.get(trial) == known.get(trial, -1)
