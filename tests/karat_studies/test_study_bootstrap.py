"""Participants drawn again: the same numbers as a loop over replicates gives, and the laws of a paired draw."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from karat.errors import BadOption
from karat_studies.kinds.study.bootstrap import StudyRun, copied_rows, study_draws, test_rows, units_of
from karat_studies.kinds.study.copy import answer_copy
from karat_studies.kinds.study.experiments import Response, data_of, to_study_tests
from karat_studies.kinds.study.format import StudyFile, Test
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.repeats import COUNTED
from karat_studies.kinds.study.sides import agent_side
from karat_studies.replication import (
    TestRows,
    join_draws,
    measure,
    multiplicities,
    replicate_test,
    score_tests,
    score_uncertainty,
)

from .studies import differences, read, shipped

SHIPPED = shipped_studies()
TINY = """\
study: tiny
title: T
source: S
domain: cognition
participants: {per_arm: human}
arms:
  a: {prompt: materials/gain.md, fields: {x: {type: number, hint: a number}}, n: 12}
  b: {prompt: materials/gain.md, fields: {x: {type: number, hint: a number}}, n: 12}
DERIVE
findings:
  - id: F1
    claim: A is above b.
    tests:
      - id: T1
        kind: ttest_ind
        groups: {column: arm, levels: [a, b]}
        measure: x
        expect: greater
        human: {t: 2.5, a: {n: 12}, b: {n: 12}}
"""
MATERIAL = {"gain": "How many? Answer with one line:\nx: a number"}


def tiny(folder: Path, derive: str = "") -> StudyFile:
    return read(folder, TINY.replace("DERIVE", derive), MATERIAL)


def answers(each: int = 12, *, seed: int = 1, apart: float = 0.8) -> list[Response]:
    rng = np.random.default_rng(seed)
    return [
        Response(participant=f"{arm}-{at}", arm=arm, values={"x": float(rng.normal(apart * (arm == "a"), 1))})
        for arm in "ab"
        for at in range(each)
    ]


def with_holes(responses: Iterable[Response], seed: int) -> list[Response]:
    """Some say nothing, some leave a field out: they are drawn all the same."""
    dice = random.Random(seed)
    return [
        replace(
            one,
            values={name: value for name, value in one.values.items() if dice.random() < 0.93},
            answered=dice.random() < 0.97,
        )
        for one in responses
    ]


def a_run(study: StudyFile, responses: Sequence[Response], **more: Any) -> StudyRun:
    data = data_of(study, responses)
    scores = score_tests(to_study_tests(study, responses, data=data), **more).tests
    return StudyRun(responses=responses, data=data.columns, scores=scores)


def one_by_one(study: StudyFile, run: StudyRun, weights: np.ndarray) -> np.ndarray:
    """(replicates, ln BF and d, tests): rows copied, tests computed by the agent's way, one after the other."""
    units = units_of(run.responses)
    whose = [
        units.participants.get(who, units.groups.get((arm, group)))
        for who, arm, group in zip(
            run.data["participant"], run.data["arm"], run.data.get("group_id", [None] * 10**6), strict=False
        )
    ]
    tests = {(finding.sub_study, finding.id, test.id): test for finding, test in study.tests}
    found = []
    for times in weights:
        rows = [at for at, unit in enumerate(whose) if unit is not None for _ in range(int(times[unit]))]
        columns = {name: [column[at] for at in rows] for name, column in run.data.items()}
        sides = [agent_side(tests[s.test.sub_study, s.test.finding, s.test.test], columns) for s in run.scores]
        measured = [
            measure(score.test.kind, side, method="asymptotic" if score.test.kind == "mannwhitney" else score.method)
            for score, side in zip(run.scores, sides, strict=True)
        ]
        found.append([[one.log_bf for one in measured], [one.d for one in measured]])
    return np.array(found)


def the_weights(responses: Sequence[Response], seed: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed).spawn(1)[0]
    return np.concatenate(list(multiplicities(units_of(responses).strata, rng=rng, replicates=count)))


