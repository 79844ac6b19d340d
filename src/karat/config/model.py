"""The parts of an experiment file whose form is fixed, with their defaults and ranges.

What an agent, a dataset kind or a scorer may be told is said by their `Options`, not here.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator

__all__ = [
    "Budget",
    "ConditionModel",
    "DatasetSpec",
    "Execution",
    "McpTraffic",
    "PriceModel",
    "PromptFile",
    "RemoteServer",
    "Retry",
    "StdioServer",
    "Strictly",
]


def _no_bool(value: Any) -> Any:
    # `num_repetitions: yes` is True in YAML, and Python takes True for 1.
    if isinstance(value, bool):
        raise ValueError(f"must be a number, got {str(value).lower()}")
    return value


def _share_or_count(value: float) -> float:
    if value > 1 and value != int(value):
        raise ValueError(f"must be a share below 1 or a whole number, got {value:g}")
    return value


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be an address such as http://localhost:8080/mcp")
    return url


Strictly = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
Text = Annotated[str, Strict()]
Name = Annotated[str, Strict(), Field(min_length=1)]
Count = Annotated[int, BeforeValidator(_no_bool)]
Number = Annotated[float, BeforeValidator(_no_bool)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(gt=0, le=604_800)]
ShareOrCount = Annotated[float, BeforeValidator(_no_bool), AfterValidator(_share_or_count)]
Address = Annotated[str, Strict(), AfterValidator(_web_address)]


class DatasetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Which file, read how."""

    kind: str
    path: Path
    options: dict[str, Any]


class Retry(BaseModel):
    """When a failed attempt is tried again. Waits are drawn from 0 to initial × multiplier^k (full jitter)."""

    model_config = Strictly

    max_attempts: Count = Field(default=3, ge=1, le=100)  # the first one included
    initial_backoff_seconds: Number = Field(default=1.0, ge=0, le=86_400)  # the longest first wait
    backoff_multiplier: Number = Field(default=2.0, ge=1, le=100)  # each further wait is so many times longer
    max_backoff_seconds: Number = Field(default=60.0, ge=0, le=86_400)  # no wait is longer
    timeouts: bool = False  # whether an attempt that took too long is tried again


class PriceModel(BaseModel):
    """What a model costs, in dollars per million tokens; goes before the price table."""

    model_config = Strictly

    input: Number = Field(ge=0, description="dollars per million input tokens")
    output: Number = Field(ge=0, description="dollars per million output tokens")
    cache_read: Number | None = Field(default=None, ge=0)  # null: as input
    cache_write: Number | None = Field(default=None, ge=0)  # null: as input


class Budget(BaseModel):
    """What may be spent, judge and failed attempts included. None: no limit."""

    model_config = Strictly

    usd: Number | None = Field(default=None, gt=0)  # dollars; null: no limit
    tokens: Count | None = Field(default=None, gt=0)  # input and output; null: no limit


class Execution(BaseModel):
    """How the run is carried out; nothing here changes an answer."""

    model_config = Strictly

    num_repetitions: Count = Field(default=3, ge=1, le=100_000)  # how often each question is asked, per condition
    max_concurrent: Count = Field(default=5, ge=1, le=10_000)  # attempts of the agent at a time
    retry: Retry = Retry()
    timeout_seconds: Seconds = 600.0  # of one attempt of the agent, its servers included
    judge_timeout_seconds: Seconds = 120.0  # of one attempt of a scorer
    budget: Budget = Budget()
    max_failures: ShareOrCount = Field(default=0.2, ge=0)  # below 1: a share of the planned trials; else a count
    shared: bool = False  # others of your group may read the run folder, as far as your umask allows; else only you

    def most_failures(self, planned: int) -> float:
        """With so many failed trials a run of `planned` ones stops; at least one may fail.

        >>> Execution().most_failures(40), Execution(max_failures=0).most_failures(40)
        (8.0, 1.0)
        """
        return max(1.0, self.max_failures * planned if self.max_failures < 1 else self.max_failures)

    @property
    def failures_by_share(self) -> bool:
        """Whether `max_failures` is a share, which a few trials say nothing of."""
        return 0 < self.max_failures < 1

    def stops_after(self, planned: int) -> int:
        """The failed trials after which a run of `planned` ones stops.

        >>> Execution().stops_after(3), Execution().stops_after(40)
        (5, 8)
        """
        most = math.ceil(self.most_failures(planned))
        return most if planned >= SHARE_FROM_TRIALS or not self.failures_by_share else max(most, SHARE_FROM_FAILURES)


SHARE_FROM_FAILURES, SHARE_FROM_TRIALS = 5, 20
"""A share of failures stops a run from so many failures, or so many trials that have ended, on."""


class _Server(BaseModel):
    model_config = Strictly

    scope: Literal["trial", "run"] = "trial"  # a session for each trial, or one that all share
    init_timeout_seconds: Seconds = 60.0  # of start and handshake
    call_timeout_seconds: Seconds = 120.0  # of one tool call


class StdioServer(_Server):
    """A program that speaks MCP on its standard input and output."""

    type: Literal["stdio"]  # may be left out where there is a `command`
    command: Name = Field(description="the program to start, e.g. python")
    args: list[Text] = []  # its arguments; relative paths start at the experiment's folder
    env: dict[str, Text] = {}  # its variables, besides PATH, HOME and LANG


class RemoteServer(_Server):
    """A server that is reached by its address."""

    type: Literal["http", "sse"]  # http (the default where there is a `url`): streamable HTTP
    url: Address = Field(description="the server's address, e.g. http://localhost:8080/mcp")
    headers: dict[str, Text] = {}  # sent with each request


class McpTraffic(BaseModel):
    """Whether what MCP servers are asked and answer is recorded, or comes from a recording; only one of them."""

    model_config = Strictly

    record: Name | None = Field(default=None, description="a folder, made where it is not there; null: not recorded")
    replay: Name | None = Field(default=None, description="the folder of a recording; no server is started or reached")

    @model_validator(mode="after")
    def _one_of_them(self) -> McpTraffic:
        if self.record and self.replay:
            raise ValueError("takes `record` or `replay`, not both")
        return self


class PromptFile(BaseModel):
    """A system prompt in a file of its own."""

    model_config = Strictly

    file: Name = Field(description="the file, from the experiment's folder; UTF-8, at most 1 MB")


class ConditionModel(BaseModel):
    """One condition as the file writes it."""

    model_config = Strictly

    system_prompt: Text | PromptFile | None = Field(
        default=None,
        description="null: none; {file: PATH}: that file's text; of a study {{ profile.age }} is the participant's",
    )
    prompt_file: Name | None = None  # the same as `system_prompt: {file: PATH}`
    preset: Literal["empty", "human", "demographic", "background"] | None = (
        None  # studies: one of karat's system prompts
    )
    mcp_servers: list[Name] = []  # names from `mcp_servers`; the agent sees these and no others
    require_mcp_tool_use: bool = False  # an attempt without a call of an MCP tool fails
    require_mcp_tool_success: bool = False  # an attempt whose MCP calls all failed fails
    agent: dict[str, Any] = {}  # options of the agent that differ under this condition
