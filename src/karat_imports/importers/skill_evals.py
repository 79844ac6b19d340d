"""`karat import skill-evals`: evaluations of plugins and skills of Claude Code, with and without
them.

Source of the formats: the document (schemaVersion 1) that `claude plugin eval --json FILE` of
Claude Code 2.1.329 writes, described at https://code.claude.com/docs/en/plugin-evals; and
benchmark.json, as `references/schemas.md` of the skill `skill-creator` in the repository
anthropics/skills describes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from karat.foreign import Json
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.records import Metric, Reply
from karat_imports.importers._reading import failure, heads, items, repeats, title

__all__ = ["SkillEvals"]

_PLUGIN = re.compile(rb'\s*\{\s*"schemaVersion"\s*:\s*1\s*,\s*"claudeVersion"')
_BENCHMARK = re.compile(rb'\s*\{\s*"metadata"\s*:\s*\{[^{}]*"skill_name"')
_ASKS_MODEL = ("llm", "baseline")  # types of graders
_WHOLE = "plugin-eval"
_METRICS = {
    _WHOLE: (
        Metric(name="score", low=0, high=1),
        Metric(name=f"{_WHOLE}.pass", kind="share", description="a score of 1"),
    ),
    "skill-creator": (
        Metric(name="pass_rate", low=0, high=1, description="share of expectations that are met"),
    ),
}


class SkillEvals:
    """Results of `claude plugin eval --json`, and benchmark.json of skill-creator: with and without
    are conditions.
    """

    listed_as: ClassVar[str] = "skill-evals"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _PLUGIN.match(head) is not None or _BENCHMARK.match(head) is not None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run of all files.

        With several, the name of the file precedes that of the condition.
        """
        files = heads(
            paths,
            ("cases",),
            ("runs",),
            otherwise="holds neither cases (claude plugin eval) nor runs (skill-creator)",
            findings=findings,
        )
        named, first, _ = files[0]
        version = first.text("claudeVersion")
        tool = "skill-creator"
        scorer = "skill-creator"
        if isinstance(first.get("cases"), list):
            tool = f"claude-plugin-eval {version or ''}".strip()
            scorer = _WHOLE
        if len(files) == 1:
            seconds = first.number("durationSeconds", low=0)
        else:
            seconds = None

        stated: list[Stated] = []
        yield ImportedRun(
            name=first.at("suite").text("pluginId")
            or first.at("metadata").text("skill_name")
            or title(named),
            tool=tool,
            trials=(trial for file in files for trial in _trials(*file, findings, stated)),
            stated=stated,
            unfinished=[
                f"{path.name} is partial: {head.text('partialReason') or 'no reason given'}"
                for path, head, _ in files
                if head.flag("partial")
            ],
            conditions={
                f"{prefix}{arm}": ImportedCondition(
                    model=head.at("suite").text("modelOverride")
                    or head.at("metadata").text("executor_model"),
                    detail={"arm": arm, "suite": head.at("suite").without("root")},
                )
                for _, head, prefix in files
                for arm in _arms(head)
            },
            metrics={scorer: _METRICS[scorer]},
            created=first.text("startedAt") or first.at("metadata").text("timestamp"),
            seconds=seconds,
            versions={"claude-code": version} if version else {},
            detail={path.name: head.without("cases", "runs") for path, head, _ in files},
        )


def _arms(head: Json) -> list[str]:
    """The conditions of a file, the baseline first."""
    arms = dict.fromkeys(run.text("configuration") or "" for run in head.list("runs"))
    known = list(arms) or (
        ["with"] if head.at("suite").text("ablation") == "none" else ["with", "without"]
    )
    return sorted(known, key=lambda arm: not arm.startswith(("without", "old")))


