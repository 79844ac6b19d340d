"""The worker's side of a run with a driver elsewhere: whole trials, and their journal lines.

A worker has its own agents, servers, scorers and workspaces, made from the experiment it gets; a
server with `scope: run` exists once per worker. It writes no journal: `Outbox` keeps the lines
until the driver takes them.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from karat import kinds
from karat.context import FOLDER as WORKSPACES
from karat.context import snapshots, trial_workspaces
from karat.errors import BadOption, KaratError, described
from karat.execution.foreign_code import ForeignCode
from karat.execution.limits import Budget, Limits, RunStatus
from karat.execution.plan import Plan
from karat.execution.retry import AttemptError
from karat.execution.scoring import RunContext, ScorerMemory, Scoring
from karat.execution.setup import (
    build_agents,
    close_agents,
    experiment_scorers,
    opened_scorers,
    preflight,
)
from karat.execution.trial import Job, TrialRunner, Work
from karat.files import temporary_folder
from karat.journal import Attempt, Codec, Event, ServerInfo, server_changes
from karat.mcp import Toolbox
from karat.models import Rate, RateLimit, limit_rates
from karat.models.metering import waiting
from karat.records import Answer, Reply, Sample, Score, Usage
from karat.redact import Redactor
from karat_scale.remote import Ended, Finished, Request
from karat_scale.shipping import unpack

if TYPE_CHECKING:
    from karat.config import Experiment
    from karat.journal import ScorerInfo

_ENDED_WAITS_SECONDS = 0.25  # for the next answer, at most


class WorkerSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker needs in addition to the files."""

    name: str  # for people
    experiment: Any  # an Experiment, with the variables it needs
    conditions: tuple[str, ...]
    digests: Mapping[str, str]  # root of shipped files on the driver → digest of its archive
    scorings: tuple[str, ...]  # of the scorers that score answers as they arrive
    servers: tuple[ServerInfo, ...]
    limits: Limits  # with this worker's concurrency


class Outbox:
    """An `EventLog` whose events are on disk once the driver has confirmed receiving them."""

    def __init__(self, redact: Redactor) -> None:
        self.redact = redact
        self.content = Finished()
        self.workspaces: Path | None = None  # where archives of workspaces are
        self.closing = False  # the driver may no longer wait for `take`
        self._codec = Codec(redact)
        self._ready = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []  # for the next `take`
        self._taken: list[asyncio.Future[None]] = []  # for its confirmation
        self._sent: set[str] = set()  # archives
        self._numbers = count()
        self._requests = dict[int, asyncio.Future[None]]()

    def append(self, *events: Event) -> asyncio.Future[None]:
        """Raises what `Codec.line` raises."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.content.lines += map(self._codec.line, events)
        for event in events:
            if self.workspaces is not None and isinstance(event, (Answer, Attempt)):
                for path in self.workspaces.glob(f"{event.trial}-*.tar.gz"):
                    if path.name not in self._sent:
                        self._sent.add(path.name)
                        self.content.files[path.name] = path.read_bytes()

        self._waiting.append(future)
        self._ready.set()
        return future

    def wake(self) -> None:
        """`content` is not empty."""
        self._ready.set()

    def confirm(self) -> None:
        """What was taken is on disk."""
        taken = self._taken
        self._taken = []
        for future in taken:
            if not future.done():
                future.set_result(None)

    async def take(self) -> Finished:
        """The pending content; waits until there is some."""
        await self._ready.wait()
        await asyncio.sleep(0)  # results of the same turn of the event loop travel together
        self._ready.clear()
        # `WorkerSide.last` takes it then
        if self.closing:
            return Finished()
        return self.take_now()

    def take_now(self) -> Finished:
        """The same without waiting."""
        content = self.content
        self.content = Finished()
        self._taken = self._taken + self._waiting
        self._waiting = []
        return content

    def admit(self, number: int) -> None:
        """A request may be sent."""
        if (request := self._requests.pop(number, None)) is not None and not request.done():
            request.set_result(None)

    @asynccontextmanager
    async def request(
        self, model: str, tokens: float
    ) -> AsyncGenerator[Callable[[Usage | None], None]]:
        """As `RateLimit.admitted`: the driver's limit of the model."""
        number = next(self._numbers)
        usage = None
        admitted = self._requests[number] = asyncio.get_running_loop().create_future()
        self.content.wanted.append((number, model, tokens))
        self.wake()

        def used(counted: Usage | None) -> None:
            nonlocal usage
            usage = counted

        try:
            with waiting():
                await admitted
            yield used
        finally:
            self._requests.pop(number, None)
            self.content.used.append((number, usage))
            self.wake()


