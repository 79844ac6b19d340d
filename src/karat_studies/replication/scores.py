"""From tests to findings, studies, domains and the benchmark: PAS and ECS, and auxiliary numbers.

The main numbers are PAS and ECS; `normalized` and `ecs_strict` are auxiliary. Missing
values stay missing: they are counted with each mean, and are never 0 or one half.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from karat_studies.replication._inputs import check_level
from karat_studies.replication.agreement import (
    DirectionalPosterior,
    directional_posterior,
    documented_fallbacks,
    pas,
    pas_ceiling,
    pas_directional,
    pas_normalized,
    pool_pas,
    pool_scores,
    posterior,
)
from karat_studies.replication.consistency import (
    Caricature,
    Concordance,
    EcsInterval,
    caricature,
    ecs_interval,
    ecs_strict,
    weighted_ccc,
    weights_by_study,
)
from karat_studies.replication.effects import CONVENTIONS, z_diff
from karat_studies.replication.evidence import Measured, Side, common_method, d_by, measure

NAN = float("nan")
OPPOSED = 0.5  # effects are opposed if counting direction lowers PAS by more than this
DECISIVE = 7.0  # ln BF, more than 1,000 to 1
LOW_COVERAGE = 0.8  # a finding below this is flagged
MIN_COVERAGE = 0.5  # … and below this it is not scored


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyTest:
    """One test of one finding, on both sides."""

    study: str
    finding: str
    test: str
    kind: str  # one of effects.KINDS
    human: Side
    agent: Side
    sub_study: str = ""  # finding ids may repeat in the parts of a study: all three form the id
    domain: str = ""  # cognition, strategic, social; "": not given
    prior_odds_human: float = 1.0
    prior_odds_agent: float = 1.0
    # lowest share over its arms of the agent's participants with readable answers
    coverage: float = NAN

    @property
    def finding_id(self) -> tuple[str, str, str]:
        """(study, sub-study, finding)."""
        return self.study, self.sub_study, self.finding


@dataclass(frozen=True, kw_only=True, slots=True)
class TestScore:
    """Agreement in one test. NaN: unknown, and `reasons` explain why."""

    __test__ = False  # not a test class, despite the name

    test: StudyTest
    method: str
    human: Measured
    agent: Measured
    pi_human: float
    pi_agent: float
    states_human: DirectionalPosterior
    states_agent: DirectionalPosterior
    pas: float
    ceiling: float
    pas_directional: float
    ceiling_directional: float
    normalized: float
    z_diff: float
    ecs_test: float
    same_direction: bool | None  # None: a side has no direction

    @property
    def opposed(self) -> bool:
        """Both sides show an effect, in opposite directions: PAS alone would hide it."""
        return self.same_direction is False and self.pas - self.pas_directional > OPPOSED

    @property
    def decisive(self) -> bool:
        """The evidence for an effect is more than 1,000 to 1 on both sides."""
        return min(self.human.log_bf, self.agent.log_bf) >= DECISIVE


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """The common fields of findings, studies, domains and the benchmark."""

    pas: float
    pas_directional: float
    normalized: float  # auxiliary
    ecs_strict: float  # auxiliary, as published
    ecs_strict_chi2: float  # auxiliary, the valid form
    tests_used: int  # with a PAS
    tests_planned: int
    tests_directed: int  # with a direction on both sides
    tests_agreeing: int  # with the same one


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingScore(Scored):
    """Agreement in one finding, pooled over its tests."""

    id: tuple[str, str, str]
    opposed: bool  # one of its tests has opposite effects, with a probability above one half
    coverage: float = NAN  # the lowest of its tests; NaN: not reported

    @property
    def flagged(self) -> bool:
        """Too many answers could not be read: the number may reflect only those who answered."""
        return self.coverage < LOW_COVERAGE


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyScore(Scored):
    """Agreement in a study, a domain, or the benchmark: means of the scores below it."""

    name: str
    domain: str = ""
    ecs: Concordance
    used: int  # findings of a study, studies of a domain and of the benchmark
    planned: int
    tests_with_effects: int


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherConvention:
    """The same effects as Cohen's d by the other convention."""

    convention: str
    effects: tuple[tuple[float, float], ...]  # d of people and of the agent, test by test
    ecs: Concordance  # overall
    differs: int  # tests with a different d on either side


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """Every number of one agent under one condition."""

    tests: tuple[TestScore, ...]
    findings: tuple[FindingScore, ...]
    studies: tuple[StudyScore, ...]
    domains: tuple[StudyScore, ...]
    benchmark: StudyScore
    ecs_interval: EcsInterval
    caricature: Caricature
    convention: str
    other: OtherConvention
    min_coverage: float = MIN_COVERAGE
    level: float = 0.95  # of every interval
    # findings with effects in opposite directions
    opposed: tuple[tuple[str, str, str], ...] = field(default=())


