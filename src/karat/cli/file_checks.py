"""The work of `karat check FILE`: checks an experiment, or a dataset of a kind that has a check of
its own.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import msgspec

from karat import kinds, plugins
from karat.cli.asking_roles import with_roles_asked
from karat.cli.checking import check
from karat.cli.ending import Exit
from karat.cli.linting import dataset_options
from karat.cli.options import Chosen, File
from karat.cli.output import Output
from karat.cli.printed import aside
from karat.documents.reader import MAX_BYTES
from karat.documents.rows import has_key
from karat.documents.understood import Understood
from karat.errors import BadDataset, BadOption, Fault
from karat.files import open_regular
from karat.formats import OUTPUT_FORMAT, clean, plural

_MAY_BE_EITHER = {".json", ".yaml", ".yml", ""}
_OF_EXPERIMENTS = ("agent", "conditions", "dataset", "execution")
_OF_QUESTIONS = ("questions", "cases", "test_cases", "examples", "samples", "items")
"""Keys that no experiment has, of lists of questions beside the name of their `dataset`, say."""


def check_file(
    source: File, chosen: Chosen, *, start: bool, ask: bool, results: Path, output: Output
) -> Exit:
    """Prints what was found. Raises BadOption for a file that is not to be checked like this,
    BadExperiment or BadDataset with every fault.
    """
    for kind in kinds.installed().values():
        target = kind.check_target(source.file)
        if target is not None:
            _refuse_of_experiments(source, chosen, ask=ask, noun=kind.noun)
            with aside():
                checked = plugins.build(
                    kind, dataset_options(kind, source.overrides), folder=Path.cwd()
                ).check(target)

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

    ending = source.file.suffix.lower()
    is_dataset = ending not in _MAY_BE_EITHER or source.file.name.lower().endswith(".gz")
    if not is_dataset and ending and source.file.is_file():
        file = source.file
        is_experiment = has_key(file, _OF_EXPERIMENTS) or _is_experiment(file)
        is_dataset = not is_experiment or has_key(file, _OF_QUESTIONS)

    if is_dataset:
        name = kinds.kind_of(source.file)
        kind = kinds.of(name)
        _refuse_of_experiments(source, chosen, ask=ask, noun=kind.noun)
        with aside():
            options = dataset_options(kind, source.overrides)
            dataset = plugins.build(kind, options, folder=Path.cwd()).load(source.file)

        checked = CheckedDataset(
            file=str(source.file),
            kind=name,
            sha256=dataset.sha256,
            samples=len(dataset.samples),
            first_row=dataset.understood,
            warnings=dataset.warnings,
        )
        output.result(str(checked), checked)
        output.say(*(f"warning: {text}" for text in checked.warnings))
        return Exit.DONE

    def checked_experiment() -> Exit:
        say = output.say if start else None
        with aside():
            checked = check(
                source.load(), selection=chosen.as_selection(), results=results, start=say, ask=ask
            )

        output.result(str(checked), checked)
        output.say(*(f"warning: {text}" for text in checked.warnings))
        output.complain(*checked.problems)
        return Exit.DONE if checked.ready else Exit.CHANGE_SOMETHING

    return with_roles_asked(source.file, checked_experiment)


def _is_experiment(path: Path) -> bool:
    """Whether the file is an experiment that is written as JSON."""
    with suppress(OSError, ValueError, RecursionError):
        with open_regular(path, at_most=MAX_BYTES) as file:
            document = json.loads(file.read())

        return isinstance(document, dict) and {"agent", "conditions"} <= document.keys()

    return False


class CheckedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """`karat check FILE --json`, for a file of questions."""

    format: int = OUTPUT_FORMAT
    file: str
    kind: str
    sha256: str
    samples: int
    first_row: Understood | None  # as it was read; None: a format of its own
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{clean(self.file)}: {plural(self.samples, 'sample')} ({self.kind})"]
        if self.first_row is not None:
            lines += ["", "first row", *(f"  {line}" for line in self.first_row.lines())]
        return "\n".join(lines) + "\n"


def _refuse_of_experiments(source: File, chosen: Chosen, *, ask: bool, noun: str) -> None:
    """Raises BadOption for options that only an experiment file has."""
    flags = {
        "--ask": ask,
        "--limit": chosen.limit,
        "--only-sample": chosen.only_samples,
        "--only-condition": chosen.only_conditions,
    }
    for flag, value in {**flags, "--env-file": source.env_file}.items():
        if value:
            raise BadOption(flag, f"is for an experiment file; this is a {noun}")
