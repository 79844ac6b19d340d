"""What `karat check` finds out: everything that could stop a run, and what the run would be; no agent is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat import formats, plugins
from karat.cli.output import OUTPUT_FORMAT
from karat.execution.plan import Plan, plan
from karat.records import Sample
from karat.redact import Redactor

if TYPE_CHECKING:
    from karat.config import Experiment
    from karat.execution import ScorerInUse, Selection
    from karat.journal import ScorerInfo
    from karat.mcp import ServerFault, ToolList

__all__ = ["Checked", "CheckedCondition", "CheckedScorer", "CheckedServer", "check"]

_TOOLS_SHOWN = 20
_SCORER_SECONDS = 10.0  # for one call of a scorer; a slow one is not wrong
_REMEDY = "Fix mcp_servers.{} (`karat check --no-start` leaves the servers alone)."


class CheckedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition of the plan."""

    name: str
    servers: tuple[str, ...]
    gates: tuple[str, ...]
    preset: str | None = None  # of a study's participants


class CheckedScorer(msgspec.Struct, frozen=True, kw_only=True):
    """One scorer of the plan."""

    name: str
    type: str
    offline: bool
    metrics: tuple[str, ...]
    models: tuple[str, ...] = ()  # that it asks, each with the service it is reached through


class CheckedStudy(msgspec.Struct, frozen=True, kw_only=True):
    """What of one study is run."""

    name: str
    participants: int
    questions: int  # under one condition, once


class CheckedServer(msgspec.Struct, frozen=True, kw_only=True):
    """One MCP server."""

    name: str
    type: str
    scope: str
    conditions: tuple[str, ...]
    tools: tuple[str, ...] | None  # None: not started, or broken
    fault: str | None = None


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """`karat check --json`."""

    format: int = OUTPUT_FORMAT
    file: str
    name: str
    ready: bool  # `karat run` would begin
    samples: int
    conditions: tuple[CheckedCondition, ...]
    repetitions: int
    agent: str
    agent_calls: int
    judge_calls: int  # answers × scorers that ask a model × judges of a panel × repeats × calls of one judgement
    dataset: str
    dataset_kind: str
    sha256: str
    scorers: tuple[CheckedScorer, ...]
    servers: tuple[CheckedServer, ...]
    max_concurrent: int
    timeout_seconds: float
    max_attempts: int
    stops_after_failures: int
    budget_usd: float | None
    budget_tokens: int | None
    results: str  # where the run folder will be
    problems: tuple[str, ...]  # why it is not ready
    warnings: tuple[str, ...]
    studies: tuple[CheckedStudy, ...] = ()  # human studies only

    def __str__(self) -> str:
        return "\n".join(formats.clean(line) for line in _lines(self)) + "\n"


def check(
    experiment: Experiment, *, selection: Selection, results: Path, start: Callable[[str], None] | None
) -> Checked:
    """Plans the experiment, loads its agent, and starts and lists its MCP servers.

    `start` is told when servers are started; with None they are not, and no agent is loaded.
    Raises OperatorError for the dataset, a plug-in, or a name that is selected and not there.
    """
    dataset = experiment.load_dataset()
    selected = plan(
        experiment, dataset, limit=selection.limit, only_samples=selection.samples, only_conditions=selection.conditions
    )
    used = _scorers(experiment)
    found, notes = asyncio.run(_started(experiment, selected, start)) if start else ({}, [])
    servers = _servers(selected, found)
    problems = [fault for one in used if (fault := _scorer_fault(one, dataset.samples[0]))]
    problems += [f"{server.fault}\n{_REMEDY.format(server.name)}" for server in servers if server.fault]
    execution = experiment.execution
    return Checked(
        file=str(experiment.path or ""),
        name=experiment.name,
        ready=not problems,
        samples=len(selected.samples),
        conditions=tuple(_conditions(experiment, selected)),
        repetitions=selected.repetitions,
        agent=experiment.agent.type,
        agent_calls=_agent_calls(selected),
        judge_calls=len(selected) * sum(_calls(one.info) for one in used if not one.info.offline),
        dataset=str(dataset.path),
        dataset_kind=dataset.kind,
        sha256=dataset.sha256,
        scorers=tuple(_checked_scorer(one) for one in used),
        servers=servers,
        max_concurrent=execution.max_concurrent,
        timeout_seconds=execution.timeout_seconds,
        max_attempts=execution.retry.max_attempts,
        stops_after_failures=execution.stops_after(len(selected)),
        budget_usd=execution.budget.usd,
        budget_tokens=execution.budget.tokens,
        results=str(results / f"{experiment.slug}-<date>-<id>"),
        problems=tuple(problems),
        warnings=(*notes, *experiment.warnings, *_tool_advice(experiment, selected, found)),
        studies=tuple(_study(study.study, selected) for study in dataset.studies),
    )