@lru_cache(maxsize=4_096)  # a test is scored alone, in its study, and with all studies
def score_test(
    test: StudyTest,
    *,
    convention: str = "humanstudy",
    fallbacks: str | None = None,
    level: float = 0.95,
) -> TestScore:
    """Both sides measured with one method, and their agreement; `level` is that of the effects'
    intervals.
    """
    method = common_method(test.kind, test.human, test.agent)
    human = measure(test.kind, test.human, method=method, convention=convention, level=level)
    agent = measure(test.kind, test.agent, method=method, convention=convention, level=level)
    pi_human = float(posterior(human.log_bf, test.prior_odds_human))
    pi_agent = float(posterior(agent.log_bf, test.prior_odds_agent))
    states_human = _states(human, test.prior_odds_human)
    states_agent = _states(agent, test.prior_odds_agent)
    raw = float(pas(pi_human, pi_agent))
    apart = float(z_diff(human.d, human.d_se, agent.d, agent.d_se))
    directed = human.sign * agent.sign
    if directed in {-1.0, 1.0}:
        same_direction = bool(directed > 0)
    else:
        same_direction = None

    return TestScore(
        test=test,
        method=method,
        human=human,
        agent=agent,
        pi_human=pi_human,
        pi_agent=pi_agent,
        states_human=states_human,
        states_agent=states_agent,
        pas=raw,
        ceiling=float(pas_ceiling(pi_human)),
        pas_directional=float(pas_directional(states_human, states_agent)),
        ceiling_directional=float(states_human.ceiling),
        normalized=float(pas_normalized(raw, pi_human, fallbacks=fallbacks)),
        z_diff=apart,
        ecs_test=ecs_strict([apart]),
        same_direction=same_direction,
    )


def _states(side: Measured, odds: float) -> DirectionalPosterior:
    if math.isnan(side.log_bf_greater):
        return directional_posterior(side.log_bf, sign=side.sign, prior_odds=odds)
    return directional_posterior(
        side.log_bf,
        side.log_bf_greater,
        side.log_bf_less,
        prior_odds=odds,
        mass_above=side.mass_above,
    )


def score_tests(
    tests: Iterable[StudyTest],
    *,
    convention: str = "humanstudy",
    fallbacks: str | None = None,
    min_coverage: float = MIN_COVERAGE,
    level: float = 0.95,
) -> Agreement:
    """Tests to findings (pooled), findings to studies, studies to domains and the benchmark (plain
    means).

    Domain and benchmark are means over studies: how likely the agent is to reproduce a random
    finding of a random study. ECS is computed over tests with both effects.
    `fallbacks="documented"` gives the values of the published method if something is missing.
    A finding with a coverage below `min_coverage` is not scored: its tests are measured without the
    agent. `level` applies to every interval, also those computed from the result. Raises ValueError
    if it is not between 0 and 1.
    """
    check_level(level)
    tests = tuple(tests)
    lowest: dict[tuple[str, str, str], float] = {}
    for test in tests:
        if not math.isnan(test.coverage):
            lowest[test.finding_id] = min(test.coverage, lowest.get(test.finding_id, 1.0))

    # Without the agent's numbers if too few of a finding's answers could be read
    kept = []
    for test in tests:
        coverage = lowest.get(test.finding_id, 1.0)
        if coverage < min_coverage:
            missing = f"coverage {round(coverage, 3):g}, below {min_coverage:g}: not scored"
            kept.append(replace(test, agent=Side(missing=missing)))
        else:
            kept.append(test)

    scored = tuple(
        score_test(test, convention=convention, fallbacks=fallbacks, level=level) for test in kept
    )
    findings = tuple(
        _finding(key, [score for score in scored if score.test.finding_id == key], fallbacks)
        for key in dict.fromkeys(score.test.finding_id for score in scored)
    )
    studies = []
    for name in dict.fromkeys(score.test.study for score in scored):
        members = [score for score in scored if score.test.study == name]
        within = [finding for finding in findings if finding.id[0] == name]
        studies.append(
            _level(name, members, within, domain=members[0].test.domain, fallbacks=fallbacks)
        )

    domains = []
    for name in dict.fromkeys(study.domain for study in studies if study.domain):
        members = [score for score in scored if score.test.domain == name]
        below = [study for study in studies if study.domain == name]
        domains.append(_level(name, members, below, domain=name, fallbacks=fallbacks))

    human, agent = effects_of(scored)
    names = [score.test.study for score in scored]
    ids = [score.test.finding_id for score in scored]
    weights = test_weights(scored, np.isfinite(human) & np.isfinite(agent))
    return Agreement(
        tests=scored,
        findings=findings,
        studies=tuple(studies),
        domains=tuple(domains),
        benchmark=_level("benchmark", scored, studies, domain="", fallbacks=fallbacks),
        ecs_interval=ecs_interval(human, agent, names, ids, level=level),
        caricature=caricature(human, agent, weights, level=level),
        convention=convention,
        other=_other(scored, convention, weights),
        min_coverage=min_coverage,
        level=level,
        opposed=tuple(finding.id for finding in findings if finding.opposed),
    )


