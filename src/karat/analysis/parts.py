"""What a dataset kind adds to a summary or a comparison, and what analysis needs from a kind.

Analysis imports no kind: `kind_of` looks one up among the plug-ins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import msgspec

from karat.analysis.numbers import Estimate
from karat.errors import BadOption, did_you_mean
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.analysis.comparison import Comparison, Side
    from karat.analysis.grids import Floats
    from karat.analysis.ledger import Outcome
    from karat.analysis.model import Account, MetricInfo, Summary
    from karat.index import RunIndex
    from karat.journal import RunFolder, ScorerInfo
    from karat.records import Turn


class ConditionScore(msgspec.Struct, frozen=True, kw_only=True):
    """One number of a whole condition that is not a mean over samples."""

    condition: str
    key: str  # prefixed with the scorer: no metric has this name
    meaning: str
    estimate: Estimate
    low: float  # of the scale
    high: float
    unit: str  # what `estimate.n` counts
    scorer: str
    scoring: str
    kind: str  # "number" or "share"
    details: dict[str, str]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind adds to the summary of a run, or to the comparison of two.

    Each kind has its own subclasses.
    """

    @property
    def rule(self) -> str | None:
        """The match that makes a turn right; None: the kind has no such option."""
        return None

    def read_by(self) -> Mapping[str, object]:
        """The options that make another run's answers be read alike."""
        return {}

    def is_tested(self, metric: MetricInfo) -> bool:
        """Whether differences on a metric are tested; False if it only measures what an earlier
        metric tests.
        """
        del metric
        return True

    def headline(self) -> str:
        """The answer in one sentence, with its uncertainty; empty: the headline of the score
        comparisons.
        """
        return ""

    def warning_lines(self) -> Sequence[str]:
        """Notes to read first."""
        return ()

    def notices(self) -> Sequence[str]:
        """What to know before reading the result: these sentences are shown above it."""
        return ()

    def condition_scores(self) -> Iterator[ConditionScore]:
        """Numbers of whole conditions, for exports."""
        return iter(())

    def tables(self) -> Mapping[str, tuple[tuple[str, ...], Iterable[Mapping[str, Any]]]]:
        """Name → columns and rows of raw numbers, for exports; with `leads`, `--to csv` writes the
        first.
        """
        return {}

    def show(self, tree: JsonObject) -> None:
        """Adds the displayed texts to the part's JSON, under `shown`, next to the raw numbers."""
        del tree

    @property
    def leads(self) -> bool:
        """Whether its first table is exported by default."""
        return False

    def lines(self) -> list[str]:
        """The part as lines of plain text."""
        return []


class AnalysisInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a kind's analysis of a run."""

    run: RunFolder
    index: RunIndex
    scorers: tuple[ScorerInfo, ...]
    shown: Mapping[str, str]  # scorer → scoring
    ended: Outcome  # how trials ended
    accounts: Mapping[str, Account]  # by condition
    level: float
    asked: Mapping[str, object]  # options of the kind that were given
    rule: str  # by which the kind reads answers
    baseline: str | None  # None: every pair of conditions is compared

    def shows(self, scorer: ScorerInfo) -> bool:
        """Whether the numbers of that scoring are shown."""
        return self.shown.get(scorer.name) == scorer.scoring


class TurnScoring(Protocol):
    """How the rows of one scorer become numbers of turns.

    `columns`: metric → the number of each row; NaN: none.
    """

    @property
    def rates(self) -> Collection[str]:
        """Metrics over all turns that count: in a trial without an answer each of these turns is
        wrong.
        """

    def counts(self, turn: Turn) -> bool:
        """Whether a turn counts in the scorer's metrics."""

    def tested(self, columns: Mapping[str, Floats]) -> tuple[str, ...]:
        """The metrics on which conditions are tested, at least one; the first is shown before all
        others.
        """

    def values(self, metric: str, columns: Mapping[str, Floats]) -> Floats:
        """The number of each row for a metric, which may depend on the match that makes a turn
        right.
        """


