"""Agreement of several raters by Gwet's AC2: his printed example, sums over all pairs, a jackknife, and its laws."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from karat.stats import gwet_ac

STEPS = (1, 2, 3, 4)
weightings = st.sampled_from(["none", "linear", "quadratic", "ordinal"])
N = None

# cac.raw4raters of R's irrCAC, from Gwet (2014), Handbook of Inter-Rater Reliability: 12 units, 4 raters
GWET = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, N),
    (N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 3),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N),
)


@st.composite
def tables(draw):
    """Raters' lists over the same things, with gaps."""
    said = st.sampled_from([*STEPS, None])
    n, m = draw(st.integers(3, 12)), draw(st.integers(2, 4))
    return draw(st.lists(st.lists(said, min_size=n, max_size=n), min_size=m, max_size=m))


def test_gwets_example_comes_out_as_printed():
    """As R irrCAC 1.0 prints it for all 12; then as Python's irrCAC 0.4.4 does for the 11 that several rated."""
    given = {"categories": range(1, 6), "weights": "none"}
    assert gwet_ac(*GWET, **given).value == pytest.approx(0.77544, abs=5e-6)
    found = gwet_ac(*(rater[:11] for rater in GWET), **given, clusters=range(11))
    assert found.value == pytest.approx(0.775152, abs=5e-7)
    assert found.se == pytest.approx(0.125272, abs=5e-7)


def test_what_only_one_rated_does_not_make_the_error_larger():
    """A judge rates everything, a person a few: docs/decisions/0012-statistics-that-are-not-the-usual-ones."""
    rng = np.random.default_rng(1)
    person, judge = said_by(rng, 60, 2, 0.0)
    given = {"categories": STEPS, "clusters": range(60)}
    few = gwet_ac(person, judge, **given)
    padded = {"categories": STEPS, "clusters": range(600)}
    many = gwet_ac([*person, *[None] * 540], [*judge, *said_by(rng, 540, 1, 0.0)[0]], **padded)
    assert (many.n, many.df, many.observations) == (60, 59, 600)
    assert many.se == pytest.approx(few.se, rel=0.1)


def apart(weights, one, two):
    if weights == "none":
        return float(one != two)
    steps = abs(one - two)
    most = len(STEPS) - 1
    return {"linear": steps / most, "quadratic": (steps / most) ** 2}.get(
        weights, math.comb(steps + 1, 2) / math.comb(most + 1, 2)
    )


def by_hand(raters, weights):
    """Sums over all pairs of ratings of one thing, and of steps that chance could have paired."""
    things = [[value for value in thing if value is not None] for thing in zip(*raters, strict=True)]
    things = [thing for thing in things if thing]
    pairs = [list(permutations(thing, 2)) for thing in things]
    seen = [sum(1 - apart(weights, *pair) for pair in one) / len(one) for one in pairs if one]
    if not seen:
        return math.nan
    observed = sum(seen) / len(seen)
    share = [sum(thing.count(step) / len(thing) for thing in things) / len(things) for step in STEPS]
    agreement = sum(1 - apart(weights, *pair) for pair in product(STEPS, STEPS))
    chance = agreement * sum(p * (1 - p) for p in share) / (len(STEPS) * (len(STEPS) - 1))
    return (observed - chance) / (1 - chance)


@settings(deadline=None)
@given(raters=tables(), weights=weightings)
def test_each_is_its_definition(raters, weights):
    found = gwet_ac(*raters, categories=STEPS, weights=weights)
    wanted = by_hand(raters, weights)
    assert found.value == pytest.approx(wanted, abs=1e-12, nan_ok=True)
    assert not (math.isnan(found.value) and found.reason is None)
    assert not found.value > 1 + 1e-12


@given(raters=tables(), weights=weightings, order=st.randoms())
def test_nothing_depends_on_the_order_of_raters_and_things(raters, weights, order):
    things = list(zip(*raters, strict=True))
    order.shuffle(things)
    turned = list(zip(*things, strict=True))
    order.shuffle(turned)
    one, two = (gwet_ac(*told, categories=STEPS, weights=weights) for told in (raters, turned))
    assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)
    assert one.se == pytest.approx(two.se, abs=1e-7, nan_ok=True)


@given(raters=tables(), names=st.permutations(STEPS))
def test_nominal_steps_have_no_names(raters, names):
    renamed = [[None if value is None else names[value - 1] for value in rater] for rater in raters]
    one, two = (gwet_ac(*told, categories=STEPS, weights="none") for told in (raters, renamed))
    assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)
    assert one.se == pytest.approx(two.se, abs=1e-7, nan_ok=True)


@given(raters=tables(), weights=weightings)
def test_a_scale_that_is_turned_round_agrees_as_much(raters, weights):
    turned = [[None if value is None else 5 - value for value in rater] for rater in raters]
    one, two = (gwet_ac(*told, categories=STEPS, weights=weights) for told in (raters, turned))
    assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)


