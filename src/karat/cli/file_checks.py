"""The work of `karat check FILE`: checks an experiment, or a dataset of a kind that has a check of
its own.
"""

from __future__ import annotations

from pathlib import Path

from karat import kinds, plugins
from karat.cli.checking import check
from karat.cli.ending import Exit
from karat.cli.linting import dataset_options
from karat.cli.options import Chosen, File
from karat.cli.output import Output
from karat.cli.printed import aside
from karat.errors import BadDataset, BadOption, Fault
from karat.kinds import Kind

_OF_DATASETS = {".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xlsx"}


def check_file(
    source: File, chosen: Chosen, *, start: bool, ask: bool, results: Path, output: Output
) -> Exit:
    """Prints what was found. Raises BadOption for a file that is not to be checked like this,
    BadExperiment or BadDataset with every fault.
    """
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

    say = output.say if start else None
    with aside():
        checked = check(
            source.load(), selection=chosen.as_selection(), results=results, start=say, ask=ask
        )

    output.result(str(checked), checked)
    output.say(*(f"warning: {text}" for text in checked.warnings))
    output.complain(*checked.problems)
    return Exit.DONE if checked.ready else Exit.CHANGE_SOMETHING


def _dataset(
    kind: type[Kind],
    path: Path,
    source: File,
    chosen: Chosen,
    *,
    ask: bool,
    output: Output,
) -> Exit:
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
