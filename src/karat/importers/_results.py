"""Results of other tools: the values that an importer reads, and the problems it counts on
the way.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from karat.records import JsonObject, LedgerClass, Metric, Reply, Usage

_MOST_PLACES = 5


class ImportedScore(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one of the tool's scorers for one answer."""

    scorer: str
    values: Mapping[str, float | bool | None]  # metric → value; None: it could not be scored
    judge: str | None = None
    repeat: int = 0
    labels: Mapping[str, str] = {}
    reasons: Mapping[str, str | None] = {}  # None or "": none is given
    detail: JsonObject = {}
    usage: Usage | None = None
    dollars: float | None = None
    offline: bool = False  # by a rule, without paying a model; False also if unknown


class ImportedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a trial has no answer (stage "agent"), or one scorer's score is missing (stage
    "score").
    """

    cls: LedgerClass  # agent, infrastructure, judge, limit
    kind: str  # a short slug: timeout, error, token_limit, …
    message: str
    stage: Literal["agent", "score"] = "agent"
    scorer: str | None = None  # stage "score": which one


class ImportedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One sample under one condition in one repetition, as the file gives it.

    `reply` None: there is no answer, and `failure` says why; without a `failure` the trial counts
    as not run. A `reply` with a failure of stage "agent" is kept with the failed attempt (it was
    paid for), and is not an answer.
    """

    sample: str  # id of the sample in the tool's dataset
    question: str
    golden: str | None = None
    condition: str
    repetition: int | None = None  # from 0; None: in the order of the file
    reply: Reply | None = None
    started: str | None = None  # UTC, ISO 8601; None: not recorded
    # None: not recorded; also of the reply, unless it has its own milliseconds
    seconds: float | None = None
    failure: ImportedFailure | None = None
    scores: Sequence[ImportedScore] = ()
    metadata: JsonObject = {}  # of the sample: columns to group by
    detail: JsonObject = {}  # of the trial: anything without a field of its own


class ImportedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """What all trials of a condition have in common."""

    model: str | None = None
    system_prompt: str | None = None
    # parameters, prompt template, task arguments, …: they make the condition's digest
    detail: JsonObject = {}


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says of itself about its conditions. It is compared with what was read."""

    file: str  # its name
    conditions: Collection[str]  # taken together; complete once all trials are read
    trials: int | None = None  # results that it should hold; None: not stated
    means: Mapping[tuple[str, str], float] = {}  # scorer and metric → mean over the results


class ImportedRun(msgspec.Struct, kw_only=True):
    """One run, as files of results describe it.

    `trials` is iterated once and not kept in memory.
    """

    name: str
    # the program that wrote the files, with its version if they say it: "inspect_ai 0.3.140"
    tool: str
    trials: Iterable[ImportedTrial]
    conditions: Mapping[
        str, ImportedCondition
    ] = {}  # in display order; more may be added while trials are read, each before its first trial
    metrics: Mapping[
        str, Sequence[Metric]
    ] = {}  # scorer → what is known about its metrics; the rest is inferred from the values
    dataset: str = ""  # as the tool names it
    first_row: Mapping[str, str] = {}  # role → what its text begins with, as it was read
    created: str | None = None  # UTC, ISO 8601; None: not recorded
    seconds: float | None = None  # of the whole run; None: not recorded
    # samples, repetitions, if more were planned than are in the file
    planned: tuple[int, int] | None = None
    # what the files say of being incomplete; complete once all trials are read
    unfinished: Sequence[str] = ()
    # whether a sample without a result under a condition was not planned there
    sparse: bool = False
    # whether a trial without an answer failed, where not every sample was planned everywhere
    answers_all: bool = False
    distinct: bool = False  # whether each trial is known to be of a sample of its own
    stated: Sequence[Stated] = ()  # complete once all trials are read
    versions: Mapping[str, str] = {}  # package → version
    detail: JsonObject = {}  # further data of the run in the file


class Findings:
    """What a person should know about the files read: problems counted by message, with their first
    places.
    """

    def __init__(self, *, cluster: str | None = None) -> None:
        """`cluster`: the column that the user named as what questions share."""
        self.cluster = cluster
        self._start()

    def _start(self) -> None:
        self._places: dict[tuple[str, str], list[str]] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self.lost: dict[str, str] = {}  # results that cannot be read → the first place
        self.notes: list[str] = []

    def unreadable(self, problem: str, place: str) -> None:
        """Counts part of a file that cannot be read, and so is not in the run: "sample without an
        id".
        """
        self._add("unreadable", problem, place)

    def lose(self, problem: str, place: str) -> None:
        """Counts results that cannot be read: the run is not whole."""
        self.unreadable(problem, place)
        self.lost.setdefault(problem, place)

    def left_out(self, problem: str, place: str) -> None:
        """Counts something that was read but has no place in a run folder, not even in `detail`."""
        self._add("left out", problem, place)

    def changed(self, problem: str, place: str) -> None:
        """Counts something that the run contains in another form than the file."""
        self._add("changed", problem, place)

    def take(self) -> Findings:
        """What was found so far, which this no longer holds: the next run starts without it."""
        taken = copy(self)
        self._start()
        return taken

    def note(self, text: str) -> None:
        """Adds a line about the whole, once."""
        if text not in self.notes:
            self.notes.append(text)

    def _add(self, kind: str, problem: str, place: str) -> None:
        key = kind, problem
        self._counts[key] = self._counts.get(key, 0) + 1
        places = self._places.setdefault(key, [])
        if len(places) < _MOST_PLACES:
            places.append(place)

    def __iter__(self) -> Iterator[tuple[str, str, int, tuple[str, ...]]]:
        """Yields the kind ("unreadable", "left out", "changed"), what, how often, and the first
        places.
        """
        for (kind, problem), count in self._counts.items():
            yield kind, problem, count, tuple(self._places[kind, problem])


class ResultImporter(Protocol):
    """Reads results of another tool. All its settings are in an inner `Options` model (pydantic).

    `runs` returns the runs in the files: comparable files become conditions of one run. It writes
    nothing, starts nothing, makes no calls, and never uses anything in a file as a path, a template
    or code. It raises BadDataset if nothing can be read at all; faults in parts of a file go to
    `findings`, also while trials are read. What a file does not record stays None. The same files
    give the same runs.

    `recognizes` says whether a file seems to have this format, judged by its name and its first
    bytes (64 KiB at most), so that `karat report FILE` and `karat compare FILE FILE` work without
    naming the format.

    An importer that also reads files next to the named one has `beside(path)`, which returns them:
    a file is imported again if one of them has changed.
    """

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool: ...

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]: ...


_DEEPEST = 32  # levels
_LEAST, _MOST = -(2**63), 2**63 - 1


def bounded(values: Mapping[str, object], *, deepest: int = _DEEPEST) -> JsonObject:
    """The mapping in a form that a journal can store and every reader can read.

    Values nested more than `deepest` levels deep become a short text, integers beyond 64 bits their
    digits, and numbers that are not finite None; half of a surrogate pair is replaced.
    """
    if not values:
        return {}
    return {_text(str(key)): _bounded(value, deepest - 1) for key, value in values.items()}


def _bounded(value: object, levels: int) -> object:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if _LEAST <= value <= _MOST else "a whole number beyond 64 bits"
    if isinstance(value, Mapping):
        if levels > 0:
            return bounded(value, deepest=levels)
        return "(nested too deeply)"

    if isinstance(value, (list, tuple)):
        if levels > 0:
            return [_bounded(item, levels - 1) for item in value]
        return "(nested too deeply)"

    return _text(str(value))


def _text(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()
