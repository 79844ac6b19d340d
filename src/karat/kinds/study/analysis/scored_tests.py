"""A table of tests, people beside an agent, in the shape that a run over human studies has.

What a table does not tell is not known: nobody was asked, and nothing says what it cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from karat.kinds.study.analysis.levels import Condition, level_score, line_of, quantity
from karat.kinds.study.analysis.model import (
    FindingResult,
    Participants,
    StudyCondition,
    StudyInfo,
    StudyResult,
    StudySummary,
    StudyUsage,
)
from karat.kinds.study.analysis.tests import finding_result
from karat.replication import Repetitions

if TYPE_CHECKING:
    from karat.replication import Agreement, Uncertainty

__all__ = ["summary_of_tests"]

NOBODY = Participants(planned=0, asked=0, answered=0, parsed=0, stopped=0)
NOTHING = StudyUsage(
    calls=0, input_tokens=None, output_tokens=None, tokens_unknown=0, dollars=None, dollars_unknown=0
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Human:
    reported: str | None = None


@dataclass(frozen=True, slots=True)
class _Test:
    """What a study file declares of a test, as far as a table says it."""

    id: str
    kind: str
    expect: str = ""
    human: _Human = _Human()


@dataclass(frozen=True, slots=True)
class _Finding:
    sub_study: str
    id: str
    tests: Sequence[_Test]
    claim: str = ""


def summary_of_tests(scored: Mapping[str, tuple[Agreement, Uncertainty]]) -> StudySummary:
    """Every condition of a table, in one repetition. Raises ValueError for a table without conditions."""
    if not scored:
        raise ValueError("a table of tests needs a condition")
    scored = {name: (_distinct(one), sure) for name, (one, sure) in scored.items()}
    first, sure = next(iter(scored.values()))
    studies = {test.test.study: test.test.domain for one, _ in scored.values() for test in one.tests}
    return StudySummary(
        scorer="", scoring="", level=first.level, convention=first.convention, convention_other=first.other.convention,
        repetitions=1, replicates=sure.replicates, drawn="statistics",
        studies=tuple(_info(name, domain, first.min_coverage) for name, domain in studies.items()),
        conditions=tuple(_condition(name, *both) for name, both in scored.items()),
        differences=(), warnings=(),
    )  # fmt: skip


def _distinct(agreement: Agreement) -> Agreement:
    """With tests that are called alike numbered: a table need not name them well."""
    seen: dict[tuple[tuple[str, str, str], str], int] = {}
    tests = []
    for score in agreement.tests:
        key = score.test.finding_id, score.test.test
        again = seen[key] = seen.get(key, 0) + 1
        name = score.test.test if again == 1 else f"{score.test.test} ({again})"
        tests.append(replace(score, test=replace(score.test, test=name)))
    return replace(agreement, tests=tuple(tests))


def _info(name: str, domain: str, min_coverage: float) -> StudyInfo:
    return StudyInfo(
        study=name, title=name, source="", domain=domain, license=None, caveat=None, sha256="", wording=None,
        reorder=False, arms=(), arms_in_file=0, design="", min_coverage=min_coverage, reducer=None, reduced=False,
    )  # fmt: skip


def _condition(name: str, agreement: Agreement, sure: Uncertainty) -> StudyCondition:
    together = Repetitions(
        pas=sure.pas, ecs_fixed=sure.ecs_fixed, ecs_new=agreement.ecs_interval, noise_ceiling=sure.noise_ceiling,
        ecs_ceiling=sure.ecs_ceiling, each=(sure,),
    )  # fmt: skip
    findings = [_finding(one.id, agreement, sure) for one in agreement.findings]
    domains = {test.test.study: test.test.domain for test in agreement.tests}
    whole = Condition(agreements=[agreement], sure=together, findings=findings, domains=domains)
    return StudyCondition(
        condition=name,
        floor=False,
        participants=NOBODY,
        benchmark=level_score(whole, "benchmark", ""),
        domains=tuple(level_score(whole, "domain", one.name) for one in agreement.domains),
        studies=tuple(
            StudyResult(
                study=one.name, participants=NOBODY, arms=(), failures={}, not_run=0, usage=NOTHING,
                score=level_score(whole, "study", one.name),
                findings=tuple(finding for finding in findings if finding.study == one.name),
            )
            for one in agreement.studies
        ),
        noise_ceiling=quantity(sure.noise_ceiling, "too few tests have both standard errors"),
        caricature=line_of(agreement.caricature),
        ecs_other=quantity(agreement.other.ecs.value, "too few tests have an effect"),
    )  # fmt: skip


def _finding(key: tuple[str, str, str], agreement: Agreement, sure: Uncertainty) -> FindingResult:
    study, sub_study, name = key
    tests = [_Test(one.test.test, one.test.kind) for one in agreement.tests if one.test.finding_id == key]
    declared: Any = _Finding(sub_study, name, tests)
    return finding_result(declared, study, agreements=[agreement], sure=sure.pas.get(("finding", key)), each=[sure])
