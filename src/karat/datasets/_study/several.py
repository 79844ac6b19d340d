"""Several studies read at once, with the faults of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from karat.datasets._study.format import StudyFile
from karat.datasets._study.reading import read_study
from karat.errors import BadDataset, Fault

__all__ = ["read_studies"]

_AT_ONCE = 4  # most of the time goes to a process for each study's SQL


def read_studies(
    files: Sequence[Path], *, folder: Path, sql: bool = True, wording: str | None = None, relabel: bool = False
) -> list[StudyFile]:
    """The studies, in the order of the files. Raises BadDataset with every fault of every one.

    `folder`: where they lie; the place of a fault begins with the folder of its study.
    """

    def read(file: Path) -> StudyFile | BadDataset:
        try:
            return read_study(file, sql=sql, wording=wording, relabel=relabel)
        except BadDataset as bad:
            return bad

    if len(files) == 1 and files[0] == folder:
        return [read_study(files[0], sql=sql, wording=wording, relabel=relabel)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(read, files))
    faults = [
        Fault(place=f"{file.parent.name}: {fault.place}", message=fault.message, line=fault.line)
        for file, one in zip(files, found, strict=True)
        if isinstance(one, BadDataset)
        for fault in one.faults
    ]
    studies = [one for one in found if isinstance(one, StudyFile)]
    if relabel or wording is not None:
        faults += _with_form(files, found, "relabel" if relabel else "wording")
    faults += _alike(studies)
    if faults:
        raise BadDataset(str(folder), faults)
    return studies


def _with_form(files: Sequence[Path], found: Sequence[StudyFile | BadDataset], option: str) -> Iterator[Fault]:
    """Which of the studies have the form that is asked for, where some have it and some do not."""
    without = [isinstance(one, BadDataset) and any(fault.place == option for fault in one.faults) for one in found]
    names = [file.parent.name for file, lacks in zip(files, without, strict=True) if not lacks]
    if names and any(without):
        choice = f"studies: [{', '.join(names)}]"
        yield Fault(place="studies", message=f"those that have such a form can be chosen: `{choice}`")


def _alike(studies: Sequence[StudyFile]) -> Iterator[Fault]:
    """Names begin the ids of samples, so they must differ."""
    seen: dict[str, str] = {}
    for one in studies:
        folder = one.path.parent.name
        first = seen.setdefault(one.study, folder)
        if first != folder:
            yield Fault(place=f"{folder}: study", message=f"is called '{one.study}', as the study in '{first}' is")
