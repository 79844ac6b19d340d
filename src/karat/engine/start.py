"""From an experiment to a run folder with everything in it."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from karat import plugins
from karat.agents import AgentSetting, TrialAgent, as_agent
from karat.engine.loop import EndReason, Limits, Loop, ScorerInUse, Work
from karat.engine.resume import Past, owed_answers, read_past, refuse_changes
from karat.engine.retry import Fallen
from karat.engine.spend import Spend
from karat.engine.watch import Watch
from karat.journal import (
    FORMAT_VERSION,
    DatasetInfo,
    End,
    Head,
    Journal,
    PlanInfo,
    Resume,
    RunFolder,
    RunInfo,
    ScorerInfo,
    ServerInfo,
    create_run,
)
from karat.mcp import Toolbox, ToolList
from karat.plan import Plan, plan
from karat.records import ScorerSpec
from karat.redact import Redactor
from karat.scorers import ScorerSetting, metrics_of

if TYPE_CHECKING:
    from karat.config import Experiment

__all__ = ["Outcome", "Selection", "build_agents", "build_scorers", "carry_out", "rescore"]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the experiment to run now."""

    limit: int | None = None
    samples: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run, or a part of it, ended."""

    run: RunFolder
    reason: EndReason
    failed: int  # trials of this part that ended without an answer or without a score


async def carry_out(
    experiment: Experiment,
    *,
    results: Path = Path("results"),
    resume: Path | None = None,
    retry_failed: bool = False,
    selection: Selection | None = None,
    watch: Watch | None = None,
    handle_signals: bool = False,
) -> Outcome:
    """Runs what is missing of an experiment: all of it, or with `resume` the rest of a run.

    Everything that the operator could have got wrong is found before the first call:
    OperatorError, and nothing is on disk. `handle_signals`: Ctrl-C finishes what is in
    flight, a second one stops at once (main thread only).
    """
    watch = watch or Watch()
    selection = selection or Selection()
    dataset = experiment.load_dataset()
    whole = plan(experiment, dataset)
    selected = plan(
        experiment, dataset, limit=selection.limit, only_samples=selection.samples, only_conditions=selection.conditions
    )
    scorers = build_scorers(experiment.scorers, folder=experiment.folder)
    redact = Redactor(experiment.secrets)
    async with AsyncExitStack() as stack:
        past, journal, folder = Past.none(selected), None, None
        if resume is not None:
            folder = RunFolder.open(resume)
            refuse_changes(folder, experiment, whole, [used.info for used in scorers])
            journal = await stack.enter_async_context(Journal(folder.path, redact=redact))
            past = read_past(folder, whole)
        servers = {server.name: server for condition in selected.conditions for server in condition.mcp_servers}
        toolbox = await stack.enter_async_context(
            Toolbox(tuple(servers.values()), redact=redact, folder=experiment.folder)
        )
        agents = build_agents(experiment, selected, toolbox)
        found, broken = await _preflight(toolbox, selected, watch)
        if folder is None:
            dataset_info = DatasetInfo(
                kind=dataset.kind, path=str(dataset.path), sha256=dataset.sha256, samples=len(dataset)
            )
            info = _run_info(experiment, selected, dataset_info, scorers, found)
            sources = [getattr(agent, "source", {}) for agent in agents.values()]
            info = msgspec.structs.replace(info, source={key: text for one in sources for key, text in one.items()})
            folder = create_run(
                results, info, experiment=experiment.masked_text, samples=selected.samples, redact=redact
            )
            journal = await stack.enter_async_context(Journal(folder.path, redact=redact))
            await journal.append(Head(format=FORMAT_VERSION, run=folder.info.run))
        else:
            assert journal is not None
            _widen_samples(folder, whole, selected, redact)
            await journal.append(_resumed("run", selected))
        watch.planned, watch.before = len(selected), past.answered
        spend = Spend(
            usd=experiment.execution.budget.usd,
            tokens=experiment.execution.budget.tokens,
            dollars_before=past.dollars,
            tokens_before=past.tokens,
        )
        work = Work(
            trials=past.to_ask(selected, retry_failed=retry_failed),
            owed=past.owed(folder, scorers),
            agents=agents,
            broken=broken,
            scorers=scorers,
        )
        loop = Loop(work, journal=journal, limits=_limits(experiment, len(selected)), spend=spend, watch=watch)
        reason = await _guarded(loop, journal, watch, handle_signals=handle_signals)
        for change in toolbox.changes:
            watch.notice(f"MCP server '{change.server}' changed its tools during the run; its answers are not alike")
        if spend.unknown:
            watch.notice("the budget in dollars stopped the run: an answer came without its price; give `prices:`")
    return Outcome(run=folder, reason=reason, failed=watch.failed)


async def rescore(
    folder: RunFolder,
    specs: Sequence[ScorerSpec],
    *,
    base: Path,
    limits: Limits,
    redact: Redactor | None = None,
    watch: Watch | None = None,
    handle_signals: bool = False,
) -> Outcome:
    """Scores every answer of a run that these scorers have not seen; asks no agent."""
    watch = watch or Watch()
    scorers = build_scorers(specs, folder=base)
    async with Journal(folder.path, redact=redact) as journal:
        owed, count = owed_answers(folder, scorers)
        watch.planned = count
        await journal.append(_resumed("score", scorers=tuple(used.info for used in scorers)))
        work = Work(trials=iter(()), owed=owed, agents={}, broken={}, scorers=scorers)
        loop = Loop(work, journal=journal, limits=limits, spend=Spend(usd=None, tokens=None), watch=watch)
        reason = await _guarded(loop, journal, watch, handle_signals=handle_signals)
    return Outcome(run=folder, reason=reason, failed=watch.failed)


def build_agents(experiment: Experiment, selected: Plan, toolbox: Toolbox) -> dict[str, TrialAgent]:
    """One agent a set of options: conditions that share them share the agent."""
    setting = AgentSetting(folder=experiment.folder, toolbox=toolbox, redact=Redactor(experiment.secrets))
    built: dict[str, TrialAgent] = {}
    agents: dict[str, TrialAgent] = {}
    for condition in selected.conditions:
        spec = condition.agent
        key = spec.type + spec.digest
        if key not in built:
            plugin = plugins.find("agents", spec.type, folder=experiment.folder)
            built[key] = as_agent(plugins.build(plugin, spec.options, setting=setting))
        agents[condition.name] = built[key]
    return agents


def build_scorers(specs: Sequence[ScorerSpec], *, folder: Path) -> tuple[ScorerInUse, ...]:
    """The scorers, each with the digest that tells its scores from another's."""
    return tuple(_scorer_in_use(spec, folder) for spec in specs)


