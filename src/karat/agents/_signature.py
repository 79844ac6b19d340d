"""Which argument of a user's function gets which value: by name, and the question also by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping

from karat.errors import BadPlugin, did_you_mean
from karat.records import JsonObject

__all__ = ["Binding", "asks_by_name", "bind", "written"]

# Names are compared in lower case and without underscores: userQuery is user_query.
_NAMES: dict[str, tuple[str, ...]] = {
    "question": (
        *("question", "query", "prompt", "user_query", "user_question", "user_prompt", "user_input"),
        *("user_message", "input", "input_text", "message", "text", "task", "q"),
    ),
    "system_prompt": (
        *("system_prompt", "system", "instructions", "system_message", "system_instruction"),
        *("system_instructions", "sys_prompt", "prompt"),
    ),
    "mcp_servers": ("mcp_servers", "tools", "servers", "mcp", "mcp_config"),
    "history": ("history", "past_turns", "previous_turns"),
    "chat_history": (
        *("chat_history", "message_history", "conversation_history", "past_messages", "previous_messages"),
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
}
"""Value → the names under which a function may ask for it; the first is the one that the documentation uses."""

_SHOWN = 4  # names of one value that a message lists
_KEYWORDS = ("system_prompt", "mcp_servers", "history")
"""What **kwargs gets: what a condition varies, and the conversation."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Binding:
    """A function's parameters, each with the value that it gets. Made by `bind`."""

    def __init__(self, signature: inspect.Signature, values: Mapping[str, str], *, question_last: bool) -> None:
        self._parameters = list(signature.parameters.values())
        self._values = dict(values)  # parameter → value
        self._question_last = question_last  # *args gets the question
        spare = any(one.kind is one.VAR_KEYWORD for one in self._parameters)
        self._keywords = tuple(name for name in _KEYWORDS if spare and name not in values.values())
        self.takes = frozenset([*values.values(), *self._keywords, *(["question"] if question_last else [])])

    def arguments(self, known: JsonObject) -> tuple[list[object], JsonObject]:
        """The positional and keyword arguments of one call. A default is kept where the condition gives no value."""
        positional: list[object] = []
        keywords: JsonObject = {}
        for one in self._parameters:
            if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
                continue
            name = self._values.get(one.name)
            value = known[name] if name is not None else None
            given = value is not None and not (name == "mcp_servers" and not value)
            if not given and one.default is not one.empty:
                value = one.default
            elif not given:
                value = "" if name == "system_prompt" else value
            if one.kind in (_POSITIONAL if self._question_last else _POSITIONAL[:1]):
                positional.append(value)
            elif name is not None:
                keywords[one.name] = value
        positional += [known["question"]] if self._question_last else []
        keywords.update((name, known[name]) for name in self._keywords if known[name] is not None)
        return positional, keywords


def bind(function: Callable[..., object]) -> Binding:
    """Which value each parameter gets. Raises BadPlugin with the signature and what may be named."""
    shown = written(function)
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise BadPlugin(shown, "its parameters cannot be seen; wrap it in a plain function") from error
    parameters = [one for one in signature.parameters.values() if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    kinds = {one.kind for one in signature.parameters.values()}
    if not parameters and kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        raise BadPlugin(shown, "its parameters are hidden by a decorator; put functools.wraps on the inner function")
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
    unbound = [one.name for one in parameters if one.name not in values and one.default is one.empty]
    faults += [_unknown(name) for name in unbound if not any(f"'{name}'" in fault for fault in faults)]
    if faults:
        rows = []
        for value, names in _NAMES.items():
            others = [name for name in names if name != value][:_SHOWN]
            rows.append(f"{value} ({', '.join(others)})" if others else value)
        raise BadPlugin(
            shown, "\n  ".join(["its arguments cannot be bound", *faults, f"It may name: {', '.join(rows)}."])
        )
    return Binding(signature, values, question_last=question_last)


def asks_by_name(agent: object) -> bool:
    """Whether its `ask` names its values as a function does, instead of keeping the protocol of an agent."""
    ask = getattr(agent, "ask", None)
    if not callable(ask):
        return False
    try:
        names = list(inspect.signature(ask).parameters)
    except (ValueError, TypeError):
        return False
    return any("question" in _BY_NAME.get(_plain(name), ()) for name in names)


def written(function: Callable[..., object]) -> str:
    """The function's name and parameters, as a message shows them."""
    inner = getattr(function, "func", function)  # functools.partial has no name of its own
    name = getattr(inner, "__qualname__", None) or type(inner).__name__
    try:
        parameters = [one.replace(annotation=one.empty) for one in inspect.signature(function).parameters.values()]
        return f"{name.rpartition('<locals>.')[2]}{inspect.Signature(parameters)}"
    except (ValueError, TypeError):
        return str(name)


def _by_name(parameters: Iterable[inspect.Parameter]) -> tuple[dict[str, str], list[str]]:
    """Parameter → value for every parameter whose name is known, and which of them contradict each other."""
    claims: dict[str, list[inspect.Parameter]] = {}
    either: list[inspect.Parameter] = []
    for one in parameters:
        meant = _BY_NAME.get(_plain(one.name), ())
        if len(meant) == 1:
            claims.setdefault(meant[0], []).append(one)
        elif meant:
            either.append(one)
    for one in either:  # `prompt` is the question, or the system prompt beside a question
        value = "system_prompt" if "question" in claims and "system_prompt" not in claims else "question"
        claims.setdefault(value, []).append(one)
    values: dict[str, str] = {}
    faults = []
    for value, claimed in claims.items():
        required = [one for one in claimed if one.default is one.empty]
        if len(claimed) == 1 or len(required) == 1:
            values[(required or claimed)[0].name] = value
        else:
            names = " and ".join(f"'{one.name}'" for one in claimed)
            faults.append(f"{names} both ask for the {value.replace('_', ' ')}")
    return values, faults


def _first_free(parameters: Iterable[inspect.Parameter], values: Mapping[str, str]) -> inspect.Parameter | None:
    """The parameter that is the question where none is called so: required, or the function's very first."""
    positional = [one for one in parameters if one.kind in _POSITIONAL]
    free = [one for one in positional if one.name not in values]
    required = [one for one in free if one.default is one.empty]
    if required:
        return required[0]
    return free[0] if free and free[0] is positional[0] else None


def _unknown(name: str) -> str:
    known = [one for names in _NAMES.values() for one in names]
    return f"no value is called '{name}'{did_you_mean(name, known, listing=False)}; rename it or give it a default"


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


_BY_NAME: dict[str, tuple[str, ...]] = {
    _plain(name): tuple(value for value, names in _NAMES.items() if name in names)
    for names in _NAMES.values()
    for name in names
}