def _study(name: str, selected: Plan) -> CheckedStudy:
    own = [one for one in selected.samples if one.detail["study"] == name]
    return CheckedStudy(
        name=name,
        participants=sum(len(one.detail.get("members", (one,))) for one in own),
        questions=sum(len(one.turns) for one in own),
    )


def _calls(scorer: ScorerInfo) -> int:
    """Calls of models that one answer needs."""
    options = scorer.options
    judges = max(1, len(options.get("judges") or ()))
    return judges * int(options.get("repeats", 1)) * (len(scorer.metrics) if options.get("call_per_metric") else 1)


def _agent_calls(selected: Plan) -> int:
    return sum(len(sample.turns) for sample in selected.samples) * len(selected.conditions) * selected.repetitions


def _scorers(experiment: Experiment) -> tuple[ScorerInUse, ...]:
    from karat.execution import build_scorers

    return build_scorers(experiment.scorers, folder=experiment.folder, env=experiment.env, prices=experiment.prices)


def _checked_scorer(used: ScorerInUse) -> CheckedScorer:
    return CheckedScorer(
        name=used.info.name,
        type=used.info.type,
        offline=used.info.offline,
        metrics=tuple(metric.name for metric in used.info.metrics),
        models=tuple(getattr(used.scorer, "routes", ())),
    )


def _scorer_fault(used: ScorerInUse, sample: Sample) -> str | None:
    """What a scorer of the user's own returns that it does not announce; not of one that may ask a service."""
    if used.waits or not used.info.offline or type(used.scorer).__module__.startswith("karat."):
        return None
    from karat.testing.scorers import probe

    fault = probe(used.scorer, sample, name=used.info.name, metrics=used.metrics, seconds=_SCORER_SECONDS)
    return None if fault is None else f"{fault}\nFix {used.info.type} (tried on the golden answer of '{sample.id}')."


async def _started(
    experiment: Experiment, selected: Plan, say: Callable[[str], None]
) -> tuple[dict[str, ToolList | ServerFault], list[str]]:
    """What each server offers, and what is to be known of the agents."""
    from karat.execution import agent_notes, build_agents, close_agents, opened_scorers, refuse_unpriced
    from karat.mcp import Toolbox

    servers = {server.name: server for condition in selected.conditions for server in condition.mcp_servers}
    redact = Redactor(experiment.secrets)
    cassettes = experiment.cassettes
    if cassettes is not None and cassettes.mode == "record":
        cassettes = None  # only a run is recorded
    scorers = _scorers(experiment)
    toolbox = Toolbox(tuple(servers.values()), redact=redact, folder=experiment.folder, cassettes=cassettes)
    async with opened_scorers(scorers), toolbox:
        agents = build_agents(experiment, selected, toolbox)
        try:
            refuse_unpriced(experiment, agents, scorers)
            if servers:
                say(f"starting {formats.plural(len(servers), 'MCP server')} …")
            return await toolbox.preflight(), agent_notes(selected, agents)
        finally:
            await close_agents(agents)


def _tool_advice(experiment: Experiment, selected: Plan, found: dict[str, ToolList | ServerFault]) -> list[str]:
    """What agents say of the tools that a condition gives them."""
    advice = []
    for condition in selected.conditions:
        plugin = plugins.find("agents", condition.agent.type, folder=experiment.folder)
        lists = [getattr(found.get(server.name), "tools", ()) for server in condition.mcp_servers]
        advise = getattr(plugin, "tool_advice", None)
        said = advise([tool for listed in lists for tool in listed]) if advise is not None else None
        advice += [f"conditions.{condition.name}.mcp_servers: every answer will be: {said}"] if said else []
    return advice


def _servers(selected: Plan, found: dict[str, ToolList | ServerFault]) -> tuple[CheckedServer, ...]:
    users: dict[str, list[str]] = {}
    servers = {}
    for condition in selected.conditions:
        for server in condition.mcp_servers:
            servers[server.name] = server
            users.setdefault(server.name, []).append(condition.name)
    checked = []
    for name, server in servers.items():
        outcome = found.get(name)
        tools = getattr(outcome, "tools", None)
        checked.append(
            CheckedServer(
                name=name,
                type=server.type,
                scope=server.scope,
                conditions=tuple(users[name]),
                tools=tuple(tool.name for tool in tools) if tools is not None else None,
                fault=getattr(outcome, "message", None),
            )
        )
    return tuple(checked)


