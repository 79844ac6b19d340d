"""Published human studies: a sample is one participant, whose tasks are turns of one session; in
games one group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict

from karat.documents.hub import HUB
from karat.documents.rows import has_key
from karat.errors import BadOption
from karat.kinds import AnswerFile, Dataset, DatasetPart, Kind, Linted, Preset, RecordedAnswers
from karat.kinds._samples import Packed
from karat_studies.kinds.study import on_demand, personas
from karat_studies.kinds.study.allowed import code_allowed
from karat_studies.kinds.study.analysis.comparison import StudyComparison
from karat_studies.kinds.study.analysis.model import StudySummary
from karat_studies.kinds.study.format import StudyDocument, StudyFile, studies_of
from karat_studies.kinds.study.people import people
from karat_studies.kinds.study.places import (
    Located,
    asked_study,
    chosen_arms,
    chosen_folders,
    chosen_of_several,
    is_study,
    locate,
    studies_below,
)
from karat_studies.kinds.study.reading import WORDING, read_studies
from karat_studies.kinds.study.recorded import ParticipantColumns, RecordedParticipants
from karat_studies.kinds.study.rounds import groups_of
from karat_studies.kinds.study.samples import (
    group_sample,
    person_sample,
    prompt_for,
    random_reply,
    read_reply,
    turn_question,
)

if TYPE_CHECKING:
    from click import Command

    from karat.analysis.comparison import Comparison, Side
    from karat.analysis.model import Summary
    from karat.analysis.parts import AnalysisInput, Part
    from karat.blocks import KindBlocks
    from karat.journal import KeptFile, RunFolder
    from karat.kind_views import Views
    from karat.records import Sample
    from karat.redact import Redactor
    from karat_studies.kinds.study.contents import CheckedStudies, ListedStudies, StudyPage

    _Maker = Callable[..., Sample]
    """Makes one sample, given its `position`."""

__all__ = ["Study"]

_T = TypeVar("_T")
Key = Annotated[str, Strict(), Field(min_length=1)]
Keys = Annotated[
    list[Key],
    BeforeValidator(
        lambda value: [] if value is None else [value] if isinstance(value, str) else value
    ),
]


class Study(Kind):
    """Published human experiments: who takes part, what they are shown, and how they answer
    (`study.yaml`).

    `path` is a `study.yaml`, a folder with one, a folder of several study folders, or a name: of a
    study included with karat (`karat list studies`), or `shipped` for all of them. Ids of samples
    begin with `STUDY/` if there are several; a study's participants do not depend on the other
    studies.
    """

    judged = False
    scorer = "replication"
    listed = "studies"
    noun = "study"
    noun_of_several = "studies"
    # participants' answers are not scores: conditions are compared by agreement with people
    compared = False
    parts = (StudySummary, StudyComparison)

    cached_from = 0  # its intervals take seconds, however few people answered
    has_random_replies = True
    turns_say_what_is_asked = True

    # `agent` is an experiment's: its faults are then those of a study
    file_keys = ("study", "arms", "findings", "participants", "agent")
    reading_options = {"allow_code": "", "allow_changed_code": ""}
    compared_by = "test by test"
    by_session = True

    content = "human studies"
    doubted = "published number"
    answer_file = AnswerFile(
        option="participants", rows="what a participant answered, one task or round per row"
    )

    @staticmethod
    def commands() -> Mapping[str, Command]:
        return {"study-tests": on_demand.study_tests}

    @staticmethod
    def parts_asked(dataset: Dataset, samples: Sequence[Sample]) -> tuple[DatasetPart, ...]:
        parts = []
        for study in studies_of(dataset):
            asked = []
            for sample in samples:
                if sample.detail["study"] == study.study:
                    asked.append(sample)

            participants = sum(len(sample.detail.get("members", (sample,))) for sample in asked)
            questions = sum(len(sample.turns) for sample in asked)
            counts = {"participant": participants, "question": questions}
            parts.append(DatasetPart(name=study.study, counts=counts))

        return tuple(parts)

    @staticmethod
    def looks_like(path: Path) -> bool:
        if path.suffix in {".yaml", ".yml"}:
            return not path.exists() or has_key(path, Study.file_keys)
        return path.is_dir() or not (path.suffix or path.exists() or path.parts[:1] == (HUB,))

    @staticmethod
    def recorded_columns() -> type[BaseModel]:
        return ParticipantColumns

    @staticmethod
    def recorded(path: Path, columns: BaseModel) -> RecordedAnswers:
        """The answers of participants: one row per participant and task, or member and round."""
        assert isinstance(columns, ParticipantColumns)
        return RecordedParticipants(path, columns)

    next_turn = staticmethod(turn_question)
    prompt = staticmethod(prompt_for)
    read = staticmethod(read_reply)
    random_reply = staticmethod(random_reply)

    @staticmethod
    def presets() -> Mapping[str, Preset]:
        return personas.presets()

    @staticmethod
    def prompt_problems(
        text: str, preset: str | None, attributes: Mapping[str, Collection[str]]
    ) -> tuple[list[str], list[str]]:
        """Attributes in a prompt that no study has; presets that would be empty for everyone."""
        return personas.prompt_problems(text, preset, attributes)

    @staticmethod
    def keep(dataset: Dataset, *, redact: Redactor) -> list[tuple[KeptFile, bytes]]:
        return on_demand.keep_studies(studies_of(dataset), redact=redact)

    @staticmethod
    def shipped(name: str | None) -> ListedStudies | StudyPage:
        """Raises BadOption for a name not included with karat."""
        if name is None:
            return on_demand.shipped_pages()
        return on_demand.shipped_page(name)

    @staticmethod
    def check_target(path: Path) -> Path | None:
        return asked_study(path)

    def check(self, path: Path) -> CheckedStudies:
        """Every fault of the studies, their contents, and whether their copies of people give
        people's result.
        """
        return on_demand.check_studies(self, path)

    @staticmethod
    def views() -> Views:
        return on_demand.StudyViews()

    @staticmethod
    def analyse(given: AnalysisInput) -> Part | None:
        """None if the scorer `replication` is not shown.

        Raises BadRun for studies that have changed since.
        """
        return on_demand.study(given)

    @staticmethod
    def sections(summary: Summary) -> KindBlocks:
        """PAS and ECS compared with people's results, study by study."""
        return on_demand.sections(summary)

    @staticmethod
    def compare(
        runs: tuple[RunFolder, RunFolder],
        summaries: tuple[Summary, Summary],
        pairs: Sequence[tuple[str, str]],
        sides: tuple[Side, Side],
        *,
        asked: Mapping[str, object],
    ) -> Comparison:
        """By participant and test, over the studies that both have, whatever their wording."""
        return on_demand.compare_studies(
            runs,
            summaries,
            pairs,
            sides,
            allow_code=code_allowed(asked),
        )

    class Options(BaseModel):
        """Who takes part, and which parts of the study are run."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        # of the participants, and of the order of their tasks
        seed: Annotated[int, Strict(), Field(ge=0)] = 0
        per_arm: Annotated[int, Strict(), Field(ge=1)] | None = (
            None  # participants in each arm; null: the study's number
        )
        studies: Keys = []  # in a folder of several: only these folders; empty: all
        arms: Keys = []  # only these; with several studies as study/arm; empty: all
        # only the arms of these: F1, sub_study/F1, with several studies study/F1; empty: all
        findings: Keys = []
        stop_after_unread: Annotated[int, Strict(), Field(ge=1)] | None = (
            2  # consecutive unreadable replies that end a participant's session; null: never
        )
        wording: Annotated[str, Strict(), Field(pattern=r"^[\w-]+$")] | None = (
            None  # of the materials: gain.WORDING.md replaces gain.md, if there is one
        )
        # shows other names and amounts, in studies that have any
        relabel: Annotated[bool, Strict()] = False
        reorder: Annotated[bool, Strict()] = False  # shows options in reverse order

    def __init__(self, options: Options) -> None:
        self._options = options

    @staticmethod
    def file_model() -> type[BaseModel]:
        """The content of a study file, for its JSON Schema."""
        return StudyDocument

    @staticmethod
    def locate(text: str, folders: Sequence[Path]) -> Located:
        """The study that `path` names, or the folder of several. Raises BadOption."""
        return locate(text, folders=folders)

    def attributes(self, path: Path) -> dict[str, tuple[str, ...]]:
        """Study → its participants' attributes, as named in `{{ profile.… }}`.

        Raises BadDataset, BadOption.
        """
        studies = self._read(path, sql=False)
        return {study.study: study.attributes for study in studies}

    def load(self, path: Path) -> Dataset:
        """The participants. Raises BadDataset with every fault, BadOption for unknown arms."""
        studies = self._read(path)
        several = _several(path)
        own = self._options
        options = {"arms": self._options.arms, "findings": self._options.findings}
        if several:
            chosen = chosen_of_several(studies, **options)
        else:
            chosen = {studies[0].study: chosen_arms(studies[0], **options)}

        kept = tuple(
            replace(study, reorder=own.reorder) for study in studies if study.study in chosen
        )
        makers = [queue for study in kept for queue in self._queues(study, chosen[study.study])]
        made = (make(position=position) for position, make in enumerate(in_turn(makers)))
        samples = Packed(map(_named_by_study, made) if several else made)
        if several:
            digest = sha256(
                "".join(f"{study.study} {study.sha256}\n" for study in kept).encode()
            ).hexdigest()
        else:
            digest = kept[0].sha256

        return Dataset(
            kind="study",
            path=path if several else kept[0].path,
            sha256=digest,
            samples=samples,
            parts=kept,
        )

    def lint(self, path: Path) -> Linted:
        """Human numbers that cannot be checked, and faults.

        Raises nothing for faults of studies.
        """
        return on_demand.lint(path, self)

    def _read(self, path: Path, *, sql: bool = True) -> list[StudyFile]:
        """The studies to run; one, if the path is not a folder of several."""
        own = self._options
        if own.relabel and own.wording is not None:
            raise BadOption("dataset.relabel", "has its own wording: leave out `wording`")
        if own.wording == WORDING:
            raise BadOption(
                "dataset.wording", f"'{WORDING}' goes with other amounts: use `relabel: true`"
            )

        files = [path]
        if _several(path):
            below = {file.parent.name: file for file in studies_below(path)}
            files = [below[name] for name in chosen_folders(list(below), own.studies)]
        elif own.studies:
            raise BadOption(
                "dataset.studies", "is for a folder of several studies; this path is one"
            )

        return read_studies(files, folder=path, sql=sql, wording=own.wording, relabel=own.relabel)

    def samples(self, study: StudyFile, arms: Sequence[str] | None = None) -> Iterator[Sample]:
        """One sample per participant, in games per group; all arms in turn.

        Without `arms`: of all arms.
        """
        for position, make in enumerate(
            in_turn(self._queues(study, list(study.arms) if arms is None else arms))
        ):
            yield make(position=position)

    def _queues(self, study: StudyFile, arms: Sequence[str]) -> list[list[_Maker]]:
        """The source of each sample, arm by arm; for within-subjects designs, those of all such
        arms together.
        """
        options = self._options
        stop = self._options.stop_after_unread
        alone: dict[tuple[str, ...], list[_Maker]] = {}
        for person in people(
            study,
            [name for name in arms if study.arms[name].rounds is None],
            seed=options.seed,
            per_arm=options.per_arm,
        ):
            make = partial(person_sample, study, person, seed=options.seed, stop_after_unread=stop)
            alone.setdefault(person.arms, []).append(make)

        queues = list(alone.values())
        for name in arms:
            rounds = study.arms[name].rounds
            if rounds is None:
                continue
            players = people(study, [name], seed=options.seed, per_arm=options.per_arm)
            queues.append(
                [
                    partial(
                        group_sample,
                        study,
                        name,
                        members,
                        name=f"{name}-group-{number:02d}",
                        stop_after_unread=stop,
                    )
                    for number, members in enumerate(groups_of(rounds, players), 1)
                ]
            )

        return queues


def in_turn(queues: Sequence[Sequence[_T]]) -> Iterator[_T]:
    """Items of several queues, interleaved so that any prefix has about its share of each.

    Changes during a run (an agent's version, its load) then affect all arms equally, and
    the first few include each arm. Among equals the earlier queue goes first.

    >>> "".join(in_turn(["aaaa", "bb", "cccc"]))
    'acbacacbac'
    """
    places = sorted(
        ((2 * at + 1) / (2 * len(queue)), number, at)
        for number, queue in enumerate(queues)
        for at in range(len(queue))
    )
    return (queues[number][at] for _, number, at in places)


def _several(path: Path) -> bool:
    return path.is_dir() and not is_study(path)


def _named_by_study(sample: Sample) -> Sample:
    """The same under its study's name: names may repeat between studies."""
    name = sample.detail["study"]
    metadata = {"study": name, **sample.metadata}
    return msgspec.structs.replace(sample, id=f"{name}/{sample.id}", metadata=metadata)


def study_samples(study: StudyFile) -> list[Sample]:
    """The participants of a study, all arms, with a dataset's defaults."""
    return list(Study(Study.Options()).samples(study))
