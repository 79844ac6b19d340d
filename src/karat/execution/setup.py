"""Agents and scorers of an experiment, made from its options."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from karat import plugins
from karat.agents import AgentSetting, TrialAgent, as_agent
from karat.analysis.thresholds import Threshold, metric_names, resolve, thresholds_of
from karat.errors import BadExperiment, BadOption, BadPlugin, Caught, Fault, described
from karat.execution.limits import RunStatus
from karat.execution.plan import Plan
from karat.execution.retry import AttemptError, RetryPolicy, delay
from karat.execution.scoring import ScorerInUse, ScorerMemory
from karat.formats import count, plural
from karat.journal import Choice, ScorerInfo, ServerInfo
from karat.mcp import ServerFault, Toolbox, ToolList
from karat.mcp.elicitation import answers_for
from karat.records import AgentSpec, Condition, McpServer, Metric, Sample, ScorerSpec
from karat.redact import Redactor
from karat.scorers import ScorerSetting, announced

if TYPE_CHECKING:
    from karat.config import Experiment


Agents = Mapping[str, TrialAgent]
"""By condition."""


def build_agents(
    experiment: Experiment,
    selected: Plan,
    toolbox: Toolbox,
    *,
    known: Iterable[tuple[AgentSpec, TrialAgent]] = (),
) -> dict[str, TrialAgent]:
    """One agent per set of options: conditions with equal options share the agent.

    `known`: those that have been built already.
    """
    folder = experiment.folder
    redact = Redactor(experiment.secrets)
    setting = AgentSetting(
        folder=folder, toolbox=toolbox, redact=redact, env=experiment.env, prices=experiment.prices
    )
    built = [*known]
    agents: dict[str, TrialAgent] = {}
    for condition in selected.conditions:
        spec = condition.agent
        # Not by digest: it omits options that do not change answers, and identifies functions only
        # by name.
        agent = next(
            (agent for other, agent in built if other.type == spec.type and _same(other, spec)),
            None,
        )
        if agent is None:
            plugin = plugins.find("agents", spec.type, folder=experiment.folder)
            try:
                agent = as_agent(plugins.build(plugin, spec.options, setting=setting))
            except BadPlugin as error:
                if "target" not in spec.options:
                    raise
                where = experiment.agent_at(condition.name, "target")
                raise BadPlugin(error.target, error.message, fault_at=where) from error

            built.append((spec, agent))

        agents[condition.name] = agent

    return agents


def _same(spec: AgentSpec, other: AgentSpec) -> bool:
    """Whether both have equal options, and the same functions."""
    pairs = [(value, other.options.get(key)) for key, value in spec.options.items()]
    return spec.options.keys() == other.options.keys() and all(
        a is b or (not callable(a) and type(a) is type(b) and bool(a == b)) for a, b in pairs
    )


def agent_notes(selected: Plan, agents: Agents) -> list[str]:
    """Notes on the agents for all readers of the results: what does not reach them, and what should
    not.
    """
    notes: list[str] = []
    for agent in {id(agent): agent for agent in agents.values()}.values():
        conditions = [
            condition for condition in selected.conditions if agents[condition.name] is agent
        ]
        if agent.takes is not None and "condition" not in agent.takes:
            notes += _unused(agent.shown, agent.takes, conditions)
        if agent.allow_golden:
            notes.append(f"{agent.shown} may read the golden answers (allow_golden)")
        for condition in conditions:
            notes += _bad_samples(condition, selected.samples, agent.check_sample)

    return notes


def agents_taken(agents: Agents) -> list[str]:
    """What of each object of the user is called, where karat has chosen it."""
    return [text for text in dict.fromkeys(agent.taken for agent in agents.values()) if text]


def announce_agents(selected: Plan, agents: Agents, status: RunStatus) -> None:
    """Says at the start of a run what `agent_notes` and `agents_taken` say."""
    for note in agent_notes(selected, agents):
        status.notice(note)

    for text in agents_taken(agents):
        status.remark(f"the agent is asked {text}")


def _bad_samples(
    condition: Condition,
    samples: Sequence[Sample],
    check: Callable[[Condition, Sample], object] | None,
) -> Iterator[str]:
    """One note if a condition cannot be asked for some samples: each of their trials will fail."""
    if check is None and (condition.elicit is None or condition.elicit.column is None):
        return
    faults: dict[str, str] = {}  # sample → why
    for sample in samples:
        try:
            answers_for(condition, sample)
            if check is not None:
                check(condition, sample)
        except Exception as error:  # noqa: BLE001 -- the agent's own code
            faults[sample.id] = getattr(error, "message", str(error))

    if faults:
        name = next(iter(faults))
        bad = f"{count(len(faults))} of {plural(len(samples), 'sample')}"
        yield f"{bad} cannot be asked under '{condition.name}', first '{name}': {faults[name]}"


def _unused(agent: str, takes: Collection[str], conditions: Sequence[Condition]) -> Iterator[str]:
    """What conditions set and the agent does not support; first, the conditions that cannot differ
    as a result.
    """
    alike: dict[tuple[object, ...], list[Condition]] = {}
    for condition in conditions:
        key = tuple(value for name, value in _varied(condition).items() if name in takes)
        alike.setdefault(key, []).append(condition)

    for same in alike.values():
        ignored = []
        for name in _varied(same[0]):
            if name not in takes and any(_varied(one)[name] for one in same):
                ignored.append(name)

        differing = []
        for name in ignored:
            if len({_varied(condition)[name] for condition in same}) > 1:
                differing.append(name)

        names = ", ".join(f"'{condition.name}'" for condition in same)
        if differing:
            yield (
                f"conditions {names} cannot differ: they differ in {' and '.join(differing)} "
                f"alone, and {agent} takes no {' or '.join(differing)}"
            )
        elif ignored:
            yield f"{agent} takes no {' or '.join(ignored)} (set by {names})"


def _varied(condition: Condition) -> dict[str, object]:
    servers = tuple((server.name, server.digest) for server in condition.mcp_servers)
    return {"system_prompt": condition.system_prompt or "", "mcp_servers": servers}


def build_scorers(specs: Sequence[ScorerSpec], setting: ScorerSetting) -> tuple[ScorerInUse, ...]:
    """The scorers, each with the digest that identifies its scores. `setting`: what they share."""
    scorers = []
    for spec in specs:
        plugin = plugins.find("scorers", spec.type, folder=setting.folder)
        own = msgspec.structs.replace(setting, name=spec.name)
        scorer = plugins.build(plugin, spec.options, setting=own)
        # A scorer's fingerprint covers files that its options refer to (a rubric), and its own
        # revisions.
        parts = [spec.type, spec.name, spec.options, str(getattr(scorer, "fingerprint", ""))]
        digest = blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=8).hexdigest()
        metrics = announced(scorer, spec.type)
        info = ScorerInfo(
            name=spec.name,
            type=spec.type,
            scoring=digest,
            metrics=metrics or (Metric(name=spec.name),),
            offline=bool(getattr(scorer, "offline", True)),
            options=msgspec.to_builtins(spec.options),
            rubric=getattr(scorer, "rubric_name", None),
            rubric_digest=getattr(scorer, "rubric_digest", None),
            provenance=dict(getattr(scorer, "provenance", {})),
            compared_with=getattr(scorer, "compared_with", None),
        )
        takes_bool = not metrics or [metric.bounds for metric in metrics] == [(0, 1)]
        streams = inspect.isasyncgenfunction(scorer.score)
        waits = inspect.iscoroutinefunction(scorer.score)
        blocking = bool(getattr(scorer, "blocking", False))
        used = ScorerInUse(
            info=info,
            scorer=scorer,
            metrics=metrics,
            flag=info.metrics[0].name if takes_bool else None,
            waits=waits or blocking or streams,
            blocking=blocking,
            late=info.compared_with is not None,
            streams=streams,
        )
        scorers.append(used)

    return tuple(scorers)


def experiment_scorers(
    experiment: Experiment, memory: ScorerMemory | None = None
) -> tuple[ScorerInUse, ...]:
    """The scorers of an experiment."""
    memory = memory or ScorerMemory()
    names = [condition.name for condition in experiment.conditions]
    setting = ScorerSetting(
        folder=experiment.folder,
        name="",
        recall=memory.recall,
        answer_of=memory.answer_of,
        env=experiment.env,
        workspace_of=memory.workspaces.of,
        prices=experiment.prices,
        conditions=baseline_first(names, experiment.resolved),
    )
    return build_scorers(experiment.scorers, setting)


def baseline_first(conditions: Sequence[str], settings: Mapping[str, Choice]) -> list[str]:
    """The conditions, starting with the experiment's baseline."""
    baseline = settings["baseline"].value if "baseline" in settings else None
    return sorted(conditions, key=lambda name: name != baseline)


