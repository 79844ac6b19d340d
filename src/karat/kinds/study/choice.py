"""Which studies of a folder are run, and which of their arms, as `studies`, `arms` and `findings` choose them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from karat.errors import BadOption, did_you_mean

if TYPE_CHECKING:
    from karat.kinds.study.format import Finding, StudyFile

__all__ = ["chosen_arms", "chosen_folders", "chosen_of_several"]


def chosen_folders(names: Sequence[str], asked: Sequence[str]) -> list[str]:
    """The folders that `studies` names, in the order of the folders; all, where it names none. Raises BadOption."""
    _check("dataset.studies", asked, names, "there is no study")
    return [name for name in names if name in asked or not asked]


def chosen_arms(study: StudyFile, *, arms: Collection[str] = (), findings: Collection[str] = ()) -> list[str]:
    """The arms that are run, in the order of the file. Raises BadOption for what the study does not have.

    `findings` are named by id, or as `sub_study/id` where an id stands twice; the name of the
    study may stand before either.
    """
    arms, known = [_own(study, name, study.arms) for name in arms], _finding_names(study)
    findings = [_own(study, name, known) for name in findings]
    _check("dataset.arms", arms, study.arms)
    _check("dataset.findings", findings, known)
    chosen = _chosen(study, arms, findings)
    if not chosen:
        raise BadOption("dataset.findings", "none of the chosen arms is needed by these findings")
    return chosen


def chosen_of_several(
    studies: Sequence[StudyFile], *, arms: Collection[str] = (), findings: Collection[str] = ()
) -> dict[str, list[str]]:
    """The arms of each study that has any to run. Names are `study/arm`, `study/finding` or `study/sub_study/finding`.

    A study of which nothing is named, while others are, is not run. Raises BadOption.
    """
    none = "no study that is run has"
    _check("dataset.arms", arms, [f"{one.study}/{name}" for one in studies for name in one.arms], none)
    known = [f"{one.study}/{name}" for one in studies for name in _finding_names(one)]
    _check("dataset.findings", findings, known, none)
    chosen = {}
    for one in studies:
        own_arms, own_findings = _below(one, arms), _below(one, findings)
        if (arms and not own_arms) or (findings and not own_findings):
            continue
        chosen[one.study] = _chosen(one, own_arms, own_findings)
    chosen = {name: some for name, some in chosen.items() if some}
    if not chosen:
        raise BadOption("dataset.findings", "none of the chosen arms is needed by these findings")
    return chosen


def _chosen(study: StudyFile, arms: Collection[str], findings: Collection[str]) -> list[str]:
    chosen = set(arms or study.arms)
    if findings:
        from karat.kinds.study.tests import arms_of_finding

        asked = [one for one in study.findings if {one.id, f"{one.sub_study}/{one.id}"} & set(findings)]
        chosen &= {arm for finding in asked for arm in arms_of_finding(study, finding)}
    return [name for name in study.arms if name in chosen]


def _finding_names(study: StudyFile) -> list[str]:
    return [name for one in study.findings for name in _names(one)]


def _names(finding: Finding) -> list[str]:
    return [finding.id, *([f"{finding.sub_study}/{finding.id}"] if finding.sub_study else [])]


def _own(study: StudyFile, name: str, known: Collection[str]) -> str:
    """The name without the study's, unless it is one of the study's own with it."""
    return name if name in known else name.removeprefix(f"{study.study}/")


def _below(study: StudyFile, names: Iterable[str]) -> list[str]:
    return [name.removeprefix(f"{study.study}/") for name in names if name.startswith(f"{study.study}/")]


def _check(option: str, asked: Iterable[str], known: Collection[str], what: str = "the study has no") -> None:
    for name in asked:
        if name not in known:
            raise BadOption(option, f"{what} '{name}'{did_you_mean(name, known)}")
