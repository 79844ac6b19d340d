"""Tests, findings, studies, domains and the benchmark under one condition: means over repetitions,
and each of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from karat import formats
from karat.analysis.numbers import Estimate, Quantity, from_fields, known, mean
from karat_studies.kinds.study.analysis.model import (
    Caricature,
    Concordance,
    FindingResult,
    LevelScore,
    Participants,
    Repeated,
    SideNumbers,
    StudyCondition,
    StudyInfo,
    StudyResult,
    StudySummary,
    StudyUsage,
    TestResult,
    TestRow,
)
from karat_studies.replication import caricature, pas_interval_of_test, pool_pas
from karat_studies.replication.scores import test_weights

if TYPE_CHECKING:
    from karat_studies.kinds.study.format import Finding, Test
    from karat_studies.replication import (
        Agreement,
        Difference,
        FindingScore,
        Measured,
        Side,
        Spread,
        StudyScore,
        TestScore,
        Uncertainty,
    )


def means(scores: Iterable[object], *names: str) -> dict[str, float | None]:
    """The mean of each of these fields."""
    scores = list(scores)
    found = {}
    for name in names:
        found[name] = mean(getattr(score, name) for score in scores)
    return found


def sd(values: Iterable[float | None]) -> float | None:
    """With n − 1; None for fewer than two."""
    kept = [value for raw in values if (value := known(raw)) is not None]
    if len(kept) < 2:
        return None
    centre = math.fsum(kept) / len(kept)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in kept) / (len(kept) - 1))


def lowest(values: Iterable[float | None]) -> float | None:
    """Of the known values; None without any."""
    return min((value for raw in values if (value := known(raw)) is not None), default=None)


def estimated(
    spread: Spread | None,
    *,
    value: float | None,
    n: int,
    reason: str | None,
    level: float,
) -> Estimate:
    """A score with its claimed interval. `reason`: why there is none; `level`: of the interval."""
    value = known(value)
    if value is None or spread is None:
        return Estimate(
            value=value,
            low=None,
            high=None,
            se=None,
            n=n,
            level=level,
            method="none",
            reason=reason,
        )

    return from_fields(Estimate, spread, value=value, n=n, level=level)


def changed(gap: Difference, *, level: float) -> Estimate:
    """A difference in the summary's form. `level`: of its interval."""
    unknown = math.isnan(gap.value) or math.isnan(gap.low)
    return from_fields(Estimate, gap, level=level, reason=gap.method if unknown else None)


def unscored(reasons: Iterable[str | None]) -> str | None:
    """Why there is no score: each reason once, the most frequent first, and at most three."""
    counts: dict[str, int] = {}
    for joined in reasons:
        for reason in joined.split("; ") if joined else ():
            counts[reason] = counts.get(reason, 0) + 1

    # reasons about ECS do not apply to PAS
    counts = {
        reason: count for reason, count in counts.items() if not reason.endswith("not in ECS")
    } or counts
    ordered = sorted(counts, key=lambda why: -counts[why])
    if len(ordered) > 3:
        more = f"; and {formats.plural(len(ordered) - 3, 'more reason')}"
    else:
        more = ""

    if ordered:
        return "; ".join(ordered[:3]) + more
    return None


