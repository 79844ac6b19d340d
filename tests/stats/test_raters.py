"""Agreement of several raters: Gwet's printed example, sums over all pairs, a jackknife, and its laws."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from karat.stats import (
    brennan_prediger,
    cohen_kappa,
    conger_kappa,
    fleiss_kappa,
    gwet_ac,
    kappa_of_table,
    krippendorff_alpha,
    percent_agreement,
    raters_of_table,
)

STEPS = (1, 2, 3, 4)
COEFFICIENTS = (gwet_ac, brennan_prediger, fleiss_kappa, conger_kappa, percent_agreement, krippendorff_alpha)
weightings = st.sampled_from(["none", "linear", "quadratic", "ordinal"])
coefficients = st.sampled_from(COEFFICIENTS)
N = None

# cac.raw4raters of R's irrCAC, from Gwet (2014), Handbook of Inter-Rater Reliability: 12 units, 4 raters
GWET = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, N),
    (N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 3),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N),
)


@st.composite
def tables(draw, raters=(2, 4), gaps=True):
    """Raters' lists over the same things, with gaps."""
    said = st.sampled_from([*STEPS, None] if gaps else STEPS)
    n, m = draw(st.integers(3, 12)), draw(st.integers(*raters))
    return draw(st.lists(st.lists(said, min_size=n, max_size=n), min_size=m, max_size=m))


@pytest.mark.parametrize(
    ("coefficient", "value", "shared", "se"),
    [
        # as R irrCAC 1.0 prints them for all 12; then those of Python's irrCAC 0.4.4 for the 11 that several rated
        (gwet_ac, 0.77544, 0.775152, 0.125272),
        (fleiss_kappa, 0.76117, 0.762483, 0.135439),
        (conger_kappa, 0.76282, 0.762449, 0.133515),
        (brennan_prediger, 0.77273, 0.772727, 0.127049),
        (krippendorff_alpha, 0.74342, 0.743421, 0.145574),
    ],
)
def test_gwets_example_comes_out_as_printed(coefficient, value, shared, se):
    given = {"categories": range(1, 6), "weights": "none"}
    assert coefficient(*GWET, **given).value == pytest.approx(value, abs=5e-6)
    found = coefficient(*(rater[:11] for rater in GWET), **given, clusters=range(11))
    assert found.value == pytest.approx(shared, abs=5e-7)
    # alpha's error there has a term of order 1/N more; the vectors of two raters follow the form without it
    assert found.se == pytest.approx(se, abs=1e-4 if coefficient is krippendorff_alpha else 5e-7)


def test_what_only_one_rated_does_not_make_the_error_larger():
    """A judge rates everything, a person a few: docs/decisions/0012-statistics-that-are-not-the-usual-ones."""
    rng = np.random.default_rng(1)
    person, judge = said_by(rng, 60, 2, 0.0)
    given = {"categories": STEPS, "clusters": range(60)}
    few = percent_agreement(person, judge, **given)
    padded = {"categories": STEPS, "clusters": range(600)}
    many = percent_agreement([*person, *[None] * 540], [*judge, *[1] * 540], **padded)
    assert (many.value, many.n, many.df, many.observations) == (few.value, 60, 59, 600)
    assert many.se == pytest.approx(few.se)


def apart(weights, one, two):
    if weights == "none":
        return float(one != two)
    steps = abs(one - two)
    most = len(STEPS) - 1
    return {"linear": steps / most, "quadratic": (steps / most) ** 2}.get(
        weights, math.comb(steps + 1, 2) / math.comb(most + 1, 2)
    )


def by_hand(name, raters, weights):
    """Sums over all pairs of ratings of one thing, and of steps that chance could have paired."""
    things = [[value for value in thing if value is not None] for thing in zip(*raters, strict=True)]
    things = [thing for thing in things if thing]
    pairs = [list(permutations(thing, 2)) for thing in things]
    seen = [sum(1 - apart(weights, *pair) for pair in one) / len(one) for one in pairs if one]
    if not seen:
        return math.nan
    observed = sum(seen) / len(seen)
    share = {step: sum(thing.count(step) / len(thing) for thing in things) / len(things) for step in STEPS}
    agreement = {pair: 1 - apart(weights, *pair) for pair in product(STEPS, STEPS)}
    said = [[value for value in rater if value is not None] for rater in raters]
    habits = [{step: rater.count(step) / len(rater) for step in STEPS} for rater in said if rater]
    q = len(STEPS)
    chance = {
        "percent_agreement": lambda: 0.0,
        "brennan_prediger": lambda: sum(agreement.values()) / q**2,
        "fleiss_kappa": lambda: sum(weight * share[a] * share[b] for (a, b), weight in agreement.items()),
        "gwet_ac": lambda: sum(agreement.values()) * sum(p * (1 - p) for p in share.values()) / (q * (q - 1)),
        "conger_kappa": lambda: np.mean([
            sum(weight * one[a] * two[b] for (a, b), weight in agreement.items())
            for one, two in combinations(habits, 2)
        ]),
    }[name]()  # fmt: skip
    return math.nan if chance > 1 - 1e-12 else (observed - chance) / (1 - chance)


