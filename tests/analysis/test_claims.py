"""The short version of benchmarks/claims.py: winners where there is none."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

CLAIMS = Path(__file__).parents[2] / "benchmarks" / "claims.py"


@pytest.fixture(scope="module")
def claims():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CLAIMS.parent))
        return runpy.run_path(str(CLAIMS))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["losses", "clusters", "stops", "conditions"])
def test_equal_conditions_rarely_have_a_winner(claims, part):
    found = claims[part](np.random.default_rng(5), 8)
    assert np.mean([share for _, share, *_ in found]) <= claims["MOST"]


def test_the_rule_for_losses_costs_nothing_where_nothing_is_lost(claims):
    assert {share for _, share in claims["power"](np.random.default_rng(5), 8)} == {0.0}
