"""From an experiment to a run folder with everything in it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from operator import attrgetter, le
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from karat import kinds
from karat.agents import TrialAgent
from karat.context import TrialWorkspaces, snapshots, trial_workspaces
from karat.errors import ResumeRefused
from karat.execution.executors import Distributed, Executor, MakeTrials, executor_of
from karat.execution.limits import Budget, Limits, RunStatus, refuse_unpriced
from karat.execution.plan import Shard, plan
from karat.execution.provenance import now, resumed, run_info
from karat.execution.resume import (
    JournalState,
    SavedReplies,
    new_scorers,
    pending_scores,
    read_journal,
    refuse_changes,
)
from karat.execution.retry import AttemptError
from karat.execution.runner import EndReason, Runner
from karat.execution.scoring import ScorerMemory
from karat.execution.setup import (
    Agents,
    agent_notes,
    agents_taken,
    announce_agents,
    baseline_first,
    build_agents,
    build_scorers,
    close_agents,
    experiment_scorers,
    opened_scorers,
    preflight,
    refuse_unfit_samples,
    refuse_unknown_gates,
)
from karat.execution.signals import SignalHandler
from karat.execution.stopping import EarlyStop, horizon_of, refuse_another_horizon, stops_when
from karat.execution.trial import Work
from karat.index import plan_of
from karat.journal import (
    FORMAT_WITHOUT_STOP,
    Choice,
    End,
    Head,
    Journal,
    KeptFile,
    RunFolder,
    ServerInfo,
    create_run,
    server_changes,
)
from karat.kinds import Dataset
from karat.mcp import Toolbox
from karat.models import Price, Rate, limit_rates, limiters
from karat.records import AgentSpec, JsonObject, Sample, ScorerSpec, Trial
from karat.redact import Redactor
from karat.scorers import ScorerSetting

if TYPE_CHECKING:
    from karat.config import Experiment

Command = Literal["run", "score"]
_PerModel = TypeVar("_PerModel", Price, Rate)


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the experiment to run now."""

    limit: int | None = None
    samples: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    shard: Shard | None = None  # of a new run; a resumed one knows its own


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What has been read of an experiment before it is run."""

    dataset: Dataset
    agents: tuple[tuple[AgentSpec, TrialAgent], ...]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run, or a part of it, ended."""

    run: RunFolder
    reason: EndReason
    failed: int  # trials of this part that ended without an answer or without a score


async def run_experiment(  # noqa: PLR0913 - what to run, where, and who watches
    experiment: Experiment,
    *,
    results: Path = Path("results"),
    resume: Path | None = None,
    retry_failed: bool = False,
    selection: Selection | None = None,
    status: RunStatus | None = None,
    handle_signals: bool = False,
    loaded: Loaded | None = None,
) -> Outcome:
    """Runs an experiment: all of it, or with `resume` the rest of a run.

    Every operator mistake is found before the first call:
    OperatorError, and nothing is on disk. `handle_signals`: Ctrl-C finishes trials in
    flight, a second one stops at once (main thread only). `loaded`: what is not read again.
    """
    status, here = status or RunStatus(), Path.cwd()
    async with AsyncExitStack() as stack:
        stack.callback(_back_to, here, status)
        if resume is not None:
            before = RunFolder.open(here / resume)
        else:
            before = None

        part = _Part(experiment, selection or Selection(), before, loaded)
        experiment = part.experiment
        executor = executor_of(experiment)
        limit_rates(_shared_rates(experiment.limits, part.selected.shard))
        part.selected = part.selected.with_conditions(
            stack.enter_context(snapshots(part.selected.conditions))
        )
        keep, ignore = experiment.execution.keep_workspaces, experiment.execution.workspace_ignore
        workspaces = trial_workspaces(
            part.selected.conditions, redact=part.redact, keep=keep, ignore=ignore
        )
        stop = stack.enter_context(SignalHandler(status, handle=handle_signals))
        stack.callback(part.memory.close)
        await stack.enter_async_context(opened_scorers(part.scorers, status.notice))
        if before is not None:
            past = await part.reopen(stack)
        else:
            past = JournalState.none(part.selected)

        for text in part.folder.gap_notices() if before is not None else ():
            status.notice(text)
        toolbox = await stack.enter_async_context(part.toolbox())
        agents = build_agents(experiment, part.selected, toolbox, known=part.agents)
        stack.push_async_callback(close_agents, agents, status.notice)
        refuse_unpriced(experiment, agents, part.scorers)
        announce_agents(part.selected, agents, status)
        status.limiters = limiters()
        servers, broken = await preflight(
            toolbox, part.selected, status, retry=experiment.execution.retry
        )
        if (may_stop := stops_when(part.horizon)) is not None:
            status.notice(may_stop)
        limits = Limits.of(experiment.execution, len(part.selected))
        elsewhere = await part.trials_elsewhere(
            executor, here / results, servers, limits, stack, status
        )
        if resume is None:
            await part.create(here / results, agents, servers, stack)
            part.show_first_row(agents, status)
        else:
            await part.resume(agents, servers, status)

        if workspaces is not None:
            overlays = any(agent.enters_workspace for agent in agents.values())
            stack.enter_context(
                workspaces.opened(part.folder.path, overlays=overlays, notice=status.notice)
            )

        _show_plan(part, past, agents, status)
        work = part.work(past, agents, broken, workspaces, retry_failed=retry_failed)
        budget = _budget(experiment, past, part.selected.shard)
        runner = Runner(
            work,
            journal=part.journal,
            limits=limits,
            budget=budget,
            status=status,
            early=part.early_stop(),
            elsewhere=elsewhere,
        )
        reason = await _run_to_end(runner, part.journal, stop, status)
        _notice_at_end(agents, budget, status)

    path = resume or results / part.folder.path.name  # as given: the working directory is unchanged
    return Outcome(run=RunFolder(path, part.folder.info), reason=reason, failed=status.failed)