@pytest.mark.slow
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("name", SHIPPED)
def test_every_replicate_is_what_a_loop_over_copied_rows_gives(name: str, holes: bool) -> None:
    study = shipped(name)
    responses = answer_copy(study)
    responses = with_holes(responses, 3) if holes else responses
    run = a_run(study, responses, min_coverage=0.0)
    [found] = study_draws(study, [run], rng=np.random.default_rng(5), replicates=12)
    expected = one_by_one(study, run, the_weights(responses, 5, 12))
    smoothed = constant(study, run)
    own = [at for at in range(len(run.scores)) if at not in found.reasons and at not in smoothed]
    assert own
    for part, wanted in ((found.draws.log_bf, expected[:, 0]), (found.draws.d, expected[:, 1])):
        np.testing.assert_allclose(part[:, own], wanted[:, own], rtol=1e-8, atol=1e-9)
    assert bool(smoothed) == (name in {"framing", "impressions"})
    for at in smoothed:
        assert np.ptp(found.draws.log_bf[:, at]) > 0


def constant(study: StudyFile, run: StudyRun) -> list[int]:
    """The tables and shares with a group in which everybody gave the same answer."""
    tests = {(finding.sub_study, finding.id, test.id): test for finding, test in study.tests}
    places = units_of(run.responses).of_rows(run.data)
    found = []
    for at, score in enumerate(run.scores):
        test = tests[score.test.sub_study, score.test.finding, score.test.test]
        rows = test_rows(test, run.data, places)
        each = [np.unique(rows.values[rows.groups == level]).size for level in range(rows.levels)]
        if test.kind in {"contingency", "binomial", "proportion"} and 1 in each:
            found.append(at)
    return found


@pytest.mark.parametrize("kind", ["contingency", "binomial"])
def test_answers_that_are_all_the_same_still_vary_when_drawn_again(kind: str) -> None:
    """20 of 20 is not a certainty: draws are about the share that such answers leave open, after Jeffreys' prior."""
    rows = TestRows(
        kind=kind, units=np.arange(20), groups=np.zeros(20, dtype=int) if kind == "binomial" else np.arange(20) % 2,
        levels=1 if kind == "binomial" else 2, values=np.ones(20),
    )  # fmt: skip
    rng = np.random.default_rng(3)
    weights = np.concatenate(list(multiplicities(rows.groups, rng=rng, replicates=20_000)))
    found = replicate_test(rows, weights, method="independent_multinomial", rng=rng)
    if kind == "binomial":
        assert found.statistic.mean() == pytest.approx(20 * 20.5 / 21, abs=0.02)
        expected = stats.betabinom(20, 20.5, 0.5)
        assert (found.statistic == 20).mean() == pytest.approx(expected.pmf(20), abs=0.01)
    else:
        assert np.ptp(found.d) > 0
        assert found.d.mean() == pytest.approx(0, abs=0.02)
        assert (np.quantile(found.d, 0.025) < 0) & (np.quantile(found.d, 0.975) > 0)
    once = replicate_test(rows, weights[:5], method="independent_multinomial")
    assert np.ptp(once.log_bf) == 0, "without a generator nothing is smoothed"


@pytest.mark.parametrize("name", SHIPPED)
def test_drawing_everybody_once_gives_the_scores_themselves(name: str) -> None:
    study = shipped(name)
    run = a_run(study, with_holes(answer_copy(study), 4), min_coverage=0.0)
    units = units_of(run.responses)
    places, once = units.of_rows(run.data), np.ones((1, len(units.strata)))
    tests = {(finding.sub_study, finding.id, test.id): test for finding, test in study.tests}
    for score in run.scores:
        test = tests[score.test.sub_study, score.test.finding, score.test.test]
        if test.by is not None and test.kind in COUNTED:  # persons count in shares: the statistic itself is drawn
            continue
        rows = test_rows(test, run.data, places)
        found = replicate_test(rows, once, method=score.method)
        exact = score.method != "exact_null"
        assert found.d[0] == pytest.approx(score.agent.d, rel=1e-9, nan_ok=True)
        assert not exact or found.log_bf[0] == pytest.approx(score.agent.log_bf, rel=1e-8, abs=1e-9)


