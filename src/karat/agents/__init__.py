"""What an agent is. One file per plug-in, with the plug-in's name.

A session belongs to one trial, or to one participant of it (`Turn.seat`). It is opened, asked its
turns in order, and closed, also when the trial is cancelled. Sessions of one agent may be open
concurrently; those of one trial are asked one after another. `ask` returns a Reply or raises a
TrialFault (errors.py), which states whose fault it was and whether another attempt could help; any
other exception is a crash of the agent.

An agent that holds something for the whole run (a client, threads) may have `aclose`,
which is called once, at its end.

An agent without sessions implements only `ask` (`SimpleAgent`); `as_agent` does the rest. If it
needs the repetition, it takes the keyword `trial`; if it needs the turn, the keyword `number` (from
0), because the history of a sample whose turns are asked separately is empty.

A session may have `restore(history)`, plain or async, called once before its first `ask` with the
questions and answers of an earlier attempt. A conversation that was interrupted then resumes at its
first missing turn; without `restore` it starts again. An agent without sessions gets its history
anyway. `Turn.question` is the text to send; a sample's `materials` belong before the first question
of each session.

The class attribute `context` lists the parts of a condition's context that the agent supports: any
of `skills`, `plugins`, `instructions`, `workspace` and `tools`. A condition that sets one that is
not listed is rejected when the experiment file is read. An agent that supports workspaces has the
keyword `workspace` in `session` or `ask`. If it starts its processes with `workspace.command(…)`,
it has the class attribute `enters_workspace = True`: it then gets an overlay mount instead of a
copy. `check_context(key, value)`, a function of the class, may raise ValueError for a folder, file
or tool that the agent cannot be given.

`karat run --rehearse` keeps an agent from asking a real model by the options `base_url` and
`api_key_env`; an agent that asks no model has the class attribute `offline = True`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from karat.context import Workspace
from karat.errors import BadPlugin
from karat.kinds import Kind
from karat.mcp import Toolbox
from karat.models import Price
from karat.records import Condition, History, Reply, Sample, Trial, Turn

__all__ = [
    "Agent",
    "AgentSetting",
    "Resumable",
    "Session",
    "SimpleAgent",
    "TrialAgent",
    "as_agent",
    "turns_from",
    "without_golden",
]


class Session(Protocol):
    """One trial's conversation with the agent."""

    async def ask(self, turn: Turn) -> Reply: ...


@runtime_checkable
class Resumable(Protocol):
    """A session that can resume a conversation."""

    def restore(self, history: History) -> Awaitable[None] | None: ...


@runtime_checkable
class Agent(Protocol):
    """Anything that can be asked, session by session."""

    def session(
        self, condition: Condition, sample: Sample
    ) -> AbstractAsyncContextManager[Session]: ...


@runtime_checkable
class SimpleAgent(Protocol):
    """Anything that answers one turn, given the turns and replies before it."""

    async def ask(
        self, condition: Condition, sample: Sample, turn: Turn, history: History
    ) -> Reply: ...


class TrialAgent(Protocol):
    """The form in which trials call an agent.

    An agent may leave out all attributes; here each has a value. `source`: where its answers come
    from, if made elsewhere; kept in `run.json`, with what
    `source_notes(samples, conditions=…, repetitions=…)` returns (`faults`: a sentence that every
    report shows). `unpriced`, the models whose price is not known: with one of
    them a budget in dollars is refused. `versions`, of programs by name, kept in `run.json`; a run
    resumes only with the same ones. `takes`, which parts of a condition reach the agent
    (`system_prompt`, `mcp_servers`, `condition` for its name); None: not known. `shown`: the
    agent's name in messages; `taken`: what of the user's object is called, where karat has chosen
    it. `allow_golden`: whether samples and turns keep their golden answers;
    else `without_golden` removes them.
    `columns`: further columns of the dataset that it uses; if a value there changes, a run is not
    resumed. `check_sample(condition, sample)`: raises if the sample cannot be asked; `karat check`
    and the report count such samples. `changes`: sentences that are shown at the end of the run.
    `unread`: keys of its replies that karat does not know, named at the end of the run.
    `never_made`, where its answers were made elsewhere: whether a trial is none of theirs, so that
    it is not missing; `recorded_reply(trial, number)`: the reply to a turn, looked up without
    waiting, or a TrialFault. `bounds_replies`: it refuses replies longer than its own limit.
    `reports_tool_calls`: its replies name every tool call, those of MCP servers with the server;
    without it, no reported call means it is not known whether any was made. `measures_calls`: its
    calls are what is measured, so a failed one is a result and no fault of the measurement.
    `aclose()`, awaited at the end of the run.
    """

    source: Mapping[str, str]
    versions: Mapping[str, str]
    unpriced: Sequence[str]
    source_notes: Callable[..., Mapping[str, str]]
    takes: Collection[str] | None
    allow_golden: bool
    bounds_replies: bool
    enters_workspace: bool
    reports_tool_calls: bool
    measures_calls: bool
    shown: str
    taken: str
    changes: Sequence[str]
    unread: Collection[str]
    never_made: Callable[[Trial], bool] | None
    recorded_reply: Callable[[Trial, int], Reply] | None
    check_sample: Callable[[Condition, Sample], object] | None

    def session(
        self, trial: Trial, first: int = 0, workspace: Workspace | None = None
    ) -> AbstractAsyncContextManager[Session]:
        """`first`: the session's first turn; not 0 if each turn, or each seat, has its own session.

        `workspace`: that of the attempt; None if the condition has none.
        """
        ...

    async def aclose(self) -> None: ...


class AgentSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's constructor gets in addition to its options, if it has a parameter
    `setting`.
    """

    folder: Path  # the experiment's: relative paths start here
    toolbox: Toolbox  # the MCP servers of the run
    # masks secrets: for texts that are cut before they reach the journal
    redact: Callable[[str], str] = str
    # the environment that the experiment was read with; None: the process's
    env: Mapping[str, str] | None = None
    prices: Mapping[str, Price] = {}  # the experiment file's, by model


def as_agent(agent: object) -> TrialAgent:
    """An agent of either protocol, in the form that trials call."""
    if callable(getattr(agent, "session", None)):
        return _WithSessions(agent)
    if callable(getattr(agent, "ask", None)):
        return _WithoutSessions(agent)
    raise BadPlugin(type(agent).__name__, "an agent needs a method 'session' or 'ask'")


class _Adapter(TrialAgent):
    """The optional attributes of an agent, with their defaults."""

    def __init__(self, agent: Any) -> None:
        self.source = getattr(agent, "source", {})
        self.versions = getattr(agent, "versions", {})
        self.unpriced = getattr(agent, "unpriced", ())
        self.source_notes = getattr(agent, "source_notes", lambda *_, **__: {})
        self.takes = getattr(agent, "takes", None)
        self.allow_golden = bool(getattr(agent, "allow_golden", False))
        self.bounds_replies = bool(getattr(agent, "bounds_replies", False))
        self.enters_workspace = bool(getattr(agent, "enters_workspace", False))
        self.reports_tool_calls = bool(getattr(agent, "reports_tool_calls", False))
        self.measures_calls = bool(getattr(agent, "measures_calls", False))
        self.shown = str(getattr(agent, "shown", type(agent).__name__))
        self.taken = str(getattr(agent, "taken", ""))
        self.changes = getattr(agent, "changes", ())
        self.unread = getattr(agent, "unread", ())
        self.never_made = getattr(agent, "never_made", None)
        self.recorded_reply = getattr(agent, "recorded_reply", None)
        self.check_sample = getattr(agent, "check_sample", None)
        self._agent = agent

    async def aclose(self) -> None:
        if hasattr(self._agent, "aclose"):
            closed = self._agent.aclose()
        else:
            closed = None

        if inspect.isawaitable(closed):
            await closed


def without_golden(sample: Sample, kind: type[Kind]) -> Sample:
    """The sample without golden answers, criteria and what its dataset kind derives from them."""
    detailed = kind.turns_say_what_is_asked
    turns = tuple(
        msgspec.structs.replace(turn, golden=None, detail=turn.detail if detailed else {})
        for turn in sample.turns
    )
    return msgspec.structs.replace(sample, turns=turns, criteria=())


def turns_from(sample: Sample, first: int) -> Sequence[int]:
    """The turns of one session, starting with its first."""
    seat = sample.turns[first].seat
    if seat is None:
        return range(first, len(sample.turns))
    return [number for number, turn in enumerate(sample.turns) if turn.seat == seat]


class _WithSessions(_Adapter):
    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self._open = agent.session
        self._extra = _known(agent.session, "trial", "first", "workspace")
        _check_call(agent.session, ("condition", "sample"), self._extra)

    def session(
        self, trial: Trial, first: int = 0, workspace: Workspace | None = None
    ) -> AbstractAsyncContextManager[Session]:
        known = {"trial": trial, "first": first, "workspace": workspace}
        extra = {name: known[name] for name in self._extra}
        opened: AbstractAsyncContextManager[Session] = self._open(
            trial.condition, trial.sample, **extra
        )
        return opened


class _WithoutSessions(_Adapter):
    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self._extra = _known(agent.ask, "trial", "number", "workspace")
        _check_call(agent.ask, ("condition", "sample", "turn", "history"), self._extra)

    def session(
        self, trial: Trial, first: int = 0, workspace: Workspace | None = None
    ) -> AbstractAsyncContextManager[Session]:
        return _History(self._agent.ask, self._extra, trial, first, workspace)


class _History(msgspec.Struct):
    """A session as a context manager: there is nothing to close."""

    call: Callable[..., Any]
    extra: Sequence[str]
    trial: Trial
    first: int = 0
    workspace: Workspace | None = None
    so_far: list[tuple[Turn, Reply]] = []

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def restore(self, history: History) -> None:
        self.so_far.extend(history)

    async def ask(self, turn: Turn) -> Reply:
        trial = self.trial
        number = self.first + len(self.so_far)
        if trial.sample.turns[self.first].seat is not None:
            number = turns_from(trial.sample, self.first)[len(self.so_far)]
        known = {"trial": trial, "number": number, "workspace": self.workspace}
        extra = {name: known[name] for name in self.extra}
        result = self.call(trial.condition, trial.sample, turn, tuple(self.so_far), **extra)
        if inspect.isawaitable(result):
            reply: Reply = await result
        else:
            reply = result

        self.so_far.append((turn, reply))
        return reply


def _known(method: Any, *names: str) -> tuple[str, ...]:
    """Which of the names are among its parameters."""
    parameters = inspect.signature(method).parameters
    return tuple(name for name in names if name in parameters)


def _check_call(method: Any, positional: Sequence[str], named: Sequence[str]) -> None:
    """Raises BadPlugin if the engine could not call the method."""
    signature = inspect.signature(method)
    try:
        signature.bind(*positional, **dict.fromkeys(named))
    except TypeError as error:
        name = getattr(method, "__qualname__", method.__name__)
        wanted = f"expected {method.__name__}({', '.join(positional)})"
        raise BadPlugin(
            f"{name}{signature}", f"cannot be called by karat: {error}; {wanted}"
        ) from error