_NAMED = 8  # keys


def _notice_at_end(agents: Agents, budget: Budget, status: RunStatus) -> None:
    """What of the agents changed during the run, and what stopped it."""
    for words in dict.fromkeys(words for agent in agents.values() for words in agent.changes):
        status.notice(f"{words}; its answers are not alike")

    unread = sorted({name for agent in agents.values() for name in agent.unread})
    if unread:
        if len(unread) > _NAMED:
            more = f" and {len(unread) - _NAMED} more"
        else:
            more = ""

        status.notice(
            f"the agent's replies have keys that are not kept: {', '.join(unread[:_NAMED])}{more}"
        )

    if budget.unknown is not None:
        status.notice(
            f"the budget stopped the run: {budget.unknown}, so the rest of it is not known"
        )


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
    """Scores every answer of a run that these scorers have not scored; asks no agent."""
    status = status or RunStatus()
    here = Path.cwd()
    memory = ScorerMemory()
    given = folder
    folder = RunFolder(here / folder.path, folder.info)
    async with AsyncExitStack() as stack:
        stack.callback(_back_to, here, status)
        settings = folder.info.experiment
        limit_rates(_by_model(settings, "limits", Rate))
        setting = ScorerSetting(
            folder=base,
            name="",
            recall=memory.recall,
            answer_of=memory.answer_of,
            workspace_of=memory.workspaces.of,
            prices=_by_model(settings, "prices", Price),
            conditions=baseline_first(plan_of(folder).conditions, settings),
        )
        scorers = build_scorers(specs, setting)
        stop = stack.enter_context(SignalHandler(status, handle=handle_signals))
        stack.callback(memory.close)
        await stack.enter_async_context(opened_scorers(scorers, status.notice))
        journal = await stack.enter_async_context(Journal(folder.path, redact=redact))
        memory.open(folder)
        status.limiters = limiters()
        pending, count = pending_scores(folder, scorers, memory)
        status.planned = count
        for text in folder.gap_notices():
            status.notice(text)
        status.scores_with((used.info for used in scorers), folder.info.kind)
        await journal.append(resumed("score", scorers=tuple(used.info for used in scorers)))
        work = Work(trials=iter(()), pending=pending, agents={}, broken={}, scorers=scorers)
        runner = Runner(
            work,
            journal=journal,
            limits=limits,
            budget=Budget(usd=None, tokens=None),
            status=status,
        )
        reason = await _run_to_end(runner, journal, stop, status, command="score")

    return Outcome(run=given, reason=reason, failed=status.failed)


