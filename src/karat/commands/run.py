"""`karat run`: runs an experiment."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("run", 10)  # in `karat --help`


class _How(options.Options):
    """How to run the experiment."""

    resume: str | None = options.option(
        "--resume",
        metavar="RUN",
        help="Continue a run: ask only what is unanswered, score only what is unscored.",
    )
    retry_failed: bool = options.option(
        "--retry-failed",
        is_flag=True,
        help="With --resume: also retry the trials that failed because of the agent.",
    )
    keep_workspaces: bool = options.option(
        "--keep-workspaces",
        is_flag=True,
        help="Keep every workspace as its trial left it, in the run folder.",
    )
    executor: str | None = options.option(
        "--executor",
        type=click.Choice(["local", "ray"]),
        help=(
            "Run the trials in this process or on a Ray cluster; default: `execution.executor` in "
            "the file."
        ),
    )
    address: str | None = options.option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster; implies --executor ray. Default: `execution.ray.address` in the "
        "file, else a cluster on this machine for this run only.",
    )


@click.command("run", cls=WithFlags)
@options.experiment_file
@options.shard_selection
@options.gathered("how", _How)
@options.allow_code
@options.results
@options.output(events=True)
def command(
    source: options.File,
    chosen: options.Chosen,
    how: _How,
    allow_code: bool,
    results: Path,
    output: Output,
) -> Exit:
    """Run the experiment in FILE.

    Every answer is saved before it is scored. Ctrl-C waits for the trials in flight; a second
    Ctrl-C stops at once. --resume RUN then asks only what is missing, nothing twice. RUN is a run
    folder, the beginning of its name or id, or `latest`.
    """
    import gc

    from karat import api
    from karat.cli.live import following
    from karat.cli.printed import aside
    from karat.cli.run_footer import show_outcome
    from karat.errors import BadOption
    from karat.execution import run_in_own_loop
    from karat.redact import Redactor

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
    return show_outcome(outcome, output, again=(source, chosen), allow_code=allow_code)
