"""What a dataset kind is. One file a kind; each name is the file's name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from karat import plugins
from karat.blocks import KindBlocks
from karat.errors import BadOption, BadPlugin, Fault, UnknownPlugin
from karat.records import AllowCode, Answer, Condition, Reply, Sample, Score

if TYPE_CHECKING:
    from random import Random

    from pydantic import BaseModel

    from karat.analysis.comparison import Comparison, Side
    from karat.analysis.model import Summary
    from karat.analysis.parts import AnalysisInput, Part
    from karat.documents.rows import Rows
    from karat.journal import RunFolder, StudyCopy
    from karat.kind_views import Views
    from karat.redact import Redactor

__all__ = [
    "DEFAULT_KIND",
    "AnswerFile",
    "Column",
    "Dataset",
    "DatasetKind",
    "DatasetPart",
    "Doubted",
    "Kind",
    "Linted",
    "Preset",
    "RecordedAnswers",
    "TableInfo",
    "completed",
    "installed",
    "kind_of",
    "of",
    "of_sample",
    "quarantine_text",
    "read_rows",
    "sample_digest",
]


DEFAULT_KIND = "golden"
"""The kind of a dataset that names none."""


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Samples, in the order of the file, and the file they came from."""

    kind: str
    path: Path
    sha256: str  # hex, of the file's raw bytes
    samples: Sequence[Sample]
    commit: str | None = None  # hex, of the repository that the file is from; None: it is from this machine
    studies: tuple[object, ...] = ()  # human studies: those that are run, as they are shown

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


class AnswerFile(msgspec.Struct, frozen=True, kw_only=True):
    """The files of answers that `karat score FILE --kind NAME` takes for datasets of the kind NAME."""

    rows: str  # what a row holds, in words
    option: str  # of the agent `replay`, which says what the file's columns are called


class DatasetPart(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one part of a dataset is asked: of one study of several."""

    name: str
    participants: int
    questions: int  # under one condition, once


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


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A system prompt that comes with a kind; a condition names it: `preset: NAME`."""

    name: str
    summary: str
    text: str | None  # None: no system prompt


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table that `karat query` asks. NULL: not known or not applicable, as `meaning` says; never 0."""

    name: str
    type: str  # of karat.sql.TYPES
    meaning: str


class TableInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A table that `karat query` asks: what a row is, and its columns in order."""

    name: str
    rows: str
    columns: tuple[Column, ...]

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}


class ReplyValues(Protocol):
    """What was read in a reply."""

    @property
    def values(self) -> Mapping[str, Any]: ...  # field → answer
    @property
    def kinds(self) -> Mapping[str, str]: ...  # field → why it has none


class RecordedFaults(Protocol):
    """What is wrong with a file of recorded answers, for the command that scores it."""

    @property
    def rows(self) -> int: ...  # in the file
    @property
    def used(self) -> int: ...  # rows that answer a turn
    @property
    def columns(self) -> Mapping[str, str]: ...  # what each column was taken for
    @property
    def counts(self) -> Mapping[str, int]: ...  # kind of fault → rows or turns
    @property
    def lines(self) -> Sequence[str]: ...  # the counts as sentences
    @property
    def faults(self) -> Sequence[RecordedFault]: ...
    @property
    def hint(self) -> str | None: ...  # what may be the reason for the faults


