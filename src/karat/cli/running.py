"""The work of `karat run`: runs an experiment, also with scripted models."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from karat import api
from karat.cli.asking_roles import with_roles_asked
from karat.cli.checking import can_show
from karat.cli.ending import Exit
from karat.cli.live import following
from karat.cli.options import Chosen, File, Running
from karat.cli.output import Output, typed
from karat.cli.printed import aside
from karat.cli.run_footer import show_outcome
from karat.config import rehearsal
from karat.errors import BadOption
from karat.execution import run_in_own_loop
from karat.redact import Redactor


def run(source: File, chosen: Chosen, how: Running, *, results: Path, output: Output) -> Exit:
    """Runs the experiment, or continues its run, and prints the outcome.

    Raises OperatorError for what must be changed first.
    """
    if how.retry_failed and how.resume is None:
        raise click.UsageError("--retry-failed needs --resume RUN: a new run has no failed trials")
    if how.keep_workspaces:
        source.settings = (*source.settings, "execution.keep_workspaces=true")
    executor = how.executor or ("ray" if how.address is not None else None)
    if executor is not None:
        source.settings = (*source.settings, f"execution.executor={executor}")
    if how.address is not None:
        if not how.address:
            raise BadOption("--address", "is empty; expected HOST:PORT or auto")
        if executor != "ray":
            raise BadOption(
                "--address", "is for a Ray cluster: leave it out, or use --executor ray"
            )

        source.settings = (*source.settings, f"execution.ray.address={how.address}")

    def run_it() -> Exit:
        with aside():
            experiment = source.load()
        output.say(*(f"warning: {text}" for text in experiment.warnings))
        with following(output, Redactor(experiment.secrets)) as status:
            outcome = run_in_own_loop(
                api.carry_out(
                    experiment,
                    results=results,
                    resume=how.resume,
                    retry_failed=how.retry_failed,
                    selection=chosen.as_selection(),
                    status=status,
                    handle_signals=True,
                )
            )

        # of a large run, the dataset and the running sums; the summary needs the room
        del status, experiment
        gc.collect()
        return show_outcome(outcome, output, again=(source, chosen), asked=how.asked)

    return with_roles_asked(source.file, run_it)


def rehearse(
    source: File,
    chosen: Chosen,
    *,
    script: Path | None,
    log: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Runs the experiment with scripts as models, and prints the outcome. Raises like `run`."""
    with aside():
        experiment = source.load()
    output.say(
        "REHEARSAL: scripts on this machine play every model; the numbers below mean nothing"
    )
    output.say(*(f"warning: {text}" for text in experiment.warnings))
    with (
        rehearsal(experiment, script=script, log=log) as rehearsed,
        following(output, Redactor(experiment.secrets)) as status,
    ):
        carrying = api.carry_out(
            rehearsed.experiment,
            results=results,
            selection=chosen.as_selection(),
            status=status,
            handle_signals=True,
        )
        outcome = run_in_own_loop(carrying)

    code = show_outcome(outcome, output)
    info = outcome.run.info
    metrics = [metric for scorer in info.scorers for metric in scorer.metrics]
    shows = can_show(outcome.run.samples(), len(info.plan.conditions), info.kind, metrics=metrics)
    output.say(*([f"a real run will detect {shows}"] if shows else []))
    again = typed("run", str(source.file))
    output.say(
        f"{rehearsed.server.asked} requests were answered by scripts; for a real run: {again}"
    )
    return code
