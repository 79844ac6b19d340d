"""What counts, rule by rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import BadOption
from karat.index import PartialAnswer, PartialScorings, trial_value, turn_values
from karat.index.rules import counting_rows, shown_scorings

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 2), st.integers(-1, 1), st.integers(0, 1)), max_size=30)


@given(rows=ROWS, partial=st.sets(st.integers(0, 3)))
def test_the_last_row_at_a_place_counts(rows, partial):
    last = {row: number for number, row in enumerate(rows) if row[0] not in partial}
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), 4).T
    assert counting_rows(*columns, partial=partial).tolist() == [last[row] for row in sorted(last)]


def test_a_trial_s_number_is_the_mean_over_repeats_then_judges_then_turns():
    rows = [(0, "a", 1), (0, "a", 3), (0, "b", 5), (1, "a", True), (2, "a", None)]
    assert turn_values(rows) == [3.5, 1.0]
    assert trial_value(rows) == 2.25
    assert trial_value([(None, None, None)]) is None


def test_a_scoring_is_whole_once_all_its_places_have_a_row():
    partial: PartialScorings[str, int] = PartialScorings()
    assert [partial.completes("a", place, rows=3) for place in (0, 1, 1, 0, 2)] == [False] * 4 + [True]
    assert partial.completes("b", 0, rows=1)
    assert not partial.completes("c", 7, rows=2)
    assert partial.places == {"c": {7}}


def test_replies_count_from_the_turn_where_the_next_attempt_resumed():
    conversation: PartialAnswer[str] = PartialAnswer()
    assert [conversation.add(turn, text) for turn, text in enumerate("abc")] == [[], [], []]
    assert conversation.end_attempt("network") == 3
    assert conversation.add(1, "B") == ["b", "c"]
    assert (conversation.resumable, conversation.journalled) == (["a", "B"], 1)
    conversation.end_process()
    assert conversation.end_attempt("gate_tool_use") == 0
    assert (conversation.resumable, conversation.replies) == ((), ["a", "B"]), "a missed gate concerns all turns"
    assert conversation.add(0, "A") == ["a", "B"]
    assert conversation.resumable == ["A"]
    assert conversation.add(5, "x") == ["A", "x"], "its beginning is lost"


ANNOUNCED = [("judge", "aa11"), ("judge", "aa22"), ("form", "bb")]


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ({}, {"judge": "aa22", "form": "bb", "other": "cc"}),
        ({"judge": "aa1"}, {"judge": "aa11", "form": "bb", "other": "cc"}),
        ({"judge": "dd"}, {"judge": "dd", "form": "bb", "other": "cc"}),
    ],
)
def test_the_newest_scoring_is_shown_unless_another_is_named(wanted, shown):
    newest = {"other": "cc", "form": "bb", "judge": "aa22"}
    assert shown_scorings(newest, ANNOUNCED, [("judge", "dd")], wanted) == shown
    assert list(shown_scorings(newest, ANNOUNCED, [], {})) == ["judge", "form", "other"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"jury": "aa"}, "the run has no scorer 'jury'"),
        ({"judge": "aa"}, "'aa' matches several scorings of 'judge' (known: aa11, aa22)"),
        ({"judge": "x"}, "'x' is not a scoring of 'judge' (known: aa11, aa22)"),
    ],
)
def test_a_scoring_that_is_not_there_is_refused(wanted, message):
    with pytest.raises(BadOption) as caught:
        shown_scorings({"judge": "aa22"}, ANNOUNCED, [], wanted)
    assert message in str(caught.value)
