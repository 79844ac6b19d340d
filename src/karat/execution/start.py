"""From an experiment to a run folder with everything in it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from karat.agents import TrialAgent
from karat.errors import ResumeRefused
from karat.execution.limits import Budget, Limits, refuse_unpriced
from karat.execution.plan import Plan, plan
from karat.execution.progress import RunStatus
from karat.execution.provenance import now, resumed, run_info
from karat.execution.resume import JournalState, SavedReplies, pending_scores, read_journal, refuse_changes
from karat.execution.retry import AttemptError
from karat.execution.runner import EndReason, Runner
from karat.execution.scoring import ScoreCache, ScorerInUse
from karat.execution.setup import agent_notes, build_agents, build_scorers, close_agents, opened_scorers
from karat.execution.signals import SignalHandler
from karat.execution.trial import Work
from karat.journal import FORMAT_VERSION, Choice, End, Head, Journal, RunFolder, ServerInfo, StudyCopy, create_run
from karat.kinds import Dataset, keep_studies
from karat.mcp import Toolbox, ToolList
from karat.models import Price, limiters
from karat.records import ScorerSpec
from karat.redact import Redactor

if TYPE_CHECKING:
    from karat.config import Experiment

__all__ = ["Outcome", "Selection", "rescore", "run_experiment"]


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


async def run_experiment(
    experiment: Experiment,
    *,
    results: Path = Path("results"),
    resume: Path | None = None,
    retry_failed: bool = False,
    selection: Selection | None = None,
    status: RunStatus | None = None,
    handle_signals: bool = False,
) -> Outcome:
    """Runs what is missing of an experiment: all of it, or with `resume` the rest of a run.

    Everything that the operator could have got wrong is found before the first call:
    OperatorError, and nothing is on disk. `handle_signals`: Ctrl-C finishes what is in
    flight, a second one stops at once (main thread only).
    """
    status, here = status or RunStatus(), Path.cwd()
    async with AsyncExitStack() as stack:
        stack.callback(_back_to, here, status)
        part = _part(experiment, selection or Selection())
        stop = stack.enter_context(SignalHandler(status, handle=handle_signals))
        await stack.enter_async_context(opened_scorers(part.scorers, status.notice))
        opened = await _reopened(part, here / resume, stack) if resume is not None else None
        toolbox = await stack.enter_async_context(part.toolbox())
        agents = build_agents(experiment, part.selected, toolbox)
        stack.push_async_callback(close_agents, agents, status.notice)
        refuse_unpriced(experiment, agents, part.scorers)
        for note in agent_notes(part.selected, agents):
            status.notice(note)
        status.limiters = limiters()
        servers, broken = await _preflight(toolbox, part.selected, status)
        if opened is None:
            opened = await _new_run(part, here / results, agents, servers, stack)
        else:
            await _go_on(opened, part, agents, status)
        _announce(part, opened.past, status)
        work = opened.work(part, agents, broken, retry_failed=retry_failed)
        budget, limits = _budget(experiment, opened.past), _limits(experiment, len(part.selected))
        loop = Runner(work, journal=opened.journal, limits=limits, budget=budget, status=status)
        reason = await _guarded(loop, opened.journal, stop, status)
        _tell(toolbox, budget, status)
    path = resume or results / opened.folder.path.name  # as it was given: the working directory is what it was
    return Outcome(run=RunFolder(path, opened.folder.info), reason=reason, failed=status.failed)


async def rescore(
    folder: RunFolder,
    specs: Sequence[ScorerSpec],
    *,
    base: Path,
    limits: Limits,
    redact: Redactor | None = None,
    status: RunStatus | None = None,
    handle_signals: bool = False,
) -> Outcome:
    """Scores every answer of a run that these scorers have not seen; asks no agent."""
    status, here, memory, given = status or RunStatus(), Path.cwd(), ScoreCache(), folder
    folder = RunFolder(here / folder.path, folder.info)
    async with AsyncExitStack() as stack:
        stack.callback(_back_to, here, status)
        scorers = build_scorers(specs, folder=base, memory=memory, prices=_prices(folder.info.experiment))
        stop = stack.enter_context(SignalHandler(status, handle=handle_signals))
        await stack.enter_async_context(opened_scorers(scorers, status.notice))
        journal = await stack.enter_async_context(Journal(folder.path, redact=redact))
        memory.open(folder)
        status.limiters = limiters()
        pending, count = pending_scores(folder, scorers)
        status.planned = count
        status.scores_with((used.info for used in scorers), folder.info.kind)
        await journal.append(resumed("score", scorers=tuple(used.info for used in scorers)))
        work = Work(trials=iter(()), pending=pending, agents={}, broken={}, scorers=scorers)
        loop = Runner(work, journal=journal, limits=limits, budget=Budget(usd=None, tokens=None), status=status)
        reason = await _guarded(loop, journal, stop, status, command="score")
    return Outcome(run=given, reason=reason, failed=status.failed)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """What is to be run now, and what the whole experiment would be."""

    experiment: Experiment
    dataset: Dataset
    whole: Plan
    selected: Plan
    scorers: tuple[ScorerInUse, ...]
    memory: ScoreCache  # of the scorers
    redact: Redactor

    def toolbox(self) -> Toolbox:
        servers = {server.name: server for condition in self.selected.conditions for server in condition.mcp_servers}
        one, folder = self.experiment, self.experiment.folder
        return Toolbox(tuple(servers.values()), redact=self.redact, folder=folder, cassettes=one.cassettes)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Opened:
    """A run folder that this process writes to."""

    folder: RunFolder
    journal: Journal
    past: JournalState

    def work(
        self, part: _Part, agents: Mapping[str, TrialAgent], broken: Mapping[str, AttemptError], *, retry_failed: bool
    ) -> Work:
        """What is missing of a part."""
        return Work(
            trials=self.past.to_ask(part.selected, retry_failed=retry_failed),
            pending=self.past.pending(self.folder, part.scorers),
            agents=agents,
            broken=broken,
            scorers=part.scorers,
            saved_replies=SavedReplies(self.folder, self.past),
        )


def _part(experiment: Experiment, selection: Selection) -> _Part:
    dataset = experiment.load_dataset()
    selected = plan(
        experiment, dataset, limit=selection.limit, only_samples=selection.samples, only_conditions=selection.conditions
    )
    memory = ScoreCache()
    return _Part(
        experiment=experiment,
        dataset=dataset,
        whole=plan(experiment, dataset),
        selected=selected,
        scorers=build_scorers(
            experiment.scorers,
            folder=experiment.folder,
            memory=memory,
            env=experiment.env,
            prices=experiment.prices,
        ),
        memory=memory,
        redact=Redactor(experiment.secrets),
    )


async def _new_run(
    part: _Part,
    results: Path,
    agents: Mapping[str, TrialAgent],
    servers: tuple[ServerInfo, ...],
    stack: AsyncExitStack,
) -> _Opened:
    source = {**_source(agents), **_told(agents, part.selected), **_notes(agents, part.selected)}
    info = run_info(part.experiment, part.dataset, part.selected, part.scorers, servers=servers, source=source)
    text, samples = part.experiment.masked_text, part.selected.samples
    copies = keep_studies(part.dataset.studies, redact=part.redact)
    info = msgspec.structs.replace(info, studies=tuple(copy for copy, _ in copies))
    studies = {copy.file: data for copy, data in copies}
    folder = create_run(
        results,
        info,
        experiment=text,
        samples=samples,
        redact=part.redact,
        studies=studies,
        shared=part.experiment.execution.shared,
    )
    journal = await stack.enter_async_context(Journal(folder.path, redact=part.redact))
    await journal.append(Head(format=FORMAT_VERSION, run=folder.info.run))
    return _Opened(folder=folder, journal=journal, past=JournalState.none(part.selected))


async def _reopened(part: _Part, run: Path, stack: AsyncExitStack) -> _Opened:
    folder = RunFolder.open(run)
    refuse_changes(folder, part.experiment, part.whole, [used.info for used in part.scorers])
    journal = await stack.enter_async_context(Journal(folder.path, redact=part.redact))
    part.memory.open(folder)
    return _Opened(folder=folder, journal=journal, past=read_journal(folder, part.whole))


async def _preflight(
    toolbox: Toolbox, selected: Plan, status: RunStatus
) -> tuple[tuple[ServerInfo, ...], dict[str, AttemptError]]:
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
    broken: dict[str, AttemptError] = {}
    for condition in selected.conditions:
        for server in condition.mcp_servers:
            if server.name in down:
                fault = down[server.name]
                broken[condition.name] = AttemptError(
                    cls="infrastructure", kind=fault.kind, message=fault.message, retriable=True
                )
    for name, fault in down.items():
        costs = ", ".join(
            condition.name
            for condition in selected.conditions
            if any(server.name == name for server in condition.mcp_servers)
        )
        status.notice(f"these conditions are not run: {costs}. {fault.message}")  # last, because it may have lines
    return tuple(infos), broken


async def _guarded(
    loop: Runner, journal: Journal, stop: SignalHandler, status: RunStatus, *, command: Literal["run", "score"] = "run"
) -> EndReason:
    stop.runner, stop.journal = loop, journal
    reason = await loop.run()
    stop.journal = None
    await journal.append(End(at=now(), reason=reason, seconds=round(status.seconds, 3), command=command))
    stop.runner, stop.ended = None, True  # not before: a late signal must not take the outcome away
    return reason


def _budget(experiment: Experiment, past: JournalState) -> Budget:
    budget, unknown = experiment.execution.budget, None
    if budget.usd is not None and past.price_unknown:
        unknown = "answers are there whose price nobody told"
    elif budget.tokens is not None and past.tokens_unknown:
        unknown = "answers are there whose tokens nobody told"
    dollars, tokens = past.dollars, past.tokens
    return Budget(usd=budget.usd, tokens=budget.tokens, dollars_before=dollars, tokens_before=tokens, unknown=unknown)


def _announce(part: _Part, past: JournalState, status: RunStatus) -> None:
    """What those who look on count against."""
    status.past.dollars, status.past.tokens = past.dollars, past.tokens
    status.past.dollars_unknown, status.past.tokens_unknown = past.price_unknown, past.tokens_unknown
    status.scores_with((used.info for used in part.scorers), part.experiment.kind)
    each = len(part.selected.samples) * part.selected.repetitions
    status.expects({one.name: each for one in part.selected.conditions}, past.answered(part.selected))


def _tell(toolbox: Toolbox, budget: Budget, status: RunStatus) -> None:
    """What was noticed during the run and concerns its results."""
    for change in toolbox.changes:
        status.notice(f"MCP server '{change.server}' changed its tools during the run; its answers are not alike")
    if budget.unknown is not None:
        status.notice(f"the budget stopped the run: {budget.unknown}, so nobody can say what is left of it")


def _back_to(folder: Path, status: RunStatus) -> None:
    """The working directory belongs to the whole process, and an agent written in Python may have changed it."""
    try:
        if Path.cwd() == folder:
            return
    except FileNotFoundError:
        pass  # it has removed the one it went to
    os.chdir(folder)
    status.notice(f"the agent changed the working directory; it is {folder} again")


def _prices(resolved: Mapping[str, Choice]) -> dict[str, Price]:
    """What the run's experiment file said about prices."""
    given: dict[str, dict[str, Any]] = {}
    for key, choice in resolved.items():
        section, _, rest = key.partition(".")
        model, _, kind = rest.rpartition(".")
        if section == "prices" and model:
            given.setdefault(model, {})[kind] = choice.value
    return {model: msgspec.convert(values, Price) for model, values in given.items()}


