"""PAS: its laws, its edges, its pooling."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat_studies.replication import (
    directional_posterior,
    log_bf10_ttest,
    pas,
    pas_ceiling,
    pas_directional,
    pas_log_odds,
    pas_normalized,
    pool_pas,
    posterior,
)

patiently = settings(deadline=None)  # the first call of a kernel imports SciPy

LOGS = st.floats(-1e6, 1e6)


@patiently
@given(a=LOGS, b=LOGS)
def test_box_plus_is_symmetric_and_no_surer_than_either(a, b):
    found = pas_log_odds(a, b)
    assert found == pas_log_odds(b, a)
    assert abs(found) <= min(abs(a), abs(b)) * (1 + 1e-12)
    assert pas_log_odds(a, -b) == pytest.approx(-found, rel=1e-12)


@patiently
@given(a=st.floats(-30, 30), b=st.floats(-30, 30))
def test_pas_and_its_log_odds_are_one(a, b):
    direct = pas(posterior(a), posterior(b))
    assert posterior(pas_log_odds(a, b)) == pytest.approx(direct, abs=1e-14)
    assert direct == pytest.approx((1 + math.tanh(a / 2) * math.tanh(b / 2)) / 2, abs=1e-14)


def test_log_odds_reach_where_probabilities_cannot():
    assert pas_log_odds(1e300, 1e300) == pytest.approx(1e300)
    assert pas_log_odds(1e300, -2.0) == -2.0
    assert pas_log_odds(math.inf, 3.0) == 3.0
    assert pas_log_odds(math.inf, -math.inf) == -math.inf
    assert pas_log_odds(1e-200, 4.0) == pytest.approx(1e-200 * math.tanh(2.0))
    assert math.isnan(pas_log_odds(math.nan, 1.0))


def test_prior_odds_move_the_posterior():
    assert posterior(0.0) == 0.5
    assert posterior(0.0, 10) == pytest.approx(10 / 11)
    with pytest.raises(ValueError, match="prior_odds: must be above 0, got 0"):
        posterior(0.0, 0)


@patiently
@given(h=st.floats(-50, 50))
def test_identical_evidence_has_pas_at_its_ceiling(h):
    pi = posterior(h)
    assert pas(pi, pi) == pytest.approx(pas_ceiling(pi), abs=1e-15)
    if abs(2 * pas_ceiling(pi) - 1) > 1e-6:
        assert pas_normalized(pas(pi, pi), pi) == pytest.approx(1.0, abs=1e-9)


def test_neutral_human_evidence_has_no_normalised_agreement():
    assert math.isnan(pas_normalized(0.5, 0.5))
    assert pas_normalized(0.5, 0.5, fallbacks="documented") == 0.0
    with pytest.raises(ValueError, match="fallbacks: must be one of documented"):
        pas_normalized(0.5, 0.5, fallbacks="none")


def states(t, n):
    return directional_posterior(
        *(log_bf10_ttest(t, n, n, alternative=one) for one in ("two-sided", "greater", "less"))
    )


@patiently
@given(t=st.floats(-60, 60), n=st.integers(3, 5_000))
def test_three_states_are_a_distribution(t, n):
    found = states(t, n)
    assert found.positive + found.negative + found.null == pytest.approx(1, abs=1e-14)
    assert found.null == pytest.approx(1 - posterior(log_bf10_ttest(t, n, n)), abs=1e-14)
    assert (found.positive > found.negative) == (t > 0) or abs(t) < 1e-6 or found.null > 1 - 1e-12
    assert pas_directional(found, found) == pytest.approx(found.ceiling, abs=1e-15)


@pytest.mark.parametrize("t", [5.5, 8.0, 40.0, 300.0])
def test_opposite_decisive_evidence_agrees_only_without_direction(t):
    log_bf = log_bf10_ttest(t, 60, 60)
    assert log_bf >= 7
    people, agent = states(t, 60), states(-t, 60)
    assert pas(posterior(log_bf), posterior(log_bf)) > 0.99
    assert pas_directional(people, agent) < 0.01


def test_without_one_sided_evidence_the_sign_decides():
    found = directional_posterior([2.0, 2.0, 2.0, 2.0], sign=[1, -1, 0, math.nan])
    assert found.positive == pytest.approx([posterior(2.0), 0, math.nan, math.nan], nan_ok=True)
    assert found.negative == pytest.approx([0, posterior(2.0), math.nan, math.nan], nan_ok=True)
    assert np.isnan(found.null).tolist() == [False, False, True, True]
    with pytest.raises(ValueError, match="needs log_bf_greater and log_bf_less, or sign"):
        directional_posterior(2.0)


def test_pooling_is_the_weighted_mean_of_log_odds():
    p, n = np.array([0.9, 0.6, 0.75, 0.1]), np.array([50, 80, 20, 33])
    logit = np.log(p / (1 - p))
    assert pool_pas(p, n) == pytest.approx(posterior(float((logit * n).sum() / n.sum())), abs=1e-14)


@pytest.mark.parametrize(
    ("scores", "weights", "expected"),
    [
        ([], None, math.nan),
        ([math.nan, math.nan], None, math.nan),
        ([0.3], [10], 0.3),
        ([1.0], [10], 1.0),  # one test: its PAS, unclamped
        ([math.nan, 0.3], [5, 10], 0.3),
        ([0.0, 0.0], None, 5e-7),
        ([0.9, 0.6], [0, 0], None),
        ([0.9, 0.6], [-3, 1], None),
        ([0.9, 0.6], [math.nan, math.nan], None),
    ],
)
def test_the_edges_of_pooling(scores, weights, expected):
    expected = pool_pas([0.9, 0.6]) if expected is None else expected
    assert pool_pas(scores, weights) == pytest.approx(expected, nan_ok=True, rel=1e-9)


def test_the_published_clamp_and_fallbacks():
    assert pool_pas([1 - 1e-9, 0.5]) == pytest.approx(0.9992934, abs=1e-7)
    assert pool_pas([1 - 1e-9, 0.5], clamp=0) == pytest.approx(0.99997, abs=1e-5)
    assert pool_pas([], empty=0.5) == 0.5
    assert pool_pas([math.nan], fallbacks="documented") == 0.5
    with pytest.raises(ValueError, match=r"pas: must be between 0 and 1, got 1\.2"):
        pool_pas([0.2, 1.2])