@settings(deadline=None)
@given(said=st.lists(st.sampled_from(STEPS), min_size=3, max_size=20), weights=weightings)
def test_full_agreement_is_one(said, weights):
    assume(len(set(said)) > 1)
    found = gwet_ac(said, said, said, categories=STEPS, weights=weights)
    assert (found.value, found.se) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-7))


def said_by(rng, n, m, gaps):
    truth = rng.integers(1, 5, n)
    noisy = [np.clip(truth + rng.choice([-1, 0, 0, 1], n), 1, 4).astype(float) for _ in range(m)]
    return [np.where(rng.random(n) < gaps, np.nan, rater) for rater in noisy]


@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_the_error_is_that_of_leaving_out_one_at_a_time(gaps):
    n = 250
    raters = said_by(np.random.default_rng(2), n, 3, gaps)
    whole = gwet_ac(*raters, categories=STEPS, weights="ordinal")
    left = [
        gwet_ac(*(np.delete(rater, at) for rater in raters), categories=STEPS, weights="ordinal").value
        for at in range(n)
    ]
    jackknife = math.sqrt((n - 1) / n * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert whole.se == pytest.approx(jackknife, rel=0.03)


def test_answers_given_twice_tell_no_more_than_once():
    raters = said_by(np.random.default_rng(4), 40, 3, 0.1)
    once = gwet_ac(*raters, categories=STEPS, weights="linear", clusters=range(40))
    twice = gwet_ac(*(np.tile(rater, 2) for rater in raters), categories=STEPS, weights="linear",
                        clusters=[*range(40)] * 2)  # fmt: skip
    assert twice.value == pytest.approx(once.value, abs=0.01)  # alpha: one value more or less
    assert twice.se == pytest.approx(once.se)
    assert (twice.n, twice.observations) == (once.n, 2 * once.observations)


def test_the_interval_holds_the_true_agreement_in_about_its_level():
    """Questions of three answers each, which share what makes them difficult."""
    rng = np.random.default_rng(8)

    def made(questions):
        truth = np.repeat(rng.integers(1, 6, questions), 3)
        hard = np.repeat(rng.random(questions), 3)
        sides = [np.clip(truth + np.where(rng.random(truth.size) < hard, rng.choice([-1, 1], truth.size), 0), 1, 5)
                 for _ in range(2)]  # fmt: skip
        return [side.tolist() for side in sides], np.repeat(np.arange(questions), 3).tolist()

    sides, _ = made(60_000)
    truth = gwet_ac(*sides, categories=range(1, 6)).value
    held = 0
    for _ in range(1000):
        sides, at = made(100)
        found = gwet_ac(*sides, categories=range(1, 6), clusters=at)
        held += found.low <= truth <= found.high
    assert 0.925 <= held / 1000 <= 0.975


def test_what_cannot_be_known_says_why():
    same = {"categories": STEPS, "weights": "none"}
    assert gwet_ac([1, 1, 1], [1, 1, 1], **same).value == 1.0
    for one, other in (([1, N], [N, 2]), ([1, 2, 3], [N, N, N]), ([N, N], [N, N])):
        found = gwet_ac(one, other, [N] * len(one), **same)
        assert math.isnan(found.value)
        assert found.reason == "nothing was rated by two"
    assert gwet_ac([], [], **same).reason == "nothing was rated by two"
    alone = gwet_ac([1, 2, 3], [1, 2, 4], clusters=["q", "q", "q"], **same)
    assert (math.isnan(alone.se), alone.reason) == (True, "fewer than two clusters")


POINT = "agreement is the same everywhere: the interval is a point"


def test_full_agreement_is_a_point_with_a_reason():
    said = [1, 2, 3]
    for clusters in (None, said):
        found = gwet_ac(said, said, clusters=clusters, categories=STEPS)
        assert (found.value, found.low, found.high, found.reason) == (1.0, 1.0, 1.0, POINT)
    assert gwet_ac([1, 2, 3], [1, 2, 2], categories=STEPS).reason is None


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: gwet_ac([6], [1], categories=STEPS), "6 is not one of the categories"),
        (lambda: gwet_ac([1], [1, 2], categories=STEPS), "as long as each other"),
        (lambda: gwet_ac(categories=STEPS), "at least one"),
        (lambda: gwet_ac([1], [1], categories=[1]), "at least two"),
        (lambda: gwet_ac([1], [1], categories=[1, 1]), "twice"),
        (lambda: gwet_ac([1], [1], categories=STEPS, clusters=[1, 2]), "one per rated thing"),
        (lambda: gwet_ac([1], [1], categories=STEPS, weights="cubic"), "weights"),
        (lambda: gwet_ac([1], [1], categories=STEPS, level=95), "level"),
    ],
)
def test_what_makes_no_sense_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