class _Part:
    """The work to do now, in its run folder."""

    folder: RunFolder
    journal: Journal

    def __init__(
        self,
        experiment: Experiment,
        selection: Selection,
        run: RunFolder | None,
        loaded: Loaded | None,
    ) -> None:
        """`run`: the one to resume."""
        commit = None
        first = selection.limit
        if run is not None or selection.samples:
            first = None  # a resumed run is compared with the whole file
        if run is not None:
            self.folder = run
            # empty: from before the short form `dataset: PATH` was recorded
            if run.info.dataset.path in ("", experiment.resolved["dataset.path"].value):
                commit = run.info.dataset.commit

        dataset = loaded.dataset if loaded is not None else None
        self.agents = loaded.agents if loaded is not None else ()
        experiment, self.dataset = experiment.with_dataset(commit, first=first, dataset=dataset)
        self.experiment = experiment

        # The shard to run. Raises ResumeRefused if a resumed run is another one.
        if run is None:
            shard = selection.shard
        else:
            if run.info.shard is not None:
                before = Shard.parse(run.info.shard)
            else:
                before = None

            if selection.shard not in (None, before):
                if before is not None:
                    actual = f"shard {before}"
                else:
                    actual = "no shard, but the whole experiment"

                raise ResumeRefused(
                    run.path, [f"it is {actual}"], "Leave out --shard: the run knows which it is."
                )

            shard = before

        self.selected = plan(
            experiment,
            self.dataset,
            limit=selection.limit,
            only_samples=selection.samples,
            only_conditions=selection.conditions,
            shard=shard,
        )
        self.whole = plan(experiment, self.dataset)
        self.redact = Redactor(experiment.secrets)
        if self.dataset.understood is not None:
            understood = self.dataset.understood.masked(self.redact)
            self.dataset = msgspec.structs.replace(self.dataset, understood=understood)

        self.memory = ScorerMemory()
        self.scorers = experiment_scorers(experiment, self.memory)
        refuse_unknown_gates(experiment, self.scorers)
        refuse_unfit_samples(self.scorers, self.selected.samples)
        self.horizon = horizon_of(experiment, self.selected, self.scorers)

    def toolbox(self) -> Toolbox:
        servers = {}
        for condition in self.selected.conditions:
            for server in condition.mcp_servers:
                servers[server.name] = server

        experiment = self.experiment
        return Toolbox(
            tuple(servers.values()),
            redact=self.redact,
            folder=experiment.folder,
            cassettes=experiment.cassettes,
            on_news=lambda event: self.journal.append(event),  # noqa: PLW0108 -- it is opened later
        )

    async def trials_elsewhere(
        self,
        executor: Executor | None,
        results: Path,
        servers: tuple[ServerInfo, ...],
        limits: Limits,
        stack: AsyncExitStack,
        status: RunStatus,
    ) -> MakeTrials | None:
        """What makes the trials of this run elsewhere; None: this process runs them.

        Raises OperatorError.
        """
        if executor is None:
            return None
        run = Distributed(
            experiment=self.experiment,
            conditions=tuple(condition.name for condition in self.selected.conditions),
            scorings=tuple(used.info.scoring for used in self.scorers if not used.late),
            servers=servers,
            limits=limits,
            results=results,
            notice=status.notice,
        )
        return await stack.enter_async_context(executor.opened(run))

    def show_first_row(self, agents: Agents, status: RunStatus) -> None:
        """Says how the dataset was read, unless its answers were made elsewhere."""
        understood = self.dataset.understood
        if understood is not None and not _source(agents):
            status.remark("\n  ".join(["first row:", *understood.lines()]))

    async def create(
        self,
        results: Path,
        agents: Agents,
        servers: tuple[ServerInfo, ...],
        stack: AsyncExitStack,
    ) -> None:
        """A new run folder, with everything needed to know what was run."""
        copies = kinds.of(self.dataset.kind).keep(self.dataset, redact=self.redact)
        # The file of the answers, its faults, and warnings for every report.
        source = _source(agents)
        for agent in {id(agent): agent for agent in agents.values()}.values():
            names = []
            for name, other in agents.items():
                if other is agent:
                    names.append(name)

            source |= agent.source_notes(
                self.selected.samples, conditions=names, repetitions=self.selected.repetitions
            )

        if notes := "; ".join([*self.dataset.warnings, *agent_notes(self.selected, agents)]):
            source["notes"] = notes
        if taken := "; ".join(agents_taken(agents)):
            source["asked"] = taken
        info = run_info(
            self.experiment,
            self.dataset,
            self.selected,
            self.scorers,
            servers=servers,
            source=source,
            kept=tuple(copy for copy, _ in copies),
        )
        info = msgspec.structs.replace(
            info,
            reports_tool_calls=all(agent.reports_tool_calls for agent in agents.values()),
            measures_calls=all(agent.measures_calls for agent in agents.values()),
            sparse=any(agent.never_made is not None for agent in agents.values()),
            versions=info.versions | _versions(agents),
        )
        self.folder = create_run(
            results,
            info,
            experiment=self.experiment.masked_text,
            samples=_in_file_order(self.selected.samples),
            redact=self.redact,
            kept={copy.file: data for copy, data in copies},
            shared=self.experiment.execution.shared,
        )
        self.memory.workspaces.run = self.folder.path
        self.journal = await stack.enter_async_context(
            Journal(self.folder.path, redact=self.redact)
        )
        await self._begin()

    async def _begin(self) -> None:
        """The first lines of the journal."""
        info = self.folder.info
        head = Head(format=max(info.format, FORMAT_WITHOUT_STOP), run=info.run)
        await self.journal.append(head, *([] if self.horizon is None else [self.horizon]))

    def early_stop(self) -> EarlyStop | None:
        """The rule that ends the run when it is decided; None if every question is asked."""
        if self.horizon is None:
            return None
        return EarlyStop(
            self.folder, self.horizon, max_concurrent=self.experiment.execution.max_concurrent
        )

    async def reopen(self, stack: AsyncExitStack) -> JournalState:
        """The state of a run's journal. Raises ResumeRefused if the experiment does not fit it."""
        refuse_changes(
            self.folder, self.experiment, self.whole, [used.info for used in self.scorers]
        )
        self.journal = await stack.enter_async_context(
            Journal(self.folder.path, redact=self.redact)
        )
        self.memory.open(self.folder)
        past = read_journal(self.folder, self.whole)
        if not self.journal.empty:
            refuse_another_horizon(self.folder, past.horizon, self.horizon)
        return past

    async def resume(
        self, agents: Agents, servers: Sequence[ServerInfo], status: RunStatus
    ) -> None:
        """Records in the run folder that the run continues, and with what.

        Raises ResumeRefused if recorded answers come from another file than before, or an agent's
        program has another version now.
        """
        before = self.folder.info.source
        source = _source(agents)
        if before and source and before.get("sha256") != source.get("sha256"):
            file = source.get("file")
            sha256 = source.get("sha256", "")[:12]
            changes = [f"the recorded answers are of another file: {file}, sha256 {sha256}"]
            raise ResumeRefused(self.folder.path, changes, "Start a new run without --resume.")

        versions = self.folder.info.versions
        changes = [
            f"{name} is now {now}, and was {versions[name]}"
            for name, now in _versions(agents).items()
            if name in versions and not set(now.split(", ")) <= set(versions[name].split(", "))
        ]
        if changes:
            remedy = (
                "Install the version that the run began with, or start a new run without --resume."
            )
            raise ResumeRefused(self.folder.path, changes, remedy)

        if self.journal.empty:
            status.notice("the journal is empty or missing: everything is asked")
            await self._begin()

        # samples.jsonl has every sample that a part of the run planned, in the dataset's order.
        present = {sample.id for sample in self.folder.samples()}
        wanted = present | {sample.id for sample in self.selected.samples}
        if wanted != present:
            in_order = _in_file_order(self.whole.samples)
            samples = (sample for sample in in_order if sample.id in wanted)
            self.folder.write_samples(samples, redact=self.redact)

        kept = self._widen_kept()
        known = self.folder.widened_info().servers
        changed = tuple(server_changes(known, servers))
        for _, text in changed:
            status.notice(f"{text}; answers of both parts are not alike")
        names = {server.name for server in known}
        others = (
            *(server for server, _ in changed),
            *(server for server in servers if server.name not in names),
        )
        scorers = new_scorers(self.folder, [used.info for used in self.scorers])
        event = resumed(
            "run",
            self.selected,
            samples=len(wanted),
            kept=kept,
            servers=others,
            scorers=scorers,
        )
        await self.journal.append(event)

    def work(
        self,
        past: JournalState,
        agents: Agents,
        broken: Mapping[str, AttemptError],
        workspaces: TrialWorkspaces | None,
        *,
        retry_failed: bool,
    ) -> Work:
        """What the run still lacks."""
        scorers = [used for used in self.scorers if not used.late]
        late = [used for used in self.scorers if used.late]
        return Work(
            trials=_made(past.to_ask(self.selected, retry_failed=retry_failed), agents),
            pending=past.pending(self.folder, scorers),
            late=lambda: (
                pending_scores(self.folder, late, self.memory, again=True)[0] if late else iter(())
            ),
            agents=agents,
            broken=broken,
            scorers=scorers,
            kind=kinds.of(self.dataset.kind),
            saved_replies=SavedReplies(self.folder, past),
            workspaces=workspaces,
        )

    def _widen_kept(self) -> tuple[KeptFile, ...]:
        """Files that the run does not keep yet, or that have changed.

        Their code stays as at the start of the run.
        """
        present = {copy.name: copy for copy in self.folder.kept()}
        new = []
        for copy, data in kinds.of(self.dataset.kind).keep(self.dataset, redact=self.redact):
            before = present.get(copy.name)
            if before is not None and before.code is not None:
                copy = msgspec.structs.replace(copy, code=before.code)  # noqa: PLW2901 -- the copy with its first code
            if before != copy:
                new.append((copy, data))

        self.folder.write_kept({copy.file: data for copy, data in new})
        return tuple(copy for copy, _ in new)


