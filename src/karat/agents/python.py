"""A function or an object of the user."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from karat import plugins
from karat.agents import AgentSetting, Session, as_agent
from karat.agents._answers import framework_reply, reply_from
from karat.agents._prompt import prompt_and_history, trial_values
from karat.context import Workspace
from karat.errors import AgentFault, BadPlugin, TrialFault, described, did_you_mean
from karat.kinds import installed
from karat.records import Condition, History, JsonObject, Reply, Sample, Trial, Turn
from karat.threads import Threads

__all__ = ["Python"]


class Python:
    """A function such as `answer(question, system_prompt)`, sync or async, or an object with
    `session` or `ask`.

    Arguments are bound by name: `question`, `system_prompt`, `mcp_servers`, `history`, `messages`,
    `materials`, `metadata`, `sample`, `sample_id`, `condition`, `repetition`, `turn`, `seed`,
    `workspace` (a path), and usual other names. The function may return a text, a mapping, a
    `karat.Reply`, or the result of pydantic-ai, LangChain, LangGraph or the OpenAI Agents SDK. A
    sync function runs on its own thread; a timeout abandons it.
    """

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

        target: Any = Field(
            description=(
                "module:name of a function, a class or an object; from Python, the thing itself"
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
                module, colon, name = target.partition(":")
                if not (colon and module and name):
                    raise ValueError('expected "module:function"')
            elif (
                not callable(target)
                and not hasattr(target, "session")
                and not hasattr(target, "ask")
            ):
                raise ValueError(
                    'expected "module:function", a function, or an object with `session` or `ask`'
                )

            return target

    connects_itself = True  # to its MCP servers: recorded or replayed, through karat's proxy
    context = ("workspace",)

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        target = options.target
        if isinstance(target, str):
            target = plugins.load(target, folder=setting.folder)
        if inspect.isclass(target):
            target = plugins.build(target, {}, setting=setting)
        if not hasattr(target, "session") and _asks_by_name(target):
            target = target.ask
        if not (hasattr(target, "session") or hasattr(target, "ask") or callable(target)):
            raise BadPlugin(
                str(options.target), "expected a function, or an object with `session` or `ask`"
            )

        if not (hasattr(target, "session") or hasattr(target, "ask")):
            target = _Function(target, setting)
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
    def __init__(self, function: Callable[..., Any], setting: AgentSetting) -> None:
        self._function = function
        self._folder = setting.folder
        self._toolbox = setting.toolbox
        self.unread: set[str] = set()
        self._threads = Threads()
        self._binding = _bind(function)
        if "messages" in self._binding.takes:
            chat = {"system_prompt"}
        else:
            chat = set()

        self.shown = _written(function)
        self.takes = self._binding.takes | chat
        call = getattr(function, "__call__", None)  # noqa: B004 -- only an object's __call__ may be async
        self._waits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
        self._shared_clients = _SharedClients(waits=self._waits)
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
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
        if self._binding.takes <= _PLAIN and sample.materials is None:
            known: JsonObject = {
                "question": turn.question,
                "system_prompt": condition.system_prompt,
            }
        else:
            # Every value that a function may ask for, by its documented name.
            takes = self._binding.takes
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

        positional, keywords = self._binding.arguments(known)
        with self._shared_clients:
            if self._waits:
                result = await self._function(*positional, **keywords)
            else:
                result = await self._threads.call(self._function, *positional, **keywords)
                if inspect.isawaitable(result):
                    result = await result

        if type(result) is str:
            return Reply(text=result)
        reply = framework_reply(result)
        if reply is None:
            return reply_from(result, self.unread)
        return reply


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


class _SharedClients:
    """Adds advice to the error of a client that is shared by several threads or event loops."""

    def __init__(self, *, waits: bool) -> None:
        self._advice = (
            "create the client inside the function, and `await` the client's async method"
            if waits
            else "each call of a plain function runs on one of several threads: create the client "
            "inside the function, or make the function `async def`"
        )

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, TrialFault):
            return
        cause: BaseException = error
        for _ in range(_LONGEST_CHAIN):  # clients wrap it in their own error
            if type(cause).__name__ in ("RuntimeError", "ProgrammingError"):
                message = described(cause)
            else:
                message = ""

            if any(words in message.lower() for words in _SHARED):
                raise AgentFault("crash", f"{message} ({self._advice})", retriable=True) from error
            cause = cause.__cause__ or cause.__context__ or error


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


# Names are compared in lower case and without underscores: userQuery is user_query.
_NAMES: dict[str, tuple[str, ...]] = {
    "question": (
        *(
            "question",
            "query",
            "prompt",
            "user_query",
            "user_question",
            "user_prompt",
            "user_input",
        ),
        *("user_message", "input", "input_text", "message", "text", "task", "q"),
    ),
    "system_prompt": (
        *("system_prompt", "system", "instructions", "system_message", "system_instruction"),
        *("system_instructions", "sys_prompt", "prompt"),
    ),
    "mcp_servers": ("mcp_servers", "tools", "servers", "mcp", "mcp_config"),
    "history": ("history", "past_turns", "previous_turns"),
    "chat_history": (
        *(
            "chat_history",
            "message_history",
            "past_messages",
            "previous_messages",
        ),
    ),
    "messages": ("messages", "chat_messages"),
    "materials": ("materials", "document"),
    "sample": ("sample",),
    "sample_id": ("sample_id",),
    "metadata": ("metadata",),
    "condition": ("condition", "condition_name"),
    "repetition": ("repetition", "rep"),
    "turn": ("turn", "turn_number"),
    "seed": ("seed", "random_seed"),
    "workspace": ("workspace",),
}
"""Value → the names under which a function may ask for it; the first is the one that the
documentation uses.
"""

_SHOWN = 4  # names of one value that a message lists
_KEYWORDS = ("system_prompt", "mcp_servers", "history")
"""What **kwargs gets: what a condition varies, and the earlier turns."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Binding:
    """A function's parameters, each with the value that it gets. Made by `_bind`."""

    def __init__(
        self, signature: inspect.Signature, values: Mapping[str, str], *, question_last: bool
    ) -> None:
        self._parameters = list(signature.parameters.values())
        self._values = dict(values)  # parameter → value
        self._question_last = question_last  # *args gets the question
        spare = any(parameter.kind is parameter.VAR_KEYWORD for parameter in self._parameters)
        self._keywords = tuple(name for name in _KEYWORDS if spare and name not in values.values())
        self.takes = frozenset(
            [*values.values(), *self._keywords, *(["question"] if question_last else [])]
        )

    def arguments(self, known: JsonObject) -> tuple[list[object], JsonObject]:
        """The positional and keyword arguments of one call.

        A default is kept if the condition gives no value.
        """
        positional: list[object] = []
        keywords: JsonObject = {}
        for parameter in self._parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            name = self._values.get(parameter.name)
            if name is not None:
                value = known[name]
            else:
                value = None

            given = value is not None and not (name == "mcp_servers" and not value)
            if not given and parameter.default is not parameter.empty:
                value = parameter.default
            elif not given:
                value = "" if name == "system_prompt" else value

            if parameter.kind in (_POSITIONAL if self._question_last else _POSITIONAL[:1]):
                positional.append(value)
            elif name is not None:
                keywords[parameter.name] = value

        if self._question_last:
            positional += [known["question"]]
        keywords.update((name, known[name]) for name in self._keywords if known[name] is not None)
        return positional, keywords