def _other(scored: Sequence[TestScore], convention: str, weights: np.ndarray) -> OtherConvention:
    other = next(name for name in CONVENTIONS if name != convention)
    pairs = []
    for one in scored:
        pairs.append(
            (
                d_by(other, one.test.kind, one.test.human, one.human),
                d_by(other, one.test.kind, one.test.agent, one.agent),
            )
        )

    changed = [
        not np.array_equal((score.human.d, score.agent.d), pair, equal_nan=True)
        for score, pair in zip(scored, pairs, strict=True)
    ]
    human_d = np.array([pair[0] for pair in pairs])
    agent_d = np.array([pair[1] for pair in pairs])
    return OtherConvention(
        convention=other,
        effects=tuple(pairs),
        ecs=weighted_ccc(human_d, agent_d, weights),
        differs=sum(changed),
    )


def _finding(
    key: tuple[str, str, str], scores: Sequence[TestScore], fallbacks: str | None
) -> FindingScore:
    weights = [score.human.n_eff for score in scores]
    normalized = pool_scores(np.array([score.normalized for score in scores]), weights)
    if math.isnan(normalized) and documented_fallbacks(fallbacks):
        normalized = 0.0
    return FindingScore(
        id=key,
        pas=pool_pas([score.pas for score in scores], weights, fallbacks=fallbacks),
        pas_directional=pool_pas([score.pas_directional for score in scores], weights),
        normalized=normalized,
        ecs_strict=ecs_strict([score.z_diff for score in scores]),
        ecs_strict_chi2=ecs_strict([score.z_diff for score in scores], method="chi2"),
        coverage=min(
            (coverage for score in scores if not math.isnan(coverage := score.test.coverage)),
            default=NAN,
        ),
        opposed=any(score.opposed for score in scores),
        **_counted(scores),
    )


def _counted(scores: Sequence[TestScore]) -> dict[str, int]:
    return {
        "tests_used": sum(not math.isnan(score.pas) for score in scores),
        "tests_planned": len(scores),
        "tests_directed": sum(score.same_direction is not None for score in scores),
        "tests_agreeing": sum(score.same_direction is True for score in scores),
    }


def _level(
    name: str,
    scores: Sequence[TestScore],
    below: Sequence[Scored],
    *,
    domain: str,
    fallbacks: str | None,
) -> StudyScore:
    human, agent = effects_of(scores)
    valid = np.isfinite(human) & np.isfinite(agent)
    ecs = weighted_ccc(human, agent, test_weights(scores, valid))
    documented = documented_fallbacks(fallbacks)
    if documented and math.isnan(ecs.value):
        ecs = replace(ecs, value=0.0)
    return StudyScore(
        name=name,
        domain=domain,
        pas=known_mean([part.pas for part in below], 0.5 if documented else NAN),
        pas_directional=known_mean([part.pas_directional for part in below]),
        normalized=known_mean([part.normalized for part in below], 0.0 if documented else NAN),
        ecs_strict=known_mean([part.ecs_strict for part in below], 0.0 if documented else NAN),
        ecs_strict_chi2=known_mean(
            [part.ecs_strict_chi2 for part in below], 0.0 if documented else NAN
        ),
        ecs=ecs,
        used=sum(not math.isnan(part.pas) for part in below),
        planned=len(below),
        tests_with_effects=int(valid.sum()),
        **_counted(scores),
    )


def effects_of(scores: Sequence[TestScore]) -> tuple[np.ndarray, np.ndarray]:
    """Cohen's d of people, and of the agent: one each per test, NaN where unknown."""
    return np.array([score.human.d for score in scores]), np.array(
        [score.agent.d for score in scores]
    )


def test_weights(scores: Sequence[TestScore], valid: np.ndarray) -> np.ndarray:
    """The weight of each test in the ECS of these. `valid`: those that count."""
    names = [score.test.study for score in scores]
    ids = [score.test.finding_id for score in scores]
    return weights_by_study(names, ids, valid)


test_weights.__test__ = False  # type: ignore[attr-defined]  # not a test, despite the name


def known_mean(values: Iterable[float], empty: float = NAN) -> float:
    """Of the known values; `empty` without any."""
    kept = [value for value in values if not math.isnan(value)]
    if kept:
        return math.fsum(kept) / len(kept)
    return empty