def _shared_rates(rates: Mapping[str, Rate], shard: Shard | None) -> Mapping[str, Rate]:
    """One shard's part of a provider's limits."""
    if shard is None:
        return rates
    plain = {name: msgspec.structs.asdict(rate) for name, rate in rates.items()}
    found = {}
    for name, rate in plain.items():
        found[name] = Rate(**{key: most and most / shard.of for key, most in rate.items()})
    return found


def _in_file_order(samples: Sequence[Sample]) -> Sequence[Sample]:
    """A run that may stop early uses another order, and equal questions have one position.

    Others are not sorted: that would decode every sample at once.
    """
    positions = [sample.position for sample in samples]
    if all(map(le, positions, islice(positions, 1, None))):
        return samples
    return sorted(samples, key=lambda sample: sample.position)


def _source(agents: Agents) -> dict[str, str]:
    found: dict[str, str] = {}
    for agent in agents.values():
        found |= agent.source

    return found


def _versions(agents: Agents) -> dict[str, str]:
    """Program → version, or versions if conditions name several programs."""
    by_program: dict[str, set[str]] = {}
    for agent in agents.values():
        for name, version in agent.versions.items():
            by_program.setdefault(name, set()).add(version)

    return {name: ", ".join(sorted(versions)) for name, versions in sorted(by_program.items())}


