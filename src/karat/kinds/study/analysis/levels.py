"""Studies, domains and the benchmark under one condition: means over repetitions, and each of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from karat.analysis.numbers import Estimate, Quantity
from karat.kinds.study.analysis.model import Caricature, Concordance, FindingResult, LevelScore, Repeated
from karat.kinds.study.analysis.tests import estimated, known, lowest, mean, sd, unscored

if TYPE_CHECKING:
    from karat.replication import Agreement, EcsInterval, Repetitions, StudyScore
    from karat.replication import Caricature as Line

__all__ = ["Condition", "level_score", "line_of", "quantity"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One condition: an agreement for each repetition, what is known of their means, and its findings."""

    agreements: Sequence[Agreement]
    sure: Repetitions
    findings: Sequence[FindingResult]
    domains: dict[str, str]  # study → domain

    def scores(self, level: str, name: str) -> list[StudyScore]:
        """A level in every repetition."""
        if level == "benchmark":
            return [one.benchmark for one in self.agreements]
        listed = [one.studies if level == "study" else one.domains for one in self.agreements]
        return [next(one for one in own if one.name == name) for own in listed]

    def below(self, level: str, name: str) -> list[FindingResult]:
        """The findings of a level."""
        if level == "benchmark":
            return list(self.findings)
        if level == "study":
            return [one for one in self.findings if one.study == name]
        return [one for one in self.findings if self.domains[one.study] == name]


def level_score(condition: Condition, level: str, name: str) -> LevelScore:
    """A study, a domain, or (with an empty name) the benchmark."""
    key = (level, name)
    scores, below = condition.scores(level, name), condition.below(level, name)
    parts = _parts(below) if level != "study" else [[one] for one in below]
    used = [part for part in parts if any(one.pas.value is not None for one in part)]
    pas = mean(one.pas for one in scores)
    reason = None if pas is not None else unscored(one.reason for one in below)
    tests = sum(one.tests_used for one in below)
    effects = max((one.tests_with_effects for one in scores), default=0)
    return LevelScore(
        level=level,
        name=name,
        pas=estimated(
            condition.sure.pas.get(key), value=pas, n=tests, reason=reason, level=condition.agreements[0].level
        ),
        ceiling=_ceiling(used),
        pas_directional=mean(one.pas_directional for one in scores),
        normalized=mean(one.normalized for one in scores),
        ecs=_ecs(condition, key, scores, effects),
        ecs_ceiling=_ecs_ceiling(condition, level, name),
        ecs_new=_for_new_studies(condition.sure.ecs_new) if level == "benchmark" else None,
        concordance=_concordance(scores),
        ecs_strict=mean(one.ecs_strict for one in scores),
        ecs_strict_chi2=mean(one.ecs_strict_chi2 for one in scores),
        used=len(used),
        planned=len(parts),
        findings_used=sum(one.pas.value is not None for one in below),
        findings_planned=len(below),
        tests_used=tests,
        tests_planned=sum(one.tests_planned for one in below),
        tests_with_effects=effects,
        tests_directed=sum(one.tests_directed for one in below),
        tests_agreeing=sum(one.tests_agreeing for one in below),
        coverage=lowest(one.coverage for one in below),
        reason=reason,
        repetitions=_repeated(condition, key, scores, below),
        pas_sd=sd(one.pas for one in scores),
        ecs_sd=sd(one.ecs.value for one in scores),
    )


def _parts(findings: Sequence[FindingResult]) -> list[list[FindingResult]]:
    """The findings, study by study."""
    found: dict[str, list[FindingResult]] = {}
    for one in findings:
        found.setdefault(one.study, []).append(one)
    return list(found.values())


def _ceiling(parts: Sequence[Sequence[FindingResult]]) -> float | None:
    """The PAS of a perfect copy, by the same means over the same findings."""
    return mean(mean(one.ceiling for one in part if one.pas.value is not None) for part in parts)


def _ecs_ceiling(condition: Condition, level: str, name: str) -> float | None:
    if level == "benchmark":
        return known(condition.sure.noise_ceiling)
    return known(condition.sure.ecs_ceiling.get(name, math.nan)) if level == "study" else None


def _ecs(condition: Condition, key: tuple[str, str], scores: Sequence[StudyScore], n: int) -> Estimate:
    spread = condition.sure.ecs_fixed.get(key)
    value = mean(one.ecs.value for one in scores)
    reason = next((one.ecs.reason for one in scores if math.isnan(one.ecs.value)), None)
    return estimated(spread, value=value, n=n, reason=reason, level=condition.agreements[0].level)


def _for_new_studies(found: EcsInterval) -> Estimate:
    return Estimate(
        value=known(found.value),
        low=known(found.low),
        high=known(found.high),
        se=None,  # it is one of atanh
        n=found.n,
        level=found.level,
        method=found.method,
        reason=found.reason,
    )


def _concordance(scores: Sequence[StudyScore]) -> Concordance:
    return Concordance(
        pearson=mean(one.ecs.pearson for one in scores),
        bias=mean(one.ecs.bias for one in scores),
        location_shift=mean(one.ecs.location_shift for one in scores),
        scale_shift=mean(one.ecs.scale_shift for one in scores),
    )


def _repeated(
    condition: Condition, key: tuple[str, str], scores: Sequence[StudyScore], below: Sequence[FindingResult]
) -> tuple[Repeated, ...]:
    found = []
    for number, (one, told) in enumerate(zip(scores, condition.sure.each, strict=True)):
        spread = told.pas.get(key)
        found.append(
            Repeated(
                repetition=number,
                pas=known(one.pas),
                pas_se=known(spread.se) if spread is not None else None,
                pas_directional=known(one.pas_directional),
                ecs=known(one.ecs.value),
                tests_used=one.tests_used,
                coverage=lowest(finding.repetitions[number].coverage for finding in below),
            )
        )
    return tuple(found)


def quantity(value: float | None, reason: str) -> Quantity:
    """The number, or why there is none."""
    value = known(value)
    return Quantity(value=value, reason=reason if value is None else None)


def line_of(found: Line) -> Caricature:
    """The slope of agent on human effects, as the summary has it."""
    return Caricature(
        slope=known(found.slope),
        intercept=known(found.intercept),
        low=known(found.low),
        high=known(found.high),
        centre=known(found.centre),
        centre_agent=known(found.centre_agent),
        n=found.n,
        reason=found.reason,
    )
