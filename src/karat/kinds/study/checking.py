"""What `karat check STUDY` finds out: every fault, what the study holds, and whether its copy of people is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat import formats
from karat.errors import BadDataset, BadOption
from karat.kinds.study.contents import contents_of
from karat.kinds.study.places import locate, study_of
from karat.kinds.study.text import held

if TYPE_CHECKING:
    from karat.kinds import Dataset
    from karat.kinds.study import Study
    from karat.kinds.study.contents import StudyContents

__all__ = ["CheckedStudies", "StudyFault", "asked_study", "check_studies"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""


class StudyFault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong in a study's files."""

    place: str
    line: int | None
    message: str


class CheckedStudies(msgspec.Struct, frozen=True, kw_only=True):
    """`karat check STUDY --json`."""

    format: int = FORMAT_VERSION
    path: str
    ready: bool  # `karat run` would take it, and its copy of people gives their result
    faults: tuple[StudyFault, ...]  # for which a run would refuse it
    studies: tuple[StudyContents, ...]  # empty where there are faults

    def __str__(self) -> str:
        blocks = ["\n".join(held(one)) for one in self.studies]
        if len(self.studies) > 1:
            blocks.append("\n".join(_together(self.studies)))
        return "\n\n\n".join(blocks) + "\n"

    @property
    def warnings(self) -> list[str]:
        """What cannot be checked, and what is left to a person."""
        said = [(one.name, warning) for one in self.studies for warning in one.warnings]
        return [f"{name}: {text}" if len(self.studies) > 1 else text for name, text in said]

    @property
    def problems(self) -> list[str]:
        """In what copies of people are none."""
        return [
            f"{one.name}, {_LAYERS[copy.layer]}: {text}"
            for one in self.studies
            for copy in one.copies
            for text in copy.apart
        ]


_LAYERS = {"statistic": "copy of people's numbers", "answers": "copy.jsonl"}


def asked_study(path: Path) -> Path | None:
    """The study or folder of studies that `karat check` is asked of; None: an experiment file.

    Raises BadOption for a name that is neither a file nor a study.
    """
    found = study_of(path)
    if found is None and not path.exists() and path.suffix not in {".yaml", ".yml"}:
        try:
            locate(str(path), folders=[Path.cwd()])
        except BadOption as bad:
            raise BadOption("FILE", str(bad).removeprefix(f"{bad.option}: ")) from bad
    return found


def check_studies(kind: Study, path: Path) -> CheckedStudies:
    """Reads the studies, and tests their copies."""
    try:
        found: Dataset = kind.load(path)
    except BadDataset as bad:
        faults = tuple(StudyFault(place=one.place, line=one.line, message=one.message) for one in bad.faults)
        return CheckedStudies(path=bad.path, ready=False, faults=faults, studies=())
    studies = tuple(
        contents_of(study, [one for one in found if one.detail["study"] == study.study]) for study in found.studies
    )
    good = all(copy.passed for one in studies for copy in one.copies)
    return CheckedStudies(path=str(found.path), ready=good, faults=(), studies=studies)


def _together(studies: Sequence[StudyContents]) -> list[str]:
    counts = [
        formats.plural(len(studies), "study", "studies"),
        formats.plural(sum(len(one.findings) for one in studies), "finding"),
        formats.plural(sum(len(one.tests) for one in studies), "test"),
        formats.plural(sum(one.participants for one in studies), "participant"),
        formats.plural(sum(one.questions for one in studies), "question"),
    ]
    return [f"together: {', '.join(counts)} under one condition"]