class RecordedFault(Protocol):
    """One thing that is wrong with a file of recorded answers."""

    @property
    def kind(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def message(self) -> str: ...


class RecordedAnswers(Protocol):
    """Answers that were made elsewhere, in a file whose rows are of a form that only one kind knows."""

    path: Path
    repetitions: int  # the most answers of one sample under one condition

    @property
    def conditions(self) -> Collection[str]: ...  # in the order of the file

    def reply(self, sample: Sample, turn: int, condition: str, repetition: int) -> Reply: ...

    def census(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> RecordedFaults | None: ...

    def notes(self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int) -> dict[str, str]: ...


class Kind:
    """What the house asks of a kind of dataset, with what it gets from a kind that says nothing.

    A kind's class need not inherit from this: `of` lays it behind. Nothing here depends on the options of a dataset.
    """

    is_installed = True  # else only what every run has is known: scores, ledger, cost
    noun = "dataset"  # one of its files, in words
    unit = "question"  # what is paired, in words
    by_turn = False  # whether rates are over turns, clustered by sample
    compared = True  # whether conditions are compared on the scores themselves
    loss_bounds = True  # whether means come with worst- and best-case bounds for what is missing
    unscored = "the experiment names no scorer"  # why nothing was scored
    parts: tuple[type[Part], ...] = ()  # classes of what it adds to a Summary and to a Comparison

    tables: tuple[TableInfo, ...] = ()
    """Tables of `karat query` that only its runs have, without the columns that say where a row belongs:
    `run`, `trial`, `sample`, `condition`, `repetition` and `line`. `fill` gives the rows."""

    content = ""  # what its datasets hold, in words; empty: only the kind's name is known
    doubted = "sample"  # what `karat lint` counts, in words

    answer_file: AnswerFile | None = None  # None: no files of answers but those with one answer a row
    commands: Mapping[str, str] = {}
    """Of `karat score FILE --kind NAME`, for files that become no run: NAME → "module:command".

    A click command whose function gets the file's path and the `Output` first. Its module is loaded when `karat score`
    is called, by the command line alone, which it may import.
    """

    listed = ""  # what `karat list` calls the datasets that come with the kind; empty: none come with it

    compared_by = "question by question"  # how two conditions are compared, in words
    by_session = False  # whether a sample is a session of tasks, shown one by one
    has_quarantine = False  # whether `dataset.quarantine` may name a file that `karat lint` writes

    @staticmethod
    def looks_like(path: Path) -> bool:
        """Whether a file looks like a dataset of this kind. Raises BadDataset where it cannot be read."""
        del path
        return False

    @staticmethod
    def recorded_columns() -> type[BaseModel]:
        """What can be said of the columns of a file with answers that were made elsewhere, one row a turn or a part.

        Raises ValueError where the kind has no such files.
        """
        raise ValueError("answers of this kind of dataset have one row a sample")

    @staticmethod
    def recorded(path: Path, columns: BaseModel) -> RecordedAnswers:
        """Answers that were made elsewhere. Raises BadDataset with what is wrong with the file."""
        raise ValueError(f"answers of this kind of dataset have one row a sample: {path}, {columns}")

    has_random_replies = False  # whether `random_reply` gives any
    turns_say_what_is_asked = False  # whether the detail of a turn is for agents; else golden answers follow from it

    @staticmethod
    def next_turn(sample: Sample, turn: int, replies: Sequence[str | None]) -> str | None:
        """What is sent in an open turn (from 0), given the replies to all turns before it (None: there is none).

        None: nothing; neither this turn nor a later one of its session is asked any more. A function of its
        arguments alone, so that a run that goes on asks what it would have asked.
        """
        del replies
        return sample.turns[turn].question

    @staticmethod
    def prompt(condition: Condition, sample: Sample, session: int | None) -> str | None:
        """The condition's system prompt as it is sent in one session of a trial."""
        del sample, session
        return condition.system_prompt

    @staticmethod
    def presets() -> Mapping[str, Preset]:
        """System prompts that come with the kind, by name, from the one that says least to the one that says most."""
        return {}

    @staticmethod
    def prompt_problems(
        text: str, preset: str | None, attributes: Mapping[str, Collection[str]]
    ) -> tuple[list[str], list[str]]:
        """Faults and warnings of a system prompt, or of that of a preset.

        `attributes`: what the instance's `attributes` gives. Asked only where a kind has that.
        """
        del text, preset, attributes
        return [], []

    @staticmethod
    def read(sample: Sample, turn: int, text: str) -> ReplyValues:
        """What a reply says in one turn (from 0): each field read, or with the reason why it is not.

        Raises ValueError for a sample without fields.
        """
        raise ValueError(f"'{sample.id}' has no fields to read in turn {turn}")

    @staticmethod
    def random_reply(sample: Sample, turn: int, dice: Random) -> str:
        """A reply to one turn (from 0) in the form asked for, every answer as likely as any other.

        Raises ValueError for a sample without fields.
        """
        raise ValueError(f"'{sample.id}' has no fields to answer in turn {turn}")

    @staticmethod
    def keep(dataset: Dataset, *, redact: Redactor) -> Sequence[tuple[StudyCopy, bytes]]:
        """What a run folder keeps of the dataset: what `run.json` says of each part, and its file."""
        del dataset, redact
        return ()

    @staticmethod
    def shipped(name: str | None) -> object:
        """The page of one dataset that comes with the kind, or of all: a value whose `str` is for people."""
        raise BadOption("NAME", f"no dataset is called '{name}'")

    @staticmethod
    def parts_asked(dataset: Dataset, samples: Sequence[Sample]) -> tuple[DatasetPart, ...]:
        """How much of each part of a dataset these samples are; none where it has no parts."""
        del dataset, samples
        return ()

    @staticmethod
    def own_scorer(dataset: Dataset) -> str | None:
        """The scorer of a dataset for which none is named; None: the kind's `scorer`."""
        del dataset
        return None

    @staticmethod
    def judge(dataset: Dataset) -> dict[str, object] | None:
        """The `judge` of recorded answers for which no scorer is named; None: the kind's `scorer` suffices."""
        del dataset
        return None

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
    def sections(summary: Summary) -> KindBlocks:
        """What the kind adds to a report of a run."""
        del summary
        return KindBlocks()

    @staticmethod
    def fill(table: str, sample: Sample, record: Answer | Score) -> Iterable[Mapping[str, object]]:
        """Rows of one of `tables` for an answer or a score that counts, column → value; what is left out is NULL."""
        del table, sample, record
        return ()

    @staticmethod
    def views() -> Views:
        """How the viewer shows its runs."""
        from karat.kind_views import Views

        return Views()

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


class _NotInstalled(Kind):
    is_installed = False


@cache
def of(name: str) -> type[Kind]:
    """The kind that a run names, never imported from "module:Class"; the defaults where it is not installed."""
    try:
        found = plugins.find("kinds", name, allow_code=False)
    except UnknownPlugin:
        return _NotInstalled if name else Kind
    except BadPlugin:
        return Kind if ":" in name else _NotInstalled
    return completed(found)


def completed(plugin: type[Any]) -> type[Kind]:
    """The class of a kind, with the defaults of `Kind` behind its own."""
    return plugin if issubclass(plugin, Kind) else type(plugin.__name__, (plugin, Kind), {})


def of_sample(sample: Sample) -> type[Kind]:
    """The kind that a sample is of; the defaults where it names none, or one that is not installed."""
    return of(sample.kind)


@cache
def installed() -> Mapping[str, type[Kind]]:
    """Every kind that is installed, by its name: built-in ones first."""
    return {name: completed(plugin) for name, plugin in plugins.installed("kinds")}


def sample_digest(parts: Any) -> str:
    """A digest over whatever a sample consists of, keys sorted: 32 hex digits of blake2b."""
    from hashlib import blake2b

    return blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


def kind_of(path: Path) -> str:
    """Which kind of dataset a file looks like. Raises BadDataset where nothing can be read at all."""
    return next((name for name, kind in installed().items() if kind.looks_like(path)), DEFAULT_KIND)


def quarantine_text(doubted: Iterable[Doubted]) -> str:
    """The text of a quarantine file, which `dataset.quarantine` can name: one line a turn."""
    from karat.kinds._quarantine import written

    return written(doubted)


def read_rows(path: Path) -> Rows:
    """The rows of a file of any kind that datasets come in. Raises BadDataset where nothing can be read at all."""
    from karat.documents.rows import read_rows as read_file_rows

    return read_file_rows(path)
