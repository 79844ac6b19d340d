"""exp, log and their kin: correct, and the same to the last digit whatever the processor can do."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__  # type: ignore[import-not-found]

from karat.stats import elementary

ROOT = Path(__file__).parents[2]


def powers(low: int, high: int, count: int) -> np.ndarray:
    """10 to so many exponents. By Python: numpy's own digits depend on the processor."""
    return np.array([10.0**exponent for exponent in np.linspace(low, high, count).tolist()])


SMALL = powers(-20, -1, 200)
SIGNED = np.concatenate([-SMALL, SMALL, np.linspace(-1, 1, 401)[1:-1]])
GROWING = np.concatenate([SIGNED, np.linspace(-700, 700, 401)])
POINTS = {
    "exp": GROWING, "sinh": GROWING, "cosh": GROWING, "tanh": GROWING, "arcsinh": GROWING,
    "arctanh": SIGNED,
    "log": np.concatenate([powers(-300, 300, 401), 1 + SIGNED]),
    "log1p": np.concatenate([SIGNED, powers(0, 300, 401)]),
    "arccosh": np.concatenate([1 + SMALL, powers(0, 150, 401)]),
}  # fmt: skip

DIGITS = """
import json
from karat import replication
from karat.stats import elementary
from tests.stats.test_elementary import POINTS
digits = {name: getattr(elementary, name)(points) for name, points in POINTS.items()}
digits["arctan2"] = elementary.arctan2(POINTS["tanh"], 1.0)
r, t = ([place / scale for place in range(-most, most + 1)] for most, scale in ((199, 200), (60, 10)))
for side in ("two-sided", "greater"):
    for name in ("kendall", "pearson", "spearman"):
        digits[f"{name} {side}"] = getattr(replication, f"log_bf10_{name}")(r, 40, alternative=side)
    digits[f"t {side}"] = replication.log_bf10_ttest(t, 20, 20, alternative=side)
    digits[f"z {side}"] = replication.log_bf10_z(t, 20, alternative=side)
    digits[f"u {side}"] = replication.log_bf10_mann_whitney(range(101), 10, 10, alternative=side)
    digits[f"share {side}"] = replication.log_bf10_binomial(range(101), 100, alternative=side)
digits["share, logistic"] = replication.log_bf10_binomial_logistic(range(101), 100)
digits["F"] = replication.log_bf10_anova([place / 10 for place in range(101)], 3, 40, n_per_group=11)
print(json.dumps({name: values.tolist() for name, values in digits.items()}))
"""


@pytest.mark.parametrize("name", sorted({*elementary.__all__} - {"arctan2"}))
def test_within_four_units_in_the_last_place_of_the_c_library(name):
    points = POINTS[name]
    expected = np.array([getattr(math, name.replace("arc", "a"))(point) for point in points.tolist()])
    assert np.abs((getattr(elementary, name)(points) - expected) / np.spacing(np.abs(expected))).max() <= 4


@pytest.mark.parametrize("name", sorted({*elementary.__all__} - {"arctan2"}))
def test_at_the_ends_of_the_domain_like_numpy(name):
    ends = [-1.0, -0.0, 0.0, 1.0, math.nan]
    if name in {"exp", "log", "log1p", "tanh"}:
        ends += [-math.inf, math.inf]
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(ends)
        assert getattr(elementary, name)(np.array(ends)) == pytest.approx(expected, rel=1e-15, nan_ok=True)


def test_the_angle_of_a_point():
    points = [(y, x) for y in (-2.5, -1e-9, 0.0, 0.3, 7.0) for x in (-3.0, -1e-12, 1e-20, 1.0, 1e6)]
    y, x = np.array(points).T
    expected = [math.atan2(*point) for point in points]
    assert elementary.arctan2(y, x).tolist() == pytest.approx(expected, rel=1e-15)
    assert elementary.arctan2(np.sqrt(0.25), np.sqrt(0.75)) == pytest.approx(math.pi / 6, rel=1e-15)


def test_a_buffer_takes_the_result():
    buffer = np.empty(3)
    assert elementary.exp(np.array([0.0, 1.0, -math.inf]), out=buffer) is buffer
    assert buffer.tolist() == [1.0, math.e, 0.0]
    elementary.log1p(buffer, out=buffer)
    assert buffer.tolist() == [math.log1p(1.0), pytest.approx(math.log1p(math.e), rel=1e-15), 0.0]


def test_the_same_digits_without_the_instructions_that_only_some_processors_have():
    plain = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__), "OPENBLAS_CORETYPE": "Prescott"}
    with_all, without = (json.loads(_run(env)) for env in (dict(os.environ), plain))
    assert [name for name in with_all if with_all[name] != without[name]] == []
    assert len(with_all) == len(POINTS) + 17


def _run(env: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", DIGITS], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
