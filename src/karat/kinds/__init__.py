"""What a dataset kind is. One file per kind, with the kind's name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from karat import plugins
from karat.blocks import KindBlocks
from karat.documents.row_list import Rows
from karat.documents.rows import has_key
from karat.documents.rows import read_rows as read_file_rows
from karat.errors import BadOption, BadPlugin, Fault, UnknownPlugin
from karat.index.cache import LARGE
from karat.kind_views import Views
from karat.records import Answer, Condition, Reply, Sample, Score, Turn, sample_digest

if TYPE_CHECKING:
    from random import Random

    from click import Command
    from pydantic import BaseModel

    from karat.analysis.comparison import Comparison, Side
    from karat.analysis.model import Summary
    from karat.analysis.parts import AnalysisInput, Part, TurnScoring
    from karat.documents.understood import Understood
    from karat.journal import KeptFile, RunFolder, ScorerInfo
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
    commit: str | None = None  # hex, of the file's repository; None: a local file
    warnings: tuple[str, ...] = ()  # what was left out of the file, or is doubtful in it
    parts: tuple[object, ...] = ()  # as the kind shows them, if a dataset may have several
    understood: Understood | None = None  # the first row as it was read
    unread: int = 0  # further rows of the file, which nothing depends on

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


class Doubted(msgspec.Struct, frozen=True, kw_only=True):
    """One doubtful golden answer, and why."""

    id: str  # of the sample
    turn: int | None  # from 0; None: the whole sample
    reasons: tuple[str, ...]  # slugs
    evidence: dict[str, Any]  # reason → its evidence


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """Contradictions in a dataset."""

    kind: str
    path: Path
    sha256: str  # hex, of the file's raw bytes
    samples: int  # that could be read
    turns: int  # of these
    doubted: tuple[Doubted, ...]  # in the order of the file
    meanings: dict[str, str]  # reason → its meaning
    faults: tuple[Fault, ...] = ()  # faults that make a run refuse the file


class AnswerFile(msgspec.Struct, frozen=True, kw_only=True):
    """The files of answers that `karat score FILE --kind NAME` takes for datasets of the kind
    NAME.
    """

    rows: str  # a description of a row
    option: str  # of the agent `replay`, for the names of the file's columns


class DatasetPart(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one part of a dataset is asked, for a kind whose datasets have parts."""

    name: str
    counts: dict[str, int]  # what it has → how many, under one condition, once


class DatasetKind(Protocol):
    """Reads one kind of file. Raises BadDataset with every fault of the file at once.

    `judged` (class attribute): whether answers need a judge if the file names no scorer.
    A kind may also have `scorer` (class attribute), the name of its default scorer;
    `first(count)`, the same kind for a run of the first samples, which may leave other rows unread;
    `lint(path) -> Linted`, which `karat check --lint` calls; `locate(text, folders)` (static), if
    `dataset.path` is not always a file; and `attributes(path)`, the attributes of participants,
    whose system prompts may then contain `{{ profile.… }}`.
    """

    judged: bool

    def load(self, path: Path) -> Dataset: ...


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A system prompt that comes with a kind; a condition names it: `preset: NAME`."""

    name: str
    summary: str
    text: str | None  # None: no system prompt


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table for `karat query`.

    NULL: not known or not applicable, see `meaning`; never 0.
    """

    name: str
    type: str  # of karat_query.sql.TYPES
    meaning: str


class TableInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A table for `karat query`: the meaning of a row, and its columns in order."""

    name: str
    rows: str
    columns: tuple[Column, ...]

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}


class ReplyValues(Protocol):
    """The parsed fields of a reply."""

    @property
    def values(self) -> Mapping[str, Any]: ...  # field → answer
    @property
    def kinds(self) -> Mapping[str, str]: ...  # field → why it has none


class RecordedFault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a file of recorded answers."""

    kind: str
    place: str  # "line 7", or a sample
    message: str
    count: int = 1  # rows, or turns that have none


class RecordedFaults(msgspec.Struct, frozen=True, kw_only=True):
    """A file of recorded answers compared with the dataset, for the command that scores it."""

    rows: int  # in the file
    used: int  # rows that answer a turn
    turns: int  # in the dataset, over all conditions and repetitions
    columns: Mapping[str, str]  # the meaning of each column
    counts: Mapping[str, int]  # kind of fault → rows or turns
    lines: Sequence[str]  # the counts as sentences
    faults: tuple[RecordedFault, ...]
    hint: str | None = None  # the possible reason for the faults


