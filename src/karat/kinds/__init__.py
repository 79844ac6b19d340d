"""What a dataset kind is. One file a kind; each name is the file's name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from karat import plugins
from karat.errors import BadOption, BadPlugin, Fault, UnknownPlugin
from karat.records import AllowCode, Condition, Sample

if TYPE_CHECKING:
    from random import Random

    from numpy.random import Generator

    from karat.analysis.comparison import Comparison, Side
    from karat.analysis.model import Summary
    from karat.analysis.parts import AnalysisInput, Part
    from karat.journal import RunFolder, StudyCopy
    from karat.kinds._rows import Rows
    from karat.kinds.study.bootstrap import StudyDraws
    from karat.kinds.study.contents import HeldTest as HeldTest
    from karat.kinds.study.contents import StudyContents as StudyContents
    from karat.kinds.study.copied import CopyTest as CopyTest
    from karat.kinds.study.experiments import Experiment as Experiment
    from karat.kinds.study.fields import Read
    from karat.kinds.study.format import Finding as Finding
    from karat.kinds.study.format import StudyFile as StudyFile
    from karat.kinds.study.format import Test as Test
    from karat.kinds.study.personas import PersonaNames
    from karat.kinds.study.tests import Reducer as Reducer
    from karat.kinds.study.tests import Response as Response
    from karat.redact import Redactor
    from karat.replication import StudyTest, TestScore

__all__ = [
    "Dataset",
    "DatasetKind",
    "Doubted",
    "Kind",
    "Linted",
    "keep_studies",
    "kept_studies",
    "kind_of",
    "of",
    "persona_names",
    "prompt_for",
    "quarantine_text",
    "read_rows",
    "sample_digest",
    "turn_question",
]


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Samples, in the order of the file, and the file they came from."""

    kind: str
    path: Path
    sha256: str  # hex, of the file's raw bytes
    samples: Sequence[Sample]
    studies: tuple[StudyFile, ...] = ()  # human studies: those that are run, as they are shown

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


class Doubted(msgspec.Struct, frozen=True, kw_only=True):
    """One golden answer that is not to be trusted, and why."""

    id: str  # of the sample
    turn: int | None  # from 0; None: of the sample as a whole
    reasons: tuple[str, ...]  # slugs
    evidence: dict[str, Any]  # reason → what shows it


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """What a dataset says against itself."""

    kind: str
    path: Path
    sha256: str  # hex, of the file's raw bytes
    samples: int  # that could be read
    turns: int  # of these
    doubted: tuple[Doubted, ...]  # in the order of the file
    meanings: dict[str, str]  # reason → what it says
    faults: tuple[Fault, ...] = ()  # for which a run would refuse the file


class StudyRun(msgspec.Struct, frozen=True, kw_only=True):
    """A study under one condition, in one repetition: what its participants are drawn again from."""

    responses: Sequence[Response]  # a row for everybody who was asked
    data: Mapping[str, Sequence[Any]]  # column → values: what `derive` gave of them; not yet reduced
    scores: Sequence[TestScore]  # the study's tests, as `karat.replication.score_tests` measured them


class DatasetKind(Protocol):
    """Reads one kind of file. Raises BadDataset with every fault of the file at once.

    `judged` (class attribute): whether answers need a judge when the file names no scorer.
    A kind may also have `scorer` (class attribute), the name of what scores it then;
    `lint(path) -> Linted`, which `karat lint` calls; `locate(text, folders)` (static), where what
    `dataset.path` says is not always a file; and `attributes(path)`, what is known of participants,
    whose system prompts may then say `{{ profile.… }}`.
    """

    judged: bool

    def load(self, path: Path) -> Dataset: ...