def _bind(function: Callable[..., object]) -> _Binding:
    """Which value each parameter gets. Raises BadPlugin with the signature and the known names."""
    shown = _written(function)
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise BadPlugin(
            shown, "its parameters cannot be seen; wrap it in a plain function"
        ) from error

    parameters = []
    for parameter in signature.parameters.values():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            parameters.append(parameter)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if not parameters and kinds == {
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    }:
        raise BadPlugin(
            shown,
            "its parameters are hidden by a decorator; put functools.wraps on the inner function",
        )

    values, faults = _by_name(parameters)
    question_last = False
    if "question" not in values.values():
        free = _first_free(parameters, values)
        if free is not None:
            values[free.name] = "question"
        elif inspect.Parameter.VAR_POSITIONAL in kinds:
            question_last = True
        elif not {"messages", "sample"} & set(values.values()):
            faults.append("no parameter takes the question")

    unbound = []
    for parameter in parameters:
        if parameter.name not in values and parameter.default is parameter.empty:
            unbound.append(parameter.name)
    faults += [
        _unknown(name) for name in unbound if not any(f"'{name}'" in fault for fault in faults)
    ]
    if faults:
        rows = []
        for value, names in _NAMES.items():
            others = [name for name in names if name != value][:_SHOWN]
            if others:
                rows.append(f"{value} ({', '.join(others)})")
            else:
                rows.append(value)

        raise BadPlugin(
            shown,
            "\n  ".join(
                ["its arguments cannot be bound", *faults, f"It may name: {', '.join(rows)}."]
            ),
        )

    return _Binding(signature, values, question_last=question_last)