def _conditions(experiment: Experiment, selected: Plan) -> list[CheckedCondition]:
    return [
        CheckedCondition(
            name=condition.name,
            servers=tuple(server.name for server in condition.mcp_servers),
            gates=tuple(gate for gate in condition.gate.__struct_fields__ if getattr(condition.gate, gate)),
            preset=getattr(experiment.resolved.get(f"conditions.{condition.name}.preset"), "value", None),
        )
        for condition in selected.conditions
    ]


def _lines(found: Checked) -> list[str]:
    times = f"{formats.plural(len(found.conditions), 'condition')} × {formats.plural(found.repetitions, 'repetition')}"
    calls = formats.plural(found.agent_calls, "agent call")
    if found.judge_calls:
        calls += f", {formats.plural(found.judge_calls, 'judge call')}"
    limits = [
        f"{found.max_concurrent} at a time",
        f"{formats.duration(found.timeout_seconds)} for an answer",
        f"up to {formats.plural(found.max_attempts, 'attempt')}",
        f"stops after {formats.plural(found.stops_after_failures, 'failed trial')}",
    ]
    limits += [f"at most {formats.dollars(found.budget_usd)}"] if found.budget_usd is not None else []
    limits += [f"at most {formats.plural(found.budget_tokens, 'token')}"] if found.budget_tokens is not None else []
    blocks = {
        "dataset": [f"{found.dataset_kind}, {found.dataset} (sha256 {found.sha256[:12]})"],
        "agent": [found.agent],
        "conditions": [_condition_line(condition) for condition in found.conditions],
        "scored by": [_scorer_line(scorer) for scorer in found.scorers]
        or ["nothing: answers are kept, none is scored"],
        "MCP servers": [_server_line(server) for server in found.servers] or ["none"],
        "running": [", ".join(limits)],
        "results": [f"{found.results}/"],
    }
    if len(found.studies) > 1:
        studies = [f"{_study_size(one)}, {one.name}" for one in found.studies]
        blocks["dataset"] += studies
    lines = [f"{found.name}: {_size(found)} × {times} = {calls}", ""]
    for title, block in blocks.items():
        lines += [f"{title if row == 0 else '':13}{line}" for row, line in enumerate(block)]
    return lines


def _size(found: Checked) -> str:
    if not found.studies:
        return formats.plural(found.samples, "sample")
    whole = CheckedStudy(
        name="",
        participants=sum(one.participants for one in found.studies),
        questions=sum(one.questions for one in found.studies),
    )
    several = f"{formats.plural(len(found.studies), 'study', 'studies')}, " if len(found.studies) > 1 else ""
    return several + _study_size(whole)


def _study_size(one: CheckedStudy) -> str:
    return f"{formats.plural(one.participants, 'participant')}, {formats.plural(one.questions, 'question')}"


def _condition_line(condition: CheckedCondition) -> str:
    servers = f" with {', '.join(condition.servers)}" if condition.servers else ""
    gates = f" ({', '.join(condition.gates)})" if condition.gates else ""
    preset = f" (preset {condition.preset})" if condition.preset else ""
    return f"{condition.name}{servers}{gates}{preset}"


def _scorer_line(scorer: CheckedScorer) -> str:
    kind = scorer.type if scorer.type == scorer.name else f"{scorer.name}: {scorer.type}"
    offline = " (offline)" if scorer.offline else ""
    metrics = f": {', '.join(scorer.metrics)}" if scorer.metrics and scorer.metrics != (scorer.name,) else ""
    models = f"; asks {' and '.join(scorer.models)}" if scorer.models else ""
    return f"{kind}{offline}{metrics}{models}"


def _server_line(server: CheckedServer) -> str:
    return f"{server.name} ({server.type}, scope {server.scope}): {_state(server)}"


def _state(server: CheckedServer) -> str:
    if server.fault:
        return "does not work"
    if server.tools is None:
        return "not started"
    shown = ", ".join(server.tools[:_TOOLS_SHOWN]) + (", …" if len(server.tools) > _TOOLS_SHOWN else "")
    return f"{formats.plural(len(server.tools), 'tool')}: {shown}" if shown else "no tools"
