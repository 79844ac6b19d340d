"""A run folder's metadata: everything that defines what was run."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal

import karat
from karat.execution.plan import Plan
from karat.execution.scoring import ScorerInUse
from karat.journal import (
    FORMAT_VERSION,
    FORMAT_WITHOUT_STOP,
    DatasetInfo,
    KeptFile,
    PlanInfo,
    Resume,
    RunInfo,
    ScorerInfo,
    ServerInfo,
)
from karat.records import Condition
from karat.tool_use import Offered

if TYPE_CHECKING:
    from karat.config import Experiment
    from karat.kinds import Dataset


def run_info(
    experiment: Experiment,
    dataset: Dataset,
    selected: Plan,
    scorers: Sequence[ScorerInUse],
    *,
    servers: tuple[ServerInfo, ...],
    source: dict[str, str],
    kept: tuple[KeptFile, ...],
) -> RunInfo:
    """The content of `run.json`. `source`: file and sha256 of answers made elsewhere."""
    conditions = selected.conditions
    model = experiment.agent.options.get("model")
    return RunInfo(
        format=FORMAT_WITHOUT_STOP if experiment.execution.stop is None else FORMAT_VERSION,
        run="",
        name=experiment.name,
        version=experiment.version,
        created=now(),
        kind=experiment.kind,
        plan=_plan_info(selected),
        # As in the file: the parent folders belong to this machine, and the digest identifies the
        # data.
        dataset=DatasetInfo(
            kind=dataset.kind,
            path=str(experiment.resolved["dataset.path"].value),
            sha256=dataset.sha256,
            samples=len(dataset) + dataset.unread,
            commit=dataset.commit,
            first_row={} if dataset.understood is None else dataset.understood.texts(),
        ),
        experiment=dict(experiment.resolved),
        conditions={condition.name: condition.digest for condition in conditions},
        prompts=_prompts(conditions),
        agents={condition.name: condition.agent.digest for condition in conditions},
        agent_type=experiment.agent.type,
        agent_model=model if isinstance(model, str) else None,
        scorers=tuple(used.info for used in scorers),
        servers=servers,
        condition_servers=_servers(conditions),
        condition_offers=_offers(conditions),
        source=source,
        kept=kept,
        versions=_versions(),
        rehearsed=experiment.rehearsed,
        shard=str(selected.shard) if selected.shard is not None else None,
        host=f"{platform.system()} {platform.machine()}",
    )


def _prompts(conditions: Iterable[Condition]) -> dict[str, str]:
    found = {}
    for condition in conditions:
        found[condition.name] = sha256(
            (condition.system_prompt or "").encode("utf-8", "surrogatepass")
        ).hexdigest()

    return found


def _servers(conditions: Iterable[Condition]) -> dict[str, tuple[str, ...]]:
    found = {}
    for condition in conditions:
        found[condition.name] = tuple(server.name for server in condition.mcp_servers)
    return found


def _offers(conditions: Iterable[Condition]) -> dict[str, tuple[Offered, ...]]:
    offers = {}
    for condition in conditions:
        skills = (Offered("skill", part.name) for part in condition.context.skills)
        plugins = (Offered("plugin", part.name) for part in condition.context.plugins)
        if parts := (*skills, *plugins):
            offers[condition.name] = parts

    return offers


def _plan_info(selected: Plan, samples: int | None = None) -> PlanInfo:
    return PlanInfo(
        samples=len(selected.samples) if samples is None else samples,
        conditions=tuple(condition.name for condition in selected.conditions),
        repetitions=selected.repetitions,
    )


def resumed(
    command: Literal["run", "score"],
    selected: Plan | None = None,
    *,
    samples: int | None = None,
    scorers: tuple[ScorerInfo, ...],
    kept: tuple[KeptFile, ...] = (),
    servers: tuple[ServerInfo, ...] = (),
) -> Resume:
    """The event of resuming a run in another process.

    `samples`: how many all parts together have planned.
    """
    if selected is not None:
        conditions = selected.conditions
        plan = _plan_info(selected, samples)
    else:
        conditions = ()
        plan = None

    return Resume(
        at=now(),
        versions=_versions(),
        host=socket.gethostname(),
        pid=os.getpid(),
        plan=plan,
        conditions={condition.name: condition.digest for condition in conditions},
        agents={condition.name: condition.agent.digest for condition in conditions},
        prompts=_prompts(conditions),
        condition_servers=_servers(conditions),
        condition_offers=_offers(conditions),
        command=command,
        scorers=scorers,
        kept=kept,
        servers=servers,
    )


_LIBRARIES = {
    "mcp": "mcp",
    "pydantic_ai": "pydantic-ai-slim",
    "genai_prices": "genai-prices",
    "openai": "openai",
    "anthropic": "anthropic",
    "google.genai": "google-genai",
    "claude_agent_sdk": "claude-agent-sdk",
    "acp": "agent-client-protocol",
}
"""Module → distribution: what answers, what judges, and the table of prices."""


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "karat": karat.__version__}
    for module, name in _LIBRARIES.items():
        # A library that is not loaded has not affected the run, and looking it up takes
        # milliseconds.
        if module in sys.modules:
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                continue

    return versions


def now() -> str:
    """UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