GROUPED = {"column": "g", "levels": ["a", "b"]}
THREE = {"column": "g", "levels": ["a", "b", "c"]}
KIND_TESTS: dict[str, dict[str, Any]] = {
    "ttest_ind": {"groups": GROUPED},
    "welch": {"groups": GROUPED},
    "ttest_paired": {"against": "y"},
    "ttest_one": {"against": 2.0},
    "anova": {"groups": GROUPED},
    "anova of three": {"groups": THREE},
    "anova without sizes": {"groups": GROUPED},
    "correlation": {"against": "y"},
    "spearman": {"against": "y", "groups": {"column": "g", "levels": ["a", "c"]}},
    "contingency": {"groups": GROUPED, "measure": "yes"},
    "contingency r×c": {"groups": THREE, "measure": "word", "outcomes": ["u", "v", "w"]},
    "binomial": {"measure": "yes", "p0": 0.4},
    "proportion": {"measure": "yes", "groups": {"column": "g", "levels": ["a"]}},
    "mannwhitney": {"groups": GROUPED},
    "wilcoxon": {"against": "y"},
    "variance_ratio": {"groups": GROUPED},
}  # fmt: skip
METHODS = {
    "anova": "jzs",
    "anova of three": "jzs",
    "anova without sizes": "pearson",
    "mannwhitney": "asymptotic",
    "contingency": "independent_multinomial",
    "contingency r×c": "independent_multinomial",
    "wilcoxon": "z",
}