class Kind:
    """What the house asks of a kind of dataset, with what it gets from a kind that says nothing.

    A kind's class need not inherit from this: `of` lays it behind. Nothing here depends on the options of a dataset.
    """

    noun = "dataset"  # one of its files, in words
    unit = "question"  # what is paired, in words
    by_turn = False  # whether rates are over turns, clustered by sample
    compared = True  # whether conditions are compared on the scores themselves
    loss_bounds = True  # whether means come with worst- and best-case bounds for what is missing
    unscored = "the experiment names no scorer"  # why nothing was scored
    parts: tuple[type[Part], ...] = ()  # classes of what it adds to a Summary and to a Comparison

    listed = ""  # what `karat list` calls the datasets that come with the kind; empty: none come with it

    @staticmethod
    def shipped(name: str | None) -> object:
        """The page of one dataset that comes with the kind, or of all: a value whose `str` is for people."""
        raise BadOption("NAME", f"no dataset is called '{name}'")

    @staticmethod
    def check_target(path: Path) -> Path | None:
        """What `karat check` checks as a dataset of the kind, of a path or name; None: it is no such dataset.

        Raises BadOption for a name that seems to mean one.
        """
        del path
        return None

    @staticmethod
    def right_rule(run: RunFolder, wanted: str | None) -> tuple[str, str | None]:
        """The match that makes a turn right: the one wanted, else the run's own; a warning where that is unknown."""
        del run
        if wanted is not None:
            raise BadOption("--right", "is for runs over conversations")
        return "numerical", None

    @staticmethod
    def analyse(given: AnalysisInput) -> Part | None:
        """What the kind adds to the summary of a run; None: nothing."""
        del given
        return None

    @staticmethod
    def compare(
        runs: tuple[RunFolder, RunFolder],
        summaries: tuple[Summary, Summary],
        pairs: Sequence[tuple[str, str]],
        sides: tuple[Side, Side],
        *,
        allow_code: AllowCode,
    ) -> Comparison | None:
        """The whole comparison of two runs, where it is not by sample; None: by sample."""
        del runs, summaries, pairs, sides, allow_code
        return None


@cache
def of(name: str) -> type[Kind]:
    """The kind that a run names, never imported from "module:Class"; the defaults where it is not installed."""
    try:
        found = plugins.find("kinds", name, allow_code=False)
    except (BadPlugin, UnknownPlugin):
        return Kind
    return found if issubclass(found, Kind) else type(found.__name__, (found, Kind), {})


def sample_digest(parts: Any) -> str:
    """A digest over whatever a sample consists of, keys sorted: 32 hex digits of blake2b."""
    from hashlib import blake2b

    return blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


def kind_of(path: Path) -> str:
    """Which kind of dataset a file looks like. Raises BadDataset where nothing can be read at all."""
    from karat.kinds.conversation.reading import looks_like_conversations

    if path.suffix in {".yaml", ".yml"} or path.is_dir() or not (path.suffix or path.exists()):
        return "study"
    return "conversation" if looks_like_conversations(path) else "golden"


def quarantine_text(doubted: Iterable[Doubted]) -> str:
    """The text of a quarantine file, which `dataset.quarantine` can name: one line a turn."""
    from karat.kinds._quarantine import written

    return written(doubted)


def read_rows(path: Path) -> Rows:
    """The rows of a file of any kind that datasets come in. Raises BadDataset where nothing can be read at all."""
    from karat.kinds import _rows

    return _rows.read_rows(path)


def shipped_studies() -> dict[str, Path]:
    """The studies that come with karat: name → `study.yaml`, in the order of their names."""
    found = (Path(__file__).parent / "study" / "studies").glob("*/study.yaml")
    return {path.parent.name: path for path in sorted(found)}


def study_of(path: Path) -> Path | None:
    """The `study.yaml`, or folder of several studies, that a path or a shipped name means; None where it means none.

    A file counts where it is called `study.yaml`, or reads as a study.
    """
    from karat.kinds.study.places import study_of as found

    return found(path)


def read_study(path: Path) -> StudyFile:
    """A study, from its folder or its `study.yaml`. Raises BadDataset with every fault of it."""
    from karat.kinds.study import reading

    return reading.read_study(path)


def keep_studies(studies: Sequence[StudyFile], *, redact: Redactor) -> list[tuple[StudyCopy, bytes]]:
    """What a run folder keeps of its studies: what `run.json` says of each, and its file below `studies/`."""
    if not studies:
        return []
    from karat.kinds.study import kept

    return kept.keep(studies, redact=redact)


def kept_studies(run: RunFolder) -> list[StudyFile]:
    """The studies that a run folder keeps, for their analysis. Raises BadRun where they are not as it left them."""
    from karat.kinds.study import kept

    return kept.kept(run)


def study_samples(study: StudyFile) -> list[Sample]:
    """The participants of a study, all arms, as a dataset has them unless told otherwise."""
    from karat.kinds.study import Study

    return list(Study(Study.Options()).samples(study))


def study_contents(study: StudyFile, samples: Sequence[Sample], *, copies: bool = True) -> StudyContents:
    """What a study holds, with the samples that were made of it; with `copies` the human copy test as well."""
    from karat.kinds.study import contents

    return contents.contents_of(study, samples, copies=copies)


def read_answers(sample: Sample, turn: int, text: str) -> Read:
    """What a participant answered in one turn (from 0): each field read, or with the reason why it is not."""
    from karat.kinds.study import fields, samples

    return fields.read_answers(text, samples.fields_of(sample, turn))