def finding_result(
    key: tuple[str, str, str],
    declared: Finding | None,
    *,
    agreements: Sequence[Agreement],
    sure: Spread | None,
    each: Sequence[Uncertainty],
) -> FindingResult:
    """`key`: study, sub-study and finding; `declared`: None for a table of tests; `sure`: for the
    mean over repetitions; `each`: for every repetition separately.
    """
    study, sub_study, name = key
    scores = []
    for agreement in agreements:
        scores.append(next(finding for finding in agreement.findings if finding.id == key))
    level = agreements[0].level
    if declared is not None:
        declarations = {test.id: test for test in declared.tests}
    else:
        declarations = {}
    tests = tuple(
        _test_result(
            declarations.get(score.test.test),
            [(one.tests[at], one.other.effects[at]) for one in agreements],
            level=level,
        )
        for at, score in enumerate(agreements[0].tests)
        if score.test.finding_id == key
    )
    pas = mean(score.pas for score in scores)
    used = [test for test in tests if test.pas.value is not None]
    if pas is not None:
        reason = None
    else:
        reason = unscored(test.reason for test in tests)

    # The PAS of a perfect copy, pooled over the tests for which the agent has a PAS
    ceilings = []
    for agreement in agreements:
        own = [score for score in agreement.tests if score.test.finding_id == key]
        own = [score for score in own if not math.isnan(score.pas)]
        ceilings.append(
            pool_pas([score.ceiling for score in own], [score.human.n_eff for score in own])
        )

    return FindingResult(
        study=study,
        sub_study=sub_study,
        id=name,
        claim=declared.claim if declared is not None else "",
        pas=estimated(sure, value=pas, n=len(used), reason=reason, level=level),
        ceiling=mean(ceilings),
        tests_used=len(used),
        tests_planned=len(tests),
        tests_directed=sum(test.same_direction is not None for test in used),
        tests_agreeing=sum(test.same_direction is True for test in used),
        reason=reason,
        repetitions=tuple(
            _repeated(at, score, uncertainty.pas.get(("finding", key)), ecs=None)
            for at, (score, uncertainty) in enumerate(zip(scores, each, strict=True))
        ),
        tests=tests,
        **means(scores, "pas_directional", "normalized", "ecs_strict", "ecs_strict_chi2"),
        coverage=lowest(score.coverage for score in scores),
        flagged=any(score.flagged for score in scores),
        opposed=any(score.opposed for score in scores),
        pas_sd=sd(score.pas for score in scores),
    )


def _repeated(
    number: int, score: FindingScore | StudyScore, spread: Spread | None, **own: float | None
) -> Repeated:
    """One repetition's score. `own`: what `score` does not have."""
    pas_se = None
    if spread is not None:
        pas_se = known(spread.se)
    return from_fields(Repeated, score, repetition=number, pas_se=pas_se, **own)


def _test_result(
    declared: Test | None, scores: Sequence[tuple[TestScore, tuple[float, float]]], *, level: float
) -> TestResult:
    """`scores`: by repetition, each with both effects by the other convention."""
    rows = []
    for number, (score, other) in enumerate(scores):
        human = _side(score.test.human, score.human, score.pi_human, other[0])
        agent = _side(score.test.agent, score.agent, score.pi_agent, other[1])
        value = known(score.pas)
        why = None
        interval = None
        if value is not None:
            interval = pas_interval_of_test(score, level=level)
        else:
            why = unscored([*score.human.reasons, *score.agent.reasons])

        why = why or "no Bayes factor"
        rows.append(
            from_fields(
                TestRow,
                score,
                score.test,
                repetition=number,
                human=human,
                agent=agent,
                pas=estimated(interval, value=value, n=1, reason=why, level=level),
            )
        )

    scored = [row for row in rows if row.pas.value is not None]
    directions = {row.same_direction for row in scored}
    alone = None
    if len(rows) == 1:
        alone = rows[0].pas
    value = mean(row.pas.value for row in rows)
    if value is not None:
        reason = None
    else:
        reason = unscored(row.pas.reason for row in rows)

    several = Estimate(
        value=value,
        low=None,
        high=None,
        se=None,
        n=len(scored),
        level=level,
        method=f"mean of {len(scored)} repetitions",
        reason=reason or "none is computed over repetitions",
    )
    test = scores[0][0].test
    return TestResult(
        id=test.test,
        kind=declared.kind if declared is not None else test.kind,
        expect=declared.expect if declared is not None else "",
        reported=declared.human.reported if declared is not None else None,
        pas=alone or several,
        **means(rows, "ceiling", "pas_directional", "z_diff"),
        d_human=mean(row.human.d for row in rows),
        d_agent=mean(row.agent.d for row in rows),
        same_direction=next(iter(directions)) if len(directions) == 1 else None,
        opposed=any(row.opposed for row in rows),
        decisive=any(row.opposed and row.decisive for row in rows),
        coverage=lowest(row.coverage for row in rows),
        reason=reason,
        repetitions=tuple(rows),
    )


