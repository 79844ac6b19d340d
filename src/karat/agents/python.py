"""A function, or an object, of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from karat import plugins
from karat.agents import AgentSetting, Session, as_agent
from karat.agents._answers import framework_reply, reply_from
from karat.agents._prompt import prompt_and_history, trial_values
from karat.agents._signature import asks_by_name, bind, written
from karat.errors import AgentFault, BadPlugin, TrialFault, described
from karat.records import Condition, Reply, Sample, Trial, Turn
from karat.threads import Threads

__all__ = ["Python"]


class Python:
    """A function such as `answer(question, system_prompt)`, sync or async, or an object with `session` or `ask`.

    Arguments are bound by name: `question` (or `query`, `prompt`, `user_query`, …), `system_prompt`
    (or `system`, `instructions`), `mcp_servers` (or `tools`), `history`, `messages`, `materials`,
    `metadata`, `sample`, `sample_id`, `condition`, `repetition`, `turn`, `seed`. Where no name
    means the question, the first free positional argument gets it. A default is kept where the
    condition gives no value. `**kwargs` gets the system prompt, the servers and the history. The
    function may return a text, a mapping or a `karat.Reply` with tool calls, usage and dollars, or
    the result of pydantic-ai, LangChain, LangGraph or the OpenAI Agents SDK.
    A sync function runs on a daemon thread of its own; a timeout abandons it.
    """

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

        target: Any = Field(
            description="module:name of a function, a class or an object; from Python, the thing itself"
        )

        allow_golden: bool = Field(
            default=False, description="whether `sample` holds golden answers; every report then says so"
        )

        @field_validator("target")
        @classmethod
        def _is_target(cls, target: object) -> object:
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
        if not hasattr(target, "session") and asks_by_name(target):
            target = target.ask
        if not (hasattr(target, "session") or hasattr(target, "ask") or callable(target)):
            raise BadPlugin(str(options.target), "want a function, or an object with `session` or `ask`")
        if not (hasattr(target, "session") or hasattr(target, "ask")):
            target = _Function(target, setting)
        self.takes: Collection[str] | None = getattr(target, "takes", None)
        self.shown: str = getattr(target, "shown", str(options.target))
        self.allow_golden = options.allow_golden or bool(getattr(target, "allow_golden", False))
        self._agent = as_agent(target)

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
        self._binding = bind(function)
        chat = {"system_prompt"} if "messages" in self._binding.takes else set()
        self.shown, self.takes = written(function), self._binding.takes | chat
        call = getattr(function, "__call__", None)  # noqa: B004 -- an object may be async in its __call__ alone
        self._waits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise BadPlugin(self.shown, "it yields its answer in pieces; return the whole text instead")

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
        takes = self._binding.takes
        remembers = bool(takes & {"history", "chat_history", "messages"})
        question, past = prompt_and_history(sample, turn, history, remembers=remembers, bare="materials" in takes)
        chat: list[dict[str, str]] = []
        for earlier in past:
            chat += [_message("user", earlier["question"]), _message("assistant", earlier["answer"])]
        opening = condition.system_prompt if "system_prompt" not in takes else None
        messages = [*([_message("system", opening)] if opening else []), *chat]
        messages += [_message("user", question)] if "question" not in takes else []
        known = trial_values(condition, sample, trial, number, folder=self._folder, toolbox=self._toolbox)
        known |= {"question": question, "history": past, "chat_history": chat, "messages": messages}
        known |= {"sample": sample, "sample_id": sample.id}
        positional, keywords = self._binding.arguments(known)
        with _SharedClients(waits=self._waits):
            if self._waits:
                result = await self._function(*positional, **keywords)
            else:
                result = await self._threads.call(self._function, *positional, **keywords)
                if inspect.isawaitable(result):
                    result = await result
        reply = framework_reply(result)
        return reply_from(result) if reply is None else reply


_SHARED = (
    *("event loop is closed", "attached to a different loop", "bound to a different event loop"),
    *("event loop is already running", "called from a running event loop", "no current event loop in thread"),
    "can only be used in that same thread",
)
"""What asyncio and sqlite3 say of an object that is used outside the event loop or thread it was made for."""

_LONGEST_CHAIN = 10  # causes


class _SharedClients:
    """Adds to the error of a client that several threads or event loops share what to do about it."""

    def __init__(self, *, waits: bool) -> None:
        self._advice = (
            "create the client inside the function, and `await` the client's async method"
            if waits
            else "each call of a plain function runs on one of several threads: create the client inside the function, "
            "or make the function `async def`"
        )

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, TrialFault):
            return
        cause: BaseException = error
        for _ in range(_LONGEST_CHAIN):  # clients wrap it in an error of their own
            message = described(cause) if type(cause).__name__ in ("RuntimeError", "ProgrammingError") else ""
            if any(words in message.lower() for words in _SHARED):
                raise AgentFault("crash", f"{message} ({self._advice})", retriable=True) from error
            cause = cause.__cause__ or cause.__context__ or error


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