def _trials(
    path: Path,
    head: Json,
    prefix: str,
    findings: Findings,
    stated: list[Stated],
) -> Iterator[ImportedTrial]:
    """The trials of a file; afterwards `stated` holds how many there should be."""
    arms = tuple(f"{prefix}{arm}" for arm in _arms(head))
    cases = trials = 0
    for place, case in items(path, "cases", findings=findings):
        cases += 1
        trials += (case.count("runsPerCase") or 1) * len(arms)
        types = {}
        for grader in case.list("graders"):
            types[grader.text("name")] = grader.text("type")

        for arm in ("with", "without"):
            for repetition, run in enumerate(case.at("arms").list(arm)):
                yield _of_case(case, run, (f"{prefix}{arm}", repetition), types, place, findings)

    for number, run in enumerate(head.list("runs"), start=1):
        if (sample := run.shown("eval_id", "eval_name")) is None:
            findings.lose("run without an eval_id", f"{path.name}, run {number}")
        else:
            result = run.at("result")
            seconds = result.number("time_seconds", low=0) or None  # 0 if no time is known
            expectations = run.list("expectations")
            reasons = []
            for item in expectations:
                reasons.append(
                    f"{item.get('passed')}: {item.text('text')} ({item.text('evidence')})"
                )

            # 0 if nothing was graded
            if result.count("total"):
                rate = result.number("pass_rate")
            else:
                rate = None

            yield ImportedTrial(
                sample=sample,
                question=run.text("eval_name") or f"eval {sample}",
                condition=f"{prefix}{run.text('configuration') or ''}",
                repetition=max(0, (run.count("run_number") or 1) - 1),
                reply=_not_recorded(),
                seconds=seconds,
                scores=[
                    ImportedScore(
                        scorer="skill-creator",
                        values={"pass_rate": rate},
                        reasons={"pass_rate": "\n".join(reasons)},
                        detail={"expectations": run.get("expectations")},
                    )
                ],
                detail={"result": result, "notes": run.get("notes")},
            )

    absent = max(0, (head.at("aggregates").count("casesTotal") or 0) - cases) * len(arms)
    evals = head.at("metadata").get("evals_run")
    if isinstance(evals, list):
        absent = len(evals) * (head.at("metadata").count("runs_per_configuration") or 1) * len(arms)
    stated.append(Stated(file=path.name, conditions=arms, trials=trials + absent))


def _of_case(
    case: Json,
    run: Json,
    at: tuple[str, int],
    types: Mapping[str | None, str | None],
    place: str,
    findings: Findings,
) -> ImportedTrial:
    graders = run.list("graders")
    error = run.text("error")
    seconds = run.number("durationSeconds", low=0)
    skipped = run.flag("skippedPaidGraders") is True
    if skipped:
        findings.changed(
            "run whose paid graders were skipped: its score as a whole is missing", place
        )

    values = {"score": run.number("score"), f"{_WHOLE}.pass": run.flag("passed")}
    if skipped:
        values = dict.fromkeys(values)
    scores = [
        ImportedScore(scorer=_WHOLE, values=values, dollars=run.number("judgeCostUsd", low=0))
    ]
    names = [grader.text("name", "type") or "grader" for grader in graders]
    for name, repeat, grader in zip(names, repeats(names), graders, strict=True):
        kind = types.get(grader.text("name"))
        if skipped and kind in _ASKS_MODEL:
            passed = None
        else:
            passed = grader.flag("passed")

        scores.append(
            ImportedScore(
                scorer=name,
                repeat=repeat,
                values={f"{name}.pass": passed},
                reasons={f"{name}.pass": grader.text("explanation")},
                detail=grader.without("name", "passed", "explanation"),
                offline=kind is not None and kind not in _ASKS_MODEL,
            )
        )

    return ImportedTrial(
        sample=case.text("name") or place,
        question=case.text("promptMarkdown") or case.text("name") or place,
        condition=at[0],
        repetition=at[1],
        reply=_not_recorded(run.number("costUsd", low=0), case.text("model")),
        started=run.text("startedAt"),
        seconds=seconds,
        failure=failure(error),
        scores=[] if error else scores,
        detail=run.without("graders", "score", "passed", "costUsd", "judgeCostUsd"),
    )


def _not_recorded(dollars: float | None = None, model: str | None = None) -> Reply:
    """A stand-in for an answer whose text is not in the file."""
    return Reply(text="", stop_reason="not_recorded", dollars=dollars, model=model)
