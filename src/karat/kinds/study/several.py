"""Several studies read at once, with the faults of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from karat.errors import BadDataset, Fault, did_you_mean
from karat.kinds.study.format import StudyFile
from karat.kinds.study.forms import wordings
from karat.kinds.study.reading import read_study

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
    form = "relabel" if relabel else "wording" if wording is not None else None
    faults = [
        Fault(place=f"{file.parent.name}: {fault.place}", message=fault.message, line=fault.line)
        for file, one in zip(files, found, strict=True)
        if isinstance(one, BadDataset)
        for fault in one.faults
        if fault.place != form
    ]
    studies = [one for one in found if isinstance(one, StudyFile)]
    if form is not None:
        faults += _without_form(files, found, form=form, wording=wording)
    faults += _alike(studies)
    if faults:
        raise BadDataset(str(folder), faults)
    return studies


def _without_form(
    files: Sequence[Path], found: Sequence[StudyFile | BadDataset], *, form: str, wording: str | None
) -> Iterator[Fault]:
    """Which of the studies lack the form that is asked for, and how the others are chosen: in one fault."""
    lacking = [isinstance(one, BadDataset) and any(fault.place == form for fault in one.faults) for one in found]
    if not any(lacking):
        return
    what = "no other names and amounts" if form == "relabel" else f"no wording '{wording}'"
    if all(lacking):
        known = {name for file in files for name in wordings(file.parent.rglob("*.md"))} if wording is not None else ()
        hint = did_you_mean(wording, known) if wording is not None else ""
        yield Fault(place=form, message=f"{what} in any of the {len(files)} studies{hint}")
        return
    without, having = ([file.parent.name for file, one in zip(files, lacking, strict=True) if one is lacks]
                       for lacks in (True, False))  # fmt: skip
    message = f"{what} in {len(without)} of {len(files)} studies: {', '.join(without)}"
    yield Fault(place=form, message=f"{message}; those that have some can be chosen: `studies: [{', '.join(having)}]`")


def _alike(studies: Sequence[StudyFile]) -> Iterator[Fault]:
    """Names begin the ids of samples, so they must differ."""
    seen: dict[str, str] = {}
    for one in studies:
        folder = one.path.parent.name
        first = seen.setdefault(one.study, folder)
        if first != folder:
            yield Fault(place=f"{folder}: study", message=f"is called '{one.study}', as the study in '{first}' is")