def _scorer_in_use(spec: ScorerSpec, folder: Path) -> ScorerInUse:
    plugin = plugins.find("scorers", spec.type, folder=folder)
    scorer = plugins.build(plugin, spec.options, setting=ScorerSetting(folder=folder, name=spec.name))
    # A scorer's fingerprint covers what its options only point at (a rubric file), and its own revisions.
    parts = [spec.type, spec.name, spec.options, str(getattr(scorer, "fingerprint", ""))]
    digest = blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=8).hexdigest()
    info = ScorerInfo(
        name=spec.name,
        type=spec.type,
        scoring=digest,
        metrics=metrics_of(scorer, spec.name),
        offline=bool(getattr(scorer, "offline", True)),
        options=msgspec.to_builtins(spec.options),
        rubric=getattr(scorer, "rubric_name", None),
        rubric_digest=getattr(scorer, "rubric_digest", None),
    )
    return ScorerInUse(info=info, scorer=scorer, waits=asyncio.iscoroutinefunction(scorer.score))


async def _preflight(
    toolbox: Toolbox, selected: Plan, watch: Watch
) -> tuple[tuple[ServerInfo, ...], dict[str, Fallen]]:
    """What every server offers, and the conditions that a broken one costs: told once, first."""
    infos, down = [], {}
    digests = {server.name: server.digest for condition in selected.conditions for server in condition.mcp_servers}
    for name, found in (await toolbox.preflight()).items():
        if isinstance(found, ToolList):
            tools = tuple(tool.name for tool in found.tools)
            infos.append(ServerInfo(name=name, digest=digests[name], tools=tools, tools_digest=found.digest))
            continue
        infos.append(ServerInfo(name=name, digest=digests[name], fault=found.message))
        down[name] = found
    broken: dict[str, Fallen] = {}
    for condition in selected.conditions:
        for server in condition.mcp_servers:
            if server.name in down:
                fault = down[server.name]
                broken[condition.name] = Fallen(
                    cls="infrastructure", kind=fault.kind, message=fault.message, retriable=True
                )
    for name, fault in down.items():
        costs = ", ".join(
            condition.name
            for condition in selected.conditions
            if any(server.name == name for server in condition.mcp_servers)
        )
        watch.notice(f"MCP server '{name}' is down, so these conditions are not run: {costs}. {fault.message}")
    return tuple(infos), broken