def _limits(experiment: Experiment, planned: int) -> Limits:
    execution = experiment.execution
    return Limits(
        max_concurrent=execution.max_concurrent,
        timeout_seconds=execution.timeout_seconds,
        judge_timeout_seconds=execution.judge_timeout_seconds,
        retry=execution.retry,
        max_failures=execution.most_failures(planned),
        by_share=execution.failures_by_share,
    )


async def _go_on(opened: _Opened, part: _Part, agents: Mapping[str, TrialAgent], status: RunStatus) -> None:
    """Raises ResumeRefused when recorded answers are read from another file than before."""
    folder, source = opened.folder, _source(agents)
    before = folder.info.source
    if before and source and before.get("sha256") != source.get("sha256"):
        changes = [
            f"the recorded answers are of another file: {source.get('file')}, sha256 {source.get('sha256', '')[:12]}"
        ]
        raise ResumeRefused(str(folder.path), changes, "Start a new run without --resume.")
    if opened.journal.empty:
        status.notice("the journal is empty or missing: everything is asked")
        await opened.journal.append(Head(format=FORMAT_VERSION, run=folder.info.run))
    samples, studies = _widen_samples(folder, part), _widen_studies(folder, part)
    await opened.journal.append(resumed("run", part.selected, samples=samples, studies=studies))