def rows_with_holes(n: int, rng: np.random.Generator) -> dict[str, list[Any]]:
    """Ties, missing values, words where numbers should be, and a value that is no outcome."""

    def holey(values: Iterable[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    return {
        "g": holey("abc"[at % 3] for at in range(n)),
        "x": ["much", *holey(float(value) for value in rng.integers(0, 6, n - 1))],
        "y": holey(int(value) for value in rng.integers(0, 6, n)),
        "yes": holey(bool(value) for value in rng.integers(0, 2, n)),
        "word": holey("uvwz"[value] for value in rng.integers(0, 4, n)),
    }


@pytest.mark.parametrize("n", [9, 60])
@pytest.mark.parametrize("what", KIND_TESTS)
def test_every_kind_is_what_the_agents_side_gives(what: str, n: int) -> None:
    """Also where few are drawn, and a draw has no statistic."""
    rng = np.random.default_rng(n)
    kind, method = what.partition(" ")[0], METHODS.get(what, "default")
    test = Test.model_validate(
        {"id": "T", "kind": kind, "measure": "x", "expect": "different", "human": {}, **KIND_TESTS[what]}
    )
    data = rows_with_holes(n, rng)
    weights = np.concatenate(list(multiplicities(np.zeros(n, dtype=int), rng=rng, replicates=80)))
    found = replicate_test(test_rows(test, data, np.arange(n)), weights, method=method)
    there = 0
    for at, times in enumerate(weights):
        side = agent_side(test, copied_rows(data, np.arange(n), times))
        one = measure(kind, side, method=method)
        there += side.missing is None
        expected = (one.effect if np.isnan(side.statistic) else side.statistic, one.log_bf, one.d)
        np.testing.assert_allclose(
            (found.statistic[at], found.log_bf[at], found.d[at]), expected, rtol=1e-8, atol=1e-9, err_msg=str(side)
        )
    assert there > 40 or n < 10


def test_everybody_is_drawn_within_the_arms_they_were_asked_in() -> None:
    study = shipped("beauty_contest")
    responses = answer_copy(study)
    units = units_of(responses)
    arms = {one.group: one.arm for one in responses}
    assert len(units.strata) == len(arms) == len(units.groups)
    assert units.grouped.all()
    for one in responses:
        assert units.participants[one.participant] == units.groups[one.arm, str(one.group)]
    weights = the_weights(responses, 1, 40)
    for arm in set(arms.values()):
        own = [unit for (where, _), unit in units.groups.items() if where == arm]
        assert (weights[:, own].sum(axis=1) == len(own)).all()


def test_rows_of_a_group_follow_it_and_rows_of_nobody_are_nobodys() -> None:
    responses = [Response(participant=f"p{at}", arm="ab"[at // 4], group=f"g{at // 2 % 2}", round=1) for at in range(8)]
    units = units_of(responses)
    assert len(units.strata) == 4
    data = {
        "participant": ["p0", "p1", None, None, None, "nobody", 7],
        "arm": ["a", "a", "a", "b", None, "a", "a"],
        "group_id": ["g0", "g0", "g1", "g1", "g1", "g0", None],
    }
    places = units.of_rows(data)
    assert places[0] == places[1] == units.groups["a", "g0"]
    assert places[2:4].tolist() == [units.groups["a", "g1"], units.groups["b", "g1"]]
    assert places[4:].tolist() == [-1, -1, -1]  # both arms have a g1


def test_a_participant_of_several_arms_is_one_unit() -> None:
    responses = [Response(participant=f"p{at}", arm=arm) for arm in "ab" for at in range(3)]
    units = units_of([*responses, Response(participant="q", arm="a")])
    assert (len(units.strata), units.sizes.tolist()) == (4, [1, 3])


def test_conditions_share_their_draw_and_identical_ones_differ_by_nothing(tmp_path: Path) -> None:
    study = shipped("framing")
    responses = answer_copy(study)
    run = a_run(study, responses)
    one, two = study_draws(study, [run, run], rng=np.random.default_rng(2), replicates=50)
    agreement = score_tests([score.test for score in run.scores])
    draws = {"first_draws": one.draws, "second_draws": two.draws}
    for found in (
        differences(agreement, agreement, **draws)[0],
        differences(agreement, agreement, **draws)[1],
    ):
        assert (found.value, found.se, found.low, found.high) == (0.0, 0.0, 0.0, 0.0)
        assert "paired by draw over participants" in found.method


def test_a_condition_without_some_participants_keeps_the_draw_of_the_others() -> None:
    study = shipped("alcohol_norms")
    every = answer_copy(study)
    fewer = every[5:]
    runs = [a_run(study, every), a_run(study, fewer)]
    both = study_draws(study, runs, rng=np.random.default_rng(2), replicates=10)
    alone = study_draws(study, runs[:1], rng=np.random.default_rng(2), replicates=10)
    np.testing.assert_array_equal(both[0].draws.log_bf, alone[0].draws.log_bf)
    weights = the_weights(every, 2, 10)
    units = units_of(every)
    kept = one_by_one(study, runs[1], weights[:, [units.participants[one.participant] for one in fewer]])
    order = [units_of(fewer).participants[one.participant] for one in fewer]
    assert order == sorted(order)
    np.testing.assert_allclose(both[1].draws.log_bf, kept[:, 0], rtol=1e-9)


@pytest.mark.slow
def test_a_paired_difference_is_narrower_than_one_drawn_apart() -> None:
    """An agent that answers as another one but for a few participants."""
    study = shipped("false_consensus")
    first = answer_copy(study)
    second = [
        replace(one, values={**one.values, **{k: v + 1 for k, v in one.values.items() if k.endswith("percent")}})
        if at % 3
        else one
        for at, one in enumerate(first)
    ]
    runs = [a_run(study, first), a_run(study, second)]
    agreements = [score_tests([score.test for score in run.scores]) for run in runs]
    one, two = study_draws(study, runs, rng=np.random.default_rng(2), replicates=300)
    [other] = study_draws(study, runs[1:], rng=np.random.default_rng(3), replicates=300)
    together = differences(*agreements, first_draws=one.draws, second_draws=two.draws)[0]
    apart = differences(*agreements, first_draws=one.draws, second_draws=other.draws, paired=False)[0]
    assert together.se < 0.5 * apart.se


@pytest.mark.parametrize(
    ("derive", "reason"),
    [
        (
            "derive: SELECT arm, x FROM responses",
            "`derive` gives no column `participant`, so rows cannot be matched to participants",
        ),
        (
            "derive: SELECT NULL AS participant, arm, x FROM responses",
            "some rows of `data` name neither a participant nor a group that was asked",
        ),
    ],
)
def test_rows_of_nobody_are_drawn_by_their_statistic_and_say_so(tmp_path: Path, derive: str, reason: str) -> None:
    study = tiny(tmp_path, derive)
    run = a_run(study, answers())
    [found] = study_draws(study, [run], rng=np.random.default_rng(2), replicates=200)
    assert found.reasons == {0: reason}
    assert found.draws.drawn == ("statistic",)
    assert np.isfinite(found.draws.log_bf).all()
    spread = score_uncertainty(
        score_tests([run.scores[0].test]), rng=np.random.default_rng(1), draws=join_draws([found.draws])
    )
    assert spread.pas["benchmark", ""].se > 0


def test_arms_of_very_few_are_not_drawn_within(tmp_path: Path) -> None:
    study = tiny(tmp_path)
    [found] = study_draws(study, [a_run(study, answers(4))], rng=np.random.default_rng(2), replicates=20)
    assert found.reasons == {0: "8 participants in 2 arms: too few in each to resample them"}
    grouped = [replace(one, group="g", round=1) for one in answers(6)]
    [found] = study_draws(study, [a_run(study, grouped)], rng=np.random.default_rng(2), replicates=20)
    assert found.reasons == {0: "an arm has a single group: there is no other to draw"}


def test_a_finding_without_a_score_has_no_replicates(tmp_path: Path) -> None:
    study = tiny(tmp_path)
    silent = [replace(one, values={}) if int(one.participant[2:]) > 4 else one for one in answers()]
    run = a_run(study, silent)
    assert "coverage" in (run.scores[0].test.agent.missing or "")
    [found] = study_draws(study, [run], rng=np.random.default_rng(2), replicates=20)
    assert np.isnan(found.draws.log_bf).all()
    assert np.isnan(found.draws.d).all()


def test_nobody_asked_gives_nothing(tmp_path: Path) -> None:
    study = tiny(tmp_path)
    [found] = study_draws(study, [a_run(study, [])], rng=np.random.default_rng(2), replicates=20)
    assert np.isnan(found.draws.log_bf).all()
    assert found.draws.log_bf.shape == (20, 1)
    assert study_draws(study, [], rng=np.random.default_rng(2)) == []


def doubled(columns: Any) -> dict[str, Any]:
    """A reducer: one row a participant, whatever their rows; their x twice as large."""
    at = {who: place for place, who in enumerate(columns["participant"])}
    return {
        name: [2 * column[i] if name == "x" else column[i] for i in at.values()] for name, column in columns.items()
    }


def failing(columns: Any) -> dict[str, Any]:
    raise BadOption("reducer", "cannot")


def test_a_reducer_runs_in_each_of_200_replicates(tmp_path: Path) -> None:
    """It only changes the unit, so the replicates are those without it; copies of a participant stay apart."""
    plain = tiny(tmp_path)
    study = replace(plain, reducer="some:code")
    run = a_run(plain, answers())
    [found] = study_draws(study, [run], rng=np.random.default_rng(2), reducer=doubled)
    [expected] = study_draws(plain, [run], rng=np.random.default_rng(2), replicates=200)
    assert found.draws.log_bf.shape == (200, 1)
    np.testing.assert_allclose(found.draws.log_bf, expected.draws.log_bf, rtol=1e-9)
    np.testing.assert_allclose(found.draws.d, expected.draws.d, rtol=1e-9)


def test_a_reducer_that_fails_on_a_draw_has_no_replicate_of_it(tmp_path: Path) -> None:
    study = replace(tiny(tmp_path), reducer="some:code")
    run = a_run(tiny(tmp_path), answers())
    [found] = study_draws(study, [run], rng=np.random.default_rng(2), reducer=failing)
    assert np.isnan(found.draws.log_bf).all()


def test_every_copy_of_a_row_is_somebody_of_its_own() -> None:
    data = {"participant": ["p", "p", None, "q"], "group_id": [None, None, "g", None], "x": [1, 2, 3, 4]}
    found = copied_rows(data, np.array([0, 0, 1, 2]), np.array([2.0, 3.0, 0.0]))
    assert found == {
        "participant": ["p", "p#1", "p", "p#1", None, None, None],
        "group_id": [None, None, None, None, "g", "g#1", "g#2"],
        "x": [1, 1, 2, 2, 3, 3, 3],
    }


def test_one_seed_gives_one_result() -> None:
    study = shipped("trust")
    run = a_run(study, answer_copy(study))
    one, two = (study_draws(study, [run], rng=np.random.default_rng(7), replicates=30)[0] for _ in range(2))
    np.testing.assert_array_equal(one.draws.log_bf, two.draws.log_bf)
    assert len(one.reasons) == 5
    assert set(one.draws.drawn) == {"participants", "statistic"}
