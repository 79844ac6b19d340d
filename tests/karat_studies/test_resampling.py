"""Tests of resampled participants: against SciPy, against the statistic itself, and by laws they must keep."""

import math

import numpy as np
import pytest
from scipy import stats

from karat_studies.replication import (
    KINDS,
    Draws,
    Side,
    StudyTest,
    TestRows,
    join_draws,
    log_odds_ratio,
    multiplicities,
    replicate_test,
    score_tests,
    score_uncertainty,
)

from .studies import differences

N = 24
METHODS = {"anova": "jzs", "contingency": "independent_multinomial", "mannwhitney": "asymptotic"}


def rows_of(kind, *, levels=None, seed=3, values=None):
    """Made-up rows, one a unit."""
    rng = np.random.default_rng(seed)
    pairs = {"ttest_one", "ttest_paired", "wilcoxon", "correlation", "spearman", "binomial", "proportion"}
    levels = levels or (1 if kind in pairs else 2)
    if values is None:
        values = rng.normal(0.3, 1, N).round(1)
        if kind in {"contingency", "binomial", "proportion"}:
            values = rng.integers(0, 2, N).astype(float)
    return TestRows(
        kind=kind,
        units=np.arange(N),
        groups=np.arange(N) % levels,
        levels=levels,
        values=values,
        against=(rng.normal(0, 1, N).round(1) + 0.5 * values).round(2) if kind in {"correlation", "spearman"} else None,
        p0=0.4,
        scale=float(np.abs(values).max()),
    )


def weights_of(count=60, units=N, seed=5):
    found = list(multiplicities(np.zeros(units, dtype=int), rng=np.random.default_rng(seed), replicates=count))
    return np.concatenate(found)


def drawn(rows, times):
    """The values of one replicate, group by group."""
    return [np.repeat(rows.values[rows.groups == g], times[rows.groups == g].astype(int)) for g in range(rows.levels)]


def both(rows, times):
    return (np.repeat(part, times.astype(int)) for part in (rows.values, rows.against))


SCIPY = {
    "ttest_ind": lambda rows, w: stats.ttest_ind(*drawn(rows, w)).statistic,
    "welch": lambda rows, w: stats.ttest_ind(*drawn(rows, w), equal_var=False).statistic,
    "ttest_one": lambda rows, w: stats.ttest_1samp(drawn(rows, w)[0], 0).statistic,
    "ttest_paired": lambda rows, w: stats.ttest_1samp(drawn(rows, w)[0], 0).statistic,
    "anova": lambda rows, w: stats.f_oneway(*drawn(rows, w)).statistic,
    "correlation": lambda rows, w: stats.pearsonr(*both(rows, w)).statistic,
    "spearman": lambda rows, w: stats.spearmanr(*both(rows, w)).statistic,
    "binomial": lambda rows, w: drawn(rows, w)[0].sum(),
    "proportion": lambda rows, w: drawn(rows, w)[0].sum(),
    "mannwhitney": lambda rows, w: stats.mannwhitneyu(*drawn(rows, w)).statistic,
    "wilcoxon": lambda rows, w: signed_ranks(drawn(rows, w)[0]),
    "variance_ratio": lambda rows, w: np.divide(*(one.var(ddof=1) for one in drawn(rows, w))),
    "contingency": lambda rows, w: log_odds_ratio(crosstab(rows, w)),
}


def signed_ranks(values):
    """Z without the correction for continuity; its sign is that of W+ − W−."""
    ranks = stats.rankdata(np.abs(values[values != 0]))
    middle = ranks.sum() / 2
    z = stats.wilcoxon(values, method="asymptotic").zstatistic
    return math.copysign(z, ranks[values[values != 0] > 0].sum() - middle)


def crosstab(rows, times):
    """In the order of outcomes 0, 1."""
    return [[(one == outcome).sum() for outcome in (0, 1)] for one in drawn(rows, times)]


