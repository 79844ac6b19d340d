"""The parts of a run, each for itself: a journal in memory, and what trials and scores share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from karat.config import Retry
from karat.execution.foreign_code import ForeignCode
from karat.execution.limits import Budget, FailureLimit, Limits, RunStatus
from karat.execution.scoring import RunContext, ScorerInUse, Scoring
from karat.execution.trial import Job, TrialRunner, Work
from karat.journal import ScorerInfo
from karat.records import AgentSpec, Answer, Condition, Metric, Reply, Sample, Trial, Turn
from karat.redact import Redactor

ONCE = Retry(max_attempts=1)
AT_ONCE = Retry(max_attempts=3, initial_backoff_seconds=0)


class Written:
    """A journal in memory."""

    def __init__(self, redact: Redactor) -> None:
        self.redact = redact
        self.events: list[Any] = []

    def append(self, *events: Any) -> asyncio.Future[None]:
        self.events += events
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


class Parts:
    """What the trials of a run share, and what came of it."""

    def __init__(
        self,
        *,
        usd: float | None = None,
        tokens: int | None = None,
        secrets: dict[str, str] | None = None,
        retry: Retry = ONCE,
        **limits: Any,
    ) -> None:
        self.status = RunStatus()
        self.budget = Budget(usd=usd, tokens=tokens)
        self.journal = Written(Redactor(secrets or {}))
        self.draining = asyncio.Event()
        self.limits = Limits(
            **{"max_concurrent": 4, "timeout_seconds": 5, "judge_timeout_seconds": 5, "max_failures": 100, **limits},
            retry=retry,
        )
        self.failures = FailureLimit(self.limits, self.status, stop=self.draining.set)
        self.context = RunContext(
            journal=self.journal,
            limits=self.limits,
            budget=self.budget,
            failures=self.failures,
            foreign_code=ForeignCode(self.status, redact=self.journal.redact, grace_seconds=0.01),
            status=self.status,
            draining=self.draining,
        )

    def written(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.journal.events if isinstance(event, kind)]

    def fields(self, kind: type[Any], *names: str) -> list[tuple[Any, ...]]:
        """Of each such event."""
        return [tuple(getattr(event, name) for name in names) for event in self.written(kind)]


def sample(*turns: Turn, **changes: Any) -> Sample:
    given = turns or (Turn(question="q", golden="a"),)
    return Sample(**{"id": "s", "position": 0, "digest": "d", "turns": given, **changes})


def condition(name: str = "c", **changes: Any) -> Condition:
    return Condition(name=name, position=0, digest=name, agent=AgentSpec(type="t"), **changes)


def trial(of: Sample | None = None, under: Condition | None = None, **changes: Any) -> Trial:
    given = {"id": "t", "index": 0, "repetition": 0, "seed": 7, **changes}
    return Trial(sample=of or sample(), condition=under or condition(), **given)


def answer(text: str = "a", **changes: Any) -> Answer:
    given = {"trial": "t", "sample": "s", "condition": "c", "repetition": 0, "replies": (Reply(text=text),), **changes}
    return Answer(**given)


def scorer(score: Callable[..., Any], name: str = "m", **changes: Any) -> ScorerInUse:
    """In use, with `score` as its method; `offline` unless told otherwise."""
    offline = changes.pop("offline", True)
    info = ScorerInfo(name=name, type="t", scoring=f"digest of {name}", metrics=(Metric(name=name),), offline=offline)
    plugin = type("Plugin", (), {"score": staticmethod(score)})()
    return ScorerInUse(info=info, scorer=plugin, **{"flag": name, **changes})


def work_of(changes: Mapping[str, Any] | None = None, **agents: Any) -> Work:
    """The agents by condition, and nothing to do but what `changes` says."""
    return Work(
        **{"trials": iter(()), "pending": iter(()), "broken": {}, "scorers": (), "agents": agents, **(changes or {})}
    )


class Bare:
    """The attributes of an agent that has none of its own; and those given."""

    source: Mapping[str, str] = {}
    takes = check_sample = recorded_reply = None
    allow_golden = bounds_replies = enters_workspace = False
    shown, taken = "the agent", ""

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


class Saying(Bare):
    """An agent that says, does or raises what it is told to, by the number of the question."""

    def __init__(self, say: Callable[[Any], Any] = lambda turn: "a", **attributes: Any) -> None:
        super().__init__(**attributes)
        self.say = say
        self.trials: list[Trial] = []
        self.turns: list[Turn] = []
        self.workspaces: list[object] = []
        self.restored: list[str] = []

    @asynccontextmanager
    async def session(self, trial: Trial, first: int = 0, workspace: object = None) -> AsyncGenerator[Saying]:
        self.trials.append(trial)
        self.workspaces.append(workspace)
        yield self

    def restore(self, history: Any) -> None:
        self.restored = [reply.text for _, reply in history]

    async def ask(self, turn: Turn) -> Any:
        self.turns.append(turn)
        said = self.say(turn)
        if asyncio.iscoroutine(said):
            said = await said
        if isinstance(said, BaseException):
            raise said
        return Reply(text=said) if isinstance(said, str) else said


class Tried:
    """Trials that are run one after the other, with all that they tell."""

    def __init__(self, agent: Any, parts: Parts | None = None, **work: Any) -> None:
        self.parts = parts or Parts()
        self.agent = agent
        self.work = work
        self.asked: list[int] = []  # how many events had been written each time
        self.again: list[tuple[Job, float]] = []

    def run(self, *jobs: Job | Trial) -> Tried:
        asyncio.run(self._run(*jobs))
        return self

    async def _run(self, *jobs: Job | Trial) -> None:
        scoring = Scoring(self.parts.context)
        trials = TrialRunner(work_of(self.work, c=self.agent), scoring, self.parts.context)
        for job in jobs:
            made = job if isinstance(job, Job) else Job(job)
            await trials.run(
                made,
                asked=lambda: self.asked.append(len(self.parts.journal.events)),
                retry=lambda again, seconds: self.again.append((again, seconds)),
            )
        await self.parts.context.foreign_code.close([])
        scoring.close()

    @property
    def answers(self) -> list[Answer]:
        return self.parts.written(Answer)
