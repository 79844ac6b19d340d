"""The end of a run's output: its table, its files, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from karat import kinds
from karat.analysis import Summary
from karat.analysis.cached import summarize_cached
from karat.cli.ending import Exit
from karat.cli.output import Output, typed
from karat.cli.printed import aside
from karat.cli.reporting import next_steps, render, screen
from karat.cli.scoring import missing_scores
from karat.formats import OUTPUT_FORMAT
from karat.installation import shown_path

if TYPE_CHECKING:
    from karat.cli.options import Chosen, File
    from karat.execution import Outcome
    from karat.records import JsonObject


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """`--json` of `run` and `score`."""

    format: int = OUTPUT_FORMAT
    run: str  # path of the run folder
    status: str  # done, interrupted, max_failures, budget, no_workers
    failed: int  # trials that failed in any part of the run
    exit_code: int
    summary: msgspec.Raw  # as `karat report RUN --to json` gives it


def show_outcome(
    outcome: Outcome,
    output: Output,
    *,
    again: tuple[File, Chosen] | None = None,
    scorings: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
    asked: JsonObject | None = None,
) -> Exit:
    """Prints the result of `run` or `score`: the table, the files, the next commands.

    `again`: how `run` was called; `warnings`: those not in the journal; `asked`: options of the
    kind of dataset.
    """
    with aside():
        summary = summarize_cached(outcome.run, scorings=scorings, **(asked or {}))

    summary = msgspec.structs.replace(summary, warnings=(*summary.warnings, *warnings))
    failed = max(outcome.failed, summary.total.ledger.failed)
    code = Exit.TRIALS_FAILED if failed or outcome.reason != "done" else Exit.DONE
    code = Exit.STOPPED if outcome.reason == "interrupted" else code
    if output.as_json:
        raw = msgspec.Raw("".join(render("json", summary, outcome.run).values()).encode())
        path = str(outcome.run.path)
        output.result(
            "", Ended(run=path, status=outcome.reason, failed=failed, exit_code=code, summary=raw)
        )
    else:
        output.text(*render("terminal", summary, outcome.run, screen("terminal")).values())

    files = (
        f"{shown_path(outcome.run.path)}/",
        "  journal.jsonl     every answer, score and failure",
        (
            "  experiment.yaml   the experiment; run.json: the same, resolved; samples.jsonl: the "
            "questions"
        ),
    )
    output.say("", *files, *_next(outcome, summary, again))
    return code


def _next(outcome: Outcome, summary: Summary, again: tuple[File, Chosen] | None) -> list[str]:
    run = shown_path(outcome.run.path)
    ledger = summary.total.ledger
    commands: list[tuple[str, str]] = []
    # A condition that stopped because its comparisons are decided is not asked again.
    out = () if summary.stopping is msgspec.UNSET else summary.stopping.out
    asked = [account.ledger for name, account in summary.accounts.items() if name not in out]
    # What a finished shard did not run belongs to the other shards.
    of_others = outcome.run.info.shard is not None and outcome.reason == "done"
    missing = any(
        (trials.not_run and not of_others) or trials.infrastructure or trials.limit
        for trials in asked
    )
    failed = any(trials.agent for trials in asked)
    if again is not None and (missing or failed):
        source, chosen = again
        # Without --retry-failed, a resume skips what the agent failed at.
        if failed:
            retry = ["--retry-failed"]
        else:
            retry = []

        # What a completed selection did not run lies outside it.
        if outcome.reason != "done" or not ledger.not_run:
            part = chosen.words()
        else:
            part = []

        why = ["ask again where the agent failed"] * failed + ["ask what is missing"] * missing
        settings = [f"--set={setting}" for setting in source.settings]
        if source.env_file:
            env_file = [f"--env-file={source.env_file}"]
        else:
            env_file = []

        command = typed("run", str(source.file), settings, env_file, part, "--resume", run, retry)
        larger = ", with a larger execution.budget" if outcome.reason == "budget" else ""
        commands.append((command, ", and ".join(why) + larger))

    if outcome.run.info.shard is not None:
        commands.append(
            (
                typed("runs", "merge", shown_path(outcome.run.path.parent)),
                "merge the shards in this folder",
            )
        )

    if ledger.judge:
        commands.append(
            (typed("score", run, missing_scores(outcome.run, summary)), "score what has no score")
        )

    scored = []
    for name in summary.conditions:
        if any(result.n_answers for result in summary.results if result.condition == name):
            scored.append(name)

    if len(scored) > 1:
        by = kinds.of(summary.kind).compared_by
        commands.append((typed("compare", f"{run}:{scored[0]}", f":{scored[1]}"), by))

    if scored:
        commands.append(
            (typed("report", run, "--to", "csv", "--out", "scores.csv"), "for a spreadsheet")
        )

    return next_steps(outcome.run, commands)
