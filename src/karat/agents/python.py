"""A function or an object of the user."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from karat import plugins
from karat.agents import AgentSetting, Session, as_agent
from karat.agents._answers import framework_reply
from karat.agents._binding import NO_DEFAULT, bind
from karat.agents._entry import (
    ASKED,
    Entry,
    asks_by_name,
    can_be_asked,
    entry_of,
    methods_of,
    waits,
)
from karat.agents._prompt import prompt_and_history, trial_values
from karat.context import Workspace
from karat.errors import AgentFault, BadPlugin, TrialFault, described
from karat.records import Condition, History, JsonObject, Reply, Sample, Trial, Turn
from karat.threads import Threads

__all__ = ["Python"]


class Python:
    """A function such as `answer(question, system_prompt)`, sync or async, or an object with
    `session`, `ask` or a usual method such as `invoke` or `run`.

    Arguments are bound by name: `question`, `system_prompt`, `mcp_servers`, `history`, `messages`,
    `materials`, `metadata`, `sample`, `sample_id`, `condition`, `repetition`, `turn`, `seed`,
    `workspace` (a path), and usual other names. The function may return a text, a mapping, a
    `karat.Reply`, or the result of an agent framework or a provider's SDK. A sync function runs on
    its own thread; a timeout abandons it.
    """

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

        target: Any = Field(
            description=(
                "module:name or file.py:name (relative to the experiment file) of a function, a "
                "class or an object; from Python, the thing itself"
            )
        )

        allow_golden: bool = Field(
            default=False,
            description="whether `sample` holds golden answers; every report then states it",
        )

        @field_validator("target")
        @classmethod
        def _is_target(cls, target: object) -> object:
            if isinstance(target, str):
                module, colon, name = target.rpartition(":")
                if not (colon and module and name):
                    raise ValueError('expected "module:function" or "file.py:function"')
            elif not can_be_asked(target):
                raise ValueError(f'expected "module:function", "file.py:function", {ASKED}')

            return target

    connects_itself = True  # to its MCP servers: recorded or replayed, through karat's proxy
    context = ("workspace",)

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        target = options.target
        if isinstance(target, str):
            target = plugins.load(target, folder=setting.folder)
        if inspect.isclass(target):
            target = plugins.build(target, {}, setting=setting)
        if not hasattr(target, "session") and asks_by_name(target):
            target = target.ask
        if not can_be_asked(target):
            raise BadPlugin(
                str(options.target),
                f"it is a {type(target).__name__}; expected {ASKED}{methods_of(target)}",
            )

        self.taken = ""
        if not (hasattr(target, "session") or hasattr(target, "ask")):
            entry = entry_of(target)
            target = _Function(entry, setting)
            if entry.chosen:
                self.taken = f"by {entry.shown}"

        self.takes: Collection[str] | None = getattr(target, "takes", None)
        self.shown: str = getattr(target, "shown", str(options.target))
        self.unread: Collection[str] = getattr(target, "unread", ())
        self.allow_golden = options.allow_golden or bool(getattr(target, "allow_golden", False))
        self.enters_workspace = bool(getattr(target, "enters_workspace", False))
        self._agent = as_agent(target)

    def session(
        self,
        condition: Condition,
        sample: Sample,
        trial: Trial,
        first: int,
        workspace: Workspace | None,
    ) -> AbstractAsyncContextManager[Session]:
        return self._agent.session(trial, first, workspace)

    async def aclose(self) -> None:
        """Releases the threads, and closes the object if it can be closed."""
        await self._agent.aclose()


class _Function:
    def __init__(self, entry: Entry, setting: AgentSetting) -> None:
        self._function = function = entry.function
        self._folder = setting.folder
        self._toolbox = setting.toolbox
        self.unread: set[str] = set()
        self._threads = Threads()
        self._arguments = bind(entry.signature, entry.shown)
        self._values = {argument.value for argument in self._arguments} - {""}
        self.shown = entry.shown
        self.takes = self._values | ({"system_prompt"} if "messages" in self._values else set())
        self._waits = waits(function)
        call = getattr(function, "__call__", None)  # noqa: B004 -- an object's __call__ may yield
        if any(map(inspect.isasyncgenfunction, (function, call))) or any(
            map(inspect.isgeneratorfunction, (function, call))
        ):
            raise BadPlugin(
                self.shown, "it yields its answer in pieces; return the whole text instead"
            )

    def aclose(self) -> None:
        self._threads.close()

    async def ask(
        self,
        condition: Condition,
        sample: Sample,
        turn: Turn,
        history: History,
        trial: Trial,
        number: int,
        workspace: Workspace | None,
    ) -> Reply:
        takes = self._values
        if takes <= _PLAIN and sample.materials is None:
            known: JsonObject = {
                "question": turn.question,
                "system_prompt": condition.system_prompt,
            }
        else:
            # Every value that a function may ask for, by its documented name.
            remembers = bool(takes & {"history", "chat_history", "messages"})
            question, past = prompt_and_history(
                sample, turn, history, remembers=remembers, bare="materials" in takes
            )
            chat: list[dict[str, str]] = []
            for earlier in past:
                chat += [
                    _message("user", earlier["question"]),
                    _message("assistant", earlier["answer"]),
                ]

            opening = condition.system_prompt if "system_prompt" not in takes else None
            messages = [*([_message("system", opening)] if opening else []), *chat]
            if "question" not in takes:
                messages += [_message("user", question)]
            known = trial_values(
                condition, sample, trial, number, folder=self._folder, toolbox=self._toolbox
            )
            known |= {
                "question": question,
                "history": past,
                "chat_history": chat,
                "messages": messages,
            }
            known |= {"sample": sample, "sample_id": sample.id}
            known["workspace"] = None if workspace is None else workspace.path

        by_place, named = list[object](), JsonObject()
        for argument in self._arguments:
            value = known.get(argument.value)
            if value is None or (argument.value == "mcp_servers" and not value):
                if argument.spare and value is None:
                    continue
                if argument.default is not NO_DEFAULT:
                    value = argument.default

            if argument.keyword is None:
                by_place.append(value)
            else:
                named[argument.keyword] = value

        try:
            if self._waits:
                result = await self._function(*by_place, **named)
            else:
                result = await self._threads.call(self._function, *by_place, **named)
                if inspect.isawaitable(result):
                    result = await result

        except TrialFault:
            raise
        except Exception as error:
            if said := _said_of_shared(error):
                advice = _ADVICE_ASYNC if self._waits else _ADVICE
                raise AgentFault("crash", f"{said} ({advice})", retriable=True) from error

            raise

        if type(result) is str:
            return Reply(text=result)
        return framework_reply(result, self.unread)


_PLAIN = frozenset(("question", "system_prompt"))
"""A function that takes no more is called without making the other values."""


_SHARED = (
    *("event loop is closed", "attached to a different loop", "bound to a different event loop"),
    *(
        "event loop is already running",
        "called from a running event loop",
        "no current event loop in thread",
    ),
    "can only be used in that same thread",
)
"""What asyncio and sqlite3 say of an object that is used outside the event loop or thread it was
made for.
"""

_LONGEST_CHAIN = 10  # causes


_ADVICE_ASYNC = "create the client inside the function, and `await` the client's async method"
_ADVICE = (
    "each call of a plain function runs on one of several threads: create the client inside the "
    "function, or make the function `async def`"
)


def _said_of_shared(error: BaseException) -> str | None:
    """What an error, or a cause of it, says of a client that is shared by several threads or event
    loops; None: that is not what went wrong.
    """
    cause = error
    for _ in range(_LONGEST_CHAIN):  # clients wrap it in their own error
        if type(cause).__name__ in ("RuntimeError", "ProgrammingError"):
            message = described(cause)
            if any(words in message.lower() for words in _SHARED):
                return message

        cause = cause.__cause__ or cause.__context__ or error

    return None


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