class KindAnalysis(Protocol):
    """The part of a kind that analysis uses; `karat.kinds.Kind` is complete and documents each
    member.
    """

    is_installed: bool
    unit: str
    by_turn: bool
    compared: bool
    loss_bounds: bool
    unscored: str
    cached_from: int
    parts: tuple[type[Part], ...]
    reading_options: Mapping[str, str]

    @staticmethod
    def rule(run: RunFolder, asked: Mapping[str, object]) -> tuple[str, str | None]: ...
    @staticmethod
    def turn_scoring(scorer: ScorerInfo, rule: str) -> TurnScoring | None: ...
    @staticmethod
    def analyse(given: AnalysisInput) -> Part | None: ...
    @staticmethod
    def compare(
        runs: tuple[RunFolder, RunFolder],
        summaries: tuple[Summary, Summary],
        pairs: Sequence[tuple[str, str]],
        sides: tuple[Side, Side],
        *,
        asked: Mapping[str, object],
    ) -> Comparison | None: ...


def kind_of(name: str) -> KindAnalysis:
    """The kind of that name; an empty one if it is not installed."""
    return cast(KindAnalysis, _kinds().of(name))


def options_of(kind: str, asked: Mapping[str, object]) -> dict[str, object]:
    """The given options that a kind has; None and False are not given.

    Raises BadOption for one that no kind has, or that only fits runs of another kind.
    """
    given = {name: value for name, value in asked.items() if value not in (None, False)}
    own = kind_of(kind).reading_options
    if given.keys() <= own.keys():
        return given
    refusals: dict[str, str] = {}
    for other in installed().values():
        refusals |= other.reading_options
    for name in given.keys() - own.keys():
        if name not in refusals:
            raise BadOption(name, f"there is no such option{did_you_mean(name, refusals)}")
        if refusals[name]:
            raise BadOption(f"--{name.replace('_', '-')}", refusals[name])

    return {name: value for name, value in given.items() if name in own}


def installed() -> Mapping[str, KindAnalysis]:
    """Every kind that is installed, by its name."""
    return cast(Mapping[str, KindAnalysis], _kinds().installed())


def _kinds() -> ModuleType:
    from karat import kinds  # they are above, and import this module

    return kinds


_Part = TypeVar("_Part", bound=Part)
_Holder = TypeVar("_Holder", bound="PartHolder")


class PartHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A summary or comparison with the parts of its kind; `summary.study` is the part of the kind
    `study`, or None.
    """

    parts: dict[str, Part] = {}

    def part(self, wanted: type[_Part]) -> _Part | None:
        """The part of that class; None if there is none."""
        return next((part for part in self.parts.values() if isinstance(part, wanted)), None)

    def __getattr__(self, name: str) -> Any:
        if name in self.parts or (not name.startswith("_") and name in installed()):
            return self.parts.get(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def builtins_of(value: PartHolder, *, absent: Iterable[str] = ()) -> JsonObject:
    """The JSON form: each part under the name of its kind, null for those in `absent` without
    one.
    """
    tree: JsonObject = msgspec.to_builtins(value)
    parts: JsonObject = tree.pop("parts")
    return {**tree, **dict.fromkeys(absent), **parts}


def from_json(data: bytes, wanted: type[_Holder]) -> _Holder:
    """Decodes the output of `msgspec.json.encode`, with each part in its own class. Raises
    msgspec.DecodeError.

    Parts of a kind that is not installed are left out.
    """
    tree = msgspec.json.decode(data, type=JsonObject)
    raw = tree.pop("parts", {})
    at = 0 if "results" in tree else 1
    parts = {}
    for name, part in raw.items():
        if kind_of(name).parts:
            parts[name] = msgspec.convert(part, kind_of(name).parts[at])

    return msgspec.structs.replace(msgspec.convert(tree, wanted), parts=parts)
