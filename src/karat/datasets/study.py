"""Published human studies: a sample is one participant, whose tasks are turns of one session; in games one group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict

from karat.datasets import Dataset
from karat.datasets._packed import Packed
from karat.datasets._study_people import people
from karat.datasets._study_reading import read_study
from karat.datasets._study_rounds import groups_of
from karat.datasets._study_samples import group_sample, person_sample
from karat.errors import BadOption, did_you_mean

if TYPE_CHECKING:
    from karat.datasets._study_format import StudyFile
    from karat.records import Sample

__all__ = ["Study"]

Key = Annotated[str, Strict(), Field(min_length=1)]
Keys = Annotated[list[Key], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class Study:
    """A published human experiment: the participants, what each is shown, and how they answer (`study.yaml`)."""

    judged = False
    scorer = "replication"

    class Options(BaseModel):
        """Who takes part, and which parts of the study are run."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        seed: Annotated[int, Strict(), Field(ge=0)] = 0  # of the participants, and of the order of their tasks
        per_arm: Annotated[int, Strict(), Field(ge=1)] | None = (
            None  # participants in each arm; null: as the study says
        )
        arms: Keys = []  # only these; empty: all
        findings: Keys = []  # only the arms of these, as F1 or sub_study/F1; empty: all
        wording: Annotated[str, Strict(), Field(pattern=r"^[\w-]+$")] | None = (
            None  # of the materials: gain.WORDING.md is shown for gain.md, where there is one
        )
        reorder: Annotated[bool, Strict()] = False  # options are shown the last one first

    def __init__(self, options: Options) -> None:
        self._options = options

    def load(self, path: Path) -> Dataset:
        """The participants. Raises BadDataset with every fault of the study, BadOption for arms it does not have."""
        study = replace(read_study(path, wording=self._options.wording), reorder=self._options.reorder)
        arms = chosen_arms(study, arms=self._options.arms, findings=self._options.findings)
        samples = Packed()
        for sample in self._samples(study, arms):
            samples.append(sample)
        return Dataset(kind="study", path=study.path, sha256=study.sha256, samples=samples)

    def _samples(self, study: StudyFile, arms: Sequence[str]) -> Iterator[Sample]:
        """A sample a participant; in games one a group."""
        options = self._options
        alone = [name for name in arms if study.arms[name].rounds is None]
        position = 0
        for person in people(study, alone, seed=options.seed, per_arm=options.per_arm):
            yield person_sample(study, person, position=position, seed=options.seed)
            position += 1
        for name in arms:
            rounds = study.arms[name].rounds
            if rounds is None:
                continue
            players = people(study, [name], seed=options.seed, per_arm=options.per_arm)
            for number, members in enumerate(groups_of(rounds, players), 1):
                yield group_sample(study, name, members, name=f"{name}-group-{number:02d}", position=position)
                position += 1


def chosen_arms(study: StudyFile, *, arms: Collection[str] = (), findings: Collection[str] = ()) -> list[str]:
    """The arms that are run, in the order of the file. Raises BadOption for what the study does not have.

    `findings` are named by id, or as `sub_study/id` where an id stands twice.
    """
    _check("dataset.arms", arms, study.arms)
    known = [*(one.id for one in study.findings), *(f"{one.sub_study}/{one.id}" for one in study.findings)]
    _check("dataset.findings", findings, known)
    chosen = set(arms or study.arms)
    if findings:
        from karat.datasets._study_tests import arms_of_finding

        needed = {
            arm
            for finding in study.findings
            if {finding.id, f"{finding.sub_study}/{finding.id}"} & set(findings)
            for arm in arms_of_finding(study, finding)
        }
        chosen &= needed
        if not chosen:
            raise BadOption("dataset.findings", "none of the chosen arms is needed by these findings")
    return [name for name in study.arms if name in chosen]


def _check(option: str, asked: Iterable[str], known: Collection[str]) -> None:
    for name in asked:
        if name not in known:
            raise BadOption(option, f"the study has no '{name}'{did_you_mean(name, known)}")
