"""One test, and one finding, under one condition: each repetition, and the means over them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from karat import formats
from karat.analysis.numbers import Estimate
from karat.kinds.study.analysis.model import FindingResult, Repeated, SideNumbers, TestResult, TestRow
from karat.replication import pas_interval_of_test, pool_pas

if TYPE_CHECKING:
    from karat.kinds.study.format import Finding, Test
    from karat.replication import Agreement, Difference, FindingScore, Measured, Side, Spread, TestScore, Uncertainty

__all__ = ["changed", "estimated", "finding_result", "known", "lowest", "mean", "sd", "unscored"]


def known(value: float | None) -> float | None:
    """The number, or None where it is not known, or is none that a file can hold."""
    return None if value is None or not math.isfinite(value) else float(value)


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are known; None without any."""
    kept = [value for one in values if (value := known(one)) is not None]
    return math.fsum(kept) / len(kept) if kept else None


def sd(values: Iterable[float | None]) -> float | None:
    """With n − 1; None for fewer than two."""
    kept = [value for one in values if (value := known(one)) is not None]
    if len(kept) < 2:
        return None
    centre = math.fsum(kept) / len(kept)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in kept) / (len(kept) - 1))


def lowest(values: Iterable[float | None]) -> float | None:
    """Of those that are known; None without any."""
    return min((value for one in values if (value := known(one)) is not None), default=None)


def estimated(spread: Spread | None, *, value: float | None, n: int, reason: str | None, level: float) -> Estimate:
    """A score with what is claimed of it. `reason`: why there is none; `level`: of the interval."""
    value = known(value)
    if value is None or spread is None:
        return Estimate(value=value, low=None, high=None, se=None, n=n, level=level, method="none", reason=reason)
    return Estimate(
        value=value,
        low=known(spread.low),
        high=known(spread.high),
        se=known(spread.se),
        n=n,
        level=level,
        method=spread.method,
        reason=spread.reason,
    )


def changed(found: Difference, *, level: float) -> Estimate:
    """A difference as the summary has it. `level`: of its interval."""
    value, low = known(found.value), known(found.low)
    return Estimate(
        value=value, low=low, high=known(found.high), se=known(found.se), n=found.n, level=level, method=found.method,
        reason=found.method if value is None or low is None else None,
    )  # fmt: skip


def unscored(reasons: Iterable[str | None]) -> str | None:
    """Why there is no score: each reason once, the most frequent first, and at most three."""
    counts: dict[str, int] = {}
    for said in reasons:
        for reason in said.split("; ") if said else ():
            counts[reason] = counts.get(reason, 0) + 1
    # why something is not in ECS says nothing of PAS
    counts = {reason: count for reason, count in counts.items() if not reason.endswith("not in ECS")} or counts
    ordered = sorted(counts, key=lambda one: -counts[one])
    more = f"; and {formats.plural(len(ordered) - 3, 'more reason')}" if len(ordered) > 3 else ""
    return "; ".join(ordered[:3]) + more if ordered else None


def finding_result(
    declared: Finding,
    study: str,
    *,
    agreements: Sequence[Agreement],
    sure: Spread | None,
    each: Sequence[Uncertainty],
) -> FindingResult:
    """`sure`: of the mean over repetitions; `each`: of every repetition alone."""
    key = (study, declared.sub_study, declared.id)
    scores = [next(one for one in agreement.findings if one.id == key) for agreement in agreements]
    level = agreements[0].level
    tests = tuple(
        _test_result(test, [_with_other(one, (key, test.id)) for one in agreements], level=level)
        for test in declared.tests
    )
    pas, used = mean(one.pas for one in scores), [test for test in tests if test.pas.value is not None]
    reason = None if pas is not None else unscored(test.reason for test in tests)
    return FindingResult(
        study=study,
        sub_study=declared.sub_study,
        id=declared.id,
        claim=declared.claim,
        pas=estimated(sure, value=pas, n=len(used), reason=reason, level=level),
        ceiling=mean(_ceiling(agreement, one) for agreement, one in zip(agreements, scores, strict=True)),
        tests_used=len(used),
        tests_planned=len(tests),
        tests_directed=sum(test.same_direction is not None for test in used),
        tests_agreeing=sum(test.same_direction is True for test in used),
        reason=reason,
        repetitions=tuple(_repeated(at, *pair) for at, pair in enumerate(zip(scores, each, strict=True))),
        tests=tests,
        **_means(scores),
    )


