"""The files that HumanStudy-Bench writes: detailed_stats.csv, evaluation_results.json, benchmark_summary.json."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.replication_text import plain

if TYPE_CHECKING:
    from karat.replication import Agreement, TestScore, Uncertainty

__all__ = ["HEADER", "write_humanstudy"]

HEADER = (
    "Study_ID", "Finding_ID", "Test_ID", "Condition", "Statistical_Test_Type", "Human_Test_Statistic",
    "Agent_Test_Statistic", "Human_N_Eff", "Agent_N_Eff", "Log_BF_Human", "Log_BF_Agent", "Pi_Human", "Pi_Agent",
    "PAS_Raw", "PAS_Directional", "ECS_Test", "Z_Diff", "Agent_Effect_Size", "Human_Effect_Size", "Agent_Effect_d",
    "Human_Effect_d", "Direction_Match", "Coverage",
)  # fmt: skip

Scored = Mapping[str, "tuple[Agreement, Uncertainty]"]


def write_humanstudy(scored: Scored, folder: Path) -> list[Path]:
    """The three files, in a folder that is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "detailed_stats.csv": _detailed(scored),
        "evaluation_results.json": _json([one for name, found in scored.items() for one in _results(name, *found)]),
        "benchmark_summary.json": _json({name: _summary(*found) for name, found in scored.items()}),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return [folder / name for name in texts]


def _json(value: Any) -> str:
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _detailed(scored: Scored) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for condition, (agreement, _) in scored.items():
        writer.writerows(_row(condition, score) for score in agreement.tests)
    return text.getvalue()


def _row(condition: str, score: TestScore) -> list[Any]:
    test, human, agent = score.test, score.human, score.agent
    finding = "/".join(part for part in (test.sub_study, test.finding) if part)
    named = [test.study, finding, test.test, condition, test.kind]
    numbers: list[Any] = [_statistic(score, "human"), _statistic(score, "agent"), human.n_eff, agent.n_eff]
    numbers += [human.log_bf, agent.log_bf, score.pi_human, score.pi_agent, score.pas, score.pas_directional]
    numbers += [score.ecs_test, score.z_diff, agent.effect, human.effect, agent.d, human.d]
    match = "" if score.same_direction is None else str(score.same_direction)
    return [
        *named,
        *("" if _unknown(one) else one for one in numbers),
        match,
        "" if _unknown(test.coverage) else test.coverage,
    ]


def _unknown(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _statistic(score: TestScore, which: str) -> Any:
    side = score.test.human if which == "human" else score.test.agent
    if side.table is not None:
        return ";".join(",".join(map(str, row)) for row in side.table)
    return side.statistic


def _results(condition: str, agreement: Agreement, sure: Uncertainty) -> Iterator[dict[str, Any]]:
    for study in agreement.studies:
        key = ("study", study.name)
        yield {
            "study_id": study.name,
            "condition": condition,
            "score": study.pas,
            "score_se": sure.pas[key].se,
            "score_directional": study.pas_directional,
            "ecs_corr_study": study.ecs.value,
            "ecs_interval_these_studies": [sure.ecs_fixed[key].low, sure.ecs_fixed[key].high],
            "tests_used": study.tests_used,
            "tests_planned": study.tests_planned,
            "auxiliary": {
                "normalized_score": study.normalized,
                "ecs_strict_study": study.ecs_strict,
                "ecs_strict_study_chi2": study.ecs_strict_chi2,
            },
            "finding_results": [finding for finding in agreement.findings if finding.id[0] == study.name],
            "test_results": [
                {
                    "finding_id": score.test.finding,
                    "sub_study_id": score.test.sub_study,
                    "test_id": score.test.test,
                    "pas": score.pas,
                    "pas_directional": score.pas_directional,
                    "pi_human": score.pi_human,
                    "pi_agent": score.pi_agent,
                    "ecs_test": score.ecs_test,
                    "coverage": score.test.coverage,
                    "method": score.method,
                    "reasons": [*score.human.reasons, *score.agent.reasons],
                }
                for score in agreement.tests
                if score.test.study == study.name
            ],
        }


def _summary(agreement: Agreement, sure: Uncertainty) -> dict[str, Any]:
    whole, spread = agreement.benchmark, sure.pas.get(("benchmark", ""))
    fixed = sure.ecs_fixed.get(("benchmark", ""))
    return {
        "average_pas_raw": whole.pas,
        "average_pas_raw_interval": [spread.low, spread.high] if spread else [None, None],
        "average_ecs": whole.ecs.value,
        "average_ecs_interval_these_studies": [fixed.low, fixed.high] if fixed else [None, None],
        "average_ecs_interval_new_studies": [agreement.ecs_interval.low, agreement.ecs_interval.high],
        "ecs_per_domain": {domain.name: domain.ecs.value for domain in agreement.domains},
        "n_studies": whole.used,
        "n_tests": whole.tests_used,
        "n_tests_planned": whole.tests_planned,
        "n_tests_with_effects": whole.tests_with_effects,
        "convention": agreement.convention,
        "auxiliary": {
            "average_pas_directional": whole.pas_directional,
            "average_normalized_score": whole.normalized,
            "ecs_strict_overall": whole.ecs_strict,
            "ecs_strict_overall_chi2": whole.ecs_strict_chi2,
            "ecs_noise_ceiling": sure.noise_ceiling,
            f"average_ecs_{agreement.other.convention}": agreement.other.ecs.value,
        },
    }