async def _guarded(loop: Loop, journal: Journal, watch: Watch, *, handle_signals: bool) -> EndReason:
    with _signals(loop, watch) if handle_signals else _nothing():
        reason = await loop.run()
    await journal.append(End(at=_now(), reason=reason, seconds=round(watch.seconds, 3)))
    return reason


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _signals(loop: Loop, watch: Watch) -> Iterator[None]:
    """First Ctrl-C: drain. Second: stop at once."""
    running = asyncio.get_running_loop()

    def stop() -> None:
        if watch.draining == "interrupted":
            watch.notice("stopping at once: what was in flight is cut off")
            loop.cancel()
        else:
            watch.notice("finishing what is in flight; Ctrl-C again stops at once")
            loop.drain("interrupted")

    for number in (signal.SIGINT, signal.SIGTERM):
        running.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            running.remove_signal_handler(number)


def _limits(experiment: Experiment, planned: int) -> Limits:
    execution = experiment.execution
    most = execution.max_failures
    return Limits(
        max_concurrent=execution.max_concurrent,
        timeout_seconds=execution.timeout_seconds,
        judge_timeout_seconds=execution.judge_timeout_seconds,
        retry=execution.retry,
        max_failures=max(1.0, most * planned if most < 1 else most),
    )


def _run_info(
    experiment: Experiment,
    selected: Plan,
    dataset: DatasetInfo,
    scorers: Sequence[ScorerInUse],
    servers: tuple[ServerInfo, ...],
) -> RunInfo:
    conditions = selected.conditions
    model = experiment.agent.options.get("model")
    return RunInfo(
        format=FORMAT_VERSION,
        run="",
        name=experiment.name,
        version=experiment.version,
        created=_now(),
        kind=experiment.kind,
        plan=_plan_info(selected),
        dataset=dataset,
        experiment=dict(experiment.resolved),
        conditions={condition.name: condition.digest for condition in conditions},
        prompts={
            condition.name: sha256((condition.system_prompt or "").encode("utf-8", "surrogatepass")).hexdigest()
            for condition in conditions
        },
        agents={condition.name: condition.agent.digest for condition in conditions},
        agent_type=experiment.agent.type,
        agent_model=model if isinstance(model, str) else None,
        scorers=tuple(used.info for used in scorers),
        servers=servers,
        condition_servers={
            condition.name: tuple(server.name for server in condition.mcp_servers) for condition in conditions
        },
        seed=experiment.execution.seed,
        versions=_versions(),
        host=f"{platform.system()} {platform.machine()}",
    )


def _plan_info(selected: Plan) -> PlanInfo:
    return PlanInfo(
        samples=len(selected.samples),
        conditions=tuple(condition.name for condition in selected.conditions),
        repetitions=selected.repetitions,
    )


def _resumed(
    command: Literal["run", "score"], selected: Plan | None = None, scorers: tuple[ScorerInfo, ...] = ()
) -> Resume:
    conditions = selected.conditions if selected is not None else ()
    return Resume(
        at=_now(),
        versions=_versions(),
        host=socket.gethostname(),
        pid=os.getpid(),
        plan=_plan_info(selected) if selected is not None else None,
        conditions={condition.name: condition.digest for condition in conditions},
        agents={condition.name: condition.agent.digest for condition in conditions},
        command=command,
        scorers=scorers,
    )


def _widen_samples(folder: RunFolder, whole: Plan, selected: Plan, redact: Redactor) -> None:
    """samples.jsonl holds every sample that any part of the run planned, in the dataset's order."""
    there = {sample.id for sample in folder.samples()}
    wanted = there | {sample.id for sample in selected.samples}
    if wanted != there:
        folder.write_samples((sample for sample in whole.samples if sample.id in wanted), redact=redact)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("karat", "mcp"):
        # A library that is not loaded has not touched the run, and looking it up takes milliseconds.
        if name == "karat" or name in sys.modules:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