class _DriversRate:
    """A model's rate limit, kept by the driver for all workers."""

    def __init__(self, model: str, rate: Rate, outbox: Outbox) -> None:
        self._model = model
        self._outbox = outbox
        self._estimates = RateLimit(rate)

    def estimate(self, characters: int, max_tokens: int | None) -> float:
        return self._estimates.estimate(characters, max_tokens)

    @asynccontextmanager
    async def admitted(self, estimate: float) -> AsyncGenerator[Callable[[Usage | None], None]]:
        async with self._outbox.request(self._model, estimate) as used:

            def both(usage: Usage | None) -> None:
                used(usage)
                self._estimates.learn(usage)

            yield both


class _Settled:
    """A `Follower` that records finished trials."""

    def __init__(self) -> None:
        self.trials: dict[str, bool] = {}  # with an answer, or without

    def expects(self, scorer: ScorerInfo, kind: str) -> None: ...
    def scored(self, score: Score) -> None: ...

    def settled(self, trial: str, condition: str, sample: Sample, *, answered: bool) -> None:
        self.trials[trial] = answered


class _Failures:
    """A `FailureCounter` whose calls the driver repeats."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def _call(self, method: str, *arguments: object, **named: object) -> None:
        self._outbox.content.failures.append((method, arguments, named))

    def answered(self) -> None:
        self._call("answered")

    def unanswered(self, error: AttemptError, *, counts: bool) -> None:
        self._call("unanswered", error, counts=counts)

    def scored(self, scoring: str) -> None:
        self._call("scored", scoring)

    def unscored(self, scoring: str, error: AttemptError) -> None:
        self._call("unscored", scoring, error)

    def count(self) -> None:
        self._call("count")


class WorkerSide:
    """`async with WorkerSide(setup, archives) as worker:` prepares everything; then `take` and
    `send`.

    Raises OperatorError if this machine cannot do what the driver asks, or differs from it.
    """

    def __init__(self, setup: WorkerSetup, archives: Mapping[str, bytes]) -> None:
        self._setup = setup
        self._archives = archives
        self._due: deque[Job] = deque()
        self._saved: dict[str, tuple[Reply, ...]] = {}
        self._asking = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = asyncio.Event()
        self._settled = _Settled()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> WorkerSide:
        async with AsyncExitStack() as stack:
            await self._open(stack)
            self._stack = stack.pop_all()

        return self

    async def __aexit__(self, *error: object) -> None:
        self._foreign_code.stopping = self._outbox.closing = True
        self._draining.set()
        await self._foreign_code.close(self._tasks)
        self._scoring.close()
        for agent in self._agents.values():
            for words in getattr(agent, "changes", ()):
                self._notice(f"{words}; its answers are not alike")

        await self._stack.aclose()

    async def _open(self, stack: AsyncExitStack) -> None:
        setup = self._setup
        folder = stack.enter_context(temporary_folder("worker"))
        experiment: Experiment = unpack(setup.experiment, setup.digests, self._archives, folder)
        self._archives = {}
        os.chdir(experiment.folder)
        redact = Redactor(experiment.secrets)
        self._outbox = outbox = Outbox(redact)
        status = RunStatus(follower=self._settled, on_notice=self._notice)
        limit_rates(experiment.limits, lambda name, rate: _DriversRate(name, rate, outbox))
        chosen = [
            condition for condition in experiment.conditions if condition.name in setup.conditions
        ]
        selected = Plan(
            (), stack.enter_context(snapshots(chosen)), experiment.execution.num_repetitions
        )
        self._conditions = {condition.name: condition for condition in selected.conditions}
        memory = ScorerMemory()
        stack.callback(memory.close)
        scorers = [used for used in experiment_scorers(experiment, memory) if not used.late]
        if tuple(used.info.scoring for used in scorers) != setup.scorings:
            message = (
                "its scorers are not those of the driver: a rubric or a file that they read differs"
            )
            raise BadOption("execution.executor", message)

        await stack.enter_async_context(opened_scorers(scorers, status.notice))
        servers = {}
        for condition in selected.conditions:
            for server in condition.mcp_servers:
                servers[server.name] = server
        toolbox = Toolbox(
            tuple(servers.values()),
            redact=redact,
            folder=experiment.folder,
            cassettes=experiment.cassettes,
            on_news=outbox.append,
        )
        await stack.enter_async_context(toolbox)
        self._agents = build_agents(experiment, selected, toolbox)
        stack.push_async_callback(close_agents, self._agents, status.notice)
        infos, broken = await preflight(toolbox, selected, status, retry=experiment.execution.retry)
        for _, text in server_changes(setup.servers, infos):
            status.notice(f"{text} on {setup.name}; its answers are not alike")
        execution = experiment.execution
        self._workspaces = trial_workspaces(
            selected.conditions, redact=redact, ignore=execution.workspace_ignore, keep=False
        )
        if self._workspaces is not None:
            overlays = any(agent.enters_workspace for agent in self._agents.values())
            stack.enter_context(
                self._workspaces.opened(folder, overlays=overlays, notice=status.notice)
            )
            outbox.workspaces = folder / WORKSPACES
            memory.workspaces.run = folder

        self._foreign_code = ForeignCode(status, redact=redact)
        run = RunContext(
            journal=outbox,
            limits=setup.limits,
            budget=Budget(usd=None, tokens=None),
            failures=_Failures(outbox),
            foreign_code=self._foreign_code,
            status=status,
            draining=self._draining,
        )
        work = Work(
            trials=iter(()),
            pending=iter(()),
            agents=self._agents,
            broken=broken,
            scorers=scorers,
            kind=kinds.of(experiment.kind),
            workspaces=self._workspaces,
            saved_replies=lambda trial: self._saved.get(trial, ()),
        )
        self._scoring = Scoring(run)
        self._trials = TrialRunner(work, self._scoring, run)

    async def send(self, request: Request) -> None:
        """Handles a message from the driver."""
        for number in request.admitted:
            self._outbox.admit(number)
        for trial, number in request.workspaces.items():
            if self._workspaces is not None:
                self._workspaces.continue_after(trial, number)

        for job in request.jobs:
            condition = self._conditions[job.trial.condition.name]  # this machine's form of it
            own = msgspec.structs.replace(job.trial, condition=condition)
            if job.attempt > 1:
                self._due.append(Job(own, job.attempt, job.kept))
            else:
                self._saved[own.id] = job.kept
                self._due.append(Job(own))

        if request.draining and (self._due or not self._draining.is_set()):
            self._draining.set()
            self._outbox.content.returned += [job.trial.id for job in self._due]
            self._due.clear()
            self._outbox.wake()

        self._start_more()

    async def take(self, request: Request) -> Finished:
        """As `Worker.take`."""
        self._outbox.confirm()
        await self.send(request)
        return await self._outbox.take()

    def last(self) -> Finished:
        """What was not delivered, after the end."""
        return self._outbox.take_now()

    def _start_more(self) -> None:
        while (
            self._due
            and self._asking < self._setup.limits.max_concurrent
            and not self._draining.is_set()
        ):
            self._asking += 1
            task = asyncio.create_task(self._run(self._due.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    async def _run(self, job: Job) -> None:
        trial = job.trial.id
        clock = monotonic()
        following = list[tuple[int, tuple[Reply, ...], float]]()
        seconds = 0.0

        def asked() -> None:
            nonlocal seconds
            seconds = monotonic() - clock
            self._asking -= 1
            self._outbox.content.asked.append(trial)
            self._outbox.wake()
            self._start_more()

        def retry(again: Job, seconds: float) -> None:
            following.append((again.attempt, again.kept, seconds))

        await self._trials.run(job, asked=asked, retry=retry)
        self._saved.pop(trial, None)
        answered = self._settled.trials.pop(trial, None)
        if self._outbox.workspaces is not None:  # they are sent, and scored
            for path in self._outbox.workspaces.glob(f"{trial}-*.tar.gz"):
                path.unlink()

        self._outbox.content.ended.append(
            Ended(
                trial=trial, seconds=seconds, answered=answered, retry=next(iter(following), None)
            )
        )
        if following or not self._asking:
            self._outbox.wake()
        else:
            # its lines are on disk: this may wait for the next answer, and saves the driver a call
            asyncio.get_running_loop().call_later(_ENDED_WAITS_SECONDS, self._outbox.wake)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, KaratError):
                self._outbox.content.problem = str(error)
            else:
                self._outbox.content.problem = described(error)

            self._outbox.wake()

    def _notice(self, text: str) -> None:
        self._outbox.content.notices.append(text)
        self._outbox.wake()
