"""A study in a run folder, and its own code (`reducer`), which runs only where the operator allows
it.
"""

from __future__ import annotations

import importlib.util
import os
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import BadDataset, BadOption, BadPlugin, BadRun, Caught
from karat.garbage import freeze_own_objects
from karat.journal import KeptFile, RunFolder, slugged
from karat_studies.kinds.study.columns import attribute_type
from karat_studies.kinds.study.experiments import Reducer
from karat_studies.kinds.study.format import StudyFile
from karat_studies.kinds.study.reading import read_kept_study
from karat_studies.kinds.study.repeats import Columns

if TYPE_CHECKING:
    from karat.redact import Redactor

_STANDS_FOR = {"number": 0.0, "text": "x"}


def keep_studies(studies: Sequence[StudyFile], *, redact: Redactor) -> list[tuple[KeptFile, bytes]]:
    """For each study: its entry in `run.json`, and the copy of its file.

    Of listed persons only the columns are kept: those who took part are in samples.jsonl.
    """
    copies = []
    for study in studies:
        data = redact(study.data.decode("utf-8-sig")).encode()
        digest = sha256(data).hexdigest()
        given = [name for person in study.persons[:1] for name in person]
        if study.reducer is not None:
            folder = str(study.folder.absolute())
            code = code_of(study)
        else:
            folder = None
            code = None

        copy = KeptFile(
            name=study.study,
            file=f"{slugged(study.study)}-{digest[:8]}.yaml",
            sha256=digest,
            digest=study.sha256,
            columns={name: attribute_type(study, name) for name in given},
            wording=study.wording,
            relabel=study.relabel,
            reorder=study.reorder,
            folder=folder,
            code=code,
        )
        copies.append((copy, data))

    return copies


def kept_studies(run: RunFolder) -> list[StudyFile]:
    """The studies of a run, without materials. Raises BadRun if a file has changed since the run.

    A run folder may come from anywhere: digests are verified, and the files are read with every
    check and limit that applies to a study's own file.
    """
    studies = []
    for copy in run.kept():
        person = {name: _STANDS_FOR.get(kind, "x") for name, kind in copy.columns.items()}
        if copy.folder is not None:
            path = Path(copy.folder) / "study.yaml"
        else:
            path = run.path / "studies" / copy.file

        try:
            if person:
                persons = [person]
            else:
                persons = []

            study = read_kept_study(path, run.kept_file(copy), persons=persons)
        except BadDataset as bad:
            faults = "; ".join(str(fault) for fault in bad.faults[:3])
            raise BadRun(str(run.path), f"studies/{copy.file} is not a study: {faults}") from bad

        if study.study != copy.name:
            raise BadRun(
                str(run.path),
                f"studies/{copy.file} is of '{study.study}', but run.json has '{copy.name}'",
            )

        studies.append(replace(study, code=copy.code))

    return studies


_MOST_NAMED = 3


def reducer_file(study: StudyFile) -> Path:
    """The file that `study.reducer` names. It is only looked for in the study's folder."""
    module = (study.reducer or "").partition(":")[0]
    return study.folder.joinpath(*module.split(".")).with_suffix(".py")


def code_of(study: StudyFile) -> dict[str, str]:
    """File, relative to the study's folder → sha256, for the reducer and every .py file beside it.

    A reducer may import the files beside it. Unreadable files, and links out of the folder, are
    left out.
    """
    folder = study.folder.resolve()
    digests = {}
    for file in sorted(reducer_file(study).parent.glob("*.py")):
        if file.is_file() and file.resolve().is_relative_to(folder):
            with suppress(OSError):
                digests[file.relative_to(study.folder).as_posix()] = sha256(
                    file.read_bytes()
                ).hexdigest()

    return digests


def load_reducer(
    study: StudyFile, *, inside: Path, changed: bool = False
) -> tuple[Reducer, str | None]:
    """The function, wrapped in a check of its results; and how its code differs from the run's.
    Raises BadPlugin.

    The file is only looked for in the study's folder: no library is imported by that name. The
    folder must still hold the study that was run, and lie outside the run folder `inside`. Code
    that has changed since the run is loaded only with `changed`.
    """
    name = study.reducer or ""
    # Path.resolve raises RuntimeError for a circular link.
    file = Path(os.path.realpath(reducer_file(study)))
    if file.is_relative_to(inside.resolve()):
        raise BadPlugin(name, "is in the run folder, and code in a run folder is never used")
    if not file.is_file() or not file.is_relative_to(study.folder.resolve()):
        raise BadPlugin(name, f"there is no file {file.name} in the study's folder {study.folder}")
    # The folder must still hold the study that was run: otherwise the code may belong to another
    # one
    try:
        now = study.path.read_bytes()
    except OSError as error:
        raise BadPlugin(name, f"{study.path} cannot be read: {error.strerror}") from error

    if now.removeprefix(BOM_UTF8) != study.data:
        raise BadPlugin(
            name,
            f"{study.path} is no longer the study that was run; its code may have changed with it",
        )

    # How the code differs from what the run recorded; None: it does not
    differs = None
    if study.code is None:
        differs = "the run did not record it, so it may have changed"
    else:
        code = code_of(study)
        own = reducer_file(study).relative_to(study.folder).as_posix()
        before = {own: "", **study.code}  # "": the file may be newer than the run
        others = []
        for path, digest in before.items():
            if code.get(path) != digest:
                others.append(path)

        if others:
            more = ""
            if len(others) > _MOST_NAMED:
                more = f" and {len(others) - _MOST_NAMED} more"
            differs = f"{', '.join(others[:_MOST_NAMED])}{more} changed"

    if differs is not None and study.code is not None and not changed:
        reason = (
            f"{differs} since the run was made; review it, then pass --allow-changed-code "
            f"(report, compare, …)"
        )
        raise BadPlugin(name, f"its code is not that of the run: {reason}")

    private = f"_karat_study_{sha256(str(file).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(private, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    freeze_own_objects()
    with Caught() as caught:
        spec.loader.exec_module(module)

    if (cause := _cause(caught)) is not None:
        raise BadPlugin(name, f"{file} cannot be imported: {cause}") from caught.error
    function = getattr(module, name.partition(":")[2], None)
    if not callable(function):
        raise BadPlugin(name, f"{file} has no function '{name.partition(':')[2]}'")
    return _Checked(function, name), differs


def _cause(caught: Caught) -> str | None:
    """What was raised, in words; None: nothing. Raises KeyboardInterrupt itself."""
    if isinstance(caught.error, KeyboardInterrupt):
        raise caught.error
    if caught.error is None:
        return None
    return f"{type(caught.error).__name__}: {caught.error}"


class _Checked:
    """The function, with a check that it returns columns of equal length."""

    def __init__(self, function: Any, name: str) -> None:
        self._function, self._name = function, name

    def __call__(self, columns: Columns) -> Columns:
        """Raises BadOption where the function fails."""
        with Caught() as caught:
            result = self._function({name: list(values) for name, values in columns.items()})

        if (cause := _cause(caught)) is not None:
            raise BadOption("reducer", f"{self._name} failed: {cause}") from caught.error
        good = isinstance(result, Mapping) and all(
            isinstance(values, Sequence) and not isinstance(values, str)
            for values in result.values()
        )
        if not good or len({len(values) for values in result.values()}) > 1:
            raise BadOption(
                "reducer", f"{self._name} must return a mapping of columns of equal length"
            )

        return {str(name): list(values) for name, values in result.items()}