def _side(side: Side, measured: Measured, pi: float, other: float) -> SideNumbers:
    beyond = ("the evidence is without bound",) if math.isinf(measured.log_bf) else ()
    return from_fields(
        SideNumbers,
        measured,
        side,
        pi=known(pi),
        effect_se=known(measured.se),
        d_other=known(other),
        reasons=(*measured.reasons, *beyond),
    )


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition: an agreement for each repetition, the uncertainty of their means, and its
    findings.
    """

    agreements: Sequence[Agreement]
    sure: Uncertainty
    findings: Sequence[FindingResult]
    domains: dict[str, str]  # study → domain

    def scores(self, level: str, name: str) -> list[StudyScore]:
        """A level in every repetition."""
        if level == "benchmark":
            return [agreement.benchmark for agreement in self.agreements]
        listed = [
            agreement.studies if level == "study" else agreement.domains
            for agreement in self.agreements
        ]
        found = []
        for own in listed:
            found.append(next(score for score in own if score.name == name))
        return found

    def below(self, level: str, name: str) -> list[FindingResult]:
        """The findings of a level."""
        if level == "benchmark":
            return list(self.findings)
        if level == "study":
            return [finding for finding in self.findings if finding.study == name]
        return [finding for finding in self.findings if self.domains[finding.study] == name]


def level_score(condition: Condition, level: str, name: str) -> LevelScore:
    """A study, a domain, or (with an empty name) the benchmark."""
    key = (level, name)
    scores = condition.scores(level, name)
    below = condition.below(level, name)
    by_study: dict[str, list[FindingResult]] = {}
    for finding in below:
        by_study.setdefault(finding.study, []).append(finding)
    if level == "study":
        parts = [[finding] for finding in below]
    else:
        parts = list(by_study.values())

    used = []
    for part in parts:
        if any(finding.pas.value is not None for finding in part):
            used.append(part)

    pas = mean(score.pas for score in scores)
    if pas is not None:
        reason = None
    else:
        reason = unscored(finding.reason for finding in below)

    tests = sum(finding.tests_used for finding in below)
    effects = max((score.tests_with_effects for score in scores), default=0)
    ceilings = {("study", study): ceiling for study, ceiling in condition.sure.ecs_ceiling.items()}
    ceilings["benchmark", ""] = condition.sure.noise_ceiling
    return LevelScore(
        level=level,
        name=name,
        pas=estimated(
            condition.sure.pas.get(key),
            value=pas,
            n=tests,
            reason=reason,
            level=condition.agreements[0].level,
        ),
        ceiling=mean(
            mean(finding.ceiling for finding in part if finding.pas.value is not None)
            for part in used
        ),
        **means(scores, "pas_directional", "normalized", "ecs_strict", "ecs_strict_chi2"),
        ecs=estimated(
            condition.sure.ecs_fixed.get(key),
            value=mean(score.ecs.value for score in scores),
            n=effects,
            reason=next((one.ecs.reason for one in scores if math.isnan(one.ecs.value)), None),
            level=condition.agreements[0].level,
        ),
        ecs_ceiling=known(ceilings.get(key)),
        # its known error is of atanh
        ecs_new=from_fields(Estimate, condition.sure.ecs_new, se=None)
        if level == "benchmark"
        else None,
        concordance=Concordance(
            **means((score.ecs for score in scores), *Concordance.__struct_fields__)
        ),
        used=len(used),
        planned=len(parts),
        findings_used=sum(finding.pas.value is not None for finding in below),
        findings_planned=len(below),
        tests_used=tests,
        tests_planned=sum(finding.tests_planned for finding in below),
        tests_with_effects=effects,
        tests_directed=sum(finding.tests_directed for finding in below),
        tests_agreeing=sum(finding.tests_agreeing for finding in below),
        coverage=lowest(finding.coverage for finding in below),
        reason=reason,
        repetitions=tuple(
            _repeated(
                at,
                score,
                uncertainty.pas.get(key),
                ecs=known(score.ecs.value),
                coverage=lowest(finding.repetitions[at].coverage for finding in below),
            )
            for at, (score, uncertainty) in enumerate(zip(scores, condition.sure.each, strict=True))
        ),
        pas_sd=sd(score.pas for score in scores),
        ecs_sd=sd(score.ecs.value for score in scores),
    )


def quantity(value: float | None, reason: str) -> Quantity:
    """The number, or why there is none."""
    value = known(value)
    return Quantity(value=value, reason=reason if value is None else None)


NOBODY = Participants(planned=0, asked=0, answered=0, parsed=0, stopped=0)


def _nothing_else(study: str) -> dict[str, Any]:
    """What is known of a study in a table of tests, besides its tests."""
    del study
    return {
        "participants": NOBODY,
        "arms": (),
        "failures": {},
        "not_run": 0,
        "usage": StudyUsage(),
    }


def summary_of_tests(scored: Mapping[str, tuple[Agreement, Uncertainty]]) -> StudySummary:
    """Every condition of a table, in one repetition.

    Raises ValueError for a table without conditions.
    """
    if not scored:
        raise ValueError("a table of tests needs a condition")
    # Names in a table need not be unique: tests of the same name are numbered
    distinct = {}
    for name, (agreement, sure) in scored.items():
        seen: Counter[tuple[tuple[str, str, str], str]] = Counter()
        numbered = []
        for score in agreement.tests:
            key = score.test.finding_id, score.test.test
            seen[key] += 1
            again = ""
            if seen[key] > 1:
                again = f" ({seen[key]})"
            own = replace(score.test, test=f"{score.test.test}{again}")
            numbered.append(replace(score, test=own))

        distinct[name] = replace(agreement, tests=tuple(numbered)), sure

    first, sure = next(iter(distinct.values()))
    studies = {}
    for agreement, _ in distinct.values():
        for test in agreement.tests:
            studies[test.test.study] = test.test.domain

    return StudySummary(
        scorer="",
        scoring="",
        level=first.level,
        convention=first.convention,
        convention_other=first.other.convention,
        repetitions=1,
        replicates=sure.replicates,
        drawn="statistics",
        studies=tuple(
            StudyInfo(
                study=name,
                title=name,
                source="",
                domain=domain,
                license=None,
                caveat=None,
                sha256="",
                wording=None,
                reorder=False,
                arms=(),
                arms_in_file=0,
                design="",
                min_coverage=first.min_coverage,
                reducer=None,
                reduced=False,
            )
            for name, domain in studies.items()
        ),
        conditions=tuple(
            study_condition(
                name,
                [agreement],
                replace(sure, each=(sure,)),
                declared={},
                of_study=_nothing_else,
                floor=False,
                participants=NOBODY,
            )
            for name, (agreement, sure) in distinct.items()
        ),
        differences=(),
        warnings=(),
    )


def study_condition(
    name: str,
    agreements: Sequence[Agreement],
    sure: Uncertainty,
    *,
    declared: Mapping[tuple[str, str, str], Finding],
    of_study: Callable[[str], Mapping[str, Any]],
    **own: Any,
) -> StudyCondition:
    """A condition, from an agreement for each repetition and the uncertainty of their means.

    `declared`: the findings of the study files, by study, sub-study and id; `of_study`: what else
    is known of a study under the condition; `own`: of the condition.
    """
    first = agreements[0]
    findings = []
    for finding in first.findings:
        findings.append(
            finding_result(
                finding.id,
                declared.get(finding.id),
                agreements=agreements,
                sure=sure.pas.get(("finding", finding.id)),
                each=sure.each,
            )
        )

    condition = Condition(
        agreements=agreements,
        sure=sure,
        findings=findings,
        domains={test.test.study: test.test.domain for test in first.tests},
    )
    human = np.array([test.human.d for test in first.tests])
    each = zip(*(agreement.tests for agreement in agreements), strict=True)
    means = []
    for tests in each:
        means.append(mean(test.agent.d for test in tests))

    agent = np.array(means, dtype=float)
    known = np.isfinite(human) & np.isfinite(agent)
    weights = test_weights(first.tests, known)
    line = caricature(human, agent, weights, level=first.level)
    other = mean(agreement.other.ecs.value for agreement in agreements)
    return StudyCondition(
        condition=name,
        benchmark=level_score(condition, "benchmark", ""),
        domains=tuple(level_score(condition, "domain", domain.name) for domain in first.domains),
        studies=tuple(
            StudyResult(
                study=study.name,
                score=level_score(condition, "study", study.name),
                findings=tuple(finding for finding in findings if finding.study == study.name),
                **of_study(study.name),
            )
            for study in first.studies
        ),
        noise_ceiling=quantity(sure.noise_ceiling, "too few tests have both standard errors"),
        caricature=from_fields(Caricature, line),
        ecs_other=quantity(other, "too few tests have an effect"),
        **own,
    )