def _asks_by_name(agent: object) -> bool:
    """Whether its `ask` names its arguments as a function does, instead of following an agent's
    protocol.
    """
    ask = getattr(agent, "ask", None)
    if not callable(ask):
        return False
    try:
        names = list(inspect.signature(ask).parameters)
    except (ValueError, TypeError):
        return False

    return any("question" in _BY_NAME.get(_normalized(name), ()) for name in names)


def _written(function: Callable[..., object]) -> str:
    """The function's name and parameters, as a message shows them."""
    inner = getattr(function, "func", function)  # functools.partial has no name
    name = getattr(inner, "__qualname__", None) or type(inner).__name__
    try:
        parameters = [
            parameter.replace(annotation=parameter.empty)
            for parameter in inspect.signature(function).parameters.values()
        ]
        return f"{name.rpartition('<locals>.')[2]}{inspect.Signature(parameters)}"
    except (ValueError, TypeError):
        return str(name)


def _by_name(parameters: Iterable[inspect.Parameter]) -> tuple[dict[str, str], list[str]]:
    """Parameter → value for every parameter whose name is known, and which of them contradict each
    other.
    """
    claims: dict[str, list[inspect.Parameter]] = {}
    either: list[inspect.Parameter] = []
    for parameter in parameters:
        name = _normalized(parameter.name)
        meant = _BY_NAME.get(name) or _names_of_kinds().get(name, ())
        if len(meant) == 1:
            claims.setdefault(meant[0], []).append(parameter)
        elif meant:
            either.append(parameter)

    for parameter in either:  # `prompt` is the question, or the system prompt next to a question
        value = (
            "system_prompt"
            if "question" in claims and "system_prompt" not in claims
            else "question"
        )
        claims.setdefault(value, []).append(parameter)

    values: dict[str, str] = {}
    faults = []
    for value, claimed in claims.items():
        required = [parameter for parameter in claimed if parameter.default is parameter.empty]
        if len(claimed) == 1 or len(required) == 1:
            values[(required or claimed)[0].name] = value
        else:
            names = " and ".join(f"'{parameter.name}'" for parameter in claimed)
            faults.append(f"{names} both ask for the {value.replace('_', ' ')}")

    return values, faults


def _first_free(
    parameters: Iterable[inspect.Parameter], values: Mapping[str, str]
) -> inspect.Parameter | None:
    """The parameter for the question if none has such a name: required, or the function's very
    first.
    """
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    free = [parameter for parameter in positional if parameter.name not in values]
    required = [parameter for parameter in free if parameter.default is parameter.empty]
    if required:
        return required[0]
    if free and free[0] is positional[0]:
        return free[0]
    return None


def _unknown(name: str) -> str:
    known = [known for names in _NAMES.values() for known in names]
    return (
        f"cannot fill '{name}'{did_you_mean(name, known, listing=False)}; rename it or "
        f"give it a default"
    )


@cache
def _names_of_kinds() -> dict[str, tuple[str, ...]]:
    """Name → value, of the names that kinds of datasets add. Loads every kind."""
    found: dict[str, tuple[str, ...]] = {}
    for kind in installed().values():
        for value, names in kind.argument_names.items():
            found.update((_normalized(name), (value,)) for name in names)

    return found


def _normalized(name: str) -> str:
    return name.lower().replace("_", "")


_BY_NAME: dict[str, tuple[str, ...]] = {
    _normalized(name): tuple(value for value, names in _NAMES.items() if name in names)
    for names in _NAMES.values()
    for name in names
}