@pytest.mark.parametrize("kind", ["spearman", "mannwhitney", "wilcoxon"])
def test_values_that_differ_by_rounding_alone_are_ties(kind):
    values = np.resize([0.1, 0.3, -0.3, 0.2, -0.1], N)
    noisy = np.resize([0.3 - 0.2, 0.1 + 0.2, 0.2 - 0.5, 0.2, 0.2 - 0.3], N)  # the same numbers, in sums
    exact, rounded = (
        replicate_test(rows_of(kind, values=one), weights_of(), method="asymptotic") for one in (values, noisy)
    )
    np.testing.assert_array_equal(exact.statistic, rounded.statistic)


@pytest.mark.parametrize("kind", KINDS)
def test_every_statistic_agrees_with_scipy(kind):
    rows, weights = rows_of(kind), weights_of()
    found = replicate_test(rows, weights, method=METHODS.get(kind, "default"))
    expected = [SCIPY[kind](rows, times) for times in weights]
    np.testing.assert_allclose(found.statistic, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("levels", [3, 4])
def test_an_f_of_several_groups_agrees_with_scipy_and_has_no_d(levels):
    rows, weights = rows_of("anova", levels=levels), weights_of(40)
    found = replicate_test(rows, weights, method="jzs")
    expected = [stats.f_oneway(*drawn(rows, times)).statistic for times in weights]
    np.testing.assert_allclose(found.statistic, expected, rtol=1e-9)
    assert np.isnan(found.d).all()
    assert np.isfinite(found.log_bf).all()


@pytest.mark.parametrize("kind", KINDS)
def test_counting_everybody_twice_doubles_n_and_nothing_else_of_the_effect(kind):
    """Effects of shares, tables without empty cells and ranks do not know n."""
    rows = rows_of(kind)
    once, twice = (replicate_test(rows, np.full((1, N), k), method=METHODS.get(kind, "default")) for k in (1.0, 2.0))
    if kind in {"binomial", "proportion", "contingency", "mannwhitney", "correlation", "spearman", "wilcoxon"}:
        np.testing.assert_allclose(once.d, twice.d, rtol=0.05 if kind == "wilcoxon" else 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_unit_are_drawn_together(kind):
    """Two rows a unit are the same as two units that are always drawn alike."""
    rows, weights = rows_of(kind), weights_of(30, N // 2)
    pairs = TestRows(
        kind=kind, units=rows.units // 2, groups=rows.groups, levels=rows.levels, values=rows.values,
        against=rows.against, p0=rows.p0, scale=rows.scale,
    )  # fmt: skip
    method = METHODS.get(kind, "default")
    one, two = (
        replicate_test(pairs, weights, method=method),
        replicate_test(rows, np.repeat(weights, 2, 1), method=method),
    )
    for name in ("statistic", "log_bf", "d"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["ttest_ind", "welch", "ttest_one", "anova", "correlation"])
def test_answers_that_differ_by_rounding_alone_have_no_statistic(kind):
    """0.1 + 0.2 is not 0.3, and a t of the difference would be 10¹⁶."""
    values = np.where(np.arange(N) % 3, 0.3, 0.1 + 0.2)
    found = replicate_test(rows_of(kind, values=values), weights_of(20), method=METHODS.get(kind, "default"))
    for part in (found.statistic, found.log_bf, found.d):
        assert np.isnan(part).all()


def test_a_small_spread_far_from_zero_is_not_lost():
    values = 1e6 + np.random.default_rng(1).normal(0, 1e-3, N)
    rows, weights = rows_of("ttest_ind", values=values), weights_of(40)
    found = replicate_test(rows, weights, method="default").statistic
    np.testing.assert_allclose(found, [SCIPY["ttest_ind"](rows, times) for times in weights], rtol=1e-4, atol=1e-5)


def test_a_group_that_nobody_of_is_drawn_leaves_no_test():
    weights = np.ones((3, N))
    weights[1, 0::2] = 0
    for kind in ("contingency", "ttest_ind", "mannwhitney", "anova", "variance_ratio"):
        found = replicate_test(rows_of(kind), weights, method=METHODS.get(kind, "default"))
        assert np.isnan(found.statistic).tolist() == [False, True, False], kind


def test_the_spread_of_a_share_and_of_a_mean_is_that_of_the_textbook():
    """√(p(1 − p)/n) and sd/√n: with 20,000 replicates to within 2 %."""
    rng = np.random.default_rng(8)
    weights = np.concatenate(list(multiplicities(np.zeros(200, dtype=int), rng=rng, replicates=20_000)))
    units, groups = np.arange(200), np.zeros(200, dtype=int)
    share = (units < 60).astype(float)
    k = replicate_test(
        TestRows(kind="proportion", units=units, groups=groups, levels=1, values=share), weights, method="default"
    ).statistic
    assert k.std() / 200 == pytest.approx(math.sqrt(0.3 * 0.7 / 200), rel=0.02)
    numbers = rng.normal(2, 1, 200)
    means = weights @ numbers / 200
    assert means.std() == pytest.approx(numbers.std() / math.sqrt(200), rel=0.02)
    t = replicate_test(
        TestRows(kind="ttest_one", units=units, groups=groups, levels=1, values=numbers, scale=5.0),
        weights,
        method="default",
    )
    assert t.d.std() == pytest.approx(math.sqrt(1 / 200 + numbers.mean() ** 2 / (2 * 200)), rel=0.15)


def test_each_stratum_keeps_its_size_and_blocks_do_not_change_the_draw():
    strata = np.array([0, 1, 0, 1, 1, 2])
    once = np.concatenate(list(multiplicities(strata, rng=np.random.default_rng(4), replicates=50)))
    for stratum in range(3):
        assert (once[:, strata == stratum].sum(axis=1) == (strata == stratum).sum()).all()
    assert once.shape == (50, 6)
    assert once[:, :2].std() > 0
    blocks = list(multiplicities(strata, rng=np.random.default_rng(4), replicates=50, width=1 << 20))
    assert len(blocks) == 25


def test_nobody_gives_no_replicates_of_anything():
    found = list(multiplicities(np.zeros(0, dtype=int), rng=np.random.default_rng(1), replicates=7))
    assert [block.shape for block in found] == [(7, 0)]


def test_studies_with_fewer_replicates_keep_their_spread_beside_others():
    many, few = (Draws(log_bf=np.arange(n, dtype=float)[:, None], d=np.ones((n, 1))) for n in (6, 4))
    found = join_draws([many, Draws(log_bf=few.log_bf, d=few.d, drawn=("groups",))])
    assert found.log_bf[:, 1].tolist() == [0, 1, 2, 3, 0, 1]
    assert found.drawn == ("statistic", "groups")
    assert join_draws([]).d.shape == (0, 0)


def test_the_method_says_what_was_drawn():
    side = Side(statistic=2.0, n1=20, n2=20)
    tests = [
        StudyTest(study=f"s{at % 2}", finding=f"F{at}", test="T", kind="ttest_ind", human=side, agent=side)
        for at in range(3)
    ]
    found = score_tests(tests)
    rng = np.random.default_rng(1)
    log_bf, d = rng.normal(1, 1, (50, 3)), rng.normal(0.6, 0.2, (50, 3))
    draws = Draws(log_bf=log_bf, d=d, drawn=("participants", "groups", "statistic"))
    spread = score_uncertainty(found, rng=rng, draws=draws)
    said = "over participants and groups; 1 of 3 tests by their statistics"
    assert spread.pas["benchmark", ""].method == f"± 1.96 bootstrap SE {said}"
    assert spread.ecs_fixed["benchmark", ""].method == f"percentile, moved by the bootstrap's bias {said}"
    apart = differences(found, found, first_draws=draws, second_draws=draws)[0]
    assert (apart.value, apart.se) == (0.0, 0.0)
    assert apart.method == f"± 1.96 bootstrap SE, paired by draw {said}"
