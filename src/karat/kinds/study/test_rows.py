"""The tests of a run over human studies as rows: one a test and condition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karat.kinds.study.analysis.model import (
    FindingResult,
    FloorTest,
    SideNumbers,
    StudyResult,
    StudySummary,
    TestResult,
)

__all__ = ["TEST_COLUMNS", "test_rows"]

_SIDE = ("statistic", "table", "n_eff", "log_bf", "pi", "effect", "effect_se", "d", "d_se")
TEST_COLUMNS = (
    "condition", "floor", "study", "domain", "sub_study", "finding", "test", "kind", "expect", "reported",
    *(f"human_{name}" for name in _SIDE), *(f"agent_{name}" for name in _SIDE),
    "pas", "pas_low", "pas_high", "pas_ceiling", "pas_directional", "z_diff", "same_direction", "opposed", "decisive",
    "coverage", "flagged", "repetitions", "reason", "finding_pas", "finding_pas_se", "study_pas", "study_ecs",
    "planned", "asked", "answered", "parsed",
    "floor_pas", "floor_d", "study_floor_pas", "study_floor_ecs",
)  # fmt: skip


def test_rows(part: StudySummary) -> Iterator[dict[str, Any]]:
    """By the names of `TEST_COLUMNS`.

    Of several repetitions scores and effects are means, and a side that differs between them is left out.
    """
    floors = {(one.study, one.sub_study, one.finding, one.test): one for one in _floor_tests(part)}
    for condition in part.conditions:
        for study in condition.studies:
            info = part.info(study.study)
            for finding in study.findings:
                for test in finding.tests:
                    yield {
                        "condition": condition.condition,
                        "floor": condition.floor,
                        "domain": info.domain if info is not None else None,
                        **_of_study(study),
                        **_of_finding(finding),
                        **_of_test(test),
                        **_of_floor(
                            part, study.study, floors.get((study.study, finding.sub_study, finding.id, test.id))
                        ),
                    }


def _floor_tests(part: StudySummary) -> tuple[FloorTest, ...]:
    return () if part.floor is None else part.floor.tests


def _of_floor(part: StudySummary, study: str, test: FloorTest | None) -> dict[str, Any]:
    """What random answers get in the same test and study; empty where they have no score."""
    floor = None if part is None or part.floor is None else part.floor.study(study)
    return {
        "floor_pas": None if test is None else test.pas,
        "floor_d": None if test is None else test.d,
        "study_floor_pas": None if floor is None else floor.pas.value,
        "study_floor_ecs": None if floor is None else floor.ecs.value,
    }


def _of_study(study: StudyResult) -> dict[str, Any]:
    people = study.participants
    return {
        "study": study.study,
        "study_pas": study.score.pas.value,
        "study_ecs": study.score.ecs.value,
        "planned": people.planned,
        "asked": people.asked,
        "answered": people.answered,
        "parsed": people.parsed,
    }


def _of_finding(finding: FindingResult) -> dict[str, Any]:
    return {
        "sub_study": finding.sub_study,
        "finding": finding.id,
        "finding_pas": finding.pas.value,
        "finding_pas_se": finding.pas.se,
        "flagged": finding.flagged,
    }


def _of_test(test: TestResult) -> dict[str, Any]:
    sides: dict[str, Any] = {}
    for which in ("human", "agent"):
        alike = {getattr(one, which) for one in test.repetitions}
        sides |= _side(which, alike.pop()) if len(alike) == 1 else {}
    return {
        **sides,
        "test": test.id,
        "kind": test.kind,
        "expect": test.expect,
        "reported": test.reported,
        "human_d": test.d_human,
        "agent_d": test.d_agent,
        "pas": test.pas.value,
        "pas_low": test.pas.low,
        "pas_high": test.pas.high,
        "pas_ceiling": test.ceiling,
        "pas_directional": test.pas_directional,
        "z_diff": test.z_diff,
        "same_direction": test.same_direction,
        "opposed": test.opposed,
        "decisive": test.decisive,
        "coverage": test.coverage,
        "repetitions": len(test.repetitions),
        "reason": test.reason,
    }


def _side(which: str, side: SideNumbers) -> dict[str, Any]:
    found: dict[str, Any] = {f"{which}_{name}": getattr(side, name) for name in _SIDE}
    if side.table is not None:
        found[f"{which}_table"] = ";".join(",".join(map(str, row)) for row in side.table)
    return found
