"""A judge put right by people: exact sums, coverage with a judge that is wrong, and its laws."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import mean, variance

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.stats import calibrate, mean_interval, paired_difference

STEPS = [1, 2, 3, 4, 5]
N = None
scores = st.integers(1, 5)
answers = st.lists(st.tuples(scores, scores, st.booleans()), min_size=2, max_size=40)


def sides(rows):
    return [judge for judge, _, _ in rows], [person if told else None for _, person, told in rows]


@settings(deadline=None)
@given(rows=answers)
def test_the_corrected_mean_is_the_judges_alone_plus_the_gap(rows):
    """Angelopoulos et al. (2023): mean(judge alone) + mean(person − judge), variances added; in fractions."""
    found = calibrate(*sides(rows)).corrected
    alone = [Fraction(judge) for judge, _, told in rows if not told]
    gap = [Fraction(person - judge) for judge, person, told in rows if told]
    if not gap:
        assert math.isnan(found.value)
        assert "no person scored" in found.reason
    elif not alone:
        assert found.value == pytest.approx(float(mean(person for _, person, _ in rows)))
        assert "people alone" in found.method
    else:
        assert found.value == pytest.approx(float(mean(alone) + mean(gap)))
        if min(len(alone), len(gap)) < 2:
            assert math.isnan(found.se)
            assert "only one question" in found.reason
        else:
            se = math.sqrt(variance(alone) / len(alone) + variance(gap) / len(gap))
            assert found.se == pytest.approx(se, abs=1e-12)
            assert se == 0 or min(len(alone), len(gap)) - 1 <= found.df + 1e-9 <= len(rows)


@settings(deadline=None)
@given(rows=answers, shift=st.integers(-3, 3))
def test_a_judge_that_is_off_by_the_same_everywhere_changes_nothing(rows, shift):
    judge, human = sides(rows)
    one, two = (calibrate([score + by for score in judge], human) for by in (0, shift))
    assert two.corrected.value == pytest.approx(one.corrected.value, nan_ok=True)
    assert two.corrected.se == pytest.approx(one.corrected.se, abs=1e-9, nan_ok=True)
    assert two.bias.value == pytest.approx(one.bias.value + shift, nan_ok=True)


@settings(deadline=None)
@given(rows=answers)
def test_the_confusion_counts_every_answer_that_both_scored_once(rows):
    judge, human = sides(rows)
    found = calibrate(judge, human, categories=STEPS)
    table = np.array(found.confusion)
    both = [(one, two) for one, two in zip(human, judge, strict=True) if one is not None]
    assert table.sum() == found.labelled == len(both)
    assert found.unlabelled == len(rows) - len(both)
    for row, column in both:
        assert table[row - 1, column - 1] == both.count((row, column))
    if both:
        assert found.exact == pytest.approx(np.mean([one == two for one, two in both]))
        moved = (table * np.subtract.outer(STEPS, STEPS).T).sum() / len(both)
        assert found.bias.value == pytest.approx(moved)


def test_the_parts_are_those_of_the_other_functions():
    judge = [5, 4, N, 3, 4, 4, 5, 2]
    human = [4, 4, 3, 2, N, N, N, N]
    at = ["a", "a", "b", "b", "a", "c", "c", "d"]
    found = calibrate(judge, human, at, categories=STEPS, level=0.9)
    assert (found.labelled, found.unlabelled, found.dropped) == (3, 4, 1)
    assert found.judge == mean_interval([5, 4, 3, 4, 4, 5, 2], [*"aabaccd"], level=0.9)
    assert found.people == mean_interval([4, 4, 3, 2], [*"aabb"], level=0.9)
    assert found.bias == mean_interval([1, 0, 1], [*"aab"], level=0.9)
    gap = paired_difference([5, 4, 3], [4, 4, 2], [*"aab"])
    assert found.corrected.value == pytest.approx(mean([4, 4.5, 2]) + gap.value)
    assert found.corrected.n == 4


def test_answers_given_twice_tell_no_more_than_once():
    judge, human, at = [5, 4, 5, 3, 4, 1, 5, 2], [4, 4, 5, 2, N, N, N, N], [*"abcdabef"]
    once, twice = calibrate(judge, human, at), calibrate(judge * 2, human * 2, at * 2)
    for part in ("bias", "judge", "people", "corrected"):
        one, two = getattr(once, part), getattr(twice, part)
        assert (one.value, one.se, one.low, one.n) == (
            pytest.approx(two.value),
            pytest.approx(two.se),
            pytest.approx(two.low),
            two.n,
        )


def test_the_interval_holds_the_truth_though_the_judge_is_wrong():
    """A judge one step too kind, and kinder to what is bad; questions of three answers, one of them labelled."""
    rng, held, naive, width, runs = np.random.default_rng(4), 0, 0, [], 600
    for _ in range(runs):
        level = np.repeat(rng.normal(3, 0.8, 60), 3)
        truth = level + rng.normal(0, 0.5, 180)
        judge = 0.6 * truth + 2.2 + rng.normal(0, 0.3, 180)
        labelled = rng.random(180) < 1 / 3
        found = calibrate(judge, np.where(labelled, truth, np.nan), np.repeat(np.arange(60), 3))
        held += found.corrected.low <= 3 <= found.corrected.high
        naive += found.judge.low <= 3 <= found.judge.high
        width.append(found.corrected.se / found.people.se)
    assert 0.93 <= held / runs <= 0.975
    assert naive == 0
    assert np.mean(width) < 1  # the judge does help


def test_a_mean_counts_at_the_nearest_step():
    found = calibrate([4.5, 4.4, 1.49], [5, 4, 1.5], categories=STEPS)
    assert found.confusion[4][4] == found.confusion[3][3] == found.confusion[1][0] == 1
    assert found.exact == pytest.approx(2 / 3)
    assert (found.steps, calibrate([1], [1]).confusion) == ((1, 2, 3, 4, 5), None)


def test_nothing_to_compare_is_said():
    found = calibrate([], [], categories=[0, 1])
    assert (found.labelled, found.confusion, math.isnan(found.exact)) == (0, ((0, 0), (0, 0)), True)
    assert "nobody" in found.corrected.reason or "no values" in found.corrected.reason
    point = calibrate([1, 1, 1, 1], [1, 1, N, N]).corrected
    assert (point.low, point.high, point.reason) == (1, 1, "nothing varies: the interval is a point")
    tenths = calibrate([0.1] * 6 + [0.7] * 3, [N] * 6 + [0.8] * 3).corrected  # whose mean is rounded
    assert (tenths.se, tenths.reason) == (0.0, "nothing varies: the interval is a point")
    one = calibrate([1, 2, 3], [1, 2, N]).corrected
    assert (one.value, math.isnan(one.se)) == (3.0, True)
    assert one.reason == "the judge alone scored only one question, so no interval"
    assert calibrate([1, 2, 4], [1, 2, 3]).corrected.value == 2.0


def test_few_unread_answers_tell_less_than_the_people_alone_and_many_tell_more():
    rng = np.random.default_rng(5)
    people = rng.normal(size=1_100)
    judge = people + rng.normal(size=1_100) * 0.45
    few, many = (calibrate(judge[:size], [*people[:100], *[N] * (size - 100)]) for size in (110, 1_100))
    assert few.corrected.se > 3 * few.people.se
    assert many.corrected.se < 0.7 * many.people.se


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: calibrate([1], [1, 2]), "one an answer"),
        (lambda: calibrate([1], [1], [1, 2]), "clusters"),
        (lambda: calibrate([6], [1], categories=STEPS), "judge: 6 is beyond"),
        (lambda: calibrate([1], [0], categories=STEPS), "human: 0 is beyond"),
        (lambda: calibrate([1], [1], categories=[2, 1]), "rise"),
        (lambda: calibrate([1], [1], categories=[]), "rise"),
        (lambda: calibrate([1], [1], level=95), "level"),
        (lambda: calibrate(["good"], [1]), "numbers"),
        (lambda: calibrate([1, 2], [1, 2], strata=[1]), "strata: expected one per answer"),
        (lambda: calibrate([1, 2], [1, 2], target="people"), "target"),
    ],
)
def test_what_makes_no_sense_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def of_five(rng, *, questions=60, each=4, labels=60, equal=True):
    """Answers of a judge that is too kind, with correlated answers a question; a draw of people's scores by stratum."""
    level = np.repeat(rng.normal(0, 0.7, questions), each)
    truth = np.clip(np.round(3.2 + level + rng.normal(0, 0.8, level.size)), 1, 5)
    judge = np.clip(np.round(truth * 0.5 + 2.3 + rng.normal(0, 0.6, level.size)), 1, 5)
    judge[judge < 3] = 3  # the rare scores merged with the next
    human, steps = np.full(level.size, np.nan), np.unique(judge)
    for step in steps:
        own = np.flatnonzero(judge == step)
        share = labels // len(steps) if equal else round(labels * own.size / level.size)
        chosen = rng.choice(own, size=min(own.size, max(4, share)), replace=False)
        human[chosen] = truth[chosen]
    return judge, human, truth, np.repeat(np.arange(questions), each)