def refuse_unknown_gates(
    experiment: Experiment,
    scorers: Sequence[ScorerInUse],
    thresholds: Sequence[Threshold] | None = None,
) -> None:
    """Raises BadExperiment for thresholds, `gate:` unless given, on names that the run will not
    have.
    """
    if thresholds is None:
        thresholds = thresholds_of(
            {key: choice.value for key, choice in experiment.resolved.items()}
        )

    metrics = metric_names([(used.info.name, used.info.metrics) for used in scorers])
    conditions = [condition.name for condition in experiment.conditions]
    faults = []
    for threshold in thresholds:
        try:
            resolve(threshold.name, conditions, metrics)
        except BadOption as error:
            place = f"gate.{threshold.bound}.{threshold.name}"
            faults.append(Fault(place=place, message=str(error).removeprefix("gate: ")))

    if faults:
        raise BadExperiment(str(experiment.path or "experiment"), faults)


def refuse_unfit_samples(scorers: Sequence[ScorerInUse], samples: Sequence[Sample]) -> None:
    """Raises OperatorError for samples that a scorer cannot score as its options are."""
    for used in scorers:
        if (check_samples := getattr(used.scorer, "check_samples", None)) is not None:
            check_samples(samples)


async def close_agents(agents: Agents, notice: Callable[[str], None] | None = None) -> None:
    """Closes the agents, each once, however many conditions share it. `notice` gets failures."""
    for agent in {id(agent): agent for agent in agents.values()}.values():
        await _closed(agent, notice)


