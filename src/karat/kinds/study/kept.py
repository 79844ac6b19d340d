"""A study in a run folder: what is kept so that the analysis needs nothing from outside, and how it is read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import BadDataset, BadRun
from karat.journal import RunFolder, StudyCopy, slugged
from karat.kinds.study.columns import attribute_type
from karat.kinds.study.format import StudyFile
from karat.kinds.study.reading import read_kept_study
from karat.kinds.study.reducer import code_of

if TYPE_CHECKING:
    from karat.redact import Redactor

__all__ = ["keep_studies", "kept_studies"]

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
            told = "; ".join(str(fault) for fault in bad.faults[:3])
            raise BadRun(str(run.path), f"studies/{copy.file} is no study: {told}") from bad
        if study.study != copy.study:
            raise BadRun(str(run.path), f"studies/{copy.file} is of '{study.study}', run.json says '{copy.study}'")
        found.append(replace(study, code=copy.code))
    return found
