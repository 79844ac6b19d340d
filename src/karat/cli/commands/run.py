"""`karat run`: runs an experiment."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

__all__ = ["command"]


@click.command("run")
@options.experiment_file
@options.selection
@click.option("--resume", metavar="RUN", help="Continue a run: ask only what has no answer, score what has no score.")
@click.option("--retry-failed", is_flag=True, help="With --resume: also ask again where the agent was at fault.")
@options.allow_code
@options.results
@options.output(events=True)
def command(
    source: options.File,
    chosen: options.Chosen,
    resume: str | None,
    retry_failed: bool,
    allow_code: bool,
    results: Path,
    output: Output,
) -> Exit:
    """Run the experiment in FILE.

    Every answer is saved before it is scored. Ctrl-C waits for the trials in flight; a second
    Ctrl-C stops at once. --resume RUN then asks only what is missing, and nothing twice. RUN is a
    run folder, the beginning of its name or id, or `latest`.
    """
    import asyncio

    from karat import api
    from karat.cli.live import following
    from karat.cli.printed import aside
    from karat.cli.run_footer import show_outcome
    from karat.redact import Redactor

    if retry_failed and resume is None:
        raise click.UsageError("--retry-failed needs --resume RUN: a new run has no failed trials")
    with aside():
        experiment = source.load()
    output.say(*(f"warning: {text}" for text in experiment.warnings))
    with following(output, Redactor(experiment.secrets)) as status:
        carrying = api.carry_out(
            experiment,
            results=results,
            resume=resume,
            retry_failed=retry_failed,
            selection=chosen.as_selection(),
            status=status,
            handle_signals=True,
        )
        outcome = asyncio.run(carrying)
    return show_outcome(outcome, output, again=(source, chosen), allow_code=allow_code)