async def _closed(plugin: Any, notice: Callable[[str], None] | None) -> None:
    """Errors at the very end do not affect answers and scores."""
    with Caught() as caught:
        await plugin.aclose()

    if isinstance(caught.error, (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)):
        raise caught.error
    if caught.error is not None and notice is not None:
        notice(f"an agent or scorer did not close well: {described(caught.error)}")


@asynccontextmanager
async def opened_scorers(
    scorers: Sequence[ScorerInUse], notice: Callable[[str], None] | None = None
) -> AsyncGenerator[None]:
    """Scorers that are open during the block. Raises OperatorError, e.g. for a missing key."""
    try:
        for used in scorers:
            if hasattr(used.scorer, "open"):
                used.scorer.open()

        yield
    finally:
        for used in scorers:
            if hasattr(used.scorer, "aclose"):
                await _closed(used.scorer, notice)


async def preflight(
    toolbox: Toolbox, selected: Plan, status: RunStatus, *, retry: RetryPolicy
) -> tuple[tuple[ServerInfo, ...], dict[str, AttemptError]]:
    """What every server offers, and the conditions lost to a broken one.

    A server that fails is tried again as `retry` says, for at most `init_timeout_seconds`. One that
    refuses connections may still be starting, so it is tried until that time is over.
    """
    dice = random.Random()

    def again(server: McpServer, fault: ServerFault, attempt: int) -> float | None:
        error = AttemptError(
            cls="infrastructure",
            kind=fault.kind,
            message="",
            retriable=fault.retriable,
            retry_after=fault.retry_after,
        )
        if fault.kind == "mcp_unreachable" and retry.max_attempts > 1:
            limit = f"{server.init_timeout_seconds:g} s (init_timeout_seconds)"
            status.notice(f"{fault.message}; karat keeps trying for {limit}")
            attempt = min(attempt, retry.max_attempts - 1)

        return delay(retry, attempt, error, dice)

    infos = []
    broken = dict[str, AttemptError]()
    digests = {
        server.name: server.digest
        for condition in selected.conditions
        for server in condition.mcp_servers
    }
    for name, outcome in (await toolbox.preflight(again)).items():
        if isinstance(outcome, ToolList):
            tools = tuple(tool.name for tool in outcome.tools)
            infos.append(
                ServerInfo(
                    name=name,
                    digest=digests[name],
                    tools=tools,
                    tools_digest=outcome.digest,
                    protocol=outcome.protocol,
                    left_out=outcome.left_out,
                )
            )
            continue

        infos.append(ServerInfo(name=name, digest=digests[name], fault=outcome.message))
        names = []
        for condition in selected.conditions:
            if any(server.name == name for server in condition.mcp_servers):
                names.append(condition.name)

        error = AttemptError(
            cls="infrastructure", kind=outcome.kind, message=outcome.message, retriable=True
        )
        broken |= dict.fromkeys(names, error)
        # last: it may have lines
        status.notice(f"these conditions are not run: {', '.join(names)}. {outcome.message}")

    return tuple(infos), broken
