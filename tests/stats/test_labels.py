"""Draws of answers for people: printed errors, an implementation by hand, every possible draw, coverage."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, product
from statistics import mean, variance

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from karat.stats import (
    corrected_bounds,
    draw_for_labels,
    labels_needed,
    mean_interval,
    paired_difference,
    strata_of_scores,
    stratified_difference,
    stratified_mean,
)

N = None
scored = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from([1, 2, 3, 4, 5, None])), min_size=1, max_size=300
)


def sample_with(size, spread):
    """Values whose variance (n − 1) is `spread`."""
    reach = math.sqrt(spread * (size - 1) / size)
    return [reach if at % 2 else -reach for at in range(size)]


@pytest.mark.parametrize(("sizes", "printed"), [((6, 18), 1_882_293), ((12, 12), 1_090_827)])
def test_the_error_is_the_one_printed_in_cochran(sizes, printed):
    """Sampling Techniques (1977), section 5.5: 64 cities in two strata; variance of the estimated total."""
    values = [*sample_with(sizes[0], 53_843), *[N] * (16 - sizes[0]), *sample_with(sizes[1], 5_581)]
    values += [N] * (64 - len(values))
    found = stratified_mean(values, [0] * 16 + [1] * 48, target="answers")
    assert (64 * found.se) ** 2 == pytest.approx(printed, abs=1)


def test_the_number_of_labels_is_the_one_printed_in_cochran():
    """Section 4.4: 356 of 3,200 islanders for ±5 points at p = 0.5 and t = 2, where very many would need 400."""
    half = 2 * math.sqrt(0.25 / 100)
    assert labels_needed(0.05, labelled=100, answers=10**12, drawing=half) == 400
    assert labels_needed(0.05, labelled=100, answers=3_200, drawing=half * math.sqrt(1 - 100 / 3_200)) == 356


def by_hand(rows, conditions=None):
    """The estimate in fractions, its error for these answers, and that for questions like these.

    Rows: stratum, question, condition, value or None.
    """
    strata: defaultdict[object, list] = defaultdict(list)
    questions: defaultdict[object, float] = defaultdict(float)
    for stratum, *_, value in rows:
        strata[stratum].append(value)
    seen = {name: [Fraction(value) for value in values if value is not None] for name, values in strata.items()}
    count = Counter(condition for _, _, condition, _ in rows)
    asked = {question for _, question, *_ in rows}
    total, error = Fraction(0), 0.0
    for stratum, question, condition, value in rows:
        sign = 1 if conditions is None else (-1 if condition == conditions[0] else 1)
        size = len(rows) if conditions is None else count[condition]
        n, large = len(seen[stratum]), len(strata[stratum])
        total += sign * mean(seen[stratum]) / size
        moved = float(mean(seen[stratum]))
        if value is not None:
            moved += float(value - mean(seen[stratum])) * math.sqrt(n / (n - 1)) * large / n
        questions[question] += sign * moved * len(asked) / size
    for stratum, values in strata.items():
        n, large = len(seen[stratum]), len(values)
        condition = next(row[2] for row in rows if row[0] == stratum)
        share = large / (len(rows) if conditions is None else count[condition])
        error += share**2 * (1 - n / large) * float(variance(seen[stratum])) / n
    return float(total), math.sqrt(error), math.sqrt(variance(map(float, questions.values())) / len(asked))


def drawn_rows(seed):
    rng = np.random.default_rng(seed)
    rows: list[list] = [
        [f"{condition}{rng.integers(2)}", question, condition, int(rng.integers(1, 6))]
        for question, condition, _ in product(range(12), "ab", range(2))
    ]
    for stratum in {row[0] for row in rows}:
        mine = [row for row in rows if row[0] == stratum]
        for at in rng.permutation(len(mine))[: max(len(mine) - 4, 0)]:
            mine[at][3] = None
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_estimates_are_those_of_the_formulas_by_hand(seed):
    rows = drawn_rows(seed)
    strata, questions, groups, values = map(list, zip(*rows, strict=True))
    for conditions in (None, ("a", "b"), ("b", "a")):
        value, these, like = by_hand(rows, conditions)
        for target, error in (("answers", these), ("questions", like)):
            if conditions is None:
                found = stratified_mean(values, strata, questions, target=target)
            else:
                a, b = conditions
                found = stratified_difference(values, strata, questions, groups=groups, a=a, b=b, target=target)
            assert (found.value, found.se) == (pytest.approx(value), pytest.approx(error))


def every_draw(sizes, drawn):
    """The rows that are drawn, for each possible draw."""
    starts = np.cumsum([0, *sizes[:-1]])
    each = [[tuple(start + at for at in chosen) for chosen in combinations(range(size), n)]
            for start, size, n in zip(starts, sizes, drawn, strict=True)]  # fmt: skip
    return [sum(parts, ()) for parts in product(*each)]


@pytest.mark.parametrize("judge", [True, None])
@pytest.mark.parametrize(("sizes", "drawn"), [((4, 5), (2, 2)), ((3, 6), (2, 3)), ((5, 3), (3, 3))])
def test_over_every_possible_draw_the_mean_and_its_variance_are_unbiased(sizes, drawn, judge):
    truth = [1, 5, 2, 2, 4, 3, 5, 1, 4][: sum(sizes)]
    strata = [at for at, size in enumerate(sizes) for _ in range(size)]
    groups = ["ab"[stratum] for stratum in strata]
    judge = judge and [3, 5, 1, 2, 4, 2, 4, 1, 4][: sum(sizes)]
    means, differences = [], []
    for rows in every_draw(sizes, drawn):
        values = [value if at in rows else N for at, value in enumerate(truth)]
        means.append(stratified_mean(values, strata, judge=judge, target="answers"))
        differences.append(
            stratified_difference(values, strata, groups=groups, a="a", b="b", judge=judge, target="answers")
        )
    apart = mean(truth[sizes[0] :]) - mean(truth[: sizes[0]])
    for found, expected in ((means, mean(truth)), (differences, apart)):
        estimates = [one.value for one in found]
        assert mean(estimates) == pytest.approx(expected)
        assert mean(one.se**2 for one in found) == pytest.approx(np.var(estimates))


def test_with_every_answer_read_the_interval_is_that_of_the_questions():
    rng = np.random.default_rng(3)
    values, questions = rng.integers(1, 6, 80).astype(float), np.repeat(np.arange(20), 4)
    strata, groups = rng.integers(0, 3, 80), np.tile([*"aabb"], 20)
    strata = strata + 3 * (groups == "b")
    whole = stratified_mean(values, np.zeros(80, int), questions)
    plain = mean_interval(values, questions)
    # Within its stratum a value's distance is enlarged by √(n/(n − 1)), which is 1.006 for 80 values.
    assert (whole.value, whole.se) == (pytest.approx(plain.value), pytest.approx(plain.se, rel=0.01))
    assert stratified_mean(values, strata, questions, target="answers").se == 0.0
    found = stratified_difference(values, strata, questions, groups=groups, a="a", b="b")
    a, b = values[groups == "a"], values[groups == "b"]
    pair = paired_difference(a, b, questions[groups == "a"])
    assert (found.value, found.n) == (pytest.approx(pair.value), 20)
    assert found.se == pytest.approx(pair.se, rel=0.06)


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), shift=st.integers(-3, 3), order=st.randoms(use_true_random=False))
def test_order_and_names_change_nothing_and_a_shift_moves_the_mean_alone(seed, shift, order):
    rows = drawn_rows(seed)
    moved = [[("s", stratum), str(question), condition, None if value is None else value + shift]
             for stratum, question, condition, value in rows]  # fmt: skip
    order.shuffle(moved)
    one, two = (list(zip(*table, strict=True)) for table in (rows, moved))
    for target in ("questions", "answers"):
        first, second = (stratified_mean(t[3], t[0], t[1], target=target) for t in (one, two))
        assert (second.value, second.se) == (pytest.approx(first.value + shift), pytest.approx(first.se))
        first, second = (
            stratified_difference(t[3], t[0], t[1], groups=t[2], a="a", b="b", target=target) for t in (one, two)
        )
        assert (second.value, second.se) == (pytest.approx(first.value), pytest.approx(first.se))


def test_where_strata_are_scores_the_bias_is_the_judges_mean_less_the_peoples():
    strata, questions, _, values = map(list, zip(*drawn_rows(1), strict=True))
    names = sorted(set(strata))
    judge = [1.5 * names.index(stratum) for stratum in strata]
    gaps = [None if value is None else score - value for score, value in zip(judge, values, strict=True)]
    for target in ("questions", "answers"):
        people, gap = (stratified_mean(one, strata, questions, target=target) for one in (values, gaps))
        assert gap.value == pytest.approx(mean(judge) - people.value)
    assert gap.se == pytest.approx(people.se)  # of these answers: the judge's mean is known
    point = stratified_mean([2, 2, N, 4, 4, N], [0, 0, 0, 1, 1, 1], target="answers")
    assert (point.value, point.low, point.high) == pytest.approx((3.0, 3.0, 3.0))
    assert point.reason == "nothing varies: the interval is a point"


@settings(deadline=None)
@given(rows=scored, size=st.integers(1, 120), seed=st.integers(0, 99))
def test_a_draw_keeps_its_promises(rows, size, seed):
    groups, scores = [group for group, _ in rows], [score for _, score in rows]
    draw = draw_for_labels(scores, groups, size, rng=np.random.default_rng(seed))
    assert list(draw.strata) == strata_of_scores(scores, groups)
    assert len(set(draw.rows)) == len(draw.rows) == sum(draw.drawn)
    known = sum(score is not None for score in scores)
    assert sum(draw.drawn) >= min(size, known)
    members = defaultdict(list)
    for at, stratum in enumerate(draw.strata):
        assert (stratum == -1) == (scores[at] is None)
        if stratum >= 0:
            members[stratum].append(at)
    for stratum, mine in members.items():
        taken = len(set(mine) & set(draw.rows))
        assert (len(mine), taken) == (draw.sizes[stratum], draw.drawn[stratum])
        assert taken >= min(4, len(mine))
        assert abs(taken - max(min(4, len(mine)), size * len(mine) / known)) < 1 or size >= known
        (group,) = {groups[at] for at in mine}
        alone = sum(name == group and score is not None for name, score in rows) == len(mine)
        assert len(mine) >= 20 or alone
        span = [scores[at] for at in mine]  # neighbouring scores of one condition, and all who have them
        between = [at for at, (name, score) in enumerate(rows)
                   if name == group and score is not None and min(span) <= score <= max(span)]  # fmt: skip
        assert between == mine


def test_a_draw_is_proportional_as_in_cochran_and_each_answer_has_the_same_chance():
    sizes = ([1] * 160 + [2] * 480, ["cities"] * 640)
    assert draw_for_labels(*sizes, 240, rng=np.random.default_rng(1)).drawn == (60, 180)
    often = np.zeros(40)
    for seed in range(4_000):
        often[list(draw_for_labels([1] * 40, [0] * 40, 10, rng=np.random.default_rng(seed)).rows)] += 1
    expected = 4_000 * 10 / 40
    assert ((often - expected) ** 2 / (expected * 0.75)).sum() < 75  # χ² with 39 df: p < 0.0005 above
    first = [draw_for_labels([1] * 40, [0] * 40, 10, rng=np.random.default_rng(seed)).rows[0] for seed in range(500)]
    assert len(set(first)) == 40  # the order says nothing


def test_many_different_scores_are_binned():
    rng = np.random.default_rng(2)
    strata = strata_of_scores(rng.normal(size=1_000), ["a"] * 500 + ["b"] * 500)
    assert set(strata) == set(range(24))
    assert min(Counter(strata).values()) >= 20


@settings(deadline=None)
@given(
    labelled=st.integers(2, 500), more=st.integers(1, 5_000), drawing=st.floats(0.01, 2), floor=st.floats(0, 1),
    wanted=st.floats(0.01, 1),
)  # fmt: skip
def test_so_many_labels_give_the_width_and_one_fewer_does_not(labelled, more, drawing, floor, wanted):
    answers = labelled + more
    needed = labels_needed(wanted, labelled=labelled, answers=answers, drawing=drawing, floor=floor)

    def width(n):
        return math.sqrt(floor**2 + drawing**2 * (1 / n - 1 / answers) / (1 / labelled - 1 / answers))

    if wanted <= floor:
        assert needed is None
    else:
        assert 1 <= needed <= answers
        assert width(needed) <= wanted + 1e-6
        assert needed == 1 or width(needed - 1) > wanted - 1e-6


def test_what_is_not_known_is_said_and_nonsense_is_refused():
    assert "nothing of a stratum" in stratified_mean([1, N], [0, 1]).reason
    assert "one answer of a stratum" in stratified_mean([1, N], [0, 0]).reason
    assert "only one question" in stratified_mean([1, 2, N], [0, 0, 0], [1, 1, 1]).reason
    assert math.isnan(stratified_mean([], []).value)
    assert labels_needed(0.1, labelled=5, answers=5, drawing=0.2) is None
    assert labels_needed(0.1, labelled=5, answers=50, drawing=math.nan) is None
    for call, told in [
        (lambda: draw_for_labels([1], ["a"], 0, rng=np.random.default_rng(1)), "size"),
        (lambda: strata_of_scores([1, 2], ["a"]), "groups"),
        (lambda: stratified_mean([1], [0], target="people"), "target"),
        (lambda: stratified_difference([1, 2], [0, 0], groups=["a", "b"], a="a", b="b"), "one group only"),
        (lambda: stratified_difference([1, 2], [0, 1], groups=["a", "b"], a="a", b="c"), "no answers of 'c'"),
        (lambda: stratified_difference([1], [0, 1], groups=["a", "b"], a="a", b="b"), "as many as values"),
    ]:
        with pytest.raises(ValueError, match=told):
            call()


@settings(deadline=None)
@given(values=st.lists(st.integers(1, 5), min_size=3, max_size=60), level=st.sampled_from([0.9, 0.95, 0.99]))
def test_bounds_are_those_of_the_labels_with_one_more_at_the_end(values, level):
    n, se = len(values), math.sqrt(variance(values) / len(values))
    found = corrected_bounds(mean(values), se, n - 1, labels=n, scale=(1, 5), level=level)
    t = stats.t.ppf(level, n)
    for end, way, bound in ((1, -1, found.low), (5, 1, found.high)):
        more = [*values, end]
        assert bound == pytest.approx(min(5, max(1, mean(more) + way * t * math.sqrt(variance(more) / len(more)))))


def crowded(rng, best, worst):
    """100 questions, three answers each, nearly all the best there are; a judge that misses two bad ones in five."""
    good = rng.random((100, 3)) < rng.beta(6 * best, 6 * (1 - best), 100)[:, None]
    truth = np.where(good, 5.0, worst).ravel()
    judge = np.where(truth == 5, np.where(rng.random(300) < 0.95, 5, 4), np.where(rng.random(300) < 0.6, 3, 5))
    draw = draw_for_labels(judge, [0] * 300, 50, rng=rng)
    values = np.full(300, np.nan)
    values[list(draw.rows)] = truth[list(draw.rows)]
    return stratified_mean(values, draw.strata, np.repeat(np.arange(100), 3)), len(draw.rows)


@pytest.mark.parametrize(("best", "worst"), [(0.9, 2.0), (0.7, 2.0), (0.9, 1.0)])
def test_a_gate_on_corrected_means_errs_rarely(best, worst):
    """The threshold is the true mean: passing and failing are both false. 5 % and two Monte Carlo errors of 400."""
    rng, threshold = np.random.default_rng(11), 5 * best + worst * (1 - best)
    passed, failed = Counter[str](), Counter[str]()
    for _ in range(400):
        found, labels = crowded(rng, best, worst)
        bounds = corrected_bounds(found.value, found.se, found.df, labels=labels, scale=(1, 5))
        plain = found.value - stats.t.ppf(0.95, found.df) * found.se
        passed.update(bounds=int(bounds.low >= threshold), plain=int(plain >= threshold))
        failed.update(bounds=int(bounds.high < threshold))
    assert passed["bounds"] / 400 <= 0.072
    assert failed["bounds"] / 400 <= 0.072
    assert passed["plain"] > passed["bounds"]


def test_intervals_of_few_labels_hold_the_truth():
    """Two conditions, 150 questions, a judge that is too kind: means and difference at 50 labels each, 300 draws."""
    rng, runs = np.random.default_rng(9), 300
    held: Counter[tuple[str, str]] = Counter()
    mean_of = [np.clip(np.rint(rng.normal(3.4 + by, math.hypot(0.7, 0.6), 10**6)), 1, 5).mean() for by in (0, 0.4)]
    expected = mean_of[1] - mean_of[0]
    for _ in range(runs):
        quality, groups = rng.normal(3.4, 0.7, 150), np.repeat([*"ab"], 150)
        shift = np.where(groups == "b", 0.4, 0.0)
        truth = np.clip(np.rint(np.tile(quality, 2) + shift + rng.normal(0, 0.6, 300)), 1, 5)
        judge = np.clip(np.rint(truth + 0.4 + rng.normal(0, 0.6, 300)), 1, 5)
        draw = draw_for_labels(judge, groups, 100, rng=rng)
        values = np.full(300, np.nan)
        values[list(draw.rows)] = truth[list(draw.rows)]
        questions, strata = np.tile(np.arange(150), 2), np.array(draw.strata)
        for target, low in (("answers", truth[150:].mean() - truth[:150].mean()), ("questions", expected)):
            found = stratified_difference(values, strata, questions, groups=groups, a="a", b="b", target=target)
            held["difference", target] += found.low <= low <= found.high
        found = stratified_mean(values[:150], strata[:150], questions[:150], target="answers")
        held["mean", "answers"] += found.low <= truth[:150].mean() <= found.high
    assert all(0.92 <= count / runs <= 0.985 for count in held.values()), held


@pytest.mark.parametrize("judge", [[1.0, 2.0], [1.0, 2.0, 3.0, math.nan]])
def test_a_judge_scores_every_answer(judge):
    with pytest.raises(ValueError, match="expected 4 scores, one of every answer"):
        stratified_mean([1.0, None, 2.0, None], [1, 1, 2, 2], judge=judge)
