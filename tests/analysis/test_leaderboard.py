"""Conditions of many runs in one order, and which of them cannot be told apart."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.analysis import summarize
from karat.analysis.leaderboard import leaderboard, letters
from karat.document.ranked import leaderboard_document
from karat.errors import BadOption
from karat.records import Metric


def scores(rng, means, questions=60):
    level = rng.normal(0, 0.6, questions)
    return {
        name: np.clip(mean + level + rng.normal(0, 0.4, questions), 1, 5)[:, None].tolist()
        for name, mean in means.items()
    }


def test_runs_are_ranked_and_what_cannot_be_told_apart_shares_a_letter(tmp_path, journals):
    rng = np.random.default_rng(2)
    tables = scores(rng, {"old": 2.5, "new": 3.2, "same": 3.22, "best": 4.0})
    one = summarize(journals.table(tmp_path / "one", {k: tables[k] for k in ("old", "new")}, run="11111111"))
    two = summarize(journals.table(tmp_path / "two", {k: tables[k] for k in ("same", "best")}, run="22222222"))
    board = leaderboard([(one, None), (two, None)])
    assert (board.entries[0].condition, board.entries[-1].condition) == ("best", "old")
    assert (board.questions, board.left_out, board.tests) == (60, 0, 6)
    # An independent computation of every pair: scipy's paired t test, adjusted by Holm by hand.
    values = {name: np.array(rows)[:, 0] for name, rows in tables.items()}
    pairs = list(itertools.combinations(values, 2))
    p = np.array([stats.ttest_rel(values[a], values[b]).pvalue for a, b in pairs])
    adjusted, running = {}, 0.0
    for place, at in enumerate(np.argsort(p)):
        running = max(running, min(1.0, p[at] * (len(p) - place)))
        adjusted[pairs[at]] = running
    groups = {entry.condition: set(entry.groups) for entry in board.entries}
    for (a, b), value in adjusted.items():
        assert bool(groups[a] & groups[b]) == (value > 0.05), (a, b)
    for entry in board.entries:
        assert entry.mean.value == pytest.approx(values[entry.condition].mean())
    assert "it can be told apart from every other" in leaderboard_document(board).verdicts[0]


@given(count=st.integers(1, 8), data=st.data())
def test_two_share_a_letter_exactly_where_no_difference_is_shown(count, data):
    pairs = list(itertools.combinations(range(count), 2))
    apart = set(data.draw(st.lists(st.sampled_from(pairs), unique=True))) if pairs else set()
    found = letters(count, apart)
    for a, b in pairs:
        assert bool(set(found[a]) & set(found[b])) == ((a, b) not in apart)
    assert all(found)


def test_the_lower_is_the_better_where_the_metric_says_so(tmp_path, journals):
    seconds = Metric(name="seconds", low=0, direction="lower")
    run = journals.table(tmp_path / "run", {"slow": [[9], [8], [9.5]], "fast": [[1], [2], [1.5]]}, metric=seconds)
    board = leaderboard([(summarize(run), None)])
    assert [entry.condition for entry in board.entries] == ["fast", "slow"]


def test_only_questions_that_all_share_count(tmp_path, journals):
    first = journals.table(tmp_path / "one", {"a": [[1], [2], [3], [None]]}, run="11111111")
    changed = [journals.sample(index, digest="ee" * 16 if index == 0 else None) for index in range(4)]
    second = journals.table(tmp_path / "two", {"b": [[5], [4], [4], [4]]}, run="22222222", samples=changed)
    board = leaderboard([(summarize(first), None), (summarize(second), "b")])
    assert (board.questions, board.left_out) == (2, 2)
    assert [entry.mean.value for entry in board.entries] == [4.0, 2.5]


def test_what_cannot_be_ranked_is_refused(tmp_path, journals):
    summary = summarize(journals.table(tmp_path / "one", {"a": [[1], [2]], "b": [[2], [None]]}))
    with pytest.raises(BadOption, match="2 conditions or more, got 1"):
        leaderboard([(summary, "a")])
    with pytest.raises(BadOption, match="no condition 'c'"):
        leaderboard([(summary, "c"), (summary, "a")])
    with pytest.raises(BadOption, match="not every run has a metric 'speed'"):
        leaderboard([(summary, None)], metric="speed")
    empty = summarize(journals.table(tmp_path / "two", {"a": [[1], [None]], "b": [[None], [2]]}))
    with pytest.raises(BadOption, match="no question has a score"):
        leaderboard([(empty, None)])
    unlike = [journals.sample(index, digest="ee" * 16) for index in range(2)]
    other = journals.table(tmp_path / "three", {"a": [[1], [2]]}, samples=unlike, run="33333333")
    with pytest.raises(BadOption, match="no question, by id and content, is in every run"):
        leaderboard([(summary, None), (summarize(other), None)])
    assert msgspec.to_builtins(leaderboard([(summary, None)]))["questions"] == 1