@pytest.mark.parametrize("equal", [True, False])
def test_intervals_of_a_stratified_draw_hold_what_they_say(equal):
    """95 % of 300 draws, but for two Monte Carlo errors; what strata leave out, the plain mean of people misses."""
    rng, runs = np.random.default_rng(6), 300
    truth_of_all = float(np.mean([of_five(np.random.default_rng(at))[2].mean() for at in range(2_000)]))
    held = {"questions": 0, "answers": 0}
    off = []
    for _ in range(runs):
        judge, human, truth, at = of_five(rng, equal=equal)
        wide, narrow = (
            calibrate(judge, human, at, strata=judge, target=one).corrected for one in ("questions", "answers")
        )
        assert wide.value == narrow.value
        held["questions"] += wide.low <= truth_of_all <= wide.high
        held["answers"] += narrow.low <= truth.mean() <= narrow.high
        off.append(np.nanmean(human) - truth.mean())
    assert all(0.925 <= count / runs <= 0.985 for count in held.values()), held
    if equal:
        assert abs(np.mean(off)) > 0.05


def test_the_mean_of_strata_is_that_of_the_formulas():
    judge, human = [1, 1, 1, 2, 2, 2, 2, 2], [1, 3, N, 5, N, 4, 5, N]
    share, means, spread, n = (3 / 8, 5 / 8), (2, 14 / 3), (2, 1 / 3), (2, 3)
    found = calibrate(judge, human, strata=judge, target="answers").corrected
    parts = [w * w * (1 - k / size) * s / k for w, s, k, size in zip(share, spread, n, (3, 5), strict=True)]
    assert found.value == pytest.approx(share[0] * means[0] + share[1] * means[1])
    assert found.se == pytest.approx(math.sqrt(sum(parts)))
    assert found.df == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 1 + parts[1] ** 2 / 2))
    grown = (math.sqrt(2) * 3 / 2, math.sqrt(3 / 2) * 5 / 3)
    moved = [
        means[one - 1] + (0 if said is None else (said - means[one - 1]) * grown[one - 1])
        for one, said in zip(judge, human, strict=True)
    ]
    wide = calibrate(judge, human, strata=judge).corrected
    assert (wide.value, wide.df, wide.n) == (pytest.approx(found.value), 7, 8)
    assert wide.se == pytest.approx(math.sqrt(variance(moved) / 8))
    assert ("these answers" in found.method, "questions like these" in wide.method) == (True, True)