@settings(deadline=None)
@given(raters=tables(), weights=weightings, coefficient=st.sampled_from(COEFFICIENTS[:5]))
def test_each_is_its_definition(raters, weights, coefficient):
    found = coefficient(*raters, categories=STEPS, weights=weights)
    wanted = by_hand(coefficient.__name__, raters, weights)
    assert found.value == pytest.approx(wanted, abs=1e-12, nan_ok=True)
    assert not (math.isnan(found.value) and found.reason is None)
    assert not found.value > 1 + 1e-12


@given(raters=tables(), weights=weightings, coefficient=coefficients, order=st.randoms())
def test_nothing_depends_on_the_order_of_raters_and_things(raters, weights, coefficient, order):
    things = list(zip(*raters, strict=True))
    order.shuffle(things)
    turned = list(zip(*things, strict=True))
    order.shuffle(turned)
    one, two = (coefficient(*told, categories=STEPS, weights=weights) for told in (raters, turned))
    assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)
    assert one.se == pytest.approx(two.se, abs=1e-7, nan_ok=True)


@given(raters=tables(), coefficient=coefficients, names=st.permutations(STEPS))
def test_nominal_steps_have_no_names(raters, coefficient, names):
    renamed = [[None if value is None else names[value - 1] for value in rater] for rater in raters]
    one, two = (coefficient(*told, categories=STEPS, weights="none") for told in (raters, renamed))
    assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)
    assert one.se == pytest.approx(two.se, abs=1e-7, nan_ok=True)


@given(raters=tables(), weights=weightings, coefficient=coefficients)
def test_a_scale_that_is_turned_round_agrees_as_much(raters, weights, coefficient):
    turned = [[None if value is None else 5 - value for value in rater] for rater in raters]
    one, two = (coefficient(*told, categories=STEPS, weights=weights) for told in (raters, turned))
    assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)


@settings(deadline=None)
@given(said=st.lists(st.sampled_from(STEPS), min_size=3, max_size=20), weights=weightings, coefficient=coefficients)
def test_full_agreement_is_one(said, weights, coefficient):
    assume(len(set(said)) > 1)
    found = coefficient(said, said, said, categories=STEPS, weights=weights)
    assert (found.value, found.se) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-7))


