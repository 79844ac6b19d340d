"""What an agent is. One file a plug-in; each name is the file's name.

A session is one trial's: it is opened, asked each turn in order, and closed, also when
the trial is cut off. Sessions of one agent may be open concurrently. `ask` returns a
Reply or raises a TrialFault (errors.py) that says whose fault it was and whether
another attempt could help; any other exception is a crash of the agent.

An agent that holds something for the whole run (a client, threads) may have `aclose`,
which is called once, at its end.

An agent without sessions implements `ask` alone (`SimpleAgent`); `as_agent` does the
rest. One that must know which repetition it is asked for takes the keyword `trial`.

Two things let `karat rehearse` keep an agent from asking a real model: the options `base_url`
and `api_key_env`, or a class attribute `offline = True` where it asks none.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from karat.errors import BadPlugin
from karat.mcp import Toolbox
from karat.models import Price
from karat.records import Condition, Reply, Sample, Trial, Turn

__all__ = ["Agent", "AgentSetting", "Session", "SimpleAgent", "TrialAgent", "as_agent"]


class Session(Protocol):
    """One trial's conversation with the agent."""

    async def ask(self, turn: Turn) -> Reply: ...


@runtime_checkable
class Agent(Protocol):
    """Anything that can be asked, session by session."""

    def session(self, condition: Condition, sample: Sample) -> AbstractAsyncContextManager[Session]: ...


@runtime_checkable
class SimpleAgent(Protocol):
    """Anything that answers one turn, given the turns and replies before it."""

    async def ask(
        self, condition: Condition, sample: Sample, turn: Turn, history: Sequence[tuple[Turn, Reply]]
    ) -> Reply: ...


class TrialAgent(Protocol):
    """What the engine calls: an agent that was told which trial it is asked for.

    All optional: `source`, where its answers come from, if they were made elsewhere; kept in
    `run.json`. `unpriced`, the models whose price is not known: with one of them a budget in
    dollars is refused. `aclose()`, awaited at the end of the run.
    """

    def session(self, trial: Trial) -> AbstractAsyncContextManager[Session]: ...

    async def aclose(self) -> None: ...


class AgentSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's constructor may ask for besides its options, by the name `setting`."""

    folder: Path  # the experiment's: relative paths start here
    toolbox: Toolbox  # the MCP servers of the run
    redact: Callable[[str], str] = str  # masks secrets: for what is cut short before it reaches the journal
    env: Mapping[str, str] | None = None  # the variables that the experiment was read with; None: the process's
    prices: Mapping[str, Price] = {}  # the experiment file's, by model


def as_agent(found: Any) -> TrialAgent:
    """An object that keeps one of the protocols, in the form that the engine calls."""
    if callable(getattr(found, "session", None)):
        return _WithSessions(found)
    if callable(getattr(found, "ask", None)):
        return _WithoutSessions(found)
    raise BadPlugin(type(found).__name__, "an agent needs a method 'session' or 'ask'")


class _Adapter:
    """What the engine may ask of an agent besides answers."""

    def __init__(self, agent: Any) -> None:
        self.source: Mapping[str, str] = getattr(agent, "source", {})
        self.unpriced: Sequence[str] = getattr(agent, "unpriced", ())
        self._agent = agent

    async def aclose(self) -> None:
        closed = self._agent.aclose() if hasattr(self._agent, "aclose") else None
        if inspect.isawaitable(closed):
            await closed


class _WithSessions(_Adapter):
    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self._open = agent.session
        self._wants_trial = _takes_trial(agent.session)

    def session(self, trial: Trial) -> AbstractAsyncContextManager[Session]:
        extra = {"trial": trial} if self._wants_trial else {}
        opened: AbstractAsyncContextManager[Session] = self._open(trial.condition, trial.sample, **extra)
        return opened


class _WithoutSessions(_Adapter):
    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self._ask = agent.ask
        self._wants_trial = _takes_trial(agent.ask)

    @asynccontextmanager
    async def session(self, trial: Trial) -> AsyncIterator[Session]:
        yield _History(self._ask, trial, {"trial": trial} if self._wants_trial else {})


class _History:
    def __init__(self, ask: Any, trial: Trial, extra: dict[str, Any]) -> None:
        self._ask, self._trial, self._extra = ask, trial, extra
        self._so_far: list[tuple[Turn, Reply]] = []

    async def ask(self, turn: Turn) -> Reply:
        trial = self._trial
        reply: Reply = await self._ask(trial.condition, trial.sample, turn, tuple(self._so_far), **self._extra)
        self._so_far.append((turn, reply))
        return reply


def _takes_trial(method: Any) -> bool:
    return "trial" in inspect.signature(method).parameters
