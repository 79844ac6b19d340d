"""What a journal is made of: one event a line, its kind under the first key, `event`.

`answer`, `score` and `failure` are the records of the same names; what is only ever
journalled is defined here. Unknown keys of a line are ignored and missing ones take
their defaults, so older journals are read forever.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from karat.records import Answer, Failure, JsonObject, LedgerClass, Metric, Reply, Score, Usage
from karat.tool_use import Offered

__all__ = [
    "CHECKSUMS_SINCE",
    "FORMAT_VERSION",
    "FORMAT_WITHOUT_STOP",
    "MISSED_GATE",
    "Attempt",
    "Choice",
    "DatasetInfo",
    "Decided",
    "End",
    "Event",
    "Head",
    "Horizon",
    "Merged",
    "PlanInfo",
    "ReplyEvent",
    "Resume",
    "RunInfo",
    "ScorerInfo",
    "ServerInfo",
    "StudyCopy",
]

FORMAT_VERSION = 3
"""1: 2026-11, the first. 2: every line has a checksum, `crc`, as its last key; so has `run.json`. 3: a run that may
stop early, with a `horizon` and `decided` lines; every other run is still written as format 2."""

FORMAT_WITHOUT_STOP = 2
"""Of a run that asks every question."""

CHECKSUMS_SINCE = 2
"""Of a run folder with this format or a newer one, no line may lack its checksum."""


MISSED_GATE = "gate_"
"""Begins the kinds of failures that concern all turns together: the next attempt starts from the first turn."""


class PlanInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run. A resumed run's plan is the union of its parts."""

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


class Resume(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="resume", tag_field="event"):
    """The run goes on, in another process."""

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
    scorers: tuple[ScorerInfo, ...] = ()  # command "score": what is scored with now
    studies: tuple[StudyCopy, ...] = ()  # human studies that are new, or whose file is another one now
    servers: tuple[ServerInfo, ...] = ()  # MCP servers that are new, or offer something else than at the start


class ReplyEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="reply", tag_field="event"):
    """One turn of a trial of several turns, as it arrived."""

    trial: str
    attempt: int  # from 1
    turn: int  # from 0
    reply: Reply


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="attempt", tag_field="event"):
    """A failed attempt, before its back-off."""

    trial: str
    n: int  # from 1
    cls: LedgerClass = msgspec.field(name="class")
    kind: str
    message: str
    retriable: bool = False
    stage: Literal["agent", "score"] = "agent"
    usage: Usage | None = None  # of the call that failed; what was said before it stands in `replies`
    dollars: float | None = None
    seconds: float | None = None
    replies: tuple[Reply, ...] = ()  # what the attempt itself was told, and paid for; those of `reply` lines first


class End(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="end", tag_field="event"):
    """The process that wrote the run ended on purpose."""

    at: str  # UTC, ISO 8601
    reason: Literal["done", "interrupted", "max_failures", "budget"]
    seconds: float | None = None  # of this part of the run; None: not recorded, of an imported run
    command: Literal["run", "score"] = "run"


class Horizon(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="horizon", tag_field="event"):
    """The plan of a run that may stop early, before its first answer. None of it can change afterwards."""

    questions: int
    order: str  # digest of their ids, in the order in which they are asked
    seed: int  # of that order
    repetitions: int
    pairs: tuple[tuple[str, str], ...]  # the comparisons: the baseline, and a condition that is held against it
    metric: str
    scorer: str
    scoring: str
    alpha: float
    margin: float | None = None
    futility: bool = False


class Decided(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="decided", tag_field="event"):
    """A look that decided a comparison. It is not looked at again."""

    a: str
    b: str
    verdict: Literal["better", "worse", "higher", "lower", "equivalent", "futile"]  # of b; higher: neither is better
    questions: int  # of the order that had ended; the look is at these
    n: int  # of them: answered under both
    value: float  # mean difference, b - a, in points of the metric
    p: float  # the least sequential p-value so far, not adjusted
    out: tuple[str, ...] = ()  # conditions that are not asked from here on


Event = Head | Resume | ReplyEvent | Attempt | Answer | Score | Failure | End | Horizon | Decided


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One resolved setting, and where its value came from."""

    value: Any
    source: Literal["default", "file", "environment", "flag"]


class DatasetInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which data, exactly."""

    kind: str
    path: str
    sha256: str  # hex, of the raw bytes
    samples: int  # in the file, before limits
    commit: str | None = None  # of the repository that the file is from; None: it was a file of the machine


class StudyCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A human study as the run folder keeps it: with this file its analysis needs nothing from outside."""

    study: str
    file: str  # its study.yaml, below `studies/` of the run folder
    sha256: str  # hex, of that file
    digest: str  # hex, of the study as it was shown: study.yaml, materials and persons
    columns: dict[str, str] = {}  # what persons of a list have: attribute → number or text
    wording: str | None = None  # of the materials; None: as they stand
    relabel: bool = False  # other names and amounts were shown
    reorder: bool = False  # options were shown the last one first
    folder: str | None = None  # where it lay, if it has code of its own: `reducer` is looked for there
    code: dict[str, str] | None = None  # that code: file in `folder` → sha256, hex; None: no code, or not recorded


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an MCP server offered before the first call."""

    name: str
    digest: str  # of its definition, without secrets
    tools: tuple[str, ...] = ()
    tools_digest: str | None = None  # of names, descriptions and schemas; None: it did not answer
    fault: str | None = None
    protocol: str | None = None  # the version of MCP that was negotiated; None: not recorded


class ScorerInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scorer, and what its numbers mean."""

    name: str
    type: str
    scoring: str  # digest of scorer, options, rubric, judge model and parameters
    metrics: tuple[Metric, ...]
    offline: bool = True
    options: JsonObject = {}
    rubric: str | None = None  # name or file
    rubric_digest: str | None = None
    provenance: JsonObject = {}  # what else its scores depend on: models, parameters, digest of the prompt, prices
    compared_with: str | None = None  # a condition whose answer to the same question each score needs; None: none


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that a run was made of."""

    runs: tuple[str, ...]  # their ids, sorted
    journal: str  # sha256, hex, of the journal that was made: with another one the run has gone on


class RunInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`run.json`: everything needed to know what was run, written once before the first call."""

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
    studies: tuple[StudyCopy, ...] = ()  # human studies, in the order of the dataset
    servers: tuple[ServerInfo, ...] = ()
    condition_servers: dict[str, tuple[str, ...]] = {}
    condition_offers: dict[str, tuple[Offered, ...]] = {}  # skills and plug-ins
    reports_tool_calls: bool = False  # whether the agent says that it reports every tool call; False: not known
    versions: dict[str, str] = {}  # karat, python, and the SDKs in use
    rehearsed: bool = False  # whether scripts on this machine played its models: no number means anything
    host: str = ""
    shard: str | None = None  # "2/4": the run asks the second quarter of its plan's trials; None: all of them
    merged: Merged | None = None  # of what other runs it was made; None: of none
    source: dict[str, str] = {}  # of answers made elsewhere: file, sha256; of one row a turn, the faults too

    @property
    def imported(self) -> bool:
        """Whether its answers and scores are results of another tool, which nobody can ask for again here."""
        return "format" in self.source