@given(raters=tables(raters=(2, 2), gaps=False), weights=weightings)
def test_with_two_raters_congers_kappa_is_cohens(raters, weights):
    at = range(len(raters[0]))
    for clusters in (None, at, [place // 2 for place in at]):
        one = conger_kappa(*raters, categories=STEPS, weights=weights, clusters=clusters)
        two = cohen_kappa(raters[0], raters[1], clusters, categories=STEPS, weights=weights)
        assert one.value == pytest.approx(two.value, abs=1e-12, nan_ok=True)
        assert one.se == pytest.approx(two.se, abs=1e-6, nan_ok=True)


def said_by(rng, n, m, gaps):
    truth = rng.integers(1, 5, n)
    noisy = [np.clip(truth + rng.choice([-1, 0, 0, 1], n), 1, 4).astype(float) for _ in range(m)]
    return [np.where(rng.random(n) < gaps, np.nan, rater) for rater in noisy]


@pytest.mark.parametrize("coefficient", COEFFICIENTS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_the_error_is_that_of_leaving_out_one_at_a_time(coefficient, gaps):
    n = 250
    raters = said_by(np.random.default_rng(2), n, 3, gaps)
    whole = coefficient(*raters, categories=STEPS, weights="ordinal")
    left = [
        coefficient(*(np.delete(rater, at) for rater in raters), categories=STEPS, weights="ordinal").value
        for at in range(n)
    ]
    jackknife = math.sqrt((n - 1) / n * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert whole.se == pytest.approx(jackknife, rel=0.03)


@pytest.mark.parametrize("coefficient", COEFFICIENTS, ids=lambda one: one.__name__)
def test_answers_given_twice_tell_no_more_than_once(coefficient):
    raters = said_by(np.random.default_rng(4), 40, 3, 0.1)
    once = coefficient(*raters, categories=STEPS, weights="linear", clusters=range(40))
    twice = coefficient(*(np.tile(rater, 2) for rater in raters), categories=STEPS, weights="linear",
                        clusters=[*range(40)] * 2)  # fmt: skip
    assert twice.value == pytest.approx(once.value, abs=0.01)  # alpha: one value more or less
    assert twice.se == pytest.approx(once.se)
    assert (twice.n, twice.observations) == (once.n, 2 * once.observations)


@pytest.mark.parametrize("coefficient", COEFFICIENTS, ids=lambda one: one.__name__)
def test_clusters_drawn_again_give_much_the_same_interval(coefficient):
    raters = said_by(np.random.default_rng(6), 120, 3, 0.1)
    given = {"categories": STEPS, "weights": "quadratic", "clusters": [at // 2 for at in range(120)]}
    plain = coefficient(*raters, **given)
    drawn, again = (coefficient(*raters, **given, rng=np.random.default_rng(1)) for _ in range(2))
    assert repr(drawn) == repr(again)  # NaN equals nothing
    assert (drawn.value, drawn.n) == (plain.value, plain.n)
    assert drawn.se == pytest.approx(plain.se, rel=0.15)
    assert drawn.method == f"{plain.method}, 2000 resamples"
    assert drawn.low < drawn.value < drawn.high <= 1


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


def test_where_nearly_everything_is_right_kappa_falls_and_ac1_does_not():
    table = [[0, 3], [2, 95]]
    a, b = raters_of_table(table)
    assert kappa_of_table(table, weights="none").value < 0
    assert gwet_ac(a, b, categories=range(2), weights="none").value == pytest.approx(0.94744, abs=5e-6)
    assert percent_agreement(a, b, categories=range(2)).value == 0.95


def test_a_table_is_taken_apart_and_rows_may_be_raters():
    assert raters_of_table([[0, 2], [1, 0]]) == ([0, 0, 1], [1, 1, 0])
    assert raters_of_table([[0]]) == ([], [])
    assert repr(gwet_ac(GWET, categories=range(1, 6))) == repr(gwet_ac(*GWET, categories=range(1, 6)))


def test_what_cannot_be_known_says_why():
    same = {"categories": STEPS, "weights": "none"}
    assert gwet_ac([1, 1, 1], [1, 1, 1], **same).value == 1.0
    for coefficient in (fleiss_kappa, conger_kappa, krippendorff_alpha):
        found = coefficient([1, 1, 1], [1, 1, 1], **same)
        assert math.isnan(found.value)
        assert "no variation" in found.reason
    for coefficient in COEFFICIENTS:
        for one, other in (([1, N], [N, 2]), ([1, 2, 3], [N, N, N]), ([N, N], [N, N]), ([], [])):
            found = coefficient(one, other, [N] * len(one), **same)
            assert math.isnan(found.value)
            assert found.reason == "nothing was rated by two"
        alone = coefficient([1, 2, 3], [1, 2, 4], clusters=["q", "q", "q"], **same)
        assert (math.isnan(alone.se), alone.reason) == (True, "fewer than two clusters")
    rare = fleiss_kappa([1] * 9 + [2], [1] * 10, **same, rng=np.random.default_rng(1))
    assert "not defined in" in rare.reason


POINT = "agreement is the same everywhere: the interval is a point"


def test_full_agreement_is_a_point_with_a_reason():
    said = [1, 2, 3]
    for coefficient in COEFFICIENTS:
        for clusters in (None, said):
            found = coefficient(said, said, clusters=clusters, categories=STEPS, weights="quadratic")
            assert (found.value, found.low, found.high, found.reason) == (1.0, 1.0, 1.0, POINT)
    drawn = gwet_ac(said, said, categories=STEPS, rng=np.random.default_rng(1))
    assert (drawn.low, drawn.high, drawn.reason) == (1.0, 1.0, POINT)
    assert gwet_ac([1, 2, 3], [1, 2, 2], categories=STEPS).reason is None


def test_weights_may_be_an_array():
    one, other = ([1, 2, 3], [1, 2, 2])
    found = gwet_ac(one, other, categories=[1, 2, 3], weights=np.eye(3))
    assert found.value == gwet_ac(one, other, categories=[1, 2, 3], weights="none").value
    assert found.method == "Gwet's AC2, own weights"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: gwet_ac([6], [1], categories=STEPS), "6 is not one of the categories"),
        (lambda: gwet_ac([1], [1, 2], categories=STEPS), "as long as each other"),
        (lambda: gwet_ac(categories=STEPS), "at least one"),
        (lambda: gwet_ac([], categories=STEPS), "at least one"),
        (lambda: gwet_ac([1, 2, 3], categories=STEPS), "raters: must be a list for each rater, or one table"),
        (lambda: gwet_ac([1], [1], categories=[1]), "at least two"),
        (lambda: gwet_ac([1], [1], categories=[1, 1]), "twice"),
        (lambda: gwet_ac([1], [1], categories=STEPS, clusters=[1, 2]), "one per rated thing"),
        (lambda: gwet_ac([1], [1], categories=STEPS, weights="cubic"), "weights"),
        (lambda: gwet_ac([1], [1], categories=STEPS, level=95), "level"),
        (lambda: raters_of_table([[1, 2]]), "square"),
        (lambda: raters_of_table([[1, -2], [0, 1]]), "table"),
    ],
)
def test_what_makes_no_sense_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


UNEVEN = (1, 2, 5, 10)


@settings(deadline=None)
@given(raters=tables(), coefficient=coefficients, weights=st.sampled_from(["linear", "quadratic"]))
def test_spacing_by_value_is_that_of_a_matrix_of_the_values(raters, coefficient, weights):
    """As R's irrCAC: 1 − |x − y|/(max − min), or with its square; steps that are equally spaced do not notice."""
    named = [[None if one is None else UNEVEN[STEPS.index(one)] for one in rater] for rater in raters]
    power = 1 if weights == "linear" else 2
    matrix = [[1 - (abs(x - y) / 9) ** power for y in UNEVEN] for x in UNEVEN]
    by_value = coefficient(*named, categories=UNEVEN, weights=weights, spacing="values")
    own = coefficient(*named, categories=UNEVEN, weights=matrix)
    assert by_value.value == pytest.approx(own.value, nan_ok=True)
    places, even = (
        coefficient(*one, categories=steps, weights=weights, spacing=spacing)
        for one, steps, spacing in ((named, UNEVEN, "positions"), (raters, STEPS, "values"))
    )
    assert places.value == pytest.approx(even.value, nan_ok=True)


@settings(deadline=None)
@given(raters=tables())
def test_quadratic_weights_by_value_give_the_alpha_of_the_interval_scale(raters):
    named = [[None if one is None else UNEVEN[STEPS.index(one)] for one in rater] for rater in raters]
    weighed = krippendorff_alpha(*named, categories=UNEVEN, weights="quadratic", spacing="values")
    assert weighed.value == pytest.approx(krippendorff_alpha(*named, level="interval").value, nan_ok=True)


def test_kappa_says_by_which_spacing_and_refuses_what_has_no_numbers():
    a, b = [1, 2, 5, 5], [1, 5, 5, 2]
    default, values = (
        cohen_kappa(a, b, [*"wxyz"], categories=(1, 2, 5), spacing=one) for one in ("positions", "values")
    )
    assert default == cohen_kappa(a, b, [*"wxyz"], categories=(1, 2, 5))
    # by hand: 1 − Σ d² seen / Σ d² by chance, d² of 1–2, 1–5, 2–5 = 1, 4, 1 by position and 1, 16, 9 by value
    assert default.value == pytest.approx(1 - (2 * 1) / (4 * (2 * 1 + 4 * 4 + 4 * 1) / 16))
    assert values.value == pytest.approx(1 - (2 * 9) / (4 * (2 * 1 + 4 * 16 + 4 * 9) / 16))
    assert "by value" in values.method and "by value" not in default.method
    with pytest.raises(ValueError, match="categories: must be"):
        cohen_kappa(["low"], ["high"], categories=["low", "high"], spacing="values")
    with pytest.raises(ValueError, match="categories: must be finite numbers"):
        cohen_kappa([True], [False], categories=[False, True], spacing="values")
    with pytest.raises(ValueError, match="spacing"):
        cohen_kappa([1], [1], categories=[1, 2], spacing="value")
    with pytest.raises(ValueError, match="one per row"):
        kappa_of_table([[1, 0], [0, 1]], categories=[1, 2, 3])