def _source(agents: Mapping[str, TrialAgent]) -> dict[str, str]:
    sources = [getattr(agent, "source", {}) for agent in agents.values()]
    return {key: text for one in sources for key, text in one.items()}


def _told(agents: Mapping[str, TrialAgent], selected: Plan) -> dict[str, str]:
    """What agents that give back answers of a file say of the file, held against what is asked."""
    found: dict[str, str] = {}
    for agent in {id(agent): agent for agent in agents.values()}.values():
        asked = [name for name, one in agents.items() if one is agent]
        told = getattr(agent, "told", None)
        found.update(told(selected.samples, conditions=asked, repetitions=selected.repetitions) if told else {})
    return found


def _notes(agents: Mapping[str, TrialAgent], selected: Plan) -> dict[str, str]:
    """What every report of the run warns of."""
    notes = "; ".join(agent_notes(selected, agents))
    return {"notes": notes} if notes else {}


def _widen_samples(folder: RunFolder, part: _Part) -> int:
    """samples.jsonl holds every sample that any part of the run planned, in the dataset's order; how many it holds."""
    there = {sample.id for sample in folder.samples()}
    wanted = there | {sample.id for sample in part.selected.samples}
    if wanted != there:
        folder.write_samples((sample for sample in part.whole.samples if sample.id in wanted), redact=part.redact)
    return len(wanted)


def _widen_studies(folder: RunFolder, part: _Part) -> tuple[StudyCopy, ...]:
    """Human studies that the run does not keep yet, or not as they are now: their files, and what the journal says."""
    there = {copy.study: copy for copy in folder.studies()}
    copies = [
        (msgspec.structs.replace(copy, code=_first_code(there.get(copy.study), copy)), data)
        for copy, data in keep_studies(part.dataset.studies, redact=part.redact)
    ]
    new = [(copy, data) for copy, data in copies if there.get(copy.study) != copy]
    folder.write_studies({copy.file: data for copy, data in new})
    return tuple(copy for copy, _ in new)


def _first_code(before: StudyCopy | None, now: StudyCopy) -> dict[str, str] | None:
    """The code that the run began with: who resumes it has not said that other code may make its numbers."""
    return now.code if before is None or before.code is None else before.code