async def _run_to_end(
    runner: Runner,
    journal: Journal,
    stop: SignalHandler,
    status: RunStatus,
    *,
    command: Command = "run",
) -> EndReason:
    stop.runner = runner
    stop.journal = journal
    reason = await runner.run()
    stop.journal = None
    await journal.append(
        End(at=now(), reason=reason, seconds=round(status.seconds, 3), command=command)
    )
    stop.runner = None
    stop.ended = True  # not before: a late signal must not discard the outcome
    return reason


def _budget(experiment: Experiment, past: JournalState, shard: Shard | None) -> Budget:
    """`shard`: it may spend its part of the budget."""
    budget = experiment.execution.budget
    unknown = None
    of = shard.of if shard is not None else 1
    if budget.usd is not None and past.price_unknown:
        unknown = "an earlier answer has no known price"
    elif budget.tokens is not None and past.tokens_unknown:
        unknown = "an earlier answer has no known tokens"

    return Budget(
        usd=budget.usd and budget.usd / of,
        tokens=budget.tokens and budget.tokens // of,
        dollars_before=past.dollars,
        tokens_before=past.tokens,
        unknown=unknown,
        largest_trial=past.largest_trial,
        largest_score=past.largest_score,
    )


def _made(trials: Iterable[Trial], agents: Agents) -> Iterator[Trial]:
    """The trials, without those that are none of the answers that were made elsewhere."""
    if not any(map(attrgetter("never_made"), agents.values())):
        return iter(trials)

    def is_made(trial: Trial) -> bool:
        never_made = agents[trial.condition.name].never_made
        return never_made is None or not never_made(trial)

    return filter(is_made, trials)


def _show_plan(part: _Part, past: JournalState, agents: Agents, status: RunStatus) -> None:
    """The totals for progress displays."""
    status.past.dollars = past.dollars
    status.past.tokens = past.tokens
    status.past.dollars_unknown = past.price_unknown
    status.past.tokens_unknown = past.tokens_unknown
    status.scores_with((used.info for used in part.scorers if not used.late), part.experiment.kind)
    counts = part.selected.counts()
    if part.folder.info.sparse:
        counts = Counter(trial.condition.name for trial in _made(part.selected, agents))
    status.expects(counts, past.answered(part.selected))


def _back_to(folder: Path, status: RunStatus) -> None:
    """The working directory belongs to the whole process, and an agent written in Python may have
    changed it.
    """
    try:
        if Path.cwd() == folder:
            return
    except FileNotFoundError:
        pass  # it has removed the directory it changed to

    os.chdir(folder)
    status.notice(f"the agent changed the working directory; it is {folder} again")


def _by_model(
    resolved: Mapping[str, Choice], wanted: str, type_: type[_PerModel]
) -> dict[str, _PerModel]:
    """A section about models of the run's experiment file, such as prices."""
    given: dict[str, JsonObject] = {}
    for key, choice in resolved.items():
        section, _, rest = key.partition(".")
        model, _, kind = rest.rpartition(".")
        if section == wanted and model:
            given.setdefault(model, {})[kind] = choice.value

    return {model: msgspec.convert(values, type_) for model, values in given.items()}
