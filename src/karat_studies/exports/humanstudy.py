"""`--to humanstudy`: the files that HumanStudy-Bench writes, from a run over human studies."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

import msgspec
from pydantic import BaseModel, ConfigDict

from karat import formats
from karat.analysis import Summary
from karat.analysis.numbers import Estimate
from karat.errors import BadOption
from karat.files import file_safe
from karat.journal import RunFolder
from karat.records import Json, JsonObject
from karat_studies.kinds.study.analysis.model import (
    FindingResult,
    Participants,
    SideNumbers,
    StudyCondition,
    StudyResult,
    StudySummary,
    StudyUsage,
    TestResult,
    TestRow,
)
from karat_studies.kinds.study.analysis.scores import summary_of_tests
from karat_studies.replication import Agreement, Uncertainty

__all__ = ["HEADER", "Humanstudy", "files"]

HEADER = (
    "Study_ID",
    "Finding_ID",
    "Test_ID",
    "Condition",
    "Statistical_Test_Type",
    "Human_Test_Statistic",
    "Agent_Test_Statistic",
    "Human_N_Eff",
    "Agent_N_Eff",
    "Log_BF_Human",
    "Log_BF_Agent",
    "Pi_Human",
    "Pi_Agent",
    "PAS_Raw",
    "PAS_Directional",
    "ECS_Test",
    "Z_Diff",
    "Agent_Effect_Size",
    "Human_Effect_Size",
    "Agent_Effect_d",
    "Human_Effect_d",
    "Direction_Match",
    "Coverage",
)
REPETITION = "Repetition"
"""A last column of `detailed_stats.csv`, if there is more than one."""


def files(part: StudySummary | None) -> dict[str, str]:
    """File name → text. With None there was no study, and the files have no rows."""
    results: list[Json] = []
    summary: JsonObject = {}
    if part is not None:
        results = []
        for condition in part.conditions:
            for study in condition.studies:
                results.append(_evaluated(part, condition, study))

        summary = {
            condition.condition: _benchmark(part, condition) for condition in part.conditions
        }

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if part is not None and part.repetitions > 1:
        header = [*HEADER, REPETITION]
    else:
        header = list(HEADER)

    writer.writerow(header)
    for row in detailed_rows(part) if part is not None else ():
        writer.writerow(
            [
                str(row[name]) if isinstance(row[name], bool) else formats.csv_cell(row[name])
                for name in header
            ]
        )

    return {
        "detailed_stats.csv": text.getvalue(),
        "evaluation_results.json": _json(results),
        "benchmark_summary.json": _json(summary),
        **(_benchmark_folders(part) if part is not None else {}),
    }


def _benchmark_folders(part: StudySummary) -> dict[str, str]:
    """`benchmark/study_ID/CONDITION/`: a folder for each study and condition, as the benchmark's
    scripts require.
    """
    files = {}
    # Names of folders; one that a file system could confuse with another gets a number
    folders: list[str] = []
    for distinct_name in map(file_safe, (entry.condition for entry in part.conditions)):
        used = {folder.lower() for folder in folders}
        free = (f"{distinct_name}-{number}" for number in count(2))
        if distinct_name.lower() not in used:
            folders.append(distinct_name)
        else:
            folders.append(next(new for new in free if new.lower() not in used))

    for condition, folder in zip(part.conditions, folders, strict=True):
        for study in condition.studies:
            name = file_safe(study.study)
            place = f"benchmark/{name if name.startswith('study_') else f'study_{name}'}/{folder}"
            evaluated = _evaluated(part, condition, study)
            known = {key: value for key, value in evaluated.items() if value is not None}
            scored = []
            for finding in evaluated["finding_results"]:
                if finding["finding_score"] is not None:
                    scored.append(finding)

            # Tokens and cost by the benchmark's names; only known values
            sums = _usage([study.usage])
            names = {
                "total_prompt_tokens": "input_tokens",
                "total_completion_tokens": "output_tokens",
                "total_tokens": "total_tokens",
                "total_cost": "total_cost",
            }
            usage = {theirs: sums[ours] for theirs, ours in names.items() if sums[ours] is not None}
            run = {
                "study_id": study.study,
                "title": evaluated["title"] or study.study,
                "system_prompt_preset": condition.condition,
                "usage_stats": usage,
                "individual_data": [
                    {"participant_id": at} for at in range(1, study.participants.answered + 1)
                ],
            }
            files[f"{place}/full_benchmark.json"] = _json(run)
            tests = []
            for test in evaluated["test_results"]:
                row = {key: value for key, value in test.items() if value is not None}
                for side in ("human", "agent"):
                    if test[f"{side}_effect_d"] is None:  # their scripts make a d of any effect
                        row.pop(f"{side}_effect_size", None)

                tests.append(row)

            files[f"{place}/evaluation_results.json"] = _json(
                {
                    **known,
                    "finding_results": scored,
                    "test_results": tests,
                    "usage_stats": usage,
                }
            )

    return files


def _json(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def detailed_rows(part: StudySummary) -> Iterator[JsonObject]:
    """One row per test, condition and repetition, by the names of `HEADER` and `REPETITION`."""
    for condition in part.conditions:
        for finding in condition.findings:
            for test in finding.tests:
                for row in test.repetitions:
                    human = row.human
                    agent = row.agent
                    named = [finding.study, finding.name, test.id, condition.condition, test.kind]
                    evidence = [
                        human.n_eff,
                        agent.n_eff,
                        human.log_bf,
                        agent.log_bf,
                        human.pi,
                        agent.pi,
                    ]
                    scores = [row.pas.value, row.pas_directional, row.ecs_test, row.z_diff]
                    effects = [agent.effect, human.effect, agent.d, human.d]
                    tail = [row.same_direction, row.coverage, row.repetition + 1]
                    values = [
                        *named,
                        _statistic(human),
                        _statistic(agent),
                        *evidence,
                        *scores,
                        *effects,
                        *tail,
                    ]
                    yield dict(zip((*HEADER, REPETITION), values, strict=True))


def _statistic(side: SideNumbers) -> Json:
    if side.table is not None:
        return ";".join(",".join(map(str, row)) for row in side.table)
    return side.statistic


def _evaluated(part: StudySummary, condition: StudyCondition, study: StudyResult) -> JsonObject:
    """One study under one condition."""
    info = part.info(study.study)
    score = study.score
    if part.floor is None:
        floor = None
    else:
        floor = part.floor.study(study.study)

    return {
        "study_id": study.study,
        "title": info.title if info is not None else None,
        "condition": condition.condition,
        "repetitions": part.repetitions,
        "score": score.pas.value,
        "score_se": score.pas.se,
        "score_directional": score.pas_directional,
        "score_sd_between_repetitions": score.pas_sd,
        "ecs_corr_study": score.ecs.value,
        "ecs_interval_these_studies": _interval(score.ecs),
        "reason": score.reason,
        "tests_used": score.tests_used,
        "tests_planned": score.tests_planned,
        "coverage": score.coverage,
        "participants": _people(study.participants),
        "failure_rates": _failure_rates(study),
        "usage": _usage([study.usage]),
        "auxiliary": {
            "normalized_score": score.normalized,
            "ecs_strict_study": score.ecs_strict,
            "ecs_strict_study_chi2": score.ecs_strict_chi2,
            "floor_score": None if floor is None else floor.pas.value,
            "floor_ecs_corr_study": None if floor is None else floor.ecs.value,
        },
        "finding_results": [
            {
                "sub_study_id": finding.sub_study,
                "finding_id": finding.id,
                "claim": finding.claim,
                "finding_score": finding.pas.value,
                "finding_score_se": finding.pas.se,
                "pas_directional": finding.pas_directional,
                "coverage": finding.coverage,
                "flagged": finding.flagged,
                "opposed": finding.opposed,
                "reason": finding.reason,
                "n_tests": finding.tests_planned,
                "tests_used": finding.tests_used,
                "auxiliary": {
                    "normalized_score": finding.normalized,
                    "ecs_strict": finding.ecs_strict,
                    "ecs_strict_chi2": finding.ecs_strict_chi2,
                },
            }
            for finding in study.findings
        ],
        "test_results": [
            _test_result(finding, test, row)
            for finding in study.findings
            for test in finding.tests
            for row in test.repetitions
        ],
    }


def _test_result(finding: FindingResult, test: TestResult, row: TestRow) -> JsonObject:
    return {
        "finding_id": finding.id,
        "sub_study_id": finding.sub_study,
        "test_id": test.id,
        "repetition": row.repetition + 1,
        "reported": test.reported,
        "statistical_test_type": test.kind,
        "human_effect_size": row.human.effect,
        "agent_effect_size": row.agent.effect,
        "human_effect_d": row.human.d,
        "agent_effect_d": row.agent.d,
        "pas": row.pas.value,
        "pas_interval": _interval(row.pas),
        "pas_directional": row.pas_directional,
        "pi_human": row.human.pi,
        "pi_agent": row.agent.pi,
        "direction_match": row.same_direction,
        "coverage": row.coverage,
        "method": row.method,
        "reasons": list(dict.fromkeys([*row.human.reasons, *row.agent.reasons])),
        "auxiliary": {"ecs_test": row.ecs_test, "normalized_score": row.normalized},
    }


def _interval(estimate: Estimate) -> list[float | None]:
    return [estimate.low, estimate.high]


def _floor(part: StudySummary, condition: str) -> JsonObject | None:
    """Scores of random answers over all studies, and the condition's distance above them; None
    without any.
    """
    if part.floor is None:
        return None
    benchmark = part.floor.benchmark
    more = part.floor.of(condition)
    if more is None:
        pas_raw_above_floor_interval = None
        ecs_above_floor_interval = None
    else:
        pas_raw_above_floor_interval = _interval(more.pas)
        ecs_above_floor_interval = _interval(more.ecs)

    return {
        "repetitions": part.floor.repetitions,
        "average_pas_raw": benchmark.pas.value,
        "average_pas_raw_interval": _interval(benchmark.pas),
        "pas_raw_sd_between_repetitions": benchmark.pas_sd,
        "average_pas_directional": benchmark.pas_directional,
        "average_ecs": benchmark.ecs.value,
        "average_ecs_interval": _interval(benchmark.ecs),
        "pas_raw_above_floor": None if more is None else more.pas.value,
        "pas_raw_above_floor_interval": pas_raw_above_floor_interval,
        "ecs_above_floor": None if more is None else more.ecs.value,
        "ecs_above_floor_interval": ecs_above_floor_interval,
        "pas_raw_per_domain": {domain.name: domain.pas.value for domain in part.floor.domains},
        "without": part.floor.without,
    }


def _people(people: Participants) -> dict[str, int] | None:
    """None if it is not reported, as in a table of tests."""
    counts: dict[str, int] = msgspec.structs.asdict(people)
    return counts if people.planned else None


def _failure_rates(study: StudyResult) -> JsonObject | None:
    """Shares of the planned participants, and of each arm's answers by fault."""
    people = study.participants
    if not people.planned:
        return None
    return {
        "not_answered": (people.planned - people.answered) / people.planned,
        "not_parsed": (people.planned - people.parsed) / people.planned,
        "stopped": people.stopped / people.planned,
        "failures": dict(study.failures),
        "not_run": study.not_run,
        "arms": {
            arm.arm: {
                "participants": _people(arm.participants),
                "unread": arm.unread,
                "read": arm.answers,
            }
            for arm in study.arms
        },
    }


