"""`karat check`: everything that could stop a run, and what the run would do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("start", 20)  # in `karat --help`

_OF_DATASETS = {".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xlsx"}


@click.command("check", cls=WithFlags)
@options.experiment_file
@options.selection
@click.option("--no-start", is_flag=True, help="Start no MCP server and import no agent.")
@click.option(
    "--ask",
    is_flag=True,
    help="Have each judge score a right and a wrong answer; costs two judgements.",
)
@options.results
@options.output()
def command(
    *,
    source: options.File,
    chosen: options.Chosen,
    no_start: bool,
    ask: bool,
    results: Path,
    output: Output,
) -> Exit:
    """Check the experiment or study in FILE and describe it. Asks no agent and writes nothing.

    All faults are listed, each with its place and how to fix it. Each MCP server is started
    and asked for its tools; if it does not work, that is a fault. Exit code 2 if `karat run` would
    refuse to start.

    A study is a study.yaml, a folder with one or more of them, or a name from `karat list studies`.
    Exit code 2 also if its copy.jsonl does not reproduce the human results. --set then takes
    options of the dataset, e.g. wording=other.
    """
    from karat import kinds
    from karat.cli.checking import check
    from karat.cli.printed import aside
    from karat.errors import BadOption

    if source.file.suffix.lower() in _OF_DATASETS:
        file = source.file
        raise BadOption(
            "FILE",
            f"{file} is a dataset, not an experiment file; to check it: karat check --lint {file}",
        )

    for kind in kinds.installed().values():
        target = kind.check_target(source.file)
        if target is not None:
            return _dataset(kind, target, source, chosen, ask=ask, output=output)

    start = output.say if not no_start else None
    with aside():
        checked = check(
            source.load(), selection=chosen.as_selection(), results=results, start=start, ask=ask
        )

    output.result(str(checked), checked)
    output.say(*(f"warning: {text}" for text in checked.warnings))
    output.complain(*checked.problems)
    return Exit.DONE if checked.ready else Exit.CHANGE_SOMETHING


def _dataset(
    kind: Any,
    path: Path,
    source: options.File,
    chosen: options.Chosen,
    *,
    ask: bool,
    output: Output,
) -> Exit:
    from karat import plugins
    from karat.cli.linting import dataset_options
    from karat.cli.printed import aside
    from karat.errors import BadDataset, BadOption, Fault

    flags = {
        "--ask": ask,
        "--limit": chosen.limit,
        "--only-sample": chosen.only_samples,
        "--only-condition": chosen.only_conditions,
    }
    for flag, value in {**flags, "--env-file": source.env_file}.items():
        if value:
            raise BadOption(flag, f"is for an experiment file; this is a {kind.noun}")
    with aside():
        checked = plugins.build(
            kind, dataset_options(kind, source.settings), folder=Path.cwd()
        ).check(path)

    if checked.was_read or output.as_json:
        output.result(str(checked), checked)
    if checked.faults:
        faults = [
            Fault(place=fault.place, message=fault.message, line=fault.line)
            for fault in checked.faults
        ]
        raise BadDataset(checked.path, faults)

    output.say(*(f"warning: {text}" for text in checked.warnings))
    output.complain(*checked.problems)
    return Exit.DONE if checked.ready else Exit.CHANGE_SOMETHING
