"""The contents of a journal: one event per line, its kind under the first key, `event`.

`answer`, `score`, `failure` and `server` are the records of the same names; types that occur only
in journals are defined here. Unknown keys of a line are ignored and missing ones take
their defaults, so older journals stay readable forever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from karat.records import (
    Answer,
    Failure,
    JsonObject,
    LedgerClass,
    Metric,
    Reply,
    Score,
    ServerEvent,
    Usage,
)
from karat.tool_use import Offered

FORMAT_VERSION = 3
"""1: 2026-11, the first. 2: every line has a checksum, `crc`, as its last key; so has `run.json`.
3: a run that may stop early, with a `horizon` and `decided` lines; every other run is still written
as format 2.
"""

FORMAT_WITHOUT_STOP = 2
"""Of a run that asks every question."""

CHECKSUMS_SINCE = 2
"""Of a run folder with this format or a newer one, no line may lack its checksum."""


NO_PLAN = {"plan": "not recorded: questions without a row may have been lost"}
"""Part of `RunInfo.source` if a table of results is all that is known of its questions."""


def lacks_plan(source: Mapping[str, str]) -> bool:
    """Whether a run's source is a table, which does not say which questions were asked."""
    return NO_PLAN.keys() <= source.keys()


MISSED_GATE = "gate_"
"""Begins the kinds of failures that concern all turns together: the next attempt starts from the
first turn.
"""


KEPT = "studies"
"""The folder of kept files in a run folder, and their key in run.json, after the first kind of
dataset that kept any; old runs have it, so it stays.
"""


class PlanInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The planned trials. A resumed run's plan is the union of its parts."""

    samples: int
    conditions: tuple[str, ...]
    repetitions: int

    @property
    def trials(self) -> int:
        return self.samples * len(self.conditions) * self.repetitions


class Head(msgspec.Struct, frozen=True, kw_only=True, tag="head", tag_field="event"):
    """The first line."""

    format: int
    run: str  # run id


class Resume(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="resume", tag_field="event"
):
    """The run continues, in another process."""

    at: str  # UTC, ISO 8601
    versions: dict[str, str]
    host: str
    pid: int
    plan: PlanInfo | None = None  # None: as before
    conditions: dict[str, str] = {}  # name → digest, of this part's plan
    agents: dict[str, str] = {}  # condition → agent digest
    prompts: dict[str, str] = {}  # condition → sha256 of its system prompt
    condition_servers: dict[str, tuple[str, ...]] = {}
    condition_offers: dict[str, tuple[Offered, ...]] = {}  # skills and plug-ins
    command: Literal["run", "score"] = "run"
    scorers: tuple[ScorerInfo, ...] = ()  # command "score": the scorers in use now
    # files that are new, or have changed
    kept: tuple[KeptFile, ...] = msgspec.field(default=(), name=KEPT)
    # MCP servers that are new, or whose offer has changed since the start
    servers: tuple[ServerInfo, ...] = ()
    lines: int | None = None  # before this one; None: of an older karat, as for `digest`
    digest: str = ""  # over what `karat.journal.codec` says


class ReplyEvent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="reply", tag_field="event"
):
    """One turn of a trial of several turns, as it arrived."""

    trial: str
    attempt: int  # from 1
    turn: int  # from 0
    reply: Reply


class Attempt(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="attempt", tag_field="event"
):
    """A failed attempt, before its back-off."""

    trial: str
    n: int  # from 1
    cls: LedgerClass = msgspec.field(name="class")
    kind: str
    message: str
    retriable: bool = False
    stage: Literal["agent", "score"] = "agent"
    usage: Usage | None = None  # of the failed call; earlier replies are in `replies`
    dollars: float | None = None
    seconds: float | None = None
    replies: tuple[Reply, ...] = ()  # the attempt's own paid replies; those of `reply` lines first


class End(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="end", tag_field="event"
):
    """The process that wrote the run ended in order."""

    at: str  # UTC, ISO 8601
    reason: Literal["done", "interrupted", "max_failures", "budget", "no_workers"]
    seconds: float | None = None  # of this part of the run; None: not recorded, in an imported run
    command: Literal["run", "score"] = "run"
    lines: int | None = None  # as in `Resume`
    digest: str = ""


class Horizon(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="horizon", tag_field="event"
):
    """The plan of a run that may stop early, before its first answer.

    It cannot change afterwards.
    """

    questions: int
    clusters: int | None = None  # of these questions: what looks count; None: each question counts
    order: str  # digest of their ids, in the order they are asked
    seed: int  # of that order
    repetitions: int
    # the comparisons: the baseline, and a condition compared with it
    pairs: tuple[tuple[str, str], ...]
    metric: str
    scorer: str
    scoring: str
    alpha: float
    margin: float | None = None
    futility: bool = False