class RecordedAnswers(Protocol):
    """Answers made elsewhere, in a file with a row format of one kind."""

    path: Path
    repetitions: int  # the maximum number of answers to a sample under one condition

    @property
    def conditions(self) -> Collection[str]: ...  # in the order of the file

    def reply(self, sample: Sample, turn: int, condition: str, repetition: int) -> Reply: ...

    def census(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> RecordedFaults | None: ...

    def notes(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> dict[str, str]: ...


class Kind:
    """The interface of a dataset kind, with the defaults.

    A kind's class need not inherit from this: `of` adds the defaults. Nothing here depends on the
    options of a dataset.
    """

    is_installed = True  # False: only common results are known: scores, ledger, cost
    noun = "dataset"  # the word for one of its files
    noun_of_several = "datasets"
    unit = "question"  # the word for the paired unit
    session = "session"  # the word for all turns of a sample, in a judge's prompt
    by_turn = False  # whether rates are over turns, clustered by sample
    compared = True  # whether conditions are compared on the scores themselves
    loss_bounds = True  # whether means have worst- and best-case bounds for missing values
    unscored = "the experiment names no scorer"  # why nothing was scored
    cached_from = LARGE  # bytes of a journal: the summary of a smaller run is not worth caching
    parts: tuple[type[Part], ...] = ()  # classes of its additions to a Summary and to a Comparison

    tables: tuple[TableInfo, ...] = ()
    """Tables of `karat query` that only its runs have, without the columns that say where a row
    belongs: `run`, `trial`, `sample`, `condition`, `repetition` and `line`. `fill` gives the rows.
    """

    content = ""  # a description of its datasets; empty: only the kind's name is known
    doubted = "sample"  # the word for what `karat check --lint` counts

    answer_file: AnswerFile | None = None  # None: only files of answers with one answer per row
    listed = ""  # the name in `karat list` for the datasets included with the kind; empty: none

    file_keys: Collection[str] = ()  # at the top of a YAML file that no other kind reads
    argument_names: Mapping[str, Sequence[str]] = {}
    """A value of a Python agent → further names under which its function may ask for it."""

    reading_options: Mapping[str, str] = {}
    """Options of `karat.summarize` for its runs → why runs of other kinds refuse it; empty: they
    ignore it. In a package's folder `flags` they become options of the commands that read runs.
    """

    compared_by = "question by question"  # a description of how conditions are compared
    by_session = False  # whether a sample is a session of tasks, shown one by one

    @staticmethod
    def looks_like(path: Path) -> bool:
        """Whether a file looks like a dataset of this kind.

        Raises BadDataset if it cannot be read.
        """
        del path
        return False

    @staticmethod
    def quarantine_text(doubted: Iterable[Doubted]) -> str | None:
        """The text of a file that `dataset.quarantine` can name; None: the kind has no such key."""
        del doubted
        return None

    @staticmethod
    def commands() -> Mapping[str, Command]:
        """Of `karat score FILE --kind NAME`, for files that become no run: a click command by NAME.

        Its function gets the file's path and the `Output` first. Only `karat score` asks for them.
        """
        return {}

    @staticmethod
    def recorded_columns() -> type[BaseModel]:
        """The options for columns of a file with answers made elsewhere, one row per turn or part.

        Raises ValueError if the kind has no such files.
        """
        raise ValueError("answers of this kind of dataset have one row a sample")

    @staticmethod
    def recorded(path: Path, columns: BaseModel) -> RecordedAnswers:
        """Answers made elsewhere. Raises BadDataset with the faults of the file."""
        raise ValueError(
            f"answers of this kind of dataset have one row a sample: {path}, {columns}"
        )

    has_random_replies = False  # whether `random_reply` gives any
    # whether the detail of a turn is for agents; else it reveals golden answers
    turns_say_what_is_asked = False

    @staticmethod
    def next_turn(sample: Sample, turn: int, replies: Sequence[str | None]) -> str | None:
        """What is sent in an open turn (from 0), given the replies to all turns before it (None:
        there is none).

        None: nothing; neither this turn nor a later one of its session is asked. A function of only
        its arguments, so a resumed run asks the same.
        """
        del replies
        return sample.turns[turn].question

    prompt: Callable[[Condition, Sample, int | None], str | None] | None = None
    """The condition's system prompt as sent in one session of a trial; None: as it is."""

    @staticmethod
    def presets() -> Mapping[str, Preset]:
        """The kind's preset system prompts, by name, from the least to the most detailed."""
        return {}

    @staticmethod
    def prompt_problems(
        text: str, preset: str | None, attributes: Mapping[str, Collection[str]]
    ) -> tuple[list[str], list[str]]:
        """Faults and warnings of a system prompt, or of that of a preset.

        `attributes`: the result of the instance's `attributes`. Called only if a kind has that.
        """
        del text, preset, attributes
        return [], []

    @staticmethod
    def read(sample: Sample, turn: int, text: str) -> ReplyValues:
        """The fields of a reply in one turn (from 0): each parsed, or with the reason why not.

        Raises ValueError for a sample without fields.
        """
        raise ValueError(f"'{sample.id}' has no fields to read in turn {turn}")

    @staticmethod
    def random_reply(sample: Sample, turn: int, dice: Random) -> str:
        """A reply to one turn (from 0) in the requested form, all answers equally likely.

        Raises ValueError for a sample without fields.
        """
        raise ValueError(f"'{sample.id}' has no fields to answer in turn {turn}")

    @staticmethod
    def look_up(sample: Sample, turn: Turn) -> str | None:
        """What a search without a model finds in the sample's own document, as a reply to one of
        its turns.

        None: nothing, or there is no document.
        """
        del sample, turn
        return None

    @staticmethod
    def keep(dataset: Dataset, *, redact: Redactor) -> Sequence[tuple[KeptFile, bytes]]:
        """What a run folder keeps of the dataset: the entry of each part in `run.json`, and its
        file.
        """
        del dataset, redact
        return ()

    @staticmethod
    def shipped(name: str | None) -> object:
        """The page of one dataset included with the kind, or of all: a value whose `str` is for
        people.
        """
        raise BadOption("NAME", f"no dataset is called '{name}'")

    @staticmethod
    def parts_asked(dataset: Dataset, samples: Sequence[Sample]) -> tuple[DatasetPart, ...]:
        """How much of each part of a dataset these samples are; none if it has no parts."""
        del dataset, samples
        return ()

    @staticmethod
    def own_scorer(dataset: Dataset) -> str | None:
        """The scorer of a dataset if none is named; None: the kind's `scorer`."""
        del dataset
        return None

    @staticmethod
    def judge(dataset: Dataset) -> dict[str, object] | None:
        """The `judge` of recorded answers if no scorer is named; None: the kind's `scorer`
        suffices.
        """
        del dataset
        return None

    @staticmethod
    def check_target(path: Path) -> Path | None:
        """What `karat check` checks as a dataset of the kind, for a path or name; None: not such a
        dataset.

        Raises BadOption for a name that seems to mean one.
        """
        del path
        return None

    @staticmethod
    def rule(run: RunFolder, asked: Mapping[str, object]) -> tuple[str, str | None]:
        """The rule by which answers are read: the one asked for, else the run's own; a warning if
        that is unknown. `asked`: the given ones of `reading_options`.
        """
        del run, asked
        return "", None

    @staticmethod
    def turn_scoring(scorer: ScorerInfo, rule: str) -> TurnScoring | None:
        """How a scorer's rows become numbers of turns, if `by_turn`; None: every turn and every
        metric counts alike.

        `rule`: as `rule` gives it.
        """
        del scorer, rule
        return None

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
        """Rows of one of `tables` for an answer or a score that counts, column → value; omitted
        columns are NULL.
        """
        del table, sample, record
        return ()

    @staticmethod
    def views() -> Views:
        """How the viewer shows its runs."""
        return Views()

    @staticmethod
    def compare(
        runs: tuple[RunFolder, RunFolder],
        summaries: tuple[Summary, Summary],
        pairs: Sequence[tuple[str, str]],
        sides: tuple[Side, Side],
        *,
        asked: Mapping[str, object],
    ) -> Comparison | None:
        """The whole comparison of two runs, if it is not by sample; None: by sample."""
        del runs, summaries, pairs, sides, asked
        return None


class _NotInstalled(Kind):
    is_installed = False


@cache
def of(name: str) -> type[Kind]:
    """The kind named in a run, never imported from "module:Class"; the defaults if it is not
    installed.
    """
    try:
        kind = plugins.find("kinds", name, allow_code=False)
    except UnknownPlugin:
        return _NotInstalled if name else Kind
    except BadPlugin:
        return Kind if ":" in name else _NotInstalled

    return completed(kind)


def completed(plugin: type[Any]) -> type[Kind]:
    """The class of a kind, with missing members from `Kind`."""
    if issubclass(plugin, Kind):
        return plugin
    return type(plugin.__name__, (plugin, Kind), {})


def of_sample(sample: Sample) -> type[Kind]:
    """The kind of a sample; the defaults if it names none, or one that is not installed."""
    return of(sample.kind)


@cache
def installed() -> Mapping[str, type[Kind]]:
    """Every kind that is installed, by its name: built-in ones first."""
    return {name: completed(plugin) for name, plugin in plugins.installed("kinds")}


def kind_of(path: Path) -> str:
    """Which kind of dataset a file looks like. Raises BadDataset if nothing can be read."""
    if path.suffix in {".yaml", ".yml"} and path.is_file():
        for name, kind in installed().items():
            if kind.file_keys and has_key(path, kind.file_keys):
                return name

    return next((name for name, kind in installed().items() if kind.looks_like(path)), DEFAULT_KIND)


def read_rows(path: Path) -> Rows:
    """The rows of a file in any format of datasets. Raises BadDataset if nothing can be read."""
    return read_file_rows(path)
