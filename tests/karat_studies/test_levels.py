"""The level of intervals: of a test, of findings, studies, domains and the benchmark, of differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.karat_studies.test_repetitions import rng
from tests.karat_studies.test_scores import SIDES

from karat_studies.replication import (
    Agreement,
    Side,
    StudyTest,
    draw_scores,
    pas_interval_of_test,
    reference_differences,
    repeated_differences,
    repeated_uncertainty,
    score_test,
    score_tests,
    score_uncertainty,
    z_of_level,
)

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)


def agreement(level: float, shift: float = 0.0) -> Agreement:
    tests = [
        StudyTest(
            study=f"s{at}", finding="F1", test=f"T{number}", kind="ttest_ind",
            domain="social" if at % 2 else "cognition",
            human=Side(statistic=2.0 + at * 0.3 - number, n1=50.0, n2=50.0),
            agent=Side(statistic=1.5 + at * 0.4 - number + shift + math.sin(at), n1=40.0, n2=40.0),
        )
        for at in range(6)
        for number in range(2)
    ]  # fmt: skip
    return score_tests(tests, level=level)


def of_one(level: float) -> dict[Any, Any]:
    found = score_uncertainty(agreement(level), rng=rng(), replicates=800)
    return {("pas", key): one for key, one in found.pas.items()} | {
        ("ecs", key): one for key, one in found.ecs_fixed.items()
    }


def of_several(level: float) -> dict[Any, Any]:
    both = [agreement(level), agreement(level, 0.3)]
    draws = [draw_scores(one, rng=rng(at), replicates=800) for at, one in enumerate(both)]
    found = repeated_uncertainty(both, draws, rng=rng())
    return {("pas", key): one for key, one in found.pas.items()} | {
        ("ecs", key): one for key, one in found.ecs_fixed.items()
    } | {"new studies": found.ecs_new}  # fmt: skip


def of_differences(level: float) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for times in (1, 2):
        one, two = ([agreement(level, shift)] * times for shift in (0.0, 0.8))
        draws = [
            [draw_scores(each, rng=rng(at), replicates=800) for each in side] for at, side in enumerate((one, two))
        ]
        both = repeated_differences(one, two, first_draws=draws[0], second_draws=draws[1])
        found |= {(times, what): each for what, each in zip(("pas", "ecs"), both, strict=True)}
    reference = [agreement(level, shift) for shift in (-0.4, 0.1, 0.6)]
    own = agreement(level)
    beside = reference_differences([own], [draw_scores(own, rng=rng(), replicates=800)], reference)
    return found | {("reference", what): each for what, each in zip(("pas", "ecs"), beside, strict=True)}


def of_tests(level: float) -> dict[Any, Any]:
    tests = {
        kind: StudyTest(study="s", finding="F1", test="T1", kind=kind, domain="social", human=side, agent=side)
        for kind, side in SIDES.items()
    }
    found: dict[Any, Any] = {
        kind: pas_interval_of_test(score_test(test, level=level), level=level) for kind, test in tests.items()
    }
    return found | {f"effect of {kind}": score_test(test, level=level).agent for kind, test in tests.items()}


def of_lines(level: float) -> dict[Any, Any]:
    found = agreement(level)
    return {"jackknife": found.ecs_interval, "slope": found.caricature}


@pytest.mark.quick(1)
@pytest.mark.parametrize("intervals", [of_one, of_several, of_differences, of_tests, of_lines])
def test_a_higher_level_is_wider_and_holds_the_lower(intervals: Callable[[float], dict[Any, Any]]) -> None:
    found = [intervals(level) for level in LEVELS]
    claimed = [key for key, one in found[0].items() if math.isfinite(one.low)]
    assert claimed
    for lower, higher in pairwise(found):
        assert lower.keys() == higher.keys()
        for key, one in lower.items():
            other = higher[key]
            assert math.isnan(one.low) == math.isnan(other.low) == (key not in claimed)
            if key in claimed:
                assert other.low <= one.low <= one.high <= other.high
                wider = other.high - other.low > one.high - one.low
                assert wider or (other.low, other.high) in ((0, 1), (-1, 1)) or key in SIDES  # evidence has an end
            for same in ("value", "se", "n", "effect", "log_bf"):
                assert np.array_equal(getattr(one, same, 0), getattr(other, same, 0), equal_nan=True), (key, same)


def test_95_percent_is_what_stands_where_nothing_is_said() -> None:
    named = agreement(0.95)
    assert repr(score_tests([one.test for one in named.tests])) == repr(named)
    for key, one in score_uncertainty(named, rng=rng(), replicates=800).pas.items():
        if key[0] in {"benchmark", "domain"}:
            reach = 1.959963984540054 * one.se
            assert (one.low, one.high) == (max(0.0, one.value - reach), min(1.0, one.value + reach))
    score = named.tests[0]
    assert repr(pas_interval_of_test(score)) == repr(pas_interval_of_test(score, level=0.95))


def test_pas_reaches_as_many_standard_errors_as_the_level_says() -> None:
    for level, z, told in ((0.9, 1.644853626951472, "1.64"), (0.99, 2.575829303548901, "2.58")):
        spread = score_uncertainty(agreement(level), rng=rng(), replicates=800).pas["benchmark", ""]
        assert spread.high - spread.value == pytest.approx(z * spread.se, rel=1e-12)
        assert spread.method.startswith(f"± {told} ")
        assert z_of_level(level) == pytest.approx(z, rel=1e-14)
    assert score_tests([]).level == 0.95
    assert z_of_level(0.95) == 1.959963984540054


def test_the_ecs_of_these_studies_is_between_the_percentiles_of_its_level() -> None:
    found = agreement(0.8)
    draws = draw_scores(found, rng=rng(), replicates=800)
    spread = score_uncertainty(found, rng=rng(), draws=draws).ecs_fixed["benchmark", ""]
    wide = score_uncertainty(agreement(0.95), rng=rng(), draws=draws).ecs_fixed["benchmark", ""]
    assert wide.low < spread.low < spread.high < wide.high
    assert spread.se == wide.se


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, math.nan])
def test_a_level_is_a_share(level: float) -> None:
    with pytest.raises(ValueError, match="level: must lie between 0 and 1"):
        score_tests([], level=level)
