"""`karat run --rehearse`: runs an experiment with scripted models."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output, typed


@click.command("run --rehearse")
@options.experiment_file
@options.selection
@click.option(
    "--script",
    type=options.PATH,
    metavar="PATH",
    help="What the models say, as YAML; without it, replies are made up.",
)
@click.option(
    "--log",
    type=options.FILE,
    metavar="PATH",
    help="Append every request and reply of the models to this file, as lines of JSON.",
)
@options.rehearsed_results
@options.output(events=True)
def command(
    source: options.File,
    chosen: options.Chosen,
    script: Path | None,
    log: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Run the experiment in FILE with scripted models.

    Needs no API key and no provider, and costs nothing. A server on this machine plays the models
    of agent and judge; MCP servers are the real ones. Without --script the judge's scores mean
    nothing. The run and its reports say so.
    """
    from karat import api
    from karat.cli.checking import can_show
    from karat.cli.live import following
    from karat.cli.printed import aside
    from karat.cli.run_footer import show_outcome
    from karat.config import rehearsal
    from karat.execution import run_in_own_loop
    from karat.redact import Redactor

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
    output.say(*([f"a real run can show {shows}"] if shows else []))
    again = typed("run", str(source.file))
    output.say(
        f"{rehearsed.server.asked} requests were answered by scripts; for a real run: {again}"
    )
    return code