def random_answers(sample: Sample, turn: int, dice: Random) -> dict[str, float | str | list[str]]:
    """What somebody answers in one turn (from 0) who does not read it: every answer is as likely as any other.

    In the shape that `read_answers` gives; the draws are those of `random_reply`.
    """
    from karat.kinds.study import at_random

    return at_random.random_values(sample.detail["fields"][turn], dice)


def random_reply(sample: Sample, turn: int, dice: Random) -> str:
    """The same as the text of a reply, in the form that was asked for."""
    from karat.kinds.study import at_random

    return at_random.random_text(sample.detail["fields"][turn], dice)


def study_question(sample: Sample, turn: int, replies: Sequence[str | None]) -> str:
    """What a participant is asked in one turn (from 0). `replies`: to every turn before it, None where there is none.

    In the later rounds of a game it depends on them; elsewhere it is the turn's question.
    """
    from karat.kinds.study import samples

    return samples.question_of(sample, turn, replies)


def turn_question(sample: Sample, turn: int, replies: Sequence[str | None]) -> str | None:
    """What is sent in an open turn (from 0), given the replies to all turns before it (None: there is none).

    None: nothing; neither this turn nor a later one of its seat is asked any more. A function of its
    arguments alone, so that a run that goes on asks what it would have asked.
    """
    from karat.kinds.study import seats

    return seats.turn_question(sample, turn, replies)


def prompt_for(condition: Condition, sample: Sample, seat: int | None) -> str | None:
    """The condition's system prompt as who sits there reads it: in a study, with {{ profile.… }} filled."""
    if condition.system_prompt is None or "study" not in sample.detail:
        return condition.system_prompt
    from karat.kinds.study import seats

    return seats.filled_prompt(condition.system_prompt, sample, seat)


def persona_names(prompt: str, attributes: Collection[str]) -> PersonaNames:
    """What a study's system prompt asks for, of participants with these attributes."""
    from karat.kinds.study import personas

    return personas.persona_names(prompt, attributes)


def study_responses(sample: Sample, values: Sequence[Mapping[str, Any] | None]) -> list[Response]:
    """The rows of `responses` of one sample, from the answers read in each of its turns; None: there was no reply."""
    from karat.kinds.study import samples

    return samples.responses_of(sample, values)


def study_tests(study: StudyFile, responses: Sequence[Response], *, reducer: Reducer | None = None) -> list[StudyTest]:
    """The tests of a study with both sides: people's, and what the responses give.

    `reducer`: the function that `study.reducer` names, where its code may run. Raises BadOption for
    SQL that fails, and for a reducer that is needed and was not allowed.
    """
    from karat.kinds.study.tests import to_study_tests

    return to_study_tests(study, responses, reducer=reducer)


def study_experiments(
    study: StudyFile,
    experiments: Sequence[Sequence[Response]],
    *,
    reducer: Reducer | None = None,
    refused: str | None = None,
    arms: Collection[str] = (),
) -> list[Experiment]:
    """The tests of several experiments with one study, each with the rows of `data` that they were made from.

    Raises nothing for what cannot be computed: those tests have no agent's side and say why.
    `refused`: why its `reducer` does not run. `arms`: those that were run; empty: all.
    """
    from karat.kinds.study import experiments as made

    return made.carried_out(study, experiments, reducer=reducer, refused=refused, arms=arms)


def study_reducer(study: StudyFile, *, inside: Path, changed: bool = False) -> tuple[Reducer, str | None]:
    """The function that `study.reducer` names, out of the study's folder: its code is imported, and runs when called.

    `inside`: a run folder, which never brings code. With it comes in what the code is not that of when the run was
    made; None: in nothing. Raises BadPlugin, for changed code too unless `changed` allows it.
    """
    from karat.kinds.study import reducer

    return reducer.load_reducer(study, inside=inside, changed=changed)


def study_draws(
    study: StudyFile,
    runs: Sequence[StudyRun],
    *,
    rng: Generator,
    replicates: int = 2_000,
    convention: str = "humanstudy",
    reducer: Reducer | None = None,
) -> list[StudyDraws]:
    """Replicates of the study's tests in every run, from participants (in games groups) drawn again.

    One draw serves all tests of the study and all runs, by participant: differences between them are
    paired. `reducer`: the study's own code, where it may run; it runs in each of 200 replicates.
    """
    from karat.kinds.study import bootstrap

    return bootstrap.study_draws(study, runs, rng=rng, replicates=replicates, convention=convention, reducer=reducer)
