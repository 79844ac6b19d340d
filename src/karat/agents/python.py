"""A function, or an object, of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from karat import plugins
from karat.agents import AgentSetting, Session, as_agent
from karat.agents._answers import reply_from
from karat.agents._servers import client_config
from karat.agents._told import told
from karat.errors import BadPlugin
from karat.records import Condition, Reply, Sample, Trial, Turn
from karat.threads import Threads

__all__ = ["Python"]


class Python:
    """A function `query(user_query, system_prompt, mcp_servers) -> str`, sync or async, or an object with `session`.

    The function may also name `history`, `materials`, `sample`, `condition`, `repetition`,
    `turn` or `seed` among its parameters, and may return a mapping or a `karat.Reply` with tool calls, usage
    and dollars. A sync function runs on a daemon thread of its own; a timeout gives it up.
    """

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

        target: Any = Field(
            description="module:name of a function, a class or an object; from Python, the thing itself"
        )

        @field_validator("target")
        @classmethod
        def _is_target(cls, target: Any) -> Any:
            if isinstance(target, str):
                module, colon, name = target.partition(":")
                if not (colon and module and name):
                    raise ValueError('want "module:function"')
            elif not callable(target) and not hasattr(target, "session") and not hasattr(target, "ask"):
                raise ValueError('want "module:function", a function, or an object with `session` or `ask`')
            return target

    connects_itself = True  # to its MCP servers: recorded or replayed, through karat's proxy

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        target = options.target
        if isinstance(target, str):
            target = plugins.load(target, folder=setting.folder)
        if inspect.isclass(target):
            target = plugins.build(target, {}, setting=setting)
        if hasattr(target, "session") or hasattr(target, "ask"):
            self._agent = as_agent(target)
        elif callable(target):
            self._agent = as_agent(_Function(target, setting))
        else:
            raise BadPlugin(str(options.target), "want a function, or an object with `session` or `ask`")

    @asynccontextmanager
    async def session(self, condition: Condition, sample: Sample, trial: Trial, first: int) -> AsyncIterator[Session]:
        async with self._agent.session(trial, first) as session:
            yield session

    async def aclose(self) -> None:
        """Lets go of the threads, and of what the object itself holds."""
        await self._agent.aclose()


class _Function:
    def __init__(self, function: Callable[..., Any], setting: AgentSetting) -> None:
        self._function, self._folder, self._toolbox = function, setting.folder, setting.toolbox
        self._threads = Threads()
        self._waits = inspect.iscoroutinefunction(function)
        try:
            parameters = inspect.signature(function).parameters
        except ValueError as error:
            raise BadPlugin(repr(function), "its parameters cannot be seen; wrap it in a plain function") from error
        self._named = {
            name for name, one in parameters.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        }
        self._positional = [
            name for name, one in parameters.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)
        ]

    def aclose(self) -> None:
        self._threads.close()

    async def ask(
        self,
        condition: Condition,
        sample: Sample,
        turn: Turn,
        history: Sequence[tuple[Turn, Reply]],
        trial: Trial,
        number: int,
    ) -> Reply:
        remembers, bare = "history" in self._named, "materials" in self._named
        question, past = told(sample, turn, history, remembers=remembers, bare=bare)
        known = {
            "user_query": question,
            "system_prompt": condition.system_prompt or "",
            "mcp_servers": client_config(condition, self._folder, self._toolbox),
            "history": past,
            "materials": sample.materials,
            "sample": sample,
            "condition": condition.name,
            "repetition": trial.repetition,
            "turn": number,
            "seed": trial.seed,
        }
        first, rest = self._arguments(known)
        if self._waits:
            said = await self._function(*first, **rest)
        else:
            said = await self._threads.call(self._function, *first, **rest)
            if inspect.isawaitable(said):
                said = await said
        return reply_from(said)

    def _arguments(self, known: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """By name where the names are ours; else the three of `query` by position."""
        named = {name: known[name] for name in self._named if name in known}
        if "user_query" in named:
            return [], named
        plain = [known[name] for name in ("user_query", "system_prompt", "mcp_servers")]
        wanted = [name for name in self._positional if name not in named]
        return plain[: len(wanted)], {name: value for name, value in named.items() if name not in self._positional[:3]}
