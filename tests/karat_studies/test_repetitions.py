"""Several repetitions of an experiment: the mean over them, against one repetition and against plain NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from karat_studies.replication import (
    Agreement,
    Draws,
    Side,
    StudyTest,
    draw_scores,
    repeated_differences,
    repeated_uncertainty,
    score_tests,
    score_uncertainty,
)

from .studies import differences

WHOLE = ("benchmark", "")


def agreement(shift: float = 0.0, *, studies: int = 6, missing: tuple[int, ...] = ()) -> Agreement:
    tests = []
    for at in range(studies):
        for number in range(2):
            t = 1.5 + at * 0.4 - number + shift
            agent = Side(missing="nobody answered") if at in missing else Side(statistic=t, n1=40.0, n2=40.0)
            tests.append(
                StudyTest(study=f"s{at}", finding="F1", test=f"T{number}", kind="ttest_ind",
                          domain="cognition" if at % 2 else "social",
                          human=Side(statistic=2.0 + at * 0.3 - number, n1=50.0, n2=50.0), agent=agent)
            )  # fmt: skip
    return score_tests(tests)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_one_repetition_is_what_it_is_alone() -> None:
    one = agreement()
    draws = draw_scores(one, rng=rng(), replicates=300)
    found = repeated_uncertainty([one], [draws], rng=rng())
    alone = score_uncertainty(one, rng=rng(), draws=draws)
    # As they are written: NaN equals nothing.
    assert repr(found.pas) == repr(alone.pas)
    assert repr(found.ecs_fixed) == repr(alone.ecs_fixed)
    assert repr(found.ecs_new) == repr(one.ecs_interval)


def test_repetitions_that_are_alike_are_as_sure_as_one() -> None:
    one = agreement()
    draws = draw_scores(one, rng=rng(), replicates=300)
    alone = score_uncertainty(one, rng=rng(), draws=draws)
    found = repeated_uncertainty([one] * 3, [draws] * 3, rng=rng())
    for key, spread in alone.pas.items():
        assert found.pas[key].value == pytest.approx(spread.value)
        assert found.pas[key].se == pytest.approx(spread.se)
    for level, spread in alone.ecs_fixed.items():
        if not math.isnan(spread.low):
            assert (found.ecs_fixed[level].low, found.ecs_fixed[level].high) == pytest.approx((spread.low, spread.high))
    new = found.ecs_new
    assert (new.value, new.low, new.high) == pytest.approx(
        (one.ecs_interval.value, one.ecs_interval.low, one.ecs_interval.high)
    )


def test_repetitions_drawn_apart_are_surer_by_the_root_of_their_number() -> None:
    one = agreement()
    draws = [draw_scores(one, rng=rng(seed), replicates=4_000) for seed in range(4)]
    alone = score_uncertainty(one, rng=rng(), draws=draws[0])
    found = repeated_uncertainty([one] * 4, draws, rng=rng())
    assert found.pas[WHOLE].se == pytest.approx(alone.pas[WHOLE].se / 2, rel=0.1)


def test_the_value_is_the_mean_of_the_repetitions_that_have_one() -> None:
    many = [agreement(0.0), agreement(1.0), agreement(missing=tuple(range(6)))]
    draws = [draw_scores(one, rng=rng(), replicates=100) for one in many]
    found = repeated_uncertainty(many, draws, rng=rng())
    known = [one.benchmark.pas for one in many[:2]]
    assert found.pas[WHOLE].value == pytest.approx(sum(known) / 2)
    assert math.isfinite(found.pas[WHOLE].se)
    ecs = [one.benchmark.ecs.value for one in many[:2]]
    assert found.ecs_fixed[WHOLE].value == pytest.approx(sum(ecs) / 2)


def test_nothing_at_all_stays_unknown() -> None:
    nobody = agreement(missing=tuple(range(6)))
    draws = draw_scores(nobody, rng=rng(), replicates=50)
    found = repeated_uncertainty([nobody, nobody], [draws, draws], rng=rng())
    assert math.isnan(found.pas[WHOLE].value)
    assert math.isnan(found.ecs_fixed[WHOLE].value)
    assert found.ecs_new.reason == "needs 5 studies, has 0"
    pas, ecs = repeated_differences([nobody] * 2, [agreement()] * 2, first_draws=[draws] * 2, second_draws=[draws] * 2)
    assert math.isnan(pas.value)
    assert math.isnan(ecs.value)


def test_differences_are_means_and_paired_ones_have_no_noise_of_their_own() -> None:
    one, two = agreement(), agreement(1.0)
    draws = draw_scores(one, rng=rng(), replicates=300)
    moved = Draws(log_bf=draws.log_bf + 1.0, d=draws.d + 0.2)
    single = differences(one, two, first_draws=draws, second_draws=moved)[0]
    pas, ecs = repeated_differences([one] * 2, [two] * 2, first_draws=[draws] * 2, second_draws=[moved] * 2)
    assert (pas.value, pas.se, pas.n) == pytest.approx((single.value, single.se, single.n))
    assert ecs.n == 12
    assert ecs.low < ecs.high
    same, _ = repeated_differences([one] * 2, [one] * 2, first_draws=[draws] * 2, second_draws=[draws] * 2)
    assert (same.value, same.se) == (0.0, 0.0)


def test_a_study_that_one_repetition_lacks_is_left_out_of_that_one_alone() -> None:
    whole, part = agreement(), agreement(missing=(0,))
    draws = [draw_scores(one, rng=rng(), replicates=100) for one in (whole, part)]
    found = repeated_uncertainty([whole, part], draws, rng=rng())
    assert found.pas["study", "s0"].value == pytest.approx(whole.studies[0].pas)
    assert found.ecs_new.n == 6
    assert found.each[1].pas["study", "s0"].value != found.each[0].pas["study", "s0"].value
