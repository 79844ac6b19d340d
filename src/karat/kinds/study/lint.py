"""What a study's published numbers leave open: for `karat lint`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import BadDataset, BadOption, Fault
from karat.kinds import Doubted, Linted
from karat.kinds.study.places import WHERE, locate, reads_as

if TYPE_CHECKING:
    from karat.kinds import Dataset
    from karat.kinds.study import Study

__all__ = ["lint"]

_MEANINGS = {"unchecked": "a published number that nothing could be compared with, or that is printed otherwise"}


def lint(path: Path, kind: Study) -> Linted:
    """The notes of every study, and the faults for which a run would refuse them. Raises BadDataset for no study."""
    try:
        path = locate(str(path), folders=[Path.cwd()]).path
    except BadOption as bad:
        message = str(bad).removeprefix(f"{bad.option}: ")
        raise BadDataset(str(path), [Fault(place="file", message=message)]) from bad
    if path.is_file() and path.name != WHERE and reads_as(path) == "experiment":
        message = "is an experiment file: `karat check` looks at it; lint is for its dataset"
        raise BadDataset(str(path), [Fault(place="file", message=message)])
    try:
        found = kind.load(path)
    except BadDataset as bad:
        return Linted(
            kind="study", path=path, sha256="", samples=0, turns=0, doubted=(), meanings=_MEANINGS,
            faults=tuple(bad.faults),
        )  # fmt: skip
    return Linted(
        kind="study",
        path=path,
        sha256=found.sha256,
        samples=len(found),
        turns=sum(len(sample.turns) for sample in found),
        doubted=tuple(_doubted(found)),
        meanings=_MEANINGS,
    )


def _doubted(found: Dataset) -> list[Doubted]:
    """One for each note; its place is the finding and the test."""
    doubted = []
    for study in found.studies:
        for note in study.warnings:
            where, colon, message = note.partition(": ")
            place, told = (where, message) if colon else ("file", note)
            one = place if found.path.is_file() else f"{study.study}: {place}"
            doubted.append(Doubted(id=one, turn=None, reasons=("unchecked",), evidence={"unchecked": {told: None}}))
    return doubted
