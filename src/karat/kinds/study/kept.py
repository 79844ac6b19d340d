"""A study in a run folder, and its own code (`reducer`), which runs only where the operator allows it."""

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
from karat.journal import RunFolder, StudyCopy, slugged
from karat.kinds.study.columns import attribute_type
from karat.kinds.study.experiments import Columns, Reducer
from karat.kinds.study.format import StudyFile
from karat.kinds.study.reading import read_kept_study

if TYPE_CHECKING:
    from karat.redact import Redactor

__all__ = ["keep_studies", "kept_studies", "load_reducer"]

_STANDS_FOR = {"number": 0.0, "text": "x"}


def keep_studies(studies: Sequence[StudyFile], *, redact: Redactor) -> list[tuple[StudyCopy, bytes]]:
    """What `run.json` says of each study, and the file that goes with it.

    Persons of a list are not kept but for their columns: those who took part stand in samples.jsonl.
    """
    found = []
    for study in studies:
        data = redact(study.data.decode("utf-8-sig")).encode()
        digest = sha256(data).hexdigest()
        given = [name for person in study.persons[:1] for name in person]
        copy = StudyCopy(
            study=study.study,
            file=f"{slugged(study.study)}-{digest[:8]}.yaml",
            sha256=digest,
            digest=study.sha256,
            columns={name: attribute_type(study, name) for name in given},
            wording=study.wording,
            relabel=study.relabel,
            reorder=study.reorder,
            folder=str(study.folder.absolute()) if study.reducer is not None else None,
            code=code_of(study) if study.reducer is not None else None,
        )
        found.append((copy, data))
    return found


def kept_studies(run: RunFolder) -> list[StudyFile]:
    """The studies of a run, without materials. Raises BadRun for what is not as the run left it.

    A run folder may come from anywhere: the files are held against their digests, and read with
    every check and limit of a study's own file.
    """
    found = []
    for copy in run.studies():
        person = {name: _STANDS_FOR.get(kind, "x") for name, kind in copy.columns.items()}
        path = Path(copy.folder) / "study.yaml" if copy.folder is not None else run.path / "studies" / copy.file
        try:
            study = read_kept_study(path, run.study(copy), persons=[person] if person else [])
        except BadDataset as bad:
            faults = "; ".join(str(fault) for fault in bad.faults[:3])
            raise BadRun(str(run.path), f"studies/{copy.file} is no study: {faults}") from bad
        if study.study != copy.study:
            raise BadRun(str(run.path), f"studies/{copy.file} is of '{study.study}', run.json says '{copy.study}'")
        found.append(replace(study, code=copy.code))
    return found


_MOST_NAMED = 3


def reducer_file(study: StudyFile) -> Path:
    """The file that `study.reducer` names: it lies in the study's folder, and nowhere else."""
    module = (study.reducer or "").partition(":")[0]
    return study.folder.joinpath(*module.split(".")).with_suffix(".py")


def code_of(study: StudyFile) -> dict[str, str]:
    """File, as seen from the study's folder → sha256, of the reducer and of every .py file beside it.

    A reducer may load what lies beside it. Files that cannot be read, and links out of the folder, are left out.
    """
    folder, found = study.folder.resolve(), {}
    for file in sorted(reducer_file(study).parent.glob("*.py")):
        if file.is_file() and file.resolve().is_relative_to(folder):
            with suppress(OSError):
                found[file.relative_to(study.folder).as_posix()] = sha256(file.read_bytes()).hexdigest()
    return found


def load_reducer(study: StudyFile, *, inside: Path, changed: bool = False) -> tuple[Reducer, str | None]:
    """The function, behind a check of what it gives; and in what its code is not the run's. Raises BadPlugin.

    The file is taken from the study's folder only: no library is imported by that name. It must
    still be the folder of the study that was run, and lie outside of the run folder `inside`. Code that is
    not what it was when the run was made is not loaded, unless `changed` says that it may be.
    """
    name = study.reducer or ""
    # Path.resolve raises RuntimeError where a link leads in a circle.
    file = Path(os.path.realpath(reducer_file(study)))
    if file.is_relative_to(inside.resolve()):
        raise BadPlugin(name, "lies in the run folder, and a run folder never brings code")
    if not file.is_file() or not file.is_relative_to(study.folder.resolve()):
        raise BadPlugin(name, f"there is no file {file.name} in the study's folder {study.folder}")
    # The folder must hold the study that the run keeps: else its code may be another's
    try:
        now = study.path.read_bytes()
    except OSError as error:
        raise BadPlugin(name, f"{study.path} cannot be read: {error.strerror}") from error
    if now.removeprefix(BOM_UTF8) != study.data:
        raise BadPlugin(name, f"{study.path} is no longer the study that was run; its code may have changed with it")
    differs = _changed(study)
    if differs is not None and study.code is not None and not changed:
        reason = f"{differs} since the run was made; look at it, then say --allow-changed-code (report, compare, …)"
        raise BadPlugin(name, f"its code is another: {reason}")
    function = getattr(_module(file, name), name.partition(":")[2], None)
    if not callable(function):
        raise BadPlugin(name, f"{file} has no function '{name.partition(':')[2]}'")
    return _Checked(function, name), differs


def _changed(study: StudyFile) -> str | None:
    """What of the code is not as the run recorded it; None: nothing."""
    if study.code is None:
        return "the run did not record it, so it may have changed"
    now = code_of(study)
    own = reducer_file(study).relative_to(study.folder).as_posix()
    before = {own: "", **study.code}  # it may have come later
    changed = [file for file, digest in before.items() if now.get(file) != digest]
    if not changed:
        return None
    shown = ", ".join(changed[:_MOST_NAMED]) + (
        f" and {len(changed) - _MOST_NAMED} more" * (len(changed) > _MOST_NAMED)
    )
    return f"{shown} changed"


def _module(file: Path, name: str) -> Any:
    private = f"_karat_study_{sha256(str(file).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(private, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with Caught() as caught:
        spec.loader.exec_module(module)
    if isinstance(caught.error, KeyboardInterrupt):
        raise caught.error
    if caught.error is not None:
        cause = f"{type(caught.error).__name__}: {caught.error}"
        raise BadPlugin(name, f"{file} cannot be imported: {cause}") from caught.error
    return module


class _Checked:
    """The function, held to what it must give: columns of one length."""

    def __init__(self, function: Any, name: str) -> None:
        self._function, self._name = function, name

    def __call__(self, columns: Columns) -> Columns:
        """Raises BadOption where the function fails."""
        with Caught() as caught:
            found = self._function({name: list(values) for name, values in columns.items()})
        if isinstance(caught.error, KeyboardInterrupt):
            raise caught.error
        if caught.error is not None:
            cause = f"{type(caught.error).__name__}: {caught.error}"
            raise BadOption("reducer", f"{self._name} failed: {cause}") from caught.error
        good = isinstance(found, Mapping) and all(
            isinstance(values, Sequence) and not isinstance(values, str) for values in found.values()
        )
        if not good or len({len(values) for values in found.values()}) > 1:
            raise BadOption("reducer", f"{self._name} must give a mapping of columns of one length")
        return {str(name): list(values) for name, values in found.items()}
