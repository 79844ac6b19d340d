"""Several conditions beside each other."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from karat import stats

# Loftus and Masson (1994), table 2: words that ten people recalled after 1, 2 and 5 seconds.
RECALLED = {
    "1 s": [10, 6, 11, 22, 16, 15, 1, 12, 9, 8],
    "2 s": [13, 8, 14, 23, 18, 17, 1, 15, 12, 9],
    "5 s": [13, 8, 14, 25, 20, 17, 4, 17, 12, 12],
}

tables = st.tuples(st.integers(1, 5), st.integers(2, 12)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(1, 5), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    )
)


def ranked(values, clusters=None, *, seed=1, replicates=499, **more):
    return stats.leaderboard(values, clusters, rng=np.random.default_rng(seed), replicates=replicates, **more)


def test_means_and_differences_agree_with_loftus_and_masson():
    """Loftus and Masson (1994), Psychon. Bull. Rev. 1:476, table 2: the means are 11.0, 13.0 and 14.2."""
    found = ranked(RECALLED, replicates=20_000)
    assert [(one.name, one.interval.value) for one in found.standings] == [("5 s", 14.2), ("2 s", 13.0), ("1 s", 11.0)]
    assert [(one.first, one.second, round(one.value, 6)) for one in found.contrasts] == [
        ("5 s", "2 s", 1.2),
        ("5 s", "1 s", 3.2),
        ("2 s", "1 s", 2.0),
    ]
    assert found.groups == (("5 s", "2 s"), ("1 s",))
    assert [(one.best_rank, one.worst_rank) for one in found.standings] == [(1, 2), (1, 2), (3, 3)]


def test_two_conditions_are_compared_as_by_the_paired_test():
    """One comparison: its p is that of the t distribution, or of the drawn one where that is larger."""
    found = ranked({"b": RECALLED["2 s"], "a": RECALLED["1 s"]})
    paired = stats.paired_difference(RECALLED["1 s"], RECALLED["2 s"])
    (one,) = found.contrasts
    assert (one.value, one.se, one.p) == pytest.approx((paired.value, paired.se, paired.p))
    assert (one.low, one.high) == pytest.approx((paired.low, paired.high))


@given(table=tables)
def test_intervals_lie_between_students_and_bonferronis(table):
    found, n = ranked(table), len(table[0])
    pairs = [one for one in found.contrasts if one.se > 0]
    for one in pairs:
        single, all_of_them = (scipy.stats.t.ppf(1 - 0.025 / count, n - 1) * one.se for count in (1, len(pairs)))
        assert single - 1e-9 <= (one.high - one.low) / 2 <= all_of_them + 1e-9
        plain = 2 * scipy.stats.t.sf(abs(one.value / one.se), n - 1)
        assert plain * (1 - 1e-9) <= one.p <= min(1, plain * len(pairs)) * (1 + 1e-9)
        if abs(abs(one.value) - (one.high - one.low) / 2) > 1e-9:
            assert one.apart == (one.low > 0 or one.high < 0)
    for standing in found.standings:
        assert standing.interval.low <= standing.interval.value <= standing.interval.high


@given(table=tables)
def test_groups_are_the_largest_sets_of_which_no_two_are_apart(table):
    found = ranked(table)
    apart = {frozenset((one.first, one.second)) for one in found.contrasts if one.apart}
    names = [one.name for one in found.standings]
    alike = [
        set(some)
        for size in range(1, len(names) + 1)
        for some in itertools.combinations(names, size)
        if not any(frozenset(pair) in apart for pair in itertools.combinations(some, 2))
    ]
    largest = [some for some in alike if not any(some < other for other in alike)]
    assert sorted(map(sorted, largest)) == sorted(map(sorted, found.groups))
    for standing in found.standings:
        better = sum(one.apart and one.second == standing.name for one in found.contrasts)
        assert standing.best_rank == 1 + better
        assert standing.best_rank <= 1 + names.index(standing.name) <= standing.worst_rank


@given(table=tables, shift=st.integers(-20, 20))
@example(table=[[1, 1, 1, 1, 1, 1], [1, 1, 1, 2, 2, 3], [1, 3, 3, 5, 5, 5]], shift=-4)  # values at their mean
@example(table=[[1, 1, 1, 1, 2, 4], [1, 1, 1, 2, 2, 3], [1, 3, 5, 4, 4, 5]], shift=-4)
def test_a_leaderboard_moves_with_its_data_and_turns_where_less_is_better(table, shift):
    one = ranked(table)
    moved = ranked([[2 * value + shift for value in column] for column in table])
    turned = ranked([[-value for value in column] for column in table], higher_is_better=False)
    assert [standing.name for standing in one.standings] == [standing.name for standing in moved.standings]
    assert one.groups == moved.groups == turned.groups
    for here, there in zip(one.contrasts, moved.contrasts, strict=True):
        assert (2 * here.low, 2 * here.high) == pytest.approx((there.low, there.high), abs=1e-7)


def test_questions_are_the_unit_and_names_and_clusters_may_come_by_condition():
    table = {"a": [1, 2, 3, 5, 5, 4], "b": [2, 2, 4, 5, 5, 5]}
    plain = ranked(table)
    twice = {name: [value for value in column for _ in range(2)] for name, column in table.items()}
    questions = [question for question in range(6) for _ in range(2)]
    assert ranked(twice, questions).contrasts == plain.contrasts
    assert ranked(twice, {"a": questions, "b": np.array(questions)}).contrasts == plain.contrasts
    backwards = {"a": twice["a"], "b": twice["b"][::-1]}
    assert ranked(backwards, {"a": questions, "b": questions[::-1]}).contrasts == plain.contrasts
    assert [one.name for one in ranked(list(table.values())).standings] == ["2", "1"]


def test_questions_that_a_condition_lost_are_left_out_for_all_and_counted():
    found = ranked({"a": [1, 2, 3, 4], "b": [2, None, 4, 4], "c": [1, 1, 2, 2]})
    assert found.n == 3
    assert {one.name: one.lost for one in found.standings} == {"a": 0, "b": 1, "c": 0}
    assert found.warnings == ("questions lost under b: 1, a: 0, c: 0; the compared parts may differ",)
    uneven = ranked({"a": [1, 2, 3, None], "b": [1, 2, 3, 4]}, [1, 2, 3, 3])
    assert uneven.warnings == ("answers missing under b: 0, a: 1; the compared parts may differ",)


def test_conditions_that_never_differ_are_a_tie_and_ones_that_always_do_are_told_by_sign_flips():
    base = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    found = ranked({"a": base, "b": base, "c": [value + 1 for value in base]})
    by_pair = {(one.first, one.second): one for one in found.contrasts}
    assert by_pair["a", "b"].p == 1.0
    assert by_pair["c", "a"].p == pytest.approx(3 * 2.0**-9)
    assert by_pair["c", "a"].reason == "all 10 differences are equal: p by sign flips"
    assert found.groups == (("c",), ("a", "b"))


def test_one_question_tells_nobody_apart():
    found = ranked({"a": [1], "b": [5]})
    assert found.reason == "fewer than two questions have a value under every condition"
    assert found.groups == (("b", "a"),)
    assert math.isnan(found.contrasts[0].p)
    assert [one.worst_rank for one in found.standings] == [2, 2]
    nobody = ranked({"a": [1, None], "b": [None, 2]})
    assert (nobody.n, nobody.groups) == (0, (("a", "b"),))


def test_a_seed_gives_one_leaderboard():
    assert ranked(RECALLED) == ranked(RECALLED)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ranked({}), "values: must hold a condition"),
        (lambda: ranked({"a": [1, 2], "b": [1]}), "values: must be equally many for every condition"),
        (lambda: ranked({"a": [1, 2]}, {"b": [1, 2]}), "clusters: must be given for the same conditions as values"),
        (lambda: ranked({"a": ["x"]}), "values of a: must be numbers"),
        (lambda: ranked({"a": [1, 2]}, level=0), "level: must lie between 0 and 1, got 0"),
        (lambda: stats.leaderboard({"a": [1, 2]}), "rng: is required"),
        (lambda: ranked({"a": [1, 2]}, replicates=10), "replicates: must be at least 40 for level 0.95, got 10"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