def _means(scores: Sequence[FindingScore]) -> dict[str, Any]:
    return {
        "pas_directional": mean(one.pas_directional for one in scores),
        "normalized": mean(one.normalized for one in scores),
        "ecs_strict": mean(one.ecs_strict for one in scores),
        "ecs_strict_chi2": mean(one.ecs_strict_chi2 for one in scores),
        "coverage": lowest(one.coverage for one in scores),
        "flagged": any(one.flagged for one in scores),
        "opposed": any(one.opposed for one in scores),
        "pas_sd": sd(one.pas for one in scores),
    }


def _repeated(number: int, score: FindingScore, told: Uncertainty) -> Repeated:
    spread = told.pas.get(("finding", score.id))
    return Repeated(
        repetition=number,
        pas=known(score.pas),
        pas_se=known(spread.se) if spread is not None else None,
        pas_directional=known(score.pas_directional),
        ecs=None,
        tests_used=score.tests_used,
        coverage=known(score.coverage),
    )


def _ceiling(agreement: Agreement, score: FindingScore) -> float:
    """The PAS of a perfect copy, pooled over the tests that have one of the agent."""
    tests = [one for one in agreement.tests if one.test.finding_id == score.id and not math.isnan(one.pas)]
    return pool_pas([one.ceiling for one in tests], [one.human.n_eff for one in tests])


def _with_other(agreement: Agreement, key: tuple[tuple[str, str, str], str]) -> tuple[TestScore, tuple[float, float]]:
    """A test, and both effects by the other convention."""
    pairs = zip(agreement.tests, agreement.other.effects, strict=True)
    return next((one, pair) for one, pair in pairs if (one.test.finding_id, one.test.test) == key)


def _test_result(
    declared: Test, scores: Sequence[tuple[TestScore, tuple[float, float]]], *, level: float
) -> TestResult:
    rows = tuple(_row(number, score, other, level=level) for number, (score, other) in enumerate(scores))
    scored = [row for row in rows if row.pas.value is not None]
    directions = {row.same_direction for row in scored}
    alone = rows[0].pas if len(rows) == 1 else None
    value = mean(row.pas.value for row in rows)
    reason = None if value is not None else unscored(row.pas.reason for row in rows)
    several = Estimate(
        value=value, low=None, high=None, se=None, n=len(scored), level=level,
        method=f"mean of {len(scored)} repetitions", reason=reason or "none is computed over repetitions",
    )  # fmt: skip
    return TestResult(
        id=declared.id,
        kind=declared.kind,
        expect=declared.expect,
        reported=declared.human.reported,
        pas=alone or several,
        ceiling=mean(row.ceiling for row in rows),
        pas_directional=mean(row.pas_directional for row in rows),
        d_human=mean(row.human.d for row in rows),
        d_agent=mean(row.agent.d for row in rows),
        z_diff=mean(row.z_diff for row in rows),
        same_direction=next(iter(directions)) if len(directions) == 1 else None,
        opposed=any(row.opposed for row in rows),
        decisive=any(row.opposed and row.decisive for row in rows),
        coverage=lowest(row.coverage for row in rows),
        reason=reason,
        repetitions=rows,
    )


def _row(number: int, score: TestScore, other: tuple[float, float], *, level: float) -> TestRow:
    human = _side(score.test.human, score.human, score.pi_human, other[0])
    agent = _side(score.test.agent, score.agent, score.pi_agent, other[1])
    pas = known(score.pas)
    reason = None if pas is not None else unscored([*score.human.reasons, *score.agent.reasons])
    interval = pas_interval_of_test(score, level=level) if pas is not None else None
    return TestRow(
        repetition=number,
        method=score.method,
        human=human,
        agent=agent,
        pas=estimated(interval, value=pas, n=1, reason=reason or "no Bayes factor", level=level),
        ceiling=known(score.ceiling),
        pas_directional=known(score.pas_directional),
        ceiling_directional=known(score.ceiling_directional),
        normalized=known(score.normalized),
        ecs_test=known(score.ecs_test),
        z_diff=known(score.z_diff),
        same_direction=score.same_direction,
        opposed=score.opposed,
        decisive=score.decisive,
        coverage=known(score.test.coverage),
    )


def _side(side: Side, found: Measured, pi: float, other: float) -> SideNumbers:
    beyond = ("the evidence is without bound",) if math.isinf(found.log_bf) else ()
    return SideNumbers(
        statistic=known(side.statistic),
        table=side.table,
        n_eff=known(found.n_eff),
        log_bf=known(found.log_bf),
        pi=known(pi),
        effect=known(found.effect),
        effect_se=known(found.se),
        d=known(found.d),
        d_se=known(found.d_se),
        d_other=known(other),
        reasons=(*found.reasons, *beyond),
    )