class Decided(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="decided", tag_field="event"
):
    """A look that decided a comparison. It is final."""

    a: str
    b: str
    # of b; higher: neither is better
    verdict: Literal["better", "worse", "higher", "lower", "equivalent", "futile"]
    questions: int  # of the order, ended: those in the look
    clusters: int | None = None  # of these questions, if the horizon counts clusters
    n: int  # of the questions: answered under both
    value: float  # mean difference, b - a, in points of the metric
    p: float  # the smallest sequential p-value so far, not adjusted
    out: tuple[str, ...] = ()  # conditions not asked from here on


Event = (
    Head
    | Resume
    | ReplyEvent
    | Attempt
    | Answer
    | Score
    | Failure
    | End
    | Horizon
    | Decided
    | ServerEvent
)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One resolved setting, and where its value came from."""

    value: Any
    source: Literal["default", "file", "environment", "flag"]


class DatasetInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exactly which data."""

    kind: str
    path: str
    sha256: str  # hex, of the raw bytes
    samples: int  # in the file, before limits
    commit: str | None = None  # of the file's repository; None: a local file
    # what the file's first row was read as: role → text and its columns
    first_row: dict[str, str] = {}


class KeptFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of the dataset in the run folder: with it the analysis needs nothing else.

    A study has one.
    """

    name: str = msgspec.field(name="study")
    file: str  # below `KEPT` of the run folder
    sha256: str  # hex, of that file
    digest: str  # hex, of all that it stands for, as shown: with materials and persons
    columns: dict[str, str] = {}  # attributes of listed persons: attribute → number or text
    wording: str | None = None  # of the materials; None: unchanged
    relabel: bool = False  # other names and amounts were shown
    reorder: bool = False  # options were shown in reverse order
    # its original folder, if it has its own code: `reducer` is searched there
    folder: str | None = None
    # that code: file in `folder` → sha256, hex; None: no code, or not recorded
    code: dict[str, str] | None = None


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an MCP server offered before the first call."""

    name: str
    digest: str  # of its definition, without secrets
    tools: tuple[str, ...] = ()
    tools_digest: str | None = None  # of names, descriptions and schemas; None: it did not answer
    fault: str | None = None
    protocol: str | None = None  # the negotiated version of MCP; None: not recorded
    left_out: dict[str, str] = {}  # tools that it lists and no client can call → why


class ScorerInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scorer, and the meaning of its numbers."""

    name: str
    type: str
    scoring: str  # digest of scorer, options, rubric, judge model and parameters
    metrics: tuple[Metric, ...]
    offline: bool = True
    options: JsonObject = {}
    rubric: str | None = None  # name or file
    rubric_digest: str | None = None
    # further inputs of its scores: models, parameters, digest of the prompt, prices
    provenance: JsonObject = {}
    # a condition whose answer to the same question each score needs; None: none
    compared_with: str | None = None


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that a run was merged from."""

    runs: tuple[str, ...]  # their ids, sorted
    journal: str  # sha256, hex, of the merged journal: another one means that the run has continued


class RunInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`run.json`: everything that defines the run, written once before the first call."""

    format: int
    run: str  # run id, 8 hex digits
    name: str
    version: str
    created: str  # UTC, ISO 8601
    kind: str  # golden, conversation, study
    plan: PlanInfo
    dataset: DatasetInfo
    experiment: dict[str, Choice]  # dotted key → value and source; secrets as ${NAME}
    conditions: dict[str, str]  # name → digest, in the order of the file
    prompts: dict[str, str]  # condition → sha256 of its system prompt
    agents: dict[str, str]  # condition → agent digest
    agent_type: str
    agent_model: str | None = None
    scorers: tuple[ScorerInfo, ...] = ()
    kept: tuple[KeptFile, ...] = msgspec.field(default=(), name=KEPT)  # in the order of the dataset
    servers: tuple[ServerInfo, ...] = ()
    condition_servers: dict[str, tuple[str, ...]] = {}
    condition_offers: dict[str, tuple[Offered, ...]] = {}  # skills and plug-ins
    # whether the agent claims to report every tool call; False: not known
    reports_tool_calls: bool = False
    # whether the tool calls are what is measured, so that a failed one is a result
    measures_calls: bool = False
    # whether trials without a result were not planned: files of answers hold all that they state
    sparse: bool = False
    versions: dict[str, str] = {}  # karat, python, and the SDKs in use
    # whether scripts on this machine acted as its models: no number means anything
    rehearsed: bool = False
    host: str = ""
    # "2/4": the run asks the second quarter of its plan's trials; None: all of them
    shard: str | None = None
    merged: Merged | None = None  # the runs it was merged from; None: not merged
    # for answers made elsewhere: file, sha256; with one row per turn, also the faults
    source: dict[str, str] = {}

    @property
    def imported(self) -> bool:
        """Whether its answers and scores are results of another tool, which cannot be requested
        again here.
        """
        return "format" in self.source
