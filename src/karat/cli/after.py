"""What is shown of a run: its table, its files, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat.cli.ending import Exit
from karat.cli.output import Output, typed
from karat.cli.reporting import render, screen
from karat.summary import Summary, summarize

if TYPE_CHECKING:
    from karat.cli.options import Chosen, File
    from karat.engine import Outcome
    from karat.journal import RunFolder

__all__ = ["Ended", "show_outcome", "shown_path"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """`--json` of `run` and `score`."""

    format: int = FORMAT_VERSION
    run: str  # path of the run folder
    status: str  # done, interrupted, max_failures, budget
    failed: int  # trials that failed in any part of the run
    exit_code: int
    summary: msgspec.Raw  # as `karat report RUN --to json` gives it


def show_outcome(
    outcome: Outcome,
    output: Output,
    *,
    again: tuple[File, Chosen] | None = None,
    scorings: Mapping[str, str] | None = None,
) -> Exit:
    """The result of `run` or `score`: the table, the files, the next commands. `again`: how it was called."""
    summary = summarize(outcome.run, scorings=scorings)
    failed = max(outcome.failed, summary.total.ledger.failed)
    code = _exit(outcome, failed)
    if output.as_json:
        raw = msgspec.Raw("".join(render("json", summary, outcome.run).values()).encode())
        path = str(outcome.run.path)
        output.result("", Ended(run=path, status=outcome.reason, failed=failed, exit_code=code, summary=raw))
    else:
        output.text(*render("terminal", summary, outcome.run, screen("terminal")).values())
    output.say("", *_files(outcome.run), "", *_next(outcome, summary, again))
    return code


def shown_path(path: Path) -> str:
    """A path as one types it: relative where it lies below the working directory."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _exit(outcome: Outcome, failed: int) -> Exit:
    if outcome.reason == "interrupted":
        return Exit.STOPPED
    return Exit.TRIALS_FAILED if failed or outcome.reason != "done" else Exit.DONE


def _files(run: RunFolder) -> list[str]:
    return [
        f"{shown_path(run.path)}/",
        "  journal.jsonl     every answer, score and failure",
        "  experiment.yaml   what was run; run.json: the same, resolved; samples.jsonl: the questions",
    ]


def _next(outcome: Outcome, summary: Summary, again: tuple[File, Chosen] | None) -> list[str]:
    run, ledger = shown_path(outcome.run.path), summary.total.ledger
    commands: list[tuple[str, str]] = []
    if again is not None and (ledger.not_run or ledger.infrastructure or ledger.limit):
        commands.append((_resume(run, *again), "ask what is missing"))
    elif again is not None and ledger.agent:
        commands.append((_resume(run, *again) + " --retry-failed", "ask again where the agent failed"))
    if ledger.judge:
        commands.append((typed("karat", "score", run), "score what has no score"))
    if len(summary.conditions) > 1 and summary.results:
        first, second = summary.conditions[:2]
        commands.append((typed("karat", "compare", f"{run}:{first}", f":{second}"), "question by question"))
    commands.append((typed("karat", "report", run, "--to", "csv", "--out", "scores.csv"), "for a spreadsheet"))
    width = max(len(command) for command, _ in commands)
    return ["Next:", *(f"  {command:{width}}  # {why}" for command, why in commands)]


def _resume(run: str, source: File, chosen: Chosen) -> str:
    settings = [f"--set={setting}" for setting in source.settings]
    env_file = [f"--env-file={source.env_file}"] if source.env_file else []
    return typed("karat", "run", str(source.file), *settings, *env_file, *chosen.words(), "--resume", run)
