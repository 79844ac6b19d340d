"""What the intervals and tests promise, held over thousands of simulated experiments.

Each cell is thousands of experiments at once, in a vectorised twin of the function; the
twin is checked against the function itself on a handful of them. Seeds are fixed: a bound
of two Monte Carlo errors is missed by one honest cell in forty.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri, stdtrit

from karat import stats

EXPERIMENTS = 2_000  # of a test
INTERVALS = 10_000  # whose coverage is counted
CHECKED = 15
SEED = 2026
SIZES = [(questions, repetitions) for questions in (20, 50, 200) for repetitions in (1, 3, 5)]
MONTE_CARLO = 2 * (0.05 * 0.95 / EXPERIMENTS) ** 0.5


def ordinal(rng, shape, question_sd, noise_sd, centre=3.4):
    """Scores 1 to 5: (experiments, questions, repetitions), with questions of unequal difficulty."""
    latent = centre + question_sd * rng.standard_normal((*shape[:2], 1), dtype=np.float32)
    latent = latent + noise_sd * rng.standard_normal(shape, dtype=np.float32)
    return np.clip(np.rint(latent), 1, 5)


def t_intervals(means):
    n = means.shape[1]
    mean, se = means.mean(axis=1), means.std(axis=1, ddof=1) / n**0.5
    reach = float(stdtrit(n - 1, 0.975)) * se
    return mean - reach, mean + reach


def chunks(experiments, questions, repetitions):
    """Experiments in parts that keep memory small."""
    at_once = max(1, 2_000_000 // (questions * repetitions))
    return [min(at_once, experiments - start) for start in range(0, experiments, at_once)]


@pytest.mark.parametrize("question_sd", [pytest.param(0.9, id="clustered"), pytest.param(0.0, id="not clustered")])
@pytest.mark.parametrize(("questions", "repetitions"), SIZES)
def test_two_identical_conditions_are_called_different_in_at_most_5_percent(questions, repetitions, question_sd):
    rng = np.random.default_rng([SEED, questions, repetitions, int(10 * question_sd)])
    different = 0
    for part in chunks(EXPERIMENTS, questions, repetitions):
        latent = 3.4 + question_sd * rng.standard_normal((part, questions, 1), dtype=np.float32)
        a, b = (
            np.clip(np.rint(latent + 0.8 * rng.standard_normal((part, questions, repetitions), dtype=np.float32)), 1, 5)
            for _ in range(2)
        )
        low, high = t_intervals(b.mean(axis=2, dtype=np.float64) - a.mean(axis=2, dtype=np.float64))
        different += int(np.count_nonzero((low > 0) | (high < 0)))
    clusters = np.repeat(np.arange(questions), repetitions)
    for place in range(min(CHECKED, part)):
        found = stats.paired_difference(a[place].ravel(), b[place].ravel(), clusters)
        assert (found.low, found.high) == pytest.approx((low[place], high[place]), abs=1e-9)
        assert (found.p < 0.05) == bool((low[place] > 0) | (high[place] < 0))
    assert different / EXPERIMENTS <= 0.05 + MONTE_CARLO


def test_the_size_of_the_test_is_5_percent_to_within_a_quarter_of_one():
    """The smallest cell, where whole numbers fit a t distribution least, looked at closely."""
    rng = np.random.default_rng(SEED)
    a, b = (ordinal(rng, (200_000, 20, 1), 0.0, 0.8).mean(axis=2, dtype=np.float64) for _ in range(2))
    low, high = t_intervals(b - a)
    assert 0.0475 <= np.mean((low > 0) | (high < 0)) <= 0.0525


@pytest.mark.parametrize(("questions", "repetitions"), SIZES)
def test_intervals_of_means_cover_93_to_97_percent(questions, repetitions):
    rng = np.random.default_rng([SEED, questions, repetitions])
    spread = (0.9**2 + 0.8**2) ** 0.5
    edges = ndtr((np.array([1.5, 2.5, 3.5, 4.5]) - 3.4) / spread)
    truth = 5 - edges.sum()  # the expected score, exactly
    covered = 0
    for part in chunks(INTERVALS, questions, repetitions):
        y = ordinal(rng, (part, questions, repetitions), 0.9, 0.8)
        low, high = t_intervals(y.mean(axis=2, dtype=np.float64))
        covered += int(np.count_nonzero((low <= truth) & (truth <= high)))
    clusters = np.repeat(np.arange(questions), repetitions)
    for place in range(min(CHECKED, part)):
        found = stats.mean_interval(y[place].ravel(), clusters)
        assert (found.low, found.high) == pytest.approx((low[place], high[place]), abs=1e-9)
    assert 0.93 <= covered / INTERVALS <= 0.97


def share_intervals(right):
    """Wilson at the effective n, for all experiments at once."""
    _, questions, repetitions = right.shape
    means = right.mean(axis=2, dtype=np.float64)
    p, se = means.mean(axis=1), means.std(axis=1, ddof=1) / questions**0.5
    z = float(ndtri(0.975))
    shrink = (z / float(stdtrit(questions - 1, 0.975))) ** 2
    n = np.divide(p * (1 - p) * shrink, se**2, out=np.full_like(p, float(questions)), where=se > 0)
    n = np.where(se > 0, np.clip(n, questions / 2, questions * repetitions), questions)
    centre, reach = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return np.where(p <= 0, 0, (centre - reach) / scale), np.where(p >= 1, 1, (centre + reach) / scale)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.6, 0.85, 0.95])
@pytest.mark.parametrize(("questions", "repetitions"), SIZES)
def test_intervals_of_shares_cover_93_to_98_and_a_half_percent(questions, repetitions, truth):
    rng = np.random.default_rng([SEED, questions, repetitions, int(100 * truth)])
    bar = -float(ndtri(truth)) * 2**0.5  # question and noise of variance 1 each
    covered = 0
    for part in chunks(INTERVALS, questions, repetitions):
        latent = rng.standard_normal((part, questions, 1), dtype=np.float32)
        right = latent + rng.standard_normal((part, questions, repetitions), dtype=np.float32) > bar
        low, high = share_intervals(right)
        covered += int(np.count_nonzero((low <= truth) & (truth <= high)))
    clusters = np.repeat(np.arange(questions), repetitions)
    for place in range(min(CHECKED, part)):
        found = stats.share_interval(right[place].ravel(), clusters)
        assert (found.low, found.high) == pytest.approx((low[place], high[place]), abs=1e-9)
    assert 0.93 <= covered / INTERVALS <= 0.985


def within(share, experiments, *, truth=0.05):
    """At most the truth, but for two Monte Carlo errors."""
    return share <= truth + 2 * (truth * (1 - truth) / experiments) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("questions", "repetitions", "conditions"), [(20, 3, 3), (20, 1, 6), (50, 3, 5)])
def test_identical_conditions_are_told_apart_in_at_most_5_percent_of_leaderboards(questions, repetitions, conditions):
    rng, experiments = np.random.default_rng([SEED, questions, conditions]), 400
    clusters, told = np.repeat(np.arange(questions), repetitions), 0
    for _ in range(experiments):
        latent = 3.4 + 0.9 * rng.standard_normal((1, questions, 1))
        y = np.clip(np.rint(latent + 0.8 * rng.standard_normal((conditions, questions, repetitions))), 1, 5)
        found = stats.leaderboard(y.reshape(conditions, -1), clusters, rng=rng, replicates=199)
        told += any(one.apart for one in found.contrasts)
    assert within(told / experiments, experiments)


def test_the_intervals_of_a_leaderboard_hold_all_true_differences_at_once():
    rng, experiments = np.random.default_rng(SEED), 400
    truth, held = np.array([0.6, 0.3, 0.3, 0.0]), 0
    for _ in range(experiments):
        y = rng.standard_normal((1, 25)) + truth[:, None] + rng.standard_normal((4, 25))
        found = stats.leaderboard(y, rng=rng, replicates=399)
        at = {str(place): mean for place, mean in enumerate(truth, start=1)}
        held += all(one.low <= at[one.first] - at[one.second] <= one.high for one in found.contrasts)
    assert within(1 - held / experiments, experiments)


@pytest.mark.parametrize("method", ["bootstrap-t", "bca"])
def test_bootstrap_intervals_of_50_skewed_questions_cover_what_they_say(method):
    """Bands as simulated: bootstrap-t 93–97 %, BCa a little less (statistics_reference, 1.3)."""
    rng, experiments = np.random.default_rng(SEED), 600
    covered = 0
    for _ in range(experiments):
        found = stats.mean_interval(rng.exponential(size=50), method=method, rng=rng, replicates=499)
        covered += found.low <= 1 <= found.high
    low, high = (0.93, 0.97) if method == "bootstrap-t" else (0.91, 0.96)
    error = 2 * (0.05 * 0.95 / experiments) ** 0.5
    assert low - error <= covered / experiments <= high + error


@pytest.mark.parametrize("design", ["paired", "independent", "pooled"])
def test_a_difference_at_the_bound_is_called_equivalence_in_at_most_5_percent(design):
    rng, experiments = np.random.default_rng(SEED), 1_000
    shown = 0
    for _ in range(experiments):
        a, b = rng.standard_normal(40), rng.standard_normal(40) + 0.7
        shown += stats.tost(a, b, bounds=0.7, design=design).equivalent
    assert within(shown / experiments, experiments)


def test_two_groups_of_questions_are_called_different_in_at_most_5_percent():
    rng, experiments = np.random.default_rng(SEED), 1_000
    at = [np.repeat(np.arange(size), 3) for size in (15, 40)]
    different = 0
    for _ in range(experiments):
        a, b = (
            np.clip(np.rint(3.4 + rng.standard_normal((size, 1)) + 0.8 * rng.standard_normal((size, 3))), 1, 5)
            for size in (15, 40)
        )
        different += stats.mean_difference(a.ravel(), b.ravel(), *at).p < 0.05
    assert within(different / experiments, experiments)


@pytest.mark.slow
def test_shares_of_three_levels_lie_in_their_intervals_in_93_to_100_percent():
    """Generalised intervals err to the wide side where a part is near 0."""
    rng, experiments = np.random.default_rng(SEED), 100
    question, answer = np.repeat(np.arange(15), 6), np.tile([0, 0, 1, 1, 2, 2], 15)
    truth, held = np.array([0.5, 0.35, 0.15]), np.zeros(3)
    for _ in range(experiments):
        sd = truth**0.5
        y = sd[0] * rng.standard_normal((15, 1, 1)) + sd[1] * rng.standard_normal((15, 3, 1))
        y = y + sd[2] * rng.standard_normal((15, 3, 2))
        found = stats.variance_components(y.ravel(), question, answer=answer)
        held += [one.low <= share <= one.high for share, one in zip(truth, found.share_intervals, strict=True)]
    assert (held / experiments >= 0.93 - 2 * (0.05 * 0.95 / experiments) ** 0.5).all()