@settings(deadline=None)
@given(rows=answers)
def test_one_stratum_is_a_random_draw(rows):
    judge, human = sides(rows)
    if any(told for *_, told in rows):
        whole = calibrate(judge, human, strata=["all"] * len(rows)).corrected.value
        assert whole == pytest.approx(mean(p for _, p, told in rows if told))


def test_a_stratified_draw_without_strata_is_refused_and_a_random_one_is_not():
    rng = np.random.default_rng(8)
    judge = rng.choice([1, 2, 3, 4, 5], size=800, p=[0.03, 0.07, 0.1, 0.3, 0.5]).astype(float)
    human = np.full(800, np.nan)
    for step in STEPS:
        chosen = np.flatnonzero(judge == step)[:12]
        human[chosen] = judge[chosen]
    with pytest.raises(ValueError, match=r"strata: people scored other shares .*1: 12 of .*strata="):
        calibrate(judge, human)
    assert math.isfinite(calibrate(judge, human, strata=judge).corrected.se)
    for _ in range(200):
        random = np.where(rng.random(800) < 0.1, judge, np.nan)
        assert math.isfinite(calibrate(judge, random).corrected.value)


def test_a_stratum_that_nobody_read_is_said():
    found = calibrate([1, 1, 2, 2], [1, 1, N, N], strata=[1, 1, 2, 2]).corrected
    assert math.isnan(found.value)
    assert "merge" in found.reason
    alone = calibrate([1, 1, 2, 2, 2], [1, 1, 2, N, N], strata=[1, 1, 2, 2, 2]).corrected
    assert (math.isfinite(alone.value), math.isnan(alone.se)) == (True, True)
    assert "one answer of a stratum" in alone.reason


def test_a_share_that_cannot_be_compared_between_scores_is_not_refused():
    """1 of 49 is not 49 · 1/49 in floating point, and one group of scores has nothing to differ from."""
    judge, human = [1] * 25 + [2] * 24, [1] + [N] * 48
    found = calibrate(judge, human).corrected
    assert found.value == pytest.approx(1 + 24 / 48)
    assert found.reason == "both scored only one question, so no interval"
