"""ECS: what concordance keeps under, and where it is not known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat_studies.replication import (
    caricature,
    ecs_interval,
    ecs_strict,
    noise_ceiling,
    weighted_ccc,
    weights_by_study,
)

patiently = settings(deadline=None)  # the first call of a kernel imports SciPy

EFFECTS = st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.01, 5)), min_size=3, max_size=30).filter(
    lambda rows: np.ptp([r[0] for r in rows]) > 1e-3 and np.ptp([r[1] for r in rows]) > 1e-3
)


@patiently
@given(rows=EFFECTS, scale=st.floats(1e-3, 1e3), slope=st.floats(0.1, 5), shift=st.floats(-2, 2))
def test_concordance_keeps_under_scaling_swapping_and_a_common_map(rows, scale, slope, shift):
    x, y, w = (np.array(column) for column in zip(*rows, strict=True))
    found = weighted_ccc(x, y, w)
    assert weighted_ccc(x, y, scale * w).value == pytest.approx(found.value, abs=1e-12)
    assert weighted_ccc(y, x, w).value == pytest.approx(found.value, abs=1e-12)
    assert weighted_ccc(slope * x + shift, slope * y + shift, w).value == pytest.approx(found.value, abs=1e-9)
    assert abs(found.value) <= abs(found.pearson) + 1e-12
    assert found.value == pytest.approx(found.pearson * found.bias, abs=1e-10)
    shape = (found.scale_shift + 1 / found.scale_shift + found.location_shift**2) / 2
    assert found.bias == pytest.approx(1 / shape, abs=1e-10)


def test_whole_weights_are_repeated_rows():
    x, y, w = [0.1, 0.7, -0.4, 1.2], [0.2, 0.5, 0.1, 0.9], [1, 3, 2, 1]
    assert weighted_ccc(x, y, w).value == pytest.approx(weighted_ccc(np.repeat(x, w), np.repeat(y, w)).value, abs=1e-14)


@pytest.mark.parametrize(
    ("x", "y", "w", "value", "n"),
    [
        ([1, 1, 1], [1, 1, 1], None, 1.0, 3),
        ([0.1] * 7, [0.1] * 7, [0.3] * 7, 1.0, 7),
        ([1, 1, 1], [5, 5, 5], None, 0.0, 3),
        ([1, 1, 1], [1, 2, 3], None, 0.0, 3),
        ([1, 2], [1, 2], None, math.nan, 2),
        ([], [], None, math.nan, 0),
        ([1, math.nan, 3, 4], [1, 2, 3, 4], None, 1.0, 3),
        ([1, 2, 3, 4], [1, 2, 3, 9], [1, 1, 1, 0], 1.0, 3),
    ],
)
def test_the_edges_of_concordance(x, y, w, value, n):
    found = weighted_ccc(x, y, w)
    assert found.value == pytest.approx(value, abs=1e-14, nan_ok=True)
    assert (found.n, found.dropped) == (n, len(x) - n)


def test_what_cannot_be_weighed_is_refused():
    with pytest.raises(ValueError, match="must be lists of one length"):
        weighted_ccc([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="w: must be at least 0, got -1"):
        weighted_ccc([1, 2, 3], [1, 2, 3], [1, 1, -1])


def test_weights_count_valid_tests_only():
    studies, findings = ["a", "a", "a", "b", "c"], ["F1", "F1", "F2", "F1", "F1"]
    weights = weights_by_study(studies, findings, [True, False, True, True, False])
    assert weights.tolist() == [0.25, 0, 0.25, 0.5, 0]
    alone = weights_by_study(["a"] * 4, ["F1", "F1", "F1", "F2"], [True, True, False, True])
    assert alone.tolist() == [1 / 3, 1 / 3, 0, 1 / 3]


def test_the_jackknife_leaves_out_studies_and_says_when_it_cannot():
    rng = np.random.default_rng(3)
    studies = np.repeat([f"s{k}" for k in range(8)], 3).tolist()
    findings = [f"F{k}" for k in range(24)]
    x = rng.normal(0.5, 0.5, 24)
    y = x + rng.normal(0, 0.3, 24)
    found = ecs_interval(x, y, studies, findings)
    assert (found.n, found.scope, found.reason) == (8, "new studies", None)
    assert found.low < found.value < found.high
    z = []
    for study in dict.fromkeys(studies):
        kept = [at for at, one in enumerate(studies) if one != study]
        own = [studies[at] for at in kept]
        weights = weights_by_study(own, [findings[at] for at in kept], [True] * len(kept))
        z.append(math.atanh(weighted_ccc(x[kept], y[kept], weights).value))
    assert found.se == pytest.approx(math.sqrt(7 / 8 * sum((one - np.mean(z)) ** 2 for one in z)), rel=1e-12)
    few = ecs_interval(x[:12], y[:12], studies[:12], findings[:12])
    assert math.isnan(few.low)
    assert few.reason == "needs 5 studies, has 4"


def test_a_perfect_copy_reaches_the_noise_ceiling_only():
    rng = np.random.default_rng(1)
    x = np.linspace(-1, 2, 30)
    assert noise_ceiling(x, np.zeros(30), np.zeros(30), rng=rng) == pytest.approx(1)
    noisy = noise_ceiling(x, np.full(30, 0.3), np.full(30, 0.4), rng=rng)
    assert noisy == pytest.approx(2 * x.var() / (2 * x.var() + 0.25), abs=0.02)
    assert math.isnan(noise_ceiling([1, 2], [0, 0], [0, 0], rng=rng))


def test_strict_consistency():
    assert ecs_strict([0.0]) == 1.0
    assert ecs_strict([1.96]) == pytest.approx(0.05, abs=1e-4)
    assert ecs_strict([1.96]) == pytest.approx(ecs_strict([-1.96, math.nan]))
    assert ecs_strict([1.3], method="chi2") == pytest.approx(ecs_strict([1.3]))
    assert math.isnan(ecs_strict([]))
    with pytest.raises(ValueError, match="method: must be"):
        ecs_strict([1.0], method="sum")


def test_an_exaggerating_agent_has_a_slope_above_1():
    rng = np.random.default_rng(5)
    x = rng.normal(0.4, 0.6, 40)
    found = caricature(x, 1.8 * x + rng.normal(0, 0.2, 40))
    assert found.low > 1.5
    assert found.low < found.slope < found.high
    assert math.isnan(caricature([1, 1, 1], [1, 2, 3]).slope)
    assert caricature([1, 2], [1, 2]).reason == "needs 3 pairs of effects, has 2"
    alone = caricature([0, 0, 0, 5], [0, 1, -1, 3])
    assert alone.reason == "one pair alone determines the slope"


def test_the_interval_of_the_slope_covers():
    rng = np.random.default_rng(8)
    inside = 0
    for _ in range(600):
        x = rng.normal(0, 1, 25)
        found = caricature(x, 0.7 * x + rng.normal(0, 1, 25) * (0.5 + np.abs(x)))
        inside += found.low <= 0.7 <= found.high
    assert 0.92 <= inside / 600 <= 0.985
