"""Which value each parameter of a user's function gets."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain

import msgspec

from karat.errors import BadPlugin, did_you_mean
from karat.kinds import installed

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
"""What **kwargs gets: what a condition varies, and the earlier turns. Alone, also the question."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


NO_DEFAULT = inspect.Parameter.empty


class Argument(msgspec.Struct, frozen=True):
    """Where one argument of every call comes from."""

    value: str  # the documented name of what it is; empty: always the default
    keyword: str | None  # its parameter's name; None: it is passed by its place
    default: object = NO_DEFAULT  # instead of a value that the condition does not give
    spare: bool = False  # of **kwargs: left out without a value


_QUESTION = Argument("question", None)


def bind(signature: inspect.Signature | None, shown: str) -> list[Argument]:
    """The arguments of each call; the question alone, by place, where no signature is known.

    Raises BadPlugin with the signature and the known names.
    """
    if signature is None:
        return [_QUESTION]
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
    keywords: Sequence[str] = _KEYWORDS
    if "question" not in values.values():
        # a required parameter, or the function's very first
        positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
        free = [parameter for parameter in positional if parameter.name not in values]
        required = [parameter for parameter in free if parameter.default is parameter.empty]
        if required or (free and free[0] is positional[0]):
            values[(required or free)[0].name] = "question"
        elif inspect.Parameter.VAR_POSITIONAL in kinds:
            question_last = True
        elif not parameters and inspect.Parameter.VAR_KEYWORD in kinds:
            keywords = ("question", *_KEYWORDS)
        elif not {"messages", "sample"} & set(values.values()):
            faults.append("no parameter takes the question")

    contradicting = "\n".join(faults)
    for parameter in parameters:
        unbound = parameter.name not in values and parameter.default is NO_DEFAULT
        if unbound and f"'{parameter.name}'" not in contradicting:
            near = did_you_mean(parameter.name, chain(*_NAMES.values()), listing=False)
            faults.append(f"cannot fill '{parameter.name}'{near}; rename it or give it a default")

    if faults:
        known = []  # the values that a function may ask for, each with further names of it
        for value, names in _NAMES.items():
            others = ", ".join([name for name in names if name != value][:_SHOWN])
            known.append(f"{value} ({others})" if others else value)

        listed = f"It may name: {', '.join(known)}."
        lines = ["its arguments cannot be bound", *faults, listed]
        raise BadPlugin(shown, "\n  ".join(lines))

    by_place = _POSITIONAL if question_last else _POSITIONAL[:1]
    arguments = _arguments(parameters, values, by_place=by_place)
    if question_last:
        arguments.append(_QUESTION)
    if inspect.Parameter.VAR_KEYWORD in kinds:
        for name in keywords:
            if name not in values.values():
                arguments.append(Argument(name, name, spare=True))

    return arguments


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


def _arguments(
    parameters: Iterable[inspect.Parameter],
    values: Mapping[str, str],
    *,
    by_place: Collection[object],
) -> list[Argument]:
    """The arguments of named parameters. `by_place`: which kinds are passed by their place."""
    arguments = []
    for parameter in parameters:
        value, default = values.get(parameter.name, ""), parameter.default
        if value == "system_prompt" and default is NO_DEFAULT:
            default = ""
        if parameter.kind in by_place:
            arguments.append(Argument(value, None, default))
        elif value:
            arguments.append(Argument(value, parameter.name, default))

    return arguments


def meaning(name: str) -> tuple[str, ...]:
    """The values that a parameter of this name may mean; none: it is not known."""
    return _BY_NAME.get(_normalized(name), ())


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
