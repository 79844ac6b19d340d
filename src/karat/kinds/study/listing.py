"""`karat list studies`: the human studies that come with karat, each in a line or on a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from karat import formats
from karat.errors import BadOption, did_you_mean
from karat.kinds.study.contents import contents_of
from karat.kinds.study.places import shipped_studies
from karat.kinds.study.reading import read_study
from karat.kinds.study.text import held, table

if TYPE_CHECKING:
    from karat.kinds.study.contents import StudyContents

__all__ = ["ListedStudies", "StudyPage", "studies", "study"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""

_WIDEST = 60  # columns of a title or a source


class ListedStudy(msgspec.Struct, frozen=True, kw_only=True):
    """One study in a line."""

    name: str
    title: str
    domain: str
    participants: int
    questions: int  # asked under one condition, once
    findings: int
    tests: int
    source: str
    wordings: tuple[str, ...]  # what `dataset.wording` may be
    relabelled: bool  # whether `dataset.relabel` shows other names and amounts


class ListedStudies(msgspec.Struct, frozen=True, kw_only=True):
    """`karat list studies --json`."""

    format: int = FORMAT_VERSION
    family: str = "studies"
    studies: tuple[ListedStudy, ...]

    def __str__(self) -> str:
        head = ("name", "title", "domain", "participants", "findings", "tests", "forms", "source")
        rows = [
            (
                one.name,
                formats.excerpt(one.title, _WIDEST),
                one.domain,
                *map(formats.count, (one.participants, one.findings, one.tests)),
                ", ".join([*one.wordings, *["relabelled"] * one.relabelled]),
                _authors(one.source),
            )
            for one in self.studies
        ]
        return "\n".join([*table([head, *rows])]) + "\n"


class StudyPage(msgspec.Struct, frozen=True, kw_only=True):
    """`karat list studies NAME --json`."""

    format: int = FORMAT_VERSION
    study: StudyContents

    def __str__(self) -> str:
        use = f"In an experiment file: dataset: {{kind: study, path: {self.study.name}}}"
        return "\n".join([*held(self.study), "", f"Files: {self.study.path}", use]) + "\n"


def studies() -> ListedStudies:
    """Every study that comes with karat."""
    found = [_contents(name) for name in shipped_studies()]
    return ListedStudies(
        studies=tuple(
            ListedStudy(
                name=one.name,
                title=one.title,
                domain=one.domain,
                participants=one.participants,
                questions=one.questions,
                findings=len(one.findings),
                tests=len(one.tests),
                source=one.source,
                wordings=one.wordings,
                relabelled=one.relabelled,
            )
            for one in found
        )
    )


def study(name: str) -> StudyPage:
    """One study. Raises BadOption for a name that does not come with karat."""
    known = shipped_studies()
    if name not in known:
        hint = did_you_mean(name, known)
        raise BadOption("NAME", f"no study '{name}' comes with karat{hint}; of one of yours: `karat check STUDY`")
    return StudyPage(study=_contents(name))


def _contents(name: str) -> StudyContents:
    from karat.kinds.study import study_samples

    study = read_study(shipped_studies()[name])
    return contents_of(study, study_samples(study), copies=False)


def _authors(source: str) -> str:
    """Who and when, of a source that begins as a list of references does.

    >>> _authors("Tversky, A., & Kahneman, D. (1981). The framing of decisions. Science, 211, 453-458.")
    'Tversky & Kahneman (1981)'
    """
    before, year, rest = source.partition(" (")
    names = re.findall(r"(?:^|[,&] )([^\W\d_][\w' -]+), [^\W\d_]\.", before)
    if not names or not year:
        return formats.excerpt(source, _WIDEST)
    told = (
        f"{names[0]} et al." if len(names) > 3 else " & ".join([", ".join(names[:-1]), names[-1]]).removeprefix(" & ")
    )
    return formats.excerpt(f"{told} ({rest.partition(')')[0]})", _WIDEST)