def _usage(parts: Sequence[StudyUsage]) -> JsonObject:
    """Sums; None if no call reported it."""
    tokens = [_sum(part.input_tokens for part in parts), _sum(part.output_tokens for part in parts)]
    return {
        "calls": sum(part.calls for part in parts),
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "total_tokens": _sum(tokens),
        "total_cost": _sum(part.dollars for part in parts),
        "calls_without_tokens": sum(part.tokens_unknown for part in parts),
        "calls_without_price": sum(part.dollars_unknown for part in parts),
    }


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if known:
        return sum(known)
    return None


def _benchmark(part: StudySummary, condition: StudyCondition) -> JsonObject:
    """One condition over all studies, which they call a configuration.

    `studies`, `findings`: as in `results.json`.
    """
    benchmark = condition.benchmark
    new = condition.benchmark.ecs_new
    usage = _usage([study.usage for study in condition.studies])
    study_lines = []
    for study in condition.studies:
        info = part.info(study.study)
        spent = _usage([study.usage])
        study_lines.append(
            {
                "study_id": study.study,
                "title": info.title if info is not None else None,
                "pas_raw": study.score.pas.value,
                "ecs": study.score.ecs.value,
                "total_tokens": spent["total_tokens"],
                "total_cost": spent["total_cost"],
            }
        )

    return {
        "average_pas_raw": benchmark.pas.value,
        "average_pas_raw_interval": _interval(benchmark.pas),
        "average_ecs": benchmark.ecs.value,
        "average_ecs_interval_these_studies": _interval(benchmark.ecs),
        "average_ecs_interval_new_studies": [None, None] if new is None else _interval(new),
        "ecs_per_domain": {domain.name: domain.ecs.value for domain in condition.domains},
        "pas_raw_per_domain": {domain.name: domain.pas.value for domain in condition.domains},
        "reason": benchmark.reason,
        "floor": condition.floor,
        "repetitions": part.repetitions,
        "pas_raw_sd_between_repetitions": benchmark.pas_sd,
        "ecs_sd_between_repetitions": benchmark.ecs_sd,
        "n_studies": benchmark.used,
        "n_tests": benchmark.tests_used,
        "n_tests_planned": benchmark.tests_planned,
        "n_tests_with_effects": benchmark.tests_with_effects,
        "participants": _people(condition.participants),
        "total_tokens": usage["total_tokens"],
        "total_cost": usage["total_cost"],
        "usage": usage,
        "convention": part.convention,
        "auxiliary": {
            "average_pas_directional": benchmark.pas_directional,
            "average_normalized_score": benchmark.normalized,
            "ecs_strict_overall": benchmark.ecs_strict,
            "ecs_strict_overall_chi2": benchmark.ecs_strict_chi2,
            "ecs_noise_ceiling": condition.noise_ceiling.value,
            f"average_ecs_{part.convention_other}": condition.ecs_other.value,
            "caricature_slope": condition.caricature.slope,
            "floor": _floor(part, condition.condition),
        },
        "studies": study_lines,
        "findings": [
            line
            for study in condition.studies
            for line in [
                {
                    "study_id": study.study,
                    "finding_idx": at,
                    "sub_study_id": finding.sub_study,
                    "finding_id": finding.id,
                    "finding_score": finding.pas.value,
                    "n_tests": finding.tests_planned,
                }
                for at, finding in enumerate(study.findings)
            ]
        ],
    }


class Humanstudy:
    """`detailed_stats.csv`, `evaluation_results.json` and `benchmark_summary.json`, as in
    HumanStudy-Bench.

    For a folder: `--out FOLDER`. PAS and ECS are the main numbers, everything else is under
    `auxiliary`; unknown values are empty or null. With several repetitions a row of the table is
    one of them, given in its last column. Below `FOLDER/benchmark` are the same results in the form
    for the benchmark's own scripts. For runs over human studies.
    """

    kinds = ("study",)

    class Options(BaseModel):
        """No options: the format is theirs."""

        model_config = ConfigDict(extra="forbid")

    def __init__(self, options: Options | None = None) -> None:
        pass

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        part = summary.part(StudySummary)
        if part is None and run.info.kind in self.kinds:
            raise BadOption(
                "report humanstudy",
                "no scores of the scorer `replication` are shown: there are no tests",
            )

        return files(part)


def files_of_tests(scored: Mapping[str, tuple[Agreement, Uncertainty]]) -> dict[str, str]:
    """The same for a table of tests, by condition."""
    return files(summary_of_tests(scored))
